// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues.
 *
 * The kernel allocates all of a queue's memory and binds it where a control block cannot reach it
 * (PRIV): the ring read-only for the card, status page and response ring writable. Ring and
 * doorbell are the user's to write, so nothing in them is believed here.
 */
#include <linux/capability.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include <drm/drm_vma_manager.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_gem.h"
#include "spyre_queue.h"
#include "spyre_submit.h"
#include "spyre_trace.h"

void *spyre_queue_slot(const struct spyre_queue *q, u32 index)
{
	return spyre_bo_at(q->ring, (u64)(index & (q->entries - 1)) * sizeof(struct spyre_cb));
}

struct spyre_shadow *spyre_queue_shadow(const struct spyre_queue *q)
{
	return spyre_bo_at(q->ring, (u64)q->entries * sizeof(struct spyre_cb));
}

struct spyre_queue_status *spyre_queue_status(const struct spyre_queue *q)
{
	return spyre_bo_at(q->status, 0);
}

struct spyre_rb *spyre_queue_response(const struct spyre_queue *q, u32 index)
{
	return spyre_bo_at(q->status, PAGE_SIZE + (u64)(index & (q->entries - 1)) *
			   sizeof(struct spyre_rb));
}

/* Two words that must agree are one store, the first one at the lower address. */
static void store_pair(void *at, u32 first, u32 second)
{
	WRITE_ONCE(*(__le64 *)at, cpu_to_le64((u64)second << 32 | first));
}

static u32 shadow_tail(const struct spyre_queue *q)
{
	return le32_to_cpu(READ_ONCE(spyre_queue_shadow(q)->tail));
}

/**
 * spyre_queue_push - submit on a queue that the kernel writes
 * @q: queue that is mapped by no user
 * @cbs: control blocks
 * @n: how many; the ring has room
 *
 * The kernel is a user of the queue here: Documentation/queues.rst, "Submitting".
 *
 * Return: the card wants a doorbell.
 */
bool spyre_queue_push(struct spyre_queue *q, const struct spyre_cb *cbs, u32 n)
{
	struct spyre_queue_status *status = spyre_queue_status(q);
	struct spyre_shadow *shadow = spyre_queue_shadow(q);
	u32 old = shadow_tail(q), new = old + n, i;

	for (i = 0; i < n; i++)
		*(struct spyre_cb *)spyre_queue_slot(q, old + i) = cbs[i];
	/* The control blocks are in memory before the card can see the tail. */
	dma_wmb();
	WRITE_ONCE(shadow->tail, cpu_to_le32(new));
	/*
	 * Orders the store of the tail before the load of event_idx; the card stores event_idx,
	 * full barrier, loads the tail. So one of the two sees the other.
	 */
	mb();
	return new - le32_to_cpu(READ_ONCE(status->event_idx)) - 1 < new - old;
}

static void queue_free(struct kref *ref)
{
	struct spyre_queue *q = container_of(ref, struct spyre_queue, ref);

	if (q->ring)
		spyre_bo_put(q->ring);
	if (q->status)
		spyre_bo_put(q->status);
	if (q->doorbell)
		spyre_bo_put(q->doorbell);
	if (q->ctx)
		spyre_ctx_put(q->ctx);
	/* RAS records look queues up under RCU. */
	kfree_rcu(q, rcu);
}

void spyre_queue_put(struct spyre_queue *q)
{
	kref_put(&q->ref, queue_free);
}

struct spyre_queue *spyre_queue_get(struct spyre_ctx *ctx, u32 id)
{
	struct spyre_queue *q;

	lockdep_assert_held(&ctx->lock);
	q = xa_load(&ctx->queues, id);
	if (q)
		kref_get(&q->ref);
	return q;
}

