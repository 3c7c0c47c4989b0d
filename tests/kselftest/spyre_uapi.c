// SPDX-License-Identifier: MIT
/*
 * The ioctls one by one, and every refusal: reserved fields, unknown flags, ranges, handles that are
 * foreign, freed or were never there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "spyre_test.h"

FIXTURE(uapi) {
	struct baseline base;
	int fd;
};

FIXTURE_SETUP(uapi)
{
	baseline_take(&self->base);
	self->fd = card_open();
	ASSERT_GE(self->fd, 0);
}

/* Whatever the test left went with its process, mappings included. */
FIXTURE_TEARDOWN_PARENT(uapi)
{
	EXPECT_EQ(0, back_to_baseline(&self->base));
}

TEST_F(uapi, query_device)
{
	struct drm_spyre_device_info d = {};

	ASSERT_EQ(0, query(self->fd, DRM_SPYRE_QUERY_DEVICE, &d, sizeof(d)));
	EXPECT_EQ(SPYRE_HWVER_MAJOR, d.hw_version >> 16);
	EXPECT_EQ(SPYRE_PROTO_MAJOR, d.proto_version >> 16);
	EXPECT_EQ(SPYRE_STATE_ONLINE, d.state);
	EXPECT_NE(0, d.cores);
	EXPECT_EQ(SPYRE_SOC_HZ, d.soc_hz);
	EXPECT_NE(0, d.mem_size);
	EXPECT_NE(0, d.aperture_size);
	EXPECT_NE(0, d.serial[0]);
	EXPECT_NE(0, d.fw_version[0]);
	EXPECT_NE(0, d.engines[4]);
}

TEST_F(uapi, query_sizes)
{
	struct drm_spyre_query q = { .type = DRM_SPYRE_QUERY_LIMITS };
	uint8_t buf[256];
	struct drm_spyre_limits l;
	unsigned int i;

	/* No buffer: the size alone. */
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUERY, &q));
	EXPECT_EQ(sizeof(struct drm_spyre_limits), q.size);
	/* Larger: zero-filled. */
	memset(buf, 0xee, sizeof(buf));
	ASSERT_EQ(0, query(self->fd, DRM_SPYRE_QUERY_LIMITS, buf, sizeof(buf)));
	for (i = sizeof(l); i < sizeof(buf); i++)
		ASSERT_EQ(0, buf[i]);
	/* Smaller: nothing behind it is touched. */
	memset(buf, 0xee, sizeof(buf));
	ASSERT_EQ(0, query(self->fd, DRM_SPYRE_QUERY_LIMITS, buf, 8));
	EXPECT_EQ(0xee, buf[8]);
	EXPECT_EQ(-EINVAL, query(self->fd, 99, buf, sizeof(buf)));
	EXPECT_EQ(-EFAULT, query(self->fd, DRM_SPYRE_QUERY_LIMITS, (void *)8, 8));
}

TEST_F(uapi, query_needs_no_context)
{
	struct drm_spyre_limits before = limits(self->fd), after;
	struct drm_spyre_usage u;
	struct drm_spyre_telemetry t;
	struct drm_spyre_ras_read r = {};

	ASSERT_EQ(0, query(self->fd, DRM_SPYRE_QUERY_USAGE, &u, sizeof(u)));
	ASSERT_EQ(0, query(self->fd, DRM_SPYRE_QUERY_TELEMETRY, &t, sizeof(t)));
	EXPECT_NE(0, t.temp_mc);
	EXPECT_NE(0, t.power_mw);
	EXPECT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_RAS_READ, &r));
	after = limits(self->fd);
	EXPECT_EQ(before.contexts_used, after.contexts_used);
	EXPECT_GT(after.contexts_max, 0);
	EXPECT_GT(after.queues_max, 0);
	EXPECT_EQ(64, after.wait_entries_max);
}

