// SPDX-License-Identifier: MIT
/* spyre-run: runs a SpyreCode directory on arrays from .npy files. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <spyre/hw.h>
#include <spyregen.h>
#include <spyrert.h>

#include "args.h"
#include "npy.h"
#include "trace.h"

#define MAX_ARGS 256u
#define MAX_ELEMENTS (2 * (uint64_t)SPYRE_DMVA_SIZE)	/* the smallest have half a byte */

struct tensor {
	char *name;
	unsigned int argument;
	bool output, weights;
	enum spyre_format format;
	uint64_t rows, cols, bytes;
	const char *in, *out, *ref;	/* files */
	spyrert_ptr ptr;
};

static struct tensor tensors[MAX_ARGS];
static unsigned int ntensors;
static uint64_t described;	/* arguments that the plan's symbols take */
static uint64_t args[MAX_ARGS];
static bool given[MAX_ARGS];

#define CHECK(call)								\
	do {									\
		enum spyrert_status s_ = (call);				\
										\
		if (s_ != SPYRERT_SUCCESS)					\
			args_quit(4, "%s: %s", spyrert_status_name(s_), spyrert_last_error()); \
	} while (0)

/* Behind "describes no tensors". */
#define DESCRIBE "add Tensor lines to its text, or vdci.tensors (see spyrecode(5))"

static void usage(FILE *out)
{
	fputs("usage: spyre-run [OPTIONS] DIR\n"
	      "Runs a SpyreCode directory on the card.\n"
	      "\n"
	      "  -i, --in NAME=FILE      tensor NAME from FILE (.npy)\n"
	      "  -o, --out NAME=FILE     write tensor NAME to FILE (.npy)\n"
	      "  -v, --verify NAME=FILE  compare tensor NAME with FILE (.npy)\n"
	      "  -t, --tolerance X       largest |difference| / max(|reference|, 1) that passes\n"
	      "                          (default 0)\n"
	      "  -s, --symbols I=VALUE   argument I is a number, not a tensor's address\n"
	      "  -T, --time N            launch N times and say how long it took\n"
	      "  -p, --profile           say where the jobs' time went\n"
	      "  -j, --json              the profile as JSON\n"
	      "  -x, --trace FILE        write a timeline (trace event format: Perfetto, acelyzer)\n"
	      "  -l, --list              list the tensors and stop\n"
	      "  -b, --backend NAME      drm or model (default: SPYRERT_BACKEND, or drm)\n"
	      "  -d, --device N          card (default 0)\n"
	      "  -r, --check-races       refuse jobs with accesses that nothing orders (model only)\n"
	      "  -h, --help              this text\n"
	      "\n"
	      "Tensors without --in start as zeros. Exit status: 0 done and equal, 1 a\n"
	      "difference, 2 wrong usage, 3 a file is missing or wrong, 4 the card or the runtime\n"
	      "reported an error.\n",
	      out);
}

/* Numbers in SpyreCode are strings, or plain numbers; fallback: it is none. */
static uint64_t number(const json_t *j, uint64_t fallback)
{
	const char *s = json_string_value(j);
	unsigned long long v;
	char *end;

	if (s) {
		errno = 0;
		v = strtoull(s, &end, 0);
		return isdigit((unsigned char)*s) && !*end && !errno ? v : fallback;
	}
	if (json_is_integer(j) && json_integer_value(j) >= 0)
		return (uint64_t)json_integer_value(j);
	return fallback;
}

