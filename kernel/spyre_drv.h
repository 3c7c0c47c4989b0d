/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_DRV_H
#define SPYRE_DRV_H

#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/xarray.h>

#include <drm/drm_device.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_managed.h>
#include <drm/drm_print.h>
#include <drm/spyre_accel.h>

#include <spyre/fw.h>

#include "spyre_fw.h"
#include "spyre_irq.h"
#include "spyre_mbox.h"
#include "spyre_mem.h"
#include "spyre_ras.h"
#include "spyre_reset.h"
#include "spyre_submit.h"
#include "spyre_table.h"
#include "spyre_telemetry.h"
#include "spyre_user.h"

struct spyre_ctx;

/**
 * DOC: Locks
 *
 * Order, outer first:
 *
 * 1. &spyre_device.reset_sem - read: whoever talks to the card or relies on its state; write:
 *    reset, suspend, removal. Never taken below mmap_lock.
 * 2. &spyre_file.lock - makes the file's context.
 * 3. &spyre_ctx.lock - queues and address space of one context; held across mailbox commands.
 * 4. &spyre_mem.scrub_lock - one scrub at a time; takes the kernel context's lock inside (which
 *    is no user's, so order 3 is not inverted: lockdep subclass 1).
 * 5. &spyre_telemetry.lock - one reader of the sensors; held across its mailbox command.
 * 6. &spyre_mem.lock, &spyre_tables.lock, &spyre_device.bo_lock, &spyre_users.lock,
 *    &spyre_device.limbo_lock - leaves, but that bo_lock takes the dma_resv of what was imported.
 * 7. &spyre_mbox.evt_lock - one reader of the event ring: whoever waits for an answer, all of the
 *    above held, or the interrupt thread. Takes spinlocks; nothing is allocated under it.
 * 8. &spyre_vector.lock - one reader of a vector's ring; takes spinlocks only.
 * 9. &spyre_device.mmio_sem - below mmap_lock (fault handlers read), written by reset and
 *    removal.
 * 10. &spyre_file.reap_lock - spinlock; takes those of eventfd and of work queues. Not below 11.
 * 11. &spyre_device.wake_lock, &spyre_device.peer_lock, &spyre_mbox.lock, &spyre_ras_log.lock,
 *     &spyre_reset.lock - spinlocks. Locks of wait queues, which eventfd waits queue work under,
 *     are inside wake_lock.
 *
 * Of two cards: who holds reset_sem of one never takes that of another. spyre_peers_revoke() holds
 * &spyre_device.revoke_lock of the card whose memory it takes back, which is outside of everything
 * here, and takes 1, 3, 6 and 11 of those that have it. Who imports takes bo_lock of the importer,
 * and inside it mmio_sem and peer_lock of the exporter, whose reset does not wait for a bo_lock.
 *
 * &spyre_submits.lock is a spinlock below all mutexes; wake_lock and locks of fences are inside.
 * dma_fences signal under it: the paths to there take no lock of 1 to 6, except by trying, and of
 * the others none is held by who allocates memory.
 */

/**
 * struct spyre_device - one card
 */
struct spyre_device {
	/** @drm: base; freed with the last reference on it */
	struct drm_device drm;
	/** @pdev: its PCI function; not to be used once @gone is set */
	struct pci_dev *pdev;
	/** @regs: BAR0 */
	void __iomem *regs;
	/** @doorbells: BAR4 */
	void __iomem *doorbells;
	/** @area: the driver's own part of the aperture, at its start */
	void __iomem *area;
	/** @area_size: bytes of @area, a multiple of the device page size */
	u64 area_size;
	/** @aperture_phys: CPU address of BAR2 */
	resource_size_t aperture_phys;
	/** @doorbell_phys: CPU address of BAR4 */
	resource_size_t doorbell_phys;
	/** @aperture_size: populated bytes of BAR2 */
	u64 aperture_size;
	/** @mem_size: usable LPDDR5, the firmware's part included */
	u64 mem_size;
	/** @fw_reserved: bytes at the top of memory that are the firmware's */
	u32 fw_reserved;
	/** @db_pages: doorbell pages in BAR4 */
	u32 db_pages;
	/** @soc_hz: frequency of the SoC counter */
	u32 soc_hz;
	/** @core_hz: core clock */
	u32 core_hz;
	/** @hw_version: major << 16 | minor */
	u32 hw_version;
	/** @serial: text, NUL padded */
	char serial[17];
	/** @info: what the firmware said of itself, clamped; written under @reset_sem */
	struct spyre_fw_info info;

	/** @reset_sem: see "Locks" */
	struct rw_semaphore reset_sem;
	/** @card_ok: the card can be talked to; written under @reset_sem (write) */
	bool card_ok;
	/**
	 * @recovering: a reset is under way, @card_ok will be true or the card be off soon; as
	 * @card_ok
	 */
	bool recovering;
	/**
	 * @gone: the PCI function is being taken away for good; written under @reset_sem (write)
	 */
	bool gone;
	/** @suspended: stopped by suspend; written under @reset_sem (write) */
	bool suspended;
	/** @gen: counts losses of card memory; written under @reset_sem (write) */
	u32 gen;

	/** @fw_gen: the card's own count of losses when it was booted last; as @gen */
	u32 fw_gen;

	/** @mmio_sem: protects @mmio_ok */
	struct rw_semaphore mmio_sem;
	/** @mmio_ok: user mappings may show BAR pages */
	bool mmio_ok;

