// SPDX-License-Identifier: MIT
/*
 * Matrix products.
 *
 * The result is cut into units of rb rows and one column block of 64 per corelet (two, or one when
 * corelet 1 stays idle). A unit's partial sums stay in PT for the whole of k, so nothing is spilled
 * and k ascends in one chain. Cores form a grid of gm x gn; each has cm x cn units, columns inside.
 *
 * Along k a unit goes through LX in chunks of kc tiles. Three ways to use LX:
 *
 *  resident  the core's whole slice of b lies in LX, read once; of a one panel of rb rows lies
 *            there, used by all column units and replaced chunk by chunk behind the last of them;
 *  panel     the same panel of a, while b streams through a ring of chunks, read again for each
 *            row block;
 *  ring      a and b both stream through a ring of chunks, read again for each unit.
 *
 * L3LU waits for a free chunk (tags FREE, one per corelet), loads, and says so (tags LOADED). LXLU
 * feeds weights and activations alternately: its FIFO's depth hides the 64 words of the next tile
 * behind the activations of the last. PT loads tile t + 1 while it works on t. Results go PT, PE
 * (bias), SFP (activation), LXSU into one of two stages in LX (tags STAGED, EMPTY), from where L3SU
 * stores them.
 */
#include <math.h>

#include "gen.h"

enum { TAG_LOADED = 0, TAG_FREE = 2, TAG_STAGED = 4, TAG_EMPTY = 6 };	/* + corelet */
enum { SYM_A, SYM_B, SYM_C, SYM_BIAS };

struct plan {
	uint32_t rb, blocks;		/* rows of a unit; row blocks in all */
	uint32_t upu, units;		/* column blocks of a unit (1 or 2); column units in all */
	uint32_t gm, gn;		/* grid of cores */
	uint32_t cm, cn;		/* units of the busiest core */
	uint32_t kt, kc;		/* tiles of k; tiles of a chunk */
	uint32_t chunks, slots;		/* chunks of a unit; slots of the ring */
	bool resident, panel;		/* b's slice, a's panel lies in LX whole */
	bool cast_a, cast_b;		/* multicast to the cores of one row, of one column */
	uint32_t wc;			/* sticks of one row of 64 results */
	uint32_t lx_a, lx_b[2], lx_stage[2], lx_bias, lx_size;
	double cost;
};

struct gen {
	const struct spyregen_matmul *mm;
	struct plan pl;
	struct spyreprog_job *job;
	uint64_t stored;		/* rows of a and c as they lie */
	int p;				/* program being written */
	unsigned int corelet;
	bool load_a, load_b;		/* what L3LU's chunks bring */
	enum spyre_op op_a, op_b;
	unsigned int group_a, group_b;
};

static uint32_t up(uint32_t v, uint32_t to)
{
	return (v + to - 1) / to;
}

/* Places everything in LX; false when it does not fit. */
static bool place(struct plan *pl)
{
	uint64_t a = (uint64_t)(pl->panel ? pl->kt : pl->slots * pl->kc) * pl->rb * SPYRE_STICK;
	uint64_t b = (uint64_t)(pl->resident ? pl->cn * pl->kt : pl->slots * pl->kc) * TILE_BYTES;
	uint64_t stage = 2ull * pl->rb * pl->wc * SPYRE_STICK, at = 0;
	unsigned int c;

	pl->lx_a = 0;
	at += a;
	for (c = 0; c < pl->upu; c++) {
		pl->lx_b[c] = (uint32_t)at;
		at += b;
		if (at > SPYRE_LX_SIZE)
			return false;
	}
	for (c = 0; c < pl->upu; c++) {
		pl->lx_stage[c] = (uint32_t)at;
		at += stage;
	}
	pl->lx_bias = (uint32_t)at;
	at += (uint64_t)pl->cn * pl->upu * 2 * SPYRE_STICK;
	pl->lx_size = (uint32_t)at;
	return at <= SPYRE_LX_SIZE;
}

