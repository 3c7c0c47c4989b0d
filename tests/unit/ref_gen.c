// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref_gen.h"
#include "ref_num.h"
#include "spyreprog.h"

#define SLOT 4096u /* bytes of LX and memory, the unit of race-freedom */
#define L0_SLOT 1024u
#define LX_RUNS 6u /* pieces of a core's LX in use, ... */
#define LX_RUN 8u  /* ... of so many slots */
#define LX_SLOTS (LX_RUNS * LX_RUN)
#define L0_SLOTS 8u
#define RW_SLOTS (REF_RW_BYTES / SLOT)
#define CODE 48u
#define PARTS 40u
#define TOUCHES 512u
#define NOREG SPYRE_REG_NONE
#define REF_OUT_CORE 0x50000u /* of a core's dump */
#define WORDS_MAX 160u	      /* of a transfer in one iteration */

struct slot {
	int writer;	  /* unit, -1: none */
	uint32_t written; /* writer's clock then */
	uint32_t *read;	  /* clock of each unit's last read */
};

struct gunit {
	unsigned int core, kind, corelet;
	struct spyre_insn *insn;
	size_t n, cap;
	unsigned int depth;
	bool loop_empty; /* nothing since the last MVLOOPCNT */
	bool carry;	 /* LBR3 grows over the iterations of a loop around here, ... */
	int64_t carry_min, carry_max; /* ... within this */
	uint32_t clock;
	uint32_t *before; /* clocks of all units that are known to be over */
	bool allowed;	  /* takes part in all loops that are open */
	bool touched;	  /* LX, L0 or memory, since the innermost loop began */
	uint32_t lcr3;
};

struct tag {
	int waiter, sender;
};

struct touch {
	unsigned int unit, slot;
	bool write;
};

/* What one unit does in an event. */
struct part {
	unsigned int unit;
	struct spyre_insn in[CODE];
	unsigned int n;
	struct touch touch[TOUCHES / 8];
	unsigned int ntouches;
};

struct region {
	unsigned int slot, nslots, slot_bytes;
	uint64_t addr;
};

struct gen {
	uint64_t rng;
	unsigned int ncores, clones, core[REF_CORES], nunits, nslots;
	struct spyreprog_job *job;
	struct gunit *unit;
	struct slot *slot;
	struct tag (*tag)[SPYRE_TAGS];
	uint64_t lx_run[LX_RUNS];
	uint32_t groups[SPYRE_JOB_GROUPS];
	struct part *part;
	unsigned int nparts;
	struct touch touch[TOUCHES]; /* of the innermost loop's body */
	unsigned int ntouches;
	bool overflow;
	uint64_t mult, words, words_max;
	unsigned int depth;
	int through[2]; /* units of the event whose accesses FIFOs order, -1: none */
	uint8_t tile_fmt[REF_CORES][2][REF_TILES];
	int consts[8];
	struct ref_program *out;
};

static uint32_t rnd(struct gen *g)
{
	g->rng = g->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(g->rng >> 33);
}

static uint32_t below(struct gen *g, uint32_t n)
{
	return rnd(g) % n;
}

static bool chance(struct gen *g, uint32_t percent)
{
	return below(g, 100) < percent;
}

static void *zalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		abort();
	return p;
}

/* Units are numbered by core (its place in the job), then as in the container. */
static unsigned int uid(unsigned int c, unsigned int kind, unsigned int x)
{
	return c * REF_UNITS + kind + (kind >= SPYRE_UNIT_LXLU ? 7 * x : 0);
}

/* --- Programs of units ---------------------------------------------------------------------- */

static void emit(struct gen *g, unsigned int u, struct spyre_insn in)
{
	struct gunit *q = &g->unit[u];

	if (q->n == q->cap) {
		q->cap = q->cap ? 2 * q->cap : 64;
		q->insn = realloc(q->insn, q->cap * sizeof(in));
		if (!q->insn)
			abort();
	}
	q->insn[q->n++] = in;
	q->loop_empty = in.op == SPYRE_OP_MVLOOPCNT;
}

static struct spyre_insn mvreg(unsigned int reg, unsigned int src, int64_t imm)
{
	return (struct spyre_insn) {
		.op = SPYRE_OP_MVREG,
		.a = (uint8_t)reg,
		.b = (uint8_t)src,
		.imm = (uint32_t)(int32_t)imm,
	};
}

static struct spyre_insn addimm(unsigned int reg, int64_t imm)
{
	return (struct spyre_insn) { .op = SPYRE_OP_ADDIMM,
				     .a = (uint8_t)reg,
				     .imm = (uint32_t)(int32_t)imm };
}

static struct spyre_insn loopcnt(uint32_t count)
{
	return (struct spyre_insn) { .op = SPYRE_OP_MVLOOPCNT, .imm = count };
}

static void open_loop(struct gen *g, unsigned int u, uint32_t count)
{
	unsigned int lcr = SPYRE_LCR0 + below(g, 3);

	if (chance(g, 60)) {
		emit(g, u, loopcnt(count));
	} else {
		/* LCR3 keeps the value it was given at the start. */
		if (chance(g, 50))
			emit(g, u, mvreg(lcr, SPYRE_LCR0 + 3, (int64_t)count - g->unit[u].lcr3));
		else
			emit(g, u, mvreg(lcr, NOREG, count));
		emit(g, u,
		     (struct spyre_insn) { .op = SPYRE_OP_MVLOOPCNT, .b = (uint8_t)lcr, .c = 1 });
	}
	g->unit[u].depth++;
}

static void close_loop(struct gen *g, unsigned int u)
{
	if (g->unit[u].loop_empty)
		emit(g, u, (struct spyre_insn) { .op = SPYRE_OP_NOP });
	g->unit[u].insn[g->unit[u].n - 1].be++;
	g->unit[u].depth--;
}

/* --- Order ---------------------------------------------------------------------------------- */

/* Tag that only sender sends to and only waiter waits for, or -1. */
static int pair_tag(struct gen *g, unsigned int waiter, unsigned int sender)
{
	struct tag *t = g->tag[waiter / REF_UNITS];
	unsigned int k, from = below(g, SPYRE_TAGS);
	int free_tag = -1;

	for (k = 0; k < SPYRE_TAGS; k++) {
		unsigned int i = (k + from) % SPYRE_TAGS;

		if (t[i].waiter == (int)waiter && t[i].sender == (int)sender)
			return (int)i;
		if (t[i].waiter < 0)
			free_tag = (int)i;
	}
	return free_tag;
}

static bool can_order(struct gen *g, unsigned int v, unsigned int u)
{
	return g->unit[v].allowed && g->unit[u].allowed && pair_tag(g, u, v) >= 0;
}

static void learn(struct gen *g, unsigned int u, unsigned int v)
{
	unsigned int i;

	for (i = 0; i < g->nunits; i++)
		if (g->unit[u].before[i] < g->unit[v].before[i])
			g->unit[u].before[i] = g->unit[v].before[i];
	if (g->unit[u].before[v] < g->unit[v].clock)
		g->unit[u].before[v] = g->unit[v].clock;
}

/* What v has done so far comes before what u does from here on. */
static void order(struct gen *g, unsigned int v, unsigned int u)
{
	unsigned int times = chance(g, 85) ? 1 : 2 + below(g, 3), i, uc = u / REF_UNITS;
	int t = pair_tag(g, u, v);
	struct spyre_insn send;

	if (t < 0)
		abort();
	g->tag[uc][t] = (struct tag) { (int)u, (int)v };
	send = (struct spyre_insn) { .op = SPYRE_OP_SYNC_SEND, .a = (uint8_t)t };
	if (uc != v / REF_UNITS || (!g->clones && chance(g, 30)))
		send.imm = 1u << g->core[uc];
	for (i = 0; i < times; i++)
		emit(g, v, send);
	if (times > 1 && chance(g, 50)) {
		emit(g, u,
		     (struct spyre_insn) { .op = SPYRE_OP_SYNC_WAIT, .a = (uint8_t)t, .n = 1 });
		times--;
	}
	emit(g, u,
	     (struct spyre_insn) {
		     .op = SPYRE_OP_SYNC_WAIT, .a = (uint8_t)t, .n = (uint16_t)times });
	learn(g, u, v);
}

/* Units whose accesses to slot have to be ordered before u's: calls fn for each, all must be true.
 */
static bool conflicts(struct gen *g, unsigned int u, const struct touch *t, bool apply)
{
	struct slot *s = &g->slot[t->slot];
	unsigned int v;

	if (s->writer >= 0 && s->writer != (int)u && s->written > g->unit[u].before[s->writer]) {
		if (apply)
			order(g, (unsigned int)s->writer, u);
		else if (!can_order(g, (unsigned int)s->writer, u))
			return false;
	}
	for (v = 0; t->write && v < g->nunits; v++) {
		if (v == u || s->read[v] <= g->unit[u].before[v])
			continue;
		if (apply)
			order(g, v, u);
		else if (!can_order(g, v, u))
			return false;
	}
	return true;
}

/* --- Accesses ------------------------------------------------------------------------------- */

static struct part *new_part(struct gen *g, unsigned int u)
{
	struct part *p;

	if (g->nparts == PARTS) {
		g->overflow = true;
		g->nparts--;
	}
	p = &g->part[g->nparts++];
	p->unit = u;
	p->n = p->ntouches = 0;
	if (!g->unit[u].allowed)
		g->overflow = true;
	return p;
}

static void put(struct gen *g, struct part *p, struct spyre_insn in)
{
	if (p->n < CODE)
		p->in[p->n++] = in;
	else
		g->overflow = true;
}

static void add_touch(struct gen *g, struct part *p, unsigned int slot, bool write)
{
	unsigned int i;

	for (i = 0; i < p->ntouches; i++) {
		if (p->touch[i].slot == slot) {
			p->touch[i].write |= write;
			return;
		}
	}
	if (p->ntouches < TOUCHES / 8)
		p->touch[p->ntouches++] = (struct touch) { p->unit, slot, write };
	else
		g->overflow = true;
}

static struct region lx_region(struct gen *g, unsigned int c)
{
	unsigned int run = below(g, LX_RUNS), first = below(g, LX_RUN),
		     n = 1 + below(g, LX_RUN - first);

