/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_TABLE_H
#define SPYRE_TABLE_H

#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include <spyre/hw.h>

struct spyre_device;

/*
 * The driver's area at the start of the aperture: context tables, room for the firmware image
 * while it boots, then page tables. It is never handed to user space.
 */
#define SPYRE_AREA_CONTEXTS	256u
#define SPYRE_AREA_CTX		0u
#define SPYRE_AREA_FW		(SPYRE_AREA_CONTEXTS * 512u)
#define SPYRE_AREA_FW_SIZE	(SZ_1M - SPYRE_AREA_FW)
#define SPYRE_AREA_TABLES	SZ_1M

#define SPYRE_TABLE_UNIT	SPYRE_HOST_L2_SIZE	/* allocation unit, 4 KiB */

/**
 * struct spyre_tables - allocator of page tables
 * @lock: protects the rest
 * @map: a bit per unit
 * @units: number of bits
 * @used: of them set
 */
struct spyre_tables {
	struct mutex lock;	/* see above */
	unsigned long *map;
	u32 units;
	u32 used;
};

int spyre_tables_init(struct spyre_device *sdev);
int spyre_table_alloc(struct spyre_device *sdev, u32 size, u32 *at);
void spyre_table_free(struct spyre_device *sdev, u32 at, u32 size);

#endif
