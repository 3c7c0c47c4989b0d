// SPDX-License-Identifier: MIT
/*
 * Memory that is not this session's alone: the program's own, registered, and buffers that processes
 * share as dma-bufs. Each is a region of its own in the heap of its kind, so that copies, queries and
 * frees find it like any other.
 *
 * What is imported is held by its binding: its handle is closed at once. A file has one handle for
 * each buffer however often it imports it, so closing it later would take it away from another
 * import.
 */
#include "rt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HOST_PAGE	4096u

/* --- The program's own memory --------------------------------------------------------------- */

static enum spyrert_status fail_overlap(const void *ptr, size_t bytes,
					const struct rt_host_region *r)
{
	return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
		       "%p to %p overlaps %p to %p, which is %s on this device already", ptr,
		       (const void *)((const char *)ptr + bytes), (const void *)r->cpu,
		       (const void *)(r->cpu + r->size),
		       r->flags & SPYRERT_POINTER_REGISTERED ? "registered" : "pinned memory");
}

static enum spyrert_status fail_register(struct rt_session *s, int err, const void *ptr,
					 size_t bytes, bool readonly)
{
	if (err == -EFAULT)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "%p to %p cannot be registered: it is not all mapped with "
			       "permission to %s, or not all by memory that can be pinned for long "
			       "(mappings of devices%s)",
			       ptr, (const void *)((const char *)ptr + bytes),
			       readonly ? "read" : "read and write",
			       readonly ? "" : ", shared mappings of files on a disk");
	return rt_fail_host(s, err, bytes, "registering host memory");
}

RT_PUBLIC enum spyrert_status spyrert_host_register(struct spyrert_device *dev, void *ptr,
						    size_t bytes, uint32_t flags)
{
	bool readonly = flags & SPYRERT_REGISTER_READONLY;
	struct drm_spyre_bo_userptr u = {
		.addr = (uintptr_t)ptr, .size = bytes,
		.flags = readonly ? DRM_SPYRE_USERPTR_READONLY : 0,
	};
	struct rt_host_region *r, *other;
	enum spyrert_status status;
	struct rt_block *block;
	struct rt_session *s;
	int err;

	if (flags & ~SPYRERT_REGISTER_READONLY)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "unknown register flags %#x", flags);
	if (!ptr || !bytes || (uintptr_t)ptr % HOST_PAGE || bytes % HOST_PAGE ||
	    (uintptr_t)ptr + bytes < (uintptr_t)ptr)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "%p and size %zu cannot be registered: start and size must be "
			       "multiples of 4096 and not 0; use aligned_alloc(4096, ...) or mmap()",
			       ptr, bytes);
	if (bytes > SPYRE_SEGMENT_SIZE)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "%zu bytes are more than one registration can have (16 GiB); "
			       "register them in parts",
			       bytes);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	r = calloc(1, sizeof(*r));
	if (!r) {
		rt_session_put(s);
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	}
	r->cpu = ptr;
	r->size = bytes;
	r->flags = SPYRERT_POINTER_REGISTERED | (readonly ? SPYRERT_POINTER_READONLY : 0);
	pthread_mutex_lock(&s->mem_lock);
	other = rt_host_region_overlap(s, ptr, bytes);
	if (other)
		status = fail_overlap(ptr, bytes, other);
	pthread_mutex_unlock(&s->mem_lock);
	/* Without the lock: pages may be big or slow, or served by a thread that uses the library. */
	if (!status) {
		err = rt_ioctl(s, DRM_IOCTL_SPYRE_BO_USERPTR, &u, "BO_USERPTR");
		if (err)
			status = fail_register(s, err, ptr, bytes, readonly);
	}
	if (status) {
		free(r);
		rt_session_put(s);
		return status;
	}
	r->handle = u.handle;
	pthread_mutex_lock(&s->mem_lock);
	/* Another thread may have been faster. */
	other = rt_host_region_overlap(s, ptr, bytes);
	if (other) {
		status = fail_overlap(ptr, bytes, other);
	} else {
		err = rt_vm_map(s, r->handle, readonly ? DRM_SPYRE_VM_READONLY : 0, 0, &r->hmva);
		if (!err)
			err = rt_host_region_add(s, r);
		if (!err)
			err = rt_heap_adopt(&s->pinned, r->hmva, r->size, r, r->flags, &block);
		if (err)
			status = rt_fail_host(s, err, bytes, "registering host memory");
	}
	if (status)
		rt_host_region_drop(s, r);
	else
		rt_log(s->lib, RT_LOG_MEM, "registered %p + %#zx", ptr, bytes);
	pthread_mutex_unlock(&s->mem_lock);
	rt_session_put(s);
	return status;
}

