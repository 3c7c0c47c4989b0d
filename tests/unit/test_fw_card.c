// SPDX-License-Identifier: MIT
/*
 * The real firmware image on the real card model, in process, driven as a driver and its users do.
 */
#include "cardtest.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <spyre/mcu.h>

#define ARENA		(64u << 20)
#define DMVA		0x400000ull	/* where tests map their card pages */
#define PAGES		4u

static struct ct_card *card;

static uint32_t seed = 0x2545f491;

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

static int teardown(void **state)
{
	uint64_t bad = spyre_inproc_inconsistencies(card->ip);

	(void)state;
	ct_free(card);
	card = NULL;
	return bad ? -1 : 0;
}

/* A context with PAGES card pages at DMVA. */
static struct ct_ctx *context(uint32_t id)
{
	struct ct_ctx *x = ct_ctx_new(card, id);
	uint64_t phys = ct_pages(card, PAGES);

	assert_non_null(x);
	assert_true(phys);
	ct_map_card(x, DMVA, phys, PAGES, SPYRE_PTE_WRITE);
	return x;
}

static struct ct_queue *queue(struct ct_ctx *x)
{
	struct ct_queue *q = ct_queue_new(x, NULL);

	assert_non_null(q);
	return q;
}

static void run_ok(struct ct_queue *q, struct spyre_cb cb)
{
	int status = ct_run(q, &cb);

	if (status)
		ct_print_log(card);
	assert_int_equal(status, SPYRE_OK);
}

static void reset(struct ct_queue *q)
{
	assert_int_equal(ct_call_id(card, SPYRE_MSG_QUEUE_RESET, q->id, 0), SPYRE_MSG_OK);
	assert_int_equal(ct_load(&q->status->state), SPYRE_QUEUE_ACTIVE);
	assert_int_equal(ct_load(&q->status->error), 0);
	q->tail = ct_load(&q->status->fetched);
	q->rung = q->tail;
	assert_int_equal(ct_load(&q->shadow->tail), q->tail);
}

/* --- Boot ------------------------------------------------------------------------------------- */

static void test_boot(void **state)
{
	struct spyre_msg m;
	struct spyre_msg_info *info = (void *)m.body;
	uint32_t beats;

	(void)state;
	assert_int_equal(ct_reg(card, SPYRE_REG_STATE), SPYRE_STATE_ONLINE);
	assert_int_equal(ct_reg(card, SPYRE_REG_BOOT_STATUS), SPYRE_BOOT_RUNNING);
	assert_int_equal(ct_reg(card, SPYRE_REG_BOOT_PROGRESS), SPYRE_PROGRESS_ONLINE);
	assert_int_equal(ct_reg(card, SPYRE_REG_FW_VERSION),
			 SPYRE_PROTO_MAJOR << 16 | SPYRE_PROTO_MINOR);
	assert_int_equal(ct_reg(card, SPYRE_REG_LOG_RAM), SPYRE_LOG_MAGIC);
	assert_true(spyre_inproc_wait(card->ip, 0, 0, CT_TIMEOUT_MS) >= 1);
	assert_int_equal(ct_call(card, SPYRE_MSG_GET_INFO, NULL, 0, &m), SPYRE_MSG_OK);
	assert_int_equal(m.length, sizeof(*info));
	assert_int_equal(info->proto, SPYRE_PROTO_MAJOR << 16 | SPYRE_PROTO_MINOR);
	assert_int_equal(info->contexts, 256);
	assert_int_equal(info->queues, 4096);
	assert_true(info->engines[1] >= 1 && info->engines[2] >= 1 && info->engines[3] >= 1);
	assert_int_equal(info->engines[4], 1);
	assert_int_equal(info->cores, 0xffffffff);
	beats = ct_reg(card, SPYRE_REG_HEARTBEAT);
	assert_int_equal(ct_call(card, SPYRE_MSG_GET_TELEMETRY, NULL, 0, &m), SPYRE_MSG_OK);
	assert_true(ct_reg(card, SPYRE_REG_HEARTBEAT) != beats);
	assert_in_range(((struct spyre_msg_telemetry *)(void *)m.body)->temp_mc, 10000, 100000);
	assert_int_equal(ct_call(card, 0x77, NULL, 0, NULL), SPYRE_MSG_ERR_TYPE);
	assert_int_equal(ct_call(card, SPYRE_MSG_GET_INFO, NULL, 1, NULL), SPYRE_MSG_ERR_LENGTH);
}

/* Without reading events, which would wake the firmware. */
static void wait_change(uint32_t reg, uint32_t old)
{
	uint64_t give_up = ct_now_ns() + CT_TIMEOUT_MS * 1000000ull;

	while (ct_reg(card, reg) == old && ct_now_ns() < give_up)
		sched_yield();
	assert_int_not_equal(ct_reg(card, reg), old);
}

