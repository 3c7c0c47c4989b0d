// SPDX-License-Identifier: MIT
/*
 * Firmware: images that are bad in every way the boot ROM tells apart, and firmware that dies, hangs or
 * loses things while it works.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/userfaultfd.h>

#include <drm.h>

#include "kselftest_harness.h"

#include <spyre/mcu.h>

#include "../dmabuf.h"
#include "sha256.h"
#include "spyre_test.h"

#define PARAM	"/sys/module/spyre/parameters/"

/* Where the kernel looks for firmware. */
static void firmware_folder(char *path, size_t size)
{
	if (read_file("/sys/module/firmware_class/parameters/path", path, size) || path[0] == '\n' ||
	    !path[0])
		snprintf(path, size, "/lib/firmware");
	path[strcspn(path, "\n")] = 0;
}

static uint8_t *load_image(size_t *size)
{
	char path[512];
	uint8_t *buf = malloc(1 << 20);
	ssize_t n;
	int fd;

	firmware_folder(path, sizeof(path) - 32);
	strcat(path, "/spyre/spyre-dd2-1.fw");
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return NULL;
	n = read(fd, buf, 1 << 20);
	close(fd);
	*size = n;
	return n > (ssize_t)SPYRE_FW_HEADER_SIZE ? buf : NULL;
}

static int save_image(const uint8_t *buf, size_t size)
{
	char path[512];
	int fd;
	ssize_t n;

	firmware_folder(path, sizeof(path) - 32);
	strcat(path, "/spyre/test.fw");
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		return -errno;
	n = write(fd, buf, size);
	close(fd);
	return n == (ssize_t)size ? 0 : -EIO;
}

FIXTURE(image) {
	struct baseline base;
	uint8_t *buf;
	size_t size;
};

FIXTURE_SETUP(image)
{
	baseline_take(&self->base);
	self->buf = load_image(&self->size);
	ASSERT_NE(NULL, self->buf);
	ASSERT_EQ(0, driver_file("unbind"));
	ASSERT_EQ(0, write_file(PARAM "firmware", "spyre/test.fw"));
	log_mark();
}

FIXTURE_TEARDOWN(image)
{
	EXPECT_EQ(0, write_file(PARAM "firmware", "spyre/spyre-dd2-1.fw"));
	/* A card that refused an image takes the right one. */
	EXPECT_EQ(0, driver_file("bind"));
	EXPECT_EQ(0, card_works());
	EXPECT_EQ(0, back_to_baseline(&self->base));
	free(self->buf);
}

static struct spyre_fw_header *header(uint8_t *buf)
{
	return (struct spyre_fw_header *)buf;
}

/* The digest is right again after a change. */
static void sign(uint8_t *buf, size_t size)
{
	struct sha256 s;

	memset(header(buf)->digest, 0, sizeof(header(buf)->digest));
	sha256_init(&s);
	sha256_update(&s, buf, size);
	sha256_final(&s, header(buf)->digest);
}

TEST_F(image, corrupt_body)
{
	self->buf[self->size - 100] ^= 1;
	ASSERT_EQ(0, save_image(self->buf, self->size));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("is corrupt: digest differs"));
}

TEST_F(image, corrupt_magic)
{
	header(self->buf)->magic ^= 1;
	ASSERT_EQ(0, save_image(self->buf, self->size));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("is corrupt: no firmware image"));
}

TEST_F(image, corrupt_header)
{
	header(self->buf)->entry = 3;
	sign(self->buf, self->size);
	ASSERT_EQ(0, save_image(self->buf, self->size));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("is corrupt: bad header"));
}

TEST_F(image, truncated)
{
	ASSERT_EQ(0, save_image(self->buf, self->size - 4));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("is truncated"));
}

TEST_F(image, truncated_in_the_header)
{
	ASSERT_EQ(0, save_image(self->buf, 100));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("is truncated"));
}

TEST_F(image, too_large)
{
	uint8_t *big = calloc(1, 2 << 20);

	memcpy(big, self->buf, self->size);
	ASSERT_EQ(0, save_image(big, 2 << 20));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("is corrupt"));
	free(big);
}

TEST_F(image, too_old)
{
	header(self->buf)->hw_major = SPYRE_HWVER_MAJOR - 1;
	sign(self->buf, self->size);
	ASSERT_EQ(0, save_image(self->buf, self->size));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("is too old for this card"));
}

TEST_F(image, too_new)
{
	header(self->buf)->hw_major = SPYRE_HWVER_MAJOR + 1;
	sign(self->buf, self->size);
	ASSERT_EQ(0, save_image(self->buf, self->size));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("is too new for this card"));
}

/* Instructions of the management core: li rd, value as two of them; sw rs2, offset(rs1); a loop of one. */
static uint32_t *put_li(uint32_t *at, unsigned int rd, uint32_t value)
{
	uint32_t low = value & 0xfff;

	*at++ = ((value + 0x800) & 0xfffff000) | rd << 7 | 0x37;
	*at++ = low << 20 | rd << 15 | rd << 7 | 0x13;
	return at;
}

static uint32_t *put_reg(uint32_t *at, uint32_t reg, uint32_t value)
{
	at = put_li(at, 5, SPYRE_MCU_MMIO_BASE + reg);
	at = put_li(at, 6, value);
	*at++ = 6 << 20 | 5 << 15 | 2 << 12 | 0x23;
	return at;
}

