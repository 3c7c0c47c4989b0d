// SPDX-License-Identifier: MIT
/*
 * Isolation. In each case one process, the attacker, tries to read, write, stop or starve another
 * one, the victim, by a means of its own. A case holds when the attacker got the stated refusal,
 * the victim's data is what it was, and the victim's queue goes on. Documentation/isolation.rst
 * lists the attempts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "../jobs.h"
#include "spyre_test.h"

#define SIZE		(4 * MB)
#define SECRET		0x5ec2e75ec2e75ec2ull
#define FENCE_AT	(SIZE - 4096)	/* a word of the host buffer that no copy touches */
#define FENCE_IS	7ull
#define UID_A		65534
#define UID_B		65533

/* What an attacker knows of its victim: everything that can be known. */
struct target {
	uint32_t host, dev, queue;
	uint64_t hmva, dmva, bootaddr;
	uint64_t ring, status, doorbell;	/* mmap offsets */
};

/* In the attacker: 0 or the line that did not hold. */
#define MUST(cond) do { if (!(cond)) return __LINE__; } while (0)

FIXTURE(iso) {
	int fd;
	struct queue q;
	struct target t;
	uint64_t *p;		/* host buffer */
	uint32_t back;		/* another host buffer, to look at device memory */
	uint64_t back_hmva, *look;
	struct spyre_cb job;	/* moves the stick at dmva to dmva + 1 MiB */
	struct baseline base;
};

static void fill_words(uint64_t *p, uint64_t bytes, uint64_t value)
{
	uint64_t i;

	for (i = 0; i < bytes / 8; i++)
		p[i] = value;
}

static uint64_t count_words(const uint64_t *p, uint64_t bytes, uint64_t value)
{
	uint64_t i, n = 0;

	for (i = 0; i < bytes / 8; i++)
		n += p[i] == value;
	return n;
}

FIXTURE_SETUP(iso)
{
	struct drm_spyre_queue_create c = { .entries = 64, .priority = 1 };
	uint64_t sym[2];
	uint32_t unused;
	struct spyre_cb cb;
	unsigned int i;

	baseline_take(&self->base);
	self->fd = card_open();
	ASSERT_GE(self->fd, 0);
	/* So that no handle of the victim is by chance a valid one of the attacker. */
	for (i = 0; i < 40; i++)
		ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &unused));
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &self->t.host));
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_DEVICE, &self->t.dev));
	ASSERT_EQ(0, bo_create(self->fd, SIZE, DRM_SPYRE_BO_HOST, &self->back));
	ASSERT_EQ(0, vm_map(self->fd, self->t.host, 0, 0, &self->t.hmva));
	ASSERT_EQ(0, vm_map(self->fd, self->t.dev, 0, 0, &self->t.dmva));
	ASSERT_EQ(0, vm_map(self->fd, self->back, 0, 0, &self->back_hmva));
	self->p = bo_map(self->fd, self->t.host, SIZE, PROT_READ | PROT_WRITE);
	self->look = bo_map(self->fd, self->back, SIZE, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, self->p);
	ASSERT_NE(NULL, self->look);
	/* A first queue, so that its offsets can be told to the attacker. */
	ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c));
	self->t.ring = c.ring_offset;
	self->t.status = c.status_offset;
	self->t.doorbell = c.doorbell_offset;
	self->t.queue = c.queue;
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &self->q));
	fill_words(self->p, SIZE, SECRET);
	self->p[FENCE_AT / 8] = FENCE_IS;
	cb = cb_fill(self->t.dmva, SIZE, SECRET);
	ASSERT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &cb), WAIT_MS));
	sym[0] = self->t.dmva;
	sym[1] = self->t.dmva + MB;
	ASSERT_EQ(0, job_load(self->fd, &self->q, JOB_COPY, sym, &self->job));
	self->t.bootaddr = self->job.u.compute.bootaddr;
}

FIXTURE_TEARDOWN_PARENT(iso)
{
	EXPECT_EQ(0, back_to_baseline(&self->base));
}

typedef int attack_fn(const struct target *t);

static pid_t start(attack_fn *fn, const struct target *t, uid_t uid)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (uid && (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		_exit(255);
	/* Whatever becomes of the victim, no attacker stays behind. A change of uid clears it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* An exit status has 8 bits; the line goes to stderr. */
	{
		int line = fn(t);

		if (line)
			fprintf(stderr, "# attacker: line %d did not hold (%m)\n", line);
		_exit(!!line);
	}
}

static int end(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static int attack(attack_fn *fn, const struct target *t)
{
	return end(start(fn, t, 0));
}

/* The node is for root and a group: attackers with a uid of their own are let in. Its number may be any. */
static int open_node(void)
{
	int ret = -1;
	size_t i;
	glob_t g;

	if (glob("/dev/accel/accel*", 0, NULL, &g))
		return -1;
	for (i = 0; i < g.gl_pathc; i++)
		ret = chmod(g.gl_pathv[i], 0666);
	globfree(&g);
	return ret;
}

/* Data, fences, queue and a job: all as before. */
#define VICTIM_IS_WELL() do { \
	struct spyre_cb _cb = cb_dma(SPYRE_CB_DMAO, self->back_hmva, self->t.dmva, SIZE); \
	EXPECT_EQ(FENCE_IS, self->p[FENCE_AT / 8]); \
	EXPECT_EQ(SIZE / 8 - 1, count_words(self->p, SIZE, SECRET)); \
	fill_words(self->look, SIZE, 0); \
	ASSERT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &_cb), WAIT_MS)); \
	EXPECT_EQ(SIZE / 8, count_words(self->look, SIZE, SECRET)); \
	ASSERT_EQ(0, queue_wait(&self->q, queue_submit(&self->q, &self->job), WAIT_MS)); \
	EXPECT_EQ(0, self->q.status->error); \
} while (0)

/* --- The attacker's own means ------------------------------------------------------------- */

struct own {
	int fd;
	struct queue q;
	uint32_t host, dev;
	uint64_t hmva, dmva;
	uint64_t *p;
};

/* One page of host memory and 2 MiB of the card in segment 3: nothing that the victim has. */
static int own_open(struct own *o)
{
	o->fd = card_open();
	MUST(o->fd >= 0);
	MUST(!bo_create(o->fd, 4096, DRM_SPYRE_BO_HOST, &o->host));
	MUST(!bo_create(o->fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &o->dev));
	MUST(!vm_map(o->fd, o->host, 0, 0, &o->hmva));
	MUST(!vm_map(o->fd, o->dev, 0, 3, &o->dmva));
	o->p = bo_map(o->fd, o->host, 4096, PROT_READ | PROT_WRITE);
	MUST(o->p);
	MUST(!queue_open(o->fd, 64, 1, &o->q));
	return 0;
}

static int reset(struct queue *q)
{
	struct drm_spyre_queue_id id = { .queue = q->id };

	return call(q->fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id);
}

/* True: the control block ended with the status, and with the syndrome if that is not 0. */
static bool ends(struct queue *q, const struct spyre_cb *cb, uint32_t status, uint32_t syndrome)
{
	uint32_t i = queue_submit(q, cb);
	int ret = queue_wait(q, i, WAIT_MS);
	const volatile struct spyre_rb *rb = &q->response[i & (q->entries - 1)];

	if (ret != (int)status)
		fprintf(stderr, "# type %u ended with %d, not %u\n", cb->type, ret, status);
	if (ret != (int)status || (syndrome && rb->rb_hmierr_syndrome != syndrome))
		return false;
	return !status || !reset(q);
}

