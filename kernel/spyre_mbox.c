// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mailbox: commands with a deadline each, answers and events.
 *
 * A command that meets its deadline while the heartbeat moves gets more time, up to four times:
 * slow is not dead. One that meets it for good asks for a firmware restart and takes the mailbox
 * down, so that whoever comes next fails at once instead of waiting as long again. Callers that
 * know a lower rung of the reset ladder try that first.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/moduleparam.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_trace.h"

static unsigned int mbox_timeout_ms = 3000;
module_param(mbox_timeout_ms, uint, 0644);
MODULE_PARM_DESC(mbox_timeout_ms, "how long the firmware may take for a command (default 3000)");

struct mbox_req {
	struct list_head link;
	struct completion done;
	u32 tag;
	int error;
	struct spyre_msg answer;
};

int spyre_mbox_init(struct spyre_device *sdev)
{
	struct spyre_mbox *m = &sdev->mbox;

	spin_lock_init(&m->lock);
	INIT_LIST_HEAD(&m->pending);
	m->cmd = dmam_alloc_coherent(&sdev->pdev->dev, SPYRE_MBOX_CMDS * sizeof(*m->cmd),
				     &m->cmd_dma, GFP_KERNEL);
	m->evt = dmam_alloc_coherent(&sdev->pdev->dev, SPYRE_MBOX_EVTS * sizeof(*m->evt),
				     &m->evt_dma, GFP_KERNEL);
	if (!m->cmd || !m->evt)
		return -ENOMEM;
	return drmm_mutex_init(&sdev->drm, &m->evt_lock);
}

/* With the core stopped: empty rings, told to the card. */
void spyre_mbox_start(struct spyre_device *sdev)
{
	struct spyre_mbox *m = &sdev->mbox;

	mutex_lock(&m->evt_lock);
	spin_lock(&m->lock);
	memset(m->cmd, 0, SPYRE_MBOX_CMDS * sizeof(*m->cmd));
	memset(m->evt, 0, SPYRE_MBOX_EVTS * sizeof(*m->evt));
	m->tail = 0;
	m->head = 0;
	WRITE_ONCE(m->up, true);
	spyre_write64(sdev, SPYRE_REG_MBOX_CMD_BASE, m->cmd_dma);
	spyre_write64(sdev, SPYRE_REG_MBOX_EVT_BASE, m->evt_dma);
	spyre_write(sdev, SPYRE_REG_MBOX_CMD_ENTRIES, SPYRE_MBOX_CMDS);
	spyre_write(sdev, SPYRE_REG_MBOX_EVT_ENTRIES, SPYRE_MBOX_EVTS);
	spyre_write(sdev, SPYRE_REG_MBOX_CMD_TAIL, 0);
	spyre_write(sdev, SPYRE_REG_MBOX_EVT_HEAD, 0);
	spin_unlock(&m->lock);
	mutex_unlock(&m->evt_lock);
}

/* Commands waiting and to come fail with @error until the next start. */
void spyre_mbox_stop(struct spyre_device *sdev, int error)
{
	struct spyre_mbox *m = &sdev->mbox;
	struct mbox_req *req, *next;

	spin_lock(&m->lock);
	WRITE_ONCE(m->up, false);
	list_for_each_entry_safe(req, next, &m->pending, link) {
		list_del_init(&req->link);
		req->error = error;
		complete(&req->done);
	}
	spin_unlock(&m->lock);
}

static void take_answer(struct spyre_device *sdev, const struct spyre_msg *msg)
{
	struct spyre_mbox *m = &sdev->mbox;
	u32 tag = le32_to_cpu(msg->MessageTag);
	struct mbox_req *req;

	spin_lock(&m->lock);
	list_for_each_entry(req, &m->pending, link) {
		if (req->tag != tag)
			continue;
		list_del_init(&req->link);
		req->answer = *msg;
		complete(&req->done);
		spin_unlock(&m->lock);
		return;
	}
	spin_unlock(&m->lock);
	/*
	 * Its deadline had passed, or the firmware invented the tag: neither is a reason to stop.
	 */
	atomic_inc(&m->late);
	drm_dbg(&sdev->drm, "answer to tag %u, which nobody waits for\n", tag);
}

