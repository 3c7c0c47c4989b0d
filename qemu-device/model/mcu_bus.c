/* SPDX-License-Identifier: MIT */
/* The management core's bus outside its RAM: log RAM, window on card memory, registers of mcu.h. */
#include "card.h"

#include <string.h>
#include <time.h>

void mcu_bus_reset(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;

	m->irq_enable = 0;
	m->mtimecmp_lo = ~0u;
	m->ctx_table = 0;
	m->ctx_status = 0;
	m->copy_status = 0;
	m->copy_fault = 0;
	m->compl_valid = 0;
	m->ras_valid = 0;
	m->stuck_valid = 0;
	m->inject_arg = 0;
	m->mem_test = 0;
	m->core_test = 0;
	m->console_len = 0;
}

uint8_t *mcu_memory(struct spyre_card *c, uint32_t addr, uint32_t len)
{
	uint32_t off = addr - SPYRE_MCU_RAM_BASE;

	if (off < SPYRE_MCU_RAM_SIZE && len <= SPYRE_MCU_RAM_SIZE - off)
		return c->mcu.ram + off;
	off = addr - SPYRE_MCU_FWMEM_BASE;
	if (off < SPYRE_MCU_FWMEM_SIZE && len <= SPYRE_MCU_FWMEM_SIZE - off)
		return c->mem + c->mem_limit + off;
	return NULL;
}

/* --- Registers -------------------------------------------------------------------------------- */

static uint32_t lo_hi(struct mcu *m, uint64_t v, bool hi)
{
	/* The low word latches the pair, so that two reads give one value. */
	if (hi)
		return m->pair >> 32;
	m->pair = v;
	return v;
}

static void due(struct spyre_card *c)
{
	uint64_t next = load_acquire(&c->ann_next);

	if (next != ~0ull && (c->cfg.timing_off || soc_now(c) >= next))
		announce(c);
}

static uint32_t engine_read(struct spyre_card *c, uint32_t off)
{
	struct engine *e;

	if ((off - MCU_ENG_KIND(0)) / 0x10 >= ENGINES)
		return 0;
	e = &c->engine[(off - MCU_ENG_KIND(0)) / 0x10];
	switch (off & 0xc) {
	case 0x0:
		return e->kind;
	case 0x8:
		due(c);
		return load_acquire(&e->state) != ENG_IDLE;
	case 0xc:
		return engine_progress(e);
	}
	return 0;
}

