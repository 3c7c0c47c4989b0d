/* SPDX-License-Identifier: MIT */
/* The debugger's stub, spoken to in its own protocol. */
#include <pthread.h>

#include "model_util.h"

/* What the stub sent, acknowledgements left out. The core's thread sends, too. */
struct peer {
	struct fix *f;
	pthread_mutex_t lock;
	char got[8192];
	size_t len;
	unsigned int acks, naks;
};

static void from_stub(void *opaque, const uint8_t *data, size_t len)
{
	struct peer *p = opaque;

	pthread_mutex_lock(&p->lock);
	for (; len; len--, data++) {
		if (*data == '+' && !p->len)
			p->acks++;
		else if (*data == '-' && !p->len)
			p->naks++;
		else if (p->len < sizeof(p->got) - 1)
			p->got[p->len++] = *data;
	}
	pthread_mutex_unlock(&p->lock);
}

static void raw(struct peer *p, const char *data, size_t len)
{
	spyre_card_gdb_receive(p->f->card, (const uint8_t *)data, len, from_stub, p);
}

static void put(struct peer *p, const char *cmd)
{
	char buf[4200];
	uint8_t sum = 0;
	const char *s;

	pthread_mutex_lock(&p->lock);
	p->len = 0;
	pthread_mutex_unlock(&p->lock);
	for (s = cmd; *s; s++)
		sum += *s;
	raw(p, buf, sprintf(buf, "$%s#%02x", cmd, sum));
}

static bool complete(struct peer *p)
{
	bool ret;

	pthread_mutex_lock(&p->lock);
	ret = p->len >= 4 && p->got[p->len - 3] == '#';
	pthread_mutex_unlock(&p->lock);
	return ret;
}

/* The next packet's text. */
static const char *answer(struct peer *p)
{
	unsigned int sum = 0, want;
	size_t i;

	WAIT_FOR(complete(p));
	p->got[p->len] = 0;
	assert_int_equal(p->got[0], '$');
	assert_int_equal(sscanf(p->got + p->len - 2, "%2x", &want), 1);
	for (i = 1; i < p->len - 3; i++)
		sum += (uint8_t)p->got[i];
	assert_int_equal(sum & 0xff, want);
	p->got[p->len - 3] = 0;
	return p->got + 1;
}

static void expect(struct peer *p, const char *cmd, const char *want)
{
	put(p, cmd);
	assert_string_equal(answer(p), want);
}

static uint32_t reg_get(struct peer *p, unsigned int n)
{
	char cmd[16];
	unsigned int v;

	sprintf(cmd, "p%x", n);
	put(p, cmd);
	assert_int_equal(sscanf(answer(p), "%8x", &v), 1);
	return __builtin_bswap32(v);
}

