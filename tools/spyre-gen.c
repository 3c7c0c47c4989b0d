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
	      "  softmax sum rowmax mean rowmin argmax log_softmax layer_norm rms_norm\n"
	      "                                   along the rows of a[m,n]\n"
	      "  colsum colmax colmin colmean colargmax   down the columns of a[m,n]\n"
	      "  transpose                        of a[m,n]\n"
	      "  add sub mul max min cmpeq cmplt cmple   of a[m,n] and b[m,n]\n"
	      "  iadd isub imul imin imax and or xor shl shr sra   the same, IEEE_INT32\n"
	      "  copy                             of a[m,n], from any format to any other\n"
	      "  relu gelu sigmoid tanh exp ln sqrt rsqrt recip abs neg erf   of a[m,n]\n"
	      "  adds muls maxs mins              of a[m,n] and --scalar\n"
	      "  i2f f2i                          of a[m,n], from and to IEEE_INT32\n"
	      "  fill                             with --scalar\n"
	      "\n"
	      "  -m, -n, -k N       sizes (default 64)\n"
	      "  -i, --in FORMAT    SEN169_FP16 (default), IEEE_FP16, BFLOAT16, IEEE_FP32;\n"
	      "                     matmul: SENINT8, SENINT4, SEN143_FP8, SEN152_FP8;\n"
	      "                     IEEE_INT32; copy: also SEN18F_FP24\n"
	      "  -o, --out FORMAT   of the result (default: as --in; SENINT8, SENINT4: IEEE_INT32)\n"
	      "  -b, --bias         matmul: add a bias\n"
	      "  -a, --act NAME     matmul: relu, gelu, sigmoid or tanh\n"
	      "  -s, --scalar X     default 1; matmul of integers with --out other than IEEE_INT32:\n"
	      "                     what the sums are multiplied by before they are converted\n"
	      "  -c, --cores MASK   cores to use (default 0xffffffff)\n"
	      "      --no-multicast matmul: each core loads for itself\n"
	      "      --transposed-a, --transposed-b   matmul: a is [k,m], b is [n,k]\n"
	      "      --split-m N, --split-n N, --split-k N   matmul: cores along each (default:\n"
	      "                     chosen; k is not divided)\n"
	      "      --stretch-a WAY, --stretch-b WAY   of two operands: row (it is [1,n]),\n"
	      "                     column ([m,1]) or scalar ([1,1])\n"
	      "      --eps X        layer_norm, rms_norm: added to the variance (default 1e-5)\n"
	      "\n"
	      "A product with a transposed operand has outputs scratch_a, scratch_b: memory in which\n"
	      "that operand is laid out anew; one of scaled integers has scratch_c. A reduction of more than 512 rows has scratch.\n"
	      "\n"
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
static const char *const rowops[SPYREGEN_ROWOPS] = {
	"softmax", "sum", "rowmax", "mean", "rowmin", "argmax", "log_softmax", "layer_norm",
	"rms_norm",
};
static const char *const colops[] = { "colsum", "colmax", "colmin", "colmean", "colargmax" };
static const char *const ways[] = { "full", "row", "column", "scalar" };
static const char *const ewops[SPYREGEN_OPS] = {
	"copy",	 "relu",  "gelu", "sigmoid", "tanh", "exp",  "ln",   "sqrt",
	"rsqrt", "recip", "abs",  "neg",     "erf",  "adds", "muls", "maxs",
	"mins",	 "add",	  "sub",  "mul",     "max",  "min",  "fill",
	"cmpeq", "cmplt", "cmple", "iadd",   "isub", "imul", "imin", "imax",
	"and",	 "or",	  "xor",   "shl",    "shr",  "sra",  "i2f",  "f2i",
};

/* a, b, c and bias of a product, and scratch for a, b and c: described also of one that cannot be made. */
#define TENSORS 7

/* Options without a letter. */
enum { SPLIT_M = 256, SPLIT_N, SPLIT_K, TRANSPOSED_A, TRANSPOSED_B, STRETCH_A, STRETCH_B, EPS };

static enum spyregen_stretch stretch(const char *name)
{
	int way = index_of(name, ways, 4);

	if (way >= 0)
		return (enum spyregen_stretch)way;
	fprintf(stderr, "spyre-gen: an operand is stretched by row, column or scalar, not '%s'\n",
		name);
	exit(2);
}

static int format(const char *name)
{
	unsigned int i;

	for (i = 0; i < SPYRE_FORMATS; i++)
		if (!strcmp(name, spyreprog_format_name(i)))
			return (int)i;
	args_quit(2, "'%s' is no format; see --help", name);
}

/* An operand stretched so still has this dimension. */
static bool whole(enum spyregen_stretch s, enum spyregen_stretch keeps)
{
	return s == SPYREGEN_FULL || s == keeps;
}

