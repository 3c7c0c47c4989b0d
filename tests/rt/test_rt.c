// SPDX-License-Identifier: MIT
/*
 * libspyrert as a user sees it, on whatever backend SPYRERT_BACKEND names: the same program runs in
 * process on the card model and in the machine on the kernel driver.
 *
 * test_rt [PATTERN] runs the tests whose names match.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <spyre/cb.h>
#include <spyre/fw.h>

#include "rttest.h"
#include "spyregen.h"

static struct spyrert *lib;
static struct spyrert_device *dev;

/* What the process had before the library was there. */
static struct sigaction at_start[NSIG];
static sigset_t mask_at_start;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* What a test leaves behind is what it found. */
struct level {
	uint64_t tensor, pinned, program;
};

static struct level level(void)
{
	struct spyrert_memory_info i;

	OK(spyrert_memory_get_info(dev, &i, sizeof(i)));
	return (struct level){ i.tensor.allocated, i.pinned.allocations, i.program.allocated };
}

/* --- Programs ------------------------------------------------------------------------------- */

static struct spyrert_program *load_job(struct spyreprog_job *job)
{
	struct spyrert_program *p;
	void *data;
	size_t n;

	assert_non_null(job);
	if (spyreprog_job_finish(job, &data, &n))
		fail_msg("%s", spyreprog_job_error(job));
	spyreprog_job_free(job);
	OK(spyrert_program_load_binary(dev, data, n, &p));
	free(data);
	return p;
}

/* out = a + b on m x n fp32. */
static struct spyrert_program *load_add(uint32_t m, uint32_t n)
{
	struct spyregen_elementwise ew = {
		.op = SPYREGEN_ADD, .m = m, .n = n, .in = SPYRE_IEEE_FP32, .out = SPYRE_IEEE_FP32,
	};
	char err[256];
	struct spyreprog_job *job = spyregen_elementwise(&ew, err);

	if (!job)
		fail_msg("%s", err);
	return load_job(job);
}

static struct spyrert_program *load_deadlock(void)
{
	struct spyreprog_job *job = spyreprog_job_new();
	unsigned int core;
	int p = spyreprog_job_program(job, SPYRE_UNIT_L3LU);

	sp_wait(job, p, 5, 1);
	for (core = 0; core < 7; core++)
		spyreprog_job_unit(job, core, SPYRE_UNIT_L3LU, 0, p);
	return load_job(job);
}

static struct spyrert_program *load_endless(void)
{
	struct spyreprog_job *job = spyreprog_job_new();
	int p = spyreprog_job_program(job, SPYRE_UNIT_L3LU), i;

	spyreprog_job_watchdog(job, 1000000);
	for (i = 0; i < 3; i++)
		sp_loop(job, p, 100000);
	sp_addimm(job, p, SPYRE_LAR0, 128);
	for (i = 0; i < 3; i++)
		sp_end(job, p);
	spyreprog_job_unit(job, 0, SPYRE_UNIT_L3LU, 0, p);
	return load_job(job);
}

/* Loads one stick from symbol 0. */
static struct spyrert_program *load_toucher(void)
{
	struct spyreprog_job *job = spyreprog_job_new();
	int p = spyreprog_job_program(job, SPYRE_UNIT_L3LU), u;

	sp_l3(job, p, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 1, 0, 0, 0);
	u = spyreprog_job_unit(job, 3, SPYRE_UNIT_L3LU, 0, p);
	spyreprog_job_init(job, u, SPYRE_EAR0, 0, 0);
	return load_job(job);
}

/* --- Library and devices ---------------------------------------------------------------------- */

static void library(void **state)
{
	struct spyrert *other;

	(void)state;
	assert_int_equal(spyrert_version() >> 16, SPYRERT_VERSION_MAJOR);
	FAILS(spyrert_init("cuda", &other), SPYRERT_ERROR_INVALID_ARGUMENT, "'cuda'");
	FAILS(spyrert_init(NULL, NULL), SPYRERT_ERROR_INVALID_ARGUMENT, "NULL");
	assert_int_equal(spyrert_last_status(), SPYRERT_ERROR_INVALID_ARGUMENT);
	FAILS(spyrert_exit(lib), SPYRERT_ERROR_BUSY, "still open");
	assert_string_equal(spyrert_status_name(SPYRERT_ERROR_DEADLOCK), "SPYRERT_ERROR_DEADLOCK");
	assert_string_equal(spyrert_status_name(9999), "unknown status");
	OK(spyrert_exit(NULL));
	OK(spyrert_init(NULL, &other));
	OK(spyrert_exit(other));
}

/* Functions that return no status say what was wrong too. */
static void null_handles(void **state)
{
	char line[64];

	(void)state;
	assert_null(spyrert_backend_name(NULL));
	assert_string_equal(spyrert_last_error(), "spyrert_backend_name: lib is NULL");
	assert_null(spyrert_stream_device(NULL));
	assert_string_equal(spyrert_last_error(), "spyrert_stream_device: stream is NULL");
	assert_int_equal(spyrert_stream_id(NULL), UINT32_MAX);
	assert_string_equal(spyrert_last_error(), "spyrert_stream_id: stream is NULL");
	assert_int_equal(spyrert_ras_format(NULL, line, sizeof(line)), -1);
	assert_string_equal(spyrert_last_error(), "spyrert_ras_format: NULL argument");
	assert_int_equal(spyrert_last_status(), SPYRERT_ERROR_INVALID_ARGUMENT);
}

/* A number of the card's own, here a temperature, is no program's error. */
static void ras_of_the_card(void **state)
{
	struct spyrert_ras r = { .err_code = 111902, .err_core = 0xffff, .queue = UINT32_MAX };
	char line[1024];

	(void)state;
	assert_true(spyrert_ras_format(&r, line, sizeof(line)) < (int)sizeof(line));
	assert_null(strstr(line, "program_error"));
	r.card_status = SPYRE_ERR_PROGRAM;
	assert_true(spyrert_ras_format(&r, line, sizeof(line)) < (int)sizeof(line));
	assert_non_null(strstr(line, "program_error"));
}