/* Firmware that says it speaks this protocol, goes online, then into @state, and does nothing more. */
static int save_stub(uint8_t *image, uint32_t proto, uint32_t state)
{
	uint32_t *body = (uint32_t *)(image + SPYRE_FW_HEADER_SIZE), *at = body;
	size_t size;

	at = put_reg(at, MCU_FW_VERSION, proto);
	at = put_reg(at, MCU_STATE, SPYRE_STATE_ONLINE);
	if (state != SPYRE_STATE_ONLINE) {
		/* Long enough for the driver to have sent its first command. */
		at = put_li(at, 7, 100 * 1000 * 1000);
		*at++ = 0xfff38393;	/* addi x7, x7, -1 */
		*at++ = 0xfe039ee3;	/* bnez x7, -4 */
		at = put_reg(at, MCU_STATE, state);
	}
	*at++ = 0x6f;			/* j . */
	size = SPYRE_FW_HEADER_SIZE + 4 * (at - body);
	header(image)->image_size = 4 * (at - body);
	header(image)->load_addr = SPYRE_MCU_RAM_BASE;
	header(image)->entry = SPYRE_MCU_RAM_BASE;
	sign(image, size);
	return save_image(image, size);
}

/*
 * The first command meets its deadline and asks for a restart, while the driver is about to give the card
 * up: nothing of that is left behind.
 */
TEST_F_TIMEOUT(image, online_and_then_silent, 120)
{
	int i;

	ASSERT_EQ(0, write_file(PARAM "mbox_timeout_ms", "300"));
	ASSERT_EQ(0, save_stub(self->buf, SPYRE_PROTO_MAJOR << 16, SPYRE_STATE_ONLINE));
	for (i = 0; i < 5; i++)
		EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("did not answer command"));
	ASSERT_EQ(0, write_file(PARAM "mbox_timeout_ms", "3000"));
}

TEST_F_TIMEOUT(image, online_and_then_in_error, 120)
{
	ASSERT_EQ(0, write_file(PARAM "mbox_timeout_ms", "300"));
	ASSERT_EQ(0, save_stub(self->buf, SPYRE_PROTO_MAJOR << 16, SPYRE_STATE_IN_ERROR));
	EXPECT_NE(0, driver_file("bind"));
	ASSERT_EQ(0, write_file(PARAM "mbox_timeout_ms", "3000"));
}

TEST_F(image, protocol_too_old)
{
	ASSERT_EQ(0, save_stub(self->buf, (SPYRE_PROTO_MAJOR - 1) << 16, SPYRE_STATE_ONLINE));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("firmware is too old for this driver"));
}

TEST_F(image, protocol_too_new)
{
	ASSERT_EQ(0, save_stub(self->buf, (SPYRE_PROTO_MAJOR + 1) << 16, SPYRE_STATE_ONLINE));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("firmware is too new for this driver"));
}

/* One that only knows more is taken: what is wrong with this one is that it does nothing. */
TEST_F(image, protocol_newer_minor)
{
	ASSERT_EQ(0, write_file(PARAM "mbox_timeout_ms", "300"));
	ASSERT_EQ(0, save_stub(self->buf, SPYRE_PROTO_MAJOR << 16 | 0xffff, SPYRE_STATE_ONLINE));
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("did not answer command"));
	EXPECT_FALSE(log_has("too new"));
	ASSERT_EQ(0, write_file(PARAM "mbox_timeout_ms", "3000"));
}

TEST_F(image, missing)
{
	char path[512];

	firmware_folder(path, sizeof(path) - 32);
	strcat(path, "/spyre/test.fw");
	unlink(path);
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("not loaded"));
}

FIXTURE(fault) {
	struct baseline base;
	int fd;
	struct queue q;
	char inject[256];
};

FIXTURE_SETUP(fault)
{
	snprintf(self->inject, sizeof(self->inject), "%s", debugfs_path("inject"));
	if (access(self->inject, W_OK))
		SKIP(return, "the card does not allow fault injection");
	/* The reset ladder remembers what came before: each test begins with a new life of the driver. */
	ASSERT_EQ(0, driver_file("unbind"));
	ASSERT_EQ(0, driver_file("bind"));
	ASSERT_EQ(0, write_file(PARAM "mbox_timeout_ms", "1000"));
	baseline_take(&self->base);
	self->fd = card_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &self->q));
	log_mark();
}

/* The files went with the process of the test. */
FIXTURE_TEARDOWN_PARENT(fault)
{
	EXPECT_EQ(0, write_file(PARAM "mbox_timeout_ms", "3000"));
	EXPECT_EQ(0, card_works());
	EXPECT_EQ(0, back_to_baseline(&self->base));
}

/* A queue with nothing in flight does not notice a restart. */
static int queue_goes_on(struct queue *q)
{
	struct spyre_cb cb = cb_nop();

	return queue_wait(q, queue_submit(q, &cb), WAIT_MS);
}

TEST_F_TIMEOUT(fault, crash, 90)
{
	ASSERT_EQ(0, queue_goes_on(&self->q));
	ASSERT_EQ(0, write_file(self->inject, "crash"));
	ASSERT_EQ(0, wait_log("firmware restarted, contexts go on"));
	EXPECT_EQ(0, queue_goes_on(&self->q));
	EXPECT_EQ(2, self->q.status->done);
}