/* Chunks for the way LX is used; false when nothing fits. */
static bool chunk(struct plan *pl)
{
	static const uint32_t slots[] = { 8, 6, 4, 3, 2, 1 };
	uint32_t kc, i;

	pl->resident = pl->panel = true;
	pl->kc = pl->kt >= 16 ? 4 : up(pl->kt, 4);
	pl->chunks = up(pl->kt, pl->kc);
	pl->slots = pl->chunks;
	if (place(pl))
		return true;
	pl->resident = false;
	/* Slots must divide the chunks of a unit, so that every unit starts at slot 0. */
	for (;; pl->panel = false) {
		for (i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
			/* A single slot would not overlap loads with arithmetic. */
			if (pl->panel && slots[i] < 2)
				break;
			for (kc = pl->kt < 8 ? pl->kt : 8; kc; kc--) {
				pl->kc = kc;
				pl->chunks = up(pl->kt, kc);
				pl->slots = slots[i];
				if (pl->chunks % pl->slots == 0 && place(pl))
					return true;
			}
		}
		if (!pl->panel)
			return false;
	}
}

/*
 * Core cycles, roughly: the slowest of arithmetic, memory (100 bytes a cycle) and one core's loads
 * (11 bytes a cycle, or 28 in multicasts), plus a little for all of them and for each instruction.
 */
static double cost(const struct plan *pl)
{
	double units = (double)pl->cm * pl->cn, cores = (double)pl->gm * pl->gn;
	/* A tile's activations, or the 64 words of the next tile. */
	double mm = pl->rb * 10.0 > 90 ? pl->rb * 10.0 : 90;
	double compute = units * (pl->kt * mm + 2.0 * pl->rb * pl->wc + 400);
	double a = (double)pl->rb * pl->kt * SPYRE_STICK, b = (double)pl->upu * pl->kt * TILE_BYTES;
	double c = (double)pl->rb * pl->upu * pl->wc * SPYRE_STICK;
	double bytes, core;

	a *= pl->panel ? pl->cm : units;
	b *= pl->resident ? pl->cn : units;
	core = a / (pl->cast_a ? 28 : 11) + b / (pl->cast_b ? 28 : 11);
	bytes = a * (pl->cast_a ? pl->gm : cores) + b * (pl->cast_b ? pl->gn : cores);
	bytes += c * units * cores;
	bytes /= 100;
	return fmax(fmax(compute, bytes), core) + 0.1 * (compute + bytes + core) +
	       units * pl->kt * cores + (pl->resident ? 0 : 100);
}

/*
 * Members of a group load alike, so they need equal shares; where groups are too few for both operands, the
 * one that saves more bytes has them.
 */
static void multicasts(const struct spyregen_matmul *mm, struct plan *pl)
{
	bool allowed = !(mm->flags & SPYREGEN_NO_MULTICAST);
	double a = (double)pl->rb * pl->kt * SPYRE_STICK * pl->cm * (pl->panel ? 1 : pl->cn);
	double b = (double)pl->upu * pl->kt * TILE_BYTES * pl->cn * (pl->resident ? 1 : pl->cm);

	pl->cast_a = allowed && pl->gn > 1 && pl->units % pl->gn == 0 && pl->gm <= SPYRE_JOB_GROUPS;
	pl->cast_b = allowed && pl->gm > 1 && pl->blocks % pl->gm == 0 && pl->gn <= SPYRE_JOB_GROUPS;
	if (!pl->cast_a || !pl->cast_b || pl->gm + pl->gn <= SPYRE_JOB_GROUPS)
		return;
	if (a * pl->gm * (pl->gn - 1) < b * pl->gn * (pl->gm - 1))
		pl->cast_a = false;
	else
		pl->cast_b = false;
}

static bool make_plan(const struct spyregen_matmul *mm, struct plan *best, uint32_t ncores)
{
	uint32_t stored = (uint32_t)spyregen_rows(mm->m), nblocks = up(mm->n, 64), rb, gm, gn;
	struct plan pl = { 0 };
	bool found = false;

	pl.kt = up(mm->k, mm->in == SPYRE_SENINT8 ? 128 : 64);
	pl.wc = gen_lane_words(mm->out);
	for (rb = stored < 128 ? stored : 128; rb; rb--) {
		if (stored % rb)
			continue;
		pl.rb = rb;
		pl.blocks = stored / rb;
		for (pl.upu = nblocks % 2 ? 1 : 2; pl.upu; pl.upu--) {
			pl.units = nblocks / pl.upu;
			for (gm = 1; gm <= ncores && gm <= pl.blocks; gm++) {
				for (gn = 1; gm * gn <= ncores && gn <= pl.units; gn++) {
					if ((mm->split_m && gm != mm->split_m) ||
					    (mm->split_n && gn != mm->split_n))
						continue;
					pl.gm = gm;
					pl.gn = gn;
					pl.cm = up(pl.blocks, gm);
					pl.cn = up(pl.units, gn);
					if (!chunk(&pl))
						continue;
					multicasts(mm, &pl);
					pl.cost = cost(&pl);
					if (!found || pl.cost < best->cost)
						*best = pl;
					found = true;
				}
			}
		}
	}
	return found;
}

