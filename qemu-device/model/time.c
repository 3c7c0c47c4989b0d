/* SPDX-License-Identifier: MIT */
/*
 * The timing pass: when each word moves, by max-plus recurrences over the units' streams at the real FIFO
 * depth. A word is read when its reader is free and the word is there; it is written when its writer is free
 * and its slot is. Data does not matter, addresses neither, so one core stands for all that run the same
 * programs with the same loop counts, as long as what they share is shared alike.
 *
 * It also decides what depends on time or on depth alone: deadlock, the watchdog, tags that overflow, words
 * left over, tiles used before they were ever loaded, multicasts whose bursts differ.
 */
#include <stdlib.h>

#include "soc_int.h"
#include "time_params.h"

/*
 * Compiled twice: time_profile.c has it keep phases of units and what bursts take too, so that the
 * ordinary pass does not pay for more than the sums that the card's counters need.
 */
#ifndef PROFILED
#define PROFILED	0
#define TIME_JOB	spyre_time_job
#endif

/* --- Parameters ----------------------------------------------------------------------------- */

/* Time is in ticks of 1/4096 core cycle. */
#define TICK_SHIFT	12
#define CYCLE		(1ull << TICK_SHIFT)
_Static_assert(CYCLE == SPYRE_SOC_TICKS, "profiles count in the same ticks");

/* Steps after which a program that cannot end within its budget is given up: a fraction of a second. */
#define PATIENCE	(64ull << 20)
#define STEPS_CHECK	16384u	/* between two checkpoints: well under a millisecond */

/* --- State ---------------------------------------------------------------------------------- */

#define DEPTH	SPYRE_FIFO_DEPTH
#define PORT0	JOB_CORE_UNITS		/* load ports of the two PTs follow the units */
#define T_UNITS	(JOB_CORE_UNITS + 2)
_Static_assert(PORT0 == SPYRE_PROFILE_PORT && T_UNITS == SPYRE_PROFILE_UNITS, "profiles have the same units");

struct tfifo {
	uint64_t wr[DEPTH];	/* when word i mod DEPTH can be read */
	uint64_t rd[DEPTH];	/* when it was read */
	uint64_t nw, nr;
};

struct ttag {
	uint64_t *t;		/* sends not yet consumed, ascending */
	uint32_t head, n, cap;
};

struct tcore;

/* Phases of a unit, for a timeline. When there are too many, those shorter than grain become one. */
struct recorder {
	uint64_t grain;
	uint32_t n, max;
	struct spyre_phase p[];
};

struct tunit {
	struct seq s;
	struct tcore *core;
	const struct job_program *program;
	uint64_t t;		/* free from then on */
	uint64_t last;		/* loads and stores done by then */
	uint32_t done;
	uint8_t index, kind, corelet;
	uint8_t state;		/* enum unit_state */
	uint8_t waits, number;
	enum spyre_prog_err err;
	struct spyre_time_probe *probes;
	uint64_t spent[SPYRE_SPENT], bytes;
	struct recorder *rec;		/* NULL: no phases are wanted */
};

struct tcore {
	unsigned int id;
	unsigned int weight;		/* cores it stands for */
	uint32_t mates;			/* those cores */
	struct tunit u[T_UNITS];
	struct tfifo fifo[2][SPYRE_FIFOS];	/* RING: what this core reads */
	struct ttag tag[SPYRE_TAGS];
	struct tcore *ring_next[2], *ring_prev[2];
	struct ldw ldw[2][PT_TILES];
	uint64_t ldw_at[2][PT_TILES];
	unsigned int nldw[2];
	/* Loads given to the port, loads it has done, and when it was done with the last ones. */
	uint32_t ldw_given[2], ldw_ended[2];
	uint64_t ldw_end[2][PT_TILES];
	uint8_t tile_fmt[2][PT_TILES], tile_pending[2][PT_TILES];
	uint64_t tile_at[2][PT_TILES];
	/* When each place for a burst in flight is free again; loads and stores share theirs. */
	uint64_t flight[TIME_BURSTS_IN_FLIGHT], mflight[TIME_MULTICASTS_IN_FLIGHT];
	unsigned int nmflight;
	uint64_t in_free, out_free;	/* this core's place on the ring */
	uint32_t half[2];		/* of the cores it stands for, how many hang on each port */
	uint32_t ready;
	bool queued;
	uint64_t macs, rd, wr;		/* of one of the cores */
	uint64_t mrd;			/* multicasts', of all of them */
	uint64_t in_words, out_words, pt_words;	/* of one of the cores */
	uint64_t bursts[2], burst_time[2];	/* [1]: multicasts */
};

struct tgroup {
	uint32_t members, arrived, released;
	uint64_t start, done;
	uint16_t n[32];
};

struct sim {
	struct spyre_soc *soc;
	const struct job *job;
	struct tcore *core;	/* ncores of them */
	unsigned int ncores;
	struct tcore *of[32];	/* by core number */
	bool alone;		/* a core stands for its like: meetings are with itself */
	struct tcore *queue[32];
	unsigned int nqueue;
	struct tunit *prefer;		/* runs next */
	struct tgroup group[SPYRE_JOB_GROUPS];
	uint64_t hmi_free, port_free[2], port_busy[2], tail;
	uint64_t link, mni_in, mni_out, hmi, port;	/* ticks a word */
	uint64_t beat;			/* of PT's array */
	uint64_t limit, steps, next_check, load_latency, store_latency;
	bool cancelled, nomem, patient, impatient;
};

static uint64_t ticks_ns(const struct spyre_soc *soc, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * soc->cfg.core_hz * CYCLE / 1000000000);
}

/* --- Waking --------------------------------------------------------------------------------- */

static void wake(struct sim *sim, struct tcore *c, unsigned int index)
{
	c->ready |= 1u << index;
	if (!c->queued && index > SPYRE_UNIT_L3SU) {
		c->queued = true;
		sim->queue[sim->nqueue++] = c;
	}
}

static void wake_reader(struct sim *sim, struct tcore *c, unsigned int corelet, unsigned int fifo)
{
	if (fifo == SPYRE_FIFO_LXLU_PTW || fifo == SPYRE_FIFO_L0LU_PTW)
		wake(sim, c, PORT0 + corelet);
	else
		wake(sim, c, job_unit_index(isa_fifos[fifo].reader, corelet));
}

static void wake_writer(struct sim *sim, struct tcore *c, unsigned int corelet, unsigned int fifo)
{
	if (fifo == SPYRE_FIFO_RING)
		c = c->ring_prev[corelet];
	wake(sim, c, job_unit_index(isa_fifos[fifo].writer, corelet));
}

static bool block(struct tunit *u, enum spyre_wait_kind kind, unsigned int number)
{
	u->waits = kind;
	u->number = (uint8_t)number;
	return false;
}

static bool terr(struct tunit *u, enum spyre_prog_err err)
{
	u->err = err;
	u->state = UNIT_FAILED;
	return false;
}

static inline uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* --- What units spend their time on --------------------------------------------------------- */

static enum spyre_spent mostly(const struct spyre_phase *p)
{
	enum spyre_spent k, most = SPYRE_BUSY;

	for (k = SPYRE_STARVED; k < SPYRE_SPENT; k++)
		if (p->spent[k] > p->spent[most])
			most = k;
	return most;
}

