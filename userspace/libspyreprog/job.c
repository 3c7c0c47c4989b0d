// SPDX-License-Identifier: MIT
/* Container builder. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <spyre/isa_table.h>

#include "spyreprog.h"
#include "image.h"

struct prog {
	enum spyre_unit unit;
	struct spyre_insn *insns;
	size_t n, cap;
	unsigned int depth;		/* open blocks */
};

struct unit {
	struct spyre_job_unit u;
	struct spyre_job_init *inits;
	unsigned int ninits;
};

struct spyreprog_job {
	char error[200];
	uint64_t watchdog;
	unsigned int nsymbols;
	uint32_t groups[SPYRE_JOB_GROUPS];
	bool has_groups;
	bool shared;			/* equal programs become one */
	unsigned int stages;		/* jobs that follow the first */
	struct prog *progs;
	size_t nprogs;
	struct unit *units;
	size_t nunits;
	uint32_t (*consts)[SPYRE_LANES];
	size_t nconsts;
};

static void __attribute__((format(printf, 2, 3)))
fail(struct spyreprog_job *job, const char *fmt, ...)
{
	va_list ap;

	if (job->error[0])
		return;
	va_start(ap, fmt);
	vsnprintf(job->error, sizeof(job->error), fmt, ap);
	va_end(ap);
}

struct spyreprog_job *spyreprog_job_new(void)
{
	return calloc(1, sizeof(struct spyreprog_job));
}

void spyreprog_job_free(struct spyreprog_job *job)
{
	size_t i;

	if (!job)
		return;
	for (i = 0; i < job->nprogs; i++)
		free(job->progs[i].insns);
	for (i = 0; i < job->nunits; i++)
		free(job->units[i].inits);
	free(job->progs);
	free(job->units);
	free(job->consts);
	free(job);
}

const char *spyreprog_job_error(const struct spyreprog_job *job)
{
	return job->error[0] ? job->error : NULL;
}

void spyreprog_job_watchdog(struct spyreprog_job *job, uint64_t cycles)
{
	job->watchdog = cycles;
}

void spyreprog_job_share(struct spyreprog_job *job)
{
	job->shared = true;
}

void spyreprog_job_symbols(struct spyreprog_job *job, unsigned int count)
{
	if (count > SPYRE_JOB_SYMBOLS)
		fail(job, "%u symbols; a job takes at most %u", count, SPYRE_JOB_SYMBOLS);
	else
		job->nsymbols = count;
}

void spyreprog_job_group(struct spyreprog_job *job, unsigned int group, uint32_t cores)
{
	if (group >= SPYRE_JOB_GROUPS) {
		fail(job, "multicast group %u; groups are 0 to %u", group, SPYRE_JOB_GROUPS - 1);
		return;
	}
	job->groups[group] = cores;
	job->has_groups = true;
}

int spyreprog_job_const(struct spyreprog_job *job, const uint32_t lanes[SPYRE_LANES])
{
	void *p;
	size_t i;

	if (job->error[0])
		return -1;
	for (i = 0; i < job->nconsts; i++)
		if (!memcmp(job->consts[i], lanes, sizeof(job->consts[i])))
			return (int)i;
	if (job->nconsts == SPYRE_JOB_CONSTS) {
		fail(job, "more than %u constant words", SPYRE_JOB_CONSTS);
		return -1;
	}
	p = realloc(job->consts, (job->nconsts + 1) * sizeof(job->consts[0]));
	if (!p) {
		fail(job, "out of memory");
		return -1;
	}
	job->consts = p;
	memcpy(job->consts[job->nconsts], lanes, sizeof(job->consts[0]));
	return (int)job->nconsts++;
}

int spyreprog_job_const_fp32(struct spyreprog_job *job, float value)
{
	uint32_t lanes[SPYRE_LANES], i;

	memcpy(&lanes[0], &value, sizeof(value));
	for (i = 1; i < SPYRE_LANES; i++)
		lanes[i] = lanes[0];
	return spyreprog_job_const(job, lanes);
}

