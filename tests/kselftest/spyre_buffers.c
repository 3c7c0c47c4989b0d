// SPDX-License-Identifier: MIT
/*
 * Buffers whose memory is not the driver's, or not the file's alone: a process's own pages, and dma-bufs out
 * and in. Whatever the process does with its addresses meanwhile, the card sees the pages that were
 * registered, nothing more, and only as allowed; shared memory is there until its last user has gone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/dma-buf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "../dmabuf.h"
#include "spyre_test.h"

#define SIZE	(4 * MB)
#define PAGE	4096ull

static int user_create(int fd, const void *addr, uint64_t size, uint32_t flags, uint32_t *handle)
{
	struct drm_spyre_bo_userptr u = { .addr = (uintptr_t)addr, .size = size, .flags = flags };
	int ret = call(fd, DRM_IOCTL_SPYRE_BO_USERPTR, &u);

	*handle = u.handle;
	return ret;
}

static void *map_anon(uint64_t size, int prot, int flags)
{
	void *p = mmap(NULL, size, prot, MAP_ANONYMOUS | flags, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void fill(void *p, uint64_t bytes, uint32_t seed)
{
	uint32_t *w = p;
	uint64_t i;

	for (i = 0; i < bytes / 4; i++)
		w[i] = (i + seed) * 2654435761u;
}

static bool holds(const void *p, uint64_t bytes, uint32_t seed)
{
	const uint32_t *w = p;
	uint64_t i;

	for (i = 0; i < bytes / 4; i++)
		if (w[i] != (uint32_t)(i + seed) * 2654435761u)
			return false;
	return true;
}

FIXTURE(buffers) {
	int fd;
	struct queue q;
	uint32_t dev;
	uint64_t dmva;
	struct baseline base;
};

FIXTURE_SETUP(buffers)
{
	baseline_take(&self->base);
	self->fd = card_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_DEVICE, &self->dev));
	ASSERT_EQ(0, vm_map(self->fd, self->dev, 0, 0, &self->dmva));
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &self->q));
}

/* Whatever the test left went with its process, mappings included. */
FIXTURE_TEARDOWN_PARENT(buffers)
{
	EXPECT_EQ(0, card_works());
	EXPECT_EQ(0, back_to_baseline(&self->base));
}

static int run(struct queue *q, unsigned int type, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct spyre_cb cb = cb_dma(type, dst, src, bytes);

	return queue_wait(q, queue_submit(q, &cb), WAIT_MS);
}

/* Host memory through the card's own into other host memory. */
static int through(FIXTURE_DATA(buffers) *f, uint64_t to, uint64_t from, uint64_t bytes)
{
	int ret = run(&f->q, SPYRE_CB_DMAI, f->dmva, from, bytes);

	return ret ? ret : run(&f->q, SPYRE_CB_DMAO, to, f->dmva, bytes);
}

static int reset(struct queue *q)
{
	struct drm_spyre_queue_id id = { .queue = q->id };

	return call(q->fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id);
}

TEST_F(buffers, user_read_write)
{
	struct drm_spyre_bo_info info = {};
	uint8_t *p = map_anon(SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	uint64_t hmva;

	ASSERT_NE(NULL, p);
	fill(p, SIZE / 2, 1);
	ASSERT_EQ(0, user_create(self->fd, p, SIZE, 0, &info.handle));
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_BO_INFO, &info));
	EXPECT_EQ(SIZE, info.size);
	EXPECT_EQ(DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_USER, info.flags);
	ASSERT_EQ(0, vm_map(self->fd, info.handle, 0, 0, &hmva));
	ASSERT_EQ(0, through(self, hmva + SIZE / 2, hmva, SIZE / 2));
	EXPECT_TRUE(holds(p + SIZE / 2, SIZE / 2, 1));
	/* The binding keeps the pages. */
	ASSERT_EQ(0, bo_close(self->fd, info.handle));
	fill(p, SIZE / 2, 2);
	ASSERT_EQ(0, through(self, hmva + SIZE / 2, hmva, SIZE / 2));
	EXPECT_TRUE(holds(p + SIZE / 2, SIZE / 2, 2));
	ASSERT_EQ(0, vm_unmap(self->fd, hmva, 1));
	ASSERT_NE(0, run(&self->q, SPYRE_CB_DMAI, self->dmva, hmva, 128));
}

/* The same pages in two buffers, of two files; each ends by itself. */
TEST_F(buffers, user_twice)
{
	uint8_t *p = map_anon(SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	int other = card_open();
	uint64_t hmva, theirs;
	uint32_t h, again;

	ASSERT_NE(NULL, p);
	ASSERT_GE(other, 0);
	ASSERT_EQ(0, user_create(self->fd, p, SIZE, 0, &h));
	ASSERT_EQ(0, user_create(other, p, SIZE, 0, &again));
	ASSERT_EQ(0, vm_map(other, again, 0, 0, &theirs));
	ASSERT_EQ(0, user_create(self->fd, p, SIZE, 0, &again));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &hmva));
	fill(p, SIZE / 2, 14);
	ASSERT_EQ(0, through(self, hmva + SIZE / 2, hmva, SIZE / 2));
	EXPECT_TRUE(holds(p + SIZE / 2, SIZE / 2, 14));
	ASSERT_EQ(0, bo_close(self->fd, again));
	close(other);
	fill(p, SIZE / 2, 15);
	ASSERT_EQ(0, through(self, hmva + SIZE / 2, hmva, SIZE / 2));
	EXPECT_TRUE(holds(p + SIZE / 2, SIZE / 2, 15));
}

/* The card itself refuses to write, not only the driver to bind. */
TEST_F(buffers, user_readonly)
{
	uint8_t *p = map_anon(SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	uint64_t hmva, out;
	uint32_t h, other;
	uint8_t *o;

	ASSERT_NE(NULL, p);
	fill(p, SIZE, 3);
	ASSERT_EQ(0, mprotect(p, SIZE, PROT_READ));
	ASSERT_EQ(-EFAULT, user_create(self->fd, p, SIZE, 0, &h));
	ASSERT_EQ(0, user_create(self->fd, p, SIZE, DRM_SPYRE_USERPTR_READONLY, &h));
	ASSERT_EQ(-EACCES, vm_map(self->fd, h, 0, 0, &hmva));
	ASSERT_EQ(0, vm_map(self->fd, h, DRM_SPYRE_VM_READONLY, 0, &hmva));
	ASSERT_EQ(0, run(&self->q, SPYRE_CB_DMAI, self->dmva, hmva, SIZE));
	ASSERT_EQ(SPYRE_ERR_FAULT, run(&self->q, SPYRE_CB_DMAO, hmva, self->dmva + 4096, 4096));
	ASSERT_EQ(0, reset(&self->q));
	EXPECT_TRUE(holds(p, SIZE, 3));
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &other));
	ASSERT_EQ(0, vm_map(self->fd, other, 0, 0, &out));
	o = bo_map(self->fd, other, SIZE, PROT_READ);
	ASSERT_NE(NULL, o);
	ASSERT_EQ(0, through(self, out, hmva, SIZE));
	EXPECT_TRUE(holds(o, SIZE, 3));
}

TEST_F(buffers, user_bad_ranges)
{
	uint8_t *p = map_anon(4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE), *m;
	const uint32_t ro = DRM_SPYRE_USERPTR_READONLY;
	uint32_t h, host;
	int fd = self->fd;

	ASSERT_NE(NULL, p);
	EXPECT_EQ(-EINVAL, user_create(fd, p + 8, PAGE, 0, &h));
	EXPECT_EQ(-EINVAL, user_create(fd, p, PAGE - 8, 0, &h));
	EXPECT_EQ(-EINVAL, user_create(fd, p, 0, 0, &h));
	EXPECT_EQ(-EINVAL, user_create(fd, p, PAGE, 2, &h));
	EXPECT_EQ(-EINVAL, user_create(fd, (void *)-PAGE, 2 * PAGE, 0, &h));
	EXPECT_EQ(-EINVAL, user_create(fd, (void *)-PAGE, PAGE, 2, &h));
	EXPECT_EQ(-ENOMEM, user_create(fd, p, 1ull << 46, 0, &h));
	EXPECT_EQ(-EFAULT, user_create(fd, NULL, PAGE, ro, &h));
	EXPECT_EQ(-EFAULT, user_create(fd, (void *)(1ull << 63), PAGE, ro, &h));
	ASSERT_EQ(0, munmap(p + 2 * PAGE, PAGE));
	EXPECT_EQ(-EFAULT, user_create(fd, p + 2 * PAGE, PAGE, ro, &h));
	EXPECT_EQ(-EFAULT, user_create(fd, p, 4 * PAGE, ro, &h));
	ASSERT_EQ(0, mprotect(p + PAGE, PAGE, PROT_NONE));
	EXPECT_EQ(-EFAULT, user_create(fd, p, 2 * PAGE, ro, &h));
	EXPECT_EQ(0, user_create(fd, p, PAGE, 0, &h));
	/* What other drivers, this one included, map is no memory of the process. */
	ASSERT_EQ(0, bo_create(fd, PAGE, DRM_SPYRE_BO_HOST, &host));
	m = bo_map(fd, host, PAGE, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, m);
	EXPECT_EQ(-EFAULT, user_create(fd, m, PAGE, 0, &h));
	EXPECT_EQ(-EFAULT, user_create(fd, (void *)self->q.doorbell, PAGE, ro, &h));
	EXPECT_EQ(-EFAULT, user_create(fd, (void *)self->q.status, PAGE, 0, &h));
}

