// SPDX-License-Identifier: MIT
/*
 * The published cases against the model: none is beyond what the model can do at best, times do not depend on
 * how the host computes, and the cases held out of fitting are as near as they have to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <unistd.h>

#include "cases.h"
#include "soc_int.h"
#include "test_soc_env.h"

static void test_peaks(void **state)
{
	struct timing_result r;
	char err[256];
	size_t i, k;

	(void)state;
	for (i = 0; i < timing_ncases; i++) {
		const struct timing_case *c = &timing_cases[i];

		for (k = 0; k < i; k++)
			assert_string_not_equal(c->id, timing_cases[k].id);
		if (!timing_run(c, &r, err))
			fail_msg("%s: %s", c->id, err);
		assert_true(r.peak_us >= 0 && c->published > c->floor);
		if (c->published - c->floor < r.peak_us * 0.9999)
			fail_msg("%s: published %f us, but the model cannot do it below %f us", c->id,
				 c->published - c->floor, r.peak_us);
		if (r.us < r.peak_us * 0.9999)
			fail_msg("%s: modelled %f us, below its bound of %f us", c->id, r.us, r.peak_us);
	}
}

static void prepare(struct env *e, const struct timing_case *c, const char *how, const struct spyre_soc_time *want)
{
	struct spyre_soc_job job = { .bootaddr = ENV_SEGMENT(7), .mem = &e->mem };
	struct spyre_job_header h;

	memcpy(&h, e->seg[7], sizeof(h));
	job.nsymbols = h.nsymbols;
	job.symbols = ENV_SEGMENT(7) + e->len[7] - ENV_SYMBOLS;
	memset(&e->time, 0, sizeof(e->time));
	if (!spyre_soc_prepare(e->soc, &job, &e->time, &e->rb))
		fail_msg("%s: status %u code %u", c->id, e->rb.status, e->rb.err_code);
	if (want && (e->time.cycles != want->cycles || e->time.rd_bytes != want->rd_bytes ||
		     e->time.wr_bytes != want->wr_bytes || e->time.pt_macs != want->pt_macs))
		fail_msg("%s, %s: %llu cycles, before %llu", c->id, how, (unsigned long long)e->time.cycles,
			 (unsigned long long)want->cycles);
}

static void test_pure(void **state)
{
	const struct vec_ops *const *vec;
	const struct pt_ops *const *pt;
	struct spyre_soc_time first;
	char err[256];
	size_t i, size;

	(void)state;
	for (i = 0; i < timing_ncases; i += 3) {
		const struct timing_case *c = &timing_cases[i];
		void *p = timing_container(c, &size, err);
		struct env e;

		if (!p)
			fail_msg("%s: %s", c->id, err);
		env_init(&e, 1);
		env_load(&e, p, size);
		prepare(&e, c, "first", NULL);
		first = e.time;
		prepare(&e, c, "remembered", &first);
		spyre_soc_reset(e.soc, 0xffffffff);
		prepare(&e, c, "again", &first);
		for (vec = spyre_vec_ops_all(); *vec; vec++) {
			e.soc->vec = *vec;
			spyre_soc_reset(e.soc, 0xffffffff);
			prepare(&e, c, (*vec)->name, &first);
		}
		for (pt = spyre_pt_ops_all(); *pt; pt++) {
			e.soc->pt = *pt;
			spyre_soc_reset(e.soc, 0xffffffff);
			prepare(&e, c, (*pt)->name, &first);
		}
		env_free(&e);
		env_init(&e, 5);
		env_load(&e, p, size);
		prepare(&e, c, "five threads", &first);
		env_free(&e);
		free(p);
	}
}

static void goal(const char *group, bool formula, double most)
{
	double sum = 0, rms;
	unsigned int n = 0;
	struct timing_result r;
	char err[256];
	size_t i;

	for (i = 0; i < timing_ncases; i++) {
		const struct timing_case *c = &timing_cases[i];
		double l;

		if (strcmp(c->group, group) || c->formula != formula || !timing_held_out(c))
			continue;
		if (!timing_run(c, &r, err))
			fail_msg("%s: %s", c->id, err);
		l = log(r.us / (c->published - c->floor));
		sum += l * l;
		n++;
	}
	assert_true(n >= 2);
	rms = sqrt(sum / n);
	print_message("  %-10s %-12s %2u cases held out, RMS %.1f %%\n", group, formula ? "formula" : "measurement", n,
		      100 * rms);
	if (rms > most)
		fail_msg("%s: RMS %f of the cases held out, the goal is %f", group, rms, most);
}

static void test_goals(void **state)
{
	(void)state;
	goal("streaming", true, 0.05);
	goal("matmul", true, 0.15);
	goal("matmul", false, 0.15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peaks),
		cmocka_unit_test(test_pure),
		cmocka_unit_test(test_goals),
	};

	alarm(900);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
