// SPDX-License-Identifier: MIT
/*
 * Speed of the SoC alone: whole products against OpenBLAS (loaded if the host has it) and against the PT
 * kernel's own rate; PT kernels of all formats; elementwise addition against memcpy; launches; what the timing
 * pass costs against the job's arithmetic. One JSON object a line, medians of interleaved rounds.
 * bench_soc [threads [rounds [timing-pass]]]: the last word is for that part alone.
 */
#include <dlfcn.h>
#include <time.h>

#include "pt.h"
#include "soc_int.h"
#include "spyregen.h"
#include "test_soc_env.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + t.tv_nsec * 1e-9;
}

/* Of this thread: what else runs on the host does not count. */
static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + t.tv_nsec * 1e-9;
}

static int cmp(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

static double median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), cmp);
	return n & 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void print(const char *id, double v, const char *unit, const char *against, double w, bool higher)
{
	printf("{\"figure\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"against\": \"%s\", \"against_value\": %.6g, "
	       "\"ratio\": %.4g, \"better\": \"%s\"}\n", id, v, unit, against, w, w ? v / w : 0,
	       higher ? "higher" : "lower");
	fflush(stdout);
}

typedef void sgemm_fn(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

#define ROUNDS_MAX 51u

static double launch(struct env *e, const uint64_t *syms, unsigned int n)
{
	double t = now();

	if (env_run(e, syms, n) != SPYRE_OK) {
		fprintf(stderr, "bench_soc: status %u code %u\n", e->rb.status, e->rb.err_code);
		exit(1);
	}
	return now() - t;
}

static void load(struct env *e, struct spyreprog_job *job, const char *err)
{
	if (!job) {
		fprintf(stderr, "bench_soc: %s\n", err);
		exit(1);
	}
	env_load_job(e, job);
}

static void fill(struct env *e, unsigned int s, enum spyre_format fmt, uint64_t bytes)
{
	uint8_t *p = env_map(e, s, bytes);
	uint64_t i;

	for (i = 0; i < bytes; i += 2) {
		/* DL16 between 1/4 and 4; any byte is an int8. */
		uint16_t v = (uint16_t)(fmt == SPYRE_SENINT8 ? i * 40503u : 0x3a00 + (i * 40503u >> 4) % 0x800);

		memcpy(p + i, &v, 2);
	}
}

static void matmul(unsigned int threads, unsigned int rounds, enum spyre_format in, const char *id)
{
	struct spyregen_matmul mm = {
		.m = 2048, .n = 2048, .k = 2048, .in = in,
		.out = in == SPYRE_SENINT8 ? SPYRE_IEEE_INT32 : SPYRE_SEN169_FP16,
	};
	uint64_t syms[3] = { 0, ENV_SEGMENT(1), ENV_SEGMENT(2) };
	double ours[ROUNDS_MAX], theirs[ROUNDS_MAX], kernel[ROUNDS_MAX], flops = 2.0 * 2048 * 2048 * 2048;
	float *a = NULL, *b = NULL, *c = NULL;
	void *lib = dlopen("libopenblas.so.0", RTLD_NOW), *p;
	sgemm_fn *sgemm = lib ? (sgemm_fn *)dlsym(lib, "cblas_sgemm") : NULL;
	void (*set)(int) = lib ? (void (*)(int))dlsym(lib, "openblas_set_num_threads") : NULL;
	struct pt_tile *tile;
	uint32_t *rows;
	unsigned int i, k;
	struct env e;
	char err[200];

	env_init(&e, threads);
	load(&e, spyregen_matmul(&mm, err), err);
	fill(&e, 0, in, spyregen_bytes(in, 2048, 2048));
	fill(&e, 1, in, spyregen_weight_bytes(in, 2048, 2048));
	env_map(&e, 2, spyregen_bytes(mm.out, 2048, 2048));
	if (posix_memalign(&p, 64, sizeof(*tile)))
		exit(1);
	tile = p;
	if (posix_memalign(&p, 64, 128 * 256))
		exit(1);
	rows = p;
	memset(rows, 0, 128 * 256);
	if (sgemm) {
		if (set)
			set((int)threads);
		a = calloc(2048 * 2048, 4);
		b = calloc(2048 * 2048, 4);
		c = calloc(2048 * 2048, 4);
		for (i = 0; i < 2048 * 2048; i++)
			a[i] = b[i] = (float)(i % 17) / 16;
	}
	launch(&e, syms, 3);
	for (i = 0; i < rounds; i++) {
		double s;

		ours[i] = flops / launch(&e, syms, 3) / 1e9;
		s = now();
		if (sgemm)
			sgemm(101, 111, 111, 2048, 2048, 2048, 1, a, 2048, b, 2048, 0, c, 2048);
		theirs[i] = flops / (now() - s) / 1e9;
		spyre_pt_ops_best()->load(tile, e.seg[1], in);
		s = now();
		for (k = 0; k < 2000; k++)
			spyre_pt_ops_best()->mm(rows, e.seg[0], 128, tile, in, true);
		kernel[i] = 2000 * 2.0 * 128 * 64 * (in == SPYRE_SENINT8 ? 128 : 64) / (now() - s) / 1e9;
	}
	if (sgemm)
		print(id, median(ours, rounds), "GOP/s", "OpenBLAS sgemm, same threads", median(theirs, rounds), true);
	snprintf(err, sizeof(err), "%s-kernel", id);
	print(err, median(ours, rounds), "GOP/s", "PT kernel on one thread, times threads",
	      median(kernel, rounds) * threads, true);
	free(a);
	free(b);
	free(c);
	free(tile);
	free(rows);
	env_free(&e);
}

/*
 * PT's kernels by themselves, on one thread: a tile load and 128 words, as a product has them, so that what it costs to
 * widen a format is in it. Against the kernel of DL16.
 */
static void kernels(unsigned int rounds)
{
	static const struct {
		const char *id;
		enum spyre_format fmt;
		unsigned int k;
	} list[] = {
		{ "soc-pt-dl16", SPYRE_SEN169_FP16, 64 }, { "soc-pt-fp16", SPYRE_IEEE_FP16, 64 },
		{ "soc-pt-bf16", SPYRE_BFLOAT16, 64 }, { "soc-pt-fp8-143", SPYRE_SEN143_FP8, 128 },
		{ "soc-pt-fp8-152", SPYRE_SEN152_FP8, 128 }, { "soc-pt-int8", SPYRE_SENINT8, 128 },
		{ "soc-pt-int4", SPYRE_SENINT4, 256 },
	};
	const struct pt_ops *pt = spyre_pt_ops_best();
	double v[sizeof(list) / sizeof(list[0])][ROUNDS_MAX], s;
	uint8_t *words;
	uint32_t *rows;
	struct pt_tile *tile;
	unsigned int i, f, k;
	void *p[3];

	for (i = 0; i < 3; i++) {
		static const size_t bytes[3] = { sizeof(*tile), 128 * 256, 192 * 128 };

		if (posix_memalign(&p[i], 64, bytes[i]))
			exit(1);
		memset(p[i], 0, bytes[i]);
	}
	tile = p[0];
	rows = p[1];
	words = p[2];
	/* Numbers in every format, subnormal ones of fp8 among them, but none whose products fp32 has no normal for. */
	for (i = 0; i < 192 * 128; i++)
		words[i] = (uint8_t)((i * 40503u >> 4 & 0x13) | (i & 1) << 5);
	for (i = 0; i < rounds; i++) {
		for (f = 0; f < sizeof(list) / sizeof(list[0]); f++) {
			s = cpu();
			for (k = 0; k < 300; k++) {
				pt->load(tile, words, list[f].fmt);
				pt->mm(rows, words + 64 * 128, 128, tile, list[f].fmt, k % 16);
			}
			v[f][i] = 300 * 2.0 * 128 * 64 * list[f].k / (cpu() - s) / 1e9;
		}
	}
	s = median(v[0], rounds);
	for (f = 0; f < sizeof(list) / sizeof(list[0]); f++)
		print(list[f].id, median(v[f], rounds), "GOP/s", "the same in DL16", s, true);
	for (i = 0; i < 3; i++)
		free(p[i]);
}

static void add(unsigned int threads, unsigned int rounds)
{
	struct spyregen_elementwise ew = {
		.op = SPYREGEN_ADD, .m = 8192, .n = 4096, .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16,
	};
	uint64_t bytes = spyregen_bytes(ew.in, ew.m, ew.n), syms[3] = { 0, ENV_SEGMENT(1), ENV_SEGMENT(2) };
	double ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
	unsigned int i;
	struct env e;
	char err[200];

	env_init(&e, threads);
	load(&e, spyregen_elementwise(&ew, err), err);
	fill(&e, 0, ew.in, bytes);
	fill(&e, 1, ew.in, bytes);
	env_map(&e, 2, bytes);
	launch(&e, syms, 3);
	for (i = 0; i < rounds; i++) {
		double s;

		ours[i] = (double)bytes / launch(&e, syms, 3) / 1e9;
		s = now();
		memcpy(e.seg[2], e.seg[0], bytes);
		theirs[i] = (double)bytes / (now() - s) / 1e9;
	}
	print("soc-add-64m", median(ours, rounds), "GB/s of result", "memcpy of as many bytes", median(theirs, rounds), true);
	env_free(&e);
}

static void ktir(unsigned int threads, unsigned int rounds)
{
	struct spyregen_matmul mm = {
		.m = 64, .n = 8192, .k = 2048, .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16,
	};
	uint64_t syms[3] = { 0, ENV_SEGMENT(1), ENV_SEGMENT(2) };
	double v[ROUNDS_MAX];
	unsigned int i;
	struct env e;
	char err[200];

	env_init(&e, threads);
	load(&e, spyregen_matmul(&mm, err), err);
	fill(&e, 0, mm.in, spyregen_bytes(mm.in, mm.m, mm.k));
	fill(&e, 1, mm.in, spyregen_weight_bytes(mm.in, mm.k, mm.n));
	env_map(&e, 2, spyregen_bytes(mm.out, mm.m, mm.n));
	launch(&e, syms, 3);
	for (i = 0; i < rounds; i++)
		v[i] = launch(&e, syms, 3);
	print("soc-kernel-ktir", median(v, rounds), "s", "", 0, false);
	env_free(&e);
}

/* --- The timing pass ------------------------------------------------------------------------ */

#define EDGE	2048u

struct pass {
	const char *id;
	struct spyreprog_job *(*job)(char *err);
	uint64_t bytes[3];	/* of a, b and c, or of a and the result */
};

static struct spyreprog_job *job_matmul(char *err)
{
	return spyregen_matmul(&(struct spyregen_matmul){ .m = EDGE, .n = EDGE, .k = EDGE }, err);
}

static struct spyreprog_job *job_ktir(char *err)
{
	return spyregen_matmul(&(struct spyregen_matmul){ .m = 64, .n = 8192, .k = 2048 }, err);
}

static struct spyreprog_job *job_add(char *err)
{
	return spyregen_elementwise(&(struct spyregen_elementwise){ .op = SPYREGEN_ADD, .m = 8192, .n = 4096 }, err);
}

static struct spyreprog_job *job_softmax(char *err)
{
	return spyregen_row(&(struct spyregen_row){ .op = SPYREGEN_SOFTMAX, .m = EDGE, .n = EDGE }, err);
}

static struct spyreprog_job *job_transpose(char *err)
{
	return spyregen_relayout(&(struct spyregen_relayout){ .op = SPYREGEN_TRANSPOSE, .rows = EDGE, .cols = EDGE }, err);
}

/* All are of SEN169_FP16: two bytes an element. */
static const struct pass passes[] = {
	{ "matmul-dl16", job_matmul, { 2 * EDGE * EDGE, 2 * EDGE * EDGE, 2 * EDGE * EDGE } },
	{ "kernel-ktir", job_ktir, { 2 * 64 * 2048, 2 * 2048 * 8192, 2 * 64 * 8192 } },
	{ "add-64m", job_add, { 64 << 20, 64 << 20, 64 << 20 } },
	{ "softmax", job_softmax, { 2 * EDGE * EDGE, 2 * EDGE * EDGE } },
	{ "transpose", job_transpose, { 2 * EDGE * EDGE, 2 * EDGE * EDGE } },
};

static void must(bool ok, const struct env *e, const char *id)
{
	if (ok)
		return;
	fprintf(stderr, "bench_soc: %s: status %u code %u\n", id, e->rb.status, e->rb.err_code);
	exit(1);
}

/*
 * In each round the card knows nothing of the job when it is prepared first. Then the job is prepared again, as a
 * second launch does, and the pass runs once more by itself: prepare() fetches, checks and decodes too.
 */
static void timing_pass(unsigned int threads, unsigned int rounds, const struct pass *p)
{
	const uint64_t syms[3] = { 0, ENV_SEGMENT(1), ENV_SEGMENT(2) };
	double first[ROUNDS_MAX], again[ROUNDS_MAX], pass[ROUNDS_MAX], work[ROUNDS_MAX], ratio[ROUNDS_MAX], t;
	struct spyre_soc_job job = { .bootaddr = ENV_SEGMENT(7) };
	struct counts *counts;
	unsigned int i, s;
	struct env e;
	char err[200] = "";

	env_init(&e, threads);
	load(&e, p->job(err), err);
	for (s = 0; s < 3; s++)
		if (p->bytes[s])
			fill(&e, s, SPYRE_SEN169_FP16, p->bytes[s]);
	job.nsymbols = p->bytes[2] ? 3 : 2;
	job.mem = &e.mem;
	job.symbols = ENV_SEGMENT(7) + e.len[7] - ENV_SYMBOLS;
	/* Pages and caches are warm from here on. */
	launch(&e, syms, job.nsymbols);
	for (i = 0; i < rounds; i++) {
		spyre_soc_reset(e.soc, 0xffffffff);
		t = now();
		must(spyre_soc_prepare(e.soc, &job, &e.time, &e.rb), &e, p->id);
		first[i] = now() - t;
		t = now();
		must(spyre_soc_execute(e.soc, &e.rb), &e, p->id);
		work[i] = now() - t;
		t = now();
		must(spyre_soc_prepare(e.soc, &job, &e.time, &e.rb), &e, p->id);
		again[i] = now() - t;
		t = now();
		must(spyre_time_job(e.soc, &e.time, &counts, &e.rb), &e, p->id);
		pass[i] = now() - t;
		free(counts);
		must(spyre_soc_execute(e.soc, &e.rb), &e, p->id);
		ratio[i] = pass[i] / work[i];
	}
	printf("{\"figure\": \"timing-pass-%s\", \"value\": %.4g, \"unit\": \"s\", \"against\": \"the job's arithmetic\", "
	       "\"against_value\": %.4g, \"ratio\": %.4g, \"better\": \"lower\", \"first_launch\": %.4g, "
	       "\"next_launch\": %.4g}\n", p->id, median(pass, rounds), median(work, rounds), median(ratio, rounds),
	       median(first, rounds), median(again, rounds));
	fflush(stdout);
	env_free(&e);
}

static void small(unsigned int threads)
{
	struct spyreprog_job *j = spyreprog_job_new();
	int p = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
	double t;
	struct env e;
	unsigned int i;

	env_init(&e, threads);
	spyreprog_job_unit(j, 0, SPYRE_UNIT_L3LU, 0, p);
	env_load_job(&e, j);
	launch(&e, NULL, 0);
	t = now();
	for (i = 0; i < 20000; i++)
		launch(&e, NULL, 0);
	print("soc-launch", (now() - t) / 20000, "s", "", 0, false);
	env_free(&e);
}

int main(int argc, char **argv)
{
	unsigned int threads = argc > 1 ? (unsigned int)atoi(argv[1]) : 2;
	unsigned int rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 5, i;

	if (!threads || !rounds || rounds > ROUNDS_MAX || (argc > 3 && strcmp(argv[3], "timing-pass"))) {
		fprintf(stderr, "usage: bench_soc [threads [rounds, up to %u [timing-pass]]]\n", ROUNDS_MAX);
		return 2;
	}
	for (i = 0; i < sizeof(passes) / sizeof(passes[0]); i++)
		timing_pass(threads, rounds, &passes[i]);
	if (argc > 3)
		return 0;
	/* They would slow the other side down. */
	unsetenv("OPENBLAS_CORETYPE");
	unsetenv("OPENBLAS_L2_SIZE");
	matmul(threads, rounds, SPYRE_SEN169_FP16, "soc-matmul-dl16");
	matmul(threads, rounds, SPYRE_SENINT8, "soc-matmul-int8");
	kernels(rounds);
	add(threads, rounds);
	ktir(threads, rounds);
	small(threads);
	return 0;
}