/* Makes next a part of p if they are alike or short. */
static bool join(struct spyre_phase *p, const struct spyre_phase *next, uint64_t grain)
{
	unsigned int k;

	if ((p->end != next->start || mostly(p) != mostly(next)) && next->end - p->start > grain)
		return false;
	p->end = next->end;
	for (k = 0; k < SPYRE_SPENT; k++)
		p->spent[k] += next->spent[k];
	return true;
}

static void record(struct recorder *r, enum spyre_spent what, uint64_t from, uint64_t ticks)
{
	struct spyre_phase one = { .start = from, .end = from + ticks };
	uint32_t i, n;

	one.spent[what] = ticks;
	if (r->n && join(&r->p[r->n - 1], &one, r->grain))
		return;
	while (r->n == r->max) {
		r->grain = r->grain ? r->grain * 2 : CYCLE;
		for (i = 1, n = 0; i < r->n; i++)
			if (!join(&r->p[n], &r->p[i], r->grain))
				r->p[++n] = r->p[i];
		r->n = n + 1;
	}
	r->p[r->n++] = one;
}

static inline void spend(struct tunit *u, enum spyre_spent what, uint64_t from, uint64_t ticks)
{
	u->spent[what] += ticks;
	if (PROFILED && u->rec && ticks)
		record(u->rec, what, from, ticks);
}

/* The unit waits until t, if that is later. */
static inline void wait_until(struct tunit *u, enum spyre_spent what, uint64_t t)
{
	if (t <= u->t)
		return;
	spend(u, what, u->t, t - u->t);
	u->t = t;
}

static inline void work(struct tunit *u, uint64_t ticks)
{
	spend(u, SPYRE_BUSY, u->t, ticks);
	u->t += ticks;
}

/* Words went through the unit until t: so much work, the rest waiting, which is put first. */
static inline void streamed(struct tunit *u, enum spyre_spent what, uint64_t t, uint64_t busy, uint32_t words)
{
	wait_until(u, what, t - busy);
	work(u, busy);
	u->bytes += words * (uint64_t)SPYRE_STICK;
}

/* --- Streams -------------------------------------------------------------------------------- */

/* Writes words until .done is n; each takes cost, and is there after way. */
static bool stream_out(struct sim *sim, struct tunit *u, unsigned int fifo, uint32_t n, uint64_t cost, uint64_t way)
{
	struct tfifo *f = &u->core->fifo[u->corelet][fifo];

	while (u->done < n) {
		uint32_t room = DEPTH - (uint32_t)(f->nw - f->nr), k;
		uint64_t t = u->t;

		if (!room)
			return block(u, SPYRE_WAIT_FIFO_FULL, fifo);
		if (room > n - u->done)
			room = n - u->done;
		for (k = 0; k < room; k++) {
			uint64_t at = f->nw++ % DEPTH;

			t = max64(t, f->rd[at]);
			t += cost;
			f->wr[at] = t + way;
		}
		u->done += room;
		sim->steps += room;
		streamed(u, SPYRE_BLOCKED, t, room * cost, room);
		wake_reader(sim, u->core, u->corelet, fifo);
	}
	return true;
}

/* Reads words until .done is n; each takes cost. */
static bool stream_in(struct sim *sim, struct tunit *u, unsigned int fifo, uint32_t n, uint64_t cost)
{
	struct tfifo *f = &u->core->fifo[u->corelet][fifo];

	while (u->done < n) {
		uint32_t have = (uint32_t)(f->nw - f->nr), k;
		uint64_t t = u->t;

		if (!have)
			return block(u, SPYRE_WAIT_FIFO_EMPTY, fifo);
		if (have > n - u->done)
			have = n - u->done;
		for (k = 0; k < have; k++) {
			uint64_t at = f->nr++ % DEPTH;

			t = max64(t, f->wr[at]);
			f->rd[at] = t;
			t += cost;
		}
		u->done += have;
		sim->steps += have;
		streamed(u, SPYRE_STARVED, t, have * cost, have);
		wake_writer(sim, u->core, u->corelet, fifo);
	}
	return true;
}

/* --- Instructions --------------------------------------------------------------------------- */

static bool t_send(struct sim *sim, struct tunit *u, const struct job_insn *i)
{
	struct tcore *c = u->core;
	uint32_t mask = (uint32_t)i->imm, m, times;
	uint64_t t;

	if (u->kind == SPYRE_UNIT_PT) {
		if (c->nldw[u->corelet])
			return block(u, SPYRE_WAIT_TILE, c->ldw[u->corelet][0].tile);
		wait_until(u, SPYRE_STARVED, c->u[PORT0 + u->corelet].t);
	}
	work(u, CYCLE);
	/* Where a core stands for all, all cores' sends to this one come from it. */
	times = sim->alone && (mask & ~(1u << c->id)) ? c->weight : 1;
	if (!mask || sim->alone)
		mask = 1u << c->id;
	for (m = mask; m; m &= m - 1) {
		struct tcore *o = sim->of[__builtin_ctz(m)];
		struct ttag *g = &o->tag[i->a];
		uint8_t w = sim->job->tag_waiter[o->id][i->a];
		uint32_t k, pos;

		/* The send is posted behind the loads and stores in flight; the unit goes on. */
		t = max64(u->t, u->last) + (o == c && times == 1 ? TIME_TAG_CYCLES : TIME_TAG_FAR_CYCLES) * CYCLE;
		if (g->n + times > 65535)
			return terr(u, SPYRE_PE_TAG_OVERFLOW);
		for (k = 0; k < times; k++) {
			if (g->head + g->n == g->cap) {
				uint64_t *p;

				if (g->head) {
					memmove(g->t, g->t + g->head, g->n * sizeof(*g->t));
					g->head = 0;
				} else {
					p = realloc(g->t, (g->cap ? g->cap * 2 : 8) * sizeof(*p));
					if (!p) {
						sim->nomem = true;
						return false;
					}
					g->t = p;
					g->cap = g->cap ? g->cap * 2 : 8;
				}
			}
			/* Several senders run one after the other here, but not in time. */
			for (pos = g->head + g->n; pos > g->head && g->t[pos - 1] > t; pos--)
				g->t[pos] = g->t[pos - 1];
			g->t[pos] = t;
			g->n++;
		}
		if (w != 0xff)
			wake(sim, o, w);
	}
	return true;
}

/* A sender may be ahead of the waiter here though not in time: let the waiter take what it can first. */
static bool t_send_room(struct sim *sim, struct tunit *u, const struct job_insn *i)
{
	struct tcore *c = u->core;
	uint32_t mask = (uint32_t)i->imm;

	if (!mask || sim->alone)
		mask = 1u << c->id;
	for (; mask; mask &= mask - 1) {
		struct tcore *o = sim->of[__builtin_ctz(mask)];
		uint8_t w = sim->job->tag_waiter[o->id][i->a];

		if (o->tag[i->a].n + c->weight <= 65535 || w == 0xff || o->u[w].state != UNIT_LIVE ||
		    o->u[w].t >= u->t || !(o->ready & 1u << w))
			continue;
		wake(sim, c, u->index);
		sim->prefer = &o->u[w];
		return false;
	}
	return true;
}