/* A fixed binding, a mapping, an export and a fence need memory of another kind. */
TEST_F(buffers, user_is_for_the_card)
{
	uint8_t *p = map_anon(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	struct drm_spyre_bo_mmap m = {};
	struct drm_prime_handle prime = { .flags = O_CLOEXEC };
	uint64_t addr = 0;
	uint32_t h;

	ASSERT_EQ(0, user_create(self->fd, p, PAGE, 0, &h));
	m.handle = h;
	prime.handle = h;
	EXPECT_EQ(-EPERM, call(self->fd, DRM_IOCTL_SPYRE_BO_MMAP, &m));
	EXPECT_EQ(-EOPNOTSUPP, call(self->fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime));
	EXPECT_EQ(-EINVAL, wait_fence(self->fd, h, 0, 0, 0));
	EXPECT_EQ(-EINVAL, vm_map(self->fd, h, DRM_SPYRE_VM_FIXED, 0, &addr));
}

TEST_F(buffers, user_shared_memory)
{
	int mem = memfd_create("spyre", MFD_CLOEXEC);
	uint8_t *a, *b, *s;
	uint64_t hmva, shared;
	uint32_t h, hs;

	ASSERT_GE(mem, 0);
	ASSERT_EQ(0, ftruncate(mem, SIZE));
	a = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	b = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, mem, 0);
	s = map_anon(SIZE, PROT_READ | PROT_WRITE, MAP_SHARED);
	ASSERT_NE(MAP_FAILED, (void *)a);
	ASSERT_NE(MAP_FAILED, (void *)b);
	ASSERT_NE(NULL, s);
	ASSERT_EQ(0, user_create(self->fd, a, SIZE, 0, &h));
	ASSERT_EQ(0, user_create(self->fd, s, SIZE, 0, &hs));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &hmva));
	ASSERT_EQ(0, vm_map(self->fd, hs, 0, 0, &shared));
	fill(s, SIZE, 4);
	ASSERT_EQ(0, through(self, hmva, shared, SIZE));
	EXPECT_TRUE(holds(b, SIZE, 4));
}

/*
 * A private mapping of a file: the card's writes stay out of the file, and what the process writes after
 * a read-only registration is what the card reads.
 */
TEST_F(buffers, user_private_file)
{
	int mem = memfd_create("spyre", MFD_CLOEXEC);
	uint8_t *file, *rw, *ro;
	uint64_t to, from;
	uint32_t h, hr;

	ASSERT_GE(mem, 0);
	ASSERT_EQ(0, ftruncate(mem, MB));
	file = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	ASSERT_NE(MAP_FAILED, (void *)file);
	fill(file, MB, 5);
	rw = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE, mem, 0);
	ro = mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE, mem, 0);
	ASSERT_NE(MAP_FAILED, (void *)rw);
	ASSERT_NE(MAP_FAILED, (void *)ro);
	ASSERT_EQ(0, user_create(self->fd, rw, MB, 0, &h));
	ASSERT_EQ(0, user_create(self->fd, ro, MB, DRM_SPYRE_USERPTR_READONLY, &hr));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &to));
	ASSERT_EQ(0, vm_map(self->fd, hr, DRM_SPYRE_VM_READONLY, 0, &from));
	fill(ro, MB, 6);
	ASSERT_EQ(0, through(self, to, from, MB));
	EXPECT_TRUE(holds(rw, MB, 6));
	EXPECT_TRUE(holds(file, MB, 5));
}

/* The registered pages are the card's target, not the addresses they once had. */
TEST_F(buffers, user_unmapped_in_use)
{
	uint8_t *p = map_anon(SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	uint8_t *src = map_anon(SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE), *moved, *again;
	uint64_t to, from;
	uint32_t h, hs;

	ASSERT_EQ(0, user_create(self->fd, p, SIZE, 0, &h));
	ASSERT_EQ(0, user_create(self->fd, src, SIZE, 0, &hs));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &to));
	ASSERT_EQ(0, vm_map(self->fd, hs, 0, 0, &from));
	fill(src, SIZE, 7);
	moved = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)moved);
	ASSERT_EQ(moved, mremap(p, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, moved));
	again = mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ASSERT_EQ(p, again);
	memset(again, 0xa5, SIZE);
	ASSERT_EQ(0, through(self, to, from, SIZE));
	EXPECT_TRUE(holds(moved, SIZE, 7));
	EXPECT_EQ(0xa5, again[0]);
	EXPECT_EQ(0, memcmp(again, again + 1, SIZE - 1));
	/* Gone for the process, not for the card: what it reads is what was there. */
	ASSERT_EQ(0, munmap(src, SIZE));
	ASSERT_EQ(0, munmap(again, SIZE));
	memset(moved, 0, SIZE);
	ASSERT_EQ(0, through(self, to, from, SIZE));
	EXPECT_TRUE(holds(moved, SIZE, 7));
	ASSERT_EQ(0, munmap(moved, SIZE));
	EXPECT_EQ(0, through(self, to, from, SIZE));
}

TEST_F(buffers, user_fork)
{
	uint8_t *p = map_anon(SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	int go[2], status;
	uint64_t hmva;
	uint32_t h;
	pid_t pid;
	char c;

	fill(p, SIZE, 8);
	ASSERT_EQ(0, user_create(self->fd, p, SIZE, 0, &h));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &hmva));
	ASSERT_EQ(0, pipe(go));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		/* Sees what was there, and neither the parent's nor the card's later writes. */
		if (read(go[0], &c, 1) != 1 || !holds(p, SIZE, 8))
			_exit(1);
		memset(p, 0, SIZE);
		_exit(0);
	}
	/* Written before the child looks: pages of the parent that the card still sees. */
	fill(p, SIZE / 2, 9);
	ASSERT_EQ(0, through(self, hmva + SIZE / 2, hmva, SIZE / 2));
	EXPECT_TRUE(holds(p + SIZE / 2, SIZE / 2, 9));
	ASSERT_EQ(1, write(go[1], "x", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_TRUE(holds(p, SIZE / 2, 9));
	EXPECT_TRUE(holds(p + SIZE / 2, SIZE / 2, 9));
}

/* Whoever pinned may be gone: pages and charge live as long as the buffer. */
TEST_F(buffers, user_owner_exits)
{
	uint8_t *p = map_anon(SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE), *o;
	uint32_t *result = map_anon(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED), other;
	uint64_t hmva, out;
	int status;
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		fill(p, SIZE, 10);
		_exit(user_create(self->fd, p, SIZE, 0, result) ? 1 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(0, vm_map(self->fd, *result, 0, 0, &hmva));
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &other));
	ASSERT_EQ(0, vm_map(self->fd, other, 0, 0, &out));
	o = bo_map(self->fd, other, SIZE, PROT_READ);
	ASSERT_NE(NULL, o);
	ASSERT_EQ(0, through(self, out, hmva, SIZE));
	EXPECT_TRUE(holds(o, SIZE, 10));
}

static long status_kb(const char *name)
{
	char buf[4096], *at;

	if (read_file("/proc/self/status", buf, sizeof(buf)))
		return -1;
	at = strstr(buf, name);
	return at ? atol(at + strlen(name)) : -1;
}

/* Exit status of a child without privileges: 0, or the number of the step that went wrong. */
static int memlock_child(int fd)
{
	struct rlimit l = { .rlim_cur = MB, .rlim_max = MB };
	uint8_t *p = map_anon(2 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	uint32_t a, b;

	if (setrlimit(RLIMIT_MEMLOCK, &l) || setresuid(65534, 65534, 65534))
		return 1;
	if (user_create(fd, p, 2 * MB, 0, &a) != -EPERM)
		return 2;
	if (status_kb("VmPin:") != 0)
		return 3;
	if (user_create(fd, p, 512 * 1024, 0, &a))
		return 4;
	if (status_kb("VmPin:") != 512)
		return 5;
	/* The same pages again count again, as each registration keeps them. */
	if (user_create(fd, p, 512 * 1024 + PAGE, DRM_SPYRE_USERPTR_READONLY, &b) != -EPERM)
		return 6;
	if (user_create(fd, p, 512 * 1024, DRM_SPYRE_USERPTR_READONLY, &b))
		return 7;
	if (bo_close(fd, a) || status_kb("VmPin:") != 512)
		return 8;
	/* A failure half way is not charged. */
	munmap(p + MB, MB);
	if (user_create(fd, p + MB - PAGE, 2 * PAGE, 0, &a) != -EFAULT || status_kb("VmPin:") != 512)
		return 9;
	/* mlock() and pins have one limit. */
	if (mlock(p, 512 * 1024) || user_create(fd, p, PAGE, 0, &a) != -EPERM)
		return 10;
	return 0;
}

TEST_F(buffers, user_memlock)
{
	uint8_t *p = map_anon(2 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	struct rlimit l = { .rlim_cur = MB, .rlim_max = MB };
	int status;
	uint32_t h;
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(memlock_child(self->fd));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_TRUE(WIFEXITED(status));
	/* CAP_IPC_LOCK exempts. */
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &l));
	EXPECT_EQ(0, user_create(self->fd, p, 2 * MB, 0, &h));
}

