// SPDX-License-Identifier: GPL-2.0-only
/*
 * RAS records. Each goes into the card's log and, if it has a context, into that context's own,
 * so that one user's errors push nobody else's out. Errors are counted as well: a log forgets.
 */
#include <linux/capability.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <spyre/ras.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_queue.h"
#include "spyre_trace.h"

int spyre_ras_log_init(struct spyre_ras_log *log, u32 size)
{
	spin_lock_init(&log->lock);
	log->size = size;
	log->records = kvcalloc(size, sizeof(*log->records), GFP_KERNEL_ACCOUNT);
	return log->records ? 0 : -ENOMEM;
}

void spyre_ras_log_fini(struct spyre_ras_log *log)
{
	kvfree(log->records);
	log->records = NULL;
}

/* --- Counters ------------------------------------------------------------------------------- */

/*
 * What is counted, and as which kinds. The index is the counter's number in netlink (error id):
 * appended to, never reordered.
 */
static const struct {
	u32 code;
	u8 kinds;
} counters[SPYRE_RAS_COUNTERS] = {
	/* Whatever is not below. */
	{ 0, BIT(SPYRE_RAS_CORRECTED) | BIT(SPYRE_RAS_UNCORRECTED) | BIT(SPYRE_RAS_JOB) },
	{ SPYRE_RAS_SOFT_FAIL, BIT(SPYRE_RAS_UNCORRECTED) | BIT(SPYRE_RAS_JOB) },
	{ SPYRE_RAS_UNSUPPORTED_MSG, BIT(SPYRE_RAS_UNCORRECTED) },
	{ SPYRE_RAS_COMPUTE_HW, BIT(SPYRE_RAS_UNCORRECTED) },
	{ SPYRE_RAS_BOOTADDR, BIT(SPYRE_RAS_JOB) },
	{ SPYRE_RAS_MSG_TIMEOUT, BIT(SPYRE_RAS_UNCORRECTED) },
	{ SPYRE_RAS_BAD_PROGRAM, BIT(SPYRE_RAS_JOB) },
	{ SPYRE_RAS_DEADLOCK, BIT(SPYRE_RAS_JOB) },
	{ SPYRE_RAS_WATCHDOG, BIT(SPYRE_RAS_JOB) },
	{ SPYRE_RAS_QUEUE, BIT(SPYRE_RAS_JOB) },
	{ SPYRE_RAS_MEM_CE, BIT(SPYRE_RAS_CORRECTED) },
	{ SPYRE_RAS_MEM_UE, BIT(SPYRE_RAS_UNCORRECTED) },
	{ SPYRE_RAS_CORE_UNAVAILABLE, BIT(SPYRE_RAS_UNCORRECTED) },
	{ SPYRE_RAS_THERMAL, BIT(SPYRE_RAS_UNCORRECTED) },
	{ SPYRE_RAS_TIMEOUT, BIT(SPYRE_RAS_JOB) },
	{ SPYRE_RAS_FIRMWARE, BIT(SPYRE_RAS_UNCORRECTED) },
};

static const char * const kind_name[SPYRE_RAS_KINDS] = {
	"correctable-errors", "uncorrectable-errors", "job-errors",
};

static void count(struct spyre_device *sdev, const struct drm_spyre_ras *rec)
{
	enum spyre_ras_kind kind = SPYRE_RAS_UNCORRECTED;
	u32 i;

	if (rec->category == SPYRE_CAT_SOFTWARE)
		kind = SPYRE_RAS_JOB;
	else if (rec->severity < SPYRE_SEV_ERROR)
		kind = SPYRE_RAS_CORRECTED;
	/* A deadlock fills several records; all but the first begin at a later unit. */
	if (rec->code == SPYRE_RAS_DEADLOCK && rec->err_pc)
		return;
	for (i = ARRAY_SIZE(counters) - 1; i; i--)
		if (counters[i].code == rec->code && counters[i].kinds & BIT(kind))
			break;
	atomic_inc(&sdev->ras_counts[kind].count[i]);
}

/*
 * May be called until spyre_compat_ras_drain() is through, so it sleeps nowhere. A card that is
 * away keeps its counts.
 */
