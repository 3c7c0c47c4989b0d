// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers and mappings.
 *
 * Everything that user space maps is a GEM object, so that one offset space and one permission
 * check serve buffers, rings, status pages and doorbells. Pages are inserted by a fault handler.
 * Pages of the card are shown only while mmio_ok; reset and removal clear it, zap every mapping,
 * and faults then show a zeroed page of this file. Host memory stays mapped through all of it.
 */
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <drm/drm_vma_manager.h>

#include "kernel_compat.h"
#include "spyre_ctx.h"
#include "spyre_dmabuf.h"
#include "spyre_drv.h"
#include "spyre_gem.h"
#include "spyre_vm.h"

#define HUGE_ORDER	(SPYRE_PAGE_SHIFT - PAGE_SHIFT)
#define FAULT_AROUND	256u
#define USER_BATCH	(SZ_16M >> PAGE_SHIFT)	/* pages pinned at once */

/* --- Host memory ---------------------------------------------------------------------------- */

/*
 * Two buffers may be of the same pages of a process. That is allowed only where the mapping itself
 * touches no cache, and map_chunks() refuses machines where one would have to.
 */
#define MAP_ATTRS	DMA_ATTR_SKIP_CPU_SYNC

static void unmap_chunks(struct spyre_device *sdev, struct spyre_bo *bo, u32 n)
{
	while (n--)
		dma_unmap_page_attrs(&sdev->pdev->dev, bo->chunks[n].dma,
				     (size_t)bo->chunks[n].npages << PAGE_SHIFT, bo->dma_dir,
				     MAP_ATTRS);
}

static void host_unmap(struct spyre_device *sdev, struct spyre_bo *bo)
{
	lockdep_assert_held(&sdev->bo_lock);
	if (!bo->on_bus)
		return;
	if (bo->kind == SPYRE_KIND_IMPORT)
		spyre_dmabuf_off_bus(sdev, bo);
	else
		unmap_chunks(sdev, bo, bo->nchunks);
	bo->on_bus = false;
	list_del_init(&bo->link);
}

/* A buffer may have millions of pages, and what ends with one is not to hold a CPU. */
#define PAGES_AT_ONCE	4096u

static void user_put_pages(struct spyre_device *sdev, struct spyre_bo *bo)
{
	u32 i, n;

	if (!bo->mm)
		return;
	for (i = 0; i < bo->npages; i += n) {
		n = min(bo->npages - i, PAGES_AT_ONCE);
		unpin_user_pages_dirty_lock(bo->pages + i, n, bo->dma_dir == DMA_BIDIRECTIONAL);
		cond_resched();
	}
	atomic64_sub(bo->npages, &sdev->user_pages);
	atomic64_sub(bo->base.size >> PAGE_SHIFT, &bo->mm->pinned_vm);
	mmdrop(bo->mm);
}

static void host_free(struct spyre_device *sdev, struct spyre_bo *bo)
{
	u32 i;

	mutex_lock(&sdev->bo_lock);
	host_unmap(sdev, bo);
	mutex_unlock(&sdev->bo_lock);
	if (bo->kind == SPYRE_KIND_IMPORT) {
		spyre_dmabuf_put(bo);
	} else if (bo->kind == SPYRE_KIND_USER) {
		user_put_pages(sdev, bo);
	} else {
		for (i = 0; i < bo->npages; i++) {
			__free_page(bo->pages[i]);
			if (i % PAGES_AT_ONCE == PAGES_AT_ONCE - 1)
				cond_resched();
		}
		atomic64_sub(bo->npages, &sdev->host_pages);
	}
	kvfree(bo->pages);
	kvfree(bo->chunks);
	if (bo->user) {
		spyre_user_uncharge_host(sdev, bo->user, bo->base.size >> PAGE_SHIFT);
		spyre_user_put(sdev, bo->user);
	}
}

static int host_get_pages(struct spyre_device *sdev, struct spyre_bo *bo, u32 want)
{
	unsigned int order = HUGE_ORDER;
	u32 i;

	while (bo->npages < want) {
		gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
		struct page *page;

		if (fatal_signal_pending(current))
			return -EINTR;
		order = min_t(unsigned int, order, ilog2(want - bo->npages));
		/*
		 * Large pieces are a gain, not a need; a single page is worth trying harder, but
		 * no OOM kill.
		 */
		gfp |= order ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
		page = alloc_pages(gfp, order);
		if (!page) {
			if (!order)
				return -ENOMEM;
			order--;
			continue;
		}
		/* Pages are mapped and freed one by one. */
		split_page(page, order);
		atomic64_add(1u << order, &sdev->host_pages);
		bo->chunks[bo->nchunks].first = bo->npages;
		bo->chunks[bo->nchunks].npages = 1u << order;
		bo->nchunks++;
		for (i = 0; i < 1u << order; i++)
			bo->pages[bo->npages++] = page + i;
		cond_resched();
	}
	return 0;
}