static void handle(struct spyre_device *sdev, const struct spyre_msg *msg)
{
	const struct spyre_msg_id *id = (const struct spyre_msg_id *)msg->body;
	u32 type = le16_to_cpu(msg->MessageType);
	u32 len = le32_to_cpu(msg->length);
	u32 arg;

	trace_spyre_mbox_event(sdev->drm.dev, type, le32_to_cpu(msg->MessageTag),
			       le16_to_cpu(msg->status));
	if (len > SPYRE_MSG_BODY)
		goto odd;
	switch (type) {
	case SPYRE_MSG_RESPONSE:
		take_answer(sdev, msg);
		return;
	case SPYRE_MSG_EVT_RAS:
		if (len < sizeof(struct spyre_msg_ras))
			goto odd;
		spyre_ras_event(sdev, (const struct spyre_msg_ras *)msg->body);
		return;
	}
	if (len < sizeof(*id))
		goto odd;
	arg = le32_to_cpu(id->arg);
	switch (type) {
	case SPYRE_MSG_EVT_STATE:
		drm_dbg(&sdev->drm, "state %s\n", spyre_state_name(arg));
		if (arg == SPYRE_STATE_IN_ERROR) {
			/*
			 * Whoever waits for the firmware under reset_sem would hold the reset up.
			 */
			spyre_mbox_stop(sdev, -EIO);
			spyre_reset_request(sdev, SPYRE_RUNG_FLR, "the card went IN_ERROR");
		}
		return;
	case SPYRE_MSG_EVT_QUEUE_ERROR:
		drm_dbg(&sdev->drm, "queue %u failed with status %u\n", le32_to_cpu(id->id), arg);
		return;
	case SPYRE_MSG_EVT_LOG:
		spyre_fw_log_news(sdev);
		return;
	case SPYRE_MSG_EVT_THERMAL:
		spyre_telemetry_thermal(sdev, le32_to_cpu(id->id), arg);
		return;
	}
odd:
	dev_warn_ratelimited(sdev->drm.dev, "event of type %u and %u bytes ignored\n", type, len);
}

/* Takes what is in the event ring. True if there was anything. */
bool spyre_mbox_process(struct spyre_device *sdev)
{
	struct spyre_mbox *m = &sdev->mbox;
	struct spyre_msg msg;
	u32 begin, budget;

	mutex_lock(&m->evt_lock);
	begin = m->head;
	/* Bounded: a card that produces without end shall not keep a thread for ever. */
	for (budget = 4 * SPYRE_MBOX_EVTS; budget; budget--) {
		const struct spyre_msg *slot = &m->evt[m->head % SPYRE_MBOX_EVTS];

		if (le32_to_cpu(READ_ONCE(slot->seq)) != m->head + 1)
			break;
		/* seq is written last: the rest is read after it. */
		dma_rmb();
		msg = *slot;
		m->head++;
		spyre_write(sdev, SPYRE_REG_MBOX_EVT_HEAD, m->head);
		handle(sdev, &msg);
	}
	begin = m->head - begin;
	mutex_unlock(&m->evt_lock);
	return begin;
}

static int send(struct spyre_device *sdev, struct mbox_req *req, u32 type, const void *body,
		size_t len)
{
	struct spyre_mbox *m = &sdev->mbox;
	struct spyre_msg msg = {
		.MessageAppId = cpu_to_le16(SPYRE_APP_DRIVER),
		.MessageType = cpu_to_le16(type),
		.length = cpu_to_le32(len),
	};
	int ret = 0;

	if (len)
		memcpy(msg.body, body, len);
	spin_lock(&m->lock);
	if (!m->up) {
		ret = -EIO;
	} else if (m->tail - spyre_read(sdev, SPYRE_REG_MBOX_CMD_HEAD) >= SPYRE_MBOX_CMDS) {
		ret = -EAGAIN;
	} else {
		req->tag = ++m->tag;
		msg.MessageTag = cpu_to_le32(req->tag);
		m->cmd[m->tail % SPYRE_MBOX_CMDS] = msg;
		list_add_tail(&req->link, &m->pending);
		m->tail++;
		/* The message is in memory before the card hears of it. */
		dma_wmb();
		spyre_write(sdev, SPYRE_REG_MBOX_CMD_TAIL, m->tail);
	}
	spin_unlock(&m->lock);
	return ret;
}

static int status_error(struct spyre_device *sdev, u32 type, u32 status)
{
	switch (status) {
	case SPYRE_MSG_OK:
		return 0;
	case SPYRE_MSG_ERR_TYPE:
		return -EOPNOTSUPP;
	case SPYRE_MSG_ERR_LENGTH:
	case SPYRE_MSG_ERR_ARG:
		return -EINVAL;
	case SPYRE_MSG_ERR_ID:
		return -ENOENT;
	case SPYRE_MSG_ERR_BUSY:
		return -EBUSY;
	case SPYRE_MSG_ERR_LIMIT:
		return -EMFILE;
	case SPYRE_MSG_ERR_FAULT:
		return -EFAULT;
	default:
		dev_warn_ratelimited(sdev->drm.dev, "command %u answered with unknown status %u\n",
				     type, status);
		return -EIO;
	}
}