/* The registration that starts there, NULL: none. mem_lock held. */
static struct rt_host_region *registered_at(struct rt_session *s, const void *ptr)
{
	struct rt_host_region *r = rt_host_region_find(s, ptr);

	return r && r->cpu == ptr && r->flags & SPYRERT_POINTER_REGISTERED ? r : NULL;
}

/* The session in which the range was registered, the newest first, with a reference. */
static struct rt_session *registered_in(struct spyrert_device *dev, const void *ptr)
{
	struct rt_session *s;
	bool found = false;

	pthread_mutex_lock(&dev->lock);
	for (s = dev->session; s; s = s->older) {
		pthread_mutex_lock(&s->mem_lock);
		found = registered_at(s, ptr);
		pthread_mutex_unlock(&s->mem_lock);
		if (found) {
			rt_session_get(s);
			break;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	return s;
}

RT_PUBLIC enum spyrert_status spyrert_host_unregister(struct spyrert_device *dev, void *ptr)
{
	enum spyrert_status status = SPYRERT_SUCCESS;
	struct rt_host_region *r;
	struct rt_session *s;
	bool found = false;

	if (!dev)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_host_unregister: device is NULL");
	RT_CHECK_FORK(dev->lib);
	s = registered_in(dev, ptr);
	if (s) {
		/* What is done no longer uses it: the streams have to be looked at for that. */
		rt_session_check(s, true);
		pthread_mutex_lock(&s->mem_lock);
		/* Another thread may have been faster. */
		r = registered_at(s, ptr);
		found = r;
		if (found && r->uses)
			status = rt_fail(SPYRERT_ERROR_BUSY,
					 "%p is still used by %u copies or values that were "
					 "submitted; synchronize with their streams, or reset those "
					 "that failed",
					 ptr, r->uses);
		else if (found)
			rt_heap_free(&s->pinned, rt_heap_find(&s->pinned, r->hmva));
		pthread_mutex_unlock(&s->mem_lock);
		rt_session_put(s);
		if (found)
			return status;
	}
	return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
		       "%p is not the start of a range that is registered on this device", ptr);
}

/* --- Export --------------------------------------------------------------------------------- */

RT_PUBLIC enum spyrert_status spyrert_malloc_exportable(struct spyrert_device *dev, uint64_t bytes,
							spyrert_ptr *ptr)
{
	enum spyrert_status status;
	struct rt_block *block;
	struct rt_session *s;

	if (!ptr || !bytes)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_malloc_exportable: %s",
			       ptr ? "size is 0" : "ptr is NULL");
	if (bytes > SPYRE_SEGMENT_SIZE)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "an allocation of %llu bytes is larger than a segment (16 GiB); "
			       "split it",
			       (unsigned long long)bytes);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	bytes = (bytes + SPYRE_PAGE_SIZE - 1) & ~(SPYRE_PAGE_SIZE - 1);
	status = rt_device_own(s, bytes, &block);
	if (!status)
		*ptr = block->addr;
	rt_session_put(s);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_host_alloc_exportable(struct spyrert_device *dev,
							    size_t bytes, void **ptr)
{
	enum spyrert_status status;
	struct rt_host_region *r;
	struct rt_block *block;
	struct rt_session *s;
	int err;

	if (!ptr || !bytes)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_host_alloc_exportable: %s",
			       ptr ? "size is 0" : "ptr is NULL");
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&s->mem_lock);
	err = rt_host_region_new(s, bytes, SPYRERT_POINTER_EXPORTABLE, &r);
	if (!err) {
		err = rt_heap_adopt(&s->pinned, r->hmva, r->size, r, r->flags, &block);
		if (err)
			rt_host_region_drop(s, r);
		else
			*ptr = r->cpu;
	}
	pthread_mutex_unlock(&s->mem_lock);
	if (err)
		status = rt_fail_host(s, err, bytes, "allocating pinned host memory");
	rt_session_put(s);
	return status;
}

