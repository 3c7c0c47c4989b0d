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

static void product(struct spyregen_matmul mm)
{
	uint32_t batch = mm.batch ? mm.batch : 1, na, nb, i;
	struct product p = { .mm = mm };
	size_t ea = (size_t)mm.m * mm.k, eb = (size_t)mm.k * mm.n, ec = (size_t)mm.m * mm.n;
	uint64_t ba = spyregen_bytes(mm.in, mm.m, mm.k);
	uint64_t bb = spyregen_weight_bytes(mm.in, mm.k, mm.n);
	uint64_t bc = spyregen_bytes(mm.out, mm.m, mm.n);
	struct spyreprog_job *job;
	uint64_t sym[4];
	void *ha, *hb, *hc, *hv;
	float *a, *b, *v, *got;
	struct mem mem;
	char err[200];

	na = mm.flags & SPYREGEN_SHARED_A ? 1 : batch;
	nb = mm.flags & SPYREGEN_SHARED_B ? 1 : batch;
	rng_state = mm.m * 31 + mm.n * 17 + mm.k;
	a = random_matrix(ea * na, mm.in);
	b = random_matrix(eb * nb, mm.in);
	v = random_matrix(mm.n, SPYRE_IEEE_FP32);
	got = malloc(ec * sizeof(*got));
	mem = mem_new((ba * na + bb * nb + bc * batch + spyregen_bytes(SPYRE_IEEE_FP32, 1, mm.n) +
		       4 * GUARD + 4095) / 4096 * 4096);
	sym[0] = alloc(&mem, ba * na, &ha);
	sym[1] = alloc(&mem, bb * nb, &hb);
	sym[2] = alloc(&mem, bc * batch, &hc);
	sym[3] = alloc(&mem, spyregen_bytes(SPYRE_IEEE_FP32, 1, mm.n), &hv);
	for (i = 0; i < na; i++)
		spyregen_pack((uint8_t *)ha + i * ba, mm.in, a + i * ea, mm.m, mm.k, mm.k);
	for (i = 0; i < nb; i++)
		spyregen_pack_weights((uint8_t *)hb + i * bb, mm.in, b + i * eb, mm.k, mm.n, mm.n);
	spyregen_pack(hv, SPYRE_IEEE_FP32, v, 1, mm.n, mm.n);
	memset(hc, 0x5a, bc * batch);
	job = spyregen_matmul(&mm, err);
	if (!job)
		fail_msg("%ux%ux%u split %u batch %u: %s", mm.m, mm.n, mm.k, mm.split_k, mm.batch,
			 err);
	run_on(&mem, job, sym, mm.bias ? 4 : 3);
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
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