static void test_session(void **state)
{
	struct peer p = { .f = *state, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct rv prog = { .n = 0 };
	unsigned int loop, func;
	char cmd[64];
	uint32_t a, b;

	/* A loop that counts in a0 and calls a function that doubles into a1. */
	rv_put(&prog, ADDI(A0, ZERO, 0));
	loop = prog.n;
	rv_put(&prog, ADDI(A0, A0, 1));
	rv_put(&prog, rv_jal(RA, 8));
	rv_put(&prog, rv_jal(ZERO, 4 * ((int)loop - (int)prog.n)));
	func = prog.n;
	rv_put(&prog, ADD(A1, A0, A0));
	rv_put(&prog, JALR(ZERO, RA, 0));
	assert_int_equal(rv_boot(p.f->card, &prog), SPYRE_BOOT_RUNNING);

	/* A running core halts; its reply comes when it does. */
	expect(&p, "?", "S05");
	put(&p, "qSupported:multiprocess+");
	assert_non_null(strstr(answer(&p), "qXfer:features:read+"));
	put(&p, "qXfer:features:read:target.xml:0,fff");
	assert_non_null(strstr(answer(&p), "riscv:rv32"));
	expect(&p, "Hg0", "OK");
	expect(&p, "vMustReplyEmpty", "");
	a = reg_get(&p, 32);
	assert_in_range(a, RV_ENTRY, RV_ENTRY + 4 * prog.n);
	a = reg_get(&p, A0);
	usleep(5000);
	assert_int_equal(reg_get(&p, A0), a);

	/* Breakpoint in the function, hit twice; one round of the loop in between. */
	sprintf(cmd, "Z0,%x,4", RV_ENTRY + 4 * func);
	expect(&p, cmd, "OK");
	put(&p, "c");
	assert_string_equal(answer(&p), "S05");
	assert_int_equal(reg_get(&p, 32), RV_ENTRY + 4 * func);
	a = reg_get(&p, A0);
	put(&p, "c");
	assert_string_equal(answer(&p), "S05");
	assert_int_equal(reg_get(&p, 32), RV_ENTRY + 4 * func);
	assert_int_equal(reg_get(&p, A0), a + 1);
	/* Steps: through the return, the jump back, and into the call again. */
	expect(&p, "s", "S05");
	assert_int_equal(reg_get(&p, 32), RV_ENTRY + 4 * func + 4);
	assert_int_equal(reg_get(&p, A1), 2 * (a + 1));
	expect(&p, "s", "S05");
	assert_int_equal(reg_get(&p, 32), RV_ENTRY + 4 * (loop + 2));
	expect(&p, "s", "S05");
	assert_int_equal(reg_get(&p, 32), RV_ENTRY + 4 * loop);
	/* Registers and memory can be changed: a0, and the loop's increment. */
	expect(&p, "Pa=00100000", "OK");
	sprintf(cmd, "M%x,4:", RV_ENTRY + 4 * loop);
	a = __builtin_bswap32(ADDI(A0, A0, 5));
	sprintf(cmd + strlen(cmd), "%08x", a);
	expect(&p, cmd, "OK");
	sprintf(cmd, "m%x,4", RV_ENTRY + 4 * loop);
	put(&p, cmd);
	assert_int_equal(sscanf(answer(&p), "%8x", &b), 1);
	assert_int_equal(a, b);
	put(&p, "c");
	assert_string_equal(answer(&p), "S05");
	assert_int_equal(reg_get(&p, A0), 0x1000 + 5);
	/* Memory that is none; broken packets; a packet whose sum is wrong. */
	expect(&p, "m20000000,4", "E14");
	expect(&p, "mzz", "E01");
	expect(&p, "p99", "E01");
	expect(&p, "P99=0", "E01");
	p.len = 0;
	raw(&p, "$g#00", 5);
	assert_int_equal(p.naks, 1);
	/* Without the breakpoint it runs on until it is interrupted. */
	sprintf(cmd, "z0,%x,4", RV_ENTRY + 4 * func);
	expect(&p, cmd, "OK");
	a = reg_get(&p, A0);
	put(&p, "c");
	usleep(5000);
	assert_false(complete(&p));
	expect(&p, "g", "E01");
	p.len = 0;
	raw(&p, "\x03", 1);
	assert_string_equal(answer(&p), "S05");
	assert_true(reg_get(&p, A0) > a + 100);
	expect(&p, "D", "OK");
	/* Detached, the core runs, and stops and starts as always. */
	stop_core(p.f);
	assert_int_equal(rv_boot(p.f->card, &prog), SPYRE_BOOT_RUNNING);
	stop_core(p.f);
	pthread_mutex_destroy(&p.lock);
}

/* A debugger that was there first sees the first instruction. */
static void test_from_the_start(void **state)
{
	struct peer p = { .f = *state, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct rv prog = { .n = 0 };

	rv_put(&prog, ADDI(A0, ZERO, 7));
	rv_put(&prog, EBREAK);
	rv_put(&prog, rv_jal(ZERO, 0));
	expect(&p, "?", "S05");
	assert_int_equal(rv_boot(p.f->card, &prog), SPYRE_BOOT_RUNNING);
	usleep(5000);
	assert_int_equal(reg_get(&p, 32), RV_ENTRY);
	assert_int_equal(reg_get(&p, A0), 0);
	/* With a debugger, ebreak is for it. */
	put(&p, "c");
	assert_string_equal(answer(&p), "S05");
	assert_int_equal(reg_get(&p, 32), RV_ENTRY + 4);
	assert_int_equal(reg_get(&p, A0), 7);
	/* A reset while it is halted. */
	spyre_card_reset(p.f->card, SPYRE_RESET_FLR);
	expect(&p, "D", "OK");
	pthread_mutex_destroy(&p.lock);
}

static void test_noise(void **state)
{
	struct peer p = { .f = *state, .lock = PTHREAD_MUTEX_INITIALIZER };
	uint64_t seed = 4711;
	unsigned int i, j;

	for (i = 0; i < 20000; i++) {
		static const char letters[] = "gGpPmMcszZqHTDk?0123456789abcdef,:=;";
		char cmd[40];

		for (j = 0; j < rnd(&seed) % 30; j++)
			cmd[j] = letters[rnd(&seed) % (sizeof(letters) - 1)];
		cmd[j] = 0;
		put(&p, cmd);
	}
	pthread_mutex_destroy(&p.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup_card, teardown_card)
		T(test_session),
		T(test_from_the_start),
		T(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