static bool t_wait(struct tunit *u, const struct job_insn *i)
{
	struct ttag *g = &u->core->tag[i->a];

	if (g->n < i->n)
		return block(u, SPYRE_WAIT_TAG, i->a);
	wait_until(u, SPYRE_STARVED, g->t[g->head + i->n - 1]);
	work(u, CYCLE);
	g->head += i->n;
	g->n -= i->n;
	if (!g->n)
		g->head = 0;
	return true;
}

/* The place that the next burst of a core, or multicast, takes: the one that is free first. */
static uint64_t *flight_slot(struct tcore *c, bool multicast)
{
	uint64_t *first = c->flight;
	unsigned int i;

	if (multicast)
		return &c->mflight[c->nmflight % TIME_MULTICASTS_IN_FLIGHT];
	for (i = 1; i < TIME_BURSTS_IN_FLIGHT; i++)
		if (c->flight[i] < *first)
			first = &c->flight[i];
	return first;
}

static void flight_add(struct tunit *u, uint64_t done, bool multicast)
{
	if (PROFILED) {
		u->core->bursts[multicast]++;
		u->core->burst_time[multicast] += done - u->t;
	}
	*flight_slot(u->core, multicast) = done;
	if (multicast)
		u->core->nmflight++;
	u->last = max64(u->last, done);
}

/* A server that is asked for the same work times over: the end of the first one. */
static uint64_t serve(struct sim *sim, uint64_t *free, uint64_t t, uint64_t work, uint32_t times)
{
	t = max64(t, *free);
	*free = t + work * times;
	sim->tail = max64(sim->tail, work * (times - 1));
	return t + work;
}

/*
 * Memory moves n words, times over, from time t on, through ports whose load is times half[]. Requests come
 * in the order of t. Cores that one stands for do not stay in step: once they have queued at the memory they
 * are served in turn, and while one waits the others work. So the one that stands for them is the first
 * in each round, the memory is busy for all of them, and the last one's lag is added once, to the job.
 */
static uint64_t hmi(struct sim *sim, uint64_t t, uint32_t n, uint32_t times, const uint32_t half[2])
{
	uint64_t done = serve(sim, &sim->hmi_free, t, n * sim->hmi, times);
	unsigned int h;

	for (h = 0; h < 2; h++)
		if (half[h]) {
			done = max64(done, serve(sim, &sim->port_free[h], t, n * sim->port, half[h]));
			sim->port_busy[h] += n * sim->port * half[h];
		}
	return done;
}

/* A load's words on the ring to a core: behind its earlier ones. */
static uint64_t arrive(struct sim *sim, struct tcore *c, uint64_t sent, uint32_t n)
{
	c->in_words += n;
	c->in_free = max64(c->in_free + n * sim->mni_in, sent + sim->load_latency);
	return c->in_free;
}

static bool t_l3(struct sim *sim, struct tunit *u, const struct job_insn *i)
{
	struct tcore *c = u->core;
	bool multicast = i->op == SPYRE_OP_L3_LDM;
	uint32_t m, k, first, times, half[2];
	struct tgroup *g;

	switch (i->op) {
	case SPYRE_OP_L3_LDU:
	case SPYRE_OP_L3_LDM:
	case SPYRE_OP_L3_STU:
		if (multicast && !sim->alone && sim->group[i->d].released & 1u << c->id)
			break;
		/* Requests must come in order: wait for the place before asking. */
		if (*flight_slot(c, multicast) > u->t) {
			wait_until(u, SPYRE_BLOCKED, *flight_slot(c, multicast));
			wake(sim, c, u->index);
			return false;
		}
		break;
	}
	switch (i->op) {
	case SPYRE_OP_L3_LDU:
		flight_add(u, arrive(sim, c, hmi(sim, u->t, i->n, c->weight, c->half), i->n), false);
		c->rd += i->n * (uint64_t)SPYRE_STICK;
		work(u, CYCLE);
		break;
	case SPYRE_OP_L3_LDM:
		g = &sim->group[i->d];
		if (sim->alone) {
			/* Read once for each of the groups that the kind's cores form. */
			k = (uint32_t)__builtin_popcount(g->members);
			times = (c->weight + k - 1) / k;
			half[0] = (c->half[0] + k - 1) / k;
			half[1] = (c->half[1] + k - 1) / k;
			flight_add(u, arrive(sim, c, hmi(sim, u->t, i->n, times, half), i->n), true);
			c->mrd += i->n * (uint64_t)SPYRE_STICK * times;
			work(u, CYCLE);
			break;
		}
		if (!(g->released & 1u << c->id)) {
			if (g->arrived & 1u << c->id)
				return block(u, SPYRE_WAIT_GROUP, i->d);
			g->arrived |= 1u << c->id;
			g->n[c->id] = i->n;
			g->start = max64(g->start, u->t);
			if (g->arrived != g->members)
				return block(u, SPYRE_WAIT_GROUP, i->d);
			first = (uint32_t)__builtin_ctz(g->members);
			for (m = g->members; m; m &= m - 1) {
				k = (uint32_t)__builtin_ctz(m);
				if (g->n[k] == g->n[first])
					continue;
				sim->of[k]->u[SPYRE_UNIT_L3LU].err = SPYRE_PE_GROUP_MISMATCH;
				sim->of[k]->u[SPYRE_UNIT_L3LU].state = UNIT_FAILED;
				if (k == c->id)
					return false;
				break;
			}
			half[0] = (g->members & 0xffff) != 0;
			half[1] = (g->members & 0xffff0000) != 0;
			g->done = hmi(sim, g->start, i->n, 1, half);
			g->released = g->members;
			g->arrived = 0;
			c->mrd += i->n * (uint64_t)SPYRE_STICK;
			for (m = g->members & ~(1u << c->id); m; m &= m - 1)
				wake(sim, sim->of[__builtin_ctz(m)], SPYRE_UNIT_L3LU);
		}
		g->released &= ~(1u << c->id);
		/* The next rendezvous starts no earlier than this one. */
		wait_until(u, SPYRE_STARVED, g->start);
		flight_add(u, arrive(sim, c, g->done, i->n), true);
		work(u, CYCLE);
		break;
	case SPYRE_OP_L3_STU:
		c->out_free = max64(c->out_free, u->t) + i->n * sim->mni_out;
		flight_add(u, max64(c->out_free, hmi(sim, u->t, i->n, c->weight, c->half)) + sim->store_latency, false);
		wait_until(u, SPYRE_BLOCKED, c->out_free - i->n * sim->mni_out);
		work(u, i->n * sim->mni_out);
		c->out_words += i->n;
		c->wr += i->n * (uint64_t)SPYRE_STICK;
		break;
	case SPYRE_OP_L3_STC:
		work(u, i->n * sim->mni_out);
		c->out_words += i->n;
		u->last = max64(u->last, u->t + TIME_STC_CYCLES * CYCLE);
		break;
	}
	u->bytes += i->n * (uint64_t)SPYRE_STICK;
	return true;
}

