/* SPDX-License-Identifier: MIT */
/* The management core: instructions, traps, interrupts, its bus. */
#include "model_util.h"

#define MMIO	SPYRE_MCU_MMIO_BASE

/* --- Arithmetic against a reference ------------------------------------------------------------- */

static uint32_t ref_op(unsigned int f7, unsigned int f3, uint32_t a, uint32_t b)
{
	int64_t sa = (int32_t)a, sb = (int32_t)b;

	if (f7 == 1) {
		switch (f3) {
		case 0: return (uint32_t)(sa * sb);
		case 1: return (uint64_t)(sa * sb) >> 32;
		case 2: return (uint64_t)(sa * (int64_t)(uint64_t)b) >> 32;
		case 3: return (uint64_t)a * b >> 32;
		case 4: return b ? (uint32_t)(sa / sb) : ~0u;
		case 5: return b ? a / b : ~0u;
		case 6: return b ? (uint32_t)(sa % sb) : a;
		default: return b ? a % b : a;
		}
	}
	switch (f3) {
	case 0: return f7 ? a - b : a + b;
	case 1: return a << (b & 31);
	case 2: return sa < sb;
	case 3: return a < b;
	case 4: return a ^ b;
	case 5: return f7 ? (uint32_t)(sa >> (b & 31)) : a >> (b & 31);
	case 6: return a | b;
	default: return a & b;
	}
}

static uint32_t operand(uint64_t *seed)
{
	static const uint32_t edge[] = { 0, 1, 2, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffff800 };
	uint64_t r = rnd(seed);

	return r & 1 ? edge[(r >> 8) % ARRAY_SIZE(edge)] : (uint32_t)(r >> 16);
}

static void test_arithmetic(void **state)
{
	static const struct { uint8_t f7, f3; } regs[] = {
		{ 0, 0 }, { 0x20, 0 }, { 0, 1 }, { 0, 2 }, { 0, 3 }, { 0, 4 }, { 0, 5 }, { 0x20, 5 },
		{ 0, 6 }, { 0, 7 }, { 1, 0 }, { 1, 1 }, { 1, 2 }, { 1, 3 }, { 1, 4 }, { 1, 5 },
		{ 1, 6 }, { 1, 7 },
	};
	struct fix *f = *state;
	uint64_t seed = 0x1234567;
	unsigned int round, i;

	for (round = 0; round < 20; round++) {
		static struct rv p;
		uint32_t x[32], *out;

		p.n = 0;
		x[0] = 0;
		for (i = 1; i < 32; i++) {
			x[i] = operand(&seed);
			rv_li(&p, i, x[i]);
		}
		for (i = 0; i < 1000; i++) {
			uint64_t r = rnd(&seed);
			uint32_t rd = r & 31, a = r >> 5 & 31, b = r >> 10 & 31, k = r >> 20;
			uint32_t f3, v;
			int32_t imm;

			if (r >> 15 & 1) {
				uint32_t f7 = regs[k % ARRAY_SIZE(regs)].f7;

				f3 = regs[k % ARRAY_SIZE(regs)].f3;
				rv_put(&p, RV_R(f7, b, a, f3, rd, 0x33));
				v = ref_op(f7, f3, x[a], x[b]);
			} else {
				f3 = k & 7;
				imm = (int32_t)(k >> 3 << 20) >> 20;
				if (f3 == 1)
					imm &= 31;
				if (f3 == 5)
					imm &= 0x41f;
				rv_put(&p, RV_I(imm, a, f3, rd, 0x13));
				v = ref_op(f3 == 5 && imm & 0x400 ? 0x20 : 0, f3, x[a], imm);
			}
			if (rd)
				x[rd] = v;
		}
		/* x31 gives way to the pointer. */
		rv_li(&p, T6, RV_DATA);
		x[31] = RV_DATA;
		for (i = 0; i < 32; i++)
			rv_put(&p, SW(i, 4 * i, T6));
		rv_halt(&p);
		out = run_to_halt(f, &p);
		for (i = 0; i < 32; i++)
			if (out[i] != x[i])
				fail_msg("round %u: x%u is 0x%08x, expected 0x%08x", round, i, out[i], x[i]);
	}
}