/* --- Addresses of another context --------------------------------------------------------- */

static int copy_by_address(const struct target *t)
{
	const uint32_t none = SPYRE_SYN_PAGE_FAULT;
	struct spyre_cb cb;
	struct own o;

	MUST(!own_open(&o));
	/* The addresses are real, and nothing of the attacker lies there. */
	MUST(t->dmva != o.dmva && t->hmva + MB > o.hmva + 4096);
	cb = cb_dma(SPYRE_CB_DMAO, o.hmva, t->dmva, 4096);
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	cb = cb_dma(SPYRE_CB_DMAI, t->dmva, o.hmva, 4096);
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	cb = cb_dma(SPYRE_CB_DMAI, o.dmva, t->hmva + MB, 4096);
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	cb = cb_dma(SPYRE_CB_DMAO, t->hmva + MB, o.dmva, 4096);
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	cb = cb_dma(SPYRE_CB_DMAX, o.dmva, t->dmva, 4096);
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	cb = cb_dma(SPYRE_CB_DMAX, t->dmva, o.dmva, 4096);
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	cb = cb_dma(SPYRE_CB_DMAX, t->hmva + MB, o.dmva, 4096);
	cb.flags |= SPYRE_CB_F_DST_HOST;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	cb = cb_fill(t->dmva, 4096, 0);
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	/* A copy that begins in memory of its own and runs on into the next pages. */
	cb = cb_dma(SPYRE_CB_DMAX, o.dmva, o.dmva, 2 * PAGE2M);
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	/* A list in the victim's memory, and a list of its own that names it. */
	cb = (struct spyre_cb){ .type = SPYRE_CB_DMAI, .flags = SPYRE_CB_F_LIST };
	cb.u.list.list = t->hmva + MB;
	cb.u.list.entries = 1;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	*(struct spyre_dma_desc *)o.p = (struct spyre_dma_desc){
		.dst = o.dmva, .src = t->hmva + MB, .bytes = 4096, .ndims = 1,
	};
	cb.u.list.list = o.hmva;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	/* Strides that reach it from an address of its own. */
	cb = cb_dma(SPYRE_CB_DMAI, o.dmva, o.hmva, 128);
	cb.u.dma.ndims = 2;
	cb.u.dma.count[0] = 2;
	cb.u.dma.dst_stride[0] = t->dmva - o.dmva;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, none));
	return 0;
}

TEST_F(iso, copy_by_address)
{
	EXPECT_EQ(0, attack(copy_by_address, &self->t));
	VICTIM_IS_WELL();
}

/* At the same addresses everybody finds their own memory. */
static int same_addresses(const struct target *t)
{
	uint64_t dmva = t->dmva, *p, hmva;
	struct spyre_cb cb;
	uint32_t dev, host;
	struct own o;

	MUST(!own_open(&o));
	MUST(!bo_create(o.fd, SIZE, DRM_SPYRE_BO_DEVICE, &dev));
	MUST(!bo_create(o.fd, SIZE, DRM_SPYRE_BO_HOST, &host));
	MUST(!vm_map(o.fd, dev, DRM_SPYRE_VM_FIXED, 0, &dmva));
	MUST(!vm_map(o.fd, host, 0, 0, &hmva));
	p = bo_map(o.fd, host, SIZE, PROT_READ | PROT_WRITE);
	MUST(p);
	fill_words(p, SIZE, 1);
	cb = cb_dma(SPYRE_CB_DMAO, hmva, t->dmva, SIZE);
	MUST(ends(&o.q, &cb, SPYRE_OK, 0));
	MUST(count_words(p, SIZE, 0) == SIZE / 8);
	cb = cb_fill(t->dmva, SIZE, 0xbad);
	MUST(ends(&o.q, &cb, SPYRE_OK, 0));
	return 0;
}

TEST_F(iso, same_addresses)
{
	EXPECT_EQ(0, attack(same_addresses, &self->t));
	VICTIM_IS_WELL();
}

static int program_by_address(const struct target *t)
{
	uint64_t at[2];
	struct spyre_cb cb;
	struct own o;

	MUST(!own_open(&o));
	at[0] = t->dmva;
	at[1] = o.dmva;
	MUST(!job_load(o.fd, &o.q, JOB_COPY, at, &cb));
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	at[0] = o.dmva;
	at[1] = t->dmva;
	MUST(!job_load(o.fd, &o.q, JOB_COPY, at, &cb));
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	/* Symbols that lie in the victim's memory. */
	cb.u.compute.symbols = t->hmva + MB;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	cb.flags &= ~SPYRE_CB_F_SYM_HOST;
	cb.u.compute.symbols = t->dmva;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	return 0;
}

TEST_F(iso, program_by_address)
{
	EXPECT_EQ(0, attack(program_by_address, &self->t));
	VICTIM_IS_WELL();
}

static int victims_program(const struct target *t)
{
	struct spyre_cb cb = {
		.type = SPYRE_CB_COMPUTE, .flags = SPYRE_CB_F_RESPONSE | SPYRE_CB_F_BARRIER,
	};
	struct own o;

	MUST(!own_open(&o));
	cb.u.compute.bootaddr = t->bootaddr;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	return 0;
}

TEST_F(iso, victims_program)
{
	EXPECT_EQ(0, attack(victims_program, &self->t));
	VICTIM_IS_WELL();
}

/* Nothing in a control block names a context: what is left of its words must be 0. */
static int spare_words(const struct target *t)
{
	struct spyre_cb nop = cb_nop(), cb;
	unsigned int i;
	struct own o;

	MUST(!own_open(&o));
	for (i = 0; i < 12; i++) {
		cb = nop;
		cb.u.raw[i] = 1;
		MUST(ends(&o.q, &cb, SPYRE_ERR_BAD_CB, 0));
	}
	cb = nop;
	cb.reserved0 = 1;
	MUST(ends(&o.q, &cb, SPYRE_ERR_BAD_CB, 0));
	cb = nop;
	cb.reserved1 = 1;
	MUST(ends(&o.q, &cb, SPYRE_ERR_BAD_CB, 0));
	return 0;
}

TEST_F(iso, spare_words)
{
	EXPECT_EQ(0, attack(spare_words, &self->t));
	VICTIM_IS_WELL();
}

/* --- Handles and ids ---------------------------------------------------------------------- */

static int foreign_handles(const struct target *t)
{
	struct drm_spyre_bo_info info = { .handle = t->host };
	struct drm_spyre_bo_mmap map = { .handle = t->host };
	struct drm_prime_handle prime = { .handle = t->host, .flags = O_CLOEXEC };
	struct drm_spyre_queue_id id = { .queue = t->queue };
	struct drm_gem_open flink = { .name = 1 };
	uint64_t addr;
	struct own o;

	MUST(!own_open(&o));
	/* Its own queue has the number of the victim's first one. */
	MUST(!queue_close(&o.q));
	MUST(call(o.fd, DRM_IOCTL_SPYRE_BO_INFO, &info) == -ENOENT);
	MUST(call(o.fd, DRM_IOCTL_SPYRE_BO_MMAP, &map) == -ENOENT);
	MUST(vm_map(o.fd, t->host, 0, 0, &addr) == -ENOENT);
	MUST(vm_map(o.fd, t->dev, 0, 1, &addr) == -ENOENT);
	MUST(wait_fence(o.fd, t->host, FENCE_AT, 0, 0) == -ENOENT);
	MUST(bo_close(o.fd, t->host) == -EINVAL);
	MUST(call(o.fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime) == -ENOENT);
	MUST(call(o.fd, DRM_IOCTL_GEM_OPEN, &flink) == -EINVAL);
	MUST(call(o.fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id) == -ENOENT);
	MUST(call(o.fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id) == -ENOENT);
	MUST(call(o.fd, DRM_IOCTL_SPYRE_QUEUE_KICK, &id) == -ENOENT);
	MUST(wait_queue(o.fd, t->queue, 0, 0) == -ENOENT);
	MUST(vm_unmap(o.fd, t->dmva, 0) == -ENOENT);
	MUST(vm_unmap(o.fd, t->hmva + MB, 1) == -ENOENT);
	return 0;
}

