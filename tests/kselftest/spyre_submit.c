// SPDX-License-Identifier: MIT
/*
 * SUBMIT: work on the kernel's queue, ordered by syncobjs, with fences of other drivers. Whatever ends badly
 * ends with the stated error of its fence, in bounded time, and at the expense of whom it belongs to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/dma-buf.h>
#include <linux/sync_file.h>

#include <drm.h>
#include <drm_mode.h>

#include "kselftest_harness.h"

#include "../vgem.h"
#include "spyre_test.h"

#define SIZE	PAGE2M
#define PARAM	"/sys/module/spyre/parameters/"

/* --- Syncobjs and sync_files ---------------------------------------------------------------- */

/* 0, -ETIME while it has not signalled (however), -EINVAL without a fence. */
static int sync_wait(int fd, uint32_t handle, uint64_t point, int ms)
{
	struct drm_syncobj_timeline_wait w = {
		.handles = (uintptr_t)&handle, .points = (uintptr_t)&point, .count_handles = 1,
		.timeout_nsec = after_ms(ms),
	};

	return call(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &w);
}

static int sync_import(int fd, uint32_t handle, int file)
{
	struct drm_syncobj_handle h = {
		.handle = handle, .fd = file, .flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE,
	};

	return call(fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &h);
}

/* The same syncobj in another file. */
static uint32_t syncobj_pass(int from, uint32_t handle, int to)
{
	struct drm_syncobj_handle out = { .handle = handle, .fd = -1 }, in = {};

	if (call(from, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &out))
		return 0;
	in.fd = out.fd;
	if (call(to, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &in))
		in.handle = 0;
	close(out.fd);
	return in.handle;
}

/* --- Submitting ------------------------------------------------------------------------------ */

/* A file with a host and a device buffer. */
struct client {
	int fd;
	uint32_t host, dev;
	uint64_t hmva, dmva;
	uint64_t *p;
};

static int client_open(struct client *c)
{
	c->fd = card_open();
	if (c->fd < 0)
		return c->fd;
	if (bo_create(c->fd, SIZE, DRM_SPYRE_BO_HOST, &c->host) ||
	    bo_create(c->fd, SIZE, DRM_SPYRE_BO_DEVICE, &c->dev) ||
	    vm_map(c->fd, c->host, 0, 0, &c->hmva) || vm_map(c->fd, c->dev, 0, 0, &c->dmva))
		return -EIO;
	c->p = bo_map(c->fd, c->host, SIZE, PROT_READ | PROT_WRITE);
	return c->p ? 0 : -errno;
}

static void client_close(struct client *c)
{
	munmap(c->p, SIZE);
	close(c->fd);
}

static struct spyre_cb fill_of(const struct client *c, uint64_t pattern)
{
	return cb_plain(cb_fill(c->dmva, 4096, pattern));
}

static struct spyre_cb out_of(const struct client *c)
{
	return cb_plain(cb_dma(SPYRE_CB_DMAO, c->hmva, c->dmva, 4096));
}

static struct spyre_cb fault_of(const struct client *c)
{
	return cb_plain(cb_fill(c->dmva + SPYRE_SEGMENT_SIZE / 2, 4096, 1));
}

/* Loads a job with a user queue, which stays open in *q. */
static struct spyre_cb job_of(struct client *c, struct queue *q, enum job_kind kind)
{
	uint64_t symbols[2] = { c->dmva, c->dmva + 128 };
	struct spyre_cb cb = {};

	if (queue_open(c->fd, 64, 1, q) || job_load(c->fd, q, kind, kind == JOB_COPY ? symbols : NULL, &cb))
		cb.type = 0;
	return cb_plain(cb);
}

static int param(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), PARAM "%s", name);
	return write_file(path, value);
}

/* Records of this file with a code; the last one in *rec. */
static int ras_count(int fd, uint32_t code, struct drm_spyre_ras *rec)
{
	struct drm_spyre_ras r[64];
	struct drm_spyre_ras_read read = { .records = (uintptr_t)r, .count = 64 };
	uint32_t i;
	int n = 0;

	if (call(fd, DRM_IOCTL_SPYRE_RAS_READ, &read))
		return -1;
	for (i = 0; i < read.count; i++) {
		if (code && r[i].code != code)
			continue;
		*rec = r[i];
		n++;
	}
	return n;
}

FIXTURE(submit) {
	struct client c;
	int fd, vgem;
	uint32_t out;
	struct baseline base;
};

FIXTURE_SETUP(submit)
{
	baseline_take(&self->base);
	ASSERT_EQ(0, client_open(&self->c));
	self->fd = self->c.fd;
	self->out = syncobj(self->fd);
	ASSERT_NE(0, self->out);
	self->vgem = vgem_open();
}

/* Whatever the test left went with its process. */
FIXTURE_TEARDOWN_PARENT(submit)
{
	EXPECT_EQ(0, param("submit_hang_ms", "10000"));
	EXPECT_EQ(0, param("submit_total_ms", "60000"));
	EXPECT_EQ(0, card_works());
	EXPECT_EQ(0, back_to_baseline(&self->base));
}

TEST_F(submit, fill_and_copy)
{
	struct spyre_cb cb[2] = { fill_of(&self->c, 0x1122334455667788), out_of(&self->c) };
	int i;

	ASSERT_EQ(0, submit(self->fd, cb, 2, 0, 0, 0, self->out, 0));
	ASSERT_EQ(0, sync_end(self->fd, self->out, 0, WAIT_MS));
	for (i = 0; i < 512; i++)
		ASSERT_EQ(0x1122334455667788, self->c.p[i]);
}

