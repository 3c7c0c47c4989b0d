// SPDX-License-Identifier: MIT
/*
 * Reductions down columns. Parts of 512 rows of a column block become one row each, in fp32; if there
 * is more than one part, another job behind the first reduces those rows in the same way, until there
 * is one. A row of the search for the greatest is two: the maxima, and the numbers of their rows,
 * counted from the part's first row; the next job knows from which row of its own they came.
 */
#include <spyre/isa_table.h>
#include <spyre/num.h>

#include "walk.h"

#define PART	512u
#define V(i)	SPYRE_OPND_V(i)
#define V0	V(0)
#define IN	SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0)
#define OUT	SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU)
#define NEG_INF	0xff800000u

struct part {
	enum spyre_op op;	/* MAX with arg */
	enum spyre_format in, out;
	uint32_t rows[2];
	float scale;		/* 1: none */
	bool arg, first, last;	/* numbers of rows are sought; rows are the operand's, the result's */
	float unit;		/* rows of the operand that a row stands for */
};

/* Sticks of a row. */
static uint32_t in_words(const struct part *pt)
{
	return gen_lane_words(pt->in) * (pt->arg && !pt->first ? 2 : 1);
}

static uint32_t out_words(const struct part *pt)
{
	return gen_lane_words(pt->out) * (pt->arg && !pt->last ? 2 : 1);
}

static void load(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	sp_ld(w->job, p, SPYRE_LAR0 + 2, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PE0,
	      g->in[0].words[c], SPYRE_STICK, 0);
}

/* V0: the maxima, V1: numbers of their rows, V2: of this row. */
static void search(const struct walk *w, const struct part *pt, int p, unsigned int c)
{
	unsigned int number = V(2), i;

	for (i = 0; i < 3; i++)
		sp_vec(w->job, p, SPYRE_OP_MOV, V(i), SPYRE_OPND_IMM, 0, 0, 1, i ? 0 : NEG_INF, 0);
	if (pt->rows[c] > 1)
		sp_loop(w->job, p, pt->rows[c]);
	sp_vec(w->job, p, SPYRE_OP_MOV, V(3), IN, 0, 0, 1, 0, SPYRE_FMTS(pt->in, 0, 0, 0));
	if (!pt->first) {
		number = V(4);
		sp_vec(w->job, p, SPYRE_OP_ADD, number, IN, V(2), 0, 1, 0,
		       SPYRE_FMTS(pt->in, 0, 0, 0));
	}
	sp_vec(w->job, p, SPYRE_OP_CMPLT, V(5), V0, V(3), 0, 1, 0, 0);
	sp_vec(w->job, p, SPYRE_OP_MAX, V0, V0, V(3), 0, 1, 0, 0);
	sp_vec(w->job, p, SPYRE_OP_SEL, V(1), number, V(1), V(5), 1, 0, 0);
	sp_vec(w->job, p, SPYRE_OP_ADD, V(2), V(2), SPYRE_OPND_IMM, 0, 1, spyre_fp32_bits(pt->unit),
	       0);
	if (pt->rows[c] > 1)
		sp_end(w->job, p);
	if (pt->last) {
		sp_vec(w->job, p, SPYRE_OP_F2I, OUT, V(1), 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, pt->out));
		return;
	}
	for (i = 0; i < 2; i++)
		sp_vec(w->job, p, SPYRE_OP_MOV, OUT, V(i), 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, pt->out));
}

static void compute(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct part *pt = g->arg;
	uint32_t start = pt->op == SPYRE_OP_MAX ? NEG_INF : pt->op == SPYRE_OP_MIN ? 0x7f800000u : 0;

	if (pt->arg) {
		search(w, pt, p, c);
		return;
	}
	sp_vec(w->job, p, SPYRE_OP_MOV, V0, SPYRE_OPND_IMM, 0, 0, 1, start, 0);
	sp_vec(w->job, p, pt->op, V0, V0, IN, 0, pt->rows[c], 0,
	       SPYRE_FMTS(0, pt->in, 0, 0));
	sp_vec(w->job, p, SPYRE_OP_MUL, OUT, V0, SPYRE_OPND_IMM, 0, 1, spyre_fp32_bits(pt->scale), SPYRE_FMTS(0, 0, 0, pt->out));
}

/*
 * rows of a column block lie pitch rows from the next; a part's row is stored at its number. at: where
 * operand and result begin behind their symbols.
 */
