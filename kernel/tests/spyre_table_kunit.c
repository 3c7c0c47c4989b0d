// SPDX-License-Identifier: GPL-2.0-only
/*
 * The allocator of page tables.
 */
#include "spyre_kunit.h"

static void table_is_aligned_and_zero(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	u32 small, large, i;

	memset_io(sdev->area, 0xff, sdev->area_size);
	KUNIT_ASSERT_EQ(test, 0, spyre_table_alloc(sdev, SPYRE_HOST_L2_SIZE, &small));
	KUNIT_ASSERT_EQ(test, 0, spyre_table_alloc(sdev, SPYRE_TABLE_SIZE, &large));
	KUNIT_EXPECT_GE(test, small, SPYRE_AREA_TABLES);
	KUNIT_EXPECT_EQ(test, 0, small % SPYRE_HOST_L2_SIZE);
	KUNIT_EXPECT_EQ(test, 0, large % SPYRE_TABLE_SIZE);
	KUNIT_EXPECT_LE(test, (u64)large + SPYRE_TABLE_SIZE, sdev->area_size);
	for (i = 0; i < SPYRE_TABLE_SIZE; i += 8)
		KUNIT_ASSERT_EQ(test, 0, readq(sdev->area + large + i));
	/* Nothing but what was handed out. */
	KUNIT_EXPECT_EQ(test, ~0ull, readq(sdev->area + small + SPYRE_HOST_L2_SIZE));
	KUNIT_EXPECT_EQ(test, ~0ull, readq(sdev->area + SPYRE_AREA_TABLES - 8));
	KUNIT_EXPECT_EQ(test, 1 + SPYRE_TABLE_SIZE / SPYRE_TABLE_UNIT, sdev->tables.used);
}

static void table_runs_out(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	u32 n = sdev->tables.units * SPYRE_TABLE_UNIT / SPYRE_TABLE_SIZE, at = 0, i;

	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, 0, spyre_table_alloc(sdev, SPYRE_TABLE_SIZE, &at));
	KUNIT_EXPECT_EQ(test, sdev->tables.units, sdev->tables.used);
	KUNIT_EXPECT_EQ(test, -ENOSPC, spyre_table_alloc(sdev, SPYRE_HOST_L2_SIZE, &i));
	KUNIT_EXPECT_EQ(test, sdev->tables.units, sdev->tables.used);
	/* One of the last table's units makes room for a small table, and for no large one. */
	spyre_table_free(sdev, at + SPYRE_TABLE_UNIT, SPYRE_HOST_L2_SIZE);
	KUNIT_EXPECT_EQ(test, -ENOSPC, spyre_table_alloc(sdev, SPYRE_TABLE_SIZE, &i));
	KUNIT_EXPECT_EQ(test, 0, spyre_table_alloc(sdev, SPYRE_HOST_L2_SIZE, &i));
	KUNIT_EXPECT_EQ(test, at + SPYRE_TABLE_UNIT, i);
}

/* Any order of both sizes: never two owners of a unit, never a unit lost. */
static void table_any_order(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_tables *t = &sdev->tables;
	u32 state = 1, held = 0, units = 0, step, i, j;
	struct {
		u32 at, size;
	} *have = kunit_kcalloc(test, 256, sizeof(*have), GFP_KERNEL);
	u8 *owner = kunit_kzalloc(test, t->units, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, have);
	KUNIT_ASSERT_NOT_NULL(test, owner);
	for (step = 0; step < 5000; step++) {
		u32 size = spyre_kunit_random(&state) % 4 ? SPYRE_HOST_L2_SIZE : SPYRE_TABLE_SIZE;
		u32 n = size / SPYRE_TABLE_UNIT, at;

		if (held < 256 && spyre_kunit_random(&state) % 2) {
			if (spyre_table_alloc(sdev, size, &at))
				continue;
			have[held].at = at;
			have[held++].size = size;
			units += n;
			for (j = 0; j < n; j++)
				KUNIT_ASSERT_EQ(test, 0, owner[(at - SPYRE_AREA_TABLES) /
							       SPYRE_TABLE_UNIT + j]++);
		} else if (held) {
			i = spyre_kunit_random(&state) % held;
			n = have[i].size / SPYRE_TABLE_UNIT;
			spyre_table_free(sdev, have[i].at, have[i].size);
			units -= n;
			for (j = 0; j < n; j++)
				owner[(have[i].at - SPYRE_AREA_TABLES) / SPYRE_TABLE_UNIT + j]--;
			have[i] = have[--held];
		}
		KUNIT_ASSERT_EQ(test, units, t->used);
	}
	while (held--)
		spyre_table_free(sdev, have[held].at, have[held].size);
	KUNIT_EXPECT_EQ(test, 0, t->used);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(t->map, t->units));
}

static struct kunit_case table_cases[] = {
	KUNIT_CASE(table_is_aligned_and_zero),
	KUNIT_CASE(table_runs_out),
	KUNIT_CASE(table_any_order),
	{}
};

struct kunit_suite spyre_table_suite = {
	.name = "spyre_table",
	.test_cases = table_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_table_suite);
