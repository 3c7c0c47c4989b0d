// SPDX-License-Identifier: MIT
/*
 * Programs on the cores, started by the real firmware: results, order against copies, and every way in
 * which a job ends badly, with its response block and RAS records. Then faults of the hardware.
 */
#include "cardtest.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <spyre/mcu.h>

#include "../jobs.h"
#include "spyregen.h"
#include "spyreprog.h"

#define DMVA	0x400000ull

static const struct spyre_card_config *config;	/* of the next setup(), NULL: the default */
static struct ct_card *card;
static struct ct_ctx *ctx;
static struct ct_queue *queue;
static uint64_t host_at, out_at;
static uint8_t *host, *out;

static int setup(void **state)
{
	struct ct_queue_config cfg = { .entries = 256 };

	(void)state;
	card = ct_boot(config, 64 << 20, 8);
	ctx = card ? ct_ctx_new(card, 1) : NULL;
	queue = ctx ? ct_queue_new(ctx, &cfg) : NULL;
	if (!queue)
		return -1;
	host = ct_host(ctx, 8 << 20, 0, &host_at);
	out = ct_host(ctx, 4 << 20, SPYRE_PTE_WRITE, &out_at);
	ct_map_card(ctx, DMVA, ct_pages(card, 8), 8, SPYRE_PTE_WRITE);
	ct_map_card(ctx, SPYRE_PROGRAM_BASE, ct_pages(card, 1), 1, SPYRE_PTE_WRITE);
	return host && out ? 0 : -1;
}

static int teardown(void **state)
{
	uint64_t bad = spyre_inproc_inconsistencies(card->ip);

	(void)state;
	ct_free(card);
	return bad ? -1 : 0;
}

static uint32_t put(struct spyre_cb cb, uint16_t flags)
{
	cb.flags |= flags;
	return ct_put(queue, &cb);
}

static struct spyre_cb compute(uint64_t bootaddr, uint64_t symbols, uint32_t nsymbols)
{
	struct spyre_cb cb = ct_cb(SPYRE_CB_COMPUTE, nsymbols ? SPYRE_CB_F_SYM_HOST : 0);

	cb.u.compute.bootaddr = bootaddr;
	cb.u.compute.symbols = nsymbols ? symbols : 0;
	cb.u.compute.nsymbols = nsymbols;
	return cb;
}

/* Copies the start of the host buffer to the card. */
static void copy_in(uint64_t dmva, uint64_t bytes)
{
	struct spyre_cb cb = ct_cb_copy(SPYRE_CB_DMAI, dmva, host_at, bytes);

	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
}

/* Copies a job to the program segment, and frees it. */
static void load(struct spyreprog_job *job)
{
	void *container;
	size_t size;

	if (spyreprog_job_finish(job, &container, &size))
		fail_msg("%s", spyreprog_job_error(job));
	spyreprog_job_free(job);
	memcpy(host, container, size);
	free(container);
	copy_in(SPYRE_PROGRAM_BASE, (size + 127) & ~127ull);
}

/* Submits a control block that asks for a response and waits for that. */
static const struct spyre_rb *respond(struct ct_queue *q, const struct spyre_cb *cb)
{
	uint32_t e = ct_put(q, cb);
	const struct spyre_rb *rb;

	ct_submit(q);
	rb = ct_response(q, e, CT_TIMEOUT_MS);
	assert_non_null(rb);
	return rb;
}

/* The job that was loaded, without symbols. */
static const struct spyre_rb *run(void)
{
	struct spyre_cb cb = compute(SPYRE_PROGRAM_BASE, 0, 0);

	return respond(queue, &cb);
}