static bool pass(struct walk *w, struct part base, uint32_t rows, uint64_t pitch, uint32_t blocks,
		 uint32_t parts, const uint64_t at[2])
{
	uint64_t in = in_words(&base) * SPYRE_STICK, out = out_words(&base) * SPYRE_STICK;
	uint32_t h = parts > 1 ? PART : rows, full = rows / h, rest = rows % h;
	struct walk_grid grids[3];
	struct part pt[3];
	unsigned int n = 0, i, c;

	/* Pairs for the two corelets: of parts, or of column blocks when there is one part. */
	for (i = 0; i < 3; i++) {
		uint32_t count = parts > 1 ? full : blocks, first = i ? count / 2 * 2 : 0;
		uint32_t pairs = i ? 1 : count / 2;
		uint64_t si = parts > 1 ? h : pitch, so = 1;

		if ((i == 1 && count % 2 == 0) || (i == 2 && (parts == 1 || !rest)) || !pairs)
			continue;
		if (i == 2)
			first = full;
		pt[n] = base;
		pt[n].rows[0] = i == 2 ? rest : h;
		pt[n].rows[1] = i ? 0 : h;
		grids[n] = (struct walk_grid){
			.rows = parts > 1 ? blocks : 1, .cols = pairs, .load = load,
			.compute = compute, .store = walk_store, .arg = &pt[n],
			.in[0] = { .base = at[0] + first * si * in, .inner = (int64_t)(2 * si * in),
				   .outer = (int64_t)(pitch * in), .half = (int64_t)(si * in) },
			.out = { .base = at[1] + first * so * out, .inner = (int64_t)(2 * so * out),
				 .outer = (int64_t)(parts * out), .half = (int64_t)(so * out) },
		};
		for (c = 0; c < 2; c++) {
			grids[n].in[0].words[c] = pt[n].rows[c] * in_words(&base);
			grids[n].out.words[c] = pt[n].rows[c] ? out_words(&base) : 0;
		}
		n++;
	}
	w->unit = SPYRE_UNIT_PE;
	w->nin = 1;
	w->grids = grids;
	w->ngrids = n;
	w->job = spyreprog_job_new();
	return w->job && walk(w);
}

/* Parts of so many rows; those of a later job that one step takes are one. */
static uint32_t parts_of(uint64_t rows, bool arg, bool first)
{
	return !first && rows <= (arg ? PART : 2 * PART) ? 1 : (uint32_t)((rows + PART - 1) / PART);
}

uint64_t spyregen_column_scratch(enum spyregen_column_op op, uint64_t m, uint64_t n)
{
	bool arg = op == SPYREGEN_COLUMN_ARGMAX, first = true;
	uint64_t bytes = 0;

	for (; (m = parts_of(m, arg, first)) > 1; first = false)
		bytes += m * ((n + 63) / 64) * (arg ? 4 : 2) * SPYRE_STICK;
	return bytes;
}

struct spyreprog_job *spyregen_column(const struct spyregen_column *r, char *err)
{
	static const enum spyre_op ops[] = {
		[SPYREGEN_COLUMN_SUM] = SPYRE_OP_ADD, [SPYREGEN_COLUMN_MAX] = SPYRE_OP_MAX,
		[SPYREGEN_COLUMN_MIN] = SPYRE_OP_MIN, [SPYREGEN_COLUMN_MEAN] = SPYRE_OP_ADD,
		[SPYREGEN_COLUMN_ARGMAX] = SPYRE_OP_MAX,
	};
	bool arg = r->op == SPYREGEN_COLUMN_ARGMAX, ok = true;
	uint32_t blocks = (uint32_t)(((uint64_t)r->n + 63) / 64), rows = r->m, parts;
	struct part part = { .in = r->fmt, .scale = 1, .arg = arg, .first = true, .unit = 1 };
	uint64_t pitch = spyregen_rows(r->m), at[2] = { 0 };
	struct spyreprog_job *job = NULL;

	if ((unsigned int)r->op > SPYREGEN_COLUMN_ARGMAX)
		return gen_fail(err, "unknown operation %u", (unsigned int)r->op);
	if (!r->m || !r->n)
		return gen_fail(err, "m and n must be at least 1");
	if (!gen_is16(r->fmt) && r->fmt != SPYRE_IEEE_FP32)
		return gen_fail(err, "format %s: an operation down columns takes SEN169_FP16, IEEE_FP16, "
				"BFLOAT16 or IEEE_FP32", gen_format_name(r->fmt));
	if (!gen_fits(r->fmt, r->m, r->n, err))
		return NULL;
	if (arg && r->m > 1u << 24)
		return gen_fail(err, "%u rows are too many to be numbered in fp32: at most 2^24", r->m);
	part.op = ops[r->op];
	for (; ok && !part.last; part.first = false) {
		struct walk w = { .cores = r->cores, .symbol = { part.first ? 0 : 2, 1 } };

		parts = parts_of(rows, arg, part.first);
		part.last = parts == 1;
		part.out = !part.last ? SPYRE_IEEE_FP32 : arg ? SPYRE_IEEE_INT32 : r->fmt;
		if (!part.last)
			w.symbol[1] = 2;
		else if (r->op == SPYREGEN_COLUMN_MEAN)
			part.scale = 1.0f / (float)r->m;
		if (part.last)
			at[1] = 0;
		ok = pass(&w, part, rows, pitch, blocks, parts, at);
		if (ok && job)
			spyreprog_job_then(job, w.job, NULL);
		else if (job)
			spyreprog_job_free(w.job);
		else
			job = w.job;
		part.in = SPYRE_IEEE_FP32;
		part.unit *= PART;
		rows = parts;
		pitch = parts;
		at[0] = at[1];
		at[1] += (uint64_t)parts * blocks * out_words(&part) * SPYRE_STICK;
	}
	if (ok && !spyreprog_job_error(job))
		return job;
	gen_fail(err, "%s", job && spyreprog_job_error(job) ? spyreprog_job_error(job) :
		 "out of memory, or a step does not fit LX");
	spyreprog_job_free(job);
	return NULL;
}
