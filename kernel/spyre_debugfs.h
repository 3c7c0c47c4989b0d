/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_DEBUGFS_H
#define SPYRE_DEBUGFS_H

struct spyre_device;

void spyre_debugfs_init(struct spyre_device *sdev);

#endif
