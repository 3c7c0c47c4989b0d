// SPDX-License-Identifier: MIT
/* Re-layout against the host's own packing: every stored element equal. */
#include "gen_env.h"

static void relayout(enum spyregen_relayout_op op, uint32_t rows, uint32_t cols,
		     enum spyre_format fmt, uint32_t batch, uint32_t cores)
{
	struct spyregen_relayout r = { op, rows, cols, fmt, batch, cores };
	size_t n = (size_t)rows * cols, count = batch ? batch : 1, i, j, b;
	uint64_t sticks = spyregen_bytes(fmt, rows, cols), in, out;
	uint64_t lines = spyregen_row_bytes(fmt, rows, cols), width = lines / rows;
	float *v = random_matrix(n * count, fmt), *t = malloc(n * 4), *got = malloc(n * 4);
	unsigned int eb = fmt == SPYRE_IEEE_FP32 ? 4 : 2;
	uint8_t *want, *hi, *ho;
	struct spyreprog_job *job;
	uint64_t sym[2];
	struct mem mem;
	char err[200];

	in = op == SPYREGEN_FROM_ROWS ? lines : sticks;
	out = op == SPYREGEN_TRANSPOSE ? spyregen_bytes(fmt, cols, rows) :
	      op == SPYREGEN_TRANSPOSE_WEIGHTS ? spyregen_weight_bytes(fmt, cols, rows) :
	      op == SPYREGEN_TO_WEIGHTS ? spyregen_weight_bytes(fmt, rows, cols) :
	      op == SPYREGEN_TO_ROWS ? lines : sticks;
	mem = mem_new(((in + out) * count + 2 * GUARD + 4095) / 4096 * 4096);
	sym[0] = alloc(&mem, in * count, (void **)&hi);
	sym[1] = alloc(&mem, out * count, (void **)&ho);
	/* Padding rows may hold anything, so here they are NaNs. */
	memset(hi, 0xff, in * count);
	memset(ho, 0x5a, out * count);
	want = calloc(1, (sticks > out ? sticks : out) + 256);
	for (b = 0; b < count; b++) {
		uint8_t *to = hi + b * in;

		if (op == SPYREGEN_FROM_ROWS) {
			spyregen_pack(want, fmt, v + b * n, rows, cols, cols);
			for (i = 0; i < rows; i++)
				for (j = 0; j < width / (64 * eb); j++)
					memcpy(to + i * width + j * 64 * eb,
					       want + (j * spyregen_rows(rows) + i) * 64 * eb, 64 * eb);
			continue;
		}
		for (j = 0; j < cols; j += 64) {
			for (i = 0; i < rows; i++) {
				memset(want, 0, 256);
				spyregen_pack(want, fmt, v + b * n + i * cols + j, 1,
					      cols - j < 64 ? cols - j : 64, cols);
				memcpy(to + (j / 64 * spyregen_rows(rows) + i) * 64 * eb, want, 64 * eb);
			}
		}
	}
	job = spyregen_relayout(&r, err);
	if (!job)
		fail_msg("op %u %ux%u: %s", (unsigned int)op, rows, cols, err);
	run_on(&mem, job, sym, 2);
	check_guard(ho, out * count);
	for (b = 0; b < count; b++) {
		const uint8_t *at = ho + b * out;
		bool same = true;

		for (i = 0; i < rows; i++)
			for (j = 0; j < cols; j++)
				t[j * rows + i] = v[b * n + i * cols + j];
		switch (op) {
		case SPYREGEN_TRANSPOSE:
			spyregen_unpack(got, rows, at, fmt, cols, rows);
			same = !memcmp(got, t, n * 4);
			break;
		case SPYREGEN_TRANSPOSE_WEIGHTS:
			spyregen_pack_weights(want, fmt, t, cols, rows, rows);
			same = !memcmp(at, want, out);
			break;
		case SPYREGEN_TO_WEIGHTS:
			spyregen_pack_weights(want, fmt, v + b * n, rows, cols, cols);
			same = !memcmp(at, want, out);
			break;
		case SPYREGEN_TO_ROWS:
			spyregen_pack(want, fmt, v + b * n, rows, cols, cols);
			for (i = 0; i < rows; i++)
				for (j = 0; j < width / (64 * eb); j++)
					same &= !memcmp(at + i * width + j * 64 * eb,
							want + (j * spyregen_rows(rows) + i) * 64 * eb,
							64 * eb);
			break;
		default:
			spyregen_unpack(got, cols, at, fmt, rows, cols);
			same = !memcmp(got, v + b * n, n * 4);
		}
		if (!same)
			fail_msg("op %u %ux%u format %u: tensor %zu differs", (unsigned int)op, rows,
				 cols, (unsigned int)fmt, b);
	}
	free(mem.data);
	free(want);
	free(v);
	free(t);
	free(got);
}

static void test_relayout(void **state)
{
	static const uint32_t sizes[] = { 1, 7, 63, 64, 65, 127, 128, 129, 200, 257 };
	static const enum spyre_format f[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16,
					       SPYRE_IEEE_FP32 };
	unsigned int op, i, j;

	(void)state;
	for (op = SPYREGEN_TRANSPOSE; op <= SPYREGEN_FROM_ROWS; op++) {
		for (i = 0; i < 10; i++) {
			for (j = 0; j < 10; j++) {
				enum spyre_format fmt = f[(i + j) % 4];

				if (op == SPYREGEN_TRANSPOSE_WEIGHTS || op == SPYREGEN_TO_WEIGHTS)
					fmt = f[(i + j) % 3];
				relayout((enum spyregen_relayout_op)op, sizes[i], sizes[j], fmt, 0,
					 j & 1 ? 0 : 0x15);
			}
		}
		relayout((enum spyregen_relayout_op)op, 70, 130, SPYRE_SEN169_FP16, 5, 0);
		relayout((enum spyregen_relayout_op)op, 64, 64, SPYRE_BFLOAT16, 71, 0);
		relayout((enum spyregen_relayout_op)op, 1000, 600, SPYRE_IEEE_FP16, 0, 0);
		relayout((enum spyregen_relayout_op)op, 3, 20000, SPYRE_SEN169_FP16, 0, 0x7);
	}
}

static void test_refuses(void **state)
{
	struct spyregen_relayout r = { SPYREGEN_TRANSPOSE, 0, 5, SPYRE_SEN169_FP16, 0, 0 };
	char err[200] = "";

	(void)state;
	assert_null(spyregen_relayout(&r, err));
	assert_non_null(strstr(err, "at least 1"));
	r.rows = UINT32_MAX;
	assert_null(spyregen_relayout(&r, err));
	assert_non_null(strstr(err, "at most"));
	r.rows = 1u << 22;
	r.cols = 1u << 22;
	assert_null(spyregen_relayout(&r, err));
	assert_non_null(strstr(err, "do not fit"));
	r.rows = 5;
	r.cols = 5;
	r.fmt = SPYRE_SENINT8;
	assert_null(spyregen_relayout(&r, err));
	assert_non_null(strstr(err, "formats"));
	r.fmt = SPYRE_IEEE_FP32;
	r.op = SPYREGEN_TO_WEIGHTS;
	assert_null(spyregen_relayout(&r, err));
	assert_non_null(strstr(err, "16-bit"));
	r.op = (enum spyregen_relayout_op)9;
	assert_null(spyregen_relayout(&r, err));
	assert_non_null(strstr(err, "unknown"));
	r.op = SPYREGEN_TO_ROWS;
	r.cols = 1u << 20;
	assert_null(spyregen_relayout(&r, err));
	assert_non_null(strstr(err, "LX"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_relayout),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
