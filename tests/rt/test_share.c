// SPDX-License-Identifier: MIT
/*
 * Memory that the card shares with others: the program's own, registered, and buffers of two
 * processes and two cards; fences of other drivers. On whatever backend SPYRERT_BACKEND names, as
 * test_rt, but what only the driver has, and what takes two cards.
 *
 * The other process of a test is this program again, started afresh (a child that only forks may not
 * use the library's objects): test_share --role NAME SOCKET. test_share [PATTERN] runs the tests
 * whose names match.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include <drm/spyre_accel.h>

#include <spyre/cb.h>

#include "../dmabuf.h"
#include "../jobs.h"
#include "../vgem.h"
#include "peer.h"
#include "rttest.h"

#define PAGE	4096ull
#define MB	(1ull << 20)
#define SIZE	(4 * MB)

static struct spyrert *lib;
static struct spyrert_device *dev;
static struct spyrert_device_info card;

static bool is_model(void)
{
	return !strcmp(spyrert_backend_name(lib), "model");
}

static uint8_t *map_anon(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static struct spyrert_pointer_info host_info(const void *p)
{
	struct spyrert_pointer_info i;

	OK(spyrert_host_pointer_query(dev, p, &i, sizeof(i)));
	return i;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fail_msg("%s cannot be written", path);
	close(fd);
}

/* In the other process: what the seed makes, in room of as many bytes. */
static void need_bytes(const void *p, uint8_t *room, size_t n, uint32_t seed)
{
	fill_bytes(room, n, seed);
	NEED(!memcmp(p, room, n));
}

/* --- Registered memory ----------------------------------------------------------------------- */

static void registered(void **state)
{
	uint8_t *p = map_anon(SIZE), *o = map_anon(SIZE);
	struct spyrert_pointer_info i;
	struct spyrert_stream *st;
	spyrert_ptr d;
	uint64_t *w;

	(void)state;
	OK(spyrert_malloc(dev, SIZE, &d));
	OK(spyrert_host_alloc(dev, 128, (void **)&w));
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_host_register(dev, p, SIZE, 0));
	i = host_info(p + 5000);
	assert_int_equal(i.kind, SPYRERT_MEMORY_PINNED);
	assert_int_equal(i.flags, SPYRERT_POINTER_REGISTERED);
	assert_int_equal(i.base, (uintptr_t)p);
	assert_int_equal(i.bytes, SIZE);
	assert_int_equal(i.offset, 5000);
	/* The card reads it when it gets there, so it is no copy that was made before. */
	fill_bytes(p, SIZE, 1);
	*w = 0;
	OK(spyrert_stream_wait_value(st, w, 1));
	OK(spyrert_memcpy_h2d_async(st, d, p, SIZE));
	fill_bytes(p, SIZE, 2);
	OK(spyrert_host_write_value(dev, w, 1));
	OK(spyrert_stream_synchronize(st, LONG));
	fill_bytes(o, SIZE, 2);
	memset(p, 0, SIZE);
	/* To it the call does not wait for the copy. */
	OK(spyrert_stream_wait_value(st, w, 2));
	OK(spyrert_memcpy_d2h_async(st, p, d, SIZE));
	assert_int_equal(spyrert_stream_query(st), SPYRERT_NOT_READY);
	OK(spyrert_host_write_value(dev, w, 2));
	OK(spyrert_stream_synchronize(st, LONG));
	same_bytes(o, p, SIZE);
	/* What is partly inside goes as before. */
	OK(spyrert_memcpy_h2d(dev, d, p + SIZE / 2, SIZE / 2));
	OK(spyrert_memcpy_d2h(dev, o, d, SIZE / 2));
	same_bytes(p + SIZE / 2, o, SIZE / 2);
	/* And words. */
	((uint64_t *)p)[3] = 0;
	OK(spyrert_stream_write_value(st, (uint64_t *)p + 3, 77));
	OK(spyrert_stream_wait_value(st, (uint64_t *)p + 3, 77));
	OK(spyrert_stream_synchronize(st, LONG));
	assert_int_equal(((uint64_t *)p)[3], 77);
	OK(spyrert_host_unregister(dev, p));
	assert_int_equal(host_info(p).kind, SPYRERT_MEMORY_UNKNOWN);
	/* The memory is the program's as ever. */
	OK(spyrert_memcpy_h2d(dev, d, p, SIZE));
	OK(spyrert_memcpy_d2h(dev, o, d, SIZE));
	same_bytes(p, o, SIZE);
	OK(spyrert_stream_destroy(st));
	OK(spyrert_host_free(dev, w));
	OK(spyrert_free(dev, d));
	munmap(p, SIZE);
	munmap(o, SIZE);
}

static void registered_readonly(void **state)
{
	uint8_t *p = map_anon(SIZE), *o = map_anon(SIZE);
	struct spyrert_stream *st;
	spyrert_ptr d;

	(void)state;
	fill_bytes(p, SIZE, 3);
	assert_int_equal(mprotect(p, SIZE, PROT_READ), 0);
	FAILS(spyrert_host_register(dev, p, SIZE, 0), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "permission to read and write");
	OK(spyrert_host_register(dev, p, SIZE, SPYRERT_REGISTER_READONLY));
	assert_int_equal(host_info(p).flags,
			 SPYRERT_POINTER_REGISTERED | SPYRERT_POINTER_READONLY);
	OK(spyrert_malloc(dev, SIZE, &d));
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_memcpy_h2d(dev, d, p, SIZE));
	OK(spyrert_memcpy_d2h(dev, o, d, SIZE));
	same_bytes(p, o, SIZE);
	FAILS(spyrert_memcpy_d2h(dev, p, d, 128), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "registered for the card to read only");
	FAILS(spyrert_stream_write_value(st, (uint64_t *)p, 1), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "read only");
	/* What was refused holds nothing. */
	OK(spyrert_host_unregister(dev, p));
	OK(spyrert_stream_destroy(st));
	OK(spyrert_free(dev, d));
	munmap(p, SIZE);
	munmap(o, SIZE);
}

static void register_refuses(void **state)
{
	uint8_t *p = map_anon(16 * PAGE);
	const enum spyrert_status bad = SPYRERT_ERROR_INVALID_ARGUMENT;
	void *pin;

	(void)state;
	FAILS(spyrert_host_register(NULL, p, PAGE, 0), bad, "device is NULL");
	FAILS(spyrert_host_register(dev, NULL, PAGE, 0), bad, "multiples of 4096");
	FAILS(spyrert_host_register(dev, p + 8, PAGE, 0), bad, "multiples of 4096");
	FAILS(spyrert_host_register(dev, p, PAGE - 1, 0), bad, "multiples of 4096");
	FAILS(spyrert_host_register(dev, p, 0, 0), bad, "multiples of 4096");
	FAILS(spyrert_host_register(dev, (void *)-PAGE, 2 * PAGE, 0), bad, "multiples of 4096");
	FAILS(spyrert_host_register(dev, p, PAGE, 2), bad, "register flags 0x2");
	FAILS(spyrert_host_register(dev, p, 1ull << 36, 0), bad, "register them in parts");
	FAILS(spyrert_host_unregister(NULL, p), bad, "device is NULL");
	FAILS(spyrert_host_unregister(dev, p), bad, "not the start of a range");
	FAILS(spyrert_host_unregister(dev, NULL), bad, "not the start of a range");
	/* Twice, in part, around, beside. */
	OK(spyrert_host_register(dev, p + 4 * PAGE, 4 * PAGE, 0));
	FAILS(spyrert_host_register(dev, p + 4 * PAGE, 4 * PAGE, 0), bad, "registered on this");
	FAILS(spyrert_host_register(dev, p + 5 * PAGE, PAGE, 0), bad, "overlaps");
	FAILS(spyrert_host_register(dev, p + 3 * PAGE, 2 * PAGE, 0), bad, "overlaps");
	FAILS(spyrert_host_register(dev, p + 7 * PAGE, 2 * PAGE, 0), bad, "overlaps");
	FAILS(spyrert_host_register(dev, p, 16 * PAGE, 0), bad, "overlaps");
	OK(spyrert_host_register(dev, p, 4 * PAGE, 0));
	OK(spyrert_host_register(dev, p + 8 * PAGE, PAGE, 0));
	FAILS(spyrert_host_unregister(dev, p + 5 * PAGE), bad, "not the start of a range");
	FAILS(spyrert_host_free(dev, p), bad, "spyrert_host_unregister()");
	OK(spyrert_host_unregister(dev, p + 4 * PAGE));
	FAILS(spyrert_host_unregister(dev, p + 4 * PAGE), bad, "not the start of a range");
	OK(spyrert_host_unregister(dev, p));
	OK(spyrert_host_unregister(dev, p + 8 * PAGE));
	/* The library's own. */
	OK(spyrert_host_alloc(dev, 2 * MB, &pin));
	FAILS(spyrert_host_register(dev, (void *)((uintptr_t)pin & ~(PAGE - 1)), PAGE, 0), bad,
	      "pinned memory on this device");
	FAILS(spyrert_host_unregister(dev, pin), bad, "not the start of a range");
	OK(spyrert_host_free(dev, pin));
	/* Holes, wherever. */
	assert_int_equal(munmap(p + 2 * PAGE, PAGE), 0);
	FAILS(spyrert_host_register(dev, p + 2 * PAGE, PAGE, 0), bad, "not all mapped");
	FAILS(spyrert_host_register(dev, p, 4 * PAGE, 0), bad, "not all mapped");
	FAILS(spyrert_host_register(dev, p + PAGE, 2 * PAGE, SPYRERT_REGISTER_READONLY), bad,
	      "permission to read,");
	assert_int_equal(mprotect(p, PAGE, PROT_NONE), 0);
	FAILS(spyrert_host_register(dev, p, 2 * PAGE, SPYRERT_REGISTER_READONLY), bad,
	      "not all mapped");
	OK(spyrert_host_register(dev, p + PAGE, PAGE, 0));
	OK(spyrert_host_unregister(dev, p + PAGE));
	munmap(p, 16 * PAGE);
}

