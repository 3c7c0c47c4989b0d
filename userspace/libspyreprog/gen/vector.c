// SPDX-License-Identifier: MIT
/*
 * Elementwise operations and operations along rows.
 *
 * Both stream chunks of rows through LX: a chunk is so many rows of all column blocks (elementwise
 * operations see the whole tensor as one column block). A core's chunks go to its corelets in turn;
 * each corelet has two slots for operands and two for results, so loading, computing and storing
 * overlap. What is left when the chunks are equal, the tail, is the last core's.
 */
#include <stdlib.h>
#include <string.h>

#include <spyre/num.h>

#include "walk.h"


struct stream {
	struct spyreprog_job *job;
	unsigned int nin;		/* operands, 0 to 2 */
	uint32_t icols, ocols;		/* column blocks */
	unsigned int wi, wo;		/* sticks of 64 lanes */
	uint64_t rows;			/* stored rows */
	uint32_t chunk;			/* rows of a chunk */
	uint64_t chunks;		/* full ones */
	uint32_t tail;			/* rows left */
	uint32_t lx_in[2], lx_out[2];	/* first slots */
	enum spyre_fifo out;
	/* One chunk of n rows in LXLU, the computing unit and LXSU. */
	void (*load)(const struct stream *s, int p, uint32_t n);
	void (*compute)(const struct stream *s, int p, uint32_t n);
	enum spyre_unit unit;
	const void *arg;
};

static uint32_t slot_in(const struct stream *s)
{
	return s->nin * s->icols * s->chunk * s->wi * SPYRE_STICK;
}

static uint32_t slot_out(const struct stream *s)
{
	return s->ocols * s->chunk * s->wo * SPYRE_STICK;
}

/* Largest chunk that fits, at most want rows. */
static bool place(struct stream *s, uint64_t want)
{
	uint64_t in, out;
	unsigned int c;

	for (s->chunk = (uint32_t)(want < 1 ? 1 : want > 128 ? 128 : want); s->chunk; s->chunk--) {
		in = (uint64_t)s->nin * s->icols * s->chunk * s->wi * SPYRE_STICK;
		out = (uint64_t)s->ocols * s->chunk * s->wo * SPYRE_STICK;
		if (4 * (in + out) > SPYRE_LX_SIZE)
			continue;
		for (c = 0; c < 2; c++) {
			s->lx_in[c] = (uint32_t)(c * 2 * in);
			s->lx_out[c] = (uint32_t)(4 * in + c * 2 * out);
		}
		s->chunks = s->rows / s->chunk;
		s->tail = (uint32_t)(s->rows % s->chunk);
		return true;
	}
	return false;
}

/* Rows of all columns between slot and memory. EAR e moves on; EAR3, LAR2 are used up. */
static void l3_rows(const struct stream *s, int p, enum spyre_op op, unsigned int e, uint32_t cols,
		    uint32_t n, unsigned int w)
{
	int32_t next = (int32_t)((s->rows - n) * w * SPYRE_STICK);

	sp_mvreg(s->job, p, SPYRE_EAR0 + 3, SPYRE_EAR0 + e, 0);
	if (cols > 1)
		sp_loop(s->job, p, cols);
	gen_l3(s->job, p, op, SPYRE_LAR0 + 2, SPYRE_EAR0 + 3, (uint64_t)n * w, 0);
	if (cols > 1) {
		sp_addimm(s->job, p, SPYRE_EAR0 + 3, next);
		sp_end(s->job, p);
	}
	sp_addimm(s->job, p, SPYRE_EAR0 + e, (int32_t)(n * w * SPYRE_STICK));
}

static void l3lu_chunk(const struct stream *s, int p, unsigned int c, uint32_t n)
{
	unsigned int o;

	sp_wait(s->job, p, TAG_FREE + c, 1);
	sp_mvreg(s->job, p, SPYRE_LAR0 + 2, SPYRE_LAR0 + c, 0);
	for (o = 0; o < s->nin; o++)
		l3_rows(s, p, SPYRE_OP_L3_LDU, o, s->icols, n, s->wi);
	sp_send(s->job, p, TAG_LOADED + c, 0);
	gen_swap(s->job, p, SPYRE_LAR0 + c, SPYRE_LAR0 + 3, s->lx_in[c], slot_in(s));
}

static void l3su_chunk(const struct stream *s, int p, unsigned int c, uint32_t n)
{
	sp_wait(s->job, p, TAG_STAGED + c, 1);
	sp_mvreg(s->job, p, SPYRE_LAR0 + 2, SPYRE_LAR0 + c, 0);
	l3_rows(s, p, SPYRE_OP_L3_STU, 0, s->ocols, n, s->wo);
	sp_send(s->job, p, TAG_EMPTY + c, 0);
	gen_swap(s->job, p, SPYRE_LAR0 + c, SPYRE_LAR0 + 3, s->lx_out[c], slot_out(s));
}

/*
 * A pair of slots is two credits: who empties them gives them at the start, who fills them takes
 * what is left at the end, so that all tags end at 0.
 */
static void credits(const struct stream *s, int p, unsigned int tag)
{
	sp_send(s->job, p, tag, 0);
	sp_send(s->job, p, tag, 0);
}

