// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define COPY_BYTES	(64ull << 20)

/* 64 MB each way between pinned memory and the card, against the guest's own memcpy of as many bytes. */
void bench_copies(struct bench *b)
{
	struct spyrert_stream *s = spyrert_default_stream(b->dev);
	char *from, *to;
	void *pinned;
	spyrert_ptr dev;
	int i;

	from = malloc(COPY_BYTES);
	to = malloc(COPY_BYTES);
	if (!from || !to)
		bench_die("no memory for 64 MB buffers: give the machine more (spyre-vm --memory)");
	memset(from, 1, COPY_BYTES);
	memset(to, 2, COPY_BYTES);
	bench_check(spyrert_host_alloc(b->dev, COPY_BYTES, &pinned), "pinned memory");
	bench_check(spyrert_malloc(b->dev, COPY_BYTES, &dev), "device memory");
	memset(pinned, 3, COPY_BYTES);
	bench_check(spyrert_memcpy_h2d_async(s, dev, pinned, COPY_BYTES), "h2d");
	bench_check(spyrert_stream_synchronize(s, SPYRERT_FOREVER), "h2d");
	for (i = 0; i < BENCH_ROUNDS; i++) {
		double t0 = bench_now(), t1, t2, t3;

		memcpy(to, from, COPY_BYTES);
		t1 = bench_now();
		bench_check(spyrert_memcpy_h2d_async(s, dev, pinned, COPY_BYTES), "h2d");
		bench_check(spyrert_stream_synchronize(s, SPYRERT_FOREVER), "h2d");
		t2 = bench_now();
		bench_check(spyrert_memcpy_d2h_async(s, pinned, dev, COPY_BYTES), "d2h");
		bench_check(spyrert_stream_synchronize(s, SPYRERT_FOREVER), "d2h");
		t3 = bench_now();
		bench_sample("h2d-64m", (double)COPY_BYTES / (t2 - t1), (double)COPY_BYTES / (t1 - t0));
		bench_sample("d2h-64m", (double)COPY_BYTES / (t3 - t2), (double)COPY_BYTES / (t1 - t0));
	}
	bench_check(spyrert_free(b->dev, dev), "free");
	bench_check(spyrert_host_free(b->dev, pinned), "free");
	free(from);
	free(to);
}
