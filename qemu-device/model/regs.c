/* SPDX-License-Identifier: MIT */
/* BAR0: function registers, the physical function's, log RAM and the first doorbell pages. */
#include "card.h"

#include <string.h>

#define DB_WINDOW	(SPYRE_BAR_REGS_SIZE - SPYRE_REGS_DOORBELLS)
#define VEC_FIRST	SPYRE_REG_VEC_BASE(0)
#define VEC_END		SPYRE_REG_VEC_BASE(SPYRE_MSI_VECTORS)

/* Registers that the host may write. */
static bool writable(uint32_t off)
{
	switch (off) {
	case SPYRE_REG_FW_ADDR:
	case SPYRE_REG_FW_ADDR + 4:
	case SPYRE_REG_FW_LEN:
	case SPYRE_REG_MBOX_CMD_BASE:
	case SPYRE_REG_MBOX_CMD_BASE + 4:
	case SPYRE_REG_MBOX_EVT_BASE:
	case SPYRE_REG_MBOX_EVT_BASE + 4:
	case SPYRE_REG_MBOX_CMD_ENTRIES:
	case SPYRE_REG_MBOX_EVT_ENTRIES:
	case SPYRE_REG_MBOX_CMD_TAIL:
	case SPYRE_REG_MBOX_EVT_HEAD:
	case SPYRE_REG_VEC_COUNT:
		return true;
	}
	return off >= VEC_FIRST && off < VEC_END && (off & 0xf) < 0xc;
}

/* Pairs that take one 64-bit access. */
static bool is_pair(uint32_t off)
{
	switch (off) {
	case SPYRE_REG_FW_ADDR:
	case SPYRE_REG_MEM_SIZE:
	case SPYRE_REG_APERTURE_SIZE:
	case SPYRE_REG_TIME:
	case SPYRE_REG_MBOX_CMD_BASE:
	case SPYRE_REG_MBOX_EVT_BASE:
		return true;
	}
	return off >= VEC_FIRST && off < VEC_END && !(off & 0xf);
}

uint32_t regs_read(struct spyre_card *c, uint32_t off)
{
	uint64_t now;

	switch (off) {
	case SPYRE_REG_ID:
		return SPYRE_ID_MAGIC;
	case SPYRE_REG_HWVER:
		return SPYRE_HWVER_MAJOR << 16 | SPYRE_HWVER_MINOR;
	case SPYRE_REG_CAPS:
		return SPYRE_CAP_SELF_REFRESH | SPYRE_CAP_FAULT_INJECT;
	case SPYRE_REG_RESET_GEN:
		return load_acquire(&c->reset_gen);
	case SPYRE_REG_HEARTBEAT:
		return load_relaxed(&c->heartbeat);
	case SPYRE_REG_MEM_SIZE:
		return c->mem_size;
	case SPYRE_REG_MEM_SIZE + 4:
		return c->mem_size >> 32;
	case SPYRE_REG_APERTURE_SIZE:
		return c->aperture;
	case SPYRE_REG_APERTURE_SIZE + 4:
		return c->aperture >> 32;
	case SPYRE_REG_TIME:
		now = soc_now(c);
		store_relaxed(&c->time_hi, (uint32_t)(now >> 32));
		return now;
	case SPYRE_REG_TIME + 4:
		return load_relaxed(&c->time_hi);
	case SPYRE_REG_TIME_HZ:
		return c->cfg.soc_hz;
	case SPYRE_REG_CORE_HZ:
		return c->cfg.core_hz;
	case SPYRE_REG_FW_RESERVED:
		return SPYRE_FW_MEM_SIZE;
	case SPYRE_REG_DB_PAGES:
		return SPYRE_DB_PAGES;
	case SPYRE_REG_CORES:
		return load_relaxed(&c->cores);
	case SPYRE_REG_DB_OVERFLOW:
		return load_relaxed(&c->db_overflow);
	case SPYRE_REG_DB_BAD:
		return load_relaxed(&c->db_bad);
	case SPYRE_REG_APERTURE_BAD:
		return load_relaxed(&c->aperture_bad);
	}
	if (off >= SPYRE_REG_ENG_PROGRESS(0) && off < SPYRE_REG_ENG_PROGRESS(ENGINES) && !(off & 3))
		return engine_progress(&c->engine[(off - SPYRE_REG_ENG_PROGRESS(0)) / 4]);
	if (off < sizeof(c->regs) && !(off & 3))
		return load_acquire(reg_ptr(c, off));
	return 0;
}

