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
};

const char *spyre_fault_name(enum spyre_fault fault)
{
	return (unsigned int)fault < SPYRE_FAULTS ? names[fault] : NULL;
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
	default:
		return -EINVAL;
	}
}
