// SPDX-License-Identifier: MIT
/*
 * The race check (check_races): programs with one synchronisation left out are refused, with both
 * accesses named; the same programs with it are clean, and so is what the generators make.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "soc_int.h"
#include "spyregen.h"
#include "test_soc_env.h"

#define R0 SPYRE_LAR0
#define E0 SPYRE_EAR0
#define NOREG SPYRE_REG_NONE
#define F(f) SPYRE_OPND_FIFO(SPYRE_FIFO_##f)
#define STICK 128u

/* --- Building and expecting ----------------------------------------------------------------- */

static struct spyreprog_job *job;

static int program(enum spyre_unit kind)
{
	return spyreprog_job_program(job, kind);
}

static void place(int p, unsigned int core, enum spyre_unit kind, unsigned int corelet,
		  uint64_t lar, uint64_t ear)
{
	int u = spyreprog_job_unit(job, core, kind, corelet, p);

	if (lar)
		spyreprog_job_init(job, u, R0, SPYRE_NO_SYMBOL, lar);
	if (ear)
		spyreprog_job_init(job, u, E0, SPYRE_NO_SYMBOL, ear);
}

/* n sticks between LX at lar and memory (or a core's LX) at ear, in place. */
static void l3(int p, enum spyre_op op, unsigned int n)
{
	sp_l3(job, p, op, R0, NOREG, E0, n, 0, 0, 0);
}

static void move(int p, enum spyre_op op, unsigned int a, unsigned int b, unsigned int n)
{
	sp_vec(job, p, op, a, b, 0, 0, n, 0,
	       SPYRE_FMTS(b >= 0x20 ? SPYRE_SEN169_FP16 : 0, 0, 0,
			  a >= 0x20 ? SPYRE_SEN169_FP16 : 0));
}

struct side {
	unsigned int core, unit, corelet, pc;
	bool writes;
};

static bool is_side(const struct side *s, unsigned int core, unsigned int unit,
		    unsigned int corelet, unsigned int pc, bool writes)
{
	return s->core == core && s->unit == unit && s->corelet == corelet && s->pc == pc &&
	       s->writes == writes;
}

/*
 * The job is refused for the race of a and b (in either order) at addr, before anything is stored.
 */
static void expect_race(struct env *e, int line, struct side a, struct side b,
			enum spyre_race_place where, uint64_t addr)
{
	const struct spyre_stuck *o = &e->rb.stuck[0];
	unsigned int k;

	env_run(e, NULL, 0);
	if (e->rb.status != SPYRE_ERR_PROGRAM || e->rb.err_code != SPYRE_PE_RACE ||
	    e->rb.nstuck != 1)
		fail_msg("line %d: status %u code %u core %d unit %x pc %u, expected a race", line,
			 e->rb.status, e->rb.err_code, (int16_t)e->rb.err_core, e->rb.err_unit,
			 e->rb.err_pc);
	for (k = 0; k < 2; k++) {
		const struct side *x = k ? &b : &a, *y = k ? &a : &b;

		if (is_side(x, e->rb.err_core, e->rb.err_unit & 0xff, e->rb.err_unit >> 8,
			    e->rb.err_pc, o->number & SPYRE_RACE_WRITES) &&
		    is_side(y, o->core, o->unit & 0x7f, o->unit >> 7, o->pc,
			    o->number & SPYRE_RACE_OTHER_WRITES) &&
		    o->waits == where && e->rb.rb_hmierr_addr == addr)
			return;
	}
	fail_msg("line %d: core %u unit %x pc %u and core %u unit %x pc %u at place %u %llx, "
		 "writes %u",
		 line, e->rb.err_core, e->rb.err_unit, e->rb.err_pc, o->core, o->unit, o->pc,
		 o->waits, (unsigned long long)e->rb.rb_hmierr_addr, o->number);
}

/*
 * The job in segment 7 runs, and memory and time are the same with and without the check. Segments
 * 0 to 2 are those that the tests use.
 */
static void expect_clean(struct env *e, int line, const uint64_t *symbols, uint32_t nsymbols)
{
	struct spyre_soc_time time;
	uint8_t *before[3], *want[3];
	unsigned int s;

	for (s = 0; s < 3; s++) {
		before[s] = malloc(e->len[s] + 1);
		want[s] = malloc(e->len[s] + 1);
		if (e->len[s])
			memcpy(before[s], e->seg[s], e->len[s]);
	}
	e->soc->cfg.check_races = false;
	env_run(e, symbols, nsymbols);
	if (e->rb.status != SPYRE_OK)
		fail_msg("line %d: unchecked: status %u code %u core %d unit %x pc %u", line,
			 e->rb.status, e->rb.err_code, (int16_t)e->rb.err_core, e->rb.err_unit,
			 e->rb.err_pc);
	time = e->time;
	for (s = 0; s < 3; s++) {
		if (!e->len[s])
			continue;
		memcpy(want[s], e->seg[s], e->len[s]);
		memcpy(e->seg[s], before[s], e->len[s]);
	}
	e->soc->cfg.check_races = true;
	env_run(e, symbols, nsymbols);
	if (e->rb.status != SPYRE_OK)
		fail_msg("line %d: status %u code %u core %d unit %x pc %u; core %u unit %x pc %u "
			 "at place %u %llx, "
			 "writes %u",
			 line, e->rb.status, e->rb.err_code, (int16_t)e->rb.err_core,
			 e->rb.err_unit, e->rb.err_pc, e->rb.stuck[0].core, e->rb.stuck[0].unit,
			 e->rb.stuck[0].pc, e->rb.stuck[0].waits,
			 (unsigned long long)e->rb.rb_hmierr_addr, e->rb.stuck[0].number);
	assert_memory_equal(&time, &e->time, sizeof(time));
	for (s = 0; s < 3; s++) {
		if (e->len[s])
			assert_memory_equal(want[s], e->seg[s], e->len[s]);
		free(want[s]);
		free(before[s]);
	}
	assert_int_equal(e->active, 0);
}

#define CLEAN(e) expect_clean(e, __LINE__, NULL, 0)
#define RACE(e, a, b, where, addr) expect_race(e, __LINE__, a, b, where, addr)
#define SIDE(c, u, x, pc, w) ((struct side){ c, SPYRE_UNIT_##u, x, pc, w })
#define LX(core, addr) ((uint64_t)(core) << 24 | (addr))

static void start(struct env *e)
{
	unsigned int s, i;

	env_init(e, 2);
	e->soc->cfg.check_races = true;
	for (s = 0; s < 3; s++) {
		env_map(e, s, 1 << 20);
		for (i = 0; i < e->len[s]; i++)
			e->seg[s][i] = (uint8_t)(i * 7 + s + (i >> 9));
	}
}