static void test_memory(void **state)
{
	struct rv p = { .n = 0 };
	unsigned int auipc;
	uint32_t *out;

	rv_li(&p, S0, RV_DATA);
	rv_li(&p, A0, 0x8091a2f3);
	rv_put(&p, SW(A0, 0, S0));
	rv_put(&p, SH(A0, 4, S0));
	rv_put(&p, SB(A0, 7, S0));
	rv_put(&p, LB(A1, 0, S0));
	rv_put(&p, SW(A1, 8, S0));
	rv_put(&p, LBU(A1, 3, S0));
	rv_put(&p, SW(A1, 12, S0));
	rv_put(&p, LH(A1, 2, S0));
	rv_put(&p, SW(A1, 16, S0));
	rv_put(&p, LHU(A1, 2, S0));
	rv_put(&p, SW(A1, 20, S0));
	rv_put(&p, LW(A1, 1, S0));
	rv_put(&p, SW(A1, 24, S0));
	/* The window on the firmware's part of card memory, first and last word. */
	rv_li(&p, S1, SPYRE_MCU_FWMEM_BASE);
	rv_put(&p, SW(A0, 0, S1));
	rv_li(&p, S1, SPYRE_MCU_FWMEM_BASE + SPYRE_MCU_FWMEM_SIZE - 4);
	rv_put(&p, SW(A0, 0, S1));
	rv_put(&p, LW(A1, 0, S1));
	rv_put(&p, SW(A1, 28, S0));
	auipc = p.n;
	rv_put(&p, AUIPC(A1, 1));
	rv_put(&p, SW(A1, 32, S0));
	rv_halt(&p);
	out = run_to_halt(*state, &p);
	assert_int_equal(out[0], 0x8091a2f3);
	assert_int_equal(out[1], 0xf300a2f3);
	assert_int_equal(out[2], 0xfffffff3);
	assert_int_equal(out[3], 0x80);
	assert_int_equal(out[4], 0xffff8091);
	assert_int_equal(out[5], 0x8091);
	assert_int_equal(out[6], 0xf38091a2);
	assert_int_equal(out[7], 0x8091a2f3);
	assert_int_equal(out[8], RV_ENTRY + 4 * auipc + 0x1000);
	{
		struct fix *f = *state;
		uint64_t top = spyre_card_memory_size(f->card);

		assert_int_equal(*(uint32_t *)card_at(f, top - SPYRE_FW_MEM_SIZE), 0x8091a2f3);
		assert_int_equal(*(uint32_t *)card_at(f, top - 4), 0x8091a2f3);
	}
}

static void test_branches(void **state)
{
	static const struct { uint32_t a, b; uint8_t taken; } cases[] = {
		/* taken: bit per f3 of beq, bne, -, -, blt, bge, bltu, bgeu */
		{ 5, 5, 0xa1 }, { 4, 5, 0x52 }, { 5, 4, 0xa2 },
		{ 0xffffffff, 1, 0x92 }, { 1, 0xffffffff, 0x62 }, { 0x80000000, 0x7fffffff, 0x92 },
	};
	static const uint8_t f3s[] = { 0, 1, 4, 5, 6, 7 };
	struct rv p = { .n = 0 };
	unsigned int i, j, n = 0;
	uint32_t *out;

	rv_li(&p, S0, RV_DATA);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (j = 0; j < ARRAY_SIZE(f3s); j++, n++) {
			rv_li(&p, A0, cases[i].a);
			rv_li(&p, A1, cases[i].b);
			rv_put(&p, ADDI(A2, ZERO, 1));
			rv_put(&p, RV_B(8, A1, A0, f3s[j]));
			rv_put(&p, ADDI(A2, ZERO, 0));
			rv_put(&p, SW(A2, 4 * n, S0));
		}
	}
	/* jalr drops bit 0 and may use its destination as base. */
	rv_put(&p, AUIPC(A0, 0));
	rv_put(&p, ADDI(A0, A0, 17));
	rv_put(&p, JALR(A0, A0, 0));
	rv_put(&p, rv_jal(ZERO, 0));
	rv_put(&p, SW(A0, 4 * n, S0));
	rv_halt(&p);
	out = run_to_halt(*state, &p);
	for (n = 0, i = 0; i < ARRAY_SIZE(cases); i++)
		for (j = 0; j < ARRAY_SIZE(f3s); j++, n++)
			if (out[n] != (cases[i].taken >> f3s[j] & 1u))
				fail_msg("branch f3=%u of %#x, %#x: taken is %u", f3s[j], cases[i].a,
					 cases[i].b, out[n]);
	assert_true(out[n] > RV_ENTRY && !(out[n] & 3));
}