/* Options of some operations only, by what they are for. */
enum {
	FOR_MATMUL = 1,
	FOR_SCALAR = 2,
	FOR_STRETCH = 4,
	FOR_EPS = 8,
};
static const struct {
	int option;
	unsigned int what;
	const char *name;
} limited[] = {
	{ 'k', FOR_MATMUL, "-k" },
	{ 'b', FOR_MATMUL, "--bias" },
	{ 'a', FOR_MATMUL, "--act" },
	{ 'M', FOR_MATMUL, "--no-multicast" },
	{ SPLIT_M, FOR_MATMUL, "--split-m" },
	{ SPLIT_N, FOR_MATMUL, "--split-n" },
	{ SPLIT_K, FOR_MATMUL, "--split-k" },
	{ TRANSPOSED_A, FOR_MATMUL, "--transposed-a" },
	{ TRANSPOSED_B, FOR_MATMUL, "--transposed-b" },
	{ 's', FOR_SCALAR, "--scalar" },
	{ STRETCH_A, FOR_STRETCH, "--stretch-a" },
	{ STRETCH_B, FOR_STRETCH, "--stretch-b" },
	{ EPS, FOR_EPS, "--eps" },
};
#define LIMITED (sizeof(limited) / sizeof(limited[0]))

/* Of the given options, a bit for each of limited[], all must be for one of these. */
static void take(const char *operation, unsigned int given, unsigned int what)
{
	unsigned int i;

	for (i = 0; i < LIMITED; i++)
		if (given & 1u << i && !(limited[i].what & what))
			args_quit(2, "%s does not take %s%s; see --help", operation, limited[i].name,
				  what & FOR_MATMUL && limited[i].what == FOR_SCALAR ?
					  " but for integers with --out other than IEEE_INT32" : "");
}

