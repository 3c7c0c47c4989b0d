/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_DUMP_H
#define SPYRE_DUMP_H

struct drm_printer;
struct spyre_device;

void spyre_dump(struct spyre_device *sdev, const char *reason);
void spyre_print_queues(struct spyre_device *sdev, struct drm_printer *p);

#endif