/* LCR0: pairs of chunks, LCR1: 1 when corelet 0 has one more. */
static int l3(const struct stream *s, enum spyre_unit unit, bool tail)
{
	void (*chunk)(const struct stream *s, int p, unsigned int c, uint32_t n) =
		unit == SPYRE_UNIT_L3LU ? l3lu_chunk : l3su_chunk;
	const uint32_t *lx = unit == SPYRE_UNIT_L3LU ? s->lx_in : s->lx_out;
	int p = spyreprog_job_program(s->job, unit);
	unsigned int c;

	for (c = 0; c < 2; c++) {
		gen_set(s->job, p, SPYRE_LAR0 + c, lx[c]);
		if (unit == SPYRE_UNIT_L3SU)
			credits(s, p, TAG_EMPTY + c);
	}
	sp_loop_reg(s->job, p, SPYRE_LCR0);
	chunk(s, p, 0, s->chunk);
	chunk(s, p, 1, s->chunk);
	sp_end(s->job, p);
	sp_loop_reg(s->job, p, SPYRE_LCR0 + 1);
	chunk(s, p, 0, s->chunk);
	sp_end(s->job, p);
	if (tail)
		chunk(s, p, 0, s->tail);
	for (c = 0; unit == SPYRE_UNIT_L3LU && c < 2; c++)
		sp_wait(s->job, p, TAG_FREE + c, 2);
	return p;
}

/* Corelet units: LCR0 is the number of chunks. */
static int lxlu(const struct stream *s, unsigned int c, bool tail)
{
	int p = spyreprog_job_program(s->job, SPYRE_UNIT_LXLU);
	unsigned int t;

	gen_set(s->job, p, SPYRE_LAR0 + 2, s->lx_in[c]);
	credits(s, p, TAG_FREE + c);
	sp_loop_reg(s->job, p, SPYRE_LCR0);
	for (t = 0; t < (tail ? 2u : 1u); t++) {
		sp_wait(s->job, p, TAG_LOADED + c, 1);
		s->load(s, p, t ? s->tail : s->chunk);
		sp_send(s->job, p, TAG_FREE + c, 0);
		gen_swap(s->job, p, SPYRE_LAR0 + 2, SPYRE_LAR0 + 3, s->lx_in[c], slot_in(s));
		if (!t)
			sp_end(s->job, p);
	}
	return p;
}

static int compute(const struct stream *s, bool tail)
{
	int p = spyreprog_job_program(s->job, s->unit);

	sp_loop_reg(s->job, p, SPYRE_LCR0);
	s->compute(s, p, s->chunk);
	sp_end(s->job, p);
	if (tail)
		s->compute(s, p, s->tail);
	return p;
}

/* Results come row by row; they are stored column by column. */
static void store(const struct stream *s, int p, uint32_t n)
{
	int32_t column = (int32_t)(n * s->wo * SPYRE_STICK);

	sp_mvreg(s->job, p, SPYRE_LAR0, SPYRE_LAR0 + 2, 0);
	if (s->ocols == 1) {
		sp_st(s->job, p, SPYRE_LAR0, SPYRE_REG_NONE, s->out, n * s->wo, SPYRE_STICK, 0);
		return;
	}
	sp_loop(s->job, p, n);
	if (s->wo == 1) {
		sp_st(s->job, p, SPYRE_LAR0, SPYRE_REG_NONE, s->out, s->ocols, column, SPYRE_STICK);
	} else {
		sp_mvreg(s->job, p, SPYRE_LAR0 + 1, SPYRE_LAR0, 0);
		sp_loop(s->job, p, s->ocols);
		sp_st(s->job, p, SPYRE_LAR0 + 1, SPYRE_REG_NONE, s->out, 2, SPYRE_STICK, column);
		sp_end(s->job, p);
		sp_addimm(s->job, p, SPYRE_LAR0, (int32_t)(2 * SPYRE_STICK));
	}
	sp_end(s->job, p);
}

static int lxsu(const struct stream *s, unsigned int c, bool tail)
{
	int p = spyreprog_job_program(s->job, SPYRE_UNIT_LXSU);
	unsigned int t;

	gen_set(s->job, p, SPYRE_LAR0 + 2, s->lx_out[c]);
	sp_loop_reg(s->job, p, SPYRE_LCR0);
	for (t = 0; t < (tail ? 2u : 1u); t++) {
		sp_wait(s->job, p, TAG_EMPTY + c, 1);
		store(s, p, t ? s->tail : s->chunk);
		sp_send(s->job, p, TAG_STAGED + c, 0);
		gen_swap(s->job, p, SPYRE_LAR0 + 2, SPYRE_LAR0 + 3, s->lx_out[c], slot_out(s));
		if (!t)
			sp_end(s->job, p);
	}
	sp_wait(s->job, p, TAG_EMPTY + c, 2);
	return p;
}

