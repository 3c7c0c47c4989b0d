// SPDX-License-Identifier: MIT
/*
 * Lives of the module: loaded, worked with, held, let go of, unloaded, again and again. While
 * anybody holds a part of it unloading is refused and disturbs nobody; afterwards nothing of it is
 * left anywhere in the kernel.
 *
 * SPYRE_LIVES: how many lives, 20 unless it says otherwise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drm.h>

#include "kselftest_harness.h"

#include "inventory.h"
#include "spyre_test.h"

#define MODULE	"/sys/module/spyre"

/*
 * --- Memory --------------------------------------------------------------------------------------
 */

/*
 * Objects of one slab cache, and pages: they cannot be counted exactly, but what each life loses
 * adds up.
 */
#define CACHES_MAX	512

struct memory {
	unsigned int n;
	struct {
		char name[64];
		long objects;
		long per_slab;
	} cache[CACHES_MAX];
	long vmalloc_kb;
	long free_kb;
};

static long meminfo(const char *key)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			kb = atol(line + strlen(key));
	if (f)
		fclose(f);
	return kb;
}

/* Pages that the processors keep for themselves count as free. */
static long spare_pages(void)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	char line[128];
	long n = 0, one;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %ld", &one) == 1)
			n += one;
	if (f)
		fclose(f);
	return n;
}

static void memory_take(struct memory *m)
{
	char line[512];
	FILE *f;
	glob_t g;
	size_t i;

	/* What is only remembered goes: names of files, whole pages of free objects. */
	write_file("/proc/sys/vm/drop_caches", "3");
	if (!glob("/sys/kernel/slab/*/shrink", 0, NULL, &g)) {
		for (i = 0; i < g.gl_pathc; i++)
			write_file(g.gl_pathv[i], "1");
		globfree(&g);
	}
	write_file("/proc/sys/vm/stat_refresh", "1");
	m->vmalloc_kb = meminfo("VmallocUsed:");
	m->free_kb = meminfo("MemFree:") + meminfo("Cached:") + meminfo("Buffers:") +
		     meminfo("AnonPages:") + meminfo("Slab:") + 4 * spare_pages();
	m->n = 0;
	f = fopen("/proc/slabinfo", "r");
	while (f && fgets(line, sizeof(line), f) && m->n < CACHES_MAX)
		if (sscanf(line, "%63s %ld %*d %*d %ld", m->cache[m->n].name,
			   &m->cache[m->n].objects, &m->cache[m->n].per_slab) == 3)
			m->n++;
	if (f)
		fclose(f);
}

/*
 * 0 when what is gone for good is less than one object for every fourth life, and less than half a
 * page for each. Of each cache every processor has some objects that count as used; pages have that
 * uncertainty, too. Caches of the kernel's own, of files and processes, grow and shrink as they
 * like.
 */
#define UNCERTAIN_KB	256

static int memory_compare(const struct memory *was, unsigned int lives, bool say)
{
	static struct memory now;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int i;
	int bad = 0;

	memory_take(&now);
	/* 0 on a kernel that does not show them: what is left is the pages. */
	if (now.n != was->n) {
		fprintf(stderr, "# slab caches: %u, before %u\n", now.n, was->n);
		return -1;
	}
	for (i = 0; i < now.n; i++) {
		long more = now.cache[i].objects - was->cache[i].objects;

		if (strncmp(was->cache[i].name, "kmalloc", 7) ||
		    more <= was->cache[i].per_slab * cpus + lives / 4)
			continue;
		bad = -1;
		if (say)
			fprintf(stderr, "# %s: %ld objects more\n", now.cache[i].name, more);
	}
	if (was->free_kb - now.free_kb > UNCERTAIN_KB + 2l * lives ||
	    now.vmalloc_kb - was->vmalloc_kb > UNCERTAIN_KB / 4 + 2l * lives) {
		bad = -1;
		if (say)
			fprintf(stderr, "# %ld KiB of memory, %ld KiB of vmalloc space are gone\n",
				was->free_kb - now.free_kb, now.vmalloc_kb - was->vmalloc_kb);
	}
	return bad;
}

/* What is freed by RCU is freed later. */
static int back_to_memory(const struct memory *was, unsigned int lives)
{
	int i;

	for (i = 0; i < 20; i++) {
		if (!memory_compare(was, lives, i == 19))
			return 0;
		usleep(500000);
	}
	return -1;
}

/*
 * --- Who holds the module ------------------------------------------------------------------------
 */

