/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_GEM_H
#define SPYRE_GEM_H

#include <linux/dma-direction.h>
#include <linux/wait.h>

#include <drm/drm_gem.h>

struct dmem_cgroup_pool_state;
struct spyre_ctx;
struct spyre_device;
struct spyre_file;
struct spyre_user;

enum spyre_bo_kind {
	SPYRE_KIND_HOST,	/* user buffer in host memory */
	SPYRE_KIND_DEVICE,	/* user buffer in device memory */
	SPYRE_KIND_RING,	/* ring and shadow tail: host memory without a handle */
	SPYRE_KIND_STATUS,	/* status page and response ring: the same, read-only */
	SPYRE_KIND_DOORBELL,	/* one doorbell page */
	SPYRE_KIND_USER,	/* memory of a process, pinned */
	SPYRE_KIND_IMPORT,	/* a dma-buf of somebody else */
};

/* Pages that are contiguous on the bus. */
struct spyre_chunk {
	dma_addr_t dma;
	u32 first;		/* index of its first page in the buffer */
	u32 npages;
};

/**
 * struct spyre_bo - a buffer, or anything else that can be mapped
 * @base: GEM object
 * @kind: which of the following are used
 * @flags: DRM_SPYRE_BO_*, as created
 * @pages: host memory
 * @npages: of them
 * @user: whose quota its host memory counts in, NULL: nobody's
 * @chunks: its bus addresses; under &spyre_device.bo_lock once @on_bus is cleared
 * @nchunks: of them
 * @on_bus: host memory is mapped for DMA; under &spyre_device.bo_lock
 * @link: in &spyre_device.bos
 * @dev_pages: device memory, numbers of 2 MiB pages
 * @ndev_pages: of them
 * @gen: generation of @dev_pages, see &spyre_mem.gen
 * @pool: what device memory is charged to, NULL: nothing
 * @db_page: doorbell page
 * @revoked: the doorbell is another queue's by now; under &spyre_device.mmio_sem
 * @waitq: who waits for words in it
 * @bound: contexts that have its host memory bound, under &spyre_device.wake_lock
 * @dma_dir: how host memory is mapped for DMA
 * @color: pages before its first in that one's 2 MiB page, so that large pages can be bound as such
 * @mm: USER: whose pages, and who they are charged to; NULL: none yet
 * @sgt: IMPORT: the exporter's mapping for DMA; as @on_bus
 * @import_buf: IMPORT: the dma-buf, a reference
 * @peer: IMPORT: the buffer at the other card whose device memory it is, held by @import_buf; NULL:
 *	other memory
 * @peer_link: in &spyre_device.peers of that card
 * @withdrawn: that card has taken its memory back; under &spyre_device.wake_lock
 * @unconfirmed: bindings whose end the card did not confirm
 * @dummy: zeroed page for mappings by dma-buf of a card that is away; set once
 */
struct spyre_bo {
	struct drm_gem_object base;
	enum spyre_bo_kind kind;
	u32 flags;
	struct page **pages;
	u32 npages;
	struct spyre_user *user;
	struct spyre_chunk *chunks;
	u32 nchunks;
	bool on_bus;
	struct list_head link;
	u32 *dev_pages;
	u32 ndev_pages;
	u32 gen;
	struct dmem_cgroup_pool_state *pool;
	u32 db_page;
	bool revoked;
	wait_queue_head_t waitq;
	struct list_head bound;
	enum dma_data_direction dma_dir;
	u32 color;
	struct mm_struct *mm;
	struct sg_table *sgt;
	struct dma_buf *import_buf;
	struct spyre_bo *peer;
	struct list_head peer_link;
	bool withdrawn;
	atomic_t unconfirmed;
	struct page *dummy;
};

static inline struct spyre_bo *to_bo(struct drm_gem_object *obj)
{
	return container_of(obj, struct spyre_bo, base);
}

static inline bool spyre_bo_is_host(const struct spyre_bo *bo)
{
	return bo->kind == SPYRE_KIND_HOST || bo->kind == SPYRE_KIND_RING ||
	       bo->kind == SPYRE_KIND_STATUS;
}

/* Whether user space binds it at host addresses. */
static inline bool spyre_bo_binds_host(const struct spyre_bo *bo)
{
	return bo->kind == SPYRE_KIND_HOST || bo->kind == SPYRE_KIND_USER ||
	       bo->kind == SPYRE_KIND_IMPORT;
}

static inline void spyre_bo_put(struct spyre_bo *bo)
{
	drm_gem_object_put(&bo->base);
}

/* Host buffers lie in the kernel's direct mapping; byte @at of one. */
static inline void *spyre_bo_at(const struct spyre_bo *bo, u64 at)
{
	return page_address(bo->pages[at >> PAGE_SHIFT]) + offset_in_page(at);
}

struct spyre_bo *spyre_bo_new(struct spyre_device *sdev, u64 size, enum spyre_bo_kind kind);
struct spyre_bo *spyre_bo_alloc_host(struct spyre_device *sdev, u64 size, enum spyre_bo_kind kind,
				     struct spyre_user *user, bool exempt);
struct spyre_bo *spyre_bo_create_doorbell(struct spyre_device *sdev, u32 page);
void spyre_bo_revoke(struct spyre_bo *bo);
int spyre_bo_on_bus(struct spyre_device *sdev, struct spyre_bo *bo);
void spyre_bos_off_bus(struct spyre_device *sdev);
void spyre_bos_off_peer(struct spyre_device *sdev, struct spyre_device *peer);
void spyre_bo_withdraw(struct spyre_bo *bo);
void spyre_zap_mappings(struct spyre_device *sdev);
void spyre_file_sizes(struct drm_file *drm_file, u64 *device, u64 *host);

int spyre_bo_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int spyre_bo_userptr_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int spyre_bo_info_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int spyre_bo_mmap_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);

#endif
