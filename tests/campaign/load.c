// SPDX-License-Identifier: MIT
/*
 * The guest's half of the fault campaign: processes that copy and compute without end, on a queue
 * of their own or by SUBMIT, and check every byte, while somebody injects faults. Whoever has less than what was asked for says so and
 * why; whoever has it although it is wrong, or hears nothing at all, is a silent loss.
 *
 * usage: load WORKERS SEED. Commands on stdin, a line each, answered with a line on stdout:
 *   probe N    a new process computes: "probe N ok MS" or "probe N failed WHY"
 *   flr        resets the function: "flr ERRNO"
 *   rebind     unbinds and binds the driver: "rebind ERRNO"
 *   gone       waits until a card that was pulled out is let go of: "gone 1", or, after some
 *              seconds, "gone 0"
 *   settle     waits until the ports have been quiet for a second: "settle"
 *   alive      "alive 1", or "alive 0" when a card does not work for some seconds
 *   stop       ends the workers: a "worker" line for each, then "baseline" and what differs; one
 *              more line ends the program
 * At any time: "ready", "wrong WORKER ...", "silent WORKER ...", "loss WORKER STATUS RAS GONE":
 * GONE is 1 when the context is lost too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../jobs.h"
#include "../kselftest/spyre_test.h"

#define WORKERS_MAX	16
#define SIZE		PAGE2M
#define CHAIN		5u
/* Nothing takes longer: the driver waits 90 s for a reset of the slot, and then says so. */
#define PATIENCE_MS	120000

/* STATUS of a loss that is no enum spyre_status. */
#define LOST_RESPONSE	100	/* done, and without the response block that was asked for */
#define LOST_CARD	101	/* an ioctl says ENODEV, or the queue is LOST */
#define LOST_FENCE	102	/* a SUBMIT's fence ended with an error of its own job's */

struct tally {
	uint64_t rounds, right, submits, losses, lives;
};

static struct {
	int stop;
	struct tally tally[WORKERS_MAX];
} *shared;

/* One write, so that lines of several processes do not mix. */
__attribute__((format(printf, 1, 2)))
static void say(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(1, line, n) != n)
		_exit(1);
}

/* --- One life: a file, a context, a queue ----------------------------------------------------- */

struct life {
	int fd;
	struct queue q;
	uint64_t *in, *out;		/* host memory */
	uint64_t in_at, out_at;		/* HMVAs */
	uint64_t a, b;			/* DMVAs, SIZE each */
	uint32_t sync;			/* syncobj of SUBMITs */
	struct spyre_cb program;
	uint64_t ras;			/* last record seen */
};

/* 0, -errno, or enum spyre_status of the copy that loads the program. */
static int life_begin(struct life *l)
{
	uint32_t in, out, a, b;
	uint64_t symbols[2];
	int ret;

	memset(l, 0, sizeof(*l));
	l->fd = card_open();
	if (l->fd < 0)
		return l->fd;
	ret = bo_create(l->fd, SIZE, DRM_SPYRE_BO_HOST, &in);
	if (!ret)
		ret = bo_create(l->fd, SIZE, DRM_SPYRE_BO_HOST, &out);
	if (!ret)
		ret = bo_create(l->fd, SIZE, DRM_SPYRE_BO_DEVICE, &a);
	if (!ret)
		ret = bo_create(l->fd, SIZE, DRM_SPYRE_BO_DEVICE, &b);
	if (!ret)
		ret = vm_map(l->fd, in, DRM_SPYRE_VM_READONLY, 0, &l->in_at);
	if (!ret)
		ret = vm_map(l->fd, out, 0, 0, &l->out_at);
	if (!ret)
		ret = vm_map(l->fd, a, 0, 0, &l->a);
	if (!ret)
		ret = vm_map(l->fd, b, 0, 1, &l->b);
	if (!ret)
		ret = queue_open(l->fd, 64, 1, &l->q);
	if (ret)
		return ret;
	l->in = bo_map(l->fd, in, SIZE, PROT_READ | PROT_WRITE);
	l->out = bo_map(l->fd, out, SIZE, PROT_READ | PROT_WRITE);
	if (!l->in || !l->out)
		return -errno;
	l->sync = syncobj(l->fd);
	if (!l->sync)
		return -ENOMEM;
	/* The program moves the second stick of a to the third of b. */
	symbols[0] = l->a + 128;
	symbols[1] = l->b + 256;
	return job_load(l->fd, &l->q, JOB_COPY, symbols, &l->program);
}

static void life_end(struct life *l)
{
	if (l->in)
		munmap(l->in, SIZE);
	if (l->out)
		munmap(l->out, SIZE);
	if (l->q.ring)
		queue_unmap(&l->q);
	if (l->fd >= 0)
		close(l->fd);
}

