// SPDX-License-Identifier: MIT
/*
 * Matrix products of odd shapes, in batches and with k divided, against double precision: at most
 * k roundings of sums of products, then one to the result's format.
 */
#include "gen_env.h"

struct product {
	struct spyregen_matmul mm;
	const float *a, *b, *bias;	/* batch after batch */
	float *got;
};

static double act_ref(double x, enum spyregen_act act)
{
	switch (act) {
	case SPYREGEN_RELU: return fmax(x, 0);
	case SPYREGEN_GELU: return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
	case SPYREGEN_SIGMOID: return 1 / (1 + exp(-x));
	case SPYREGEN_TANH: return tanh(x);
	default: return x;
	}
}

static void check_one(const struct product *p, const float *a, const float *b, const float *got)
{
	const struct spyregen_matmul *mm = &p->mm;
	uint32_t i, j, l;

	for (i = 0; i < mm->m; i++) {
		for (j = 0; j < mm->n; j++) {
			double sum = p->bias ? p->bias[j] : 0, mag = fabs(sum), want, room;

			for (l = 0; l < mm->k; l++) {
				double x = (double)a[(size_t)i * mm->k + l] *
					   b[(size_t)l * mm->n + j];

				sum += x;
				mag += fabs(x);
			}
			want = act_ref(sum, mm->act);
			/* GELU is steeper than 1 by an eighth. */
			room = 1.2 * (mm->k + 2) * 0x1p-24 * mag +
			       2 * tolerance(mm->out) * fmax(fabs(want), 0x1p-10);
			if (!(fabs(got[(size_t)i * mm->n + j] - want) <= room))
				fail_msg("%ux%ux%u split %u batch %u: [%u][%u] is %a, expected %a",
					 mm->m, mm->n, mm->k, mm->split_k, mm->batch, i, j,
					 (double)got[(size_t)i * mm->n + j], want);
		}
	}
}

/* t (cols x rows) = v (rows x cols) */
static void transpose(float *t, const float *v, uint32_t rows, uint32_t cols)
{
	size_t i, j;

	for (i = 0; i < rows; i++)
		for (j = 0; j < cols; j++)
			t[j * rows + i] = v[i * cols + j];
}

static void product(struct spyregen_matmul mm)
{
	uint32_t batch = mm.batch ? mm.batch : 1, na, nb, i;
	struct product p = { .mm = mm };
	size_t ea = (size_t)mm.m * mm.k, eb = (size_t)mm.k * mm.n, ec = (size_t)mm.m * mm.n;
	uint64_t ba = spyregen_bytes(mm.in, mm.m, mm.k);
	uint64_t bb = spyregen_weight_bytes(mm.in, mm.k, mm.n);
	uint64_t bc = spyregen_bytes(mm.out, mm.m, mm.n);
	struct spyreprog_job *job;
	uint64_t sym[6];
	void *ha, *hb, *hc, *hv, *hs;
	bool ta = mm.flags & SPYREGEN_TRANSPOSED_A, tb = mm.flags & SPYREGEN_TRANSPOSED_B;
	bool sb = mm.flags & SPYREGEN_STICKS_B;
	uint64_t given_a = ta ? spyregen_bytes(mm.in, mm.k, mm.m) : ba;
	uint64_t given_b = tb ? spyregen_bytes(mm.in, mm.n, mm.k) :
			   sb ? spyregen_bytes(mm.in, mm.k, mm.n) : bb;
	unsigned int ns = mm.bias ? 4 : 3;
	float *a, *b, *v, *got, *t;
	struct mem mem;
	char err[200];

	na = mm.flags & SPYREGEN_SHARED_A ? 1 : batch;
	nb = mm.flags & SPYREGEN_SHARED_B ? 1 : batch;
	rng_state = mm.m * 31 + mm.n * 17 + mm.k;
	a = random_matrix(ea * na, mm.in);
	b = random_matrix(eb * nb, mm.in);
	v = random_matrix(mm.n, SPYRE_IEEE_FP32);
	got = malloc(ec * sizeof(*got));
	t = malloc((ea > eb ? ea : eb) * sizeof(*t));
	mem = mem_new((given_a * na + given_b * nb + ba * na + bb * nb + bc * batch + spyregen_bytes(SPYRE_IEEE_FP32, 1, mm.n) +
		       6 * GUARD + 4095) / 4096 * 4096);
	sym[0] = alloc(&mem, given_a * na, &ha);
	sym[1] = alloc(&mem, given_b * nb, &hb);
	sym[2] = alloc(&mem, bc * batch, &hc);
	sym[3] = alloc(&mem, spyregen_bytes(SPYRE_IEEE_FP32, 1, mm.n), &hv);
	for (i = 0; i < na; i++) {
		transpose(t, a + i * ea, mm.m, mm.k);
		if (ta)
			spyregen_pack((uint8_t *)ha + i * given_a, mm.in, t, mm.k, mm.m, mm.m);
		else
			spyregen_pack((uint8_t *)ha + i * ba, mm.in, a + i * ea, mm.m, mm.k, mm.k);
	}
	for (i = 0; i < nb; i++) {
		uint8_t *to = (uint8_t *)hb + i * given_b;

		transpose(t, b + i * eb, mm.k, mm.n);
		if (tb)
			spyregen_pack(to, mm.in, t, mm.n, mm.k, mm.k);
		else if (sb)
			spyregen_pack(to, mm.in, b + i * eb, mm.k, mm.n, mm.n);
		else
			spyregen_pack_weights(to, mm.in, b + i * eb, mm.k, mm.n, mm.n);
	}
	spyregen_pack(hv, SPYRE_IEEE_FP32, v, 1, mm.n, mm.n);
	memset(hc, 0x5a, bc * batch);
	if (ta) {
		sym[ns++] = alloc(&mem, ba * na, &hs);
		memset(hs, 0xff, ba * na);
	}
	if (tb || sb) {
		sym[ns++] = alloc(&mem, bb * nb, &hs);
		memset(hs, 0xff, bb * nb);
	}
	job = spyregen_matmul(&mm, err);
	if (!job)
		fail_msg("%ux%ux%u split %u batch %u: %s", mm.m, mm.n, mm.k, mm.split_k, mm.batch,
			 err);
	run_on(&mem, job, sym, ns);
	check_guard(hc, bc * batch);
	p.bias = mm.bias ? v : NULL;
	for (i = 0; i < batch; i++) {
		spyregen_unpack(got, mm.n, (uint8_t *)hc + i * bc, mm.out, mm.m, mm.n);
		check_one(&p, a + (na > 1 ? i * ea : 0), b + (nb > 1 ? i * eb : 0), got);
	}
	free(mem.data);
	free(a);
	free(b);
	free(v);
	free(t);
	free(got);
}

