// SPDX-License-Identifier: MIT
/*
 * Number formats and vector operations: every code of the 16-bit formats and dense samples of fp32 against
 * independent references in wider arithmetic, and every vector width against the plain one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <spyre/isa_table.h>
#include <spyre/num.h>

#include "vec.h"

#define N 16384u	/* lanes at a time */

static uint64_t rng = 88172645463325252ull;

static uint32_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 16);
}

/* Code to value by the definition of the format; NaN for codes that are none. */
static double dl16_value(unsigned int h)
{
	unsigned int m = h & 0x7fff;
	double v;

	if (m == 0x7fff)
		return NAN;
	v = m ? ldexp(1 + (m & 0x1ff) / 512.0, (int)(m >> 9) - 31) : 0;
	return h & 0x8000 ? -v : v;
}

static double ieee_value(unsigned int h, int ebits, int fbits)
{
	int bias = (1 << (ebits - 1)) - 1, e = (int)(h >> fbits) & ((1 << ebits) - 1);
	unsigned int f = h & ((1u << fbits) - 1);
	double v;

	if (e == (1 << ebits) - 1)
		v = f ? NAN : INFINITY;
	else if (e)
		v = ldexp(1 + ldexp(f, -fbits), e - bias);
	else
		v = ldexp(f, 1 - bias - fbits);
	return h >> (ebits + fbits) & 1 ? -v : v;
}

static double f16_value(unsigned int h)
{
	return ieee_value(h, 5, 10);
}

static double bf16_value(unsigned int h)
{
	return ieee_value(h, 8, 7);
}

static void same_value(uint32_t bits, double want, unsigned int code)
{
	float f = spyre_fp32_from_bits(bits);

	if (isnan(want) ? !isnan(f) : (double)f != want || !signbit(f) != !signbit(want))
		fail_msg("code %04x: %08x (%a), expected %a", code, bits, (double)f, want);
}

static void test_widen_all(void **state)
{
	unsigned int h;

	(void)state;
	for (h = 0; h < 65536; h++) {
		same_value(spyre_dl16_to_bits((uint16_t)h), dl16_value(h), h);
		same_value(spyre_fp16_to_bits((uint16_t)h), f16_value(h), h);
		same_value(spyre_bf16_to_bits((uint16_t)h), bf16_value(h), h);
	}
	assert_int_equal(spyre_fp32_bits((float)(8589934592.0 - 16777216.0)), spyre_dl16_to_bits(0x7ffe));
	assert_int_equal(spyre_dl16_to_bits(0x7fff), SPYRE_FP32_NAN);
}

static void test_round_trip(void **state)
{
	unsigned int h;

	(void)state;
	for (h = 0; h < 65536; h++) {
		if ((h & 0x7fff) != 0x7fff)
			assert_int_equal(spyre_bits_to_dl16(spyre_dl16_to_bits((uint16_t)h)), h);
		if (!isnan(f16_value(h)))
			assert_int_equal(spyre_bits_to_fp16(spyre_fp16_to_bits((uint16_t)h)), h);
		if (!isnan(bf16_value(h)))
			assert_int_equal(spyre_bits_to_bf16(spyre_bf16_to_bits((uint16_t)h)), h);
	}
}

/*
 * Nearest code by search: the two neighbours of |x| among the sorted values of the codes; a tie goes to
 * the larger magnitude (away) or to the even code. One step beyond the largest finite code stands for overflow.
 */
static unsigned int nearest(double x, double (*value)(unsigned int), unsigned int last, double beyond, int away)
{
	unsigned int lo = 0, hi = last + 1, mid;
	double a = fabs(x), l, h;

	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if ((mid > last ? beyond : value(mid)) <= a)
			lo = mid;
		else
			hi = mid;
	}
	if (a >= beyond)
		return last + 1;
	l = value(lo);
	h = hi > last ? beyond : value(hi);
	if (a - l < h - a)
		return lo;
	if (a - l > h - a)
		return hi;
	return away || (lo & 1) ? hi : lo;
}