/* Registers and programs of all units. cores: mask. */
static bool build(struct stream *s, uint32_t cores)
{
	int prog[2][2][4], l3l[2] = { -1, -1 }, l3s[2], tails, u;
	uint32_t used[32], n = 0, i, k;
	unsigned int t, c, o, out_sym = s->nin;

	for (i = 0; i < 32; i++)
		if (cores >> i & 1)
			used[n++] = i;
	if (s->chunks < n)
		n = s->chunks ? (uint32_t)s->chunks : 1;
	tails = s->tail ? 2 : 1;
	for (t = 0; t < (unsigned int)tails; t++) {
		if (s->nin)
			l3l[t] = l3(s, SPYRE_UNIT_L3LU, t);
		l3s[t] = l3(s, SPYRE_UNIT_L3SU, t);
		for (c = 0; c < 2; c++) {
			/* Corelet 1 never has the tail. */
			prog[t][c][0] = s->nin ? lxlu(s, c, t && !c) : -1;
			prog[t][c][1] = compute(s, t && !c);
			prog[t][c][2] = lxsu(s, c, t && !c);
		}
	}
	for (i = 0; i < n; i++) {
		uint64_t first = s->chunks * i / n, count = s->chunks * (i + 1) / n - first;
		uint64_t row = first * s->chunk;

		t = i == n - 1 && s->tail;
		for (k = 0; k < 2; k++) {
			if (!k && !s->nin)
				continue;
			u = spyreprog_job_unit(s->job, used[i],
					       k ? SPYRE_UNIT_L3SU : SPYRE_UNIT_L3LU, 0,
					       k ? l3s[t] : l3l[t]);
			for (o = 0; o < (k ? 1 : s->nin); o++)
				spyreprog_job_init(s->job, u, SPYRE_EAR0 + o, k ? out_sym : o,
						   row * (k ? s->wo : s->wi) * SPYRE_STICK);
			spyreprog_job_init(s->job, u, SPYRE_LCR0, SPYRE_NO_SYMBOL, count / 2);
			spyreprog_job_init(s->job, u, SPYRE_LCR0 + 1, SPYRE_NO_SYMBOL, count % 2);
		}
		for (c = 0; c < 2; c++) {
			uint64_t mine = c ? count / 2 : (count + 1) / 2;

			for (k = 0; k < 3; k++) {
				static const uint8_t unit[] = { SPYRE_UNIT_LXLU, 0,
								SPYRE_UNIT_LXSU };

				if (prog[t][c][k] < 0)
					continue;
				u = spyreprog_job_unit(s->job, used[i], k == 1 ? s->unit : unit[k],
						       c, prog[t][c][k]);
				spyreprog_job_init(s->job, u, SPYRE_LCR0, SPYRE_NO_SYMBOL, mine);
			}
		}
	}
	spyreprog_job_symbols(s->job, s->nin + 1);
	return true;
}

/* --- Elementwise ---------------------------------------------------------------------------- */

struct ewop {
	enum spyre_op op;
	unsigned int nin;
	bool sfp, scalar;
	bool int_in, int_out;
};

static const struct ewop ewops[SPYREGEN_OPS] = {
	[SPYREGEN_COPY] = { SPYRE_OP_MOV, 1, false, false, false, false },
	[SPYREGEN_OP_RELU] = { SPYRE_OP_MAX, 1, false, true, false, false },
	[SPYREGEN_OP_GELU] = { SPYRE_OP_GELU, 1, true, false, false, false },
	[SPYREGEN_OP_SIGMOID] = { SPYRE_OP_SIGMOID, 1, true, false, false, false },
	[SPYREGEN_OP_TANH] = { SPYRE_OP_TANH, 1, true, false, false, false },
	[SPYREGEN_EXP] = { SPYRE_OP_EXP, 1, true, false, false, false },
	[SPYREGEN_LN] = { SPYRE_OP_LN, 1, true, false, false, false },
	[SPYREGEN_SQRT] = { SPYRE_OP_SQRT, 1, true, false, false, false },
	[SPYREGEN_RSQRT] = { SPYRE_OP_RSQRT, 1, true, false, false, false },
	[SPYREGEN_RECIP] = { SPYRE_OP_RECIP, 1, true, false, false, false },
	[SPYREGEN_ABS] = { SPYRE_OP_ABS, 1, false, false, false, false },
	[SPYREGEN_NEG] = { SPYRE_OP_NEG, 1, false, false, false, false },
	[SPYREGEN_ERF] = { SPYRE_OP_ERF, 1, true, false, false, false },
	[SPYREGEN_ADDS] = { SPYRE_OP_ADD, 1, false, true, false, false },
	[SPYREGEN_MULS] = { SPYRE_OP_MUL, 1, false, true, false, false },
	[SPYREGEN_MAXS] = { SPYRE_OP_MAX, 1, false, true, false, false },
	[SPYREGEN_MINS] = { SPYRE_OP_MIN, 1, false, true, false, false },
	[SPYREGEN_ADD] = { SPYRE_OP_ADD, 2, false, false, false, false },
	[SPYREGEN_SUB] = { SPYRE_OP_SUB, 2, false, false, false, false },
	[SPYREGEN_MUL] = { SPYRE_OP_MUL, 2, false, false, false, false },
	[SPYREGEN_MAX] = { SPYRE_OP_MAX, 2, false, false, false, false },
	[SPYREGEN_MIN] = { SPYRE_OP_MIN, 2, false, false, false, false },
	[SPYREGEN_FILL] = { SPYRE_OP_MOV, 0, false, true, false, false },
	[SPYREGEN_CMPEQ] = { SPYRE_OP_CMPEQ, 2, false, false, false, false },
	[SPYREGEN_CMPLT] = { SPYRE_OP_CMPLT, 2, false, false, false, false },
	[SPYREGEN_CMPLE] = { SPYRE_OP_CMPLE, 2, false, false, false, false },
	[SPYREGEN_IADD] = { SPYRE_OP_IADD, 2, false, false, true, true },
	[SPYREGEN_ISUB] = { SPYRE_OP_ISUB, 2, false, false, true, true },
	[SPYREGEN_IMUL] = { SPYRE_OP_IMUL, 2, false, false, true, true },
	[SPYREGEN_IMIN] = { SPYRE_OP_IMIN, 2, false, false, true, true },
	[SPYREGEN_IMAX] = { SPYRE_OP_IMAX, 2, false, false, true, true },
	[SPYREGEN_AND] = { SPYRE_OP_AND, 2, false, false, true, true },
	[SPYREGEN_OR] = { SPYRE_OP_OR, 2, false, false, true, true },
	[SPYREGEN_XOR] = { SPYRE_OP_XOR, 2, false, false, true, true },
	[SPYREGEN_SHL] = { SPYRE_OP_SHL, 2, false, false, true, true },
	[SPYREGEN_SHR] = { SPYRE_OP_SHR, 2, false, false, true, true },
	[SPYREGEN_SRA] = { SPYRE_OP_SRA, 2, false, false, true, true },
	[SPYREGEN_I2F] = { SPYRE_OP_I2F, 1, false, false, true, false },
	[SPYREGEN_F2I] = { SPYRE_OP_F2I, 1, false, false, false, true },
};

