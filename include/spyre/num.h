/* SPDX-License-Identifier: MIT */
/*
 * Conversions between fp32, int32 and the card's storage formats: the definition, one value at a
 * time. The card's vector code agrees with these for every input.
 *
 * A value of fp32 travels as its bits: no compiler touches a NaN on the way. To fp32 all formats are
 * exact. A NaN becomes quiet and keeps its sign and, if it has one, its payload, but for fp24,
 * whose NaNs become the canonical one. From fp32 a NaN of any kind gives the one canonical code
 * below, of positive sign.
 *
 *   format         fields   bias  rounding    too large           subnormals
 *   SEN169_FP16    1-6-9      31  ties away   0x7fff, signed      none: exponent 0 is normal
 *   IEEE_FP16      1-5-10     15  ties even   infinity            yes
 *   BFLOAT16       1-8-7     127  ties even   infinity            yes
 *   SEN143_FP8     1-4-3       7  ties even   0x7f (NaN), signed  yes
 *   SEN152_FP8     1-5-2      15  ties even   infinity            yes
 *   SEN18F_FP24    1-8-15    127  ties even   infinity            yes
 *   SENINT8/4      two's complement           saturates
 */
#ifndef SPYRE_NUMBERS_H
#define SPYRE_NUMBERS_H

#include <stdint.h>
#include <string.h>

#define SPYRE_FP32_NAN		0x7fc00000u	/* of fp24 too */
#define SPYRE_DL16_NAN		0x7fffu		/* infinity as well, there with either sign */
#define SPYRE_FP16_NAN		0x7e00u
#define SPYRE_BF16_NAN		0x7fc0u
#define SPYRE_FP8_143_NAN	0x7fu		/* infinity as well, there with either sign */
#define SPYRE_FP8_152_NAN	0x7eu

/* Smallest fp32 magnitude that does not round to a DL16 zero: half of (1 + 2^-9) * 2^-31. */
#define SPYRE_DL16_HALF_MIN	0x2f804000u

