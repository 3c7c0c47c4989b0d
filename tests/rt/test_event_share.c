// SPDX-License-Identifier: MIT
/*
 * Events of two processes and two cards. On whatever backend SPYRERT_BACKEND names, as test_rt; on
 * backend model each process has a card of its own, as two cards have. test_event_share [PATTERN]
 * runs the tests whose names match.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../dmabuf.h"
#include "peer.h"
#include "rttest.h"

/* As many records can be on their way. */
#define TICKETS	128
#define FLAGS	(SPYRERT_EVENT_NO_TIMING | SPYRERT_EVENT_INTERPROCESS)

static struct spyrert *lib;
static struct spyrert_device *dev;

/* A stream that goes on when somebody lets it. */
struct held {
	struct spyrert_stream *st;
	uint64_t *word;
};

static struct held held_new(struct spyrert_device *d)
{
	struct held h;

	OK(spyrert_stream_create(d, NULL, &h.st));
	OK(spyrert_host_alloc(d, 128, (void **)&h.word));
	*h.word = 0;
	OK(spyrert_stream_wait_value(h.st, h.word, 1));
	return h;
}

static void held_go(struct spyrert_device *d, struct held *h)
{
	OK(spyrert_host_write_value(d, h->word, 1));
}

static void held_end(struct spyrert_device *d, struct held *h)
{
	OK(spyrert_stream_destroy(h->st));
	OK(spyrert_host_free(d, h->word));
}