TEST_F(iso, foreign_handles)
{
	EXPECT_EQ(0, attack(foreign_handles, &self->t));
	VICTIM_IS_WELL();
}

/* A handle that was closed names nothing; what gets its number later is another, zeroed buffer. */
static int stale_handle(const struct target *t)
{
	struct drm_spyre_bo_info info = {};
	uint64_t addr, *p;
	uint32_t a, b;
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	MUST(!bo_create(o.fd, SIZE, DRM_SPYRE_BO_HOST, &a));
	p = bo_map(o.fd, a, SIZE, PROT_READ | PROT_WRITE);
	MUST(p);
	fill_words(p, SIZE, SECRET);
	munmap(p, SIZE);
	MUST(!bo_close(o.fd, a));
	info.handle = a;
	MUST(call(o.fd, DRM_IOCTL_SPYRE_BO_INFO, &info) == -ENOENT);
	MUST(vm_map(o.fd, a, 0, 0, &addr) == -ENOENT);
	MUST(wait_fence(o.fd, a, 0, 0, 0) == -ENOENT);
	MUST(bo_close(o.fd, a) == -EINVAL);
	MUST(!bo_create(o.fd, SIZE, DRM_SPYRE_BO_HOST, &b));
	p = bo_map(o.fd, b, SIZE, PROT_READ | PROT_WRITE);
	MUST(p);
	MUST(count_words(p, SIZE, 0) == SIZE / 8);
	return 0;
}

TEST_F(iso, stale_handle)
{
	EXPECT_EQ(0, attack(stale_handle, &self->t));
	VICTIM_IS_WELL();
}

/* Offsets for mmap() are one number space for all files: those of others are refused. */
static int guessed_offsets(const struct target *t)
{
	const uint64_t known[3] = { t->ring, t->status, t->doorbell };
	struct drm_spyre_bo_mmap m = {};
	uint64_t at, own = 0;
	unsigned int i;
	struct own o;
	void *p;

	MUST(!own_open(&o));
	for (i = 0; i < 3; i++) {
		p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, o.fd, known[i]);
		MUST(p == MAP_FAILED && errno == EACCES);
		p = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, o.fd, known[i]);
		MUST(p == MAP_FAILED && errno == EACCES);
	}
	m.handle = o.host;
	MUST(!call(o.fd, DRM_IOCTL_SPYRE_BO_MMAP, &m));
	/* All that lies below and a bit above: what can be mapped is the attacker's own. */
	for (at = 1ull << 32; at < t->doorbell + 64 * MB; at += 4096) {
		p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, o.fd, at);
		if (p == MAP_FAILED)
			continue;
		own++;
		munmap(p, 4096);
	}
	/* The first pages of its buffer, ring, status page and doorbell. */
	MUST(own == 4);
	return 0;
}

TEST_F_TIMEOUT(iso, guessed_offsets, 120)
{
	EXPECT_EQ(0, attack(guessed_offsets, &self->t));
	VICTIM_IS_WELL();
}

/* --- Doorbells, status pages, fences ------------------------------------------------------ */

static int ring_for_others(const struct target *t)
{
	unsigned int i;
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	for (i = 0; i < 1024; i++)
		o.q.doorbell[i] = i * 0x01010101u;
	/* A mapping of its doorbell is one page long and does not grow. */
	MUST(mremap((void *)o.q.doorbell, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED);
	return 0;
}

TEST_F(iso, ring_for_others)
{
	uint32_t done = self->q.status->done, fetched = self->q.status->fetched;

	/* Entries that the victim has written and not submitted. */
	self->q.ring[self->q.tail & (self->q.entries - 1)] = cb_fill(self->t.dmva, SIZE, 0);
	EXPECT_EQ(0, attack(ring_for_others, &self->t));
	EXPECT_EQ(done, self->q.status->done);
	EXPECT_EQ(fetched, self->q.status->fetched);
	VICTIM_IS_WELL();
}

static int pipes[2][2];

/* Keeps the doorbell of a queue that is gone while somebody else gets its page. */
static int keep_doorbell(const struct target *t)
{
	struct drm_spyre_queue_id id;
	struct own o;
	char c = 0;

	(void)t;
	MUST(!own_open(&o));
	*o.q.doorbell = 0;
	id = (struct drm_spyre_queue_id){ .queue = o.q.id };
	MUST(!call(o.fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id));
	MUST(write(pipes[0][1], &c, 1) == 1);
	MUST(read(pipes[1][0], &c, 1) == 1);
	o.q.doorbell[0] = 1000;
	/* The card's doorbells read 0: this is a page of nobody. */
	MUST(o.q.doorbell[0] == 1000);
	return 0;
}

TEST_F(iso, stale_doorbell)
{
	struct spyre_cb cb = cb_nop();
	struct queue q[20];
	char c = 0;
	pid_t pid;
	int i;

	ASSERT_EQ(0, pipe(pipes[0]));
	ASSERT_EQ(0, pipe(pipes[1]));
	pid = start(keep_doorbell, &self->t, 0);
	ASSERT_GT(pid, 0);
	close(pipes[0][1]);
	ASSERT_EQ(1, read(pipes[0][0], &c, 1));
	/* More than a block of them: the lowest free block, the attacker's, is among them. */
	for (i = 0; i < 20; i++)
		ASSERT_EQ(0, queue_open(self->fd, 64, 1, &q[i]));
	ASSERT_EQ(1, write(pipes[1][1], &c, 1));
	EXPECT_EQ(0, end(pid));
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(0, *q[i].doorbell);
		EXPECT_EQ(0, q[i].status->fetched);
		EXPECT_EQ(0, queue_wait(&q[i], queue_submit(&q[i], &cb), WAIT_MS));
	}
	VICTIM_IS_WELL();
}

static int write_status(const struct target *t)
{
	struct drm_spyre_queue_create c = { .entries = 64 };
	uint64_t junk = ~0ull;
	struct own o;
	void *p;
	int mem;

	(void)t;
	MUST(!own_open(&o));
	MUST(!call(o.fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c));
	p = mmap(NULL, c.status_size, PROT_READ | PROT_WRITE, MAP_SHARED, o.fd, c.status_offset);
	MUST(p == MAP_FAILED && errno == EACCES);
	p = mmap(NULL, c.status_size, PROT_WRITE, MAP_SHARED, o.fd, c.status_offset);
	MUST(p == MAP_FAILED && errno == EACCES);
	p = mmap(NULL, c.status_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, o.fd, c.status_offset);
	MUST(p == MAP_FAILED);
	p = mmap(NULL, c.status_size, PROT_READ, MAP_SHARED, o.fd, c.status_offset);
	MUST(p != MAP_FAILED);
	MUST(mprotect(p, 4096, PROT_READ | PROT_WRITE) < 0 && errno == EACCES);
	MUST(mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0 && errno == EACCES);
	/* The way of debuggers, which asks no protection bit. */
	mem = open("/proc/self/mem", O_RDWR);
	MUST(mem >= 0);
	MUST(pwrite(mem, &junk, sizeof(junk), (off_t)(uintptr_t)p) < 0);
	MUST(((volatile struct spyre_queue_status *)p)->done == 0);
	MUST(((volatile struct spyre_queue_status *)p)->fetched == 0);
	return 0;
}

