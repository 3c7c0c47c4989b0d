/* SPDX-License-Identifier: MIT */
/*
 * Body of the PT kernels for one vector width; the includer defines PT_OPS, PT_NAME and the block:
 * MR rows times NV vectors of columns held in registers. Vectors run across columns, never across k.
 */
#include "pt.h"
#include "vec_w.h"

VINL void widen_word(float *dst, const uint8_t *src, enum spyre_format fmt)
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

static void mm_float(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t,
		     enum spyre_format fmt, bool onto)
{
	float a[MR][64] __attribute__((aligned(64)));
	float *p = (float *)rows;
	unsigned int r, col, m;

	while (n) {
		m = n >= MR ? MR : n >= 2 ? 2 : 1;
		for (r = 0; r < m; r++) {
			widen_word(a[r], words + r * 128, fmt);
			/* The next block comes from LX, often from beyond L1, while this one computes. */
			__builtin_prefetch(words + (r + MR) * 128);
			__builtin_prefetch(words + (r + MR) * 128 + 64);
		}
		for (col = 0; col < 64; col += NV * VW) {
			if (m == MR)
				kernel_mr(p + col, a[0], &t->f[0][col], onto);
			else if (m == 2)
				kernel_2(p + col, a[0], &t->f[0][col], onto);
			else
				kernel_1(p + col, a[0], &t->f[0][col], onto);
		}
		p += m * 64;
		words += m * 128;
		n -= m;
	}
}

static void mm_dl16(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t,
		    enum spyre_format fmt, bool onto)
{
	float a[64] __attribute__((aligned(64)));
	unsigned int v, k;

	for (; n--; rows += 64, words += 128) {
		widen_word(a, words, fmt);
		for (v = 0; v < 64; v += VW) {
			vf sum = v_f(0.0f);

			for (k = 0; k < 64; k++) {
				sum = v_fma(v_f(a[k]), (vf)v_ld(&t->f[k][v]), sum);
				sum = (vf)v_widen_dl16(v_narrow_dl16((vu)sum));
			}
			v_st(rows + v, onto ? (vu)((vf)v_ld(rows + v) + sum) : (vu)sum);
		}
	}
}

static void load_float(struct pt_tile *t, const uint8_t *words, enum spyre_format fmt)
{
	unsigned int k;

	for (k = 0; k < 64; k++) {
		__builtin_prefetch(words + (k + 8) * 128);
		__builtin_prefetch(words + (k + 8) * 128 + 64);
		widen_word(t->f[k], words + k * 128, fmt);
	}
}

#if defined(PT_VNNI)
/*
 * u8 x s8 dot products of four: activations are biased by 128, and 128 times the column's sum is taken
 * off again. No step saturates, so the sum is exact modulo 2^32.
 */
static void load_int8(struct pt_tile *t, const uint8_t *words)
{
	const __m512i ones = _mm512_set1_epi8(1);
	__m512i sum[4] = { 0 };
	unsigned int k, n;

	for (k = 0; k < 32; k++, words += 4 * 64) {
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
						  bool onto) \
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
	for (k = 0; k < 32; k++, w += 256) { \
		vi b[4]; \
		_Pragma("GCC unroll 8") \
		for (v = 0; v < 4; v++) \
			b[v] = (vi)v_ld(w + v * 64); \
		_Pragma("GCC unroll 16") \
		for (r = 0; r < R; r++) { \
			uint32_t q; \
			vi x; \
			memcpy(&q, a + r * 128 + k * 4, 4); \
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

static void mm_int8(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t, bool onto)
{
	uint8_t a[6 * 128] __attribute__((aligned(64)));
	unsigned int m;
	size_t i;

	while (n) {
		m = n >= 6 ? 6 : n >= 2 ? 2 : 1;
		for (i = 0; i < m * 128u; i++)
			a[i] = words[i] ^ 0x80;
		if (m == 6)
			ikernel_6(rows, a, t, onto);
		else if (m == 2)
			ikernel_2(rows, a, t, onto);
		else
			ikernel_1(rows, a, t, onto);
		rows += m * 64;
		words += m * 128;
		n -= m;
	}
}
#elif VW >= 8
/* Pairs of k widened to 16 bits: the multiply-add of pairs cannot overflow. */
static void load_int8(struct pt_tile *t, const uint8_t *words)
{
	unsigned int k, n;

	for (k = 0; k < 128; k++)
		for (n = 0; n < 64; n++)
			t->w16[k / 2][n][k % 2] = (int8_t)words[k * 64 + n];
}

static void mm_int8(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t, bool onto)
{
	int16_t a[2][128] __attribute__((aligned(64)));
	unsigned int col, k, i, m, r;

	for (; n; n -= m, rows += m * 64, words += m * 128) {
		m = n >= 2 ? 2 : 1;
		for (r = 0; r < m; r++)
			for (i = 0; i < 128; i++)
				a[r][i] = (int8_t)words[r * 128 + i];
		if (m == 1)
			memcpy(a[1], a[0], sizeof(a[0]));
		for (col = 0; col < 64; col += 32) {
			__m256i acc[2][4];

			for (r = 0; r < 2; r++)
				for (i = 0; i < 4; i++)
					acc[r][i] = onto && r < m ?
						_mm256_load_si256((void *)(rows + r * 64 + col + i * 8)) :
						_mm256_setzero_si256();
			for (k = 0; k < 64; k++) {
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
static void load_int8(struct pt_tile *t, const uint8_t *words)
{
	memcpy(t->w8, words, 128 * 64);
}

static void mm_int8(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t, bool onto)
{
	const int8_t *w = &t->w8[0][0][0];
	unsigned int k, i;

	for (; n--; rows += 64, words += 128) {
		if (!onto)
			memset(rows, 0, 64 * sizeof(*rows));
		for (k = 0; k < 128; k++)
			for (i = 0; i < 64; i++)
				rows[i] += (uint32_t)((int8_t)words[k] * w[k * 64 + i]);
	}
}
#endif

static void load(struct pt_tile *t, const uint8_t *words, enum spyre_format fmt)
{
	if (fmt == SPYRE_SENINT8)
		load_int8(t, words);
	else
		load_float(t, words, fmt);
}

static void mm(uint32_t *rows, const uint8_t *words, size_t n, const struct pt_tile *t, enum spyre_format fmt,
	       bool onto)
{
	if (fmt == SPYRE_SENINT8)
		mm_int8(rows, words, n, t, onto);
	else
		mm_float(rows, words, n, t, fmt, onto);
}

const struct pt_ops PT_OPS = {
	.name = PT_NAME,
	.formats = 1u << SPYRE_SEN169_FP16 | 1u << SPYRE_IEEE_FP16 | 1u << SPYRE_BFLOAT16 | 1u << SPYRE_SENINT8,
	.load = load,
	.mm = mm,
	.mm_dl16 = mm_dl16,
};
