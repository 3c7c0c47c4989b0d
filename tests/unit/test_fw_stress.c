// SPDX-License-Identifier: MIT
/*
 * What only shows with two threads and time: lost wake-ups of every kind, fair turns, many queues. A
 * wait that ends by its own bound instead of by what it waited for is a failure here.
 */
#include "cardtest.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ARENA	(64u << 20)
#define DMVA	0x400000ull

static struct ct_card *card;
static uint32_t seed = 99;

static uint32_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	return seed ^= seed << 5;
}

static int setup(void **state)
{
	(void)state;
	card = ct_boot(NULL, ARENA, 8);
	return card ? 0 : -1;
}

static int setup_one_vector(void **state)
{
	(void)state;
	card = ct_boot(NULL, ARENA, 1);
	return card ? 0 : -1;
}

static int teardown(void **state)
{
	uint64_t bad = spyre_inproc_inconsistencies(card->ip);

	(void)state;
	ct_free(card);
	return bad ? -1 : 0;
}

static void spin_ns(uint64_t ns)
{
	uint64_t end = ct_now_ns() + ns;

	while (ct_now_ns() < end)
		;
}

/*
 * Submissions around the moment at which the card stops polling and asks for a doorbell. Each must be
 * seen without any further one: a lost doorbell leaves it undone for ever.
 */
static void test_event_index(void **state)
{
	struct ct_ctx *x = ct_ctx_new(card, 1);
	struct ct_queue *q = ct_queue_new(x, NULL);
	struct spyre_cb cb = ct_cb(SPYRE_CB_NOP, 0);
	uint32_t e;
	int i;

	(void)state;
	assert_non_null(q);
	for (i = 0; i < 6000; i++) {
		e = ct_put(q, &cb);
		ct_submit(q);
		assert_int_equal(ct_wait(q, e, CT_TIMEOUT_MS), 0);
		/* The window opens 50 us after the work. */
		spin_ns(30000 + rnd() % 40000);
	}
	assert_true(q->doorbells > 0);
}

/*
 * Sleeping until a queue has moved, as a driver does it: new arm value, full fence, look again, sleep on
 * the vector. The submitter runs beside it.
 */
struct sleeper {
	struct ct_queue *q;
	uint32_t vector;
	uint32_t target;	/* atomic: entries submitted */
	bool stop;
	uint64_t lost;
};

static void *submitter(void *arg)
{
	struct sleeper *s = arg;
	struct spyre_cb cb = ct_cb(SPYRE_CB_NOP, SPYRE_CB_F_INTERRUPT);
	uint32_t r = 7, i;

	for (i = 0; i < 4000; i++) {
		uint32_t e = ct_put(s->q, &cb);

		ct_submit(s->q);
		__atomic_store_n(&s->target, e + 1, __ATOMIC_RELEASE);
		r = r * 1664525 + 1013904223;
		spin_ns(r % 60000);
	}
	__atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
	return NULL;
}

