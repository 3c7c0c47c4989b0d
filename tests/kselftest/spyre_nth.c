// SPDX-License-Identifier: MIT
/*
 * No memory: a sequence that works, and each allocation of it fails in turn (/proc/self/fail-nth).
 * What fails says so, leaves nothing behind, and works when it is called again; so does all that
 * comes after it. SPYRE_NTH_FROM=STEP in the environment begins with that step.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <drm.h>

#include "kselftest_harness.h"

#include "nth.h"
#include "spyre_test.h"

#define SIZE	(2 * PAGE2M)
#define PAGE	4096ull
/* No step allocates as often; a step that goes on and on is a bug. */
#define NTH_MAX	3000u

/* --- The sequence ---------------------------------------------------------------------------- */

/* What a program holds; each step is one call, 0 or -errno, and may be made again when it failed.
 */
struct program {
	char node[64];
	int fd, other;
	uint32_t host, large, device, user, shared, imported, foreign;
	uint64_t host_addr, large_addr, device_addr, fixed_addr, user_addr, shared_addr,
		foreign_addr;
	uint8_t *user_mem;
	uint8_t *host_map, *device_map, *buf_map;
	uint64_t mmap_offset;
	struct drm_spyre_queue_create create;
	struct queue q;
	int event, buf, heap_buf, fence;
	uint64_t wait_id;
	uint32_t sync, timeline;
};

static int open_file(struct program *p)
{
	p->fd = open(p->node, O_RDWR | O_CLOEXEC);
	return p->fd < 0 ? -errno : 0;
}

static int open_other(struct program *p)
{
	p->other = open(p->node, O_RDWR | O_CLOEXEC);
	return p->other < 0 ? -errno : 0;
}

static int query_limits(struct program *p)
{
	struct drm_spyre_limits l;

	return query(p->fd, DRM_SPYRE_QUERY_LIMITS, &l, sizeof(l));
}

static int query_telemetry(struct program *p)
{
	struct drm_spyre_telemetry t;

	return query(p->fd, DRM_SPYRE_QUERY_TELEMETRY, &t, sizeof(t));
}

static int create_host(struct program *p)
{
	return bo_create(p->fd, 3 * PAGE, DRM_SPYRE_BO_HOST, &p->host);
}

static int create_large(struct program *p)
{
	return bo_create(p->fd, SIZE + PAGE, DRM_SPYRE_BO_HOST, &p->large);
}

static int create_device(struct program *p)
{
	return bo_create(p->fd, SIZE, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &p->device);
}

static int create_user(struct program *p)
{
	struct drm_spyre_bo_userptr u = { .addr = (uintptr_t)p->user_mem, .size = SIZE };
	int ret = call(p->fd, DRM_IOCTL_SPYRE_BO_USERPTR, &u);

	p->user = u.handle;
	return ret;
}

/* The first one makes the context. */
static int bind_host(struct program *p)
{
	return vm_map(p->fd, p->host, 0, 0, &p->host_addr);
}

static int bind_large(struct program *p)
{
	return vm_map(p->fd, p->large, DRM_SPYRE_VM_READONLY, 0, &p->large_addr);
}

static int bind_device(struct program *p)
{
	return vm_map(p->fd, p->device, 0, 3, &p->device_addr);
}

static int bind_fixed(struct program *p)
{
	p->fixed_addr = 5ull << SPYRE_SEGMENT_SHIFT;
	return vm_map(p->fd, p->device, DRM_SPYRE_VM_FIXED, 0, &p->fixed_addr);
}

static int bind_user(struct program *p)
{
	return vm_map(p->fd, p->user, 0, 0, &p->user_addr);
}

static int create_queue(struct program *p)
{
	p->create = (struct drm_spyre_queue_create){ .entries = 64, .priority = 1 };
	return call(p->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &p->create);
}

static int map_at(int fd, uint64_t offset, uint64_t size, int prot, void *out)
{
	void *at = mmap(NULL, size, prot, MAP_SHARED, fd, offset);

	if (at == MAP_FAILED)
		return -errno;
	*(void **)out = at;
	return 0;
}

