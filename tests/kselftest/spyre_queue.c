// SPDX-License-Identifier: MIT
/*
 * Queues: control blocks that work, and everything a user can do wrong with a ring or a doorbell. Who
 * does wrong gets the stated error; the card and everybody else go on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "spyre_test.h"

#define SIZE	(4 * MB)

FIXTURE(queue) {
	int fd;
	struct queue q;
	uint32_t host, dev;
	uint64_t hmva, dmva;
	uint8_t *p;
	struct baseline base;
};

FIXTURE_SETUP(queue)
{
	baseline_take(&self->base);
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

/* Whatever the test left went with its process, mappings included. */
FIXTURE_TEARDOWN_PARENT(queue)
{
	EXPECT_EQ(0, back_to_baseline(&self->base));
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

/* Microwatts, millidegrees, or -errno; by the name of hwmon's attribute. */
static long hwmon(const char *name)
{
	char path[256], buf[64];
	glob_t g;
	int ret;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/hwmon/hwmon*/%s", card_pci(), name);
	if (glob(path, 0, NULL, &g))
		return -ENOENT;
	ret = read_file(g.gl_pathv[0], buf, sizeof(buf));
	globfree(&g);
	return ret ? ret : atol(buf);
}

TEST_F(queue, hwmon)
{
	struct spyre_cb in = cb_dma(SPYRE_CB_DMAI, self->dmva, self->hmva, SIZE);
	long idle, busy = 0, temp = hwmon("temp1_input");
	int i;

	EXPECT_GT(temp, 10000);
	EXPECT_LT(temp, hwmon("temp1_max"));
	EXPECT_LT(hwmon("temp1_max"), hwmon("temp1_crit"));
	EXPECT_EQ(0, hwmon("temp1_max_alarm"));
	idle = hwmon("power1_input");
	EXPECT_GT(idle, 0);
	EXPECT_LT(idle, hwmon("power1_max"));
	/* Work costs power. A reading is at most 100 ms old. */
	for (i = 0; i < 100 && busy <= idle; i++) {
		int64_t end = after_ms(120);

		while (after_ms(0) < end)
			queue_submit(&self->q, &in);
		busy = hwmon("power1_input");
	}
	EXPECT_GT(busy, idle);
	EXPECT_LE(busy, hwmon("power1_max"));
	ASSERT_EQ(0, queue_wait(&self->q, self->q.tail - 1, WAIT_MS));
}

#define TRACING "/sys/kernel/tracing/"

TEST_F(queue, tracepoints)
{
	static const char * const events[] = {
		"spyre_bind:", "spyre_unbind:", "spyre_queue_create:", "spyre_queue_destroy:",
		"spyre_queue_event:", "spyre_wait_begin:", "spyre_wait_end:", "spyre_mbox_call:",
		"spyre_mbox_event:", "spyre_ras:",
	};
	struct spyre_cb cb = cb_signal_host(self->hmva + 64, 1);
	static char trace[1 << 20];
	size_t n = 0;
	ssize_t got;
	unsigned int i;
	struct queue q;
	int fd;

	mount("tracefs", TRACING, "tracefs", 0, NULL);
	ASSERT_EQ(0, write_file(TRACING "trace", "\n"));
	ASSERT_EQ(0, write_file(TRACING "events/spyre/enable", "1"));
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &q));
	usleep(100000);
	/* A parked queue: the wait begins before the signal. */
	{
		struct spyre_cb wait = cb_wait_host(self->hmva + 8, 1);

		queue_submit(&q, &wait);
		queue_submit(&q, &cb);
		EXPECT_EQ(-ETIME, wait_fence(self->fd, self->host, 64, 1, after_ms(100)));
		*(volatile uint64_t *)(self->p + 8) = 1;
		*q.doorbell = q.tail;
		EXPECT_EQ(0, wait_fence(self->fd, self->host, 64, 1, after_ms(WAIT_MS)));
	}
	ASSERT_EQ(0, vm_unmap(self->fd, self->dmva, 0));
	ASSERT_EQ(0, vm_map(self->fd, self->dev, 0, 1, &self->dmva));
	cb = cb_fill(6 * SPYRE_SEGMENT_SIZE, 128, 0);
	ASSERT_EQ(SPYRE_ERR_FAULT, queue_wait(&q, queue_submit(&q, &cb), WAIT_MS));
	ASSERT_EQ(0, queue_close(&q));
	usleep(200000);
	ASSERT_EQ(0, write_file(TRACING "events/spyre/enable", "0"));
	fd = open(TRACING "trace", O_RDONLY);
	ASSERT_GE(fd, 0);
	while (n < sizeof(trace) - 1 && (got = read(fd, trace + n, sizeof(trace) - 1 - n)) > 0)
		n += got;
	close(fd);
	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		EXPECT_NE(NULL, strstr(trace, events[i])) TH_LOG("%s", events[i]);
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

