// SPDX-License-Identifier: GPL-2.0-only
/*
 * Address spaces: page tables in the driver's area of card memory, bindings, VM_BIND.
 *
 * A table entry is one 8-byte store. Making one valid needs no word to the card, as it remembers
 * no misses. Dropping one does: the entry is cleared, then the card confirms that nothing uses
 * the old translation any more, and only then may page, address and table be used again. If the
 * card does not confirm, the binding waits in limbo until a reset has stopped the card.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_gem.h"
#include "spyre_trace.h"
#include "spyre_vm.h"

#define HMVA_SHIFT	12
#define L2_SHIFT	(SPYRE_PAGE_SHIFT - HMVA_SHIFT)
#define L2_ENTRIES	SPYRE_HOST_L2_ENTRIES
#define DEV_SEG_PAGES	SPYRE_SEGMENT_PAGES
#define HOST_SEG_PAGES	(1u << (SPYRE_SEGMENT_SHIFT - HMVA_SHIFT))

static void write_entry(struct spyre_device *sdev, u32 table, u32 index, u64 value)
{
	writeq(value, sdev->area + table + index * sizeof(u64));
}

static u32 ctx_table(const struct spyre_ctx *ctx)
{
	return SPYRE_AREA_CTX + ctx->id * sizeof(struct spyre_context_table);
}

void spyre_vm_init(struct spyre_ctx *ctx)
{
	struct spyre_vm *vm = &ctx->vm;

	/* One store per entry is what the card relies on. */
	BUILD_BUG_ON(!IS_ENABLED(CONFIG_64BIT));
	drm_mm_init(&vm->dmva, 0, SPYRE_DMVA_SIZE >> SPYRE_PAGE_SHIFT);
	/* Host address 0 stays free: messages use it for "none". */
	drm_mm_init(&vm->hmva, L2_ENTRIES, (SPYRE_HMVA_SIZE >> HMVA_SHIFT) - L2_ENTRIES);
	xa_init(&vm->binds[0]);
	xa_init(&vm->binds[1]);
	INIT_LIST_HEAD(&vm->limbo);
	INIT_LIST_HEAD(&vm->withdrawn);
	memset_io(ctx->sdev->area + ctx_table(ctx), 0, sizeof(struct spyre_context_table));
}

/* Makes the first-level table of a segment (device segments first, then host segments). */
int spyre_vm_map_segment(struct spyre_ctx *ctx, u32 segment)
{
	struct spyre_device *sdev = ctx->sdev;
	u32 entry = ctx_table(ctx) + segment * sizeof(struct spyre_segment);
	u32 at;
	int ret;

	lockdep_assert_held(&ctx->lock);
	if (ctx->vm.table[segment])
		return 0;
	if (segment >= SPYRE_SEGMENTS) {
		struct spyre_host_segment **host = &ctx->vm.host[segment - SPYRE_SEGMENTS];

		if (!*host)
			*host = kvzalloc(sizeof(**host), GFP_KERNEL_ACCOUNT);
		if (!*host)
			return -ENOMEM;
	}
	ret = spyre_table_alloc(sdev, SPYRE_TABLE_SIZE, &at);
	if (ret)
		return ret;
	ctx->vm.table[segment] = at;
	write_entry(sdev, entry, 0, at);
	/* The length last: a length with no table behind it must never be seen. */
	wmb();
	write_entry(sdev, entry, 1, SPYRE_SEGMENT_PAGES);
	return 0;
}

void spyre_vm_write_device(struct spyre_ctx *ctx, u32 segment, u32 page, u64 phys, bool write)
{
	write_entry(ctx->sdev, ctx->vm.table[segment], page,
		    phys | SPYRE_PTE_VALID | (write ? SPYRE_PTE_WRITE : 0));
}

void spyre_vm_clear_device(struct spyre_ctx *ctx, u32 segment, u32 page)
{
	write_entry(ctx->sdev, ctx->vm.table[segment], page, 0);
}

/* Returns when the card uses no translation that is not in the tables now. */
int spyre_vm_invalidate(struct spyre_ctx *ctx)
{
	/* Table stores are write-combined; the command must not overtake them. */
	wmb();
	return spyre_mbox_id(ctx->sdev, SPYRE_MSG_CTX_INVALIDATE, ctx->id, 0);
}

u64 spyre_bind_addr(const struct spyre_bind *bind)
{
	return spyre_bind_first(bind) << (bind->host ? HMVA_SHIFT : SPYRE_PAGE_SHIFT);
}

