// SPDX-License-Identifier: MIT
#include <math.h>
#include <string.h>

#include "ref_num.h"

/* --- Formats -------------------------------------------------------------------------------- */

struct layout {
	unsigned int bits, fraction;
	int bias;
	bool subnormals; /* exponent 0 is subnormal; else it is a normal exponent, code 0 being zero
			  */
	bool away;	 /* ties away from zero, else to even */
	uint32_t top;	 /* first magnitude that is not a number */
	uint32_t nan;
	bool inf;      /* .top is infinity, else NaN */
	double *value; /* by magnitude, up to .top with the value it would have */
};

static double values[5][0x8000];
static struct layout layouts[SPYRE_FORMATS] = {
	[SPYRE_SEN169_FP16] = { 16, 9, 31, false, true, 0x7fff, 0x7fff, false, values[0] },
	[SPYRE_IEEE_FP16] = { 16, 10, 15, true, false, 0x7c00, 0x7e00, true, values[1] },
	[SPYRE_BFLOAT16] = { 16, 7, 127, true, false, 0x7f80, 0x7fc0, true, values[2] },
	/* Largest 448; all ones is the NaN, which overflow gives. */
	[SPYRE_SEN143_FP8] = { 8, 3, 7, true, false, 0x7f, 0x7f, false, values[3] },
	[SPYRE_SEN152_FP8] = { 8, 2, 15, true, false, 0x7c, 0x7e, true, values[4] },
};

static double value_of(const struct layout *l, uint32_t m)
{
	int e = (int)(m >> l->fraction);
	double f = (double)(m & ((1u << l->fraction) - 1)) / (double)(1u << l->fraction);

	if (m == 0)
		return 0;
	if (e == 0 && l->subnormals)
		return ldexp(f, 1 - l->bias);
	return ldexp(1 + f, e - l->bias);
}

static const struct layout *layout(unsigned int fmt)
{
	struct layout *l = &layouts[fmt];
	uint32_t m;

	if (l->value && l->value[l->top] == 0)
		for (m = 0; m <= l->top; m++)
			l->value[m] = value_of(l, m);
	return l;
}

bool ref_is_float(unsigned int fmt)
{
	return fmt != SPYRE_SENINT8 && fmt != SPYRE_IEEE_INT32 && fmt != SPYRE_SENINT4;
}

bool ref_is_nan(uint32_t lane)
{
	return (lane & 0x7fffffff) > 0x7f800000;
}

uint32_t ref_canon(uint32_t lane)
{
	return ref_is_nan(lane) ? REF_NAN : lane;
}

float ref_float(uint32_t lane)
{
	float f;

	memcpy(&f, &lane, 4);
	return f;
}