TEST_F_TIMEOUT(fault, hang, 90)
{
	ASSERT_EQ(0, queue_goes_on(&self->q));
	ASSERT_EQ(0, write_file(self->inject, "hang"));
	ASSERT_EQ(0, wait_log("firmware restarted, contexts go on"));
	EXPECT_EQ(0, queue_goes_on(&self->q));
}

/* Memory and bindings stay over a restart; what was in flight fails with RESET, and after a reset goes on. */
TEST_F_TIMEOUT(fault, restart_keeps_memory, 90)
{
	struct drm_spyre_queue_id id;
	struct spyre_cb cb;
	struct queue parked;
	uint32_t host, dev;
	uint64_t hmva, dmva, *p;

	ASSERT_EQ(0, bo_create(self->fd, 2 * MB, DRM_SPYRE_BO_HOST, &host));
	ASSERT_EQ(0, bo_create(self->fd, 2 * MB, DRM_SPYRE_BO_DEVICE, &dev));
	ASSERT_EQ(0, vm_map(self->fd, host, 0, 0, &hmva));
	ASSERT_EQ(0, vm_map(self->fd, dev, 0, 3, &dmva));
	p = bo_map(self->fd, host, 2 * MB, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	cb = cb_fill(dmva, 2 * MB, 0xfeedface);
	ASSERT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &parked));
	cb = cb_wait_host(hmva + 8, 1);
	queue_submit(&parked, &cb);
	usleep(200000);
	ASSERT_EQ(1, parked.status->fetched);
	ASSERT_EQ(0, write_file(debugfs_path("reset"), "firmware"));
	EXPECT_TRUE(log_has("firmware restarted"));
	EXPECT_EQ(SPYRE_ERR_RESET, parked.status->error);
	EXPECT_EQ(SPYRE_QUEUE_ERROR, parked.status->state);
	EXPECT_EQ(SPYRE_ERR_RESET, parked.response[0].status);
	EXPECT_EQ(1, parked.response[0].valid);
	cb = cb_dma(SPYRE_CB_DMAO, hmva, dmva, 2 * MB);
	ASSERT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	EXPECT_EQ(0xfeedface, p[0]);
	EXPECT_EQ(0xfeedface, p[2 * MB / 8 - 1]);
	id = (struct drm_spyre_queue_id){ .queue = parked.id };
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id));
	EXPECT_EQ(0, queue_goes_on(&parked));
	queue_unmap(&parked);
	munmap(p, 2 * MB);
}

/* An answer that comes late is waited for while the heartbeat moves, or the firmware is restarted. */
TEST_F_TIMEOUT(fault, slow, 90)
{
	uint32_t h;
	uint64_t addr;

	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &addr));
	ASSERT_EQ(0, write_file(self->inject, "slow 500"));
	EXPECT_EQ(0, vm_unmap(self->fd, addr, 1));
	EXPECT_FALSE(log_has("did not answer"));
	EXPECT_EQ(0, queue_goes_on(&self->q));
}

TEST_F_TIMEOUT(fault, hang_during_a_call, 90)
{
	uint32_t h;
	uint64_t addr;
	int ret;

	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &addr));
	ASSERT_EQ(0, write_file(self->inject, "hang"));
	ret = vm_unmap(self->fd, addr, 1);
	EXPECT_TRUE(ret == -EIO || ret == 0);
	ASSERT_EQ(0, wait_log("firmware restarted, contexts go on"));
	/* Gone for the user whatever the card said. */
	EXPECT_EQ(-ENOENT, vm_unmap(self->fd, addr, 1));
	EXPECT_EQ(0, queue_goes_on(&self->q));
}

/* close() with the firmware dead: bounded, and what it held comes back with the restart. */
TEST_F_TIMEOUT(fault, close_on_dead_firmware, 90)
{
	struct drm_spyre_limits before;
	int64_t begin;
	int other, i;

	other = card_open();
	ASSERT_GE(other, 0);
	before = limits(other);
	ASSERT_EQ(0, write_file(self->inject, "hang"));
	begin = after_ms(0);
	queue_unmap(&self->q);
	self->q.ring = NULL;
	close(self->fd);
	self->fd = -1;
	EXPECT_LT(after_ms(0) - begin, 15000 * 1000000ll * slower());
	ASSERT_EQ(0, wait_log("firmware restarted, contexts go on"));
	for (i = 0; i < 100 && limits(other).contexts_used >= before.contexts_used; i++)
		usleep(50000);
	EXPECT_EQ(before.contexts_used - 1, limits(other).contexts_used);
	EXPECT_EQ(before.queues_used - 1, limits(other).queues_used);
	close(other);
}

/* A queue that the card still knows is nobody's to map any more, whatever its offsets were. */
TEST_F_TIMEOUT(fault, no_mapping_of_a_queue_in_limbo, 90)
{
	struct drm_spyre_queue_create c = { .entries = 64 };
	struct drm_spyre_queue_id id;

	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c));
	ASSERT_EQ(0, write_file(self->inject, "hang"));
	id = (struct drm_spyre_queue_id){ .queue = c.queue };
	EXPECT_EQ(-EIO, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->fd, c.ring_offset));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->fd, c.status_offset));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, self->fd, c.doorbell_offset));
	ASSERT_EQ(0, wait_log("firmware restarted, contexts go on"));
}

