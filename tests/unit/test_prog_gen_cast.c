// SPDX-License-Identifier: MIT
/* Conversions between all pairs of formats, bit by bit against the scalar definition (spyre/num.h). */
#include "gen_env.h"

static const uint32_t heights[] = { 1, 2, 63, 64, 129, 300 };
static const uint32_t widths[] = { 1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 600 };

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

static unsigned int bits_of(enum spyre_format f)
{
	switch (f) {
	case SPYRE_SENINT4:
		return 4;
	case SPYRE_SENINT8:
	case SPYRE_SEN143_FP8:
	case SPYRE_SEN152_FP8:
		return 8;
	case SPYRE_SEN169_FP16:
	case SPYRE_IEEE_FP16:
	case SPYRE_BFLOAT16:
		return 16;
	default:
		return 32;
	}
}

static bool is_int(enum spyre_format f)
{
	return f == SPYRE_SENINT4 || f == SPYRE_SENINT8 || f == SPYRE_IEEE_INT32;
}

/* Place of element (r, c), counted in elements. */
static size_t place(enum spyre_format f, uint32_t m, uint32_t r, uint32_t c)
{
	unsigned int w = f == SPYRE_SENINT4 ? 256 : bits_of(f) == 8 ? 128 : 64;

	return ((size_t)(c / w) * spyregen_rows(m) + r) * w + c % w;
}

static uint32_t code_at(const uint8_t *t, enum spyre_format f, size_t i)
{
	switch (bits_of(f)) {
	case 4:
		return t[i / 2] >> (i & 1 ? 4 : 0) & 15;
	case 8:
		return t[i];
	case 16:
		return ((const uint16_t *)t)[i];
	default:
		return ((const uint32_t *)t)[i];
	}
}

static uint32_t lane_of(enum spyre_format f, uint32_t x)
{
	switch (f) {
	case SPYRE_SENINT4: return (uint32_t)spyre_int4_to_int32((uint8_t)x);
	case SPYRE_SENINT8: return (uint32_t)(int8_t)x;
	case SPYRE_SEN143_FP8: return spyre_fp8_143_to_bits((uint8_t)x);
	case SPYRE_SEN152_FP8: return spyre_fp8_152_to_bits((uint8_t)x);
	case SPYRE_SEN169_FP16: return spyre_dl16_to_bits((uint16_t)x);
	case SPYRE_IEEE_FP16: return spyre_fp16_to_bits((uint16_t)x);
	case SPYRE_BFLOAT16: return spyre_bf16_to_bits((uint16_t)x);
	case SPYRE_SEN18F_FP24: return spyre_fp24_to_bits(x);
	default: return x;
	}
}

static uint32_t code_of(enum spyre_format f, uint32_t lane)
{
	switch (f) {
	case SPYRE_SENINT4: return spyre_int32_to_int4((int32_t)lane);
	case SPYRE_SENINT8: return (uint8_t)spyre_int32_to_int8((int32_t)lane);
	case SPYRE_SEN143_FP8: return spyre_bits_to_fp8_143(lane);
	case SPYRE_SEN152_FP8: return spyre_bits_to_fp8_152(lane);
	case SPYRE_SEN169_FP16: return spyre_bits_to_dl16(lane);
	case SPYRE_IEEE_FP16: return spyre_bits_to_fp16(lane);
	case SPYRE_BFLOAT16: return spyre_bits_to_bf16(lane);
	case SPYRE_SEN18F_FP24: return spyre_bits_to_fp24(lane);
	case SPYRE_IEEE_FP32: return (lane & 0x7fffffff) > 0x7f800000 ? SPYRE_FP32_NAN : lane;
	default: return lane;
	}
}

static uint32_t converted(enum spyre_format in, enum spyre_format out, uint32_t x)
{
	uint32_t lane = lane_of(in, x);

	if (is_int(in) && !is_int(out))
		lane = spyre_int32_to_bits((int32_t)lane);
	else if (!is_int(in) && is_int(out))
		lane = (uint32_t)spyre_bits_to_int32(lane);
	return code_of(out, lane);
}

static void cast(enum spyre_format in, enum spyre_format out, uint32_t m, uint32_t n, uint32_t cores)
{
	struct spyregen_elementwise e = { .op = SPYREGEN_COPY, .m = m, .n = n, .in = in, .out = out,
					  .cores = cores };
	uint64_t ib = spyregen_bytes(in, m, n), ob = spyregen_bytes(out, m, n), sym[2];
	struct mem mem = mem_new((ib + ob + 2 * GUARD + 4095) / 4096 * 4096);
	struct spyreprog_job *job;
	uint32_t r, c, x, want, got;
	void *ha, *hc;
	char err[200];
	size_t i;

	rng_state = m * 31 + n;
	sym[0] = alloc(&mem, ib, &ha);
	sym[1] = alloc(&mem, ob, &hc);
	/* Any code there is, and for 32 bits mostly numbers that the narrower formats know. */
	for (i = 0; i < ib; i++)
		((uint8_t *)ha)[i] = (uint8_t)rng();
	for (i = 0; bits_of(in) == 32 && i < ib / 4; i++) {
		uint32_t *w = (uint32_t *)ha + i;

		if (i % 8 && is_int(in))
			*w = (uint32_t)((int32_t)*w >> (16 + rng() % 14));
		else if (i % 8)
			*w = (*w & 0x80ffffff) | (0x38u + rng() % 15) << 24;
	}
	memset(hc, 0x5a, ob);
	job = spyregen_elementwise(&e, err);
	if (!job)
		fail_msg("%u to %u: %s", in, out, err);
	run_on(&mem, job, sym, 2);
	check_guard(hc, ob);
	for (r = 0; r < m; r++) {
		for (c = 0; c < n; c++) {
			x = code_at(ha, in, place(in, m, r, c));
			want = converted(in, out, x);
			got = code_at(hc, out, place(out, m, r, c));
			if (got != want)
				fail_msg("format %u to %u, %ux%u: [%u][%u] of 0x%x is 0x%x, expected 0x%x",
					 in, out, m, n, r, c, x, got, want);
		}
	}
	free(mem.data);
}

