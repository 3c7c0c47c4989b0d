// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <spyre/cb.h>
#include <spyre/hw.h>

#include "dump.h"
#include "names.h"

#define MAGIC		"**** spyre core dump ****"
#define CB_WORDS	(sizeof(struct spyre_cb) / sizeof(uint64_t))

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

/* What is open above the lines that follow. */
enum part { PART_HEAD, PART_REGISTERS, PART_QUEUES, PART_LOG };

static const char *name(const char *const *names, size_t n, uint32_t value)
{
	return value < n && names[value] ? names[value] : "unknown";
}

static const char *boot_status(uint32_t value)
{
	static const char *const names[] = {
		[SPYRE_BOOT_IDLE] = "idle",
		[SPYRE_BOOT_RUNNING] = "running",
		[SPYRE_BOOT_BAD_ADDRESS] = "bad address",
		[SPYRE_BOOT_BAD_MAGIC] = "bad magic",
		[SPYRE_BOOT_BAD_HEADER] = "bad header",
		[SPYRE_BOOT_BAD_LENGTH] = "bad length",
		[SPYRE_BOOT_BAD_DIGEST] = "bad digest",
		[SPYRE_BOOT_TOO_OLD] = "image too old",
		[SPYRE_BOOT_TOO_NEW] = "image too new",
		[SPYRE_BOOT_BAD_SIGNATURE] = "bad signature",
		[SPYRE_BOOT_CRASHED] = "crashed",
	};

	return name(names, COUNT(names), value);
}

static const char *queue_state(uint32_t value)
{
	static const char *const names[] = {
		[SPYRE_QUEUE_ACTIVE] = "active",
		[SPYRE_QUEUE_SUSPENDED] = "suspended",
		[SPYRE_QUEUE_ERROR] = "in error",
		[SPYRE_QUEUE_LOST] = "lost",
	};

	return name(names, COUNT(names), value);
}

static const char *status(uint32_t value)
{
	static const char *const names[] = {
		[SPYRE_OK] = "OK",
		[SPYRE_ERR_BAD_CB] = "BAD_CB",
		[SPYRE_ERR_FAULT] = "FAULT",
		[SPYRE_ERR_BAD_PROGRAM] = "BAD_PROGRAM",
		[SPYRE_ERR_BOOTADDR] = "BOOTADDR",
		[SPYRE_ERR_DEADLOCK] = "DEADLOCK",
		[SPYRE_ERR_WATCHDOG] = "WATCHDOG",
		[SPYRE_ERR_PROGRAM] = "PROGRAM",
		[SPYRE_ERR_TIMEOUT] = "TIMEOUT",
		[SPYRE_ERR_CANCELLED] = "CANCELLED",
		[SPYRE_ERR_RESET] = "RESET",
		[SPYRE_ERR_LX_LOST] = "LX_LOST",
		[SPYRE_ERR_CORES] = "CORES",
		[SPYRE_ERR_HW] = "HW",
		[SPYRE_ERR_QUEUE] = "QUEUE",
		[SPYRE_ERR_SYMBOLS] = "SYMBOLS",
		[SPYRE_ERR_INTERNAL] = "INTERNAL",
	};

	return name(names, COUNT(names), value);
}

/* --- Registers ---------------------------------------------------------------------------------- */

