// SPDX-License-Identifier: GPL-2.0-only
/*
 * The allocator of device memory: what a page may be used for, and when again.
 */
#include "spyre_kunit.h"

#define MEM_PAGES	64u	/* more than the card of the tests has */

/* Clearing that works, and clearing that does not. */
static int clears;

static int clear_works(struct spyre_device *sdev, const u32 *pages, u32 n)
{
	clears++;
	return 0;
}

static int clear_fails(struct spyre_device *sdev, const u32 *pages, u32 n)
{
	clears++;
	return -EIO;
}

static struct spyre_device *mem_device(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);

	clears = 0;
	kunit_activate_static_stub(test, spyre_kctx_clear, clear_works);
	/* As callers of the allocator do. */
	down_read(&sdev->reset_sem);
	return sdev;
}

static u32 mem_pages(const struct spyre_mem *m)
{
	return m->end - m->first;
}

static void mem_classes(struct kunit *test)
{
	struct spyre_device *sdev = mem_device(test);
	struct spyre_mem *m = &sdev->mem;
	u32 pages[MEM_PAGES], gen, i, beyond = m->end - m->map_end;

	KUNIT_ASSERT_LT(test, mem_pages(m), MEM_PAGES);
	/* What no CPU looks at lies beyond the aperture while there is room. */
	KUNIT_ASSERT_EQ(test, 0, spyre_mem_alloc(sdev, beyond, false, pages, &gen));
	for (i = 0; i < beyond; i++)
		KUNIT_EXPECT_GE(test, pages[i], m->map_end);
	KUNIT_EXPECT_EQ(test, 0, m->used_map);
	KUNIT_ASSERT_EQ(test, 0, spyre_mem_alloc(sdev, 2, true, pages, &gen));
	KUNIT_ASSERT_EQ(test, 0, spyre_mem_alloc(sdev, 1, false, pages + 2, &gen));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_GE(test, pages[i], m->first);
		KUNIT_EXPECT_LT(test, pages[i], m->map_end);
	}
	KUNIT_EXPECT_EQ(test, 3, m->used_map);
	KUNIT_EXPECT_EQ(test, beyond + 3, m->used);
	up_read(&sdev->reset_sem);
}

static void mem_all_or_nothing(struct kunit *test)
{
	struct spyre_device *sdev = mem_device(test);
	struct spyre_mem *m = &sdev->mem;
	u32 pages[MEM_PAGES], gen;

	KUNIT_EXPECT_EQ(test, -ENOSPC, spyre_mem_alloc(sdev, mem_pages(m) + 1, false, pages, &gen));
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			spyre_mem_alloc(sdev, m->map_end - m->first + 1, true, pages, &gen));
	KUNIT_EXPECT_EQ(test, 0, m->used);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(m->busy, m->end));
	KUNIT_ASSERT_EQ(test, 0, spyre_mem_alloc(sdev, mem_pages(m), false, pages, &gen));
	KUNIT_EXPECT_EQ(test, -ENOSPC, spyre_mem_alloc(sdev, 1, false, pages, &gen));
	KUNIT_EXPECT_EQ(test, mem_pages(m), m->used);
	KUNIT_EXPECT_EQ(test, 0, clears);
	up_read(&sdev->reset_sem);
}

/* A page that was somebody's is nobody's until it was cleared. */
static void mem_cleared_before_use(struct kunit *test)
{
	struct spyre_device *sdev = mem_device(test);
	struct spyre_mem *m = &sdev->mem;
	u32 pages[MEM_PAGES], again[MEM_PAGES], gen, n = mem_pages(m);

	KUNIT_ASSERT_EQ(test, 0, spyre_mem_alloc(sdev, n, false, pages, &gen));
	spyre_mem_free(sdev, pages, 5, gen);
	KUNIT_EXPECT_EQ(test, n - 5, m->used);
	KUNIT_EXPECT_EQ(test, 5, m->ndirty);
	KUNIT_EXPECT_TRUE(test, test_bit(pages[0], m->busy));
	KUNIT_ASSERT_EQ(test, 0, spyre_mem_alloc(sdev, 5, false, again, &gen));
	KUNIT_EXPECT_EQ(test, 1, clears);
	KUNIT_EXPECT_EQ(test, 5, m->scrubbed);
	KUNIT_EXPECT_EQ(test, 0, m->ndirty);
	KUNIT_EXPECT_EQ(test, 0, m->scrubbing);
	KUNIT_EXPECT_EQ(test, n, m->used);
	up_read(&sdev->reset_sem);
}

