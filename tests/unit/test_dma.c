/* SPDX-License-Identifier: MIT */
/* DMI, DMO and DMX engines: results, refusals, times, cancelling, and taking memory away under load. */
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model_util.h"

enum { DMI0, DMI1, DMO0, DMO1, DMX0 };

#define HOST_BYTES	(8 * MB)
#define DEV_BYTES	(8 * MB)

/* A context with 8 MB of host memory at HMVA 0 and 8 MB of device memory at DMVA 0, pages scattered. */
static struct spyre_context_table *space(struct fix *f)
{
	struct spyre_context_table *t = ctx_new(f, 1);
	static const uint8_t order[] = { 2, 0, 3, 1 };
	unsigned int i;

	map_host(f, t, 0, HOST_BYTES / 2, SPYRE_PTE_WRITE, false);
	map_host(f, t, HOST_BYTES / 2, HOST_BYTES / 2, SPYRE_PTE_WRITE, true);
	seg_set(f, &t->dmva[0], 4);
	for (i = 0; i < 4; i++)
		*seg_pte(f, &t->dmva[0], i) = (64 * MB + order[i] * SPYRE_PAGE_SIZE) |
					      SPYRE_PTE_VALID | SPYRE_PTE_WRITE;
	return t;
}

static uint8_t *dev_byte(struct fix *f, uint64_t dmva)
{
	static const uint8_t order[] = { 2, 0, 3, 1 };

	return (uint8_t *)card_at(f, 64 * MB + order[dmva / SPYRE_PAGE_SIZE] * SPYRE_PAGE_SIZE +
				     dmva % SPYRE_PAGE_SIZE);
}

static struct spyre_cb cb_copy(enum spyre_cb_type type, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct spyre_cb cb = { .type = type, .cookie = 0x1234 };

	cb.u.dma.dst = dst;
	cb.u.dma.src = src;
	cb.u.dma.bytes = bytes;
	cb.u.dma.ndims = 1;
	return cb;
}

/* --- Results ------------------------------------------------------------------------------------ */

/*
 * Random descriptors inside both windows, carried out by the simplest code there is. dst never overlaps
 * itself, since then the order would show: destination strides grow by at least what they cover.
 */
static bool random_desc(uint64_t *seed, struct spyre_dma_desc *d)
{
	uint64_t cover, span, room = DEV_BYTES;
	unsigned int i;

	memset(d, 0, sizeof(*d));
	d->ndims = 1 + rnd(seed) % 4;
	d->bytes = rnd(seed) % 3 ? 1 + rnd(seed) % 300 : 128 * (1 + rnd(seed) % 200);
	cover = d->bytes;
	span = d->bytes;
	for (i = 0; i + 1 < d->ndims; i++) {
		d->count[i] = 1 + rnd(seed) % 7;
		d->dst_stride[i] = rnd(seed) % 3 ? cover + rnd(seed) % 200 : cover;
		d->src_stride[i] = rnd(seed) % 3 ? rnd(seed) % (2 * d->bytes) : d->dst_stride[i];
		cover = d->dst_stride[i] * (d->count[i] - 1) + cover;
		span += d->src_stride[i] * (d->count[i] - 1);
	}
	if (cover > room / 2 || span > room / 2)
		return false;
	d->dst = rnd(seed) % (room - cover) & ~127ull;
	d->src = rnd(seed) % (room - span) & ~127ull;
	/* The same walked backwards: sources may have negative strides. */
	if (d->ndims > 1 && rnd(seed) % 4 == 0) {
		d->src = (d->src + (d->count[0] - 1) * d->src_stride[0]) & ~127ull;
		d->src_stride[0] = -d->src_stride[0];
		if (d->src < (d->count[0] - 1) * -d->src_stride[0])
			return false;
	}
	return true;
}

static void reference(struct fix *f, const struct spyre_dma_desc *d, enum spyre_cb_type type, uint8_t *dst,
		      const uint8_t *src)
{
	uint32_t c[3], n[3];
	unsigned int i;
	uint64_t b;

	(void)f;
	(void)type;
	for (i = 0; i < 3; i++)
		n[i] = i + 1 < d->ndims ? d->count[i] : 1;
	for (c[2] = 0; c[2] < n[2]; c[2]++)
		for (c[1] = 0; c[1] < n[1]; c[1]++)
			for (c[0] = 0; c[0] < n[0]; c[0]++) {
				uint64_t to = d->dst, from = d->src;

				for (i = 0; i < 3; i++) {
					to += c[i] * d->dst_stride[i];
					from += c[i] * d->src_stride[i];
				}
				for (b = 0; b < d->bytes; b++)
					dst[to + b] = src[from + b];
			}
}

static void get_dev(struct fix *f, uint8_t *to)
{
	uint64_t a;

	for (a = 0; a < DEV_BYTES; a += SPYRE_PAGE_SIZE)
		memcpy(to + a, dev_byte(f, a), SPYRE_PAGE_SIZE);
}