/* --- A core by itself ----------------------------------------------------------------------- */

enum link { FULL, FREE, OUT_FULL, OUT_FREE, NO_LINK };

/*
 * Memory, LX, SFP, LX, memory, tile by tile through one buffer on each side, so that each of four
 * tags is needed. One of them is left out.
 */
static void pipeline(unsigned int core, unsigned int x, enum link without)
{
	enum { TILES = 3, N = 4 };
	int in, ld, sfp, st, out, t;

	job = spyreprog_job_new();
	in = program(SPYRE_UNIT_L3LU);
	ld = program(SPYRE_UNIT_LXLU);
	sfp = program(SPYRE_UNIT_SFP);
	st = program(SPYRE_UNIT_LXSU);
	out = program(SPYRE_UNIT_L3SU);
	for (t = 0; t < TILES; t++) {
		if (t && without != FREE)
			sp_wait(job, in, 1, 1);
		sp_l3(job, in, SPYRE_OP_L3_LDU, R0, NOREG, E0, N, 0, 0, N * STICK);
		if (without != FULL)
			sp_send(job, in, 0, 0);
		if (without != FULL)
			sp_wait(job, ld, 0, 1);
		sp_ld(job, ld, R0, NOREG, SPYRE_FIFO_LXLU_SFP0, N, STICK, 0);
		if (t < TILES - 1 && without != FREE)
			sp_send(job, ld, 1, 0);
		move(sfp, SPYRE_OP_NEG, F(SFP_LXSU), F(LXLU_SFP0), N);
		if (t && without != OUT_FREE)
			sp_wait(job, st, 3, 1);
		sp_st(job, st, R0, NOREG, SPYRE_FIFO_SFP_LXSU, N, STICK, 0);
		if (without != OUT_FULL)
			sp_send(job, st, 2, 0);
		if (without != OUT_FULL)
			sp_wait(job, out, 2, 1);
		sp_l3(job, out, SPYRE_OP_L3_STU, R0, NOREG, E0, N, 0, 0, N * STICK);
		if (t < TILES - 1 && without != OUT_FREE)
			sp_send(job, out, 3, 0);
	}
	place(in, core, SPYRE_UNIT_L3LU, 0, 0x1000, ENV_SEGMENT(0));
	place(ld, core, SPYRE_UNIT_LXLU, x, 0x1000, 0);
	place(sfp, core, SPYRE_UNIT_SFP, x, 0, 0);
	place(st, core, SPYRE_UNIT_LXSU, x, 0x8000, 0);
	place(out, core, SPYRE_UNIT_L3SU, 0, 0x8000, ENV_SEGMENT(1));
}

/* The race of the link that is left out is the one that is found: which tile it is depends on the
 * order of the check. */
static void expect_units(struct env *e, unsigned int core, unsigned int writer, unsigned int wx,
			 unsigned int reader, unsigned int rx, uint64_t addr)
{
	const struct spyre_stuck *o = &e->rb.stuck[0];
	bool first;

	env_run(e, NULL, 0);
	assert_int_equal(e->rb.status, SPYRE_ERR_PROGRAM);
	assert_int_equal(e->rb.err_code, SPYRE_PE_RACE);
	assert_int_equal(e->rb.nstuck, 1);
	assert_int_equal(e->rb.err_core, core);
	assert_int_equal(o->core, core);
	first = o->number == SPYRE_RACE_WRITES;
	assert_true(first || o->number == SPYRE_RACE_OTHER_WRITES);
	assert_int_equal(e->rb.err_unit, first ? writer | wx << 8 : reader | rx << 8);
	assert_int_equal(o->unit, first ? reader | rx << 7 : writer | wx << 7);
	assert_int_equal(o->waits, SPYRE_RACE_LX);
	assert_int_equal(e->rb.rb_hmierr_addr, LX(core, addr));
}

static void test_pipeline(void **state)
{
	static const unsigned int cores[] = { 0, 5, 31 };
	struct env e;
	unsigned int k, x;

	(void)state;
	start(&e);
	for (k = 0; k < 3; k++) {
		for (x = 0; x < 2; x++) {
			pipeline(cores[k], x, NO_LINK);
			env_load_job(&e, job);
			CLEAN(&e);
			pipeline(cores[k], x, FULL);
			env_load_job(&e, job);
			expect_units(&e, cores[k], SPYRE_UNIT_L3LU, 0, SPYRE_UNIT_LXLU, x, 0x1000);
			pipeline(cores[k], x, FREE);
			env_load_job(&e, job);
			expect_units(&e, cores[k], SPYRE_UNIT_L3LU, 0, SPYRE_UNIT_LXLU, x, 0x1000);
			pipeline(cores[k], x, OUT_FULL);
			env_load_job(&e, job);
			expect_units(&e, cores[k], SPYRE_UNIT_LXSU, x, SPYRE_UNIT_L3SU, 0, 0x8000);
			pipeline(cores[k], x, OUT_FREE);
			env_load_job(&e, job);
			expect_units(&e, cores[k], SPYRE_UNIT_LXSU, x, SPYRE_UNIT_L3SU, 0, 0x8000);
		}
	}
	/* Without the check the job runs, to whatever result. */
	e.soc->cfg.check_races = false;
	assert_int_equal(env_run(&e, NULL, 0), SPYRE_OK);
	env_free(&e);
}

/* A send before the load that it should follow; ranges that share one stick; the index of the
 * instruction. */
static void test_send_too_early(void **state)
{
	struct env e;
	unsigned int late;
	int in, out;

	(void)state;
	start(&e);
	for (late = 0; late < 2; late++) {
		job = spyreprog_job_new();
		in = program(SPYRE_UNIT_L3LU);
		out = program(SPYRE_UNIT_L3SU);
		l3(in, SPYRE_OP_L3_LDU, 2);
		if (!late)
			sp_send(job, in, 7, 0);
		sp_addimm(job, in, R0, 2 * STICK);
		l3(in, SPYRE_OP_L3_LDU, 4);
		if (late)
			sp_send(job, in, 7, 0);
		sp_wait(job, out, 7, 1);
		l3(out, SPYRE_OP_L3_STU, 3);
		place(in, 2, SPYRE_UNIT_L3LU, 0, 0x2000, ENV_SEGMENT(0));
		place(out, 2, SPYRE_UNIT_L3SU, 0, 0x2000, ENV_SEGMENT(1));
		env_load_job(&e, job);
		if (late)
			CLEAN(&e);
		else
			RACE(&e, SIDE(2, L3LU, 0, 3, true), SIDE(2, L3SU, 0, 1, false),
			     SPYRE_RACE_LX, LX(2, 0x2000 + 2 * STICK));
	}
	env_free(&e);
}

