// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reset ladder: which rung is taken, and what generation follows.
 */
#include "spyre_kunit.h"

static void reset_highest_counts(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_reset *r = &sdev->reset;

	spyre_reset_request(sdev, SPYRE_RUNG_FIRMWARE, "first");
	spyre_reset_request(sdev, SPYRE_RUNG_FIRMWARE, "second");
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_FIRMWARE, r->wanted);
	KUNIT_EXPECT_STREQ(test, "first", r->reason);
	spyre_reset_request(sdev, SPYRE_RUNG_FLR, "third");
	spyre_reset_request(sdev, SPYRE_RUNG_FIRMWARE, "fourth");
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_FLR, r->wanted);
	KUNIT_EXPECT_STREQ(test, "third", r->reason);
	WRITE_ONCE(sdev->recovering, true);
	spyre_recovery_over(sdev);
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_NONE, r->wanted);
	KUNIT_EXPECT_FALSE(test, sdev->recovering);
}

/* Of a card that is being taken away, is asleep, or is off nothing is reset. */
static void reset_not_now(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_reset *r = &sdev->reset;
	u32 i;

	for (i = 0; i < 4; i++) {
		sdev->gone = i == 0;
		sdev->suspended = i == 1;
		sdev->card_ok = i < 2;
		/* Someone else's reset is under way, and less than that is asked for. */
		sdev->recovering = i == 3;
		r->wanted = SPYRE_RUNG_FIRMWARE;
		r->reason = "test";
		reset_work(&r->work);
		KUNIT_EXPECT_EQ(test, SPYRE_RUNG_NONE, r->wanted);
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->firmware));
		KUNIT_EXPECT_EQ(test, i == 3, sdev->recovering);
	}
	sdev->gone = true;
}

/* Four in a minute, and the fifth is the next rung; a minute later they are forgotten. */
static void reset_too_often(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_reset *r = &sdev->reset;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(r->stamps[0]); i++)
		KUNIT_EXPECT_FALSE(test, too_often(r, SPYRE_RUNG_FIRMWARE));
	KUNIT_EXPECT_TRUE(test, too_often(r, SPYRE_RUNG_FIRMWARE));
	/* Each rung has its own. */
	for (i = 0; i < ARRAY_SIZE(r->stamps[0]); i++)
		KUNIT_EXPECT_FALSE(test, too_often(r, SPYRE_RUNG_FLR));
	KUNIT_EXPECT_TRUE(test, too_often(r, SPYRE_RUNG_FLR));
	for (i = 0; i < ARRAY_SIZE(r->stamps[0]); i++)
		r->stamps[0][i] -= RATE_WINDOW + 1;
	KUNIT_EXPECT_FALSE(test, too_often(r, SPYRE_RUNG_FIRMWARE));
	KUNIT_EXPECT_TRUE(test, too_often(r, SPYRE_RUNG_FLR));
}

/* A generation moves with each loss, whatever the card says, and never back. */
static void reset_generations(struct kunit *test)
{
	static const struct {
		u32 old, card, new;
	} cases[] = {
		{ 5, 6, 6 },
		{ 5, 9, 9 },
		{ 5, 5, 6 },
		{ 5, 4, 6 },
		{ 5, U32_MAX, 6 },
		{ U32_MAX - 1, 1, 1 },
	};
	struct spyre_device *sdev = spyre_kunit_device(test);
	u32 i, mem = sdev->mem.gen;

	down_write(&sdev->reset_sem);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		sdev->gen = cases[i].old;
		spyre_write(sdev, SPYRE_REG_RESET_GEN, cases[i].card);
		sdev->telemetry.valid = true;
		spyre_lose_all(sdev, SPYRE_ERR_RESET);
		KUNIT_EXPECT_EQ(test, cases[i].new, sdev->gen);
		KUNIT_EXPECT_EQ(test, mem + i + 1, sdev->mem.gen);
		KUNIT_EXPECT_FALSE(test, sdev->telemetry.valid);
	}
	up_write(&sdev->reset_sem);
}

/* What the watch makes of registers: it asks for a rung, or sees that all is well. */
static void reset_watch_decides(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_reset *r = &sdev->reset;

	sdev->card_ok = true;
	/* Nobody uses the card. */
	spyre_write(sdev, SPYRE_REG_STATE, SPYRE_STATE_IN_ERROR);
	watch_work(&r->watch.work);
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_NONE, r->wanted);
	atomic_set(&sdev->nqueues, 2);
	spyre_write(sdev, SPYRE_REG_STATE, SPYRE_STATE_ONLINE);
	spyre_write(sdev, SPYRE_REG_HEARTBEAT, 7);
	watch_work(&r->watch.work);
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_NONE, r->wanted);
	KUNIT_EXPECT_EQ(test, 7, r->beat);
	spyre_write(sdev, SPYRE_REG_STATE, SPYRE_STATE_IN_ERROR);
	spyre_write(sdev, SPYRE_REG_BOOT_STATUS, SPYRE_BOOT_CRASHED);
	watch_work(&r->watch.work);
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_FIRMWARE, r->wanted);
	spyre_write(sdev, SPYRE_REG_BOOT_STATUS, SPYRE_BOOT_RUNNING);
	watch_work(&r->watch.work);
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_FLR, r->wanted);
	r->wanted = SPYRE_RUNG_NONE;
	spyre_write(sdev, SPYRE_REG_STATE, U32_MAX);
	spyre_write(sdev, SPYRE_REG_HEARTBEAT, U32_MAX);
	watch_work(&r->watch.work);
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_FLR, r->wanted);
	KUNIT_EXPECT_STREQ(test, "the card does not answer", r->reason);
	/* Whoever has the card for himself: later. */
	down_write(&sdev->reset_sem);
	watch_work(&r->watch.work);
	up_write(&sdev->reset_sem);
	disable_delayed_work_sync(&r->watch);
	sdev->card_ok = false;
	atomic_set(&sdev->nqueues, 0);
}

static struct kunit_case reset_cases[] = {
	KUNIT_CASE(reset_highest_counts),
	KUNIT_CASE(reset_not_now),
	KUNIT_CASE(reset_too_often),
	KUNIT_CASE(reset_generations),
	KUNIT_CASE(reset_watch_decides),
	{}
};

struct kunit_suite spyre_reset_suite = {
	.name = "spyre_reset",
	.test_cases = reset_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_reset_suite);