static int map_ring(struct program *p)
{
	int ret = map_at(p->fd, p->create.ring_offset, p->create.ring_size, PROT_READ | PROT_WRITE,
			 &p->q.ring);

	p->q.shadow = (volatile void *)((char *)p->q.ring + p->create.shadow_at);
	return ret;
}

static int map_status(struct program *p)
{
	int ret = map_at(p->fd, p->create.status_offset, p->create.status_size, PROT_READ,
			 &p->q.status);

	p->q.response = (volatile void *)((volatile char *)p->q.status + p->create.response_at);
	return ret;
}

static int map_doorbell(struct program *p)
{
	return map_at(p->fd, p->create.doorbell_offset, PAGE, PROT_WRITE, &p->q.doorbell);
}

static int host_offset(struct program *p)
{
	struct drm_spyre_bo_mmap m = { .handle = p->host };
	int ret = call(p->fd, DRM_IOCTL_SPYRE_BO_MMAP, &m);

	p->mmap_offset = m.offset;
	return ret;
}

static int map_host(struct program *p)
{
	return map_at(p->fd, p->mmap_offset, 3 * PAGE, PROT_READ | PROT_WRITE, &p->host_map);
}

static int device_offset(struct program *p)
{
	struct drm_spyre_bo_mmap m = { .handle = p->device };
	int ret = call(p->fd, DRM_IOCTL_SPYRE_BO_MMAP, &m);

	p->mmap_offset = m.offset;
	return ret;
}

static int map_device(struct program *p)
{
	return map_at(p->fd, p->mmap_offset, SIZE, PROT_READ | PROT_WRITE, &p->device_map);
}

/* Page faults: what fails in one is tried again by the core. */
static int touch(struct program *p)
{
	p->host_map[PAGE] = 1;
	p->device_map[PAGE2M] = 2;
	memset((void *)p->q.ring, 0, p->create.shadow_at);
	return p->q.status->error;
}

/* A copy from the device and a word that says so, by the queue. */
static int work(struct program *p)
{
	struct spyre_cb cb = cb_dma(SPYRE_CB_DMAO, p->user_addr, p->device_addr, PAGE2M);

	p->q.fd = p->fd;
	p->q.id = p->create.queue;
	p->q.entries = 64;
	queue_submit(&p->q, &cb);
	cb = cb_signal_host(p->host_addr + 64, p->q.tail);
	queue_submit(&p->q, &cb);
	return 0;
}

static int wait_word(struct program *p)
{
	return wait_fence(p->fd, p->host, 64, p->q.tail - 1, after_ms(WAIT_MS));
}

static int wait_done(struct program *p)
{
	return wait_queue(p->fd, p->create.queue, p->q.tail, after_ms(WAIT_MS));
}

/* One that sleeps: nobody stores the word. */
static int wait_event(struct program *p)
{
	struct drm_spyre_wait_entry e = { .kind = DRM_SPYRE_WAIT_FENCE,
					  .handle = p->host,
					  .value = ~0ull };
	struct drm_spyre_wait w = {
		.entries = (uintptr_t)&e,
		.count = 1,
		.flags = DRM_SPYRE_WAIT_EVENTFD,
		.eventfd = p->event,
	};
	int ret = call(p->fd, DRM_IOCTL_SPYRE_WAIT, &w);

	p->wait_id = w.id;
	return ret;
}

static int wait_cancel(struct program *p)
{
	struct drm_spyre_wait_cancel c = { .id = p->wait_id };

	return call(p->fd, DRM_IOCTL_SPYRE_WAIT_CANCEL, &c);
}

static int create_sync(struct program *p)
{
	struct drm_syncobj_create c = {};
	int ret = call(p->fd, DRM_IOCTL_SYNCOBJ_CREATE, &c);

	p->sync = c.handle;
	return ret;
}

