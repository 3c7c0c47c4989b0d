// SPDX-License-Identifier: MIT
/*
 * Host references. One chain of fused multiply-adds per output element, k ascending: vectors run
 * over n and threads over rows, never over k, so the result is the same for every width and thread
 * count.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spyregen.h"

#define MR 6u	/* rows and columns held in registers */
#define NR 64u

struct part {
	const float *a, *b, *bias;
	float *c;
	enum spyregen_act act;
	uint32_t m0, m1, n, k;
};

/* Versions chosen at load time. The sanitizers' runtime is not up yet when that happens. */
#if defined(__x86_64__) && !defined(SPYREPROG_PLAIN)
#define KERNEL_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERNEL_CLONES
#endif

/* b: one column block, k rows of NR. */
#define KERNEL(rows)								\
	do {									\
		float acc[rows][NR] __attribute__((aligned(64)));		\
		uint32_t i_, j_, k_;						\
										\
		memset(acc, 0, sizeof(acc));					\
		for (k_ = 0; k_ < k; k_++) {					\
			const float *w_ = b + (size_t)k_ * NR;			\
										\
			for (i_ = 0; i_ < (rows); i_++) {			\
				float x_ = a[(size_t)i_ * lda + k_];		\
										\
				for (j_ = 0; j_ < NR; j_++)			\
					acc[i_][j_] = __builtin_fmaf(x_, w_[j_], acc[i_][j_]); \
			}							\
		}								\
		for (i_ = 0; i_ < (rows); i_++)					\
			memcpy(out + i_ * NR, acc[i_], sizeof(acc[i_]));	\
	} while (0)

KERNEL_CLONES
static void kernel(const float *a, size_t lda, const float *b, float *out, uint32_t rows,
		   uint32_t k)
{
	uint32_t i;

	if (rows == MR) {
		KERNEL(MR);
		return;
	}
	for (i = 0; i < rows; i++, a += lda, out += NR)
		KERNEL(1);
}

static float activate(float x, enum spyregen_act act)
{
	switch (act) {
	case SPYREGEN_RELU:
		/* MAX with a NaN operand gives the NaN. */
		return x != x ? x : x > 0.0f ? x : 0.0f;
	case SPYREGEN_GELU:
		return (float)(0.5 * (double)x * (1.0 + erf((double)x * 0.70710678118654752440)));
	case SPYREGEN_SIGMOID:
		return (float)(1.0 / (1.0 + exp(-(double)x)));
	case SPYREGEN_TANH:
		return (float)tanh((double)x);
	default:
		return x;
	}
}

static void *run(void *arg)
{
	const struct part *p = arg;
	float *panel = aligned_alloc(64, (size_t)(p->k ? p->k : 1) * NR * sizeof(float));
	float out[MR * NR] __attribute__((aligned(64)));
	uint32_t n0, m, i, j, w, rows;

	if (!panel)
		abort();
	for (n0 = 0; n0 < p->n; n0 += NR) {
		w = p->n - n0 < NR ? p->n - n0 : NR;
		for (i = 0; i < p->k; i++) {
			memcpy(panel + (size_t)i * NR, p->b + (size_t)i * p->n + n0,
			       w * sizeof(float));
			memset(panel + (size_t)i * NR + w, 0, (NR - w) * sizeof(float));
		}
		for (m = p->m0; m < p->m1; m += rows) {
			rows = p->m1 - m < MR ? p->m1 - m : MR;
			kernel(p->a + (size_t)m * p->k, p->k, panel, out, rows, p->k);
			for (i = 0; i < rows; i++) {
				float *c = p->c + (size_t)(m + i) * p->n + n0;

				for (j = 0; j < w; j++) {
					float x = out[i * NR + j];

					if (p->bias)
						x += p->bias[n0 + j];
					c[j] = activate(x, p->act);
				}
			}
		}
	}
	free(panel);
	return NULL;
}

void spyregen_ref_matmul(const float *a, const float *b, const float *bias, enum spyregen_act act,
			 float *c, uint32_t m, uint32_t n, uint32_t k, unsigned int threads)
{
	struct part parts[64];
	pthread_t tid[64];
	bool started[64];
	unsigned int i;

	if (!threads)
		threads = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	if (threads > 64)
		threads = 64;
	if (threads > (m + MR - 1) / MR)
		threads = (m + MR - 1) / MR;
	for (i = 0; i < threads; i++) {
		parts[i] = (struct part){ a, b, bias, c, act, 0, 0, n, k };
		parts[i].m0 = (uint32_t)((uint64_t)m * i / threads);
		parts[i].m1 = (uint32_t)((uint64_t)m * (i + 1) / threads);
		started[i] = i && !pthread_create(&tid[i], NULL, run, &parts[i]);
	}
	for (i = 0; i < threads; i++) {
		if (started[i])
			pthread_join(tid[i], NULL);
		else
			run(&parts[i]);
	}
}

void spyregen_ref_matmul_int8(const int8_t *a, const int8_t *b, const int32_t *bias, bool relu,
			      int32_t *c, uint32_t m, uint32_t n, uint32_t k)
{
	uint32_t i, j, l;

	for (i = 0; i < m; i++) {
		uint32_t *row = (uint32_t *)c + (size_t)i * n;

		for (j = 0; j < n; j++)
			row[j] = 0;
		for (l = 0; l < k; l++)
			for (j = 0; j < n; j++)
				row[j] += (uint32_t)(a[(size_t)i * k + l] * b[(size_t)l * n + j]);
		for (j = 0; j < n; j++) {
			if (bias)
				row[j] += (uint32_t)bias[j];
			if (relu && (int32_t)row[j] < 0)
				row[j] = 0;
		}
	}
}
