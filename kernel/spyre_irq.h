/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_IRQ_H
#define SPYRE_IRQ_H

#include <linux/mutex.h>
#include <linux/types.h>

#include <spyre/hw.h>

struct spyre_device;
struct spyre_vec_event;

#define SPYRE_VEC_ENTRIES	256u

/**
 * struct spyre_vector - one MSI vector and the event ring of its queues
 * @sdev: card
 * @number: vector
 * @lock: one reader of the ring; protects @head
 * @ring: written by the card, or NULL for a vector without queues
 * @dma: its bus address
 * @head: entries before it were read
 * @count: interrupts taken
 * @name: for /proc/interrupts
 */
struct spyre_vector {
	struct spyre_device *sdev;
	u32 number;
	struct mutex lock;	/* see above */
	struct spyre_vec_event *ring;
	dma_addr_t dma;
	u32 head;
	atomic_t count;
	char name[24];
};

struct spyre_irq {
	u32 vectors;		/* 1 or SPYRE_MSI_VECTORS */
	bool quiet;		/* handlers are off; under &spyre_device.reset_sem (write) */
	atomic_t next;		/* next queue vector to give to a context */
	struct spyre_vector vector[SPYRE_MSI_VECTORS];
};

int spyre_irq_init(struct spyre_device *sdev);
void spyre_irq_fini(struct spyre_device *sdev);
void spyre_irq_quiet(struct spyre_device *sdev, bool quiet);
void spyre_irq_start(struct spyre_device *sdev);
u32 spyre_irq_pick(struct spyre_device *sdev);

#endif
