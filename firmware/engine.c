// SPDX-License-Identifier: MIT
/*
 * Engines: starting jobs and taking their completions. One job per engine; which queue gets it was
 * decided in dispatch.c.
 */
#include "firmware.h"

#define COMPLETIONS_PER_TURN	16
#define COST_MAX		(500u * FW_MS)	/* what one job can set its class back */

static struct engine engine[MCU_ENG_MAX];
static u32 number;
static u32 idle_mask[FW_KINDS];	/* bit e: engine e is of the kind and idle */
static u32 sequence;
static u64 hold;

void engine_init(void)
{
	u32 e, kind;

	number = reg_read(MCU_ENGINES);
	if (number > MCU_ENG_MAX)
		number = MCU_ENG_MAX;
	sequence = 0;
	hold = 0;
	memset(engine, 0, sizeof(engine));
	memset(idle_mask, 0, sizeof(idle_mask));
	memset(card.engines, 0, sizeof(card.engines));
	for (e = 0; e < number; e++) {
		kind = reg_read(MCU_ENG_KIND(e));
		if (!kind || kind >= FW_KINDS)
			continue;
		engine[e].kind = (u8)kind;
		idle_mask[kind] |= 1u << e;
		card.engines[kind]++;
	}
}

u32 engine_idle(u32 kind)
{
	u32 e, mask = idle_mask[kind];

	for (e = 0; mask; e++, mask >>= 1)
		if (mask & 1)
			return e;
	return FW_NONE;
}

void engine_holders(struct spyre_msg_engines *m)
{
	u32 e;

	memset(m, 0, sizeof(*m));
	for (e = 0; e < number; e++)
		if (engine[e].busy)
			m->job[e] = engine[e].queue->context | engine[e].tag >> 4 << 8;
}

int engine_any_busy(void)
{
	u32 e;

	for (e = 0; e < number; e++)
		if (engine[e].busy)
			return 1;
	return 0;
}

u64 engine_hold(void)
{
	return hold;
}

/*
 * Nonzero: more than one part, or a list, of which only the engine knows. Such a copy stays the queue's entry
 * .issue until its last part has ended, so that its control block is kept and what comes after it waits.
 */
static u8 in_parts(const struct spyre_cb *cb)
{
	const struct spyre_dma_desc *d = &cb->u.dma;
	u64 sticks;
	u32 i;

	if (cb->type == SPYRE_CB_COMPUTE)
		return 0;
	if (cb->type == SPYRE_CB_FILL)
		return cb->u.fill.bytes > (u64)FW_DMA_PART * SPYRE_STICK;
	if (cb->flags & SPYRE_CB_F_LIST)
		return 1;
	sticks = (d->bytes + SPYRE_STICK - 1) / SPYRE_STICK;
	for (i = 0; i + 1 < d->ndims && sticks <= FW_DMA_PART; i++)
		sticks *= d->count[i];
	return sticks > FW_DMA_PART;
}

int engine_start(u32 e, struct queue *q, const struct spyre_cb *cb)
{
	static struct mcu_job job __attribute__((aligned(8)));
	struct engine *en = &engine[e];
	struct spyre_cb *copy = (struct spyre_cb *)(void *)job.cb;

	en->busy = 1;
	en->flags = cb->flags;
	en->queue = q;
	en->entry = q->issue;
	en->cookie = cb->cookie;
	en->timeout = cb->timeout ? cb->timeout : q->timeout;
	en->addr = cb->type == SPYRE_CB_COMPUTE ? cb->u.compute.bootaddr : 0;
	en->tag = sequence++ << 4 | e;
	en->wanted = 0;
	en->overdue = 0;
	idle_mask[en->kind] &= ~(1u << e);
	q->inflight++;
	fw_mem.context[q->context].inflight++;

	en->part = in_parts(cb);
	q->part = en->part;
	job.context = q->context;
	job.tag = en->tag;
	job.at = q->part_at;
	job.part = FW_DMA_PART;
	job.since = q->part_end;
	memcpy(copy, cb, sizeof(*copy));
	copy->timeout = en->timeout;
	compiler_barrier();
	reg_write(MCU_ENG_START(e), mcu_addr(&job));
	if (en->part)
		return 1;
	q->issue++;
	q->checked = 0;
	return 0;
}

/* Modelled SoC cycles of a job. TS words wrap; for COMPUTE its core cycles tell how often. */
static u64 duration(const struct engine *en, const struct spyre_rb *rb)
{
	u32 span = rb->ts[4] - rb->ts[0];

	/* Divisions in software: only for jobs that run for seconds. */
	if (en->kind == MCU_ENGINE_COMPUTE && rb->cycles > card.long_job && card.core_khz)
		return rb->cycles / card.core_khz * card.soc_khz;
	return span;
}

/*
 * A part has ended. Nonzero: another one follows. After the last one the response block is that of a copy made
 * at once, and .issue moves on.
 */
