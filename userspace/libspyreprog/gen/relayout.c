// SPDX-License-Identifier: MIT
/*
 * Layouts: transposition, weights, rows.
 *
 * A block of 64 rows of 64 lanes is transposed in two passes of SFP, one for the low three bits of
 * the row number and one for the high three. A pass takes eight rows that differ in its bits, moves
 * row i's lanes from l to l ^ i, exchanges rows by lane (three steps of selects, one for each bit),
 * and moves the lanes of row i once more. Between the passes the block lies in LX.
 */
#include <string.h>

#include "walk.h"

#define V(i)	SPYRE_OPND_V(i)
#define ONE	0x3f800000u

struct consts {
	int lanes[2][8];	/* l ^ i, l ^ 8 i; [0] unused */
	int bit[6];		/* 1.0 where l has the bit */
};

/* What a step's blocks hold. */
struct block {
	enum spyre_format fmt;
	unsigned int wl;	/* sticks of 64 lanes */
	uint32_t rows[2];	/* valid ones, by corelet; the others are taken as 0 */
	uint32_t cols;		/* valid ones: rows of the result */
	const struct consts *k;
};

static void exchange(const struct walk *w, const struct block *b, int p, unsigned int pass,
		     uint32_t valid, uint32_t outs)
{
	const unsigned int in = SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_SFP0),
			   out = SPYRE_OPND_FIFO(SPYRE_FIFO_SFP_LXSU);
	unsigned int i, s, from = 0;

	for (i = 0; i < 8; i++) {
		if (i >= valid)
			sp_vec(w->job, p, SPYRE_OP_MOV, V(i), SPYRE_OPND_IMM, 0, 0, 1, 0, 0);
		else if (!i)
			sp_vec(w->job, p, SPYRE_OP_MOV, V(0), in, 0, 0, 1, 0,
			       SPYRE_FMTS(b->fmt, 0, 0, 0));
		else
			sp_vec(w->job, p, SPYRE_OP_SHUF, V(i), in,
			       SPYRE_OPND_CONST(b->k->lanes[pass][i]), 0, 1, 0,
			       SPYRE_FMTS(b->fmt, 0, 0, 0));
	}
	for (s = 0; s < 3; s++, from ^= 8)
		for (i = 0; i < 8; i++)
			sp_vec(w->job, p, SPYRE_OP_SEL, V((from ^ 8) + i), V(from + (i ^ 1u << s)),
			       V(from + i), SPYRE_OPND_CONST(b->k->bit[3 * pass + s]), 1, 0, 0);
	for (i = 0; i < 8; i++) {
		if (i >= outs)
			sp_vec(w->job, p, SPYRE_OP_MOV, out, SPYRE_OPND_IMM, 0, 0, 1, 0,
			       SPYRE_FMTS(0, 0, 0, b->fmt));
		else if (!i)
			sp_vec(w->job, p, SPYRE_OP_MOV, out, V(8), 0, 0, 1, 0,
			       SPYRE_FMTS(0, 0, 0, b->fmt));
		else
			sp_vec(w->job, p, SPYRE_OP_SHUF, out, V(8 + i),
			       SPYRE_OPND_CONST(b->k->lanes[pass][i]), 0, 1, 0,
			       SPYRE_FMTS(0, 0, 0, b->fmt));
	}
}

static void t_compute(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct block *b = g->arg;
	uint32_t full = b->rows[c] / 8, rest = b->rows[c] % 8, q;

	if (full > 1)
		sp_loop(w->job, p, full);
	if (full)
		exchange(w, b, p, 0, 8, 8);
	if (full > 1)
		sp_end(w->job, p);
	if (rest)
		exchange(w, b, p, 0, rest, 8);
	q = 8 - full - !!rest;
	if (q)
		sp_vec(w->job, p, SPYRE_OP_MOV, SPYRE_OPND_FIFO(SPYRE_FIFO_SFP_LXSU),
		       SPYRE_OPND_IMM, 0, 0, 8 * q, 0, SPYRE_FMTS(0, 0, 0, b->fmt));
	if (b->cols == 64) {
		sp_loop(w->job, p, 8);
		exchange(w, b, p, 1, 8, 8);
		sp_end(w->job, p);
		return;
	}
	/* Row q + 8 i comes out i-th. */
	for (q = 0; q < 8; q++)
		exchange(w, b, p, 1, 8, b->cols > q ? (b->cols - q + 7) / 8 : 0);
}

static void second_pass(const struct walk *w, const struct block *b, int p, bool load,
			enum spyre_fifo fifo)
{
	sp_loop(w->job, p, 8);
	sp_mvreg(w->job, p, SPYRE_LAR0 + 1, SPYRE_LAR0, 0);
	walk_spread(w, p, load, fifo, SPYRE_LAR0 + 1, b->wl, 8, 8 * b->wl * SPYRE_STICK);
	sp_addimm(w->job, p, SPYRE_LAR0, (int32_t)(b->wl * SPYRE_STICK));
	sp_end(w->job, p);
}

