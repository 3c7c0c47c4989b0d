// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mailbox: answers, deadlines, a ring that is full, a card that talks nonsense.
 */
#include <linux/timer.h>

#include "spyre_kunit.h"

#define DEADLINE_MS	20u	/* for what never comes */

/* Firmware that answers nothing, but whose heart may beat. */
struct heart {
	struct spyre_device *sdev;
	struct timer_list timer;
};

static void beat(struct timer_list *timer)
{
	struct heart *h = container_of(timer, struct heart, timer);

	spyre_write(h->sdev, SPYRE_REG_HEARTBEAT, spyre_read(h->sdev, SPYRE_REG_HEARTBEAT) + 1);
	mod_timer(timer, jiffies + 1);
}

static struct spyre_device *mbox_device(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_mbox *m = &sdev->mbox;

	m->cmd = kunit_kcalloc(test, SPYRE_MBOX_CMDS, sizeof(*m->cmd), GFP_KERNEL);
	m->evt = kunit_kcalloc(test, SPYRE_MBOX_EVTS, sizeof(*m->evt), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->cmd);
	KUNIT_ASSERT_NOT_NULL(test, m->evt);
	KUNIT_ASSERT_EQ(test, 0, drmm_mutex_init(&sdev->drm, &m->evt_lock));
	spyre_mbox_start(sdev);
	return sdev;
}

static int mbox_init(struct kunit *test)
{
	test->priv = (void *)(unsigned long)mbox_timeout_ms;
	return 0;
}

static void mbox_exit(struct kunit *test)
{
	WRITE_ONCE(mbox_timeout_ms, (unsigned long)test->priv);
}

/* An event that the card has stored. */
static struct spyre_msg *event(struct spyre_device *sdev, u32 index, u32 type, u32 tag)
{
	struct spyre_msg *msg = &sdev->mbox.evt[index % SPYRE_MBOX_EVTS];

	*msg = (struct spyre_msg){
		.MessageType = cpu_to_le16(type),
		.MessageTag = cpu_to_le32(tag),
		.seq = cpu_to_le32(index + 1),
	};
	return msg;
}

static void mbox_answer(struct kunit *test)
{
	struct spyre_device *sdev = mbox_device(test);
	struct spyre_msg *msg = event(sdev, 0, SPYRE_MSG_RESPONSE, 1);
	u64 body = 0x1122334455667788, answer = 0;

	msg->length = cpu_to_le32(8);
	memcpy(msg->body, &body, 8);
	KUNIT_EXPECT_EQ(test, 0, spyre_mbox_call(sdev, SPYRE_MSG_GET_INFO, &body, 8, &answer, 8));
	KUNIT_EXPECT_EQ(test, body, answer);
	/* The command is as the card reads it. */
	msg = &sdev->mbox.cmd[0];
	KUNIT_EXPECT_EQ(test, SPYRE_MSG_GET_INFO, le16_to_cpu(msg->MessageType));
	KUNIT_EXPECT_EQ(test, 1, le32_to_cpu(msg->MessageTag));
	KUNIT_EXPECT_EQ(test, 8, le32_to_cpu(msg->length));
	KUNIT_EXPECT_MEMEQ(test, &body, msg->body, 8);
	KUNIT_EXPECT_EQ(test, 1, spyre_read(sdev, SPYRE_REG_MBOX_CMD_TAIL));
	KUNIT_EXPECT_EQ(test, 1, spyre_read(sdev, SPYRE_REG_MBOX_EVT_HEAD));
	KUNIT_EXPECT_TRUE(test, list_empty(&sdev->mbox.pending));
}

static void mbox_answer_too_short(struct kunit *test)
{
	struct spyre_device *sdev = mbox_device(test);
	u64 answer = 3;

	event(sdev, 0, SPYRE_MSG_RESPONSE, 1)->length = cpu_to_le32(7);
	KUNIT_EXPECT_EQ(test, -EPROTO,
			spyre_mbox_call(sdev, SPYRE_MSG_GET_INFO, NULL, 0, &answer, 8));
	KUNIT_EXPECT_EQ(test, 3, answer);
}

static const struct {
	u32 status;
	int error;
} statuses[] = {
	{ SPYRE_MSG_OK, 0 }, { SPYRE_MSG_ERR_TYPE, -EOPNOTSUPP },
	{ SPYRE_MSG_ERR_LENGTH, -EINVAL }, { SPYRE_MSG_ERR_ARG, -EINVAL },
	{ SPYRE_MSG_ERR_ID, -ENOENT }, { SPYRE_MSG_ERR_BUSY, -EBUSY },
	{ SPYRE_MSG_ERR_LIMIT, -EMFILE }, { SPYRE_MSG_ERR_FAULT, -EFAULT }, { 0xffff, -EIO },
};

