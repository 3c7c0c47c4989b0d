// SPDX-License-Identifier: MIT
/*
 * A turn of one queue: copy a batch of entries, check each once, start those that go to engines, do
 * the others here. This is the hot path.
 */
#include "firmware.h"

static struct context *context_of(const struct queue *q)
{
	return &fw_mem.context[q->context];
}

/*
 * Copies of entries. Entry i of a queue is in slot i mod FW_BATCH of its batch. Batches lie in private
 * RAM, which the core reads faster than anything else; there are a few, for the queues that run now.
 * When another queue needs one, what its owner has not started yet moves to the window.
 */
static struct spyre_cb batch[FW_BATCHES][FW_BATCH];
static struct queue *owner[FW_BATCHES];
static u32 next_batch;

void batch_init(void)
{
	memset(owner, 0, sizeof(owner));
	next_batch = 0;
}

void batch_free(struct queue *q)
{
	if (q->batch < FW_BATCHES)
		owner[q->batch] = NULL;
	q->batch = FW_BATCHES;
}

struct spyre_cb *queue_cb(const struct queue *q, u32 entry)
{
	if (q->batch < FW_BATCHES)
		return &batch[q->batch][entry % FW_BATCH];
	return &fw_mem.cb[q->index][entry % FW_BATCH];
}

static void batch_take(struct queue *q)
{
	u32 b = next_batch;
	struct queue *old = owner[b];
	u32 i;

	next_batch = (b + 1) % FW_BATCHES;
	if (old) {
		for (i = old->issue; i != old->fetch; i++)
			fw_mem.cb[old->index][i % FW_BATCH] = batch[b][i % FW_BATCH];
		old->batch = FW_BATCHES;
	}
	owner[b] = q;
	q->batch = (u8)b;
}

/* Copies the next entries, up to the end of a batch. 0: there are none, or the queue has failed. */
static int fetch(struct queue *q)
{
	u32 n, room = FW_BATCH - q->fetch % FW_BATCH;
	u64 from;

	if (q->no_ring)
		return 0;
	if (q->tail == q->fetch && !queue_read_tail(q))
		return 0;
	n = q->tail - q->fetch;
	if (!n)
		return 0;
	if (n > room)
		n = room;
	/* Nothing is left of the last batch, so it may lie anywhere. */
	if (q->batch == FW_BATCHES)
		batch_take(q);
	/* Rings are a multiple of the batch, so a batch never wraps. */
	from = q->ring + (u64)(q->fetch & (q->entries - 1)) * sizeof(struct spyre_cb);
	if (bus_read(place_of(MCU_SPACE_HMVA_PRIV, q->context, from), queue_cb(q, q->fetch),
		     n * (u32)sizeof(struct spyre_cb))) {
		queue_lost_ring(q, q->fetch, from);
		return 0;
	}
	q->fetch += n;
	return 1;
}

/* Entry .issue is over without an engine. */
static void complete(struct queue *q, const struct spyre_cb *cb, u32 status, u64 now)
{
	if (status || (cb->flags & SPYRE_CB_F_RESPONSE))
		response_write(q, q->issue, response_core(cb->cookie, status, now));
	queue_done(q, q->issue);
	q->issue++;
	q->checked = 0;
	/* It may have been a copy of which some parts are done. */
	q->part_at = 0;
}

static void fail(struct queue *q, const struct spyre_cb *cb, const struct verdict *v, u32 syndrome,
		 u64 now)
{
	struct spyre_rb *rb = response_core(cb->cookie, v->status, now);
	u32 entry = q->issue;

	if (v->mode) {
		rb->rb_hmierr_mode = v->mode;
		rb->rb_hmierr_addr = v->addr;
		rb->rb_hmierr_syndrome = syndrome;
	}
	response_write(q, entry, rb);
	queue_done(q, entry);
	q->issue++;
	q->checked = 0;
	usage_cb(context_of(q), 0, 1);
	ras_cb(q, entry, FW_KIND_CORE, rb, v->addr);
	queue_fail(q, entry, v->status);
	if (v->status == SPYRE_ERR_FAULT)
		context_fault(context_of(q), q);
}

void queue_cancel_fetched(struct queue *q)
{
	u64 now = soc_time();

	/* At most one batch lies between the two. */
	while (q->issue != q->fetch)
		complete(q, queue_cb(q, q->issue), SPYRE_ERR_CANCELLED, now);
}

/* What became of entry .issue. */
enum step {
	STEP_NEXT,	/* it has completed or runs on an engine */
	STEP_BLOCKED,	/* it waits for earlier ones of this queue */
	STEP_ENGINE,	/* it waits for an engine */
	STEP_PARKED,	/* it is a WAIT that is not satisfied */
};