static void test_random(void **state)
{
	struct fix *f = *state;
	uint8_t *host = spyre_inproc_arena(f->ip);
	uint8_t *src = malloc(DEV_BYTES), *want = malloc(DEV_BYTES), *got = malloc(DEV_BYTES);
	uint64_t seed = 99, a, bytes;
	unsigned int i;

	assert_true(src && want && got);
	space(f);
	for (a = 0; a < HOST_BYTES; a++)
		host[a] = a * 13 + (a >> 9);
	for (a = 0; a < DEV_BYTES; a++)
		*dev_byte(f, a) = a * 29 + (a >> 11);
	for (i = 0; i < 120; i++) {
		static const struct { enum spyre_cb_type type; unsigned int e; } kind[] = {
			{ SPYRE_CB_DMAI, DMI0 }, { SPYRE_CB_DMAO, DMO1 }, { SPYRE_CB_DMAX, DMX0 },
		};
		unsigned int k = i % 3;
		struct spyre_dma_desc d;
		struct spyre_rb rb;
		struct spyre_cb cb = { .type = kind[k].type, .cookie = i };

		while (!random_desc(&seed, &d))
			;
		/* Within the card, source and destination keep to a half each. */
		if (k == 2) {
			d.src %= DEV_BYTES / 2;
			d.dst = DEV_BYTES / 2 + d.dst % (DEV_BYTES / 2);
			d.ndims = d.ndims > 2 ? 2 : d.ndims;
			d.bytes = d.bytes > 300 ? 256 : d.bytes;
			memset(d.count, 0, sizeof(d.count));
			memset(d.src_stride, 0, sizeof(d.src_stride));
			memset(d.dst_stride, 0, sizeof(d.dst_stride));
			if (d.ndims == 2) {
				d.count[0] = 5;
				d.src_stride[0] = 128;
				d.dst_stride[0] = 512;
			}
			d.dst -= d.dst > DEV_BYTES - 8192 ? 8192 : 0;
		}
		cb.u.dma = d;
		get_dev(f, got);
		memcpy(src, k == 0 ? host : got, DEV_BYTES);
		memcpy(want, k == 1 ? host : got, DEV_BYTES);
		reference(f, &d, kind[k].type, want, src);
		/* Every other one in parts, of one stick to more than it has. */
		if (i / 3 % 2)
			rb = job_parts(f, kind[k].e, 1, &cb, 1u << rnd(&seed) % 12);
		else
			rb = job_run(f, kind[k].e, 1, &cb);
		assert_int_equal(rb.status, SPYRE_OK);
		assert_int_equal(rb.cookie, i);
		bytes = d.bytes;
		for (a = 0; a + 1 < d.ndims; a++)
			bytes *= d.count[a];
		assert_int_equal(rb.bytes, bytes);
		if (k == 1) {
			memcpy(got, host, DEV_BYTES);
		} else {
			get_dev(f, got);
		}
		if (memcmp(got, want, DEV_BYTES)) {
			for (a = 0; got[a] == want[a]; a++)
				;
			fail_msg("round %u, kind %u: byte %#llx is %#x, expected %#x", i, k,
				 (unsigned long long)a, got[a], want[a]);
		}
	}
	free(src);
	free(want);
	free(got);
}

static void test_list(void **state)
{
	struct fix *f = *state;
	uint8_t *host = spyre_inproc_arena(f->ip);
	struct spyre_cb cb = { .type = SPYRE_CB_DMAI, .flags = SPYRE_CB_F_LIST };
	struct spyre_rb rb;
	unsigned int i, n = SPYRE_DMA_LIST_MAX;

	space(f);
	for (i = 0; i < MB; i++)
		host[MB + i] = i * 11 + (i >> 8);
	/* The list crosses pages; entry i moves stick n - 1 - i. */
	for (i = 0; i < n; i++) {
		struct spyre_dma_desc d = {
			.dst = i * 128, .src = MB + (n - 1 - i) * 128, .bytes = 128, .ndims = 1,
		};

		memcpy(host + 5 * MB - 4000 + i * SPYRE_DMA_LIST_STRIDE, &d, sizeof(d));
	}
	cb.u.list.list = 5 * MB - 4000;
	cb.u.list.entries = n;
	rb = job_run(f, DMI1, 1, &cb);
	assert_int_equal(rb.status, SPYRE_OK);
	assert_int_equal(rb.bytes, n * 128);
	for (i = 0; i < n; i++)
		assert_memory_equal(dev_byte(f, i * 128), host + MB + (n - 1 - i) * 128, 128);

	/* One bad entry: nothing moves at all. */
	memset(dev_byte(f, 0), 0xee, 128);
	((struct spyre_dma_desc *)(host + 5 * MB - 4000 + 700 * SPYRE_DMA_LIST_STRIDE))->ndims = 5;
	rb = job_run(f, DMI1, 1, &cb);
	assert_int_equal(rb.status, SPYRE_ERR_BAD_CB);
	assert_int_equal(*dev_byte(f, 0), 0xee);
	cb.u.list.entries = n + 1;
	assert_int_equal(job_run(f, DMI1, 1, &cb).status, SPYRE_ERR_BAD_CB);
	cb.u.list.entries = 0;
	assert_int_equal(job_run(f, DMI1, 1, &cb).status, SPYRE_ERR_BAD_CB);
	cb.u.list.entries = 1;
	cb.u.list.list = 4;
	rb = job_run(f, DMI1, 1, &cb);
	assert_int_equal(rb.status, SPYRE_ERR_FAULT);
	assert_int_equal(rb.rb_hmierr_syndrome, SPYRE_SYN_UNALIGNED);
	cb.u.list.list = HOST_BYTES - 96;
	cb.u.list.entries = 2;
	rb = job_run(f, DMI1, 1, &cb);
	assert_int_equal(rb.status, SPYRE_ERR_FAULT);
	assert_int_equal(rb.rb_hmierr_addr, HOST_BYTES);
	assert_int_equal(rb.rb_hmierr_mode, SPYRE_HMI_HOST_READ);
}

