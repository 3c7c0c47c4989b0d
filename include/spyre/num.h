/* SPDX-License-Identifier: MIT */
/*
 * Conversions between fp32 and the card's storage formats: the definition, one value at a time.
 * Vector code elsewhere must agree with these for every input. A NaN always becomes one canonical
 * code.
 */
#ifndef SPYRE_NUMBERS_H
#define SPYRE_NUMBERS_H

#include <stdint.h>
#include <string.h>

#define SPYRE_DL16_NAN	0x7fffu		/* and 0xffff; overflow gives them with the sign kept */
#define SPYRE_FP32_NAN	0x7fc00000u
#define SPYRE_FP16_NAN	0x7e00u
#define SPYRE_BF16_NAN	0x7fc0u

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

/* DL16 (SEN169_FP16): exact; both NaN/infinity codes become the canonical fp32 NaN. */
static inline uint32_t spyre_dl16_to_bits(uint16_t h)
{
	uint32_t s = (uint32_t)(h & 0x8000u) << 16;
	uint32_t m = h & 0x7fffu;

	if (m == 0)
		return s;
	if (m == 0x7fffu)
		return SPYRE_FP32_NAN;
	return s | ((m << 14) + (96u << 23));
}

/*
 * Nearest, ties away from zero. Codes of exponent 0 are normal numbers, but its first one is the
 * zero: the smallest number is (1 + 2^-9) * 2^-31, and what lies between it and 0 goes to the
 * nearer of the two.
 */
static inline uint16_t spyre_bits_to_dl16(uint32_t u)
{
	uint16_t s = (uint16_t)((u >> 16) & 0x8000u);
	uint32_t m = u & 0x7fffffffu;

	if (m > 0x7f800000u)
		return SPYRE_DL16_NAN;
	if (m < (96u << 23) + (1u << 13))
		return (uint16_t)(s | (m >= (95u << 23) + (1u << 14) ? 1u : 0u));
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

/* IEEE half, subnormals included. */
static inline uint32_t spyre_fp16_to_bits(uint16_t h)
{
	uint32_t s = (uint32_t)(h & 0x8000u) << 16;
	uint32_t m = h & 0x7fffu;
	uint32_t e = 113;

	if (m > 0x7c00u)
		return SPYRE_FP32_NAN;
	if (m == 0x7c00u)
		return s | 0x7f800000u;
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

/* Nearest even; overflow gives infinity. */
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

static inline uint32_t spyre_bf16_to_bits(uint16_t h)
{
	return (h & 0x7fffu) > 0x7f80u ? SPYRE_FP32_NAN : (uint32_t)h << 16;
}

/* Nearest even. */
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

static inline int8_t spyre_int32_to_int8(int32_t v)
{
	return (int8_t)(v > 127 ? 127 : v < -128 ? -128 : v);
}

#endif