/* Both corelets store the same stick of LX. */
static void test_write_write(void **state)
{
	struct env e;
	unsigned int synced, x;
	int vec, st[2], su;

	(void)state;
	start(&e);
	for (synced = 0; synced < 2; synced++) {
		job = spyreprog_job_new();
		su = program(SPYRE_UNIT_L3SU);
		for (x = 0; x < 2; x++) {
			vec = program(SPYRE_UNIT_PE);
			sp_vec(job, vec, SPYRE_OP_IOTA, F(PE_LXSU), 0, 0, 0, 3, x * 100,
			       SPYRE_FMTS(0, 0, 0, SPYRE_SEN169_FP16));
			place(vec, 9, SPYRE_UNIT_PE, x, 0, 0);
			st[x] = program(SPYRE_UNIT_LXSU);
			if (x && synced)
				sp_wait(job, st[x], 3, 1);
			sp_st(job, st[x], R0, NOREG, SPYRE_FIFO_PE_LXSU, 3,
			      x ? -(int)STICK : 2 * (int)STICK, 0);
			if (!x && synced)
				sp_send(job, st[x], 3, 0);
			sp_send(job, st[x], 4 + x, 0);
			/* 0x4000, 0x4100, 0x4200 and 0x4180, 0x4100, 0x4080: one is the same. */
			place(st[x], 9, SPYRE_UNIT_LXSU, x, x ? 0x4180 : 0x4000, 0);
		}
		sp_wait(job, su, 4, 1);
		sp_wait(job, su, 5, 1);
		l3(su, SPYRE_OP_L3_STU, 5);
		place(su, 9, SPYRE_UNIT_L3SU, 0, 0x4000, ENV_SEGMENT(1));
		env_load_job(&e, job);
		if (synced)
			CLEAN(&e);
		else
			RACE(&e, SIDE(9, LXSU, 0, 0, true), SIDE(9, LXSU, 1, 0, true),
			     SPYRE_RACE_LX, LX(9, 0x4100));
	}
	env_free(&e);
}

/* Words order: a result may take the place of what it was made of, or of what was read before, but
 * not of later words. */
static void test_in_place(void **state)
{
	static const int shift[] = { 0, -1, 1 };
	struct env e;
	unsigned int k;
	int p;

	(void)state;
	start(&e);
	for (k = 0; k < 3; k++) {
		job = spyreprog_job_new();
		p = program(SPYRE_UNIT_LXLU);
		sp_ld(job, p, R0, NOREG, SPYRE_FIFO_LXLU_PE1, 40, STICK, 0);
		place(p, 0, SPYRE_UNIT_LXLU, 1, 0x1000, 0);
		p = program(SPYRE_UNIT_PE);
		move(p, SPYRE_OP_ABS, F(PE_SFP), F(LXLU_PE1), 40);
		place(p, 0, SPYRE_UNIT_PE, 1, 0, 0);
		p = program(SPYRE_UNIT_SFP);
		move(p, SPYRE_OP_NEG, F(SFP_LXSU), F(PE_SFP), 40);
		place(p, 0, SPYRE_UNIT_SFP, 1, 0, 0);
		p = program(SPYRE_UNIT_LXSU);
		sp_st(job, p, R0, NOREG, SPYRE_FIFO_SFP_LXSU, 40, STICK, 0);
		place(p, 0, SPYRE_UNIT_LXSU, 1, 0x1000 + shift[k] * (int)STICK, 0);
		env_load_job(&e, job);
		if (shift[k] <= 0) {
			CLEAN(&e);
			continue;
		}
		env_run(&e, NULL, 0);
		assert_int_equal(e.rb.err_code, SPYRE_PE_RACE);
		assert_int_equal(e.rb.rb_hmierr_addr, 0x1000 + STICK);
	}
	env_free(&e);
}

/* That there is room in a FIFO orders nothing, that a word came out of it does. */
static void test_room(void **state)
{
	struct env e;
	unsigned int synced;
	int p;

	(void)state;
	start(&e);
	for (synced = 0; synced < 2; synced++) {
		job = spyreprog_job_new();
		p = program(SPYRE_UNIT_LXLU);
		sp_ld(job, p, R0, NOREG, SPYRE_FIFO_LXLU_L0SU, 20, STICK, 0);
		if (!synced)
			sp_send(job, p, 0, 0);
		place(p, 3, SPYRE_UNIT_LXLU, 1, 0x1000, 0);
		p = program(SPYRE_UNIT_L0SU);
		sp_st(job, p, R0, NOREG, SPYRE_FIFO_LXLU_L0SU, 20, STICK, 0);
		if (synced)
			sp_send(job, p, 0, 0);
		place(p, 3, SPYRE_UNIT_L0SU, 1, 0x80, 0);
		p = program(SPYRE_UNIT_L0LU);
		sp_wait(job, p, 0, 1);
		sp_ld(job, p, R0, NOREG, SPYRE_FIFO_L0LU_SFP, 1, STICK, 0);
		place(p, 3, SPYRE_UNIT_L0LU, 1, 0x80, 0);
		p = program(SPYRE_UNIT_SFP);
		move(p, SPYRE_OP_MOV, 0, F(L0LU_SFP), 1);
		place(p, 3, SPYRE_UNIT_SFP, 1, 0, 0);
		env_load_job(&e, job);
		if (synced)
			CLEAN(&e);
		else
			RACE(&e, SIDE(3, L0SU, 1, 0, true), SIDE(3, L0LU, 1, 1, false),
			     SPYRE_RACE_L0, 0x80);
	}
	env_free(&e);
}

/*
 * The load port of PT works on its own: what PT does after LDW is after the words of the tile only
 * once it has used the tile, or has sent a tag.
 */