/*
 * From pages that nobody wrote come zeros, also to a page which the job itself writes other things to, before and
 * after: entries of a list are in order.
 */
static void test_holes(void **state)
{
	struct fix *f = *state;
	uint8_t *host = spyre_inproc_arena(f->ip);
	/* Pages of DMVA: 0 is written, 1 and 2 are holes; each entry moves 256 bytes within the card. */
	static const uint32_t move[][2] = {
		{ 1 * 2 * MB, 2 * 2 * MB },		/* hole to hole */
		{ 1 * 2 * MB + 4096, 0 },		/* something, where it was asked about */
		{ 1 * 2 * MB + 4096 + 128, 2 * 2 * MB },	/* zeros over half of it */
		{ 1 * 2 * MB + 8192, 1 * 2 * MB + 4096 },	/* what was moved there is read */
		{ 0, 2 * 2 * MB },			/* zeros over what was written before */
		{ 3 * 2 * MB, 2 * 2 * MB },
	};
	struct spyre_cb cb = { .type = SPYRE_CB_DMAX, .flags = SPYRE_CB_F_LIST };
	unsigned int i, round;

	space(f);
	for (round = 0; round < 2; round++) {
		memset(dev_byte(f, 0), 0x5a, 4096);
		for (i = 0; i < ARRAY_SIZE(move); i++) {
			struct spyre_dma_desc d = { .dst = move[i][0], .src = move[i][1], .bytes = 256, .ndims = 1 };

			memcpy(host + i * SPYRE_DMA_LIST_STRIDE, &d, sizeof(d));
		}
		cb.u.list.list = 0;
		cb.u.list.entries = ARRAY_SIZE(move);
		assert_int_equal((round ? job_parts(f, DMX0, 1, &cb, 1) : job_run(f, DMX0, 1, &cb)).status, SPYRE_OK);
		for (i = 0; i < 256; i++) {
			uint8_t mixed = i < 128 ? 0x5a : 0;

			assert_int_equal(*dev_byte(f, i), 0);
			assert_int_equal(*dev_byte(f, 1 * 2 * MB + i), 0);
			assert_int_equal(*dev_byte(f, 1 * 2 * MB + 4096 + i), mixed);
			assert_int_equal(*dev_byte(f, 1 * 2 * MB + 8192 + i), mixed);
			assert_int_equal(*dev_byte(f, 256 + i), 0x5a);
		}
	}
	assert_false(mem_touched(f->card, 64 * MB + 3 * SPYRE_PAGE_SIZE));
}

/* Stands in for the C library's: how often the card asks its host which pages are populated. */
static unsigned int asked;

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
	__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
	return syscall(SYS_pread64, fd, buf, n, at);
}

/* Runs over pages that nobody wrote ask about each page once, not for each run. */
static void test_holes_cost(void **state)
{
	struct fix *f = *state;
	struct spyre_cb cb = { .type = SPYRE_CB_DMAX };
	unsigned int before;

	space(f);
	cb.u.dma = (struct spyre_dma_desc){
		.dst = 0, .src = 2 * MB, .bytes = 128, .ndims = 2, .count = { 8192 },
		.dst_stride = { 256 }, .src_stride = { 256 },
	};
	before = load_relaxed(&asked);
	assert_int_equal(job_run(f, DMX0, 1, &cb).status, SPYRE_OK);
	assert_in_range(load_relaxed(&asked) - before, 1, 2);
}

/* --- Refusals ------------------------------------------------------------------------------------- */

static void expect_fault(struct fix *f, unsigned int e, const struct spyre_cb *cb, enum spyre_hmi_mode mode,
			 uint64_t addr, enum spyre_syndrome syn)
{
	struct spyre_rb rb = job_run(f, e, 1, cb);

	assert_int_equal(rb.status, SPYRE_ERR_FAULT);
	assert_int_equal(rb.rb_hmierr_mode, mode);
	assert_int_equal(rb.rb_hmierr_addr, addr);
	assert_int_equal(rb.rb_hmierr_syndrome, syn);
	assert_int_equal(rb.rb_hmierr_snid, e);
}