/* Ranges in any order of address are found, and only they. */
static void many_registered(void **state)
{
	enum { N = 200 };
	uint8_t *p = map_anon(2 * N * PAGE);
	size_t i, k;

	(void)state;
	for (i = 0; i < N; i++) {
		k = i * 77 % N;
		OK(spyrert_host_register(dev, p + 2 * k * PAGE, PAGE, 0));
	}
	for (i = 0; i < 2 * N; i++) {
		struct spyrert_pointer_info info = host_info(p + i * PAGE + 17);

		assert_int_equal(info.kind, i % 2 ? SPYRERT_MEMORY_UNKNOWN : SPYRERT_MEMORY_PINNED);
		assert_int_equal(info.base, i % 2 ? 0 : (uintptr_t)p + i * PAGE);
	}
	for (i = 0; i < N; i++) {
		k = i * 31 % N;
		OK(spyrert_host_unregister(dev, p + 2 * k * PAGE));
		assert_int_equal(host_info(p + 2 * k * PAGE).kind, SPYRERT_MEMORY_UNKNOWN);
	}
	munmap(p, 2 * N * PAGE);
}

static void unregister_in_use(void **state)
{
	uint8_t *p = map_anon(SIZE);
	struct spyrert_stream *st, *bad;
	spyrert_ptr d;
	uint64_t *w;

	(void)state;
	OK(spyrert_malloc(dev, SIZE, &d));
	OK(spyrert_host_alloc(dev, 128, (void **)&w));
	*w = 0;
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_stream_create(dev, NULL, &bad));
	OK(spyrert_host_register(dev, p, SIZE, 0));
	OK(spyrert_stream_wait_value(st, w, 1));
	OK(spyrert_memcpy_h2d_async(st, d, p, SIZE));
	FAILS(spyrert_host_unregister(dev, p), SPYRERT_ERROR_BUSY, "1 copies");
	OK(spyrert_memcpy_d2h_async(st, p, d, 128));
	OK(spyrert_stream_write_value(st, (uint64_t *)p, 1));
	FAILS(spyrert_host_unregister(dev, p), SPYRERT_ERROR_BUSY, "3 copies");
	OK(spyrert_host_write_value(dev, w, 1));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_host_unregister(dev, p));
	/* Work that will never be done is in use until somebody says that it is over. */
	OK(spyrert_host_register(dev, p, SIZE, 0));
	OK(spyrert_stream_wait_value(bad, w, 2));
	OK(spyrert_memcpy_h2d_async(bad, d, p, SIZE));
	FAILS(spyrert_host_unregister(dev, p), SPYRERT_ERROR_BUSY, "1 copies");
	OK(spyrert_stream_reset(bad));
	OK(spyrert_host_unregister(dev, p));
	OK(spyrert_stream_destroy(bad));
	OK(spyrert_stream_destroy(st));
	OK(spyrert_host_free(dev, w));
	OK(spyrert_free(dev, d));
	munmap(p, SIZE);
}

/* A child has copies, and no say over what its parent registered. */
static void register_and_fork(void **state)
{
	uint8_t *p = map_anon(SIZE), *o = map_anon(SIZE);
	int go[2], status;
	spyrert_ptr d;
	pid_t pid;
	char c;

	(void)state;
	OK(spyrert_malloc(dev, SIZE, &d));
	fill_bytes(p, SIZE, 5);
	OK(spyrert_host_register(dev, p, SIZE, 0));
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		NEED(spyrert_host_unregister(dev, p) == SPYRERT_ERROR_FORKED);
		NEED(spyrert_host_register(dev, p, SIZE, 0) == SPYRERT_ERROR_FORKED);
		NEED(read(go[0], &c, 1) == 1);
		/* Neither the parent's writes nor the card's. */
		need_bytes(p, o, SIZE, 5);
		memset(p, 0xee, SIZE);
		munmap(p, SIZE);
		_exit(0);
	}
	fill_bytes(o, SIZE, 6);
	OK(spyrert_memcpy_h2d(dev, d, o, SIZE));
	OK(spyrert_memcpy_d2h(dev, p, d, SIZE));
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* The child has ended; here everything is as before. */
	same_bytes(o, p, SIZE);
	fill_bytes(p, SIZE, 7);
	OK(spyrert_memcpy_h2d(dev, d, p, SIZE));
	memset(o, 0, SIZE);
	OK(spyrert_memcpy_d2h(dev, o, d, SIZE));
	same_bytes(p, o, SIZE);
	OK(spyrert_host_unregister(dev, p));
	OK(spyrert_free(dev, d));
	close(go[0]);
	close(go[1]);
	munmap(p, SIZE);
	munmap(o, SIZE);
}

/* Moved or unmapped against the rules: the card goes on with the pages that were registered. */
static void register_and_move(void **state)
{
	uint8_t *p, *o, *moved, *again;
	spyrert_ptr d;

	(void)state;
	p = map_anon(SIZE);
	o = map_anon(SIZE);
	moved = map_anon(SIZE);
	OK(spyrert_malloc(dev, SIZE, &d));
	OK(spyrert_host_register(dev, p, SIZE, 0));
	fill_bytes(o, SIZE, 8);
	OK(spyrert_memcpy_h2d(dev, d, o, SIZE));
	assert_ptr_equal(mremap(p, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, moved), moved);
	again = mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		     0);
	assert_ptr_equal(again, p);
	memset(again, 0xa5, SIZE);
	OK(spyrert_memcpy_d2h(dev, p, d, SIZE));
	same_bytes(o, moved, SIZE);
	assert_int_equal(again[0], 0xa5);
	assert_memory_equal(again, again + 1, SIZE - 1);
	/* Where it lies now it is memory like any other. */
	fill_bytes(moved, SIZE, 9);
	OK(spyrert_memcpy_h2d(dev, d, moved, SIZE));
	/* Gone altogether, from both places, and in use: pages live as long as the registration. */
	assert_int_equal(munmap(moved, SIZE), 0);
	assert_int_equal(munmap(again, SIZE), 0);
	OK(spyrert_memcpy_h2d(dev, d, p, SIZE));
	OK(spyrert_memcpy_d2h(dev, o, d, SIZE));
	fill_bytes(o + SIZE / 2, SIZE / 2, 0);
	again = map_anon(SIZE);
	fill_bytes(again, SIZE, 9);
	same_bytes(again, o, SIZE / 2);
	OK(spyrert_host_unregister(dev, p));
	/* The addresses can be registered anew. */
	p = mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	OK(spyrert_host_register(dev, p, SIZE, 0));
	OK(spyrert_memcpy_d2h(dev, p, d, SIZE));
	same_bytes(again, p, SIZE);
	OK(spyrert_host_unregister(dev, p));
	OK(spyrert_free(dev, d));
	munmap(p, SIZE);
	munmap(o, SIZE);
	munmap(again, SIZE);
}

/* One range for all of the threads below. */
static uint8_t *contested;

/* NULL, or what went wrong: threads cannot end a test. */
static void *register_and_copy(void *arg)
{
	uint8_t *own = arg, *back = own + PAGE;
	enum spyrert_status status;
	struct spyrert_stream *st;
	spyrert_ptr d;
	int i;

	if (spyrert_stream_create(dev, NULL, &st) || spyrert_malloc(dev, PAGE, &d))
		return "no stream or memory";
	for (i = 0; i < 40; i++) {
		memset(own, i, PAGE);
		if (spyrert_host_register(dev, own, 2 * PAGE, 0) ||
		    spyrert_memcpy_h2d_async(st, d, own, PAGE) ||
		    spyrert_memcpy_d2h_async(st, back, d, PAGE))
			return "register or copy";
		/* Whoever registers it first, everybody copies from it, by whatever way. */
		status = spyrert_host_register(dev, contested, 4 * PAGE, SPYRERT_REGISTER_READONLY);
		if (status && status != SPYRERT_ERROR_INVALID_ARGUMENT)
			return "contested range: register";
		if (spyrert_memcpy_h2d_async(st, d, contested + PAGE, PAGE) ||
		    spyrert_stream_synchronize(st, LONG))
			return "contested range: copy";
		if (memcmp(own, back, PAGE))
			return "data of its own";
		if (spyrert_memcpy_d2h_async(st, back, d, PAGE) ||
		    spyrert_stream_synchronize(st, LONG))
			return "copy back";
		if (memcmp(contested + PAGE, back, PAGE))
			return "data of all";
		status = spyrert_host_unregister(dev, contested);
		if (status && status != SPYRERT_ERROR_BUSY &&
		    status != SPYRERT_ERROR_INVALID_ARGUMENT)
			return "contested range: unregister";
		if (spyrert_host_unregister(dev, own))
			return "unregister";
	}
	if (spyrert_stream_destroy(st) || spyrert_free(dev, d))
		return "end";
	return NULL;
}

