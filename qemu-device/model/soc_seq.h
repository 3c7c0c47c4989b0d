/* SPDX-License-Identifier: MIT */
/*
 * Control flow of a unit: registers, program counter and blocks. The functional and the timing pass step
 * through the same instructions with it.
 */
#ifndef SPYRE_SOC_SEQ_H
#define SPYRE_SOC_SEQ_H

#include "job.h"

struct seq {
	const struct job_insn *insns;
	uint64_t reg[SPYRE_REGS];
	uint64_t ordinal;	/* instructions completed: names a point in the unit's run */
	uint32_t pc;
	uint8_t depth;
	struct {
		uint32_t start;
		uint64_t left;
	} loop[SPYRE_LOOPS];
};

static inline void seq_init(struct seq *s, const struct job_unit *u, const uint64_t *symbols)
{
	unsigned int i;

	memset(s, 0, sizeof(*s));
	s->insns = u->program->insns;
	for (i = 0; i < u->ninits; i++)
		s->reg[u->inits[i].reg] = u->inits[i].value +
			(u->inits[i].symbol == SPYRE_NO_SYMBOL ? 0 : symbols[u->inits[i].symbol]);
}

static inline void seq_end_blocks(struct seq *s, unsigned int be)
{
	while (be--) {
		if (--s->loop[s->depth - 1].left) {
			s->pc = s->loop[s->depth - 1].start;
			return;
		}
		s->depth--;
	}
	s->pc++;
}

/* The instruction at pc has been done. */
static inline void seq_next(struct seq *s, const struct job_insn *i)
{
	s->ordinal++;
	if (i->be)
		seq_end_blocks(s, i->be);
	else
		s->pc++;
}

/* Does the instruction at pc if it only touches control flow and registers. */
static inline bool seq_control(struct seq *s, const struct job_insn *i)
{
	uint64_t count;

	switch (i->op) {
	case SPYRE_OP_MVLOOPCNT:
		s->ordinal++;
		count = i->c ? s->reg[i->b] : (uint32_t)i->imm;
		if (!count) {
			s->pc = i->end;
			seq_end_blocks(s, i->outer);
			return true;
		}
		if (i->flat) {
			const struct job_insn *b;

			/* All rounds at once. */
			for (b = i + 1; b <= &s->insns[i->end]; b++)
				if (b->op == SPYRE_OP_ADDIMM)
					s->reg[b->a] += count * (uint64_t)(int64_t)b->imm;
			s->ordinal += count * (i->end - s->pc);
			s->pc = i->end;
			seq_end_blocks(s, i->outer);
			return true;
		}
		s->pc++;
		s->loop[s->depth].start = s->pc;
		s->loop[s->depth].left = count;
		s->depth++;
		return true;
	case SPYRE_OP_NOP:
		break;
	case SPYRE_OP_ADDIMM:
		s->reg[i->a] += (uint64_t)(int64_t)i->imm;
		break;
	case SPYRE_OP_ADDREG:
		s->reg[i->a] += s->reg[i->b] * (uint64_t)(int64_t)i->imm;
		break;
	case SPYRE_OP_MVREG:
		s->reg[i->a] = (i->b < SPYRE_REGS ? s->reg[i->b] : 0) + (uint64_t)(int64_t)i->imm;
		break;
	default:
		return false;
	}
	seq_next(s, i);
	return true;
}

/* Where a load or store of LX or L0 begins. */
static inline uint64_t seq_local_addr(const struct seq *s, const struct job_insn *i)
{
	return s->reg[i->a] + (i->b < SPYRE_REGS ? s->reg[i->b] : 0);
}

/* Whether addr and addr + (n - 1) * stride are sticks of a scratchpad of so many bytes. */
static inline enum spyre_prog_err seq_local_range(uint64_t addr, uint32_t n, int64_t stride, uint64_t size)
{
	int64_t last;

	if (addr % SPYRE_STICK)
		return SPYRE_PE_ALIGN;
	if (addr >= size)
		return SPYRE_PE_LX_RANGE;
	last = (int64_t)addr + (int64_t)(n - 1) * stride;
	return last < 0 || last >= (int64_t)size ? SPYRE_PE_LX_RANGE : SPYRE_PE_NONE;
}

#endif