/* Both clocks at once: they go equally fast between two readings, within what the readings say of themselves. */
TEST_F(uapi, query_clock)
{
	struct drm_spyre_clock a, b;
	int64_t before, after;
	double card, host;

	before = after_ms(0);
	ASSERT_EQ(0, query(self->fd, DRM_SPYRE_QUERY_CLOCK, &a, sizeof(a)));
	after = after_ms(0);
	EXPECT_GE(a.host_ns, before);
	EXPECT_LE(a.host_ns, after);
	EXPECT_LE(a.span_ns, after - before);
	EXPECT_NE(0, a.soc_hz);
	usleep(300000);
	ASSERT_EQ(0, query(self->fd, DRM_SPYRE_QUERY_CLOCK, &b, sizeof(b)));
	card = (double)(b.soc_time - a.soc_time) / b.soc_hz * 1e9;
	host = b.host_ns - a.host_ns;
	/* Clocks of a machine are a part in thousands apart at most. */
	EXPECT_LE(card, host * 1.005 + a.span_ns + b.span_ns);
	EXPECT_GE(card, host * 0.995 - a.span_ns - b.span_ns);
}

TEST_F(uapi, bo_create_refusals)
{
	uint32_t h;

	EXPECT_EQ(-EINVAL, bo_create(self->fd, 0, DRM_SPYRE_BO_HOST, &h));
	EXPECT_EQ(-EINVAL, bo_create(self->fd, 4096, 0, &h));
	EXPECT_EQ(-EINVAL, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_DEVICE, &h));
	EXPECT_EQ(-EINVAL, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_MAPPABLE, &h));
	EXPECT_EQ(-EINVAL, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST | 1u << 31, &h));
	EXPECT_EQ(-ENOSPC, bo_create(self->fd, 1ull << 50, DRM_SPYRE_BO_DEVICE, &h));
	EXPECT_EQ(-ENOSPC, bo_create(self->fd, ~0ull, DRM_SPYRE_BO_DEVICE, &h));
	EXPECT_EQ(-ENOMEM, bo_create(self->fd, 1ull << 50, DRM_SPYRE_BO_HOST, &h));
	EXPECT_EQ(-ENOMEM, bo_create(self->fd, ~0ull, DRM_SPYRE_BO_HOST, &h));
}

TEST_F(uapi, bo_life)
{
	struct drm_spyre_memory_info before = memory_info(self->fd), m;
	struct drm_spyre_bo_info info = {};
	uint32_t dev, host;

	ASSERT_EQ(0, bo_create(self->fd, 5 * MB, DRM_SPYRE_BO_DEVICE, &dev));
	ASSERT_EQ(0, bo_create(self->fd, 5000, DRM_SPYRE_BO_HOST, &host));
	info.handle = dev;
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_BO_INFO, &info));
	EXPECT_EQ(6 * MB, info.size);
	EXPECT_EQ(DRM_SPYRE_BO_DEVICE, info.flags);
	info.handle = host;
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_BO_INFO, &info));
	EXPECT_EQ(8192, info.size);
	EXPECT_EQ(DRM_SPYRE_BO_HOST, info.flags);
	m = memory_info(self->fd);
	EXPECT_EQ(before.used + 6 * MB, m.used);
	EXPECT_EQ(6 * MB, m.file_device);
	EXPECT_EQ(8192, m.file_host);
	EXPECT_EQ(m.total - m.used, m.largest_free);
	EXPECT_EQ(0, bo_close(self->fd, dev));
	EXPECT_EQ(0, bo_close(self->fd, host));
	EXPECT_EQ(before.used, memory_info(self->fd).used);
	/* Freed handles. */
	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_BO_INFO, &info));
	EXPECT_EQ(-EINVAL, bo_close(self->fd, host));
}

TEST_F(uapi, bo_mmap_refusals)
{
	struct drm_spyre_bo_mmap m = { .handle = 77 };
	uint32_t dev, host;
	void *p;

	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_BO_MMAP, &m));
	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &host));
	m.handle = host;
	m.pad = 1;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_BO_MMAP, &m));
	ASSERT_EQ(0, bo_create(self->fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &dev));
	m = (struct drm_spyre_bo_mmap){ .handle = dev };
	EXPECT_EQ(-EPERM, call(self->fd, DRM_IOCTL_SPYRE_BO_MMAP, &m));

	m = (struct drm_spyre_bo_mmap){ .handle = host };
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_BO_MMAP, &m));
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->fd, m.offset);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, self->fd, m.offset);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, self->fd, m.offset);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->fd, m.offset + (1ull << 40));
	EXPECT_EQ(MAP_FAILED, p);
}