/* After a bind all of the card's memory is cleared in the background. */
static int wait_scrubbed(void)
{
	char buf[1024];
	int i;

	for (i = 0; i < 600 * slower(); i++) {
		if (!read_file(debugfs_path("memory"), buf, sizeof(buf)) &&
		    strstr(buf, " dirty 0 scrubbing 0 "))
			return 0;
		usleep(50000);
	}
	return -ETIME;
}

struct worker {
	struct queue q;
	volatile int stop;
	int result;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	while (!w->stop && !w->result)
		w->result = queue_goes_on(&w->q);
	return NULL;
}

/* A queue that does not end although the firmware is alive: its context is reset, and nobody else notices. */
TEST_F_TIMEOUT(fault, context_rung, 90)
{
	int other = card_open();
	struct worker w = {};
	pthread_t thread;
	struct queue q;

	ASSERT_GE(other, 0);
	/* The commands of a scrub would be late as well. */
	ASSERT_EQ(0, wait_scrubbed());
	ASSERT_EQ(0, queue_open(other, 64, 1, &w.q));
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &q));
	/* While there is work the heartbeat moves. */
	ASSERT_EQ(0, pthread_create(&thread, NULL, work, &w));
	/* Each command has four times as long; two seconds on either side for a slow machine. */
	ASSERT_EQ(0, write_file(PARAM "mbox_timeout_ms", "1000"));
	ASSERT_EQ(0, write_file(self->inject, "slow 6000"));
	EXPECT_EQ(0, queue_close(&q));
	EXPECT_TRUE(log_has("does not end, the context is reset"));
	EXPECT_FALSE(log_has("firmware restart"));
	EXPECT_EQ(SPYRE_ERR_CANCELLED, self->q.status->error);
	w.stop = 1;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, w.result);
	EXPECT_EQ(0, queue_goes_on(&w.q));
}

/*
 * The card goes away while it makes a context: whatever it did with the command, the driver is clean after.
 */
TEST_F_TIMEOUT(fault, unbind_while_a_context_is_made, 90)
{
	uint64_t addr;
	uint32_t h;
	int status, ret;
	pid_t pid;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		int fd = card_open();

		if (fd < 0 || bo_create(fd, 4096, DRM_SPYRE_BO_HOST, &h))
			_exit(1);
		if (write_file(self->inject, "slow 3000"))
			_exit(2);
		ret = vm_map(fd, h, 0, 0, &addr);
		_exit(ret == -ENODEV || ret == -EIO ? 0 : 3);
	}
	usleep(1000000);
	ASSERT_EQ(0, driver_file("unbind"));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, driver_file("bind"));
}

/* Of the card alone: the machine's own disks do not live through it. */
static int suspend_and_resume(void)
{
	return write_file(debugfs_path("reset"), "sleep 2000");
}

/* Contexts live through it, and the watch goes on: firmware that dies afterwards is found out. */
TEST_F_TIMEOUT(fault, suspend, 120)
{
	ASSERT_EQ(0, queue_goes_on(&self->q));
	ASSERT_EQ(0, suspend_and_resume());
	EXPECT_EQ(0, queue_goes_on(&self->q));
	EXPECT_EQ(2, self->q.status->done);
	ASSERT_EQ(0, write_file(self->inject, "hang"));
	ASSERT_EQ(0, wait_log("firmware restarted, contexts go on"));
	EXPECT_EQ(0, queue_goes_on(&self->q));
}

/* A job that never ends is no reason not to sleep: it is lost, and its owner is told. */
TEST_F_TIMEOUT(fault, suspend_with_a_job_that_runs, 120)
{
	struct drm_spyre_queue_id id = { .queue = self->q.id };
	struct spyre_cb endless;
	uint32_t entry;

	ASSERT_EQ(0, job_load(self->fd, &self->q, JOB_ENDLESS, NULL, &endless));
	entry = queue_submit(&self->q, &endless);
	EXPECT_EQ(-ETIME, queue_wait(&self->q, entry, 500));
	ASSERT_EQ(entry + 1, self->q.status->fetched);
	ASSERT_EQ(0, suspend_and_resume());
	EXPECT_EQ(SPYRE_ERR_RESET, queue_wait(&self->q, entry, WAIT_MS));
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id));
	EXPECT_EQ(0, queue_goes_on(&self->q));
}

/* A call whose arguments lie in a page that comes when we say. */
struct absent {
	int fd;
	unsigned long request;
	void *args;
	int result;
	int uffd;
	void *page;
};

static int absent_init(struct absent *a)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	a->uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (a->uffd < 0)
		return -errno;
	a->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->page == MAP_FAILED)
		return -errno;
	reg.range.start = (uintptr_t)a->page;
	reg.range.len = 4096;
	if (ioctl(a->uffd, UFFDIO_API, &api) || ioctl(a->uffd, UFFDIO_REGISTER, &reg))
		return -errno;
	return 0;
}

static void *absent_call(void *arg)
{
	struct absent *a = arg;

	a->result = call(a->fd, a->request, a->args);
	return NULL;
}