static void test_load_port(void **state)
{
	struct env e;
	unsigned int way;
	int p;

	(void)state;
	start(&e);
	/* 0: nothing, 1: a product with the tile, 2: a tag to LXSU */
	for (way = 0; way < 3; way++) {
		job = spyreprog_job_new();
		p = program(SPYRE_UNIT_LXLU);
		sp_ld(job, p, R0, NOREG, SPYRE_FIFO_LXLU_PTW, 64, STICK, 0);
		if (way == 1)
			sp_ld(job, p, R0, NOREG, SPYRE_FIFO_LXLU_PT, 1, STICK, 0);
		place(p, 1, SPYRE_UNIT_LXLU, 0, 0x1000, 0);
		p = program(SPYRE_UNIT_PT);
		sp_pt_ldw(job, p, 3, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
		if (way == 1)
			sp_pt_mm(job, p, 3, SPYRE_SEN169_FP16, false, SPYRE_FIFO_LXLU_PT, 1, 0);
		if (way == 2)
			sp_send(job, p, 9, 0);
		sp_pt_psout(job, p, SPYRE_FIFO_PT_LXSU, 1, 0);
		place(p, 1, SPYRE_UNIT_PT, 0, 0, 0);
		p = program(SPYRE_UNIT_LXSU);
		if (way == 2)
			sp_wait(job, p, 9, 1);
		sp_st(job, p, R0, NOREG, SPYRE_FIFO_PT_LXSU, 2, STICK, 0);
		place(p, 1, SPYRE_UNIT_LXSU, 0, 0x2000, 0);
		env_load_job(&e, job);
		if (way)
			CLEAN(&e);
		else
			RACE(&e, SIDE(1, LXLU, 0, 0, false), SIDE(1, LXSU, 0, 0, true),
			     SPYRE_RACE_LX, LX(1, 0x2000));
	}
	env_free(&e);
}

/* --- Cores ---------------------------------------------------------------------------------- */

/* Core 4 stores sticks 0 to 3 of memory, core 7 loads or stores sticks 3 to 6. */
static void test_memory(void **state)
{
	struct env e;
	unsigned int synced, store;
	uint64_t at = ENV_SEGMENT(2) + 0x3000;
	int a, b;

	(void)state;
	start(&e);
	for (store = 0; store < 2; store++) {
		for (synced = 0; synced < 2; synced++) {
			job = spyreprog_job_new();
			a = program(SPYRE_UNIT_L3SU);
			b = program(store ? SPYRE_UNIT_L3SU : SPYRE_UNIT_L3LU);
			l3(a, SPYRE_OP_L3_STU, 4);
			if (synced)
				sp_send(job, a, 1, 1u << 7);
			if (synced)
				sp_wait(job, b, 1, 1);
			l3(b, store ? SPYRE_OP_L3_STU : SPYRE_OP_L3_LDU, 4);
			place(a, 4, SPYRE_UNIT_L3SU, 0, 0, at);
			place(b, 7, store ? SPYRE_UNIT_L3SU : SPYRE_UNIT_L3LU, 0, 0,
			      at + 3 * STICK);
			env_load_job(&e, job);
			if (synced)
				CLEAN(&e);
			else if (store)
				RACE(&e, SIDE(4, L3SU, 0, 0, true), SIDE(7, L3SU, 0, 0, true),
				     SPYRE_RACE_MEMORY, at + 3 * STICK);
			else
				RACE(&e, SIDE(4, L3SU, 0, 0, true), SIDE(7, L3LU, 0, 0, false),
				     SPYRE_RACE_MEMORY, at + 3 * STICK);
		}
	}
	env_free(&e);
}

/* 32 cores read a stick, by multicast or not; the one that stores to it afterwards must have heard
 * of all. */
static void test_many_readers(void **state)
{
	uint64_t at = ENV_SEGMENT(0) + 5 * STICK;
	struct env e;
	unsigned int c, without, multicast;
	int p, su;

	(void)state;
	start(&e);
	for (multicast = 0; multicast < 2; multicast++) {
		for (without = 0; without < 32; without += 7) {
			job = spyreprog_job_new();
			if (multicast)
				spyreprog_job_group(job, 1, 0xffffffff);
			su = program(SPYRE_UNIT_L3SU);
			sp_wait(job, su, 2, 31);
			l3(su, SPYRE_OP_L3_STU, 1);
			place(su, 20, SPYRE_UNIT_L3SU, 0, 0x1000, at);
			for (c = 0; c < 32; c++) {
				p = program(SPYRE_UNIT_L3LU);
				sp_l3(job, p, multicast ? SPYRE_OP_L3_LDM : SPYRE_OP_L3_LDU, R0,
				      NOREG, E0, 1, multicast ? 1 : 0, 0, 0);
				if (c != without)
					sp_send(job, p, 2, 1u << 20);
				place(p, c, SPYRE_UNIT_L3LU, 0, 0, at);
			}
			env_load_job(&e, job);
			RACE(&e, SIDE(without, L3LU, 0, 0, false), SIDE(20, L3SU, 0, 1, true),
			     SPYRE_RACE_MEMORY, at);
		}
	}
	/* All of them: clean. */
	job = spyreprog_job_new();
	su = program(SPYRE_UNIT_L3SU);
	sp_wait(job, su, 2, 32);
	l3(su, SPYRE_OP_L3_STU, 1);
	place(su, 20, SPYRE_UNIT_L3SU, 0, 0x1000, at);
	p = program(SPYRE_UNIT_L3LU);
	l3(p, SPYRE_OP_L3_LDU, 1);
	sp_send(job, p, 2, 1u << 20);
	for (c = 0; c < 32; c++)
		place(p, c, SPYRE_UNIT_L3LU, 0, 0, at);
	env_load_job(&e, job);
	CLEAN(&e);
	env_free(&e);
}

/* Core 1 stores into the LX of core 2, whose L3SU reads it. */
static void test_core_to_core(void **state)
{
	struct env e;
	unsigned int synced;
	int a, b;

	(void)state;
	start(&e);
	for (synced = 0; synced < 2; synced++) {
		job = spyreprog_job_new();
		a = program(SPYRE_UNIT_L3SU);
		b = program(SPYRE_UNIT_L3SU);
		l3(a, SPYRE_OP_L3_STC, 8);
		if (synced)
			sp_send(job, a, 63, 1u << 2);
		if (synced)
			sp_wait(job, b, 63, 1);
		l3(b, SPYRE_OP_L3_STU, 1);
		place(a, 1, SPYRE_UNIT_L3SU, 0, 0x100, LX(2, 0x1ff000));
		place(b, 2, SPYRE_UNIT_L3SU, 0, 0x1ff380, ENV_SEGMENT(1));
		env_load_job(&e, job);
		if (synced)
			CLEAN(&e);
		else
			RACE(&e, SIDE(1, L3SU, 0, 0, true), SIDE(2, L3SU, 0, 0, false),
			     SPYRE_RACE_LX, LX(2, 0x1ff380));
	}
	env_free(&e);
}

/*
 * What core 0 knows travels along the ring of SFPs and comes back to it: LXLU of core 0 reads a
 * stick, its SFP sends the word on, and the last core stores into that stick once the word has
 * come.
 */
static void test_ring(void **state)
{
	enum { CORES = 5 };
	struct env e;
	unsigned int x, synced, c, n;
	int p;

	(void)state;
	start(&e);
	for (x = 0; x < 2; x++) {
		for (synced = 0; synced < 2; synced++) {
			job = spyreprog_job_new();
			for (n = 0; n < CORES; n++) {
				/* Corelet 1's ring goes the other way. */
				c = 3 * (x ? (CORES - n) % CORES : n);
				p = program(SPYRE_UNIT_SFP);
				move(p, SPYRE_OP_MOV, n == CORES - 1 ? F(SFP_LXSU) : F(RING),
				     n ? F(RING) : F(LXLU_SFP1), 1);
				place(p, c, SPYRE_UNIT_SFP, x, 0, 0);
			}
			p = program(SPYRE_UNIT_LXLU);
			sp_ld(job, p, R0, NOREG, SPYRE_FIFO_LXLU_SFP1, 1, STICK, 0);
			place(p, 0, SPYRE_UNIT_LXLU, x, 0x5000, 0);
			c = x ? 3 : 3 * (CORES - 1);
			p = program(SPYRE_UNIT_LXSU);
			sp_st(job, p, R0, NOREG, SPYRE_FIFO_SFP_LXSU, 1, STICK, 0);
			if (synced)
				sp_send(job, p, 5, 0);
			place(p, c, SPYRE_UNIT_LXSU, x, 0x6000, 0);
			p = program(SPYRE_UNIT_L3SU);
			if (synced)
				sp_wait(job, p, 5, 1);
			else
				spyreprog_job_insn(job, p,
						   &(struct spyre_insn){ .op = SPYRE_OP_NOP });
			l3(p, SPYRE_OP_L3_STC, 1);
			place(p, c, SPYRE_UNIT_L3SU, 0, 0x7000, LX(0, 0x5000));
			env_load_job(&e, job);
			if (synced)
				CLEAN(&e);
			else
				RACE(&e, SIDE(0, LXLU, x, 0, false), SIDE(c, L3SU, 0, 1, true),
				     SPYRE_RACE_LX, LX(0, 0x5000));
		}
	}
	env_free(&e);
}

/* --- Tags with several senders -------------------------------------------------------------- */

/*
 * Cores 1 and 2 store a stick each and send the same tag; core 3 loads the sticks behind its waits.
 * ways: what core 3 does.
 */
enum way { ONE_WAIT, FIRST_OF_1, FIRST_OF_2, CHAINED, CHAINED_WRONG };

static void two_senders(enum way way)
{
	uint64_t at = ENV_SEGMENT(1);
	int a[2], in, k, first = way == FIRST_OF_2 || way == CHAINED_WRONG;

	job = spyreprog_job_new();
	for (k = 0; k < 2; k++) {
		a[k] = program(SPYRE_UNIT_L3SU);
		if (k && way >= CHAINED)
			sp_wait(job, a[k], 1, 1);
		l3(a[k], SPYRE_OP_L3_STU, 1);
		sp_send(job, a[k], 0, 1u << 3);
		if (!k && way >= CHAINED)
			sp_send(job, a[k], 1, 1u << 2);
		place(a[k], 1 + (unsigned int)k, SPYRE_UNIT_L3SU, 0, 0,
		      at + (unsigned int)k * 0x1000);
	}
	in = program(SPYRE_UNIT_L3LU);
	sp_wait(job, in, 0, way == ONE_WAIT ? 2 : 1);
	l3(in, SPYRE_OP_L3_LDU, 1);
	if (way != ONE_WAIT)
		sp_wait(job, in, 0, 1);
	sp_addimm(job, in, E0, first ? -0x1000 : 0x1000);
	l3(in, SPYRE_OP_L3_LDU, 1);
	place(in, 3, SPYRE_UNIT_L3LU, 0, 0, at + (first ? 0x1000 : 0));
}

static void test_two_senders(void **state)
{
	struct env e;

	(void)state;
	start(&e);
	two_senders(ONE_WAIT);
	env_load_job(&e, job);
	CLEAN(&e);
	/* Either may have been the one that let core 3 go, whichever comes first in this run. */
	two_senders(FIRST_OF_1);
	env_load_job(&e, job);
	RACE(&e, SIDE(1, L3SU, 0, 0, true), SIDE(3, L3LU, 0, 1, false), SPYRE_RACE_MEMORY,
	     ENV_SEGMENT(1));
	two_senders(FIRST_OF_2);
	env_load_job(&e, job);
	RACE(&e, SIDE(2, L3SU, 0, 0, true), SIDE(3, L3LU, 0, 1, false), SPYRE_RACE_MEMORY,
	     ENV_SEGMENT(1) + 0x1000);
	/* Core 2 sends after core 1: the first to come is core 1's. */
	two_senders(CHAINED);
	env_load_job(&e, job);
	CLEAN(&e);
	two_senders(CHAINED_WRONG);
	env_load_job(&e, job);
	RACE(&e, SIDE(2, L3SU, 0, 1, true), SIDE(3, L3LU, 0, 1, false), SPYRE_RACE_MEMORY,
	     ENV_SEGMENT(1) + 0x1000);
	env_free(&e);
}

/*
 * Tile by tile cores store and send, and core 0 waits for as many as there are and loads what all
 * of them stored. If nothing holds them, one may send twice before another has sent once.
 */
static void rounds(unsigned int cores, unsigned int tiles, bool held)
{
	unsigned int c, t;
	int p, in;

	job = spyreprog_job_new();
	in = program(SPYRE_UNIT_L3LU);
	sp_loop(job, in, tiles);
	sp_wait(job, in, 0, cores);
	for (c = 1; c <= cores; c++)
		sp_l3(job, in, SPYRE_OP_L3_LDU, R0, NOREG, E0, 1, 0, 0, STICK);
	if (held)
		sp_send(job, in, 1, ((1u << cores) - 1) << 1);
	sp_end(job, in);
	place(in, 0, SPYRE_UNIT_L3LU, 0, 0, ENV_SEGMENT(1));
	p = program(SPYRE_UNIT_L3SU);
	for (t = 0; t < tiles; t++) {
		sp_l3(job, p, SPYRE_OP_L3_STU, R0, NOREG, E0, 1, 0, 0, (int32_t)(cores * STICK));
		sp_send(job, p, 0, 1);
		if (held)
			sp_wait(job, p, 1, 1);
	}
	for (c = 1; c <= cores; c++)
		place(p, c, SPYRE_UNIT_L3SU, 0, 0, ENV_SEGMENT(1) + (c - 1) * STICK);
}

static void test_rounds(void **state)
{
	static const unsigned int cores[] = { 2, 31 }, tiles[] = { 1, 2, 9 };
	unsigned int i, k;
	struct env e;

	(void)state;
	start(&e);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 3; k++) {
			rounds(cores[i], tiles[k], true);
			env_load_job(&e, job);
			CLEAN(&e);
			rounds(cores[i], tiles[k], false);
			env_load_job(&e, job);
			if (tiles[k] == 1) {
				CLEAN(&e);
				continue;
			}
			env_run(&e, NULL, 0);
			assert_int_equal(e.rb.status, SPYRE_ERR_PROGRAM);
			assert_int_equal(e.rb.err_code, SPYRE_PE_RACE);
			assert_int_equal(e.rb.stuck[0].waits, SPYRE_RACE_MEMORY);
			/* Any wait but the last may have let go too early. */
			assert_true(e.rb.rb_hmierr_addr <
				    ENV_SEGMENT(1) + (tiles[k] - 1) * cores[i] * STICK);
		}
	}
	env_free(&e);
}

