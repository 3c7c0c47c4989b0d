// SPDX-License-Identifier: MIT
/*
 * Queue interrupts: what the driver asked for by its arm words, and nothing else.
 *
 * Each vector with queues has an event ring in kernel memory. A context has at most one entry in it
 * that the driver has not answered by a new arm value, and rings have at least as many entries as
 * there are contexts, so a ring cannot overflow and its index needs no reader's index.
 */
#include "firmware.h"

struct vector {
	u64 base;
	u32 entries;
	u32 index;		/* free running, from 0 at boot */
};

static struct vector vector[SPYRE_MSI_VECTORS];

void interrupt_init(void)
{
	memset(vector, 0, sizeof(vector));
}

u32 interrupt_check_vector(u32 v)
{
	struct vector *vec;
	u32 count = host_reg(SPYRE_REG_VEC_COUNT);

	if (v >= SPYRE_MSI_VECTORS || v >= count) {
		log_line(LOG_WARN, "vector %u: %u are enabled", v, count);
		return SPYRE_MSG_ERR_ARG;
	}
	vec = &vector[v];
	vec->base = host_reg64(SPYRE_REG_VEC_BASE(v));
	vec->entries = host_reg(SPYRE_REG_VEC_ENTRIES(v));
	if (vec->entries < FW_CONTEXTS || (vec->entries & (vec->entries - 1)) ||
	    !vec->base || vec->base % 64) {
		log_line(LOG_WARN, "vector %u: event ring at %X with %u entries, want 64-byte "
			 "alignment and a power of two from %u", v, vec->base, vec->entries,
			 FW_CONTEXTS);
		return SPYRE_MSG_ERR_ARG;
	}
	return SPYRE_MSG_OK;
}

/*
 * The caller has stored what became visible (fence, status). The full fence orders those stores
 * before the load of the arm word. The driver does the reverse: it stores a new arm value, full
 * fence, looks at fence and status once more, then sleeps. Whatever the interleaving, either this
 * load sees the new arm value, or the driver's second look sees the progress.
 */
void interrupt_progress(struct context *c)
{
	struct vector *v = &vector[c->vector];
	struct spyre_vec_event e;
	struct place slot;
	u32 arm;

	bus_fence();
	if (bus_load32(place_bus(c->arm), &arm) || arm == c->last_arm)
		return;
	c->last_arm = arm;
	e.context = context_id(c);
	e.arm = arm;
	slot = place_bus(v->base + (v->index & (v->entries - 1)) * sizeof(e));
	bus_store_pair(slot, e.context, e.arm);
	slot.addr += offsetof(struct spyre_vec_event, reserved);
	v->index++;
	/* Release: seq is seen after context and arm. */
	bus_store_pair(slot, 0, v->index);
	if (card.lost_event) {
		card.lost_event--;
		return;
	}
	reg_write(MCU_RAISE, c->vector);
}