/* Compressed instructions, as GNU as encodes them, doing a sum whose result is known. */
static void test_compressed(void **state)
{
	static const uint16_t code[] = {
		0x4515,		/* c.li a0, 5 */
		0x157d,		/* c.addi a0, -1          a0 = 4 */
		0x0512,		/* c.slli a0, 4           a0 = 64 */
		0x85aa,		/* c.mv a1, a0            a1 = 64 */
		0x95aa,		/* c.add a1, a0           a1 = 128 */
		0x8d89,		/* c.sub a1, a0           a1 = 64 */
		0x8189,		/* c.srli a1, 2           a1 = 16 */
		0x8dc9,		/* c.or a1, a0            a1 = 80 */
		0x89fd,		/* c.andi a1, 31          a1 = 16 */
		0xc00c,		/* c.sw a1, 0(s0) */
		0x4010,		/* c.lw a2, 0(s0)         a2 = 16 */
		0xe211,		/* c.bnez a2, +4 */
		0x4501,		/* c.li a0, 0             skipped */
		0xc048,		/* c.sw a0, 4(s0)         64 */
		0x767d,		/* c.lui a2, 0xfffff      a2 = 0xfffff000 */
		0x8605,		/* c.srai a2, 1           a2 = 0xfffff800 */
		0xc410,		/* c.sw a2, 8(s0) */
		0xa011,		/* c.j +4 */
		0x4501,		/* c.li a0, 0             skipped */
		0x0001,		/* c.nop */
	};
	struct rv p = { .n = 0 };
	uint32_t *out;
	unsigned int i;

	rv_li(&p, S0, RV_DATA);
	for (i = 0; i < ARRAY_SIZE(code); i += 2)
		rv_put(&p, code[i] | (uint32_t)code[i + 1] << 16);
	rv_halt(&p);
	out = run_to_halt(*state, &p);
	assert_int_equal(out[0], 16);
	assert_int_equal(out[1], 64);
	assert_int_equal(out[2], 0xfffff800);
}

/* --- Traps -------------------------------------------------------------------------------------- */

/* A handler at the given word index that stores mcause, mepc, mtval behind s1 and returns past the trap. */
static void put_handler(struct rv *p)
{
	rv_put(p, CSRRS(T0, 0x342, ZERO));
	rv_put(p, SW(T0, 0, S1));
	rv_put(p, CSRRS(T0, 0x341, ZERO));
	rv_put(p, SW(T0, 4, S1));
	rv_put(p, CSRRS(T1, 0x343, ZERO));
	rv_put(p, SW(T1, 8, S1));
	rv_put(p, ADDI(S1, S1, 12));
	rv_put(p, CSRRW(ZERO, 0x341, S2));	/* s2: where to go on */
	rv_put(p, MRET);
}

