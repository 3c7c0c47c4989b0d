// SPDX-License-Identifier: MIT
/*
 * The firmware's two bounds where they are tightest: instructions of one turn of its loop, counted by the card,
 * and bytes of stack, in a RAM that was painted before it ran. The longest turn is what everybody waits for.
 * The figures are printed; instructions do not depend on the machine.
 */
#include "cardtest.h"
#include "counter.h"
#include "card.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ARENA		(128u << 20)
#define STACK_BYTES	16384u
#define PAINT		0xa5c3960fu
#define DMVA		0x400000ull
#define MANY		256u

static struct ct_card *card;
static uint64_t limit;		/* of the turns of this test */

static int setup(void **state)
{
	(void)state;
	limit = CT_TURN_MAX;
	card = ct_boot(NULL, ARENA, 8);
	return card ? 0 : -1;
}

static uint64_t counter(const char *name)
{
	uint64_t v = 0;

	if (!find_counter(card->card, name, &v))
		fail_msg("no counter %s", name);
	return v;
}

/* Every test ends by this: its longest turn, and that nothing was found inconsistent. */
static int teardown(void **state)
{
	uint64_t turns = counter("mcu-turns"), longest = counter("mcu-turn-max");
	uint64_t bad = spyre_inproc_inconsistencies(card->ip);

	(void)state;
	ct_free(card);
	printf("# %llu turns, the longest of %llu instructions, at most %llu\n", (unsigned long long)turns,
	       (unsigned long long)longest, (unsigned long long)limit);
	if (!turns || longest > limit)
		return -1;
	return bad ? -1 : 0;
}

static struct ct_queue *queue(struct ct_ctx *x)
{
	struct ct_queue_config cfg = { .entries = 64 };
	struct ct_queue *q = ct_queue_new(x, &cfg);

	assert_non_null(q);
	return q;
}

/* The counter itself: a turn is counted, and the longest covers the work of a full batch. */
static void test_counted(void **state)
{
	struct ct_queue *q = queue(ct_ctx_new(card, 1));
	struct spyre_cb cb = ct_cb(SPYRE_CB_NOP, SPYRE_CB_F_RESPONSE);
	uint64_t turns = counter("mcu-turns");
	uint32_t e = 0, i;

	(void)state;
	for (i = 0; i < 60; i++)
		e = ct_put(q, &cb);
	ct_submit(q);
	assert_int_equal(ct_wait(q, e, CT_TIMEOUT_MS), 0);
	assert_true(counter("mcu-turns") > turns);
	/* 28 entries at the least are of one batch. */
	assert_true(counter("mcu-turn-max") > 28 * 100);
}

/* Full batches of the dearest control blocks on many queues of many contexts, and the mailbox beside. */
static void test_flood(void **state)
{
	struct ct_queue *q[32];
	uint64_t at[32];
	uint32_t e[32] = { 0 }, i, j, round;
	struct spyre_cb cb;
	struct ct_ctx *x;

	(void)state;
	for (i = 0; i < 32; i++) {
		x = ct_ctx_new(card, 1 + i);
		assert_non_null(x);
		q[i] = queue(x);
		assert_non_null(ct_host(x, 4096, SPYRE_PTE_WRITE, &at[i]));
	}
	assert_int_equal(ct_call_id(card, SPYRE_MSG_SET_LOG_LEVEL, 0, 3), SPYRE_MSG_OK);
	for (round = 0; round < 4; round++) {
		for (j = 0; j < 32; j++) {
			for (i = 0; i < 32; i++) {
				cb = ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST | SPYRE_CB_F_RESPONSE |
						SPYRE_CB_F_INTERRUPT, at[i], j);
				e[i] = ct_put(q[i], &cb);
			}
		}
		for (i = 0; i < 32; i++)
			ct_submit(q[i]);
		for (i = 0; i < 8; i++)
			ct_send(card, i & 1 ? SPYRE_MSG_GET_TELEMETRY : 99, NULL, 0);
		for (i = 0; i < 32; i++)
			assert_int_equal(ct_wait(q[i], e[i], CT_TIMEOUT_MS), 0);
	}
	for (i = 0; i < 32; i++)
		assert_int_equal(ct_load(&q[i]->status->error), 0);
	/* The log of all of them. */
	assert_int_equal(ct_call_id(card, SPYRE_MSG_DUMP_STATE, 0xffffffffu, 0), SPYRE_MSG_OK);
	limit = 2 * CT_TURN_MAX;	/* DUMP_STATE: a line for each of 64 queues */
}

/*
 * One context parks many queues and signals a word that none of them waits for, from another one: each signal
 * may look at so many of them and no more. The next control block of everybody else waits for that.
 */
static void test_signals_and_parked(void **state)
{
	struct ct_ctx *x = ct_ctx_new(card, 1), *y = ct_ctx_new(card, 200);
	struct ct_queue *parked[MANY], *q, *other;
	struct spyre_cb cb;
	uint32_t i, e = 0;
	uint64_t at;

	(void)state;
	q = queue(x);
	other = queue(y);
	assert_non_null(ct_host(x, 4096, SPYRE_PTE_WRITE, &at));
	for (i = 0; i < MANY; i++) {
		parked[i] = queue(x);
		cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, at, 1);
		ct_put(parked[i], &cb);
		ct_submit(parked[i]);
	}
	for (i = 0; i < MANY; i++) {
		struct ct_queue *p = parked[i];
		uint64_t end = ct_now_ns() + CT_TIMEOUT_MS * 1000000ull;

		while (!ct_load(&p->status->parked) && ct_now_ns() < end)
			usleep(100);
		assert_int_equal(ct_load(&p->status->parked), 1);
	}
	for (i = 0; i < 640; i++) {
		cb = ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST, at + 64, i);
		e = ct_put(q, &cb);
		if (i % 32 == 31)
			ct_submit(q);
	}
	ct_submit(q);
	assert_int_equal(ct_wait(q, e, CT_TIMEOUT_MS), 0);
	/* Doorbells of every page of the context at once. */
	for (i = 0; i < MANY; i++)
		ct_ring(parked[i], 1);
	cb = ct_cb(SPYRE_CB_NOP, 0);
	assert_int_equal(ct_run(other, &cb), SPYRE_OK);
	/* And they do wake up, all of them, by one signal. */
	cb = ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST, at, 1);
	e = ct_put(q, &cb);
	ct_submit(q);
	for (i = 0; i < MANY; i++)
		assert_int_equal(ct_wait(parked[i], 0, CT_TIMEOUT_MS), 0);
}

