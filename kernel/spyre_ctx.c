// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts: one per open file at most, made by the first call that needs one.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_gem.h"
#include "spyre_queue.h"
#include "spyre_submit.h"
#include "spyre_trace.h"

static int create_on_card(struct spyre_ctx *ctx)
{
	struct spyre_msg_ctx msg = {
		.id = cpu_to_le32(ctx->id),
		.vector = cpu_to_le32(ctx->vector),
		.table = cpu_to_le64(SPYRE_AREA_CTX +
				     ctx->id * sizeof(struct spyre_context_table)),
		.arm = cpu_to_le64(ctx->shared_dma + offsetof(struct spyre_ctx_shared, arm)),
		.usage = cpu_to_le64(ctx->shared_dma + offsetof(struct spyre_ctx_shared, usage)),
	};

	return spyre_mbox_call(ctx->sdev, SPYRE_MSG_CTX_CREATE, &msg, sizeof(msg), NULL, 0);
}

static void save_usage(struct spyre_ctx *ctx)
{
	const struct drm_spyre_usage *base = &ctx->usage_base;
	const struct spyre_usage *u;
	unsigned int i;

	if (!ctx->shared)
		return;
	u = &ctx->shared->usage;
	for (i = 0; i < ARRAY_SIZE(u->busy); i++) {
		ctx->usage.busy[i] = base->busy[i] + le64_to_cpu(READ_ONCE(u->busy[i]));
		ctx->usage.bytes[i] = base->bytes[i] + le64_to_cpu(READ_ONCE(u->bytes[i]));
	}
	ctx->usage.cbs = base->cbs + le64_to_cpu(READ_ONCE(u->cbs));
	ctx->usage.errors = base->errors + le64_to_cpu(READ_ONCE(u->errors));
}

/* The card was stopped or has confirmed the context's end: its queues are no more. */
static void release_zombies(struct spyre_ctx *ctx)
{
	struct spyre_queue *q, *next;

	list_for_each_entry_safe(q, next, &ctx->zombies, zombie) {
		list_del_init(&q->zombie);
		spyre_queue_release(q);
	}
}

/*
 * Gives back what the context held on the card and on the bus. The card must not know it any
 * more: it has confirmed its end, or it was stopped. The caller holds ctx->lock.
 */
static void detach(struct spyre_ctx *ctx)
{
	struct spyre_device *sdev = ctx->sdev;
	struct spyre_ctx_shared *shared;
	struct spyre_queue *q;
	unsigned long index;

	lockdep_assert_held(&ctx->lock);
	if (ctx->detached)
		return;
	ctx->detached = true;
	xa_for_each(&ctx->queues, index, q) {
		xa_erase(&ctx->queues, index);
		spyre_queue_release(q);
	}
	release_zombies(ctx);
	if (ctx->kqueue)
		spyre_queue_release(ctx->kqueue);
	ctx->kqueue = NULL;
	spyre_vm_fini(ctx);
	spin_lock(&sdev->wake_lock);
	save_usage(ctx);
	shared = ctx->shared;
	ctx->shared = NULL;
	spin_unlock(&sdev->wake_lock);
	if (shared)
		dma_free_coherent(&sdev->pdev->dev, sizeof(*shared), shared, ctx->shared_dma);
	xa_erase(&sdev->ctxs, ctx->id);
	if (ctx->user) {
		spyre_user_uncharge(sdev, ctx->user, SPYRE_QUOTA_CONTEXTS);
		spyre_user_put(sdev, ctx->user);
		ctx->user = NULL;
	}
}

static void ctx_free(struct kref *ref)
{
	struct spyre_ctx *ctx = container_of(ref, struct spyre_ctx, ref);

	spyre_submit_free(ctx);
	spyre_ras_log_fini(&ctx->ras);
	xa_destroy(&ctx->queues);
	xa_destroy(&ctx->blocks);
	mutex_destroy(&ctx->lock);
	kfree(ctx);
}

void spyre_ctx_put(struct spyre_ctx *ctx)
{
	kref_put(&ctx->ref, ctx_free);
}

/* Kept until the card is stopped, as only then it is sure to touch nothing of it any more. */
static void enter_limbo(struct spyre_ctx *ctx, const char *reason)
{
	struct spyre_device *sdev = ctx->sdev;

	mutex_lock(&sdev->limbo_lock);
	list_add(&ctx->limbo, &sdev->limbo);
	mutex_unlock(&sdev->limbo_lock);
	/* With the mailbox down a reset is on its way already. */
	if (READ_ONCE(sdev->mbox.up))
		spyre_reset_request(sdev, SPYRE_RUNG_FIRMWARE, reason);
}

