// SPDX-License-Identifier: MIT
/*
 * The firmware's own sources, compiled for the host, against a mock of the bus: every state it can be
 * in, in one thread and by a clock that the test moves.
 */
#include "fw_mock.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARM(ctx)	(MOCK_BASE + 0x40000 + (ctx) * 256ull)
#define USAGE(ctx)	(ARM(ctx) + 128)
#define TABLE(ctx)	(MOCK_BASE + 0x60000 + (ctx) * 512ull)
#define FENCES		(MOCK_BASE + 0x90000)
#define QUEUES		(MOCK_BASE + 0x100000)	/* 64 KiB each */
#define VEC_RING	(MOCK_BASE + 0x20000)

#define ENTRIES		64u

/* A queue's memory: ring, responses, shadow, status. */
struct mq {
	u32 id, tail;
	struct spyre_cb *ring;
	struct spyre_rb *rb;
	struct spyre_shadow *shadow;
	struct spyre_queue_status *st;
	struct spyre_msg_queue msg;
};

static struct mq mq_at(u32 slot, u32 page, u32 context, u32 priority)
{
	u64 at = QUEUES + slot * 0x10000ull;
	struct mq q = { .id = page };

	q.ring = mock_at(at);
	q.rb = mock_at(at + 0x4000);
	q.shadow = mock_at(at + 0x8000);
	q.st = mock_at(at + 0x9000);
	q.msg = (struct spyre_msg_queue){
		.id = page, .context = context, .entries = ENTRIES, .priority = priority,
		.ring = at, .response = at + 0x4000, .shadow = at + 0x8000, .status = at + 0x9000,
		.generation = 7,
	};
	return q;
}

static int ctx_create(u32 id)
{
	struct spyre_msg_ctx m = { .id = id, .vector = 1, .table = TABLE(id), .arm = ARM(id),
				   .usage = USAGE(id) };

	return mock_call(SPYRE_MSG_CTX_CREATE, &m, sizeof(m));
}

static struct mq mq_new(u32 slot, u32 page, u32 context, u32 priority)
{
	struct mq q = mq_at(slot, page, context, priority);

	assert_int_equal(mock_call(SPYRE_MSG_QUEUE_CREATE, &q.msg, sizeof(q.msg)), SPYRE_MSG_OK);
	return q;
}

static u32 put(struct mq *q, struct spyre_cb cb)
{
	cb.cookie = 0xc000 + q->tail;
	q->ring[q->tail % ENTRIES] = cb;
	return q->tail++;
}

/* As a user does it: shadow, and a doorbell where the card asks for one. */
static void submit(struct mq *q)
{
	u32 old = q->shadow->tail;

	q->shadow->tail = q->tail;
	if ((u32)(q->tail - q->st->event_idx - 1) < (u32)(q->tail - old))
		mock_doorbell(q->id, q->tail);
}

static struct spyre_cb cb_of(u32 type, u32 flags)
{
	struct spyre_cb cb;

	memset(&cb, 0, sizeof(cb));
	cb.type = (u16)type;
	cb.flags = (u16)flags;
	if (type == SPYRE_CB_DMAI || type == SPYRE_CB_DMAO || type == SPYRE_CB_DMAX) {
		cb.u.dma.ndims = 1;
		cb.u.dma.bytes = 128;
	} else if (type == SPYRE_CB_FILL) {
		cb.u.fill.bytes = 128;
	} else if (type == SPYRE_CB_COMPUTE) {
		cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE;
	}
	return cb;
}

static struct spyre_cb sync_cb(u32 type, u32 flags, u64 addr, u64 value)
{
	struct spyre_cb cb = cb_of(type, flags);

	cb.u.sync.addr = addr;
	cb.u.sync.value = value;
	return cb;
}

static int id_call(u32 type, u32 id, u32 arg)
{
	struct spyre_msg_id m = { id, arg };

	return mock_call(type, &m, sizeof(m));
}

static int setup(void **state)
{
	(void)state;
	mock.cores_good = 0;
	mock.memory_result = 0;
	mock.soc_hz = 0;
	if (mock_boot())
		return -1;
	mock_run();
	return ctx_create(1) || ctx_create(2);
}

/* --- Boot and mailbox ----------------------------------------------------------------------- */

static void test_boot(void **state)
{
	struct spyre_msg ev;
	struct spyre_msg_info *info = (void *)ev.body;
	u32 tag;

	(void)state;
	mock.cores_good = ~0u & ~(1u << 5);
	assert_int_equal(mock_boot(), 0);
	mock_run();
	assert_int_equal(mock.reg[MCU_STATE / 4], SPYRE_STATE_ONLINE);
	assert_int_equal(mock.reg[MCU_BOOT_PROGRESS / 4], SPYRE_PROGRESS_ONLINE);
	assert_int_equal(mock.reg[MCU_FW_VERSION / 4], SPYRE_PROTO_MAJOR << 16 | SPYRE_PROTO_MINOR);
	assert_true(mock.raised[0] >= 1);
	assert_true(mock.heartbeats >= 1);
	assert_int_equal(mock_events(SPYRE_MSG_EVT_RAS, &ev), 1);
	assert_int_equal(((struct spyre_msg_ras *)(void *)ev.body)->code,
			 SPYRE_RAS_CORE_UNAVAILABLE);
	assert_int_equal(((struct spyre_msg_ras *)(void *)ev.body)->err_code, 5);
	assert_int_equal(mock_events(SPYRE_MSG_EVT_STATE, NULL), 1);
	tag = mock_send(SPYRE_MSG_GET_INFO, NULL, 0);
	mock_run();
	assert_int_equal(mock_answer(tag, &ev), SPYRE_MSG_OK);
	assert_int_equal(info->cores, ~0u & ~(1u << 5));
	assert_int_equal(info->engines[MCU_ENGINE_DMI], 2);
	assert_int_equal(info->engines[MCU_ENGINE_COMPUTE], 1);
	assert_int_equal(info->queues, FW_QUEUES);
	assert_string_equal((char *)info->version, FW_VERSION);

	mock.memory_result = 2;
	assert_int_not_equal(mock_boot(), 0);
	assert_int_equal(mock.reg[MCU_STATE / 4], SPYRE_STATE_IN_ERROR);
	assert_int_equal(mock.reg[MCU_BOOT_PROGRESS / 4],
			 SPYRE_PROGRESS_FAILED | SPYRE_PROGRESS_MEMORY_TEST);
}

static void test_messages(void **state)
{
	static const u32 length[] = { 0, 0, 32, 8, 32, 8, 64, 8, 8, 8, 8, 8, 0, 8, 8, 8, 16, 8, 8, 0,
				      8, 0 };
	struct spyre_msg_time t = { .host_ns = 12345 };
	struct spyre_msg ev;
	u32 type, tag;

	(void)state;
	for (type = 1; type <= SPYRE_MSG_GET_ENGINES; type++) {
		assert_int_equal(mock_call(type, NULL, length[type] + 4), SPYRE_MSG_ERR_LENGTH);
		assert_int_equal(mock_call(type, NULL, 0xffffffff), SPYRE_MSG_ERR_LENGTH);
		if (length[type])
			assert_int_equal(mock_call(type, NULL, 0), SPYRE_MSG_ERR_LENGTH);
	}
	assert_int_equal(mock_call(0, NULL, 0), SPYRE_MSG_ERR_TYPE);
	assert_int_equal(mock_call(SPYRE_MSG_GET_ENGINES + 1, NULL, 0), SPYRE_MSG_ERR_TYPE);
	assert_int_equal(mock_call(0xffff, NULL, 0), SPYRE_MSG_ERR_TYPE);
	assert_int_equal(mock_events(SPYRE_MSG_EVT_RAS, &ev), 3);
	assert_int_equal(((struct spyre_msg_ras *)(void *)ev.body)->code,
			 SPYRE_RAS_UNSUPPORTED_MSG);
	tag = mock_send(SPYRE_MSG_TIME_SYNC, &t, sizeof(t));
	mock_run();
	assert_int_equal(mock_answer(tag, &ev), SPYRE_MSG_OK);
	assert_int_equal(((struct spyre_msg_time *)(void *)ev.body)->host_ns, 12345);
	assert_int_equal(((struct spyre_msg_time *)(void *)ev.body)->soc, mock.time);
	assert_int_equal(mock_call(SPYRE_MSG_GET_TELEMETRY, NULL, 0), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_SET_LIMIT, 0, 30000), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_SET_LIMIT, 0, 1), SPYRE_MSG_ERR_ARG);
	assert_int_equal(id_call(SPYRE_MSG_SET_LIMIT, 3, 30000), SPYRE_MSG_ERR_ARG);
	assert_int_equal(id_call(SPYRE_MSG_SET_LOG_LEVEL, 0, 3), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_SET_LOG_LEVEL, 0, 4), SPYRE_MSG_ERR_ARG);
	assert_int_equal(id_call(SPYRE_MSG_SET_LOG_LEVEL, 0, 2), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_DIAG, 0, 0), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_DIAG, 0, 2), SPYRE_MSG_ERR_ARG);
	assert_int_equal(id_call(SPYRE_MSG_DUMP_STATE, ~0u, 0), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_DUMP_STATE, 9, 0), SPYRE_MSG_ERR_ID);
	assert_int_equal(id_call(SPYRE_MSG_INJECT, 99, 0), SPYRE_MSG_ERR_ARG);
	/* From somebody else, or for a function that is not there. */
	{
		struct spyre_msg *m;

		tag = mock_send(SPYRE_MSG_GET_INFO, NULL, 0);
		m = mock_at(MOCK_BASE + 0x1000 + (tag - 1000) % 256 * sizeof(*m));
		m->MessageAppId = SPYRE_APP_FW;
		mock_run();
		assert_int_equal(mock_answer(tag, NULL), SPYRE_MSG_ERR_ARG);
		tag = mock_send(SPYRE_MSG_GET_INFO, NULL, 0);
		m = mock_at(MOCK_BASE + 0x1000 + (tag - 1000) % 256 * sizeof(*m));
		m->VfId = 1;
		mock_run();
		assert_int_equal(mock_answer(tag, NULL), SPYRE_MSG_ERR_ARG);
	}
	/* A tail that lies about the ring takes nothing and breaks nothing. */
	mock.host_reg[SPYRE_REG_MBOX_CMD_TAIL / 4] += 100000;
	mock.irq |= MCU_IRQ_MBOX;
	mock_run();
	mock.host_reg[SPYRE_REG_MBOX_CMD_TAIL / 4] -= 100000;
	assert_int_equal(mock_call(SPYRE_MSG_GET_INFO, NULL, 0), SPYRE_MSG_OK);
}

