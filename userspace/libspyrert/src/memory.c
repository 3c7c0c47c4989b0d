// SPDX-License-Identifier: MIT
/* Device, program and pinned host memory of a session, on top of rt_heap. */
#include "rt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MB		(1ull << 20)
#define GB		(1ull << 30)
#define HOST_PAGE	4096u
/* Pinned requests from here on get a buffer of their own, which goes back when they are freed. */
#define HOST_OWN	(1 * MB)

/* A free that takes effect when a stream gets to a point. */
struct rt_pending {
	struct rt_pending *next;
	struct rt_block *block;
	struct rt_timeline *timeline;
	uint64_t value;
};

/* Owner of a used block of the tensor heap between free_async and its point. */
static char pending_mark;
/* Owner of pinned blocks that are the library's own. */
static char internal_mark;

static int bo_create(struct rt_session *s, uint64_t *size, uint32_t flags, uint32_t *handle)
{
	struct drm_spyre_bo_create bo = { .size = *size, .flags = flags };
	int err;

	err = rt_ioctl(s, DRM_IOCTL_SPYRE_BO_CREATE, &bo, "BO_CREATE");
	if (err)
		return err;
	*size = bo.size;
	*handle = bo.handle;
	return 0;
}

void rt_bo_close(struct rt_session *s, uint32_t handle)
{
	struct drm_gem_close c = { .handle = handle };

	if (handle)
		rt_ioctl(s, DRM_IOCTL_GEM_CLOSE, &c, "GEM_CLOSE");
}