/* Whether the card can sleep while the call waits for its page, which @content fills then. */
static bool sleeps_during(struct absent *a, const void *content, size_t size)
{
	char page[4096] __attribute__((aligned(4096))) = { 0 };
	struct uffdio_copy copy = { .dst = (uintptr_t)a->page, .src = (uintptr_t)page, .len = sizeof(page) };
	struct pollfd fault = { .fd = a->uffd, .events = POLLIN };
	int status = -1, i;
	pthread_t thread;
	bool slept = false;
	pid_t pid;

	memcpy(page, content, size);
	if (pthread_create(&thread, NULL, absent_call, a) || poll(&fault, 1, WAIT_MS) != 1)
		return false;
	pid = fork();
	if (!pid)
		_exit(write_file(debugfs_path("reset"), "sleep 1") ? 1 : 0);
	for (i = 0; i < WAIT_MS / 100 && !slept; i++) {
		usleep(100000);
		slept = waitpid(pid, &status, WNOHANG) == pid;
	}
	/* Whatever waits goes on now. */
	if (ioctl(a->uffd, UFFDIO_COPY, &copy))
		return false;
	pthread_join(thread, NULL);
	if (!slept)
		waitpid(pid, &status, 0);
	return slept && !status;
}

/*
 * Memory that a call names may be served by a process that takes its time. No lock is held meanwhile: the
 * card would be everybody's who can make a call and not read on.
 */
TEST_F_TIMEOUT(fault, sleep_while_arguments_are_read, 180)
{
	struct drm_spyre_wait_entry entry = { .kind = DRM_SPYRE_WAIT_QUEUE, .handle = self->q.id };
	struct drm_spyre_wait wait = { .count = 1, .timeout_ns = after_ms(10 * WAIT_MS) };
	struct drm_spyre_submit submit = { .in_count = 1 };
	struct drm_syncobj_create done = { .flags = DRM_SYNCOBJ_CREATE_SIGNALED };
	struct drm_spyre_sync in = { 0 };
	struct absent a = { .fd = self->fd };
	int ret = absent_init(&a);

	if (ret == -ENOSYS)
		SKIP(return, "this kernel has no userfaultfd");
	ASSERT_EQ(0, ret);
	a.request = DRM_IOCTL_SPYRE_WAIT;
	a.args = &wait;
	wait.entries = (uintptr_t)a.page;
	EXPECT_TRUE(sleeps_during(&a, &entry, sizeof(entry)));
	EXPECT_EQ(0, a.result);

	ASSERT_EQ(0, madvise(a.page, 4096, MADV_DONTNEED));
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SYNCOBJ_CREATE, &done));
	in.handle = done.handle;
	a.request = DRM_IOCTL_SPYRE_SUBMIT;
	a.args = &submit;
	submit.in_syncs = (uintptr_t)a.page;
	EXPECT_TRUE(sleeps_during(&a, &in, sizeof(in)));
	EXPECT_EQ(0, a.result);
	EXPECT_EQ(0, queue_goes_on(&self->q));
}

/* What a process does in a cgroup over its memory.high. */
enum hog { HOG_BUFFERS, HOG_QUEUES, HOG_IMPORTS };

/* Never returns. buf: a dma-buf. */
static void hog_run(int fd, enum hog what, int buf)
{
	struct drm_spyre_queue_create c = { .entries = SPYRE_RING_MAX, .priority = 1 };
	uint32_t h;

	/* On after what is small: a context is on the card. */
	for (;;) {
		switch (what) {
		case HOG_BUFFERS:
			bo_create(fd, 64 * MB, DRM_SPYRE_BO_HOST, &h);
			break;
		case HOG_QUEUES:
			call(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c);
			break;
		case HOG_IMPORTS:
			if (!import_fd(fd, buf, &h))
				bo_close(fd, h);
			break;
		}
	}
}

/*
 * Somebody else who makes buffers, and needs what an import holds with the card entered. Never returns. He
 * closes none: who waits for an import there keeps nobody from the card.
 */
static void maker_run(void)
{
	int fd = card_open();
	uint32_t h;

	while (!bo_create(fd, 4096, DRM_SPYRE_BO_HOST, &h))
		usleep(1000);
	_exit(1);
}

#define UDMABUF_LIMIT	"/sys/module/udmabuf/parameters/size_limit_mb"
#define PART		(16 * MB)
#define PARTS		128

/*
 * So large that sleeps for what is allocated for its pages last longer than anybody waits here: the same
 * memory again and again.
 */
static int large_dmabuf(void)
{
	struct udmabuf_create_list *list = calloc(1, sizeof(*list) + PARTS * sizeof(list->list[0]));
	int mem = memfd_create("spyre", MFD_CLOEXEC | MFD_ALLOW_SEALING), dev, buf = -1, i;

	dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (list && mem >= 0 && dev >= 0 && !ftruncate(mem, PART) &&
	    !fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK) && !write_file(UDMABUF_LIMIT, "4096")) {
		list->flags = UDMABUF_FLAGS_CLOEXEC;
		list->count = PARTS;
		for (i = 0; i < PARTS; i++)
			list->list[i] = (struct udmabuf_create_item){ .memfd = mem, .size = PART };
		buf = ioctl(dev, UDMABUF_CREATE_LIST, list);
		write_file(UDMABUF_LIMIT, "64");
	}
	close(dev);
	close(mem);
	free(list);
	return buf;
}

/*
 * A cgroup over its memory.high makes its processes sleep wherever they allocate. Nobody else waits for
 * them: the card can sleep meanwhile, which is what a reset and the removal do first.
 */
