// SPDX-License-Identifier: MIT
/*
 * Timelines. Names and arguments of the engines' events are those that IBM's trace analyser (acelyzer) reads:
 * "NAME DmaI", "Cmpt Prep", "Cmpt Exec", "DmaO" with TS1 to TS5 and Power in args. Times are microseconds of card
 * time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <job.h>

#include "trace.h"

#define EVENTS_MAX	40000u	/* of units; some 6 MB */
#define PHASES_MIN	16u
#define PHASES_MAX	4096u
#define LANES		8u
#define QUEUES		64u	/* with tracks of their own */

/* Tracks. Units are of process 1 + core. */
enum { TID_COMPUTE = 1, TID_DMI = 100, TID_DMO = 200, TID_DMX = 300, TID_QUEUE = 400, TID_UNIT = 1000 };

void trace_record(void *arg, const struct spyrert_activity *a)
{
	struct trace *t = arg;
	struct spyrert_activity *p;

	if (t->n == t->room) {
		p = realloc(t->records, (t->room * 2 + 64) * sizeof(*p));
		if (!p) {
			t->lost = true;
			return;
		}
		t->records = p;
		t->room = t->room * 2 + 64;
	}
	t->records[t->n++] = *a;
}

static bool first_of(const struct spyre_soc_profile *p, unsigned int core)
{
	return p->core[core].alike && __builtin_ctz(p->core[core].alike) == (int)core;
}

uint32_t trace_phases(const struct trace *t, const struct profile *p, size_t *drawn)
{
	size_t units = 0, launches = 0, i;
	unsigned int c, k;
	uint64_t each;

	for (i = 0; i < p->njobs; i++)
		for (c = 0; c < 32; c++)
			for (k = 0; first_of(&p->jobs[i].p, c) && k < SPYRE_PROFILE_UNITS; k++)
				units += p->jobs[i].p.core[c].unit[k].end != 0;
	for (i = 0; i < t->n; i++)
		launches += t->records[i].kind == SPYRERT_ACTIVITY_COMPUTE;
	units = units / (p->njobs ? p->njobs : 1) + 1;
	*drawn = EVENTS_MAX / PHASES_MIN / units;
	if (*drawn > launches)
		*drawn = launches;
	if (!*drawn)
		*drawn = 1;
	each = EVENTS_MAX / (*drawn * units);
	return each > PHASES_MAX ? PHASES_MAX : each < 2 ? 2 : (uint32_t)each;
}

/* 64-bit counter of TS1 to TS5: they lie within half a wrap of TS4. */
static uint64_t stamp(const struct spyrert_activity *a, unsigned int ts)
{
	return a->ts4 + (uint64_t)(int64_t)(int32_t)(a->ts[ts - 1] - (uint32_t)a->ts4);
}

static int by_start(const void *x, const void *y)
{
	const struct spyrert_activity *a = x, *b = y;
	uint64_t s = stamp(a, 1), t = stamp(b, 1);

	if (s != t)
		return s < t ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return a->correlation < b->correlation ? -1 : a->correlation > b->correlation;
}

struct writer {
	FILE *f;
	const char *name;
	uint32_t soc_hz;
	bool any;
};

static void begin(struct writer *w, const char *ph, unsigned int pid, unsigned int tid)
{
	fprintf(w->f, "%s\n{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u", w->any ? "," : "", ph, pid, tid);
	w->any = true;
}

static void string(struct writer *w, const char *s)
{
	fputc('"', w->f);
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			fprintf(w->f, "\\%c", *s);
		else
			fputc((unsigned char)*s < 0x20 ? ' ' : *s, w->f);
	fputc('"', w->f);
}

/* Both ends are rounded to the same grid, so that what touches here touches there. */
static int64_t grid(double us)
{
	return (int64_t)(us * 1e4 + 0.5);
}

static void when(struct writer *w, const char *key, int64_t t)
{
	fprintf(w->f, ",\"%s\":%" PRId64 ".%04d", key, t / 10000, (int)(t % 10000));
}

static double us(const struct writer *w, uint64_t cycles)
{
	return (double)cycles * 1e6 / w->soc_hz;
}

