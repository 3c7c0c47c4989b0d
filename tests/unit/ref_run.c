// SPDX-License-Identifier: MIT
/* The functional half of the reference: one word or one instruction at a time, FIFOs at their real
 * depth. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref.h"
#include "ref_num.h"

#define WORD	 128u
#define L0_BYTES 8192u

struct fifo {
	uint8_t word[SPYRE_FIFO_DEPTH][WORD];
	unsigned int head, count;
};

struct unit {
	struct ref_seq seq;
	unsigned int core, kind, corelet;
	bool live;
	uint32_t word, time; /* within the instruction */
	unsigned int operand;
	bool released; /* by the group it waited for */
	uint32_t lane[4]
		     [4 * SPYRE_LANES]; /* operands b, c, d and the result, of the current time */
};

struct tile {
	uint8_t word[64][WORD];
	uint32_t w[256][SPYRE_LANES]; /* the words' elements as lanes, by k and column */
	int fmt;		      /* -1: never loaded */
};

struct corelet {
	struct fifo fifo[SPYRE_FIFOS];
	uint8_t l0[L0_BYTES];
	struct tile tile[REF_TILES];
	struct {
		uint8_t tile, fmt, fifo;
	} load[8];
	unsigned int nloads, load_word;
	uint32_t row[REF_ROWS][SPYRE_LANES];
	uint32_t v[2][SPYRE_VREGS][SPYRE_LANES]; /* PE, SFP */
};

/* Kept from run to run, per core: to map them anew takes longer than to clear them. */
static struct memories {
	uint8_t lx[SPYRE_LX_SIZE];
	struct corelet cl[2];
} * memories[REF_CORES];

struct group {
	uint32_t arrived;
	uint64_t ear[REF_CORES], lx[REF_CORES];
	uint32_t n[REF_CORES];
};

struct machine {
	const struct ref_job *job;
	struct ref_mem *mem;
	struct ref_result *res;
	uint8_t *lx[REF_CORES]; /* of cores that have units */
	struct corelet (*cl[REF_CORES])[2];
	struct unit unit[REF_CORES * REF_UNITS];
	unsigned int nunits;
	uint32_t tag[REF_CORES][SPYRE_TAGS];
	struct group group[SPYRE_JOB_GROUPS];
	uint64_t rng;
	bool failed;
};

enum step { BLOCKED, ADVANCED };

static uint32_t rnd(struct machine *m)
{
	m->rng = m->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->rng >> 33);
}

static enum step fail(struct machine *m, struct unit *u, enum spyre_status status,
		      enum spyre_prog_err code)
{
	if (!m->failed)
		*m->res = (struct ref_result){
			.status = status,
			.code = code,
			.core = (int)u->core,
			.unit = (int)(u->kind | u->corelet << 8),
			.pc = u->seq.pc,
		};
	m->failed = true;
	return BLOCKED;
}

static enum step retire(struct unit *u)
{
	ref_seq_retire(&u->seq);
	u->word = u->time = u->operand = 0;
	return ADVANCED;
}

/* --- Memories and FIFOs --------------------------------------------------------------------- */

static uint8_t *dmva(struct machine *m, struct unit *u, uint64_t addr)
{
	uint64_t s = addr >> SPYRE_SEGMENT_SHIFT, off = addr & (SPYRE_SEGMENT_SIZE - 1);

	if (addr % WORD || s >= SPYRE_SEGMENTS || off + WORD > m->mem->len[s]) {
		fail(m, u, SPYRE_ERR_FAULT, SPYRE_PE_NONE);
		return NULL;
	}
	return m->mem->seg[s] + off;
}

static uint8_t *local(struct machine *m, struct unit *u, uint8_t *mem, uint64_t size, uint64_t addr)
{
	if (addr % WORD)
		fail(m, u, SPYRE_ERR_PROGRAM, SPYRE_PE_ALIGN);
	else if (addr > size - WORD)
		fail(m, u, SPYRE_ERR_PROGRAM, SPYRE_PE_LX_RANGE);
	else
		return mem + addr;
	return NULL;
}

