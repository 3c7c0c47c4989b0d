/* SPDX-License-Identifier: MIT */
/*
 * The race check: steps through a job without its data and looks for two accesses to a stick of LX, L0 or memory, one
 * of them a write, that nothing orders. What orders: a unit's own program, a word of a FIFO (its writer's accesses
 * before it come before its reader's after it), and a tag (what comes before a send comes before the wait that needs
 * that send). Room in a FIFO and the meeting of a multicast order nothing: the functional pass has deeper FIFOs, and
 * its members load each for itself.
 *
 * Each unit has a vector clock over all units of the job. It is in two parts, as most of what a unit learns comes from
 * its own core: the components of that core by value, and the rest shared between all who know the same.
 *
 * A tag with one sender is simple: a wait that brings what was consumed to C comes after the C-th send. With several,
 * any of them may have sent the C that let it go, so the i-th send of A comes before the wait only if fewer than C
 * sends can happen without it: those that come neither after that send nor after the wait. Which ones come after is
 * what is being computed, so it is computed in rounds. The first takes the first C that arrive, which is too much
 * order; each round can only take some away, and the last changes nothing.
 */
#include <stdlib.h>

#include "soc_int.h"

#define DEPTH		64u		/* of FIFOs; any number from the card's own depth on */
#define PORT0		JOB_CORE_UNITS	/* load ports of the two PTs follow the units */
#define R_UNITS		(JOB_CORE_UNITS + 2)
#define ALL_UNITS	(32 * JOB_CORE_UNITS)
#define L0_PLACES	(SPYRE_L0_SIZE / SPYRE_STICK)
#define LX_PLACES	(SPYRE_LX_SIZE / SPYRE_STICK)
/* Memory is looked at in pages, and of those that the job writes so many in a pass: what a check needs is bounded. */
#define PAGE_SHIFT	21
#define PAGE_PLACES	((1u << PAGE_SHIFT) / SPYRE_STICK)
#define PAGES		(SPYRE_DMVA_SIZE >> PAGE_SHIFT)
#define WINDOW		32u
#define CHECK_STEPS	4096u		/* between two checkpoints */
#define ROUNDS		16u
/* Of tags with several senders. Beyond either, what the last round took stands: too much order. */
#define LOG_MAX		(16u << 20)	/* numbers kept of all sends in a round: 64 MB, a few times that in all */
#define WORK_MAX	(1ull << 31)	/* steps of finding what waits come after: some seconds */
/* Beyond these the job is too large to check. */
#define SENDS_MAX	(1u << 20)	/* outstanding in a job */
#define FARS_MAX	(1u << 16)	/* contents of far parts, known to units, words and sends: 250 MB */
#define TAG_MOST	65535u		/* and of one tag on the card: the timing pass refuses jobs with more */
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

/* A stick of LX or L0. Readers: L3SU, LXLU of both corelets; L0LU. Reads are those since the write. */
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
	bool settled;		/* counts of .take are final: there is no log of this round, or no time for it */
	struct sender *from;
	uint64_t need;		/* consumed */
	/* Arrival order of the sends not consumed: number in from, a ring. */
	uint16_t *order;
	uint32_t ohead, ocap;
	/* The log: of waits, and of sends in their order of arrival. */
	uint64_t *wait_at, *wait_need;
	uint32_t nwaits, wcap;
	uint16_t *who;
	uint32_t *knows;	/* nfrom + 1 each: waits of this tag known, sends of each sender known */
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

/* --- Clocks --------------------------------------------------------------------------------- */

static uint16_t unit_number(const struct runit *u)
{
	return (uint16_t)(u->core * JOB_CORE_UNITS + u->index);
}

static struct access now(const struct runit *u)
{
	return (struct access){ .at = u->clk.near[u->index], .pc = u->s.pc, .unit = unit_number(u) };
}

/* The check ends here: what u does needs more than is kept. */
static void too_large(struct races *r, const struct runit *u)
{
	const struct runit *runs = u;

	/* A load port runs no program. */
	if (u->index >= PORT0)
		runs = &r->core[u->core].u[job_unit_index(SPYRE_UNIT_PT, u->index - PORT0)];
	if (!r->found && !r->large)
		r->a = now(runs);
	r->large = true;
}

static void far_put(struct races *r, struct far *f)
{
	if (!f || --f->refs)
		return;
	f->c[0][0] = (uintptr_t)r->spare;
	r->spare = f;
	r->fars--;
}

static struct far *far_new(struct races *r)
{
	struct far *f = r->spare;

	if (f)
		r->spare = (struct far *)(uintptr_t)f->c[0][0];
	else
		f = malloc(sizeof(*f));
	if (!f) {
		r->nomem = true;
		return NULL;
	}
	f->refs = 1;
	r->fars++;
	return f;
}

static struct far *far_get(struct far *f)
{
	if (f)
		f->refs++;
	return f;
}

static void clock_set(struct races *r, struct clock *to, const struct clock *from)
{
	struct far *old = to->far;

	memcpy(to->near, from->near, sizeof(to->near));
	to->far = far_get(from->far);
	far_put(r, old);
}

static void clock_drop(struct races *r, struct clock *c)
{
	far_put(r, c->far);
	c->far = NULL;
	memset(c->near, 0, sizeof(c->near));
}

/* u's far part, for u alone to change. NULL: no memory, or too large. */
static struct far *far_own(struct races *r, struct runit *u)
{
	struct far *f = u->clk.far, *n;

	if (f && f->refs == 1) {
		f->id = ++r->ids;
		return f;
	}
	if (r->fars == FARS_MAX) {
		too_large(r, u);
		return NULL;
	}
	n = far_new(r);
	if (!n)
		return NULL;
	if (f)
		memcpy(n->c, f->c, sizeof(n->c));
	else
		memset(n->c, 0, sizeof(n->c));
	n->id = ++r->ids;
	far_put(r, f);
	u->clk.far = n;
	return n;
}

