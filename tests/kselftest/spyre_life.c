// SPDX-License-Identifier: MIT
/*
 * Ends of all kinds: processes killed at any point, files held over rmmod and unbind, resets in the
 * middle of work. Nothing stays allocated, nobody else notices, the card is there afterwards.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include <drm.h>

#include "kselftest_harness.h"

#include "spyre_test.h"

#define SIZE	(4 * MB)

static const uint64_t *symbols_of(enum job_kind kind, const uint64_t *symbols)
{
	return kind == JOB_COPY ? symbols : NULL;
}

/* Everything a program does, round and round, without ever cleaning up after itself. */
static void busy(unsigned int seed)
{
	for (;;) {
		int fd = card_open();
		struct queue q[3];
		uint32_t host, dev, i;
		uint64_t hmva, dmva, symbols[2];
		uint8_t *p, *m;
		struct spyre_cb cb;
		struct drm_spyre_wait_entry e;
		struct drm_spyre_wait w = {
			.entries = (uintptr_t)&e, .count = 1, .flags = DRM_SPYRE_WAIT_EVENTFD,
		};

		if (fd < 0)
			continue;
		if (bo_create(fd, SIZE, DRM_SPYRE_BO_HOST, &host) ||
		    bo_create(fd, SIZE, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &dev) ||
		    vm_map(fd, host, 0, 0, &hmva) || vm_map(fd, dev, 0, seed % 8, &dmva) ||
		    queue_open(fd, 64, 1, &q[0]) || queue_open(fd, 128, 0, &q[1]) ||
		    queue_open(fd, 64, 0, &q[2])) {
			close(fd);
			continue;
		}
		p = bo_map(fd, host, SIZE, PROT_READ | PROT_WRITE);
		m = bo_map(fd, dev, SIZE, PROT_READ | PROT_WRITE);
		if (!p || !m) {
			close(fd);
			continue;
		}
		e = (struct drm_spyre_wait_entry){
			.kind = DRM_SPYRE_WAIT_FENCE, .handle = host, .value = ~0ull,
		};
		w.eventfd = eventfd(0, EFD_CLOEXEC);
		call(fd, DRM_IOCTL_SPYRE_WAIT, &w);
		cb = cb_wait_host(hmva + 64, 1);
		queue_submit(&q[1], &cb);
		symbols[0] = dmva;
		symbols[1] = dmva + 128;
		if (!job_load(fd, &q[2], seed % 3, symbols_of(seed % 3, symbols), &cb))
			queue_submit(&q[2], &cb);
		for (i = 0; i < 8 && !q[0].status->error; i++) {
			p[4096 * i] = i;
			m[4096 * i] = i;
			cb = cb_dma(SPYRE_CB_DMAI, dmva, hmva, SIZE);
			queue_submit(&q[0], &cb);
			cb = cb_fill(dmva, SIZE, i);
			queue_submit(&q[0], &cb);
			cb = cb_signal_host(hmva + 128, i + 1);
			queue_submit(&q[0], &cb);
			wait_fence(fd, host, 128, i + 1, after_ms(rand_r(&seed) % 20));
		}
		if (rand_r(&seed) % 2)
			vm_unmap(fd, dmva, 0);
		if (rand_r(&seed) % 2)
			queue_close(&q[0]);
		/* The rest goes with the process or with the file. */
		munmap(p, SIZE);
		munmap(m, SIZE);
		queue_unmap(&q[1]);
		queue_unmap(&q[2]);
		close(w.eventfd);
		close(fd);
	}
}

/* Loads a job and starts it. */
static int run_job(int fd, struct queue *q, enum job_kind kind, const uint64_t *symbols)
{
	struct spyre_cb cb;
	int ret = job_load(fd, q, kind, symbols, &cb);

	if (!ret)
		queue_submit(q, &cb);
	return ret;
}

static pid_t start_busy(unsigned int seed)
{
	pid_t pid = fork();

	if (!pid) {
		busy(seed);
		_exit(0);
	}
	return pid;
}

FIXTURE(life) {
	struct baseline base;
	int fd;
};

FIXTURE_SETUP(life)
{
	baseline_take(&self->base);
	self->fd = card_open();
	ASSERT_GE(self->fd, 0);
}