	return (struct region) { c * LX_SLOTS + run * LX_RUN + first, n, SLOT,
				 g->lx_run[run] + first * SLOT };
}

static struct region l0_region(struct gen *g, unsigned int c, unsigned int x)
{
	unsigned int first = below(g, L0_SLOTS), n = 1 + below(g, L0_SLOTS - first);

	return (struct region) { g->ncores * LX_SLOTS + (c * 2 + x) * L0_SLOTS + first, n, L0_SLOT,
				 first * L0_SLOT };
}

static struct region rw_region(struct gen *g)
{
	unsigned int first = below(g, RW_SLOTS),
		     n = 1 + below(g, RW_SLOTS - first < 6 ? RW_SLOTS - first : 6);

	return (struct region) { g->ncores * (LX_SLOTS + 2 * L0_SLOTS) + first, n, SLOT,
				 first * SLOT };
}

/* The input: never written, so never tracked. */
static struct region in_region(void)
{
	return (struct region) { 0, 0, SLOT, 0 };
}

static int64_t stride(struct gen *g, unsigned int limit)
{
	static const int8_t likely[] = { 1, 1, 1, 1, 0, -1, 2, 3, -2 };

	return 128 * (int64_t)(chance(g, 80) ? likely[below(g, sizeof(likely))]
					     : (int)below(g, 2 * limit + 1) - (int)limit);
}

/* Loops and instructions that move total words; the address registers move on in between as they
 * like. */
static void pattern(struct gen *g, struct part *p, struct spyre_insn in, unsigned int total,
		    unsigned int max, unsigned int depth, unsigned int limit)
{
	bool l3 = in.op < SPYRE_OP_LD;
	unsigned int f, tries;

	if (total <= max && (!depth || chance(g, 60))) {
		in.n = (uint16_t)total;
		if (l3) {
			in.imm = (uint32_t)(stride(g, limit) * (chance(g, 50) ? (int)total : 1));
			in.imm2 = (uint32_t)(stride(g, limit) * (chance(g, 50) ? (int)total : 1));
		} else {
			in.imm = (uint32_t)stride(g, limit);
			in.imm2 = (uint32_t)(stride(g, limit) * (chance(g, 50) ? (int)total : 1));
		}
		put(g, p, in);
		return;
	}
	for (tries = 0; depth && tries < 6; tries++) {
		unsigned int at = p->n;

		f = 2 + below(g, 7);
		if (total % f)
			continue;
		put(g, p, loopcnt(f));
		pattern(g, p, in, total / f, max, depth - 1, limit);
		if (chance(g, 30))
			put(g, p, addimm(in.a, stride(g, limit)));
		if (l3 && chance(g, 30))
			put(g, p, addimm(in.c, stride(g, limit)));
		if (p->n > at + 1)
			p->in[p->n - 1].be++;
		return;
	}
	if (total == 1) {
		pattern(g, p, in, 1, max, 0, limit);
		return;
	}
	f = 1 + below(g, total < max ? total - 1 : max);
	pattern(g, p, in, f, max, depth, limit);
	if (total > f)
		pattern(g, p, in, total - f, max, depth, limit);
}

struct span {
	int64_t min, max;
};

/* Where the code from instruction first on reaches: local and external, relative to registers that
 * start at 0. */
static void spans(const struct part *p, unsigned int first, struct span *lo, struct span *ex)
{
	struct ref_insn text[CODE + 1];
	struct ref_unit u = { .text = text };
	struct ref_seq s;
	unsigned int i;

	for (i = first; i < p->n; i++) {
		const struct spyre_insn *in = &p->in[i];

		text[i - first] = (struct ref_insn) {
			in->op,
			in->be,
			in->a,
			in->b,
			in->c,
			in->d,
			in->n,
			(int32_t)in->imm,
			(int32_t)in->imm2,
		};
	}
	text[p->n - first] = (struct ref_insn) { .op = SPYRE_OP_RETURN };
	*lo = *ex = (struct span) { INT64_MAX, INT64_MIN };
	for (ref_seq_start(&s, &u); !ref_seq_done(&s); ref_seq_retire(&s)) {
		const struct ref_insn *in = ref_seq_insn(&s);
		int64_t a, step = 128, e = 0;

		if (in->op < SPYRE_OP_L3_LDU || in->op > SPYRE_OP_ST)
			continue;
		a = (int64_t)s.reg[in->a];
		if (in->op >= SPYRE_OP_LD)
			step = in->imm;
		else
			e = (int64_t)s.reg[in->c];
		for (i = 0; i < in->n; i++, a += step) {
			lo->min = a < lo->min ? a : lo->min;
			lo->max = a > lo->max ? a : lo->max;
			if (in->op >= SPYRE_OP_LD)
				continue;
			ex->min = e < ex->min ? e : ex->min;
			ex->max = e > ex->max ? e : ex->max;
			e += 128;
		}
	}
}

/* Puts a span into a region of bytes; -1 if it is too long. Multiples of 128. */
static int64_t place(struct gen *g, const struct span *s, uint64_t addr, uint64_t bytes)
{
	uint64_t need = (uint64_t)(s->max - s->min) + 128;

	if (need > bytes)
		return -1;
	return (int64_t)addr + 128 * (int64_t)below(g, (uint32_t)((bytes - need) / 128 + 1)) -
	       s->min;
}

static void touch_span(struct gen *g, struct part *p, const struct region *r, int64_t from,
		       int64_t to, bool write)
{
	int64_t a;

	if (!r->nslots)
		return;
	for (a = from / r->slot_bytes; a <= to / r->slot_bytes; a++)
		add_touch(g, p, r->slot + (unsigned int)(a - (int64_t)(r->addr / r->slot_bytes)),
			  write);
}

/*
 * Appends to p: in, repeated in some way until total words are moved, within a local region and for
 * L3 an external one (with the register that holds its base). False if it did not fit.
 */
static bool transfer(struct gen *g, struct part *p, struct spyre_insn in, unsigned int total,
		     const struct region *r, const struct region *ext, unsigned int ext_base)
{
	struct gunit *q = &g->unit[p->unit];
	bool l3 = in.op < SPYRE_OP_LD,
	     load = in.op == SPYRE_OP_LD || in.op == SPYRE_OP_L3_STU || in.op == SPYRE_OP_L3_STC;
	unsigned int start = p->n, tries, depth, body;
	int64_t base, ebase = 0, lbr = 0;
	struct span lo, ex;

	depth = SPYRE_LOOPS - q->depth;
	if (depth > 3 && !chance(g, 10))
		depth = 3;
	in.a = (uint8_t)(SPYRE_LAR0 + below(g, 4));
	in.b = NOREG;
	if (l3)
		in.c = SPYRE_EAR0;
	for (tries = 0; tries < 12; tries++) {
		bool carry = q->carry && chance(g, 60);

		p->n = start;
		in.b = NOREG;
		lbr = 0;
		if (carry) {
			in.b = SPYRE_LBR0 + 3;
		} else if (chance(g, 30)) {
			in.b = (uint8_t)(SPYRE_LBR0 + below(g, 3));
			lbr = 128 * ((int64_t)below(g, 20000) - 10000);
			put(g, p, mvreg(in.b, NOREG, lbr));
		}
		put(g, p, mvreg(in.a, NOREG, 0));
		if (l3)
			put(g, p, mvreg(in.c, ext ? ext_base : NOREG, 0));
		body = p->n;
		pattern(g, p, in, total, l3 ? 32 : 65535, tries < 8 ? depth : 0,
			tries < 8 ? 6 - tries / 2 : 1);
		if (g->overflow)
			return false;
		spans(p, body, &lo, &ex);
		if (carry) {
			lo.min += q->carry_min;
			lo.max += q->carry_max;
		}
		base = place(g, &lo, r->addr, (uint64_t)r->nslots * r->slot_bytes);
		if (l3)
			ebase = place(g, &ex, ext->addr,
				      ext->nslots ? (uint64_t)ext->nslots * ext->slot_bytes
						  : REF_IN_BYTES);
		if (base + lo.min < (int64_t)r->addr ||
		    ebase + (l3 ? ex.min : 0) < (l3 ? (int64_t)ext->addr : 0))
			continue;
		p->in[body - (l3 ? 2 : 1)].imm = (uint32_t)(int32_t)(base - lbr);
		if (l3)
			p->in[body - 1].imm = (uint32_t)(int32_t)ebase;
		touch_span(g, p, r, base + lo.min, base + lo.max, !load);
		if (l3)
			touch_span(g, p, ext, ebase + ex.min, ebase + ex.max, load);
		return true;
	}
	p->n = start;
	return false;
}

static bool ordered_through(const struct gen *g, unsigned int a, unsigned int b)
{
	return ((int)a == g->through[0] && (int)b == g->through[1]) ||
	       ((int)b == g->through[0] && (int)a == g->through[1]);
}

/* Whether the event as collected may happen here; if so, it does. */
static bool commit(struct gen *g, uint64_t words)
{
	unsigned int i, k, j, l;

	if (g->overflow || (g->words + words * g->mult > g->words_max && g->words))
		return false;
	for (i = 0; i < g->nparts; i++) {
		struct part *p = &g->part[i];

		for (k = 0; k < p->ntouches; k++) {
			if (!conflicts(g, p->unit, &p->touch[k], false))
				return false;
			for (j = 0; j < i; j++) {
				if (ordered_through(g, p->unit, g->part[j].unit))
					continue;
				for (l = 0; l < g->part[j].ntouches; l++)
					if (g->part[j].unit != p->unit &&
					    g->part[j].touch[l].slot == p->touch[k].slot &&
					    (g->part[j].touch[l].write || p->touch[k].write))
						return false;
			}
		}
	}
	for (i = 0, k = g->ntouches; i < g->nparts; i++)
		k += g->part[i].ntouches;
	if (k > TOUCHES)
		return false;
	g->words += words * g->mult;
	/* All tags first: what a unit sends after its part may not be waited for by another before
	 * its own. */
	for (i = 0; i < g->nparts; i++)
		for (k = 0; k < g->part[i].ntouches; k++)
			conflicts(g, g->part[i].unit, &g->part[i].touch[k], true);
	for (i = 0; i < g->nparts; i++) {
		struct part *p = &g->part[i];
		struct gunit *q = &g->unit[p->unit];

		for (k = 0; k < p->n; k++)
			emit(g, p->unit, p->in[k]);
		q->clock++;
		for (k = 0; k < p->ntouches; k++) {
			struct slot *s = &g->slot[p->touch[k].slot];

			if (p->touch[k].write) {
				s->writer = (int)p->unit;
				s->written = q->clock;
			} else {
				s->read[p->unit] = q->clock;
			}
			g->touch[g->ntouches++] = p->touch[k];
		}
	}
	return true;
}

