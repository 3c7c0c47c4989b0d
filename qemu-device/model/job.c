/* SPDX-License-Identifier: MIT */
/* Checker and decoder of job binaries. Whatever comes in, it ends with an error or a job safe to run. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "pt.h"
#include "sha256.h"
#include "vec.h"

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

/* Formats that PE and SFP, and PT, compute with on every host. */
static bool vec_executes(unsigned int f)
{
	return f < SPYRE_FORMATS && (ISA_FORMATS_PS & 1u << f || spyre_vec_ops_plain.widen[f]);
}

static bool pt_executes(unsigned int f)
{
	return f < SPYRE_FORMATS && (ISA_FORMATS_PS | spyre_pt_ops_plain.formats) & 1u << f;
}

static bool in_bank(uint32_t r, unsigned int first)
{
	return r >= first && r < first + 4;
}

static bool is_v(unsigned int o)
{
	return o < SPYRE_VREGS;
}

static bool is_fifo(unsigned int o)
{
	return o >= SPYRE_OPND_FIFO(0) && o < SPYRE_OPND_IMM;
}

/* A format that a FIFO operand of the operation may have. */
static bool operand_format(const struct isa_op *o, unsigned int fmt)
{
	unsigned int f = fmt & ~SPYRE_FMT_HALF;

	if (!vec_executes(f))
		return false;
	if (fmt & SPYRE_FMT_HALF)
		return isa_formats[f].lanes == SPYRE_LANES / 2;
	return isa_formats[f].lanes <= SPYRE_LANES || (o->flags & ISA_RECAST);
}

static enum spyre_prog_err check_operand(const struct job_insn *i, const struct isa_op *o,
					 const struct isa_field *f, unsigned int unit, const struct job *job)
{
	uint32_t v = ISA_GET(i, f->at), fmt = (uint32_t)i->imm2 >> isa_fmt_shift(f->at) & 0xff;

	if (is_fifo(v)) {
		if (f->kind == ISA_DST ? !isa_writes(unit, v - SPYRE_OPND_FIFO(0)) :
					 !isa_reads(unit, v - SPYRE_OPND_FIFO(0), false))
			return SPYRE_PE_FIFO;
		return operand_format(o, fmt) ? SPYRE_PE_NONE : SPYRE_PE_FORMAT;
	}
	if (fmt)
		return SPYRE_PE_FORMAT;
	if (is_v(v))
		return SPYRE_PE_NONE;
	if (f->kind == ISA_DST || v == SPYRE_OPND_NONE)
		return SPYRE_PE_FIELD;
	if (v == SPYRE_OPND_IMM)
		return o->flags & ISA_IMM_OWN ? SPYRE_PE_FIELD : SPYRE_PE_NONE;
	if (v < SPYRE_OPND_CONST(0))
		return SPYRE_PE_FIELD;
	return v - SPYRE_OPND_CONST(0) < job->nconsts ? SPYRE_PE_NONE : SPYRE_PE_CONST;
}

/* Fields an operation does not name are 0. */
#define ZERO(x) do { if (x) return SPYRE_PE_FIELD; } while (0)

static enum spyre_prog_err check_field(const struct job_insn *i, const struct isa_op *o,
				       const struct isa_field *f, unsigned int unit, const struct job *job)
{
	uint32_t v = ISA_GET(i, f->at);
	bool ok = true;

	switch ((enum isa_kind)f->kind) {
	case ISA_END:
	case ISA_S32:
		break;
	case ISA_COUNT:
		ZERO(i->c > 1 || (i->c ? v : i->b));
		ok = !i->c || in_bank(i->b, SPYRE_LCR0);
		return ok ? SPYRE_PE_NONE : SPYRE_PE_REGISTER;
	case ISA_REG:
	case ISA_REG_OR_NONE:
		ok = v < SPYRE_REGS || (f->kind == ISA_REG_OR_NONE && v == SPYRE_REG_NONE);
		return ok ? SPYRE_PE_NONE : SPYRE_PE_REGISTER;
	case ISA_LAR:
		return in_bank(v, SPYRE_LAR0) ? SPYRE_PE_NONE : SPYRE_PE_REGISTER;
	case ISA_LBR:
		return in_bank(v, SPYRE_LBR0) || v == SPYRE_REG_NONE ? SPYRE_PE_NONE : SPYRE_PE_REGISTER;
	case ISA_EAR:
		return in_bank(v, SPYRE_EAR0) ? SPYRE_PE_NONE : SPYRE_PE_REGISTER;
	case ISA_BOOL:
		ZERO(v > 1);
		break;
	case ISA_NUM:
		ZERO(v < f->min || v > f->max);
		break;
	case ISA_STRIDE:
		ZERO(v % SPYRE_STICK);
		break;
	case ISA_CORES:
		ZERO(v & ~job->core_mask);
		break;
	case ISA_TAG:
		return v < SPYRE_TAGS ? SPYRE_PE_NONE : SPYRE_PE_TAG;
	case ISA_TILE:
		ZERO(v >= PT_TILES);
		break;
	case ISA_GROUP:
		return v < SPYRE_JOB_GROUPS && job->groups[v] ? SPYRE_PE_NONE : SPYRE_PE_GROUP;
	case ISA_FIFO:
		ok = o->flags & ISA_WRITES ? isa_writes(unit, v) : isa_reads(unit, v, o->flags & ISA_LOAD_PORT);
		return ok ? SPYRE_PE_NONE : SPYRE_PE_FIFO;
	case ISA_FMT:
		ok = pt_executes(v) && (f->max & 1u << v);
		return ok ? SPYRE_PE_NONE : SPYRE_PE_FORMAT;
	case ISA_DST:
	case ISA_SRC:
		return check_operand(i, o, f, unit, job);
	}
	return SPYRE_PE_NONE;
}

