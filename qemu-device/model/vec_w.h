/* SPDX-License-Identifier: MIT */
/*
 * The few vector primitives that differ by width; everything else is GCC's vector arithmetic. VW lanes of
 * 32 bits. No operation here depends on contraction (-ffp-contract=off) or on a fast-math flag.
 */
#ifndef SPYRE_VEC_W_H
#define SPYRE_VEC_W_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <spyre/num.h>


#if defined(__AVX512F__) && defined(__AVX512BW__)
#include <immintrin.h>
#define VW 16
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>
#define VW 8
#else
#define VW 4
#endif

typedef float vf __attribute__((vector_size(VW * 4)));
typedef int32_t vi __attribute__((vector_size(VW * 4)));
typedef uint32_t vu __attribute__((vector_size(VW * 4)));
typedef uint16_t vh __attribute__((vector_size(VW * 2)));
typedef uint8_t vb __attribute__((vector_size(VW)));

#define VINL static inline __attribute__((always_inline))

VINL vu v_ld(const void *p)
{
	vu v;

	memcpy(&v, p, sizeof(v));
	return v;
}

VINL void v_st(void *p, vu v)
{
	memcpy(p, &v, sizeof(v));
}

VINL vu v_u(uint32_t x)
{
	return x - (vu){ 0 };
}

VINL vf v_f(float x)
{
	return x - (vf){ 0 };
}

/* Masks are all ones or all zeros per lane. */
VINL vu v_sel(vi mask, vu a, vu b)
{
#if VW == 16
	return (vu)_mm512_ternarylogic_epi32((__m512i)mask, (__m512i)a, (__m512i)b, 0xca);
#else
	return ((vu)mask & a) | (~(vu)mask & b);
#endif
}

VINL vf v_self(vi mask, vf a, vf b)
{
	return (vf)v_sel(mask, (vu)a, (vu)b);
}

VINL vf v_fma(vf a, vf b, vf c)
{
#if VW == 16
	return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif VW == 8
	return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
	vf r;
	int i;

	for (i = 0; i < VW; i++)
		r[i] = fmaf(a[i], b[i], c[i]);
	return r;
#endif
}

VINL vf v_sqrt(vf a)
{
#if VW == 16
	return (vf)_mm512_sqrt_ps((__m512)a);
#elif VW == 8
	return (vf)_mm256_sqrt_ps((__m256)a);
#else
	vf r;
	int i;

	for (i = 0; i < VW; i++)
		r[i] = sqrtf(a[i]);
	return r;
#endif
}

VINL vu v_abs(vu a)
{
	return a & 0x7fffffffu;
}

VINL vi v_isnan(vu a)
{
	return (vi)(v_abs(a) > 0x7f800000u);
}

/* Which NaN an operation gives is not the same on all hosts: make it the canonical one. */
VINL vu v_canon(vf a)
{
	return v_sel((vi)(a != a), v_u(SPYRE_FP32_NAN), (vu)a);
}

VINL vu v_widen_dl16(vu h)
{
#if VW == 16
	__m512i x = (__m512i)h, m = _mm512_and_si512(x, _mm512_set1_epi32(0x7fff)), r;

	r = _mm512_maskz_add_epi32(_mm512_test_epi32_mask(m, m), _mm512_slli_epi32(m, 14),
				   _mm512_set1_epi32(96 << 23));
	r = _mm512_mask_mov_epi32(r, _mm512_cmpeq_epi32_mask(m, _mm512_set1_epi32(0x7fff)),
				  _mm512_set1_epi32(SPYRE_FP32_NAN));
	/* r | (x << 16 & sign) */
	return (vu)_mm512_ternarylogic_epi32(r, _mm512_slli_epi32(x, 16),
					     _mm512_set1_epi32(INT32_MIN), 0xf8);
#else
	vu m = h & 0x7fffu, r = (m << 14) + (96u << 23);

	r = v_sel((vi)(m == 0), v_u(0), r);
	r = v_sel((vi)(m == 0x7fffu), v_u(SPYRE_FP32_NAN), r);
	return r | (h & 0x8000u) << 16;
#endif
}

