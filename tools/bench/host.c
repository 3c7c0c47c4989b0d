// SPDX-License-Identifier: MIT
/*
 * What the host does without the card: prints one number.
 *
 *   sgemm N               operations per second of OpenBLAS's N-cubed fp32 matrix product, on all processors
 *   copy BYTES [THREADS]  bytes per second of memcpy, the bytes divided among so many threads, 1 unless told
 */
#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS	64
#define ROUNDS		3	/* the best counts; the first only warms up */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void *allocate(size_t bytes)
{
	void *p = malloc(bytes);

	if (!p) {
		fputs("spyre-bench-host: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

static double sgemm(int n)
{
	float *m = allocate(3 * sizeof(*m) * (size_t)n * (size_t)n);
	double best = 0;
	int i;

	for (i = 0; i < 2 * n * n; i++)
		m[i] = (float)(i % 17) - 8;
	for (i = 0; i < ROUNDS; i++) {
		double t = now(), rate;

		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, m, n, m + n * n, n, 0,
			    m + 2 * n * n, n);
		rate = 2.0 * n * n * n / (now() - t);
		if (i && rate > best)
			best = rate;
	}
	free(m);
	return best;
}

struct part {
	pthread_t thread;
	char *dst;
	const char *src;
	size_t bytes;
};

static void *copy_part(void *arg)
{
	struct part *p = arg;

	memcpy(p->dst, p->src, p->bytes);
	return NULL;
}

static double copy(size_t bytes, long threads)
{
	long t;
	char *src = allocate(bytes), *dst = allocate(bytes);
	struct part part[MAX_THREADS];
	double best = 0;
	int i;

	memset(src, 1, bytes);
	memset(dst, 2, bytes);
	for (t = 0; t < threads; t++) {
		size_t from = bytes / (size_t)threads * (size_t)t;

		part[t].src = src + from;
		part[t].dst = dst + from;
		part[t].bytes = t == threads - 1 ? bytes - from : bytes / (size_t)threads;
	}
	for (i = 0; i < ROUNDS; i++) {
		double start = now(), rate;

		for (t = 1; t < threads; t++)
			if (pthread_create(&part[t].thread, NULL, copy_part, &part[t])) {
				fputs("spyre-bench-host: no thread\n", stderr);
				exit(1);
			}
		copy_part(&part[0]);
		for (t = 1; t < threads; t++)
			pthread_join(part[t].thread, NULL);
		rate = (double)bytes / (now() - start);
		if (i && rate > best)
			best = rate;
	}
	free(src);
	free(dst);
	return best;
}

int main(int argc, char **argv)
{
	long v = argc >= 3 ? atol(argv[2]) : 0, threads = argc == 4 ? atol(argv[3]) : 1;

	if (argc == 3 && !strcmp(argv[1], "sgemm") && v > 0 && v <= 16384) {
		printf("%.6g\n", sgemm((int)v));
		return 0;
	}
	if ((argc == 3 || argc == 4) && !strcmp(argv[1], "copy") && v > 0 && threads > 0 && threads <= MAX_THREADS) {
		printf("%.6g\n", copy((size_t)v, threads));
		return 0;
	}
	fputs("usage: spyre-bench-host sgemm N | copy BYTES [THREADS]\n", stderr);
	return 2;
}