/* The card may write it meanwhile. */
static uint64_t seen(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static struct spyrert_event *event_new(void)
{
	struct spyrert_event *ev;

	OK(spyrert_event_create(dev, FLAGS, &ev));
	return ev;
}

static int export(struct spyrert_event *ev)
{
	int fd;

	OK(spyrert_event_export(ev, &fd));
	return fd;
}

/* --- Two views in one process ---------------------------------------------------------------- */

/* Both are the same event; the second belongs to `other`, which may be the same device. */
static void two_views(struct spyrert_device *other)
{
	struct spyrert_event *a = event_new(), *b, *c;
	struct held h = held_new(dev);
	struct spyrert_stream *st;
	int fd = export(a);
	uint64_t *word;

	OK(spyrert_event_import(other, fd, &b));
	OK(spyrert_event_import(other, fd, &c));
	close(fd);
	OK(spyrert_event_destroy(c));
	OK(spyrert_stream_create(other, NULL, &st));
	OK(spyrert_host_alloc(other, 128, (void **)&word));
	*word = 0;
	/* Never recorded: nothing to wait for. */
	OK(spyrert_event_query(b));
	OK(spyrert_event_synchronize(b, 0));
	OK(spyrert_stream_wait_event(st, b));
	OK(spyrert_stream_synchronize(st, LONG));
	/* Not before the record is reached, then soon. */
	OK(spyrert_event_record(a, h.st));
	assert_int_equal(spyrert_event_query(b), SPYRERT_NOT_READY);
	FAILS(spyrert_event_synchronize(b, SECOND / 50), SPYRERT_ERROR_TIMEOUT, "not reached in time");
	OK(spyrert_stream_wait_event(st, b));
	OK(spyrert_stream_write_value(st, word, 5));
	FAILS(spyrert_stream_synchronize(st, SECOND / 20), SPYRERT_ERROR_TIMEOUT, "");
	assert_int_equal(seen(word), 0);
	held_go(dev, &h);
	OK(spyrert_event_synchronize(b, LONG));
	OK(spyrert_stream_synchronize(st, LONG));
	assert_int_equal(seen(word), 5);
	OK(spyrert_event_query(a));
	/* The other way round: who imported records. */
	OK(spyrert_stream_nop(st));
	OK(spyrert_event_record(b, st));
	OK(spyrert_event_synchronize(a, LONG));
	OK(spyrert_stream_wait_event(h.st, a));
	OK(spyrert_stream_synchronize(h.st, LONG));
	/* The view outlives what it was made from. */
	OK(spyrert_event_destroy(a));
	OK(spyrert_event_record(b, st));
	OK(spyrert_event_synchronize(b, LONG));
	fd = export(b);
	OK(spyrert_event_import(dev, fd, &a));
	close(fd);
	OK(spyrert_event_synchronize(a, LONG));
	OK(spyrert_event_destroy(a));
	OK(spyrert_event_destroy(b));
	OK(spyrert_stream_destroy(st));
	OK(spyrert_host_free(other, word));
	held_end(dev, &h);
}

static void one_device(void **state)
{
	(void)state;
	two_views(dev);
}

static void two_devices(void **state)
{
	struct spyrert_device *other;
	struct spyrert_event *ev = event_new();
	struct spyrert_stream *st;

	(void)state;
	OK(spyrert_device_open(lib, 1, &other));
	OK(spyrert_stream_create(other, NULL, &st));
	FAILS(spyrert_stream_wait_event(st, ev), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "exported and imported");
	OK(spyrert_stream_destroy(st));
	OK(spyrert_event_destroy(ev));
	two_views(other);
	OK(spyrert_device_close(other));
}

/* The later record is the one that counts, though it is reached first; the earlier one changes nothing. */
static void recorded_anew(void **state)
{
	struct spyrert_event *a = event_new(), *b;
	struct held slow = held_new(dev), fast = held_new(dev), wait = held_new(dev);
	int fd = export(a);

	(void)state;
	OK(spyrert_event_import(dev, fd, &b));
	close(fd);
	OK(spyrert_event_record(a, slow.st));
	OK(spyrert_event_record(a, fast.st));
	held_go(dev, &fast);
	OK(spyrert_event_synchronize(b, LONG));
	held_go(dev, &slow);
	OK(spyrert_stream_synchronize(slow.st, LONG));
	OK(spyrert_event_query(b));
	held_go(dev, &wait);
	OK(spyrert_stream_wait_event(wait.st, b));
	OK(spyrert_stream_synchronize(wait.st, LONG));
	OK(spyrert_event_destroy(b));
	OK(spyrert_event_destroy(a));
	held_end(dev, &slow);
	held_end(dev, &fast);
	held_end(dev, &wait);
}

static void many_records(void **state)
{
	struct spyrert_event *a = event_new(), *b;
	struct held slow = held_new(dev);
	struct spyrert_stream *st;
	int i, k, fd = export(a);

	(void)state;
	OK(spyrert_event_import(dev, fd, &b));
	close(fd);
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_event_record(a, slow.st));
	for (i = 1; i < TICKETS; i++)
		OK(spyrert_event_record(a, st));
	FAILS(spyrert_event_record(b, st), SPYRERT_ERROR_BUSY, "recorded 128 times");
	OK(spyrert_event_synchronize(b, LONG));
	held_go(dev, &slow);
	OK(spyrert_stream_synchronize(slow.st, LONG));
	/* All words are free again, again and again. */
	for (k = 0; k < 3; k++) {
		for (i = 0; i < TICKETS; i++)
			OK(spyrert_event_record(i % 2 ? a : b, st));
		OK(spyrert_event_synchronize(k % 2 ? a : b, LONG));
		OK(spyrert_stream_synchronize(st, LONG));
	}
	OK(spyrert_event_destroy(b));
	OK(spyrert_event_destroy(a));
	OK(spyrert_stream_destroy(st));
	held_end(dev, &slow);
}

/* What a stream that was reset had recorded never comes, and who waits for it is told. */
static void reset_before(void **state)
{
	const enum spyrert_status lost = SPYRERT_ERROR_DEPENDENCY;
	struct spyrert_event *a = event_new(), *b;
	struct held bad = held_new(dev);
	struct spyrert_stream *st;
	int i, fd = export(a);

	(void)state;
	OK(spyrert_event_import(dev, fd, &b));
	close(fd);
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_event_record(a, bad.st));
	OK(spyrert_stream_wait_event(st, b));
	OK(spyrert_stream_nop(st));
	/* So that the newest is not one's own. */
	OK(spyrert_event_record(b, bad.st));
	OK(spyrert_stream_reset(bad.st));
	FAILS(spyrert_event_query(a), lost, "another process or device");
	FAILS(spyrert_event_synchronize(a, LONG), lost, "another process or device");
	FAILS(spyrert_stream_synchronize(st, LONG), lost, "waits for an event of a stream of another");
	OK(spyrert_stream_reset(st));
	FAILS(spyrert_stream_wait_event(st, a), lost, "recorded on a stream of another");
	/* A new record heals it, and what was lost holds no word for ever. */
	for (i = 0; i < 2 * TICKETS; i++) {
		OK(spyrert_event_record(a, st));
		OK(spyrert_event_synchronize(b, LONG));
	}
	OK(spyrert_event_destroy(a));
	OK(spyrert_event_destroy(b));
	OK(spyrert_stream_destroy(st));
	held_end(dev, &bad);
}

