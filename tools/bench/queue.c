// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#define LATENCY_TURNS	200

static void spin_idle(struct spyrert_stream *s)
{
	enum spyrert_status st;

	while ((st = spyrert_stream_query(s)) == SPYRERT_NOT_READY)
		;
	bench_check(st, "query");
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), cmp_double);
	return v[n / 2];
}

/* One empty control block, submitted and seen by polling, against one 4 KiB O_DIRECT read of NVMe. */
void bench_latency(struct bench *b)
{
	struct spyrert_stream *s = spyrert_default_stream(b->dev);
	static double card[LATENCY_TURNS], disk[LATENCY_TURNS];
	void *buf;
	int fd, round, i;

	if (!b->nvme)
		bench_die("latency compares with NVMe: set SPYRE_BENCH_NVME to the block device");
	fd = open(b->nvme, O_RDONLY | O_DIRECT);
	if (fd < 0)
		bench_die("%s: %s", b->nvme, strerror(errno));
	if (posix_memalign(&buf, 4096, 4096))
		bench_die("out of memory");
	bench_check(spyrert_stream_nop(s), "nop");
	spin_idle(s);
	for (round = 0; round < BENCH_ROUNDS; round++) {
		for (i = 0; i < LATENCY_TURNS; i++) {
			double t0 = bench_now(), t1;

			bench_check(spyrert_stream_nop(s), "nop");
			spin_idle(s);
			t1 = bench_now();
			if (pread(fd, buf, 4096, (off_t)(i * 37 % 1024) * 4096) != 4096)
				bench_die("%s: %s", b->nvme, strerror(errno));
			disk[i] = 1e6 * (bench_now() - t1);
			card[i] = 1e6 * (t1 - t0);
		}
		bench_sample("empty-latency", median(card, LATENCY_TURNS), median(disk, LATENCY_TURNS));
	}
	close(fd);
	free(buf);
}

/* A counter of this thread's system calls: the tracepoint that every one of them passes. */
static int count_syscalls(void)
{
	static const char path[] = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .disabled = 1 };
	unsigned long long id;
	FILE *f;
	int fd;

	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &id) != 1)
		bench_die("%s: %s (counting system calls needs root and tracefs)", path, strerror(errno));
	fclose(f);
	attr.config = id;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd < 0)
		bench_die("perf_event_open: %s", strerror(errno));
	return fd;
}

/*
 * System calls per submission while the queue is busy: the card works on a backlog while more comes. The
 * reset and enable calls themselves are outside, disable is the one call that is counted.
 */
void bench_submit(struct bench *b)
{
	struct spyrert_stream *s;
	struct spyrert_stream_attr attr = { .priority = SPYRERT_PRIORITY_NORMAL, .ring_entries = 4096 };
	int fd = count_syscalls(), i;
	unsigned long long calls;

	bench_check(spyrert_stream_create(b->dev, &attr, &s), "stream");
	for (i = 0; i < 500; i++)
		bench_check(spyrert_stream_nop(s), "nop");
	fputs("{\"mark\": \"submit-begin\"}\n", stdout);
	fflush(stdout);
	ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (i = 0; i < 3000; i++)
		bench_check(spyrert_stream_nop(s), "nop");
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (read(fd, &calls, sizeof(calls)) != sizeof(calls))
		bench_die("perf counter: %s", strerror(errno));
	bench_check(spyrert_stream_synchronize(s, SPYRERT_FOREVER), "synchronize");
	if (calls)
		calls--;
	bench_sample("submit-syscalls", (double)calls / 3000, 0);
	fputs("{\"mark\": \"submit-end\", \"submits\": 3000}\n", stdout);
	fflush(stdout);
	bench_check(spyrert_stream_destroy(s), "destroy");
	close(fd);
}
