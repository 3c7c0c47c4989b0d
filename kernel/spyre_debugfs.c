// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs, below /sys/kernel/debug/accel/N: what the driver and the firmware think, and on cards
 * that allow it a way to make the firmware fail.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include <drm/drm_debugfs.h>

#include "spyre_ctx.h"
#include "spyre_debugfs.h"
#include "spyre_drv.h"
#include "spyre_dump.h"

static struct spyre_device *seq_sdev(struct seq_file *m)
{
	struct drm_debugfs_entry *entry = m->private;

	return to_spyre(entry->dev);
}

static int show_queues(struct seq_file *m, void *unused)
{
	struct spyre_device *sdev = seq_sdev(m);
	struct drm_printer p = drm_seq_file_printer(m);
	int ret = spyre_enter(sdev, NULL);

	if (ret)
		return ret;
	spyre_print_queues(sdev, &p);
	spyre_exit(sdev);
	return 0;
}

static int show_memory(struct seq_file *m, void *unused)
{
	struct spyre_device *sdev = seq_sdev(m);
	struct spyre_mem *mem = &sdev->mem;

	mutex_lock(&mem->lock);
	seq_printf(m, "pages %u mappable %u used %u used-mappable %u dirty %u scrubbing %u scrubbed %llu\n",
		   mem->end - mem->first, mem->map_end - mem->first, mem->used, mem->used_map,
		   mem->ndirty, mem->scrubbing, mem->scrubbed);
	mutex_unlock(&mem->lock);
	mutex_lock(&sdev->tables.lock);
	seq_printf(m, "tables %u used %u\n", sdev->tables.units, sdev->tables.used);
	mutex_unlock(&sdev->tables.lock);
	spin_lock(&sdev->peer_lock);
	seq_printf(m, "imported by other cards %llu\n", sdev->peer_pages);
	spin_unlock(&sdev->peer_lock);
	seq_printf(m, "objects %d host-pages %lld user-pages %lld\n", atomic_read(&sdev->nbos),
		   atomic64_read(&sdev->host_pages), atomic64_read(&sdev->user_pages));
	return 0;
}

static int show_counters(struct seq_file *m, void *unused)
{
	struct spyre_device *sdev = seq_sdev(m);
	u32 v;

	seq_printf(m, "mailbox calls %d timeouts %d late %d polled %d\n",
		   atomic_read(&sdev->mbox.calls), atomic_read(&sdev->mbox.timeouts),
		   atomic_read(&sdev->mbox.late), atomic_read(&sdev->mbox.polled));
	seq_printf(m, "waits missed %d\n", atomic_read(&sdev->waits_missed));
	seq_printf(m, "resets context %d firmware %d flr %d\n", atomic_read(&sdev->reset.context),
		   atomic_read(&sdev->reset.firmware), atomic_read(&sdev->reset.flr));
	for (v = 0; v < sdev->irq.vectors; v++)
		seq_printf(m, "vector %u interrupts %d\n", v,
			   atomic_read(&sdev->irq.vector[v].count));
	spyre_ras_show(sdev, m);
	return 0;
}

/* The firmware's text is not to reach a terminal as it is, but for its lines. */
static void show_lines(struct seq_file *m, const char *text, size_t n)
{
	const char *end;
	size_t len;

	while (n) {
		end = memchr(text, '\n', n);
		len = end ? end - text : n;
		seq_escape_mem(m, text, len, ESCAPE_NP | ESCAPE_HEX, NULL);
		seq_putc(m, '\n');
		len += end ? 1 : 0;
		text += len;
		n -= len;
	}
}

static int show_log(struct seq_file *m, void *unused)
{
	struct spyre_device *sdev = seq_sdev(m);
	char *buf = kvmalloc(SPYRE_LOG_RAM_SIZE, GFP_KERNEL);
	size_t n;

	if (!buf)
		return -ENOMEM;
	/*
	 * A card whose firmware is dead is what this is for: only one that is off cannot be read.
	 */
	down_read(&sdev->reset_sem);
	n = sdev->gone || sdev->suspended ? 0 : spyre_fw_copy_log(sdev, buf, SPYRE_LOG_RAM_SIZE);
	up_read(&sdev->reset_sem);
	show_lines(m, buf, n);
	kvfree(buf);
	return 0;
}

static const struct drm_debugfs_info infos[] = {
	{ "queues", show_queues, 0 },
	{ "memory", show_memory, 0 },
	{ "counters", show_counters, 0 },
	{ "fw_log", show_log, 0 },
};

static ssize_t read_word(const char __user *user, size_t count, char *word, size_t size, u32 *arg)
{
	char buf[32];
	int n;

	if (count >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, user, count))
		return -EFAULT;
	buf[count] = 0;
	*arg = 0;
	n = sscanf(buf, "%15s %u", word, arg);
	return n < 1 ? -EINVAL : 0;
}

/* crash | hang | slow MS | lost-rb N | lost-event N | odd-status STATUS */
static ssize_t inject_write(struct file *filp, const char __user *user, size_t count, loff_t *pos)
{
	static const char * const names[] = {
		[SPYRE_INJECT_CRASH] = "crash",
		[SPYRE_INJECT_HANG] = "hang",
		[SPYRE_INJECT_SLOW] = "slow",
		[SPYRE_INJECT_LOST_RB] = "lost-rb",
		[SPYRE_INJECT_LOST_EVENT] = "lost-event",
		[SPYRE_INJECT_ODD_STATUS] = "odd-status",
	};
	struct spyre_device *sdev = filp->private_data;
	char word[16];
	u32 arg;
	int ret, fault;

	ret = read_word(user, count, word, sizeof(word), &arg);
	if (ret)
		return ret;
	fault = match_string(names, ARRAY_SIZE(names), word);
	if (fault < 0)
		return -EINVAL;
	ret = spyre_enter(sdev, NULL);
	if (ret)
		return ret;
	ret = spyre_mbox_id(sdev, SPYRE_MSG_INJECT, fault, arg);
	spyre_exit(sdev);
	return ret ? ret : count;
}

static const struct file_operations inject_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = inject_write,
};

/* firmware | function | sleep MS */
static ssize_t reset_write(struct file *filp, const char __user *user, size_t count, loff_t *pos)
{
	struct spyre_device *sdev = filp->private_data;
	enum spyre_rung rung;
	char word[16];
	u32 arg;
	int ret;

	ret = read_word(user, count, word, sizeof(word), &arg);
	if (ret)
		return ret;
	if (!strcmp(word, "sleep")) {
		if (arg > 10 * MSEC_PER_SEC)
			return -EINVAL;
		ret = spyre_sleep(sdev, arg);
		return ret ? ret : count;
	}
	if (!strcmp(word, "firmware"))
		rung = SPYRE_RUNG_FIRMWARE;
	else if (!strcmp(word, "function"))
		rung = SPYRE_RUNG_FLR;
	else
		return -EINVAL;
	spyre_reset_request(sdev, rung, "asked for by debugfs");
	flush_work(&sdev->reset.work);
	return count;
}

static const struct file_operations reset_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = reset_write,
};

void spyre_debugfs_init(struct spyre_device *sdev)
{
	struct dentry *root = sdev->drm.debugfs_root;

	drm_debugfs_add_files(&sdev->drm, infos, ARRAY_SIZE(infos));
	debugfs_create_file("reset", 0200, root, sdev, &reset_fops);
	if (spyre_read(sdev, SPYRE_REG_CAPS) & SPYRE_CAP_FAULT_INJECT)
		debugfs_create_file("inject", 0200, root, sdev, &inject_fops);
}