/* Whatever the test left went with its process, mappings included. */
FIXTURE_TEARDOWN_PARENT(life)
{
	EXPECT_EQ(0, card_works());
	EXPECT_EQ(0, back_to_baseline(&self->base));
}

/* Wherever it was. */
TEST_F_TIMEOUT(life, killed_at_any_point, 180)
{
	unsigned int seed = 1, i;
	int status;
	pid_t pid;

	for (i = 0; i < 60; i++) {
		pid = start_busy(i);
		ASSERT_GT(pid, 0);
		usleep(rand_r(&seed) % 150000);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
	}
	EXPECT_EQ(0, back_to_baseline(&self->base));
	EXPECT_EQ(0, card_works());
}

#define OOM_LIMIT	(64 * MB)
#define OOM_ROUNDS	6

/* Takes all memory that its cgroup has, a little later each time. */
static void *eat(void *arg)
{
	volatile uint8_t *p = mmap(NULL, 2 * OOM_LIMIT, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	usleep(100000 + (uintptr_t)arg * 37000);
	for (i = 0; i < 2 * OOM_LIMIT; i += 4096)
		p[i] = 1;
	return NULL;
}

/* The kernel kills for want of memory wherever the process happens to be. */
TEST_F_TIMEOUT(life, killed_for_want_of_memory, 180)
{
	char text[32], events[512];
	const char *kills;
	pthread_t thread;
	uintptr_t i;
	int status;
	pid_t pid;

	ASSERT_EQ(0, cgroup_new("memory"));
	snprintf(text, sizeof(text), "%llu", OOM_LIMIT);
	ASSERT_EQ(0, write_file(CGROUP "/memory.max", text));
	for (i = 0; i < OOM_ROUNDS; i++) {
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			if (!write_file(CGROUP "/cgroup.procs", "0") &&
			    !pthread_create(&thread, NULL, eat, (void *)i))
				busy(i);
			_exit(1);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		EXPECT_EQ(0, card_works());
	}
	ASSERT_EQ(0, read_file(CGROUP "/memory.events", events, sizeof(events)));
	kills = strstr(events, "oom_kill ");
	ASSERT_NE(NULL, kills);
	EXPECT_EQ(OOM_ROUNDS, atoi(kills + strlen("oom_kill ")));
	EXPECT_EQ(0, rmdir(CGROUP));
}

/* One step further each time, then killed: no step leaves anything behind. */
TEST_F_TIMEOUT(life, killed_after_every_step, 180)
{
	unsigned int step;
	int status;
	pid_t pid;

	for (step = 0; step < 16; step++) {
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			struct spyre_cb cb;
			uint32_t host = 0, dev = 0, at = 0;
			uint64_t hmva = 0, dmva = 0, symbols[2];
			struct queue q, dead;
			int fd = -1, other;
			uint8_t *p;

#define STEP(what) do { what; if (at++ == step) kill(getpid(), SIGKILL); } while (0)
			STEP(fd = card_open());
			STEP(bo_create(fd, SIZE, DRM_SPYRE_BO_HOST, &host));
			STEP(bo_create(fd, SIZE, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &dev));
			STEP(vm_map(fd, host, 0, 0, &hmva));
			STEP(vm_map(fd, dev, 0, 0, &dmva));
			STEP(p = bo_map(fd, dev, SIZE, PROT_READ | PROT_WRITE));
			STEP(p[0] = 1);
			STEP(if (queue_open(fd, 64, 1, &q)) _exit(1));
			cb = cb_dma(SPYRE_CB_DMAI, dmva, hmva, SIZE);
			STEP(queue_submit(&q, &cb));
			STEP(queue_submit(&q, &cb); queue_submit(&q, &cb));
			symbols[0] = dmva;
			symbols[1] = dmva + 128;
			STEP(if (run_job(fd, &q, JOB_COPY, symbols)) _exit(3));
			/* In a context of its own: its failure would be the other queue's too. */
			other = card_open();
			STEP(if (queue_open(other, 64, 1, &dead) || run_job(other, &dead, JOB_DEADLOCK, NULL)) _exit(4));
			/* Long enough for its arithmetic to be done: then it waits for its modelled end. */
			STEP(if (run_job(fd, &q, JOB_ENDLESS, NULL)) _exit(5); usleep(100000));
			STEP(queue_submit(&q, &cb));
			cb = cb_wait_host(hmva, 1);
			STEP(queue_submit(&q, &cb));
			alarm(1);
			STEP(wait_queue(fd, q.id, 1000, after_ms(300)));
			_exit(2);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status)) TH_LOG("step %u ended with %d", step, WEXITSTATUS(status));
		ASSERT_EQ(0, back_to_baseline(&self->base)) TH_LOG("step %u", step);
	}
	EXPECT_EQ(0, card_works());
}