/* What needs neither memory nor a card. */
static void ctx_init(struct spyre_ctx *ctx, struct spyre_device *sdev)
{
	kref_init(&ctx->ref);
	ctx->sdev = sdev;
	mutex_init(&ctx->lock);
	xa_init_flags(&ctx->queues, XA_FLAGS_ALLOC1);
	xa_init(&ctx->blocks);
	INIT_LIST_HEAD(&ctx->zombies);
	INIT_LIST_HEAD(&ctx->limbo);
	INIT_LIST_HEAD(&ctx->waited);
	init_waitqueue_head(&ctx->waitq);
}

/**
 * spyre_ctx_create - make a context, here and on the card
 * @sdev: card, reset_sem held
 * @user: whose quota, NULL: none (the driver's own)
 * @exempt: the quota does not bind
 */
struct spyre_ctx *spyre_ctx_create(struct spyre_device *sdev, struct spyre_user *user, bool exempt)
{
	struct spyre_ctx *ctx;
	int ret;

	lockdep_assert_held(&sdev->reset_sem);
	if (user) {
		ret = spyre_user_charge(sdev, user, SPYRE_QUOTA_CONTEXTS, exempt);
		if (ret)
			return ERR_PTR(ret);
	}
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx) {
		ret = -ENOMEM;
		goto err_quota;
	}
	ctx_init(ctx, sdev);
	ctx->exempt = exempt;
	ret = spyre_ras_log_init(&ctx->ras, 64);
	if (ret)
		goto err_free;
	ctx->shared = dma_alloc_coherent(&sdev->pdev->dev, sizeof(*ctx->shared), &ctx->shared_dma,
					 GFP_KERNEL_ACCOUNT);
	if (!ctx->shared) {
		ret = -ENOMEM;
		goto err_free;
	}
	/* Reserved, not visible: interrupts and RAS events look contexts up by id. */
	ret = xa_alloc(&sdev->ctxs, &ctx->id, NULL, XA_LIMIT(1, sdev->info.contexts - 1),
		       GFP_KERNEL_ACCOUNT);
	if (ret) {
		if (ret == -EBUSY)
			ret = -EMFILE;
		goto err_shared;
	}
	ctx->vector = spyre_irq_pick(sdev);
	spyre_vm_init(ctx);
	if (user)
		ctx->user = spyre_user_ref(sdev, user);
	xa_store(&sdev->ctxs, ctx->id, ctx, GFP_KERNEL_ACCOUNT);
	/* The table was cleared by write-combined stores; the command must not overtake them. */
	wmb();
	ret = create_on_card(ctx);
	trace_spyre_ctx_create(sdev->drm.dev, ctx->id, ret);
	if (spyre_mbox_unanswered(ret)) {
		/* The card may know the context: only a reset can tell. */
		enter_limbo(ctx, "a context was not confirmed");
		return ERR_PTR(ret);
	}
	if (ret) {
		mutex_lock(&ctx->lock);
		detach(ctx);
		mutex_unlock(&ctx->lock);
		spyre_ctx_put(ctx);
		return ERR_PTR(ret == -ENOENT || ret == -EBUSY ? -EIO : ret);
	}
	return ctx;

err_shared:
	dma_free_coherent(&sdev->pdev->dev, sizeof(*ctx->shared), ctx->shared, ctx->shared_dma);
err_free:
	spyre_ctx_put(ctx);
err_quota:
	if (user)
		spyre_user_uncharge(sdev, user, SPYRE_QUOTA_CONTEXTS);
	return ERR_PTR(ret);
}

/* After a firmware restart or resume: card memory and tables are as they were. */
int spyre_ctx_recreate(struct spyre_ctx *ctx)
{
	struct spyre_device *sdev = ctx->sdev;
	struct spyre_queue *q;
	unsigned long index;
	int ret;

	mutex_lock(&ctx->lock);
	release_zombies(ctx);
	/* The new firmware counts from nothing; what was counted before is kept. */
	spin_lock(&sdev->wake_lock);
	save_usage(ctx);
	ctx->usage_base = ctx->usage;
	memset(&ctx->shared->usage, 0, sizeof(ctx->shared->usage));
	spin_unlock(&sdev->wake_lock);
	ret = create_on_card(ctx);
	spyre_vm_free_limbo(ctx);
	if (!ret && ctx->kqueue)
		ret = spyre_queue_recreate(ctx->kqueue);
	if (!ret)
		spyre_submit_resume(ctx);
	xa_for_each(&ctx->queues, index, q) {
		if (ret)
			break;
		ret = spyre_queue_recreate(q);
	}
	mutex_unlock(&ctx->lock);
	spyre_ctx_wake(ctx);
	return ret;
}

/*
 * The card lost the context, or will never be asked about it again. Final status pages, resources
 * back, waiters woken. The caller holds reset_sem for writing and has stopped the card.
 */
