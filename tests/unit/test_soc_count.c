// SPDX-License-Identifier: MIT
/* Counters of all jobs that ran: exact, whatever is remembered of them, and read at any time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "job.h"
#include "spyregen.h"
#include "test_soc_env.h"

#define R0 SPYRE_LAR0
#define E0 SPYRE_EAR0
#define NOREG SPYRE_REG_NONE
#define F(f) SPYRE_OPND_FIFO(SPYRE_FIFO_##f)
#define RAW (SPYRE_IEEE_INT32 | SPYRE_FMT_HALF)

/* What is expected, in ticks where it is time. */
struct sums {
	uint64_t jobs, rd, wr, memory_busy, port_busy[2];
	struct {
		uint64_t jobs, macs;
		uint64_t spent[SPYRE_PROFILE_UNITS][SPYRE_SPENT], bytes[SPYRE_PROFILE_UNITS];
		uint64_t link_busy[SPYRE_LINKS], link_bytes[SPYRE_LINKS];
	} core[32];
};

static int add(struct spyreprog_job *j, unsigned int core, enum spyre_unit kind, unsigned int x)
{
	int p = spyreprog_job_program(j, kind);

	spyreprog_job_unit(j, core, kind, x, p);
	return p;
}

static struct spyre_soc_job request(struct env *e, const uint64_t *symbols)
{
	const struct spyre_job_header *h = (const void *)e->seg[7];

	if (h->nsymbols)
		memcpy(e->seg[7] + e->len[7] - ENV_SYMBOLS, symbols, h->nsymbols * 8);
	return (struct spyre_soc_job){
		.bootaddr = ENV_SEGMENT(7), .nsymbols = h->nsymbols, .mem = &e->mem, .context = 1,
		.symbols = ENV_SEGMENT(7) + e->len[7] - ENV_SYMBOLS,
	};
}

/* Adds what a profile of the job says, times over. */
static void expect(struct env *e, const uint64_t *symbols, uint64_t times, struct sums *s)
{
	struct spyre_soc_job job = request(e, symbols);
	struct spyre_soc_profile p = { 0 };
	unsigned int c, k, i;
	struct spyre_rb rb;

	assert_true(spyre_soc_profile(e->soc, &job, &p, &rb));
	s->jobs += times;
	s->rd += times * p.time.rd_bytes;
	s->wr += times * p.time.wr_bytes;
	s->memory_busy += times * p.memory_busy;
	for (i = 0; i < 2; i++)
		s->port_busy[i] += times * p.port_busy[i];
	for (c = 0; c < 32; c++) {
		const struct spyre_core_profile *q = &p.core[c];
		const uint64_t busy[SPYRE_LINKS] = {
			q->in_busy, q->out_busy, q->ring_busy[0], q->ring_busy[1],
		};
		const uint64_t bytes[SPYRE_LINKS] = {
			q->in_bytes, q->out_bytes, q->ring_bytes[0], q->ring_bytes[1],
		};

		s->core[c].jobs += times * (p.core_mask >> c & 1);
		s->core[c].macs += times * q->macs;
		for (i = 0; i < SPYRE_LINKS; i++) {
			s->core[c].link_busy[i] += times * busy[i];
			s->core[c].link_bytes[i] += times * bytes[i];
		}
		for (k = 0; k < SPYRE_PROFILE_UNITS; k++) {
			s->core[c].bytes[k] += times * q->unit[k].bytes;
			for (i = 0; i < SPYRE_SPENT; i++)
				s->core[c].spent[k][i] += times * q->unit[k].spent[i];
		}
	}
}

#define cycles(t) ((t) / SPYRE_SOC_TICKS)

static void check(struct env *e, const struct sums *s)
{
	struct spyre_soc_counters v;
	unsigned int c, k, i;

	spyre_soc_counters(e->soc, &v);
	assert_int_equal(v.jobs, s->jobs);
	assert_int_equal(v.rd_bytes, s->rd);
	assert_int_equal(v.wr_bytes, s->wr);
	assert_int_equal(v.memory_busy, cycles(s->memory_busy));
	for (i = 0; i < 2; i++)
		assert_int_equal(v.port[i].busy, cycles(s->port_busy[i]));
	for (c = 0; c < 32; c++) {
		assert_int_equal(v.core[c].jobs, s->core[c].jobs);
		assert_int_equal(v.core[c].macs, s->core[c].macs);
		for (i = 0; i < SPYRE_LINKS; i++) {
			assert_int_equal(v.core[c].link[i].busy, cycles(s->core[c].link_busy[i]));
			assert_int_equal(v.core[c].link[i].bytes, s->core[c].link_bytes[i]);
		}
		for (k = 0; k < SPYRE_PROFILE_UNITS; k++) {
			const struct spyre_unit_counters *u = &v.core[c].unit[k];

			assert_int_equal(u->bytes, s->core[c].bytes[k]);
			for (i = 0; i < SPYRE_SPENT; i++)
				assert_int_equal(u->spent[i], cycles(s->core[c].spent[k][i]));
		}
	}
}