static void sleep_until(struct sleeper *s, uint32_t done)
{
	struct ct_ctx *x = s->q->ctx;
	uint64_t seen;

	while ((int32_t)(ct_load(&s->q->status->done) - done) < 0) {
		seen = spyre_inproc_raised(card->ip, s->vector);
		__atomic_store_n(&x->arm->arm, x->arm->arm + 1, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if ((int32_t)(ct_load(&s->q->status->done) - done) >= 0)
			break;
		if (spyre_inproc_wait(card->ip, s->vector, seen, CT_TIMEOUT_MS) == seen) {
			s->lost++;
			break;
		}
	}
}

static void lost_interrupts(uint32_t vector)
{
	struct ct_ctx *x = ct_ctx_new(card, 1);
	struct sleeper s = { .vector = vector };
	const struct spyre_vec_event *ev = card->vec;
	struct spyre_cb nop = { .type = SPYRE_CB_NOP };
	pthread_t thread;
	uint64_t seen;
	uint32_t seq;

	assert_non_null(x);
	s.q = ct_queue_new(x, NULL);
	assert_non_null(s.q);
	assert_int_equal(pthread_create(&thread, NULL, submitter, &s), 0);
	while (!__atomic_load_n(&s.stop, __ATOMIC_ACQUIRE) && !s.lost)
		sleep_until(&s, __atomic_load_n(&s.target, __ATOMIC_ACQUIRE));
	pthread_join(thread, NULL);
	sleep_until(&s, s.target);
	assert_int_equal(s.lost, 0);
	/* A fast machine may never have let it sleep. Armed before it is submitted, work must interrupt. */
	seen = spyre_inproc_raised(card->ip, vector);
	__atomic_store_n(&x->arm->arm, x->arm->arm + 1, __ATOMIC_RELEASE);
	ct_put(s.q, &nop);
	ct_submit(s.q);
	assert_int_not_equal(spyre_inproc_wait(card->ip, vector, seen, CT_TIMEOUT_MS), seen);
	/* The ring says who: entries follow each other, arm values go up. */
	for (seq = 1; seq < 200 && ct_load(&ev[seq].seq) == seq + 1; seq++) {
		assert_int_equal(ev[seq].context, 1);
		assert_true((int32_t)(ev[seq].arm - ev[seq - 1].arm) > 0);
	}
}

static void test_lost_interrupts(void **state)
{
	(void)state;
	lost_interrupts(1);
	assert_true(spyre_inproc_raised(card->ip, 1) > 0);
}

static void test_one_vector(void **state)
{
	(void)state;
	lost_interrupts(0);
	assert_int_equal(spyre_inproc_raised(card->ip, 1), 0);
}

/* No storm: without a new arm value nothing is raised, whatever the queues do. */
static void test_no_storm(void **state)
{
	struct ct_ctx *x = ct_ctx_new(card, 1);
	struct ct_queue *q = ct_queue_new(x, NULL);
	struct spyre_cb cb = ct_cb(SPYRE_CB_NOP, SPYRE_CB_F_INTERRUPT);
	uint32_t i, e = 0;

	(void)state;
	for (i = 0; i < 20000; i++) {
		e = ct_put(q, &cb);
		ct_submit(q);
	}
	assert_int_equal(ct_wait(q, e, CT_TIMEOUT_MS), 0);
	assert_int_equal(spyre_inproc_raised(card->ip, 1), 0);
}

/* WAITs whose word a CPU stores: store, full fence, ring if parked is set. Timer polling is not needed. */
static void test_parked(void **state)
{
	struct ct_ctx *x = ct_ctx_new(card, 1);
	struct ct_queue *q = ct_queue_new(x, NULL);
	uint64_t at, i, slow = 0, t;
	uint64_t *word = ct_host(x, 4096, SPYRE_PTE_WRITE, &at);

	(void)state;
	for (i = 1; i <= 2000; i++) {
		struct spyre_cb cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, at, i);
		uint32_t e = ct_put(q, &cb);

		ct_submit(q);
		spin_ns(rnd() % 30000);
		t = ct_now_ns();
		__atomic_store_n(word, i, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (ct_load(&q->status->parked))
			ct_ring(q, q->tail);
		assert_int_equal(ct_wait(q, e, CT_TIMEOUT_MS), 0);
		if (ct_now_ns() - t > 5000000)
			slow++;
	}
	/* A busy machine may delay a few; one in four would be the timer's work. */
	assert_true(slow < 500);
}

/*
 * All that tests/formal/queue.pml has, at once: one submits NOPs and WAITs to a ring that is reused all the time,
 * one stores the words that the WAITs wait for, one sleeps until everything is done. As there, no timer helps:
 * card time stands still, so neither a parked queue nor a sweep looks by itself, and a lost wake-up is for good.
 * Responses carry their entry's cookie: one that was fetched before it was written has another.
 */
#define PROTOCOL_ENTRIES	6000u

struct protocol {
	struct sleeper s;
	uint64_t *word;
	uint64_t at;
	uint32_t wrong;
};

static void *protocol_user(void *arg)
{
	struct protocol *p = arg;
	struct ct_queue *q = p->s.q;
	const struct spyre_rb *rb;
	uint32_t i, r = 3;

	for (i = 0; i < PROTOCOL_ENTRIES; i++) {
		struct spyre_cb cb = ct_cb(SPYRE_CB_NOP, 0);

		if (i & 1)
			cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, p->at, i / 2 + 1);
		cb.flags |= SPYRE_CB_F_RESPONSE | SPYRE_CB_F_INTERRUPT;
		cb.cookie = 0xc0de00000000ull + i;
		if (i >= q->entries) {
			rb = ct_response(q, i - q->entries, CT_TIMEOUT_MS);
			if (!rb || rb->cookie != 0xc0de00000000ull + i - q->entries || rb->status)
				p->wrong++;
			if (!rb)
				break;
		}
		ct_put(q, &cb);
		r = r * 1664525 + 1013904223;
		if (r >> 30)
			ct_submit(q);
		/* A card that has nothing else to do meets the writer in the middle of its looks. */
		if (r >> 30 > 1 && ct_wait(q, i, CT_TIMEOUT_MS))
			break;
		if (!(r >> 25 & 15))
			spin_ns(r % 70000);
	}
	ct_submit(q);
	return NULL;
}

