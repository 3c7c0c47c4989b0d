// SPDX-License-Identifier: GPL-2.0-only
/*
 * WAIT: for words in host buffers and for queues.
 *
 * A waiter enters the wait queues of what it names, then, each time around: allows one interrupt
 * (arms) in every context that can write there, full barrier, looks at the words, sleeps. The
 * card does the reverse: it stores the word, full barrier, loads the arm word. So either the
 * waiter sees the word, or the card sees that it was armed and interrupts, and the interrupt
 * finds the waiter in the queue. A context that comes to bind one of the buffers later wakes its
 * waiters, who then arm it too.
 *
 * Interrupts may get lost: no sleep is longer than RECHECK_MAX, and what is found only then is
 * counted.
 *
 * The card is not touched here, only memory that it writes and references hold: waiting needs no
 * reset_sem, and a reset or removal ends it by moving the generation.
 */
#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_gem.h"
#include "spyre_queue.h"
#include "spyre_trace.h"
#include "spyre_wait.h"

#define RECHECK_MIN	(10 * NSEC_PER_MSEC)
#define RECHECK_MAX	(160 * NSEC_PER_MSEC)
#define EWAITS_MAX	1024	/* eventfd waits of one file */
#define EWAITS_USER	4096	/* and of all files of one user */

struct wait_slot {
	struct wait_queue_entry wait;
	struct spyre_bo *bo;		/* FENCE */
	struct spyre_queue *queue;	/* QUEUE */
	u64 offset;
	u64 value;
	bool entered;
};

/* The conditions of one WAIT. */
struct wait_set {
	struct spyre_device *sdev;
	u32 gen;
	u32 count;
	bool all;
	struct wait_slot slot[] __counted_by(count);
};

static wait_queue_head_t *slot_waitq(struct wait_slot *s)
{
	return s->bo ? &s->bo->waitq : &s->queue->ctx->waitq;
}

static void set_free(struct wait_set *set)
{
	u32 i;

	for (i = 0; i < set->count; i++) {
		if (set->slot[i].bo)
			spyre_bo_put(set->slot[i].bo);
		if (set->slot[i].queue)
			spyre_queue_put(set->slot[i].queue);
	}
	kfree(set);
}

static int slot_fill(struct wait_slot *s, const struct drm_spyre_wait_entry *e,
		     struct drm_file *drm_file)
{
	struct spyre_file *file = drm_file->driver_priv;
	struct drm_gem_object *obj;
	struct spyre_ctx *ctx;

	s->offset = e->offset;
	s->value = e->value;
	switch (e->kind) {
	case DRM_SPYRE_WAIT_FENCE:
		obj = drm_gem_object_lookup(drm_file, e->handle);
		if (!obj)
			return -ENOENT;
		s->bo = to_bo(obj);
		if (s->bo->kind != SPYRE_KIND_HOST || !IS_ALIGNED(e->offset, sizeof(u64)) ||
		    e->offset >= obj->size)
			return -EINVAL;
		return 0;
	case DRM_SPYRE_WAIT_QUEUE:
		if (e->offset)
			return -EINVAL;
		ctx = spyre_file_ctx_peek(file);
		if (!ctx)
			return -ENOENT;
		mutex_lock(&ctx->lock);
		s->queue = spyre_queue_get(ctx, e->handle);
		mutex_unlock(&ctx->lock);
		return s->queue ? 0 : -ENOENT;
	default:
		return -EINVAL;
	}
}

static struct wait_set *set_new(struct spyre_device *sdev, const struct drm_spyre_wait *args,
				const struct drm_spyre_wait_entry *entries,
				struct drm_file *drm_file)
{
	struct wait_set *set;
	int ret = 0;
	u32 i;

	set = kzalloc(struct_size(set, slot, args->count), GFP_KERNEL_ACCOUNT);
	if (!set)
		return ERR_PTR(-ENOMEM);
	set->sdev = sdev;
	set->count = args->count;
	set->all = args->flags & DRM_SPYRE_WAIT_ALL;
	set->gen = ((struct spyre_file *)drm_file->driver_priv)->gen;
	for (i = 0; i < set->count && !ret; i++)
		ret = slot_fill(&set->slot[i], &entries[i], drm_file);
	if (ret) {
		set_free(set);
		return ERR_PTR(ret);
	}
	return set;
}

