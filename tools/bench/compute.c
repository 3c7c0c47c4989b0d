// SPDX-License-Identifier: MIT
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spyregen.h>

#include "bench.h"

/* A matrix product that is ready to launch: operands and result on the card. */
struct product {
	struct spyrert_program *program;
	spyrert_ptr a, b, c;
	uint64_t a_bytes, b_bytes, c_bytes;
	enum spyre_format in;
};

static float value(uint64_t i)
{
	return (float)((i * 2654435761u >> 16) % 33) / 16 - 1;
}

static void job_load(struct bench *b, struct spyreprog_job *job, const char *err,
		      struct spyrert_program **program)
{
	void *bin;
	size_t size;

	if (!job)
		bench_die("program: %s", err);
	if (spyreprog_job_finish(job, &bin, &size))
		bench_die("program: %s", spyreprog_job_error(job));
	bench_check(spyrert_program_load_binary(b->dev, bin, size, program), "program");
	free(bin);
	spyreprog_job_free(job);
}

/* watchdog: cycles, 0 for the card's own. Programs that differ in it are different programs to all caches. */
static void product_load(struct bench *b, struct product *p, enum spyre_format in, enum spyre_format out,
			 uint32_t m, uint32_t n, uint32_t k, uint64_t watchdog)
{
	struct spyregen_matmul mm = { .m = m, .n = n, .k = k, .in = in, .out = out };
	char err[200];
	struct spyreprog_job *job = spyregen_matmul(&mm, err);

	if (job)
		spyreprog_job_watchdog(job, watchdog);
	job_load(b, job, err, &p->program);
	p->in = in;
	p->a_bytes = spyregen_bytes(in, m, k);
	p->b_bytes = spyregen_weight_bytes(in, k, n);
	p->c_bytes = spyregen_bytes(out, m, n);
	bench_check(spyrert_malloc(b->dev, p->a_bytes, &p->a), "device memory");
	bench_check(spyrert_malloc(b->dev, p->b_bytes, &p->b), "device memory");
	bench_check(spyrert_malloc(b->dev, p->c_bytes, &p->c), "device memory");
}

static void dl16_load(struct bench *b, struct product *p, uint32_t m, uint32_t n, uint32_t k,
		      uint64_t watchdog)
{
	product_load(b, p, SPYRE_SEN169_FP16, SPYRE_SEN169_FP16, m, n, k, watchdog);
}

static void product_free(struct bench *b, struct product *p)
{
	bench_check(spyrert_free(b->dev, p->a), "free");
	bench_check(spyrert_free(b->dev, p->b), "free");
	bench_check(spyrert_free(b->dev, p->c), "free");
	bench_check(spyrert_program_unload(p->program), "unload");
}

/* The i-th number as it lies on the card: finite, of both signs, neither all large nor all small. */
static unsigned int code(enum spyre_format fmt, uint64_t i)
{
	unsigned int noise = (unsigned int)(i * 2654435761u >> 20);

	switch (fmt) {
	case SPYRE_SEN169_FP16:		/* between about 1/4 and 4 */
		return 0x3a00 + noise % 0x0800 + (i & 1 ? 0x8000 : 0);
	case SPYRE_SEN143_FP8:		/* the same */
		return 0x28 + noise % 0x20 + (i & 1 ? 0x80 : 0);
	case SPYRE_SENINT8:
		return noise & 0xff;
	default:
		bench_die("no numbers in format %d", (int)fmt);
	}
}

/* The emulated CPU converts too slowly to do so in every round. */
static void fill(struct bench *b, enum spyre_format fmt, spyrert_ptr dst, uint64_t bytes)
{
	bool wide = fmt == SPYRE_SEN169_FP16;
	uint8_t *raw = malloc(bytes);
	uint64_t i;

	if (!raw)
		bench_die("out of memory");
	for (i = 0; i < bytes >> wide; i++) {
		unsigned int v = code(fmt, i);

		raw[i << wide] = (uint8_t)v;
		if (wide)
			raw[(i << 1) + 1] = (uint8_t)(v >> 8);
	}
	bench_check(spyrert_memcpy_h2d(b->dev, dst, raw, bytes), "h2d");
	free(raw);
}

static void product_fill(struct bench *b, struct product *p)
{
	fill(b, p->in, p->a, p->a_bytes);
	fill(b, p->in, p->b, p->b_bytes);
}

static double run(struct bench *b, struct spyrert_program *program, const uint64_t symbols[3])
{
	struct spyrert_stream *s = spyrert_default_stream(b->dev);
	double t = bench_now();

	bench_check(spyrert_launch(s, program, symbols, 3, 0, 0), "launch");
	bench_check(spyrert_stream_synchronize(s, SPYRERT_FOREVER), "program");
	return bench_now() - t;
}

static double product_run(struct bench *b, struct product *p)
{
	return run(b, p->program, (uint64_t[]){ p->a, p->b, p->c });
}