/* @lenient: -ETIMEDOUT instead of a restart when the firmware is alive and only does not answer. */
static int mbox_call(struct spyre_device *sdev, u32 type, const void *body, size_t len,
		     void *answer, size_t answer_len, bool lenient)
{
	unsigned long step = msecs_to_jiffies(clamp(READ_ONCE(mbox_timeout_ms), 10u, 600000u));
	unsigned long deadline = jiffies + step;
	struct spyre_mbox *m = &sdev->mbox;
	unsigned int extended = 0, nap = 20;
	struct mbox_req req = { .error = 0 };
	u32 beat, now;
	int ret;

	might_sleep();
	init_completion(&req.done);
	beat = spyre_read(sdev, SPYRE_REG_HEARTBEAT);
	while ((ret = send(sdev, &req, type, body, len)) == -EAGAIN) {
		if (time_after(jiffies, deadline))
			goto dead;
		spyre_mbox_process(sdev);
		usleep_range(100, 1000);
	}
	if (ret)
		return ret;
	atomic_inc(&m->calls);
	trace_spyre_mbox_call(sdev->drm.dev, type, req.tag);
	while (!wait_for_completion_timeout(&req.done, msecs_to_jiffies(nap))) {
		/* An interrupt may be lost; the answer is not. */
		spyre_mbox_process(sdev);
		if (completion_done(&req.done)) {
			atomic_inc(&m->polled);
			continue;
		}
		nap = min(2 * nap, 200u);
		if (!time_after(jiffies, deadline))
			continue;
		now = spyre_read(sdev, SPYRE_REG_HEARTBEAT);
		if (now != beat && now != U32_MAX && extended++ < 4) {
			beat = now;
			deadline = jiffies + step;
			continue;
		}
		spin_lock(&m->lock);
		if (list_empty(&req.link)) {
			/* Answered at this very moment. */
			spin_unlock(&m->lock);
			continue;
		}
		list_del_init(&req.link);
		spin_unlock(&m->lock);
		/* Alive through all of its extensions: it works, and something does not end. */
		if (lenient && extended > 4 && now != beat && now != U32_MAX) {
			atomic_inc(&m->timeouts);
			return -ETIMEDOUT;
		}
		goto dead;
	}
	if (req.error)
		return req.error;
	ret = status_error(sdev, type, le16_to_cpu(req.answer.status));
	if (ret || !answer)
		return ret;
	if (le32_to_cpu(req.answer.length) < answer_len) {
		drm_warn(&sdev->drm, "answer to command %u has %u bytes, %zu expected\n", type,
			 le32_to_cpu(req.answer.length), answer_len);
		return -EPROTO;
	}
	memcpy(answer, req.answer.body, answer_len);
	return 0;
dead:
	atomic_inc(&m->timeouts);
	drm_err(&sdev->drm, "firmware did not answer command %u in %u ms\n", type,
		jiffies_to_msecs(step));
	spyre_mbox_stop(sdev, -EIO);
	spyre_reset_request(sdev, SPYRE_RUNG_FIRMWARE, "the firmware does not answer");
	return -EIO;
}

/**
 * spyre_mbox_call - send a command and wait for its answer
 * @sdev: card
 * @type: enum spyre_msg_type
 * @body: body, or NULL
 * @len: bytes of it
 * @answer: where the answer's body goes, or NULL
 * @answer_len: bytes it must at least have
 *
 * Not interruptible: what the firmware does cannot be taken back, and the deadline bounds it.
 *
 * Return: 0; -EIO when the firmware does not answer (a restart has been asked for) and -ENODEV when
 * the card is taken away meanwhile, see spyre_mbox_unanswered(); -EPROTO for an answer that makes
 * no sense; else what it answered.
 */
int spyre_mbox_call(struct spyre_device *sdev, u32 type, const void *body, size_t len,
		    void *answer, size_t answer_len)
{
	return mbox_call(sdev, type, body, len, answer, answer_len, false);
}

static int call_id(struct spyre_device *sdev, u32 type, u32 id, u32 arg, bool lenient)
{
	struct spyre_msg_id body = { .id = cpu_to_le32(id), .arg = cpu_to_le32(arg) };

	return mbox_call(sdev, type, &body, sizeof(body), NULL, 0, lenient);
}

/* As spyre_mbox_id(), but -ETIMEDOUT and no restart when the firmware is alive all the time. */
int spyre_mbox_try_id(struct spyre_device *sdev, u32 type, u32 id, u32 arg)
{
	return call_id(sdev, type, id, arg, true);
}

int spyre_mbox_id(struct spyre_device *sdev, u32 type, u32 id, u32 arg)
{
	return call_id(sdev, type, id, arg, false);
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_mbox_kunit.c"
#endif