/* The load port of a PT, a unit of its own. */
static bool t_port(struct sim *sim, struct tunit *u)
{
	struct tcore *c = u->core;
	unsigned int x = u->corelet;

	while (c->nldw[x]) {
		struct ldw *l = &c->ldw[x][0];

		if (!u->done)
			u->t = max64(u->t, c->ldw_at[x][0]);
		if (!stream_in(sim, u, l->fifo, 64, sim->link))
			return false;
		u->done = 0;
		c->tile_at[x][l->tile] = u->t;
		c->ldw_end[x][c->ldw_ended[x]++ % PT_TILES] = u->t;
		c->tile_pending[x][l->tile]--;
		c->nldw[x]--;
		memmove(c->ldw[x], c->ldw[x] + 1, c->nldw[x] * sizeof(c->ldw[x][0]));
		memmove(c->ldw_at[x], c->ldw_at[x] + 1, c->nldw[x] * sizeof(c->ldw_at[x][0]));
		wake(sim, c, job_unit_index(SPYRE_UNIT_PT, x));
	}
	return false;
}

static bool t_pt(struct sim *sim, struct tunit *u, const struct job_insn *i)
{
	struct tcore *c = u->core;
	unsigned int x = u->corelet;
	uint32_t k;
	bool all;

	switch (i->op) {
	case SPYRE_OP_PT_LDW:
		if (c->nldw[x] == PT_TILES)
			return block(u, SPYRE_WAIT_TILE, c->ldw[x][0].tile);
		/* The port may be ahead here: its place is free when the load so many before is done. */
		wait_until(u, SPYRE_BLOCKED, c->ldw_end[x][c->ldw_given[x]++ % PT_TILES]);
		c->ldw[x][c->nldw[x]] = (struct ldw){ .tile = i->a, .fmt = i->b, .fifo = i->d };
		c->ldw_at[x][c->nldw[x]++] = u->t;
		c->tile_pending[x][i->a]++;
		c->tile_fmt[x][i->a] = i->b;
		work(u, CYCLE);
		wake(sim, c, PORT0 + x);
		return true;
	case SPYRE_OP_PT_MM:
		if (c->tile_fmt[x][i->a] != i->b)
			return terr(u, SPYRE_PE_TILE);
		if (c->tile_pending[x][i->a])
			return block(u, SPYRE_WAIT_TILE, i->a);
		if (!u->done)
			wait_until(u, SPYRE_STARVED, c->tile_at[x][i->a]);
		k = u->done;
		all = stream_in(sim, u, i->d, i->n, TIME_MM_BEATS * sim->beat);
		c->pt_words += u->done - k;
		c->macs += (u->done - k) * isa_formats[i->b].lanes * (uint64_t)SPYRE_LANES;
		return all;
	case SPYRE_OP_PT_PSOUT:
		return stream_out(sim, u, i->d, i->n * 2u, sim->link, TIME_LINK_CYCLES * CYCLE);
	default:
		return stream_in(sim, u, i->d, i->n * 2u, sim->link);
	}
}

static uint64_t op_cycles(const struct job_insn *i)
{
	switch ((enum isa_cost)i->cost) {
	case ISA_SPECIAL:
		return TIME_SPECIAL_CYCLES;
	case ISA_REDUCE:
		return TIME_REDUCE_CYCLES;
	case ISA_RANK:
		return TIME_RANK_CYCLES;
	default:
		return 1;
	}
}

static bool t_vec(struct sim *sim, struct tunit *u, const struct job_insn *i)
{
	struct tcore *c = u->core;
	const uint8_t opnd[3] = { i->b, i->c, i->d };
	struct tfifo *in[3] = { NULL, NULL, NULL }, *out = NULL;
	uint32_t need[3] = { 0, 0, 0 }, num[3] = { 0, 0, 0 }, nin = 0, k, j, w = 0, widest = 0;
	uint64_t cost, t = u->t, was, starved = 0;
	uint32_t before = u->done, words;
	bool ok = true;

	for (k = 0; k < 3; k++) {
		uint32_t fifo = opnd[k] - 0x20u;

		if (!(i->srcs & 1u << k) || opnd[k] < 0x20 || opnd[k] >= 0x40)
			continue;
		for (j = 0; j < nin && num[j] != fifo; j++)
			;
		if (j == nin) {
			num[nin] = fifo;
			in[nin++] = &c->fifo[u->corelet][fifo];
		}
		need[j] += isa_words((uint32_t)i->imm2 >> (8 * k) & 0xff);
		if (need[j] > widest)
			widest = need[j];
	}
	if (i->a >= 0x20) {
		struct tcore *o = i->a == SPYRE_OPND_FIFO(SPYRE_FIFO_RING) ? c->ring_next[u->corelet] : c;

		out = &o->fifo[u->corelet][i->a - 0x20];
		w = isa_words((uint32_t)i->imm2 >> 24);
		if (w > widest)
			widest = w;
	}
	cost = max64(op_cycles(i) * CYCLE, widest * sim->link);
	if (!nin && !out) {
		work(u, (i->n - u->done) * cost);
		return true;
	}
	while (u->done < i->n) {
		for (k = 0; k < nin; k++) {
			if (in[k]->nw - in[k]->nr >= need[k])
				continue;
			ok = block(u, SPYRE_WAIT_FIFO_EMPTY, num[k]);
			goto done;
		}
		if (out && DEPTH - (out->nw - out->nr) < w) {
			ok = block(u, SPYRE_WAIT_FIFO_FULL, i->a - 0x20u);
			goto done;
		}
		was = t;
		for (k = 0; k < nin; k++)
			t = max64(t, in[k]->wr[(in[k]->nr + need[k] - 1) % DEPTH]);
		starved += t - was;
		for (k = 0; k < w; k++)
			t = max64(t, out->rd[(out->nw + k) % DEPTH]);
		for (k = 0; k < nin; k++)
			for (j = 0; j < need[k]; j++)
				in[k]->rd[in[k]->nr++ % DEPTH] = t;
		t += cost;
		for (k = 0; k < w; k++)
			out->wr[out->nw++ % DEPTH] = t + TIME_LINK_CYCLES * CYCLE;
		u->done++;
		sim->steps++;
	}
done:
	if (u->done > before) {
		words = w + need[0] + need[1] + need[2];
		wait_until(u, SPYRE_STARVED, u->t + starved);
		k = u->done - before;
		streamed(u, SPYRE_BLOCKED, t, k * cost, k * words);
		for (k = 0; k < nin; k++)
			wake_writer(sim, c, u->corelet, num[k]);
		if (out)
			wake_reader(sim, i->a == SPYRE_OPND_FIFO(SPYRE_FIFO_RING) ? c->ring_next[u->corelet] : c,
				    u->corelet, i->a - 0x20u);
	}
	return ok;
}

/* --- Units ---------------------------------------------------------------------------------- */

static void check(struct sim *sim)
{
	if (soc_checkpoint(sim->soc, 0))
		sim->cancelled = true;
	if (!sim->patient && sim->steps > PATIENCE)
		sim->impatient = true;
}

