/* SPDX-License-Identifier: MIT */
/* Hardware errors outside jobs, on their way to the firmware. Kept over a firmware restart. */
#include "card.h"

void ras_push(struct spyre_card *c, uint32_t code, uint32_t arg, uint64_t addr)
{
	pthread_mutex_lock(&c->ras_lock);
	if (c->ras_tail - c->ras_head < RAS_ENTRIES) {
		struct spyre_ras_hw *r = &c->ras[c->ras_tail % RAS_ENTRIES];

		r->code = code;
		r->arg = arg;
		r->addr = addr;
		c->ras_tail++;
	} else {
		add_relaxed(&c->ras_lost, 1);
	}
	__atomic_fetch_or(&c->mcu.pend, MCU_IRQ_RAS, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&c->ras_lock);
	mcu_wake(c);
}

bool ras_pop(struct spyre_card *c, struct spyre_ras_hw *out)
{
	bool ret = false;

	pthread_mutex_lock(&c->ras_lock);
	if (c->ras_head != c->ras_tail) {
		*out = c->ras[c->ras_head % RAS_ENTRIES];
		c->ras_head++;
		ret = true;
	}
	if (c->ras_head == c->ras_tail)
		mcu_irq_clear(c, MCU_IRQ_RAS);
	pthread_mutex_unlock(&c->ras_lock);
	return ret;
}

void ras_clear(struct spyre_card *c)
{
	pthread_mutex_lock(&c->ras_lock);
	c->ras_head = c->ras_tail;
	mcu_irq_clear(c, MCU_IRQ_RAS);
	pthread_mutex_unlock(&c->ras_lock);
}
