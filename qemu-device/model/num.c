/* SPDX-License-Identifier: MIT */
#include "num.h"

uint32_t spyre_dl16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16, m = h & 0x7fffu;

	if (m == 0)
		return sign;
	if (m == 0x7fff)
		return sign | SPYRE_F32_NAN;
	return sign | ((m << 14) + ((127u - 31u) << 23));
}

uint32_t spyre_f16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
	uint32_t exp = h >> 10 & 0x1fu, frac = h & 0x3ffu;
	unsigned int shift;

	if (exp == 0x1f)
		return sign | 0x7f800000u | frac << 13 | (frac ? 0x400000u : 0);
	if (exp)
		return sign | (exp + 127 - 15) << 23 | frac << 13;
	if (!frac)
		return sign;
	shift = (unsigned int)__builtin_clz(frac) - 21;	/* to bit 10 */
	frac = frac << shift & 0x3ffu;
	return sign | (127 - 14 - shift) << 23 | frac << 13;
}

uint32_t spyre_bf16_to_f32(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;

	return (u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : u;
}

uint16_t spyre_f32_to_dl16(uint32_t bits)
{
	uint32_t sign = bits >> 16 & 0x8000u, m = bits & 0x7fffffffu;
	int32_t code;

	if (m > 0x7f800000u)
		return SPYRE_DL16_NAN;
	if (m < SPYRE_DL16_HALF_MIN)
		return (uint16_t)sign;
	/* Adding half a unit and cutting is "ties away" on a magnitude. */
	code = (int32_t)((m + 0x2000u) >> 14) - (96 << 9);
	if (code < 1)
		code = 1;
	if (code > 0x7fff)
		code = 0x7fff;
	return (uint16_t)(sign | (uint32_t)code);
}

uint16_t spyre_f32_to_f16(uint32_t bits)
{
	uint32_t sign = bits >> 16 & 0x8000u, m = bits & 0x7fffffffu;
	uint32_t e, frac, shift, half, rest;

	if (m > 0x7f800000u)
		return SPYRE_F16_NAN;
	if (m >= 0x477ff000u)		/* 65520: the tie that rounds to infinity */
		return (uint16_t)(sign | 0x7c00u);
	if (m >= 0x38800000u) {		/* 2^-14: normal */
		m += 0xfffu + (m >> 13 & 1);
		return (uint16_t)(sign | (m - ((127u - 15u) << 23)) >> 13);
	}
	if (m < 0x33000000u)		/* under 2^-25 */
		return (uint16_t)sign;
	e = m >> 23;
	frac = (m & 0x7fffffu) | 0x800000u;
	shift = 126 - e;		/* 14 to 24 */
	rest = frac & ((1u << shift) - 1);
	half = 1u << (shift - 1);
	frac >>= shift;
	if (rest > half || (rest == half && (frac & 1)))
		frac++;
	return (uint16_t)(sign | frac);
}

uint16_t spyre_f32_to_bf16(uint32_t bits)
{
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return SPYRE_BF16_NAN;
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

int8_t spyre_i32_to_i8(int32_t v)
{
	return (int8_t)(v < -128 ? -128 : v > 127 ? 127 : v);
}

int32_t spyre_f32_to_i32(uint32_t bits)
{
	uint32_t m = bits & 0x7fffffffu, frac, rest, half, shift;
	int32_t v;

	if (m > 0x7f800000u)
		return 0;
	if (m >= 0x4f000000u)		/* 2^31 */
		return bits >> 31 ? INT32_MIN : INT32_MAX;
	if (m < 0x3f000000u)		/* under 0.5 */
		return 0;
	frac = (m & 0x7fffffu) | 0x800000u;
	if (m >> 23 >= 150) {
		v = (int32_t)(frac << ((m >> 23) - 150));
	} else {
		shift = 150 - (m >> 23);	/* 1 to 24 */
		rest = frac & ((1u << shift) - 1);
		half = 1u << (shift - 1);
		frac >>= shift;
		if (rest > half || (rest == half && (frac & 1)))
			frac++;
		v = (int32_t)frac;
	}
	return bits >> 31 ? -v : v;
}