TEST_F(iso, write_status)
{
	EXPECT_EQ(0, attack(write_status, &self->t));
	VICTIM_IS_WELL();
}

static int forge_fences(const struct target *t)
{
	uint64_t fence = t->hmva + FENCE_AT;
	struct spyre_cb cb;
	struct own o;

	MUST(!own_open(&o));
	cb = cb_signal_host(fence, 100);
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, 0));
	cb.flags |= SPYRE_CB_F_RESPONSE;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	cb = cb_signal_host(t->dmva, 1);
	cb.flags = SPYRE_CB_F_RESPONSE;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	cb.flags = SPYRE_CB_F_RESPONSE | SPYRE_CB_F_ADD;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	cb = cb_signal_host(fence, 0);
	cb.type = SPYRE_CB_TIMESTAMP;
	cb.flags = SPYRE_CB_F_HOST | SPYRE_CB_F_RESPONSE;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	/* To look is forbidden as well. */
	cb = cb_wait_host(fence, 0);
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, 0));
	/* A signal that then rings at an address of somebody else. */
	cb = cb_signal_host(o.hmva, 1);
	cb.flags |= SPYRE_CB_F_DOORBELL | SPYRE_CB_F_RESPONSE;
	cb.u.sync.doorbell = fence;
	cb.u.sync.doorbell_value = 100;
	MUST(ends(&o.q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	MUST(o.p[0] == 0);
	return 0;
}

TEST_F(iso, forge_fences)
{
	struct spyre_cb park = cb_wait_host(self->t.hmva + FENCE_AT, 50);
	struct queue q;
	uint32_t i;

	/* A queue of the victim that waits for the value which is to be forged. */
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &q));
	i = queue_submit(&q, &park);
	EXPECT_EQ(-ETIME, wait_fence(self->fd, self->t.host, FENCE_AT, FENCE_IS + 1,
				     after_ms(100)));
	EXPECT_EQ(0, attack(forge_fences, &self->t));
	EXPECT_EQ(-ETIME, wait_fence(self->fd, self->t.host, FENCE_AT, FENCE_IS + 1,
				     after_ms(100)));
	EXPECT_EQ(-ETIME, queue_wait(&q, i, 100));
	EXPECT_EQ(0, queue_close(&q));
	VICTIM_IS_WELL();
}

/* What the victim did wrong is its own business. */
static int read_records(const struct target *t)
{
	struct drm_spyre_ras rec[16];
	struct drm_spyre_ras_read r = { .records = (uintptr_t)rec, .count = 16 };
	struct drm_spyre_usage u;
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	MUST(!call(o.fd, DRM_IOCTL_SPYRE_RAS_READ, &r));
	MUST(r.count == 0);
	MUST(!query(o.fd, DRM_SPYRE_QUERY_USAGE, &u, sizeof(u)));
	MUST(u.cbs == 0 && u.errors == 0);
	return 0;
}

TEST_F(iso, read_records)
{
	struct spyre_cb cb = cb_fill(6 * SPYRE_SEGMENT_SIZE, 128, 0);
	struct drm_spyre_ras rec[16];
	struct drm_spyre_ras_read r = { .records = (uintptr_t)rec, .count = 16 };
	int i;

	ASSERT_TRUE(ends(&self->q, &cb, SPYRE_ERR_FAULT, SPYRE_SYN_PAGE_FAULT));
	for (i = 0, r.count = 0; i < 100 && !r.count; i++) {
		usleep(20000);
		r.count = 16;
		ASSERT_EQ(0, call(self->fd, DRM_IOCTL_SPYRE_RAS_READ, &r));
	}
	EXPECT_NE(0, r.count);
	EXPECT_EQ(0, attack(read_records, &self->t));
	VICTIM_IS_WELL();
}

/* --- Memory that somebody else had -------------------------------------------------------- */

#define RECYCLED	(16 * MB)
#define MAPPABLE	(DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE)

/* Takes device pages, leaves the secret in them and dies. */
static int leave_secret(const struct target *t)
{
	uint64_t dmva;
	struct spyre_cb cb;
	uint64_t *p;
	uint32_t dev;
	struct own o;
	char c = 0;

	(void)t;
	MUST(!own_open(&o));
	MUST(!bo_create(o.fd, RECYCLED, MAPPABLE, &dev));
	MUST(!vm_map(o.fd, dev, 0, 0, &dmva));
	cb = cb_fill(dmva, RECYCLED, SECRET);
	MUST(ends(&o.q, &cb, SPYRE_OK, 0));
	p = bo_map(o.fd, dev, RECYCLED, PROT_READ);
	MUST(p && p[RECYCLED / 8 - 1] == SECRET);
	MUST(write(pipes[0][1], &c, 1) == 1);
	pause();
	return __LINE__;
}

TEST_F(iso, recycled_device_pages)
{
	struct drm_spyre_memory_info m;
	uint32_t all, dev;
	uint64_t *p;
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(pipes[0]));
	pid = start(leave_secret, &self->t, 0);
	ASSERT_GT(pid, 0);
	close(pipes[0][1]);
	ASSERT_EQ(1, read(pipes[0][0], &c, 1));
	/* With all other mappable memory taken, what comes free next is what the dead one had. */
	m = memory_info(self->fd);
	ASSERT_EQ(0, bo_create(self->fd, m.mappable_total - m.mappable_used, MAPPABLE, &all));
	ASSERT_EQ(-ENOSPC, bo_create(self->fd, PAGE2M, MAPPABLE, &dev));
	kill(pid, SIGKILL);
	EXPECT_EQ(SIGKILL, end(pid));
	ASSERT_EQ(0, bo_create(self->fd, RECYCLED, MAPPABLE, &dev));
	p = bo_map(self->fd, dev, RECYCLED, PROT_READ);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(RECYCLED / 8, count_words(p, RECYCLED, 0));
	VICTIM_IS_WELL();
}

/* --- Scratchpads and registers of the cores ----------------------------------------------- */

#define LX_WORDS 32u

/* Cores 0 and 1 load a part of LX from there, or store it there. */
static struct spyreprog_job *lx_job(uint64_t at, bool write)
{
	struct spyreprog_job *j = spyreprog_job_new();
	unsigned int core;
	int p, u;

	for (core = 0; core < 2; core++) {
		p = spyreprog_job_program(j, write ? SPYRE_UNIT_L3LU : SPYRE_UNIT_L3SU);
		sp_l3(j, p, write ? SPYRE_OP_L3_LDU : SPYRE_OP_L3_STU, SPYRE_LAR0, SPYRE_REG_NONE,
		      SPYRE_EAR0, LX_WORDS, 0, 0, 0);
		u = spyreprog_job_unit(j, core, write ? SPYRE_UNIT_L3LU : SPYRE_UNIT_L3SU, 0, p);
		spyreprog_job_init(j, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, 0x1ff000);
		spyreprog_job_init(j, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, at + core * LX_WORDS * 128);
	}
	return j;
}

