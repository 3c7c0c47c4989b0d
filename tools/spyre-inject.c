// SPDX-License-Identifier: MIT
/* spyre-inject: makes a fault of a card of a running machine happen, over QMP. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "args.h"

/* QEMU serves one client of a socket at a time, and says nothing to the next one. */
#define ANSWER_MS	10000
#define PERIPHERAL	"/machine/peripheral"

enum argument {
	ARG_NONE,
	ARG_NUMBER,	/* 0 to .max */
	ARG_LINK,	/* GENxLANES */
	ARG_WORD,	/* one of .words, as text */
	ARG_CHOICE,	/* the number of one of .words, from 1 */
	ARG_TRUE,	/* no argument, and a property that is a truth value */
};

/*
 * What a number may be is the card's business, which knows its memory and cores; .max is only what
 * one of this kind can ever be.
 */
static const struct fault {
	const char *name;	/* property inject-NAME of the card */
	enum argument kind;
	const char *arg;	/* its name in the help */
	uint64_t max;
	const char *words[5];
	const char *help;
} faults[] = {
	{ "memory-ce", ARG_NUMBER, "ADDRESS", UINT64_MAX, { 0 },
	  "a corrected memory error at a card address" },
	{ "memory-ue", ARG_NUMBER, "ADDRESS", UINT64_MAX, { 0 },
	  "the next access to the 128 bytes at a card address fails" },
	{ "lx-parity", ARG_NUMBER, "CORE", 31, { 0 },
	  "the next read of that core's scratchpad fails its job" },
	{ "core-hang", ARG_NONE, "", 0, { 0 }, "the next compute job runs into its watchdog" },
	{ "core-lost", ARG_NUMBER, "CORE", 31, { 0 },
	  "the core is not there from the next boot on" },
	{ "dma-abort", ARG_NONE, "", 0, { 0 }, "the next copy fails" },
	{ "lost-irq", ARG_NONE, "", 0, { 0 }, "the next interrupt does not come" },
	{ "delayed-irq", ARG_NUMBER, "NS", 60000000000ull, { 0 },
	  "the next interrupt is so many ns of card time late" },
	{ "lost-rb", ARG_NUMBER, "N", UINT32_MAX, { 0 },
	  "so many of the next response blocks are not written; 0 ends it" },
	{ "fw-crash", ARG_NONE, "", 0, { 0 }, "the firmware takes an illegal instruction" },
	{ "fw-hang", ARG_NONE, "", 0, { 0 }, "the management core stands still" },
	{ "fw-slow", ARG_NUMBER, "MS", 60000, { 0 }, "the next mailbox command waits so many ms" },
	{ "fw-image", ARG_CHOICE, "WHAT", 0, { "corrupt", "too-old", "too-new" },
	  "the next boot finds such a firmware image" },
	{ "overtemp", ARG_NUMBER, "MC", 200000, { 0 },
	  "the sensor reads so many millidegrees more; 0 ends it" },
	{ "link-train", ARG_LINK, "GENxLANES", 0, { 0 },
	  "the link comes up as 1x1 to 5x16 until a reset" },
	{ "aer", ARG_WORD, "SEVERITY", 0, { "correctable", "non-fatal", "fatal" },
	  "a PCI Express error is reported" },
	{ "surprise-removal", ARG_TRUE, "", 0, { 0 }, "the card is pulled out" },
};

#define FAULTS	(sizeof(faults) / sizeof(faults[0]))

static void words_of(const struct fault *f, char *buf, size_t size)
{
	size_t i, at = 0;

	buf[0] = 0;
	for (i = 0; f->words[i] && at < size; i++)
		at += snprintf(buf + at, size - at, "%s%s", i ? ", " : "", f->words[i]);
}

static void list(FILE *out)
{
	char left[64], words[128];
	size_t i;

	for (i = 0; i < FAULTS; i++) {
		snprintf(left, sizeof(left), "%s %s", faults[i].name, faults[i].arg);
		words_of(&faults[i], words, sizeof(words));
		fprintf(out, "  %-24s%s%s%s\n", left, faults[i].help, *words ? ": " : "", words);
	}
}