/* Bus address of byte @at and how many bytes go on from there; @hint: chunk to start from. */
static dma_addr_t bus_at(const struct spyre_bo *bo, u64 at, u32 *hint, u64 *len)
{
	u32 page = at >> PAGE_SHIFT;
	const struct spyre_chunk *c;
	u64 in;

	while (page >= bo->chunks[*hint].first + bo->chunks[*hint].npages)
		(*hint)++;
	c = &bo->chunks[*hint];
	in = at - ((u64)c->first << PAGE_SHIFT);
	*len = ((u64)c->npages << PAGE_SHIFT) - in;
	return c->dma + in;
}

static int map_host(struct spyre_bind *bind, u32 want, u64 flags)
{
	struct spyre_ctx *ctx = bind->ctx;
	struct spyre_device *sdev = ctx->sdev;
	u32 seg = spyre_bind_first(bind) / HOST_SEG_PAGES;
	u32 first = spyre_bind_first(bind) % HOST_SEG_PAGES;
	struct spyre_host_segment *host;
	u32 l1, hint = 0;
	int ret;

	ret = spyre_vm_map_segment(ctx, SPYRE_SEGMENTS + seg);
	if (ret)
		return ret;
	l1 = ctx->vm.table[SPYRE_SEGMENTS + seg];
	host = ctx->vm.host[seg];
	flags |= SPYRE_PTE_VALID | SPYRE_PTE_LEAF;
	while (bind->pages < want) {
		u32 page = first + bind->pages, slot = page >> L2_SHIFT, at;
		u64 len, byte = bind->offset + ((u64)bind->pages << HMVA_SHIFT);
		dma_addr_t dma = bus_at(bind->bo, byte, &hint, &len);

		if (page % L2_ENTRIES == 0 && want - bind->pages >= L2_ENTRIES &&
		    len >= SPYRE_PAGE_SIZE && IS_ALIGNED(dma, SPYRE_PAGE_SIZE) && !host->l2[slot]) {
			write_entry(sdev, l1, slot, dma | flags);
			bind->pages += L2_ENTRIES;
			continue;
		}
		if (!host->l2[slot]) {
			ret = spyre_table_alloc(sdev, SPYRE_HOST_L2_SIZE, &at);
			if (ret)
				return ret;
			host->l2[slot] = at;
		}
		write_entry(sdev, host->l2[slot], page % L2_ENTRIES, dma | flags);
		if (!host->used[slot]++) {
			/* The table's first entry before the pointer to it. */
			wmb();
			write_entry(sdev, l1, slot, host->l2[slot] | SPYRE_PTE_VALID);
		}
		bind->pages++;
		if (page % L2_ENTRIES == 0)
			cond_resched();
	}
	return 0;
}

static void unmap_host(struct spyre_bind *bind)
{
	struct spyre_ctx *ctx = bind->ctx;
	struct spyre_device *sdev = ctx->sdev;
	u32 seg = spyre_bind_first(bind) / HOST_SEG_PAGES;
	u32 first = spyre_bind_first(bind) % HOST_SEG_PAGES;
	u32 l1 = ctx->vm.table[SPYRE_SEGMENTS + seg];
	struct spyre_host_segment *host = ctx->vm.host[seg];
	u32 i = 0;

	while (i < bind->pages) {
		u32 page = first + i, slot = page >> L2_SHIFT;

		if (!host->l2[slot]) {
			write_entry(sdev, l1, slot, 0);
			i += L2_ENTRIES;
			continue;
		}
		write_entry(sdev, host->l2[slot], page % L2_ENTRIES, 0);
		if (!--host->used[slot])
			write_entry(sdev, l1, slot, 0);
		i++;
		if (page % L2_ENTRIES == 0)
			cond_resched();
	}
}

/* After the card has confirmed: second-level tables that became empty. */
static void free_empty_l2(struct spyre_bind *bind)
{
	struct spyre_ctx *ctx = bind->ctx;
	struct spyre_host_segment *host = ctx->vm.host[spyre_bind_first(bind) / HOST_SEG_PAGES];
	u32 first = spyre_bind_first(bind) % HOST_SEG_PAGES;
	u32 slot;

	if (!bind->pages)
		return;
	for (slot = first >> L2_SHIFT; slot <= (first + bind->pages - 1) >> L2_SHIFT; slot++) {
		if (!host->l2[slot] || host->used[slot])
			continue;
		spyre_table_free(ctx->sdev, host->l2[slot], SPYRE_HOST_L2_SIZE);
		host->l2[slot] = 0;
	}
}

