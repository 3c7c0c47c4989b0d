/* SPDX-License-Identifier: MIT */
/* Counters of all jobs that ran: soc_int.h says when they are added up. */
#include <stdlib.h>

#include "soc_int.h"

void spyre_count_init(struct spyre_soc *soc)
{
	pthread_mutex_init(&soc->totals.lock, NULL);
}

void spyre_count_free(struct spyre_soc *soc)
{
	pthread_mutex_destroy(&soc->totals.lock);
}

static void add_link(struct wide_link *to, const struct spyre_link_counters *from, uint64_t times)
{
	to->busy += (unsigned __int128)from->busy * times;
	to->bytes += from->bytes * times;
}

static void add_core(struct totals *tot, unsigned int core, const struct core_counts *from,
		     uint64_t times)
{
	const struct unit_counts *u = from->unit;
	unsigned int k, s;
	uint32_t m;

	tot->core[core].jobs += times;
	tot->core[core].macs += from->macs * times;
	for (k = 0; k < SPYRE_LINKS; k++)
		add_link(&tot->core[core].link[k], &from->link[k], times);
	for (m = from->units; m; m &= m - 1, u++) {
		struct wide_unit *to = &tot->core[core].unit[__builtin_ctz(m)];

		for (s = 0; s < SPYRE_SPENT; s++)
			to->spent[s] += (unsigned __int128)u->spent[s] * times;
		to->insns += u->insns * times;
		to->bytes += u->bytes * times;
	}
}

/* Takes a pending one into the totals. Under the lock. */
static void fold(struct totals *tot, struct timed *t)
{
	const struct counts *counts = t->counts;
	unsigned int i;
	uint32_t m;

	tot->jobs += t->runs;
	tot->rd_bytes += t->time.rd_bytes * t->runs;
	tot->wr_bytes += t->time.wr_bytes * t->runs;
	tot->memory_busy += (unsigned __int128)counts->memory_busy * t->runs;
	for (i = 0; i < 2; i++)
		add_link(&tot->port[i], &counts->port[i], t->runs);
	for (i = 0; i < counts->ncores; i++)
		for (m = counts->core[i].alike; m; m &= m - 1)
			add_core(tot, (unsigned int)__builtin_ctz(m), &counts->core[i], t->runs);
	t->runs = 0;
	tot->pending[t->slot] = tot->pending[--tot->npending];
	tot->pending[t->slot]->slot = t->slot;
}

void spyre_count_run(struct spyre_soc *soc, struct timed *t)
{
	struct totals *tot = &soc->totals;

	pthread_mutex_lock(&tot->lock);
	if (!t->runs++) {
		if (tot->npending == PENDING_MAX)
			fold(tot, tot->pending[tot->victim++ % PENDING_MAX]);
		t->slot = tot->npending;
		tot->pending[tot->npending++] = t;
	}
	pthread_mutex_unlock(&tot->lock);
}

void spyre_count_forget(struct spyre_soc *soc, struct timed *t)
{
	pthread_mutex_lock(&soc->totals.lock);
	if (t->runs)
		fold(&soc->totals, t);
	pthread_mutex_unlock(&soc->totals.lock);
	free(t->counts);
	free(t);
}

void spyre_count_clear(struct spyre_soc *soc)
{
	struct totals *tot = &soc->totals;

	pthread_mutex_lock(&tot->lock);
	while (tot->npending)
		tot->pending[--tot->npending]->runs = 0;
	memset(&tot->jobs, 0, sizeof(*tot) - offsetof(struct totals, jobs));
	pthread_mutex_unlock(&tot->lock);
}

/* --- Reading -------------------------------------------------------------------------------- */

static uint64_t cycles(unsigned __int128 ticks)
{
	return (uint64_t)(ticks / SPYRE_SOC_TICKS);
}

static void get_link(struct spyre_link_counters *to, const struct wide_link *from)
{
	to->busy = cycles(from->busy);
	to->bytes = from->bytes;
}

void spyre_soc_counters(struct spyre_soc *soc, struct spyre_soc_counters *out)
{
	struct totals *tot = &soc->totals;
	unsigned int c, k, s;

	pthread_mutex_lock(&tot->lock);
	while (tot->npending)
		fold(tot, tot->pending[0]);
	out->jobs = tot->jobs;
	out->rd_bytes = tot->rd_bytes;
	out->wr_bytes = tot->wr_bytes;
	out->memory_busy = cycles(tot->memory_busy);
	for (k = 0; k < 2; k++)
		get_link(&out->port[k], &tot->port[k]);
	for (c = 0; c < 32; c++) {
		struct spyre_core_counters *to = &out->core[c];

		to->jobs = tot->core[c].jobs;
		to->macs = tot->core[c].macs;
		for (k = 0; k < SPYRE_LINKS; k++)
			get_link(&to->link[k], &tot->core[c].link[k]);
		for (k = 0; k < SPYRE_PROFILE_UNITS; k++) {
			const struct wide_unit *u = &tot->core[c].unit[k];

			for (s = 0; s < SPYRE_SPENT; s++)
				to->unit[k].spent[s] = cycles(u->spent[s]);
			to->unit[k].instructions = u->insns;
			to->unit[k].bytes = u->bytes;
		}
	}
	pthread_mutex_unlock(&tot->lock);
}