static bool sleeps_beside(int fd, enum hog what, int buf)
{
	pid_t hog, maker, sleeper;
	int status = -1, i;
	bool slept = false;

	if (write_file(CGROUP "/cgroup.procs", "0"))
		return false;
	hog = fork();
	if (!hog)
		hog_run(fd, what, buf);
	if (write_file(CGROUPS "/cgroup.procs", "0"))
		return false;
	maker = fork();
	if (!maker)
		maker_run();
	sleep(2);
	sleeper = fork();
	if (!sleeper)
		_exit(write_file(debugfs_path("reset"), "sleep 1") ? 1 : 0);
	for (i = 0; i < 10 * slower() && !slept; i++) {
		usleep(500000);
		slept = waitpid(sleeper, &status, WNOHANG) == sleeper;
	}
	kill(hog, SIGKILL);
	kill(maker, SIGKILL);
	waitpid(hog, NULL, 0);
	waitpid(maker, NULL, 0);
	if (!slept)
		waitpid(sleeper, &status, 0);
	return slept && !status;
}

TEST_F_TIMEOUT(fault, sleep_while_a_cgroup_is_throttled, 180)
{
	/* Kernels that check themselves keep a record of each mapping, and have no room for so many. */
	int buf = slower() > 1 ? -1 : large_dmabuf();

	ASSERT_TRUE(slower() > 1 || buf >= 0);
	ASSERT_EQ(0, cgroup_new("memory"));
	ASSERT_EQ(0, write_file(CGROUP "/memory.high", "1048576"));
	EXPECT_TRUE(sleeps_beside(self->fd, HOG_BUFFERS, buf));
	EXPECT_TRUE(sleeps_beside(self->fd, HOG_QUEUES, buf));
	if (buf >= 0)
		EXPECT_TRUE(sleeps_beside(self->fd, HOG_IMPORTS, buf));
	EXPECT_EQ(0, queue_goes_on(&self->q));
	EXPECT_EQ(0, rmdir(CGROUP));
}

static void *sleep_for_seconds(void *arg)
{
	*(int *)arg = write_file(debugfs_path("reset"), "sleep 4000");
	return NULL;
}

/* A firmware log is there unless the card sleeps. */
static int wait_asleep(void)
{
	char buf[64];
	int i;

	for (i = 0; i < 300; i++) {
		if (!read_file(debugfs_path("fw_log"), buf, sizeof(buf)) && !buf[0])
			return 0;
		usleep(10000);
	}
	return -ETIME;
}

/* Byte offset of the PCI Express capability in configuration space. */
static int express(const uint8_t *config)
{
	int at = config[0x34];

	while (at && config[at] != 0x10)
		at = config[at + 1];
	return at;
}

/*
 * The card's memory is lost while it sleeps, as when it has no power: whoever had some is told, and the card
 * works. Here it gets a reset of which the driver does not know, and its configuration space back.
 */
TEST_F_TIMEOUT(fault, suspend_that_loses_memory, 120)
{
	uint8_t saved[256];
	pthread_t thread;
	uint16_t control;
	char path[128];
	uint32_t h;
	int config, ret = -1, at, i;

	ASSERT_EQ(0, queue_goes_on(&self->q));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", card_pci());
	config = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_GE(config, 0);
	ASSERT_EQ(256, pread(config, saved, 256, 0));
	at = express(saved);
	ASSERT_NE(0, at);
	ASSERT_EQ(0, pthread_create(&thread, NULL, sleep_for_seconds, &ret));
	ASSERT_EQ(0, wait_asleep());
	memcpy(&control, saved + at + 8, 2);
	control |= 0x8000;	/* function-level reset */
	ASSERT_EQ(2, pwrite(config, &control, 2, at + 8));
	usleep(200000);
	/* The command, which lets it answer, last. */
	for (i = 252; i >= 4; i -= 4)
		ASSERT_EQ(4, pwrite(config, saved + i, 4, i));
	close(config);
	pthread_join(thread, NULL);
	ASSERT_EQ(0, ret);
	EXPECT_TRUE(log_has("card memory was lost while suspended"));
	EXPECT_EQ(SPYRE_QUEUE_LOST, self->q.status->state);
	EXPECT_EQ(-ENODEV, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	EXPECT_EQ(0, card_works());
}

/* A card that does not come back from suspend gets a reset of its function before it is given up. */
TEST_F_TIMEOUT(fault, resume_fails, 120)
{
	uint16_t command, off;
	char path[128];
	int config;

	/* With a queue in use the watch would be first. */
	queue_unmap(&self->q);
	close(self->fd);
	usleep(1500000);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", card_pci());
	config = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_GE(config, 0);
	ASSERT_EQ(2, pread(config, &command, 2, 4));
	off = command & ~2;	/* no memory space */
	ASSERT_EQ(2, pwrite(config, &off, 2, 4));
	ASSERT_EQ(0, suspend_and_resume());
	EXPECT_EQ(0, wait_log("function-level reset: resume failed"));
	EXPECT_EQ(0, wait_log("card is off"));
	EXPECT_EQ(-ENODEV, card_works());
	ASSERT_EQ(0, driver_file("unbind"));
	ASSERT_EQ(2, pwrite(config, &command, 2, 4));
	close(config);
	ASSERT_EQ(0, driver_file("bind"));
	EXPECT_EQ(0, card_works());
}

/* Interrupts that do not come lose no progress. */
TEST_F_TIMEOUT(fault, lost_interrupts, 90)
{
	struct spyre_cb cb = cb_nop();
	uint32_t i;

	cb.flags |= SPYRE_CB_F_INTERRUPT;
	ASSERT_EQ(0, write_file(self->inject, "lost-event 10"));
	for (i = 0; i < 10; i++) {
		queue_submit(&self->q, &cb);
		ASSERT_EQ(0, wait_queue(self->fd, self->q.id, i + 1, after_ms(WAIT_MS)));
	}
}

/* "waits missed" of the counters. */
static int waits_missed(void)
{
	char buf[4096], *at;

	if (read_file(debugfs_path("counters"), buf, sizeof(buf)))
		return -1;
	at = strstr(buf, "waits missed ");
	return at ? atoi(at + strlen("waits missed ")) : -1;
}

struct releaser {
	struct queue *q;
	volatile uint64_t *word;
};

static void *release_later(void *arg)
{
	struct releaser *r = arg;

	usleep(300000);
	*r->word = 1;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*r->q->doorbell = r->q->tail;
	return NULL;
}

/*
 * Somebody sleeps when what he waits for comes without its interrupt: he sees it soon, and it is
 * counted. With one vector for all, an answer of the mailbox may wake him in between; hence more
 * than one try.
 */
TEST_F_TIMEOUT(fault, missed_interrupt_is_counted, 120)
{
	struct releaser r = { .q = &self->q };
	int missed = waits_missed(), i;
	struct spyre_cb cb;
	pthread_t thread;
	int64_t begin;
	uint64_t hmva;
	uint32_t h;

	ASSERT_GE(missed, 0);
	/* The ends of scrubs are interrupts, too. */
	ASSERT_EQ(0, wait_scrubbed());
	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &hmva));
	r.word = bo_map(self->fd, h, 4096, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, r.word);
	ASSERT_EQ(0, write_file(self->inject, "lost-event 1000"));
	cb = cb_wait_host(hmva, 1);
	cb.flags |= SPYRE_CB_F_INTERRUPT;
	for (i = 0; i < 10 && waits_missed() == missed; i++) {
		*r.word = 0;
		queue_submit(&self->q, &cb);
		begin = after_ms(0);
		ASSERT_EQ(0, pthread_create(&thread, NULL, release_later, &r));
		EXPECT_EQ(0, wait_queue(self->fd, self->q.id, i + 1, after_ms(WAIT_MS)));
		/* The longest sleep is 160 ms; the rest is for a slow machine. */
		EXPECT_LT(after_ms(0) - begin, 5000 * 1000000ll * slower());
		pthread_join(thread, NULL);
	}
	EXPECT_EQ(missed + 1, waits_missed());
	ASSERT_EQ(0, write_file(self->inject, "lost-event 0"));
	munmap((void *)r.word, 4096);
}