/* What spyrert_init() prints to stderr with SPYRERT_LOG=value. */
static const char *log_of(const char *value)
{
	static char text[4096];
	struct spyrert *l;
	int fd = dup(STDERR_FILENO);
	FILE *f = tmpfile();
	size_t n;

	assert_true(fd >= 0 && f);
	setenv("SPYRERT_LOG", value, 1);
	dup2(fileno(f), STDERR_FILENO);
	OK(spyrert_init(NULL, &l));
	dup2(fd, STDERR_FILENO);
	close(fd);
	unsetenv("SPYRERT_LOG");
	OK(spyrert_exit(l));
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static void log_words(void **state)
{
	(void)state;
	assert_string_equal(log_of("error,,mem"), "");
	assert_string_equal(log_of("error,ioctls,foo"),
			    "spyrert: SPYRERT_LOG: 'ioctls' is none of ioctl, mem, stream, program, "
			    "error, all\n");
}

static int count_with(const char *name, const char *value)
{
	struct spyrert *l;
	int n;

	setenv(name, value, 1);
	OK(spyrert_init(NULL, &l));
	unsetenv(name);
	OK(spyrert_device_count(l, &n));
	OK(spyrert_exit(l));
	return n;
}

static void enumeration(void **state)
{
	struct spyrert_device_info info;
	struct spyrert_device *d;
	enum spyrert_link link;
	struct spyrert *l;
	int n;

	(void)state;
	OK(spyrert_device_count(lib, &n));
	assert_true(n >= 1);
	OK(spyrert_device_get_info(lib, 0, &info, sizeof(info)));
	assert_string_not_equal(info.name, "");
	FAILS(spyrert_device_get_info(lib, n, &info, sizeof(info)), SPYRERT_ERROR_NO_DEVICE,
	      "there is no card");
	FAILS(spyrert_device_get_info(lib, -1, &info, sizeof(info)), SPYRERT_ERROR_NO_DEVICE, "-1");
	FAILS(spyrert_device_open(lib, 99, &d), SPYRERT_ERROR_NO_DEVICE, "99");
	OK(spyrert_device_topology(lib, 0, 0, &link));
	assert_int_equal(link, SPYRERT_LINK_SELF);
	/* Duplicates and unknown numbers are dropped; SPYRE_DEVICES wins. */
	assert_int_equal(count_with("SPYRE_DEVICES", "0,0,77,x"), 1);
	assert_int_equal(count_with("SPYRE_DEVICES", "77"), 0);
	assert_int_equal(count_with("AIU_WORLD_SIZE", "1"), 1);
	assert_int_equal(count_with("AIU_WORLD_SIZE", "1000"), n);
	setenv("AIU_WORLD_SIZE", "1", 1);
	assert_int_equal(count_with("SPYRE_DEVICES", "0"), 1);
	setenv("AIU_WORLD_SIZE", "0", 1);
	FAILS(spyrert_init(NULL, &l), SPYRERT_ERROR_INVALID_ARGUMENT, "AIU_WORLD_SIZE");
	unsetenv("AIU_WORLD_SIZE");
	/* None shown: opening says what to look at. */
	setenv("SPYRE_DEVICES", "77", 1);
	OK(spyrert_init(NULL, &l));
	unsetenv("SPYRE_DEVICES");
	FAILS(spyrert_device_open(l, 0, &d), SPYRERT_ERROR_NO_DEVICE, "SPYRE_DEVICES");
	OK(spyrert_exit(l));
}

static void properties(void **state)
{
	struct spyrert_device_props p;
	struct spyrert_device_health h;
	struct spyrert_device_usage u;
	uint8_t small[8], big[sizeof(p) + 64];
	spyrert_ptr d;

	(void)state;
	/* A context comes with the first thing that needs one. */
	OK(spyrert_malloc(dev, 128, &d));
	OK(spyrert_free(dev, d));
	OK(spyrert_device_get_props(dev, &p, sizeof(p)));
	assert_int_equal(p.cores, __builtin_popcount(p.core_mask));
	assert_true(p.cores > 0 && p.cores <= 32);
	assert_int_equal(p.hw_version >> 16, 2);
	assert_int_equal(p.soc_hz, 560000000);
	assert_true(p.dmi_engines >= 1 && p.dmo_engines >= 1 && p.dmx_engines >= 1);
	assert_int_equal(p.max_symbols, 256);
	assert_true(strlen(p.fw_version) > 0);
	/* A caller compiled against less, and one compiled against more. */
	OK(spyrert_device_get_props(dev, (void *)small, sizeof(small)));
	same_bytes(&p, small, sizeof(small));
	memset(big, 0xee, sizeof(big));
	OK(spyrert_device_get_props(dev, (void *)big, sizeof(big)));
	same_bytes(&p, big, sizeof(p));
	assert_int_equal(big[sizeof(p)], 0);
	FAILS(spyrert_device_get_props(dev, &p, 0), SPYRERT_ERROR_INVALID_ARGUMENT, "size");
	OK(spyrert_device_get_health(dev, &h, sizeof(h)));
	assert_int_equal(h.state, 4);
	assert_true(h.temp_mc > 0 && h.temp_mc < 120000);
	assert_true(h.contexts >= 1);
	OK(spyrert_device_get_usage(dev, &u, sizeof(u)));
}

/* --- Memory ----------------------------------------------------------------------------------- */

static void memory(void **state)
{
	struct spyrert_memory_info a, b;
	struct spyrert_pointer_info pi;
	spyrert_ptr p[64], q;
	int i, k;

	(void)state;
	OK(spyrert_memory_get_info(dev, &a, sizeof(a)));
	OK(spyrert_malloc(dev, 0, &q));
	assert_int_equal(q, 0);
	OK(spyrert_free(dev, 0));
	for (i = 0; i < 64; i++) {
		OK(spyrert_malloc(dev, 1 + i * 777, &p[i]));
		assert_int_equal(p[i] % 128, 0);
		assert_true(p[i] != 0);
		for (k = 0; k < i; k++)
			assert_true(p[k] + 1 + k * 777 <= p[i] || p[i] + 1 + i * 777 <= p[k]);
	}
	OK(spyrert_memory_get_info(dev, &b, sizeof(b)));
	assert_int_equal(b.tensor.allocations, a.tensor.allocations + 64);
	assert_int_equal(b.tensor.allocated % 128, 0);
	assert_true(b.tensor.reserved >= b.tensor.allocated);
	assert_true(b.total >= b.card_used);
	OK(spyrert_pointer_query(dev, p[5] + 130, &pi, sizeof(pi)));
	assert_int_equal(pi.kind, SPYRERT_MEMORY_DEVICE);
	assert_int_equal(pi.base, p[5]);
	assert_int_equal(pi.offset, 130);
	assert_int_equal(pi.bytes, (1 + 5 * 777 + 127) / 128 * 128);
	assert_int_equal(pi.segment, p[5] >> 34);
	OK(spyrert_pointer_query(dev, 0x1000000000ull, &pi, sizeof(pi)));
	assert_int_equal(pi.kind, SPYRERT_MEMORY_UNKNOWN);
	FAILS(spyrert_free(dev, p[7] + 128), SPYRERT_ERROR_INVALID_ARGUMENT, "lies inside");
	OK(spyrert_free(dev, p[7]));
	FAILS(spyrert_free(dev, p[7]), SPYRERT_ERROR_INVALID_ARGUMENT, "");
	OK(spyrert_malloc(dev, 1 + 7 * 777, &p[7]));
	for (i = 63; i >= 0; i -= 2)
		OK(spyrert_free(dev, p[i]));
	for (i = 0; i < 64; i += 2)
		OK(spyrert_free(dev, p[i]));
	OK(spyrert_memory_get_info(dev, &b, sizeof(b)));
	assert_int_equal(b.tensor.allocated, a.tensor.allocated);
	assert_true(b.tensor.allocated_peak > b.tensor.allocated);
	OK(spyrert_memory_reset_peak(dev));
	OK(spyrert_memory_set_policy(dev, SPYRERT_FIRST_FIT));
	OK(spyrert_malloc(dev, 4096, &q));
	OK(spyrert_free(dev, q));
	OK(spyrert_memory_set_policy(dev, SPYRERT_BEST_FIT));
	FAILS(spyrert_memory_set_policy(dev, 5), SPYRERT_ERROR_INVALID_ARGUMENT, "5");
	OK(spyrert_empty_cache(dev));
	OK(spyrert_memory_get_info(dev, &b, sizeof(b)));
	if (!a.tensor.allocated)
		assert_int_equal(b.tensor.reserved, 0);
	assert_int_equal(b.tensor.allocated_peak, b.tensor.allocated + 4096);
}

static void out_of_memory(void **state)
{
	struct spyrert_memory_info info;
	spyrert_ptr p, q[64];
	int n = 0;

	(void)state;
	OK(spyrert_empty_cache(dev));
	OK(spyrert_memory_get_info(dev, &info, sizeof(info)));
	FAILS(spyrert_malloc(dev, 17ull << 30, &p), SPYRERT_ERROR_INVALID_ARGUMENT, "16 GiB");
	while (n < 64 && spyrert_malloc(dev, 1ull << 30, &q[n]) == SPYRERT_SUCCESS)
		n++;
	assert_true(n >= 1 && n < 64);
	FAILS(spyrert_malloc(dev, 1ull << 30, &p), SPYRERT_ERROR_OUT_OF_MEMORY,
	      "requested 1.00 GiB");
	assert_non_null(strstr(spyrert_last_error(), "capacity"));
	assert_non_null(strstr(spyrert_last_error(), "used"));
	assert_non_null(strstr(spyrert_last_error(), "largest free"));
	OK(spyrert_memory_get_info(dev, &info, sizeof(info)));
	assert_true(info.tensor.ooms >= 1);
	/* What it says would fit does fit. */
	if (info.largest_free >= 1 << 20) {
		OK(spyrert_malloc(dev, info.largest_free - (4 << 20), &p));
		OK(spyrert_free(dev, p));
	}
	while (n)
		OK(spyrert_free(dev, q[--n]));
	OK(spyrert_empty_cache(dev));
	OK(spyrert_malloc(dev, 1ull << 30, &p));
	OK(spyrert_free(dev, p));
	OK(spyrert_empty_cache(dev));
}

static void pinned(void **state)
{
	struct spyrert_pointer_info pi;
	struct level before = level();
	int local;
	void *p, *q;

	(void)state;
	OK(spyrert_host_alloc(dev, 1000, &p));
	memset(p, 1, 1000);
	OK(spyrert_host_alloc(dev, 5 << 20, &q));
	memset(q, 2, 5 << 20);
	OK(spyrert_host_pointer_query(dev, (char *)q + 12345, &pi, sizeof(pi)));
	assert_int_equal(pi.kind, SPYRERT_MEMORY_PINNED);
	assert_int_equal(pi.base, (uintptr_t)q);
	assert_int_equal(pi.offset, 12345);
	assert_true(pi.hmva != 0);
	OK(spyrert_host_pointer_query(dev, &local, &pi, sizeof(pi)));
	assert_int_equal(pi.kind, SPYRERT_MEMORY_UNKNOWN);
	FAILS(spyrert_host_free(dev, (char *)p + 128), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "not the start");
	FAILS(spyrert_host_free(dev, &local), SPYRERT_ERROR_INVALID_ARGUMENT, "not the start");
	FAILS(spyrert_host_alloc(dev, 0, &p), SPYRERT_ERROR_INVALID_ARGUMENT, "size is 0");
	OK(spyrert_host_free(dev, p));
	OK(spyrert_host_free(dev, q));
	OK(spyrert_host_free(dev, NULL));
	assert_int_equal(level().pinned, before.pinned);
}

/* --- Copies ----------------------------------------------------------------------------------- */

static void copies(void **state)
{
	static const size_t sizes[] = { 1,
					127,
					128,
					129,
					4096,
					65537,
					(1 << 20) - 1,
					1 << 20,
					(1 << 20) + 1,
					9 << 20,
					(20 << 20) + 77 };
	size_t max = 21 << 20, i;
	uint8_t *a, *b;
	void *pa, *pb;
	spyrert_ptr d, e;

	(void)state;
	a = malloc(max);
	b = malloc(max);
	OK(spyrert_malloc(dev, max, &d));
	OK(spyrert_malloc(dev, max, &e));
	OK(spyrert_host_alloc(dev, max, &pa));
	OK(spyrert_host_alloc(dev, max, &pb));
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fill_bytes(a, sizes[i], (uint32_t)i + 1);
		memset(b, 0xcc, max);
		OK(spyrert_memcpy_h2d(dev, d, a, sizes[i]));
		OK(spyrert_memcpy_d2h(dev, b, d, sizes[i]));
		same_bytes(a, b, sizes[i]);
		assert_int_equal(b[sizes[i]], 0xcc);
		/* Pinned, through the other buffer. */
		memcpy(pa, a, sizes[i]);
		memset(pb, 0, max);
		OK(spyrert_fill(dev, d, 0, 1, sizes[i]));
		OK(spyrert_memcpy_h2d(dev, d, pa, sizes[i]));
		OK(spyrert_memcpy_d2d(dev, e, d, sizes[i]));
		OK(spyrert_memcpy_d2h(dev, pb, e, sizes[i]));
		same_bytes(a, pb, sizes[i]);
		assert_int_equal(((uint8_t *)pb)[sizes[i]], 0);
	}
	OK(spyrert_memcpy_h2d(dev, d, a, 0));
	FAILS(spyrert_memcpy_h2d(dev, d + 4, a, 16), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "not a multiple of 128");
	FAILS(spyrert_memcpy_h2d(dev, d, a, max + 4096), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "leaves the allocation");
	FAILS(spyrert_memcpy_d2h(dev, b, 0x800000000ull, 16), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "not in device memory");
	FAILS(spyrert_memcpy_h2d(dev, d, NULL, 16), SPYRERT_ERROR_INVALID_ARGUMENT, "NULL");
	FAILS(spyrert_memcpy_d2d(dev, d, d + 128, 4096), SPYRERT_ERROR_INVALID_ARGUMENT, "overlap");
	OK(spyrert_host_free(dev, pa));
	OK(spyrert_host_free(dev, pb));
	OK(spyrert_free(dev, d));
	OK(spyrert_free(dev, e));
	free(a);
	free(b);
}

