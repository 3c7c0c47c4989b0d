// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts: the allocator of doorbell pages, the arm word, usage over restarts.
 */
#include "spyre_kunit.h"

static void kunit_ctx_end(void *data)
{
	struct spyre_ctx *ctx = data;
	struct spyre_ctx_shared *shared = ctx->shared;

	mutex_lock(&ctx->lock);
	spyre_vm_fini(ctx);
	ctx->shared = NULL;
	mutex_unlock(&ctx->lock);
	kfree(shared);
	spyre_ctx_put(ctx);
}

struct spyre_ctx *spyre_kunit_ctx(struct kunit *test, struct spyre_device *sdev)
{
	static u32 ids;
	struct spyre_ctx *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx_init(ctx, sdev);
	ctx->id = 1 + ids++ % (sdev->info.contexts - 1);
	ctx->shared = kzalloc(sizeof(*ctx->shared), GFP_KERNEL);
	spyre_vm_init(ctx);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kunit_ctx_end, ctx));
	KUNIT_ASSERT_NOT_NULL(test, ctx->shared);
	KUNIT_ASSERT_EQ(test, 0, spyre_ras_log_init(&ctx->ras, 8));
	return ctx;
}

/* A doorbell page that two contexts had would let one ring for the other. */
static void ctx_doorbell_blocks(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *a = spyre_kunit_ctx(test, sdev), *b = spyre_kunit_ctx(test, sdev);
	u32 page, first, i;

	mutex_lock(&a->lock);
	KUNIT_ASSERT_EQ(test, 0, spyre_ctx_get_page(a, &first));
	KUNIT_EXPECT_EQ(test, 0, first % SPYRE_DB_BLOCK_PAGES);
	for (i = 1; i < SPYRE_DB_BLOCK_PAGES; i++) {
		KUNIT_ASSERT_EQ(test, 0, spyre_ctx_get_page(a, &page));
		KUNIT_EXPECT_EQ(test, first + i, page);
	}
	mutex_unlock(&a->lock);
	mutex_lock(&b->lock);
	KUNIT_ASSERT_EQ(test, 0, spyre_ctx_get_page(b, &page));
	KUNIT_EXPECT_NE(test, first / SPYRE_DB_BLOCK_PAGES, page / SPYRE_DB_BLOCK_PAGES);
	/* The one page of a block that is used frees the block. */
	KUNIT_EXPECT_EQ(test, 2, bitmap_weight(sdev->db_blocks, SPYRE_DB_BLOCKS));
	spyre_ctx_put_page(b, page);
	KUNIT_EXPECT_EQ(test, 1, bitmap_weight(sdev->db_blocks, SPYRE_DB_BLOCKS));
	mutex_unlock(&b->lock);
	mutex_lock(&a->lock);
	spyre_ctx_put_page(a, first + 3);
	KUNIT_ASSERT_EQ(test, 0, spyre_ctx_get_page(a, &page));
	KUNIT_EXPECT_EQ(test, first + 3, page);
	for (i = 0; i < SPYRE_DB_BLOCK_PAGES; i++)
		spyre_ctx_put_page(a, first + i);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(sdev->db_blocks, SPYRE_DB_BLOCKS));
	KUNIT_EXPECT_TRUE(test, xa_empty(&a->blocks));
	mutex_unlock(&a->lock);
}

static void ctx_doorbells_run_out(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *a = spyre_kunit_ctx(test, sdev), *b = spyre_kunit_ctx(test, sdev);
	u32 page, i;

	mutex_lock(&a->lock);
	for (i = 0; i < sdev->db_pages; i++) {
		KUNIT_ASSERT_EQ(test, 0, spyre_ctx_get_page(a, &page));
		KUNIT_EXPECT_LT(test, page, sdev->db_pages);
	}
	KUNIT_EXPECT_EQ(test, -EMFILE, spyre_ctx_get_page(a, &page));
	mutex_unlock(&a->lock);
	mutex_lock(&b->lock);
	KUNIT_EXPECT_EQ(test, -EMFILE, spyre_ctx_get_page(b, &page));
	mutex_unlock(&b->lock);
	mutex_lock(&a->lock);
	for (i = 0; i < sdev->db_pages; i++)
		spyre_ctx_put_page(a, i);
	mutex_unlock(&a->lock);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(sdev->db_blocks, SPYRE_DB_BLOCKS));
}