static void *protocol_writer(void *arg)
{
	struct protocol *p = arg;
	struct ct_queue *q = p->s.q;
	uint32_t i, r = 5;

	for (i = 1; i <= PROTOCOL_ENTRIES / 2; i++) {
		/* About when the card comes to the WAIT, or after it has parked. */
		while ((int32_t)(ct_load(&q->shadow->tail) - 2 * i) < 0 &&
		       !__atomic_load_n(&p->s.stop, __ATOMIC_ACQUIRE))
			sched_yield();
		r = r * 1664525 + 1013904223;
		spin_ns(r >> 28 ? (r >> 8) % 6000 : (r >> 8) % 40000);
		__atomic_store_n(p->word, i, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		/* Not ct_ring(): its count belongs to the user. */
		if (ct_load(&q->status->parked))
			spyre_card_db_write(card->card, (uint64_t)q->id * SPYRE_DB_PAGE_SIZE, 0, 4);
	}
	return NULL;
}

static void test_protocol(void **state)
{
	struct ct_queue_config cfg = { .entries = SPYRE_RING_MIN };
	struct ct_ctx *x = ct_ctx_new(card, 1);
	struct protocol p = { .s.vector = 1 };
	pthread_t user, writer;

	(void)state;
	p.s.q = ct_queue_new(x, &cfg);
	p.word = ct_host(x, 4096, SPYRE_PTE_WRITE, &p.at);
	assert_non_null(p.s.q);
	assert_non_null(p.word);
	spyre_inproc_manual_clock(card->ip);
	assert_int_equal(pthread_create(&user, NULL, protocol_user, &p), 0);
	assert_int_equal(pthread_create(&writer, NULL, protocol_writer, &p), 0);
	while (ct_load(&p.s.q->status->done) != PROTOCOL_ENTRIES && !p.s.lost)
		sleep_until(&p.s, PROTOCOL_ENTRIES);
	__atomic_store_n(&p.s.stop, true, __ATOMIC_RELEASE);
	pthread_join(user, NULL);
	pthread_join(writer, NULL);
	assert_int_equal(p.s.lost, 0);
	assert_int_equal(p.wrong, 0);
	assert_int_equal(ct_load(&p.s.q->status->error), 0);
	assert_true(spyre_inproc_raised(card->ip, 1) > 0);
}

/* Two queues throw a token to each other, each waiting for the other's signal. */
static void test_ping_pong(void **state)
{
	struct ct_ctx *x = ct_ctx_new(card, 1);
	struct ct_queue *a = ct_queue_new(x, NULL), *b = ct_queue_new(x, NULL);
	uint64_t at, i;
	uint32_t e = 0;

	(void)state;
	assert_non_null(ct_host(x, 4096, SPYRE_PTE_WRITE, &at));
	for (i = 1; i <= 5000; i++) {
		struct spyre_cb cb = ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST, at, i);

		ct_put(a, &cb);
		cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, at + 64, i);
		e = ct_put(a, &cb);
		cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, at, i);
		ct_put(b, &cb);
		cb = ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST, at + 64, i);
		ct_put(b, &cb);
		if (i % 16 == 0) {
			ct_submit(a);
			ct_submit(b);
		}
	}
	ct_submit(a);
	ct_submit(b);
	assert_int_equal(ct_wait(a, e, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_load(&a->status->error), 0);
	assert_int_equal(ct_load(&b->status->error), 0);
}

/* Everybody gets on while one context floods the card from its highest class. */
static void test_nobody_starves(void **state)
{
	struct ct_ctx *x = ct_ctx_new(card, 1), *y = ct_ctx_new(card, 2);
	struct ct_queue_config urgent = { .priority = 3, .entries = 4096 };
	struct ct_queue_config low = { .priority = 0 };
	struct ct_queue *flood[3], *meek;
	struct spyre_cb cb;
	uint32_t e = 0, i, j;
	uint64_t end;

	(void)state;
	ct_map_card(x, DMVA, ct_pages(card, 2), 2, SPYRE_PTE_WRITE);
	ct_map_card(y, DMVA, ct_pages(card, 2), 2, SPYRE_PTE_WRITE);
	for (i = 0; i < 3; i++)
		flood[i] = ct_queue_new(x, &urgent);
	meek = ct_queue_new(y, &low);
	assert_non_null(meek);
	end = ct_now_ns() + 1500000000ull;
	for (j = 0; ct_now_ns() < end && j < 50; ) {
		for (i = 0; i < 3; i++) {
			while (flood[i]->tail - ct_load(&flood[i]->status->fetched) <
			       flood[i]->entries / 2) {
				cb = i ? ct_cb(SPYRE_CB_NOP, 0) : ct_cb_fill(DMVA, 0x10000, i);
				ct_put(flood[i], &cb);
			}
			ct_submit(flood[i]);
		}
		if (!j || !ct_wait(meek, e, 0)) {
			cb = ct_cb_fill(DMVA, 0x10000, 1);
			e = ct_put(meek, &cb);
			ct_submit(meek);
			j++;
		}
	}
	assert_int_equal(ct_wait(meek, e, CT_TIMEOUT_MS), 0);
	assert_true(j > 5);
}