static int part_over(struct queue *q, const struct mcu_completion *c, struct spyre_rb *rb, u64 busy)
{
	u32 began = rb->ts[0], i;

	q->part = 0;
	if (!q->part_at) {
		q->part_ts1 = rb->ts[0];
		q->part_ts4 = rb->ts4;
		q->part_busy = 0;
		q->part_bytes = 0;
	}
	q->part_busy += busy;
	q->part_bytes += rb->bytes;
	if (c->next && !rb->status) {
		q->part_at = c->next;
		q->part_end = c->end;
		return 1;
	}
	if (q->part_at) {
		if (rb->ts[3] == began)
			rb->ts4 = q->part_ts4;
		for (i = 0; i < 5; i++)
			if (rb->ts[i] == began)
				rb->ts[i] = q->part_ts1;
		rb->bytes = q->part_bytes;
	}
	q->part_at = 0;
	q->issue++;
	q->checked = 0;
	return 0;
}

static void complete(const struct mcu_completion *c, struct spyre_rb *rb)
{
	struct engine *en = &engine[c->engine];
	struct queue *q = en->queue;
	struct context *ctx = &fw_mem.context[q->context];
	u64 busy = duration(en, rb), all = busy, bytes = rb->bytes;
	u32 failed;
	int more = 0;

	en->busy = 0;
	en->queue = NULL;
	idle_mask[en->kind] |= 1u << c->engine;
	q->inflight--;
	ctx->inflight--;
	rb->cookie = en->cookie;
	if (en->part) {
		more = part_over(q, c, rb, busy);
		all = q->part_busy;
	}
	/*
	 * Timeouts are card time, so a slow host never causes one. The compute engine decides its own
	 * before data moves, by execution time; the same rule here.
	 */
	if (!more && !rb->status && en->timeout && en->timeout <
	    (en->kind == MCU_ENGINE_COMPUTE ? rb->ts[3] - rb->ts[2] : all))
		rb->status = SPYRE_ERR_TIMEOUT;
	if (en->overdue && rb->status == SPYRE_ERR_CANCELLED)
		rb->status = SPYRE_ERR_TIMEOUT;
	dispatch_charge(en->kind, q, busy > COST_MAX ? COST_MAX : (u32)busy);
	usage_job(ctx, en->kind, busy, bytes);
	if (card.over_power && en->kind == MCU_ENGINE_COMPUTE)
		hold = soc_time() + (busy > FW_TICK ? FW_TICK : busy);
	if (more) {
		if (q->where == WHERE_BLOCKED)
			queue_wake(q);
		queue_check_op(q);
		context_check_op(ctx);
		return;
	}

	/* Order: data (the engine's), response block, status, interrupt. */
	if (rb->status || (en->flags & SPYRE_CB_F_RESPONSE))
		response_write(q, en->entry, rb);
	queue_done(q, en->entry);
	failed = rb->status;
	if (failed && failed != SPYRE_ERR_CANCELLED) {
		usage_cb(ctx, 0, 1);
		ras_cb(q, en->entry, en->kind, rb, en->addr);
	}
	/* A reset or destroy under way is about to clear the error: there is nobody to tell. */
	if (failed && q->op != SPYRE_MSG_QUEUE_RESET && q->op != SPYRE_MSG_QUEUE_DESTROY)
		queue_fail(q, en->entry, failed);
	if (failed == SPYRE_ERR_FAULT)
		context_fault(ctx, q);
	queue_show(q);
	if (q->where == WHERE_BLOCKED)
		queue_wake(q);
	queue_check_op(q);
	context_check_op(ctx);
}

void engine_completions(void)
{
	static struct mcu_completion c __attribute__((aligned(8)));
	u32 i;

	for (i = 0; i < COMPLETIONS_PER_TURN; i++) {
		reg_write(MCU_COMPL_POP, mcu_addr(&c));
		compiler_barrier();
		if (!reg_read(MCU_COMPL_VALID))
			return;
		if (c.engine >= number || !engine[c.engine].busy || engine[c.engine].tag != c.tag) {
			log_line(LOG_ERROR, "engine %u completed job %x, which it was not given",
				 c.engine, c.tag);
			continue;
		}
		complete(&c, (struct spyre_rb *)(void *)c.rb);
	}
}

void engine_held(u64 now)
{
	u32 e;

	for (e = 0; e < number; e++) {
		struct engine *en = &engine[e];

		if (!en->busy || en->kind != MCU_ENGINE_COMPUTE || en->overdue)
			continue;
		if (!dispatch_wanted(en->kind, en->queue->context)) {
			en->wanted = 0;
		} else if (!en->wanted) {
			en->wanted = now;
		} else if (now - en->wanted >= FW_HELD) {
			en->overdue = 1;
			log_line(LOG_WARN, "context %u held the cores while others waited for %u s: its job is ended",
				 en->queue->context, (u32)(FW_HELD / FW_MS / 1000u));
			reg_write(MCU_ENG_STATUS(e), 1);
		}
	}
}

void engine_cancel(const struct queue *q)
{
	u32 e;

	for (e = 0; e < number; e++)
		if (engine[e].busy && engine[e].queue == q)
			reg_write(MCU_ENG_STATUS(e), 1);
}
