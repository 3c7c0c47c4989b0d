// SPDX-License-Identifier: MIT
/*
 * spyre-demo: recognises handwritten digits on the card, then multiplies two large matrices.
 *
 * Copies go on one stream, compute on another; events between them keep two batches in flight.
 * Everything is submitted behind a word in host memory and let go at once, so that the card, not
 * this program, sets the pace.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <spyregen.h>
#include <spyrert.h>

#include "../args.h"
#include "demo.h"

#define BATCH	128u
#define BUFFERS	2u

#define CHECK(call)								\
	do {									\
		enum spyrert_status s_ = (call);				\
										\
		if (s_ != SPYRERT_SUCCESS)					\
			die("%s: %s", spyrert_status_name(s_), spyrert_last_error()); \
	} while (0)

#define BATCHES	((RESULT_MAX + BATCH - 1) / BATCH)

/* Card time, SoC cycles. */
struct span {
	uint64_t from, to;
};

/* What the response blocks said: when each operation began, and how long the model says it took. */
struct log {
	struct span h2d[BATCHES], d2h[BATCHES];
	uint64_t compute[BATCHES * (LAYERS + 1)];
	unsigned int h2ds, d2hs, computes;
	uint64_t copy_time, compute_time;	/* SoC cycles */
	uint64_t compute_cycles;		/* core cycles */
};

static void on_activity(void *arg, const struct spyrert_activity *a)
{
	struct log *l = arg;
	/* The words are the low halves of the counter; TS4 is there in full. */
	uint64_t from = a->ts4 - (uint32_t)(a->ts[3] - a->ts[0]);
	uint32_t took = a->ts[4] - a->ts[0];

	if (a->kind == SPYRERT_ACTIVITY_COMPUTE && l->computes < BATCHES * (LAYERS + 1)) {
		l->compute[l->computes++] = from;
		l->compute_time += took;
		l->compute_cycles += a->cycles;
	} else if (a->kind == SPYRERT_ACTIVITY_H2D && l->h2ds < BATCHES) {
		l->h2d[l->h2ds++] = (struct span){ from, from + took };
		l->copy_time += took;
	} else if (a->kind == SPYRERT_ACTIVITY_D2H && l->d2hs < BATCHES) {
		l->d2h[l->d2hs++] = (struct span){ from, from + took };
		l->copy_time += took;
	}
}

static struct spyrert_program *load(struct spyrert_device *dev, struct spyreprog_job *job,
				    const char *err)
{
	struct spyrert_program *p;
	size_t size;
	void *bin;

	if (!job)
		die("%s", err);
	if (spyreprog_job_finish(job, &bin, &size))
		die("%s", spyreprog_job_error(job));
	spyreprog_job_free(job);
	CHECK(spyrert_program_load_binary(dev, bin, size, &p));
	free(bin);
	return p;
}

static spyrert_ptr device_alloc(struct spyrert_device *dev, uint64_t bytes)
{
	spyrert_ptr p;

	CHECK(spyrert_malloc(dev, bytes, &p));
	return p;
}

static void *host_alloc(struct spyrert_device *dev, size_t bytes)
{
	void *p;

	CHECK(spyrert_host_alloc(dev, bytes, &p));
	return p;
}

/* --- Digits --------------------------------------------------------------------------------- */

static unsigned int argmax(const float *s)
{
	unsigned int j, best = 0;

	for (j = 1; j < CLASSES; j++)
		if (s[j] > s[best])
			best = j;
	return best;
}

static void show(const struct digits *d, size_t first, size_t count, const uint8_t *said,
		 const float *p)
{
	static const char ink[] = " .:-=+*#%@";
	size_t pick[6], n = 0, misread, i, k;
	unsigned int y, x;

	/* Some of the first, and two that the card got wrong. */
	for (i = 0; i < count && n < 2; i++)
		if (said[i] != d->label[first + i])
			pick[n++] = i;
	misread = n;
	for (i = 0; i < count && n < 6; i += 7)
		if (said[i] == d->label[first + i])
			pick[n++] = i;
	if (misread)
		printf("  also shown, on the right: %s it misread\n\n",
		       misread > 1 ? "pictures" : "a picture");
	for (y = 0; y < 8; y++) {
		printf("  ");
		for (k = n; k-- > 0;) {
			for (x = 0; x < 8; x++) {
				char c = ink[(int)(d->pixel[first + pick[k]][y * 8 + x] * 9.0f +
						   0.5f)];

				putchar(c);
				putchar(c);
			}
			printf("  ");
		}
		putchar('\n');
	}
	printf("  ");
	for (k = n; k-- > 0;) {
		char text[40];

		i = pick[k];
		if (said[i] == d->label[first + i])
			snprintf(text, sizeof(text), "says %u (%.0f %%)", said[i],
				 (double)p[i * CLASSES + said[i]] * 100);
		else
			snprintf(text, sizeof(text), "says %u, is %u", said[i],
				 d->label[first + i]);
		printf("%-16s  ", text);
	}
	printf("\n\n");
}