/* --- Two processes that share, one of which is killed at each step ------------------------------- */

/* One descriptor through a socket; -1: the other side is gone. */
static int send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = "", byte = 'f';
	struct iovec io = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(sock, &m, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int receive_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))] = "", byte;
	struct iovec io = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (c)
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

static int import_fence(int fd, int file)
{
	struct drm_syncobj_handle h = {
		.handle = syncobj(fd), .flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE, .fd = file,
	};

	return call(fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &h) ? -1 : (int)h.handle;
}

/*
 * Both sides: 0 when all went well, 1 when the other side is gone, more for what must not be. A fills a buffer by a
 * program and SUBMITs, and hands buffer and fence to B, who copies behind the fence and says so.
 */
static int maker(int sock)
{
	struct drm_prime_handle prime = { .flags = DRM_CLOEXEC | DRM_RDWR };
	struct spyre_cb cb;
	struct queue q;
	uint32_t host, dev, out;
	uint64_t hmva, dmva, symbols[2], *p;
	int fd = card_open(), file;
	char byte;

	if (fd < 0 || bo_create(fd, PAGE2M, DRM_SPYRE_BO_HOST, &host) ||
	    bo_create(fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &dev) || vm_map(fd, host, 0, 0, &hmva) ||
	    vm_map(fd, dev, 0, 0, &dmva) || queue_open(fd, 64, 1, &q))
		return 2;
	p = bo_map(fd, host, PAGE2M, PROT_READ | PROT_WRITE);
	if (!p)
		return 3;
	p[0] = 0x1234;
	symbols[0] = dmva;
	symbols[1] = dmva + 128;
	cb = cb_dma(SPYRE_CB_DMAI, dmva, hmva, PAGE2M);
	queue_submit(&q, &cb);
	if (run_job(fd, &q, JOB_COPY, symbols))
		return 4;
	prime.handle = host;
	out = syncobj(fd);
	cb = cb_plain(cb_dma(SPYRE_CB_DMAO, hmva, dmva, PAGE2M));
	if (!out || call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime) || submit(fd, &cb, 1, 0, 0, 0, out, 0))
		return 5;
	file = sync_file(fd, out, 0);
	if (file < 0)
		return 6;
	if (send_fd(sock, prime.fd) || send_fd(sock, file))
		return 1;
	close(prime.fd);
	close(file);
	if (recv(sock, &byte, 1, 0) != 1)
		return 1;
	if (queue_close(&q) || vm_unmap(fd, dmva, 0) || munmap(p, PAGE2M) || bo_close(fd, host))
		return 7;
	close(fd);
	return 0;
}

static int taker(int sock)
{
	struct drm_prime_handle prime = {};
	struct spyre_cb cb;
	uint32_t dev, out;
	uint64_t hmva, dmva;
	int fd = card_open(), file, in;

	prime.fd = receive_fd(sock);
	file = receive_fd(sock);
	if (prime.fd < 0 || file < 0)
		return 1;
	if (fd < 0 || call(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime) ||
	    bo_create(fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &dev) || vm_map(fd, prime.handle, 0, 0, &hmva) ||
	    vm_map(fd, dev, 0, 0, &dmva))
		return 2;
	in = import_fence(fd, file);
	out = syncobj(fd);
	close(prime.fd);
	close(file);
	cb = cb_plain(cb_dma(SPYRE_CB_DMAI, dmva, hmva, PAGE2M));
	if (in < 0 || !out || submit(fd, &cb, 1, 0, in, 0, out, 0))
		return 3;
	/* A maker that died has taken its copy along; its fence ends with an error, and so may this one. */
	if (sync_end(fd, out, 0, WAIT_MS) == -EBUSY)
		return 4;
	if (send(sock, "k", 1, MSG_NOSIGNAL) != 1)
		return 1;
	close(fd);
	return 0;
}

