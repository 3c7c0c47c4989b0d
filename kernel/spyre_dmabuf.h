/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_DMABUF_H
#define SPYRE_DMABUF_H

struct dma_buf;
struct drm_device;
struct drm_file;
struct drm_gem_object;
struct sg_table;
struct spyre_bo;
struct spyre_device;

struct dma_buf *spyre_dmabuf_export(struct drm_gem_object *obj, int flags);
struct sg_table *spyre_dmabuf_sg_table(struct drm_gem_object *obj);
int spyre_dmabuf_fd_to_handle(struct drm_device *drm, struct drm_file *drm_file, int fd,
			      u32 *handle);
struct drm_gem_object *spyre_dmabuf_import(struct drm_device *drm, struct dma_buf *buf);
int spyre_dmabuf_on_bus(struct spyre_device *sdev, struct spyre_bo *bo);
void spyre_dmabuf_off_bus(struct spyre_device *sdev, struct spyre_bo *bo);
void spyre_dmabuf_put(struct spyre_bo *bo);

#endif