static bool push(struct machine *m, struct fifo *f, const uint8_t *word)
{
	if (f->count == SPYRE_FIFO_DEPTH)
		return false;
	memcpy(f->word[(f->head + f->count++) % SPYRE_FIFO_DEPTH], word, WORD);
	m->res->words++;
	return true;
}

static bool pop(struct fifo *f, uint8_t *word)
{
	if (!f->count)
		return false;
	memcpy(word, f->word[f->head], WORD);
	f->head = (f->head + 1) % SPYRE_FIFO_DEPTH;
	f->count--;
	return true;
}

/* A FIFO as its writer sees it: the ring's is the neighbour's. */
static struct fifo *fifo_out(struct machine *m, struct unit *u, unsigned int f)
{
	unsigned int core =
		f == SPYRE_FIFO_RING ? ref_ring_to(m->job, u->core, u->corelet) : u->core;

	return &(*m->cl[core])[u->corelet].fifo[f];
}

static struct fifo *fifo_in(struct machine *m, struct unit *u, unsigned int f)
{
	return &(*m->cl[u->core])[u->corelet].fifo[f];
}

static uint64_t local_addr(struct unit *u, const struct ref_insn *in)
{
	return u->seq.reg[in->a] + (in->b == SPYRE_REG_NONE ? 0 : u->seq.reg[in->b]);
}

/* --- L3LU, L3SU ----------------------------------------------------------------------------- */

/* All words of a burst are read before one is written: the two may overlap in the own LX. */
static enum step store_core(struct machine *m, struct unit *u, const struct ref_insn *in)
{
	uint64_t lx = local_addr(u, in), ear = u->seq.reg[in->c];
	uint8_t words[32][WORD], *p;
	unsigned int k;

	for (k = 0; k < in->n; k++) {
		p = local(m, u, m->lx[u->core], SPYRE_LX_SIZE, lx + (uint64_t)k * WORD);
		if (!p)
			return BLOCKED;
		memcpy(words[k], p, WORD);
	}
	if (ear >> 24 >= REF_CORES || !(m->job->cores >> (ear >> 24) & 1))
		return fail(m, u, SPYRE_ERR_PROGRAM, SPYRE_PE_CORE);
	for (k = 0; k < in->n; k++) {
		p = local(m, u, m->lx[ear >> 24], SPYRE_LX_SIZE,
			  (ear & 0xffffff) + (uint64_t)k * WORD);
		if (!p)
			return BLOCKED;
		memcpy(p, words[k], WORD);
	}
	return retire(u);
}

static enum step l3(struct machine *m, struct unit *u, const struct ref_insn *in)
{
	uint64_t lx = local_addr(u, in) + (uint64_t)u->word * WORD,
		 ear = u->seq.reg[in->c] + (uint64_t)u->word * WORD;
	uint8_t *to, *from;

	switch (in->op) {
	case SPYRE_OP_L3_LDU:
		to = local(m, u, m->lx[u->core], SPYRE_LX_SIZE, lx);
		from = to ? dmva(m, u, ear) : NULL;
		break;
	case SPYRE_OP_L3_STU:
		from = local(m, u, m->lx[u->core], SPYRE_LX_SIZE, lx);
		to = from ? dmva(m, u, ear) : NULL;
		break;
	default:
		return store_core(m, u, in);
	}
	if (!from || !to)
		return BLOCKED;
	memcpy(to, from, WORD);
	if (++u->word == in->n)
		retire(u);
	return ADVANCED;
}

static enum step multicast(struct machine *m, struct unit *u, const struct ref_insn *in)
{
	struct group *g = &m->group[in->d];
	uint32_t members = m->job->groups[in->d];
	unsigned int i, c, k;