/*
 * Waits while the host measures its own side, so that the two do not share the processors. What it ran leaves caches and
 * translations cold: turn_run() counts as host.c does, the first of TURN_RUNS warms up, the best of the others counts.
 */
static void turn(void)
{
	char line[16];

	fputs("{\"mark\": \"turn\"}\n", stdout);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		bench_die("the host half is gone");
}

#define TURN_RUNS	3

static double turn_run(struct bench *b, struct spyrert_program *program, const uint64_t symbols[3])
{
	double best = 0;
	int i;

	turn();
	for (i = 0; i < TURN_RUNS; i++) {
		double t = run(b, program, symbols);

		if (i == 1 || (i > 1 && t < best))
			best = t;
	}
	return best;
}

#define LARGE	2048u
#define LARGE_OPS	(2.0 * LARGE * LARGE * LARGE)

static void product_rate(struct bench *b, const char *name, enum spyre_format in, enum spyre_format out)
{
	struct product p;
	int i;

	product_load(b, &p, in, out, LARGE, LARGE, LARGE, 0);
	product_fill(b, &p);
	for (i = 0; i < BENCH_ROUNDS; i++)
		bench_sample(name, LARGE_OPS / turn_run(b, p.program, (uint64_t[]){ p.a, p.b, p.c }), 0);
	product_free(b, &p);
}

void bench_matmul(struct bench *b)
{
	product_rate(b, "matmul-dl16", SPYRE_SEN169_FP16, SPYRE_SEN169_FP16);
}

void bench_matmul_int8(struct bench *b)
{
	product_rate(b, "matmul-int8", SPYRE_SENINT8, SPYRE_IEEE_INT32);
}

void bench_matmul_fp8(struct bench *b)
{
	struct product p, dl16;
	int i;

	product_load(b, &p, SPYRE_SEN143_FP8, SPYRE_SEN169_FP16, LARGE, LARGE, LARGE, 0);
	dl16_load(b, &dl16, LARGE, LARGE, LARGE, 0);
	product_fill(b, &p);
	product_fill(b, &dl16);
	product_run(b, &p);
	product_run(b, &dl16);
	for (i = 0; i < BENCH_ROUNDS; i++) {
		double t = product_run(b, &p);

		bench_sample("matmul-fp8", LARGE_OPS / t, LARGE_OPS / product_run(b, &dl16));
	}
	product_free(b, &p);
	product_free(b, &dl16);
}

/* Three tensors of 64 MB: a + b. The bytes of one count. */
void bench_add(struct bench *b)
{
	struct spyregen_elementwise ew = {
		.op = SPYREGEN_ADD, .m = 8192, .n = 4096,
		.in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16,
	};
	uint64_t bytes = spyregen_bytes(ew.in, ew.m, ew.n), symbols[3];
	struct spyrert_program *program;
	char err[200];
	int i;

	job_load(b, spyregen_elementwise(&ew, err), err, &program);
	for (i = 0; i < 3; i++)
		bench_check(spyrert_malloc(b->dev, bytes, &symbols[i]), "device memory");
	fill(b, ew.in, symbols[0], bytes);
	fill(b, ew.in, symbols[1], bytes);
	for (i = 0; i < BENCH_ROUNDS; i++)
		bench_sample("add-64m", (double)bytes / turn_run(b, program, symbols), 0);
	for (i = 0; i < 3; i++)
		bench_check(spyrert_free(b->dev, symbols[i]), "free");
	bench_check(spyrert_program_unload(program), "unload");
}

/* The whole kernel: launch to result, check and timing pass included: a new program each round. */
void bench_ktir(struct bench *b)
{
	struct product p;
	int i;

	for (i = 0; i < BENCH_ROUNDS; i++) {
		dl16_load(b, &p, 64, 8192, 2048, (1ull << 32) + (uint64_t)i);
		product_fill(b, &p);
		bench_sample("kernel-ktir", product_run(b, &p), 1);
		product_free(b, &p);
	}
}

#define SIDE	512u

/*
 * The same 512-cubed product two ways: on the guest's CPU in fp32, and on the card in DL16 with copies and
 * waiting. Both sides start from operands in their own format: packing them is in neither time.
 */