/* --- Large and cancelled -------------------------------------------------------------------- */

/* A unit that waits for nothing sends more often than the check keeps; its waiter is never far
 * behind in time. */
static void test_many_sends(void **state)
{
	const uint32_t times = (1u << 20) + 5000;
	struct env e;
	int a, b;

	(void)state;
	start(&e);
	job = spyreprog_job_new();
	a = program(SPYRE_UNIT_L3LU);
	b = program(SPYRE_UNIT_LXLU);
	sp_loop(job, a, times);
	sp_send(job, a, 1, 0);
	sp_end(job, a);
	sp_loop(job, b, times);
	sp_wait(job, b, 1, 1);
	sp_end(job, b);
	place(a, 3, SPYRE_UNIT_L3LU, 0, 0, 0);
	place(b, 3, SPYRE_UNIT_LXLU, 1, 0, 0);
	env_load_job(&e, job);
	CLEAN(&e);
	env_free(&e);
}

static void expect_too_large(struct env *e, unsigned int core, unsigned int unit, unsigned int pc)
{
	e->soc->cfg.check_races = false;
	assert_int_equal(env_run(e, NULL, 0), SPYRE_OK);
	e->soc->cfg.check_races = true;
	assert_int_equal(env_run(e, NULL, 0), SPYRE_ERR_PROGRAM);
	assert_int_equal(e->rb.err_code, SPYRE_PE_RACE_SIZE);
	assert_int_equal(e->rb.err_core, core);
	assert_int_equal(e->rb.err_unit, unit);
	assert_int_equal(e->rb.err_pc, pc);
	assert_int_equal(e->rb.nstuck, 0);
}

