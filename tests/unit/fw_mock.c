// SPDX-License-Identifier: MIT
/* See fw_mock.h. */
#include "fw_mock.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CMD_RING	(MOCK_BASE + 0x1000)
#define EVT_RING	(MOCK_BASE + 0x10000)
#define VEC_RING	(MOCK_BASE + 0x20000)
#define RING		256u

struct mock mock;

static const void *named[64];
static u32 naming;
static u32 cmd_tail;
static u64 copy_addr, word, ctx_table;
static u32 copy_local, copy_len, copy_status, compl_valid, stuck_valid, host_value, db_value;
static u64 copy_fault;

u32 mock_addr(const void *p)
{
	named[naming % 64] = p;
	return SPYRE_MCU_RAM_BASE + (naming++ % 64) * 4;
}

static void *named_at(u32 addr)
{
	u32 i = (addr - SPYRE_MCU_RAM_BASE) / 4;

	assert_true(i < 64 && named[i]);
	return (void *)(uintptr_t)named[i];
}

void *mock_at(u64 addr)
{
	assert_true(addr >= MOCK_BASE && addr < MOCK_BASE + MOCK_SIZE);
	return mock.mem + (addr - MOCK_BASE);
}

static void trace(u64 addr, u32 len, u64 value)
{
	if (mock.traced < MOCK_TRACE)
		mock.trace[mock.traced++] = (struct mock_store){ addr, len, value };
}

/* NULL: it faults, the status says how. */
static u8 *reach(u32 len, int write)
{
	copy_fault = copy_addr;
	if (copy_addr < MOCK_BASE || copy_addr + len > MOCK_BASE + MOCK_SIZE) {
		copy_status = SPYRE_SYN_PAGE_FAULT;
		return NULL;
	}
	if (write && copy_addr < mock.readonly_end && copy_addr + len > mock.readonly) {
		copy_status = SPYRE_SYN_PERMISSION;
		return NULL;
	}
	copy_status = 0;
	return mock.mem + (copy_addr - MOCK_BASE);
}

static void do_copy(u32 go)
{
	int out = (go & 0xff00) == MCU_COPY_OUT;
	u8 *at = reach(copy_len, out);

	assert_true(copy_len >= 1 && copy_len <= 4096);
	if (!at)
		return;
	if (out) {
		memcpy(at, named_at(copy_local), copy_len);
		trace(copy_addr, copy_len, 0);
	} else {
		memcpy(named_at(copy_local), at, copy_len);
	}
}

static void do_word(u32 go)
{
	u32 op = go & 0xff00, len = op == MCU_WORD_LOAD32 || op == MCU_WORD_STORE32 ? 4 : 8;
	int load = op == MCU_WORD_LOAD32 || op == MCU_WORD_LOAD64;
	u8 *at;
	u64 v;

	if (copy_addr % len) {
		copy_status = SPYRE_SYN_UNALIGNED;
		copy_fault = copy_addr;
		return;
	}
	at = reach(len, !load);
	if (!at || op == MCU_WORD_PROBE64)
		return;
	if (load) {
		word = 0;
		memcpy(&word, at, len);
		return;
	}
	memcpy(&v, at, 8);
	v = op == MCU_WORD_ADD64 ? v + word : word;
	memcpy(at, &v, len);
	trace(copy_addr, len, v);
}

static void start(u32 e, u32 addr)
{
	assert_true(e < MOCK_ENGINES);
	assert_false(mock.engine[e].busy);
	memcpy(&mock.engine[e].job, named_at(addr), sizeof(struct mcu_job));
	mock.engine[e].busy = 1;
	mock.engine[e].cancelled = 0;
}

static void select_ctx(u32 v)
{
	u32 ctx = v & 0xffff, e;

	assert_true(ctx && ctx < MCU_CONTEXTS);
	if (v & MCU_CTX_INVALIDATE)
		mock.ctx_invalidate[ctx]++;
	if (v & MCU_CTX_ABORT) {
		mock.ctx_abort[ctx]++;
		for (e = 0; e < MOCK_ENGINES; e++)
			if (mock.engine[e].busy && mock.engine[e].job.context == ctx)
				mock.engine[e].cancelled = 1;
	}
}

