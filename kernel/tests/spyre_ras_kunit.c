// SPDX-License-Identifier: GPL-2.0-only
/*
 * RAS logs: rings that say what they lost.
 */
#include "spyre_kunit.h"

static struct spyre_ras_log *ras_log(struct kunit *test, u32 n)
{
	struct spyre_ras_log *log = kunit_kzalloc(test, sizeof(*log), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, log);
	spin_lock_init(&log->lock);
	log->size = 8;
	log->records = kunit_kcalloc(test, log->size, sizeof(*log->records), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, log->records);
	for (i = 1; i <= n; i++) {
		struct drm_spyre_ras rec = { .code = i };

		log_add(log, &rec);
		KUNIT_ASSERT_EQ(test, i, rec.seq);
	}
	return log;
}

static const struct ras_case {
	const char *name;
	u32 records;
	u64 after;
	u32 room;
	u32 want;
	u64 first, dropped;
} ras_read_cases[] = {
	{ "empty", 0, 0, 8, 0, 0, 0 },
	{ "all", 5, 0, 8, 5, 1, 0 },
	{ "some", 5, 0, 3, 3, 1, 0 },
	{ "the rest", 5, 3, 8, 2, 4, 0 },
	{ "nothing new", 5, 5, 8, 0, 0, 0 },
	{ "ahead of it", 5, 99, 8, 0, 0, 0 },
	{ "no room", 5, 0, 0, 0, 0, 0 },
	{ "just full", 8, 0, 8, 8, 1, 0 },
	{ "one lost", 9, 0, 8, 8, 2, 1 },
	{ "many lost", 100, 10, 8, 8, 93, 82 },
	{ "lost, little room", 100, 0, 2, 2, 93, 92 },
	{ "around the end, none lost", 100, 95, 8, 5, 96, 0 },
};

KUNIT_ARRAY_PARAM_DESC(ras_read, ras_read_cases, name);

static void ras_reads(struct kunit *test)
{
	const struct ras_case *c = test->param_value;
	struct spyre_ras_log *log = ras_log(test, c->records);
	struct drm_spyre_ras *out = kunit_kcalloc(test, 8, sizeof(*out), GFP_KERNEL);
	u64 dropped = 77;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_EXPECT_EQ(test, c->want, log_read(log, c->after, c->room, out, &dropped));
	KUNIT_EXPECT_EQ(test, c->dropped, dropped);
	for (i = 0; i < c->want; i++) {
		KUNIT_EXPECT_EQ(test, c->first + i, out[i].seq);
		KUNIT_EXPECT_EQ(test, c->first + i, out[i].code);
	}
}

/* A context's record is in its log and in the card's; the queue is by the name its user knows. */
static void ras_goes_to_owner(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_ctx *ctx = spyre_kunit_ctx(test, sdev);
	struct spyre_queue *q = spyre_kunit_queue(test, ctx, 64);
	struct spyre_msg_ras msg = {
		.context = cpu_to_le32(ctx->id),
		.code = cpu_to_le32(0x1234),
		.queue = cpu_to_le32(99),
	};
	u32 id;

	q->page = 99;
	KUNIT_ASSERT_EQ(test, 0, xa_alloc(&ctx->queues, &id, q, xa_limit_31b, GFP_KERNEL));
	KUNIT_ASSERT_EQ(test, 0, xa_err(xa_store(&sdev->ctxs, ctx->id, ctx, GFP_KERNEL)));
	spyre_ras_event(sdev, &msg);
	KUNIT_EXPECT_EQ(test, 1, ctx->ras.last);
	KUNIT_EXPECT_EQ(test, 1, sdev->ras.last);
	KUNIT_EXPECT_EQ(test, id, ctx->ras.records[1].queue);
	KUNIT_EXPECT_EQ(test, 0x1234, ctx->ras.records[1].code);
	/* A queue that is gone has no name, a context that is gone no log. */
	msg.queue = cpu_to_le32(98);
	spyre_ras_event(sdev, &msg);
	KUNIT_EXPECT_EQ(test, U32_MAX, ctx->ras.records[2].queue);
	xa_erase(&sdev->ctxs, ctx->id);
	spyre_ras_event(sdev, &msg);
	KUNIT_EXPECT_EQ(test, 2, ctx->ras.last);
	KUNIT_EXPECT_EQ(test, 3, sdev->ras.last);
	spyre_ras_own(sdev, ctx, SPYRE_RAS_WATCHDOG, SPYRE_ERR_TIMEOUT);
	KUNIT_EXPECT_EQ(test, SPYRE_ERR_TIMEOUT, ctx->ras.records[3].status);
	xa_erase(&ctx->queues, id);
}

static struct kunit_case ras_cases[] = {
	KUNIT_CASE_PARAM(ras_reads, ras_read_gen_params),
	KUNIT_CASE(ras_goes_to_owner),
	{}
};

struct kunit_suite spyre_ras_suite = {
	.name = "spyre_ras",
	.test_cases = ras_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_ras_suite);
