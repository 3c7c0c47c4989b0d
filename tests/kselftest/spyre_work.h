/* SPDX-License-Identifier: MIT */
/*
 * Work that uses all of a card and checks every byte of it: host memory, copies both ways, fills, a
 * program, by all ways of handing control blocks over.
 */
#ifndef SPYRE_WORK_H
#define SPYRE_WORK_H

#include "spyre_test.h"

/* Nothing takes longer: the driver bounds whatever it waits for, and then says so. */
#define PATIENCE_MS	120000

/* What a round may end with beside enum spyre_status. */
#define LOST_RESPONSE	100	/* done, and without the response block that was asked for */
#define LOST_CARD	101	/* an ioctl says ENODEV, or the queue is LOST */
#define LOST_FENCE	102	/* a SUBMIT's fence ended with an error of its own job's */

/* One life: a file, a context, a queue. */
struct life {
	int fd;
	struct queue q;
	uint64_t *in, *out;		/* host memory */
	uint64_t in_at, out_at;		/* HMVAs */
	uint64_t a, b;			/* DMVAs, PAGE2M each */
	uint32_t sync;			/* syncobj of SUBMITs */
	struct spyre_cb program;
	uint64_t ras;			/* last record seen */
};

/* How control blocks are handed over, and waited for. */
enum way { POLL, SLEEP, SUBMIT, WAYS };

/*
 * 0, -errno, or enum spyre_status of the copy that loads the program. life_end() follows in any
 * case.
 */
int life_begin(struct life *l);
void life_end(struct life *l);
/* Whether the card's memory was lost since life_begin(). */
bool life_lost(const struct life *l);
/*
 * Host to a, a program and fills to b, b to host; takes PATIENCE_MS at most. salt: other data for
 * each round. 0: as it should be; else enum spyre_status, LOST_RESPONSE, LOST_CARD, LOST_FENCE,
 * -ETIME, or -EILSEQ: it was said to be done and is wrong, and why (of size bytes) says what.
 */
int life_round(struct life *l, uint64_t salt, enum way way, char *why, size_t size);

#endif
