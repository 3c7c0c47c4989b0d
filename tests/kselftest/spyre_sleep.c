// SPDX-License-Identifier: MIT
/*
 * Suspend to RAM of the machine, with cards that idle and cards at work. Somebody outside must wake
 * it: tests/campaign/test_sleep. SPYRE_SLEEP says that he does; without it nothing sleeps.
 *
 * Files of the host cannot be read any more when the machine has slept once, so all that anybody
 * may still need is read before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "spyre_work.h"

/* Into the page cache, which has room for all of it. */
static void read_whole(const char *path)
{
	static char buf[1 << 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && read(fd, buf, sizeof(buf)) > 0)
		;
	if (fd >= 0)
		close(fd);
}

/* What the processes have mapped: their programs and libraries. */
static void read_programs(void)
{
	char line[4096], path[4096];
	glob_t g;
	size_t i;
	FILE *f;

	if (glob("/proc/[0-9]*/maps", 0, NULL, &g))
		return;
	for (i = 0; i < g.gl_pathc; i++) {
		f = fopen(g.gl_pathv[i], "r");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "%*s %*s %*s %*s %*s %4095[^\n]", path) == 1 &&
			    path[0] == '/')
				read_whole(path);
		if (f)
			fclose(f);
	}
	globfree(&g);
}

/*
 * In the process that all tests are children of, before any of them: what it has locked stays for
 * them. Not in the setup of each, which would ask the host for files after the first has slept.
 */
__attribute__((constructor)) static void prepare(void)
{
	if (!getenv("SPYRE_SLEEP"))
		return;
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		perror("# mlockall");
	read_programs();
	/*
	 * The host is asked, too, when a file is closed for the last time: one keeps all files that
	 * we have mapped.
	 */
	if (!fork()) {
		close_range(0, ~0u, 0);
		for (;;)
			pause();
	}
}

/* How often the machine has slept. */
static int slept(void)
{
	char buf[32];

	return read_file("/sys/power/suspend_stats/success", buf, sizeof(buf)) ? -1 : atoi(buf);
}

/* To S3, until somebody wakes the machine. 0 when it did sleep. */
static int sleep_once(void)
{
	int before = slept(), ret = write_file("/sys/power/state", "mem");

	if (ret)
		return ret;
	return slept() == before + 1 ? 0 : -EIO;
}

FIXTURE(sleep) {
	struct baseline base;
	struct life l;
	uint32_t generation;
};

FIXTURE_SETUP(sleep)
{
	if (!getenv("SPYRE_SLEEP"))
		SKIP(return, "nobody would wake the machine");
	ASSERT_EQ(0, write_file("/sys/power/mem_sleep", "deep"));
	/* Not one that a test before this made busy. */
	ASSERT_EQ(0, card_works());
	baseline_take(&self->base);
	ASSERT_EQ(0, life_begin(&self->l));
	self->generation = self->l.q.status->generation;
	log_mark();
}

FIXTURE_TEARDOWN(sleep)
{
	life_end(&self->l);
	EXPECT_EQ(0, card_works());
	EXPECT_EQ(0, back_to_baseline(&self->base));
}

static int round_of(struct life *l, uint64_t salt, enum way way)
{
	char why[256] = "";
	int ret = life_round(l, salt << 16, way, why, sizeof(why));

	if (ret)
		fprintf(stderr, "# round: %d %s\n", ret, why);
	return ret;
}

/* Contexts, queues and what is in card memory are there afterwards, and all ways to work. */
TEST_F_TIMEOUT(sleep, idle, 300)
{
	struct spyre_cb cb;
	unsigned int i;

	EXPECT_EQ(0, round_of(&self->l, 1, POLL));
	for (i = 1; i <= 3; i++) {
		cb = cb_fill(self->l.a, PAGE2M, 0x1111 * i);
		EXPECT_EQ(0, queue_wait(&self->l.q, queue_submit(&self->l.q, &cb), WAIT_MS));
		ASSERT_EQ(0, sleep_once());
		memset(self->l.out, 0, PAGE2M);
		cb = cb_dma(SPYRE_CB_DMAO, self->l.out_at, self->l.a, PAGE2M);
		EXPECT_EQ(0, queue_wait(&self->l.q, queue_submit(&self->l.q, &cb), WAIT_MS));
		EXPECT_EQ(0x1111 * i, self->l.out[0]);
		EXPECT_EQ(0, memcmp(self->l.out, self->l.out + 1, PAGE2M - 8));
		EXPECT_EQ(0, round_of(&self->l, 2 + i, i % WAYS));
	}
	EXPECT_FALSE(life_lost(&self->l));
	EXPECT_EQ(self->generation, self->l.q.status->generation);
	EXPECT_FALSE(log_has("card memory was lost"));
	EXPECT_FALSE(log_has("reset"));
}