static void registered_by_many(void **state)
{
	enum { N = 4 };
	uint8_t *own = map_anon(N * 2 * PAGE);
	pthread_t threads[N];
	void *what;
	int i;

	(void)state;
	contested = map_anon(4 * PAGE);
	fill_bytes(contested, 4 * PAGE, 14);
	for (i = 0; i < N; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, register_and_copy,
						own + i * 2 * PAGE),
				 0);
	for (i = 0; i < N; i++) {
		assert_int_equal(pthread_join(threads[i], &what), 0);
		if (what)
			fail_msg("thread %d: %s: %s", i, (char *)what, spyrert_last_error());
	}
	spyrert_host_unregister(dev, contested);
	assert_int_equal(host_info(contested).kind, SPYRERT_MEMORY_UNKNOWN);
	munmap(contested, 4 * PAGE);
	munmap(own, N * 2 * PAGE);
}

static long status_kb(const char *name)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kb = atol(line + strlen(name));
	if (f)
		fclose(f);
	return kb;
}

/* What a device leaves registered goes with it. What is 2 MiB here can be 2 MiB for the card. */
static void registered_at_close(void **state)
{
	struct spyrert_device *other;
	uint8_t *p = map_anon(SIZE + 2 * MB), *huge;
	struct spyrert_pointer_info i;
	long before = status_kb("VmPin:");
	spyrert_ptr d;

	(void)state;
	huge = (uint8_t *)(((uintptr_t)p + 2 * MB - 1) & ~(2 * MB - 1));
	madvise(huge, SIZE, MADV_HUGEPAGE);
	fill_bytes(huge, SIZE, 10);
	OK(spyrert_device_open(lib, 0, &other));
	OK(spyrert_host_register(other, huge, SIZE, 0));
	OK(spyrert_host_pointer_query(other, huge, &i, sizeof(i)));
	assert_int_equal(i.hmva % (2 * MB), 0);
	if (!is_model())
		assert_int_equal(status_kb("VmPin:"), before + (long)(SIZE >> 10));
	OK(spyrert_malloc(other, SIZE, &d));
	OK(spyrert_memcpy_h2d(other, d, huge, SIZE));
	/* Each open has its own. */
	OK(spyrert_host_register(dev, huge, SIZE, 0));
	OK(spyrert_host_unregister(dev, huge));
	OK(spyrert_device_close(other));
	assert_int_equal(status_kb("VmPin:"), before);
	munmap(p, SIZE + 2 * MB);
}

/* --- Shared host memory ---------------------------------------------------------------------- */

/* The words at the end of the shared memory: what one has done, and what the other. */
#define WORDS	(SIZE - PAGE)

static void role_host_importer(int sock)
{
	uint8_t *p, *room = malloc(SIZE);
	struct spyrert_stream *st;
	spyrert_ptr d;
	size_t bytes;
	int fd = recv_fd(sock);

	NEED(fd >= 0 && room);
	NEED(!spyrert_host_import(dev, fd, 0, (void **)&p, &bytes));
	close(fd);
	NEED(bytes == SIZE);
	need_bytes(p, room, MB, 20);
	NEED(!spyrert_malloc(dev, MB, &d));
	NEED(!spyrert_stream_create(dev, NULL, &st));
	/* When the other's card has written the second MiB, this one copies it to the third. */
	NEED(!spyrert_stream_wait_value(st, (uint64_t *)(p + WORDS), 1));
	NEED(!spyrert_memcpy_h2d_async(st, d, p + MB, MB));
	NEED(!spyrert_memcpy_d2h_async(st, p + 2 * MB, d, MB));
	NEED(!spyrert_stream_write_value(st, (uint64_t *)(p + WORDS) + 8, 1));
	tell(sock);
	NEED(!spyrert_stream_synchronize(st, LONG));
	hear(sock);
	/* The other has given it up and closed everything: it is still here. */
	need_bytes(p + 2 * MB, room, MB, 21);
	NEED(!spyrert_host_free(dev, p));
	NEED(!spyrert_stream_destroy(st));
	free(room);
}

static void share_host(void **state)
{
	uint8_t *p, *o = map_anon(MB);
	struct spyrert_stream *st;
	struct spyrert_pointer_info i;
	struct peer peer;
	spyrert_ptr d;
	int fd;

	(void)state;
	OK(spyrert_host_alloc_exportable(dev, SIZE - 1, (void **)&p));
	i = host_info(p);
	assert_int_equal(i.flags, SPYRERT_POINTER_EXPORTABLE);
	assert_int_equal(i.bytes, SIZE);
	fill_bytes(p, MB, 20);
	OK(spyrert_malloc(dev, MB, &d));
	fill_bytes(o, MB, 21);
	OK(spyrert_memcpy_h2d(dev, d, o, MB));
	OK(spyrert_stream_create(dev, NULL, &st));
	peer = peer_start("host_importer");
	OK(spyrert_host_export(dev, p, &fd));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(send_fd(peer.sock, fd), 0);
	close(fd);
	/* Once its stream waits, this one does the work it waits for, and waits for it in turn. */
	hear(peer.sock);
	OK(spyrert_memcpy_d2h_async(st, p + MB, d, MB));
	OK(spyrert_stream_write_value(st, (uint64_t *)(p + WORDS), 1));
	OK(spyrert_stream_wait_value(st, (uint64_t *)(p + WORDS) + 8, 1));
	OK(spyrert_stream_synchronize(st, LONG));
	same_bytes(o, p + 2 * MB, MB);
	OK(spyrert_host_free(dev, p));
	tell(peer.sock);
	peer_end(peer);
	OK(spyrert_stream_destroy(st));
	OK(spyrert_free(dev, d));
	munmap(o, MB);
}

static void role_host_exporter(int sock)
{
	uint8_t *p;
	int fd;

	NEED(!spyrert_host_alloc_exportable(dev, SIZE, (void **)&p));
	fill_bytes(p, SIZE, 22);
	NEED(!spyrert_host_export(dev, p, &fd));
	NEED(!send_fd(sock, fd));
	/* Until it is killed. */
	pause();
}

/* Who exported is killed before anybody imports: the descriptor holds the memory. */
static void host_exporter_dies(void **state)
{
	struct peer peer = peer_start("host_exporter");
	uint8_t *p, *o = map_anon(SIZE);
	int fd = recv_fd(peer.sock), status;
	struct spyrert_memory_info before, after;
	spyrert_ptr d;
	size_t bytes;

	(void)state;
	assert_true(fd >= 0);
	kill(peer.pid, SIGKILL);
	assert_int_equal(waitpid(peer.pid, &status, 0), peer.pid);
	assert_true(WIFSIGNALED(status));
	close(peer.sock);
	OK(spyrert_memory_get_info(dev, &before, sizeof(before)));
	OK(spyrert_host_import(dev, fd, 0, (void **)&p, &bytes));
	close(fd);
	assert_int_equal(bytes, SIZE);
	assert_int_equal(host_info(p).flags, SPYRERT_POINTER_IMPORTED);
	OK(spyrert_malloc(dev, SIZE, &d));
	OK(spyrert_memcpy_h2d(dev, d, p, SIZE));
	OK(spyrert_memcpy_d2h(dev, o, d, SIZE));
	same_bytes(p, o, SIZE);
	fill_bytes(p, SIZE, 22);
	same_bytes(p, o, SIZE);
	FAILS(spyrert_host_unregister(dev, p), SPYRERT_ERROR_INVALID_ARGUMENT, "not the start");
	OK(spyrert_host_free(dev, p));
	FAILS(spyrert_host_free(dev, p), SPYRERT_ERROR_INVALID_ARGUMENT, "not the start");
	OK(spyrert_free(dev, d));
	OK(spyrert_memory_get_info(dev, &after, sizeof(after)));
	assert_int_equal(before.pinned.allocated, after.pinned.allocated);
	munmap(o, SIZE);
}

/*
 * Several times into one open, and back into the one that exported: each is freed by itself, in any
 * order, and takes nothing else along.
 */