/*
 * A word of a format with more lanes than a register has is a run of V registers on the other side, which
 * begins at a multiple of its length.
 */
static enum spyre_prog_err check_recast(const struct job_insn *i)
{
	unsigned int from = isa_vregs(i->imm2 & 0xff), to = isa_vregs((uint32_t)i->imm2 >> 24);

	if ((from > 1 && !is_v(i->a)) || (to > 1 && !is_v(i->b)))
		return SPYRE_PE_FORMAT;
	ZERO((from > 1 && i->a % from) || (to > 1 && i->b % to));
	return SPYRE_PE_NONE;
}

static enum spyre_prog_err check_insn(const struct job_insn *i, unsigned int unit, const struct job *job)
{
	const struct isa_op *o = isa_op(i->op);
	const struct isa_field *f;
	enum spyre_prog_err code;
	uint32_t formats = 0;	/* bytes of imm2 that belong to an operand */
	unsigned int named = 0, at;
	bool vector;

	if (!o || !(o->units >> unit & 1))
		return SPYRE_PE_OPCODE;
	vector = isa_is_vector(o);
	for (f = o->fields; f->kind; f++) {
		code = check_field(i, o, f, unit, job);
		if (code)
			return code;
		named |= 1u << f->at;
		if (f->kind == ISA_COUNT)
			named |= 1u << ISA_B | 1u << ISA_C;
		if (f->kind == ISA_DST || f->kind == ISA_SRC) {
			formats |= 0xffu << isa_fmt_shift(f->at);
			named |= 1u << ISA_IMM2;
		}
		if (f->kind == ISA_SRC && ISA_GET(i, f->at) == SPYRE_OPND_IMM)
			named |= 1u << ISA_IMM;
	}
	for (at = ISA_A; at < ISA_PLACES; at++) {
		uint32_t v = ISA_GET(i, at);

		if (named >> at & 1)
			continue;
		/* NONE is a source that the operation has not. */
		ZERO(v && !(vector && at >= ISA_B && at <= ISA_D && v == SPYRE_OPND_NONE));
	}
	ZERO(vector && (uint32_t)i->imm2 & ~formats);
	ZERO((o->flags & ISA_ROWS) && (uint32_t)i->imm + i->n > PT_ROWS);
	ZERO((o->flags & ISA_LANES) && (uint32_t)i->imm + i->c > SPYRE_LANES);
	return o->flags & ISA_RECAST ? check_recast(i) : SPYRE_PE_NONE;
}

static void note_use(struct job_program *p, const struct job_insn *i, const struct isa_op *o)
{
	const uint8_t opnd[4] = { i->b, i->c, i->d, i->a };
	unsigned int k;

	p->memory |= (o->flags & ISA_MEMORY) != 0;
	if (i->op == SPYRE_OP_L3_LDM) {
		p->multicast = true;
		p->groups |= (uint16_t)(1u << i->d);
	} else if (i->op == SPYRE_OP_L3_STC) {
		p->stores_cores = true;
	} else if (i->op == SPYRE_OP_SYNC_SEND) {
		if (i->imm && p->far_sends && p->far_sends != (uint32_t)i->imm)
			p->mixed_sends = true;
		p->far_sends |= (uint32_t)i->imm;
	} else if (isa_is_vector(o)) {
		for (k = 0; k < 4; k++)
			if (opnd[k] == SPYRE_OPND_FIFO(SPYRE_FIFO_RING) && (k == 3 || (i->srcs & 1u << k)))
				p->ring = true;
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

/* Fills .fifos and .ways of an instruction of PE or SFP. */
static void find_ways(struct job_insn *i)
{
	const uint8_t opnd[4] = { i->b, i->c, i->d, i->a };
	unsigned int k, fmt, stream = 0, format = SPYRE_FORMATS, seen = 1u << SPYRE_FIFO_RING;

	i->fifos = 0;
	i->ways = JOB_WAY_STREAM | (i->n == 1 ? JOB_WAY_SHORT : 0);
	for (k = 0; k < 4; k++) {
		if ((k < 3 && !(i->srcs & 1u << k)) || opnd[k] < 0x20 || opnd[k] >= 0x20 + SPYRE_FIFOS)
			continue;
		fmt = (uint32_t)i->imm2 >> (8 * k) & 0xff;
		if (k < 3)
			i->fifos |= (uint8_t)(1u << k);
		else
			stream = 1;
		if (seen >> (opnd[k] - 0x20u) & 1)
			i->ways = 0;
		seen |= 1u << (opnd[k] - 0x20u);
		if ((fmt & SPYRE_FMT_HALF) || isa_vregs(fmt) > 1)
			i->ways = 0;
		if (format == SPYRE_FORMATS)
			format = fmt;
		if (fmt != format || (fmt != SPYRE_SEN169_FP16 && fmt != SPYRE_IEEE_FP16 && fmt != SPYRE_BFLOAT16))
			i->ways &= (uint8_t)~JOB_WAY_STREAM;
	}
	if (!stream || !i->fifos)
		i->ways &= (uint8_t)~JOB_WAY_STREAM;
	if (!stream && !i->fifos)
		i->ways |= JOB_WAY_REGISTERS;
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
	const struct isa_op *o;
	enum spyre_prog_err code;
	uint32_t pc;

	for (pc = 0; pc < p->count; pc++) {
		struct job_insn *i = &insns[pc];

		code = check_insn(i, p->unit, job);
		if (code)
			return fail(err, code, pc);
		o = isa_op(i->op);
		i->srcs = (uint8_t)((1u << o->sources) - 1);
		i->cost = o->cost;
		if (isa_is_vector(o))
			find_ways(i);
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
		note_use(p, i, o);
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