static void test_faults(void **state)
{
	struct fix *f = *state;
	struct spyre_context_table *t = space(f);
	struct spyre_cb cb;

	cb = cb_copy(SPYRE_CB_DMAI, DEV_BYTES - 128, 0, 256);
	expect_fault(f, DMI0, &cb, SPYRE_HMI_STORE, DEV_BYTES, SPYRE_SYN_PAGE_FAULT);
	cb = cb_copy(SPYRE_CB_DMAI, 0, HOST_BYTES - 128, 256);
	expect_fault(f, DMI0, &cb, SPYRE_HMI_HOST_READ, HOST_BYTES, SPYRE_SYN_PAGE_FAULT);
	cb = cb_copy(SPYRE_CB_DMAO, 0, DEV_BYTES, 128);
	expect_fault(f, DMO0, &cb, SPYRE_HMI_LOAD, DEV_BYTES, SPYRE_SYN_PAGE_FAULT);
	cb = cb_copy(SPYRE_CB_DMAO, HOST_BYTES, 0, 128);
	expect_fault(f, DMO0, &cb, SPYRE_HMI_HOST_WRITE, HOST_BYTES, SPYRE_SYN_PAGE_FAULT);
	/* The device side starts on a stick, the host side anywhere. */
	cb = cb_copy(SPYRE_CB_DMAI, 64, 0, 128);
	expect_fault(f, DMI0, &cb, SPYRE_HMI_STORE, 64, SPYRE_SYN_UNALIGNED);
	cb = cb_copy(SPYRE_CB_DMAO, 0, 64, 128);
	expect_fault(f, DMO0, &cb, SPYRE_HMI_LOAD, 64, SPYRE_SYN_UNALIGNED);
	cb = cb_copy(SPYRE_CB_DMAI, 0, 3, 77);
	assert_int_equal(job_run(f, DMI0, 1, &cb).status, SPYRE_OK);
	/* Beyond the spaces, by start, length or stride. */
	cb = cb_copy(SPYRE_CB_DMAI, SPYRE_DMVA_SIZE - 128, 0, 256);
	expect_fault(f, DMI0, &cb, SPYRE_HMI_STORE, SPYRE_DMVA_SIZE - 128, SPYRE_SYN_RANGE);
	cb = cb_copy(SPYRE_CB_DMAI, 0, ~0ull - 100, 256);
	expect_fault(f, DMI0, &cb, SPYRE_HMI_HOST_READ, ~0ull - 100, SPYRE_SYN_RANGE);
	cb = cb_copy(SPYRE_CB_DMAO, 0, 0, 128);
	cb.u.dma.ndims = 2;
	cb.u.dma.count[0] = 2;
	cb.u.dma.src_stride[0] = -128ull;
	expect_fault(f, DMO0, &cb, SPYRE_HMI_LOAD, 0, SPYRE_SYN_RANGE);
	cb.u.dma.src_stride[0] = 1ull << 63;
	expect_fault(f, DMO0, &cb, SPYRE_HMI_LOAD, 0, SPYRE_SYN_RANGE);
	cb.u.dma.ndims = 4;
	cb.u.dma.count[0] = 1;
	cb.u.dma.count[1] = 16;
	cb.u.dma.count[2] = 16;
	cb.u.dma.src_stride[0] = 0;
	cb.u.dma.src_stride[1] = 0x7fffffffffffffff;
	cb.u.dma.src_stride[2] = 0x7fffffffffffffff;
	expect_fault(f, DMO0, &cb, SPYRE_HMI_LOAD, 0, SPYRE_SYN_RANGE);
	/* Rights. */
	*seg_pte(f, &t->dmva[0], 1) &= ~SPYRE_PTE_WRITE;
	cb = cb_copy(SPYRE_CB_DMAI, 2 * MB - 128, 0, 256);
	expect_fault(f, DMI0, &cb, SPYRE_HMI_STORE, 2 * MB, SPYRE_SYN_PERMISSION);
	cb = cb_copy(SPYRE_CB_DMAO, 0, 2 * MB, 256);
	assert_int_equal(job_run(f, DMO0, 1, &cb).status, SPYRE_OK);
	/* Host memory that does not answer. */
	spyre_inproc_bus_master(f->ip, false);
	expect_fault(f, DMO0, &cb, SPYRE_HMI_HOST_WRITE, 0, SPYRE_SYN_BUS);
	spyre_inproc_bus_master(f->ip, true);
	assert_int_equal(job_run(f, DMO0, 1, &cb).status, SPYRE_OK);
	/* A memory error is the hardware's, not the program's. */
	spyre_card_inject(f->card, SPYRE_FAULT_MEM_UE, 64 * MB);
	cb = cb_copy(SPYRE_CB_DMAO, 0, 2 * MB, 256);
	assert_int_equal(job_run(f, DMO0, 1, &cb).status, SPYRE_ERR_HW);
	assert_int_equal(job_run(f, DMO0, 1, &cb).status, SPYRE_OK);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_DMA_ABORT, 0), 0);
	assert_int_equal(job_run(f, DMO0, 1, &cb).status, SPYRE_ERR_HW);
	assert_int_equal(job_run(f, DMO0, 1, &cb).status, SPYRE_OK);
}

static void test_bad_cbs(void **state)
{
	struct fix *f = *state;
	struct spyre_cb good, cb;

	space(f);
	good = cb_copy(SPYRE_CB_DMAI, 0, 0, 128);
#define BAD(change) \
	do { \
		cb = good; \
		change; \
		assert_int_equal(job_run(f, DMI0, 1, &cb).status, SPYRE_ERR_BAD_CB); \
	} while (0)
	BAD(cb.u.dma.bytes = 0);
	BAD(cb.u.dma.bytes = (1ull << 34) + 1);
	BAD(cb.u.dma.ndims = 0);
	BAD(cb.u.dma.ndims = 5);
	BAD(cb.u.dma.ndims = ~0u);
	BAD(cb.u.dma.ndims = 2);		/* count 0 */
	BAD(cb.u.dma.count[0] = 1);		/* beyond ndims */
	BAD(cb.u.dma.src_stride[2] = 128);
	BAD(cb.type = SPYRE_CB_DMAO);		/* not this engine's */
	BAD(cb.type = SPYRE_CB_COMPUTE);
	BAD(cb.u.dma.ndims = 4; cb.u.dma.count[0] = cb.u.dma.count[1] = cb.u.dma.count[2] = ~0u);
	/* Little data, but for ever: one byte over and over. */
	BAD(cb.u.dma.bytes = 1; cb.u.dma.ndims = 3; cb.u.dma.count[0] = cb.u.dma.count[1] = 65536);
	BAD(cb.u.dma.bytes = 129; cb.u.dma.ndims = 2; cb.u.dma.count[0] = SPYRE_DMA_STICKS_MAX / 2 + 1);
	cb = good;
	cb.type = SPYRE_CB_FILL;
	cb.u.fill.bytes = 100;
	assert_int_equal(job_run(f, DMX0, 1, &cb).status, SPYRE_ERR_BAD_CB);
	cb.u.fill.bytes = 0;
	assert_int_equal(job_run(f, DMX0, 1, &cb).status, SPYRE_ERR_BAD_CB);
	assert_int_equal(job_run(f, DMI0, 1, &good).status, SPYRE_OK);
	/* No context was set up for 2. */
	assert_int_equal(job_run(f, DMI0, 2, &good).status, SPYRE_ERR_FAULT);
	assert_int_equal(job_run(f, DMI0, 70000, &good).rb_hmierr_syndrome, SPYRE_SYN_RANGE);
}

