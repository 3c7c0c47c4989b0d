/* SPDX-License-Identifier: MIT */
/*
 * Management core: RV32IMC, Zicsr, Zifencei, machine mode. RAM is decoded once per halfword into eight
 * bytes and run with threaded dispatch; fence.i drops what was decoded. Interrupts and requests from
 * outside are looked at every SLICE instructions, on the next taken branch.
 *
 * A trap inside an exception handler that has not reached its mret, or a trap vector outside RAM, ends
 * the run: the core is crashed until it is started again.
 */
#include "card.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLICE		512

#define MSTATUS_MIE	(1u << 3)
#define MSTATUS_MPIE	(1u << 7)
#define MSTATUS_MPP	(3u << 11)
#define MIP_MTIP	(1u << 7)
#define MIP_MEIP	(1u << 11)
#define CAUSE_IRQ	(1u << 31)

enum cause {
	CAUSE_FETCH = 1,
	CAUSE_ILLEGAL = 2,
	CAUSE_BREAK = 3,
	CAUSE_LOAD = 5,
	CAUSE_STORE = 7,
	CAUSE_ECALL = 11,
};

/*
 * Operations. Those of the first list exist once for 4-byte and once for 2-byte encodings, since the
 * length is where the next one is.
 */
#define OPS_BOTH(X) \
	X(li) X(jal) X(jalr) X(beq) X(bne) X(blt) X(bge) X(bltu) X(bgeu) \
	X(lb) X(lh) X(lw) X(lbu) X(lhu) X(sb) X(sh) X(sw) \
	X(addi) X(slti) X(sltiu) X(xori) X(ori) X(andi) X(slli) X(srli) X(srai) \
	X(add) X(sub) X(sll) X(slt) X(sltu) X(xor) X(srl) X(sra) X(or) X(and) \
	X(mul) X(mulh) X(mulhsu) X(mulhu) X(div) X(divu) X(rem) X(remu)
#define OPS_ONCE(X) \
	X(decode) X(outside) X(illegal) X(fence) X(fencei) X(ecall) X(ebreak) X(cebreak) \
	X(mret) X(wfi) X(csr) X(far) X(gdb)

#define X(name) OP_##name, OP_##name##_c,
enum op { OP_none /* memory that was never decoded */, OPS_BOTH(X)
#undef X
#define X(name) OP_##name,
	OPS_ONCE(X) OPS };
#undef X

#define REG_SINK	32	/* x0 as a destination */

/* --- Decoder ---------------------------------------------------------------------------------- */

static int32_t sext(uint32_t v, unsigned int bits)
{
	return (int32_t)(v << (32 - bits)) >> (32 - bits);
}

static uint32_t bits(uint32_t v, unsigned int hi, unsigned int lo)
{
	return v >> lo & ((2u << (hi - lo)) - 1);
}

static bool in_ram(uint32_t pc)
{
	return pc - SPYRE_MCU_RAM_BASE < SPYRE_MCU_RAM_SIZE;
}

static void set(struct insn *d, enum op op, uint32_t rd, uint32_t rs1, uint32_t rs2, int32_t imm)
{
	d->op = op;
	d->rd = rd ? rd : REG_SINK;
	d->rs1 = rs1;
	d->rs2 = rs2;
	d->imm = imm;
}

/* Branches and jumps keep a byte distance; one that leaves RAM is worked out when it runs. */
static void set_jump(struct insn *d, uint32_t pc, enum op op, uint32_t rd, uint32_t rs1, uint32_t rs2,
		     int32_t imm)
{
	set(d, in_ram(pc + imm) ? op : OP_far, rd, rs1, rs2, imm);
}

static int32_t imm_b(uint32_t w)
{
	return sext(bits(w, 31, 31) << 12 | bits(w, 7, 7) << 11 | bits(w, 30, 25) << 5 |
		    bits(w, 11, 8) << 1, 13);
}

static int32_t imm_j(uint32_t w)
{
	return sext(bits(w, 31, 31) << 20 | bits(w, 19, 12) << 12 | bits(w, 20, 20) << 11 |
		    bits(w, 30, 21) << 1, 21);
}

static int32_t imm_cj(uint32_t w)
{
	return sext(bits(w, 12, 12) << 11 | bits(w, 11, 11) << 4 | bits(w, 10, 9) << 8 |
		    bits(w, 8, 8) << 10 | bits(w, 7, 7) << 6 | bits(w, 6, 6) << 7 |
		    bits(w, 5, 3) << 1 | bits(w, 2, 2) << 5, 12);
}

static int32_t imm_cb(uint32_t w)
{
	return sext(bits(w, 12, 12) << 8 | bits(w, 11, 10) << 3 | bits(w, 6, 5) << 6 |
		    bits(w, 4, 3) << 1 | bits(w, 2, 2) << 5, 9);
}