/* One table entry for each 2 MiB page that is one in memory, wherever in it the buffer begins. */
TEST_F(buffers, user_huge_pages)
{
	uint64_t before, hmva, out;
	uint32_t h, other;
	uint8_t *p, *o;

	ASSERT_EQ(0, write_file("/proc/sys/vm/nr_hugepages", "4"));
	p = map_anon(4 * PAGE2M, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_HUGETLB);
	ASSERT_NE(NULL, p);
	fill(p, 4 * PAGE2M, 11);
	before = memory_info(self->fd).table_used;
	/* The queue's pages have made the first level already. */
	ASSERT_EQ(0, user_create(self->fd, p, 4 * PAGE2M, 0, &h));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &hmva));
	EXPECT_EQ(0, hmva % PAGE2M);
	EXPECT_EQ(before, memory_info(self->fd).table_used);
	ASSERT_EQ(0, vm_unmap(self->fd, hmva, 1));
	ASSERT_EQ(0, bo_close(self->fd, h));

	ASSERT_EQ(0, user_create(self->fd, p + 3 * PAGE, 3 * PAGE2M, 0, &h));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &hmva));
	EXPECT_EQ(3 * PAGE, hmva % PAGE2M);
	EXPECT_EQ(before + 2 * PAGE, memory_info(self->fd).table_used);
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &other));
	ASSERT_EQ(0, vm_map(self->fd, other, 0, 0, &out));
	o = bo_map(self->fd, other, SIZE, PROT_READ);
	ASSERT_NE(NULL, o);
	/* Over the seams between small pages and large ones. */
	ASSERT_EQ(0, through(self, out, hmva, SIZE));
	EXPECT_TRUE(holds(o, SIZE, 11 + 3 * PAGE / 4));
	ASSERT_EQ(0, through(self, out, hmva + 2 * PAGE2M, PAGE2M));
	EXPECT_TRUE(holds(o, PAGE2M, 11 + (3 * PAGE + 2 * PAGE2M) / 4));
	ASSERT_EQ(0, vm_unmap(self->fd, hmva, 1));
	EXPECT_EQ(0, bo_close(self->fd, h));
	ASSERT_EQ(0, munmap(p, 4 * PAGE2M));
	EXPECT_EQ(0, write_file("/proc/sys/vm/nr_hugepages", "0"));
}

/* Registers, copies, never cleans up. */
static void churn(int seed)
{
	for (;;) {
		int fd = card_open();
		uint8_t *p = map_anon(SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
		uint64_t hmva, dmva;
		struct spyre_cb cb;
		struct queue q;
		uint32_t h, dev;
		int i;

		if (fd < 0 || !p || user_create(fd, p, SIZE, 0, &h) || vm_map(fd, h, 0, 0, &hmva) ||
		    bo_create(fd, SIZE, DRM_SPYRE_BO_DEVICE, &dev) || vm_map(fd, dev, 0, 0, &dmva) ||
		    queue_open(fd, 64, 1, &q))
			_exit(1);
		for (i = 0; i < 8; i++) {
			cb = cb_dma(i % 2 ? SPYRE_CB_DMAO : SPYRE_CB_DMAI, i % 2 ? hmva : dmva,
				    i % 2 ? dmva : hmva, SIZE);
			queue_submit(&q, &cb);
		}
		if (seed % 2)
			munmap(p, SIZE);
		queue_wait(&q, seed % 8, WAIT_MS);
		queue_unmap(&q);
		close(fd);
		if (!(seed % 2))
			munmap(p, SIZE);
	}
}

TEST_F(buffers, user_kill_in_use)
{
	int i, status;
	pid_t pid;

	for (i = 0; i < 8; i++) {
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			churn(i);
		usleep(20000 * (i + 1));
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
	}
}

/* A reset takes the context away, not the process's memory. */
TEST_F(buffers, user_over_reset)
{
	uint8_t *p = map_anon(SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	uint32_t h, none;
	uint64_t hmva;

	ASSERT_EQ(0, user_create(self->fd, p, SIZE, 0, &h));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &hmva));
	fill(p, SIZE, 12);
	ASSERT_EQ(0, pci_file("reset", "1"));
	EXPECT_EQ(-ENODEV, user_create(self->fd, p, SIZE, 0, &none));
	EXPECT_TRUE(holds(p, SIZE, 12));
	fill(p, SIZE, 13);
	EXPECT_TRUE(holds(p, SIZE, 13));
	EXPECT_EQ(0, bo_close(self->fd, h));
}

/* --- dma-buf -------------------------------------------------------------------------------- */

/* Two files of a card share a buffer: data, the words they wait for, and its life. */
TEST_F(buffers, share_host)
{
	uint64_t ours, theirs;
	int other = card_open(), buf;
	struct spyre_cb cb;
	struct queue q;
	uint32_t h, i, again;
	uint8_t *p, *m;

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &h));
	p = bo_map(self->fd, h, SIZE, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &ours));
	buf = export_fd(self->fd, h, DRM_RDWR);
	ASSERT_GE(buf, 0);
	ASSERT_EQ(0, import_fd(other, buf, &i));
	ASSERT_EQ(0, import_fd(other, buf, &again));
	EXPECT_EQ(i, again);
	close(buf);
	ASSERT_EQ(0, queue_open(other, 64, 1, &q));
	ASSERT_EQ(0, vm_map(other, i, 0, 0, &theirs));
	fill(p, SIZE / 2, 20);
	memset(p + SIZE / 2, 0, SIZE / 2);
	/* The waiter names a word that a context of another file stores. */
	cb = cb_signal_host(theirs + SIZE - 8, 7);
	queue_submit(&q, &cb);
	ASSERT_EQ(0, wait_fence(self->fd, h, SIZE - 8, 7, after_ms(WAIT_MS)));
	/* The exporter goes, all of it. */
	m = bo_map(other, i, SIZE, PROT_READ);
	ASSERT_NE(NULL, m);
	munmap(p, SIZE);
	ASSERT_EQ(0, bo_close(self->fd, h));
	ASSERT_EQ(0, vm_unmap(self->fd, ours, 1));
	queue_unmap(&self->q);
	close(self->fd);
	EXPECT_TRUE(holds(m, SIZE / 2, 20));
	cb = cb_signal_host(theirs + SIZE - 8, 9);
	ASSERT_EQ(0, queue_wait(&q, queue_submit(&q, &cb), WAIT_MS));
	EXPECT_EQ(9, *(volatile uint64_t *)(m + SIZE - 8));
}

/* Exit status of the importer: 0, or the number of the step that went wrong. */
static int share_child(int sock)
{
	uint32_t dev, host;
	uint64_t dmva, hmva;
	struct queue q;
	uint8_t *p;
	int fd = card_open(), buf = recv_fd(sock);

	if (fd < 0 || buf < 0 || import_fd(fd, buf, &dev))
		return 1;
	if (bo_create(fd, SIZE, DRM_SPYRE_BO_HOST, &host) || vm_map(fd, host, 0, 0, &hmva) ||
	    vm_map(fd, dev, 0, 3, &dmva) || queue_open(fd, 64, 1, &q))
		return 2;
	p = bo_map(fd, host, SIZE, PROT_READ | PROT_WRITE);
	if (!p || run(&q, SPYRE_CB_DMAO, hmva, dmva, SIZE) || !holds(p, SIZE, 21))
		return 3;
	fill(p, SIZE, 22);
	if (run(&q, SPYRE_CB_DMAI, dmva, hmva, SIZE))
		return 4;
	return 0;
}

/* Card memory, between processes that know nothing of each other but a socket. */
TEST_F(buffers, share_device)
{
	int sock[2], buf, status;
	uint64_t hmva;
	uint32_t host;
	uint8_t *p;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(share_child(sock[1]));
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &host));
	ASSERT_EQ(0, vm_map(self->fd, host, 0, 0, &hmva));
	p = bo_map(self->fd, host, SIZE, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	fill(p, SIZE, 21);
	ASSERT_EQ(0, run(&self->q, SPYRE_CB_DMAI, self->dmva, hmva, SIZE));
	buf = export_fd(self->fd, self->dev, 0);
	ASSERT_GE(buf, 0);
	ASSERT_EQ(0, send_fd(sock[0], buf));
	close(buf);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(0, run(&self->q, SPYRE_CB_DMAO, hmva, self->dmva, SIZE));
	EXPECT_TRUE(holds(p, SIZE, 22));
}