static void fills(void **state)
{
	static const struct {
		uint64_t pattern;
		unsigned int width;
		size_t bytes;
	} cases[] = {
		{ 0xab, 1, 1 }, { 0x1234, 2, 130 }, { 0xdeadbeef, 4, 4096 + 60 },
		{ 0x0123456789abcdefull, 8, 65536 + 64 }, { 0x5a, 1, 127 },
	};
	uint8_t b[70000], want[70000];
	spyrert_ptr d;
	size_t i, k;

	(void)state;
	OK(spyrert_malloc(dev, sizeof(b), &d));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		OK(spyrert_fill(dev, d, 0xee, 1, sizeof(b)));
		OK(spyrert_fill(dev, d, cases[i].pattern, cases[i].width, cases[i].bytes));
		OK(spyrert_memcpy_d2h(dev, b, d, sizeof(b)));
		memset(want, 0xee, sizeof(want));
		for (k = 0; k < cases[i].bytes; k++)
			want[k] = (uint8_t)(cases[i].pattern >> 8 * (k % cases[i].width));
		same_bytes(want, b, sizeof(b));
	}
	FAILS(spyrert_fill(dev, d, 0, 3, 9), SPYRERT_ERROR_INVALID_ARGUMENT, "1, 2, 4 or 8");
	FAILS(spyrert_fill(dev, d, 0, 4, 9), SPYRERT_ERROR_INVALID_ARGUMENT, "not a multiple");
	FAILS(spyrert_fill(dev, d, 0, 4, 1 << 20), SPYRERT_ERROR_INVALID_ARGUMENT, "leaves");
	OK(spyrert_free(dev, d));
}

/* ThreadSanitizer looks at every byte of every copy. */
#ifdef __SANITIZE_THREAD__
#define COPY_ROUNDS	5
#else
#define COPY_ROUNDS	60
#endif

static uint32_t rnd(uint32_t *s)
{
	*s = *s * 1664525 + 1013904223;
	return *s >> 8;
}

/* Copies the same way on the host. */
static void reference(uint8_t *dst, const uint8_t *src, const struct spyrert_copy *c)
{
	uint64_t n[4] = { 1, 1, 1, 1 }, i1, i2, i3;
	uint32_t k;

	for (k = 0; k < c->dims; k++)
		n[k] = c->extent[k];
	for (i3 = 0; i3 < n[3]; i3++)
		for (i2 = 0; i2 < n[2]; i2++)
			for (i1 = 0; i1 < n[1]; i1++) {
				int64_t d = 0, s = 0;

				if (c->dims > 1) {
					d += (int64_t)i1 * c->dst_stride[1];
					s += (int64_t)i1 * c->src_stride[1];
				}
				if (c->dims > 2) {
					d += (int64_t)i2 * c->dst_stride[2];
					s += (int64_t)i2 * c->src_stride[2];
				}
				if (c->dims > 3) {
					d += (int64_t)i3 * c->dst_stride[3];
					s += (int64_t)i3 * c->src_stride[3];
				}
				memcpy(dst + d, src + s, n[0]);
			}
}

/* Random shapes, all three directions, pinned and not, against the host's own loops. */
static void copies_4d(void **state)
{
	enum { SIZE = 6 << 20 };
	uint8_t *host, *back, *want;
	uint32_t seed = 4711, round, k;
	void *pin;
	spyrert_ptr d, e;

	(void)state;
	host = malloc(SIZE);
	back = malloc(SIZE);
	want = malloc(SIZE);
	OK(spyrert_host_alloc(dev, SIZE, &pin));
	OK(spyrert_malloc(dev, SIZE, &d));
	OK(spyrert_malloc(dev, SIZE, &e));
	fill_bytes(host, SIZE, 3);
	memcpy(pin, host, SIZE);
	for (round = 0; round < COPY_ROUNDS; round++) {
		struct spyrert_copy c = { .dims = 1 + rnd(&seed) % 4 };
		uint64_t span_d, span_s, off_h;
		bool usepin = rnd(&seed) % 2;
		uint8_t *src = usepin ? pin : host;

		c.extent[0] = 1 + rnd(&seed) % (round % 7 ? 500 : 200000);
		span_d = span_s = c.extent[0];
		for (k = 1; k < c.dims; k++) {
			c.extent[k] = 1 + rnd(&seed) % (k == 1 ? 12 : 4);
			/* Strides of any size on both sides; sometimes the dense one. */
			c.dst_stride[k] =
				(int64_t)(span_d + (rnd(&seed) % 3 ? rnd(&seed) % 300 : 0));
			c.src_stride[k] =
				(int64_t)(span_s + (rnd(&seed) % 3 ? rnd(&seed) % 300 : 0));
			span_d = (uint64_t)c.dst_stride[k] * (c.extent[k] - 1) + span_d;
			span_s = (uint64_t)c.src_stride[k] * (c.extent[k] - 1) + span_s;
		}
		if (span_d > SIZE / 2 || span_s > SIZE / 2)
			continue;
		off_h = rnd(&seed) % (SIZE / 2);
		OK(spyrert_fill(dev, d, 0, 1, SIZE));
		memset(want, 0, SIZE);
		/* To the card. */
		c.direction = SPYRERT_H2D;
		c.src_host = src + off_h;
		c.dst_dev = d + 128 * (round % 5);
		OK(spyrert_copy(dev, &c));
		reference(want + 128 * (round % 5), src + off_h, &c);
		OK(spyrert_memcpy_d2h(dev, back, d, SIZE));
		same_bytes(want, back, SIZE);
		/* Inside it, from what is dense to what is not. */
		c.direction = SPYRERT_D2D;
		OK(spyrert_memcpy_h2d(dev, e, host, SIZE));
		OK(spyrert_fill(dev, d, 0, 1, SIZE));
		c.src_dev = e;
		c.dst_dev = d;
		OK(spyrert_copy(dev, &c));
		memset(want, 0, SIZE);
		reference(want, host, &c);
		OK(spyrert_memcpy_d2h(dev, back, d, SIZE));
		same_bytes(want, back, SIZE);
		/* And back, with holes on the host that stay as they were. */
		c.direction = SPYRERT_D2H;
		c.src_dev = e;
		memset(back, 0x77, SIZE);
		memset(want, 0x77, SIZE);
		if (usepin)
			memset(pin, 0x77, SIZE);
		c.dst_host = (usepin ? (uint8_t *)pin : back) + off_h;
		OK(spyrert_copy(dev, &c));
		reference(want + off_h, host, &c);
		same_bytes(want, usepin ? pin : back, SIZE);
		memcpy(pin, host, SIZE);
	}
	/* Broadcast, and rows backwards. */
	{
		struct spyrert_copy c = {
			.dims = 2, .direction = SPYRERT_H2D, .dst_dev = d, .src_host = host + 1000,
			.extent = { 128, 50 }, .dst_stride = { 0, 128 }, .src_stride = { 0, 0 },
		};

		OK(spyrert_copy(dev, &c));
		OK(spyrert_memcpy_d2h(dev, back, d, 6400));
		for (k = 0; k < 50; k++)
			same_bytes(host + 1000, back + k * 128, 128);
		c.src_host = host + 128 * 49;
		c.src_stride[1] = -128;
		OK(spyrert_copy(dev, &c));
		OK(spyrert_memcpy_d2h(dev, back, d, 6400));
		for (k = 0; k < 50; k++)
			same_bytes(host + 128 * (49 - k), back + k * 128, 128);
		c.dims = 5;
		FAILS(spyrert_copy(dev, &c), SPYRERT_ERROR_INVALID_ARGUMENT, "1 to 4");
		c.dims = 2;
		c.direction = 7;
		FAILS(spyrert_copy(dev, &c), SPYRERT_ERROR_INVALID_ARGUMENT, "direction");
		c.direction = SPYRERT_H2D;
		c.extent[1] = UINT64_MAX / 64;
		FAILS(spyrert_copy(dev, &c), SPYRERT_ERROR_INVALID_ARGUMENT, "too large");
		c.extent[1] = 0;
		OK(spyrert_copy(dev, &c));
	}
	OK(spyrert_free(dev, d));
	OK(spyrert_free(dev, e));
	OK(spyrert_host_free(dev, pin));
	free(host);
	free(back);
	free(want);
}