static void reset(void)
{
	assert_int_equal(ct_wait_state(queue, SPYRE_QUEUE_ERROR, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_call_id(card, SPYRE_MSG_QUEUE_RESET, queue->id, 0), SPYRE_MSG_OK);
	queue->tail = ct_load(&queue->status->fetched);
	queue->rung = queue->tail;
}

/* Copies, a product over all cores, copies back: one submission, ordered by barriers alone. */
static void test_matmul(void **state)
{
	enum { M = 96, N = 192, K = 320 };
	struct spyregen_matmul mm = { .m = M, .n = N, .k = K, .in = SPYRE_SEN169_FP16,
				      .out = SPYRE_SEN169_FP16, .bias = false };
	static float a[M * K], b[K * N], want[M * N], got[M * N];
	uint64_t ab = spyregen_bytes(SPYRE_SEN169_FP16, M, K);
	uint64_t bb = spyregen_weight_bytes(SPYRE_SEN169_FP16, K, N);
	uint64_t cb = spyregen_bytes(SPYRE_SEN169_FP16, M, N);
	uint64_t at = 1 << 20, a_card = DMVA, b_card = DMVA + (2 << 20), c_card = DMVA + (4 << 20);
	uint64_t *symbols = (void *)(host + (6 << 20));
	const struct spyre_rb *rb;
	struct spyreprog_job *job;
	void *container;
	char err[200];
	uint32_t e, i;
	size_t size;

	(void)state;
	for (i = 0; i < M * K; i++)
		a[i] = (float)((int)(i * 7 % 31) - 15) / 16;
	for (i = 0; i < K * N; i++)
		b[i] = (float)((int)(i * 5 % 29) - 14) / 8;
	job = spyregen_matmul(&mm, err);
	if (!job)
		fail_msg("%s", err);
	assert_int_equal(spyreprog_job_finish(job, &container, &size), 0);
	spyreprog_job_free(job);
	assert_true(size < at);
	memcpy(host, container, size);
	free(container);
	spyregen_pack(host + at, SPYRE_SEN169_FP16, a, M, K, K);
	spyregen_pack_weights(host + at + ab, SPYRE_SEN169_FP16, b, K, N, N);
	symbols[0] = a_card;
	symbols[1] = b_card;
	symbols[2] = c_card;
	put(ct_cb_copy(SPYRE_CB_DMAI, SPYRE_PROGRAM_BASE, host_at, (size + 127) & ~127ull), 0);
	put(ct_cb_copy(SPYRE_CB_DMAI, a_card, host_at + at, ab), 0);
	put(ct_cb_copy(SPYRE_CB_DMAI, b_card, host_at + at + ab, bb), 0);
	e = put(compute(SPYRE_PROGRAM_BASE, host_at + (6 << 20), 3),
		SPYRE_CB_F_BARRIER | SPYRE_CB_F_RESPONSE);
	put(ct_cb_copy(SPYRE_CB_DMAO, out_at, c_card, cb), SPYRE_CB_F_BARRIER);
	put(ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST, out_at + (2 << 20), 42), SPYRE_CB_F_INTERRUPT);
	ct_submit(queue);
	assert_int_equal(ct_wait(queue, e + 2, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_load64((uint64_t *)(void *)(out + (2 << 20))), 42);
	rb = ct_response(queue, e, CT_TIMEOUT_MS);
	assert_non_null(rb);
	assert_int_equal(rb->status, SPYRE_OK);
	assert_true(rb->cycles > 0);
	spyregen_unpack(got, N, out, SPYRE_SEN169_FP16, M, N);
	spyregen_ref_matmul(a, b, NULL, SPYREGEN_NONE, want, M, N, K, 1);
	spyregen_round(want, M * N, SPYRE_SEN169_FP16);
	assert_memory_equal(got, want, sizeof(got));
	assert_int_equal(ct_load(&queue->status->error), 0);
	/* Too few symbols; a core that is not there cannot be named. */
	{
		struct spyre_cb bad = compute(SPYRE_PROGRAM_BASE, host_at + (6 << 20), 2);

		assert_int_equal(ct_run(queue, &bad), SPYRE_ERR_SYMBOLS);
		reset();
	}
}

/* A unit that waits for a tag nobody sends. */
static void test_deadlock(void **state)
{
	struct spyre_msg m;
	struct spyre_msg_ras *ras = (void *)m.body;
	const struct spyre_rb *rb;
	unsigned int core, records = 0, seen = 0;

	(void)state;
	load(job_deadlock(10));
	rb = run();
	assert_int_equal(rb->status, SPYRE_ERR_DEADLOCK);
	assert_int_equal(rb->nstuck, 10);
	assert_int_equal(rb->stuck[2].core, 2);
	/* Ten stuck units in three records. */
	while (records < 3) {
		assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &m, CT_TIMEOUT_MS), 0);
		assert_int_equal(ras->code, SPYRE_RAS_DEADLOCK);
		assert_int_equal(ras->nstuck, 10);
		assert_int_equal(ras->err_pc, 4 * records);
		for (core = 0; core < 4 && 4 * records + core < 10; core++, seen++)
			assert_int_equal(ras->stuck[core].core, 4 * records + core);
		records++;
	}
	assert_int_equal(seen, 10);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &m, 50), -ETIMEDOUT);
	reset();
}

/* A loop that is bounded by nothing but its watchdog, and the CB's own timeout before that. */
static void test_watchdog_and_timeout(void **state)
{
	struct spyreprog_job *job = spyreprog_job_new();
	const struct spyre_rb *rb;
	struct spyre_msg m;
	struct spyre_cb cb;
	int p;

	(void)state;
	p = spyreprog_job_program(job, SPYRE_UNIT_L3LU);
	sp_loop(job, p, 60000);
	sp_loop(job, p, 60000);
	sp_addimm(job, p, SPYRE_LAR0, 128);
	sp_end(job, p);
	sp_end(job, p);
	spyreprog_job_unit(job, 0, SPYRE_UNIT_L3LU, 0, p);
	spyreprog_job_watchdog(job, 1000000);
	load(job);
	rb = run();
	assert_int_equal(rb->status, SPYRE_ERR_WATCHDOG);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &m, CT_TIMEOUT_MS), 0);
	assert_int_equal(((struct spyre_msg_ras *)(void *)m.body)->code, SPYRE_RAS_WATCHDOG);
	reset();
	/* A copy that takes longer than its timeout in card time. */
	cb = ct_cb_copy(SPYRE_CB_DMAI, DMVA, host_at, 4 << 20);
	cb.timeout = SPYRE_SOC_HZ / 1000000;
	assert_int_equal(ct_run(queue, &cb), SPYRE_ERR_TIMEOUT);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &m, CT_TIMEOUT_MS), 0);
	assert_int_equal(((struct spyre_msg_ras *)(void *)m.body)->code, SPYRE_RAS_TIMEOUT);
	reset();
}