static void refuses(void **state)
{
	const enum spyrert_status bad = SPYRERT_ERROR_INVALID_ARGUMENT;
	struct spyrert_event *ev, *plain;
	int fd, ro;
	void *p;
	char path[64];

	(void)state;
	OK(spyrert_event_create(dev, 0, &plain));
	FAILS(spyrert_event_create(dev, 4, &ev), bad, "unknown event flags 0x4");
	FAILS(spyrert_event_create(dev, SPYRERT_EVENT_INTERPROCESS, &ev), bad, "add SPYRERT_EVENT_NO_TIMING");
	FAILS(spyrert_event_export(NULL, &fd), bad, "event is NULL");
	FAILS(spyrert_event_export(plain, NULL), bad, "fd is NULL");
	FAILS(spyrert_event_export(plain, &fd), bad, "make it with SPYRERT_EVENT_INTERPROCESS");
	FAILS(spyrert_event_import(NULL, 0, &ev), bad, "");
	FAILS(spyrert_event_import(dev, 0, NULL), bad, "event is NULL");
	FAILS(spyrert_event_import(dev, -1, &ev), bad, "-1 is not open");
	FAILS(spyrert_event_import(dev, 999, &ev), bad, "999 is not open");
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	FAILS(spyrert_event_import(dev, fd, &ev), bad, "no memory that can be imported");
	close(fd);
	/* Memory that is no event: of another session, and of one's own. */
	OK(spyrert_host_alloc_exportable(dev, 8192, &p));
	OK(spyrert_host_export(dev, p, &fd));
	FAILS(spyrert_event_import(dev, fd, &ev), bad, "not what spyrert_event_export() gave");
	OK(spyrert_host_free(dev, p));
	FAILS(spyrert_event_import(dev, fd, &ev), bad, "not what spyrert_event_export() gave");
	close(fd);
	ev = event_new();
	FAILS(spyrert_event_timestamp(ev, &(uint64_t){ 0 }), bad, "NO_TIMING");
	fd = export(ev);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	if (ro >= 0) {
		struct spyrert_event *e;

		FAILS(spyrert_event_import(dev, ro, &e), SPYRERT_ERROR_PERMISSION, "for reading only");
		close(ro);
	}
	close(fd);
	OK(spyrert_event_destroy(ev));
	OK(spyrert_event_destroy(plain));
}

/* --- The page is everybody's to write --------------------------------------------------------- */

#define PAGE_WORDS	512

struct scribbler {
	pthread_t thread;
	uint64_t *page;
	bool quit;
};

/* Small numbers, those where they begin anew, and anything. */
static uint64_t garbage(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	switch (*seed >> 61) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - (*seed >> 32) % (2 * TICKETS);
	case 2:
		return *seed;
	default:
		return (*seed >> 32) % (4 * TICKETS);
	}
}

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	uint64_t seed = 1;
	int i;

	while (!__atomic_load_n(&s->quit, __ATOMIC_ACQUIRE)) {
		/* What it is known by is looked at once. */
		for (i = 1; i < PAGE_WORDS; i++)
			__atomic_store_n(s->page + i, garbage(&seed), __ATOMIC_RELEASE);
		usleep(200);
	}
	return NULL;
}

static bool one_of(enum spyrert_status s, enum spyrert_status a, enum spyrert_status b,
		   enum spyrert_status c)
{
	return s == a || s == b || s == c;
}