TEST_F(uapi, foreign_offset)
{
	struct drm_spyre_bo_mmap m = {};
	int other = card_open();
	void *p;

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &m.handle));
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_BO_MMAP, &m));
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, other, m.offset);
	EXPECT_EQ(MAP_FAILED, p);
	EXPECT_EQ(EACCES, errno);
	close(other);
}

TEST_F(uapi, foreign_handle)
{
	struct drm_spyre_bo_info info = {};
	int other = card_open();
	uint64_t addr;

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &info.handle));
	EXPECT_EQ(-ENOENT, call(other, DRM_IOCTL_SPYRE_BO_INFO, &info));
	EXPECT_EQ(-ENOENT, vm_map(other, info.handle, 0, 0, &addr));
	EXPECT_EQ(-ENOENT, wait_fence(other, info.handle, 0, 0, 0));
	close(other);
}

TEST_F(uapi, host_mapping)
{
	uint32_t h;
	uint64_t *p, i;

	ASSERT_EQ(0, bo_create(self->fd, 8 * MB, DRM_SPYRE_BO_HOST, &h));
	p = bo_map(self->fd, h, 8 * MB, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	for (i = 0; i < 8 * MB / 8; i += 64) {
		ASSERT_EQ(0, p[i]);
		p[i] = i;
	}
	for (i = 0; i < 8 * MB / 8; i += 64)
		ASSERT_EQ(i, p[i]);
	/* The mapping outlives the handle. */
	ASSERT_EQ(0, bo_close(self->fd, h));
	ASSERT_EQ(64, p[64]);
	munmap(p, 8 * MB);
}

TEST_F(uapi, device_mapping)
{
	struct drm_spyre_memory_info before = memory_info(self->fd);
	uint32_t h;
	uint64_t *p, i;

	ASSERT_EQ(0, bo_create(self->fd, 4 * MB, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &h));
	EXPECT_EQ(before.mappable_used + 4 * MB, memory_info(self->fd).mappable_used);
	p = bo_map(self->fd, h, 4 * MB, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	for (i = 0; i < 4 * MB / 8; i += 512) {
		ASSERT_EQ(0, p[i]);
		p[i] = ~i;
	}
	for (i = 0; i < 4 * MB / 8; i += 512)
		ASSERT_EQ(~i, p[i]);
	munmap(p, 4 * MB);
}

/* Memory of someone else must never be seen. */
TEST_F(uapi, device_memory_is_scrubbed)
{
	uint32_t h;
	uint64_t *p, i;
	int round;

	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, bo_create(self->fd, 64 * MB, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE,
				       &h));
		p = bo_map(self->fd, h, 64 * MB, PROT_READ | PROT_WRITE);
		ASSERT_NE(NULL, p);
		for (i = 0; i < 64 * MB / 8; i += 16384) {
			ASSERT_EQ(0, p[i]);
			p[i] = 0x5ec4e7;
		}
		munmap(p, 64 * MB);
		ASSERT_EQ(0, bo_close(self->fd, h));
	}
}

TEST_F(uapi, device_memory_exhaustion)
{
	struct drm_spyre_memory_info m = memory_info(self->fd);
	uint32_t h, h2;

	ASSERT_EQ(0, bo_create(self->fd, m.largest_free, DRM_SPYRE_BO_DEVICE, &h));
	EXPECT_EQ(-ENOSPC, bo_create(self->fd, 1, DRM_SPYRE_BO_DEVICE, &h2));
	EXPECT_EQ(0, memory_info(self->fd).largest_free);
	ASSERT_EQ(0, bo_close(self->fd, h));
	ASSERT_EQ(0, bo_create(self->fd, m.mappable_total - m.mappable_used,
			       DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &h));
	EXPECT_EQ(-ENOSPC, bo_create(self->fd, 1, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &h2));
	ASSERT_EQ(0, bo_close(self->fd, h));
	EXPECT_EQ(m.used, memory_info(self->fd).used);
}