static u32 pending(void)
{
	return mock.irq | (mock.doorbells || mock.overflow ? MCU_IRQ_DOORBELL : 0) |
	       (mock.done_put != mock.done_got ? MCU_IRQ_ENGINE : 0) |
	       (mock.inject_put != mock.inject_got ? MCU_IRQ_INJECT : 0);
}

static u32 pop_doorbell(void)
{
	u32 v;

	if (!mock.doorbells)
		return 0;
	v = mock.doorbell[0];
	memmove(mock.doorbell, mock.doorbell + 1, --mock.doorbells * sizeof(v));
	return v | 1u << 31;
}

static u32 pop_overflow(void)
{
	u32 page = mock.overflow;

	mock.overflow = 0;
	return page ? (page - 1) | 1u << 31 : 0;
}

u32 mock_reg_read(u32 off)
{
	if (off >= MCU_ENG_KIND(0) && off < MCU_ENG_KIND(MCU_ENG_MAX)) {
		u32 e = (off - MCU_ENG_KIND(0)) / 16;

		if (e >= MOCK_ENGINES)
			return 0;
		if (off % 16 == 12)
			return mock.engine[e].progress;
		return off % 16 == 0 ? mock.engine[e].kind : off % 16 == 8 && mock.engine[e].busy;
	}
	switch (off) {
	case MCU_MTIME:
		return (u32)mock.time;
	case MCU_MTIME + 4:
		return (u32)(mock.time >> 32);
	case MCU_SOC_HZ:
		return mock.soc_hz;
	case MCU_POLL_NS:
		return mock.poll_ns += 1000;
	case MCU_IRQ_PENDING:
		return pending();
	case MCU_DB_POP:
		return pop_doorbell();
	case MCU_DB_VALUE:
		return db_value;
	case MCU_DB_OVERFLOW_POP:
		return pop_overflow();
	case MCU_HOST_REG_VALUE:
		return host_value;
	case MCU_MEM_TEST:
		return mock.memory_result;
	case MCU_CORE_TEST:
		return mock.cores_good;
	case MCU_CORES:
		return mock.cores;
	case MCU_ENGINES:
		return MOCK_ENGINES;
	case MCU_CTX_STATUS:
		return ctx_table == MOCK_BASE + MOCK_SIZE;
	case MCU_COPY_STATUS:
		return copy_status;
	case MCU_COPY_FAULT:
		return (u32)copy_fault;
	case MCU_COPY_FAULT + 4:
		return (u32)(copy_fault >> 32);
	case MCU_WORD_DATA:
		return (u32)word;
	case MCU_WORD_DATA + 4:
		return (u32)(word >> 32);
	case MCU_COMPL_VALID:
		return compl_valid;
	case MCU_STUCK_VALID:
		return stuck_valid;
	case MCU_INJECT_POP:
		if (mock.inject_put == mock.inject_got)
			return 0;
		return mock.inject[mock.inject_got++ % 8].id | 1u << 31;
	case MCU_INJECT_ARG:
		return mock.inject[(mock.inject_got - 1) % 8].arg;
	case MCU_TEMP_MC:
		return mock.temperature;
	case MCU_POWER_MW:
		return mock.power;
	default:
		return off < sizeof(mock.reg) ? mock.reg[off / 4] : 0;
	}
}

static void set_half(u64 *v, u32 off, u32 value)
{
	*v = off & 4 ? (*v & 0xffffffffu) | (u64)value << 32 : (*v & ~0xffffffffull) | value;
}