/* What waits for other words of a buffer does not hold up who waits for one. */
TEST_F(queue, many_eventfd_waits)
{
	struct drm_spyre_wait_entry e[64];
	struct drm_spyre_wait w = {
		.entries = (uintptr_t)e, .count = 64, .flags = DRM_SPYRE_WAIT_EVENTFD,
		.eventfd = eventfd(0, EFD_CLOEXEC),
	};
	int64_t least = INT64_MAX;
	struct spyre_cb cb;
	int i;

	for (i = 0; i < 64; i++)
		e[i] = (struct drm_spyre_wait_entry){
			.kind = DRM_SPYRE_WAIT_FENCE, .handle = self->host, .offset = 32, .value = 1,
		};
	for (i = 0; i < 1024; i++)
		ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_WAIT, &w));
	for (i = 1; i <= 10; i++) {
		int64_t begin = after_ms(0), took;

		cb = cb_signal_host(self->hmva + 40, i);
		queue_submit(&self->q, &cb);
		ASSERT_EQ(0, wait_fence(self->fd, self->host, 40, i, after_ms(WAIT_MS)));
		took = (after_ms(0) - begin) / 1000000;
		if (took < least)
			least = took;
	}
	EXPECT_GE(150 * slower(), least);
	close(w.eventfd);
}

/* A tail that nobody rang for is seen when the kernel rings. */
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
	/* Host memory that is not bound. */
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

	uint32_t i = queue_submit(&self->q, &cb);

	EXPECT_EQ(SPYRE_ERR_FAULT, queue_wait(&self->q, i, WAIT_MS));
	EXPECT_EQ(SPYRE_SYN_UNALIGNED, self->q.response[i].rb_hmierr_syndrome);
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

/*
 * No control block reaches status page or ring. Their addresses are not told, but they lie between what was
 * bound before them and what is bound after them.
 */
TEST_F(queue, own_status_page_is_out_of_reach)
{
	uint64_t own = ((self->q.ring_size + self->q.status_size) + 4095) & ~4095ull;
	uint64_t addr, behind, tried = 0;
	uint32_t gen = self->q.status->generation, h;
	struct spyre_cb cb;

	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &behind));
	/* The queue's pages fill all between the two buffers. */
	ASSERT_EQ(self->hmva + SIZE + own, behind);
	for (addr = self->hmva + SIZE; addr < behind; addr += 4096, tried += 4096) {
		int ret;

		cb = cb_dma(SPYRE_CB_DMAO, addr, self->dmva, 64);
		ret = expect_error(&self->q, &cb);
		ASSERT_EQ(SPYRE_ERR_FAULT, ret) TH_LOG("HMVA 0x%llx", (unsigned long long)addr);
		ASSERT_EQ(0, reset(&self->q));
		cb = cb_dma(SPYRE_CB_DMAI, self->dmva, addr, 64);
		ret = expect_error(&self->q, &cb);
		ASSERT_EQ(SPYRE_ERR_FAULT, ret) TH_LOG("HMVA 0x%llx", (unsigned long long)addr);
		ASSERT_EQ(0, reset(&self->q));
	}
	EXPECT_EQ(own, tried);
	EXPECT_EQ(gen, self->q.status->generation);
	cb = cb_dma(SPYRE_CB_DMAO, behind, self->dmva, 64);
	EXPECT_EQ(0, expect_error(&self->q, &cb));
}

/* Jobs: one that works, and those that do wrong, each with its status. */
TEST_F(queue, compute)
{
	uint64_t at[2] = { self->dmva, self->dmva + 128 };
	struct spyre_cb cb, copy;
	uint32_t i;

	for (i = 0; i < 128; i++)
		self->p[i] = i + 1;
	copy = cb_dma(SPYRE_CB_DMAI, at[0], self->hmva, 128);
	ASSERT_EQ(0, expect_error(&self->q, &copy));
	ASSERT_EQ(0, job_load(self->fd, &self->q, JOB_COPY, at, &cb));
	i = queue_submit(&self->q, &cb);
	ASSERT_EQ(0, queue_wait(&self->q, i, WAIT_MS));
	EXPECT_EQ(SPYRE_OK, self->q.response[i].status);
	EXPECT_NE(0, self->q.response[i].cycles);
	copy = cb_dma(SPYRE_CB_DMAO, self->hmva + 4096, at[1], 128);
	ASSERT_EQ(0, expect_error(&self->q, &copy));
	EXPECT_EQ(0, memcmp(self->p, self->p + 4096, 128));
	/* Not as many symbols as it was built for. */
	cb.u.compute.nsymbols = 1;
	ASSERT_EQ(SPYRE_ERR_SYMBOLS, expect_error(&self->q, &cb));
	ASSERT_EQ(0, reset(&self->q));
	ASSERT_EQ(0, job_load(self->fd, &self->q, JOB_DEADLOCK, NULL, &cb));
	ASSERT_EQ(SPYRE_ERR_DEADLOCK, expect_error(&self->q, &cb));
	ASSERT_EQ(0, reset(&self->q));
	ASSERT_EQ(0, job_load(self->fd, &self->q, JOB_ENDLESS, NULL, &cb));
	cb.timeout = SPYRE_SOC_HZ / 1000;
	ASSERT_EQ(SPYRE_ERR_TIMEOUT, expect_error(&self->q, &cb));
	ASSERT_EQ(0, reset(&self->q));
	EXPECT_EQ(0, card_works());
}

