// SPDX-License-Identifier: MIT
/*
 * Contexts: whose address space a queue works in, who is interrupted, who is charged.
 */
#include "firmware.h"

void context_init(void)
{
	u32 i;

	for (i = 0; i < FW_CONTEXTS; i++)
		fw_mem.context[i].live = 0;
}

u32 context_id(const struct context *c)
{
	return (u32)(c - fw_mem.context);
}

struct context *context_find(u32 id)
{
	if (!id || id >= FW_CONTEXTS || !fw_mem.context[id].live)
		return NULL;
	return &fw_mem.context[id];
}

static u32 set_table(u32 id, u64 table)
{
	reg_write64(MCU_CTX_TABLE, table);
	reg_write(MCU_CTX_SELECT, id | MCU_CTX_SET);
	return reg_read(MCU_CTX_STATUS);
}

/* Returns when no worker uses translations from before; the model bounds it. */
u32 context_invalidate(u32 id)
{
	if (!context_find(id))
		return SPYRE_MSG_ERR_ID;
	reg_write(MCU_CTX_SELECT, id | MCU_CTX_INVALIDATE);
	return reg_read(MCU_CTX_STATUS) ? SPYRE_MSG_ERR_FAULT : SPYRE_MSG_OK;
}

u32 context_create(const struct spyre_msg_ctx *m)
{
	struct context *c;
	u32 status, arm;

	if (!m->id || m->id >= FW_CONTEXTS || fw_mem.context[m->id].live)
		return SPYRE_MSG_ERR_ID;
	if (m->arm % 64 || m->usage % 64 || m->table % SPYRE_STICK || !m->table)
		return SPYRE_MSG_ERR_ARG;
	status = interrupt_check_vector(m->vector);
	if (status)
		return status;
	if (bus_load32(place_bus(m->arm), &arm))
		return SPYRE_MSG_ERR_FAULT;
	c = &fw_mem.context[m->id];
	memset(c, 0, sizeof(*c));
	if (bus_write(place_bus(m->usage), &c->usage, sizeof(c->usage)))
		return SPYRE_MSG_ERR_FAULT;
	if (set_table(m->id, m->table))
		return SPYRE_MSG_ERR_FAULT;
	c->vector = (u8)m->vector;
	c->table = m->table;
	c->arm = m->arm;
	c->usage_bus = m->usage;
	c->last_arm = arm;
	list_init(&c->all);
	list_init(&c->parked);
	list_init(&c->dirty);
	c->live = 1;
	return SPYRE_MSG_OK;
}

u32 context_tables(const struct spyre_msg_ctx *m)
{
	struct context *c = context_find(m->id);

	if (!c)
		return SPYRE_MSG_ERR_ID;
	if (m->table % SPYRE_STICK || !m->table)
		return SPYRE_MSG_ERR_ARG;
	if (set_table(m->id, m->table)) {
		/* The old one stays. */
		set_table(m->id, c->table);
		return SPYRE_MSG_ERR_FAULT;
	}
	c->table = m->table;
	return context_invalidate(m->id);
}

u32 context_destroy(u32 id)
{
	struct context *c = context_find(id);

	if (!c)
		return SPYRE_MSG_ERR_ID;
	if (c->queues || c->op)
		return SPYRE_MSG_ERR_BUSY;
	usage_show(c);
	set_table(id, 0);
	c->live = 0;
	return SPYRE_MSG_OK;
}

u32 context_reset(u32 id, u32 tag)
{
	struct context *c = context_find(id);
	struct node *n;

	if (!c)
		return SPYRE_MSG_ERR_ID;
	if (c->op)
		return SPYRE_MSG_ERR_BUSY;
	for (n = c->all.next; n != &c->all; n = n->next) {
		struct queue *q = list_entry(n, struct queue, sibling);

		queue_fail(q, q->issue, SPYRE_ERR_CANCELLED);
	}
	if (c->inflight)
		reg_write(MCU_CTX_SELECT, id | MCU_CTX_ABORT);
	c->op = SPYRE_MSG_CTX_RESET;
	c->op_tag = tag;
	card.pending_ops++;
	context_check_op(c);
	return SPYRE_MSG_OK;
}

void context_check_op(struct context *c)
{
	if (!c->op || c->inflight)
		return;
	c->op = 0;
	op_done(c->op_tag, SPYRE_MSG_OK);
}

void context_fault(struct context *c, const struct queue *guilty)
{
	struct node *n;

	for (n = c->all.next; n != &c->all; n = n->next) {
		struct queue *q = list_entry(n, struct queue, sibling);

		if (q != guilty)
			queue_fail(q, q->issue, SPYRE_ERR_CANCELLED);
	}
}

void context_stop_all(u32 status)
{
	u32 id;

	for (id = 1; id < FW_CONTEXTS; id++) {
		struct context *c = context_find(id);
		struct node *n;

		if (!c)
			continue;
		for (n = c->all.next; n != &c->all; n = n->next) {
			struct queue *q = list_entry(n, struct queue, sibling);

			queue_fail(q, q->issue, status);
		}
		if (c->inflight)
			reg_write(MCU_CTX_SELECT, id | MCU_CTX_ABORT);
	}
}