/* mmap() of the dma-buf itself, and what it outlives. */
TEST_F(buffers, export_mmap)
{
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW };
	uint32_t host, dev;
	int rw, ro, d;
	uint8_t *p, *m;

	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &host));
	p = bo_map(self->fd, host, SIZE, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	rw = export_fd(self->fd, host, DRM_RDWR);
	ASSERT_GE(rw, 0);
	EXPECT_EQ(SIZE, lseek(rw, 0, SEEK_END));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, SIZE + PAGE, PROT_READ, MAP_SHARED, rw, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, rw, 0));
	m = mmap(NULL, SIZE - PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, rw, PAGE);
	ASSERT_NE(MAP_FAILED, (void *)m);
	EXPECT_EQ(0, call(rw, DMA_BUF_IOCTL_SYNC, &sync));
	fill(m, SIZE - PAGE, 23);
	EXPECT_TRUE(holds(p + PAGE, SIZE - PAGE, 23));
	close(rw);
	/* Of what the CPU cannot reach there is no mapping, by whatever way. */
	d = export_fd(self->fd, self->dev, DRM_RDWR);
	ASSERT_GE(d, 0);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, d, 0));
	EXPECT_EQ(EPERM, errno);
	close(d);
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &dev));
	ro = export_fd(self->fd, dev, 0);
	ASSERT_GE(ro, 0);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, ro, 0));
	EXPECT_EQ(EACCES, errno);
	p = bo_map(self->fd, dev, SIZE, PROT_WRITE);
	ASSERT_NE(NULL, p);
	*(volatile uint32_t *)p = 0x600df00d;
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, ro, 0);
	ASSERT_NE(MAP_FAILED, (void *)p);
	EXPECT_EQ(0x600df00d, *(volatile uint32_t *)p);
	EXPECT_EQ(-1, mprotect(p, SIZE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	/* The file goes, and the last handle with it. */
	close(ro);
	queue_unmap(&self->q);
	close(self->fd);
	EXPECT_TRUE(holds(m, SIZE - PAGE, 23));
	EXPECT_EQ(0x600df00d, *(volatile uint32_t *)p);
}

/* Card memory is taken back from whoever maps it; host memory stays; no old buffer gets to a new file. */
TEST_F(buffers, export_over_reset)
{
	uint32_t host, dev, h;
	uint64_t addr;
	volatile uint32_t *d, *p;
	int hbuf, dbuf, fd;

	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &host));
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &dev));
	hbuf = export_fd(self->fd, host, DRM_RDWR);
	dbuf = export_fd(self->fd, dev, DRM_RDWR);
	ASSERT_GE(hbuf, 0);
	ASSERT_GE(dbuf, 0);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, hbuf, 0);
	d = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, dbuf, 0);
	ASSERT_NE(MAP_FAILED, (void *)p);
	ASSERT_NE(MAP_FAILED, (void *)d);
	*p = 1;
	*d = 2;
	ASSERT_EQ(0, pci_file("reset", "1"));
	EXPECT_EQ(1, *p);
	EXPECT_EQ(0, *d);
	*d = 3;
	EXPECT_EQ(-ENODEV, export_fd(self->fd, host, 0));
	EXPECT_EQ(-ENODEV, import_fd(self->fd, hbuf, &h));
	fd = card_open();
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, import_fd(fd, dbuf, &h));
	EXPECT_EQ(-ENODEV, vm_map(fd, h, 0, 0, &addr));
	ASSERT_EQ(0, import_fd(fd, hbuf, &h));
	EXPECT_EQ(0, vm_map(fd, h, 0, 0, &addr));
}

/* With no file open: the module stays, the card may go, the memory is there. */
TEST_F(buffers, export_over_unbind)
{
	uint32_t host, dev;
	volatile uint32_t *d, *p;
	int hbuf, dbuf;

	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &host));
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &dev));
	hbuf = export_fd(self->fd, host, DRM_RDWR);
	dbuf = export_fd(self->fd, dev, DRM_RDWR);
	ASSERT_GE(hbuf, 0);
	ASSERT_GE(dbuf, 0);
	queue_unmap(&self->q);
	close(self->fd);
	EXPECT_EQ(-1, syscall(SYS_delete_module, "spyre", O_NONBLOCK));
	EXPECT_EQ(EWOULDBLOCK, errno);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, hbuf, 0);
	d = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, dbuf, 0);
	ASSERT_NE(MAP_FAILED, (void *)p);
	ASSERT_NE(MAP_FAILED, (void *)d);
	*p = 1;
	*d = 2;
	ASSERT_EQ(0, driver_file("unbind"));
	EXPECT_EQ(1, *p);
	EXPECT_EQ(0, *d);
	p[PAGE] = 5;
	*d = 6;
	ASSERT_EQ(0, driver_file("bind"));
	/* Of the new card it sees nothing. */
	EXPECT_EQ(6, *d);
	EXPECT_EQ(5, p[PAGE]);
	EXPECT_EQ(0, card_works());
}

TEST_F(buffers, import_udmabuf)
{
	struct drm_spyre_bo_info info = {};
	struct drm_spyre_bo_mmap m = {};
	struct drm_prime_handle again = {};
	uint64_t hmva, addr;
	uint8_t *p, *q;
	int buf, buf2;
	uint32_t h2;

	buf = udmabuf(SIZE, &p);
	ASSERT_GE(buf, 0);
	ASSERT_EQ(0, import_fd(self->fd, buf, &info.handle));
	ASSERT_EQ(0, import_fd(self->fd, buf, &again.handle));
	EXPECT_EQ(info.handle, again.handle);
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_BO_INFO, &info));
	EXPECT_EQ(SIZE, info.size);
	EXPECT_EQ(DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_IMPORT, info.flags);
	m.handle = info.handle;
	EXPECT_EQ(-EPERM, call(self->fd, DRM_IOCTL_SPYRE_BO_MMAP, &m));
	EXPECT_EQ(-EINVAL, wait_fence(self->fd, info.handle, 0, 0, 0));
	ASSERT_EQ(0, vm_map(self->fd, info.handle, 0, 0, &hmva));
	/* The exporter's descriptor and the handle go; the binding keeps the memory. */
	close(buf);
	ASSERT_EQ(0, bo_close(self->fd, info.handle));
	fill(p, SIZE / 2, 30);
	ASSERT_EQ(0, through(self, hmva + SIZE / 2, hmva, SIZE / 2));
	EXPECT_TRUE(holds(p + SIZE / 2, SIZE / 2, 30));
	/* Two of them, one only to be read, of a size that is no multiple of 2 MiB. */
	buf2 = udmabuf(3 * PAGE, &q);
	ASSERT_GE(buf2, 0);
	ASSERT_EQ(0, import_fd(self->fd, buf2, &h2));
	ASSERT_EQ(0, vm_map(self->fd, h2, DRM_SPYRE_VM_READONLY, 0, &addr));
	fill(q, 3 * PAGE, 31);
	ASSERT_EQ(0, through(self, hmva, addr, 3 * PAGE));
	EXPECT_TRUE(holds(p, 3 * PAGE, 31));
	ASSERT_EQ(SPYRE_ERR_FAULT, run(&self->q, SPYRE_CB_DMAO, addr, self->dmva, PAGE));
	/* What was imported leaves again as what it came as. */
	EXPECT_GE(export_fd(self->fd, h2, 0), 0);
}

TEST_F(buffers, import_over_unbind)
{
	uint64_t hmva;
	uint32_t h;
	uint8_t *p;
	int buf = udmabuf(SIZE, &p);

	ASSERT_GE(buf, 0);
	ASSERT_EQ(0, import_fd(self->fd, buf, &h));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &hmva));
	fill(p, SIZE, 32);
	ASSERT_EQ(0, driver_file("unbind"));
	ASSERT_EQ(0, driver_file("bind"));
	EXPECT_TRUE(holds(p, SIZE, 32));
	/* After the card the attachment: nothing of it needs the driver's device any more. */
	queue_unmap(&self->q);
	close(self->fd);
	close(buf);
}

TEST_F(buffers, import_refuses)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), i, buf;
	uint32_t h, mine;

	EXPECT_EQ(-EINVAL, import_fd(self->fd, null, &h));
	EXPECT_EQ(-EINVAL, import_fd(self->fd, self->fd, &h));
	EXPECT_EQ(-EBADF, import_fd(self->fd, 1000, &h));
	EXPECT_EQ(-ENOENT, export_fd(self->fd, 1000, 0));
	/* Nothing stays of many; and the file that exported gets its own handle back. */
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, bo_create(self->fd, PAGE, DRM_SPYRE_BO_HOST, &mine));
		buf = export_fd(self->fd, mine, DRM_RDWR);
		ASSERT_GE(buf, 0);
		ASSERT_EQ(0, import_fd(self->fd, buf, &h));
		EXPECT_EQ(mine, h);
		ASSERT_EQ(0, bo_close(self->fd, h));
		close(buf);
	}
}

/* --- Two cards ------------------------------------------------------------------------------- */

#define MAPPABLE	(DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE)
#define PEER		(DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_IMPORT | DRM_SPYRE_BO_PEER)

/* PCI names of the first two cards of the driver. How many there are of these. */
static int two_cards(char pci[2][16])
{
	glob_t g;
	int n;

	if (glob("/sys/bus/pci/drivers/spyre/*:*:*.*", 0, NULL, &g))
		return 0;
	for (n = 0; n < 2 && n < (int)g.gl_pathc; n++)
		snprintf(pci[n], 16, "%s", strrchr(g.gl_pathv[n], '/') + 1);
	globfree(&g);
	return n;
}

/* card_open(), card_pci() and others are about that card from now on. A file of it, or -errno. */
static int open_card(const char *pci)
{
	char path[PATH_MAX], node[64];
	glob_t g;
	int i;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/accel/accel*", pci);
	/* After a bind the node comes a moment later. */
	for (i = 0; i < 100 * slower(); i++) {
		if (!glob(path, 0, NULL, &g)) {
			snprintf(node, sizeof(node), "/dev/accel/%.32s",
				 strrchr(g.gl_pathv[0], '/') + 1);
			globfree(&g);
			setenv("SPYRE_TEST_NODE", node, 1);
			return card_open();
		}
		usleep(50000);
	}
	return -ENOENT;
}

static int use_card(const char *pci)
{
	int fd = open_card(pci);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Both are below one port of the root complex: in spyre-vm's machines that is one of a switch. */
static bool below_switch(char pci[2][16])
{
	char path[PATH_MAX], at[2][PATH_MAX], *port;
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", pci[i]);
		if (!realpath(path, at[i]))
			return false;
	}
	/* "/sys/devices/pci0000:00/0000:00:02.0/..." */
	port = strstr(at[0], "/pci");
	port = port ? strchr(port + 1, '/') : NULL;
	port = port ? strchr(port + 1, '/') : NULL;
	return port && !strncmp(at[0], at[1], port - at[0] + 1);
}