/* Two minutes of loops, on a clock that the test moves: another context wants the cores for one of them. */
static void test_held(void **state)
{
	struct spyreprog_job *job = spyreprog_job_new();
	struct ct_queue_config cfg = { .entries = 64 };
	struct ct_ctx *other = ct_ctx_new(card, 2);
	struct ct_queue *waits = ct_queue_new(other, &cfg);
	struct spyre_cb cb = compute(SPYRE_PROGRAM_BASE, 0, 0);
	unsigned int tenths;
	struct spyre_msg m;
	uint32_t mine;
	int p, i;

	(void)state;
	ct_map_card(other, SPYRE_PROGRAM_BASE, ct_pages(card, 1), 1, SPYRE_PTE_WRITE);
	p = spyreprog_job_program(job, SPYRE_UNIT_L3LU);
	for (i = 0; i < 3; i++)
		sp_loop(job, p, i ? 60000 : 40);
	sp_addimm(job, p, SPYRE_LAR0, 128);
	for (i = 0; i < 3; i++)
		sp_end(job, p);
	spyreprog_job_unit(job, 0, SPYRE_UNIT_L3LU, 0, p);
	load(job);
	spyre_inproc_manual_clock(card->ip);
	put(cb, 0);
	ct_submit(queue);
	while (!ct_reg(card, SPYRE_REG_ENG_PROGRESS(5)))
		usleep(1000);
	/* What waits need not be good: nobody looks at it before its turn. */
	mine = ct_put(waits, &cb);
	ct_submit(waits);
	for (tenths = 0; tenths < 1000 && !ct_load(&queue->status->error); tenths++) {
		spyre_inproc_advance(card->ip, 100000000);
		usleep(1000);
	}
	assert_int_equal(ct_load(&queue->status->error), SPYRE_ERR_TIMEOUT);
	assert_in_range(tenths, 600, 700);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &m, CT_TIMEOUT_MS), 0);
	assert_int_equal(((struct spyre_msg_ras *)(void *)m.body)->code, SPYRE_RAS_TIMEOUT);
	/* It gets them: there is no program in its memory. */
	for (i = 0; i < 1000 && !ct_load(&waits->status->error); i++) {
		spyre_inproc_advance(card->ip, 100000);
		usleep(1000);
	}
	assert_int_equal(ct_load(&waits->status->error), SPYRE_ERR_BAD_PROGRAM);
	assert_int_equal(ct_load(&waits->status->error_entry), mine);
}

#define COUNTERS 1024u

static uint64_t named(const struct spyre_counter *all, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(all[i].name, name))
			return all[i].value;
	fail_msg("no counter is named %s", name);
	return 0;
}

/* By how much the job, run twice, moves a counter. */
static uint64_t moved(const struct spyre_counter *was, const struct spyre_counter *is, size_t n,
		      const char *name)
{
	return named(is, n, name) - named(was, n, name);
}

/* What cores do can be read by name, and adds up. */
static void test_counters(void **state)
{
	static const char *const spent[] = { "busy", "starved", "blocked", "instructions" };
	static const char *const unit[] = { "l3lu", "l3su", "lxlu", "lxsu", "l0lu",
					    "l0su", "pt",   "pe",   "sfp",  "pt-load" };
	static struct spyre_counter was[COUNTERS], is[COUNTERS];
	struct spyreprog_job *job = spyreprog_job_new();
	struct spyre_cb cb;
	size_t n, k, i;
	char name[40];
	int p, u;

	(void)state;
	p = spyreprog_job_program(job, SPYRE_UNIT_L3LU);
	for (i = 9; i <= 17; i += 8) {
		u = spyreprog_job_unit(job, (unsigned int)i, SPYRE_UNIT_L3LU, 0, p);
		spyreprog_job_init(job, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, DMVA);
	}
	sp_loop(job, p, 3);
	sp_l3(job, p, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 32, 0, 0, 0);
	sp_end(job, p);
	load(job);
	n = spyre_card_counters(card->card, was, COUNTERS);
	assert_true(n < COUNTERS);
	assert_int_equal(spyre_card_counters(card->card, NULL, 0), n);
	for (i = 0; i < n; i++) {
		assert_true(was[i].name[0] && was[i].name[strlen(was[i].name) - 1] != '-');
		for (k = 0; k < i; k++)
			assert_string_not_equal(was[i].name, was[k].name);
	}
	cb = compute(SPYRE_PROGRAM_BASE, 0, 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	assert_int_equal(spyre_card_counters(card->card, is, COUNTERS), n);
	for (i = 0; i < n; i++)
		assert_ptr_equal(was[i].name, is[i].name);
	assert_int_equal(moved(was, is, n, "soc-jobs"), 2);
	assert_int_equal(moved(was, is, n, "core9-jobs"), 2);
	assert_int_equal(moved(was, is, n, "core8-jobs"), 0);
	assert_int_equal(moved(was, is, n, "core17-instructions"), 2 * (1 + 3 + 1));
	assert_int_equal(moved(was, is, n, "l3lu-instructions"), 2 * 2 * (1 + 3 + 1));
	assert_int_equal(moved(was, is, n, "l3lu-bytes"), 2 * 2 * 96 * SPYRE_STICK);
	assert_int_equal(moved(was, is, n, "l3su-bytes"), 0);
	assert_int_equal(moved(was, is, n, "core9-in-bytes"), 2 * 96 * SPYRE_STICK);
	assert_int_equal(moved(was, is, n, "core9-out-bytes"), 0);
	assert_int_equal(moved(was, is, n, "hmi-read-bytes"), 2 * 2 * 96 * SPYRE_STICK);
	assert_int_equal(moved(was, is, n, "hmi-write-bytes"), 0);
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "hmi-port%zu-bytes", i);
		assert_int_equal(moved(was, is, n, name), 2 * 96 * SPYRE_STICK);
	}
	assert_true(moved(was, is, n, "l3lu-blocked") > moved(was, is, n, "l3lu-busy"));
	assert_true(moved(was, is, n, "hmi-busy") > 0 && moved(was, is, n, "core9-in-busy") > 0);
	/* Units summed by kind and by core, a load port having no instructions. */
	for (k = 0; k < 4; k++) {
		uint64_t by_kind = 0, by_core = 0;

		for (i = 0; i < (k == 3 ? 9 : 10); i++) {
			snprintf(name, sizeof(name), "%s-%s", unit[i], spent[k]);
			by_kind += named(is, n, name);
		}
		for (i = 0; i < 32; i++) {
			snprintf(name, sizeof(name), "core%zu-%s", i, spent[k]);
			by_core += named(is, n, name);
		}
		/* Nobody starves here. */
		assert_int_equal(by_kind > 0, strcmp(spent[k], "starved") != 0);
		assert_int_equal(by_kind, by_core);
	}
}