static void test_traps(void **state)
{
	struct rv p = { .n = 0 };
	struct { uint32_t cause, epc, tval; } want[16], *got;
	unsigned int n = 0, i, jump;

	rv_li(&p, S1, RV_DATA);
	jump = p.n;
	rv_put(&p, 0);
	put_handler(&p);
	p.w[jump] = rv_jal(ZERO, 4 * (p.n - jump));
	rv_li(&p, T0, RV_ENTRY + 4 * (jump + 1));
	rv_put(&p, CSRRW(ZERO, 0x305, T0));
	rv_li(&p, A0, 0x40000000);
	rv_li(&p, A3, MMIO + MCU_MTIME);
#define FAULTS(insn, c, t) \
	do { \
		/* 12: li is two words, then the instruction. */ \
		rv_li(&p, S2, RV_ENTRY + 4 * (p.n + 3)); \
		want[n].cause = (c); \
		want[n].epc = RV_ENTRY + 4 * p.n; \
		want[n].tval = (t); \
		n++; \
		rv_put(&p, (insn)); \
	} while (0)
	FAULTS(0xffffffff, 2, 0xffffffff);
	FAULTS(RV_R(0x40, 1, 1, 0, 1, 0x33), 2, RV_R(0x40, 1, 1, 0, 1, 0x33));
	FAULTS(RV_I(0x600, 1, 5, 1, 0x13), 2, RV_I(0x600, 1, 5, 1, 0x13));	/* shift by a bad kind */
	FAULTS(ECALL, 11, 0);
	FAULTS(EBREAK, 3, RV_ENTRY + 4 * p.n);
	want[n - 1].tval = want[n - 1].epc;
	FAULTS(LW(A1, 4, A0), 5, 0x40000004);
	FAULTS(SW(A1, 8, A0), 7, 0x40000008);
	FAULTS(LB(A1, 0, A3), 5, MMIO + MCU_MTIME);	/* registers are 32 bits wide */
	FAULTS(SH(A1, 0, A3), 7, MMIO + MCU_MTIME);
	FAULTS(CSRRS(A1, 0x7c0, ZERO), 2, CSRRS(A1, 0x7c0, ZERO));
	FAULTS(CSRRW(A1, 0xf14, A1), 2, CSRRW(A1, 0xf14, A1));	/* read-only */
	FAULTS(JALR(ZERO, A0, 2), 1, 0x40000002);
	want[n - 1].epc = 0x40000002;
	/* A branch to outside RAM: the fault names the target. */
	FAULTS(RV_B(-4096, ZERO, ZERO, 0), 1, 0);
	want[n - 1].tval = want[n - 1].epc = want[n - 1].epc - 4096;
	rv_halt(&p);
	got = (void *)run_to_halt(*state, &p);
	for (i = 0; i < n; i++) {
		if (got[i].cause != want[i].cause || got[i].epc != want[i].epc ||
		    got[i].tval != want[i].tval)
			fail_msg("trap %u: cause %u epc %#x tval %#x, expected %u %#x %#x", i,
				 got[i].cause, got[i].epc, got[i].tval, want[i].cause, want[i].epc,
				 want[i].tval);
	}
}

static void crash(struct fix *f, const struct rv *p, uint32_t cause)
{
	uint64_t irqs = spyre_inproc_raised(f->ip, 0);
	struct spyre_ras_hw ras;

	run_to_halt(f, p);
	assert_int_equal(spyre_inproc_wait(f->ip, 0, irqs, 5000), irqs + 1);
	/* The record outlives the restart, so that the next firmware can report it. */
	assert_true(ras_pop(f->card, &ras));
	assert_int_equal(ras.code, SPYRE_RAS_FIRMWARE);
	assert_int_equal(ras.arg, cause);
	assert_false(ras_pop(f->card, &ras));
}

