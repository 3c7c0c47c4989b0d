/* SPDX-License-Identifier: MIT */
/* Checker and decoder of job binaries. Whatever comes in, it ends with an error or a job safe to run. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "sha256.h"

#define NONE SPYRE_REG_NONE

const uint8_t spyre_job_fifo_writer[SPYRE_FIFOS] = {
	[SPYRE_FIFO_LXLU_PT] = SPYRE_UNIT_LXLU,
	[SPYRE_FIFO_LXLU_PTW] = SPYRE_UNIT_LXLU,
	[SPYRE_FIFO_LXLU_PE0] = SPYRE_UNIT_LXLU,
	[SPYRE_FIFO_LXLU_PE1] = SPYRE_UNIT_LXLU,
	[SPYRE_FIFO_LXLU_SFP0] = SPYRE_UNIT_LXLU,
	[SPYRE_FIFO_LXLU_SFP1] = SPYRE_UNIT_LXLU,
	[SPYRE_FIFO_LXLU_L0SU] = SPYRE_UNIT_LXLU,
	[SPYRE_FIFO_L0LU_PT] = SPYRE_UNIT_L0LU,
	[SPYRE_FIFO_L0LU_PTW] = SPYRE_UNIT_L0LU,
	[SPYRE_FIFO_L0LU_PE] = SPYRE_UNIT_L0LU,
	[SPYRE_FIFO_L0LU_SFP] = SPYRE_UNIT_L0LU,
	[SPYRE_FIFO_PT_PE] = SPYRE_UNIT_PT,
	[SPYRE_FIFO_PT_SFP] = SPYRE_UNIT_PT,
	[SPYRE_FIFO_PT_LXSU] = SPYRE_UNIT_PT,
	[SPYRE_FIFO_PE_SFP] = SPYRE_UNIT_PE,
	[SPYRE_FIFO_SFP_PE] = SPYRE_UNIT_SFP,
	[SPYRE_FIFO_PE_LXSU] = SPYRE_UNIT_PE,
	[SPYRE_FIFO_SFP_LXSU] = SPYRE_UNIT_SFP,
	[SPYRE_FIFO_RING] = SPYRE_UNIT_SFP,
};

const uint8_t spyre_job_fifo_reader[SPYRE_FIFOS] = {
	[SPYRE_FIFO_LXLU_PT] = SPYRE_UNIT_PT,
	[SPYRE_FIFO_LXLU_PTW] = SPYRE_UNIT_PT,
	[SPYRE_FIFO_LXLU_PE0] = SPYRE_UNIT_PE,
	[SPYRE_FIFO_LXLU_PE1] = SPYRE_UNIT_PE,
	[SPYRE_FIFO_LXLU_SFP0] = SPYRE_UNIT_SFP,
	[SPYRE_FIFO_LXLU_SFP1] = SPYRE_UNIT_SFP,
	[SPYRE_FIFO_LXLU_L0SU] = SPYRE_UNIT_L0SU,
	[SPYRE_FIFO_L0LU_PT] = SPYRE_UNIT_PT,
	[SPYRE_FIFO_L0LU_PTW] = SPYRE_UNIT_PT,
	[SPYRE_FIFO_L0LU_PE] = SPYRE_UNIT_PE,
	[SPYRE_FIFO_L0LU_SFP] = SPYRE_UNIT_SFP,
	[SPYRE_FIFO_PT_PE] = SPYRE_UNIT_PE,
	[SPYRE_FIFO_PT_SFP] = SPYRE_UNIT_SFP,
	[SPYRE_FIFO_PT_LXSU] = SPYRE_UNIT_LXSU,
	[SPYRE_FIFO_PE_SFP] = SPYRE_UNIT_SFP,
	[SPYRE_FIFO_SFP_PE] = SPYRE_UNIT_PE,
	[SPYRE_FIFO_PE_LXSU] = SPYRE_UNIT_LXSU,
	[SPYRE_FIFO_SFP_LXSU] = SPYRE_UNIT_LXSU,
	[SPYRE_FIFO_RING] = SPYRE_UNIT_SFP,
};

static bool fail(struct job_error *err, enum spyre_prog_err code, uint64_t pc)
{
	err->code = code;
	err->pc = pc > UINT32_MAX ? UINT32_MAX : (uint32_t)pc;
	return false;
}

/* --- Container ------------------------------------------------------------------------------ */

#define OFF(m) offsetof(struct spyre_job_header, m)