/* A program writes where its context may only read. */
#define DEADLOCK	"RAS::CBRB::Deadlock"
#define SOFT_FAIL	"RAS::CBRB::ControlBlockSoftFail"

static const char * const error_kinds[] = { "correctable-errors", "uncorrectable-errors", "job-errors" };

static int of_the_card(void)
{
	return errors_counted(error_kinds[0], NULL) + errors_counted(error_kinds[1], NULL);
}

/* Each counts once, as a program's error and as nothing else. */
TEST_F(queue, errors_are_counted)
{
	int deadlocks = errors_counted("job-errors", DEADLOCK), faults = errors_counted("job-errors", SOFT_FAIL);
	int others = of_the_card(), i;
	struct spyre_cb job, fault = cb_fill(5 * SPYRE_SEGMENT_SIZE, 4096, 1);

	ASSERT_GE(deadlocks, 0);
	ASSERT_GE(faults, 0);
	ASSERT_GE(others, 0);
	ASSERT_EQ(0, job_load(self->fd, &self->q, JOB_DEADLOCK, NULL, &job));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(SPYRE_ERR_DEADLOCK, expect_error(&self->q, &job));
		ASSERT_EQ(0, reset(&self->q));
	}
	ASSERT_EQ(SPYRE_ERR_FAULT, expect_error(&self->q, &fault));
	ASSERT_EQ(0, reset(&self->q));
	/* Records of the card come in order, so the last one says that all are here. */
	for (i = 0; i < WAIT_MS / 10 && errors_counted("job-errors", SOFT_FAIL) == faults; i++)
		usleep(10000);
	EXPECT_EQ(deadlocks + 2, errors_counted("job-errors", DEADLOCK));
	EXPECT_EQ(faults + 1, errors_counted("job-errors", SOFT_FAIL));
	EXPECT_EQ(others, of_the_card());
}

static int value_of(const struct ras_counter *c, int n, const char *name)
{
	while (n--)
		if (!strcmp(c[n].name, name))
			return c[n].value;
	return -1;
}

/* The kernel's counters are the driver's, each under the kind it can be of. */
TEST_F(queue, errors_in_netlink)
{
	int deadlocks = errors_counted("job-errors", DEADLOCK), n, i, k;
	struct ras_counter c[32], one;
	struct spyre_cb job;
	int64_t node;

	if (ras_node(error_kinds[0]) == -EOPNOTSUPP)
		SKIP(return, "this kernel has no netlink family drm-ras");
	ASSERT_EQ(0, job_load(self->fd, &self->q, JOB_DEADLOCK, NULL, &job));
	ASSERT_EQ(SPYRE_ERR_DEADLOCK, expect_error(&self->q, &job));
	for (i = 0; i < WAIT_MS / 10 && errors_counted("job-errors", DEADLOCK) == deadlocks; i++)
		usleep(10000);
	for (k = 0; k < 3; k++) {
		node = ras_node(error_kinds[k]);
		ASSERT_GE(node, 0);
		n = ras_counters(node, c, 32);
		ASSERT_GT(n, 0);
		ASSERT_LE(n, 32);
		for (i = 0; i < n; i++) {
			EXPECT_EQ(errors_counted(error_kinds[k], c[i].name), c[i].value);
			/* By itself it is the same. */
			ASSERT_EQ(0, ras_counter(node, c[i].id, &one));
			EXPECT_EQ(c[i].id, one.id);
			EXPECT_EQ(c[i].value, one.value);
			EXPECT_STREQ(c[i].name, one.name);
		}
		EXPECT_EQ(k == 2 ? deadlocks + 1 : -1, value_of(c, n, DEADLOCK));
		EXPECT_EQ(k == 0, value_of(c, n, "RAS::MEM::Corrected") >= 0);
		EXPECT_EQ(k == 1, value_of(c, n, "RAS::MEM::Uncorrected") >= 0);
	}
}