static void unmap_device(struct spyre_bind *bind)
{
	u32 i, page;

	for (i = 0; i < bind->pages; i++) {
		page = bind->node.start + i;
		spyre_vm_clear_device(bind->ctx, page / DEV_SEG_PAGES, page % DEV_SEG_PAGES);
	}
}

/* The lock of its context is held. */
static void bound_free(struct spyre_bound *bound)
{
	struct spyre_device *sdev = bound->ctx->sdev;

	spin_lock(&sdev->wake_lock);
	list_del(&bound->bo_link);
	list_del(&bound->waited);
	list_del(&bound->withdrawn);
	spin_unlock(&sdev->wake_lock);
	kfree(bound);
}

static void bind_unlink(struct spyre_bind *bind)
{
	struct spyre_bound *bound = bind->bound;

	if (bound) {
		list_del(&bind->bound_link);
		if (list_empty(&bound->binds))
			bound_free(bound);
		bind->bound = NULL;
	}
}

/* The user's name for it. */
static void bind_forget(struct spyre_bind *bind)
{
	xa_erase(&bind->ctx->vm.binds[bind->host], spyre_bind_first(bind));
}

static void bind_free(struct spyre_bind *bind)
{
	drm_mm_remove_node(&bind->node);
	spyre_bo_put(bind->bo);
	kfree(bind);
}

/* It has no place yet. */
static void bind_drop(struct spyre_bind *bind)
{
	kfree(bind->bound);
	kfree(bind);
}

static struct spyre_bind *bind_new(struct spyre_ctx *ctx, struct spyre_bo *bo, u64 offset,
				   bool host)
{
	struct spyre_bind *bind = kzalloc(sizeof(*bind), GFP_KERNEL_ACCOUNT);

	if (!bind)
		return ERR_PTR(-ENOMEM);
	bind->ctx = ctx;
	bind->bo = bo;
	bind->offset = offset;
	bind->host = host;
	INIT_LIST_HEAD(&bind->limbo);
	if (!host)
		return bind;
	bind->bound = kzalloc(sizeof(*bind->bound), GFP_KERNEL_ACCOUNT);
	if (!bind->bound) {
		kfree(bind);
		return ERR_PTR(-ENOMEM);
	}
	bind->bound->ctx = ctx;
	bind->bound->bo = bo;
	INIT_LIST_HEAD(&bind->bound->binds);
	INIT_LIST_HEAD(&bind->bound->bo_link);
	INIT_LIST_HEAD(&bind->bound->waited);
	INIT_LIST_HEAD(&bind->bound->withdrawn);
	return bind;
}

/*
 * Waiters find contexts, not bindings: those of one buffer may be millions, and the search goes on
 * under a spinlock that everybody needs. Before the first table entry: who withdraws the buffer
 * either finds the context and waits for its lock, or is seen here.
 */
static int bind_link(struct spyre_bind *bind)
{
	struct spyre_device *sdev = bind->ctx->sdev;
	struct spyre_bound *bound, *spare = NULL;
	int ret = 0;

	spin_lock(&sdev->wake_lock);
	if (bind->bo->withdrawn) {
		swap(spare, bind->bound);
		ret = -ENODEV;
	} else {
		list_for_each_entry(bound, &bind->bo->bound, bo_link) {
			if (bound->ctx == bind->ctx) {
				spare = bind->bound;
				bind->bound = bound;
				break;
			}
		}
		if (!spare)
			list_add(&bind->bound->bo_link, &bind->bo->bound);
	}
	spin_unlock(&sdev->wake_lock);
	kfree(spare);
	if (!ret)
		list_add(&bind->bound_link, &bind->bound->binds);
	return ret;
}

/* A binding that has its place and its table entries can be found by its address. */
static int bind_publish(struct spyre_bind *bind)
{
	struct spyre_ctx *ctx = bind->ctx;
	int ret;

	ret = xa_err(xa_store(&ctx->vm.binds[bind->host], spyre_bind_first(bind), bind,
			      GFP_KERNEL_ACCOUNT));
	if (ret)
		return ret;
	/* Whoever waits for words of this buffer must arm a context that is new to it, too. */
	if (bind->host && list_is_singular(&bind->bound->binds))
		wake_up_all(&bind->bo->waitq);
	trace_spyre_bind(ctx->sdev->drm.dev, ctx->id, bind->host, spyre_bind_addr(bind),
			 bind->pages);
	return 0;
}

