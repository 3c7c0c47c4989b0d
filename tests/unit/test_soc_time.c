// SPDX-License-Identifier: MIT
/*
 * The timing pass: what it refuses (deadlock, watchdog, tags, words left over), how fast it notices, and that
 * modelled figures are those of the documented rates.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "spyregen.h"
#include "test_soc_env.h"
#include "time_params.h"

#define R0 SPYRE_LAR0
#define E0 SPYRE_EAR0
#define NOREG SPYRE_REG_NONE
#define F(f) SPYRE_OPND_FIFO(SPYRE_FIFO_##f)
#define NOP(j, p) spyreprog_job_insn(j, p, &(struct spyre_insn){ .op = SPYRE_OP_NOP })
#define RAW SPYRE_FMTS(SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, 0, 0, SPYRE_IEEE_INT32 | SPYRE_FMT_HALF)

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + t.tv_nsec * 1e-9;
}

static int add(struct spyreprog_job *j, unsigned int core, enum spyre_unit kind, unsigned int x)
{
	int p = spyreprog_job_program(j, kind);

	spyreprog_job_unit(j, core, kind, x, p);
	return p;
}

static void expect(struct env *e, enum spyre_status status, enum spyre_prog_err code, int line)
{
	if (env_run(e, NULL, 0) != status || e->rb.err_code != code)
		fail_msg("line %d: status %u code %u core %d unit %x pc %u, expected status %u code %u", line,
			 e->rb.status, e->rb.err_code, (int16_t)e->rb.err_core, e->rb.err_unit, e->rb.err_pc, status,
			 code);
}

/* A writer may be exactly 16 words ahead. */
static void test_depth(void **state)
{
	unsigned int n;

	(void)state;
	for (n = 16; n <= 17; n++) {
		struct spyreprog_job *j = spyreprog_job_new();
		struct env e;
		int lx, pe;

		env_init(&e, 1);
		lx = add(j, 0, SPYRE_UNIT_LXLU, 1);
		pe = add(j, 0, SPYRE_UNIT_PE, 1);
		/* n words to operand one, then those of operand two; PE wants them in turn. */
		sp_ld(j, lx, R0, NOREG, SPYRE_FIFO_LXLU_PE0, n, 128, 0);
		sp_ld(j, lx, R0, NOREG, SPYRE_FIFO_LXLU_PE1, n, 128, 0);
		sp_vec(j, pe, SPYRE_OP_IADD, 0, F(LXLU_PE0), F(LXLU_PE1), 0, n, 0,
		       SPYRE_FMTS(SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, 0, 0));
		env_load_job(&e, j);
		if (n == 16) {
			expect(&e, SPYRE_OK, 0, __LINE__);
		} else {
			struct spyre_stuck s[8];

			expect(&e, SPYRE_ERR_DEADLOCK, 0, __LINE__);
			assert_int_equal(e.rb.nstuck, 2);
			assert_int_equal(spyre_soc_stuck(e.soc, s, 8), 2);
			assert_int_equal(s[0].unit, SPYRE_UNIT_LXLU | 0x80);
			assert_int_equal(s[0].waits, SPYRE_WAIT_FIFO_FULL);
			assert_int_equal(s[0].number, SPYRE_FIFO_LXLU_PE0);
			assert_int_equal(s[0].pc, 0);
			assert_int_equal(s[1].unit, SPYRE_UNIT_PE | 0x80);
			assert_int_equal(s[1].waits, SPYRE_WAIT_FIFO_EMPTY);
			assert_int_equal(s[1].number, SPYRE_FIFO_LXLU_PE1);
			assert_memory_equal(&e.rb.stuck[1], &s[1], sizeof(s[1]));
		}
		env_free(&e);
	}
}

