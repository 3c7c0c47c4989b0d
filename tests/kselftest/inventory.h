/* SPDX-License-Identifier: MIT */
/*
 * What the kernel has of a driver and of its cards, as far as it can be counted exactly: a driver that
 * has gone, or whose probe has failed, leaves all of it as it was.
 */
#ifndef INVENTORY_H
#define INVENTORY_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spyre_test.h"

/* Lines of a file that contain @text, all for "". -1: there is no such file. */
static long lines(const char *path, const char *text)
{
	FILE *f = fopen(path, "r");
	char line[4096];
	long n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

static long matches(const char *pattern)
{
	glob_t g;
	long n;

	if (glob(pattern, 0, NULL, &g))
		return 0;
	n = g.gl_pathc;
	globfree(&g);
	return n;
}

/*
 * Threads of the kernel that rescue a work queue: one for each that may be needed to free memory.
 */
static long rescuers(void)
{
	char name[64];
	glob_t g;
	long n = 0;
	size_t i;

	if (glob("/proc/[0-9]*/comm", 0, NULL, &g))
		return -1;
	for (i = 0; i < g.gl_pathc; i++)
		n += !read_file(g.gl_pathv[i], name, sizeof(name)) &&
		     !strncmp(name, "kworker/R-", 10);
	globfree(&g);
	return n;
}

/* Things that can be counted exactly. */
static const struct {
	const char *name;
	/* Lines of a file that contain text; NULL: files that match the pattern. */
	const char *path, *text;
} things[] = {
	{ "interrupt descriptors", "/sys/kernel/irq/*", NULL },
	{ "interrupt handlers", "/proc/interrupts", "spyre" },
	{ "nodes", "/dev/accel/*", NULL },
	{ "devices of class accel", "/sys/class/accel/*", NULL },
	{ "devices of class hwmon", "/sys/class/hwmon/*", NULL },
	{ "debugfs folders", "/sys/kernel/debug/accel/*", NULL },
	{ "tracepoints", "/sys/kernel/tracing/events/spyre*/*", NULL },
	{ "regions of the bus", "/proc/iomem", "spyre" },
	{ "mappings of registers", "/proc/vmallocinfo", "ioremap" },
	{ "DMA mappings", "/sys/kernel/debug/dma-api/dump", "spyre" },
	{ "core dumps", "/sys/class/devcoredump/devcd*", NULL },
	{ "slab caches", "/proc/slabinfo", "" },
	{ "functions that are bound", "/sys/bus/pci/drivers/spyre/0*", NULL },
	{ "message vectors", "/sys/bus/pci/devices/*/msi_irqs/*", NULL },
	{ "files of the functions", "/sys/bus/pci/devices/*/*", NULL },
};

#define THINGS	(sizeof(things) / sizeof(things[0]))

struct inventory {
	long thing[THINGS];
	long rescuers;
	char node[64];		/* names of the nodes: their numbers come back, too */
};

static void inventory_take(struct inventory *v)
{
	glob_t g;
	size_t i;

	memset(v, 0, sizeof(*v));
	for (i = 0; i < THINGS; i++)
		v->thing[i] = things[i].text ? lines(things[i].path, things[i].text) :
					       matches(things[i].path);
	v->rescuers = rescuers();
	if (!glob("/dev/accel/*", 0, NULL, &g)) {
		snprintf(v->node, sizeof(v->node), "%s", g.gl_pathv[0]);
		globfree(&g);
	}
}

/* 0 when all is as in @was. What ends with the last reference may take a moment. */
static int inventory_compare(const struct inventory *was)
{
	struct inventory now;
	bool same = false;
	size_t i;
	int tries;

	for (tries = 0; tries < 100 && !same; tries++) {
		if (tries)
			usleep(50000);
		inventory_take(&now);
		same = !memcmp(&now, was, sizeof(now));
	}
	if (same)
		return 0;
	for (i = 0; i < THINGS; i++)
		if (now.thing[i] != was->thing[i])
			fprintf(stderr, "# %s: %ld, before %ld\n", things[i].name, now.thing[i],
				was->thing[i]);
	if (now.rescuers != was->rescuers)
		fprintf(stderr, "# rescuers of work queues: %ld, before %ld\n", now.rescuers,
			was->rescuers);
	if (strcmp(now.node, was->node))
		fprintf(stderr, "# node: '%s', before '%s'\n", now.node, was->node);
	return -1;
}

#endif