static void begin_event(struct gen *g)
{
	g->nparts = 0;
	g->overflow = false;
	g->through[0] = g->through[1] = -1;
}

/* The part of a unit in the event so far, or a new one. */
static struct part *part_of(struct gen *g, unsigned int u)
{
	unsigned int i;

	for (i = 0; i < g->nparts; i++)
		if (g->part[i].unit == u)
			return &g->part[i];
	return new_part(g, u);
}

/* --- Vector instructions -------------------------------------------------------------------- */

struct need {
	unsigned int fifo, words;
};

static const uint8_t fifo_writer[SPYRE_FIFOS] = {
	SPYRE_UNIT_LXLU, SPYRE_UNIT_LXLU, SPYRE_UNIT_LXLU, SPYRE_UNIT_LXLU, SPYRE_UNIT_LXLU,
	SPYRE_UNIT_LXLU, SPYRE_UNIT_LXLU, SPYRE_UNIT_L0LU, SPYRE_UNIT_L0LU, SPYRE_UNIT_L0LU,
	SPYRE_UNIT_L0LU, SPYRE_UNIT_PT,	  SPYRE_UNIT_PT,   SPYRE_UNIT_PT,   SPYRE_UNIT_PE,
	SPYRE_UNIT_SFP,	 SPYRE_UNIT_PE,	  SPYRE_UNIT_SFP,  SPYRE_UNIT_SFP,
};

static const uint8_t fifo_reader[SPYRE_FIFOS] = {
	SPYRE_UNIT_PT,	SPYRE_UNIT_PT,	 SPYRE_UNIT_PE,	  SPYRE_UNIT_PE,   SPYRE_UNIT_SFP,
	SPYRE_UNIT_SFP, SPYRE_UNIT_L0SU, SPYRE_UNIT_PT,	  SPYRE_UNIT_PT,   SPYRE_UNIT_PE,
	SPYRE_UNIT_SFP, SPYRE_UNIT_PE,	 SPYRE_UNIT_SFP,  SPYRE_UNIT_LXSU, SPYRE_UNIT_SFP,
	SPYRE_UNIT_PE,	SPYRE_UNIT_LXSU, SPYRE_UNIT_LXSU, SPYRE_UNIT_SFP,
};

/* Formats of a FIFO operand: those of one word, then those of two. */
#define FMTS_ONE 6u
static const uint8_t fmts[] = {
	SPYRE_SEN169_FP16,
	SPYRE_IEEE_FP16,
	SPYRE_BFLOAT16,
	SPYRE_IEEE_FP32 | SPYRE_FMT_HALF,
	SPYRE_IEEE_INT32 | SPYRE_FMT_HALF,
	SPYRE_SEN18F_FP24 | SPYRE_FMT_HALF,
	SPYRE_IEEE_FP32,
	SPYRE_IEEE_INT32,
	SPYRE_SEN18F_FP24,
};

static unsigned int operand_fmt(struct gen *g)
{
	return fmts[below(g, sizeof(fmts))];
}

static unsigned int one_word_fmt(struct gen *g)
{
	return fmts[below(g, FMTS_ONE)];
}

/* Formats that MOV alone takes, from and to so many registers in a row. */
static unsigned int narrow_fmt(struct gen *g)
{
	static const uint8_t narrow[] = {
		SPYRE_SENINT8,
		SPYRE_SEN143_FP8,
		SPYRE_SEN152_FP8,
		SPYRE_SENINT4,
	};

	return narrow[below(g, sizeof(narrow))];
}

static unsigned int narrow_regs(unsigned int fmt)
{
	return fmt == SPYRE_SENINT4 ? 4 : 2;
}

static const uint8_t plain_ops[] = {
	SPYRE_OP_MOV,
	SPYRE_OP_MOV,
	SPYRE_OP_MOV,
	SPYRE_OP_MOV,
	SPYRE_OP_ADD,
	SPYRE_OP_SUB,
	SPYRE_OP_MUL,
	SPYRE_OP_FMA,
	SPYRE_OP_MIN,
	SPYRE_OP_MAX,
	SPYRE_OP_ABS,
	SPYRE_OP_NEG,
	SPYRE_OP_CMPEQ,
	SPYRE_OP_CMPLT,
	SPYRE_OP_CMPLE,
	SPYRE_OP_SEL,
	SPYRE_OP_IADD,
	SPYRE_OP_ISUB,
	SPYRE_OP_IMUL,
	SPYRE_OP_IMIN,
	SPYRE_OP_IMAX,
	SPYRE_OP_AND,
	SPYRE_OP_OR,
	SPYRE_OP_XOR,
	SPYRE_OP_SHL,
	SPYRE_OP_SHR,
	SPYRE_OP_SRA,
	SPYRE_OP_I2F,
	SPYRE_OP_F2I,
	SPYRE_OP_BCAST,
	SPYRE_OP_ROT,
	SPYRE_OP_LMASK,
	SPYRE_OP_IOTA,
	SPYRE_OP_SHUF,
	/* SFP alone from here on; more often, as one unit has them. */
	SPYRE_OP_RSUM,	  SPYRE_OP_RSUM,    SPYRE_OP_RSUM,  SPYRE_OP_RMAX,  SPYRE_OP_RMAX,
	SPYRE_OP_RMAX,	  SPYRE_OP_RMIN,    SPYRE_OP_RMIN,  SPYRE_OP_RMIN,  SPYRE_OP_RARGMAX,
	SPYRE_OP_RARGMAX, SPYRE_OP_RARGMAX, SPYRE_OP_SCAN,  SPYRE_OP_SCAN,  SPYRE_OP_SCAN,
	SPYRE_OP_RRANK,	  SPYRE_OP_RRANK,   SPYRE_OP_RRANK,
};
#define SFP_OPS 18u

/* fp32 bits: what programs compute with, and what is special. */
static uint32_t immediate(struct gen *g)
{
	static const uint32_t odd[] = {
		0,	    0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
		0x7fc00000, 0xffc12345, 0x00000001, 0x7f7fffff, 0x4f000000, 0xcf000000,
		0x7fffffff, 31,		33,	    0x477fe000, 0x50000000,
	};

	return chance(g, 40)   ? odd[below(g, sizeof(odd) / sizeof(odd[0]))]
	       : chance(g, 30) ? rnd(g) << 1 ^ rnd(g)
			       : (rnd(g) & 0x807fffff) | (118 + below(g, 18)) << 23;
}

/*
 * A random instruction of unit u for the FIFOs it may read (in) and write (out); adds what it moves
 * to need. in and out end with 0xff.
 */
static void vector(struct gen *g, struct part *p, const uint8_t *in, const uint8_t *out,
		   unsigned int n, struct need *need, unsigned int *nneeds)
{
	bool sfp = g->unit[p->unit].kind == SPYRE_UNIT_SFP;
	unsigned int op = plain_ops[below(g, sizeof(plain_ops) - (sfp ? 0 : SFP_OPS))], k, i, nin,
		     nout, fifo, w;
	struct spyre_insn v = { .op = (uint8_t)op, .n = (uint16_t)n };
	struct ref_insn r;
	uint8_t *opnd[4] = { &v.b, &v.c, &v.d, &v.a };
	uint32_t formats = 0;

	for (nin = 0; in[nin] != 0xff; nin++)
		;
	for (nout = 0; out[nout] != 0xff; nout++)
		;
	if (op == SPYRE_OP_BCAST || op == SPYRE_OP_ROT)
		v.imm = op == SPYRE_OP_BCAST ? below(g, 64) : rnd(g) - 0x40000000;
	else if (op == SPYRE_OP_LMASK)
		v.imm = below(g, SPYRE_LANES + 1), v.c = (uint8_t)below(g, SPYRE_LANES + 1 - v.imm);
	else if (op == SPYRE_OP_IOTA)
		v.imm = chance(g, 50) ? below(g, SPYRE_LANES) : rnd(g) << 1;
	else
		v.imm = 0;
	if (op == SPYRE_OP_MOV && chance(g, 50)) {
		unsigned int fmt = narrow_fmt(g), regs = narrow_regs(fmt),
			     first = regs * below(g, SPYRE_VREGS / regs);

		if (nin && chance(g, 50)) {
			v.a = (uint8_t)first;
			v.b = (uint8_t)SPYRE_OPND_FIFO(in[below(g, nin)]);
			formats = SPYRE_FMTS(fmt, 0, 0, 0);
		} else if (nout) {
			v.a = (uint8_t)SPYRE_OPND_FIFO(out[below(g, nout)]);
			v.b = (uint8_t)first;
			formats = SPYRE_FMTS(0, 0, 0, fmt);
		}
	}
	if (!formats) {
		bool imm = false;

		for (k = 0; k < 3; k++) {
			unsigned int what = below(g, 100);

			if (k >= ref_sources(op)) {
				/* Zero, or none; LMASK has a number at c. */
				if (chance(g, 20) && (op != SPYRE_OP_LMASK || k != 1))
					*opnd[k] = SPYRE_OPND_NONE;
			} else if (nin && what < 45) {
				*opnd[k] = (uint8_t)SPYRE_OPND_FIFO(in[below(g, nin)]);
				formats |= operand_fmt(g) << (8 * k);
			} else if (what < 55 && op != SPYRE_OP_BCAST && op != SPYRE_OP_ROT) {
				*opnd[k] = SPYRE_OPND_IMM;
				imm = true;
			} else if (what < 65) {
				*opnd[k] = (uint8_t)SPYRE_OPND_CONST(g->consts[below(g, 8)]);
			} else {
				*opnd[k] = (uint8_t)SPYRE_OPND_V(below(g, SPYRE_VREGS));
			}
		}
		if (imm)
			v.imm = immediate(g);
		if (nout && chance(g, 50)) {
			v.a = (uint8_t)SPYRE_OPND_FIFO(out[below(g, nout)]);
			formats |= operand_fmt(g) << 24;
		} else {
			v.a = (uint8_t)SPYRE_OPND_V(below(g, SPYRE_VREGS));
		}
	}
	v.imm2 = formats;
	put(g, p, v);
	r = (struct ref_insn) { v.op, 0, v.a, v.b, v.c, v.d, v.n, (int32_t)v.imm, (int32_t)v.imm2 };
	for (k = 0; k < 4; k++) {
		w = ref_operand_words(&r, k, &fifo);
		if (!w)
			continue;
		for (i = 0; i < *nneeds && need[i].fifo != fifo; i++)
			;
		if (i == *nneeds)
			need[(*nneeds)++] = (struct need) { fifo, 0 };
		need[i].words += w * n;
	}
}