static bool is_lost(const struct life *l)
{
	struct drm_spyre_device_info info;

	return l->q.status->state == SPYRE_QUEUE_LOST ||
	       query(l->fd, DRM_SPYRE_QUERY_DEVICE, &info, sizeof(info)) == -ENODEV;
}

/* The newest record of this context: its code, 0: there is none that was not seen. */
static uint32_t newest_ras(struct life *l)
{
	struct drm_spyre_ras rec[8];
	struct drm_spyre_ras_read r;
	uint32_t code = 0;

	for (;;) {
		r = (struct drm_spyre_ras_read){
			.records = (uintptr_t)rec, .count = 8, .after = l->ras,
		};
		if (call(l->fd, DRM_IOCTL_SPYRE_RAS_READ, &r) || !r.count)
			return code;
		l->ras = rec[r.count - 1].seq;
		code = rec[r.count - 1].code;
	}
}

/* 0: @entry is done; else enum spyre_status, LOST_CARD or -ETIME. */
static int wait_done(struct life *l, uint32_t entry, bool sleep)
{
	int64_t end = after_ms(PATIENCE_MS);
	int ret;

	if (!sleep) {
		ret = queue_wait(&l->q, entry, PATIENCE_MS);
	} else {
		/* An interrupt that was lost may cost time, but not for ever. */
		ret = wait_queue(l->fd, l->q.id, entry + 1, end);
		if (ret == -EIO)
			ret = 0;
		if (ret == -ENODEV)
			return LOST_CARD;
		if (l->q.status->error)
			ret = l->q.status->error;
	}
	if (ret && ret != -ETIME && is_lost(l))
		return LOST_CARD;
	return ret;
}

/* What must be in out after one round. */
static uint64_t expected(uint64_t salt, unsigned int i)
{
	/* Words 32 to 47 of b come from words 16 to 31 of a. */
	if (i >= 32 && i < 48)
		return salt + (i - 16) * 0x9e3779b97f4a7c15ull;
	return salt ^ (i < SIZE / 16 ? 0x5555 : 0xaaaa);
}

/* How a worker hands its control blocks over, and waits for them. */
enum way { POLL, SLEEP, SUBMIT, WAYS };

/* The same by SUBMIT, each control block after the one before. As wait_done(), or LOST_FENCE. */
static int submit_all(struct life *l, struct spyre_cb *cb, uint32_t n)
{
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++) {
		cb[i] = cb_plain(cb[i]);
		cb[i].flags |= SPYRE_CB_F_BARRIER;
	}
	/* An earlier failure was accounted for when its fence said so. */
	ret = submit(l->fd, cb, n, DRM_SPYRE_SUBMIT_RESET, 0, 0, l->sync, 0);
	if (!ret)
		ret = sync_end(l->fd, l->sync, 0, PATIENCE_MS);
	switch (ret) {
	case 0:
		return 0;
	case -EBUSY:
		return -ETIME;
	case -ENODEV:
		return LOST_CARD;
	case -ECANCELED:
		return SPYRE_ERR_CANCELLED;
	default:
		return is_lost(l) ? LOST_CARD : LOST_FENCE;
	}
}

/*
 * Host to a, a program and fills to b, b to host. 0: as it should be; else a status as of
 * wait_done(), LOST_RESPONSE, LOST_FENCE, or -EILSEQ: it was said to be done and is wrong.
 */
static int round_trip(struct life *l, uint64_t salt, enum way way, char *why, size_t size)
{
	struct spyre_cb cb[CHAIN];
	uint32_t first = 0, last = 0, i;
	int ret;

	for (i = 0; i < 32; i++)
		l->in[i] = salt + i * 0x9e3779b97f4a7c15ull;
	l->in[SIZE / 8 - 1] = salt;
	memset(l->out, 0xee, SIZE);
	cb[0] = cb_dma(SPYRE_CB_DMAI, l->a, l->in_at, SIZE);
	cb[1] = cb_fill(l->b, SIZE / 2, salt ^ 0x5555);
	cb[2] = cb_fill(l->b + SIZE / 2, SIZE / 2, salt ^ 0xaaaa);
	cb[3] = l->program;
	cb[4] = cb_dma(SPYRE_CB_DMAO, l->out_at, l->b, SIZE);
	cb[4].flags |= SPYRE_CB_F_INTERRUPT;
	for (i = 0; i < CHAIN; i++)
		cb[i].cookie = salt + i;
	for (i = 0; way != SUBMIT && i < CHAIN; i++) {
		last = queue_submit(&l->q, &cb[i]);
		if (!i)
			first = last;
	}
	ret = way == SUBMIT ? submit_all(l, cb, CHAIN) : wait_done(l, last, way == SLEEP);
	if (ret)
		return ret;
	for (i = 0; i < SIZE / 8; i++) {
		if (l->out[i] != expected(salt, i)) {
			snprintf(why, size, "word %u is %#llx, not %#llx", i,
				 (unsigned long long)l->out[i],
				 (unsigned long long)expected(salt, i));
			return -EILSEQ;
		}
	}
	for (i = 0; way != SUBMIT && i < CHAIN; i++) {
		volatile struct spyre_rb *rb = &l->q.response[(first + i) & (l->q.entries - 1)];

		if (rb->valid != first + i + 1)
			ret = LOST_RESPONSE;
		else if (rb->status || rb->cookie != salt + i) {
			snprintf(why, size, "response of entry %u: status %u, cookie %#llx",
				 first + i, rb->status, (unsigned long long)rb->cookie);
			return -EILSEQ;
		}
	}
	return ret;
}