static void run_tunit(struct sim *sim, struct tunit *u)
{
	struct spyre_time_probe *p;
	uint64_t entry = u->t;
	bool ok;

	u->waits = 0;
	if (u->index >= PORT0) {
		t_port(sim, u);
		return;
	}
	for (;;) {
		const struct job_insn *i = &u->s.insns[u->s.pc];

		if (++sim->steps > sim->next_check) {
			check(sim);
			sim->next_check = sim->steps + STEPS_CHECK;
			if (sim->cancelled || sim->impatient)
				return;
		}
		if (u->t > sim->limit) {
			u->state = UNIT_FAILED;
			return;
		}
		for (p = u->probes; p; p = p->next)
			if (p->time == UINT64_MAX && p->ordinal <= u->s.ordinal)
				p->time = u->t;
		if (i->op == SPYRE_OP_MVLOOPCNT && i->flat) {
			uint64_t n = i->c ? u->s.reg[i->b] : (uint32_t)i->imm, len = i->end - u->s.pc;

			/* What is over the limit anyway need not be exact. */
			work(u, CYCLE + (n > (sim->limit >> TICK_SHIFT) / len ? sim->limit : n * len * CYCLE));
			seq_control(&u->s, i);
			continue;
		}
		if (seq_control(&u->s, i)) {
			work(u, CYCLE);
			continue;
		}
		switch (i->op) {
		case SPYRE_OP_RETURN:
			if (u->kind == SPYRE_UNIT_PT && u->core->nldw[u->corelet]) {
				block(u, SPYRE_WAIT_TILE, u->core->ldw[u->corelet][0].tile);
				return;
			}
			wait_until(u, SPYRE_BLOCKED, u->last);
			if (u->kind == SPYRE_UNIT_PT)
				wait_until(u, SPYRE_STARVED, u->core->u[PORT0 + u->corelet].t);
			u->state = UNIT_DONE;
			return;
		case SPYRE_OP_SYNC_SEND:
			if (!t_send_room(sim, u, i))
				return;
			ok = t_send(sim, u, i);
			break;
		case SPYRE_OP_SYNC_WAIT:
			ok = t_wait(u, i);
			break;
		case SPYRE_OP_L3_LDU:
		case SPYRE_OP_L3_LDM:
		case SPYRE_OP_L3_STU:
		case SPYRE_OP_L3_STC:
			/* Control took time: there may be an earlier request now. */
			if (u->t != entry) {
				wake(sim, u->core, u->index);
				return;
			}
			ok = t_l3(sim, u, i);
			break;
		case SPYRE_OP_LD:
			ok = stream_out(sim, u, i->d, i->n, sim->link, TIME_LX_CYCLES * CYCLE);
			break;
		case SPYRE_OP_ST:
			ok = stream_in(sim, u, i->d, i->n, sim->link);
			break;
		case SPYRE_OP_PT_LDW:
		case SPYRE_OP_PT_MM:
		case SPYRE_OP_PT_PSOUT:
		case SPYRE_OP_PT_PSIN:
			ok = t_pt(sim, u, i);
			break;
		default:
			ok = t_vec(sim, u, i);
			break;
		}
		if (!ok)
			return;
		if (i->op == SPYRE_OP_LD || i->op == SPYRE_OP_ST)
			u->s.reg[i->a] += (uint64_t)(int64_t)i->imm2;
		else if (i->op >= SPYRE_OP_L3_LDU && i->op <= SPYRE_OP_L3_STC) {
			u->s.reg[i->a] += (uint64_t)(int64_t)i->imm;
			u->s.reg[i->c] += (uint64_t)(int64_t)i->imm2;
		}
		u->done = 0;
		seq_next(&u->s, i);
		if (u->kind <= SPYRE_UNIT_L3SU) {
			wake(sim, u->core, u->index);
			return;
		}
	}
}

/*
 * Units inside the cores may run in any order: their times come from what they read. Those that share the
 * memory go one instruction at a time, earliest first, when all others wait; what they wake is later still.
 */
#define L3_UNITS (1u << SPYRE_UNIT_L3LU | 1u << SPYRE_UNIT_L3SU)

static void run(struct sim *sim)
{
	struct tcore *c, *best;
	uint64_t t;
	uint32_t r;
	unsigned int i, k, unit;

	for (;;) {
		if (sim->cancelled || sim->nomem || sim->impatient)
			return;
		if (sim->prefer) {
			struct tunit *u = sim->prefer;

			sim->prefer = NULL;
			u->core->ready &= ~(1u << u->index);
			if (u->state == UNIT_LIVE)
				run_tunit(sim, u);
			continue;
		}
		if (sim->nqueue) {
			c = sim->queue[sim->nqueue - 1];
			r = c->ready & ~L3_UNITS;
			if (!r) {
				sim->nqueue--;
				c->queued = false;
				continue;
			}
			c->ready &= ~(r & -r);
			if (c->u[__builtin_ctz(r)].state == UNIT_LIVE)
				run_tunit(sim, &c->u[__builtin_ctz(r)]);
			continue;
		}
		best = NULL;
		t = UINT64_MAX;
		unit = 0;
		for (i = 0; i < sim->ncores; i++) {
			c = &sim->core[i];
			for (k = SPYRE_UNIT_L3LU; k <= SPYRE_UNIT_L3SU; k++) {
				if (!(c->ready & 1u << k) || (c->u[k].t >= t && best))
					continue;
				best = c;
				unit = k;
				t = c->u[k].t;
			}
		}
		if (!best)
			return;
		best->ready &= ~(1u << unit);
		if (best->u[unit].state == UNIT_LIVE)
			run_tunit(sim, &best->u[unit]);
	}
}

/* --- Setting up ----------------------------------------------------------------------------- */

/* Takes out what an instruction adds to registers that no loop count comes from, and a stride: addresses only. */
static struct job_insn without_addresses(const struct job_insn *insn, uint16_t timed_regs)
{
	struct job_insn i = *insn;
	bool timed = i.a < SPYRE_REGS && timed_regs >> i.a & 1;

	switch (i.op) {
	case SPYRE_OP_MVREG:
	case SPYRE_OP_ADDREG:
	case SPYRE_OP_ADDIMM:
		if (!timed)
			i.imm = 0;
		break;
	case SPYRE_OP_LD:
	case SPYRE_OP_ST:
		i.imm = 0;
		if (!timed)
			i.imm2 = 0;
		break;
	case SPYRE_OP_L3_LDU:
	case SPYRE_OP_L3_LDM:
	case SPYRE_OP_L3_STU:
	case SPYRE_OP_L3_STC:
		if (!timed)
			i.imm = 0;
		if (!(timed_regs >> i.c & 1))
			i.imm2 = 0;
		break;
	}
	return i;
}

/* Programs that differ in addresses and in the numbers of multicast groups of equal size alone take the same time. */
static bool same_program(const struct job *job, const struct job_program *a, const struct job_program *b)
{
	uint32_t k;

	if (a == b)
		return true;
	if (a->count != b->count || a->timed_regs != b->timed_regs)
		return false;
	for (k = 0; k < a->count; k++) {
		struct job_insn x = without_addresses(&a->insns[k], a->timed_regs);
		struct job_insn y = without_addresses(&b->insns[k], b->timed_regs);

		if (x.op == SPYRE_OP_L3_LDM && y.op == SPYRE_OP_L3_LDM) {
			if (__builtin_popcount(job->groups[x.d]) != __builtin_popcount(job->groups[y.d]))
				return false;
			x.d = y.d = 0;
		}
		if (x.op != y.op || x.be != y.be || x.a != y.a || x.b != y.b || x.c != y.c || x.d != y.d ||
		    x.n != y.n || x.imm != y.imm || x.imm2 != y.imm2)
			return false;
	}
	return true;
}