/*
 * Core 0 stores the first partial sums, the first vector register and L0 to @out, 6 sticks in all;
 * with @write it then fills them from @in.
 */
static struct spyreprog_job *registers_job(uint64_t in, uint64_t out, bool write)
{
	struct spyreprog_job *j = spyreprog_job_new();
	int l3lu = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
	int l3su = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
	int lxlu = spyreprog_job_program(j, SPYRE_UNIT_LXLU);
	int lxsu = spyreprog_job_program(j, SPYRE_UNIT_LXSU);
	int pt = spyreprog_job_program(j, SPYRE_UNIT_PT);
	int pe = spyreprog_job_program(j, SPYRE_UNIT_PE);
	int l0lu = spyreprog_job_program(j, SPYRE_UNIT_L0LU);
	int l0su = spyreprog_job_program(j, SPYRE_UNIT_L0SU);
	const int a = SPYRE_LAR0, none = SPYRE_REG_NONE;
	int u;

	sp_l3(j, l3lu, SPYRE_OP_L3_LDU, a, none, SPYRE_EAR0, 6, 0, 0, 0);
	sp_send(j, l3lu, 60, 0);
	u = spyreprog_job_unit(j, 0, SPYRE_UNIT_L3LU, 0, l3lu);
	spyreprog_job_init(j, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, in);
	sp_wait(j, l3su, 61, 1);
	sp_l3(j, l3su, SPYRE_OP_L3_STU, a, none, SPYRE_EAR0, 6, 0, 0, 0);
	u = spyreprog_job_unit(j, 0, SPYRE_UNIT_L3SU, 0, l3su);
	spyreprog_job_init(j, u, a, SPYRE_NO_SYMBOL, MB);
	spyreprog_job_init(j, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, out);
	sp_wait(j, lxlu, 60, 1);
	sp_pt_psout(j, pt, SPYRE_FIFO_PT_LXSU, 1, 0);
	sp_vec(j, pe, SPYRE_OP_MOV, SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU), 0, 0, 0, 1, 0,
	       SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
	sp_ld(j, l0lu, a, none, SPYRE_FIFO_L0LU_PE, 2, 128, 0);
	sp_vec(j, pe, SPYRE_OP_MOV, SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU),
	       SPYRE_OPND_FIFO(SPYRE_FIFO_L0LU_PE), 0, 0, 1, 0,
	       SPYRE_FMTS(SPYRE_IEEE_INT32, 0, 0, SPYRE_IEEE_INT32));
	sp_st(j, lxsu, a, none, SPYRE_FIFO_PT_LXSU, 2, 128, 256);
	sp_st(j, lxsu, a, none, SPYRE_FIFO_PE_LXSU, 4, 128, 0);
	sp_send(j, l0lu, 9, 0);
	sp_wait(j, l0su, 9, 1);
	if (write) {
		sp_ld(j, lxlu, a, none, SPYRE_FIFO_LXLU_PT, 2, 128, 0);
		sp_ld(j, lxlu, a, none, SPYRE_FIFO_LXLU_PE0, 2, 128, 0);
		sp_ld(j, lxlu, a, none, SPYRE_FIFO_LXLU_L0SU, 2, 128, 0);
		sp_pt_psin(j, pt, SPYRE_IEEE_INT32, SPYRE_FIFO_LXLU_PT, 1, 0);
		sp_vec(j, pe, SPYRE_OP_MOV, 0, SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0), 0, 0, 1, 0,
		       SPYRE_FMTS(SPYRE_IEEE_INT32, 0, 0, 0));
		sp_st(j, l0su, a, none, SPYRE_FIFO_LXLU_L0SU, 2, 128, 0);
	}
	sp_send(j, lxsu, 61, 0);
	spyreprog_job_unit(j, 0, SPYRE_UNIT_LXLU, 0, lxlu);
	u = spyreprog_job_unit(j, 0, SPYRE_UNIT_LXSU, 0, lxsu);
	spyreprog_job_init(j, u, a, SPYRE_NO_SYMBOL, MB);
	spyreprog_job_unit(j, 0, SPYRE_UNIT_PT, 0, pt);
	spyreprog_job_unit(j, 0, SPYRE_UNIT_PE, 0, pe);
	spyreprog_job_unit(j, 0, SPYRE_UNIT_L0LU, 0, l0lu);
	spyreprog_job_unit(j, 0, SPYRE_UNIT_L0SU, 0, l0su);
	return j;
}

static int read_lx(const struct target *t)
{
	struct spyre_cb cb, fill, out;
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	MUST(!job_put(o.fd, &o.q, lx_job(o.dmva, false), NULL, &cb));
	/* What the last job left, which was not one of its own. */
	cb.flags |= SPYRE_CB_F_KEEP_LX;
	MUST(ends(&o.q, &cb, SPYRE_ERR_LX_LOST, 0));
	cb.flags &= ~SPYRE_CB_F_KEEP_LX;
	fill = cb_fill(o.dmva, 2 * LX_WORDS * 128, 1);
	MUST(ends(&o.q, &fill, SPYRE_OK, 0));
	MUST(ends(&o.q, &cb, SPYRE_OK, 0));
	out = cb_dma(SPYRE_CB_DMAO, o.hmva, o.dmva, 4096);
	MUST(ends(&o.q, &out, SPYRE_OK, 0));
	MUST(count_words(o.p, 4096, 0) == 512);
	out.u.dma.src += LX_WORDS * 128;
	MUST(ends(&o.q, &out, SPYRE_OK, 0));
	MUST(count_words(o.p, 4096, 0) == 512);
	return 0;
}

/* Leaves LX full of what the victim is to take for its own. */
static int write_lx(const struct target *t)
{
	struct spyre_cb cb, fill;
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	fill = cb_fill(o.dmva, PAGE2M, 0xbad);
	MUST(ends(&o.q, &fill, SPYRE_OK, 0));
	MUST(!job_put(o.fd, &o.q, lx_job(o.dmva, true), NULL, &cb));
	MUST(ends(&o.q, &cb, SPYRE_OK, 0));
	return 0;
}

TEST_F(iso, scratchpad)
{
	struct own v = { .fd = self->fd, .q = self->q };
	struct spyre_cb write, keep, out;
	uint64_t at = self->t.dmva;
	uint32_t n = 2 * LX_WORDS * 128;

	ASSERT_EQ(0, job_put(v.fd, &v.q, lx_job(at, true), NULL, &write));
	ASSERT_EQ(0, job_put(v.fd, &v.q, lx_job(at + 2 * MB, false), NULL, &keep));
	keep.flags |= SPYRE_CB_F_KEEP_LX;
	/* The secret is in LX, and a job that is allowed to sees it there. */
	out = cb_fill(at + 2 * MB, n, 1);
	ASSERT_TRUE(ends(&v.q, &out, SPYRE_OK, 0));
	ASSERT_TRUE(ends(&v.q, &write, SPYRE_OK, 0));
	ASSERT_TRUE(ends(&v.q, &keep, SPYRE_OK, 0));
	out = cb_dma(SPYRE_CB_DMAO, self->back_hmva, at + 2 * MB, n);
	ASSERT_TRUE(ends(&v.q, &out, SPYRE_OK, 0));
	EXPECT_EQ(n / 8, count_words(self->look, n, SECRET));
	/* The attacker sees none of it, and the victim is told that it is gone. */
	ASSERT_TRUE(ends(&v.q, &write, SPYRE_OK, 0));
	EXPECT_EQ(0, attack(read_lx, &self->t));
	EXPECT_TRUE(ends(&v.q, &keep, SPYRE_ERR_LX_LOST, 0));
	/* Nor does the victim take the attacker's words for its own. */
	ASSERT_TRUE(ends(&v.q, &write, SPYRE_OK, 0));
	EXPECT_EQ(0, attack(write_lx, &self->t));
	EXPECT_TRUE(ends(&v.q, &keep, SPYRE_ERR_LX_LOST, 0));
	self->q = v.q;
	VICTIM_IS_WELL();
}