static struct spyre_insn mov_raw(unsigned int a, unsigned int b, unsigned int n)
{
	uint32_t half = SPYRE_IEEE_INT32 | SPYRE_FMT_HALF;

	return (struct spyre_insn) {
		.op = SPYRE_OP_MOV,
		.a = (uint8_t)a,
		.b = (uint8_t)b,
		.n = (uint16_t)n,
		.imm2 = SPYRE_FMTS(b >= SPYRE_OPND_FIFO(0) && b < SPYRE_OPND_IMM ? half : 0, 0, 0,
				   a >= SPYRE_OPND_FIFO(0) ? half : 0),
	};
}

/* The other end of a FIFO of corelet x of core c: words per iteration, times iterations. */
static bool other_end(struct gen *g, unsigned int c, unsigned int x, unsigned int fifo,
		      unsigned int words, bool writes)
{
	unsigned int kind = writes ? fifo_writer[fifo] : fifo_reader[fifo], u = uid(c, kind, x),
		     rows;
	struct part *p = part_of(g, u);
	struct region r;

	switch (kind) {
	case SPYRE_UNIT_LXLU:
	case SPYRE_UNIT_LXSU:
		r = lx_region(g, c);
		return transfer(g, p,
				(struct spyre_insn) { .op = writes ? SPYRE_OP_LD : SPYRE_OP_ST,
						      .d = (uint8_t)fifo },
				words, &r, NULL, 0);
	case SPYRE_UNIT_L0LU:
	case SPYRE_UNIT_L0SU:
		r = l0_region(g, c, x);
		return transfer(g, p,
				(struct spyre_insn) { .op = writes ? SPYRE_OP_LD : SPYRE_OP_ST,
						      .d = (uint8_t)fifo },
				words, &r, NULL, 0);
	case SPYRE_UNIT_PT:
		if (words % 2)
			return false;
		rows = words / 2;
		put(g, p,
		    (struct spyre_insn) { .op = SPYRE_OP_PT_PSOUT,
					  .d = (uint8_t)fifo,
					  .n = (uint16_t)rows,
					  .imm = below(g, REF_ROWS - rows + 1) });
		return rows <= REF_ROWS;
	default:
		if (writes)
			put(g, p, mov_raw(SPYRE_OPND_FIFO(fifo), below(g, SPYRE_VREGS), words));
		else
			put(g, p,
			    (struct spyre_insn) {
				    .op = SPYRE_OP_XOR,
				    .a = (uint8_t)(words % 16),
				    .b = (uint8_t)(words % 16),
				    .c = (uint8_t)SPYRE_OPND_FIFO(fifo),
				    .n = (uint16_t)words,
				    .imm2 = SPYRE_FMTS(0, SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, 0,
						       0) });
		return true;
	}
}

/* PE or SFP with its FIFOs: some instructions, some times. */
static bool event_vector(struct gen *g, unsigned int c, unsigned int x)
{
	static const uint8_t pe_in[] = {
		SPYRE_FIFO_LXLU_PE0, SPYRE_FIFO_LXLU_PE1, SPYRE_FIFO_L0LU_PE,
		SPYRE_FIFO_PT_PE,    SPYRE_FIFO_SFP_PE,
	};
	static const uint8_t sfp_in[] = {
		SPYRE_FIFO_LXLU_SFP0, SPYRE_FIFO_LXLU_SFP1, SPYRE_FIFO_L0LU_SFP,
		SPYRE_FIFO_PT_SFP,    SPYRE_FIFO_PE_SFP,
	};
	bool sfp = chance(g, 50);
	unsigned int u = uid(c, sfp ? SPYRE_UNIT_SFP : SPYRE_UNIT_PE, x), i, k,
		     count = 1 + below(g, 3), nneeds = 0;
	uint8_t in[6], out[3], nin = 0, nout = 0, other;
	struct need need[8];
	struct part *p;
	uint64_t words = 0;
	bool long_one = chance(g, 40);

	/* A few of the FIFOs. All but one of those with the same other end must fit without being
	 * read. */
	for (i = 0; i < 5; i++)
		if (chance(g, 35))
			in[nin++] = sfp ? sfp_in[i] : pe_in[i];
	in[nin] = 0xff;
	if (chance(g, 70))
		out[nout++] = sfp ? SPYRE_FIFO_SFP_LXSU : SPYRE_FIFO_PE_LXSU;
	if (chance(g, 25))
		out[nout++] = sfp ? SPYRE_FIFO_SFP_PE : SPYRE_FIFO_PE_SFP;
	out[nout] = 0xff;
	p = part_of(g, u);
	for (i = 0; i < count; i++)
		vector(g, p, in, out, long_one ? 1 + below(g, 40) : 1 + below(g, 4), need, &nneeds);
	for (i = 0; i < nneeds; i++) {
		words += need[i].words;
		if (need[i].words > WORDS_MAX)
			return false;
		other = need[i].fifo == SPYRE_FIFO_PE_SFP || need[i].fifo == SPYRE_FIFO_SFP_PE;
		for (k = 0; k < i; k++) {
			/* In this order: those before the last one of a unit may not wait for this
			 * unit. */
			unsigned int a = need[k].fifo, b = need[i].fifo;
			bool same = (fifo_writer[a] != g->unit[u].kind &&
				     fifo_writer[a] == fifo_writer[b]) ||
				    (fifo_reader[a] != g->unit[u].kind &&
				     fifo_reader[a] == fifo_reader[b]) ||
				    (other && (a == SPYRE_FIFO_PE_SFP || a == SPYRE_FIFO_SFP_PE));

			if (same && need[k].words > SPYRE_FIFO_DEPTH)
				return false;
		}
	}
	/* What the other vector unit writes comes before what it reads. */
	for (k = 0; k < 2; k++) {
		for (i = 0; i < nneeds; i++) {
			bool writes = fifo_reader[need[i].fifo] == g->unit[u].kind;

			if (writes == !k &&
			    !other_end(g, c, x, need[i].fifo, need[i].words, writes))
				return false;
			if (writes == !k && writes && need[i].words > SPYRE_FIFO_DEPTH &&
			    (need[i].fifo == SPYRE_FIFO_PE_SFP ||
			     need[i].fifo == SPYRE_FIFO_SFP_PE)) {
				unsigned int j;

				for (j = 0; j < nneeds; j++)
					if (fifo_writer[need[j].fifo] == g->unit[u].kind &&
					    need[j].fifo != SPYRE_FIFO_PE_LXSU &&
					    need[j].fifo != SPYRE_FIFO_SFP_LXSU)
						return false;
			}
		}
	}
	return commit(g, words + count);
}

/* --- From words to words -------------------------------------------------------------------- */

/* Contiguous loads or stores of a FIFO's words, in pieces. */
struct run {
	unsigned int fifo, reg, left;
	bool load;
};

static void run_piece(struct gen *g, struct part *p, struct run *r, unsigned int n)
{
	put(g, p,
	    (struct spyre_insn) { .op = r->load ? SPYRE_OP_LD : SPYRE_OP_ST,
				  .a = (uint8_t)r->reg,
				  .b = NOREG,
				  .d = (uint8_t)r->fifo,
				  .n = (uint16_t)n,
				  .imm = 128,
				  .imm2 = 128 * n });
	r->left -= n;
}

/* Most often all that is left. */
static unsigned int piece(struct gen *g, unsigned int left)
{
	return chance(g, 50) ? left : 1 + below(g, chance(g, 50) && left > 24 ? 24 : left);
}

/* total times of one operation that goes from FIFOs to a FIFO in one 16-bit format, in pieces. */
static void stream_insns(struct gen *g, struct part *p, struct spyre_insn in, unsigned int total)
{
	unsigned int n;

	for (; total; total -= n) {
		n = piece(g, total);
		in.n = (uint16_t)n;
		if (n > 1 && n % 2 == 0 && chance(g, 20)) {
			put(g, p, loopcnt(n / 2));
			in.n = 2;
			in.be = 1;
		}
		put(g, p, in);
		in.be = 0;
	}
}

/* A piece of two operands' loads: none of them may be ahead by more than its FIFO holds. */
static void load_piece(struct gen *g, struct part *p, struct run *run, unsigned int nruns)
{
	unsigned int k = nruns > 1 && (run[1].left > run[0].left ||
				       (run[1].left == run[0].left && chance(g, 50))),
		     n = piece(g, run[k].left);

	if (nruns > 1 && n > run[k].left - run[!k].left + SPYRE_FIFO_DEPTH)
		n = run[k].left - run[!k].left + SPYRE_FIFO_DEPTH;
	run_piece(g, p, &run[k], n);
}

static bool same_slots(const struct region *r, int64_t a, const struct region *s, int64_t b,
		       unsigned int total)
{
	int64_t len = 128 * (int64_t)(total - 1);

	return r->slot - r->addr / SLOT == s->slot - s->addr / SLOT &&
	       a / SLOT <= (b + len) / SLOT && b / SLOT <= (a + len) / SLOT;
}

/*
 * Words from LX through PE or SFP, or both, and back: contiguous, in one 16-bit format, in pieces
 * of different lengths at each unit; to other words or in place, where the FIFOs order what is
 * read before what is written.
 */