static void meta(struct writer *w, const char *what, unsigned int pid, unsigned int tid, const char *name)
{
	begin(w, "M", pid, tid);
	/* acelyzer drops events without ts. */
	fprintf(w->f, ",\"ts\":0,\"name\":\"%s\",\"args\":{\"name\":", what);
	string(w, name);
	fputs("}}", w->f);
}

static void args(struct writer *w, const struct spyrert_activity *a)
{
	unsigned int i;

	fprintf(w->f, ",\"args\":{");
	for (i = 0; i < 5; i++)
		fprintf(w->f, "\"TS%u\":\"0x%x\",", i + 1, a->ts[i]);
	fprintf(w->f, "\"Power\":\"0x%x\",\"stream\":%u,\"correlation\":%" PRIu64 ",\"status\":\"%s\",\"bytes\":%" PRIu64 ",\"cycles\":%"
		PRIu64 "}}", a->power, a->stream, a->correlation, spyrert_status_name((enum spyrert_status)a->status), a->bytes,
		a->cycles);
}

static void engine(struct writer *w, const struct spyrert_activity *a, unsigned int tid, const char *suffix,
		   unsigned int from, unsigned int to)
{
	int64_t t0 = grid(us(w, stamp(a, from))), t1 = grid(us(w, stamp(a, to)));
	char name[300];

	if (t1 <= t0)
		return;
	snprintf(name, sizeof(name), "%.200s %s", w->name, suffix);
	begin(w, "X", 0, tid);
	fputs(",\"cat\":\"engine\",\"name\":", w->f);
	string(w, name);
	when(w, "ts", t0);
	when(w, "dur", t1 - t0);
	args(w, a);
}

/*
 * Engines of a kind are several and do not say which one they were, and operations of a queue may overlap: the
 * first track that is free.
 */
static unsigned int lane(uint64_t *free, const struct spyrert_activity *a)
{
	unsigned int i;

	for (i = 0; i < LANES - 1 && free[i] > stamp(a, 1); i++)
		;
	free[i] = stamp(a, 5);
	return i;
}

/* Not asynchronous events: acelyzer takes none without a duration. */
static void queue(struct writer *w, const struct spyrert_activity *a, uint64_t *free)
{
	static const char *const names[] = {
		"nop", "compute", "h2d", "d2h", "d2d", "fill", "signal", "wait", "timestamp",
	};
	int64_t t0 = grid(us(w, stamp(a, 1))), t1 = grid(us(w, stamp(a, 5)));

	begin(w, "X", 0, TID_QUEUE + a->stream % QUEUES * LANES + lane(free, a));
	fprintf(w->f, ",\"cat\":\"queue\",\"name\":\"queue %u: %s\"", a->stream, a->kind < 9 ? names[a->kind] : "?");
	when(w, "ts", t0);
	when(w, "dur", t1 - t0);
	fprintf(w->f, ",\"args\":{\"correlation\":%" PRIu64 "}}", a->correlation);
}

/* A job's units under its execution: their time is stretched to it, as a card that throttles stretches it. */
static void units(struct writer *w, const struct spyrert_activity *a, const struct spyre_soc_profile *p)
{
	static const char *const names[SPYRE_SPENT] = { "busy", "starved", "blocked" };
	double t0 = us(w, stamp(a, 3)), scale = (us(w, stamp(a, 4)) - t0) / (double)p->total;
	unsigned int c, k, x;
	uint32_t i;

	for (c = 0; c < 32; c++) {
		for (k = 0; first_of(p, c) && k < SPYRE_PROFILE_UNITS; k++) {
			const struct spyre_unit_profile *u = &p->core[c].unit[k];

			for (i = 0; i < u->nphases; i++) {
				const struct spyre_phase *ph = &u->phase[i];
				int64_t s = grid(t0 + (double)ph->start * scale), e = grid(t0 + (double)ph->end * scale);
				unsigned int most = 0;

				for (x = 1; x < SPYRE_SPENT; x++)
					if (ph->spent[x] > ph->spent[most])
						most = x;
				begin(w, "X", 1 + c, TID_UNIT + c * 32 + k);
				fprintf(w->f, ",\"cat\":\"unit\",\"name\":\"%s\"", names[most]);
				when(w, "ts", s);
				when(w, "dur", e - s);
				fprintf(w->f, ",\"args\":{\"busy\":%.4f,\"starved\":%.4f,\"blocked\":%.4f}}",
					(double)ph->spent[0] / SPYRE_SOC_TICKS, (double)ph->spent[1] / SPYRE_SOC_TICKS,
					(double)ph->spent[2] / SPYRE_SOC_TICKS);
			}
		}
	}
}