static void test_crashes(void **state)
{
	struct fix *f = *state;
	struct rv p = { .n = 0 };

	/* No vector. */
	rv_put(&p, 0xffffffff);
	crash(f, &p, 2);
	/* A trap in the handler. */
	p.n = 0;
	rv_li(&p, T0, RV_ENTRY + 16);
	rv_put(&p, CSRRW(ZERO, 0x305, T0));
	rv_put(&p, ECALL);
	rv_put(&p, 0xffffffff);
	crash(f, &p, 2);
	/* Off the end of memory: the last word of RAM is a nop. */
	p.n = 0;
	rv_li(&p, T0, SPYRE_MCU_RAM_BASE + SPYRE_MCU_RAM_SIZE - 4);
	rv_li(&p, T1, ADDI(ZERO, ZERO, 0));
	rv_put(&p, SW(T1, 0, T0));
	rv_put(&p, JALR(ZERO, T0, 0));
	crash(f, &p, 1);
	/* While it is crashed the card says so. */
	p.n = 0;
	rv_put(&p, 0);
	rv_boot(f->card, &p);
	WAIT_FOR(rd32(f, SPYRE_REG_STATE) == SPYRE_STATE_IN_ERROR);
	assert_int_equal(rd32(f, SPYRE_REG_BOOT_STATUS), SPYRE_BOOT_CRASHED);
	stop_core(f);
	assert_int_equal(rd32(f, SPYRE_REG_STATE), SPYRE_STATE_OFFLINE);
	assert_int_equal(rd32(f, SPYRE_REG_BOOT_STATUS), SPYRE_BOOT_IDLE);
}

static void test_csr(void **state)
{
	struct rv p = { .n = 0 };
	uint32_t *out;

	rv_li(&p, S0, RV_DATA);
	rv_li(&p, A0, 0xf0f0);
	rv_put(&p, CSRRW(ZERO, 0x340, A0));
	rv_put(&p, CSRRSI(A1, 0x340, 0xf));
	rv_put(&p, SW(A1, 0, S0));
	rv_li(&p, A0, 0xf000);
	rv_put(&p, RV_I(0x340, A0, 3, A1, 0x73));	/* csrrc */
	rv_put(&p, SW(A1, 4, S0));
	rv_put(&p, RV_I(0x340, 3, 7, A1, 0x73));	/* csrrci */
	rv_put(&p, SW(A1, 8, S0));
	rv_put(&p, CSRRS(A1, 0x340, ZERO));
	rv_put(&p, SW(A1, 12, S0));
	rv_put(&p, CSRRS(A1, 0xb02, ZERO));
	rv_put(&p, ADDI(ZERO, ZERO, 0));
	rv_put(&p, ADDI(ZERO, ZERO, 0));
	rv_put(&p, CSRRS(A2, 0xb02, ZERO));
	rv_put(&p, RV_R(0x20, A1, A2, 0, A1, 0x33));
	rv_put(&p, SW(A1, 16, S0));
	rv_put(&p, CSRRS(A1, 0x301, ZERO));
	rv_put(&p, SW(A1, 20, S0));
	rv_halt(&p);
	out = run_to_halt(*state, &p);
	assert_int_equal(out[0], 0xf0f0);
	assert_int_equal(out[1], 0xf0ff);
	assert_int_equal(out[2], 0x00ff);
	assert_int_equal(out[3], 0x00fc);
	assert_int_equal(out[4], 3);
	assert_int_equal(out[5], 0x40001104);
}

/* mcycle counts the core's clock in card time, whatever the interpreter's speed; minstret instructions. */
static void test_cycles(void **state)
{
	struct spyre_card_config cfg = {
		.memory = 1ull << 30, .aperture = 1ull << 31, .mem_fd = -1, .mcu_hz = 1234567000,
	};
	struct fix *f = fix_new(&cfg);
	struct rv p = { .n = 0 };
	uint32_t *out;

	(void)state;
	spyre_inproc_manual_clock(f->ip);
	spyre_inproc_advance(f->ip, 10000000000ll - f->card->ops->clock_ns(f->card->opaque));
	rv_li(&p, S0, RV_DATA);
	rv_put(&p, CSRRS(A1, 0xb00, ZERO));
	rv_put(&p, SW(A1, 0, S0));
	rv_put(&p, CSRRS(A1, 0xb80, ZERO));
	rv_put(&p, SW(A1, 4, S0));
	rv_put(&p, CSRRS(A1, 0xc00, ZERO));
	rv_put(&p, SW(A1, 8, S0));
	rv_put(&p, CSRRS(A1, 0xc80, ZERO));
	rv_put(&p, SW(A1, 12, S0));
	rv_halt(&p);
	out = run_to_halt(f, &p);
	assert_int_equal(out[0], (uint32_t)12345670000ull);
	assert_int_equal(out[1], 12345670000ull >> 32);
	assert_int_equal(out[2], out[0]);
	assert_int_equal(out[3], out[1]);
	fix_free(f);
}