static void test_contexts(void **state)
{
	struct spyre_msg_ctx m = { .id = 3, .vector = 1, .table = TABLE(3), .arm = ARM(3),
				   .usage = USAGE(3) };
	struct spyre_msg_ctx bad;

	(void)state;
	assert_int_equal(ctx_create(1), SPYRE_MSG_ERR_ID);
	assert_int_equal(ctx_create(0), SPYRE_MSG_ERR_ID);
	bad = m;
	bad.id = 256;
	assert_int_equal(mock_call(SPYRE_MSG_CTX_CREATE, &bad, sizeof(m)), SPYRE_MSG_ERR_ID);
	bad = m;
	bad.vector = 8;
	assert_int_equal(mock_call(SPYRE_MSG_CTX_CREATE, &bad, sizeof(m)), SPYRE_MSG_ERR_ARG);
	bad.vector = 2;	/* no ring */
	assert_int_equal(mock_call(SPYRE_MSG_CTX_CREATE, &bad, sizeof(m)), SPYRE_MSG_ERR_ARG);
	bad = m;
	bad.arm = 64;
	assert_int_equal(mock_call(SPYRE_MSG_CTX_CREATE, &bad, sizeof(m)), SPYRE_MSG_ERR_FAULT);
	bad = m;
	bad.usage = 64;
	assert_int_equal(mock_call(SPYRE_MSG_CTX_CREATE, &bad, sizeof(m)), SPYRE_MSG_ERR_FAULT);
	bad = m;
	bad.table = MOCK_BASE + MOCK_SIZE;
	assert_int_equal(mock_call(SPYRE_MSG_CTX_CREATE, &bad, sizeof(m)), SPYRE_MSG_ERR_FAULT);
	bad.table = 64;
	assert_int_equal(mock_call(SPYRE_MSG_CTX_CREATE, &bad, sizeof(m)), SPYRE_MSG_ERR_ARG);
	assert_int_equal(mock_call(SPYRE_MSG_CTX_CREATE, &m, sizeof(m)), SPYRE_MSG_OK);
	assert_int_equal(mock_call(SPYRE_MSG_CTX_TABLES, &m, sizeof(m)), SPYRE_MSG_OK);
	assert_int_equal(mock.ctx_invalidate[3], 1);
	assert_int_equal(id_call(SPYRE_MSG_CTX_INVALIDATE, 3, 0), SPYRE_MSG_OK);
	assert_int_equal(mock.ctx_invalidate[3], 2);
	assert_int_equal(id_call(SPYRE_MSG_CTX_INVALIDATE, 4, 0), SPYRE_MSG_ERR_ID);
	mq_new(0, 48, 3, 1);
	assert_int_equal(id_call(SPYRE_MSG_CTX_DESTROY, 3, 0), SPYRE_MSG_ERR_BUSY);
	/* Diagnostics run beside queues that cannot start anything. */
	assert_int_equal(id_call(SPYRE_MSG_DIAG, 0, 0), SPYRE_MSG_ERR_BUSY);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_SUSPEND, 48, 0), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_DIAG, 0, 0), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_RESUME, 48, 0), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_DIAG, 0, 0), SPYRE_MSG_ERR_BUSY);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_DESTROY, 48, 0), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_CTX_DESTROY, 3, 0), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_CTX_DESTROY, 3, 0), SPYRE_MSG_ERR_ID);
}

static int create_with(struct spyre_msg_queue m)
{
	return mock_call(SPYRE_MSG_QUEUE_CREATE, &m, sizeof(m));
}

static void test_queue_create(void **state)
{
	struct spyre_msg_queue good = mq_at(0, 16, 1, 1).msg;
	struct spyre_msg_queue m;

	(void)state;
#define BAD(change, status) do { m = good; change; assert_int_equal(create_with(m), status); } while (0)
	BAD(m.id = SPYRE_DB_PAGES, SPYRE_MSG_ERR_ID);
	BAD(m.id = 0xffffffff, SPYRE_MSG_ERR_ID);
	BAD(m.context = 0, SPYRE_MSG_ERR_ID);
	BAD(m.context = 9, SPYRE_MSG_ERR_ID);
	BAD(m.context = 0x10001, SPYRE_MSG_ERR_ID);
	BAD(m.entries = 32, SPYRE_MSG_ERR_ARG);
	BAD(m.entries = 96, SPYRE_MSG_ERR_ARG);
	BAD(m.entries = 131072, SPYRE_MSG_ERR_ARG);
	BAD(m.priority = 4, SPYRE_MSG_ERR_ARG);
	BAD(m.priority = SPYRE_QUEUE_KERNEL | 1, SPYRE_MSG_ERR_ARG);
	BAD(m.ring += 128, SPYRE_MSG_ERR_ARG);
	BAD(m.response += 64, SPYRE_MSG_ERR_ARG);
	BAD(m.shadow += 4, SPYRE_MSG_ERR_ARG);
	BAD(m.status += 8, SPYRE_MSG_ERR_ARG);
	BAD(m.ring = 0x1000, SPYRE_MSG_ERR_FAULT);
	BAD(m.response = 0x1000, SPYRE_MSG_ERR_FAULT);
	BAD(m.shadow = 0x1000, SPYRE_MSG_ERR_FAULT);
	BAD(m.status = 0x1000, SPYRE_MSG_ERR_FAULT);
	BAD(m.entries = 65536, SPYRE_MSG_ERR_FAULT);	/* reaches beyond the memory */
#undef BAD
	assert_int_equal(create_with(good), SPYRE_MSG_OK);
	assert_int_equal(create_with(good), SPYRE_MSG_ERR_ID);
	/* Another context's block of doorbell pages. */
	m = mq_at(1, 17, 2, 1).msg;
	assert_int_equal(create_with(m), SPYRE_MSG_ERR_ARG);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_PRIORITY, 16, 3), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_PRIORITY, 16, 4), SPYRE_MSG_ERR_ARG);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_PRIORITY, 17, 1), SPYRE_MSG_ERR_ID);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_DESTROY, 17, 0), SPYRE_MSG_ERR_ID);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_DESTROY, 16, 0), SPYRE_MSG_OK);
	/* The block is free again. */
	assert_int_equal(create_with(m), SPYRE_MSG_OK);
}

static void test_queue_limit(void **state)
{
	struct spyre_msg_queue m = mq_at(0, 0, 1, 1).msg;
	u32 i;

	(void)state;
	for (i = 0; i < FW_QUEUES; i++) {
		m.id = i;
		assert_int_equal(create_with(m), SPYRE_MSG_OK);
	}
	m.id = i;
	assert_int_equal(create_with(m), SPYRE_MSG_ERR_LIMIT);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_DESTROY, 1234, 0), SPYRE_MSG_OK);
	assert_int_equal(create_with(m), SPYRE_MSG_OK);
	/* All of them fail and are reset together: the backlog keeps every answer. */
	assert_int_equal(id_call(SPYRE_MSG_CTX_RESET, 1, 0), SPYRE_MSG_OK);
	for (i = 0; i < FW_QUEUES; i++)
		if (i != 1234)
			assert_int_equal(id_call(SPYRE_MSG_QUEUE_DESTROY, i, 0), SPYRE_MSG_OK);
}

/* --- Order, responses, interrupts ------------------------------------------------------------ */

static void test_nops(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	u32 i, lap;

	(void)state;
	mock_run();
	assert_int_equal(q.st->generation, 7);
	assert_int_equal(q.st->state, SPYRE_QUEUE_ACTIVE);
	for (lap = 0; lap < 5; lap++) {
		for (i = 0; i < 50; i++)
			put(&q, cb_of(SPYRE_CB_NOP, i & 1 ? SPYRE_CB_F_RESPONSE : 0));
		submit(&q);
		mock_run();
		assert_int_equal(q.st->fetched, q.tail);
		assert_int_equal(q.st->done, q.tail);
		for (i = q.tail - 50; i != q.tail; i++) {
			if (i & 1) {
				assert_int_equal(q.rb[i % ENTRIES].valid, i + 1);
				assert_int_equal(q.rb[i % ENTRIES].cookie, 0xc000 + i);
				assert_int_equal(q.rb[i % ENTRIES].status, SPYRE_OK);
			}
		}
		/* Idle: a doorbell is asked for at exactly this tail. */
		assert_int_equal(q.st->event_idx, q.tail);
	}
	idle();
	assert_int_equal(((struct spyre_usage *)mock_at(USAGE(1)))->cbs, 250);
}

static void test_barrier_and_order(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);

	(void)state;
	put(&q, cb_of(SPYRE_CB_COMPUTE, SPYRE_CB_F_RESPONSE));		/* 0: compute */
	put(&q, cb_of(SPYRE_CB_DMAI, SPYRE_CB_F_RESPONSE));		/* 1: beside it */
	put(&q, cb_of(SPYRE_CB_NOP, 0));				/* 2: at once */
	put(&q, cb_of(SPYRE_CB_DMAI, SPYRE_CB_F_BARRIER));		/* 3: after all */
	put(&q, sync_cb(SPYRE_CB_SIGNAL, 0, FENCES, 5));		/* 4 */
	put(&q, cb_of(SPYRE_CB_DMAI, 0));				/* 5 */
	put(&q, sync_cb(SPYRE_CB_TIMESTAMP, 0, FENCES + 8, 0));		/* 6: when 5 is done */
	submit(&q);
	mock_run();
	assert_true(mock.engine[5].busy && mock.engine[0].busy && !mock.engine[1].busy);
	assert_int_equal(q.st->done, 0);
	mock_finish(0, SPYRE_OK, 100);
	mock_run();
	/* Its response is there, done waits for entry 0. */
	assert_int_equal(q.rb[1].valid, 2);
	assert_int_equal(q.rb[1].cookie, 0xc001);
	assert_int_equal(q.st->done, 0);
	assert_false(mock.engine[0].busy || mock.engine[1].busy);
	mock_finish(5, SPYRE_OK, 100);
	mock_run();
	assert_int_equal(q.st->done, 3);
	assert_true(mock.engine[0].busy);
	assert_int_equal(*(u64 *)mock_at(FENCES), 0);
	mock_finish(0, SPYRE_OK, 100);
	mock_run();
	assert_int_equal(*(u64 *)mock_at(FENCES), 5);
	assert_int_equal(q.st->last_fence, 5);
	assert_int_equal(q.st->done, 5);
	assert_int_equal(*(u64 *)mock_at(FENCES + 8), 0);
	mock.time += 1000;
	mock_finish(0, SPYRE_OK, 100);
	mock_run();
	assert_int_equal(*(u64 *)mock_at(FENCES + 8), mock.time);
	assert_int_equal(q.st->done, 7);
}