int rt_vm_map(struct rt_session *s, uint32_t handle, uint32_t flags, uint32_t segment,
	      uint64_t *addr)
{
	struct drm_spyre_vm_bind b = {
		.op = DRM_SPYRE_VM_MAP, .flags = flags, .handle = handle, .segment = segment,
	};
	int err;

	err = rt_ioctl(s, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND");
	if (!err)
		*addr = b.addr;
	return err;
}

void rt_vm_unmap(struct rt_session *s, uint64_t addr, uint32_t space)
{
	struct drm_spyre_vm_bind b = { .op = DRM_SPYRE_VM_UNMAP, .addr = addr, .space = space };

	rt_ioctl(s, DRM_IOCTL_SPYRE_VM_BIND, &b, "VM_BIND");
}

/* One region in one of the segments first to last; halves the wish while the card is too full for
 * it. */
static int grow_device(struct rt_session *s, uint64_t need, uint64_t want, uint32_t first,
		       uint32_t last, uint64_t *base, uint64_t *size, void **cookie)
{
	uint32_t handle, seg;
	int err;

	need = (need + SPYRE_PAGE_SIZE - 1) & ~(SPYRE_PAGE_SIZE - 1);
	want = (want + SPYRE_PAGE_SIZE - 1) & ~(SPYRE_PAGE_SIZE - 1);
	if (need > SPYRE_SEGMENT_SIZE)
		return -E2BIG;
	if (want > SPYRE_SEGMENT_SIZE)
		want = SPYRE_SEGMENT_SIZE;
	for (;;) {
		*size = want;
		err = bo_create(s, size, DRM_SPYRE_BO_DEVICE, &handle);
		if (!err) {
			for (seg = first; seg <= last; seg++) {
				err = rt_vm_map(s, handle, 0, seg, base);
				if (err != -ENOSPC)
					break;
			}
			if (!err)
				break;
			rt_bo_close(s, handle);
		}
		if (err != -ENOSPC || want == need)
			return err;
		want = (want / 2 + SPYRE_PAGE_SIZE - 1) & ~(SPYRE_PAGE_SIZE - 1);
		if (want < need)
			want = need;
	}
	*cookie = (void *)(uintptr_t)handle;
	rt_log(s->lib, RT_LOG_MEM, "region %#llx + %#llx taken", (unsigned long long)*base,
	       (unsigned long long)*size);
	return 0;
}

static int grow_tensor(void *opaque, uint64_t need, uint64_t want, uint64_t *base, uint64_t *size,
		       void **cookie)
{
	return grow_device(opaque, need, want, 0, SPYRE_PROGRAM_SEGMENT - 1, base, size, cookie);
}

static int grow_program(void *opaque, uint64_t need, uint64_t want, uint64_t *base, uint64_t *size,
			void **cookie)
{
	return grow_device(opaque, need, want, SPYRE_PROGRAM_SEGMENT, SPYRE_PROGRAM_SEGMENT, base,
			   size, cookie);
}

static void release_device(void *opaque, uint64_t base, uint64_t size, void *cookie)
{
	struct rt_session *s = opaque;

	if (!rt_lost(s)) {
		rt_vm_unmap(s, base, 0);
		rt_log(s->lib, RT_LOG_MEM, "region %#llx + %#llx given back",
		       (unsigned long long)base, (unsigned long long)size);
	}
	rt_bo_close(s, (uint32_t)(uintptr_t)cookie);
}

/* Index of the first region whose .cpu is above ptr. */
static size_t host_region_after(struct rt_session *s, const void *ptr)
{
	size_t lo = 0, hi = s->nhost_regions, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if ((uintptr_t)s->host_regions[mid]->cpu <= (uintptr_t)ptr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct rt_host_region *rt_host_region_find(struct rt_session *s, const void *ptr)
{
	size_t i = host_region_after(s, ptr);
	struct rt_host_region *r = i ? s->host_regions[i - 1] : NULL;

	return r && (uintptr_t)ptr - (uintptr_t)r->cpu < r->size ? r : NULL;
}

struct rt_host_region *rt_host_region_overlap(struct rt_session *s, const void *ptr, uint64_t bytes)
{
	struct rt_host_region *r = rt_host_region_find(s, ptr);
	size_t i = host_region_after(s, ptr);

	if (!r && i < s->nhost_regions &&
	    (uintptr_t)s->host_regions[i]->cpu - (uintptr_t)ptr < bytes)
		r = s->host_regions[i];
	return r;
}

int rt_host_region_add(struct rt_session *s, struct rt_host_region *r)
{
	size_t i;

	if (s->nhost_regions == s->host_regions_size) {
		size_t n = s->host_regions_size ? s->host_regions_size * 2 : 16;
		struct rt_host_region **bigger = realloc(s->host_regions, n * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		s->host_regions = bigger;
		s->host_regions_size = n;
	}
	i = host_region_after(s, r->cpu);
	memmove(s->host_regions + i + 1, s->host_regions + i,
		(s->nhost_regions - i) * sizeof(*s->host_regions));
	s->host_regions[i] = r;
	s->nhost_regions++;
	return 0;
}

void rt_host_region_drop(struct rt_session *s, struct rt_host_region *r)
{
	size_t i = r->cpu ? host_region_after(s, r->cpu) : 0;

	if (i && s->host_regions[i - 1] == r)
		memmove(s->host_regions + i - 1, s->host_regions + i,
			(s->nhost_regions-- - i) * sizeof(*s->host_regions));
	if (r->hmva && !rt_lost(s))
		rt_vm_unmap(s, r->hmva, 1);
	if (r->cpu && r->flags & SPYRERT_POINTER_IMPORTED)
		munmap(r->cpu, r->size);
	else if (r->cpu && !(r->flags & SPYRERT_POINTER_REGISTERED))
		s->lib->be->unmap(s->be_dev, r->cpu, r->size);
	rt_bo_close(s, r->handle);
	free(r);
}

int rt_host_region_new(struct rt_session *s, uint64_t bytes, uint32_t flags,
		       struct rt_host_region **out)
{
	const struct rt_backend *be = s->lib->be;
	struct drm_spyre_bo_mmap m = { 0 };
	struct rt_host_region *r;
	int err;

	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->flags = flags;
	r->size = (bytes + HOST_PAGE - 1) & ~(uint64_t)(HOST_PAGE - 1);
	err = bo_create(s, &r->size,
			DRM_SPYRE_BO_HOST |
				(flags & SPYRERT_POINTER_EXPORTABLE ? be->exportable : 0),
			&r->handle);
	if (!err)
		err = rt_vm_map(s, r->handle, 0, 0, &r->hmva);
	m.handle = r->handle;
	if (!err)
		err = rt_ioctl(s, DRM_IOCTL_SPYRE_BO_MMAP, &m, "BO_MMAP");
	if (!err) {
		r->cpu = be->map(s->be_dev, m.offset, r->size, true);
		err = r->cpu ? rt_host_region_add(s, r) : -errno;
	}
	if (err) {
		rt_host_region_drop(s, r);
		return err;
	}
	*out = r;
	return 0;
}

static int grow_pinned(void *opaque, uint64_t need, uint64_t want, uint64_t *base, uint64_t *size,
		       void **cookie)
{
	struct rt_host_region *r;
	int err;

	err = rt_host_region_new(opaque, need >= HOST_OWN ? need : want, 0, &r);
	if (err)
		return err;
	*base = r->hmva;
	*size = r->size;
	*cookie = r;
	return 0;
}

static void release_pinned(void *opaque, uint64_t base, uint64_t size, void *cookie)
{
	(void)base;
	(void)size;
	rt_host_region_drop(opaque, cookie);
}

static void release_peer(void *opaque, uint64_t base, uint64_t size, void *cookie)
{
	struct rt_session *s = opaque;

	(void)size;
	(void)cookie;
	if (!rt_lost(s))
		rt_vm_unmap(s, rt_peer_hmva(base), 1);
}

int rt_memory_init(struct rt_session *s)
{
	rt_heap_init(&s->tensor, 32 * MB, 1 * GB);
	s->tensor.grow = grow_tensor;
	s->tensor.release = release_device;
	s->tensor.opaque = s;
	rt_heap_init(&s->program, 4 * MB, 64 * MB);
	s->program.grow = grow_program;
	s->program.release = release_device;
	s->program.opaque = s;
	/* It only adopts. */
	rt_heap_init(&s->peer, 0, 0);
	s->peer.release = release_peer;
	s->peer.opaque = s;
	rt_heap_init(&s->pinned, 1 * MB, 4 * MB);
	s->pinned.grow = grow_pinned;
	s->pinned.release = release_pinned;
	s->pinned.opaque = s;
	s->pending_tail = &s->pending;
	return 0;
}

/* Nothing runs on the session any more. */
void rt_memory_fini(struct rt_session *s)
{
	struct rt_event_slot *e;
	struct rt_pending *p;
	struct rt_slot *slot;

	while ((p = s->pending)) {
		s->pending = p->next;
		free(p);
	}
	while ((e = s->retired)) {
		s->retired = e->next;
		free(e->slot);
		free(e);
	}
	while ((slot = s->free_slots)) {
		s->free_slots = slot->next;
		free(slot);
	}
	rt_heap_fini(&s->tensor);
	rt_heap_fini(&s->program);
	rt_heap_fini(&s->peer);
	rt_heap_fini(&s->pinned);
	free(s->host_regions);
}

void rt_pending_reap(struct rt_session *s)
{
	struct rt_pending **link = &s->pending, *p;

	while ((p = *link)) {
		/* NEVER: the stream was cancelled there; nothing of it runs any more. */
		if (rt_timeline_reached(p->timeline, p->value) == RT_NOT_YET) {
			link = &p->next;
			continue;
		}
		*link = p->next;
		rt_heap_free(rt_tensor_heap(s, p->block->addr), p->block);
		/* The reference goes outside of mem_lock: the last one frees the timeline's slot.
		 */
		p->next = s->spare;
		s->spare = p;
	}
	s->pending_tail = link;
}

static void drop_spare(struct rt_session *s)
{
	struct rt_pending *p, *next;

	pthread_mutex_lock(&s->mem_lock);
	p = s->spare;
	s->spare = NULL;
	pthread_mutex_unlock(&s->mem_lock);
	for (; p; p = next) {
		next = p->next;
		rt_timeline_put(p->timeline);
		free(p);
	}
}

static enum spyrert_status fail_oom(struct rt_session *s, struct rt_heap *heap, uint64_t bytes,
				    int err)
{
	struct drm_spyre_memory_info info = { 0 };
	struct spyrert_memory_stats st;
	char req[64], cap[64], used[64], mine[64], res[64], large[64];
	enum spyrert_status status;
	uint64_t largest;

	if (err == -E2BIG)
		return rt_fail(
			SPYRERT_ERROR_INVALID_ARGUMENT,
			"an allocation of %llu bytes is larger than a segment (16 GiB); split it",
			(unsigned long long)bytes);
	if (err != -ENOSPC)
		return rt_errno(s, err, "allocating device memory");
	status = rt_fail_dmem(s, bytes);
	if (status)
		return status;
	rt_query(s, DRM_SPYRE_QUERY_MEMORY, &info, sizeof(info));
	rt_heap_get_stats(heap, &st);
	largest = st.largest_free > info.largest_free ? st.largest_free : info.largest_free;
	return rt_fail(
		SPYRERT_ERROR_OUT_OF_MEMORY,
		"out of device memory: requested %s; capacity %s, used on the card %s, of which "
		"this "
		"device holds %s (%s allocated); largest free %s; free tensors, call "
		"spyrert_empty_cache() in processes that keep regions, or use smaller batches",
		rt_size_text(req, sizeof(req), bytes), rt_size_text(cap, sizeof(cap), info.total),
		rt_size_text(used, sizeof(used), info.used),
		rt_size_text(res, sizeof(res), s->tensor.stats.reserved + s->program.stats.reserved),
		rt_size_text(mine, sizeof(mine),
			  s->tensor.stats.allocated + s->program.stats.allocated),
		rt_size_text(large, sizeof(large), largest));
}

/* From one of the device heaps; on exhaustion what other heaps and finished frees hold is given
 * back. */
static enum spyrert_status device_alloc(struct rt_session *s, struct rt_heap *heap, uint64_t bytes,
					struct rt_block **block)
{
	enum spyrert_status status = SPYRERT_SUCCESS;
	int err;

	if (bytes > SPYRE_SEGMENT_SIZE)
		return fail_oom(s, heap, bytes, -E2BIG);
	pthread_mutex_lock(&s->mem_lock);
	rt_pending_reap(s);
	err = rt_heap_alloc(heap, bytes, block);
	if (err == -ENOSPC) {
		uint64_t got = rt_heap_trim(&s->tensor) + rt_heap_trim(&s->program);

		if (got)
			err = rt_heap_alloc(heap, bytes, block);
	}
	if (err)
		status = fail_oom(s, heap, bytes, err);
	else
		rt_log(s->lib, RT_LOG_MEM, "alloc %#llx + %#llx",
		       (unsigned long long)(*block)->addr, (unsigned long long)(*block)->size);
	pthread_mutex_unlock(&s->mem_lock);
	drop_spare(s);
	return status;
}

int rt_vm_map_own(struct rt_session *s, uint32_t handle, uint32_t flags, uint64_t *addr)
{
	uint32_t seg = SPYRE_PROGRAM_SEGMENT;
	int err = -ENOSPC;

	/* From the top: those that the heap grows in come last. */
	while (err == -ENOSPC && seg-- > 0) {
		err = rt_vm_map(s, handle, flags, seg, addr);
		/* Address 0 means no memory. */
		if (!err && !*addr) {
			rt_vm_unmap(s, 0, 0);
			err = -ENOSPC;
		}
	}
	return err;
}

static int own_device(struct rt_session *s, uint64_t bytes, struct rt_block **block)
{
	uint32_t handle;
	uint64_t addr;
	int err;

	/* Other cards reach what lies in the aperture; those of this card have no need of it. */
	err = bo_create(s, &bytes, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &handle);
	if (err == -ENOSPC)
		err = bo_create(s, &bytes, DRM_SPYRE_BO_DEVICE, &handle);
	if (err)
		return err;
	err = rt_vm_map_own(s, handle, 0, &addr);
	if (err)
		goto fail;
	err = rt_heap_adopt(&s->tensor, addr, bytes, (void *)(uintptr_t)handle,
			    SPYRERT_POINTER_EXPORTABLE, block);
	if (!err)
		return 0;
	rt_vm_unmap(s, addr, 0);
fail:
	rt_bo_close(s, handle);
	return err;
}

enum spyrert_status rt_device_own(struct rt_session *s, uint64_t bytes, struct rt_block **block)
{
	enum spyrert_status status = SPYRERT_SUCCESS;
	int err;

	pthread_mutex_lock(&s->mem_lock);
	rt_pending_reap(s);
	err = own_device(s, bytes, block);
	if (err == -ENOSPC && rt_heap_trim(&s->tensor) + rt_heap_trim(&s->program))
		err = own_device(s, bytes, block);
	if (err)
		status = fail_oom(s, &s->tensor, bytes, err);
	pthread_mutex_unlock(&s->mem_lock);
	drop_spare(s);
	return status;
}

enum spyrert_status rt_program_alloc(struct rt_session *s, uint64_t bytes, struct rt_block **block)
{
	return device_alloc(s, &s->program, bytes, block);
}

void rt_program_free(struct rt_session *s, struct rt_block *block)
{
	pthread_mutex_lock(&s->mem_lock);
	rt_heap_free(&s->program, block);
	pthread_mutex_unlock(&s->mem_lock);
}

RT_PUBLIC enum spyrert_status spyrert_malloc(struct spyrert_device *dev, uint64_t bytes,
					     spyrert_ptr *ptr)
{
	enum spyrert_status status;
	struct rt_block *block;
	struct rt_session *s;

	if (!ptr)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_malloc: ptr is NULL");
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	if (!bytes) {
		*ptr = 0;
	} else {
		status = device_alloc(s, &s->tensor, bytes, &block);
		if (!status)
			*ptr = block->addr;
	}
	rt_session_put(s);
	return status;
}

/* The block that starts at ptr, for freeing it; mem_lock held. */
static struct rt_block *block_to_free(struct rt_session *s, spyrert_ptr ptr,
				      enum spyrert_status *status)
{
	struct rt_block *b = rt_heap_find(rt_tensor_heap(s, ptr), ptr);

	*status = SPYRERT_SUCCESS;
	if (b && b->addr == ptr && !b->owner)
		return b;
	if (b && b->owner)
		*status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				  "%#llx was freed already by spyrert_free_async()",
				  (unsigned long long)ptr);
	else if (b)
		*status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				  "%#llx lies inside the allocation at %#llx; free that address",
				  (unsigned long long)ptr, (unsigned long long)b->addr);
	else
		*status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				  "%#llx is not allocated on this device, or was freed already",
				  (unsigned long long)ptr);
	return NULL;
}

RT_PUBLIC enum spyrert_status spyrert_free(struct spyrert_device *dev, spyrert_ptr ptr)
{
	enum spyrert_status status;
	struct rt_session *s;
	struct rt_block *b;

	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	if (ptr) {
		pthread_mutex_lock(&s->mem_lock);
		b = block_to_free(s, ptr, &status);
		if (b)
			rt_heap_free(rt_tensor_heap(s, ptr), b);
		pthread_mutex_unlock(&s->mem_lock);
	}
	rt_session_put(s);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_malloc_async(struct spyrert_stream *st, uint64_t bytes,
						   spyrert_ptr *ptr)
{
	struct rt_pending **link, *p, **best = NULL;
	enum spyrert_status status;
	struct rt_session *s;
	struct rt_block *block;
	uint64_t size;

	if (!st || !ptr)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_malloc_async: NULL argument");
	RT_CHECK_FORK(st->dev->lib);
	s = st->session;
	if (rt_lost(s))
		return rt_fail_lost();
	if (!bytes) {
		*ptr = 0;
		return SPYRERT_SUCCESS;
	}
	size = (bytes + SPYRERT_STICK - 1) & ~(uint64_t)(SPYRERT_STICK - 1);
	/* What this stream frees is free for what it does later. */
	pthread_mutex_lock(&s->mem_lock);
	for (link = &s->pending; (p = *link); link = &p->next)
		/* A region of its own is shared with others, and has a life of its own. */
		if (p->timeline == st->timeline && !p->block->region->whole &&
		    p->block->size >= size &&
		    p->block->size <= size + size / 8 &&
		    (!best || p->block->size < (*best)->block->size))
			best = link;
	if (best) {
		p = *best;
		*best = p->next;
		if (s->pending_tail == &p->next)
			s->pending_tail = best;
		p->block->owner = NULL;
		*ptr = p->block->addr;
		p->next = s->spare;
		s->spare = p;
	}
	pthread_mutex_unlock(&s->mem_lock);
	if (best) {
		drop_spare(s);
		return SPYRERT_SUCCESS;
	}
	status = device_alloc(s, &s->tensor, bytes, &block);
	if (!status)
		*ptr = block->addr;
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_free_async(struct spyrert_stream *st, spyrert_ptr ptr)
{
	enum spyrert_status status;
	struct rt_session *s;
	struct rt_pending *p;
	struct rt_block *b;
	uint64_t value;

	if (!st)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_free_async: stream is NULL");
	if (!ptr) {
		RT_CHECK_FORK(st->dev->lib);
		return SPYRERT_SUCCESS;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	status = rt_stream_begin(st);
	if (status) {
		free(p);
		return status;
	}
	s = st->session;
	pthread_mutex_lock(&s->mem_lock);
	b = block_to_free(s, ptr, &status);
	if (b)
		b->owner = &pending_mark;
	pthread_mutex_unlock(&s->mem_lock);
	if (b)
		status = rt_stream_signal(st);
	if (status) {
		if (b) {
			pthread_mutex_lock(&s->mem_lock);
			b->owner = NULL;
			pthread_mutex_unlock(&s->mem_lock);
		}
		rt_stream_commit(st);
		free(p);
		return status;
	}
	value = st->timeline->last;
	p->timeline = rt_timeline_get(st->timeline);
	p->block = b;
	p->value = value;
	pthread_mutex_lock(&s->mem_lock);
	*s->pending_tail = p;
	s->pending_tail = &p->next;
	pthread_mutex_unlock(&s->mem_lock);
	rt_stream_commit(st);
	return SPYRERT_SUCCESS;
}

enum spyrert_status rt_pinned_alloc(struct rt_session *s, uint64_t bytes, struct rt_block **block,
				    void **cpu, uint64_t *hmva)
{
	struct rt_host_region *r;
	int err;

	pthread_mutex_lock(&s->mem_lock);
	err = rt_heap_alloc(&s->pinned, bytes, block);
	if (err == -ENOMEM && rt_heap_trim(&s->pinned))
		err = rt_heap_alloc(&s->pinned, bytes, block);
	if (!err) {
		(*block)->owner = &internal_mark;
		r = (*block)->region->cookie;
		if (cpu)
			*cpu = r->cpu + ((*block)->addr - r->hmva);
		if (hmva)
			*hmva = (*block)->addr;
	}
	pthread_mutex_unlock(&s->mem_lock);
	return err ? rt_fail_host(s, err, bytes, "allocating pinned host memory") : SPYRERT_SUCCESS;
}

static void pinned_free_locked(struct rt_session *s, struct rt_block *block)
{
	bool own = block->size >= HOST_OWN;

	rt_heap_free(&s->pinned, block);
	if (own)
		rt_heap_trim(&s->pinned);
}

void rt_pinned_free(struct rt_session *s, struct rt_block *block)
{
	if (!block)
		return;
	pthread_mutex_lock(&s->mem_lock);
	pinned_free_locked(s, block);
	pthread_mutex_unlock(&s->mem_lock);
}

/* The pinned block with ptr, NULL: none; *hmva: of ptr. mem_lock held. */
static struct rt_block *pinned_block(struct rt_session *s, const void *ptr, uint64_t *hmva)
{
	struct rt_host_region *r = rt_host_region_find(s, ptr);

	if (!r)
		return NULL;
	*hmva = r->hmva + ((uintptr_t)ptr - (uintptr_t)r->cpu);
	return rt_heap_find(&s->pinned, *hmva);
}

uint64_t rt_pinned_hmva(struct rt_session *s, const void *ptr, uint64_t bytes)
{
	struct rt_block *b;
	uint64_t hmva;

	pthread_mutex_lock(&s->mem_lock);
	b = pinned_block(s, ptr, &hmva);
	if (!b || bytes > b->size - (hmva - b->addr))
		hmva = 0;
	pthread_mutex_unlock(&s->mem_lock);
	return hmva;
}

enum spyrert_status rt_host_use(struct rt_session *s, const void *ptr, uint64_t bytes, bool write,
				uint64_t *hmva, struct rt_host_region **held)
{
	enum spyrert_status status = SPYRERT_SUCCESS;
	struct rt_host_region *r;
	struct rt_block *b;

	*held = NULL;
	pthread_mutex_lock(&s->mem_lock);
	b = pinned_block(s, ptr, hmva);
	if (!b || bytes > b->size - (*hmva - b->addr)) {
		*hmva = 0;
	} else {
		r = b->region->cookie;
		if (write && r->flags & SPYRERT_POINTER_READONLY)
			status = rt_fail(
				SPYRERT_ERROR_INVALID_ARGUMENT,
				"%p lies in host memory that was %s for the card to read only", ptr,
				r->flags & SPYRERT_POINTER_REGISTERED ? "registered" : "imported");
		else if (r->flags & SPYRERT_POINTER_REGISTERED) {
			r->uses++;
			*held = r;
		}
	}
	pthread_mutex_unlock(&s->mem_lock);
	return status;
}

void rt_host_unuse(struct rt_session *s, struct rt_host_region *held)
{
	pthread_mutex_lock(&s->mem_lock);
	held->uses--;
	pthread_mutex_unlock(&s->mem_lock);
}

RT_PUBLIC enum spyrert_status spyrert_host_alloc(struct spyrert_device *dev, size_t bytes,
						 void **ptr)
{
	enum spyrert_status status;
	struct rt_block *block;
	struct rt_session *s;

	if (!ptr || !bytes)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_host_alloc: %s",
			       ptr ? "size is 0" : "ptr is NULL");
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	status = rt_pinned_alloc(s, bytes, &block, ptr, NULL);
	if (!status) {
		pthread_mutex_lock(&s->mem_lock);
		block->owner = NULL;
		pthread_mutex_unlock(&s->mem_lock);
	}
	rt_session_put(s);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_host_free(struct spyrert_device *dev, void *ptr)
{
	struct rt_block *b = NULL;
	struct rt_session *s;
	uint32_t flags = 0;
	bool good = false;
	uint64_t at;

	if (!dev)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_host_free: device is NULL");
	RT_CHECK_FORK(dev->lib);
	if (!ptr)
		return SPYRERT_SUCCESS;
	/* What was pinned before the device was lost can still be freed. */
	pthread_mutex_lock(&dev->lock);
	for (s = dev->session; s && !b; s = s->older) {
		pthread_mutex_lock(&s->mem_lock);
		b = pinned_block(s, ptr, &at);
		if (b) {
			flags = b->region->flags;
			good = b->addr == at && !b->owner && !(flags & SPYRERT_POINTER_REGISTERED);
			if (good)
				pinned_free_locked(s, b);
		}
		pthread_mutex_unlock(&s->mem_lock);
	}
	pthread_mutex_unlock(&dev->lock);
	if (good)
		return SPYRERT_SUCCESS;
	if (flags & SPYRERT_POINTER_REGISTERED)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "%p is memory of the program that was registered; use "
			       "spyrert_host_unregister()",
			       ptr);
	return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
		       "%p is not the start of a pinned allocation of this device, or was freed "
		       "already",
		       ptr);
}

RT_PUBLIC enum spyrert_status spyrert_pointer_query(struct spyrert_device *dev, spyrert_ptr ptr,
						    struct spyrert_pointer_info *out, size_t size)
{
	struct spyrert_pointer_info i = { 0 };
	enum spyrert_status status;
	struct rt_session *s;
	struct rt_block *b;

	if (!out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_pointer_query: info is NULL");
	RT_CHECK_SIZE(size);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&s->mem_lock);
	i.kind = rt_is_peer(ptr) ? SPYRERT_MEMORY_PEER : SPYRERT_MEMORY_DEVICE;
	b = rt_heap_find(rt_tensor_heap(s, ptr), ptr);
	if (!b) {
		i.kind = SPYRERT_MEMORY_PROGRAM;
		b = rt_heap_find(&s->program, ptr);
	}
	if (b) {
		if (rt_is_peer(ptr))
			i.hmva = rt_peer_hmva(ptr);
		else
			i.segment = (uint32_t)(b->addr >> SPYRE_SEGMENT_SHIFT);
		i.base = b->addr;
		i.bytes = b->size;
		i.offset = ptr - b->addr;
		i.flags = b->region->flags;
	} else {
		i.kind = SPYRERT_MEMORY_UNKNOWN;
	}
	pthread_mutex_unlock(&s->mem_lock);
	rt_copy_out(out, size, &i, sizeof(i));
	rt_session_put(s);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_host_pointer_query(struct spyrert_device *dev,
							 const void *ptr,
							 struct spyrert_pointer_info *out,
							 size_t size)
{
	struct spyrert_pointer_info i = { 0 };
	enum spyrert_status status;
	struct rt_session *s;
	struct rt_block *b;
	uint64_t at;

	if (!out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_host_pointer_query: info is NULL");
	RT_CHECK_SIZE(size);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&s->mem_lock);
	b = pinned_block(s, ptr, &at);
	if (b && !b->owner) {
		i.kind = SPYRERT_MEMORY_PINNED;
		i.base = (uintptr_t)ptr - (at - b->addr);
		i.bytes = b->size;
		i.offset = at - b->addr;
		i.hmva = at;
		i.flags = b->region->flags;
	}
	pthread_mutex_unlock(&s->mem_lock);
	rt_copy_out(out, size, &i, sizeof(i));
	rt_session_put(s);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_memory_get_info(struct spyrert_device *dev,
						      struct spyrert_memory_info *out, size_t size)
{
	struct drm_spyre_memory_info d = { 0 };
	struct spyrert_memory_info i = { 0 };
	enum spyrert_status status;
	struct rt_session *s;
	int err;

	if (!out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_memory_get_info: info is NULL");
	RT_CHECK_SIZE(size);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&s->mem_lock);
	rt_pending_reap(s);
	err = rt_query(s, DRM_SPYRE_QUERY_MEMORY, &d, sizeof(d));
	rt_heap_get_stats(&s->tensor, &i.tensor);
	rt_heap_get_stats(&s->program, &i.program);
	rt_heap_get_stats(&s->pinned, &i.pinned);
	pthread_mutex_unlock(&s->mem_lock);
	drop_spare(s);
	if (err) {
		status = rt_errno(s, err, "reading memory use");
	} else {
		i.total = d.total;
		i.card_used = d.used;
		i.free = d.total - d.used + (i.tensor.reserved - i.tensor.allocated) +
			 (i.program.reserved - i.program.allocated);
		i.largest_free = i.tensor.largest_free > d.largest_free ? i.tensor.largest_free :
				 d.largest_free;
		if (i.largest_free > SPYRE_SEGMENT_SIZE)
			i.largest_free = SPYRE_SEGMENT_SIZE;
		rt_copy_out(out, size, &i, sizeof(i));
	}
	rt_session_put(s);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_memory_reset_peak(struct spyrert_device *dev)
{
	enum spyrert_status status;
	struct rt_session *s;

	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&s->mem_lock);
	rt_heap_reset_peak(&s->tensor);
	rt_heap_reset_peak(&s->program);
	rt_heap_reset_peak(&s->pinned);
	pthread_mutex_unlock(&s->mem_lock);
	rt_session_put(s);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_memory_set_policy(struct spyrert_device *dev,
							enum spyrert_alloc_policy policy)
{
	enum spyrert_status status;
	struct rt_session *s;

	if (policy != SPYRERT_BEST_FIT && policy != SPYRERT_FIRST_FIT)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "unknown allocation policy %d",
			       (int)policy);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&s->mem_lock);
	s->tensor.policy = policy;
	pthread_mutex_unlock(&s->mem_lock);
	rt_session_put(s);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_empty_cache(struct spyrert_device *dev)
{
	enum spyrert_status status;
	struct rt_session *s;

	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&s->mem_lock);
	rt_pending_reap(s);
	rt_heap_trim(&s->tensor);
	rt_heap_trim(&s->program);
	rt_heap_trim(&s->pinned);
	pthread_mutex_unlock(&s->mem_lock);
	drop_spare(s);
	rt_session_put(s);
	return SPYRERT_SUCCESS;
}

/* Moves time slots whose record was written to the free ones; mem_lock held. */
static struct rt_event_slot *retired_reap(struct rt_session *s)
{
	struct rt_event_slot **link = &s->retired, *e, *ripe = NULL;

	while ((e = *link)) {
		if (rt_timeline_reached(e->timeline, e->value) == RT_NOT_YET) {
			link = &e->next;
			continue;
		}
		*link = e->next;
		e->next = ripe;
		ripe = e;
		e->slot->next = s->free_slots;
		s->free_slots = e->slot;
	}
	return ripe;
}

/* References go outside of mem_lock: the last one frees the timeline's slot. */
static void drop_ripe(struct rt_event_slot *e)
{
	struct rt_event_slot *next;

	for (; e; e = next) {
		next = e->next;
		rt_timeline_put(e->timeline);
		free(e);
	}
}

void rt_memory_reap(struct rt_session *s)
{
	struct rt_event_slot *ripe;

	pthread_mutex_lock(&s->mem_lock);
	rt_pending_reap(s);
	ripe = retired_reap(s);
	pthread_mutex_unlock(&s->mem_lock);
	drop_ripe(ripe);
	drop_spare(s);
}

/*
 * Slots: one stick of pinned memory each, for words the card writes or waits for. A stick apart so
 * that no two writers share a cache line.
 */
enum spyrert_status rt_slot_get(struct rt_session *s, struct rt_slot **out)
{
	struct rt_event_slot *ripe = NULL;
	enum spyrert_status status;
	struct rt_slot *slot;

	pthread_mutex_lock(&s->mem_lock);
	if (!s->free_slots)
		ripe = retired_reap(s);
	slot = s->free_slots;
	if (slot)
		s->free_slots = slot->next;
	pthread_mutex_unlock(&s->mem_lock);
	drop_ripe(ripe);
	if (!slot) {
		slot = calloc(1, sizeof(*slot));
		if (!slot)
			return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
		status = rt_pinned_alloc(s, SPYRERT_STICK, &slot->block, &slot->cpu, &slot->hmva);
		if (status) {
			free(slot);
			return status;
		}
	}
	memset(slot->cpu, 0, SPYRERT_STICK);
	*out = slot;
	return SPYRERT_SUCCESS;
}

void rt_slot_put(struct rt_session *s, struct rt_slot *slot)
{
	if (!slot)
		return;
	pthread_mutex_lock(&s->mem_lock);
	slot->next = s->free_slots;
	s->free_slots = slot;
	pthread_mutex_unlock(&s->mem_lock);
}

void rt_slot_retire(struct rt_session *s, struct rt_slot *slot, struct rt_timeline *tl,
		    uint64_t value)
{
	struct rt_event_slot *e = malloc(sizeof(*e));

	if (!e) {
		/* The card may still write it: rather lose 128 bytes until the session ends. */
		rt_timeline_put(tl);
		free(slot);
		return;
	}
	e->slot = slot;
	e->timeline = tl;
	e->value = value;
	pthread_mutex_lock(&s->mem_lock);
	e->next = s->retired;
	s->retired = e;
	pthread_mutex_unlock(&s->mem_lock);
}