TEST_F(submit, compute)
{
	struct spyre_cb cb[3];
	struct queue q;

	cb[1] = job_of(&self->c, &q, JOB_COPY);
	ASSERT_EQ(SPYRE_CB_COMPUTE, cb[1].type);
	cb[0] = cb_plain(cb_fill(self->c.dmva, 128, 77));
	cb[2] = out_of(&self->c);
	ASSERT_EQ(0, submit(self->fd, cb, 3, 0, 0, 0, self->out, 0));
	ASSERT_EQ(0, sync_end(self->fd, self->out, 0, WAIT_MS));
	EXPECT_EQ(77, self->c.p[16]);
	EXPECT_EQ(77, self->c.p[31]);
	EXPECT_EQ(0, self->c.p[32]);
}

TEST_F(submit, every_copy_and_timestamps)
{
	struct spyre_cb cb[5] = {
		cb_plain((struct spyre_cb){ .type = SPYRE_CB_TIMESTAMP, .flags = SPYRE_CB_F_HOST }),
		cb_plain(cb_dma(SPYRE_CB_DMAI, self->c.dmva, self->c.hmva + 4096, 4096)),
		cb_plain(cb_dma(SPYRE_CB_DMAX, self->c.dmva + 8192, self->c.dmva, 4096)),
		cb_plain(cb_dma(SPYRE_CB_DMAO, self->c.hmva + 8192, self->c.dmva + 8192, 4096)),
		cb_plain((struct spyre_cb){ .type = SPYRE_CB_TIMESTAMP, .flags = SPYRE_CB_F_HOST }),
	};
	int i;

	cb[0].u.sync.addr = self->c.hmva;
	cb[4].u.sync.addr = self->c.hmva + 8;
	for (i = 0; i < 512; i++)
		self->c.p[512 + i] = 1000 + i;
	ASSERT_EQ(0, submit(self->fd, cb, 5, 0, 0, 0, self->out, 0));
	ASSERT_EQ(0, sync_end(self->fd, self->out, 0, WAIT_MS));
	EXPECT_EQ(0, memcmp(self->c.p + 512, self->c.p + 1024, 4096));
	EXPECT_NE(0, self->c.p[0]);
	EXPECT_GT(self->c.p[1], self->c.p[0]);
}

/* No control block: a fence behind all before it. */
TEST_F(submit, nothing_but_a_fence)
{
	struct spyre_cb cb[2] = { fill_of(&self->c, 5), out_of(&self->c) };

	ASSERT_EQ(0, submit(self->fd, NULL, 0, 0, 0, 0, self->out, 0));
	ASSERT_EQ(0, sync_end(self->fd, self->out, 0, WAIT_MS));
	ASSERT_EQ(0, submit(self->fd, cb, 2, 0, 0, 0, 0, 0));
	ASSERT_EQ(0, submit(self->fd, NULL, 0, 0, 0, 0, self->out, 0));
	ASSERT_EQ(0, sync_end(self->fd, self->out, 0, WAIT_MS));
	EXPECT_EQ(5, self->c.p[511]);
}

/* Far more than the ring holds, and than there is room for at a time: in order all the same. */
TEST_F_TIMEOUT(submit, more_than_the_ring_holds, 120)
{
	struct spyre_cb cb[SPYRE_RING_MIN];
	struct drm_spyre_limits l;
	uint32_t i, k, n = 0;

	l = limits(self->fd);
	ASSERT_EQ(64, l.submit_cbs_max);
	for (i = 1; i <= 200; i++) {
		uint32_t count = 1 + (i * 7) % 63;

		for (k = 0; k < count; k++, n++)
			cb[k] = cb_plain(cb_fill(self->c.dmva + n % 512 * 128, 128, n));
		while (limits(self->fd).submits_used >= l.submits_max)
			usleep(1000);
		ASSERT_EQ(0, submit(self->fd, cb, count, 0, 0, 0, self->out, i));
	}
	cb[0] = cb_plain(cb_dma(SPYRE_CB_DMAO, self->c.hmva, self->c.dmva, 512 * 128));
	ASSERT_EQ(0, submit(self->fd, cb, 1, 0, 0, 0, self->out, 1000));
	ASSERT_EQ(0, sync_wait(self->fd, self->out, 1000, 60000));
	for (i = n - 512; i < n; i++)
		ASSERT_EQ(i, self->c.p[i % 512 * 16]);
}

TEST_F(submit, timelines)
{
	const uint64_t far = 1ull << 40;	/* points have 64 bits */
	uint32_t in = syncobj(self->fd), i, fence;
	struct spyre_cb cb = fill_of(&self->c, 1);
	struct drm_syncobj_timeline_array a = { .handles = (uintptr_t)&in, .points = (uintptr_t)&far, .count_handles = 1 };
	uint64_t value = 0;
	struct drm_syncobj_timeline_array q = { .handles = (uintptr_t)&self->out, .points = (uintptr_t)&value, .count_handles = 1 };

	for (i = 1; i <= 3; i++)
		ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, 0, 0, self->out, far + i));
	ASSERT_EQ(0, sync_wait(self->fd, self->out, far + 3, WAIT_MS));
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SYNCOBJ_QUERY, &q));
	EXPECT_EQ(far + 3, value);
	/* A point that nobody has submitted is no dependency; one in the past is none either. */
	EXPECT_EQ(-EINVAL, submit(self->fd, &cb, 1, 0, self->out, far + 4, 0, 0));
	EXPECT_EQ(0, submit(self->fd, &cb, 1, 0, self->out, 1, self->out, far + 4));
	EXPECT_EQ(0, sync_end(self->fd, self->out, far + 4, WAIT_MS));
	/* A point is waited for, not its low 32 bits. */
	ASSERT_GE(self->vgem, 0);
	i = vgem_fence(self->vgem, &fence);
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &a));
	in = syncobj(self->fd);
	ASSERT_EQ(0, sync_import(self->fd, in, i));
	ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, in, 0, self->out, far + 5));
	ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, self->out, far + 5, self->out, far + 6));
	EXPECT_EQ(-ETIME, sync_wait(self->fd, self->out, far + 6, 300));
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(0, sync_wait(self->fd, self->out, far + 6, WAIT_MS));
}

