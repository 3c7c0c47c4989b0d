// SPDX-License-Identifier: MIT
/*
 * Generated operators on the SoC against plain C loops: processor time of all threads and the ratio,
 * one JSON object a line, medians of interleaved rounds. Other load on the machine hardly counts.
 * bench_gen [threads [rounds [ID...]]]
 */
#include <math.h>
#include <time.h>

#include <spyre/num.h>

#include "spyregen.h"
#include "test_soc_env.h"

#define M	2048u
#define N	1024u
#define ROUNDS_MAX	51u

static float *x, *y, *z;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + t.tv_nsec * 1e-9;
}

static int cmp(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return p < q ? -1 : p > q;
}

/* --- Hosts ---------------------------------------------------------------------------------- */

static void host_transpose(void)
{
	const uint16_t *a = (const uint16_t *)x;
	uint16_t *o = (uint16_t *)z;
	uint32_t i, j, k, l;

	for (i = 0; i < M; i += 32)
		for (j = 0; j < N; j += 32)
			for (k = j; k < j + 32; k++)
				for (l = i; l < i + 32; l++)
					o[(size_t)k * M + l] = a[(size_t)l * N + k];
}

static void host_softmax(void)
{
	uint32_t i, j;

	for (i = 0; i < M; i++) {
		const float *a = x + (size_t)i * N;
		float *o = z + (size_t)i * N, max = a[0], sum = 0;

		for (j = 1; j < N; j++)
			max = a[j] > max ? a[j] : max;
		for (j = 0; j < N; j++)
			sum += o[j] = expf(a[j] - max);
		for (j = 0; j < N; j++)
			o[j] /= sum;
	}
}

static void host_norm(void)
{
	uint32_t i, j;

	for (i = 0; i < M; i++) {
		const float *a = x + (size_t)i * N;
		float *o = z + (size_t)i * N, sum = 0, square = 0;

		for (j = 0; j < N; j++)
			sum += a[j];
		sum /= N;
		for (j = 0; j < N; j++)
			square += (a[j] - sum) * (a[j] - sum);
		square = 1 / sqrtf(square / N + 1e-5f);
		for (j = 0; j < N; j++)
			o[j] = (a[j] - sum) * square;
	}
}

static void host_colsum(void)
{
	uint32_t i, j;

	memset(z, 0, N * sizeof(*z));
	for (i = 0; i < M; i++)
		for (j = 0; j < N; j++)
			z[j] += x[(size_t)i * N + j];
}

static void host_add_row(void)
{
	uint32_t i, j;

	for (i = 0; i < M; i++)
		for (j = 0; j < N; j++)
			z[(size_t)i * N + j] = x[(size_t)i * N + j] + y[j];
}

static void host_relu(void)
{
	size_t i;

	for (i = 0; i < (size_t)M * N; i++)
		z[i] = x[i] > 0 ? x[i] : 0;
}

static void host_gelu(void)
{
	size_t i;

	for (i = 0; i < (size_t)M * N; i++)
		z[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678f));
}

/* SEN143_FP8 to SEN169_FP16 by a table; IEEE_FP32 to SENINT8. */
static void host_from_fp8(void)
{
	static uint16_t table[256];
	const uint8_t *a = (const uint8_t *)x;
	uint16_t *o = (uint16_t *)z;
	size_t i;

	for (i = 0; i < 256; i++)
		table[i] = spyre_fp32_to_dl16(spyre_fp8_143_to_fp32((uint8_t)i));
	for (i = 0; i < (size_t)M * N; i++)
		o[i] = table[a[i]];
}

static void host_to_int8(void)
{
	int8_t *o = (int8_t *)z;
	size_t i;

	for (i = 0; i < (size_t)M * N; i++) {
		float v = x[i] > 127 ? 127 : x[i] < -128 ? -128 : x[i];

		o[i] = (int8_t)(v + 0x1.8p23f - 0x1.8p23f);
	}
}

#define BATCH	64u
#define EDGE	128u

static void host_batch(void)
{
	uint32_t b, i, j, k;

	for (b = 0; b < BATCH; b++) {
		const float *p = x + (size_t)b * EDGE * EDGE, *q = y + (size_t)b * EDGE * EDGE;
		float *o = z + (size_t)b * EDGE * EDGE;

		memset(o, 0, EDGE * EDGE * sizeof(*o));
		for (i = 0; i < EDGE; i++)
			for (k = 0; k < EDGE; k++)
				for (j = 0; j < EDGE; j++)
					o[i * EDGE + j] += p[i * EDGE + k] * q[k * EDGE + j];
	}
}

#define LONG	8192u

static void host_long(void)
{
	uint32_t i, j, k;

	memset(z, 0, 16 * 128 * sizeof(*z));
	for (i = 0; i < 16; i++)
		for (k = 0; k < LONG; k++)
			for (j = 0; j < 128; j++)
				z[i * 128 + j] += x[(size_t)i * LONG + k] * y[(size_t)k * 128 + j];
}

/* --- Jobs ----------------------------------------------------------------------------------- */

static struct spyreprog_job *job_of(unsigned int i, char *err)
{
	const enum spyre_format f = SPYRE_IEEE_FP32;

