// SPDX-License-Identifier: MIT
/* Properties of the allocator of addresses: invariants, no overlap, coalescing, both policies,
 * exhaustion. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heap.h"

/* A backing that gives regions out of a limited space, from a base that may be 0. */
struct backing {
	uint64_t next, limit, given, page;
	unsigned int regions;
};

static int grow(void *opaque, uint64_t need, uint64_t want, uint64_t *base, uint64_t *size,
		void **cookie)
{
	struct backing *b = opaque;
	uint64_t n = (want + b->page - 1) / b->page * b->page;

	if (b->given + n > b->limit) {
		n = (need + b->page - 1) / b->page * b->page;
		if (b->given + n > b->limit)
			return -ENOSPC;
	}
	*base = b->next;
	*size = n;
	*cookie = b;
	/* Some regions touch, some do not: blocks must never join across them. */
	b->next += n + (b->regions % 2 ? b->page : 0);
	b->given += n;
	b->regions++;
	return 0;
}

static void release(void *opaque, uint64_t base, uint64_t size, void *cookie)
{
	struct backing *b = opaque;

	(void)base;
	assert_ptr_equal(cookie, b);
	b->given -= size;
	b->regions--;
}

static void make(struct rt_heap *h, struct backing *b, uint64_t limit)
{
	memset(b, 0, sizeof(*b));
	b->limit = limit;
	b->page = 1 << 16;
	rt_heap_init(h, 1 << 18, 1 << 20);
	h->grow = grow;
	h->release = release;
	h->opaque = b;
}

static void check(struct rt_heap *h)
{
	const char *bad = rt_heap_check(h);

	if (bad)
		fail_msg("heap: %s", bad);
}

static uint32_t rnd(uint32_t *s)
{
	*s = *s * 1664525 + 1013904223;
	return *s >> 8;
}

static void churn(enum spyrert_alloc_policy policy)
{
	enum { N = 300 };
	struct rt_block *live[N] = { 0 };
	struct backing b;
	struct rt_heap h;
	uint32_t seed = 7, i, k, ops;
	uint64_t sum = 0;

	make(&h, &b, 64 << 20);
	h.policy = policy;
	for (ops = 0; ops < 20000; ops++) {
		i = rnd(&seed) % N;
		if (live[i]) {
			assert_ptr_equal(rt_heap_find(&h, live[i]->addr), live[i]);
			assert_ptr_equal(rt_heap_find(&h, live[i]->addr + live[i]->size - 1),
					 live[i]);
			sum -= live[i]->size;
			rt_heap_free(&h, live[i]);
			live[i] = NULL;
		} else {
			uint64_t want = 1 + rnd(&seed) % (rnd(&seed) % 10 ? 5000 : 300000);

			assert_int_equal(rt_heap_alloc(&h, want, &live[i]), 0);
			assert_true(live[i]->addr != 0);
			assert_int_equal(live[i]->addr % 128, 0);
			assert_int_equal(live[i]->size, (want + 127) / 128 * 128);
			sum += live[i]->size;
			for (k = 0; k < N; k++)
				if (k != i && live[k])
					assert_true(live[k]->addr + live[k]->size <=
							    live[i]->addr ||
						    live[i]->addr + live[i]->size <= live[k]->addr);
		}
		assert_int_equal(h.stats.allocated, sum);
		if (ops % 97 == 0)
			check(&h);
	}
	for (i = 0; i < N; i++)
		if (live[i])
			rt_heap_free(&h, live[i]);
	check(&h);
	assert_int_equal(h.stats.allocations, 0);
	assert_int_equal(h.stats.total_allocations, h.stats.total_frees);
	/* All joined again: every region goes back. */
	sum = h.stats.reserved;
	assert_int_equal(sum, b.given);
	assert_int_equal(rt_heap_trim(&h), sum);
	assert_int_equal(b.regions, 0);
	assert_int_equal(b.given, 0);
	rt_heap_fini(&h);
}

static void best_fit_churn(void **state)
{
	(void)state;
	churn(SPYRERT_BEST_FIT);
}

static void first_fit_churn(void **state)
{
	(void)state;
	churn(SPYRERT_FIRST_FIT);
}

/* Holes of 8, 2 and 4 KiB at rising addresses: who takes which for 1.5 KiB. */
static void policies_differ(void **state)
{
	static const uint64_t sizes[] = { 8192, 128, 2048, 128, 4096, 128 };
	struct rt_block *blk[6], *got;
	struct backing b;
	struct rt_heap h;
	int i, policy;

	(void)state;
	for (policy = 0; policy < 2; policy++) {
		make(&h, &b, 1 << 20);
		h.policy = policy;
		for (i = 0; i < 6; i++)
			assert_int_equal(rt_heap_alloc(&h, sizes[i], &blk[i]), 0);
		for (i = 1; i < 6; i++)
			assert_int_equal(blk[i]->addr, blk[i - 1]->addr + sizes[i - 1]);
		uint64_t at[6];
		for (i = 0; i < 6; i++)
			at[i] = blk[i]->addr;
		for (i = 0; i < 6; i += 2)
			rt_heap_free(&h, blk[i]);
		assert_int_equal(rt_heap_alloc(&h, 1500, &got), 0);
		assert_int_equal(got->addr, at[policy == SPYRERT_FIRST_FIT ? 0 : 2]);
		check(&h);
		rt_heap_fini(&h);
	}
}

