// SPDX-License-Identifier: MIT
/*
 * Firmware: images that are bad in every way the boot ROM tells apart, and firmware that dies, hangs or
 * loses things while it works.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "sha256.h"
#include "spyre_test.h"

#define WAIT_MS	20000
#define PARAM	"/sys/module/spyre/parameters/"

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

static int driver_file(const char *name)
{
	static char pci[64];
	char path[128];

	if (!*pci)
		snprintf(pci, sizeof(pci), "%s", card_pci());
	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/spyre/%s", name);
	return write_file(path, pci);
}

FIXTURE(image) {
	uint8_t *buf;
	size_t size;
};

FIXTURE_SETUP(image)
{
	int fd = card_open();

	ASSERT_GE(fd, 0);
	close(fd);
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
	self->fd = card_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &self->q));
	log_mark();
}

FIXTURE_TEARDOWN(fault)
{
	EXPECT_EQ(0, write_file(PARAM "mbox_timeout_ms", "3000"));
	if (self->q.ring)
		queue_unmap(&self->q);
	if (self->fd > 0)
		close(self->fd);
	EXPECT_EQ(0, card_works());
}

static int wait_log(const char *text)
{
	int i;

	for (i = 0; i < 600; i++) {
		if (log_has(text))
			return 0;
		usleep(50000);
	}
	return -ETIME;
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
	EXPECT_LT(after_ms(0) - begin, 15000 * 1000000ll);
	ASSERT_EQ(0, wait_log("firmware restarted, contexts go on"));
	for (i = 0; i < 100 && limits(other).contexts_used >= before.contexts_used; i++)
		usleep(50000);
	EXPECT_EQ(before.contexts_used - 1, limits(other).contexts_used);
	EXPECT_EQ(before.queues_used - 1, limits(other).queues_used);
	close(other);
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

TEST_F_TIMEOUT(fault, lost_response_blocks, 90)
{
	struct spyre_cb cb = cb_nop();

	ASSERT_EQ(0, write_file(self->inject, "lost-rb 1"));
	EXPECT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	EXPECT_EQ(0, self->q.response[0].valid);
	EXPECT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	EXPECT_EQ(2, self->q.response[1].valid);
}

TEST_F_TIMEOUT(fault, core_dump, 90)
{
	char path[256], buf[8192];
	int i;

	ASSERT_EQ(0, write_file(debugfs_path("reset"), "firmware"));
	for (i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "/sys/class/devcoredump/devcd%d/data", i);
		if (!read_file(path, buf, sizeof(buf)))
			break;
	}
	ASSERT_LT(i, 100);
	EXPECT_NE(NULL, strstr(buf, "**** spyre core dump ****"));
	EXPECT_NE(NULL, strstr(buf, "register 0x000: 0x52595053"));
	EXPECT_EQ(0, write_file(path, "1"));
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

TEST_HARNESS_MAIN