enum spyrert_status rt_export_handle(struct rt_session *s, uint32_t handle, int *fd)
{
	struct drm_prime_handle p = { .handle = handle, .flags = DRM_CLOEXEC | DRM_RDWR };
	int err;

	err = rt_ioctl(s, DRM_IOCTL_PRIME_HANDLE_TO_FD, &p, "PRIME_HANDLE_TO_FD");
	if (err == -EOPNOTSUPP)
		return rt_fail(SPYRERT_ERROR_NOT_SUPPORTED,
			       "backend %s cannot export this memory%s", s->lib->be->name,
			       s->lib->be->exportable ?
			       ", as its cards live in this process; export host memory "
			       "(spyrert_host_alloc_exportable())" :
			       "; the driver is too old");
	if (err == -EMFILE)
		return rt_fail(SPYRERT_ERROR_LIMIT,
			       "exporting memory: this process has too many descriptors open; "
			       "close some, or raise 'ulimit -n'");
	if (err)
		return rt_errno(s, err, "exporting memory");
	*fd = p.fd;
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_export(struct spyrert_device *dev, spyrert_ptr ptr, int *fd)
{
	enum spyrert_status status;
	struct rt_session *s;
	struct rt_block *b;

	if (!fd)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_export: fd is NULL");
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&s->mem_lock);
	b = rt_heap_find(&s->tensor, ptr);
	if (b && b->addr == ptr && !b->owner && b->region->flags & SPYRERT_POINTER_EXPORTABLE)
		status = rt_export_handle(s, (uint32_t)(uintptr_t)b->region->cookie, fd);
	else
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 "%#llx is not what spyrert_malloc_exportable() gave on this "
				 "device; other memory lies together with what is not to be shared",
				 (unsigned long long)ptr);
	pthread_mutex_unlock(&s->mem_lock);
	rt_session_put(s);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_host_export(struct spyrert_device *dev, const void *ptr,
						  int *fd)
{
	enum spyrert_status status;
	struct rt_host_region *r;
	struct rt_session *s;

	if (!fd)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_host_export: fd is NULL");
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&s->mem_lock);
	r = rt_host_region_find(s, ptr);
	if (r && r->cpu == ptr && r->flags & SPYRERT_POINTER_EXPORTABLE)
		status = rt_export_handle(s, r->handle, fd);
	else
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 "%p is not what spyrert_host_alloc_exportable() gave on this "
				 "device; other memory lies together with what is not to be shared",
				 ptr);
	pthread_mutex_unlock(&s->mem_lock);
	rt_session_put(s);
	return status;
}

/* --- Import --------------------------------------------------------------------------------- */

/* Of a context that is well ENODEV speaks of the memory. */
static enum spyrert_status fail_lost(struct rt_session *s, int err, const char *what)
{
	struct drm_spyre_device_info now;

	if (!rt_query(s, DRM_SPYRE_QUERY_DEVICE, &now, sizeof(now)) &&
	    now.reset_generation == s->info.reset_generation)
		return rt_fail(SPYRERT_ERROR_REVOKED,
			       "the memory was lost when its card was reset or removed; it must be "
			       "allocated and exported anew");
	return rt_errno(s, err, what);
}

