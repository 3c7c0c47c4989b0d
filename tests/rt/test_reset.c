// SPDX-License-Identifier: MIT
/*
 * A function-level reset of the card under a program that uses it, by the operator's way (sysfs):
 * the program is told, recovers, and works again. Backend drm, root.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "rttest.h"

#define SIZE	(4u << 20)

static struct spyrert *lib;
static struct spyrert_device *dev;
static char reset_path[128];

static void reset_card(void)
{
	int fd = open(reset_path, O_WRONLY);

	if (fd < 0 || write(fd, "1", 1) != 1)
		fail_msg("%s cannot be written", reset_path);
	close(fd);
}

static void told_and_recovered(void **state)
{
	struct spyrert_device_props before, after;
	struct spyrert_stream *st;
	struct spyrert_event *ev;
	pthread_t thread;
	uint64_t *w;
	uint8_t *pin;
	void *ret;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		copy_works(dev, 100000);
		OK(spyrert_device_get_props(dev, &before, sizeof(before)));
		OK(spyrert_host_alloc(dev, 256, (void **)&w));
		OK(spyrert_host_alloc(dev, 4 << 20, (void **)&pin));
		pin[99] = 7;
		*w = 0;
		OK(spyrert_stream_create(dev, NULL, &st));
		OK(spyrert_event_create(dev, 0, &ev));
		OK(spyrert_stream_wait_value(st, w, 1));
		OK(spyrert_event_record(ev, st));
		assert_int_equal(pthread_create(&thread, NULL, wait_stream, st), 0);
		nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
		reset_card();
		pthread_join(thread, &ret);
		assert_int_equal((intptr_t)ret, SPYRERT_ERROR_DEVICE_LOST);
		assert_int_equal(spyrert_stream_nop(st), SPYRERT_ERROR_DEVICE_LOST);
		assert_int_equal(spyrert_event_query(ev), SPYRERT_ERROR_DEVICE_LOST);
		OK(spyrert_device_recover(dev, LONG));
		OK(spyrert_device_get_props(dev, &after, sizeof(after)));
		assert_int_not_equal(after.reset_generation, before.reset_generation);
		assert_int_equal(pin[99], 7);
		OK(spyrert_host_free(dev, w));
		OK(spyrert_host_free(dev, pin));
		spyrert_stream_destroy(st);
		OK(spyrert_event_destroy(ev));
	}
	copy_works(dev, 100000);
}

/*
 * Memory that is shared, or the program's own, over a reset: host memory is there as ever; device
 * memory is gone for whoever has it, and for whoever comes later with its descriptor, who is told so.
 */
static void shared_memory_over_reset(void **state)
{
	uint8_t *own = aligned_alloc(4096, SIZE), *shared, *again, *o = malloc(SIZE);
	struct spyrert_device *other;
	spyrert_ptr d, theirs;
	int dfd, hfd;

	(void)state;
	assert_true(own && o);
	OK(spyrert_device_open(lib, 0, &other));
	memset(own, 5, SIZE);
	OK(spyrert_host_register(dev, own, SIZE, 0));
	OK(spyrert_malloc_exportable(dev, SIZE, &d));
	OK(spyrert_export(dev, d, &dfd));
	OK(spyrert_import(other, dfd, 0, &theirs, NULL));
	OK(spyrert_memcpy_h2d(dev, d, own, SIZE));
	OK(spyrert_memcpy_d2h(other, o, theirs, SIZE));
	assert_memory_equal(own, o, SIZE);
	OK(spyrert_host_alloc_exportable(dev, SIZE, (void **)&shared));
	memset(shared, 6, SIZE);
	OK(spyrert_host_export(dev, shared, &hfd));
	reset_card();
	/* The importer is told like everybody. */
	assert_int_equal(spyrert_memcpy_d2h(other, o, theirs, SIZE), SPYRERT_ERROR_DEVICE_LOST);
	assert_int_equal(spyrert_host_register(other, o, 4096, 0), SPYRERT_ERROR_INVALID_ARGUMENT);
	assert_int_equal(spyrert_import(other, dfd, 0, &theirs, NULL), SPYRERT_ERROR_DEVICE_LOST);
	OK(spyrert_device_recover(other, LONG));
	assert_int_equal(spyrert_import(other, dfd, 0, &theirs, NULL), SPYRERT_ERROR_REVOKED);
	assert_non_null(strstr(spyrert_last_error(), "allocated and exported anew"));
	/* Its own context is well. */
	copy_works(other, 100000);
	OK(spyrert_host_import(other, hfd, 0, (void **)&again, NULL));
	assert_memory_equal(shared, again, SIZE);
	OK(spyrert_device_recover(dev, LONG));
	OK(spyrert_host_unregister(dev, own));
	OK(spyrert_host_register(dev, own, SIZE, 0));
	OK(spyrert_malloc(dev, SIZE, &d));
	OK(spyrert_memcpy_h2d(dev, d, again, SIZE));
	OK(spyrert_memcpy_d2h(dev, own, d, SIZE));
	assert_memory_equal(shared, own, SIZE);
	OK(spyrert_host_unregister(dev, own));
	OK(spyrert_host_free(dev, shared));
	OK(spyrert_free(dev, d));
	close(dfd);
	close(hfd);
	OK(spyrert_device_close(other));
	copy_works(dev, 100000);
	free(own);
	free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told_and_recovered),
		cmocka_unit_test(shared_memory_over_reset),
	};
	struct spyrert_device_info info;
	int failed;

	if (spyrert_init("drm", &lib) || spyrert_device_get_info(lib, 0, &info, sizeof(info)) ||
	    spyrert_device_open(lib, 0, &dev)) {
		printf("Bail out! %s\n", spyrert_last_error());
		return 1;
	}
	snprintf(reset_path, sizeof(reset_path), "/sys/bus/pci/devices/%s/reset", info.pci_address);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (spyrert_device_close(dev) || spyrert_exit(lib))
		failed++;
	return failed != 0;
}
