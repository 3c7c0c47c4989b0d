/* SPDX-License-Identifier: MIT */
/*
 * The PT's arithmetic: weight tiles and p[n] += a[k] * W[k][n]. fp32 sums are one chain of fused
 * multiply-adds per output, k ascending; integers add modulo 2^32. Every variant gives the same bits (of
 * NaNs: the same after canonicalisation, which happens when rows leave PT).
 */
#ifndef SPYRE_PT_H
#define SPYRE_PT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spyre/isa.h>

#define PT_ROWS		128u
#define PT_TILES	8u

/*
 * A tile as its variant wants it; floating-point weights in fp32. 16-bit formats: 64 k, word k of the load being
 * row k. 8-bit formats: 128 k, word w of the load holding rows 2w (bytes 0 to 63) and 2w + 1. 4-bit: 256 k, rows 4w
 * (bytes 0 to 31, the even column in the low half of a byte) to 4w + 3.
 */
struct pt_tile {
	union {
		float f[128][64];
		int16_t w16[128][64][2];	/* pairs of k */
		int8_t w8[64][64][4];		/* quads of k */
	} __attribute__((aligned(64)));
	int32_t bias[64];			/* variant's correction per column */
};

struct pt_ops {
	const char *name;
	uint32_t formats;	/* mask of enum spyre_format that it computes with */
	/* 64 words. */
	void (*load)(struct pt_tile *t, const uint8_t *words, enum spyre_format fmt);
	/* n words of activations onto (onto) or into n rows of 64 lanes. rows is 64-byte aligned. */
	void (*mm)(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t, enum spyre_format fmt,
		   bool onto);
	/*
	 * The same for floating-point formats with a DL16 accumulator: a chunk is 64 k of a word, its sum begins at 0 and
	 * is rounded to DL16 after each fused multiply-add, k ascending; chunk sums then add to the row in fp32.
	 */
	void (*mm_dl16)(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t,
			enum spyre_format fmt, bool onto);
};

extern const struct pt_ops spyre_pt_ops_plain, spyre_pt_ops_avx2, spyre_pt_ops_avx512, spyre_pt_ops_vnni;

const struct pt_ops *spyre_pt_ops_best(void);
const struct pt_ops *const *spyre_pt_ops_all(void);

#endif
