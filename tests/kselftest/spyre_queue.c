// SPDX-License-Identifier: MIT
/*
 * Queues: control blocks that work, and everything a user can do wrong with a ring or a doorbell. Who
 * does wrong gets the stated error; the card and everybody else go on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "spyre_test.h"

#define SIZE	(4 * MB)
#define WAIT_MS	20000

FIXTURE(queue) {
	int fd;
	struct queue q;
	uint32_t host, dev;
	uint64_t hmva, dmva;
	uint8_t *p;
};

FIXTURE_SETUP(queue)
{
	self->fd = card_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &self->host));
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_DEVICE, &self->dev));
	self->p = bo_map(self->fd, self->host, SIZE, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->p);
	ASSERT_EQ(0, vm_map(self->fd, self->host, 0, 0, &self->hmva));
	ASSERT_EQ(0, vm_map(self->fd, self->dev, 0, 0, &self->dmva));
	ASSERT_EQ(0, queue_open(self->fd, 256, 1, &self->q));
}

FIXTURE_TEARDOWN(queue)
{
	munmap(self->p, SIZE);
	queue_unmap(&self->q);
	close(self->fd);
}

/* Someone else's queue still works: what every test below must leave behind. */
static int card_works(void)
{
	struct spyre_cb cb = cb_nop();
	struct queue q;
	int fd = card_open(), ret;

	if (fd < 0)
		return fd;
	ret = queue_open(fd, 64, 1, &q);
	if (!ret) {
		ret = queue_wait(&q, queue_submit(&q, &cb), WAIT_MS);
		queue_unmap(&q);
	}
	close(fd);
	return ret;
}

TEST_F(queue, nop)
{
	struct spyre_cb cb = cb_nop();
	uint32_t i;

	cb.cookie = 0x1234567890abcdef;
	i = queue_submit(&self->q, &cb);
	ASSERT_EQ(0, queue_wait(&self->q, i, WAIT_MS));
	EXPECT_EQ(i + 1, self->q.response[i].valid);
	EXPECT_EQ(SPYRE_OK, self->q.response[i].status);
	EXPECT_EQ(cb.cookie, self->q.response[i].cookie);
	EXPECT_EQ(SPYRE_QUEUE_ACTIVE, self->q.status->state);
}

TEST_F(queue, ring_wraps)
{
	struct spyre_cb cb = cb_nop();
	uint32_t i, last = 0;

	for (i = 0; i < 2000; i++)
		last = queue_submit(&self->q, &cb);
	ASSERT_EQ(0, queue_wait(&self->q, last, WAIT_MS));
	EXPECT_EQ(2000, self->q.status->done);
}

TEST_F(queue, every_ring_size)
{
	struct spyre_cb cb = cb_nop();
	struct queue q;
	uint32_t n;

	for (n = SPYRE_RING_MIN; n <= SPYRE_RING_MAX; n *= 2) {
		ASSERT_EQ(0, queue_open(self->fd, n, 0, &q));
		ASSERT_EQ(0, queue_wait(&q, queue_submit(&q, &cb), WAIT_MS));
		ASSERT_EQ(0, queue_close(&q));
	}
}

TEST_F(queue, copy_there_and_back)
{
	uint32_t *w = (uint32_t *)self->p, i;
	struct spyre_cb in = cb_dma(SPYRE_CB_DMAI, self->dmva, self->hmva, SIZE / 2);
	struct spyre_cb out = cb_dma(SPYRE_CB_DMAO, self->hmva + SIZE / 2, self->dmva, SIZE / 2);
	uint32_t last;

	for (i = 0; i < SIZE / 8; i++)
		w[i] = i * 2654435761u;
	queue_submit(&self->q, &in);
	last = queue_submit(&self->q, &out);
	ASSERT_EQ(0, queue_wait(&self->q, last, WAIT_MS));
	EXPECT_EQ(0, memcmp(self->p, self->p + SIZE / 2, SIZE / 2));
	EXPECT_EQ(SIZE / 2, self->q.response[last].bytes);
}

TEST_F(queue, fill)
{
	struct spyre_cb fill = cb_fill(self->dmva + 128, 4096, 0x1122334455667788);
	struct spyre_cb out = cb_dma(SPYRE_CB_DMAO, self->hmva, self->dmva, 8192);
	uint64_t *w = (uint64_t *)self->p;
	uint32_t i;

	queue_submit(&self->q, &fill);
	ASSERT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &out), WAIT_MS));
	for (i = 0; i < 1024; i++)
		ASSERT_EQ(i >= 16 && i < 16 + 512 ? 0x1122334455667788 : 0, w[i]);
}