/* --- Programs --------------------------------------------------------------------------------- */

static void launch(void **state)
{
	enum { M = 128, N = 256 };
	static float a[M * N], b[M * N], c[M * N];
	struct spyrert_program_info info;
	struct spyrert_program *p, *q;
	struct spyrert_stream *st;
	struct level before = level();
	spyrert_ptr d[3];
	uint64_t sym[3];
	int i;

	(void)state;
	p = load_add(M, N);
	q = load_add(M, N);
	OK(spyrert_program_get_info(p, &info, sizeof(info)));
	assert_ptr_equal(p, q);
	assert_int_equal(info.references, 2);
	assert_int_equal(info.symbols, 3);
	assert_int_equal(info.address >> 34, 7);
	assert_int_equal(info.address % 128, 0);
	assert_int_equal(info.computes, 1);
	OK(spyrert_program_unload(q));
	OK(spyrert_stream_create(dev, NULL, &st));
	for (i = 0; i < 3; i++) {
		OK(spyrert_malloc(dev, sizeof(a), &d[i]));
		sym[i] = d[i];
	}
	/* Elementwise on any layout: the bytes are taken as they lie. */
	for (i = 0; i < M * N; i++) {
		a[i] = (float)i;
		b[i] = 0.5f * (float)(i % 1000);
	}
	OK(spyrert_memcpy_h2d_async(st, d[0], a, sizeof(a)));
	OK(spyrert_memcpy_h2d_async(st, d[1], b, sizeof(b)));
	OK(spyrert_launch(st, p, sym, 3, 0, 0));
	OK(spyrert_launch(st, p, sym, 3, info.core_mask, 0));
	OK(spyrert_memcpy_d2h_async(st, c, d[2], sizeof(c)));
	OK(spyrert_stream_synchronize(st, LONG));
	for (i = 0; i < M * N; i++)
		if (c[i] != a[i] + b[i])
			fail_msg("element %d is %g instead of %g", i, c[i], a[i] + b[i]);
	FAILS(spyrert_launch(st, p, sym, 2, 0, 0), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "takes 3 symbol values");
	FAILS(spyrert_launch(st, p, NULL, 3, 0, 0), SPYRERT_ERROR_INVALID_ARGUMENT, "takes 3");
	FAILS(spyrert_launch(st, p, sym, 3, ~info.core_mask | 1u << 31, 0),
	      SPYRERT_ERROR_INVALID_ARGUMENT, "built for cores");
	FAILS(spyrert_launch(st, p, sym, 3, 0, 64), SPYRERT_ERROR_INVALID_ARGUMENT, "flags");
	FAILS(spyrert_launch(st, NULL, sym, 3, 0, 0), SPYRERT_ERROR_INVALID_ARGUMENT, "NULL");
	/* Unloading while launches are under way. */
	for (i = 0; i < 20; i++)
		OK(spyrert_launch(st, p, sym, 3, 0, 0));
	OK(spyrert_program_unload(p));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_stream_destroy(st));
	for (i = 0; i < 3; i++)
		OK(spyrert_free(dev, d[i]));
	assert_int_equal(level().program, before.program);
	assert_int_equal(level().tensor, before.tensor);
	FAILS(spyrert_program_load_binary(dev, a, 100, &p), SPYRERT_ERROR_BAD_SPYRECODE,
	      "multiple of 128");
	FAILS(spyrert_program_load_binary(dev, a, 1280, &p), SPYRERT_ERROR_BAD_SPYRECODE,
	      "no job binary");
}

/* The public flow: host compute fills the table, a transfer brings it, the device computes. */
static void spyrecode(void **state)
{
	enum { M = 64, N = 64 };
	struct spyregen_elementwise ew = {
		.op = SPYREGEN_ADD, .m = M, .n = N, .in = SPYRE_IEEE_FP32, .out = SPYRE_IEEE_FP32,
	};
	static const struct spyreprog_symbol symbols[] = {
		{ .name = "a", .argument = 0 },
		{ .name = "b", .argument = 1 },
		{ .name = "out", .argument = 2 },
	};
	static const struct spyreprog_meta meta = { .symbols = symbols, .nsymbols = 3 };
	static float a[M * N], b[M * N], c[M * N];
	char dir[] = "/tmp/spyrert-test.XXXXXX", cmd[128], err[256], path[128];
	struct spyrert_program_info info;
	struct spyrert_program *p, *q;
	struct spyrert_stream *st[2];
	struct spyreprog_err perr;
	struct spyreprog_job *job;
	spyrert_ptr d[3];
	uint64_t sym[3];
	void *bin;
	size_t n;
	int i, round;

	(void)state;
	job = spyregen_elementwise(&ew, err);
	assert_non_null(job);
	assert_int_equal(spyreprog_job_finish(job, &bin, &n), 0);
	spyreprog_job_free(job);
	assert_non_null(mkdtemp(dir));
	if (spyreprog_write_spyrecode(dir, bin, n, &meta, &perr))
		fail_msg("%s", perr.text);
	free(bin);
	FAILS(spyrert_program_load(dev, "/nonexistent", &p), SPYRERT_ERROR_BAD_SPYRECODE,
	      "/nonexistent");
	snprintf(path, sizeof(path), "%s/spyrecode.json", dir);
	FAILS(spyrert_program_load(dev, path, &p), SPYRERT_ERROR_BAD_SPYRECODE, "not a directory");
	OK(spyrert_program_load(dev, dir, &p));
	OK(spyrert_program_load(dev, dir, &q));
	assert_ptr_equal(p, q);
	OK(spyrert_program_unload(q));
	OK(spyrert_program_get_info(p, &info, sizeof(info)));
	assert_int_equal(info.symbols, 3);
	for (i = 0; i < 2; i++)
		OK(spyrert_stream_create(dev, NULL, &st[i]));
	for (i = 0; i < 3; i++) {
		OK(spyrert_malloc(dev, sizeof(a), &d[i]));
		sym[i] = d[i];
	}
	for (i = 0; i < M * N; i++) {
		a[i] = (float)i;
		b[i] = 3;
	}
	OK(spyrert_memcpy_h2d(dev, d[0], a, sizeof(a)));
	OK(spyrert_memcpy_h2d(dev, d[1], b, sizeof(b)));
	/* Two streams share the program's memory for symbols: the launches must not mix. */
	for (round = 0; round < 50; round++)
		OK(spyrert_launch(st[round & 1], p, sym, 3, 0, 0));
	for (i = 0; i < 2; i++)
		OK(spyrert_stream_synchronize(st[i], LONG));
	OK(spyrert_memcpy_d2h(dev, c, d[2], sizeof(c)));
	for (i = 0; i < M * N; i++)
		if (c[i] != a[i] + 3)
			fail_msg("element %d is %g instead of %g", i, c[i], a[i] + 3);
	OK(spyrert_program_unload(p));
	for (i = 0; i < 2; i++)
		OK(spyrert_stream_destroy(st[i]));
	for (i = 0; i < 3; i++)
		OK(spyrert_free(dev, d[i]));
	snprintf(path, sizeof(path), "%s/init.bin", dir);
	unlink(path);
	FAILS(spyrert_program_load(dev, dir, &p), SPYRERT_ERROR_BAD_SPYRECODE, "init.bin");
	snprintf(cmd, sizeof(cmd), "%s/spyrecode.json", dir);
	unlink(cmd);
	FAILS(spyrert_program_load(dev, dir, &p), SPYRERT_ERROR_BAD_SPYRECODE, "spyrecode.json");
	rmdir(dir);
}

/* --- Streams, events -------------------------------------------------------------------------- */

static void streams(void **state)
{
	struct spyrert_stream_attr attr = { .priority = SPYRERT_PRIORITY_LOW, .ring_entries = 64 };
	struct spyrert_stream *st, *many[65];
	struct spyrert_device_usage u;
	int i;

	(void)state;
	assert_int_equal(spyrert_stream_id(spyrert_default_stream(dev)), 0);
	assert_ptr_equal(spyrert_stream_device(spyrert_default_stream(dev)), dev);
	FAILS(spyrert_stream_destroy(spyrert_default_stream(dev)), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "default");
	attr.ring_entries = 100;
	FAILS(spyrert_stream_create(dev, &attr, &st), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "power of two");
	attr.ring_entries = 64;
	attr.priority = 9;
	FAILS(spyrert_stream_create(dev, &attr, &st), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "priority is 9");
	attr.priority = SPYRERT_PRIORITY_LOW;
	OK(spyrert_stream_create(dev, &attr, &st));
	OK(spyrert_stream_query(st));
	OK(spyrert_stream_synchronize(st, 0));
	/* Many times the ring. */
	for (i = 0; i < 3000; i++)
		OK(spyrert_stream_nop(st));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_stream_query(st));
	OK(spyrert_stream_destroy(st));
	for (i = 0; i < 65; i++) {
		OK(spyrert_stream_create(dev, NULL, &many[i]));
		OK(spyrert_stream_nop(many[i]));
	}
	OK(spyrert_device_synchronize(dev, LONG));
	for (i = 0; i < 65; i++)
		OK(spyrert_stream_query(many[i]));
	for (i = 0; i < 65; i++)
		OK(spyrert_stream_destroy(many[i]));
	OK(spyrert_device_get_usage(dev, &u, sizeof(u)));
	OK(spyrert_stream_destroy(NULL));
}