int spyreprog_job_program(struct spyreprog_job *job, enum spyre_unit unit)
{
	void *p;

	if (job->error[0])
		return -1;
	if ((unsigned int)unit >= SPYRE_UNITS) {
		fail(job, "program for unknown unit %u", (unsigned int)unit);
		return -1;
	}
	p = realloc(job->progs, (job->nprogs + 1) * sizeof(*job->progs));
	if (!p) {
		fail(job, "out of memory");
		return -1;
	}
	job->progs = p;
	job->progs[job->nprogs] = (struct prog){ .unit = unit };
	return (int)job->nprogs++;
}

static struct prog *prog_of(struct spyreprog_job *job, int program)
{
	if (job->error[0])
		return NULL;
	if (program < 0 || (size_t)program >= job->nprogs) {
		fail(job, "no program %d", program);
		return NULL;
	}
	return &job->progs[program];
}

void spyreprog_job_insn(struct spyreprog_job *job, int program, const struct spyre_insn *insn)
{
	struct prog *p = prog_of(job, program);
	size_t cap;
	void *q;

	if (!p)
		return;
	if (p->n == p->cap) {
		cap = p->cap ? 2 * p->cap : 16;
		q = realloc(p->insns, cap * sizeof(*p->insns));
		if (!q) {
			fail(job, "out of memory");
			return;
		}
		p->insns = q;
		p->cap = cap;
	}
	if (insn->op == SPYRE_OP_MVLOOPCNT && ++p->depth > SPYRE_LOOPS)
		fail(job, "program %d: more than %u blocks inside each other", program,
		     SPYRE_LOOPS);
	if (insn->be > p->depth)
		fail(job, "program %d: instruction %zu ends %u blocks, %u are open", program, p->n,
		     insn->be, p->depth);
	else
		p->depth -= insn->be;
	p->insns[p->n++] = *insn;
}

int spyreprog_job_unit(struct spyreprog_job *job, unsigned int core, enum spyre_unit unit,
		       unsigned int corelet, int program)
{
	struct prog *p = prog_of(job, program);
	unsigned int max = unit <= SPYRE_UNIT_L3SU ? 0 : 1;
	struct unit *u;
	size_t i;

	if (!p)
		return -1;
	if (core >= 32 || corelet > max || p->unit != unit) {
		fail(job, "core %u corelet %u cannot run program %d as unit %u", core, corelet,
		     program, (unsigned int)unit);
		return -1;
	}
	for (i = 0; i < job->nunits; i++) {
		u = &job->units[i];
		if (u->u.core == core && u->u.unit == unit && u->u.corelet == corelet) {
			fail(job, "core %u corelet %u: unit %u named twice", core, corelet,
			     (unsigned int)unit);
			return -1;
		}
	}
	u = realloc(job->units, (job->nunits + 1) * sizeof(*u));
	if (!u) {
		fail(job, "out of memory");
		return -1;
	}
	job->units = u;
	u = &job->units[job->nunits];
	memset(u, 0, sizeof(*u));
	u->u.core = (uint8_t)core;
	u->u.unit = (uint8_t)unit;
	u->u.corelet = (uint8_t)corelet;
	u->u.program = (uint32_t)program;
	return (int)job->nunits++;
}

void spyreprog_job_init(struct spyreprog_job *job, int unit, unsigned int reg, unsigned int symbol,
			uint64_t value)
{
	struct unit *u;
	unsigned int i;
	void *p;

	if (job->error[0])
		return;
	if (unit < 0 || (size_t)unit >= job->nunits || reg >= SPYRE_REGS ||
	    (symbol != SPYRE_NO_SYMBOL && symbol >= SPYRE_JOB_SYMBOLS)) {
		fail(job, "initial value of unit %d: no register %u or no symbol %u", unit, reg,
		     symbol);
		return;
	}
	u = &job->units[unit];
	for (i = 0; i < u->ninits; i++) {
		if (u->inits[i].reg == reg) {
			fail(job, "initial value of register %u given twice", reg);
			return;
		}
	}
	p = realloc(u->inits, (u->ninits + 1) * sizeof(*u->inits));
	if (!p) {
		fail(job, "out of memory");
		return;
	}
	u->inits = p;
	u->inits[u->ninits++] = (struct spyre_job_init){
		.reg = (uint8_t)reg, .symbol = (uint16_t)symbol, .value = value,
	};
	if (symbol != SPYRE_NO_SYMBOL && symbol >= job->nsymbols)
		job->nsymbols = symbol + 1;
}