/* The firmware answers what no driver knows: the call fails, and only that. */
TEST_F_TIMEOUT(fault, unknown_status, 90)
{
	struct drm_spyre_queue_create create;
	int ret = 0, i;

	ASSERT_EQ(-EINVAL, write_file(self->inject, "odd-status 0"));
	/* A command of the driver's own, a reading of sensors or the like, may come before. */
	for (i = 0; i < 20 && !ret; i++) {
		create = (struct drm_spyre_queue_create){ .entries = 64 };
		ASSERT_EQ(0, write_file(self->inject, "odd-status 777"));
		ret = call(self->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &create);
	}
	EXPECT_EQ(-EIO, ret);
	create = (struct drm_spyre_queue_create){ .entries = 64 };
	EXPECT_EQ(0, wait_log("answered with unknown status 777"));
	EXPECT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &create));
	EXPECT_EQ(0, queue_goes_on(&self->q));
	EXPECT_EQ(0, card_works());
}

TEST_F_TIMEOUT(fault, lost_response_blocks, 90)
{
	struct spyre_cb cb = cb_nop();

	ASSERT_EQ(0, write_file(self->inject, "lost-rb 1"));
	EXPECT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	EXPECT_EQ(0, self->q.response[0].valid);
	EXPECT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	EXPECT_EQ(2, self->q.response[1].valid);
}

/* What spyre-smi, which is built beside this program, makes of a core dump. 0: its text is in @buf. */
static int decode(const char *dump, char *buf, size_t size)
{
	char build[PATH_MAX], cmd[2 * PATH_MAX];
	int ret = build_folder(build, sizeof(build));
	size_t n;
	FILE *f;

	if (ret)
		return ret;
	snprintf(cmd, sizeof(cmd), "'%s/tools/spyre-smi' --dump '%s'", build, dump);
	f = popen(cmd, "r");
	if (!f)
		return -errno;
	n = fread(buf, 1, size - 1, f);
	buf[n] = 0;
	return pclose(f);
}

/* The file of a core dump: 0, or -ENOENT: there is none. */
static int find_dump(char *path, size_t size)
{
	glob_t g;

	if (glob("/sys/class/devcoredump/devcd*/data", 0, NULL, &g))
		return -ENOENT;
	snprintf(path, size, "%s", g.gl_pathv[0]);
	globfree(&g);
	return 0;
}