void mock_reg_write(u32 off, u32 value)
{
	if (off >= MCU_ENG_KIND(0) && off < MCU_ENG_KIND(MCU_ENG_MAX)) {
		u32 e = (off - MCU_ENG_KIND(0)) / 16;

		if (off % 16 == 4)
			start(e, value);
		else if (off % 16 == 8 && e < MOCK_ENGINES && value == 1)
			mock.engine[e].cancelled = 1;
		return;
	}
	switch (off) {
	case MCU_MTIMECMP:
	case MCU_MTIMECMP + 4:
		set_half(&mock.timecmp, off, value);
		break;
	case MCU_HEARTBEAT:
		mock.heartbeats++;
		break;
	case MCU_IRQ_CLEAR:
		mock.irq &= ~value;
		break;
	case MCU_HOST_REG:
		host_value = value < sizeof(mock.host_reg) ? mock.host_reg[value / 4] : 0;
		break;
	case MCU_RAISE:
		assert_true(value < 8);
		mock.raised[value]++;
		trace(~0ull, 0, value);
		break;
	case MCU_CTX_TABLE:
	case MCU_CTX_TABLE + 4:
		set_half(&ctx_table, off, value);
		break;
	case MCU_CTX_SELECT:
		select_ctx(value);
		break;
	case MCU_COPY_ADDR:
	case MCU_COPY_ADDR + 4:
		set_half(&copy_addr, off, value);
		break;
	case MCU_COPY_LOCAL:
		copy_local = value;
		break;
	case MCU_COPY_LEN:
		copy_len = value;
		break;
	case MCU_COPY_GO:
		do_copy(value);
		break;
	case MCU_WORD_DATA:
	case MCU_WORD_DATA + 4:
		set_half(&word, off, value);
		break;
	case MCU_WORD_GO:
		do_word(value);
		break;
	case MCU_COMPL_POP:
		compl_valid = mock.done_put != mock.done_got;
		if (compl_valid)
			memcpy(named_at(value), &mock.done[mock.done_got++ % 64],
			       sizeof(struct mcu_completion));
		break;
	case MCU_STUCK_POP:
		stuck_valid = mock.stuck_put != mock.stuck_got;
		if (stuck_valid)
			memcpy(named_at(value), &mock.stuck[mock.stuck_got++],
			       sizeof(struct spyre_stuck));
		break;
	case MCU_RAS_POP:
		break;
	default:
		if (off < sizeof(mock.reg))
			mock.reg[off / 4] = value;
		break;
	}
}