/* Chunks of one unit, the last maybe shorter, with the ring's wrap behind each turn. */
static void ring(struct gen *g, void (*one)(struct gen *g, uint32_t tiles),
		 void (*wrap)(struct gen *g))
{
	const struct plan *pl = &g->pl;
	uint32_t turns = pl->chunks / pl->slots, last = pl->kt - (pl->chunks - 1) * pl->kc;

	if (last == pl->kc) {
		if (turns > 1)
			sp_loop(g->job, g->p, turns);
		if (pl->slots > 1)
			sp_loop(g->job, g->p, pl->slots);
		one(g, pl->kc);
		if (pl->slots > 1)
			sp_end(g->job, g->p);
		wrap(g);
		if (turns > 1)
			sp_end(g->job, g->p);
		return;
	}
	if (turns > 1) {
		sp_loop(g->job, g->p, turns - 1);
		sp_loop(g->job, g->p, pl->slots);
		one(g, pl->kc);
		sp_end(g->job, g->p);
		wrap(g);
		sp_end(g->job, g->p);
	}
	if (pl->slots > 1) {
		sp_loop(g->job, g->p, pl->slots - 1);
		one(g, pl->kc);
		sp_end(g->job, g->p);
	}
	one(g, last);
	wrap(g);
}

/* --- L3LU ----------------------------------------------------------------------------------- */

/*
 * EAR0: a here. EAR1, EAR2: b here, per corelet. EAR3: a at this row block. LBR2: b of this core.
 * LAR0: a in LX. LAR1, LAR2: b in LX. LCR0, LCR1: row blocks and column units; LCR2, LCR3: one less
 * each.
 */
static void l3_chunk(struct gen *g, uint32_t tiles)
{
	const struct plan *pl = &g->pl;
	unsigned int c;
	int32_t next = (int32_t)((g->stored - pl->rb) * SPYRE_STICK);

	for (c = 0; c < pl->upu; c++)
		sp_wait(g->job, g->p, TAG_FREE + c, 1);
	if (g->load_a) {
		if (tiles > 1)
			sp_loop(g->job, g->p, tiles);
		gen_l3(g->job, g->p, g->op_a, SPYRE_LAR0, SPYRE_EAR0, pl->rb, g->group_a);
		if (next)
			sp_addimm(g->job, g->p, SPYRE_EAR0, next);
		if (tiles > 1)
			sp_end(g->job, g->p);
	}
	for (c = 0; g->load_b && c < pl->upu; c++)
		gen_l3(g->job, g->p, g->op_b, SPYRE_LAR0 + 1 + c, SPYRE_EAR0 + 1 + c,
		       (uint64_t)tiles * 64, g->group_b);
	for (c = 0; c < pl->upu; c++)
		sp_send(g->job, g->p, TAG_LOADED + c, 0);
}

static void l3_wrap(struct gen *g)
{
	const struct plan *pl = &g->pl;
	unsigned int c;

	if (g->load_a && !pl->panel)
		gen_set(g->job, g->p, SPYRE_LAR0, pl->lx_a);
	for (c = 0; c < pl->upu && !pl->resident; c++)
		gen_set(g->job, g->p, SPYRE_LAR0 + 1 + c, pl->lx_b[c]);
}

static void l3_unit(struct gen *g, bool a, bool b)
{
	g->load_a = a;
	g->load_b = b;
	if (a) {
		sp_mvreg(g->job, g->p, SPYRE_EAR0, SPYRE_EAR0 + 3, 0);
		gen_set(g->job, g->p, SPYRE_LAR0, g->pl.lx_a);
	}
	ring(g, l3_chunk, l3_wrap);
	/* The two blocks of a unit lie side by side: skip the other corelet's. */
	if (b && g->pl.upu == 2) {
		sp_addimm(g->job, g->p, SPYRE_EAR0 + 1, (int32_t)(g->pl.kt * TILE_BYTES));
		sp_addimm(g->job, g->p, SPYRE_EAR0 + 2, (int32_t)(g->pl.kt * TILE_BYTES));
	}
}

