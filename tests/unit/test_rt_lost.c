// SPDX-License-Identifier: MIT
/*
 * What the library makes of what the backend tells: a card that loses its memory, or its firmware,
 * under a running program (clear errors, then recovery), cards that do not work, how near two are.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../rt/rttest.h"
#include "rt.h"

static struct spyrert *lib;
static struct spyrert_device *dev;

static void provoke(const char *what, uint64_t arg)
{
	struct rt_session *s = dev->session;

	assert_int_equal(s->lib->be->provoke(s->be_dev, what, arg), 0);
}

static void lost_and_recovered(void **state)
{
	struct spyrert_device_props before, after;
	struct spyrert_stream *st, *idle, *def;
	struct spyrert_error_info e;
	struct spyrert_event *ev;
	pthread_t thread;
	uint64_t *w;
	spyrert_ptr d;
	uint8_t *pin;
	void *ret;

	(void)state;
	OK(spyrert_device_get_props(dev, &before, sizeof(before)));
	copy_works(dev, 3000);
	OK(spyrert_malloc(dev, 4096, &d));
	OK(spyrert_host_alloc(dev, 256, (void **)&w));
	OK(spyrert_host_alloc(dev, 4 << 20, (void **)&pin));
	pin[12345] = 99;
	*w = 0;
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_stream_create(dev, NULL, &idle));
	OK(spyrert_event_create(dev, 0, &ev));
	OK(spyrert_stream_wait_value(st, w, 1));
	OK(spyrert_event_record(ev, st));
	/* Recovery of what is well does nothing. */
	OK(spyrert_device_recover(dev, 0));
	assert_int_equal(spyrert_event_query(ev), SPYRERT_NOT_READY);
	/* Somebody sleeps in the kernel while it happens. */
	assert_int_equal(pthread_create(&thread, NULL, wait_stream, st), 0);
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	provoke("flr", 0);
	pthread_join(thread, &ret);
	assert_int_equal((intptr_t)ret, SPYRERT_ERROR_DEVICE_LOST);
	OK(spyrert_stream_error(st, &e, sizeof(e)));
	assert_int_equal(e.status, SPYRERT_ERROR_DEVICE_LOST);
	assert_non_null(strstr(e.text, "spyrert_device_recover"));
	/* Everything says so, the idle stream and the device too. */
	assert_int_equal(spyrert_stream_nop(st), SPYRERT_ERROR_DEVICE_LOST);
	assert_int_equal(spyrert_stream_nop(idle), SPYRERT_ERROR_DEVICE_LOST);
	assert_int_equal(spyrert_event_query(ev), SPYRERT_ERROR_DEVICE_LOST);
	assert_int_equal(spyrert_malloc(dev, 128, &d), SPYRERT_ERROR_DEVICE_LOST);
	assert_int_equal(spyrert_memcpy_h2d(dev, d, pin, 128), SPYRERT_ERROR_DEVICE_LOST);
	/* And goes on saying so of what was made before. */
	OK(spyrert_device_recover(dev, LONG));
	OK(spyrert_device_get_props(dev, &after, sizeof(after)));
	assert_int_equal(after.reset_generation, before.reset_generation + 1);
	copy_works(dev, 3000);
	assert_int_equal(spyrert_stream_nop(st), SPYRERT_ERROR_DEVICE_LOST);
	assert_int_equal(spyrert_event_record(ev, st), SPYRERT_ERROR_DEVICE_LOST);
	assert_int_equal(pin[12345], 99);
	OK(spyrert_host_free(dev, w));
	OK(spyrert_host_free(dev, pin));
	spyrert_stream_destroy(st);
	spyrert_stream_destroy(idle);
	OK(spyrert_event_destroy(ev));
	def = spyrert_default_stream(dev);
	assert_non_null(def);
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_stream_nop(st));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_stream_destroy(st));
}

