// SPDX-License-Identifier: GPL-2.0-only
/*
 * Core dump before a reset: registers, queues, the entries in flight, firmware log. Never what is
 * in buffers. Root's alone, as every devcoredump.
 */
#include <linux/devcoredump.h>
#include <linux/vmalloc.h>

#include <drm/drm_print.h>

#include <generated/utsrelease.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_dump.h"
#include "spyre_queue.h"

#define DUMP_SIZE	SZ_256K
#define DUMP_ENTRIES	8u	/* of each queue that has entries in flight */

static void print_queue(struct drm_printer *p, const struct spyre_ctx *ctx, u32 id,
			const struct spyre_queue *q)
{
	const struct spyre_queue_status *s = spyre_queue_status(q);

	drm_printf(p, "queue: context %u id %u page %u entries %u priority %u on-card %u\n",
		   ctx->id, id, q->page, q->entries, q->priority, q->on_card);
	drm_printf(p, "  tail %u fetched %u done %u event-idx %u parked %u\n",
		   le32_to_cpu(READ_ONCE(spyre_queue_shadow(q)->tail)),
		   le32_to_cpu(READ_ONCE(s->fetched)), le32_to_cpu(READ_ONCE(s->done)),
		   le32_to_cpu(READ_ONCE(s->event_idx)), le32_to_cpu(READ_ONCE(s->parked)));
	drm_printf(p, "  state %u error %u at entry %u generation %u\n",
		   le32_to_cpu(READ_ONCE(s->state)), le32_to_cpu(READ_ONCE(s->error)),
		   le32_to_cpu(READ_ONCE(s->error_entry)), le32_to_cpu(READ_ONCE(s->generation)));
}

static void print_flight(struct drm_printer *p, const struct spyre_queue *q)
{
	const struct spyre_queue_status *s = spyre_queue_status(q);
	u32 done = le32_to_cpu(READ_ONCE(s->done));
	u32 n = le32_to_cpu(READ_ONCE(s->fetched)) - done;
	u32 i, j;

	n = n > q->entries ? 0 : min(n, DUMP_ENTRIES);
	for (i = 0; i < n; i++) {
		const __le64 *cb = spyre_queue_slot(q, done + i);

		drm_printf(p, "  entry %u:", done + i);
		for (j = 0; j < sizeof(struct spyre_cb) / sizeof(*cb); j++)
			drm_printf(p, " %llx", le64_to_cpu(READ_ONCE(cb[j])));
		drm_puts(p, "\n");
	}
}

static void print_ctxs(struct spyre_device *sdev, struct drm_printer *p, bool flight)
{
	struct spyre_ctx *ctx;
	struct spyre_queue *q;
	unsigned long id, qid;

	xa_for_each(&sdev->ctxs, id, ctx) {
		/* RCU alone does not keep a context; the reference does. */
		ctx = spyre_ctx_get_id(sdev, id);
		if (!ctx)
			continue;
		mutex_lock(&ctx->lock);
		if (ctx->kqueue) {
			print_queue(p, ctx, 0, ctx->kqueue);
			if (flight)
				print_flight(p, ctx->kqueue);
		}
		xa_for_each(&ctx->queues, qid, q) {
			print_queue(p, ctx, qid, q);
			if (flight)
				print_flight(p, q);
		}
		mutex_unlock(&ctx->lock);
		spyre_ctx_put(ctx);
	}
}

void spyre_print_queues(struct spyre_device *sdev, struct drm_printer *p)
{
	print_ctxs(sdev, p, false);
}

/*
 * The caller holds reset_sem for writing. Dumps while the last one is not read are dropped by the
 * core.
 */
void spyre_dump(struct spyre_device *sdev, const char *reason)
{
	struct drm_print_iterator iter = { .remain = DUMP_SIZE };
	struct drm_printer p;
	char *buf, *log;
	size_t n;
	u32 reg;

	buf = vzalloc(DUMP_SIZE);
	if (!buf)
		return;
	iter.data = buf;
	p = drm_coredump_printer(&iter);
	drm_puts(&p, "**** spyre core dump ****\n");
	drm_printf(&p, "kernel: %s\n", UTS_RELEASE);
	drm_printf(&p, "device: %s serial %s firmware %s\n", pci_name(sdev->pdev), sdev->serial,
		   sdev->info.version);
	drm_printf(&p, "reason: %s\n", reason);
	drm_printf(&p, "generation: %u\n", sdev->gen);
	for (reg = 0; reg <= SPYRE_REG_APERTURE_BAD; reg += 4)
		drm_printf(&p, "register 0x%03x: 0x%08x\n", reg, spyre_read(sdev, reg));
	print_ctxs(sdev, &p, true);
	log = kvmalloc(SPYRE_LOG_RAM_SIZE, GFP_KERNEL);
	if (log) {
		n = spyre_fw_copy_log(sdev, log, SPYRE_LOG_RAM_SIZE - 1);
		log[n] = 0;
		drm_puts(&p, "firmware log:\n");
		drm_puts(&p, log);
		kvfree(log);
	}
	/* Takes the buffer over. */
	dev_coredumpv(&sdev->pdev->dev, buf, DUMP_SIZE - iter.remain, GFP_KERNEL);
}
