// SPDX-License-Identifier: GPL-2.0-only
/*
 * The upper rungs of the reset ladder: firmware restart, function-level reset, off the bus.
 *
 * A request says how high at least and why; the work does the lowest rung that was asked for and
 * goes up when that fails or comes too often. Each step is bounded: boot has a deadline, the
 * function reset has the PCI core's.
 */
#include <linux/delay.h>
#include <linux/pci.h>

#include <drm/drm_managed.h>

#include "kernel_compat.h"
#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_dump.h"
#include "spyre_gem.h"
#include "spyre_kctx.h"
#include "spyre_peer.h"
#include "spyre_queue.h"
#include "spyre_trace.h"

/* So many restarts or resets within the window, and the next rung is taken instead. */
#define RATE_WINDOW	(60 * HZ)

/*
 * A frozen PCI channel is followed by a reset of the slot, which may take the core a minute. All
 * that time it holds the device's lock. When it gives up it tells no driver: a lock that nobody
 * holds for FROZEN_IDLE is the only sign. Other functions of the slot may be told of the error
 * meanwhile.
 */
#define FROZEN_MAX	(90 * HZ)
#define FROZEN_LOOK	HZ
#define FROZEN_IDLE	(10 * HZ)

static const char * const rung_name[] = {
	"none", "firmware restart", "function-level reset", "off",
};

void spyre_reset_request(struct spyre_device *sdev, enum spyre_rung rung, const char *reason)
{
	struct spyre_reset *r = &sdev->reset;
	unsigned long flags;

	spin_lock_irqsave(&r->lock, flags);
	if (rung > r->wanted) {
		r->wanted = rung;
		r->reason = reason;
	}
	spin_unlock_irqrestore(&r->lock, flags);
	if (!READ_ONCE(sdev->gone))
		queue_work(system_unbound_wq, &r->work);
}

/*
 * The card is up or off: whoever waited looks again. Requests made meanwhile are dealt with.
 * reset_sem: write.
 */
void spyre_recovery_over(struct spyre_device *sdev)
{
	spin_lock_irq(&sdev->reset.lock);
	sdev->reset.wanted = SPYRE_RUNG_NONE;
	spin_unlock_irq(&sdev->reset.lock);
	WRITE_ONCE(sdev->recovering, false);
	wake_up_all(&sdev->reset.over);
	cancel_delayed_work(&sdev->reset.overdue);
}

static bool too_often(struct spyre_reset *r, enum spyre_rung rung)
{
	unsigned long *stamps = r->stamps[rung == SPYRE_RUNG_FLR];
	unsigned int n = ARRAY_SIZE(r->stamps[0]), i;
	bool often = stamps[0] && time_before(jiffies, stamps[0] + RATE_WINDOW);

	for (i = 0; i + 1 < n; i++)
		stamps[i] = stamps[i + 1];
	stamps[n - 1] = jiffies ?: 1;
	return often;
}

/*
 * Card memory and contexts are gone, or may never be asked for again. The card is stopped;
 * reset_sem: write.
 */
void spyre_lose_all(struct spyre_device *sdev, u32 status)
{
	struct spyre_ctx *ctx;
	unsigned long id;
	u32 gen;

	lockdep_assert_held_write(&sdev->reset_sem);
	gen = spyre_read(sdev, SPYRE_REG_RESET_GEN);
	/* A card that is not there reads ones; a generation moves in any case. */
	if (gen == U32_MAX || (s32)(gen - sdev->gen) <= 0)
		gen = sdev->gen + 1;
	WRITE_ONCE(sdev->gen, gen);
	if (sdev->kctx) {
		ctx = sdev->kctx;
		sdev->kctx = NULL;
		spyre_ctx_lose(ctx, status, gen);
		spyre_ctx_put(ctx);
	}
	spyre_ctx_free_limbo(sdev);
	xa_for_each(&sdev->ctxs, id, ctx) {
		kref_get(&ctx->ref);
		spyre_ctx_lose(ctx, status, gen);
		spyre_ctx_put(ctx);
	}
	spyre_mem_lost(sdev);
	mutex_lock(&sdev->telemetry.lock);
	sdev->telemetry.valid = false;
	mutex_unlock(&sdev->telemetry.lock);
}

