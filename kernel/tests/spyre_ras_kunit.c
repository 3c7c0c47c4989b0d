// SPDX-License-Identifier: GPL-2.0-only
/*
 * RAS logs: rings that say what they lost. Counters: what counts as what.
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

static const struct ras_count_case {
	const char *name;
	u32 code, err_pc;
	u16 category, severity;
	enum spyre_ras_kind kind;
	u32 id, added;
} ras_count_cases[] = {
	{ "corrected", SPYRE_RAS_MEM_CE, 0, SPYRE_CAT_HARDWARE, SPYRE_SEV_INFO,
	  SPYRE_RAS_CORRECTED, 10, 1 },
	{ "memory", SPYRE_RAS_MEM_UE, 0, SPYRE_CAT_HARDWARE, SPYRE_SEV_ERROR,
	  SPYRE_RAS_UNCORRECTED, 11, 1 },
	{ "firmware", SPYRE_RAS_FIRMWARE, 0, SPYRE_CAT_FIRMWARE, SPYRE_SEV_ERROR,
	  SPYRE_RAS_UNCORRECTED, 15, 1 },
	{ "a block of hardware's fault", SPYRE_RAS_SOFT_FAIL, 0, SPYRE_CAT_HARDWARE,
	  SPYRE_SEV_ERROR, SPYRE_RAS_UNCORRECTED, 1, 1 },
	{ "a block of software's fault", SPYRE_RAS_SOFT_FAIL, 0, SPYRE_CAT_SOFTWARE,
	  SPYRE_SEV_WARNING, SPYRE_RAS_JOB, 1, 1 },
	{ "deadlock", SPYRE_RAS_DEADLOCK, 0, SPYRE_CAT_SOFTWARE, SPYRE_SEV_ERROR,
	  SPYRE_RAS_JOB, 7, 1 },
	{ "its second record", SPYRE_RAS_DEADLOCK, 4, SPYRE_CAT_SOFTWARE, SPYRE_SEV_ERROR,
	  SPYRE_RAS_JOB, 7, 0 },
	{ "unknown code", 0x1234, 0, SPYRE_CAT_HARDWARE, SPYRE_SEV_FATAL,
	  SPYRE_RAS_UNCORRECTED, 0, 1 },
	{ "unknown category", 0x1234, 0, 99, SPYRE_SEV_INFO, SPYRE_RAS_CORRECTED, 0, 1 },
	{ "known code, odd kind", SPYRE_RAS_MEM_CE, 0, SPYRE_CAT_SOFTWARE, SPYRE_SEV_INFO,
	  SPYRE_RAS_JOB, 0, 1 },
};

KUNIT_ARRAY_PARAM_DESC(ras_count, ras_count_cases, name);

/* It is seen where it belongs and nowhere else, by its number and under its name. */
static void ras_counts(struct kunit *test)
{
	const struct ras_count_case *c = test->param_value;
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_msg_ras msg = {
		.code = cpu_to_le32(c->code),
		.err_pc = cpu_to_le32(c->err_pc),
		.category = cpu_to_le16(c->category),
		.severity = cpu_to_le16(c->severity),
	};
	u32 kind, id, val, sum = 0;
	const char *name;
	int ret;

	spyre_ras_event(sdev, &msg);
	for (kind = 0; kind < SPYRE_RAS_KINDS; kind++) {
		sdev->ras_counts[kind].kind = kind;
		for (id = 0; id < SPYRE_RAS_COUNTERS; id++) {
			ret = query_counter(&sdev->ras_counts[kind].node, id, &name, &val);
			if (ret) {
				KUNIT_EXPECT_EQ(test, -ENOENT, ret);
				continue;
			}
			sum += val;
			if (kind == c->kind && id == c->id) {
				KUNIT_EXPECT_EQ(test, c->added, val);
				KUNIT_EXPECT_STREQ(test, name,
						   spyre_ras_name(id ? c->code : 0));
			}
		}
	}
	KUNIT_EXPECT_EQ(test, c->added, sum);
}

/* No code has two numbers, and each has a name. */
static void ras_numbers(struct kunit *test)
{
	u32 i, j;

	for (i = 1; i < SPYRE_RAS_COUNTERS; i++) {
		KUNIT_EXPECT_NE(test, 0, counters[i].kinds);
		KUNIT_EXPECT_STRNEQ(test, spyre_ras_name(0), spyre_ras_name(counters[i].code));
		for (j = 1; j < i; j++)
			KUNIT_EXPECT_NE(test, counters[j].code, counters[i].code);
	}
}

static struct kunit_case ras_cases[] = {
	KUNIT_CASE_PARAM(ras_reads, ras_read_gen_params),
	KUNIT_CASE(ras_goes_to_owner),
	KUNIT_CASE_PARAM(ras_counts, ras_count_gen_params),
	KUNIT_CASE(ras_numbers),
	{}
};

struct kunit_suite spyre_ras_suite = {
	.name = "spyre_ras",
	.test_cases = ras_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_ras_suite);