static bool event_stream(struct gen *g, unsigned int c, unsigned int x)
{
	static const uint8_t ops[] = {
		SPYRE_OP_MOV, SPYRE_OP_ADD, SPYRE_OP_ADD, SPYRE_OP_SUB, SPYRE_OP_MUL,
		SPYRE_OP_FMA, SPYRE_OP_MIN, SPYRE_OP_MAX, SPYRE_OP_ABS, SPYRE_OP_NEG,
	};
	bool sfp = chance(g, 50), in_place = chance(g, 40), imm = false;
	unsigned int lxlu = uid(c, SPYRE_UNIT_LXLU, x), lxsu = uid(c, SPYRE_UNIT_LXSU, x);
	unsigned int nruns = 0, k, room, total, back = 0, same;
	uint32_t fmt = fmts[below(g, 3)], out_fmt = chance(g, 90) ? fmt : one_word_fmt(g);
	struct spyre_insn in = { .op = ops[below(g, sizeof(ops))] };
	uint8_t *opnd[3] = { &in.b, &in.c, &in.d };
	struct region from[2], r;
	struct run run[2], st;
	int64_t at[2], to;
	struct part *p;

	for (k = 0; k < ref_sources(in.op); k++) {
		if (nruns < 2 && (chance(g, 60) || (!nruns && k + 1 == ref_sources(in.op)))) {
			unsigned int fifo =
				(sfp ? SPYRE_FIFO_LXLU_SFP0 : SPYRE_FIFO_LXLU_PE0) + nruns;

			*opnd[k] = (uint8_t)SPYRE_OPND_FIFO(fifo);
			in.imm2 |= (chance(g, 97) ? fmt : one_word_fmt(g)) << (8 * k);
			run[nruns] = (struct run) { fifo, SPYRE_LAR0 + nruns, 0, true };
			from[nruns++] = lx_region(g, c);
		} else if (chance(g, 30)) {
			*opnd[k] = SPYRE_OPND_IMM;
			imm = true;
		} else if (chance(g, 30)) {
			*opnd[k] = (uint8_t)SPYRE_OPND_CONST(g->consts[below(g, 8)]);
		} else {
			*opnd[k] = (uint8_t)SPYRE_OPND_V(below(g, SPYRE_VREGS));
		}
	}
	if (imm)
		in.imm = immediate(g);
	/* In place of the operand same; the other one may be the same words. */
	same = below(g, nruns);
	if (nruns > 1 && chance(g, 15))
		from[!same] = from[same];
	r = in_place ? from[same] : lx_region(g, c);
	room = r.nslots;
	for (k = 0; k < nruns; k++)
		room = from[k].nslots < room ? from[k].nslots : room;
	room *= SLOT / 128;
	total = 1 + below(g, chance(g, 50) && room > 40 ? 40 : room);
	for (k = 0; k < nruns; k++) {
		at[k] = (int64_t)from[k].addr +
			128 * (int64_t)below(g, from[k].nslots * SLOT / 128 - total + 1);
		run[k].left = total;
	}
	to = (int64_t)r.addr + 128 * (int64_t)below(g, r.nslots * SLOT / 128 - total + 1);
	if (in_place) {
		to = at[same];
		/* Before what was loaded, on words that were loaded already. */
		if (chance(g, 30))
			back = below(g, (uint32_t)((to - (int64_t)r.addr) / 128) + 1);
		to -= 128 * (int64_t)back;
		if (nruns > 1 && from[0].addr == from[1].addr && chance(g, 80))
			at[!same] = at[same];
		if (nruns > 1 && at[!same] != at[same] &&
		    same_slots(&from[!same], at[!same], &r, to, total))
			return false;
		g->through[0] = (int)lxlu;
		g->through[1] = (int)lxsu;
	}
	p = part_of(g, lxlu);
	for (k = 0; k < nruns; k++) {
		put(g, p, mvreg(run[k].reg, NOREG, at[k]));
		touch_span(g, p, &from[k], at[k], at[k] + 128 * (int64_t)(total - 1), false);
	}
	while (run[0].left || (nruns > 1 && run[1].left))
		load_piece(g, p, run, nruns);
	if (chance(g, 15)) {
		in.a = (uint8_t)SPYRE_OPND_FIFO(sfp ? SPYRE_FIFO_SFP_PE : SPYRE_FIFO_PE_SFP);
		in.imm2 |= fmt << 24;
		stream_insns(g, part_of(g, uid(c, sfp ? SPYRE_UNIT_SFP : SPYRE_UNIT_PE, x)), in,
			     total);
		sfp = !sfp;
		in = (struct spyre_insn) { .op = SPYRE_OP_ADD,
					   .b = in.a,
					   .c = (uint8_t)SPYRE_OPND_V(below(g, SPYRE_VREGS)),
					   .imm2 = fmt };
	}
	in.a = (uint8_t)SPYRE_OPND_FIFO(sfp ? SPYRE_FIFO_SFP_LXSU : SPYRE_FIFO_PE_LXSU);
	in.imm2 |= out_fmt << 24;
	stream_insns(g, part_of(g, uid(c, sfp ? SPYRE_UNIT_SFP : SPYRE_UNIT_PE, x)), in, total);
	p = part_of(g, lxsu);
	st = (struct run) { in.a - SPYRE_OPND_FIFO(0), SPYRE_LAR0, total, false };
	put(g, p, mvreg(st.reg, NOREG, to));
	touch_span(g, p, &r, to, to + 128 * (int64_t)(total - 1), true);
	while (st.left)
		run_piece(g, p, &st, piece(g, st.left));
	return commit(g, (uint64_t)total * (nruns + 1));
}

/* --- The other events ----------------------------------------------------------------------- */

static bool event_pt(struct gen *g, unsigned int c, unsigned int x)
{
	static const uint8_t pt_fmts[] = {
		SPYRE_SEN169_FP16, SPYRE_IEEE_FP16,  SPYRE_BFLOAT16, SPYRE_SENINT8,
		SPYRE_SEN143_FP8,  SPYRE_SEN152_FP8, SPYRE_SENINT4,
	};
	unsigned int u = uid(c, SPYRE_UNIT_PT, x), tile = below(g, REF_TILES), n, fifo;
	uint8_t *fmt = &g->tile_fmt[c][x][tile], was = *fmt;
	bool l0 = chance(g, 30), ok = true;
	struct part *p = part_of(g, u);
	uint64_t words = 0;

	if (was == 0xff || chance(g, 30)) {
		/* In a loop a product before this may be the next iteration's. */
		if (was == 0xff || !g->depth)
			*fmt = pt_fmts[below(g, sizeof(pt_fmts))];
		fifo = l0 ? SPYRE_FIFO_L0LU_PTW : SPYRE_FIFO_LXLU_PTW;
		put(g, p,
		    (struct spyre_insn) { .op = SPYRE_OP_PT_LDW,
					  .a = (uint8_t)tile,
					  .b = *fmt,
					  .d = (uint8_t)fifo });
		ok = ok && other_end(g, c, x, fifo, 64, true);
		words += 64;
	}
	if (chance(g, 70)) {
		n = chance(g, 90) ? 1 + below(g, 6) : 1 + below(g, 128);
		fifo = chance(g, 30) ? SPYRE_FIFO_L0LU_PT : SPYRE_FIFO_LXLU_PT;
		put(g, p,
		    (struct spyre_insn) { .op = SPYRE_OP_PT_MM,
					  .a = (uint8_t)tile,
					  .b = *fmt,
					  .c = chance(g, 50),
					  .d = (uint8_t)fifo,
					  .n = (uint16_t)n,
					  .imm = below(g, REF_ROWS - n + 1) });
		ok = ok && other_end(g, c, x, fifo, n, true);
		/* The most expensive words of the reference by far. */
		words += 16 * n;
	}
	if (chance(g, 30)) {
		n = 1 + below(g, 20);
		fifo = chance(g, 30) ? SPYRE_FIFO_L0LU_PT : SPYRE_FIFO_LXLU_PT;
		put(g, p,
		    (struct spyre_insn) { .op = SPYRE_OP_PT_PSIN,
					  .b = chance(g, 50) ? SPYRE_IEEE_FP32 : SPYRE_IEEE_INT32,
					  .d = (uint8_t)fifo,
					  .n = (uint16_t)n,
					  .imm = below(g, REF_ROWS - n + 1) });
		ok = ok && other_end(g, c, x, fifo, 2 * n, true);
		words += 2 * n;
	}
	if (chance(g, 50)) {
		fifo = SPYRE_FIFO_PT_PE + below(g, 3);
		n = 1 + below(g, 30);
		put(g, p,
		    (struct spyre_insn) { .op = SPYRE_OP_PT_PSOUT,
					  .d = (uint8_t)fifo,
					  .n = (uint16_t)n,
					  .imm = below(g, REF_ROWS - n + 1) });
		ok = ok && other_end(g, c, x, fifo, 2 * n, false);
		words += 2 * n;
	}
	if (ok && words && commit(g, words))
		return true;
	*fmt = was;
	return false;
}

static bool event_l0(struct gen *g, unsigned int c, unsigned int x)
{
	unsigned int n = 1 + below(g, 64);

	return other_end(g, c, x, SPYRE_FIFO_LXLU_L0SU, n, true) &&
	       other_end(g, c, x, SPYRE_FIFO_LXLU_L0SU, n, false) && commit(g, n);
}

static bool event_l3(struct gen *g, unsigned int c)
{
	unsigned int n = 1 + below(g, chance(g, 80) ? 32 : WORDS_MAX), what = below(g, 100), to;
	struct spyre_insn in = { 0 };
	struct region r = lx_region(g, c), ext;
	struct part *p;

	if (what < 45) {
		bool fresh = chance(g, 60);

		ext = fresh ? in_region() : rw_region(g);
		in.op = SPYRE_OP_L3_LDU;
		p = part_of(g, uid(c, SPYRE_UNIT_L3LU, 0));
		return transfer(g, p, in, n, &r, &ext, SPYRE_EAR0 + (fresh ? 1 : 2)) &&
		       commit(g, n);
	}
	if (what < 75) {
		ext = rw_region(g);
		in.op = SPYRE_OP_L3_STU;
		p = part_of(g, uid(c, SPYRE_UNIT_L3SU, 0));
		return transfer(g, p, in, n, &r, &ext, SPYRE_EAR0 + 2) && commit(g, n);
	}
	if (g->clones)
		return false;
	to = below(g, g->ncores);
	ext = lx_region(g, to);
	/* EAR names core and address: as if that core's LX lay there. */
	ext.addr += (uint64_t)g->core[to] << 24;
	in.op = SPYRE_OP_L3_STC;
	p = part_of(g, uid(c, SPYRE_UNIT_L3SU, 0));
	if (!transfer(g, p, in, n, &r, &ext, NOREG))
		return false;
	return commit(g, n);
}