/* Whether user mappings show the card or stand-in pages; what they showed until now goes. */
void spyre_show_card(struct spyre_device *sdev, bool show)
{
	down_write(&sdev->mmio_sem);
	sdev->mmio_ok = show;
	up_write(&sdev->mmio_sem);
	spyre_zap_mappings(sdev);
}

/* Off the bus: nothing the card does reaches host memory any more. */
static void die(struct spyre_device *sdev)
{
	lockdep_assert_held_write(&sdev->reset_sem);
	sdev->card_ok = false;
	spyre_submits_fail(sdev, -ENODEV);
	spyre_show_card(sdev, false);
	spyre_mbox_stop(sdev, -ENODEV);
	spyre_fw_stop(sdev);
	pci_clear_master(sdev->pdev);
	spyre_lose_all(sdev, SPYRE_ERR_RESET);
	spyre_recovery_over(sdev);
	drm_err(&sdev->drm, "card is off; unbind and bind it again, or power-cycle the machine\n");
	spyre_compat_wedged(&sdev->drm);
}

/**
 * spyre_boot_and_restore - bring the card up after it was stopped
 * @sdev: card, reset_sem held for writing
 * @memory_kept: contexts and queues go on where they were
 *
 * Return: 0, or an error and the card is stopped.
 */
int spyre_boot_and_restore(struct spyre_device *sdev, bool memory_kept)
{
	struct spyre_ctx *ctx;
	unsigned long id;
	int ret;

	ret = spyre_fw_boot(sdev);
	if (ret)
		return ret;
	if (!memory_kept) {
		ret = spyre_kctx_create(sdev);
		if (ret)
			goto fail;
	} else {
		spyre_ctx_free_limbo(sdev);
		xa_for_each(&sdev->ctxs, id, ctx) {
			ret = spyre_ctx_recreate(ctx);
			if (ret)
				goto fail;
		}
	}
	sdev->card_ok = true;
	return 0;
fail:
	spyre_fw_print_log(sdev, SZ_2K);
	spyre_fw_stop(sdev);
	spyre_mbox_stop(sdev, -EIO);
	return ret;
}

/*
 * Before suspend: every queue stops at a boundary. What does not in the mailbox's time is left as
 * it is and fails later. reset_sem: write.
 */
void spyre_quiesce(struct spyre_device *sdev)
{
	struct spyre_ctx *ctx;
	struct spyre_queue *q;
	unsigned long id, qid;

	xa_for_each(&sdev->ctxs, id, ctx) {
		mutex_lock(&ctx->lock);
		xa_for_each(&ctx->queues, qid, q)
			if (q->on_card && spyre_mbox_id(sdev, SPYRE_MSG_QUEUE_SUSPEND, q->page, 0))
				drm_warn(&sdev->drm, "queue %lu of context %lu did not stop\n",
					 qid, id);
		if (ctx->submit && ctx->kqueue->on_card &&
		    spyre_mbox_id(sdev, SPYRE_MSG_QUEUE_SUSPEND, ctx->kqueue->page, 0))
			drm_warn(&sdev->drm, "the kernel's queue of context %lu did not stop\n",
				 id);
		mutex_unlock(&ctx->lock);
	}
}

/* Rung FIRMWARE. */
int spyre_restart(struct spyre_device *sdev)
{
	u32 gen;
	int ret;

	lockdep_assert_held_write(&sdev->reset_sem);
	sdev->card_ok = false;
	spyre_mbox_stop(sdev, -EIO);
	spyre_fw_stop(sdev);
	gen = spyre_read(sdev, SPYRE_REG_RESET_GEN);
	if (gen != sdev->fw_gen)
		return -EIO;	/* memory was lost behind our back */
	ret = spyre_boot_and_restore(sdev, true);
	if (!ret)
		atomic_inc(&sdev->reset.firmware);
	return ret;
}