static uint32_t reg_read(struct spyre_card *c, uint32_t off)
{
	struct mcu *m = &c->mcu;
	struct timespec ts;
	uint64_t now;

	if (off >= MCU_ENG_KIND(0) && off < MCU_ENG_KIND(MCU_ENG_MAX))
		return engine_read(c, off);
	if (off >= MCU_BUSY(0) && off < MCU_BUSY(ENGINES))
		return lo_hi(m, load_relaxed(&c->engine[(off - MCU_BUSY(0)) / 8].busy), off & 4);
	if (off >= MCU_BYTES(0) && off < MCU_BYTES(ENGINES))
		return lo_hi(m, load_relaxed(&c->engine[(off - MCU_BYTES(0)) / 8].bytes), off & 4);
	switch (off) {
	case MCU_MTIME:
		now = soc_now(c);
		m->mtime_hi = now >> 32;
		return now;
	case MCU_MTIME + 4:
		return m->mtime_hi;
	case MCU_SOC_HZ:
		return c->cfg.soc_hz;
	case MCU_POLL_NS:
		if (c->cfg.sliced)
			return (uint32_t)c->ops->clock_ns(c->opaque);
		clock_gettime(CLOCK_MONOTONIC, &ts);
		return (uint32_t)ts.tv_sec * 1000000000u + (uint32_t)ts.tv_nsec;
	case MCU_IRQ_PENDING:
		due(c);
		return load_seq(&m->pend) & ~PEND_TIMER;
	case MCU_IRQ_ENABLE:
		return m->irq_enable;
	case MCU_DB_POP:
		return db_pop(c, &m->db_value);
	case MCU_DB_VALUE:
		return m->db_value;
	case MCU_DB_OVERFLOW_POP:
		return db_overflow_pop(c);
	case MCU_STATE:
		return regs_read(c, SPYRE_REG_STATE);
	case MCU_BOOT_PROGRESS:
		return regs_read(c, SPYRE_REG_BOOT_PROGRESS);
	case MCU_FW_VERSION:
		return regs_read(c, SPYRE_REG_FW_VERSION);
	case MCU_CMD_HEAD:
		return regs_read(c, SPYRE_REG_MBOX_CMD_HEAD);
	case MCU_EVT_TAIL:
		return regs_read(c, SPYRE_REG_MBOX_EVT_TAIL);
	case MCU_HOST_REG_VALUE:
		return m->host_value;
	case MCU_MEM_TEST:
		return m->mem_test;
	case MCU_CORE_TEST:
		return m->core_test;
	case MCU_CORES:
		return load_relaxed(&c->cores);
	case MCU_ENGINES:
		return ENGINES;
	case MCU_CTX_STATUS:
		return m->ctx_status;
	case MCU_COPY_STATUS:
		return m->copy_status;
	case MCU_COPY_FAULT:
		return m->copy_fault;
	case MCU_COPY_FAULT + 4:
		return m->copy_fault >> 32;
	case MCU_WORD_DATA:
		return m->word_data;
	case MCU_WORD_DATA + 4:
		return m->word_data >> 32;
	case MCU_COMPL_VALID:
		return m->compl_valid;
	case MCU_RAS_VALID:
		return m->ras_valid;
	case MCU_STUCK_VALID:
		return m->stuck_valid;
	case MCU_INJECT_POP:
		return inject_pop(c, &m->inject_arg);
	case MCU_INJECT_ARG:
		return m->inject_arg;
	case MCU_TEMP_MC:
		return tele_temp_mc(c);
	case MCU_POWER_MW:
		return tele_power_mw(c);
	case MCU_ENERGY:
	case MCU_ENERGY + 4:
		return lo_hi(m, off & 4 ? 0 : tele_energy(c, soc_now(c)), off & 4);
	case MCU_MEM_RD_BYTES:
	case MCU_MEM_RD_BYTES + 4:
		return lo_hi(m, load_relaxed(&c->mem_rd), off & 4);
	case MCU_MEM_WR_BYTES:
	case MCU_MEM_WR_BYTES + 4:
		return lo_hi(m, load_relaxed(&c->mem_wr), off & 4);
	case MCU_ECC_CE:
		return load_relaxed(&c->ecc_ce);
	case MCU_ECC_UE:
		return load_relaxed(&c->ecc_ue);
	}
	return 0;
}

static void set_lo(uint64_t *pair, uint32_t v)
{
	*pair = (*pair & ~0xffffffffull) | v;
}

static void set_hi(uint64_t *pair, uint32_t v)
{
	*pair = (uint32_t)*pair | (uint64_t)v << 32;
}

static void context_select(struct spyre_card *c, uint32_t cmd)
{
	struct mcu *m = &c->mcu;
	uint32_t ctx = cmd & 0xffff;

	m->ctx_status = 1;
	if (ctx >= MCU_CONTEXTS)
		return;
	if (cmd & MCU_CTX_SET) {
		uint64_t t = m->ctx_table;

		/* Checked here, so that translation can use the base as it is. */
		if (t & (SPYRE_STICK - 1) || t > c->aperture ||
		    sizeof(struct spyre_context_table) > c->aperture - t)
			return;
		store_release(&c->ctx_table[ctx], t);
	}
	card_trace(c, SPYRE_TRACE_CTX, ctx, cmd & ~0xffffu, m->ctx_table, 0);
	if (cmd & MCU_CTX_ABORT)
		engines_abort(c, ctx);
	if (cmd & MCU_CTX_INVALIDATE)
		epoch_sync(c);
	m->ctx_status = 0;
}

static void console(struct spyre_card *c, uint32_t ch)
{
	struct mcu *m = &c->mcu;

	if (ch != '\n' && m->console_len < sizeof(m->console) - 1) {
		/* Text of the guest's firmware goes to the host's log: nothing but text. */
		m->console[m->console_len++] = ch >= 0x20 && ch < 0x7f ? ch : '.';
		return;
	}
	m->console[m->console_len] = 0;
	m->console_len = 0;
	card_log(c, SPYRE_LOG_INFO, "firmware: %s", m->console);
}