static void t_load(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct block *b = g->arg;

	sp_ld(w->job, p, SPYRE_LAR0 + 2, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_SFP0, g->in[0].words[c],
	      SPYRE_STICK, 0);
	sp_wait(w->job, p, TAG_TEMP + c, 1);
	gen_set(w->job, p, SPYRE_LAR0, w->lx_temp[c]);
	second_pass(w, b, p, true, SPYRE_FIFO_LXLU_SFP0);
}

static void t_store(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct block *b = g->arg;

	gen_set(w->job, p, SPYRE_LAR0, w->lx_temp[c]);
	sp_st(w->job, p, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_SFP_LXSU, 64 * b->wl, SPYRE_STICK,
	      0);
	sp_send(w->job, p, TAG_TEMP + c, 0);
	sp_mvreg(w->job, p, SPYRE_LAR0, SPYRE_LAR0 + 2, 0);
	second_pass(w, b, p, false, SPYRE_FIFO_SFP_LXSU);
}

static void make_consts(struct spyreprog_job *job, struct consts *k)
{
	uint32_t v[SPYRE_LANES], l, i;

	for (i = 1; i < 8; i++) {
		for (l = 0; l < SPYRE_LANES; l++)
			v[l] = l ^ i;
		k->lanes[0][i] = spyreprog_job_const(job, v);
		for (l = 0; l < SPYRE_LANES; l++)
			v[l] = l ^ i << 3;
		k->lanes[1][i] = spyreprog_job_const(job, v);
	}
	for (i = 0; i < 6; i++) {
		for (l = 0; l < SPYRE_LANES; l++)
			v[l] = l >> i & 1 ? ONE : 0;
		k->bit[i] = spyreprog_job_const(job, v);
	}
}

/* A grid of steps of 128 rows and one column block; ends are grids of their own. */
static bool transpose(struct walk *w, const struct spyregen_relayout *r, bool weights)
{
	uint64_t unit = gen_lane_words(r->fmt) * SPYRE_STICK;
	uint64_t stored = spyregen_rows(r->rows);
	uint64_t out = weights ? gen_up(r->cols, 64) : spyregen_rows(r->cols);
	struct walk_grid grids[4];
	struct block blocks[4];
	struct consts k;
	unsigned int n = 0, i, c;

	make_consts(w->job, &k);
	for (i = 0; i < 4; i++) {
		uint32_t rows = i & 1 ? r->rows % 128 : 128, cols = i & 2 ? r->cols % 64 : 64;
		uint64_t row = i & 1 ? r->rows / 128 : 0, col = i & 2 ? r->cols / 64 : 0;
		struct walk_grid *g = &grids[n];
		struct block *b = &blocks[n];

		*g = (struct walk_grid){
			.rows = i & 1 ? 1 : r->rows / 128, .cols = i & 2 ? 1 : r->cols / 64,
			.load = t_load, .compute = t_compute, .store = t_store, .arg = b,
		};
		*b = (struct block){ r->fmt, gen_lane_words(r->fmt),
				     { rows < 64 ? rows : 64, rows > 64 ? rows - 64 : 0 },
				     cols, &k };
		if (!rows || !cols || !g->rows || !g->cols)
			continue;
		g->in[0] = (struct walk_side){
			.base = (col * stored + row * 128) * unit, .inner = (int64_t)(stored * unit),
			.outer = (int64_t)(128 * unit), .half = (int64_t)(64 * unit),
		};
		g->out = (struct walk_side){
			.base = (2 * row * out + 64 * col) * unit, .inner = (int64_t)(64 * unit),
			.outer = (int64_t)(2 * out * unit), .half = (int64_t)(out * unit),
		};
		for (c = 0; c < 2; c++) {
			g->in[0].words[c] = b->rows[c] * b->wl;
			g->out.words[c] = b->rows[c] ? (weights ? 64 : cols) * b->wl : 0;
		}
		n++;
	}
	w->unit = SPYRE_UNIT_SFP;
	w->temp = 64 * gen_lane_words(r->fmt);
	w->grids = grids;
	w->ngrids = n;
	/* LX takes all 64 rows of a result, memory only those that count. */
	for (i = 0; i < n; i++)
		blocks[i].k = &k;
	return walk(w);
}

/* --- Words moved as they are ---------------------------------------------------------------- */

struct copy {
	enum spyre_format fmt;
	unsigned int wl;
	uint32_t rows[2], zeros[2];
	uint32_t blocks;	/* of columns in a step */
	bool by_row;		/* out row by row */
	int mask;		/* lanes that count, or -1 */
};

