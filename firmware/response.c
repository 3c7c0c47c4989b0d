// SPDX-License-Identifier: MIT
/*
 * Response blocks. The valid word of a slot is stored last, with release: whoever sees it sees the
 * rest. Slots that follow each other in one turn are written with one copy (valid words zero), then
 * their valid words one by one.
 */
#include "firmware.h"

static struct spyre_rb gathered[FW_BATCH];
static u32 first, count;

static struct place slot(const struct queue *q, u32 entry)
{
	return place_of(MCU_SPACE_HMVA_PRIV, q->context,
			q->response + (u64)(entry & (q->entries - 1)) * sizeof(struct spyre_rb));
}

static void store_valid(struct queue *q, u32 entry)
{
	struct place at = slot(q, entry);

	if (card.lost_rb) {
		card.lost_rb--;
		return;
	}
	at.addr += offsetof(struct spyre_rb, valid);
	if (bus_store32(at, entry + 1))
		queue_lost_ring(q, entry, at.addr);
}

struct spyre_rb *response_add(struct queue *q, u32 entry, u64 cookie, u32 status, u64 now)
{
	struct spyre_rb *rb;
	u32 i;

	/* One copy reaches no further than the end of the ring, and overwrites an entry's own slot. */
	if (count && (entry != first + count || count == FW_BATCH || !(entry & (q->entries - 1))))
		response_flush(q);
	if (!count)
		first = entry;
	rb = &gathered[count++];
	memset(rb, 0, sizeof(*rb));
	for (i = 0; i < 5; i++)
		rb->ts[i] = (u32)now;
	rb->ts4 = now;
	rb->cookie = cookie;
	rb->status = status;
	rb->err_core = 0xffff;
	return rb;
}

void response_flush(struct queue *q)
{
	u32 n = count, i;

	count = 0;
	if (!n || !q->response)
		return;
	if (bus_write(slot(q, first), gathered, n * (u32)sizeof(struct spyre_rb))) {
		queue_lost_ring(q, first, q->response);
		return;
	}
	for (i = 0; i < n; i++)
		store_valid(q, first + i);
}

void response_write(struct queue *q, u32 entry, struct spyre_rb *rb)
{
	if (!q->response)
		return;
	rb->valid = 0;
	if (bus_write(slot(q, entry), rb, sizeof(*rb))) {
		queue_lost_ring(q, entry, q->response);
		return;
	}
	store_valid(q, entry);
}
