// SPDX-License-Identifier: MIT
/* spyre-gen: SpyreCode directories from the program generators. */
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "spyregen.h"

static void usage(FILE *out)
{
	fputs("usage: spyre-gen [OPTIONS] OPERATION DIR\n"
	      "Writes a SpyreCode directory that spyre-run runs.\n"
	      "\n"
	      "operations\n"
	      "  matmul     c[m,n] = act(a[m,k] * b[k,n] + bias[n])\n"
	      "  softmax sum rowmax mean          along the rows of a[m,n]\n"
	      "  add sub mul max min              of a[m,n] and b[m,n]\n"
	      "  copy relu gelu sigmoid tanh exp ln sqrt rsqrt recip abs neg erf   of a[m,n]\n"
	      "  adds muls maxs mins              of a[m,n] and --scalar\n"
	      "  fill                             with --scalar\n"
	      "\n"
	      "  -m, -n, -k N       sizes (default 64)\n"
	      "  -i, --in FORMAT    SEN169_FP16 (default), IEEE_FP16, BFLOAT16, IEEE_FP32;\n"
	      "                     matmul: SENINT8\n"
	      "  -o, --out FORMAT   of the result (default: as --in; SENINT8: IEEE_INT32)\n"
	      "  -b, --bias         matmul: add a bias\n"
	      "  -a, --act NAME     matmul: relu, gelu, sigmoid or tanh\n"
	      "  -s, --scalar X     default 1\n"
	      "  -c, --cores MASK   cores to use (default 0xffffffff)\n"
	      "      --no-multicast matmul: each core loads for itself\n"
	      "  -h, --help         this text\n"
	      "\n"
	      "Exit status: 0 written, 1 the operation cannot be made or written, 2 wrong usage.\n",
	      out);
}

static int index_of(const char *name, const char *const *names, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	return -1;
}

static const char *const acts[] = { "none", "relu", "gelu", "sigmoid", "tanh" };
static const char *const rowops[] = { "softmax", "sum", "rowmax", "mean" };
static const char *const ewops[SPYREGEN_OPS] = {
	"copy",	 "relu",  "gelu", "sigmoid", "tanh", "exp",  "ln",   "sqrt",
	"rsqrt", "recip", "abs",  "neg",     "erf",  "adds", "muls", "maxs",
	"mins",	 "add",	  "sub",  "mul",     "max",  "min",  "fill",
};