struct ew {
	const struct spyregen_elementwise *e;
	const struct ewop *o;
};

static void ew_ld(const struct stream *s, int p, unsigned int lar, enum spyre_fifo fifo,
		  uint32_t words)
{
	sp_ld(s->job, p, lar, SPYRE_REG_NONE, fifo, words, SPYRE_STICK,
	      (int32_t)(words * SPYRE_STICK));
}

static void ew_load(const struct stream *s, int p, uint32_t n)
{
	const struct ew *ew = s->arg;
	enum spyre_fifo a = ew->o->sfp ? SPYRE_FIFO_LXLU_SFP0 : SPYRE_FIFO_LXLU_PE0;
	uint32_t words = n * s->wi, step = SPYRE_FIFO_DEPTH, turns = words / step,
		 rest = words % step;

	sp_mvreg(s->job, p, SPYRE_LAR0, SPYRE_LAR0 + 2, 0);
	if (s->nin == 1) {
		ew_ld(s, p, SPYRE_LAR0, a, words);
		return;
	}
	/* In turns that fit a FIFO: PE needs both operands before it takes another of either. */
	sp_mvreg(s->job, p, SPYRE_LAR0 + 1, SPYRE_LAR0 + 2, (int32_t)(words * SPYRE_STICK));
	if (turns) {
		if (turns > 1)
			sp_loop(s->job, p, turns);
		ew_ld(s, p, SPYRE_LAR0, SPYRE_FIFO_LXLU_PE0, step);
		ew_ld(s, p, SPYRE_LAR0 + 1, SPYRE_FIFO_LXLU_PE1, step);
		if (turns > 1)
			sp_end(s->job, p);
	}
	if (rest) {
		ew_ld(s, p, SPYRE_LAR0, SPYRE_FIFO_LXLU_PE0, rest);
		ew_ld(s, p, SPYRE_LAR0 + 1, SPYRE_FIFO_LXLU_PE1, rest);
	}
}

static void ew_compute(const struct stream *s, int p, uint32_t n)
{
	const struct ew *ew = s->arg;
	const struct spyregen_elementwise *e = ew->e;
	unsigned int b = SPYRE_OPND_FIFO(ew->o->sfp ? SPYRE_FIFO_LXLU_SFP0 : SPYRE_FIFO_LXLU_PE0),
		     c = 0;
	enum spyre_format fc = 0, fb = e->in;
	uint32_t imm = 0;

	if (s->nin == 2) {
		c = SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE1);
		fc = e->in;
	} else if (ew->o->scalar) {
		imm = e->op == SPYREGEN_OP_RELU ? 0 : spyre_fp32_bits(e->scalar);
		if (s->nin) {
			c = SPYRE_OPND_IMM;
		} else {
			b = SPYRE_OPND_IMM;
			fb = 0;
		}
	}
	sp_vec(s->job, p, ew->o->op, SPYRE_OPND_FIFO(s->out), b, c, 0, n, imm,
	       SPYRE_FMTS(fb, fc, 0, e->out));
}

static struct spyreprog_job *finish(struct stream *s, uint32_t cores, char *err)
{
	if (build(s, cores ? cores : 0xffffffffu) && !spyreprog_job_error(s->job))
		return s->job;
	gen_fail(err, "%s", spyreprog_job_error(s->job));
	spyreprog_job_free(s->job);
	return NULL;
}

static bool fmt_ok(enum spyre_format f)
{
	return gen_is16(f) || f == SPYRE_IEEE_FP32;
}

static bool format_of(enum spyre_format f, bool integer)
{
	return integer ? f == SPYRE_IEEE_INT32 : fmt_ok(f);
}

unsigned int spyregen_operands(enum spyregen_op op)
{
	return (unsigned int)op < SPYREGEN_OPS ? ewops[op].nin : 0;
}

/* --- Stretched operands --------------------------------------------------------------------- */

/* Steps of 128 rows of one column block; an operand brings so many rows, or one. */
struct stretch {
	const struct spyregen_elementwise *e;
	uint32_t rows[2];
};

static enum spyregen_stretch way(const struct spyregen_elementwise *e, unsigned int o)
{
	return o ? e->b : e->a;
}

static bool by_row(enum spyregen_stretch s)
{
	return s == SPYREGEN_FULL || s == SPYREGEN_COLUMN;
}

static void s_load(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct stretch *st = g->arg;
	const struct spyregen_elementwise *e = st->e;
	uint32_t words = st->rows[c] * gen_lane_words(e->in), n;
	unsigned int o;

	for (o = 0; o < 2; o++) {
		sp_mvreg(w->job, p, SPYRE_LAR0 + o, SPYRE_LAR0 + 2, (int32_t)walk_at(w, g, o, c));
		if (!by_row(way(e, o)))
			sp_ld(w->job, p, SPYRE_LAR0 + o, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PE0 + o,
			      gen_lane_words(e->in), SPYRE_STICK, 0);
	}
	/* In turns that fit a FIFO: PE needs both operands before it takes another of either. */
	for (n = SPYRE_FIFO_DEPTH; words; words -= n) {
		n = words < n ? words : n;
		for (o = 0; o < 2; o++)
			if (by_row(way(e, o)))
				sp_ld(w->job, p, SPYRE_LAR0 + o, SPYRE_REG_NONE,
				      SPYRE_FIFO_LXLU_PE0 + o, n, SPYRE_STICK,
				      (int32_t)(n * SPYRE_STICK));
	}
}

