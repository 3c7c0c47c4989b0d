// SPDX-License-Identifier: MIT
/* What the library tells of ioctls (SPYRERT_LOG=ioctl) and of RAS codes: every one of the interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <spyre/ras.h>

#include "rt.h"

static const char *decoded(unsigned long request, const void *arg)
{
	static char text[200];

	memset(text, '#', sizeof(text));
	rt_ioctl_decode(text, sizeof(text), request, arg);
	assert_non_null(memchr(text, 0, sizeof(text)));
	return text;
}

static void every_ioctl(void **state)
{
	static const unsigned long requests[] = {
		DRM_IOCTL_SPYRE_QUERY,	       DRM_IOCTL_SPYRE_BO_CREATE,
		DRM_IOCTL_SPYRE_BO_INFO,       DRM_IOCTL_SPYRE_BO_MMAP,
		DRM_IOCTL_SPYRE_VM_BIND,       DRM_IOCTL_SPYRE_QUEUE_CREATE,
		DRM_IOCTL_SPYRE_QUEUE_DESTROY, DRM_IOCTL_SPYRE_QUEUE_RESET,
		DRM_IOCTL_SPYRE_QUEUE_KICK,    DRM_IOCTL_SPYRE_WAIT,
		DRM_IOCTL_SPYRE_WAIT_CANCEL,   DRM_IOCTL_SPYRE_RAS_READ,
		DRM_IOCTL_SPYRE_SUBMIT,
		DRM_IOCTL_SPYRE_BO_USERPTR,
	};
	struct drm_spyre_wait_entry e = { 0 };
	union {
		struct drm_spyre_wait wait;
		uint64_t zero[32];
	} arg = { .wait = { .entries = (uintptr_t)&e, .count = 1 } };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		assert_int_equal(_IOC_NR(requests[i]) - DRM_COMMAND_BASE, i);
		if (!*decoded(requests[i], &arg) || strstr(decoded(requests[i], &arg), "request"))
			fail_msg("ioctl %zu is not decoded", i);
	}
}

static void fields(void **state)
{
	struct drm_spyre_bo_info info = { .handle = 7, .size = 0x200000, .flags = 1 };
	struct drm_spyre_bo_mmap map = { .handle = 8, .offset = 0x1000 };
	struct drm_spyre_wait_cancel cancel = { .id = 9 };
	struct drm_spyre_ras_read ras = { .after = 3, .count = 2, .flags = 1, .dropped = 4 };
	struct drm_spyre_submit submit = { .cb_count = 3, .in_count = 2, .out_count = 1, .flags = 1 };
	struct drm_spyre_bo_userptr user = { .addr = 0x7000, .size = 0x1000, .flags = 1, .handle = 6 };
	struct drm_gem_close gem = { .handle = 5 };

	(void)state;
	assert_string_equal(decoded(DRM_IOCTL_SPYRE_BO_INFO, &info),
			    "handle 7 size 0x200000 flags 0x1");
	assert_string_equal(decoded(DRM_IOCTL_SPYRE_BO_MMAP, &map), "handle 8 offset 0x1000");
	assert_string_equal(decoded(DRM_IOCTL_SPYRE_WAIT_CANCEL, &cancel), "id 9");
	assert_string_equal(decoded(DRM_IOCTL_SPYRE_RAS_READ, &ras),
			    "after 3 flags 0x1 records 2 dropped 4");
	assert_string_equal(decoded(DRM_IOCTL_SPYRE_SUBMIT, &submit),
			    "control blocks 3 in 2 out 1 flags 0x1");
	assert_string_equal(decoded(DRM_IOCTL_SPYRE_BO_USERPTR, &user),
			    "addr 0x7000 size 0x1000 flags 0x1 handle 6");
	assert_string_equal(decoded(DRM_IOCTL_GEM_CLOSE, &gem), "handle 5");
}

static void ras_codes(void **state)
{
	static const uint32_t codes[] = {
		SPYRE_RAS_SOFT_FAIL,   SPYRE_RAS_UNSUPPORTED_MSG, SPYRE_RAS_COMPUTE_HW,
		SPYRE_RAS_BOOTADDR,    SPYRE_RAS_MSG_TIMEOUT,	  SPYRE_RAS_BAD_PROGRAM,
		SPYRE_RAS_DEADLOCK,    SPYRE_RAS_WATCHDOG,	  SPYRE_RAS_QUEUE,
		SPYRE_RAS_MEM_CE,      SPYRE_RAS_MEM_UE,	  SPYRE_RAS_CORE_UNAVAILABLE,
		SPYRE_RAS_THERMAL,     SPYRE_RAS_TIMEOUT,	  SPYRE_RAS_FIRMWARE,
		SPYRE_RAS_FIRMWARE + 1,
	};
	size_t i, n = sizeof(codes) / sizeof(codes[0]);
	struct spyrert_ras out;

	(void)state;
	for (i = 0; i < n; i++) {
		struct drm_spyre_ras in = { .code = codes[i] };
		bool known = i < n - 1;

		rt_ras_from_drm(&out, &in);
		assert_string_equal(out.name, spyre_ras_name(codes[i]));
		assert_int_equal(strcmp(out.name, "RAS::Unknown") != 0, known);
		assert_int_equal(strstr(out.message, "this library does not") == NULL, known);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_ioctl),
		cmocka_unit_test(fields),
		cmocka_unit_test(ras_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