static enum spyrert_status fail_import(struct rt_session *s, int err, int fd)
{
	switch (err) {
	case -EBADF:
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "descriptor %d is not open", fd);
	case -EINVAL:
	case -ENOTTY:
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "descriptor %d is no memory that can be imported on backend %s: %s",
			       fd, s->lib->be->name,
			       s->lib->be->exportable ?
			       "not a memfd of whole pages, sealed with F_SEAL_SHRINK" :
			       "not a dma-buf of whole pages");
	case -EOPNOTSUPP:
		return rt_fail(SPYRERT_ERROR_NOT_SUPPORTED,
			       "descriptor %d is memory that this card cannot reach: device memory "
			       "of another driver, or memory that needs cache maintenance; share "
			       "host memory instead (spyrert_host_alloc_exportable())",
			       fd);
	case -EXDEV:
		return rt_fail(SPYRERT_ERROR_NOT_SUPPORTED,
			       "descriptor %d is device memory of another card, and no PCIe switch "
			       "is above both; share host memory instead "
			       "(spyrert_host_alloc_exportable())",
			       fd);
	case -EPERM:
		return rt_fail(SPYRERT_ERROR_NOT_SUPPORTED,
			       "descriptor %d is device memory of another card beyond the aperture "
			       "by which others reach it, where there was no room for it when it "
			       "was allocated; free other exportable memory there and allocate it "
			       "anew, or share host memory (spyrert_host_alloc_exportable())",
			       fd);
	case -ENODEV:
		return fail_lost(s, err, "importing memory");
	default:
		return rt_errno(s, err, "importing memory");
	}
}

/* Somebody here goes on using the handle. mem_lock held. */
static bool handle_in_use(struct rt_session *s, uint32_t handle)
{
	struct rt_region *reg;
	size_t i;

	for (reg = s->tensor.regions; reg; reg = reg->next)
		if ((uint32_t)(uintptr_t)reg->cookie == handle)
			return true;
	for (i = 0; i < s->nhost_regions; i++)
		if (s->host_regions[i]->handle == handle)
			return true;
	return false;
}

enum spyrert_status rt_import_begin(struct rt_session *s, int fd, uint32_t flags, bool host,
				    struct drm_spyre_bo_info *info)
{
	struct drm_prime_handle p = { .fd = fd };
	int err, mode = fcntl(fd, F_GETFL);

	if (mode < 0)
		return fail_import(s, -EBADF, fd);
	if (!(flags & SPYRERT_IMPORT_READONLY) && (mode & O_ACCMODE) != O_RDWR)
		return rt_fail(SPYRERT_ERROR_PERMISSION,
			       "descriptor %d is open for reading only; import it with "
			       "SPYRERT_IMPORT_READONLY",
			       fd);
	err = rt_ioctl(s, DRM_IOCTL_PRIME_FD_TO_HANDLE, &p, "PRIME_FD_TO_HANDLE");
	if (err)
		return fail_import(s, err, fd);
	memset(info, 0, sizeof(*info));
	info->handle = p.handle;
	err = rt_ioctl(s, DRM_IOCTL_SPYRE_BO_INFO, info, "BO_INFO");
	/* What is bound at host addresses is host memory, but another card's. */
	if (!err && host == (info->flags & DRM_SPYRE_BO_HOST && !(info->flags & DRM_SPYRE_BO_PEER)))
		return SPYRERT_SUCCESS;
	if (!handle_in_use(s, p.handle))
		rt_bo_close(s, p.handle);
	if (err)
		return rt_errno(s, err, "importing memory");
	return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "descriptor %d is %s memory; use %s()", fd,
		       host ? "device" : "host", host ? "spyrert_import" : "spyrert_host_import");
}

enum spyrert_status rt_import_end(struct rt_session *s, const struct drm_spyre_bo_info *info,
				  int err)
{
	if (!handle_in_use(s, info->handle))
		rt_bo_close(s, info->handle);
	if (!err)
		return SPYRERT_SUCCESS;
	if (err == -ENODEV)
		return fail_lost(s, err, "importing memory");
	return rt_fail_host(s, err, info->size, "importing memory");
}