static void s_compute(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct stretch *st = g->arg;
	const struct spyregen_elementwise *e = st->e;
	unsigned int o, operand[2];
	uint32_t fmts = SPYRE_FMTS(0, 0, 0, e->out);
	bool each = false;

	for (o = 0; o < 2; o++) {
		operand[o] = SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0 + o);
		if (way(e, o) == SPYREGEN_FULL) {
			fmts |= (uint32_t)e->in << 8 * o;
			continue;
		}
		if (!by_row(way(e, o)))
			sp_vec(w->job, p,
			       way(e, o) == SPYREGEN_ROW ? SPYRE_OP_MOV : SPYRE_OP_BCAST,
			       SPYRE_OPND_V(o), operand[o], 0, 0, 1, 0, SPYRE_FMTS(e->in, 0, 0, 0));
		else
			each = true;
	}
	if (each)
		sp_loop(w->job, p, st->rows[c]);
	for (o = 0; o < 2; o++) {
		if (way(e, o) == SPYREGEN_COLUMN)
			sp_vec(w->job, p, SPYRE_OP_BCAST, SPYRE_OPND_V(o), operand[o], 0, 0, 1, 0,
			       SPYRE_FMTS(e->in, 0, 0, 0));
	}
	for (o = 0; o < 2; o++)
		if (way(e, o) != SPYREGEN_FULL)
			operand[o] = SPYRE_OPND_V(o);
	sp_vec(w->job, p, ewops[e->op].op, SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU), operand[0],
	       operand[1], 0, each ? 1 : st->rows[c], 0, fmts);
	if (each)
		sp_end(w->job, p);
}

static struct spyreprog_job *stretched(const struct spyregen_elementwise *e, char *err)
{
	uint64_t in = gen_lane_words(e->in) * SPYRE_STICK, out = gen_lane_words(e->out) * SPYRE_STICK;
	uint64_t stored = spyregen_rows(e->m);
	struct walk w = { .cores = e->cores, .nin = 2, .symbol = { 0, 1, 2 },
			  .unit = SPYRE_UNIT_PE };
	struct walk_grid grids[2];
	struct stretch st[2];
	unsigned int n = 0, i, c, o;

	if (ewops[e->op].nin != 2)
		return gen_fail(err, "only operations on a and b stretch operands");
	w.symbol[2] = 2;
	for (i = 0; i < 2; i++) {
		uint32_t rows = i ? (uint32_t)(stored % 128) : 128;
		uint64_t row = i ? stored / 128 * 128 : 0;
		struct walk_grid *g = &grids[n];
		struct stretch *s = &st[n];

		*g = (struct walk_grid){
			.rows = (e->n + 63) / 64, .cols = i ? 1 : (uint32_t)(stored / 128),
			.load = s_load, .compute = s_compute, .store = walk_store, .arg = s,
		};
		if (!rows || !g->cols)
			continue;
		*s = (struct stretch){ e, { (rows + 1) / 2, rows / 2 } };
		g->out = (struct walk_side){
			.base = row * out, .inner = (int64_t)(128 * out),
			.outer = (int64_t)(stored * out), .half = (int64_t)(s->rows[0] * out),
		};
		for (o = 0; o < 2; o++) {
			enum spyregen_stretch k = way(e, o);

			g->in[o] = (struct walk_side){
				.base = by_row(k) ? row * in : 0,
				.inner = by_row(k) ? (int64_t)(128 * in) : 0,
				.outer = k == SPYREGEN_FULL ? (int64_t)(stored * in) :
					 k == SPYREGEN_ROW ? (int64_t)in : 0,
				.half = by_row(k) ? (int64_t)(s->rows[0] * in) : 0,
			};
		}
		for (c = 0; c < 2; c++) {
			g->out.words[c] = s->rows[c] * gen_lane_words(e->out);
			for (o = 0; o < 2 && s->rows[c]; o++)
				g->in[o].words[c] = gen_lane_words(e->in) *
						    (by_row(way(e, o)) ? s->rows[c] : 1);
		}
		n++;
	}
	w.grids = grids;
	w.ngrids = n;
	w.job = spyreprog_job_new();
	if (!w.job)
		return gen_fail(err, "out of memory");
	if (!walk(&w) || spyreprog_job_error(w.job)) {
		gen_fail(err, "%s", spyreprog_job_error(w.job) ? spyreprog_job_error(w.job) :
			 "a step does not fit LX");
		spyreprog_job_free(w.job);
		return NULL;
	}
	return w.job;
}

struct spyreprog_job *spyregen_elementwise(const struct spyregen_elementwise *e, char *err)
{
	bool copy = e->op == SPYREGEN_COPY;
	struct ewop cast = { .nin = 1 };
	struct ew ew = { .e = e };
	struct stream s = {
		.icols = 1, .ocols = 1, .load = ew_load, .compute = ew_compute, .arg = &ew
	};

