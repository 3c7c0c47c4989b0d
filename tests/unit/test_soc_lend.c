// SPDX-License-Identifier: MIT
/*
 * What L3LU loads may stay where it lies in memory until it is read (soc_lx.h). No program may be able to tell: here
 * memory changes in every way that an order in the program, or the end of a job, puts behind the load.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <spyre/num.h>

#include "test_soc_env.h"

#define R0	SPYRE_LAR0
#define E0	SPYRE_EAR0
#define NOREG	SPYRE_REG_NONE
#define F(name)	SPYRE_OPND_FIFO(SPYRE_FIFO_##name)

#define BYTES	(4 * 4096u)	/* of the tensor that is loaded, at LX 0 */
#define OUT	(1u << 20)	/* where LXSU stores */
#define OTHER	(1u << 19)	/* never written: zeros */

static void ramp(uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 7 + i / 251);
}

static void init(struct spyreprog_job *j, unsigned int core, enum spyre_unit kind, int p, uint64_t lar, uint64_t ear)
{
	int u = spyreprog_job_unit(j, core, kind, 0, p);

	spyreprog_job_init(j, u, R0, SPYRE_NO_SYMBOL, lar);
	spyreprog_job_init(j, u, R0 + 1, SPYRE_NO_SYMBOL, lar + BYTES / 2);
	spyreprog_job_init(j, u, E0, SPYRE_NO_SYMBOL, ear);
	spyreprog_job_init(j, u, E0 + 2, SPYRE_NO_SYMBOL, ENV_SEGMENT(1));
}

/* Loads BYTES from ear to LX 0 and tells tag. */
static void loads(struct spyreprog_job *j, uint64_t ear, unsigned int tag)
{
	int p = spyreprog_job_program(j, SPYRE_UNIT_L3LU);

	sp_loop(j, p, BYTES / 4096);
	sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 4096, 4096);
	sp_end(j, p);
	sp_send(j, p, tag, 0);
	init(j, 0, SPYRE_UNIT_L3LU, p, 0, ear);
}

/* After tag, LX 0 goes through PE to OUT, words words at a time; then done is told. */
static void passes(struct spyreprog_job *j, unsigned int words, int32_t stride, unsigned int tag, unsigned int done)
{
	int lu = spyreprog_job_program(j, SPYRE_UNIT_LXLU), pe = spyreprog_job_program(j, SPYRE_UNIT_PE);
	int su = spyreprog_job_program(j, SPYRE_UNIT_LXSU);

	sp_wait(j, lu, tag, 1);
	if (stride < 0)
		sp_addimm(j, lu, R0, (int32_t)(BYTES - SPYRE_STICK));
	sp_loop(j, lu, BYTES / SPYRE_STICK / words);
	sp_ld(j, lu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, words, stride, (int32_t)words * stride);
	sp_end(j, lu);
	sp_vec(j, pe, SPYRE_OP_MOV, F(PE_LXSU), F(LXLU_PE0), 0, 0, BYTES / SPYRE_STICK, 0,
	       SPYRE_FMTS(SPYRE_SEN169_FP16, 0, 0, SPYRE_SEN169_FP16));
	if (stride < 0)
		sp_addimm(j, su, R0, (int32_t)(BYTES - SPYRE_STICK));
	sp_st(j, su, R0, NOREG, SPYRE_FIFO_PE_LXSU, BYTES / SPYRE_STICK, stride, 0);
	sp_send(j, su, done, 0);
	init(j, 0, SPYRE_UNIT_LXLU, lu, 0, 0);
	init(j, 0, SPYRE_UNIT_PE, pe, 0, 0);
	init(j, 0, SPYRE_UNIT_LXSU, su, OUT, 0);
}

/* Stores to segment s. */
static void stu(struct spyreprog_job *j, int p, uint32_t lx, unsigned int s, uint32_t at, unsigned int words)
{
	sp_mvreg(j, p, R0 + 1, NOREG, (int32_t)lx);
	sp_mvreg(j, p, E0 + 1, s ? E0 + 2 : E0, (int32_t)at);
	sp_l3(j, p, SPYRE_OP_L3_STU, R0 + 1, NOREG, E0 + 1, words, 0, 0, 0);
}

/* After tag, what LXSU stored goes to segment 1. */
static void gives(struct spyreprog_job *j, unsigned int tag)
{
	int p = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
	uint32_t i;

	sp_wait(j, p, tag, 1);
	for (i = 0; i < BYTES; i += 4096)
		stu(j, p, OUT + i, 1, i, 32);
	init(j, 0, SPYRE_UNIT_L3SU, p, 0, 0);
}