uint32_t ref_lane(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

unsigned int ref_bits(unsigned int fmt)
{
	switch (fmt) {
	case SPYRE_IEEE_FP32:
	case SPYRE_IEEE_INT32:
	case SPYRE_SEN18F_FP24:
		return 32;
	case SPYRE_SENINT8:
		return 8;
	case SPYRE_SENINT4:
		return 4;
	default:
		return layouts[fmt].bits;
	}
}

uint32_t ref_widen(unsigned int fmt, uint32_t code)
{
	const struct layout *l;
	uint32_t sign, m;

	switch (fmt) {
	case SPYRE_IEEE_FP32:
	case SPYRE_IEEE_INT32:
		return code;
	case SPYRE_SEN18F_FP24:
		return ref_canon(code & 0xffffff00);
	case SPYRE_SENINT8:
		return (uint32_t)(int32_t)(int8_t)code;
	case SPYRE_SENINT4:
		return (code & 8) ? code | 0xfffffff0 : code & 7;
	}
	l = layout(fmt);
	sign = code >> (l->bits - 1) & 1;
	m = code & ((1u << (l->bits - 1)) - 1);
	/* Inside, a NaN is quiet and keeps sign and payload; it leaves as the canonical one. */
	if (m > l->top || (m == l->top && !l->inf))
		return sign << 31 | 0x7fc00000 |
		       (l->inf ? (m & ((1u << l->fraction) - 1)) << (23 - l->fraction) : 0);
	if (m == l->top)
		return sign << 31 | 0x7f800000;
	return sign << 31 | ref_lane((float)l->value[m]);
}

/* Of 32-bit magnitudes the upper 24 bits stay; nearest, ties to even. */
static uint32_t to_fp24(uint32_t lane)
{
	uint64_t m = lane & 0x7fffffff, lo = m & ~0xffull, hi = lo + 0x100, r;

	if (ref_is_nan(lane))
		return REF_NAN;
	/* Neighbouring codes are neighbouring numbers, infinity being where the next one would be.
	 */
	r = m - lo < hi - m ? lo : m - lo > hi - m ? hi : (lo & 0x100) ? hi : lo;
	return (lane & 0x80000000) | (uint32_t)r;
}

static uint32_t saturate(uint32_t lane, int32_t min, int32_t max)
{
	int32_t v = (int32_t)lane;

	return (uint32_t)(v < min ? min : v > max ? max : v);
}

uint32_t ref_narrow(unsigned int fmt, uint32_t lane)
{
	const struct layout *l;
	uint32_t sign, lo, hi;
	double x, below, above;

	switch (fmt) {
	case SPYRE_IEEE_INT32:
		return lane;
	case SPYRE_IEEE_FP32:
		return ref_canon(lane);
	case SPYRE_SEN18F_FP24:
		return to_fp24(lane);
	case SPYRE_SENINT8:
		return saturate(lane, -128, 127) & 0xff;
	case SPYRE_SENINT4:
		return saturate(lane, -8, 7) & 0xf;
	}
	l = layout(fmt);
	if (ref_is_nan(lane))
		return l->nan;
	sign = (lane >> 31) << (l->bits - 1);
	x = fabs((double)ref_float(lane));
	if (x >= l->value[l->top])
		return sign | l->top;
	/* value[lo] <= x < value[hi] */
	lo = 0;
	hi = l->top;
	while (hi - lo > 1) {
		uint32_t mid = (lo + hi) / 2;

		if (l->value[mid] <= x)
			lo = mid;
		else
			hi = mid;
	}
	/*
	 * x has 24 significant bits and lies next to values of at most 11: where the halves are
	 * alike, the differences are exact in double, and where they are not, their rounding cannot
	 * change which is less.
	 */
	below = x - l->value[lo];
	above = l->value[hi] - x;
	if (below < above)
		return sign | lo;
	if (below > above)
		return sign | hi;
	return sign | (l->away ? hi : (lo & 1) ? hi : lo);
}

/* --- Operations ----------------------------------------------------------------------------- */

static uint32_t from_double(double x)
{
	return ref_canon(ref_lane((float)x));
}

static uint32_t f2i(float f)
{
	double r;

	if (isnan(f))
		return 0;
	r = nearbyint((double)f);
	if (r >= 2147483647.0)
		return 0x7fffffff;
	if (r <= -2147483648.0)
		return 0x80000000;
	return (uint32_t)(int32_t)r;
}

uint32_t ref_op(unsigned int op, uint32_t b, uint32_t c, uint32_t d)
{
	float fb = ref_float(b), fc = ref_float(c), fd = ref_float(d);
	double x = fb;

	switch (op) {
	case SPYRE_OP_MOV:
		return b;
	case SPYRE_OP_ADD:
		return ref_canon(ref_lane(fb + fc));
	case SPYRE_OP_SUB:
		return ref_canon(ref_lane(fb - fc));
	case SPYRE_OP_MUL:
		return ref_canon(ref_lane(fb * fc));
	case SPYRE_OP_FMA:
		return ref_canon(ref_lane(fmaf(fb, fc, fd)));
	case SPYRE_OP_MIN:
		return ref_is_nan(b) || ref_is_nan(c) ? REF_NAN : fb < fc ? b : c;
	case SPYRE_OP_MAX:
		return ref_is_nan(b) || ref_is_nan(c) ? REF_NAN : fb > fc ? b : c;
	case SPYRE_OP_ABS:
		return b & 0x7fffffff;
	case SPYRE_OP_NEG:
		return b ^ 0x80000000;
	case SPYRE_OP_CMPEQ:
		return fb == fc ? 0x3f800000 : 0;
	case SPYRE_OP_CMPLT:
		return fb < fc ? 0x3f800000 : 0;
	case SPYRE_OP_CMPLE:
		return fb <= fc ? 0x3f800000 : 0;
	case SPYRE_OP_SEL:
		return d != 0 ? b : c;
	case SPYRE_OP_IADD:
		return b + c;
	case SPYRE_OP_ISUB:
		return b - c;
	case SPYRE_OP_IMUL:
		return (uint32_t)((uint64_t)b * c);
	case SPYRE_OP_IMIN:
		return (int32_t)b < (int32_t)c ? b : c;
	case SPYRE_OP_IMAX:
		return (int32_t)b > (int32_t)c ? b : c;
	case SPYRE_OP_AND:
		return b & c;
	case SPYRE_OP_OR:
		return b | c;
	case SPYRE_OP_XOR:
		return b ^ c;
	case SPYRE_OP_SHL:
		return b << (c & 31);
	case SPYRE_OP_SHR:
		return b >> (c & 31);
	case SPYRE_OP_SRA:
		return (uint32_t)((int32_t)b >> (c & 31));
	case SPYRE_OP_I2F:
		return ref_lane((float)(int32_t)b);
	case SPYRE_OP_F2I:
		return f2i(fb);
	case SPYRE_OP_RECIP:
		return from_double(1 / x);
	case SPYRE_OP_RSQRT:
		return from_double(1 / sqrt(x));
	case SPYRE_OP_SQRT:
		return from_double(sqrt(x));
	case SPYRE_OP_EXP:
		return from_double(exp(x));
	case SPYRE_OP_LN:
		return from_double(log(x));
	case SPYRE_OP_SIGMOID:
		return from_double(1 / (1 + exp(-x)));
	case SPYRE_OP_TANH:
		return from_double(tanh(x));
	case SPYRE_OP_ERF:
		return from_double(erf(x));
	case SPYRE_OP_GELU:
		/* The limit, where the product is of infinity and 0. */
		if (b == 0xff800000)
			return 0x80000000;
		/* erfc: nothing is lost by cancellation where erf nears -1. */
		return from_double(x * erfc(-x * M_SQRT1_2) / 2);
	}
	__builtin_trap();
}

bool ref_is_cross(unsigned int op)
{
	return op == SPYRE_OP_BCAST || op == SPYRE_OP_ROT || op == SPYRE_OP_LMASK ||
	       op == SPYRE_OP_IOTA || op == SPYRE_OP_SHUF ||
	       (op >= SPYRE_OP_RSUM && op <= SPYRE_OP_RRANK);
}

/* Whether lane x comes before y when the greatest is looked for: a NaN is greater than all. */
static bool greater(uint32_t x, uint32_t y)
{
	if (ref_is_nan(y))
		return false;
	return ref_is_nan(x) || ref_float(x) > ref_float(y);
}

static bool equal(uint32_t x, uint32_t y)
{
	return !greater(x, y) && !greater(y, x);
}

/* Each step takes all lanes of the one before. */
static void scan(uint32_t *t, const uint32_t *b)
{
	uint32_t before[SPYRE_LANES];
	unsigned int i, s;

	memcpy(t, b, sizeof(before));
	for (s = 1; s < SPYRE_LANES; s *= 2) {
		memcpy(before, t, sizeof(before));
		for (i = s; i < SPYRE_LANES; i++)
			t[i] = ref_op(SPYRE_OP_ADD, before[i], before[i - s], 0);
	}
	for (i = 0; i < SPYRE_LANES; i++)
		t[i] = ref_canon(t[i]);
}

void ref_cross(unsigned int op, uint32_t *out, const uint32_t *b, const uint32_t *c, uint32_t imm,
	       uint32_t count)
{
	unsigned int pair = op == SPYRE_OP_RSUM	  ? SPYRE_OP_ADD
			    : op == SPYRE_OP_RMAX ? SPYRE_OP_MAX
						  : SPYRE_OP_MIN;
	unsigned int i, k, half, best = 0;
	uint32_t t[SPYRE_LANES];

	switch (op) {
	case SPYRE_OP_BCAST:
		for (i = 0; i < SPYRE_LANES; i++)
			t[i] = b[imm];
		break;
	case SPYRE_OP_ROT:
		for (i = 0; i < SPYRE_LANES; i++)
			t[i] = b[(i + imm) % SPYRE_LANES];
		break;
	case SPYRE_OP_LMASK:
		for (i = 0; i < SPYRE_LANES; i++)
			t[i] = i >= imm && i < imm + count ? 0x3f800000 : 0;
		break;
	case SPYRE_OP_IOTA:
		for (i = 0; i < SPYRE_LANES; i++)
			t[i] = imm + i;
		break;
	case SPYRE_OP_SHUF:
		for (i = 0; i < SPYRE_LANES; i++)
			t[i] = b[c[i] % SPYRE_LANES];
		break;
	case SPYRE_OP_SCAN:
		scan(t, b);
		break;
	case SPYRE_OP_RRANK:
		for (i = 0; i < SPYRE_LANES; i++)
			for (k = 0, t[i] = 0; k < SPYRE_LANES; k++)
				t[i] += greater(b[k], b[i]) || (k < i && equal(b[k], b[i]));
		break;
	case SPYRE_OP_RARGMAX:
		for (i = 1; i < SPYRE_LANES; i++)
			if (greater(b[i], b[best]))
				best = i;
		for (i = 0; i < SPYRE_LANES; i++)
			t[i] = best;
		break;
	case SPYRE_OP_RSUM:
	case SPYRE_OP_RMAX:
	case SPYRE_OP_RMIN:
		memcpy(t, b, sizeof(t));
		for (half = SPYRE_LANES / 2; half; half /= 2)
			for (i = 0; i < half; i++)
				t[i] = ref_op(pair, t[i], t[i + half], 0);
		for (i = 1; i < SPYRE_LANES; i++)
			t[i] = t[0];
		break;
	default:
		__builtin_trap();
	}
	memcpy(out, t, sizeof(t));
}
