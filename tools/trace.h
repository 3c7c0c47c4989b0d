/* SPDX-License-Identifier: MIT */
/* Timelines in the trace event format, from what a card answered and from profiles. */
#ifndef TOOLS_TRACE_H
#define TOOLS_TRACE_H

#include <spyrert.h>

#include "profile.h"

struct trace {
	struct spyrert_activity *records;
	size_t n, room;
	bool lost;		/* memory ran out */
};

/* spyrert_activity_callback; arg: struct trace. */
void trace_record(void *arg, const struct spyrert_activity *a);

/* How many phases of each unit to ask for, so that these take some MB of a file; *drawn: launches with units. */
uint32_t trace_phases(const struct trace *t, const struct profile *p, size_t *drawn);

/*
 * Writes the records, called name, and under the first drawn computations the units' phases. Sorts the records.
 * 0, or -1 with errno.
 */
int trace_write(const char *path, struct trace *t, const struct profile *p, size_t drawn, const char *name,
		uint32_t soc_hz);

#endif