static void all_zero(struct env *e)
{
	static const struct sums none;
	struct spyre_soc_counters v, zero;

	check(e, &none);
	memset(&zero, 0, sizeof(zero));
	memset(&v, 0xff, sizeof(v));
	spyre_soc_counters(e->soc, &v);
	assert_memory_equal(&v, &zero, sizeof(v));
}

static void run(struct env *e, const uint64_t *symbols, unsigned int times)
{
	const struct spyre_job_header *h = (const void *)e->seg[7];

	while (times--)
		assert_int_equal(env_run(e, symbols, h->nsymbols), SPYRE_OK);
}

/* A program whose counts are known without a model: on core 9, and all it touches. */
static void test_known(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct spyre_soc_counters v;
	const struct spyre_unit_counters *u;
	unsigned int runs, c, k, s;
	struct env e;
	int p;

	(void)state;
	env_init(&e, 1);
	env_map(&e, 0, 1 << 20);
	p = add(j, 9, SPYRE_UNIT_L3LU, 0);
	sp_loop(j, p, 3);
	sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 0, 0);
	sp_end(j, p);
	sp_send(j, p, 1, 0);
	p = add(j, 9, SPYRE_UNIT_LXLU, 1);
	sp_wait(j, p, 1, 1);
	/* A block of nothing but registers is done at once, but counts. */
	sp_loop(j, p, 1000);
	sp_addimm(j, p, R0, 0);
	spyreprog_job_insn(j, p, &(struct spyre_insn){ .op = SPYRE_OP_NOP });
	sp_end(j, p);
	sp_loop(j, p, 0);
	sp_addimm(j, p, R0, 0);
	sp_end(j, p);
	sp_ld(j, p, R0, NOREG, SPYRE_FIFO_LXLU_SFP0, 50, 0, 0);
	p = add(j, 9, SPYRE_UNIT_SFP, 1);
	sp_vec(j, p, SPYRE_OP_EXP, F(SFP_LXSU), F(LXLU_SFP0), 0, 0, 50, 0,
	       SPYRE_FMTS(SPYRE_SEN169_FP16, 0, 0, SPYRE_SEN169_FP16));
	p = add(j, 9, SPYRE_UNIT_LXSU, 1);
	sp_st(j, p, R0, NOREG, SPYRE_FIFO_SFP_LXSU, 50, 128, 0);
	sp_send(j, p, 2, 0);
	p = add(j, 9, SPYRE_UNIT_L3SU, 0);
	sp_wait(j, p, 2, 1);
	sp_l3(j, p, SPYRE_OP_L3_STU, R0, NOREG, E0, 5, 0, 0, 0);
	env_load_job(&e, j);
	all_zero(&e);
	for (runs = 1; runs <= 3; runs++) {
		run(&e, NULL, 1);
		spyre_soc_counters(e.soc, &v);
		assert_int_equal(v.jobs, runs);
		assert_int_equal(v.rd_bytes, runs * 96 * SPYRE_STICK);
		assert_int_equal(v.wr_bytes, runs * 5 * SPYRE_STICK);
		assert_int_equal(v.port[0].bytes, runs * 101 * SPYRE_STICK);
		assert_int_equal(v.port[1].bytes + v.port[1].busy, 0);
		assert_int_equal(v.core[9].jobs, runs);
		assert_int_equal(v.core[9].link[SPYRE_LINK_IN].bytes, runs * 96 * SPYRE_STICK);
		assert_int_equal(v.core[9].link[SPYRE_LINK_OUT].bytes, runs * 5 * SPYRE_STICK);
		assert_int_equal(v.core[9].link[SPYRE_LINK_CW].bytes, 0);
		assert_int_equal(v.core[9].link[SPYRE_LINK_CCW].bytes, 0);
		assert_int_equal(v.core[9].macs, 0);
		u = v.core[9].unit;
		assert_int_equal(u[SPYRE_UNIT_L3LU].instructions, runs * (1 + 3 + 1 + 1));
		assert_int_equal(u[SPYRE_UNIT_L3LU].bytes, runs * 96 * SPYRE_STICK);
		assert_int_equal(u[SPYRE_UNIT_L3LU].spent[SPYRE_BUSY], runs * (1 + 3 + 1));
		assert_int_equal(u[SPYRE_UNIT_L3SU].instructions, runs * 3);
		assert_int_equal(u[SPYRE_UNIT_L3SU].bytes, runs * 5 * SPYRE_STICK);
		k = job_unit_index(SPYRE_UNIT_LXLU, 1);
		assert_int_equal(u[k].instructions, runs * (1 + (1 + 1000 * 2) + 1 + 1 + 1));
		assert_int_equal(u[k].bytes, runs * 50 * SPYRE_STICK);
		k = job_unit_index(SPYRE_UNIT_SFP, 1);
		assert_int_equal(u[k].instructions, runs * 2);
		assert_int_equal(u[k].bytes, runs * 100 * SPYRE_STICK);
		assert_true(u[k].spent[SPYRE_STARVED] > runs * 2000);
		k = job_unit_index(SPYRE_UNIT_LXSU, 1);
		assert_int_equal(u[k].instructions, runs * 3);
		/* Nobody else. */
		for (c = 0; c < 32; c++)
			for (k = 0; k < SPYRE_PROFILE_UNITS; k++) {
				if (c == 9 && (k < 2 || k == job_unit_index(SPYRE_UNIT_LXLU, 1) ||
					       k == job_unit_index(SPYRE_UNIT_SFP, 1) ||
					       k == job_unit_index(SPYRE_UNIT_LXSU, 1)))
					continue;
				u = &v.core[c].unit[k];
				for (s = 0; s < SPYRE_SPENT; s++)
					assert_int_equal(u->spent[s], 0);
				assert_int_equal(u->instructions + u->bytes, 0);
			}
	}
	env_free(&e);
}