static int read_registers(const struct target *t)
{
	struct spyre_cb cb, fill, out;
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	MUST(!job_put(o.fd, &o.q, registers_job(o.dmva, o.dmva + MB, false), NULL, &cb));
	fill = cb_fill(o.dmva + MB, 4096, 1);
	MUST(ends(&o.q, &fill, SPYRE_OK, 0));
	MUST(ends(&o.q, &cb, SPYRE_OK, 0));
	out = cb_dma(SPYRE_CB_DMAO, o.hmva, o.dmva + MB, 6 * 128);
	MUST(ends(&o.q, &out, SPYRE_OK, 0));
	MUST(count_words(o.p, 6 * 128, 0) == 6 * 128 / 8);
	return 0;
}

TEST_F(iso, core_registers)
{
	struct own v = { .fd = self->fd, .q = self->q };
	struct spyre_cb cb;

	ASSERT_EQ(0, job_put(v.fd, &v.q, registers_job(self->t.dmva, self->t.dmva + 2 * MB, true), NULL, &cb));
	ASSERT_TRUE(ends(&v.q, &cb, SPYRE_OK, 0));
	EXPECT_EQ(0, attack(read_registers, &self->t));
	/* Its job stored the registers over a part of what VICTIM_IS_WELL() looks at. */
	cb = cb_fill(self->t.dmva, SIZE, SECRET);
	ASSERT_TRUE(ends(&v.q, &cb, SPYRE_OK, 0));
	self->q = v.q;
	VICTIM_IS_WELL();
}

/* Weights stay in XRF tiles: one that this job did not load is no tile. */
static struct spyreprog_job *weights_job(uint64_t in, bool load_tile)
{
	struct spyreprog_job *j = spyreprog_job_new();
	int l3lu = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
	int lxlu = spyreprog_job_program(j, SPYRE_UNIT_LXLU);
	int pt = spyreprog_job_program(j, SPYRE_UNIT_PT), u;

	sp_l3(j, l3lu, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 32, 0, 4096, 4096);
	sp_l3(j, l3lu, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 32, 0, 4096, 4096);
	sp_send(j, l3lu, 60, 0);
	u = spyreprog_job_unit(j, 0, SPYRE_UNIT_L3LU, 0, l3lu);
	spyreprog_job_init(j, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, in);
	sp_wait(j, lxlu, 60, 1);
	if (load_tile) {
		sp_ld(j, lxlu, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PTW, 64, 128, 0);
		sp_pt_ldw(j, pt, 5, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
	}
	sp_ld(j, lxlu, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PT, 1, 128, 0);
	sp_pt_mm(j, pt, 5, SPYRE_SEN169_FP16, false, SPYRE_FIFO_LXLU_PT, 1, 0);
	spyreprog_job_unit(j, 0, SPYRE_UNIT_LXLU, 0, lxlu);
	spyreprog_job_unit(j, 0, SPYRE_UNIT_PT, 0, pt);
	return j;
}

static int use_weights(const struct target *t)
{
	struct spyre_cb cb;
	struct own o;
	uint32_t i;

	(void)t;
	MUST(!own_open(&o));
	MUST(!job_put(o.fd, &o.q, weights_job(o.dmva, false), NULL, &cb));
	i = queue_submit(&o.q, &cb);
	MUST(queue_wait(&o.q, i, WAIT_MS) == SPYRE_ERR_PROGRAM);
	MUST(o.q.response[i].err_code == SPYRE_PE_TILE);
	return 0;
}

TEST_F(iso, weights)
{
	struct own v = { .fd = self->fd, .q = self->q };
	struct spyre_cb cb;

	/* With its own load the same job works. */
	ASSERT_EQ(0, job_put(v.fd, &v.q, weights_job(self->t.dmva, true), NULL, &cb));
	ASSERT_TRUE(ends(&v.q, &cb, SPYRE_OK, 0));
	self->q = v.q;
	EXPECT_EQ(0, attack(use_weights, &self->t));
	VICTIM_IS_WELL();
}

/* --- Starving ----------------------------------------------------------------------------- */

#define FLOOD_QUEUES	8
/* Who is starved waits for ever; who is not may stand behind copies that take seconds. */
#define FLOOD_MS	100000

/* Control blocks that all attackers got done, and how many attackers have full queues. */
static volatile struct {
	uint64_t done, ready;
} *flooded;

static int flood(struct own *o, const struct spyre_cb *cb)
{
	struct queue q[FLOOD_QUEUES];
	uint32_t seen[FLOOD_QUEUES] = {};
	unsigned int i, round;

	for (i = 0; i < FLOOD_QUEUES; i++)
		MUST(!queue_open(o->fd, 64, 1, &q[i]));
	for (round = 0;; round++) {
		for (i = 0; i < FLOOD_QUEUES; i++) {
			uint32_t done = q[i].status->done;

			__atomic_fetch_add(&flooded->done, done - seen[i], __ATOMIC_RELAXED);
			seen[i] = done;
			MUST(!q[i].status->error);
			while (q[i].tail - q[i].status->fetched < q[i].entries)
				queue_submit(&q[i], cb);
		}
		if (!round)
			__atomic_fetch_add(&flooded->ready, 1, __ATOMIC_RELAXED);
		usleep(100);
	}
}

static int flood_tiny(const struct target *t)
{
	struct spyre_cb cb = { .type = SPYRE_CB_NOP };
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	return flood(&o, &cb);
}

/*
 * Runs of one stick, the dearest there are. A sixteenth of what a control block may move: a machine
 * with much else to do needs minutes for a whole one.
 */
static struct spyre_cb long_copy(uint32_t type, uint64_t dst, uint64_t src)
{
	struct spyre_cb cb = cb_dma(type, dst, src, 128);

