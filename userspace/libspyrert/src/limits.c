// SPDX-License-Identifier: MIT
/*
 * Which limit it was that memory ran into. For host memory the driver's errno tells quota, RLIMIT_MEMLOCK
 * and the rest apart; within the rest the memory cgroup is asked here, and for device memory the one that
 * limits that.
 */
#include "rt.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define KB		1024ull
#define MB		(1ull << 20)
#define GB		(1ull << 30)
#define CGROUPS		"/sys/fs/cgroup"

const char *rt_size_text(char *buf, size_t len, uint64_t bytes)
{
	if (bytes >= GB)
		snprintf(buf, len, "%.2f GiB (%llu bytes)", (double)bytes / GB,
			 (unsigned long long)bytes);
	else if (bytes >= MB)
		snprintf(buf, len, "%.2f MiB (%llu bytes)", (double)bytes / MB,
			 (unsigned long long)bytes);
	else
		snprintf(buf, len, "%llu bytes", (unsigned long long)bytes);
	return buf;
}

/* The number after "name" at the start of a line, e.g. of /proc/meminfo; UINT64_MAX: not there. */
static uint64_t number_in(const char *path, const char *name)
{
	size_t n = strlen(name);
	uint64_t value = UINT64_MAX;
	char line[256];
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return value;
	while (fgets(line, sizeof(line), f)) {
		char *end;

		if (strncmp(line, name, n))
			continue;
		value = strtoull(line + n, &end, 10);
		/* "max" is no number: no limit. */
		if (end == line + n)
			value = UINT64_MAX;
		break;
	}
	fclose(f);
	return value;
}

/*
 * The cgroup (v2) of this process, or one above it, that has the least room, and not for so many
 * bytes. False: all have it. Limit and use are in its files KIND.max and KIND.current, after a name if
 * there are several.
 */
static bool tight_cgroup(const char *kind, const char *name, uint64_t bytes, char *path, size_t size,
			 uint64_t *max, uint64_t *used)
{
	char line[PATH_MAX] = "", at[PATH_MAX + 64], file[PATH_MAX + 80];
	uint64_t least = UINT64_MAX, m, u;
	bool found = false;
	char *end;
	FILE *f;

	f = fopen("/proc/self/cgroup", "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f) && strncmp(line, "0::", 3))
		;
	fclose(f);
	if (strncmp(line, "0::/", 4))
		return false;
	line[strcspn(line, "\n")] = '\0';
	snprintf(at, sizeof(at), CGROUPS "%s", line + 3);
	while (strlen(at) >= strlen(CGROUPS)) {
		snprintf(file, sizeof(file), "%s/%s.max", at, kind);
		m = number_in(file, name);
		snprintf(file, sizeof(file), "%s/%s.current", at, kind);
		u = number_in(file, name);
		if (m != UINT64_MAX && u != UINT64_MAX) {
			uint64_t room = u < m ? m - u : 0;

			if (room < bytes && room < least) {
				least = room;
				found = true;
				*max = m;
				*used = u;
				snprintf(path, size, "%s", at);
			}
		}
		end = strrchr(at, '/');
		*end = '\0';
	}
	return found;
}

static enum spyrert_status fail_memlock(uint64_t bytes, const char *what)
{
	uint64_t locked = number_in("/proc/self/status", "VmLck:");
	uint64_t pinned = number_in("/proc/self/status", "VmPin:");
	char want[64], limit[64], used[64];
	struct rlimit l = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &l);
	locked = (locked == UINT64_MAX ? 0 : locked) + (pinned == UINT64_MAX ? 0 : pinned);
	return rt_fail(SPYRERT_ERROR_PERMISSION,
		       "%s: %s would exceed RLIMIT_MEMLOCK of this process: limit %s, locked or "
		       "pinned %s; raise it ('ulimit -l', limits.conf, LimitMEMLOCK= of a service, "
		       "--ulimit memlock of a container), unregister other memory, or use "
		       "spyrert_host_alloc(), which it does not limit",
		       what, rt_size_text(want, sizeof(want), bytes),
		       rt_size_text(limit, sizeof(limit), l.rlim_cur),
		       rt_size_text(used, sizeof(used), locked * KB));
}

static enum spyrert_status fail_quota(struct rt_session *s, uint64_t bytes, const char *what)
{
	struct drm_spyre_limits lim = { 0 };
	char want[64], limit[64], used[64];

	/* The first binding of a device makes its context, and that has a quota as well. */
	if (rt_query(s, DRM_SPYRE_QUERY_LIMITS, &lim, sizeof(lim)) ||
	    (lim.host_user_used <= lim.host_user_max &&
	     bytes <= lim.host_user_max - lim.host_user_used))
		return rt_errno(s, -EDQUOT, what);
	return rt_fail(SPYRERT_ERROR_LIMIT,
		       "%s: %s would exceed this user's quota of pinned host memory on the card: "
		       "limit %s, used by all processes of the user %s; free some, end other "
		       "programs, or let the administrator raise the module parameter "
		       "host_quota_percent",
		       what, rt_size_text(want, sizeof(want), bytes),
		       rt_size_text(limit, sizeof(limit), lim.host_user_max),
		       rt_size_text(used, sizeof(used), lim.host_user_used));
}

enum spyrert_status rt_fail_host(struct rt_session *s, int err, uint64_t bytes, const char *what)
{
	char want[64], limit[64], used[64], path[200];
	uint64_t max, current, free_kb;

	switch (err) {
	case -EPERM:
		return fail_memlock(bytes, what);
	case -EDQUOT:
		return fail_quota(s, bytes, what);
	case -ENOMEM:
		break;
	default:
		return rt_errno(s, err, what);
	}
	rt_size_text(want, sizeof(want), bytes);
	if (tight_cgroup("memory", "", bytes, path, sizeof(path), &max, &current))
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY,
			       "%s: %s would exceed the memory cgroup %s: limit (memory.max) %s, in "
			       "use %s; raise it or use less",
			       what, want, path, rt_size_text(limit, sizeof(limit), max),
			       rt_size_text(used, sizeof(used), current));
	free_kb = number_in("/proc/meminfo", "MemAvailable:");
	if (free_kb != UINT64_MAX)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY,
			       "%s: the host is out of memory: %s wanted, %s available to all", what,
			       want, rt_size_text(used, sizeof(used), free_kb * KB));
	return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "%s: the host is out of memory: %s wanted", what,
		       want);
}

enum spyrert_status rt_fail_dmem(struct rt_session *s, uint64_t bytes)
{
	char region[64], want[64], limit[64], used[64], path[200];
	uint64_t max, current;

	/* The driver charges before it looks for memory: a cgroup without room is what refused. */
	snprintf(region, sizeof(region), "drm/%s/device ", s->dev->card.info.pci_address);
	if (!tight_cgroup("dmem", region, (bytes + SPYRE_PAGE_SIZE - 1) & ~(SPYRE_PAGE_SIZE - 1), path,
			  sizeof(path), &max, &current))
		return SPYRERT_SUCCESS;
	return rt_fail(SPYRERT_ERROR_OUT_OF_MEMORY,
		       "out of device memory: %s would exceed what the cgroup %s may have of this card: limit "
		       "(dmem.max) %s, in use %s; raise it, free tensors, call spyrert_empty_cache() in "
		       "processes of the cgroup that keep regions, or use smaller batches",
		       rt_size_text(want, sizeof(want), bytes), path,
		       rt_size_text(limit, sizeof(limit), max),
		       rt_size_text(used, sizeof(used), current));
}