/* A store where the program may not. */
static void test_program_fault(void **state)
{
	struct spyreprog_job *job = spyreprog_job_new();
	const struct spyre_rb *rb;
	struct spyre_msg m;
	int p, u;

	(void)state;
	p = spyreprog_job_program(job, SPYRE_UNIT_L3SU);
	sp_l3(job, p, SPYRE_OP_L3_STU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 1, 0, 0, 0);
	u = spyreprog_job_unit(job, 7, SPYRE_UNIT_L3SU, 0, p);
	spyreprog_job_init(job, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, 0x100000000);
	load(job);
	rb = run();
	assert_int_equal(rb->status, SPYRE_ERR_FAULT);
	assert_int_equal(rb->rb_hmierr_mode, SPYRE_HMI_STORE);
	assert_int_equal(rb->rb_hmierr_addr, 0x100000000);
	assert_int_equal(rb->err_core, 7);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &m, CT_TIMEOUT_MS), 0);
	assert_int_equal(((struct spyre_msg_ras *)(void *)m.body)->addr, 0x100000000);
	reset();
}

/*
 * Several units fault at once: which one is reported is found out after they stopped. Nothing holds the
 * job's translations after that, so an invalidation is answered with no other job to follow.
 */
static void test_many_faults(void **state)
{
	struct spyreprog_job *job = spyreprog_job_new();
	const struct spyre_rb *rb;
	unsigned int i;
	int p;

	(void)state;
	p = spyreprog_job_program(job, SPYRE_UNIT_L3SU);
	sp_l3(job, p, SPYRE_OP_L3_STU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 1, 0, 0, 0);
	for (i = 3; i < 7; i++)
		spyreprog_job_init(job, spyreprog_job_unit(job, i, SPYRE_UNIT_L3SU, 0, p), SPYRE_EAR0,
				   SPYRE_NO_SYMBOL, 0x100000000 + (i << 16));
	load(job);
	rb = run();
	assert_int_equal(rb->status, SPYRE_ERR_FAULT);
	assert_int_equal(rb->err_core, 3);
	assert_int_equal(ct_call_id(card, SPYRE_MSG_CTX_INVALIDATE, ctx->id, 0), SPYRE_MSG_OK);
	reset();
}

/*
 * A long job is taken off the engine with its queue, computed or not: the next one starts then, not at the
 * end that the long one would have had.
 */
static void test_cancelled(void **state)
{
	struct ct_queue_config cfg = { .entries = 64 };
	struct ct_queue *other = ct_queue_new(ctx, &cfg);
	const struct spyre_rb *rb;
	struct spyre_cb cb;
	unsigned int i;

	(void)state;
	assert_non_null(other);
	load(job_endless());
	for (i = 0; i < 2; i++) {
		put(compute(SPYRE_PROGRAM_BASE, 0, 0), 0);
		ct_submit(queue);
		/* At once, then with the arithmetic done and the announcement waiting. */
		usleep(i * 300000);
		assert_int_equal(ct_call_id(card, SPYRE_MSG_QUEUE_RESET, queue->id, 0), SPYRE_MSG_OK);
		queue->tail = ct_load(&queue->status->fetched);
		queue->rung = queue->tail;
	}
	/* What refuses to start needs the engine too. */
	cb = compute(SPYRE_PROGRAM_BASE + 128, 0, 0);
	rb = respond(other, &cb);
	assert_int_equal(rb->status, SPYRE_ERR_BAD_PROGRAM);
}