enum hold {
	HOLD_FILE,	/* an open file and nothing else */
	HOLD_MAPPING,	/* a mapping of a file that is closed */
	HOLD_JOB,	/* a job that does not end by itself */
	HOLD_WAIT,	/* a thread that sleeps in the kernel */
	HOLD_EXPORT,	/* a dma-buf, with no file open */
	HOLDS
};

static const char * const hold_name[HOLDS] = { "file", "mapping", "job", "wait", "dma-buf" };

struct sleeper {
	int fd;
	uint32_t bo;
	int tid;
	int ret;
};

static void *sleep_in_wait(void *arg)
{
	struct sleeper *s = arg;

	__atomic_store_n(&s->tid, (int)gettid(), __ATOMIC_RELEASE);
	s->ret = wait_fence(s->fd, s->bo, 0, 1, after_ms(1000000));
	return NULL;
}

/* The holder: says "r" when it holds, and ends when told to, 0 when nothing disturbed it. */
static int hold(enum hold kind, int ready, int go)
{
	struct drm_prime_handle prime = { .flags = O_CLOEXEC };
	struct sleeper s = {};
	struct spyre_cb cb;
	struct queue q;
	pthread_t thread;
	uint64_t at;
	uint32_t h;
	uint8_t *p = NULL;
	char c;
	int fd = card_open();

	if (fd < 0 || bo_create(fd, 4096, DRM_SPYRE_BO_HOST, &h) || vm_map(fd, h, 0, 0, &at))
		return 1;
	switch (kind) {
	case HOLD_MAPPING:
		p = bo_map(fd, h, 4096, PROT_READ | PROT_WRITE);
		if (!p)
			return 2;
		p[0] = 42;
		close(fd);
		break;
	case HOLD_JOB:
		if (queue_open(fd, 64, 0, &q) || job_load(fd, &q, JOB_ENDLESS, NULL, &cb))
			return 3;
		queue_submit(&q, &cb);
		while (!q.status->fetched)
			usleep(1000);
		break;
	case HOLD_WAIT:
		s.fd = fd;
		s.bo = h;
		if (queue_open(fd, 64, 1, &q) || pthread_create(&thread, NULL, sleep_in_wait, &s) ||
		    thread_sleeps(&s.tid))
			return 4;
		break;
	case HOLD_EXPORT:
		prime.handle = h;
		if (call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime))
			return 5;
		close(fd);
		break;
	default:
		break;
	}
	if (write(ready, "r", 1) != 1 || read(go, &c, 1) != 1)
		return 6;
	if (kind == HOLD_WAIT) {
		/* It slept on, and what it waits for still reaches it. */
		cb = cb_signal_host(at, 1);
		queue_submit(&q, &cb);
		pthread_join(thread, NULL);
		return s.ret ? 7 : 0;
	}
	if (kind == HOLD_MAPPING)
		return p[0] == 42 ? 0 : 8;
	return 0;
}

struct holder {
	pid_t pid;
	int go;
};