static void import_again(void **state)
{
	uint8_t *p, *a, *b, *x;
	spyrert_ptr d;
	int fd, round;

	(void)state;
	OK(spyrert_malloc(dev, PAGE, &d));
	for (round = 0; round < 2; round++) {
		OK(spyrert_host_alloc_exportable(dev, PAGE, (void **)&p));
		OK(spyrert_host_export(dev, p, &fd));
		OK(spyrert_host_import(dev, fd, 0, (void **)&a, NULL));
		OK(spyrert_host_import(dev, fd, 0, (void **)&b, NULL));
		fill_bytes(p, PAGE, 23 + round);
		same_bytes(p, a, PAGE);
		same_bytes(p, b, PAGE);
		if (round) {
			OK(spyrert_host_free(dev, p));
			/* May get whatever name the freed one had. */
			OK(spyrert_host_alloc_exportable(dev, PAGE, (void **)&x));
			OK(spyrert_host_free(dev, a));
		} else {
			OK(spyrert_host_free(dev, a));
			OK(spyrert_host_free(dev, p));
			OK(spyrert_host_alloc_exportable(dev, PAGE, (void **)&x));
		}
		close(fd);
		OK(spyrert_host_export(dev, x, &fd));
		close(fd);
		OK(spyrert_memcpy_h2d(dev, d, b, PAGE));
		OK(spyrert_memcpy_d2h(dev, x, d, PAGE));
		same_bytes(b, x, PAGE);
		OK(spyrert_host_free(dev, b));
		fill_bytes(x, PAGE, 40);
		OK(spyrert_memcpy_h2d(dev, d, x, PAGE));
		OK(spyrert_host_free(dev, x));
	}
	OK(spyrert_free(dev, d));
}

static void import_readonly(void **state)
{
	struct spyrert_stream *st;
	uint8_t *p, *r, *o = map_anon(SIZE);
	char path[64];
	spyrert_ptr d;
	int fd, ro;

	(void)state;
	OK(spyrert_malloc(dev, SIZE, &d));
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_host_alloc_exportable(dev, SIZE, (void **)&p));
	fill_bytes(p, SIZE, 25);
	OK(spyrert_host_export(dev, p, &fd));
	OK(spyrert_host_import(dev, fd, SPYRERT_IMPORT_READONLY, (void **)&r, NULL));
	assert_int_equal(host_info(r).flags, SPYRERT_POINTER_IMPORTED | SPYRERT_POINTER_READONLY);
	OK(spyrert_memcpy_h2d(dev, d, r, SIZE));
	OK(spyrert_memcpy_d2h(dev, o, d, SIZE));
	same_bytes(p, o, SIZE);
	FAILS(spyrert_memcpy_d2h(dev, r, d, 128), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "imported for the card to read only");
	FAILS(spyrert_stream_write_value(st, (uint64_t *)r, 1), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "read only");
	OK(spyrert_host_free(dev, r));
	/* A descriptor that only reads; the file systems of dma-bufs do not open them again. */
	if (is_model()) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ro = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(ro >= 0);
		FAILS(spyrert_host_import(dev, ro, 0, (void **)&r, NULL),
		      SPYRERT_ERROR_PERMISSION, "SPYRERT_IMPORT_READONLY");
		OK(spyrert_host_import(dev, ro, SPYRERT_IMPORT_READONLY, (void **)&r, NULL));
		close(ro);
		same_bytes(p, r, SIZE);
		OK(spyrert_host_free(dev, r));
	}
	close(fd);
	OK(spyrert_host_free(dev, p));
	OK(spyrert_stream_destroy(st));
	OK(spyrert_free(dev, d));
	munmap(o, SIZE);
}

static void share_refuses(void **state)
{
	const enum spyrert_status bad = SPYRERT_ERROR_INVALID_ARGUMENT;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
	void *p, *plain;
	spyrert_ptr d;

	(void)state;
	OK(spyrert_host_alloc_exportable(dev, PAGE, &p));
	OK(spyrert_host_alloc(dev, PAGE, &plain));
	OK(spyrert_malloc(dev, PAGE, &d));
	FAILS(spyrert_host_alloc_exportable(dev, 0, &p), bad, "size is 0");
	FAILS(spyrert_host_alloc_exportable(dev, PAGE, NULL), bad, "ptr is NULL");
	FAILS(spyrert_malloc_exportable(dev, 0, &d), bad, "size is 0");
	FAILS(spyrert_malloc_exportable(dev, 1ull << 40, &d), bad, "larger than a segment");
	FAILS(spyrert_host_export(dev, p, NULL), bad, "fd is NULL");
	FAILS(spyrert_host_export(dev, plain, &fd), bad, "spyrert_host_alloc_exportable()");
	FAILS(spyrert_host_export(dev, (char *)p + 128, &fd), bad,
	      "spyrert_host_alloc_exportable()");
	FAILS(spyrert_export(dev, d, &fd), bad, "spyrert_malloc_exportable()");
	FAILS(spyrert_export(dev, 0, &fd), bad, "spyrert_malloc_exportable()");
	FAILS(spyrert_host_import(dev, -1, 0, &plain, NULL), bad, "descriptor -1 is not open");
	FAILS(spyrert_import(dev, 1000, 0, &d, NULL), bad, "descriptor 1000 is not open");
	FAILS(spyrert_host_import(dev, null, 0, &plain, NULL), bad,
	      "no memory that can be imported");
	FAILS(spyrert_import(dev, null, 0, &d, NULL), bad, "no memory that can be imported");
	FAILS(spyrert_host_import(dev, null, 2, &plain, NULL), bad, "import flags 0x2");
	FAILS(spyrert_host_import(dev, null, 0, NULL, NULL), bad, "ptr is NULL");
	OK(spyrert_host_export(dev, p, &fd));
	FAILS(spyrert_import(dev, fd, 0, &d, NULL), bad, "host memory; use spyrert_host_import()");
	/* The refusal took nothing of the exporter's. */
	close(fd);
	OK(spyrert_host_export(dev, p, &fd));
	close(fd);
	if (is_model()) {
		/* One that could get smaller under who maps it. */
		fd = memfd_create("plain", MFD_CLOEXEC);
		assert_int_equal(ftruncate(fd, PAGE), 0);
		FAILS(spyrert_host_import(dev, fd, 0, &plain, NULL), bad, "F_SEAL_SHRINK");
		close(fd);
	}
	close(null);
	OK(spyrert_host_free(dev, p));
	OK(spyrert_host_free(dev, plain));
	OK(spyrert_free(dev, d));
}

/* Memory of another driver, and what cannot be done with it. */
static void import_udmabuf(void **state)
{
	uint8_t *theirs, *p, *o;
	spyrert_ptr d;
	size_t bytes;
	int fd;

	(void)state;
	o = map_anon(SIZE);
	fd = udmabuf(SIZE, &theirs);
	assert_true(fd >= 0);
	OK(spyrert_host_import(dev, fd, 0, (void **)&p, &bytes));
	FAILS(spyrert_import(dev, fd, 0, &d, NULL), SPYRERT_ERROR_INVALID_ARGUMENT, "host memory");
	close(fd);
	assert_int_equal(bytes, SIZE);
	OK(spyrert_malloc(dev, SIZE, &d));
	fill_bytes(theirs, SIZE / 2, 26);
	OK(spyrert_memcpy_h2d(dev, d, p, SIZE / 2));
	OK(spyrert_memcpy_d2h(dev, p + SIZE / 2, d, SIZE / 2));
	same_bytes(theirs, theirs + SIZE / 2, SIZE / 2);
	same_bytes(p, theirs, SIZE);
	FAILS(spyrert_host_export(dev, p, &fd), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "spyrert_host_alloc_exportable()");
	OK(spyrert_host_free(dev, p));
	fill_bytes(theirs, SIZE, 27);
	OK(spyrert_free(dev, d));
	munmap(theirs, SIZE);
	munmap(o, SIZE);
}

/* --- Shared device memory -------------------------------------------------------------------- */

static void role_device_importer(int sock)
{
	struct spyrert_program *mover;
	uint8_t *host = malloc(SIZE), *room = malloc(SIZE);
	struct spyreprog_job *job = job_mover(0, 32);
	spyrert_ptr d, mine;
	uint64_t bytes, sym[2];
	void *data;
	size_t n;
	int fd = recv_fd(sock);

	NEED(fd >= 0 && host && room);
	NEED(!spyrert_import(dev, fd, 0, &d, &bytes));
	close(fd);
	NEED(bytes == SIZE && d % (2 * MB) == 0);
	NEED(!spyrert_memcpy_d2h(dev, host, d, SIZE));
	need_bytes(host, room, SIZE, 30);
	/* For programs too, to read and to write. */
	NEED(!spyreprog_job_finish(job, &data, &n));
	NEED(!spyrert_program_load_binary(dev, data, n, &mover));
	NEED(!spyrert_malloc(dev, 4096, &mine));
	sym[0] = d + MB;
	sym[1] = mine;
	NEED(!spyrert_launch(spyrert_default_stream(dev), mover, sym, 2, 0, 0));
	sym[0] = mine;
	sym[1] = d;
	NEED(!spyrert_launch(spyrert_default_stream(dev), mover, sym, 2, 0, 0));
	NEED(!spyrert_stream_synchronize(spyrert_default_stream(dev), LONG));
	tell(sock);
	hear(sock);
	/* The exporter has freed it. */
	NEED(!spyrert_memcpy_d2h(dev, host, d, SIZE));
	fill_bytes(room, SIZE, 30);
	NEED(!memcmp(host, room + MB, 4096) && !memcmp(host + 4096, room + 4096, SIZE - 4096));
	NEED(!spyrert_program_unload(mover));
	NEED(!spyrert_free_async(spyrert_default_stream(dev), d));
	NEED(!spyrert_stream_synchronize(spyrert_default_stream(dev), LONG));
	spyreprog_job_free(job);
	free(data);
	free(host);
	free(room);
}