static enum spyrert_status check_import(uint32_t flags, const void *ptr)
{
	if (!ptr)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "importing memory: ptr is NULL");
	if (flags & ~SPYRERT_IMPORT_READONLY)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "unknown import flags %#x", flags);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_import(struct spyrert_device *dev, int fd, uint32_t flags,
					     spyrert_ptr *ptr, uint64_t *bytes)
{
	bool readonly = flags & SPYRERT_IMPORT_READONLY;
	struct drm_spyre_bo_info info;
	enum spyrert_status status;
	struct rt_block *block;
	struct rt_session *s;
	uint64_t addr;
	int err;

	status = check_import(flags, ptr);
	if (status)
		return status;
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&s->mem_lock);
	status = rt_import_begin(s, fd, flags, false, &info);
	if (!status) {
		bool peer = info.flags & DRM_SPYRE_BO_PEER;
		uint32_t map = readonly ? DRM_SPYRE_VM_READONLY : 0;

		err = peer ? rt_vm_map(s, info.handle, map, 0, &addr) :
			     rt_vm_map_own(s, info.handle, map, &addr);
		if (!err) {
			uint64_t bound = addr;

			addr = peer ? rt_peer_addr(addr) : addr;
			err = rt_heap_adopt(peer ? &s->peer : &s->tensor, addr, info.size, NULL,
					    SPYRERT_POINTER_IMPORTED |
						    (readonly ? SPYRERT_POINTER_READONLY : 0),
					    &block);
			if (err)
				rt_vm_unmap(s, bound, peer);
		}
		status = rt_import_end(s, &info, err);
	}
	pthread_mutex_unlock(&s->mem_lock);
	rt_session_put(s);
	if (status)
		return status;
	*ptr = addr;
	if (bytes)
		*bytes = info.size;
	return SPYRERT_SUCCESS;
}

int rt_import_map(struct rt_host_region *r, int fd, bool readonly)
{
	void *p = mmap(NULL, r->size, readonly ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       0);

	if (p == MAP_FAILED)
		return -errno;
	madvise(p, r->size, MADV_DONTFORK);
	r->cpu = p;
	return 0;
}

RT_PUBLIC enum spyrert_status spyrert_host_import(struct spyrert_device *dev, int fd,
						  uint32_t flags, void **ptr, size_t *bytes)
{
	bool readonly = flags & SPYRERT_IMPORT_READONLY;
	struct drm_spyre_bo_info info;
	enum spyrert_status status;
	struct rt_host_region *r;
	struct rt_block *block;
	struct rt_session *s;
	int err, unseen = 0;

	status = check_import(flags, ptr);
	if (status)
		return status;
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	r = calloc(1, sizeof(*r));
	if (!r) {
		rt_session_put(s);
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	}
	r->flags = SPYRERT_POINTER_IMPORTED | (readonly ? SPYRERT_POINTER_READONLY : 0);
	pthread_mutex_lock(&s->mem_lock);
	status = rt_import_begin(s, fd, flags, true, &info);
	if (!status) {
		r->size = info.size;
		err = rt_vm_map(s, info.handle, readonly ? DRM_SPYRE_VM_READONLY : 0, 0, &r->hmva);
		if (!err)
			unseen = rt_import_map(r, fd, readonly);
		if (!err && !unseen)
			err = rt_host_region_add(s, r);
		if (!err && !unseen)
			err = rt_heap_adopt(&s->pinned, r->hmva, r->size, r, r->flags, &block);
		status = rt_import_end(s, &info, err);
		if (!status && unseen)
			status = rt_fail(SPYRERT_ERROR_NOT_SUPPORTED,
					 "descriptor %d is memory that the CPU cannot map: %s", fd,
					 strerror(-unseen));
		if (!status) {
			*ptr = r->cpu;
			if (bytes)
				*bytes = r->size;
			r = NULL;
		}
	}
	if (r)
		rt_host_region_drop(s, r);
	pthread_mutex_unlock(&s->mem_lock);
	rt_session_put(s);
	return status;
}