/*
 * Core 1 learns from core 0 before each of its sends to core 2, which waits for them only after
 * all: what core 1 knew is kept for each of them.
 */
static void test_many_clocks(void **state)
{
	static const uint32_t times[] = { 4000, 40000 };
	struct env e;
	unsigned int i, t;
	int from, via, to;

	(void)state;
	start(&e);
	for (i = 0; i < 2; i++) {
		job = spyreprog_job_new();
		from = program(SPYRE_UNIT_L3LU);
		via = program(SPYRE_UNIT_L3LU);
		to = program(SPYRE_UNIT_L3LU);
		for (t = 1; t <= 2; t++) {
			sp_loop(job, from, times[i]);
			sp_send(job, from, 0, 1u << 1);
			sp_end(job, from);
			sp_loop(job, via, times[i]);
			sp_wait(job, via, 0, 1);
			sp_send(job, via, t, 1u << 2);
			sp_end(job, via);
		}
		sp_send(job, via, 0, 1u << 2);
		sp_wait(job, to, 0, 1);
		for (t = 1; t <= 2; t++) {
			sp_loop(job, to, times[i]);
			sp_wait(job, to, t, 1);
			sp_end(job, to);
		}
		place(from, 0, SPYRE_UNIT_L3LU, 0, 0, 0);
		place(via, 1, SPYRE_UNIT_L3LU, 0, 0, 0);
		place(to, 2, SPYRE_UNIT_L3LU, 0, 0, 0);
		env_load_job(&e, job);
		if (i)
			expect_too_large(&e, 1, SPYRE_UNIT_L3LU, 4);
		else
			CLEAN(&e);
	}
	env_free(&e);
}

/* Where others send to the tag too, a unit is not held, and gets ahead of its waiter by more than
 * is kept. */
static void test_far_ahead(void **state)
{
	const uint32_t times = (1u << 20) + 5000;
	struct env e;
	int a, b, other;

	(void)state;
	start(&e);
	job = spyreprog_job_new();
	a = program(SPYRE_UNIT_L3LU);
	other = program(SPYRE_UNIT_L3SU);
	b = program(SPYRE_UNIT_LXLU);
	sp_loop(job, a, times);
	sp_send(job, a, 1, 0);
	sp_end(job, a);
	sp_send(job, other, 1, 0);
	sp_loop(job, b, times + 1);
	sp_wait(job, b, 1, 1);
	sp_end(job, b);
	place(a, 3, SPYRE_UNIT_L3LU, 0, 0, 0);
	place(other, 3, SPYRE_UNIT_L3SU, 0, 0, 0);
	place(b, 3, SPYRE_UNIT_LXLU, 1, 0, 0);
	env_load_job(&e, job);
	expect_too_large(&e, 3, SPYRE_UNIT_L3LU, 1);
	env_free(&e);
}

/* Stores far apart are looked at a part at a time: the race is in the last part. */
static void test_windows(void **state)
{
	struct env e;
	unsigned int synced;
	int a, b;

	(void)state;
	start(&e);
	env_map(&e, 1, 80ull << 20);
	for (synced = 0; synced < 2; synced++) {
		job = spyreprog_job_new();
		a = program(SPYRE_UNIT_L3SU);
		b = program(SPYRE_UNIT_L3LU);
		sp_loop(job, a, 39);
		sp_l3(job, a, SPYRE_OP_L3_STU, R0, NOREG, E0, 2, 0, 0, 2 << 20);
		sp_end(job, a);
		if (synced)
			sp_send(job, a, 1, 1);
		if (synced)
			sp_wait(job, b, 1, 1);
		l3(b, SPYRE_OP_L3_LDU, 1);
		place(a, 17, SPYRE_UNIT_L3SU, 0, 0, ENV_SEGMENT(1));
		place(b, 0, SPYRE_UNIT_L3LU, 0, 0, ENV_SEGMENT(1) + (38ull << 21) + STICK);
		env_load_job(&e, job);
		if (synced)
			CLEAN(&e);
		else
			RACE(&e, SIDE(17, L3SU, 0, 1, true), SIDE(0, L3LU, 0, 0, false),
			     SPYRE_RACE_MEMORY, ENV_SEGMENT(1) + (38ull << 21) + STICK);
	}
	env_free(&e);
}

static void test_cancel(void **state)
{
	struct spyregen_matmul mm = {
		.m = 256, .n = 256, .k = 256, .in = SPYRE_SEN169_FP16, .out = SPYRE_IEEE_FP32,
	};
	uint64_t syms[3] = { ENV_SEGMENT(0), ENV_SEGMENT(1), ENV_SEGMENT(2) }, total;
	unsigned int i;
	struct env e;
	char err[200];

	(void)state;
	start(&e);
	env_load_job(&e, spyregen_matmul(&mm, err));
	assert_int_equal(env_run(&e, syms, 3), SPYRE_OK);
	total = e.checkpoints;
	for (i = 0; i < 12; i++) {
		e.checkpoints = 0;
		e.stop_at = total * i / 12 + 1;
		assert_int_equal(env_run(&e, syms, 3), SPYRE_ERR_CANCELLED);
		assert_int_equal(e.active, 0);
	}
	e.stop_at = 0;
	assert_int_equal(env_run(&e, syms, 3), SPYRE_OK);
	env_free(&e);
}