/* --- One job behind another ----------------------------------------------------------------- */

/* Mask of the registers that an instruction names. */
static uint32_t registers(const struct spyre_insn *in)
{
	const struct isa_op *o = isa_op(in->op);
	const struct isa_field *f;
	uint32_t mask = 0, v;

	for (f = o ? o->fields : NULL; f && f->kind != ISA_END; f++) {
		v = ISA_GET(in, f->at);
		if (f->kind == ISA_COUNT && in->c)
			mask |= 1u << (in->b & 15);
		else if (f->kind == ISA_REG || f->kind == ISA_LAR || f->kind == ISA_LBR ||
			 f->kind == ISA_EAR || f->kind == ISA_REG_OR_NONE)
			mask |= v < SPYRE_REGS ? 1u << v : 0;
	}
	return mask;
}

static struct unit *unit_of(struct spyreprog_job *job, const struct spyre_job_unit *u)
{
	size_t i;

	for (i = 0; i < job->nunits; i++)
		if (job->units[i].u.core == u->core && job->units[i].u.unit == u->unit &&
		    job->units[i].u.corelet == u->corelet)
			return &job->units[i];
	return NULL;
}

/* Appends second's program of a unit to p, with its constants renumbered. */
static void append(struct spyreprog_job *job, int p, const struct spyreprog_job *second,
		   uint32_t program, const int *consts)
{
	const struct prog *from = &second->progs[program];
	size_t i, k;

	for (i = 0; i < from->n; i++) {
		struct spyre_insn in = from->insns[i];
		const struct isa_op *o = isa_op(in.op);
		uint8_t *src[] = { &in.b, &in.c, &in.d };

		for (k = 0; o && isa_is_vector(o) && k < o->sources; k++)
			if (*src[k] >= SPYRE_OPND_CONST(0) && *src[k] != SPYRE_OPND_NONE)
				*src[k] = (uint8_t)SPYRE_OPND_CONST(
					consts[*src[k] - SPYRE_OPND_CONST(0)]);
		spyreprog_job_insn(job, p, &in);
	}
}

static bool fixed(const struct spyre_job_init *in)
{
	return in->symbol == SPYRE_NO_SYMBOL && in->value <= INT32_MAX;
}

/*
 * A register that is nothing but a fixed count of loops, and not in taken, is written into those
 * loops: it is free then. SPYRE_REGS: there is none. p is the text of this unit alone.
 */
static unsigned int free_count(struct spyreprog_job *job, int p, struct unit *u, uint32_t taken)
{
	struct prog *prog = &job->progs[p];
	unsigned int k, r;
	bool loops;
	size_t i;

	for (k = 0; k < u->ninits; k++) {
		r = u->inits[k].reg;
		if (taken >> r & 1 || !fixed(&u->inits[k]))
			continue;
		for (i = 0, loops = true; i < prog->n && loops; i++)
			loops = !(registers(&prog->insns[i]) >> r & 1) ||
				prog->insns[i].op == SPYRE_OP_MVLOOPCNT;
		if (!loops)
			continue;
		for (i = 0; i < prog->n; i++)
			if (registers(&prog->insns[i]) >> r & 1)
				prog->insns[i] = (struct spyre_insn){
					.op = SPYRE_OP_MVLOOPCNT,
					.imm = (uint32_t)u->inits[k].value,
				};
		u->ninits--;
		memmove(&u->inits[k], &u->inits[k + 1], (u->ninits - k) * sizeof(*u->inits));
		return r;
	}
	return SPYRE_REGS;
}

/*
 * Initial values of a unit that runs something before: they wait in registers that this does not
 * use, or are set by instructions when they are small and fixed.
 */
