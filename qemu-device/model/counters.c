/* SPDX-License-Identifier: MIT */
/*
 * What the cores did, by name: for each kind of unit summed over the card, for each core over its
 * units. Each unit of each core by itself would be thousands of names, few of which are ever read.
 */
#include <stdio.h>
#include <string.h>

#include <spyre/isa_table.h>

#include "card.h"
#include "job.h"

/* One walk gives the names, later ones the values, so that both are in the same order. */
struct walk {
	struct spyre_card *c;
	bool naming;
	struct spyre_counter *out;
	size_t max, n;
};

__attribute__((format(printf, 3, 4)))
static void item(struct walk *w, uint64_t value, const char *format, ...)
{
	va_list ap;

	if (w->naming) {
		va_start(ap, format);
		vsnprintf(w->c->soc_names[w->n], SOC_NAME, format, ap);
		va_end(ap);
	} else if (w->n < w->max) {
		w->out[w->n].name = w->c->soc_names[w->n];
		w->out[w->n].value = value;
	}
	w->n++;
}

static void add_unit(struct spyre_unit_counters *sum, const struct spyre_unit_counters *u)
{
	unsigned int s;

	for (s = 0; s < SPYRE_SPENT; s++)
		sum->spent[s] += u->spent[s];
	sum->instructions += u->instructions;
	sum->bytes += u->bytes;
}

static void spent(struct walk *w, const struct spyre_unit_counters *u, const char *who)
{
	item(w, u->spent[SPYRE_BUSY], "%s-busy", who);
	item(w, u->spent[SPYRE_STARVED], "%s-starved", who);
	item(w, u->spent[SPYRE_BLOCKED], "%s-blocked", who);
}

static void walk(struct walk *w, const struct spyre_soc_counters *v)
{
	static const char *const link[SPYRE_LINKS] = { "in", "out", "cw", "ccw" };
	struct spyre_unit_counters kind[SPYRE_UNITS] = { 0 }, load = { 0 }, core[32] = { 0 };
	unsigned int c, k;
	uint64_t macs = 0;
	char who[16];

	for (c = 0; c < 32; c++) {
		macs += v->core[c].macs;
		for (k = 0; k < SPYRE_PROFILE_UNITS; k++) {
			const struct spyre_unit_counters *u = &v->core[c].unit[k];

			add_unit(&core[c], u);
			add_unit(k < SPYRE_PROFILE_PORT ? &kind[job_unit_kind(k)] : &load, u);
		}
	}
	item(w, v->jobs, "soc-jobs");
	for (k = 0; k < SPYRE_UNITS; k++) {
		spent(w, &kind[k], isa_unit_name(k));
		item(w, kind[k].instructions, "%s-instructions", isa_unit_name(k));
		item(w, kind[k].bytes, "%s-bytes", isa_unit_name(k));
	}
	item(w, macs, "pt-macs");
	spent(w, &load, "pt-load");
	item(w, load.bytes, "pt-load-bytes");
	item(w, v->memory_busy, "hmi-busy");
	item(w, v->rd_bytes, "hmi-read-bytes");
	item(w, v->wr_bytes, "hmi-write-bytes");
	for (k = 0; k < 2; k++) {
		item(w, v->port[k].busy, "hmi-port%u-busy", k);
		item(w, v->port[k].bytes, "hmi-port%u-bytes", k);
	}
	for (c = 0; c < 32; c++) {
		snprintf(who, sizeof(who), "core%u", c);
		item(w, v->core[c].jobs, "%s-jobs", who);
		spent(w, &core[c], who);
		item(w, core[c].instructions, "%s-instructions", who);
		item(w, v->core[c].macs, "%s-macs", who);
		for (k = 0; k < SPYRE_LINKS; k++) {
			item(w, v->core[c].link[k].busy, "%s-%s-busy", who, link[k]);
			item(w, v->core[c].link[k].bytes, "%s-%s-bytes", who, link[k]);
		}
	}
}

void counters_init(struct spyre_card *c)
{
	static const struct spyre_soc_counters none;
	struct walk w = { .c = c, .naming = true };

	walk(&w, &none);
}

size_t counters_soc(struct spyre_card *c, struct spyre_counter *out, size_t max)
{
	struct walk w = { .c = c, .out = out, .max = max };
	struct spyre_soc_counters v;

	if (!max)
		return SOC_COUNTERS;
	spyre_soc_counters(c->soc, &v);
	walk(&w, &v);
	return w.n;
}