static void join_far(struct races *r, struct runit *u, struct far *f)
{
	const uint64_t *a, *b = &f->c[0][0];
	bool more = false, less = false;
	struct far *to = u->clk.far;
	unsigned int i;

	if (to == f)
		return;
	for (i = 0; i < KNOWN_FARS; i++)
		if (u->known[i] == f->id)
			return;
	u->known[u->nknown++ % KNOWN_FARS] = f->id;
	if (!to) {
		u->clk.far = far_get(f);
		return;
	}
	a = &to->c[0][0];
	for (i = 0; i < ALL_UNITS; i++) {
		more |= a[i] > b[i];
		less |= a[i] < b[i];
	}
	if (!less)
		return;
	if (!more) {
		u->clk.far = far_get(f);
		far_put(r, to);
		return;
	}
	to = far_own(r, u);
	for (i = 0; to && i < ALL_UNITS; i++)
		if ((&to->c[0][0])[i] < b[i])
			(&to->c[0][0])[i] = b[i];
}

/* u learns what a unit of another core, or of its own, knew. */
static void join(struct races *r, struct runit *u, unsigned int core, const struct clock *c)
{
	unsigned int i;
	struct far *to;

	if (c->far)
		join_far(r, u, c->far);
	if (core == u->core) {
		for (i = 0; i < JOB_CORE_UNITS; i++)
			if (u->clk.near[i] < c->near[i])
				u->clk.near[i] = c->near[i];
		return;
	}
	for (i = 0; c->far && i < JOB_CORE_UNITS; i++)
		if (u->clk.near[i] < c->far->c[u->core][i])
			u->clk.near[i] = c->far->c[u->core][i];
	for (i = 0; i < JOB_CORE_UNITS; i++)
		if (!u->clk.far || u->clk.far->c[core][i] < c->near[i])
			break;
	if (i == JOB_CORE_UNITS)
		return;
	to = far_own(r, u);
	for (; to && i < JOB_CORE_UNITS; i++)
		if (to->c[core][i] < c->near[i])
			to->c[core][i] = c->near[i];
}

/* What a clock of a unit of core says of a unit. */
static uint64_t knows(const struct clock *c, unsigned int core, unsigned int unit)
{
	if (unit / JOB_CORE_UNITS == core)
		return c->near[unit % JOB_CORE_UNITS];
	return c->far ? c->far->c[unit / JOB_CORE_UNITS][unit % JOB_CORE_UNITS] : 0;
}

/* --- Accesses ------------------------------------------------------------------------------- */

static bool ordered(const struct runit *u, const struct access *a)
{
	return !a->at || knows(&u->clk, u->core, a->unit) >= a->at;
}

static void race(struct races *r, const struct runit *u, bool writes, const struct access *other, bool other_writes,
		 enum spyre_race_place place, uint64_t addr)
{
	if (r->found)
		return;
	r->found = true;
	r->a = now(u);
	r->b = *other;
	r->place = (uint8_t)place;
	r->writes = (writes ? SPYRE_RACE_WRITES : 0) | (other_writes ? SPYRE_RACE_OTHER_WRITES : 0);
	r->addr = addr;
}

static void touch_local(struct races *r, struct runit *u, struct local *l, bool write, enum spyre_race_place place,
			uint64_t addr)
{
	unsigned int k;

	if (!ordered(u, &l->w))
		race(r, u, write, &l->w, true, place, addr);
	if (!write) {
		l->r[place == SPYRE_RACE_L0 || u->kind == SPYRE_UNIT_L3SU ? 0 : 1 + u->corelet] = now(u);
		return;
	}
	for (k = 0; k < 3; k++) {
		if (!ordered(u, &l->r[k]))
			race(r, u, true, &l->r[k], false, place, addr);
		l->r[k].at = 0;
	}
	l->w = now(u);
}

static void touch_lx(struct races *r, struct runit *u, unsigned int core, uint64_t addr, bool write)
{
	if (r->local)
		touch_local(r, u, &r->core[core].lx[addr / SPYRE_STICK], write, SPYRE_RACE_LX,
			    (uint64_t)core << 24 | addr);
}

static struct access *many_new(struct races *r)
{
	struct access *m = r->many;

	if (m)
		memcpy(&r->many, m, sizeof(r->many));
	else
		m = malloc(32 * sizeof(*m));
	if (!m) {
		r->nomem = true;
		return NULL;
	}
	memset(m, 0, 32 * sizeof(*m));
	return m;
}

static void many_put(struct races *r, struct access *m)
{
	memcpy(m, &r->many, sizeof(r->many));
	r->many = m;
}

/* Memory is read by L3LUs alone, one of each core, and written by L3SUs. */
static void touch_memory(struct races *r, struct runit *u, uint64_t addr, bool write)
{
	struct place *p = r->check ? r->page[addr >> PAGE_SHIFT] : NULL;
	unsigned int at = (unsigned int)(addr / SPYRE_STICK % PAGE_PLACES), k;

	/* Reads of what is not written need no place. */
	if (!p || !(r->written[addr >> PAGE_SHIFT][at / 64] >> at % 64 & 1))
		return;
	p += at;
	if (!ordered(u, &p->w))
		race(r, u, write, &p->w, true, SPYRE_RACE_MEMORY, addr);
	if (write) {
		if (!ordered(u, &p->r))
			race(r, u, true, &p->r, false, SPYRE_RACE_MEMORY, addr);
		for (k = 0; p->many && k < 32; k++)
			if (!ordered(u, &p->many[k]))
				race(r, u, true, &p->many[k], false, SPYRE_RACE_MEMORY, addr);
		if (p->many)
			many_put(r, p->many);
		p->many = NULL;
		p->r.at = 0;
		p->w = now(u);
	} else if (p->many) {
		p->many[u->core] = now(u);
	} else if (ordered(u, &p->r)) {
		p->r = now(u);
	} else {
		p->many = many_new(r);
		if (!p->many)
			return;
		p->many[p->r.unit / JOB_CORE_UNITS] = p->r;
		p->many[u->core] = now(u);
		p->r.at = 0;
	}
}