static void l3_start_b(struct gen *g)
{
	sp_mvreg(g->job, g->p, SPYRE_EAR0 + 1, SPYRE_LBR0 + 2, 0);
	if (g->pl.upu == 2)
		sp_mvreg(g->job, g->p, SPYRE_EAR0 + 2, SPYRE_LBR0 + 2,
			 (int32_t)(g->pl.kt * TILE_BYTES));
}

static int l3lu(struct gen *g)
{
	const struct plan *pl = &g->pl;
	struct spyreprog_job *job = g->job;
	int p = g->p = spyreprog_job_program(job, SPYRE_UNIT_L3LU);
	int32_t down = (int32_t)(pl->rb * SPYRE_STICK);
	unsigned int c;

	if (g->mm->bias) {
		gen_set(job, p, SPYRE_LAR0 + 3, pl->lx_bias);
		sp_loop_reg(job, p, SPYRE_LCR0 + 1);
		sp_l3(job, p, SPYRE_OP_L3_LDU, SPYRE_LAR0 + 3, SPYRE_REG_NONE, SPYRE_EAR0,
		      2 * pl->upu, 0, (int32_t)(2 * pl->upu * SPYRE_STICK),
		      (int32_t)(2 * pl->upu * SPYRE_STICK));
		sp_end(job, p);
	}
	for (c = 0; c < pl->upu; c++)
		gen_set(job, p, SPYRE_LAR0 + 1 + c, pl->lx_b[c]);
	if (!pl->resident) {
		sp_loop_reg(job, p, SPYRE_LCR0);
		l3_start_b(g);
		if (pl->panel) {
			l3_unit(g, true, true);
			if (pl->cn > 1) {
				sp_loop_reg(job, p, SPYRE_LCR0 + 2);
				l3_unit(g, false, true);
				sp_end(job, p);
			}
		} else {
			sp_loop_reg(job, p, SPYRE_LCR0 + 1);
			l3_unit(g, true, true);
			sp_end(job, p);
		}
		sp_addimm(job, p, SPYRE_EAR0 + 3, down);
		sp_end(job, p);
	} else {
		l3_start_b(g);
		l3_unit(g, true, true);
		if (pl->cn > 1) {
			sp_loop_reg(job, p, SPYRE_LCR0 + 2);
			l3_unit(g, false, true);
			sp_end(job, p);
		}
		if (pl->cm > 1) {
			sp_loop_reg(job, p, SPYRE_LCR0 + 3);
			sp_addimm(job, p, SPYRE_EAR0 + 3, down);
			l3_unit(g, true, false);
			if (pl->cn > 1) {
				sp_loop_reg(job, p, SPYRE_LCR0 + 2);
				l3_unit(g, false, false);
				sp_end(job, p);
			}
			sp_end(job, p);
		}
	}
	for (c = 0; c < pl->upu; c++)
		sp_wait(job, p, TAG_FREE + c, pl->slots);
	return p;
}

/* --- Corelet -------------------------------------------------------------------------------- */

/* LAR0: a, LAR1: b, LAR2: bias. */
static void lx_chunk(struct gen *g, uint32_t tiles)
{
	sp_wait(g->job, g->p, TAG_LOADED + g->corelet, 1);
	if (tiles > 1)
		sp_loop(g->job, g->p, tiles);
	sp_ld(g->job, g->p, SPYRE_LAR0 + 1, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PTW, 64, SPYRE_STICK,
	      TILE_BYTES);
	sp_ld(g->job, g->p, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PT, g->pl.rb, SPYRE_STICK,
	      (int32_t)(g->pl.rb * SPYRE_STICK));
	if (tiles > 1)
		sp_end(g->job, g->p);
	sp_send(g->job, g->p, TAG_FREE + g->corelet, 0);
}

static void lx_wrap(struct gen *g)
{
	if (!g->pl.panel)
		gen_set(g->job, g->p, SPYRE_LAR0, g->pl.lx_a);
	if (!g->pl.resident)
		gen_set(g->job, g->p, SPYRE_LAR0 + 1, g->pl.lx_b[g->corelet]);
}