TEST_F(uapi, vm_bind_refusals)
{
	struct drm_spyre_vm_bind b;
	uint32_t dev, host;
	uint64_t addr;

	ASSERT_EQ(0, bo_create(self->fd, 4 * MB, DRM_SPYRE_BO_DEVICE, &dev));
	ASSERT_EQ(0, bo_create(self->fd, 16384, DRM_SPYRE_BO_HOST, &host));
#define REFUSED(err, ...) do { \
		b = (struct drm_spyre_vm_bind){ __VA_ARGS__ }; \
		EXPECT_EQ(err, call(self->fd, DRM_IOCTL_SPYRE_VM_BIND, &b)); \
	} while (0)
	REFUSED(-EINVAL, .op = 2, .handle = dev);
	REFUSED(-EINVAL, .handle = dev, .flags = 4);
	REFUSED(-EINVAL, .handle = dev, .pad = 1);
	REFUSED(-EINVAL, .handle = dev, .segment = 8);
	REFUSED(-EINVAL, .handle = dev, .space = 1);
	REFUSED(-EINVAL, .handle = dev, .addr = PAGE2M);
	REFUSED(-EINVAL, .handle = dev, .offset = 4096);
	REFUSED(-EINVAL, .handle = dev, .offset = 4 * MB);
	REFUSED(-EINVAL, .handle = dev, .offset = ~(PAGE2M - 1));
	REFUSED(-EINVAL, .handle = dev, .size = 4096);
	REFUSED(-EINVAL, .handle = dev, .size = 6 * MB);
	REFUSED(-EINVAL, .handle = dev, .offset = PAGE2M, .size = 4 * MB);
	REFUSED(-EINVAL, .handle = dev, .size = ~(PAGE2M - 1));
	REFUSED(-EINVAL, .handle = dev, .flags = DRM_SPYRE_VM_FIXED, .addr = 4096);
	REFUSED(-EINVAL, .handle = dev, .flags = DRM_SPYRE_VM_FIXED, .addr = SPYRE_DMVA_SIZE);
	REFUSED(-EINVAL, .handle = dev, .flags = DRM_SPYRE_VM_FIXED, .segment = 1,
		.addr = SPYRE_SEGMENT_SIZE);
	/* Across a segment. */
	REFUSED(-EINVAL, .handle = dev, .flags = DRM_SPYRE_VM_FIXED,
		.addr = SPYRE_SEGMENT_SIZE - PAGE2M);
	REFUSED(-EINVAL, .handle = host, .flags = DRM_SPYRE_VM_FIXED, .addr = PAGE2M);
	REFUSED(-EINVAL, .handle = host, .segment = 1);
	REFUSED(-EINVAL, .handle = host, .offset = 100);
	REFUSED(-ENOENT, .handle = 4711);
	REFUSED(-EINVAL, .op = DRM_SPYRE_VM_UNMAP, .space = 2);
	REFUSED(-EINVAL, .op = DRM_SPYRE_VM_UNMAP, .handle = dev);
	REFUSED(-EINVAL, .op = DRM_SPYRE_VM_UNMAP, .flags = 1);
	REFUSED(-EINVAL, .op = DRM_SPYRE_VM_UNMAP, .size = 4096);
	REFUSED(-ENOENT, .op = DRM_SPYRE_VM_UNMAP, .addr = 42 * PAGE2M);
	REFUSED(-ENOENT, .op = DRM_SPYRE_VM_UNMAP, .addr = 4097, .space = 1);

	addr = 3 * SPYRE_SEGMENT_SIZE;
	ASSERT_EQ(0, vm_map(self->fd, dev, DRM_SPYRE_VM_FIXED, 0, &addr));
	ASSERT_EQ(3 * SPYRE_SEGMENT_SIZE, addr);
	addr += PAGE2M;
	EXPECT_EQ(-EBUSY, vm_map(self->fd, dev, DRM_SPYRE_VM_FIXED, 0, &addr));
	/* Only whole bindings go. */
	EXPECT_EQ(-ENOENT, vm_unmap(self->fd, 3 * SPYRE_SEGMENT_SIZE + PAGE2M, 0));
	EXPECT_EQ(0, vm_unmap(self->fd, 3 * SPYRE_SEGMENT_SIZE, 0));
	EXPECT_EQ(-ENOENT, vm_unmap(self->fd, 3 * SPYRE_SEGMENT_SIZE, 0));
}

