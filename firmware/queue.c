// SPDX-License-Identifier: MIT
/*
 * Queues: their life, their status page, shadow doorbells and doorbells.
 *
 * Memory ordering between the user (U) and the card (C) on an idle queue:
 *
 *	U1: shadow.tail = new (release)		C1: status.event_idx = old (release)
 *	U2: full fence				C2: full fence
 *	U3: load status.event_idx		C3: load shadow.tail (acquire)
 *	U4: ring if event_idx was passed	C4: sleep if it did not move
 *
 * The two fences order U1 before U3 and C1 before C3 for everyone, so at least one of the loads sees
 * the other side's store: either C3 finds the new tail and the card goes on, or U3 finds event_idx =
 * old and the user rings. The doorbell is a wake-up and no more: the tail always comes from the
 * shadow word, since a doorbell of one thread may arrive after the tail of another was served. The
 * doorbell FIFO is looked at by WFI itself, so a doorbell between C4 and WFI is not lost.
 *
 * An acquire load of the tail orders it before the copy of the entries: an entry before the tail is
 * seen as the user left it.
 */
#include "firmware.h"

#define DOORBELLS_PER_TURN	64
#define POLLS_PER_TURN		8

static u16 by_page[SPYRE_DB_PAGES];		/* index in fw_mem.queue + 1 */
static u8 block_context[SPYRE_DB_BLOCKS];
static u8 block_queues[SPYRE_DB_BLOCKS];
static u32 given, freed;			/* slots ever used, slots in the free list */
static struct node polled;

void queue_init(void)
{
	memset(by_page, 0, sizeof(by_page));
	memset(block_queues, 0, sizeof(block_queues));
	given = 0;
	freed = 0;
	list_init(&polled);
}

struct queue *queue_find(u32 page)
{
	if (page >= SPYRE_DB_PAGES || !by_page[page])
		return NULL;
	return &fw_mem.queue[by_page[page] - 1];
}

static struct context *context_of(const struct queue *q)
{
	return &fw_mem.context[q->context];
}

/* --- Status page ---------------------------------------------------------------------------- */

struct place queue_status_at(const struct queue *q, u32 offset)
{
	return place_of(MCU_SPACE_HMVA_PRIV, q->context, q->status + offset);
}

/*
 * A status page that is gone fails no store here: it is the driver's memory, and the driver takes it
 * away only after the queue. What is lost then is seen by nobody.
 */
void queue_show_event_idx(struct queue *q)
{
	bus_store_pair(queue_status_at(q, offsetof(struct spyre_queue_status, event_idx)),
		       q->event_idx, q->parked);
}

static void show_error(const struct queue *q)
{
	bus_store_pair(queue_status_at(q, offsetof(struct spyre_queue_status, error)),
		       q->error, q->error_entry);
}

static void show_state(const struct queue *q)
{
	bus_store_pair(queue_status_at(q, offsetof(struct spyre_queue_status, generation)),
		       q->generation, q->state);
}

static u32 show_progress(struct queue *q)
{
	usage_cb(context_of(q), q->done - q->shown_done, 0);
	q->shown_fetch = q->fetch;
	q->shown_done = q->done;
	return bus_store_pair(queue_status_at(q, offsetof(struct spyre_queue_status, fetched)),
			      q->fetch, q->done);
}

void queue_show(struct queue *q)
{
	u32 was = q->shown_done;

	if (q->fetch == q->shown_fetch && q->done == was)
		return;
	show_progress(q);
	if (q->done != was)
		interrupt_progress(context_of(q));
}

void queue_done(struct queue *q, u32 entry)
{
	if (entry == q->done && !q->done_mask) {
		q->done++;
		return;
	}
	q->done_mask |= 1u << (entry - q->done);
	while (q->done_mask & 1) {
		q->done_mask >>= 1;
		q->done++;
	}
}

/* --- Lists ---------------------------------------------------------------------------------- */

void queue_unlink(struct queue *q)
{
	if (q->where < FW_KINDS) {
		dispatch_remove(q);
	} else if (q->where == WHERE_POLLED) {
		list_del(&q->link);
	} else if (q->where == WHERE_PARKED) {
		list_del(&q->link);
		list_del(&q->waiter);
		timer_clear(q);
	}
	q->where = WHERE_TURN;
}