static void decode32(struct insn *d, uint32_t pc, uint32_t w)
{
	static const uint8_t branch[8] = { OP_beq, OP_bne, 0, 0, OP_blt, OP_bge, OP_bltu, OP_bgeu };
	static const uint8_t load[8] = { OP_lb, OP_lh, OP_lw, 0, OP_lbu, OP_lhu, 0, 0 };
	static const uint8_t store[8] = { OP_sb, OP_sh, OP_sw };
	static const uint8_t alui[8] = { OP_addi, 0, OP_slti, OP_sltiu, OP_xori, 0, OP_ori, OP_andi };
	static const uint8_t alu[8] = { OP_add, OP_sll, OP_slt, OP_sltu, OP_xor, OP_srl, OP_or, OP_and };
	static const uint8_t mul[8] = {
		OP_mul, OP_mulh, OP_mulhsu, OP_mulhu, OP_div, OP_divu, OP_rem, OP_remu,
	};
	uint32_t rd = bits(w, 11, 7), f3 = bits(w, 14, 12), rs1 = bits(w, 19, 15);
	uint32_t rs2 = bits(w, 24, 20), f7 = bits(w, 31, 25);
	int32_t imm_i = (int32_t)w >> 20;

	set(d, OP_illegal, 0, 0, 0, w);
	switch (w & 0x7f) {
	case 0x37:
		set(d, OP_li, rd, 0, 0, w & 0xfffff000);
		break;
	case 0x17:
		set(d, OP_li, rd, 0, 0, (w & 0xfffff000) + pc);
		break;
	case 0x6f:
		set_jump(d, pc, OP_jal, rd, 0, 0, imm_j(w));
		break;
	case 0x67:
		if (!f3)
			set(d, OP_jalr, rd, rs1, 0, imm_i);
		break;
	case 0x63:
		if (branch[f3])
			set_jump(d, pc, branch[f3], 0, rs1, rs2, imm_b(w));
		break;
	case 0x03:
		if (load[f3])
			set(d, load[f3], rd, rs1, 0, imm_i);
		break;
	case 0x23:
		if (store[f3])
			set(d, store[f3], 0, rs1, rs2, (imm_i & ~0x1f) | rd);
		break;
	case 0x13:
		if (f3 == 1 && !f7)
			set(d, OP_slli, rd, rs1, 0, rs2);
		else if (f3 == 5 && (f7 == 0 || f7 == 0x20))
			set(d, f7 & 0x20 ? OP_srai : OP_srli, rd, rs1, 0, rs2);
		else if (alui[f3])
			set(d, alui[f3], rd, rs1, 0, imm_i);
		break;
	case 0x33:
		if (f7 == 0)
			set(d, alu[f3], rd, rs1, rs2, 0);
		else if (f7 == 0x20 && f3 == 0)
			set(d, OP_sub, rd, rs1, rs2, 0);
		else if (f7 == 0x20 && f3 == 5)
			set(d, OP_sra, rd, rs1, rs2, 0);
		else if (f7 == 1)
			set(d, mul[f3], rd, rs1, rs2, 0);
		break;
	case 0x0f:
		if (f3 == 0)
			set(d, OP_fence, 0, 0, 0, 0);
		else if (f3 == 1)
			set(d, OP_fencei, 0, 0, 0, 0);
		break;
	case 0x73:
		if (w == 0x00000073)
			set(d, OP_ecall, 0, 0, 0, 0);
		else if (w == 0x00100073)
			set(d, OP_ebreak, 0, 0, 0, 0);
		else if (w == 0x30200073)
			set(d, OP_mret, 0, 0, 0, 0);
		else if (w == 0x10500073)
			set(d, OP_wfi, 0, 0, 0, 0);
		else if (f3 & 3)
			set(d, OP_csr, rd, rs1, f3, w);
		break;
	}
}

static void decode16_q0(struct insn *d, uint32_t w)
{
	uint32_t rd = 8 + bits(w, 4, 2), rs1 = 8 + bits(w, 9, 7), imm;

	switch (bits(w, 15, 13)) {
	case 0:
		imm = bits(w, 12, 11) << 4 | bits(w, 10, 7) << 6 | bits(w, 6, 6) << 2 |
		      bits(w, 5, 5) << 3;
		if (imm)
			set(d, OP_addi_c, rd, 2, 0, imm);
		break;
	case 2:
	case 6:
		imm = bits(w, 12, 10) << 3 | bits(w, 6, 6) << 2 | bits(w, 5, 5) << 6;
		if (bits(w, 15, 13) == 2)
			set(d, OP_lw_c, rd, rs1, 0, imm);
		else
			set(d, OP_sw_c, 0, rs1, rd, imm);
		break;
	}
}