static enum step signal(struct queue *q, const struct spyre_cb *cb, u64 now)
{
	struct verdict v = { .status = SPYRE_OK };
	u32 syndrome = 0;

	/*
	 * The response block is visible before the fence, so it must not have to be taken back:
	 * every check of the stores comes first.
	 */
	if ((cb->flags & (SPYRE_CB_F_RESPONSE | SPYRE_CB_F_DOORBELL)) &&
	    sync_probe(q, cb, &v, &syndrome)) {
		fail(q, cb, &v, syndrome, now);
		return STEP_NEXT;
	}
	if (cb->flags & SPYRE_CB_F_RESPONSE)
		response_write(q, q->issue, response_core(cb->cookie, SPYRE_OK, now));
	if (sync_signal(q, cb, &v, &syndrome)) {
		fail(q, cb, &v, syndrome, now);
		return STEP_NEXT;
	}
	queue_done(q, q->issue);
	q->issue++;
	q->checked = 0;
	return STEP_NEXT;
}

static enum step step_core(struct queue *q, const struct spyre_cb *cb, u64 now)
{
	struct verdict v = { .status = SPYRE_OK };
	u32 syndrome = 0;

	switch (cb->type) {
	case SPYRE_CB_SIGNAL:
		return signal(q, cb, now);
	case SPYRE_CB_TIMESTAMP:
		if (sync_timestamp(q, cb, &v, &syndrome))
			fail(q, cb, &v, syndrome, now);
		else
			complete(q, cb, SPYRE_OK, now);
		return STEP_NEXT;
	case SPYRE_CB_WAIT:
		switch (sync_wait(q, cb, now, &v, &syndrome)) {
		case WAIT_PARK:
			return STEP_PARKED;
		case WAIT_FAILED:
			fail(q, cb, &v, syndrome, now);
			return STEP_NEXT;
		default:
			complete(q, cb, SPYRE_OK, now);
			return STEP_NEXT;
		}
	default:
		complete(q, cb, SPYRE_OK, now);
		return STEP_NEXT;
	}
}

static enum step step(struct queue *q, u64 now)
{
	const struct spyre_cb *cb = queue_cb(q, q->issue);
	int first = q->issue == q->done;
	u32 kind, e;

	/* .done_mask has room for that many. */
	if (q->part || q->issue - q->done >= FW_BATCH)
		return STEP_BLOCKED;
	if (q->error) {
		if (q->waiting)
			sync_unpark(q);
		complete(q, cb, SPYRE_ERR_CANCELLED, now);
		return STEP_NEXT;
	}
	if (!q->checked) {
		struct verdict v;

		if (cb_check(cb, &v)) {
			/* After all earlier ones: one of those may fail first. */
			if (!first)
				return STEP_BLOCKED;
			fail(q, cb, &v, SPYRE_SYN_UNALIGNED, now);
			return STEP_NEXT;
		}
		q->checked = 1;
	}
	/* Both say that what came before is done: a fence's value, and the time at which. */
	if (!first && ((cb->flags & SPYRE_CB_F_BARRIER) || cb->type == SPYRE_CB_SIGNAL ||
		       cb->type == SPYRE_CB_TIMESTAMP))
		return STEP_BLOCKED;
	kind = cb_kind(cb->type);
	if (kind == FW_KIND_CORE)
		return step_core(q, cb, now);
	/* Those that wait already come first. */
	if (dispatch_waiting(kind) || (kind == MCU_ENGINE_COMPUTE && now < engine_hold()))
		return STEP_ENGINE;
	e = engine_idle(kind);
	if (e == FW_NONE)
		return STEP_ENGINE;
	dispatch_direct(kind, q);
	return engine_start(e, q, cb) ? STEP_BLOCKED : STEP_NEXT;
}

void queue_run(struct queue *q, u64 now)
{
	u32 start = q->issue;
	enum step s = STEP_NEXT;
	int dry = 0;

	while (s == STEP_NEXT && q->issue - start < FW_BATCH) {
		if (q->issue == q->fetch && !fetch(q)) {
			dry = 1;
			break;
		}
		s = step(q, now);
	}
	/* Before the queue is shown parked or dry, what it did is. */
	queue_show(q);
	dispatch_charge(FW_KIND_CORE, q, q->issue - start + 1);
	if (dry)
		queue_idle(q);
	else if (s == STEP_NEXT)
		dispatch_push(q, FW_KIND_CORE);
	else if (s == STEP_BLOCKED)
		q->where = WHERE_BLOCKED;
	else if (s == STEP_PARKED)
		sync_park(q, now);
	else
		dispatch_push(q, cb_kind(queue_cb(q, q->issue)->type));
}