	if ((unsigned int)e->op >= SPYREGEN_OPS)
		return gen_fail(err, "unknown operation %u", (unsigned int)e->op);
	if (!e->m || !e->n)
		return gen_fail(err, "m and n must be at least 1");
	ew.o = &ewops[e->op];
	if (copy ? (unsigned int)e->in >= SPYRE_FORMATS || (unsigned int)e->out >= SPYRE_FORMATS :
	    !format_of(e->out, ew.o->int_out) || (ew.o->nin && !format_of(e->in, ew.o->int_in)))
		return gen_fail(err, "formats %s in, %s out: this operation takes %s in, %s out",
				gen_format_name(e->in), gen_format_name(e->out),
				copy ? "any" : ew.o->int_in ? "IEEE_INT32" :
				"SEN169_FP16, IEEE_FP16, BFLOAT16 or IEEE_FP32",
				copy ? "any" : ew.o->int_out ? "IEEE_INT32" :
				"one of floating point");
	if ((ew.o->nin && !gen_fits(e->in, e->m, e->n, err)) || !gen_fits(e->out, e->m, e->n, err))
		return NULL;
	if ((unsigned int)e->a > SPYREGEN_SCALAR || (unsigned int)e->b > SPYREGEN_SCALAR)
		return gen_fail(err, "unknown way to stretch an operand");
	if (e->a != SPYREGEN_FULL || e->b != SPYREGEN_FULL)
		return stretched(e, err);
	if (copy) {
		if (gen_width(e->in) > SPYRE_LANES || gen_width(e->out) > SPYRE_LANES)
			return gen_cast(&(struct gen_cast){ .m = e->m, .n = e->n, .in = e->in,
							    .out = e->out, .cores = e->cores, .to = 1 },
					err);
		cast.op = gen_cast_op(e->in, e->out);
		ew.o = &cast;
	}
	s.nin = ew.o->nin;
	s.wi = gen_lane_words(e->in);
	s.wo = gen_lane_words(e->out);
	s.rows = spyregen_rows(e->m) * (((uint64_t)e->n + 63) / 64);
	s.unit = ew.o->sfp ? SPYRE_UNIT_SFP : SPYRE_UNIT_PE;
	s.out = ew.o->sfp ? SPYRE_FIFO_SFP_LXSU : SPYRE_FIFO_PE_LXSU;
	place(&s, (s.rows + 63) / 64);
	s.job = spyreprog_job_new();
	if (!s.job)
		return gen_fail(err, "out of memory");
	return finish(&s, e->cores, err);
}

/* --- Rows ----------------------------------------------------------------------------------- */

struct rowctx {
	const struct spyregen_row *r;
	unsigned int passes;
	int mask;		/* constant: 1.0 in the last block's lanes that count, or -1 */
	int lane0;		/* constant: 1.0 in lane 0 */
	int lanes;		/* constant: lane numbers, fp32 */
};

static void row_load(const struct stream *s, int p, uint32_t n)
{
	const struct rowctx *rc = s->arg;
	int32_t column = (int32_t)(n * s->wi * SPYRE_STICK);

	sp_mvreg(s->job, p, SPYRE_LAR0, SPYRE_LAR0 + 2, 0);
	if (n > 1)
		sp_loop(s->job, p, n);
	if (rc->passes > 1)
		sp_loop(s->job, p, rc->passes);
	if (s->wi == 1) {
		sp_ld(s->job, p, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_SFP0, s->icols, column,
		      0);
	} else {
		sp_mvreg(s->job, p, SPYRE_LAR0 + 1, SPYRE_LAR0, 0);
		if (s->icols > 1)
			sp_loop(s->job, p, s->icols);
		sp_ld(s->job, p, SPYRE_LAR0 + 1, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_SFP0, 2,
		      SPYRE_STICK, column);
		if (s->icols > 1)
			sp_end(s->job, p);
	}
	if (rc->passes > 1)
		sp_end(s->job, p);
	sp_addimm(s->job, p, SPYRE_LAR0, (int32_t)(s->wi * SPYRE_STICK));
	if (n > 1)
		sp_end(s->job, p);
}

#define IN	SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_SFP0)
#define OUT	SPYRE_OPND_FIFO(SPYRE_FIFO_SFP_LXSU)
#define V(i)	SPYRE_OPND_V(i)
#define NEG_INF	0xff800000u
#define POS_INF	0x7f800000u

/* V0 = op over the row, starting from start; lanes that do not count are start. */
static void row_reduce(const struct stream *s, int p, enum spyre_op op, uint32_t start)
{
	const struct rowctx *rc = s->arg;
	enum spyre_format f = rc->r->fmt;
	uint32_t full = s->icols - (rc->mask >= 0);

	sp_vec(s->job, p, SPYRE_OP_MOV, V(0), SPYRE_OPND_IMM, 0, 0, 1, start, 0);
	if (full)
		sp_vec(s->job, p, op, V(0), V(0), IN, 0, full, 0, SPYRE_FMTS(0, f, 0, 0));
	if (rc->mask >= 0) {
		sp_vec(s->job, p, SPYRE_OP_SEL, V(3), IN, SPYRE_OPND_IMM,
		       SPYRE_OPND_CONST(rc->mask), 1, start, SPYRE_FMTS(f, 0, 0, 0));
		sp_vec(s->job, p, op, V(0), V(0), V(3), 0, 1, 0, 0);
	}
}

/* The next block to V3, lanes that do not count as they are. */
static void row_take(const struct stream *s, int p)
{
	const struct rowctx *rc = s->arg;

	sp_vec(s->job, p, SPYRE_OP_MOV, V(3), IN, 0, 0, 1, 0, SPYRE_FMTS(rc->r->fmt, 0, 0, 0));
}

/* V3 becomes start where lanes do not count. */
static void row_mask(const struct stream *s, int p, bool masked, uint32_t start)
{
	const struct rowctx *rc = s->arg;

	if (masked)
		sp_vec(s->job, p, SPYRE_OP_SEL, V(3), V(3), SPYRE_OPND_IMM,
		       SPYRE_OPND_CONST(rc->mask), 1, start, 0);
}

enum step {
	ADD_EXP,	/* V2 += exp(x - V1) */
	PUT_EXP,	/* exp(x - V1) * V4 */
	PUT_LESS,	/* x - V1 - V4 */
	ADD_SQUARE,	/* V2 += (x - V1)^2 */
	PUT_SCALED,	/* (x - V1) * V4 */
	ARG,		/* V0 the maxima, V5 their blocks' first columns, V6 this block's */
};

