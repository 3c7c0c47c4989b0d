// SPDX-License-Identifier: MIT
/*
 * Conversions between formats, their column blocks may differ in width, and scaling before one. A step is up to 128 rows of the
 * columns that a stick of the narrower format holds; a row of it lies in the V registers between a
 * pop and a push, 64 lanes in each.
 */
#include <spyre/num.h>

#include "walk.h"

#define IN	SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0)
#define OUT	SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU)

struct cast {
	enum spyre_format in, out;
	uint32_t rows[2];	/* by corelet */
	uint32_t nin, nout;	/* column blocks that are there */
	float scale;		/* 0: none */
};

enum spyre_op gen_cast_op(enum spyre_format in, enum spyre_format out)
{
	return gen_is_int(in) == gen_is_int(out) ? SPYRE_OP_MOV :
	       gen_is_int(in) ? SPYRE_OP_I2F : SPYRE_OP_F2I;
}

static void load(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct cast *k = g->arg;

	walk_by_row(w, p, true, SPYRE_FIFO_LXLU_PE0, gen_lane_words(k->in), k->rows[c], k->nin);
}

static void store(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct cast *k = g->arg;

	walk_by_row(w, p, false, SPYRE_FIFO_PE_LXSU, gen_lane_words(k->out), k->rows[c], k->nout);
}

static void compute(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct cast *k = g->arg;
	uint32_t from = gen_width(k->in) / SPYRE_LANES, to = gen_width(k->out) / SPYRE_LANES;
	enum spyre_op op = gen_cast_op(k->in, k->out);
	uint32_t live = k->nin * from, need = k->nout * to, v;

	/* Blocks that the operand has not: padding of the result. */
	for (v = live; v < need; v++)
		sp_vec(w->job, p, SPYRE_OP_MOV, SPYRE_OPND_V(v), SPYRE_OPND_IMM, 0, 0, 1, 0, 0);
	if (k->rows[c] > 1)
		sp_loop(w->job, p, k->rows[c]);
	/* Only MOV moves formats of more than one register, so the other side converts. */
	for (v = 0; v < live; v += from)
		sp_vec(w->job, p, from > 1 ? SPYRE_OP_MOV : k->scale != 0 ? SPYRE_OP_I2F : op,
		       SPYRE_OPND_V(v), IN, 0, 0, 1, 0, SPYRE_FMTS(k->in, 0, 0, 0));
	for (v = 0; k->scale != 0 && v < live && v < need; v++) {
		sp_vec(w->job, p, SPYRE_OP_MUL, SPYRE_OPND_V(v), SPYRE_OPND_V(v), SPYRE_OPND_IMM, 0,
		       1, spyre_fp32_bits(k->scale), 0);
		if (gen_is_int(k->out))
			sp_vec(w->job, p, SPYRE_OP_F2I, SPYRE_OPND_V(v), SPYRE_OPND_V(v), 0, 0, 1, 0,
			       0);
	}
	for (v = 0; from > 1 && to > 1 && op != SPYRE_OP_MOV && v < live && v < need; v++)
		sp_vec(w->job, p, op, SPYRE_OPND_V(v), SPYRE_OPND_V(v), 0, 0, 1, 0, 0);
	for (v = 0; v < need; v += to)
		sp_vec(w->job, p, from > 1 && to == 1 ? op : SPYRE_OP_MOV, OUT, SPYRE_OPND_V(v), 0,
		       0, 1, 0, SPYRE_FMTS(0, 0, 0, k->out));
	if (k->rows[c] > 1)
		sp_end(w->job, p);
}

struct spyreprog_job *gen_cast(const struct gen_cast *e, char *err)
{
	uint64_t unit[2] = { gen_lane_words(e->in) * SPYRE_STICK,
			     gen_lane_words(e->out) * SPYRE_STICK };
	uint32_t width[2] = { gen_width(e->in), gen_width(e->out) };
	uint32_t wide = width[0] > width[1] ? width[0] : width[1];
	uint64_t stored = spyregen_rows(e->m);
	struct walk w = { .cores = e->cores, .nin = 1, .symbol = { e->from, e->to },
			  .unit = SPYRE_UNIT_PE, .batch = e->batch,
			  .step = { spyregen_bytes(e->in, e->m, e->n),
				    spyregen_bytes(e->out, e->m, e->n) } };
	struct walk_grid grids[4];
	struct cast casts[4];
	unsigned int n = 0, i, c, s;

	/* Whole steps, and what is left of rows and of columns. */
	for (i = 0; i < 4; i++) {
		uint32_t rows = i & 1 ? (uint32_t)(stored % 128) : 128;
		uint32_t cols = i & 2 ? e->n % wide : wide;
		uint64_t row = i & 1 ? stored / 128 * 128 : 0, group = i & 2 ? e->n / wide : 0;
		struct walk_grid *g = &grids[n];
		struct cast *k = &casts[n];

		*g = (struct walk_grid){
			.rows = i & 2 ? 1 : e->n / wide, .cols = i & 1 ? 1 : (uint32_t)(stored / 128),
			.load = load, .compute = compute, .store = store, .arg = k,
		};
		if (!rows || !cols || !g->rows || !g->cols)
			continue;
		*k = (struct cast){ e->in, e->out, { (rows + 1) / 2, rows / 2 },
				    (cols + width[0] - 1) / width[0],
				    (cols + width[1] - 1) / width[1], e->scale };
		for (s = 0; s < 2; s++) {
			struct walk_side *side = s ? &g->out : &g->in[0];
			uint32_t blocks = wide / width[s];

			*side = (struct walk_side){
				.base = (group * blocks * stored + row) * unit[s],
				.inner = (int64_t)(128 * unit[s]),
				.outer = (int64_t)(blocks * stored * unit[s]),
				.half = (int64_t)(k->rows[0] * unit[s]),
				.pieces = s ? k->nout : k->nin,
				.piece = (int64_t)(stored * unit[s]),
			};
			for (c = 0; c < 2; c++)
				side->words[c] = k->rows[c] * (uint32_t)(unit[s] / SPYRE_STICK);
		}
		n++;
	}
	w.grids = grids;
	w.ngrids = n;
	w.job = spyreprog_job_new();
	if (!w.job)
		return gen_fail(err, "out of memory");
	if (walk(&w) && !spyreprog_job_error(w.job))
		return w.job;
	gen_fail(err, "%s", spyreprog_job_error(w.job) ? spyreprog_job_error(w.job) :
		 "a step does not fit LX");
	spyreprog_job_free(w.job);
	return NULL;
}