/* A unit that fails ends there: the check says nothing of it, the run does. */
static void test_fault_stays(void **state)
{
	struct env e;
	int p;

	(void)state;
	start(&e);
	job = spyreprog_job_new();
	p = program(SPYRE_UNIT_L3LU);
	l3(p, SPYRE_OP_L3_LDU, 2);
	place(p, 6, SPYRE_UNIT_L3LU, 0, SPYRE_LX_SIZE - STICK, ENV_SEGMENT(0));
	env_load_job(&e, job);
	assert_int_equal(env_run(&e, NULL, 0), SPYRE_ERR_PROGRAM);
	assert_int_equal(e.rb.err_code, SPYRE_PE_LX_RANGE);
	assert_int_equal(e.rb.err_core, 6);
	job = spyreprog_job_new();
	p = program(SPYRE_UNIT_L3SU);
	l3(p, SPYRE_OP_L3_STU, 2);
	place(p, 6, SPYRE_UNIT_L3SU, 0, 0, ENV_SEGMENT(5));
	env_load_job(&e, job);
	assert_int_equal(env_run(&e, NULL, 0), SPYRE_ERR_FAULT);
	assert_int_equal(e.rb.rb_hmierr_addr, ENV_SEGMENT(5));
	env_free(&e);
}

/* --- Generators ----------------------------------------------------------------------------- */

/* Segment 0 holds the inputs, 1 outputs and 2 scratch; symbol i is in segment seg[i], one behind
 * the other. */
static void generated(struct env *e, int line, struct spyreprog_job *j, const char *err,
		      unsigned int n, const uint64_t *bytes, const unsigned int *seg)
{
	uint64_t syms[8], used[3] = { 0 };
	unsigned int i, s;

	if (!j)
		fail_msg("line %d: %s", line, err);
	for (i = 0; i < n; i++) {
		syms[i] = ENV_SEGMENT(seg[i]) + used[seg[i]];
		used[seg[i]] += bytes[i];
	}
	for (s = 0; s < 3; s++) {
		env_map(e, s, used[s]);
		/* Small DL16, bfloat and half numbers, and small integers. */
		for (i = 0; i < used[s]; i++)
			e->seg[s][i] = i & 1 ? 0x3c ^ (i >> 3 & 0x81) : (uint8_t)(i * 31 >> 3);
	}
	env_load_job(e, j);
	expect_clean(e, line, syms, n);
}

#define GENERATED(e, j, n, bytes, seg) generated(e, __LINE__, j, err, n, bytes, seg)

static void test_gen_matmul(void **state)
{
	static const struct spyregen_matmul mms[] = {
		{ 64, 64, 64, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, .cores = 1 },
		{ 130, 200, 300, SPYRE_IEEE_FP16, SPYRE_IEEE_FP32, .bias = true,
		  .act = SPYREGEN_GELU },
		{ 256, 1024, 192, SPYRE_BFLOAT16, SPYRE_BFLOAT16, .act = SPYREGEN_RELU,
		  .flags = SPYREGEN_NO_MULTICAST },
		{ 512, 512, 256, SPYRE_SENINT8, SPYRE_IEEE_INT32, .bias = true },
		{ 128, 256, 512, SPYRE_SEN143_FP8, SPYRE_IEEE_FP32, .cores = 0xff0 },
		{ 130, 200, 300, SPYRE_SENINT8, SPYRE_SENINT8, .bias = true, .scale = 0x1p-7f },
		{ 128, 128, 512, SPYRE_SEN169_FP16, SPYRE_IEEE_FP32, .split_k = 4 },
		{ 70, 256, 512, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, .split_k = 2, .bias = true,
		  .cores = 0xf },
		{ 100, 70, 130, SPYRE_SEN169_FP16, SPYRE_IEEE_FP32, .batch = 3 },
		{ 100, 70, 130, SPYRE_SEN169_FP16, SPYRE_IEEE_FP32, .batch = 5,
		  .flags = SPYREGEN_SHARED_B },
		{ 128, 192, 130, SPYRE_SEN169_FP16, SPYRE_IEEE_FP32,
		  .flags = SPYREGEN_TRANSPOSED_A },
		{ 100, 192, 130, SPYRE_SEN169_FP16, SPYRE_IEEE_FP32,
		  .flags = SPYREGEN_TRANSPOSED_B },
		{ 100, 192, 130, SPYRE_SEN169_FP16, SPYRE_IEEE_FP32, .batch = 2,
		  .flags = SPYREGEN_TRANSPOSED_A | SPYREGEN_STICKS_B },
	};
	unsigned int i, n;
	struct env e;
	char err[200];

	(void)state;
	env_init(&e, 2);
	for (i = 0; i < sizeof(mms) / sizeof(mms[0]); i++) {
		const struct spyregen_matmul *mm = &mms[i];
		uint64_t batch = mm->batch ? mm->batch : 1,
			 a = batch * spyregen_bytes(mm->in, mm->m, mm->k), b, bytes[6];
		unsigned int seg[6] = { 0, 0, 1 };
		bool sticks = mm->flags & SPYREGEN_STICKS_B,
		     turned = mm->flags & SPYREGEN_TRANSPOSED_B;
		uint64_t w = batch * spyregen_weight_bytes(mm->in, mm->k, mm->n);

		b = sticks ? batch * spyregen_bytes(mm->in, mm->k, mm->n) :
		    turned ? batch * spyregen_bytes(mm->in, mm->n, mm->k) : w;
		bytes[0] = mm->flags & SPYREGEN_TRANSPOSED_A
				   ? batch * spyregen_bytes(mm->in, mm->k, mm->m)
				   : a;
		bytes[1] = b;
		bytes[2] = batch * spyregen_bytes(mm->out, mm->m, mm->n);
		n = 3;
		if (mm->bias) {
			seg[n] = 0;
			bytes[n++] = spyregen_bytes(SPYRE_IEEE_FP32, 1, mm->n);
		}
		if (mm->flags & SPYREGEN_TRANSPOSED_A) {
			seg[n] = 2;
			bytes[n++] = a;
		}
		if (sticks || turned) {
			seg[n] = 2;
			bytes[n++] = w;
		}
		if (mm->scale != 0) {
			seg[n] = 2;
			bytes[n++] = batch * spyregen_bytes(SPYRE_IEEE_INT32, mm->m, mm->n);
		}
		GENERATED(&e, spyregen_matmul(mm, err), n, bytes, seg);
	}
	env_free(&e);
}

