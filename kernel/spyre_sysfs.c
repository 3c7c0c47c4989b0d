// SPDX-License-Identifier: GPL-2.0-only
/*
 * sysfs attributes of the PCI device: health and identity, for who counts cards without opening
 * one.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "spyre_drv.h"
#include "spyre_sysfs.h"

static ssize_t state_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);
	u32 state = SPYRE_STATE_IN_ERROR;

	/* A reset in progress is the card booting; nobody waits for it here. */
	if (!down_read_trylock(&sdev->reset_sem))
		return sysfs_emit(buf, "%s\n", spyre_state_name(SPYRE_STATE_BOOTING));
	if (sdev->gone)
		state = SPYRE_STATE_REMOVED;
	else if (sdev->suspended)
		state = SPYRE_STATE_OFFLINE;
	else if (sdev->card_ok)
		state = spyre_read(sdev, SPYRE_REG_STATE);
	up_read(&sdev->reset_sem);
	return sysfs_emit(buf, "%s\n", spyre_state_name(state));
}
static DEVICE_ATTR_RO(state);

static ssize_t serial_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%s\n", sdev->serial);
}
static DEVICE_ATTR_RO(serial);

static ssize_t fw_version_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);
	int n;

	down_read(&sdev->reset_sem);
	n = sysfs_emit(buf, "%s\n", sdev->info.version);
	up_read(&sdev->reset_sem);
	return n;
}
static DEVICE_ATTR_RO(fw_version);

static ssize_t protocol_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);
	u32 proto;

	down_read(&sdev->reset_sem);
	proto = sdev->info.proto;
	up_read(&sdev->reset_sem);
	return sysfs_emit(buf, "%u.%u\n", proto >> 16, proto & 0xffff);
}
static DEVICE_ATTR_RO(protocol);

static ssize_t cores_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);
	u32 cores;

	down_read(&sdev->reset_sem);
	cores = sdev->info.cores;
	up_read(&sdev->reset_sem);
	return sysfs_emit(buf, "0x%08x\n", cores);
}
static DEVICE_ATTR_RO(cores);

static ssize_t mem_total_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%llu\n",
			  (u64)(sdev->mem.end - sdev->mem.first) << SPYRE_PAGE_SHIFT);
}
static DEVICE_ATTR_RO(mem_total);

static ssize_t mem_used_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);
	u64 used;

	mutex_lock(&sdev->mem.lock);
	used = sdev->mem.used;
	mutex_unlock(&sdev->mem.lock);
	return sysfs_emit(buf, "%llu\n", used << SPYRE_PAGE_SHIFT);
}
static DEVICE_ATTR_RO(mem_used);

static ssize_t reset_count_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%d\n", atomic_read(&sdev->reset.firmware) +
			  atomic_read(&sdev->reset.flr));
}
static DEVICE_ATTR_RO(reset_count);

static ssize_t reset_generation_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%u\n", READ_ONCE(sdev->gen));
}
static DEVICE_ATTR_RO(reset_generation);

static struct attribute *spyre_attrs[] = {
	&dev_attr_state.attr,
	&dev_attr_serial.attr,
	&dev_attr_fw_version.attr,
	&dev_attr_protocol.attr,
	&dev_attr_cores.attr,
	&dev_attr_mem_total.attr,
	&dev_attr_mem_used.attr,
	&dev_attr_reset_count.attr,
	&dev_attr_reset_generation.attr,
	NULL
};

static const struct attribute_group spyre_group = {
	.name = "spyre",
	.attrs = spyre_attrs,
};

const struct attribute_group *spyre_sysfs_groups[] = {
	&spyre_group,
	NULL
};