static void share_device(void **state)
{
	uint8_t *a = map_anon(SIZE), *b = map_anon(SIZE);
	struct spyrert_memory_info before, after;
	struct spyrert_pointer_info i;
	enum spyrert_status status;
	struct peer peer;
	spyrert_ptr d;
	int fd, k;

	(void)state;
	OK(spyrert_memory_get_info(dev, &before, sizeof(before)));
	OK(spyrert_malloc_exportable(dev, SIZE - 5, &d));
	assert_int_equal(d % (2 * MB), 0);
	OK(spyrert_pointer_query(dev, d + 100, &i, sizeof(i)));
	assert_int_equal(i.kind, SPYRERT_MEMORY_DEVICE);
	assert_int_equal(i.flags, SPYRERT_POINTER_EXPORTABLE);
	assert_int_equal(i.base, d);
	assert_int_equal(i.bytes, SIZE);
	/* New memory is zeroed, whatever lay there. */
	memset(a, 0xff, SIZE);
	OK(spyrert_memcpy_d2h(dev, a, d, SIZE));
	same_bytes(b, a, SIZE);
	fill_bytes(a, SIZE, 30);
	OK(spyrert_memcpy_h2d(dev, d, a, SIZE));
	status = spyrert_export(dev, d, &fd);
	if (is_model()) {
		assert_int_equal(status, SPYRERT_ERROR_NOT_SUPPORTED);
		assert_non_null(strstr(spyrert_last_error(), "cards live in this process"));
	} else {
		OK(status);
		peer = peer_start("device_importer");
		assert_int_equal(send_fd(peer.sock, fd), 0);
		close(fd);
		hear(peer.sock);
		OK(spyrert_memcpy_d2h(dev, b, d, SIZE));
		same_bytes(a + MB, b, 4096);
		same_bytes(a + 4096, b + 4096, SIZE - 4096);
		OK(spyrert_free(dev, d));
		tell(peer.sock);
		peer_end(peer);
		OK(spyrert_malloc_exportable(dev, SIZE, &d));
	}
	OK(spyrert_free(dev, d));
	FAILS(spyrert_free(dev, d), SPYRERT_ERROR_INVALID_ARGUMENT, "freed already");
	/* In stream order, and never handed out again to the stream as its own. */
	for (k = 0; k < 2; k++) {
		spyrert_ptr other;

		OK(spyrert_malloc_exportable(dev, 2 * MB, &d));
		OK(spyrert_free_async(spyrert_default_stream(dev), d));
		OK(spyrert_malloc_async(spyrert_default_stream(dev), 2 * MB, &other));
		assert_int_not_equal(d, other);
		OK(spyrert_free(dev, other));
		OK(spyrert_stream_synchronize(spyrert_default_stream(dev), LONG));
	}
	OK(spyrert_empty_cache(dev));
	OK(spyrert_memory_get_info(dev, &after, sizeof(after)));
	assert_int_equal(before.tensor.allocated, after.tensor.allocated);
	munmap(a, SIZE);
	munmap(b, SIZE);
}

/* What this process may only read its library refuses, and the card too. */
static void device_readonly(void **state)
{
	struct spyrert_program *mover;
	struct spyreprog_job *job;
	spyrert_ptr d, r, r2, mine;
	struct spyrert_pointer_info i;
	uint64_t sym[2];
	uint8_t b[128];
	void *data;
	size_t n;
	int fd;

	(void)state;
	OK(spyrert_malloc_exportable(dev, 2 * MB, &d));
	OK(spyrert_fill(dev, d, 0x5a, 1, 2 * MB));
	OK(spyrert_export(dev, d, &fd));
	OK(spyrert_import(dev, fd, SPYRERT_IMPORT_READONLY, &r, NULL));
	OK(spyrert_import(dev, fd, 0, &r2, NULL));
	FAILS(spyrert_host_import(dev, fd, 0, (void **)&data, NULL), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "device memory; use spyrert_import()");
	close(fd);
	OK(spyrert_pointer_query(dev, r, &i, sizeof(i)));
	assert_int_equal(i.flags, SPYRERT_POINTER_IMPORTED | SPYRERT_POINTER_READONLY);
	OK(spyrert_memcpy_d2h(dev, b, r, 128));
	assert_int_equal(b[100], 0x5a);
	FAILS(spyrert_memcpy_h2d(dev, r, b, 128), SPYRERT_ERROR_INVALID_ARGUMENT, "read only");
	FAILS(spyrert_fill(dev, r, 0, 1, 128), SPYRERT_ERROR_INVALID_ARGUMENT, "read only");
	FAILS(spyrert_memcpy_d2d(dev, r, r2 + 4096, 128), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "read only");
	OK(spyrert_memcpy_d2d(dev, r2 + 4096, r, 128));
	job = job_mover(0, 1);
	assert_int_equal(spyreprog_job_finish(job, &data, &n), 0);
	OK(spyrert_program_load_binary(dev, data, n, &mover));
	OK(spyrert_malloc(dev, 128, &mine));
	sym[0] = mine;
	sym[1] = r;
	OK(spyrert_launch(spyrert_default_stream(dev), mover, sym, 2, 0, 0));
	assert_int_equal(spyrert_device_synchronize(dev, LONG), SPYRERT_ERROR_PAGE_FAULT);
	OK(spyrert_stream_reset(spyrert_default_stream(dev)));
	/* The first import's end takes nothing from the others. */
	OK(spyrert_free(dev, r));
	OK(spyrert_export(dev, d, &fd));
	close(fd);
	OK(spyrert_free(dev, d));
	OK(spyrert_memcpy_d2h(dev, b, r2, 128));
	assert_int_equal(b[100], 0x5a);
	OK(spyrert_free(dev, r2));
	OK(spyrert_free(dev, mine));
	OK(spyrert_program_unload(mover));
	spyreprog_job_free(job);
	free(data);
}

/* Host memory goes between any cards. */
static void between_cards(void **state)
{
	struct spyrert_device *other;
	uint8_t *p, *q, *o = map_anon(SIZE);
	spyrert_ptr a, b;
	int fd;

	(void)state;
	OK(spyrert_device_open(lib, 1, &other));
	OK(spyrert_malloc(dev, SIZE, &a));
	OK(spyrert_malloc(other, SIZE, &b));
	OK(spyrert_host_alloc_exportable(dev, SIZE, (void **)&p));
	OK(spyrert_host_export(dev, p, &fd));
	OK(spyrert_host_import(other, fd, 0, (void **)&q, NULL));
	close(fd);
	/* Ordered on the cards alone: the second waits for a word that the first writes. */
	fill_bytes(o, SIZE, 33);
	OK(spyrert_memcpy_h2d(dev, a, o, SIZE));
	OK(spyrert_stream_wait_value(spyrert_default_stream(other), (uint64_t *)(q + WORDS), 1));
	OK(spyrert_memcpy_h2d_async(spyrert_default_stream(other), b, q, WORDS));
	OK(spyrert_memcpy_d2h_async(spyrert_default_stream(dev), p, a, WORDS));
	OK(spyrert_stream_write_value(spyrert_default_stream(dev), (uint64_t *)(p + WORDS), 1));
	OK(spyrert_device_synchronize(other, LONG));
	OK(spyrert_device_synchronize(dev, LONG));
	memset(q, 0, WORDS);
	OK(spyrert_memcpy_d2h(other, q, b, WORDS));
	same_bytes(o, p, WORDS);
	OK(spyrert_host_free(dev, p));
	OK(spyrert_memcpy_d2h(other, q, b, WORDS));
	same_bytes(o, q, WORDS);
	/* The program's own memory, for both at once. */
	OK(spyrert_host_register(dev, o, SIZE, 0));
	OK(spyrert_host_register(other, o, SIZE, SPYRERT_REGISTER_READONLY));
	OK(spyrert_memcpy_h2d(dev, a, o, SIZE));
	OK(spyrert_memcpy_h2d(other, b, o, SIZE));
	OK(spyrert_host_unregister(other, o));
	OK(spyrert_memcpy_d2h(dev, o, a, SIZE));
	OK(spyrert_host_unregister(dev, o));
	OK(spyrert_free(dev, a));
	OK(spyrert_device_close(other));
	munmap(o, SIZE);
}

/* --- Device memory of another card ----------------------------------------------------------- */