static void neighbours_join(void **state)
{
	struct rt_block *a, *m, *z, *all;
	struct backing b;
	struct rt_heap h;
	int order;

	(void)state;
	for (order = 0; order < 6; order++) {
		make(&h, &b, 1 << 18);
		assert_int_equal(rt_heap_alloc(&h, 1 << 16, &a), 0);
		assert_int_equal(rt_heap_alloc(&h, 1 << 16, &m), 0);
		assert_int_equal(rt_heap_alloc(&h, (1 << 17) - 128, &z), 0);
		struct rt_block *blk[3] = { a, m, z };
		static const int perm[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 },
						{ 2, 0, 1 }, { 2, 1, 0 } };
		for (int i = 0; i < 3; i++) {
			rt_heap_free(&h, blk[perm[order][i]]);
			check(&h);
		}
		/* The whole region is one block again, but for the stick at address 0. */
		assert_int_equal(rt_heap_alloc(&h, (1 << 18) - 128, &all), 0);
		assert_int_equal(all->addr, 128);
		rt_heap_fini(&h);
	}
}

static void exhaustion(void **state)
{
	struct spyrert_memory_stats st;
	struct rt_block *a, *c;
	struct backing b;
	struct rt_heap h;

	(void)state;
	make(&h, &b, 1 << 18);
	assert_int_equal(rt_heap_alloc(&h, 1 << 17, &a), 0);
	assert_int_equal(rt_heap_alloc(&h, 1 << 18, &c), -ENOSPC);
	rt_heap_get_stats(&h, &st);
	assert_int_equal(st.ooms, 1);
	assert_int_equal(st.largest_free, (1 << 18) - 128 - (1 << 17));
	assert_int_equal(rt_heap_alloc(&h, st.largest_free, &c), 0);
	assert_int_equal(rt_heap_alloc(&h, 1, &c), -ENOSPC);
	assert_int_equal(rt_heap_alloc(&h, 0, &c), -EINVAL);
	assert_int_equal(rt_heap_alloc(&h, UINT64_MAX, &c), -EINVAL);
	assert_int_equal(rt_heap_trim(&h), 0);
	check(&h);
	rt_heap_fini(&h);
	assert_int_equal(b.given, 0);
}

static void lookups(void **state)
{
	struct rt_block *a, *c;
	struct backing b;
	struct rt_heap h;

	(void)state;
	make(&h, &b, 1 << 20);
	assert_null(rt_heap_find(&h, 0));
	assert_int_equal(rt_heap_alloc(&h, 200, &a), 0);
	assert_int_equal(rt_heap_alloc(&h, 200, &c), 0);
	assert_null(rt_heap_find(&h, 0));
	assert_ptr_equal(rt_heap_find(&h, a->addr + 255), a);
	assert_ptr_equal(rt_heap_find(&h, a->addr + 256), c);
	assert_null(rt_heap_find(&h, c->addr + 256));
	assert_null(rt_heap_find(&h, UINT64_MAX));
	uint64_t at = a->addr;
	rt_heap_free(&h, a);
	assert_null(rt_heap_find(&h, at));
	rt_heap_fini(&h);
}

/* Regions that others made live among the heap's own, and go with their block. */
static void adopted(void **state)
{
	enum { N = 50 };
	struct rt_block *own[N], *theirs[N], *a;
	struct spyrert_memory_stats st;
	struct backing b;
	struct rt_heap h;
	uint32_t i, k;
	uint64_t base;

	(void)state;
	make(&h, &b, 64 << 20);
	for (i = 0; i < N; i++) {
		assert_int_equal(rt_heap_alloc(&h, 1000 + i, &own[i]), 0);
		b.given += 1 << 16;
		b.regions++;
		base = (1ull << 40) + ((uint64_t)i * 7 % N << 20);
		assert_int_equal(rt_heap_adopt(&h, base, 1 << 16, &b, i, &theirs[i]), 0);
		assert_int_equal(theirs[i]->size, 1 << 16);
		assert_int_equal(theirs[i]->region->flags, i);
		assert_ptr_equal(rt_heap_find(&h, theirs[i]->addr + (1 << 16) - 1), theirs[i]);
		assert_null(rt_heap_find(&h, theirs[i]->addr + (1 << 16)));
		check(&h);
	}
	rt_heap_get_stats(&h, &st);
	assert_int_equal(st.allocations, 2 * N);
	assert_int_equal(st.reserved, b.given);
	/* None of it is for allocations, even when nothing else is left. */
	b.limit = b.given;
	while (!rt_heap_alloc(&h, 1 << 16, &a))
		assert_true(a->addr < 1ull << 40);
	assert_int_equal(rt_heap_trim(&h), 0);
	for (i = 0; i < N; i++) {
		uint64_t at, given = b.given;

		k = i * 11 % N;
		at = theirs[k]->addr;
		rt_heap_free(&h, theirs[k]);
		assert_int_equal(b.given, given - (1 << 16));
		assert_null(rt_heap_find(&h, at));
		rt_heap_free(&h, own[k]);
		check(&h);
	}
	/* What is left goes with the heap. */
	b.given += 1 << 16;
	b.regions++;
	assert_int_equal(rt_heap_adopt(&h, 1ull << 40, 1 << 16, &b, 0, &a), 0);
	rt_heap_fini(&h);
	assert_int_equal(b.given, 0);
	assert_int_equal(b.regions, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(best_fit_churn),
		cmocka_unit_test(first_fit_churn),
		cmocka_unit_test(policies_differ),
		cmocka_unit_test(neighbours_join),
		cmocka_unit_test(exhaustion),
		cmocka_unit_test(lookups),
		cmocka_unit_test(adopted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