static int create_on_card(struct spyre_queue *q, u32 start)
{
	struct spyre_device *sdev = q->ctx->sdev;
	u64 ring = spyre_bind_addr(q->ring_bind), status = spyre_bind_addr(q->status_bind);
	struct spyre_msg_queue msg = {
		.id = cpu_to_le32(q->page),
		.context = cpu_to_le32(q->ctx->id),
		.entries = cpu_to_le32(q->entries),
		.priority = cpu_to_le32(q->priority),
		.ring = cpu_to_le64(ring),
		.response = cpu_to_le64(status + PAGE_SIZE),
		.shadow = cpu_to_le64(ring + (u64)q->entries * sizeof(struct spyre_cb)),
		.status = cpu_to_le64(status),
		.timeout = cpu_to_le64(q->timeout),
		.start = cpu_to_le32(start),
		.generation = cpu_to_le32(sdev->gen),
	};
	int ret;

	/* Table stores are write-combined; the command must not overtake them. */
	wmb();
	ret = spyre_mbox_call(sdev, SPYRE_MSG_QUEUE_CREATE, &msg, sizeof(msg), NULL, 0);
	trace_spyre_queue_create(sdev->drm.dev, q->ctx->id, q->page, q->entries, ret);
	if (!ret)
		q->on_card = true;
	return ret;
}

static void drop_binds(struct spyre_queue *q)
{
	/* What the card does not confirm waits in the context's limbo. */
	if (q->status_bind)
		spyre_unbind(q->status_bind);
	if (q->ring_bind)
		spyre_unbind(q->ring_bind);
	q->status_bind = NULL;
	q->ring_bind = NULL;
}

/*
 * The memory of a queue. What a user chooses the size of is allocated with no lock held, see
 * spyre_bo_alloc_host().
 */
static struct spyre_queue *queue_alloc(struct spyre_device *sdev, struct spyre_user *user,
				       bool exempt, u32 entries, u32 priority, u64 timeout)
{
	u64 ring_size = (u64)entries * sizeof(struct spyre_cb) + PAGE_SIZE;
	u64 status_size = (u64)entries * sizeof(struct spyre_rb) + PAGE_SIZE;
	struct spyre_queue *q;
	int ret;

	q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	if (!q)
		return ERR_PTR(-ENOMEM);
	kref_init(&q->ref);
	q->entries = entries;
	q->priority = priority;
	q->timeout = timeout;
	INIT_LIST_HEAD(&q->zombie);
	q->ring = spyre_bo_alloc_host(sdev, ring_size, SPYRE_KIND_RING, user, exempt);
	if (IS_ERR(q->ring)) {
		ret = PTR_ERR(q->ring);
		q->ring = NULL;
		goto err;
	}
	q->status = spyre_bo_alloc_host(sdev, status_size, SPYRE_KIND_STATUS, user, exempt);
	if (IS_ERR(q->status)) {
		ret = PTR_ERR(q->status);
		q->status = NULL;
		goto err;
	}
	return q;

err:
	spyre_queue_put(q);
	return ERR_PTR(ret);
}

/*
 * A queue that was allocated comes to a context, whose lock is held and which is not lost, and to
 * the card. After an error it is not the caller's any more.
 */
static int queue_start(struct spyre_ctx *ctx, struct spyre_queue *q)
{
	struct spyre_device *sdev = ctx->sdev;
	int ret;

	lockdep_assert_held(&ctx->lock);
	kref_get(&ctx->ref);
	q->ctx = ctx;
	if (ctx->user) {
		ret = spyre_user_charge(sdev, ctx->user, SPYRE_QUOTA_QUEUES, ctx->exempt);
		if (ret)
			goto err_free;
	}
	if (atomic_inc_return(&sdev->nqueues) > sdev->info.queues) {
		ret = -EMFILE;
		goto err_count;
	}
	ret = spyre_ctx_get_page(ctx, &q->page);
	if (ret)
		goto err_count;
	ret = spyre_bo_on_bus(sdev, q->ring);
	if (!ret)
		ret = spyre_bo_on_bus(sdev, q->status);
	if (ret)
		goto err_page;
	q->doorbell = spyre_bo_create_doorbell(sdev, q->page);
	if (IS_ERR(q->doorbell)) {
		ret = PTR_ERR(q->doorbell);
		q->doorbell = NULL;
		goto err_page;
	}
	q->ring_bind = spyre_bind_host(ctx, q->ring, 0, q->ring->base.size, SPYRE_PTE_PRIV, true);
	if (IS_ERR(q->ring_bind)) {
		ret = PTR_ERR(q->ring_bind);
		q->ring_bind = NULL;
		goto err_bind;
	}
	q->status_bind = spyre_bind_host(ctx, q->status, 0, q->status->base.size,
					 SPYRE_PTE_PRIV | SPYRE_PTE_WRITE, true);
	if (IS_ERR(q->status_bind)) {
		ret = PTR_ERR(q->status_bind);
		q->status_bind = NULL;
		goto err_bind;
	}
	ret = create_on_card(q, 0);
	if (spyre_mbox_unanswered(ret)) {
		/* The card may know the queue: its memory must stay until a reset. */
		list_add(&q->zombie, &ctx->zombies);
		return ret;
	}
	if (ret)
		goto err_bind;
	return 0;

err_bind:
	drop_binds(q);
err_page:
	spyre_ctx_put_page(ctx, q->page);
err_count:
	atomic_dec(&sdev->nqueues);
	if (ctx->user)
		spyre_user_uncharge(sdev, ctx->user, SPYRE_QUOTA_QUEUES);
err_free:
	spyre_queue_put(q);
	return ret;
}

