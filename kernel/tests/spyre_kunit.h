/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KUnit tests. spyre_X_kunit.c is included at the end of spyre_X.c, as it tests what is static
 * there, and makes one suite; spyre_kunit.ko runs them when it is loaded. A driver built without
 * SPYRE_KUNIT=1 has none of it.
 */
#ifndef SPYRE_KUNIT_H
#define SPYRE_KUNIT_H

#include <kunit/device.h>
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <kunit/visibility.h>

struct spyre_ctx;
struct spyre_device;
struct spyre_queue;

extern struct kunit_suite spyre_ctx_suite;
extern struct kunit_suite spyre_irq_suite;
extern struct kunit_suite spyre_mbox_suite;
extern struct kunit_suite spyre_mem_suite;
extern struct kunit_suite spyre_queue_suite;
extern struct kunit_suite spyre_ras_suite;
extern struct kunit_suite spyre_reset_suite;
extern struct kunit_suite spyre_submit_suite;
extern struct kunit_suite spyre_table_suite;
extern struct kunit_suite spyre_user_suite;
extern struct kunit_suite spyre_vm_suite;
extern struct kunit_suite spyre_wait_suite;

/*
 * A card that is not there: registers and the driver's area are ordinary memory, everything that
 * probe sets up without the card is as after it. It is gone with the test. Marked as being taken
 * away, so that nothing is queued for it; the mailbox is down.
 */
struct spyre_device *spyre_kunit_device(struct kunit *test);

/* A context of it, with an address space and no user. */
struct spyre_ctx *spyre_kunit_ctx(struct kunit *test, struct spyre_device *sdev);

/* A queue of it with memory for ring and status page; the card does not know it. */
struct spyre_queue *spyre_kunit_queue(struct kunit *test, struct spyre_ctx *ctx, u32 entries);

/* The same numbers in every run. */
static inline u32 spyre_kunit_random(u32 *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

#endif