/* --- FIFOs ---------------------------------------------------------------------------------- */

static void wake(struct races *r, struct rcore *c, unsigned int index)
{
	c->ready |= 1u << index;
	if (!c->queued) {
		c->queued = true;
		r->queue[(r->qhead + r->nqueue++) % 32] = c;
	}
}

/* What u does from now on is not before what it hands on now. */
static void tick(struct runit *u)
{
	u->clk.near[u->index]++;
}

/* The FIFO that a unit of c writes. */
static struct rcore *fifo_core(struct rcore *c, unsigned int corelet, unsigned int fifo)
{
	return fifo == SPYRE_FIFO_RING ? c->next[corelet] : c;
}

static void push(struct races *r, struct rcore *c, struct runit *u, unsigned int fifo, uint32_t n)
{
	struct rcore *to = fifo_core(c, u->corelet, fifo);
	struct wfifo *f = &to->fifo[u->corelet][fifo];

	if (!f->w)
		f->w = calloc(DEPTH, sizeof(*f->w));
	if (!f->w) {
		r->nomem = true;
		return;
	}
	for (; n; n--)
		clock_set(r, &f->w[(f->head + f->count++) % DEPTH], &u->clk);
	tick(u);
	wake(r, to, isa_fifos[fifo].load_port ? PORT0 + u->corelet :
		    job_unit_index(isa_fifos[fifo].reader, u->corelet));
}

/* A writer knows all that it knew at its words before: the last one says it all. */
static void pop(struct races *r, struct rcore *c, struct runit *u, unsigned int fifo, uint32_t n)
{
	struct wfifo *f = &c->fifo[u->corelet][fifo];
	struct rcore *from = fifo == SPYRE_FIFO_RING ? c->prev[u->corelet] : c;

	join(r, u, from->id, &f->w[(f->head + n - 1) % DEPTH]);
	f->head = (f->head + n) % DEPTH;
	f->count -= n;
	wake(r, from, job_unit_index(isa_fifos[fifo].writer, u->corelet));
}

static uint32_t fifo_has(const struct rcore *c, const struct runit *u, unsigned int fifo)
{
	return c->fifo[u->corelet][fifo].count;
}

static uint32_t fifo_room(struct rcore *c, const struct runit *u, unsigned int fifo)
{
	return DEPTH - fifo_core(c, u->corelet, fifo)->fifo[u->corelet][fifo].count;
}

/* --- Tags ----------------------------------------------------------------------------------- */

/* Room for one more of size bytes; NULL: no memory, the old array stands. */
static void *grown(struct races *r, void *p, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t more = *cap ? *cap * 2 : 16;
	void *q;

	if (n < *cap)
		return p;
	q = realloc(p, more * size);
	if (!q) {
		r->nomem = true;
		return NULL;
	}
	*cap = more;
	return q;
}

#define GROW(r, p, n, cap)								\
	({										\
		void *grown_ = grown(r, p, n, cap, sizeof(*(p)));			\
		if (grown_)								\
			(p) = grown_;							\
		grown_ != NULL;								\
	})