/* Several on each side, of both kinds. */
TEST_F(submit, many_syncobjs)
{
	struct drm_spyre_sync out[64], in[64];
	struct spyre_cb cb = fill_of(&self->c, 1);
	struct drm_spyre_submit s = {
		.cbs = (uintptr_t)&cb, .cb_count = 1, .out_syncs = (uintptr_t)out, .out_count = 64,
	};
	int i;

	memset(out, 0, sizeof(out));
	for (i = 0; i < 64; i++) {
		out[i].handle = syncobj(self->fd);
		out[i].point = i % 2 ? i : 0;
	}
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	memcpy(in, out, sizeof(in));
	s.in_syncs = (uintptr_t)in;
	s.in_count = 64;
	s.out_count = 1;
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	ASSERT_EQ(0, sync_end(self->fd, out[0].handle, 0, WAIT_MS));
	for (i = 0; i < 64; i++)
		EXPECT_EQ(0, sync_end(self->fd, out[i].handle, out[i].point, WAIT_MS));
	s.in_count = 65;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	s.in_count = 0;
	s.out_count = 65;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
}

/* The second context waits for the first one's end, not for its being handed over. */
TEST_F(submit, chained_across_contexts)
{
	struct client other;
	struct spyre_cb slow = cb_plain(cb_dma(SPYRE_CB_DMAX, self->c.dmva, self->c.dmva + 4096, 1));
	struct spyre_cb fill, stamp[2];
	uint32_t theirs, mine = syncobj(self->fd), i;

	ASSERT_EQ(0, client_open(&other));
	fill = fill_of(&other, 9);
	theirs = syncobj(other.fd);
	slow.u.dma.ndims = 2;
	slow.u.dma.count[0] = 1u << 17;
	for (i = 0; i < 2; i++)
		stamp[i] = (struct spyre_cb){ .type = SPYRE_CB_TIMESTAMP, .flags = SPYRE_CB_F_HOST };
	stamp[0].u.sync.addr = self->c.hmva;
	stamp[1].u.sync.addr = other.hmva;
	for (i = 1; i <= 8; i++) {
		struct spyre_cb a[2] = { slow, stamp[0] }, b[2] = { stamp[1], fill };

		a[1].u.sync.addr += 8 * i;
		b[0].u.sync.addr += 8 * i;
		/* Mine waits for theirs before it, theirs for mine. */
		ASSERT_EQ(0, submit(self->fd, a, 2, 0, i > 1 ? mine : 0, 0, self->out, i));
		mine = syncobj_pass(self->fd, self->out, other.fd);
		ASSERT_NE(0, mine);
		ASSERT_EQ(0, submit(other.fd, b, 2, 0, mine, i, theirs, 0));
		mine = syncobj_pass(other.fd, theirs, self->fd);
		ASSERT_NE(0, mine);
	}
	ASSERT_EQ(0, sync_end(other.fd, theirs, 0, WAIT_MS));
	for (i = 1; i <= 8; i++) {
		EXPECT_LT(self->c.p[i], other.p[i]);
		EXPECT_LT(other.p[i - 1], self->c.p[i]);
	}
	client_close(&other);
}

TEST_F(submit, sync_file_there_and_back)
{
	struct spyre_cb cb = fill_of(&self->c, 1);
	struct sync_fence_info info = {};
	uint32_t in = syncobj(self->fd), fence;
	int file, foreign;

	ASSERT_GE(self->vgem, 0);
	foreign = vgem_fence(self->vgem, &fence);
	ASSERT_GE(foreign, 0);
	ASSERT_EQ(0, sync_import(self->fd, in, foreign));
	ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, in, 0, self->out, 0));
	file = sync_file(self->fd, self->out, 0);
	ASSERT_GE(file, 0);
	EXPECT_EQ(0, file_status(file, &info));
	EXPECT_STREQ("spyre", info.driver_name);
	EXPECT_EQ(0, strncmp(info.obj_name, card_pci(), strlen(card_pci())));
	EXPECT_EQ(-EBUSY, file_end(file, 200));
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(0, file_end(file, WAIT_MS));
	/* What has signalled is a dependency like any other. */
	in = syncobj(self->fd);
	ASSERT_EQ(0, sync_import(self->fd, in, file));
	ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, in, 0, self->out, 0));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 0, WAIT_MS));
}

/* Both ways: our work waits for vgem's fence, and who uses vgem's buffer waits for our work. */
TEST_F(submit, vgem_waits_for_us)
{
	struct spyre_cb cb[2] = { fill_of(&self->c, 3), out_of(&self->c) };
	struct dma_buf_import_sync_file i = { .flags = DMA_BUF_SYNC_WRITE };
	uint32_t in = syncobj(self->fd), fence, handle;
	struct pollfd p = { .events = POLLOUT };
	struct vgem_attach a = { .flags = VGEM_WRITE };
	int foreign;

	ASSERT_GE(self->vgem, 0);
	foreign = vgem_fence(self->vgem, &fence);
	p.fd = vgem_buffer(self->vgem, &handle);
	ASSERT_GE(p.fd, 0);
	EXPECT_EQ(1, poll(&p, 1, 0));
	ASSERT_EQ(0, sync_import(self->fd, in, foreign));
	ASSERT_EQ(0, submit(self->fd, cb, 2, 0, in, 0, self->out, 0));
	i.fd = sync_file(self->fd, self->out, 0);
	ASSERT_EQ(0, call(p.fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &i));
	EXPECT_EQ(0, poll(&p, 1, 200));
	a.handle = handle;
	EXPECT_EQ(-EBUSY, call(self->vgem, VGEM_ATTACH, &a));
	EXPECT_EQ(0, self->c.p[0]);
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(1, poll(&p, 1, WAIT_MS));
	EXPECT_EQ(3, self->c.p[0]);
	EXPECT_EQ(0, call(self->vgem, VGEM_ATTACH, &a));
}

