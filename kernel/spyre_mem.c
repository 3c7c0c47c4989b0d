// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory: a bitmap of 2 MiB pages, and scrubbing.
 *
 * Memory need not be contiguous, so a page is as good as any other of its class and there is no
 * fragmentation to fight: the lowest free one is taken, non-mappable buffers from above the
 * aperture first.
 *
 * A freed page is dirty. It is cleared by FILL control blocks of the driver's own context before
 * it is given out again, in the background, or at once when an allocation needs it. After a loss
 * of card memory everything reads zero and nothing is dirty.
 */
#include <linux/bitmap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <drm/drm_managed.h>

#include "kernel_compat.h"
#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_kctx.h"

#define SCRUB_BATCH	512u	/* pages per control block: 1 GiB */
#define SCRUB_DELAY	msecs_to_jiffies(20)

static u32 take(struct spyre_mem *m, u32 from, u32 to, u32 n, u32 *pages)
{
	u32 got = 0;
	unsigned long p = from;

	while (got < n) {
		p = find_next_zero_bit(m->busy, to, p);
		if (p >= to)
			break;
		__set_bit(p, m->busy);
		pages[got++] = p;
		m->used++;
		if (p < m->map_end)
			m->used_map++;
		p++;
	}
	return got;
}

static void give(struct spyre_mem *m, const u32 *pages, u32 n, bool dirty)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (dirty) {
			__set_bit(pages[i], m->dirty);
			m->ndirty++;
		} else {
			__clear_bit(pages[i], m->busy);
		}
		m->used--;
		if (pages[i] < m->map_end)
			m->used_map--;
	}
}

/*
 * Scrubs up to SCRUB_BATCH dirty pages in [from, to). Returns how many, 0 if there are none, or
 * an error. The caller holds reset_sem for reading.
 */