static void mbox_statuses(struct kunit *test)
{
	struct spyre_device *sdev = mbox_device(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++) {
		spyre_write(sdev, SPYRE_REG_MBOX_CMD_HEAD, i);
		event(sdev, i, SPYRE_MSG_RESPONSE, i + 1)->status =
			cpu_to_le16(statuses[i].status);
		KUNIT_EXPECT_EQ(test, statuses[i].error,
				spyre_mbox_id(sdev, SPYRE_MSG_CTX_RESET, 1, 0));
	}
}

/* Answers that nobody waits for, and others' events, come before the one that counts. */
static void mbox_among_others(struct kunit *test)
{
	struct spyre_device *sdev = mbox_device(test);

	event(sdev, 0, SPYRE_MSG_RESPONSE, 99);
	event(sdev, 1, 0x7777, 1);
	event(sdev, 2, SPYRE_MSG_EVT_RAS, 1);
	event(sdev, 3, SPYRE_MSG_RESPONSE, 1)->length = cpu_to_le32(SPYRE_MSG_BODY + 1);
	event(sdev, 4, SPYRE_MSG_EVT_QUEUE_ERROR, 1)->length = cpu_to_le32(8);
	event(sdev, 5, SPYRE_MSG_RESPONSE, 1);
	KUNIT_EXPECT_EQ(test, 0, spyre_mbox_id(sdev, SPYRE_MSG_CTX_RESET, 1, 0));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&sdev->mbox.late));
	KUNIT_EXPECT_EQ(test, 6, sdev->mbox.head);
	KUNIT_EXPECT_EQ(test, 0, sdev->ras.last);
}

/* A card that stores events without end keeps a thread for a bounded time. */
static void mbox_flood(struct kunit *test)
{
	struct spyre_device *sdev = mbox_device(test);
	u32 i;

	for (i = 0; i < SPYRE_MBOX_EVTS; i++)
		event(sdev, i, SPYRE_MSG_EVT_QUEUE_ERROR, 0)->length = cpu_to_le32(8);
	KUNIT_EXPECT_TRUE(test, spyre_mbox_process(sdev));
	KUNIT_EXPECT_EQ(test, SPYRE_MBOX_EVTS, sdev->mbox.head);
	/* Entries of the last time around are not new. */
	KUNIT_EXPECT_FALSE(test, spyre_mbox_process(sdev));
	KUNIT_EXPECT_EQ(test, SPYRE_MBOX_EVTS, spyre_read(sdev, SPYRE_REG_MBOX_EVT_HEAD));
}

static void mbox_no_answer(struct kunit *test)
{
	struct spyre_device *sdev = mbox_device(test);

	WRITE_ONCE(mbox_timeout_ms, DEADLINE_MS);
	KUNIT_EXPECT_EQ(test, -EIO, spyre_mbox_id(sdev, SPYRE_MSG_CTX_RESET, 1, 0));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&sdev->mbox.timeouts));
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_FIRMWARE, sdev->reset.wanted);
	/* Whoever comes next does not wait as long again. */
	KUNIT_EXPECT_FALSE(test, sdev->mbox.up);
	KUNIT_EXPECT_EQ(test, -EIO, spyre_mbox_try_id(sdev, SPYRE_MSG_CTX_RESET, 1, 0));
	KUNIT_EXPECT_EQ(test, 1, sdev->mbox.tail);
	/* The answer that comes too late finds nobody. */
	event(sdev, 0, SPYRE_MSG_RESPONSE, 1);
	KUNIT_EXPECT_TRUE(test, spyre_mbox_process(sdev));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&sdev->mbox.late));
}