/* --- Refusals -------------------------------------------------------------------------------- */

TEST_F(submit, refuses_arguments)
{
	struct drm_spyre_sync sync = { .handle = self->out };
	struct spyre_cb cb[65], good = fill_of(&self->c, 1);
	struct drm_spyre_submit s = { .cbs = (uintptr_t)cb, .cb_count = 1 };
	int i;

	for (i = 0; i < 65; i++)
		cb[i] = good;
	/* Each bit of the flags but the one that there is. */
	for (i = 1; i < 32; i++) {
		s.flags = 1u << i;
		EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	}
	s.flags = 0;
	s.cb_count = 65;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	s.cb_count = ~0u;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	s.cb_count = 64;
	EXPECT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	s.cb_count = 1;
	s.cbs = 8;
	EXPECT_EQ(-EFAULT, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	s.cbs = (uintptr_t)cb;
	s.in_count = 1;
	s.in_syncs = 8;
	EXPECT_EQ(-EFAULT, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	/* No fence yet. */
	s.in_syncs = (uintptr_t)&sync;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	sync.handle = 0x7777;
	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	s.in_count = 0;
	s.out_syncs = (uintptr_t)&sync;
	s.out_count = 1;
	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	sync.handle = self->out;
	sync.flags = 1;
	EXPECT_EQ(-EINVAL, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	/* Nothing of what was refused has put a fence anywhere. */
	EXPECT_EQ(-EINVAL, sync_wait(self->fd, self->out, 0, 0));
	sync.flags = 0;
	EXPECT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_SUBMIT, &s));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 0, WAIT_MS));
}

TEST_F(submit, refuses_control_blocks)
{
	const struct spyre_cb fill = fill_of(&self->c, 1), copy = out_of(&self->c);
	struct spyre_cb cb, stamp = { .type = SPYRE_CB_TIMESTAMP, .flags = SPYRE_CB_F_HOST };
	struct spyre_cb job = { .type = SPYRE_CB_COMPUTE };
	unsigned int type, bit;

	stamp.u.sync.addr = self->c.hmva;
	job.u.compute.bootaddr = SPYRE_PROGRAM_BASE;
	for (type = 0; type < 20; type++) {
		if (type == SPYRE_CB_FILL || type == SPYRE_CB_TIMESTAMP || type == SPYRE_CB_COMPUTE ||
		    (type >= SPYRE_CB_DMAI && type <= SPYRE_CB_DMAX))
			continue;
		cb = (struct spyre_cb){ .type = type };
		EXPECT_EQ(-EINVAL, submit(self->fd, &cb, 1, 0, 0, 0, 0, 0)) TH_LOG("type %u", type);
	}
#define BAD(what, change) do {								\
		cb = what;								\
		change;									\
		EXPECT_EQ(-EINVAL, submit(self->fd, &cb, 1, 0, 0, 0, self->out, 0)) TH_LOG(#change);	\
	} while (0)
	for (bit = 1; bit < 16; bit++)
		BAD(fill, cb.flags |= 1u << bit);
	BAD(copy, cb.flags |= SPYRE_CB_F_DST_HOST);
	BAD(stamp, cb.flags |= SPYRE_CB_F_ADD);
	BAD(stamp, cb.flags |= SPYRE_CB_F_DOORBELL);
	BAD(stamp, cb.u.sync.addr += 4);
	BAD(stamp, cb.u.sync.doorbell = 4);
	BAD(stamp, cb.u.sync.doorbell_value = 1);
	BAD(stamp, cb.u.sync.reserved = 1);
	BAD(fill, cb.reserved0 = 1);
	BAD(fill, cb.reserved1 = 1);
	BAD(fill, cb.u.raw[3] = 1);
	BAD(fill, cb.u.raw[11] = 1);
	BAD(fill, cb.u.fill.bytes = 0);
	BAD(fill, cb.u.fill.bytes = 100);
	BAD(copy, cb.u.dma.bytes = 0);
	BAD(copy, cb.u.dma.bytes = SPYRE_DMA_BYTES_MAX + 1);
	BAD(copy, cb.u.dma.ndims = 0);
	BAD(copy, cb.u.dma.ndims = 5);
	BAD(copy, cb.u.raw[11] = 1);
	BAD(copy, cb.flags |= SPYRE_CB_F_LIST; cb.u.list.entries = 0);
	BAD(copy, cb.flags |= SPYRE_CB_F_LIST; cb.u.list.entries = SPYRE_DMA_LIST_MAX + 1);
	BAD(job, cb.u.compute.nsymbols = 0x10000000);
	BAD(job, cb.u.compute.reserved[0] = 1);
	BAD(job, cb.u.compute.reserved[1] = 1);
	BAD(job, cb.u.raw[5] = 1);
	EXPECT_EQ(-EINVAL, sync_wait(self->fd, self->out, 0, 0));
}

