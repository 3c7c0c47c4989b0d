// SPDX-License-Identifier: MIT
/*
 * libFuzzer on the firmware alone: its sources compiled for the host with sanitizers, on the mock bus of the
 * unit tests, in one thread. An input is a list of what host and engines do: mailbox messages of any type,
 * length and body, control blocks, tails, doorbells, completions that say anything, memory that stops to
 * answer, time. The mock stops at what the firmware may never do to its hardware: start a busy engine, copy
 * what is no copy, name a context that there is not.
 *
 * At the end no command is pending, the heartbeat counts and a second context's queue does its work.
 * Messages and stores cannot name that one's things; everything else here is the first context's.
 */
#include "../unit/fw_mock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ARM(ctx)	(MOCK_BASE + 0x40000 + (ctx) * 256ull)
#define TABLE(ctx)	(MOCK_BASE + 0x60000 + (ctx) * 512ull)
#define OWN		(MOCK_BASE + 0x200000)	/* the first context's memory ... */
#define OWN_BYTES	0x100000u
#define QUEUES		4u			/* ... begins with its queues, 64 KiB each */
#define OTHER		(MOCK_BASE + 0x400000)	/* the second one's queue */
#define OTHER_PAGE	64u
#define ENTRIES		64u
#define OPS_MAX		200

struct mq {
	u32 id, tail;
	struct spyre_cb *ring;
	struct spyre_shadow *shadow;
	struct spyre_queue_status *st;
};

static const uint8_t *in, *in_end;
static struct mq own[QUEUES], other;

static void fail(const char *what, u64 value)
{
	fprintf(stderr, "fuzz_fw: %s: %#llx\n", what, (unsigned long long)value);
	abort();
}

static u8 in8(void)
{
	return in < in_end ? *in++ : 0;
}

static u32 in32(void)
{
	u32 x = in8();

	x |= (u32)in8() << 8;
	x |= (u32)in8() << 16;
	return x | (u32)in8() << 24;
}

static u64 in64(void)
{
	u64 x = in32();

	return x | (u64)in32() << 32;
}

/* The first context's memory, or none at all. */
static u64 address(void)
{
	u8 k = in8();

	if (k & 1)
		return OWN + 8u * (in32() % (OWN_BYTES / 8));
	if (k & 2)
		return OWN + OWN_BYTES - 64 + in8() % 64;
	if (k & 4)
		return MOCK_BASE + MOCK_SIZE - 8 + in8();
	return in64() | 1ull << 40;
}

static struct mq new_queue(u64 at, u32 page, u32 context)
{
	struct spyre_msg_queue m = {
		.id = page, .context = context, .entries = ENTRIES, .priority = 1, .ring = at,
		.response = at + 0x4000, .shadow = at + 0x8000, .status = at + 0x9000, .generation = 7,
	};
	struct mq q = { .id = page };

	q.ring = mock_at(at);
	q.shadow = mock_at(at + 0x8000);
	q.st = mock_at(at + 0x9000);
	if (mock_call(SPYRE_MSG_QUEUE_CREATE, &m, sizeof(m)))
		fail("queue", page);
	return q;
}

static void new_context(u32 id)
{
	struct spyre_msg_ctx m = { .id = id, .vector = 1, .table = TABLE(id), .arm = ARM(id), .usage = ARM(id) + 128 };

	if (mock_call(SPYRE_MSG_CTX_CREATE, &m, sizeof(m)))
		fail("context", id);
}

static void submit(struct mq *q, u32 tail)
{
	q->shadow->tail = tail;
	if (mock.doorbells < 60)
		mock_doorbell(q->id, tail);
}

