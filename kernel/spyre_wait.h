/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_WAIT_H
#define SPYRE_WAIT_H

struct drm_device;
struct drm_file;
struct spyre_file;

#define SPYRE_WAIT_MAX	64u

int spyre_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
int spyre_wait_cancel_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file);
void spyre_wait_open(struct spyre_file *file);
void spyre_wait_close(struct spyre_file *file);

#endif
