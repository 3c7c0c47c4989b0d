// SPDX-License-Identifier: GPL-2.0-only
/*
 * Quotas.
 */
#include "spyre_kunit.h"

static void user_one_per_uid(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_user *a = spyre_user_get(sdev, KUIDT_INIT(1));
	struct spyre_user *b = spyre_user_get(sdev, KUIDT_INIT(2));

	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_ASSERT_NOT_NULL(test, b);
	KUNIT_EXPECT_PTR_NE(test, a, b);
	KUNIT_EXPECT_PTR_EQ(test, a, spyre_user_get(sdev, KUIDT_INIT(1)));
	KUNIT_EXPECT_PTR_EQ(test, a, spyre_user_ref(sdev, a));
	KUNIT_EXPECT_EQ(test, 3, a->files);
	spyre_user_put(sdev, a);
	spyre_user_put(sdev, a);
	KUNIT_EXPECT_EQ(test, 2, (int)list_count_nodes(&sdev->users.list));
	spyre_user_put(sdev, a);
	spyre_user_put(sdev, b);
	KUNIT_EXPECT_TRUE(test, list_empty(&sdev->users.list));
}

/* Half of what users can have: one context and one queue are the driver's. */
static void user_half_for_one(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_user *a = spyre_user_get(sdev, KUIDT_INIT(1));
	struct spyre_user *b = spyre_user_get(sdev, KUIDT_INIT(2));
	enum spyre_quota what;
	u32 i, max;

	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_ASSERT_NOT_NULL(test, b);
	for (what = SPYRE_QUOTA_CONTEXTS; what <= SPYRE_QUOTA_QUEUES; what++) {
		max = spyre_user_max(sdev, what);
		KUNIT_EXPECT_EQ(test, max, what == SPYRE_QUOTA_CONTEXTS ? 7 : 32);
		for (i = 0; i < max; i++)
			KUNIT_ASSERT_EQ(test, 0, spyre_user_charge(sdev, a, what, false));
		KUNIT_EXPECT_EQ(test, -EDQUOT, spyre_user_charge(sdev, a, what, false));
		/* Others have theirs, and who is exempt goes on. */
		KUNIT_EXPECT_EQ(test, 0, spyre_user_charge(sdev, b, what, false));
		KUNIT_EXPECT_EQ(test, 0, spyre_user_charge(sdev, a, what, true));
		spyre_user_uncharge(sdev, a, what);
		KUNIT_EXPECT_EQ(test, -EDQUOT, spyre_user_charge(sdev, a, what, false));
		spyre_user_uncharge(sdev, a, what);
		KUNIT_EXPECT_EQ(test, 0, spyre_user_charge(sdev, a, what, false));
	}
	KUNIT_EXPECT_EQ(test, 7, a->contexts);
	KUNIT_EXPECT_EQ(test, 32, a->queues);
	spyre_user_put(sdev, a);
	spyre_user_put(sdev, b);
}

static void user_host_memory(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_user *a = spyre_user_get(sdev, KUIDT_INIT(1));
	u64 max = spyre_user_max_host();
	unsigned int percent = host_quota_percent;

	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_EXPECT_EQ(test, -EDQUOT, spyre_user_charge_host(sdev, a, max + 1, false));
	KUNIT_EXPECT_EQ(test, -EDQUOT, spyre_user_charge_host(sdev, a, U64_MAX, false));
	KUNIT_EXPECT_EQ(test, 0, a->host_pages);
	KUNIT_EXPECT_EQ(test, 0, spyre_user_charge_host(sdev, a, max - 1, false));
	KUNIT_EXPECT_EQ(test, -EDQUOT, spyre_user_charge_host(sdev, a, 2, false));
	KUNIT_EXPECT_EQ(test, 0, spyre_user_charge_host(sdev, a, 1, false));
	/* Lowered below what is in use: nothing more, and no wrap-around. */
	WRITE_ONCE(host_quota_percent, 1);
	KUNIT_EXPECT_EQ(test, -EDQUOT, spyre_user_charge_host(sdev, a, 1, false));
	KUNIT_EXPECT_EQ(test, 0, spyre_user_charge_host(sdev, a, 1, true));
	spyre_user_uncharge_host(sdev, a, max + 1);
	KUNIT_EXPECT_EQ(test, 0, spyre_user_charge_host(sdev, a, 1, false));
	/* A parameter that makes no sense is cut. */
	WRITE_ONCE(host_quota_percent, 1000);
	KUNIT_EXPECT_EQ(test, (u64)totalram_pages(), spyre_user_max_host());
	WRITE_ONCE(host_quota_percent, percent);
	KUNIT_EXPECT_EQ(test, 1, a->host_pages);
	spyre_user_put(sdev, a);
}

static struct kunit_case user_cases[] = {
	KUNIT_CASE(user_one_per_uid),
	KUNIT_CASE(user_half_for_one),
	KUNIT_CASE(user_host_memory),
	{}
};

struct kunit_suite spyre_user_suite = {
	.name = "spyre_user",
	.test_cases = user_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_user_suite);
