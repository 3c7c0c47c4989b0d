// SPDX-License-Identifier: MIT
/*
 * The generator's own division of a product among cores is timed beside every division by powers of
 * two that it can be asked for (with --all: every division): it may lose 10 % to the best, and in the
 * sweep, which has very short products, ROOM cycles more.
 */
#include "gen_env.h"

static uint64_t cycles(const struct spyregen_matmul *mm)
{
	static uint64_t symbols[4] = { DATA_BASE, DATA_BASE + (1ull << 30), DATA_BASE + (2ull << 30),
				       DATA_BASE + (3ull << 30) };
	struct mem m = { 0 };
	struct spyre_soc_mem ops = { &m, dmva, hmva, checkpoint, keep, active };
	struct spyre_soc_job j = { .bootaddr = PROG_BASE, .symbols = (uintptr_t)symbols,
				   .nsymbols = 3, .symbols_host = true, .context = 1, .mem = &ops };
	struct spyreprog_job *job;
	struct spyre_soc_time time;
	struct spyre_rb rb = { 0 };
	char err[200];
	size_t size;

	job = spyregen_matmul(mm, err);
	if (!job)
		return UINT64_MAX;
	if (spyreprog_job_finish(job, (void **)&m.prog, &size))
		fail_msg("finish: %s", spyreprog_job_error(job));
	spyreprog_job_free(job);
	m.prog_size = size;
	if (!spyre_soc_prepare(soc, &j, &time, &rb))
		fail_msg("status %u err %u", rb.status, rb.err_code);
	free(m.prog);
	return time.cycles;
}

/* k divided as the generator likes, beside every number of slices. */
static void test_slices(void **state)
{
	static const struct { uint32_t m, n, k; } s[] = {
		{ 1, 64, 8192 }, { 16, 128, 8192 }, { 128, 128, 4096 }, { 1, 4096, 4096 },
		{ 1024, 64, 1024 }, { 512, 512, 512 }, { 64, 256, 16384 },
	};
	uint64_t chosen, best, t;
	unsigned int i, bad = 0;
	uint32_t gk, bk;

	(void)state;
	for (i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
		struct spyregen_matmul mm = { .m = s[i].m, .n = s[i].n, .k = s[i].k,
					      .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16,
					      .split_k = SPYREGEN_SPLIT_FREE };

		chosen = best = cycles(&mm);
		for (gk = 1, bk = 0; gk <= 32; gk++) {
			mm.split_k = gk;
			t = cycles(&mm);
			if (t < best) {
				best = t;
				bk = gk;
			}
		}
		if ((double)chosen > 1.10 * (double)best) {
			print_message("%ux%ux%u: %llu cycles, %llu in %u slices\n", s[i].m, s[i].n,
				      s[i].k, (unsigned long long)chosen, (unsigned long long)best, bk);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

/* The least of chosen and the cycles of mm divided by powers of two, or every way; who has it, 0 x 0: chosen. */
static uint64_t least(const struct spyregen_matmul *mm, uint64_t chosen, bool every, uint32_t *bm,
		      uint32_t *bn)
{
	struct spyregen_matmul own = *mm;
	uint64_t best = chosen, t;
	uint32_t gm, gn;

	*bm = *bn = 0;
	for (gm = 1; gm <= 32; gm += every ? 1 : gm) {
		for (gn = 1; gm * gn <= 32; gn += every ? 1 : gn) {
			own.split_m = gm;
			own.split_n = gn;
			t = cycles(&own);
			if (t < best) {
				best = t;
				*bm = gm;
				*bn = gn;
			}
		}
	}
	return best;
}

static void test_division(void **state)
{
	static const struct { uint32_t m, n, k; } s[] = {
		{ 1, 4096, 4096 }, { 128, 4096, 4096 }, { 512, 512, 512 }, { 2048, 2048, 2048 },
		{ 64, 8192, 1024 }, { 1024, 64, 1024 }, { 300, 640, 448 }, { 4096, 128, 256 },
		{ 33, 1000, 777 }, { 2048, 1024, 128 },
	};
	uint64_t chosen, best;
	unsigned int i, bad = 0;
	uint32_t bm, bn;

	(void)state;
	for (i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
		struct spyregen_matmul mm = { .m = s[i].m, .n = s[i].n, .k = s[i].k,
					      .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16 };

		chosen = cycles(&mm);
		best = least(&mm, chosen, false, &bm, &bn);
		if ((double)chosen > 1.10 * (double)best) {
			print_message("%ux%ux%u: %llu cycles, %llu as %u x %u\n", s[i].m, s[i].n, s[i].k,
				      (unsigned long long)chosen, (unsigned long long)best, bm, bn);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

#define ROOM	1000u

static bool all;

static void test_sweep(void **state)
{
	static const uint32_t ms[] = { 1, 7, 64, 100, 512, 1500 }, ns[] = { 64, 200, 1024, 4096 };
	static const uint32_t ks[] = { 64, 512, 4096 };
	static const enum spyre_format in[] = { SPYRE_SEN169_FP16, SPYRE_SENINT4, SPYRE_SENINT8 };
	unsigned int f, i, bad = 0;
	uint64_t chosen, best;
	uint32_t bm, bn;

	(void)state;
	for (f = 0; f < (all ? 3 : 2); f++) {
		for (i = 0; i < 6 * 4 * 3; i++) {
			struct spyregen_matmul mm = { .m = ms[i % 6], .n = ns[i / 6 % 4], .k = ks[i / 24],
						      .in = in[f],
						      .out = f ? SPYRE_IEEE_INT32 : SPYRE_SEN169_FP16 };

			chosen = cycles(&mm);
			best = least(&mm, chosen, all, &bm, &bn);
			if ((double)chosen > 1.10 * (double)best + ROOM) {
				print_message("format %u, %ux%ux%u: %llu cycles, %llu as %u x %u\n", in[f],
					      mm.m, mm.n, mm.k, (unsigned long long)chosen,
					      (unsigned long long)best, bm, bn);
				bad++;
			}
		}
	}
	assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_division),
					  cmocka_unit_test(test_slices),
					  cmocka_unit_test(test_sweep) };

	all = argc > 1 && !strcmp(argv[1], "--all");

	return cmocka_run_group_tests(tests, setup, teardown);
}
