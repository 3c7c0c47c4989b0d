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

	bo->chunks = kvmalloc_array(bo->sgt->nents, sizeof(*bo->chunks), GFP_KERNEL_ACCOUNT);
	if (!bo->chunks)
		return -ENOMEM;
	for_each_sgtable_dma_sg(bo->sgt, sg, i) {
		struct spyre_chunk *c = &bo->chunks[bo->nchunks++];

		c->dma = sg_dma_address(sg);
		if (!PAGE_ALIGNED(c->dma | sg_dma_len(sg)))
			return -EINVAL;
		if (dma_need_sync(&sdev->pdev->dev, c->dma))
			return -EOPNOTSUPP;
		c->first = bo->npages;
		c->npages = min_t(u32, sg_dma_len(sg) >> PAGE_SHIFT, want - bo->npages);
		bo->npages += c->npages;
	}
	if (bo->npages != want)
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

/* Device memory of another card. */
static struct drm_gem_object *import_peer(struct spyre_device *sdev, struct dma_buf *buf)
{
	struct spyre_bo *from = to_bo(buf->priv), *bo;
	int ret;

	/* All of such a buffer lies in the aperture. */
	if (!(from->flags & DRM_SPYRE_BO_MAPPABLE))
		return ERR_PTR(-EPERM);
	bo = spyre_bo_new(sdev, buf->size, SPYRE_KIND_IMPORT);
	if (IS_ERR(bo))
		return ERR_CAST(bo);
	/* Keeps the buffer, and with it the card's struct. Given back by spyre_dmabuf_put(). */
	get_dma_buf(buf);
	bo->import_buf = buf;
	bo->peer = from;
	bo->base.resv = buf->resv;
	bo->flags = DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_IMPORT | DRM_SPYRE_BO_PEER;
	if (!(buf->file->f_mode & FMODE_WRITE)) {
		bo->flags |= DRM_SPYRE_BO_READONLY;
		bo->dma_dir = DMA_TO_DEVICE;
	}
	ret = spyre_bo_on_bus(sdev, bo);
	if (ret) {
		spyre_bo_put(bo);
		return ERR_PTR(ret);
	}
	return &bo->base;
}

/**
 * spyre_dmabuf_import - what FD_TO_HANDLE makes of a dma-buf
 * @drm: card
 * @buf: of any driver
 *
 * The attachment is static: the exporter keeps the memory where it is until the buffer goes.
 */
struct drm_gem_object *spyre_dmabuf_import(struct drm_device *drm, struct dma_buf *buf)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct dma_buf_attachment *attach;
	struct spyre_bo *bo;
	int ret;

	if (buf->ops == &buf_ops) {
		struct drm_gem_object *obj = buf->priv;

		if (obj->dev == drm) {
			drm_gem_object_get(obj);
			return obj;
		}
		if (to_bo(obj)->kind == SPYRE_KIND_DEVICE)
			return import_peer(sdev, buf);
	}
	if (!PAGE_ALIGNED(buf->size) || buf->size > SPYRE_HMVA_SIZE)
		return ERR_PTR(-EINVAL);
	attach = dma_buf_attach(buf, &sdev->pdev->dev);
	if (IS_ERR(attach))
		return ERR_CAST(attach);
	bo = spyre_bo_new(sdev, buf->size, SPYRE_KIND_IMPORT);
	if (IS_ERR(bo)) {
		dma_buf_detach(buf, attach);
		return ERR_CAST(bo);
	}
	/* Given back by spyre_dmabuf_put(). */
	get_dma_buf(buf);
	bo->import_buf = buf;
	bo->base.import_attach = attach;
	bo->base.resv = buf->resv;
	bo->flags = DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_IMPORT;
	ret = spyre_bo_on_bus(sdev, bo);
	if (ret) {
		spyre_bo_put(bo);
		return ERR_PTR(ret);
	}
	return &bo->base;
}