/* --- Hardware --------------------------------------------------------------------------------- */

static void next_ras(uint32_t code, struct spyre_msg_ras *ras)
{
	struct spyre_msg m;

	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &m, CT_TIMEOUT_MS), 0);
	memcpy(ras, m.body, sizeof(*ras));
	assert_int_equal(ras->code, code);
}

static void test_hardware_faults(void **state)
{
	struct spyre_cb copy = ct_cb_copy(SPYRE_CB_DMAI, DMVA, host_at, 4096);
	uint64_t phys = card->next_page - 9 * SPYRE_PAGE_SIZE;	/* what DMVA maps to */
	struct spyre_msg_ras ras;
	struct spyre_msg m;
	struct spyre_cb cb;

	(void)state;
	assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_DMA_ABORT, 0), 0);
	assert_int_equal(ct_run(queue, &copy), SPYRE_ERR_HW);
	next_ras(SPYRE_RAS_SOFT_FAIL, &ras);
	assert_int_equal(ras.category, SPYRE_CAT_HARDWARE);
	reset();
	assert_int_equal(ct_run(queue, &copy), SPYRE_OK);
	/* A corrected error is told and nothing else; the idle card wakes for it. */
	assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_MEM_CE, phys), 0);
	next_ras(SPYRE_RAS_MEM_CE, &ras);
	assert_int_equal(ras.addr, phys);
	assert_int_equal(ras.context, 0);
	assert_int_equal(ct_run(queue, &copy), SPYRE_OK);
	/* An uncorrected one fails whoever reads it. */
	assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_MEM_UE, phys + 256), 0);
	cb = ct_cb_copy(SPYRE_CB_DMAO, out_at, DMVA, 4096);
	assert_int_equal(ct_run(queue, &cb), SPYRE_ERR_HW);
	do {
		next_ras(SPYRE_RAS_MEM_UE, &ras);
	} while (!ras.context);
	reset();
	/* Too hot: told at once; it trips, and the card is lost until its next boot. */
	spyre_card_inject(card->card, SPYRE_FAULT_OVERTEMP, 60000);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_THERMAL, &m, CT_TIMEOUT_MS), 0);
	assert_int_equal(((struct spyre_msg_id *)(void *)m.body)->id, 1);
	spyre_card_inject(card->card, SPYRE_FAULT_OVERTEMP, 0);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_THERMAL, &m, CT_TIMEOUT_MS), 0);
	assert_int_equal(((struct spyre_msg_id *)(void *)m.body)->id, 2);
	spyre_card_inject(card->card, SPYRE_FAULT_OVERTEMP, 90000);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_THERMAL, &m, CT_TIMEOUT_MS), 0);
	assert_int_equal(((struct spyre_msg_id *)(void *)m.body)->id, 3);
	assert_int_equal(ct_wait_state(queue, SPYRE_QUEUE_ERROR, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_load(&queue->status->error), SPYRE_ERR_HW);
	assert_int_equal(ct_call_id(card, SPYRE_MSG_QUEUE_RESET, queue->id, 0), SPYRE_MSG_ERR_BUSY);
	assert_int_equal(ct_reg(card, SPYRE_REG_STATE), SPYRE_STATE_IN_ERROR);
}

/*
 * Memory that cannot be corrected is the hardware's failure wherever compute meets it, never the user's: the
 * context's other queues go on.
 */
static void test_compute_ecc(void **state)
{
	uint64_t phys = card->next_page - 9 * SPYRE_PAGE_SIZE;	/* what DMVA maps to, the program behind it */
	uint64_t from = DMVA + SPYRE_PAGE_SIZE, to = DMVA + 2 * SPYRE_PAGE_SIZE;
	const struct {
		const char *what;
		uint64_t phys, addr;
		uint32_t mode;
	} cases[] = {
		{ "header", phys + 8 * SPYRE_PAGE_SIZE, SPYRE_PROGRAM_BASE, SPYRE_HMI_FETCH },
		{ "container", phys + 8 * SPYRE_PAGE_SIZE + 128, SPYRE_PROGRAM_BASE + 128, SPYRE_HMI_FETCH },
		{ "symbols", phys, DMVA, SPYRE_HMI_FETCH },
		{ "load", phys + SPYRE_PAGE_SIZE + 256, from + 256, SPYRE_HMI_LOAD },
		{ "store", phys + 2 * SPYRE_PAGE_SIZE + 512, to + 512, SPYRE_HMI_STORE },
	};
	struct spyre_cb cb = ct_cb(SPYRE_CB_COMPUTE, 0), nop = ct_cb(SPYRE_CB_NOP, 0);
	struct ct_queue *other = ct_queue_new(ctx, NULL);
	const struct spyre_rb *rb;
	struct spyre_msg_ras ras;
	unsigned int i;

	(void)state;
	assert_non_null(other);
	load(job_mover(5, 32));	/* core 5 copies a burst */
	((uint64_t *)(void *)host)[0] = from;
	((uint64_t *)(void *)host)[1] = to;
	copy_in(DMVA, 128);
	cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE;
	cb.u.compute.symbols = DMVA;
	cb.u.compute.nsymbols = 2;
	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("ecc under %s\n", cases[i].what);
		assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_MEM_UE, cases[i].phys), 0);
		rb = respond(queue, &cb);
		assert_int_equal(rb->status, SPYRE_ERR_HW);
		assert_int_equal(rb->rb_hmierr_syndrome, SPYRE_SYN_ECC);
		assert_int_equal(rb->rb_hmierr_mode, cases[i].mode);
		assert_int_equal(rb->rb_hmierr_addr, cases[i].addr);
		/* The card's own record, then the control block's. */
		do {
			next_ras(SPYRE_RAS_MEM_UE, &ras);
		} while (!ras.context);
		assert_int_equal(ras.category, SPYRE_CAT_HARDWARE);
		assert_int_equal(ras.addr, cases[i].addr);
		reset();
		assert_int_equal(ct_load(&other->status->error), 0);
		assert_int_equal(ct_run(other, &nop), SPYRE_OK);
		/* The poison goes with the access that met it. */
		assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	}
}