static void worker(unsigned int number, unsigned int seed)
{
	struct tally *t = &shared->tally[number];
	struct life l = { .fd = -1 };
	struct drm_spyre_queue_id id;
	bool alive = false, gone = false;
	enum way way;
	char why[256];
	uint32_t ras, i;
	int64_t began;
	int ret;

	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		began = after_ms(0);
		while (!alive) {
			ret = life_begin(&l);
			alive = !ret;
			if (alive) {
				t->lives++;
				break;
			}
			life_end(&l);
			if (__atomic_load_n(&shared->stop, __ATOMIC_RELAXED))
				return;
			/* Each refusal is an answer; only that none is ever granted is a loss. */
			if (after_ms(0) - began > PATIENCE_MS * 1000000ll) {
				say("silent %u no card: %d", number, ret);
				began = after_ms(0);
			}
			usleep(20000);
		}
		why[0] = 0;
		way = rand_r(&seed) % WAYS;
		ret = round_trip(&l, ((uint64_t)number << 48) + (++t->rounds << 8), way, why,
				 sizeof(why));
		if (!ret) {
			t->right++;
			t->submits += way == SUBMIT;
			continue;
		}
		if (ret == -EILSEQ) {
			say("wrong %u %s", number, why);
		} else if (ret == -ETIME) {
			say("silent %u fetched %u done %u of %u, error %u state %u", number,
			    l.q.status->fetched, l.q.status->done, l.q.tail, l.q.status->error,
			    l.q.status->state);
		} else {
			t->losses++;
			/* The record comes by another way and may be later, as may a reset. */
			for (ras = 0, i = 0; !ras && i < 300; i++) {
				gone = is_lost(&l);
				if (ret == LOST_RESPONSE || ret == LOST_CARD || gone)
					break;
				ras = newest_ras(&l);
				if (!ras)
					usleep(10000);
			}
			say("loss %u %d %#x %d", number, ret, ras, gone);
		}
		id = (struct drm_spyre_queue_id){ .queue = l.q.id };
		if (ret == LOST_RESPONSE)
			continue;
		/* The next round starts clean, in the same context when that goes on. */
		if (ret < 0 || ret == LOST_CARD ||
		    call(l.fd, DRM_IOCTL_SPYRE_QUEUE_RESET, &id)) {
			life_end(&l);
			alive = false;
		}
	}
	if (alive)
		life_end(&l);
}

/* --- The controller --------------------------------------------------------------------------- */