static void values(void **state)
{
	struct spyrert_stream *a, *b;
	uint64_t *w, local = 0;
	double t;

	(void)state;
	OK(spyrert_host_alloc(dev, 256, (void **)&w));
	w[0] = w[1] = w[2] = 0;
	OK(spyrert_stream_create(dev, NULL, &a));
	OK(spyrert_stream_create(dev, NULL, &b));
	OK(spyrert_stream_wait_value(a, &w[0], 5));
	OK(spyrert_stream_write_value(a, &w[1], 77));
	OK(spyrert_stream_wait_value(b, &w[1], 77));
	OK(spyrert_stream_write_value(b, &w[2], 99));
	assert_int_equal(spyrert_stream_query(a), SPYRERT_NOT_READY);
	t = now();
	FAILS(spyrert_stream_synchronize(b, 30000000), SPYRERT_ERROR_TIMEOUT, "not done yet");
	assert_true(now() - t >= 0.029);
	OK(spyrert_host_write_value(dev, &w[0], 4));
	assert_int_equal(spyrert_stream_query(b), SPYRERT_NOT_READY);
	OK(spyrert_host_write_value(dev, &w[0], 6));
	OK(spyrert_stream_synchronize(b, LONG));
	OK(spyrert_stream_synchronize(a, LONG));
	assert_int_equal(w[1], 77);
	assert_int_equal(w[2], 99);
	FAILS(spyrert_stream_wait_value(a, &local, 1), SPYRERT_ERROR_INVALID_ARGUMENT, "pinned");
	FAILS(spyrert_stream_wait_value(a, (void *)((char *)w + 4), 1),
	      SPYRERT_ERROR_INVALID_ARGUMENT, "multiple of 8");
	FAILS(spyrert_host_write_value(dev, &local, 1), SPYRERT_ERROR_INVALID_ARGUMENT, "pinned");
	OK(spyrert_stream_destroy(a));
	OK(spyrert_stream_destroy(b));
	OK(spyrert_host_free(dev, w));
}

static void events(void **state)
{
	struct spyrert_event *e, *f, *plain;
	struct spyrert_stream *a, *b, *c;
	uint64_t *w, t0, t1;
	uint8_t x[4096], y[4096];
	spyrert_ptr d;
	double ns;
	int i;

	(void)state;
	OK(spyrert_host_alloc(dev, 256, (void **)&w));
	*w = 0;
	OK(spyrert_malloc(dev, 4096, &d));
	OK(spyrert_event_create(dev, 0, &e));
	OK(spyrert_event_create(dev, 0, &f));
	OK(spyrert_event_create(dev, SPYRERT_EVENT_NO_TIMING, &plain));
	OK(spyrert_stream_create(dev, NULL, &a));
	OK(spyrert_stream_create(dev, NULL, &b));
	OK(spyrert_stream_create(dev, NULL, &c));
	/* Never recorded: reached, and nothing to wait for. */
	OK(spyrert_event_query(e));
	OK(spyrert_event_synchronize(e, 0));
	OK(spyrert_stream_wait_event(b, e));
	FAILS(spyrert_event_timestamp(e, &t0), SPYRERT_ERROR_INVALID_ARGUMENT, "never recorded");
	OK(spyrert_stream_wait_value(a, w, 1));
	OK(spyrert_event_record(e, a));
	OK(spyrert_stream_wait_event(b, e));
	OK(spyrert_event_record(f, b));
	OK(spyrert_stream_wait_event(c, f));
	OK(spyrert_event_record(plain, c));
	assert_int_equal(spyrert_event_query(e), SPYRERT_NOT_READY);
	assert_int_equal(spyrert_event_query(plain), SPYRERT_NOT_READY);
	assert_int_equal(spyrert_event_timestamp(e, &t0), SPYRERT_NOT_READY);
	FAILS(spyrert_event_synchronize(f, 20000000), SPYRERT_ERROR_TIMEOUT, "not reached");
	OK(spyrert_host_write_value(dev, w, 1));
	OK(spyrert_event_synchronize(plain, LONG));
	OK(spyrert_event_query(e));
	OK(spyrert_event_query(f));
	OK(spyrert_event_timestamp(e, &t0));
	OK(spyrert_event_timestamp(f, &t1));
	assert_true(t1 >= t0);
	OK(spyrert_event_elapsed(e, f, &ns));
	assert_true(ns >= 0 && ns < 60e9);
	OK(spyrert_event_elapsed(f, e, &ns));
	assert_true(ns <= 0);
	FAILS(spyrert_event_timestamp(plain, &t0), SPYRERT_ERROR_INVALID_ARGUMENT, "NO_TIMING");
	/* Recorded again on another stream before the first is reached: only the second counts. */
	OK(spyrert_stream_wait_value(a, w, 2));
	OK(spyrert_event_record(e, a));
	OK(spyrert_event_record(e, b));
	OK(spyrert_event_synchronize(e, LONG));
	assert_int_equal(spyrert_stream_query(a), SPYRERT_NOT_READY);
	OK(spyrert_host_write_value(dev, w, 2));
	OK(spyrert_stream_synchronize(a, LONG));
	/* Data produced on one stream and consumed on another, many times over. */
	for (i = 0; i < 100; i++) {
		memset(x, i + 1, sizeof(x));
		OK(spyrert_stream_wait_event(a, f));
		OK(spyrert_memcpy_h2d_async(a, d, x, sizeof(x)));
		OK(spyrert_event_record(e, a));
		OK(spyrert_stream_wait_event(b, e));
		OK(spyrert_memcpy_d2h_async(b, y, d, sizeof(y)));
		OK(spyrert_event_record(f, b));
		same_bytes(x, y, sizeof(x));
	}
	/* An event outlives its stream. */
	OK(spyrert_event_record(e, c));
	OK(spyrert_stream_destroy(c));
	OK(spyrert_event_synchronize(e, LONG));
	OK(spyrert_event_destroy(e));
	OK(spyrert_event_destroy(f));
	OK(spyrert_event_destroy(plain));
	OK(spyrert_event_destroy(NULL));
	OK(spyrert_stream_destroy(a));
	OK(spyrert_stream_destroy(b));
	OK(spyrert_free(dev, d));
	OK(spyrert_host_free(dev, w));
}

static void async_memory(void **state)
{
	struct spyrert_stream *st, *other;
	struct level before = level();
	spyrert_ptr p, q, r;
	uint64_t *w;

	(void)state;
	OK(spyrert_host_alloc(dev, 128, (void **)&w));
	*w = 0;
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_stream_create(dev, NULL, &other));
	OK(spyrert_malloc_async(st, 100000, &p));
	OK(spyrert_stream_wait_value(st, w, 1));
	OK(spyrert_fill_async(st, p, 1, 4, 100000));
	OK(spyrert_free_async(st, p));
	FAILS(spyrert_free(dev, p), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "already by spyrert_free_async");
	FAILS(spyrert_free_async(st, p), SPYRERT_ERROR_INVALID_ARGUMENT, "already");
	/* Not for others yet, at once for the same stream. */
	OK(spyrert_malloc_async(other, 100000, &q));
	assert_int_not_equal(q, p);
	OK(spyrert_malloc_async(st, 100000, &r));
	assert_int_equal(r, p);
	OK(spyrert_free_async(st, r));
	OK(spyrert_free_async(other, q));
	OK(spyrert_host_write_value(dev, w, 1));
	OK(spyrert_device_synchronize(dev, LONG));
	assert_int_equal(level().tensor, before.tensor);
	OK(spyrert_stream_destroy(st));
	OK(spyrert_stream_destroy(other));
	OK(spyrert_host_free(dev, w));
}

struct cb_log {
	pthread_mutex_t lock;
	int calls[64], n;
	enum spyrert_status status[64];
	struct spyrert_stream *st;
	const uint64_t *word;
};

static struct cb_log cb_log = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void on_done(void *arg, enum spyrert_status status)
{
	pthread_mutex_lock(&cb_log.lock);
	cb_log.status[cb_log.n] = status;
	cb_log.calls[cb_log.n++] = (int)(intptr_t)arg;
	pthread_mutex_unlock(&cb_log.lock);
}

static void on_done_slow(void *arg, enum spyrert_status status)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	/* What comes after the callback in the stream has not happened. */
	assert_int_equal(*cb_log.word, 0);
	on_done(arg, status);
}

static void callbacks(void **state)
{
	struct spyrert_stream *st;
	uint64_t *w;
	int i;

	(void)state;
	cb_log.n = 0;
	OK(spyrert_host_alloc(dev, 256, (void **)&w));
	w[0] = w[1] = 0;
	cb_log.word = &w[1];
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_stream_wait_value(st, &w[0], 1));
	OK(spyrert_stream_add_callback(st, on_done_slow, (void *)1));
	OK(spyrert_stream_write_value(st, &w[1], 1));
	for (i = 2; i < 20; i++)
		OK(spyrert_stream_add_callback(st, on_done, (void *)(intptr_t)i));
	assert_int_equal(cb_log.n, 0);
	OK(spyrert_host_write_value(dev, &w[0], 1));
	OK(spyrert_stream_synchronize(st, LONG));
	assert_int_equal(cb_log.n, 19);
	for (i = 0; i < 19; i++) {
		assert_int_equal(cb_log.calls[i], i + 1);
		assert_int_equal(cb_log.status[i], SPYRERT_SUCCESS);
	}
	FAILS(spyrert_stream_add_callback(st, NULL, NULL), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "fn is NULL");
	OK(spyrert_stream_destroy(st));
	OK(spyrert_host_free(dev, w));
}