static void check_narrow(uint32_t bits)
{
	double x = (double)spyre_fp32_from_bits(bits);
	unsigned int s = bits >> 31 ? 0x8000 : 0, want;

	if (isnan(x)) {
		assert_int_equal(spyre_bits_to_dl16(bits), 0x7fff);
		assert_int_equal(spyre_bits_to_fp16(bits), 0x7e00);
		assert_int_equal(spyre_bits_to_bf16(bits), 0x7fc0);
		assert_int_equal(spyre_bits_to_int32(bits), 0);
		return;
	}
	want = s | nearest(x, dl16_value, 0x7ffe, 8589934592.0 - 8388608.0, 1);
	if (spyre_bits_to_dl16(bits) != want)
		fail_msg("DL16 of %08x (%a): %04x, expected %04x", bits, x, spyre_bits_to_dl16(bits), want);
	want = s | nearest(x, f16_value, 0x7bff, 65536.0, 0);
	if (spyre_bits_to_fp16(bits) != want)
		fail_msg("fp16 of %08x (%a): %04x, expected %04x", bits, x, spyre_bits_to_fp16(bits), want);
	want = s | nearest(x, bf16_value, 0x7f7f, ldexp(1, 128), 0);
	if (spyre_bits_to_bf16(bits) != want)
		fail_msg("bf16 of %08x (%a): %04x, expected %04x", bits, x, spyre_bits_to_bf16(bits), want);
	if (x >= 2147483648.0)
		assert_int_equal(spyre_bits_to_int32(bits), INT32_MAX);
	else if (x < -2147483648.0)
		assert_int_equal(spyre_bits_to_int32(bits), INT32_MIN);
	else
		assert_int_equal(spyre_bits_to_int32(bits), (int32_t)nearbyint(x));
}

/* Around every code and every tie between codes, all exponents, and at random. */
static void test_narrow(void **state)
{
	uint32_t h, i, k;
	int d;

	(void)state;
	for (h = 0; h < 65536; h++) {
		uint32_t base[3] = { spyre_dl16_to_bits((uint16_t)h), spyre_fp16_to_bits((uint16_t)h),
				     spyre_bf16_to_bits((uint16_t)h) };
		static const uint32_t half[3] = { 0x2000, 0x1000, 0x8000 };

		for (k = 0; k < 3; k++)
			for (d = -1; d <= 1; d++) {
				check_narrow(base[k] + (uint32_t)d);
				check_narrow(base[k] + half[k] + (uint32_t)d);
			}
	}
	/* fp16 subnormal ties. */
	for (i = 0; i < 2048; i++)
		for (d = -1; d <= 1; d++)
			check_narrow(spyre_fp32_bits((float)ldexp(i + 0.5, -24)) + (uint32_t)d);
	for (i = 0; i < 300000; i++)
		check_narrow(rnd());
	check_narrow(SPYRE_DL16_HALF_MIN);
	check_narrow(SPYRE_DL16_HALF_MIN - 1);
	check_narrow(0x7f800000);
	check_narrow(0xff800000);
	/* What the definition says of the edges. */
	assert_int_equal(spyre_bits_to_dl16(spyre_fp32_bits(ldexpf(1, -31))), 0x0001);
	assert_int_equal(spyre_bits_to_dl16(SPYRE_DL16_HALF_MIN - 1), 0x0000);
	assert_int_equal(spyre_bits_to_dl16(SPYRE_DL16_HALF_MIN | 0x80000000u), 0x8001);
	assert_int_equal(spyre_bits_to_dl16(0xff800000u), 0xffff);
}

static void test_int8(void **state)
{
	int32_t i;

	(void)state;
	for (i = -70000; i < 70000; i++)
		assert_int_equal(spyre_int32_to_int8(i), i < -128 ? -128 : i > 127 ? 127 : i);
}

/* --- Vector variants ------------------------------------------------------------------------ */

static uint32_t *buf(size_t lanes)
{
	void *p;

	if (posix_memalign(&p, 64, lanes * 4))
		abort();
	return p;
}

