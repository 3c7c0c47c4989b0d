// SPDX-License-Identifier: MIT
/* Stretched operands, integers, operations along rows and down columns against double precision. */
#include "gen_env.h"

static const uint32_t odd[] = { 1, 2, 63, 64, 65, 127, 129, 257, 600 };

#define ODD	(sizeof(odd) / sizeof(odd[0]))

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + 4095) / 4096 * 4096;
}

/* --- Binary operations ---------------------------------------------------------------------- */

static double binary(enum spyregen_op op, double x, double y)
{
	switch (op) {
	case SPYREGEN_ADD: return x + y;
	case SPYREGEN_SUB: return x - y;
	case SPYREGEN_MUL: return x * y;
	case SPYREGEN_MAX: return fmax(x, y);
	case SPYREGEN_MIN: return fmin(x, y);
	case SPYREGEN_CMPEQ: return x == y;
	case SPYREGEN_CMPLT: return x < y;
	default: return x <= y;
	}
}

static void stretch(enum spyregen_op op, uint32_t m, uint32_t n, enum spyre_format in,
		    enum spyre_format out, enum spyregen_stretch sa, enum spyregen_stretch sb,
		    uint32_t cores)
{
	struct spyregen_elementwise e = { .op = op, .m = m, .n = n, .in = in, .out = out,
					  .cores = cores, .a = sa, .b = sb };
	enum spyregen_stretch way[2] = { sa, sb };
	uint32_t r[2], c[2], i, j, o;
	float *v[2], *got = malloc((size_t)m * n * 4);
	uint64_t sym[3], ob = spyregen_bytes(out, m, n);
	struct spyreprog_job *job;
	struct mem mem;
	char err[200];
	void *h;

	rng_state = m + n;
	mem = mem_new(whole_pages(2 * spyregen_bytes(in, m, n) + ob + 3 * GUARD));
	for (o = 0; o < 2; o++) {
		r[o] = way[o] == SPYREGEN_FULL || way[o] == SPYREGEN_COLUMN ? m : 1;
		c[o] = way[o] == SPYREGEN_FULL || way[o] == SPYREGEN_ROW ? n : 1;
		v[o] = random_matrix((size_t)r[o] * c[o], in);
		sym[o] = alloc(&mem, spyregen_bytes(in, r[o], c[o]), &h);
		spyregen_pack(h, in, v[o], r[o], c[o], c[o]);
	}
	sym[2] = alloc(&mem, ob, &h);
	memset(h, 0x5a, ob);
	job = spyregen_elementwise(&e, err);
	if (!job)
		fail_msg("%s", err);
	run_on(&mem, job, sym, 3);
	check_guard(h, ob);
	spyregen_unpack(got, n, h, out, m, n);
	for (i = 0; i < m; i++) {
		for (j = 0; j < n; j++) {
			float x[2], want;

			for (o = 0; o < 2; o++)
				x[o] = v[o][(size_t)(r[o] > 1 ? i : 0) * c[o] + (c[o] > 1 ? j : 0)];
			want = (float)binary(op, x[0], x[1]);
			spyregen_round(&want, 1, out);
			if (got[(size_t)i * n + j] != want)
				fail_msg("op %u %ux%u ways %u %u: [%u][%u] is %a, expected %a",
					 (unsigned int)op, m, n, (unsigned int)sa, (unsigned int)sb, i,
					 j, (double)got[(size_t)i * n + j], (double)want);
		}
	}
	free(mem.data);
	free(v[0]);
	free(v[1]);
	free(got);
}

static const enum spyre_format formats[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16,
					     SPYRE_IEEE_FP32 };
static const enum spyregen_op binaries[] = {
	SPYREGEN_ADD, SPYREGEN_SUB, SPYREGEN_MUL, SPYREGEN_MAX, SPYREGEN_MIN, SPYREGEN_CMPEQ,
	SPYREGEN_CMPLT, SPYREGEN_CMPLE,
};

static void test_stretch(void **state)
{
	unsigned int a, b, i, j, k = 0;

	(void)state;
	for (a = SPYREGEN_FULL; a <= SPYREGEN_SCALAR; a++)
		for (b = SPYREGEN_FULL; b <= SPYREGEN_SCALAR; b++)
			for (i = 0; i < ODD; i++)
				for (j = i % 3; j < ODD; j += 3, k++)
					stretch(binaries[k % 8], odd[i], odd[j], formats[k % 4],
						formats[k / 4 % 4], (enum spyregen_stretch)a,
						(enum spyregen_stretch)b, k % 3 ? 0 : 0x7);
	for (i = 0; i < 8; i++) {
		stretch(binaries[i], 70, 130, SPYRE_IEEE_FP32, SPYRE_IEEE_FP32, SPYREGEN_FULL,
			SPYREGEN_FULL, 0);
		stretch(binaries[i], 70, 130, SPYRE_SEN169_FP16, SPYRE_BFLOAT16, SPYREGEN_COLUMN,
			SPYREGEN_ROW, 0);
	}
}

