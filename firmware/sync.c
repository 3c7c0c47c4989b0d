// SPDX-License-Identifier: MIT
/*
 * SIGNAL, WAIT and TIMESTAMP.
 *
 * A WAIT that is not satisfied parks its queue. It looks again when
 *  - a SIGNAL of this card stores to the same address of the same context: at once;
 *  - a SIGNAL of this card stores anywhere else (it may be an alias of the same memory): all parked
 *    queues look within FW_SWEEP, so that many signals cost no more than one sweep each FW_SWEEP;
 *  - a doorbell of its context rings: at once. Both that only while few are parked: what goes beyond
 *    LOOKS is left to a sweep, or a context with many parked queues would make every turn long;
 *  - its timer fires: FW_WAIT_MIN, doubled up to FW_WAIT_MAX, for writers that do none of these.
 *
 * Parking: status.parked = 1, full fence, one more look. The CPU stores the word, full fence, loads
 * .parked and rings if it is set. As with event_idx, one of the two sees the other.
 */
#include "firmware.h"

/* Parked queues that one SIGNAL or doorbell, all of them in one turn, and one turn of a sweep look at. */
#define LOOKS		64u
#define LOOKS_PER_TURN	256u

static struct node waiters;	/* parked queues, in the order in which they were parked */
static u32 parked_ever;
static u64 sweep_at;
static u8 sweeping;		/* a sweep has begun: those parked before .sweep_end look */
static u32 sweep_end;
static u32 looks;		/* left in this turn */

void sync_init(void)
{
	list_init(&waiters);
	parked_ever = 0;
	sweep_at = ~0ull;
	sweeping = 0;
	looks = LOOKS_PER_TURN;
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

/* Parked queues of a context, all or those that wait for one word, get a turn. Nonzero: not all were looked at. */
static int wake(struct context *c, int all, u32 space, u64 addr)
{
	struct node *n, *next;
	u32 i = 0;

	for (n = c->parked.next; n != &c->parked; n = next) {
		struct queue *q = list_entry(n, struct queue, link);

		if (i++ == LOOKS || !looks)
			return 1;
		looks--;
		next = n->next;
		if (all || (q->wait_addr == addr && q->wait_space == space))
			queue_wake(q);
	}
	return 0;
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

	list_add_tail(&c->parked, &q->link);
	list_add_tail(&waiters, &q->waiter);
	q->parked_as = parked_ever++;
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
	/* Those left over look in the next sweep, which begins in this turn. */
	if (wake(c, 1, 0, 0))
		sweep_at = 0;
}

int sync_turn(u64 now)
{
	u32 i;

	looks = LOOKS_PER_TURN;
	if (!sweeping) {
		if (now < sweep_at)
			return 0;
		sweep_at = ~0ull;
		sweeping = 1;
		sweep_end = parked_ever;
	}
	/* Who looks and parks again meanwhile comes behind .sweep_end: a sweep ends. */
	for (i = 0; i < LOOKS && !list_empty(&waiters); i++) {
		struct queue *q = list_entry(waiters.next, struct queue, waiter);

		if ((int32_t)(q->parked_as - sweep_end) >= 0)
			break;
		queue_wake(q);
	}
	sweeping = i == LOOKS;
	return sweeping;
}

u64 sync_next(void)
{
	if (list_empty(&waiters))
		return ~0ull;
	return sweeping ? 0 : sweep_at;
}
