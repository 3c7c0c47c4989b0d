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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(told_and_recovered) };
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