static int pci_write(const char *pci, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", pci, name);
	return write_file(path, text);
}

static int driver_write(const char *name, const char *pci)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/spyre/%s", name);
	return write_file(path, pci);
}

/* One card's part: a file, memory that the CPU sees too, a queue. */
struct side {
	int fd;
	uint32_t dev;
	uint64_t dmva;
	uint32_t *p;
	struct queue q;
};

static int side_open(const char *pci, struct side *s)
{
	int ret;

	s->fd = open_card(pci);
	if (s->fd < 0)
		return s->fd;
	ret = bo_create(s->fd, SIZE, MAPPABLE, &s->dev);
	if (!ret)
		ret = vm_map(s->fd, s->dev, 0, 0, &s->dmva);
	if (!ret)
		ret = queue_open(s->fd, 64, 1, &s->q);
	if (ret)
		return ret;
	s->p = bo_map(s->fd, s->dev, SIZE, PROT_READ | PROT_WRITE);
	return s->p ? 0 : -errno;
}

static void side_close(struct side *s)
{
	munmap(s->p, SIZE);
	queue_unmap(&s->q);
	close(s->fd);
}

/* The memory of one at another card. The dma-buf's descriptor is closed, or given to @buf. */
static int give(struct side *from, int to, uint32_t *handle, uint64_t *hmva, int *buf)
{
	int fd = export_fd(from->fd, from->dev, DRM_RDWR), ret;

	if (fd < 0)
		return fd;
	ret = import_fd(to, fd, handle);
	if (!ret)
		ret = vm_map(to, *handle, 0, 0, hmva);
	if (buf && !ret)
		*buf = fd;
	else
		close(fd);
	return ret;
}

/* 2 MiB pages of a card's memory that others have. */
static long imported(const char *pci)
{
	char buf[1024], *at;
	long n = -1;

	if (use_card(pci) || read_file(debugfs_path("memory"), buf, sizeof(buf)))
		return -1;
	at = strstr(buf, "imported by other cards ");
	return at && sscanf(at, "imported by other cards %ld", &n) == 1 ? n : -1;
}

/* Host memory goes to any other card. */
TEST_F(buffers, between_cards)
{
	uint64_t ours, theirs, dmva;
	uint32_t host, h, dev;
	char pci[2][16];
	struct queue q;
	int other, buf, at;
	uint8_t *p;

	if (two_cards(pci) < 2)
		SKIP(return, "there is one card only");
	at = strcmp(card_pci(), pci[0]) != 0;
	other = open_card(pci[!at]);
	unsetenv("SPYRE_TEST_NODE");
	ASSERT_GE(other, 0);
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &host));
	p = bo_map(self->fd, host, SIZE, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, vm_map(self->fd, host, 0, 0, &ours));
	buf = export_fd(self->fd, host, DRM_RDWR);
	ASSERT_GE(buf, 0);
	ASSERT_EQ(0, import_fd(other, buf, &h));
	ASSERT_EQ(0, bo_create(other, SIZE, DRM_SPYRE_BO_DEVICE, &dev));
	ASSERT_EQ(0, vm_map(other, dev, 0, 0, &dmva));
	ASSERT_EQ(0, vm_map(other, h, 0, 0, &theirs));
	ASSERT_EQ(0, queue_open(other, 64, 1, &q));
	/* From the memory of one into the memory of the other, through the shared buffer. */
	fill(p, SIZE, 33);
	ASSERT_EQ(0, run(&self->q, SPYRE_CB_DMAI, self->dmva, ours, SIZE));
	memset(p, 0, SIZE);
	ASSERT_EQ(0, run(&self->q, SPYRE_CB_DMAO, ours, self->dmva, SIZE));
	ASSERT_EQ(0, run(&q, SPYRE_CB_DMAI, dmva, theirs, SIZE));
	memset(p, 0, SIZE);
	ASSERT_EQ(0, run(&q, SPYRE_CB_DMAO, theirs, dmva, SIZE));
	EXPECT_TRUE(holds(p, SIZE, 33));
	close(buf);
	/* The exporter's card goes while the other still uses the memory. */
	ASSERT_EQ(0, driver_write("unbind", pci[at]));
	ASSERT_EQ(0, run(&q, SPYRE_CB_DMAO, theirs, dmva, SIZE));
	EXPECT_TRUE(holds(p, SIZE, 33));
	ASSERT_EQ(0, driver_write("bind", pci[at]));
}

/* Device memory does not go where nothing says that the cards reach each other. */
TEST(no_switch)
{
	char pci[2][16];
	uint64_t hmva;
	struct side a;
	uint32_t h;
	int b;

	if (two_cards(pci) < 2)
		SKIP(return, "there is one card only");
	if (below_switch(pci))
		SKIP(return, "the cards share a switch");
	ASSERT_EQ(0, side_open(pci[0], &a));
	b = open_card(pci[1]);
	ASSERT_GE(b, 0);
	EXPECT_EQ(-EXDEV, give(&a, b, &h, &hmva, NULL));
	EXPECT_EQ(0, imported(pci[0]));
	side_close(&a);
	close(b);
}

/* The first card's memory at the second one, which are below one switch. */
FIXTURE(peers) {
	char pci[2][16];
	bool two;
	struct side a, b;
	uint32_t h;
	uint64_t hmva;
	struct baseline base[2];
};

FIXTURE_SETUP(peers)
{
	int i;

	if (two_cards(self->pci) < 2 || !below_switch(self->pci))
		SKIP(return, "there are no two cards below one switch");
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, use_card(self->pci[i]));
		baseline_take(&self->base[i]);
	}
	self->two = true;
	ASSERT_EQ(0, side_open(self->pci[0], &self->a));
	ASSERT_EQ(0, side_open(self->pci[1], &self->b));
	ASSERT_EQ(0, give(&self->a, self->b.fd, &self->h, &self->hmva, NULL));
}

FIXTURE_TEARDOWN_PARENT(peers)
{
	int i;

	for (i = 0; i < 2 && self->two; i++) {
		ASSERT_EQ(0, use_card(self->pci[i]));
		EXPECT_EQ(0, card_works());
		EXPECT_EQ(0, back_to_baseline(&self->base[i]));
		EXPECT_EQ(0, imported(self->pci[i]));
	}
	unsetenv("SPYRE_TEST_NODE");
}

/* Both directions, pages large and small, and what the calls say of such a buffer. */
TEST_F(peers, both_ways)
{
	struct drm_spyre_bo_info info = { .handle = self->h };
	struct drm_spyre_bo_mmap m = { .handle = self->h };
	struct side *a = &self->a, *b = &self->b;
	struct drm_spyre_vm_bind part = {
		.op = DRM_SPYRE_VM_MAP, .handle = self->h, .offset = PAGE2M - 3 * PAGE,
		.size = 5 * PAGE,
	};
	struct spyre_cb cb;
	uint64_t other;

	ASSERT_EQ(0, call(b->fd, DRM_IOCTL_SPYRE_BO_INFO, &info));
	EXPECT_EQ(SIZE, info.size);
	EXPECT_EQ(PEER, info.flags);
	EXPECT_EQ(-EPERM, call(b->fd, DRM_IOCTL_SPYRE_BO_MMAP, &m));
	EXPECT_EQ(-EINVAL, wait_fence(b->fd, self->h, 0, 0, 0));
	EXPECT_EQ((long)(SIZE / PAGE2M), imported(self->pci[0]));
	fill(a->p, SIZE, 50);
	ASSERT_EQ(0, run(&b->q, SPYRE_CB_DMAI, b->dmva, self->hmva, SIZE));
	EXPECT_TRUE(holds(b->p, SIZE, 50));
	fill(b->p, SIZE, 51);
	ASSERT_EQ(0, run(&b->q, SPYRE_CB_DMAO, self->hmva, b->dmva, SIZE));
	EXPECT_TRUE(holds(a->p, SIZE, 51));
	/* The owner's own engines see the same. */
	ASSERT_EQ(0, bo_create(a->fd, SIZE, DRM_SPYRE_BO_DEVICE, &info.handle));
	ASSERT_EQ(0, vm_map(a->fd, info.handle, 0, 0, &other));
	ASSERT_EQ(0, run(&a->q, SPYRE_CB_DMAX, other, a->dmva, SIZE));
	cb = cb_fill(a->dmva, SIZE, 0x1122334455667788);
	ASSERT_EQ(0, queue_wait(&a->q, queue_submit(&a->q, &cb), WAIT_MS));
	ASSERT_EQ(0, run(&b->q, SPYRE_CB_DMAI, b->dmva, self->hmva, SIZE));
	EXPECT_EQ(0x55667788u, b->p[SIZE / 8]);
	ASSERT_EQ(0, run(&a->q, SPYRE_CB_DMAX, a->dmva, other, SIZE));
	/* A part, over a seam of the card's pages. */
	ASSERT_EQ(0, call(b->fd, DRM_IOCTL_SPYRE_VM_BIND, &part));
	EXPECT_EQ(1, part.space);
	memset(b->p, 0, SIZE);
	ASSERT_EQ(0, run(&b->q, SPYRE_CB_DMAI, b->dmva, part.addr, 5 * PAGE));
	EXPECT_TRUE(holds(b->p, 5 * PAGE, 51 + part.offset / 4));
	EXPECT_EQ(0, b->p[5 * PAGE / 4]);
	EXPECT_EQ(0, vm_unmap(b->fd, part.addr, 1));
	EXPECT_EQ(SPYRE_ERR_FAULT, run(&b->q, SPYRE_CB_DMAI, b->dmva, part.addr, PAGE));
}