static int create_timeline(struct program *p)
{
	struct drm_syncobj_create c = {};
	int ret = call(p->fd, DRM_IOCTL_SYNCOBJ_CREATE, &c);

	p->timeline = c.handle;
	return ret;
}

/* The first one makes the kernel's queue. */
static int submit_first(struct program *p)
{
	struct spyre_cb cbs[2] = {
		cb_plain(cb_fill(p->device_addr, PAGE2M, 0x11)),
		cb_plain(cb_dma(SPYRE_CB_DMAO, p->host_addr, p->device_addr, PAGE)),
	};

	return submit(p->fd, cbs, 2, 0, 0, 0, p->sync, 0);
}

static int submit_more(struct program *p)
{
	struct spyre_cb cb = cb_plain(cb_fill(p->device_addr, PAGE2M, 0x22));

	return submit(p->fd, &cb, 1, 0, p->sync, 0, p->timeline, 1);
}

static int submit_reset(struct program *p)
{
	return submit(p->fd, NULL, 0, DRM_SPYRE_SUBMIT_RESET, p->timeline, 1, p->timeline, 2);
}

static int wait_sync(struct program *p)
{
	uint64_t point = 2;
	struct drm_syncobj_timeline_wait w = {
		.handles = (uintptr_t)&p->timeline, .points = (uintptr_t)&point, .count_handles = 1,
		.timeout_nsec = after_ms(WAIT_MS),
	};

	return call(p->fd, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &w);
}

static int fence_out(struct program *p)
{
	struct drm_syncobj_handle h = {
		.handle = p->sync,
		.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE,
		.fd = -1,
	};
	int ret = call(p->fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &h);

	p->fence = h.fd;
	return ret;
}

static int fence_in(struct program *p)
{
	struct drm_syncobj_handle h = {
		.handle = p->sync,
		.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE,
		.fd = p->fence,
	};

	return call(p->fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &h);
}

static int create_shared(struct program *p)
{
	return bo_create(p->fd, 2 * PAGE, DRM_SPYRE_BO_HOST, &p->shared);
}

static int export(struct program *p)
{
	struct drm_prime_handle h = { .handle = p->shared, .flags = O_CLOEXEC | DRM_RDWR };
	int ret = call(p->fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &h);

	p->buf = h.fd;
	return ret;
}

static int map_buf(struct program *p)
{
	return map_at(p->buf, 0, 2 * PAGE, PROT_READ | PROT_WRITE, &p->buf_map);
}

static int import(struct program *p)
{
	struct drm_prime_handle h = { .fd = p->buf };
	int ret = call(p->other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &h);

	p->imported = h.handle;
	return ret;
}

static int bind_imported(struct program *p)
{
	return vm_map(p->other, p->imported, 0, 0, &p->shared_addr);
}

static int import_foreign(struct program *p)
{
	struct drm_prime_handle h = { .fd = p->heap_buf };
	int ret = call(p->fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &h);

	p->foreign = h.handle;
	return ret;
}

static int bind_foreign(struct program *p)
{
	return vm_map(p->fd, p->foreign, 0, 0, &p->foreign_addr);
}

static int read_records(struct program *p)
{
	struct drm_spyre_ras recs[4];
	struct drm_spyre_ras_read r = {
		.records = (uintptr_t)recs, .count = 4, .flags = DRM_SPYRE_RAS_CARD,
	};

	return call(p->fd, DRM_IOCTL_SPYRE_RAS_READ, &r);
}

static int reset_queue(struct program *p)
{
	struct drm_spyre_queue_id id = { .queue = p->create.queue };

	return call(p->fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id);
}

static int show_queues(struct program *p)
{
	char buf[256];

	return read_file(debugfs_path("queues"), buf, sizeof(buf));
}

static int show_log(struct program *p)
{
	char buf[256];

	return read_file(debugfs_path("fw_log"), buf, sizeof(buf));
}

static int show_fdinfo(struct program *p)
{
	char path[64], buf[256];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", p->fd);
	return read_file(path, buf, sizeof(buf));
}