/* Engines of a kind run beside each other, start order within the queue is kept. */
static void test_two_engines(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	u32 i;

	(void)state;
	for (i = 0; i < 40; i++)
		put(&q, cb_of(SPYRE_CB_DMAO, 0));
	submit(&q);
	mock_run();
	for (i = 0; i < 20; i++) {
		struct spyre_cb *a = (void *)mock.engine[2].job.cb;
		struct spyre_cb *b = (void *)mock.engine[3].job.cb;

		assert_true(mock.engine[2].busy && mock.engine[3].busy);
		assert_int_equal(a->cookie + b->cookie, 2 * 0xc000 + 4 * i + 1);
		/* The later one first. */
		mock_finish(a->cookie > b->cookie ? 2 : 3, SPYRE_OK, 10);
		if (i == 19)
			break;
		mock_run();
		assert_int_equal(q.st->done, 2 * i);
		mock_finish(a->cookie == 0xc000 + 2 * i ? 2 : 3, SPYRE_OK, 10);
		mock_run();
	}
}

static u32 find_store(u64 addr, u32 from)
{
	u32 i;

	for (i = from; i < mock.traced; i++)
		if (mock.trace[i].addr == addr)
			return i;
	fail_msg("nothing was stored at %#llx", (unsigned long long)addr);
	return 0;
}

/* Response block (valid last), fence, status, vector ring, interrupt. */
static void test_visibility_order(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct spyre_vec_event *e = mock_at(VEC_RING);
	u32 body, valid, fence, last, status, ring, raise;

	(void)state;
	mock_run();
	*(u32 *)mock_at(ARM(1)) = 77;
	put(&q, sync_cb(SPYRE_CB_SIGNAL, SPYRE_CB_F_RESPONSE | SPYRE_CB_F_INTERRUPT, FENCES, 9));
	mock.traced = 0;
	submit(&q);
	mock_run();
	body = find_store(q.msg.response, 0);
	valid = find_store(q.msg.response + 124, 0);
	fence = find_store(FENCES, 0);
	last = find_store(q.msg.status + 16, 0);
	status = find_store(q.msg.status, 0);
	ring = find_store(VEC_RING + 8, 0);
	raise = find_store(~0ull, 0);
	assert_true(body < valid && valid < fence && fence < last && last < status);
	assert_true(status < ring && ring < raise);
	assert_int_equal(mock.trace[fence].len, 8);
	assert_int_equal(mock.trace[status].len, 8);
	assert_int_equal(mock.raised[1], 1);
	assert_int_equal(e->context, 1);
	assert_int_equal(e->arm, 77);
	assert_int_equal(e->seq, 1);
	/* Not armed again: progress, but no interrupt. */
	put(&q, sync_cb(SPYRE_CB_SIGNAL, SPYRE_CB_F_INTERRUPT, FENCES, 10));
	submit(&q);
	mock_run();
	assert_int_equal(*(u64 *)mock_at(FENCES), 10);
	assert_int_equal(mock.raised[1], 1);
	*(u32 *)mock_at(ARM(1)) = 78;
	put(&q, cb_of(SPYRE_CB_NOP, 0));
	submit(&q);
	mock_run();
	assert_int_equal(mock.raised[1], 2);
	assert_int_equal(e[1].arm, 78);
	assert_int_equal(e[1].seq, 2);
}

/* A SIGNAL that cannot be stored leaves neither fence nor a good response. */
static void test_signal_fault(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct mq other = mq_new(1, 17, 1, 1);
	struct mq stranger = mq_new(2, 32, 2, 1);
	struct spyre_msg ev;
	struct spyre_msg_ras *ras = (void *)ev.body;
	u32 i;

	(void)state;
	mock.readonly = FENCES;
	mock.readonly_end = FENCES + 64;
	put(&q, sync_cb(SPYRE_CB_SIGNAL, SPYRE_CB_F_RESPONSE | SPYRE_CB_F_HOST, FENCES, 9));
	put(&q, cb_of(SPYRE_CB_NOP, 0));
	put(&q, cb_of(SPYRE_CB_DMAI, 0));
	mock.traced = 0;
	submit(&q);
	mock_run();
	for (i = 0; i < mock.traced; i++)
		assert_false(mock.trace[i].addr == q.msg.response + 32 && !mock.trace[i].value);
	assert_int_equal(q.rb[0].status, SPYRE_ERR_FAULT);
	assert_int_equal(q.rb[0].rb_hmierr_mode, SPYRE_HMI_HOST_WRITE);
	assert_int_equal(q.rb[0].rb_hmierr_addr, FENCES);
	assert_int_equal(q.rb[0].rb_hmierr_syndrome, SPYRE_SYN_PERMISSION);
	assert_int_equal(q.rb[0].valid, 1);
	assert_int_equal(q.rb[1].status, SPYRE_ERR_CANCELLED);
	assert_int_equal(q.rb[1].cookie, 0xc001);
	assert_int_equal(q.rb[2].status, SPYRE_ERR_CANCELLED);
	assert_int_equal(q.rb[2].valid, 3);
	assert_int_equal(q.st->state, SPYRE_QUEUE_ERROR);
	assert_int_equal(q.st->error, SPYRE_ERR_FAULT);
	assert_int_equal(q.st->error_entry, 0);
	assert_int_equal(q.st->done, 3);
	/* The context is at fault, others are not. */
	assert_int_equal(other.st->state, SPYRE_QUEUE_ERROR);
	assert_int_equal(other.st->error, SPYRE_ERR_CANCELLED);
	assert_int_equal(stranger.st->state, SPYRE_QUEUE_ACTIVE);
	assert_int_equal(mock_events(SPYRE_MSG_EVT_RAS, &ev), 1);
	assert_int_equal(ras->code, SPYRE_RAS_SOFT_FAIL);
	assert_int_equal(ras->queue, 16);
	assert_int_equal(ras->cookie, 0xc000);
	assert_int_equal(ras->addr, FENCES);
	assert_int_equal(mock_events(SPYRE_MSG_EVT_QUEUE_ERROR, NULL), 2);
	/* What comes later is cancelled too, until the reset. */
	put(&q, cb_of(SPYRE_CB_NOP, 0));
	submit(&q);
	mock_run();
	assert_int_equal(q.rb[3].status, SPYRE_ERR_CANCELLED);
	assert_int_equal(q.st->done, 4);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_RESET, 16, 0), SPYRE_MSG_OK);
	assert_int_equal(q.st->state, SPYRE_QUEUE_ACTIVE);
	assert_int_equal(q.st->error, 0);
	put(&q, cb_of(SPYRE_CB_NOP, SPYRE_CB_F_RESPONSE));
	submit(&q);
	mock_run();
	assert_int_equal(q.rb[4].status, SPYRE_OK);
	assert_int_equal(q.st->done, 5);
}

static void test_job_failure(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct spyre_msg ev;
	struct spyre_msg_ras *ras = (void *)ev.body;
	u32 i;

	(void)state;
	put(&q, cb_of(SPYRE_CB_COMPUTE, 0));
	put(&q, cb_of(SPYRE_CB_DMAI, SPYRE_CB_F_RESPONSE));
	put(&q, cb_of(SPYRE_CB_DMAO, SPYRE_CB_F_BARRIER));
	submit(&q);
	mock_run();
	for (i = 0; i < 70; i++)
		mock.stuck[i] = (struct spyre_stuck){ .core = (u8)i, .pc = i };
	mock.stuck_put = 70;
	mock_finish(5, SPYRE_ERR_DEADLOCK, 500);
	mock_run();
	/* Failures always have a response; what runs beside goes on to its own end. */
	assert_int_equal(q.rb[0].status, SPYRE_ERR_DEADLOCK);
	assert_int_equal(q.st->error, SPYRE_ERR_DEADLOCK);
	assert_true(mock.engine[0].busy);
	mock_finish(0, SPYRE_OK, 10);
	mock_run();
	assert_int_equal(q.rb[1].status, SPYRE_OK);
	assert_int_equal(q.rb[2].status, SPYRE_ERR_CANCELLED);
	assert_int_equal(q.st->done, 3);
	assert_int_equal(q.st->error_entry, 0);
	/* 70 stuck units: 16 records of four at most. */
	assert_int_equal(mock_events(SPYRE_MSG_EVT_RAS, &ev), 16);
	assert_int_equal(ras->code, SPYRE_RAS_DEADLOCK);
	assert_int_equal(ras->err_pc, 60);
	assert_int_equal(ras->stuck[3].core, 63);
	/* All were taken: the next deadlock starts with its own. */
	assert_int_equal(mock.stuck_got, 70);
}

static void test_timeouts(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct spyre_cb cb = cb_of(SPYRE_CB_COMPUTE, SPYRE_CB_F_RESPONSE);

	(void)state;
	cb.timeout = 1000;
	put(&q, cb);
	put(&q, cb);
	submit(&q);
	mock_run();
	mock_finish(5, SPYRE_OK, 1000);
	mock_run();
	assert_int_equal(q.rb[0].status, SPYRE_OK);
	/* A slow host is no timeout. */
	mock.time += 1000000000;
	mock_finish(5, SPYRE_OK, 1001);
	mock_run();
	assert_int_equal(q.rb[1].status, SPYRE_ERR_TIMEOUT);
	assert_int_equal(q.st->error, SPYRE_ERR_TIMEOUT);
}

/* --- Waits ----------------------------------------------------------------------------------- */