static void decode16_q1(struct insn *d, uint32_t pc, uint32_t w)
{
	static const uint8_t arith[4] = { OP_sub_c, OP_xor_c, OP_or_c, OP_and_c };
	uint32_t rd = bits(w, 11, 7), rc = 8 + bits(w, 9, 7);
	int32_t imm = sext(bits(w, 12, 12) << 5 | bits(w, 6, 2), 6);

	switch (bits(w, 15, 13)) {
	case 0:
		set(d, OP_addi_c, rd, rd, 0, imm);
		break;
	case 1:
		set_jump(d, pc, OP_jal_c, 1, 0, 0, imm_cj(w));
		break;
	case 2:
		set(d, OP_li_c, rd, 0, 0, imm);
		break;
	case 3:
		if (!imm)
			break;
		if (rd == 2)
			set(d, OP_addi_c, 2, 2, 0,
			    sext(bits(w, 12, 12) << 9 | bits(w, 6, 6) << 4 | bits(w, 5, 5) << 6 |
				 bits(w, 4, 3) << 7 | bits(w, 2, 2) << 5, 10));
		else
			set(d, OP_li_c, rd, 0, 0, imm * 4096);
		break;
	case 4:
		switch (bits(w, 11, 10)) {
		case 0:
		case 1:
			/* Shifts by 32 and more are reserved on RV32. */
			if (!bits(w, 12, 12))
				set(d, bits(w, 10, 10) ? OP_srai_c : OP_srli_c, rc, rc, 0,
				    bits(w, 6, 2));
			break;
		case 2:
			set(d, OP_andi_c, rc, rc, 0, imm);
			break;
		case 3:
			if (!bits(w, 12, 12))
				set(d, arith[bits(w, 6, 5)], rc, rc, 8 + bits(w, 4, 2), 0);
			break;
		}
		break;
	case 5:
		set_jump(d, pc, OP_jal_c, 0, 0, 0, imm_cj(w));
		break;
	case 6:
		set_jump(d, pc, OP_beq_c, 0, rc, 0, imm_cb(w));
		break;
	case 7:
		set_jump(d, pc, OP_bne_c, 0, rc, 0, imm_cb(w));
		break;
	}
}

static void decode16_q2(struct insn *d, uint32_t w)
{
	uint32_t rd = bits(w, 11, 7), rs2 = bits(w, 6, 2);

	switch (bits(w, 15, 13)) {
	case 0:
		if (!bits(w, 12, 12))
			set(d, OP_slli_c, rd, rd, 0, rs2);
		break;
	case 2:
		if (rd)
			set(d, OP_lw_c, rd, 2, 0, bits(w, 12, 12) << 5 | bits(w, 6, 4) << 2 |
			    bits(w, 3, 2) << 6);
		break;
	case 4:
		if (!bits(w, 12, 12)) {
			if (rs2)
				set(d, OP_add_c, rd, 0, rs2, 0);
			else if (rd)
				set(d, OP_jalr_c, 0, rd, 0, 0);
		} else if (rs2) {
			set(d, OP_add_c, rd, rd, rs2, 0);
		} else if (rd) {
			set(d, OP_jalr_c, 1, rd, 0, 0);
		} else {
			set(d, OP_cebreak, 0, 0, 0, 0);
		}
		break;
	case 6:
		set(d, OP_sw_c, 0, 2, rs2, bits(w, 12, 9) << 2 | bits(w, 8, 7) << 6);
		break;
	}
}

static bool breakpoint(struct mcu *m, uint32_t pc)
{
	unsigned int i;

	for (i = 0; i < m->nstep; i++)
		if (m->step_bp[i] == pc)
			return true;
	if (pc == m->skip_bp)
		return false;
	for (i = 0; i < m->nbp; i++)
		if (m->bp[i] == pc)
			return true;
	return false;
}

/* Instruction at pc, which is in RAM; false: it runs over the end of RAM. */
static bool fetch(struct mcu *m, uint32_t pc, uint32_t *w)
{
	uint32_t off = pc - SPYRE_MCU_RAM_BASE;
	uint16_t lo, hi;

	memcpy(&lo, m->ram + off, 2);
	*w = lo;
	if ((lo & 3) != 3)
		return true;
	if (off + 4 > SPYRE_MCU_RAM_SIZE)
		return false;
	memcpy(&hi, m->ram + off + 2, 2);
	*w |= (uint32_t)hi << 16;
	return true;
}

static void decode_plain(struct mcu *m, uint32_t pc, struct insn *d)
{
	uint32_t w;

	if (!fetch(m, pc, &w)) {
		set(d, OP_outside, 0, 0, 0, 0);
		return;
	}
	if ((w & 3) == 3) {
		decode32(d, pc, w);
		return;
	}
	set(d, OP_illegal, 0, 0, 0, w);
	switch (w & 3) {
	case 0:
		decode16_q0(d, w);
		break;
	case 1:
		decode16_q1(d, pc, w);
		break;
	case 2:
		decode16_q2(d, w);
		break;
	}
}

static void decode(struct mcu *m, uint32_t index)
{
	uint32_t pc = SPYRE_MCU_RAM_BASE + 2 * index;

	if (m->code_lo > index)
		m->code_lo = index;
	if (m->code_hi < index + 1)
		m->code_hi = index + 1;
	if (unlikely(m->nbp | m->nstep) && breakpoint(m, pc))
		set(&m->code[index], OP_gdb, 0, 0, 0, 0);
	else
		decode_plain(m, pc, &m->code[index]);
}

void mcu_invalidate_code(struct mcu *m)
{
	uint32_t i;

	for (i = m->code_lo; i < m->code_hi; i++)
		m->code[i].op = OP_decode;
	m->code_lo = MCU_INSNS;
	m->code_hi = 0;
}

void mcu_invalidate_insn(struct mcu *m, uint32_t addr)
{
	if (in_ram(addr))
		m->code[(addr - SPYRE_MCU_RAM_BASE) / 2].op = OP_decode;
}

