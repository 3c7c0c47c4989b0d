// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-buf: buffers that leave this card's files, and buffers of others.
 *
 * A file of the same card that imports gets the object itself, of either kind. Another device gets
 * host memory: it neither moves nor goes while the dma-buf lives, whatever becomes of this card.
 * Device memory is gone after a reset, and nothing in this kernel takes it back from a foreign
 * importer, so there is none. It is ours to take back from another card of this driver, which does
 * without attachment and mapping of the dma-buf, and from who maps it with the CPU: a dma-buf
 * shares the address_space of this card's mappings.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/slab.h>

#include <drm/drm_gem.h>
#include <drm/drm_prime.h>

#include "kernel_compat.h"
#include "spyre_dmabuf.h"
#include "spyre_drv.h"
#include "spyre_gem.h"
#include "spyre_peer.h"

SPYRE_COMPAT_IMPORT_DMA_BUF;

static int buf_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct drm_gem_object *obj = buf->priv;

	return to_bo(obj)->kind == SPYRE_KIND_HOST ? 0 : -EOPNOTSUPP;
}

static const struct dma_buf_ops buf_ops = {
	.attach = buf_attach,
	.map_dma_buf = drm_gem_map_dma_buf,
	.unmap_dma_buf = drm_gem_unmap_dma_buf,
	.release = drm_gem_dmabuf_release,
	.mmap = drm_gem_dmabuf_mmap,
};

struct sg_table *spyre_dmabuf_sg_table(struct drm_gem_object *obj)
{
	struct spyre_bo *bo = to_bo(obj);

	return drm_prime_pages_to_sg(obj->dev, bo->pages, bo->npages);
}

struct dma_buf *spyre_dmabuf_export(struct drm_gem_object *obj, int flags)
{
	struct dma_buf_export_info info = {
		.exp_name = KBUILD_MODNAME,
		.owner = THIS_MODULE,
		.ops = &buf_ops,
		.size = obj->size,
		.flags = flags,
		.resv = obj->resv,
		.priv = obj,
	};
	struct spyre_bo *bo = to_bo(obj);
	int ret;

	if (bo->kind != SPYRE_KIND_HOST && bo->kind != SPYRE_KIND_DEVICE)
		return ERR_PTR(-EOPNOTSUPP);
	/* mmap() of the dma-buf goes by it. */
	ret = drm_gem_create_mmap_offset(obj);
	if (ret)
		return ERR_PTR(ret);
	return drm_gem_dmabuf_export(obj->dev, &info);
}

/* The exporter's pages as chunks. They must be whole pages that need no cache maintenance. */
static int import_chunks(struct spyre_device *sdev, struct spyre_bo *bo)
{
	u32 want = bo->base.size >> PAGE_SHIFT, i;
	struct scatterlist *sg;

	for_each_sgtable_dma_sg(bo->sgt, sg, i) {
		struct spyre_chunk *c = &bo->chunks[bo->nchunks];

		/* There is a chunk for each page, and none for what is beyond or empty. */
		if (bo->npages == want)
			break;
		if (!sg_dma_len(sg))
			continue;
		c->dma = sg_dma_address(sg);
		if (!PAGE_ALIGNED(c->dma | sg_dma_len(sg)))
			return -EINVAL;
		if (dma_need_sync(&sdev->pdev->dev, c->dma))
			return -EOPNOTSUPP;
		c->first = bo->npages;
		c->npages = min_t(u32, sg_dma_len(sg) >> PAGE_SHIFT, want - bo->npages);
		bo->npages += c->npages;
		bo->nchunks++;
	}
	if (!want || bo->npages != want)
		return -EINVAL;
	bo->color = (bo->chunks[0].dma >> PAGE_SHIFT) % (SPYRE_PAGE_SIZE >> PAGE_SHIFT);
	return 0;
}

/*
 * bo_lock is held. Exporters may keep the mapping for as long as there is an attachment, as udmabuf
 * does: it goes as well.
 */
void spyre_dmabuf_off_bus(struct spyre_device *sdev, struct spyre_bo *bo)
{
	if (bo->peer) {
		spyre_peer_off_bus(sdev, bo);
		return;
	}
	dma_buf_unmap_attachment_unlocked(bo->base.import_attach, bo->sgt, bo->dma_dir);
	bo->sgt = NULL;
	dma_buf_detach(bo->import_buf, bo->base.import_attach);
	bo->base.import_attach = NULL;
}

/* bo_lock is held. */
int spyre_dmabuf_on_bus(struct spyre_device *sdev, struct spyre_bo *bo)
{
	int ret;

	if (bo->peer)
		return spyre_peer_on_bus(sdev, bo);
	bo->sgt = dma_buf_map_attachment_unlocked(bo->base.import_attach, bo->dma_dir);
	if (IS_ERR(bo->sgt)) {
		ret = PTR_ERR(bo->sgt);
		bo->sgt = NULL;
		return ret;
	}
	ret = import_chunks(sdev, bo);
	if (ret)
		spyre_dmabuf_off_bus(sdev, bo);
	return ret;
}

/* With the buffer, no lock held: it may be the exporter's last reference. */
void spyre_dmabuf_put(struct spyre_bo *bo)
{
	if (bo->base.import_attach)
		dma_buf_detach(bo->import_buf, bo->base.import_attach);
	dma_buf_put(bo->import_buf);
}

/* --- Import --------------------------------------------------------------------------------- */

