// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sensors: one cached reading serves ioctls, hwmon, fdinfo readers and everybody else who looks.
 */
#include <linux/hwmon.h>

#include "spyre_drv.h"

#define TELEMETRY_AGE	msecs_to_jiffies(100)

/**
 * spyre_telemetry_get - the last reading, or a new one if it is older than 100 ms
 * @sdev: card
 * @out: reading
 * @throttled: out, may be NULL
 *
 * Context: takes reset_sem for reading; must not be held by the caller.
 * Return: 0, or -ENODEV if the card is away.
 */
int spyre_telemetry_get(struct spyre_device *sdev, struct drm_spyre_telemetry *out, u32 *throttled)
{
	struct spyre_telemetry *t = &sdev->telemetry;
	struct spyre_msg_telemetry msg;
	unsigned int i;
	int ret;

	ret = spyre_enter(sdev, NULL);
	if (ret)
		return ret;
	mutex_lock(&t->lock);
	if (!t->valid || time_after(jiffies, t->taken + TELEMETRY_AGE)) {
		ret = spyre_mbox_call(sdev, SPYRE_MSG_GET_TELEMETRY, NULL, 0, &msg, sizeof(msg));
		if (ret)
			goto out;
		t->data.temp_mc = le32_to_cpu(msg.temp_mc);
		t->data.power_mw = le32_to_cpu(msg.power_mw);
		t->data.energy = le64_to_cpu(msg.energy);
		for (i = 0; i < ARRAY_SIZE(t->data.busy); i++)
			t->data.busy[i] = le64_to_cpu(msg.busy[i]);
		t->data.mem_rd = le64_to_cpu(msg.mem_rd);
		t->data.mem_wr = le64_to_cpu(msg.mem_wr);
		t->data.ecc_ce = le32_to_cpu(msg.ecc_ce);
		t->data.ecc_ue = le32_to_cpu(msg.ecc_ue);
		t->data.soc_time = spyre_soc_time(sdev);
		t->throttled = le32_to_cpu(msg.throttled);
		t->taken = jiffies;
		t->valid = true;
	}
	*out = t->data;
	if (throttled)
		*throttled = t->throttled;
out:
	mutex_unlock(&t->lock);
	spyre_exit(sdev);
	return ret;
}

static void notify_work(struct work_struct *work)
{
	struct spyre_telemetry *t = container_of(work, struct spyre_telemetry, notify);

	hwmon_notify_event(t->hwmon, hwmon_temp, hwmon_temp_max_alarm, 0);
}

void spyre_telemetry_init(struct spyre_device *sdev)
{
	INIT_WORK(&sdev->telemetry.notify, notify_work);
}

/* Before the hwmon device goes. */
void spyre_telemetry_fini(struct spyre_device *sdev)
{
	disable_work_sync(&sdev->telemetry.notify);
}

/* From the reader of the event ring. */
void spyre_telemetry_thermal(struct spyre_device *sdev, u32 what, u32 temp_mc)
{
	switch (what) {
	case 1:
		drm_warn(&sdev->drm, "too hot or over its power limit at %u mC: compute is slowed down\n",
			 temp_mc);
		break;
	case 2:
		drm_info(&sdev->drm, "cooled down to %u mC: full speed again\n", temp_mc);
		break;
	case 3:
		drm_err(&sdev->drm, "shut down by its firmware at %u mC\n", temp_mc);
		break;
	default:
		dev_warn_ratelimited(sdev->drm.dev, "thermal event %u at %u mC\n", what, temp_mc);
		return;
	}
	/* Pairs with the release in spyre_hwmon_init(). */
	if (smp_load_acquire(&sdev->telemetry.hwmon))
		schedule_work(&sdev->telemetry.notify);
}

static umode_t is_visible(const void *data, enum hwmon_sensor_types type, u32 attr, int channel)
{
	return 0444;
}

static int read_number(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel,
		       long *value)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);
	struct drm_spyre_telemetry t;
	u32 throttled;
	int ret;

	if (type == hwmon_temp && attr == hwmon_temp_max) {
		*value = SPYRE_TEMP_THROTTLE_MC;
		return 0;
	}
	if (type == hwmon_temp && attr == hwmon_temp_crit) {
		*value = SPYRE_TEMP_TRIP_MC;
		return 0;
	}
	if (type == hwmon_power && attr == hwmon_power_max) {
		*value = SPYRE_POWER_MAX_MW * 1000L;
		return 0;
	}
	ret = spyre_telemetry_get(sdev, &t, &throttled);
	if (ret)
		return ret;
	if (type == hwmon_temp && attr == hwmon_temp_input)
		*value = t.temp_mc;
	else if (type == hwmon_temp && attr == hwmon_temp_max_alarm)
		*value = throttled;
	else if (type == hwmon_power && attr == hwmon_power_input)
		*value = 1000l * t.power_mw;
	else
		return -EOPNOTSUPP;
	return 0;
}

static int read_string(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel,
		       const char **text)
{
	*text = type == hwmon_temp ? "SoC" : "card";
	return 0;
}

static const struct hwmon_ops ops = {
	.is_visible = is_visible,
	.read = read_number,
	.read_string = read_string,
};

static const struct hwmon_channel_info * const channels[] = {
	HWMON_CHANNEL_INFO(temp, HWMON_T_INPUT | HWMON_T_MAX | HWMON_T_CRIT | HWMON_T_MAX_ALARM |
			   HWMON_T_LABEL),
	HWMON_CHANNEL_INFO(power, HWMON_P_INPUT | HWMON_P_MAX | HWMON_P_LABEL),
	NULL
};

static const struct hwmon_chip_info chip = {
	.ops = &ops,
	.info = channels,
};

/* A card without sensors in hwmon is still a card. */
void spyre_hwmon_init(struct spyre_device *sdev)
{
	struct device *hwmon;

	hwmon = devm_hwmon_device_register_with_info(&sdev->pdev->dev, "spyre", sdev, &chip, NULL);
	if (IS_ERR(hwmon))
		drm_warn(&sdev->drm, "no hwmon sensors (%ld)\n", PTR_ERR(hwmon));
	else
		/* Pairs with the acquire in spyre_telemetry_thermal(). */
		smp_store_release(&sdev->telemetry.hwmon, hwmon);
}