/* The kernel's queue is nobody else's to touch. */
TEST_F(submit, queue_is_the_kernels)
{
	struct drm_spyre_queue_id id = {};
	struct spyre_cb cb = fill_of(&self->c, 1);

	ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, 0, 0, self->out, 0));
	for (id.queue = 0; id.queue < 64; id.queue++) {
		EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id));
		EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id));
		EXPECT_EQ(-ENOENT, wait_queue(self->fd, id.queue, 1, after_ms(0)));
	}
	EXPECT_EQ(0, sync_end(self->fd, self->out, 0, WAIT_MS));
}

/* It counts in the quota, and a file has one however much it submits. */
TEST_F(submit, limits)
{
	struct drm_spyre_limits before = limits(self->fd), l;
	struct spyre_cb cb = fill_of(&self->c, 1);
	uint32_t in = syncobj(self->fd), fence, i;
	int foreign;

	EXPECT_EQ(64, before.submit_syncs_max);
	EXPECT_EQ(0, before.submits_used);
	ASSERT_GE(self->vgem, 0);
	foreign = vgem_fence(self->vgem, &fence);
	ASSERT_EQ(0, sync_import(self->fd, in, foreign));
	for (i = 0; i < before.submits_max; i++)
		ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, in, 0, self->out, i + 1));
	l = limits(self->fd);
	EXPECT_EQ(before.submits_max, l.submits_used);
	EXPECT_EQ(before.queues_used + 1, l.queues_used);
	EXPECT_EQ(before.queues_user_used + 1, l.queues_user_used);
	EXPECT_EQ(-EDQUOT, submit(self->fd, &cb, 1, 0, in, 0, self->out, i + 1));
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(0, sync_wait(self->fd, self->out, i, WAIT_MS));
	for (i = 0; i < 100 && limits(self->fd).submits_used; i++)
		usleep(20000);
	EXPECT_EQ(0, limits(self->fd).submits_used);
}

/* --- Errors ---------------------------------------------------------------------------------- */

TEST_F(submit, fault_fails_it_and_cancels_the_rest)
{
	struct spyre_cb good[2] = { fill_of(&self->c, 1), out_of(&self->c) }, bad = fault_of(&self->c);
	struct drm_spyre_ras rec = {};
	uint32_t in = syncobj(self->fd), waiting = syncobj(self->fd), fence;
	uint32_t gate = syncobj(self->fd), opens;
	int foreign, first, i;

	ASSERT_GE(self->vgem, 0);
	foreign = vgem_fence(self->vgem, &fence);
	ASSERT_EQ(0, sync_import(self->fd, in, foreign));
	first = vgem_fence(self->vgem, &opens);
	ASSERT_EQ(0, sync_import(self->fd, gate, first));
	bad.cookie = 0x5151;
	/* The fault comes when all are there: after it no more are taken. */
	ASSERT_EQ(0, submit(self->fd, good, 2, 0, gate, 0, self->out, 1));
	ASSERT_EQ(0, submit(self->fd, &bad, 1, 0, 0, 0, self->out, 2));
	ASSERT_EQ(0, submit(self->fd, good, 2, 0, in, 0, waiting, 0));
	ASSERT_EQ(0, vgem_signal(self->vgem, opens));
	close(first);
	EXPECT_EQ(0, sync_end(self->fd, self->out, 1, WAIT_MS));
	EXPECT_EQ(-EIO, sync_end(self->fd, self->out, 2, WAIT_MS));
	for (i = 0; i < 100 && !ras_count(self->fd, 0, &rec); i++)
		usleep(20000);
	EXPECT_EQ(0x5151, rec.cookie);
	EXPECT_EQ(UINT32_MAX, rec.queue);
	EXPECT_EQ(SPYRE_ERR_FAULT, rec.status);
	/* It sticks, until somebody says that he has seen it. What was there before is cancelled then, too. */
	EXPECT_EQ(-EIO, submit(self->fd, good, 2, 0, 0, 0, self->out, 3));
	self->c.p[0] = 0;
	EXPECT_EQ(0, submit(self->fd, good, 2, DRM_SPYRE_SUBMIT_RESET, 0, 0, self->out, 3));
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(-ECANCELED, sync_end(self->fd, waiting, 0, WAIT_MS));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 3, WAIT_MS));
	EXPECT_EQ(1, self->c.p[0]);
	EXPECT_EQ(0, submit(self->fd, good, 2, 0, 0, 0, self->out, 4));
	EXPECT_EQ(0, submit(self->fd, good, 2, DRM_SPYRE_SUBMIT_RESET, 0, 0, self->out, 5));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 4, WAIT_MS));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 5, WAIT_MS));
}

/* Behind one that fails on the ring itself, and a failure that is not the first control block's. */
TEST_F(submit, many_behind_a_fault)
{
	struct spyre_cb cb[3] = { fill_of(&self->c, 1), fault_of(&self->c), fill_of(&self->c, 2) };
	uint32_t in = syncobj(self->fd), fence, i;
	int foreign, file[40];

	/* They wait, so that all are there before the first begins. */
	ASSERT_GE(self->vgem, 0);
	foreign = vgem_fence(self->vgem, &fence);
	ASSERT_EQ(0, sync_import(self->fd, in, foreign));
	for (i = 0; i < 40; i++) {
		ASSERT_EQ(0, submit(self->fd, cb, i ? 1 : 3, 0, i ? 0 : in, 0, self->out, 0));
		file[i] = sync_file(self->fd, self->out, 0);
		ASSERT_GE(file[i], 0);
	}
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(-EIO, file_end(file[0], WAIT_MS));
	for (i = 1; i < 40; i++)
		EXPECT_EQ(-ECANCELED, file_end(file[i], WAIT_MS));
}