/*
 * Host memory that does not answer for a while costs time, but no command and no event: nobody rings
 * again.
 */
static void test_mailbox_retry(void **state)
{
	const uint32_t log = SPYRE_REG_LOG_RAM + offsetof(struct spyre_log, head);
	uint32_t tag, lines = ct_reg(card, log);
	uint32_t told = ct_reg(card, SPYRE_REG_MBOX_EVT_TAIL);
	uint32_t taken = ct_reg(card, SPYRE_REG_MBOX_CMD_HEAD);
	struct spyre_msg ev;

	(void)state;
	spyre_inproc_bus_master(card->ip, false);
	assert_int_equal(spyre_card_inject(card->card, SPYRE_FAULT_MEM_CE, 64ull << 20), 0);
	wait_change(log, lines);
	/* What it logged is told at the end of the same turn: into the outage, most of the time. */
	usleep(20000);
	spyre_inproc_bus_master(card->ip, true);
	wait_change(SPYRE_REG_MBOX_EVT_TAIL, told);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &ev, CT_TIMEOUT_MS), 0);

	spyre_inproc_bus_master(card->ip, false);
	lines = ct_reg(card, log);
	tag = ct_send(card, SPYRE_MSG_GET_INFO, NULL, 0);
	/* It complains once it could not read the command. */
	wait_change(log, lines);
	spyre_inproc_bus_master(card->ip, true);
	wait_change(SPYRE_REG_MBOX_CMD_HEAD, taken);
	assert_int_equal(ct_answer(card, tag, NULL, CT_TIMEOUT_MS), SPYRE_MSG_OK);
}

/* The slowest and the fastest counter: what the firmware calls a millisecond is one. */
static void test_clocks(void **state)
{
	static const uint32_t hz[] = { 1000000, 4000000000u };
	struct spyre_card_config cfg = { .memory = 1ull << 30, .aperture = 1ull << 31, .mem_fd = -1 };
	unsigned int i;
	uint64_t t0;

	for (i = 0; i < 2; i++) {
		assert_int_equal(teardown(state), 0);
		cfg.soc_hz = hz[i];
		card = ct_boot(&cfg, ARENA, 8);
		assert_non_null(card);
		assert_int_equal(ct_call_id(card, SPYRE_MSG_INJECT, SPYRE_INJECT_SLOW, 50), SPYRE_MSG_OK);
		t0 = spyre_card_mmio_read(card->card, SPYRE_REG_TIME, 8);
		assert_int_equal(ct_call(card, SPYRE_MSG_GET_INFO, NULL, 0, NULL), SPYRE_MSG_OK);
		assert_true(spyre_card_mmio_read(card->card, SPYRE_REG_TIME, 8) - t0 >= hz[i] / 1000 * 50ull);
		run_ok(queue(context(1)), ct_cb(SPYRE_CB_NOP, 0));
	}
}

/* Every bad image is refused with its reason, and a good one boots afterwards. */
static void test_images(void **state)
{
	struct spyre_fw_header *h;
	uint8_t *image, *bad;
	size_t size;

	(void)state;
	image = ct_image(&size);
	assert_non_null(image);
	bad = malloc(size);
	h = (void *)bad;
#define TRY(want, len, change) do { \
		memcpy(bad, image, size); \
		change; \
		assert_int_equal(ct_boot_status(card, bad, size, (uint32_t)(len)), want); \
		assert_int_equal(ct_reg(card, SPYRE_REG_STATE), SPYRE_STATE_OFFLINE); \
	} while (0)
	TRY(SPYRE_BOOT_BAD_MAGIC, size, h->magic ^= 1);
	TRY(SPYRE_BOOT_BAD_LENGTH, size - 4, (void)0);
	TRY(SPYRE_BOOT_BAD_LENGTH, 100, (void)0);
	TRY(SPYRE_BOOT_BAD_HEADER, size, h->load_addr = 0x1000);
	TRY(SPYRE_BOOT_BAD_HEADER, size, h->entry = 0);
	TRY(SPYRE_BOOT_BAD_HEADER, size, h->reserved[2] = 1);
	TRY(SPYRE_BOOT_BAD_DIGEST, size, bad[size - 1] ^= 1);
	TRY(SPYRE_BOOT_BAD_DIGEST, size, h->version[3] ^= 1);
	TRY(SPYRE_BOOT_BAD_ADDRESS, 0xffffffff, (void)0);
#undef TRY
	assert_int_equal(ct_boot_image(card, image, size), 0);
	free(bad);
	free(image);
}

/* --- Data ------------------------------------------------------------------------------------- */