/**
 * spyre_queue_create - make a queue of the kernel's, here and on the card
 * @ctx: its lock is held, it is not lost
 * @entries: ring size, valid and small
 * @priority: valid, or SPYRE_QUEUE_KERNEL
 * @timeout: default timeout, SoC cycles
 */
struct spyre_queue *spyre_queue_create(struct spyre_ctx *ctx, u32 entries, u32 priority,
				       u64 timeout)
{
	struct spyre_queue *q;
	int ret;

	q = queue_alloc(ctx->sdev, ctx->user, ctx->exempt, entries, priority, timeout);
	if (IS_ERR(q))
		return q;
	ret = queue_start(ctx, q);
	return ret ? ERR_PTR(ret) : q;
}

/* Entries that were fetched and not done end here, with a status of their own. */
static void cancel_fetched(struct spyre_queue *q, u32 done, u32 fetched, u32 status)
{
	struct spyre_queue_status *s = spyre_queue_status(q);
	u32 i;

	/* Indices come from the card: a range that cannot be is cut. */
	if (fetched - done > q->entries)
		fetched = done;
	for (i = done; i != fetched; i++) {
		struct spyre_rb *rb = spyre_queue_response(q, i);

		memset(rb, 0, sizeof(*rb));
		rb->status = cpu_to_le32(status);
		/* valid is what readers look at first. */
		smp_wmb();
		WRITE_ONCE(rb->valid, cpu_to_le32(i + 1));
	}
	/* Whoever sees the error sees the response blocks. */
	smp_wmb();
	store_pair(&s->error, status, done);
	store_pair(&s->generation, q->ctx->sdev->gen, SPYRE_QUEUE_ERROR);
	/* Whoever sees done sees the error. */
	smp_wmb();
	store_pair(&s->fetched, fetched, fetched);
}

/*
 * The firmware was restarted: a queue with nothing in flight goes on; one with entries in flight
 * fails, and the firmware hears of it again when the user resets it. The caller holds the
 * context's lock.
 */
int spyre_queue_recreate(struct spyre_queue *q)
{
	struct spyre_queue_status *s = spyre_queue_status(q);
	u32 fetched = le32_to_cpu(READ_ONCE(s->fetched));
	u32 done = le32_to_cpu(READ_ONCE(s->done));

	lockdep_assert_held(&q->ctx->lock);
	if (!q->on_card)
		return 0;
	q->on_card = false;
	/*
	 * A queue of the kernel's has no user who would reset it. Who waits for the driver's own
	 * asks again; what was in flight on another has been failed.
	 */
	if (!q->id)
		return create_on_card(q, q->ctx->submit ? spyre_submit_at(q->ctx) : shadow_tail(q));
	if (READ_ONCE(s->error))
		return 0;
	if (fetched != done) {
		cancel_fetched(q, done, fetched, SPYRE_ERR_RESET);
		return 0;
	}
	return create_on_card(q, done);
}

/*
 * Nobody makes new mappings of it. While the file is there: the key may be another file's later.
 */
static void forbid_mappings(struct spyre_queue *q)
{
	if (q->doorbell)
		spyre_bo_revoke(q->doorbell);
	if (!q->file)
		return;
	drm_vma_node_revoke(&q->ring->base.vma_node, q->file);
	drm_vma_node_revoke(&q->status->base.vma_node, q->file);
	drm_vma_node_revoke(&q->doorbell->base.vma_node, q->file);
	q->file = NULL;
}