void mock_fence(void)
{
	mock.fences++;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void mock_wfi(void)
{
	mock.sleeps++;
}

static void set_host64(u32 off, u64 v)
{
	mock.host_reg[off / 4] = (u32)v;
	mock.host_reg[off / 4 + 1] = (u32)(v >> 32);
}

int mock_boot(void)
{
	static const u32 kinds[MOCK_ENGINES] = { 1, 1, 2, 2, 3, 4 };
	u32 cores = mock.cores_good, memory = mock.memory_result, soc_hz = mock.soc_hz;
	u32 e;

	memset(&mock, 0, sizeof(mock));
	memset(&fw_mem, 0xa5, sizeof(fw_mem));	/* the window keeps what was there */
	mock.cores = ~0u;
	mock.cores_good = cores ? cores : ~0u;
	mock.memory_result = memory ? memory : 1;
	mock.soc_hz = soc_hz ? soc_hz : SPYRE_SOC_HZ;
	mock.temperature = 45000;
	mock.power = 20000;
	mock.time = 1ull << 33;
	for (e = 0; e < MOCK_ENGINES; e++)
		mock.engine[e].kind = kinds[e];
	set_host64(SPYRE_REG_MBOX_CMD_BASE, CMD_RING);
	set_host64(SPYRE_REG_MBOX_EVT_BASE, EVT_RING);
	mock.host_reg[SPYRE_REG_MBOX_CMD_ENTRIES / 4] = RING;
	mock.host_reg[SPYRE_REG_MBOX_EVT_ENTRIES / 4] = RING;
	set_host64(SPYRE_REG_VEC_BASE(1), VEC_RING);
	mock.host_reg[SPYRE_REG_VEC_ENTRIES(1) / 4] = 256;
	mock.host_reg[SPYRE_REG_VEC_COUNT / 4] = 8;
	mock.host_reg[SPYRE_REG_CAPS / 4] = SPYRE_CAP_FAULT_INJECT;
	mock.host_reg[SPYRE_REG_CORE_HZ / 4] = SPYRE_CORE_HZ;
	cmd_tail = 0;
	naming = 0;
	return boot();
}

void mock_run(void)
{
	u32 i;

	for (i = 0; turn(); i++)
		assert_true(i < 1000000);
}

u32 mock_send(u32 type, const void *body, u32 length)
{
	struct spyre_msg *m = mock_at(CMD_RING + cmd_tail % RING * sizeof(*m));

	memset(m, 0, sizeof(*m));
	m->MessageAppId = SPYRE_APP_DRIVER;
	m->MessageType = (u16)type;
	m->MessageTag = 1000 + cmd_tail;
	m->length = length;
	if (length && body)
		memcpy(m->body, body, length < SPYRE_MSG_BODY ? length : SPYRE_MSG_BODY);
	mock.host_reg[SPYRE_REG_MBOX_CMD_TAIL / 4] = ++cmd_tail;
	/* Reads everything so far: the test looks at the ring's memory. */
	mock.host_reg[SPYRE_REG_MBOX_EVT_HEAD / 4] = mock.reg[MCU_EVT_TAIL / 4];
	mock.irq |= MCU_IRQ_MBOX;
	return 1000 + cmd_tail - 1;
}

static struct spyre_msg *sent(u32 i)
{
	return mock_at(EVT_RING + i % RING * sizeof(struct spyre_msg));
}

static u32 oldest(void)
{
	u32 tail = mock.reg[MCU_EVT_TAIL / 4];

	return tail > RING ? tail - RING : 0;
}

int mock_answer(u32 tag, struct spyre_msg *out)
{
	u32 i;

	for (i = oldest(); i != mock.reg[MCU_EVT_TAIL / 4]; i++) {
		struct spyre_msg *m = sent(i);

		assert_int_equal(m->seq, i + 1);
		if (m->MessageType != SPYRE_MSG_RESPONSE || m->MessageTag != tag)
			continue;
		if (out)
			*out = *m;
		return m->status;
	}
	return -1;
}

int mock_call(u32 type, const void *body, u32 length)
{
	u32 tag = mock_send(type, body, length);
	int i, status = -1;

	/* The answer may have to wait until older events were read. */
	for (i = 0; i < 16 && status < 0; i++) {
		mock_run();
		status = mock_answer(tag, NULL);
		mock.host_reg[SPYRE_REG_MBOX_EVT_HEAD / 4] = mock.reg[MCU_EVT_TAIL / 4];
		mock.irq |= MCU_IRQ_MBOX;
	}
	return status;
}

u32 mock_events(u32 type, struct spyre_msg *out)
{
	u32 i, n = 0;

	for (i = oldest(); i != mock.reg[MCU_EVT_TAIL / 4]; i++) {
		if (sent(i)->MessageType != type)
			continue;
		n++;
		if (out)
			*out = *sent(i);
	}
	return n;
}

static struct mcu_completion *finish(u32 e, u32 status, u32 begin, u32 end)
{
	struct mcu_completion *c = &mock.done[mock.done_put++ % 64];
	u32 cycles = end - begin, i;
	struct spyre_rb rb;

	assert_true(mock.engine[e].busy);
	memset(c, 0, sizeof(*c));
	c->engine = e;
	c->tag = mock.engine[e].job.tag;
	memset(&rb, 0, sizeof(rb));
	rb.status = status;
	for (i = 0; i < 3; i++)
		rb.ts[i] = begin;
	rb.ts[3] = end;
	rb.ts[4] = end;
	rb.ts4 = end;
	rb.cycles = cycles * 3ull;
	rb.bytes = 128;
	memcpy(c->rb, &rb, sizeof(rb));
	c->end = end;
	mock.engine[e].busy = 0;
	return c;
}

void mock_finish(u32 e, u32 status, u32 cycles)
{
	finish(e, status, 0, cycles);
}

void mock_finish_part(u32 e, u32 begin, u32 end, u32 next)
{
	finish(e, SPYRE_OK, begin, end)->next = next;
}

void mock_doorbell(u32 page, u32 value)
{
	assert_true(mock.doorbells < 64);
	mock.doorbell[mock.doorbells++] = page;
	db_value = value;
}