static const uint32_t odd[] = { 1, 2, 31, 63, 64, 65, 127, 128, 129, 191, 257 };

#define ODD	(sizeof(odd) / sizeof(odd[0]))

/* All triples of odd sizes would take minutes; each pair of dimensions meets all pairs of sizes. */
static void test_odd(void **state)
{
	unsigned int i, j;

	(void)state;
	for (i = 0; i < ODD; i++) {
		for (j = 0; j < ODD; j++) {
			struct spyregen_matmul mm = { .m = odd[i], .n = odd[j],
						      .k = odd[(i + j) % ODD],
						      .in = SPYRE_SEN169_FP16,
						      .out = SPYRE_IEEE_FP32, .bias = j & 1,
						      .cores = j & 2 ? 0 : 0xff };

			product(mm);
			if ((i ^ j) & 1)
				continue;
			mm.act = (enum spyregen_act)((i + j) % 5);
			mm.in = mm.out = SPYRE_IEEE_FP16;
			mm.k = odd[ODD - 1 - (i + j) % ODD];
			product(mm);
		}
	}
}

static void test_batch(void **state)
{
	static const struct { uint32_t batch, m, n, k, cores; } s[] = {
		{ 2, 64, 64, 64, 0 }, { 3, 1, 65, 127, 0 }, { 7, 129, 130, 64, 0 },
		{ 40, 17, 64, 64, 0 }, { 33, 64, 128, 128, 0x7f }, { 5, 200, 190, 200, 0x1 },
		{ 4, 256, 256, 192, 0 }, { 2, 128, 256, 8192, 0x1 }, { 3, 300, 128, 64, 0x3 },
	};
	unsigned int i, f;

	(void)state;
	for (i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
		for (f = 0; f < 4; f++) {
			if (s[i].k > 1000 && f)
				continue;
			product((struct spyregen_matmul){
				.m = s[i].m, .n = s[i].n, .k = s[i].k, .batch = s[i].batch,
				.cores = s[i].cores, .in = SPYRE_SEN169_FP16,
				.out = f & 1 ? SPYRE_IEEE_FP32 : SPYRE_SEN169_FP16, .bias = f & 1,
				.act = f & 1 ? SPYREGEN_RELU : SPYREGEN_NONE,
				.flags = (f & 1 ? SPYREGEN_SHARED_A : 0) |
					 (f & 2 ? SPYREGEN_SHARED_B : 0) });
		}
	}
}