static void test_copies(void **state)
{
	struct ct_ctx *x = context(1);
	struct ct_queue *q = queue(x);
	uint64_t in_at, out_at, bytes = 3 << 20, i;
	uint8_t *in = ct_host(x, bytes, 0, &in_at);
	uint8_t *out = ct_host(x, bytes, SPYRE_PTE_WRITE, &out_at);
	const struct spyre_rb *rb;
	struct spyre_cb cb;
	uint32_t e;

	(void)state;
	for (i = 0; i < bytes; i++)
		in[i] = (uint8_t)rnd();
	/* In, across pages of the card, and back: all in one go, ordered by barriers. */
	cb = ct_cb_copy(SPYRE_CB_DMAI, DMVA + 0x180, in_at, bytes);
	cb.cookie = 0x1122334455667788;
	cb.flags = SPYRE_CB_F_RESPONSE;
	e = ct_put(q, &cb);
	cb = ct_cb_copy(SPYRE_CB_DMAX, DMVA + 0x400000, DMVA + 0x180, bytes);
	cb.flags = SPYRE_CB_F_BARRIER | SPYRE_CB_F_RESPONSE;
	ct_put(q, &cb);
	cb = ct_cb_copy(SPYRE_CB_DMAO, out_at, DMVA + 0x400000, bytes);
	cb.flags = SPYRE_CB_F_BARRIER | SPYRE_CB_F_RESPONSE;
	ct_put(q, &cb);
	ct_submit(q);
	assert_int_equal(ct_wait(q, e + 2, CT_TIMEOUT_MS), 0);
	assert_memory_equal(in, out, bytes);
	rb = ct_response(q, e, 1000);
	assert_non_null(rb);
	assert_int_equal(rb->status, SPYRE_OK);
	assert_int_equal(rb->cookie, 0x1122334455667788);
	assert_int_equal(rb->bytes, bytes);
	/* TS1 to TS5 do not go back, and 3 MB take their time at PCIe speed. */
	for (i = 0; i < 4; i++)
		assert_true((int32_t)(rb->ts[i + 1] - rb->ts[i]) >= 0);
	assert_true(rb->ts[4] - rb->ts[0] > SPYRE_SOC_HZ / 1000000 * 20);
	/* Fill. */
	run_ok(q, ct_cb_fill(DMVA, 0x1000, 0x0123456789abcdef));
	run_ok(q, ct_cb_copy(SPYRE_CB_DMAO, out_at, DMVA, 0x1000));
	for (i = 0; i < 0x1000 / 8; i++)
		assert_int_equal(((uint64_t *)(void *)out)[i], 0x0123456789abcdef);
	assert_memory_equal(out + 0x1000, in + 0x1000, 0x1000);
	/* Two dimensions: every third stick of the host to every second of the card. */
	cb = ct_cb_copy(SPYRE_CB_DMAI, DMVA, in_at, 128);
	cb.u.dma.ndims = 2;
	cb.u.dma.count[0] = 50;
	cb.u.dma.src_stride[0] = 384;
	cb.u.dma.dst_stride[0] = 256;
	run_ok(q, cb);
	run_ok(q, ct_cb_copy(SPYRE_CB_DMAO, out_at, DMVA, 50 * 256));
	for (i = 0; i < 50; i++)
		assert_memory_equal(out + i * 256, in + i * 384, 128);
	assert_int_equal(ct_queue_free(q), 0);
	/* The usage page has it all. */
	assert_int_equal(x->usage->bytes[MCU_ENGINE_DMI], bytes + 50 * 128);
	assert_true(x->usage->busy[MCU_ENGINE_DMI] > 0);
	assert_int_equal(x->usage->cbs, 7);
	assert_int_equal(x->usage->errors, 0);
	assert_int_equal(ct_ctx_free(x), 0);
}

static void test_list(void **state)
{
	struct ct_ctx *x = context(1);
	struct ct_queue *q = queue(x);
	uint64_t list_at, in_at, out_at, i;
	uint8_t *list = ct_host(x, 4096, 0, &list_at);
	uint8_t *in = ct_host(x, 4096, 0, &in_at);
	uint8_t *out = ct_host(x, 4096, SPYRE_PTE_WRITE, &out_at);
	struct spyre_cb cb = ct_cb(SPYRE_CB_DMAI, SPYRE_CB_F_LIST);

	(void)state;
	for (i = 0; i < 4096; i++)
		in[i] = (uint8_t)rnd();
	/* The sticks of a page in reverse. */
	for (i = 0; i < 32; i++) {
		struct spyre_dma_desc d = { .dst = DMVA + (31 - i) * 128, .src = in_at + i * 128,
					    .bytes = 128, .ndims = 1 };

		memcpy(list + i * SPYRE_DMA_LIST_STRIDE, &d, sizeof(d));
	}
	cb.u.list.list = list_at;
	cb.u.list.entries = 32;
	run_ok(q, cb);
	run_ok(q, ct_cb_copy(SPYRE_CB_DMAO, out_at, DMVA, 4096));
	for (i = 0; i < 32; i++)
		assert_memory_equal(out + (31 - i) * 128, in + i * 128, 128);
}