/* Interesting bits: all classes, then noise. */
static uint32_t sample(unsigned int i)
{
	static const uint32_t edge[] = {
		0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff,
		0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0x42b17218, 0xc2cff1b5, 0x3f000000,
		0x3effffff, 0x3f200000, 0x40800000, 0xc1680000, 0x41680001, 0x4f000000, 0xcf000000, 0x7fffffff,
	};
	uint32_t r = rnd();

	if (i % 5 == 0)
		return edge[r % (sizeof(edge) / sizeof(edge[0]))];
	if (i % 5 < 3)	/* magnitudes that functions care about */
		return (r & 0x807fffff) | (110u + (r >> 23 & 31)) << 23;
	return r;
}

static void test_vec_conversions(void **state)
{
	static const enum spyre_format fmts[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16 };
	const struct vec_ops *const *v;
	uint16_t *h = malloc(65536 * 2), *out = malloc(65536 * 2 + 2);
	uint32_t *f = buf(65536), *lanes = buf(65536);
	unsigned int i, k;

	(void)state;
	for (i = 0; i < 65536; i++) {
		h[i] = (uint16_t)i;
		f[i] = sample(i);
	}
	for (v = spyre_vec_ops_all(); *v; v++) {
		for (k = 0; k < 3; k++) {
			(*v)->widen[fmts[k]](lanes, h, 65536);
			for (i = 0; i < 65536; i++) {
				uint32_t want = k == 0 ? spyre_dl16_to_bits(h[i]) : k == 1 ? spyre_fp16_to_bits(h[i]) :
						spyre_bf16_to_bits(h[i]);
				if (lanes[i] != want)
					fail_msg("%s widen %u: %04x gives %08x, expected %08x", (*v)->name, k, h[i],
						 lanes[i], want);
			}
			/* An odd address: words in FIFOs are aligned, containers' constants need not be. */
			(*v)->narrow[fmts[k]]((uint8_t *)out + 2, f, 65536);
			for (i = 0; i < 65536; i++) {
				uint16_t want = k == 0 ? spyre_bits_to_dl16(f[i]) : k == 1 ? spyre_bits_to_fp16(f[i]) :
						spyre_bits_to_bf16(f[i]);
				if (out[i + 1] != want)
					fail_msg("%s narrow %u: %08x gives %04x, expected %04x", (*v)->name, k, f[i],
						 out[i + 1], want);
			}
		}
		(*v)->canon(lanes, f, 65536);
		for (i = 0; i < 65536; i++)
			assert_int_equal(lanes[i], (f[i] & 0x7fffffff) > 0x7f800000 ? SPYRE_FP32_NAN : f[i]);
		(*v)->widen[SPYRE_SENINT8](lanes, h, 65536);
		for (i = 0; i < 65536; i++)
			assert_int_equal((int32_t)lanes[i], ((int8_t *)h)[i]);
		(*v)->narrow[SPYRE_SENINT8](out, f, 65536);
		for (i = 0; i < 65536; i++)
			assert_int_equal(((int8_t *)out)[i], spyre_int32_to_int8((int32_t)f[i]));
	}
	free(h);
	free(out);
	free(f);
	free(lanes);
}

static void test_vec_agree(void **state)
{
	uint32_t *b = buf(N), *c = buf(N), *d = buf(N), *want = buf(N), *got = buf(N);
	const struct vec_ops *const *v;
	unsigned int op, i, round;

	(void)state;
	for (round = 0; round < 4; round++) {
		for (i = 0; i < N; i++) {
			b[i] = sample(i);
			c[i] = i % 7 ? sample(i + 1) : b[i];
			d[i] = i % 3 ? sample(i + 2) : 0;
		}
		for (op = 0; op < 256; op++) {
			if (!spyre_vec_ops_plain.op[op])
				continue;
			spyre_vec_ops_plain.op[op](want, 64, b, 64, c, 64, d, 64, N / 64, round * 21);
			for (v = spyre_vec_ops_all(); *v; v++) {
				memset(got, 0xa5, N * 4);
				(*v)->op[op](got, 64, b, 64, c, 64, d, 64, N / 64, round * 21);
				for (i = 0; i < N; i++)
					if (got[i] != want[i])
						fail_msg("%s op %02x lane %u: f(%08x, %08x, %08x) = %08x, plain %08x",
							 (*v)->name, op, i, b[i], c[i], d[i], got[i], want[i]);
				/* The same in place, and onto one word time after time. */
				memcpy(got, b, N * 4);
				(*v)->op[op](got, 64, got, 64, c, 64, d, 64, N / 64, round * 21);
				assert_memory_equal(got, want, N * 4);
				(*v)->op[op](got, 0, b, 64, c, 64, d, 64, N / 64, round * 21);
				assert_memory_equal(got, want + N - 64, 256);
			}
		}
	}
	free(b);
	free(c);
	free(d);
	free(want);
	free(got);
}