static bool same_core(const struct sim *sim, unsigned int a, unsigned int b)
{
	unsigned int i, r;

	for (i = 0; i < JOB_CORE_UNITS; i++) {
		const struct job_unit *x = sim->job->unit[a][i], *y = sim->job->unit[b][i];
		struct seq sx, sy;

		if (!x != !y)
			return false;
		if (!x)
			continue;
		if (!same_program(sim->job, x->program, y->program))
			return false;
		if (!x->program->timed_regs)
			continue;
		seq_init(&sx, x, sim->soc->symbols);
		seq_init(&sy, y, sim->soc->symbols);
		for (r = 0; r < SPYRE_REGS; r++)
			if ((x->program->timed_regs & 1u << r) && sx.reg[r] != sy.reg[r])
				return false;
	}
	return true;
}

/*
 * Can a core of each kind stand for its like? Then what it meets must look the same from each of them:
 * multicast groups within its kind, and ring and far sends only if all cores are of one kind, sends going to all.
 */
static bool can_stand(const struct sim *sim, const uint8_t *kind, unsigned int kinds)
{
	const struct job *job = sim->job;
	uint32_t m;
	unsigned int i, g;

	for (i = 0; i < job->nunits; i++) {
		const struct job_program *p = job->units[i].program;

		if (p->ring && kinds > 1)
			return false;
		if (p->far_sends && (kinds > 1 || p->far_sends != job->core_mask || p->mixed_sends))
			return false;
		for (g = 0; g < SPYRE_JOB_GROUPS; g++)
			for (m = p->groups & 1u << g ? job->groups[g] : 0; m; m &= m - 1)
				if (kind[__builtin_ctz(m)] != kind[job->units[i].core])
					return false;
	}
	return true;
}

static void sim_free(struct sim *sim)
{
	unsigned int i, t;

	for (i = 0; sim->core && i < sim->ncores; i++) {
		for (t = 0; t < SPYRE_TAGS; t++)
			free(sim->core[i].tag[t].t);
		for (t = 0; t < T_UNITS; t++)
			free(sim->core[i].u[t].rec);
	}
	free(sim->core);
}

static bool sim_init(struct sim *sim, struct spyre_soc *soc)
{
	const struct job *job = soc->job;
	uint8_t kind[32] = { 0 };
	unsigned int ids[32], n = 0, kinds = 0, i, j, x, k;
	uint64_t cap = soc->cfg.watchdog ? soc->cfg.watchdog : 1ull << 40;
	struct tcore *c;

	memset(sim, 0, sizeof(*sim));
	sim->soc = soc;
	sim->job = job;
	if (job->watchdog && job->watchdog < cap)
		cap = job->watchdog;
	if (cap > 1ull << 48)
		cap = 1ull << 48;
	sim->limit = cap << TICK_SHIFT;
	sim->link = (soc->cfg.core_hz * CYCLE + TIME_LINK_HZ / 2) / TIME_LINK_HZ;
	sim->mni_in = SPYRE_STICK * (uint64_t)soc->cfg.core_hz * CYCLE / TIME_MNI_IN_BYTES_S;
	sim->mni_out = SPYRE_STICK * (uint64_t)soc->cfg.core_hz * CYCLE / TIME_MNI_OUT_BYTES_S;
	sim->beat = max64(CYCLE, (soc->cfg.core_hz * CYCLE + TIME_PT_BEAT_HZ / 2) / TIME_PT_BEAT_HZ);
	sim->hmi = SPYRE_STICK * (uint64_t)soc->cfg.core_hz * CYCLE / TIME_HMI_BYTES_S;
	sim->port = SPYRE_STICK * (uint64_t)soc->cfg.core_hz * CYCLE / TIME_PORT_BYTES_S;
	sim->load_latency = ticks_ns(soc, TIME_LOAD_NS);
	sim->store_latency = ticks_ns(soc, TIME_STORE_NS);

	for (i = 0; i < 32; i++)
		if (job->core_mask & 1u << i)
			ids[n++] = i;
	for (i = 0; i < n; i++) {
		for (j = 0; j < i && !same_core(sim, ids[i], ids[j]); j++)
			;
		kind[ids[i]] = j == i ? (uint8_t)kinds++ : kind[ids[j]];
	}
	sim->alone = can_stand(sim, kind, kinds);
	sim->ncores = sim->alone ? kinds : n;
	sim->core = calloc(sim->ncores, sizeof(*sim->core));
	if (!sim->core)
		return false;
	for (i = 0; i < n; i++) {
		c = &sim->core[sim->alone ? kind[ids[i]] : i];
		sim->of[ids[i]] = c;
		c->mates |= 1u << ids[i];
		c->half[ids[i] / 16]++;
		if (c->weight++)
			continue;
		c->id = ids[i];
		memset(c->tile_fmt, 0xff, sizeof(c->tile_fmt));
		for (k = 0; k < T_UNITS; k++) {
			const struct job_unit *ju = k < PORT0 ? job->unit[c->id][k] :
				job->unit[c->id][job_unit_index(SPYRE_UNIT_PT, k - PORT0)];
			struct tunit *u = &c->u[k];

			u->core = c;
			u->index = (uint8_t)k;
			u->kind = (uint8_t)(k < PORT0 ? job_unit_kind(k) : SPYRE_UNIT_PT);
			u->corelet = (uint8_t)(k < PORT0 ? job_unit_corelet(k) : k - PORT0);
			if (!ju)
				continue;
			u->program = ju->program;
			if (PROFILED && soc->profile->phases) {
				u->rec = malloc(sizeof(*u->rec) + soc->profile->phases * sizeof(u->rec->p[0]));
				if (!u->rec)
					return false;
				u->rec->grain = 0;
				u->rec->n = 0;
				u->rec->max = soc->profile->phases;
			}
			u->state = UNIT_LIVE;
			seq_init(&u->s, ju, soc->symbols);
			wake(sim, c, k);
		}
	}
	for (i = 0; i < n; i++) {
		c = sim->of[ids[i]];
		for (x = 0; x < 2; x++) {
			/* Corelet 0 sends to the next core, corelet 1 to the previous one. */
			c->ring_next[x] = sim->alone ? c : sim->of[ids[(i + (x ? n - 1 : 1)) % n]];
			c->ring_prev[x] = sim->alone ? c : sim->of[ids[(i + (x ? 1 : n - 1)) % n]];
		}
	}
	for (i = 0; i < SPYRE_JOB_GROUPS; i++)
		sim->group[i].members = job->groups[i];
	return true;
}

/* --- Verdict -------------------------------------------------------------------------------- */

/*
 * Least core cycles a program can take, as far as its counts are known before it runs: those of registers
 * that it never writes.
 */
static uint64_t least_cycles(const struct tunit *u, const uint64_t *symbols, const struct job_unit *ju)
{
	const struct job_program *p = u->program;
	uint64_t mult[SPYRE_LOOPS + 1] = { 1 }, sum = 0, one;
	unsigned int depth = 0, k;
	uint16_t written = 0;
	struct seq s;
	uint32_t pc;

	seq_init(&s, ju, symbols);
	for (pc = 0; pc < p->count; pc++)
		if (p->insns[pc].op >= SPYRE_OP_ADDIMM && p->insns[pc].op <= SPYRE_OP_MVREG)
			written |= (uint16_t)(1u << p->insns[pc].a);
	for (pc = 0; pc < p->count; pc++) {
		const struct job_insn *i = &p->insns[pc];
		uint64_t n;

		one = i->op == SPYRE_OP_RETURN ? 0 : i->op == SPYRE_OP_PT_MM ? i->n * (uint64_t)TIME_MM_BEATS :
		      i->op >= SPYRE_OP_LD && i->n ? i->n : 1;
		if (__builtin_mul_overflow(one, mult[depth], &one) || __builtin_add_overflow(sum, one, &sum))
			return UINT64_MAX;
		if (i->op == SPYRE_OP_MVLOOPCNT) {
			n = !i->c ? (uint32_t)i->imm : written & 1u << i->b ? 0 : s.reg[i->b];
			if (__builtin_mul_overflow(n, mult[depth], &mult[depth + 1]))
				mult[depth + 1] = UINT64_MAX;
			depth++;
		}
		for (k = 0; k < i->be; k++)
			depth--;
	}
	return sum;
}

