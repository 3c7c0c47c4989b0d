// SPDX-License-Identifier: MIT
/*
 * Reductions down columns. Parts of 512 rows of a column block become one row each, in fp32; if there
 * is more than one part, a second job behind the first reduces those rows in the same way.
 */
#include <spyre/num.h>

#include "walk.h"

#define PART	512u
#define V0	SPYRE_OPND_V(0)

struct part {
	enum spyre_op op;
	enum spyre_format in, out;
	uint32_t rows[2];
	float scale;		/* 1: none */
};

static void load(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	sp_ld(w->job, p, SPYRE_LAR0 + 2, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PE0,
	      g->in[0].words[c], SPYRE_STICK, 0);
}

static void compute(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	const struct part *pt = g->arg;
	uint32_t start = pt->op == SPYRE_OP_MAX ? 0xff800000u :
			 pt->op == SPYRE_OP_MIN ? 0x7f800000u : 0;

	sp_vec(w->job, p, SPYRE_OP_MOV, V0, SPYRE_OPND_IMM, 0, 0, 1, start, 0);
	sp_vec(w->job, p, pt->op, V0, V0, SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0), 0, pt->rows[c], 0,
	       SPYRE_FMTS(0, pt->in, 0, 0));
	sp_vec(w->job, p, SPYRE_OP_MUL, SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU), V0, SPYRE_OPND_IMM, 0,
	       1, spyre_fp32_bits(pt->scale), SPYRE_FMTS(0, 0, 0, pt->out));
}

/* rows of a column block lie pitch rows from the next; a part's row is stored at its number. */
static bool pass(struct walk *w, struct part base, uint32_t rows, uint64_t pitch, uint32_t blocks,
		 uint32_t parts)
{
	uint64_t in = gen_lane_words(base.in) * SPYRE_STICK;
	uint64_t out = gen_lane_words(base.out) * SPYRE_STICK;
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
			.in[0] = { .base = first * si * in, .inner = (int64_t)(2 * si * in),
				   .outer = (int64_t)(pitch * in), .half = (int64_t)(si * in) },
			.out = { .base = first * so * out, .inner = (int64_t)(2 * so * out),
				 .outer = (int64_t)(parts * out), .half = (int64_t)(so * out) },
		};
		for (c = 0; c < 2; c++) {
			grids[n].in[0].words[c] = pt[n].rows[c] * gen_lane_words(base.in);
			grids[n].out.words[c] = pt[n].rows[c] ? gen_lane_words(base.out) : 0;
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

static uint32_t parts_of(uint64_t m)
{
	return (uint32_t)((m + PART - 1) / PART);
}

uint64_t spyregen_column_scratch(uint64_t m, uint64_t n)
{
	return parts_of(m) > 1 ? parts_of(m) * ((n + 63) / 64) * 2 * SPYRE_STICK : 0;
}

struct spyreprog_job *spyregen_column(const struct spyregen_column *r, char *err)
{
	static const enum spyre_op ops[] = {
		[SPYREGEN_COLUMN_SUM] = SPYRE_OP_ADD, [SPYREGEN_COLUMN_MAX] = SPYRE_OP_MAX,
		[SPYREGEN_COLUMN_MIN] = SPYRE_OP_MIN, [SPYREGEN_COLUMN_MEAN] = SPYRE_OP_ADD,
	};
	uint32_t parts = parts_of(r->m), blocks = (uint32_t)(((uint64_t)r->n + 63) / 64);
	struct walk first = { .cores = r->cores, .symbol = { 0, 1 } };
	struct walk second = { .cores = r->cores, .symbol = { 2, 1 } };
	struct part part = { .in = r->fmt, .out = parts > 1 ? SPYRE_IEEE_FP32 : r->fmt,
			     .scale = 1 };
	bool ok;

	if ((unsigned int)r->op > SPYREGEN_COLUMN_MEAN)
		return gen_fail(err, "unknown operation %u", (unsigned int)r->op);
	if (!r->m || !r->n)
		return gen_fail(err, "m and n must be at least 1");
	if (!gen_is16(r->fmt) && r->fmt != SPYRE_IEEE_FP32)
		return gen_fail(err, "formats: SEN169_FP16, IEEE_FP16, BFLOAT16 or IEEE_FP32");
	/* The parts' rows of a column block are one step of the second job. */
	if (parts > 1024)
		return gen_fail(err, "%u rows are too many: at most %u", r->m, 1024 * PART);
	part.op = ops[r->op];
	if (r->op == SPYREGEN_COLUMN_MEAN && parts == 1)
		part.scale = 1.0f / (float)r->m;
	if (parts > 1)
		first.symbol[1] = 2;
	ok = pass(&first, part, r->m, spyregen_rows(r->m), blocks, parts);
	if (ok && parts > 1) {
		part.in = SPYRE_IEEE_FP32;
		part.out = r->fmt;
		part.scale = r->op == SPYREGEN_COLUMN_MEAN ? 1.0f / (float)r->m : 1;
		ok = pass(&second, part, parts, parts, blocks, 1);
		spyreprog_job_then(first.job, second.job, NULL);
	}
	if (ok && !spyreprog_job_error(first.job))
		return first.job;
	gen_fail(err, "%s", first.job && spyreprog_job_error(first.job) ?
		 spyreprog_job_error(first.job) : "out of memory, or a step does not fit LX");
	spyreprog_job_free(first.job);
	return NULL;
}
