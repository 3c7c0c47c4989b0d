// SPDX-License-Identifier: MIT
/*
 * Backend "drm": cards behind the kernel driver. libdrm knows no accel nodes, so they are found in
 * sysfs; it serves for ioctls.
 */
#include "backend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

#include <spyre/hw.h>

#define ACCEL_CLASS	"/sys/class/accel"

struct drm_dev {
	int fd;
};

static int drm_init(void **state, char *text, size_t size)
{
	(void)text;
	(void)size;
	*state = NULL;
	return 0;
}

static void drm_exit(void *state)
{
	(void)state;
}

/* First line of dir/name without its newline; false if it cannot be read. */
static bool read_line(const char *dir, const char *name, char *buf, size_t size)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

static unsigned long read_hex(const char *dir, const char *name)
{
	char line[64];

	return read_line(dir, name, line, sizeof(line)) ? strtoul(line, NULL, 0) : 0;
}

/* "32.0 GT/s PCIe" as 320. */
static uint32_t read_speed(const char *dir, const char *name)
{
	char line[64];

	return read_line(dir, name, line, sizeof(line)) ? (uint32_t)(strtod(line, NULL) * 10 + 0.5)
							: 0;
}

static uint32_t read_state(const char *dir)
{
	static const struct {
		const char *name;
		uint32_t state;
	} names[] = {
		{ "offline", SPYRE_STATE_OFFLINE },
		{ "booting", SPYRE_STATE_BOOTING },
		{ "shutting-down", SPYRE_STATE_SHUTTING_DOWN },
		{ "online", SPYRE_STATE_ONLINE },
		{ "running-diagnostics", SPYRE_STATE_RUNNING_DIAGNOSTICS },
		{ "in-error", SPYRE_STATE_IN_ERROR },
		{ "removed", SPYRE_STATE_REMOVED },
	};
	char line[64];
	size_t i, k;

	if (!read_line(dir, "spyre/state", line, sizeof(line)))
		return SPYRE_STATE_UNSPECIFIED;
	for (k = 0; line[k]; k++) {
		if (line[k] == '_' || line[k] == ' ')
			line[k] = '-';
		else if (line[k] >= 'A' && line[k] <= 'Z')
			line[k] += 'a' - 'A';
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(line, names[i].name))
			return names[i].state;
	return SPYRE_STATE_UNSPECIFIED;
}

static bool look_at(int number, struct rt_card *card)
{
	char dir[64], real[PATH_MAX], line[64];

	snprintf(dir, sizeof(dir), ACCEL_CLASS "/accel%d/device", number);
	if (read_hex(dir, "vendor") != SPYRE_PCI_VENDOR ||
	    read_hex(dir, "device") != SPYRE_PCI_DEVICE_PF)
		return false;
	memset(card, 0, sizeof(*card));
	card->number = number;
	snprintf(card->info.name, sizeof(card->info.name), "IBM Spyre");
	snprintf(card->info.node, sizeof(card->info.node), "/dev/accel/accel%d", number);
	if (realpath(dir, real)) {
		const char *slash = strrchr(real, '/');

		snprintf(card->syspath, sizeof(card->syspath), "%.255s", real);
		if (slash)
			snprintf(card->info.pci_address, sizeof(card->info.pci_address), "%.15s",
				 slash + 1);
	}
	card->info.numa_node = read_line(dir, "numa_node", line, sizeof(line)) ? atoi(line) : -1;
	if (!read_line(dir, "spyre/serial", card->info.serial, sizeof(card->info.serial)))
		card->info.serial[0] = '\0';
	card->info.link_speed = read_speed(dir, "current_link_speed");
	card->info.link_speed_max = read_speed(dir, "max_link_speed");
	card->info.link_width = read_hex(dir, "current_link_width");
	card->info.link_width_max = read_hex(dir, "max_link_width");
	card->info.state = read_state(dir);
	/* A driver that does not say the state made the node after the card came online. */
	card->works = card->info.state == SPYRE_STATE_UNSPECIFIED ||
		      card->info.state == SPYRE_STATE_ONLINE ||
		      card->info.state == SPYRE_STATE_BOOTING ||
		      card->info.state == SPYRE_STATE_RUNNING_DIAGNOSTICS;
	return true;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int drm_scan(void *state, struct rt_card *cards, int max)
{
	int numbers[256], count = 0, found = 0, i, n;
	struct dirent *de;
	DIR *d;

	(void)state;
	d = opendir(ACCEL_CLASS);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while ((de = readdir(d)))
		if (sscanf(de->d_name, "accel%d", &n) == 1 && count < 256)
			numbers[count++] = n;
	closedir(d);
	qsort(numbers, count, sizeof(numbers[0]), by_number);
	for (i = 0; i < count && found < max; i++)
		if (look_at(numbers[i], &cards[found]))
			found++;
	return found;
}

static int drm_open(void *state, const struct rt_card *card, void **dev, char *text, size_t size)
{
	struct drm_dev *d;
	int err;

	(void)state;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->fd = open(card->info.node, O_RDWR | O_CLOEXEC);
	if (d->fd < 0) {
		err = errno;
		free(d);
		if (err == EACCES || err == EPERM)
			snprintf(text, size, "%s: permission denied; join the group that owns it "
				 "(usually render) or install the udev rule", card->info.node);
		else
			snprintf(text, size, "%s: %s", card->info.node, strerror(err));
		return -err;
	}
	*dev = d;
	return 0;
}

static void drm_close(void *dev)
{
	struct drm_dev *d = dev;

	close(d->fd);
	free(d);
}

static int drm_ioctl(void *dev, unsigned long request, void *arg)
{
	struct drm_dev *d = dev;

	return drmIoctl(d->fd, request, arg) ? -errno : 0;
}

static void *drm_map(void *dev, uint64_t offset, size_t size, bool write)
{
	struct drm_dev *d = dev;
	void *p;

	p = mmap(NULL, size, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, d->fd, offset);
	return p == MAP_FAILED ? NULL : p;
}

static void drm_unmap(void *dev, void *ptr, size_t size)
{
	(void)dev;
	munmap(ptr, size);
}

const struct rt_backend rt_backend_drm = {
	.abi = RT_BACKEND_ABI,
	.name = "drm",
	.init = drm_init,
	.exit = drm_exit,
	.scan = drm_scan,
	.open = drm_open,
	.close = drm_close,
	.ioctl = drm_ioctl,
	.map = drm_map,
	.unmap = drm_unmap,
};
