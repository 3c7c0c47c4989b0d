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
 *   count FILE WORD   the number behind WORD in a sysfs file of the card's function: "count N", -1: none
 *   mark       from here on "log TEXT" looks: "mark"
 *   log TEXT   waits half a minute for TEXT in the kernel log: "log 1", or "log 0"
 *   work       waits until each worker has one more right result: "work 1", or "work 0" after two minutes
 *   generation how often card memory was lost: "generation N", or -ERRNO
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

#include "../kselftest/spyre_work.h"

#define WORKERS_MAX	16

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

/* --- The load ---------------------------------------------------------------------------------- */

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
		ret = life_round(&l, ((uint64_t)number << 48) + (++t->rounds << 8), way, why,
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
				gone = life_lost(&l);
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
				ret = life_round(&l, (uint64_t)number << 20, number % WAYS, why,
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

/* The number behind a word in a file of the card's function. */
static void count_of(const char *function, const char *file, const char *word)
{
	char path[256], buf[8192], *at;

	snprintf(path, sizeof(path), "%s/%s", function, file);
	at = read_file(path, buf, sizeof(buf)) ? NULL : strstr(buf, word);
	say("count %ld", at ? atol(at + strlen(word)) : -1);
}

static void work(unsigned int workers)
{
	uint64_t right[WORKERS_MAX];
	int64_t end = after_ms(PATIENCE_MS);
	unsigned int i;

	for (i = 0; i < workers; i++)
		right[i] = __atomic_load_n(&shared->tally[i].right, __ATOMIC_RELAXED);
	for (i = 0; i < workers && after_ms(0) < end;) {
		if (__atomic_load_n(&shared->tally[i].right, __ATOMIC_RELAXED) > right[i])
			i++;
		else
			usleep(10000);
	}
	say("work %d", i == workers);
}

static void generation(void)
{
	struct drm_spyre_device_info info = {};
	int fd = card_open(), ret = fd < 0 ? fd : query(fd, DRM_SPYRE_QUERY_DEVICE, &info, sizeof(info));

	if (fd >= 0)
		close(fd);
	say("generation %d", ret ? ret : (int)info.reset_generation);
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
	char line[128], function[128], file[64], word[64];
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
		} else if (sscanf(line, "count %63s %63s", file, word) == 2) {
			count_of(function, file, word);
		} else if (!strcmp(line, "mark\n")) {
			log_mark();
			say("mark");
		} else if (!strncmp(line, "log ", 4)) {
			line[strcspn(line, "\n")] = 0;
			say("log %d", !wait_log(line + 4));
		} else if (!strcmp(line, "work\n")) {
			work(workers);
		} else if (!strcmp(line, "generation\n")) {
			generation();
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
