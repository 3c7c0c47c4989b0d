// SPDX-License-Identifier: MIT
/* SpyreCode directories. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <spyre/hw.h>

#include "spyrecode.h"

#define PROGRAM_BASE 0x1c00000000ull	/* segment 7 */
#define STICKS(x) (((uint64_t)(x) + SPYRE_STICK - 1) / SPYRE_STICK * SPYRE_STICK)

static void print_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(f, "\\u%04x", *s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

/* All numbers are decimal strings, as in the public examples. */
static void print_plan(FILE *f, size_t size, const struct spyreprog_meta *meta)
{
	uint64_t table = STICKS(meta->nsymbols * 8), total = STICKS(size) + table;
	size_t i;

	fprintf(f, "{\n  \"JobPreparationPlan\": [\n"
		"    {\"command\": \"Allocate\", \"properties\": {\"size\": \"%" PRIu64 "\"}},\n"
		"    {\"command\": \"InitTransfer\", \"properties\": {\"file_path\": \"init.bin\", "
		"\"init_bin_file\": \"init.bin\", \"dev_ptr\": \"%llu\", \"size\": \"%zu\"}}\n"
		"  ],\n  \"JobExecPlan\": [\n", total, PROGRAM_BASE, size);
	if (meta->nsymbols) {
		fprintf(f,
			"    {\"command\": \"ComputeOnHost\", \"properties\": {\n"
			"      \"ihandle\": \"\", \"ishape\": [\"0\"], \"ohandle\": \"symbols\", "
			"\"oshape\": [\"%zu\"], \"size\": \"%" PRIu64 "\",\n"
			"      \"hcm\": {\"vdci\": {\n        \"symbols\": [",
			meta->nsymbols, table);
		for (i = 0; i < meta->nsymbols; i++) {
			const struct spyreprog_symbol *s = &meta->symbols[i];

			fprintf(f, "%s\n          {", i ? "," : "");
			if (s->name) {
				fputs("\"name\": ", f);
				print_string(f, s->name);
				fputs(", ", f);
			}
			if (!s->constant)
				fprintf(f, "\"argument\": \"%u\", ", s->argument);
			fprintf(f, "\"offset\": \"%" PRIu64 "\"}", s->offset);
		}
		fputs("],\n        \"tensors\": [", f);
		for (i = 0; i < meta->ntensors; i++) {
			const struct spyreprog_tensor *t = &meta->tensors[i];

			fprintf(f, "%s\n          {\"name\": ", i ? "," : "");
			print_string(f, t->name);
			fprintf(f,
				", \"argument\": \"%u\", \"direction\": \"%s\", \"layout\": "
				"\"%s\", "
				"\"format\": \"%s\", \"shape\": [\"%" PRIu64 "\", \"%" PRIu64
				"\"], "
				"\"size\": \"%" PRIu64 "\"}",
				t->argument, t->output ? "output" : "input",
				t->weights ? "weights" : "sticks", spyreprog_format_name(t->format),
				t->rows, t->cols, t->bytes);
		}
		fprintf(f,
			"]},\n        \"senConstants\": []}}},\n"
			"    {\"command\": \"DataTransfer\", \"properties\": {\"direction\": "
			"\"0\", \"dirn\": \"false\", "
			"\"host_handle\": \"symbols\", \"dev_ptr\": \"%llu\", \"size\": \"%" PRIu64
			"\"}},\n",
			PROGRAM_BASE + STICKS(size), table);
	}
	fprintf(f,
		"    {\"command\": \"ComputeOnDevice\", \"properties\": {\"job_bin_ptr\": "
		"\"%llu\"}}\n"
		"  ]\n}\n",
		PROGRAM_BASE);
}

int spyreprog_write_spyrecode(const char *dir, const void *container, size_t size,
			      const struct spyreprog_meta *meta, struct spyreprog_err *err)
{
	char path[4096];
	bool ok;
	FILE *f;

	memset(err, 0, sizeof(*err));
	if (strlen(dir) > sizeof(path) - 32) {
		snprintf(err->text, sizeof(err->text), "the name of the directory is too long");
		return -1;
	}
	if (mkdir(dir, 0777) && errno != EEXIST)
		goto fail_dir;
	snprintf(path, sizeof(path), "%s/init.bin", dir);
	f = fopen(path, "wb");
	if (!f)
		goto fail;
	ok = fwrite(container, 1, size, f) == size;
	if (fclose(f) || !ok)
		goto fail;
	snprintf(path, sizeof(path), "%s/spyrecode.json", dir);
	f = fopen(path, "w");
	if (!f)
		goto fail;
	print_plan(f, size, meta);
	ok = !ferror(f);
	if (fclose(f) || !ok)
		goto fail;
	return 0;
fail_dir:
	snprintf(path, sizeof(path), "%s", dir);
fail:
	snprintf(err->text, sizeof(err->text), "cannot write %.180s: %s", path, strerror(errno));
	return -1;
}