/* --- Errors ----------------------------------------------------------------------------------- */

/* Everything is refused afterwards, with the same status, until a reset; then the stream works
 * again. */
static void sticky_and_reset(struct spyrert_stream *st, enum spyrert_status want)
{
	struct spyrert_error_info e;
	char ras[16384];

	FAILS(spyrert_stream_nop(st), want, "");
	FAILS(spyrert_stream_query(st), want, "");
	FAILS(spyrert_stream_synchronize(st, 0), want, "");
	OK(spyrert_stream_error(st, &e, sizeof(e)));
	assert_int_equal(e.status, want);
	assert_string_equal(e.text, spyrert_last_error());
	assert_int_not_equal(e.ras.code, 0);
	assert_true(strlen(e.ras.name) > 5);
	assert_true(strlen(e.ras.step) > 5);
	assert_true(spyrert_ras_format(&e.ras, ras, sizeof(ras)) < (int)sizeof(ras));
	assert_int_equal(ras[0], '{');
	assert_non_null(strstr(ras, e.ras.name));
	OK(spyrert_stream_reset(st));
	OK(spyrert_stream_error(st, &e, sizeof(e)));
	assert_int_equal(e.status, SPYRERT_SUCCESS);
	OK(spyrert_stream_nop(st));
	OK(spyrert_stream_synchronize(st, LONG));
}

/* Other streams of the context may have been stopped with the faulty one. */
static void reset_others(void)
{
	struct spyrert_stream *def = spyrert_default_stream(dev);

	if (spyrert_stream_query(def) != SPYRERT_SUCCESS)
		OK(spyrert_stream_reset(def));
}

static void error_deadlock(void **state)
{
	struct spyrert_program *p = load_deadlock();
	struct spyrert_error_info e;
	struct spyrert_stream *st;
	uint32_t i;

	(void)state;
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_stream_nop(st));
	OK(spyrert_launch(st, p, NULL, 0, 0, 0));
	/* Behind it; refused already if the card was quick. */
	spyrert_stream_nop(st);
	FAILS(spyrert_stream_synchronize(st, LONG), SPYRERT_ERROR_DEADLOCK,
	      "no unit of the program can advance");
	assert_non_null(strstr(spyrert_last_error(), "waits for tag 5"));
	OK(spyrert_stream_error(st, &e, sizeof(e)));
	assert_int_equal(e.card_status, SPYRE_ERR_DEADLOCK);
	assert_int_equal(e.operation, 2);
	assert_int_equal(e.ras.code, SPYRE_RAS_DEADLOCK);
	assert_int_equal(e.ras.nstuck, 7);
	/* More than one record holds: all joined. */
	assert_int_equal(e.ras.nstuck_listed, 7);
	for (i = 0; i < 7; i++) {
		assert_int_equal(e.ras.stuck[i].core, i);
		assert_int_equal(e.ras.stuck[i].unit, SPYRE_UNIT_L3LU);
		assert_int_equal(e.ras.stuck[i].waits, SPYRE_WAIT_TAG);
		assert_int_equal(e.ras.stuck[i].number, 5);
	}
	sticky_and_reset(st, SPYRERT_ERROR_DEADLOCK);
	OK(spyrert_stream_destroy(st));
	OK(spyrert_program_unload(p));
	reset_others();
}

static void error_watchdog(void **state)
{
	struct spyrert_program *p = load_endless();
	struct spyrert_stream *st;

	(void)state;
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_launch(st, p, NULL, 0, 0, 0));
	FAILS(spyrert_stream_synchronize(st, LONG), SPYRERT_ERROR_WATCHDOG, "budget");
	sticky_and_reset(st, SPYRERT_ERROR_WATCHDOG);
	OK(spyrert_stream_destroy(st));
	OK(spyrert_program_unload(p));
	reset_others();
}

static void error_page_fault(void **state)
{
	struct spyrert_program *p = load_toucher();
	uint64_t bad = 0x0a12345680ull, n;
	struct spyrert_error_info e;
	struct spyrert_ras ras[64];
	struct spyrert_stream *st;
	size_t count = 64, i;
	spyrert_ptr d;

	(void)state;
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_launch(st, p, &bad, 1, 0, 0));
	FAILS(spyrert_stream_synchronize(st, LONG), SPYRERT_ERROR_PAGE_FAULT, "0xa12345680");
	assert_non_null(strstr(spyrert_last_error(), "segment 2"));
	assert_non_null(strstr(spyrert_last_error(), "not mapped"));
	OK(spyrert_stream_error(st, &e, sizeof(e)));
	assert_int_equal(e.ras.addr, bad);
	assert_int_equal(e.ras.syndrome, SPYRE_SYN_PAGE_FAULT);
	OK(spyrert_ras_read(dev, 0, ras, &count, sizeof(ras[0])));
	for (i = n = 0; i < count; i++)
		n += ras[i].addr == bad && ras[i].seq == e.ras.seq;
	assert_int_equal(n, 1);
	/* All of the card's, for who may see them. */
	count = 64;
	if (spyrert_device_ras_read(dev, e.ras.seq - 1, ras, &count, sizeof(ras[0])))
		assert_int_equal(spyrert_last_status(), SPYRERT_ERROR_PERMISSION);
	else
		assert_true(count >= 1 && ras[0].seq == e.ras.seq);
	sticky_and_reset(st, SPYRERT_ERROR_PAGE_FAULT);
	reset_others();
	/* The same program with a good address. */
	OK(spyrert_malloc(dev, 128, &d));
	OK(spyrert_launch(st, p, &d, 1, 0, 0));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_free(dev, d));
	OK(spyrert_stream_destroy(st));
	OK(spyrert_program_unload(p));
}

static void error_bad_program(void **state)
{
	struct spyreprog_job *job = spyreprog_job_new();
	int prog = spyreprog_job_program(job, SPYRE_UNIT_L3LU);
	struct spyrert_program *p;
	struct spyrert_stream *st;
	uint8_t *data;
	void *out;
	size_t n;

	(void)state;
	sp_addimm(job, prog, SPYRE_LAR0, 128);
	spyreprog_job_unit(job, 0, SPYRE_UNIT_L3LU, 0, prog);
	assert_int_equal(spyreprog_job_finish(job, &out, &n), 0);
	spyreprog_job_free(job);
	data = out;
	/* A bit of the body flips: the digest tells. */
	data[n - 100] ^= 1;
	OK(spyrert_program_load_binary(dev, data, n, &p));
	free(out);
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_launch(st, p, NULL, 0, 0, 0));
	FAILS(spyrert_stream_synchronize(st, LONG), SPYRERT_ERROR_BAD_PROGRAM,
	      "job binary failed its check");
	assert_non_null(strstr(spyrert_last_error(), "digest"));
	sticky_and_reset(st, SPYRERT_ERROR_BAD_PROGRAM);
	OK(spyrert_stream_destroy(st));
	OK(spyrert_program_unload(p));
	reset_others();
}

/* What waits for a stream that failed does not wait for ever, over any number of steps. */
static void error_dependency(void **state)
{
	struct spyrert_program *p = load_deadlock();
	struct spyrert_stream *a, *b, *c;
	struct spyrert_error_info info;
	struct spyrert_event *e, *f;
	struct spyrert_program *bad;
	uint64_t addr = 0x0a12345680ull;
	enum spyrert_status s;
	uint64_t *w;

	(void)state;
	bad = load_toucher();
	OK(spyrert_host_alloc(dev, 128, (void **)&w));
	*w = 0;
	OK(spyrert_event_create(dev, 0, &e));
	OK(spyrert_event_create(dev, 0, &f));
	OK(spyrert_stream_create(dev, NULL, &a));
	OK(spyrert_stream_create(dev, NULL, &b));
	OK(spyrert_stream_create(dev, NULL, &c));
	OK(spyrert_stream_wait_value(a, w, 1));
	OK(spyrert_launch(a, p, NULL, 0, 0, 0));
	OK(spyrert_event_record(e, a));
	OK(spyrert_stream_wait_event(b, e));
	OK(spyrert_event_record(f, b));
	OK(spyrert_stream_wait_event(c, f));
	OK(spyrert_stream_nop(c));
	OK(spyrert_host_write_value(dev, w, 1));
	s = spyrert_stream_synchronize(c, LONG);
	/* The card may stop the other streams of the context itself. */
	assert_true(s == SPYRERT_ERROR_DEPENDENCY || s == SPYRERT_ERROR_CANCELLED);
	s = spyrert_event_synchronize(f, LONG);
	assert_int_equal(s, SPYRERT_ERROR_DEPENDENCY);
	OK(spyrert_stream_error(a, &info, sizeof(info)));
	assert_int_equal(info.status, SPYRERT_ERROR_DEADLOCK);
	OK(spyrert_stream_reset(a));
	OK(spyrert_stream_reset(b));
	OK(spyrert_stream_reset(c));
	/* An event of before the reset stays unreached, a new one is not. */
	assert_int_equal(spyrert_event_query(e), SPYRERT_ERROR_DEPENDENCY);
	OK(spyrert_event_record(e, a));
	OK(spyrert_stream_wait_event(b, e));
	OK(spyrert_stream_synchronize(b, LONG));
	/* Callbacks behind an error are called with it. */
	cb_log.n = 0;
	*w = 0;
	OK(spyrert_stream_wait_value(a, w, 1));
	OK(spyrert_launch(a, bad, &addr, 1, 0, 0));
	OK(spyrert_stream_add_callback(a, on_done, (void *)7));
	OK(spyrert_host_write_value(dev, w, 1));
	assert_int_not_equal(spyrert_stream_synchronize(a, LONG), SPYRERT_SUCCESS);
	spyrert_stream_destroy(a);
	assert_int_equal(cb_log.n, 1);
	assert_int_equal(cb_log.calls[0], 7);
	assert_int_not_equal(cb_log.status[0], SPYRERT_SUCCESS);
	reset_others();
	if (spyrert_stream_query(b))
		OK(spyrert_stream_reset(b));
	if (spyrert_stream_query(c))
		OK(spyrert_stream_reset(c));
	OK(spyrert_stream_destroy(b));
	OK(spyrert_stream_destroy(c));
	OK(spyrert_event_destroy(e));
	OK(spyrert_event_destroy(f));
	OK(spyrert_program_unload(p));
	OK(spyrert_program_unload(bad));
	OK(spyrert_host_free(dev, w));
}

