/* SPDX-License-Identifier: MIT */
/*
 * Body of the vector operations for one vector width; the includer defines VEC_OPS, the name of the
 * table. Order of evaluation is fixed and fused multiply-adds are written out, so that every width gives
 * the same bits. Polynomials were fitted at Chebyshev nodes of the ranges named beside them.
 */
#include "vec.h"
#include "vec_w.h"

#define LANES SPYRE_LANES

/* --- Conversions ---------------------------------------------------------------------------- */

#define WIDEN(name, expr) \
static void name(uint32_t *lanes, const void *src, size_t n) \
{ \
	const uint16_t *h = src; \
	size_t i; \
	for (i = 0; i < n; i += VW) \
		v_st(lanes + i, expr); \
}
WIDEN(widen_dl16, v_widen_dl16(v_ld16(h + i)))
WIDEN(widen_bf16, v_widen_bf16(v_ld16(h + i)))
WIDEN(widen_f16, v_widen_f16(h + i))

#define WIDEN8(name, prim) \
static void name(uint32_t *lanes, const void *src, size_t n) \
{ \
	const uint8_t *b = src; \
	size_t i; \
	for (i = 0; i < n; i += VW) \
		v_st(lanes + i, prim(b + i)); \
}
WIDEN8(widen_fp8_143, v_widen_fp8_143)
WIDEN8(widen_fp8_152, v_widen_fp8_152)

#define NARROW(name, stmt) \
static void name(void *dst, const uint32_t *lanes, size_t n) \
{ \
	uint16_t *h = dst; \
	size_t i; \
	for (i = 0; i < n; i += VW) \
		stmt; \
}
NARROW(narrow_dl16, v_st16(h + i, v_narrow_dl16(v_ld(lanes + i))))
NARROW(narrow_bf16, v_st16(h + i, v_narrow_bf16(v_ld(lanes + i))))
NARROW(narrow_f16, v_narrow_f16(h + i, v_ld(lanes + i)))

#define NARROW8(name, prim) \
static void name(void *dst, const uint32_t *lanes, size_t n) \
{ \
	uint8_t *b = dst; \
	size_t i; \
	for (i = 0; i < n; i += VW) \
		v_st8(b + i, prim(v_ld(lanes + i))); \
}
NARROW8(narrow_fp8_143, v_narrow_fp8_143)
NARROW8(narrow_fp8_152, v_narrow_fp8_152)

static void widen_fp24(uint32_t *lanes, const void *src, size_t n)
{
	const uint32_t *w = src;
	size_t i;

	for (i = 0; i < n; i += VW)
		v_st(lanes + i, v_widen_fp24(v_ld(w + i)));
}

static void narrow_fp24(void *dst, const uint32_t *lanes, size_t n)
{
	uint32_t *w = dst;
	size_t i;

	for (i = 0; i < n; i += VW)
		v_st(w + i, v_narrow_fp24(v_ld(lanes + i)));
}

static void widen8(uint32_t *lanes, const void *src, size_t n)
{
	const int8_t *b = src;
	size_t i;

	for (i = 0; i < n; i++)
		lanes[i] = (uint32_t)(int32_t)b[i];
}

static void narrow8(void *dst, const uint32_t *lanes, size_t n)
{
	int8_t *b = dst;
	size_t i;

	for (i = 0; i < n; i++) {
		int32_t v = (int32_t)lanes[i];

		b[i] = (int8_t)(v < -128 ? -128 : v > 127 ? 127 : v);
	}
}

static void widen4(uint32_t *lanes, const void *src, size_t n)
{
	const uint8_t *b = src;
	size_t i;

	for (i = 0; i < n / 2; i++) {
		lanes[2 * i] = (uint32_t)((int32_t)((uint32_t)b[i] << 28) >> 28);
		lanes[2 * i + 1] = (uint32_t)((int32_t)((uint32_t)b[i] << 24) >> 28);
	}
}

static void narrow4(void *dst, const uint32_t *lanes, size_t n)
{
	uint8_t *b = dst;
	size_t i;

	for (i = 0; i < n / 2; i++) {
		int32_t lo = (int32_t)lanes[2 * i], hi = (int32_t)lanes[2 * i + 1];

		lo = lo < -8 ? -8 : lo > 7 ? 7 : lo;
		hi = hi < -8 ? -8 : hi > 7 ? 7 : hi;
		b[i] = (uint8_t)((lo & 15) | (hi & 15) << 4);
	}
}

