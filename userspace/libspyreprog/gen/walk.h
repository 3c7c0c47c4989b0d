/* SPDX-License-Identifier: MIT */
/*
 * Steps over a grid, for operators that move through tensors block by block. Internal.
 *
 * A step loads runs of sticks of each operand, computes and stores. The steps of a grid are shared
 * out evenly among cores, in one stretch for each; both corelets of a core work on a step. A corelet
 * has two slots for operands and two for results, so loads, arithmetic and stores overlap. An
 * operator with uneven ends walks several grids, one after the other.
 */
#ifndef SPYREGEN_WALK_H
#define SPYREGEN_WALK_H

#include "gen.h"

#define WALK_OPERANDS	3u

/* One operand, or the result. Bytes, but for words. */
struct walk_side {
	uint64_t base;			/* of the first step, behind the symbol's address */
	int64_t inner, outer;		/* to the next step in a row of the grid, to the next row */
	int64_t half;			/* from corelet 0's part to corelet 1's */
	uint32_t words[2];		/* sticks of a run, by corelet; 0: the corelet does nothing */
	uint32_t pieces;		/* runs, 0: 1 */
	int64_t piece;			/* from run to run */
};

struct walk;

struct walk_grid {
	uint32_t rows, cols;
	struct walk_side in[WALK_OPERANDS], out;
	/* One step of corelet c. Slots begin at LAR2 (LXLU, LXSU); LAR0, LAR1 are free for use. */
	void (*load)(const struct walk *w, const struct walk_grid *g, int p, unsigned int c);
	void (*compute)(const struct walk *w, const struct walk_grid *g, int p, unsigned int c);
	void (*store)(const struct walk *w, const struct walk_grid *g, int p, unsigned int c);
	const void *arg;
};

struct walk {
	struct spyreprog_job *job;
	uint32_t cores;			/* mask, 0: all */
	unsigned int nin;
	unsigned int symbol[WALK_OPERANDS + 1];	/* of the operands, of the result */
	enum spyre_unit unit;		/* PE or SFP */
	uint32_t batch;			/* 0: 1 */
	uint64_t step[WALK_OPERANDS + 1];	/* bytes to the next tensor of a batch */
	const struct walk_grid *grids;
	unsigned int ngrids;
	uint32_t temp;			/* sticks of LX for each corelet, besides the slots */
	/* Set by walk(). */
	uint32_t lx_in[2], lx_out[2], lx_temp[2], slot_in, slot_out;
};

/* False when a step does not fit LX. */
bool walk(struct walk *w);
/* Sticks of operand o in its slot, and where it begins. */
uint32_t walk_words(const struct walk_side *s, unsigned int c);
uint32_t walk_at(const struct walk *w, const struct walk_grid *g, unsigned int o, unsigned int c);
/* n times wl sticks, stride apart, through a FIFO. */
void walk_spread(const struct walk *w, int p, bool load, enum spyre_fifo fifo, unsigned int lar,
		 unsigned int wl, uint32_t n, uint32_t stride);
/*
 * What lies in LX at LAR2 as so many columns, one behind the other, of units of wl sticks goes through
 * a FIFO row by row. Uses LAR0 and LAR1.
 */
void walk_by_row(const struct walk *w, int p, bool load, enum spyre_fifo fifo, unsigned int wl,
		 uint32_t rows, uint32_t cols);
/* Stores what comes from a FIFO one word behind the other. */
void walk_store(const struct walk *w, const struct walk_grid *g, int p, unsigned int c);

#endif