void queue_wake(struct queue *q)
{
	if (q->where < FW_KINDS || q->where >= WHERE_OFF)
		return;
	queue_unlink(q);
	dispatch_push(q, FW_KIND_CORE);
}

static u8 state_of(const struct queue *q, int suspended)
{
	if (q->error)
		return SPYRE_QUEUE_ERROR;
	return suspended ? SPYRE_QUEUE_SUSPENDED : SPYRE_QUEUE_ACTIVE;
}

void queue_fail(struct queue *q, u32 entry, u32 status)
{
	if (q->error)
		return;
	q->error = status;
	q->error_entry = entry;
	q->state = SPYRE_QUEUE_ERROR;
	show_error(q);
	show_state(q);
	show_progress(q);
	interrupt_progress(context_of(q));
	event_id(SPYRE_MSG_EVT_QUEUE_ERROR, q->id, status);
	/* What waits for an engine is to be cancelled instead. */
	if (q->where > FW_KIND_CORE && q->where < FW_KINDS) {
		queue_unlink(q);
		dispatch_push(q, FW_KIND_CORE);
	} else {
		queue_wake(q);
	}
}

/* --- Creation and commands ------------------------------------------------------------------ */

u32 queue_create(const struct spyre_msg_queue *m)
{
	struct context *c = context_find(m->context);
	u32 block = m->id / SPYRE_DB_BLOCK_PAGES;
	struct place at;
	struct queue *q;
	u32 tail, index;
	u64 word;

	if (!c || m->id >= SPYRE_DB_PAGES || by_page[m->id])
		return SPYRE_MSG_ERR_ID;
	if (m->entries < SPYRE_RING_MIN || m->entries > SPYRE_RING_MAX ||
	    (m->entries & (m->entries - 1)) ||
	    (m->priority >= SPYRE_PRIORITIES && m->priority != SPYRE_QUEUE_KERNEL) ||
	    m->ring % 4096 || m->response % SPYRE_STICK || m->shadow % 64 || m->status % 64)
		return SPYRE_MSG_ERR_ARG;
	/* Isolation of doorbells is by block: two contexts in one would ring each other's queues. */
	if (block_queues[block] && block_context[block] != m->context)
		return SPYRE_MSG_ERR_ARG;
	if (c->op || card.tripped)
		return SPYRE_MSG_ERR_BUSY;
	if (!freed && given == FW_QUEUES)
		return SPYRE_MSG_ERR_LIMIT;
	if (bus_load32(place_of(MCU_SPACE_HMVA_PRIV, m->context, m->shadow), &tail))
		return SPYRE_MSG_ERR_FAULT;
	at = place_of(MCU_SPACE_HMVA_PRIV, m->context, m->ring);
	if (bus_load64(at, &word))
		return SPYRE_MSG_ERR_FAULT;
	at.addr += (u64)m->entries * SPYRE_STICK - 8;
	if (bus_load64(at, &word))
		return SPYRE_MSG_ERR_FAULT;
	at.addr = m->response;
	if (m->response && bus_word(at, MCU_WORD_PROBE64, 0))
		return SPYRE_MSG_ERR_FAULT;
	at.addr += (u64)m->entries * SPYRE_STICK - 8;
	if (m->response && bus_word(at, MCU_WORD_PROBE64, 0))
		return SPYRE_MSG_ERR_FAULT;

	index = freed ? fw_mem.free_queue[freed - 1] : given;
	q = &fw_mem.queue[index];
	memset(q, 0, sizeof(*q));
	q->index = (u16)index;
	q->batch = FW_BATCHES;
	q->id = m->id;
	q->context = (u16)m->context;
	q->entries = m->entries;
	q->kernel = m->priority == SPYRE_QUEUE_KERNEL;
	q->priority = q->kernel ? 0 : (u8)m->priority;
	q->ring = m->ring;
	q->response = m->response;
	q->shadow = m->shadow;
	q->status = m->status;
	q->timeout = m->timeout;
	q->generation = m->generation;
	q->tail = m->start;
	q->fetch = m->start;
	q->issue = m->start;
	q->done = m->start;
	q->shown_done = m->start;
	/* Behind the first tail: until the queue has run dry once the card looks by itself. */
	q->event_idx = m->start - 1;
	q->state = SPYRE_QUEUE_ACTIVE;
	if (show_progress(q))
		return SPYRE_MSG_ERR_FAULT;
	queue_show_event_idx(q);
	bus_store64(queue_status_at(q, offsetof(struct spyre_queue_status, last_fence)), 0);
	show_error(q);
	show_state(q);

	if (freed)
		freed--;
	else
		given++;
	by_page[q->id] = (u16)(index + 1);
	block_context[block] = (u8)m->context;
	block_queues[block]++;
	list_add_tail(&c->all, &q->sibling);
	c->queues++;
	card.queues++;
	dispatch_push(q, FW_KIND_CORE);
	return SPYRE_MSG_OK;
}