static void test_pairs(void **state)
{
	unsigned int in, out, i, k = 0;

	(void)state;
	for (in = 0; in < SPYRE_FORMATS; in++)
		for (out = 0; out < SPYRE_FORMATS; out++)
			for (i = 0; i < 3; i++, k++)
				cast((enum spyre_format)in, (enum spyre_format)out,
				     heights[k % COUNT(heights)], widths[k % COUNT(widths)],
				     k % 5 ? 0 : 0x11);
}

static void test_shapes(void **state)
{
	static const enum spyre_format pairs[][2] = {
		{ SPYRE_SEN143_FP8, SPYRE_SEN169_FP16 }, { SPYRE_IEEE_FP16, SPYRE_SEN152_FP8 },
		{ SPYRE_SENINT4, SPYRE_SENINT8 },	 { SPYRE_SENINT8, SPYRE_SENINT4 },
		{ SPYRE_IEEE_FP32, SPYRE_SENINT4 },	 { SPYRE_SENINT4, SPYRE_SEN18F_FP24 },
		{ SPYRE_SENINT8, SPYRE_SEN143_FP8 },
	};
	unsigned int p, i, j;

	(void)state;
	for (p = 0; p < COUNT(pairs); p++)
		for (i = 0; i < COUNT(heights); i++)
			for (j = 0; j < COUNT(widths); j++)
				cast(pairs[p][0], pairs[p][1], heights[i], widths[j], 0);
}

/* Host values through the layouts and back. */
static void test_layout(void **state)
{
	static const enum spyre_format f[] = { SPYRE_SEN18F_FP24, SPYRE_SEN143_FP8, SPYRE_SEN152_FP8 };
	const uint32_t m = 131, n = 301;
	int8_t *b = malloc(m * n), *back = malloc(m * n);
	float *got = malloc(m * n * 4), *v;
	uint32_t i, r, c;
	uint8_t *t;

	(void)state;
	for (i = 0; i < COUNT(f); i++) {
		v = random_matrix(m * n, f[i]);
		t = malloc(spyregen_bytes(f[i], m, n));
		spyregen_pack(t, f[i], v, m, n, n);
		spyregen_unpack(got, n, t, f[i], m, n);
		assert_memory_equal(got, v, m * n * 4);
		free(t);
		free(v);
	}
	for (i = 0; i < m * n; i++)
		b[i] = (int8_t)rng();
	t = malloc(spyregen_bytes(SPYRE_SENINT4, m, n));
	spyregen_pack_int(t, SPYRE_SENINT4, b, m, n, n);
	spyregen_unpack_int(back, n, t, SPYRE_SENINT4, m, n);
	for (r = 0; r < m; r++) {
		for (c = 0; c < n; c++) {
			int8_t x = b[r * n + c];

			x = (int8_t)(x > 7 ? 7 : x < -8 ? -8 : x);
			assert_int_equal(back[r * n + c], x);
			assert_int_equal(code_at(t, SPYRE_SENINT4, place(SPYRE_SENINT4, m, r, c)), x & 15);
		}
	}
	free(t);
	free(b);
	free(back);
	free(got);
}

static void test_refuses(void **state)
{
	struct spyregen_elementwise e = { .op = SPYREGEN_COPY, .m = 4, .n = 4,
					  .in = SPYRE_SEN143_FP8, .out = SPYRE_FORMATS };
	char err[200] = "";

	(void)state;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "SEN143_FP8 in, unknown out"));
	e.in = SPYRE_FORMATS;
	e.out = SPYRE_SENINT4;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "unknown in, SENINT4 out"));
	e.op = SPYREGEN_EXP;
	e.in = SPYRE_SEN143_FP8;
	e.out = SPYRE_SEN169_FP16;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "SEN143_FP8 in, SEN169_FP16 out"));
	e.op = SPYREGEN_COPY;
	e.m = 0;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "at least 1"));
	e.m = e.n = UINT32_MAX;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "4294967295 x 4294967295"));
	e.n = 1;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "4294967295 x 1"));
	e.m = 1u << 18;
	e.n = 1u << 19;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "addresses"));
	e.m = 4;
	e.n = 4;
	e.a = SPYREGEN_ROW;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "stretch"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_shapes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
