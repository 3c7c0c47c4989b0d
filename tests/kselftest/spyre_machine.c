// SPDX-License-Identifier: MIT
/*
 * What must work in any machine, whatever is between card and memory: probe, programs, copies of
 * all kinds of host memory, every vector, a reset, removal. And that the machine is the one that
 * was meant:
 *
 * SPYRE_IOMMU: type of the card's IOMMU group: DMA, DMA-FQ, identity, or "none".
 * SPYRE_VECTORS: how many vectors the card has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "spyre_work.h"

#define VECTORS_MAX	8

FIXTURE(machine) {
	struct baseline base;
};

FIXTURE_SETUP(machine)
{
	ASSERT_EQ(0, card_works());
	baseline_take(&self->base);
}

FIXTURE_TEARDOWN(machine)
{
	EXPECT_EQ(0, card_works());
	EXPECT_EQ(0, back_to_baseline(&self->base));
}

/* Interrupts of each vector so far; how many vectors there are. */
static unsigned int interrupts(int *count)
{
	char buf[4096], *at;
	unsigned int n = 0, v;

	if (read_file(debugfs_path("counters"), buf, sizeof(buf)))
		return 0;
	for (at = buf; (at = strstr(at, "vector ")); at++)
		if (n < VECTORS_MAX && sscanf(at, "vector %u interrupts %d", &v, &count[n]) == 2 &&
		    v == n)
			n++;
	return n;
}

TEST_F(machine, is_the_one_that_was_meant)
{
	const char *type = getenv("SPYRE_IOMMU"), *vectors = getenv("SPYRE_VECTORS");
	char path[160], buf[64] = "none";
	int count[VECTORS_MAX];

	if (!type && !vectors)
		SKIP(return, "SPYRE_IOMMU and SPYRE_VECTORS say nothing");
	if (type) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu_group/type",
			 card_pci());
		read_file(path, buf, sizeof(buf));
		buf[strcspn(buf, "\n")] = 0;
		EXPECT_STREQ(type, buf);
	}
	if (vectors)
		EXPECT_EQ(atoi(vectors), interrupts(count));
}

static int rounds(struct life *l, unsigned int n)
{
	char why[256] = "";
	unsigned int i;
	int ret = 0;

	for (i = 0; i < n && !ret; i++)
		ret = life_round(l, (uint64_t)(i + 1) << 20, i % WAYS, why, sizeof(why));
	if (ret)
		fprintf(stderr, "# round %u: %d %s\n", i, ret, why);
	return ret;
}

TEST_F_TIMEOUT(machine, copies_and_programs, 120)
{
	struct life l;

	EXPECT_EQ(0, life_begin(&l));
	EXPECT_EQ(0, rounds(&l, 2 * WAYS));
	EXPECT_FALSE(life_lost(&l));
	life_end(&l);
}