static void queue_free(struct queue *q)
{
	struct context *c = context_of(q);

	timer_clear(q);
	batch_free(q);
	/* Whoever destroyed it may want to know what it cost. */
	usage_show(c);
	list_del(&q->sibling);
	c->queues--;
	card.queues--;
	by_page[q->id] = 0;
	block_queues[q->id / SPYRE_DB_BLOCK_PAGES]--;
	fw_mem.free_queue[freed++] = q->index;
}

u32 queue_op(u32 id, u32 op, u32 tag)
{
	struct queue *q = queue_find(id);

	if (!q)
		return SPYRE_MSG_ERR_ID;
	if (q->op)
		return SPYRE_MSG_ERR_BUSY;
	if (op == SPYRE_MSG_QUEUE_RESET && card.tripped)
		return SPYRE_MSG_ERR_BUSY;
	queue_unlink(q);
	q->where = WHERE_OFF;
	q->op = (u16)op;
	q->op_tag = tag;
	q->op_cancelled = 0;
	card.pending_ops++;
	if (op == SPYRE_MSG_QUEUE_SUSPEND) {
		q->suspended = 1;
	} else {
		sync_unpark(q);
		if (q->inflight)
			timer_set(q, soc_time() + FW_GRACE);
	}
	queue_check_op(q);
	return SPYRE_MSG_OK;
}

/* Goes on after a command, unless something still forbids it. */
static void queue_go(struct queue *q)
{
	if (q->where == WHERE_OFF && !q->suspended && !q->op && !q->no_ring)
		dispatch_push(q, FW_KIND_CORE);
}

static u32 finish_reset(struct queue *q)
{
	u32 tail;

	queue_cancel_fetched(q);
	queue_show(q);
	if (bus_load32(place_of(MCU_SPACE_HMVA_PRIV, q->context, q->shadow), &tail)) {
		queue_lost_ring(q, q->fetch, q->shadow);
		return SPYRE_MSG_ERR_FAULT;
	}
	q->tail = tail;
	q->fetch = tail;
	q->issue = tail;
	q->done = tail;
	q->shown_done = tail;	/* what is skipped counts as nobody's work */
	q->done_mask = 0;
	q->no_ring = 0;
	q->error = 0;
	q->error_entry = 0;
	q->state = state_of(q, q->suspended);
	show_progress(q);
	show_error(q);
	show_state(q);
	interrupt_progress(context_of(q));
	return SPYRE_MSG_OK;
}

void queue_check_op(struct queue *q)
{
	u32 op = q->op, tag = q->op_tag;
	u32 status = SPYRE_MSG_OK;

	if (!op || q->inflight)
		return;
	q->op = 0;
	timer_clear(q);
	switch (op) {
	case SPYRE_MSG_QUEUE_SUSPEND:
		q->state = state_of(q, 1);
		queue_show(q);
		show_state(q);
		break;
	case SPYRE_MSG_QUEUE_RESET:
		status = finish_reset(q);
		queue_go(q);
		break;
	case SPYRE_MSG_QUEUE_DESTROY:
		queue_cancel_fetched(q);
		queue_show(q);
		queue_free(q);
		break;
	}
	op_done(tag, status);
}

u32 queue_resume(u32 id)
{
	struct queue *q = queue_find(id);

	if (!q)
		return SPYRE_MSG_ERR_ID;
	if (q->op)
		return SPYRE_MSG_ERR_BUSY;
	if (!q->suspended)
		return SPYRE_MSG_OK;
	q->suspended = 0;
	q->state = state_of(q, 0);
	show_state(q);
	queue_go(q);
	return SPYRE_MSG_OK;
}

