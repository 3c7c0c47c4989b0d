// SPDX-License-Identifier: MIT
/*
 * Matrix products.
 *
 * The result is cut into units of rb rows and one column block of 64 per corelet (two, or one when
 * corelet 1 stays idle). A unit's partial sums stay in PT for the whole of k, so nothing is spilled
 * and k ascends in one chain. Cores form a grid of gm x gn; each has cm x cn units, columns inside.
 * gb such grids share the products of a batch.
 *
 * With k divided, gk neighbours in the grid have one unit and a slice of k each. Their sums meet in
 * SFP: the first of a chain sends its rows around the ring, the next adds its own, the last stores.
 * The rings of the two corelets run against each other, so corelet 1's chain ends where corelet
 * 0's begins.
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
#include <string.h>

#include "gen.h"

enum { SYM_A, SYM_B, SYM_C, SYM_BIAS };

struct plan {
	uint32_t rb, blocks;		/* rows of a unit; row blocks in all */
	uint32_t upu, units;		/* column blocks of a unit (1 or 2); column units in all */
	uint32_t gm, gn;		/* grid of cores */
	uint32_t gk, gb;		/* cores along k; grids */
	uint32_t cm, cn, cb;		/* units and products of the busiest core */
	uint32_t kt_all, kt, kc;	/* tiles of k: all, a core's, of a chunk */
	uint32_t chunks, slots;		/* chunks of a unit; slots of the ring */
	bool resident, panel;		/* b's slice, a's panel lies in LX whole */
	uint32_t weight;		/* of a byte in a multicast */
	uint32_t near;			/* cores that may be used of the first half */
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
	unsigned int corelet, sym_c;
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
 * Core cycles, roughly: the slowest of arithmetic, memory (50 bytes a cycle for either half of the
 * cores, which are used in ascending order) and one core's loads (11 bytes a cycle, or 28 in
 * multicasts), plus a little for all of them and for each instruction.
 */
static double cost(const struct plan *pl)
{
	double units = (double)pl->cm * pl->cn, grids = (double)pl->gb * pl->gk;
	double cores = (double)pl->gm * pl->gn;
	double ring = pl->gk > 1 ? pl->gk * 100.0 + pl->rb * 20.0 : 0;
	/* A tile's activations, or the 64 words of the next tile. */
	double mm = pl->rb * 10.0 > 90 ? pl->rb * 10.0 : 90;
	double compute = units * (pl->kt * mm + 2.0 * pl->rb * pl->wc + 400 + ring);
	double a = (double)pl->rb * pl->kt * SPYRE_STICK, b = (double)pl->upu * pl->kt * TILE_BYTES;
	double c = (double)pl->rb * pl->upu * pl->wc * SPYRE_STICK;
	double bytes, core, half = fmin(pl->near, cores * grids);

	half = fmax(half, cores * grids - half) / (cores * grids);
	a *= pl->panel ? pl->cm : units;
	b *= pl->resident ? pl->cn : units;
	core = a / (pl->cast_a ? 28 : 11) + b / (pl->cast_b ? 28 : 11);
	/*
	 * All multicasts together pass half of what single loads do. It matters where a division of k
	 * competes, which does without them.
	 */
	bytes = a * (pl->cast_a ? pl->weight * pl->gm : cores) +
		b * (pl->cast_b ? pl->weight * pl->gn : cores);
	bytes = bytes * grids + c * units * cores * pl->gb;
	bytes *= half / 50;
	return pl->cb * (fmax(fmax(compute, bytes), core) + 0.1 * (compute + bytes + core) +
			 units * pl->kt * cores * grids) + (pl->resident ? 0 : 100);
}

/*
 * Members of a group load alike, so they need equal shares; where groups are too few for both operands, the
 * one that saves more bytes has them.
 */