/* 0 when it holds. */
static int holder_start(struct holder *h, enum hold kind)
{
	int ready[2], go[2];
	char c;

	if (pipe2(ready, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return -errno;
	h->pid = fork();
	if (!h->pid) {
		close(ready[0]);
		close(go[1]);
		_exit(hold(kind, ready[1], go[0]));
	}
	close(ready[1]);
	close(go[0]);
	h->go = go[1];
	c = 0;
	if (h->pid < 0 || read(ready[0], &c, 1) != 1 || c != 'r')
		return -ECHILD;
	close(ready[0]);
	return 0;
}

/* Told to end (0: undisturbed), or killed. */
static int holder_end(struct holder *h)
{
	int status;

	if (write(h->go, "g", 1) != 1 || waitpid(h->pid, &status, 0) != h->pid)
		return -ECHILD;
	close(h->go);
	return status;
}

/*
 * Files of a process end some time after its SIGKILL; what is refused meanwhile is refused as held.
 */
static int unload_after_kill(int64_t *ns)
{
	int64_t begin = after_ms(0);
	int ret;

	for (;;) {
		ret = module_unload();
		*ns = after_ms(0) - begin;
		if (ret != -EWOULDBLOCK || *ns > WAIT_MS * 1000000ll)
			return ret;
		usleep(1000);
	}
}

FIXTURE(module) {
	int module;
	unsigned int lives;
};

/* What resets of tests before this have left goes after five minutes, and would be missed. */
static void drop_dumps(void)
{
	glob_t g;
	size_t i;

	if (glob("/sys/class/devcoredump/devcd*/data", 0, NULL, &g))
		return;
	for (i = 0; i < g.gl_pathc; i++)
		write_file(g.gl_pathv[i], "1");
	globfree(&g);
}

FIXTURE_SETUP(module)
{
	const char *lives = getenv("SPYRE_LIVES");

	self->lives = lives ? atoi(lives) : 20;
	ASSERT_GE(self->lives, 2 * HOLDS);
	self->module = module_open("spyre");
	ASSERT_GE(self->module, 0);
	drop_dumps();
	ASSERT_EQ(0, card_works());
}

/* Whatever went wrong: those who follow find a driver. */
FIXTURE_TEARDOWN(module)
{
	if (access(MODULE, F_OK))
		syscall(SYS_finit_module, self->module, "", 0);
	close(self->module);
	if (!matches("/sys/bus/pci/drivers/spyre/0*"))
		driver_file("bind");
	EXPECT_EQ(0, card_works());
}

/*
 * Each life has a holder: unloading is refused; then it ends or is killed, and unloading follows at
 * once.
 */
TEST_F_TIMEOUT(module, lives_under_use, 590)
{
	static struct memory memory;
	struct inventory loaded, unloaded;
	struct holder h = {};
	unsigned int i;
	enum hold kind;
	const char *holder;
	int64_t ns, longest = 0;
	int status;

	/* A node whose number was taken when it came has another one in the next life. */
	ASSERT_EQ(0, unload_after_kill(&ns));
	ASSERT_EQ(0, syscall(SYS_finit_module, self->module, "", 0));
	inventory_take(&loaded);
	EXPECT_EQ(1, loaded.thing[1] > 0);
	for (i = 0; i < self->lives; i++) {
		kind = i % HOLDS;
		holder = hold_name[kind];
		ASSERT_EQ(0, card_works()) TH_LOG("life %u", i);
		ASSERT_EQ(0, holder_start(&h, kind)) TH_LOG("life %u, %s", i, holder);
		EXPECT_EQ(-EWOULDBLOCK, module_unload()) TH_LOG("life %u, %s", i, holder);
		EXPECT_EQ(0, access(MODULE, F_OK));
		if (i / HOLDS % 2) {
			/* Not even waited for. */
			ASSERT_EQ(0, kill(h.pid, SIGKILL));
			ASSERT_EQ(0, unload_after_kill(&ns)) TH_LOG("life %u, %s", i, holder);
			longest = ns > longest ? ns : longest;
			ASSERT_EQ(h.pid, waitpid(h.pid, &status, 0));
			EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
			close(h.go);
		} else {
			ASSERT_EQ(0, card_works());
			EXPECT_EQ(0, holder_end(&h)) TH_LOG("life %u, %s", i, holder);
			ASSERT_EQ(0, unload_after_kill(&ns)) TH_LOG("life %u, %s", i, holder);
		}
		EXPECT_NE(0, access(MODULE, F_OK));
		if (!i) {
			inventory_take(&unloaded);
			EXPECT_EQ(0, unloaded.thing[1]);
			EXPECT_EQ(0, strlen(unloaded.node));
		}
		ASSERT_EQ(0, inventory_compare(&unloaded)) TH_LOG("life %u, %s", i, holder);
		/* Caches that grow once have grown by then. */
		if (i == HOLDS)
			memory_take(&memory);
		if (i + 1 == self->lives)
			EXPECT_EQ(0, back_to_memory(&memory, i - HOLDS));
		ASSERT_EQ(0, syscall(SYS_finit_module, self->module, "", 0)) TH_LOG("%d", errno);
		ASSERT_EQ(0, inventory_compare(&loaded)) TH_LOG("life %u, %s", i, holder);
	}
	TH_LOG("%u lives; after SIGKILL the module was gone within %lld ms", i,
	       (long long)longest / 1000000);
}

/*
 * --- Probes that fail
 * -----------------------------------------------------------------------------
 */

/* The last step before the firmware boots: no message interrupts. */
TEST_F_TIMEOUT(module, probe_without_vectors, 60)
{
	struct inventory unbound;
	char path[128];

	/* Of the function: without a driver there is no node that leads to it. */
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/msi_bus", card_pci());
	ASSERT_EQ(0, driver_file("unbind"));
	inventory_take(&unbound);
	ASSERT_EQ(0, write_file(path, "0"));
	log_mark();
	EXPECT_NE(0, driver_file("bind"));
	EXPECT_TRUE(log_has("no MSI vector"));
	EXPECT_EQ(0, inventory_compare(&unbound));
	ASSERT_EQ(0, write_file(path, "1"));
	ASSERT_EQ(0, driver_file("bind"));
}

TEST_HARNESS_MAIN