u32 queue_priority(u32 id, u32 priority)
{
	struct queue *q = queue_find(id);
	u32 where;

	if (!q)
		return SPYRE_MSG_ERR_ID;
	if (priority >= SPYRE_PRIORITIES || q->kernel)
		return SPYRE_MSG_ERR_ARG;
	where = q->where;
	if (where < FW_KINDS)
		dispatch_remove(q);
	q->priority = (u8)priority;
	if (where < FW_KINDS)
		dispatch_push(q, where);
	return SPYRE_MSG_OK;
}

void queue_timer(struct queue *q, u64 now)
{
	(void)now;
	if (q->op) {
		q->op_cancelled = 1;
		engine_cancel(q);
	} else {
		queue_wake(q);
	}
}

/* --- Tails and doorbells -------------------------------------------------------------------- */

void queue_lost_ring(struct queue *q, u32 entry, u64 addr)
{
	if (q->no_ring)
		return;
	q->no_ring = 1;
	ras_queue(q, entry, SPYRE_ERR_QUEUE, addr);
	queue_fail(q, entry, SPYRE_ERR_QUEUE);
}

int queue_read_tail(struct queue *q)
{
	u32 tail;

	if (bus_load32(place_of(MCU_SPACE_HMVA_PRIV, q->context, q->shadow), &tail)) {
		queue_lost_ring(q, q->fetch, q->shadow);
		return 0;
	}
	if (tail - q->fetch > q->entries) {
		log_line(LOG_WARN, "queue %u: tail %x is more than a ring past %x", q->id, tail,
			 q->fetch);
		queue_lost_ring(q, q->fetch, 0);
		return 0;
	}
	q->tail = tail;
	return 1;
}

void queue_idle(struct queue *q)
{
	if (q->no_ring) {
		q->where = WHERE_OFF;
		return;
	}
	q->where = WHERE_POLLED;
	q->polled_since = reg_read(MCU_POLL_NS);
	list_add_tail(&polled, &q->link);
}

/* Nothing came for a while: ask for a doorbell. See the top of the file for the ordering. */
static void queue_arm(struct queue *q)
{
	q->event_idx = q->tail;
	queue_show_event_idx(q);
	bus_fence();
	if (!queue_read_tail(q) || q->tail != q->fetch) {
		queue_wake(q);
		return;
	}
	queue_unlink(q);
	q->where = WHERE_ARMED;
}

int queue_any_polled(void)
{
	return !list_empty(&polled);
}

void queue_poll(void)
{
	u32 now, i;

	if (list_empty(&polled))
		return;
	now = reg_read(MCU_POLL_NS);
	for (i = 0; i < POLLS_PER_TURN && !list_empty(&polled); i++) {
		struct queue *q = list_entry(polled.next, struct queue, link);

		list_del(&q->link);
		list_add_tail(&polled, &q->link);
		if (!queue_read_tail(q) || q->tail != q->fetch)
			queue_wake(q);
		else if (now - q->polled_since > FW_POLL_NS)
			queue_arm(q);
	}
}

static void doorbell(u32 page)
{
	struct queue *q;
	u32 block;

	page &= SPYRE_DB_PAGES - 1;
	block = page / SPYRE_DB_BLOCK_PAGES;
	if (block_queues[block])
		sync_wake_context(&fw_mem.context[block_context[block]]);
	q = queue_find(page);
	if (q && q->where == WHERE_ARMED)
		queue_wake(q);
}

void doorbells(void)
{
	u32 i, entry;

	for (i = 0; i < DOORBELLS_PER_TURN; i++) {
		entry = reg_read(MCU_DB_POP);
		if (!entry)
			entry = reg_read(MCU_DB_OVERFLOW_POP);
		if (!entry)
			return;
		doorbell(entry & ~(1u << 31));
	}
}

int queue_all_suspended(void)
{
	u32 page, left = card.queues;

	for (page = 0; left && page < SPYRE_DB_PAGES; page++) {
		const struct queue *q = queue_find(page);

		if (!q)
			continue;
		if (!q->suspended || q->op)
			return 0;
		left--;
	}
	return 1;
}

void queue_dump(u32 id)
{
	const struct queue *q = queue_find(id);

	if (!q)
		return;
	log_line(LOG_ERROR, "queue %u context %u state %u where %u class %u inflight %u "
		 "tail %x fetched %x started %x done %x error %u", q->id, q->context, q->state,
		 q->where, q->priority, q->inflight, q->tail, q->fetch, q->issue, q->done,
		 q->error);
}