/* Many queues of many contexts, from two threads, with mailbox traffic between. */
#define MANY	96

static struct ct_queue *many[MANY];

static void *many_half(void *arg)
{
	uint32_t half = (uint32_t)(uintptr_t)arg, i, round, e[MANY] = { 0 };
	struct spyre_cb cb = ct_cb(SPYRE_CB_NOP, SPYRE_CB_F_RESPONSE);

	for (round = 0; round < 30; round++) {
		for (i = half; i < MANY; i += 2) {
			uint32_t n;

			for (n = 0; n < 1 + (i + round) % 60; n++)
				e[i] = ct_put(many[i], &cb);
			ct_submit(many[i]);
		}
		for (i = half; i < MANY; i += 2) {
			if (ct_wait(many[i], e[i], CT_TIMEOUT_MS) ||
			    !ct_response(many[i], e[i], CT_TIMEOUT_MS))
				return (void *)1;
		}
	}
	return NULL;
}

static void test_many_queues(void **state)
{
	struct ct_queue_config cfg = { .entries = 64 };
	pthread_t thread[2];
	struct ct_ctx *x[8];
	void *failed[2];
	uint32_t i;

	(void)state;
	for (i = 0; i < 8; i++) {
		x[i] = ct_ctx_new(card, 1 + i * 30);
		assert_non_null(x[i]);
	}
	for (i = 0; i < MANY; i++) {
		cfg.priority = i % 4;
		many[i] = ct_queue_new(x[i % 8], &cfg);
		assert_non_null(many[i]);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, many_half, (void *)(uintptr_t)i), 0);
	for (i = 0; i < 100; i++) {
		assert_int_equal(ct_call(card, SPYRE_MSG_GET_TELEMETRY, NULL, 0, NULL), SPYRE_MSG_OK);
		assert_int_equal(ct_call_id(card, SPYRE_MSG_QUEUE_PRIORITY, many[i % MANY]->id, i % 4),
				 SPYRE_MSG_OK);
		assert_int_equal(ct_call_id(card, SPYRE_MSG_CTX_INVALIDATE, x[i % 8]->id, 0),
				 SPYRE_MSG_OK);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i], &failed[i]);
		assert_null(failed[i]);
	}
	for (i = 0; i < MANY; i++)
		assert_int_equal(ct_queue_free(many[i]), SPYRE_MSG_OK);
	for (i = 0; i < 8; i++)
		assert_int_equal(ct_ctx_free(x[i]), SPYRE_MSG_OK);
}

/* Milliseconds of processor time that the whole process used in half a second. */
static uint64_t busy_ms(void)
{
	struct timespec from, to;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	usleep(500000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	return (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
}

/* An idle card sleeps, and a parked WAIT costs little: it looks every 10 ms. */
static void test_idle(void **state)
{
	struct ct_ctx *x = ct_ctx_new(card, 1);
	struct ct_queue *q = ct_queue_new(x, NULL);
	struct spyre_cb cb = ct_cb(SPYRE_CB_NOP, 0);

	(void)state;
	assert_int_equal(ct_run(q, &cb), SPYRE_OK);
	usleep(100000);
	assert_in_range(busy_ms(), 0, 10);
	cb = ct_cb_sync(SPYRE_CB_WAIT, 0, DMVA, 1);
	ct_map_card(x, DMVA, ct_pages(card, 1), 1, SPYRE_PTE_WRITE);
	ct_put(q, &cb);
	ct_submit(q);
	usleep(100000);
	assert_int_equal(ct_load(&q->status->parked), 1);
	assert_in_range(busy_ms(), 0, 50);
	assert_int_equal(ct_queue_free(q), SPYRE_MSG_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_event_index, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_interrupts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_vector, setup_one_vector, teardown),
		cmocka_unit_test_setup_teardown(test_no_storm, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_protocol, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ping_pong, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody_starves, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_queues, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
