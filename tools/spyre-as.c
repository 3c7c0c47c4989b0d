// SPDX-License-Identifier: MIT
/* spyre-as: text to a job binary or a SpyreCode directory. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "spyreprog.h"
#include "spyrecode.h"

static void usage(FILE *out)
{
	fputs("usage: spyre-as [-o FILE | -d DIR] [INPUT]\n"
	      "Assembles a Spyre program (text, or init.txt's hex sticks) into a job binary.\n"
	      "\n"
	      "  -o, --output FILE  job binary (default init.bin)\n"
	      "  -d, --dir DIR      SpyreCode directory: init.bin and spyrecode.json\n"
	      "      --rst          print the instruction tables of the manual and exit\n"
	      "  -h, --help         this text\n"
	      "\n"
	      "INPUT is a file, or - or nothing for standard input. Exit status: 0 assembled,\n"
	      "1 error in the input, 2 wrong usage, 3 a file cannot be read or written.\n", out);
}

static char *slurp(const char *name, size_t *len)
{
	FILE *f = strcmp(name, "-") ? fopen(name, "rb") : stdin;
	size_t cap = 65536, n = 0, got;
	char *buf, *p;

	if (!f)
		return NULL;
	buf = malloc(cap);
	while (buf && (got = fread(buf + n, 1, cap - n, f)) > 0) {
		n += got;
		if (n < cap)
			continue;
		cap *= 2;
		p = realloc(buf, cap);
		if (!p)
			free(buf);
		buf = p;
	}
	if (buf && ferror(f)) {
		free(buf);
		buf = NULL;
	}
	if (f != stdin)
		fclose(f);
	*len = n;
	return buf;
}

static int write_file(const char *name, const void *data, size_t size)
{
	FILE *f = fopen(name, "wb");
	bool ok;

	if (!f)
		return -1;
	ok = fwrite(data, 1, size, f) == size;
	return fclose(f) || !ok ? -1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "dir", required_argument, NULL, 'd' },
		{ "rst", no_argument, NULL, 'R' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	const char *input = "-", *output = NULL, *dir = NULL;
	char *names[SPYRE_JOB_SYMBOLS];
	struct spyreprog_tensor tensors[SPYRE_JOB_SYMBOLS];
	size_t ntensors;
	struct spyreprog_err err;
	void *bin;
	size_t len, size;
	unsigned int i;
	char *text;
	int c, ret = 0;

	while ((c = getopt_long(argc, argv, "o:d:h", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			output = optarg;
			break;
		case 'd':
			dir = optarg;
			break;
		case 'R':
			spyreprog_print_rst(stdout);
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind + 1 < argc || (output && dir)) {
		fprintf(stderr, "spyre-as: %s; see --help\n",
			output && dir ? "--output and --dir exclude each other" :
					"only one INPUT can be given");
		return 2;
	}
	if (optind < argc)
		input = argv[optind];
	text = slurp(input, &len);
	if (!text) {
		fprintf(stderr, "spyre-as: cannot read %s: %s\n", input, strerror(errno));
		return 3;
	}
	if (spyreprog_assemble_tensors(text, len, &bin, &size, names, tensors, &ntensors, &err)) {
		if (err.line)
			fprintf(stderr, "%s:%u:%u: error: %s\n",
				strcmp(input, "-") ? input : "<stdin>", err.line, err.column,
				err.text);
		else
			fprintf(stderr, "%s: error: %s\n", strcmp(input, "-") ? input : "<stdin>",
				err.text);
		free(text);
		return 1;
	}
	if (dir) {
		struct spyreprog_meta meta = { 0 };
		struct spyreprog_symbol syms[SPYRE_JOB_SYMBOLS];
		uint32_t nsym = ((const struct spyre_job_header *)bin)->nsymbols;

		memset(syms, 0, sizeof(syms));
		for (i = 0; i < nsym; i++) {
			syms[i].name = names[i];
			syms[i].argument = i;
		}
		meta.symbols = syms;
		meta.nsymbols = nsym;
		meta.tensors = tensors;
		meta.ntensors = ntensors;
		if (spyreprog_write_spyrecode(dir, bin, size, &meta, &err)) {
			fprintf(stderr, "spyre-as: %s\n", err.text);
			ret = 3;
		}
	} else if (write_file(output ? output : "init.bin", bin, size)) {
		fprintf(stderr, "spyre-as: cannot write %s: %s\n", output ? output : "init.bin",
			strerror(errno));
		ret = 3;
	}
	for (i = 0; i < SPYRE_JOB_SYMBOLS; i++)
		free(names[i]);
	for (i = 0; i < ntensors; i++)
		free((char *)tensors[i].name);
	free(bin);
	free(text);
	return ret;
}