/* A user queue of the same context faults: the context is faulty. Others do not notice. */
TEST_F(submit, fault_of_a_user_queue)
{
	struct spyre_cb bad = cb_fill(self->c.dmva + SPYRE_SEGMENT_SIZE / 2, 4096, 1);
	struct spyre_cb good = fill_of(&self->c, 1), theirs;
	struct client other;
	struct queue q;
	uint32_t out;
	int ret;

	ASSERT_EQ(0, client_open(&other));
	out = syncobj(other.fd);
	theirs = fill_of(&other, 1);
	ASSERT_EQ(0, submit(self->fd, &good, 1, 0, 0, 0, self->out, 1));
	ASSERT_EQ(0, sync_end(self->fd, self->out, 1, WAIT_MS));
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &q));
	ASSERT_EQ(SPYRE_ERR_FAULT, queue_wait(&q, queue_submit(&q, &bad), WAIT_MS));
	ret = submit(self->fd, &good, 1, 0, 0, 0, self->out, 2);
	if (!ret) {
		/* The kernel is told by an interrupt, after the status of the queue that failed. */
		ret = sync_end(self->fd, self->out, 2, WAIT_MS);
		EXPECT_TRUE(ret == -EIO || ret == -ECANCELED) TH_LOG("ended with %d", ret);
		ret = submit(self->fd, &good, 1, 0, 0, 0, self->out, 3);
	}
	EXPECT_EQ(-EIO, ret);
	EXPECT_EQ(0, submit(other.fd, &theirs, 1, 0, 0, 0, out, 1));
	EXPECT_EQ(0, sync_end(other.fd, out, 1, WAIT_MS));
	EXPECT_EQ(0, submit(self->fd, &good, 1, DRM_SPYRE_SUBMIT_RESET, 0, 0, self->out, 4));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 4, WAIT_MS));
	client_close(&other);
}

TEST_F(submit, its_own_time)
{
	struct spyre_cb cb = fill_of(&self->c, 1);

	cb.timeout = 1;
	ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, 0, 0, self->out, 0));
	EXPECT_EQ(-ETIME, sync_end(self->fd, self->out, 0, WAIT_MS));
}

/* A user's job holds the cores while somebody submits: only its owner pays, and is told. */
TEST_F_TIMEOUT(submit, user_queue_that_holds_the_cores, 60)
{
	struct client guilty;
	struct queue q, mine;
	struct spyre_cb endless, job, fill = fill_of(&self->c, 4);
	struct drm_spyre_ras rec = {};
	uint32_t entry;

	ASSERT_EQ(0, client_open(&guilty));
	endless = job_of(&guilty, &q, JOB_ENDLESS);
	ASSERT_EQ(SPYRE_CB_COMPUTE, endless.type);
	job = job_of(&self->c, &mine, JOB_COPY);
	ASSERT_EQ(SPYRE_CB_COMPUTE, job.type);
	ASSERT_EQ(0, param("submit_hang_ms", "1000"));
	ASSERT_EQ(0, param("submit_total_ms", "2000"));
	entry = queue_submit(&q, &endless);
	/* Who does not need the cores does not wait, and is no reason to end anybody. */
	ASSERT_EQ(0, submit(self->fd, &fill, 1, 0, 0, 0, self->out, 1));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 1, WAIT_MS));
	EXPECT_EQ(-ETIME, queue_wait(&q, entry, 3000));
	ASSERT_EQ(0, submit(self->fd, &job, 1, 0, 0, 0, self->out, 2));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 2, 20000));
	EXPECT_EQ(SPYRE_ERR_CANCELLED, queue_wait(&q, entry, WAIT_MS));
	EXPECT_EQ(1, ras_count(guilty.fd, SPYRE_RAS_WATCHDOG, &rec));
	EXPECT_EQ(SPYRE_ERR_TIMEOUT, rec.status);
	EXPECT_EQ(0, ras_count(self->fd, 0, &rec));
	client_close(&guilty);
}

/* The same, but what holds them was submitted itself. */
TEST_F_TIMEOUT(submit, submitted_job_that_holds_the_cores, 60)
{
	struct client guilty;
	struct queue q, mine;
	struct spyre_cb endless, job;
	struct drm_spyre_ras rec = {};
	uint32_t theirs;
	int first, second;

	ASSERT_EQ(0, client_open(&guilty));
	theirs = syncobj(guilty.fd);
	endless = job_of(&guilty, &q, JOB_ENDLESS);
	job = job_of(&self->c, &mine, JOB_COPY);
	ASSERT_EQ(SPYRE_CB_COMPUTE, endless.type);
	ASSERT_EQ(SPYRE_CB_COMPUTE, job.type);
	ASSERT_EQ(0, param("submit_hang_ms", "1000"));
	ASSERT_EQ(0, param("submit_total_ms", "2000"));
	ASSERT_EQ(0, submit(guilty.fd, &endless, 1, 0, 0, 0, theirs, 0));
	first = sync_file(guilty.fd, theirs, 0);
	ASSERT_EQ(0, submit(guilty.fd, &endless, 1, 0, 0, 0, theirs, 0));
	second = sync_file(guilty.fd, theirs, 0);
	ASSERT_EQ(0, submit(self->fd, &job, 1, 0, 0, 0, self->out, 1));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 1, 20000));
	EXPECT_EQ(-ETIME, file_end(first, WAIT_MS));
	EXPECT_EQ(-ECANCELED, file_end(second, WAIT_MS));
	EXPECT_EQ(1, ras_count(guilty.fd, SPYRE_RAS_WATCHDOG, &rec));
	EXPECT_EQ(0, ras_count(self->fd, 0, &rec));
	client_close(&guilty);
}

/* --- Ends ------------------------------------------------------------------------------------ */