TEST_F(queue, usage_and_fdinfo)
{
	struct spyre_cb in = cb_dma(SPYRE_CB_DMAI, self->dmva, self->hmva, SIZE);
	struct drm_spyre_usage u;
	char path[64], buf[4096];
	int i;

	ASSERT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &in), WAIT_MS));
	/* The page is refreshed every 100 ms at least. */
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, query(self->fd, DRM_SPYRE_QUERY_USAGE, &u, sizeof(u)));
		if (u.cbs)
			break;
		usleep(100000);
	}
	EXPECT_EQ(1, u.cbs);
	EXPECT_EQ(SIZE, u.bytes[1]);
	EXPECT_NE(0, u.busy[1]);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	ASSERT_EQ(0, read_file(path, buf, sizeof(buf)));
	EXPECT_NE(NULL, strstr(buf, "drm-driver:\tspyre"));
	EXPECT_NE(NULL, strstr(buf, "drm-engine-dmi:"));
	EXPECT_NE(NULL, strstr(buf, "drm-total-device:\t4096 KiB"));
}

TEST_F(queue, signal_wakes_wait)
{
	uint64_t i;

	for (i = 1; i <= 50; i++) {
		struct spyre_cb cb = cb_signal_host(self->hmva + 64, i);

		queue_submit(&self->q, &cb);
		ASSERT_EQ(0, wait_fence(self->fd, self->host, 64, i, after_ms(WAIT_MS)));
	}
	EXPECT_EQ(50, *(uint64_t *)(self->p + 64));
}

TEST_F(queue, wait_for_queue)
{
	struct spyre_cb cb = cb_nop();
	uint32_t i;

	cb.flags |= SPYRE_CB_F_INTERRUPT;
	for (i = 0; i < 20; i++) {
		queue_submit(&self->q, &cb);
		ASSERT_EQ(0, wait_queue(self->fd, self->q.id, i + 1, after_ms(WAIT_MS)));
	}
	EXPECT_EQ(-ETIME, wait_queue(self->fd, self->q.id, 21, after_ms(50)));
}

TEST_F(queue, parked_wait_is_released_by_cpu)
{
	struct spyre_cb wait = cb_wait_host(self->hmva + 8, 3);
	struct spyre_cb signal = cb_signal_host(self->hmva + 16, 1);
	volatile uint64_t *w = (uint64_t *)self->p;

	queue_submit(&self->q, &wait);
	queue_submit(&self->q, &signal);
	EXPECT_EQ(-ETIME, wait_fence(self->fd, self->host, 16, 1, after_ms(200)));
	EXPECT_EQ(1, self->q.status->parked);
	w[1] = 3;
	*self->q.doorbell = self->q.tail;
	EXPECT_EQ(0, wait_fence(self->fd, self->host, 16, 1, after_ms(WAIT_MS)));
}

TEST_F(queue, eventfd_fires)
{
	struct drm_spyre_wait_entry e = {
		.kind = DRM_SPYRE_WAIT_FENCE, .handle = self->host, .offset = 32, .value = 9,
	};
	struct drm_spyre_wait w = {
		.entries = (uintptr_t)&e, .count = 1, .flags = DRM_SPYRE_WAIT_EVENTFD,
		.eventfd = eventfd(0, EFD_CLOEXEC),
	};
	struct spyre_cb cb = cb_signal_host(self->hmva + 32, 9);
	struct pollfd pfd = { .fd = w.eventfd, .events = POLLIN };

	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	EXPECT_EQ(0, poll(&pfd, 1, 100));
	queue_submit(&self->q, &cb);
	EXPECT_EQ(1, poll(&pfd, 1, WAIT_MS));
	close(w.eventfd);
}

/* The same buffer in another context: its signal wakes us too. */
TEST_F(queue, kick)
{
	struct drm_spyre_queue_id id = { .queue = self->q.id };
	struct spyre_cb cb = cb_nop();

	/* Long enough for the card to sleep and want a doorbell. */
	ASSERT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	usleep(200000);
	self->q.ring[self->q.tail % self->q.entries] = cb;
	__atomic_store_n(&self->q.shadow->tail, ++self->q.tail, __ATOMIC_SEQ_CST);
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_KICK, &id));
	EXPECT_EQ(0, queue_wait(&self->q, self->q.tail - 1, WAIT_MS));
}

static int expect_error(struct queue *q, const struct spyre_cb *cb)
{
	return queue_wait(q, queue_submit(q, cb), WAIT_MS);
}

