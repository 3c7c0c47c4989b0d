/* SPDX-License-Identifier: MIT */
/*
 * Vector operations of PE and SFP and the format conversions, over runs of words of 64 lanes. One source
 * (vec_impl.h) is compiled for several vector widths; all give the same bits, which are those of spyre/num.h
 * for the conversions.
 */
#ifndef SPYRE_VEC_H
#define SPYRE_VEC_H

#include <stddef.h>
#include <stdint.h>

#include <spyre/isa.h>

/*
 * n times 64 lanes. A stride of 64 walks over consecutive lane words, 0 uses (or overwrites) the same one
 * each time; the times follow one another, so that dst may also be a source. imm is the instruction's; of LMASK it
 * is first | count << 16.
 */
typedef void vec_op(uint32_t *dst, size_t sd, const uint32_t *b, size_t sb, const uint32_t *c, size_t sc,
		    const uint32_t *d, size_t sd2, size_t n, uint32_t imm);

/*
 * n times 64 lanes of a 16-bit format straight from words to words, what widen, op and narrow would do one after the
 * other, without their lanes going through memory. Bit k of packed: src[k] is n words of the format; else it is 64
 * lanes, the same each time. At least one of the operation's operands is packed. dst may be one of those, else it
 * overlaps none.
 */
typedef void vec_stream(void *dst, const void *const src[3], unsigned int packed, enum spyre_format fmt, size_t n);

struct vec_ops {
	const char *name;
	/*
	 * n lanes (multiple of a word's) between words at any alignment and fp32, or int32 for the integer formats. By
	 * enum spyre_format; NULL: IEEE_FP32 and IEEE_INT32, which are lanes already.
	 */
	void (*widen[SPYRE_FORMATS])(uint32_t *lanes, const void *src, size_t n);
	void (*narrow[SPYRE_FORMATS])(void *dst, const uint32_t *lanes, size_t n);
	void (*canon)(void *dst, const uint32_t *lanes, size_t n);	/* fp32: NaNs become the canonical one */
	vec_op *op[256];	/* by enum spyre_op; NULL: not a vector operation */
	vec_stream *stream[256];	/* by enum spyre_op; NULL: only by way of lanes */
};

extern const struct vec_ops spyre_vec_ops_plain, spyre_vec_ops_avx2, spyre_vec_ops_avx512;

/* The widest this host runs. */
const struct vec_ops *spyre_vec_ops_best(void);
/* All this host runs, NULL-terminated; for tests. */
const struct vec_ops *const *spyre_vec_ops_all(void);

#endif