/* Cycles that lie in a span of a and in one of b; the spans of b follow each other. */
static uint64_t overlap(const struct span *a, unsigned int na, const struct span *b,
			unsigned int nb)
{
	uint64_t sum = 0, from, to;
	unsigned int i, j;

	for (i = 0; i < na; i++) {
		for (j = 0; j < nb; j++) {
			from = a[i].from > b[j].from ? a[i].from : b[j].from;
			to = a[i].to < b[j].to ? a[i].to : b[j].to;
			if (to > from)
				sum += to - from;
		}
	}
	return sum;
}

struct pipeline {
	struct spyrert_device *dev;
	struct spyrert_stream *copy, *compute;
	struct spyrert_program *layer[LAYERS], *softmax;
	spyrert_ptr weight[LAYERS], bias[LAYERS], act[LAYERS], x[BUFFERS], p[BUFFERS];
	struct spyrert_event *loaded[BATCHES], *done[BATCHES], *copied[BATCHES];
	unsigned int batches;
	uint64_t *gate;
};

static void pipeline_new(struct pipeline *pl, struct spyrert_device *dev, const struct net *net,
			 unsigned int batches)
{
	struct spyregen_row row = {
		.op = SPYREGEN_SOFTMAX, .m = BATCH, .n = CLASSES, .fmt = SPYRE_IEEE_FP32
	};
	unsigned int l, b;
	char err[200];

	pl->dev = dev;
	CHECK(spyrert_stream_create(dev, NULL, &pl->copy));
	CHECK(spyrert_stream_create(dev, NULL, &pl->compute));
	for (l = 0; l < LAYERS; l++) {
		bool last = l == LAYERS - 1;
		struct spyregen_matmul mm = {
			.m = BATCH, .n = net->out[l], .k = net->in[l], .in = SPYRE_SEN169_FP16,
			.out = last ? SPYRE_IEEE_FP32 : SPYRE_SEN169_FP16, .bias = true,
			.act = last ? SPYREGEN_NONE : SPYREGEN_RELU,
		};
		uint64_t wb = spyregen_weight_bytes(mm.in, mm.k, mm.n),
			 bb = spyregen_bytes(SPYRE_IEEE_FP32, 1, mm.n);
		void *host = malloc(wb > bb ? wb : bb);

		if (!host)
			die("out of memory");
		pl->layer[l] = load(dev, spyregen_matmul(&mm, err), err);
		pl->weight[l] = device_alloc(dev, wb);
		pl->bias[l] = device_alloc(dev, bb);
		pl->act[l] = device_alloc(dev, spyregen_bytes(mm.out, BATCH, mm.n));
		spyregen_pack_weights(host, mm.in, net->weight[l], mm.k, mm.n, mm.n);
		CHECK(spyrert_memcpy_h2d(dev, pl->weight[l], host, wb));
		spyregen_pack(host, SPYRE_IEEE_FP32, net->bias[l], 1, mm.n, mm.n);
		CHECK(spyrert_memcpy_h2d(dev, pl->bias[l], host, bb));
		free(host);
	}
	pl->softmax = load(dev, spyregen_row(&row, err), err);
	for (b = 0; b < BUFFERS; b++) {
		pl->x[b] = device_alloc(dev, spyregen_bytes(SPYRE_SEN169_FP16, BATCH, PIXELS));
		pl->p[b] = device_alloc(dev, spyregen_bytes(SPYRE_IEEE_FP32, BATCH, CLASSES));
	}
	pl->batches = batches;
	for (b = 0; b < batches; b++) {
		CHECK(spyrert_event_create(dev, 0, &pl->loaded[b]));
		CHECK(spyrert_event_create(dev, 0, &pl->done[b]));
		CHECK(spyrert_event_create(dev, 0, &pl->copied[b]));
	}
	pl->gate = host_alloc(dev, 128);
	*pl->gate = 0;
}