/* What the program registered and what it shares is its own, or goes on, after a loss. */
static void lost_with_shared_memory(void **state)
{
	struct spyrert_stream *st;
	uint8_t *p, *shared, *again;
	spyrert_ptr d;
	uint64_t *w;
	int fd;

	(void)state;
	p = aligned_alloc(4096, 1 << 20);
	assert_non_null(p);
	memset(p, 3, 1 << 20);
	OK(spyrert_malloc(dev, 1 << 20, &d));
	OK(spyrert_host_alloc(dev, 128, (void **)&w));
	*w = 0;
	OK(spyrert_host_alloc_exportable(dev, 1 << 20, (void **)&shared));
	memset(shared, 4, 1 << 20);
	OK(spyrert_host_export(dev, shared, &fd));
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_host_register(dev, p, 1 << 20, 0));
	OK(spyrert_stream_wait_value(st, w, 1));
	OK(spyrert_memcpy_h2d_async(st, d, p, 1 << 20));
	assert_int_equal(spyrert_host_unregister(dev, p), SPYRERT_ERROR_BUSY);
	provoke("flr", 0);
	assert_int_equal(spyrert_stream_synchronize(st, LONG), SPYRERT_ERROR_DEVICE_LOST);
	assert_int_equal(spyrert_host_register(dev, p, 1 << 20, 0), SPYRERT_ERROR_DEVICE_LOST);
	assert_int_equal(spyrert_host_export(dev, shared, &fd), SPYRERT_ERROR_DEVICE_LOST);
	OK(spyrert_device_recover(dev, LONG));
	/* Nothing of the lost card uses it any more. */
	OK(spyrert_host_unregister(dev, p));
	assert_int_equal(spyrert_host_unregister(dev, p), SPYRERT_ERROR_INVALID_ARGUMENT);
	OK(spyrert_host_register(dev, p, 1 << 20, 0));
	OK(spyrert_malloc(dev, 1 << 20, &d));
	OK(spyrert_memcpy_h2d(dev, d, p, 1 << 20));
	/* The descriptor outlives the card's memory. */
	OK(spyrert_host_import(dev, fd, 0, (void **)&again, NULL));
	close(fd);
	assert_memory_equal(shared, again, 1 << 20);
	OK(spyrert_memcpy_d2h(dev, again, d, 1 << 20));
	assert_int_equal(shared[99], 3);
	OK(spyrert_host_free(dev, shared));
	assert_int_equal(again[100], 3);
	OK(spyrert_host_free(dev, again));
	OK(spyrert_host_unregister(dev, p));
	OK(spyrert_host_free(dev, w));
	OK(spyrert_free(dev, d));
	spyrert_stream_destroy(st);
	free(p);
}

/* Several times, with a second open that must notice by itself. */
static void again_with_two(void **state)
{
	struct spyrert_device *other;
	spyrert_ptr d;
	int i;

	(void)state;
	OK(spyrert_device_open(lib, 0, &other));
	OK(spyrert_malloc(other, 128, &d));
	for (i = 0; i < 3; i++) {
		copy_works(dev, 3000);
		provoke("flr", 0);
		assert_int_equal(spyrert_empty_cache(dev) ? 0 : spyrert_malloc(dev, 64 << 20, &d),
				 SPYRERT_ERROR_DEVICE_LOST);
		OK(spyrert_device_recover(dev, LONG));
	}
	assert_int_equal(spyrert_malloc(other, 100 << 20, &d), SPYRERT_ERROR_DEVICE_LOST);
	OK(spyrert_device_recover(other, LONG));
	OK(spyrert_malloc(other, 128, &d));
	OK(spyrert_device_close(other));
	copy_works(dev, 3000);
}

static struct rt_backend slow;
static const struct rt_backend *real;
static bool card_shows;
static unsigned int scans;

static int slow_scan(void *state, struct rt_card *cards, int max)
{
	int i, n = real->scan(state, cards, max);

	for (i = 0; i < n; i++)
		cards[i].works = __atomic_load_n(&card_shows, __ATOMIC_ACQUIRE);
	__atomic_fetch_add(&scans, 1, __ATOMIC_RELEASE);
	return n;
}

/* A card that does not work is not counted, and who opens it is told what to look at. */
static void only_what_works_counts(void **state)
{
	struct spyrert_device_info info;
	struct spyrert_device *d;
	int n;

	(void)state;
	real = lib->be;
	slow = *real;
	slow.scan = slow_scan;
	lib->be = &slow;
	__atomic_store_n(&card_shows, false, __ATOMIC_RELEASE);
	OK(spyrert_device_count(lib, &n));
	assert_int_equal(n, 0);
	assert_int_equal(spyrert_device_get_info(lib, 0, &info, sizeof(info)), SPYRERT_ERROR_NO_DEVICE);
	assert_int_equal(spyrert_device_open(lib, 0, &d), SPYRERT_ERROR_NO_DEVICE);
	assert_non_null(strstr(spyrert_last_error(), "no Spyre card that works"));
	__atomic_store_n(&card_shows, true, __ATOMIC_RELEASE);
	OK(spyrert_device_count(lib, &n));
	assert_int_equal(n, 1);
	__atomic_store_n(&card_shows, false, __ATOMIC_RELEASE);
	__atomic_store_n(&scans, 0, __ATOMIC_RELEASE);
	lib->be = real;
}

static const char *paths[2];
static int nodes[2];

static int placed_scan(void *state, struct rt_card *cards, int max)
{
	int i;

	if (max < 2 || real->scan(state, cards, max) < 1)
		return -1;
	for (i = 0; i < 2; i++) {
		cards[i] = cards[0];
		cards[i].number = i;
		cards[i].works = true;
		cards[i].info.numa_node = nodes[i];
		snprintf(cards[i].syspath, sizeof(cards[i].syspath), "%s", paths[i]);
	}
	return 2;
}