static inline float spyre_fp32_from_bits(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static inline uint32_t spyre_fp32_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

/* --- DL16 (SEN169_FP16) --------------------------------------------------------------------- */

/* 0x7fff and 0xffff, the only codes that are no numbers, become the quiet NaN of their sign. */
static inline uint32_t spyre_dl16_to_bits(uint16_t h)
{
	uint32_t s = (uint32_t)(h & 0x8000u) << 16;
	uint32_t m = h & 0x7fffu;

	if (m == 0)
		return s;
	if (m == 0x7fffu)
		return s | SPYRE_FP32_NAN;
	return s | ((m << 14) + (96u << 23));
}

/*
 * Codes of exponent 0 are normal numbers, but its first one is the zero: the smallest number is
 * (1 + 2^-9) * 2^-31, and what lies between it and 0 goes to the nearer of the two. The largest is
 * 2^33 - 2^24.
 */
static inline uint16_t spyre_bits_to_dl16(uint32_t u)
{
	uint16_t s = (uint16_t)((u >> 16) & 0x8000u);
	uint32_t m = u & 0x7fffffffu;

	if (m > 0x7f800000u)
		return SPYRE_DL16_NAN;
	if (m < (96u << 23) + (1u << 13))
		return (uint16_t)(s | (m >= SPYRE_DL16_HALF_MIN ? 1u : 0u));
	m = ((m + 0x2000u) >> 14) - (96u << 9);
	return (uint16_t)(s | (m < 0x7fffu ? m : 0x7fffu));
}

static inline float spyre_dl16_to_fp32(uint16_t h)
{
	return spyre_fp32_from_bits(spyre_dl16_to_bits(h));
}

static inline uint16_t spyre_fp32_to_dl16(float f)
{
	return spyre_bits_to_dl16(spyre_fp32_bits(f));
}

/* --- IEEE half ------------------------------------------------------------------------------ */

static inline uint32_t spyre_fp16_to_bits(uint16_t h)
{
	uint32_t s = (uint32_t)(h & 0x8000u) << 16;
	uint32_t m = h & 0x7fffu;
	uint32_t e = 113;

	if (m >= 0x7c00u)
		return s | 0x7f800000u | (m & 0x3ffu) << 13 | (m > 0x7c00u ? 0x400000u : 0u);
	if (m >= 0x0400u)
		return s | ((m << 13) + (112u << 23));
	if (m == 0)
		return s;
	while (!(m & 0x0400u)) {
		m <<= 1;
		e--;
	}
	return s | e << 23 | (m & 0x03ffu) << 13;
}

static inline uint16_t spyre_bits_to_fp16(uint32_t u)
{
	uint32_t s = (u >> 16) & 0x8000u;
	uint32_t m = u & 0x7fffffffu;
	uint32_t sh, v;

	if (m > 0x7f800000u)
		return SPYRE_FP16_NAN;
	if (m >= 0x47800000u)
		return (uint16_t)(s | 0x7c00u);
	if (m >= 0x38800000u) {
		m -= 112u << 23;
		return (uint16_t)(s | ((m + 0xfffu + ((m >> 13) & 1u)) >> 13));
	}
	if (m < 0x33000000u)
		return (uint16_t)s;
	sh = 126u - (m >> 23);
	v = (m & 0x7fffffu) | 0x800000u;
	return (uint16_t)(s | ((v + (1u << (sh - 1)) - 1u + ((v >> sh) & 1u)) >> sh));
}

static inline float spyre_fp16_to_fp32(uint16_t h)
{
	return spyre_fp32_from_bits(spyre_fp16_to_bits(h));
}

static inline uint16_t spyre_fp32_to_fp16(float f)
{
	return spyre_bits_to_fp16(spyre_fp32_bits(f));
}

/* --- bfloat16 ------------------------------------------------------------------------------- */

static inline uint32_t spyre_bf16_to_bits(uint16_t h)
{
	return (uint32_t)h << 16 | ((h & 0x7fffu) > 0x7f80u ? 0x400000u : 0u);
}

static inline uint16_t spyre_bits_to_bf16(uint32_t u)
{
	if ((u & 0x7fffffffu) > 0x7f800000u)
		return SPYRE_BF16_NAN;
	return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

static inline float spyre_bf16_to_fp32(uint16_t h)
{
	return spyre_fp32_from_bits(spyre_bf16_to_bits(h));
}

static inline uint16_t spyre_fp32_to_bf16(float f)
{
	return spyre_bits_to_bf16(spyre_fp32_bits(f));
}

/* --- fp8 ------------------------------------------------------------------------------------ */

/* 1-4-3, as "e4m3fn": the largest number is 448; there is no infinity; 0x7f and 0xff are NaN. */
static inline uint32_t spyre_fp8_143_to_bits(uint8_t h)
{
	uint32_t s = (uint32_t)(h & 0x80u) << 24;
	uint32_t m = h & 0x7fu;
	uint32_t e = 121;

	if (m == 0x7fu)
		return s | SPYRE_FP32_NAN;
	if (m >= 0x08u)
		return s | ((m << 20) + (120u << 23));
	if (m == 0)
		return s;
	while (!(m & 0x08u)) {
		m <<= 1;
		e--;
	}
	return s | e << 23 | (m & 0x07u) << 20;
}

/* 464 is the last that rounds to 448; beyond, and infinity: NaN with the sign kept. */
static inline uint8_t spyre_bits_to_fp8_143(uint32_t u)
{
	uint32_t s = (u >> 24) & 0x80u;
	uint32_t m = u & 0x7fffffffu;
	uint32_t sh, v;

	if (m > 0x7f800000u)
		return SPYRE_FP8_143_NAN;
	if (m > 0x43e80000u)
		return (uint8_t)(s | 0x7fu);
	if (m >= 0x3c800000u) {
		m -= 120u << 23;
		return (uint8_t)(s | ((m + 0x7ffffu + ((m >> 20) & 1u)) >> 20));
	}
	if (m < 0x3a800000u)
		return (uint8_t)s;
	sh = 141u - (m >> 23);
	v = (m & 0x7fffffu) | 0x800000u;
	return (uint8_t)(s | ((v + (1u << (sh - 1)) - 1u + ((v >> sh) & 1u)) >> sh));
}

static inline float spyre_fp8_143_to_fp32(uint8_t h)
{
	return spyre_fp32_from_bits(spyre_fp8_143_to_bits(h));
}

static inline uint8_t spyre_fp32_to_fp8_143(float f)
{
	return spyre_bits_to_fp8_143(spyre_fp32_bits(f));
}

/* 1-5-2: the upper half of IEEE half. The largest number is 57344. */
static inline uint32_t spyre_fp8_152_to_bits(uint8_t h)
{
	return spyre_fp16_to_bits((uint16_t)(h << 8));
}

static inline uint8_t spyre_bits_to_fp8_152(uint32_t u)
{
	uint32_t s = (u >> 24) & 0x80u;
	uint32_t m = u & 0x7fffffffu;
	uint32_t sh, v;

	if (m > 0x7f800000u)
		return SPYRE_FP8_152_NAN;
	if (m >= 0x47800000u)
		return (uint8_t)(s | 0x7cu);
	if (m >= 0x38800000u) {
		m -= 112u << 23;
		return (uint8_t)(s | ((m + 0xfffffu + ((m >> 21) & 1u)) >> 21));
	}
	if (m < 0x37000000u)
		return (uint8_t)s;
	sh = 134u - (m >> 23);
	v = (m & 0x7fffffu) | 0x800000u;
	return (uint8_t)(s | ((v + (1u << (sh - 1)) - 1u + ((v >> sh) & 1u)) >> sh));
}

static inline float spyre_fp8_152_to_fp32(uint8_t h)
{
	return spyre_fp32_from_bits(spyre_fp8_152_to_bits(h));
}

static inline uint8_t spyre_fp32_to_fp8_152(float f)
{
	return spyre_bits_to_fp8_152(spyre_fp32_bits(f));
}

/* --- fp24 (SEN18F_FP24) --------------------------------------------------------------------- */

/* The upper 24 of 32 bits; what the lower 8 hold is ignored. */
static inline uint32_t spyre_fp24_to_bits(uint32_t w)
{
	w &= 0xffffff00u;
	return (w & 0x7fffffffu) > 0x7f800000u ? SPYRE_FP32_NAN : w;
}

/* The lower 8 bits become 0. */
static inline uint32_t spyre_bits_to_fp24(uint32_t u)
{
	if ((u & 0x7fffffffu) > 0x7f800000u)
		return SPYRE_FP32_NAN;
	return (u + 0x7fu + ((u >> 8) & 1u)) & 0xffffff00u;
}

static inline float spyre_fp24_to_fp32(uint32_t w)
{
	return spyre_fp32_from_bits(spyre_fp24_to_bits(w));
}

static inline uint32_t spyre_fp32_to_fp24(float f)
{
	return spyre_bits_to_fp24(spyre_fp32_bits(f));
}

/* --- Integers ------------------------------------------------------------------------------- */

static inline int8_t spyre_int32_to_int8(int32_t v)
{
	return (int8_t)(v > 127 ? 127 : v < -128 ? -128 : v);
}

/* In the lower half of a byte, the upper one being 0. */
static inline uint8_t spyre_int32_to_int4(int32_t v)
{
	return (uint8_t)(v > 7 ? 7 : v < -8 ? 8 : v & 15);
}

/* The upper half of the byte is ignored. */
static inline int32_t spyre_int4_to_int32(uint8_t h)
{
	return (h & 15) - ((h & 8) << 1);
}

/* Nearest, ties to even; saturates; a NaN gives 0. */
static inline int32_t spyre_bits_to_int32(uint32_t u)
{
	uint32_t m = u & 0x7fffffffu;
	uint32_t e = m >> 23, sh, v;

	if (m > 0x7f800000u)
		return 0;
	if (e >= 158)
		return u >> 31 ? INT32_MIN : INT32_MAX;
	if (e < 126)
		return 0;
	v = (m & 0x7fffffu) | 0x800000u;
	if (e >= 150) {
		v <<= e - 150;
	} else {
		sh = 150 - e;
		v = (v + (1u << (sh - 1)) - 1u + ((v >> sh) & 1u)) >> sh;
	}
	return u >> 31 ? -(int32_t)v : (int32_t)v;
}

/* Nearest, ties to even: what a conversion in C does by default. */
static inline uint32_t spyre_int32_to_bits(int32_t v)
{
	return spyre_fp32_bits((float)v);
}

#endif
