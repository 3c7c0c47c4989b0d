/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_SUBMIT_H
#define SPYRE_SUBMIT_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <spyre/hw.h>

struct drm_device;
struct drm_file;
struct spyre_ctx;
struct spyre_device;

#define SPYRE_SUBMIT_CBS	64u	/* control blocks of one SUBMIT: any ring has as many */
#define SPYRE_SUBMIT_SYNCS	64u	/* syncobjs on each side of one SUBMIT */
#define SPYRE_SUBMIT_JOBS	1024u	/* unfinished SUBMITs of one context */

/**
 * struct spyre_holder - who holds an engine, as the watch saw it last
 * @job: as in struct spyre_msg_engines, 0: nobody
 * @progress: of the engine
 * @since: jiffies when @job was seen first
 * @moved: jiffies when @progress was seen to move last
 * @blamed: its context was reset already
 */
struct spyre_holder {
	u32 job;
	u32 progress;
	unsigned long since;
	unsigned long moved;
	bool blamed;
};

/**
 * struct spyre_submits - kernel submission of one card
 * @lock: protects @list and what the contexts' struct spyre_submit say it protects
 * @list: of struct spyre_submit
 * @wq: runs the schedulers and @watch; with a rescuer, as memory may wait for what it does
 * @watch: looks while anything is unfinished: for what an interrupt did not tell, for who holds the
 *	   engines, for what does not end at all
 * @holder: of the watch alone
 */
struct spyre_submits {
	spinlock_t lock;	/* see above */
	struct list_head list;
	struct workqueue_struct *wq;
	struct delayed_work watch;
	struct spyre_holder holder[SPYRE_REG_ENGINES_MAX];
};

int spyre_submits_init(struct spyre_device *sdev);
void spyre_submits_fini(struct spyre_device *sdev);
void spyre_submits_fail(struct spyre_device *sdev, int error);
void spyre_submits_pause(struct spyre_device *sdev);

void spyre_submit_look(struct spyre_ctx *ctx);
u32 spyre_submit_at(struct spyre_ctx *ctx);
void spyre_submit_resume(struct spyre_ctx *ctx);
void spyre_submit_kill(struct spyre_ctx *ctx);
void spyre_submit_detach(struct spyre_ctx *ctx, int error);
void spyre_submit_end(struct spyre_ctx *ctx);
void spyre_submit_free(struct spyre_ctx *ctx);
u32 spyre_submit_count(struct spyre_ctx *ctx);

int spyre_submit_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);

#endif