static void late_inits(struct spyreprog_job *job, int p, int handle, const struct unit *u,
		       const unsigned int *symbols)
{
	const struct prog *prog = &job->progs[p];
	struct unit *old = &job->units[handle];
	uint32_t busy = 0, late = 0;
	unsigned int r;
	size_t i;

	for (i = 0; i < prog->n; i++)
		busy |= registers(&prog->insns[i]);
	for (i = 0; i < old->ninits; i++)
		busy |= 1u << old->inits[i].reg;
	/* A value waiting in another waiting one's register would be lost. */
	for (i = 0; i < u->ninits; i++)
		if (!fixed(&u->inits[i]))
			late |= 1u << u->inits[i].reg;
	busy |= late;
	for (i = 0; i < u->ninits; i++) {
		const struct spyre_job_init in = u->inits[i];

		if (fixed(&in))
			continue;
		for (r = 0; r < SPYRE_REGS && busy >> r & 1; r++)
			;
		if (r == SPYRE_REGS)
			r = free_count(job, p, old, late);
		if (r == SPYRE_REGS) {
			fail(job, "no register is left for the initial values of what follows");
			return;
		}
		busy |= 1u << r;
		spyreprog_job_init(job, handle, r,
				   in.symbol == SPYRE_NO_SYMBOL || !symbols ? in.symbol :
				   symbols[in.symbol], in.value);
		sp_mvreg(job, p, in.reg, r, 0);
	}
	for (i = 0; i < u->ninits; i++)
		if (fixed(&u->inits[i]))
			sp_mvreg(job, p, u->inits[i].reg, SPYRE_REG_NONE,
				 (int32_t)u->inits[i].value);
}

static void then_unit(struct spyreprog_job *job, const struct spyreprog_job *second,
		      const struct unit *u, const unsigned int *symbols, const int *consts,
		      unsigned int tag, unsigned int stores)
{
	struct unit *old = unit_of(job, &u->u);
	int p = spyreprog_job_program(job, (enum spyre_unit)u->u.unit), handle;
	unsigned int i;
	size_t k;

	if (p < 0)
		return;
	if (old) {
		/* Others may run the same text, so this unit gets one of its own. */
		for (k = 0; k < job->progs[old->u.program].n; k++) {
			struct spyre_insn in = job->progs[old->u.program].insns[k];

			spyreprog_job_insn(job, p, &in);
		}
		old->u.program = (uint32_t)p;
		handle = (int)(old - job->units);
	} else {
		handle = spyreprog_job_unit(job, u->u.core, (enum spyre_unit)u->u.unit,
					    u->u.corelet, p);
	}
	if (old) {
		late_inits(job, p, handle, u, symbols);
	} else {
		for (i = 0; i < u->ninits; i++)
			spyreprog_job_init(job, handle, u->inits[i].reg,
					   u->inits[i].symbol == SPYRE_NO_SYMBOL || !symbols ?
					   u->inits[i].symbol : symbols[u->inits[i].symbol],
					   u->inits[i].value);
	}
	if (u->u.unit == SPYRE_UNIT_L3LU)
		sp_wait(job, p, tag, stores);
	append(job, p, second, u->u.program, consts);
}