static void test_gen_elementwise(void **state)
{
	static const enum spyre_format fmts[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP32,
						  SPYRE_BFLOAT16 };
	unsigned int op, k, n;
	struct env e;
	char err[200];

	(void)state;
	env_init(&e, 2);
	for (op = 0; op < SPYREGEN_OPS; op++) {
		for (k = 0; k < 4; k++) {
			bool ints =
				(op >= SPYREGEN_IADD && op <= SPYREGEN_SRA) || op == SPYREGEN_I2F;
			struct spyregen_elementwise ew = {
				.op = op,
				.m = k == 3 ? 3 : 70,
				.n = 130,
				.scalar = 2,
				.in = ints ? SPYRE_IEEE_INT32 : fmts[k % 3],
				.out = (ints && op != SPYREGEN_I2F) || op == SPYREGEN_F2I
					       ? SPYRE_IEEE_INT32
					       : fmts[k % 3],
				.cores = k == 2 ? 1 : 0,
			};
			uint64_t in = spyregen_bytes(ew.in, ew.m, ew.n), bytes[3];
			unsigned int seg[3] = { 0, 0, 0 };

			/* One kind of each operation, all of one. */
			if (op != SPYREGEN_ADD && k != op % 4)
				continue;
			n = spyregen_operands(op);
			if (n == 2 && k == 1)
				ew.b = SPYREGEN_ROW;
			if (n == 2 && k == 2)
				ew.a = SPYREGEN_COLUMN;
			if (n == 2 && k == 3)
				ew.b = SPYREGEN_SCALAR;
			bytes[0] = bytes[1] = in;
			bytes[n] = spyregen_bytes(ew.out, ew.m, ew.n);
			seg[n] = 1;
			GENERATED(&e, spyregen_elementwise(&ew, err), n + 1, bytes, seg);
		}
	}
	env_free(&e);
}

/* Column blocks of different widths, and ends of rows and columns. */
static void test_gen_cast(void **state)
{
	static const enum spyre_format fmts[][2] = {
		{ SPYRE_IEEE_FP32, SPYRE_SENINT8 },
		{ SPYRE_SENINT4, SPYRE_SEN169_FP16 },
		{ SPYRE_SENINT8, SPYRE_SENINT4 },
	};
	unsigned int k, seg[2] = { 0, 1 };
	uint64_t bytes[2];
	struct env e;
	char err[200];

	(void)state;
	env_init(&e, 2);
	for (k = 0; k < 3; k++) {
		struct spyregen_elementwise ew = {
			.op = SPYREGEN_COPY, .m = 200, .n = 600, .in = fmts[k][0], .out = fmts[k][1]
		};

		bytes[0] = spyregen_bytes(ew.in, ew.m, ew.n);
		bytes[1] = spyregen_bytes(ew.out, ew.m, ew.n);
		GENERATED(&e, spyregen_elementwise(&ew, err), 2, bytes, seg);
	}
	env_free(&e);
}

static void test_gen_rows(void **state)
{
	static const enum spyre_format fmts[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP32 };
	static const uint32_t shapes[][2] = { { 1, 64 }, { 70, 300 }, { 200, 40 }, { 33, 9000 } };
	unsigned int op, k, seg[3] = { 0, 1, 2 };
	uint64_t bytes[3];
	struct env e;
	char err[200];

	(void)state;
	env_init(&e, 2);
	for (op = 0; op < SPYREGEN_ROWOPS; op++) {
		for (k = 0; k < 4; k++) {
			struct spyregen_row row = {
				.op = op,
				.m = shapes[k][0],
				.n = shapes[k][1],
				.fmt = fmts[(op + k) % 2],
				.eps = 0x1p-10f,
			};

			bytes[0] = bytes[1] = spyregen_bytes(SPYRE_IEEE_FP32, row.m, row.n);
			GENERATED(&e, spyregen_row(&row, err), 2, bytes, seg);
		}
	}
	for (op = SPYREGEN_COLUMN_SUM; op <= SPYREGEN_COLUMN_ARGMAX; op++) {
		for (k = 0; k < 4; k++) {
			struct spyregen_column col = {
				.op = op, .m = shapes[k][1], .n = shapes[k][0], .fmt = fmts[k & 1],
			};

			bytes[0] = spyregen_bytes(col.fmt, col.m, col.n);
			bytes[1] = spyregen_bytes(op == SPYREGEN_COLUMN_ARGMAX ? SPYRE_IEEE_INT32
									       : col.fmt,
						  1, col.n);
			bytes[2] = spyregen_column_scratch(col.op, col.m, col.n);
			GENERATED(&e, spyregen_column(&col, err), bytes[2] ? 3 : 2, bytes, seg);
		}
	}
	env_free(&e);
}

static void test_gen_relayout(void **state)
{
	static const uint32_t shapes[][2] = { { 64, 64 }, { 70, 300 }, { 300, 130 } };
	unsigned int op, k, seg[2] = { 0, 1 };
	uint64_t bytes[2];
	struct env e;
	char err[200];

	(void)state;
	env_init(&e, 2);
	for (op = SPYREGEN_TRANSPOSE; op <= SPYREGEN_FROM_ROWS; op++) {
		for (k = 0; k < 6; k++) {
			bool weights =
				op == SPYREGEN_TRANSPOSE_WEIGHTS || op == SPYREGEN_TO_WEIGHTS;
			struct spyregen_relayout r = {
				.op = op,
				.rows = shapes[k / 2][0],
				.cols = shapes[k / 2][1],
				.batch = 1 + k % 2 * 2,
				.fmt = k % 2 && !weights ? SPYRE_IEEE_FP32 : SPYRE_SEN169_FP16,
			};

			/* Room for the largest of the layouts. */
			bytes[0] = bytes[1] =
				4 * r.batch *
				spyregen_bytes(SPYRE_IEEE_FP32, r.rows + 128, r.cols + 128);
			GENERATED(&e, spyregen_relayout(&r, err), 2, bytes, seg);
		}
	}
	env_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipeline),
		cmocka_unit_test(test_send_too_early),
		cmocka_unit_test(test_write_write),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_load_port),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_many_readers),
		cmocka_unit_test(test_core_to_core),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_two_senders),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_many_sends),
		cmocka_unit_test(test_many_clocks),
		cmocka_unit_test(test_far_ahead),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_fault_stays),
		cmocka_unit_test(test_gen_matmul),
		cmocka_unit_test(test_gen_elementwise),
		cmocka_unit_test(test_gen_cast),
		cmocka_unit_test(test_gen_rows),
		cmocka_unit_test(test_gen_relayout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
