// SPDX-License-Identifier: GPL-2.0-only
/*
 * SUBMIT: control blocks on a queue of the kernel's, ordered by syncobjs.
 */
#include <linux/dma-fence-chain.h>
#include <linux/dma-fence.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include <drm/drm_syncobj.h>
#include <drm/gpu_scheduler.h>

#include <spyre/cb.h>

#include "kernel_compat.h"
#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_queue.h"
#include "spyre_submit.h"
#include "spyre_trace.h"

/**
 * DOC: Kernel submission
 *
 * A context's first SUBMIT makes its kernel queue, whose ring, shadow tail, status page and
 * doorbell no user can map: what is on it was checked here, and what its status page says was
 * written by the card. Only therefore may fences of it be handed to others in the kernel. User
 * queues are written and ended by users and give no dma_fence.
 *
 * The scheduler (drm_sched) waits for what a SUBMIT depends on and hands it over when the ring
 * has room. There is one per context, not per card: of two jobs of one scheduler the later waits
 * only until the earlier was handed over, and the queues of two contexts do not wait for each
 * other.
 *
 * Signalling. The interrupt thread, the scheduler's work and the watch read the status page and
 * signal. None of them allocates memory or takes a lock that is held by somebody who does
 * (reset_sem and a context's lock are, so the watch only tries them), and all are annotated. A
 * reset signals what it ends before it does anything else, but nothing relies on it: what has not
 * moved for too long without a reason is failed by the watch alone. No fence goes into a
 * dma_resv.
 *
 * Lifetime. A fence handed out is one of ours: it holds its name in itself, and the module. The
 * scheduler's own fences, which point to the scheduler, stay inside. A job that was never handed
 * over may outlive its context, as its fence cannot signal before those it depends on: it keeps
 * &struct spyre_submit, and nothing else.
 *
 * Errors stick, as on every queue: a SUBMIT that fails cancels those that were made until
 * somebody has seen it fail and says so with DRM_SPYRE_SUBMIT_RESET. A queue that went on by
 * itself would run or not run the next SUBMIT depending on who was faster.
 */

static unsigned int submit_hang_ms = 10000;
module_param(submit_hang_ms, uint, 0644);
MODULE_PARM_DESC(submit_hang_ms,
		 "how long a job may hold an engine without progress while a SUBMIT waits (default 10000)");

static unsigned int submit_total_ms = 60000;
module_param(submit_total_ms, uint, 0644);
MODULE_PARM_DESC(submit_total_ms,
		 "how long a job may hold an engine in all while a SUBMIT waits (default 60000)");

#define SUBMIT_RING	256u

/* A fence of a SUBMIT. It points to nothing: whoever holds it may outlive everything else. */
struct spyre_fence {
	struct dma_fence base;
	spinlock_t lock;	/* of @base */
	char name[32];
};

/**
 * struct spyre_submit - a context's kernel submission
 * @ref: the context's and its jobs'
 * @sdev: card; not to be used once @queue is NULL and the scheduler is gone
 * @sched: hands jobs over
 * @entity: its only one
 * @order: held from numbering a job to queueing it; nothing in between allocates
 * @fence_context: of our fences
 * @seqno: of the last one, under @order
 * @name: of its fences
 * @jobs: unfinished SUBMITs
 * @running: jobs that were handed over and are not freed
 * @idle: who waits for @running to be 0
 * @link: in &spyre_submits.list; this and the rest under &spyre_submits.lock
 * @ctx: its context, NULL once detached
 * @queue: its queue, NULL once detached
 * @inflight: jobs handed over and not signalled, in order
 * @tail: entries before it were written; the shadow tail
 * @done: entries before it have ended
 * @open: the card has the queue: its status page counts, and jobs are put on it
 * @error: 0, or why SUBMITs are cancelled until a reset of the queue
 * @blamed: the context was reset as its job held an engine for too long
 * @epoch: counts resets of the queue: jobs of earlier ones are cancelled
 * @excused: jiffies when the first of @inflight last moved or had a reason not to
 */
struct spyre_submit {
	struct kref ref;
	struct spyre_device *sdev;
	struct drm_gpu_scheduler sched;
	struct drm_sched_entity entity;
	struct mutex order;	/* see above */
	u64 fence_context;
	u64 seqno;
	char name[32];
	atomic_t jobs;
	atomic_t running;
	wait_queue_head_t idle;
	struct list_head link;
	struct spyre_ctx *ctx;
	struct spyre_queue *queue;
	struct list_head inflight;
	u32 tail;
	u32 done;
	bool open;
	int error;
	bool blamed;
	u32 epoch;
	unsigned long excused;
};

/**
 * struct spyre_job - one SUBMIT
 * @base: the scheduler's
 * @sub: whose, a reference
 * @fence: what is handed out
 * @link: in &spyre_submit.inflight
 * @handed_over: counted in &spyre_submit.running
 * @pushed: has its place in the ring
 * @epoch: &spyre_submit.epoch when it was made
 * @error: how it ends whatever the card says, 0: as the card says
 * @start: first entry in the ring
 * @end: entry behind its last
 * @count: control blocks
 * @cbs: they, as they go into the ring
 */