	/**
	 * @time_lock: of SPYRE_REG_TIME, whose low half, when read, latches the high one for the
	 * next reader
	 */
	spinlock_t time_lock;
	/**
	 * @wake_lock: protects the lists of who is to be woken: &spyre_ctx.waited,
	 * &spyre_bo.bound, arm words
	 */
	spinlock_t wake_lock;

	/** @ctxs: contexts by firmware id; its own lock */
	struct xarray ctxs;
	/** @limbo_lock: protects @limbo */
	struct mutex limbo_lock;
	/** @limbo: closed contexts whose end the card did not confirm; freed by the next reset */
	struct list_head limbo;
	/** @db_blocks: doorbell blocks in use; under @limbo_lock */
	unsigned long *db_blocks;
	/** @kctx: the driver's own context, for scrubbing; written under @reset_sem (write) */
	struct spyre_ctx *kctx;
	/** @nqueues: queues in use on the card, those of users and of the kernel */
	atomic_t nqueues;

	/** @bo_lock: protects @bos */
	struct mutex bo_lock;
	/** @bos: every host buffer, so that removal can take them off the bus */
	struct list_head bos;
	/** @revoke_lock: one who takes this card's memory back from others */
	struct mutex revoke_lock;
	/** @peer_lock: protects @peers, @peer_pages and @imports */
	spinlock_t peer_lock;
	/** @peers: what other cards have imported of this card's memory */
	struct list_head peers;
	/** @peer_pages: 2 MiB pages of it, counted for each import */
	u64 peer_pages;
	/** @imports: calls that import now */
	struct list_head imports;
	/** @nbos: objects that exist: buffers, rings, status pages, doorbells */
	atomic_t nbos;
	/** @host_pages: pages of host memory they hold */
	atomic64_t host_pages;

	/** @fw: firmware image */
	struct spyre_fw fw;
	/** @mbox: mailbox */
	struct spyre_mbox mbox;
	/** @irq: vectors */
	struct spyre_irq irq;
	/** @mem: device memory */
	struct spyre_mem mem;
	/** @tables: page-table area */
	struct spyre_tables tables;
	/** @users: quotas */
	struct spyre_users users;
	/** @reset: recovery */
	struct spyre_reset reset;
	/** @ras: every record */
	struct spyre_ras_log ras;
	/** @ras_counts: how many there were, by kind */
	struct spyre_ras_counts ras_counts[SPYRE_RAS_KINDS];
	/** @telemetry: sensors */
	struct spyre_telemetry telemetry;

	/** @submits: kernel submission */
	struct spyre_submits submits;

	/** @waits_missed: waits ended by looking again, with no interrupt */
	atomic_t waits_missed;

	/** @user_pages: pages of processes that buffers pin */
	atomic64_t user_pages;
};

/**
 * struct spyre_file - one open file
 */
struct spyre_file {
	/** @sdev: the card */
	struct spyre_device *sdev;
	/** @user: quota of the opener */
	struct spyre_user *user;
	/** @exempt: opener had CAP_SYS_RESOURCE */
	bool exempt;
	/** @gen: generation in which it was opened; another one means ENODEV */
	u32 gen;
	/** @lock: protects making of @ctx */
	struct mutex lock;
	/** @ctx: its context or NULL; set once under @lock, read with acquire */
	struct spyre_ctx *ctx;
	/** @dummy: zeroed page that stands in for pages of a card that is away; set once */
	struct page *dummy;
	/** @ewaits: eventfd waits by id; its own lock */
	struct xarray ewaits;
	/** @ewait_count: of them, those with the reaper included */
	atomic_t ewait_count;
	/** @reap_lock: protects @reap; taking a wait out of @ewaits happens under it */
	spinlock_t reap_lock;
	/** @reap: eventfd waits that have fired */
	struct list_head reap;
	/** @reap_work: frees them */
	struct work_struct reap_work;
};

static inline struct spyre_device *to_spyre(struct drm_device *drm)
{
	return container_of(drm, struct spyre_device, drm);
}

static inline u32 spyre_read(struct spyre_device *sdev, u32 reg)
{
	return readl(sdev->regs + reg);
}

static inline void spyre_write(struct spyre_device *sdev, u32 reg, u32 value)
{
	writel(value, sdev->regs + reg);
}

static inline u64 spyre_read64(struct spyre_device *sdev, u32 reg)
{
	return lo_hi_readq(sdev->regs + reg);
}

u64 spyre_soc_time(struct spyre_device *sdev);

/*
 * Whether the card may do something on the bus; reset_sem held. Asleep, being reset or off it has
 * been stopped, and shows nothing of itself; one that is only about to be reset has not.
 */
static inline bool spyre_may_run(const struct spyre_device *sdev)
{
	return sdev->card_ok || sdev->mmio_ok;
}

static inline void spyre_write64(struct spyre_device *sdev, u32 reg, u64 value)
{
	lo_hi_writeq(value, sdev->regs + reg);
}

static inline void spyre_ring_doorbell(struct spyre_device *sdev, u32 page, u32 tail)
{
	writel(tail, sdev->doorbells + (size_t)page * SPYRE_DB_PAGE_SIZE);
}

int spyre_wait_recovered(struct spyre_device *sdev);
int spyre_enter(struct spyre_device *sdev, const struct spyre_file *file);
void spyre_exit(struct spyre_device *sdev);
int spyre_sleep(struct spyre_device *sdev, u32 ms);

/* spyre_query.c */
int spyre_query_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
void spyre_show_fdinfo(struct drm_printer *p, struct drm_file *drm_file);

#endif