/* Copies a record to memory of the core; the firmware's own bad address is a bus fault. */
static bool pop_to(struct spyre_card *c, uint32_t addr, const void *rec, uint32_t len)
{
	uint8_t *p = mcu_memory(c, addr, len);

	if (!p)
		return false;
	memcpy(p, rec, len);
	return true;
}

static enum bus_result pop_completion(struct spyre_card *c, uint32_t addr)
{
	struct mcu_completion rec;

	c->mcu.compl_valid = 0;
	if (!mcu_memory(c, addr, sizeof(rec)))
		return BUS_FAULT;
	due(c);
	if (completion_pop(c, &rec)) {
		pop_to(c, addr, &rec, sizeof(rec));
		c->mcu.compl_valid = 1;
	}
	return BUS_OK;
}

static enum bus_result pop_ras(struct spyre_card *c, uint32_t addr)
{
	struct spyre_ras_hw rec;

	c->mcu.ras_valid = 0;
	if (!mcu_memory(c, addr, sizeof(rec)))
		return BUS_FAULT;
	if (ras_pop(c, &rec)) {
		pop_to(c, addr, &rec, sizeof(rec));
		c->mcu.ras_valid = 1;
	}
	return BUS_OK;
}

static enum bus_result pop_stuck(struct spyre_card *c, uint32_t addr)
{
	struct spyre_stuck rec;

	c->mcu.stuck_valid = 0;
	if (!mcu_memory(c, addr, sizeof(rec)))
		return BUS_FAULT;
	if (compute_pop_stuck(c, &rec)) {
		pop_to(c, addr, &rec, sizeof(rec));
		c->mcu.stuck_valid = 1;
	}
	return BUS_OK;
}

static enum bus_result engine_write(struct spyre_card *c, uint32_t off, uint32_t v)
{
	uint32_t e = (off - MCU_ENG_KIND(0)) / 0x10;
	struct mcu_job job;
	uint8_t *p;

	if (e >= ENGINES)
		return BUS_OK;
	switch (off & 0xc) {
	case 0x4:
		p = mcu_memory(c, v, sizeof(job));
		if (!p)
			return BUS_FAULT;
		memcpy(&job, p, sizeof(job));
		engine_start(c, e, &job);
		break;
	case 0x8:
		if (v & 1)
			engine_cancel(c, e);
		break;
	}
	return BUS_OK;
}

static enum bus_result reg_write(struct spyre_card *c, uint32_t off, uint32_t v)
{
	struct mcu *m = &c->mcu;