static uint32_t pf_read(struct spyre_card *c, uint32_t off)
{
	uint32_t v;

	if (off >= SPYRE_REG_SERIAL && off < SPYRE_REG_SERIAL + sizeof(c->cfg.serial)) {
		memcpy(&v, c->cfg.serial + (off - SPYRE_REG_SERIAL), sizeof(v));
		return v;
	}
	if (off == SPYRE_REG_TEMP_MC)
		return tele_temp_mc(c);
	if (off == SPYRE_REG_POWER_MW)
		return tele_power_mw(c);
	return 0;
}

static uint64_t read_bar0(struct spyre_card *c, uint64_t off, unsigned int size)
{
	uint64_t ones = size >= 8 ? ~0ull : (1ull << 8 * size) - 1;

	if (off >= SPYRE_BAR_REGS_SIZE || (size != 4 && size != 8) || off & (size - 1))
		return ones;
	if (off >= SPYRE_REGS_DOORBELLS)
		return spyre_card_db_read(c, off - SPYRE_REGS_DOORBELLS, size);
	if (off >= SPYRE_REG_LOG_RAM && off < SPYRE_REG_LOG_RAM + SPYRE_LOG_RAM_SIZE) {
		uint32_t *log = (uint32_t *)(c->log_ram + (off - SPYRE_REG_LOG_RAM));
		uint64_t v = load_relaxed(log);

		if (size == 8)
			v |= (uint64_t)load_relaxed(log + 1) << 32;
		return v;
	}
	if (size == 8) {
		uint64_t v;

		if (!is_pair(off))
			return ones;
		v = regs_read(c, off);
		return v | (uint64_t)regs_read(c, off + 4) << 32;
	}
	if (off >= SPYRE_REGS_PF)
		return pf_read(c, off);
	return regs_read(c, off);
}

uint64_t spyre_card_mmio_read(struct spyre_card *c, uint64_t off, unsigned int size)
{
	uint64_t v = read_bar0(c, off, size);

	card_trace(c, SPYRE_TRACE_MMIO_READ, off, v, size, 0);
	return v;
}

static void write32(struct spyre_card *c, uint32_t off, uint32_t value)
{
	if (off == SPYRE_REG_MCU_CTRL) {
		card_control(c, value);
		return;
	}
	if (!writable(off))
		return;
	store_release(reg_ptr(c, off), value);
	if (off == SPYRE_REG_MBOX_CMD_TAIL || off == SPYRE_REG_MBOX_EVT_HEAD)
		mcu_irq_set(c, MCU_IRQ_MBOX);
}

void spyre_card_mmio_write(struct spyre_card *c, uint64_t off, uint64_t value, unsigned int size)
{
	card_trace(c, SPYRE_TRACE_MMIO_WRITE, off, value, size, 0);
	if (off >= SPYRE_REGS_DOORBELLS && off < SPYRE_REGS_DOORBELLS + DB_WINDOW) {
		spyre_card_db_write(c, off - SPYRE_REGS_DOORBELLS, value, size);
		return;
	}
	if (off >= SPYRE_REGS_PF || (size != 4 && size != 8) || off & (size - 1))
		return;
	if (size == 4) {
		write32(c, off, value);
	} else if (is_pair(off)) {
		write32(c, off, value);
		write32(c, off + 4, value >> 32);
	}
}

void spyre_card_aperture_bad(struct spyre_card *c)
{
	add_relaxed(&c->aperture_bad, 1);
}

void regs_reset(struct spyre_card *c)
{
	uint32_t off;

	for (off = 0; off < sizeof(c->regs); off += 4)
		store_release(reg_ptr(c, off), 0);
	store_release(reg_ptr(c, SPYRE_REG_STATE), SPYRE_STATE_OFFLINE);
	store_relaxed(&c->heartbeat, 0);
	store_relaxed(&c->db_overflow, 0);
	store_relaxed(&c->db_bad, 0);
	store_relaxed(&c->aperture_bad, 0);
}

void regs_set_state(struct spyre_card *c, uint32_t state)
{
	uint32_t old = __atomic_exchange_n(reg_ptr(c, SPYRE_REG_STATE), state, __ATOMIC_ACQ_REL);

	if (old != state)
		card_trace(c, SPYRE_TRACE_STATE, old, state, 0, 0);
}
