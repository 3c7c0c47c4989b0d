// SPDX-License-Identifier: MIT
/* The host's side of the big product: what it should be, and how fast OpenBLAS is here. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <spyregen.h>

#include "demo.h"

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t result_hash(const void *data, size_t bytes)
{
	const uint64_t *p = data;
	uint64_t h = 0xcbf29ce484222325ull;
	size_t i;

	for (i = 0; i < bytes / 8; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

void product_operands(float *a, float *b, uint32_t n, uint64_t seed)
{
	size_t i, count = (size_t)n * n;
	uint64_t s = seed;

	/* Multiples of 1/256 below 1: DL16 holds them exactly, and sums of products do round. */
	for (i = 0; i < count; i++) {
		s = s * 6364136223846793005ull + 1442695040888963407ull;
		a[i] = (float)((int32_t)(s >> 55) - 256) * 0x1p-8f;
		b[i] = (float)((int32_t)(s >> 46 & 0x1ff) - 256) * 0x1p-8f;
	}
}

static double blas_seconds(const float *a, const float *b, float *c, uint32_t n)
{
	void (*gemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
		     int lda, const float *b, int ldb, float beta, float *c, int ldc);
	void *lib = dlopen("libopenblas.so.0", RTLD_NOW);
	double best = 0, t;
	int i, m = (int)n;

	if (!lib)
		return 0;
	*(void **)&gemm = dlsym(lib, "cblas_sgemm");
	if (!gemm)
		return 0;
	for (i = 0; i < 4; i++) {
		t = now();
		gemm(101, 111, 111, m, m, m, 1.0f, a, m, b, m, 0.0f, c, m);
		t = now() - t;
		/* The first one also starts the threads. */
		if (i && (i == 1 || t < best))
			best = t;
	}
	return best;
}

int product_check(const struct result *r, const void *matrix)
{
	uint32_t n = r->matrix_n;
	size_t count = (size_t)n * n, i, wrong = 0, first = 0;
	float *a = malloc(count * 4), *b = malloc(count * 4), *want = malloc(count * 4),
	      *got = malloc(count * 4);
	double flop = 2.0 * n * n * n, t, blas;

	if (!a || !b || !want || !got)
		die("out of memory");
	product_operands(a, b, n, r->seed);
	spyregen_unpack(got, n, matrix, SPYRE_SEN169_FP16, n, n);
	t = now();
	spyregen_ref_matmul(a, b, NULL, SPYREGEN_NONE, want, n, n, n, 0);
	t = now() - t;
	spyregen_round(want, count, SPYRE_SEN169_FP16);
	for (i = 0; i < count; i++) {
		if (memcmp(&got[i], &want[i], sizeof(float))) {
			if (!wrong++)
				first = i;
		}
	}
	if (wrong)
		printf("  %zu of %zu elements differ from the reference; the first, row %zu column "
		       "%zu, is %a, not %a\n",
		       wrong, count, first / n, first % n, (double)got[first], (double)want[first]);
	else
		printf("  all %zu elements equal the host's reference bit for bit (defined order, "
		       "%.2f s)\n",
		       count, t);
	printf("  card, in the machine   %7.1f GFLOP/s   (%.3f s a launch; modelled %.3f ms, %.1f "
	       "TFLOP/s)\n",
	       flop / r->seconds * 1e-9, r->seconds, r->card_seconds * 1e3,
	       flop / r->card_seconds * 1e-12);
	blas = blas_seconds(a, b, want, n);
	if (blas > 0)
		printf("  OpenBLAS sgemm, host   %7.1f GFLOP/s   (%.3f s, %ld threads); ratio "
		       "%.2f\n",
		       flop / blas * 1e-9, blas, sysconf(_SC_NPROCESSORS_ONLN), blas / r->seconds);
	else
		printf("  OpenBLAS is not installed: nothing to compare the speed with\n");
	free(a);
	free(b);
	free(want);
	free(got);
	return wrong != 0;
}