	if (u->released) {
		u->released = false;
		return retire(u);
	}
	if (g->arrived >> u->core & 1)
		return BLOCKED;
	g->arrived |= 1u << u->core;
	g->ear[u->core] = u->seq.reg[in->c];
	g->lx[u->core] = local_addr(u, in);
	g->n[u->core] = in->n;
	if (g->arrived != members)
		return ADVANCED;
	for (i = 0; i < m->nunits; i++) {
		struct unit *o = &m->unit[i];

		c = o->core;
		if (o->kind != SPYRE_UNIT_L3LU || !(members >> c & 1))
			continue;
		if (g->ear[c] != g->ear[u->core] || g->n[c] != in->n)
			return fail(m, o, SPYRE_ERR_PROGRAM, SPYRE_PE_GROUP_MISMATCH);
		for (k = 0; k < in->n; k++) {
			uint8_t *to = local(m, o, m->lx[c], SPYRE_LX_SIZE, g->lx[c] + k * WORD);
			uint8_t *from = dmva(m, o, g->ear[c] + k * WORD);

			if (!to || !from)
				return BLOCKED;
			memcpy(to, from, WORD);
		}
		o->released = true;
	}
	g->arrived = 0;
	return ADVANCED;
}

/* --- LXLU, LXSU, L0LU, L0SU ------------------------------------------------------------------ */

static enum step load_store(struct machine *m, struct unit *u, const struct ref_insn *in)
{
	bool l0 = u->kind == SPYRE_UNIT_L0LU || u->kind == SPYRE_UNIT_L0SU;
	uint64_t addr = local_addr(u, in) + (uint64_t)((int64_t)in->imm * u->word);
	uint8_t *p;

	if (l0)
		p = local(m, u, (*m->cl[u->core])[u->corelet].l0, L0_BYTES, addr);
	else
		p = local(m, u, m->lx[u->core], SPYRE_LX_SIZE, addr);
	if (!p)
		return BLOCKED;
	if (in->op == SPYRE_OP_LD ? !push(m, fifo_out(m, u, in->d), p)
				  : !pop(fifo_in(m, u, in->d), p))
		return BLOCKED;
	if (++u->word == in->n)
		retire(u);
	return ADVANCED;
}

/* --- PT ------------------------------------------------------------------------------------- */

/* Element k of a word. */
static uint32_t element(const uint8_t *word, unsigned int fmt, unsigned int k)
{
	switch (ref_bits(fmt)) {
	case 4:
		return ref_widen(fmt, word[k / 2] >> (4 * (k % 2)) & 0xf);
	case 8:
		return ref_widen(fmt, word[k]);
	case 16:
		return ref_widen(fmt, word[2 * k] | (uint32_t)word[2 * k + 1] << 8);
	default:
		return ref_widen(fmt, word[4 * k] | (uint32_t)word[4 * k + 1] << 8 |
					      (uint32_t)word[4 * k + 2] << 16 |
					      (uint32_t)word[4 * k + 3] << 24);
	}
}

/* The load port: a process of its own that takes the loads PT gave it in turn. */
static enum step load_port(struct machine *m, struct unit *u)
{
	struct corelet *cl = &(*m->cl[u->core])[u->corelet];
	struct tile *t = &cl->tile[cl->load[0].tile];
	unsigned int i, n;

	if (!cl->nloads || !pop(fifo_in(m, u, cl->load[0].fifo), t->word[cl->load_word]))
		return BLOCKED;
	if (++cl->load_word < 64)
		return ADVANCED;
	t->fmt = cl->load[0].fmt;
	/* Rows of W lie one after the other in the words of the load. */
	n = WORD * 8 / ref_bits((unsigned int)t->fmt);
	for (i = 0; i < 64 * n; i++)
		t->w[i / SPYRE_LANES][i % SPYRE_LANES] =
			element(t->word[i / n], (unsigned int)t->fmt, i % n);
	cl->load_word = 0;
	memmove(cl->load, cl->load + 1, sizeof(cl->load) - sizeof(cl->load[0]));
	cl->nloads--;
	return ADVANCED;
}

