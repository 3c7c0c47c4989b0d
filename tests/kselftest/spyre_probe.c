// SPDX-License-Identifier: MIT
/*
 * Probes that fail at each of their steps: each allocation of the driver in turn, and each call that
 * can fail for another reason. The bind answers with an error or does without; then everything is as it
 * was, and a plain bind gives a card that works.
 *
 * SPYRE_NTH_FROM=N begins with that allocation.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include <spyre/hw.h>

#include "inventory.h"
#include "nth.h"
#include "spyre_test.h"

/* No bind allocates as often; one that goes on and on is a bug. */
#define NTH_MAX		20000u
/*
 * What is left behind stays, so it is found as well when the kernel is searched, and a plain bind is
 * made, only after so many failures: both take longer than a failure.
 */
#define LOOK_EVERY	16
/*
 * An allocation is the driver's own, or made for it by at most two functions: with KASAN four frames
 * are the allocator's. Farther down 6.12 itself does not live through all failures: ACPI's
 * interpreter uses memory that it has freed, drm_minor_alloc() puts a device that is an error, and
 * the interrupt core removes files that it did not make. The calls that lead there fail as a whole
 * (each_call_fails).
 */
#define DEPTH		6
/* The largest errno. */
#define ERRNO_MAX	4095

struct tally {
	unsigned int failed, refused, without;
	unsigned int error[ERRNO_MAX + 1];
};

FIXTURE(probe) {
	struct inventory unbound;
	char pci[64], function[96];
	int module, bind;
	struct tally tally;
};

/* Nobody uses the function: it is not enabled, and it may not write to memory. */
static bool function_is_idle(const char *function)
{
	char path[128], text[16];
	uint16_t command = 0xffff;
	bool idle;
	int fd;

	snprintf(path, sizeof(path), "%s/enable", function);
	if (read_file(path, text, sizeof(text)))
		return false;
	idle = atoi(text) == 0;
	snprintf(path, sizeof(path), "%s/config", function);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	idle = idle && fd >= 0 && pread(fd, &command, 2, 4) == 2 && !(command & 4);
	if (fd >= 0)
		close(fd);
	if (!idle)
		fprintf(stderr, "# enabled %d times, command 0x%04x\n", atoi(text), command);
	return idle;
}

FIXTURE_SETUP(probe)
{
	ASSERT_EQ(0, card_works());
	snprintf(self->pci, sizeof(self->pci), "%s", card_pci());
	snprintf(self->function, sizeof(self->function), "/sys/bus/pci/devices/%s", self->pci);
	self->bind = open("/sys/bus/pci/drivers/spyre/bind", O_WRONLY | O_CLOEXEC);
	ASSERT_GE(self->bind, 0);
	/* Caches that grow once have grown by then. */
	ASSERT_EQ(0, driver_file("unbind"));
	ASSERT_EQ(0, driver_file("bind"));
	ASSERT_EQ(0, driver_file("unbind"));
	inventory_take(&self->unbound);
	ASSERT_TRUE(function_is_idle(self->function));
}

/* Whatever went wrong: those who follow find a driver. */
FIXTURE_TEARDOWN(probe)
{
	nth_within(NULL, 0);
	syscall(SYS_delete_module, "spyre_fail", O_NONBLOCK);
	if (!matches("/sys/bus/pci/drivers/spyre/0*"))
		EXPECT_EQ(0, driver_file("bind"));
	close(self->bind);
	EXPECT_EQ(0, card_works());
}

/* Nothing but this is between arming and disarming. 0 or -errno. */
static int bind(int fd, const char *pci)
{
	return write(fd, pci, strlen(pci)) < 0 ? -errno : 0;
}

/* A bind in which something was made to fail has ended with @ret; 0 when the function is nobody's. */
static int after(FIXTURE_DATA(probe) *self, int ret)
{
	self->tally.failed++;
	if (ret) {
		self->tally.refused++;
		self->tally.error[-ret <= ERRNO_MAX ? -ret : 0]++;
	} else {
		self->tally.without++;
		ret = driver_file("unbind");
		if (ret) {
			fprintf(stderr, "# unbind: %d\n", ret);
			return ret;
		}
	}
	return function_is_idle(self->function) ? 0 : -1;
}

