/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_MBOX_H
#define SPYRE_MBOX_H

#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct spyre_device;
struct spyre_msg;

#define SPYRE_MBOX_CMDS		64u
#define SPYRE_MBOX_EVTS		256u

/**
 * struct spyre_mbox - command and event ring
 */
struct spyre_mbox {
	/** @lock: protects @tail, @tag, @pending, @up */
	spinlock_t lock;
	/** @evt_lock: one reader of the event ring; protects @head */
	struct mutex evt_lock;
	/** @cmd: command ring, SPYRE_MBOX_CMDS entries */
	struct spyre_msg *cmd;
	/** @evt: event ring, SPYRE_MBOX_EVTS entries */
	struct spyre_msg *evt;
	/** @cmd_dma: bus address of @cmd */
	dma_addr_t cmd_dma;
	/** @evt_dma: bus address of @evt */
	dma_addr_t evt_dma;
	/** @tail: commands sent since the firmware booted */
	u32 tail;
	/** @head: events taken since the firmware booted */
	u32 head;
	/** @tag: of the last command */
	u32 tag;
	/** @pending: commands waiting for their answer */
	struct list_head pending;
	/** @up: commands are taken; else they fail at once */
	bool up;
	/** @calls: commands sent */
	atomic_t calls;
	/** @late: answers nobody waited for any more */
	atomic_t late;
	/** @polled: answers found without an interrupt */
	atomic_t polled;
	/** @timeouts: commands that met their deadline */
	atomic_t timeouts;
};

/*
 * An error that is no answer of the firmware: it may have done what the command says, may still do
 * it, or never heard of it. What the command named must stay until the card was stopped.
 */
static inline bool spyre_mbox_unanswered(int error)
{
	return error == -EIO || error == -ENODEV || error == -ETIMEDOUT;
}

int spyre_mbox_init(struct spyre_device *sdev);
void spyre_mbox_start(struct spyre_device *sdev);
void spyre_mbox_stop(struct spyre_device *sdev, int error);
bool spyre_mbox_process(struct spyre_device *sdev);
int spyre_mbox_call(struct spyre_device *sdev, u32 type, const void *body, size_t len,
		    void *answer, size_t answer_len);
int spyre_mbox_try_id(struct spyre_device *sdev, u32 type, u32 id, u32 arg);
int spyre_mbox_id(struct spyre_device *sdev, u32 type, u32 id, u32 arg);

#endif