/* Whatever the others write: calls answer, streams can be reset, and nothing else is harmed. */
static void written_over(void **state)
{
	const enum spyrert_status ok = SPYRERT_SUCCESS, lost = SPYRERT_ERROR_DEPENDENCY;
	struct spyrert_event *a = event_new(), *b, *c;
	struct scribbler s = { 0 };
	struct spyrert_stream *st;
	int fd = export(a), i;

	(void)state;
	OK(spyrert_event_import(dev, fd, &b));
	s.page = mmap(NULL, PAGE_WORDS * sizeof(*s.page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(s.page != MAP_FAILED);
	OK(spyrert_stream_create(dev, NULL, &st));
	assert_int_equal(pthread_create(&s.thread, NULL, scribble, &s), 0);
	for (i = 0; i < 300; i++) {
		struct spyrert_event *ev = i % 2 ? a : b;

		assert_true(one_of(spyrert_event_record(ev, st), ok, SPYRERT_ERROR_BUSY, ok));
		assert_true(one_of(spyrert_event_query(ev), ok, SPYRERT_NOT_READY, lost));
		assert_true(one_of(spyrert_stream_wait_event(st, ev), ok, lost, ok));
		assert_true(one_of(spyrert_event_synchronize(ev, SECOND / 1000), ok,
				   SPYRERT_ERROR_TIMEOUT, lost));
		if (spyrert_stream_synchronize(st, SECOND / 1000))
			OK(spyrert_stream_reset(st));
		if (i % 16)
			continue;
		OK(spyrert_event_import(dev, fd, &c));
		OK(spyrert_event_destroy(c));
	}
	__atomic_store_n(&s.quit, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(s.thread, NULL), 0);
	copy_works(dev, 10000);
	/* As new once it is left alone. */
	memset(s.page + 1, 0, (PAGE_WORDS - 1) * sizeof(*s.page));
	OK(spyrert_event_record(a, st));
	OK(spyrert_event_synchronize(b, LONG));
	OK(spyrert_event_destroy(b));
	/* Without what it is known by it is no event to those who do not know it yet. Streams do. */
	s.page[0]++;
	OK(spyrert_stream_destroy(st));
	OK(spyrert_event_destroy(a));
	FAILS(spyrert_event_import(dev, fd, &a), SPYRERT_ERROR_INVALID_ARGUMENT, "not what");
	munmap(s.page, PAGE_WORDS * sizeof(*s.page));
	close(fd);
}

/* --- Two threads ------------------------------------------------------------------------------ */

struct user {
	pthread_t thread;
	int fd, failed;
};

static void *comes_and_goes(void *arg)
{
	struct user *u = arg;
	struct spyrert_stream *st;
	struct spyrert_event *ev;
	int i;

	if (spyrert_stream_create(dev, NULL, &st))
		u->failed = -1;
	for (i = 1; i <= 100 && !u->failed; i++)
		if (spyrert_event_import(dev, u->fd, &ev) || spyrert_event_record(ev, st) ||
		    spyrert_event_synchronize(ev, LONG) || spyrert_event_destroy(ev))
			u->failed = i;
	if (spyrert_stream_destroy(st))
		u->failed = -2;
	return NULL;
}

static void two_threads(void **state)
{
	struct spyrert_event *ev = event_new();
	int fd = export(ev), i;
	struct user u[2] = { { .fd = fd }, { .fd = fd } };

	(void)state;
	OK(spyrert_event_destroy(ev));
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&u[i].thread, NULL, comes_and_goes, &u[i]), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(u[i].thread, NULL), 0);
		assert_int_equal(u[i].failed, 0);
	}
	close(fd);
}

/* --- Two processes --------------------------------------------------------------------------- */

#define ROUNDS	20

/*
 * Two streams of two processes hand memory to each other, round after round, each waiting on its card
 * for the other's record. Who waits too little sees an old value.
 */
static uint64_t turn(struct spyrert_stream *st, uint64_t *word, struct spyrert_event *mine,
		     uint64_t value)
{
	enum spyrert_status s = spyrert_stream_write_value(st, word, value);

	return s ? s : spyrert_event_record(mine, st);
}