static void put(struct mq *q)
{
	struct spyre_cb cb;
	u8 how = in8();
	u32 i;

	memset(&cb, 0, sizeof(cb));
	cb.type = how % 12;
	cb.flags = in8() & 7;
	cb.cookie = q->tail;
	if (how & 64)
		cb.flags |= (u16)(in8() << 8);
	if (how & 128)
		cb.timeout = in32();
	switch (cb.type) {
	case SPYRE_CB_COMPUTE:
		cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE + in8() * 64u;
		break;
	case SPYRE_CB_DMAI:
	case SPYRE_CB_DMAO:
	case SPYRE_CB_DMAX:
		cb.u.dma.dst = in8() * 64u;
		cb.u.dma.src = in8() * 64u;
		cb.u.dma.bytes = in8();
		cb.u.dma.ndims = in8() % 6;
		for (i = 0; i < 3; i++)
			cb.u.dma.count[i] = i + 1 < cb.u.dma.ndims;
		break;
	case SPYRE_CB_FILL:
		cb.u.fill.bytes = in8() * 64u;
		break;
	}
	if (how & 32)
		cb.u.raw[in8() % 12] = in64();
	if (cb.type >= SPYRE_CB_SIGNAL && cb.type <= SPYRE_CB_TIMESTAMP) {
		cb.u.sync.addr = address();
		cb.u.sync.doorbell = cb.flags & SPYRE_CB_F_DOORBELL || cb.u.sync.doorbell ? address() : 0;
		cb.u.sync.value = in8();
	}
	q->ring[q->tail++ % ENTRIES] = cb;
}

static void message(void)
{
	u8 body[SPYRE_MSG_BODY] = { 0 }, how = in8();
	u32 type = how & 64 ? in32() & 0xffff : in8() % 24, length = sizeof(struct spyre_msg_id), i;
	struct spyre_msg_queue q = { 0 };
	struct spyre_msg_ctx c = { 0 };
	struct spyre_msg_id id = { 0 };

	id.id = how & 1 ? in32() : in8();
	id.arg = how & 2 ? in32() : in8() % 8;
	/* Ends the card, on purpose: other tests. */
	if (type == SPYRE_MSG_SHUTDOWN || (type == SPYRE_MSG_INJECT && id.id < SPYRE_INJECT_SLOW))
		return;
	switch (type) {
	case SPYRE_MSG_CTX_CREATE:
	case SPYRE_MSG_CTX_TABLES:
		length = sizeof(c);
		c.id = id.id;
		c.vector = id.arg;
		c.table = how & 8 ? in64() : TABLE(3);
		c.arm = address() & ~63ull;
		c.usage = address() & ~63ull;
		memcpy(body, &c, sizeof(c));
		break;
	case SPYRE_MSG_QUEUE_CREATE:
		length = sizeof(q);
		q.id = id.id;
		q.context = how & 8 ? in32() : 1;
		q.entries = how & 16 ? in32() : 64u << in8() % 12;
		q.priority = id.arg;
		q.ring = address() & ~4095ull;
		q.response = address() & ~127ull;
		q.shadow = address() & ~63ull;
		q.status = address() & ~63ull;
		q.start = in32();
		memcpy(body, &q, sizeof(q));
		break;
	case SPYRE_MSG_GET_INFO:
	case SPYRE_MSG_GET_TELEMETRY:
		length = 0;
		break;
	case SPYRE_MSG_TIME_SYNC:
		length = sizeof(struct spyre_msg_time);
		break;
	default:
		memcpy(body, &id, sizeof(id));
	}
	if (how & 32)
		length = in8() & 1 ? in32() : in8();
	memcpy(&i, body, 4);
	/* The second context's, and its block of doorbells. */
	if (i == 2 || (type == SPYRE_MSG_QUEUE_CREATE && q.context == 2) ||
	    (type >= SPYRE_MSG_QUEUE_CREATE && type <= SPYRE_MSG_QUEUE_PRIORITY && i == OTHER_PAGE))
		return;
	mock_send(type, body, length);
}

static void finish(void)
{
	u32 e = in8() % MOCK_ENGINES;
	struct mcu_completion *c;
	u8 how = in8();
	struct spyre_rb rb;

	if (!mock.engine[e].busy || mock.done_put - mock.done_got >= 60)
		return;
	mock_finish(e, how & 15, in32());
	c = &mock.done[(mock.done_put - 1) % 64];
	memcpy(&rb, c->rb, sizeof(rb));
	rb.rb_hmierr_syndrome = how >> 4;
	rb.nstuck = in8();
	rb.cycles = in64();
	rb.bytes = in32();
	memcpy(c->rb, &rb, sizeof(rb));
	/* Once more, or one that nobody asked for. */
	if (how & 128) {
		mock.done[mock.done_put % 64] = *c;
		mock.done[mock.done_put++ % 64].tag ^= in8() & 3;
	}
}

