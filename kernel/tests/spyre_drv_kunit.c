// SPDX-License-Identifier: GPL-2.0-only
/*
 * The card, context and queue that the other suites work on.
 */
#include <linux/vmalloc.h>

#include "spyre_kunit.h"

#define KUNIT_MEM	SZ_64M
#define KUNIT_APERTURE	SZ_32M
#define KUNIT_AREA	SZ_4M

static void kunit_free_area(void *area)
{
	vfree(area);
}

struct spyre_device *spyre_kunit_device(struct kunit *test)
{
	struct device *dev = kunit_device_register(test, "spyre-kunit");
	struct spyre_device *sdev;
	void *regs, *area;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	regs = devm_kzalloc(dev, SZ_4K, GFP_KERNEL);
	area = vzalloc(KUNIT_AREA);
	KUNIT_ASSERT_EQ(test, 0, devm_add_action_or_reset(dev, kunit_free_area, area));
	sdev = devm_drm_dev_alloc(dev, &spyre_driver, struct spyre_device, drm);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, regs);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, area);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, sdev);
	sdev->regs = (void __iomem __force *)regs;
	sdev->doorbells = (void __iomem __force *)regs;
	sdev->area = (void __iomem __force *)area;
	sdev->area_size = KUNIT_AREA;
	sdev->mem_size = KUNIT_MEM;
	sdev->aperture_size = KUNIT_APERTURE;
	sdev->fw_reserved = SZ_2M;
	sdev->db_pages = 4 * SPYRE_DB_BLOCK_PAGES;
	sdev->info.contexts = 16;
	sdev->info.queues = 64;
	sdev->gone = true;
	KUNIT_ASSERT_EQ(test, 0, init_software(sdev));
	sdev->db_blocks = drmm_kcalloc(&sdev->drm, BITS_TO_LONGS(SPYRE_DB_BLOCKS), sizeof(long),
				       GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sdev->db_blocks);
	KUNIT_ASSERT_EQ(test, 0, spyre_tables_init(sdev));
	KUNIT_ASSERT_EQ(test, 0, spyre_mem_init(sdev));
	spin_lock_init(&sdev->mbox.lock);
	INIT_LIST_HEAD(&sdev->mbox.pending);
	return sdev;
}