static void pipeline_free(struct pipeline *pl)
{
	unsigned int l, b;

	CHECK(spyrert_stream_destroy(pl->copy));
	CHECK(spyrert_stream_destroy(pl->compute));
	for (b = 0; b < pl->batches; b++) {
		CHECK(spyrert_event_destroy(pl->loaded[b]));
		CHECK(spyrert_event_destroy(pl->done[b]));
		CHECK(spyrert_event_destroy(pl->copied[b]));
	}
	for (b = 0; b < BUFFERS; b++) {
		CHECK(spyrert_free(pl->dev, pl->x[b]));
		CHECK(spyrert_free(pl->dev, pl->p[b]));
	}
	for (l = 0; l < LAYERS; l++) {
		CHECK(spyrert_program_unload(pl->layer[l]));
		CHECK(spyrert_free(pl->dev, pl->weight[l]));
		CHECK(spyrert_free(pl->dev, pl->bias[l]));
		CHECK(spyrert_free(pl->dev, pl->act[l]));
	}
	CHECK(spyrert_program_unload(pl->softmax));
	CHECK(spyrert_host_free(pl->dev, pl->gate));
}

static void submit_in(struct pipeline *pl, unsigned int i, const void *x)
{
	/* The buffer's last batch must have been read. */
	if (i >= BUFFERS)
		CHECK(spyrert_stream_wait_event(pl->copy, pl->done[i - BUFFERS]));
	CHECK(spyrert_memcpy_h2d_async(pl->copy, pl->x[i % BUFFERS], x,
				       spyregen_bytes(SPYRE_SEN169_FP16, BATCH, PIXELS)));
	CHECK(spyrert_event_record(pl->loaded[i], pl->copy));
}

static void submit_compute(struct pipeline *pl, unsigned int i)
{
	unsigned int l;
	spyrert_ptr from = pl->x[i % BUFFERS];

	CHECK(spyrert_stream_wait_event(pl->compute, pl->loaded[i]));
	/* The last result in this buffer must have been copied out. */
	if (i >= BUFFERS)
		CHECK(spyrert_stream_wait_event(pl->compute, pl->copied[i - BUFFERS]));
	for (l = 0; l < LAYERS; l++) {
		uint64_t sym[4] = { from, pl->weight[l], pl->act[l], pl->bias[l] };

		CHECK(spyrert_launch(pl->compute, pl->layer[l], sym, 4, 0, 0));
		from = pl->act[l];
	}
	CHECK(spyrert_launch(pl->compute, pl->softmax, (uint64_t[]){ from, pl->p[i % BUFFERS] }, 2,
			     0, 0));
	CHECK(spyrert_event_record(pl->done[i], pl->compute));
}

static void submit_out(struct pipeline *pl, unsigned int i, void *p)
{
	CHECK(spyrert_stream_wait_event(pl->copy, pl->done[i]));
	CHECK(spyrert_memcpy_d2h_async(pl->copy, p, pl->p[i % BUFFERS],
				       spyregen_bytes(SPYRE_IEEE_FP32, BATCH, CLASSES)));
	CHECK(spyrert_event_record(pl->copied[i], pl->copy));
}

/*
 * A copy takes from TS1 to TS5 of its response block. A batch's launches hold the compute engine
 * from TS1 of the first until the event behind the last: the card announces the end when both the
 * modelled time and the arithmetic are over, and what starts meanwhile is hidden.
 */
static void report_time(const struct pipeline *pl, const struct log *log,
			const struct spyrert_device_props *props, double wall)
{
	struct span copy[2 * BATCHES], compute[BATCHES];
	uint64_t copies = 0, hidden, first, last, us = props->soc_hz / 1000000;
	unsigned int b, n = 0;

	if (log->h2ds != pl->batches || log->d2hs != pl->batches ||
	    log->computes != pl->batches * (LAYERS + 1))
		die("response blocks are missing: %u copies in, %u out, %u launches", log->h2ds,
		    log->d2hs, log->computes);
	for (b = 0; b < pl->batches; b++) {
		copy[n++] = log->h2d[b];
		copy[n++] = log->d2h[b];
		compute[b].from = log->compute[b * (LAYERS + 1)];
		CHECK(spyrert_event_timestamp(pl->done[b], &compute[b].to));
	}
	first = copy[0].from;
	last = copy[n - 1].to;
	while (n--)
		copies += copy[n].to - copy[n].from;
	hidden = overlap(copy, 2 * pl->batches, compute, pl->batches);
	printf("\n\n  modelled time  %.1f us of compute in %u launches, %.1f us of copies in %u\n",
	       (double)log->compute_time / (double)us, log->computes,
	       (double)log->copy_time / (double)us, 2 * pl->batches);
	printf("  card time      %.1f ms from first copy to last; %.0f %% of the copies hidden "
	       "behind compute\n",
	       (double)(last - first) / (double)us * 1e-3,
	       copies ? 100.0 * (double)hidden / (double)copies : 0);
	printf("  wall time      %.1f ms\n\n", wall * 1e3);
}