static bool add_stuck(struct spyre_soc *soc, const struct tunit *u)
{
	uint32_t m;
	void *p;

	for (m = u->core->mates; m; m &= m - 1) {
		p = realloc(soc->stuck, (soc->nstuck + 1) * sizeof(*soc->stuck));
		if (!p)
			return false;
		soc->stuck = p;
		soc->stuck[soc->nstuck++] = (struct spyre_stuck){
			.core = (uint8_t)__builtin_ctz(m), .unit = (uint8_t)(u->kind | u->corelet << 7),
			.waits = u->waits, .number = u->number, .pc = u->s.pc,
		};
	}
	return true;
}

static int cmp_stuck(const void *x, const void *y)
{
	const struct spyre_stuck *a = x, *b = y;
	unsigned int ka = a->core << 8 | (a->unit & 0x7fu) << 1 | a->unit >> 7;
	unsigned int kb = b->core << 8 | (b->unit & 0x7fu) << 1 | b->unit >> 7;

	return ka < kb ? -1 : ka > kb;
}

static bool verdict_fail(struct sim *sim, struct spyre_rb *rb, const struct tunit *u, enum spyre_status status,
			 enum spyre_prog_err err)
{
	(void)sim;
	spyre_soc_fail(rb, status, err, u ? u->core->id : 0xffff,
		       u ? u->kind | (unsigned int)u->corelet << 8 : 0xffff, u ? u->s.pc : 0);
	return false;
}

/* Sent into a ring's FIFO: what the neighbour has got there. */
static uint64_t ring_words(const struct tcore *c, unsigned int corelet)
{
	return c->ring_next[corelet]->fifo[corelet][SPYRE_FIFO_RING].nw;
}

/* Traffic of one of the cores. */
static void get_links(const struct sim *sim, const struct tcore *c, struct spyre_link_counters link[SPYRE_LINKS])
{
	const uint64_t words[SPYRE_LINKS] = { c->in_words, c->out_words, ring_words(c, 0), ring_words(c, 1) };
	const uint64_t ticks[SPYRE_LINKS] = { sim->mni_in, sim->mni_out, sim->link, sim->link };
	unsigned int k;

	for (k = 0; k < SPYRE_LINKS; k++) {
		link[k].busy = words[k] * ticks[k];
		link[k].bytes = words[k] * SPYRE_STICK;
	}
}

#if PROFILED
static bool profile_unit(const struct tunit *u, bool phases, struct spyre_unit_profile *p)
{
	memcpy(p->spent, u->spent, sizeof(p->spent));
	p->bytes = u->bytes;
	p->end = u->t;
	if (!phases || !u->rec || !u->rec->n)
		return true;
	p->phase = malloc(u->rec->n * sizeof(*p->phase));
	if (!p->phase)
		return false;
	memcpy(p->phase, u->rec->p, u->rec->n * sizeof(*p->phase));
	p->nphases = u->rec->n;
	return true;
}

static bool profile(struct sim *sim, const struct spyre_soc_time *time, uint64_t memory_busy)
{
	const struct spyre_soc_config *cfg = &sim->soc->cfg;
	struct spyre_soc_profile *p = sim->soc->profile;
	unsigned int i, k;
	uint32_t m;

	p->core_mask = sim->job->core_mask;
	p->total = time->cycles * CYCLE;
	p->overhead = ticks_ns(sim->soc, TIME_JOB_NS);
	p->tail = sim->tail;
	p->memory_busy = memory_busy;
	memcpy(p->port_busy, sim->port_busy, sizeof(p->port_busy));
	p->memory_bytes_s = TIME_HMI_BYTES_S;
	p->pt_beats = TIME_MM_BEATS;
	p->core_hz = cfg->core_hz;
	p->bursts_in_flight[0] = TIME_BURSTS_IN_FLIGHT;
	p->bursts_in_flight[1] = TIME_MULTICASTS_IN_FLIGHT;
	for (m = p->core_mask; m; m &= m - 1) {
		const struct tcore *c = sim->of[__builtin_ctz(m)];
		struct spyre_core_profile *q = &p->core[__builtin_ctz(m)];
		struct spyre_link_counters link[SPYRE_LINKS];
		bool first = c->id == (unsigned int)__builtin_ctz(m);

		q->alike = c->mates;
		for (k = 0; k < T_UNITS; k++)
			if (c->u[k].state != UNIT_NONE && !profile_unit(&c->u[k], first, &q->unit[k])) {
				spyre_soc_profile_free(p);
				return false;
			}
		get_links(sim, c, link);
		q->in_bytes = link[SPYRE_LINK_IN].bytes;
		q->out_bytes = link[SPYRE_LINK_OUT].bytes;
		q->in_busy = link[SPYRE_LINK_IN].busy;
		q->out_busy = link[SPYRE_LINK_OUT].busy;
		for (i = 0; i < 2; i++) {
			q->ring_bytes[i] = link[SPYRE_LINK_CW + i].bytes;
			q->ring_busy[i] = link[SPYRE_LINK_CW + i].busy;
		}
		memcpy(q->bursts, c->bursts, sizeof(q->bursts));
		memcpy(q->burst_time, c->burst_time, sizeof(q->burst_time));
		q->macs = c->macs;
		q->pt_words = c->pt_words;
	}
	return true;
}

#else
/* A load port is there with every PT. */
static bool took_part(const struct tunit *u)
{
	return u->state != UNIT_NONE && (u->index < PORT0 || u->bytes);
}

static struct counts *keep(const struct sim *sim, uint64_t memory_busy)
{
	unsigned int i, k, n = 0;
	struct counts *counts;
	struct unit_counts *q;
	size_t bytes;

	for (i = 0; i < sim->ncores; i++)
		for (k = 0; k < T_UNITS; k++)
			n += took_part(&sim->core[i].u[k]);
	bytes = sizeof(*counts) + sim->ncores * sizeof(counts->core[0]) + n * sizeof(*q);
	counts = malloc(bytes);
	if (!counts)
		return NULL;
	q = (struct unit_counts *)&counts->core[sim->ncores];
	counts->bytes = bytes;
	counts->ncores = sim->ncores;
	counts->memory_busy = memory_busy;
	for (i = 0; i < 2; i++) {
		counts->port[i].busy = sim->port_busy[i];
		counts->port[i].bytes = sim->port_busy[i] / sim->port * SPYRE_STICK;
	}
	for (i = 0; i < sim->ncores; i++) {
		const struct tcore *c = &sim->core[i];
		struct core_counts *to = &counts->core[i];

		*to = (struct core_counts){ .alike = c->mates, .macs = c->macs, .unit = q };
		get_links(sim, c, to->link);
		for (k = 0; k < T_UNITS; k++) {
			const struct tunit *u = &c->u[k];

			if (!took_part(u))
				continue;
			to->units |= 1u << k;
			memcpy(q->spent, u->spent, sizeof(q->spent));
			q->bytes = u->bytes;
			/* The ordinal leaves out the last one, RETURN. */
			q->insns = k < PORT0 ? u->s.ordinal + 1 : 0;
			q++;
		}
	}
	return counts;
}
#endif