static const struct {
	uint32_t at;
	const char *name;
	const char *(*text)(uint32_t value);
} registers[] = {
	{ SPYRE_REG_ID, "ID", NULL },
	{ SPYRE_REG_HWVER, "HWVER", NULL },
	{ SPYRE_REG_CAPS, "CAPS", NULL },
	{ SPYRE_REG_STATE, "STATE", card_state_name },
	{ SPYRE_REG_RESET_GEN, "RESET_GEN", NULL },
	{ SPYRE_REG_BOOT_STATUS, "BOOT_STATUS", boot_status },
	{ SPYRE_REG_BOOT_PROGRESS, "BOOT_PROGRESS", NULL },
	{ SPYRE_REG_HEARTBEAT, "HEARTBEAT", NULL },
	{ SPYRE_REG_FW_ADDR, "FW_ADDR", NULL },
	{ SPYRE_REG_FW_ADDR + 4, "FW_ADDR high", NULL },
	{ SPYRE_REG_FW_LEN, "FW_LEN", NULL },
	{ SPYRE_REG_MCU_CTRL, "MCU_CTRL", NULL },
	{ SPYRE_REG_MEM_SIZE, "MEM_SIZE", NULL },
	{ SPYRE_REG_MEM_SIZE + 4, "MEM_SIZE high", NULL },
	{ SPYRE_REG_APERTURE_SIZE, "APERTURE_SIZE", NULL },
	{ SPYRE_REG_APERTURE_SIZE + 4, "APERTURE_SIZE high", NULL },
	{ SPYRE_REG_TIME, "TIME", NULL },
	{ SPYRE_REG_TIME + 4, "TIME high", NULL },
	{ SPYRE_REG_TIME_HZ, "TIME_HZ", NULL },
	{ SPYRE_REG_CORE_HZ, "CORE_HZ", NULL },
	{ SPYRE_REG_FW_RESERVED, "FW_RESERVED", NULL },
	{ SPYRE_REG_DB_PAGES, "DB_PAGES", NULL },
	{ SPYRE_REG_CORES, "CORES", NULL },
	{ SPYRE_REG_FW_VERSION, "FW_VERSION", NULL },
	{ SPYRE_REG_MBOX_CMD_BASE, "MBOX_CMD_BASE", NULL },
	{ SPYRE_REG_MBOX_CMD_BASE + 4, "MBOX_CMD_BASE high", NULL },
	{ SPYRE_REG_MBOX_EVT_BASE, "MBOX_EVT_BASE", NULL },
	{ SPYRE_REG_MBOX_EVT_BASE + 4, "MBOX_EVT_BASE high", NULL },
	{ SPYRE_REG_MBOX_CMD_ENTRIES, "MBOX_CMD_ENTRIES", NULL },
	{ SPYRE_REG_MBOX_EVT_ENTRIES, "MBOX_EVT_ENTRIES", NULL },
	{ SPYRE_REG_MBOX_CMD_TAIL, "MBOX_CMD_TAIL", NULL },
	{ SPYRE_REG_MBOX_CMD_HEAD, "MBOX_CMD_HEAD", NULL },
	{ SPYRE_REG_MBOX_EVT_HEAD, "MBOX_EVT_HEAD", NULL },
	{ SPYRE_REG_MBOX_EVT_TAIL, "MBOX_EVT_TAIL", NULL },
	{ SPYRE_REG_VEC_COUNT, "VEC_COUNT", NULL },
	{ SPYRE_REG_DB_OVERFLOW, "DB_OVERFLOW", NULL },
	{ SPYRE_REG_DB_BAD, "DB_BAD", NULL },
	{ SPYRE_REG_APERTURE_BAD, "APERTURE_BAD", NULL },
};

static void print_register(uint32_t at, uint32_t value)
{
	char vector[32];
	const char *(*text)(uint32_t) = NULL;
	const char *what = NULL;
	size_t i;

	for (i = 0; i < COUNT(registers); i++) {
		if (registers[i].at == at) {
			what = registers[i].name;
			text = registers[i].text;
		}
	}
	if (!what && at >= SPYRE_REG_VEC_BASE(0) && at < SPYRE_REG_VEC_COUNT) {
		static const char *const part[] = { "BASE", "BASE high", "ENTRIES", NULL };
		uint32_t n = (at - SPYRE_REG_VEC_BASE(0)) / 4;

		if (part[n % 4]) {
			snprintf(vector, sizeof(vector), "VEC%u %s", n / 4, part[n % 4]);
			what = vector;
		}
	}
	/* What has no name reads as zero, as does a vector that is not used. */
	if ((!what || what == vector) && !value)
		return;
	if (!what)
		printf("  0x%03x               0x%08x\n", at, value);
	else if (text)
		printf("  %-18s  0x%08x  %s\n", what, value, text(value));
	else
		printf("  %-18s  0x%08x  %u\n", what, value, value);
}

/* --- Entries of queues ------------------------------------------------------------------------ */