/* With check_races: both accesses of a race are in the response block and in the record, also at address 0 of LX. */
static void test_race(void **state)
{
	struct spyre_card_config cfg = { .memory = 1ull << 30, .aperture = 1ull << 31, .mem_fd = -1, .check_races = true };
	struct spyreprog_job *job = spyreprog_job_new();
	int p, su, u;
	const struct spyre_rb *rb;
	struct spyre_msg m;
	struct spyre_msg_ras *ras = (void *)m.body;

	assert_int_equal(teardown(state), 0);
	config = &cfg;
	assert_int_equal(setup(state), 0);
	config = NULL;
	p = spyreprog_job_program(job, SPYRE_UNIT_L3LU);
	sp_l3(job, p, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 1, 0, 0, 0);
	u = spyreprog_job_unit(job, 0, SPYRE_UNIT_L3LU, 0, p);
	spyreprog_job_init(job, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, DMVA);
	su = spyreprog_job_program(job, SPYRE_UNIT_L3SU);
	sp_addimm(job, su, SPYRE_EAR0, 4096);
	sp_l3(job, su, SPYRE_OP_L3_STU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 1, 0, 0, 0);
	u = spyreprog_job_unit(job, 0, SPYRE_UNIT_L3SU, 0, su);
	spyreprog_job_init(job, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, DMVA);
	load(job);
	rb = run();
	assert_int_equal(rb->status, SPYRE_ERR_PROGRAM);
	assert_int_equal(rb->err_code, SPYRE_PE_RACE);
	assert_int_equal(rb->nstuck, 1);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &m, CT_TIMEOUT_MS), 0);
	assert_int_equal(ras->status, SPYRE_ERR_PROGRAM);
	assert_int_equal(ras->err_code, SPYRE_PE_RACE);
	assert_int_equal(ras->addr, 0);
	assert_int_equal(ras->nstuck, 1);
	assert_memory_equal(&ras->stuck[0], &rb->stuck[0], sizeof(ras->stuck[0]));
	assert_int_equal(ras->stuck[0].waits, SPYRE_RACE_LX);
	assert_int_equal(ras->err_unit + ras->stuck[0].unit, SPYRE_UNIT_L3LU + SPYRE_UNIT_L3SU);
	assert_int_equal(ras->err_pc + ras->stuck[0].pc, 1);
}

/*
 * Reads of memory that nobody wrote give zeros and leave the hole a hole: fetch, symbols, loads and the copy
 * unit. What the job itself stores there is read back.
 */
static void test_holes(void **state)
{
	uint64_t size = 896ull << 20, phys, page = SPYRE_PAGE_SIZE;
	int fd = memfd_create("spyre", 0);
	struct spyre_card_config cfg = { .memory = 1ull << 30, .aperture = 1ull << 31, .mem_fd = fd };
	struct spyre_cb cb = ct_cb(SPYRE_CB_COMPUTE, 0);
	uint8_t *p;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	cfg.mem = p;
	assert_int_equal(teardown(state), 0);
	config = &cfg;
	assert_int_equal(setup(state), 0);
	config = NULL;
	phys = card->next_page - 9 * page;
	/* The program's page is the last; all before it are holes. */
	load(job_mover(5, 32));	/* core 5 copies a burst */
	assert_int_equal(lseek(fd, (off_t)phys, SEEK_DATA), phys + 8 * page);
	/* A program there is none: no container. Symbols: address 0, nothing mapped. */
	cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE + page;
	ct_map_card(ctx, SPYRE_PROGRAM_BASE + page, phys, 1, 0);
	assert_int_equal(ct_run(queue, &cb), SPYRE_ERR_BAD_PROGRAM);
	reset();
	cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE;
	cb.u.compute.symbols = DMVA;
	cb.u.compute.nsymbols = 2;
	assert_int_equal(ct_run(queue, &cb), SPYRE_ERR_FAULT);
	reset();
	/* A word that is not there is 0, which is at least 0. */
	cb = ct_cb_sync(SPYRE_CB_WAIT, 0, DMVA + 4096 - 8, 0);
	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	assert_int_equal(lseek(fd, (off_t)phys, SEEK_DATA), phys + 8 * page);
	/* A load that ends beyond the page: its second half was written. */
	((uint64_t *)(void *)host)[0] = DMVA + 2 * page - 2048;
	((uint64_t *)(void *)host)[1] = DMVA + 4 * page;
	cb = compute(SPYRE_PROGRAM_BASE, host_at, 2);
	memset(p + phys + 2 * page, 0x5a, 4096);
	memset(p + phys + 4 * page, 0xff, 4096);
	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	assert_int_equal(lseek(fd, (off_t)phys, SEEK_DATA), phys + 2 * page);
	memset(host + 4096, 0, 2048);
	memset(host + 4096 + 2048, 0x5a, 2048);
	assert_memory_equal(p + phys + 4 * page, host + 4096, 4096);
	/* The CPU writes behind the card's back: the next job sees it. */
	memset(p + phys + page, 0x33, page);
	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	memset(host + 4096, 0x33, 2048);
	assert_memory_equal(p + phys + 4 * page, host + 4096, 4096);
	ct_free(card);
	munmap(p, size);
	close(fd);
	assert_int_equal(setup(state), 0);
}