struct spyre_job {
	struct drm_sched_job base;
	struct spyre_submit *sub;
	struct spyre_fence *fence;
	struct list_head link;
	bool handed_over;
	bool pushed;
	u32 epoch;
	int error;
	u32 start;
	u32 end;
	u32 count;
	struct spyre_cb cbs[] __counted_by(count);
};

static struct spyre_job *to_job(struct drm_sched_job *base)
{
	return container_of(base, struct spyre_job, base);
}

/* --- Fences --------------------------------------------------------------------------------- */

static const char *fence_driver_name(struct dma_fence *fence)
{
	return "spyre";
}

static const char *fence_timeline_name(struct dma_fence *fence)
{
	return container_of(fence, struct spyre_fence, base)->name;
}

static void fence_free(struct spyre_fence *fence)
{
	kfree(fence);
	module_put(THIS_MODULE);
}

static void fence_free_rcu(struct rcu_head *rcu)
{
	fence_free(container_of(rcu, struct spyre_fence, base.rcu));
}

/* The module waits for these callbacks before it goes, and for who is on the way out of here. */
static void fence_release(struct dma_fence *fence)
{
	call_rcu(&fence->rcu, fence_free_rcu);
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_driver_name,
	.get_timeline_name = fence_timeline_name,
	.release = fence_release,
};

/* Not a dma_fence yet: it is numbered when nothing can fail any more. */
static struct spyre_fence *fence_new(void)
{
	struct spyre_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL_ACCOUNT);

	if (!fence)
		return NULL;
	/* The call comes through an open file, which holds the module already. */
	__module_get(THIS_MODULE);
	spin_lock_init(&fence->lock);
	return fence;
}

/* --- Jobs ----------------------------------------------------------------------------------- */

static void submit_release(struct kref *ref)
{
	struct spyre_submit *sub = container_of(ref, struct spyre_submit, ref);

	mutex_destroy(&sub->order);
	kfree(sub);
}

static void submit_put(struct spyre_submit *sub)
{
	kref_put(&sub->ref, submit_release);
}

static int status_errno(u32 status)
{
	switch (status) {
	case SPYRE_OK:
		return 0;
	case SPYRE_ERR_CANCELLED:
		return -ECANCELED;
	case SPYRE_ERR_TIMEOUT:
	case SPYRE_ERR_WATCHDOG:
		return -ETIME;
	default:
		return -EIO;
	}
}

/*
 * The queue is in error: each control block of the job has a response block, or the job did not
 * end well. Of several failures the one that is not a consequence counts.
 */
static int job_result(const struct spyre_submit *sub, const struct spyre_job *job)
{
	/* One without control blocks stands for those before it. */
	int result = job->count ? 0 : -ECANCELED;
	u32 i;

	for (i = job->start; i != job->end; i++) {
		const struct spyre_rb *rb = spyre_queue_response(sub->queue, i);
		int error = -EIO;

		if (le32_to_cpu(READ_ONCE(rb->valid)) == i + 1)
			error = status_errno(le32_to_cpu(rb->status));
		if (error && error != -ECANCELED)
			return error;
		result = result ?: error;
	}
	return result;
}

/* The job has ended: it may be freed any time from now on. The caller holds submits.lock. */
static void job_signal(struct spyre_submit *sub, struct spyre_job *job, int error)
{
	struct dma_fence *fence = dma_fence_get(&job->fence->base);

	lockdep_assert_held(&sub->sdev->submits.lock);
	list_del(&job->link);
	if (error)
		dma_fence_set_error(fence, error);
	trace_spyre_submit_done(sub->sdev->drm.dev, fence->context, fence->seqno, error);
	dma_fence_signal(fence);
	dma_fence_put(fence);
}

/* Everything handed over ends, with @error. The caller holds submits.lock. */
static void fail_inflight(struct spyre_submit *sub, int error)
{
	struct spyre_job *job, *next;

	lockdep_assert_held(&sub->sdev->submits.lock);
	list_for_each_entry_safe(job, next, &sub->inflight, link) {
		if (!job->error && !sub->error)
			sub->error = error;
		job_signal(sub, job, job->error ?: error);
	}
	sub->done = sub->tail;
}

/* What the status page says. The caller holds submits.lock. */
static void take_progress(struct spyre_submit *sub)
{
	struct spyre_queue_status *status = spyre_queue_status(sub->queue);
	u32 done = le32_to_cpu(READ_ONCE(status->done));
	u32 error;

	/* An error is stored before the progress that covers it. */
	dma_rmb();
	error = le32_to_cpu(READ_ONCE(status->error));
	/* Progress that cannot be is none; the watch will find that nothing moves. */
	if (done != sub->done && done - sub->done <= sub->tail - sub->done) {
		sub->done = done;
		sub->excused = jiffies;
	}
	if (error && !sub->error)
		sub->error = -EIO;
	/* With the ring unusable nothing is fetched any more, and nothing of it runs. */
	if (error == SPYRE_ERR_QUEUE)
		fail_inflight(sub, -EIO);
}