bool spyre_job_check_header(const struct spyre_job_header *h, struct job_error *err)
{
	uint32_t size = le32toh(h->size);

	*err = (struct job_error){ .core = 0xffff, .unit = 0xffff };
	if (le32toh(h->magic) != SPYRE_JOB_MAGIC)
		return fail(err, SPYRE_PE_MAGIC, OFF(magic));
	if (le16toh(h->major) < SPYRE_JOB_MAJOR)
		return fail(err, SPYRE_PE_TOO_OLD, OFF(major));
	/* A newer minor may mean what this card does not know. */
	if (le16toh(h->major) > SPYRE_JOB_MAJOR || le16toh(h->minor) > SPYRE_JOB_MINOR)
		return fail(err, SPYRE_PE_TOO_NEW, OFF(major));
	if (size < sizeof(*h) || size > SPYRE_JOB_MAX || size % SPYRE_STICK)
		return fail(err, SPYRE_PE_SIZE, OFF(size));
	return true;
}

struct section {
	uint32_t field;		/* offset of the header's field, for errors */
	uint32_t off;
	uint64_t bytes;
};

static bool check_sections(const struct section *s, unsigned int n, uint32_t size, struct job_error *err)
{
	unsigned int i, j;

	for (i = 0; i < n; i++) {
		if (!s[i].bytes) {
			if (s[i].off)
				return fail(err, SPYRE_PE_SECTION, s[i].field);
			continue;
		}
		if (s[i].off < sizeof(struct spyre_job_header) || s[i].off % SPYRE_STICK ||
		    s[i].off > size || s[i].bytes > size - s[i].off)
			return fail(err, SPYRE_PE_SECTION, s[i].field);
		for (j = 0; j < i; j++)
			if (s[j].bytes && s[i].off < s[j].off + s[j].bytes && s[j].off < s[i].off + s[i].bytes)
				return fail(err, SPYRE_PE_SECTION, s[i].field);
	}
	return true;
}

/* --- Instructions --------------------------------------------------------------------------- */

#define U(x) (1u << SPYRE_UNIT_##x)
#define ALL_UNITS 0x1ffu
#define VEC (U(PE) | U(SFP))

/* How an operation's fields are checked. */
enum form {
	F_NONE, F_RETURN, F_LOOP, F_ADDIMM, F_ADDREG, F_MVREG, F_SEND, F_WAIT, F_L3, F_LD, F_ST, F_LDW, F_MM,
	F_PSOUT, F_PSIN, F_VEC,
};

struct opinfo {
	uint16_t units;
	uint8_t form;
	uint8_t srcs;	/* F_VEC: number of sources */
	uint8_t imm;	/* F_VEC: imm is a parameter */
};

static const struct opinfo ops[256] = {
	[SPYRE_OP_NOP] = { ALL_UNITS, F_NONE, 0, 0 },
	[SPYRE_OP_RETURN] = { ALL_UNITS, F_RETURN, 0, 0 },
	[SPYRE_OP_MVLOOPCNT] = { ALL_UNITS, F_LOOP, 0, 0 },
	[SPYRE_OP_ADDIMM] = { ALL_UNITS, F_ADDIMM, 0, 0 },
	[SPYRE_OP_ADDREG] = { ALL_UNITS, F_ADDREG, 0, 0 },
	[SPYRE_OP_MVREG] = { ALL_UNITS, F_MVREG, 0, 0 },
	[SPYRE_OP_SYNC_SEND] = { ALL_UNITS, F_SEND, 0, 0 },
	[SPYRE_OP_SYNC_WAIT] = { ALL_UNITS, F_WAIT, 0, 0 },
	[SPYRE_OP_L3_LDU] = { U(L3LU), F_L3, 0, 0 },
	[SPYRE_OP_L3_LDM] = { U(L3LU), F_L3, 0, 0 },
	[SPYRE_OP_L3_STU] = { U(L3SU), F_L3, 0, 0 },
	[SPYRE_OP_L3_STC] = { U(L3SU), F_L3, 0, 0 },
	[SPYRE_OP_LD] = { U(LXLU) | U(L0LU), F_LD, 0, 0 },
	[SPYRE_OP_ST] = { U(LXSU) | U(L0SU), F_ST, 0, 0 },
	[SPYRE_OP_PT_LDW] = { U(PT), F_LDW, 0, 0 },
	[SPYRE_OP_PT_MM] = { U(PT), F_MM, 0, 0 },
	[SPYRE_OP_PT_PSOUT] = { U(PT), F_PSOUT, 0, 0 },
	[SPYRE_OP_PT_PSIN] = { U(PT), F_PSIN, 0, 0 },
	[SPYRE_OP_MOV] = { VEC, F_VEC, 1, 0 },
	[SPYRE_OP_ADD] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_SUB] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_MUL] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_FMA] = { VEC, F_VEC, 3, 0 },
	[SPYRE_OP_MIN] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_MAX] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_ABS] = { VEC, F_VEC, 1, 0 },
	[SPYRE_OP_NEG] = { VEC, F_VEC, 1, 0 },
	[SPYRE_OP_CMPEQ] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_CMPLT] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_CMPLE] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_SEL] = { VEC, F_VEC, 3, 0 },
	[SPYRE_OP_IADD] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_ISUB] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_IMUL] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_IMIN] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_IMAX] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_AND] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_OR] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_XOR] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_SHL] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_SHR] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_SRA] = { VEC, F_VEC, 2, 0 },
	[SPYRE_OP_I2F] = { VEC, F_VEC, 1, 0 },
	[SPYRE_OP_F2I] = { VEC, F_VEC, 1, 0 },
	[SPYRE_OP_BCAST] = { VEC, F_VEC, 1, 1 },
	[SPYRE_OP_ROT] = { VEC, F_VEC, 1, 1 },
	[SPYRE_OP_RECIP] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_RSQRT] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_SQRT] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_EXP] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_LN] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_SIGMOID] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_TANH] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_ERF] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_GELU] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_RSUM] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_RMAX] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_RMIN] = { U(SFP), F_VEC, 1, 0 },
	[SPYRE_OP_RARGMAX] = { U(SFP), F_VEC, 1, 0 },
};