static void operation(void)
{
	u8 op = in8();
	struct mq *q = &own[op >> 6];
	u32 n;

	switch (op % 16) {
	case 0 ... 3:
		put(q);
		break;
	case 4:
		submit(q, q->tail);
		break;
	case 5:
		submit(q, in8() & 1 ? in32() : q->tail + in8());
		break;
	case 6:
		if (mock.doorbells < 60)
			mock_doorbell(in32() % 4096, in32());
		mock.overflow = in8();
		break;
	case 7:
	case 8:
		message();
		break;
	case 9:
	case 10:
		finish();
		break;
	case 11:
		mock.readonly = OWN + in32() % OWN_BYTES;
		mock.readonly_end = mock.readonly + in32() % 0x20000;
		if (mock.readonly_end > OWN + OWN_BYTES)
			mock.readonly_end = OWN + OWN_BYTES;
		break;
	case 12:
		memcpy(mock_at(OWN + 8u * (in32() % (OWN_BYTES / 8))), &(u64){ in8() }, 8);
		break;
	case 13:
		mock.time += in8() & 1 ? in8() * 1000ull : in32();
		break;
	case 14:
		*(u32 *)mock_at(ARM(1)) = in8();
		mock.temperature = in8() * 300u;
		mock.power = in32() % 100000;
		break;
	default:
		for (n = in8() % 16; n && turn(); n--)
			;
	}
}

/* The host reads events while the firmware runs. */
static void run(void)
{
	u32 i;

	for (i = 0; i < 64; i++) {
		mock_run();
		mock.host_reg[SPYRE_REG_MBOX_EVT_HEAD / 4] = mock.reg[MCU_EVT_TAIL / 4];
		mock.irq |= MCU_IRQ_MBOX;
	}
}

static void end_jobs(void)
{
	u32 e, i;

	for (i = 0; i < 1000; i++) {
		for (e = 0; e < MOCK_ENGINES; e++)
			if (mock.engine[e].busy && mock.done_put - mock.done_got < 60)
				mock_finish(e, mock.engine[e].cancelled ? SPYRE_ERR_CANCELLED : SPYRE_OK, 10);
		mock.time += SPYRE_SOC_HZ / 100;
		run();
		for (e = 0; e < MOCK_ENGINES && !mock.engine[e].busy; e++)
			;
		if (e == MOCK_ENGINES)
			return;
	}
	fail("jobs go on for ever", 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spyre_cb cb;
	u32 i, beats;

	in = data;
	in_end = data + size;
	if (mock_boot())
		fail("boot", 0);
	new_context(1);
	new_context(2);
	for (i = 0; i < QUEUES; i++)
		own[i] = new_queue(OWN + i * 0x10000, 32 + i, 1);
	other = new_queue(OTHER, OTHER_PAGE, 2);
	for (i = 0; i < OPS_MAX && in < in_end; i++)
		operation();
	end_jobs();

	beats = mock.heartbeats;
	if (mock_call(SPYRE_MSG_GET_TELEMETRY, NULL, 0) != SPYRE_MSG_OK)
		fail("telemetry is not answered", 0);
	if (mock.heartbeats == beats)
		fail("the heartbeat stands still", beats);
	if (card.pending_ops)
		fail("commands that never ended", card.pending_ops);
	memset(&cb, 0, sizeof(cb));
	cb.flags = SPYRE_CB_F_RESPONSE;
	other.ring[0] = cb;
	cb.type = SPYRE_CB_FILL;
	cb.u.fill.bytes = 128;
	other.ring[1] = cb;
	submit(&other, 2);
	run();
	end_jobs();
	if (other.st->done != 2 || other.st->error || other.st->state != SPYRE_QUEUE_ACTIVE)
		fail("the second context's queue", other.st->done);
	return 0;
}