	switch (i) {
	case 0:
		return spyregen_relayout(&(struct spyregen_relayout){
			.op = SPYREGEN_TRANSPOSE, .rows = M, .cols = N }, err);
	case 1:
	case 2:
		return spyregen_row(&(struct spyregen_row){
			.op = i == 1 ? SPYREGEN_SOFTMAX : SPYREGEN_LAYER_NORM, .m = M, .n = N,
			.fmt = f, .eps = 1e-5f }, err);
	case 3:
		return spyregen_column(&(struct spyregen_column){
			.op = SPYREGEN_COLUMN_SUM, .m = M, .n = N, .fmt = f }, err);
	case 4:
	case 5:
	case 6:
		return spyregen_elementwise(&(struct spyregen_elementwise){
			.op = i == 4 ? SPYREGEN_ADD : i == 5 ? SPYREGEN_OP_RELU : SPYREGEN_OP_GELU,
			.m = M, .n = N, .in = f, .out = f,
			.b = i == 4 ? SPYREGEN_ROW : SPYREGEN_FULL }, err);
	case 11:
	case 12:
		return spyregen_elementwise(&(struct spyregen_elementwise){
			.op = SPYREGEN_COPY, .m = M, .n = N, .in = i == 11 ? SPYRE_SEN143_FP8 : f,
			.out = i == 11 ? SPYRE_SEN169_FP16 : SPYRE_SENINT8 }, err);
	case 7:
	case 8:
		return spyregen_matmul(&(struct spyregen_matmul){
			.m = EDGE, .n = EDGE, .k = EDGE, .batch = BATCH,
			.flags = i == 8 ? SPYREGEN_TRANSPOSED_B : 0 }, err);
	default:
		return spyregen_matmul(&(struct spyregen_matmul){
			.m = 16, .n = 128, .k = LONG, .split_k = i == 9 ? 16 : 1 }, err);
	}
}

static const struct {
	const char *id;
	void (*host)(void);
	unsigned int symbols;
} cases[] = {
	{ "gen-transpose", host_transpose, 2 },	      { "gen-softmax", host_softmax, 2 },
	{ "gen-layer-norm", host_norm, 2 },	      { "gen-column-sum", host_colsum, 3 },
	{ "gen-add-row", host_add_row, 3 },	      { "gen-relu", host_relu, 2 },
	{ "gen-gelu", host_gelu, 2 },		      { "gen-matmul-batch", host_batch, 3 },
	{ "gen-matmul-batch-bt", host_batch, 4 },     { "gen-matmul-split-k", host_long, 3 },
	{ "gen-matmul-one-chain", host_long, 3 },     { "gen-cast-from-fp8", host_from_fp8, 2 },
	{ "gen-cast-to-int8", host_to_int8, 2 },
};

static bool wanted(const char *id, char **ids)
{
	if (!*ids)
		return true;
	for (; *ids; ids++)
		if (!strcmp(*ids, id))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	unsigned int threads = argc > 1 ? (unsigned int)atoi(argv[1]) : 2;
	unsigned int rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 5, i, r, s;
	const uint64_t bytes = (uint64_t)M * N * 4;

	if (!threads || !rounds || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_gen [threads [rounds, up to %u [ID...]]]\n", ROUNDS_MAX);
		return 2;
	}
	x = malloc(bytes);
	y = malloc(bytes);
	z = malloc(bytes);
	if (!x || !y || !z)
		return 1;
	for (i = 0; i < M * N; i++)
		x[i] = y[i] = (float)(i * 40503u >> 4 & 0xfff) / 1024 - 2;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t syms[4] = { 0, ENV_SEGMENT(1), ENV_SEGMENT(2), ENV_SEGMENT(3) };
		double ours[ROUNDS_MAX], host[ROUNDS_MAX], t;
		struct spyreprog_job *job;
		char err[200] = "";
		struct env e;

		if (argc > 3 && !wanted(cases[i].id, argv + 3))
			continue;
		env_init(&e, threads);
		job = job_of(i, err);
		if (!job) {
			fprintf(stderr, "bench_gen: %s: %s\n", cases[i].id, err);
			return 1;
		}
		env_load_job(&e, job);
		for (s = 0; s < 4; s++)
			memcpy(env_map(&e, s, bytes), x, bytes);
		for (r = 0; r <= rounds; r++) {
			t = now();
			if (env_run(&e, syms, cases[i].symbols) != SPYRE_OK) {
				fprintf(stderr, "bench_gen: %s: status %u code %u\n", cases[i].id,
					e.rb.status, e.rb.err_code);
				return 1;
			}
			/* The first round fills caches and remembers the job's time. */
			if (r)
				ours[r - 1] = now() - t;
			t = now();
			cases[i].host();
			if (r)
				host[r - 1] = now() - t;
		}
		qsort(ours, rounds, sizeof(*ours), cmp);
		qsort(host, rounds, sizeof(*host), cmp);
		printf("{\"figure\": \"%s\", \"value\": %.4g, \"unit\": \"ms\", \"against\": \"plain C"
		       "\", \"against_value\": %.4g, \"ratio\": %.3g, \"better\": \"lower\"}\n",
		       cases[i].id, ours[rounds / 2] * 1e3, host[rounds / 2] * 1e3,
		       ours[rounds / 2] / host[rounds / 2]);
		fflush(stdout);
		env_free(&e);
	}
	free(x);
	free(y);
	free(z);
	return 0;
}