static bool is_lar(unsigned int r)
{
	return r < SPYRE_LBR0;
}

static bool is_lbr(unsigned int r)
{
	return r >= SPYRE_LBR0 && r < SPYRE_EAR0;
}

static bool is_ear(unsigned int r)
{
	return r >= SPYRE_EAR0 && r < SPYRE_LCR0;
}

static bool reads(unsigned int unit, unsigned int fifo)
{
	return fifo < SPYRE_FIFOS && spyre_job_fifo_reader[fifo] == unit;
}

static bool writes(unsigned int unit, unsigned int fifo)
{
	return fifo < SPYRE_FIFOS && spyre_job_fifo_writer[fifo] == unit;
}

static bool pt_format(unsigned int f)
{
	return f == SPYRE_SEN169_FP16 || f == SPYRE_IEEE_FP16 || f == SPYRE_BFLOAT16 || f == SPYRE_SENINT8;
}

static bool lane_format(unsigned int f)
{
	return f <= SPYRE_BFLOAT16 || f == SPYRE_IEEE_INT32 ||
	       f == (SPYRE_IEEE_FP32 | SPYRE_FMT_HALF) || f == (SPYRE_IEEE_INT32 | SPYRE_FMT_HALF);
}

static bool is_v(unsigned int o)
{
	return o < SPYRE_VREGS;
}

static bool is_fifo(unsigned int o)
{
	return o >= 0x20 && o < 0x40;
}

/* imm2's byte for operand k: 0, 1, 2 are b, c, d and 3 is a. */
static unsigned int fmt_of(const struct job_insn *i, unsigned int k)
{
	return (uint32_t)i->imm2 >> (8 * k) & 0xff;
}

static enum spyre_prog_err check_vec(const struct job_insn *i, const struct opinfo *o, unsigned int unit,
				     uint32_t nconsts)
{
	const uint8_t src[3] = { i->b, i->c, i->d };
	bool imm = o->imm, a8 = false, b8 = false;
	unsigned int k, f;

	if (!i->n)
		return SPYRE_PE_FIELD;
	for (k = 0; k < 3; k++) {
		f = fmt_of(i, k);
		if (k >= o->srcs) {
			if ((src[k] && src[k] != SPYRE_OPND_NONE) || f)
				return SPYRE_PE_FIELD;
			continue;
		}
		if (is_fifo(src[k])) {
			if (!reads(unit, src[k] - 0x20u))
				return SPYRE_PE_FIFO;
			if (f == SPYRE_SENINT8 && i->op == SPYRE_OP_MOV)
				b8 = true;
			else if (!lane_format(f))
				return SPYRE_PE_FORMAT;
			continue;
		}
		if (f)
			return SPYRE_PE_FORMAT;
		if (src[k] >= 0x80 && src[k] != SPYRE_OPND_NONE) {
			if (src[k] - 0x80u >= nconsts)
				return SPYRE_PE_CONST;
		} else if (src[k] == SPYRE_OPND_IMM) {
			if (o->imm)
				return SPYRE_PE_FIELD;
			imm = true;
		} else if (!is_v(src[k])) {
			return SPYRE_PE_FIELD;
		}
	}
	f = fmt_of(i, 3);
	if (is_fifo(i->a)) {
		if (!writes(unit, i->a - 0x20u))
			return SPYRE_PE_FIFO;
		if (f == SPYRE_SENINT8 && i->op == SPYRE_OP_MOV)
			a8 = true;
		else if (!lane_format(f))
			return SPYRE_PE_FORMAT;
	} else if (!is_v(i->a)) {
		return SPYRE_PE_FIELD;
	} else if (f) {
		return SPYRE_PE_FORMAT;
	}
	/* An 8-bit word is a pair of V registers on the other side. */
	if (b8 && (a8 || !is_v(i->a)))
		return SPYRE_PE_FORMAT;
	if (a8 && !is_v(i->b))
		return SPYRE_PE_FORMAT;
	if ((b8 && (i->a & 1)) || (a8 && (i->b & 1)))
		return SPYRE_PE_FIELD;
	if (!imm && i->imm)
		return SPYRE_PE_FIELD;
	if (i->op == SPYRE_OP_BCAST && (uint32_t)i->imm >= SPYRE_LANES)
		return SPYRE_PE_FIELD;
	return SPYRE_PE_NONE;
}

