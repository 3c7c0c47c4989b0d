/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_TELEMETRY_H
#define SPYRE_TELEMETRY_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <drm/spyre_accel.h>

struct device;
struct spyre_device;

/**
 * struct spyre_telemetry - sensors, read from the card at most every 100 ms
 * @lock: protects the rest
 * @data: last reading
 * @throttled: firmware slows compute down
 * @taken: jiffies of the last reading
 * @valid: there is one
 * @hwmon: hwmon device or NULL
 * @notify: tells @hwmon's listeners of a thermal event; not done where the event is read, as that
 *	    allocates memory
 */
struct spyre_telemetry {
	struct mutex lock;	/* see above */
	struct drm_spyre_telemetry data;
	u32 throttled;
	unsigned long taken;
	bool valid;
	struct device *hwmon;
	struct work_struct notify;
};

int spyre_telemetry_get(struct spyre_device *sdev, struct drm_spyre_telemetry *out, u32 *throttled);
void spyre_telemetry_thermal(struct spyre_device *sdev, u32 what, u32 temp_mc);
void spyre_telemetry_init(struct spyre_device *sdev);
void spyre_telemetry_fini(struct spyre_device *sdev);
void spyre_hwmon_init(struct spyre_device *sdev);

#endif