static int map_chunks(struct spyre_device *sdev, struct spyre_bo *bo)
{
	struct device *dev = &sdev->pdev->dev;
	u32 i;

	for (i = 0; i < bo->nchunks; i++) {
		struct spyre_chunk *c = &bo->chunks[i];

		c->dma = dma_map_page_attrs(dev, bo->pages[c->first], 0,
					    (size_t)c->npages << PAGE_SHIFT, bo->dma_dir,
					    MAP_ATTRS);
		if (dma_mapping_error(dev, c->dma)) {
			unmap_chunks(sdev, bo, i);
			return -ENOMEM;
		}
		/*
		 * Both sides poll words in these pages: bounce buffers or cache flushes cannot
		 * work.
		 */
		if (dma_need_sync(dev, c->dma)) {
			drm_err_once(&sdev->drm, "DMA on this machine is not coherent\n");
			unmap_chunks(sdev, bo, i + 1);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

/* Host memory of any kind becomes known to the card's bus, until removal at the latest. */
int spyre_bo_on_bus(struct spyre_device *sdev, struct spyre_bo *bo)
{
	int ret = -ENODEV;

	mutex_lock(&sdev->bo_lock);
	/* Removal sets it before it takes bo_lock to look for buffers: one of us sees the other. */
	if (!READ_ONCE(sdev->gone))
		ret = bo->kind == SPYRE_KIND_IMPORT ? spyre_dmabuf_on_bus(sdev, bo) :
						      map_chunks(sdev, bo);
	if (!ret) {
		bo->on_bus = true;
		list_add(&bo->link, &sdev->bos);
	}
	mutex_unlock(&sdev->bo_lock);
	return ret;
}

/*
 * The process's pages. What they may be is the core's affair, and so is that they stay what they
 * are: private pages that are shared with others are copied first, a child gets copies, and files
 * whose dirty pages someone tracks are refused. May wait for whoever serves page faults in user
 * space: no lock is held.
 */
static int user_pin(struct spyre_device *sdev, struct spyre_bo *bo, unsigned long addr, u32 want)
{
	unsigned int flags = FOLL_LONGTERM | (bo->dma_dir == DMA_BIDIRECTIONAL ? FOLL_WRITE : 0);
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT, pinned;
	struct mm_struct *mm = current->mm;
	int n;

	/*
	 * An atomic count, as the last reference may go below reset_sem, where mmap_lock, which a
	 * process can hold for as long as it wants, must not be waited for.
	 */
	pinned = atomic64_add_return(want, &mm->pinned_vm);
	if (pinned + READ_ONCE(mm->locked_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(want, &mm->pinned_vm);
		drm_dbg(&sdev->drm,
			"RLIMIT_MEMLOCK exceeded: %lu KiB locked or pinned, limit %lu KiB, %u KiB more wanted\n",
			(pinned - want + READ_ONCE(mm->locked_vm)) << (PAGE_SHIFT - 10),
			limit << (PAGE_SHIFT - 10), want << (PAGE_SHIFT - 10));
		return -EPERM;
	}
	mmgrab(mm);
	bo->mm = mm;
	while (bo->npages < want) {
		if (fatal_signal_pending(current))
			return -EINTR;
		n = pin_user_pages_fast(addr + ((unsigned long)bo->npages << PAGE_SHIFT),
					min_t(u32, want - bo->npages, USER_BATCH), flags,
					bo->pages + bo->npages);
		if (n < 0)
			return n;
		if (!n)
			return -EFAULT;
		bo->npages += n;
		atomic64_add(n, &sdev->user_pages);
		cond_resched();
	}
	return 0;
}

/*
 * Pieces that are contiguous in memory. None goes over a 2 MiB boundary of the process, so that one
 * that fills a 2 MiB page gets a bus address of its own, aligned to its size.
 */
static void user_chunks(struct spyre_bo *bo)
{
	u32 i;

	for (i = 0; i < bo->npages; i++) {
		struct spyre_chunk *c = &bo->chunks[bo->nchunks];

		if (i && (bo->color + i) % (1u << HUGE_ORDER) &&
		    page_to_pfn(bo->pages[i]) == page_to_pfn(bo->pages[i - 1]) + 1) {
			c[-1].npages++;
			continue;
		}
		c->first = i;
		c->npages = 1;
		bo->nchunks++;
	}
}

/* Removal: host memory leaves the bus, user mappings of it stay. */
void spyre_bos_off_bus(struct spyre_device *sdev)
{
	struct spyre_bo *bo, *next;

	mutex_lock(&sdev->bo_lock);
	list_for_each_entry_safe(bo, next, &sdev->bos, link)
		host_unmap(sdev, bo);
	mutex_unlock(&sdev->bo_lock);
}

/* The same of what was imported from another card's memory. */
void spyre_bos_off_peer(struct spyre_device *sdev, struct spyre_device *peer)
{
	struct spyre_bo *bo, *next;

	mutex_lock(&sdev->bo_lock);
	list_for_each_entry_safe(bo, next, &sdev->bos, link)
		if (bo->peer && bo->peer->base.dev == &peer->drm)
			host_unmap(sdev, bo);
	mutex_unlock(&sdev->bo_lock);
}

/* No binding of it is added any more, and spyre_vm_withdraw() finds those that there are. */
void spyre_bo_withdraw(struct spyre_bo *bo)
{
	struct spyre_device *sdev = to_spyre(bo->base.dev);
	struct spyre_bound *bound;

	spin_lock(&sdev->wake_lock);
	bo->withdrawn = true;
	/* A context's bindings leave the list before it is freed. */
	list_for_each_entry(bound, &bo->bound, bo_link)
		list_move(&bound->withdrawn, &bound->ctx->vm.withdrawn);
	spin_unlock(&sdev->wake_lock);
}

/* --- Objects -------------------------------------------------------------------------------- */

static void bo_free(struct drm_gem_object *obj)
{
	struct spyre_device *sdev = to_spyre(obj->dev);
	struct spyre_bo *bo = to_bo(obj);

	drm_WARN_ON(&sdev->drm, !list_empty(&bo->bound));
	drm_gem_free_mmap_offset(obj);
	if (spyre_bo_is_host(bo) || spyre_bo_binds_host(bo))
		host_free(sdev, bo);
	if (bo->ndev_pages)
		spyre_mem_free(sdev, bo->dev_pages, bo->ndev_pages, bo->gen);
	spyre_compat_dmem_uncharge(bo->pool, bo->base.size);
	if (bo->dummy)
		__free_page(bo->dummy);
	kvfree(bo->dev_pages);
	drm_gem_object_release(obj);
	kfree(bo);
	atomic_dec(&sdev->nbos);
}

static struct page *dummy_page(struct page **dummy)
{
	struct page *page = READ_ONCE(*dummy), *first;

	if (page)
		return page;
	page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!page)
		return NULL;
	first = cmpxchg(dummy, NULL, page);
	if (!first)
		return page;
	__free_page(page);
	return first;
}

static vm_fault_t fault_dummy(struct vm_fault *vmf)
{
	struct drm_gem_object *obj = vmf->vma->vm_private_data;
	struct file *filp = vmf->vma->vm_file;
	struct page *page;

	/*
	 * Who maps a dma-buf shares the stand-in with those who share the buffer. The vma keeps
	 * file and object, so the page outlives the mapping.
	 */
	if (filp->f_op == obj->dev->driver->fops) {
		struct drm_file *drm_file = filp->private_data;
		struct spyre_file *file = drm_file->driver_priv;

		page = dummy_page(&file->dummy);
	} else {
		page = dummy_page(&to_bo(obj)->dummy);
	}
	if (!page)
		return VM_FAULT_OOM;
	return vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(page));
}

static vm_fault_t fault_host(struct vm_fault *vmf, struct spyre_bo *bo, pgoff_t at)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long addr = vmf->address & PAGE_MASK;
	vm_fault_t ret = VM_FAULT_NOPAGE;
	u32 i;

	/* Pages behind the one asked for come along: buffers are filled from front to back. */
	for (i = 0; i < FAULT_AROUND && at + i < bo->npages && addr < vma->vm_end; i++) {
		vm_fault_t r = vmf_insert_pfn(vma, addr, page_to_pfn(bo->pages[at + i]));

		if (r != VM_FAULT_NOPAGE) {
			if (!i)
				ret = r;
			break;
		}
		addr += PAGE_SIZE;
	}
	return ret;
}

static vm_fault_t bo_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct drm_gem_object *obj = vma->vm_private_data;
	struct spyre_device *sdev = to_spyre(obj->dev);
	struct spyre_bo *bo = to_bo(obj);
	pgoff_t at = vmf->pgoff - drm_vma_node_start(&obj->vma_node);
	u64 byte = (u64)at << PAGE_SHIFT;
	phys_addr_t phys;
	pgprot_t prot;
	vm_fault_t ret;

	if (spyre_bo_is_host(bo))
		return fault_host(vmf, bo, at);

	/*
	 * Held over the insertion: a zap after mmio_ok was cleared finds the page, or we see it
	 * cleared.
	 */
	down_read(&sdev->mmio_sem);
	if (!sdev->mmio_ok || bo->revoked ||
	    (bo->kind == SPYRE_KIND_DEVICE && bo->gen != READ_ONCE(sdev->mem.gen))) {
		ret = fault_dummy(vmf);
	} else {
		if (bo->kind == SPYRE_KIND_DEVICE) {
			phys = sdev->aperture_phys +
			       ((u64)bo->dev_pages[byte >> SPYRE_PAGE_SHIFT] << SPYRE_PAGE_SHIFT) +
			       (byte & (SPYRE_PAGE_SIZE - 1));
			prot = pgprot_writecombine(vma->vm_page_prot);
		} else {
			phys = sdev->doorbell_phys + (u64)bo->db_page * SPYRE_DB_PAGE_SIZE;
			prot = pgprot_noncached(vma->vm_page_prot);
		}
		ret = vmf_insert_pfn_prot(vma, vmf->address, phys >> PAGE_SHIFT, prot);
	}
	up_read(&sdev->mmio_sem);
	return ret;
}

