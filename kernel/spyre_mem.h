/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_MEM_H
#define SPYRE_MEM_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct dmem_cgroup_pool_state;
struct dmem_cgroup_region;
struct spyre_device;

/**
 * struct spyre_mem - device memory in 2 MiB pages
 * @lock: protects everything but @scrub_lock and @scrub_work
 * @busy: a bit per page of the card: not to be given out (in use, dirty or being scrubbed)
 * @dirty: of the busy ones: free, but with someone's data in it
 * @first: first page users can have
 * @map_end: pages below it are inside the aperture
 * @end: first page they cannot have
 * @used: pages that buffers hold
 * @used_map: of them inside the aperture
 * @ndirty: bits in @dirty
 * @scrubbing: pages between dirty and free
 * @gen: counts losses of card memory; pages of an older one are nobody's
 * @scrubbed: pages scrubbed since probe
 * @scrub_lock: one scrub at a time
 * @scrub_work: scrubs in the background what was freed
 * @region: what cgroups know it by, or NULL; written by probe and removal
 */
struct spyre_mem {
	struct mutex lock;	/* see above */
	unsigned long *busy;
	unsigned long *dirty;
	u32 first;
	u32 map_end;
	u32 end;
	u32 used;
	u32 used_map;
	u32 ndirty;
	u32 scrubbing;
	u32 gen;
	u64 scrubbed;
	struct mutex scrub_lock;	/* see above */
	struct delayed_work scrub_work;
	struct dmem_cgroup_region *region;
};

int spyre_mem_init(struct spyre_device *sdev);
int spyre_mem_alloc(struct spyre_device *sdev, u32 n, bool mappable, u32 *pages, u32 *gen);
void spyre_mem_free(struct spyre_device *sdev, const u32 *pages, u32 n, u32 gen);
void spyre_mem_all_dirty(struct spyre_device *sdev);
void spyre_mem_lost(struct spyre_device *sdev);
int spyre_mem_list(struct spyre_device *sdev);
void spyre_mem_unlist(struct spyre_device *sdev);
int spyre_mem_charge(struct spyre_device *sdev, u64 size, struct dmem_cgroup_pool_state **pool);

#endif
