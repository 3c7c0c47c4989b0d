// SPDX-License-Identifier: MIT
/*
 * What OpenBLAS makes of an n-cubed fp32 matrix product here: prints GFLOP/s, the best of the given number
 * of products after one that warms up. All threads OpenBLAS takes by itself.
 */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, rounds = argc > 2 ? atoi(argv[2]) : 1, i;
	double best = 0;
	float *m;

	if (n < 1 || n > 16384 || rounds < 1) {
		fputs("usage: spyre-bench-blas N ROUNDS\n", stderr);
		return 2;
	}
	m = malloc(3 * sizeof(*m) * (size_t)n * (size_t)n);
	if (!m) {
		fputs("spyre-bench-blas: out of memory\n", stderr);
		return 1;
	}
	for (i = 0; i < 2 * n * n; i++)
		m[i] = (float)(i % 17) - 8;
	for (i = 0; i <= rounds; i++) {
		double t = now(), rate;

		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, m, n, m + n * n, n, 0,
			    m + 2 * n * n, n);
		rate = 2e-9 * n * n * n / (now() - t);
		if (i && rate > best)
			best = rate;
	}
	printf("%.3f\n", best);
	free(m);
	return 0;
}
