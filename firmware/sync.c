// SPDX-License-Identifier: MIT
/*
 * SIGNAL, WAIT and TIMESTAMP.
 *
 * A WAIT that is not satisfied parks its queue. It looks again when
 *  - a SIGNAL of this card stores to the same address of the same context: at once;
 *  - a SIGNAL of this card stores anywhere else (it may be an alias of the same memory): all parked
 *    queues look within FW_SWEEP, so that many signals cost no more than one sweep each FW_SWEEP;
 *  - a doorbell of its context rings: at once;
 *  - its timer fires: FW_WAIT_MIN, doubled up to FW_WAIT_MAX, for writers that do none of these.
 *
 * Parking: status.parked = 1, full fence, one more look. The CPU stores the word, full fence, loads
 * .parked and rings if it is set. As with event_idx, one of the two sees the other.
 */
#include "firmware.h"

static struct node waiters;	/* contexts with parked queues */
static u64 sweep_at;

void sync_init(void)
{
	list_init(&waiters);
	sweep_at = ~0ull;
}

static struct context *context_of(const struct queue *q)
{
	return &fw_mem.context[q->context];
}

static u32 space_of(const struct spyre_cb *cb)
{
	return cb->flags & SPYRE_CB_F_HOST ? MCU_SPACE_HMVA : MCU_SPACE_DMVA;
}

static u32 fault(struct verdict *v, u32 mode, u32 syndrome)
{
	v->status = spyre_syndrome_status(syndrome);
	v->mode = mode;
	v->addr = reg_read64(MCU_COPY_FAULT);
	return v->status;
}

static u32 store_mode(const struct spyre_cb *cb)
{
	return cb->flags & SPYRE_CB_F_HOST ? SPYRE_HMI_HOST_WRITE : SPYRE_HMI_STORE;
}

u32 sync_probe(struct queue *q, const struct spyre_cb *cb, struct verdict *v, u32 *syndrome)
{
	const struct spyre_cb_sync *s = &cb->u.sync;

	*syndrome = bus_word(place_of(space_of(cb), q->context, s->addr), MCU_WORD_PROBE64, 0);
	if (*syndrome)
		return fault(v, store_mode(cb), *syndrome);
	if (!(cb->flags & SPYRE_CB_F_DOORBELL))
		return 0;
	*syndrome = bus_word(place_of(MCU_SPACE_HMVA, q->context, s->doorbell & ~7ull),
			     MCU_WORD_PROBE64, 0);
	return *syndrome ? fault(v, SPYRE_HMI_HOST_WRITE, *syndrome) : 0;
}

/* All parked queues of a context, or those that wait for one word, get a turn. */
static void wake(struct context *c, int all, u32 space, u64 addr)
{
	struct node *n, *next;

	for (n = c->parked.next; n != &c->parked; n = next) {
		struct queue *q = list_entry(n, struct queue, link);

		next = n->next;
		if (all || (q->wait_addr == addr && q->wait_space == space))
			queue_wake(q);
	}
}

u32 sync_signal(struct queue *q, const struct spyre_cb *cb, struct verdict *v, u32 *syndrome)
{
	const struct spyre_cb_sync *s = &cb->u.sync;
	u32 op = cb->flags & SPYRE_CB_F_ADD ? MCU_WORD_ADD64 : MCU_WORD_STORE64;

	*syndrome = bus_word(place_of(space_of(cb), q->context, s->addr), op, s->value);
	if (*syndrome)
		return fault(v, store_mode(cb), *syndrome);
	bus_store64(queue_status_at(q, offsetof(struct spyre_queue_status, last_fence)), s->value);
	if (!list_empty(&waiters)) {
		wake(context_of(q), 0, space_of(cb), s->addr);
		if (sweep_at == ~0ull)
			sweep_at = soc_time() + FW_SWEEP;
	}
	if (!(cb->flags & SPYRE_CB_F_DOORBELL))
		return 0;
	/* The peer must find the fence when it looks. */
	bus_fence();
	*syndrome = bus_store32(place_of(MCU_SPACE_HMVA, q->context, s->doorbell),
				s->doorbell_value);
	return *syndrome ? fault(v, SPYRE_HMI_HOST_WRITE, *syndrome) : 0;
}

u32 sync_timestamp(struct queue *q, const struct spyre_cb *cb, struct verdict *v, u32 *syndrome)
{
	*syndrome = bus_store64(place_of(space_of(cb), q->context, cb->u.sync.addr), soc_time());
	return *syndrome ? fault(v, store_mode(cb), *syndrome) : 0;
}

enum wait_result sync_wait(struct queue *q, const struct spyre_cb *cb, u64 now,
			   struct verdict *v, u32 *syndrome)
{
	struct place at = place_of(space_of(cb), q->context, cb->u.sync.addr);
	u64 timeout = cb->timeout ? cb->timeout : q->timeout;
	u64 value;
	u32 look;

	for (look = 0; look < 2; look++) {
		*syndrome = bus_load64(at, &value);
		if (*syndrome) {
			fault(v, cb->flags & SPYRE_CB_F_HOST ? SPYRE_HMI_HOST_READ : SPYRE_HMI_LOAD,
			      *syndrome);
			sync_unpark(q);
			return WAIT_FAILED;
		}
		if (value >= cb->u.sync.value) {
			sync_unpark(q);
			return WAIT_DONE;
		}
		if (!q->waiting) {
			q->waiting = 1;
			q->backoff = FW_WAIT_MIN;
			q->wait_until = timeout && now + timeout > now ? now + timeout : ~0ull;
			q->wait_addr = cb->u.sync.addr;
			q->wait_space = space_of(cb);
		}
		if (now >= q->wait_until) {
			sync_unpark(q);
			v->status = SPYRE_ERR_TIMEOUT;
			return WAIT_FAILED;
		}
		if (q->parked)
			return WAIT_PARK;
		q->parked = 1;
		queue_show_event_idx(q);
		bus_fence();
	}
	return WAIT_PARK;
}

void sync_park(struct queue *q, u64 now)
{
	struct context *c = context_of(q);
	u64 next = now + q->backoff;

	if (list_empty(&c->parked))
		list_add_tail(&waiters, &c->with_parked);
	list_add_tail(&c->parked, &q->link);
	q->where = WHERE_PARKED;
	timer_set(q, next < q->wait_until ? next : q->wait_until);
	q->backoff *= 2;
	if (q->backoff > FW_WAIT_MAX)
		q->backoff = FW_WAIT_MAX;
}

void sync_unpark(struct queue *q)
{
	q->waiting = 0;
	if (!q->parked)
		return;
	q->parked = 0;
	queue_show_event_idx(q);
}

void sync_wake_context(struct context *c)
{
	wake(c, 1, 0, 0);
}

void sync_turn(u64 now)
{
	struct node *n, *next;

	if (now < sweep_at)
		return;
	sweep_at = ~0ull;
	/* Waking the last queue of a context takes the context out of the list. */
	for (n = waiters.next; n != &waiters; n = next) {
		next = n->next;
		wake(list_entry(n, struct context, with_parked), 1, 0, 0);
	}
}

u64 sync_next(void)
{
	return list_empty(&waiters) ? ~0ull : sweep_at;
}