/* --- Signals, waits, timestamps --------------------------------------------------------------- */

/* A SIGNAL's response block is visible before its store, so that a fence is never seen without it. */
static void signal_ok(struct ct_queue *q, struct spyre_cb cb)
{
	run_ok(q, cb);
	assert_int_equal(ct_wait(q, q->tail - 1, CT_TIMEOUT_MS), 0);
}

static void test_signals(void **state)
{
	struct ct_ctx *x = context(1), *y = context(2);
	struct ct_queue *a = queue(x), *b = queue(x), *c = queue(y);
	uint64_t at, shared_at, i;
	uint64_t *word = ct_host(x, 4096, SPYRE_PTE_WRITE, &at);
	struct spyre_cb cb;
	uint32_t e, f;

	(void)state;
	/* The same page in the other context. */
	shared_at = y->next_hmva;
	y->next_hmva += 8192;
	ct_map_host(y, shared_at, spyre_inproc_bus(card->ip, word), 4096, SPYRE_PTE_WRITE);
	cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, at, 5);
	e = ct_put(b, &cb);
	ct_submit(b);
	cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, shared_at, 5);
	f = ct_put(c, &cb);
	ct_submit(c);
	for (i = 0; i < 1000 && !(ct_load(&b->status->parked) && ct_load(&c->status->parked)); i++)
		usleep(1000);
	assert_int_equal(ct_load(&b->status->parked), 1);
	signal_ok(a, ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST, at, 4));
	assert_int_equal(ct_load64(word), 4);
	assert_int_equal(ct_load(&b->status->done), 0);
	signal_ok(a, ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST, at, 5));
	assert_int_equal(ct_wait(b, e, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_wait(c, f, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_load(&b->status->parked), 0);
	assert_int_equal(ct_load64(&a->status->last_fence), 5);
	/* By the CPU: store, full fence, ring if parked. */
	cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, at, 6);
	e = ct_put(b, &cb);
	ct_submit(b);
	usleep(3000);
	__atomic_store_n(word, 6, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (ct_load(&b->status->parked))
		ct_ring(b, b->tail);
	assert_int_equal(ct_wait(b, e, CT_TIMEOUT_MS), 0);
	/* By nobody who rings. */
	cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, at, 7);
	e = ct_put(b, &cb);
	ct_submit(b);
	usleep(3000);
	__atomic_store_n(word, 7, __ATOMIC_RELEASE);
	assert_int_equal(ct_wait(b, e, CT_TIMEOUT_MS), 0);
	/* Adds in card memory, waited for there. */
	for (i = 0; i < 10; i++)
		signal_ok(a, ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_ADD, DMVA + 64, 3));
	run_ok(b, ct_cb_sync(SPYRE_CB_WAIT, 0, DMVA + 64, 30));
	run_ok(b, ct_cb_copy(SPYRE_CB_DMAO, at, DMVA, 128));
	assert_int_equal(word[8], 30);
	/* Time goes on. */
	for (i = 0; i < 3; i++)
		run_ok(a, ct_cb_sync(SPYRE_CB_TIMESTAMP, SPYRE_CB_F_HOST, at + 8 * i, 0));
	assert_true(word[0] < word[1] && word[1] < word[2]);
	/* A WAIT's timeout is card time. */
	cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, at, ~0ull);
	cb.timeout = SPYRE_SOC_HZ / 100;
	assert_int_equal(ct_run(b, &cb), SPYRE_ERR_TIMEOUT);
	/* Status comes after the response. */
	assert_int_equal(ct_wait_state(b, SPYRE_QUEUE_ERROR, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_load(&b->status->error), SPYRE_ERR_TIMEOUT);
	reset(b);
	run_ok(b, ct_cb(SPYRE_CB_NOP, 0));
}

/* --- Errors ----------------------------------------------------------------------------------- */