static bool is_step(uint64_t nr)
{
	return nr == SYS_ioctl || nr == SYS_mmap || nr == SYS_munmap || nr == SYS_close || nr == SYS_openat ||
	       nr == SYS_sendmsg || nr == SYS_recvmsg || nr == SYS_recvfrom || nr == SYS_sendto;
}

/*
 * Lets the victim go on until it has done so many steps, then kills it. True: it was killed, and not at its end
 * before.
 */
static bool kill_at(pid_t victim, unsigned int step, int *status)
{
	struct ptrace_syscall_info info;
	unsigned int done = 0;
	bool inside = false;

	while (waitpid(victim, status, 0) == victim && WIFSTOPPED(*status)) {
		if (WSTOPSIG(*status) == (SIGTRAP | 0x80) &&
		    ptrace(PTRACE_GET_SYSCALL_INFO, victim, sizeof(info), &info) > 0) {
			if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
				inside = is_step(info.entry.nr);
			else if (inside && ++done > step) {
				kill(victim, SIGKILL);
				return waitpid(victim, status, 0) == victim && WIFSIGNALED(*status);
			}
		} else if (!done) {
			ptrace(PTRACE_SETOPTIONS, victim, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
		}
		ptrace(PTRACE_SYSCALL, victim, 0, 0);
	}
	return false;
}

/* How it was for the victim, and for the other one. */
static int kill_one(bool taker_dies, unsigned int step, bool *killed)
{
	int sock[2], status, other_status;
	pid_t victim, other;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		return -1;
	victim = fork();
	if (!victim) {
		close(sock[1]);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(taker_dies ? taker(sock[0]) : maker(sock[0]));
	}
	close(sock[0]);
	other = fork();
	if (!other)
		_exit(taker_dies ? maker(sock[1]) : taker(sock[1]));
	close(sock[1]);
	*killed = kill_at(victim, step, &status);
	if (!*killed && (!WIFEXITED(status) || WEXITSTATUS(status) > 0)) {
		fprintf(stderr, "# the victim ended with %#x\n", status);
		return -1;
	}
	if (waitpid(other, &other_status, 0) != other || !WIFEXITED(other_status) || WEXITSTATUS(other_status) > 1) {
		fprintf(stderr, "# the other one ended with %#x\n", other_status);
		return -1;
	}
	return 0;
}

/* SPYRE_STRIDE: every so manieth step alone; 3 unless it says otherwise. */
TEST_F_TIMEOUT(life, each_of_two_killed_at_every_step, 590)
{
	const char *text = getenv("SPYRE_STRIDE");
	unsigned int stride = text ? atoi(text) : 3, who, step;
	bool killed;

	ASSERT_GT(stride, 0);
	for (who = 0; who < 2; who++) {
		killed = true;
		for (step = who; killed; step += stride) {
			ASSERT_EQ(0, kill_one(who, step, &killed)) TH_LOG("%s, step %u", who ? "taker" : "maker", step);
			ASSERT_EQ(0, back_to_baseline(&self->base)) TH_LOG("%s, step %u", who ? "taker" : "maker", step);
		}
		/* All of it was walked through. */
		EXPECT_GT(step, 20);
		TH_LOG("%s: %u steps", who ? "taker" : "maker", step - stride);
	}
}

/* While all cores run what never ends: the card goes on for others, and nothing is left. */
TEST_F_TIMEOUT(life, killed_in_the_middle_of_jobs, 180)
{
	enum job_kind kind;
	int status, ready[2], round;
	char c;
	pid_t pid;

	for (round = 0; round < 6; round++) {
		kind = round % 3;
		ASSERT_EQ(0, pipe(ready));
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			uint32_t dev;
			uint64_t at[2] = {};
			struct queue q[4];
			int fd = card_open(), i;

			if (bo_create(fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &dev) || vm_map(fd, dev, 0, 0, &at[0]))
				_exit(1);
			at[1] = at[0] + 128;
			for (i = 0; i < 4; i++)
				if (queue_open(fd, 64, i % 2, &q[i]) ||
				    run_job(fd, &q[i], kind, symbols_of(kind, at)))
					_exit(2);
			if (write(ready[1], "x", 1) != 1)
				_exit(3);
			for (;;)
				pause();
		}
		close(ready[1]);
		ASSERT_EQ(1, read(ready[0], &c, 1));
		close(ready[0]);
		if (round > 2)
			usleep(100000);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
		ASSERT_EQ(0, card_works());
		ASSERT_EQ(0, back_to_baseline(&self->base)) TH_LOG("round %d", round);
	}
}