/* Fields an operation does not name are 0. */
#define ZERO(x) do { if (x) return SPYRE_PE_FIELD; } while (0)

static enum spyre_prog_err check_insn(const struct job_insn *i, unsigned int unit, const struct job *job)
{
	const struct opinfo *o = &ops[i->op];
	uint32_t mask;

	if (!(o->units & 1u << unit))
		return SPYRE_PE_OPCODE;
	switch (o->form) {
	case F_NONE:
	case F_RETURN:
		ZERO(i->a || i->b || i->c || i->d || i->n || i->imm || i->imm2);
		break;
	case F_LOOP:
		ZERO(i->a || i->d || i->n || i->imm2 || i->c > 1);
		if (i->c) {
			if (i->b < SPYRE_LCR0 || i->b >= SPYRE_REGS)
				return SPYRE_PE_REGISTER;
			ZERO(i->imm);
		} else {
			ZERO(i->b);
		}
		break;
	case F_ADDIMM:
		ZERO(i->b || i->c || i->d || i->n || i->imm2);
		if (i->a >= SPYRE_REGS)
			return SPYRE_PE_REGISTER;
		break;
	case F_ADDREG:
	case F_MVREG:
		ZERO(i->c || i->d || i->n || i->imm2);
		if (i->a >= SPYRE_REGS ||
		    (i->b >= SPYRE_REGS && !(o->form == F_MVREG && i->b == NONE)))
			return SPYRE_PE_REGISTER;
		break;
	case F_SEND:
		ZERO(i->b || i->c || i->d || i->n || i->imm2);
		if (i->a >= SPYRE_TAGS)
			return SPYRE_PE_TAG;
		mask = (uint32_t)i->imm;
		ZERO(mask & ~job->core_mask);
		break;
	case F_WAIT:
		ZERO(i->b || i->c || i->d || i->imm || i->imm2 || !i->n);
		if (i->a >= SPYRE_TAGS)
			return SPYRE_PE_TAG;
		break;
	case F_L3:
		if (!is_lar(i->a) || (i->b != NONE && !is_lbr(i->b)) || !is_ear(i->c))
			return SPYRE_PE_REGISTER;
		if (!i->n || i->n > 32)
			return SPYRE_PE_FIELD;
		if (i->op != SPYRE_OP_L3_LDM)
			ZERO(i->d);
		else if (i->d >= SPYRE_JOB_GROUPS || !job->groups[i->d])
			return SPYRE_PE_GROUP;
		break;
	case F_LD:
	case F_ST:
		if (!is_lar(i->a) || (i->b != NONE && !is_lbr(i->b)))
			return SPYRE_PE_REGISTER;
		ZERO(i->c || !i->n || i->imm % 128);
		if (o->form == F_LD ? !writes(unit, i->d) : !reads(unit, i->d))
			return SPYRE_PE_FIFO;
		break;
	case F_LDW:
		ZERO(i->c || i->n || i->imm || i->imm2 || i->a > 7);
		if (i->d != SPYRE_FIFO_LXLU_PTW && i->d != SPYRE_FIFO_L0LU_PTW)
			return SPYRE_PE_FIFO;
		if (!pt_format(i->b))
			return SPYRE_PE_FORMAT;
		break;
	case F_MM:
		ZERO(i->imm2 || i->a > 7 || i->c > 1);
		if (i->d != SPYRE_FIFO_LXLU_PT && i->d != SPYRE_FIFO_L0LU_PT)
			return SPYRE_PE_FIFO;
		if (!pt_format(i->b))
			return SPYRE_PE_FORMAT;
		goto rows;
	case F_PSOUT:
		ZERO(i->a || i->b || i->c || i->imm2);
		if (!writes(unit, i->d))
			return SPYRE_PE_FIFO;
		goto rows;
	case F_PSIN:
		ZERO(i->a || i->c || i->imm2);
		if (i->d != SPYRE_FIFO_LXLU_PT && i->d != SPYRE_FIFO_L0LU_PT)
			return SPYRE_PE_FIFO;
		if (i->b != SPYRE_IEEE_FP32 && i->b != SPYRE_IEEE_INT32)
			return SPYRE_PE_FORMAT;
rows:
		if (!i->n || i->n > 128 || i->imm < 0 || i->imm > 128 - i->n)
			return SPYRE_PE_FIELD;
		break;
	case F_VEC:
		return check_vec(i, o, unit, job->nconsts);
	}
	return SPYRE_PE_NONE;
}

