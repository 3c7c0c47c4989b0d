// SPDX-License-Identifier: MIT
/*
 * spyre-bench-timing: runs the published cases through the model and says how far it is from them. One JSON
 * object a line, or tables for people (--table) or for the manual (--rst). No card, no virtual machine: modelled time depends on
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
	/* Where the makers' model says something too: ours, theirs. */
	double shared[2];
	unsigned int nshared;
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

/* What the cases held out must be within. */
static double goal(const struct sums *g)
{
	return !strcmp(g->name, "streaming") ? 0.05 : !strcmp(g->name, "matmul") ? 0.15 : 0;
}

enum form { JSON, TABLE, RST };

static void head(enum form form, bool sums)
{
	static const char *const cells[2][8] = {
		{ "case", "source", "published us", "modelled us", "ratio", "group", "kind", "part" },
		{ "group", "kind", "fitted", "RMS, %", "held out", "RMS, %", "shared: RMS, %", "makers', %" },
	};
	unsigned int i;

	if (form == TABLE && !sums)
		printf("%-38s %-30s %12s %12s %7s  %-10s %-11s %s\n", "case", "source", "published us", "modelled us", "ratio",
		       "group", "kind", "part");
	if (form == TABLE && sums)
		printf("\n%-12s %-12s %7s %8s %9s %9s %9s %9s\n", "group", "kind", "fitted", "RMS", "held out", "RMS",
		       "shared", "makers'");
	if (form != RST)
		return;
	printf(".. list-table::\n   :header-rows: 1\n\n");
	for (i = 0; i < 8 && cells[sums][i]; i++)
		printf("   %s - %s\n", i ? " " : "*", cells[sums][i]);
}

static void print_case(enum form form, const struct timing_case *c, double us)
{
	const char *kind = c->formula ? "formula" : "measurement", *part = timing_held_out(c) ? "held out" : "fitted";
	double published = c->published - c->floor;
	const char *format =
		form == JSON ? "{\"case\": \"%s\", \"source\": \"%s\", \"published_us\": %.3f, \"modelled_us\": %.3f, "
			       "\"ratio\": %.4f, \"group\": \"%s\", \"kind\": \"%s\", \"part\": \"%s\"}\n" :
		form == TABLE ? "%-38s %-30s %12.3f %12.3f %7.3f  %-10s %-11s %s\n" :
		"   * - %s\n     - %s\n     - %.2f\n     - %.2f\n     - %.3f\n     - %s\n     - %s\n     - %s\n";

	printf(format, c->id, c->source, published, us, us / published, c->group, kind, part);
}

static void print_sums(enum form form, const struct sums *g)
{
	const char *kind = g->formula ? "formula" : "measurement";

	if (form == JSON) {
		printf("{\"figure\": \"timing-rms\", \"group\": \"%s\", \"kind\": \"%s\", ", g->name, kind);
		if (g->n[1])
			printf("\"value\": %.4f, ", rms(g, 1));
		if (goal(g) > 0)
			printf("\"goal\": %g, ", goal(g));
		printf("\"unit\": \"RMS of ln(modelled / published), cases held out\", \"cases\": %u, "
		       "\"against\": \"cases fitted\", \"against_value\": %.4f, \"against_cases\": %u, ", g->n[1], rms(g, 0),
		       g->n[0]);
		if (g->nshared)
			printf("\"shared_cases\": %u, \"shared_value\": %.4f, \"makers_value\": %.4f, ", g->nshared,
			       sqrt(g->shared[0] / g->nshared), sqrt(g->shared[1] / g->nshared));
		puts("\"better\": \"lower\"}");
		return;
	}
	printf(form == TABLE ? "%-12s %-12s %7u %7.1f%% %9u " : "   * - %s\n     - %s\n     - %u\n     - %.1f\n     - %u\n",
	       g->name, kind, g->n[0], 100 * rms(g, 0), g->n[1]);
	if (g->n[1])
		printf(form == TABLE ? "%8.1f%%" : "     - %.1f\n", 100 * rms(g, 1));
	else
		printf("%s", form == TABLE ? "       --" : "     - --\n");
	if (g->nshared)
		printf(form == TABLE ? " %8.1f%% %8.1f%%\n" : "     - %.1f\n     - %.1f\n",
		       100 * sqrt(g->shared[0] / g->nshared), 100 * sqrt(g->shared[1] / g->nshared));
	else
		printf("%s", form == TABLE ? "        --        --\n" : "     - --\n     - --\n");
}

int main(int argc, char **argv)
{
	enum form form = argc == 2 && !strcmp(argv[1], "--table") ? TABLE : argc == 2 && !strcmp(argv[1], "--rst") ? RST : JSON;
	struct sums groups[32];
	size_t n = 0, i;
	int bad = 0;

	if (argc > 2 || (argc == 2 && form == JSON)) {
		fputs("usage: spyre-bench-timing [--table | --rst]\n", stderr);
		return 2;
	}
	head(form, false);
	for (i = 0; i < timing_ncases; i++) {
		const struct timing_case *c = &timing_cases[i];
		struct timing_result r;
		char err[256];
		struct sums *g;
		double l;

		if (!timing_run(c, &r, err)) {
			fprintf(stderr, "spyre-bench-timing: %s: %s\n", c->id, err);
			bad = 1;
			continue;
		}
		l = log(r.us / (c->published - c->floor));
		g = group(groups, &n, c);
		g->square[timing_held_out(c)] += l * l;
		g->n[timing_held_out(c)]++;
		if (c->makers > 0) {
			g->shared[0] += l * l;
			l = log(c->makers / (c->published - c->floor));
			g->shared[1] += l * l;
			g->nshared++;
		}
		print_case(form, c, r.us);
	}
	if (form == RST)
		puts("");
	head(form, true);
	for (i = 0; i < n; i++)
		print_sums(form, &groups[i]);
	return bad;
}