/* Signals what has ended. The caller holds submits.lock. */
static void look_locked(struct spyre_submit *sub)
{
	struct spyre_device *sdev = sub->sdev;
	struct spyre_job *job, *next;

	lockdep_assert_held(&sdev->submits.lock);
	if (sub->open) {
		if (!list_empty(&sub->inflight)) {
			spin_lock(&sdev->wake_lock);
			spyre_ctx_arm(sub->ctx);
			spin_unlock(&sdev->wake_lock);
			/* The arm word before the look, as the card looks at it after its store. */
			mb();
		}
		take_progress(sub);
	}
	list_for_each_entry_safe(job, next, &sub->inflight, link) {
		int error = job->error;

		if (!job->pushed || (s32)(sub->done - job->end) < 0)
			break;
		if (!error && sub->error)
			error = job_result(sub, job);
		/* The first that the reset of the context cancelled is the one that was at it. */
		if (error == -ECANCELED && sub->blamed) {
			error = -ETIME;
			sub->blamed = false;
		}
		job_signal(sub, job, error);
	}
}

/**
 * spyre_submit_look - something of a context became visible
 * @ctx: context
 *
 * Context: process, interrupt thread; signals fences.
 */
void spyre_submit_look(struct spyre_ctx *ctx)
{
	/* Pairs with the release in submit_new(). */
	struct spyre_submit *sub = smp_load_acquire(&ctx->submit);
	bool cookie;

	if (!sub)
		return;
	cookie = dma_fence_begin_signalling();
	spin_lock(&sub->sdev->submits.lock);
	if (sub->queue)
		look_locked(sub);
	spin_unlock(&sub->sdev->submits.lock);
	dma_fence_end_signalling(cookie);
}

static unsigned long watch_period(void)
{
	return clamp(msecs_to_jiffies(READ_ONCE(submit_hang_ms) / 8), 1ul, (unsigned long)HZ);
}

/*
 * Puts a job on the ring. One that is not to run takes its place all the same, with no entries:
 * fences of one context signal in order. The caller holds submits.lock.
 */
static void push_locked(struct spyre_submit *sub, struct spyre_job *job)
{
	lockdep_assert_held(&sub->sdev->submits.lock);
	job->pushed = true;
	job->start = sub->tail;
	if (!job->error)
		sub->tail += job->count;
	job->end = sub->tail;
	if (job->start != job->end && spyre_queue_push(sub->queue, job->cbs, job->count))
		spyre_ring_doorbell(sub->sdev, sub->queue->page, sub->tail);
}

/* The scheduler: everything the job waits for has signalled and the ring has room. */
static struct dma_fence *run_job(struct drm_sched_job *base)
{
	struct spyre_job *job = to_job(base);
	struct spyre_submit *sub = job->sub;
	struct spyre_device *sdev = sub->sdev;
	bool cookie = dma_fence_begin_signalling();
	struct dma_fence *fence;

	atomic_inc(&sub->running);
	job->handed_over = true;
	/* The scheduler's reference. */
	fence = dma_fence_get(&job->fence->base);
	spin_lock(&sdev->submits.lock);
	if (sub->error == -ENODEV)
		job->error = -ENODEV;
	else if (!sub->queue || sub->error || job->epoch != sub->epoch)
		job->error = -ECANCELED;
	if (list_empty(&sub->inflight))
		sub->excused = jiffies;
	list_add_tail(&job->link, &sub->inflight);
	/*
	 * A card that is being stopped may still fetch, and would run again what it is told of
	 * when it is back: nothing is written meanwhile.
	 */
	if (sub->open || job->error)
		push_locked(sub, job);
	look_locked(sub);
	spin_unlock(&sdev->submits.lock);
	queue_delayed_work(sdev->submits.wq, &sdev->submits.watch, watch_period());
	dma_fence_end_signalling(cookie);
	return fence;
}

/* Also of jobs that were never handed over, after everything they depend on has signalled. */
static void free_job(struct drm_sched_job *base)
{
	struct spyre_job *job = to_job(base);
	struct spyre_submit *sub = job->sub;
	struct dma_fence *fence = &job->fence->base;

	if (!job->handed_over) {
		dma_fence_set_error(fence, -ECANCELED);
		dma_fence_signal(fence);
	}
	drm_sched_job_cleanup(base);
	atomic_dec(&sub->jobs);
	if (job->handed_over && atomic_dec_and_test(&sub->running))
		wake_up_all(&sub->idle);
	kvfree(job);
	submit_put(sub);
	/* Last: nothing else may hold the module, and nothing sleeps until we are out of it. */
	dma_fence_put(fence);
}

static const struct drm_sched_backend_ops sched_ops = {
	.run_job = run_job,
	.free_job = free_job,
};

/* --- Watch ---------------------------------------------------------------------------------- */

/* As in struct drm_spyre_device_info. */
enum { KIND_NONE, KIND_DMI, KIND_DMO, KIND_DMX, KIND_COMPUTE };

/* Engines are numbered kind by kind. */
static u32 engine_kind(const struct spyre_device *sdev, u32 e)
{
	u32 kind;

	for (kind = KIND_DMI; kind <= KIND_COMPUTE; kind++) {
		if (e < sdev->info.engines[kind])
			return kind;
		e -= sdev->info.engines[kind];
	}
	return KIND_NONE;
}