static int reset(struct queue *q)
{
	struct drm_spyre_queue_id id = { .queue = q->id };

	return call(q->fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id);
}

TEST_F(queue, bad_control_blocks)
{
	struct spyre_cb nop = cb_nop(), cb;
	struct spyre_cb bad[8];
	unsigned int i, n = 0;

	bad[n] = nop;
	bad[n++].type = 77;
	bad[n] = nop;
	bad[n++].flags = 0x8000;
	bad[n] = nop;
	bad[n++].reserved0 = 1;
	bad[n] = nop;
	bad[n++].type = SPYRE_CB_BATCH;
	bad[n] = cb_fill(self->dmva, 100, 0);
	n++;
	bad[n] = cb_dma(SPYRE_CB_DMAI, self->dmva, self->hmva, 128);
	bad[n++].u.dma.ndims = 9;
	for (i = 0; i < n; i++) {
		ASSERT_EQ(SPYRE_ERR_BAD_CB, expect_error(&self->q, &bad[i])) TH_LOG("case %u", i);
		EXPECT_EQ(SPYRE_QUEUE_ERROR, self->q.status->state);
		ASSERT_EQ(0, reset(&self->q));
		cb = cb_nop();
		ASSERT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	}
	EXPECT_EQ(0, card_works());
}

TEST_F(queue, faults)
{
	struct spyre_cb cb;
	struct drm_spyre_ras rec[8];
	struct drm_spyre_ras_read r = { .records = (uintptr_t)rec, .count = 8 };
	uint32_t i;

	/* Nothing is mapped there. */
	cb = cb_dma(SPYRE_CB_DMAI, 5 * SPYRE_SEGMENT_SIZE, self->hmva, 4096);
	i = queue_submit(&self->q, &cb);
	ASSERT_EQ(SPYRE_ERR_FAULT, queue_wait(&self->q, i, WAIT_MS));
	EXPECT_EQ(i + 1, self->q.response[i].valid);
	EXPECT_EQ(SPYRE_SYN_PAGE_FAULT, self->q.response[i].rb_hmierr_syndrome);
	EXPECT_EQ(5 * SPYRE_SEGMENT_SIZE, self->q.response[i].rb_hmierr_addr);
	EXPECT_EQ(-EIO, wait_queue(self->fd, self->q.id, i + 5, after_ms(WAIT_MS)));
	ASSERT_EQ(0, reset(&self->q));
	/* Host memory that is not bound: the ring's own addresses included. */
	cb = cb_dma(SPYRE_CB_DMAI, self->dmva, self->hmva + (1ull << 33), 4096);
	ASSERT_EQ(SPYRE_ERR_FAULT, expect_error(&self->q, &cb));
	ASSERT_EQ(0, reset(&self->q));
	/* The records are ours, and name our queue. */
	usleep(200000);
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_RAS_READ, &r));
	ASSERT_GE(r.count, 1);
	EXPECT_EQ(SPYRE_ERR_FAULT, rec[0].status);
	EXPECT_EQ(self->q.id, rec[0].queue);
	EXPECT_EQ(0, card_works());
}

TEST_F(queue, unaligned_device_address)
{
	struct spyre_cb cb = cb_dma(SPYRE_CB_DMAI, self->dmva + 64, self->hmva, 128);
	int status = expect_error(&self->q, &cb);

	EXPECT_TRUE(status == SPYRE_ERR_BAD_CB || status == SPYRE_ERR_FAULT);
	EXPECT_EQ(0, card_works());
}

TEST_F(queue, readonly_binding)
{
	struct spyre_cb cb;
	uint32_t dev, host;
	uint64_t dmva, hmva;

	ASSERT_EQ(0, bo_create(self->fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &dev));
	ASSERT_EQ(0, bo_create(self->fd, 8192, DRM_SPYRE_BO_HOST, &host));
	ASSERT_EQ(0, vm_map(self->fd, dev, DRM_SPYRE_VM_READONLY, 2, &dmva));
	ASSERT_EQ(0, vm_map(self->fd, host, DRM_SPYRE_VM_READONLY, 0, &hmva));
	cb = cb_fill(dmva, 128, 1);
	ASSERT_EQ(SPYRE_ERR_FAULT, expect_error(&self->q, &cb));
	ASSERT_EQ(0, reset(&self->q));
	cb = cb_dma(SPYRE_CB_DMAO, hmva, self->dmva, 128);
	ASSERT_EQ(SPYRE_ERR_FAULT, expect_error(&self->q, &cb));
	ASSERT_EQ(0, reset(&self->q));
	cb = cb_dma(SPYRE_CB_DMAI, self->dmva, hmva, 128);
	EXPECT_EQ(0, expect_error(&self->q, &cb));
}