static void read_tensors(const json_t *hcm)
{
	const json_t *list = json_object_get(json_object_get(hcm, "vdci"), "tensors"), *j;
	size_t i;

	json_array_foreach(list, i, j) {
		struct tensor *t = &tensors[ntensors];
		const char *name = json_string_value(json_object_get(j, "name"));
		const char *fmt = json_string_value(json_object_get(j, "format"));
		const char *dir = json_string_value(json_object_get(j, "direction"));
		const char *layout = json_string_value(json_object_get(j, "layout"));
		const json_t *shape = json_object_get(j, "shape");
		unsigned int f;
		uint64_t need, argument;

		if (ntensors == MAX_ARGS)
			args_quit(3, "more than %u tensors", MAX_ARGS);
		if (!name || !fmt || !dir || json_array_size(shape) != 2)
			args_quit(3,
			     "tensor %zu in vdci.tensors needs name, format, direction and a shape "
			     "of two numbers",
			     i);
		for (f = 0; f < SPYRE_FORMATS && strcmp(fmt, spyreprog_format_name(f)); f++)
			;
		if (f == SPYRE_FORMATS)
			args_quit(3, "tensor %s: '%s' is no format; see spyre-gen --help", name, fmt);
		t->name = strdup(name);
		t->format = (enum spyre_format)f;
		argument = number(json_object_get(j, "argument"), MAX_ARGS);
		t->argument = (unsigned int)argument;
		t->output = !strcmp(dir, "output");
		t->weights = layout && !strcmp(layout, "weights");
		t->rows = number(json_array_get(shape, 0), 0);
		t->cols = number(json_array_get(shape, 1), 0);
		t->bytes = number(json_object_get(j, "size"), 0);
		/* Beyond this, bytes with their padding would wrap. */
		if (t->cols && t->rows > MAX_ELEMENTS / t->cols)
			args_quit(3, "tensor %s: shape %llu x %llu does not fit the card's addresses", name,
				  (unsigned long long)t->rows, (unsigned long long)t->cols);
		need = t->weights ? spyregen_weight_bytes(t->format, t->rows, t->cols) :
			spyregen_bytes(t->format, t->rows, t->cols);
		if (argument >= MAX_ARGS || t->bytes < need || !need)
			args_quit(3,
			     "tensor %s: argument %llu, shape %llu x %llu, size %llu; the shape "
			     "takes %llu bytes",
			     name, (unsigned long long)argument, (unsigned long long)t->rows,
			     (unsigned long long)t->cols, (unsigned long long)t->bytes,
			     (unsigned long long)need);
		ntensors++;
	}
}

static void count_arguments(const json_t *hcm)
{
	const json_t *list = json_object_get(json_object_get(hcm, "vdci"), "symbols"), *j, *arg;
	size_t i;

	json_array_foreach(list, i, j) {
		arg = json_object_get(j, "argument");
		if (arg && number(arg, 0) >= described)
			described = number(arg, 0) + 1;
	}
}

static void read_plan(const char *dir)
{
	char path[4200];
	json_error_t je;
	json_t *root, *cmd, *hcm, *file = NULL;
	size_t i;

	snprintf(path, sizeof(path), "%s/spyrecode.json", dir);
	if (access(path, R_OK))
		args_quit(3, "%s is no SpyreCode directory: its spyrecode.json: %s", dir,
			  strerror(errno));
	root = json_load_file(path, 0, &je);
	if (!root)
		args_quit(3, "%s:%d:%d: %s", path, je.line, je.column, je.text);
	json_array_foreach(json_object_get(root, "JobExecPlan"), i, cmd) {
		hcm = json_object_get(json_object_get(cmd, "properties"), "hcm");
		if (json_is_string(hcm)) {
			snprintf(path, sizeof(path), "%s/%s", dir, json_string_value(hcm));
			file = json_load_file(path, 0, &je);
			if (!file)
				args_quit(3, "%s:%d:%d: %s", path, je.line, je.column, je.text);
			hcm = file;
		}
		if (hcm) {
			read_tensors(hcm);
			count_arguments(hcm);
		}
		json_decref(file);
		file = NULL;
	}
	json_decref(root);
}

/* NAME=FILE: the tensor, with *value the rest. */
static struct tensor *named(char *arg, const char **value)
{
	char *eq = strchr(arg, '=');
	unsigned int i;