/* The kind of engine that the first unfinished control block needs. */
static u32 wanted_kind(const struct spyre_submit *sub)
{
	const struct spyre_job *job;

	list_for_each_entry(job, &sub->inflight, link) {
		if (!job->pushed || job->start == job->end ||
		    sub->done - job->start >= job->count)
			continue;
		switch (le16_to_cpu(job->cbs[sub->done - job->start].type)) {
		case SPYRE_CB_DMAI:
			return KIND_DMI;
		case SPYRE_CB_DMAO:
			return KIND_DMO;
		case SPYRE_CB_DMAX:
		case SPYRE_CB_FILL:
			return KIND_DMX;
		case SPYRE_CB_COMPUTE:
			return KIND_COMPUTE;
		default:
			return KIND_NONE;
		}
	}
	return KIND_NONE;
}

/*
 * The rung between a queue and the firmware, for a context whose job does not let go. Its lock is
 * only tried: whoever has it may wait for memory.
 */
static bool blame(struct spyre_device *sdev, u32 id, u32 kind, unsigned long held)
{
	struct spyre_ctx *ctx = spyre_ctx_get_id(sdev, id);
	struct spyre_submit *sub;
	bool done = false;

	if (!ctx)
		return false;
	if (!mutex_trylock(&ctx->lock))
		goto out;
	if (ctx->user && !ctx->lost && !ctx->detached) {
		drm_warn(&sdev->drm, "a job of context %u holds an engine for %u ms while others wait, the context is reset\n",
			 id, jiffies_to_msecs(held));
		trace_spyre_submit_blame(sdev->drm.dev, id, kind, jiffies_to_msecs(held));
		spyre_ras_own(sdev, ctx, SPYRE_RAS_WATCHDOG, SPYRE_ERR_TIMEOUT);
		spin_lock(&sdev->submits.lock);
		sub = ctx->submit;
		if (sub && sub->queue)
			sub->blamed = !list_empty(&sub->inflight) && wanted_kind(sub) == kind;
		spin_unlock(&sdev->submits.lock);
		spyre_ctx_reset(ctx);
		done = true;
	}
	mutex_unlock(&ctx->lock);
out:
	spyre_ctx_put(ctx);
	return done;
}

/*
 * Asks who holds the engines that SUBMITs need. A mask of the kinds that are held by somebody who
 * may: whoever waits for one of those has a reason to. reset_sem: read.
 */
static u32 look_at_engines(struct spyre_device *sdev, u32 wanted)
{
	unsigned long hang = msecs_to_jiffies(READ_ONCE(submit_hang_ms));
	unsigned long total = msecs_to_jiffies(READ_ONCE(submit_total_ms));
	struct spyre_msg_engines m;
	u32 held = 0, e;

	if (spyre_mbox_call(sdev, SPYRE_MSG_GET_ENGINES, NULL, 0, &m, sizeof(m)))
		return 0;
	for (e = 0; e < SPYRE_REG_ENGINES_MAX; e++) {
		struct spyre_holder *h = &sdev->submits.holder[e];
		u32 job = le32_to_cpu(m.job[e]), kind = engine_kind(sdev, e);
		u32 progress = spyre_read(sdev, SPYRE_REG_ENG_PROGRESS(e));
		unsigned long now = jiffies;

		if (h->job != job) {
			h->job = job;
			h->since = now;
			h->moved = now;
			h->blamed = false;
		} else if (h->progress != progress) {
			h->moved = now;
		}
		h->progress = progress;
		if (!job || !(wanted & BIT(kind)))
			continue;
		if (!time_after(now, h->moved + hang) && !time_after(now, h->since + total)) {
			held |= BIT(kind);
			continue;
		}
		if (h->blamed)
			spyre_reset_request(sdev, SPYRE_RUNG_FIRMWARE,
					    "an engine does not let go of a job");
		else if (blame(sdev, job & 0xff, kind, now - h->since))
			h->blamed = true;
		else
			continue;
		/* It has as long again to end. */
		h->since = now;
		h->moved = now;
		held |= BIT(kind);
	}
	return held;
}

/*
 * What has not moved for twice as long as anything may without a reason is failed here, with no
 * help from card, firmware or reset: they had their time.
 */
static void end_overdue(struct spyre_device *sdev, u32 held)
{
	unsigned long hang = msecs_to_jiffies(READ_ONCE(submit_hang_ms));
	struct spyre_submits *s = &sdev->submits;
	struct spyre_submit *sub;

	spin_lock(&s->lock);
	list_for_each_entry(sub, &s->list, link) {
		if (list_empty(&sub->inflight))
			continue;
		if (held & BIT(wanted_kind(sub)) & ~BIT(KIND_NONE))
			sub->excused = jiffies;
		if (!time_after(jiffies, sub->excused + 2 * hang))
			continue;
		dev_warn_ratelimited(sdev->drm.dev, "what was submitted on %s does not end, it is given up\n",
				     sub->name);
		/* Until its user resets the queue nothing that it says is believed. */
		sub->open = false;
		fail_inflight(sub, -ETIME);
	}
	spin_unlock(&s->lock);
}