	cb.u.dma.ndims = 2;
	cb.u.dma.count[0] = SPYRE_DMA_STICKS_MAX / 16;
	return cb;
}

static int flood_copies_in(const struct target *t)
{
	struct spyre_cb cb;
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	cb = long_copy(SPYRE_CB_DMAI, o.dmva, o.hmva);
	return flood(&o, &cb);
}

static int flood_copies_within(const struct target *t)
{
	struct spyre_cb cb;
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	cb = cb_fill(o.dmva, PAGE2M, 1);
	MUST(ends(&o.q, &cb, SPYRE_OK, 0));
	cb = long_copy(SPYRE_CB_DMAX, o.dmva + MB, o.dmva);
	return flood(&o, &cb);
}

/* Memory that nobody wrote is copied by other means. */
static int flood_copies_of_nothing(const struct target *t)
{
	struct spyre_cb cb;
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	cb = long_copy(SPYRE_CB_DMAX, o.dmva + MB, o.dmva);
	return flood(&o, &cb);
}

/* Two attackers at the highest priority that is open to all, the victim one class below. */
static void starve(struct __test_metadata *_metadata, FIXTURE_DATA(iso) *self, attack_fn *fn,
		   uint32_t type, unsigned int rounds)
{
	struct spyre_cb nop = cb_nop(), cb;
	uint64_t before;
	struct queue q;
	pid_t pid[2];
	unsigned int i;

	flooded = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)flooded);
	ASSERT_EQ(0, queue_open(self->fd, 64, 0, &q));
	cb = type == SPYRE_CB_DMAX ? cb_dma(type, self->t.dmva + MB, self->t.dmva, 4096) :
		cb_dma(type, self->t.dmva, self->t.hmva, 4096);
	for (i = 0; i < 2; i++)
		pid[i] = start(fn, &self->t, UID_A);
	for (i = 0; i < 600 && flooded->ready < 2; i++)
		usleep(100000);
	ASSERT_EQ(2, flooded->ready);
	before = flooded->done;
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, queue_wait(&q, queue_submit(&q, &nop), FLOOD_MS));
		ASSERT_EQ(0, queue_wait(&q, queue_submit(&q, &cb), FLOOD_MS));
	}
	/* It was a flood all the time. */
	for (i = 0; i < 600 && flooded->done == before; i++)
		usleep(100000);
	EXPECT_NE(before, flooded->done);
	for (i = 0; i < 2; i++) {
		kill(pid[i], SIGKILL);
		EXPECT_EQ(SIGKILL, end(pid[i]));
	}
	EXPECT_EQ(0, queue_close(&q));
}

TEST_F_TIMEOUT(iso, flood_of_tiny_blocks, 300)
{
	ASSERT_EQ(0, open_node());
	starve(_metadata, self, flood_tiny, SPYRE_CB_DMAI, 50);
	VICTIM_IS_WELL();
}

TEST_F_TIMEOUT(iso, flood_of_long_copies_in, 300)
{
	ASSERT_EQ(0, open_node());
	starve(_metadata, self, flood_copies_in, SPYRE_CB_DMAI, 2);
	VICTIM_IS_WELL();
}

/* There is one engine for these, which also clears memory for everybody. */
TEST_F_TIMEOUT(iso, flood_of_long_copies_within, 300)
{
	ASSERT_EQ(0, open_node());
	starve(_metadata, self, flood_copies_within, SPYRE_CB_DMAX, 2);
	VICTIM_IS_WELL();
}

TEST_F_TIMEOUT(iso, flood_of_copies_of_nothing, 300)
{
	ASSERT_EQ(0, open_node());
	starve(_metadata, self, flood_copies_of_nothing, SPYRE_CB_DMAX, 2);
	VICTIM_IS_WELL();
}

static int high_priority(const struct target *t)
{
	struct drm_spyre_queue_create c = { .entries = 64 };
	struct drm_spyre_ras_read r = { .flags = DRM_SPYRE_RAS_CARD };
	int fd = card_open();

	(void)t;
	MUST(fd >= 0);
	for (c.priority = 2; c.priority < SPYRE_PRIORITIES; c.priority++)
		MUST(call(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c) == -EPERM);
	MUST(call(fd, DRM_IOCTL_SPYRE_RAS_READ, &r) == -EPERM);
	c.priority = 1;
	MUST(!call(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c));
	return 0;
}

TEST_F(iso, high_priority)
{
	ASSERT_EQ(0, open_node());
	EXPECT_EQ(0, end(start(high_priority, &self->t, UID_A)));
	VICTIM_IS_WELL();
}

/* --- Using up what there is --------------------------------------------------------------- */

/* Says that it has all, and keeps it until the victim has tried. */
static int hold(void)
{
	char c = 0;

	MUST(write(pipes[0][1], &c, 1) == 1);
	MUST(read(pipes[1][0], &c, 1) == 1);
	return 0;
}

/* What anybody needs to begin: a context, memory of both kinds, a queue, work. */
static int begin_work(const struct target *t)
{
	struct spyre_cb cb;
	struct own o;

	(void)t;
	MUST(!own_open(&o));
	cb = cb_fill(o.dmva, 4096, 3);
	MUST(ends(&o.q, &cb, SPYRE_OK, 0));
	return 0;
}

/* The attacker takes all it can get; then another user begins, and the victim goes on. */
#define HOG(fn, other) do { \
	char _c = 0; \
	pid_t _pid; \
	ASSERT_EQ(0, open_node()); \
	ASSERT_EQ(0, pipe(pipes[0])); \
	ASSERT_EQ(0, pipe(pipes[1])); \
	_pid = start(fn, &self->t, UID_A); \
	ASSERT_GT(_pid, 0); \
	close(pipes[0][1]); \
	EXPECT_EQ(1, read(pipes[0][0], &_c, 1)); \
	EXPECT_EQ(0, end(start(other, &self->t, UID_B))); \
	VICTIM_IS_WELL(); \
	EXPECT_EQ(1, write(pipes[1][1], &_c, 1)); \
	EXPECT_EQ(0, end(_pid)); \
} while (0)

static int hog_contexts(const struct target *t)
{
	struct drm_spyre_limits l;
	uint32_t n, h;
	uint64_t addr;
	int fd, ret;

	(void)t;
	for (n = 0;; n++) {
		fd = card_open();
		MUST(fd >= 0);
		MUST(!bo_create(fd, 4096, DRM_SPYRE_BO_HOST, &h));
		ret = vm_map(fd, h, 0, 0, &addr);
		if (ret)
			break;
	}
	l = limits(fd);
	MUST(ret == -EDQUOT);
	MUST(n && n == l.contexts_user_max && n == l.contexts_user_used && n < l.contexts_max);
	return hold();
}

TEST_F_TIMEOUT(iso, all_contexts, 120)
{
	HOG(hog_contexts, begin_work);
}

static int hog_queues(const struct target *t)
{
	struct drm_spyre_queue_create c = { .entries = 64 };
	struct drm_spyre_limits l;
	int fd = card_open(), ret;
	uint32_t n;

	(void)t;
	MUST(fd >= 0);
	for (n = 0;; n++) {
		ret = call(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c);
		if (ret)
			break;
	}
	l = limits(fd);
	MUST(ret == -EDQUOT);
	MUST(n && n == l.queues_user_max && n == l.queues_user_used && n < l.queues_max);
	return hold();
}

TEST_F_TIMEOUT(iso, all_queues, 300)
{
	HOG(hog_queues, begin_work);
}

static int hog_device_memory(const struct target *t)
{
	struct drm_spyre_memory_info m;
	int fd = card_open();
	uint32_t h;

	(void)t;
	MUST(fd >= 0);
	m = memory_info(fd);
	MUST(bo_create(fd, m.total + PAGE2M, DRM_SPYRE_BO_DEVICE, &h) == -ENOSPC);
	MUST(!bo_create(fd, m.largest_free, DRM_SPYRE_BO_DEVICE, &h));
	MUST(bo_create(fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &h) == -ENOSPC);
	m = memory_info(fd);
	MUST(m.used == m.total && !m.largest_free);
	return hold();
}