static int lxlu(struct gen *g)
{
	const struct plan *pl = &g->pl;
	struct spyreprog_job *job = g->job;
	int p = g->p = spyreprog_job_program(job, SPYRE_UNIT_LXLU);

	if (pl->slots > 1)
		sp_loop(job, p, pl->slots);
	sp_send(job, p, TAG_FREE + g->corelet, 0);
	if (pl->slots > 1)
		sp_end(job, p);
	sp_loop_reg(job, p, SPYRE_LCR0);
	gen_set(job, p, SPYRE_LAR0 + 1, pl->lx_b[g->corelet]);
	if (g->mm->bias)
		gen_set(job, p, SPYRE_LAR0 + 2, pl->lx_bias + g->corelet * 2 * SPYRE_STICK);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	gen_set(job, p, SPYRE_LAR0, pl->lx_a);
	ring(g, lx_chunk, lx_wrap);
	/* Behind the activations, as PE needs it only when the sums come. */
	if (g->mm->bias)
		sp_ld(job, p, SPYRE_LAR0 + 2, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PE0, 2, SPYRE_STICK,
		      (int32_t)(pl->upu * 2 * SPYRE_STICK));
	else
		spyreprog_job_insn(job, p, &(struct spyre_insn){ .op = SPYRE_OP_NOP });
	sp_end(job, p);
	sp_end(job, p);
	return p;
}

static int pt(struct gen *g, enum spyre_fifo out)
{
	const struct plan *pl = &g->pl;
	enum spyre_format f = g->mm->in;
	struct spyreprog_job *job = g->job;
	int p = spyreprog_job_program(job, SPYRE_UNIT_PT);
	uint32_t left = pl->kt - 1;
	const enum spyre_fifo a = SPYRE_FIFO_LXLU_PT, w = SPYRE_FIFO_LXLU_PTW;

	sp_loop_reg(job, p, SPYRE_LCR0);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	sp_pt_ldw(job, p, 0, f, w);
	if (left)
		sp_pt_ldw(job, p, 1, f, w);
	sp_pt_mm(job, p, 0, f, false, a, pl->rb, 0);
	if (left > 2) {
		if ((left - 1) / 2 > 1)
			sp_loop(job, p, (left - 1) / 2);
		sp_pt_ldw(job, p, 0, f, w);
		sp_pt_mm(job, p, 1, f, true, a, pl->rb, 0);
		sp_pt_ldw(job, p, 1, f, w);
		sp_pt_mm(job, p, 0, f, true, a, pl->rb, 0);
		if ((left - 1) / 2 > 1)
			sp_end(job, p);
		left -= (left - 1) / 2 * 2;
	}
	if (left == 2)
		sp_pt_ldw(job, p, 0, f, w);
	if (left)
		sp_pt_mm(job, p, 1, f, true, a, pl->rb, 0);
	if (left == 2)
		sp_pt_mm(job, p, 0, f, true, a, pl->rb, 0);
	sp_pt_psout(job, p, out, pl->rb, 0);
	sp_end(job, p);
	sp_end(job, p);
	return p;
}

static const enum spyre_op act_op[] = {
	[SPYREGEN_NONE] = SPYRE_OP_MOV,	 [SPYREGEN_RELU] = SPYRE_OP_MAX,
	[SPYREGEN_GELU] = SPYRE_OP_GELU, [SPYREGEN_SIGMOID] = SPYRE_OP_SIGMOID,
	[SPYREGEN_TANH] = SPYRE_OP_TANH,
};

/* PE: the bias, or the conversion when there is nothing else to do. */
static int pe(struct gen *g, enum spyre_fifo to, enum spyre_format to_fmt)
{
	bool i8 = g->mm->in == SPYRE_SENINT8;
	enum spyre_format ps = i8 ? SPYRE_IEEE_INT32 : SPYRE_IEEE_FP32;
	struct spyreprog_job *job = g->job;
	int p = spyreprog_job_program(job, SPYRE_UNIT_PE);

	sp_loop_reg(job, p, SPYRE_LCR0);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	if (g->mm->bias) {
		sp_vec(job, p, SPYRE_OP_MOV, SPYRE_OPND_V(0), SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0),
		       0, 0, 1, 0, SPYRE_FMTS(ps, 0, 0, 0));
		sp_vec(job, p, i8 ? SPYRE_OP_IADD : SPYRE_OP_ADD, SPYRE_OPND_FIFO(to),
		       SPYRE_OPND_FIFO(SPYRE_FIFO_PT_PE), SPYRE_OPND_V(0), 0, g->pl.rb, 0,
		       SPYRE_FMTS(ps, 0, 0, to_fmt));
	} else {
		sp_vec(job, p, SPYRE_OP_MOV, SPYRE_OPND_FIFO(to), SPYRE_OPND_FIFO(SPYRE_FIFO_PT_PE),
		       0, 0, g->pl.rb, 0, SPYRE_FMTS(ps, 0, 0, to_fmt));
	}
	sp_end(job, p);
	sp_end(job, p);
	return p;
}

