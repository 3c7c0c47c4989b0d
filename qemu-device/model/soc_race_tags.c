// SPDX-License-Identifier: MIT
/*
 * The race check's tags.
 *
 * A tag with one sender is simple: a wait that brings what was consumed to C comes after the C-th
 * send. With several, any of them may have sent the C that let it go, so the i-th send of A comes
 * before the wait only if fewer than C sends can happen without it: those that come neither after
 * that send nor after the wait. Which ones come after is what is being computed, so it is computed
 * in rounds. The first takes the first C that arrive, which is too much order; each round can only
 * take some away, and the last changes nothing.
 */
#include <stdlib.h>

#include "soc_race.h"

#define ROUNDS		16u
/* Of tags with several senders. Beyond either, what the last round took stands: too much order. */
#define LOG_MAX		(16u << 20)	/* numbers in a round: 64 MB, a few times that in all */
#define WORK_MAX	(1ull << 31)	/* steps of finding what waits come after: some seconds */
/* Beyond this the job is too large to check. */
#define SENDS_MAX	(1u << 20)	/* outstanding in a job */
/* Of one tag on the card: the timing pass refuses jobs with more. */
#define TAG_MOST	65535u

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

static void log_send(struct races *r, struct wtag *t, const struct runit *u, unsigned int from,
		     unsigned int waiter)
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
	*kn++ = upto(t->wait_at, t->nwaits, race_knows(&u->clk, u->core, waiter));
	for (k = 0; k < t->nfrom; k++)
		*kn++ = upto(t->from[k].at, t->from[k].nat,
			     race_knows(&u->clk, u->core, t->from[k].unit));
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
	race_clock_drop(r, &s->clk);
	free(s);
	r->outstanding--;
}

bool race_tags_have_room(const struct races *r, const struct rcore *c, const struct job_insn *i)
{
	uint32_t mask = i->imm ? (uint32_t)i->imm : 1u << c->id;

	for (; mask; mask &= mask - 1) {
		const struct wtag *t = &r->core[__builtin_ctz(mask)].tag[i->a];

		if (t->nfrom == 1 && t->count == TAG_MOST)
			return false;
	}
	return true;
}

void race_send(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i)
{
	uint32_t mask = i->imm ? (uint32_t)i->imm : 1u << c->id;
	struct sent *s = calloc(1, sizeof(*s));

	if (!s || r->outstanding == SENDS_MAX) {
		r->nomem |= !s;
		free(s);
		race_too_large(r, u);
		return;
	}
	r->outstanding++;
	s->refs = 1;
	race_clock_set(r, &s->clk, &u->clk);
	for (; mask && !r->nomem; mask &= mask - 1) {
		struct rcore *to = &r->core[__builtin_ctz(mask)];
		uint8_t w = r->job->tag_waiter[to->id][i->a];
		struct wtag *t = &to->tag[i->a];
		unsigned int k = 0;

		/* A tag that nobody waits for orders nothing. */
		if (w == 0xff)
			continue;
		while (t->from[k].unit != race_unit(u))
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
		race_wake(r, to, w);
	}
	sent_put(r, s);
	race_tick(u);
}

/* u comes after the next n outstanding sends of s. */
static void take(struct races *r, struct runit *u, struct sender *s, uint32_t n)
{
	if (!n)
		return;
	race_join(r, u, s->unit / JOB_CORE_UNITS, &s->q[(s->head + n - 1) % s->cap]->clk);
	for (; n; n--) {
		sent_put(r, s->q[s->head]);
		s->head = (s->head + 1) % s->cap;
		s->n--;
	}
}

bool race_wait(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i)
{
	struct wtag *t = &c->tag[i->a];
	uint32_t n, k;

	if (t->count < i->n)
		return false;
	t->need += i->n;
	if (t->nfrom == 1) {
		take(r, u, &t->from[0], i->n);
		if (t->count == TAG_MOST)
			race_wake(r, &r->core[t->from[0].unit / JOB_CORE_UNITS],
				  t->from[0].unit % JOB_CORE_UNITS);
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

		if (!GROW(r, t->wait_at, t->nwaits, &cap) ||
		    !GROW(r, t->wait_need, t->nwaits, &t->wcap))
			return true;
		t->wait_at[t->nwaits] = u->clk.near[u->index];
		t->wait_need[t->nwaits] = t->need;
	}
	t->nwaits++;
	return true;
}

void race_forget_sends(struct races *r, struct wtag *t)
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

void race_free_tag(struct races *r, struct wtag *t)
{
	unsigned int k;

	race_forget_sends(r, t);
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

/* --- Tags with several senders -------------------------------------------------------------- */

static bool enough(struct races *r)
{
	return race_stop(r) || r->work > WORK_MAX;
}

/*
 * The largest i such that fewer than need sends can happen without the i-th send of sender a. Those
 * that can happen without wait j are the first need, in order of arrival, and extra ones up to the
 * one at last: so i is the (extra + 1)-th largest number of a's sends that one of them knows. at:
 * where a's sends are, in order of arrival.
 */
static uint32_t surely(struct races *r, const struct wtag *t, uint32_t j, unsigned int a,
		       const uint32_t *at, uint32_t extra, uint32_t last)
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

/*
 * From the log of a round, what each wait surely comes after. True: it is less than the round took.
 */
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
		/* Waits that this send is not after, though they were over before it arrived or did
		 * not need it. */
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

bool race_senders(struct races *r)
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

bool race_order_tags(struct races *r)
{
	unsigned int round, c, k;
	bool less = r->several;

	for (round = 0; less && round < ROUNDS; round++) {
		if (!race_pass(r, true))
			return false;
		less = false;
		for (c = 0; c < 32; c++)
			for (k = 0; k < SPYRE_TAGS; k++)
				if (r->core[c].tag[k].logged)
					less |= settle(r, &r->core[c].tag[k]);
		if (race_stop(r))
			return false;
	}
	return true;
}