static void expect_fault(struct ct_queue *q, struct spyre_cb cb, uint32_t mode, uint64_t addr,
			 uint32_t syndrome)
{
	struct spyre_msg ev;
	struct spyre_msg_ras *ras = (void *)ev.body;
	const struct spyre_rb *rb;
	uint32_t e, later;

	while (!ct_event(card, 0, &ev, 0))
		;
	cb.cookie = rnd();
	e = ct_put(q, &cb);
	/* Without the barrier it would be done before the other one has failed. */
	cb = ct_cb(SPYRE_CB_NOP, SPYRE_CB_F_BARRIER);
	later = ct_put(q, &cb);
	ct_submit(q);
	rb = ct_response(q, e, CT_TIMEOUT_MS);
	assert_non_null(rb);
	assert_int_equal(rb->status, SPYRE_ERR_FAULT);
	assert_int_equal(rb->rb_hmierr_mode, mode);
	assert_int_equal(rb->rb_hmierr_addr, addr);
	assert_int_equal(rb->rb_hmierr_syndrome, syndrome);
	rb = ct_response(q, later, CT_TIMEOUT_MS);
	assert_non_null(rb);
	assert_int_equal(rb->status, SPYRE_ERR_CANCELLED);
	assert_int_equal(ct_wait_state(q, SPYRE_QUEUE_ERROR, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_load(&q->status->error), SPYRE_ERR_FAULT);
	assert_int_equal(ct_load(&q->status->error_entry), e);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &ev, CT_TIMEOUT_MS), 0);
	assert_int_equal(ras->code, SPYRE_RAS_SOFT_FAIL);
	assert_int_equal(ras->context, q->ctx->id);
	assert_int_equal(ras->queue, q->id);
	assert_int_equal(ras->entry, e);
	assert_int_equal(ras->addr, addr);
	assert_int_equal(ras->syndrome, syndrome);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_QUEUE_ERROR, &ev, CT_TIMEOUT_MS), 0);
	reset(q);
}

static void test_faults(void **state)
{
	struct ct_ctx *x = context(1), *y = context(2);
	struct ct_queue *q = queue(x), *sister = queue(x), *other = queue(y);
	uint64_t end = DMVA + PAGES * SPYRE_PAGE_SIZE, at, ro_at, priv_at;
	void *p = ct_host(x, 8192, SPYRE_PTE_WRITE, &at);
	struct spyre_msg m;

	(void)state;
	assert_non_null(p);
	assert_non_null(ct_host(x, 4096, 0, &ro_at));
	priv_at = x->next_hmva;
	assert_non_null(ct_host(x, 4096, SPYRE_PTE_WRITE | SPYRE_PTE_PRIV, &priv_at));
	/* Past the end of what is mapped, on either side. */
	expect_fault(q, ct_cb_copy(SPYRE_CB_DMAI, end - 4096, at, 8192), SPYRE_HMI_STORE, end,
		     SPYRE_SYN_PAGE_FAULT);
	expect_fault(q, ct_cb_copy(SPYRE_CB_DMAO, at, DMVA - 0x200000, 128), SPYRE_HMI_LOAD,
		     DMVA - 0x200000, SPYRE_SYN_PAGE_FAULT);
	expect_fault(q, ct_cb_copy(SPYRE_CB_DMAI, DMVA, at + 4096, 8192), SPYRE_HMI_HOST_READ,
		     at + 8192, SPYRE_SYN_PAGE_FAULT);
	/* Rights, and pages that are the firmware's. */
	expect_fault(q, ct_cb_copy(SPYRE_CB_DMAO, ro_at, DMVA, 128), SPYRE_HMI_HOST_WRITE, ro_at,
		     SPYRE_SYN_PERMISSION);
	expect_fault(q, ct_cb_copy(SPYRE_CB_DMAO, priv_at, DMVA, 128), SPYRE_HMI_HOST_WRITE, priv_at,
		     SPYRE_SYN_PERMISSION);
	expect_fault(q, ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST, priv_at, 1),
		     SPYRE_HMI_HOST_WRITE, priv_at, SPYRE_SYN_PERMISSION);
	expect_fault(q, ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST, ro_at, 1),
		     SPYRE_HMI_HOST_WRITE, ro_at, SPYRE_SYN_PERMISSION);
	expect_fault(q, ct_cb_sync(SPYRE_CB_WAIT, 0, DMVA - 8, 1), SPYRE_HMI_LOAD, DMVA - 8,
		     SPYRE_SYN_PAGE_FAULT);
	/* Alignment and range. */
	expect_fault(q, ct_cb_fill(DMVA + 8, 128, 0), SPYRE_HMI_STORE, DMVA + 8, SPYRE_SYN_UNALIGNED);
	expect_fault(q, ct_cb_sync(SPYRE_CB_SIGNAL, 0, DMVA + 4, 0), SPYRE_HMI_STORE, DMVA + 4,
		     SPYRE_SYN_UNALIGNED);
	expect_fault(q, ct_cb_sync(SPYRE_CB_SIGNAL, SPYRE_CB_F_HOST, SPYRE_HMVA_SIZE, 0),
		     SPYRE_HMI_HOST_WRITE, SPYRE_HMVA_SIZE, SPYRE_SYN_RANGE);
	/* The context's other queue went to ERROR with it each time; the other context's never did. */
	assert_int_equal(ct_load(&sister->status->state), SPYRE_QUEUE_ERROR);
	assert_int_equal(ct_load(&sister->status->error), SPYRE_ERR_CANCELLED);
	reset(sister);
	run_ok(sister, ct_cb_copy(SPYRE_CB_DMAI, DMVA, at, 128));
	run_ok(other, ct_cb_fill(DMVA, 128, 0));
	/* Programs. */
	{
		struct spyre_cb cb = ct_cb(SPYRE_CB_COMPUTE, 0);

		cb.u.compute.bootaddr = DMVA;
		assert_int_equal(ct_run(q, &cb), SPYRE_ERR_BOOTADDR);
		assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &m, CT_TIMEOUT_MS), 0);
		assert_int_equal(((struct spyre_msg_ras *)(void *)m.body)->code, SPYRE_RAS_BOOTADDR);
		assert_int_equal(((struct spyre_msg_ras *)(void *)m.body)->addr, DMVA);
		reset(q);
		ct_map_card(x, SPYRE_PROGRAM_BASE, ct_pages(card, 1), 1, 0);
		cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE;
		assert_int_equal(ct_run(q, &cb), SPYRE_ERR_BAD_PROGRAM);
		reset(q);
	}
	/* A page that goes away while its context lives. */
	run_ok(q, ct_cb_copy(SPYRE_CB_DMAI, DMVA, at, 128));
	ct_unmap_host(x, at, 4096);
	expect_fault(q, ct_cb_copy(SPYRE_CB_DMAI, DMVA, at, 128), SPYRE_HMI_HOST_READ, at,
		     SPYRE_SYN_PAGE_FAULT);
	assert_int_equal(ct_load(&other->status->state), SPYRE_QUEUE_ACTIVE);
}

