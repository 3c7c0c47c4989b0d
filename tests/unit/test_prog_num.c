// SPDX-License-Identifier: MIT
/*
 * Conversions of include/spyre/num.h against the card model's, which were written apart from them:
 * all codes of the 16-bit formats, and fp32 values around every code, every tie, and at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <spyre/num.h>

/* The model's. */
uint32_t spyre_dl16_to_f32(uint16_t h);
uint32_t spyre_f16_to_f32(uint16_t h);
uint32_t spyre_bf16_to_f32(uint16_t h);
uint16_t spyre_f32_to_dl16(uint32_t bits);
uint16_t spyre_f32_to_f16(uint32_t bits);
uint16_t spyre_f32_to_bf16(uint32_t bits);

struct format {
	const char *name;
	uint32_t (*up)(uint16_t h), (*model_up)(uint16_t h);
	uint16_t (*down)(uint32_t u), (*model_down)(uint32_t u);
};

static const struct format formats[] = {
	{ "dl16", spyre_dl16_to_bits, spyre_dl16_to_f32, spyre_bits_to_dl16, spyre_f32_to_dl16 },
	{ "fp16", spyre_fp16_to_bits, spyre_f16_to_f32, spyre_bits_to_fp16, spyre_f32_to_f16 },
	{ "bf16", spyre_bf16_to_bits, spyre_bf16_to_f32, spyre_bits_to_bf16, spyre_f32_to_bf16 },
};

static int is_nan(uint32_t u)
{
	return (u & 0x7fffffffu) > 0x7f800000u;
}

static void check_down(const struct format *f, uint32_t u)
{
	uint16_t a = f->down(u), b = f->model_down(u);

	if (a != b)
		fail_msg("%s: 0x%08x becomes 0x%04x, in the model 0x%04x", f->name, u, a, b);
}

static void test_up(void **state)
{
	unsigned int i, h;

	(void)state;
	for (i = 0; i < 3; i++) {
		for (h = 0; h < 0x10000; h++) {
			uint32_t a = formats[i].up((uint16_t)h),
				 b = formats[i].model_up((uint16_t)h);

			/* Inside, the model keeps what a NaN carries; it leaves as the canonical
			 * one. */
			if (is_nan(b) ? a != SPYRE_FP32_NAN : a != b)
				fail_msg("%s: 0x%04x becomes 0x%08x, in the model 0x%08x",
					 formats[i].name, h, a, b);
			if (!is_nan(a) && formats[i].down(a) != h)
				fail_msg("%s: 0x%04x does not come back", formats[i].name, h);
		}
	}
}

static void test_down(void **state)
{
	uint32_t x = 1, near, u;
	unsigned int i, h, k;
	int d;

	(void)state;
	for (i = 0; i < 3; i++) {
		for (h = 0; h < 0x10000; h++) {
			near = formats[i].up((uint16_t)h);
			u = near;
			/* The ties lie half a step of the code away: try all fp32 bits below that
			 * can matter. */
			for (k = 10; k <= 23; k++) {
				for (d = -2; d <= 2; d++) {
					check_down(&formats[i], u + (1u << k) + (uint32_t)d);
					check_down(&formats[i], u - (1u << k) + (uint32_t)d);
					check_down(&formats[i], u + (uint32_t)d);
				}
			}
		}
		for (k = 0; k < 5000000; k++) {
			x = x * 1664525u + 1013904223u;
			check_down(&formats[i], x);
		}
	}
}

static void test_ints(void **state)
{
	(void)state;
	assert_int_equal(spyre_int32_to_int8(127), 127);
	assert_int_equal(spyre_int32_to_int8(128), 127);
	assert_int_equal(spyre_int32_to_int8(-128), -128);
	assert_int_equal(spyre_int32_to_int8(INT32_MIN), -128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_up),
		cmocka_unit_test(test_down),
		cmocka_unit_test(test_ints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