/* Slices on two to all cores, with one and two corelets, bias and activation at the chain's end. */
static void test_split_k(void **state)
{
	static const struct { uint32_t m, n, k, split, gm, gn, batch, cores; } s[] = {
		{ 1, 64, 128, 2, 0, 0, 0, 0 }, { 1, 128, 8192, 32, 0, 0, 0, 0 },
		{ 33, 128, 512, 4, 0, 0, 0, 0 }, { 65, 320, 640, 5, 1, 5, 0, 0 },
		{ 256, 256, 256, 4, 4, 2, 0, 0 }, { 128, 192, 2048, 8, 0, 0, 3, 0 },
		{ 7, 70, 448, 7, 0, 0, 0, 0x7f00 }, { 64, 128, 1024, 2, 1, 1, 5, 0x80000001 },
		{ 128, 4096, 448, 7, 0, 0, 0, 0x7f }, { 5, 100, 16384, SPYREGEN_SPLIT_FREE, 0, 0, 0, 0 },
	};
	unsigned int i, f;

	(void)state;
	for (i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
		for (f = 0; f < 4; f++) {
			product((struct spyregen_matmul){
				.m = s[i].m, .n = s[i].n, .k = s[i].k, .batch = s[i].batch,
				.split_k = s[i].split, .split_m = s[i].gm, .split_n = s[i].gn,
				.cores = s[i].cores, .in = f & 2 ? SPYRE_BFLOAT16 : SPYRE_SEN169_FP16,
				.out = f & 1 ? SPYRE_IEEE_FP32 : SPYRE_SEN169_FP16, .bias = f & 1,
				.act = f == 3 ? SPYREGEN_GELU : f == 1 ? SPYREGEN_RELU : SPYREGEN_NONE,
				.flags = i & 1 ? SPYREGEN_NO_MULTICAST : 0 });
		}
	}
}

/* Both operands in every form, alone, in batches, with k divided and on few cores. */
static void test_transposed(void **state)
{
	static const struct { uint32_t m, n, k, batch, split, cores; } s[] = {
		{ 1, 1, 1, 0, 0, 0 }, { 65, 130, 63, 0, 0, 0 }, { 128, 64, 192, 0, 0, 0x9 },
		{ 200, 257, 129, 0, 0, 0 }, { 33, 128, 512, 0, 4, 0 }, { 70, 66, 128, 6, 0, 0 },
		{ 300, 320, 448, 2, 0, 0x1 }, { 64, 64, 64, 40, 0, 0 },
	};
	static const unsigned int b[] = { 0, SPYREGEN_TRANSPOSED_B, SPYREGEN_STICKS_B };
	unsigned int i, f;

	(void)state;
	for (i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
		for (f = 1; f < 6; f++) {
			product((struct spyregen_matmul){
				.m = s[i].m, .n = s[i].n, .k = s[i].k, .batch = s[i].batch,
				.split_k = s[i].split, .cores = s[i].cores,
				.in = f & 1 ? SPYRE_SEN169_FP16 : SPYRE_IEEE_FP16, .bias = f & 1,
				.out = SPYRE_IEEE_FP32,
				.act = f == 1 ? SPYREGEN_GELU : SPYREGEN_NONE,
				.flags = (f & 1 ? SPYREGEN_TRANSPOSED_A : 0) | b[f / 2] |
					 (f == 5 && s[i].batch ? SPYREGEN_SHARED_B : 0) });
		}
	}
}

/* Products of 8-bit floating point are exact in fp32, so sums are as good as of wider formats. */
static void test_fp8(void **state)
{
	static const uint32_t s[][3] = {
		{ 1, 1, 1 }, { 65, 130, 127 }, { 128, 64, 129 }, { 257, 192, 300 }, { 64, 320, 4096 },
	};
	static const enum spyre_format out[] = { SPYRE_IEEE_FP32, SPYRE_SEN169_FP16, SPYRE_IEEE_FP16,
						 SPYRE_BFLOAT16 };
	unsigned int i, f;

	(void)state;
	for (i = 0; i < sizeof(s) / sizeof(s[0]); i++)
		for (f = 0; f < 4; f++)
			product((struct spyregen_matmul){
				.m = s[i][0], .n = s[i][1], .k = s[i][2], .batch = i == 1 ? 3 : 0,
				.split_k = i == 4 && f & 1 ? 4 : 0, .out = out[f], .bias = f & 1,
				.in = f & 1 ? SPYRE_SEN143_FP8 : SPYRE_SEN152_FP8,
				.act = f == 3 ? SPYREGEN_TANH : SPYREGEN_NONE });
}

static void test_refuses(void **state)
{
	struct spyregen_matmul mm = { .m = 64, .n = 64, .k = 320, .split_k = 3 };
	char err[200] = "";

	(void)state;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "divide"));
	mm.split_k = 5;
	mm.cores = 0xf;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "4 cores"));
	mm.split_k = 0;
	mm.batch = 1u << 21;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "batch"));
	mm.batch = 2;
	mm.flags = SPYREGEN_STICKS_B | SPYREGEN_TRANSPOSED_B;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "either"));
	mm.in = SPYRE_SENINT8;
	mm.out = SPYRE_IEEE_INT32;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "16-bit"));
	mm.k = 0;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "at least 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_batch),
		cmocka_unit_test(test_split_k),
		cmocka_unit_test(test_transposed),
		cmocka_unit_test(test_fp8),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