/* A fault makes all queues of its context fail in one turn: so much for each of them. */
static void test_context_fault(void **state)
{
	struct ct_ctx *x = ct_ctx_new(card, 1);
	struct ct_queue *q[MANY];
	struct spyre_cb cb;
	uint32_t i;

	(void)state;
	for (i = 0; i < MANY; i++)
		q[i] = queue(x);
	cb = ct_cb_sync(SPYRE_CB_SIGNAL, 0, DMVA, 1);
	assert_int_equal(ct_run(q[0], &cb), SPYRE_ERR_FAULT);
	for (i = 0; i < MANY; i++)
		assert_int_equal(ct_wait_state(q[i], SPYRE_QUEUE_ERROR, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_call_id(card, SPYRE_MSG_CTX_RESET, 1, 0), SPYRE_MSG_OK);
	limit = CT_TURN_MAX + MANY * CT_TURN_QUEUE;
	/* Else the allowance is no bound. */
	assert_true(counter("mcu-turn-max") > MANY * 100);
}

/* Bytes of the stack that are not painted any more. */
static uint32_t high_water(const uint8_t *ram)
{
	uint32_t words[STACK_BYTES / 4], i;

	memcpy(words, ram + SPYRE_MCU_RAM_SIZE - STACK_BYTES, STACK_BYTES);
	/* The lowest word is the mark of main.c. */
	for (i = 1; i < STACK_BYTES / 4 && words[i] == PAINT; i++)
		;
	return STACK_BYTES - 4 * i;
}

static void paint(uint8_t *ram, uint32_t below)
{
	uint32_t i, word = PAINT;

	for (i = SPYRE_MCU_RAM_SIZE - STACK_BYTES + 4; i < below; i += 4)
		memcpy(ram + i, &word, 4);
}

static void static_bound(uint32_t *used, uint32_t *size)
{
	FILE *f = fopen(FW_STACK, "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "main %u %u", used, size), 2);
	fclose(f);
}

static void test_stack(void **state)
{
	struct ct_ctx *x = ct_ctx_new(card, 1);
	struct ct_queue *q = queue(x);
	struct mcu *m = &card->card->mcu;
	uint32_t used, size, high, i, sp;
	struct spyre_cb cb;

	(void)state;
	static_bound(&used, &size);
	assert_int_equal(size, STACK_BYTES - 4);
	/* The core must not run while its stack is painted: parked, then asked to go on. */
	mcu_request(card->card, REQ_GDB);
	for (i = 0; i < 2000; i++) {
		pthread_mutex_lock(&m->lock);
		sp = m->halted ? m->x[2] : 0;
		pthread_mutex_unlock(&m->lock);
		if (sp)
			break;
		usleep(1000);
	}
	assert_in_range(sp, SPYRE_MCU_RAM_BASE + SPYRE_MCU_RAM_SIZE - used, SPYRE_MCU_RAM_BASE + SPYRE_MCU_RAM_SIZE);
	paint(m->ram, sp - SPYRE_MCU_RAM_BASE);
	pthread_mutex_lock(&m->lock);
	m->halted = false;
	pthread_cond_broadcast(&m->cond);
	pthread_mutex_unlock(&m->lock);

	/* Commands that log, events, failing control blocks, thermal events, and the way down. */
	assert_int_equal(ct_call_id(card, SPYRE_MSG_SET_LOG_LEVEL, 0, 3), SPYRE_MSG_OK);
	assert_int_equal(ct_call_id(card, 77, 0, 0), SPYRE_MSG_ERR_TYPE);
	assert_int_equal(ct_call_id(card, SPYRE_MSG_DUMP_STATE, 0xffffffffu, 0), SPYRE_MSG_OK);
	cb = ct_cb_sync(SPYRE_CB_SIGNAL, 0, DMVA, 1);
	assert_int_equal(ct_run(q, &cb), SPYRE_ERR_FAULT);
	assert_int_equal(ct_call_id(card, SPYRE_MSG_QUEUE_RESET, q->id, 0), SPYRE_MSG_OK);
	cb = ct_cb_copy(SPYRE_CB_DMAI, DMVA, 0, 128);
	assert_int_equal(ct_run(q, &cb), SPYRE_ERR_FAULT);
	assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_OVERTEMP, 200000), 0);
	assert_int_equal(ct_call(card, SPYRE_MSG_GET_TELEMETRY, NULL, 0, NULL), SPYRE_MSG_OK);
	assert_int_equal(ct_call(card, SPYRE_MSG_SHUTDOWN, NULL, 0, NULL), SPYRE_MSG_OK);

	high = high_water(m->ram);
	printf("# stack: %u bytes used, %u at most by the call graph, %u there are\n", high, used, size);
	/* Within the bound, and so near that the bound is of the same program. */
	assert_in_range(high, used / 2, used);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signals_and_parked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_context_fault, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stack, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