/* 0 when all is as it was before the first bind, and after one that gives a card that works. */
static int look(FIXTURE_DATA(probe) *self)
{
	int ret;

	if (inventory_compare(&self->unbound))
		return -1;
	ret = bind(self->bind, self->pci);
	if (!ret)
		ret = card_works();
	if (!ret)
		ret = driver_file("unbind");
	if (ret) {
		fprintf(stderr, "# a plain bind: %d\n", ret);
		return ret;
	}
	return inventory_compare(&self->unbound);
}

static void say(const struct tally *t, const char *what)
{
	unsigned int i;

	printf("# %s: %u failed in turn, %u binds refused, %u did without; errors", what, t->failed,
	       t->refused, t->without);
	for (i = 0; i <= ERRNO_MAX; i++)
		if (t->error[i])
			printf(" %s %u", strerrorname_np(i) ?: "?", t->error[i]);
	printf("\n");
	fflush(stdout);
}

/* --- Calls that are answered without being made ----------------------------------------------- */

#define FAIL_MODULE	"/sys/module/spyre_fail"

#define FAIL_SKIP \
	"spyre_fail.ko was not built for this kernel: make check-full runs this on the debug kernel"

static int fail_load(FIXTURE_DATA(probe) *self, const char *parameters)
{
	return syscall(SYS_finit_module, self->module, parameters, 0) ? -errno : 0;
}

/* How many calls came, or -errno. */
static int fail_unload(void)
{
	char text[16];
	int ret = read_file(FAIL_MODULE "/parameters/hits", text, sizeof(text));

	if (!ret && syscall(SYS_delete_module, "spyre_fail", O_NONBLOCK))
		ret = -errno;
	return ret ?: atoi(text);
}

/* --- Allocations ------------------------------------------------------------------------------ */

TEST_F_TIMEOUT(probe, each_allocation_fails, 1200)
{
	const char *from = getenv("SPYRE_NTH_FROM");
	unsigned int n = from ? atoi(from) : 1;
	unsigned int tries = 0, all;
	bool failed;
	int ret;

	if (nth_open())
		SKIP(return, NTH_SKIP);
	self->module = module_open("spyre_fail");
	if (self->module < 0)
		SKIP(return, FAIL_SKIP);
	ASSERT_EQ(0, nth_spare_checkers());
	/* It would say that the kernel is short of memory, with a call trace, which is not so. */
	ASSERT_EQ(0, fail_load(self, "call=warn_alloc nth=0"));
	ASSERT_GT(n, 0);
	ASSERT_EQ(0, nth_within("spyre", DEPTH));
	nth_arm(NTH_MAX);
	ret = bind(self->bind, self->pci);
	all = NTH_MAX - nth_disarm();
	ASSERT_EQ(0, ret);
	ASSERT_LT(all, NTH_MAX);
	ASSERT_EQ(0, driver_file("unbind"));
	printf("# a bind allocates %u times\n", all);
	fflush(stdout);
	for (; n < NTH_MAX; n++) {
		nth_arm(n);
		ret = bind(self->bind, self->pci);
		failed = !nth_disarm();
		ASSERT_TRUE(failed || !ret) TH_LOG("no allocation failed, and the bind: %d", ret);
		if (!failed)
			break;
		ASSERT_EQ(0, after(self, ret)) TH_LOG("allocation %u: %d", n, ret);
		if (++tries % LOOK_EVERY == 0)
			ASSERT_EQ(0, look(self)) TH_LOG("allocation %u: %d", n, ret);
	}
	ASSERT_EQ(0, driver_file("unbind"));
	ASSERT_EQ(0, look(self));
	ASSERT_LT(n, NTH_MAX);
	ASSERT_LE(0, fail_unload());
	say(&self->tally, "allocations");
	if (!from)
		EXPECT_LT(all / 2, self->tally.refused);
}

/* --- Calls ------------------------------------------------------------------------------------ */