/* Between the first card's memory, which is given, and the second's. */
static void role_peer_importer(int sock)
{
	uint8_t *host = malloc(SIZE), *room = malloc(SIZE);
	struct spyrert_device *other;
	spyrert_ptr p, mine;
	int fd = recv_fd(sock);

	NEED(fd >= 0 && host && room);
	NEED(!spyrert_device_open(lib, 1, &other));
	NEED(!spyrert_import(other, fd, 0, &p, NULL));
	close(fd);
	NEED(!spyrert_malloc(other, SIZE, &mine));
	NEED(!spyrert_memcpy_d2d(other, mine, p, SIZE));
	NEED(!spyrert_memcpy_d2h(other, host, mine, SIZE));
	need_bytes(host, room, SIZE, 40);
	tell(sock);
	hear(sock);
	/* Who exported has freed it. */
	fill_bytes(host, SIZE, 41);
	NEED(!spyrert_memcpy_h2d(other, mine, host, SIZE));
	NEED(!spyrert_memcpy_d2d(other, p, mine, SIZE));
	NEED(!spyrert_memcpy_d2d(other, mine, p, SIZE));
	NEED(!spyrert_memcpy_d2h(other, host, mine, SIZE));
	need_bytes(host, room, SIZE, 41);
	free(host);
	free(room);
}

/* What the error says to do instead, and that nothing stays of it. */
static void without_switch(struct spyrert_device *other, int fd)
{
	spyrert_ptr p;

	FAILS(spyrert_import(other, fd, 0, &p, NULL), SPYRERT_ERROR_NOT_SUPPORTED,
	      "no PCIe switch is above both; share host memory");
	FAILS(spyrert_import(other, fd, SPYRERT_IMPORT_READONLY, &p, NULL),
	      SPYRERT_ERROR_NOT_SUPPORTED, "spyrert_host_alloc_exportable()");
}

static void between_memories(void **state)
{
	uint8_t *in = map_anon(SIZE), *out = map_anon(SIZE), *row;
	struct spyrert_memory_info before, after;
	struct spyrert_pointer_info i;
	struct spyrert_device *other;
	enum spyrert_link link;
	spyrert_ptr a, b, p, r;
	struct peer peer;
	uint64_t bytes;
	unsigned int k;
	int fd;

	(void)state;
	OK(spyrert_device_topology(lib, 0, 1, &link));
	OK(spyrert_device_open(lib, 1, &other));
	OK(spyrert_malloc(other, SIZE, &b));
	OK(spyrert_memory_get_info(other, &before, sizeof(before)));
	OK(spyrert_malloc_exportable(dev, SIZE, &a));
	OK(spyrert_export(dev, a, &fd));
	if (link != SPYRERT_LINK_SWITCH) {
		without_switch(other, fd);
		goto out;
	}
	FAILS(spyrert_host_import(other, fd, 0, (void **)&row, NULL),
	      SPYRERT_ERROR_INVALID_ARGUMENT, "device memory; use spyrert_import()");
	OK(spyrert_import(other, fd, 0, &p, &bytes));
	OK(spyrert_import(other, fd, SPYRERT_IMPORT_READONLY, &r, NULL));
	assert_int_equal(bytes, SIZE);
	assert_int_equal(p % (2 * MB), 0);
	OK(spyrert_pointer_query(other, p + 100, &i, sizeof(i)));
	assert_int_equal(i.kind, SPYRERT_MEMORY_PEER);
	assert_int_equal(i.flags, SPYRERT_POINTER_IMPORTED);
	assert_int_equal(i.base, p);
	assert_int_equal(i.bytes, SIZE);
	assert_int_equal(i.offset, 100);
	assert_int_equal(i.segment, 0);
	/* It is no memory of this card. */
	OK(spyrert_memory_get_info(other, &after, sizeof(after)));
	assert_int_equal(before.tensor.allocated, after.tensor.allocated);
	fill_bytes(in, SIZE, 40);
	OK(spyrert_memcpy_h2d(dev, a, in, SIZE));
	OK(spyrert_memcpy_d2d(other, b, p, SIZE));
	OK(spyrert_memcpy_d2h(other, out, b, SIZE));
	same_bytes(in, out, SIZE);
	/* Back, rows in another order, while the first card works too. */
	{
		struct spyrert_copy c = {
			.dims = 2, .direction = SPYRERT_D2D,
			.dst_dev = p, .src_dev = b + SIZE - 4096,
			.extent = { 4096, SIZE / 4096 }, .dst_stride = { 0, 4096 },
			.src_stride = { 0, -4096 },
		};
		spyrert_ptr busy;

		OK(spyrert_malloc(dev, SIZE, &busy));
		OK(spyrert_copy_async(spyrert_default_stream(other), &c));
		OK(spyrert_memcpy_h2d(dev, busy, in, SIZE));
		OK(spyrert_device_synchronize(other, LONG));
		OK(spyrert_free(dev, busy));
	}
	OK(spyrert_memcpy_d2h(dev, out, a, SIZE));
	for (k = 0; k < SIZE / 4096; k++)
		same_bytes(in + SIZE - (k + 1) * 4096, out + k * 4096, 4096);
	/* What is no copy between the two. */
	FAILS(spyrert_memcpy_h2d(other, p, in, 128), SPYRERT_ERROR_NOT_SUPPORTED, "another card");
	FAILS(spyrert_memcpy_d2h(other, out, p, 128), SPYRERT_ERROR_NOT_SUPPORTED, "another card");
	FAILS(spyrert_memcpy_d2d(other, p, r, 128), SPYRERT_ERROR_NOT_SUPPORTED, "another card");
	FAILS(spyrert_fill(other, p, 0, 1, 128), SPYRERT_ERROR_NOT_SUPPORTED, "another card");
	FAILS(spyrert_memcpy_d2d(other, r, b, 128), SPYRERT_ERROR_INVALID_ARGUMENT, "read only");
	FAILS(spyrert_memcpy_d2d(other, b, p + SIZE - 128, 256), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "leaves the allocation");
	FAILS(spyrert_memcpy_d2d(dev, a, p, 128), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "not in device memory");
	FAILS(spyrert_free(other, p + 128), SPYRERT_ERROR_INVALID_ARGUMENT, "lies inside");
	OK(spyrert_memcpy_d2d(other, b, r, SIZE));
	OK(spyrert_free(other, r));
	FAILS(spyrert_free(other, r), SPYRERT_ERROR_INVALID_ARGUMENT, "freed already");
	/* Another process has it at the other card, and its maker has freed it. */
	OK(spyrert_memcpy_h2d(dev, a, in, SIZE));
	peer = peer_start("peer_importer");
	assert_int_equal(send_fd(peer.sock, fd), 0);
	hear(peer.sock);
	OK(spyrert_free(dev, a));
	tell(peer.sock);
	peer_end(peer);
	fill_bytes(in, SIZE, 41);
	OK(spyrert_memcpy_d2d(other, b, p, SIZE));
	OK(spyrert_memcpy_d2h(other, out, b, SIZE));
	same_bytes(in, out, SIZE);
	OK(spyrert_free_async(spyrert_default_stream(other), p));
	OK(spyrert_stream_synchronize(spyrert_default_stream(other), LONG));
	close(fd);
	/* More than the aperture has room for lies elsewhere. */
	OK(spyrert_malloc_exportable(dev, 2048 * MB, &a));
	OK(spyrert_export(dev, a, &fd));
	FAILS(spyrert_import(other, fd, 0, &p, NULL), SPYRERT_ERROR_NOT_SUPPORTED,
	      "beyond the aperture");
out:
	close(fd);
	OK(spyrert_free(dev, a));
	OK(spyrert_free(other, b));
	OK(spyrert_device_close(other));
	munmap(in, SIZE);
	munmap(out, SIZE);
}

/* The other card's reset takes its memory away, and nothing else. That card is this process's. */
static void memory_taken_back(void **state)
{
	struct spyrert_device *other;
	enum spyrert_link link;
	spyrert_ptr a, b, p;
	char path[128];
	int fd;

	(void)state;
	OK(spyrert_device_topology(lib, 0, 1, &link));
	if (link != SPYRERT_LINK_SWITCH)
		skip();
	OK(spyrert_device_open(lib, 1, &other));
	OK(spyrert_malloc(other, SIZE, &b));
	OK(spyrert_malloc_exportable(dev, SIZE, &a));
	OK(spyrert_export(dev, a, &fd));
	OK(spyrert_import(other, fd, 0, &p, NULL));
	OK(spyrert_memcpy_d2d(other, b, p, SIZE));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", card.pci_address);
	put(path, "1");
	FAILS(spyrert_memcpy_d2d(other, b, p, SIZE), SPYRERT_ERROR_PAGE_FAULT, "page fault");
	OK(spyrert_stream_reset(spyrert_default_stream(other)));
	copy_works(other, 100000);
	OK(spyrert_free(other, p));
	FAILS(spyrert_import(other, fd, 0, &p, NULL), SPYRERT_ERROR_REVOKED, "exported anew");
	close(fd);
	assert_int_equal(spyrert_memcpy_d2h(dev, path, a, 128), SPYRERT_ERROR_DEVICE_LOST);
	OK(spyrert_device_recover(dev, LONG));
	OK(spyrert_malloc_exportable(dev, SIZE, &a));
	OK(spyrert_export(dev, a, &fd));
	OK(spyrert_import(other, fd, 0, &p, NULL));
	close(fd);
	OK(spyrert_memcpy_d2d(other, b, p, SIZE));
	OK(spyrert_free(other, p));
	OK(spyrert_free(dev, a));
	OK(spyrert_device_close(other));
}