/* --- Fill and holes ------------------------------------------------------------------------------- */

static unsigned int resident(struct fix *f, uint64_t addr, uint64_t bytes)
{
	unsigned int n = 0, i, pages = bytes / 4096;
	uint64_t *map = calloc(pages, 8), at = (uintptr_t)card_at(f, addr) / 4096;
	FILE *p = fopen("/proc/self/pagemap", "rb");

	assert_non_null(p);
	assert_int_equal(fseek(p, at * 8, SEEK_SET), 0);
	assert_int_equal(fread(map, 8, pages, p), pages);
	fclose(p);
	for (i = 0; i < pages; i++)
		n += (map[i] >> 62) != 0;
	free(map);
	return n;
}

static void test_fill(void **state)
{
	struct fix *f = *state;
	struct spyre_cb cb = { .type = SPYRE_CB_FILL };
	struct spyre_rb rb;
	uint64_t a;

	space(f);
	cb.u.fill.dst = 128;
	cb.u.fill.bytes = 5 * MB;
	cb.u.fill.pattern = 0x0123456789abcdef;
	rb = job_run(f, DMX0, 1, &cb);
	assert_int_equal(rb.status, SPYRE_OK);
	assert_int_equal(rb.bytes, 5 * MB);
	assert_int_equal(*(uint64_t *)dev_byte(f, 0), 0);
	for (a = 128; a < 128 + 5 * MB; a += 8)
		assert_int_equal(*(uint64_t *)dev_byte(f, a), 0x0123456789abcdef);
	assert_int_equal(*(uint64_t *)dev_byte(f, a), 0);

	/* Zeros give whole pages back and leave what is beside them alone. */
	assert_true(resident(f, 64 * MB, DEV_BYTES) > 0);
	cb.u.fill.dst = 256;
	cb.u.fill.bytes = 4 * MB;
	cb.u.fill.pattern = 0;
	assert_int_equal(job_run(f, DMX0, 1, &cb).status, SPYRE_OK);
	assert_int_equal(resident(f, 64 * MB, 2 * MB), 0);
	assert_int_equal(*(uint64_t *)dev_byte(f, 128), 0x0123456789abcdef);
	assert_int_equal(*(uint64_t *)dev_byte(f, 248), 0x0123456789abcdef);
	for (a = 256; a < 256 + 4 * MB; a += 8)
		assert_int_equal(*(uint64_t *)dev_byte(f, a), 0);
	assert_int_equal(*(uint64_t *)dev_byte(f, a), 0x0123456789abcdef);
	/* Filling with zeros and reading untouched memory populate nothing. */
	cb.u.fill.dst = 6 * MB;
	cb.u.fill.bytes = 2 * MB;
	assert_int_equal(job_run(f, DMX0, 1, &cb).status, SPYRE_OK);
	memset(spyre_inproc_arena(f->ip), 0xff, 2 * MB);
	cb = cb_copy(SPYRE_CB_DMAO, 0, 6 * MB, 2 * MB);
	assert_int_equal(job_run(f, DMO0, 1, &cb).status, SPYRE_OK);
	for (a = 0; a < 2 * MB; a += 8)
		assert_int_equal(*(uint64_t *)((uint8_t *)spyre_inproc_arena(f->ip) + a), 0);
	assert_int_equal(resident(f, 64 * MB + SPYRE_PAGE_SIZE, SPYRE_PAGE_SIZE), 0);
}

/* --- Time ------------------------------------------------------------------------------------------ */

