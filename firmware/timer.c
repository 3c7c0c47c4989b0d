// SPDX-License-Identifier: MIT
/*
 * One timer per queue, kept in a binary heap by card time: setting, clearing and firing cost the
 * logarithm of the number of timers, whoever sets them.
 */
#include "firmware.h"

#define PER_TURN	16

static u16 heap[FW_QUEUES];
static u32 used;

static struct queue *at(u32 slot)
{
	return &fw_mem.queue[heap[slot]];
}

static void place(u32 slot, u16 index)
{
	heap[slot] = index;
	fw_mem.queue[index].timer_slot = (u16)(slot + 1);
}

static void sift_up(u32 slot)
{
	u16 index = heap[slot];
	u64 when = fw_mem.queue[index].timer;

	while (slot) {
		u32 parent = (slot - 1) / 2;

		if (at(parent)->timer <= when)
			break;
		place(slot, heap[parent]);
		slot = parent;
	}
	place(slot, index);
}

static void sift_down(u32 slot)
{
	u16 index = heap[slot];
	u64 when = fw_mem.queue[index].timer;

	for (;;) {
		u32 child = 2 * slot + 1;

		if (child >= used)
			break;
		if (child + 1 < used && at(child + 1)->timer < at(child)->timer)
			child++;
		if (at(child)->timer >= when)
			break;
		place(slot, heap[child]);
		slot = child;
	}
	place(slot, index);
}

void timer_init(void)
{
	used = 0;
}

void timer_clear(struct queue *q)
{
	u32 slot;

	if (!q->timer_slot)
		return;
	slot = q->timer_slot - 1u;
	q->timer_slot = 0;
	used--;
	if (slot == used)
		return;
	place(slot, heap[used]);
	sift_up(slot);
	sift_down(fw_mem.queue[heap[slot]].timer_slot - 1u);
}

void timer_set(struct queue *q, u64 when)
{
	timer_clear(q);
	q->timer = when;
	heap[used] = q->index;
	sift_up(used++);
}

void timer_turn(u64 now)
{
	u32 i;

	for (i = 0; i < PER_TURN && used && at(0)->timer <= now; i++) {
		struct queue *q = at(0);

		timer_clear(q);
		queue_timer(q, now);
	}
}

u64 timer_next(void)
{
	return used ? at(0)->timer : ~0ull;
}