static void test_wait_signal(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct mq s = mq_new(1, 17, 1, 1);
	struct mq far = mq_new(2, 32, 2, 1);

	(void)state;
	put(&q, sync_cb(SPYRE_CB_WAIT, 0, FENCES, 3));
	put(&q, cb_of(SPYRE_CB_NOP, 0));
	submit(&q);
	put(&far, sync_cb(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, FENCES, 3));
	submit(&far);
	mock_run();
	assert_int_equal(q.st->parked, 1);
	assert_int_equal(q.st->done, 0);
	assert_int_equal(q.st->state, SPYRE_QUEUE_ACTIVE);
	/* Not enough. */
	put(&s, sync_cb(SPYRE_CB_SIGNAL, 0, FENCES, 2));
	submit(&s);
	mock_run();
	assert_int_equal(q.st->parked, 1);
	put(&s, sync_cb(SPYRE_CB_SIGNAL, 0, FENCES, 3));
	submit(&s);
	mock_run();
	assert_int_equal(q.st->parked, 0);
	assert_int_equal(q.st->done, 2);
	/* The same word by another name: within the sweep, for which the core wakes. */
	assert_int_equal(far.st->parked, 1);
	idle();
	assert_true(mock.timecmp <= mock.time + FW_SWEEP);
	mock.time += FW_SWEEP;
	mock_run();
	assert_int_equal(far.st->parked, 0);
	assert_int_equal(far.st->done, 1);
}

static void test_wait_doorbell_and_polling(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct mq idle_one = mq_new(1, 20, 1, 1);
	u64 *word = mock_at(FENCES);
	u32 i;

	(void)state;
	put(&q, sync_cb(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, FENCES, 1));
	put(&q, sync_cb(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, FENCES, 2));
	submit(&q);
	mock_run();
	assert_int_equal(q.st->parked, 1);
	*word = 1;
	mock_run();
	assert_int_equal(q.st->done, 0);
	/* Any page of the context, here one of another queue. */
	mock_doorbell(idle_one.id, 0);
	mock_run();
	assert_int_equal(q.st->done, 1);
	assert_int_equal(q.st->parked, 1);
	/* Nobody rings: found by polling, at most FW_WAIT_MAX later, and not busily. */
	for (i = 0; i < 20; i++) {
		idle();
		assert_true(mock.timecmp > mock.time && mock.timecmp <= mock.time + FW_WAIT_MAX);
		mock.time = mock.timecmp;
		mock_run();
	}
	idle();
	assert_int_equal(mock.timecmp, mock.time + FW_WAIT_MAX);
	*word = ~0ull;
	mock.time = mock.timecmp;
	mock_run();
	assert_int_equal(q.st->done, 2);
	assert_int_equal(q.st->parked, 0);
	/* Nothing left to wake for. */
	idle();
	assert_true(mock.timecmp == ~0ull);
}

static void test_wait_timeout(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct spyre_cb cb = sync_cb(SPYRE_CB_WAIT, SPYRE_CB_F_HOST, FENCES, 1);

	(void)state;
	cb.timeout = 12345678;
	put(&q, cb);
	put(&q, cb_of(SPYRE_CB_NOP, 0));
	submit(&q);
	mock_run();
	mock.time += 12345677;
	mock_run();
	assert_int_equal(q.st->parked, 1);
	mock.time += 1;
	mock_run();
	assert_int_equal(q.st->parked, 0);
	assert_int_equal(q.rb[0].status, SPYRE_ERR_TIMEOUT);
	assert_int_equal(q.rb[1].status, SPYRE_ERR_CANCELLED);
	/* A reset ends a WAIT too. */
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_RESET, 16, 0), SPYRE_MSG_OK);
	cb.timeout = 0;
	put(&q, cb);
	submit(&q);
	mock_run();
	assert_int_equal(q.st->parked, 1);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_RESET, 16, 0), SPYRE_MSG_OK);
	assert_int_equal(q.st->parked, 0);
	assert_int_equal(q.rb[2].status, SPYRE_ERR_CANCELLED);
	assert_int_equal(q.st->done, 3);
	/* And an unreadable word is a fault. */
	put(&q, sync_cb(SPYRE_CB_WAIT, 0, 0x1000, 1));
	submit(&q);
	mock_run();
	assert_int_equal(q.rb[3].status, SPYRE_ERR_FAULT);
	assert_int_equal(q.rb[3].rb_hmierr_mode, SPYRE_HMI_LOAD);
}

/* --- Commands on busy queues ------------------------------------------------------------------ */

static void test_destroy_in_flight(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct mq other = mq_new(1, 17, 1, 1);
	struct spyre_msg_id m = { 16, 0 };
	u32 tag, again;

	(void)state;
	put(&q, cb_of(SPYRE_CB_COMPUTE, 0));
	put(&q, cb_of(SPYRE_CB_COMPUTE, 0));
	submit(&q);
	put(&other, cb_of(SPYRE_CB_DMAI, SPYRE_CB_F_RESPONSE));
	submit(&other);
	mock_run();
	tag = mock_send(SPYRE_MSG_QUEUE_DESTROY, &m, sizeof(m));
	mock_run();
	assert_int_equal(mock_answer(tag, NULL), -1);
	again = mock_send(SPYRE_MSG_QUEUE_DESTROY, &m, sizeof(m));
	mock_run();
	assert_int_equal(mock_answer(again, NULL), SPYRE_MSG_ERR_BUSY);
	/* The job does not end: it is cancelled, and only it. */
	idle();
	assert_true(mock.timecmp <= mock.time + FW_GRACE);
	mock.time += FW_GRACE;
	mock_run();
	assert_true(mock.engine[5].cancelled);
	assert_false(mock.engine[0].cancelled);
	assert_int_equal(mock_answer(tag, NULL), -1);
	mock_finish(5, SPYRE_ERR_CANCELLED, 1);
	mock_run();
	assert_int_equal(mock_answer(tag, NULL), SPYRE_MSG_OK);
	assert_false(mock.engine[5].busy);
	assert_int_equal(q.st->done, 2);
	assert_int_equal(q.rb[1].status, SPYRE_ERR_CANCELLED);
	mock.traced = 0;
	mock_doorbell(16, 99);
	mock_run();
	/* Nothing of the queue is touched any more. */
	assert_int_equal(mock.traced, 0);
	mock_finish(0, SPYRE_OK, 1);
	mock_run();
	assert_int_equal(other.rb[0].status, SPYRE_OK);
}

static void test_suspend(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct spyre_msg_id m = { 16, 0 };
	u32 tag;

	(void)state;
	put(&q, cb_of(SPYRE_CB_DMAI, 0));
	put(&q, cb_of(SPYRE_CB_DMAI, SPYRE_CB_F_BARRIER));
	submit(&q);
	mock_run();
	tag = mock_send(SPYRE_MSG_QUEUE_SUSPEND, &m, sizeof(m));
	mock_run();
	assert_int_equal(mock_answer(tag, NULL), -1);
	mock_finish(0, SPYRE_OK, 1);
	mock_run();
	assert_int_equal(mock_answer(tag, NULL), SPYRE_MSG_OK);
	assert_int_equal(q.st->state, SPYRE_QUEUE_SUSPENDED);
	assert_int_equal(q.st->done, 1);
	assert_false(mock.engine[0].busy || mock.engine[1].busy);
	put(&q, cb_of(SPYRE_CB_NOP, 0));
	submit(&q);
	mock_doorbell(16, 3);
	mock_run();
	assert_int_equal(q.st->done, 1);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_RESUME, 16, 0), SPYRE_MSG_OK);
	assert_int_equal(q.st->state, SPYRE_QUEUE_ACTIVE);
	assert_true(mock.engine[0].busy);
	mock_finish(0, SPYRE_OK, 1);
	mock_run();
	assert_int_equal(q.st->done, 3);
}

static void test_ctx_reset(void **state)
{
	struct mq a = mq_new(0, 16, 1, 1), b = mq_new(1, 17, 1, 1), c = mq_new(2, 32, 2, 1);
	struct spyre_msg_id m = { 1, 0 };
	u32 tag;

	(void)state;
	put(&a, cb_of(SPYRE_CB_COMPUTE, 0));
	submit(&a);
	put(&b, sync_cb(SPYRE_CB_WAIT, 0, FENCES, 1));
	submit(&b);
	put(&c, cb_of(SPYRE_CB_DMAI, 0));
	submit(&c);
	mock_run();
	tag = mock_send(SPYRE_MSG_CTX_RESET, &m, sizeof(m));
	mock_run();
	assert_int_equal(mock_answer(tag, NULL), -1);
	assert_int_equal(mock.ctx_abort[1], 1);
	assert_true(mock.engine[5].cancelled);
	assert_false(mock.engine[0].cancelled);
	mock_finish(5, SPYRE_ERR_CANCELLED, 1);
	mock_run();
	assert_int_equal(mock_answer(tag, NULL), SPYRE_MSG_OK);
	assert_int_equal(a.st->error, SPYRE_ERR_CANCELLED);
	assert_int_equal(b.st->error, SPYRE_ERR_CANCELLED);
	assert_int_equal(b.st->parked, 0);
	assert_int_equal(b.rb[0].status, SPYRE_ERR_CANCELLED);
	assert_int_equal(c.st->error, 0);
	/* No RAS record: nothing was wrong with the card. */
	assert_int_equal(mock_events(SPYRE_MSG_EVT_RAS, NULL), 0);
}

static void test_tail_jump(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct spyre_msg ev;
	u32 i;

	(void)state;
	mock_run();
	/* Exactly a ring is fine. */
	for (i = 0; i < ENTRIES; i++)
		put(&q, cb_of(SPYRE_CB_NOP, 0));
	submit(&q);
	mock_run();
	assert_int_equal(q.st->done, ENTRIES);
	/* One more is not; neither is going back. */
	q.shadow->tail = q.tail + ENTRIES + 1;
	mock_doorbell(16, 0);
	mock_run();
	assert_int_equal(q.st->state, SPYRE_QUEUE_ERROR);
	assert_int_equal(q.st->error, SPYRE_ERR_QUEUE);
	assert_int_equal(q.st->error_entry, ENTRIES);
	assert_int_equal(q.st->done, ENTRIES);
	assert_int_equal(mock_events(SPYRE_MSG_EVT_RAS, &ev), 1);
	assert_int_equal(((struct spyre_msg_ras *)(void *)ev.body)->code, SPYRE_RAS_QUEUE);
	/* Doorbells cannot wake it. */
	mock_doorbell(16, 0);
	mock_run();
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_RESET, 16, 0), SPYRE_MSG_OK);
	assert_int_equal(q.st->done, q.shadow->tail);
	q.tail = q.shadow->tail;
	put(&q, cb_of(SPYRE_CB_NOP, SPYRE_CB_F_RESPONSE));
	submit(&q);
	mock_run();
	assert_int_equal(q.st->done, q.tail);
	q.shadow->tail = q.tail - 1;
	mock_doorbell(16, 0);
	mock_run();
	assert_int_equal(q.st->error, SPYRE_ERR_QUEUE);
}