static bool verdict(struct sim *sim, struct spyre_soc_time *time, struct counts **counts,
		    struct spyre_rb *rb)
{
	const struct tunit *bad = NULL, *late = NULL;
	uint64_t end = 0, rd = 0, wr = 0, macs = 0, low, ns;
	struct spyre_soc *soc = sim->soc;
	unsigned int i, k, f;
	bool stuck = false;

	if (sim->cancelled || sim->nomem)
		return verdict_fail(sim, rb, NULL, sim->nomem ? SPYRE_ERR_INTERNAL : SPYRE_ERR_CANCELLED, 0);
	for (i = 0; i < sim->ncores; i++) {
		struct tcore *c = &sim->core[i];

		for (k = 0; k < JOB_CORE_UNITS; k++) {
			struct tunit *u = &c->u[k];

			if (u->state == UNIT_NONE)
				continue;
			end = max64(end, max64(u->t, u->last));
			/* Units come in the order of their numbers: on equal times the first one stays. */
			if (u->err && (!bad || u->t < bad->t))
				bad = u;
			if (u->state == UNIT_FAILED && !u->err && (!late || u->t < late->t))
				late = u;
			stuck |= u->state == UNIT_LIVE;
		}
		rd += c->rd * c->weight + c->mrd;
		wr += c->wr * c->weight;
		macs += c->macs * c->weight;
	}
	if (bad)
		return verdict_fail(sim, rb, bad, SPYRE_ERR_PROGRAM, bad->err);
	if (late)
		return verdict_fail(sim, rb, late, SPYRE_ERR_WATCHDOG, 0);
	if (stuck) {
		for (i = 0; i < sim->ncores; i++)
			for (k = 0; k < JOB_CORE_UNITS; k++)
				if (sim->core[i].u[k].state == UNIT_LIVE && !add_stuck(soc, &sim->core[i].u[k]))
					return verdict_fail(sim, rb, NULL, SPYRE_ERR_INTERNAL, 0);
		qsort(soc->stuck, soc->nstuck, sizeof(*soc->stuck), cmp_stuck);
		verdict_fail(sim, rb, NULL, SPYRE_ERR_DEADLOCK, 0);
		rb->nstuck = (uint32_t)soc->nstuck;
		for (i = 0; i < 3 && i < soc->nstuck; i++)
			rb->stuck[i] = soc->stuck[i];
		return false;
	}
	for (i = 0; i < sim->ncores; i++) {
		struct tcore *c = &sim->core[i];

		for (k = 0; k < 2; k++)
			for (f = 0; f < SPYRE_FIFOS; f++)
				if (c->fifo[k][f].nw != c->fifo[k][f].nr)
					return verdict_fail(sim, rb,
							    &c->u[job_unit_index(isa_fifos[f].reader, k)],
							    SPYRE_ERR_PROGRAM, SPYRE_PE_FIFO_LEFT);
		for (k = 0; k < SPYRE_TAGS; k++)
			if (c->tag[k].n) {
				f = sim->job->tag_waiter[c->id][k];
				verdict_fail(sim, rb, f == 0xff ? NULL : &c->u[f], SPYRE_ERR_PROGRAM,
					     SPYRE_PE_FIFO_LEFT);
				rb->err_core = (uint16_t)c->id;
				return false;
			}
	}
	end += sim->tail;
	/* No job is faster than its bytes through the memory, with the turnaround between reading and writing. */
	low = rd < wr ? rd : wr;
	ns = (rd + wr) / (TIME_HMI_BYTES_S / 1000000000) + low * TIME_TURN_FS_BYTE / 1000000;
	end = max64(end, ticks_ns(soc, ns));
	time->cycles = ((end + ticks_ns(soc, TIME_JOB_NS)) >> TICK_SHIFT) + 1;
	time->rd_bytes = rd;
	time->wr_bytes = wr;
	time->pt_macs = macs;
	if (end > sim->limit)
		return verdict_fail(sim, rb, NULL, SPYRE_ERR_WATCHDOG, 0);
#if PROFILED
	(void)counts;
	if (!profile(sim, time, ticks_ns(soc, ns)))
		return verdict_fail(sim, rb, NULL, SPYRE_ERR_INTERNAL, 0);
#else
	*counts = keep(sim, ticks_ns(soc, ns));
	if (!*counts)
		return verdict_fail(sim, rb, NULL, SPYRE_ERR_INTERNAL, 0);
#endif
	return true;
}

bool TIME_JOB(struct spyre_soc *soc, struct spyre_soc_time *time, struct counts **counts,
	      struct spyre_rb *rb)
{
	struct sim sim;
	unsigned int i, k;
	bool ok = false;

	soc->nstuck = 0;
	if (!sim_init(&sim, soc)) {
		sim_free(&sim);
		spyre_soc_fail(rb, SPYRE_ERR_INTERNAL, SPYRE_PE_NONE, 0xffff, 0xffff, 0);
		return false;
	}
	run(&sim);
	/* A long job: is there a unit that cannot end within the budget? Then it need not be watched. */
	for (i = 0; sim.impatient && i < sim.ncores; i++) {
		for (k = 0; k < JOB_CORE_UNITS; k++) {
			struct tunit *u = &sim.core[i].u[k];

			if (u->state == UNIT_LIVE &&
			    least_cycles(u, soc->symbols, soc->job->unit[sim.core[i].id][k]) >
			    sim.limit >> TICK_SHIFT) {
				verdict_fail(&sim, rb, u, SPYRE_ERR_WATCHDOG, 0);
				goto out;
			}
		}
	}
	if (sim.impatient) {
		sim.impatient = false;
		/* No more than one look: from here on it takes as long as it takes, and can be cancelled. */
		sim.patient = true;
		for (i = 0; i < sim.ncores; i++)
			for (k = 0; k < T_UNITS; k++)
				if (sim.core[i].u[k].state == UNIT_LIVE)
					wake(&sim, &sim.core[i], k);
		run(&sim);
	}
	ok = verdict(&sim, time, counts, rb);
out:
	sim_free(&sim);
	return ok;
}

#if !PROFILED
void spyre_time_probes(struct spyre_soc *soc, struct spyre_time_probe *probes, unsigned int n)
{
	struct sim sim;
	unsigned int i;

	for (i = 0; i < n; i++)
		probes[i].time = UINT64_MAX;
	if (!sim_init(&sim, soc)) {
		sim_free(&sim);
		return;
	}
	for (i = 0; i < n; i++) {
		struct tunit *u = &sim.of[probes[i].core]->u[probes[i].unit];

		probes[i].next = u->probes;
		u->probes = &probes[i];
	}
	sim.patient = true;
	run(&sim);
	sim_free(&sim);
}
#endif