/* Memory in pieces is put together as the owner has it. */
TEST_F(peers, scattered)
{
	struct side *b = &self->b, a2 = { .fd = self->a.fd };
	uint32_t gap[8], h;
	uint64_t hmva;
	int i;

	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, bo_create(a2.fd, PAGE2M, MAPPABLE, &gap[i]));
	for (i = 0; i < 8; i += 2)
		ASSERT_EQ(0, bo_close(a2.fd, gap[i]));
	/* They are given out again once they were cleared. */
	usleep(500000 * slower());
	ASSERT_EQ(0, bo_create(a2.fd, 8 * PAGE2M, MAPPABLE, &a2.dev));
	a2.p = bo_map(a2.fd, a2.dev, 8 * PAGE2M, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, a2.p);
	fill(a2.p, 8 * PAGE2M, 52);
	ASSERT_EQ(0, give(&a2, b->fd, &h, &hmva, NULL));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, run(&b->q, SPYRE_CB_DMAI, b->dmva, hmva + i * SIZE, SIZE));
		EXPECT_TRUE(holds(b->p, SIZE, 52 + i * SIZE / 4));
	}
}

TEST_F(peers, readonly)
{
	struct side *a = &self->a, *b = &self->b;
	struct drm_spyre_bo_info info = {};
	uint64_t addr;
	uint32_t dev;
	uint32_t *p;
	int buf;

	/* Of a dma-buf that may be written, a binding that may not. */
	ASSERT_EQ(0, vm_map(b->fd, self->h, DRM_SPYRE_VM_READONLY, 0, &addr));
	fill(a->p, SIZE, 53);
	ASSERT_EQ(0, run(&b->q, SPYRE_CB_DMAI, b->dmva, addr, SIZE));
	EXPECT_TRUE(holds(b->p, SIZE, 53));
	memset(b->p, 0, SIZE);
	EXPECT_EQ(SPYRE_ERR_FAULT, run(&b->q, SPYRE_CB_DMAO, addr, b->dmva, SIZE));
	EXPECT_TRUE(holds(a->p, SIZE, 53));
	ASSERT_EQ(0, reset(&b->q));
	/* And one that may not at all. */
	ASSERT_EQ(0, bo_create(a->fd, SIZE, MAPPABLE, &dev));
	p = bo_map(a->fd, dev, SIZE, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	fill(p, SIZE, 54);
	buf = export_fd(a->fd, dev, 0);
	ASSERT_GE(buf, 0);
	ASSERT_EQ(0, import_fd(b->fd, buf, &info.handle));
	ASSERT_EQ(0, call(b->fd, DRM_IOCTL_SPYRE_BO_INFO, &info));
	EXPECT_EQ(PEER | DRM_SPYRE_BO_READONLY, info.flags);
	EXPECT_EQ(-EACCES, vm_map(b->fd, info.handle, 0, 0, &addr));
	ASSERT_EQ(0, vm_map(b->fd, info.handle, DRM_SPYRE_VM_READONLY, 0, &addr));
	ASSERT_EQ(0, run(&b->q, SPYRE_CB_DMAI, b->dmva, addr, SIZE));
	EXPECT_TRUE(holds(b->p, SIZE, 54));
	memset(b->p, 0, SIZE);
	EXPECT_EQ(SPYRE_ERR_FAULT, run(&b->q, SPYRE_CB_DMAO, addr, b->dmva, SIZE));
	EXPECT_TRUE(holds(p, SIZE, 54));
}

TEST_F(peers, refuses)
{
	struct side *a = &self->a, *b = &self->b, hidden = { .fd = a->fd };
	struct drm_spyre_vm_bind bind = {
		.op = DRM_SPYRE_VM_MAP, .handle = self->h, .offset = SIZE - PAGE, .size = 2 * PAGE,
	};
	uint64_t hmva;
	uint32_t h;

	ASSERT_EQ(0, bo_create(a->fd, SIZE, DRM_SPYRE_BO_DEVICE, &hidden.dev));
	EXPECT_EQ(-EPERM, give(&hidden, b->fd, &h, &hmva, NULL));
	/* No other memory of that card is within reach. */
	EXPECT_EQ(-EINVAL, call(b->fd, DRM_IOCTL_SPYRE_VM_BIND, &bind));
	bind.offset = SIZE;
	bind.size = PAGE;
	EXPECT_EQ(-EINVAL, call(b->fd, DRM_IOCTL_SPYRE_VM_BIND, &bind));
	bind.offset = PAGE / 2;
	EXPECT_EQ(-EINVAL, call(b->fd, DRM_IOCTL_SPYRE_VM_BIND, &bind));
	EXPECT_EQ(-EINVAL, vm_map(b->fd, self->h, 0, 1, &hmva));
	hmva = self->hmva + SIZE - PAGE;
	EXPECT_EQ(SPYRE_ERR_FAULT, run(&b->q, SPYRE_CB_DMAI, b->dmva, hmva, 2 * PAGE));
	ASSERT_EQ(0, reset(&b->q));
	EXPECT_EQ(SPYRE_ERR_FAULT, run(&b->q, SPYRE_CB_DMAO, self->hmva - PAGE, b->dmva, PAGE));
	ASSERT_EQ(0, reset(&b->q));
	EXPECT_EQ(0, run(&b->q, SPYRE_CB_DMAI, b->dmva, hmva, PAGE));
}

/* Copies from and to hmva until that fails with ret; so many went through. */
struct copier {
	pthread_t thread;
	struct queue *q;
	uint64_t dmva, hmva;
	unsigned int count;
	int ret;
};

static void *copies(void *arg)
{
	struct copier *c = arg;

	do {
		if (c->count % 2)
			c->ret = run(c->q, SPYRE_CB_DMAO, c->hmva, c->dmva, SIZE);
		else
			c->ret = run(c->q, SPYRE_CB_DMAI, c->dmva, c->hmva, SIZE);
		if (!c->ret)
			__atomic_add_fetch(&c->count, 1, __ATOMIC_RELAXED);
	} while (!c->ret);
	return NULL;
}

/* Started, and it went through twice at least. */
static int copier_start(struct copier *c, struct side *s, uint64_t hmva)
{
	int i;

	*c = (struct copier){ .q = &s->q, .dmva = s->dmva, .hmva = hmva };
	if (pthread_create(&c->thread, NULL, copies, c))
		return -EAGAIN;
	for (i = 0; i < WAIT_MS; i++) {
		if (__atomic_load_n(&c->count, __ATOMIC_RELAXED) >= 2)
			return 0;
		usleep(1000);
	}
	return -ETIME;
}

static int copier_end(struct copier *c)
{
	pthread_join(c->thread, NULL);
	return c->ret;
}

/* Somebody else on the second card, whom nothing of all this concerns. */
struct bystander {
	struct side s;
	uint64_t host;
	uint32_t *p;
};

static int bystander_start(const char *pci, struct bystander *y)
{
	uint32_t h;
	int ret = side_open(pci, &y->s);

	if (!ret)
		ret = bo_create(y->s.fd, SIZE, DRM_SPYRE_BO_HOST, &h);
	if (!ret)
		ret = vm_map(y->s.fd, h, 0, 0, &y->host);
	if (ret)
		return ret;
	y->p = bo_map(y->s.fd, h, SIZE, PROT_READ | PROT_WRITE);
	return y->p ? 0 : -errno;
}

static bool bystander_well(struct bystander *y)
{
	fill(y->p, SIZE, 60);
	if (run(&y->s.q, SPYRE_CB_DMAI, y->s.dmva, y->host, SIZE) || !holds(y->s.p, SIZE, 60))
		return false;
	memset(y->p, 0, SIZE);
	return !run(&y->s.q, SPYRE_CB_DMAO, y->host, y->s.dmva, SIZE) && holds(y->p, SIZE, 60);
}

/* What is left of memory that was taken back: places where nothing is. */
static void check_revoked(struct __test_metadata *_metadata, FIXTURE_DATA(peers) *f, int buf)
{
	struct side *b = &f->b;
	uint64_t addr, other;
	struct side a;
	uint32_t h;

	/* The card has memory again, and somebody else has it. */
	ASSERT_EQ(0, side_open(f->pci[0], &a));
	fill(a.p, SIZE, 61);
	fill(b->p, SIZE, 62);
	ASSERT_EQ(0, reset(&b->q));
	EXPECT_EQ(SPYRE_ERR_FAULT, run(&b->q, SPYRE_CB_DMAI, b->dmva, f->hmva, SIZE));
	ASSERT_EQ(0, reset(&b->q));
	EXPECT_EQ(SPYRE_ERR_FAULT, run(&b->q, SPYRE_CB_DMAO, f->hmva, b->dmva, SIZE));
	ASSERT_EQ(0, reset(&b->q));
	EXPECT_TRUE(holds(b->p, SIZE, 62));
	EXPECT_TRUE(holds(a.p, SIZE, 61));
	EXPECT_EQ(-ENODEV, vm_map(b->fd, f->h, 0, 0, &addr));
	EXPECT_EQ(0, imported(f->pci[0]));
	/* It is not to be had anew either, and new memory is, at other addresses. */
	ASSERT_EQ(0, bo_close(b->fd, f->h));
	EXPECT_EQ(-ENODEV, import_fd(b->fd, buf, &h));
	ASSERT_EQ(0, give(&a, b->fd, &h, &other, NULL));
	EXPECT_TRUE(other >= f->hmva + SIZE || other + SIZE <= f->hmva);
	EXPECT_EQ(0, run(&b->q, SPYRE_CB_DMAI, b->dmva, other, SIZE));
	EXPECT_TRUE(holds(b->p, SIZE, 61));
	EXPECT_EQ(0, vm_unmap(b->fd, f->hmva, 1));
	EXPECT_EQ(-ENOENT, vm_unmap(b->fd, f->hmva, 1));
	EXPECT_EQ(0, vm_unmap(b->fd, other, 1));
	side_close(&a);
}

/* In the middle of copies: they fail, and nothing else of that card. */
static void taken_back(struct __test_metadata *_metadata, FIXTURE_DATA(peers) *f, bool unbind)
{
	struct drm_spyre_device_info before, after;
	struct drm_spyre_bo_info info = {};
	struct copier copier, back;
	struct bystander y;
	uint64_t hmva;
	int buf;

	ASSERT_EQ(0, query(f->b.fd, DRM_SPYRE_QUERY_DEVICE, &before, sizeof(before)));
	ASSERT_EQ(0, bystander_start(f->pci[1], &y));
	buf = export_fd(f->a.fd, f->a.dev, DRM_RDWR);
	ASSERT_GE(buf, 0);
	/* Several bindings of it, and one file more. */
	ASSERT_EQ(0, import_fd(y.s.fd, buf, &info.handle));
	ASSERT_EQ(0, vm_map(y.s.fd, info.handle, DRM_SPYRE_VM_READONLY, 0, &hmva));
	ASSERT_EQ(0, vm_map(f->b.fd, f->h, DRM_SPYRE_VM_READONLY, 0, &hmva));
	/* The owner loses its context, so it is another kind of end. */
	ASSERT_EQ(0, give(&f->b, f->a.fd, &info.handle, &hmva, NULL));
	ASSERT_EQ(0, copier_start(&copier, &f->b, f->hmva));
	ASSERT_EQ(0, copier_start(&back, &f->a, hmva));
	if (unbind) {
		ASSERT_EQ(0, driver_write("unbind", f->pci[0]));
	} else {
		ASSERT_EQ(0, pci_write(f->pci[0], "reset", "1"));
	}
	EXPECT_EQ(SPYRE_ERR_FAULT, copier_end(&copier));
	EXPECT_NE(0, copier_end(&back));
	EXPECT_TRUE(bystander_well(&y));
	/* Gone or back, it is not to be had. */
	EXPECT_EQ(-ENODEV, vm_map(f->b.fd, f->h, 0, 0, &hmva));
	if (unbind)
		ASSERT_EQ(0, driver_write("bind", f->pci[0]));
	check_revoked(_metadata, f, buf);
	ASSERT_EQ(0, query(f->b.fd, DRM_SPYRE_QUERY_DEVICE, &after, sizeof(after)));
	EXPECT_EQ(before.reset_generation, after.reset_generation);
	EXPECT_TRUE(bystander_well(&y));
}

TEST_F_TIMEOUT(peers, reset_in_use, 60)
{
	taken_back(_metadata, self, false);
}

TEST_F_TIMEOUT(peers, unbind_in_use, 60)
{
	taken_back(_metadata, self, true);
}

/* The other way round: the importer loses its context, and the owner does not notice. */
TEST_F_TIMEOUT(peers, importer_resets, 60)
{
	struct copier copier;
	struct spyre_cb cb;

	ASSERT_EQ(0, copier_start(&copier, &self->b, self->hmva));
	ASSERT_EQ(0, pci_write(self->pci[1], "reset", "1"));
	EXPECT_NE(0, copier_end(&copier));
	cb = cb_fill(self->a.dmva, SIZE, 7);
	EXPECT_EQ(0, queue_wait(&self->a.q, queue_submit(&self->a.q, &cb), WAIT_MS));
	EXPECT_EQ(7, self->a.p[SIZE / 4 - 2]);
	/* A reset that the importer's driver does not survive either. */
	side_close(&self->b);
	ASSERT_EQ(0, side_open(self->pci[1], &self->b));
	ASSERT_EQ(0, give(&self->a, self->b.fd, &self->h, &self->hmva, NULL));
	ASSERT_EQ(0, copier_start(&copier, &self->b, self->hmva));
	ASSERT_EQ(0, driver_write("unbind", self->pci[1]));
	EXPECT_NE(0, copier_end(&copier));
	EXPECT_EQ(0, imported(self->pci[0]));
	ASSERT_EQ(0, driver_write("bind", self->pci[1]));
}

static void *resets(void *arg)
{
	long ret = 0;
	int i;

	for (i = 0; i < 4 && !ret; i++)
		ret = pci_write(arg, "reset", "1");
	return (void *)ret;
}

/* Each has the other's memory, and both lose their own at the same time, again and again. */
TEST_F_TIMEOUT(peers, each_other, 120)
{
	struct copier there, back;
	pthread_t thread[2];
	uint64_t hmva;
	uint32_t h;
	int i, round;
	void *ret;

	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, give(&self->b, self->a.fd, &h, &hmva, NULL));
		ASSERT_EQ(0, copier_start(&there, &self->b, self->hmva));
		ASSERT_EQ(0, copier_start(&back, &self->a, hmva));
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, pthread_create(&thread[i], NULL, resets, self->pci[i]));
		for (i = 0; i < 2; i++) {
			ASSERT_EQ(0, pthread_join(thread[i], &ret));
			EXPECT_EQ(NULL, ret);
		}
		EXPECT_NE(0, copier_end(&there));
		EXPECT_NE(0, copier_end(&back));
		side_close(&self->a);
		side_close(&self->b);
		ASSERT_EQ(0, side_open(self->pci[0], &self->a));
		ASSERT_EQ(0, side_open(self->pci[1], &self->b));
		ASSERT_EQ(0, give(&self->a, self->b.fd, &self->h, &self->hmva, NULL));
	}
}