/* A doorbell that met a full FIFO is in the bitmap, without its value; page 0 is a page like others. */
static void test_overflow(void **state)
{
	struct mq q = mq_new(0, 0, 1, 1);

	(void)state;
	mock_run();
	put(&q, cb_of(SPYRE_CB_NOP, 0));
	q.shadow->tail = q.tail;
	mock_run();
	assert_int_equal(q.st->done, 0);
	mock.overflow = 1;
	mock_run();
	assert_int_equal(q.st->done, 1);
	put(&q, cb_of(SPYRE_CB_NOP, 0));
	submit(&q);
	mock_run();
	assert_int_equal(q.st->done, 2);
}

/* Tails around 2^32. */
static void test_wrap(void **state)
{
	struct mq q = mq_at(0, 16, 1, 1);
	u32 i;

	(void)state;
	q.msg.start = 0xfffffff0;
	q.tail = q.msg.start;
	q.shadow->tail = q.tail;
	assert_int_equal(create_with(q.msg), SPYRE_MSG_OK);
	mock_run();
	for (i = 0; i < 100; i++) {
		u32 e = put(&q, cb_of(SPYRE_CB_NOP, SPYRE_CB_F_RESPONSE));

		submit(&q);
		mock_run();
		assert_int_equal(q.st->done, e + 1);
		assert_int_equal(q.rb[e % ENTRIES].valid, e + 1);
	}
}

static void test_lost_response_ring(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);

	(void)state;
	mock.readonly = q.msg.response;
	mock.readonly_end = mock.readonly + 0x2000;
	put(&q, cb_of(SPYRE_CB_NOP, SPYRE_CB_F_RESPONSE));
	put(&q, cb_of(SPYRE_CB_DMAI, 0));
	submit(&q);
	mock_run();
	assert_int_equal(q.st->error, SPYRE_ERR_QUEUE);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_DESTROY, 16, 0), mock.engine[0].busy ? -1 : 0);
}

/* --- Copies in parts -------------------------------------------------------------------------- */

#define DMX 4u

static struct spyre_cb long_copy(void)
{
	struct spyre_cb cb = cb_of(SPYRE_CB_DMAX, SPYRE_CB_F_RESPONSE);

	cb.u.dma.ndims = 2;
	cb.u.dma.count[0] = 3 * FW_DMA_PART;
	cb.u.dma.bytes = 1;
	return cb;
}

/* Between two parts whoever waits has the engine; the response is that of one copy. */
static void test_parts(void **state)
{
	struct mq a = mq_new(0, 16, 1, 1), b = mq_new(1, 32, 2, 0);
	u32 i;

	(void)state;
	put(&a, long_copy());
	put(&a, cb_of(SPYRE_CB_DMAI, 0));
	submit(&a);
	mock_run();
	assert_true(mock.engine[DMX].busy);
	assert_int_equal(mock.engine[DMX].job.at, 0);
	/* What follows the copy in its queue does not start before the last part has ended. */
	assert_false(mock.engine[0].busy);
	put(&b, cb_of(SPYRE_CB_FILL, SPYRE_CB_F_RESPONSE));
	submit(&b);
	mock_run();
	mock_finish_part(DMX, 100, 200, FW_DMA_PART);
	mock_run();
	assert_int_equal(a.st->done, 0);
	assert_int_equal(a.rb[0].valid, 0);
	assert_true(mock.engine[DMX].busy);
	assert_int_equal(mock.engine[DMX].job.context, 2);
	assert_int_equal(mock.engine[DMX].job.at, 0);
	mock_finish(DMX, SPYRE_OK, 10);
	mock_run();
	assert_int_equal(b.st->done, 1);
	for (i = 1; i < 3; i++) {
		assert_int_equal(mock.engine[DMX].job.context, 1);
		assert_int_equal(mock.engine[DMX].job.at, i * FW_DMA_PART);
		assert_int_equal(mock.engine[DMX].job.since, i == 1 ? 200 : 400);
		mock_finish_part(DMX, 300 * i, 300 * i + 100, i == 1 ? 2 * FW_DMA_PART : 0);
		mock_run();
	}
	assert_int_equal(a.rb[0].valid, 1);
	assert_int_equal(a.rb[0].status, SPYRE_OK);
	assert_int_equal(a.rb[0].cookie, 0xc000);
	assert_int_equal(a.rb[0].ts[0], 100);
	assert_int_equal(a.rb[0].ts[2], 100);
	assert_int_equal(a.rb[0].ts[3], 700);
	assert_int_equal(a.rb[0].ts[4], 700);
	assert_int_equal(a.rb[0].ts4, 700);
	assert_int_equal(a.rb[0].bytes, 3 * 128);
	assert_int_equal(a.st->done, 1);
	assert_true(mock.engine[0].busy);
	mock_finish(0, SPYRE_OK, 1);
	mock_run();
	assert_int_equal(a.st->done, 2);
	/* A copy that fits one part is one, and begins at its beginning. */
	put(&a, cb_of(SPYRE_CB_DMAX, 0));
	submit(&a);
	mock_run();
	assert_int_equal(mock.engine[DMX].job.at, 0);
	mock_finish(DMX, SPYRE_OK, 1);
	mock_run();
	assert_int_equal(a.st->done, 3);
}

/* Whatever ends a queue between two parts or during one ends the copy, and the next copy begins at 0. */
static void test_parts_end_early(void **state)
{
	struct mq a = mq_new(0, 16, 1, 1), b = mq_new(1, 32, 2, 1);
	struct spyre_cb bad = cb_of(SPYRE_CB_DMAI, SPYRE_CB_F_RESPONSE);
	u32 at;

	(void)state;
	/* Reset with the copy between two parts: another context has the engine. */
	put(&a, long_copy());
	submit(&a);
	put(&b, cb_of(SPYRE_CB_FILL, 0));
	mock_run();
	submit(&b);
	mock_run();
	mock_finish_part(DMX, 0, 100, FW_DMA_PART);
	mock_run();
	assert_int_equal(mock.engine[DMX].job.context, 2);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_RESET, 16, 0), SPYRE_MSG_OK);
	assert_int_equal(a.rb[0].status, SPYRE_ERR_CANCELLED);
	mock_finish(DMX, SPYRE_OK, 10);
	mock_run();
	assert_false(mock.engine[DMX].busy);
	assert_int_equal(a.st->done, 1);

	/* Suspended between two parts, it goes on where it was. */
	put(&a, long_copy());
	submit(&a);
	mock_run();
	assert_int_equal(mock.engine[DMX].job.at, 0);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_SUSPEND, 16, 0), -1);
	mock_finish_part(DMX, 0, 100, FW_DMA_PART);
	mock_run();
	assert_false(mock.engine[DMX].busy);
	assert_int_equal(a.st->state, SPYRE_QUEUE_SUSPENDED);
	assert_int_equal(a.st->done, 1);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_RESUME, 16, 0), SPYRE_MSG_OK);
	mock_run();
	assert_int_equal(mock.engine[DMX].job.at, FW_DMA_PART);

	/* A part that fails is the copy's failure. */
	mock_finish(DMX, SPYRE_ERR_FAULT, 10);
	mock_run();
	assert_int_equal(a.st->error, SPYRE_ERR_FAULT);
	assert_int_equal(a.st->error_entry, 1);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_RESET, 16, 0), SPYRE_MSG_OK);

	/* An earlier entry fails during a part: the copy is cancelled after it. */
	put(&a, bad);
	at = put(&a, long_copy());
	submit(&a);
	mock_run();
	assert_true(mock.engine[0].busy && mock.engine[DMX].busy);
	mock_finish(0, SPYRE_ERR_HW, 1);
	mock_run();
	assert_int_equal(a.st->error, SPYRE_ERR_HW);
	assert_int_equal(a.rb[at % ENTRIES].valid, 0);
	mock_finish_part(DMX, 0, 100, FW_DMA_PART);
	mock_run();
	assert_false(mock.engine[DMX].busy);
	assert_int_equal(a.rb[at % ENTRIES].valid, at + 1);
	assert_int_equal(a.rb[at % ENTRIES].status, SPYRE_ERR_CANCELLED);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_RESET, 16, 0), SPYRE_MSG_OK);

	/* Destroyed in a part that does not stop: cancelled after the grace, and answered then. */
	put(&a, long_copy());
	submit(&a);
	mock_run();
	assert_int_equal(mock.engine[DMX].job.at, 0);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_DESTROY, 16, 0), -1);
	mock.time += FW_GRACE + 1;
	mock_run();
	assert_true(mock.engine[DMX].cancelled);
	mock_finish(DMX, SPYRE_ERR_CANCELLED, 1);
	mock_run();
	assert_int_equal(queue_find(16) == NULL, 1);
}

/* --- Holding the cores ------------------------------------------------------------------------- */

#define SECONDS(n)	((n) * 1000ull * card.soc_khz)

/* Time passes, the firmware awake as it is while work is in flight. */
static void pass(u64 cycles)
{
	u64 end = mock.time + cycles;

	while (mock.time < end) {
		mock.time += SECONDS(1) / 4;
		mock_run();
	}
}

static u32 compute_engine(void)
{
	u32 e;

	for (e = 0; e < MCU_ENG_MAX; e++)
		if (mock.engine[e].busy && mock.engine[e].job.cb[0] == SPYRE_CB_COMPUTE)
			return e;
	fail_msg("nothing computes");
	return 0;
}

