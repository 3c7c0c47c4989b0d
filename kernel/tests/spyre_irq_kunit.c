// SPDX-License-Identifier: GPL-2.0-only
/*
 * Vectors: who gets which, and their event rings.
 */
#include "spyre_kunit.h"

static void irq_picks(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	u32 count[SPYRE_MSI_VECTORS] = {}, i, v;

	sdev->irq.vectors = 1;
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, 0, spyre_irq_pick(sdev));
	sdev->irq.vectors = SPYRE_MSI_VECTORS;
	/* Never the mailbox's; each as often as the others, over the end of the counter too. */
	atomic_set(&sdev->irq.next, -3);
	for (i = 0; i < 10 * (SPYRE_MSI_VECTORS - 1); i++) {
		v = spyre_irq_pick(sdev);
		KUNIT_ASSERT_LT(test, v, SPYRE_MSI_VECTORS);
		count[v]++;
	}
	KUNIT_EXPECT_EQ(test, 0, count[0]);
	for (v = 1; v < SPYRE_MSI_VECTORS; v++)
		KUNIT_EXPECT_LE(test, abs((int)count[v] - 10), 1);
}

static struct spyre_vector *irq_vector(struct kunit *test, struct spyre_device *sdev)
{
	struct spyre_vector *vec = &sdev->irq.vector[1];

	vec->sdev = sdev;
	vec->number = 1;
	KUNIT_ASSERT_EQ(test, 0, drmm_mutex_init(&sdev->drm, &vec->lock));
	vec->ring = kunit_kcalloc(test, SPYRE_VEC_ENTRIES, sizeof(*vec->ring), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, vec->ring);
	return vec;
}

static int irq_woken(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key)
{
	atomic_inc(wait->private);
	return 0;
}

static void irq_wakes(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	struct spyre_vector *vec = irq_vector(test, sdev);
	struct wait_queue_entry wait;
	atomic_t woken = ATOMIC_INIT(0);
	u32 i;

	KUNIT_ASSERT_EQ(test, 0, xa_err(xa_store(&sdev->ctxs, ctx->id, ctx, GFP_KERNEL)));
	init_waitqueue_func_entry(&wait, irq_woken);
	wait.private = &woken;
	add_wait_queue(&ctx->waitq, &wait);
	spyre_irq_thread(0, vec);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&woken));
	/* Its own, one of a context that is gone, and one whose seq is not written yet. */
	vec->ring[0].context = cpu_to_le32(ctx->id);
	vec->ring[0].seq = cpu_to_le32(1);
	vec->ring[1].context = cpu_to_le32(12345);
	vec->ring[1].seq = cpu_to_le32(2);
	vec->ring[2].context = cpu_to_le32(ctx->id);
	spyre_irq_thread(0, vec);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&woken));
	KUNIT_EXPECT_EQ(test, 2, vec->head);
	vec->ring[2].seq = cpu_to_le32(3);
	spyre_irq_thread(0, vec);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&woken));
	/* What is in the ring from the last time around is not new. */
	for (i = 0; i < SPYRE_VEC_ENTRIES; i++)
		vec->ring[i].seq = cpu_to_le32(i + 1);
	spyre_irq_thread(0, vec);
	KUNIT_EXPECT_EQ(test, SPYRE_VEC_ENTRIES, vec->head);
	KUNIT_EXPECT_EQ(test, 4, atomic_read(&vec->count));
	remove_wait_queue(&ctx->waitq, &wait);
	xa_erase(&sdev->ctxs, ctx->id);
}

static struct kunit_case irq_cases[] = {
	KUNIT_CASE(irq_picks),
	KUNIT_CASE(irq_wakes),
	{}
};

struct kunit_suite spyre_irq_suite = {
	.name = "spyre_irq",
	.test_cases = irq_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_irq_suite);