/*
 * One entry is enough in each queue: a wake-up goes through all of them with interrupts off, and
 * the lock of everybody's wake-ups held.
 */
static void set_enter(struct wait_set *set)
{
	u32 i, j;

	for (i = 0; i < set->count; i++) {
		wait_queue_head_t *waitq = slot_waitq(&set->slot[i]);

		for (j = 0; j < i && slot_waitq(&set->slot[j]) != waitq; j++)
			;
		set->slot[i].entered = j == i;
		if (set->slot[i].entered)
			add_wait_queue(waitq, &set->slot[i].wait);
	}
}

static void set_leave(struct wait_set *set)
{
	u32 i;

	for (i = 0; i < set->count; i++)
		if (set->slot[i].entered)
			remove_wait_queue(slot_waitq(&set->slot[i]), &set->slot[i].wait);
}

static void set_arm(struct wait_set *set)
{
	struct spyre_bound *bound;
	u32 i;

	spin_lock(&set->sdev->wake_lock);
	for (i = 0; i < set->count; i++) {
		struct wait_slot *s = &set->slot[i];

		if (s->queue) {
			spyre_ctx_arm(s->queue->ctx);
			continue;
		}
		list_for_each_entry(bound, &s->bo->bound, bo_link) {
			spyre_ctx_arm(bound->ctx);
			if (list_empty(&bound->waited))
				list_add(&bound->waited, &bound->ctx->waited);
		}
	}
	spin_unlock(&set->sdev->wake_lock);
	/*
	 * Orders the arm words before the loads of what we wait for, as the firmware orders its
	 * store of that before its load of the arm word.
	 */
	mb();
}

/* 1: holds, 0: not yet, or an error that ends the wait. */
static int slot_check(const struct wait_slot *s)
{
	const struct spyre_queue_status *status;
	__le64 *word;

	if (s->bo) {
		word = spyre_bo_at(s->bo, s->offset);
		return le64_to_cpu(READ_ONCE(*word)) >= s->value;
	}
	status = spyre_queue_status(s->queue);
	if ((s32)(le32_to_cpu(READ_ONCE(status->done)) - (u32)s->value) >= 0)
		return 1;
	if (READ_ONCE(s->queue->dead))
		return -ENOENT;
	if (!READ_ONCE(status->error))
		return 0;
	/*
	 * An error and the last progress come in this order: done may have reached the value
	 * meanwhile.
	 */
	dma_rmb();
	if ((s32)(le32_to_cpu(READ_ONCE(status->done)) - (u32)s->value) >= 0)
		return 1;
	return -EIO;
}

static int set_check(const struct wait_set *set, u32 *first)
{
	u32 i, held = 0;
	int ret;

	for (i = 0; i < set->count; i++) {
		ret = slot_check(&set->slot[i]);
		if (ret < 0)
			return READ_ONCE(set->sdev->gen) != set->gen ? -ENODEV : ret;
		if (!ret)
			continue;
		if (!set->all) {
			*first = i;
			return 1;
		}
		held++;
	}
	if (held == set->count)
		return 1;
	return READ_ONCE(set->sdev->gen) != set->gen ? -ENODEV : 0;
}