static void run(struct env *e)
{
	env_run(e, NULL, 0);
	if (e->rb.status != SPYRE_OK)
		fail_msg("status %u code %u core %d unit %x pc %u", e->rb.status, e->rb.err_code,
			 (int16_t)e->rb.err_core, e->rb.err_unit, e->rb.err_pc);
	assert_int_equal(e->active, 0);
}

static uint8_t want[BYTES];

static void begin(struct env *e, unsigned int threads)
{
	unsigned int i;

	env_init(e, threads);
	ramp(env_map(e, 0, 4 * BYTES), 4 * BYTES);
	/* Without NaNs: MOV of DL16 makes those canonical. */
	for (i = 1; i < 4 * BYTES; i += 2)
		e->seg[0][i] &= 0xbf;
	memcpy(want, e->seg[0], BYTES);
	env_map(e, 1, BYTES);
}

/* The program itself stores zeros over what it loaded: on all of it, or on some words of a burst, from a segment's middle. */
static void own_store(unsigned int words, int32_t stride, uint32_t at, unsigned int n)
{
	struct spyreprog_job *j = spyreprog_job_new();
	unsigned int i;
	struct env e;
	int p;

	begin(&e, 1);
	loads(j, ENV_SEGMENT(0), 1);
	p = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
	sp_wait(j, p, 1, 1);
	for (i = 0; i < BYTES; i += 4096)
		stu(j, p, OTHER, 0, at + i, n);
	sp_send(j, p, 2, 0);
	sp_wait(j, p, 3, 1);
	for (i = 0; i < BYTES; i += 4096)
		stu(j, p, OUT + i, 1, i, 32);
	init(j, 0, SPYRE_UNIT_L3SU, p, 0, 0);
	passes(j, words, stride, 2, 3);
	env_load_job(&e, j);
	run(&e);
	assert_memory_equal(e.seg[1], want, BYTES);
	/* And the store did happen. */
	for (i = 0; i < n * SPYRE_STICK; i++)
		assert_int_equal(e.seg[0][at + i], 0);
	env_free(&e);
}

static void test_own_store(void **state)
{
	(void)state;
	own_store(32, SPYRE_STICK, 0, 32);
	own_store(16, SPYRE_STICK, 0, 1);
	own_store(128, SPYRE_STICK, 31 * SPYRE_STICK, 2);
	own_store(8, -(int)SPYRE_STICK, 5 * SPYRE_STICK, 3);
	/* It touches only the last words of the tensor. */
	own_store(64, SPYRE_STICK, 2 * 4096 - SPYRE_STICK, 1);
}

/* Both operands are lent, and the result goes over one of them; a step, then the whole. */
static void in_place(unsigned int words, bool over_second)
{
	struct spyreprog_job *j = spyreprog_job_new();
	int l3 = spyreprog_job_program(j, SPYRE_UNIT_L3LU), lu = spyreprog_job_program(j, SPYRE_UNIT_LXLU);
	int pe = spyreprog_job_program(j, SPYRE_UNIT_PE), su = spyreprog_job_program(j, SPYRE_UNIT_LXSU);
	int st = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
	unsigned int half = BYTES / 2, i;
	int16_t *x, *y, *z;
	struct env e;

	begin(&e, 1);
	x = (int16_t *)e.seg[0];
	for (i = 0; i < BYTES / 2; i++)
		x[i] = (int16_t)(0x3e00 + (i * 37 % 64) * 8);
	memcpy(want, e.seg[0], BYTES);
	y = (int16_t *)want;
	z = y + half / 2;
	sp_loop(j, l3, BYTES / 4096);
	sp_l3(j, l3, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 4096, 4096);
	sp_end(j, l3);
	sp_send(j, l3, 1, 0);
	init(j, 0, SPYRE_UNIT_L3LU, l3, 0, ENV_SEGMENT(0));
	sp_wait(j, lu, 1, 1);
	sp_loop(j, lu, half / SPYRE_STICK / words);
	sp_ld(j, lu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, words, SPYRE_STICK, (int32_t)(words * SPYRE_STICK));
	sp_ld(j, lu, R0 + 1, NOREG, SPYRE_FIFO_LXLU_PE1, words, SPYRE_STICK, (int32_t)(words * SPYRE_STICK));
	sp_end(j, lu);
	init(j, 0, SPYRE_UNIT_LXLU, lu, 0, 0);
	sp_vec(j, pe, SPYRE_OP_SUB, F(PE_LXSU), F(LXLU_PE0), F(LXLU_PE1), 0, half / SPYRE_STICK, 0,
	       SPYRE_FMTS(SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, 0, SPYRE_SEN169_FP16));
	init(j, 0, SPYRE_UNIT_PE, pe, 0, 0);
	/* A burst at a time goes to memory while the rest is still to be read. */
	sp_loop(j, su, half / 4096);
	sp_st(j, su, R0, NOREG, SPYRE_FIFO_PE_LXSU, 32, SPYRE_STICK, 4096);
	sp_send(j, su, 3, 0);
	sp_end(j, su);
	init(j, 0, SPYRE_UNIT_LXSU, su, OUT, 0);
	sp_loop(j, st, half / 4096);
	sp_wait(j, st, 3, 1);
	sp_l3(j, st, SPYRE_OP_L3_STU, R0, NOREG, E0, 32, 0, 4096, 4096);
	sp_end(j, st);
	init(j, 0, SPYRE_UNIT_L3SU, st, OUT, ENV_SEGMENT(0) + (over_second ? half : 0));
	env_load_job(&e, j);
	run(&e);
	for (i = 0; i < half / 2; i++) {
		float v = spyre_dl16_to_fp32((uint16_t)y[i]) - spyre_dl16_to_fp32((uint16_t)z[i]);

		assert_int_equal(((uint16_t *)e.seg[0])[(over_second ? half / 2 : 0) + i], spyre_fp32_to_dl16(v));
	}
	assert_memory_equal(e.seg[0] + (over_second ? 0 : half), want + (over_second ? 0 : half), half);
	env_free(&e);
}

