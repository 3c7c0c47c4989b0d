/* SPDX-License-Identifier: MIT */
/* One allocation of the calling thread fails: /proc/thread-self/fail-nth, failslab, fail_page_alloc. */
#ifndef NTH_H
#define NTH_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spyre_test.h"

static int nth_fd = -1;

/* 0, or -errno: this kernel cannot fail allocations. */
static int nth_open(void)
{
	static const char * const files[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
		/*
		 * Copies from and to this process would count as well, those of fail-nth itself
		 * among them: below no function is none.
		 */
		{ "fail_usercopy/stacktrace-depth", "1" },
		{ "fail_usercopy/require-start", "1" },
		{ "fail_usercopy/require-end", "2" },
	};
	unsigned int i;
	char path[128];
	int ret;

	/* Mounts debugfs where it is not. */
	debugfs_path("");
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s", files[i][0]);
		ret = write_file(path, files[i][1]);
		/* Not every kernel can make copies fail. */
		if (ret && !(ret == -ENOENT && strstr(path, "usercopy")))
			return ret;
	}
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return nth_fd < 0 ? -errno : 0;
}

#define NTH_SKIP \
	"/proc/self/fail-nth or failslab is missing: this kernel cannot fail allocations; " \
	"make check-full runs this on the debug kernel"

/* Sets one number of both kinds of failures. 0 or -errno. */
static int nth_filter(const char *name, unsigned long value)
{
	static const char * const kinds[] = { "failslab", "fail_page_alloc" };
	char path[128], text[32];
	unsigned int i;
	int ret = 0;

	snprintf(text, sizeof(text), "0x%lx", value);
	for (i = 0; i < 2 && !ret; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kinds[i], name);
		ret = write_file(path, text);
	}
	return ret;
}

/*
 * Only allocations whose call stack has a function of that module in its first @depth frames fail and
 * count; NULL: all do. 0 or -errno: -ENOENT when the module is not loaded.
 */
static inline int nth_within(const char *module, unsigned int depth)
{
	unsigned long begin, size;
	char line[256], name[64];
	int ret = -ENOENT;
	FILE *f;

	if (!module)
		return nth_filter("require-start", 0) ?: nth_filter("require-end", ~0ul);
	f = fopen("/proc/modules", "r");
	while (f && ret && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %lu %*s %*s %*s %lx", name, &size, &begin) == 3 &&
		    !strcmp(name, module))
			ret = nth_filter("stacktrace-depth", depth) ?:
			      nth_filter("require-start", begin) ?:
			      nth_filter("require-end", begin + size);
	if (f)
		fclose(f);
	return ret;
}

/*
 * What the kernel's checkers allocate for themselves neither fails nor counts: they do without, and
 * there is as much of it as of all else. A kernel without that folder has no such checkers. 0 or -errno.
 */
static inline int nth_spare_checkers(void)
{
	char path[PATH_MAX];
	struct dirent *d;
	DIR *dir = opendir("/sys/kernel/slab");
	int ret = 0;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (!ret && (d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/failslab", d->d_name);
		ret = write_file(path, strncmp(d->d_name, "kmemleak_", 9) &&
				 strcmp(d->d_name, "debug_objects_cache") ? "1" : "0");
	}
	closedir(dir);
	return ret ?: write_file("/sys/kernel/debug/failslab/cache-filter", "Y");
}

/* The n-th allocation of this thread from now on fails; 0: none. */
static void nth_arm(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(nth_fd, text, len, 0) != len)
		abort();
}

/* None fails any more; how many more would have had to come until one did, 0: it has failed. */
static unsigned int nth_disarm(void)
{
	char text[16] = {};

	if (pread(nth_fd, text, sizeof(text) - 1, 0) <= 0)
		abort();
	nth_arm(0);
	return atoi(text);
}

#endif
