// SPDX-License-Identifier: MIT
/* Generated programs run on the SoC in this process and are compared with host references. */
#include "gen_env.h"

/* Bits of element (r, c) of a tensor of 16- or 32-bit elements. */
static uint32_t element(const void *t, enum spyre_format fmt, uint32_t m, uint32_t r, uint32_t c)
{
	size_t i = ((size_t)(c / 64) * spyregen_rows(m) + r) * 64 + c % 64;

	return fmt == SPYRE_IEEE_FP32 ? ((const uint32_t *)t)[i] : ((const uint16_t *)t)[i];
}

static float scale = 1;
static uint32_t split_m, split_n;

/* One matrix product; activations that use special functions are compared within a rounding. */
static void matmul(uint32_t m, uint32_t n, uint32_t k, enum spyre_format in, enum spyre_format out,
		   bool bias, enum spyregen_act act, uint32_t cores, uint32_t flags)
{
	struct spyregen_matmul mm = {
		.m = m, .n = n, .k = k, .in = in, .out = out, .bias = bias, .act = act,
		.cores = cores, .flags = flags, .split_m = split_m, .split_n = split_n,
	};
	bool exact = act <= SPYREGEN_RELU;
	float *a, *b, *bv, *c, *got;
	struct spyreprog_job *job;
	uint64_t sym[4], cb;
	void *ha, *hb, *hc, *hv, *want;
	struct mem mem;
	char err[200];
	size_t i;

	rng_state = m * 31 + n * 17 + k;
	a = random_matrix((size_t)m * k, in);
	b = random_matrix((size_t)k * n, in);
	for (i = 0; i < (size_t)m * k; i++)
		a[i] *= scale;
	spyregen_round(a, (size_t)m * k, in);
	bv = random_matrix(n, SPYRE_IEEE_FP32);
	c = malloc((size_t)m * n * sizeof(*c));
	got = malloc((size_t)m * n * sizeof(*got));
	cb = spyregen_bytes(out, m, n);
	mem = mem_new((spyregen_bytes(in, m, k) + spyregen_weight_bytes(in, k, n) + cb +
		       spyregen_bytes(SPYRE_IEEE_FP32, 1, n) + 4 * GUARD + 4095) / 4096 * 4096);
	sym[0] = alloc(&mem, spyregen_bytes(in, m, k), &ha);
	sym[1] = alloc(&mem, spyregen_weight_bytes(in, k, n), &hb);
	sym[2] = alloc(&mem, cb, &hc);
	sym[3] = alloc(&mem, spyregen_bytes(SPYRE_IEEE_FP32, 1, n), &hv);
	spyregen_pack(ha, in, a, m, k, k);
	spyregen_pack_weights(hb, in, b, k, n, n);
	spyregen_pack(hv, SPYRE_IEEE_FP32, bv, 1, n, n);
	memset(hc, 0x5a, cb);

	job = spyregen_matmul(&mm, err);
	if (!job)
		fail_msg("%ux%ux%u: %s", m, n, k, err);
	run_on(&mem, job, sym, bias ? 4 : 3);
	check_guard(hc, cb);
	spyregen_unpack(got, n, hc, out, m, n);
	spyregen_ref_matmul(a, b, bias ? bv : NULL, act, c, m, n, k, 1);
	want = malloc(cb);
	spyregen_pack(want, out, c, m, n, n);
	spyregen_unpack(c, n, want, out, m, n);
	for (i = 0; i < (size_t)m * n; i++) {
		bool same = exact ? element(hc, out, m, (uint32_t)(i / n), (uint32_t)(i % n)) ==
				    element(want, out, m, (uint32_t)(i / n), (uint32_t)(i % n)) :
			fabsf(got[i] - c[i]) <= 2 * tolerance(out) * fmaxf(fabsf(c[i]), 0x1p-10f);

		if (!same)
			fail_msg("%ux%ux%u act %u: [%zu][%zu] is %a, expected %a", m, n, k,
				 (unsigned int)act, i / n, i % n, (double)got[i], (double)c[i]);
	}
	free(want);
	free(mem.data);
	free(a);
	free(b);
	free(bv);
	free(c);
	free(got);
}

