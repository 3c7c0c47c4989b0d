/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_RESET_H
#define SPYRE_RESET_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

struct pci_error_handlers;
struct spyre_device;

/* Rungs of the ladder that are the card's; queues and contexts are reset by mailbox commands. */
enum spyre_rung {
	SPYRE_RUNG_NONE,
	SPYRE_RUNG_FIRMWARE,	/* card memory and tables stay */
	SPYRE_RUNG_FLR,		/* card memory is lost */
	SPYRE_RUNG_DEAD,	/* off the bus until it is bound again */
};

/**
 * struct spyre_reset - recovery
 * @lock: protects @wanted and @reason
 * @wanted: highest rung asked for
 * @reason: why, constant text
 * @work: does it
 * @watch: looks at the card every second while anyone uses it
 * @overdue: looks after a card whose slot was to be reset
 * @frozen: jiffies of the PCI error that @overdue is about
 * @busy: jiffies when somebody was last seen to reset it; of @overdue
 * @beat: heartbeat at the last look; of the watch
 * @context: contexts reset
 * @firmware: restarts done
 * @flr: function-level resets done, those of others included
 * @over: who waits for &spyre_device.recovering to end
 * @stamps: jiffies of the last restarts and resets, for rate limiting; of @work
 */
struct spyre_reset {
	spinlock_t lock;	/* see above */
	enum spyre_rung wanted;
	const char *reason;
	struct work_struct work;
	struct delayed_work watch;
	struct delayed_work overdue;
	unsigned long frozen;
	unsigned long busy;
	u32 beat;
	atomic_t context;
	atomic_t firmware;
	atomic_t flr;
	wait_queue_head_t over;
	unsigned long stamps[2][4];
};

extern const struct pci_error_handlers spyre_error_handlers;

void spyre_reset_init(struct spyre_device *sdev);
void spyre_reset_fini(struct spyre_device *sdev);
void spyre_reset_request(struct spyre_device *sdev, enum spyre_rung rung, const char *reason);
void spyre_reset_watch(struct spyre_device *sdev);
void spyre_show_card(struct spyre_device *sdev, bool show);
void spyre_lose_all(struct spyre_device *sdev, u32 status);
void spyre_recovery_over(struct spyre_device *sdev);
void spyre_quiesce(struct spyre_device *sdev);
int spyre_restart(struct spyre_device *sdev);
int spyre_boot_and_restore(struct spyre_device *sdev, bool memory_kept);

#endif