TEST_F(uapi, vm_bind_places)
{
	struct drm_spyre_vm_bind b;
	uint32_t dev, host, seg;
	uint64_t addr;

	ASSERT_EQ(0, bo_create(self->fd, 4 * MB, DRM_SPYRE_BO_DEVICE, &dev));
	ASSERT_EQ(0, bo_create(self->fd, 3 * MB + 4096, DRM_SPYRE_BO_HOST, &host));
	for (seg = 0; seg < 8; seg++) {
		ASSERT_EQ(0, vm_map(self->fd, dev, 0, seg, &addr));
		EXPECT_EQ(seg, addr >> SPYRE_SEGMENT_SHIFT);
		EXPECT_EQ(0, addr % PAGE2M);
	}
	b = (struct drm_spyre_vm_bind){ .handle = host };
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_VM_BIND, &b));
	EXPECT_EQ(1, b.space);
	EXPECT_NE(0, b.addr);
	/* The same buffer twice, and a part of it. */
	b = (struct drm_spyre_vm_bind){ .handle = host, .offset = 4096, .size = 8192 };
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_VM_BIND, &b));
	EXPECT_EQ(0, vm_unmap(self->fd, b.addr, 1));
	/* A buffer that is bound stays when its handle goes. */
	EXPECT_EQ(0, bo_close(self->fd, dev));
	EXPECT_EQ(0, bo_close(self->fd, host));
	EXPECT_LE(4 * MB, memory_info(self->fd).used);
}

TEST_F(uapi, queue_create_refusals)
{
	struct drm_spyre_queue_create c;
	struct drm_spyre_queue_id id = { .queue = 5 };

#undef REFUSED
#define REFUSED(err, ...) do { \
		c = (struct drm_spyre_queue_create){ __VA_ARGS__ }; \
		EXPECT_EQ(err, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c)); \
	} while (0)
	REFUSED(-EINVAL, .entries = 0);
	REFUSED(-EINVAL, .entries = 32);
	REFUSED(-EINVAL, .entries = 100);
	REFUSED(-EINVAL, .entries = 131072);
	REFUSED(-EINVAL, .entries = 64, .flags = 1);
	REFUSED(-EINVAL, .entries = 64, .priority = 4);
	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id));
	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id));
	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_KICK, &id));
	id.pad = 1;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id));
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id));
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_KICK, &id));
}

TEST_F(uapi, queue_priority_needs_nice)
{
	struct drm_spyre_queue_create c = { .entries = 64, .priority = 2 };
	int fd = self->fd;
	pid_t pid;
	int status;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (setresuid(65534, 65534, 65534))
			_exit(2);
		_exit(call(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c) == -EPERM ? 0 : 1);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c));
}

TEST_F(uapi, queue_mappings)
{
	struct drm_spyre_queue_create c = { .entries = 64 };
	int other = card_open();
	void *p;

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c));
	EXPECT_NE(0, c.queue);
	/* The status page is read-only for ever. */
	p = mmap(NULL, c.status_size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, c.status_offset);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, c.status_size, PROT_READ, MAP_SHARED, self->fd, c.status_offset);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-1, mprotect(p, 4096, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	p = mmap(NULL, 8192, PROT_WRITE, MAP_SHARED, self->fd, c.doorbell_offset);
	EXPECT_EQ(MAP_FAILED, p);
	/* Nobody else's file maps any of it. */
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, other, c.doorbell_offset));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, other, c.status_offset));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, other, c.ring_offset));
	close(other);
}

TEST_F(uapi, queue_memory_is_no_buffer)
{
	/* Its bindings cannot be taken away: whatever HMVA they have, UNMAP does not find it. */
	struct queue q;
	uint64_t addr;

	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &q));
	for (addr = 0; addr < 8 * MB; addr += 4096)
		ASSERT_EQ(-ENOENT, vm_unmap(self->fd, addr, 1));
	EXPECT_EQ(0, queue_close(&q));
}