static int unbind_large(struct program *p)
{
	return vm_unmap(p->fd, p->large_addr, 1);
}

static int unbind_fixed(struct program *p)
{
	return vm_unmap(p->fd, p->fixed_addr, 0);
}

static int destroy_queue(struct program *p)
{
	struct drm_spyre_queue_id id = { .queue = p->create.queue };

	return call(p->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id);
}

static int close_handles(struct program *p)
{
	return bo_close(p->fd, p->large) ?: bo_close(p->fd, p->device) ?:
	       bo_close(p->fd, p->user) ?:
	       bo_close(p->fd, p->shared);
}

static void unmap(volatile void *at, uint64_t size)
{
	if (at)
		munmap((void *)at, size);
}

static int unmap_all(struct program *p)
{
	unmap(p->host_map, 3 * PAGE);
	unmap(p->device_map, SIZE);
	unmap(p->buf_map, 2 * PAGE);
	unmap(p->q.ring, p->create.ring_size);
	unmap(p->q.status, p->create.status_size);
	unmap(p->q.doorbell, PAGE);
	return 0;
}

static int drop(int *fd)
{
	int ret = *fd < 0 ? 0 : close(*fd);

	*fd = -1;
	return ret;
}

static int close_buf(struct program *p)
{
	return drop(&p->buf);
}

static int close_fence(struct program *p)
{
	return drop(&p->fence);
}

static int close_other(struct program *p)
{
	return drop(&p->other);
}

/* With what was not given back: bindings, a buffer, syncobjs, the kernel's queue, the context. */
static int close_file(struct program *p)
{
	return drop(&p->fd);
}

static const struct step {
	const char *name;
	int (*make)(struct program *p);
	int also;	/* what it answers as well when there is no memory */
} steps[] = {
#define STEP(f) { #f, f, 0 }
	STEP(open_file), STEP(open_other), STEP(query_limits), STEP(query_telemetry),
	STEP(create_host), STEP(create_large), STEP(create_device), STEP(create_user),
	STEP(bind_host), STEP(bind_large), STEP(bind_device), STEP(bind_fixed), STEP(bind_user),
	STEP(create_queue), STEP(map_ring), STEP(map_status), STEP(map_doorbell),
	STEP(host_offset), STEP(map_host), STEP(device_offset), STEP(map_device), STEP(touch),
	STEP(work), STEP(wait_word), STEP(wait_done), STEP(wait_event), STEP(wait_cancel),
	STEP(create_sync), STEP(create_timeline), STEP(submit_first), STEP(submit_more),
	STEP(submit_reset), STEP(wait_sync),
	/* The core says so when it cannot make a sync_file. */
	{ "fence_out", fence_out, -EINVAL },
	STEP(fence_in), STEP(create_shared), STEP(export), STEP(map_buf), STEP(import),
	STEP(bind_imported), STEP(import_foreign), STEP(bind_foreign), STEP(read_records),
	STEP(reset_queue), STEP(show_queues), STEP(show_log), STEP(show_fdinfo),
	STEP(unbind_large), STEP(unbind_fixed), STEP(destroy_queue), STEP(close_handles),
	STEP(unmap_all), STEP(close_buf), STEP(close_fence), STEP(close_other), STEP(close_file),
#undef STEP
};

#define STEPS	(sizeof(steps) / sizeof(steps[0]))
/* From here on a program only ends: works wherever it was. */
#define STEP_END	(STEPS - 5)

/* What lives longer than a file of the card. */
static int program_start(struct program *p, const char *node)
{
	struct dma_heap_allocation_data heap = { .len = 2 * PAGE, .fd_flags = O_RDWR | O_CLOEXEC };
	int dev = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC), ret;

	*p = (struct program){ .fd = -1, .other = -1, .buf = -1, .fence = -1 };
	snprintf(p->node, sizeof(p->node), "%s", node);
	p->event = eventfd(0, EFD_CLOEXEC);
	p->user_mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->user_mem == MAP_FAILED || p->event < 0 || dev < 0)
		return -errno;
	ret = call(dev, DMA_HEAP_IOCTL_ALLOC, &heap);
	close(dev);
	p->heap_buf = heap.fd;
	return ret;
}