/* --- Traps ------------------------------------------------------------------------------------ */

static uint32_t mip(struct mcu *m)
{
	uint32_t pend = load_seq(&m->pend);

	return (pend & PEND_TIMER ? MIP_MTIP : 0) | (pend & m->irq_enable ? MIP_MEIP : 0);
}

void mcu_crash(struct spyre_card *c, const char *why, uint32_t code, uint32_t pc)
{
	struct mcu *m = &c->mcu;

	pthread_mutex_lock(&m->lock);
	m->run = false;
	pthread_mutex_unlock(&m->lock);
	store_release(reg_ptr(c, SPYRE_REG_BOOT_STATUS), SPYRE_BOOT_CRASHED);
	regs_set_state(c, SPYRE_STATE_IN_ERROR);
	ras_push(c, SPYRE_RAS_FIRMWARE, code, pc);
	card_log(c, SPYRE_LOG_ERROR, "management core stopped: %s (code %u, pc 0x%08x, ra 0x%08x)", why,
		 code, pc, m->x[1]);
	/* The firmware cannot tell the driver any more, so the hardware does. */
	card_raise(c, 0);
}

/* Goes to the trap vector; false: the core has crashed. */
static bool trap(struct spyre_card *c, uint32_t cause, uint32_t pc, uint32_t tval)
{
	struct mcu *m = &c->mcu;
	uint32_t to = m->mtvec & ~3u;

	if (!(cause & CAUSE_IRQ)) {
		if (m->in_exception) {
			m->pc = pc;
			mcu_crash(c, "trap inside a trap handler", cause, pc);
			return false;
		}
		m->in_exception = true;
	} else if (m->mtvec & 1) {
		to += 4 * (cause & ~CAUSE_IRQ);
	}
	if (!in_ram(to)) {
		m->pc = pc;
		mcu_crash(c, "trap without a vector in RAM", cause, pc);
		return false;
	}
	m->mepc = pc & ~1u;
	m->mcause = cause;
	m->mtval = tval;
	m->mstatus = MSTATUS_MPP | (m->mstatus & MSTATUS_MIE ? MSTATUS_MPIE : 0);
	m->pc = to;
	return true;
}

/* --- CSRs ------------------------------------------------------------------------------------- */

/* Instructions take no card time of their own: the clock runs on beside them. */
static uint64_t cycles(struct spyre_card *c)
{
	int64_t ns = c->ops->clock_ns(c->opaque);

	return ns <= 0 ? 0 : (uint64_t)((unsigned __int128)ns * c->cfg.mcu_hz / 1000000000u);
}

static bool csr_read(struct spyre_card *c, uint32_t csr, uint32_t *v)
{
	struct mcu *m = &c->mcu;

	switch (csr) {
	case 0x300:
		*v = m->mstatus | MSTATUS_MPP;
		return true;
	case 0x301:	/* misa: RV32, I, M, C */
		*v = 1u << 30 | 1u << 8 | 1u << 12 | 1u << 2;
		return true;
	case 0x304:
		*v = m->mie;
		return true;
	case 0x305:
		*v = m->mtvec;
		return true;
	case 0x340:
		*v = m->mscratch;
		return true;
	case 0x341:
		*v = m->mepc;
		return true;
	case 0x342:
		*v = m->mcause;
		return true;
	case 0x343:
		*v = m->mtval;
		return true;
	case 0x344:
		*v = mip(m);
		return true;
	case 0xb00:
	case 0xc00:
		*v = cycles(c);
		return true;
	case 0xb80:
	case 0xc80:
		*v = cycles(c) >> 32;
		return true;
	case 0xb02:
	case 0xc02:
		*v = m->instret;
		return true;
	case 0xb82:
	case 0xc82:
		*v = m->instret >> 32;
		return true;
	case 0xc01:
		*v = soc_now(c);
		return true;
	case 0xc81:
		*v = soc_now(c) >> 32;
		return true;
	case 0x310:	/* mstatush */
	case 0x320:	/* mcountinhibit */
	case 0xf11:
	case 0xf12:
	case 0xf13:
	case 0xf14:
		*v = 0;
		return true;
	}
	return false;
}

static bool csr_write(struct mcu *m, uint32_t csr, uint32_t v)
{
	switch (csr) {
	case 0x300:
		m->mstatus = (v & (MSTATUS_MIE | MSTATUS_MPIE)) | MSTATUS_MPP;
		return true;
	case 0x304:
		m->mie = v & (MIP_MTIP | MIP_MEIP);
		return true;
	case 0x305:
		m->mtvec = v & ~2u;
		return true;
	case 0x340:
		m->mscratch = v;
		return true;
	case 0x341:
		m->mepc = v & ~1u;
		return true;
	case 0x342:
		m->mcause = v;
		return true;
	case 0x343:
		m->mtval = v;
		return true;
	case 0xb00:
	case 0xb02:
		m->instret = (m->instret & ~0xffffffffull) | v;
		return true;
	case 0xb80:
	case 0xb82:
		m->instret = (uint32_t)m->instret | (uint64_t)v << 32;
		return true;
	case 0x301:
	case 0x310:
	case 0x320:
	case 0x344:
		return true;
	}
	return false;
}

