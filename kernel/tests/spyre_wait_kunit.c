// SPDX-License-Identifier: GPL-2.0-only
/*
 * What ends a WAIT.
 */
#include "spyre_kunit.h"

/* Queue, buffer, buffer; values that nothing has reached. */
static struct wait_set *wait_set(struct kunit *test, bool all)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_queue *q = spyre_kunit_queue(test, spyre_kunit_ctx(test, sdev), 64);
	struct wait_set *set = kunit_kzalloc(test, struct_size(set, slot, 3), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, set);
	set->sdev = sdev;
	set->gen = sdev->gen;
	set->count = 3;
	set->all = all;
	set->slot[0].queue = q;
	set->slot[0].value = 5;
	/* Any host memory will do. */
	set->slot[1].bo = q->ring;
	set->slot[1].value = 10;
	set->slot[2].bo = q->ring;
	set->slot[2].offset = PAGE_SIZE + 8;
	set->slot[2].value = U64_MAX;
	return set;
}

static struct spyre_queue_status *wait_status(struct wait_set *set)
{
	return spyre_queue_status(set->slot[0].queue);
}

static void wait_put(struct wait_set *set, u32 slot, u64 value)
{
	*(__le64 *)spyre_bo_at(set->slot[slot].bo, set->slot[slot].offset) = cpu_to_le64(value);
}

static void wait_any(struct kunit *test)
{
	struct wait_set *set = wait_set(test, false);
	u32 first = 99;

	KUNIT_EXPECT_EQ(test, 0, set_check(set, &first));
	wait_put(set, 1, 9);
	KUNIT_EXPECT_EQ(test, 0, set_check(set, &first));
	wait_put(set, 2, U64_MAX);
	KUNIT_EXPECT_EQ(test, 1, set_check(set, &first));
	KUNIT_EXPECT_EQ(test, 2, first);
	/* Beyond it holds as well, and the first in order is told. */
	wait_put(set, 1, 11);
	KUNIT_EXPECT_EQ(test, 1, set_check(set, &first));
	KUNIT_EXPECT_EQ(test, 1, first);
	wait_status(set)->done = cpu_to_le32(5);
	KUNIT_EXPECT_EQ(test, 1, set_check(set, &first));
	KUNIT_EXPECT_EQ(test, 0, first);
}

static void wait_all(struct kunit *test)
{
	struct wait_set *set = wait_set(test, true);
	u32 first = 99;

	wait_put(set, 1, 10);
	wait_put(set, 2, U64_MAX);
	KUNIT_EXPECT_EQ(test, 0, set_check(set, &first));
	wait_status(set)->done = cpu_to_le32(6);
	KUNIT_EXPECT_EQ(test, 1, set_check(set, &first));
	KUNIT_EXPECT_EQ(test, 99, first);
	wait_put(set, 1, 3);
	KUNIT_EXPECT_EQ(test, 0, set_check(set, &first));
}

/* Indices of queues are 32 bits and run freely. */
static void wait_index_wraps(struct kunit *test)
{
	struct wait_set *set = wait_set(test, false);
	u32 first;

	set->slot[0].value = 2;
	wait_status(set)->done = cpu_to_le32(U32_MAX);
	KUNIT_EXPECT_EQ(test, 0, set_check(set, &first));
	wait_status(set)->done = cpu_to_le32(1);
	KUNIT_EXPECT_EQ(test, 0, set_check(set, &first));
	wait_status(set)->done = cpu_to_le32(2);
	KUNIT_EXPECT_EQ(test, 1, set_check(set, &first));
}

/* Progress that was made counts before the error, the end of the queue and the loss of the card. */
static void wait_ends(struct kunit *test)
{
	struct wait_set *set = wait_set(test, false);
	struct spyre_queue_status *status = wait_status(set);
	u32 first;

	status->error = cpu_to_le32(SPYRE_ERR_FAULT);
	KUNIT_EXPECT_EQ(test, -EIO, set_check(set, &first));
	WRITE_ONCE(set->slot[0].queue->dead, true);
	KUNIT_EXPECT_EQ(test, -ENOENT, set_check(set, &first));
	set->sdev->gen++;
	KUNIT_EXPECT_EQ(test, -ENODEV, set_check(set, &first));
	status->done = cpu_to_le32(5);
	KUNIT_EXPECT_EQ(test, 1, set_check(set, &first));
	/* Words that nobody will store any more. */
	set->slot[0].value = 6;
	WRITE_ONCE(set->slot[0].queue->dead, false);
	status->error = 0;
	KUNIT_EXPECT_EQ(test, -ENODEV, set_check(set, &first));
}

static struct kunit_case wait_cases[] = {
	KUNIT_CASE(wait_any),
	KUNIT_CASE(wait_all),
	KUNIT_CASE(wait_index_wraps),
	KUNIT_CASE(wait_ends),
	{}
};

struct kunit_suite spyre_wait_suite = {
	.name = "spyre_wait",
	.test_cases = wait_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_wait_suite);