static void load_gen(struct env *e, struct spyreprog_job *j, const char *err)
{
	if (!j)
		fail_msg("%s", err);
	env_load_job(e, j);
}

/* Products and sums on all cores, run once and often, against what their profiles say. */
static void test_profiles(void **state)
{
	static const uint64_t symbols[4] = { 0, ENV_SEGMENT(1), ENV_SEGMENT(2), ENV_SEGMENT(3) };
	struct spyregen_matmul mm = {
		.m = 300, .n = 1000, .k = 500, .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16,
		.bias = true, .act = SPYREGEN_GELU,
	};
	struct spyregen_matmul small = {
		.m = 128, .n = 192, .k = 320, .in = SPYRE_SENINT8, .out = SPYRE_IEEE_INT32,
	};
	struct spyregen_elementwise ew = {
		.op = SPYREGEN_ADD, .m = 100, .n = 333, .in = SPYRE_SEN169_FP16,
		.out = SPYRE_SEN169_FP16,
	};
	static struct sums sums;
	unsigned int i, round;
	char err[256];
	struct env e;

	(void)state;
	memset(&sums, 0, sizeof(sums));
	env_init(&e, 3);
	for (i = 0; i < 4; i++)
		env_map(&e, i, 4 << 20);
	for (round = 0; round < 3; round++) {
		load_gen(&e, spyregen_matmul(&mm, err), err);
		run(&e, symbols, 1 + round);
		expect(&e, symbols, 1 + round, &sums);
		check(&e, &sums);
		load_gen(&e, spyregen_elementwise(&ew, err), err);
		run(&e, symbols, 5);
		load_gen(&e, spyregen_matmul(&small, err), err);
		run(&e, symbols, 2);
		expect(&e, symbols, 2, &sums);
		load_gen(&e, spyregen_elementwise(&ew, err), err);
		expect(&e, symbols, 5, &sums);
		check(&e, &sums);
	}
	assert_true(sums.core[31].macs && sums.port_busy[1]);
	assert_true(sums.core[0].spent[SPYRE_PROFILE_PORT][SPYRE_BUSY]);
	spyre_soc_reset(e.soc, 0xffffffff);
	all_zero(&e);
	/* And on from there. */
	memset(&sums, 0, sizeof(sums));
	run(&e, symbols, 4);
	expect(&e, symbols, 4, &sums);
	check(&e, &sums);
	spyre_soc_reset(e.soc, 0xffffffff);
	all_zero(&e);
	env_free(&e);
}