/* The exporter is killed: the memory is there until the last import of it has gone, and counts. */
TEST_F_TIMEOUT(peers, exporter_killed, 60)
{
	struct side *b = &self->b, a;
	uint64_t used, hmva;
	struct copier copier;
	int sock[2], buf, status;
	uint32_t h;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock));
	used = memory_info(self->a.fd).used;
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (side_open(self->pci[0], &a))
			_exit(1);
		fill(a.p, SIZE, 63);
		buf = export_fd(a.fd, a.dev, DRM_RDWR);
		if (buf < 0 || send_fd(sock[1], buf))
			_exit(1);
		pause();
	}
	buf = recv_fd(sock[0]);
	ASSERT_GE(buf, 0);
	ASSERT_EQ(0, import_fd(b->fd, buf, &h));
	close(buf);
	ASSERT_EQ(0, vm_map(b->fd, h, 0, 0, &hmva));
	ASSERT_EQ(0, copier_start(&copier, b, hmva));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	usleep(200000);
	EXPECT_EQ(used + SIZE, memory_info(self->a.fd).used);
	/* The copies go on; they end with the binding. */
	EXPECT_EQ(0, vm_unmap(b->fd, hmva, 1));
	EXPECT_EQ(SPYRE_ERR_FAULT, copier_end(&copier));
	EXPECT_EQ(used + SIZE, memory_info(self->a.fd).used);
	ASSERT_EQ(0, vm_map(b->fd, h, 0, 0, &hmva));
	ASSERT_EQ(0, reset(&b->q));
	ASSERT_EQ(0, run(&b->q, SPYRE_CB_DMAI, b->dmva, hmva, SIZE));
	EXPECT_TRUE(holds(b->p, SIZE, 63));
	EXPECT_EQ(0, vm_unmap(b->fd, hmva, 1));
	EXPECT_EQ(0, bo_close(b->fd, h));
	EXPECT_EQ(used, memory_info(self->a.fd).used);
}

/* Imports, copies, never cleans up. */
static void churn_peer(char pci[2][16])
{
	for (;;) {
		struct side a, b;
		struct spyre_cb cb;
		uint64_t hmva;
		uint32_t h;
		int i;

		if (side_open(pci[0], &a) || side_open(pci[1], &b) ||
		    give(&a, b.fd, &h, &hmva, NULL))
			_exit(1);
		for (i = 0; i < 8; i++) {
			cb = cb_dma(i % 2 ? SPYRE_CB_DMAO : SPYRE_CB_DMAI, i % 2 ? hmva : b.dmva,
				    i % 2 ? b.dmva : hmva, SIZE);
			queue_submit(&b.q, &cb);
		}
		queue_wait(&b.q, 3, WAIT_MS);
		side_close(&a);
		side_close(&b);
	}
}

TEST_F_TIMEOUT(peers, killed, 60)
{
	int i, status;
	pid_t pid;

	for (i = 0; i < 8; i++) {
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			churn_peer(self->pci);
		usleep(30000 * (i + 1));
		/* In every other the owner's card is reset below it. */
		if (i % 2)
			ASSERT_EQ(0, pci_write(self->pci[0], "reset", "1"));
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
	}
}

/* A card that sleeps keeps its memory, and who has it. */
TEST_F_TIMEOUT(peers, owner_sleeps, 60)
{
	struct copier copier;

	ASSERT_EQ(0, copier_start(&copier, &self->b, self->hmva));
	ASSERT_EQ(0, use_card(self->pci[0]));
	ASSERT_EQ(0, write_file(debugfs_path("reset"), "sleep 300"));
	ASSERT_EQ(0, write_file(debugfs_path("reset"), "firmware"));
	EXPECT_EQ(0, vm_unmap(self->b.fd, self->hmva, 1));
	EXPECT_EQ(SPYRE_ERR_FAULT, copier_end(&copier));
	ASSERT_EQ(0, reset(&self->b.q));
	ASSERT_EQ(0, vm_map(self->b.fd, self->h, 0, 0, &self->hmva));
	fill(self->a.p, SIZE, 64);
	ASSERT_EQ(0, run(&self->b.q, SPYRE_CB_DMAI, self->b.dmva, self->hmva, SIZE));
	EXPECT_TRUE(holds(self->b.p, SIZE, 64));
}

