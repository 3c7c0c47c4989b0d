/* SPDX-License-Identifier: MIT */
/* What the run in the machine hands to the host: a header, then the product's matrix. */
#ifndef DEMO_H
#define DEMO_H

#include "digits.h"

#define RESULT_MAGIC	0x54455331434d4544ull	/* "DEMC1SET" */
#define RESULT_MAX	4096u			/* pictures */
#define RESULT_MATRIX	8192u			/* byte offset of the matrix */

struct result {
	uint64_t magic;
	uint32_t pictures, matrix_n;	/* 0: no product was run */
	uint64_t seed;			/* of the operands */
	double seconds;			/* product: best launch, submit to seen */
	double card_seconds;		/* product: modelled */
	uint64_t matrix_bytes;
	uint64_t hash;			/* of the matrix, FNV-1a by 64-bit words */
	uint8_t said[RESULT_MAX];	/* what the card said of each picture */
};

uint64_t result_hash(const void *data, size_t bytes);

/* Operands of the product: the same on card and host, values that DL16 holds. */
void product_operands(float *a, float *b, uint32_t n, uint64_t seed);

/* Recomputes the product in the defined order, compares every element, times OpenBLAS. 0: equal. */
int product_check(const struct result *r, const void *matrix);

void picture_write(const char *path, const struct digits *d, size_t first, size_t count,
		   const uint8_t *said);

double now(void);

#endif