static void usage(FILE *out)
{
	fputs("usage: spyre-inject --qmp PATH [--card ID] FAULT [ARGUMENT]\n"
	      "       spyre-inject --list\n"
	      "Makes a fault of a card happen in a machine that runs: spyre-vm --qmp PATH.\n"
	      "\n"
	      "  -q, --qmp PATH      the machine's QMP socket\n"
	      "  -c, --card ID       the card's id (default card0)\n"
	      "  -l, --list          the faults and their arguments\n"
	      "  -h, --help          this text\n"
	      "\n"
	      "Numbers are decimal or 0x... Exit status: 0 done, 1 the card refused it,\n"
	      "2 wrong usage, 3 no such machine or card. Faults:\n",
	      out);
	list(out);
}

/* --- QMP -------------------------------------------------------------------------------------- */

struct qmp {
	const char *path;
	int fd;
	char *buf;		/* what came and was not taken yet */
	size_t len, size;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* One message; the caller owns it. */
static json_t *receive(struct qmp *q)
{
	int64_t end = now_ms() + ANSWER_MS;
	json_error_t err;
	json_t *msg;
	char *line;
	ssize_t n;

	while (!(line = q->len ? memchr(q->buf, '\n', q->len) : NULL)) {
		struct pollfd p = { .fd = q->fd, .events = POLLIN };
		int64_t left = end - now_ms();

		if (left <= 0 || !poll(&p, 1, (int)left))
			args_quit(3,
				  "%s: no answer within %d s; it serves one program at a time",
				  q->path, ANSWER_MS / 1000);
		if (q->size - q->len < 4096) {
			q->size = q->size * 2 + 8192;
			q->buf = realloc(q->buf, q->size);
			if (!q->buf)
				args_quit(3, "out of memory");
		}
		n = read(q->fd, q->buf + q->len, q->size - q->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			args_quit(3, "%s: the machine has ended", q->path);
		q->len += n;
	}
	msg = json_loadb(q->buf, line - q->buf, 0, &err);
	n = line + 1 - q->buf;
	memmove(q->buf, q->buf + n, q->len - n);
	q->len -= n;
	if (!json_is_object(msg))
		args_quit(3, "%s: this is no QMP socket (--monitor is another one)", q->path);
	return msg;
}

/* The answer to a command, which goes with it; events in between are nobody's here. */
static json_t *execute(struct qmp *q, json_t *cmd)
{
	char *text = json_dumps(cmd, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0, at;
	json_t *msg;
	ssize_t n;

	json_decref(cmd);
	if (!text)
		args_quit(3, "out of memory");
	for (at = 0; at < len; at += n) {
		n = send(q->fd, text + at, len - at, MSG_NOSIGNAL);
		if (n < 0)
			args_quit(3, "%s: %s", q->path, strerror(errno));
	}
	free(text);
	for (;;) {
		msg = receive(q);
		if (json_object_get(msg, "return") || json_object_get(msg, "error"))
			return msg;
		json_decref(msg);
	}
}

static void qmp_open(struct qmp *q, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	json_t *msg;

	*q = (struct qmp){ .path = path };
	if (strlen(path) >= sizeof(a.sun_path))
		args_quit(3, "%s: the path of a socket has at most %zu characters", path,
			  sizeof(a.sun_path) - 1);
	strcpy(a.sun_path, path);
	q->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (q->fd < 0 || connect(q->fd, (struct sockaddr *)&a, sizeof(a)))
		args_quit(3, "%s: %s; start the machine with spyre-vm --qmp %s", path,
			  strerror(errno), path);
	msg = receive(q);
	if (!json_object_get(msg, "QMP"))
		args_quit(3, "%s: this is no QMP socket (--monitor is another one)", path);
	json_decref(msg);
	json_decref(execute(q, json_pack("{ss}", "execute", "qmp_capabilities")));
}

/* Ends the program unless there is such a card, and says which there are. */
static void find_card(struct qmp *q, const char *card)
{
	json_t *msg = execute(q, json_pack("{sss{ss}}", "execute", "qom-list", "arguments", "path",
					   PERIPHERAL));
	char known[512] = "";
	size_t i, at = 0;
	json_t *child;

	json_array_foreach(json_object_get(msg, "return"), i, child) {
		const char *name = json_string_value(json_object_get(child, "name"));
		const char *type = json_string_value(json_object_get(child, "type"));

		if (!name || !type || strcmp(type, "child<spyre>"))
			continue;
		if (!strcmp(name, card)) {
			json_decref(msg);
			return;
		}
		if (at < sizeof(known))
			at += snprintf(known + at, sizeof(known) - at, "%s%s", at ? ", " : "",
				       name);
	}
	json_decref(msg);
	if (!*known)
		args_quit(3, "the machine has no card with an id");
	args_quit(3, "the machine has no card '%s'; there is: %s", card, known);
}

/* --- Arguments -------------------------------------------------------------------------------- */

static const struct fault *find_fault(const char *name)
{
	size_t i;

	/* As the property is called, too. */
	if (!strncmp(name, "inject-", 7))
		name += 7;
	for (i = 0; i < FAULTS; i++)
		if (!strcmp(faults[i].name, name))
			return &faults[i];
	args_quit(2, "there is no fault '%s'; see --list", name);
}

static json_t *number(uint64_t n)
{
	/* JSON of jansson ends at 63 bits, and so does any card's memory. */
	if (n > INT64_MAX)
		args_quit(2, "%" PRIu64 " is too large", n);
	return json_integer((json_int_t)n);
}

static json_t *value_of(const struct fault *f, const char *arg)
{
	unsigned int gen, lanes, i;
	char words[128], end;

	if (f->kind == ARG_NONE || f->kind == ARG_TRUE) {
		if (arg)
			args_quit(2, "%s takes no argument, and there is '%s'", f->name, arg);
		return f->kind == ARG_TRUE ? json_true() : json_integer(0);
	}
	words_of(f, words, sizeof(words));
	if (!arg)
		args_quit(2, "%s needs %s: %s%s%s", f->name, f->arg, f->help, *words ? ": " : "",
			  words);
	switch (f->kind) {
	case ARG_NUMBER:
		return number(args_number(f->name, arg, 0, f->max));
	case ARG_LINK:
		if (sscanf(arg, "%1ux%2u%c", &gen, &lanes, &end) != 2)
			args_quit(2, "%s: '%s' is not like 4x8, generation and lanes", f->name,
				  arg);
		return json_integer(gen << 8 | lanes);
	default:
		for (i = 0; f->words[i]; i++)
			if (!strcmp(f->words[i], arg))
				return f->kind == ARG_WORD ? json_string(arg) : json_integer(i + 1);
		args_quit(2, "%s: '%s' is not one of %s", f->name, arg, words);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "qmp", required_argument, NULL, 'q' },
						 { "card", required_argument, NULL, 'c' },
						 { "list", no_argument, NULL, 'l' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	const char *path = NULL, *card = "card0";
	char object[256], property[64];
	const struct fault *fault;
	json_t *value, *msg, *err;
	struct qmp q;
	int c;

	while ((c = getopt_long(argc, argv, "q:c:lh", options, NULL)) != -1) {
		switch (c) {
		case 'q':
			path = optarg;
			break;
		case 'c':
			card = optarg;
			break;
		case 'l':
			list(stdout);
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			fputs("spyre-inject: see --help\n", stderr);
			return 2;
		}
	}
	if (optind >= argc)
		args_quit(2, "FAULT is missing; see --list");
	fault = find_fault(argv[optind]);
	if (argc - optind > 2)
		args_quit(2, "'%s' is one argument too many; a fault has at most one",
			  argv[optind + 2]);
	value = value_of(fault, argv[optind + 1]);
	if (!path)
		args_quit(2, "--qmp PATH is missing; it is the one of spyre-vm --qmp PATH");
	if (strlen(card) > 128)
		args_quit(2, "--card: an id has at most 128 characters");

	qmp_open(&q, path);
	find_card(&q, card);
	snprintf(object, sizeof(object), PERIPHERAL "/%s", card);
	snprintf(property, sizeof(property), "inject-%s", fault->name);
	msg = execute(&q, json_pack("{sss{sssssO}}", "execute", "qom-set", "arguments", "path",
				    object, "property", property, "value", value));
	json_decref(value);
	err = json_object_get(msg, "error");
	if (err)
		args_quit(1, "%s", json_string_value(json_object_get(err, "desc")));
	json_decref(msg);
	free(q.buf);
	close(q.fd);
	return 0;
}
