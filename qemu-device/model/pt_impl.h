/* SPDX-License-Identifier: MIT */
/*
 * Body of the PT kernels for one vector width; the includer defines PT_OPS, PT_NAME and the block:
 * MR rows times NV vectors of columns held in registers. Vectors run across columns, never across k.
 */
#include "pt.h"
#include "vec_w.h"

static bool is_fp8(enum spyre_format fmt)
{
	return fmt == SPYRE_SEN143_FP8 || fmt == SPYRE_SEN152_FP8;
}

/* 64 lanes: a word, or half of one of an 8-bit format. */
VINL void widen_lanes(float *dst, const uint8_t *src, enum spyre_format fmt)
{
	const uint16_t *h = (const uint16_t *)src;
	unsigned int i;

	switch (fmt) {
	case SPYRE_SEN169_FP16:
		for (i = 0; i < 64; i += VW)
			v_st(dst + i, v_widen_dl16(v_ld16(h + i)));
		break;
	case SPYRE_IEEE_FP16:
		for (i = 0; i < 64; i += VW)
			v_st(dst + i, v_widen_f16(h + i));
		break;
	case SPYRE_SEN143_FP8:
		for (i = 0; i < 64; i += VW)
			v_st(dst + i, v_widen_fp8_143(src + i));
		break;
	case SPYRE_SEN152_FP8:
		for (i = 0; i < 64; i += VW)
			v_st(dst + i, v_widen_fp8_152(src + i));
		break;
	default:
		for (i = 0; i < 64; i += VW)
			v_st(dst + i, v_widen_bf16(v_ld16(h + i)));
		break;
	}
}

/* R rows, NV vectors: a[r][k] * w[k][column], k ascending. */
#define KERNEL(NAME, R) \
static __attribute__((noinline)) void NAME(float *rows, const float *a, const float *w, bool onto) \
{ \
	vf acc[R][NV]; \
	unsigned int r, v, k; \
	_Pragma("GCC unroll 16") \
	for (r = 0; r < R; r++) \
		_Pragma("GCC unroll 8") \
		for (v = 0; v < NV; v++) \
			acc[r][v] = onto ? (vf)v_ld(rows + r * 64 + v * VW) : (vf){ 0 }; \
	for (k = 0; k < 64; k++, w += 64) { \
		vf b[NV]; \
		_Pragma("GCC unroll 8") \
		for (v = 0; v < NV; v++) \
			b[v] = (vf)v_ld(w + v * VW); \
		_Pragma("GCC unroll 16") \
		for (r = 0; r < R; r++) { \
			vf x = v_f(a[r * 64 + k]); \
			_Pragma("GCC unroll 8") \
			for (v = 0; v < NV; v++) \
				acc[r][v] = v_fma(x, b[v], acc[r][v]); \
		} \
	} \
	_Pragma("GCC unroll 16") \
	for (r = 0; r < R; r++) \
		_Pragma("GCC unroll 8") \
		for (v = 0; v < NV; v++) \
			v_st(rows + r * 64 + v * VW, (vu)acc[r][v]); \
}
KERNEL(kernel_mr, MR)
KERNEL(kernel_2, 2)
KERNEL(kernel_1, 1)

/* 64 k of each word, those from byte .src on, onto 64 rows of the tile. */
static void mm_chunk(float *p, const uint8_t *src, size_t n, const float (*w)[64], enum spyre_format fmt, bool onto)
{
	float a[MR][64] __attribute__((aligned(64)));
	unsigned int r, col, m;

	while (n) {
		m = n >= MR ? MR : n >= 2 ? 2 : 1;
		for (r = 0; r < m; r++) {
			widen_lanes(a[r], src + r * 128, fmt);
			/* The next block comes from LX, often from beyond L1, while this one computes. */
			__builtin_prefetch(src + (r + MR) * 128);
			__builtin_prefetch(src + (r + MR) * 128 + 64);
		}
		for (col = 0; col < 64; col += NV * VW) {
			if (m == MR)
				kernel_mr(p + col, a[0], &w[0][col], onto);
			else if (m == 2)
				kernel_2(p + col, a[0], &w[0][col], onto);
			else
				kernel_1(p + col, a[0], &w[0][col], onto);
		}
		p += m * 64;
		src += m * 128;
		n -= m;
	}
}

/* Half a tile for all rows, then the other: k ascends for each row, and 16 KB of weights stay in L1. */
static void mm_float(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t,
		     enum spyre_format fmt, bool onto)
{
	mm_chunk((float *)rows, words, n, &t->f[0], fmt, onto);
	if (is_fp8(fmt))
		mm_chunk((float *)rows, words + 64, n, &t->f[64], fmt, true);
}

static void mm_dl16(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t,
		    enum spyre_format fmt, bool onto)
{
	float a[64] __attribute__((aligned(64)));
	unsigned int chunks = is_fp8(fmt) ? 2 : 1, c, v, k;