/* Under one switch, at one root complex, or further. */
static void nearness(void **state)
{
	static const struct {
		const char *a, *b;
		int node;
		enum spyrert_link link;
	} cases[] = {
		{ "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
		  "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0/0000:02:01.0/0000:04:00.0", 0,
		  SPYRERT_LINK_SWITCH },
		{ "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0",
		  "/sys/devices/pci0000:00/0000:00:03.0/0000:02:00.0", 0, SPYRERT_LINK_ROOT },
		{ "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0",
		  "/sys/devices/pci0000:00/0000:00:03.0/0000:02:00.0", 1, SPYRERT_LINK_SYSTEM },
		{ "/sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0",
		  "/sys/devices/pci0000:80/0000:80:02.0/0000:81:00.0", 0, SPYRERT_LINK_SYSTEM },
		{ "", "", 0, SPYRERT_LINK_SYSTEM },
	};
	enum spyrert_link link;
	size_t i;

	(void)state;
	real = lib->be;
	slow = *real;
	slow.scan = placed_scan;
	lib->be = &slow;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		paths[0] = cases[i].a;
		paths[1] = cases[i].b;
		nodes[1] = cases[i].node;
		OK(spyrert_device_topology(lib, 0, 1, &link));
		assert_int_equal(link, cases[i].link);
		OK(spyrert_device_topology(lib, 1, 1, &link));
		assert_int_equal(link, SPYRERT_LINK_SELF);
	}
	assert_int_equal(spyrert_device_topology(lib, 0, 2, &link), SPYRERT_ERROR_NO_DEVICE);
	lib->be = real;
}

static void *recover(void *arg)
{
	return (void *)(intptr_t)spyrert_device_recover(dev, (uintptr_t)arg);
}

/* While one thread waits for the card, the others of the device are told and go on. */
static void recovery_blocks_nobody(void **state)
{
	pthread_t thread;
	spyrert_ptr d;
	void *ret;

	(void)state;
	real = lib->be;
	slow = *real;
	slow.scan = slow_scan;
	lib->be = &slow;
	provoke("flr", 0);
	assert_int_equal(pthread_create(&thread, NULL, recover, (void *)(uintptr_t)5000000000ull), 0);
	while (!__atomic_load_n(&scans, __ATOMIC_ACQUIRE))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_non_null(spyrert_default_stream(dev));
	assert_int_equal(spyrert_malloc(dev, 128, &d), SPYRERT_ERROR_DEVICE_LOST);
	assert_int_equal(spyrert_device_recover(dev, 0), SPYRERT_ERROR_TIMEOUT);
	__atomic_store_n(&card_shows, true, __ATOMIC_RELEASE);
	pthread_join(thread, &ret);
	assert_int_equal((intptr_t)ret, SPYRERT_SUCCESS);
	lib->be = real;
	copy_works(dev, 3000);
}

/* A copy that the hardware fails: that stream alone has an error, and what RAS said of it. */
static void dma_abort(void **state)
{
	struct spyrert_error_info e;
	struct spyrert_stream *st;
	static uint8_t a[8192];
	spyrert_ptr d;

	(void)state;
	OK(spyrert_malloc(dev, sizeof(a), &d));
	OK(spyrert_stream_create(dev, NULL, &st));
	provoke("dma-abort", 0);
	/* The error may be there before the call returns. */
	if (!spyrert_memcpy_h2d_async(st, d, a, sizeof(a)))
		assert_int_equal(spyrert_stream_synchronize(st, LONG), SPYRERT_ERROR_HARDWARE);
	OK(spyrert_stream_error(st, &e, sizeof(e)));
	assert_int_equal(e.card_status, SPYRE_ERR_HW);
	assert_int_not_equal(e.ras.code, 0);
	OK(spyrert_stream_reset(st));
	OK(spyrert_memcpy_h2d_async(st, d, a, sizeof(a)));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_stream_destroy(st));
	OK(spyrert_free(dev, d));
}

/* An interrupt that never comes delays a wait, and no more. */
static void lost_interrupt(void **state)
{
	struct spyrert_stream *st;
	uint64_t *w;
	int i;

	(void)state;
	OK(spyrert_host_alloc(dev, 128, (void **)&w));
	OK(spyrert_stream_create(dev, NULL, &st));
	for (i = 0; i < 10; i++) {
		*w = 0;
		OK(spyrert_stream_wait_value(st, w, 1));
		assert_int_equal(spyrert_stream_synchronize(st, 1000000), SPYRERT_ERROR_TIMEOUT);
		provoke("lost-irq", 1);
		OK(spyrert_host_write_value(dev, w, 1));
		OK(spyrert_stream_synchronize(st, LONG));
	}
	OK(spyrert_stream_destroy(st));
	OK(spyrert_host_free(dev, w));
}

static int open_card(void **state)
{
	(void)state;
	return spyrert_init("model", &lib) || spyrert_device_open(lib, 0, &dev) ? -1 : 0;
}

static int close_card(void **state)
{
	(void)state;
	return spyrert_device_close(dev) || spyrert_exit(lib) ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_and_recovered),
		cmocka_unit_test(lost_with_shared_memory),
		cmocka_unit_test(again_with_two),
		cmocka_unit_test(only_what_works_counts),
		cmocka_unit_test(nearness),
		cmocka_unit_test(recovery_blocks_nobody),
		cmocka_unit_test(dma_abort),
		cmocka_unit_test(lost_interrupt),
	};

	setenv("SPYRERT_FIRMWARE", FIRMWARE, 0);
	setenv("SPYRERT_MODEL_TIMING", "off", 0);
	return cmocka_run_group_tests(tests, open_card, close_card);
}