/*
 * One process fills the copy engine with the slowest that a control block may ask for, again and again. Others
 * are served in between, memory that is freed is cleared, and nobody is reset.
 */
TEST_F_TIMEOUT(life, slow_copies_of_others, 180)
{
	struct queue hog[4];
	uint32_t host, dev, gen;
	uint64_t hmva, dmva;
	struct spyre_cb cb;
	struct queue own;
	int fd = card_open(), i, k;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, queue_open(self->fd, 64, 1, &own));
	gen = own.status->generation;
	ASSERT_EQ(0, bo_create(fd, PAGE2M, DRM_SPYRE_BO_HOST, &host));
	ASSERT_EQ(0, bo_create(fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &dev));
	ASSERT_EQ(0, vm_map(fd, host, 0, 0, &hmva));
	ASSERT_EQ(0, vm_map(fd, dev, 0, 0, &dmva));
	cb = cb_dma(SPYRE_CB_DMAX, dmva, dmva + 4096, 1);
	cb.u.dma.ndims = 3;
	cb.u.dma.count[0] = 1u << 13;
	cb.u.dma.count[1] = SPYRE_DMA_STICKS_MAX >> 13;
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, queue_open(fd, 64, 1, &hog[i]));
		for (k = 0; k < 8; k++)
			queue_submit(&hog[i], &cb);
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, bo_create(self->fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &dev));
		ASSERT_EQ(0, bo_close(self->fd, dev));
		EXPECT_EQ(0, card_works());
	}
	EXPECT_LT(hog[3].status->done, 8);
	EXPECT_EQ(0, hog[3].status->error);
	EXPECT_EQ(gen, own.status->generation);
	close(fd);
	EXPECT_EQ(gen, own.status->generation);
}

TEST_F(life, killed_while_waiting)
{
	uint32_t h;
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		int fd = card_open();

		bo_create(fd, 4096, DRM_SPYRE_BO_HOST, &h);
		wait_fence(fd, h, 0, 1, after_ms(1000000));
		_exit(0);
	}
	usleep(500000);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(0, back_to_baseline(&self->base));
}

static void *read_counters(void *stop)
{
	struct ras_counter c[32];
	int64_t node;

	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) {
		node = ras_node("job-errors");
		if (node >= 0)
			ras_counters(node, c, 32);
	}
	return NULL;
}