static void role_partner(int sock)
{
	struct spyrert_event *theirs, *mine;
	struct spyrert_stream *st;
	uint64_t *word;
	int fd = recv_fd(sock), i;
	void *p;

	NEED(!spyrert_event_import(dev, fd, &theirs));
	close(fd);
	fd = recv_fd(sock);
	NEED(!spyrert_host_import(dev, fd, 0, &p, NULL));
	close(fd);
	NEED(!spyrert_event_create(dev, FLAGS, &mine));
	NEED(!spyrert_event_export(mine, &fd));
	NEED(!send_fd(sock, fd));
	close(fd);
	NEED(!spyrert_stream_create(dev, NULL, &st));
	word = p;
	for (i = 1; i <= ROUNDS; i++) {
		hear(sock);
		NEED(!spyrert_stream_wait_event(st, theirs));
		NEED(!spyrert_stream_synchronize(st, LONG));
		NEED(seen(word) == (uint64_t)i);
		NEED(!turn(st, word + 1, mine, i));
		tell(sock);
	}
	/* As it is with a stream that fails: the other side is told. */
	hear(sock);
	NEED(spyrert_event_synchronize(theirs, LONG) == SPYRERT_ERROR_DEPENDENCY);
	tell(sock);
	hear(sock);
	_exit(0);
}

static void two_processes(void **state)
{
	struct peer peer = peer_start("partner");
	struct spyrert_event *mine = event_new(), *theirs;
	struct held h = held_new(dev), bad = held_new(dev);
	uint64_t *word;
	int fd = export(mine), i;
	void *p;

	(void)state;
	OK(spyrert_host_alloc_exportable(dev, 4096, &p));
	word = p;
	assert_int_equal(send_fd(peer.sock, fd), 0);
	close(fd);
	OK(spyrert_host_export(dev, p, &fd));
	assert_int_equal(send_fd(peer.sock, fd), 0);
	close(fd);
	fd = recv_fd(peer.sock);
	OK(spyrert_event_import(dev, fd, &theirs));
	close(fd);
	for (i = 1; i <= ROUNDS; i++) {
		/* Told before it is done. */
		OK(turn(h.st, word, mine, i));
		tell(peer.sock);
		if (i == 1) {
			usleep(20000);
			assert_int_equal(seen(word + 1), 0);
			held_go(dev, &h);
		}
		hear(peer.sock);
		OK(spyrert_stream_wait_event(h.st, theirs));
		OK(spyrert_stream_synchronize(h.st, LONG));
		assert_int_equal(seen(word + 1), i);
	}
	OK(spyrert_event_record(mine, bad.st));
	OK(spyrert_stream_reset(bad.st));
	tell(peer.sock);
	hear(peer.sock);
	/* An event lives on when the process that made it does not. */
	tell(peer.sock);
	peer_end(peer);
	OK(spyrert_event_query(theirs));
	OK(spyrert_event_record(theirs, h.st));
	OK(spyrert_event_synchronize(theirs, LONG));
	OK(spyrert_event_destroy(theirs));
	OK(spyrert_event_destroy(mine));
	OK(spyrert_host_free(dev, p));
	held_end(dev, &bad);
	held_end(dev, &h);
}

/* --- The program ----------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_device),
		cmocka_unit_test(recorded_anew),
		cmocka_unit_test(many_records),
		cmocka_unit_test(reset_before),
		cmocka_unit_test(refuses),
		cmocka_unit_test(written_over),
		cmocka_unit_test(two_threads),
		cmocka_unit_test(two_processes),
	};
	const struct CMUnitTest two_cards[] = {
		cmocka_unit_test(two_devices),
	};
	int failed, count;

	setvbuf(stdout, NULL, _IOLBF, 0);
	two_cards_carried();
	if (spyrert_init(NULL, &lib) || spyrert_device_open(lib, 0, &dev) ||
	    spyrert_device_count(lib, &count)) {
		printf("Bail out! %s\n", spyrert_last_error());
		return 1;
	}
	if (argc == 4 && !strcmp(argv[1], "--role") && !strcmp(argv[2], "partner"))
		role_partner(atoi(argv[3]));
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (count > 1)
		failed += cmocka_run_group_tests(two_cards, NULL, NULL);
	if (spyrert_device_close(dev) || spyrert_exit(lib)) {
		fprintf(stderr, "%s\n", spyrert_last_error());
		failed++;
	}
	return failed != 0;
}