static void print_flags(uint32_t flags)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {
		{ SPYRE_CB_F_BARRIER, "barrier" },
		{ SPYRE_CB_F_RESPONSE, "response" },
		{ SPYRE_CB_F_INTERRUPT, "interrupt" },
		{ SPYRE_CB_F_HOST, "host" },
		{ SPYRE_CB_F_ADD, "add" },
		{ SPYRE_CB_F_DOORBELL, "doorbell" },
		{ SPYRE_CB_F_LIST, "list" },
		{ SPYRE_CB_F_KEEP_LX, "keep-lx" },
		{ SPYRE_CB_F_SYM_HOST, "symbols-host" },
		{ SPYRE_CB_F_DST_HOST, "to-host" },
		{ SPYRE_CB_F_SRC_HOST, "from-host" },
	};
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		if (flags & names[i].flag)
			printf(" %s", names[i].name);
		flags &= ~names[i].flag;
	}
	if (flags)
		printf(" flags %#x", flags);
}

static void print_copy(const struct spyre_cb *cb)
{
	const struct spyre_dma_desc *d = &cb->u.dma;
	uint32_t i;

	if (cb->flags & SPYRE_CB_F_LIST) {
		printf("      list of %" PRIu32 " at %#" PRIx64 "\n", cb->u.list.entries, cb->u.list.list);
		return;
	}
	printf("      to %#" PRIx64 "  from %#" PRIx64 "  %" PRIu64 " bytes", d->dst, d->src, d->bytes);
	for (i = 0; i + 1 < d->ndims && i < COUNT(d->count); i++)
		printf("  x %" PRIu32 " (strides %" PRId64 ", %" PRId64 ")", d->count[i],
		       (int64_t)d->dst_stride[i], (int64_t)d->src_stride[i]);
	putchar('\n');
}

static void print_entry(uint32_t number, const struct spyre_cb *cb)
{
	static const char *const types[] = {
		[SPYRE_CB_NOP] = "NOP",
		[SPYRE_CB_COMPUTE] = "COMPUTE",
		[SPYRE_CB_DMAI] = "DMAI",
		[SPYRE_CB_DMAO] = "DMAO",
		[SPYRE_CB_DMAX] = "DMAX",
		[SPYRE_CB_FILL] = "FILL",
		[SPYRE_CB_SIGNAL] = "SIGNAL",
		[SPYRE_CB_WAIT] = "WAIT",
		[SPYRE_CB_TIMESTAMP] = "TIMESTAMP",
		[SPYRE_CB_BATCH] = "BATCH",
	};
	size_t i;

	printf("    entry %u  %s", number, name(types, COUNT(types), cb->type));
	print_flags(cb->flags);
	printf("  cookie %#" PRIx64, cb->cookie);
	if (cb->timeout)
		printf("  timeout %" PRIu64 " cycles", cb->timeout);
	putchar('\n');
	switch (cb->type) {
	case SPYRE_CB_NOP:
		break;
	case SPYRE_CB_COMPUTE:
		printf("      program %#" PRIx64 "  symbols %" PRIu32 " at %#" PRIx64, cb->u.compute.bootaddr,
		       cb->u.compute.nsymbols, cb->u.compute.symbols);
		if (cb->u.compute.core_mask)
			printf("  cores 0x%08" PRIx32, cb->u.compute.core_mask);
		putchar('\n');
		break;
	case SPYRE_CB_DMAI:
	case SPYRE_CB_DMAO:
	case SPYRE_CB_DMAX:
		print_copy(cb);
		break;
	case SPYRE_CB_FILL:
		printf("      to %#" PRIx64 "  %" PRIu64 " bytes of %#" PRIx64 "\n", cb->u.fill.dst, cb->u.fill.bytes,
		       cb->u.fill.pattern);
		break;
	case SPYRE_CB_SIGNAL:
	case SPYRE_CB_WAIT:
		printf("      word %#" PRIx64 "  value %" PRIu64, cb->u.sync.addr, cb->u.sync.value);
		if (cb->flags & SPYRE_CB_F_DOORBELL)
			printf("  then %" PRIu32 " to doorbell %#" PRIx64, cb->u.sync.doorbell_value,
			       cb->u.sync.doorbell);
		putchar('\n');
		break;
	case SPYRE_CB_TIMESTAMP:
		printf("      word %#" PRIx64 "\n", cb->u.sync.addr);
		break;
	default:
		printf("      body");
		for (i = 0; i < COUNT(cb->u.raw); i++)
			printf(" %" PRIx64, cb->u.raw[i]);
		putchar('\n');
	}
}

