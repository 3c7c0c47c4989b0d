// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's own context and its one queue, for clearing device memory. Its ring lies where no
 * user maps. Pages to be cleared are mapped one behind the other into its segment 0, so that one
 * FILL clears them all.
 */
#include <kunit/static_stub.h>
#include <linux/delay.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_kctx.h"
#include "spyre_queue.h"
#include "spyre_vm.h"

#define KCTX_ENTRIES	64u

/*
 * At boot and after every loss of the old one. The caller holds reset_sem for writing or is
 * probe.
 */
int spyre_kctx_create(struct spyre_device *sdev)
{
	struct spyre_ctx *ctx = spyre_ctx_create(sdev, NULL, false);
	struct spyre_queue *q;
	int ret;

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	mutex_lock(&ctx->lock);
	ret = spyre_vm_map_segment(ctx, 0);
	if (!ret) {
		/*
		 * Everybody's allocations wait for it, so it does not stand in line behind as many
		 * contexts as there are: one control block per engine at most.
		 */
		q = spyre_queue_create(ctx, KCTX_ENTRIES, SPYRE_PRIORITIES - 1, 0);
		ret = PTR_ERR_OR_ZERO(q);
		if (!ret)
			ctx->kqueue = q;
	}
	mutex_unlock(&ctx->lock);
	if (ret) {
		drm_err(&sdev->drm, "the driver's own queue was not created (%d)\n", ret);
		spyre_ctx_close(ctx);
		return ret;
	}
	sdev->kctx = ctx;
	return 0;
}

static u32 submit(struct spyre_device *sdev, struct spyre_queue *q, const struct spyre_cb *cb)
{
	u32 tail = le32_to_cpu(READ_ONCE(spyre_queue_shadow(q)->tail)) + 1;

	if (spyre_queue_push(q, cb, 1))
		spyre_ring_doorbell(sdev, q->page, tail);
	return tail;
}

/* Changes as long as some engine gets on. */
static u32 engines_progress(struct spyre_device *sdev)
{
	u32 sum = 0, i;

	for (i = 0; i < SPYRE_REG_ENGINES_MAX; i++)
		sum += spyre_read(sdev, SPYRE_REG_ENG_PROGRESS(i));
	return sum;
}

/*
 * The work of others may be ahead: a card that gets on is slow, not dead, and no user's valid work
 * may cost everybody a reset. Ten seconds without progress, or a minute in all.
 */
static int wait_done(struct spyre_device *sdev, struct spyre_queue *q, u32 tail)
{
	struct spyre_queue_status *status = spyre_queue_status(q);
	unsigned long deadline = jiffies + 10 * HZ, end = jiffies + 60 * HZ;
	unsigned int naps = 0;
	u32 progress = 0, now;

	while ((s32)(le32_to_cpu(READ_ONCE(status->done)) - tail) < 0) {
		if (READ_ONCE(status->error))
			return -EIO;
		if (!READ_ONCE(sdev->mbox.up))
			return -EIO;	/* a reset is on its way */
		if (time_after(jiffies, deadline)) {
			now = engines_progress(sdev);
			if (now == progress || time_after(jiffies, end))
				return -ETIMEDOUT;
			progress = now;
			deadline = jiffies + 10 * HZ;
		}
		/* Most of the time it is over before: reading registers costs an exit each. */
		if (naps == 200)
			progress = engines_progress(sdev);
		if (naps++ < 200)
			usleep_range(20, 50);
		else
			usleep_range(500, 1000);
	}
	/* An error of the last entry is stored before done. */
	dma_rmb();
	return READ_ONCE(status->error) ? -EIO : 0;
}

/**
 * spyre_kctx_clear - zero device pages
 * @sdev: card
 * @pages: their numbers
 * @n: how many, at most a segment's worth
 *
 * Context: reset_sem held for reading, scrub_lock held. Sleeps until the card has done it,
 * bounded.
 * Return: 0 or an error; after an error a reset has been asked for.
 */
int spyre_kctx_clear(struct spyre_device *sdev, const u32 *pages, u32 n)
{
	struct spyre_cb cb = {
		.type = cpu_to_le16(SPYRE_CB_FILL),
		.u.fill.dst = cpu_to_le64(0),
		.u.fill.bytes = cpu_to_le64((u64)n << SPYRE_PAGE_SHIFT),
	};
	struct spyre_ctx *ctx = sdev->kctx;
	u32 i;
	int ret;

	KUNIT_STATIC_STUB_REDIRECT(spyre_kctx_clear, sdev, pages, n);
	lockdep_assert_held(&sdev->mem.scrub_lock);
	if (!ctx)
		return -EIO;
	mutex_lock_nested(&ctx->lock, SINGLE_DEPTH_NESTING);
	if (!ctx->kqueue || !ctx->kqueue->on_card) {
		ret = -EIO;
		goto out;
	}
	for (i = 0; i < n; i++)
		spyre_vm_write_device(ctx, 0, i, (u64)pages[i] << SPYRE_PAGE_SHIFT, true);
	/* Also drops what the card remembers of the previous use of these addresses. */
	ret = spyre_vm_invalidate(ctx);
	if (!ret) {
		ret = wait_done(sdev, ctx->kqueue, submit(sdev, ctx->kqueue, &cb));
		if (ret && READ_ONCE(sdev->mbox.up))
			spyre_reset_request(sdev, SPYRE_RUNG_FIRMWARE, "clearing memory failed");
	}
	for (i = 0; i < n; i++)
		spyre_vm_clear_device(ctx, 0, i);
out:
	mutex_unlock(&ctx->lock);
	return ret;
}