static const struct vm_operations_struct bo_vm_ops = {
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
	.fault = bo_fault,
};

static bool bo_mappable(const struct spyre_bo *bo)
{
	if (bo->kind == SPYRE_KIND_USER || bo->kind == SPYRE_KIND_IMPORT)
		return false;
	return bo->kind != SPYRE_KIND_DEVICE || bo->flags & DRM_SPYRE_BO_MAPPABLE;
}

static int bo_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	struct spyre_bo *bo = to_bo(obj);

	if (!bo_mappable(bo))
		return -EPERM;

	/* Not VM_SHARED: a shared mapping of a file that is open for reading alone has lost it. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	if (bo->kind == SPYRE_KIND_STATUS) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP |
		     VM_NORESERVE);
	vma->vm_ops = &bo_vm_ops;
	return 0;
}

static const struct drm_gem_object_funcs bo_funcs = {
	.free = bo_free,
	.mmap = bo_mmap,
	.export = spyre_dmabuf_export,
	.get_sg_table = spyre_dmabuf_sg_table,
	.vm_ops = &bo_vm_ops,
};

struct spyre_bo *spyre_bo_new(struct spyre_device *sdev, u64 size, enum spyre_bo_kind kind)
{
	struct spyre_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);

	if (!bo)
		return ERR_PTR(-ENOMEM);
	atomic_inc(&sdev->nbos);
	bo->kind = kind;
	bo->dma_dir = DMA_BIDIRECTIONAL;
	INIT_LIST_HEAD(&bo->link);
	INIT_LIST_HEAD(&bo->bound);
	INIT_LIST_HEAD(&bo->peer_link);
	init_waitqueue_head(&bo->waitq);
	bo->base.funcs = &bo_funcs;
	drm_gem_private_object_init(&sdev->drm, &bo->base, size);
	return bo;
}

/*
 * Host memory that is not on the bus yet. A cgroup over its memory.high makes who allocates sleep
 * for seconds, again and again: what may be large is allocated with no lock held, and above all not
 * below reset_sem, where a reset and everybody behind it would wait for it.
 *
 * user: in whose quota it counts, NULL: nobody's; exempt: the quota does not bind
 */