/* No control block reaches status page or ring: whatever HMVA they have. */
TEST_F(queue, own_status_page_is_out_of_reach)
{
	struct spyre_cb cb;
	uint64_t addr;
	uint32_t gen = self->q.status->generation;

	for (addr = PAGE2M; addr < PAGE2M + 64 * 4096; addr += 4096) {
		int ret;

		if (addr >= self->hmva && addr < self->hmva + SIZE)
			continue;
		cb = cb_dma(SPYRE_CB_DMAO, addr, self->dmva, 64);
		ret = expect_error(&self->q, &cb);
		ASSERT_EQ(SPYRE_ERR_FAULT, ret) TH_LOG("HMVA 0x%llx", (unsigned long long)addr);
		ASSERT_EQ(0, reset(&self->q));
	}
	EXPECT_EQ(gen, self->q.status->generation);
}

TEST_F(queue, unbind_takes_effect)
{
	struct spyre_cb cb = cb_dma(SPYRE_CB_DMAI, self->dmva, self->hmva, 4096);

	ASSERT_EQ(0, expect_error(&self->q, &cb));
	ASSERT_EQ(0, vm_unmap(self->fd, self->dmva, 0));
	ASSERT_EQ(SPYRE_ERR_FAULT, expect_error(&self->q, &cb));
	ASSERT_EQ(0, reset(&self->q));
	ASSERT_EQ(0, vm_map(self->fd, self->dev, DRM_SPYRE_VM_FIXED, 0, &self->dmva));
	EXPECT_EQ(0, expect_error(&self->q, &cb));
	ASSERT_EQ(0, vm_unmap(self->fd, self->hmva, 1));
	EXPECT_EQ(SPYRE_ERR_FAULT, expect_error(&self->q, &cb));
}

/* Two contexts use the same addresses for different memory. */
TEST_F(queue, isolation)
{
	struct spyre_cb cb;
	int other = card_open();
	uint32_t dev, host;
	uint64_t dmva = self->dmva, hmva, *p;
	struct queue q;

	ASSERT_GE(other, 0);
	ASSERT_EQ(0, bo_create(other, SIZE, DRM_SPYRE_BO_DEVICE, &dev));
	ASSERT_EQ(0, bo_create(other, SIZE, DRM_SPYRE_BO_HOST, &host));
	ASSERT_EQ(0, vm_map(other, dev, DRM_SPYRE_VM_FIXED, 0, &dmva));
	ASSERT_EQ(0, vm_map(other, host, 0, 0, &hmva));
	p = bo_map(other, host, SIZE, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, queue_open(other, 64, 1, &q));
	cb = cb_fill(self->dmva, SIZE, 0xaaaa);
	ASSERT_EQ(0, expect_error(&self->q, &cb));
	cb = cb_dma(SPYRE_CB_DMAO, hmva, dmva, SIZE);
	ASSERT_EQ(0, expect_error(&q, &cb));
	EXPECT_EQ(0, p[0]);
	EXPECT_EQ(0, p[SIZE / 8 - 1]);
	/* One's fault is not the other's. */
	cb = cb_fill(6 * SPYRE_SEGMENT_SIZE, 128, 1);
	ASSERT_EQ(SPYRE_ERR_FAULT, expect_error(&q, &cb));
	cb = cb_nop();
	EXPECT_EQ(0, expect_error(&self->q, &cb));
	munmap(p, SIZE);
	queue_unmap(&q);
	close(other);
}

TEST_F(queue, noise)
{
	unsigned int seed = 4711, round, i, j;
	uint32_t *w;
	int ret;

	for (round = 0; round < 40; round++) {
		for (i = 0; i < self->q.entries; i++) {
			w = (uint32_t *)&self->q.ring[i];
			for (j = 0; j < 32; j++)
				w[j] = rand_r(&seed) ^ (uint32_t)rand_r(&seed) << 16;
			/* Half of them look better than they are. */
			if (round & 1) {
				self->q.ring[i].type %= SPYRE_CB_TYPES;
				self->q.ring[i].flags &= SPYRE_CB_F_ALL_TYPES;
				self->q.ring[i].reserved0 = 0;
				self->q.ring[i].reserved1 = 0;
			}
		}
		self->q.tail += self->q.entries / 2;
		__atomic_store_n(&self->q.shadow->tail, self->q.tail, __ATOMIC_SEQ_CST);
		*self->q.doorbell = self->q.tail;
		ret = queue_wait(&self->q, self->q.tail - 1, WAIT_MS);
		ASSERT_NE(-ETIME, ret);
		ASSERT_EQ(0, reset(&self->q));
	}
	EXPECT_EQ(0, card_works());
}