/* Sum of 64 products in DL16, rounded after each. */
static uint32_t chunk_dl16(const uint32_t *x, const uint32_t (*w)[SPYRE_LANES], unsigned int col)
{
	uint32_t sum = 0;
	unsigned int k;

	for (k = 0; k < 64; k++)
		sum = ref_widen(SPYRE_SEN169_FP16,
				ref_narrow(SPYRE_SEN169_FP16,
					   ref_lane(fmaf(ref_float(x[k]), ref_float(w[k][col]),
							 ref_float(sum)))));
	return sum;
}

static enum step matmul(struct machine *m, struct unit *u, const struct ref_insn *in)
{
	struct corelet *cl = &(*m->cl[u->core])[u->corelet];
	const struct tile *t = &cl->tile[in->a];
	unsigned int per_word = WORD * 8 / ref_bits(in->b), i, k, col;
	uint32_t *row = cl->row[in->imm + (int32_t)u->word], x[256], acc;
	uint8_t word[WORD];

	for (i = 0; i < cl->nloads; i++)
		if (cl->load[i].tile == in->a)
			return BLOCKED;
	if (t->fmt != in->b)
		return fail(m, u, SPYRE_ERR_PROGRAM, SPYRE_PE_TILE);
	if (!pop(fifo_in(m, u, in->d), word))
		return BLOCKED;
	for (k = 0; k < per_word; k++)
		x[k] = element(word, in->b, k);
	for (col = 0; col < SPYRE_LANES; col++) {
		acc = in->c ? row[col] : 0;
		if (m->job->accumulate_dl16 && ref_is_float(in->b)) {
			for (k = 0; k < per_word; k += 64)
				acc = ref_op(SPYRE_OP_ADD, acc, chunk_dl16(x + k, t->w + k, col),
					     0);
			row[col] = acc;
			continue;
		}
		for (k = 0; k < per_word; k++) {
			uint32_t w = t->w[k][col];

			acc = ref_is_float(in->b) ? ref_lane(fmaf(ref_float(x[k]), ref_float(w),
								  ref_float(acc)))
						  : acc + x[k] * w;
		}
		row[col] = ref_is_float(in->b) ? ref_canon(acc) : acc;
	}
	if (++u->word == in->n)
		retire(u);
	return ADVANCED;
}

static enum step pt(struct machine *m, struct unit *u, const struct ref_insn *in)
{
	struct corelet *cl = &(*m->cl[u->core])[u->corelet];
	uint32_t *half = cl->row[in->imm + (int32_t)u->word / 2] + u->word % 2 * 32;
	uint8_t word[WORD];
	unsigned int i;

	switch (in->op) {
	case SPYRE_OP_PT_LDW:
		if (cl->nloads == 8)
			return BLOCKED;
		cl->load[cl->nloads].tile = in->a;
		cl->load[cl->nloads].fmt = in->b;
		cl->load[cl->nloads++].fifo = in->d;
		return retire(u);
	case SPYRE_OP_PT_MM:
		return matmul(m, u, in);
	case SPYRE_OP_PT_PSOUT:
		memcpy(word, half, WORD);
		if (!push(m, fifo_out(m, u, in->d), word))
			return BLOCKED;
		break;
	default:
		if (!pop(fifo_in(m, u, in->d), word))
			return BLOCKED;
		for (i = 0; i < 32; i++)
			half[i] = in->b == SPYRE_IEEE_FP32 ? ref_canon(element(word, in->b, i))
							   : element(word, in->b, i);
		break;
	}
	if (++u->word == in->n * 2u)
		retire(u);
	return ADVANCED;
}

/* --- PE, SFP -------------------------------------------------------------------------------- */

/* Lanes a word of fmt holds. */
static unsigned int lanes(unsigned int fmt)
{
	return WORD * 8 / ref_bits(fmt);
}

static uint32_t (*vregs(struct machine *m, struct unit *u))[SPYRE_LANES]
{
	return (*m->cl[u->core])[u->corelet].v[u->kind == SPYRE_UNIT_SFP];
}