/* Pages of a program, as scattered as they are, both ways. */
TEST_F_TIMEOUT(machine, memory_of_the_program, 120)
{
	struct drm_spyre_bo_userptr u = { .size = PAGE2M };
	uint64_t hmva, dmva, i, *p;
	struct spyre_cb cb;
	struct queue q;
	uint32_t dev;
	int fd = card_open();

	ASSERT_GE(fd, 0);
	p = mmap(NULL, PAGE2M, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	for (i = 0; i < PAGE2M / 8; i++)
		p[i] = i * 0x9e3779b97f4a7c15ull;
	u.addr = (uintptr_t)p;
	ASSERT_EQ(0, call(fd, DRM_IOCTL_SPYRE_BO_USERPTR, &u));
	ASSERT_EQ(0, bo_create(fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &dev));
	ASSERT_EQ(0, vm_map(fd, u.handle, 0, 0, &hmva));
	ASSERT_EQ(0, vm_map(fd, dev, 0, 0, &dmva));
	ASSERT_EQ(0, queue_open(fd, 64, 1, &q));
	cb = cb_dma(SPYRE_CB_DMAI, dmva, hmva, PAGE2M);
	ASSERT_EQ(0, queue_wait(&q, queue_submit(&q, &cb), WAIT_MS));
	memset(p, 0, PAGE2M);
	cb = cb_dma(SPYRE_CB_DMAO, hmva, dmva, PAGE2M);
	ASSERT_EQ(0, queue_wait(&q, queue_submit(&q, &cb), WAIT_MS));
	for (i = 0; i < PAGE2M / 8 && p[i] == i * 0x9e3779b97f4a7c15ull; i++)
		;
	EXPECT_EQ(PAGE2M / 8, i);
	queue_unmap(&q);
	close(fd);
	munmap(p, PAGE2M);
}

struct sleeper {
	struct life l;
	int tid;
	int ret;
};

static void *sleep_for_queue(void *arg)
{
	struct sleeper *s = arg;

	__atomic_store_n(&s->tid, (int)gettid(), __ATOMIC_RELEASE);
	s->ret = wait_queue(s->l.fd, s->l.q.id, s->l.q.tail, after_ms(WAIT_MS));
	return NULL;
}

/* Sleeps until the card says that the queue went on. 0: it did. */
static int woken(struct sleeper *s)
{
	struct spyre_cb cb;
	pthread_t thread;

	s->l.out[0] = 0;
	cb = cb_wait_host(s->l.out_at, 1);
	cb.flags |= SPYRE_CB_F_INTERRUPT;
	queue_submit(&s->l.q, &cb);
	s->tid = 0;
	if (pthread_create(&thread, NULL, sleep_for_queue, s) || thread_sleeps(&s->tid))
		return -1;
	__atomic_store_n(&s->l.out[0], 1, __ATOMIC_SEQ_CST);
	*s->l.q.doorbell = s->l.q.tail;
	pthread_join(thread, NULL);
	return s->ret;
}

/* Contexts take the vectors in turn: each of them reaches a processor. */
TEST_F_TIMEOUT(machine, every_vector, 120)
{
	static struct sleeper s[VECTORS_MAX];
	int before[VECTORS_MAX], after[VECTORS_MAX];
	unsigned int n = interrupts(before), i;

	ASSERT_GT(n, 0);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, life_begin(&s[i].l));
		ASSERT_EQ(0, woken(&s[i]));
	}
	ASSERT_EQ(n, interrupts(after));
	for (i = 0; i < n; i++) {
		EXPECT_GT(after[i], before[i]) TH_LOG("vector %u", i);
		life_end(&s[i].l);
	}
}

/* Every address that the card knows is new afterwards. */
TEST_F_TIMEOUT(machine, reset, 120)
{
	struct life l;

	EXPECT_EQ(0, life_begin(&l));
	EXPECT_EQ(0, rounds(&l, 1));
	ASSERT_EQ(0, pci_file("reset", "1"));
	EXPECT_TRUE(life_lost(&l));
	life_end(&l);
	EXPECT_EQ(0, life_begin(&l));
	EXPECT_EQ(0, rounds(&l, WAYS));
	life_end(&l);
}

/* With work in flight the card goes; afterwards nothing of it is mapped, and it comes again. */
TEST_F_TIMEOUT(machine, removed_and_probed, 120)
{
	struct life l;
	struct spyre_cb cb;

	EXPECT_EQ(0, life_begin(&l));
	cb = cb_dma(SPYRE_CB_DMAI, l.a, l.in_at, PAGE2M);
	queue_submit(&l.q, &cb);
	queue_submit(&l.q, &cb);
	ASSERT_EQ(0, driver_file("unbind"));
	EXPECT_TRUE(life_lost(&l));
	life_end(&l);
	ASSERT_EQ(0, driver_file("bind"));
	EXPECT_EQ(0, life_begin(&l));
	EXPECT_EQ(0, rounds(&l, WAYS));
	life_end(&l);
}

TEST_F_TIMEOUT(machine, module, 120)
{
	struct life l;
	int module = module_open("spyre");

	ASSERT_GE(module, 0);
	ASSERT_EQ(0, module_unload());
	ASSERT_EQ(0, syscall(SYS_finit_module, module, "", 0));
	close(module);
	EXPECT_EQ(0, life_begin(&l));
	EXPECT_EQ(0, rounds(&l, WAYS));
	life_end(&l);
}

TEST_HARNESS_MAIN