static void multicasts(const struct spyregen_matmul *mm, struct plan *pl)
{
	bool allowed = !(mm->flags & SPYREGEN_NO_MULTICAST);
	uint32_t grids = pl->gb * pl->gk;
	double a = (double)pl->rb * pl->kt * SPYRE_STICK * pl->cm * (pl->panel ? 1 : pl->cn);
	double b = (double)pl->upu * pl->kt * TILE_BYTES * pl->cn * (pl->resident ? 1 : pl->cm);

	pl->cast_a = allowed && pl->gn > 1 && pl->units % pl->gn == 0 && pl->gm * grids <= SPYRE_JOB_GROUPS;
	pl->cast_b = allowed && pl->gm > 1 && pl->blocks % pl->gm == 0 && pl->gn * grids <= SPYRE_JOB_GROUPS;
	if (!pl->cast_a || !pl->cast_b || (pl->gm + pl->gn) * grids <= SPYRE_JOB_GROUPS)
		return;
	if (a * pl->gm * (pl->gn - 1) < b * pl->gn * (pl->gm - 1))
		pl->cast_a = false;
	else
		pl->cast_b = false;
}

static uint32_t batches(const struct spyregen_matmul *mm)
{
	return mm->batch ? mm->batch : 1;
}

/* The best of all grids for units of a size; *found tells whether best is set already. */
static void grids(const struct spyregen_matmul *mm, struct plan *pl, struct plan *best,
		  uint32_t ncores, bool *found)
{
	uint32_t gm, gn, gk, gb, most_k = 1, batch = batches(mm);

	if (mm->split_k)
		most_k = mm->split_k == SPYREGEN_SPLIT_FREE ? ncores : mm->split_k;
	for (gk = 1; gk <= most_k && gk <= pl->kt_all; gk++) {
		if (pl->kt_all % gk || (mm->split_k != SPYREGEN_SPLIT_FREE && gk != most_k))
			continue;
		for (gm = 1; gm * gk <= ncores && gm <= pl->blocks; gm++) {
			for (gn = 1; gm * gn * gk <= ncores && gn <= pl->units; gn++) {
				if ((mm->split_m && gm != mm->split_m) ||
				    (mm->split_n && gn != mm->split_n))
					continue;
				/* More grids are never slower, so take as many as there can be. */
				gb = ncores / (gm * gn * gk);
				pl->gb = gb < batch ? gb : batch;
				pl->gm = gm;
				pl->gn = gn;
				pl->gk = gk;
				pl->kt = pl->kt_all / gk;
				pl->cm = up(pl->blocks, gm);
				pl->cn = up(pl->units, gn);
				pl->cb = up(batch, pl->gb);
				if (!chunk(pl))
					continue;
				multicasts(mm, pl);
				pl->cost = cost(pl);
				if (!*found || pl->cost < best->cost)
					*best = *pl;
				*found = true;
			}
		}
	}
}