void spyreprog_job_then(struct spyreprog_job *job, struct spyreprog_job *second,
			const unsigned int *symbols)
{
	int consts[SPYRE_JOB_CONSTS];
	uint32_t cores = 0, loads = 0;
	unsigned int stores = 0, tag;
	size_t i;

	if (!second) {
		fail(job, "out of memory");
		return;
	}
	if (second->error[0])
		fail(job, "%s", second->error);
	if (job->has_groups && second->has_groups)
		fail(job, "only one of two jobs behind each other may have multicast groups");
	if (job->stages + second->stages >= SPYRE_TAGS / 4 - 1 || second->stages)
		fail(job, "a job behind another is a single one, and at most %u follow",
		     SPYRE_TAGS / 4 - 1);
	for (i = 0; i < second->nunits; i++) {
		cores |= 1u << second->units[i].u.core;
		loads |= second->units[i].u.unit == SPYRE_UNIT_L3LU ?
			 1u << second->units[i].u.core : 0;
	}
	if (cores != loads)
		fail(job, "a job behind another begins with L3LU on each of its cores");
	job->shared = true;
	tag = SPYRE_TAGS - 1 - job->stages++;
	for (i = 0; i < second->nconsts; i++)
		consts[i] = spyreprog_job_const(job, second->consts[i]);
	/* Results are in memory when the units that store them have sent. */
	for (i = 0; i < job->nunits && !job->error[0]; i++) {
		struct spyre_job_unit *u = &job->units[i].u;
		const struct prog *from = &job->progs[u->program];
		size_t k, n = from->n;
		int p;

		if (u->unit != SPYRE_UNIT_L3SU)
			continue;
		stores++;
		p = spyreprog_job_program(job, SPYRE_UNIT_L3SU);
		for (k = 0; p >= 0 && k < n; k++) {
			struct spyre_insn in = job->progs[u->program].insns[k];

			spyreprog_job_insn(job, p, &in);
		}
		sp_send(job, p, tag, cores);
		u->program = (uint32_t)p;
	}
	if (!stores)
		fail(job, "a job that others follow stores by L3SU");
	for (i = 0; i < second->nunits && !job->error[0]; i++)
		then_unit(job, second, &second->units[i], symbols, consts, tag, stores);
	if (second->has_groups) {
		memcpy(job->groups, second->groups, sizeof(job->groups));
		job->has_groups = true;
	}
	spyreprog_job_free(second);
}

/* Units with equal programs share one. Programs that nobody runs any more go. */
static void share_programs(struct spyreprog_job *job)
{
	size_t i, j, n = 0;
	uint32_t *to = malloc((job->nprogs + 1) * sizeof(*to));
	bool *runs = calloc(job->nprogs + 1, sizeof(*runs));

	if (!to || !runs) {
		fail(job, "out of memory");
		goto out;
	}
	for (i = 0; i < job->nunits; i++)
		runs[job->units[i].u.program] = true;
	for (i = 0; i < job->nprogs; i++) {
		struct prog *p = &job->progs[i];

		for (j = 0; runs[i] && j < n; j++)
			if (job->progs[j].unit == p->unit && job->progs[j].n == p->n &&
			    !memcmp(job->progs[j].insns, p->insns, p->n * sizeof(*p->insns)))
				break;
		if (!runs[i] || j < n) {
			to[i] = (uint32_t)j;
			free(p->insns);
			continue;
		}
		to[i] = (uint32_t)n;
		job->progs[n++] = *p;
	}
	job->nprogs = n;
	for (i = 0; i < job->nunits; i++)
		job->units[i].u.program = to[job->units[i].u.program];
out:
	free(to);
	free(runs);
}

static int unit_order(const void *a, const void *b)
{
	const struct spyre_job_unit *x = &((const struct unit *)a)->u;
	const struct spyre_job_unit *y = &((const struct unit *)b)->u;
	int kx = x->core << 8 | x->unit << 1 | x->corelet;
	int ky = y->core << 8 | y->unit << 1 | y->corelet;

	return kx - ky;
}