/* --- Limits ---------------------------------------------------------------------------------- */

static void no_privileges(void)
{
	NEED(!setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
}

static void role_memlock(int sock)
{
	struct rlimit l = { .rlim_cur = MB, .rlim_max = MB };
	uint8_t *p = mmap(NULL, 2 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *pin;

	(void)sock;
	NEED(p != MAP_FAILED);
	NEED(!setrlimit(RLIMIT_MEMLOCK, &l));
	no_privileges();
	NEED(!spyrert_host_register(dev, p, MB / 2, 0));
	NEED(spyrert_host_register(dev, p + MB / 2, MB, 0) == SPYRERT_ERROR_PERMISSION);
	NEED(strstr(spyrert_last_error(), "1.00 MiB (1048576 bytes) would exceed RLIMIT_MEMLOCK"));
	NEED(strstr(spyrert_last_error(), "limit 1.00 MiB"));
	NEED(strstr(spyrert_last_error(), "pinned 524288 bytes"));
	NEED(strstr(spyrert_last_error(), "ulimit -l"));
	/* Of it, and of nothing else. */
	NEED(!spyrert_host_alloc(dev, 2 * MB, &pin));
	NEED(!spyrert_host_register(dev, p + MB / 2, MB / 2, 0));
	NEED(!spyrert_host_unregister(dev, p));
	NEED(!spyrert_host_register(dev, p, MB / 2, SPYRERT_REGISTER_READONLY));
}

#define QUOTA	"/sys/module/spyre/parameters/host_quota_percent"

/* Started as who may open the card, and nothing more. */
static void role_quota(int sock)
{
	void *pin;

	(void)sock;
	NEED(spyrert_host_alloc(dev, 512 * MB, &pin) == SPYRERT_ERROR_LIMIT);
	NEED(strstr(spyrert_last_error(), "512.00 MiB (536870912 bytes) would exceed"));
	NEED(strstr(spyrert_last_error(), "this user's quota"));
	NEED(strstr(spyrert_last_error(), "host_quota_percent"));
	NEED(spyrert_host_alloc_exportable(dev, 512 * MB, &pin) == SPYRERT_ERROR_LIMIT);
	NEED(strstr(spyrert_last_error(), "quota"));
	NEED(!spyrert_host_alloc(dev, MB, &pin));
}

/* Of contexts, which the first memory of a device needs, and not of memory. */
static void role_contexts(int sock)
{
	struct spyrert_device *more;
	enum spyrert_status status;
	void *pin;
	int i;

	(void)sock;
	for (i = 0; i < 4096; i++) {
		NEED(!spyrert_device_open(lib, 0, &more));
		status = spyrert_host_alloc(more, 128, &pin);
		if (status)
			break;
	}
	NEED(status == SPYRERT_ERROR_LIMIT);
	NEED(strstr(spyrert_last_error(), "limit reached: contexts"));
	NEED(!strstr(spyrert_last_error(), "host_quota_percent"));
	NEED(spyrert_host_register(more, (void *)((uintptr_t)&pin & ~(PAGE - 1)), PAGE, 0) ==
	     SPYRERT_ERROR_LIMIT);
	NEED(strstr(spyrert_last_error(), "limit reached: contexts"));
}

static void role_cgroup(int sock)
{
	void *pin;

	(void)sock;
	NEED(spyrert_host_alloc(dev, 512 * MB, &pin) == SPYRERT_ERROR_HOST_MEMORY);
	NEED(strstr(spyrert_last_error(), "memory cgroup /sys/fs/cgroup/spyre-share/deep"));
	NEED(strstr(spyrert_last_error(), "limit (memory.max) 192.00 MiB"));
	NEED(!spyrert_host_alloc(dev, MB, &pin));
}

#define DMEM_CG	"/sys/fs/cgroup/spyre-dmem"

/* The cgroup has 64 MiB of the card, which has more. */
static void role_dmem(int sock)
{
	spyrert_ptr a, b;

	(void)sock;
	NEED(!spyrert_malloc(dev, 40 * MB, &a));
	NEED(spyrert_malloc(dev, 40 * MB, &b) == SPYRERT_ERROR_OUT_OF_MEMORY);
	NEED(strstr(spyrert_last_error(), "40.00 MiB (41943040 bytes) would exceed"));
	NEED(strstr(spyrert_last_error(), "cgroup " DMEM_CG " may"));
	NEED(strstr(spyrert_last_error(), "limit (dmem.max) 64.00 MiB"));
	NEED(spyrert_malloc_exportable(dev, 40 * MB, &b) == SPYRERT_ERROR_OUT_OF_MEMORY);
	NEED(strstr(spyrert_last_error(), "dmem.max"));
	/* What it is not about has its own words. */
	NEED(spyrert_malloc(dev, 1ull << 40, &b));
	NEED(!strstr(spyrert_last_error(), "dmem.max"));
	NEED(!spyrert_free(dev, a));
	NEED(!spyrert_malloc(dev, 40 * MB, &b));
}

/* Whether this kernel's cgroups count device memory. */
static bool has_dmem(void)
{
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK))
		mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	return !access("/sys/fs/cgroup/dmem.capacity", F_OK);
}

static void which_limit_of_the_card(void **state)
{
	char line[128];

	(void)state;
	put("/sys/fs/cgroup/cgroup.subtree_control", "+dmem");
	rmdir(DMEM_CG);
	assert_int_equal(mkdir(DMEM_CG, 0755), 0);
	snprintf(line, sizeof(line), "drm/%s/device 64M", card.pci_address);
	put(DMEM_CG "/dmem.max", line);
	peer_end(peer_start("dmem"));
	assert_int_equal(rmdir(DMEM_CG), 0);
}

static void which_limit(void **state)
{
	static const char cg[] = "/sys/fs/cgroup/spyre-share";
	static const char deep[] = "/sys/fs/cgroup/spyre-share/deep";
	struct stat st;

	(void)state;
	peer_end(peer_start("memlock"));
	assert_int_equal(stat(card.node, &st), 0);
	assert_int_equal(chmod(card.node, 0666), 0);
	peer_end(peer_start("contexts"));
	put(QUOTA, "5");
	peer_end(peer_start("quota"));
	put(QUOTA, "50");
	assert_int_equal(chmod(card.node, st.st_mode & 07777), 0);
	/* One level up allows more, so it is not the one that is named. */
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK))
		assert_int_equal(mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL), 0);
	put("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	assert_int_equal(mkdir(cg, 0755), 0);
	put("/sys/fs/cgroup/spyre-share/memory.max", "400M");
	put("/sys/fs/cgroup/spyre-share/cgroup.subtree_control", "+memory");
	assert_int_equal(mkdir(deep, 0755), 0);
	put("/sys/fs/cgroup/spyre-share/deep/memory.max", "192M");
	peer_end(peer_start("cgroup"));
	assert_int_equal(rmdir(deep), 0);
	assert_int_equal(rmdir(cg), 0);
}

/* --- Fences of the kernel -------------------------------------------------------------------- */

static void sync_file_refuses(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct spyrert_stream *st;

	(void)state;
	OK(spyrert_stream_create(dev, NULL, &st));
	FAILS(spyrert_stream_wait_sync_file(NULL, null), SPYRERT_ERROR_INVALID_ARGUMENT, "NULL");
	FAILS(spyrert_stream_wait_sync_file(st, -1), SPYRERT_ERROR_INVALID_ARGUMENT, "not open");
	FAILS(spyrert_stream_wait_sync_file(st, null), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "not a sync_file");
	/* The stream has no part in it. */
	OK(spyrert_stream_nop(st));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_stream_destroy(st));
	close(null);
}