static void test_in_place(void **state)
{
	(void)state;
	in_place(16, false);
	in_place(16, true);
	in_place(8, false);
	in_place(1, true);
}

/*
 * Two loads that bring operands of an operation which takes a third one from another unit, and that one comes late: the
 * words of the two are not lost.
 */
static void test_third_operand(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	int l3 = spyreprog_job_program(j, SPYRE_UNIT_L3LU), lu = spyreprog_job_program(j, SPYRE_UNIT_LXLU);
	int pe = spyreprog_job_program(j, SPYRE_UNIT_PE), su = spyreprog_job_program(j, SPYRE_UNIT_LXSU);
	int sfp = spyreprog_job_program(j, SPYRE_UNIT_SFP), st = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
	enum spyre_format f = SPYRE_SEN169_FP16;
	unsigned int i;
	struct env e;

	(void)state;
	begin(&e, 1);
	for (i = 0; i < BYTES / 2; i++)
		((uint16_t *)e.seg[0])[i] = spyre_fp32_to_dl16((float)(1 + i % 64));
	sp_l3(j, l3, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 0, 0);
	sp_send(j, l3, 1, 0);
	init(j, 0, SPYRE_UNIT_L3LU, l3, 0, ENV_SEGMENT(0));
	sp_wait(j, lu, 1, 1);
	sp_mvreg(j, lu, R0 + 1, R0, SPYRE_STICK);
	sp_mvreg(j, lu, R0 + 2, R0, 2 * SPYRE_STICK);
	sp_ld(j, lu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 1, SPYRE_STICK, 0);
	sp_ld(j, lu, R0 + 1, NOREG, SPYRE_FIFO_LXLU_PE1, 1, SPYRE_STICK, 0);
	sp_ld(j, lu, R0 + 2, NOREG, SPYRE_FIFO_LXLU_SFP0, 1, SPYRE_STICK, 0);
	init(j, 0, SPYRE_UNIT_LXLU, lu, 0, 0);
	sp_vec(j, sfp, SPYRE_OP_MOV, F(SFP_PE), F(LXLU_SFP0), 0, 0, 1, 0, SPYRE_FMTS(f, 0, 0, f));
	init(j, 0, SPYRE_UNIT_SFP, sfp, 0, 0);
	sp_vec(j, pe, SPYRE_OP_FMA, F(PE_LXSU), F(LXLU_PE0), F(LXLU_PE1), F(SFP_PE), 1, 0, SPYRE_FMTS(f, f, f, f));
	init(j, 0, SPYRE_UNIT_PE, pe, 0, 0);
	sp_st(j, su, R0, NOREG, SPYRE_FIFO_PE_LXSU, 1, SPYRE_STICK, 0);
	sp_send(j, su, 3, 0);
	init(j, 0, SPYRE_UNIT_LXSU, su, OUT, 0);
	sp_wait(j, st, 3, 1);
	sp_l3(j, st, SPYRE_OP_L3_STU, R0, NOREG, E0, 1, 0, 0, 0);
	init(j, 0, SPYRE_UNIT_L3SU, st, OUT, ENV_SEGMENT(1));
	env_load_job(&e, j);
	run(&e);
	for (i = 0; i < 64; i++)
		assert_int_equal(((uint16_t *)e.seg[1])[i], spyre_fp32_to_dl16((float)((1 + i) * (1 + i) + 1 + i)));
	env_free(&e);
}