static void row_step(const struct stream *s, int p, enum step step, bool masked)
{
	const struct rowctx *rc = s->arg;
	const uint32_t to = SPYRE_FMTS(0, 0, 0, rc->r->fmt);

	if (step == ARG) {
		row_take(s, p);
		row_mask(s, p, masked, NEG_INF);
		sp_vec(s->job, p, SPYRE_OP_CMPLT, V(7), V(0), V(3), 0, 1, 0, 0);
		sp_vec(s->job, p, SPYRE_OP_MAX, V(0), V(0), V(3), 0, 1, 0, 0);
		sp_vec(s->job, p, SPYRE_OP_SEL, V(5), V(6), V(5), V(7), 1, 0, 0);
		sp_vec(s->job, p, SPYRE_OP_ADD, V(6), V(6), SPYRE_OPND_IMM, 0, 1,
		       spyre_fp32_bits(64), 0);
		return;
	}
	sp_vec(s->job, p, SPYRE_OP_SUB, V(3), IN, V(1), 0, 1, 0, SPYRE_FMTS(rc->r->fmt, 0, 0, 0));
	if (step == ADD_EXP || step == PUT_EXP)
		sp_vec(s->job, p, SPYRE_OP_EXP, V(3), V(3), 0, 0, 1, 0, 0);
	row_mask(s, p, masked, 0);
	switch (step) {
	case ADD_EXP:
		sp_vec(s->job, p, SPYRE_OP_ADD, V(2), V(2), V(3), 0, 1, 0, 0);
		break;
	case ADD_SQUARE:
		sp_vec(s->job, p, SPYRE_OP_FMA, V(2), V(3), V(3), V(2), 1, 0, 0);
		break;
	case PUT_LESS:
		sp_vec(s->job, p, SPYRE_OP_SUB, OUT, V(3), V(4), 0, 1, 0, to);
		break;
	default:
		sp_vec(s->job, p, SPYRE_OP_MUL, OUT, V(3), V(4), 0, 1, 0, to);
	}
}

static void row_steps(const struct stream *s, int p, enum step step)
{
	const struct rowctx *rc = s->arg;
	uint32_t full = s->icols - (rc->mask >= 0);

	if (full > 1)
		sp_loop(s->job, p, full);
	if (full)
		row_step(s, p, step, false);
	if (full > 1)
		sp_end(s->job, p);
	if (rc->mask >= 0)
		row_step(s, p, step, true);
}

static void set(const struct stream *s, int p, unsigned int v, uint32_t bits)
{
	sp_vec(s->job, p, SPYRE_OP_MOV, V(v), SPYRE_OPND_IMM, 0, 0, 1, bits, 0);
}

/* V1 = the mean, V4 = 1 / sqrt(mean square of x - V1, + eps). */
static void row_moments(const struct stream *s, int p, bool centred)
{
	const struct rowctx *rc = s->arg;
	uint32_t share = spyre_fp32_bits(1.0f / (float)rc->r->n);

	if (centred) {
		row_reduce(s, p, SPYRE_OP_ADD, 0);
		sp_vec(s->job, p, SPYRE_OP_RSUM, V(1), V(0), 0, 0, 1, 0, 0);
		sp_vec(s->job, p, SPYRE_OP_MUL, V(1), V(1), SPYRE_OPND_IMM, 0, 1, share, 0);
	} else {
		set(s, p, 1, 0);
	}
	set(s, p, 2, 0);
	row_steps(s, p, ADD_SQUARE);
	sp_vec(s->job, p, SPYRE_OP_RSUM, V(4), V(2), 0, 0, 1, 0, 0);
	sp_vec(s->job, p, SPYRE_OP_MUL, V(4), V(4), SPYRE_OPND_IMM, 0, 1, share, 0);
	sp_vec(s->job, p, SPYRE_OP_ADD, V(4), V(4), SPYRE_OPND_IMM, 0, 1,
	       spyre_fp32_bits(rc->r->eps), 0);
	sp_vec(s->job, p, SPYRE_OP_RSQRT, V(4), V(4), 0, 0, 1, 0, 0);
}

static bool whole_rows(enum spyregen_rowop op)
{
	return op == SPYREGEN_SOFTMAX || op >= SPYREGEN_LOG_SOFTMAX;
}

static enum spyre_format out_format(const struct spyregen_row *r)
{
	return r->op == SPYREGEN_ARGMAX ? SPYRE_IEEE_INT32 : r->fmt;
}