/* Entries full of noise: an error each, nothing else, and the queue works after a reset. */
static void test_noise(void **state)
{
	struct ct_ctx *x = context(1), *y = context(2);
	struct ct_queue *q = queue(x), *other = queue(y);
	unsigned int i, j, refused = 0;
	uint64_t at;

	(void)state;
	assert_non_null(ct_host(x, 4096, SPYRE_PTE_WRITE, &at));
	for (i = 0; i < 300; i++) {
		struct spyre_cb cb = ct_cb((uint16_t)(rnd() % SPYRE_CB_WAIT), (uint16_t)(rnd() % 8));
		uint8_t *bytes = (void *)&cb;
		const struct spyre_rb *rb;
		uint32_t e = 0, n = 1 + rnd() % 40;

		for (j = 0; j < n; j++) {
			unsigned int from = rnd() % 128, to = from + rnd() % (129 - from);

			for (; from < to; from++)
				bytes[from] = (uint8_t)rnd();
			/* No waits for what may never come. */
			if (cb.type == SPYRE_CB_WAIT)
				cb.type = SPYRE_CB_BATCH;
			cb.flags |= SPYRE_CB_F_RESPONSE;
			e = ct_put(q, &cb);
		}
		ct_submit(q);
		rb = ct_response(q, e, CT_TIMEOUT_MS);
		assert_non_null(rb);
		assert_int_equal(ct_wait(q, e, CT_TIMEOUT_MS), 0);
		if (ct_load(&q->status->state) == SPYRE_QUEUE_ERROR) {
			refused++;
			reset(q);
		}
		if (i % 50 == 0)
			run_ok(other, ct_cb(SPYRE_CB_NOP, 0));
	}
	assert_true(refused > 200);
	run_ok(q, ct_cb_copy(SPYRE_CB_DMAI, DMVA, at, 128));
	assert_int_equal(ct_load(&other->status->state), SPYRE_QUEUE_ACTIVE);
}

