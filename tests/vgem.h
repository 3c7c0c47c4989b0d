/* SPDX-License-Identifier: MIT */
/*
 * vgem: a driver whose fences signal when somebody says so, or after 10 s. Compiled with libdrm's
 * headers in the path.
 */
#ifndef TESTS_VGEM_H
#define TESTS_VGEM_H

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/dma-buf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <drm.h>
#include <drm_mode.h>

struct vgem_attach {
	uint32_t handle, flags, out_fence, pad;
};

struct vgem_signal {
	uint32_t fence, flags;
};

#define VGEM_ATTACH	DRM_IOWR(DRM_COMMAND_BASE + 1, struct vgem_attach)
#define VGEM_SIGNAL	DRM_IOW(DRM_COMMAND_BASE + 2, struct vgem_signal)
#define VGEM_WRITE	1

static inline int vgem_open(void)
{
	glob_t g;
	size_t i;
	int fd = -1;

	if (system("modprobe vgem") || glob("/dev/dri/card*", 0, NULL, &g))
		return -1;
	for (i = 0; i < g.gl_pathc; i++) {
		char name[16] = "";
		struct drm_version v = { .name = name, .name_len = sizeof(name) - 1 };

		fd = open(g.gl_pathv[i], O_RDWR | O_CLOEXEC);
		if (fd >= 0 && !ioctl(fd, DRM_IOCTL_VERSION, &v) && !strcmp(name, "vgem"))
			break;
		close(fd);
		fd = -1;
	}
	globfree(&g);
	return fd;
}

/* A buffer of vgem's as a dma-buf; its handle in *handle. */
static inline int vgem_buffer(int vgem, uint32_t *handle)
{
	struct drm_mode_create_dumb c = { .width = 64, .height = 64, .bpp = 32 };
	struct drm_prime_handle p = { .flags = DRM_CLOEXEC | DRM_RDWR };

	if (ioctl(vgem, DRM_IOCTL_MODE_CREATE_DUMB, &c))
		return -1;
	p.handle = c.handle;
	*handle = c.handle;
	return ioctl(vgem, DRM_IOCTL_PRIME_HANDLE_TO_FD, &p) ? -1 : p.fd;
}

/* A new unsignalled fence of vgem's; its sync_file, or a negative number. */
static inline int vgem_fence(int vgem, uint32_t *fence)
{
	struct dma_buf_export_sync_file e = { .flags = DMA_BUF_SYNC_RW };
	struct vgem_attach a = { .flags = VGEM_WRITE };
	int buf = vgem_buffer(vgem, &a.handle), ret;

	*fence = 0;
	if (buf < 0)
		return buf;
	ret = ioctl(vgem, VGEM_ATTACH, &a);
	if (!ret)
		ret = ioctl(buf, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &e);
	close(buf);
	*fence = a.out_fence;
	return ret ? ret : e.fd;
}

static inline int vgem_signal(int vgem, uint32_t fence)
{
	struct vgem_signal s = { .fence = fence };

	return ioctl(vgem, VGEM_SIGNAL, &s) ? -errno : 0;
}

#endif