static uint32_t one(unsigned int op, uint32_t b, uint32_t c, uint32_t d)
{
	uint32_t x[64], y[64], z[64], r[64];
	unsigned int i;

	for (i = 0; i < 64; i++) {
		x[i] = b;
		y[i] = c;
		z[i] = d;
	}
	spyre_vec_ops_plain.op[op](r, 64, x, 64, y, 64, z, 64, 1, 0);
	return r[17];
}

/* The simple operations against C, on edges and noise. */
static void test_ops(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		uint32_t b = sample(i), c = i % 9 ? sample(i + 1) : b, d = sample(i + 2), nan;
		float fb = spyre_fp32_from_bits(b), fc = spyre_fp32_from_bits(c), fd = spyre_fp32_from_bits(d);

#define CANON(x) ((nan = spyre_fp32_bits(x)), (nan & 0x7fffffff) > 0x7f800000 ? SPYRE_FP32_NAN : nan)
		assert_int_equal(one(SPYRE_OP_ADD, b, c, d), CANON(fb + fc));
		assert_int_equal(one(SPYRE_OP_SUB, b, c, d), CANON(fb - fc));
		assert_int_equal(one(SPYRE_OP_MUL, b, c, d), CANON(fb * fc));
		assert_int_equal(one(SPYRE_OP_FMA, b, c, d), CANON(fmaf(fb, fc, fd)));
		if (isnan(fb) || isnan(fc)) {
			assert_int_equal(one(SPYRE_OP_MIN, b, c, d), SPYRE_FP32_NAN);
			assert_int_equal(one(SPYRE_OP_MAX, b, c, d), SPYRE_FP32_NAN);
		} else {
			assert_int_equal(one(SPYRE_OP_MIN, b, c, d), fb < fc ? b : c);
			assert_int_equal(one(SPYRE_OP_MAX, b, c, d), fb > fc ? b : c);
		}
		assert_int_equal(one(SPYRE_OP_CMPEQ, b, c, d), fb == fc ? 0x3f800000 : 0);
		assert_int_equal(one(SPYRE_OP_CMPLT, b, c, d), fb < fc ? 0x3f800000 : 0);
		assert_int_equal(one(SPYRE_OP_CMPLE, b, c, d), fb <= fc ? 0x3f800000 : 0);
		assert_int_equal(one(SPYRE_OP_SEL, b, c, d), d ? b : c);
		assert_int_equal(one(SPYRE_OP_SEL, b, c, 0), c);
		assert_int_equal(one(SPYRE_OP_ABS, b, c, d), b & 0x7fffffff);
		assert_int_equal(one(SPYRE_OP_NEG, b, c, d), b ^ 0x80000000);
		assert_int_equal(one(SPYRE_OP_IADD, b, c, d), b + c);
		assert_int_equal(one(SPYRE_OP_ISUB, b, c, d), b - c);
		assert_int_equal(one(SPYRE_OP_IMUL, b, c, d), b * c);
		assert_int_equal(one(SPYRE_OP_IMIN, b, c, d), (int32_t)b < (int32_t)c ? b : c);
		assert_int_equal(one(SPYRE_OP_IMAX, b, c, d), (int32_t)b > (int32_t)c ? b : c);
		assert_int_equal(one(SPYRE_OP_AND, b, c, d), b & c);
		assert_int_equal(one(SPYRE_OP_OR, b, c, d), b | c);
		assert_int_equal(one(SPYRE_OP_XOR, b, c, d), b ^ c);
		assert_int_equal(one(SPYRE_OP_SHL, b, c, d), b << (c & 31));
		assert_int_equal(one(SPYRE_OP_SHR, b, c, d), b >> (c & 31));
		assert_int_equal((int32_t)one(SPYRE_OP_SRA, b, c, d), (int32_t)b >> (c & 31));
		assert_int_equal(one(SPYRE_OP_I2F, b, c, d), spyre_fp32_bits((float)(int32_t)b));
		assert_int_equal((int32_t)one(SPYRE_OP_F2I, b, c, d), spyre_bits_to_int32(b));
		if (!isnan(fb)) {
			assert_int_equal(one(SPYRE_OP_RECIP, b, c, d), CANON(1.0f / fb));
			assert_int_equal(one(SPYRE_OP_SQRT, b, c, d), CANON(sqrtf(fb)));
		}
	}
}

