// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spyre/num.h>

#include "npy.h"

static const char magic[6] = "\x93NUMPY";

#define FAIL(...) do { snprintf(err, errlen, __VA_ARGS__); goto fail; } while (0)

/* What follows the key of a header, NULL without it. */
static char *value_of(char *text, const char *key)
{
	char *p = strstr(text, key);

	if (!p)
		return NULL;
	for (p += strlen(key); *p == ' ' || *p == ':'; p++)
		;
	return p;
}

int npy_read(const char *path, struct npy *a, char *err, size_t errlen)
{
	FILE *f = fopen(path, "rb");
	uint8_t head[12];
	char *text = NULL, *p;
	size_t len;

	memset(a, 0, sizeof(*a));
	if (!f) {
		snprintf(err, errlen, "%s: %s", path, strerror(errno));
		return -1;
	}
	if (fread(head, 10, 1, f) != 1 || memcmp(head, magic, 6) || head[6] < 1 || head[6] > 3)
		FAIL("%s is no .npy file", path);
	len = head[8] | (size_t)head[9] << 8;
	if (head[6] > 1) {
		if (fread(head + 10, 2, 1, f) != 1)
			FAIL("%s is cut off", path);
		len |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
	}
	if (len > 1u << 20)
		FAIL("%s: header of %zu bytes", path, len);
	text = calloc(1, len + 1);
	if (!text || fread(text, 1, len, f) != len)
		FAIL("%s is cut off", path);
	p = value_of(text, "'descr'");
	if (!p || *p != '\'' || (p[1] != '<' && p[1] != '|') || !strchr("fiu", p[2]) || !p[2])
		FAIL("%s: its element type is not little-endian f, i or u", path);
	a->type = p[2];
	a->bytes = (unsigned int)strtoul(p + 3, &p, 10);
	if (*p != '\'')
		FAIL("%s: its element type is not one number", path);
	if (a->bytes != 1 && a->bytes != 2 && a->bytes != 4 && a->bytes != 8)
		FAIL("%s: elements of %u bytes", path, a->bytes);
	p = value_of(text, "'fortran_order'");
	if (!p || strncmp(p, "False", 5))
		FAIL("%s is in column order; save it with numpy.ascontiguousarray()", path);
	p = value_of(text, "'shape'");
	if (!p || *p != '(')
		FAIL("%s has no shape", path);
	a->count = 1;
	for (p++; *p && *p != ')';) {
		char *e;

		if (*p == ' ' || *p == ',') {
			p++;
			continue;
		}
		if (a->dims == 8)
			FAIL("%s has more than 8 dimensions", path);
		a->shape[a->dims] = strtoull(p, &e, 10);
		if (e == p || (a->shape[a->dims] && a->count > UINT64_MAX / 8 / a->shape[a->dims]))
			FAIL("%s: bad shape", path);
		a->count *= a->shape[a->dims++];
		p = e;
	}
	a->data = malloc(a->count * a->bytes + 1);
	if (!a->data)
		FAIL("%s: out of memory", path);
	if (fread(a->data, a->bytes, a->count, f) != a->count)
		FAIL("%s is cut off: %llu elements were expected", path,
		     (unsigned long long)a->count);
	free(text);
	fclose(f);
	return 0;
fail:
	free(text);
	free(a->data);
	a->data = NULL;
	fclose(f);
	return -1;
}

int npy_write(const char *path, const struct npy *a, char *err, size_t errlen)
{
	FILE *f = fopen(path, "wb");
	char text[320];
	size_t len = 0, pad;
	unsigned int i;
	uint8_t head[10];
	int ok;

	if (!f) {
		snprintf(err, errlen, "%s: %s", path, strerror(errno));
		return -1;
	}
	len += (size_t)sprintf(text, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
			       a->bytes == 1 ? '|' : '<', a->type, a->bytes);
	for (i = 0; i < a->dims; i++)
		len += (size_t)sprintf(text + len, "%llu,%s", (unsigned long long)a->shape[i],
				       i + 1 < a->dims ? " " : "");
	len += (size_t)sprintf(text + len, "), }");
	pad = 63 - (10 + len) % 64;
	memset(text + len, ' ', pad);
	len += pad;
	text[len++] = '\n';
	memcpy(head, magic, 6);
	head[6] = 1;
	head[7] = 0;
	head[8] = (uint8_t)len;
	head[9] = (uint8_t)(len >> 8);
	ok = fwrite(head, 10, 1, f) == 1 && fwrite(text, len, 1, f) == 1 &&
	     fwrite(a->data, a->bytes, a->count, f) == a->count;
	if (fclose(f) || !ok) {
		snprintf(err, errlen, "cannot write %s: %s", path, strerror(errno));
		return -1;
	}
	return 0;
}

float *npy_float(const struct npy *a)
{
	float *v = malloc(a->count * sizeof(*v) + 1);
	uint64_t i;

	for (i = 0; v && i < a->count; i++) {
		if (a->type == 'f' && a->bytes == 4)
			v[i] = ((const float *)a->data)[i];
		else if (a->type == 'f' && a->bytes == 8)
			v[i] = (float)((const double *)a->data)[i];
		else if (a->type == 'f' && a->bytes == 2)
			v[i] = spyre_fp16_to_fp32(((const uint16_t *)a->data)[i]);
		else if (a->type == 'i' && a->bytes == 1)
			v[i] = ((const int8_t *)a->data)[i];
		else if (a->type == 'i' && a->bytes == 4)
			v[i] = (float)((const int32_t *)a->data)[i];
		else if (a->type == 'u' && a->bytes == 1)
			v[i] = ((const uint8_t *)a->data)[i];
		else {
			free(v);
			return NULL;
		}
	}
	return v;
}