/* A job may have the cores for as long as no other context wants them, and a minute longer. */
static void test_held(void **state)
{
	struct mq a = mq_new(0, 16, 1, 1), a2 = mq_new(1, 17, 1, 0), b = mq_new(2, 32, 2, 0), *holder, *other;
	u32 e;

	(void)state;
	put(&a, cb_of(SPYRE_CB_COMPUTE, 0));
	submit(&a);
	mock_run();
	e = compute_engine();
	put(&a2, cb_of(SPYRE_CB_COMPUTE, 0));
	submit(&a2);
	pass(SECONDS(200));
	assert_false(mock.engine[e].cancelled);
	put(&b, cb_of(SPYRE_CB_COMPUTE, 0));
	submit(&b);
	pass(SECONDS(59));
	assert_false(mock.engine[e].cancelled);
	/* Whoever comes next has a minute of its own. */
	mock_finish(e, SPYRE_OK, 10);
	mock_run();
	assert_int_equal(a.st->done, 1);
	assert_true(mock.engine[e].busy);
	holder = mock.engine[e].job.context == 1 ? &a2 : &b;
	other = holder == &b ? &a2 : &b;
	pass(SECONDS(59));
	assert_false(mock.engine[e].cancelled);
	pass(SECONDS(2));
	assert_true(mock.engine[e].cancelled);
	mock_finish(e, SPYRE_ERR_CANCELLED, 10);
	mock_run();
	assert_int_equal(holder->st->error, SPYRE_ERR_TIMEOUT);
	assert_int_equal(other->st->error, SPYRE_OK);
	/* Nobody waits any more. */
	assert_true(mock.engine[e].busy);
	pass(SECONDS(200));
	assert_false(mock.engine[e].cancelled);
	mock_finish(e, SPYRE_OK, 10);
	mock_run();
	assert_int_equal(other->st->done, 1);
}

/* --- Fairness ---------------------------------------------------------------------------------- */

/* Four classes want the one DMX engine for ever: shares are 1:2:4:8 of its time. */
static void test_weights(void **state)
{
	struct mq q[4];
	u32 served[4] = { 0 };
	u32 i, p;

	(void)state;
	for (p = 0; p < 4; p++)
		q[p] = mq_new(p, 16 + p, 1, p);
	for (i = 0; i < 1500; i++) {
		for (p = 0; p < 4; p++) {
			while (q[p].tail - q[p].st->fetched < ENTRIES)
				put(&q[p], cb_of(SPYRE_CB_FILL, 0));
			submit(&q[p]);
		}
		mock_run();
		assert_true(mock.engine[4].busy);
		for (p = 0; p < 4; p++)
			if (queue_find(16 + p)->inflight)
				served[p]++;
		mock_finish(4, SPYRE_OK, 100);
	}
	for (p = 0; p < 4; p++)
		assert_in_range(served[p], (100u << p) - 10, (100u << p) + 10);
}

/* Inside a class contexts take turns, however many queues one has; a long job counts for its length. */
static void test_turns(void **state)
{
	struct mq q[5];
	u32 served[5] = { 0 };
	u32 i, p;

	(void)state;
	for (p = 0; p < 4; p++)
		q[p] = mq_new(p, 16 + p, 1, 1);
	q[4] = mq_new(4, 32, 2, 1);
	for (i = 0; i < 400; i++) {
		for (p = 0; p < 5; p++) {
			while (q[p].tail - q[p].st->fetched < ENTRIES)
				put(&q[p], cb_of(SPYRE_CB_FILL, 0));
			submit(&q[p]);
		}
		mock_run();
		for (p = 0; p < 5; p++)
			if (queue_find(q[p].id)->inflight)
				served[p]++;
		mock_finish(4, SPYRE_OK, 100);
	}
	assert_in_range(served[4], 195, 205);
	for (p = 0; p < 4; p++)
		assert_in_range(served[p], 45, 55);
}

static u32 holder(u32 e)
{
	struct spyre_msg ev;
	u32 tag = mock_send(SPYRE_MSG_GET_ENGINES, NULL, 0);

	mock_run();
	assert_int_equal(mock_answer(tag, &ev), SPYRE_MSG_OK);
	assert_int_equal(ev.length, sizeof(struct spyre_msg_engines));
	return ((struct spyre_msg_engines *)(void *)ev.body)->job[e];
}

/*
 * Kernel queues have every other turn of an engine, whatever the number and class of the others, and share
 * those turns. Who holds the engine is told by the context, and each job has a number of its own.
 */
static void test_kernel_queues(void **state)
{
	struct mq q[6];
	u32 served[6] = { 0 };
	u32 i, p, was = 0, now;

	(void)state;
	for (p = 0; p < 4; p++)
		q[p] = mq_new(p, 16 + p, 1, 3);
	q[4] = mq_new(4, 20, 1, SPYRE_QUEUE_KERNEL);
	q[5] = mq_new(5, 32, 2, SPYRE_QUEUE_KERNEL);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_PRIORITY, 20, 3), SPYRE_MSG_ERR_ARG);
	for (i = 0; i < 400; i++) {
		for (p = 0; p < 6; p++) {
			/* In the second half one of the two has nothing to do. */
			if (p == 5 && i >= 200)
				continue;
			while (q[p].tail - q[p].st->fetched < ENTRIES)
				put(&q[p], cb_of(SPYRE_CB_FILL, 0));
			submit(&q[p]);
		}
		mock_run();
		now = holder(4);
		assert_int_not_equal(now, was);
		was = now;
		for (p = 0; p < 6; p++) {
			if (!queue_find(q[p].id)->inflight)
				continue;
			served[p]++;
			assert_int_equal(now & 0xff, q[p].msg.context);
		}
		mock_finish(4, SPYRE_OK, 100);
		if (i == 199)
			assert_in_range(served[5], 45, 55);
	}
	assert_in_range(served[4] + served[5], 195, 205);
	for (p = 0; p < 4; p++)
		assert_in_range(served[p], 45, 55);
	assert_int_equal(holder(0), 0);
}

/* A class that slept has saved nothing up, and one that worked alone is not punished. */
static void test_no_saving(void **state)
{
	struct mq low = mq_new(0, 16, 1, 0), high = mq_new(1, 17, 1, 3);
	u32 i, n = 0;

	(void)state;
	for (i = 0; i < 500; i++) {
		put(&low, cb_of(SPYRE_CB_FILL, 0));
		submit(&low);
		mock_run();
		mock_finish(4, SPYRE_OK, 100);
		mock_run();
	}
	for (i = 0; i < 90; i++) {
		while (low.tail - low.st->fetched < ENTRIES)
			put(&low, cb_of(SPYRE_CB_FILL, 0));
		submit(&low);
		while (high.tail - high.st->fetched < ENTRIES)
			put(&high, cb_of(SPYRE_CB_FILL, 0));
		submit(&high);
		mock_run();
		n += queue_find(16)->inflight;
		mock_finish(4, SPYRE_OK, 100);
	}
	assert_in_range(n, 8, 13);
}

/* --- Checks ------------------------------------------------------------------------------------ */

static void test_check_table(void **state)
{
	struct spyre_cb cb;
	struct verdict v;

	(void)state;
#define IS(want, type, flags, change) do { \
		cb = cb_of(type, flags); change; \
		assert_int_equal(cb_check(&cb, &v), want); \
	} while (0)
	IS(SPYRE_OK, SPYRE_CB_NOP, 7, (void)0);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_NOP, 8, (void)0);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_NOP, 0, cb.u.raw[11] = 1);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_NOP, 0, cb.reserved0 = 1);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_NOP, 0, cb.reserved1 = 1);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_BATCH, 0, (void)0);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_TYPES, 0, (void)0);
	IS(SPYRE_ERR_BAD_CB, 0xffff, 0, (void)0);
	IS(SPYRE_OK, SPYRE_CB_COMPUTE, SPYRE_CB_F_KEEP_LX, (void)0);
	IS(SPYRE_ERR_BOOTADDR, SPYRE_CB_COMPUTE, 0, cb.u.compute.bootaddr = 0x80);
	IS(SPYRE_ERR_BOOTADDR, SPYRE_CB_COMPUTE, 0, cb.u.compute.bootaddr += 0x90);
	IS(SPYRE_ERR_BOOTADDR, SPYRE_CB_COMPUTE, 0, cb.u.compute.bootaddr = SPYRE_DMVA_SIZE);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_COMPUTE, 0, cb.u.compute.nsymbols = 257);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_COMPUTE, 0, cb.u.compute.reserved[1] = 1);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_COMPUTE, 0, cb.u.raw[5] = 1);
	IS(SPYRE_ERR_FAULT, SPYRE_CB_COMPUTE, 0,
	   (cb.u.compute.nsymbols = 1, cb.u.compute.symbols = 8));
	IS(SPYRE_OK, SPYRE_CB_COMPUTE, SPYRE_CB_F_SYM_HOST,
	   (cb.u.compute.nsymbols = 1, cb.u.compute.symbols = 8));
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, SPYRE_CB_F_DST_HOST, (void)0);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, 0, cb.u.dma.bytes = 0);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, 0, cb.u.dma.bytes = (1ull << 34) + 1);
	IS(SPYRE_OK, SPYRE_CB_DMAI, 0, cb.u.dma.bytes = 1ull << 34);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, 0, cb.u.dma.ndims = 0);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, 0, cb.u.dma.ndims = 5);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, 0, cb.u.dma.ndims = 2);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, 0, cb.u.dma.count[0] = 1);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, 0, cb.u.dma.src_stride[2] = 1);
	IS(SPYRE_OK, SPYRE_CB_DMAI, 0,
	   (cb.u.dma.ndims = 2, cb.u.dma.count[0] = 9, cb.u.dma.src = 3));
	IS(SPYRE_ERR_FAULT, SPYRE_CB_DMAI, 0, cb.u.dma.dst = 64);
	IS(SPYRE_ERR_FAULT, SPYRE_CB_DMAO, 0, cb.u.dma.src = 64);
	IS(SPYRE_OK, SPYRE_CB_DMAO, 0, cb.u.dma.dst = 65);
	IS(SPYRE_ERR_FAULT, SPYRE_CB_DMAX, 0, cb.u.dma.dst = 64);
	IS(SPYRE_OK, SPYRE_CB_DMAX, SPYRE_CB_F_DST_HOST, cb.u.dma.dst = 64);
	IS(SPYRE_ERR_FAULT, SPYRE_CB_DMAX, SPYRE_CB_F_DST_HOST, cb.u.dma.src = 64);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, SPYRE_CB_F_LIST, (void)0);
