/* SPDX-License-Identifier: MIT */
/*
 * Published times of the card, and how to make the same work for the model. Read by spyre-bench-timing
 * and by the tests; Documentation/timing.rst says where each figure comes from and which are left out.
 */
#ifndef TIMING_CASES_H
#define TIMING_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soc.h"
#include "spyregen.h"

enum timing_kind {
	TIMING_STREAM,		/* bytes between memory and LX: rd and wr of each core, bursts of 4 KiB */
	TIMING_SHARED,		/* n cores read the same rd bytes, each for itself */
	TIMING_LX_SHARED,	/* core 0 stores rd bytes to each of n cores' LX */
	TIMING_LX_COPY,		/* m words within one core's LX, through both PEs */
	TIMING_LX_MEAN,		/* mean over m words for each of n sticks, in one core's LX */
	TIMING_MATMUL,		/* m x k times k x n */
	TIMING_ELEMENTWISE,	/* op on m x n */
	TIMING_ROW,		/* rowop on m x n */
};

struct timing_case {
	const char *id;		/* decides who is held out: never change one */
	const char *group;
	const char *source;	/* key and place, as Documentation/timing.rst lists them */
	bool formula;		/* a point of a published formula, not a measurement */
	enum timing_kind kind;
	double published;	/* microseconds */
	double floor;		/* of which this much is no work of the card */
	double makers;		/* what the makers' published cost model says of a measured case; 0: nothing */
	uint32_t cores;		/* how many, from core 0; 0: all */
	uint32_t m, n, k, split_m, split_n;
	uint64_t rd, wr;
	enum spyregen_op op;
	enum spyregen_rowop rowop;
	uint32_t times;		/* the job runs so often, 0: once */
	uint32_t core_hz;	/* clock of the card that was measured; 0: the default */
};

extern const struct timing_case timing_cases[];
extern const size_t timing_ncases;

/* True for the third that takes no part in fitting: SHA-256 of the id, as a number, divisible by 3. */
bool timing_held_out(const struct timing_case *c);

struct timing_result {
	double us;			/* modelled */
	double peak_us;			/* what no program can be below, by the model's rates */
	struct spyre_soc_time time;	/* of one run */
};

/*
 * Times a case on a card of the default configuration, but for the case's clock. False: err (at least 256
 * bytes) says why.
 */
bool timing_run(const struct timing_case *c, struct timing_result *r, char *err);
/* The container that timing_run() times; malloc()ed. NULL: err says why. */
void *timing_container(const struct timing_case *c, size_t *size, char *err);

#endif
