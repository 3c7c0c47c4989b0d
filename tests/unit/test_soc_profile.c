// SPDX-License-Identifier: MIT
/* Profiles: what units spend their time on, that it adds up, and that asking changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "job.h"
#include "spyregen.h"
#include "test_soc_env.h"
#include "time_params.h"

#define R0 SPYRE_LAR0
#define E0 SPYRE_EAR0
#define NOREG SPYRE_REG_NONE
#define F(f) SPYRE_OPND_FIFO(SPYRE_FIFO_##f)
#define RAW (SPYRE_IEEE_INT32 | SPYRE_FMT_HALF)
#define LINK ((SPYRE_CORE_HZ * (uint64_t)SPYRE_SOC_TICKS + TIME_LINK_HZ / 2) / TIME_LINK_HZ)

static int add(struct spyreprog_job *j, unsigned int core, enum spyre_unit kind, unsigned int x)
{
	int p = spyreprog_job_program(j, kind);

	spyreprog_job_unit(j, core, kind, x, p);
	return p;
}

static struct spyre_soc_job request(struct env *e)
{
	static const uint64_t symbols[4] = { 0, ENV_SEGMENT(1), ENV_SEGMENT(2), ENV_SEGMENT(3) };
	const struct spyre_job_header *h = (const void *)e->seg[7];

	memcpy(e->seg[7] + e->len[7] - ENV_SYMBOLS, symbols, sizeof(symbols));
	return (struct spyre_soc_job){
		.bootaddr = ENV_SEGMENT(7), .nsymbols = h->nsymbols, .mem = &e->mem, .context = 1,
		.symbols = ENV_SEGMENT(7) + e->len[7] - ENV_SYMBOLS,
	};
}

/* Profiles what is loaded and checks what holds for every profile. */
static void profile(struct env *e, struct spyre_soc_profile *p, uint32_t phases)
{
	struct spyre_soc_job job = request(e);
	struct spyre_soc_time time;
	unsigned int c, k, i, s;
	struct spyre_rb rb;
	uint64_t macs = 0;

	p->phases = phases;
	if (!spyre_soc_profile(e->soc, &job, p, &rb))
		fail_msg("status %u code %u core %d unit %x pc %u", rb.status, rb.err_code, (int16_t)rb.err_core,
			 rb.err_unit, rb.err_pc);
	assert_true(spyre_soc_prepare(e->soc, &job, &time, &rb));
	assert_memory_equal(&time, &p->time, sizeof(time));
	assert_int_equal(p->total, time.cycles * SPYRE_SOC_TICKS);
	for (c = 0; c < 32; c++) {
		assert_int_equal(p->core[c].alike >> c & 1, p->core_mask >> c & 1);
		macs += p->core[c].macs;
		for (k = 0; k < SPYRE_PROFILE_UNITS; k++) {
			const struct spyre_unit_profile *u = &p->core[c].unit[k];
			uint64_t sum[SPYRE_SPENT] = { 0 }, at = 0, all = 0;

			for (s = 0; s < SPYRE_SPENT; s++)
				all += u->spent[s];
			if (k < SPYRE_PROFILE_PORT)
				assert_int_equal(all, u->end);
			assert_true(u->end <= p->total && all <= u->end && u->nphases <= phases);
			if (!phases || !all || __builtin_ctz(p->core[c].alike) != (int)c) {
				assert_int_equal(u->nphases, 0);
				continue;
			}
			assert_true(u->nphases);
			for (i = 0; i < u->nphases; i++) {
				uint64_t in = 0;

				assert_true(u->phase[i].start >= at && u->phase[i].end > u->phase[i].start);
				at = u->phase[i].end;
				for (s = 0; s < SPYRE_SPENT; s++) {
					sum[s] += u->phase[i].spent[s];
					in += u->phase[i].spent[s];
				}
				assert_true(in <= at - u->phase[i].start);
			}
			assert_true(at <= u->end);
			assert_memory_equal(sum, u->spent, sizeof(sum));
		}
	}
	assert_int_equal(macs, p->time.pt_macs);
}