int spyreprog_job_finish(struct spyreprog_job *job, void **out, size_t *size)
{
	struct image im = { .major = SPYRE_JOB_MAJOR, .minor = SPYRE_JOB_MINOR };
	struct spyreprog_err err;
	size_t i, at;
	int ret = -1;

	for (i = 0; i < job->nprogs && !job->error[0]; i++) {
		struct prog *p = &job->progs[i];

		if (p->depth)
			fail(job, "program %zu: %u blocks are not ended", i, p->depth);
		else if (!p->n || p->insns[p->n - 1].op != SPYRE_OP_RETURN)
			spyreprog_job_insn(job, (int)i,
					   &(struct spyre_insn){ .op = SPYRE_OP_RETURN });
	}
	if (!job->nunits)
		fail(job, "no unit runs a program");
	if (!job->error[0] && job->shared)
		share_programs(job);
	if (job->error[0])
		return -1;

	qsort(job->units, job->nunits, sizeof(*job->units), unit_order);
	im.watchdog = job->watchdog;
	im.nsymbols = job->nsymbols;
	im.has_groups = job->has_groups;
	memcpy(im.groups, job->groups, sizeof(im.groups));
	im.nprograms = (uint32_t)job->nprogs;
	im.nunits = (uint32_t)job->nunits;
	im.nconsts = (uint32_t)job->nconsts;
	for (i = 0; i < job->nprogs; i++)
		im.ninsns += (uint32_t)job->progs[i].n;
	for (i = 0; i < job->nunits; i++)
		im.ninits += job->units[i].ninits;
	im.programs = calloc(im.nprograms + 1u, sizeof(*im.programs));
	im.units = calloc(im.nunits + 1u, sizeof(*im.units));
	im.inits = calloc(im.ninits + 1u, sizeof(*im.inits));
	im.insns = calloc(im.ninsns + 1u, sizeof(*im.insns));
	im.consts = calloc(im.nconsts + 1u, sizeof(*im.consts));
	if (!im.programs || !im.units || !im.inits || !im.insns || !im.consts) {
		fail(job, "out of memory");
		goto out;
	}
	for (i = 0, at = 0; i < job->nprogs; i++) {
		struct prog *p = &job->progs[i];

		im.programs[i] = (struct spyre_job_program){
			.first = (uint32_t)at, .count = (uint32_t)p->n, .unit = (uint16_t)p->unit,
		};
		memcpy(im.insns + at, p->insns, p->n * sizeof(*p->insns));
		at += p->n;
	}
	for (i = 0, at = 0; i < job->nunits; i++) {
		struct unit *u = &job->units[i];

		im.units[i] = u->u;
		im.units[i].ninits = (uint8_t)u->ninits;
		im.units[i].init = u->ninits ? (uint32_t)at : 0;
		if (u->ninits)
			memcpy(im.inits + at, u->inits, u->ninits * sizeof(*u->inits));
		at += u->ninits;
	}
	if (im.nconsts)
		memcpy(im.consts, job->consts, im.nconsts * sizeof(*im.consts));
	image_layout(&im);
	ret = image_pack(&im, out, size, &err);
	if (ret)
		fail(job, "%s", err.text);
out:
	image_free(&im);
	return ret;
}

/* --- Instructions by name ------------------------------------------------------------------- */

void sp_loop(struct spyreprog_job *job, int p, uint32_t count)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){ .op = SPYRE_OP_MVLOOPCNT, .imm = count });
}

void sp_loop_reg(struct spyreprog_job *job, int p, unsigned int lcr)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = SPYRE_OP_MVLOOPCNT, .b = (uint8_t)lcr, .c = 1 });
}

void sp_end(struct spyreprog_job *job, int program)
{
	struct prog *p = prog_of(job, program);

	if (!p)
		return;
	if (!p->depth) {
		fail(job, "program %d: no block to end", program);
		return;
	}
	/* A block needs an instruction of its own to carry its end. */
	if (p->insns[p->n - 1].op == SPYRE_OP_MVLOOPCNT)
		spyreprog_job_insn(job, program, &(struct spyre_insn){ .op = SPYRE_OP_NOP });
	if (job->error[0])
		return;
	p->insns[p->n - 1].be++;
	p->depth--;
}

void sp_addimm(struct spyreprog_job *job, int p, unsigned int reg, int32_t imm)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = SPYRE_OP_ADDIMM, .a = (uint8_t)reg, .imm = (uint32_t)imm });
}

void sp_addreg(struct spyreprog_job *job, int p, unsigned int reg, unsigned int src, int32_t times)
{
	spyreprog_job_insn(job, p,
			   &(struct spyre_insn){ .op = SPYRE_OP_ADDREG,
						 .a = (uint8_t)reg,
						 .b = (uint8_t)src,
						 .imm = (uint32_t)times });
}

