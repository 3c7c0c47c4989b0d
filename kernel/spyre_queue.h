/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_QUEUE_H
#define SPYRE_QUEUE_H

#include <linux/kref.h>
#include <linux/list.h>

#include <spyre/cb.h>

struct drm_device;
struct drm_file;
struct spyre_bind;
struct spyre_bo;
struct spyre_ctx;

/**
 * struct spyre_queue - a queue; under its context's lock unless said otherwise
 * @ref: references: the context's and waiters'
 * @ctx: its context, a reference
 * @id: what the user calls it, 0: the kernel's
 * @page: its doorbell page, which is what the firmware calls it
 * @entries: ring size, constant
 * @priority: constant
 * @timeout: default timeout of its control blocks, SoC cycles, constant
 * @on_card: the firmware knows it
 * @dead: destroyed; read without lock by waiters
 * @ring: ring and shadow tail, constant
 * @status: status page and response ring, constant
 * @doorbell: doorbell page for mappings, constant; there are none of the kernel's queues
 * @ring_bind: where the card sees @ring
 * @status_bind: where the card sees @status
 * @file: who may map; a key, never followed; NULL once nobody may
 * @zombie: in &spyre_ctx.zombies
 * @rcu: frees it
 */
struct spyre_queue {
	struct kref ref;
	struct spyre_ctx *ctx;
	u32 id;
	u32 page;
	u32 entries;
	u32 priority;
	u64 timeout;
	bool on_card;
	bool dead;
	struct spyre_bo *ring;
	struct spyre_bo *status;
	struct spyre_bo *doorbell;
	struct spyre_bind *ring_bind;
	struct spyre_bind *status_bind;
	struct drm_file *file;
	struct list_head zombie;
	struct rcu_head rcu;
};

void *spyre_queue_slot(const struct spyre_queue *q, u32 index);
struct spyre_shadow *spyre_queue_shadow(const struct spyre_queue *q);
struct spyre_queue_status *spyre_queue_status(const struct spyre_queue *q);
struct spyre_rb *spyre_queue_response(const struct spyre_queue *q, u32 index);
bool spyre_queue_push(struct spyre_queue *q, const struct spyre_cb *cbs, u32 n);
struct spyre_queue *spyre_queue_create(struct spyre_ctx *ctx, u32 entries, u32 priority,
				       u64 timeout);
int spyre_queue_recreate(struct spyre_queue *q);
int spyre_queue_stop(struct spyre_queue *q);
void spyre_queue_release(struct spyre_queue *q);
void spyre_queue_final(struct spyre_queue *q, u32 status, u32 gen);
struct spyre_queue *spyre_queue_get(struct spyre_ctx *ctx, u32 id);
void spyre_queue_put(struct spyre_queue *q);

int spyre_queue_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int spyre_queue_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int spyre_queue_reset_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int spyre_queue_kick_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);

#endif
