// SPDX-License-Identifier: MIT
/* The race check's clocks: what each unit knows of all the others. */
#include <stdlib.h>

#include "soc_race.h"

#define ALL_UNITS	(32 * JOB_CORE_UNITS)
/* Contents of far parts, known to units, words and sends: 250 MB. */
#define FARS_MAX	(1u << 16)

void race_too_large(struct races *r, const struct runit *u)
{
	const struct runit *runs = u;

	/* A load port runs no program. */
	if (u->index >= PORT0)
		runs = &r->core[u->core].u[job_unit_index(SPYRE_UNIT_PT, u->index - PORT0)];
	if (!r->found && !r->large)
		r->a = race_now(runs);
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

void race_clock_set(struct races *r, struct clock *to, const struct clock *from)
{
	struct far *old = to->far;

	memcpy(to->near, from->near, sizeof(to->near));
	to->far = far_get(from->far);
	far_put(r, old);
}

void race_clock_drop(struct races *r, struct clock *c)
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
		race_too_large(r, u);
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

void race_join(struct races *r, struct runit *u, unsigned int core, const struct clock *c)
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