/**
 * spyre_bind_host - bind host memory at an address of our choosing
 * @ctx: context, its lock held, not lost
 * @bo: buffer; the binding takes a reference of its own
 * @offset: first byte, multiple of the page size
 * @size: bytes, multiple of the page size, inside the buffer
 * @pte: SPYRE_PTE_WRITE and SPYRE_PTE_PRIV as wanted
 * @internal: not to be unbound by VM_BIND
 */
struct spyre_bind *spyre_bind_host(struct spyre_ctx *ctx, struct spyre_bo *bo, u64 offset, u64 size,
				   u64 pte, bool internal)
{
	struct spyre_bind *bind;
	u64 pages = size >> HMVA_SHIFT;
	u64 align = 1;
	u32 seg, skew;
	int ret = -ENOSPC;

	lockdep_assert_held(&ctx->lock);
	if (size > SPYRE_SEGMENT_SIZE)
		return ERR_PTR(-EINVAL);
	bind = bind_new(ctx, bo, offset, true);
	if (IS_ERR(bind))
		return bind;
	bind->internal = internal;
	/* Where host memory and addresses agree in a 2 MiB page, one entry can do for all of it. */
	skew = (bo->color + (offset >> HMVA_SHIFT)) % L2_ENTRIES;
	if (size >= SPYRE_PAGE_SIZE && pages + skew <= HOST_SEG_PAGES) {
		align = L2_ENTRIES;
		bind->skew = skew;
	}
	for (seg = 0; seg < SPYRE_HOST_SEGMENTS && ret == -ENOSPC; seg++)
		ret = drm_mm_insert_node_in_range(&ctx->vm.hmva, &bind->node,
						  pages + bind->skew, align, 0,
						  (u64)seg * HOST_SEG_PAGES,
						  (u64)(seg + 1) * HOST_SEG_PAGES,
						  DRM_MM_INSERT_BEST);
	if (ret) {
		bind_drop(bind);
		return ERR_PTR(ret);
	}
	drm_gem_object_get(&bo->base);
	ret = bind_link(bind);
	if (!ret)
		ret = map_host(bind, pages, pte);
	if (!ret)
		ret = bind_publish(bind);
	if (ret) {
		spyre_unbind(bind);
		return ERR_PTR(ret);
	}
	return bind;
}

static struct spyre_bind *bind_device(struct spyre_ctx *ctx, struct spyre_bo *bo, u64 offset,
				      u64 size, bool write, u32 segment, bool fixed, u64 addr)
{
	struct spyre_bind *bind;
	u64 pages = size >> SPYRE_PAGE_SHIFT;
	u32 i, first = offset >> SPYRE_PAGE_SHIFT;
	int ret;

	if (size > SPYRE_SEGMENT_SIZE)
		return ERR_PTR(-EINVAL);
	if (bo->gen != READ_ONCE(ctx->sdev->mem.gen))
		return ERR_PTR(-ENODEV);
	if (fixed) {
		if (!IS_ALIGNED(addr, SPYRE_PAGE_SIZE) || addr >= SPYRE_DMVA_SIZE ||
		    size > SPYRE_SEGMENT_SIZE - addr % SPYRE_SEGMENT_SIZE)
			return ERR_PTR(-EINVAL);
		segment = addr >> SPYRE_SEGMENT_SHIFT;
	}
	ret = spyre_vm_map_segment(ctx, segment);
	if (ret)
		return ERR_PTR(ret);
	bind = bind_new(ctx, bo, offset, false);
	if (IS_ERR(bind))
		return bind;
	if (fixed) {
		bind->node.start = addr >> SPYRE_PAGE_SHIFT;
		bind->node.size = pages;
		ret = drm_mm_reserve_node(&ctx->vm.dmva, &bind->node);
		if (ret == -ENOSPC)
			ret = -EBUSY;
	} else {
		ret = drm_mm_insert_node_in_range(&ctx->vm.dmva, &bind->node, pages, 0, 0,
						  (u64)segment * DEV_SEG_PAGES,
						  (u64)(segment + 1) * DEV_SEG_PAGES,
						  DRM_MM_INSERT_BEST);
	}
	if (ret) {
		bind_drop(bind);
		return ERR_PTR(ret);
	}
	drm_gem_object_get(&bo->base);
	for (i = 0; i < pages; i++)
		spyre_vm_write_device(ctx, segment, (bind->node.start + i) % DEV_SEG_PAGES,
				      (u64)bo->dev_pages[first + i] << SPYRE_PAGE_SHIFT, write);
	bind->pages = pages;
	ret = bind_publish(bind);
	if (ret) {
		spyre_unbind(bind);
		return ERR_PTR(ret);
	}
	return bind;
}