static void test_cross_lane(void **state)
{
	uint32_t b[64], r[64];
	float sum[64], top;
	unsigned int i, k, half, arg;

	(void)state;
	for (k = 0; k < 200; k++) {
		for (i = 0; i < 64; i++) {
			b[i] = spyre_fp32_bits((float)((int)(rnd() % 2001) - 1000) / 7);
			sum[i] = spyre_fp32_from_bits(b[i]);
		}
		if (k & 1)
			b[rnd() % 64] = b[rnd() % 64];
		for (i = 0; i < 64; i++)
			sum[i] = spyre_fp32_from_bits(b[i]);
		for (top = sum[0], arg = 0, i = 1; i < 64; i++) {
			if (sum[i] > top) {
				top = sum[i];
				arg = i;
			}
		}
		for (half = 32; half; half /= 2)
			for (i = 0; i < half; i++)
				sum[i] += sum[i + half];
		spyre_vec_ops_plain.op[SPYRE_OP_RSUM](r, 64, b, 64, b, 0, b, 0, 1, 0);
		for (i = 0; i < 64; i++)
			assert_int_equal(r[i], spyre_fp32_bits(sum[0]));
		spyre_vec_ops_plain.op[SPYRE_OP_RMAX](r, 64, b, 64, b, 0, b, 0, 1, 0);
		assert_int_equal(r[k % 64], spyre_fp32_bits(top));
		spyre_vec_ops_plain.op[SPYRE_OP_RARGMAX](r, 64, b, 64, b, 0, b, 0, 1, 0);
		assert_int_equal(r[k % 64], arg);
		spyre_vec_ops_plain.op[SPYRE_OP_ROT](r, 64, b, 64, b, 0, b, 0, 1, k);
		for (i = 0; i < 64; i++)
			assert_int_equal(r[i], b[(i + k) % 64]);
		spyre_vec_ops_plain.op[SPYRE_OP_BCAST](r, 64, b, 64, b, 0, b, 0, 1, k % 64);
		for (i = 0; i < 64; i++)
			assert_int_equal(r[i], b[k % 64]);
	}
	/* -0 and 0 are equal, a NaN is greater than all, the first of equals counts. */
	memset(b, 0, sizeof(b));
	b[0] = 0x80000000;
	spyre_vec_ops_plain.op[SPYRE_OP_RARGMAX](r, 64, b, 64, b, 0, b, 0, 1, 0);
	assert_int_equal(r[0], 0);
	b[9] = 0x7f800000;
	b[40] = 0xffc00000;
	spyre_vec_ops_plain.op[SPYRE_OP_RARGMAX](r, 64, b, 64, b, 0, b, 0, 1, 0);
	assert_int_equal(r[0], 40);
	spyre_vec_ops_plain.op[SPYRE_OP_RMAX](r, 64, b, 64, b, 0, b, 0, 1, 0);
	assert_int_equal(r[0], SPYRE_FP32_NAN);
	for (i = 0; i < 64; i++)
		b[i] = 0xff800000;
	spyre_vec_ops_plain.op[SPYRE_OP_RARGMAX](r, 64, b, 64, b, 0, b, 0, 1, 0);
	assert_int_equal(r[0], 0);
}