/* Numbers of ascending a that are at most v. */
static uint32_t upto(const uint64_t *a, uint32_t n, uint64_t v)
{
	uint32_t lo = 0;

	while (lo < n) {
		uint32_t mid = lo + (n - lo) / 2;

		if (a[mid] <= v)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

static void log_send(struct races *r, struct wtag *t, const struct runit *u, unsigned int from, unsigned int waiter)
{
	struct sender *s = &t->from[from];
	uint32_t k, *kn;

	if (r->logged + t->nfrom + 1 > LOG_MAX) {
		t->logged = false;
		t->settled = true;
		return;
	}
	r->logged += t->nfrom + 1u;
	if (!GROW(r, s->at, s->nat, &s->atcap))
		return;
	s->at[s->nat++] = u->clk.near[u->index];
	if (t->nsends == t->scap) {
		uint32_t cap = t->scap;

		if (!GROW(r, t->who, t->nsends, &cap))
			return;
		kn = realloc(t->knows, (size_t)cap * (t->nfrom + 1) * sizeof(*kn));
		if (!kn) {
			r->nomem = true;
			return;
		}
		t->knows = kn;
		t->scap = cap;
	}
	t->who[t->nsends] = (uint16_t)from;
	kn = t->knows + (size_t)t->nsends++ * (t->nfrom + 1);
	*kn++ = upto(t->wait_at, t->nwaits, knows(&u->clk, u->core, waiter));
	for (k = 0; k < t->nfrom; k++)
		*kn++ = upto(t->from[k].at, t->from[k].nat, knows(&u->clk, u->core, t->from[k].unit));
}

/* A ring of pointers twice as large. */
static bool widen(struct races *r, struct sender *s)
{
	uint32_t cap = s->cap ? s->cap * 2 : 8, k;
	struct sent **q = malloc(cap * sizeof(*q));

	if (!q) {
		r->nomem = true;
		return false;
	}
	for (k = 0; k < s->n; k++)
		q[k] = s->q[(s->head + k) % s->cap];
	free(s->q);
	s->q = q;
	s->head = 0;
	s->cap = cap;
	return true;
}

static bool widen_order(struct races *r, struct wtag *t)
{
	uint32_t cap = t->ocap ? t->ocap * 2 : 8, k;
	uint16_t *q = malloc(cap * sizeof(*q));

	if (!q) {
		r->nomem = true;
		return false;
	}
	for (k = 0; k < t->count; k++)
		q[k] = t->order[(t->ohead + k) % t->ocap];
	free(t->order);
	t->order = q;
	t->ohead = 0;
	t->ocap = cap;
	return true;
}

static void sent_put(struct races *r, struct sent *s)
{
	if (--s->refs)
		return;
	clock_drop(r, &s->clk);
	free(s);
	r->outstanding--;
}

/*
 * Is there room in the tags that only this unit sends to? More than a tag holds is never needed. Where others send too,
 * who comes first could decide whether the job ends.
 */
static bool tags_have_room(const struct races *r, const struct rcore *c, const struct job_insn *i)
{
	uint32_t mask = i->imm ? (uint32_t)i->imm : 1u << c->id;

	for (; mask; mask &= mask - 1) {
		const struct wtag *t = &r->core[__builtin_ctz(mask)].tag[i->a];

		if (t->nfrom == 1 && t->count == TAG_MOST)
			return false;
	}
	return true;
}

static void send(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i)
{
	uint32_t mask = i->imm ? (uint32_t)i->imm : 1u << c->id;
	struct sent *s = calloc(1, sizeof(*s));

	if (!s || r->outstanding == SENDS_MAX) {
		r->nomem |= !s;
		free(s);
		too_large(r, u);
		return;
	}
	r->outstanding++;
	s->refs = 1;
	clock_set(r, &s->clk, &u->clk);
	for (; mask && !r->nomem; mask &= mask - 1) {
		struct rcore *to = &r->core[__builtin_ctz(mask)];
		uint8_t w = r->job->tag_waiter[to->id][i->a];
		struct wtag *t = &to->tag[i->a];
		unsigned int k = 0;

		/* A tag that nobody waits for orders nothing. */
		if (w == 0xff)
			continue;
		while (t->from[k].unit != unit_number(u))
			k++;
		if (t->from[k].n == t->from[k].cap && !widen(r, &t->from[k]))
			break;
		if (t->nfrom > 1) {
			if (t->count == t->ocap && !widen_order(r, t))
				break;
			t->order[(t->ohead + t->count) % t->ocap] = (uint16_t)k;
			if (t->logged)
				log_send(r, t, u, k, to->id * JOB_CORE_UNITS + w);
		}
		t->from[k].q[(t->from[k].head + t->from[k].n++) % t->from[k].cap] = s;
		s->refs++;
		t->count++;
		wake(r, to, w);
	}
	sent_put(r, s);
	tick(u);
}

/* u comes after the next n outstanding sends of s. */
static void take(struct races *r, struct runit *u, struct sender *s, uint32_t n)
{
	if (!n)
		return;
	join(r, u, s->unit / JOB_CORE_UNITS, &s->q[(s->head + n - 1) % s->cap]->clk);
	for (; n; n--) {
		sent_put(r, s->q[s->head]);
		s->head = (s->head + 1) % s->cap;
		s->n--;
	}
}

static bool wait(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i)
{
	struct wtag *t = &c->tag[i->a];
	uint32_t n, k;

	if (t->count < i->n)
		return false;
	t->need += i->n;
	if (t->nfrom == 1) {
		take(r, u, &t->from[0], i->n);
		if (t->count == TAG_MOST)
			wake(r, &r->core[t->from[0].unit / JOB_CORE_UNITS], t->from[0].unit % JOB_CORE_UNITS);
		t->count -= i->n;
		return true;
	}
	if (t->nwaits < t->ntake) {
		const uint32_t *to = t->take + (size_t)t->nwaits * t->nfrom;
		const uint32_t *had = t->nwaits ? to - t->nfrom : NULL;

		for (k = 0; k < t->nfrom; k++)
			take(r, u, &t->from[k], to[k] - (had ? had[k] : 0));
	} else {
		for (n = 0; n < i->n; n++)
			take(r, u, &t->from[t->order[(t->ohead + n) % t->ocap]], 1);
	}
	t->ohead = (t->ohead + i->n) % t->ocap;
	t->count -= i->n;
	if (t->logged) {
		uint32_t cap = t->wcap;

		if (!GROW(r, t->wait_at, t->nwaits, &cap) || !GROW(r, t->wait_need, t->nwaits, &t->wcap))
			return true;
		t->wait_at[t->nwaits] = u->clk.near[u->index];
		t->wait_need[t->nwaits] = t->need;
	}
	t->nwaits++;
	return true;
}

/* --- Units ---------------------------------------------------------------------------------- */

/* Instructions end with one of these; a unit that fails here fails when the job runs, with its own error. */
enum step { STEP_NEXT, STEP_BLOCKED, STEP_END };

static enum step do_l3(struct races *r, struct runit *u, const struct job_insn *i)
{
	uint64_t lx = seq_local_addr(&u->s, i), ear = u->s.reg[i->c], bytes = i->n * (uint64_t)SPYRE_STICK, k;

	if (seq_local_range(lx, i->n, SPYRE_STICK, SPYRE_LX_SIZE))
		return STEP_END;
	if (i->op == SPYRE_OP_L3_STC) {
		uint64_t core = ear >> 24, to = ear & 0xffffff;

		if (core >= 32 || !(r->job->core_mask & 1u << core) ||
		    seq_local_range(to, i->n, SPYRE_STICK, SPYRE_LX_SIZE))
			return STEP_END;
		for (k = 0; k < bytes; k += SPYRE_STICK)
			touch_lx(r, u, u->core, lx + k, false);
		for (k = 0; k < bytes; k += SPYRE_STICK)
			touch_lx(r, u, (unsigned int)core, to + k, true);
	} else {
		if (ear % SPYRE_STICK || ear >= SPYRE_DMVA_SIZE || SPYRE_DMVA_SIZE - ear < bytes)
			return STEP_END;
		for (k = 0; k < bytes; k += SPYRE_STICK) {
			touch_lx(r, u, u->core, lx + k, i->op != SPYRE_OP_L3_STU);
			touch_memory(r, u, ear + k, i->op == SPYRE_OP_L3_STU);
		}
	}
	r->steps += i->n;
	u->s.reg[i->a] += (uint64_t)(int64_t)i->imm;
	u->s.reg[i->c] += (uint64_t)(int64_t)i->imm2;
	return STEP_NEXT;
}

static enum step do_local(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i)
{
	bool l0 = u->kind == SPYRE_UNIT_L0LU || u->kind == SPYRE_UNIT_L0SU, load = i->op == SPYRE_OP_LD;
	uint64_t addr = seq_local_addr(&u->s, i), at;

	if (!u->done && seq_local_range(addr, i->n, i->imm, l0 ? SPYRE_L0_SIZE : SPYRE_LX_SIZE))
		return STEP_END;
	for (; u->done < i->n; u->done++, r->steps++) {
		if (load ? !fifo_room(c, u, i->d) : !fifo_has(c, u, i->d))
			return STEP_BLOCKED;
		if (!load)
			pop(r, c, u, i->d, 1);
		at = addr + (uint64_t)((int64_t)u->done * i->imm);
		if (!l0)
			touch_lx(r, u, u->core, at, !load);
		else if (r->local)
			touch_local(r, u, &c->l0[u->corelet][at / SPYRE_STICK], !load, SPYRE_RACE_L0, at);
		if (load)
			push(r, c, u, i->d, 1);
	}
	u->s.reg[i->a] += (uint64_t)(int64_t)i->imm2;
	return STEP_NEXT;
}

static enum step do_pt(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i)
{
	uint32_t total = i->op == SPYRE_OP_PT_MM ? i->n : i->n * 2u, n;
	unsigned int x = u->corelet;

	if (i->op == SPYRE_OP_PT_LDW) {
		if (c->nldw[x] == PT_TILES)
			return STEP_BLOCKED;
		c->ldw[x][c->nldw[x]++] = (struct ldw){ .tile = i->a, .fmt = i->b, .fifo = i->d };
		c->pending[x][i->a]++;
		wake(r, c, PORT0 + x);
		return STEP_NEXT;
	}
	if (i->op == SPYRE_OP_PT_MM && !u->done) {
		if (c->pending[x][i->a])
			return STEP_BLOCKED;
		join(r, u, c->id, &c->tile[x][i->a]);
	}
	while (u->done < total) {
		n = i->op == SPYRE_OP_PT_PSOUT ? fifo_room(c, u, i->d) : fifo_has(c, u, i->d);
		if (n > total - u->done)
			n = total - u->done;
		if (!n)
			return STEP_BLOCKED;
		if (i->op == SPYRE_OP_PT_PSOUT)
			push(r, c, u, i->d, n);
		else
			pop(r, c, u, i->d, n);
		u->done += n;
		r->steps += n;
	}
	return STEP_NEXT;
}

/* PT's load port: loads in order, a tile is known when its 64 words have come. */
static void do_port(struct races *r, struct rcore *c, unsigned int x)
{
	struct runit *port = &c->u[PORT0 + x];

	while (c->nldw[x]) {
		const struct ldw *l = &c->ldw[x][0];
		uint32_t n = fifo_has(c, port, l->fifo);

		if (n > 64 - c->got[x])
			n = 64 - c->got[x];
		if (!n)
			return;
		pop(r, c, port, l->fifo, n);
		r->steps += n;
		c->got[x] += n;
		if (c->got[x] < 64)
			continue;
		c->got[x] = 0;
		clock_set(r, &c->tile[x][l->tile], &port->clk);
		c->pending[x][l->tile]--;
		c->nldw[x]--;
		memmove(&c->ldw[x][0], &c->ldw[x][1], c->nldw[x] * sizeof(c->ldw[x][0]));
		wake(r, c, job_unit_index(SPYRE_UNIT_PT, x));
	}
}

static enum step do_vec(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i)
{
	const uint8_t opnd[3] = { i->b, i->c, i->d };
	uint32_t need[3] = { 0, 0, 0 }, sum[SPYRE_FIFOS] = { 0 }, out = 0, n, k;
	unsigned int fifo[3], to = 0, nin = 0, j;

	for (k = 0; k < 3; k++) {
		if (!(i->srcs & 1u << k) || opnd[k] < 0x20 || opnd[k] >= 0x40)
			continue;
		j = opnd[k] - 0x20u;
		fifo[nin] = j;
		need[nin++] = isa_words((uint32_t)i->imm2 >> (8 * k) & 0xff);
		sum[j] += need[nin - 1];
	}
	if (i->a >= 0x20 && i->a < 0x40) {
		to = i->a - 0x20u;
		out = isa_words((uint32_t)i->imm2 >> 24);
	}
	while (u->done < i->n) {
		/* Only a word that goes out tells of the times apart. */
		n = out ? 1 : i->n - u->done;
		for (k = 0; k < nin; k++)
			if (fifo_has(c, u, fifo[k]) / sum[fifo[k]] < n)
				n = fifo_has(c, u, fifo[k]) / sum[fifo[k]];
		if (!n || (out && fifo_room(c, u, to) < out))
			return STEP_BLOCKED;
		for (k = 0; k < nin; k++)
			pop(r, c, u, fifo[k], n * need[k]);
		if (out)
			push(r, c, u, to, out);
		u->done += n;
		r->steps++;
	}
	return STEP_NEXT;
}

static bool stop(struct races *r)
{
	if (r->steps >= CHECK_STEPS) {
		r->steps = 0;
		r->cancelled |= soc_checkpoint(r->soc, 0);
	}
	return r->cancelled || r->nomem || r->found || r->large;
}

static void run_unit(struct races *r, struct rcore *c, unsigned int index)
{
	struct runit *u = &c->u[index];
	enum step step;

	c->ready &= ~(1u << index);
	if (index >= PORT0) {
		do_port(r, c, index - PORT0);
		return;
	}
	while (!stop(r)) {
		const struct job_insn *i = &u->s.insns[u->s.pc];

		r->steps++;
		if (seq_control(&u->s, i))
			continue;
		switch (i->op) {
		case SPYRE_OP_RETURN:
			step = STEP_END;
			break;
		case SPYRE_OP_SYNC_SEND:
			if (!tags_have_room(r, c, i))
				return;
			/* Follows the loads of the load port too. */
			if (u->kind == SPYRE_UNIT_PT) {
				if (c->nldw[u->corelet])
					return;
				join(r, u, c->id, &c->u[PORT0 + u->corelet].clk);
			}
			send(r, c, u, i);
			step = STEP_NEXT;
			break;
		case SPYRE_OP_SYNC_WAIT:
			step = wait(r, c, u, i) ? STEP_NEXT : STEP_BLOCKED;
			break;
		case SPYRE_OP_L3_LDU:
		case SPYRE_OP_L3_LDM:
		case SPYRE_OP_L3_STU:
		case SPYRE_OP_L3_STC:
			step = do_l3(r, u, i);
			break;
		case SPYRE_OP_LD:
		case SPYRE_OP_ST:
			step = do_local(r, c, u, i);
			break;
		case SPYRE_OP_PT_LDW:
		case SPYRE_OP_PT_MM:
		case SPYRE_OP_PT_PSOUT:
		case SPYRE_OP_PT_PSIN:
			step = do_pt(r, c, u, i);
			break;
		default:
			step = do_vec(r, c, u, i);
			break;
		}
		if (step == STEP_BLOCKED)
			return;
		if (step == STEP_END) {
			c->live &= ~(1u << index);
			return;
		}
		u->done = 0;
		seq_next(&u->s, i);
	}
}

/* --- Passes --------------------------------------------------------------------------------- */

static void forget_sends(struct races *r, struct wtag *t)
{
	unsigned int k;

	for (k = 0; k < t->nfrom; k++) {
		for (; t->from[k].n; t->from[k].n--) {
			sent_put(r, t->from[k].q[t->from[k].head]);
			t->from[k].head = (t->from[k].head + 1) % t->from[k].cap;
		}
		t->from[k].nat = 0;
	}
	t->count = t->ohead = t->nwaits = t->nsends = 0;
	t->need = 0;
}

static void start_core(struct races *r, struct rcore *c, bool log)
{
	unsigned int x, k, index;

	c->live = c->ready = 0;
	for (index = 0; index < R_UNITS; index++) {
		struct runit *u = &c->u[index];
		const struct job_unit *ju = index < PORT0 ? r->job->unit[c->id][index] : NULL;

		clock_drop(r, &u->clk);
		memset(u, 0, sizeof(*u));
		u->core = (uint8_t)c->id;
		u->index = (uint8_t)index;
		u->kind = index < PORT0 ? (uint8_t)job_unit_kind(index) : SPYRE_UNIT_PT;
		u->corelet = index < PORT0 ? (uint8_t)job_unit_corelet(index) : (uint8_t)(index - PORT0);
		if (index >= PORT0) {
			c->live |= 1u << index;
		} else if (ju) {
			u->clk.near[index] = 1;
			seq_init(&u->s, ju, r->soc->symbols);
			c->live |= 1u << index;
			wake(r, c, index);
		}
	}
	for (x = 0; x < 2; x++) {
		for (k = 0; k < SPYRE_FIFOS; k++) {
			struct wfifo *f = &c->fifo[x][k];

			for (; f->w && f->count; f->count--, f->head++)
				clock_drop(r, &f->w[f->head % DEPTH]);
			f->head = f->count = 0;
		}
		for (k = 0; k < PT_TILES; k++)
			clock_drop(r, &c->tile[x][k]);
		c->nldw[x] = c->got[x] = 0;
		memset(c->pending[x], 0, sizeof(c->pending[x]));
	}
	for (k = 0; k < SPYRE_TAGS; k++) {
		forget_sends(r, &c->tag[k]);
		c->tag[k].logged = log && c->tag[k].nfrom > 1 && !c->tag[k].settled;
	}
}

/* Through the whole job once; false when it was stopped. */
static bool pass(struct races *r, bool log)
{
	uint32_t m;

	r->qhead = r->nqueue = 0;
	r->logged = 0;
	for (m = r->job->core_mask; m; m &= m - 1) {
		r->core[__builtin_ctz(m)].queued = false;
		start_core(r, &r->core[__builtin_ctz(m)], log);
	}
	while (r->nqueue && !stop(r)) {
		struct rcore *c = r->queue[r->qhead];

		r->qhead = (r->qhead + 1) % 32;
		r->nqueue--;
		while (c->ready & c->live && !stop(r))
			run_unit(r, c, (unsigned int)__builtin_ctz(c->ready & c->live));
		/* What was woken meanwhile has run. */
		c->queued = false;
		c->ready = 0;
	}
	return !r->cancelled && !r->nomem && !r->found && !r->large;
}

/* --- Tags with several senders -------------------------------------------------------------- */

static bool enough(struct races *r)
{
	return stop(r) || r->work > WORK_MAX;
}

/*
 * The largest i such that fewer than need sends can happen without the i-th send of sender a. Those that can happen
 * without wait j are the first need, in order of arrival, and extra ones up to the one at last: so i is the
 * (extra + 1)-th largest number of a's sends that one of them knows. at: where a's sends are, in order of arrival.
 */
static uint32_t surely(struct races *r, const struct wtag *t, uint32_t j, unsigned int a, const uint32_t *at,
		       uint32_t extra, uint32_t last)
{
	const uint32_t *kn = t->knows;
	uint32_t w = t->nfrom + 1u, has = 0, end = t->from[a].nat, low, p, k, *bin, more = 0;

	while (has < end) {
		k = has + (end - has) / 2;
		if (at[k] < t->wait_need[j] || kn[(size_t)at[k] * w] <= j)
			has = k + 1;
		else
			end = k;
	}
	if (!has)
		return 0;
	low = has > extra ? has - extra : 1;
	bin = calloc(has - low + 1, sizeof(*bin));
	if (!bin) {
		r->nomem = true;
		return 0;
	}
	for (p = at[low - 1]; (p <= last || p < t->wait_need[j]) && !enough(r); p++) {
		const uint32_t *q = kn + (size_t)p * w;

		if ((p < t->wait_need[j] || q[0] <= j) && q[1 + a] >= low)
			bin[(q[1 + a] < has ? q[1 + a] : has) - low]++;
		r->steps++;
		r->work++;
	}
	for (k = has; k >= low; k--) {
		more += bin[k - low];
		if (more > extra)
			break;
	}
	free(bin);
	return more > extra ? k : 0;
}

/* From the log of a round, what each wait surely comes after. True: it is less than the round took. */
static bool settle(struct races *r, struct wtag *t)
{
	uint32_t w = t->nfrom + 1u, j, p, k, *extra, *last, *take, **at, *seen;
	bool less = false;

	if (!t->nwaits)
		return false;
	extra = calloc(t->nwaits * 2u, sizeof(*extra));
	take = malloc((size_t)t->nwaits * t->nfrom * sizeof(*take));
	at = calloc(t->nfrom, sizeof(*at));
	seen = calloc(t->nfrom, sizeof(*seen));
	for (k = 0; at && k < t->nfrom; k++) {
		at[k] = malloc((t->from[k].nat + 1u) * sizeof(**at));
		r->nomem |= !at[k];
	}
	if (!extra || !take || !at || !seen || r->nomem) {
		r->nomem = true;
		goto out;
	}
	last = extra + t->nwaits;
	for (p = 0; p < t->nsends && !enough(r); p++) {
		at[t->who[p]][seen[t->who[p]]++] = p;
		/* Waits that this send is not after, though they were over before it arrived or did not need it. */
		for (j = t->knows[(size_t)p * w]; j < t->nwaits && t->wait_need[j] <= p; j++) {
			extra[j]++;
			last[j] = p;
			r->steps++;
			r->work++;
		}
	}
	memset(seen, 0, t->nfrom * sizeof(*seen));
	for (j = 0, p = 0; j < t->nwaits && !enough(r); j++) {
		for (; p < t->wait_need[j]; p++)
			seen[t->who[p]]++;
		for (k = 0; k < t->nfrom; k++) {
			uint32_t *to = &take[(size_t)j * t->nfrom + k];

			*to = extra[j] ? surely(r, t, j, k, at[k], extra[j], last[j]) : seen[k];
			/* What came before the wait before comes before this one. */
			if (j && *to < to[-(int)t->nfrom])
				*to = to[-(int)t->nfrom];
			if (t->take ? *to != t->take[(size_t)j * t->nfrom + k] : *to != seen[k])
				less = true;
		}
	}
	if (enough(r)) {
		t->settled = true;
		less = false;
		goto out;
	}
	free(t->take);
	t->take = take;
	t->ntake = t->nwaits;
	take = NULL;
out:
	for (k = 0; at && k < t->nfrom; k++)
		free(at[k]);
	free(at);
	free(seen);
	free(take);
	free(extra);
	return less;
}

/* Which units send to which tags, and all that a pass needs; false: no memory. */
static bool senders(struct races *r)
{
	const struct job *job = r->job;
	uint32_t i, pc, m;
	struct wtag *t;

	for (i = 0; i < job->nunits; i++) {
		const struct job_unit *ju = &job->units[i];
		uint16_t number = (uint16_t)(ju->core * JOB_CORE_UNITS + ju->index);

		for (pc = 0; pc < ju->program->count; pc++) {
			const struct job_insn *in = &ju->program->insns[pc];

			if (in->op != SPYRE_OP_SYNC_SEND)
				continue;
			for (m = in->imm ? (uint32_t)in->imm : 1u << ju->core; m; m &= m - 1) {
				struct sender *s;

				t = &r->core[__builtin_ctz(m)].tag[in->a];
				/* Units come one after the other. */
				if (t->nfrom && t->from[t->nfrom - 1].unit == number)
					continue;
				s = realloc(t->from, (t->nfrom + 1u) * sizeof(*s));
				if (!s)
					return false;
				t->from = s;
				memset(&s[t->nfrom], 0, sizeof(*s));
				s[t->nfrom++].unit = number;
				r->several |= t->nfrom > 1;
			}
		}
	}
	return true;
}

static bool order_tags(struct races *r)
{
	unsigned int round, c, k;
	bool less = r->several;

	for (round = 0; less && round < ROUNDS; round++) {
		if (!pass(r, true))
			return false;
		less = false;
		for (c = 0; c < 32; c++)
			for (k = 0; k < SPYRE_TAGS; k++)
				if (r->core[c].tag[k].logged)
					less |= settle(r, &r->core[c].tag[k]);
		if (stop(r))
			return false;
	}
	return true;
}

/* --- The check ------------------------------------------------------------------------------ */

static void ring(struct races *r)
{
	struct rcore *first = NULL, *last = NULL;
	uint32_t m;

	/* Corelet 0 writes to the next core, corelet 1 to the previous one. */
	for (m = r->job->core_mask; m; m &= m - 1) {
		struct rcore *c = &r->core[__builtin_ctz(m)];

		if (last) {
			last->next[0] = last->prev[1] = c;
			c->prev[0] = c->next[1] = last;
		} else {
			first = c;
		}
		last = c;
	}
	last->next[0] = last->prev[1] = first;
	first->prev[0] = first->next[1] = last;
}

/* Which sticks of memory the job may write: what an L3SU does needs no other unit. */
static bool find_written(struct races *r)
{
	uint32_t i, k;

	for (i = 0; i < r->job->nunits; i++) {
		const struct job_unit *ju = &r->job->units[i];
		struct seq s;

		if (ju->index != SPYRE_UNIT_L3SU || !ju->program->memory)
			continue;
		seq_init(&s, ju, r->soc->symbols);
		for (;;) {
			const struct job_insn *in = &s.insns[s.pc];
			uint64_t ear;

			r->steps++;
			if (stop(r))
				return false;
			if (seq_control(&s, in))
				continue;
			if (in->op == SPYRE_OP_RETURN)
				break;
			if (in->op == SPYRE_OP_L3_STU) {
				ear = s.reg[in->c];
				for (k = 0; k < in->n; k++, ear += SPYRE_STICK) {
					uint64_t **w = &r->written[(ear & (SPYRE_DMVA_SIZE - 1)) >> PAGE_SHIFT];
					uint64_t at = ear / SPYRE_STICK % PAGE_PLACES;

					if (ear >= SPYRE_DMVA_SIZE)
						break;
					if (!*w)
						*w = calloc(PAGE_PLACES / 64, sizeof(**w));
					if (!*w) {
						r->nomem = true;
						return false;
					}
					(*w)[at / 64] |= 1ull << at % 64;
				}
				r->steps += in->n;
			}
			if (in->op == SPYRE_OP_L3_STU || in->op == SPYRE_OP_L3_STC) {
				s.reg[in->a] += (uint64_t)(int64_t)in->imm;
				s.reg[in->c] += (uint64_t)(int64_t)in->imm2;
			}
			seq_next(&s, in);
		}
	}
	return true;
}

static bool find_local(struct races *r)
{
	uint32_t m;
	unsigned int x;

	for (m = r->job->core_mask; m; m &= m - 1) {
		struct rcore *c = &r->core[__builtin_ctz(m)];

		c->lx = calloc(LX_PLACES, sizeof(*c->lx));
		r->nomem |= !c->lx;
		for (x = 0; x < 2; x++) {
			c->l0[x] = calloc(L0_PLACES, sizeof(*c->l0[x]));
			r->nomem |= !c->l0[x];
		}
	}
	return !r->nomem;
}

static void free_page(struct races *r, uint64_t page)
{
	struct place *p = r->page[page];
	unsigned int k;

	for (k = 0; p && k < PAGE_PLACES; k++)
		if (p[k].many)
			many_put(r, p[k].many);
	free(p);
	r->page[page] = NULL;
}

/* All accesses: those of LX and L0 in the first pass, those of memory a window a pass. */
static bool check(struct races *r)
{
	uint64_t page = 0, k, window[WINDOW];
	bool ok;
	unsigned int n;

	r->check = r->local = true;
	do {
		for (n = 0; page < PAGES && n < WINDOW; page++) {
			if (!r->written[page])
				continue;
			r->page[page] = calloc(PAGE_PLACES, sizeof(**r->page));
			if (!r->page[page])
				r->nomem = true;
			window[n++] = page;
		}
		ok = (!n && !r->local) || pass(r, false);
		for (k = 0; k < n; k++)
			free_page(r, window[k]);
		r->local = false;
	} while (ok && page < PAGES);
	return ok;
}

static void free_tag(struct races *r, struct wtag *t)
{
	unsigned int k;

	forget_sends(r, t);
	for (k = 0; k < t->nfrom; k++) {
		free(t->from[k].q);
		free(t->from[k].at);
	}
	free(t->from);
	free(t->order);
	free(t->wait_at);
	free(t->wait_need);
	free(t->who);
	free(t->knows);
	free(t->take);
}

static void finish(struct races *r)
{
	struct far *f;
	uint64_t page;
	unsigned int i, x, k;

	for (i = 0; r->core && i < 32; i++) {
		struct rcore *c = &r->core[i];

		for (k = 0; k < SPYRE_TAGS; k++)
			free_tag(r, &c->tag[k]);
		for (k = 0; k < R_UNITS; k++)
			clock_drop(r, &c->u[k].clk);
		for (x = 0; x < 2; x++) {
			for (k = 0; k < SPYRE_FIFOS; k++) {
				struct wfifo *w = &c->fifo[x][k];
				unsigned int n;

				/* A popped word's far part is kept until its place is used again. */
				for (n = 0; w->w && n < DEPTH; n++)
					clock_drop(r, &w->w[n]);
				free(w->w);
			}
			for (k = 0; k < PT_TILES; k++)
				clock_drop(r, &c->tile[x][k]);
			free(c->l0[x]);
		}
		free(c->lx);
	}
	free(r->core);
	for (page = 0; r->written && page < PAGES; page++)
		free(r->written[page]);
	free(r->written);
	free(r->page);
	while ((f = r->spare)) {
		r->spare = (struct far *)(uintptr_t)f->c[0][0];
		free(f);
	}
	while (r->many) {
		struct access *m = r->many;

		memcpy(&r->many, m, sizeof(r->many));
		free(m);
	}
}

static void tell(const struct races *r, struct spyre_rb *rb)
{
	unsigned int a = r->a.unit % JOB_CORE_UNITS, b = r->b.unit % JOB_CORE_UNITS;

	spyre_soc_fail(rb, SPYRE_ERR_PROGRAM, r->found ? SPYRE_PE_RACE : SPYRE_PE_RACE_SIZE,
		       r->a.unit / JOB_CORE_UNITS, job_unit_kind(a) | job_unit_corelet(a) << 8, r->a.pc);
	if (!r->found)
		return;
	rb->rb_hmierr_addr = r->addr;
	rb->nstuck = 1;
	rb->stuck[0] = (struct spyre_stuck){
		.core = (uint8_t)(r->b.unit / JOB_CORE_UNITS),
		.unit = (uint8_t)(job_unit_kind(b) | job_unit_corelet(b) << 7),
		.waits = r->place, .number = r->writes, .pc = r->b.pc,
	};
}

bool spyre_race_job(struct spyre_soc *soc, struct spyre_rb *rb)
{
	struct races r = { .soc = soc, .job = soc->job };
	unsigned int i;
	bool ok;

	r.core = calloc(32, sizeof(*r.core));
	r.written = calloc(PAGES, sizeof(*r.written));
	r.page = calloc(PAGES, sizeof(*r.page));
	for (i = 0; r.core && i < 32; i++)
		r.core[i].id = i;
	if (!r.core || !r.written || !r.page || !senders(&r)) {
		r.nomem = true;
		ok = false;
	} else {
		ring(&r);
		ok = find_local(&r) && order_tags(&r) && find_written(&r) && check(&r);
	}
	if (r.cancelled)
		spyre_soc_fail(rb, SPYRE_ERR_CANCELLED, SPYRE_PE_NONE, 0xffff, 0xffff, 0);
	else if (r.found || (r.large && !r.nomem))
		tell(&r, rb);
	else if (!ok)
		spyre_soc_fail(rb, SPYRE_ERR_INTERNAL, SPYRE_PE_NONE, 0xffff, 0xffff, 0);
	finish(&r);
	return ok;
}