TEST_F(uapi, wait_refusals)
{
	struct drm_spyre_wait_entry e = { .kind = 7 };
	struct drm_spyre_wait w = { .entries = (uintptr_t)&e, .count = 1 };
	uint32_t host, dev;

	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	w.count = 0;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	w.count = 65;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	w = (struct drm_spyre_wait){ .entries = (uintptr_t)&e, .count = 1, .flags = 4 };
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	w = (struct drm_spyre_wait){ .entries = (uintptr_t)&e, .count = 1, .eventfd = 3 };
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	w = (struct drm_spyre_wait){ .entries = 8, .count = 1 };
	EXPECT_EQ(-EFAULT, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &host));
	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_DEVICE, &dev));
	EXPECT_EQ(-EINVAL, wait_fence(self->fd, host, 4, 0, 0));
	EXPECT_EQ(-EINVAL, wait_fence(self->fd, host, 4096, 0, 0));
	EXPECT_EQ(-EINVAL, wait_fence(self->fd, dev, 0, 0, 0));
	EXPECT_EQ(-ENOENT, wait_fence(self->fd, 999, 0, 0, 0));
	EXPECT_EQ(-ENOENT, wait_queue(self->fd, 999, 0, 0));
}

TEST_F(uapi, wait_polls_and_times_out)
{
	uint32_t h;
	uint64_t *p;
	int64_t begin;

	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	p = bo_map(self->fd, h, 4096, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(0, wait_fence(self->fd, h, 0, 0, 0));
	EXPECT_EQ(-ETIME, wait_fence(self->fd, h, 0, 1, 0));
	EXPECT_EQ(-ETIME, wait_fence(self->fd, h, 0, 1, -5));
	begin = after_ms(0);
	EXPECT_EQ(-ETIME, wait_fence(self->fd, h, 0, 1, after_ms(100)));
	EXPECT_GE(after_ms(0) - begin, 100 * 1000000ll);
	p[3] = ~0ull;
	EXPECT_EQ(0, wait_fence(self->fd, h, 24, ~0ull, 0));
	/* Unsigned. */
	p[3] = 1ull << 63;
	EXPECT_EQ(0, wait_fence(self->fd, h, 24, 5, 0));
}

static void on_alarm(int signo)
{
	(void)signo;
}

TEST_F(uapi, wait_is_interruptible)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct drm_spyre_wait_entry e = { .kind = DRM_SPYRE_WAIT_FENCE, .value = 1 };
	struct drm_spyre_wait w = { .entries = (uintptr_t)&e, .count = 1, .timeout_ns = after_ms(20000) };
	int64_t begin = after_ms(0);

	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &e.handle));
	sigaction(SIGALRM, &sa, NULL);
	alarm(1);
	EXPECT_EQ(-1, ioctl(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	EXPECT_EQ(EINTR, errno);
	EXPECT_LT(after_ms(0) - begin, 10000 * 1000000ll * slower());
}

TEST_F(uapi, wait_any_and_all)
{
	struct drm_spyre_wait_entry e[3];
	struct drm_spyre_wait w = { .entries = (uintptr_t)e, .count = 3 };
	uint32_t h, i;
	uint64_t *p;

	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	p = bo_map(self->fd, h, 4096, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	for (i = 0; i < 3; i++)
		e[i] = (struct drm_spyre_wait_entry){ .handle = h, .offset = 8 * i, .value = 1 };
	EXPECT_EQ(-ETIME, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	p[2] = 1;
	EXPECT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	EXPECT_EQ(2, w.first);
	w.flags = DRM_SPYRE_WAIT_ALL;
	EXPECT_EQ(-ETIME, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	p[0] = 1;
	p[1] = 7;
	EXPECT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
}

TEST_F(uapi, eventfd_refusals_and_cancel)
{
	struct drm_spyre_wait_entry e = { .kind = DRM_SPYRE_WAIT_FENCE, .value = 1 };
	struct drm_spyre_wait w = { .entries = (uintptr_t)&e, .count = 1, .flags = DRM_SPYRE_WAIT_EVENTFD };
	struct drm_spyre_wait_cancel c = { .id = 12345 };
	int efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), i;
	uint64_t *p, count;

	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_WAIT_CANCEL, &c));
	c.id = 1ull << 40;
	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_WAIT_CANCEL, &c));
	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &e.handle));
	p = bo_map(self->fd, e.handle, 4096, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	w.eventfd = -1;
	EXPECT_EQ(-EBADF, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	w.eventfd = self->fd;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	w.eventfd = efd;
	w.timeout_ns = 1;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	w.timeout_ns = 0;
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	c.id = w.id;
	EXPECT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_WAIT_CANCEL, &c));
	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_WAIT_CANCEL, &c));
	p[0] = 1;
	usleep(300000);
	EXPECT_EQ(-1, read(efd, &count, sizeof(count)));
	/* One that holds already fires at once, and once. */
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	for (i = 0; i < 100 && read(efd, &count, sizeof(count)) < 0; i++)
		usleep(10000);
	EXPECT_LT(i, 100);
	EXPECT_EQ(1, count);
	c.id = w.id;
	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_WAIT_CANCEL, &c));
	usleep(300000);
	EXPECT_EQ(-1, read(efd, &count, sizeof(count)));
}