static void c_load(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct copy *k = g->arg;
	uint32_t n = k->rows[c];

	/* Sticks lie column by column, rows row by row: the one in terms of the other. */
	walk_by_row(w, p, true, SPYRE_FIFO_LXLU_PE0, k->wl, k->by_row ? n : k->blocks,
		    k->by_row ? k->blocks : n);
}

static void c_compute(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct copy *k = g->arg;
	const unsigned int in = SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0),
			   out = SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU);

	if (k->mask >= 0)
		sp_vec(w->job, p, SPYRE_OP_SEL, out, in, SPYRE_OPND_IMM, SPYRE_OPND_CONST(k->mask),
		       k->rows[c] * k->blocks, 0, SPYRE_FMTS(k->fmt, 0, 0, k->fmt));
	else
		sp_vec(w->job, p, SPYRE_OP_MOV, out, in, 0, 0, k->rows[c] * k->blocks, 0,
		       SPYRE_FMTS(k->fmt, 0, 0, k->fmt));
	if (k->zeros[c])
		sp_vec(w->job, p, SPYRE_OP_MOV, out, SPYRE_OPND_IMM, 0, 0, k->zeros[c], 0,
		       SPYRE_FMTS(0, 0, 0, k->fmt));
}

/* Sticks to weights: the ends of columns and rows are masked and filled with 0. */
static bool to_weights(struct walk *w, const struct spyregen_relayout *r)
{
	uint64_t unit = gen_lane_words(r->fmt) * SPYRE_STICK, stored = spyregen_rows(r->rows);
	uint64_t out = gen_up(r->rows, 64);
	struct walk_grid grids[4];
	struct copy ks[4];
	uint32_t lanes[SPYRE_LANES];
	unsigned int n = 0, i, c;

	for (i = 0; i < 4; i++) {
		uint32_t rows = i & 1 ? r->rows % 128 : 128, cols = i & 2 ? r->cols % 64 : 64, l;
		uint64_t row = i & 1 ? r->rows / 128 : 0, col = i & 2 ? r->cols / 64 : 0;
		struct walk_grid *g = &grids[n];
		struct copy *k = &ks[n];

		*g = (struct walk_grid){
			.rows = i & 2 ? 1 : r->cols / 64, .cols = i & 1 ? 1 : r->rows / 128,
			.load = c_load, .compute = c_compute, .store = walk_store, .arg = k,
		};
		if (!rows || !cols || !g->rows || !g->cols)
			continue;
		*k = (struct copy){ r->fmt, gen_lane_words(r->fmt),
				    { rows < 64 ? rows : 64, rows > 64 ? rows - 64 : 0 },
				    { 0 }, 1, false, -1 };
		if (cols < 64) {
			for (l = 0; l < SPYRE_LANES; l++)
				lanes[l] = l < cols ? ONE : 0;
			k->mask = spyreprog_job_const(w->job, lanes);
		}
		g->in[0] = (struct walk_side){
			.base = (col * stored + row * 128) * unit, .inner = (int64_t)(128 * unit),
			.outer = (int64_t)(stored * unit), .half = (int64_t)(64 * unit),
		};
		g->out = (struct walk_side){
			.base = (col * out + row * 128) * unit, .inner = (int64_t)(128 * unit),
			.outer = (int64_t)(out * unit), .half = (int64_t)(64 * unit),
		};
		for (c = 0; c < 2; c++) {
			g->in[0].words[c] = k->rows[c] * k->wl;
			g->out.words[c] = k->rows[c] ? 64 * k->wl : 0;
			k->zeros[c] = k->rows[c] ? 64 - k->rows[c] : 0;
		}
		n++;
	}
	w->unit = SPYRE_UNIT_PE;
	w->grids = grids;
	w->ngrids = n;
	return walk(w);
}