static bool csr_op(struct spyre_card *c, const struct insn *i)
{
	uint32_t csr = (uint32_t)i->imm >> 20, f3 = i->rs2, old;
	uint32_t src = f3 & 4 ? i->rs1 : c->mcu.x[i->rs1];
	bool write = (f3 & 3) == 1 || i->rs1;

	if (write && csr >> 10 == 3)
		return false;
	if (!csr_read(c, csr, &old))
		return false;
	if ((f3 & 3) == 2)
		src = old | src;
	else if ((f3 & 3) == 3)
		src = old & ~src;
	if (write && !csr_write(&c->mcu, csr, src))
		return false;
	c->mcu.x[i->rd] = old;
	return true;
}

/* --- Interpreter ------------------------------------------------------------------------------ */

static uint32_t op_mulh(uint32_t a, uint32_t b)
{
	return (uint64_t)((int64_t)(int32_t)a * (int32_t)b) >> 32;
}

static uint32_t op_mulhsu(uint32_t a, uint32_t b)
{
	return (uint64_t)((int64_t)(int32_t)a * (int64_t)b) >> 32;
}

static uint32_t op_div(uint32_t a, uint32_t b)
{
	if (!b)
		return ~0u;
	if (a == 0x80000000u && b == ~0u)
		return a;
	return (int32_t)a / (int32_t)b;
}

static uint32_t op_rem(uint32_t a, uint32_t b)
{
	if (!b)
		return a;
	if (a == 0x80000000u && b == ~0u)
		return 0;
	return (int32_t)a % (int32_t)b;
}

/* With config.sliced: gives the slice back and waits for another one; lock held. */
static void slice_done(struct mcu *m)
{
	m->granted = false;
	pthread_cond_broadcast(&m->park_cond);
	pthread_cond_wait(&m->cond, &m->lock);
}

/* The slice has ended, or there was none yet. */
static void mcu_rest(struct mcu *m)
{
	store_relaxed(&m->instructions, m->instret);
	pthread_mutex_lock(&m->lock);
	/* Started and given a slice at once: that one is not over. */
	while (m->instret >= m->slice_end && !load_seq(&m->req))
		slice_done(m);
	pthread_mutex_unlock(&m->lock);
}

void mcu_slice(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;

	pthread_mutex_lock(&m->lock);
	if (m->run && !m->halted && !load_seq(&m->req)) {
		m->slice_end = m->instret + (uint64_t)c->cfg.mcu_hz * SPYRE_SLICE_NS / 1000000000u;
		m->granted = true;
		pthread_cond_signal(&m->cond);
		while (m->granted)
			pthread_cond_wait(&m->park_cond, &m->lock);
	}
	pthread_mutex_unlock(&m->lock);
}

bool mcu_wants_slice(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;
	bool wants;

	pthread_mutex_lock(&m->lock);
	wants = m->run && !m->halted && !load_seq(&m->req) &&
		(!load_seq(&m->sleeping) || mip(m) & m->mie);
	pthread_mutex_unlock(&m->lock);
	return wants;
}

static void mcu_sleep(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;

	store_relaxed(&m->instructions, m->instret);
	if (mip(m) & m->mie)
		return;
	/* From here on the host's timer watches the time. */
	store_seq(&m->awake, 0);
	timer_update(c);
	pthread_mutex_lock(&m->lock);
	/* Full ordering against mcu_wake(): it sees us asleep, or we see what it brought. */
	store_seq(&m->sleeping, 1);
	while ((!(mip(m) & m->mie) || (c->cfg.sliced && !m->granted)) && !load_seq(&m->req)) {
		if (c->cfg.sliced)
			slice_done(m);
		else
			pthread_cond_wait(&m->cond, &m->lock);
	}
	store_seq(&m->sleeping, 0);
	pthread_mutex_unlock(&m->lock);
	store_seq(&m->awake, 1);
}

/* A turn of the firmware's loop begins, another one may have ended. */
static void mcu_turn(struct mcu *m, uint64_t instret)
{
	uint64_t took = instret - m->turn_start;

	if (m->turn_start && took > load_relaxed(&m->turn_max))
		store_relaxed(&m->turn_max, took);
	m->turn_start = instret;
	store_relaxed(&m->turns, load_relaxed(&m->turns) + 1);
}

static bool branch_taken(const struct mcu *m, uint32_t w, int32_t *imm, uint32_t *link)
{
	const uint32_t *x = m->x;
	uint32_t a, b;

	*link = 0;
	if ((w & 3) == 3) {
		if ((w & 0x7f) == 0x6f) {
			*imm = imm_j(w);
			*link = bits(w, 11, 7);
			return true;
		}
		a = x[bits(w, 19, 15)];
		b = x[bits(w, 24, 20)];
		*imm = imm_b(w);
		switch (bits(w, 14, 12)) {
		case 0:
			return a == b;
		case 1:
			return a != b;
		case 4:
			return (int32_t)a < (int32_t)b;
		case 5:
			return (int32_t)a >= (int32_t)b;
		case 6:
			return a < b;
		default:
			return a >= b;
		}
	}
	switch (bits(w, 15, 13)) {
	case 1:
	case 5:
		*imm = imm_cj(w);
		*link = bits(w, 15, 13) == 1;
		return true;
	case 6:
		*imm = imm_cb(w);
		return !x[8 + bits(w, 9, 7)];
	default:
		*imm = imm_cb(w);
		return x[8 + bits(w, 9, 7)];
	}
}