static void test_times(void **state)
{
	struct fix *f = *state;
	struct mcu_completion done;
	struct spyre_cb cb;
	struct spyre_rb rb, rb2;
	uint64_t dur, busy;
	uint32_t moved;

	space(f);
	spyre_inproc_manual_clock(f->ip);
	/* 4 MB at about 60 GB/s is some 70 us: announced then and not before. */
	cb = cb_copy(SPYRE_CB_DMAI, 0, 0, 4 * MB);
	job_start(f, DMI0, 1, 5, &cb);
	WAIT_FOR(load_acquire(&f->card->engine[DMI0].state) == ENG_DONE);
	assert_false(completion_pop(f->card, &done));
	spyre_inproc_advance(f->ip, 60000);
	assert_false(completion_pop(f->card, &done));
	assert_int_equal(load_acquire(&f->card->engine[DMI0].state), ENG_DONE);
	spyre_inproc_advance(f->ip, 20000);
	rb = job_wait(f, 5);
	dur = rb.ts[4] - rb.ts[0];
	assert_in_range(dur, 36000, 44000);
	assert_int_equal(rb.ts[1], rb.ts[4]);
	assert_int_equal((uint32_t)rb.ts4, rb.ts[3]);
	assert_int_not_equal(rb.power, 0);

	/* While it only waits for its end it is seen to move. */
	cb.u.dma.bytes = 8 * MB - 4096;
	cb.u.dma.ndims = 2;
	cb.u.dma.count[0] = 100;
	job_start(f, DMI0, 1, 4, &cb);
	WAIT_FOR(load_acquire(&f->card->engine[DMI0].state) == ENG_DONE);
	moved = engine_progress(&f->card->engine[DMI0]);
	assert_int_equal(engine_progress(&f->card->engine[DMI0]), moved);
	spyre_inproc_advance(f->ip, 3000000);
	assert_in_range(engine_progress(&f->card->engine[DMI0]) - moved, 2, 6);
	moved = engine_progress(&f->card->engine[DMI0]);
	spyre_inproc_advance(f->ip, 20000000);
	job_wait(f, 4);
	assert_true(engine_progress(&f->card->engine[DMI0]) - moved < 1000);
	assert_int_not_equal(engine_progress(&f->card->engine[DMI0]), moved);
	busy = counter(f, "dmi0-busy") - dur;

	cb = cb_copy(SPYRE_CB_DMAI, 0, 0, 4 * MB);
	/* Two engines of one direction share the link; the other direction is free. */
	job_start(f, DMI0, 1, 5, &cb);
	WAIT_FOR(load_acquire(&f->card->engine[DMI0].state) == ENG_DONE);
	job_start(f, DMI1, 1, 6, &cb);
	WAIT_FOR(load_acquire(&f->card->engine[DMI1].state) == ENG_DONE);
	spyre_inproc_advance(f->ip, 80000);
	rb = job_wait(f, 5);
	spyre_inproc_advance(f->ip, 80000);
	rb2 = job_wait(f, 6);
	assert_int_equal(rb.ts[4] - rb.ts[0], dur);
	assert_in_range(rb2.ts[4] - rb2.ts[0], 2 * dur - 1200, 2 * dur);
	/* Sticks that lie apart cost no more than their bytes; half sticks cost whole ones. */
	cb = cb_copy(SPYRE_CB_DMAO, 0, 0, 64);
	cb.u.dma.ndims = 2;
	cb.u.dma.count[0] = 16384;
	cb.u.dma.dst_stride[0] = 128;
	cb.u.dma.src_stride[0] = 128;
	job_start(f, DMO0, 1, 7, &cb);
	WAIT_FOR(load_acquire(&f->card->engine[DMO0].state) == ENG_DONE);
	spyre_inproc_advance(f->ip, 80000);
	rb = job_wait(f, 7);
	assert_int_equal(rb.ts[0], rb.ts[3]);
	assert_in_range(rb.ts[4] - rb.ts[0], dur / 2 - 600, dur / 2 + 600);
	assert_int_equal(rb.bytes, MB);
	/* Parts take what the whole takes, and the first has all of the setup. */
	cb = cb_copy(SPYRE_CB_DMAI, 0, 0, 4 * MB);
	{
		struct mcu_job job = { .context = 1, .tag = 8, .part = 10000 };
		uint64_t sum = 0;

		memcpy(job.cb, &cb, sizeof(job.cb));
		do {
			engine_start(f->card, DMI0, &job);
			spyre_inproc_advance(f->ip, 80000);
			WAIT_FOR(completion_pop(f->card, &done));
			memcpy(&rb, done.rb, sizeof(rb));
			assert_int_equal(rb.status, SPYRE_OK);
			sum += rb.ts[4] - rb.ts[0];
			job.at = done.next;
			job.since = done.end;
		} while (job.at);
		assert_int_equal(sum, dur);
	}
	/* A list that has shrunk between two parts. */
	{
		struct mcu_job job = { .context = 1, .tag = 9, .at = 4 * MB / 128 };

		memcpy(job.cb, &cb, sizeof(job.cb));
		engine_start(f->card, DMI0, &job);
		assert_int_equal(job_wait(f, 9).status, SPYRE_ERR_BAD_CB);
	}
	/* The timeout is card time, and nothing moves. */
	memset(spyre_inproc_arena(f->ip), 0x77, 4096);
	cb = cb_copy(SPYRE_CB_DMAO, 0, 0, 4 * MB);
	cb.timeout = 10000;
	job_start(f, DMO0, 1, 8, &cb);
	spyre_inproc_advance(f->ip, 80000);
	rb = job_wait(f, 8);
	assert_int_equal(rb.status, SPYRE_ERR_TIMEOUT);
	assert_int_equal(rb.ts[4] - rb.ts[0], 10000);
	assert_int_equal(*(uint8_t *)spyre_inproc_arena(f->ip), 0x77);
	assert_int_equal(counter(f, "dmi0-jobs"), 5);
	assert_int_equal(counter(f, "dmi0-bytes"), 12 * MB + 100 * (8 * MB - 4096));
	assert_int_equal(counter(f, "dmi0-busy"), 3 * dur + busy);
}

static void test_timing_off(void **state)
{
	struct spyre_card_config cfg = {
		.memory = 1ull << 30, .aperture = 256 * MB, .mem_fd = -1, .timing_off = true,
	};
	struct fix *f = fix_new(&cfg);
	struct spyre_cb cb;
	struct spyre_rb a, b;

	(void)state;
	space(f);
	spyre_inproc_manual_clock(f->ip);
	cb = cb_copy(SPYRE_CB_DMAI, 0, 0, 4 * MB);
	a = job_run(f, DMI0, 1, &cb);
	b = job_run(f, DMI0, 1, &cb);
	/* Announced at once; the modelled times follow each other all the same. */
	assert_int_equal(b.ts[0], a.ts[4]);
	assert_int_equal(b.ts[4] - b.ts[0], a.ts[4] - a.ts[0]);
	fix_free(f);
}

