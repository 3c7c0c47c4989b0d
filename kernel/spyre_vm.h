/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_VM_H
#define SPYRE_VM_H

#include <linux/xarray.h>

#include <drm/drm_mm.h>

#include <spyre/hw.h>

struct drm_device;
struct drm_file;
struct spyre_bo;
struct spyre_ctx;
struct spyre_device;

/* Kernel's view of one host segment's second-level tables. */
struct spyre_host_segment {
	u32 l2[SPYRE_SEGMENT_PAGES];	/* area offset of the table, 0: empty or a leaf */
	u16 used[SPYRE_SEGMENT_PAGES];	/* valid entries in it */
};

/**
 * struct spyre_vm - address space of a context; all under &spyre_ctx.lock
 * @dmva: device addresses, in 2 MiB pages
 * @hmva: host addresses, in 4 KiB pages
 * @binds: bindings by first page, of device and host space
 * @table: area offsets of the first-level tables, 0: none; device segments, then host segments
 * @host: second level of the host segments
 * @limbo: unbound, but the card did not confirm: kept until the next reset
 * @withdrawn: buffers that are to be given up, of struct spyre_bound, under &spyre_device.wake_lock
 */
struct spyre_vm {
	struct drm_mm dmva;
	struct drm_mm hmva;
	struct xarray binds[2];
	u32 table[SPYRE_SEGMENTS + SPYRE_HOST_SEGMENTS];
	struct spyre_host_segment *host[SPYRE_HOST_SEGMENTS];
	struct list_head limbo;
	struct list_head withdrawn;
};

/**
 * struct spyre_bound - a context in which a buffer of host memory is bound, however often
 * @ctx: it
 * @bo: buffer
 * @binds: its bindings there, under the lock of @ctx
 * @bo_link: in &spyre_bo.bound, under &spyre_device.wake_lock
 * @waited: in &spyre_ctx.waited, under &spyre_device.wake_lock
 * @withdrawn: in &spyre_vm.withdrawn, under &spyre_device.wake_lock
 */
struct spyre_bound {
	struct spyre_ctx *ctx;
	struct spyre_bo *bo;
	struct list_head binds;
	struct list_head bo_link;
	struct list_head waited;
	struct list_head withdrawn;
};

/**
 * struct spyre_bind - one binding
 * @node: its place, in pages of its space
 * @ctx: whose
 * @bo: what; holds a reference
 * @offset: first byte of the buffer
 * @pages: pages of its space that are in the tables; 0: what was there was withdrawn
 * @host: space
 * @internal: a queue's memory: not to be unbound by the user
 * @bound: of host memory: what all bindings of @bo in @ctx share; NULL once that was withdrawn
 * @bound_link: in &spyre_bound.binds
 * @limbo: in &spyre_vm.limbo
 * @skew: pages of @node before the first that is bound
 */
struct spyre_bind {
	struct drm_mm_node node;
	struct spyre_ctx *ctx;
	struct spyre_bo *bo;
	u64 offset;
	u32 pages;
	bool host;
	bool internal;
	struct spyre_bound *bound;
	struct list_head bound_link;
	struct list_head limbo;
	u32 skew;
};

void spyre_vm_init(struct spyre_ctx *ctx);
void spyre_vm_fini(struct spyre_ctx *ctx);
int spyre_vm_map_segment(struct spyre_ctx *ctx, u32 segment);
void spyre_vm_write_device(struct spyre_ctx *ctx, u32 segment, u32 page, u64 phys, bool write);
void spyre_vm_clear_device(struct spyre_ctx *ctx, u32 segment, u32 page);
int spyre_vm_invalidate(struct spyre_ctx *ctx);
void spyre_vm_free_limbo(struct spyre_ctx *ctx);
struct spyre_bind *spyre_bind_host(struct spyre_ctx *ctx, struct spyre_bo *bo, u64 offset, u64 size,
				   u64 pte, bool internal);
int spyre_unbind(struct spyre_bind *bind);
int spyre_vm_withdraw(struct spyre_ctx *ctx, const struct spyre_device *peer);
u64 spyre_bind_addr(const struct spyre_bind *bind);

/* Number of the first page bound, in its space. */
static inline u64 spyre_bind_first(const struct spyre_bind *bind)
{
	return bind->node.start + bind->skew;
}

int spyre_vm_bind_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);

#endif
