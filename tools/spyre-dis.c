// SPDX-License-Identifier: MIT
/* spyre-dis: a job binary or a SpyreCode directory as text. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "spyreprog.h"

static void usage(FILE *out)
{
	fputs("usage: spyre-dis [-x] [-o FILE] INPUT\n"
	      "Disassembles a job binary, a SpyreCode directory or init.txt's hex sticks.\n"
	      "\n"
	      "  -x, --expand       core by core, each unit with its whole text; without it,\n"
	      "                     spyre-as makes the same bytes again from the output\n"
	      "  -o, --output FILE  text goes to FILE\n"
	      "  -h, --help         this text\n"
	      "\n"
	      "Exit status: 0 done, 1 INPUT is no job binary, 2 wrong usage, 3 a file cannot be\n"
	      "read or written.\n", out);
}

static void *slurp(const char *name, size_t *len)
{
	FILE *f = fopen(name, "rb");
	size_t cap = SPYRE_JOB_MAX * 3u;	/* hex sticks are twice as long */
	char *buf;

	if (!f)
		return NULL;
	buf = malloc(cap);
	if (buf)
		*len = fread(buf, 1, cap, f);
	if (buf && ferror(f)) {
		free(buf);
		buf = NULL;
	}
	fclose(f);
	return buf;
}

/* Path of the file that the first InitTransfer of a SpyreCode directory copies. */
static int find_init(const char *dir, char *path, size_t size)
{
	json_t *root, *plan, *cmd;
	json_error_t je;
	size_t i;

	snprintf(path, size, "%s/spyrecode.json", dir);
	if (access(path, R_OK)) {
		fprintf(stderr, "spyre-dis: %s is no SpyreCode directory: its spyrecode.json: %s\n",
			dir, strerror(errno));
		return -1;
	}
	root = json_load_file(path, 0, &je);
	if (!root) {
		fprintf(stderr, "spyre-dis: %s:%d:%d: %s\n", path, je.line, je.column, je.text);
		return -1;
	}
	plan = json_object_get(root, "JobPreparationPlan");
	json_array_foreach(plan, i, cmd) {
		const char *name = json_string_value(json_object_get(cmd, "command"));
		json_t *props = json_object_get(cmd, "properties");
		const char *file = json_string_value(json_object_get(props, "file_path"));

		if (!file)
			file = json_string_value(json_object_get(props, "init_bin_file"));
		if (name && !strcmp(name, "InitTransfer") && file) {
			snprintf(path, size, "%s/%s", dir, file);
			json_decref(root);
			return 0;
		}
	}
	json_decref(root);
	fprintf(stderr,
		"spyre-dis: %s: its JobPreparationPlan has no InitTransfer with a file_path\n",
		path);
	return -1;
}

static const char *member(const json_t *j, const char *name)
{
	return json_string_value(json_object_get(j, name));
}

/* A number as JSON string or number; 0 when it is neither. */
static unsigned long long number(const json_t *j)
{
	return json_is_string(j) ? strtoull(json_string_value(j), NULL, 0) :
		(unsigned long long)json_integer_value(j);
}

/* What a SpyreCode directory says about its arguments, as Tensor lines. */
static void print_tensors(const char *dir, FILE *out)
{
	json_t *root, *cmd, *hcm, *file, *t;
	char path[4200];
	size_t i, k;

	snprintf(path, sizeof(path), "%s/spyrecode.json", dir);
	root = json_load_file(path, 0, NULL);
	json_array_foreach(json_object_get(root, "JobExecPlan"), i, cmd) {
		file = NULL;
		hcm = json_object_get(json_object_get(cmd, "properties"), "hcm");
		if (json_is_string(hcm)) {
			snprintf(path, sizeof(path), "%s/%s", dir, json_string_value(hcm));
			hcm = file = json_load_file(path, 0, NULL);
		}
		json_array_foreach(json_object_get(json_object_get(hcm, "vdci"), "tensors"), k, t) {
			const char *name = member(t, "name"), *format = member(t, "format");
			const char *way = member(t, "direction"), *layout = member(t, "layout");
			const json_t *shape = json_object_get(t, "shape");

			if (!name || !format || !way || !json_object_get(t, "argument") ||
			    json_array_size(shape) != 2) {
				fprintf(out, "# tensor %zu of vdci.tensors is incomplete\n", k);
				continue;
			}
			fprintf(out, "Tensor : %llu : %s %s %s %llu x %llu%s\n",
				number(json_object_get(t, "argument")), name, way, format,
				number(json_array_get(shape, 0)), number(json_array_get(shape, 1)),
				layout && !strcmp(layout, "weights") ? " weights" : "");
		}
		json_decref(file);
	}
	json_decref(root);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "expand", no_argument, NULL, 'x' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	const char *output = NULL, *input, *dir = NULL;
	struct spyreprog_err err;
	unsigned int flags = 0;
	void *data, *bin = NULL;
	size_t len = 0, size;
	char path[4200];
	struct stat st;
	FILE *out = stdout;
	int c, ret;

	while ((c = getopt_long(argc, argv, "xo:h", options, NULL)) != -1) {
		switch (c) {
		case 'x':
			flags |= SPYREPROG_DIS_EXPAND;
			break;
		case 'o':
			output = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "spyre-dis: %s; see --help\n",
			optind == argc ? "INPUT, a job binary or a SpyreCode directory, is missing" :
					 "only one INPUT can be given");
		return 2;
	}
	input = argv[optind];
	if (!stat(input, &st) && S_ISDIR(st.st_mode)) {
		if (find_init(input, path, sizeof(path)))
			return 1;
		dir = input;
		input = path;
	}
	data = slurp(input, &len);
	if (!data) {
		fprintf(stderr, "spyre-dis: cannot read %s: %s\n", input, strerror(errno));
		return 3;
	}
	/* Hex sticks become bytes first. */
	if (len < 4 || memcmp(data, "SPJB", 4)) {
		if (!spyreprog_assemble(data, len, &bin, &size, NULL, &err)) {
			free(data);
			data = bin;
			len = size;
		}
	}
	if (output)
		out = fopen(output, "w");
	if (!out) {
		fprintf(stderr, "spyre-dis: cannot write %s: %s\n", output, strerror(errno));
		free(data);
		return 3;
	}
	if (dir)
		print_tensors(dir, out);
	ret = spyreprog_disassemble(data, len, flags, out, &err);
	if (ret)
		fprintf(stderr, "spyre-dis: %s: %s\n", input, err.text);
	free(data);
	if (fflush(out) || (out != stdout && fclose(out))) {
		fprintf(stderr, "spyre-dis: cannot write the text: %s\n", strerror(errno));
		return 3;
	}
	return ret ? 1 : 0;
}