static void canon(void *dst, const uint32_t *lanes, size_t n)
{
	uint32_t *o = dst;
	size_t i;

	for (i = 0; i < n; i += VW)
		v_st(o + i, v_canon((vf)v_ld(lanes + i)));
}

/* --- Lane-wise operations ------------------------------------------------------------------- */

#define ARGS uint32_t *dst, size_t sd, const uint32_t *pb, size_t sb, const uint32_t *pc, size_t sc, \
	     const uint32_t *pd, size_t sd2, size_t n, uint32_t imm
typedef vu lane_fn(vu b, vu c, vu d);

/*
 * k: how many sources the operation has. fix makes lanes of what lane_NAME() gives, which may be any NaN: narrowing
 * takes them all for one.
 */
#define OP_FIX(name, k, expr, fix) \
VINL vu lane_##name(vu b, vu c, vu d) \
{ \
	(void)c; (void)d; \
	return (vu)(expr); \
} \
static void op_##name(ARGS) \
{ \
	size_t i; \
	(void)imm; \
	for (; n--; dst += sd, pb += sb, pc += sc, pd += sd2) { \
		for (i = 0; i < LANES; i += VW) { \
			vu c = (k) > 1 ? v_ld(pc + i) : v_u(0), d = (k) > 2 ? v_ld(pd + i) : v_u(0); \
			v_st(dst + i, fix(lane_##name(v_ld(pb + i), c, d))); \
		} \
	} \
}
#define CANON(x) v_canon((vf)(x))
#define FOP(name, k, expr) OP_FIX(name, k, expr, CANON)
#define OP(name, k, expr) OP_FIX(name, k, expr, )

VINL vu min_max(vi less, vu b, vu c)
{
	return v_sel(v_isnan(b) | v_isnan(c), v_u(SPYRE_FP32_NAN), v_sel(less, b, c));
}

#define ONE ((vi)v_u(0x3f800000))

OP(mov, 1, b)
FOP(add, 2, (vf)b + (vf)c)
FOP(sub, 2, (vf)b - (vf)c)
FOP(mul, 2, (vf)b * (vf)c)
FOP(fma, 3, v_fma((vf)b, (vf)c, (vf)d))
OP(min, 2, min_max((vi)((vf)b < (vf)c), b, c))
OP(max, 2, min_max((vi)((vf)b > (vf)c), b, c))
OP(abs, 1, b & 0x7fffffffu)
OP(neg, 1, b ^ 0x80000000u)
OP(cmpeq, 2, (vu)(((vi)((vf)b == (vf)c)) & ONE))
OP(cmplt, 2, (vu)(((vi)((vf)b < (vf)c)) & ONE))
OP(cmple, 2, (vu)(((vi)((vf)b <= (vf)c)) & ONE))
OP(sel, 3, v_sel((vi)(d != 0), b, c))
OP(iadd, 2, b + c)
OP(isub, 2, b - c)
OP(imul, 2, b * c)
OP(imin, 2, v_sel((vi)((vi)b < (vi)c), b, c))
OP(imax, 2, v_sel((vi)((vi)b > (vi)c), b, c))
OP(and, 2, b & c)
OP(or, 2, b | c)
OP(xor, 2, b ^ c)
OP(shl, 2, b << (c & 31u))
OP(shr, 2, b >> (c & 31u))
OP(sra, 2, (vu)((vi)b >> (vi)(c & 31u)))
OP(i2f, 1, (vu)__builtin_convertvector((vi)b, vf))

/* Nearest even by adding and taking off 2^23, where that rounds; exact from there on; then saturation. */
VINL vu f_f2i(vf x)
{
	vu sign = (vu)x & 0x80000000u;
	vf big = (vf)(sign | 0x4b000000u), r, in;

	r = v_self((vi)(v_abs((vu)x) < 0x4b000000u), (x + big) - big, x);
	in = v_self((vi)(v_abs((vu)r) < 0x4f000000u), r, v_f(0.0f));
	return v_sel((vi)(v_abs((vu)r) < 0x4f000000u), (vu)__builtin_convertvector(in, vi),
		     v_sel(v_isnan((vu)x), v_u(0), v_u(0x7fffffff) + (sign >> 31)));
}

OP(f2i, 1, f_f2i((vf)b))

static void op_bcast(ARGS)
{
	size_t i;

	(void)pc; (void)sc; (void)pd; (void)sd2;
	for (; n--; dst += sd, pb += sb) {
		uint32_t x = pb[imm];

		for (i = 0; i < LANES; i++)
			dst[i] = x;
	}
}

static void op_rot(ARGS)
{
	uint32_t t[2 * LANES];

	(void)pc; (void)sc; (void)pd; (void)sd2;
	for (; n--; dst += sd, pb += sb) {
		memcpy(t, pb, LANES * 4);
		memcpy(t + LANES, pb, LANES * 4);
		memcpy(dst, t + imm % LANES, LANES * 4);
	}
}

#ifdef __AVX512F__
/* Lane i of a and b, which follow each other, at its index modulo 32. */
static vu pick(vu a, vu b, vu index)
{
	return (vu)_mm512_permutex2var_epi32((__m512i)a, (__m512i)index, (__m512i)b);
}

/* A register is four vectors: of each pair a lane is picked by its low five bits, of the pairs by the sixth. */
static void op_shuf(ARGS)
{
	size_t i;

	(void)pd; (void)sd2; (void)imm;
	for (; n--; dst += sd, pb += sb, pc += sc) {
		vu x[4], t[4];

		for (i = 0; i < 4; i++)
			x[i] = v_ld(pb + i * VW);
		for (i = 0; i < 4; i++) {
			vu k = v_ld(pc + i * VW);

			t[i] = v_sel((vi)((k & 32u) != 0), pick(x[2], x[3], k), pick(x[0], x[1], k));
		}
		/* dst may be either source. */
		for (i = 0; i < 4; i++)
			v_st(dst + i * VW, t[i]);
	}
}
#else
static void op_shuf(ARGS)
{
	uint32_t t[LANES];
	size_t i;

	(void)pd; (void)sd2; (void)imm;
	for (; n--; dst += sd, pb += sb, pc += sc) {
		/* dst may be either source. */
		for (i = 0; i < LANES; i++)
			t[i] = pb[pc[i] & (LANES - 1)];
		memcpy(dst, t, sizeof(t));
	}
}
#endif

static void op_lmask(ARGS)
{
	uint32_t i, first = imm & 0xffff, count = imm >> 16;

	(void)pb; (void)sb; (void)pc; (void)sc; (void)pd; (void)sd2;
	for (; n--; dst += sd)
		for (i = 0; i < LANES; i++)
			dst[i] = i - first < count ? 0x3f800000u : 0;
}

static void op_iota(ARGS)
{
	uint32_t i;

	(void)pb; (void)sb; (void)pc; (void)sc; (void)pd; (void)sd2;
	for (; n--; dst += sd)
		for (i = 0; i < LANES; i++)
			dst[i] = imm + i;
}

/* --- Special functions ---------------------------------------------------------------------- */

/* 2^n as a factor, -126 <= n <= 127. */
VINL vf pow2(vi n)
{
	return (vf)((n + 127) << 23);
}

/*
 * e^x: x = n ln 2 + r, |r| <= 0.347, then a polynomial and two exact scalings, of which the second
 * rounds when the result is subnormal.
 */
VINL vf f_exp(vf x)
{
	const vf magic = v_f(0x1.8p23f);
	vf z, nf, r, p, y;
	vi n, n1;

	/* Beyond these the result is 0 or infinite anyway; a NaN stays. */
	y = v_self((vi)(x > v_f(89.0f)), v_f(89.0f), x);
	y = v_self((vi)(y < v_f(-104.0f)), v_f(-104.0f), y);
	z = v_fma(y, v_f(0x1.715476p+0f), magic);
	nf = z - magic;
	n = (vi)z - 0x4b400000;
	r = v_fma(nf, v_f(-0x1.62ep-1f), y);
	r = v_fma(nf, v_f(-0x1.0bfbe8p-15f), r);
	p = v_f(0x1.a12588p-13f);
	p = v_fma(p, r, v_f(0x1.6d43d2p-10f));
	p = v_fma(p, r, v_f(0x1.1110ep-7f));
	p = v_fma(p, r, v_f(0x1.5554e8p-5f));
	p = v_fma(p, r, v_f(0x1.555556p-3f));
	p = v_fma(p, r, v_f(0.5f));
	p = v_fma(p, r * r, r) + v_f(1.0f);
	/* A NaN makes n garbage: keep the scalings in range. */
	n = (vi)v_sel(v_isnan((vu)x), v_u(0), (vu)n);
	n1 = n >> 1;
	return p * pow2(n1) * pow2(n - n1);
}

/* ln x: x = m 2^e with m in [sqrt 1/2, sqrt 2), f = m - 1: f - f^2/2 + f^3 P(f) + e ln 2. */
VINL vu f_ln(vf x)
{
	vi small = (vi)(x < v_f(0x1p-126f)), e;
	vu u = v_sel(small, (vu)(x * v_f(0x1p23f)), (vu)x), t;
	vf f, p, ef, r;

	t = u - 0x3f3504f3u;
	e = ((vi)t >> 23) - (small & 23);
	f = (vf)((t & 0x7fffffu) + 0x3f3504f3u) - v_f(1.0f);
	ef = __builtin_convertvector(e, vf);
	p = v_f(0x1.1d8ea4p-4f);
	p = v_fma(p, f, v_f(-0x1.d635bcp-4f));
	p = v_fma(p, f, v_f(0x1.dea282p-4f));
	p = v_fma(p, f, v_f(-0x1.fcf4c6p-4f));
	p = v_fma(p, f, v_f(0x1.23d21ap-3f));
	p = v_fma(p, f, v_f(-0x1.555b4ap-3f));
	p = v_fma(p, f, v_f(0x1.999d5ap-3f));
	p = v_fma(p, f, v_f(-0x1.fffffcp-3f));
	p = v_fma(p, f, v_f(0x1.555554p-2f));
	p = v_fma(p, f, v_f(-0.5f));
	p = v_fma(p * f, f, ef * v_f(0x1.0bfbe8p-15f));
	r = v_fma(ef, v_f(0x1.62ep-1f), p + f);
	/* 0: -inf; below: NaN; infinity and NaN stay. */
	u = v_sel((vi)(x == v_f(0.0f)), v_u(0xff800000), (vu)r);
	u = v_sel((vi)(x < v_f(0.0f)), v_u(SPYRE_FP32_NAN), u);
	u = v_sel((vi)((vu)x == 0x7f800000u), (vu)x, u);
	return v_sel(v_isnan((vu)x), v_u(SPYRE_FP32_NAN), u);
}

VINL vf f_absf(vf x)
{
	return (vf)v_abs((vu)x);
}

VINL vu f_sigmoid(vf x)
{
	vf e = f_exp(-f_absf(x)), num;

	num = v_self((vi)(x < v_f(0.0f)), e, v_f(1.0f));
	return v_canon(num / (v_f(1.0f) + e));
}

VINL vu f_tanh(vf x)
{
	vf a = f_absf(x), z = a * a, p, big;
	vu r;

	p = v_f(0x1.2c83c2p-9f);
	p = v_fma(p, z, v_f(-0x1.116a16p-7f));
	p = v_fma(p, z, v_f(0x1.64a976p-6f));
	p = v_fma(p, z, v_f(-0x1.ba08c4p-5f));
	p = v_fma(p, z, v_f(0x1.1110eap-3f));
	p = v_fma(p, z, v_f(-0x1.555556p-2f));
	p = v_fma(p * z, a, a);
	big = v_f(1.0f) - v_f(2.0f) / (f_exp(a + a) + v_f(1.0f));
	r = (vu)v_self((vi)(a < v_f(0.625f)), p, big) | ((vu)x & 0x80000000u);
	return v_canon((vf)r);
}

/* erf(y) / y - 1 for z = y^2, 0 <= y <= 0.5. */
VINL vf erf_poly(vf z)
{
	vf p = v_f(0x1.354512p-8f);

	p = v_fma(p, z, v_f(-0x1.b6661p-6f));
	p = v_fma(p, z, v_f(0x1.ce251p-4f));
	p = v_fma(p, z, v_f(-0x1.812732p-2f));
	return v_fma(p, z, v_f(0x1.06eba8p-3f));
}

/* e^(y^2) erfc(y) for 0.5 <= y <= 10.3, as P((y - 2) / (y + 2)) / (1 + 2 y). */
VINL vf erfcx(vf y)
{
	vf t = (y - v_f(2.0f)) / (y + v_f(2.0f)), p = v_f(-0x1.65b448p-10f);

	p = v_fma(p, t, v_f(0x1.f65d18p-11f));
	p = v_fma(p, t, v_f(0x1.1e11fap-7f));
	p = v_fma(p, t, v_f(-0x1.0497d4p-7f));
	p = v_fma(p, t, v_f(-0x1.bc3a7ap-5f));
	p = v_fma(p, t, v_f(0x1.4ff5d8p-3f));
	p = v_fma(p, t, v_f(-0x1.540762p-3f));
	p = v_fma(p, t, v_f(-0x1.7bf5bp-4f));
	p = v_fma(p, t, v_f(0x1.46e80ep+0f));
	return p / v_fma(v_f(2.0f), y, v_f(1.0f));
}

VINL vu f_erf(vf x)
{
	vf a = f_absf(x), z, s, low, y, e, high;
	vu r;

	s = v_fma(a, erf_poly(a * a), a);
	/* From 4 on erf is 1 in fp32. */
	y = v_self((vi)(a > v_f(4.0f)), v_f(4.0f), a);
	z = y * y;
	low = v_fma(y, y, -z);
	e = f_exp(-z);
	e = v_fma(e, -low, e);
	high = v_f(1.0f) - e * erfcx(y);
	r = (vu)v_self((vi)(a < v_f(0.5f)), s, high) | ((vu)x & 0x80000000u);
	return v_sel(v_isnan((vu)x), v_u(SPYRE_FP32_NAN), r);
}

/* x Phi(x); for x < 0 by erfc, which keeps the relative error of the tail small. */
VINL vu f_gelu(vf x)
{
	vf a = f_absf(x), c, y, h, z, low, e, q, s, phi;
	vi neg = (vi)(x < v_f(0.0f));
	vu r;

	/* Beyond 14.5 the tail is 0 and Phi is 1. */
	c = v_self((vi)(a > v_f(14.5f)), v_f(14.5f), a);
	y = c * v_f(0x1.6a09e6p-1f);
	h = c * v_f(0.5f);
	z = h * c;
	low = v_fma(h, c, -z);
	e = f_exp(-z);
	e = v_fma(e, -low, e);
	q = v_f(0.5f) * erfcx(y);
	s = v_fma(y, erf_poly(y * y), y);
	/* Small arguments: 1/2 + erf/2 of the sign. */
	s = v_self(neg, v_fma(s, v_f(-0.5f), v_f(0.5f)), v_fma(s, v_f(0.5f), v_f(0.5f)));
	/* x e q, the factor that may become subnormal last; x = -14.5 or less gives -0. */
	phi = (x * q) * e;
	phi = v_self((vi)(x < v_f(-14.5f)), v_f(-0.0f), phi);
	s = v_self((vi)(y < v_f(0.5f)), s * x, v_self(neg, phi, x - phi));
	/* x - x q e with x infinite */
	r = v_sel((vi)(x > v_f(14.5f)), (vu)x, (vu)s);
	return v_sel(v_isnan((vu)x), v_u(SPYRE_FP32_NAN), r);
}

FOP(recip, 1, v_f(1.0f) / (vf)b)
FOP(rsqrt, 1, v_f(1.0f) / v_sqrt((vf)b))
FOP(sqrt, 1, v_sqrt((vf)b))
FOP(exp, 1, f_exp((vf)b))
OP(ln, 1, f_ln((vf)b))
OP(sigmoid, 1, f_sigmoid((vf)b))
OP(tanh, 1, f_tanh((vf)b))
OP(erf, 1, f_erf((vf)b))
OP(gelu, 1, f_gelu((vf)b))

/* --- Reductions ----------------------------------------------------------------------------- */

VINL uint32_t s_canon(uint32_t x)
{
	return (x & 0x7fffffffu) > 0x7f800000u ? SPYRE_FP32_NAN : x;
}

VINL uint32_t s_pick(int take_x, uint32_t x, uint32_t y)
{
	if ((x & 0x7fffffffu) > 0x7f800000u || (y & 0x7fffffffu) > 0x7f800000u)
		return SPYRE_FP32_NAN;
	return take_x ? x : y;
}

/* The same step by vectors as long as they are full, then by lanes. */
#define S(x) spyre_fp32_from_bits(x)
#define REDUCE(name, vexpr, sexpr) \
static void op_##name(ARGS) \
{ \
	uint32_t t[LANES] __attribute__((aligned(64))); \
	size_t i, half; \
	(void)pc; (void)sc; (void)pd; (void)sd2; (void)imm; \
	for (; n--; dst += sd, pb += sb) { \
		memcpy(t, pb, sizeof(t)); \
		for (half = 32; half >= VW; half /= 2) \
			for (i = 0; i < half; i += VW) { \
				vu x = v_ld(t + i), y = v_ld(t + i + half); \
				v_st(t + i, vexpr); \
			} \
		for (; half; half /= 2) \
			for (i = 0; i < half; i++) { \
				uint32_t x = t[i], y = t[i + half]; \
				t[i] = sexpr; \
			} \
		for (i = 0; i < LANES; i += VW) \
			v_st(dst + i, v_u(t[0])); \
	} \
}

REDUCE(rsum, v_canon((vf)x + (vf)y), s_canon(spyre_fp32_bits(S(x) + S(y))))
REDUCE(rmax, min_max((vi)((vf)x > (vf)y), x, y), s_pick(S(x) > S(y), x, y))
REDUCE(rmin, min_max((vi)((vf)x < (vf)y), x, y), s_pick(S(x) < S(y), x, y))
#undef S

/* The first maximum; a NaN counts as greater than all, zeros of both signs are equal. */
static void op_rargmax(ARGS)
{
	size_t i, best;

	(void)pc; (void)sc; (void)pd; (void)sd2; (void)imm;
	for (; n--; dst += sd, pb += sb) {
		int64_t top = INT64_MIN;

		for (best = 0, i = 0; i < LANES; i++) {
			uint32_t m = pb[i] & 0x7fffffffu;
			int64_t key = m > 0x7f800000u ? INT32_MAX : pb[i] >> 31 ? -(int64_t)m : (int64_t)m;

			if (key > top) {
				top = key;
				best = i;
			}
		}
		for (i = 0; i < LANES; i++)
			dst[i] = (uint32_t)best;
	}
}

/* Below lane 0 lie -0.0s: adding one changes nothing. From above, so that what is read is the step before. */
static void op_scan(ARGS)
{
	uint32_t t[LANES / 2 + LANES] __attribute__((aligned(64))), *lanes = t + LANES / 2;
	size_t i, s;

	(void)pc; (void)sc; (void)pd; (void)sd2; (void)imm;
	for (i = 0; i < LANES / 2; i++)
		t[i] = 0x80000000u;
	for (; n--; dst += sd, pb += sb) {
		memcpy(lanes, pb, LANES * 4);
		for (s = 1; s < LANES; s *= 2)
			for (i = LANES; i; i -= VW) {
				vf x = (vf)v_ld(lanes + i - VW), y = (vf)v_ld(lanes + i - VW - s);

				v_st(lanes + i - VW, v_canon(x + y));
			}
		memcpy(dst, lanes, LANES * 4);
	}
}

static void op_rrank(ARGS)
{
	int32_t key[LANES] __attribute__((aligned(64)));
	uint32_t rank[LANES] __attribute__((aligned(64)));
	size_t i, j;

	(void)pc; (void)sc; (void)pd; (void)sd2; (void)imm;
	for (; n--; dst += sd, pb += sb) {
		/* Integers in the order of the values. */
		for (i = 0; i < LANES; i += VW) {
			vu x = v_ld(pb + i), m = v_abs(x);
			vu k = v_sel((vi)x < 0, (vu)(-(vi)m), m);

			v_st(key + i, v_sel(v_isnan(x), v_u(INT32_MAX), k));
		}
		memset(rank, 0, sizeof(rank));
		for (j = 0; j < LANES; j++) {
			vi k = (vi)v_u((uint32_t)key[j]);

			/* Equal ones count for the vectors behind j's. */
			for (i = 0; i < LANES; i += VW) {
				vi x = (vi)v_ld(key + i), more = k > x;

				if (i > j)
					more = k >= x;
				v_st(rank + i, v_ld(rank + i) - (vu)more);
			}
		}
		/* In j's own vector the equal ones behind it are still missing. */
		for (i = 0; i < LANES; i += VW)
			for (j = i; j < i + VW; j++)
				for (size_t l = j + 1; l < i + VW; l++)
					rank[l] += key[l] == key[j];
		memcpy(dst, rank, sizeof(rank));
	}
}

/* --- From words to words -------------------------------------------------------------------- */

VINL vu ld_packed(const uint16_t *p, enum spyre_format fmt)
{
	return fmt == SPYRE_SEN169_FP16 ? v_widen_dl16(v_ld16(p)) :
	       fmt == SPYRE_IEEE_FP16 ? v_widen_f16(p) : v_widen_bf16(v_ld16(p));
}

VINL void st_packed(uint16_t *p, vu v, enum spyre_format fmt)
{
	if (fmt == SPYRE_IEEE_FP16)
		v_narrow_f16(p, v);
	else
		v_st16(p, fmt == SPYRE_SEN169_FP16 ? v_narrow_dl16(v) : v_narrow_bf16(v));
}

/*
 * Operands may lie in memory (soc_lx.h). The host's own prefetcher begins anew with each page; so many lanes ahead hide
 * the latency.
 */
#define AHEAD 1024

#if VW == 16
/* A pair of vectors at lane i. */
VINL void stream_dl16(uint16_t *o, const uint16_t *const p[3], const uint32_t *const q[3], size_t i, unsigned int nsrc,
		      unsigned int packed, lane_fn *f, bool nan)
{
	vu x[3][2] = { 0 };
	unsigned int k;

	for (k = 0; k < nsrc; k++) {
		if (packed & 1u << k)
			v_widen_dl16_pair(p[k] + i, x[k], nan);
		else
			v_pair(q[k] + i % LANES, x[k]);
	}
	v_narrow_dl16_pair(o, f(x[0][0], x[1][0], x[2][0]), f(x[0][1], x[1][1], x[2][1]), nan);
}
#endif

/* packed, fmt and f are constants where this is expanded. */
VINL void stream(void *dst, const void *const src[3], unsigned int nsrc, unsigned int packed, enum spyre_format fmt,
		 size_t n, lane_fn *f)
{
	const uint16_t *p[3] = { src[0], src[1], src[2] };
	const uint32_t *q[3] = { src[0], src[1], src[2] };
	uint16_t *o = dst;
	size_t i, j;
	unsigned int k;

#if VW == 16
	if (fmt == SPYRE_SEN169_FP16) {
		for (i = 0; i < n * LANES; i += 2 * VW) {
			/* What comes from a register may be NaN; of DL16 numbers no operation here makes one. */
			bool nan = packed != (1u << nsrc) - 1;

			for (k = 0; k < nsrc; k++) {
				if (!(packed & 1u << k))
					continue;
				__builtin_prefetch(p[k] + i + AHEAD, 0, 2);
				nan |= v_nan_dl16_pair(p[k] + i) != 0;
			}
			if (__builtin_expect(nan, 0))
				stream_dl16(o + i, p, q, i, nsrc, packed, f, true);
			else
				stream_dl16(o + i, p, q, i, nsrc, packed, f, false);
		}
		return;
	}
#endif
	for (i = 0; i < n * LANES; i += LANES) {
		for (j = 0; j < LANES; j += VW) {
			vu x[3] = { 0 };

			for (k = 0; k < nsrc; k++)
				x[k] = packed & 1u << k ? ld_packed(p[k] + i + j, fmt) : v_ld(q[k] + j);
			st_packed(o + i + j, f(x[0], x[1], x[2]), fmt);
		}
	}
}

#define PACKED(k, fmt, nsrc, f) case k: stream(dst, src, nsrc, k, fmt, n, f); break;
#define PACKED1(fmt, f) PACKED(1, fmt, 1, f)
#define PACKED2(fmt, f) PACKED(1, fmt, 2, f) PACKED(2, fmt, 2, f) PACKED(3, fmt, 2, f)
#define PACKED3(fmt, f) PACKED(1, fmt, 3, f) PACKED(2, fmt, 3, f) PACKED(3, fmt, 3, f) PACKED(4, fmt, 3, f) \
			PACKED(5, fmt, 3, f) PACKED(6, fmt, 3, f) PACKED(7, fmt, 3, f)
#define STREAM(name, nsrc) \
static void stream_##name(void *dst, const void *const src[3], unsigned int packed, enum spyre_format fmt, size_t n) \
{ \
	if (fmt == SPYRE_SEN169_FP16) \
		switch (packed) { PACKED##nsrc(SPYRE_SEN169_FP16, lane_##name) } \
	else if (fmt == SPYRE_IEEE_FP16) \
		switch (packed) { PACKED##nsrc(SPYRE_IEEE_FP16, lane_##name) } \
	else \
		switch (packed) { PACKED##nsrc(SPYRE_BFLOAT16, lane_##name) } \
}

/*
 * What programs apply to whole tensors; behind the special functions the way through memory costs little. None hands on
 * the bits of a register, which may be a signalling NaN's.
 */
STREAM(mov, 1)
STREAM(add, 2)
STREAM(sub, 2)
STREAM(mul, 2)
STREAM(fma, 3)
STREAM(min, 2)
STREAM(max, 2)
STREAM(abs, 1)
STREAM(neg, 1)

const struct vec_ops VEC_OPS = {
	.name = VEC_NAME,
	.widen = {
		[SPYRE_SEN169_FP16] = widen_dl16,
		[SPYRE_IEEE_FP16] = widen_f16,
		[SPYRE_BFLOAT16] = widen_bf16,
		[SPYRE_SENINT8] = widen8,
		[SPYRE_SEN143_FP8] = widen_fp8_143,
		[SPYRE_SEN152_FP8] = widen_fp8_152,
		[SPYRE_SEN18F_FP24] = widen_fp24,
		[SPYRE_SENINT4] = widen4,
	},
	.narrow = {
		[SPYRE_SEN169_FP16] = narrow_dl16,
		[SPYRE_IEEE_FP16] = narrow_f16,
		[SPYRE_BFLOAT16] = narrow_bf16,
		[SPYRE_SENINT8] = narrow8,
		[SPYRE_SEN143_FP8] = narrow_fp8_143,
		[SPYRE_SEN152_FP8] = narrow_fp8_152,
		[SPYRE_SEN18F_FP24] = narrow_fp24,
		[SPYRE_SENINT4] = narrow4,
	},
	.canon = canon,
	.op = {
		[SPYRE_OP_MOV] = op_mov,
		[SPYRE_OP_ADD] = op_add,
		[SPYRE_OP_SUB] = op_sub,
		[SPYRE_OP_MUL] = op_mul,
		[SPYRE_OP_FMA] = op_fma,
		[SPYRE_OP_MIN] = op_min,
		[SPYRE_OP_MAX] = op_max,
		[SPYRE_OP_ABS] = op_abs,
		[SPYRE_OP_NEG] = op_neg,
		[SPYRE_OP_CMPEQ] = op_cmpeq,
		[SPYRE_OP_CMPLT] = op_cmplt,
		[SPYRE_OP_CMPLE] = op_cmple,
		[SPYRE_OP_SEL] = op_sel,
		[SPYRE_OP_LMASK] = op_lmask,
		[SPYRE_OP_IOTA] = op_iota,
		[SPYRE_OP_SHUF] = op_shuf,
		[SPYRE_OP_IADD] = op_iadd,
		[SPYRE_OP_ISUB] = op_isub,
		[SPYRE_OP_IMUL] = op_imul,
		[SPYRE_OP_IMIN] = op_imin,
		[SPYRE_OP_IMAX] = op_imax,
		[SPYRE_OP_AND] = op_and,
		[SPYRE_OP_OR] = op_or,
		[SPYRE_OP_XOR] = op_xor,
		[SPYRE_OP_SHL] = op_shl,
		[SPYRE_OP_SHR] = op_shr,
		[SPYRE_OP_SRA] = op_sra,
		[SPYRE_OP_I2F] = op_i2f,
		[SPYRE_OP_F2I] = op_f2i,
		[SPYRE_OP_BCAST] = op_bcast,
		[SPYRE_OP_ROT] = op_rot,
		[SPYRE_OP_RECIP] = op_recip,
		[SPYRE_OP_RSQRT] = op_rsqrt,
		[SPYRE_OP_SQRT] = op_sqrt,
		[SPYRE_OP_EXP] = op_exp,
		[SPYRE_OP_LN] = op_ln,
		[SPYRE_OP_SIGMOID] = op_sigmoid,
		[SPYRE_OP_TANH] = op_tanh,
		[SPYRE_OP_ERF] = op_erf,
		[SPYRE_OP_GELU] = op_gelu,
		[SPYRE_OP_RSUM] = op_rsum,
		[SPYRE_OP_RMAX] = op_rmax,
		[SPYRE_OP_RMIN] = op_rmin,
		[SPYRE_OP_RARGMAX] = op_rargmax,
		[SPYRE_OP_SCAN] = op_scan,
		[SPYRE_OP_RRANK] = op_rrank,
	},
	.stream = {
		[SPYRE_OP_MOV] = stream_mov,
		[SPYRE_OP_ADD] = stream_add,
		[SPYRE_OP_SUB] = stream_sub,
		[SPYRE_OP_MUL] = stream_mul,
		[SPYRE_OP_FMA] = stream_fma,
		[SPYRE_OP_MIN] = stream_min,
		[SPYRE_OP_MAX] = stream_max,
		[SPYRE_OP_ABS] = stream_abs,
		[SPYRE_OP_NEG] = stream_neg,
	},
};