static void sync_file_wait(void **state)
{
	struct spyrert_stream *st;
	uint32_t fence;
	uint64_t *w;
	int vgem, fd;

	(void)state;
	vgem = vgem_open();
	assert_true(vgem >= 0);
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_host_alloc(dev, 256, (void **)&w));
	w[0] = w[1] = 0;
	fd = vgem_fence(vgem, &fence);
	assert_true(fd >= 0);
	OK(spyrert_stream_write_value(st, &w[0], 1));
	OK(spyrert_stream_wait_sync_file(st, fd));
	OK(spyrert_stream_write_value(st, &w[1], 1));
	close(fd);
	/* What stands before goes on, what stands behind waits. */
	assert_int_equal(spyrert_stream_synchronize(st, SECOND / 5), SPYRERT_ERROR_TIMEOUT);
	assert_int_equal(w[0], 1);
	assert_int_equal(w[1], 0);
	assert_int_equal(vgem_signal(vgem, fence), 0);
	OK(spyrert_stream_synchronize(st, LONG));
	assert_int_equal(w[1], 1);
	/* Two in two streams, signalled in the other order; one that has signalled is no wait. */
	{
		struct spyrert_stream *b;
		uint32_t fence2;
		int fd2;

		OK(spyrert_stream_create(dev, NULL, &b));
		fd = vgem_fence(vgem, &fence);
		fd2 = vgem_fence(vgem, &fence2);
		assert_true(fd >= 0 && fd2 >= 0);
		OK(spyrert_stream_wait_sync_file(st, fd));
		OK(spyrert_stream_wait_sync_file(b, fd2));
		assert_int_equal(vgem_signal(vgem, fence2), 0);
		OK(spyrert_stream_synchronize(b, LONG));
		assert_int_equal(spyrert_stream_query(st), SPYRERT_NOT_READY);
		OK(spyrert_stream_wait_sync_file(b, fd2));
		OK(spyrert_stream_query(b));
		/* Who waits for a fence can be reset and destroyed without it. */
		OK(spyrert_stream_reset(st));
		OK(spyrert_stream_write_value(st, &w[1], 2));
		OK(spyrert_stream_synchronize(st, LONG));
		assert_int_equal(w[1], 2);
		OK(spyrert_stream_wait_sync_file(b, fd));
		OK(spyrert_stream_reset(b));
		OK(spyrert_stream_destroy(b));
		assert_int_equal(vgem_signal(vgem, fence), 0);
		close(fd);
		close(fd2);
	}
	OK(spyrert_stream_destroy(st));
	OK(spyrert_host_free(dev, w));
	close(vgem);
}

/*
 * A fence of this driver that fails once another one has signalled: a SUBMIT that fills what is not
 * mapped. Its sync_file, or a negative number; *node is to be kept open until then.
 */
static int failing_fence(int after, int *node)
{
	struct spyre_cb cb = { .type = SPYRE_CB_FILL };
	struct drm_syncobj_create c[2] = {};
	struct drm_syncobj_handle h = { .flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE };
	struct drm_spyre_sync in = {}, out = {};
	struct drm_spyre_submit s = {
		.cbs = (uintptr_t)&cb, .in_syncs = (uintptr_t)&in, .out_syncs = (uintptr_t)&out,
		.cb_count = 1, .in_count = 1, .out_count = 1,
	};

	cb.u.fill.dst = MB;
	cb.u.fill.bytes = 4096;
	*node = open(card.node, O_RDWR | O_CLOEXEC);
	if (*node < 0 || ioctl(*node, DRM_IOCTL_SYNCOBJ_CREATE, &c[0]) ||
	    ioctl(*node, DRM_IOCTL_SYNCOBJ_CREATE, &c[1]))
		return -1;
	h.handle = c[0].handle;
	h.fd = after;
	in.handle = c[0].handle;
	out.handle = c[1].handle;
	if (ioctl(*node, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &h) ||
	    ioctl(*node, DRM_IOCTL_SPYRE_SUBMIT, &s))
		return -1;
	h.handle = c[1].handle;
	h.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;
	return ioctl(*node, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &h) ? -1 : h.fd;
}

/* A fence that ends with an error ends the streams that wait for it. */
static void sync_file_error(void **state)
{
	struct spyrert_stream *st, *b;
	struct spyrert_event *ev;
	uint32_t fence;
	uint64_t *w;
	int vgem, before, node, fd;

	(void)state;
	vgem = vgem_open();
	assert_true(vgem >= 0);
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_stream_create(dev, NULL, &b));
	OK(spyrert_event_create(dev, 0, &ev));
	OK(spyrert_host_alloc(dev, 128, (void **)&w));
	*w = 0;
	before = vgem_fence(vgem, &fence);
	assert_true(before >= 0);
	fd = failing_fence(before, &node);
	assert_true(fd >= 0);
	OK(spyrert_stream_wait_sync_file(st, fd));
	OK(spyrert_stream_write_value(st, w, 1));
	OK(spyrert_event_record(ev, st));
	OK(spyrert_stream_wait_event(b, ev));
	assert_int_equal(spyrert_stream_query(st), SPYRERT_NOT_READY);
	assert_int_equal(vgem_signal(vgem, fence), 0);
	FAILS(spyrert_stream_synchronize(st, LONG), SPYRERT_ERROR_DEPENDENCY,
	      "waits for a sync_file, whose fence ended with an error");
	assert_int_equal(*w, 0);
	/* It travels on like every error of a stream. */
	FAILS(spyrert_stream_synchronize(b, LONG), SPYRERT_ERROR_DEPENDENCY, "failed or was reset");
	OK(spyrert_stream_reset(b));
	OK(spyrert_stream_reset(st));
	FAILS(spyrert_stream_wait_sync_file(st, fd), SPYRERT_ERROR_DEPENDENCY,
	      "has ended with an error");
	OK(spyrert_stream_nop(st));
	OK(spyrert_stream_synchronize(st, LONG));
	close(fd);
	close(before);
	close(node);
	OK(spyrert_event_destroy(ev));
	OK(spyrert_stream_destroy(st));
	OK(spyrert_stream_destroy(b));
	OK(spyrert_host_free(dev, w));
	close(vgem);
}

/* --- The program ----------------------------------------------------------------------------- */

static bool open_card(void)
{
	if (spyrert_init(NULL, &lib) || spyrert_device_get_info(lib, 0, &card, sizeof(card)) ||
	    spyrert_device_open(lib, 0, &dev)) {
		printf("Bail out! %s\n", spyrert_last_error());
		return false;
	}
	return true;
}

static int play(const char *name, int sock)
{
	static const struct {
		const char *name;
		void (*fn)(int sock);
	} roles[] = {
		{ "host_importer", role_host_importer }, { "host_exporter", role_host_exporter },
		{ "device_importer", role_device_importer }, { "memlock", role_memlock },
		{ "quota", role_quota }, { "contexts", role_contexts },
		{ "cgroup", role_cgroup }, { "dmem", role_dmem },
		{ "peer_importer", role_peer_importer },
	};
	const char *group = NULL;
	size_t i;
	int fd;

	if (!strcmp(name, "quota") || !strcmp(name, "contexts"))
		no_privileges();
	if (!strcmp(name, "cgroup"))
		group = "/sys/fs/cgroup/spyre-share/deep/cgroup.procs";
	else if (!strcmp(name, "dmem"))
		group = DMEM_CG "/cgroup.procs";
	if (group) {
		fd = open(group, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, "0", 1) != 1)
			return 1;
		close(fd);
	}
	if (!open_card())
		return 1;
	for (i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(roles[i].name, name))
			roles[i].fn(sock);
	/* The rest goes as it goes with every process that ends. */
	_exit(0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest everywhere[] = {
		cmocka_unit_test(registered),
		cmocka_unit_test(registered_readonly),
		cmocka_unit_test(register_refuses),
		cmocka_unit_test(many_registered),
		cmocka_unit_test(unregister_in_use),
		cmocka_unit_test(registered_by_many),
		cmocka_unit_test(register_and_fork),
		cmocka_unit_test(registered_at_close),
		cmocka_unit_test(share_host),
		cmocka_unit_test(host_exporter_dies),
		cmocka_unit_test(import_again),
		cmocka_unit_test(import_readonly),
		cmocka_unit_test(share_refuses),
		cmocka_unit_test(share_device),
		cmocka_unit_test(sync_file_refuses),
	};
	const struct CMUnitTest driver[] = {
		cmocka_unit_test(register_and_move),
		cmocka_unit_test(import_udmabuf),
		cmocka_unit_test(device_readonly),
		cmocka_unit_test(which_limit),
	};
	/* Not every kernel has the driver that they come from. */
	const struct CMUnitTest vgem[] = {
		cmocka_unit_test(sync_file_wait),
		cmocka_unit_test(sync_file_error),
	};
	const struct CMUnitTest dmem[] = {
		cmocka_unit_test(which_limit_of_the_card),
	};
	const struct CMUnitTest two_cards[] = {
		cmocka_unit_test(between_cards),
	};
	const struct CMUnitTest two_memories[] = {
		cmocka_unit_test(between_memories),
		cmocka_unit_test(memory_taken_back),
	};
	int failed, count, other;

	setvbuf(stdout, NULL, _IOLBF, 0);
	two_cards_carried();
	if (argc == 4 && !strcmp(argv[1], "--role"))
		return play(argv[2], atoi(argv[3]));
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (!open_card() || spyrert_device_count(lib, &count))
		return 1;
	failed = cmocka_run_group_tests(everywhere, NULL, NULL);
	if (!is_model()) {
		failed += cmocka_run_group_tests(driver, NULL, NULL);
		other = vgem_open();
		if (other >= 0)
			failed += cmocka_run_group_tests(vgem, NULL, NULL);
		close(other);
		if (has_dmem())
			failed += cmocka_run_group_tests(dmem, NULL, NULL);
	}
	if (count > 1)
		failed += cmocka_run_group_tests(two_cards, NULL, NULL);
	if (count > 1 && !is_model())
		failed += cmocka_run_group_tests(two_memories, NULL, NULL);
	if (spyrert_device_close(dev) || spyrert_exit(lib)) {
		fprintf(stderr, "%s\n", spyrert_last_error());
		failed++;
	}
	return failed != 0;
}