static int scrub(struct spyre_device *sdev, u32 from, u32 to)
{
	struct spyre_mem *m = &sdev->mem;
	u32 *pages, n = 0, gen, i;
	unsigned long p;
	int ret;

	lockdep_assert_held(&sdev->reset_sem);
	pages = kvmalloc_array(SCRUB_BATCH, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	mutex_lock(&m->scrub_lock);
	mutex_lock(&m->lock);
	gen = m->gen;
	p = from;
	for_each_set_bit_from(p, m->dirty, to) {
		if (n == SCRUB_BATCH)
			break;
		__clear_bit(p, m->dirty);
		pages[n++] = p;
	}
	m->ndirty -= n;
	m->scrubbing += n;
	mutex_unlock(&m->lock);

	ret = n ? spyre_kctx_clear(sdev, pages, n) : 0;

	mutex_lock(&m->lock);
	/* A loss of memory cleared all bits and counts meanwhile. */
	if (m->gen == gen) {
		for (i = 0; i < n; i++) {
			if (ret)
				__set_bit(pages[i], m->dirty);
			else
				__clear_bit(pages[i], m->busy);
		}
		m->scrubbing -= n;
		if (ret)
			m->ndirty += n;
		else
			m->scrubbed += n;
	}
	mutex_unlock(&m->lock);
	mutex_unlock(&m->scrub_lock);
	kvfree(pages);
	return ret ? ret : n;
}

static void scrub_worker(struct work_struct *work)
{
	struct spyre_device *sdev = container_of(to_delayed_work(work), struct spyre_device,
						 mem.scrub_work);
	int ret;

	do {
		/* Dropped between batches: a reset waits for one at most. */
		down_read(&sdev->reset_sem);
		ret = sdev->card_ok ? scrub(sdev, sdev->mem.first, sdev->mem.end) : 0;
		up_read(&sdev->reset_sem);
		cond_resched();
	} while (ret > 0);
	if (ret)
		drm_dbg(&sdev->drm, "background scrub ended with %d\n", ret);
}

int spyre_mem_init(struct spyre_device *sdev)
{
	struct spyre_mem *m = &sdev->mem;
	u32 bits;
	int ret;

	m->first = sdev->area_size >> SPYRE_PAGE_SHIFT;
	m->end = (sdev->mem_size - sdev->fw_reserved) >> SPYRE_PAGE_SHIFT;
	m->map_end = min_t(u64, m->end, sdev->aperture_size >> SPYRE_PAGE_SHIFT);
	bits = m->end;
	m->busy = drmm_kcalloc(&sdev->drm, BITS_TO_LONGS(bits), sizeof(long), GFP_KERNEL);
	m->dirty = drmm_kcalloc(&sdev->drm, BITS_TO_LONGS(bits), sizeof(long), GFP_KERNEL);
	if (!m->busy || !m->dirty)
		return -ENOMEM;
	INIT_DELAYED_WORK(&m->scrub_work, scrub_worker);
	ret = drmm_mutex_init(&sdev->drm, &m->lock);
	return ret ? ret : drmm_mutex_init(&sdev->drm, &m->scrub_lock);
}

/**
 * spyre_mem_alloc - get pages that read zero
 * @sdev: card
 * @n: how many
 * @mappable: only from inside the aperture
 * @pages: out, numbers of the pages
 * @gen: out, to be given back with them
 *
 * Context: the caller holds reset_sem for reading; waits for the card when pages must be scrubbed
 * first.
 * Return: 0, -ENOSPC, -EINTR when the task was killed, or an error of scrubbing.
 */
int spyre_mem_alloc(struct spyre_device *sdev, u32 n, bool mappable, u32 *pages, u32 *gen)
{
	struct spyre_mem *m = &sdev->mem;
	u32 got, total, used, waiting;
	int ret;

	for (;;) {
		mutex_lock(&m->lock);
		total = (mappable ? m->map_end : m->end) - m->first;
		used = mappable ? m->used_map : m->used;
		waiting = m->ndirty + m->scrubbing;
		got = 0;
		if (n <= total - used) {
			if (!mappable)
				got = take(m, max(m->map_end, m->first), m->end, n, pages);
			got += take(m, m->first, m->map_end, n - got, pages + got);
			if (got < n)
				give(m, pages, got, false);
		}
		*gen = m->gen;
		mutex_unlock(&m->lock);
		if (got == n)
			return 0;
		if (n > total - used || !waiting) {
			drm_dbg(&sdev->drm,
				"device memory exhausted: %u of %u MiB %sused, %u more wanted\n",
				used * 2, total * 2, mappable ? "mappable " : "", n * 2);
			return -ENOSPC;
		}
		/* Each turn may take as long as a gigabyte does, and others may be quicker. */
		if (fatal_signal_pending(current))
			return -EINTR;
		ret = scrub(sdev, m->first, mappable ? m->map_end : m->end);
		if (ret < 0)
			return ret;
	}
}

/* Any context that may sleep on a mutex, mmap_lock held included. */
void spyre_mem_free(struct spyre_device *sdev, const u32 *pages, u32 n, u32 gen)
{
	struct spyre_mem *m = &sdev->mem;

	mutex_lock(&m->lock);
	if (gen == m->gen)
		give(m, pages, n, true);
	mutex_unlock(&m->lock);
	if (!READ_ONCE(sdev->gone))
		schedule_delayed_work(&m->scrub_work, SCRUB_DELAY);
}

/* Before the first user: what was in card memory may be anybody's. */
void spyre_mem_all_dirty(struct spyre_device *sdev)
{
	struct spyre_mem *m = &sdev->mem;

	mutex_lock(&m->lock);
	bitmap_set(m->busy, m->first, m->end - m->first);
	bitmap_set(m->dirty, m->first, m->end - m->first);
	m->ndirty = m->end - m->first;
	mutex_unlock(&m->lock);
	schedule_delayed_work(&m->scrub_work, 0);
}

/* Card memory was lost: every page is free and reads zero. */
void spyre_mem_lost(struct spyre_device *sdev)
{
	struct spyre_mem *m = &sdev->mem;

	mutex_lock(&m->lock);
	bitmap_zero(m->busy, m->end);
	bitmap_zero(m->dirty, m->end);
	m->used = 0;
	m->used_map = 0;
	m->ndirty = 0;
	m->scrubbing = 0;
	WRITE_ONCE(m->gen, m->gen + 1);
	mutex_unlock(&m->lock);
}

/* Before the first user: cgroups can limit what is given out. The name is that of fdinfo. */
int spyre_mem_list(struct spyre_device *sdev)
{
	struct spyre_mem *m = &sdev->mem;
	struct dmem_cgroup_region *region;

	region = spyre_compat_dmem_register(&sdev->drm, "device",
					    (u64)(m->end - m->first) << SPYRE_PAGE_SHIFT);
	if (IS_ERR(region))
		return PTR_ERR(region);
	m->region = region;
	return 0;
}

/*
 * After the last one who could charge. Buffers that are left keep what they hang on. Not with the
 * last reference on the device: the card may be bound again before, and have the same name.
 */
void spyre_mem_unlist(struct spyre_device *sdev)
{
	spyre_compat_dmem_unregister(sdev->mem.region);
	sdev->mem.region = NULL;
}

/**
 * spyre_mem_charge - count device memory in the caller's cgroup
 * @sdev: card
 * @size: bytes
 * @pool: out, NULL or what it was charged to, to be uncharged when the memory is freed
 *
 * Context: the caller holds reset_sem for reading.
 * Return: 0, -ENOSPC where a cgroup has no room for it, or -ENOMEM.
 */
int spyre_mem_charge(struct spyre_device *sdev, u64 size, struct dmem_cgroup_pool_state **pool)
{
	int ret = spyre_compat_dmem_charge(sdev->mem.region, size, pool);

	/* Nothing will be given back by itself, and ioctls that return EAGAIN are issued again. */
	if (ret == -EAGAIN) {
		drm_dbg(&sdev->drm,
			"limit of device memory of a cgroup (dmem.max) exceeded: %llu MiB more wanted\n",
			size >> 20);
		return -ENOSPC;
	}
	return ret;
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_mem_kunit.c"
#endif