static void reset_work(struct work_struct *work)
{
	struct spyre_device *sdev = container_of(work, struct spyre_device, reset.work);
	struct spyre_reset *r = &sdev->reset;
	enum spyre_rung rung;
	const char *reason;
	int ret, tries;
	bool dead;

	down_write(&sdev->reset_sem);
	spin_lock_irq(&r->lock);
	rung = r->wanted;
	reason = r->reason;
	r->wanted = SPYRE_RUNG_NONE;
	spin_unlock_irq(&r->lock);
	/*
	 * What was wrong may have been set right by a reset of someone else's. A card that is away
	 * and not off is one that did not come back from suspend, or that someone else is resetting
	 * now: a reset of the function serves both, and nothing less does.
	 */
	if (!rung || sdev->gone || sdev->suspended ||
	    (!sdev->card_ok && !(sdev->recovering && rung >= SPYRE_RUNG_FLR))) {
		up_write(&sdev->reset_sem);
		return;
	}
	/* Before the dump, which allocates: nobody's fence waits for that. */
	spyre_submits_fail(sdev, rung == SPYRE_RUNG_FIRMWARE ? -EIO : -ENODEV);
	drm_err(&sdev->drm, "%s: %s\n", rung_name[rung], reason);
	trace_spyre_reset(sdev->drm.dev, rung, reason);
	if (sdev->card_ok) {
		spyre_fw_print_log(sdev, SZ_2K);
		spyre_dump(sdev, reason);
	}
	if (rung == SPYRE_RUNG_FIRMWARE && too_often(r, rung)) {
		drm_err(&sdev->drm, "too many firmware restarts\n");
		rung = SPYRE_RUNG_FLR;
	}
	if (rung == SPYRE_RUNG_FIRMWARE) {
		ret = spyre_restart(sdev);
		if (!ret) {
			spyre_recovery_over(sdev);
			drm_info(&sdev->drm, "firmware restarted, contexts go on\n");
			up_write(&sdev->reset_sem);
			return;
		}
		drm_err(&sdev->drm, "firmware restart failed (%d)\n", ret);
		rung = SPYRE_RUNG_FLR;
	}
	if (rung == SPYRE_RUNG_FLR && too_often(r, rung)) {
		drm_err(&sdev->drm, "too many resets\n");
		rung = SPYRE_RUNG_DEAD;
	}
	sdev->card_ok = false;
	WRITE_ONCE(sdev->recovering, true);
	spyre_mbox_stop(sdev, -EIO);
	up_write(&sdev->reset_sem);

	/*
	 * The PCI core calls our reset_prepare and reset_done around it. It needs the device
	 * lock, which removal holds while it waits for this work: hence only a try, and the look
	 * at gone.
	 */
	for (tries = 0; rung == SPYRE_RUNG_FLR && tries < 100 && !READ_ONCE(sdev->gone); tries++) {
		/* Someone else's reset of the function does as well. */
		if (!READ_ONCE(sdev->recovering))
			break;
		ret = pci_try_reset_function(sdev->pdev);
		if (ret != -EAGAIN) {
			if (ret)
				drm_err(&sdev->drm, "function-level reset failed (%d)\n", ret);
			break;
		}
		msleep(20);
	}
	down_write(&sdev->reset_sem);
	dead = !sdev->card_ok && sdev->recovering && !sdev->gone;
	if (dead)
		die(sdev);
	up_write(&sdev->reset_sem);
	if (dead)
		spyre_peers_revoke(sdev);
}

/*
 * After a PCI error, until a reset followed it. When none does the card gets one of the function,
 * which needs what the error has taken from its configuration space; a card that is not there gets
 * none.
 */
