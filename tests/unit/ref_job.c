// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "ref.h"

static uint64_t le(const uint8_t *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

#define FIELD(base, type, field) le((base) + offsetof(type, field), sizeof(((type *)0)->field))

struct ref_job *ref_job_decode(const uint8_t *c, size_t size, const uint64_t *symbols)
{
	struct ref_job *job = calloc(1, sizeof(*job));
	uint64_t units = FIELD(c, struct spyre_job_header, nunits),
		 insns = FIELD(c, struct spyre_job_header, ninsns);
	uint64_t consts = FIELD(c, struct spyre_job_header, nconsts), i, k;
	const uint8_t *p;

	(void)size;
	job->cores = (uint32_t)FIELD(c, struct spyre_job_header, core_mask);
	job->watchdog = FIELD(c, struct spyre_job_header, watchdog);
	p = c + FIELD(c, struct spyre_job_header, groups_off);
	if (p != c)
		for (i = 0; i < SPYRE_JOB_GROUPS; i++)
			job->groups[i] = (uint32_t)le(p + 4 * i, 4);
	p = c + FIELD(c, struct spyre_job_header, consts_off);
	for (i = 0; i < consts; i++)
		for (k = 0; k < SPYRE_LANES; k++)
			job->consts[i][k] = (uint32_t)le(p + (i * SPYRE_LANES + k) * 4, 4);
	job->text = calloc(insns + 1, sizeof(*job->text));
	p = c + FIELD(c, struct spyre_job_header, text_off);
	for (i = 0; i < insns; i++, p += sizeof(struct spyre_insn)) {
		job->text[i] = (struct ref_insn){
			.op = p[0],
			.be = p[1],
			.a = p[2],
			.b = p[3],
			.c = p[4],
			.d = p[5],
			.n = (uint16_t)FIELD(p, struct spyre_insn, n),
			.imm = (int32_t)FIELD(p, struct spyre_insn, imm),
			.imm2 = (int32_t)FIELD(p, struct spyre_insn, imm2),
		};
	}
	for (i = 0; i < units; i++) {
		const uint8_t *d = c + FIELD(c, struct spyre_job_header, units_off) +
				   i * sizeof(struct spyre_job_unit);
		uint64_t kind = FIELD(d, struct spyre_job_unit, unit),
			 corelet = FIELD(d, struct spyre_job_unit, corelet);
		struct ref_unit *u =
			&job->unit[FIELD(d, struct spyre_job_unit, core)][kind + 7 * corelet];

		p = c + FIELD(c, struct spyre_job_header, programs_off) +
		    FIELD(d, struct spyre_job_unit, program) * sizeof(struct spyre_job_program);
		u->text = job->text + FIELD(p, struct spyre_job_program, first);
		u->kind = (uint8_t)kind;
		u->corelet = (uint8_t)corelet;
		p = c + FIELD(c, struct spyre_job_header, inits_off) +
		    FIELD(d, struct spyre_job_unit, init) * sizeof(struct spyre_job_init);
		for (k = 0; k < FIELD(d, struct spyre_job_unit, ninits);
		     k++, p += sizeof(struct spyre_job_init)) {
			uint64_t symbol = FIELD(p, struct spyre_job_init, symbol);

			u->reg[FIELD(p, struct spyre_job_init, reg)] =
				FIELD(p, struct spyre_job_init, value) +
				(symbol == SPYRE_NO_SYMBOL ? 0 : symbols[symbol]);
		}
	}
	return job;
}

void ref_job_free(struct ref_job *job)
{
	free(job->text);
	free(job);
}

unsigned int ref_ring_to(const struct ref_job *job, unsigned int core, unsigned int corelet)
{
	do
		core = (core + (corelet ? REF_CORES - 1 : 1)) % REF_CORES;
	while (!(job->cores >> core & 1));
	return core;
}

/* --- Control flow --------------------------------------------------------------------------- */

void ref_seq_start(struct ref_seq *s, const struct ref_unit *u)
{
	memset(s, 0, sizeof(*s));
	s->text = u->text;
	memcpy(s->reg, u->reg, sizeof(s->reg));
}

/* be blocks end after the instruction at pc. */
static void end_blocks(struct ref_seq *s, unsigned int be)
{
	while (be--) {
		if (--s->block[s->depth - 1].left) {
			s->pc = s->block[s->depth - 1].first;
			return;
		}
		s->depth--;
	}
	s->pc++;
}

static void open_block(struct ref_seq *s, uint64_t count)
{
	int open = 1;

	if (count) {
		s->block[s->depth].left = count;
		s->block[s->depth++].first = ++s->pc;
		return;
	}
	/* Skipped: to the instruction that ends it, which may end blocks around it too. */
	while (open > 0) {
		s->pc++;
		if (s->text[s->pc].op == SPYRE_OP_MVLOOPCNT)
			open++;
		open -= s->text[s->pc].be;
	}
	end_blocks(s, (unsigned int)-open);
}

void ref_seq_retire(struct ref_seq *s)
{
	const struct ref_insn *in = &s->text[s->pc];
	uint64_t *r = s->reg;

	s->retired++;
	switch (in->op) {
	case SPYRE_OP_MVLOOPCNT:
		open_block(s, in->c ? r[in->b] : (uint32_t)in->imm);
		return;
	case SPYRE_OP_ADDIMM:
		r[in->a] += (uint64_t)(int64_t)in->imm;
		break;
	case SPYRE_OP_ADDREG:
		r[in->a] += r[in->b] * (uint64_t)(int64_t)in->imm;
		break;
	case SPYRE_OP_MVREG:
		r[in->a] = (in->b == SPYRE_REG_NONE ? 0 : r[in->b]) + (uint64_t)(int64_t)in->imm;
		break;
	case SPYRE_OP_L3_LDU:
	case SPYRE_OP_L3_LDM:
	case SPYRE_OP_L3_STU:
	case SPYRE_OP_L3_STC:
		r[in->a] += (uint64_t)(int64_t)in->imm;
		r[in->c] += (uint64_t)(int64_t)in->imm2;
		break;
	case SPYRE_OP_LD:
	case SPYRE_OP_ST:
		r[in->a] += (uint64_t)(int64_t)in->imm2;
		break;
	}
	end_blocks(s, in->be);
}

/* --- Vector instructions -------------------------------------------------------------------- */

unsigned int ref_sources(unsigned int op)
{
	switch (op) {
	case SPYRE_OP_LMASK:
	case SPYRE_OP_IOTA:
		return 0;
	case SPYRE_OP_FMA:
	case SPYRE_OP_SEL:
		return 3;
	case SPYRE_OP_ADD:
	case SPYRE_OP_SUB:
	case SPYRE_OP_MUL:
	case SPYRE_OP_MIN:
	case SPYRE_OP_MAX:
	case SPYRE_OP_CMPEQ:
	case SPYRE_OP_CMPLT:
	case SPYRE_OP_CMPLE:
	case SPYRE_OP_IADD:
	case SPYRE_OP_ISUB:
	case SPYRE_OP_IMUL:
	case SPYRE_OP_IMIN:
	case SPYRE_OP_IMAX:
	case SPYRE_OP_AND:
	case SPYRE_OP_OR:
	case SPYRE_OP_XOR:
	case SPYRE_OP_SHL:
	case SPYRE_OP_SHR:
	case SPYRE_OP_SRA:
	case SPYRE_OP_SHUF:
		return 2;
	}
	return 1;
}

unsigned int ref_operand_words(const struct ref_insn *in, unsigned int k, unsigned int *fifo)
{
	uint8_t opnd[4] = { in->b, in->c, in->d, in->a };
	uint32_t fmt = (uint32_t)in->imm2 >> (8 * k) & 0xff;

	if ((k < 3 && k >= ref_sources(in->op)) || opnd[k] < SPYRE_OPND_FIFO(0) ||
	    opnd[k] >= SPYRE_OPND_IMM)
		return 0;
	*fifo = opnd[k] - SPYRE_OPND_FIFO(0);
	if (fmt & SPYRE_FMT_HALF)
		return 1;
	switch (fmt) {
	case SPYRE_IEEE_FP32:
	case SPYRE_IEEE_INT32:
	case SPYRE_SEN18F_FP24:
		return 2;
	}
	return 1;
}