/* --- Under load -------------------------------------------------------------------------------------- */

/* Copies the same 2 MB, from and to offset at, for as long as one control block may. */
static struct spyre_cb endless(enum spyre_cb_type type, uint64_t at)
{
	struct spyre_cb cb = cb_copy(type, at, at, 2 * MB);

	cb.u.dma.ndims = 2;
	cb.u.dma.count[0] = SPYRE_DMA_STICKS_MAX * SPYRE_STICK / (2 * MB);
	cb.u.dma.dst_stride[0] = 0;
	cb.u.dma.src_stride[0] = 0;
	return cb;
}

static void test_cancel(void **state)
{
	struct fix *f = *state;
	struct spyre_cb cb = endless(SPYRE_CB_DMAI, 0);
	struct spyre_rb rb;
	uint32_t p;

	space(f);
	job_start(f, DMI0, 1, 3, &cb);
	WAIT_FOR(load_relaxed(&f->card->engine[DMI0].progress) > 10);
	p = load_relaxed(&f->card->engine[DMI0].progress);
	WAIT_FOR(load_relaxed(&f->card->engine[DMI0].progress) > p);
	/* Another context's abort leaves it alone. */
	engines_abort(f->card, 2);
	usleep(5000);
	assert_int_equal(load_acquire(&f->card->engine[DMI0].state), ENG_RUNNING);
	engines_abort(f->card, 1);
	rb = job_wait(f, 3);
	assert_int_equal(rb.status, SPYRE_ERR_CANCELLED);
	job_start(f, DMI0, 1, 4, &cb);
	WAIT_FOR(load_acquire(&f->card->engine[DMI0].state) == ENG_RUNNING);
	engine_cancel(f->card, DMI0);
	assert_int_equal(job_wait(f, 4).status, SPYRE_ERR_CANCELLED);
	/* One that only waits for its time ends at once, too. */
	cb = cb_copy(SPYRE_CB_DMAI, 0, 0, 4 * MB);
	spyre_inproc_manual_clock(f->ip);
	job_start(f, DMI0, 1, 5, &cb);
	WAIT_FOR(load_acquire(&f->card->engine[DMI0].state) == ENG_DONE);
	engine_cancel(f->card, DMI0);
	assert_int_equal(job_wait(f, 5).status, SPYRE_ERR_CANCELLED);
}

static void test_reset_under_load(void **state)
{
	struct fix *f = *state;
	uint8_t *host = spyre_inproc_arena(f->ip);
	struct spyre_cb in0 = endless(SPYRE_CB_DMAI, 0), in1 = endless(SPYRE_CB_DMAI, 2 * MB);
	struct spyre_cb out = endless(SPYRE_CB_DMAO, 4 * MB);
	struct mcu_completion done;
	unsigned int round, e;

	for (round = 0; round < 6; round++) {
		uint32_t gen = rd32(f, SPYRE_REG_RESET_GEN);
		uint64_t t0;

		f->table_next = 16 * MB;
		space(f);
		memset(host, round + 1, 6 * MB);
		*dev_byte(f, 5 * MB) = 1;
		job_start(f, DMI0, 1, 1, &in0);
		job_start(f, DMI1, 1, 2, &in1);
		job_start(f, DMO0, 1, 3, &out);
		for (e = DMI0; e <= DMO0; e++) {
			uint32_t p = load_relaxed(&f->card->engine[e].progress);

			WAIT_FOR(load_relaxed(&f->card->engine[e].progress) > p + 5);
		}
		t0 = now_ms();
		spyre_card_reset(f->card, round & 1 ? SPYRE_RESET_FLR : SPYRE_RESET_COLD);
		assert_true(now_ms() - t0 < 2000);
		/* Not a byte of host memory changes any more, and card memory is gone. */
		memset(host, 0xa5, 6 * MB);
		usleep(3000);
		for (t0 = 0; t0 < 6 * MB; t0 += 64)
			assert_int_equal(host[t0], 0xa5);
		assert_int_equal(*dev_byte(f, 0), 0);
		assert_int_equal(rd32(f, SPYRE_REG_RESET_GEN), gen + 1);
		assert_false(completion_pop(f->card, &done));
	}
}

struct hammer {
	struct fix *f;
	uint32_t stop;
	uint64_t rounds;
};

static void *sync_main(void *arg)
{
	struct hammer *h = arg;

	while (!load_acquire(&h->stop)) {
		spyre_card_dma_sync(h->f->card);
		epoch_sync(h->f->card);
		h->rounds++;
		usleep(500);
	}
	return NULL;
}

/*
 * A host that answers only while nobody waits for the card's workers. A copy goes through all syncs without
 * a fault, and neither a reset nor an abort meets a worker that waits for it.
 */