/* near: how many of the cores are of the first half. */
static bool make_plan(const struct spyregen_matmul *mm, struct plan *best, uint32_t ncores,
		      uint32_t near)
{
	uint32_t stored = (uint32_t)spyregen_rows(mm->m), nblocks = up(mm->n, 64), rb;
	struct plan pl = { 0 };
	bool found = false;

	pl.kt_all = up(mm->k, gen_width(mm->in));
	pl.wc = gen_lane_words(mm->out);
	pl.weight = mm->split_k ? 2 : 1;
	pl.near = near;
	for (rb = stored < 128 ? stored : 128; rb; rb--) {
		if (stored % rb)
			continue;
		pl.rb = rb;
		pl.blocks = stored / rb;
		for (pl.upu = nblocks % 2 ? 1 : 2; pl.upu; pl.upu--) {
			pl.units = nblocks / pl.upu;
			grids(mm, &pl, best, ncores, &found);
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
 * each. In batches LBR3 is where a begins, LBR0 and LBR1 are the steps of a and b to the next product,
 * and products are counted by the LCR that the way of using LX leaves free.
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
	uint32_t skip = (g->pl.upu * g->pl.kt_all - g->pl.kt) * TILE_BYTES;
	uint32_t far = skip > INT32_MAX ? skip / 2 : 0;	/* what one addition cannot take */
	unsigned int c;

	g->load_a = a;
	g->load_b = b;
	if (a) {
		sp_mvreg(g->job, g->p, SPYRE_EAR0, SPYRE_EAR0 + 3, 0);
		gen_set(g->job, g->p, SPYRE_LAR0, g->pl.lx_a);
	}
	ring(g, l3_chunk, l3_wrap);
	/* The two blocks of a unit lie side by side: skip the other corelet's, and other slices. */
	if (b && skip) {
		for (c = 0; c < g->pl.upu; c++) {
			if (far)
				sp_addimm(g->job, g->p, SPYRE_EAR0 + 1 + c, (int32_t)far);
			sp_addimm(g->job, g->p, SPYRE_EAR0 + 1 + c, (int32_t)(skip - far));
		}
	}
}

static void l3_start_b(struct gen *g)
{
	sp_mvreg(g->job, g->p, SPYRE_EAR0 + 1, SPYRE_LBR0 + 2, 0);
	if (g->pl.upu == 2)
		sp_mvreg(g->job, g->p, SPYRE_EAR0 + 2, SPYRE_LBR0 + 2,
			 (int32_t)(g->pl.kt_all * TILE_BYTES));
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
	if (g->mm->batch > 1) {
		sp_loop_reg(job, p, pl->resident ? SPYRE_LCR0 : SPYRE_LCR0 + 3);
		sp_mvreg(job, p, SPYRE_EAR0 + 3, SPYRE_LBR0 + 3, 0);
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
	if (g->mm->batch > 1) {
		sp_addreg(job, p, SPYRE_LBR0 + 3, SPYRE_LBR0, 1);
		sp_addreg(job, p, SPYRE_LBR0 + 2, SPYRE_LBR0 + 1, 1);
		sp_end(job, p);
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

/* bias_to: FIFO that the bias goes to, or SPYRE_FIFOS. */
static int lxlu(struct gen *g, enum spyre_fifo bias_to)
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
	if (bias_to != SPYRE_FIFOS)
		gen_set(job, p, SPYRE_LAR0 + 2, pl->lx_bias + g->corelet * 2 * SPYRE_STICK);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	gen_set(job, p, SPYRE_LAR0, pl->lx_a);
	ring(g, lx_chunk, lx_wrap);
	/* Behind the activations, as PE needs it only when the sums come. */
	if (bias_to != SPYRE_FIFOS)
		sp_ld(job, p, SPYRE_LAR0 + 2, SPYRE_REG_NONE, bias_to, 2, SPYRE_STICK,
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
	bool ints = gen_is_int(g->mm->in);
	enum spyre_format ps = ints ? SPYRE_IEEE_INT32 : SPYRE_IEEE_FP32;
	struct spyreprog_job *job = g->job;
	int p = spyreprog_job_program(job, SPYRE_UNIT_PE);

	sp_loop_reg(job, p, SPYRE_LCR0);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	if (g->mm->bias) {
		sp_vec(job, p, SPYRE_OP_MOV, SPYRE_OPND_V(0), SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0),
		       0, 0, 1, 0, SPYRE_FMTS(ps, 0, 0, 0));
		sp_vec(job, p, ints ? SPYRE_OP_IADD : SPYRE_OP_ADD, SPYRE_OPND_FIFO(to),
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
	bool ints = gen_is_int(g->mm->in);
	enum spyre_format ps = ints ? SPYRE_IEEE_INT32 : SPYRE_IEEE_FP32;
	struct spyreprog_job *job = g->job;
	int p = spyreprog_job_program(job, SPYRE_UNIT_SFP);
	bool relu = g->mm->act == SPYREGEN_RELU;

	sp_loop_reg(job, p, SPYRE_LCR0);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	sp_vec(job, p, ints ? SPYRE_OP_IMAX : act_op[g->mm->act],
	       SPYRE_OPND_FIFO(SPYRE_FIFO_SFP_LXSU), SPYRE_OPND_FIFO(from),
	       relu ? SPYRE_OPND_IMM : 0, 0, g->pl.rb, 0, SPYRE_FMTS(ps, 0, 0, g->mm->out));
	sp_end(job, p);
	sp_end(job, p);
	return p;
}

/* k divided: this core's place in the chain. */
static int sfp_chain(struct gen *g, bool first, bool end)
{
	bool ints = gen_is_int(g->mm->in), relu = g->mm->act == SPYREGEN_RELU;
	enum spyre_format ps = ints ? SPYRE_IEEE_INT32 : SPYRE_IEEE_FP32;
	enum spyre_op add = ints ? SPYRE_OP_IADD : SPYRE_OP_ADD;
	const unsigned int own = SPYRE_OPND_FIFO(SPYRE_FIFO_PT_SFP),
			   ring = SPYRE_OPND_FIFO(SPYRE_FIFO_RING);
	struct spyreprog_job *job = g->job;
	int p = spyreprog_job_program(job, SPYRE_UNIT_SFP);

	sp_loop_reg(job, p, SPYRE_LCR0);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	if (first) {
		sp_vec(job, p, SPYRE_OP_MOV, ring, own, 0, 0, g->pl.rb, 0,
		       SPYRE_FMTS(ps, 0, 0, ps));
	} else if (!end) {
		sp_vec(job, p, add, ring, ring, own, 0, g->pl.rb, 0, SPYRE_FMTS(ps, ps, 0, ps));
	} else {
		if (g->mm->bias)
			sp_vec(job, p, SPYRE_OP_MOV, SPYRE_OPND_V(0),
			       SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_SFP0), 0, 0, 1, 0,
			       SPYRE_FMTS(ps, 0, 0, 0));
		if (g->pl.rb > 1)
			sp_loop(job, p, g->pl.rb);
		sp_vec(job, p, add, SPYRE_OPND_V(1), ring, own, 0, 1, 0, SPYRE_FMTS(ps, ps, 0, 0));
		if (g->mm->bias)
			sp_vec(job, p, add, SPYRE_OPND_V(1), SPYRE_OPND_V(1), SPYRE_OPND_V(0), 0,
			       1, 0, 0);
		sp_vec(job, p, ints && relu ? SPYRE_OP_IMAX : act_op[g->mm->act],
		       SPYRE_OPND_FIFO(SPYRE_FIFO_SFP_LXSU), SPYRE_OPND_V(1),
		       relu ? SPYRE_OPND_IMM : 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, g->mm->out));
		if (g->pl.rb > 1)
			sp_end(job, p);
	}
	sp_end(job, p);
	sp_end(job, p);
	return p;
}

/* Two stages, used in turn. */
static void swap_stage(struct gen *g, int p, unsigned int lar, unsigned int spare, unsigned int c)
{
	gen_swap(g->job, p, lar, spare, g->pl.lx_stage[c], g->pl.rb * g->pl.wc * SPYRE_STICK);
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

/*
 * EAR0: c of corelet 0, EAR1: of corelet 1, EAR2: at this row block. In batches EAR3: of this
 * product, LBR0: step to the next, LCR2: products. LAR0, LAR1: stages. LAR2: for gen_l3. LAR3:
 * spare. corelets: mask of those whose results are stored here.
 */
static int l3su(struct gen *g, unsigned int corelets)
{
	const struct plan *pl = &g->pl;
	struct spyreprog_job *job = g->job;
	int p = spyreprog_job_program(job, SPYRE_UNIT_L3SU);
	uint64_t block = g->stored * pl->wc * SPYRE_STICK; /* from one column block to the next */
	uint32_t rows = pl->rb * pl->wc * SPYRE_STICK;
	unsigned int c;

	for (c = 0; c < pl->upu; c++) {
		if (!(corelets >> c & 1))
			continue;
		gen_set(job, p, SPYRE_LAR0 + c, pl->lx_stage[c]);
		sp_send(job, p, TAG_EMPTY + c, 0);
		sp_send(job, p, TAG_EMPTY + c, 0);
	}
	if (g->mm->batch > 1) {
		sp_loop_reg(job, p, SPYRE_LCR0 + 2);
		sp_mvreg(job, p, SPYRE_EAR0 + 2, SPYRE_EAR0 + 3, 0);
	}
	sp_loop_reg(job, p, SPYRE_LCR0);
	sp_mvreg(job, p, SPYRE_EAR0, SPYRE_EAR0 + 2, 0);
	sp_mvreg(job, p, SPYRE_EAR0 + 1, SPYRE_EAR0 + 2, (int32_t)block);
	sp_loop_reg(job, p, SPYRE_LCR0 + 1);
	for (c = 0; c < pl->upu; c++) {
		if (!(corelets >> c & 1))
			continue;
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
	if (g->mm->batch > 1) {
		sp_addreg(job, p, SPYRE_EAR0 + 3, SPYRE_LBR0, 1);
		sp_end(job, p);
	}
	return p;
}

/* --- Whole ---------------------------------------------------------------------------------- */

/* Sums of integers that do not stay int32. */
static bool scaled(const struct spyregen_matmul *mm)
{
	return gen_is_int(mm->in) && mm->out != SPYRE_IEEE_INT32;
}

static bool formats(const struct spyregen_matmul *mm)
{
	bool floats = gen_is16(mm->out) || mm->out == SPYRE_IEEE_FP32;

	if (mm->in == SPYRE_SENINT8 || mm->in == SPYRE_SENINT4)
		return floats || mm->out == SPYRE_IEEE_INT32 || mm->out == SPYRE_SENINT8 ||
		       mm->out == SPYRE_SENINT4;
	return floats && (gen_is16(mm->in) || gen_is8(mm->in));
}

static bool check(const struct spyregen_matmul *mm, char *err)
{
	uint64_t stored = spyregen_rows(mm->m), kt = up(mm->k, 64);

	if (!mm->m || !mm->n || !mm->k)
		return gen_fail(err, "m, n and k must be at least 1");
	if (!formats(mm))
		return gen_fail(err, "formats %s in, %s out: 16- or 8-bit floating point goes in and "
				"a 16-bit one or IEEE_FP32 comes out; or SENINT8 or SENINT4 in and any "
				"but SEN18F_FP24 and fp8 out", gen_format_name(mm->in),
				gen_format_name(mm->out));
	if (gen_is_int(mm->in) && mm->act > SPYREGEN_RELU)
		return gen_fail(err, "products of integers have the activation none or relu");
	if (scaled(mm) ? !isfinite(mm->scale) || mm->scale == 0 : mm->scale != 0)
		return gen_fail(err, scaled(mm) ? "formats %s in, %s out: the scale must be finite and not 0" :
				"formats %s in, %s out: there is nothing to scale, the scale must be 0",
				gen_format_name(mm->in), gen_format_name(mm->out));
	if (batches(mm) > 1u << 20)
		return gen_fail(err, "a batch of %u products; at most 1048576", mm->batch);
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

/* A core's programs; -1: none. */
struct progs {
	int l3su, unit[2][SPYRE_UNITS];
};

/* place: along k. */
static void programs(struct gen *g, struct progs *pr, uint32_t place)
{
	const struct spyregen_matmul *mm = g->mm;
	const struct plan *pl = &g->pl;
	bool ints = gen_is_int(mm->in), chain = pl->gk > 1, has_sfp, has_pe;
	enum spyre_fifo pt_to, last, bias_to;
	unsigned int c, stores = 0;

	memset(pr, 0xff, sizeof(*pr));
	has_sfp = mm->act != SPYREGEN_NONE || chain;
	has_pe = !chain && (mm->bias || (!has_sfp && gen_lane_words(mm->out) == 1));
	pt_to = has_pe ? SPYRE_FIFO_PT_PE : has_sfp ? SPYRE_FIFO_PT_SFP : SPYRE_FIFO_PT_LXSU;
	last = has_sfp ? SPYRE_FIFO_SFP_LXSU : has_pe ? SPYRE_FIFO_PE_LXSU : SPYRE_FIFO_PT_LXSU;
	for (c = 0; c < pl->upu; c++) {
		bool end = place == (c ? 0 : pl->gk - 1), first = place == (c ? pl->gk - 1 : 0);

		g->corelet = c;
		bias_to = !mm->bias || !end ? SPYRE_FIFOS :
			  chain ? SPYRE_FIFO_LXLU_SFP0 : SPYRE_FIFO_LXLU_PE0;
		pr->unit[c][SPYRE_UNIT_LXLU] = lxlu(g, bias_to);
		if (end) {
			stores |= 1u << c;
			pr->unit[c][SPYRE_UNIT_LXSU] = lxsu(g, last);
		}
		if (c) {
			pr->unit[c][SPYRE_UNIT_PT] = pr->unit[0][SPYRE_UNIT_PT];
			pr->unit[c][SPYRE_UNIT_PE] = pr->unit[0][SPYRE_UNIT_PE];
		} else {
			pr->unit[c][SPYRE_UNIT_PT] = pt(g, pt_to);
			if (has_pe)
				pr->unit[c][SPYRE_UNIT_PE] =
					pe(g, has_sfp ? SPYRE_FIFO_PE_SFP : SPYRE_FIFO_PE_LXSU,
					   !has_sfp ? mm->out :
					   ints ? SPYRE_IEEE_INT32 : SPYRE_IEEE_FP32);
		}
		if (chain)
			pr->unit[c][SPYRE_UNIT_SFP] = sfp_chain(g, first, end);
		else if (has_sfp)
			pr->unit[c][SPYRE_UNIT_SFP] = c ? pr->unit[0][SPYRE_UNIT_SFP] :
				sfp(g, has_pe ? SPYRE_FIFO_PE_SFP : SPYRE_FIFO_PT_SFP);
	}
	if (stores)
		pr->l3su = l3su(g, stores);
}

/* Where a core is in the whole. */
struct where {
	uint32_t b, i, j, k;
};

static void core(struct gen *g, const struct progs *pr, int prog_l3lu, uint32_t id, struct where w)
{
	static const uint8_t units[] = { SPYRE_UNIT_LXLU, SPYRE_UNIT_LXSU, SPYRE_UNIT_PT,
					 SPYRE_UNIT_PE, SPYRE_UNIT_SFP };
	const struct spyregen_matmul *mm = g->mm;
	const struct plan *pl = &g->pl;
	uint32_t b0 = (uint32_t)((uint64_t)batches(mm) * w.b / pl->gb);
	uint32_t nb = (uint32_t)((uint64_t)batches(mm) * (w.b + 1) / pl->gb) - b0;
	uint32_t m0 = (uint32_t)((uint64_t)pl->blocks * w.i / pl->gm);
	uint32_t nm = (uint32_t)((uint64_t)pl->blocks * (w.i + 1) / pl->gm) - m0;
	uint32_t n0 = (uint32_t)((uint64_t)pl->units * w.j / pl->gn);
	uint32_t nn = (uint32_t)((uint64_t)pl->units * (w.j + 1) / pl->gn) - n0;
	uint64_t row = (uint64_t)m0 * pl->rb, col = (uint64_t)n0 * pl->upu;
	uint64_t step_a = mm->flags & SPYREGEN_SHARED_A ? 0 : spyregen_bytes(mm->in, mm->m, mm->k);
	uint64_t step_b = mm->flags & SPYREGEN_SHARED_B ? 0 :
			  spyregen_weight_bytes(mm->in, mm->k, mm->n);
	uint64_t step_c = spyregen_bytes(mm->out, mm->m, mm->n);
	uint64_t a = b0 * step_a + (row + (uint64_t)w.k * pl->kt * g->stored) * SPYRE_STICK;
	uint64_t at_c = b0 * step_c + (col * g->stored + row) * pl->wc * SPYRE_STICK;
	unsigned int c, k;
	int u;

	u = spyreprog_job_unit(g->job, id, SPYRE_UNIT_L3LU, 0, prog_l3lu);
	if (mm->bias)
		spyreprog_job_init(g->job, u, SPYRE_EAR0, SYM_BIAS, col * 2 * SPYRE_STICK);
	spyreprog_job_init(g->job, u, SPYRE_LBR0 + 2, SYM_B,
			   b0 * step_b + (col * pl->kt_all + w.k * pl->kt) * TILE_BYTES);
	spyreprog_job_init(g->job, u, SPYRE_LCR0 + 1, SPYRE_NO_SYMBOL, nn);
	spyreprog_job_init(g->job, u, SPYRE_LCR0 + 2, SPYRE_NO_SYMBOL, nn - 1);
	spyreprog_job_init(g->job, u, SPYRE_LCR0, SPYRE_NO_SYMBOL,
			   mm->batch > 1 && pl->resident ? nb : nm);
	spyreprog_job_init(g->job, u, SPYRE_LCR0 + 3, SPYRE_NO_SYMBOL,
			   mm->batch > 1 && !pl->resident ? nb : nm - 1);
	spyreprog_job_init(g->job, u, mm->batch > 1 ? SPYRE_LBR0 + 3 : SPYRE_EAR0 + 3, SYM_A, a);
	if (mm->batch > 1) {
		spyreprog_job_init(g->job, u, SPYRE_LBR0, SPYRE_NO_SYMBOL, step_a);
		spyreprog_job_init(g->job, u, SPYRE_LBR0 + 1, SPYRE_NO_SYMBOL, step_b);
	}

	if (pr->l3su >= 0) {
		u = spyreprog_job_unit(g->job, id, SPYRE_UNIT_L3SU, 0, pr->l3su);
		spyreprog_job_init(g->job, u, mm->batch > 1 ? SPYRE_EAR0 + 3 : SPYRE_EAR0 + 2,
				   g->sym_c, at_c);
		if (mm->batch > 1) {
			spyreprog_job_init(g->job, u, SPYRE_LBR0, SPYRE_NO_SYMBOL, step_c);
			spyreprog_job_init(g->job, u, SPYRE_LCR0 + 2, SPYRE_NO_SYMBOL, nb);
		}
		init_grid(g, u, nm, nn);
	}
	for (c = 0; c < pl->upu; c++) {
		for (k = 0; k < sizeof(units); k++) {
			if (pr->unit[c][units[k]] < 0)
				continue;
			u = spyreprog_job_unit(g->job, id, units[k], c, pr->unit[c][units[k]]);
			init_grid(g, u, nm * nb, nn);
		}
	}
}

/* Multicast groups; returns the number of those for a, which come first. */
static uint32_t groups(struct gen *g, const uint32_t *used)
{
	const struct plan *pl = &g->pl;
	uint32_t cores = pl->gb * pl->gm * pl->gn * pl->gk, masks[2][32] = { { 0 } }, i, n = 0;

	for (i = 0; i < cores; i++) {
		uint32_t k = i % pl->gk, j = i / pl->gk % pl->gn, row = i / pl->gk / pl->gn;

		masks[0][row * pl->gk + k] |= 1u << used[i];
		masks[1][(row / pl->gm * pl->gn + j) * pl->gk + k] |= 1u << used[i];
	}
	for (i = 0; pl->cast_a && i < pl->gb * pl->gm * pl->gk; i++)
		spyreprog_job_group(g->job, n++, masks[0][i]);
	for (i = 0; pl->cast_b && i < pl->gb * pl->gn * pl->gk; i++)
		spyreprog_job_group(g->job, n++, masks[1][i]);
	g->op_a = pl->cast_a ? SPYRE_OP_L3_LDM : SPYRE_OP_L3_LDU;
	g->op_b = pl->cast_b ? SPYRE_OP_L3_LDM : SPYRE_OP_L3_LDU;
	return pl->cast_a ? pl->gb * pl->gm * pl->gk : 0;
}

static struct spyreprog_job *plain(const struct spyregen_matmul *mm, unsigned int sym_c, char *err)
{
	uint32_t avail = mm->cores ? mm->cores : 0xffffffffu, used[32], ncores = 0, i, first_b;
	struct progs pr[32];
	struct gen g = { .mm = mm, .sym_c = sym_c };
	struct plan *pl = &g.pl;
	int prog_l3lu = -1;

	for (i = 0; i < 32; i++)
		if (avail >> i & 1)
			used[ncores++] = i;
	if (!make_plan(mm, pl, ncores, (uint32_t)__builtin_popcount(avail & 0xffff)))
		return gen_fail(err, mm->split_m || mm->split_n || mm->split_k ?
				"%u x %u x %u does not divide as asked among %u cores, or does not fit LX" :
				"%u x %u x %u does not fit LX", mm->m, mm->n, mm->k, ncores);
	g.stored = spyregen_rows(mm->m);
	g.job = spyreprog_job_new();
	if (!g.job)
		return gen_fail(err, "out of memory");
	first_b = groups(&g, used);
	for (i = 0; i < pl->gk; i++)
		programs(&g, &pr[i], i);
	for (i = 0; i < pl->gb * pl->gm * pl->gn * pl->gk; i++) {
		uint32_t row = i / pl->gk / pl->gn;
		struct where w = { .b = row / pl->gm, .i = row % pl->gm,
				   .j = i / pl->gk % pl->gn, .k = i % pl->gk };

		/* Group numbers are in the text, so multicast needs one for each core. */
		if (pl->cast_a || pl->cast_b || prog_l3lu < 0) {
			g.group_a = pl->cast_a ? row * pl->gk + w.k : 0;
			g.group_b = pl->cast_b ? first_b + (w.b * pl->gn + w.j) * pl->gk + w.k : 0;
			prog_l3lu = l3lu(&g);
		}
		core(&g, &pr[w.k], prog_l3lu, used[i], w);
	}
	spyreprog_job_symbols(g.job, mm->bias ? 4 : 3);
	if (spyreprog_job_error(g.job)) {
		gen_fail(err, "%s", spyreprog_job_error(g.job));
		spyreprog_job_free(g.job);
		return NULL;
	}
	return g.job;
}

/* Appends part, of which symbols gives the numbers, to *job; false: part is NULL. */
static bool append(struct spyreprog_job **job, struct spyreprog_job *part, const unsigned int *symbols)
{
	if (!part) {
		spyreprog_job_free(*job);
		*job = NULL;
		return false;
	}
	if (*job)
		spyreprog_job_then(*job, part, symbols);
	else
		*job = part;
	return true;
}

/* Lays the operands out anew where it must, multiplies, and scales the sums. */
struct spyreprog_job *spyregen_matmul(const struct spyregen_matmul *mm, char *err)
{
	bool ta = mm->flags & SPYREGEN_TRANSPOSED_A, tb = mm->flags & SPYREGEN_TRANSPOSED_B;
	bool sb = mm->flags & SPYREGEN_STICKS_B;
	unsigned int symbols[4] = { SYM_A, SYM_B, SYM_C, SYM_BIAS }, next = mm->bias ? 4 : 3;
	struct spyregen_relayout a = { .op = SPYREGEN_TRANSPOSE, .rows = mm->k, .cols = mm->m };
	struct spyregen_relayout b = { .op = tb ? SPYREGEN_TRANSPOSE_WEIGHTS : SPYREGEN_TO_WEIGHTS,
				       .rows = tb ? mm->n : mm->k, .cols = tb ? mm->k : mm->n };
	struct gen_cast cast = { .m = mm->m, .n = mm->n, .in = SPYRE_IEEE_INT32, .out = mm->out,
				 .scale = mm->scale, .cores = mm->cores, .batch = mm->batch,
				 .to = SYM_C };
	struct spyregen_matmul sums = *mm;
	struct spyreprog_job *job = NULL;

	if (!check(mm, err))
		return NULL;
	if ((ta || tb || sb) && !gen_is16(mm->in))
		return gen_fail(err, "transposed operands and a right one in sticks have a 16-bit format");
	if (tb && sb)
		return gen_fail(err, "the right operand is either transposed or in sticks as it is");
	a.fmt = b.fmt = mm->in;
	a.cores = b.cores = mm->cores;
	a.batch = mm->flags & SPYREGEN_SHARED_A ? 1 : mm->batch;
	b.batch = mm->flags & SPYREGEN_SHARED_B ? 1 : mm->batch;
	if (ta) {
		if (!append(&job, gen_relayout(&a, SYM_A, next, err), NULL))
			return NULL;
		symbols[SYM_A] = next++;
	}
	if (tb || sb) {
		if (!append(&job, gen_relayout(&b, SYM_B, next, err), NULL))
			return NULL;
		symbols[SYM_B] = next++;
	}
	if (scaled(mm)) {
		cast.from = next;
		sums.out = SPYRE_IEEE_INT32;
	}
	if (!append(&job, plain(&sums, scaled(mm) ? cast.from : SYM_C, err), symbols))
		return NULL;
	if (scaled(mm) && !append(&job, gen_cast(&cast, err), NULL))
		return NULL;
	if (spyreprog_job_error(job)) {
		gen_fail(err, "%s", spyreprog_job_error(job));
		spyreprog_job_free(job);
		return NULL;
	}
	return job;
}
