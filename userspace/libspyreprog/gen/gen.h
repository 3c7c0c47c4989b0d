/* SPDX-License-Identifier: MIT */
/* Shared by the generators. Internal. */
#ifndef SPYREGEN_GEN_H
#define SPYREGEN_GEN_H

#include <stdarg.h>

#include <spyre/hw.h>

#include "spyregen.h"

#define TILE_BYTES	8192u	/* an XRF tile: 64 sticks */
#define BURST		32u	/* sticks of the longest L3 access */

void *gen_fail(char *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool gen_is16(enum spyre_format fmt);
bool gen_is8(enum spyre_format fmt);
bool gen_is_int(enum spyre_format fmt);
unsigned int gen_width(enum spyre_format fmt);		/* columns of a column block: 64, 128, 256 */
unsigned int gen_lane_words(enum spyre_format fmt);	/* sticks that 64 lanes take: 1 or 2 */

/* words sticks by L3, contiguous on both sides; LAR and EAR move behind them. */
void gen_l3(struct spyreprog_job *job, int p, enum spyre_op op, unsigned int lar, unsigned int ear,
	    uint64_t words, unsigned int group);
/* spyregen_relayout() between two symbols. */
struct spyreprog_job *gen_relayout(const struct spyregen_relayout *r, unsigned int from,
				   unsigned int to, char *err);
/* What turns lanes of one format into lanes of another: MOV, I2F or F2I. */
enum spyre_op gen_cast_op(enum spyre_format in, enum spyre_format out);

/* A conversion between two symbols, any formats. */
struct gen_cast {
	uint32_t m, n;
	enum spyre_format in, out;
	uint32_t cores;
	uint32_t batch;			/* 0: 1 */
	unsigned int from, to;
	float scale;			/* of a product with it before, from integers; 0: none */
};

struct spyreprog_job *gen_cast(const struct gen_cast *e, char *err);
/* A name, whatever fmt is. */
const char *gen_format_name(enum spyre_format fmt);
/* Whether a tensor of m x n elements, as it is stored, has a place on the card. fmt is a format. */
bool gen_fits(enum spyre_format fmt, uint32_t m, uint32_t n, char *err);
/* reg = value below 2^31 */
void gen_set(struct spyreprog_job *job, int p, unsigned int reg, uint32_t value);
/* reg = the other of two neighbouring slots of size bytes from base on; spare is used up. */
void gen_swap(struct spyreprog_job *job, int p, unsigned int reg, unsigned int spare, uint32_t base,
	      uint32_t size);
/* v rounded up to a multiple of to */
uint64_t gen_up(uint64_t v, uint64_t to);

/* Tags of double buffering, + corelet: input is there, its slot free; result is there, its slot free. */
enum { TAG_LOADED = 0, TAG_FREE = 2, TAG_STAGED = 4, TAG_EMPTY = 6, TAG_TEMP = 8 };

#endif