/* Alive and silent: more time, and at its end what the caller asked for. */
static void mbox_slow(struct kunit *test)
{
	struct spyre_device *sdev = mbox_device(test);
	struct heart *heart = kunit_kzalloc(test, sizeof(*heart), GFP_KERNEL);
	unsigned long start = jiffies;

	KUNIT_ASSERT_NOT_NULL(test, heart);
	heart->sdev = sdev;
	WRITE_ONCE(mbox_timeout_ms, DEADLINE_MS);
	timer_setup(&heart->timer, beat, 0);
	mod_timer(&heart->timer, jiffies + 1);
	KUNIT_EXPECT_EQ(test, -ETIMEDOUT, spyre_mbox_try_id(sdev, SPYRE_MSG_QUEUE_DESTROY, 1, 0));
	KUNIT_EXPECT_GE(test, jiffies - start, 5 * msecs_to_jiffies(DEADLINE_MS));
	KUNIT_EXPECT_TRUE(test, sdev->mbox.up);
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_NONE, sdev->reset.wanted);
	KUNIT_EXPECT_TRUE(test, list_empty(&sdev->mbox.pending));
	KUNIT_EXPECT_EQ(test, -EIO, spyre_mbox_id(sdev, SPYRE_MSG_QUEUE_DESTROY, 1, 0));
	KUNIT_EXPECT_FALSE(test, sdev->mbox.up);
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_FIRMWARE, sdev->reset.wanted);
	timer_delete_sync(&heart->timer);
}

/* The card takes no command: that has a deadline too. */
static void mbox_full(struct kunit *test)
{
	struct spyre_device *sdev = mbox_device(test);

	WRITE_ONCE(mbox_timeout_ms, DEADLINE_MS);
	sdev->mbox.tail = SPYRE_MBOX_CMDS;
	KUNIT_EXPECT_EQ(test, -EIO, spyre_mbox_id(sdev, SPYRE_MSG_CTX_RESET, 1, 0));
	KUNIT_EXPECT_EQ(test, SPYRE_MBOX_CMDS, sdev->mbox.tail);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&sdev->mbox.calls));
	/* One place is free: indices run over the end of 32 bits. */
	spyre_mbox_start(sdev);
	sdev->mbox.tail = 0;
	spyre_write(sdev, SPYRE_REG_MBOX_CMD_HEAD, -(SPYRE_MBOX_CMDS - 1));
	event(sdev, 0, SPYRE_MSG_RESPONSE, sdev->mbox.tag + 1);
	KUNIT_EXPECT_EQ(test, 0, spyre_mbox_id(sdev, SPYRE_MSG_CTX_RESET, 1, 0));
	KUNIT_EXPECT_EQ(test, 1, sdev->mbox.tail);
}

static void mbox_stop_work(struct work_struct *work)
{
	struct spyre_device *sdev = container_of(work, struct spyre_device, telemetry.notify);

	spyre_mbox_stop(sdev, -ENODEV);
}

/* Whoever waits hears of the end at once. */
static void mbox_stopped(struct kunit *test)
{
	struct spyre_device *sdev = mbox_device(test);

	/* Any work item of the card will do. */
	INIT_WORK(&sdev->telemetry.notify, mbox_stop_work);
	queue_work(system_unbound_wq, &sdev->telemetry.notify);
	KUNIT_EXPECT_TRUE(test, spyre_mbox_unanswered(spyre_mbox_id(sdev, SPYRE_MSG_CTX_RESET,
								    1, 0)));
	flush_work(&sdev->telemetry.notify);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&sdev->mbox.timeouts));
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_NONE, sdev->reset.wanted);
}

static void mbox_in_error(struct kunit *test)
{
	struct spyre_device *sdev = mbox_device(test);
	struct spyre_msg *msg = event(sdev, 0, SPYRE_MSG_EVT_STATE, 0);
	struct spyre_msg_id id = { .arg = cpu_to_le32(SPYRE_STATE_IN_ERROR) };

	msg->length = cpu_to_le32(sizeof(id));
	memcpy(msg->body, &id, sizeof(id));
	KUNIT_EXPECT_EQ(test, -EIO, spyre_mbox_id(sdev, SPYRE_MSG_CTX_RESET, 1, 0));
	KUNIT_EXPECT_EQ(test, SPYRE_RUNG_FLR, sdev->reset.wanted);
}

static struct kunit_case mbox_cases[] = {
	KUNIT_CASE(mbox_answer),
	KUNIT_CASE(mbox_answer_too_short),
	KUNIT_CASE(mbox_statuses),
	KUNIT_CASE(mbox_among_others),
	KUNIT_CASE(mbox_flood),
	KUNIT_CASE(mbox_no_answer),
	KUNIT_CASE(mbox_slow),
	KUNIT_CASE(mbox_full),
	KUNIT_CASE(mbox_stopped),
	KUNIT_CASE(mbox_in_error),
	{}
};

struct kunit_suite spyre_mbox_suite = {
	.name = "spyre_mbox",
	.init = mbox_init,
	.exit = mbox_exit,
	.test_cases = mbox_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_mbox_suite);