/* One word of operand k, or all of one that is no FIFO. */
static enum step fetch(struct machine *m, struct unit *u, const struct ref_insn *in, unsigned int k)
{
	uint8_t opnd[3] = { in->b, in->c, in->d };
	unsigned int fmt = (uint32_t)in->imm2 >> (8 * k) & 0x7f, fifo = 0, i, n;
	unsigned int words = ref_operand_words(in, k, &fifo);
	uint32_t *lane = u->lane[k];
	uint8_t word[WORD];

	if (words) {
		if (!pop(fifo_in(m, u, fifo), word))
			return BLOCKED;
		if (!u->word)
			memset(lane, 0, sizeof(u->lane[k]));
		n = lanes(fmt);
		for (i = 0; i < n; i++)
			lane[u->word * n + i] = element(word, fmt, i);
		if (++u->word < words)
			return ADVANCED;
	} else if (opnd[k] == SPYRE_OPND_IMM) {
		for (i = 0; i < SPYRE_LANES; i++)
			lane[i] = (uint32_t)in->imm;
	} else if (opnd[k] >= SPYRE_OPND_CONST(0)) {
		memcpy(lane, m->job->consts[opnd[k] - SPYRE_OPND_CONST(0)],
		       sizeof(*m->job->consts));
	} else {
		/* Up to four registers in a row, where a push takes as many. */
		for (i = 0; i < 4 && opnd[k] + i < SPYRE_VREGS; i++)
			memcpy(lane + i * SPYRE_LANES, vregs(m, u)[opnd[k] + i],
			       sizeof(*vregs(m, u)));
	}
	u->word = 0;
	u->operand++;
	return ADVANCED;
}

static void compute(struct unit *u, const struct ref_insn *in)
{
	unsigned int i;

	if (ref_is_cross(in->op)) {
		ref_cross(in->op, u->lane[3], u->lane[0], u->lane[1], (uint32_t)in->imm, in->c);
		return;
	}
	for (i = 0; i < 4 * SPYRE_LANES; i++) {
		if (i < SPYRE_LANES || in->op == SPYRE_OP_MOV)
			u->lane[3][i] = ref_op(in->op, u->lane[0][i], u->lane[1][i], u->lane[2][i]);
	}
}

static enum step next_time(struct unit *u, const struct ref_insn *in)
{
	u->word = u->operand = 0;
	if (++u->time == in->n)
		retire(u);
	return ADVANCED;
}

static enum step vector(struct machine *m, struct unit *u, const struct ref_insn *in)
{
	unsigned int sources = ref_sources(in->op), fmt = (uint32_t)in->imm2 >> 24 & 0x7f, fifo = 0,
		     i, k, n, bits;
	unsigned int words;
	uint8_t word[WORD] = { 0 };

	if (u->operand < sources)
		return fetch(m, u, in, u->operand);
	if (u->operand == sources) {
		compute(u, in);
		u->operand++;
	}
	words = ref_operand_words(in, 3, &fifo);
	if (!words) {
		unsigned int from, per = ref_operand_words(in, 0, &from)
						 ? lanes((uint32_t)in->imm2 & 0x7f)
						 : SPYRE_LANES;

		/* A pop of a narrow format fills as many registers as it has lanes for. */
		for (i = 0;
		     i < (per > SPYRE_LANES && in->op == SPYRE_OP_MOV ? per / SPYRE_LANES : 1); i++)
			memcpy(vregs(m, u)[in->a + i], u->lane[3] + i * SPYRE_LANES,
			       sizeof(*vregs(m, u)));
		return next_time(u, in);
	}
	n = lanes(fmt);
	bits = ref_bits(fmt);
	for (i = 0; i < n; i++) {
		uint32_t code = ref_narrow(fmt, u->lane[3][u->word * n + i]);

		for (k = 0; k < bits; k += 8)
			word[(i * bits + k) / 8] |=
				(uint8_t)((bits == 4 ? code << (i % 2 * 4) : code >> k) & 0xff);
	}
	if (!push(m, fifo_out(m, u, fifo), word))
		return BLOCKED;
	if (++u->word == words)
		next_time(u, in);
	return ADVANCED;
}