static void watch_work(struct work_struct *work)
{
	struct spyre_submits *s = container_of(to_delayed_work(work), struct spyre_submits, watch);
	struct spyre_device *sdev = container_of(s, struct spyre_device, submits);
	bool cookie = dma_fence_begin_signalling();
	bool busy = false;
	struct spyre_submit *sub;
	u32 wanted = 0, held = 0;

	spin_lock(&s->lock);
	list_for_each_entry(sub, &s->list, link) {
		look_locked(sub);
		if (list_empty(&sub->inflight))
			continue;
		busy = true;
		wanted |= BIT(wanted_kind(sub));
	}
	spin_unlock(&s->lock);
	if (busy) {
		if (down_read_trylock(&sdev->reset_sem)) {
			if (sdev->card_ok)
				held = look_at_engines(sdev, wanted);
			up_read(&sdev->reset_sem);
		}
		end_overdue(sdev, held);
		queue_delayed_work(s->wq, &s->watch, watch_period());
	} else {
		/* A job that holds an engine while nobody waits does no harm. */
		memset(s->holder, 0, sizeof(s->holder));
	}
	dma_fence_end_signalling(cookie);
}

/* --- The card comes and goes ---------------------------------------------------------------- */

static void destroy_wq(struct drm_device *drm, void *wq)
{
	destroy_workqueue(wq);
}

int spyre_submits_init(struct spyre_device *sdev)
{
	struct spyre_submits *s = &sdev->submits;

	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->list);
	INIT_DELAYED_WORK(&s->watch, watch_work);
	s->wq = alloc_workqueue("spyre-submit", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!s->wq)
		return -ENOMEM;
	/* Schedulers of open files use it until the last of those is closed. */
	return drmm_add_action_or_reset(&sdev->drm, destroy_wq, s->wq);
}

/* Removal: everything has been failed and nothing is submitted any more. */
void spyre_submits_fini(struct spyre_device *sdev)
{
	disable_delayed_work_sync(&sdev->submits.watch);
}

/**
 * spyre_submits_fail - the card is about to forget what it was given
 * @sdev: card
 * @error: -EIO: queues go on after it; -ENODEV: contexts are lost
 *
 * Context: any that may signal fences; allocates nothing and takes spinlocks only.
 */
void spyre_submits_fail(struct spyre_device *sdev, int error)
{
	bool cookie = dma_fence_begin_signalling();
	struct spyre_submits *s = &sdev->submits;
	struct spyre_submit *sub;

	spin_lock(&s->lock);
	list_for_each_entry(sub, &s->list, link) {
		/* What has ended by itself has. */
		look_locked(sub);
		sub->open = false;
		fail_inflight(sub, error);
		if (error == -ENODEV)
			sub->error = error;
	}
	spin_unlock(&s->lock);
	dma_fence_end_signalling(cookie);
}

/**
 * spyre_submits_pause - the card stops for a while and keeps its memory
 * @sdev: card, its queues suspended, reset_sem held for writing
 *
 * A queue that stopped at a boundary goes on there; one that did not fails.
 */
void spyre_submits_pause(struct spyre_device *sdev)
{
	bool cookie = dma_fence_begin_signalling();
	struct spyre_submits *s = &sdev->submits;
	struct spyre_queue_status *status;
	struct spyre_submit *sub;

	spin_lock(&s->lock);
	list_for_each_entry(sub, &s->list, link) {
		look_locked(sub);
		status = spyre_queue_status(sub->queue);
		if (!sub->open || le32_to_cpu(READ_ONCE(status->fetched)) != sub->done)
			fail_inflight(sub, -EIO);
		sub->open = false;
	}
	spin_unlock(&s->lock);
	dma_fence_end_signalling(cookie);
}

/* Where a queue that the card is told of again begins. */
u32 spyre_submit_at(struct spyre_ctx *ctx)
{
	u32 at;

	spin_lock(&ctx->sdev->submits.lock);
	at = ctx->submit->done;
	spin_unlock(&ctx->sdev->submits.lock);
	return at;
}

/* The card has the queue again, and gets what was handed over meanwhile. */
void spyre_submit_resume(struct spyre_ctx *ctx)
{
	struct spyre_submit *sub = ctx->submit;
	struct spyre_job *job;
	bool cookie;

	if (!sub)
		return;
	cookie = dma_fence_begin_signalling();
	spin_lock(&ctx->sdev->submits.lock);
	if (sub->queue) {
		sub->open = true;
		sub->excused = jiffies;
		list_for_each_entry(job, &sub->inflight, link)
			if (!job->pushed)
				push_locked(sub, job);
		look_locked(sub);
	}
	spin_unlock(&ctx->sdev->submits.lock);
	dma_fence_end_signalling(cookie);
}

/* --- Contexts ------------------------------------------------------------------------------- */