/* Netlink's counters are the bound card's, whoever reads them when it is unbound. */
TEST_F_TIMEOUT(life, counters_go_with_the_driver, 120)
{
	struct ras_counter c[32];
	int64_t old, node;
	pthread_t thread;
	int i, n, stop = 0;

	old = ras_node("job-errors");
	if (old == -EOPNOTSUPP)
		SKIP(return, "this kernel has no netlink family drm-ras");
	ASSERT_GE(old, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_counters, &stop));
	for (i = 0; i < 3; i++) {
		usleep(100000);
		ASSERT_EQ(0, driver_file("unbind"));
		EXPECT_EQ(-ENOENT, ras_counters(old, c, 32));
		ASSERT_EQ(0, driver_file("bind"));
		node = ras_node("job-errors");
		ASSERT_GE(node, 0);
		n = ras_counters(node, c, 32);
		ASSERT_GT(n, 0);
		while (n--)
			EXPECT_EQ(0, c[n].value);
		old = node;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* What a cgroup is charged for outlives the card's name there, and the card that is bound next owes nothing. */
TEST_F_TIMEOUT(life, unbind_with_charged_memory, 120)
{
	int64_t total = dmem_read(CGROUPS, "capacity");
	uint32_t h;
	int fd;

	if (total == -EOPNOTSUPP)
		SKIP(return, "cgroups of this kernel do not count device memory (dmem)");
	ASSERT_EQ(memory_info(self->fd).total, total);
	ASSERT_EQ(0, cgroup_new("dmem"));
	ASSERT_EQ(0, dmem_limit(CGROUP, 4 * PAGE2M));
	ASSERT_EQ(0, write_file(CGROUP "/cgroup.procs", "0"));
	fd = card_open();
	ASSERT_GE(fd, 0);
	EXPECT_EQ(0, bo_create(fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &h));
	EXPECT_EQ(PAGE2M, dmem_read(CGROUP, "current"));
	ASSERT_EQ(0, driver_file("unbind"));
	EXPECT_EQ(-ENOENT, dmem_read(CGROUPS, "capacity"));
	ASSERT_EQ(0, driver_file("bind"));
	close(self->fd);
	self->fd = card_open();
	EXPECT_EQ(total, dmem_read(CGROUPS, "capacity"));
	EXPECT_EQ(0, dmem_read(CGROUP, "current"));
	/* The limit went with the name. */
	EXPECT_EQ(INT64_MAX, dmem_read(CGROUP, "max"));
	EXPECT_EQ(0, bo_create(self->fd, 5 * PAGE2M, DRM_SPYRE_BO_DEVICE, &h));
	EXPECT_EQ(5 * PAGE2M, dmem_read(CGROUP, "current"));
	close(fd);
	EXPECT_EQ(5 * PAGE2M, dmem_read(CGROUP, "current"));
	EXPECT_EQ(0, bo_close(self->fd, h));
	EXPECT_EQ(0, dmem_read(CGROUP, "current"));
	EXPECT_EQ(0, write_file(CGROUPS "/cgroup.procs", "0"));
	EXPECT_EQ(0, rmdir(CGROUP));
}

TEST_F(life, rmmod_with_open_file)
{
	ASSERT_EQ(-1, syscall(SYS_delete_module, "spyre", O_NONBLOCK));
	EXPECT_EQ(EWOULDBLOCK, errno);
	EXPECT_EQ(0, card_works());
}

/* What a process has when the card goes: memory of both kinds mapped, and a job that never ends. */
struct owned {
	struct queue q;
	uint32_t host;
	volatile uint64_t *h, *d;
};

#define OWNED_VALUE	42

static int own(int fd, struct owned *o)
{
	struct spyre_cb cb;
	uint64_t hmva;
	uint32_t dev;

	if (bo_create(fd, SIZE, DRM_SPYRE_BO_HOST, &o->host) ||
	    bo_create(fd, SIZE, DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE, &dev) ||
	    vm_map(fd, o->host, 0, 0, &hmva))
		return 1;
	o->h = bo_map(fd, o->host, SIZE, PROT_READ | PROT_WRITE);
	o->d = bo_map(fd, dev, SIZE, PROT_READ | PROT_WRITE);
	if (!o->h || !o->d || queue_open(fd, 64, 1, &o->q))
		return 2;
	cb = cb_wait_host(hmva + 8, 1);
	queue_submit(&o->q, &cb);
	o->h[0] = OWNED_VALUE;
	o->d[0] = OWNED_VALUE + 1;
	return 0;
}

/* Old files: ENODEV, mappings without SIGBUS, final status. */
static int check_stale(int fd, struct owned *o)
{
	struct drm_spyre_bo_info bo = { .handle = o->host };
	struct drm_spyre_bo_mmap map = { .handle = o->host };
	struct drm_spyre_vm_bind bind = { .handle = o->host };
	struct drm_spyre_queue_create create = { .entries = 64 };
	struct drm_spyre_queue_id id = { .queue = o->q.id };
	struct drm_spyre_wait_cancel cancel = { .id = 1 };
	struct drm_spyre_ras_read ras = {};
	uint32_t h;
	struct drm_spyre_device_info info;

	if (bo_create(fd, 4096, DRM_SPYRE_BO_HOST, &h) != -ENODEV)
		return 1;
	if (query(fd, DRM_SPYRE_QUERY_DEVICE, &info, sizeof(info)) != -ENODEV)
		return 2;
	if (wait_queue(fd, o->q.id, 1000, after_ms(WAIT_MS)) != -ENODEV)
		return 3;
	/* With what was right before. */
	if (call(fd, DRM_IOCTL_SPYRE_BO_INFO, &bo) != -ENODEV ||
	    call(fd, DRM_IOCTL_SPYRE_BO_MMAP, &map) != -ENODEV ||
	    call(fd, DRM_IOCTL_SPYRE_VM_BIND, &bind) != -ENODEV ||
	    call(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &create) != -ENODEV ||
	    call(fd, DRM_IOCTL_SPYRE_QUEUE_KICK, &id) != -ENODEV ||
	    call(fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id) != -ENODEV ||
	    call(fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id) != -ENODEV ||
	    call(fd, DRM_IOCTL_SPYRE_WAIT_CANCEL, &cancel) != -ENODEV ||
	    call(fd, DRM_IOCTL_SPYRE_RAS_READ, &ras) != -ENODEV)
		return 7;
	if (o->q.status->state != SPYRE_QUEUE_LOST || !o->q.status->error)
		return 4;
	if (*o->h != OWNED_VALUE)
		return 5;
	*o->h = OWNED_VALUE + 1;
	if (*o->d)
		return 6;
	*o->d = 0x77;
	*o->q.doorbell = 5;
	return 0;
}

TEST_F_TIMEOUT(life, unbind_under_load, 120)
{
	struct owned o;
	pid_t pid[3];
	int i, status;

	ASSERT_EQ(0, own(self->fd, &o));
	for (i = 0; i < 3; i++)
		pid[i] = start_busy(i);
	for (i = 0; i < 3; i++) {
		usleep(700000);
		ASSERT_EQ(0, driver_file("unbind"));
		if (!i)
			EXPECT_EQ(0, check_stale(self->fd, &o));
		ASSERT_EQ(0, driver_file("bind"));
		EXPECT_EQ(0, card_works());
	}
	for (i = 0; i < 3; i++) {
		kill(pid[i], SIGKILL);
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
	}
	EXPECT_EQ(0, card_works());
	queue_unmap(&o.q);
	close(self->fd);
	/* With the last file of the old life gone the new one is as clean as ever. */
	self->fd = card_open();
	ASSERT_GE(self->fd, 0);
	EXPECT_EQ(0, back_to_baseline(&self->base));
}

TEST_F_TIMEOUT(life, function_reset_under_load, 120)
{
	pid_t pid[3];
	struct owned o;
	struct drm_spyre_device_info before, after;
	int i, status, fd;
	int64_t begin;

	ASSERT_EQ(0, query(self->fd, DRM_SPYRE_QUERY_DEVICE, &before, sizeof(before)));
	ASSERT_EQ(0, own(self->fd, &o));
	for (i = 0; i < 3; i++)
		pid[i] = start_busy(i);
	for (i = 0; i < 3; i++) {
		usleep(700000);
		begin = after_ms(0);
		ASSERT_EQ(0, pci_file("reset", "1"));
		/* Whoever wrote that is not left to wonder. */
		EXPECT_LT(after_ms(0) - begin, 30000 * 1000000ll);
		if (!i)
			EXPECT_EQ(0, check_stale(self->fd, &o));
		EXPECT_EQ(0, card_works());
	}
	for (i = 0; i < 3; i++) {
		kill(pid[i], SIGKILL);
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
	}
	fd = card_open();
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, query(fd, DRM_SPYRE_QUERY_DEVICE, &after, sizeof(after)));
	EXPECT_GT(after.reset_generation, before.reset_generation);
	EXPECT_EQ(SPYRE_STATE_ONLINE, after.state);
	close(fd);
}

/* Waiters hear of a reset at once. */
TEST_F_TIMEOUT(life, reset_ends_waits, 60)
{
	uint32_t h;
	int status, fd = self->fd;
	pid_t pid;

	ASSERT_EQ(0, bo_create(self->fd, 4096, DRM_SPYRE_BO_HOST, &h));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(wait_fence(fd, h, 0, 1, after_ms(50000)) == -ENODEV ? 0 : 1);
	usleep(300000);
	ASSERT_EQ(0, pci_file("reset", "1"));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, card_works());
}

TEST_HARNESS_MAIN