#define LIST(n) (memset(&cb.u, 0, sizeof(cb.u)), cb.u.list.entries = (n), cb.u.list.list = 8)
	IS(SPYRE_OK, SPYRE_CB_DMAI, SPYRE_CB_F_LIST, LIST(1024));
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, SPYRE_CB_F_LIST, LIST(0));
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, SPYRE_CB_F_LIST, LIST(1025));
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_DMAI, SPYRE_CB_F_LIST, (LIST(1), cb.u.raw[2] = 1));
	IS(SPYRE_ERR_FAULT, SPYRE_CB_DMAI, SPYRE_CB_F_LIST, (LIST(1), cb.u.list.list = 12));
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_FILL, 0, cb.u.fill.bytes = 0);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_FILL, 0, cb.u.fill.bytes = 64);
	IS(SPYRE_ERR_FAULT, SPYRE_CB_FILL, 0, cb.u.fill.dst = 8);
	IS(SPYRE_OK, SPYRE_CB_SIGNAL, SPYRE_CB_F_ADD, (void)0);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_SIGNAL, SPYRE_CB_F_ADD | SPYRE_CB_F_HOST, (void)0);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_SIGNAL, 0, cb.u.sync.doorbell = 8);
	IS(SPYRE_ERR_FAULT, SPYRE_CB_SIGNAL, SPYRE_CB_F_DOORBELL, cb.u.sync.doorbell = 2);
	IS(SPYRE_ERR_FAULT, SPYRE_CB_SIGNAL, 0, cb.u.sync.addr = 4);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_WAIT, SPYRE_CB_F_ADD, (void)0);
	IS(SPYRE_ERR_BAD_CB, SPYRE_CB_WAIT, 0, cb.u.sync.reserved = 1);
	IS(SPYRE_OK, SPYRE_CB_TIMESTAMP, SPYRE_CB_F_HOST, cb.u.sync.value = 5);
#undef IS
#undef LIST
}

static u32 seed = 12345;

static u32 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	return seed ^= seed << 5;
}

/* Rings full of noise, jobs that end in every way, doorbells and commands at random. */
static void test_noise(void **state)
{
	struct mq q[6];
	u32 i, j, e, op;

	(void)state;
	for (i = 0; i < 6; i++)
		q[i] = mq_new(i, i < 3 ? 16 + i : 32 + i, i < 3 ? 1 : 2, i % 4);
	for (i = 0; i < 20000; i++) {
		struct mq *p = &q[rnd() % 6];

		for (j = rnd() % 8; j && p->tail - p->st->fetched < ENTRIES; j--) {
			struct spyre_cb cb = cb_of(rnd() % 12, rnd() % 8);
			u8 *bytes = (void *)&cb;

			if (cb.type >= SPYRE_CB_SIGNAL && cb.type <= SPYRE_CB_TIMESTAMP)
				cb.u.sync.addr = FENCES + rnd() % 3 * 8;
			if (rnd() % 4 == 0)
				bytes[rnd() % 128] ^= (u8)(1 << rnd() % 8);
			if (rnd() % 16 == 0)
				memset(bytes, (int)rnd(), rnd() % 128);
			put(p, cb);
		}
		submit(p);
		if (rnd() % 8 == 0)
			mock_doorbell(rnd() % SPYRE_DB_PAGES, rnd());
		if (rnd() % 64 == 0)
			p->shadow->tail = p->tail + rnd();
		for (j = rnd() % 20; j; j--)
			turn();
		for (e = 0; e < MOCK_ENGINES; e++)
			if (mock.engine[e].busy && (mock.engine[e].cancelled || rnd() % 2))
				mock_finish(e, mock.engine[e].cancelled ? SPYRE_ERR_CANCELLED :
					    rnd() % 8 ? SPYRE_OK : rnd() % 17, rnd() % 1000);
		mock.time += rnd() % FW_WAIT_MAX;
		if (rnd() % 4 == 0) {
			op = SPYRE_MSG_QUEUE_DESTROY + rnd() % 4;
			if (rnd() % 8 && op == SPYRE_MSG_QUEUE_DESTROY)
				op = SPYRE_MSG_QUEUE_RESET;
			id_call(op, p->id, rnd());
			if (!queue_find(p->id))
				create_with(p->msg);
		}
		if (rnd() % 128 == 0)
			id_call(SPYRE_MSG_CTX_RESET, 1 + rnd() % 2, 0);
		/* The driver follows what the card says. */
		if (p->st->fetched == p->st->done && p->st->state == SPYRE_QUEUE_ERROR) {
			id_call(SPYRE_MSG_QUEUE_RESET, p->id, 0);
			p->tail = p->st->fetched;
			p->shadow->tail = p->tail;
		}
	}
	/* Everybody can still be brought to an end. */
	for (j = 0; j < 100; j++) {
		for (e = 0; e < MOCK_ENGINES; e++)
			if (mock.engine[e].busy)
				mock_finish(e, SPYRE_OK, 1);
		mock.time += FW_GRACE;
		mock_run();
	}
	for (i = 0; i < 6; i++) {
		u32 tag;
		struct spyre_msg_id m = { q[i].id, 0 };

		if (!queue_find(q[i].id))
			continue;
		tag = mock_send(SPYRE_MSG_QUEUE_DESTROY, &m, sizeof(m));
		for (j = 0; j < 10; j++) {
			mock_run();
			for (e = 0; e < MOCK_ENGINES; e++)
				if (mock.engine[e].busy)
					mock_finish(e, SPYRE_OK, 1);
			mock.time += FW_GRACE;
		}
		mock_run();
		assert_int_equal(mock_answer(tag, NULL), SPYRE_MSG_OK);
	}
	assert_int_equal(card.queues, 0);
	assert_int_equal(card.pending_ops, 0);
	assert_false(engine_any_busy());
	assert_int_equal(id_call(SPYRE_MSG_CTX_DESTROY, 1, 0), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_CTX_DESTROY, 2, 0), SPYRE_MSG_OK);
}

/* --- Timers, health ---------------------------------------------------------------------------- */

static void test_timer_heap(void **state)
{
	u32 i, n;
	u64 last;

	(void)state;
	timer_init();
	for (i = 0; i < FW_QUEUES; i++) {
		memset(&fw_mem.queue[i], 0, sizeof(struct queue));
		fw_mem.queue[i].index = (u16)i;
	}
	for (n = 0; n < 20000; n++) {
		struct queue *q = &fw_mem.queue[rnd() % FW_QUEUES];

		if (rnd() % 3)
			timer_set(q, rnd() % 100000);
		else
			timer_clear(q);
	}
	for (last = 0; timer_next() != ~0ull; last = timer_next()) {
		struct queue *min = NULL;

		assert_true(timer_next() >= last);
		for (i = 0; i < FW_QUEUES; i++) {
			struct queue *q = &fw_mem.queue[i];

			if (q->timer_slot && (!min || q->timer < min->timer))
				min = q;
		}
		assert_non_null(min);
		assert_int_equal(min->timer, timer_next());
		timer_clear(min);
	}
	for (i = 0; i < FW_QUEUES; i++)
		assert_int_equal(fw_mem.queue[i].timer_slot, 0);
}

static void test_thermal(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct spyre_msg ev;
	struct spyre_msg_id *id = (void *)ev.body;

	(void)state;
	mock.temperature = 96000;
	assert_int_equal(mock_call(SPYRE_MSG_GET_TELEMETRY, NULL, 0), SPYRE_MSG_OK);
	assert_int_equal(mock_events(SPYRE_MSG_EVT_THERMAL, &ev), 1);
	assert_int_equal(id->id, 1);
	/* Over the power limit: after a job the engine rests as long as the job took. */
	mock.power = 80000;
	assert_int_equal(mock_call(SPYRE_MSG_GET_TELEMETRY, NULL, 0), SPYRE_MSG_OK);
	put(&q, cb_of(SPYRE_CB_COMPUTE, 0));
	put(&q, cb_of(SPYRE_CB_COMPUTE, 0));
	submit(&q);
	mock_run();
	mock_finish(5, SPYRE_OK, 5000);
	mock_run();
	assert_false(mock.engine[5].busy);
	idle();
	assert_true(mock.timecmp <= mock.time + 5000);
	mock.time += 5000;
	mock_run();
	assert_true(mock.engine[5].busy);
	mock.temperature = 80000;
	mock.power = 20000;
	mock_call(SPYRE_MSG_GET_TELEMETRY, NULL, 0);
	assert_int_equal(mock_events(SPYRE_MSG_EVT_THERMAL, &ev), 2);
	assert_int_equal(id->id, 2);
	mock.temperature = 106000;
	mock_call(SPYRE_MSG_GET_TELEMETRY, NULL, 0);
	mock_events(SPYRE_MSG_EVT_THERMAL, &ev);
	assert_int_equal(id->id, 3);
	assert_int_equal(mock.reg[MCU_STATE / 4], SPYRE_STATE_IN_ERROR);
	assert_int_equal(q.st->error, SPYRE_ERR_HW);
	assert_true(mock.engine[5].cancelled);
}

/* While work is in flight the heartbeat goes on; an idle card is not woken for it. */
static void test_heartbeat(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct spyre_msg m;
	struct spyre_msg_telemetry *t = (void *)m.body;
	u32 beats, tag;

	(void)state;
	mock_run();
	idle();
	assert_true(mock.timecmp == ~0ull);
	put(&q, cb_of(SPYRE_CB_COMPUTE, 0));
	submit(&q);
	mock_run();
	idle();
	assert_true(mock.timecmp <= mock.time + FW_TICK);
	beats = mock.heartbeats;
	mock.time = mock.timecmp;
	mock_run();
	assert_int_equal(mock.heartbeats, beats + 1);
	mock_finish(5, SPYRE_OK, 1);
	mock_run();
	idle();
	assert_true(mock.timecmp == ~0ull);
	mock.engine[0].progress = 5;
	mock.engine[1].progress = 7;
	mock.engine[4].progress = 11;
	mock.engine[5].progress = 13;
	tag = mock_send(SPYRE_MSG_GET_TELEMETRY, NULL, 0);
	mock_run();
	assert_int_equal(mock_answer(tag, &m), SPYRE_MSG_OK);
	assert_true(mock.heartbeats > beats + 1);
	assert_int_equal(m.length, sizeof(*t));
	assert_int_equal(t->progress[MCU_ENGINE_DMI - 1], 12);
	assert_int_equal(t->progress[MCU_ENGINE_DMO - 1], 0);
	assert_int_equal(t->progress[MCU_ENGINE_DMX - 1], 11);
	assert_int_equal(t->progress[MCU_ENGINE_COMPUTE - 1], 13);
}