static int wait_here(struct wait_set *set, struct drm_spyre_wait *args)
{
	ktime_t deadline = max_t(s64, args->timeout_ns, 0);
	u64 nap = RECHECK_MIN;
	bool slept = false, woken = false;
	ktime_t now, until;
	int ret;
	u32 i;

	for (i = 0; i < set->count; i++)
		init_waitqueue_entry(&set->slot[i].wait, current);
	set_enter(set);
	for (;;) {
		/* Before looking: a wake-up from here on makes the sleep return at once. */
		set_current_state(TASK_INTERRUPTIBLE);
		set_arm(set);
		ret = set_check(set, &args->first);
		if (ret) {
			if (ret > 0 && slept && !woken)
				atomic_inc(&set->sdev->waits_missed);
			break;
		}
		if (signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		now = ktime_get();
		if (ktime_compare(now, deadline) >= 0) {
			ret = -ETIME;
			break;
		}
		until = ktime_add_ns(now, nap);
		if (ktime_compare(deadline, until) < 0)
			until = deadline;
		/* 0: the timer ended the sleep; else someone woke us. */
		woken = schedule_hrtimeout_range(&until, 50 * NSEC_PER_USEC, HRTIMER_MODE_ABS);
		slept = true;
		if (!woken)
			nap = min_t(u64, 2 * nap, RECHECK_MAX);
	}
	__set_current_state(TASK_RUNNING);
	set_leave(set);
	return ret < 0 ? ret : 0;
}

/* --- eventfd -------------------------------------------------------------------------------- */

/*
 * A wait with nobody asleep in it. Wake-ups and a timer queue its work, which looks, and signals
 * once.
 *
 * Whoever takes it out of the file's table ends it: cancel and close free it after waiting for
 * the work; the work itself, when it fires, cannot wait for itself (it may have been queued again
 * meanwhile) and hands it to the file's reaper. Taking out and handing over are one step under
 * reap_lock, so that close finds it in the table or with the reaper.
 *
 * It enters the table when it is complete, and its first look is queued in the same step: until
 * then its id is reserved and neither a cancel that guesses the id nor a wake-up can end it.
 */
struct ewait {
	struct spyre_file *file;
	struct eventfd_ctx *eventfd;
	struct delayed_work work;
	struct list_head reap;
	u32 id;
	bool fired;
	u64 nap;
	struct wait_set *set;
};

static int ewait_wake(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key)
{
	struct ewait *w = wait->private;

	mod_delayed_work(system_unbound_wq, &w->work, 0);
	return 0;
}

static void ewait_uncharge(struct spyre_file *file)
{
	atomic_dec(&file->user->ewaits);
	atomic_dec(&file->ewait_count);
}

/*
 * Each looks for itself some times a second, in no cgroup, and a wake-up walks all that wait for a
 * buffer or a context: how many there are is everybody's affair.
 */
static int ewait_charge(struct spyre_file *file)
{
	int mine = atomic_inc_return(&file->ewait_count);

	if (atomic_inc_return(&file->user->ewaits) <= EWAITS_USER || file->exempt)
		if (mine <= EWAITS_MAX)
			return 0;
	ewait_uncharge(file);
	return -EDQUOT;
}

/* It is in no table any more. */
static void ewait_free(struct ewait *w)
{
	set_leave(w->set);
	cancel_delayed_work_sync(&w->work);
	set_free(w->set);
	eventfd_ctx_put(w->eventfd);
	ewait_uncharge(w->file);
	kfree(w);
}

static void ewait_work(struct work_struct *work)
{
	struct ewait *w = container_of(to_delayed_work(work), struct ewait, work);
	struct spyre_file *file = w->file;
	u32 first;

	if (w->fired)
		return;
	set_arm(w->set);
	if (!set_check(w->set, &first)) {
		queue_delayed_work(system_unbound_wq, &w->work, nsecs_to_jiffies(w->nap) + 1);
		w->nap = min_t(u64, 2 * w->nap, RECHECK_MAX);
		return;
	}
	/* An error wakes too: the program finds it where it looks. */
	spin_lock(&file->reap_lock);
	if (xa_cmpxchg(&file->ewaits, w->id, w, NULL, 0) == w) {
		w->fired = true;
		eventfd_signal(w->eventfd);
		list_add(&w->reap, &file->reap);
		queue_work(system_unbound_wq, &file->reap_work);
	}
	spin_unlock(&file->reap_lock);
}

static void reap_work(struct work_struct *work)
{
	struct spyre_file *file = container_of(work, struct spyre_file, reap_work);
	struct ewait *w, *next;
	LIST_HEAD(list);

	spin_lock(&file->reap_lock);
	list_splice_init(&file->reap, &list);
	spin_unlock(&file->reap_lock);
	list_for_each_entry_safe(w, next, &list, reap)
		ewait_free(w);
}

void spyre_wait_open(struct spyre_file *file)
{
	xa_init_flags(&file->ewaits, XA_FLAGS_ALLOC1);
	spin_lock_init(&file->reap_lock);
	INIT_LIST_HEAD(&file->reap);
	INIT_WORK(&file->reap_work, reap_work);
}

static struct ewait *ewait_take(struct spyre_file *file, unsigned long id)
{
	struct ewait *w;

	spin_lock(&file->reap_lock);
	w = xa_load(&file->ewaits, id);
	/* Erasing an id that is only reserved would give it to somebody else. */
	if (w)
		xa_erase(&file->ewaits, id);
	spin_unlock(&file->reap_lock);
	return w;
}

void spyre_wait_close(struct spyre_file *file)
{
	struct ewait *w;
	unsigned long id;

	xa_for_each(&file->ewaits, id, w) {
		w = ewait_take(file, id);
		if (w)
			ewait_free(w);
	}
	/* One that fired is with the reaper as soon as the lock is free. */
	spin_lock(&file->reap_lock);
	spin_unlock(&file->reap_lock);
	flush_work(&file->reap_work);
	xa_destroy(&file->ewaits);
}

static int wait_eventfd(struct wait_set *set, struct drm_spyre_wait *args, struct spyre_file *file)
{
	struct ewait *w;
	u32 i;
	int ret;

	ret = ewait_charge(file);
	if (ret)
		return ret;
	w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	if (!w) {
		ret = -ENOMEM;
		goto err_count;
	}
	w->eventfd = eventfd_ctx_fdget(args->eventfd);
	if (IS_ERR(w->eventfd)) {
		ret = PTR_ERR(w->eventfd);
		goto err_free;
	}
	w->file = file;
	w->set = set;
	w->nap = RECHECK_MIN;
	INIT_DELAYED_WORK(&w->work, ewait_work);
	for (i = 0; i < set->count; i++) {
		init_waitqueue_func_entry(&set->slot[i].wait, ewait_wake);
		set->slot[i].wait.private = w;
	}
	ret = xa_alloc(&file->ewaits, &w->id, NULL, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_eventfd;
	args->id = w->id;
	set_enter(set);
	spin_lock(&file->reap_lock);
	/* Replaces the reservation: allocates nothing. */
	xa_store(&file->ewaits, w->id, w, 0);
	/* The first look: it may hold already, and wake-ups until now found nothing to end. */
	mod_delayed_work(system_unbound_wq, &w->work, 0);
	spin_unlock(&file->reap_lock);
	return 0;

err_eventfd:
	eventfd_ctx_put(w->eventfd);
err_free:
	kfree(w);
err_count:
	ewait_uncharge(file);
	return ret;
}

/* --- ioctls --------------------------------------------------------------------------------- */

int spyre_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;
	struct drm_spyre_wait *args = data;
	bool eventfd = args->flags & DRM_SPYRE_WAIT_EVENTFD;
	struct drm_spyre_wait_entry *entries;
	struct wait_set *set;
	int ret;

	if (args->flags & ~(DRM_SPYRE_WAIT_ALL | DRM_SPYRE_WAIT_EVENTFD) ||
	    !args->count || args->count > SPYRE_WAIT_MAX ||
	    (eventfd ? args->timeout_ns : args->eventfd))
		return -EINVAL;
	/* No lock is held: user memory may be served by a process that takes its time. */
	entries = memdup_array_user(u64_to_user_ptr(args->entries), args->count, sizeof(*entries));
	if (IS_ERR(entries))
		return PTR_ERR(entries);
	ret = spyre_enter(sdev, file);
	if (ret) {
		kfree(entries);
		return ret;
	}
	set = set_new(sdev, args, entries, drm_file);
	spyre_exit(sdev);
	kfree(entries);
	if (IS_ERR(set))
		return PTR_ERR(set);
	if (eventfd) {
		ret = wait_eventfd(set, args, file);
		if (ret)
			set_free(set);
		return ret;
	}
	/* What is there already costs no more than this look. */
	ret = set_check(set, &args->first);
	if (!ret) {
		trace_spyre_wait_begin(drm->dev, args->count, args->timeout_ns);
		ret = wait_here(set, args);
		trace_spyre_wait_end(drm->dev, ret);
	}
	set_free(set);
	return ret < 0 ? ret : 0;
}

int spyre_wait_cancel_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;
	struct drm_spyre_wait_cancel *args = data;
	struct ewait *w = NULL;
	int ret;

	ret = spyre_enter(sdev, file);
	if (ret)
		return ret;
	if (args->id <= U32_MAX)
		w = ewait_take(file, args->id);
	spyre_exit(sdev);
	if (!w)
		return -ENOENT;
	ewait_free(w);
	return 0;
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_wait_kunit.c"
#endif