static void card_timeout(void **state)
{
	struct spyrert_stream_attr attr = {
		.priority = SPYRERT_PRIORITY_NORMAL,
		.timeout = 560000 * 30, /* 30 ms of card time */
	};
	struct spyrert_stream *st;
	uint64_t *w;

	(void)state;
	OK(spyrert_host_alloc(dev, 128, (void **)&w));
	*w = 0;
	OK(spyrert_stream_create(dev, &attr, &st));
	OK(spyrert_stream_wait_value(st, w, 1));
	FAILS(spyrert_stream_synchronize(st, LONG), SPYRERT_ERROR_CARD_TIMEOUT, "timeout expired");
	OK(spyrert_stream_destroy(st) == SPYRERT_ERROR_CANCELLED ? SPYRERT_SUCCESS
								 : SPYRERT_ERROR_INTERNAL);
	reset_others();
	OK(spyrert_host_free(dev, w));
}

/* --- Profiling, threads, processes --------------------------------------------------------------
 */

struct trace {
	int n;
	struct spyrert_activity a[256];
};

static void on_activity(void *arg, const struct spyrert_activity *a)
{
	struct trace *t = arg;

	if (t->n < 256)
		t->a[t->n++] = *a;
}

static void activity(void **state)
{
	struct spyrert_program *p = load_add(64, 64);
	static struct trace t;
	struct spyrert_stream *st;
	spyrert_ptr d;
	uint64_t sym[3];
	int i, computes = 0;
	void *pin;

	(void)state;
	t.n = 0;
	OK(spyrert_malloc(dev, 64 * 64 * 4, &d));
	OK(spyrert_host_alloc(dev, 64 * 64 * 4, &pin));
	sym[0] = sym[1] = sym[2] = d;
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_stream_nop(st));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_activity_subscribe(dev, on_activity, &t));
	OK(spyrert_memcpy_h2d_async(st, d, pin, 64 * 64 * 4));
	OK(spyrert_launch(st, p, sym, 3, 0, 0));
	OK(spyrert_fill_async(st, d, 0, 8, 64 * 64 * 4));
	OK(spyrert_memcpy_d2h_async(st, pin, d, 64 * 64 * 4));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_activity_subscribe(dev, NULL, NULL));
	OK(spyrert_stream_nop(st));
	OK(spyrert_stream_synchronize(st, LONG));
	assert_int_equal(t.n, 4);
	assert_int_equal(t.a[0].kind, SPYRERT_ACTIVITY_H2D);
	assert_int_equal(t.a[1].kind, SPYRERT_ACTIVITY_COMPUTE);
	assert_int_equal(t.a[2].kind, SPYRERT_ACTIVITY_FILL);
	assert_int_equal(t.a[3].kind, SPYRERT_ACTIVITY_D2H);
	for (i = 0; i < 4; i++) {
		assert_int_equal(t.a[i].stream, spyrert_stream_id(st));
		assert_int_equal(t.a[i].correlation, 2 + i);
		assert_int_equal(t.a[i].status, SPYRERT_SUCCESS);
		assert_true(t.a[i].submit_ns > 0);
		/* TS1 to TS5 do not run backwards; they are 32 bits wide and wrap, TS4's long form does not. */
		assert_true((int32_t)(t.a[i].ts[4] - t.a[i].ts[0]) >= 0);
		if (i)
			assert_true(t.a[i].ts4 >= t.a[i - 1].ts4);
		computes += t.a[i].cycles > 0;
	}
	assert_int_equal(t.a[0].bytes, 64 * 64 * 4);
	assert_true(t.a[1].cycles > 0);
	assert_ptr_equal(t.a[1].program, p);
	assert_int_equal((uint32_t)t.a[1].ts4, t.a[1].ts[3]);
	OK(spyrert_stream_destroy(st));
	OK(spyrert_host_free(dev, pin));
	OK(spyrert_free(dev, d));
	OK(spyrert_program_unload(p));
}

/*
 * A program's upload waits behind many copies and looks after all streams meanwhile. A launch has ended there
 * that nobody looked at yet.
 */
static void load_behind_copies(void **state)
{
	const uint64_t bytes = 64ull << 20;
	struct spyrert_program *p = load_add(64, 64), *late;
	struct spyrert_stream *st[2];
	spyrert_ptr d[2];
	uint64_t sym[3];
	void *pin;
	int i, k;

	(void)state;
	OK(spyrert_host_alloc(dev, bytes, &pin));
	for (k = 0; k < 2; k++) {
		OK(spyrert_malloc(dev, bytes, &d[k]));
		OK(spyrert_stream_create(dev, NULL, &st[k]));
	}
	sym[0] = sym[1] = sym[2] = d[0];
	OK(spyrert_launch(st[0], p, sym, 3, 0, 0));
	for (i = 0; i < 10; i++)
		for (k = 0; k < 2; k++)
			OK(spyrert_memcpy_h2d_async(st[k], d[k], pin, bytes));
	late = load_add(64, 128);
	for (k = 0; k < 2; k++) {
		OK(spyrert_stream_synchronize(st[k], LONG));
		OK(spyrert_stream_destroy(st[k]));
		OK(spyrert_free(dev, d[k]));
	}
	OK(spyrert_host_free(dev, pin));
	OK(spyrert_program_unload(p));
	OK(spyrert_program_unload(late));
}

struct worker {
	pthread_t thread;
	struct spyrert_stream *shared;
	uint32_t seed;
	char bad[256];
};

/* Copies of its own on a stream that all threads share, and allocations. */
static void *work(void *arg)
{
	struct worker *w = arg;
	uint8_t a[20000], b[20000];
	spyrert_ptr d;
	int i;

#define W(call)                                                               \
	do {                                                                  \
		if (!w->bad[0] && (call))                                     \
			snprintf(w->bad, sizeof(w->bad), "%s: %.150s", #call, \
				 spyrert_last_error());                       \
	} while (0)
	for (i = 0; i < 30 && !w->bad[0]; i++) {
		size_t n = 1 + rnd(&w->seed) % sizeof(a);

		fill_bytes(a, n, w->seed);
		W(spyrert_malloc(dev, n, &d));
		W(spyrert_memcpy_h2d_async(w->shared, d, a, n));
		W(spyrert_stream_nop(w->shared));
		W(spyrert_memcpy_d2h_async(w->shared, b, d, n));
		if (!w->bad[0] && memcmp(a, b, n))
			snprintf(w->bad, sizeof(w->bad), "round %d: data differ", i);
		W(spyrert_free(dev, d));
		/* The last error is each thread's own. */
		if (spyrert_free(dev, d + 4) != SPYRERT_ERROR_INVALID_ARGUMENT)
			snprintf(w->bad, sizeof(w->bad), "a bad free was accepted");
	}
	return NULL;
#undef W
}

static void threads(void **state)
{
	struct spyrert_stream *st;
	struct worker w[6];
	int i;

	(void)state;
	memset(w, 0, sizeof(w));
	OK(spyrert_stream_create(
		dev, &(struct spyrert_stream_attr){ .priority = 1, .ring_entries = 64 }, &st));
	for (i = 0; i < 6; i++) {
		w[i].shared = st;
		w[i].seed = 100 + i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (i = 0; i < 6; i++)
		pthread_join(w[i].thread, NULL);
	for (i = 0; i < 6; i++)
		if (w[i].bad[0])
			fail_msg("thread %d: %s", i, w[i].bad);
	OK(spyrert_stream_destroy(st));
}

/* Nanoseconds of processor time of this thread. */
static int64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Who waits sleeps, however long what he waits for takes. */
static void waiting_is_sleeping(void **state)
{
	struct spyrert_stream *st;
	struct spyrert_event *ev;
	uint64_t *w;
	int64_t begin;

	(void)state;
	OK(spyrert_host_alloc(dev, 128, (void **)&w));
	*w = 0;
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_event_create(dev, 0, &ev));
	OK(spyrert_stream_wait_value(st, w, 1));
	OK(spyrert_event_record(ev, st));
	begin = thread_ns();
	assert_int_equal(spyrert_stream_synchronize(st, SECOND), SPYRERT_ERROR_TIMEOUT);
	assert_int_equal(spyrert_event_synchronize(ev, SECOND), SPYRERT_ERROR_TIMEOUT);
	/* Of two seconds. */
	assert_true(thread_ns() - begin < 500000000);
	OK(spyrert_host_write_value(dev, w, 1));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_event_destroy(ev));
	OK(spyrert_stream_destroy(st));
	OK(spyrert_host_free(dev, w));
}