struct sleeper {
	struct life *l;
	uint32_t value;
	int tid;
	int ret;
};

static void *sleep_in_wait(void *arg)
{
	struct sleeper *s = arg;

	__atomic_store_n(&s->tid, (int)gettid(), __ATOMIC_RELEASE);
	s->ret = wait_queue(s->l->fd, s->l->q.id, s->value, after_ms(PATIENCE_MS));
	return NULL;
}

/*
 * Copies of a queue and of a SUBMIT end as if nothing had been. A job that never ends and a WAIT
 * for what has not come have no boundary to stop at: they are lost, who waits for them is told, and
 * their queues go on after a reset.
 */
TEST_F_TIMEOUT(sleep, queues_in_flight, 300)
{
	struct sleeper s = { .l = &self->l };
	struct spyre_cb cb, endless;
	struct drm_spyre_queue_id id;
	uint32_t out, entry, copies = 0;
	struct life busy;
	pthread_t thread;
	struct queue q;
	int i;

	ASSERT_EQ(0, life_begin(&busy));
	/* A job of another context, on the cores for longer than the driver waits. */
	ASSERT_EQ(0, job_load(busy.fd, &busy.q, JOB_ENDLESS, NULL, &endless));
	entry = queue_submit(&busy.q, &endless);
	EXPECT_EQ(-ETIME, queue_wait(&busy.q, entry, 500));
	ASSERT_EQ(entry + 1, busy.q.status->fetched);

	self->l.out[0] = 0;
	cb = cb_wait_host(self->l.out_at, 1);
	cb.flags |= SPYRE_CB_F_INTERRUPT;
	s.value = queue_submit(&self->l.q, &cb) + 1;
	ASSERT_EQ(0, pthread_create(&thread, NULL, sleep_in_wait, &s));
	ASSERT_EQ(0, thread_sleeps(&s.tid));
	out = syncobj(self->l.fd);
	ASSERT_NE(0, out);
	ASSERT_EQ(0, queue_open(self->l.fd, 64, 1, &q));
	cb = cb_dma(SPYRE_CB_DMAI, self->l.a, self->l.in_at, PAGE2M);
	for (i = 0; i < 32; i++)
		copies = queue_submit(&q, &cb);
	/* Behind them in the engine. */
	cb = cb_plain(cb);
	ASSERT_EQ(0, submit(self->l.fd, &cb, 1, 0, 0, 0, out, 0));

	ASSERT_EQ(0, sleep_once());

	EXPECT_EQ(0, queue_wait(&q, copies, PATIENCE_MS));
	EXPECT_EQ(SPYRE_ERR_RESET, queue_wait(&busy.q, entry, WAIT_MS));
	id = (struct drm_spyre_queue_id){ .queue = busy.q.id };
	EXPECT_EQ(0, call(busy.fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id));
	EXPECT_EQ(0, round_of(&busy, 9, POLL));
	pthread_join(thread, NULL);
	EXPECT_TRUE(s.ret == 0 || s.ret == -EIO) TH_LOG("%d", s.ret);
	EXPECT_EQ(SPYRE_ERR_RESET, self->l.q.status->error);
	id = (struct drm_spyre_queue_id){ .queue = self->l.q.id };
	EXPECT_EQ(0, call(self->l.fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id));
	EXPECT_EQ(0, sync_end(self->l.fd, out, 0, WAIT_MS));
	EXPECT_EQ(0, round_of(&self->l, 10, SLEEP));
	EXPECT_FALSE(life_lost(&self->l) || life_lost(&busy));
	queue_unmap(&q);
	life_end(&busy);
}

TEST_HARNESS_MAIN