struct spyre_bo *spyre_bo_alloc_host(struct spyre_device *sdev, u64 size, enum spyre_bo_kind kind,
				     struct spyre_user *user, bool exempt)
{
	struct spyre_bo *bo;
	u32 want;
	int ret;

	/* More than the machine has, or more than all host addresses of a context reach. */
	if (size >> PAGE_SHIFT > totalram_pages() || size > SPYRE_HMVA_SIZE ||
	    size >> PAGE_SHIFT >= INT_MAX / sizeof(struct spyre_chunk))
		return ERR_PTR(-ENOMEM);
	size = PAGE_ALIGN(size);
	want = size >> PAGE_SHIFT;
	bo = spyre_bo_new(sdev, size, kind);
	if (IS_ERR(bo))
		return bo;
	bo->flags = DRM_SPYRE_BO_HOST;
	if (user) {
		ret = spyre_user_charge_host(sdev, user, want, exempt);
		if (ret)
			goto err;
		bo->user = spyre_user_ref(sdev, user);
	}
	bo->pages = kvmalloc_array(want, sizeof(*bo->pages), GFP_KERNEL_ACCOUNT);
	bo->chunks = kvmalloc_array(want, sizeof(*bo->chunks), GFP_KERNEL_ACCOUNT);
	ret = -ENOMEM;
	if (bo->pages && bo->chunks)
		ret = host_get_pages(sdev, bo, want);
	if (ret)
		goto err;
	return bo;

err:
	spyre_bo_put(bo);
	return ERR_PTR(ret);
}

