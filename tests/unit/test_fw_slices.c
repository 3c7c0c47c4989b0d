// SPDX-License-Identifier: MIT
/*
 * A card that repeats exactly (config.sliced): the real firmware, copies, a product over all cores, an error and
 * its recovery, twice. All that the host can see, interrupts included, comes at the same time of its clock, with
 * other numbers of threads and on a host that is busy with something else.
 */
#include "cardtest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "spyregen.h"
#include "spyreprog.h"

#define DMVA	0x400000ull
#define SEEN	32768u

struct record {
	uint64_t seen[SEEN];
	unsigned int n;
};

static void see(struct record *r, uint64_t v)
{
	assert_true(r->n < SEEN);
	r->seen[r->n++] = v;
}

/* Everything that shows time: counter, instructions, interrupts, registers. */
static void look(struct record *r, struct ct_card *c)
{
	struct spyre_counter counter[1024];
	unsigned int v;
	size_t n, i;

	see(r, ct_reg(c, SPYRE_REG_TIME));
	see(r, ct_reg(c, SPYRE_REG_HEARTBEAT));
	for (v = 0; v < SPYRE_MSI_VECTORS; v++)
		see(r, spyre_inproc_raised(c->ip, v));
	n = spyre_card_counters(c->card, counter, 1024);
	assert_true(n <= 1024);
	for (i = 0; i < n; i++)
		see(r, counter[i].value);
}

static void response(struct record *r, struct ct_queue *q, uint32_t e, enum spyre_status status)
{
	const struct spyre_rb *rb = ct_response(q, e, CT_TIMEOUT_MS);
	unsigned int i;

	assert_non_null(rb);
	assert_int_equal(rb->status, status);
	for (i = 0; i < 5; i++)
		see(r, rb->ts[i]);
	see(r, rb->cycles);
	see(r, rb->power);
}

static void script(struct record *r, unsigned int threads)
{
	struct spyre_card_config cfg = {
		.memory = 1ull << 30, .aperture = 1ull << 31, .mem_fd = -1, .threads = threads, .sliced = true,
	};
	struct spyregen_matmul mm = { .m = 96, .n = 192, .k = 320, .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16 };
	struct ct_queue_config qc = { .entries = 256 };
	uint64_t host_at, *symbols;
	struct spyreprog_job *job;
	struct ct_card *card;
	struct ct_queue *q;
	struct ct_ctx *ctx;
	struct spyre_cb cb;
	uint32_t e, i;
	uint8_t *host;
	void *container;
	char err[200];
	size_t size;

	card = ct_boot(&cfg, 64 << 20, 8);
	assert_non_null(card);
	look(r, card);
	ctx = ct_ctx_new(card, 1);
	assert_non_null(ctx);
	q = ct_queue_new(ctx, &qc);
	assert_non_null(q);
	host = ct_host(ctx, 8 << 20, SPYRE_PTE_WRITE, &host_at);
	assert_non_null(host);
	ct_map_card(ctx, DMVA, ct_pages(card, 8), 8, SPYRE_PTE_WRITE);
	ct_map_card(ctx, SPYRE_PROGRAM_BASE, ct_pages(card, 1), 1, SPYRE_PTE_WRITE);
	look(r, card);

	job = spyregen_matmul(&mm, err);
	assert_non_null(job);
	assert_int_equal(spyreprog_job_finish(job, &container, &size), 0);
	spyreprog_job_free(job);
	memcpy(host, container, size);
	free(container);
	symbols = (void *)(host + (6 << 20));
	for (i = 0; i < 3; i++)
		symbols[i] = DMVA + i * (2 << 20);
	cb = ct_cb_copy(SPYRE_CB_DMAI, SPYRE_PROGRAM_BASE, host_at, (size + 127) & ~127ull);
	assert_int_equal(ct_run(q, &cb), SPYRE_OK);
	look(r, card);
	for (i = 0; i < 5; i++) {
		cb = ct_cb_copy(SPYRE_CB_DMAI, DMVA, host_at + (1 << 20), 1 << 20);
		ct_put(q, &cb);
		cb = ct_cb(SPYRE_CB_COMPUTE, SPYRE_CB_F_SYM_HOST | SPYRE_CB_F_BARRIER | SPYRE_CB_F_RESPONSE | SPYRE_CB_F_INTERRUPT);
		cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE;
		cb.u.compute.symbols = host_at + (6 << 20);
		cb.u.compute.nsymbols = 3;
		e = ct_put(q, &cb);
		ct_submit(q);
		spyre_inproc_advance(card->ip, 7001 * (i + 1));
		look(r, card);
		response(r, q, e, SPYRE_OK);
		look(r, card);
	}
	/* Too few symbols. */
	cb.u.compute.nsymbols = 2;
	e = ct_put(q, &cb);
	ct_submit(q);
	response(r, q, e, SPYRE_ERR_SYMBOLS);
	look(r, card);
	assert_int_equal(ct_wait_state(q, SPYRE_QUEUE_ERROR, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_call_id(card, SPYRE_MSG_QUEUE_RESET, q->id, 0), SPYRE_MSG_OK);
	look(r, card);
	/* A second with nothing to do. */
	spyre_inproc_advance(card->ip, 1000000000);
	look(r, card);
	assert_int_equal(spyre_inproc_inconsistencies(card->ip), 0);
	ct_free(card);
}

static bool stop;

/* Takes the processor at odd times. */
static void *disturb(void *arg)
{
	struct timespec ts = { 0 };
	uint32_t seed = 12345;
	volatile uint32_t sink = 0;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint32_t i;

		seed = seed * 1664525 + 1013904223;
		for (i = 0; i < seed >> 12; i++)
			sink += i;
		ts.tv_nsec = seed >> 16;
		nanosleep(&ts, NULL);
	}
	return NULL;
}

static void test_repeats(void **state)
{
	static struct record first, again;
	pthread_t t[2];
	unsigned int i, run;

	(void)state;
	script(&first, 1);
	assert_true(first.n > 100);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, disturb, NULL), 0);
	for (run = 2; run < 5; run++) {
		again.n = 0;
		script(&again, run);
		assert_int_equal(again.n, first.n);
		for (i = 0; i < first.n; i++)
			if (again.seen[i] != first.seen[i])
				fail_msg("with %u threads, value %u is %llu, before %llu", run, i,
					 (unsigned long long)again.seen[i], (unsigned long long)first.seen[i]);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

static void test_refuses(void **state)
{
	struct spyre_card_config cfg = {
		.memory = 1ull << 30, .aperture = 1ull << 31, .mem_fd = -1, .sliced = true, .timing_off = true,
	};
	char text[256];

	(void)state;
	assert_non_null(spyre_card_config_check(&cfg, text, sizeof(text)));
	assert_non_null(strstr(text, "timing"));
	cfg.timing_off = false;
	assert_null(spyre_card_config_check(&cfg, text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repeats),
		cmocka_unit_test(test_refuses),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