static int recognise(struct spyrert_device *dev, const struct spyrert_device_props *props,
		     const struct digits *d, const struct net *net, struct result *res)
{
	size_t first = d->count / 2, count = d->count - first, i, ok = 0, ok_ref = 0, agree = 0;
	unsigned int batches = (unsigned int)((count + BATCH - 1) / BATCH), b, c;
	size_t xb = spyregen_bytes(SPYRE_SEN169_FP16, BATCH, PIXELS);
	size_t pb = spyregen_bytes(SPYRE_IEEE_FP32, BATCH, CLASSES);
	unsigned int per[CLASSES][3] = { { 0 } };
	float *prob = malloc((size_t)batches * BATCH * CLASSES * sizeof(float));
	static struct pipeline pl;
	static struct log log;
	uint8_t *x, *p;
	double wall;

	if (!prob || count > RESULT_MAX)
		die("too many pictures: at most %u in the test half", RESULT_MAX);
	pipeline_new(&pl, dev, net, batches);
	x = host_alloc(dev, batches * xb);
	p = host_alloc(dev, batches * pb);
	for (b = 0; b < batches; b++) {
		size_t n = count - b * BATCH < BATCH ? count - b * BATCH : BATCH;
		static float full[BATCH][PIXELS];

		memset(full, 0, sizeof(full));
		memcpy(full, d->pixel[first + b * BATCH], n * sizeof(full[0]));
		spyregen_pack(x + b * xb, SPYRE_SEN169_FP16, full[0], BATCH, PIXELS, PIXELS);
	}

	CHECK(spyrert_device_synchronize(dev, SPYRERT_FOREVER));
	CHECK(spyrert_activity_subscribe(dev, on_activity, &log));
	CHECK(spyrert_stream_wait_value(pl.copy, pl.gate, 1));
	CHECK(spyrert_stream_wait_value(pl.compute, pl.gate, 1));
	submit_in(&pl, 0, x);
	for (b = 0; b < batches; b++) {
		/* The next batch goes in while this one is computed. */
		if (b + 1 < batches)
			submit_in(&pl, b + 1, x + (b + 1) * xb);
		submit_compute(&pl, b);
		submit_out(&pl, b, p + b * pb);
	}
	wall = now();
	CHECK(spyrert_host_write_value(dev, pl.gate, 1));
	CHECK(spyrert_stream_synchronize(pl.compute, 60000000000ull));
	CHECK(spyrert_stream_synchronize(pl.copy, 60000000000ull));
	wall = now() - wall;
	CHECK(spyrert_activity_subscribe(dev, NULL, NULL));

	for (b = 0; b < batches; b++)
		spyregen_unpack(prob + (size_t)b * BATCH * CLASSES, CLASSES, p + b * pb,
				SPYRE_IEEE_FP32, BATCH, CLASSES);
	for (i = 0; i < count; i++) {
		float ref[CLASSES];
		unsigned int label = d->label[first + i], ref_says;

		net_scores(net, d->pixel[first + i], ref, NULL);
		ref_says = argmax(ref);
		res->said[i] = (uint8_t)argmax(prob + i * CLASSES);
		ok += res->said[i] == label;
		ok_ref += ref_says == label;
		agree += res->said[i] == ref_says;
		per[label][0]++;
		per[label][1] += res->said[i] == label;
		per[label][2] += res->said[i] == ref_says;
	}
	res->pictures = (uint32_t)count;

	printf("Handwritten digits: %zu pictures of the test half, batches of %u, %u cores\n\n",
	       count, BATCH, props->cores);
	show(d, first, count, res->said, prob);
	printf("  accuracy   card (DL16) %.2f %%   host (fp32) %.2f %%   agreement %.2f %%\n",
	       100.0 * (double)ok / (double)count, 100.0 * (double)ok_ref / (double)count,
	       100.0 * (double)agree / (double)count);
	printf("  digit     ");
	for (c = 0; c < CLASSES; c++)
		printf("%7u", c);
	printf("\n  right     ");
	for (c = 0; c < CLASSES; c++)
		printf("%6.1f%%", per[c][0] ? 100.0 * per[c][1] / per[c][0] : 0);
	printf("\n  agreement ");
	for (c = 0; c < CLASSES; c++)
		printf("%6.1f%%", per[c][0] ? 100.0 * per[c][2] / per[c][0] : 0);
	report_time(&pl, &log, props, wall);
	CHECK(spyrert_host_free(dev, x));
	CHECK(spyrert_host_free(dev, p));
	pipeline_free(&pl);
	free(prob);
	/* A card that computes anything sensible agrees with fp32 on nearly all of them. */
	if (agree * 100 < count * 97) {
		printf("  the card disagrees with the reference too often\n");
		return 1;
	}
	return 0;
}