static void row_compute(const struct stream *s, int p, uint32_t n)
{
	const struct rowctx *rc = s->arg;

	if (n > 1)
		sp_loop(s->job, p, n);
	switch (rc->r->op) {
	case SPYREGEN_SOFTMAX:
		row_reduce(s, p, SPYRE_OP_MAX, NEG_INF);
		sp_vec(s->job, p, SPYRE_OP_RMAX, V(1), V(0), 0, 0, 1, 0, 0);
		sp_vec(s->job, p, SPYRE_OP_MOV, V(2), SPYRE_OPND_IMM, 0, 0, 1, 0, 0);
		row_steps(s, p, ADD_EXP);
		sp_vec(s->job, p, SPYRE_OP_RSUM, V(4), V(2), 0, 0, 1, 0, 0);
		sp_vec(s->job, p, SPYRE_OP_RECIP, V(4), V(4), 0, 0, 1, 0, 0);
		row_steps(s, p, PUT_EXP);
		break;
	case SPYREGEN_LOG_SOFTMAX:
		row_reduce(s, p, SPYRE_OP_MAX, NEG_INF);
		sp_vec(s->job, p, SPYRE_OP_RMAX, V(1), V(0), 0, 0, 1, 0, 0);
		set(s, p, 2, 0);
		row_steps(s, p, ADD_EXP);
		sp_vec(s->job, p, SPYRE_OP_RSUM, V(4), V(2), 0, 0, 1, 0, 0);
		sp_vec(s->job, p, SPYRE_OP_LN, V(4), V(4), 0, 0, 1, 0, 0);
		row_steps(s, p, PUT_LESS);
		break;
	case SPYREGEN_LAYER_NORM:
	case SPYREGEN_RMS_NORM:
		row_moments(s, p, rc->r->op == SPYREGEN_LAYER_NORM);
		row_steps(s, p, PUT_SCALED);
		break;
	case SPYREGEN_ARGMAX:
		set(s, p, 0, NEG_INF);
		set(s, p, 5, 0);
		set(s, p, 6, 0);
		row_steps(s, p, ARG);
		sp_vec(s->job, p, SPYRE_OP_RMAX, V(1), V(0), 0, 0, 1, 0, 0);
		sp_vec(s->job, p, SPYRE_OP_CMPEQ, V(7), V(0), V(1), 0, 1, 0, 0);
		sp_vec(s->job, p, SPYRE_OP_ADD, V(5), V(5), SPYRE_OPND_CONST(rc->lanes), 0, 1, 0,
		       0);
		sp_vec(s->job, p, SPYRE_OP_SEL, V(5), V(5), SPYRE_OPND_IMM, V(7), 1,
		       spyre_fp32_bits(0x1p30f), 0);
		sp_vec(s->job, p, SPYRE_OP_RMIN, V(1), V(5), 0, 0, 1, 0, 0);
		sp_vec(s->job, p, SPYRE_OP_F2I, V(1), V(1), 0, 0, 1, 0, 0);
		break;
	case SPYREGEN_ROWMIN:
		row_reduce(s, p, SPYRE_OP_MIN, POS_INF);
		sp_vec(s->job, p, SPYRE_OP_RMIN, V(1), V(0), 0, 0, 1, 0, 0);
		break;
	case SPYREGEN_ROWMAX:
		row_reduce(s, p, SPYRE_OP_MAX, NEG_INF);
		sp_vec(s->job, p, SPYRE_OP_RMAX, V(1), V(0), 0, 0, 1, 0, 0);
		break;
	default:
		row_reduce(s, p, SPYRE_OP_ADD, 0);
		sp_vec(s->job, p, SPYRE_OP_RSUM, V(1), V(0), 0, 0, 1, 0, 0);
		if (rc->r->op == SPYREGEN_MEAN)
			sp_vec(s->job, p, SPYRE_OP_MUL, V(1), V(1), SPYRE_OPND_IMM, 0, 1,
			       spyre_fp32_bits(1.0f / (float)rc->r->n), 0);
	}
	if (!whole_rows(rc->r->op))
		sp_vec(s->job, p, SPYRE_OP_SEL, OUT, V(1), SPYRE_OPND_IMM,
		       SPYRE_OPND_CONST(rc->lane0), 1, 0, SPYRE_FMTS(0, 0, 0, out_format(rc->r)));
	if (n > 1)
		sp_end(s->job, p);
}

struct spyreprog_job *spyregen_row(const struct spyregen_row *r, char *err)
{
	struct rowctx rc = { .r = r, .mask = -1, .lane0 = -1, .lanes = -1 };
	struct stream s = { .nin = 1, .load = row_load, .compute = row_compute, .arg = &rc,
			    .unit = SPYRE_UNIT_SFP, .out = SPYRE_FIFO_SFP_LXSU };
	uint32_t lanes[SPYRE_LANES], i;

	if (!r->m || !r->n)
		return gen_fail(err, "m and n must be at least 1");
	if ((unsigned int)r->op >= SPYREGEN_ROWOPS)
		return gen_fail(err, "unknown operation %u", (unsigned int)r->op);
	if (!fmt_ok(r->fmt))
		return gen_fail(err, "formats: SEN169_FP16, IEEE_FP16, BFLOAT16 or IEEE_FP32");
	if (r->op == SPYREGEN_ARGMAX && r->n > 1u << 24)
		return gen_fail(err, "%u columns are too many to be numbered in fp32: at most 2^24",
				r->n);
	if (!gen_fits(r->fmt, r->m, r->n, err) ||
	    !gen_fits(out_format(r), r->m, whole_rows(r->op) ? r->n : 1, err))
		return NULL;
	s.wi = gen_lane_words(r->fmt);
	s.wo = gen_lane_words(out_format(r));
	s.icols = (r->n + 63) / 64;
	s.ocols = whole_rows(r->op) ? s.icols : 1;
	s.rows = spyregen_rows(r->m);
	if (s.rows * s.wi * SPYRE_STICK > INT32_MAX || !place(&s, (s.rows + 63) / 64))
		return gen_fail(err, "%u x %u: rows of so many columns do not fit LX twice", r->m,
				r->n);
	rc.passes = !whole_rows(r->op) ? 1 : r->op == SPYREGEN_RMS_NORM ? 2 : 3;
	s.job = spyreprog_job_new();
	if (!s.job)
		return gen_fail(err, "out of memory");
	if (r->n % 64) {
		for (i = 0; i < SPYRE_LANES; i++)
			lanes[i] = i < r->n % 64 ? 0x3f800000u : 0;
		rc.mask = spyreprog_job_const(s.job, lanes);
	}
	if (r->op == SPYREGEN_ARGMAX) {
		for (i = 0; i < SPYRE_LANES; i++)
			lanes[i] = spyre_fp32_bits((float)i);
		rc.lanes = spyreprog_job_const(s.job, lanes);
	}
	if (!whole_rows(r->op)) {
		memset(lanes, 0, sizeof(lanes));
		lanes[0] = 0x3f800000u;
		rc.lane0 = spyreprog_job_const(s.job, lanes);
	}
	return finish(&s, r->cores, err);
}