void sp_mvreg(struct spyreprog_job *job, int p, unsigned int reg, unsigned int src, int32_t imm)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = SPYRE_OP_MVREG, .a = (uint8_t)reg, .b = (uint8_t)src, .imm = (uint32_t)imm });
}

void sp_send(struct spyreprog_job *job, int p, unsigned int tag, uint32_t cores)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = SPYRE_OP_SYNC_SEND, .a = (uint8_t)tag, .imm = cores });
}

void sp_wait(struct spyreprog_job *job, int p, unsigned int tag, unsigned int n)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = SPYRE_OP_SYNC_WAIT, .a = (uint8_t)tag, .n = (uint16_t)n });
}

void sp_l3(struct spyreprog_job *job, int p, enum spyre_op op, unsigned int lar, unsigned int lbr,
	   unsigned int ear, unsigned int burst, unsigned int group, int32_t lar_inc,
	   int32_t ear_inc)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = (uint8_t)op, .a = (uint8_t)lar, .b = (uint8_t)lbr, .c = (uint8_t)ear,
		.d = (uint8_t)group, .n = (uint16_t)burst,
		.imm = (uint32_t)lar_inc, .imm2 = (uint32_t)ear_inc });
}

static void ldst(struct spyreprog_job *job, int p, enum spyre_op op, unsigned int lar,
		 unsigned int lbr, unsigned int fifo, unsigned int n, int32_t stride,
		 int32_t lar_inc)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = (uint8_t)op, .a = (uint8_t)lar, .b = (uint8_t)lbr, .d = (uint8_t)fifo,
		.n = (uint16_t)n, .imm = (uint32_t)stride, .imm2 = (uint32_t)lar_inc });
}

void sp_ld(struct spyreprog_job *job, int p, unsigned int lar, unsigned int lbr, unsigned int fifo,
	   unsigned int n, int32_t stride, int32_t lar_inc)
{
	ldst(job, p, SPYRE_OP_LD, lar, lbr, fifo, n, stride, lar_inc);
}

void sp_st(struct spyreprog_job *job, int p, unsigned int lar, unsigned int lbr, unsigned int fifo,
	   unsigned int n, int32_t stride, int32_t lar_inc)
{
	ldst(job, p, SPYRE_OP_ST, lar, lbr, fifo, n, stride, lar_inc);
}

void sp_pt_ldw(struct spyreprog_job *job, int p, unsigned int tile, enum spyre_format fmt,
	       unsigned int fifo)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = SPYRE_OP_PT_LDW, .a = (uint8_t)tile, .b = (uint8_t)fmt, .d = (uint8_t)fifo });
}

void sp_pt_mm(struct spyreprog_job *job, int p, unsigned int tile, enum spyre_format fmt, bool onto,
	      unsigned int fifo, unsigned int n, unsigned int row)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = SPYRE_OP_PT_MM, .a = (uint8_t)tile, .b = (uint8_t)fmt, .c = onto,
		.d = (uint8_t)fifo, .n = (uint16_t)n, .imm = row });
}

void sp_pt_psout(struct spyreprog_job *job, int p, unsigned int fifo, unsigned int n,
		 unsigned int row)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = SPYRE_OP_PT_PSOUT, .d = (uint8_t)fifo, .n = (uint16_t)n, .imm = row });
}

void sp_pt_psin(struct spyreprog_job *job, int p, enum spyre_format fmt, unsigned int fifo,
		unsigned int n, unsigned int row)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = SPYRE_OP_PT_PSIN, .b = (uint8_t)fmt, .d = (uint8_t)fifo, .n = (uint16_t)n,
		.imm = row });
}

void sp_vec(struct spyreprog_job *job, int p, enum spyre_op op, unsigned int a, unsigned int b,
	    unsigned int c, unsigned int d, unsigned int n, uint32_t imm, uint32_t fmts)
{
	spyreprog_job_insn(job, p, &(struct spyre_insn){
		.op = (uint8_t)op, .a = (uint8_t)a, .b = (uint8_t)b, .c = (uint8_t)c,
		.d = (uint8_t)d, .n = (uint16_t)n, .imm = imm, .imm2 = fmts });
}