/*
 * What the probe calls and what can fail without an allocation; for each the answer of a call that
 * failed, and of a call of our own also that of a firmware that is silent. In the order of the probe.
 */
static const struct call {
	const char *name;
	long answer;		/* a number, or a pointer */
	int error;		/* what the bind must say, 0: any */
	bool optional;		/* the card works without */
} calls[] = {
	{ "__devm_drm_dev_alloc", -ENODEV, -ENODEV, false },
	{ "pcim_enable_device", -EIO, -EIO, false },
	{ "pcim_request_all_regions", -EBUSY, -EBUSY, false },
	{ "devm_ioremap", 0, -ENOMEM, false },
	{ "dma_set_mask", -EIO, -EIO, false },
	{ "devm_ioremap_wc", 0, -ENOMEM, false },
	{ "request_firmware", -ENOENT, -ENOENT, false },
	/* Eight vectors, or one. */
	{ "pci_alloc_irq_vectors", -ENOSPC, -ENOSPC, true },
	{ "request_threaded_irq", -EBUSY, -EBUSY, false },
	{ "spyre_mbox_call", -EMFILE, -EMFILE, false },
	{ "spyre_mbox_call", -EIO, -EIO, false },
	{ "spyre_table_alloc", -ENOSPC, -ENOSPC, false },
	{ "dma_map_page_attrs", -1, 0, false },
	/* Another segment may have room. */
	{ "drm_mm_insert_node_in_range", -ENOSPC, -ENOSPC, true },
	{ "drm_dev_register", -EEXIST, -EEXIST, false },
	/* Of the node, of the sensors. */
	{ "device_add", -EEXIST, -EEXIST, true },
	{ "devm_hwmon_device_register_with_info", -EINVAL, 0, true },
	/* Of those and of the function. */
	{ "device_add_groups", -EEXIST, -EEXIST, true },
};

#define CALLS		(sizeof(calls) / sizeof(calls[0]))
/* No probe calls one of them as often. */
#define CALLS_MAX	64
/* Work for the card after so many functions. */
#define WORK_EVERY	6

/* A bind as spyre_fail has been told. 0 or -errno, and how many calls came. */
static int bind_with(FIXTURE_DATA(probe) *self, const char *parameters, int *hits)
{
	int ret = fail_load(self, parameters), bound;

	if (ret) {
		fprintf(stderr, "# spyre_fail.ko %s: %d\n", parameters, ret);
		*hits = ret;
		return ret;
	}
	bound = bind(self->bind, self->pci);
	*hits = fail_unload();
	return bound;
}

TEST_F_TIMEOUT(probe, each_call_fails, 590)
{
	const struct call *c;
	struct tally before;
	char parameters[128];
	unsigned int n;
	int ret, hits;

	self->module = module_open("spyre_fail");
	if (self->module < 0)
		SKIP(return, FAIL_SKIP);
	for (c = calls; c < calls + CALLS; c++) {
		before = self->tally;
		for (n = 1; n < CALLS_MAX; n++) {
			snprintf(parameters, sizeof(parameters), "call=%s nth=%u answer=%ld", c->name, n,
				 c->answer);
			ret = bind_with(self, parameters, &hits);
			ASSERT_LE(0, hits);
			if (hits < (int)n)
				break;
			EXPECT_TRUE((!ret && c->optional) || (ret && (ret == c->error || !c->error)))
			TH_LOG("%s: %d", parameters, ret);
			ASSERT_EQ(0, after(self, ret)) TH_LOG("%s: %d", parameters, ret);
		}
		ASSERT_EQ(0, ret) TH_LOG("%s: nothing failed", parameters);
		/* This one was a plain bind. */
		ASSERT_EQ(0, driver_file("unbind"));
		ASSERT_EQ(0, inventory_compare(&self->unbound)) TH_LOG("%s", parameters);
		if ((c - calls) % WORK_EVERY == 0)
			ASSERT_EQ(0, look(self)) TH_LOG("%s", c->name);
		EXPECT_LT(before.failed, self->tally.failed) TH_LOG("%s is not called", c->name);
	}
	ASSERT_EQ(0, look(self));
	say(&self->tally, "calls");
}