/* One core works through more than the 256 MiB that a span of addresses covers on the card. */
static void test_beyond_span(void **state)
{
	const uint32_t m = 2200000, n = 64;
	uint64_t bytes = spyregen_bytes(SPYRE_SEN169_FP16, m, n), sym[3];
	unsigned int stretched;
	struct mem mem;
	uint16_t *a, *zero, *out;
	char err[200];
	size_t i;

	(void)state;
	assert_true(bytes > 256u << 20);
	mem = mem_new(whole_pages(2 * bytes + 256 + 3 * GUARD));
	sym[0] = alloc(&mem, bytes, (void **)&a);
	sym[1] = alloc(&mem, 256, (void **)&zero);
	sym[2] = alloc(&mem, bytes, (void **)&out);
	memset(zero, 0, 256);
	for (i = 0; i < bytes / 2; i++)
		a[i] = (uint16_t)(0x2000 + (i * 40503u >> 4 & 0x3fff));
	for (stretched = 0; stretched < 2; stretched++) {
		struct spyregen_elementwise e = {
			.op = stretched ? SPYREGEN_ADD : SPYREGEN_COPY, .m = m, .n = n, .cores = 0x8,
			.b = stretched ? SPYREGEN_SCALAR : SPYREGEN_FULL };
		uint64_t two[2] = { sym[0], sym[2] };
		struct spyreprog_job *job = spyregen_elementwise(&e, err);

		if (!job)
			fail_msg("%s", err);
		memset(out, 0, bytes);
		run_on(&mem, job, stretched ? sym : two, stretched ? 3 : 2);
		check_guard(out, bytes);
		assert_true(!memcmp(out, a, bytes));
	}
	free(mem.data);
}

static int32_t int_ref(enum spyregen_op op, int32_t x, int32_t y)
{
	uint32_t a = (uint32_t)x, b = (uint32_t)y;

	switch (op) {
	case SPYREGEN_IADD: return (int32_t)(a + b);
	case SPYREGEN_ISUB: return (int32_t)(a - b);
	case SPYREGEN_IMUL: return (int32_t)(a * b);
	case SPYREGEN_IMIN: return x < y ? x : y;
	case SPYREGEN_IMAX: return x > y ? x : y;
	case SPYREGEN_AND: return x & y;
	case SPYREGEN_OR: return x | y;
	case SPYREGEN_XOR: return x ^ y;
	case SPYREGEN_SHL: return (int32_t)(a << (b & 31));
	case SPYREGEN_SHR: return (int32_t)(a >> (b & 31));
	default: return x >> (b & 31);
	}
}

static void test_integers(void **state)
{
	const uint32_t m = 67, n = 130;
	uint64_t bytes = spyregen_bytes(SPYRE_IEEE_INT32, m, n), sym[3];
	int32_t *v[2], *got = malloc((size_t)m * n * 4);
	unsigned int op, o, i;
	char err[200];

	(void)state;
	for (op = SPYREGEN_IADD; op <= SPYREGEN_F2I; op++) {
		bool to_int = op == SPYREGEN_F2I, from_int = op == SPYREGEN_I2F;
		struct spyregen_elementwise e = {
			.op = (enum spyregen_op)op, .m = m, .n = n,
			.in = to_int ? SPYRE_IEEE_FP32 : SPYRE_IEEE_INT32,
			.out = from_int ? SPYRE_IEEE_FP32 : SPYRE_IEEE_INT32 };
		unsigned int nin = spyregen_operands(e.op);
		struct mem mem = mem_new(whole_pages(3 * (bytes + GUARD)));
		struct spyreprog_job *job;
		void *h;

		for (o = 0; o < nin; o++) {
			v[o] = malloc((size_t)m * n * 4);
			for (i = 0; i < m * n; i++) {
				v[o][i] = (int32_t)(rng() << 12 ^ rng());
				/* Halves, so that rounding shows; some beyond int32. */
				if (to_int) {
					float f = (float)(v[o][i] >> (i % 5 ? 16 : 0)) / 2 *
						  (i % 5 ? 1 : 4);

					memcpy(&v[o][i], &f, 4);
				}
			}
			sym[o] = alloc(&mem, bytes, &h);
			spyregen_pack_int(h, SPYRE_IEEE_INT32, v[o], m, n, n);
		}
		sym[nin] = alloc(&mem, bytes, &h);
		job = spyregen_elementwise(&e, err);
		if (!job)
			fail_msg("%s", err);
		run_on(&mem, job, sym, nin + 1);
		check_guard(h, bytes);
		spyregen_unpack_int(got, n, h, SPYRE_IEEE_INT32, m, n);
		for (i = 0; i < m * n; i++) {
			int32_t want;
			float f;

			if (to_int) {
				memcpy(&f, &v[0][i], 4);
				want = f >= 0x1p31f ? INT32_MAX : f < -0x1p31f ? INT32_MIN :
				       (int32_t)rintf(f);
			} else if (from_int) {
				f = (float)v[0][i];
				memcpy(&want, &f, 4);
			} else {
				want = int_ref(e.op, v[0][i], v[1][i]);
			}
			if (got[i] != want)
				fail_msg("op %u: [%u] of %d is %d, expected %d", op, i, v[0][i], got[i],
					 want);
		}
		for (o = 0; o < nin; o++)
			free(v[o]);
		free(mem.data);
	}
	free(got);
}