/* The members' code differs in nothing but where their LX addresses start. */
static bool event_multicast(struct gen *g)
{
	unsigned int group = below(g, 4), n = 1 + below(g, 64), c, i, lar_at = 0;
	struct region ext = g->clones || chance(g, 60) ? in_region() : rw_region(g), r;
	struct spyre_insn in = { .op = SPYRE_OP_L3_LDM, .d = (uint8_t)group };
	struct part *first = NULL, *p;
	struct span lo, ex;
	int64_t base;

	for (c = 0; c < g->ncores; c++) {
		if (!(g->groups[group] >> g->core[c] & 1))
			continue;
		p = new_part(g, uid(c, SPYRE_UNIT_L3LU, 0));
		r = lx_region(g, c);
		if (!first) {
			/* No base that grows: it would grow for some alone. */
			bool carry = g->unit[p->unit].carry;

			first = p;
			g->unit[p->unit].carry = false;
			if (g->overflow ||
			    !transfer(g, p, in, n, &r, &ext, SPYRE_EAR0 + (ext.nslots ? 2 : 1))) {
				g->unit[p->unit].carry = carry;
				return false;
			}
			g->unit[p->unit].carry = carry;
			for (lar_at = 0;
			     p->in[lar_at].op != SPYRE_OP_MVREG || p->in[lar_at].a >= SPYRE_LBR0;
			     lar_at++)
				;
			continue;
		}
		memcpy(p->in, first->in, sizeof(p->in));
		p->n = first->n;
		spans(p, lar_at + 2, &lo, &ex);
		base = place(g, &lo, r.addr, (uint64_t)r.nslots * r.slot_bytes);
		if (base + lo.min < (int64_t)r.addr)
			return false;
		touch_span(g, p, &r, base + lo.min, base + lo.max, true);
		for (i = 0; i < first->ntouches; i++)
			if (!first->touch[i].write)
				add_touch(g, p, first->touch[i].slot, false);
		p->in[lar_at].imm =
			(uint32_t)(int32_t)(base - (lar_at ? (int32_t)p->in[lar_at - 1].imm : 0));
	}
	return first && commit(g, (uint64_t)n * g->nparts);
}

static bool event_ring(struct gen *g, unsigned int c, unsigned int x)
{
	unsigned int to = (c + (x ? g->ncores - 1 : 1)) % g->ncores,
		     n = 1 + below(g, to == c ? 16 : 40);
	struct part *p = part_of(g, uid(c, SPYRE_UNIT_SFP, x));
	struct spyre_insn in =
		mov_raw(SPYRE_OPND_FIFO(SPYRE_FIFO_RING), below(g, SPYRE_VREGS), n);

	in.imm2 = SPYRE_FMTS(0, 0, 0, one_word_fmt(g));
	put(g, p, in);
	p = part_of(g, uid(to, SPYRE_UNIT_SFP, x));
	put(g, p,
	    (struct spyre_insn) { .op = SPYRE_OP_IADD,
				  .a = 5,
				  .b = 7,
				  .c = (uint8_t)SPYRE_OPND_FIFO(SPYRE_FIFO_RING),
				  .n = (uint16_t)n,
				  .imm2 = SPYRE_FMTS(0, one_word_fmt(g), 0, 0) });
	return commit(g, n);
}

/* All cores to their neighbours at once. */
static bool event_ring_all(struct gen *g, unsigned int x)
{
	unsigned int n = 1 + below(g, 16), c;

	for (c = 0; c < g->ncores; c++) {
		struct part *p = part_of(g, uid(c, SPYRE_UNIT_SFP, x));

		put(g, p, mov_raw(SPYRE_OPND_FIFO(SPYRE_FIFO_RING), below(g, SPYRE_VREGS), n));
		put(g, p, mov_raw(below(g, SPYRE_VREGS), SPYRE_OPND_FIFO(SPYRE_FIFO_RING), n));
	}
	return commit(g, (uint64_t)n * g->ncores);
}

/* Nothing but time and registers. */
static bool event_idle(struct gen *g, unsigned int c, unsigned int x)
{
	unsigned int kind = below(g, SPYRE_UNITS), u = uid(c, kind, x), i, n = 1 + below(g, 6);
	struct part *p = part_of(g, u);

	for (i = 0; i < n; i++) {
		switch (below(g, 4)) {
		case 0:
			put(g, p, (struct spyre_insn) { .op = SPYRE_OP_NOP });
			break;
		case 1:
			put(g, p, addimm(SPYRE_LAR0 + below(g, 7), (int32_t)rnd(g)));
			break;
		case 2:
			put(g, p,
			    (struct spyre_insn) { .op = SPYRE_OP_ADDREG,
						  .a = (uint8_t)(SPYRE_LAR0 + below(g, 7)),
						  .b = (uint8_t)below(g, SPYRE_REGS),
						  .imm = rnd(g) << 1 });
			break;
		default:
			put(g, p,
			    mvreg(SPYRE_LAR0 + below(g, 7),
				  chance(g, 50) ? NOREG : below(g, SPYRE_REGS), (int32_t)rnd(g)));
			break;
		}
	}
	if (g->unit[u].depth < SPYRE_LOOPS && chance(g, 40)) {
		/* A loop of its own, which may be skipped with things in it that could not run. */
		uint32_t count = below(g, 20);

		put(g, p, loopcnt(count));
		if (!count && (kind == SPYRE_UNIT_LXLU || kind == SPYRE_UNIT_L0LU)) {
			put(g, p, mvreg(SPYRE_LAR0, NOREG, -128));
			put(g, p,
			    (struct spyre_insn) {
				    .op = SPYRE_OP_LD,
				    .a = SPYRE_LAR0,
				    .b = NOREG,
				    .n = 65535,
				    .imm = 1280,
				    .d = kind == SPYRE_UNIT_LXLU ? SPYRE_FIFO_LXLU_PE0
								 : SPYRE_FIFO_L0LU_PE,
			    });
		}
		put(g, p, (struct spyre_insn) { .op = SPYRE_OP_NOP });
		if (!count && g->unit[u].depth + 1 < SPYRE_LOOPS) {
			put(g, p, loopcnt(3));
			put(g, p, (struct spyre_insn) { .op = SPYRE_OP_NOP, .be = 1 });
		}
		p->in[p->n - 1].be++;
	}
	return commit(g, 1);
}

/* A word to all: one send to a tag of many cores. */
static bool event_broadcast(struct gen *g, unsigned int c, unsigned int x)
{
	unsigned int from = uid(c, below(g, SPYRE_UNITS), x), kind = below(g, SPYRE_UNITS), t, k,
		     to;
	uint32_t mask = 0;

	if (g->clones)
		return false;
	for (t = 0; t < SPYRE_TAGS; t++) {
		for (k = 0; k < g->ncores; k++) {
			struct tag *tag = &g->tag[k][t];

			to = uid(k, kind, x);
			if (to == from || !g->unit[to].allowed || !g->unit[from].allowed)
				return false;
			if (tag->waiter >= 0 &&
			    (tag->waiter != (int)to || tag->sender != (int)from))
				break;
		}
		if (k == g->ncores)
			break;
	}
	if (t == SPYRE_TAGS)
		return false;
	for (k = 0; k < g->ncores; k++) {
		to = uid(k, kind, x);
		mask |= 1u << g->core[k];
		g->tag[k][t] = (struct tag) { (int)to, (int)from };
		emit(g, to,
		     (struct spyre_insn) { .op = SPYRE_OP_SYNC_WAIT, .a = (uint8_t)t, .n = 1 });
		learn(g, to, from);
	}
	emit(g, from,
	     (struct spyre_insn) { .op = SPYRE_OP_SYNC_SEND, .a = (uint8_t)t, .imm = mask });
	return true;
}

/* A special function of random numbers, its results to memory by a way that nothing else takes. */
static bool event_special(struct gen *g, unsigned int c, unsigned int x)
{
	unsigned int n = 1 + below(g, 4), from = operand_fmt(g), to = operand_fmt(g), fifo,
		     what = below(g, 100), words, sfp = uid(c, SPYRE_UNIT_SFP, x),
		     lxsu = uid(c, SPYRE_UNIT_LXSU, x), l3su = uid(c, SPYRE_UNIT_L3SU, 0);
	uint64_t lx = SPYRE_LX_SIZE - (x + 1) * SLOT; /* beyond what regions use */
	uint64_t out = g->out->special_bytes;
	struct spyre_insn in = {
		.op = (uint8_t)(SPYRE_OP_RECIP + below(g, SPYRE_OP_GELU - SPYRE_OP_RECIP + 1)),
		.a = (uint8_t)SPYRE_OPND_FIFO(SPYRE_FIFO_SFP_LXSU),
		.n = (uint16_t)n,
		.imm2 = SPYRE_FMTS(what < 70 ? from : 0, 0, 0, to),
	};
	struct ref_insn r;
	struct part *p;

	if (g->out->nspecials == 64 || g->depth)
		return false;
	if (what < 70)
		in.b = (uint8_t)SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_SFP0);
	else if (what < 80)
		in.b = (uint8_t)SPYRE_OPND_V(below(g, SPYRE_VREGS));
	else if (what < 90)
		in.b = (uint8_t)SPYRE_OPND_CONST(g->consts[below(g, 8)]);
	else
		in.b = SPYRE_OPND_IMM, in.imm = immediate(g);
	r = (struct ref_insn) { .op = in.op, .a = in.a, .b = in.b, .imm2 = (int32_t)in.imm2 };
	words = n * ref_operand_words(&r, 0, &fifo);
	if (words && !other_end(g, c, x, SPYRE_FIFO_LXLU_SFP0, words, true))
		return false;
	put(g, part_of(g, sfp), in);
	words = n * ref_operand_words(&r, 3, &fifo);
	p = part_of(g, lxsu);
	put(g, p, mvreg(SPYRE_LAR0, NOREG, (int64_t)lx));
	put(g, p,
	    (struct spyre_insn) { .op = SPYRE_OP_ST,
				  .a = SPYRE_LAR0,
				  .b = NOREG,
				  .d = SPYRE_FIFO_SFP_LXSU,
				  .n = (uint16_t)words,
				  .imm = 128 });
	if (!can_order(g, lxsu, l3su) || !can_order(g, l3su, lxsu) || !commit(g, 4 * n))
		return false;
	order(g, lxsu, l3su);
	emit(g, l3su, mvreg(SPYRE_LAR0, NOREG, (int64_t)lx));
	emit(g, l3su, mvreg(SPYRE_EAR0, SPYRE_EAR0 + 3, (int64_t)out));
	emit(g, l3su,
	     (struct spyre_insn) { .op = SPYRE_OP_L3_STU,
				   .a = SPYRE_LAR0,
				   .b = NOREG,
				   .c = SPYRE_EAR0,
				   .n = (uint16_t)words });
	g->unit[l3su].clock++;
	order(g, l3su, lxsu);
	g->out->special[g->out->nspecials++] = (struct ref_special) {
		(uint32_t)out, 128 * words, in.op, (uint8_t)(to & ~SPYRE_FMT_HALF)
	};
	g->out->special_bytes += 128 * words;
	return true;
}

