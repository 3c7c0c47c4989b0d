/* SPDX-License-Identifier: MIT */
/* Faults made to happen from outside. */
#include "card.h"

#include <errno.h>

static const char *const names[SPYRE_FAULTS] = {
	[SPYRE_FAULT_MEM_CE] = "memory-ce",
	[SPYRE_FAULT_MEM_UE] = "memory-ue",
	[SPYRE_FAULT_DMA_ABORT] = "dma-abort",
	[SPYRE_FAULT_LOST_IRQ] = "lost-irq",
	[SPYRE_FAULT_FW_HANG] = "fw-hang",
	[SPYRE_FAULT_FW_CRASH] = "fw-crash",
	[SPYRE_FAULT_CORE_HANG] = "core-hang",
	[SPYRE_FAULT_CORE_LOST] = "core-lost",
	[SPYRE_FAULT_OVERTEMP] = "overtemp",
	[SPYRE_FAULT_LOST_RB] = "lost-rb",
	[SPYRE_FAULT_FW_SLOW] = "fw-slow",
	[SPYRE_FAULT_LX_PARITY] = "lx-parity",
	[SPYRE_FAULT_FW_IMAGE] = "fw-image",
};

const char *spyre_fault_name(enum spyre_fault fault)
{
	return (unsigned int)fault < SPYRE_FAULTS ? names[fault] : NULL;
}

static int inject_push(struct spyre_card *c, uint32_t id, uint32_t arg)
{
	bool full;

	pthread_mutex_lock(&c->ras_lock);
	full = c->inject_tail - c->inject_head == INJECT_FIFO;
	if (!full) {
		c->inject[c->inject_tail % INJECT_FIFO].id = id;
		c->inject[c->inject_tail % INJECT_FIFO].arg = arg;
		c->inject_tail++;
		__atomic_fetch_or(&c->mcu.pend, MCU_IRQ_INJECT, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&c->ras_lock);
	if (full)
		return -EAGAIN;
	mcu_wake(c);
	return 0;
}

uint32_t inject_pop(struct spyre_card *c, uint32_t *arg)
{
	uint32_t ret = 0;

	pthread_mutex_lock(&c->ras_lock);
	if (c->inject_head != c->inject_tail) {
		ret = c->inject[c->inject_head % INJECT_FIFO].id | 1u << 31;
		*arg = c->inject[c->inject_head % INJECT_FIFO].arg;
		c->inject_head++;
	}
	if (c->inject_head == c->inject_tail)
		mcu_irq_clear(c, MCU_IRQ_INJECT);
	pthread_mutex_unlock(&c->ras_lock);
	return ret;
}

void inject_clear(struct spyre_card *c)
{
	pthread_mutex_lock(&c->ras_lock);
	c->inject_head = c->inject_tail;
	mcu_irq_clear(c, MCU_IRQ_INJECT);
	pthread_mutex_unlock(&c->ras_lock);
}

int spyre_card_inject(struct spyre_card *c, enum spyre_fault fault, uint64_t arg)
{
	switch (fault) {
	case SPYRE_FAULT_MEM_CE:
		if (arg >= c->mem_size)
			return -EINVAL;
		ras_push(c, SPYRE_RAS_MEM_CE, add_relaxed(&c->ecc_ce, 1) + 1, arg);
		return 0;
	case SPYRE_FAULT_MEM_UE:
		if (arg >= c->mem_size)
			return -EINVAL;
		return mem_poison(c, arg);
	case SPYRE_FAULT_DMA_ABORT:
		add_relaxed(&c->fault_dma_abort, 1);
		return 0;
	case SPYRE_FAULT_LOST_IRQ:
		add_relaxed(&c->fault_lost_irq, 1);
		return 0;
	case SPYRE_FAULT_FW_HANG:
		mcu_request(c, REQ_HANG);
		return 0;
	case SPYRE_FAULT_FW_CRASH:
		mcu_request(c, REQ_CRASH);
		return 0;
	case SPYRE_FAULT_CORE_HANG:
		add_relaxed(&c->fault_core_hang, 1);
		return 0;
	case SPYRE_FAULT_CORE_LOST:
		if (arg >= SPYRE_CORES || !(c->cfg.cores >> arg & 1))
			return -EINVAL;
		__atomic_fetch_or(&c->cores_lost, 1u << arg, __ATOMIC_RELAXED);
		return 0;
	case SPYRE_FAULT_OVERTEMP:
		if (arg > 200000)
			return -EINVAL;
		tele_overtemp(c, arg);
		return 0;
	case SPYRE_FAULT_LOST_RB:
		return arg > UINT32_MAX ? -EINVAL : inject_push(c, SPYRE_INJECT_LOST_RB, arg);
	case SPYRE_FAULT_FW_SLOW:
		return arg > SPYRE_INJECT_SLOW_MAX_MS ? -EINVAL : inject_push(c, SPYRE_INJECT_SLOW, arg);
	case SPYRE_FAULT_LX_PARITY:
		if (arg >= SPYRE_CORES || !(c->cfg.cores >> arg & 1))
			return -EINVAL;
		spyre_soc_lx_parity(c->soc, arg);
		return 0;
	case SPYRE_FAULT_FW_IMAGE:
		if (arg >= SPYRE_FAULT_IMAGES)
			return -EINVAL;
		store_relaxed(&c->fault_fw_image, arg);
		return 0;
	default:
		return -EINVAL;
	}
}