static void test_fence_i(void **state)
{
	struct rv p = { .n = 0 };
	unsigned int patch;
	uint32_t *out;

	/* Runs an instruction, changes it, and after fence.i the new one runs. */
	rv_li(&p, S0, RV_DATA);
	rv_li(&p, A1, ADDI(A0, ZERO, 2));
	rv_put(&p, ADDI(S2, ZERO, 2));
	patch = p.n;
	rv_put(&p, ADDI(A0, ZERO, 1));
	rv_put(&p, SW(A0, 0, S0));
	rv_put(&p, ADDI(S0, S0, 4));
	rv_li(&p, T0, RV_ENTRY + 4 * patch);
	rv_put(&p, SW(A1, 0, T0));
	rv_put(&p, FENCE_I);
	rv_put(&p, FENCE);
	rv_put(&p, ADDI(S2, S2, -1));
	rv_put(&p, BNE(S2, ZERO, -4 * (int)(p.n - patch)));
	rv_halt(&p);
	out = run_to_halt(*state, &p);
	assert_int_equal(out[0], 1);
	assert_int_equal(out[1], 2);
}

/* --- Interrupts ----------------------------------------------------------------------------------- */

static void test_timer_and_wfi(void **state)
{
	struct fix *f = *state;
	struct rv p = { .n = 0 };
	uint64_t asleep;

	spyre_inproc_manual_clock(f->ip);
	rv_li(&p, S0, RV_DATA);
	/* MTIMECMP = MTIME + 560000 (1 ms); mie = MTIE, mstatus.MIE stays 0: WFI must wake all the same. */
	rv_li(&p, A0, MMIO);
	rv_put(&p, LW(A1, MCU_MTIME, A0));
	rv_put(&p, LW(A2, MCU_MTIME + 4, A0));
	rv_li(&p, A3, 560000);
	rv_put(&p, ADD(A1, A1, A3));
	rv_put(&p, SW(A1, MCU_MTIMECMP, A0));
	rv_put(&p, SW(A2, MCU_MTIMECMP + 4, A0));
	rv_put(&p, ADDI(A3, ZERO, 1 << 7));
	rv_put(&p, CSRRW(ZERO, 0x304, A3));
	rv_put(&p, WFI);
	rv_put(&p, LW(A4, MCU_MTIME, A0));
	rv_put(&p, SW(A4, 0, S0));
	rv_put(&p, SW(A1, 4, S0));
	rv_put(&p, CSRRS(A4, 0x344, ZERO));
	rv_put(&p, SW(A4, 8, S0));
	rv_halt(&p);
	assert_int_equal(rv_boot(f->card, &p), SPYRE_BOOT_RUNNING);
	WAIT_FOR(load_acquire(&f->card->mcu.sleeping));
	asleep = counter(f, "mcu-instructions");
	spyre_inproc_advance(f->ip, 990000);
	usleep(20000);
	assert_int_equal(counter(f, "mcu-instructions"), asleep);
	assert_int_equal(rd32(f, SPYRE_REG_BOOT_STATUS), SPYRE_BOOT_RUNNING);
	spyre_inproc_advance(f->ip, 20000);
	WAIT_FOR(rd32(f, SPYRE_REG_BOOT_STATUS) == SPYRE_BOOT_CRASHED);
	stop_core(f);
	{
		uint32_t *out = (uint32_t *)(f->card->mcu.ram + (RV_DATA - SPYRE_MCU_RAM_BASE));

		assert_true((int32_t)(out[0] - out[1]) >= 0);
		assert_int_equal(out[2], 1 << 7);
	}
}