static int submit_new(struct spyre_ctx *ctx)
{
	struct spyre_device *sdev = ctx->sdev;
	struct drm_gpu_scheduler *sched;
	struct spyre_submit *sub;
	u32 entries = clamp(SUBMIT_RING, sdev->info.ring_min, sdev->info.ring_max);
	int ret;

	lockdep_assert_held(&ctx->lock);
	sub = kzalloc(sizeof(*sub), GFP_KERNEL_ACCOUNT);
	if (!sub)
		return -ENOMEM;
	kref_init(&sub->ref);
	mutex_init(&sub->order);
	init_waitqueue_head(&sub->idle);
	INIT_LIST_HEAD(&sub->inflight);
	sub->sdev = sdev;
	sub->ctx = ctx;
	sub->fence_context = dma_fence_context_alloc(1);
	snprintf(sub->name, sizeof(sub->name), "%s.%u", pci_name(sdev->pdev), ctx->id);
	sched = &sub->sched;
	/* Time is watched over here, by who holds the engines, not by the scheduler. */
	ret = spyre_compat_sched_init(sched, &sched_ops, sdev->submits.wq, entries, "spyre",
				      sdev->drm.dev);
	if (ret)
		goto err_free;
	ret = drm_sched_entity_init(&sub->entity, DRM_SCHED_PRIORITY_NORMAL, &sched, 1, NULL);
	if (ret)
		goto err_sched;
	ctx->kqueue = spyre_queue_create(ctx, entries, SPYRE_QUEUE_KERNEL, 0);
	if (IS_ERR(ctx->kqueue)) {
		ret = PTR_ERR(ctx->kqueue);
		ctx->kqueue = NULL;
		goto err_entity;
	}
	sub->queue = ctx->kqueue;
	sub->open = true;
	spin_lock(&sdev->submits.lock);
	list_add(&sub->link, &sdev->submits.list);
	spin_unlock(&sdev->submits.lock);
	/* Who sees the pointer sees what is behind it. */
	smp_store_release(&ctx->submit, sub);
	spyre_reset_watch(sdev);
	return 0;

err_entity:
	drm_sched_entity_fini(&sub->entity);
err_sched:
	drm_sched_fini(sched);
err_free:
	submit_put(sub);
	/* Firmware that does not know kernel queues. */
	return ret == -EINVAL ? -EOPNOTSUPP : ret;
}

/* The file is closed: what was not handed over is never. The caller does not hold ctx->lock. */
void spyre_submit_kill(struct spyre_ctx *ctx)
{
	if (ctx->submit)
		drm_sched_entity_fini(&ctx->submit->entity);
}

/* The queue ends: what was handed over ends with @error. The caller holds the context's lock. */
void spyre_submit_detach(struct spyre_ctx *ctx, int error)
{
	struct spyre_submit *sub = ctx->submit;
	struct spyre_device *sdev = ctx->sdev;
	bool cookie;

	lockdep_assert_held(&ctx->lock);
	if (!sub)
		return;
	cookie = dma_fence_begin_signalling();
	spin_lock(&sdev->submits.lock);
	if (sub->queue) {
		look_locked(sub);
		fail_inflight(sub, error);
		sub->error = error;
		sub->open = false;
		sub->queue = NULL;
		sub->ctx = NULL;
		list_del(&sub->link);
	}
	spin_unlock(&sdev->submits.lock);
	dma_fence_end_signalling(cookie);
}

/*
 * After kill and detach. Every job handed over has been signalled, so that this wait is for the
 * scheduler's work alone; one that was not may live on without scheduler.
 */
void spyre_submit_end(struct spyre_ctx *ctx)
{
	struct spyre_submit *sub = ctx->submit;

	if (!sub)
		return;
	wait_event(sub->idle, !atomic_read(&sub->running));
	drm_sched_fini(&sub->sched);
}

/* With the context's last reference. */
void spyre_submit_free(struct spyre_ctx *ctx)
{
	if (ctx->submit)
		submit_put(ctx->submit);
}

/* Unfinished SUBMITs of a context. */
u32 spyre_submit_count(struct spyre_ctx *ctx)
{
	/* Pairs with the release in submit_new(). */
	struct spyre_submit *sub = smp_load_acquire(&ctx->submit);

	return sub ? atomic_read(&sub->jobs) : 0;
}

/*
 * The user has seen an error. What was submitted before is cancelled; from here on it is as with a
 * new queue. The caller holds the context's lock and reset_sem.
 */
static int submit_reset(struct spyre_ctx *ctx)
{
	struct spyre_submit *sub = ctx->submit;
	struct spyre_submits *s = &ctx->sdev->submits;
	bool cookie;
	int ret;

	lockdep_assert_held(&ctx->lock);
	spin_lock(&s->lock);
	look_locked(sub);
	ret = sub->error;
	/* Its status page is about to be set back: it would tell of entries that never ran. */
	if (ret)
		sub->open = false;
	spin_unlock(&s->lock);
	if (!ret || ret == -ENODEV)
		return ret;
	if (!ctx->kqueue->on_card)
		return -EIO;
	ret = spyre_mbox_id(ctx->sdev, SPYRE_MSG_QUEUE_RESET, ctx->kqueue->page, 0);
	if (ret)
		return -EIO;
	cookie = dma_fence_begin_signalling();
	spin_lock(&s->lock);
	fail_inflight(sub, -ECANCELED);
	sub->error = 0;
	sub->blamed = false;
	sub->epoch++;
	sub->open = true;
	spin_unlock(&s->lock);
	dma_fence_end_signalling(cookie);
	return 0;
}

/* --- ioctl ---------------------------------------------------------------------------------- */

/* A syncobj that a SUBMIT signals. */
struct out_sync {
	struct drm_syncobj *obj;
	struct dma_fence_chain *chain;	/* of a timeline, else NULL */
	u64 point;
};

static void outs_free(struct out_sync *outs, u32 n)
{
	u32 i;

	for (i = 0; outs && i < n; i++) {
		if (outs[i].obj)
			drm_syncobj_put(outs[i].obj);
		dma_fence_chain_free(outs[i].chain);
	}
	kvfree(outs);
}