static void test_matmul_shapes(void **state)
{
	static const uint32_t shapes[][3] = {
		{ 1, 1, 1 },	    { 1, 64, 64 },    { 64, 64, 64 },	 { 64, 10, 64 },
		{ 3, 130, 70 },	    { 127, 64, 129 }, { 128, 128, 128 }, { 129, 192, 320 },
		{ 200, 256, 1000 }, { 256, 128, 64 }, { 97, 33, 2048 },	 { 300, 640, 448 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		matmul(shapes[i][0], shapes[i][1], shapes[i][2], SPYRE_SEN169_FP16,
		       SPYRE_SEN169_FP16, i & 1, i % 3 ? SPYREGEN_NONE : SPYREGEN_RELU, 0, 0);
		matmul(shapes[i][0], shapes[i][1], shapes[i][2], SPYRE_SEN169_FP16, SPYRE_IEEE_FP32,
		       i & 2, SPYREGEN_NONE, 0, SPYREGEN_NO_MULTICAST);
	}
}

/* Divided as the caller wants it, with multicasts of both operands and of one. */
static void test_matmul_split(void **state)
{
	static const uint32_t splits[][2] = {
		{ 32, 1 }, { 16, 2 }, { 8, 4 }, { 4, 8 }, { 2, 16 }, { 1, 32 }, { 3, 5 }, { 1, 1 }, { 7, 0 }, { 0, 7 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
		split_m = splits[i][0];
		split_n = splits[i][1];
		matmul(128, 4096, 192, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, false, SPYREGEN_NONE, 0, 0);
	}
	split_m = split_n = 0;
}

static void test_matmul_formats(void **state)
{
	static const enum spyre_format f[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16,
					       SPYRE_IEEE_FP32 };
	unsigned int i, j;

	(void)state;
	for (i = 0; i < 3; i++)
		for (j = 0; j < 4; j++)
			matmul(70, 130, 200, f[i], f[j], true,
			       j & 1 ? SPYREGEN_RELU : SPYREGEN_NONE, 0, 0);
}

static void test_matmul_activations(void **state)
{
	unsigned int act, bias;

	(void)state;
	for (act = SPYREGEN_NONE; act <= SPYREGEN_TANH; act++)
		for (bias = 0; bias < 2; bias++)
			matmul(40, 64, 128, SPYRE_SEN169_FP16,
			       act & 1 ? SPYRE_SEN169_FP16 : SPYRE_IEEE_FP32, bias, act, 0, 0);
}

static void test_matmul_cores(void **state)
{
	static const uint32_t masks[] = { 0x1, 0x80000000, 0x3, 0x7, 0x50505, 0xffff };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		matmul(256, 256, 192, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, true, SPYREGEN_NONE,
		       masks[i], 0);
		matmul(256, 320, 192, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, true, SPYREGEN_NONE,
		       masks[i], SPYREGEN_NO_MULTICAST);
	}
}

/* Operands that do not fit LX stream through the ring; k with an odd number of tiles ends in a
 * short chunk. */
static void test_matmul_ring(void **state)
{
	(void)state;
	matmul(256, 256, 8192, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, true, SPYREGEN_NONE, 0x1, 0);
	matmul(128, 128, 127 * 64, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, false, SPYREGEN_NONE, 0x3,
	       0);
	matmul(64, 256, 8192 - 64, SPYRE_SEN169_FP16, SPYRE_IEEE_FP32, false, SPYREGEN_NONE, 0x3,
	       0);
}

static void test_matmul_random(void **state)
{
	static const enum spyre_format f[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16,
					       SPYRE_IEEE_FP32 };
	unsigned int i;

	(void)state;
	for (i = 0; i < 40; i++) {
		uint32_t r, m, n, k, mask;

		rng_state = i * 77777u + 5;
		r = rng();
		m = 1 + rng() % (r & 1 ? 300 : 40);
		n = 1 + rng() % (r & 2 ? 300 : 70);
		k = 1 + rng() % (r & 4 ? 900 : 130);
		mask = r & 8 ? 0 : rng() | 1u << (rng() & 15);
		matmul(m, n, k, f[r >> 4 & 1 ? 0 : r >> 5 & 1 ? 1 : 2], f[r >> 6 & 3], r >> 8 & 1,
		       r >> 9 & 1 ? SPYREGEN_RELU : SPYREGEN_NONE, mask, r >> 10 & 1);
	}
}

/* Sums beyond the format's range become its NaN or infinity, as in the reference. */
static void test_matmul_overflow(void **state)
{
	(void)state;
	scale = 0x1p30f;
	matmul(65, 65, 65, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, true, SPYREGEN_NONE, 0, 0);
	matmul(65, 65, 65, SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, true, SPYREGEN_RELU, 0, 0);
	scale = 0x1p-34f;
	matmul(65, 65, 65, SPYRE_BFLOAT16, SPYRE_SEN169_FP16, false, SPYREGEN_RELU, 0, 0);
	scale = 0x1p120f;
	matmul(65, 65, 65, SPYRE_BFLOAT16, SPYRE_IEEE_FP32, false, SPYREGEN_NONE, 0, 0);
	scale = 1;
}

static void test_matmul_512(void **state)
{
	(void)state;
	matmul(512, 512, 512, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, false, SPYREGEN_NONE, 0, 0);
}

static void test_matmul_int8(void **state)
{
	static const uint32_t shapes[][3] = {
		{ 1, 1, 1 }, { 65, 130, 300 }, { 128, 128, 256 }, { 256, 64, 128 }
	};
	struct spyreprog_job *job;
	uint64_t sym[4], cb;
	void *ha, *hb, *hc, *hv;
	unsigned int s, bias;
	struct mem mem;
	char err[200];
	size_t i;

	(void)state;
	for (s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		for (bias = 0; bias < 2; bias++) {
			uint32_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
			struct spyregen_matmul mm = {
				.m = m, .n = n, .k = k, .in = SPYRE_SENINT8, .out = SPYRE_IEEE_INT32,
				.bias = bias, .act = bias ? SPYREGEN_RELU : SPYREGEN_NONE,
			};
			int8_t *a = malloc((size_t)m * k), *b = malloc((size_t)k * n);
			int32_t *bv = malloc(n * 4), *c = malloc((size_t)m * n * 4),
				*got = malloc((size_t)m * n * 4);

			rng_state = s;
			for (i = 0; i < (size_t)m * k; i++)
				a[i] = (int8_t)rng();
			for (i = 0; i < (size_t)k * n; i++)
				b[i] = (int8_t)rng();
			for (i = 0; i < n; i++)
				bv[i] = (int32_t)(rng() % 100000) - 50000;
			mem = mem_new(4u << 20);
			cb = spyregen_bytes(SPYRE_IEEE_INT32, m, n);
			sym[0] = alloc(&mem, spyregen_bytes(SPYRE_SENINT8, m, k), &ha);
			sym[1] = alloc(&mem, spyregen_weight_bytes(SPYRE_SENINT8, k, n), &hb);
			sym[2] = alloc(&mem, cb, &hc);
			sym[3] = alloc(&mem, spyregen_bytes(SPYRE_IEEE_INT32, 1, n), &hv);
			spyregen_pack_int(ha, SPYRE_SENINT8, a, m, k, k);
			spyregen_pack_weights_int(hb, SPYRE_SENINT8, b, k, n, n);
			spyregen_pack_int(hv, SPYRE_IEEE_INT32, bv, 1, n, n);
			job = spyregen_matmul(&mm, err);
			if (!job)
				fail_msg("%s", err);
			run_on(&mem, job, sym, bias ? 4 : 3);
			check_guard(hc, cb);
			spyregen_unpack_int(got, n, hc, SPYRE_IEEE_INT32, m, n);
			spyregen_ref_matmul_int8(a, b, bias ? bv : NULL, bias, c, m, n, k);
			assert_memory_equal(got, c, (size_t)m * n * 4);
			free(mem.data);
			free(a);
			free(b);
			free(bv);
			free(c);
			free(got);
		}
	}
}

/* --- Elementwise and rows ------------------------------------------------------------------- */

static float ew_ref(enum spyregen_op op, float x, float y, float s)
{
	switch (op) {
	case SPYREGEN_COPY: return x;
	case SPYREGEN_OP_RELU: return x > 0 ? x : 0;
	case SPYREGEN_OP_GELU: return (float)(0.5 * x * (1 + erf(x * 0.70710678118654752440)));
	case SPYREGEN_OP_SIGMOID: return (float)(1 / (1 + exp(-(double)x)));
	case SPYREGEN_OP_TANH: return (float)tanh(x);
	case SPYREGEN_EXP: return (float)exp(x);
	case SPYREGEN_LN: return (float)log(x);
	case SPYREGEN_SQRT: return (float)sqrt(x);
	case SPYREGEN_RSQRT: return (float)(1 / sqrt(x));
	case SPYREGEN_RECIP: return (float)(1 / (double)x);
	case SPYREGEN_ABS: return fabsf(x);
	case SPYREGEN_NEG: return -x;
	case SPYREGEN_ERF: return (float)erf(x);
	case SPYREGEN_ADDS: return x + s;
	case SPYREGEN_MULS: return x * s;
	case SPYREGEN_MAXS: return x > s ? x : s;
	case SPYREGEN_MINS: return x < s ? x : s;
	case SPYREGEN_ADD: return x + y;
	case SPYREGEN_SUB: return x - y;
	case SPYREGEN_MUL: return x * y;
	case SPYREGEN_MAX: return x > y ? x : y;
	case SPYREGEN_MIN: return x < y ? x : y;
	default: return s;
	}
}

static bool special(enum spyregen_op op)
{
	return op >= SPYREGEN_OP_GELU && op <= SPYREGEN_RECIP ? true : op == SPYREGEN_ERF;
}

static void elementwise(enum spyregen_op op, uint32_t m, uint32_t n, enum spyre_format in,
			enum spyre_format out, uint32_t cores)
{
	struct spyregen_elementwise e = { op, m, n, in, out, 0.75f, cores, 0, 0 };
	size_t count = (size_t)m * n, i;
	float *a = random_matrix(count, in), *b = random_matrix(count, in),
	      *got = malloc(count * 4), want;
	bool binary = op >= SPYREGEN_ADD && op <= SPYREGEN_MIN, fill = op == SPYREGEN_FILL;
	struct mem mem =
		mem_new((3 * (spyregen_bytes(SPYRE_IEEE_FP32, m, n) + GUARD) + 4095) / 4096 * 4096);
	uint64_t sym[3], bytes = spyregen_bytes(in, m, n);
	struct spyreprog_job *job;
	void *ha, *hb, *hc;
	char err[200];
	unsigned int ns = 0;

	if (op == SPYREGEN_LN || op == SPYREGEN_SQRT || op == SPYREGEN_RSQRT ||
	    op == SPYREGEN_RECIP)
		for (i = 0; i < count; i++)
			a[i] = fabsf(a[i]) + 0.25f;
	spyregen_round(a, count, in);
	if (!fill)
		sym[ns++] = alloc(&mem, bytes, &ha);
	if (binary)
		sym[ns++] = alloc(&mem, bytes, &hb);
	sym[ns++] = alloc(&mem, spyregen_bytes(out, m, n), &hc);
	if (!fill)
		spyregen_pack(ha, in, a, m, n, n);
	if (binary)
		spyregen_pack(hb, in, b, m, n, n);
	job = spyregen_elementwise(&e, err);
	if (!job)
		fail_msg("%s", err);
	run_on(&mem, job, sym, ns);
	check_guard(hc, spyregen_bytes(out, m, n));
	spyregen_unpack(got, n, hc, out, m, n);
	for (i = 0; i < count; i++) {
		bool ok;

		want = ew_ref(op, a[i], b[i], 0.75f);
		spyregen_round(&want, 1, out);
		ok = special(op) ? fabsf(got[i] - want) <=
					   2 * tolerance(out) * fmaxf(fabsf(want), 0x1p-10f)
				 : got[i] == want;
		if (!ok)
			fail_msg("op %u %ux%u: [%zu] of %a, %a is %a, expected %a",
				 (unsigned int)op, m, n, i, (double)a[i], (double)b[i],
				 (double)got[i], (double)want);
	}
	free(mem.data);
	free(a);
	free(b);
	free(got);
}

static void test_elementwise_ops(void **state)
{
	unsigned int op;

	(void)state;
	for (op = 0; op <= SPYREGEN_FILL; op++) {
		elementwise(op, 33, 100, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, 0);
		elementwise(op, 5, 64, SPYRE_IEEE_FP32, SPYRE_IEEE_FP32, 0);
	}
}

static void test_elementwise_shapes(void **state)
{
	static const uint32_t shapes[][2] = {
		{ 1, 1 }, { 1, 4096 }, { 1000, 64 }, { 257, 193 }, { 2048, 512 }
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		elementwise(SPYREGEN_ADD, shapes[i][0], shapes[i][1], SPYRE_SEN169_FP16,
			    SPYRE_SEN169_FP16, i & 1 ? 0x7 : 0);
		elementwise(SPYREGEN_COPY, shapes[i][0], shapes[i][1], SPYRE_SEN169_FP16,
			    SPYRE_IEEE_FP32, 0);
		elementwise(SPYREGEN_COPY, shapes[i][0], shapes[i][1], SPYRE_IEEE_FP32,
			    SPYRE_BFLOAT16, 0);
	}
}

static void rows(enum spyregen_rowop op, uint32_t m, uint32_t n, enum spyre_format fmt)
{
	struct spyregen_row r = { op, m, n, fmt, 0, 0 };
	uint32_t no = op == SPYREGEN_SOFTMAX ? n : 1, i, j;
	float *a = random_matrix((size_t)m * n, fmt), *got = malloc((size_t)m * no * 4);
	struct mem mem = mem_new((spyregen_bytes(fmt, m, n) * 2 + 2 * GUARD + 4095) / 4096 * 4096);
	struct spyreprog_job *job;
	uint64_t sym[2];
	void *ha, *hc;
	char err[200];

	sym[0] = alloc(&mem, spyregen_bytes(fmt, m, n), &ha);
	sym[1] = alloc(&mem, spyregen_bytes(fmt, m, no), &hc);
	spyregen_pack(ha, fmt, a, m, n, n);
	/* Padding columns must not count, whatever they hold. */
	for (i = 0; fmt == SPYRE_SEN169_FP16 && n % 64 && i < m; i++)
		((uint16_t *)ha)[((size_t)(n / 64) * spyregen_rows(m) + i) * 64 + 63] = 0x7000;
	job = spyregen_row(&r, err);
	if (!job)
		fail_msg("%s", err);
	run_on(&mem, job, sym, 2);
	check_guard(hc, spyregen_bytes(fmt, m, no));
	spyregen_unpack(got, no, hc, fmt, m, no);
	for (i = 0; i < m; i++) {
		const float *x = a + (size_t)i * n;
		double max = -INFINITY, sum = 0, total = 0, mag = 0;

		for (j = 0; j < n; j++) {
			max = fmax(max, x[j]);
			total += x[j];
			mag += fabs(x[j]);
		}
		for (j = 0; j < n; j++)
			sum += exp(x[j] - max);
		for (j = 0; j < no; j++) {
			double want = op == SPYREGEN_SOFTMAX  ? exp(x[j] - max) / sum
				      : op == SPYREGEN_ROWMAX ? max
				      : op == SPYREGEN_SUM    ? total
							      : total / n;
			double room = op == SPYREGEN_ROWMAX
					      ? 0
					      : tolerance(fmt) * fabs(want) +
							1e-6 * (op == SPYREGEN_SUM    ? mag
								: op == SPYREGEN_MEAN ? mag / n
										      : 1);

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
	static const uint32_t shapes[][2] = { { 1, 1 },	    { 7, 64 },	  { 64, 10 },
					      { 130, 200 }, { 33, 1000 }, { 3, 4096 } };
	unsigned int op, i;

	(void)state;
	for (op = SPYREGEN_SOFTMAX; op <= SPYREGEN_MEAN; op++) {
		for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
			rows(op, shapes[i][0], shapes[i][1], SPYRE_SEN169_FP16);
			rows(op, shapes[i][0], shapes[i][1], SPYRE_IEEE_FP32);
		}
	}
}

static void test_layout(void **state)
{
	static const enum spyre_format f[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16,
					       SPYRE_IEEE_FP32 };
	uint32_t m, n, i;

	(void)state;
	for (m = 1; m < 2000; m += 37) {
		uint64_t r = spyregen_rows(m);

		assert_true(r >= m && spyregen_rows(r) == r);
		assert_true(r - m < (m + 127) / 128);
	}
	for (i = 0; i < 4; i++) {
		for (m = 1; m < 300; m += 71) {
			for (n = 1; n < 200; n += 33) {
				float *a = random_matrix((size_t)m * n, f[i]),
				      *b = calloc((size_t)m * n, 4);
				void *p = malloc(spyregen_bytes(f[i], m, n));

				spyregen_pack(p, f[i], a, m, n, n);
				spyregen_unpack(b, n, p, f[i], m, n);
				assert_memory_equal(a, b, (size_t)m * n * 4);
				free(a);
				free(b);
				free(p);
			}
		}
	}
}

static void test_refuses(void **state)
{
	struct spyregen_matmul mm = { .n = 1, .k = 1 };
	struct spyregen_elementwise e = { SPYREGEN_ADD, 1, 1, SPYRE_SENINT8, 0, 0, 0, 0, 0 };
	struct spyregen_row r = { SPYREGEN_SOFTMAX, 1, 1u << 24, SPYRE_IEEE_FP32, 0, 0 };
	char err[200] = "";

	(void)state;
	assert_null(spyregen_matmul(&mm, err));
	assert_string_not_equal(err, "");
	mm.m = 1;
	mm.in = SPYRE_SENINT8;
	assert_null(spyregen_matmul(&mm, err));
	mm.in = SPYRE_SEN18F_FP24;
	assert_null(spyregen_matmul(&mm, err));
	mm.in = SPYRE_SEN169_FP16;
	mm.m = 1u << 31;
	assert_null(spyregen_matmul(&mm, err));
	mm.m = 64;
	mm.split_m = 8;
	mm.split_n = 5;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "divide"));
	assert_null(spyregen_elementwise(&e, err));
	assert_null(spyregen_row(&r, err));
	assert_non_null(strstr(err, "LX"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_matmul_shapes),
		cmocka_unit_test(test_matmul_split),
		cmocka_unit_test(test_matmul_formats),
		cmocka_unit_test(test_matmul_activations),
		cmocka_unit_test(test_matmul_cores),
		cmocka_unit_test(test_matmul_ring),
		cmocka_unit_test(test_matmul_random),
		cmocka_unit_test(test_matmul_overflow),
		cmocka_unit_test(test_matmul_512),
		cmocka_unit_test(test_matmul_int8),
		cmocka_unit_test(test_elementwise_ops),
		cmocka_unit_test(test_elementwise_shapes),
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