static void test_external_interrupt(void **state)
{
	struct fix *f = *state;
	struct rv p = { .n = 0 };
	unsigned int jump;

	rv_li(&p, S1, RV_DATA);
	jump = p.n;
	rv_put(&p, 0);
	/* Handler: mcause, pending, what the host wrote; then the end. */
	rv_put(&p, CSRRS(T0, 0x342, ZERO));
	rv_put(&p, SW(T0, 0, S1));
	rv_li(&p, A0, MMIO);
	rv_put(&p, LW(A1, MCU_IRQ_PENDING, A0));
	rv_put(&p, SW(A1, 4, S1));
	rv_put(&p, ADDI(A2, ZERO, MCU_IRQ_MBOX));
	rv_put(&p, SW(A2, MCU_IRQ_CLEAR, A0));
	rv_put(&p, LW(A1, MCU_IRQ_PENDING, A0));
	rv_put(&p, SW(A1, 8, S1));
	rv_put(&p, ADDI(A2, ZERO, SPYRE_REG_MBOX_CMD_TAIL));
	rv_put(&p, SW(A2, MCU_HOST_REG, A0));
	rv_put(&p, LW(A1, MCU_HOST_REG_VALUE, A0));
	rv_put(&p, SW(A1, 12, S1));
	rv_halt(&p);
	p.w[jump] = rv_jal(ZERO, 4 * (p.n - jump));
	rv_li(&p, T0, RV_ENTRY + 4 * (jump + 1));
	rv_put(&p, CSRRW(ZERO, 0x305, T0));
	rv_li(&p, A0, MMIO);
	rv_put(&p, ADDI(A1, ZERO, MCU_IRQ_MBOX));
	rv_put(&p, SW(A1, MCU_IRQ_ENABLE, A0));
	rv_li(&p, A1, 1 << 11);
	rv_put(&p, CSRRW(ZERO, 0x304, A1));
	rv_put(&p, CSRRSI(ZERO, 0x300, 8));
	/* A busy loop, not WFI: the interrupt has to come on its own. */
	rv_put(&p, rv_jal(ZERO, 0));
	assert_int_equal(rv_boot(f->card, &p), SPYRE_BOOT_RUNNING);
	usleep(2000);
	wr32(f, SPYRE_REG_MBOX_CMD_TAIL, 42);
	WAIT_FOR(rd32(f, SPYRE_REG_BOOT_STATUS) == SPYRE_BOOT_CRASHED);
	stop_core(f);
	{
		uint32_t *out = (uint32_t *)(f->card->mcu.ram + (RV_DATA - SPYRE_MCU_RAM_BASE));

		assert_int_equal(out[0], 0x8000000b);
		assert_int_equal(out[1], MCU_IRQ_MBOX);
		assert_int_equal(out[2], 0);
		assert_int_equal(out[3], 42);
	}
}