VINL vu v_narrow_dl16(vu x)
{
#if VW == 16
	__m512i b = (__m512i)x, m = _mm512_and_si512(b, _mm512_set1_epi32(0x7fffffff)), r;

	r = _mm512_srli_epi32(_mm512_add_epi32(m, _mm512_set1_epi32(0x2000)), 14);
	r = _mm512_sub_epi32(r, _mm512_set1_epi32(96 << 9));
	r = _mm512_max_epi32(r, _mm512_set1_epi32(1));
	r = _mm512_maskz_min_epi32(_mm512_cmpge_epu32_mask(m, _mm512_set1_epi32(SPYRE_DL16_HALF_MIN)), r,
				   _mm512_set1_epi32(0x7fff));
	/* r | (x >> 16 & sign) */
	r = _mm512_ternarylogic_epi32(r, _mm512_srli_epi32(b, 16), _mm512_set1_epi32(0x8000), 0xf8);
	return (vu)_mm512_mask_mov_epi32(r, _mm512_cmpgt_epu32_mask(m, _mm512_set1_epi32(0x7f800000)),
					 _mm512_set1_epi32(SPYRE_DL16_NAN));
#else
	vu m = v_abs(x);
	vi code = (vi)((m + 0x2000u) >> 14) - (96 << 9);
	vu r;

	code = (vi)v_sel(code < 1, v_u(1), (vu)code);
	code = (vi)v_sel(code > 0x7fff, v_u(0x7fff), (vu)code);
	r = v_sel((vi)(m < SPYRE_DL16_HALF_MIN), v_u(0), (vu)code) | (x >> 16 & 0x8000u);
	return v_sel((vi)(m > 0x7f800000u), v_u(SPYRE_DL16_NAN), r);
#endif
}

#if VW == 16
/*
 * 32 DL16 codes and their lanes at once, most steps on 16-bit halves. x[0] and x[1] hold lanes in the order in which
 * 32-bit lanes are packed: groups of four in turn, which v_pair() makes of lanes that are in order. NaNs are quiet
 * ones on both sides, with any fraction. nan: whether there may be any, else not looked for.
 */
VINL __mmask32 v_nan_dl16_pair(const void *p)
{
	__m512i m = _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi16(0x7fff));

	return _mm512_cmpeq_epi16_mask(m, _mm512_set1_epi16(0x7fff));
}

VINL void v_widen_dl16_pair(const void *p, vu x[2], bool nan)
{
	__m512i h = _mm512_loadu_si512(p), m = _mm512_and_si512(h, _mm512_set1_epi16(0x7fff)), hi, lo;

	hi = _mm512_maskz_add_epi16(_mm512_test_epi16_mask(m, m), _mm512_srli_epi16(m, 2),
				    _mm512_set1_epi16(96 << 7));
	if (nan)
		hi = _mm512_mask_mov_epi16(hi, _mm512_cmpeq_epi16_mask(m, _mm512_set1_epi16(0x7fff)),
					   _mm512_set1_epi16(SPYRE_FP32_NAN >> 16));
	/* hi | (h & sign) */
	hi = _mm512_ternarylogic_epi32(hi, h, _mm512_set1_epi16(INT16_MIN), 0xf8);
	lo = _mm512_slli_epi16(h, 14);
	x[0] = (vu)_mm512_unpacklo_epi16(lo, hi);
	x[1] = (vu)_mm512_unpackhi_epi16(lo, hi);
}

