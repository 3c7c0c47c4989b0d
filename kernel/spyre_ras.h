/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_RAS_H
#define SPYRE_RAS_H

#include <linux/spinlock.h>
#include <linux/types.h>

struct drm_device;
struct drm_file;
struct drm_spyre_ras;
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

int spyre_ras_log_init(struct spyre_ras_log *log, u32 size);
void spyre_ras_log_fini(struct spyre_ras_log *log);
void spyre_ras_event(struct spyre_device *sdev, const struct spyre_msg_ras *msg);
void spyre_ras_own(struct spyre_device *sdev, struct spyre_ctx *ctx, u32 code, u32 status);
int spyre_ras_read_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);

#endif