/*
 * Runs until a request or a crash. The state lives in locals; m->pc and m->instret are right whenever
 * something outside may look: at every way out and before each trap and CSR access.
 */
static void mcu_run(struct spyre_card *c)
{
#define X(name) [OP_##name] = &&do_##name, [OP_##name##_c] = &&do_##name##_c,
#define Y(name) [OP_##name] = &&do_##name,
	static const void *const labels[256] = {
		[OP_none] = &&do_decode,
		OPS_BOTH(X)
#undef X
#define X(name) Y(name)
		OPS_ONCE(X)
#undef X
#undef Y
	};
	struct mcu *m = &c->mcu;
	uint32_t *const x = m->x;
	uint8_t *const ram = m->ram;
	struct insn *const code = m->code;
	struct insn *ip;
	int32_t n = SLICE;
	uint32_t addr, v, req;
	uint64_t due;

#define PC()		(SPYRE_MCU_RAM_BASE + 2u * (uint32_t)(ip - code))
#define GO()		goto *labels[ip->op]
#define NEXT(len)	do { n--; ip += (len) / 2; GO(); } while (0)
#define TAKE(delta)	do { ip += (delta) / 2; if (unlikely(--n <= 0)) goto slice; GO(); } while (0)
#define SYNC()		do { m->instret += SLICE - n; n = SLICE; m->pc = PC(); } while (0)
#define TRAP(cause, pc, tval) \
	do { \
		SYNC(); \
		if (!trap(c, (cause), (pc), (tval))) \
			return; \
		goto enter; \
	} while (0)

	goto enter;
slice:
	SYNC();
	due = next_due(c);
	if (due != ~0ull && soc_now(c) >= due)
		time_passed(c);
enter:
	x[0] = 0;
	if (unlikely(m->instret >= m->slice_end))
		mcu_rest(m);
	req = load_acquire(&m->req);
	if (unlikely(req)) {
		store_relaxed(&m->instructions, m->instret);
		if (!(req & REQ_CRASH))
			return;
		__atomic_fetch_and(&m->req, ~REQ_CRASH, __ATOMIC_SEQ_CST);
		if (!trap(c, CAUSE_ILLEGAL, m->pc, 0))
			return;
		goto enter;
	}
	if (m->mstatus & MSTATUS_MIE && load_relaxed(&m->pend)) {
		uint32_t p = mip(m) & m->mie;

		if (p && !trap(c, CAUSE_IRQ | (p & MIP_MEIP ? 11 : 7), m->pc, 0))
			return;
	}
	if (unlikely(!in_ram(m->pc))) {
		if (!trap(c, CAUSE_FETCH, m->pc, m->pc))
			return;
		goto enter;
	}
	ip = code + (m->pc - SPYRE_MCU_RAM_BASE) / 2;
	n = SLICE;
	GO();

do_decode:
	decode(m, ip - code);
	GO();
do_outside:
	TRAP(CAUSE_FETCH, PC(), PC());
do_illegal:
	TRAP(CAUSE_ILLEGAL, PC(), ip->imm);
do_ecall:
	TRAP(CAUSE_ECALL, PC(), 0);
do_ebreak:
do_cebreak:
	if (load_relaxed(&c->gdb.attached))
		goto do_gdb;
	TRAP(CAUSE_BREAK, PC(), PC());
do_gdb:
	SYNC();
	mcu_request(c, REQ_GDB);
	goto enter;
do_fence:
	full_fence(c);
	NEXT(4);
do_fencei:
	mcu_invalidate_code(m);
	NEXT(4);
do_csr:
	SYNC();
	if (!csr_op(c, ip)) {
		if (!trap(c, CAUSE_ILLEGAL, m->pc, ip->imm))
			return;
		goto enter;
	}
	n--;
	ip += 2;
	goto slice;
do_mret:
	SYNC();
	m->instret++;
	m->in_exception = false;
	m->mstatus = MSTATUS_MPP | MSTATUS_MPIE | (m->mstatus & MSTATUS_MPIE ? MSTATUS_MIE : 0);
	m->pc = m->mepc;
	goto enter;
do_wfi:
	n--;
	ip += 2;
	SYNC();
	mcu_sleep(c);
	goto enter;
do_far: {
	uint32_t pc = PC(), w, link;
	int32_t imm;

	fetch(m, pc, &w);
	v = (w & 3) == 3 ? 4 : 2;
	if (!branch_taken(m, w, &imm, &link)) {
		n--;
		ip += v / 2;
		GO();
	}
	if (link)
		x[link] = pc + v;
	TRAP(CAUSE_FETCH, pc + imm, pc + imm);
}

#define BOTH(name, ...) \
do_##name: { enum { L = 4 }; __VA_ARGS__ } \
do_##name##_c: { enum { L = 2 }; __VA_ARGS__ }
#define ALU(name, expr) BOTH(name, x[ip->rd] = (expr); NEXT(L);)
#define A	x[ip->rs1]
#define B	x[ip->rs2]
#define I	((uint32_t)ip->imm)

	ALU(li, I)
	ALU(addi, A + I)
	ALU(slti, (int32_t)A < ip->imm)
	ALU(sltiu, A < I)
	ALU(xori, A ^ I)
	ALU(ori, A | I)
	ALU(andi, A & I)
	ALU(slli, A << I)
	ALU(srli, A >> I)
	ALU(srai, (uint32_t)((int32_t)A >> I))
	ALU(add, A + B)
	ALU(sub, A - B)
	ALU(sll, A << (B & 31))
	ALU(slt, (int32_t)A < (int32_t)B)
	ALU(sltu, A < B)
	ALU(xor, A ^ B)
	ALU(srl, A >> (B & 31))
	ALU(sra, (uint32_t)((int32_t)A >> (B & 31)))
	ALU(or, A | B)
	ALU(and, A & B)
	ALU(mul, A * B)
	ALU(mulh, op_mulh(A, B))
	ALU(mulhsu, op_mulhsu(A, B))
	ALU(mulhu, (uint64_t)A * B >> 32)
	ALU(div, op_div(A, B))
	ALU(divu, B ? A / B : ~0u)
	ALU(rem, op_rem(A, B))
	ALU(remu, B ? A % B : A)

#define BRANCH(name, cond) BOTH(name, if (cond) TAKE(ip->imm); NEXT(L);)
	BRANCH(beq, A == B)
	BRANCH(bne, A != B)
	BRANCH(blt, (int32_t)A < (int32_t)B)
	BRANCH(bge, (int32_t)A >= (int32_t)B)
	BRANCH(bltu, A < B)
	BRANCH(bgeu, A >= B)

	BOTH(jal, x[ip->rd] = PC() + L; TAKE(ip->imm);)
	BOTH(jalr,
	     addr = (A + I) & ~1u;
	     x[ip->rd] = PC() + L;
	     if (unlikely(!in_ram(addr))) {
		n--;
		TRAP(CAUSE_FETCH, addr, addr);
	     }
	     ip = code + (addr - SPYRE_MCU_RAM_BASE) / 2;
	     TAKE(0);)

#define LOAD(name, type) \
	BOTH(name, \
	     addr = A + I; \
	     if (likely(addr - SPYRE_MCU_RAM_BASE <= SPYRE_MCU_RAM_SIZE - sizeof(type))) { \
		type t; \
		memcpy(&t, ram + (addr - SPYRE_MCU_RAM_BASE), sizeof(t)); \
		x[ip->rd] = (uint32_t)(int32_t)t; \
		NEXT(L); \
	     } \
	     if (mcu_bus_load(c, addr, sizeof(type), &v) == BUS_FAULT) \
		TRAP(CAUSE_LOAD, PC(), addr); \
	     x[ip->rd] = (uint32_t)(int32_t)(type)v; \
	     NEXT(L);)
	LOAD(lb, int8_t)
	LOAD(lbu, uint8_t)
	LOAD(lh, int16_t)
	LOAD(lhu, uint16_t)
	LOAD(lw, uint32_t)

#define STORE(name, type) \
	BOTH(name, \
	     addr = A + I; \
	     if (likely(addr - SPYRE_MCU_RAM_BASE <= SPYRE_MCU_RAM_SIZE - sizeof(type))) { \
		type t = B; \
		memcpy(ram + (addr - SPYRE_MCU_RAM_BASE), &t, sizeof(t)); \
		NEXT(L); \
	     } \
	     switch (mcu_bus_store(c, addr, sizeof(type), B)) { \
	     case BUS_FAULT: \
		TRAP(CAUSE_STORE, PC(), addr); \
	     case BUS_RECHECK: \
		n--; \
		ip += L / 2; \
		goto slice; \
	     case BUS_TURN: \
		mcu_turn(m, m->instret + (SLICE - n)); \
		break; \
	     case BUS_OK: \
		break; \
	     } \
	     NEXT(L);)
	STORE(sb, uint8_t)
	STORE(sh, uint16_t)
	STORE(sw, uint32_t)
}

