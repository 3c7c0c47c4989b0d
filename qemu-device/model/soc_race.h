/* SPDX-License-Identifier: MIT */
/* The race check's state, and what its files share; soc_race.c says how it works. */
#ifndef SPYRE_MODEL_SOC_RACE_H
#define SPYRE_MODEL_SOC_RACE_H

#include "soc_int.h"

#define PORT0		JOB_CORE_UNITS	/* load ports of the two PTs follow the units */
#define R_UNITS		(JOB_CORE_UNITS + 2)
#define KNOWN_FARS	4u

/* What is known of units of all cores; that of the holder's own core is in its near part. */
struct far {
	uint64_t id;		/* of this content */
	uint32_t refs;
	uint64_t c[32][JOB_CORE_UNITS];
};

struct clock {
	uint64_t near[JOB_CORE_UNITS];
	struct far *far;	/* NULL: all 0 */
};

/* A unit's clock when it sent. */
struct sent {
	uint32_t refs;
	struct clock clk;
};

/* An access; at 0: none. */
struct access {
	uint64_t at;
	uint32_t pc;
	uint16_t unit;		/* core * 16 + job_unit_index() */
};

/*
 * A stick of LX or L0. Readers: L3SU, LXLU of both corelets; L0LU. Reads are those since the write.
 */
struct local {
	struct access w, r[3];
};

/* A stick of memory; r alone while all reads are ordered, else many[core]. */
struct place {
	struct access w, r;
	struct access *many;
};

struct wfifo {
	struct clock *w;	/* DEPTH, of the writer at each word */
	uint32_t head, count;
};

struct runit {
	struct seq s;
	struct clock clk;
	uint64_t known[KNOWN_FARS];	/* ids of far parts that clk includes */
	unsigned int nknown;
	uint32_t done;
	uint8_t core, index, kind, corelet;
};

struct sender {
	uint16_t unit;
	struct sent **q;	/* outstanding, a ring */
	uint32_t head, n, cap;
	/* Of tags with several senders. */
	uint64_t *at;		/* the unit's own time of each send */
	uint32_t nat, atcap;
};

struct wtag {
	uint32_t count;
	uint16_t nfrom;
	bool logged;		/* several senders, and this round keeps the log */
	bool settled; /* counts of .take are final: there is no log of this round, or no time for it
		       */
	struct sender *from;
	uint64_t need;		/* consumed */
	/* Arrival order of the sends not consumed: number in from, a ring. */
	uint16_t *order;
	uint32_t ohead, ocap;
	/* The log: of waits, and of sends in their order of arrival. */
	uint64_t *wait_at, *wait_need;
	uint32_t nwaits, wcap;
	uint16_t *who;
	uint32_t *knows; /* nfrom + 1 each: waits of this tag known, sends of each sender known */
	uint32_t nsends, scap;
	/* How many sends of each sender a wait comes after; NULL: of the first that arrive. */
	uint32_t *take;
	uint32_t ntake;
};

struct rcore {
	unsigned int id;
	struct runit u[R_UNITS];
	struct wfifo fifo[2][SPYRE_FIFOS];	/* RING: what this core reads */
	struct wtag tag[SPYRE_TAGS];
	struct ldw ldw[2][PT_TILES];
	unsigned int nldw[2], got[2];
	uint8_t pending[2][PT_TILES];
	struct clock tile[2][PT_TILES];
	struct rcore *next[2], *prev[2];	/* on the ring, by corelet */
	struct local *lx, *l0[2];
	uint32_t ready, live;
	bool queued;
};

struct races {
	struct spyre_soc *soc;
	const struct job *job;
	struct rcore *core;	/* 32 */
	struct rcore *queue[32];
	unsigned int qhead, nqueue;
	uint64_t ids;
	struct far *spare;	/* free ones, linked by .c[0][0] */
	uint32_t steps, outstanding, fars;
	uint32_t logged;	/* numbers, in this round */
	uint64_t work;
	bool several;		/* a tag has several senders */
	bool check, local;	/* this pass looks at accesses, at those of LX and L0 too */
	bool nomem, cancelled, found, large;
	uint64_t **written;	/* PAGES of them: sticks that the job stores to, a bit each */
	struct place **page;	/* PAGES: those of this pass */
	struct access *many;	/* free ones, linked by their first pointer */
	/* The race; of a job that is too large a alone: where it became so. */
	struct access a, b;
	uint64_t addr;
	uint8_t place, writes;
};

/* --- What each unit knows: soc_race_clock.c ------------------------------------------------- */

/* The check ends here: what u does needs more than is kept. */
void race_too_large(struct races *r, const struct runit *u);
void race_clock_set(struct races *r, struct clock *to, const struct clock *from);
/* Knows nothing then. */
void race_clock_drop(struct races *r, struct clock *c);
/* u learns what a unit of another core, or of its own, knew. */
void race_join(struct races *r, struct runit *u, unsigned int core, const struct clock *c);

/* --- Tags: soc_race_tags.c ------------------------------------------------------------------ */

/* Which units send to which tags, before the first pass; false: no memory. */
bool race_senders(struct races *r);
/* Passes that find which sends a wait of a tag with several senders comes after; false: stopped. */
bool race_order_tags(struct races *r);
/*
 * Is there room in the tags that only this unit sends to? More than a tag holds is never needed.
 * Where others send too, who comes first could decide whether the job ends.
 */
bool race_tags_have_room(const struct races *r, const struct rcore *c, const struct job_insn *i);
void race_send(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i);
/* False: not yet. */
bool race_wait(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i);
/* For the next pass. */
void race_forget_sends(struct races *r, struct wtag *t);
void race_free_tag(struct races *r, struct wtag *t);

/* --- Stepping: soc_race.c ------------------------------------------------------------------- */

/* Asks now and then whether the job is cancelled; true: the pass ends here. */
bool race_stop(struct races *r);
/*
 * Through the whole job once, with a log of tags with several senders or without; false: stopped.
 */
bool race_pass(struct races *r, bool log);

static inline uint16_t race_unit(const struct runit *u)
{
	return (uint16_t)(u->core * JOB_CORE_UNITS + u->index);
}

static inline struct access race_now(const struct runit *u)
{
	return (struct access){ .at = u->clk.near[u->index], .pc = u->s.pc, .unit = race_unit(u) };
}

/* What a clock of a unit of core says of a unit. */
static inline uint64_t race_knows(const struct clock *c, unsigned int core, unsigned int unit)
{
	if (unit / JOB_CORE_UNITS == core)
		return c->near[unit % JOB_CORE_UNITS];
	return c->far ? c->far->c[unit / JOB_CORE_UNITS][unit % JOB_CORE_UNITS] : 0;
}

static inline void race_wake(struct races *r, struct rcore *c, unsigned int index)
{
	c->ready |= 1u << index;
	if (!c->queued) {
		c->queued = true;
		r->queue[(r->qhead + r->nqueue++) % 32] = c;
	}
}

/* What u does from now on is not before what it hands on now. */
static inline void race_tick(struct runit *u)
{
	u->clk.near[u->index]++;
}

#endif