/* --- Product -------------------------------------------------------------------------------- */

static void *product(struct spyrert_device *dev, const struct spyrert_device_props *props,
		     uint32_t n, struct result *res)
{
	struct spyregen_matmul mm = {
		.m = n, .n = n, .k = n, .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16
	};
	uint64_t ab = spyregen_bytes(mm.in, n, n), bb = spyregen_weight_bytes(mm.in, n, n), sym[3];
	struct spyrert_stream *s = spyrert_default_stream(dev);
	float *a = malloc((size_t)n * n * 4), *b = malloc((size_t)n * n * 4);
	struct spyrert_program *prog;
	static struct log log;
	unsigned int i;
	char err[200];
	double t;
	void *ha, *hb, *hc;

	if (!a || !b)
		die("out of memory");
	res->seed = 42;
	product_operands(a, b, n, res->seed);
	ha = host_alloc(dev, ab);
	hb = host_alloc(dev, bb);
	hc = malloc(ab);
	if (!hc)
		die("out of memory");
	spyregen_pack(ha, mm.in, a, n, n, n);
	spyregen_pack_weights(hb, mm.in, b, n, n, n);
	free(a);
	free(b);
	prog = load(dev, spyregen_matmul(&mm, err), err);
	sym[0] = device_alloc(dev, ab);
	sym[1] = device_alloc(dev, bb);
	sym[2] = device_alloc(dev, ab);
	CHECK(spyrert_memcpy_h2d(dev, sym[0], ha, ab));
	CHECK(spyrert_memcpy_h2d(dev, sym[1], hb, bb));
	CHECK(spyrert_activity_subscribe(dev, on_activity, &log));
	for (i = 0; i < 4; i++) {
		t = now();
		CHECK(spyrert_launch(s, prog, sym, 3, 0, 0));
		CHECK(spyrert_stream_synchronize(s, 120000000000ull));
		t = now() - t;
		if (!i || t < res->seconds)
			res->seconds = t;
	}
	CHECK(spyrert_activity_subscribe(dev, NULL, NULL));
	res->card_seconds =
		log.computes ? (double)log.compute_cycles / log.computes / props->core_hz : 0;
	CHECK(spyrert_memcpy_d2h(dev, hc, sym[2], ab));
	for (i = 0; i < 3; i++)
		CHECK(spyrert_free(dev, sym[i]));
	CHECK(spyrert_program_unload(prog));
	CHECK(spyrert_host_free(dev, ha));
	CHECK(spyrert_host_free(dev, hb));
	res->matrix_n = n;
	res->matrix_bytes = ab;
	res->hash = result_hash(hc, ab);
	return hc;
}

/* --- Result --------------------------------------------------------------------------------- */

static void write_all(int fd, const void *data, size_t bytes, off_t at, const char *path)
{
	const char *p = data;
	ssize_t n;

	while (bytes) {
		n = pwrite(fd, p, bytes, at);
		if (n <= 0)
			die("cannot write %s: %s", path, strerror(errno));
		p += n;
		at += n;
		bytes -= (size_t)n;
	}
}

static void result_write(const char *path, const struct result *res, const void *matrix)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0666);

	if (fd < 0)
		die("cannot write %s: %s", path, strerror(errno));
	if (res->matrix_n)
		write_all(fd, matrix, res->matrix_bytes, RESULT_MATRIX, path);
	write_all(fd, res, sizeof(*res), 0, path);
	if ((fsync(fd) && errno != EINVAL) || close(fd))
		die("cannot write %s: %s", path, strerror(errno));
}

