// SPDX-License-Identifier: GPL-2.0-only
/*
 * Firmware: load, boot, stop, log.
 *
 * The card's boot ROM copies the image out of the host's reach before it checks it, so the driver
 * leaves all checks but the length to it and turns its answer into an error that says what to do.
 */
#include <linux/delay.h>
#include <linux/firmware.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "spyre_drv.h"
#include "spyre_trace.h"

#define SPYRE_FW_NAME	"spyre/spyre-dd2-1.fw"

static char *firmware;
module_param(firmware, charp, 0644);
MODULE_PARM_DESC(firmware, "firmware file below the firmware folder (default " SPYRE_FW_NAME ")");

static unsigned int boot_timeout_ms = 10000;
module_param(boot_timeout_ms, uint, 0644);
MODULE_PARM_DESC(boot_timeout_ms, "how long the firmware may take to boot (default 10000)");

MODULE_FIRMWARE(SPYRE_FW_NAME);

const char *spyre_state_name(u32 state)
{
	static const char * const names[] = {
		"UNSPECIFIED", "OFFLINE", "BOOTING", "SHUTTING_DOWN", "ONLINE",
		"RUNNING_DIAGNOSTICS", "IN_ERROR", "REMOVED",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "UNKNOWN";
}

/* Head of the card's log ring and its size; 0 when there is none. */
static u32 log_space(struct spyre_device *sdev, u32 *head)
{
	void __iomem *log = sdev->regs + SPYRE_REG_LOG_RAM;
	u32 space;

	*head = 0;
	if (readl(log + offsetof(struct spyre_log, magic)) != SPYRE_LOG_MAGIC)
		return 0;
	space = readl(log + offsetof(struct spyre_log, size));
	*head = readl(log + offsetof(struct spyre_log, head));
	return space > SPYRE_LOG_RAM_SIZE - sizeof(struct spyre_log) ? 0 : space;
}

/*
 * Copies @n bytes that end at @end, at most the ring's size. The head runs on meanwhile: a torn
 * line is harmless.
 */
static void log_copy(struct spyre_device *sdev, u32 space, u32 end, char *buf, u32 n)
{
	void __iomem *text = sdev->regs + SPYRE_REG_LOG_RAM + sizeof(struct spyre_log);
	u32 word = 0, at = U32_MAX, i;

	for (i = 0; i < n; i++) {
		u32 pos = (end - n + i) % space;

		/* Registers take aligned 32-bit accesses only. */
		if (at != (pos & ~3u)) {
			at = pos & ~3u;
			word = readl(text + at);
		}
		buf[i] = word >> 8 * (pos & 3);
	}
}

/* The newest text of the card's log. */
size_t spyre_fw_copy_log(struct spyre_device *sdev, char *buf, size_t size)
{
	u32 head, space = log_space(sdev, &head);
	u32 n = min3(head, space, (u32)size);

	if (n)
		log_copy(sdev, space, head, buf, n);
	return n;
}

/* Prints whole lines; how many bytes those are. */
static size_t print_lines(struct spyre_device *sdev, const char *buf, size_t n, bool error)
{
	size_t i, start = 0;

	for (i = 0; i < n; i++) {
		int len = min_t(size_t, i - start, 200);

		if (buf[i] != '\n')
			continue;
		/* %*pE escapes whatever the firmware wrote that is no text. */
		if (error)
			drm_err(&sdev->drm, "firmware: %*pEp\n", len, buf + start);
		else
			drm_dbg(&sdev->drm, "firmware: %*pEp\n", len, buf + start);
		start = i + 1;
	}
	return start;
}

void spyre_fw_print_log(struct spyre_device *sdev, u32 max)
{
	char *buf = kvmalloc(max, GFP_KERNEL);
	size_t n, skip = 0;

	if (!buf)
		return;
	n = spyre_fw_copy_log(sdev, buf, max);
	/* The first line is whole only if the ring was shorter than asked. */
	if (n == max)
		while (skip < n && buf[skip++] != '\n')
			;
	print_lines(sdev, buf + skip, n - skip, true);
	kvfree(buf);
}

/* What is new since the last call; a line that is not complete yet is left for the next one. */
void spyre_fw_log_news(struct spyre_device *sdev)
{
	u32 *seen = &sdev->fw.log_seen;
	u32 head, space = log_space(sdev, &head);
	u32 n = min_t(u32, head - *seen, min_t(u32, space, sizeof(sdev->fw.news)));

	lockdep_assert_held(&sdev->mbox.evt_lock);
	if (!n)
		return;
	log_copy(sdev, space, head, sdev->fw.news, n);
	*seen = head - n + print_lines(sdev, sdev->fw.news, n, false);
}

/* Name of the firmware file, to be freed; NULL without memory. */
static char *wanted_name(void)
{
	char *name;

	/* Whoever writes the parameter frees the text that was there. */
	kernel_param_lock(THIS_MODULE);
	name = kstrdup(firmware && *firmware ? firmware : SPYRE_FW_NAME, GFP_KERNEL);
	kernel_param_unlock(THIS_MODULE);
	return name;
}

static int load_image(struct spyre_device *sdev, const char *name)
{
	const struct firmware *fw;
	int ret;

	ret = request_firmware(&fw, name, &sdev->pdev->dev);
	if (ret) {
		drm_err(&sdev->drm,
			"firmware %s not loaded (%d): install it below /lib/firmware or name another with the parameter firmware=\n",
			name, ret);
		return ret;
	}
	if (fw->size < SPYRE_FW_HEADER_SIZE) {
		drm_err(&sdev->drm, "firmware %s is truncated: %zu bytes, the header alone has %u\n",
			name, fw->size, SPYRE_FW_HEADER_SIZE);
		release_firmware(fw);
		return -ENODATA;
	}
	if (fw->size > SPYRE_AREA_FW_SIZE) {
		drm_err(&sdev->drm, "firmware %s is corrupt: %zu bytes, at most %u are possible\n",
			name, fw->size, SPYRE_AREA_FW_SIZE);
		release_firmware(fw);
		return -EBADMSG;
	}
	sdev->fw.image = fw;
	return 0;
}

int spyre_fw_load(struct spyre_device *sdev)
{
	char *name = wanted_name();
	int ret = name ? load_image(sdev, name) : -ENOMEM;

	kfree(name);
	return ret;
}

void spyre_fw_unload(struct spyre_device *sdev)
{
	release_firmware(sdev->fw.image);
	sdev->fw.image = NULL;
}

/* Stops the management core. Card memory stays; the core touches host memory no more. */
void spyre_fw_stop(struct spyre_device *sdev)
{
	u32 ctrl = spyre_read(sdev, SPYRE_REG_MCU_CTRL);

	if (ctrl == U32_MAX)
		return;
	spyre_write(sdev, SPYRE_REG_MCU_CTRL, ctrl & ~SPYRE_MCU_CTRL_RUN);
	/* Read back: returns when the stop has taken effect. */
	spyre_read(sdev, SPYRE_REG_MCU_CTRL);
}

static int boot_error(struct spyre_device *sdev, u32 status)
{
	static const struct {
		u32 status;
		int error;
		const char *text;
	} errors[] = {
		{ SPYRE_BOOT_BAD_ADDRESS, -EFAULT,
		  "was not found by the card where the driver put it" },
		{ SPYRE_BOOT_BAD_MAGIC, -EBADMSG,
		  "is corrupt: no firmware image; install it again" },
		{ SPYRE_BOOT_BAD_HEADER, -EBADMSG, "is corrupt: bad header; install it again" },
		{ SPYRE_BOOT_BAD_LENGTH, -ENODATA, "is truncated; install it again" },
		{ SPYRE_BOOT_BAD_DIGEST, -EBADMSG, "is corrupt: digest differs; install it again" },
		{ SPYRE_BOOT_TOO_OLD, -EPROTO, "is too old for this card; install a newer one" },
		{ SPYRE_BOOT_TOO_NEW, -EPROTO,
		  "is too new for this card; install one for its hardware version" },
		{ SPYRE_BOOT_BAD_SIGNATURE, -EKEYREJECTED,
		  "is signed with a key this card does not hold" },
		{ SPYRE_BOOT_CRASHED, -EIO, "crashed while booting" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		if (errors[i].status != status)
			continue;
		drm_err(&sdev->drm, "firmware %s (boot status %u)\n", errors[i].text, status);
		return errors[i].error;
	}
	drm_err(&sdev->drm, "firmware refused for a reason this driver does not know (boot status %u)\n",
		status);
	return -EIO;
}

static int wait_online(struct spyre_device *sdev)
{
	unsigned int timeout = clamp(READ_ONCE(boot_timeout_ms), 100u, 600000u), naps = 0;
	unsigned long deadline = jiffies + msecs_to_jiffies(timeout);
	u32 status, state;

	for (;;) {
		bool late = time_after(jiffies, deadline);

		status = spyre_read(sdev, SPYRE_REG_BOOT_STATUS);
		state = spyre_read(sdev, SPYRE_REG_STATE);
		if (status == U32_MAX && state == U32_MAX) {
			drm_err(&sdev->drm, "card does not answer while booting\n");
			return -ENODEV;
		}
		if (status != SPYRE_BOOT_IDLE && status != SPYRE_BOOT_RUNNING)
			return boot_error(sdev, status);
		if (status == SPYRE_BOOT_RUNNING && state == SPYRE_STATE_ONLINE)
			return 0;
		if (state == SPYRE_STATE_IN_ERROR) {
			drm_err(&sdev->drm, "firmware failed its boot at step 0x%x\n",
				spyre_read(sdev, SPYRE_REG_BOOT_PROGRESS));
			return -EREMOTEIO;
		}
		if (late) {
			drm_err(&sdev->drm,
				"firmware did not boot in %u ms (boot status %u, step 0x%x, state %s)\n",
				timeout, status, spyre_read(sdev, SPYRE_REG_BOOT_PROGRESS),
				spyre_state_name(state));
			return -ETIMEDOUT;
		}
		if (naps++ < 100)
			usleep_range(100, 200);
		else
			usleep_range(2000, 4000);
	}
}

static int get_info(struct spyre_device *sdev)
{
	struct spyre_fw_info *info = &sdev->info;
	struct spyre_msg_info msg;
	unsigned int i;
	u32 v;
	int ret;

	ret = spyre_mbox_call(sdev, SPYRE_MSG_GET_INFO, NULL, 0, &msg, sizeof(msg));
	if (ret)
		return ret;
	info->proto = le32_to_cpu(msg.proto);
	info->contexts = min_t(u32, le32_to_cpu(msg.contexts), SPYRE_AREA_CONTEXTS);
	info->queues = min_t(u32, le32_to_cpu(msg.queues), sdev->db_pages);
	for (i = 0; i < ARRAY_SIZE(info->engines); i++)
		info->engines[i] = le32_to_cpu(msg.engines[i]);
	info->cores = le32_to_cpu(msg.cores);
	info->ring_min = SPYRE_RING_MIN;
	info->ring_max = SPYRE_RING_MAX;
	v = le32_to_cpu(msg.ring_min);
	if (is_power_of_2(v))
		info->ring_min = clamp(v, SPYRE_RING_MIN, SPYRE_RING_MAX);
	v = le32_to_cpu(msg.ring_max);
	if (is_power_of_2(v))
		info->ring_max = clamp(v, info->ring_min, SPYRE_RING_MAX);
	info->symbols = le32_to_cpu(msg.symbols);
	memcpy(info->version, msg.version, sizeof(msg.version));
	info->version[sizeof(info->version) - 1] = 0;
	for (i = 0; info->version[i]; i++)
		if (info->version[i] < ' ' || info->version[i] > '~')
			info->version[i] = '?';
	/* One context is our own, and it has a queue. */
	if (info->contexts < 3 || info->queues < 2) {
		drm_err(&sdev->drm, "firmware offers %u contexts and %u queues: too few to work with\n",
			info->contexts, info->queues);
		return -EPROTO;
	}
	return 0;
}

/*
 * Boots the image that was loaded at probe. The caller holds reset_sem for writing or is probe.
 * After an error the core is stopped. -EREMOTEIO: the firmware ran and found the card unfit.
 */
int spyre_fw_boot(struct spyre_device *sdev)
{
	u64 begin = ktime_get_ns();
	u32 version;
	int ret;

	if (spyre_read(sdev, SPYRE_REG_ID) != SPYRE_ID_MAGIC) {
		drm_err(&sdev->drm, "card does not answer: identity register reads 0x%08x\n",
			spyre_read(sdev, SPYRE_REG_ID));
		return -ENODEV;
	}
	spyre_fw_stop(sdev);
	sdev->fw.log_seen = 0;
	memcpy_toio(sdev->area + SPYRE_AREA_FW, sdev->fw.image->data, sdev->fw.image->size);
	/* The image is in card memory before the boot ROM is told of it. */
	wmb();
	spyre_write64(sdev, SPYRE_REG_FW_ADDR, SPYRE_AREA_FW);
	spyre_write(sdev, SPYRE_REG_FW_LEN, sdev->fw.image->size);
	spyre_mbox_start(sdev);
	spyre_irq_start(sdev);
	spyre_write(sdev, SPYRE_REG_MCU_CTRL, SPYRE_MCU_CTRL_RUN);

	ret = wait_online(sdev);
	if (ret)
		goto fail;
	version = spyre_read(sdev, SPYRE_REG_FW_VERSION);
	if (version >> 16 != SPYRE_PROTO_MAJOR) {
		drm_err(&sdev->drm,
			"firmware is too %s for this driver: it speaks protocol %u.%u, the driver %u.%u; install a matching pair\n",
			version >> 16 < SPYRE_PROTO_MAJOR ? "old" : "new", version >> 16,
			version & 0xffff, SPYRE_PROTO_MAJOR, SPYRE_PROTO_MINOR);
		ret = -EPROTO;
		goto fail;
	}
	ret = get_info(sdev);
	if (ret)
		goto fail;
	trace_spyre_boot(sdev->drm.dev, ktime_get_ns() - begin, version);
	drm_dbg(&sdev->drm, "firmware %s online after %llu us\n", sdev->info.version,
		(ktime_get_ns() - begin) / 1000);
	return 0;
fail:
	spyre_fw_print_log(sdev, SZ_2K);
	spyre_fw_stop(sdev);
	spyre_mbox_stop(sdev, -EIO);
	return ret;
}