static int sfp(struct gen *g, enum spyre_fifo from)
{
	bool i8 = g->mm->in == SPYRE_SENINT8;
	enum spyre_format ps = i8 ? SPYRE_IEEE_INT32 : SPYRE_IEEE_FP32;
	struct spyreprog_job *job = g->job;
	int p = spyreprog_job_program(job, SPYRE_UNIT_SFP);
	bool relu = g->mm->act == SPYREGEN_RELU;

	sp_loop_reg(job, p, SPYRE_LCR0);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	sp_vec(job, p, i8 ? SPYRE_OP_IMAX : act_op[g->mm->act],
	       SPYRE_OPND_FIFO(SPYRE_FIFO_SFP_LXSU), SPYRE_OPND_FIFO(from),
	       relu ? SPYRE_OPND_IMM : 0, 0, g->pl.rb, 0, SPYRE_FMTS(ps, 0, 0, g->mm->out));
	sp_end(job, p);
	sp_end(job, p);
	return p;
}

/* Two stages, used in turn: LAR0 is the one, and their sum minus it the other. */
static void swap_stage(struct gen *g, int p, unsigned int lar, unsigned int spare, unsigned int c)
{
	uint32_t stage = g->pl.rb * g->pl.wc * SPYRE_STICK;

	gen_set(g->job, p, spare, 2 * g->pl.lx_stage[c] + stage);
	sp_addreg(g->job, p, spare, lar, -1);
	sp_mvreg(g->job, p, lar, spare, 0);
}

static int lxsu(struct gen *g, enum spyre_fifo from)
{
	const struct plan *pl = &g->pl;
	struct spyreprog_job *job = g->job;
	int p = spyreprog_job_program(job, SPYRE_UNIT_LXSU);

	gen_set(job, p, SPYRE_LAR0, pl->lx_stage[g->corelet]);
	sp_loop_reg(job, p, SPYRE_LCR0);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	sp_wait(job, p, TAG_EMPTY + g->corelet, 1);
	sp_st(job, p, SPYRE_LAR0, SPYRE_REG_NONE, from, pl->rb * pl->wc, SPYRE_STICK, 0);
	sp_send(job, p, TAG_STAGED + g->corelet, 0);
	swap_stage(g, p, SPYRE_LAR0, SPYRE_LAR0 + 1, g->corelet);
	sp_end(job, p);
	sp_end(job, p);
	sp_wait(job, p, TAG_EMPTY + g->corelet, 2);
	return p;
}

/* EAR0: c of corelet 0, EAR1: of corelet 1, EAR2: at this row block. LAR0, LAR1: stages. LAR2: for
 * gen_l3. LAR3: spare. */
static int l3su(struct gen *g)
{
	const struct plan *pl = &g->pl;
	struct spyreprog_job *job = g->job;
	int p = spyreprog_job_program(job, SPYRE_UNIT_L3SU);
	uint64_t block = g->stored * pl->wc * SPYRE_STICK; /* from one column block to the next */
	uint32_t rows = pl->rb * pl->wc * SPYRE_STICK;
	unsigned int c;

	for (c = 0; c < pl->upu; c++) {
		gen_set(job, p, SPYRE_LAR0 + c, pl->lx_stage[c]);
		sp_send(job, p, TAG_EMPTY + c, 0);
		sp_send(job, p, TAG_EMPTY + c, 0);
	}
	sp_loop_reg(job, p, SPYRE_LCR0);
	sp_mvreg(job, p, SPYRE_EAR0, SPYRE_EAR0 + 2, 0);
	sp_mvreg(job, p, SPYRE_EAR0 + 1, SPYRE_EAR0 + 2, (int32_t)block);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	for (c = 0; c < pl->upu; c++) {
		sp_wait(job, p, TAG_STAGED + c, 1);
		sp_mvreg(job, p, SPYRE_LAR0 + 2, SPYRE_LAR0 + c, 0);
		gen_l3(job, p, SPYRE_OP_L3_STU, SPYRE_LAR0 + 2, SPYRE_EAR0 + c,
		       (uint64_t)pl->rb * pl->wc, 0);
		sp_send(job, p, TAG_EMPTY + c, 0);
		swap_stage(g, p, SPYRE_LAR0 + c, SPYRE_LAR0 + 3, c);
		sp_addimm(job, p, SPYRE_EAR0 + c, (int32_t)(pl->upu * block - rows));
	}
	sp_end(job, p);
	sp_addimm(job, p, SPYRE_EAR0 + 2, (int32_t)rows);
	sp_end(job, p);
	return p;
}

