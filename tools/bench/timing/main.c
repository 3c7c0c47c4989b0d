// SPDX-License-Identifier: MIT
/*
 * spyre-bench-timing: runs the published cases through the model and says how far it is from them. One JSON
 * object a line, or a table for people (--table). No card, no virtual machine: modelled time depends on
 * program, symbols and configuration alone.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"

/* Sums of a group: fitted cases, held-out cases. */
struct sums {
	const char *name;
	bool formula;
	double square[2];
	unsigned int n[2];
};

static struct sums *group(struct sums *g, size_t *n, const struct timing_case *c)
{
	size_t i;

	for (i = 0; i < *n; i++)
		if (!strcmp(g[i].name, c->group) && g[i].formula == c->formula)
			return &g[i];
	g[*n] = (struct sums){ .name = c->group, .formula = c->formula };
	return &g[(*n)++];
}

static double rms(const struct sums *g, unsigned int held)
{
	return g->n[held] ? sqrt(g->square[held] / g->n[held]) : 0;
}

int main(int argc, char **argv)
{
	bool table = argc == 2 && !strcmp(argv[1], "--table");
	struct sums groups[32];
	size_t n = 0, i;
	int bad = 0;

	if (argc > 2 || (argc == 2 && !table)) {
		fputs("usage: spyre-bench-timing [--table]\n", stderr);
		return 2;
	}
	if (table)
		printf("%-36s %-30s %12s %12s %7s  %-10s %-11s %s\n", "case", "source", "published us", "modelled us",
		       "ratio", "group", "kind", "part");
	for (i = 0; i < timing_ncases; i++) {
		const struct timing_case *c = &timing_cases[i];
		unsigned int held = timing_held_out(c);
		double published = c->published - c->floor, ratio;
		struct timing_result r;
		char err[256];
		struct sums *g;

		if (!timing_run(c, &r, err)) {
			fprintf(stderr, "spyre-bench-timing: %s: %s\n", c->id, err);
			bad = 1;
			continue;
		}
		ratio = r.us / published;
		g = group(groups, &n, c);
		g->square[held] += log(ratio) * log(ratio);
		g->n[held]++;
		if (table)
			printf("%-36s %-30s %12.3f %12.3f %7.3f  %-10s %-11s %s\n", c->id, c->source, published, r.us, ratio,
			       c->group, c->formula ? "formula" : "measurement", held ? "held out" : "fitted");
		else
			printf("{\"case\": \"%s\", \"source\": \"%s\", \"published_us\": %.6g, \"modelled_us\": %.6g, "
			       "\"ratio\": %.4f, \"group\": \"%s\", \"kind\": \"%s\", \"part\": \"%s\"}\n", c->id, c->source,
			       published, r.us, ratio, c->group, c->formula ? "formula" : "measurement",
			       held ? "held out" : "fitted");
	}
	if (table)
		printf("\n%-12s %-12s %7s %8s %9s %9s\n", "group", "kind", "fitted", "RMS", "held out", "RMS");
	for (i = 0; i < n; i++) {
		const struct sums *g = &groups[i];
		const char *kind = g->formula ? "formula" : "measurement";

		if (table) {
			printf("%-12s %-12s %7u %7.1f%% %9u %8.1f%%\n", g->name, kind, g->n[0], 100 * rms(g, 0), g->n[1],
			       100 * rms(g, 1));
			continue;
		}
		printf("{\"figure\": \"timing-rms\", \"group\": \"%s\", \"kind\": \"%s\", \"value\": %.4g, "
		       "\"unit\": \"RMS of ln(modelled / published), held out\", \"cases\": %u, \"against\": \"cases fitted\", "
		       "\"against_value\": %.4g, \"against_cases\": %u, \"better\": \"lower\"}\n", g->name, kind, rms(g, 1),
		       g->n[1], rms(g, 0), g->n[0]);
	}
	return bad;
}