TEST_F(queue, tail_jumps)
{
	struct spyre_cb cb = cb_nop();

	__atomic_store_n(&self->q.shadow->tail, self->q.entries + 1, __ATOMIC_SEQ_CST);
	*self->q.doorbell = self->q.entries + 1;
	ASSERT_EQ(SPYRE_ERR_QUEUE, queue_wait(&self->q, self->q.entries, WAIT_MS));
	__atomic_store_n(&self->q.shadow->tail, 0, __ATOMIC_SEQ_CST);
	ASSERT_EQ(0, reset(&self->q));
	EXPECT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	EXPECT_EQ(0, card_works());
}

TEST_F(queue, doorbell_noise)
{
	volatile uint8_t *page = (volatile uint8_t *)self->q.doorbell;
	struct spyre_cb cb = cb_nop();
	unsigned int i;

	for (i = 0; i < 4096; i += 4)
		*(volatile uint32_t *)(page + i) = i * 0x01010101u;
	page[1] = 1;
	*(volatile uint16_t *)(page + 2) = 2;
	*(volatile uint64_t *)(page + 8) = 3;
	for (i = 0; i < 5000; i++)
		*self->q.doorbell = 0;
	EXPECT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	EXPECT_EQ(0, card_works());
}

/* The doorbell page of a destroyed queue is nobody's: writes go nowhere, no SIGBUS. */
TEST_F(queue, stale_doorbell)
{
	struct drm_spyre_queue_id id;
	struct spyre_cb cb = cb_nop();
	struct queue a, b;

	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &a));
	id.queue = a.id;
	id.pad = 0;
	*a.doorbell = 0;
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id));
	EXPECT_EQ(-ENOENT, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id));
	/* The next queue gets the same page. */
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &b));
	a.doorbell[0] = 1000;
	EXPECT_EQ(1000, a.doorbell[0]);	/* a page of our own, not the card's */
	EXPECT_EQ(0, b.doorbell[0]);
	EXPECT_EQ(0, queue_wait(&b, queue_submit(&b, &cb), WAIT_MS));
	/* Ring and status stay readable. */
	EXPECT_EQ(0, a.ring[0].type);
	EXPECT_EQ(0, a.status->done);
	queue_unmap(&a);
	EXPECT_EQ(0, queue_close(&b));
}

TEST_F(queue, destroy_while_busy_or_parked)
{
	struct spyre_cb wait = cb_wait_host(self->hmva, 1);
	struct spyre_cb in = cb_dma(SPYRE_CB_DMAI, self->dmva, self->hmva, SIZE);
	struct queue q;
	int i, j;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, queue_open(self->fd, 64, 1, &q));
		if (i & 1)
			queue_submit(&q, &wait);
		for (j = 0; j < 10; j++)
			queue_submit(&q, &in);
		ASSERT_EQ(0, queue_close(&q));
	}
	EXPECT_EQ(0, card_works());
}

TEST_F(queue, wait_ends_with_the_queue)
{
	struct drm_spyre_queue_id id = { .queue = self->q.id };
	int fd = self->fd, status;
	pid_t pid;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(wait_queue(fd, id.queue, 100, after_ms(WAIT_MS)) == -ENOENT ? 0 : 1);
	usleep(200000);
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(queue, many_queues)
{
	struct drm_spyre_limits before = limits(self->fd), l;
	struct spyre_cb cb = cb_nop();
	struct queue q[100];
	int i;

	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, queue_open(self->fd, 64, i & 3, &q[i]));
	for (i = 0; i < 100; i++)
		queue_submit(&q[i], &cb);
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, queue_wait(&q[i], 0, WAIT_MS));
	l = limits(self->fd);
	EXPECT_EQ(before.queues_used + 100, l.queues_used);
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, queue_close(&q[i]));
	EXPECT_EQ(before.queues_used, limits(self->fd).queues_used);
}

/* Mappings do not go to a child; the descriptor does. */
TEST_F(queue, fork_has_no_mappings)
{
	struct drm_spyre_queue_id id = { .queue = self->q.id };
	volatile uint32_t *db = self->q.doorbell;
	int fd = self->fd, status;
	pid_t pid;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		*db = 1;
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGSEGV, WTERMSIG(status));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(call(fd, DRM_IOCTL_SPYRE_QUEUE_KICK, &id) ? 1 : 0);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