static int query_counter(struct drm_ras_node *node, u32 id, const char **name, u32 *val)
{
	struct spyre_ras_counts *c = container_of(node, struct spyre_ras_counts, node);

	/* Such a number is left out of the node's list. */
	if (!(counters[id].kinds & BIT(c->kind)))
		return -ENOENT;
	*name = spyre_ras_name(counters[id].code);
	*val = atomic_read(&c->count[id]);
	return 0;
}

/* A card without counters in netlink is still a card. */
void spyre_ras_init(struct spyre_device *sdev)
{
	u32 kind, i;
	int ret;

	for (kind = 0; kind < SPYRE_RAS_KINDS; kind++) {
		struct spyre_ras_counts *c = &sdev->ras_counts[kind];

		c->kind = kind;
		c->node.device_name = pci_name(sdev->pdev);
		c->node.node_name = kind_name[kind];
		c->node.type = DRM_RAS_NODE_TYPE_ERROR_COUNTER;
		/* The core takes one that is left out for an error if it is the last. */
		for (i = 0; i < ARRAY_SIZE(counters); i++)
			if (counters[i].kinds & BIT(kind))
				c->node.error_counter_range.last = i;
		c->node.query_error_counter = query_counter;
		ret = drm_ras_node_register(&c->node);
		c->listed = !ret;
		if (ret)
			drm_warn(&sdev->drm, "no counters of %s in netlink (%d)\n",
				 kind_name[kind], ret);
	}
}

void spyre_ras_fini(struct spyre_device *sdev)
{
	u32 kind;

	for (kind = 0; kind < SPYRE_RAS_KINDS; kind++) {
		struct spyre_ras_counts *c = &sdev->ras_counts[kind];

		if (c->listed)
			drm_ras_node_unregister(&c->node);
		c->listed = false;
	}
	spyre_compat_ras_drain();
}

/* For debugfs: those that occurred. */
void spyre_ras_show(struct spyre_device *sdev, struct seq_file *m)
{
	u32 kind, i;
	int n;

	for (kind = 0; kind < SPYRE_RAS_KINDS; kind++)
		for (i = 0; i < ARRAY_SIZE(counters); i++) {
			n = atomic_read(&sdev->ras_counts[kind].count[i]);
			if (n)
				seq_printf(m, "%s %s %u\n", kind_name[kind],
					   spyre_ras_name(counters[i].code), n);
		}
}

/* --- Records -------------------------------------------------------------------------------- */

static void log_add(struct spyre_ras_log *log, struct drm_spyre_ras *rec)
{
	spin_lock(&log->lock);
	rec->seq = ++log->last;
	log->records[rec->seq % log->size] = *rec;
	spin_unlock(&log->lock);
}