static void overdue_work(struct work_struct *work)
{
	struct spyre_device *sdev = container_of(to_delayed_work(work), struct spyre_device,
						 reset.overdue);
	struct spyre_reset *r = &sdev->reset;
	struct pci_dev *pdev = sdev->pdev;
	bool late, present;

	down_write(&sdev->reset_sem);
	if (sdev->card_ok || !sdev->recovering || sdev->gone) {
		up_write(&sdev->reset_sem);
		return;
	}
	late = time_after(jiffies, r->frozen + FROZEN_MAX);
	/* Only a try: removal holds the lock while it waits for this work. */
	if (!device_trylock(&pdev->dev)) {
		r->busy = jiffies;
		present = true;
	} else if (late || time_after(jiffies, r->busy + FROZEN_IDLE)) {
		late = true;
		present = pci_device_is_present(pdev);
		if (present) {
			pci_restore_state(pdev);
			pdev->error_state = pci_channel_io_normal;
		}
		device_unlock(&pdev->dev);
	} else {
		present = true;
		device_unlock(&pdev->dev);
	}
	if (!late) {
		queue_delayed_work(system_unbound_wq, &r->overdue, FROZEN_LOOK);
	} else {
		drm_err(&sdev->drm, "no reset followed the PCI error\n");
		/* Under reset_sem: a card that comes back now takes the request with it. */
		if (present)
			spyre_reset_request(sdev, SPYRE_RUNG_FLR, "the PCI error");
		else
			die(sdev);
	}
	up_write(&sdev->reset_sem);
}

/* --- Watch ---------------------------------------------------------------------------------- */

static bool in_use(struct spyre_device *sdev)
{
	/* Our own queue is always there. */
	return atomic_read(&sdev->nqueues) > 1;
}

/*
 * Looks once a second while anyone has a queue. The heartbeat counts while there is work; an idle
 * card sleeps, and then one command says whether it is alive. A long job is no hang: the
 * heartbeat moves.
 */
static void watch_work(struct work_struct *work)
{
	struct spyre_device *sdev = container_of(to_delayed_work(work), struct spyre_device,
						 reset.watch);
	struct spyre_reset *r = &sdev->reset;
	struct spyre_msg_telemetry msg;
	u32 state, beat;

	if (!down_read_trylock(&sdev->reset_sem)) {
		schedule_delayed_work(&r->watch, HZ);
		return;
	}
	if (!sdev->card_ok || !in_use(sdev)) {
		up_read(&sdev->reset_sem);
		return;
	}
	state = spyre_read(sdev, SPYRE_REG_STATE);
	beat = spyre_read(sdev, SPYRE_REG_HEARTBEAT);
	if (state == U32_MAX && beat == U32_MAX) {
		spyre_mbox_stop(sdev, -EIO);
		spyre_reset_request(sdev, SPYRE_RUNG_FLR, "the card does not answer");
	} else if (state == SPYRE_STATE_IN_ERROR) {
		/* Whoever waits for the firmware under reset_sem would hold the reset up. */
		spyre_mbox_stop(sdev, -EIO);
		if (spyre_read(sdev, SPYRE_REG_BOOT_STATUS) == SPYRE_BOOT_CRASHED)
			spyre_reset_request(sdev, SPYRE_RUNG_FIRMWARE, "the firmware crashed");
		else
			spyre_reset_request(sdev, SPYRE_RUNG_FLR, "the card is IN_ERROR");
	} else if (beat == r->beat) {
		/* No answer asks for a restart by itself. */
		spyre_mbox_call(sdev, SPYRE_MSG_GET_TELEMETRY, NULL, 0, &msg, sizeof(msg));
		beat = spyre_read(sdev, SPYRE_REG_HEARTBEAT);
	}
	r->beat = beat;
	up_read(&sdev->reset_sem);
	schedule_delayed_work(&r->watch, HZ);
}

/* A queue was made: from now on there is something to watch. */
void spyre_reset_watch(struct spyre_device *sdev)
{
	if (!READ_ONCE(sdev->gone))
		schedule_delayed_work(&sdev->reset.watch, HZ);
}

void spyre_reset_init(struct spyre_device *sdev)
{
	spin_lock_init(&sdev->reset.lock);
	init_waitqueue_head(&sdev->reset.over);
	INIT_WORK(&sdev->reset.work, reset_work);
	INIT_DELAYED_WORK(&sdev->reset.watch, watch_work);
	INIT_DELAYED_WORK(&sdev->reset.overdue, overdue_work);
}

/*
 * Whoever read gone as false just before may still queue them: they are disabled, not only
 * cancelled.
 */
void spyre_reset_fini(struct spyre_device *sdev)
{
	disable_delayed_work_sync(&sdev->reset.watch);
	disable_delayed_work_sync(&sdev->reset.overdue);
	disable_work_sync(&sdev->reset.work);
}