/* --- What was executed ---------------------------------------------------------------------- */

static void count_operand(struct ref_seen *s, const struct ref_insn *in, unsigned int k)
{
	const uint8_t opnd[4] = { in->b, in->c, in->d, in->a };
	unsigned int fifo;

	if (ref_operand_words(in, k, &fifo)) {
		s->operand[in->op][k][(uint32_t)in->imm2 >> (8 * k) & 0xff]++;
		(k == 3 ? s->written : s->read)[fifo]++;
		return;
	}
	s->operand[in->op][k][opnd[k] == SPYRE_OPND_IMM	      ? REF_SEEN_IMM
			      : opnd[k] >= SPYRE_OPND_CONST(0) ? REF_SEEN_CONST
							       : REF_SEEN_V]++;
}

static void count_alike(struct ref_seen *s, const struct ref_insn *in)
{
	unsigned int fmt = (uint32_t)in->imm2 >> 24, k, fifo, n = 0;

	if (!ref_operand_words(in, 3, &fifo))
		return;
	for (k = 0; k < ref_sources(in->op); k++) {
		if (!ref_operand_words(in, k, &fifo))
			continue;
		if (((uint32_t)in->imm2 >> (8 * k) & 0xff) != fmt)
			return;
		n++;
	}
	if (n && fmt < SPYRE_FORMATS)
		s->alike[in->op][fmt]++;
}

static void count(const struct ref_job *job, const struct unit *u, const struct ref_insn *in)
{
	struct ref_seen *s = job->seen;
	unsigned int k;

	s->unit[in->op][u->kind]++;
	switch (in->op) {
	case SPYRE_OP_LD:
	case SPYRE_OP_PT_PSOUT:
		s->written[in->d]++;
		return;
	case SPYRE_OP_PT_LDW:
	case SPYRE_OP_PT_MM:
	case SPYRE_OP_PT_PSIN:
		k = in->op == SPYRE_OP_PT_MM && job->accumulate_dl16;
		s->operand[in->op][k][in->b]++;
		/* fall through */
	case SPYRE_OP_ST:
		s->read[in->d]++;
		return;
	}
	if (in->op < SPYRE_OP_MOV)
		return;
	for (k = 0; k < ref_sources(in->op); k++)
		count_operand(s, in, k);
	count_operand(s, in, 3);
	count_alike(s, in);
}

/* --- The machine ---------------------------------------------------------------------------- */

static enum step step(struct machine *m, struct unit *u)
{
	const struct ref_insn *in = ref_seq_insn(&u->seq);
	unsigned int c;

	switch (in->op) {
	case SPYRE_OP_RETURN:
		if (u->kind == SPYRE_UNIT_PT && (*m->cl[u->core])[u->corelet].nloads)
			return BLOCKED;
		u->live = false;
		u->seq.retired++;
		return ADVANCED;
	case SPYRE_OP_NOP:
	case SPYRE_OP_MVLOOPCNT:
	case SPYRE_OP_ADDIMM:
	case SPYRE_OP_ADDREG:
	case SPYRE_OP_MVREG:
		return retire(u);
	case SPYRE_OP_SYNC_SEND:
		/* What PT loads is an access of its own. */
		if (u->kind == SPYRE_UNIT_PT && (*m->cl[u->core])[u->corelet].nloads)
			return BLOCKED;
		for (c = 0; c < REF_CORES; c++) {
			if (!((in->imm ? (uint32_t)in->imm : 1u << u->core) >> c & 1))
				continue;
			if (++m->tag[c][in->a] > 65535)
				return fail(m, u, SPYRE_ERR_PROGRAM, SPYRE_PE_TAG_OVERFLOW);
		}
		return retire(u);
	case SPYRE_OP_SYNC_WAIT:
		if (m->tag[u->core][in->a] < in->n)
			return BLOCKED;
		m->tag[u->core][in->a] -= in->n;
		return retire(u);
	case SPYRE_OP_L3_LDM:
		return multicast(m, u, in);
	case SPYRE_OP_L3_LDU:
	case SPYRE_OP_L3_STU:
	case SPYRE_OP_L3_STC:
		return l3(m, u, in);
	case SPYRE_OP_LD:
	case SPYRE_OP_ST:
		return load_store(m, u, in);
	case SPYRE_OP_PT_LDW:
	case SPYRE_OP_PT_MM:
	case SPYRE_OP_PT_PSOUT:
	case SPYRE_OP_PT_PSIN:
		return pt(m, u, in);
	default:
		return vector(m, u, in);
	}
}