static u32 user_queue_id(struct spyre_ctx *ctx, u32 page)
{
	struct spyre_queue *q;
	unsigned long id;
	u32 found = U32_MAX;

	/*
	 * By RCU and not under the context's lock, which is held across mailbox commands: the
	 * thread that is here brings their answers. Queues are freed by RCU.
	 */
	rcu_read_lock();
	xa_for_each(&ctx->queues, id, q) {
		if (READ_ONCE(q->page) == page) {
			found = id;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

/* From the reader of the event ring. */
void spyre_ras_event(struct spyre_device *sdev, const struct spyre_msg_ras *msg)
{
	struct drm_spyre_ras rec = {
		.time_ns = ktime_get_ns(),
		.soc_time = le64_to_cpu(msg->time),
		.cookie = le64_to_cpu(msg->cookie),
		.addr = le64_to_cpu(msg->addr),
		.code = le32_to_cpu(msg->code),
		.severity = le16_to_cpu(msg->severity),
		.category = le16_to_cpu(msg->category),
		.action = le16_to_cpu(msg->action),
		.status = le16_to_cpu(msg->status),
		.queue = le32_to_cpu(msg->queue),
		.entry = le32_to_cpu(msg->entry),
		.syndrome = le32_to_cpu(msg->syndrome),
		.mode = le32_to_cpu(msg->mode),
		.err_code = le32_to_cpu(msg->err_code),
		.err_pc = le32_to_cpu(msg->err_pc),
		.err_core = le16_to_cpu(msg->err_core),
		.err_unit = le16_to_cpu(msg->err_unit),
		.nstuck = le32_to_cpu(msg->nstuck),
	};
	u32 id = le32_to_cpu(msg->context);
	struct spyre_ctx *ctx = id ? spyre_ctx_get_id(sdev, id) : NULL;

	BUILD_BUG_ON(sizeof(rec.stuck) != sizeof(msg->stuck));
	memcpy(rec.stuck, msg->stuck, sizeof(rec.stuck));
	trace_spyre_ras(sdev->drm.dev, rec.code, rec.severity, id, rec.queue, rec.addr);
	if (ctx) {
		if (rec.queue != U32_MAX)
			rec.queue = user_queue_id(ctx, rec.queue);
		log_add(&ctx->ras, &rec);
		spyre_ctx_put(ctx);
	}
	log_add(&sdev->ras, &rec);
	count(sdev, &rec);
	/* A context's own errors are its user's business; the card's are the operator's. */
	if (!id && rec.severity >= SPYRE_SEV_ERROR)
		drm_err(&sdev->drm, "RAS 0x%x (%s), address 0x%llx\n", rec.code,
			spyre_ras_name(rec.code), rec.addr);
	else if (!id && rec.severity == SPYRE_SEV_WARNING)
		dev_warn_ratelimited(sdev->drm.dev, "RAS 0x%x (%s), address 0x%llx\n", rec.code,
				     spyre_ras_name(rec.code), rec.addr);
}

/* What the kernel found a context guilty of, for its owner; no queue and no entry are known. */
void spyre_ras_own(struct spyre_device *sdev, struct spyre_ctx *ctx, u32 code, u32 status)
{
	struct drm_spyre_ras rec = {
		.time_ns = ktime_get_ns(),
		.soc_time = spyre_soc_time(sdev),
		.code = code,
		.severity = SPYRE_SEV_ERROR,
		.category = SPYRE_CAT_SOFTWARE,
		.action = SPYRE_ACT_RESET,
		.status = status,
		.queue = U32_MAX,
		.err_core = U16_MAX,
	};

	trace_spyre_ras(sdev->drm.dev, rec.code, rec.severity, ctx->id, rec.queue, rec.addr);
	log_add(&ctx->ras, &rec);
	log_add(&sdev->ras, &rec);
	count(sdev, &rec);
}

/* Up to @room records after @after into @out; how many. */
static u32 log_read(struct spyre_ras_log *log, u64 after, u32 room, struct drm_spyre_ras *out,
		    u64 *dropped)
{
	u64 oldest, seq;
	u32 n = 0;

	*dropped = 0;
	spin_lock(&log->lock);
	if (after < log->last) {
		oldest = log->last > log->size ? log->last - log->size + 1 : 1;
		seq = after + 1;
		if (seq < oldest) {
			*dropped = oldest - seq;
			seq = oldest;
		}
		while (n < room && seq <= log->last)
			out[n++] = log->records[seq++ % log->size];
	}
	spin_unlock(&log->lock);
	return n;
}

int spyre_ras_read_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;
	struct drm_spyre_ras_read *args = data;
	struct spyre_ras_log *log = NULL;
	struct drm_spyre_ras *buf;
	struct spyre_ctx *ctx;
	u32 room, n = 0;
	int ret = 0;

	if (args->flags & ~DRM_SPYRE_RAS_CARD)
		return -EINVAL;
	if (args->flags & DRM_SPYRE_RAS_CARD && !perfmon_capable())
		return -EPERM;
	if (READ_ONCE(sdev->gen) != file->gen)
		return -ENODEV;
	if (args->flags & DRM_SPYRE_RAS_CARD) {
		log = &sdev->ras;
	} else {
		ctx = spyre_file_ctx_peek(file);
		if (ctx)
			log = &ctx->ras;
	}
	args->dropped = 0;
	room = log ? min(args->count, log->size) : 0;
	if (room) {
		buf = kvcalloc(room, sizeof(*buf), GFP_KERNEL);
		if (!buf)
			return -ENOMEM;
		n = log_read(log, args->after, room, buf, &args->dropped);
		if (copy_to_user(u64_to_user_ptr(args->records), buf, n * sizeof(*buf)))
			ret = -EFAULT;
		kvfree(buf);
	}
	args->count = n;
	return ret;
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_ras_kunit.c"
#endif