/* Many that never fire: closing the file ends them. */
TEST_F(uapi, eventfd_quota_and_close)
{
	struct drm_spyre_wait_entry e = { .kind = DRM_SPYRE_WAIT_FENCE, .value = 1 };
	struct drm_spyre_wait w = {
		.entries = (uintptr_t)&e, .count = 1, .flags = DRM_SPYRE_WAIT_EVENTFD,
		.eventfd = eventfd(0, EFD_CLOEXEC),
	};
	int fd = card_open(), i, ret = 0;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, bo_create(fd, 4096, DRM_SPYRE_BO_HOST, &e.handle));
	for (i = 0; i < 2000 && !ret; i++)
		ret = call(fd, DRM_IOCTL_SPYRE_WAIT, &w);
	EXPECT_EQ(-EDQUOT, ret);
	EXPECT_EQ(0, close(fd));
}

/* Nor have many files many more. */
TEST_F_TIMEOUT(uapi, eventfd_quota_of_a_user, 180)
{
	struct drm_spyre_wait_entry e = { .kind = DRM_SPYRE_WAIT_FENCE, .value = 1 };
	struct drm_spyre_wait w = {
		.entries = (uintptr_t)&e, .count = 1, .flags = DRM_SPYRE_WAIT_EVENTFD,
		.eventfd = eventfd(0, EFD_CLOEXEC),
	};
	int file, fd, i, n = 0;

	/* As above: who opens has no capability, and may. */
	ASSERT_EQ(0, fchmod(self->fd, 0666));
	ASSERT_EQ(0, seteuid(65534));
	for (file = 0; file < 5; file++) {
		fd = card_open();
		ASSERT_GE(fd, 0);
		ASSERT_EQ(0, bo_create(fd, 4096, DRM_SPYRE_BO_HOST, &e.handle));
		for (i = 0; i < 2000 && !call(fd, DRM_IOCTL_SPYRE_WAIT, &w); i++)
			n++;
		EXPECT_EQ(file < 4 ? 1024 : 0, i);
	}
	EXPECT_EQ(4096, n);
	ASSERT_EQ(0, seteuid(0));
}

struct canceller {
	int fd;
	volatile int stop;
};

static void *cancel_any(void *arg)
{
	struct canceller *c = arg;
	struct drm_spyre_wait_cancel id = { .id = 1 };

	while (!c->stop)
		call(c->fd, DRM_IOCTL_SPYRE_WAIT_CANCEL, &id);
	return NULL;
}

/* Ids are small numbers: one thread cancels what the other is just making. */
TEST_F_TIMEOUT(uapi, eventfd_cancelled_by_another_thread, 60)
{
	struct drm_spyre_wait_entry e[64];
	struct drm_spyre_wait w = {
		.entries = (uintptr_t)e, .count = 64, .flags = DRM_SPYRE_WAIT_EVENTFD,
		.eventfd = eventfd(0, EFD_CLOEXEC),
	};
	struct drm_spyre_wait_cancel id = {};
	struct canceller c = { .fd = self->fd };
	pthread_t thread;
	uint32_t h;
	int64_t end;
	int i;

	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	for (i = 0; i < 64; i++)
		e[i] = (struct drm_spyre_wait_entry){
			.kind = DRM_SPYRE_WAIT_FENCE, .handle = h, .offset = 8 * i, .value = 1,
		};
	ASSERT_EQ(0, pthread_create(&thread, NULL, cancel_any, &c));
	for (end = after_ms(3000); after_ms(0) < end;) {
		int ret = call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w);

		ASSERT_EQ(0, ret);
		id.id = w.id;
		ret = call(self->fd, DRM_IOCTL_SPYRE_WAIT_CANCEL, &id);
		ASSERT_TRUE(!ret || ret == -ENOENT);
	}
	c.stop = 1;
	pthread_join(thread, NULL);
}