/**
 * spyre_unbind - end a binding
 * @bind: its context's lock is held
 *
 * Return: 0, or -EIO when the card did not confirm: the binding is gone for the user, and its
 * memory is kept until a reset.
 */
int spyre_unbind(struct spyre_bind *bind)
{
	struct spyre_ctx *ctx = bind->ctx;
	int ret;

	lockdep_assert_held(&ctx->lock);
	trace_spyre_unbind(ctx->sdev->drm.dev, ctx->id, bind->host, spyre_bind_addr(bind),
			   bind->pages);
	bind_forget(bind);
	if (!bind->pages) {
		bind_unlink(bind);
		bind_free(bind);
		return 0;
	}
	if (bind->host)
		unmap_host(bind);
	else
		unmap_device(bind);
	ret = spyre_vm_invalidate(ctx);
	if (ret) {
		list_add(&bind->limbo, &ctx->vm.limbo);
		atomic_inc(&bind->bo->unconfirmed);
	}
	/* Who withdraws the buffer waits for this context until it knows what the card has said. */
	bind_unlink(bind);
	if (ret)
		return -EIO;
	if (bind->host)
		free_empty_l2(bind);
	bind_free(bind);
	return 0;
}

/**
 * spyre_vm_withdraw - memory goes, its bindings stay as places where nothing is
 * @ctx: its lock is held, and reset_sem
 * @peer: whose memory; spyre_bo_withdraw() was called for every buffer of it
 *
 * Return: 0 when the card uses the memory in this context no more, -EIO when it may.
 */
int spyre_vm_withdraw(struct spyre_ctx *ctx, const struct spyre_device *peer)
{
	struct spyre_device *sdev = ctx->sdev;
	struct spyre_bound *bound, *more;
	struct spyre_bind *bind, *next;
	bool up = sdev->card_ok && !pci_channel_offline(sdev->pdev);
	LIST_HEAD(mine);
	LIST_HEAD(taken);
	int ret;

	lockdep_assert_held(&ctx->lock);
	spin_lock(&sdev->wake_lock);
	list_for_each_entry_safe(bound, more, &ctx->vm.withdrawn, withdrawn)
		if (bound->bo->peer->base.dev == &peer->drm)
			list_move(&bound->withdrawn, &mine);
	spin_unlock(&sdev->wake_lock);
	/* Somebody else ended them, or the context. */
	if (list_empty(&mine))
		return 0;
	list_for_each_entry_safe(bound, more, &mine, withdrawn) {
		list_for_each_entry_safe(bind, next, &bound->binds, bound_link) {
			list_del(&bind->bound_link);
			bind->bound = NULL;
			/* A card that sleeps goes on with the tables that it has. */
			if ((up || sdev->suspended) && bind->pages) {
				unmap_host(bind);
				list_add(&bind->limbo, &taken);
			}
		}
		bound_free(bound);
		cond_resched();
	}
	if (up)
		ret = spyre_vm_invalidate(ctx) ? -EIO : 0;
	else
		ret = spyre_may_run(sdev) ? -EIO : 0;
	list_for_each_entry_safe(bind, next, &taken, limbo) {
		list_del_init(&bind->limbo);
		if (!ret)
			free_empty_l2(bind);
		bind->pages = 0;
	}
	return ret;
}

/* The card was stopped and has forgotten all translations. */
void spyre_vm_free_limbo(struct spyre_ctx *ctx)
{
	struct spyre_bind *bind, *next;

	list_for_each_entry_safe(bind, next, &ctx->vm.limbo, limbo) {
		list_del(&bind->limbo);
		atomic_dec(&bind->bo->unconfirmed);
		if (bind->host)
			free_empty_l2(bind);
		bind_free(bind);
	}
}