VINL void v_narrow_dl16_pair(void *p, vu x0, vu x1, bool nan)
{
	const __m512i abs = _mm512_set1_epi32(0x7fffffff), round = _mm512_set1_epi32(0x2000 - (96 << 23));
	const __m512i half = _mm512_set1_epi32(SPYRE_DL16_HALF_MIN);
	__m512i a = (__m512i)x0, b = (__m512i)x1, m = _mm512_and_si512(a, abs), n = _mm512_and_si512(b, abs), r, h;

	/* Saturates at the largest code. */
	r = _mm512_packs_epi32(_mm512_srai_epi32(_mm512_add_epi32(m, round), 14),
			       _mm512_srai_epi32(_mm512_add_epi32(n, round), 14));
	h = _mm512_packs_epi32(_mm512_sub_epi32(m, half), _mm512_sub_epi32(n, half));
	r = _mm512_maskz_max_epi16(_mm512_cmpge_epi16_mask(h, _mm512_setzero_si512()), r, _mm512_set1_epi16(1));
	h = _mm512_packs_epi32(_mm512_srai_epi32(a, 16), _mm512_srai_epi32(b, 16));
	r = _mm512_ternarylogic_epi32(r, h, _mm512_set1_epi16(INT16_MIN), 0xf8);
	if (nan) {
		h = _mm512_and_si512(h, _mm512_set1_epi16(0x7fff));
		r = _mm512_mask_mov_epi16(r, _mm512_cmpge_epi16_mask(h, _mm512_set1_epi16(SPYRE_FP32_NAN >> 16)),
					  _mm512_set1_epi16(SPYRE_DL16_NAN));
	}
	_mm512_storeu_si512(p, r);
}

VINL void v_pair(const uint32_t *lanes, vu x[2])
{
	__m512i a = _mm512_loadu_si512(lanes), b = _mm512_loadu_si512(lanes + VW);

	x[0] = (vu)_mm512_shuffle_i32x4(a, b, 0x88);
	x[1] = (vu)_mm512_shuffle_i32x4(a, b, 0xdd);
}
#endif

VINL vu v_widen_bf16(vu h)
{
	vu u = h << 16;

	return u | ((vu)v_isnan(u) & 0x400000u);
}

VINL vu v_narrow_bf16(vu x)
{
	return v_sel(v_isnan(x), v_u(SPYRE_BF16_NAN), (x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}

VINL vu v_ld16(const void *p)
{
#if VW == 16
	/* GCC 12 makes two halves of the conversion and puts them together again. */
	return (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256(p));
#else
	vh h;

	memcpy(&h, p, sizeof(h));
	return __builtin_convertvector(h, vu);
#endif
}

VINL void v_st16(void *p, vu v)
{
	vh h;

#if VW == 16
	__m256i r = _mm512_cvtepi32_epi16((__m512i)v);

	memcpy(&h, &r, sizeof(h));
#else
	h = __builtin_convertvector(v, vh);
#endif
	memcpy(p, &h, sizeof(h));
}

VINL vu v_widen_f16(const void *p)
{
#if VW == 16
	return (vu)_mm512_cvtph_ps(_mm256_loadu_si256(p));
#elif VW == 8
	return (vu)_mm256_cvtph_ps(_mm_loadu_si128(p));
#else
	uint16_t h[VW];
	vu r;
	int i;

	memcpy(h, p, sizeof(h));
	for (i = 0; i < VW; i++)
		r[i] = spyre_fp16_to_bits(h[i]);
	return r;
#endif
}

VINL void v_narrow_f16(void *p, vu x)
{
#if VW == 16
	_mm256_storeu_si256(p, _mm512_cvtps_ph((__m512)v_canon((vf)x), _MM_FROUND_TO_NEAREST_INT));
#elif VW == 8
	_mm_storeu_si128(p, _mm256_cvtps_ph((__m256)v_canon((vf)x), _MM_FROUND_TO_NEAREST_INT));
#else
	uint16_t h[VW];
	int i;

	for (i = 0; i < VW; i++)
		h[i] = spyre_bits_to_fp16(x[i]);
	memcpy(p, h, sizeof(h));
#endif
}

/* VW bytes */
VINL void v_st8(void *p, vu v)
{
	vb b;

#if VW == 16
	__m128i r = _mm512_cvtepi32_epi8((__m512i)v);

	memcpy(&b, &r, sizeof(b));
#else
	b = __builtin_convertvector(v, vb);
#endif
	memcpy(p, &b, sizeof(b));
}

/*
 * IEEE halves whose upper bytes are the codes: the same numbers, and for SEN143_FP8 with its exponent moved a
 * bit down, 2^-8 times those. The conversion of halves takes subnormals at full speed.
 */
VINL vu v_widen_fp8_152(const uint8_t *p)
{
#if VW == 16
	__m256i h = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)p));

	return (vu)_mm512_cvtph_ps(_mm256_slli_epi16(h, 8));