static void overwrite(struct env *e)
{
	/* After the job has begun to move data, which the first load shows by having read. */
	if (e->checkpoints > 8)
		memset(e->seg[0], 0x11, BYTES);
}

/*
 * Somebody takes the memory away while the job is under way: after the worker has let go, other contents are there.
 * Loads of another part, many slices long, lie between the load and the read.
 */
static void test_let_go(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct env e;
	int l3;

	(void)state;
	begin(&e, 1);
	e.let_go = true;
	e.between = overwrite;
	l3 = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
	sp_loop(j, l3, BYTES / 4096);
	sp_l3(j, l3, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 4096, 4096);
	sp_end(j, l3);
	sp_mvreg(j, l3, R0, NOREG, OTHER);
	sp_loop(j, l3, 1000);
	sp_mvreg(j, l3, E0 + 1, E0, 0);
	sp_l3(j, l3, SPYRE_OP_L3_LDU, R0, NOREG, E0 + 1, 32, 0, 0, 0);
	sp_end(j, l3);
	sp_send(j, l3, 1, 0);
	init(j, 0, SPYRE_UNIT_L3LU, l3, 0, ENV_SEGMENT(0));
	passes(j, 32, SPYRE_STICK, 1, 3);
	gives(j, 3);
	env_load_job(&e, j);
	run(&e);
	assert_int_equal(e.seg[0][0], 0x11);
	assert_memory_equal(e.seg[1], want, BYTES);
	env_free(&e);
}

/* A later job keeps LX, memory having changed since; the first one read some of it, or none. */
static void test_kept(void **state)
{
	unsigned int reads, i;

	(void)state;
	for (reads = 0; reads < 2; reads++) {
		struct spyreprog_job *j = spyreprog_job_new();
		struct env e;
		int p;

		begin(&e, 1);
		loads(j, ENV_SEGMENT(0), 1);
		if (reads)
			passes(j, 16, SPYRE_STICK, 1, 3);
		p = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
		sp_wait(j, p, reads ? 3 : 1, 1);
		init(j, 0, SPYRE_UNIT_L3SU, p, 0, 0);
		env_load_job(&e, j);
		assert_int_equal(env_run_flags(&e, NULL, 0, 1, false), SPYRE_OK);
		memset(e.seg[0], 0x22, BYTES);
		j = spyreprog_job_new();
		p = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
		for (i = 0; i < BYTES; i += 4096)
			stu(j, p, i, 1, i, 32);
		init(j, 0, SPYRE_UNIT_L3SU, p, 0, 0);
		env_load_job(&e, j);
		assert_int_equal(env_run_flags(&e, NULL, 0, 1, true), SPYRE_OK);
		assert_memory_equal(e.seg[1], want, BYTES);
		env_free(&e);
	}
}

/*
 * Core 1 stores over what core 0 loaded as soon as it hears of it; core 0, which is kept busy so that it does not park,
 * reads once it hears back.
 */
static void test_other_core(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct env e;
	unsigned int i;
	int p;

	(void)state;
	begin(&e, 2);
	p = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
	sp_loop(j, p, BYTES / 4096);
	sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 4096, 4096);
	sp_end(j, p);
	sp_send(j, p, 5, 2);
	sp_mvreg(j, p, R0, NOREG, OTHER);
	sp_loop(j, p, 50000);
	sp_mvreg(j, p, E0 + 1, E0, 0);
	sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0 + 1, 32, 0, 0, 0);
	sp_end(j, p);
	init(j, 0, SPYRE_UNIT_L3LU, p, 0, ENV_SEGMENT(0));
	p = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
	sp_wait(j, p, 5, 1);
	for (i = 0; i < BYTES; i += 4096)
		stu(j, p, OTHER, 0, i, 32);
	sp_send(j, p, 2, 1);
	init(j, 1, SPYRE_UNIT_L3SU, p, 0, 0);
	passes(j, 32, SPYRE_STICK, 2, 3);
	gives(j, 3);
	env_load_job(&e, j);
	run(&e);
	assert_memory_equal(e.seg[1], want, BYTES);
	for (i = 0; i < BYTES; i++)
		assert_int_equal(e.seg[0][i], 0);
	env_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_store),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_third_operand),
		cmocka_unit_test(test_let_go),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_other_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