/* The context does not exist on the card any more: everything goes. */
void spyre_vm_fini(struct spyre_ctx *ctx)
{
	struct spyre_vm *vm = &ctx->vm;
	struct spyre_bind *bind;
	unsigned long index;
	u32 i, slot;

	spyre_vm_free_limbo(ctx);
	for (i = 0; i < 2; i++) {
		xa_for_each(&vm->binds[i], index, bind) {
			bind_forget(bind);
			bind_unlink(bind);
			bind_free(bind);
			cond_resched();
		}
		xa_destroy(&vm->binds[i]);
	}
	drm_mm_takedown(&vm->dmva);
	drm_mm_takedown(&vm->hmva);
	for (i = 0; i < SPYRE_HOST_SEGMENTS; i++) {
		if (!vm->host[i])
			continue;
		for (slot = 0; slot < SPYRE_SEGMENT_PAGES; slot++)
			if (vm->host[i]->l2[slot])
				spyre_table_free(ctx->sdev, vm->host[i]->l2[slot],
						 SPYRE_HOST_L2_SIZE);
		kvfree(vm->host[i]);
		vm->host[i] = NULL;
	}
	for (i = 0; i < ARRAY_SIZE(vm->table); i++) {
		if (vm->table[i])
			spyre_table_free(ctx->sdev, vm->table[i], SPYRE_TABLE_SIZE);
		vm->table[i] = 0;
	}
}

/* --- ioctl ---------------------------------------------------------------------------------- */

static int do_map(struct spyre_ctx *ctx, struct spyre_bo *bo, struct drm_spyre_vm_bind *args)
{
	bool host = spyre_bo_binds_host(bo);
	bool fixed = args->flags & DRM_SPYRE_VM_FIXED;
	bool write = !(args->flags & DRM_SPYRE_VM_READONLY);
	u64 unit = host ? PAGE_SIZE : SPYRE_PAGE_SIZE;
	u64 size = args->size;
	struct spyre_bind *bind;

	if (host && (fixed || args->segment))
		return -EINVAL;
	if (fixed && args->segment)
		return -EINVAL;
	if (write && bo->flags & DRM_SPYRE_BO_READONLY)
		return -EACCES;
	if (!IS_ALIGNED(args->offset, unit) || args->offset >= bo->base.size)
		return -EINVAL;
	if (!size)
		size = bo->base.size - args->offset;
	if (!IS_ALIGNED(size, unit) || size > bo->base.size - args->offset)
		return -EINVAL;
	if (host)
		bind = spyre_bind_host(ctx, bo, args->offset, size, write ? SPYRE_PTE_WRITE : 0,
				       false);
	else
		bind = bind_device(ctx, bo, args->offset, size, write, args->segment, fixed,
				   args->addr);
	if (IS_ERR(bind))
		return PTR_ERR(bind);
	args->addr = spyre_bind_addr(bind);
	args->space = host;
	return 0;
}

static int do_unmap(struct spyre_ctx *ctx, u64 addr, u32 space)
{
	u32 shift = space ? HMVA_SHIFT : SPYRE_PAGE_SHIFT;
	struct spyre_bind *bind = NULL;

	if (IS_ALIGNED(addr, 1ull << shift))
		bind = xa_load(&ctx->vm.binds[space], addr >> shift);
	if (!bind || bind->internal)
		return -ENOENT;
	return spyre_unbind(bind);
}

int spyre_vm_bind_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;
	struct drm_spyre_vm_bind *args = data;
	struct drm_gem_object *obj = NULL;
	struct spyre_ctx *ctx;
	int ret;

	if (args->pad)
		return -EINVAL;
	if (args->op == DRM_SPYRE_VM_MAP) {
		if (args->flags & ~(DRM_SPYRE_VM_READONLY | DRM_SPYRE_VM_FIXED) ||
		    args->segment >= SPYRE_SEGMENTS ||
		    (!(args->flags & DRM_SPYRE_VM_FIXED) && args->addr) || args->space)
			return -EINVAL;
	} else if (args->op == DRM_SPYRE_VM_UNMAP) {
		if (args->flags || args->handle || args->segment || args->offset || args->size ||
		    args->space > 1)
			return -EINVAL;
	} else {
		return -EINVAL;
	}
	ret = spyre_enter(sdev, file);
	if (ret)
		return ret;
	if (args->op == DRM_SPYRE_VM_MAP) {
		obj = drm_gem_object_lookup(drm_file, args->handle);
		if (!obj) {
			ret = -ENOENT;
			goto out;
		}
	}
	ctx = spyre_file_ctx(file);
	if (IS_ERR(ctx)) {
		ret = PTR_ERR(ctx);
		goto out;
	}
	mutex_lock(&ctx->lock);
	if (obj)
		ret = do_map(ctx, to_bo(obj), args);
	else
		ret = do_unmap(ctx, args->addr, args->space);
	mutex_unlock(&ctx->lock);
out:
	if (obj)
		drm_gem_object_put(obj);
	spyre_exit(sdev);
	return ret;
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_vm_kunit.c"
#endif