/* What the program does with signals is its own business: nothing here has changed that. */
static void signals_are_the_programs(void **state)
{
	struct sigaction now_set;
	sigset_t mask;
	int i;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (i = 1; i < NSIG; i++) {
		if (sigaction(i, NULL, &now_set))
			continue;
		if (now_set.sa_handler != at_start[i].sa_handler || now_set.sa_flags != at_start[i].sa_flags)
			fail_msg("the handler of signal %d is another than before spyrert_init()", i);
		if (sigismember(&mask, i) != sigismember(&mask_at_start, i))
			fail_msg("signal %d is blocked otherwise than before spyrert_init()", i);
	}
}

static void forked_child(void **state)
{
	struct spyrert_stream *st;
	spyrert_ptr d;
	int status;
	pid_t pid;

	(void)state;
	OK(spyrert_stream_create(dev, NULL, &st));
	OK(spyrert_stream_nop(st));
	OK(spyrert_stream_synchronize(st, LONG));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int ok = spyrert_stream_nop(st) == SPYRERT_ERROR_FORKED &&
			 spyrert_malloc(dev, 128, &d) == SPYRERT_ERROR_FORKED &&
			 spyrert_stream_synchronize(st, 0) == SPYRERT_ERROR_FORKED &&
			 spyrert_stream_destroy(st) == SPYRERT_ERROR_FORKED &&
			 spyrert_device_close(dev) == SPYRERT_ERROR_FORKED &&
			 strstr(spyrert_last_error(), "parent process");

		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	OK(spyrert_stream_nop(st));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_stream_destroy(st));
}

/* Two opens of one card share nothing. */
static void isolation(void **state)
{
	struct spyrert_program *p;
	struct spyrert_error_info e;
	struct spyrert_device *other;
	struct spyrert_stream *st;
	struct spyrert_event *ev;
	uint8_t a[256], b[256];
	spyrert_ptr d, x;
	struct level before = level();

	(void)state;
	OK(spyrert_device_open(lib, 0, &other));
	OK(spyrert_malloc(dev, 256, &d));
	OK(spyrert_malloc(other, 256, &x));
	memset(a, 1, sizeof(a));
	OK(spyrert_memcpy_h2d(dev, d, a, sizeof(a)));
	memset(a, 2, sizeof(a));
	OK(spyrert_memcpy_h2d(other, x, a, sizeof(a)));
	OK(spyrert_memcpy_d2h(dev, b, d, sizeof(b)));
	assert_int_equal(b[7], 1);
	OK(spyrert_memcpy_d2h(other, b, x, sizeof(b)));
	assert_int_equal(b[7], 2);
	OK(spyrert_stream_create(other, NULL, &st));
	OK(spyrert_event_create(dev, 0, &ev));
	FAILS(spyrert_event_record(ev, st), SPYRERT_ERROR_INVALID_ARGUMENT, "different devices");
	p = load_deadlock();
	FAILS(spyrert_launch(st, p, NULL, 0, 0, 0), SPYRERT_ERROR_INVALID_ARGUMENT,
	      "different devices");
	FAILS(spyrert_device_close(other), SPYRERT_ERROR_BUSY, "1 streams, events or programs");
	/* A fault here is not seen there. */
	OK(spyrert_launch(spyrert_default_stream(dev), p, NULL, 0, 0, 0));
	assert_int_equal(spyrert_device_synchronize(dev, LONG), SPYRERT_ERROR_DEADLOCK);
	OK(spyrert_stream_nop(st));
	OK(spyrert_stream_synchronize(st, LONG));
	OK(spyrert_stream_error(st, &e, sizeof(e)));
	assert_int_equal(e.status, SPYRERT_SUCCESS);
	OK(spyrert_stream_reset(spyrert_default_stream(dev)));
	OK(spyrert_program_unload(p));
	OK(spyrert_event_destroy(ev));
	OK(spyrert_stream_destroy(st));
	/* Memory left behind goes with the device. */
	OK(spyrert_device_close(other));
	OK(spyrert_free(dev, d));
	assert_int_equal(level().tensor, before.tensor);
}

/* Who gets no context is told how many there are, and whose. */
static void limits_are_named(void **state)
{
	static struct spyrert_device *opened[1024];
	enum spyrert_status status = SPYRERT_SUCCESS;
	struct spyrert_stream *st;
	char text[512] = "";
	int n = 0;

	(void)state;
	while (!status && n < 1024) {
		OK(spyrert_device_open(lib, 0, &opened[n++]));
		st = spyrert_default_stream(opened[n - 1]);
		assert_non_null(st);
		status = spyrert_stream_nop(st);
		snprintf(text, sizeof(text), "%s", spyrert_last_error());
	}
	assert_int_equal(status, SPYRERT_ERROR_LIMIT);
	assert_non_null(strstr(text, "limit reached: contexts "));
	assert_non_null(strstr(text, "for this user"));
	/* One that ends makes room for one. */
	OK(spyrert_device_close(opened[--n]));
	OK(spyrert_device_close(opened[--n]));
	OK(spyrert_device_open(lib, 0, &opened[n++]));
	OK(spyrert_stream_nop(spyrert_default_stream(opened[n - 1])));
	OK(spyrert_stream_synchronize(spyrert_default_stream(opened[n - 1]), LONG));
	while (n)
		OK(spyrert_device_close(opened[--n]));
}

/* Thousands of launches leave nothing behind. */
static void no_growth(void **state)
{
	struct spyrert_program *p = load_add(64, 64);
	struct spyrert_stream *st;
	struct level a, b;
	spyrert_ptr d;
	uint64_t sym[3];
	int i;

	(void)state;
	OK(spyrert_malloc(dev, 64 * 64 * 4, &d));
	sym[0] = sym[1] = sym[2] = d;
	OK(spyrert_stream_create(dev, NULL, &st));
	for (i = 0; i < 300; i++)
		OK(spyrert_launch(st, p, sym, 3, 0, 0));
	OK(spyrert_stream_synchronize(st, LONG));
	a = level();
	for (i = 0; i < 3000; i++)
		OK(spyrert_launch(st, p, sym, 3, 0, 0));
	OK(spyrert_stream_synchronize(st, LONG));
	b = level();
	assert_int_equal(a.tensor, b.tensor);
	assert_int_equal(a.pinned, b.pinned);
	assert_int_equal(a.program, b.program);
	OK(spyrert_stream_destroy(st));
	OK(spyrert_free(dev, d));
	OK(spyrert_program_unload(p));
}

static int open_card(void **state)
{
	int i;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &mask_at_start);
	for (i = 1; i < NSIG; i++)
		sigaction(i, NULL, &at_start[i]);
	if (spyrert_init(NULL, &lib) || spyrert_device_open(lib, 0, &dev)) {
		fprintf(stderr, "%s\n", spyrert_last_error());
		return -1;
	}
	return 0;
}

static int close_card(void **state)
{
	(void)state;
	if (spyrert_device_close(dev) || spyrert_exit(lib)) {
		fprintf(stderr, "%s\n", spyrert_last_error());
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library),
		cmocka_unit_test(null_handles),
		cmocka_unit_test(ras_of_the_card),
		cmocka_unit_test(log_words),
		cmocka_unit_test(enumeration),
		cmocka_unit_test(properties),
		cmocka_unit_test(memory),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(pinned),
		cmocka_unit_test(copies),
		cmocka_unit_test(fills),
		cmocka_unit_test(copies_4d),
		cmocka_unit_test(launch),
		cmocka_unit_test(spyrecode),
		cmocka_unit_test(streams),
		cmocka_unit_test(values),
		cmocka_unit_test(events),
		cmocka_unit_test(async_memory),
		cmocka_unit_test(callbacks),
		cmocka_unit_test(error_deadlock),
		cmocka_unit_test(error_watchdog),
		cmocka_unit_test(error_page_fault),
		cmocka_unit_test(error_bad_program),
		cmocka_unit_test(error_dependency),
		cmocka_unit_test(card_timeout),
		cmocka_unit_test(activity),
		cmocka_unit_test(load_behind_copies),
		cmocka_unit_test(threads),
		cmocka_unit_test(waiting_is_sleeping),
		cmocka_unit_test(forked_child),
		cmocka_unit_test(isolation),
		cmocka_unit_test(limits_are_named),
		cmocka_unit_test(no_growth),
		cmocka_unit_test(signals_are_the_programs),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
#ifdef FIRMWARE
	/* The build for unit tests carries the card. */
	setenv("SPYRERT_BACKEND", "model", 0);
	setenv("SPYRERT_FIRMWARE", FIRMWARE, 0);
	setenv("SPYRERT_MODEL_TIMING", "off", 0);
#endif
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, open_card, close_card);
}