/* Between sticks and rows: so many rows of all columns at a time. */
static bool rows(struct walk *w, const struct spyregen_relayout *r, bool to_rows)
{
	uint64_t unit = gen_lane_words(r->fmt) * SPYRE_STICK, stored = spyregen_rows(r->rows);
	uint64_t blocks = gen_up(r->cols, 64) / 64, most = SPYRE_LX_SIZE / 8 / (blocks * unit);
	struct walk_grid grids[2];
	struct copy ks[2];
	unsigned int n = 0, i, c;
	uint32_t h;

	h = most < 64 ? (uint32_t)most : 64;
	if (!h)
		return false;
	for (i = 0; i < 2; i++) {
		uint32_t count = i ? r->rows % (2 * h) : 2 * h;
		uint64_t row = i ? r->rows / (2 * h) * 2 * h : 0;
		struct walk_grid *g = &grids[n];
		struct walk_side *s, *t;
		struct copy *k = &ks[n];

		*g = (struct walk_grid){
			.rows = 1, .cols = i ? 1 : r->rows / (2 * h), .load = c_load,
			.compute = c_compute, .store = walk_store, .arg = k,
		};
		if (!count || !g->cols)
			continue;
		*k = (struct copy){ r->fmt, gen_lane_words(r->fmt),
				    { count < h ? count : h, count > h ? count - h : 0 },
				    { 0 }, (uint32_t)blocks, to_rows, -1 };
		s = to_rows ? &g->in[0] : &g->out;
		t = to_rows ? &g->out : &g->in[0];
		*s = (struct walk_side){
			.base = row * unit, .inner = (int64_t)(2 * h * unit),
			.half = (int64_t)(h * unit), .pieces = (uint32_t)blocks,
			.piece = (int64_t)(stored * unit),
		};
		*t = (struct walk_side){
			.base = row * blocks * unit, .inner = (int64_t)(2 * h * blocks * unit),
			.half = (int64_t)(h * blocks * unit),
		};
		for (c = 0; c < 2; c++) {
			s->words[c] = k->rows[c] * k->wl;
			t->words[c] = k->rows[c] * (uint32_t)blocks * k->wl;
		}
		n++;
	}
	w->unit = SPYRE_UNIT_PE;
	w->grids = grids;
	w->ngrids = n;
	return walk(w);
}

uint64_t spyregen_row_bytes(enum spyre_format fmt, uint64_t rows, uint64_t cols)
{
	return rows * gen_up(cols, 64) / 64 * gen_lane_words(fmt) * SPYRE_STICK;
}

struct spyreprog_job *gen_relayout(const struct spyregen_relayout *r, unsigned int from,
				   unsigned int to, char *err)
{
	struct walk w = { .cores = r->cores, .nin = 1, .symbol = { from, to }, .batch = r->batch };
	bool ok = false, t = r->op == SPYREGEN_TRANSPOSE_WEIGHTS;

	if (!r->rows || !r->cols)
		return gen_fail(err, "rows and columns must be at least 1");
	if (r->rows > 1u << 22 || r->cols > 1u << 22 || r->batch > 1u << 20)
		return gen_fail(err, "%u tensors of %u x %u: at most 1048576 of 4194304 rows and "
				"columns", r->batch, r->rows, r->cols);
	if (!gen_is16(r->fmt) && r->fmt != SPYRE_IEEE_FP32 && r->fmt != SPYRE_IEEE_INT32)
		return gen_fail(err, "formats: SEN169_FP16, IEEE_FP16, BFLOAT16, IEEE_FP32 or "
				"IEEE_INT32");
	if (!gen_fits(r->fmt, r->rows, r->cols, err) || !gen_fits(r->fmt, r->cols, r->rows, err))
		return NULL;
	if ((t || r->op == SPYREGEN_TO_WEIGHTS) && !gen_is16(r->fmt))
		return gen_fail(err, "weights have a 16-bit format here");
	w.step[0] = w.step[1] = spyregen_bytes(r->fmt, r->rows, r->cols);
	w.job = spyreprog_job_new();
	if (!w.job)
		return gen_fail(err, "out of memory");
	switch (r->op) {
	case SPYREGEN_TRANSPOSE:
		w.step[1] = spyregen_bytes(r->fmt, r->cols, r->rows);
		ok = transpose(&w, r, false);
		break;
	case SPYREGEN_TRANSPOSE_WEIGHTS:
		w.step[1] = spyregen_weight_bytes(r->fmt, r->cols, r->rows);
		ok = transpose(&w, r, true);
		break;
	case SPYREGEN_TO_WEIGHTS:
		w.step[1] = spyregen_weight_bytes(r->fmt, r->rows, r->cols);
		ok = to_weights(&w, r);
		break;
	case SPYREGEN_TO_ROWS:
		w.step[1] = spyregen_row_bytes(r->fmt, r->rows, r->cols);
		ok = rows(&w, r, true);
		break;
	case SPYREGEN_FROM_ROWS:
		w.step[0] = spyregen_row_bytes(r->fmt, r->rows, r->cols);
		ok = rows(&w, r, false);
		break;
	default:
		gen_fail(err, "unknown operation %u", (unsigned int)r->op);
		spyreprog_job_free(w.job);
		return NULL;
	}
	if (ok && !spyreprog_job_error(w.job))
		return w.job;
	if (ok)
		gen_fail(err, "%s", spyreprog_job_error(w.job));
	else
		gen_fail(err, "%u x %u: a row does not fit LX", r->rows, r->cols);
	spyreprog_job_free(w.job);
	return NULL;
}

struct spyreprog_job *spyregen_relayout(const struct spyregen_relayout *r, char *err)
{
	return gen_relayout(r, 0, 1, err);
}