void spyre_ctx_lose(struct spyre_ctx *ctx, u32 status, u32 gen)
{
	struct spyre_queue *q;
	unsigned long index;

	lockdep_assert_held_write(&ctx->sdev->reset_sem);
	mutex_lock(&ctx->lock);
	ctx->lost = true;
	spyre_submit_detach(ctx, -ENODEV);
	xa_for_each(&ctx->queues, index, q)
		spyre_queue_final(q, status, gen);
	detach(ctx);
	mutex_unlock(&ctx->lock);
	wake_up_all(&ctx->waitq);
}

/*
 * Closed contexts that waited for the card to be stopped. The caller holds reset_sem for writing.
 */
void spyre_ctx_free_limbo(struct spyre_device *sdev)
{
	struct spyre_ctx *ctx, *next;
	LIST_HEAD(list);

	mutex_lock(&sdev->limbo_lock);
	list_splice_init(&sdev->limbo, &list);
	mutex_unlock(&sdev->limbo_lock);
	list_for_each_entry_safe(ctx, next, &list, limbo) {
		list_del_init(&ctx->limbo);
		mutex_lock(&ctx->lock);
		ctx->lost = true;
		detach(ctx);
		mutex_unlock(&ctx->lock);
		spyre_ctx_put(ctx);
	}
}

/**
 * spyre_ctx_reset - the rung between a queue and the firmware
 * @ctx: its lock is held
 *
 * The card aborts what the context has in flight; its queues are in ERROR with status CANCELLED.
 *
 * Return: 0, or an error of the mailbox.
 */
int spyre_ctx_reset(struct spyre_ctx *ctx)
{
	struct spyre_device *sdev = ctx->sdev;
	int ret;

	lockdep_assert_held(&ctx->lock);
	ret = spyre_mbox_id(sdev, SPYRE_MSG_CTX_RESET, ctx->id, 0);
	if (!ret)
		atomic_inc(&sdev->reset.context);
	return ret;
}

/**
 * spyre_ctx_close - end a context
 * @ctx: nobody else submits to it any more; the reference is given away
 *
 * Bounded: at most one command meets its deadline, later ones fail at once. What the card did not
 * confirm is kept until the reset that was asked for then. The caller holds reset_sem.
 */
void spyre_ctx_close(struct spyre_ctx *ctx)
{
	struct spyre_device *sdev = ctx->sdev;
	struct spyre_queue *q;
	unsigned long index;
	int ret = 0;

	lockdep_assert_held(&sdev->reset_sem);
	spyre_submit_kill(ctx);
	mutex_lock(&ctx->lock);
	trace_spyre_ctx_close(sdev->drm.dev, ctx->id, ctx->lost);
	if (ctx->lost) {
		mutex_unlock(&ctx->lock);
		goto put;
	}
	/*
	 * All at once: what is in flight is nobody's any more, and each queue would be given time
	 * to end by itself. Whether it worked, the queues say.
	 */
	if (ctx->kqueue || !xa_empty(&ctx->queues))
		spyre_ctx_reset(ctx);
	if (ctx->kqueue)
		ret = spyre_queue_stop(ctx->kqueue);
	xa_for_each(&ctx->queues, index, q) {
		int err = spyre_queue_stop(q);

		ret = ret ?: err;
	}
	/* The card has ended it, or will be reset: what is confirmed is not waited for here. */
	spyre_submit_detach(ctx, -ECANCELED);
	if (!list_empty(&ctx->zombies))
		ret = -EIO;
	if (!ret)
		ret = spyre_mbox_id(sdev, SPYRE_MSG_CTX_DESTROY, ctx->id, 0);
	if (ret) {
		/*
		 * An answer that is no confirmation leaves the card's state unknown as well as
		 * none does. A reset is the only way to be sure that it touches nothing any more.
		 */
		mutex_unlock(&ctx->lock);
		spyre_submit_end(ctx);
		enter_limbo(ctx, "a context did not end");
		return;
	}
	detach(ctx);
	mutex_unlock(&ctx->lock);
put:
	spyre_submit_end(ctx);
	spyre_ctx_put(ctx);
}

/* The file's context or NULL. */
struct spyre_ctx *spyre_file_ctx_peek(struct spyre_file *file)
{
	/* Pairs with the release in spyre_file_ctx(): who sees the pointer sees the context. */
	return smp_load_acquire(&file->ctx);
}

/* The file's context, made now if there is none. The caller holds reset_sem by spyre_enter(). */
struct spyre_ctx *spyre_file_ctx(struct spyre_file *file)
{
	struct spyre_ctx *ctx = spyre_file_ctx_peek(file);

	if (ctx)
		return ctx;
	if (mutex_lock_interruptible(&file->lock))
		return ERR_PTR(-EINTR);
	ctx = file->ctx;
	if (!ctx) {
		ctx = spyre_ctx_create(file->sdev, file->user, file->exempt);
		if (!IS_ERR(ctx))
			/* Pairs with the acquire in spyre_file_ctx_peek(). */
			smp_store_release(&file->ctx, ctx);
	}
	mutex_unlock(&file->lock);
	return ctx;
}