/* LXLU gives a word a link cycle, SFP takes one every four core cycles: LXLU is blocked, and SFP never starves. */
static void test_blocked(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct spyre_soc_profile p;
	struct env e;
	int lx, pe;

	(void)state;
	env_init(&e, 1);
	lx = add(j, 5, SPYRE_UNIT_LXLU, 1);
	pe = add(j, 5, SPYRE_UNIT_SFP, 1);
	sp_loop(j, lx, 10);
	sp_ld(j, lx, R0, NOREG, SPYRE_FIFO_LXLU_SFP0, 100, 0, 0);
	sp_end(j, lx);
	sp_vec(j, pe, SPYRE_OP_EXP, 0, F(LXLU_SFP0), 0, 0, 1000, 0, SPYRE_FMTS(SPYRE_SEN169_FP16, 0, 0, 0));
	env_load_job(&e, j);
	profile(&e, &p, 0);
	assert_int_equal(p.core_mask, 1 << 5);
	{
		const struct spyre_unit_profile *l = &p.core[5].unit[job_unit_index(SPYRE_UNIT_LXLU, 1)];
		const struct spyre_unit_profile *v = &p.core[5].unit[job_unit_index(SPYRE_UNIT_SFP, 1)];

		assert_int_equal(l->bytes, 1000 * SPYRE_STICK);
		assert_int_equal(v->bytes, 1000 * SPYRE_STICK);
		/* The words, and an instruction to begin the loop. */
		assert_int_equal(l->spent[SPYRE_BUSY], 1000 * LINK + SPYRE_SOC_TICKS);
		assert_int_equal(l->spent[SPYRE_STARVED], 0);
		assert_true(l->spent[SPYRE_BLOCKED] > l->spent[SPYRE_BUSY]);
		assert_int_equal(v->spent[SPYRE_BUSY], 1000ull * TIME_SPECIAL_CYCLES * SPYRE_SOC_TICKS);
		assert_int_equal(v->spent[SPYRE_BLOCKED], 0);
		assert_true(v->spent[SPYRE_STARVED] < 20 * SPYRE_SOC_TICKS);
	}
	env_free(&e);
}

/* The other way round: PE is faster than what feeds it. */
static void test_starved(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	const struct spyre_unit_profile *v, *s;
	struct spyre_soc_profile p;
	struct env e;
	int lx, pe, sfp;

	(void)state;
	env_init(&e, 1);
	lx = add(j, 0, SPYRE_UNIT_LXLU, 0);
	pe = add(j, 0, SPYRE_UNIT_PE, 0);
	sfp = add(j, 0, SPYRE_UNIT_SFP, 0);
	sp_ld(j, lx, R0, NOREG, SPYRE_FIFO_LXLU_SFP0, 1000, 0, 0);
	sp_vec(j, sfp, SPYRE_OP_EXP, F(SFP_PE), F(LXLU_SFP0), 0, 0, 1000, 0,
	       SPYRE_FMTS(SPYRE_SEN169_FP16, 0, 0, SPYRE_SEN169_FP16));
	sp_vec(j, pe, SPYRE_OP_MOV, 0, F(SFP_PE), 0, 0, 1000, 0, SPYRE_FMTS(RAW, 0, 0, 0));
	env_load_job(&e, j);
	profile(&e, &p, 64);
	v = &p.core[0].unit[job_unit_index(SPYRE_UNIT_PE, 0)];
	s = &p.core[0].unit[job_unit_index(SPYRE_UNIT_SFP, 0)];
	assert_int_equal(v->spent[SPYRE_BUSY], 1000 * LINK);
	assert_true(2 * v->spent[SPYRE_STARVED] > 3 * v->spent[SPYRE_BUSY]);
	assert_int_equal(v->spent[SPYRE_BLOCKED], 0);
	assert_int_equal(s->bytes, 2000 * SPYRE_STICK);
	spyre_soc_profile_free(&p);
	assert_null(p.core[0].unit[0].phase);
	env_free(&e);
}