/* --- Rows and columns ----------------------------------------------------------------------- */

#define EPS	1e-5

static void row(enum spyregen_rowop op, uint32_t m, uint32_t n, enum spyre_format fmt)
{
	struct spyregen_row r = { .op = op, .m = m, .n = n, .fmt = fmt, .eps = (float)EPS };
	bool arg = op == SPYREGEN_ARGMAX;
	uint32_t no = op >= SPYREGEN_LOG_SOFTMAX ? n : 1, i, j;
	enum spyre_format out = arg ? SPYRE_IEEE_INT32 : fmt;
	float *a = random_matrix((size_t)m * n, fmt), *got = malloc((size_t)m * no * 4);
	uint64_t ib = spyregen_bytes(fmt, m, n), ob = spyregen_bytes(out, m, no), sym[2];
	struct mem mem = mem_new(whole_pages(ib + ob + 2 * GUARD));
	struct spyreprog_job *job;
	void *ha, *hc;
	char err[200];

	sym[0] = alloc(&mem, ib, &ha);
	sym[1] = alloc(&mem, ob, &hc);
	spyregen_pack(ha, fmt, a, m, n, n);
	/* Padding columns must not count. */
	for (i = 0; fmt == SPYRE_IEEE_FP32 && n % 64 && i < m; i++)
		((float *)ha)[((size_t)(n / 64) * spyregen_rows(m) + i) * 64 + 63] =
			op == SPYREGEN_ROWMIN ? -1000 : 1000;
	job = spyregen_row(&r, err);
	if (!job)
		fail_msg("%s", err);
	run_on(&mem, job, sym, 2);
	check_guard(hc, ob);
	if (arg)
		spyregen_unpack_int(got, no, hc, out, m, no);
	else
		spyregen_unpack(got, no, hc, fmt, m, no);
	for (i = 0; i < m; i++) {
		const float *x = a + (size_t)i * n;
		double max = -INFINITY, min = INFINITY, sum = 0, square = 0, exps = 0, mean, dev;
		uint32_t first = 0;
		int32_t index;

		for (j = 0; j < n; j++) {
			if (x[j] > max)
				first = j;
			max = fmax(max, x[j]);
			min = fmin(min, x[j]);
			sum += x[j];
		}
		mean = op == SPYREGEN_LAYER_NORM ? sum / n : 0;
		for (j = 0; j < n; j++) {
			exps += exp(x[j] - max);
			square += (x[j] - mean) * (x[j] - mean);
		}
		dev = sqrt(square / n + EPS);
		memcpy(&index, &got[i], 4);
		if (arg && (uint32_t)index != first)
			fail_msg("argmax %ux%u: row %u is %d, expected %u", m, n, i, index, first);
		for (j = 0; j < no && !arg; j++) {
			double want = op == SPYREGEN_ROWMIN ? min :
				      op == SPYREGEN_LOG_SOFTMAX ? x[j] - max - log(exps) :
				      (x[j] - mean) / dev;
			double room = op == SPYREGEN_ROWMIN ? 0 : tolerance(fmt) * fabs(want) +
				      4e-6 * (1 + 1 / dev);

			if (!(fabs(got[(size_t)i * no + j] - want) <= room))
				fail_msg("row op %u %ux%u: [%u][%u] is %g, expected %g",
					 (unsigned int)op, m, n, i, j,
					 (double)got[(size_t)i * no + j], want);
		}
	}
	free(mem.data);
	free(a);
	free(got);
}