/* Its dependency has not signalled, and the process dies: nothing of it stays, and the fence ends. */
TEST_F_TIMEOUT(submit, killed_while_it_depends, 60)
{
	uint32_t fence;
	int foreign, ready[2], status, file, shared;
	struct drm_syncobj_handle h = { .handle = self->out, .fd = -1 };
	struct baseline before;
	char c;
	pid_t pid;

	ASSERT_GE(self->vgem, 0);
	foreign = vgem_fence(self->vgem, &fence);
	ASSERT_GE(foreign, 0);
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &h));
	shared = h.fd;
	ASSERT_EQ(0, pipe(ready));
	baseline_take(&before);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		struct drm_syncobj_handle mine = { .fd = shared };
		struct client child;
		struct spyre_cb cb;
		uint32_t in;

		if (client_open(&child))
			_exit(1);
		cb = fill_of(&child, 1);
		in = syncobj(child.fd);
		if (call(child.fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &mine) ||
		    sync_import(child.fd, in, foreign) ||
		    submit(child.fd, &cb, 1, 0, in, 0, mine.handle, 0) ||
		    submit(child.fd, &cb, 1, 0, in, 0, 0, 0))
			_exit(2);
		if (write(ready[1], "x", 1) != 1)
			_exit(3);
		for (;;)
			pause();
	}
	ASSERT_EQ(1, read(ready[0], &c, 1));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	file = sync_file(self->fd, self->out, 0);
	ASSERT_GE(file, 0);
	/* With the fence still to come the context is gone already. */
	EXPECT_EQ(0, back_to_baseline(&before));
	EXPECT_EQ(0, file_status(file, NULL));
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(-ECANCELED, file_end(file, WAIT_MS));
}

/* It runs, or waits behind what runs, when the process dies. */
TEST_F_TIMEOUT(submit, killed_while_it_runs, 60)
{
	struct drm_syncobj_handle h = { .handle = self->out, .fd = -1 };
	int ready[2], status, first, second;
	struct baseline before;
	char c;
	pid_t pid;

	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &h));
	ASSERT_EQ(0, pipe(ready));
	baseline_take(&before);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		struct drm_syncobj_handle mine = { .fd = h.fd };
		struct client child;
		struct spyre_cb cb;
		struct queue q;

		if (client_open(&child) || call(child.fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &mine))
			_exit(1);
		cb = job_of(&child, &q, JOB_ENDLESS);
		if (submit(child.fd, &cb, 1, 0, 0, 0, mine.handle, 1) ||
		    submit(child.fd, &cb, 1, 0, 0, 0, mine.handle, 2))
			_exit(2);
		if (write(ready[1], "x", 1) != 1)
			_exit(3);
		for (;;)
			pause();
	}
	ASSERT_EQ(1, read(ready[0], &c, 1));
	first = sync_file(self->fd, self->out, 1);
	second = sync_file(self->fd, self->out, 2);
	usleep(100000);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(-ECANCELED, file_end(first, WAIT_MS));
	EXPECT_EQ(-ECANCELED, file_end(second, WAIT_MS));
	EXPECT_EQ(0, back_to_baseline(&before));
}

/* The fence is all that is left: it can be asked, and it keeps the module. */
TEST_F(submit, fence_outlives_everything)
{
	struct spyre_cb cb = fill_of(&self->c, 1);
	struct sync_fence_info info = {};
	int file, i;
	char refs[16] = "";

	ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, 0, 0, self->out, 0));
	file = sync_file(self->fd, self->out, 0);
	ASSERT_GE(file, 0);
	ASSERT_EQ(0, file_end(file, WAIT_MS));
	card_pci();
	client_close(&self->c);
	EXPECT_EQ(1, file_status(file, &info));
	/* Newer kernels do not ask the driver of a fence that has signalled for its names. */
	if (strcmp(info.driver_name, "detached-driver")) {
		EXPECT_STREQ("spyre", info.driver_name);
		EXPECT_EQ(0, strncmp(info.obj_name, card_pci(), strlen(card_pci())));
	}
	ASSERT_EQ(-1, syscall(SYS_delete_module, "spyre", O_NONBLOCK));
	EXPECT_EQ(EWOULDBLOCK, errno);
	close(file);
	/* It goes a grace period later. */
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, read_file("/sys/module/spyre/refcnt", refs, sizeof(refs)));
		if (atoi(refs) == 0)
			break;
		usleep(20000);
	}
	EXPECT_EQ(0, atoi(refs));
}

static void start_two(struct __test_metadata *_metadata, FIXTURE_DATA(submit) *self, uint32_t *dependent, int *foreign,
		      uint32_t *fence)
{
	struct spyre_cb endless, cb = fill_of(&self->c, 1);
	uint32_t in = syncobj(self->fd);
	struct queue q;

	ASSERT_GE(self->vgem, 0);
	*dependent = syncobj(self->fd);
	*foreign = vgem_fence(self->vgem, fence);
	ASSERT_EQ(0, sync_import(self->fd, in, *foreign));
	endless = job_of(&self->c, &q, JOB_ENDLESS);
	ASSERT_EQ(SPYRE_CB_COMPUTE, endless.type);
	ASSERT_EQ(0, submit(self->fd, &endless, 1, 0, 0, 0, self->out, 0));
	ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, in, 0, *dependent, 0));
	usleep(100000);
}