static void test_doorbells(void **state)
{
	struct fix *f = *state;
	uint32_t i, v, got, seen = 0;

	for (i = 0; i < DB_FIFO + 100; i++)
		spyre_card_db_write(f->card, (uint64_t)(i * 7 % SPYRE_DB_PAGES) * SPYRE_DB_PAGE_SIZE, i, 4);
	/* Twice the same page in the bitmap is one bit. */
	spyre_card_db_write(f->card, (uint64_t)(DB_FIFO * 7) * SPYRE_DB_PAGE_SIZE, 1, 4);
	assert_int_equal(rd32(f, SPYRE_REG_DB_OVERFLOW), 101);
	for (i = 0; i < DB_FIFO; i++) {
		got = db_pop(f->card, &v);
		assert_int_equal(got, (i * 7 % SPYRE_DB_PAGES) | 1u << 31);
		assert_int_equal(v, i);
	}
	assert_int_equal(db_pop(f->card, &v), 0);
	assert_true(load_seq(&f->card->mcu.pend) & MCU_IRQ_DOORBELL);
	while ((got = db_overflow_pop(f->card))) {
		i = got & ~(1u << 31);
		assert_int_equal(i % 7 ? (i + SPYRE_DB_PAGES) % 7 : 0, 0);
		seen++;
	}
	assert_int_equal(seen, 100);
	assert_false(load_seq(&f->card->mcu.pend) & MCU_IRQ_DOORBELL);

	/* Wrong widths and places are counted and do nothing; reads give zero. */
	spyre_card_db_write(f->card, 4, 1, 4);
	spyre_card_db_write(f->card, 0, 1, 8);
	spyre_card_db_write(f->card, 0, 1, 2);
	spyre_card_db_write(f->card, SPYRE_BAR_DOORBELLS_SIZE, 1, 4);
	assert_int_equal(rd32(f, SPYRE_REG_DB_BAD), 4);
	assert_int_equal(db_pop(f->card, &v), 0);
	assert_int_equal(spyre_card_db_read(f->card, 0, 4), 0);
	/* The first pages are in BAR0, too. */
	wr32(f, SPYRE_REGS_DOORBELLS + 5 * SPYRE_DB_PAGE_SIZE, 99);
	assert_int_equal(db_pop(f->card, &v), 5 | 1u << 31);
	assert_int_equal(v, 99);
}

static void test_log_and_registers(void **state)
{
	struct fix *f = *state;
	struct rv p = { .n = 0 };

	rv_poke(&p, SPYRE_MCU_LOG_BASE + 8, 0x64636261);
	rv_poke(&p, MMIO + MCU_BOOT_PROGRESS, 3);
	rv_poke(&p, MMIO + MCU_FW_VERSION, 0x10000);
	rv_poke(&p, MMIO + MCU_CMD_HEAD, 11);
	rv_poke(&p, MMIO + MCU_EVT_TAIL, 12);
	rv_poke(&p, MMIO + MCU_HEARTBEAT, 0);
	rv_poke(&p, MMIO + MCU_HEARTBEAT, 0);
	rv_poke(&p, MMIO + MCU_RAISE, 3);
	rv_poke(&p, MMIO + MCU_RAISE, 99);
	rv_poke(&p, MMIO + MCU_STATE, SPYRE_STATE_ONLINE);
	rv_put(&p, WFI);
	rv_put(&p, rv_jal(ZERO, -4));
	assert_int_equal(rv_boot(f->card, &p), SPYRE_BOOT_RUNNING);
	WAIT_FOR(rd32(f, SPYRE_REG_STATE) == SPYRE_STATE_ONLINE);
	assert_int_equal(rd32(f, SPYRE_REG_LOG_RAM + 8), 0x64636261);
	assert_int_equal(rd32(f, SPYRE_REG_BOOT_PROGRESS), 3);
	assert_int_equal(rd32(f, SPYRE_REG_FW_VERSION), 0x10000);
	assert_int_equal(rd32(f, SPYRE_REG_MBOX_CMD_HEAD), 11);
	assert_int_equal(rd32(f, SPYRE_REG_MBOX_EVT_TAIL), 12);
	assert_int_equal(rd32(f, SPYRE_REG_HEARTBEAT), 2);
	assert_int_equal(spyre_inproc_raised(f->ip, 3), 1);
	/* A stop keeps the log and forgets what the firmware had published. */
	stop_core(f);
	assert_int_equal(rd32(f, SPYRE_REG_LOG_RAM + 8), 0x64636261);
	assert_int_equal(rd32(f, SPYRE_REG_FW_VERSION), 0);
	assert_int_equal(rd32(f, SPYRE_REG_MBOX_CMD_HEAD), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup_card, teardown_card)
		T(test_arithmetic),
		T(test_memory),
		T(test_branches),
		T(test_compressed),
		T(test_traps),
		T(test_crashes),
		T(test_csr),
		T(test_cycles),
		T(test_fence_i),
		T(test_timer_and_wfi),
		T(test_external_interrupt),
		T(test_doorbells),
		T(test_log_and_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