static int result_check(const char *path, const char *data, const char *png)
{
	struct result res;
	void *matrix = NULL;
	struct digits d;
	int fd = open(path, O_RDONLY), ret = 0;

	if (fd < 0)
		die("cannot read %s: %s", path, strerror(errno));
	if (pread(fd, &res, sizeof(res), 0) != (ssize_t)sizeof(res) || res.magic != RESULT_MAGIC)
		die("%s holds no result: the run in the machine did not get that far", path);
	if (res.matrix_n) {
		if (res.matrix_n > 32768 ||
		    res.matrix_bytes !=
			    spyregen_bytes(SPYRE_SEN169_FP16, res.matrix_n, res.matrix_n))
			die("%s is damaged", path);
		matrix = malloc(res.matrix_bytes);
		if (!matrix ||
		    pread(fd, matrix, res.matrix_bytes, RESULT_MATRIX) !=
			    (ssize_t)res.matrix_bytes ||
		    result_hash(matrix, res.matrix_bytes) != res.hash)
			die("%s is damaged", path);
		printf("DL16 product of two %u x %u matrices on the card\n\n", res.matrix_n,
		       res.matrix_n);
		ret = product_check(&res, matrix);
		free(matrix);
	}
	close(fd);
	if (png) {
		digits_load(&d, data);
		if (res.pictures > d.count - d.count / 2)
			die("%s is of other pictures than %s", path, data);
		picture_write(png, &d, d.count / 2, res.pictures, res.said);
		digits_free(&d);
		printf("\n  picture: %s\n", png);
	}
	return ret;
}

static void usage(FILE *f)
{
	fputs("usage: spyre-demo [OPTIONS] DIGITS.csv.gz NETWORK\n"
	      "       spyre-demo --check FILE [--png FILE] DIGITS.csv.gz\n"
	      "Recognises handwritten digits on the card and multiplies two matrices.\n"
	      "\n"
	      "      --matmul N     size of the product (default 2048, 0: none)\n"
	      "      --result FILE  leave the product's check to the host: write what --check\n"
	      "                     reads to FILE (a file or a block device)\n"
	      "      --check FILE   recompute the product and compare it\n"
	      "      --png FILE     all pictures with what the card said of them\n"
	      "      --backend NAME drm or model (default: SPYRERT_BACKEND, or drm)\n"
	      "  -h, --help         this text\n"
	      "\n"
	      "Exit status: 0 all as it should be, 1 not, 2 wrong usage.\n", f);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "matmul", required_argument, NULL, 'm' },
		{ "result", required_argument, NULL, 'r' },
		{ "check", required_argument, NULL, 'c' },
		{ "png", required_argument, NULL, 'p' },
		{ "backend", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	const char *result = NULL, *check = NULL, *png = NULL, *backend = NULL;
	static struct result res = { .magic = RESULT_MAGIC };
	struct spyrert_device_props props;
	unsigned long n = 2048;
	struct spyrert_device *dev;
	struct spyrert *lib;
	void *matrix = NULL;
	struct digits d;
	struct net net;
	int c, ret;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			n = args_number("--matmul", optarg, 0, 16384);
			break;
		case 'r':
			result = optarg;
			break;
		case 'c':
			check = optarg;
			break;
		case 'p':
			png = optarg;
			break;
		case 'b':
			backend = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (argc - optind != (check ? 1 : 2))
		args_quit(2, "%s; see --help",
			  optind == argc      ? "DIGITS.csv.gz is missing" :
			  check               ? "--check takes DIGITS.csv.gz alone" :
			  optind + 1 == argc  ? "NETWORK, the file of spyre-train, is missing" :
						"only DIGITS.csv.gz and NETWORK can be given");
	if (check)
		return result_check(check, argv[optind], png);

	digits_load(&d, argv[optind]);
	net_load(&net, argv[optind + 1]);
	CHECK(spyrert_init(backend, &lib));
	CHECK(spyrert_device_open(lib, 0, &dev));
	CHECK(spyrert_device_get_props(dev, &props, sizeof(props)));
	ret = recognise(dev, &props, &d, &net, &res);
	if (n)
		matrix = product(dev, &props, (uint32_t)n, &res);
	if (result) {
		result_write(result, &res, matrix);
	} else if (n) {
		printf("DL16 product of two %lu x %lu matrices on the card\n\n", n, n);
		ret |= product_check(&res, matrix);
	}
	if (png && !result)
		picture_write(png, &d, d.count / 2, res.pictures, res.said);
	free(matrix);
	CHECK(spyrert_device_close(dev));
	CHECK(spyrert_exit(lib));
	net_free(&net);
	digits_free(&d);
	return ret;
}