/* --- Whole ---------------------------------------------------------------------------------- */

static bool check(const struct spyregen_matmul *mm, char *err)
{
	uint64_t stored = spyregen_rows(mm->m), kt = up(mm->k, 64);

	if (!mm->m || !mm->n || !mm->k)
		return gen_fail(err, "m, n and k must be at least 1");
	if (mm->in == SPYRE_SENINT8 ?
	    mm->out != SPYRE_IEEE_INT32 || mm->act > SPYREGEN_RELU :
	    !gen_is16(mm->in) || (!gen_is16(mm->out) && mm->out != SPYRE_IEEE_FP32))
		return gen_fail(err,
				"formats: 16-bit floating point in, the same or IEEE_FP32 out; or "
				"SENINT8 in, IEEE_INT32 out with activation none or relu");
	if (mm->act > SPYREGEN_TANH)
		return gen_fail(err, "unknown activation %u", (unsigned int)mm->act);
	/* Steps in memory are 32-bit fields of instructions. */
	if (stored * 2 * SPYRE_STICK * 2 > INT32_MAX || kt * TILE_BYTES > INT32_MAX ||
	    mm->n > 1u << 24)
		return gen_fail(err,
				"%u x %u x %u is too large: at most 4194000 rows and columns, k to "
				"16 million",
				mm->m, mm->n, mm->k);
	return true;
}

static void init_grid(struct gen *g, int u, uint32_t nm, uint32_t nn)
{
	spyreprog_job_init(g->job, u, SPYRE_LCR0, SPYRE_NO_SYMBOL, nm);
	spyreprog_job_init(g->job, u, SPYRE_LCR0 + 1, SPYRE_NO_SYMBOL, nn);
}

struct spyreprog_job *spyregen_matmul(const struct spyregen_matmul *mm, char *err)
{
	uint32_t avail = mm->cores ? mm->cores : 0xffffffffu, used[32], ncores = 0, i, j, c, mask;
	int prog_l3lu = -1, prog_l3su, prog[2][SPYRE_UNITS], u;
	bool i8 = mm->in == SPYRE_SENINT8, has_pe, has_sfp, groups_a, groups_b;
	enum spyre_fifo pt_to, last;
	struct gen g = { .mm = mm };
	struct plan *pl = &g.pl;

	if (!check(mm, err))
		return NULL;
	for (i = 0; i < 32; i++)
		if (avail >> i & 1)
			used[ncores++] = i;
	if (!make_plan(mm, pl, ncores))
		return gen_fail(err, mm->split_m || mm->split_n ?
				"%u x %u x %u does not divide as asked among %u cores, or does not fit LX" :
				"%u x %u x %u does not fit LX", mm->m, mm->n, mm->k, ncores);
	g.stored = spyregen_rows(mm->m);
	g.job = spyreprog_job_new();
	if (!g.job)
		return gen_fail(err, "out of memory");

	groups_a = pl->cast_a;
	groups_b = pl->cast_b;
	for (i = 0; groups_a && i < pl->gm; i++) {
		for (mask = 0, j = 0; j < pl->gn; j++)
			mask |= 1u << used[i * pl->gn + j];
		spyreprog_job_group(g.job, i, mask);
	}
	for (j = 0; groups_b && j < pl->gn; j++) {
		for (mask = 0, i = 0; i < pl->gm; i++)
			mask |= 1u << used[i * pl->gn + j];
		spyreprog_job_group(g.job, (groups_a ? pl->gm : 0) + j, mask);
	}
	g.op_a = groups_a ? SPYRE_OP_L3_LDM : SPYRE_OP_L3_LDU;
	g.op_b = groups_b ? SPYRE_OP_L3_LDM : SPYRE_OP_L3_LDU;