static void test_doorbells(void **state)
{
	struct ct_ctx *x = context(1);
	struct ct_queue *q = queue(x);
	uint32_t bad = ct_reg(card, SPYRE_REG_DB_BAD);
	struct spyre_msg ev;
	unsigned int i;

	(void)state;
	/* Pages of nobody, pages out of range, wrong widths and offsets, more than the FIFO holds. */
	for (i = 0; i < 20000; i++)
		spyre_card_db_write(card->card, (uint64_t)(rnd() % SPYRE_DB_PAGES) * 4096, rnd(), 4);
	spyre_card_db_write(card->card, (uint64_t)SPYRE_DB_PAGES * 4096, 1, 4);
	spyre_card_db_write(card->card, (uint64_t)q->id * 4096, 1, 8);
	spyre_card_db_write(card->card, (uint64_t)q->id * 4096 + 4, 1, 4);
	assert_true(ct_reg(card, SPYRE_REG_DB_BAD) - bad >= 2);
	run_ok(q, ct_cb(SPYRE_CB_NOP, 0));
	/* Values are only wake-ups: the tail is in the shadow word. */
	ct_ring(q, 0xdeadbeef);
	run_ok(q, ct_cb(SPYRE_CB_NOP, 0));
	/* That one is believed, and checked. */
	__atomic_store_n(&q->shadow->tail, q->tail + q->entries + 1, __ATOMIC_RELEASE);
	ct_ring(q, 0);
	assert_int_equal(ct_wait_state(q, SPYRE_QUEUE_ERROR, CT_TIMEOUT_MS), 0);
	assert_int_equal(ct_load(&q->status->error), SPYRE_ERR_QUEUE);
	assert_int_equal(ct_event(card, SPYRE_MSG_EVT_RAS, &ev, CT_TIMEOUT_MS), 0);
	assert_int_equal(((struct spyre_msg_ras *)(void *)ev.body)->code, SPYRE_RAS_QUEUE);
	reset(q);
	run_ok(q, ct_cb(SPYRE_CB_NOP, 0));
}

/* After the answer to a destroy the card touches nothing of the queue, whatever was under way. */
static void test_destroy_under_load(void **state)
{
	struct ct_ctx *x = context(1);
	struct ct_queue *other = queue(x);
	struct spyre_queue_status before;
	struct spyre_rb *copy;
	unsigned int i, j;
	uint64_t at;

	(void)state;
	assert_non_null(ct_host(x, 1 << 20, SPYRE_PTE_WRITE, &at));
	for (i = 0; i < 20; i++) {
		struct ct_queue *q = queue(x);
		struct spyre_cb cb;
		size_t bytes = q->entries * sizeof(*q->rb);

		for (j = 0; j < q->entries; j++) {
			cb = j % 3 ? ct_cb_copy(SPYRE_CB_DMAI, DMVA, at, 1 << 20) :
				     ct_cb_fill(DMVA + (2 << 20), 1 << 20, j);
			cb.flags = SPYRE_CB_F_RESPONSE;
			ct_put(q, &cb);
		}
		if (i % 4 == 3) {
			cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, at, ~0ull);
			q->ring[0] = cb;
		}
		ct_submit(q);
		usleep(rnd() % 2000);
		assert_int_equal(ct_queue_free(q), 0);
		copy = malloc(bytes);
		memcpy(copy, q->rb, bytes);
		memcpy(&before, q->status, sizeof(before));
		ct_ring(q, q->tail);
		run_ok(other, ct_cb(SPYRE_CB_NOP, 0));
		usleep(500);
		assert_memory_equal(copy, q->rb, bytes);
		assert_memory_equal(&before, q->status, sizeof(before));
		free(copy);
		/* Its block of pages is used up after 32 of them. */
		x->next_page--;
	}
	assert_int_equal(ct_load(&other->status->state), SPYRE_QUEUE_ACTIVE);
}

static void test_suspend_resume(void **state)
{
	struct ct_ctx *x = context(1);
	struct ct_queue *q = queue(x);
	struct spyre_cb cb = ct_cb(SPYRE_CB_NOP, 0);
	uint32_t e, done;
	int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		unsigned int j;

		for (j = 0; j < 100; j++)
			e = ct_put(q, &cb);
		ct_submit(q);
		assert_int_equal(ct_call_id(card, SPYRE_MSG_QUEUE_SUSPEND, q->id, 0), SPYRE_MSG_OK);
		assert_int_equal(ct_load(&q->status->state), SPYRE_QUEUE_SUSPENDED);
		done = ct_load(&q->status->done);
		ct_ring(q, q->tail);
		usleep(200);
		assert_int_equal(ct_load(&q->status->done), done);
		assert_int_equal(ct_call_id(card, SPYRE_MSG_QUEUE_RESUME, q->id, 0), SPYRE_MSG_OK);
		assert_int_equal(ct_wait(q, e, CT_TIMEOUT_MS), 0);
	}
}