/*
 * The user's list of syncobjs, to be freed. No lock is held: user memory may be served by a process
 * that takes its time.
 */
static struct drm_spyre_sync *syncs_get(u64 from, u32 n)
{
	struct drm_spyre_sync *syncs = memdup_array_user(u64_to_user_ptr(from), n, sizeof(*syncs));
	u32 i;

	for (i = 0; !IS_ERR(syncs) && i < n; i++) {
		if (syncs[i].flags) {
			kfree(syncs);
			return ERR_PTR(-EINVAL);
		}
	}
	return syncs;
}

static struct out_sync *outs_get(const struct drm_spyre_submit *args, struct drm_file *drm_file)
{
	struct drm_spyre_sync *syncs;
	struct out_sync *outs;
	int ret = 0;
	u32 i;

	if (!args->out_count)
		return NULL;
	syncs = syncs_get(args->out_syncs, args->out_count);
	if (IS_ERR(syncs))
		return ERR_CAST(syncs);
	outs = kvcalloc(args->out_count, sizeof(*outs), GFP_KERNEL_ACCOUNT);
	if (!outs)
		ret = -ENOMEM;
	for (i = 0; i < args->out_count && !ret; i++) {
		outs[i].obj = drm_syncobj_find(drm_file, syncs[i].handle);
		if (!outs[i].obj)
			ret = -ENOENT;
		outs[i].point = syncs[i].point;
		if (outs[i].point && !ret) {
			outs[i].chain = dma_fence_chain_alloc();
			if (!outs[i].chain)
				ret = -ENOMEM;
		}
	}
	kfree(syncs);
	if (ret) {
		outs_free(outs, args->out_count);
		return ERR_PTR(ret);
	}
	return outs;
}

/* Gives the references to the syncobjs away, and the chain nodes. */
static void outs_publish(struct out_sync *outs, u32 n, struct dma_fence *fence)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (outs[i].chain)
			drm_syncobj_add_point(outs[i].obj, outs[i].chain, fence, outs[i].point);
		else
			drm_syncobj_replace_fence(outs[i].obj, fence);
		outs[i].chain = NULL;
	}
}

static int ins_add(struct spyre_job *job, const struct drm_spyre_sync *ins, u32 n,
		   struct drm_file *drm_file)
{
	struct dma_fence *fence;
	int ret = 0;
	u32 i;

	for (i = 0; i < n && !ret; i++) {
		/* The scheduler's own helper cuts points to 32 bits. */
		ret = drm_syncobj_find_fence(drm_file, ins[i].handle, ins[i].point, 0, &fence);
		if (!ret)
			ret = drm_sched_job_add_dependency(&job->base, fence);
	}
	return ret;
}

/*
 * What of a control block makes no sense whatever memory holds is refused here; the card checks
 * again, addresses too.
 */
static bool cb_ok(const struct spyre_cb *cb, u32 symbols)
{
	static const u16 flags[SPYRE_CB_TYPES] = SPYRE_CB_TYPE_FLAGS;
	static const u8 words[SPYRE_CB_TYPES] = SPYRE_CB_TYPE_WORDS;
	u32 type = le16_to_cpu(cb->type), f = le16_to_cpu(cb->flags), i;

	switch (type) {
	case SPYRE_CB_COMPUTE:
		if (le32_to_cpu(cb->u.compute.nsymbols) > symbols ||
		    cb->u.compute.reserved[0] || cb->u.compute.reserved[1])
			return false;
		break;
	case SPYRE_CB_DMAI:
	case SPYRE_CB_DMAO:
	case SPYRE_CB_DMAX:
		if (f & SPYRE_CB_F_LIST) {
			if (!cb->u.list.entries || cb->u.list.reserved ||
			    le32_to_cpu(cb->u.list.entries) > SPYRE_DMA_LIST_MAX)
				return false;
		} else if (!cb->u.dma.bytes ||
			   le64_to_cpu(cb->u.dma.bytes) > SPYRE_DMA_BYTES_MAX ||
			   !cb->u.dma.ndims || le32_to_cpu(cb->u.dma.ndims) > 4) {
			return false;
		}
		break;
	case SPYRE_CB_FILL:
		if (!cb->u.fill.bytes || le64_to_cpu(cb->u.fill.bytes) % SPYRE_STICK)
			return false;
		break;
	case SPYRE_CB_TIMESTAMP:
		if (le64_to_cpu(cb->u.sync.addr) % sizeof(u64) || cb->u.sync.doorbell ||
		    cb->u.sync.doorbell_value || cb->u.sync.reserved)
			return false;
		break;
	default:
		return false;
	}
	/* Responses and interrupts are the kernel's. */
	if (f & ~(SPYRE_CB_F_BARRIER | flags[type]) || cb->reserved0 || cb->reserved1)
		return false;
	for (i = words[type]; i < ARRAY_SIZE(cb->u.raw); i++)
		if (cb->u.raw[i])
			return false;
	return true;
}

static struct spyre_job *job_new(const struct drm_spyre_submit *args)
{
	struct spyre_job *job;