static struct spyre_bo *bo_create_user(struct spyre_device *sdev, u64 addr, u64 size, bool readonly)
{
	struct spyre_bo *bo;
	u32 want;
	int ret;

	if (size >> PAGE_SHIFT > totalram_pages() || size > SPYRE_HMVA_SIZE)
		return ERR_PTR(-ENOMEM);
	want = size >> PAGE_SHIFT;
	bo = spyre_bo_new(sdev, size, SPYRE_KIND_USER);
	if (IS_ERR(bo))
		return bo;
	bo->flags = DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_USER | (readonly ? DRM_SPYRE_BO_READONLY : 0);
	bo->dma_dir = readonly ? DMA_TO_DEVICE : DMA_BIDIRECTIONAL;
	bo->color = (addr >> PAGE_SHIFT) % (1u << HUGE_ORDER);
	bo->pages = kvmalloc_array(want, sizeof(*bo->pages), GFP_KERNEL_ACCOUNT);
	bo->chunks = kvmalloc_array(want, sizeof(*bo->chunks), GFP_KERNEL_ACCOUNT);
	ret = -ENOMEM;
	if (bo->pages && bo->chunks)
		ret = user_pin(sdev, bo, addr, want);
	if (ret) {
		spyre_bo_put(bo);
		return ERR_PTR(ret);
	}
	user_chunks(bo);
	return bo;
}

static struct spyre_bo *bo_create_device(struct spyre_device *sdev, u64 size, bool mappable)
{
	struct spyre_mem *m = &sdev->mem;
	struct spyre_bo *bo;
	u32 n, i, *pages;
	int ret;

	if (size > (u64)(m->end - m->first) << SPYRE_PAGE_SHIFT)
		return ERR_PTR(-ENOSPC);
	size = ALIGN(size, SPYRE_PAGE_SIZE);
	n = size >> SPYRE_PAGE_SHIFT;
	bo = spyre_bo_new(sdev, size, SPYRE_KIND_DEVICE);
	if (IS_ERR(bo))
		return bo;
	bo->flags = DRM_SPYRE_BO_DEVICE | (mappable ? DRM_SPYRE_BO_MAPPABLE : 0);
	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	bo->dev_pages = pages;
	ret = pages ? spyre_mem_charge(sdev, size, &bo->pool) : -ENOMEM;
	if (!ret)
		ret = spyre_mem_alloc(sdev, n, mappable, pages, &bo->gen);
	if (ret) {
		spyre_bo_put(bo);
		return ERR_PTR(ret);
	}
	bo->ndev_pages = n;
	for (i = 0; i < n; i++)
		drm_WARN_ON_ONCE(&sdev->drm, pages[i] < m->first || pages[i] >= m->end);
	return bo;
}

struct spyre_bo *spyre_bo_create_doorbell(struct spyre_device *sdev, u32 page)
{
	struct spyre_bo *bo = spyre_bo_new(sdev, PAGE_SIZE, SPYRE_KIND_DOORBELL);

	if (!IS_ERR(bo))
		bo->db_page = page;
	return bo;
}

/* The page belongs to someone else from now on: whoever still maps it gets the dummy page. */
void spyre_bo_revoke(struct spyre_bo *bo)
{
	struct spyre_device *sdev = to_spyre(bo->base.dev);

	down_write(&sdev->mmio_sem);
	bo->revoked = true;
	up_write(&sdev->mmio_sem);
	drm_vma_node_unmap(&bo->base.vma_node, sdev->drm.anon_inode->i_mapping);
}