/* Whether the line is an entry. */
static bool entry(const char *line)
{
	uint64_t word[CB_WORDS];
	unsigned int number;
	struct spyre_cb cb;
	int n = 0;
	size_t i;
	char *end;

	if (sscanf(line, "  entry %u:%n", &number, &n) != 1 || !n)
		return false;
	line += n;
	for (i = 0; i < CB_WORDS; i++) {
		word[i] = strtoull(line, &end, 16);
		if (end == line)
			return false;
		line = end;
	}
	if (*line)
		return false;
	memcpy(&cb, word, sizeof(cb));
	print_entry(number, &cb);
	return true;
}

/* --- Lines ------------------------------------------------------------------------------------ */

static void heading(enum part *part, enum part now, const char *text)
{
	if (*part != now)
		printf("\n%s\n", text);
	*part = now;
}

/* Whether the line is of a queue. */
static bool queue(const char *line)
{
	unsigned int v[6];

	if (sscanf(line, "queue: context %u id %u page %u entries %u priority %u on-card %u", v, v + 1, v + 2,
		   v + 3, v + 4, v + 5) == 6) {
		/* SUBMIT's has no number of its own. */
		if (v[1])
			printf("  context %u, queue %u", v[0], v[1]);
		else
			printf("  context %u, queue of SUBMIT", v[0]);
		printf(": doorbell page %u, %u entries, ", v[2], v[3]);
		if (v[4] < SPYRE_PRIORITIES)
			printf("priority %u, ", v[4]);
		else
			printf("the kernel's, ");
		printf("%s the card\n", v[5] ? "on" : "not on");
		return true;
	}
	if (sscanf(line, "  tail %u fetched %u done %u event-idx %u parked %u", v, v + 1, v + 2, v + 3, v + 4) == 5) {
		printf("    tail %u, fetched %u, done %u: %u in flight, %u not fetched%s; next doorbell after %u\n", v[0],
		       v[1], v[2], v[1] - v[2], v[0] - v[1], v[4] ? "; waits for a word" : "", v[3]);
		return true;
	}
	if (sscanf(line, "  state %u error %u at entry %u generation %u", v, v + 1, v + 2, v + 3) == 4) {
		printf("    %s, generation %u", queue_state(v[0]), v[3]);
		if (v[1])
			printf(", failed: %s (%u) at entry %u", status(v[1]), v[1], v[2]);
		putchar('\n');
		return true;
	}
	return entry(line);
}

static void print_line(enum part *part, const char *line)
{
	unsigned int at, value;

	if (*part == PART_LOG) {
		printf("  %s\n", line);
	} else if (!strcmp(line, "firmware log:")) {
		heading(part, PART_LOG, "Firmware log");
	} else if (sscanf(line, "register 0x%x: 0x%x", &at, &value) == 2) {
		heading(part, PART_REGISTERS, "Registers");
		print_register(at, value);
	} else {
		if (!strncmp(line, "queue:", 6))
			heading(part, PART_QUEUES, "Queues");
		if (*part != PART_QUEUES || !queue(line))
			puts(line);
	}
}

int dump_print(const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	enum part part = PART_HEAD;
	char *line = NULL;
	size_t room = 0;
	bool known = false;
	ssize_t n;
	int ret;

	if (!f) {
		fprintf(stderr, "spyre-smi: %s: %s\n", path, strerror(errno));
		return -1;
	}
	errno = 0;
	while ((n = getline(&line, &room, f)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (!known) {
			known = !strcmp(line, MAGIC);
			if (!known)
				break;
			printf("Core dump of a Spyre card\n\n");
			continue;
		}
		print_line(&part, line);
	}
	ret = ferror(f) ? -1 : 0;
	if (ret)
		fprintf(stderr, "spyre-smi: %s: %s\n", path, strerror(errno));
	else if (!known)
		fprintf(stderr,
			"spyre-smi: %s is no core dump of a Spyre card, which begins with \"" MAGIC
			"\"; take /sys/class/devcoredump/devcd*/data\n",
			path);
	free(line);
	if (f != stdin)
		fclose(f);
	return ret || !known ? -1 : 0;
}