static void test_stuck_kinds(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct spyre_stuck s[16];
	unsigned int c;
	struct env e;
	int p;

	(void)state;
	env_init(&e, 1);
	spyreprog_job_group(j, 4, 3);
	p = add(j, 0, SPYRE_UNIT_L3LU, 0);
	sp_l3(j, p, SPYRE_OP_L3_LDM, R0, NOREG, E0, 1, 4, 0, 0);
	p = add(j, 1, SPYRE_UNIT_L3LU, 0);
	sp_wait(j, p, 13, 2);
	p = add(j, 1, SPYRE_UNIT_PT, 0);
	sp_pt_ldw(j, p, 2, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
	sp_pt_mm(j, p, 2, SPYRE_SEN169_FP16, false, SPYRE_FIFO_LXLU_PT, 1, 0);
	p = add(j, 1, SPYRE_UNIT_PT, 1);
	sp_pt_ldw(j, p, 5, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
	env_load_job(&e, j);
	expect(&e, SPYRE_ERR_DEADLOCK, 0, __LINE__);
	assert_int_equal(spyre_soc_stuck(e.soc, s, 16), 4);
	assert_int_equal(s[0].core, 0);
	assert_int_equal(s[0].waits, SPYRE_WAIT_GROUP);
	assert_int_equal(s[0].number, 4);
	assert_int_equal(s[1].core, 1);
	assert_int_equal(s[1].waits, SPYRE_WAIT_TAG);
	assert_int_equal(s[1].number, 13);
	for (c = 2; c < 4; c++) {
		assert_int_equal(s[c].unit, SPYRE_UNIT_PT | (c - 2) << 7);
		assert_int_equal(s[c].waits, SPYRE_WAIT_TILE);
		assert_int_equal(s[c].number, c == 2 ? 2 : 5);
		assert_int_equal(s[c].pc, 1);
	}
	env_free(&e);
}

/* One core stands for all 32: the list names them all. */
static void test_stuck_all(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct spyre_stuck s[40];
	struct env e;
	unsigned int c;
	int p = spyreprog_job_program(j, SPYRE_UNIT_LXSU);

	(void)state;
	env_init(&e, 1);
	NOP(j, p);
	sp_st(j, p, R0, NOREG, SPYRE_FIFO_PT_LXSU, 3, 128, 0);
	for (c = 0; c < 32; c++)
		spyreprog_job_unit(j, c, SPYRE_UNIT_LXSU, 0, p);
	env_load_job(&e, j);
	expect(&e, SPYRE_ERR_DEADLOCK, 0, __LINE__);
	assert_int_equal(spyre_soc_stuck(e.soc, s, 40), 32);
	for (c = 0; c < 32; c++) {
		assert_int_equal(s[c].core, c);
		assert_int_equal(s[c].pc, 1);
	}
	env_free(&e);
}

static void test_left_over(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct env e;
	int p;

	(void)state;
	env_init(&e, 1);
	p = add(j, 7, SPYRE_UNIT_LXLU, 0);
	sp_ld(j, p, R0, NOREG, SPYRE_FIFO_LXLU_SFP1, 2, 128, 0);
	env_load_job(&e, j);
	expect(&e, SPYRE_ERR_PROGRAM, SPYRE_PE_FIFO_LEFT, __LINE__);
	assert_int_equal(e.rb.err_core, 7);
	assert_int_equal(e.rb.err_unit, SPYRE_UNIT_SFP);

	j = spyreprog_job_new();
	p = add(j, 7, SPYRE_UNIT_LXLU, 0);
	sp_send(j, p, 3, 0);
	env_load_job(&e, j);
	expect(&e, SPYRE_ERR_PROGRAM, SPYRE_PE_FIFO_LEFT, __LINE__);
	assert_int_equal(e.rb.err_core, 7);

	/* MM before any load of its tile, and with another format. */
	j = spyreprog_job_new();
	p = add(j, 7, SPYRE_UNIT_PT, 1);
	sp_pt_mm(j, p, 0, SPYRE_SEN169_FP16, false, SPYRE_FIFO_LXLU_PT, 1, 0);
	env_load_job(&e, j);
	expect(&e, SPYRE_ERR_PROGRAM, SPYRE_PE_TILE, __LINE__);
	assert_int_equal(e.rb.err_unit, SPYRE_UNIT_PT | 1 << 8);
	j = spyreprog_job_new();
	p = add(j, 7, SPYRE_UNIT_PT, 1);
	sp_pt_ldw(j, p, 0, SPYRE_BFLOAT16, SPYRE_FIFO_LXLU_PTW);
	sp_pt_mm(j, p, 0, SPYRE_SEN169_FP16, false, SPYRE_FIFO_LXLU_PT, 1, 0);
	env_load_job(&e, j);
	expect(&e, SPYRE_ERR_PROGRAM, SPYRE_PE_TILE, __LINE__);
	assert_int_equal(e.rb.err_pc, 1);
	env_free(&e);
}

static void test_tags(void **state)
{
	struct env e;
	uint32_t n;

	(void)state;
	env_init(&e, 1);
	/* 65535 sends fit, one more does not. */
	for (n = 65535; n <= 65536; n++) {
		struct spyreprog_job *j = spyreprog_job_new();
		int lx = add(j, 0, SPYRE_UNIT_LXLU, 0), su = add(j, 0, SPYRE_UNIT_LXSU, 0);

		sp_loop(j, lx, n);
		sp_send(j, lx, 0, 0);
		sp_end(j, lx);
		sp_send(j, lx, 1, 0);
		sp_wait(j, su, 1, 1);
		sp_loop(j, su, n);
		sp_wait(j, su, 0, 1);
		sp_end(j, su);
		env_load_job(&e, j);
		if (n == 65535) {
			expect(&e, SPYRE_OK, 0, __LINE__);
		} else {
			expect(&e, SPYRE_ERR_PROGRAM, SPYRE_PE_TAG_OVERFLOW, __LINE__);
			assert_int_equal(e.rb.err_unit, SPYRE_UNIT_LXLU);
		}
	}
	/* A million that are taken as they come. */
	{
		struct spyreprog_job *j = spyreprog_job_new();
		int lx = add(j, 0, SPYRE_UNIT_LXLU, 0), su = add(j, 0, SPYRE_UNIT_LXSU, 0);

		sp_loop(j, lx, 1000000);
		sp_send(j, lx, 0, 0);
		sp_end(j, lx);
		sp_loop(j, su, 1000000);
		sp_wait(j, su, 0, 1);
		sp_end(j, su);
		env_load_job(&e, j);
		expect(&e, SPYRE_OK, 0, __LINE__);
	}
	env_free(&e);
}

/* Members of a multicast with bursts of different length. */
static void test_group_burst(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct env e;
	unsigned int c;

	(void)state;
	env_init(&e, 1);
	spyreprog_job_group(j, 0, 0x1c);
	for (c = 2; c < 5; c++)
		sp_l3(j, add(j, c, SPYRE_UNIT_L3LU, 0), SPYRE_OP_L3_LDM, R0, NOREG, E0, c == 4 ? 2 : 1, 0, 0, 0);
	env_load_job(&e, j);
	expect(&e, SPYRE_ERR_PROGRAM, SPYRE_PE_GROUP_MISMATCH, __LINE__);
	assert_int_equal(e.rb.err_core, 4);
	env_free(&e);
}

/* Programs that never end are noticed in a moment, however they do it. */
static void test_watchdog(void **state)
{
	unsigned int kind;

	(void)state;
	for (kind = 0; kind < 6; kind++) {
		struct spyreprog_job *j = spyreprog_job_new();
		unsigned int i, c;
		double t0;
		struct env e;
		int p, q;

		env_init(&e, 1);
		p = spyreprog_job_program(j, SPYRE_UNIT_LXLU);
		q = spyreprog_job_program(j, SPYRE_UNIT_PE);
		for (c = 0; c < (kind == 5 ? 32 : 1); c++) {
			spyreprog_job_unit(j, c, SPYRE_UNIT_LXLU, 0, p);
			spyreprog_job_unit(j, c, SPYRE_UNIT_PE, 0, q);
		}
		switch (kind) {
		case 0:		/* idle for ever */
		case 1:		/* the same, with something in the innermost block */
			for (i = 0; i < 8; i++)
				sp_loop(j, p, 0xffffffff);
			if (kind)
				sp_mvreg(j, p, SPYRE_LCR0, NOREG, 1);
			else
				NOP(j, p);
			for (i = 0; i < 8; i++)
				sp_end(j, p);
			break;
		case 2:		/* words for ever */
		case 5:
			for (i = 0; i < 3; i++)
				sp_loop(j, p, 1000000);
			sp_ld(j, p, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 1000, 0, 0);
			for (i = 0; i < 3; i++)
				sp_end(j, p);
			for (i = 0; i < 3; i++)
				sp_loop(j, q, 1000000);
			sp_vec(j, q, SPYRE_OP_MOV, 0, F(LXLU_PE0), 0, 0, 1000, 0,
			       SPYRE_FMTS(SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, 0, 0, 0));
			for (i = 0; i < 3; i++)
				sp_end(j, q);
			break;
		case 3:		/* 1000 cycles are too many for a budget of 500 */
			sp_loop(j, p, 1000);
			NOP(j, p);
			sp_end(j, p);
			spyreprog_job_watchdog(j, 500);
			break;
		case 4:		/* one register as a huge count */
			sp_mvreg(j, p, SPYRE_LCR0, NOREG, -1);
			sp_loop_reg(j, p, SPYRE_LCR0);
			NOP(j, p);
			sp_end(j, p);
			break;
		}
		env_load_job(&e, j);
		t0 = seconds();
		expect(&e, SPYRE_ERR_WATCHDOG, 0, __LINE__);
		print_message("endless program %u: %.3f s\n", kind, seconds() - t0);
		/* Under sanitizers ten times slower; without, a fraction of a second. */
		assert_true(seconds() - t0 < 60);
		env_free(&e);
	}
	/* A program that waits for ever is a deadlock even if it would also be long. */
	{
		struct spyreprog_job *j = spyreprog_job_new();
		struct env e;
		int p = add(j, 0, SPYRE_UNIT_LXLU, 0);

		env_init(&e, 1);
		sp_loop(j, p, 0xffffffff);
		sp_loop(j, p, 0xffffffff);
		sp_ld(j, p, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 1, 0, 0);
		sp_end(j, p);
		sp_end(j, p);
		env_load_job(&e, j);
		expect(&e, SPYRE_ERR_DEADLOCK, 0, __LINE__);
		env_free(&e);
	}
}

/* The pass stops when a checkpoint says so. */
static void test_cancel(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct env e;
	int p = add(j, 0, SPYRE_UNIT_LXLU, 0);

	(void)state;
	env_init(&e, 1);
	/* Counts that a register is given on the way: no bound is known before. */
	sp_mvreg(j, p, SPYRE_LCR0, NOREG, 0x7fffffff);
	sp_loop_reg(j, p, SPYRE_LCR0);
	sp_loop_reg(j, p, SPYRE_LCR0);
	sp_mvreg(j, p, SPYRE_LCR0 + 1, NOREG, 1);
	sp_end(j, p);
	sp_end(j, p);
	env_load_job(&e, j);
	e.stop_at = 10;
	expect(&e, SPYRE_ERR_CANCELLED, 0, __LINE__);
	assert_true(e.checkpoints < 20);
	env_free(&e);
}

/* --- Figures -------------------------------------------------------------------------------- */

/* The first n cores read (and write) many bursts each; GB a second of card time. */
static double bandwidth(unsigned int n, bool read, bool write)
{
	struct spyreprog_job *j = spyreprog_job_new();
	unsigned int c;
	struct env e;
	double r;
	int p;

	env_init(&e, 1);
	env_map(&e, 0, 4096);
	for (c = 0; c < n; c++) {
		if (read) {
			p = add(j, c, SPYRE_UNIT_L3LU, 0);
			sp_loop(j, p, 2000);
			sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 0, 0);
			sp_end(j, p);
		}
		if (write) {
			p = add(j, c, SPYRE_UNIT_L3SU, 0);
			sp_loop(j, p, 2000);
			sp_l3(j, p, SPYRE_OP_L3_STU, R0, NOREG, E0, 32, 0, 0, 0);
			sp_end(j, p);
		}
	}
	env_load_job(&e, j);
	expect(&e, SPYRE_OK, 0, __LINE__);
	r = (double)(e.time.rd_bytes + e.time.wr_bytes) / ((double)e.time.cycles / SPYRE_CORE_HZ);
	assert_int_equal(e.time.rd_bytes, read ? n * 2000ull * 4096 : 0);
	env_free(&e);
	return r / 1e9;
}

#define NEAR(got, want, percent) do { \
	double g_ = (got), w_ = (want); \
	print_message("  %-28s %8.2f, published %8.2f\n", #got, g_, w_); \
	if (fabs(g_ / w_ - 1) > (percent) / 100.0) \
		fail_msg(#got " is %f, expected %f within %d %%", g_, w_, percent); \
} while (0)

static void test_bandwidth(void **state)
{
	(void)state;
	NEAR(bandwidth(32, true, false), 150, 3);
	NEAR(bandwidth(32, false, true), 150, 3);
	NEAR(bandwidth(32, true, true), 105, 3);
	NEAR(bandwidth(16, true, false), 0.54 * 150, 5);
	NEAR(bandwidth(4, true, false), 0.43 * 150, 5);
	NEAR(bandwidth(1, true, false), 0.11 * 150, 5);
}

/* PT: eight beats a word, no faster than 512 multiply-adds a cycle and corelet. */
static void test_pt_rate(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	double cycles;
	struct env e;
	int lx, pt;

	(void)state;
	env_init(&e, 1);
	lx = add(j, 0, SPYRE_UNIT_LXLU, 0);
	pt = add(j, 0, SPYRE_UNIT_PT, 0);
	sp_ld(j, lx, R0, NOREG, SPYRE_FIFO_LXLU_PTW, 64, 128, 0);
	sp_pt_ldw(j, pt, 0, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
	sp_loop(j, lx, 1000);
	sp_ld(j, lx, R0, NOREG, SPYRE_FIFO_LXLU_PT, 128, 128, 0);
	sp_end(j, lx);
	sp_loop(j, pt, 1000);
	sp_pt_mm(j, pt, 0, SPYRE_SEN169_FP16, true, SPYRE_FIFO_LXLU_PT, 128, 0);
	sp_end(j, pt);
	env_load_job(&e, j);
	expect(&e, SPYRE_OK, 0, __LINE__);
	cycles = (double)e.time.cycles;
	assert_int_equal(e.time.pt_macs, 128000ull * 4096);
	assert_true((double)e.time.pt_macs / cycles <= 512);
	NEAR((double)e.time.pt_macs / cycles, 4096.0 * TIME_PT_BEAT_HZ / TIME_MM_BEATS / SPYRE_CORE_HZ, 1);
	env_free(&e);
}

/*
 * Identical cores are timed once. The same job with one idle far send more, which makes the pass simulate
 * every core, takes the same time but for that send.
 */
static void test_stand_in(void **state)
{
	uint64_t cycles[2];
	unsigned int full, c;

	(void)state;
	for (full = 0; full < 2; full++) {
		struct spyreprog_job *j = spyreprog_job_new();
		int l3 = spyreprog_job_program(j, SPYRE_UNIT_L3LU), lx = spyreprog_job_program(j, SPYRE_UNIT_LXLU);
		int pe = spyreprog_job_program(j, SPYRE_UNIT_PE), su;
		double t0;
		struct env e;

		env_init(&e, 1);
		env_map(&e, 0, 4096);
		spyreprog_job_group(j, 1, 0xffff);
		spyreprog_job_group(j, 2, 0xffff0000);
		sp_loop(j, l3, 300);
		sp_wait(j, l3, 1, 1);
		sp_l3(j, l3, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 0, 0);
		sp_send(j, l3, 0, 0);
		sp_end(j, l3);
		sp_send(j, lx, 1, 0);
		sp_loop(j, lx, 300);
		sp_wait(j, lx, 0, 1);
		sp_ld(j, lx, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 320, 0, 0);
		sp_send(j, lx, 1, 0);
		sp_end(j, lx);
		/* Takes back the send that no load waits for. */
		sp_vec(j, pe, SPYRE_OP_MOV, 0, F(LXLU_PE0), 0, 0, 60000, 0,
		       SPYRE_FMTS(SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, 0, 0, 0));
		sp_vec(j, pe, SPYRE_OP_MOV, 0, F(LXLU_PE0), 0, 0, 36000, 0,
		       SPYRE_FMTS(SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, 0, 0, 0));
		for (c = 0; c < 32; c++) {
			spyreprog_job_unit(j, c, SPYRE_UNIT_L3LU, 0, l3);
			spyreprog_job_unit(j, c, SPYRE_UNIT_LXLU, 0, lx);
			spyreprog_job_unit(j, c, SPYRE_UNIT_PE, 0, pe);
		}
		sp_wait(j, l3, 1, 1);
		if (full) {
			su = add(j, 0, SPYRE_UNIT_L0SU, 1);
			sp_send(j, su, 9, 2);
			su = add(j, 1, SPYRE_UNIT_L0SU, 1);
			sp_wait(j, su, 9, 1);
		}
		env_load_job(&e, j);
		t0 = seconds();
		expect(&e, SPYRE_OK, 0, __LINE__);
		print_message("%s: %.4f s, %llu cycles\n", full ? "all cores" : "one core", seconds() - t0,
			      (unsigned long long)e.time.cycles);
		cycles[full] = e.time.cycles;
		env_free(&e);
	}
	/* Who is first at the memory differs. */
	if (fabs((double)cycles[0] / (double)cycles[1] - 1) > 0.02)
		fail_msg("%llu cycles by one core, %llu by all", (unsigned long long)cycles[0],
			 (unsigned long long)cycles[1]);
}

/* The ring around all cores, timed by one and by all. */
static void test_ring(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	int p = spyreprog_job_program(j, SPYRE_UNIT_SFP);
	struct env e;
	unsigned int c;

	(void)state;
	env_init(&e, 2);
	sp_vec(j, p, SPYRE_OP_MOV, F(RING), 0, 0, 0, 16, 0,
	       SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32 | SPYRE_FMT_HALF));
	sp_vec(j, p, SPYRE_OP_MOV, 1, F(RING), 0, 0, 16, 0,
	       SPYRE_FMTS(SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, 0, 0, 0));
	for (c = 3; c < 30; c++)
		spyreprog_job_unit(j, c, SPYRE_UNIT_SFP, c & 1, p);
	env_load_job(&e, j);
	/* Odd and even cores use different corelets: each ring ends at a core that does not read it. */
	expect(&e, SPYRE_ERR_DEADLOCK, 0, __LINE__);

	j = spyreprog_job_new();
	p = spyreprog_job_program(j, SPYRE_UNIT_SFP);
	sp_vec(j, p, SPYRE_OP_MOV, F(RING), 0, 0, 0, 16, 0,
	       SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32 | SPYRE_FMT_HALF));
	sp_vec(j, p, SPYRE_OP_MOV, 1, F(RING), 0, 0, 16, 0,
	       SPYRE_FMTS(SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, 0, 0, 0));
	for (c = 3; c < 30; c++)
		spyreprog_job_unit(j, c, SPYRE_UNIT_SFP, 1, p);
	env_load_job(&e, j);
	expect(&e, SPYRE_OK, 0, __LINE__);
	env_free(&e);
}

/* Binding other addresses costs nothing; other counts are timed again. Times are the same each time. */
static void test_remembered(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	uint64_t syms[2], cycles;
	struct env e;
	int p, u;

	(void)state;
	env_init(&e, 1);
	env_map(&e, 0, 1 << 16);
	p = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
	sp_mvreg(j, p, SPYRE_LCR0 + 1, SPYRE_LCR0, 3);
	sp_loop_reg(j, p, SPYRE_LCR0 + 1);
	sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 0, 0);
	sp_end(j, p);
	u = spyreprog_job_unit(j, 0, SPYRE_UNIT_L3LU, 0, p);
	spyreprog_job_init(j, u, E0, 0, 0);
	spyreprog_job_init(j, u, SPYRE_LCR0, 1, 0);
	env_load_job(&e, j);
	syms[0] = 0;
	syms[1] = 100000;
	assert_int_equal(env_run(&e, syms, 2), SPYRE_OK);
	cycles = e.time.cycles;
	syms[0] = 4096;
	assert_int_equal(env_run(&e, syms, 2), SPYRE_OK);
	assert_int_equal(e.time.cycles, cycles);
	syms[1] = 200003;
	assert_int_equal(env_run(&e, syms, 2), SPYRE_OK);
	assert_true(e.time.cycles > cycles * 19 / 10);
	assert_int_equal(e.time.rd_bytes, 200006ull * 4096);
	syms[1] = 100000;
	assert_int_equal(env_run(&e, syms, 2), SPYRE_OK);
	assert_int_equal(e.time.cycles, cycles);
	env_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_stuck_kinds),
		cmocka_unit_test(test_stuck_all),
		cmocka_unit_test(test_left_over),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_group_burst),
		cmocka_unit_test(test_watchdog),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_bandwidth),
		cmocka_unit_test(test_pt_rate),
		cmocka_unit_test(test_stand_in),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_remembered),
	};

	/* A test that hangs is a failed test. */
	alarm(900);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