/* A call of FD_TO_HANDLE: what it imports, until the core asks for it. */
struct import {
	struct list_head link;		/* in &spyre_device.imports, under its peer_lock */
	struct task_struct *task;
	struct dma_buf *buf;
	struct spyre_bo *bo;		/* or an error; NULL: this card's own, or taken */
};

static bool is_own(struct drm_device *drm, struct dma_buf *buf)
{
	return buf->ops == &buf_ops && ((struct drm_gem_object *)buf->priv)->dev == drm;
}

/* Device memory of another card. */
static int import_peer(struct spyre_bo *bo, struct spyre_bo *from)
{
	/* All of such a buffer lies in the aperture. */
	if (!(from->flags & DRM_SPYRE_BO_MAPPABLE))
		return -EPERM;
	bo->peer = from;
	bo->flags |= DRM_SPYRE_BO_PEER;
	if (!(bo->import_buf->file->f_mode & FMODE_WRITE)) {
		bo->flags |= DRM_SPYRE_BO_READONLY;
		bo->dma_dir = DMA_TO_DEVICE;
	}
	bo->chunks = kvmalloc_array(from->ndev_pages, sizeof(*bo->chunks), GFP_KERNEL_ACCOUNT);
	return bo->chunks ? 0 : -ENOMEM;
}

/* The attachment is static: the exporter keeps the memory where it is until the buffer goes. */
static int import_foreign(struct spyre_device *sdev, struct spyre_bo *bo)
{
	struct dma_buf_attachment *attach;
	u64 size = bo->base.size;

	if (!PAGE_ALIGNED(size) || size > SPYRE_HMVA_SIZE)
		return -EINVAL;
	attach = dma_buf_attach(bo->import_buf, &sdev->pdev->dev);
	if (IS_ERR(attach))
		return PTR_ERR(attach);
	bo->base.import_attach = attach;
	bo->chunks = kvmalloc_array(size >> PAGE_SHIFT, sizeof(*bo->chunks), GFP_KERNEL_ACCOUNT);
	return bo->chunks ? 0 : -ENOMEM;
}

/* A buffer for somebody else's memory, which is not on the bus yet. */
static struct spyre_bo *import_new(struct spyre_device *sdev, struct dma_buf *buf)
{
	struct drm_gem_object *from = buf->ops == &buf_ops ? buf->priv : NULL;
	struct spyre_bo *bo = spyre_bo_new(sdev, buf->size, SPYRE_KIND_IMPORT);
	int ret;

	if (IS_ERR(bo))
		return bo;
	/*
	 * Keeps another card's buffer, and with it that card's struct. Given back by
	 * spyre_dmabuf_put().
	 */
	get_dma_buf(buf);
	bo->import_buf = buf;
	bo->base.resv = buf->resv;
	bo->flags = DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_IMPORT;
	if (from && to_bo(from)->kind == SPYRE_KIND_DEVICE)
		ret = import_peer(bo, to_bo(from));
	else
		ret = import_foreign(sdev, bo);
	if (ret) {
		spyre_bo_put(bo);
		return ERR_PTR(ret);
	}
	return bo;
}

/**
 * spyre_dmabuf_fd_to_handle - FD_TO_HANDLE
 * @drm: card
 * @drm_file: who gets the handle
 * @fd: dma-buf of any driver
 * @handle: out
 *
 * The core holds object_name_lock when it imports, which everybody who makes a buffer needs, with
 * the card entered. A cgroup over its memory.high makes who allocates sleep, and an exporter may
 * allocate all of its memory for an attachment: what may be large is made before.
 *
 * Return: 0 or an error; -EBADF: another thread put another dma-buf behind @fd meanwhile.
 */
int spyre_dmabuf_fd_to_handle(struct drm_device *drm, struct drm_file *drm_file, int fd,
			      u32 *handle)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct import import = { .task = current, .buf = dma_buf_get(fd) };
	int ret;

	if (IS_ERR(import.buf))
		return PTR_ERR(import.buf);
	if (!is_own(drm, import.buf))
		import.bo = import_new(sdev, import.buf);
	spin_lock(&sdev->peer_lock);
	list_add(&import.link, &sdev->imports);
	spin_unlock(&sdev->peer_lock);
	ret = drm_gem_prime_fd_to_handle(drm, drm_file, fd, handle);
	spin_lock(&sdev->peer_lock);
	list_del(&import.link);
	spin_unlock(&sdev->peer_lock);
	if (!IS_ERR_OR_NULL(import.bo))
		spyre_bo_put(import.bo);
	dma_buf_put(import.buf);
	return ret;
}

/**
 * spyre_dmabuf_import - the object that a dma-buf is to this card
 * @drm: card
 * @buf: of any driver; spyre_dmabuf_fd_to_handle() calls for it
 */
struct drm_gem_object *spyre_dmabuf_import(struct drm_device *drm, struct dma_buf *buf)
{
	struct spyre_bo *bo = ERR_PTR(-EBADF);
	struct spyre_device *sdev = to_spyre(drm);
	struct import *import;
	int ret;

	if (is_own(drm, buf)) {
		drm_gem_object_get(buf->priv);
		return buf->priv;
	}
	spin_lock(&sdev->peer_lock);
	list_for_each_entry(import, &sdev->imports, link)
		if (import->task == current && import->buf == buf)
			swap(bo, import->bo);
	spin_unlock(&sdev->peer_lock);
	if (IS_ERR(bo))
		return ERR_CAST(bo);
	ret = spyre_bo_on_bus(sdev, bo);
	if (ret) {
		spyre_bo_put(bo);
		return ERR_PTR(ret);
	}
	return &bo->base;
}