/* --- Special functions ---------------------------------------------------------------------- */

static long double r_recip(long double x) { return 1 / x; }
static long double r_rsqrt(long double x) { return 1 / sqrtl(x); }
static long double r_sigmoid(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static long double r_gelu(long double x)
{
	/* The limit, where the product has none. */
	return isinf(x) && x < 0 ? -0.0L : x * erfcl(-x * 0.70710678118654752440084436210485L) / 2;
}

/*
 * Bounds in units of the last place of the fp32 result (of the smallest normal below that), over all codes of the
 * 8- and 16-bit formats and samples of fp32. --rst prints them for the manual.
 */
static const struct func {
	const char *name;
	unsigned int op;
	long double (*ref)(long double x);
	double bound;
} funcs[] = {
	{ "recip", SPYRE_OP_RECIP, r_recip, 0.5 },
	{ "rsqrt", SPYRE_OP_RSQRT, r_rsqrt, 1.5 },
	{ "sqrt", SPYRE_OP_SQRT, sqrtl, 0.5 },
	{ "exp", SPYRE_OP_EXP, expl, 1.5 },
	{ "ln", SPYRE_OP_LN, logl, 1.5 },
	{ "sigmoid", SPYRE_OP_SIGMOID, r_sigmoid, 3.0 },
	{ "tanh", SPYRE_OP_TANH, tanhl, 2.0 },
	{ "erf", SPYRE_OP_ERF, erfl, 2.5 },
	{ "gelu", SPYRE_OP_GELU, r_gelu, 6.0 },
};

/* Error of y as the value of want, in units of the last place. */
static double ulps(uint32_t y, long double want)
{
	long double got = spyre_fp32_from_bits(y), u;
	int e;

	if (isnan(want))
		return y == SPYRE_FP32_NAN ? 0 : INFINITY;
	if (isnan(got))
		return INFINITY;
	/* What rounds beyond the largest number is infinite. */
	if (fabsl(want) >= 0x1.ffffffp127L)
		return isinf(got) && (got > 0) == (want > 0) ? 0 : INFINITY;
	if (isinf(got))
		return INFINITY;
	frexpl(want, &e);
	u = ldexpl(1, (e < -125 ? -125 : e) - 24);
	return (double)(fabsl(got - want) / u);
}

static double worst_of(const struct func *f, const uint32_t *x, size_t n, uint32_t *y, uint32_t *at, double worst)
{
	const struct vec_ops *v = spyre_vec_ops_best();
	size_t i;

	v->op[f->op](y, 64, x, 64, x, 0, x, 0, n / 64, 0);
	for (i = 0; i < n; i++) {
		double e = ulps(y[i], f->ref(spyre_fp32_from_bits(x[i])));

		if (e > worst) {
			worst = e;
			*at = x[i];
		}
	}
	return worst;
}

static void test_special(void **state)
{
	static const struct {
		const char *name;
		enum spyre_format fmt;
	} fmts[] = {
		{ "DL16", SPYRE_SEN169_FP16 }, { "fp16", SPYRE_IEEE_FP16 }, { "bf16", SPYRE_BFLOAT16 },
		{ "fp8 1-4-3", SPYRE_SEN143_FP8 }, { "fp8 1-5-2", SPYRE_SEN152_FP8 }, { "fp32", SPYRE_IEEE_FP32 },
	};
	uint32_t *x = buf(65536), *y = buf(65536), at, i, k, r;
	const struct vec_ops *v = spyre_vec_ops_best();
	uint8_t *codes = malloc(65536 * 2);
	const struct func *f;
	double worst;

	(void)state;
	for (f = funcs; f < funcs + sizeof(funcs) / sizeof(funcs[0]); f++) {
		print_message("%-8s bound %.1f ulp, worst", f->name, f->bound);
		for (k = 0; k < sizeof(fmts) / sizeof(fmts[0]); k++) {
			worst = 0;
			at = 0;
			if (fmts[k].fmt != SPYRE_IEEE_FP32) {
				bool fp8 = isa_formats[fmts[k].fmt].lanes == 128;

				for (i = 0; i < 65536; i++) {
					codes[fp8 ? i : 2 * i] = (uint8_t)i;
					if (!fp8)
						codes[2 * i + 1] = (uint8_t)(i >> 8);
				}
				v->widen[fmts[k].fmt](x, codes, 65536);
				worst = worst_of(f, x, 65536, y, &at, worst);
			} else {
				/* All exponents evenly, then the range where functions turn. */
				for (r = 0; r < 4; r++) {
					for (i = 0; i < 65536; i++)
						x[i] = r & 1 ? spyre_fp32_bits((float)((int32_t)rnd() / 0x1p31 * 16)) : rnd();
					worst = worst_of(f, x, 65536, y, &at, worst);
				}
			}
			print_message("%s %s %.3f at %a", k ? "," : "", fmts[k].name, worst,
				      (double)spyre_fp32_from_bits(at));
			if (!(worst <= f->bound))
				fail_msg("%s of %s: error %.3f ulp at %08x, bound %.1f", f->name, fmts[k].name, worst, at,
					 f->bound);
		}
		print_message("\n");
	}
	free(codes);
	free(x);
	free(y);
}

static void test_special_edges(void **state)
{
	(void)state;
	assert_int_equal(one(SPYRE_OP_EXP, 0xff800000, 0, 0), 0);
	assert_int_equal(one(SPYRE_OP_EXP, 0x7f800000, 0, 0), 0x7f800000);
	assert_int_equal(one(SPYRE_OP_EXP, 0, 0, 0), 0x3f800000);
	assert_int_equal(one(SPYRE_OP_LN, 0, 0, 0), 0xff800000);
	assert_int_equal(one(SPYRE_OP_LN, 0x80000000, 0, 0), 0xff800000);
	assert_int_equal(one(SPYRE_OP_LN, 0xbf800000, 0, 0), SPYRE_FP32_NAN);
	assert_int_equal(one(SPYRE_OP_LN, 0x3f800000, 0, 0), 0);
	assert_int_equal(one(SPYRE_OP_SIGMOID, 0xff800000, 0, 0), 0);
	assert_int_equal(one(SPYRE_OP_SIGMOID, 0x7f800000, 0, 0), 0x3f800000);
	assert_int_equal(one(SPYRE_OP_TANH, 0xff800000, 0, 0), 0xbf800000);
	assert_int_equal(one(SPYRE_OP_TANH, 0x80000000, 0, 0), 0x80000000);
	assert_int_equal(one(SPYRE_OP_ERF, 0x7f800000, 0, 0), 0x3f800000);
	assert_int_equal(one(SPYRE_OP_GELU, 0x7f800000, 0, 0), 0x7f800000);
	assert_int_equal(one(SPYRE_OP_GELU, 0xff800000, 0, 0), 0x80000000);
	assert_int_equal(one(SPYRE_OP_RSQRT, 0, 0, 0), 0x7f800000);
	assert_int_equal(one(SPYRE_OP_SQRT, 0xbf800000, 0, 0), SPYRE_FP32_NAN);
}

/* The bounds as the manual shows them. */
static int print_rst(void)
{
	const struct func *f;

	printf(".. list-table:: Error of the special functions, in units of the last place of fp32\n"
	       "   :header-rows: 1\n\n   * - function\n     - at most\n");
	for (f = funcs; f < funcs + sizeof(funcs) / sizeof(funcs[0]); f++)
		printf("   * - %s\n     - %.1f\n", f->name, f->bound);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_widen_all),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_int8),
		cmocka_unit_test(test_vec_conversions),
		cmocka_unit_test(test_vec_agree),
		cmocka_unit_test(test_ops),
		cmocka_unit_test(test_cross_lane),
		cmocka_unit_test(test_special),
		cmocka_unit_test(test_special_edges),
	};

	if (argc > 1 && !strcmp(argv[1], "--rst"))
		return print_rst();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