/* A job reads a hole, stores to it, and reads again. */
static void test_hole_rewritten(void **state)
{
	struct spyreprog_job *job = spyreprog_job_new();
	struct spyre_cb cb;
	int p, q, u;

	(void)state;
	p = spyreprog_job_program(job, SPYRE_UNIT_L3LU);
	q = spyreprog_job_program(job, SPYRE_UNIT_L3SU);
	sp_l3(job, p, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 1, 0, 128, 128);
	sp_l3(job, p, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0 + 1, 1, 0, 128, 0);
	sp_send(job, p, 1, 0);
	/* The second stick goes to the hole, and is loaded from there. */
	sp_wait(job, q, 1, 1);
	sp_l3(job, q, SPYRE_OP_L3_STU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 1, 0, 128, 0);
	sp_send(job, q, 2, 0);
	sp_wait(job, p, 2, 1);
	sp_l3(job, p, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 1, 0, 0, 0);
	sp_send(job, p, 3, 0);
	sp_wait(job, q, 3, 1);
	sp_l3(job, q, SPYRE_OP_L3_STU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0 + 1, 1, 0, 0, 0);
	u = spyreprog_job_unit(job, 0, SPYRE_UNIT_L3LU, 0, p);
	spyreprog_job_init(job, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, DMVA);
	spyreprog_job_init(job, u, SPYRE_EAR0 + 1, SPYRE_NO_SYMBOL, DMVA + SPYRE_PAGE_SIZE);
	u = spyreprog_job_unit(job, 0, SPYRE_UNIT_L3SU, 0, q);
	spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, 128);
	spyreprog_job_init(job, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, DMVA + 128);
	spyreprog_job_init(job, u, SPYRE_EAR0 + 1, SPYRE_NO_SYMBOL, DMVA + SPYRE_PAGE_SIZE + 128);
	load(job);
	memset(host, 0x77, 128);
	copy_in(DMVA + SPYRE_PAGE_SIZE, 128);
	cb = compute(SPYRE_PROGRAM_BASE, 0, 0);
	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	cb = ct_cb_copy(SPYRE_CB_DMAO, out_at, DMVA + SPYRE_PAGE_SIZE + 128, 128);
	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	assert_memory_equal(out, host, 128);
}

/* Wrong parity in a core's LX: the job that reads it fails and the record names the core. */
static void test_lx_parity(void **state)
{
	const struct spyre_rb *rb;
	struct spyre_msg_ras ras;
	struct spyre_cb cb;

	(void)state;
	load(job_mover(5, 32));	/* core 5 copies a burst */
	((uint64_t *)(void *)host)[0] = DMVA;
	((uint64_t *)(void *)host)[1] = DMVA + SPYRE_PAGE_SIZE;
	cb = compute(SPYRE_PROGRAM_BASE, host_at, 2);
	assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_LX_PARITY, 4), 0);
	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_LX_PARITY, 5), 0);
	rb = respond(queue, &cb);
	assert_int_equal(rb->status, SPYRE_ERR_HW);
	assert_int_equal(rb->err_core, 5);
	assert_int_equal(rb->err_unit, SPYRE_UNIT_L3SU);
	assert_int_equal(rb->rb_hmierr_mode, SPYRE_HMI_NONE);
	next_ras(SPYRE_RAS_COMPUTE_HW, &ras);
	assert_int_equal(ras.category, SPYRE_CAT_HARDWARE);
	assert_int_equal(ras.err_core, 5);
	assert_int_equal(ras.context, ctx->id);
	reset();
	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
}

