/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_RAS_H
#define SPYRE_RAS_H

#include <linux/atomic.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "kernel_compat.h"

struct drm_device;
struct drm_file;
struct drm_spyre_ras;
struct seq_file;
struct spyre_ctx;
struct spyre_device;
struct spyre_msg_ras;

/**
 * struct spyre_ras_log - a ring of records
 * @lock: protects the rest
 * @last: number of the newest record, the first is 1
 * @size: records it holds
 * @records: record n is at n % size
 */
struct spyre_ras_log {
	spinlock_t lock;	/* see above */
	u64 last;
	u32 size;
	struct drm_spyre_ras *records;
};

/* What an error was to the card. */
enum spyre_ras_kind {
	SPYRE_RAS_CORRECTED,	/* nobody lost anything */
	SPYRE_RAS_UNCORRECTED,	/* of its hardware or firmware, and somebody's work was lost */
	SPYRE_RAS_JOB,		/* of a program: the card is well */
	SPYRE_RAS_KINDS
};

/* Counters of a kind: one for each code that the driver knows, and one for the others. */
#define SPYRE_RAS_COUNTERS	16

/**
 * struct spyre_ras_counts - errors of one kind since the card was bound
 * @node: what the kernel shows them as, where it does
 * @kind: which kind
 * @listed: @node is registered; written by probe and removal
 * @count: by the index of the code
 */
struct spyre_ras_counts {
	struct drm_ras_node node;
	enum spyre_ras_kind kind;
	bool listed;
	atomic_t count[SPYRE_RAS_COUNTERS];
};

int spyre_ras_log_init(struct spyre_ras_log *log, u32 size);
void spyre_ras_log_fini(struct spyre_ras_log *log);
void spyre_ras_init(struct spyre_device *sdev);
void spyre_ras_fini(struct spyre_device *sdev);
void spyre_ras_show(struct spyre_device *sdev, struct seq_file *m);
void spyre_ras_event(struct spyre_device *sdev, const struct spyre_msg_ras *msg);
void spyre_ras_own(struct spyre_device *sdev, struct spyre_ctx *ctx, u32 code, u32 status);
int spyre_ras_read_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);

#endif
