// SPDX-License-Identifier: MIT
/* Statuses, their texts, the thread's last error, and log lines. */
#include "rt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_text[RT_TEXT];
static _Thread_local enum spyrert_status last_status;

static const char *const status_names[] = {
	[SPYRERT_SUCCESS] = "SPYRERT_SUCCESS",
	[SPYRERT_NOT_READY] = "SPYRERT_NOT_READY",
	[SPYRERT_ERROR_INVALID_ARGUMENT] = "SPYRERT_ERROR_INVALID_ARGUMENT",
	[SPYRERT_ERROR_NO_DEVICE] = "SPYRERT_ERROR_NO_DEVICE",
	[SPYRERT_ERROR_OUT_OF_MEMORY] = "SPYRERT_ERROR_OUT_OF_MEMORY",
	[SPYRERT_ERROR_HOST_MEMORY] = "SPYRERT_ERROR_HOST_MEMORY",
	[SPYRERT_ERROR_LIMIT] = "SPYRERT_ERROR_LIMIT",
	[SPYRERT_ERROR_PERMISSION] = "SPYRERT_ERROR_PERMISSION",
	[SPYRERT_ERROR_TIMEOUT] = "SPYRERT_ERROR_TIMEOUT",
	[SPYRERT_ERROR_DEVICE_LOST] = "SPYRERT_ERROR_DEVICE_LOST",
	[SPYRERT_ERROR_FORKED] = "SPYRERT_ERROR_FORKED",
	[SPYRERT_ERROR_NOT_SUPPORTED] = "SPYRERT_ERROR_NOT_SUPPORTED",
	[SPYRERT_ERROR_SYSTEM] = "SPYRERT_ERROR_SYSTEM",
	[SPYRERT_ERROR_BAD_SPYRECODE] = "SPYRERT_ERROR_BAD_SPYRECODE",
	[SPYRERT_ERROR_BUSY] = "SPYRERT_ERROR_BUSY",
	[SPYRERT_ERROR_REVOKED] = "SPYRERT_ERROR_REVOKED",
	[SPYRERT_ERROR_PAGE_FAULT] = "SPYRERT_ERROR_PAGE_FAULT",
	[SPYRERT_ERROR_BAD_PROGRAM] = "SPYRERT_ERROR_BAD_PROGRAM",
	[SPYRERT_ERROR_DEADLOCK] = "SPYRERT_ERROR_DEADLOCK",
	[SPYRERT_ERROR_WATCHDOG] = "SPYRERT_ERROR_WATCHDOG",
	[SPYRERT_ERROR_PROGRAM] = "SPYRERT_ERROR_PROGRAM",
	[SPYRERT_ERROR_CARD_TIMEOUT] = "SPYRERT_ERROR_CARD_TIMEOUT",
	[SPYRERT_ERROR_CANCELLED] = "SPYRERT_ERROR_CANCELLED",
	[SPYRERT_ERROR_RESET] = "SPYRERT_ERROR_RESET",
	[SPYRERT_ERROR_HARDWARE] = "SPYRERT_ERROR_HARDWARE",
	[SPYRERT_ERROR_DEPENDENCY] = "SPYRERT_ERROR_DEPENDENCY",
	[SPYRERT_ERROR_CONTROL_BLOCK] = "SPYRERT_ERROR_CONTROL_BLOCK",
	[SPYRERT_ERROR_INTERNAL] = "SPYRERT_ERROR_INTERNAL",
};

RT_PUBLIC const char *spyrert_status_name(enum spyrert_status status)
{
	if ((unsigned int)status >= sizeof(status_names) / sizeof(status_names[0]) ||
	    !status_names[status])
		return "unknown status";
	return status_names[status];
}

RT_PUBLIC const char *spyrert_last_error(void)
{
	return last_text;
}

RT_PUBLIC enum spyrert_status spyrert_last_status(void)
{
	return last_status;
}

enum spyrert_status rt_fail(enum spyrert_status status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_text, sizeof(last_text), fmt, ap);
	va_end(ap);
	last_status = status;
	return status;
}

void rt_log(struct spyrert *lib, unsigned int group, const char *fmt, ...)
{
	char line[RT_TEXT];
	va_list ap;

	if (!(lib->log & group))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "spyrert: %s\n", line);
}

/* What an ioctl's errno means to the user; err is negative. */
enum spyrert_status rt_errno(struct rt_session *s, int err, const char *what)
{
	struct drm_spyre_limits lim = { 0 };