	for (; n--; rows += 64, words += 128) {
		for (c = 0; c < chunks; c++) {
			widen_lanes(a, words + c * 64, fmt);
			for (v = 0; v < 64; v += VW) {
				vf sum = v_f(0.0f);

				for (k = 0; k < 64; k++) {
					sum = v_fma(v_f(a[k]), (vf)v_ld(&t->f[c * 64 + k][v]), sum);
					sum = (vf)v_widen_dl16(v_narrow_dl16((vu)sum));
				}
				v_st(rows + v, onto || c ? (vu)((vf)v_ld(rows + v) + sum) : (vu)sum);
			}
		}
	}
}

static void load_float(struct pt_tile *t, const uint8_t *words, enum spyre_format fmt)
{
	unsigned int k, bytes = is_fp8(fmt) ? 64 : 128;

	for (k = 0; k < 64 * 128 / bytes; k++) {
		__builtin_prefetch(words + (k + 8) * bytes);
		__builtin_prefetch(words + (k + 8) * bytes + 64);
		widen_lanes(t->f[k], words + k * bytes, fmt);
	}
}

/* --- Integers: rows of 64 int8 weights, and 128 or 256 int8 activations to a word ------------- */

/* n nibbles to bytes, signs extended. */
static void widen_int4(uint8_t *dst, const uint8_t *src, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n / 2; i++) {
		dst[2 * i] = (uint8_t)(((src[i] & 15) ^ 8) - 8);
		dst[2 * i + 1] = (uint8_t)(((src[i] >> 4) ^ 8) - 8);
	}
}

#if defined(PT_VNNI)
/*
 * u8 x s8 dot products of four: activations are biased by 128, and 128 times the column's sum is taken
 * off again. No step saturates, so the sum is exact modulo 2^32.
 */
static void load_rows(struct pt_tile *t, const uint8_t *words, unsigned int ks)
{
	const __m512i ones = _mm512_set1_epi8(1);
	__m512i sum[4] = { 0 };
	unsigned int k, n;

	for (k = 0; k < ks / 4; k++, words += 4 * 64) {
		for (n = 0; n < 4; n++) {
			__m512i q = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(words + n * 16)));
			__m512i b = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(words + 64 + n * 16)));
			__m512i c = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(words + 128 + n * 16)));
			__m512i d = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(words + 192 + n * 16)));

			q = _mm512_or_si512(q, _mm512_slli_epi32(b, 8));
			q = _mm512_or_si512(q, _mm512_slli_epi32(c, 16));
			q = _mm512_or_si512(q, _mm512_slli_epi32(d, 24));
			_mm512_store_si512(&t->w8[k][n * 16], q);
			sum[n] = _mm512_dpbusd_epi32(sum[n], ones, q);
		}
	}
	for (n = 0; n < 4; n++)
		_mm512_store_si512(t->bias + n * 16,
				   _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum[n], 7)));
}

/* The intrinsic's tied operand makes GCC keep the sums in memory. */
#define DPBUSD(acc, a, b) __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b))

#define IKERNEL(R) \
static __attribute__((noinline)) void ikernel_##R(uint32_t *rows, const uint8_t *a, const struct pt_tile *t, \
						  unsigned int ks, bool onto) \
{ \
	const int8_t *w = t->w8[0][0]; \
	vi acc[R][4]; \
	unsigned int r, v, k; \
	_Pragma("GCC unroll 16") \
	for (r = 0; r < R; r++) \
		_Pragma("GCC unroll 8") \
		for (v = 0; v < 4; v++) { \
			acc[r][v] = (vi)v_ld(t->bias + v * 16); \
			if (onto) \
				acc[r][v] += (vi)v_ld(rows + r * 64 + v * 16); \
		} \
	for (k = 0; k < ks; k += 4, w += 256) { \
		vi b[4]; \
		_Pragma("GCC unroll 8") \
		for (v = 0; v < 4; v++) \
			b[v] = (vi)v_ld(w + v * 64); \
		_Pragma("GCC unroll 16") \
		for (r = 0; r < R; r++) { \
			uint32_t q; \
			vi x; \
			memcpy(&q, a + r * ks + k, 4); \
			x = (vi)v_u(q); \
			_Pragma("GCC unroll 8") \
			for (v = 0; v < 4; v++) \
				DPBUSD(acc[r][v], x, b[v]); \
		} \
	} \
	_Pragma("GCC unroll 16") \
	for (r = 0; r < R; r++) \
		_Pragma("GCC unroll 8") \
		for (v = 0; v < 4; v++) \
			v_st(rows + r * 64 + v * 16, (vu)acc[r][v]); \
}
IKERNEL(6)
IKERNEL(2)
IKERNEL(1)

