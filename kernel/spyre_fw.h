/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_FW_DRV_H
#define SPYRE_FW_DRV_H

#include <linux/types.h>

struct firmware;
struct spyre_device;
struct drm_printer;

/* What GET_INFO said, checked and cut to what this driver handles. */
struct spyre_fw_info {
	u32 proto;
	u32 contexts;		/* ids 1 to contexts - 1 */
	u32 queues;
	u32 engines[5];
	u32 cores;
	u32 ring_min;
	u32 ring_max;
	u32 symbols;
	char version[33];
};

/**
 * struct spyre_fw - the image, kept so that a restart needs no file system
 * @image: as loaded at probe, constant afterwards
 * @log_seen: bytes of the card's log that were printed; under &spyre_mbox.evt_lock
 * @news: what is printed next; as @log_seen
 */
struct spyre_fw {
	const struct firmware *image;
	u32 log_seen;
	char news[4096];
};

int spyre_fw_load(struct spyre_device *sdev);
void spyre_fw_unload(struct spyre_device *sdev);
int spyre_fw_boot(struct spyre_device *sdev);
void spyre_fw_stop(struct spyre_device *sdev);
void spyre_fw_print_log(struct spyre_device *sdev, u32 max);
size_t spyre_fw_copy_log(struct spyre_device *sdev, char *buf, size_t size);
void spyre_fw_log_news(struct spyre_device *sdev);
const char *spyre_state_name(u32 state);

#endif