static void note_use(struct job_program *p, const struct job_insn *i, unsigned int unit)
{
	const uint8_t opnd[4] = { i->a, i->b, i->c, i->d };
	unsigned int k;

	switch (i->op) {
	case SPYRE_OP_L3_LDM:
		p->multicast = true;
		p->groups |= (uint16_t)(1u << i->d);
		p->memory = true;
		break;
	case SPYRE_OP_L3_LDU:
	case SPYRE_OP_L3_STU:
		p->memory = true;
		break;
	case SPYRE_OP_SYNC_SEND:
		if (i->imm && p->far_sends && p->far_sends != (uint32_t)i->imm)
			p->mixed_sends = true;
		p->far_sends |= (uint32_t)i->imm;
		break;
	case SPYRE_OP_L3_STC:
		p->stores_cores = true;
		break;
	default:
		if (unit == SPYRE_UNIT_SFP && ops[i->op].form == F_VEC)
			for (k = 0; k < 4; k++)
				if (opnd[k] == SPYRE_OPND_FIFO(SPYRE_FIFO_RING))
					p->ring = true;
		break;
	}
}

/* Registers that can reach a loop count, by closure over the moves and adds. */
static uint16_t timed_regs(const struct job_insn *insns, uint32_t count)
{
	uint16_t set = 0, old;
	uint32_t k;

	for (k = 0; k < count; k++)
		if (insns[k].op == SPYRE_OP_MVLOOPCNT && insns[k].c)
			set |= (uint16_t)(1u << insns[k].b);
	do {
		old = set;
		for (k = 0; set && k < count; k++)
			if ((insns[k].op == SPYRE_OP_ADDREG || insns[k].op == SPYRE_OP_MVREG) &&
			    insns[k].b < SPYRE_REGS && (set & 1u << insns[k].a))
				set |= (uint16_t)(1u << insns[k].b);
	} while (set != old);
	return set;
}

static bool flat(const struct job_insn *i, uint32_t n)
{
	for (; n; n--, i++)
		if (i->op != SPYRE_OP_NOP && i->op != SPYRE_OP_ADDIMM)
			return false;
	return true;
}

static bool check_program(struct job *job, struct job_program *p, struct job_insn *insns, struct job_error *err)
{
	uint32_t open[SPYRE_LOOPS];
	unsigned int depth = 0, k;
	enum spyre_prog_err code;
	uint32_t pc;

	for (pc = 0; pc < p->count; pc++) {
		struct job_insn *i = &insns[pc];

		code = check_insn(i, p->unit, job);
		if (code)
			return fail(err, code, pc);
		i->srcs = ops[i->op].form == F_VEC ? (uint8_t)((1u << ops[i->op].srcs) - 1) : 0;
		if (i->op == SPYRE_OP_RETURN && (depth || i->be))
			return fail(err, SPYRE_PE_LOOP, pc);
		if (i->op == SPYRE_OP_MVLOOPCNT) {
			if (depth == SPYRE_LOOPS || i->be)
				return fail(err, SPYRE_PE_LOOP, pc);
			open[depth++] = pc;
			continue;
		}
		if (i->be > depth)
			return fail(err, SPYRE_PE_LOOP, pc);
		for (k = 0; k < i->be; k++) {
			struct job_insn *l = &insns[open[--depth]];

			l->end = pc;
			l->flat = k == 0 && flat(l + 1, pc - open[depth]);
			l->outer = (uint8_t)(i->be - 1 - k);
		}
		note_use(p, i, p->unit);
	}
	/* The last one is a RETURN, and RETURN in an open block was refused: nothing is open here. */
	p->timed_regs = timed_regs(insns, p->count);
	return true;
}