static void mem_stays_dirty(struct kunit *test)
{
	struct spyre_device *sdev = mem_device(test);
	struct spyre_mem *m = &sdev->mem;
	u32 pages[MEM_PAGES], gen, n = mem_pages(m);

	KUNIT_ASSERT_EQ(test, 0, spyre_mem_alloc(sdev, n, false, pages, &gen));
	spyre_mem_free(sdev, pages, n, gen);
	kunit_activate_static_stub(test, spyre_kctx_clear, clear_fails);
	KUNIT_EXPECT_EQ(test, -EIO, spyre_mem_alloc(sdev, 1, false, pages, &gen));
	KUNIT_EXPECT_EQ(test, 1, clears);
	KUNIT_EXPECT_EQ(test, n, m->ndirty);
	KUNIT_EXPECT_EQ(test, 0, m->scrubbing);
	KUNIT_EXPECT_EQ(test, 0, m->used);
	KUNIT_EXPECT_EQ(test, 0, m->scrubbed);
	up_read(&sdev->reset_sem);
}

/* Memory of an earlier life is nobody's: giving it back gives nothing. */
static void mem_lost(struct kunit *test)
{
	struct spyre_device *sdev = mem_device(test);
	struct spyre_mem *m = &sdev->mem;
	u32 pages[MEM_PAGES], gen, now;

	KUNIT_ASSERT_EQ(test, 0, spyre_mem_alloc(sdev, 4, false, pages, &gen));
	spyre_mem_lost(sdev);
	KUNIT_EXPECT_EQ(test, 0, m->used);
	KUNIT_ASSERT_EQ(test, 0, spyre_mem_alloc(sdev, mem_pages(m), false, pages, &now));
	KUNIT_EXPECT_NE(test, gen, now);
	spyre_mem_free(sdev, pages, 4, gen);
	KUNIT_EXPECT_EQ(test, mem_pages(m), m->used);
	KUNIT_EXPECT_EQ(test, 0, m->ndirty);
	up_read(&sdev->reset_sem);
}

static void mem_first_use(struct kunit *test)
{
	struct spyre_device *sdev = mem_device(test);
	struct spyre_mem *m = &sdev->mem;
	u32 pages[MEM_PAGES], gen;

	spyre_mem_all_dirty(sdev);
	/* The background worker, which takes reset_sem itself, finds a card that is away. */
	up_read(&sdev->reset_sem);
	flush_delayed_work(&m->scrub_work);
	down_read(&sdev->reset_sem);
	KUNIT_EXPECT_EQ(test, mem_pages(m), m->ndirty);
	KUNIT_EXPECT_EQ(test, 0, clears);
	KUNIT_EXPECT_EQ(test, 0, spyre_mem_alloc(sdev, 1, true, pages, &gen));
	/* What is inside the aperture, as that was wanted; not what lies below the first page. */
	KUNIT_EXPECT_EQ(test, m->end - m->map_end, m->ndirty);
	KUNIT_EXPECT_GE(test, pages[0], m->first);
	up_read(&sdev->reset_sem);
}

/* Any order: never two owners of a page, never a page lost. */
static void mem_any_order(struct kunit *test)
{
	struct spyre_device *sdev = mem_device(test);
	struct spyre_mem *m = &sdev->mem;
	u32 state = 2, held = 0, step, i, n;
	u32 pages[MEM_PAGES], gen;
	u8 owner[MEM_PAGES] = {};

	for (step = 0; step < 3000; step++) {
		n = spyre_kunit_random(&state) % 5 + 1;
		if (spyre_kunit_random(&state) % 2) {
			bool map = spyre_kunit_random(&state) % 2;

			if (spyre_mem_alloc(sdev, n, map, pages + held, &gen))
				continue;
			for (i = held; i < held + n; i++) {
				KUNIT_ASSERT_EQ(test, 0, owner[pages[i]]++);
				if (map)
					KUNIT_ASSERT_LT(test, pages[i], m->map_end);
			}
			held += n;
		} else if (n <= held) {
			held -= n;
			for (i = held; i < held + n; i++)
				owner[pages[i]]--;
			spyre_mem_free(sdev, pages + held, n, m->gen);
		}
		KUNIT_ASSERT_EQ(test, held, m->used);
	}
	spyre_mem_free(sdev, pages, held, m->gen);
	KUNIT_EXPECT_EQ(test, 0, m->used);
	KUNIT_EXPECT_EQ(test, 0, m->used_map);
	KUNIT_EXPECT_EQ(test, 0, spyre_mem_alloc(sdev, mem_pages(m), false, pages, &gen));
	up_read(&sdev->reset_sem);
}

static struct kunit_case mem_cases[] = {
	KUNIT_CASE(mem_classes),
	KUNIT_CASE(mem_all_or_nothing),
	KUNIT_CASE(mem_cleared_before_use),
	KUNIT_CASE(mem_stays_dirty),
	KUNIT_CASE(mem_lost),
	KUNIT_CASE(mem_first_use),
	KUNIT_CASE(mem_any_order),
	{}
};

struct kunit_suite spyre_mem_suite = {
	.name = "spyre_mem",
	.test_cases = mem_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_mem_suite);
