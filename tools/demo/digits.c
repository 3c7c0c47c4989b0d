// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "digits.h"

const char *program_name = "spyre-demo";

void die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s: ", program_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

void digits_load(struct digits *d, const char *path)
{
	gzFile f = gzopen(path, "rb");
	char line[1024], *p, *e;
	size_t cap = 0;
	unsigned int i;
	long v;

	memset(d, 0, sizeof(*d));
	if (!f)
		die("cannot read %s: %s", path, strerror(errno));
	while (gzgets(f, line, sizeof(line))) {
		if (d->count == cap) {
			cap = cap ? 2 * cap : 2048;
			d->pixel = realloc(d->pixel, cap * sizeof(*d->pixel));
			d->label = realloc(d->label, cap);
			if (!d->pixel || !d->label)
				die("out of memory");
		}
		p = line;
		for (i = 0; i <= PIXELS; i++) {
			v = strtol(p, &e, 10);
			/* Some writers give the numbers as 0.000e+00. */
			if (*e == '.')
				v = (long)strtod(p, &e);
			if (e == p || v < 0 || v > 16 || (i < PIXELS && *e != ','))
				die("%s: line %zu is no picture: 64 numbers from 0 to 16 and a "
				    "digit, with commas",
				    path, d->count + 1);
			if (i < PIXELS)
				d->pixel[d->count][i] = (float)v / 16.0f;
			else if (v >= CLASSES)
				die("%s: line %zu: %ld is no digit", path, d->count + 1, v);
			else
				d->label[d->count] = (uint8_t)v;
			p = e + 1;
		}
		d->count++;
	}
	gzclose(f);
	if (!d->count)
		die("%s holds no pictures", path);
}

void digits_free(struct digits *d)
{
	free(d->pixel);
	free(d->label);
}

static const uint32_t widths[LAYERS + 1] = { PIXELS, 128, 64, CLASSES };

void net_new(struct net *n)
{
	unsigned int l;

	for (l = 0; l < LAYERS; l++) {
		n->in[l] = widths[l];
		n->out[l] = widths[l + 1];
		n->weight[l] = calloc((size_t)n->in[l] * n->out[l], sizeof(float));
		n->bias[l] = calloc(n->out[l], sizeof(float));
		if (!n->weight[l] || !n->bias[l])
			die("out of memory");
	}
}

void net_free(struct net *n)
{
	unsigned int l;

	for (l = 0; l < LAYERS; l++) {
		free(n->weight[l]);
		free(n->bias[l]);
	}
}

static const char magic[8] = "SPYRNET1";

void net_save(const struct net *n, const char *path)
{
	FILE *f = fopen(path, "wb");
	unsigned int l;
	int ok;

	if (!f)
		die("cannot write %s: %s", path, strerror(errno));
	ok = fwrite(magic, sizeof(magic), 1, f) == 1 && fwrite(widths, sizeof(widths), 1, f) == 1;
	for (l = 0; ok && l < LAYERS; l++) {
		size_t w = (size_t)n->in[l] * n->out[l];

		ok = fwrite(n->weight[l], sizeof(float), w, f) == w &&
		     fwrite(n->bias[l], sizeof(float), n->out[l], f) == n->out[l];
	}
	if (fclose(f) || !ok)
		die("cannot write %s: %s", path, strerror(errno));
}

void net_load(struct net *n, const char *path)
{
	FILE *f = fopen(path, "rb");
	uint32_t w[LAYERS + 1];
	char m[sizeof(magic)];
	unsigned int l;
	int ok;

	if (!f)
		die("cannot read %s: %s; spyre-train makes it", path, strerror(errno));
	if (fread(m, sizeof(m), 1, f) != 1 || memcmp(m, magic, sizeof(m)) ||
	    fread(w, sizeof(w), 1, f) != 1 || memcmp(w, widths, sizeof(w)))
		die("%s is no network of this program; make it anew with spyre-train", path);
	net_new(n);
	for (l = 0, ok = 1; ok && l < LAYERS; l++) {
		size_t count = (size_t)n->in[l] * n->out[l];

		ok = fread(n->weight[l], sizeof(float), count, f) == count &&
		     fread(n->bias[l], sizeof(float), n->out[l], f) == n->out[l];
	}
	fclose(f);
	if (!ok)
		die("%s is cut off; make it anew with spyre-train", path);
}

void net_scores(const struct net *n, const float *pixel, float *scores, float *act)
{
	float buf[LAYERS][NET_MAX_WIDTH];
	const float *x = pixel;
	unsigned int l;
	uint32_t i, j;

	for (l = 0; l < LAYERS; l++) {
		float *y = act ? act + l * NET_MAX_WIDTH : buf[l];

		memcpy(y, n->bias[l], n->out[l] * sizeof(float));
		for (i = 0; i < n->in[l]; i++) {
			const float *w = n->weight[l] + (size_t)i * n->out[l];

			if (x[i] == 0.0f)
				continue;
			for (j = 0; j < n->out[l]; j++)
				y[j] += x[i] * w[j];
		}
		if (l < LAYERS - 1)
			for (j = 0; j < n->out[l]; j++)
				y[j] = y[j] > 0 ? y[j] : 0;
		x = y;
	}
	memcpy(scores, x, CLASSES * sizeof(float));
}