	if (!eq)
		args_quit(2, "'%s' should be NAME=FILE", arg);
	*eq = 0;
	*value = eq + 1;
	for (i = 0; i < ntensors; i++)
		if (!strcmp(tensors[i].name, arg))
			return &tensors[i];
	if (!ntensors)
		args_quit(2, "the program describes no tensors, so none is named '%s'; %s", arg, DESCRIBE);
	args_quit(2, "the program has no tensor '%s'; --list shows what it has", arg);
}

static bool is_int(enum spyre_format f)
{
	return f == SPYRE_SENINT8 || f == SPYRE_SENINT4 || f == SPYRE_IEEE_INT32;
}

/* Of an element in a file. */
static unsigned int file_bytes(enum spyre_format f)
{
	return f == SPYRE_SENINT8 || f == SPYRE_SENINT4 ? 1 : 4;
}

static void check_int4(const struct tensor *t, const int8_t *v)
{
	uint64_t i;

	for (i = 0; i < t->rows * t->cols; i++)
		if (v[i] < -8 || v[i] > 7)
			args_quit(3, "%s: [%llu][%llu] is %d; tensor %s in SENINT4 holds -8 to 7", t->in,
				  (unsigned long long)(i / t->cols), (unsigned long long)(i % t->cols),
				  v[i], t->name);
}

static void check_shape(const struct tensor *t, const char *path, const struct npy *a)
{
	uint64_t rows = a->dims == 2 ? a->shape[0] : 1, cols = a->dims ? a->shape[a->dims - 1] : 1;

	if (a->dims > 2 || rows != t->rows || cols != t->cols)
		args_quit(3, "%s has shape %llu x %llu; tensor %s is %llu x %llu", path,
		     (unsigned long long)rows, (unsigned long long)cols, t->name,
		     (unsigned long long)t->rows, (unsigned long long)t->cols);
}

static void load(struct spyrert_device *dev, const struct tensor *t)
{
	void *host = calloc(1, t->bytes);
	struct npy a = { 0 };
	char err[400];
	float *v;

	if (!host)
		args_quit(3, "out of memory");
	if (t->in) {
		if (npy_read(t->in, &a, err, sizeof(err)))
			args_quit(3, "%s", err);
		check_shape(t, t->in, &a);
		if (is_int(t->format)) {
			unsigned int want = file_bytes(t->format);

			if (a.type != 'i' || a.bytes != want)
				args_quit(3, "%s holds %c%u; tensor %s needs i%u", t->in, a.type,
				     a.bytes, t->name, want);
			if (t->format == SPYRE_SENINT4)
				check_int4(t, a.data);
			if (t->weights)
				spyregen_pack_weights_int(host, t->format, a.data, t->rows,
							  t->cols, t->cols);
			else
				spyregen_pack_int(host, t->format, a.data, t->rows, t->cols,
						  t->cols);
		} else {
			v = npy_float(&a);
			if (!v)
				args_quit(3, "%s: elements %c%u cannot be converted; save it with "
					  "astype('float32')", t->in, a.type, a.bytes);
			if (t->weights)
				spyregen_pack_weights(host, t->format, v, t->rows, t->cols,
						      t->cols);
			else
				spyregen_pack(host, t->format, v, t->rows, t->cols, t->cols);
			free(v);
		}
		free(a.data);
	}
	CHECK(spyrert_memcpy_h2d(dev, t->ptr, host, t->bytes));
	free(host);
}

/* Element i to be compared with an integer; v: the array as fp32, which has no room for all int32. */
static double exactly(const struct npy *a, const float *v, uint64_t i)
{
	if (a->type == 'i' && a->bytes == 4)
		return ((const int32_t *)a->data)[i];
	if (a->type == 'f' && a->bytes == 8)
		return ((const double *)a->data)[i];
	return (double)v[i];
}