static void test_big_lock(void **state)
{
	struct fix *f = *state;
	struct spyre_cb in = cb_copy(SPYRE_CB_DMAI, 0, 0, 128), once = cb_copy(SPYRE_CB_DMAI, 2 * MB, 0, MB);
	struct hammer h = { .f = f };
	pthread_t thread;
	unsigned int i;

	spyre_inproc_big_lock(f->ip, true);
	/* One run to a page, so that host memory is asked for all the time. */
	in.u.dma.ndims = 3;
	in.u.dma.count[0] = 4;
	in.u.dma.src_stride[0] = SPYRE_PAGE_SIZE;
	in.u.dma.dst_stride[0] = 128;
	in.u.dma.count[1] = SPYRE_DMA_STICKS_MAX / 4;
	for (i = 0; i < 4; i++) {
		uint32_t p;

		f->table_next = 16 * MB;
		space(f);
		p = load_relaxed(&f->card->engine[DMI0].progress);
		pthread_create(&thread, NULL, sync_main, &h);
		job_start(f, DMI0, 1, 1, &in);
		assert_int_equal(job_run(f, DMI1, 1, &once).status, SPYRE_OK);
		WAIT_FOR(load_relaxed(&f->card->engine[DMI0].progress) > p + 4);
		if (i & 1) {
			engine_cancel(f->card, DMI0);
			assert_int_equal(job_wait(f, 1).status, SPYRE_ERR_CANCELLED);
		}
		spyre_card_reset(f->card, SPYRE_RESET_FLR);
		store_release(&h.stop, 1);
		pthread_join(thread, NULL);
		store_release(&h.stop, 0);
	}
}

/* Pages are taken away while a copy uses them: after an invalidation not a byte lands in the old one. */
static void test_invalidate_under_load(void **state)
{
	struct fix *f = *state;
	struct spyre_context_table *t = space(f);
	struct spyre_cb cb = cb_copy(SPYRE_CB_DMAI, 0, 0, 2 * MB);
	struct hammer h = { .f = f };
	uint8_t *host = spyre_inproc_arena(f->ip);
	struct spyre_rb rb;
	pthread_t thread;
	unsigned int i;

	memset(host, 0x11, 2 * MB);
	cb.u.dma.ndims = 2;
	cb.u.dma.count[0] = SPYRE_DMA_STICKS_MAX * SPYRE_STICK / (2 * MB);
	pthread_create(&thread, NULL, sync_main, &h);
	job_start(f, DMI0, 1, 9, &cb);
	WAIT_FOR(load_relaxed(&f->card->engine[DMI0].progress) > 100);
	for (i = 0; i < 20; i++) {
		uint8_t *old = card_at(f, 64 * MB + 2 * SPYRE_PAGE_SIZE + (i & 1) * 8 * MB);
		uint64_t next = 64 * MB + 2 * SPYRE_PAGE_SIZE + (~i & 1) * 8 * MB, a;

		__atomic_store_n(seg_pte(f, &t->dmva[0], 0), next | SPYRE_PTE_VALID | SPYRE_PTE_WRITE,
				 __ATOMIC_RELEASE);
		epoch_sync(f->card);
		memset(old, 0x99, 2 * MB);
		usleep(2000);
		for (a = 0; a < 2 * MB; a += 128)
			assert_int_equal(old[a], 0x99);
	}
	/* And when it is dropped for good, the job faults. */
	__atomic_store_n(seg_pte(f, &t->dmva[0], 0), 0, __ATOMIC_RELEASE);
	epoch_sync(f->card);
	rb = job_wait(f, 9);
	assert_int_equal(rb.status, SPYRE_ERR_FAULT);
	assert_int_equal(rb.rb_hmierr_syndrome, SPYRE_SYN_PAGE_FAULT);
	store_release(&h.stop, 1);
	pthread_join(thread, NULL);
	assert_true(h.rounds > 0);
}

static void test_peers(void **state)
{
	struct fix *a = *state, *b = fix_new(NULL);
	struct spyre_context_table *t = space(a);
	struct spyre_cb cb = cb_copy(SPYRE_CB_DMAX, 16 * MB, 0, MB);
	uint64_t bus, i;

	/* Card b's aperture at a bus address, bound into a's context at HMVA 16 MB. */
	bus = spyre_inproc_map(a->ip, spyre_card_memory(b->card), spyre_card_aperture(b->card), true);
	assert_int_not_equal(bus, 0);
	*seg_pte(a, &t->hmva[0], 8) = (bus + 128 * MB) | SPYRE_PTE_VALID | SPYRE_PTE_LEAF | SPYRE_PTE_WRITE;
	for (i = 0; i < MB; i++)
		*dev_byte(a, i) = i * 3 + (i >> 8);
	cb.flags = SPYRE_CB_F_DST_HOST;
	assert_int_equal(job_run(a, DMX0, 1, &cb).status, SPYRE_OK);
	assert_memory_equal(card_at(b, 128 * MB), dev_byte(a, 0), MB);
	/* And back, to another place. */
	cb = cb_copy(SPYRE_CB_DMAX, 2 * MB, 16 * MB, MB);
	cb.flags = SPYRE_CB_F_SRC_HOST;
	assert_int_equal(job_run(a, DMX0, 1, &cb).status, SPYRE_OK);
	assert_memory_equal(dev_byte(a, 2 * MB), dev_byte(a, 0), MB);
	spyre_inproc_unmap(a->ip, bus);
	assert_int_equal(job_run(a, DMX0, 1, &cb).rb_hmierr_syndrome, SPYRE_SYN_BUS);
	fix_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup_card, teardown_card)
		T(test_random),
		T(test_list),
		T(test_holes),
		T(test_holes_cost),
		T(test_faults),
		T(test_bad_cbs),
		T(test_fill),
		T(test_times),
		cmocka_unit_test(test_timing_off),
		T(test_cancel),
		T(test_reset_under_load),
		T(test_invalidate_under_load),
		T(test_big_lock),
		T(test_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
