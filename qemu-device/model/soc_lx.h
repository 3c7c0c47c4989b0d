/* SPDX-License-Identifier: MIT */
/*
 * LX of a core, in grains of a burst, two of whose costs are put off. At the start of a job the grains written before
 * become stale: one is cleared when it is read or partly written. And a burst that L3LU loads is lent: it stays where
 * it lies in memory until it is read other than in a row or partly written; most are read once, in a row, from there.
 *
 * What is lent must be what memory held when it was loaded. The program's own stores settle what they fall on first.
 * Those of another core or of the host count only if something orders them behind the load: hence only jobs whose
 * cores never hear of each other lend, and whoever waits for a worker to let go of its pointers has all settled.
 */
#ifndef SPYRE_SOC_LX_H
#define SPYRE_SOC_LX_H

#include "soc_int.h"

#define LX_GRAIN	((uint64_t)1 << LX_GRAIN_SHIFT)

static inline bool lx_is_lent(const struct core *c, uint64_t g)
{
	return c->lx_lent[g / 64] >> g % 64 & 1;
}

static inline bool lx_settled(const struct core *c, uint64_t g)
{
	return !((c->lx_stale[g / 64] | c->lx_lent[g / 64]) >> g % 64 & 1);
}

/* Grain g is neither stale nor lent any more; what LX holds there is the caller's affair. */
static inline void lx_own(struct core *c, uint64_t g)
{
	uint64_t bit = 1ull << g % 64;

	c->lx_stale[g / 64] &= ~bit;
	if (c->lx_lent[g / 64] & bit) {
		c->lx_lent[g / 64] &= ~bit;
		c->nlent--;
	}
}

static inline void lx_settle_grain(struct core *c, uint64_t g)
{
	uint8_t *at = c->lx + (g << LX_GRAIN_SHIFT);

	if (lx_is_lent(c, g))
		memcpy(at, c->lent[g], LX_GRAIN);
	else
		memset(at, 0, LX_GRAIN);
	lx_own(c, g);
}

/* addr to addr + bytes is about to be read. */
static inline void lx_read(struct core *c, uint64_t addr, uint64_t bytes)
{
	uint64_t g, last = (addr + bytes - 1) >> LX_GRAIN_SHIFT;

	for (g = addr >> LX_GRAIN_SHIFT; g <= last; g++)
		if (!lx_settled(c, g))
			lx_settle_grain(c, g);
}

/* All of addr to addr + bytes is about to be written; whole: without gaps. */
static inline void lx_write(struct core *c, uint64_t addr, uint64_t bytes, bool whole)
{
	uint64_t g, end = addr + bytes, at;

	for (g = addr >> LX_GRAIN_SHIFT; g <= (end - 1) >> LX_GRAIN_SHIFT; g++) {
		uint64_t *dirty = &c->lx_dirty[g / 64], bit = 1ull << g % 64;

		/* Neighbours mark grains too, if the job has stores from core to core. */
		if (c->soc->shared_lx) {
			if (!(__atomic_load_n(dirty, __ATOMIC_RELAXED) & bit))
				__atomic_fetch_or(dirty, bit, __ATOMIC_RELAXED);
		} else {
			*dirty |= bit;
		}
		if (lx_settled(c, g))
			continue;
		at = g << LX_GRAIN_SHIFT;
		if (whole && addr <= at && end >= at + LX_GRAIN)
			lx_own(c, g);
		else
			lx_settle_grain(c, g);
	}
}

static inline bool lx_can_lend(uint64_t addr, uint64_t bytes)
{
	return !((addr | bytes) % LX_GRAIN);
}

/* In place of a copy, after lx_write(): addr to addr + bytes, which lx_can_lend(), is what lies at p. */
static inline void lx_lend(struct core *c, uint64_t addr, const uint8_t *p, uint64_t bytes)
{
	uint64_t g = addr >> LX_GRAIN_SHIFT, end = (addr + bytes) >> LX_GRAIN_SHIFT;

	for (; g < end; g++, p += LX_GRAIN) {
		c->lent[g] = p;
		c->lx_lent[g / 64] |= 1ull << g % 64;
		c->nlent++;
	}
}

/* Settles what is lent from the len bytes at p; p NULL: all that is lent. */
static inline void lx_settle(struct core *c, const uint8_t *p, uint64_t len)
{
	unsigned int k;
	uint64_t m, g;

	for (k = 0; c->nlent && k < LX_GRAINS / 64; k++) {
		for (m = c->lx_lent[k]; m; m &= m - 1) {
			g = k * 64 + (unsigned int)__builtin_ctzll(m);
			if (!p || (c->lent[g] < p + len && p < c->lent[g] + LX_GRAIN))
				lx_settle_grain(c, g);
		}
	}
}

/*
 * For a read of *n words in a row from addr: where they lie, and in *n how many of them (at least one) follow each
 * other there. Good until the next store to memory or checkpoint.
 */
static inline const uint8_t *lx_words(struct core *c, uint64_t addr, uint32_t *n)
{
	uint64_t g = addr >> LX_GRAIN_SHIFT, end = addr + *n * (uint64_t)SPYRE_STICK;
	uint64_t at = (g + 1) << LX_GRAIN_SHIFT;
	bool lent = c->nlent && lx_is_lent(c, g);
	const uint8_t *p = lent ? c->lent[g] + addr % LX_GRAIN : c->lx + addr;

	for (; c->nlent && at < end; at += LX_GRAIN) {
		g++;
		if (lx_is_lent(c, g) != lent || (lent && c->lent[g] != p + (at - addr))) {
			*n = (uint32_t)((at - addr) / SPYRE_STICK);
			break;
		}
	}
	if (!lent)
		lx_read(c, addr, *n * (uint64_t)SPYRE_STICK);
	return p;
}

/* Clears what is stale now: other cores are going to store here. */
static inline void lx_clear_stale(struct core *c)
{
	uint64_t g;

	for (g = 0; g < LX_GRAINS; g++)
		if (!lx_settled(c, g))
			lx_settle_grain(c, g);
}

#endif
