// SPDX-License-Identifier: MIT
/*
 * Conversions against exact arithmetic: a number is an integer times a power of two, comparisons are of
 * integers, and a code is right if the number lies on its side of the midpoints to its neighbours. Nothing here
 * computes in floating point. Checked are num.h and every vector width that this host runs.
 *
 * "test_num_exact --all" narrows every fp32 there is instead of samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <spyre/num.h>

#include "vec.h"

#define BLOCK	65536u
#define FP32_INF 0x7f800000u

/* --- The oracle ----------------------------------------------------------------------------- */

/* m * 2^e */
struct num {
	uint64_t m;
	int e;
};

struct format {
	const char *name;
	enum spyre_format id;
	unsigned int bits, fraction;
	int bias;
	bool subnormals;	/* of exponent 0; else only code 0 is no normal number */
	bool away;
	bool infinity;		/* the first code that is no number; else that is NaN */
	uint32_t top;		/* that code */
	uint32_t nan;
};

static const struct format formats[] = {
	{ "SEN169_FP16", SPYRE_SEN169_FP16, 16, 9, 31, false, true, false, 0x7fff, 0x7fff },
	{ "IEEE_FP16", SPYRE_IEEE_FP16, 16, 10, 15, true, false, true, 0x7c00, 0x7e00 },
	{ "BFLOAT16", SPYRE_BFLOAT16, 16, 7, 127, true, false, true, 0x7f80, 0x7fc0 },
	{ "SEN143_FP8", SPYRE_SEN143_FP8, 8, 3, 7, true, false, false, 0x7f, 0x7f },
	{ "SEN152_FP8", SPYRE_SEN152_FP8, 8, 2, 15, true, false, true, 0x7c, 0x7e },
	{ "SEN18F_FP24", SPYRE_SEN18F_FP24, 24, 15, 127, true, false, true, 0x7f8000, 0x7fc000 },
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static const struct format fp32 = { "IEEE_FP32", SPYRE_IEEE_FP32, 32, 23, 127, true, false, true, FP32_INF, 0x7fc00000 };

/* Of a magnitude's code; beyond the largest number as if the format went on. */
static struct num value(const struct format *f, uint32_t c)
{
	uint64_t fraction = c & ((1u << f->fraction) - 1);
	int e = (int)(c >> f->fraction);

	if (c == 0 || (e == 0 && f->subnormals))
		return (struct num){ fraction, 1 - f->bias - (int)f->fraction };
	return (struct num){ fraction | 1ull << f->fraction, e - f->bias - (int)f->fraction };
}

static int compare(struct num x, struct num y)
{
	int top_x, top_y;
	unsigned __int128 a = x.m, b = y.m;

	if (!x.m || !y.m)
		return (x.m != 0) - (y.m != 0);
	top_x = 63 - __builtin_clzll(x.m) + x.e;
	top_y = 63 - __builtin_clzll(y.m) + y.e;
	if (top_x != top_y)
		return top_x < top_y ? -1 : 1;
	/* Equal magnitudes: the exponents differ by less than the integers are long. */
	if (x.e > y.e)
		a <<= x.e - y.e;
	else
		b <<= y.e - x.e;
	return (a > b) - (a < b);
}

static struct num midpoint(struct num x, struct num y)
{
	int e = x.e < y.e ? x.e : y.e;

	return (struct num){ (x.m << (x.e - e)) + (y.m << (y.e - e)), e - 1 };
}

/* Whether magnitude x rounds to code c, which is not 0, or beyond. */
static bool reaches(const struct format *f, struct num x, uint32_t c)
{
	int k = compare(x, midpoint(value(f, c - 1), value(f, c)));

	return k > 0 || (k == 0 && (f->away || !(c & 1)));
}

static uint32_t nearest(const struct format *f, struct num x)
{
	uint32_t lo = 0, hi = f->top + 1;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (reaches(f, x, mid))
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* Code as it lies in memory. */
static uint32_t placed(const struct format *f, bool negative, uint32_t c)
{
	c |= (uint32_t)negative << (f->bits - 1);
	return f->bits == 24 ? c << 8 : c;
}

static uint32_t narrowed(const struct format *f, uint32_t u)
{
	if ((u & 0x7fffffff) > FP32_INF)
		return placed(f, false, f->nan);
	return placed(f, u >> 31, nearest(f, value(&fp32, u & 0x7fffffff)));
}

/* The same for magnitudes that only grow: where the next code begins is looked for once. */
struct walk {
	const struct format *f;
	uint32_t code;
	uint64_t next;		/* smallest fp32 magnitude that rounds to code + 1 */
};

static void walk_next(struct walk *w)
{
	uint64_t lo = w->next, hi, step = 1;

	if (w->code == w->f->top) {
		w->next = UINT64_MAX;
		return;
	}
	/* lo does not reach it, unless codes are closer than fp32's, which none are. */
	for (hi = lo; hi <= FP32_INF && !reaches(w->f, value(&fp32, (uint32_t)hi), w->code + 1); step *= 2) {
		lo = hi;
		hi += step;
	}
	while (hi - lo > 1) {
		uint64_t mid = (lo + hi) / 2;

		if (mid > FP32_INF || reaches(w->f, value(&fp32, (uint32_t)mid), w->code + 1))
			hi = mid;
		else
			lo = mid;
	}
	w->next = hi;
}

static uint32_t walk_to(struct walk *w, uint32_t magnitude)
{
	if (magnitude > FP32_INF)
		return w->f->nan;
	while (magnitude >= w->next) {
		w->code++;
		walk_next(w);
	}
	return w->code;
}

static struct walk walk_begin(const struct format *f)
{
	struct walk w = { .f = f };

	walk_next(&w);
	return w;
}

/* Nearest integer, ties to even, saturating. */
static int32_t to_integer(bool negative, struct num x)
{
	unsigned __int128 q = x.m, rest, half;

	if (x.e > 40)
		q = x.m ? (unsigned __int128)1 << 40 : 0;
	else if (x.e >= 0)
		q <<= x.e;
	else if (x.e < -60)
		q = 0;		/* integers here are shorter than 2^59 */
	else {
		half = (unsigned __int128)1 << (-x.e - 1);
		rest = q & (2 * half - 1);
		q >>= -x.e;
		if (rest > half || (rest == half && (q & 1)))
			q++;
	}
	if (negative)
		return q >= 0x80000000u ? INT32_MIN : -(int32_t)q;
	return q >= 0x7fffffffu ? INT32_MAX : (int32_t)q;
}

/* --- What is checked ------------------------------------------------------------------------ */

/* n lanes by num.h. */
static void scalar_narrow(enum spyre_format id, void *dst, const uint32_t *u, size_t n)
{
	uint8_t *b = dst;
	uint16_t *h = dst;
	uint32_t *w = dst;
	size_t i;

	/* A loop each, so that the compiler makes it fast. */
#define EACH(to, conversion) \
	do { \
		for (i = 0; i < n; i++) \
			(to)[i] = conversion(u[i]); \
	} while (0)
	if (id == SPYRE_SEN169_FP16)
		EACH(h, spyre_bits_to_dl16);
	else if (id == SPYRE_IEEE_FP16)
		EACH(h, spyre_bits_to_fp16);
	else if (id == SPYRE_BFLOAT16)
		EACH(h, spyre_bits_to_bf16);
	else if (id == SPYRE_SEN143_FP8)
		EACH(b, spyre_bits_to_fp8_143);
	else if (id == SPYRE_SEN152_FP8)
		EACH(b, spyre_bits_to_fp8_152);
	else
		EACH(w, spyre_bits_to_fp24);
#undef EACH
}

static uint32_t scalar_widen(enum spyre_format id, uint32_t c)
{
	switch (id) {
	case SPYRE_SEN169_FP16:
		return spyre_dl16_to_bits((uint16_t)c);
	case SPYRE_IEEE_FP16:
		return spyre_fp16_to_bits((uint16_t)c);
	case SPYRE_BFLOAT16:
		return spyre_bf16_to_bits((uint16_t)c);
	case SPYRE_SEN143_FP8:
		return spyre_fp8_143_to_bits((uint8_t)c);
	case SPYRE_SEN152_FP8:
		return spyre_fp8_152_to_bits((uint8_t)c);
	default:
		return spyre_fp24_to_bits(c);
	}
}

static unsigned int bytes_of(const struct format *f)
{
	return f->bits == 24 ? 4 : f->bits / 8;
}

static void put(void *p, unsigned int bytes, size_t i, uint32_t c)
{
	if (bytes == 1)
		((uint8_t *)p)[i] = (uint8_t)c;
	else if (bytes == 2)
		((uint16_t *)p)[i] = (uint16_t)c;
	else
		((uint32_t *)p)[i] = c;
}

static uint32_t get(const void *p, unsigned int bytes, size_t i)
{
	uint32_t c = 0;

	memcpy(&c, (const uint8_t *)p + i * bytes, bytes);
	return c;
}

static uint32_t in[BLOCK] __attribute__((aligned(64))), out[BLOCK] __attribute__((aligned(64)));
static uint32_t want[BLOCK] __attribute__((aligned(64)));
static size_t filled;
static uint64_t checked;

/* in[] narrowed by all, against want[], which holds codes of the format's own size. */
static void check_block(const struct format *f)
{
	const struct vec_ops *const *v;
	unsigned int bytes = bytes_of(f);
	size_t i;

	for (v = spyre_vec_ops_all(); *v; v++) {
		(*v)->narrow[f->id](out, in, BLOCK);
		if (!memcmp(out, want, BLOCK * (size_t)bytes))
			continue;
		for (i = 0; get(out, bytes, i) == get(want, bytes, i); i++)
			;
		fail_msg("%s, %s: %08x becomes %x, expected %x", f->name, (*v)->name, in[i], get(out, bytes, i),
			 get(want, bytes, i));
	}
	scalar_narrow(f->id, out, in, BLOCK);
	if (memcmp(out, want, BLOCK * (size_t)bytes)) {
		for (i = 0; get(out, bytes, i) == get(want, bytes, i); i++)
			;
		fail_msg("%s, num.h: %08x becomes %x, expected %x", f->name, in[i], get(out, bytes, i),
			 get(want, bytes, i));
	}
	checked += BLOCK;
}

static void add(const struct format *f, uint32_t u)
{
	in[filled] = u;
	put(want, bytes_of(f), filled, narrowed(f, u));
	if (++filled == BLOCK) {
		check_block(f);
		filled = 0;
	}
}

static void flush(const struct format *f)
{
	while (filled)
		add(f, 0);
}

static uint32_t hash(uint32_t x)
{
	x *= 0x9e3779b1u;
	x ^= x >> 15;
	x *= 0x85ebca77u;
	return x ^ x >> 13;
}

/* All codes, in fp24 a structured set: exact, sign kept, NaN as num.h says. */
static void test_widen(void **state)
{
	const struct vec_ops *const *v;
	const struct format *f;
	uint32_t n, i, c, m, got, nan;
	static uint32_t codes[BLOCK] __attribute__((aligned(64)));

	(void)state;
	for (f = formats; f < formats + FORMATS; f++) {
		unsigned int bytes = bytes_of(f);
		uint32_t rounds = f->bits == 24 ? 256 : 1;

		for (n = 0; n < rounds; n++) {
			for (i = 0; i < BLOCK; i++) {
				/* What the low 8 bits of an fp24 hold does not matter. */
				c = f->bits == 24 ? (n << 24 | i << 8 | (hash(i) & 0xff)) : i & ((1u << f->bits) - 1);
				put(codes, bytes, i, c);
			}
			for (v = spyre_vec_ops_all(); *v; v++) {
				(*v)->widen[f->id](out, codes, BLOCK);
				for (i = 0; i < BLOCK; i++) {
					c = get(codes, bytes, i);
					got = out[i];
					if (got != scalar_widen(f->id, c))
						fail_msg("%s, %s: code %x becomes %08x, with num.h %08x", f->name, (*v)->name,
							 c, got, scalar_widen(f->id, c));
					if (f->bits == 24)
						c >>= 8;
					m = c & ((1u << (f->bits - 1)) - 1);
					nan = f->bits == 24 ? 0x7fc00000 : (c >> (f->bits - 1)) << 31 | 0x7fc00000 |
					      (f->infinity ? (m & ((1u << f->fraction) - 1)) << (23 - f->fraction) : 0);
					if (m > f->top || (m == f->top && !f->infinity)) {
						if (got != nan)
							fail_msg("%s: NaN %x becomes %08x, expected %08x", f->name, c, got, nan);
					} else if (m == f->top) {
						assert_int_equal(got, (c >> (f->bits - 1)) << 31 | FP32_INF);
					} else if (got >> 31 != c >> (f->bits - 1) ||
						   compare(value(f, m), value(&fp32, got & 0x7fffffff))) {
						fail_msg("%s, %s: code %x becomes %08x, another value", f->name, (*v)->name,
							 c, got);
					}
				}
			}
		}
	}
}

/* Where every code of an 8- or 16-bit format begins, one before, both signs. */
static void test_thresholds(void **state)
{
	const struct format *f;

	(void)state;
	for (f = formats; f < formats + FORMATS; f++) {
		struct walk w;

		if (f->bits == 24)
			continue;
		for (w = walk_begin(f); w.next <= FP32_INF; w.code++, walk_next(&w)) {
			add(f, (uint32_t)w.next);
			add(f, (uint32_t)w.next - 1);
			add(f, (uint32_t)w.next | 0x80000000);
			add(f, ((uint32_t)w.next - 1) | 0x80000000);
		}
		/* All codes but those that nothing rounds to. */
		assert_int_equal(w.code, f->top);
		flush(f);
	}
}

/* All exponents with fractions of one and two bits, or all but those, and neighbours. */
static void test_structured(void **state)
{
	const struct format *f;
	uint32_t e, a, b, x;
	int d;

	(void)state;
	for (f = formats; f < formats + FORMATS; f++) {
		for (e = 0; e < 512; e++) {
			for (a = 0; a <= 23; a++) {
				for (d = -1; d <= 1; d++) {
					x = (1u << a) + (uint32_t)d;
					add(f, e << 23 | (x & 0x7fffff));
					add(f, e << 23 | (~x & 0x7fffff));
				}
				for (b = 0; b < a; b++) {
					x = 1u << a | 1u << b;
					add(f, e << 23 | (x & 0x7fffff));
					add(f, e << 23 | (-x & 0x7fffff));
				}
			}
		}
		flush(f);
	}
}

/* A magnitude and sign out of every 2^shift neighbours, or all. */
static void sweep(unsigned int shift)
{
	const struct format *f;
	uint64_t i;

	for (f = formats; f < formats + FORMATS; f++) {
		struct walk w = walk_begin(f);
		unsigned int bytes = bytes_of(f);

		for (i = 0; i < 1ull << (31 - shift); i++) {
			uint32_t r = shift ? hash((uint32_t)i) : 0, m = (uint32_t)(i << shift) | (r & ((1u << shift) - 1));
			uint32_t c = walk_to(&w, m);
			bool nan = m > FP32_INF, negative = r >> 31;

			in[filled] = m | (uint32_t)negative << 31;
			put(want, bytes, filled++, placed(f, negative && !nan, c));
			if (!shift) {
				in[filled] = m | 1u << 31;
				put(want, bytes, filled++, placed(f, !nan, c));
			}
			if (filled == BLOCK) {
				check_block(f);
				filled = 0;
			}
		}
		assert_int_equal(filled, 0);
	}
}

static void test_samples(void **state)
{
	(void)state;
	checked = 0;
	sweep(7);
	print_message("%llu conversions of fp32\n", (unsigned long long)checked);
}

static void test_all(void **state)
{
	(void)state;
	checked = 0;
	sweep(0);
	print_message("%llu conversions of fp32\n", (unsigned long long)checked);
}

/* All codes of the 8- and 16-bit formats to every format: from the code's exact value, not by way of fp32. */
static void test_across(void **state)
{
	const struct vec_ops *const *v;
	const struct format *f, *g;
	static uint32_t codes[BLOCK] __attribute__((aligned(64))), lanes[BLOCK] __attribute__((aligned(64)));
	uint32_t i, c, m;
	bool negative, nan;

	(void)state;
	for (f = formats; f < formats + FORMATS; f++) {
		if (f->bits == 24)
			continue;
		for (i = 0; i < BLOCK; i++)
			put(codes, bytes_of(f), i, i & ((1u << f->bits) - 1));
		for (g = formats; g <= formats + FORMATS; g++) {
			bool integer = g == formats + FORMATS;
			unsigned int bytes = integer ? 4 : bytes_of(g);

			for (i = 0; i < BLOCK; i++) {
				c = get(codes, bytes_of(f), i);
				m = c & ((1u << (f->bits - 1)) - 1);
				negative = c >> (f->bits - 1);
				nan = m > f->top || (m == f->top && !f->infinity);
				if (integer)
					c = nan ? 0 : m == f->top ? (negative ? 0x80000000 : 0x7fffffff) :
					    (uint32_t)to_integer(negative, value(f, m));
				else if (nan)
					c = placed(g, false, g->nan);
				else if (m == f->top)
					c = placed(g, negative, g->top);
				else
					c = placed(g, negative, nearest(g, value(f, m)));
				put(want, bytes, i, c);
			}
			for (v = spyre_vec_ops_all(); *v; v++) {
				(*v)->widen[f->id](lanes, codes, BLOCK);
				if (integer)
					(*v)->op[SPYRE_OP_F2I](out, 64, lanes, 64, lanes, 0, lanes, 0, BLOCK / 64, 0);
				else
					(*v)->narrow[g->id](out, lanes, BLOCK);
				for (i = 0; i < BLOCK; i++)
					if (get(out, bytes, i) != get(want, bytes, i))
						fail_msg("%s, %s to %s: code %x becomes %x, expected %x", (*v)->name, f->name,
							 integer ? "int32" : g->name, get(codes, bytes_of(f), i),
							 get(out, bytes, i), get(want, bytes, i));
			}
		}
	}
}

/* Integers: saturation, signs, and the way to and from fp32. */
static void test_integers(void **state)
{
	const struct vec_ops *const *v;
	uint32_t i, k, n = 0;

	(void)state;
	for (k = 0; k < 32; k++) {
		for (i = 0; i < 600; i++) {
			in[n++] = (1u << k) + i - 300;
			in[n++] = 0u - ((1u << k) + i - 300);
		}
	}
	/* Halves of fp32's steps, and noise. */
	for (k = 24; k < 32; k++) {
		for (i = 0; i < 1000; i++) {
			in[n++] = (1u << k) + (i << (k - 24)) + (i % 3) - 1;
			in[n] = 0u - in[n - 1];
			n++;
		}
	}
	for (; n < BLOCK; n++)
		in[n] = hash(n);
	for (v = spyre_vec_ops_all(); *v; v++) {
		uint8_t *o = (uint8_t *)out;

		(*v)->narrow[SPYRE_SENINT8](out, in, BLOCK);
		for (i = 0; i < BLOCK; i++) {
			int64_t x = (int32_t)in[i], s = x < -128 ? -128 : x > 127 ? 127 : x;

			assert_int_equal((int8_t)o[i], s);
			assert_int_equal(spyre_int32_to_int8((int32_t)x), s);
		}
		(*v)->narrow[SPYRE_SENINT4](out, in, BLOCK);
		for (i = 0; i < BLOCK; i++) {
			int64_t x = (int32_t)in[i], s = x < -8 ? -8 : x > 7 ? 7 : x;

			assert_int_equal(o[i / 2] >> (i % 2 * 4) & 15, s & 15);
			assert_int_equal(spyre_int32_to_int4((int32_t)x), s & 15);
		}
		(*v)->op[SPYRE_OP_I2F](out, 64, in, 64, in, 0, in, 0, BLOCK / 64, 0);
		for (i = 0; i < BLOCK; i++) {
			int64_t x = (int32_t)in[i];
			uint32_t c = nearest(&fp32, (struct num){ (uint64_t)(x < 0 ? -x : x), 0 });

			assert_int_equal(out[i], c | (x < 0 ? 0x80000000 : 0));
			assert_int_equal(spyre_int32_to_bits((int32_t)x), out[i]);
		}
		(*v)->op[SPYRE_OP_F2I](want, 64, in, 64, in, 0, in, 0, BLOCK / 64, 0);
		for (i = 0; i < BLOCK; i++) {
			uint32_t m = in[i] & 0x7fffffff;
			int32_t x = m > FP32_INF ? 0 : to_integer(in[i] >> 31, value(&fp32, m));

			assert_int_equal((int32_t)want[i], x);
			assert_int_equal(spyre_bits_to_int32(in[i]), x);
		}
		/* Ties of fp32 to integers. */
		for (i = 0; i < BLOCK; i++)
			out[i] = i % 2 << 31 | (126 + i / 2 % 26) << 23 | (hash(i) & 0x7fffff & -(1u << (23 - i / 2 % 24)));
		(*v)->op[SPYRE_OP_F2I](want, 64, out, 64, out, 0, out, 0, BLOCK / 64, 0);
		for (i = 0; i < BLOCK; i++) {
			int32_t x = to_integer(out[i] >> 31, value(&fp32, out[i] & 0x7fffffff));

			assert_int_equal((int32_t)want[i], x);
			assert_int_equal(spyre_bits_to_int32(out[i]), x);
		}
		for (i = 0; i < BLOCK / 2; i++)
			o[i] = (uint8_t)i;
		(*v)->widen[SPYRE_SENINT4](want, o, BLOCK);
		for (i = 0; i < BLOCK; i++) {
			int32_t x = o[i / 2] >> (i % 2 * 4) & 15;

			assert_int_equal((int32_t)want[i], x < 8 ? x : x - 16);
			assert_int_equal(spyre_int4_to_int32((uint8_t)(o[i / 2] >> (i % 2 * 4))), x < 8 ? x : x - 16);
		}
		(*v)->widen[SPYRE_SENINT8](want, o, BLOCK / 2);
		for (i = 0; i < BLOCK / 2; i++)
			assert_int_equal((int32_t)want[i], (int32_t)(i & 255) - ((i & 128) ? 256 : 0));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_widen),
		cmocka_unit_test(test_thresholds),
		cmocka_unit_test(test_structured),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_across),
		cmocka_unit_test(test_integers),
	};
	const struct CMUnitTest all[] = { cmocka_unit_test(test_all) };

	if (argc > 1 && !strcmp(argv[1], "--all"))
		return cmocka_run_group_tests(all, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