	if (off >= MCU_ENG_KIND(0) && off < MCU_ENG_KIND(MCU_ENG_MAX))
		return engine_write(c, off, v);
	switch (off) {
	case MCU_MTIMECMP:
		m->mtimecmp_lo = v;
		break;
	case MCU_MTIMECMP + 4:
		mtimecmp_set(c, m->mtimecmp_lo | (uint64_t)v << 32);
		return BUS_RECHECK;
	case MCU_HEARTBEAT:
		add_relaxed(&c->heartbeat, 1);
		break;
	case MCU_TURN:
		return BUS_TURN;
	case MCU_IRQ_ENABLE:
		m->irq_enable = v & 0x7fffffff;
		return BUS_RECHECK;
	case MCU_IRQ_CLEAR:
		mcu_irq_clear(c, v & MCU_IRQ_MBOX);
		/* What the interrupt announced is read after this, and must not be older. */
		full_fence(c);
		break;
	case MCU_STATE:
		regs_set_state(c, v);
		break;
	case MCU_BOOT_PROGRESS:
		store_release(reg_ptr(c, SPYRE_REG_BOOT_PROGRESS), v);
		break;
	case MCU_FW_VERSION:
		store_release(reg_ptr(c, SPYRE_REG_FW_VERSION), v);
		break;
	case MCU_CMD_HEAD:
		store_release(reg_ptr(c, SPYRE_REG_MBOX_CMD_HEAD), v);
		break;
	case MCU_EVT_TAIL:
		store_release(reg_ptr(c, SPYRE_REG_MBOX_EVT_TAIL), v);
		break;
	case MCU_HOST_REG:
		m->host_value = v < SPYRE_REGS_PF && !(v & 3) ? regs_read(c, v) : 0;
		break;
	case MCU_RAISE:
		if (v < SPYRE_MSI_VECTORS)
			card_raise(c, v);
		break;
	case MCU_MEM_TEST:
		/* Answered from metadata: visiting the memory would populate it. */
		if (v == 1)
			m->mem_test = load_acquire(&c->npoison) ? 2 : 1;
		break;
	case MCU_CORE_TEST:
		m->core_test = v & load_relaxed(&c->cores);
		break;
	case MCU_HALT:
		mcu_crash(c, "halted by the firmware", v, m->pc);
		mcu_request(c, REQ_STOP);
		return BUS_RECHECK;
	case MCU_CONSOLE:
		console(c, v & 0xff);
		break;
	case MCU_CTX_TABLE:
		set_lo(&m->ctx_table, v);
		break;
	case MCU_CTX_TABLE + 4:
		set_hi(&m->ctx_table, v);
		break;
	case MCU_CTX_SELECT:
		context_select(c, v);
		break;
	case MCU_COPY_ADDR:
		set_lo(&m->copy_addr, v);
		break;
	case MCU_COPY_ADDR + 4:
		set_hi(&m->copy_addr, v);
		break;
	case MCU_COPY_LOCAL:
		m->copy_local = v;
		break;
	case MCU_COPY_LEN:
		m->copy_len = v;
		break;
	case MCU_COPY_GO:
		copy_go(c, v);
		break;
	case MCU_WORD_DATA:
		set_lo(&m->word_data, v);
		break;
	case MCU_WORD_DATA + 4:
		set_hi(&m->word_data, v);
		break;
	case MCU_WORD_GO:
		word_go(c, v);
		break;
	case MCU_COMPL_POP:
		return pop_completion(c, v);
	case MCU_RAS_POP:
		return pop_ras(c, v);
	case MCU_STUCK_POP:
		return pop_stuck(c, v);
	}
	return BUS_OK;
}

/* --- Loads and stores ------------------------------------------------------------------------- */

enum bus_result mcu_bus_load(struct spyre_card *c, uint32_t addr, unsigned int size, uint32_t *value)
{
	uint32_t off = addr - SPYRE_MCU_FWMEM_BASE;
	uint8_t *p;

	*value = 0;
	if (off <= SPYRE_MCU_FWMEM_SIZE - size) {
		memcpy(value, c->mem + c->mem_limit + off, size);
		return BUS_OK;
	}
	off = addr - SPYRE_MCU_MMIO_BASE;
	if (off < SPYRE_MCU_MMIO_SIZE) {
		if (size != 4 || off & 3)
			return BUS_FAULT;
		*value = reg_read(c, off);
		return BUS_OK;
	}
	off = addr - SPYRE_MCU_LOG_BASE;
	if (off > SPYRE_LOG_RAM_SIZE - size || off & (size - 1))
		return BUS_FAULT;
	p = c->log_ram + off;
	*value = size == 4 ? *(uint32_t *)p : size == 2 ? *(uint16_t *)p : *p;
	return BUS_OK;
}

enum bus_result mcu_bus_store(struct spyre_card *c, uint32_t addr, unsigned int size, uint32_t value)
{
	uint32_t off = addr - SPYRE_MCU_FWMEM_BASE;
	uint8_t *p;

	if (off <= SPYRE_MCU_FWMEM_SIZE - size) {
		memcpy(c->mem + c->mem_limit + off, &value, size);
		return BUS_OK;
	}
	off = addr - SPYRE_MCU_MMIO_BASE;
	if (off < SPYRE_MCU_MMIO_SIZE) {
		if (size != 4 || off & 3)
			return BUS_FAULT;
		return reg_write(c, off, value);
	}
	off = addr - SPYRE_MCU_LOG_BASE;
	if (off > SPYRE_LOG_RAM_SIZE - size || off & (size - 1))
		return BUS_FAULT;
	/* The host reads it at any time. */
	p = c->log_ram + off;
	if (size == 4)
		store_release((uint32_t *)p, value);
	else if (size == 2)
		store_release((uint16_t *)p, (uint16_t)value);
	else
		store_release(p, (uint8_t)value);
	return BUS_OK;
}