static void test_rows(void **state)
{
	unsigned int op, i, j;

	(void)state;
	for (op = SPYREGEN_ROWMIN; op < SPYREGEN_ROWOPS; op++)
		for (i = 0; i < ODD; i++)
			for (j = i % 2; j < ODD; j += 2)
				row((enum spyregen_rowop)op, odd[i], odd[j], formats[(i + j) % 4]);
}

static void column(enum spyregen_column_op op, uint32_t m, uint32_t n, enum spyre_format fmt,
		   uint32_t cores)
{
	struct spyregen_column c = { op, m, n, fmt, cores };
	float *a = random_matrix((size_t)m * n, fmt), *got = malloc(n * 4);
	bool arg = op == SPYREGEN_COLUMN_ARGMAX;
	enum spyre_format out = arg ? SPYRE_IEEE_INT32 : fmt;
	uint64_t ib = spyregen_bytes(fmt, m, n), ob = spyregen_bytes(out, 1, n);
	uint64_t sb = spyregen_column_scratch(op, m, n), sym[3];
	struct mem mem = mem_new(whole_pages(ib + ob + sb + 3 * GUARD));
	struct spyreprog_job *job;
	void *ha, *hc, *hs;
	char err[200];
	uint32_t i, j;

	sym[0] = alloc(&mem, ib, &ha);
	sym[1] = alloc(&mem, ob, &hc);
	sym[2] = alloc(&mem, sb, &hs);
	/* Padding rows are NaNs and must not count. */
	memset(ha, 0xff, ib);
	for (i = 0; i < m; i++) {
		for (j = 0; j < n; j += 64) {
			uint8_t line[256];
			size_t w = fmt == SPYRE_IEEE_FP32 ? 256 : 128;

			spyregen_pack(line, fmt, a + (size_t)i * n + j, 1, n - j < 64 ? n - j : 64, n);
			memcpy((uint8_t *)ha + (j / 64 * spyregen_rows(m) + i) * w, line, w);
		}
	}
	memset(hc, 0x5a, ob);
	job = spyregen_column(&c, err);
	if (!job)
		fail_msg("%s", err);
	run_on(&mem, job, sym, sb ? 3 : 2);
	check_guard(hc, ob);
	check_guard(hs, sb);
	spyregen_unpack(got, n, hc, out, 1, n);
	for (j = 0; j < n; j++) {
		double max = -INFINITY, min = INFINITY, sum = 0, mag = 0, want, room;
		uint32_t first = 0;
		int32_t index;

		for (i = 0; i < m; i++) {
			double x = a[(size_t)i * n + j];

			if (x > max)
				first = i;
			max = fmax(max, x);
			min = fmin(min, x);
			sum += x;
			mag += fabs(x);
		}
		memcpy(&index, &got[j], 4);
		if (arg && (uint32_t)index != first)
			fail_msg("argmax %ux%u: column %u is %d, expected %u", m, n, j, index, first);
		if (arg)
			continue;
		want = op == SPYREGEN_COLUMN_MAX ? max : op == SPYREGEN_COLUMN_MIN ? min :
		       op == SPYREGEN_COLUMN_SUM ? sum : sum / m;
		if (op == SPYREGEN_COLUMN_MEAN)
			mag /= m;
		room = op == SPYREGEN_COLUMN_MAX || op == SPYREGEN_COLUMN_MIN ? 0 :
		       tolerance(fmt) * fabs(want) + (512 + m / 512.0) * 0x1p-24 * mag;
		if (!(fabs(got[j] - want) <= room))
			fail_msg("column op %u %ux%u: [%u] is %g, expected %g", (unsigned int)op, m, n,
				 j, (double)got[j], want);
	}
	free(mem.data);
	free(a);
	free(got);
}

static void test_columns(void **state)
{
	static const uint32_t tall[] = { 512, 513, 1024, 1025, 3000, 5121 };
	unsigned int op, i, j;

	(void)state;
	for (op = SPYREGEN_COLUMN_SUM; op <= SPYREGEN_COLUMN_ARGMAX; op++) {
		for (i = 0; i < ODD; i++)
			for (j = i % 2; j < ODD; j += 2)
				column((enum spyregen_column_op)op, odd[i], odd[j], formats[(i + j) % 4],
				       i & 1 ? 0 : 0x3);
		for (i = 0; i < 6; i++)
			column((enum spyregen_column_op)op, tall[i], odd[i], formats[i % 4], 0);
	}
}