	switch (-err) {
	case ENODEV:
		rt_set_lost(s);
		return rt_fail_lost();
	case ENOMEM:
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "%s: the host is out of memory", what);
	case EPERM:
	case EACCES:
		return rt_fail(SPYRERT_ERROR_PERMISSION,
			       "%s: not permitted; pinned memory needs a large enough 'ulimit -l', "
			       "high priorities need CAP_SYS_NICE", what);
	case EMFILE:
	case EDQUOT:
		rt_query(s, DRM_SPYRE_QUERY_LIMITS, &lim, sizeof(lim));
		return rt_fail(
			SPYRERT_ERROR_LIMIT,
			"%s: limit reached: contexts %u of %u on the card, %u of %u for this user; "
			"queues %u of %u on the card, %u of %u for this user; pinned host memory "
			"%llu of %llu MiB for this user; end other programs, use fewer streams or "
			"less host memory",
			what, lim.contexts_used, lim.contexts_max, lim.contexts_user_used,
			lim.contexts_user_max, lim.queues_used, lim.queues_max,
			lim.queues_user_used, lim.queues_user_max,
			(unsigned long long)lim.host_user_used >> 20,
			(unsigned long long)lim.host_user_max >> 20);
	case ETIME:
		return rt_fail(SPYRERT_ERROR_TIMEOUT, "%s: timeout", what);
	case EINVAL:
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "%s: refused by the driver", what);
	case ENOSPC:
		return rt_fail(SPYRERT_ERROR_OUT_OF_MEMORY,
			       "%s: device memory or page-table area is exhausted", what);
	default:
		return rt_fail(SPYRERT_ERROR_SYSTEM, "%s: %s", what, strerror(-err));
	}
}

static const struct {
	enum spyrert_status status;
	const char *text;
} card_status[] = {
	[SPYRE_OK] = { SPYRERT_SUCCESS, "done" },
	[SPYRE_ERR_BAD_CB] = { SPYRERT_ERROR_CONTROL_BLOCK, "the card refused the control block" },
	[SPYRE_ERR_FAULT] = { SPYRERT_ERROR_PAGE_FAULT, "HMI page fault" },
	[SPYRE_ERR_BAD_PROGRAM] = { SPYRERT_ERROR_BAD_PROGRAM, "the job binary failed its check" },
	[SPYRE_ERR_BOOTADDR] = { SPYRERT_ERROR_BAD_PROGRAM,
				 "the bootstrap address is outside segment 7 or unaligned" },
	[SPYRE_ERR_DEADLOCK] = { SPYRERT_ERROR_DEADLOCK, "no unit of the program can advance" },
	[SPYRE_ERR_WATCHDOG] = { SPYRERT_ERROR_WATCHDOG,
				 "the program did not end within its budget of cycles" },
	[SPYRE_ERR_PROGRAM] = { SPYRERT_ERROR_PROGRAM, "a unit failed while running" },
	[SPYRE_ERR_TIMEOUT] = { SPYRERT_ERROR_CARD_TIMEOUT,
				"the operation's card-time timeout expired, or it had the cores for "
				"a minute while others waited" },
	[SPYRE_ERR_CANCELLED] = { SPYRERT_ERROR_CANCELLED, "cancelled" },
	[SPYRE_ERR_RESET] = { SPYRERT_ERROR_RESET, "in flight when the card was reset" },
	[SPYRE_ERR_LX_LOST] = { SPYRERT_ERROR_PROGRAM,
				"another job ran since the LX was to be kept" },
	[SPYRE_ERR_CORES] = { SPYRERT_ERROR_HARDWARE, "a core of the program is not available" },
	[SPYRE_ERR_HW] = { SPYRERT_ERROR_HARDWARE, "engine abort or uncorrectable memory error" },
	[SPYRE_ERR_QUEUE] = { SPYRERT_ERROR_INTERNAL, "the card found the queue in disorder" },
	[SPYRE_ERR_SYMBOLS] = { SPYRERT_ERROR_BAD_PROGRAM,
				"the number of symbols differs from the job binary's" },
	[SPYRE_ERR_INTERNAL] = { SPYRERT_ERROR_INTERNAL, "the card found itself inconsistent" },
};

enum spyrert_status rt_from_card(uint32_t status)
{
	if (status >= sizeof(card_status) / sizeof(card_status[0]) || !card_status[status].text)
		return SPYRERT_ERROR_INTERNAL;
	return card_status[status].status;
}

const char *rt_card_status_text(uint32_t status)
{
	if (status >= sizeof(card_status) / sizeof(card_status[0]) || !card_status[status].text)
		return "a status this library does not know";
	return card_status[status].text;
}