/* --- PCI ------------------------------------------------------------------------------------ */

/* Nobody reaches the card until it was reset: who tries waits for that. reset_sem: write. */
static void take_away(struct spyre_device *sdev)
{
	sdev->card_ok = false;
	WRITE_ONCE(sdev->recovering, true);
	spyre_submits_fail(sdev, -ENODEV);
	spyre_show_card(sdev, false);
	spyre_mbox_stop(sdev, -EIO);
	/* Nobody may touch a function that is being reset, and the threads hold no reset_sem. */
	spyre_irq_quiet(sdev, true);
}

/* Before a reset of the function, whoever asked for it. The card forgets everything. */
static void reset_prepare(struct pci_dev *pdev)
{
	struct spyre_device *sdev = pci_get_drvdata(pdev);

	down_write(&sdev->reset_sem);
	take_away(sdev);
	spyre_fw_stop(sdev);
	up_write(&sdev->reset_sem);
	spyre_peers_revoke(sdev);
}

/* After it: configuration space is as before. */
static void bring_back(struct spyre_device *sdev)
{
	int ret;

	down_write(&sdev->reset_sem);
	spyre_lose_all(sdev, SPYRE_ERR_RESET);
	spyre_irq_quiet(sdev, false);
	/* A card that was given up had it taken away. */
	if (!sdev->gone)
		pci_set_master(sdev->pdev);
	ret = sdev->gone ? -ENODEV : spyre_boot_and_restore(sdev, false);
	if (!ret) {
		/* A restore may use up what was saved, and slot_reset() needs it. */
		pci_save_state(sdev->pdev);
		sdev->fw_gen = spyre_read(sdev, SPYRE_REG_RESET_GEN);
		atomic_inc(&sdev->reset.flr);
		spyre_show_card(sdev, true);
		spyre_recovery_over(sdev);
		drm_info(&sdev->drm, "reset: card is online again, generation %u\n", sdev->gen);
	} else if (!sdev->gone) {
		drm_err(&sdev->drm, "card did not come back after a reset (%d)\n", ret);
		die(sdev);
	}
	up_write(&sdev->reset_sem);
}

static void reset_done(struct pci_dev *pdev)
{
	bring_back(pci_get_drvdata(pdev));
}

static pci_ers_result_t error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct spyre_device *sdev = pci_get_drvdata(pdev);

	drm_err(&sdev->drm, "PCI error, channel %s\n",
		state == pci_channel_io_normal ? "normal" :
		state == pci_channel_io_frozen ? "frozen" : "dead");
	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	/*
	 * Whoever waits for the firmware under reset_sem would hold the slot's other functions up.
	 */
	spyre_mbox_stop(sdev, -EIO);
	down_write(&sdev->reset_sem);
	take_away(sdev);
	/* What it still did would reach memory that another card takes back from it meanwhile. */
	pci_clear_master(pdev);
	sdev->reset.frozen = jiffies;
	sdev->reset.busy = jiffies;
	if (state == pci_channel_io_perm_failure)
		die(sdev);
	else
		queue_delayed_work(system_unbound_wq, &sdev->reset.overdue, FROZEN_LOOK);
	up_write(&sdev->reset_sem);
	spyre_peers_revoke(sdev);
	return state == pci_channel_io_perm_failure ? PCI_ERS_RESULT_DISCONNECT :
		PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	struct spyre_device *sdev = pci_get_drvdata(pdev);

	/* Under reset_sem, as what cuts a card off writes to its configuration space too. */
	down_write(&sdev->reset_sem);
	pci_restore_state(pdev);
	/* It came so late that the card was reset in between, and was in use again. */
	if (!sdev->gone)
		take_away(sdev);
	up_write(&sdev->reset_sem);
	spyre_peers_revoke(sdev);
	bring_back(sdev);
	return PCI_ERS_RESULT_RECOVERED;
}

const struct pci_error_handlers spyre_error_handlers = {
	.error_detected = error_detected,
	.slot_reset = slot_reset,
	.reset_prepare = reset_prepare,
	.reset_done = reset_done,
};

#ifdef SPYRE_KUNIT
#include "tests/spyre_reset_kunit.c"
#endif