/* --- Whole container ------------------------------------------------------------------------ */

static bool zero(const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static bool check_programs(struct job *job, const struct spyre_job_program *src, uint32_t off,
			   struct job_error *err)
{
	uint32_t i, first, count;

	for (i = 0; i < job->nprograms; i++) {
		struct job_program *p = &job->programs[i];
		uint64_t at = off + (uint64_t)i * sizeof(*src);

		first = le32toh(src[i].first);
		count = le32toh(src[i].count);
		if (src[i].reserved || src[i].reserved1)
			return fail(err, SPYRE_PE_RESERVED, at);
		if (le16toh(src[i].unit) >= SPYRE_UNITS || !count || first > job->ninsns ||
		    count > job->ninsns - first)
			return fail(err, SPYRE_PE_PROGRAM, at);
		p->unit = (uint8_t)le16toh(src[i].unit);
		p->count = count;
		p->insns = &job->insns[first];
		if (job->insns[first + count - 1].op != SPYRE_OP_RETURN)
			return fail(err, SPYRE_PE_PROGRAM, at);
	}
	return true;
}

static int cmp_range(const void *x, const void *y)
{
	const struct job_program *a = *(const struct job_program *const *)x;
	const struct job_program *b = *(const struct job_program *const *)y;

	return a->insns < b->insns ? -1 : a->insns > b->insns;
}

/*
 * Programs may not share instructions: decoding leaves marks in them, and each is checked for one kind of
 * unit only.
 */
static bool check_disjoint(struct job *job, uint32_t off, struct job_error *err)
{
	const struct job_program **p;
	uint32_t i;
	bool ok = true;

	p = malloc(job->nprograms * sizeof(*p));
	if (!p)
		return fail(err, SPYRE_PE_NONE, 0);
	for (i = 0; i < job->nprograms; i++)
		p[i] = &job->programs[i];
	qsort(p, job->nprograms, sizeof(*p), cmp_range);
	for (i = 1; ok && i < job->nprograms; i++)
		if (p[i - 1]->insns + p[i - 1]->count > p[i]->insns)
			ok = fail(err, SPYRE_PE_PROGRAM,
				  off + (uint64_t)(p[i] - job->programs) * sizeof(struct spyre_job_program));
	free(p);
	return ok;
}

static bool check_units(struct job *job, const struct spyre_job_unit *src, uint32_t off, struct job_error *err)
{
	uint32_t i, mask = 0, prog, init, k;
	int last = -1;

	for (i = 0; i < job->nunits; i++) {
		const struct spyre_job_unit *s = &src[i];
		struct job_unit *u = &job->units[i];
		uint64_t at = off + (uint64_t)i * sizeof(*s);
		int order;

		prog = le32toh(s->program);
		init = le32toh(s->init);
		if (s->reserved)
			return fail(err, SPYRE_PE_RESERVED, at);
		if (s->core >= 32 || s->unit >= SPYRE_UNITS || s->corelet > 1 ||
		    (s->corelet && s->unit < SPYRE_UNIT_LXLU) || prog >= job->nprograms ||
		    job->programs[prog].unit != s->unit)
			return fail(err, SPYRE_PE_UNIT, at);
		order = (s->core << 8) | (s->unit << 1) | s->corelet;
		if (order <= last)
			return fail(err, SPYRE_PE_UNIT, at);
		last = order;
		if (s->ninits > 16 || init > job->ninits || s->ninits > job->ninits - init)
			return fail(err, SPYRE_PE_INIT, at);
		mask |= 1u << s->core;
		u->core = s->core;
		u->index = (uint8_t)job_unit_index(s->unit, s->corelet);
		u->program = &job->programs[prog];
		u->ninits = s->ninits;
		u->inits = &job->inits[init];
		for (k = 1; k < s->ninits; k++) {
			uint32_t j;

			for (j = 0; j < k; j++)
				if (u->inits[j].reg == u->inits[k].reg)
					return fail(err, SPYRE_PE_INIT, at);
		}
		job->unit[u->core][u->index] = u;
	}
	if (mask != job->core_mask)
		return fail(err, SPYRE_PE_CORE_MASK, OFF(core_mask));
	return true;
}

/* Where an instruction error of a program is reported: the first unit that runs it. */
static void blame(const struct job *job, const struct job_program *p, struct job_error *err)
{
	uint32_t i;

	err->unit = p->unit;
	for (i = 0; i < job->nunits; i++) {
		if (job->units[i].program == p) {
			err->core = job->units[i].core;
			err->unit |= (uint16_t)(job_unit_corelet(job->units[i].index) << 8);
			break;
		}
	}
}

/* Each tag of a core has at most one waiting unit; a multicast names cores that take part. */
static bool check_meetings(struct job *job, struct job_error *err)
{
	uint32_t i, pc;

	memset(job->tag_waiter, 0xff, sizeof(job->tag_waiter));
	for (i = 0; i < job->nunits; i++) {
		const struct job_unit *u = &job->units[i];
		const struct job_program *p = u->program;
		enum spyre_prog_err code = SPYRE_PE_NONE;

		for (pc = 0; pc < p->count; pc++) {
			const struct job_insn *in = &p->insns[pc];
			uint8_t *w;

			if (in->op == SPYRE_OP_SYNC_WAIT) {
				w = &job->tag_waiter[u->core][in->a];
				if (*w != 0xff && *w != u->index)
					code = SPYRE_PE_TAG;
				*w = u->index;
			} else if (in->op == SPYRE_OP_L3_LDM && !(job->groups[in->d] & 1u << u->core)) {
				code = SPYRE_PE_GROUP;
			}
			if (code) {
				err->core = u->core;
				err->unit = (uint16_t)(p->unit | job_unit_corelet(u->index) << 8);
				return fail(err, code, pc);
			}
		}
	}
	return true;
}

static void *carve(uint8_t **p, size_t n, size_t size)
{
	void *r = *p;

	*p += (n * size + 63) & ~(size_t)63;
	return r;
}

struct job *spyre_job_decode(uint8_t *raw, size_t size, struct job_error *err)
{
	struct spyre_job_header h;
	struct section s[6];
	struct job head = { 0 }, *job;
	uint8_t digest[32], *mem;
	struct sha256 sha;
	size_t bytes;
	uint32_t i, k;

	*err = (struct job_error){ .core = 0xffff, .unit = 0xffff };
	if (size < sizeof(h))
		return fail(err, SPYRE_PE_SIZE, OFF(size)), NULL;
	memcpy(&h, raw, sizeof(h));
	if (!spyre_job_check_header(&h, err))
		return NULL;
	if (le32toh(h.size) != size)
		return fail(err, SPYRE_PE_SIZE, OFF(size)), NULL;
	if (h.flags)
		return fail(err, SPYRE_PE_RESERVED, OFF(flags)), NULL;
	if (h.reserved[0] || h.reserved[1])
		return fail(err, SPYRE_PE_RESERVED, OFF(reserved)), NULL;
	sha256_init(&sha);
	sha256_update(&sha, raw + sizeof(h), size - sizeof(h));
	sha256_final(&sha, digest);
	if (memcmp(digest, h.digest, sizeof(digest)))
		return fail(err, SPYRE_PE_DIGEST, OFF(digest)), NULL;

	head.size = (uint32_t)size;
	head.core_mask = le32toh(h.core_mask);
	head.nprograms = le32toh(h.nprograms);
	head.nunits = le32toh(h.nunits);
	head.ninits = le32toh(h.ninits);
	head.ninsns = le32toh(h.ninsns);
	head.nconsts = le32toh(h.nconsts);
	head.nsymbols = le32toh(h.nsymbols);
	head.watchdog = le64toh(h.watchdog);
	memcpy(head.digest, h.digest, sizeof(head.digest));
	if (!head.core_mask)
		return fail(err, SPYRE_PE_CORE_MASK, OFF(core_mask)), NULL;
	if (head.nconsts > SPYRE_JOB_CONSTS)
		return fail(err, SPYRE_PE_CONST, OFF(nconsts)), NULL;
	if (head.nsymbols > SPYRE_JOB_SYMBOLS)
		return fail(err, SPYRE_PE_INIT, OFF(nsymbols)), NULL;
	if (!head.nunits)
		return fail(err, SPYRE_PE_UNIT, OFF(nunits)), NULL;
	if (!head.nprograms)
		return fail(err, SPYRE_PE_PROGRAM, OFF(nprograms)), NULL;
	s[0] = (struct section){ OFF(programs_off), le32toh(h.programs_off),
				 head.nprograms * (uint64_t)sizeof(struct spyre_job_program) };
	s[1] = (struct section){ OFF(units_off), le32toh(h.units_off),
				 head.nunits * (uint64_t)sizeof(struct spyre_job_unit) };
	s[2] = (struct section){ OFF(inits_off), le32toh(h.inits_off),
				 head.ninits * (uint64_t)sizeof(struct spyre_job_init) };
	s[3] = (struct section){ OFF(text_off), le32toh(h.text_off),
				 head.ninsns * (uint64_t)sizeof(struct spyre_insn) };
	s[4] = (struct section){ OFF(consts_off), le32toh(h.consts_off), head.nconsts * (uint64_t)256 };
	s[5] = (struct section){ OFF(groups_off), le32toh(h.groups_off),
				 h.groups_off ? SPYRE_JOB_GROUPS * 4u : 0 };
	if (!check_sections(s, 6, head.size, err))
		return NULL;

	/* Counts are bounded by the container's 16 MiB from here on. */
	bytes = sizeof(*job) + 64 * 8 + head.nprograms * sizeof(struct job_program) +
		head.nunits * sizeof(struct job_unit) + head.ninsns * sizeof(struct job_insn) +
		head.ninits * sizeof(struct spyre_job_init) + head.nconsts * (size_t)256;
	if (posix_memalign((void **)&mem, 64, (bytes + 63) & ~(size_t)63))
		return NULL;
	memset(mem, 0, bytes);
	job = carve(&mem, 1, sizeof(*job));
	*job = head;
	job->programs = carve(&mem, job->nprograms, sizeof(*job->programs));
	job->units = carve(&mem, job->nunits, sizeof(*job->units));
	job->insns = carve(&mem, job->ninsns, sizeof(*job->insns));
	job->inits = carve(&mem, job->ninits, sizeof(*job->inits));
	job->consts = carve(&mem, job->nconsts, 256);

	for (i = 0; s[5].bytes && i < SPYRE_JOB_GROUPS; i++) {
		memcpy(&k, raw + s[5].off + 4 * i, 4);
		job->groups[i] = le32toh(k);
		if (job->groups[i] & ~job->core_mask) {
			fail(err, SPYRE_PE_GROUP, s[5].off + 4 * i);
			goto bad;
		}
	}
	for (i = 0; i < job->ninits; i++) {
		struct spyre_job_init in;
		uint64_t at = s[2].off + (uint64_t)i * sizeof(in);

		memcpy(&in, raw + at, sizeof(in));
		in.symbol = le16toh(in.symbol);
		in.value = le64toh(in.value);
		if (in.reserved || in.reserved1) {
			fail(err, SPYRE_PE_RESERVED, at);
			goto bad;
		}
		if (in.reg >= SPYRE_REGS || (in.symbol != SPYRE_NO_SYMBOL && in.symbol >= job->nsymbols)) {
			fail(err, SPYRE_PE_INIT, at);
			goto bad;
		}
		job->inits[i] = in;
	}
	for (i = 0; i < job->ninsns; i++) {
		struct spyre_insn in;

		memcpy(&in, raw + s[3].off + (uint64_t)i * sizeof(in), sizeof(in));
		job->insns[i] = (struct job_insn){
			.op = in.op, .be = in.be, .a = in.a, .b = in.b, .c = in.c, .d = in.d,
			.n = le16toh(in.n), .imm = (int32_t)le32toh(in.imm), .imm2 = (int32_t)le32toh(in.imm2),
		};
	}
	for (i = 0; i < job->nconsts; i++) {
		for (k = 0; k < SPYRE_LANES; k++) {
			uint32_t v;

			memcpy(&v, raw + s[4].off + i * (size_t)256 + k * 4, 4);
			job->consts[i][k] = le32toh(v);
		}
	}
	if (!check_programs(job, (const void *)(raw + s[0].off), s[0].off, err) ||
	    !check_disjoint(job, s[0].off, err) ||
	    !check_units(job, (const void *)(raw + s[1].off), s[1].off, err))
		goto bad;
	for (i = 0; i < job->nprograms; i++) {
		if (!check_program(job, &job->programs[i], (struct job_insn *)job->programs[i].insns, err)) {
			blame(job, &job->programs[i], err);
			goto bad;
		}
	}
	if (!check_meetings(job, err))
		goto bad;
	/* "Unused bytes are 0": what no section covers. */
	{
		uint64_t at = sizeof(h), end;

		while (at < size) {
			uint64_t next = size;

			end = at;
			for (i = 0; i < 6; i++) {
				if (!s[i].bytes)
					continue;
				if (s[i].off <= at && at < s[i].off + s[i].bytes && s[i].off + s[i].bytes > end)
					end = s[i].off + s[i].bytes;
				else if (s[i].off > at && s[i].off < next)
					next = s[i].off;
			}
			if (end == at) {
				if (!zero(raw + at, next - at)) {
					fail(err, SPYRE_PE_RESERVED, at);
					goto bad;
				}
				end = next;
			}
			at = end;
		}
	}
	job->raw = raw;
	job->bytes = bytes + size;
	return job;
bad:
	free(job);
	return NULL;
}

void spyre_job_free(struct job *job)
{
	if (!job)
		return;
	free(job->raw);
	free(job);
}
