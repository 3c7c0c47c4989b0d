/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_KCTX_H
#define SPYRE_KCTX_H

#include <linux/types.h>

struct spyre_device;

int spyre_kctx_create(struct spyre_device *sdev);
int spyre_kctx_clear(struct spyre_device *sdev, const u32 *pages, u32 n);

#endif