struct spyre_ctx *spyre_ctx_get_id(struct spyre_device *sdev, u32 id)
{
	struct spyre_ctx *ctx;

	xa_lock(&sdev->ctxs);
	ctx = xa_load(&sdev->ctxs, id);
	if (ctx && !kref_get_unless_zero(&ctx->ref))
		ctx = NULL;
	xa_unlock(&sdev->ctxs);
	return ctx;
}

/*
 * Allows the card one more interrupt for this context. The caller holds wake_lock, and follows
 * with mb() before it looks at what it waits for.
 */
void spyre_ctx_arm(struct spyre_ctx *ctx)
{
	lockdep_assert_held(&ctx->sdev->wake_lock);
	if (ctx->shared)
		WRITE_ONCE(ctx->shared->arm.arm, cpu_to_le32(++ctx->arm));
}

void spyre_ctx_wake(struct spyre_ctx *ctx)
{
	struct spyre_bound *bound, *next;

	spin_lock(&ctx->sdev->wake_lock);
	wake_up_all(&ctx->waitq);
	/*
	 * A waiter enters the queue before it arms under wake_lock, so one that is not seen here
	 * armed later and looks for itself. Who goes on waiting arms again. So this costs what
	 * waiters cost, however much is bound.
	 */
	list_for_each_entry_safe(bound, next, &ctx->waited, waited) {
		list_del_init(&bound->waited);
		wake_up_all(&bound->bo->waitq);
	}
	spin_unlock(&ctx->sdev->wake_lock);
	spyre_submit_look(ctx);
}

void spyre_ctx_wake_id(struct spyre_device *sdev, u32 id)
{
	struct spyre_ctx *ctx = spyre_ctx_get_id(sdev, id);

	if (!ctx)
		return;
	spyre_ctx_wake(ctx);
	spyre_ctx_put(ctx);
}

void spyre_ctx_usage(struct spyre_ctx *ctx, struct drm_spyre_usage *out)
{
	spin_lock(&ctx->sdev->wake_lock);
	save_usage(ctx);
	*out = ctx->usage;
	spin_unlock(&ctx->sdev->wake_lock);
}

/* A doorbell page for a new queue: from a block of this context, or from a new block. */
int spyre_ctx_get_page(struct spyre_ctx *ctx, u32 *page)
{
	struct spyre_device *sdev = ctx->sdev;
	unsigned long block, mask;
	void *entry;
	u32 bit;
	int ret;

	lockdep_assert_held(&ctx->lock);
	xa_for_each(&ctx->blocks, block, entry) {
		mask = xa_to_value(entry);
		if (mask != GENMASK(SPYRE_DB_BLOCK_PAGES - 1, 0))
			goto found;
	}
	mutex_lock(&sdev->limbo_lock);
	block = find_first_zero_bit(sdev->db_blocks, sdev->db_pages / SPYRE_DB_BLOCK_PAGES);
	if (block < sdev->db_pages / SPYRE_DB_BLOCK_PAGES)
		set_bit(block, sdev->db_blocks);
	mutex_unlock(&sdev->limbo_lock);
	if (block >= sdev->db_pages / SPYRE_DB_BLOCK_PAGES)
		return -EMFILE;
	mask = 0;
found:
	bit = ffz(mask);
	ret = xa_err(xa_store(&ctx->blocks, block, xa_mk_value(mask | BIT(bit)),
			      GFP_KERNEL_ACCOUNT));
	if (ret) {
		if (!mask) {
			mutex_lock(&sdev->limbo_lock);
			clear_bit(block, sdev->db_blocks);
			mutex_unlock(&sdev->limbo_lock);
		}
		return ret;
	}
	*page = block * SPYRE_DB_BLOCK_PAGES + bit;
	return 0;
}

void spyre_ctx_put_page(struct spyre_ctx *ctx, u32 page)
{
	unsigned long block = page / SPYRE_DB_BLOCK_PAGES;
	unsigned long mask = xa_to_value(xa_load(&ctx->blocks, block));

	lockdep_assert_held(&ctx->lock);
	mask &= ~BIT(page % SPYRE_DB_BLOCK_PAGES);
	if (mask) {
		/* Replaces an entry: allocates nothing. */
		xa_store(&ctx->blocks, block, xa_mk_value(mask), GFP_KERNEL);
		return;
	}
	xa_erase(&ctx->blocks, block);
	mutex_lock(&ctx->sdev->limbo_lock);
	clear_bit(block, ctx->sdev->db_blocks);
	mutex_unlock(&ctx->sdev->limbo_lock);
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_ctx_kunit.c"
#endif