static void program_end(struct program *p)
{
	munmap(p->user_mem, SIZE);
	close(p->heap_buf);
	close(p->event);
}

/*
 * The sequence, with the nth allocation of one step failing. 1 when there was no such allocation,
 * 0, or -1 after saying what is wrong. The rest of the sequence shows that a step that was refused
 * left nothing wrong; where a step did without the allocation the program ends behind it.
 */
static int run_with(const char *node, size_t at, unsigned int nth, unsigned int *refused)
{
	struct program p;
	bool failed = false;
	size_t i;
	int ret;

	ret = program_start(&p, node);
	if (ret) {
		fprintf(stderr, "# start: %d\n", ret);
		return -1;
	}
	for (i = 0; i < STEPS; i++) {
		if (i == at && nth)
			nth_arm(nth);
		ret = steps[i].make(&p);
		if (i == at && nth) {
			failed = !nth_disarm();
			if (ret && ((ret != -ENOMEM && ret != steps[i].also) || !failed)) {
				fprintf(stderr, "# %s with allocation %u failing: %d\n",
					steps[i].name, nth, ret);
				return -1;
			}
			if (ret) {
				(*refused)++;
				ret = steps[i].make(&p);
				if (ret)
					fprintf(stderr,
						"# again after allocation %u failed: ", nth);
			} else if (failed && i < STEP_END) {
				i = STEP_END - 1;
			}
		}
		if (ret) {
			fprintf(stderr, "# %s: %d\n", steps[i].name, ret);
			return -1;
		}
	}
	program_end(&p);
	return nth && !failed;
}

FIXTURE(nth) {
	struct baseline base;
	char node[64];
};

FIXTURE_SETUP(nth)
{
	char link[64];
	ssize_t n;
	int fd;

	if (nth_open())
		SKIP(return, NTH_SKIP);
	fd = card_open();
	ASSERT_GE(fd, 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, self->node, sizeof(self->node) - 1);
	ASSERT_GT(n, 0);
	close(fd);
	baseline_take(&self->base);
}

FIXTURE_TEARDOWN(nth)
{
	EXPECT_EQ(0, card_works());
}

TEST_F_TIMEOUT(nth, every_call, 2400)
{
	unsigned int n, refused, all = 0, all_refused = 0;
	const char *from = getenv("SPYRE_NTH_FROM");
	int ret = 0;
	size_t i = 0;

	/* It works, and once more with all caches filled. */
	ASSERT_EQ(0, run_with(self->node, STEPS, 0, &refused));
	ASSERT_EQ(0, back_to_baseline(&self->base));
	while (from && i < STEPS && strcmp(steps[i].name, from))
		i++;
	ASSERT_LT(i, STEPS) TH_LOG("there is no step %s", from);
	for (; i < STEPS; i++) {
		refused = 0;
		for (n = 1; n < NTH_MAX; n++) {
			ret = run_with(self->node, i, n, &refused);
			ASSERT_LE(0, ret);
			ASSERT_EQ(0, back_to_baseline(&self->base))
			TH_LOG("%s, allocation %u", steps[i].name, n);
			if (ret)
				break;
		}
		ASSERT_LT(n, NTH_MAX) TH_LOG("%s allocates without end", steps[i].name);
		printf("# %s: %u allocations, %u of them needed\n", steps[i].name, n - 1, refused);
		fflush(stdout);
		all += n - 1;
		all_refused += refused;
	}
	printf("# %u allocations failed in turn, %u calls refused\n", all, all_refused);
	/* A kernel that fails none would pass all of the above. */
	EXPECT_LT(from ? 0 : STEPS, all_refused);
}

TEST_HARNESS_MAIN
