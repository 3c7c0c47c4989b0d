/* SPDX-License-Identifier: MIT */
/*
 * Number formats, one value at a time: the definition that every vector variant (vec.h) equals bit for
 * bit. Values of 32-bit formats are passed as their bits, so that no compiler touches a NaN on the way.
 */
#ifndef SPYRE_NUM_H
#define SPYRE_NUM_H

#include <stdint.h>
#include <string.h>

/* The NaN that leaves PT, PE and SFP. */
#define SPYRE_F32_NAN	0x7fc00000u
#define SPYRE_F16_NAN	0x7e00u
#define SPYRE_BF16_NAN	0x7fc0u
#define SPYRE_DL16_NAN	0x7fffu

static inline float spyre_f32(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline uint32_t spyre_f32_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

/*
 * To fp32: exact. A NaN becomes quiet and keeps its sign and payload; DL16's 0x7fff and 0xffff become the
 * quiet NaN of their sign.
 */
uint32_t spyre_dl16_to_f32(uint16_t h);
uint32_t spyre_f16_to_f32(uint16_t h);
uint32_t spyre_bf16_to_f32(uint16_t h);

/*
 * From fp32. IEEE formats round to nearest even, overflow to infinity and keep subnormals. DL16 rounds to
 * the nearest code, ties away from zero: magnitudes under half the smallest code's (0x0001, 2^-31 * (1 +
 * 2^-9)) give the zero of their sign, from there up to the next tie 0x0001. Magnitudes that round beyond
 * 0x7ffe (2^33 - 2^24), infinities included, give 0x7fff or 0xffff. A NaN gives the canonical NaN.
 */
uint16_t spyre_f32_to_dl16(uint32_t bits);
uint16_t spyre_f32_to_f16(uint32_t bits);
uint16_t spyre_f32_to_bf16(uint32_t bits);

/* Saturating narrowing of integers. */
int8_t spyre_i32_to_i8(int32_t v);

/* fp32 to int32: nearest even, saturating, NaN gives 0. */
int32_t spyre_f32_to_i32(uint32_t bits);

/* Smallest fp32 magnitude that does not round to a DL16 zero. */
#define SPYRE_DL16_HALF_MIN	0x2f804000u

#endif
