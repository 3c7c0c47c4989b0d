/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_SYSFS_H
#define SPYRE_SYSFS_H

extern const struct attribute_group *spyre_sysfs_groups[];

#endif
