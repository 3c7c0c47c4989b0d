// SPDX-License-Identifier: MIT
/*
 * Per-context accounting, shown in kernel memory. Pages are stored when the core goes to sleep and at
 * least every FW_USAGE while it does not.
 */
#include "firmware.h"

static struct node dirty;
static u64 flush_at;

void usage_init(void)
{
	list_init(&dirty);
	flush_at = 0;
}

static void touch(struct context *c)
{
	if (c->usage_dirty)
		return;
	c->usage_dirty = 1;
	list_add_tail(&dirty, &c->dirty);
}

void usage_job(struct context *c, u32 kind, u64 busy, u64 bytes)
{
	c->usage.busy[kind] += busy;
	c->usage.bytes[kind] += bytes;
	touch(c);
}

void usage_cb(struct context *c, u32 n, u32 errors)
{
	c->usage.cbs += n;
	c->usage.errors += errors;
	touch(c);
}

void usage_show(struct context *c)
{
	if (!c->usage_dirty)
		return;
	bus_write(place_bus(c->usage_bus), &c->usage, sizeof(c->usage));
	c->usage_dirty = 0;
	list_del(&c->dirty);
}

void usage_flush(void)
{
	while (!list_empty(&dirty))
		usage_show(list_entry(dirty.next, struct context, dirty));
}

void usage_turn(u64 now)
{
	if (now < flush_at)
		return;
	usage_flush();
	flush_at = now + FW_USAGE;
}