static void mm_int(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t, unsigned int ks, bool onto)
{
	uint8_t a[6 * 256] __attribute__((aligned(64)));
	unsigned int m;
	size_t i;

	while (n) {
		m = n >= 6 ? 6 : n >= 2 ? 2 : 1;
		if (ks == 256) {
			widen_int4(a, words, m * 256);
			for (i = 0; i < m * 256u; i++)
				a[i] ^= 0x80;
		} else {
			for (i = 0; i < m * 128u; i++)
				a[i] = words[i] ^ 0x80;
		}
		if (m == 6)
			ikernel_6(rows, a, t, ks, onto);
		else if (m == 2)
			ikernel_2(rows, a, t, ks, onto);
		else
			ikernel_1(rows, a, t, ks, onto);
		rows += m * 64;
		words += m * 128;
		n -= m;
	}
}
#elif VW >= 8
/* Pairs of k widened to 16 bits: the multiply-add of pairs cannot overflow. */
static void load_rows(struct pt_tile *t, const uint8_t *words, unsigned int ks)
{
	unsigned int k, n;

	for (k = 0; k < ks; k++)
		for (n = 0; n < 64; n++)
			t->w16[k / 2][n][k % 2] = (int8_t)words[k * 64 + n];
}

static void mm_int(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t, unsigned int ks, bool onto)
{
	int16_t a[2][256] __attribute__((aligned(64)));
	uint8_t wide[256] __attribute__((aligned(64)));
	unsigned int col, k, i, m, r;

	for (; n; n -= m, rows += m * 64, words += m * 128) {
		m = n >= 2 ? 2 : 1;
		for (r = 0; r < m; r++) {
			const uint8_t *b = words + r * 128;

			if (ks == 256) {
				widen_int4(wide, b, 256);
				b = wide;
			}
			for (i = 0; i < ks; i++)
				a[r][i] = (int8_t)b[i];
		}
		if (m == 1)
			memcpy(a[1], a[0], sizeof(a[0]));
		for (col = 0; col < 64; col += 32) {
			__m256i acc[2][4];

			for (r = 0; r < 2; r++)
				for (i = 0; i < 4; i++)
					acc[r][i] = onto && r < m ?
						_mm256_load_si256((void *)(rows + r * 64 + col + i * 8)) :
						_mm256_setzero_si256();
			for (k = 0; k < ks / 2; k++) {
				int32_t q0, q1;
				__m256i x0, x1;

				memcpy(&q0, &a[0][2 * k], 4);
				memcpy(&q1, &a[1][2 * k], 4);
				x0 = _mm256_set1_epi32(q0);
				x1 = _mm256_set1_epi32(q1);
#pragma GCC unroll 4
				for (i = 0; i < 4; i++) {
					__m256i b = _mm256_load_si256((void *)t->w16[k][col + i * 8]);

					acc[0][i] = _mm256_add_epi32(acc[0][i], _mm256_madd_epi16(x0, b));
					acc[1][i] = _mm256_add_epi32(acc[1][i], _mm256_madd_epi16(x1, b));
				}
			}
			for (r = 0; r < m; r++)
				for (i = 0; i < 4; i++)
					_mm256_store_si256((void *)(rows + r * 64 + col + i * 8), acc[r][i]);
		}
	}
}
#else
static void load_rows(struct pt_tile *t, const uint8_t *words, unsigned int ks)
{
	memcpy(t->w8, words, ks * 64);
}

static void mm_int(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t, unsigned int ks, bool onto)
{
	const int8_t *w = &t->w8[0][0][0];
	uint8_t wide[256] __attribute__((aligned(64)));
	unsigned int k, i;

	for (; n--; rows += 64, words += 128) {
		const uint8_t *a = words;

		if (ks == 256) {
			widen_int4(wide, words, 256);
			a = wide;
		}
		if (!onto)
			memset(rows, 0, 64 * sizeof(*rows));
		for (k = 0; k < ks; k++)
			for (i = 0; i < 64; i++)
				rows[i] += (uint32_t)((int8_t)a[k] * w[k * 64 + i]);
	}
}
#endif

static void load(struct pt_tile *t, const uint8_t *words, enum spyre_format fmt)
{
	uint8_t wide[256 * 64] __attribute__((aligned(64)));

	if (fmt == SPYRE_SENINT4) {
		widen_int4(wide, words, sizeof(wide));
		load_rows(t, wide, 256);
	} else if (fmt == SPYRE_SENINT8) {
		load_rows(t, words, 128);
	} else {
		load_float(t, words, fmt);
	}
}

static void mm(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t, enum spyre_format fmt,
	       bool onto)
{
	if (fmt == SPYRE_SENINT4)
		mm_int(rows, words, n, t, 256, onto);
	else if (fmt == SPYRE_SENINT8)
		mm_int(rows, words, n, t, 128, onto);
	else
		mm_float(rows, words, n, t, fmt, onto);
}

const struct pt_ops PT_OPS = {
	.name = PT_NAME,
	.formats = 1u << SPYRE_SEN169_FP16 | 1u << SPYRE_IEEE_FP16 | 1u << SPYRE_BFLOAT16 | 1u << SPYRE_SENINT8 |
		   1u << SPYRE_SEN143_FP8 | 1u << SPYRE_SEN152_FP8 | 1u << SPYRE_SENINT4,
	.load = load,
	.mm = mm,
	.mm_dl16 = mm_dl16,
};