/* --- Thread and control ----------------------------------------------------------------------- */

static bool may_run(struct mcu *m)
{
	return m->run && !m->halted && !(load_seq(&m->req) & (REQ_STOP | REQ_HANG | REQ_GDB));
}

static void *mcu_main(void *arg)
{
	struct spyre_card *c = arg;
	struct mcu *m = &c->mcu;

	pthread_mutex_lock(&m->lock);
	for (;;) {
		while (!m->quit && !may_run(m)) {
			uint32_t req = load_seq(&m->req);

			if (!m->parked) {
				m->parked = true;
				pthread_cond_broadcast(&m->park_cond);
			}
			if (req & REQ_GDB) {
				__atomic_fetch_and(&m->req, ~REQ_GDB, __ATOMIC_SEQ_CST);
				m->halted = true;
				pthread_mutex_unlock(&m->lock);
				gdb_halted(c);
				pthread_mutex_lock(&m->lock);
				continue;
			}
			pthread_cond_wait(&m->cond, &m->lock);
		}
		if (m->quit)
			break;
		m->parked = false;
		pthread_mutex_unlock(&m->lock);
		store_seq(&m->awake, 1);
		mcu_run(c);
		store_seq(&m->awake, 0);
		timer_update(c);
		pthread_mutex_lock(&m->lock);
		m->granted = false;
		pthread_cond_broadcast(&m->park_cond);
	}
	m->parked = true;
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

void mcu_wake(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;

	if (c->cfg.sliced) {
		/* It is looked at in its next slice. */
		timer_update(c);
		return;
	}
	if (!load_seq(&m->sleeping))
		return;
	pthread_mutex_lock(&m->lock);
	pthread_cond_signal(&m->cond);
	pthread_mutex_unlock(&m->lock);
}

void mcu_request(struct spyre_card *c, uint32_t req)
{
	struct mcu *m = &c->mcu;

	pthread_mutex_lock(&m->lock);
	__atomic_fetch_or(&m->req, req, __ATOMIC_SEQ_CST);
	pthread_cond_signal(&m->cond);
	pthread_mutex_unlock(&m->lock);
	stopping_kick(c);
}

void mcu_park(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;

	mcu_request(c, REQ_STOP);
	pthread_mutex_lock(&m->lock);
	while (!m->parked)
		pthread_cond_wait(&m->park_cond, &m->lock);
	m->run = false;
	store_seq(&m->req, 0);
	pthread_mutex_unlock(&m->lock);
}

void mcu_start(struct spyre_card *c, uint32_t entry)
{
	struct mcu *m = &c->mcu;

	pthread_mutex_lock(&m->lock);
	memset(m->x, 0, sizeof(m->x));
	m->pc = entry;
	m->mstatus = MSTATUS_MPP;
	m->mie = 0;
	m->mtvec = 0;
	m->mscratch = 0;
	m->mepc = 0;
	m->mcause = 0;
	m->mtval = 0;
	m->in_exception = false;
	m->turn_start = 0;
	store_relaxed(&m->turns, 0);
	store_relaxed(&m->turn_max, 0);
	m->skip_bp = ~0u;
	mcu_invalidate_code(m);
	store_seq(&m->req, 0);
	m->slice_end = c->cfg.sliced ? m->instret : UINT64_MAX;
	m->run = true;
	pthread_cond_signal(&m->cond);
	pthread_mutex_unlock(&m->lock);
	if (c->cfg.sliced)
		timer_update(c);
}

/* Where the instruction at pc can go next, without traps and interrupts; for stepping. */
uint32_t mcu_next_pcs(struct mcu *m, uint32_t out[3])
{
	uint32_t pc = m->pc, n = 0;
	struct insn d;
	uint32_t w, len;

	if (!in_ram(pc) || !fetch(m, pc, &w))
		return 0;
	decode_plain(m, pc, &d);
	len = (w & 3) == 3 ? 4 : 2;
	switch (d.op) {
	case OP_jalr:
	case OP_jalr_c:
		out[n++] = (m->x[d.rs1] + d.imm) & ~1u;
		break;
	case OP_mret:
		out[n++] = m->mepc;
		break;
	case OP_jal:
	case OP_jal_c:
		out[n++] = pc + d.imm;
		break;
	case OP_beq ... OP_bgeu_c:
		out[n++] = pc + d.imm;
		out[n++] = pc + len;
		break;
	default:
		out[n++] = pc + len;
	}
	/* A trap or an interrupt may come instead. */
	out[n++] = m->mtvec & ~3u;
	return n;
}

int mcu_init(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;
	int ret;

	m->ram = calloc(1, SPYRE_MCU_RAM_SIZE);
	/* All zero is OP_decode; a sentinel behind the last halfword stops a run off the end. */
	m->code = calloc(MCU_INSNS + 2, sizeof(*m->code));
	if (!m->ram || !m->code)
		return -ENOMEM;
	m->code[MCU_INSNS].op = OP_outside;
	m->code[MCU_INSNS + 1].op = OP_outside;
	m->code_lo = MCU_INSNS;
	m->skip_bp = ~0u;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->cond, NULL);
	pthread_cond_init(&m->park_cond, NULL);
	c->epoch.workers[WORKER_MCU].cancel = &m->req;
	c->epoch.workers[WORKER_MCU].cancel_mask = REQ_STOP;
	mcu_bus_reset(c);
	ret = -thread_start(&m->thread, mcu_main, c);
	if (ret)
		return ret;
	m->started = true;
	return 0;
}

void mcu_free(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;

	if (m->started) {
		pthread_mutex_lock(&m->lock);
		m->quit = true;
		pthread_cond_signal(&m->cond);
		pthread_mutex_unlock(&m->lock);
		pthread_join(m->thread, NULL);
	}
	if (m->code) {
		pthread_mutex_destroy(&m->lock);
		pthread_cond_destroy(&m->cond);
		pthread_cond_destroy(&m->park_cond);
	}
	free(m->ram);
	free(m->code);
}
