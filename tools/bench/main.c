// SPDX-License-Identifier: MIT
/*
 * Guest half of spyre-bench: measures the card from inside the virtual machine, side by side with
 * what the guest itself can do, and prints samples for the host half (tools/spyre-bench).
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

static const struct {
	const char *name;
	void (*run)(struct bench *b);
} groups[] = {
	{ "copies", bench_copies },
	{ "overlap", bench_overlap },
	{ "latency", bench_latency },
	{ "submit", bench_submit },
	{ "matmul-dl16", bench_matmul },
	{ "matmul-int8", bench_matmul_int8 },
	{ "matmul-fp8", bench_matmul_fp8 },
	{ "add-64m", bench_add },
	{ "ktir", bench_ktir },
	{ "guest-speedup", bench_guest_speedup },
};

double bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void bench_die(const char *fmt, ...)
{
	va_list ap;

	fputs("spyre-bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

void bench_check(enum spyrert_status status, const char *what)
{
	if (status != SPYRERT_SUCCESS)
		bench_die("%s: %s", what, spyrert_last_error());
}

void bench_sample(const char *name, double value, double against)
{
	printf("{\"sample\": \"%s\", \"value\": %.9g, \"against\": %.9g}\n", name, value, against);
	fflush(stdout);
}

static void usage(FILE *f)
{
	size_t i;

	fputs("usage: spyre-bench-guest GROUP...\n"
	      "Guest half of spyre-bench: prints samples of card 0. Groups:", f);
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		fprintf(f, " %s", groups[i].name);
	fputs("\nExit status: 0 measured, 1 error, 2 wrong usage.\n", f);
}

int main(int argc, char **argv)
{
	struct bench b = { .nvme = getenv("SPYRE_BENCH_NVME") };
	size_t i;
	int a;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		usage(stdout);
		return 0;
	}
	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	bench_check(spyrert_init(NULL, &b.lib), "init");
	bench_check(spyrert_device_open(b.lib, 0, &b.dev), "open card 0");
	for (a = 1; a < argc; a++) {
		for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
			if (!strcmp(argv[a], groups[i].name))
				break;
		if (i == sizeof(groups) / sizeof(groups[0]))
			bench_die("no group '%s'", argv[a]);
		groups[i].run(&b);
	}
	bench_check(spyrert_device_close(b.dev), "close");
	bench_check(spyrert_exit(b.lib), "exit");
	return 0;
}