/* What the registers say of the card: binds that refuse it, with what they say. */
static const struct identity {
	uint32_t id, version;
	uint64_t memory, aperture;
	uint32_t hz, reserved, pages;
	const char *says;
} identities[] = {
	{ ~0u, ~0u, ~0ull, ~0ull, ~0u, ~0u, ~0u, "identity register reads 0xffffffff" },
#define GOOD_ID		SPYRE_ID_MAGIC, SPYRE_HWVER_MAJOR << 16
	{ SPYRE_ID_MAGIC, (SPYRE_HWVER_MAJOR + 1) << 16, 8ull << 30, 2ull << 30, 1000000, PAGE2M,
	  SPYRE_DB_PAGES, "is not one this driver knows" },
#define CANNOT_BE	"describes itself in a way that cannot be"
	{ GOOD_ID, 8ull << 30, 2ull << 30, 0, PAGE2M, SPYRE_DB_PAGES, CANNOT_BE },
	{ GOOD_ID, 8ull << 30, 1ull << 50, 1000000, PAGE2M, SPYRE_DB_PAGES, CANNOT_BE },
	{ GOOD_ID, 8ull << 30, 64ull << 20, 1000000, PAGE2M, SPYRE_DB_PAGES, CANNOT_BE },
	{ GOOD_ID, ~0ull, 2ull << 30, 1000000, PAGE2M, SPYRE_DB_PAGES, CANNOT_BE },
	{ GOOD_ID, 32ull << 20, 2ull << 30, 1000000, PAGE2M, SPYRE_DB_PAGES, CANNOT_BE },
	{ GOOD_ID, 8ull << 30, 2ull << 30, 1000000, PAGE2M, 0, CANNOT_BE },
	{ GOOD_ID, 8ull << 30, 2ull << 30, 1000000, PAGE2M, SPYRE_DB_PAGES + 1, CANNOT_BE },
};

/* The registers are memory in which a card describes itself. */
TEST_F_TIMEOUT(probe, card_that_cannot_be, 120)
{
	const struct identity *d;
	uint32_t words[SPYRE_REG_DB_PAGES / 4 + 1];
	char parameters[1024];
	unsigned int i, n;
	int ret, hits;

	self->module = module_open("spyre_fail");
	if (self->module < 0)
		SKIP(return, FAIL_SKIP);
	for (d = identities; d < identities + sizeof(identities) / sizeof(identities[0]); d++) {
		memset(words, 0, sizeof(words));
		words[SPYRE_REG_ID / 4] = d->id;
		words[SPYRE_REG_HWVER / 4] = d->version;
		memcpy(&words[SPYRE_REG_MEM_SIZE / 4], &d->memory, 8);
		memcpy(&words[SPYRE_REG_APERTURE_SIZE / 4], &d->aperture, 8);
		words[SPYRE_REG_TIME_HZ / 4] = d->hz;
		words[SPYRE_REG_FW_RESERVED / 4] = d->reserved;
		words[SPYRE_REG_DB_PAGES / 4] = d->pages;
		n = snprintf(parameters, sizeof(parameters), "call=devm_ioremap words=");
		for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			n += snprintf(parameters + n, sizeof(parameters) - n, "%s%u", i ? "," : "", words[i]);
		log_mark();
		ret = bind_with(self, parameters, &hits);
		EXPECT_LE(1, hits);
		EXPECT_GT(0, ret);
		EXPECT_TRUE(log_has(d->says)) TH_LOG("%s", parameters);
		ASSERT_EQ(0, after(self, ret)) TH_LOG("%s: %d", parameters, ret);
	}
	/* A bridge with too little room for the card. */
	log_mark();
	EXPECT_EQ(-ENODEV, bind_with(self, "small_bar=1", &hits));
	EXPECT_TRUE(log_has("BARs are missing or too small"));
	ASSERT_EQ(0, after(self, -ENODEV));
	ASSERT_EQ(0, look(self));
}

TEST_HARNESS_MAIN