/* The importer sleeps while the memory is taken back: it wakes up without it. */
static void *sleeps(void *arg)
{
	(void)arg;
	return (void *)(long)write_file(debugfs_path("reset"), "sleep 3000");
}

TEST_F_TIMEOUT(peers, importer_sleeps, 60)
{
	struct drm_spyre_bo_info info = { .handle = self->h };
	struct drm_spyre_device_info before, after;
	struct side a;
	pthread_t thread;
	void *ret;
	int i;

	ASSERT_EQ(0, query(self->b.fd, DRM_SPYRE_QUERY_DEVICE, &before, sizeof(before)));
	ASSERT_EQ(0, use_card(self->pci[1]));
	ASSERT_EQ(0, pthread_create(&thread, NULL, sleeps, NULL));
	for (i = 0; i < WAIT_MS && call(self->b.fd, DRM_IOCTL_SPYRE_BO_INFO, &info) != -ENODEV; i++)
		usleep(1000);
	ASSERT_EQ(0, pci_write(self->pci[0], "reset", "1"));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	ASSERT_EQ(0, side_open(self->pci[0], &a));
	fill(a.p, SIZE, 65);
	EXPECT_EQ(SPYRE_ERR_FAULT, run(&self->b.q, SPYRE_CB_DMAO, self->hmva, self->b.dmva, SIZE));
	EXPECT_TRUE(holds(a.p, SIZE, 65));
	ASSERT_EQ(0, query(self->b.fd, DRM_SPYRE_QUERY_DEVICE, &after, sizeof(after)));
	EXPECT_EQ(before.reset_generation, after.reset_generation);
}

/* An importer whose firmware confirms nothing is taken off the bus; the owner is back in time. */
TEST_F_TIMEOUT(peers, importer_hangs, 90)
{
	struct drm_spyre_device_info before, after;
	int64_t begin;

	ASSERT_EQ(0, query(self->b.fd, DRM_SPYRE_QUERY_DEVICE, &before, sizeof(before)));
	ASSERT_EQ(0, use_card(self->pci[1]));
	if (access(debugfs_path("inject"), W_OK))
		SKIP(return, "the card does not allow fault injection");
	ASSERT_EQ(0, write_file(debugfs_path("inject"), "hang"));
	begin = after_ms(0);
	ASSERT_EQ(0, pci_write(self->pci[0], "reset", "1"));
	EXPECT_LT(after_ms(0) - begin, 30000ll * slower() * 1000000);
	side_close(&self->a);
	ASSERT_EQ(0, side_open(self->pci[0], &self->a));
	EXPECT_EQ(0, imported(self->pci[0]));
	/* Its memory is lost, as nothing else says what the card still did. */
	side_close(&self->b);
	ASSERT_EQ(0, side_open(self->pci[1], &self->b));
	ASSERT_EQ(0, query(self->b.fd, DRM_SPYRE_QUERY_DEVICE, &after, sizeof(after)));
	EXPECT_NE(before.reset_generation, after.reset_generation);
	ASSERT_EQ(0, give(&self->a, self->b.fd, &self->h, &self->hmva, NULL));
	EXPECT_EQ(0, run(&self->b.q, SPYRE_CB_DMAI, self->b.dmva, self->hmva, SIZE));
}

/* A call that waits for the card, in a thread of its own. */
struct unmapper {
	pthread_t thread;
	int tid, fd, ret;
	uint64_t hmva;
};

static void *unmaps(void *arg)
{
	struct unmapper *u = arg;

	__atomic_store_n(&u->tid, gettid(), __ATOMIC_RELEASE);
	u->ret = vm_unmap(u->fd, u->hmva, 1);
	return NULL;
}

/* The same while it unbinds: the binding is the user's no more, and the card was not done with it. */
TEST_F_TIMEOUT(peers, importer_hangs_in_unmap, 90)
{
	struct unmapper u = { .fd = self->b.fd, .hmva = self->hmva };
	struct drm_spyre_device_info before, after;

	ASSERT_EQ(0, query(self->b.fd, DRM_SPYRE_QUERY_DEVICE, &before, sizeof(before)));
	ASSERT_EQ(0, use_card(self->pci[1]));
	if (access(debugfs_path("inject"), W_OK))
		SKIP(return, "the card does not allow fault injection");
	ASSERT_EQ(0, write_file(debugfs_path("inject"), "hang"));
	ASSERT_EQ(0, pthread_create(&u.thread, NULL, unmaps, &u));
	ASSERT_EQ(0, thread_sleeps(&u.tid));
	ASSERT_EQ(0, pci_write(self->pci[0], "reset", "1"));
	ASSERT_EQ(0, pthread_join(u.thread, NULL));
	EXPECT_EQ(-EIO, u.ret);
	EXPECT_EQ(0, imported(self->pci[0]));
	side_close(&self->b);
	ASSERT_EQ(0, side_open(self->pci[1], &self->b));
	ASSERT_EQ(0, query(self->b.fd, DRM_SPYRE_QUERY_DEVICE, &after, sizeof(after)));
	EXPECT_NE(before.reset_generation, after.reset_generation);
}

#define IMPORT_FILES	32
#define IMPORT_BUFFERS	500

/* However often its memory was imported, the owner is back in time. */
TEST_F_TIMEOUT(peers, many_imports, 120)
{
	int buf[IMPORT_BUFFERS], file[IMPORT_FILES], owner = open_card(self->pci[0]), i, k;
	uint64_t hmva;
	int64_t begin;
	uint32_t h;

	for (i = 0; i < IMPORT_BUFFERS; i++) {
		ASSERT_EQ(0, bo_create(owner, PAGE2M, MAPPABLE, &h));
		buf[i] = export_fd(owner, h, DRM_RDWR);
		ASSERT_GE(buf[i], 0);
	}
	for (k = 0; k < IMPORT_FILES; k++) {
		file[k] = open_card(self->pci[1]);
		ASSERT_GE(file[k], 0);
		for (i = 0; i < IMPORT_BUFFERS; i++) {
			ASSERT_EQ(0, import_fd(file[k], buf[i], &h));
			if (!k)
				ASSERT_EQ(0, vm_map(file[k], h, 0, 0, &hmva));
		}
	}
	begin = after_ms(0);
	ASSERT_EQ(0, pci_write(self->pci[0], "reset", "1"));
	EXPECT_LT(after_ms(0) - begin, 5000ll * slower() * 1000000);
	EXPECT_EQ(0, imported(self->pci[0]));
	EXPECT_EQ(-ENODEV, vm_map(file[0], h, 0, 0, &hmva));
	for (k = 0; k < IMPORT_FILES; k++)
		close(file[k]);
	for (i = 0; i < IMPORT_BUFFERS; i++)
		close(buf[i]);
	close(owner);
}

/* The owner is pulled out of its slot, by tests/campaign/test_pulled, which waits for the line. */
TEST(pulled_out)
{
	struct drm_spyre_device_info before, after;
	struct copier copier;
	struct bystander y;
	char pci[2][16], path[64];
	struct side a, b;
	uint64_t hmva;
	uint32_t h;
	int i, buf;

	if (!getenv("SPYRE_PULLED"))
		SKIP(return, "nobody pulls a card out");
	ASSERT_EQ(2, two_cards(pci));
	ASSERT_TRUE(below_switch(pci));
	ASSERT_EQ(0, side_open(pci[0], &a));
	ASSERT_EQ(0, side_open(pci[1], &b));
	ASSERT_EQ(0, bystander_start(pci[1], &y));
	ASSERT_EQ(0, query(b.fd, DRM_SPYRE_QUERY_DEVICE, &before, sizeof(before)));
	ASSERT_EQ(0, give(&a, b.fd, &h, &hmva, &buf));
	ASSERT_EQ(0, copier_start(&copier, &b, hmva));
	printf("pull\n");
	fflush(stdout);
	/* Nothing answers any more, or the driver was faster. */
	EXPECT_TRUE(copier_end(&copier) == SPYRE_ERR_HW || copier.ret == SPYRE_ERR_FAULT);
	EXPECT_TRUE(bystander_well(&y));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", pci[0]);
	for (i = 0; i < WAIT_MS && !access(path, F_OK); i++)
		usleep(1000);
	EXPECT_NE(0, access(path, F_OK));
	ASSERT_EQ(0, reset(&b.q));
	EXPECT_EQ(SPYRE_ERR_FAULT, run(&b.q, SPYRE_CB_DMAI, b.dmva, hmva, SIZE));
	EXPECT_EQ(-ENODEV, vm_map(b.fd, h, 0, 0, &hmva));
	ASSERT_EQ(0, bo_close(b.fd, h));
	EXPECT_EQ(-ENODEV, import_fd(b.fd, buf, &h));
	EXPECT_TRUE(bystander_well(&y));
	ASSERT_EQ(0, query(b.fd, DRM_SPYRE_QUERY_DEVICE, &after, sizeof(after)));
	EXPECT_EQ(before.reset_generation, after.reset_generation);
}

TEST_HARNESS_MAIN