#elif VW == 8
	__m128i h = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)p));

	return (vu)_mm256_cvtph_ps(_mm_slli_epi16(h, 8));
#else
	vu r;
	int i;

	for (i = 0; i < VW; i++)
		r[i] = spyre_fp8_152_to_bits(p[i]);
	return r;
#endif
}

VINL vu v_widen_fp8_143(const uint8_t *p)
{
#if VW == 16
	__m256i b = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)p));
	__m256i m = _mm256_and_si256(b, _mm256_set1_epi16(0x7f));
	__mmask16 nan = _mm256_cmpeq_epi16_mask(m, _mm256_set1_epi16(0x7f));
	__m256i h = _mm256_and_si256(_mm256_slli_epi16(b, 7), _mm256_set1_epi16((int16_t)0xbf80));
	__m512 r = _mm512_mul_ps(_mm512_cvtph_ps(h), _mm512_set1_ps(256.0f));

	/* The sign, then the NaN's bits: code 0x7f would be 480. */
	return (vu)_mm512_mask_ternarylogic_epi32((__m512i)r, nan, _mm512_set1_epi32(INT32_MIN),
						  _mm512_set1_epi32(SPYRE_FP32_NAN), 0xea);
#elif VW == 8
	__m128i b = _mm_cvtepi8_epi16(_mm_loadl_epi64((const void *)p));
	__m128i m = _mm_and_si128(b, _mm_set1_epi16(0x7f));
	__m256i nan = _mm256_cvtepi16_epi32(_mm_cmpeq_epi16(m, _mm_set1_epi16(0x7f)));
	__m128i h = _mm_and_si128(_mm_slli_epi16(b, 7), _mm_set1_epi16((int16_t)0xbf80));
	__m256 r = _mm256_mul_ps(_mm256_cvtph_ps(h), _mm256_set1_ps(256.0f));

	/* The sign, then the NaN's bits: code 0x7f would be 480. */
	return v_sel((vi)nan, ((vu)r & 0x80000000u) | SPYRE_FP32_NAN, (vu)r);
#else
	vu r;
	int i;

	for (i = 0; i < VW; i++)
		r[i] = spyre_fp8_143_to_bits(p[i]);
	return r;
#endif
}

/*
 * Numbers below the smallest normal one: adding a power of two whose last place is the format's smallest step
 * rounds to it, nearest even, and leaves the code in the fraction.
 */
VINL vu v_narrow_fp8_143(vu x)
{
	vu m = v_abs(x), r, sub;

	sub = (vu)((vf)v_sel((vi)(m < 0x3c800000u), m, v_u(0)) + v_f(0x1p14f)) - v_u(0x46800000);
	r = (m - (120u << 23) + 0x7ffffu + (m >> 20 & 1u)) >> 20;
	r = v_sel((vi)(r > 0x7fu), v_u(0x7f), r);
	r = v_sel((vi)(m < 0x3c800000u), sub, r) | (x >> 24 & 0x80u);
	return v_sel((vi)(m > 0x7f800000u), v_u(SPYRE_FP8_143_NAN), r);
}

VINL vu v_narrow_fp8_152(vu x)
{
	vu m = v_abs(x), r, sub;

	sub = (vu)((vf)v_sel((vi)(m < 0x38800000u), m, v_u(0)) + v_f(0x1p7f)) - v_u(0x43000000);
	r = (m - (112u << 23) + 0xfffffu + (m >> 21 & 1u)) >> 21;
	r = v_sel((vi)(r > 0x7cu), v_u(0x7c), r);
	r = v_sel((vi)(m < 0x38800000u), sub, r) | (x >> 24 & 0x80u);
	return v_sel((vi)(m > 0x7f800000u), v_u(SPYRE_FP8_152_NAN), r);
}

VINL vu v_widen_fp24(vu w)
{
	vu u = w & 0xffffff00u;

	return v_sel(v_isnan(u), v_u(SPYRE_FP32_NAN), u);
}

VINL vu v_narrow_fp24(vu x)
{
	return v_sel(v_isnan(x), v_u(SPYRE_FP32_NAN), (x + 0x7fu + (x >> 8 & 1u)) & 0xffffff00u);
}

#endif