static void unit_names(struct writer *w, const struct profile *all)
{
	char name[80];
	unsigned int c, k, x;
	size_t i;

	for (c = 0; c < 32; c++) {
		bool named = false;

		for (k = 0; k < SPYRE_PROFILE_UNITS; k++)
			for (i = 0; i < all->njobs; i++) {
				const struct spyre_soc_profile *p = &all->jobs[i].p;

				if (!first_of(p, c) || !p->core[c].unit[k].nphases)
					continue;
				if (!named) {
					snprintf(name, sizeof(name), "core %u, for cores 0x%08x", c, p->core[c].alike);
					meta(w, "process_name", 1 + c, 0, name);
					named = true;
				}
				x = k >= SPYRE_PROFILE_PORT ? k - SPYRE_PROFILE_PORT : job_unit_corelet(k);
				if (k < SPYRE_UNIT_LXLU)
					snprintf(name, sizeof(name), "%s", profile_unit_name(k));
				else
					snprintf(name, sizeof(name), "%s %u", profile_unit_name(k), x);
				meta(w, "thread_name", 1 + c, TID_UNIT + c * 32 + k, name);
				break;
			}
	}
}

int trace_write(const char *path, struct trace *t, const struct profile *p, size_t drawn, const char *name,
		uint32_t soc_hz)
{
	uint64_t dmi[LANES] = { 0 }, dmo[LANES] = { 0 }, dmx[LANES] = { 0 }, queues[QUEUES][LANES] = { 0 };
	struct writer w = { .name = name, .soc_hz = soc_hz };
	size_t i, jobs = 0;
	int err;

	w.f = fopen(path, "w");
	if (!w.f)
		return -1;
	qsort(t->records, t->n, sizeof(t->records[0]), by_start);
	fprintf(w.f, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"soc_hz\":%u},\"traceEvents\":[", soc_hz);
	meta(&w, "process_name", 0, 0, "card");
	meta(&w, "thread_name", 0, TID_COMPUTE, "compute");
	meta(&w, "thread_name", 0, TID_DMI, "DMI");
	meta(&w, "thread_name", 0, TID_DMO, "DMO");
	meta(&w, "thread_name", 0, TID_DMX, "DMX");
	unit_names(&w, p);
	for (i = 0; i < t->n; i++) {
		const struct spyrert_activity *a = &t->records[i];

		queue(&w, a, queues[a->stream % QUEUES]);
		switch (a->kind) {
		case SPYRERT_ACTIVITY_COMPUTE:
			engine(&w, a, TID_COMPUTE, "Cmpt Prep", 2, 3);
			engine(&w, a, TID_COMPUTE, "Cmpt Exec", 3, 4);
			if (a->card_status == 0 && p->njobs && jobs < drawn)
				units(&w, a, &p->jobs[jobs % p->njobs].p);
			jobs++;
			break;
		case SPYRERT_ACTIVITY_H2D:
			engine(&w, a, TID_DMI + lane(dmi, a), "DmaI", 1, 2);
			break;
		case SPYRERT_ACTIVITY_D2H:
			engine(&w, a, TID_DMO + lane(dmo, a), "DmaO", 4, 5);
			break;
		case SPYRERT_ACTIVITY_D2D:
		case SPYRERT_ACTIVITY_FILL:
			engine(&w, a, TID_DMX + lane(dmx, a), "DmaX", 1, 5);
			break;
		}
	}
	fputs("\n]}\n", w.f);
	err = ferror(w.f) ? EIO : 0;
	if (fclose(w.f))
		err = errno;
	errno = err;
	return err ? -1 : 0;
}
