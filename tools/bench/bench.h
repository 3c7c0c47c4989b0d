/* SPDX-License-Identifier: MIT */
/* What the guest half of spyre-bench shares between its files. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spyrert.h>

/* Rounds of every pair of measurements; the host takes the median of the ratios. */
#define BENCH_ROUNDS	5

struct bench {
	struct spyrert *lib;
	struct spyrert_device *dev;
	const char *nvme;	/* block device, or NULL */
};

double bench_now(void);		/* seconds, CLOCK_MONOTONIC */
/* Ends the program with the runtime's explanation. */
void bench_check(enum spyrert_status status, const char *what);
__attribute__((format(printf, 1, 2), noreturn)) void bench_die(const char *fmt, ...);

/*
 * One line for the host: {"sample": name, "value": v, "against": w}. Values are in the unit the
 * host's table has for the name.
 */
void bench_sample(const char *name, double value, double against);

/* copy.c */
void bench_copies(struct bench *b);
void bench_overlap(struct bench *b);
/* queue.c */
void bench_latency(struct bench *b);
void bench_submit(struct bench *b);
/* compute.c */
void bench_matmul(struct bench *b);
void bench_matmul_int8(struct bench *b);
void bench_matmul_fp8(struct bench *b);
void bench_add(struct bench *b);
void bench_ktir(struct bench *b);
void bench_guest_speedup(struct bench *b);

#endif