/* The firmware's own faults, injected past the driver into a card that sleeps. */
static void test_firmware_faults(void **state)
{
	struct spyre_cb nop = ct_cb(SPYRE_CB_NOP, SPYRE_CB_F_RESPONSE);
	uint64_t t0;
	uint32_t e;

	(void)state;
	assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_LOST_RB, 2), 0);
	/* A command sees what was injected before it; a queue that is being polled need not yet. */
	assert_int_equal(ct_call(card, SPYRE_MSG_GET_INFO, NULL, 0, NULL), SPYRE_MSG_OK);
	e = ct_put(queue, &nop);
	ct_put(queue, &nop);
	ct_put(queue, &nop);
	ct_submit(queue);
	assert_int_equal(ct_wait(queue, e + 2, CT_TIMEOUT_MS), 0);
	assert_non_null(ct_response(queue, e + 2, CT_TIMEOUT_MS));
	assert_int_equal(ct_load(&queue->rb[e].valid), 0);
	assert_int_equal(ct_load(&queue->rb[e + 1].valid), 0);
	assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_FW_SLOW, 80), 0);
	t0 = spyre_card_mmio_read(card->card, SPYRE_REG_TIME, 8);
	assert_int_equal(ct_call(card, SPYRE_MSG_GET_INFO, NULL, 0, NULL), SPYRE_MSG_OK);
	assert_true(spyre_card_mmio_read(card->card, SPYRE_REG_TIME, 8) - t0 >= SPYRE_SOC_HZ / 1000 * 80ull);
}

/* Progress of each engine is read without asking the firmware, and told by it. */
static void test_progress(void **state)
{
	struct spyre_cb cb = ct_cb_copy(SPYRE_CB_DMAI, DMVA, host_at, 4 << 20);
	struct spyre_msg m;
	struct spyre_msg_telemetry *t = (void *)m.body;
	uint32_t before, e;

	(void)state;
	before = ct_reg(card, SPYRE_REG_ENG_PROGRESS(0)) + ct_reg(card, SPYRE_REG_ENG_PROGRESS(1));
	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	/* Every 64 KiB. */
	assert_true(ct_reg(card, SPYRE_REG_ENG_PROGRESS(0)) + ct_reg(card, SPYRE_REG_ENG_PROGRESS(1)) >=
		    before + 64);
	load(job_mover(5, 32));	/* core 5 copies a burst */
	((uint64_t *)(void *)host)[0] = DMVA;
	((uint64_t *)(void *)host)[1] = DMVA + SPYRE_PAGE_SIZE;
	before = ct_reg(card, SPYRE_REG_ENG_PROGRESS(5));
	cb = compute(SPYRE_PROGRAM_BASE, host_at, 2);
	assert_int_equal(ct_run(queue, &cb), SPYRE_OK);
	assert_true(ct_reg(card, SPYRE_REG_ENG_PROGRESS(5)) > before);
	assert_int_equal(ct_reg(card, SPYRE_REG_ENG_PROGRESS(4)), 0);
	for (e = 6; e < SPYRE_REG_ENGINES_MAX; e++)
		assert_int_equal(ct_reg(card, SPYRE_REG_ENG_PROGRESS(e)), 0);
	/* Read-only. */
	ct_set_reg(card, SPYRE_REG_ENG_PROGRESS(5), 0);
	assert_true(ct_reg(card, SPYRE_REG_ENG_PROGRESS(5)) > before);
	assert_int_equal(ct_call(card, SPYRE_MSG_GET_TELEMETRY, NULL, 0, &m), SPYRE_MSG_OK);
	assert_int_equal(t->progress[MCU_ENGINE_COMPUTE - 1], ct_reg(card, SPYRE_REG_ENG_PROGRESS(5)));
	assert_int_equal(t->progress[MCU_ENGINE_DMI - 1],
			 ct_reg(card, SPYRE_REG_ENG_PROGRESS(0)) + ct_reg(card, SPYRE_REG_ENG_PROGRESS(1)));
}

static void test_lost_core(void **state)
{
	struct spyre_msg_ras ras;
	struct spyre_msg m;
	struct spyre_cb cb;
	void *image;
	size_t size;

	(void)state;
	assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_CORE_LOST, 11), 0);
	image = ct_image(&size);
	ct_set_reg(card, SPYRE_REG_MCU_CTRL, 0);
	ct_set_reg(card, SPYRE_REG_MBOX_CMD_TAIL, 0);
	ct_set_reg(card, SPYRE_REG_MBOX_EVT_HEAD, 0);
	card->cmd_tail = 0;
	card->evt_head = 0;
	memset(card->evt, 0, 64 * sizeof(*card->evt));
	assert_int_equal(ct_boot_image(card, image, size), 0);
	free(image);
	next_ras(SPYRE_RAS_CORE_UNAVAILABLE, &ras);
	assert_int_equal(ras.err_code, 11);
	assert_int_equal(ct_call(card, SPYRE_MSG_GET_INFO, NULL, 0, &m), SPYRE_MSG_OK);
	assert_int_equal(((struct spyre_msg_info *)(void *)m.body)->cores, ~(1u << 11));
	ctx = ct_ctx_new(card, 2);
	queue = ct_queue_new(ctx, NULL);
	cb = compute(SPYRE_PROGRAM_BASE, 0, 0);
	cb.u.compute.core_mask = 1u << 11;
	assert_int_equal(ct_run(queue, &cb), SPYRE_ERR_CORES);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_matmul, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deadlock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watchdog_and_timeout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_counters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_program_fault, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_faults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cancelled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hardware_faults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compute_ecc, setup, teardown),
		cmocka_unit_test_setup_teardown(test_race, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hole_rewritten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lx_parity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_firmware_faults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_progress, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_core, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
