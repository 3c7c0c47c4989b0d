/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_CTX_H
#define SPYRE_CTX_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include <drm/spyre_accel.h>

#include <spyre/cb.h>

#include "spyre_ras.h"
#include "spyre_vm.h"

struct spyre_device;
struct spyre_file;
struct spyre_queue;
struct spyre_submit;
struct spyre_user;

/* Memory that a context shares with the card: kernel-only. */
struct spyre_ctx_shared {
	struct spyre_arm arm;
	struct spyre_usage usage __aligned(64);
};

/**
 * struct spyre_ctx - a context
 * @ref: references: its file's or the device's, its queues', waiters'
 * @sdev: card
 * @id: firmware's id
 * @vector: MSI vector of its queues
 * @user: whose quota it counts in, NULL: the driver's own
 * @exempt: its opener is exempt from quotas
 * @lock: protects @queues, @zombies, @blocks, @vm, @lost, @detached; held across mailbox commands
 * @lost: not on the card any more; written under @lock
 * @detached: its resources were given back
 * @queues: by the id the user knows
 * @zombies: queues whose end the card did not confirm
 * @blocks: doorbell blocks: number to mask of used pages
 * @kqueue: the kernel's queue: clears memory in the driver's own context, is SUBMIT's in others
 * @submit: SUBMIT, NULL before the first; set once under @lock, read with acquire
 * @vm: address space
 * @limbo: in &spyre_device.limbo
 * @shared: with the card, NULL once it is gone; under &spyre_device.wake_lock
 * @shared_dma: its bus address
 * @arm: last value of the arm word, under &spyre_device.wake_lock
 * @waitq: who waits for queues of this context
 * @waited: buffers bound here for whose words somebody armed, of struct spyre_bound, under
 *	    &spyre_device.wake_lock
 * @usage: last usage seen, for after the card is gone; under &spyre_device.wake_lock
 * @usage_base: what earlier runs of the firmware had counted; under &spyre_device.wake_lock
 * @ras: its records
 */
struct spyre_ctx {
	struct kref ref;
	struct spyre_device *sdev;
	u32 id;
	u32 vector;
	struct spyre_user *user;
	bool exempt;
	struct mutex lock;	/* see above */
	bool lost;
	bool detached;
	struct xarray queues;
	struct list_head zombies;
	struct xarray blocks;
	struct spyre_queue *kqueue;
	struct spyre_submit *submit;
	struct spyre_vm vm;
	struct list_head limbo;
	struct spyre_ctx_shared *shared;
	dma_addr_t shared_dma;
	u32 arm;
	wait_queue_head_t waitq;
	struct list_head waited;
	struct drm_spyre_usage usage;
	struct drm_spyre_usage usage_base;
	struct spyre_ras_log ras;
};

struct spyre_ctx *spyre_ctx_create(struct spyre_device *sdev, struct spyre_user *user, bool exempt);
int spyre_ctx_recreate(struct spyre_ctx *ctx);
int spyre_ctx_reset(struct spyre_ctx *ctx);
void spyre_ctx_close(struct spyre_ctx *ctx);
void spyre_ctx_lose(struct spyre_ctx *ctx, u32 status, u32 gen);
void spyre_ctx_free_limbo(struct spyre_device *sdev);
struct spyre_ctx *spyre_file_ctx(struct spyre_file *file);
struct spyre_ctx *spyre_file_ctx_peek(struct spyre_file *file);
struct spyre_ctx *spyre_ctx_get_id(struct spyre_device *sdev, u32 id);
void spyre_ctx_put(struct spyre_ctx *ctx);
void spyre_ctx_arm(struct spyre_ctx *ctx);
void spyre_ctx_wake(struct spyre_ctx *ctx);
void spyre_ctx_wake_id(struct spyre_device *sdev, u32 id);
void spyre_ctx_usage(struct spyre_ctx *ctx, struct drm_spyre_usage *out);
int spyre_ctx_get_page(struct spyre_ctx *ctx, u32 *page);
void spyre_ctx_put_page(struct spyre_ctx *ctx, u32 page);

#endif
