// SPDX-License-Identifier: GPL-2.0-only
/*
 * The page-table area: 64 KiB tables and 4 KiB second-level tables, zeroed when handed out.
 */
#include <linux/bitmap.h>

#include <drm/drm_managed.h>

#include "spyre_drv.h"

int spyre_tables_init(struct spyre_device *sdev)
{
	struct spyre_tables *t = &sdev->tables;

	t->units = (sdev->area_size - SPYRE_AREA_TABLES) / SPYRE_TABLE_UNIT;
	t->map = drmm_kcalloc(&sdev->drm, BITS_TO_LONGS(t->units), sizeof(long), GFP_KERNEL);
	if (!t->map)
		return -ENOMEM;
	return drmm_mutex_init(&sdev->drm, &t->lock);
}

/*
 * @at: out, offset in the area, which is the card address too as the area starts at 0. Naturally
 * aligned. -ENOSPC when there is no room.
 */
int spyre_table_alloc(struct spyre_device *sdev, u32 size, u32 *at)
{
	struct spyre_tables *t = &sdev->tables;
	u32 n = size / SPYRE_TABLE_UNIT;
	unsigned long bit;

	mutex_lock(&t->lock);
	bit = bitmap_find_next_zero_area(t->map, t->units, 0, n, n - 1);
	if (bit < t->units) {
		bitmap_set(t->map, bit, n);
		t->used += n;
	}
	mutex_unlock(&t->lock);
	if (bit >= t->units) {
		drm_dbg(&sdev->drm, "page-table area exhausted: %u of %u KiB used, %u more wanted\n",
			t->used * (SPYRE_TABLE_UNIT / SZ_1K), t->units * (SPYRE_TABLE_UNIT / SZ_1K),
			size / SZ_1K);
		return -ENOSPC;
	}
	*at = SPYRE_AREA_TABLES + bit * SPYRE_TABLE_UNIT;
	memset_io(sdev->area + *at, 0, size);
	return 0;
}

void spyre_table_free(struct spyre_device *sdev, u32 at, u32 size)
{
	struct spyre_tables *t = &sdev->tables;
	u32 n = size / SPYRE_TABLE_UNIT;

	mutex_lock(&t->lock);
	bitmap_clear(t->map, (at - SPYRE_AREA_TABLES) / SPYRE_TABLE_UNIT, n);
	t->used -= n;
	mutex_unlock(&t->lock);
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_table_kunit.c"
#endif