static enum step counted_step(struct machine *m, struct unit *u)
{
	const struct ref_insn *in = ref_seq_insn(&u->seq);
	uint64_t retired = u->seq.retired;
	enum step s = step(m, u);

	if (m->job->seen && u->seq.retired != retired)
		count(m->job, u, in);
	return s;
}

static void run(struct machine *m)
{
	bool advanced, live;
	unsigned int i, k, from;

	do {
		advanced = live = false;
		from = rnd(m);
		for (i = 0; i < m->nunits && !m->failed; i++) {
			struct unit *u = &m->unit[(i + from) % m->nunits];

			if (u->kind == SPYRE_UNIT_PT)
				for (k = 1 + rnd(m) % 32; k-- && load_port(m, u) == ADVANCED;)
					advanced = true;
			for (k = 1 + rnd(m) % 32; k-- && u->live && counted_step(m, u) == ADVANCED;)
				advanced = true;
			live |= u->live;
		}
		if (m->failed)
			return;
	} while (advanced);
	if (live)
		m->res->status = SPYRE_ERR_DEADLOCK;
}

void ref_run(const struct ref_job *job, struct ref_mem *mem, uint64_t seed, struct ref_result *res)
{
	struct machine *m = calloc(1, sizeof(*m));
	unsigned int c, i, x, t;

	*res = (struct ref_result){ .core = -1, .unit = -1 };
	m->job = job;
	m->mem = mem;
	m->res = res;
	m->rng = seed;
	for (c = 0; c < REF_CORES; c++) {
		if (!(job->cores >> c & 1))
			continue;
		if (!memories[c])
			memories[c] = malloc(sizeof(*memories[c]));
		if (!memories[c])
			abort();
		memset(memories[c], 0, sizeof(*memories[c]));
		m->lx[c] = memories[c]->lx;
		m->cl[c] = &memories[c]->cl;
		for (x = 0; x < 2; x++)
			for (t = 0; t < REF_TILES; t++)
				(*m->cl[c])[x].tile[t].fmt = -1;
		for (i = 0; i < REF_UNITS; i++) {
			struct unit *u = &m->unit[m->nunits];

			if (!job->unit[c][i].text)
				continue;
			ref_seq_start(&u->seq, &job->unit[c][i]);
			u->core = c;
			u->kind = job->unit[c][i].kind;
			u->corelet = job->unit[c][i].corelet;
			u->live = true;
			m->nunits++;
		}
	}
	run(m);
	for (i = 0; i < m->nunits; i++)
		res->instructions += m->unit[i].seq.retired;
	for (c = 0; c < REF_CORES && res->status == SPYRE_OK; c++) {
		if (!m->cl[c])
			continue;
		for (i = 0; i < 2 * SPYRE_FIFOS; i++)
			if ((*m->cl[c])[i % 2].fifo[i / 2].count)
				res->status = SPYRE_ERR_PROGRAM, res->code = SPYRE_PE_FIFO_LEFT,
				res->core = (int)c;
		for (i = 0; i < SPYRE_TAGS; i++)
			if (m->tag[c][i])
				res->status = SPYRE_ERR_PROGRAM, res->code = SPYRE_PE_FIFO_LEFT,
				res->core = (int)c;
	}
	free(m);
}