/* Times are milliseconds of the card's own counter, whatever it runs at. */
static void test_clocks(void **state)
{
	static const u32 hz[] = { 1000000, SPYRE_SOC_HZ, 4000000000u };
	struct spyre_usage *usage;
	struct spyre_rb rb;
	u32 i, beats, tag;
	struct mq q;

	for (i = 0; i < sizeof(hz) / sizeof(hz[0]); i++) {
		u64 ms = hz[i] / 1000;

		setup(state);
		mock.soc_hz = hz[i];
		assert_int_equal(mock_boot(), 0);
		mock_run();
		assert_int_equal(ctx_create(1), SPYRE_MSG_OK);
		q = mq_new(0, 16, 1, 1);
		assert_int_equal(id_call(SPYRE_MSG_INJECT, SPYRE_INJECT_SLOW, 300), SPYRE_MSG_OK);
		tag = mock_send(SPYRE_MSG_GET_INFO, NULL, 0);
		mock_run();
		mock.time += 299 * ms;
		mock_run();
		assert_int_equal(mock_answer(tag, NULL), -1);
		mock.time += ms;
		mock_run();
		assert_int_equal(mock_answer(tag, NULL), SPYRE_MSG_OK);
		put(&q, cb_of(SPYRE_CB_COMPUTE, 0));
		submit(&q);
		mock_run();
		idle();
		assert_true(mock.timecmp > mock.time && mock.timecmp <= mock.time + 100 * ms);
		beats = mock.heartbeats;
		mock.time += 100 * ms;
		mock_run();
		assert_int_equal(mock.heartbeats, beats + 1);
		/* Twenty seconds: at 4 GHz the low words of the counter have wrapped many times. */
		mock_finish(5, SPYRE_OK, (u32)(20000 * ms));
		memcpy(&rb, mock.done[(mock.done_put - 1) % 64].rb, sizeof(rb));
		rb.cycles = 20ull * SPYRE_CORE_HZ;
		memcpy(mock.done[(mock.done_put - 1) % 64].rb, &rb, sizeof(rb));
		mock_run();
		idle();
		usage = mock_at(USAGE(1));
		assert_int_equal(usage->busy[MCU_ENGINE_COMPUTE], 20000 * ms);
	}
}

/* The driver reads no events for a while: answers wait for it, none is lost. */
static void test_full_event_ring(void **state)
{
	u32 i, tags[100], tail;

	(void)state;
	tail = mock.reg[MCU_EVT_TAIL / 4];
	for (i = 0; i < 100; i++) {
		tags[i] = mock_send(SPYRE_MSG_GET_INFO, NULL, 0);
		/* 200 of 256 slots hold what was not read. */
		mock.host_reg[SPYRE_REG_MBOX_EVT_HEAD / 4] = tail - 200;
	}
	mock_run();
	assert_int_equal(mock.reg[MCU_EVT_TAIL / 4], tail + 56);
	mock.host_reg[SPYRE_REG_MBOX_EVT_HEAD / 4] = tail + 56;
	mock.irq |= MCU_IRQ_MBOX;
	mock_run();
	assert_int_equal(mock.reg[MCU_EVT_TAIL / 4], tail + 100);
	for (i = 0; i < 100; i++)
		assert_int_equal(mock_answer(tags[i], NULL), SPYRE_MSG_OK);
}

static void test_shutdown(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	u32 tag;

	(void)state;
	put(&q, cb_of(SPYRE_CB_COMPUTE, 0));
	submit(&q);
	mock_run();
	tag = mock_send(SPYRE_MSG_SHUTDOWN, NULL, 0);
	mock_run();
	assert_int_equal(mock_answer(tag, NULL), -1);
	assert_int_equal(mock.reg[MCU_STATE / 4], SPYRE_STATE_SHUTTING_DOWN);
	assert_true(mock.engine[5].cancelled);
	mock_finish(5, SPYRE_ERR_CANCELLED, 1);
	mock_run();
	assert_int_equal(mock_answer(tag, NULL), SPYRE_MSG_OK);
	assert_int_equal(mock.reg[MCU_STATE / 4], SPYRE_STATE_OFFLINE);
	assert_int_equal(q.st->error, SPYRE_ERR_CANCELLED);
}

static void test_injected(void **state)
{
	struct mq q = mq_new(0, 16, 1, 1);
	struct spyre_msg_id m = { SPYRE_INJECT_SLOW, 50 };
	u32 tag;

	(void)state;
	assert_int_equal(mock_call(SPYRE_MSG_INJECT, &m, sizeof(m)), SPYRE_MSG_OK);
	tag = mock_send(SPYRE_MSG_GET_INFO, NULL, 0);
	mock_run();
	assert_int_equal(mock_answer(tag, NULL), -1);
	idle();
	assert_true(mock.timecmp <= mock.time + 50 * FW_MS);
	mock.time += 50 * FW_MS;
	mock_run();
	assert_int_equal(mock_answer(tag, NULL), SPYRE_MSG_OK);
	m.id = SPYRE_INJECT_LOST_RB;
	m.arg = 1;
	assert_int_equal(mock_call(SPYRE_MSG_INJECT, &m, sizeof(m)), SPYRE_MSG_OK);
	put(&q, cb_of(SPYRE_CB_NOP, SPYRE_CB_F_RESPONSE));
	put(&q, cb_of(SPYRE_CB_NOP, SPYRE_CB_F_RESPONSE));
	submit(&q);
	mock_run();
	assert_int_equal(q.rb[0].valid, 0);
	assert_int_equal(q.rb[1].valid, 2);
	assert_int_equal(q.st->done, 2);
	m.id = SPYRE_INJECT_LOST_EVENT;
	assert_int_equal(mock_call(SPYRE_MSG_INJECT, &m, sizeof(m)), SPYRE_MSG_OK);
	*(u32 *)mock_at(ARM(1)) = 1;
	put(&q, cb_of(SPYRE_CB_NOP, SPYRE_CB_F_INTERRUPT));
	submit(&q);
	mock_run();
	assert_int_equal(mock.raised[1], 0);
	assert_int_equal(((struct spyre_vec_event *)mock_at(VEC_RING))->seq, 1);
	m.id = SPYRE_INJECT_ODD_STATUS;
	m.arg = 0;
	assert_int_equal(mock_call(SPYRE_MSG_INJECT, &m, sizeof(m)), SPYRE_MSG_ERR_ARG);
	m.arg = 777;
	assert_int_equal(mock_call(SPYRE_MSG_INJECT, &m, sizeof(m)), SPYRE_MSG_OK);
	assert_int_equal(id_call(SPYRE_MSG_QUEUE_DESTROY, 16, 0), 777);
	assert_non_null(queue_find(16));
	/* The same from outside, past the mailbox, which the firmware wakes for. */
	mock.inject[0].id = SPYRE_INJECT_LOST_RB;
	mock.inject[0].arg = 2;
	mock.inject_put = 1;
	mock_run();
	assert_int_equal(mock.inject_got, 1);
	for (tag = 0; tag < 3; tag++)
		put(&q, cb_of(SPYRE_CB_NOP, SPYRE_CB_F_RESPONSE));
	submit(&q);
	mock_run();
	assert_int_equal(q.rb[3].valid, 0);
	assert_int_equal(q.rb[4].valid, 0);
	assert_int_equal(q.rb[5].valid, 6);
	/* Refused where the hardware does not allow it. */
	card.can_inject = 0;
	assert_int_equal(mock_call(SPYRE_MSG_INJECT, &m, sizeof(m)), SPYRE_MSG_ERR_TYPE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boot),
		cmocka_unit_test_setup(test_messages, setup),
		cmocka_unit_test_setup(test_contexts, setup),
		cmocka_unit_test_setup(test_queue_create, setup),
		cmocka_unit_test_setup(test_queue_limit, setup),
		cmocka_unit_test_setup(test_nops, setup),
		cmocka_unit_test_setup(test_barrier_and_order, setup),
		cmocka_unit_test_setup(test_two_engines, setup),
		cmocka_unit_test_setup(test_visibility_order, setup),
		cmocka_unit_test_setup(test_signal_fault, setup),
		cmocka_unit_test_setup(test_job_failure, setup),
		cmocka_unit_test_setup(test_timeouts, setup),
		cmocka_unit_test_setup(test_wait_signal, setup),
		cmocka_unit_test_setup(test_wait_doorbell_and_polling, setup),
		cmocka_unit_test_setup(test_wait_timeout, setup),
		cmocka_unit_test_setup(test_destroy_in_flight, setup),
		cmocka_unit_test_setup(test_suspend, setup),
		cmocka_unit_test_setup(test_ctx_reset, setup),
		cmocka_unit_test_setup(test_tail_jump, setup),
		cmocka_unit_test_setup(test_overflow, setup),
		cmocka_unit_test_setup(test_wrap, setup),
		cmocka_unit_test_setup(test_lost_response_ring, setup),
		cmocka_unit_test_setup(test_weights, setup),
		cmocka_unit_test_setup(test_turns, setup),
		cmocka_unit_test_setup(test_kernel_queues, setup),
		cmocka_unit_test_setup(test_held, setup),
		cmocka_unit_test_setup(test_parts, setup),
		cmocka_unit_test_setup(test_parts_end_early, setup),
		cmocka_unit_test_setup(test_no_saving, setup),
		cmocka_unit_test_setup(test_check_table, setup),
		cmocka_unit_test_setup(test_noise, setup),
		cmocka_unit_test_setup(test_timer_heap, setup),
		cmocka_unit_test_setup(test_thermal, setup),
		cmocka_unit_test_setup(test_heartbeat, setup),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test_setup(test_full_event_ring, setup),
		cmocka_unit_test_setup(test_shutdown, setup),
		cmocka_unit_test_setup(test_injected, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