/* Device memory has no quota: the other one is told, with the error of its own, and not hurt. */
static int no_device_memory(const struct target *t)
{
	int fd = card_open();
	uint32_t h;

	(void)t;
	MUST(fd >= 0);
	MUST(bo_create(fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &h) == -ENOSPC);
	MUST(!bo_create(fd, 4096, DRM_SPYRE_BO_HOST, &h));
	return 0;
}

TEST_F_TIMEOUT(iso, all_device_memory, 120)
{
	HOG(hog_device_memory, no_device_memory);
}

#define QUOTA "/sys/module/spyre/parameters/host_quota_percent"

static int hog_host_memory(const struct target *t)
{
	struct drm_spyre_queue_create c = { .entries = SPYRE_RING_MAX };
	struct drm_spyre_limits l;
	int fd = card_open(), ret;
	uint32_t h, n;

	(void)t;
	MUST(fd >= 0);
	for (n = 0;; n++) {
		ret = bo_create(fd, MB, DRM_SPYRE_BO_HOST, &h);
		if (ret)
			break;
	}
	l = limits(fd);
	MUST(ret == -EDQUOT);
	MUST(l.host_user_used == n * MB);
	MUST(l.host_user_used <= l.host_user_max && l.host_user_max - l.host_user_used < MB);
	/* Rings are host memory too. */
	MUST(call(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c) == -EDQUOT);
	/* What is given back can be had again: handles count from 1. */
	MUST(!bo_close(fd, n));
	MUST(limits(fd).host_user_used == (n - 1) * MB);
	MUST(!bo_create(fd, MB, DRM_SPYRE_BO_HOST, &h));
	return hold();
}

TEST_F_TIMEOUT(iso, all_host_memory, 120)
{
	char was[16];
	uint32_t h;

	ASSERT_EQ(0, read_file(QUOTA, was, sizeof(was)));
	ASSERT_EQ(0, write_file(QUOTA, "2"));
	HOG(hog_host_memory, begin_work);
	/* Who has CAP_SYS_RESOURCE may have more, but not more than the machine. */
	EXPECT_EQ(0, bo_create(self->fd, 64 * MB, DRM_SPYRE_BO_HOST, &h));
	EXPECT_GE(limits(self->fd).host_user_used, 64 * MB);
	EXPECT_EQ(-ENOMEM, bo_create(self->fd, 1ull << 37, DRM_SPYRE_BO_HOST, &h));
	EXPECT_EQ(0, write_file(QUOTA, was));
}

/* Runs into the limit of 32 MB: an error, not a kill, and room again when some of it is given back. */
static int fill_cgroup(const struct target *t)
{
	uint32_t h[64];
	int fd = card_open(), n, ret;

	(void)t;
	MUST(fd >= 0);
	for (n = 0; n < 64; n++) {
		ret = bo_create(fd, MB, DRM_SPYRE_BO_HOST, &h[n]);
		if (ret)
			break;
	}
	MUST(ret == -ENOMEM);
	MUST(n >= 8 && n < 32);
	while (n > 4)
		MUST(!bo_close(fd, h[--n]));
	MUST(!bo_create(fd, MB, DRM_SPYRE_BO_HOST, &h[0]));
	return 0;
}

TEST_F_TIMEOUT(iso, memory_of_a_cgroup, 120)
{
	pid_t pid;

	ASSERT_EQ(0, open_node());
	ASSERT_EQ(0, cgroup_new("memory"));
	ASSERT_EQ(0, write_file(CGROUP "/memory.max", "33554432"));
	/* The child is born in it: what it does first is charged there, too. */
	ASSERT_EQ(0, write_file(CGROUP "/cgroup.procs", "0"));
	pid = start(fill_cgroup, &self->t, UID_A);
	ASSERT_EQ(0, write_file(CGROUPS "/cgroup.procs", "0"));
	EXPECT_EQ(0, end(pid));
	EXPECT_EQ(0, rmdir(CGROUP));
	VICTIM_IS_WELL();
}

#define DMEM	(16 * MB)

/* Has its limit and not a page more, whatever memory it asks for; what it holds at the end the kernel takes. */
static int fill_dmem(const struct target *t)
{
	uint32_t h[16], more;
	int fd = card_open(), n;

	(void)t;
	MUST(fd >= 0);
	MUST(bo_create(fd, DMEM + PAGE2M, DRM_SPYRE_BO_DEVICE, &more) == -ENOSPC);
	MUST(dmem_read(CGROUP, "current") == 0);
	for (n = 0; n < (int)(DMEM / PAGE2M); n++) {
		/* Charged by pages. */
		MUST(!bo_create(fd, 4096, DRM_SPYRE_BO_DEVICE | (n % 2 ? DRM_SPYRE_BO_MAPPABLE : 0), &h[n]));
		MUST(dmem_read(CGROUP, "current") == (int64_t)((n + 1) * PAGE2M));
	}
	MUST(memory_info(fd).largest_free > DMEM);
	MUST(bo_create(fd, 1, DRM_SPYRE_BO_DEVICE, &more) == -ENOSPC);
	MUST(bo_create(fd, 1, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &more) == -ENOSPC);
	MUST(!bo_create(fd, MB, DRM_SPYRE_BO_HOST, &more));
	MUST(!bo_close(fd, h[3]));
	MUST(dmem_read(CGROUP, "current") == (int64_t)(DMEM - PAGE2M));
	MUST(!bo_create(fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &more));
	return 0;
}

/* The cgroup has room for what the card has not, as the victim has some of it: nothing stays charged. */
static int want_all(const struct target *t)
{
	uint32_t h;
	int fd = card_open();

	(void)t;
	MUST(fd >= 0);
	MUST(bo_create(fd, memory_info(fd).total, DRM_SPYRE_BO_DEVICE, &h) == -ENOSPC);
	MUST(dmem_read(CGROUP, "current") == 0);
	MUST(dmem_read(CGROUP, "peak") > (int64_t)DMEM);
	return 0;
}

TEST_F_TIMEOUT(iso, device_memory_of_a_cgroup, 120)
{
	int64_t total = dmem_read(CGROUPS, "capacity");
	uint32_t h;
	pid_t pid;
	int i, n;

	if (total == -EOPNOTSUPP)
		SKIP(return, "cgroups of this kernel do not count device memory (dmem)");
	EXPECT_EQ(memory_info(self->fd).total, total);
	ASSERT_EQ(0, open_node());
	ASSERT_EQ(0, cgroup_new("dmem"));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, dmem_limit(CGROUP, i ? total : DMEM));
		ASSERT_EQ(0, write_file(CGROUP "/cgroup.procs", "0"));
		pid = start(i ? want_all : fill_dmem, &self->t, UID_A);
		ASSERT_EQ(0, write_file(CGROUPS "/cgroup.procs", "0"));
		EXPECT_EQ(0, end(pid));
		/* The last reference on its file may go a moment later. */
		for (n = 0; n < 100 * slower() && dmem_read(CGROUP, "current"); n++)
			usleep(50000);
		EXPECT_EQ(0, dmem_read(CGROUP, "current"));
		if (!i)
			EXPECT_EQ(DMEM, dmem_read(CGROUP, "peak"));
	}
	/* Who is not in it has what there is. */
	EXPECT_EQ(0, bo_create(self->fd, 2 * DMEM, DRM_SPYRE_BO_DEVICE, &h));
	EXPECT_EQ(0, rmdir(CGROUP));
	VICTIM_IS_WELL();
}

TEST_HARNESS_MAIN