/* Every mapping of this card; what may be shown is faulted in again. */
void spyre_zap_mappings(struct spyre_device *sdev)
{
	unmap_mapping_range(sdev->drm.anon_inode->i_mapping, 0, 0, 1);
}

/* Bytes behind a file's handles. */
void spyre_file_sizes(struct drm_file *drm_file, u64 *device, u64 *host)
{
	struct drm_gem_object *obj;
	int id;

	*device = 0;
	*host = 0;
	spin_lock(&drm_file->table_lock);
	idr_for_each_entry(&drm_file->object_idr, obj, id) {
		if (to_bo(obj)->kind == SPYRE_KIND_DEVICE)
			*device += obj->size;
		else if (!to_bo(obj)->peer)
			*host += obj->size;
	}
	spin_unlock(&drm_file->table_lock);
}

/* --- ioctls --------------------------------------------------------------------------------- */

#define BO_FLAGS (DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_MAPPABLE)

int spyre_bo_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;
	struct drm_spyre_bo_create *args = data;
	struct spyre_bo *bo = NULL;
	bool device = args->flags & DRM_SPYRE_BO_DEVICE;
	bool host = args->flags & DRM_SPYRE_BO_HOST;
	int ret;

	if (!args->size || args->flags & ~BO_FLAGS || device == host ||
	    (host && args->flags & DRM_SPYRE_BO_MAPPABLE))
		return -EINVAL;
	if (READ_ONCE(sdev->gen) != file->gen)
		return -ENODEV;
	if (host) {
		bo = spyre_bo_alloc_host(sdev, args->size, SPYRE_KIND_HOST, file->user,
					 file->exempt);
		if (IS_ERR(bo))
			return PTR_ERR(bo);
	}
	ret = spyre_enter(sdev, file);
	if (ret)
		goto out;
	if (host) {
		ret = spyre_bo_on_bus(sdev, bo);
	} else {
		bo = bo_create_device(sdev, args->size, args->flags & DRM_SPYRE_BO_MAPPABLE);
		if (IS_ERR(bo)) {
			ret = PTR_ERR(bo);
			bo = NULL;
		}
	}
	if (!ret) {
		args->size = bo->base.size;
		ret = drm_gem_handle_create(drm_file, &bo->base, &args->handle);
	}
	spyre_exit(sdev);
out:
	if (bo)
		spyre_bo_put(bo);
	return ret;
}

int spyre_bo_userptr_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;
	struct drm_spyre_bo_userptr *args = data;
	struct spyre_bo *bo;
	int ret;

	if (args->flags & ~DRM_SPYRE_USERPTR_READONLY || !args->size ||
	    !PAGE_ALIGNED(args->addr | args->size) || args->addr + args->size < args->addr)
		return -EINVAL;
	if (READ_ONCE(sdev->gen) != file->gen)
		return -ENODEV;
	bo = bo_create_user(sdev, args->addr, args->size,
			    args->flags & DRM_SPYRE_USERPTR_READONLY);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = spyre_enter(sdev, file);
	if (ret)
		goto out;
	ret = spyre_bo_on_bus(sdev, bo);
	if (!ret)
		ret = drm_gem_handle_create(drm_file, &bo->base, &args->handle);
	spyre_exit(sdev);
out:
	spyre_bo_put(bo);
	return ret;
}

int spyre_bo_info_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct drm_spyre_bo_info *args = data;
	struct drm_gem_object *obj;
	int ret;

	ret = spyre_enter(sdev, drm_file->driver_priv);
	if (ret)
		return ret;
	obj = drm_gem_object_lookup(drm_file, args->handle);
	if (obj) {
		args->flags = to_bo(obj)->flags;
		args->size = obj->size;
		drm_gem_object_put(obj);
	} else {
		ret = -ENOENT;
	}
	spyre_exit(sdev);
	return ret;
}

int spyre_bo_mmap_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct drm_spyre_bo_mmap *args = data;
	struct drm_gem_object *obj;
	int ret;

	if (args->pad)
		return -EINVAL;
	ret = spyre_enter(sdev, drm_file->driver_priv);
	if (ret)
		return ret;
	obj = drm_gem_object_lookup(drm_file, args->handle);
	if (!obj) {
		ret = -ENOENT;
		goto out;
	}
	if (!bo_mappable(to_bo(obj)))
		ret = -EPERM;
	if (!ret)
		ret = drm_gem_create_mmap_offset(obj);
	if (!ret)
		args->offset = drm_vma_node_offset_addr(&obj->vma_node);
	drm_gem_object_put(obj);
out:
	spyre_exit(sdev);
	return ret;
}