/* Some at once, since each is one instruction. */
static bool event_specials(struct gen *g, unsigned int c, unsigned int x)
{
	unsigned int n = 4 + below(g, 5);
	bool done = false;

	while (n--) {
		begin_event(g);
		done |= event_special(g, c, x);
	}
	return done;
}

static void events(struct gen *g, unsigned int n, int core);

/*
 * Conflicts of one iteration with the one before it: all that touched anything meet at an L3LU, for
 * which tags were set aside.
 */
static void end_iteration(struct gen *g, unsigned int from, int core)
{
	unsigned int i, k, hub = uid(core < 0 ? 0 : (unsigned int)core, SPYRE_UNIT_L3LU, 0);
	bool conflict = false;

	for (i = from; i < g->ntouches && !conflict; i++)
		for (k = from; k < i && !conflict; k++)
			conflict = g->touch[i].slot == g->touch[k].slot &&
				   g->touch[i].unit != g->touch[k].unit &&
				   (g->touch[i].write || g->touch[k].write);
	if (!conflict)
		return;
	for (i = 0; i < g->nunits; i++)
		g->unit[i].touched = false;
	for (i = from; i < g->ntouches; i++)
		g->unit[g->touch[i].unit].touched = true;
	for (i = 0; i < g->nunits; i++)
		if (g->unit[i].touched && i != hub)
			order(g, i, hub);
	for (i = 0; i < g->nunits; i++)
		if (g->unit[i].touched && i != hub)
			order(g, hub, i);
}

/* State of the generator that a loop which is skipped, or fails, must leave as it was. */
struct mark {
	struct slot *slot;
	uint32_t *reads, *before, *clock;
	size_t *n;
	struct tag (*tag)[SPYRE_TAGS];
	uint8_t tile_fmt[REF_CORES][2][REF_TILES];
	unsigned int ntouches;
	uint64_t words;
};

static void mark(struct gen *g, struct mark *m)
{
	unsigned int i;

	m->slot = zalloc(g->nslots, sizeof(*m->slot));
	m->reads = zalloc((size_t)g->nslots * g->nunits, 4);
	m->before = zalloc((size_t)g->nunits * g->nunits, 4);
	m->clock = zalloc(g->nunits, 4);
	m->n = zalloc(g->nunits, sizeof(*m->n));
	m->tag = zalloc(g->ncores, sizeof(*m->tag));
	memcpy(m->slot, g->slot, g->nslots * sizeof(*m->slot));
	for (i = 0; i < g->nslots; i++)
		memcpy(m->reads + (size_t)i * g->nunits, g->slot[i].read, 4 * g->nunits);
	for (i = 0; i < g->nunits; i++) {
		memcpy(m->before + (size_t)i * g->nunits, g->unit[i].before, 4 * g->nunits);
		m->clock[i] = g->unit[i].clock;
		m->n[i] = g->unit[i].n;
	}
	memcpy(m->tag, g->tag, g->ncores * sizeof(*m->tag));
	memcpy(m->tile_fmt, g->tile_fmt, sizeof(m->tile_fmt));
	m->ntouches = g->ntouches;
	m->words = g->words;
}

static void unmark(struct mark *m)
{
	free(m->slot);
	free(m->reads);
	free(m->before);
	free(m->clock);
	free(m->n);
	free(m->tag);
}

/* Tags stay taken: what waits for them is in the program. */
static void restore(struct gen *g, struct mark *m)
{
	unsigned int i;

	for (i = 0; i < g->nslots; i++) {
		g->slot[i].writer = m->slot[i].writer;
		g->slot[i].written = m->slot[i].written;
		memcpy(g->slot[i].read, m->reads + (size_t)i * g->nunits, 4 * g->nunits);
	}
	for (i = 0; i < g->nunits; i++)
		memcpy(g->unit[i].before, m->before + (size_t)i * g->nunits, 4 * g->nunits);
	memcpy(g->tile_fmt, m->tile_fmt, sizeof(m->tile_fmt));
	g->ntouches = m->ntouches;
}

static bool event_loop(struct gen *g, int core)
{
	uint32_t count = chance(g, 12) ? 0 : 1 + below(g, g->depth ? 4 : 7);
	uint64_t mult = g->mult;
	struct {
		bool was, carry;
		int64_t step;
	} * old;
	unsigned int i, from;
	struct mark m;

	if (g->depth >= 5 || g->mult * count > 600)
		return false;
	if (core < 0 && (g->ncores > 2 || chance(g, 60)))
		core = (int)below(g, g->ncores);
	old = zalloc(g->nunits, sizeof(*old));
	mark(g, &m);
	from = g->ntouches;
	for (i = 0; i < g->nunits; i++) {
		struct gunit *q = &g->unit[i];

		old[i].was = q->allowed;
		q->allowed = q->allowed && (core < 0 || i / REF_UNITS == (unsigned int)core);
		if (!q->allowed)
			continue;
		if (!q->carry && count > 1 && chance(g, 30)) {
			old[i].carry = q->carry = true;
			old[i].step = stride(g, 3);
			q->carry_min = old[i].step < 0 ? old[i].step * (count - 1) : 0;
			q->carry_max = old[i].step > 0 ? old[i].step * (count - 1) : 0;
			emit(g, i, mvreg(SPYRE_LBR0 + 3, NOREG, 0));
		}
		open_loop(g, i, count);
	}
	g->depth++;
	g->mult *= count ? count : 1;
	events(g, 1 + below(g, 5), core);
	if (count > 1)
		end_iteration(g, from, core);
	for (i = 0; i < g->nunits; i++) {
		if (!g->unit[i].allowed)
			continue;
		if (old[i].carry) {
			emit(g, i, addimm(SPYRE_LBR0 + 3, old[i].step));
			g->unit[i].carry = false;
		}
		close_loop(g, i);
	}
	g->depth--;
	g->mult = mult;
	if (!count)
		restore(g, &m);
	for (i = 0; i < g->nunits; i++)
		g->unit[i].allowed = old[i].was;
	free(old);
	unmark(&m);
	return true;
}

/* n events on what is allowed: those of one core, or any (core -1). */
static void events(struct gen *g, unsigned int n, int core)
{
	while (n--) {
		unsigned int c = core < 0 ? below(g, g->ncores) : (unsigned int)core,
			     x = below(g, 2), what = below(g, 100);
		unsigned int tries;
		bool done = false;

		for (tries = 0; tries < 4 && !done; tries++) {
			begin_event(g);
			if (!g->depth)
				g->ntouches = 0;
			if (what < 28)
				done = event_vector(g, c, x);
			else if (what < 38)
				done = event_stream(g, c, x);
			else if (what < 50)
				done = event_pt(g, c, x);
			else if (what < 56)
				done = event_l0(g, c, x);
			else if (what < 70)
				done = event_l3(g, c);
			else if (what < 74)
				done = event_multicast(g);
			else if (what < 78)
				done = event_ring(g, c, x);
			else if (what < 80)
				done = event_ring_all(g, x);
			else if (what < 84)
				done = event_idle(g, c, x);
			else if (what < 86)
				done = event_broadcast(g, c, x);
			else if (what < 89)
				done = event_specials(g, c, x);
			else
				done = event_loop(g, core);
		}
	}
}

/* --- Whole programs ------------------------------------------------------------------------- */

static void store_out(struct gen *g, struct part *p, uint64_t lx, uint64_t out, unsigned int words)
{
	put(g, p, mvreg(SPYRE_LAR0, NOREG, (int64_t)lx));
	put(g, p, mvreg(SPYRE_EAR0, SPYRE_EAR0 + 3, (int64_t)out));
	put(g, p, loopcnt(words / 32));
	put(g, p,
	    (struct spyre_insn) { .op = SPYRE_OP_L3_STU,
				  .be = 1,
				  .a = SPYRE_LAR0,
				  .b = NOREG,
				  .c = SPYRE_EAR0,
				  .n = 32,
				  .imm = 4096,
				  .imm2 = 4096 });
}

/* All that a core holds, to memory: registers, L0 and sums by way of LX, where what none else uses
 * is written. */