/* Loads of all cores: memory is the limit; of one core: places in flight are. */
static void test_memory(void **state)
{
	unsigned int cores, c;

	(void)state;
	for (cores = 1; cores <= 32; cores += 31) {
		struct spyreprog_job *j = spyreprog_job_new();
		int l3 = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
		const struct spyre_core_profile *q;
		struct spyre_soc_profile p;
		double share, flying;
		struct env e;

		env_init(&e, 1);
		sp_loop(j, l3, 200);
		sp_l3(j, l3, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 0, 0);
		sp_end(j, l3);
		for (c = 0; c < cores; c++)
			spyreprog_job_unit(j, c, SPYRE_UNIT_L3LU, 0, l3);
		env_load_job(&e, j);
		profile(&e, &p, 0);
		q = &p.core[0];
		assert_int_equal(q->bursts[0], 200);
		assert_int_equal(q->bursts[1], 0);
		assert_int_equal(q->in_bytes, 200 * 32 * SPYRE_STICK);
		assert_int_equal(q->out_bytes, 0);
		assert_int_equal(q->unit[SPYRE_UNIT_L3LU].bytes, q->in_bytes);
		assert_int_equal(q->alike, cores == 32 ? 0xffffffffu : 1);
		assert_int_equal(p.time.rd_bytes, cores * q->in_bytes);
		assert_true(q->unit[SPYRE_UNIT_L3LU].spent[SPYRE_BLOCKED] > p.total / 10 * 9);
		assert_true(p.port_busy[1] == (cores == 32 ? p.port_busy[0] : 0));
		share = (double)p.memory_busy / (double)p.total;
		flying = (double)q->burst_time[0] / (double)p.total;
		assert_true(cores == 32 ? share > 0.9 && share <= 1 : share < 0.15);
		assert_true(flying > p.bursts_in_flight[0] - 0.5 && flying <= p.bursts_in_flight[0]);
		env_free(&e);
	}
}

/*
 * Programs that differ in addresses alone are timed once: all in one, each core its own, and one core with another loop
 * count among them.
 */
static void test_addresses(void **state)
{
	uint64_t cycles[3];
	unsigned int way, c;

	(void)state;
	for (way = 0; way < 3; way++) {
		struct spyreprog_job *j = spyreprog_job_new();
		struct spyre_soc_profile p;
		int l3 = -1, lx = -1, su = -1;
		struct env e;

		env_init(&e, 1);
		for (c = 0; c < 32; c++) {
			int32_t k = way ? (int32_t)c : 0;

			if (way || !c) {
				l3 = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
				sp_mvreg(j, l3, E0, NOREG, k * 4096);
				sp_mvreg(j, l3, SPYRE_LCR0, NOREG, way == 2 && c == 5 ? 19 : 20);
				sp_loop_reg(j, l3, SPYRE_LCR0);
				sp_l3(j, l3, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, k * 128, k * 256);
				sp_addimm(j, l3, E0, -k * 512);
				sp_end(j, l3);
				lx = spyreprog_job_program(j, SPYRE_UNIT_LXLU);
				sp_mvreg(j, lx, R0, NOREG, k * 1024);
				sp_ld(j, lx, R0, NOREG, SPYRE_FIFO_LXLU_SFP0, 8, k * 128, k * 128);
				su = spyreprog_job_program(j, SPYRE_UNIT_SFP);
				sp_vec(j, su, SPYRE_OP_MOV, 0, F(LXLU_SFP0), 0, 0, 8, 0,
				       SPYRE_FMTS(SPYRE_SEN169_FP16, 0, 0, 0));
			}
			spyreprog_job_unit(j, c, SPYRE_UNIT_L3LU, 0, l3);
			spyreprog_job_unit(j, c, SPYRE_UNIT_LXLU, 0, lx);
			spyreprog_job_unit(j, c, SPYRE_UNIT_SFP, 0, su);
		}
		env_load_job(&e, j);
		profile(&e, &p, 0);
		cycles[way] = p.time.cycles;
		assert_int_equal(p.core[0].alike, way == 2 ? 0xffffffdfu : 0xffffffffu);
		assert_int_equal(p.core[5].alike, way == 2 ? 0x20u : 0xffffffffu);
		assert_int_equal(p.core[5].bursts[0], way == 2 ? 19 : 20);
		env_free(&e);
	}
	assert_int_equal(cycles[0], cycles[1]);
	assert_true(cycles[2] <= cycles[0] && cycles[2] > cycles[0] / 20 * 19);
}