static void one_format(const struct spyregen_matmul *mm)
{
	if (mm->out != mm->in)
		args_quit(2, "this operation has one format: leave --out away");
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
						 { "split-m", required_argument, NULL, SPLIT_M },
						 { "split-n", required_argument, NULL, SPLIT_N },
						 { "split-k", required_argument, NULL, SPLIT_K },
						 { "transposed-a", no_argument, NULL, TRANSPOSED_A },
						 { "transposed-b", no_argument, NULL, TRANSPOSED_B },
						 { "stretch-a", required_argument, NULL, STRETCH_A },
						 { "stretch-b", required_argument, NULL, STRETCH_B },
						 { "eps", required_argument, NULL, EPS },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	struct spyreprog_symbol sym[TENSORS] = { { 0 } };
	struct spyreprog_tensor t[TENSORS] = { { 0 } };
	struct spyreprog_meta meta = { .symbols = sym, .tensors = t };
	struct spyregen_matmul mm = { .m = 64, .n = 64, .k = 64 };
	struct spyreprog_job *job;
	struct spyreprog_err serr;
	char err[200] = "";
	struct spyregen_elementwise ew = { .op = 0 };
	float scalar = 1, eps = 1e-5f;
	int out = -1, c, op;
	unsigned int i, nt = 0, given = 0;
	uint32_t cores = 0;
	size_t size;
	void *bin;

	while ((c = getopt_long(argc, argv, "m:n:k:i:o:ba:s:c:h", options, NULL)) != -1) {
		for (i = 0; i < LIMITED; i++)
			given |= limited[i].option == c ? 1u << i : 0;
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
		case SPLIT_M:
			mm.split_m = (uint32_t)args_number("--split-m", optarg, 0, UINT32_MAX);
			break;
		case SPLIT_N:
			mm.split_n = (uint32_t)args_number("--split-n", optarg, 0, UINT32_MAX);
			break;
		case SPLIT_K:
			mm.split_k = (uint32_t)args_number("--split-k", optarg, 0, UINT32_MAX);
			break;
		case TRANSPOSED_A:
			mm.flags |= SPYREGEN_TRANSPOSED_A;
			break;
		case TRANSPOSED_B:
			mm.flags |= SPYREGEN_TRANSPOSED_B;
			break;
		case STRETCH_A:
			ew.a = stretch(optarg);
			break;
		case STRETCH_B:
			ew.b = stretch(optarg);
			break;
		case EPS:
			eps = (float)args_real("--eps", optarg, 0);
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
		 : mm.in == SPYRE_SENINT8 || mm.in == SPYRE_SENINT4 ? SPYRE_IEEE_INT32
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
		bool ta = mm.flags & SPYREGEN_TRANSPOSED_A, tb = mm.flags & SPYREGEN_TRANSPOSED_B;
		bool ints = mm.in == SPYRE_SENINT8 || mm.in == SPYRE_SENINT4;

		take(argv[optind], given,
		     FOR_MATMUL | (ints && mm.out != SPYRE_IEEE_INT32 ? FOR_SCALAR : 0));
		if (ints && mm.out != SPYRE_IEEE_INT32)
			mm.scale = scalar;
		job = spyregen_matmul(&mm, err);
		STICKS("a", false, mm.in, ta ? mm.k : mm.m, ta ? mm.m : mm.k);
		if (tb) {
			STICKS("b", false, mm.in, mm.n, mm.k);
		} else {
			T("b", false, true, mm.in, mm.k, mm.n,
			  spyregen_weight_bytes(mm.in, mm.k, mm.n));
		}
		STICKS("c", true, mm.out, mm.m, mm.n);
		if (mm.bias) {
			enum spyre_format bf =
				ints ? SPYRE_IEEE_INT32 : SPYRE_IEEE_FP32;

			STICKS("bias", false, bf, 1, mm.n);
		}
		if (ta) {
			STICKS("scratch_a", true, mm.in, mm.m, mm.k);
		}
		if (tb) {
			T("scratch_b", true, true, mm.in, mm.k, mm.n,
			  spyregen_weight_bytes(mm.in, mm.k, mm.n));
		}
		if (mm.scale != 0) {
			STICKS("scratch_c", true, SPYRE_IEEE_INT32, mm.m, mm.n);
		}
	} else if ((op = index_of(argv[optind], rowops, SPYREGEN_ROWOPS)) >= 0) {
		struct spyregen_row r = { .op = (enum spyregen_rowop)op, .m = mm.m, .n = mm.n,
					  .fmt = mm.in, .cores = cores, .eps = eps };

		take(argv[optind], given,
		     op == SPYREGEN_LAYER_NORM || op == SPYREGEN_RMS_NORM ? FOR_EPS : 0);
		one_format(&mm);
		job = spyregen_row(&r, err);
		STICKS("a", false, mm.in, mm.m, mm.n);
		STICKS("out", true, op == SPYREGEN_ARGMAX ? SPYRE_IEEE_INT32 : mm.in, mm.m,
		       op == SPYREGEN_SOFTMAX || op >= SPYREGEN_LOG_SOFTMAX ? mm.n : 1);
	} else if ((op = index_of(argv[optind], colops, 5)) >= 0) {
		struct spyregen_column r = { (enum spyregen_column_op)op, mm.m, mm.n, mm.in, cores };
		uint64_t scratch = spyregen_column_scratch(r.op, mm.m, mm.n);

		take(argv[optind], given, 0);
		one_format(&mm);
		job = spyregen_column(&r, err);
		STICKS("a", false, mm.in, mm.m, mm.n);
		STICKS("out", true, r.op == SPYREGEN_COLUMN_ARGMAX ? SPYRE_IEEE_INT32 : mm.in, 1, mm.n);
		if (scratch) {
			T("scratch", true, false, SPYRE_IEEE_FP32, 1, scratch / 4, scratch);
		}
	} else if (!strcmp(argv[optind], "transpose")) {
		struct spyregen_relayout r = { .op = SPYREGEN_TRANSPOSE, .rows = mm.m, .cols = mm.n,
					       .fmt = mm.in, .cores = cores };

		take(argv[optind], given, 0);
		one_format(&mm);
		job = spyregen_relayout(&r, err);
		STICKS("a", false, mm.in, mm.m, mm.n);
		STICKS("out", true, mm.in, mm.n, mm.m);
	} else if ((op = index_of(argv[optind], ewops, SPYREGEN_OPS)) >= 0) {
		unsigned int nin = spyregen_operands((enum spyregen_op)op);
		bool scalars = (op >= SPYREGEN_ADDS && op <= SPYREGEN_MINS) || op == SPYREGEN_FILL;

		take(argv[optind], given, (scalars ? FOR_SCALAR : 0) | (nin == 2 ? FOR_STRETCH : 0));
		ew.op = (enum spyregen_op)op;
		ew.m = mm.m;
		ew.n = mm.n;
		ew.in = mm.in;
		ew.out = mm.out;
		ew.scalar = scalar;
		ew.cores = cores;
		job = spyregen_elementwise(&ew, err);
		if (nin) {
			STICKS("a", false, mm.in, whole(ew.a, SPYREGEN_COLUMN) ? mm.m : 1,
			       whole(ew.a, SPYREGEN_ROW) ? mm.n : 1);
		}
		if (nin > 1) {
			STICKS("b", false, mm.in, whole(ew.b, SPYREGEN_COLUMN) ? mm.m : 1,
			       whole(ew.b, SPYREGEN_ROW) ? mm.n : 1);
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