/* Writes and compares; returns whether it is within tolerance. */
static bool store(struct spyrert_device *dev, const struct tensor *t, double tolerance)
{
	struct npy a = { .type = is_int(t->format) ? 'i' : 'f',
			 .bytes = file_bytes(t->format),
			 .dims = 2,
			 .shape = { t->rows, t->cols },
			 .count = t->rows * t->cols },
		   r;
	void *host = malloc(t->bytes);
	double worst = 0, d, got, want;
	uint64_t i, at = 0;
	float *x, *y;
	char err[400];

	a.data = malloc(a.count * a.bytes);
	if (!host || !a.data)
		args_quit(3, "out of memory");
	if (t->weights)
		args_quit(2, "tensor %s has the weights' layout; only inputs have that", t->name);
	CHECK(spyrert_memcpy_d2h(dev, host, t->ptr, t->bytes));
	if (is_int(t->format))
		spyregen_unpack_int(a.data, t->cols, host, t->format, t->rows, t->cols);
	else
		spyregen_unpack(a.data, t->cols, host, t->format, t->rows, t->cols);
	if (t->out && npy_write(t->out, &a, err, sizeof(err)))
		args_quit(3, "%s", err);
	if (t->ref) {
		if (npy_read(t->ref, &r, err, sizeof(err)))
			args_quit(3, "%s", err);
		check_shape(t, t->ref, &r);
		x = npy_float(&a);
		y = npy_float(&r);
		if (!x || !y)
			args_quit(3, "%s: elements %c%u cannot be compared", t->ref, r.type, r.bytes);
		for (i = 0; i < a.count; i++) {
			got = is_int(t->format) ? exactly(&a, x, i) : (double)x[i];
			want = is_int(t->format) ? exactly(&r, y, i) : (double)y[i];
			d = got == want || (got != got && want != want) ? 0 :
				fabs(got - want) / fmax(fabs(want), 1);
			/* A NaN where none belongs is the worst there is. */
			if (d != d)
				d = INFINITY;
			if (d > worst) {
				worst = d;
				at = i;
			}
		}
		if (worst > tolerance)
			printf("%s: differs: [%llu][%llu] is %.*g, reference %.*g (error %g, "
			       "tolerance %g)\n",
			       t->name, (unsigned long long)(at / t->cols),
			       (unsigned long long)(at % t->cols), is_int(t->format) ? 10 : 9,
			       is_int(t->format) ? exactly(&a, x, at) : (double)x[at],
			       is_int(t->format) ? 10 : 9,
			       is_int(t->format) ? exactly(&r, y, at) : (double)y[at],
			       worst, tolerance);
		else
			printf("%s: equal within %g (largest error %g)\n", t->name, tolerance,
			       worst);
		free(x);
		free(y);
		free(r.data);
	}
	free(a.data);
	free(host);
	return worst <= tolerance;
}

static struct { uint64_t cycles; unsigned int count; } modelled;
static struct trace trace;
static bool tracing;

