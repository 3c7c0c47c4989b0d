/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Spyre card as a QEMU device: PCI and QOM around the model in model/.
 *
 * Locks. Everything here runs under QEMU's big lock except the host operations of the model
 * (dma_map, clock_ns, timer_mod, raise, log, trace, inconsistent), which the model's threads call
 * without it and which never take it: what needs it is left to a bottom half.
 */
#ifndef HW_MISC_SPYRE_H
#define HW_MISC_SPYRE_H

#include "qemu/thread.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "exec/memory.h"
#include "hw/pci/pci_device.h"
#include "chardev/char-fe.h"
#include "system/hostmem.h"
#include "qom/object.h"

#include "model/spyre_model.h"

#define TYPE_SPYRE "spyre"
OBJECT_DECLARE_SIMPLE_TYPE(SpyreState, SPYRE)

typedef struct SpyreMap SpyreMap;
typedef struct SpyreXlate SpyreXlate;
typedef struct SpyreIommu SpyreIommu;

typedef enum SpyreOnError {
	SPYRE_ON_ERROR_REPORT,
	SPYRE_ON_ERROR_HALT_CARD,
	SPYRE_ON_ERROR_STOP_VM,
} SpyreOnError;

/* Host memory as the card's bus mastering sees it (spyre-dma.c). */
typedef struct SpyreDma {
	MemoryListener listener;	/* on the card's bus-master address space */
	MemoryListener system;		/* on system memory, for what was translated by an IOMMU */
	bool listening;

	/* Big lock: sections of the transaction under way. */
	GArray *sections;
	GPtrArray *gone;	/* regions to let go of once no worker uses them */
	bool changed, lost, system_lost;
	QLIST_HEAD(, SpyreIommu) iommus;

	SpyreMap *map;		/* RCU: what workers search */
	bool allowed;		/* atomic: bus mastering on, in D0, not removed */

	QEMUBH *bh;
	/* Guards the next members; a leaf, never held while waiting or translating. */
	QemuMutex lock;
	QemuCond cond;
	QSIMPLEQ_HEAD(, SpyreXlate) requests;
	GHashTable *iotlb;	/* bus page number to SpyreTlbEntry */
	uint64_t next_id;
	/* Entries were thrown out for space: any unmap must wait for the workers. */
	bool forgot;
	bool closed;
} SpyreDma;

struct SpyreState {
	PCIDevice parent_obj;

	struct spyre_card *card;
	char *name;		/* for messages and trace events */

	MemoryRegion regs;	/* BAR 0 */
	MemoryRegion regs_io;
	MemoryRegion regs_doorbells;
	MemoryRegion aperture_bar;	/* BAR 2 */
	MemoryRegion aperture_ram;
	MemoryRegion aperture_beyond;
	MemoryRegion doorbells;	/* BAR 4 */

	SpyreDma dma;

	QEMUTimer *timer;
	QEMUBH *irq_bh;
	QEMUTimer *irq_timer;
	QEMUTimer *raise_timer;		/* with sliced: in place of irq_bh */
	bool sliced;			/* -icount: the card runs inside its timer alone */
	Notifier machine_done;		/* with sliced */
	uint32_t irq_pending;	/* atomic: bit per vector */
	uint64_t irq_delay;	/* injected: nanoseconds that the next interrupt is late */
	bool irq_held;		/* irq_timer runs, and nothing is sent before it expires */
	QEMUBH *error_bh;
	uint32_t errors;	/* atomic: inconsistencies not yet acted on */
	bool dead;		/* atomic: unrealized, callbacks do nothing */
	bool removed;		/* surprise removal: reads give ones */

	/* Messages of the model, rate limited; the lock is a leaf. */
	QemuMutex log_lock;
	int64_t log_window;
	unsigned int log_count, log_suppressed;

	/* gdb: bytes of the stub on their way to the chardev; the lock is a leaf. */
	QemuMutex gdb_lock;
	GByteArray *gdb_out;
	QEMUBH *gdb_bh;

	/* Properties. */
	uint64_t memory;
	HostMemoryBackend *memdev;
	uint32_t threads;
	char *timing;
	char *accumulate;
	char *check;
	uint32_t soc_hz, core_hz, mcu_hz;
	char *serial;
	uint64_t aperture;
	uint32_t cores;
	uint64_t watchdog;
	char *on_error_text;
	SpyreOnError on_error;
	CharBackend gdb;
};

/* spyre-dma.c */
void spyre_dma_init(SpyreState *s);		/* instance_init */
void spyre_dma_realize(SpyreState *s);
void spyre_dma_unrealize(SpyreState *s);
void spyre_dma_finalize(SpyreState *s);
/* Bus mastering as config space has it now. Off: returns when no worker touches host memory. */
void spyre_dma_allow(SpyreState *s, bool on);
void *spyre_dma_map(void *opaque, uint64_t addr, uint64_t *len, bool write);

/* spyre-qom.c */
void spyre_class_add_properties(ObjectClass *oc);	/* state, inject-* */
/* Readable properties, by the names of the model. */
bool spyre_add_counters(SpyreState *s, Error **errp);
const char *spyre_state_name(uint64_t state);

/* spyre-pci.c: faults of the link and of the slot. */
void spyre_surprise_removal(SpyreState *s);
bool spyre_train_link(SpyreState *s, unsigned int speed, unsigned int width, Error **errp);
bool spyre_inject_aer(SpyreState *s, const char *severity, Error **errp);
void spyre_delay_irq(SpyreState *s, uint64_t ns);

#endif