/* Both ways round the ring, and a load for all cores of which one half is on each port. */
static void test_links(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct spyre_soc_counters v;
	unsigned int c, x;
	struct sums sums = { 0 };
	struct env e;
	int p, s[2];

	(void)state;
	env_init(&e, 2);
	env_map(&e, 0, 1 << 20);
	spyreprog_job_group(j, 0, 0xffffffff);
	p = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
	sp_l3(j, p, SPYRE_OP_L3_LDM, R0, NOREG, E0, 7, 0, 0, 0);
	for (x = 0; x < 2; x++) {
		s[x] = spyreprog_job_program(j, SPYRE_UNIT_SFP);
		sp_vec(j, s[x], SPYRE_OP_MOV, F(RING), 0, 0, 0, 3 + x, 0, SPYRE_FMTS(0, 0, 0, RAW));
		sp_vec(j, s[x], SPYRE_OP_MOV, 0, F(RING), 0, 0, 3 + x, 0, SPYRE_FMTS(RAW, 0, 0, 0));
	}
	for (c = 0; c < 32; c++) {
		spyreprog_job_unit(j, c, SPYRE_UNIT_L3LU, 0, p);
		for (x = 0; x < 2; x++)
			spyreprog_job_unit(j, c, SPYRE_UNIT_SFP, x, s[x]);
	}
	env_load_job(&e, j);
	run(&e, NULL, 2);
	expect(&e, NULL, 2, &sums);
	check(&e, &sums);
	spyre_soc_counters(e.soc, &v);
	/* Memory gives it once, through both ports, and each core takes it. */
	assert_int_equal(v.rd_bytes, 2 * 7 * SPYRE_STICK);
	for (x = 0; x < 2; x++)
		assert_int_equal(v.port[x].bytes, 2 * 7 * SPYRE_STICK);
	for (c = 0; c < 32; c++) {
		assert_int_equal(v.core[c].link[SPYRE_LINK_IN].bytes, 2 * 7 * SPYRE_STICK);
		assert_int_equal(v.core[c].link[SPYRE_LINK_CW].bytes, 2 * 3 * SPYRE_STICK);
		assert_int_equal(v.core[c].link[SPYRE_LINK_CCW].bytes, 2 * 4 * SPYRE_STICK);
	}
	env_free(&e);
}

/* A program for one core whose loop runs as often as its argument says; pad: bytes it is longer. */
static void counted(struct env *e, unsigned int pad)
{
	struct spyreprog_job *j = spyreprog_job_new();
	unsigned int k;
	int p, u;

	p = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
	u = spyreprog_job_unit(j, 4, SPYRE_UNIT_L3LU, 0, p);
	spyreprog_job_symbols(j, 1);
	spyreprog_job_init(j, u, SPYRE_LCR0, 0, 0);
	sp_loop_reg(j, p, SPYRE_LCR0);
	sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0, 1, 0, 0, 0);
	sp_end(j, p);
	if (pad) {
		sp_loop(j, p, 0);
		for (k = 0; k < pad / 16; k++)
			spyreprog_job_insn(j, p, &(struct spyre_insn){ .op = SPYRE_OP_NOP });
		sp_end(j, p);
	}
	env_load_job(e, j);
}

/*
 * More start values than are remembered, and than wait to be added up; read now and then, or only
 * at the end.
 */
static void test_forgotten_times(void **state)
{
	struct spyre_soc_counters v;
	const struct spyre_unit_counters *u = &v.core[4].unit[SPYRE_UNIT_L3LU];
	uint64_t n, insns, bytes, jobs, reads;
	unsigned int round;
	struct env e;

	(void)state;
	for (reads = 0; reads < 2; reads++) {
		env_init(&e, 1);
		env_map(&e, 0, 4096);
		counted(&e, 0);
		insns = bytes = jobs = 0;
		for (round = 0; round < 3; round++)
			for (n = 1; n <= 200; n++) {
				run(&e, &n, 1 + n % 3);
				jobs += 1 + n % 3;
				insns += (1 + n % 3) * (n + 2);
				bytes += (1 + n % 3) * n * SPYRE_STICK;
				if (!reads || n % 37)
					continue;
				spyre_soc_counters(e.soc, &v);
				assert_int_equal(u->instructions, insns);
			}
		/* One that stays, over and over. */
		n = 9;
		run(&e, &n, 1000);
		spyre_soc_counters(e.soc, &v);
		assert_int_equal(v.jobs, jobs + 1000);
		assert_int_equal(v.core[4].jobs, jobs + 1000);
		assert_int_equal(u->instructions, insns + 1000 * 11);
		assert_int_equal(u->bytes, bytes + 1000 * 9 * SPYRE_STICK);
		assert_int_equal(v.rd_bytes, v.port[0].bytes);
		env_free(&e);
	}
}