static int format(const char *name)
{
	unsigned int i;

	for (i = 0; i < SPYRE_FORMATS; i++)
		if (!strcmp(name, spyreprog_format_name(i)))
			return (int)i;
	args_quit(2, "'%s' is no format; see --help", name);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "in", required_argument, NULL, 'i' },
						 { "out", required_argument, NULL, 'o' },
						 { "bias", no_argument, NULL, 'b' },
						 { "act", required_argument, NULL, 'a' },
						 { "scalar", required_argument, NULL, 's' },
						 { "cores", required_argument, NULL, 'c' },
						 { "no-multicast", no_argument, NULL, 'M' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	struct spyreprog_symbol sym[4] = { { 0 } };
	struct spyreprog_tensor t[4] = { { 0 } };
	struct spyreprog_meta meta = { .symbols = sym, .tensors = t };
	struct spyregen_matmul mm = { .m = 64, .n = 64, .k = 64 };
	struct spyreprog_job *job;
	struct spyreprog_err serr;
	char err[200] = "";
	float scalar = 1;
	int out = -1, c, op;
	unsigned int i, nt = 0;
	uint32_t cores = 0;
	size_t size;
	void *bin;

	while ((c = getopt_long(argc, argv, "m:n:k:i:o:ba:s:c:h", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			mm.m = (uint32_t)args_number("-m", optarg, 1, UINT32_MAX);
			break;
		case 'n':
			mm.n = (uint32_t)args_number("-n", optarg, 1, UINT32_MAX);
			break;
		case 'k':
			mm.k = (uint32_t)args_number("-k", optarg, 1, UINT32_MAX);
			break;
		case 'i':
			mm.in = (enum spyre_format)format(optarg);
			break;
		case 'o':
			out = format(optarg);
			break;
		case 'b':
			mm.bias = true;
			break;
		case 'a':
			op = index_of(optarg, acts, 5);
			if (op < 0)
				args_quit(2, "'%s' is no activation; see --help", optarg);
			mm.act = (enum spyregen_act)op;
			break;
		case 's':
			scalar = (float)args_real("--scalar", optarg, -INFINITY);
			break;
		case 'c':
			cores = (uint32_t)args_number("--cores", optarg, 1, UINT32_MAX);
			break;
		case 'M':
			mm.flags |= SPYREGEN_NO_MULTICAST;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind + 2 != argc)
		args_quit(2, "%s; see --help",
			  optind == argc     ? "OPERATION and DIR are missing" :
			  optind + 1 == argc ? "DIR, the directory to write, is missing" :
					       "only one OPERATION and one DIR can be given");
	mm.out = out >= 0		  ? (enum spyre_format)out
		 : mm.in == SPYRE_SENINT8 ? SPYRE_IEEE_INT32
					  : mm.in;
	mm.cores = cores;
#define T(nm, o, w, f, r, cl, by)                          \
	t[nt] = (struct spyreprog_tensor){ .name = nm,     \
					   .argument = nt, \
					   .output = o,    \
					   .weights = w,   \
					   .format = f,    \
					   .rows = r,      \
					   .cols = cl,     \
					   .bytes = by };  \
	nt++
#define STICKS(nm, o, f, r, cl) T(nm, o, false, f, r, cl, spyregen_bytes(f, r, cl))
	if (!strcmp(argv[optind], "matmul")) {
		job = spyregen_matmul(&mm, err);
		STICKS("a", false, mm.in, mm.m, mm.k);
		T("b", false, true, mm.in, mm.k, mm.n, spyregen_weight_bytes(mm.in, mm.k, mm.n));
		STICKS("c", true, mm.out, mm.m, mm.n);
		if (mm.bias) {
			enum spyre_format bf =
				mm.in == SPYRE_SENINT8 ? SPYRE_IEEE_INT32 : SPYRE_IEEE_FP32;

			STICKS("bias", false, bf, 1, mm.n);
		}
	} else if ((op = index_of(argv[optind], rowops, 4)) >= 0) {
		struct spyregen_row r = { (enum spyregen_rowop)op, mm.m, mm.n, mm.in, cores };

		if (mm.out != mm.in)
			args_quit(2, "operations along rows have one format: leave --out away");
		job = spyregen_row(&r, err);
		STICKS("a", false, mm.in, mm.m, mm.n);
		STICKS("out", true, mm.in, mm.m, op == SPYREGEN_SOFTMAX ? mm.n : 1);
	} else if ((op = index_of(argv[optind], ewops, SPYREGEN_OPS)) >= 0) {
		struct spyregen_elementwise e = {
			(enum spyregen_op)op, mm.m, mm.n, mm.in, mm.out, scalar, cores
		};

		job = spyregen_elementwise(&e, err);
		if (op != SPYREGEN_FILL) {
			STICKS("a", false, mm.in, mm.m, mm.n);
		}
		if (op >= SPYREGEN_ADD && op <= SPYREGEN_MIN) {
			STICKS("b", false, mm.in, mm.m, mm.n);
		}
		STICKS("out", true, mm.out, mm.m, mm.n);
	} else {
		args_quit(2, "'%s' is no operation; see --help", argv[optind]);
	}
	if (!job)
		args_quit(1, "%s", err);
	if (spyreprog_job_finish(job, &bin, &size))
		args_quit(1, "%s", spyreprog_job_error(job));
	spyreprog_job_free(job);
	for (i = 0; i < nt; i++) {
		sym[i].name = t[i].name;
		sym[i].argument = i;
	}
	meta.nsymbols = meta.ntensors = nt;
	if (spyreprog_write_spyrecode(argv[optind + 1], bin, size, &meta, &serr))
		args_quit(1, "%s", serr.text);
	free(bin);
	return 0;
}