TEST_F_TIMEOUT(fault, core_dump, 90)
{
	static char buf[1 << 19];
	char path[256], line[128];
	struct spyre_cb cb;
	uint32_t h, entry;
	uint64_t hmva;
	int i;

	/* One that is there keeps others away; it goes a moment after it was given up. */
	for (i = 0; i < 1000 && !find_dump(path, sizeof(path)); i++) {
		write_file(path, "1");
		usleep(5000);
	}
	ASSERT_EQ(-ENOENT, find_dump(path, sizeof(path)));
	/* Never satisfied: in flight. */
	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	ASSERT_EQ(0, vm_map(self->fd, h, 0, 0, &hmva));
	cb = cb_wait_host(hmva, 1);
	cb.cookie = 0x5afe;
	entry = queue_submit(&self->q, &cb);
	for (i = 0; i < 1000 && !self->q.status->parked; i++)
		usleep(5000);
	ASSERT_EQ(1, self->q.status->parked);
	ASSERT_EQ(0, write_file(debugfs_path("reset"), "firmware"));
	ASSERT_EQ(0, find_dump(path, sizeof(path)));
	ASSERT_EQ(0, read_file(path, buf, sizeof(buf)));
	EXPECT_NE(NULL, strstr(buf, "**** spyre core dump ****"));
	EXPECT_NE(NULL, strstr(buf, "register 0x000: 0x52595053"));
	EXPECT_EQ(0, decode(path, buf, sizeof(buf)));
	EXPECT_NE(NULL, strstr(buf, "\n  STATE "));
	snprintf(line, sizeof(line), ", queue %u: doorbell page ", self->q.id);
	EXPECT_NE(NULL, strstr(buf, line));
	snprintf(line, sizeof(line), "entry %u  WAIT host  cookie 0x5afe\n", entry);
	EXPECT_NE(NULL, strstr(buf, line)) TH_LOG("no '%s' in: %s", line, buf);
	snprintf(line, sizeof(line), "word %#llx  value 1\n", (unsigned long long)hmva);
	EXPECT_NE(NULL, strstr(buf, line));
	EXPECT_NE(NULL, strstr(buf, "\nFirmware log\n"));
	EXPECT_EQ(0, write_file(path, "1"));
}

/* One line of the firmware is one line of the file. */
TEST_F(fault, log_has_lines)
{
	static char buf[1 << 17];

	ASSERT_EQ(0, read_file(debugfs_path("fw_log"), buf, sizeof(buf)));
	EXPECT_NE(NULL, strstr(buf, "state 4\n")) TH_LOG("the log: %s", buf);
	EXPECT_EQ(NULL, strstr(buf, "\\x0a"));
}

/* Too many restarts in a minute: the next rung, which loses memory and says so. */
TEST_F_TIMEOUT(fault, ladder, 120)
{
	struct drm_spyre_device_info d;
	uint32_t h;
	int i, fd;

	for (i = 0; i < 10 && !log_has("too many firmware restarts"); i++)
		ASSERT_EQ(0, write_file(debugfs_path("reset"), "firmware"));
	EXPECT_TRUE(log_has("too many firmware restarts"));
	EXPECT_TRUE(log_has("reset: card is online again"));
	EXPECT_EQ(-ENODEV, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	EXPECT_EQ(SPYRE_QUEUE_LOST, self->q.status->state);
	fd = card_open();
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, query(fd, DRM_SPYRE_QUERY_DEVICE, &d, sizeof(d)));
	EXPECT_EQ(SPYRE_STATE_ONLINE, d.state);
	EXPECT_EQ(d.reset_generation, self->q.status->generation);
	close(fd);
}

/* What operators' daemons listen to; the test's end closes it. */
static int uevents(void)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	struct timeval limit = { .tv_sec = 1 };
	int s = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);

	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    bind(s, (struct sockaddr *)&addr, sizeof(addr)))
		return -1;
	return s;
}

/* How many have come that call the card's node wedged; how: what the last of them says helps. */
static int wedged(int s, char *how, size_t size)
{
	char buf[4096];
	ssize_t n, i;
	int events = 0;

	*how = 0;
	while ((n = recv(s, buf, sizeof(buf) - 1, 0)) > 0) {
		buf[n] = 0;
		if (!strstr(buf, "/accel/accel"))
			continue;
		for (i = 0; i < n; i += strlen(buf + i) + 1) {
			if (strncmp(buf + i, "WEDGED=", 7))
				continue;
			snprintf(how, size, "%s", buf + i + 7);
			events++;
		}
	}
	return events;
}

/* Reset upon reset helps nobody: the card is turned off, who watches is told, a bind helps. */
TEST_F_TIMEOUT(fault, reset_storm, 120)
{
	int i, n, events = uevents();
	struct ras_counter c[32];
	char how[64];
	int64_t node;
	uint32_t h;

	ASSERT_GE(events, 0);
	for (i = 0; i < 10 && !log_has("too many resets"); i++)
		ASSERT_EQ(0, write_file(debugfs_path("reset"), "function"));
	EXPECT_TRUE(log_has("too many resets"));
	EXPECT_GT(i, 3);
	EXPECT_TRUE(log_has("card is off"));
	EXPECT_EQ(1, wedged(events, how, sizeof(how)));
	EXPECT_STREQ("rebind,bus-reset", how);
	/* What is known of it stays known. */
	node = ras_node("uncorrectable-errors");
	if (node != -EOPNOTSUPP) {
		ASSERT_GE(node, 0);
		n = ras_counters(node, c, 32);
		EXPECT_TRUE(n > 0 && n <= 32);
	}
	EXPECT_EQ(-ENODEV, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	EXPECT_EQ(SPYRE_QUEUE_LOST, self->q.status->state);
	EXPECT_EQ(-ENODEV, card_works());
	ASSERT_EQ(0, driver_file("unbind"));
	ASSERT_EQ(0, driver_file("bind"));
	EXPECT_EQ(0, card_works());
}

TEST_HARNESS_MAIN