/* More programs than are kept decoded. */
static void test_forgotten_programs(void **state)
{
	struct spyre_soc_counters v;
	uint64_t n = 3, insns = 0;
	unsigned int i;
	struct env e;

	(void)state;
	env_init(&e, 1);
	env_map(&e, 0, 4096);
	/* Eight fill the cache; the last are old ones again. */
	for (i = 0; i < 11; i++) {
		counted(&e, (4 << 20) + i % 9 * 16);
		run(&e, &n, 1 + i % 2);
		insns += (1 + i % 2) * (3 + 3);
	}
	spyre_soc_counters(e.soc, &v);
	assert_int_equal(v.core[4].unit[SPYRE_UNIT_L3LU].instructions, insns);
	assert_int_equal(v.jobs, 16);
	spyre_soc_reset(e.soc, 0xffffffff);
	all_zero(&e);
	env_free(&e);
}

/* What does not run counts nothing; what begins to run counts as a whole, however it ends. */
static void test_ends(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct spyre_soc_job job;
	struct sums sums = { 0 };
	struct spyre_rb rb;
	uint64_t n = 5;
	struct env e;
	int pe;

	(void)state;
	env_init(&e, 1);
	env_map(&e, 0, 4096);
	pe = add(j, 3, SPYRE_UNIT_PE, 0);
	sp_vec(j, pe, SPYRE_OP_MOV, 0, F(LXLU_PE0), 0, 0, 1, 0, SPYRE_FMTS(RAW, 0, 0, 0));
	env_load_job(&e, j);
	assert_int_equal(env_run(&e, NULL, 0), SPYRE_ERR_DEADLOCK);
	counted(&e, 0);
	assert_int_equal(env_run(&e, NULL, 0), SPYRE_ERR_SYMBOLS);
	/* Prepared only, as a job that its timeout or an injected fault ends. */
	job = request(&e, &n);
	assert_true(spyre_soc_prepare(e.soc, &job, &e.time, &rb));
	expect(&e, &n, 0, &sums);
	all_zero(&e);
	e.len[0] = 0;
	assert_int_equal(env_run(&e, &n, 1), SPYRE_ERR_FAULT);
	expect(&e, &n, 1, &sums);
	check(&e, &sums);
	e.len[0] = 4096;
	/* Long enough to meet a checkpoint. */
	n = 20000;
	job = request(&e, &n);
	assert_true(spyre_soc_prepare(e.soc, &job, &e.time, &rb));
	e.stop_at = 1;
	assert_false(spyre_soc_execute(e.soc, &rb));
	e.stop_at = 0;
	assert_int_equal(rb.status, SPYRE_ERR_CANCELLED);
	expect(&e, &n, 1, &sums);
	check(&e, &sums);
	assert_int_equal(sums.rd, (5 + 20000) * SPYRE_STICK);
	env_free(&e);
}

struct reader {
	struct spyre_soc *soc;
	bool quit;
	uint64_t reads;
};

/* Each look is of one moment: whole jobs, and never fewer than before. */
static void *read_on(void *arg)
{
	struct reader *r = arg;
	struct spyre_soc_counters v;
	uint64_t jobs = 0;

	while (!__atomic_load_n(&r->quit, __ATOMIC_ACQUIRE) || !r->reads) {
		const struct spyre_unit_counters *u = &v.core[4].unit[SPYRE_UNIT_L3LU];

		spyre_soc_counters(r->soc, &v);
		if (v.jobs < jobs || v.core[4].jobs != v.jobs || u->bytes != v.rd_bytes ||
		    u->instructions != v.rd_bytes / SPYRE_STICK + 2 * v.jobs)
			return NULL;
		jobs = v.jobs;
		__atomic_add_fetch(&r->reads, 1, __ATOMIC_RELAXED);
		sched_yield();
	}
	return r;
}

static void test_reader(void **state)
{
	struct reader r = { 0 };
	struct spyre_soc_counters v;
	uint64_t n, bytes = 0;
	unsigned int i;
	pthread_t t;
	struct env e;
	void *ok;

	(void)state;
	env_init(&e, 2);
	env_map(&e, 0, 4096);
	counted(&e, 0);
	r.soc = e.soc;
	assert_int_equal(pthread_create(&t, NULL, read_on, &r), 0);
	for (i = 0; i < 2000; i++) {
		n = 1 + i * 7 % 100;
		run(&e, &n, 1);
		bytes += n * SPYRE_STICK;
	}
	__atomic_store_n(&r.quit, true, __ATOMIC_RELEASE);
	pthread_join(t, &ok);
	assert_ptr_equal(ok, &r);
	spyre_soc_counters(e.soc, &v);
	assert_int_equal(v.jobs, 2000);
	assert_int_equal(v.rd_bytes, bytes);
	env_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_profiles),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_forgotten_times),
		cmocka_unit_test(test_forgotten_programs),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_reader),
	};

	/* A test that hangs is a failed test. */
	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