	job = kvzalloc(struct_size(job, cbs, args->cb_count), GFP_KERNEL_ACCOUNT);
	if (!job)
		return ERR_PTR(-ENOMEM);
	job->count = args->cb_count;
	job->fence = fence_new();
	if (!job->fence) {
		kvfree(job);
		return ERR_PTR(-ENOMEM);
	}
	if (copy_from_user(job->cbs, u64_to_user_ptr(args->cbs),
			   array_size(job->count, sizeof(job->cbs[0])))) {
		fence_free(job->fence);
		kvfree(job);
		return ERR_PTR(-EFAULT);
	}
	return job;
}

/* Makes the kernel's of the user's control blocks. The caller holds reset_sem. */
static int job_take_cbs(struct spyre_device *sdev, struct spyre_job *job)
{
	u32 i, flags;

	for (i = 0; i < job->count; i++) {
		if (!cb_ok(&job->cbs[i], sdev->info.symbols))
			return -EINVAL;
		/*
		 * Each says how it ended. One SUBMIT ends before the next begins: who waits for
		 * a fence of the same context relies on it, as the scheduler does.
		 */
		flags = SPYRE_CB_F_RESPONSE | SPYRE_CB_F_INTERRUPT;
		if (!i)
			flags |= SPYRE_CB_F_BARRIER;
		job->cbs[i].flags |= cpu_to_le16(flags);
	}
	return 0;
}

/*
 * The file's kernel submission, made now if there is none, and its epoch. The caller holds
 * reset_sem.
 */
static int prepare(struct spyre_file *file, u32 flags, struct spyre_submit **sub, u32 *epoch)
{
	struct spyre_ctx *ctx = spyre_file_ctx(file);
	int ret = 0;

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	mutex_lock(&ctx->lock);
	if (!ctx->submit)
		ret = submit_new(ctx);
	else if (flags & DRM_SPYRE_SUBMIT_RESET)
		ret = submit_reset(ctx);
	mutex_unlock(&ctx->lock);
	if (ret)
		return ret;
	spyre_submit_look(ctx);
	*sub = ctx->submit;
	spin_lock(&ctx->sdev->submits.lock);
	ret = (*sub)->error ? -EIO : 0;
	*epoch = (*sub)->epoch;
	spin_unlock(&ctx->sdev->submits.lock);
	return ret;
}

/* From here on nothing fails, and nothing allocates: others may wait for the fence already. */
static void commit(struct spyre_submit *sub, struct spyre_job *job, struct out_sync *outs,
		   u32 out_count)
{
	struct spyre_fence *fence = job->fence;
	bool cookie;

	mutex_lock(&sub->order);
	cookie = dma_fence_begin_signalling();
	drm_sched_job_arm(&job->base);
	strscpy(fence->name, sub->name, sizeof(fence->name));
	dma_fence_init(&fence->base, &fence_ops, &fence->lock, sub->fence_context, ++sub->seqno);
	trace_spyre_submit(sub->sdev->drm.dev, fence->base.context, fence->base.seqno, job->count);
	/* The job's own reference goes with the job, which may be any time from the push on. */
	outs_publish(outs, out_count, &fence->base);
	drm_sched_entity_push_job(&job->base);
	dma_fence_end_signalling(cookie);
	mutex_unlock(&sub->order);
}

int spyre_submit_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;
	struct drm_spyre_submit *args = data;
	struct drm_spyre_sync *ins;
	struct spyre_submit *sub;
	struct out_sync *outs;
	struct spyre_job *job;
	int ret;

	if (args->flags & ~DRM_SPYRE_SUBMIT_RESET || args->cb_count > SPYRE_SUBMIT_CBS ||
	    args->in_count > SPYRE_SUBMIT_SYNCS || args->out_count > SPYRE_SUBMIT_SYNCS)
		return -EINVAL;
	job = job_new(args);
	if (IS_ERR(job))
		return PTR_ERR(job);
	ins = syncs_get(args->in_syncs, args->in_count);
	if (IS_ERR(ins)) {
		ret = PTR_ERR(ins);
		goto err_job;
	}
	outs = outs_get(args, drm_file);
	if (IS_ERR(outs)) {
		ret = PTR_ERR(outs);
		goto err_ins;
	}
	ret = spyre_enter(sdev, file);
	if (ret)
		goto err_outs;
	ret = job_take_cbs(sdev, job);
	if (!ret)
		ret = prepare(file, args->flags, &sub, &job->epoch);
	if (ret)
		goto err_exit;
	if (atomic_inc_return(&sub->jobs) > SPYRE_SUBMIT_JOBS) {
		ret = -EDQUOT;
		goto err_count;
	}
	ret = spyre_compat_sched_job_init(&job->base, &sub->entity, max(job->count, 1u), drm_file);
	if (ret)
		goto err_count;
	ret = ins_add(job, ins, args->in_count, drm_file);
	if (ret) {
		drm_sched_job_cleanup(&job->base);
		goto err_count;
	}
	job->sub = sub;
	kref_get(&sub->ref);
	commit(sub, job, outs, args->out_count);
	spyre_exit(sdev);
	outs_free(outs, args->out_count);
	kfree(ins);
	return 0;

err_count:
	atomic_dec(&sub->jobs);
err_exit:
	spyre_exit(sdev);
err_outs:
	outs_free(outs, args->out_count);
err_ins:
	kfree(ins);
err_job:
	fence_free(job->fence);
	kvfree(job);
	return ret;
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_submit_kunit.c"
#endif