/* A process that never saw the card before gets an answer that is right. */
static void probe(unsigned int number)
{
	int64_t began = after_ms(0);
	char why[256] = "";
	int ret = 0, status;
	pid_t pid = fork();

	if (!pid) {
		for (;;) {
			struct life l;

			ret = life_begin(&l);
			if (!ret)
				ret = round_trip(&l, (uint64_t)number << 20, number % WAYS, why,
						 sizeof(why));
			life_end(&l);
			if (!ret)
				_exit(0);
			if (ret == -EILSEQ) {
				say("wrong probe %s", why);
				_exit(2);
			}
			/* A fault that was meant for others, or one that is being repaired. */
			if (after_ms(0) - began > PATIENCE_MS * 1000000ll) {
				say("probe %u failed %d", number, ret);
				_exit(1);
			}
			usleep(20000);
		}
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		say("probe %u failed no process", number);
	else if (WIFEXITED(status) && !WEXITSTATUS(status))
		say("probe %u ok %lld", number, (long long)((after_ms(0) - began) / 1000000));
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
		say("probe %u failed ended with %#x", number, status);
}

/* Its function is gone, and its slot without power. */
static bool is_gone(const char *function)
{
	char buf[16];
	bool on = false;
	glob_t g;
	size_t i;

	if (!access(function, F_OK))
		return false;
	if (glob("/sys/bus/pci/slots/*/power", 0, NULL, &g))
		return true;
	for (i = 0; i < g.gl_pathc; i++)
		on |= !read_file(g.gl_pathv[i], buf, sizeof(buf)) && buf[0] == '1';
	globfree(&g);
	return !on;
}

static void gone(const char *function)
{
	int64_t end = after_ms(5000);
	bool is = false;

	while (!is && after_ms(0) < end) {
		is = is_gone(function);
		usleep(50000);
	}
	say("gone %d", is);
}

/* Interrupts of the ports' hot plug, on all CPUs. */
static unsigned long port_interrupts(void)
{
	FILE *f = fopen("/proc/interrupts", "r");
	char buf[4096], *at, *end;
	unsigned long n = 0;

	while (f && fgets(buf, sizeof(buf), f)) {
		if (!strstr(buf, "pciehp"))
			continue;
		for (at = strchr(buf, ':') + 1;; at = end) {
			n += strtoul(at, &end, 10);
			if (end == at)
				break;
		}
	}
	if (f)
		fclose(f);
	return n;
}

static void settle(void)
{
	unsigned long n;

	do {
		n = port_interrupts();
		sleep(1);
	} while (n != port_interrupts());
	say("settle");
}

/* The driver's lines of /proc/interrupts; what holds its module, as each open file does. */
static void count(unsigned int *vectors, unsigned int *users)
{
	FILE *f = fopen("/proc/interrupts", "r");
	char buf[4096];

	*vectors = *users = 0;
	while (f && fgets(buf, sizeof(buf), f))
		*vectors += strstr(buf, "spyre") != NULL;
	if (f)
		fclose(f);
	if (!read_file("/sys/module/spyre/refcnt", buf, sizeof(buf)))
		sscanf(buf, "%u", users);
}

int main(int argc, char **argv)
{
	unsigned int workers, seed, i, tries, number;
	unsigned int vectors, users, vectors_now = 0, users_now = 0;
	struct baseline base;
	char line[128], function[128];
	pid_t pid[WORKERS_MAX];
	int status, bad = 0;

	if (argc != 3)
		return 2;
	workers = atoi(argv[1]);
	seed = atoi(argv[2]);
	if (!workers || workers > WORKERS_MAX)
		return 2;
	setvbuf(stdin, NULL, _IOLBF, 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED || card_works())
		return 3;
	snprintf(function, sizeof(function), "/sys/bus/pci/devices/%s", card_pci());
	baseline_take(&base);
	count(&vectors, &users);
	for (i = 0; i < workers; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			worker(i, seed + i);
			_exit(0);
		}
	}
	say("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "probe %u", &number) == 1) {
			probe(number);
		} else if (!strcmp(line, "flr\n")) {
			say("flr %d", pci_file("reset", "1"));
		} else if (!strcmp(line, "rebind\n")) {
			status = driver_file("unbind");
			say("rebind %d", status ? status : driver_file("bind"));
		} else if (!strcmp(line, "gone\n")) {
			gone(function);
		} else if (!strcmp(line, "alive\n")) {
			for (tries = 0; (status = card_works()) && tries < 50; tries++)
				usleep(100000);
			say("alive %d", !status);
		} else if (!strcmp(line, "settle\n")) {
			settle();
		} else if (!strcmp(line, "stop\n")) {
			break;
		} else {
			say("unknown %.100s", line);
		}
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < workers; i++) {
		if (pid[i] < 0 || waitpid(pid[i], &status, 0) != pid[i] || status) {
			say("silent %u ended with %#x", i, status);
			bad = 1;
		}
	}
	for (i = 0; i < workers; i++)
		say("worker %u rounds %llu right %llu submits %llu losses %llu lives %llu", i,
		    (unsigned long long)shared->tally[i].rounds,
		    (unsigned long long)shared->tally[i].right,
		    (unsigned long long)shared->tally[i].submits,
		    (unsigned long long)shared->tally[i].losses,
		    (unsigned long long)shared->tally[i].lives);
	status = back_to_baseline(&base);
	/* The kernel lets go of files a moment later. */
	for (tries = 0; tries < 100; tries++) {
		count(&vectors_now, &users_now);
		if (vectors_now == vectors && users_now == users)
			break;
		usleep(50000);
	}
	say("baseline %d vectors %u was %u users %u was %u", status, vectors_now, vectors,
	    users_now, users);
	/* The host counts its own things while the machine is still there. */
	if (!fgets(line, sizeof(line), stdin))
		bad = 1;
	return bad;
}