void bench_guest_speedup(struct bench *b)
{
	struct spyrert_stream *s = spyrert_default_stream(b->dev);
	struct product p;
	float *m = malloc(3 * sizeof(*m) * SIDE * SIDE);
	void *ha, *hb, *hc;
	uint64_t i;
	int round;

	if (!m)
		bench_die("out of memory");
	dl16_load(b, &p, SIDE, SIDE, SIDE, 0);
	bench_check(spyrert_host_alloc(b->dev, p.a_bytes, &ha), "pinned memory");
	bench_check(spyrert_host_alloc(b->dev, p.b_bytes, &hb), "pinned memory");
	bench_check(spyrert_host_alloc(b->dev, p.c_bytes, &hc), "pinned memory");
	for (i = 0; i < 2 * SIDE * SIDE; i++)
		m[i] = value(i);
	spyregen_pack(ha, SPYRE_SEN169_FP16, m, SIDE, SIDE, SIDE);
	spyregen_pack_weights(hb, SPYRE_SEN169_FP16, m + SIDE * SIDE, SIDE, SIDE, SIDE);
	for (round = 0; round < BENCH_ROUNDS; round++) {
		uint64_t symbols[3] = { p.a, p.b, p.c };
		double t0 = bench_now(), t1;

		bench_check(spyrert_memcpy_h2d_async(s, p.a, ha, p.a_bytes), "h2d");
		bench_check(spyrert_memcpy_h2d_async(s, p.b, hb, p.b_bytes), "h2d");
		bench_check(spyrert_launch(s, p.program, symbols, 3, 0, 0), "launch");
		bench_check(spyrert_memcpy_d2h_async(s, hc, p.c, p.c_bytes), "d2h");
		bench_check(spyrert_stream_synchronize(s, SPYRERT_FOREVER), "matmul");
		t1 = bench_now();
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, m, SIDE,
			    m + SIDE * SIDE, SIDE, 0, m + 2 * SIDE * SIDE, SIDE);
		bench_sample("guest-speedup", t1 - t0, bench_now() - t1);
	}
	bench_check(spyrert_host_free(b->dev, ha), "free");
	bench_check(spyrert_host_free(b->dev, hb), "free");
	bench_check(spyrert_host_free(b->dev, hc), "free");
	product_free(b, &p);
	free(m);
}

/* Card time from the first of two marks to the second. */
static double card_seconds(struct spyrert_event *start, struct spyrert_event *end)
{
	double ns;

	bench_check(spyrert_event_elapsed(start, end, &ns), "elapsed");
	return ns * 1e-9;
}

#define OVERLAP_COPIES	8
#define OVERLAP_LAUNCHES	4
#define OVERLAP_BYTES	(16ull << 20)

/*
 * Copies on one stream, computing on another, in card time: alone, alone, together. Together they may take
 * little more than the longer one.
 */
void bench_overlap(struct bench *b)
{
	struct spyrert_stream *copy, *compute;
	struct spyrert_event *begin, *end_copy, *end_compute;
	struct product p;
	spyrert_ptr dev;
	void *host;
	int round, i, which;

	dl16_load(b, &p, 1024, 1024, 1024, 0);
	product_fill(b, &p);
	product_run(b, &p);
	bench_check(spyrert_host_alloc(b->dev, OVERLAP_BYTES, &host), "pinned memory");
	memset(host, 1, OVERLAP_BYTES);
	bench_check(spyrert_malloc(b->dev, OVERLAP_BYTES, &dev), "device memory");
	bench_check(spyrert_stream_create(b->dev, NULL, &copy), "stream");
	bench_check(spyrert_stream_create(b->dev, NULL, &compute), "stream");
	bench_check(spyrert_event_create(b->dev, 0, &begin), "event");
	bench_check(spyrert_event_create(b->dev, 0, &end_copy), "event");
	bench_check(spyrert_event_create(b->dev, 0, &end_compute), "event");
	for (round = 0; round < BENCH_ROUNDS; round++) {
		uint64_t symbols[3] = { p.a, p.b, p.c };
		double t[3];

		for (which = 1; which <= 3; which++) {
			double tc = 0, tx = 0;

			bench_check(spyrert_event_record(begin, copy), "record");
			bench_check(spyrert_stream_wait_event(compute, begin), "wait");
			for (i = 0; i < OVERLAP_COPIES && (which & 1); i++)
				bench_check(spyrert_memcpy_h2d_async(copy, dev, host, OVERLAP_BYTES), "h2d");
			for (i = 0; i < OVERLAP_LAUNCHES && (which & 2); i++)
				bench_check(spyrert_launch(compute, p.program, symbols, 3, 0, 0), "launch");
			bench_check(spyrert_event_record(end_copy, copy), "record");
			bench_check(spyrert_event_record(end_compute, compute), "record");
			bench_check(spyrert_stream_synchronize(copy, SPYRERT_FOREVER), "synchronize");
			bench_check(spyrert_stream_synchronize(compute, SPYRERT_FOREVER), "synchronize");
			if (which & 1)
				tc = card_seconds(begin, end_copy);
			if (which & 2)
				tx = card_seconds(begin, end_compute);
			t[which - 1] = tc > tx ? tc : tx;
		}
		bench_sample("overlap", t[2], t[0] > t[1] ? t[0] : t[1]);
	}
	bench_check(spyrert_event_destroy(begin), "destroy");
	bench_check(spyrert_event_destroy(end_copy), "destroy");
	bench_check(spyrert_event_destroy(end_compute), "destroy");
	bench_check(spyrert_stream_destroy(copy), "destroy");
	bench_check(spyrert_stream_destroy(compute), "destroy");
	bench_check(spyrert_free(b->dev, dev), "free");
	bench_check(spyrert_host_free(b->dev, host), "free");
	product_free(b, &p);
}