/*
 * The firmware is alive and the queue does not end: its context's jobs are aborted, as a restart
 * would hit every context. A first command that came through after all leaves no queue to destroy.
 */
static int destroy_on_card(struct spyre_queue *q)
{
	struct spyre_device *sdev = q->ctx->sdev;
	int ret = spyre_mbox_try_id(sdev, SPYRE_MSG_QUEUE_DESTROY, q->page, 0);

	if (ret != -ETIMEDOUT)
		return ret;
	drm_warn(&sdev->drm, "a queue of context %u does not end, the context is reset\n",
		 q->ctx->id);
	ret = spyre_ctx_reset(q->ctx);
	if (!ret)
		ret = spyre_mbox_id(sdev, SPYRE_MSG_QUEUE_DESTROY, q->page, 0);
	return ret == -ENOENT ? 0 : ret;
}

/*
 * Asks the card to forget the queue. 0: it touches none of its memory any more. The caller holds
 * the context's lock.
 */
int spyre_queue_stop(struct spyre_queue *q)
{
	int ret = 0;

	lockdep_assert_held(&q->ctx->lock);
	WRITE_ONCE(q->dead, true);
	forbid_mappings(q);
	if (q->on_card)
		ret = destroy_on_card(q);
	trace_spyre_queue_destroy(q->ctx->sdev->drm.dev, q->ctx->id, q->page, ret);
	if (!ret)
		q->on_card = false;
	return ret;
}

/*
 * Gives back what the queue holds. The card does not know it any more, and either the bindings go
 * with the context (it is detached) or they are dropped here. The caller holds the context's
 * lock.
 */
void spyre_queue_release(struct spyre_queue *q)
{
	struct spyre_ctx *ctx = q->ctx;

	lockdep_assert_held(&ctx->lock);
	WRITE_ONCE(q->dead, true);
	q->on_card = false;
	forbid_mappings(q);
	if (!ctx->detached)
		drop_binds(q);
	q->ring_bind = NULL;
	q->status_bind = NULL;
	spyre_ctx_put_page(ctx, q->page);
	atomic_dec(&ctx->sdev->nqueues);
	if (ctx->user)
		spyre_user_uncharge(ctx->sdev, ctx->user, SPYRE_QUOTA_QUEUES);
	wake_up_all(&ctx->waitq);
	spyre_queue_put(q);
}

/* The card writes no more: what the user finds in the status page from now on. */
void spyre_queue_final(struct spyre_queue *q, u32 status, u32 gen)
{
	struct spyre_queue_status *s = spyre_queue_status(q);

	if (!READ_ONCE(s->error))
		store_pair(&s->error, status, le32_to_cpu(READ_ONCE(s->done)));
	/* Poll loops check the generation: the error is there before. */
	smp_wmb();
	store_pair(&s->generation, gen, SPYRE_QUEUE_LOST);
}

/* --- ioctls --------------------------------------------------------------------------------- */

static int publish_mapping(struct spyre_bo *bo, struct drm_file *drm_file, u64 *offset)
{
	int ret;

	ret = drm_gem_create_mmap_offset(&bo->base);
	if (ret)
		return ret;
	ret = drm_vma_node_allow(&bo->base.vma_node, drm_file);
	if (ret)
		return ret;
	*offset = drm_vma_node_offset_addr(&bo->base.vma_node);
	return 0;
}

static int publish(struct spyre_queue *q, struct drm_file *drm_file,
		   struct drm_spyre_queue_create *args)
{
	int ret;

	q->file = drm_file;
	ret = publish_mapping(q->ring, drm_file, &args->ring_offset);
	if (!ret)
		ret = publish_mapping(q->status, drm_file, &args->status_offset);
	if (!ret)
		ret = publish_mapping(q->doorbell, drm_file, &args->doorbell_offset);
	if (!ret)
		ret = xa_alloc(&q->ctx->queues, &q->id, q, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	args->queue = q->id;
	args->ring_size = q->ring->base.size;
	args->status_size = q->status->base.size;
	args->shadow_at = q->entries * sizeof(struct spyre_cb);
	args->response_at = PAGE_SIZE;
	return 0;
}

/* Stops and releases a queue nobody else finds any more. */
static int stop_and_release(struct spyre_queue *q)
{
	struct spyre_ctx *ctx = q->ctx;
	int ret = spyre_queue_stop(q);

	if (ret) {
		list_add(&q->zombie, &ctx->zombies);
		/* With the mailbox down a reset is on its way already. */
		if (READ_ONCE(ctx->sdev->mbox.up))
			spyre_reset_request(ctx->sdev, SPYRE_RUNG_FIRMWARE, "a queue did not end");
		return -EIO;
	}
	spyre_queue_release(q);
	return 0;
}

int spyre_queue_create_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;
	struct drm_spyre_queue_create *args = data;
	struct spyre_queue *q;
	struct spyre_ctx *ctx;
	int ret;