TEST_F(queue, program_and_readonly_binding)
{
	uint64_t at[2] = { self->dmva };
	struct spyre_cb cb;
	uint32_t dev, i;

	ASSERT_EQ(0, bo_create(self->fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &dev));
	ASSERT_EQ(0, vm_map(self->fd, dev, DRM_SPYRE_VM_READONLY, 2, &at[1]));
	ASSERT_EQ(0, job_load(self->fd, &self->q, JOB_COPY, at, &cb));
	i = queue_submit(&self->q, &cb);
	ASSERT_EQ(SPYRE_ERR_FAULT, queue_wait(&self->q, i, WAIT_MS));
	EXPECT_EQ(SPYRE_SYN_PERMISSION, self->q.response[i].rb_hmierr_syndrome);
	EXPECT_EQ(at[1], self->q.response[i].rb_hmierr_addr);
	ASSERT_EQ(0, reset(&self->q));
	/* The other way round it may. */
	at[0] = at[1];
	at[1] = self->dmva;
	ASSERT_EQ(0, job_load(self->fd, &self->q, JOB_COPY, at, &cb));
	EXPECT_EQ(0, expect_error(&self->q, &cb));
}

/* Ids and addresses that are real, of somebody else. */
TEST_F(queue, foreign_ids)
{
	struct drm_spyre_queue_id id = { .queue = self->q.id };
	struct spyre_cb cb = cb_nop();
	int other = card_open();
	uint32_t h;
	uint64_t addr;

	ASSERT_GE(other, 0);
	/* With a context, which has neither queues nor this binding. */
	ASSERT_EQ(0, bo_create(other, 4096, DRM_SPYRE_BO_DEVICE, &h));
	ASSERT_EQ(0, vm_map(other, h, 0, 5, &addr));
	EXPECT_EQ(-ENOENT, call(other, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id));
	EXPECT_EQ(-ENOENT, call(other, DRM_IOCTL_SPYRE_QUEUE_RESET, &id));
	EXPECT_EQ(-ENOENT, call(other, DRM_IOCTL_SPYRE_QUEUE_KICK, &id));
	EXPECT_EQ(-ENOENT, wait_queue(other, id.queue, 0, 0));
	EXPECT_EQ(-ENOENT, vm_unmap(other, self->dmva, 0));
	EXPECT_EQ(-ENOENT, vm_unmap(other, self->hmva, 1));
	cb = cb_dma(SPYRE_CB_DMAI, self->dmva, self->hmva, SIZE);
	EXPECT_EQ(0, expect_error(&self->q, &cb));
	close(other);
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

static int64_t thread_cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/*
 * One context binds more pieces of host memory than a VFIO container has mappings (65535): address
 * space and page tables alone limit them. The last works, and all go with the file.
 */
TEST_F_TIMEOUT(queue, many_bindings, 180)
{
	struct drm_spyre_wait wait = { .count = 64 };
	struct drm_spyre_wait_entry e[64];
	struct baseline before;
	uint64_t hmva = 0, *p;
	struct spyre_cb cb;
	struct queue q;
	int64_t used;
	uint32_t h, i;
	int other;

	baseline_take(&before);
	other = card_open();
	ASSERT_GE(other, 0);
	ASSERT_EQ(0, bo_create(other, 4096, DRM_SPYRE_BO_HOST, &h));
	for (i = 0; i < 70000; i++)
		ASSERT_EQ(0, vm_map(other, h, 0, 0, &hmva)) TH_LOG("binding %u", i);
	p = bo_map(other, h, 4096, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, queue_open(other, 64, 1, &q));
	cb = cb_signal_host(hmva + 8, 0x1234);
	ASSERT_EQ(0, queue_wait(&q, queue_submit(&q, &cb), WAIT_MS));
	EXPECT_EQ(0x1234, p[1]);
	/* Nor do they make a wait dear: others share the lock it looks for contexts under. */
	for (i = 0; i < 64; i++)
		e[i] = (struct drm_spyre_wait_entry){ .kind = DRM_SPYRE_WAIT_FENCE, .handle = h, .value = 1 };
	wait.entries = (uintptr_t)e;
	wait.timeout_ns = after_ms(1);
	used = thread_cpu_ms();
	EXPECT_EQ(-ETIME, call(other, DRM_IOCTL_SPYRE_WAIT, &wait));
	EXPECT_GE(300 * slower(), thread_cpu_ms() - used);
	munmap(p, 4096);
	queue_unmap(&q);
	close(other);
	EXPECT_EQ(0, back_to_baseline(&before));
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