/* More rows than parts of parts take. */
static void test_tall_columns(void **state)
{
	const uint32_t m = 524289 + 1300;

	(void)state;
	column(SPYREGEN_COLUMN_MIN, m, 2, SPYRE_SEN169_FP16, 0);
	column(SPYREGEN_COLUMN_SUM, m, 2, SPYRE_BFLOAT16, 0);
	column(SPYREGEN_COLUMN_ARGMAX, m, 2, SPYRE_IEEE_FP32, 0);
}

static void test_refuses(void **state)
{
	struct spyregen_elementwise e = { .op = SPYREGEN_ADD, .m = 4, .n = 4, .b = (enum spyregen_stretch)7 };
	struct spyregen_column c = { SPYREGEN_COLUMN_SUM, 0, 1, SPYRE_SEN169_FP16, 0 };
	struct spyregen_row r = { .op = SPYREGEN_ARGMAX, .m = 1, .n = 0xffffffff,
				  .fmt = SPYRE_SEN169_FP16 };
	char err[200] = "";

	(void)state;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "stretch"));
	e.op = SPYREGEN_EXP;
	e.b = SPYREGEN_ROW;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "stretch"));
	e.op = SPYREGEN_IADD;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "IEEE_INT32 in"));
	e.op = SPYREGEN_ABS;
	e.in = SPYRE_IEEE_INT32;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "formats IEEE_INT32 in"));
	assert_null(spyregen_column(&c, err));
	assert_non_null(strstr(err, "at least 1"));
	c.m = UINT32_MAX;
	c.n = UINT32_MAX;
	assert_null(spyregen_column(&c, err));
	assert_non_null(strstr(err, "4294967295 x 4294967295"));
	c.m = (1u << 24) + 1;
	c.n = 1;
	c.op = SPYREGEN_COLUMN_ARGMAX;
	assert_null(spyregen_column(&c, err));
	assert_non_null(strstr(err, "too many"));
	c.op = SPYREGEN_COLUMN_ARGMAX + 1;
	assert_null(spyregen_column(&c, err));
	assert_non_null(strstr(err, "unknown operation"));
	c.op = SPYREGEN_COLUMN_SUM;
	c.m = 1;
	c.fmt = SPYRE_SENINT8;
	assert_null(spyregen_column(&c, err));
	assert_non_null(strstr(err, "format SENINT8"));
	assert_null(spyregen_row(&r, err));
	assert_non_null(strstr(err, "numbered"));
	/* Rounded up to whole sticks in 32 bits this is 0. */
	r.op = SPYREGEN_SUM;
	r.n = UINT32_MAX;
	assert_null(spyregen_row(&r, err));
	assert_non_null(strstr(err, "do not fit"));
}

/* A tensor's place is what it takes in whole sticks: one element in a row is one. */
static void test_places(void **state)
{
	struct spyregen_elementwise e = { .op = SPYREGEN_OP_RELU, .m = 1u << 30, .n = 1 };
	struct spyregen_row r = { .op = SPYREGEN_SUM, .m = 1u << 30, .n = 1, .fmt = SPYRE_IEEE_FP32 };
	struct spyregen_column c = { .op = SPYREGEN_COLUMN_SUM, .m = 1u << 30, .n = 65, .fmt = SPYRE_BFLOAT16 };
	struct spyreprog_job *job;
	char err[200] = "";

	(void)state;
	/* 128 GB to the byte. */
	job = spyregen_elementwise(&e, err);
	if (!job)
		fail_msg("%s", err);
	spyreprog_job_free(job);
	e.m++;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "1073741825 x 1 elements of SEN169_FP16, in whole sticks, do not fit"));
	e.m--;
	e.out = SPYRE_IEEE_FP32;
	assert_null(spyregen_elementwise(&e, err));
	assert_non_null(strstr(err, "IEEE_FP32"));
	assert_null(spyregen_row(&r, err));
	assert_non_null(strstr(err, "do not fit"));
	assert_null(spyregen_column(&c, err));
	assert_non_null(strstr(err, "do not fit"));
	/* As many bytes of full sticks. */
	e = (struct spyregen_elementwise){ .op = SPYREGEN_OP_RELU, .m = 1u << 18, .n = 1u << 18 };
	job = spyregen_elementwise(&e, err);
	if (!job)
		fail_msg("%s", err);
	spyreprog_job_free(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_stretch),
		cmocka_unit_test(test_beyond_span),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_tall_columns),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