	if (args->flags || args->priority >= SPYRE_PRIORITIES)
		return -EINVAL;
	if (args->priority > 1 && !capable(CAP_SYS_NICE))
		return -EPERM;
	if (!is_power_of_2(args->entries) || args->entries > SPYRE_RING_MAX)
		return -EINVAL;
	if (READ_ONCE(sdev->gen) != file->gen)
		return -ENODEV;
	q = queue_alloc(sdev, file->user, file->exempt, args->entries, args->priority,
			args->timeout);
	if (IS_ERR(q))
		return PTR_ERR(q);
	ret = spyre_enter(sdev, file);
	if (ret) {
		spyre_queue_put(q);
		return ret;
	}
	if (args->entries < sdev->info.ring_min || args->entries > sdev->info.ring_max) {
		spyre_queue_put(q);
		ret = -EINVAL;
		goto out;
	}
	ctx = spyre_file_ctx(file);
	if (IS_ERR(ctx)) {
		spyre_queue_put(q);
		ret = PTR_ERR(ctx);
		goto out;
	}
	mutex_lock(&ctx->lock);
	ret = queue_start(ctx, q);
	if (!ret) {
		ret = publish(q, drm_file, args);
		if (ret)
			stop_and_release(q);
		else
			spyre_reset_watch(sdev);
	}
	mutex_unlock(&ctx->lock);
out:
	spyre_exit(sdev);
	return ret;
}

/*
 * Looks a queue up for one of the calls below; with 0 the context is locked and reset_sem is
 * held.
 */
static int begin(struct drm_device *drm, const struct drm_spyre_queue_id *args,
		 struct drm_file *drm_file, struct spyre_queue **q)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;
	struct spyre_ctx *ctx;
	int ret;

	if (args->pad)
		return -EINVAL;
	ret = spyre_enter(sdev, file);
	if (ret)
		return ret;
	ctx = spyre_file_ctx_peek(file);
	if (!ctx) {
		spyre_exit(sdev);
		return -ENOENT;
	}
	mutex_lock(&ctx->lock);
	*q = xa_load(&ctx->queues, args->queue);
	if (!*q) {
		mutex_unlock(&ctx->lock);
		spyre_exit(sdev);
		return -ENOENT;
	}
	return 0;
}

static void finish(struct spyre_device *sdev, struct spyre_ctx *ctx)
{
	mutex_unlock(&ctx->lock);
	spyre_exit(sdev);
}

int spyre_queue_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_queue *q;
	struct spyre_ctx *ctx;
	int ret;

	ret = begin(drm, data, drm_file, &q);
	if (ret)
		return ret;
	ctx = q->ctx;
	xa_erase(&ctx->queues, q->id);
	ret = stop_and_release(q);
	finish(to_spyre(drm), ctx);
	return ret;
}

int spyre_queue_reset_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_queue *q;
	int ret;

	ret = begin(drm, data, drm_file, &q);
	if (ret)
		return ret;
	if (q->on_card)
		ret = spyre_mbox_id(sdev, SPYRE_MSG_QUEUE_RESET, q->page, 0);
	else
		ret = create_on_card(q, shadow_tail(q));
	trace_spyre_queue_reset(sdev->drm.dev, q->ctx->id, q->page, ret);
	finish(sdev, q->ctx);
	return ret;
}

int spyre_queue_kick_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_queue *q;
	int ret;

	ret = begin(drm, data, drm_file, &q);
	if (ret)
		return ret;
	if (q->on_card)
		spyre_ring_doorbell(sdev, q->page, shadow_tail(q));
	finish(sdev, q->ctx);
	return 0;
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_queue_kunit.c"
#endif