TEST_F_TIMEOUT(submit, function_reset, 60)
{
	uint32_t dependent, fence;
	int foreign;
	int running, waiting;
	struct spyre_cb cb = fill_of(&self->c, 1);

	start_two(_metadata, self, &dependent, &foreign, &fence);
	/* The syncobjs' own calls answer on: the file is stale, they are the core's. */
	running = sync_file(self->fd, self->out, 0);
	waiting = sync_file(self->fd, dependent, 0);
	ASSERT_GE(running, 0);
	ASSERT_GE(waiting, 0);
	ASSERT_EQ(0, pci_file("reset", "1"));
	EXPECT_EQ(-ENODEV, file_end(running, WAIT_MS));
	EXPECT_EQ(0, file_status(waiting, NULL));
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(-ENODEV, file_end(waiting, WAIT_MS));
	EXPECT_EQ(-ENODEV, submit(self->fd, &cb, 1, DRM_SPYRE_SUBMIT_RESET, 0, 0, self->out, 0));
	client_close(&self->c);
}

TEST_F_TIMEOUT(submit, firmware_restart, 60)
{
	struct client idle;
	uint32_t dependent, fence, theirs;
	struct spyre_cb cb;
	int foreign;

	/* One with nothing in flight notices nothing. */
	ASSERT_EQ(0, client_open(&idle));
	theirs = syncobj(idle.fd);
	cb = fill_of(&idle, 1);
	ASSERT_EQ(0, submit(idle.fd, &cb, 1, 0, 0, 0, theirs, 1));
	ASSERT_EQ(0, sync_end(idle.fd, theirs, 1, WAIT_MS));
	start_two(_metadata, self, &dependent, &foreign, &fence);
	ASSERT_EQ(0, write_file(debugfs_path("reset"), "firmware"));
	EXPECT_EQ(-EIO, sync_end(self->fd, self->out, 0, WAIT_MS));
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(-ECANCELED, sync_end(self->fd, dependent, 0, WAIT_MS));
	EXPECT_EQ(0, submit(idle.fd, &cb, 1, 0, 0, 0, theirs, 2));
	EXPECT_EQ(0, sync_end(idle.fd, theirs, 2, WAIT_MS));
	cb = fill_of(&self->c, 1);
	EXPECT_EQ(-EIO, submit(self->fd, &cb, 1, 0, 0, 0, self->out, 0));
	EXPECT_EQ(0, submit(self->fd, &cb, 1, DRM_SPYRE_SUBMIT_RESET, 0, 0, self->out, 0));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 0, WAIT_MS));
	client_close(&idle);
}

/* Over a sleep of the machine what has not begun goes on. */
TEST_F_TIMEOUT(submit, sleep_of_the_card, 60)
{
	struct spyre_cb cb[2] = { fill_of(&self->c, 6), out_of(&self->c) };
	uint32_t in = syncobj(self->fd), fence;
	int foreign;

	ASSERT_GE(self->vgem, 0);
	foreign = vgem_fence(self->vgem, &fence);
	ASSERT_EQ(0, sync_import(self->fd, in, foreign));
	ASSERT_EQ(0, submit(self->fd, cb, 1, 0, 0, 0, self->out, 1));
	ASSERT_EQ(0, submit(self->fd, cb, 2, 0, in, 0, self->out, 2));
	ASSERT_EQ(0, sync_end(self->fd, self->out, 1, WAIT_MS));
	ASSERT_EQ(0, write_file(debugfs_path("reset"), "sleep 200"));
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 2, WAIT_MS));
	EXPECT_EQ(6, self->c.p[0]);
}

/* The dependency signals while the card is asleep. */
TEST_F_TIMEOUT(submit, handed_over_while_the_card_sleeps, 60)
{
	struct spyre_cb cb[2] = { fill_of(&self->c, 7), out_of(&self->c) };
	uint32_t in = syncobj(self->fd), fence;
	int foreign, status;
	pid_t pid;

	ASSERT_GE(self->vgem, 0);
	foreign = vgem_fence(self->vgem, &fence);
	ASSERT_EQ(0, sync_import(self->fd, in, foreign));
	ASSERT_EQ(0, submit(self->fd, cb, 2, 0, in, 0, self->out, 0));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(write_file(debugfs_path("reset"), "sleep 2000") ? 1 : 0);
	usleep(1000000);
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(-EBUSY, sync_end(self->fd, self->out, 0, 200));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, sync_end(self->fd, self->out, 0, WAIT_MS));
	EXPECT_EQ(7, self->c.p[0]);
}

TEST_F_TIMEOUT(submit, unbind, 60)
{
	uint32_t dependent, fence;
	int foreign, running, waiting;

	start_two(_metadata, self, &dependent, &foreign, &fence);
	running = sync_file(self->fd, self->out, 0);
	waiting = sync_file(self->fd, dependent, 0);
	ASSERT_EQ(0, driver_file("unbind"));
	EXPECT_EQ(-ENODEV, file_end(running, WAIT_MS));
	ASSERT_EQ(0, vgem_signal(self->vgem, fence));
	EXPECT_EQ(-ENODEV, file_end(waiting, WAIT_MS));
	ASSERT_EQ(0, driver_file("bind"));
	client_close(&self->c);
	EXPECT_EQ(0, card_works());
}

/* An interrupt that is lost costs time and no more. */
TEST_F(submit, lost_interrupt)
{
	struct spyre_cb cb = fill_of(&self->c, 1);

	if (access(debugfs_path("inject"), W_OK))
		SKIP(return, "this card injects no faults");
	ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, 0, 0, self->out, 1));
	ASSERT_EQ(0, sync_end(self->fd, self->out, 1, WAIT_MS));
	ASSERT_EQ(0, write_file(debugfs_path("inject"), "lost-event 1000"));
	ASSERT_EQ(0, submit(self->fd, &cb, 1, 0, 0, 0, self->out, 2));
	EXPECT_EQ(0, sync_end(self->fd, self->out, 2, WAIT_MS));
	ASSERT_EQ(0, write_file(debugfs_path("inject"), "lost-event 0"));
}

TEST_HARNESS_MAIN