static void dump(struct gen *g, unsigned int c)
{
	unsigned int hub = uid(c, SPYRE_UNIT_L3LU, 0), l3su = uid(c, SPYRE_UNIT_L3SU, 0), i, k, x;
	uint64_t out = REF_OUT_AT + (uint64_t)c * REF_OUT_CORE;
	struct part *p;

	for (i = c * REF_UNITS; i < (c + 1) * REF_UNITS; i++)
		if (i != hub)
			order(g, i, hub);
	for (i = c * REF_UNITS; i < (c + 1) * REF_UNITS; i++)
		if (i != hub)
			order(g, hub, i);
	for (x = 0; x < 2; x++) {
		uint64_t lx = SPYRE_LX_SIZE - (2 + x) * 65536;
		unsigned int lxsu = uid(c, SPYRE_UNIT_LXSU, x);

		begin_event(g);
		p = part_of(g, uid(c, SPYRE_UNIT_PT, x));
		put(g, p,
		    (struct spyre_insn) {
			    .op = SPYRE_OP_PT_PSOUT, .d = SPYRE_FIFO_PT_LXSU, .n = REF_ROWS });
		p = part_of(g, uid(c, SPYRE_UNIT_PE, x));
		for (i = 0; i < SPYRE_VREGS; i++)
			put(g, p,
			    (struct spyre_insn) { .op = SPYRE_OP_MOV,
						  .a = (uint8_t)SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU),
						  .b = (uint8_t)i,
						  .n = 1,
						  .imm2 = SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32) });
		put(g, p,
		    mov_raw(SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU),
			    SPYRE_OPND_FIFO(SPYRE_FIFO_L0LU_PE), 64));
		p = part_of(g, uid(c, SPYRE_UNIT_SFP, x));
		for (i = 0; i < SPYRE_VREGS; i++)
			put(g, p,
			    (struct spyre_insn) {
				    .op = SPYRE_OP_MOV,
				    .a = (uint8_t)SPYRE_OPND_FIFO(SPYRE_FIFO_SFP_LXSU),
				    .b = (uint8_t)i,
				    .n = 1,
				    .imm2 = SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32) });
		p = part_of(g, uid(c, SPYRE_UNIT_L0LU, x));
		put(g, p, mvreg(SPYRE_LAR0, NOREG, 0));
		put(g, p,
		    (struct spyre_insn) { .op = SPYRE_OP_LD,
					  .a = SPYRE_LAR0,
					  .b = NOREG,
					  .d = SPYRE_FIFO_L0LU_PE,
					  .n = 64,
					  .imm = 128 });
		p = part_of(g, lxsu);
		put(g, p, mvreg(SPYRE_LAR0 + 1, NOREG, (int64_t)lx));
		for (k = 0; k < 3; k++)
			put(g, p,
			    (struct spyre_insn) {
				    .op = SPYRE_OP_ST,
				    .a = SPYRE_LAR0 + 1,
				    .b = NOREG,
				    .imm = 128,
				    .d = k == 0	  ? SPYRE_FIFO_PT_LXSU
					 : k == 1 ? SPYRE_FIFO_PE_LXSU
						  : SPYRE_FIFO_SFP_LXSU,
				    .n = k == 0	  ? 256
					 : k == 1 ? 96
						  : 32,
				    .imm2 = k == 0 ? 32768 : 12288,
			    });
		g->words_max = UINT64_MAX;
		commit(g, 384);
		order(g, lxsu, hub);
		order(g, hub, l3su);
		begin_event(g);
		p = part_of(g, l3su);
		store_out(g, p, lx, out, 384);
		out += 384 * 128;
		commit(g, 384);
	}
	/* Others may have stored here and have no tag left to say so: then without. */
	begin_event(g);
	p = part_of(g, l3su);
	for (i = 0; i < LX_RUNS; i++) {
		store_out(g, p, g->lx_run[i], out, LX_RUN * 32);
		out += LX_RUN * SLOT;
		for (k = 0; k < LX_RUN; k++)
			add_touch(g, p, c * LX_SLOTS + i * LX_RUN + k, false);
	}
	g->ntouches = 0;
	commit(g, LX_SLOTS * 32);
}

static void reserve(struct gen *g, unsigned int u, unsigned int v)
{
	int t = pair_tag(g, u, v);

	if (t < 0)
		abort();
	g->tag[u / REF_UNITS][t] = (struct tag) { (int)u, (int)v };
}

static void setup(struct gen *g, unsigned int clones)
{
	unsigned int i, k, c, hub;
	uint32_t lanes[SPYRE_LANES], left;

	g->nunits = g->ncores * REF_UNITS;
	g->nslots = g->ncores * (LX_SLOTS + 2 * L0_SLOTS) + RW_SLOTS;
	g->unit = zalloc(g->nunits, sizeof(*g->unit));
	g->slot = zalloc(g->nslots, sizeof(*g->slot));
	g->tag = zalloc(g->ncores, sizeof(*g->tag));
	g->part = zalloc(PARTS, sizeof(*g->part));
	memset(g->tag, 0xff, g->ncores * sizeof(*g->tag));
	memset(g->tile_fmt, 0xff, sizeof(g->tile_fmt));
	g->mult = 1;
	for (i = 0; i < g->nslots; i++) {
		g->slot[i].writer = -1;
		g->slot[i].read = zalloc(g->nunits, 4);
	}
	for (i = 0; i < g->nunits; i++) {
		struct gunit *q = &g->unit[i];

		q->core = i / REF_UNITS;
		k = i % REF_UNITS;
		q->kind = k < 9 ? k : k - 7;
		q->corelet = k >= 9;
		q->before = zalloc(g->nunits, 4);
		q->allowed = true;
		q->lcr3 = below(g, 1000);
	}
	/* Any cores, in ascending order. */
	left = clones ? clones : g->ncores;
	for (i = 0, k = 0; k < left; i++)
		if (below(g, REF_CORES - i) < left - k)
			g->core[k++] = i;
	for (i = 0; i < LX_RUNS; i++) {
		bool again;

		do {
			g->lx_run[i] =
				(uint64_t)below(g, (SPYRE_LX_SIZE - 3 * 65536) / (LX_RUN * SLOT)) *
				LX_RUN * SLOT;
			for (again = false, k = 0; k < i; k++)
				again |= g->lx_run[i] == g->lx_run[k];
		} while (again);
	}
	for (i = 0; i < 4; i++) {
		if (clones)
			for (k = 0; k < clones; k++)
				g->groups[i] |= 1u << g->core[k];
		while (!g->groups[i])
			for (k = 0; k < g->ncores; k++)
				g->groups[i] |= chance(g, 60) ? 1u << g->core[k] : 0;
		spyreprog_job_group(g->job, i, g->groups[i]);
	}
	for (i = 0; i < 8; i++) {
		for (k = 0; k < SPYRE_LANES; k++)
			lanes[k] = i % 2 || !k ? immediate(g) : lanes[0];
		g->consts[i] = spyreprog_job_const(g->job, lanes);
	}
	for (c = 0; c < g->ncores; c++) {
		hub = uid(c, SPYRE_UNIT_L3LU, 0);
		for (i = 0; i < g->nunits; i++) {
			if (i == hub || (i / REF_UNITS != c && (g->ncores != 2 || c)))
				continue;
			reserve(g, hub, i);
			reserve(g, i, hub);
		}
	}
}

static void build(struct gen *g, unsigned int clones)
{
	struct ref_program *p = g->out;
	uint64_t out_stride = p->out_bytes;
	unsigned int i, k, c;

	p->nsymbols = 4;
	spyreprog_job_symbols(g->job, 4);
	for (i = 0; i < 4; i++)
		p->symbols[i] = 128 * (uint64_t)rnd(g);
	for (i = 0; i < g->nunits; i++) {
		struct gunit *q = &g->unit[i];
		int prog;

		if (!q->n)
			continue;
		prog = spyreprog_job_program(g->job, q->kind);
		for (k = 0; k < q->n; k++)
			spyreprog_job_insn(g->job, prog, &q->insn[k]);
		for (c = 0; c < (clones ? clones : 1); c++) {
			const uint64_t ear[4] = {
				128 * (uint64_t)rnd(g),
				(uint64_t)REF_SEG_IN << SPYRE_SEGMENT_SHIFT,
				((uint64_t)REF_SEG_RW << SPYRE_SEGMENT_SHIFT) + c * REF_RW_BYTES,
				((uint64_t)REF_SEG_OUT << SPYRE_SEGMENT_SHIFT) + c * out_stride,
			};
			int u = spyreprog_job_unit(g->job, g->core[clones ? c : q->core], q->kind,
						   q->corelet, prog);
			unsigned int sym;

			for (k = 0; k < 4; k++) {
				sym = chance(g, 30) ? below(g, 4) : SPYRE_NO_SYMBOL;
				spyreprog_job_init(
					g->job, u, SPYRE_EAR0 + k, sym,
					ear[k] - (sym == SPYRE_NO_SYMBOL ? 0 : p->symbols[sym]));
			}
			sym = chance(g, 30) ? below(g, 4) : SPYRE_NO_SYMBOL;
			spyreprog_job_init(g->job, u, SPYRE_LCR0 + 3, sym,
					   q->lcr3 -
						   (sym == SPYRE_NO_SYMBOL ? 0 : p->symbols[sym]));
			spyreprog_job_init(g->job, u, SPYRE_LAR0 + below(g, 4), SPYRE_NO_SYMBOL,
					   rnd(g));
		}
	}
	if (spyreprog_job_finish(g->job, &p->container, &p->size)) {
		fprintf(stderr, "generator: %s\n", spyreprog_job_error(g->job));
		abort();
	}
	p->out_bytes = out_stride * (clones ? clones : 1);
	p->rw_bytes = REF_RW_BYTES * (clones ? clones : 1);
	p->clones = clones ? clones : 1;
	p->out_stride = out_stride;
}

void ref_generate(struct ref_program *p, uint64_t seed, unsigned int cores, unsigned int clones,
		  unsigned int n, uint64_t words)
{
	struct gen *g = zalloc(1, sizeof(*g));
	unsigned int i;

	memset(p, 0, sizeof(*p));
	g->rng = seed * 0x9e3779b97f4a7c15ull + 1;
	g->out = p;
	g->ncores = clones ? 1 : cores;
	g->clones = clones;
	g->words_max = words;
	g->job = spyreprog_job_new();
	setup(g, clones);
	p->out_bytes = REF_OUT_AT + g->ncores * REF_OUT_CORE;
	events(g, n, -1);
	for (i = 0; i < g->ncores; i++)
		dump(g, i);
	build(g, clones);
	spyreprog_job_free(g->job);
	for (i = 0; i < g->nslots; i++)
		free(g->slot[i].read);
	for (i = 0; i < g->nunits; i++) {
		free(g->unit[i].before);
		free(g->unit[i].insn);
	}
	free(g->unit);
	free(g->slot);
	free(g->tag);
	free(g->part);
	free(g);
}

void ref_program_free(struct ref_program *p)
{
	free(p->container);
}