/* Each arming is a change, which is all the card looks for; without memory there is none. */
static void ctx_arms(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	struct spyre_ctx_shared *shared = ctx->shared;

	ctx->arm = U32_MAX - 1;
	spin_lock(&sdev->wake_lock);
	spyre_ctx_arm(ctx);
	KUNIT_EXPECT_EQ(test, U32_MAX, le32_to_cpu(shared->arm.arm));
	spyre_ctx_arm(ctx);
	KUNIT_EXPECT_EQ(test, 0, le32_to_cpu(shared->arm.arm));
	ctx->shared = NULL;
	spyre_ctx_arm(ctx);
	KUNIT_EXPECT_EQ(test, 0, le32_to_cpu(shared->arm.arm));
	ctx->shared = shared;
	spin_unlock(&sdev->wake_lock);
}

/* What a new firmware counts from nothing is added to what was. */
static void ctx_usage_goes_on(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	struct spyre_ctx_shared *shared = ctx->shared;
	struct drm_spyre_usage usage;

	ctx->usage_base.cbs = 100;
	ctx->usage_base.busy[4] = 7;
	shared->usage.cbs = cpu_to_le64(5);
	shared->usage.busy[4] = cpu_to_le64(1);
	shared->usage.errors = cpu_to_le64(2);
	spyre_ctx_usage(ctx, &usage);
	KUNIT_EXPECT_EQ(test, 105, usage.cbs);
	KUNIT_EXPECT_EQ(test, 8, usage.busy[4]);
	KUNIT_EXPECT_EQ(test, 2, usage.errors);
	/* With the card gone it is what it was last. */
	ctx->shared = NULL;
	memset(&usage, 0, sizeof(usage));
	spyre_ctx_usage(ctx, &usage);
	KUNIT_EXPECT_EQ(test, 105, usage.cbs);
	ctx->shared = shared;
}

/* An id that is reserved and not published yet, or is nobody's, is found by nobody. */
static void ctx_by_id(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	u32 id;

	KUNIT_ASSERT_EQ(test, 0, xa_alloc(&sdev->ctxs, &id, NULL, XA_LIMIT(1, 3), GFP_KERNEL));
	KUNIT_EXPECT_NULL(test, spyre_ctx_get_id(sdev, id));
	KUNIT_EXPECT_NULL(test, spyre_ctx_get_id(sdev, U32_MAX));
	xa_store(&sdev->ctxs, id, ctx, GFP_KERNEL);
	KUNIT_EXPECT_PTR_EQ(test, ctx, spyre_ctx_get_id(sdev, id));
	KUNIT_EXPECT_EQ(test, 2, kref_read(&ctx->ref));
	spyre_ctx_put(ctx);
	spyre_ctx_wake_id(sdev, id);
	KUNIT_EXPECT_EQ(test, 1, kref_read(&ctx->ref));
	xa_erase(&sdev->ctxs, id);
}

static struct kunit_case ctx_cases[] = {
	KUNIT_CASE(ctx_doorbell_blocks),
	KUNIT_CASE(ctx_doorbells_run_out),
	KUNIT_CASE(ctx_arms),
	KUNIT_CASE(ctx_usage_goes_on),
	KUNIT_CASE(ctx_by_id),
	{}
};

struct kunit_suite spyre_ctx_suite = {
	.name = "spyre_ctx",
	.test_cases = ctx_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_ctx_suite);