	has_sfp = mm->act != SPYREGEN_NONE;
	has_pe = mm->bias || (!has_sfp && gen_lane_words(mm->out) == 1);
	pt_to = has_pe ? SPYRE_FIFO_PT_PE : has_sfp ? SPYRE_FIFO_PT_SFP : SPYRE_FIFO_PT_LXSU;
	last = has_sfp ? SPYRE_FIFO_SFP_LXSU : has_pe ? SPYRE_FIFO_PE_LXSU : SPYRE_FIFO_PT_LXSU;
	prog_l3su = l3su(&g);
	for (c = 0; c < pl->upu; c++) {
		g.corelet = c;
		prog[c][SPYRE_UNIT_LXLU] = lxlu(&g);
		prog[c][SPYRE_UNIT_LXSU] = lxsu(&g, last);
		if (c) {
			prog[c][SPYRE_UNIT_PT] = prog[0][SPYRE_UNIT_PT];
			prog[c][SPYRE_UNIT_PE] = prog[0][SPYRE_UNIT_PE];
			prog[c][SPYRE_UNIT_SFP] = prog[0][SPYRE_UNIT_SFP];
			continue;
		}
		prog[c][SPYRE_UNIT_PT] = pt(&g, pt_to);
		prog[c][SPYRE_UNIT_PE] = !has_pe ? -1 :
			pe(&g, has_sfp ? SPYRE_FIFO_PE_SFP : SPYRE_FIFO_PE_LXSU,
			   has_sfp ? (i8 ? SPYRE_IEEE_INT32 : SPYRE_IEEE_FP32) : mm->out);
		prog[c][SPYRE_UNIT_SFP] = !has_sfp ? -1 :
			sfp(&g, has_pe ? SPYRE_FIFO_PE_SFP : SPYRE_FIFO_PT_SFP);
	}

	for (i = 0; i < pl->gm; i++) {
		uint32_t m0 = (uint32_t)((uint64_t)pl->blocks * i / pl->gm);
		uint32_t nm = (uint32_t)((uint64_t)pl->blocks * (i + 1) / pl->gm) - m0;

		for (j = 0; j < pl->gn; j++) {
			uint32_t n0 = (uint32_t)((uint64_t)pl->units * j / pl->gn);
			uint32_t nn = (uint32_t)((uint64_t)pl->units * (j + 1) / pl->gn) - n0;
			uint32_t core = used[i * pl->gn + j];
			uint64_t row = (uint64_t)m0 * pl->rb, col = (uint64_t)n0 * pl->upu;

			/* Group numbers are in the text, so multicast needs one for each core. */
			if (groups_a || groups_b || prog_l3lu < 0) {
				g.group_a = groups_a ? i : 0;
				g.group_b = groups_b ? (groups_a ? pl->gm : 0) + j : 0;
				prog_l3lu = l3lu(&g);
			}
			u = spyreprog_job_unit(g.job, core, SPYRE_UNIT_L3LU, 0, prog_l3lu);
			if (mm->bias)
				spyreprog_job_init(g.job, u, SPYRE_EAR0, SYM_BIAS,
						   col * 2 * SPYRE_STICK);
			spyreprog_job_init(g.job, u, SPYRE_EAR0 + 3, SYM_A, row * SPYRE_STICK);
			spyreprog_job_init(g.job, u, SPYRE_LBR0 + 2, SYM_B,
					   col * pl->kt * TILE_BYTES);
			init_grid(&g, u, nm, nn);
			spyreprog_job_init(g.job, u, SPYRE_LCR0 + 2, SPYRE_NO_SYMBOL, nn - 1);
			spyreprog_job_init(g.job, u, SPYRE_LCR0 + 3, SPYRE_NO_SYMBOL, nm - 1);

			u = spyreprog_job_unit(g.job, core, SPYRE_UNIT_L3SU, 0, prog_l3su);
			spyreprog_job_init(g.job, u, SPYRE_EAR0 + 2, SYM_C,
					   (col * g.stored + row) * pl->wc * SPYRE_STICK);
			init_grid(&g, u, nm, nn);

			for (c = 0; c < pl->upu; c++) {
				static const uint8_t units[] = { SPYRE_UNIT_LXLU, SPYRE_UNIT_LXSU,
								 SPYRE_UNIT_PT, SPYRE_UNIT_PE,
								 SPYRE_UNIT_SFP };
				unsigned int k;

				for (k = 0; k < sizeof(units); k++) {
					if (prog[c][units[k]] < 0)
						continue;
					u = spyreprog_job_unit(g.job, core, units[k], c,
							       prog[c][units[k]]);
					init_grid(&g, u, nm, nn);
				}
			}
		}
	}
	spyreprog_job_symbols(g.job, mm->bias ? 4 : 3);
	if (spyreprog_job_error(g.job)) {
		gen_fail(err, "%s", spyreprog_job_error(g.job));
		spyreprog_job_free(g.job);
		return NULL;
	}
	return g.job;
}