/* A product over all cores, kept in few phases and in many. */
static void test_phases(void **state)
{
	static const uint32_t kept[] = { 2, 3, 50, 100000 };
	struct spyregen_matmul mm = {
		.m = 300, .n = 1000, .k = 500, .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16, .bias = true,
		.act = SPYREGEN_GELU,
	};
	struct spyre_soc_profile p[4];
	char err[256];
	struct env e;
	unsigned int i, c, k;
	void *bin;
	size_t n;

	(void)state;
	struct spyreprog_job *j = spyregen_matmul(&mm, err);

	assert_non_null(j);
	assert_int_equal(spyreprog_job_finish(j, &bin, &n), 0);
	spyreprog_job_free(j);
	env_init(&e, 1);
	env_load(&e, bin, n);
	free(bin);
	for (i = 0; i < 4; i++)
		profile(&e, &p[i], kept[i]);
	for (c = 0; c < 32; c++)
		for (k = 0; k < SPYRE_PROFILE_UNITS; k++)
			for (i = 1; i < 4; i++) {
				assert_memory_equal(p[i].core[c].unit[k].spent, p[0].core[c].unit[k].spent,
						    sizeof(p[0].core[c].unit[k].spent));
				assert_true(p[i].core[c].unit[k].nphases >= p[i - 1].core[c].unit[k].nphases);
			}
	/* With room for all, each is of one kind. */
	for (k = 0; k < SPYRE_PROFILE_UNITS; k++)
		for (i = 0; i < p[3].core[0].unit[k].nphases; i++) {
			const uint64_t *s = p[3].core[0].unit[k].phase[i].spent;

			assert_true(!!s[0] + !!s[1] + !!s[2] == 1);
		}
	for (i = 0; i < 4; i++)
		spyre_soc_profile_free(&p[i]);
	env_free(&e);
}

/* PT asks for ten loads of weights ahead of the first word: two wait for a place in the port. */
static void test_weights(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	const struct spyre_unit_profile *pt, *port;
	struct spyre_soc_profile p;
	struct env e;
	int lx, mm;

	(void)state;
	env_init(&e, 1);
	lx = add(j, 2, SPYRE_UNIT_LXLU, 1);
	mm = add(j, 2, SPYRE_UNIT_PT, 1);
	sp_loop(j, lx, 3000);
	spyreprog_job_insn(j, lx, &(struct spyre_insn){ .op = SPYRE_OP_NOP });
	sp_end(j, lx);
	sp_ld(j, lx, R0, NOREG, SPYRE_FIFO_LXLU_PTW, 640, 128, 0);
	sp_loop(j, mm, 10);
	sp_pt_ldw(j, mm, 0, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
	sp_end(j, mm);
	/* Longer than the loads, so that RETURN waits for none. */
	sp_loop(j, mm, 20000);
	spyreprog_job_insn(j, mm, &(struct spyre_insn){ .op = SPYRE_OP_NOP });
	sp_end(j, mm);
	env_load_job(&e, j);
	profile(&e, &p, 0);
	pt = &p.core[2].unit[job_unit_index(SPYRE_UNIT_PT, 1)];
	port = &p.core[2].unit[SPYRE_PROFILE_PORT + 1];
	assert_int_equal(pt->spent[SPYRE_BUSY], (1 + 10 + 1 + 20000) * SPYRE_SOC_TICKS);
	assert_int_equal(pt->spent[SPYRE_STARVED], 0);
	assert_true(pt->spent[SPYRE_BLOCKED] > 3000 * SPYRE_SOC_TICKS);
	assert_int_equal(port->spent[SPYRE_BUSY], 640 * LINK);
	assert_int_equal(port->bytes, 640 * SPYRE_STICK);
	env_free(&e);
}

/* What cannot be timed has the errors of a launch. */
static void test_refused(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct spyre_soc_profile p = { .phases = 8 };
	struct spyre_soc_job job;
	struct spyre_rb rb;
	struct env e;
	int pe;

	(void)state;
	env_init(&e, 1);
	pe = add(j, 3, SPYRE_UNIT_PE, 0);
	sp_vec(j, pe, SPYRE_OP_MOV, 0, F(LXLU_PE0), 0, 0, 1, 0, SPYRE_FMTS(RAW, 0, 0, 0));
	env_load_job(&e, j);
	job = request(&e);
	assert_false(spyre_soc_profile(e.soc, &job, &p, &rb));
	assert_int_equal(rb.status, SPYRE_ERR_DEADLOCK);
	assert_int_equal(rb.stuck[0].core, 3);
	job.nsymbols = 1;
	assert_false(spyre_soc_profile(e.soc, &job, &p, &rb));
	assert_int_equal(rb.status, SPYRE_ERR_SYMBOLS);
	env_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_starved),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