static void on_activity(void *arg, const struct spyrert_activity *a)
{
	(void)arg;
	if (tracing)
		trace_record(&trace, a);
	if (a->kind == SPYRERT_ACTIVITY_COMPUTE) {
		modelled.cycles += a->cycles;
		modelled.count++;
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run(struct spyrert_device *dev, struct spyrert_program *prog, unsigned int nargs,
		unsigned int times)
{
	struct spyrert_stream *s = spyrert_default_stream(dev);
	struct spyrert_device_props props;
	double t, best = 0;
	unsigned int i;

	CHECK(spyrert_device_get_props(dev, &props, sizeof(props)));
	for (i = 0; i < (times ? times : 1); i++) {
		t = now();
		CHECK(spyrert_launch(s, prog, args, nargs, 0, 0));
		CHECK(spyrert_stream_synchronize(s, SPYRERT_FOREVER));
		t = now() - t;
		if (!i || t < best)
			best = t;
	}
	if (times && modelled.count)
		printf("%u launches: best %.3f ms wall; modelled %.3f us (%llu core cycles) a "
		       "launch\n",
		       times, best * 1e3, (double)modelled.cycles / times / props.core_hz * 1e6,
		       (unsigned long long)(modelled.cycles / times));
}

/* After the jobs ran, so that their own errors come first. */
static void explain(struct spyrert_device *dev, const char *dir, unsigned int nargs, bool profiled, bool json,
		    const char *timeline)
{
	struct spyrert_device_props props;
	struct profile p = { 0 };
	char err[300], name[256];
	const char *base;
	size_t drawn = 0, n;
	uint32_t phases;
	json_t *j;

	CHECK(spyrert_device_get_props(dev, &props, sizeof(props)));
	if (profile_read(dir, args, nargs, props.core_hz, 0, &p, err))
		args_quit(3, "no profile: %s", err);
	if (profiled && json) {
		j = profile_json(&p);
		json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
		putchar('\n');
		json_decref(j);
	} else if (profiled) {
		profile_print(&p);
	}
	if (timeline) {
		phases = trace_phases(&trace, &p, &drawn);
		profile_free(&p);
		if (profile_read(dir, args, nargs, props.core_hz, phases, &p, err))
			args_quit(3, "no profile: %s", err);
		for (n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
			;
		for (base = dir + n; base > dir && base[-1] != '/'; base--)
			;
		snprintf(name, sizeof(name), "%.*s", (int)(dir + n - base), base);
		if (trace.lost)
			args_quit(3, "%s: out of memory", timeline);
		if (trace_write(timeline, &trace, &p, drawn, name, props.soc_hz))
			args_quit(3, "cannot write %s: %s", timeline, strerror(errno));
	}
	free(trace.records);
	profile_free(&p);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "in", required_argument, NULL, 'i' },
						 { "out", required_argument, NULL, 'o' },
						 { "verify", required_argument, NULL, 'v' },
						 { "tolerance", required_argument, NULL, 't' },
						 { "symbols", required_argument, NULL, 's' },
						 { "time", required_argument, NULL, 'T' },
						 { "profile", no_argument, NULL, 'p' },
						 { "json", no_argument, NULL, 'j' },
						 { "trace", required_argument, NULL, 'x' },
						 { "list", no_argument, NULL, 'l' },
						 { "backend", required_argument, NULL, 'b' },
						 { "device", required_argument, NULL, 'd' },
						 { "check-races", no_argument, NULL, 'r' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	struct { int option; char *arg; } later[3 * MAX_ARGS];
	unsigned int nlater = 0, i, times = 0, nargs = 0;
	const char *backend = NULL, *value;
	struct spyrert_program_info info;
	struct spyrert_program *prog;
	struct spyrert_device *dev;
	double tolerance = 0;
	bool list = false, equal = true, profiled = false, json = false, races = false;
	const char *timeline = NULL;
	struct spyrert *lib;
	int c, device = 0;

	while ((c = getopt_long(argc, argv, "i:o:v:t:s:T:pjx:lb:d:rh", options, NULL)) != -1) {
		switch (c) {
		case 'i':
		case 'o':
		case 'v':
		case 's':
			/* Names are known when the directory has been read. */
			if (nlater == 3 * MAX_ARGS)
				args_quit(2, "too many options");
			later[nlater].option = c;
			later[nlater++].arg = optarg;
			break;
		case 't':
			tolerance = args_real("--tolerance", optarg, 0);
			break;
		case 'T':
			times = (unsigned int)args_number("--time", optarg, 1, 1000000);
			break;
		case 'p':
			profiled = true;
			break;
		case 'j':
			json = true;
			break;
		case 'x':
			timeline = optarg;
			tracing = true;
			break;
		case 'l':
			list = true;
			break;
		case 'b':
			backend = optarg;
			break;
		case 'd':
			device = (int)args_number("--device", optarg, 0, 1000);
			break;
		case 'r':
			races = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind + 1 != argc)
		args_quit(2, "%s; see --help", optind == argc ?
			  "DIR, the SpyreCode directory to run, is missing" :
			  "only one DIR can be given");
	if (json && !profiled)
		args_quit(2, "--json is the form of --profile: give both");
	read_plan(argv[optind]);
	if (list) {
		if (!ntensors)
			printf("no tensors described, %llu arguments: %s\n",
			       (unsigned long long)described, DESCRIBE);
		for (i = 0; i < ntensors; i++)
			printf("%-8s argument %u, %s, %s %s, %llu x %llu, %llu bytes\n",
			       tensors[i].name, tensors[i].argument,
			       tensors[i].output ? "output" : "input",
			       spyreprog_format_name(tensors[i].format),
			       tensors[i].weights ? "weights" : "sticks",
			       (unsigned long long)tensors[i].rows,
			       (unsigned long long)tensors[i].cols,
			       (unsigned long long)tensors[i].bytes);
		return 0;
	}
	for (i = 0; i < nlater; i++) {
		struct tensor *t;

		if (later[i].option == 's') {
			char *eq = strchr(later[i].arg, '=');
			uint64_t n;

			if (!eq)
				args_quit(2, "--symbols takes INDEX=VALUE, not '%s'", later[i].arg);
			*eq = '\0';
			n = args_number("--symbols INDEX=", later[i].arg, 0, MAX_ARGS - 1);
			args[n] = args_number("--symbols INDEX=VALUE", eq + 1, 0, UINT64_MAX);
			given[n] = true;
			continue;
		}
		t = named(later[i].arg, &value);
		if (later[i].option == 'i' && t->output)
			args_quit(2, "tensor %s is an output: --in takes inputs", t->name);
		*(later[i].option == 'i'   ? &t->in
		  : later[i].option == 'o' ? &t->out
					   : &t->ref) = value;
	}

	if (races) {
		const char *env = getenv("SPYRERT_BACKEND");
		const char *used = backend && *backend ? backend : env && *env ? env : "drm";

		if (strcmp(used, "model"))
			args_quit(2,
				  "--check-races is of the card in this process: give --backend "
				  "model; a card in a machine has the property check=races");
		setenv("SPYRERT_MODEL_CHECK", "races", 1);
	}
	CHECK(spyrert_init(backend, &lib));
	CHECK(spyrert_device_open(lib, device, &dev));
	CHECK(spyrert_activity_subscribe(dev, on_activity, NULL));
	CHECK(spyrert_program_load(dev, argv[optind], &prog));
	CHECK(spyrert_program_get_info(prog, &info, sizeof(info)));
	nargs = info.symbols;
	if (nargs > MAX_ARGS)
		args_quit(3, "the program takes %u arguments; this tool gives at most %u", nargs,
		     MAX_ARGS);
	for (i = 0; i < ntensors; i++) {
		if (tensors[i].argument >= nargs)
			args_quit(3, "tensor %s is argument %u; the program takes %u", tensors[i].name,
			     tensors[i].argument, nargs);
		CHECK(spyrert_malloc(dev, tensors[i].bytes, &tensors[i].ptr));
		args[tensors[i].argument] = tensors[i].ptr;
		given[tensors[i].argument] = true;
		load(dev, &tensors[i]);
	}
	for (i = 0; i < nargs; i++)
		if (!given[i])
			args_quit(2, "no tensor is described for argument %u: give a number with "
				  "--symbols %u=VALUE, or describe a tensor: %s", i, i, DESCRIBE);
	run(dev, prog, nargs, times);
	for (i = 0; i < ntensors; i++)
		if (tensors[i].out || tensors[i].ref)
			equal &= store(dev, &tensors[i], tolerance);
	CHECK(spyrert_activity_subscribe(dev, NULL, NULL));
	if (profiled || timeline)
		explain(dev, argv[optind], nargs, profiled, json, timeline);
	for (i = 0; i < ntensors; i++) {
		CHECK(spyrert_free(dev, tensors[i].ptr));
		free(tensors[i].name);
	}
	CHECK(spyrert_program_unload(prog));
	CHECK(spyrert_device_close(dev));
	CHECK(spyrert_exit(lib));
	return equal ? 0 : 1;
}