static void test_ctx_reset(void **state)
{
	struct ct_ctx *x = context(1), *y = context(2);
	struct ct_queue *a = queue(x), *b = queue(x), *other = queue(y);
	struct spyre_cb cb;
	uint64_t at;
	int i;

	(void)state;
	assert_non_null(ct_host(x, 8 << 20, SPYRE_PTE_WRITE, &at));
	for (i = 0; i < 10; i++) {
		cb = ct_cb_copy(SPYRE_CB_DMAI, DMVA, at, 8 << 20);
		ct_put(a, &cb);
		ct_put(a, &cb);
		ct_submit(a);
		cb = ct_cb_sync(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, at, ~0ull);
		ct_put(b, &cb);
		ct_submit(b);
		usleep(rnd() % 1000);
		assert_int_equal(ct_call_id(card, SPYRE_MSG_CTX_RESET, 1, 0), SPYRE_MSG_OK);
		assert_int_equal(ct_load(&a->status->error), SPYRE_ERR_CANCELLED);
		assert_int_equal(ct_load(&b->status->error), SPYRE_ERR_CANCELLED);
		reset(a);
		reset(b);
		run_ok(a, ct_cb(SPYRE_CB_NOP, 0));
		run_ok(other, ct_cb(SPYRE_CB_NOP, 0));
	}
	assert_int_equal(ct_load(&other->status->state), SPYRE_QUEUE_ACTIVE);
}

/* --- Restart ---------------------------------------------------------------------------------- */

static void reboot(void)
{
	size_t size;
	void *image = ct_image(&size);

	assert_non_null(image);
	ct_set_reg(card, SPYRE_REG_MCU_CTRL, 0);
	/* Firmware counts its rings from 0. */
	ct_set_reg(card, SPYRE_REG_MBOX_CMD_TAIL, 0);
	ct_set_reg(card, SPYRE_REG_MBOX_EVT_HEAD, 0);
	card->cmd_tail = 0;
	card->evt_head = 0;
	memset(card->evt, 0, 64 * sizeof(*card->evt));
	memset(card->vec, 0, 256 * sizeof(*card->vec));
	assert_int_equal(ct_boot_image(card, image, size), 0);
	free(image);
}

static void test_shutdown_and_restart(void **state)
{
	struct ct_ctx *x = context(1);
	struct ct_queue *q = queue(x);
	unsigned int i;

	(void)state;
	run_ok(q, ct_cb_fill(DMVA, 128, 0x1111111111111111));
	assert_int_equal(ct_call(card, SPYRE_MSG_SHUTDOWN, NULL, 0, NULL), SPYRE_MSG_OK);
	for (i = 0; i < 2000 && ct_reg(card, SPYRE_REG_STATE) != SPYRE_STATE_OFFLINE; i++)
		usleep(1000);
	assert_int_equal(ct_reg(card, SPYRE_REG_STATE), SPYRE_STATE_OFFLINE);
	assert_int_equal(ct_load(&q->status->error), SPYRE_ERR_CANCELLED);
	reboot();
	x = context(1);
	q = queue(x);
	run_ok(q, ct_cb_fill(DMVA, 128, 0));
}

static void test_crash_and_restart(void **state)
{
	struct ct_queue *q;
	unsigned int i;

	(void)state;
	if (!(ct_reg(card, SPYRE_REG_CAPS) & SPYRE_CAP_FAULT_INJECT))
		skip();
	q = queue(context(1));
	run_ok(q, ct_cb(SPYRE_CB_NOP, 0));
	spyre_inproc_log(card->ip, SPYRE_LOG_ERROR, NULL, NULL);
	assert_int_equal(ct_call_id(card, SPYRE_MSG_INJECT, SPYRE_INJECT_CRASH, 0), SPYRE_MSG_OK);
	for (i = 0; i < 2000 && ct_reg(card, SPYRE_REG_STATE) != SPYRE_STATE_IN_ERROR; i++)
		usleep(1000);
	assert_int_equal(ct_reg(card, SPYRE_REG_STATE), SPYRE_STATE_IN_ERROR);
	assert_int_equal(ct_reg(card, SPYRE_REG_BOOT_STATUS), SPYRE_BOOT_CRASHED);
	reboot();
	q = queue(context(1));
	run_ok(q, ct_cb(SPYRE_CB_NOP, 0));
	/* A hang is seen by the heartbeat: nothing answers. */
	assert_int_equal(ct_call_id(card, SPYRE_MSG_INJECT, SPYRE_INJECT_HANG, 0), SPYRE_MSG_OK);
	assert_int_equal(ct_answer(card, ct_send(card, SPYRE_MSG_GET_INFO, NULL, 0), NULL, 300),
			 -ETIMEDOUT);
	reboot();
	assert_int_equal(ct_call(card, SPYRE_MSG_GET_INFO, NULL, 0, NULL), SPYRE_MSG_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_boot, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mailbox_retry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_images, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_faults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_noise, setup, teardown),
		cmocka_unit_test_setup_teardown(test_doorbells, setup, teardown),
		cmocka_unit_test_setup_teardown(test_destroy_under_load, setup, teardown),
		cmocka_unit_test_setup_teardown(test_suspend_resume, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ctx_reset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shutdown_and_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crash_and_restart, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