TEST_F(uapi, ras_read_refusals)
{
	struct drm_spyre_ras rec[4];
	struct drm_spyre_ras_read r = { .records = (uintptr_t)rec, .count = 4, .flags = 2 };
	int fd = self->fd, status;
	pid_t pid;

	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_RAS_READ, &r));
	r.flags = DRM_SPYRE_RAS_CARD;
	EXPECT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_RAS_READ, &r));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (setresuid(65534, 65534, 65534))
			_exit(2);
		_exit(call(fd, DRM_IOCTL_SPYRE_RAS_READ, &r) == -EPERM ? 0 : 1);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(uapi, unknown_ioctl)
{
	struct drm_spyre_query q = {};

	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOWR(DRM_COMMAND_BASE + 0x40, struct drm_spyre_query), &q));
}

/* The core's ioctls that have no meaning on this node, some of which assume that there is a DRM master. */
TEST_F(uapi, foreign_ioctls)
{
	uint8_t arg[256] = {};
	unsigned int nr, size;
	int ret;

	for (nr = 0; nr < 256; nr++) {
		if (nr >= DRM_COMMAND_BASE && nr < DRM_COMMAND_END)
			continue;
		for (size = 0; size <= 64; size += 8) {
			memset(arg, 0, sizeof(arg));
			ret = call(self->fd, _IOC(_IOC_READ | _IOC_WRITE, DRM_IOCTL_BASE, nr, size), arg);
			if (nr == _IOC_NR(DRM_IOCTL_GET_MAGIC) || nr == _IOC_NR(DRM_IOCTL_GET_UNIQUE))
				EXPECT_EQ(-EINVAL, ret);
		}
	}
	EXPECT_EQ(0, card_works());
}

/* A user may have half of the contexts; who has CAP_SYS_RESOURCE may have all. */
TEST_F(uapi, context_quota)
{
	struct drm_spyre_limits l = limits(self->fd);
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		struct drm_spyre_limits mine;
		uint32_t i, h;
		uint64_t addr;
		int fd, ret = 0;

		/* The node itself is for root and group render: opened by a helper's capability alone. */
		if (seteuid(65534))
			_exit(2);
		for (i = 0; i <= l.contexts_max; i++) {
			if (seteuid(0))
				_exit(3);
			fd = -1;
			if (!fchmod(self->fd, 0666) && !seteuid(65534))
				fd = card_open();
			if (fd < 0)
				_exit(4);
			if (bo_create(fd, 4096, DRM_SPYRE_BO_HOST, &h))
				_exit(5);
			ret = vm_map(fd, h, 0, 0, &addr);
			if (ret)
				break;
		}
		mine = limits(fd);
		if (ret != -EDQUOT)
			_exit(6);
		if (i != mine.contexts_user_max || mine.contexts_user_used != i)
			_exit(7);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(l.contexts_used, limits(self->fd).contexts_used);
}

TEST_F(uapi, contexts_run_out)
{
	struct drm_spyre_limits l = limits(self->fd);
	int fds[300], ret = 0;
	uint32_t n, i, h;
	uint64_t addr;

	for (n = 0; n < 300; n++) {
		fds[n] = card_open();
		ASSERT_GE(fds[n], 0);
		ASSERT_EQ(0, bo_create(fds[n], 4096, DRM_SPYRE_BO_HOST, &h));
		ret = vm_map(fds[n], h, 0, 0, &addr);
		if (ret)
			break;
	}
	EXPECT_EQ(-EMFILE, ret);
	EXPECT_EQ(l.contexts_max - l.contexts_used, n);
	for (i = 0; i <= n; i++)
		close(fds[i]);
	EXPECT_EQ(l.contexts_used, limits(self->fd).contexts_used);
}

TEST_HARNESS_MAIN
