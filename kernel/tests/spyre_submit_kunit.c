// SPDX-License-Identifier: GPL-2.0-only
/*
 * SUBMIT: how jobs end, in which order, and who is to blame.
 */
#include "spyre_kunit.h"

static struct spyre_submit *submit_new_kunit(struct kunit *test)
{
	struct spyre_device *sdev = spyre_kunit_device(test);
	struct spyre_submit *sub = kunit_kzalloc(test, sizeof(*sub), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sub);
	kref_init(&sub->ref);
	INIT_LIST_HEAD(&sub->inflight);
	init_waitqueue_head(&sub->idle);
	sub->sdev = sdev;
	sub->ctx = spyre_kunit_ctx(test, sdev);
	sub->queue = spyre_kunit_queue(test, sub->ctx, 64);
	sub->fence_context = dma_fence_context_alloc(1);
	sub->open = true;
	sub->excused = jiffies;
	sdev->info.engines[KIND_DMI] = 2;
	sdev->info.engines[KIND_DMO] = 1;
	sdev->info.engines[KIND_DMX] = 1;
	sdev->info.engines[KIND_COMPUTE] = 1;
	return sub;
}

static void submit_put_fence(void *data)
{
	dma_fence_put(data);
}

/* A job that was handed over. */
static struct spyre_job *submit_job(struct kunit *test, struct spyre_submit *sub, u32 count)
{
	struct spyre_job *job = kunit_kzalloc(test, struct_size(job, cbs, count), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, job);
	job->sub = sub;
	job->count = count;
	for (i = 0; i < count; i++)
		job->cbs[i].type = cpu_to_le16(SPYRE_CB_FILL);
	job->fence = fence_new();
	KUNIT_ASSERT_NOT_NULL(test, job->fence);
	dma_fence_init(&job->fence->base, &fence_ops, &job->fence->lock, sub->fence_context,
		       ++sub->seqno);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, submit_put_fence,
							   &job->fence->base));
	list_add_tail(&job->link, &sub->inflight);
	return job;
}

static void submit_push(struct spyre_submit *sub, struct spyre_job *job)
{
	spin_lock(&sub->sdev->submits.lock);
	push_locked(sub, job);
	spin_unlock(&sub->sdev->submits.lock);
}

static void submit_look(struct spyre_submit *sub)
{
	spin_lock(&sub->sdev->submits.lock);
	look_locked(sub);
	spin_unlock(&sub->sdev->submits.lock);
}

/* 1: signalled well, a negative error, 0: not yet. */
static int submit_status(const struct spyre_job *job)
{
	return dma_fence_get_status(&job->fence->base);
}

static void submit_answer(struct spyre_submit *sub, u32 index, u32 status)
{
	struct spyre_rb *rb = spyre_queue_response(sub->queue, index);

	rb->status = cpu_to_le32(status);
	rb->valid = cpu_to_le32(index + 1);
}

static void submit_in_order(struct kunit *test)
{
	struct spyre_submit *sub = submit_new_kunit(test);
	struct spyre_queue_status *status = spyre_queue_status(sub->queue);
	struct spyre_job *a, *b, *c;

	/* Over the end of the ring and of 32 bits. */
	sub->tail = U32_MAX - 1;
	sub->done = U32_MAX - 1;
	status->done = cpu_to_le32(U32_MAX - 1);
	spyre_queue_shadow(sub->queue)->tail = cpu_to_le32(U32_MAX - 1);
	a = submit_job(test, sub, 3);
	b = submit_job(test, sub, 0);
	c = submit_job(test, sub, 1);
	submit_push(sub, a);
	submit_push(sub, b);
	submit_push(sub, c);
	KUNIT_EXPECT_EQ(test, 2, sub->tail);
	submit_look(sub);
	status->done = cpu_to_le32(0);
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, 0, submit_status(a));
	/* One without control blocks ends with those before it. */
	KUNIT_EXPECT_EQ(test, 0, submit_status(b));
	status->done = cpu_to_le32(1);
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, 1, submit_status(a));
	KUNIT_EXPECT_EQ(test, 1, submit_status(b));
	KUNIT_EXPECT_EQ(test, 0, submit_status(c));
	status->done = cpu_to_le32(2);
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, 1, submit_status(c));
	KUNIT_EXPECT_TRUE(test, list_empty(&sub->inflight));
}

/* The card says of one how it ended; those behind it are cancelled. */
static void submit_failure(struct kunit *test)
{
	struct spyre_submit *sub = submit_new_kunit(test);
	struct spyre_queue_status *status = spyre_queue_status(sub->queue);
	struct spyre_job *a = submit_job(test, sub, 1), *b = submit_job(test, sub, 2);
	struct spyre_job *c = submit_job(test, sub, 1), *d = submit_job(test, sub, 0);

	submit_push(sub, a);
	submit_push(sub, b);
	submit_push(sub, c);
	submit_push(sub, d);
	submit_answer(sub, 0, SPYRE_OK);
	submit_answer(sub, 1, SPYRE_ERR_CANCELLED);
	submit_answer(sub, 2, SPYRE_ERR_TIMEOUT);
	submit_answer(sub, 3, SPYRE_ERR_CANCELLED);
	status->error = cpu_to_le32(SPYRE_ERR_TIMEOUT);
	status->done = cpu_to_le32(4);
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, 1, submit_status(a));
	/* Of two failures of one job the one that is no consequence counts. */
	KUNIT_EXPECT_EQ(test, -ETIME, submit_status(b));
	KUNIT_EXPECT_EQ(test, -ECANCELED, submit_status(c));
	KUNIT_EXPECT_EQ(test, -ECANCELED, submit_status(d));
	KUNIT_EXPECT_EQ(test, -EIO, sub->error);
}

/* A queue in error and no response block: nobody knows that it went well. */
static void submit_no_response(struct kunit *test)
{
	struct spyre_submit *sub = submit_new_kunit(test);
	struct spyre_queue_status *status = spyre_queue_status(sub->queue);
	struct spyre_job *a = submit_job(test, sub, 1);

	submit_push(sub, a);
	status->error = cpu_to_le32(SPYRE_ERR_FAULT);
	status->done = cpu_to_le32(1);
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, -EIO, submit_status(a));
}

static void submit_nonsense(struct kunit *test)
{
	struct spyre_submit *sub = submit_new_kunit(test);
	struct spyre_queue_status *status = spyre_queue_status(sub->queue);
	struct spyre_job *a = submit_job(test, sub, 2), *b = submit_job(test, sub, 1);

	submit_push(sub, a);
	submit_push(sub, b);
	/* More done than there is, and less than there was. */
	status->done = cpu_to_le32(4);
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, 0, sub->done);
	status->done = cpu_to_le32(2);
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, 1, submit_status(a));
	status->done = cpu_to_le32(1);
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, 2, sub->done);
	KUNIT_EXPECT_EQ(test, 0, submit_status(b));
	/* A ring that the card does not read any more. */
	status->error = cpu_to_le32(SPYRE_ERR_QUEUE);
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, -EIO, submit_status(b));
	KUNIT_EXPECT_EQ(test, sub->tail, sub->done);
}

/* What is not to run takes its place and no entry. */
static void submit_cancelled(struct kunit *test)
{
	struct spyre_submit *sub = submit_new_kunit(test);
	struct spyre_job *a = submit_job(test, sub, 2), *b = submit_job(test, sub, 2);

	a->error = -ECANCELED;
	submit_push(sub, a);
	KUNIT_EXPECT_EQ(test, 0, sub->tail);
	/* Not pushed: it and what is behind it wait. */
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, -ECANCELED, submit_status(a));
	KUNIT_EXPECT_EQ(test, 0, submit_status(b));
	submit_push(sub, b);
	KUNIT_EXPECT_EQ(test, 2, sub->tail);
	spin_lock(&sub->sdev->submits.lock);
	fail_inflight(sub, -ENODEV);
	spin_unlock(&sub->sdev->submits.lock);
	KUNIT_EXPECT_EQ(test, -ENODEV, submit_status(b));
	KUNIT_EXPECT_EQ(test, -ENODEV, sub->error);
	KUNIT_EXPECT_EQ(test, 2, sub->done);
}

/* The job that the reset of the context hit is told why, the others that they were cancelled. */
static void submit_blamed(struct kunit *test)
{
	struct spyre_submit *sub = submit_new_kunit(test);
	struct spyre_queue_status *status = spyre_queue_status(sub->queue);
	struct spyre_job *a = submit_job(test, sub, 1), *b = submit_job(test, sub, 1);

	submit_push(sub, a);
	submit_push(sub, b);
	sub->blamed = true;
	submit_answer(sub, 0, SPYRE_ERR_CANCELLED);
	submit_answer(sub, 1, SPYRE_ERR_CANCELLED);
	status->error = cpu_to_le32(SPYRE_ERR_CANCELLED);
	status->done = cpu_to_le32(2);
	submit_look(sub);
	KUNIT_EXPECT_EQ(test, -ETIME, submit_status(a));
	KUNIT_EXPECT_EQ(test, -ECANCELED, submit_status(b));
	KUNIT_EXPECT_FALSE(test, sub->blamed);
}

static void submit_engines(struct kunit *test)
{
	static const struct {
		u32 type, kind;
	} kinds[] = {
		{ SPYRE_CB_DMAI, KIND_DMI }, { SPYRE_CB_DMAO, KIND_DMO },
		{ SPYRE_CB_DMAX, KIND_DMX }, { SPYRE_CB_FILL, KIND_DMX },
		{ SPYRE_CB_COMPUTE, KIND_COMPUTE }, { SPYRE_CB_TIMESTAMP, KIND_NONE },
	};
	struct spyre_submit *sub = submit_new_kunit(test);
	struct spyre_job *job;
	u32 i;

	KUNIT_EXPECT_EQ(test, KIND_DMI, engine_kind(sub->sdev, 0));
	KUNIT_EXPECT_EQ(test, KIND_DMI, engine_kind(sub->sdev, 1));
	KUNIT_EXPECT_EQ(test, KIND_DMO, engine_kind(sub->sdev, 2));
	KUNIT_EXPECT_EQ(test, KIND_COMPUTE, engine_kind(sub->sdev, 4));
	KUNIT_EXPECT_EQ(test, KIND_NONE, engine_kind(sub->sdev, 5));
	KUNIT_EXPECT_EQ(test, KIND_NONE, wanted_kind(sub));
	submit_push(sub, submit_job(test, sub, 0));
	job = submit_job(test, sub, ARRAY_SIZE(kinds));
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		job->cbs[i].type = cpu_to_le16(kinds[i].type);
	KUNIT_EXPECT_EQ(test, KIND_NONE, wanted_kind(sub));
	submit_push(sub, job);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		sub->done = i;
		KUNIT_EXPECT_EQ(test, kinds[i].kind, wanted_kind(sub));
	}
	sub->done = i;
	KUNIT_EXPECT_EQ(test, KIND_NONE, wanted_kind(sub));
}

/* Nothing waits for ever: neither for a card that is silent nor for a reset that does not come. */
static void submit_overdue(struct kunit *test)
{
	struct spyre_submit *sub = submit_new_kunit(test);
	unsigned long hang = msecs_to_jiffies(submit_hang_ms);
	struct spyre_job *a = submit_job(test, sub, 1);

	submit_push(sub, a);
	list_add(&sub->link, &sub->sdev->submits.list);
	sub->excused = jiffies - 2 * hang - 2;
	/* Somebody holds the engine who may. */
	end_overdue(sub->sdev, BIT(KIND_DMX));
	KUNIT_EXPECT_EQ(test, 0, submit_status(a));
	end_overdue(sub->sdev, 0);
	KUNIT_EXPECT_EQ(test, 0, submit_status(a));
	sub->excused = jiffies - 2 * hang - 2;
	end_overdue(sub->sdev, BIT(KIND_DMI));
	KUNIT_EXPECT_EQ(test, -ETIME, submit_status(a));
	KUNIT_EXPECT_FALSE(test, sub->open);
	list_del(&sub->link);
}

/* Removal and reset end everything, and what has ended well by then has. */
static void submit_card_goes(struct kunit *test)
{
	struct spyre_submit *sub = submit_new_kunit(test);
	struct spyre_job *a = submit_job(test, sub, 1), *b = submit_job(test, sub, 1);

	submit_push(sub, a);
	submit_push(sub, b);
	list_add(&sub->link, &sub->sdev->submits.list);
	spyre_queue_status(sub->queue)->done = cpu_to_le32(1);
	spyre_submits_fail(sub->sdev, -ENODEV);
	KUNIT_EXPECT_EQ(test, 1, submit_status(a));
	KUNIT_EXPECT_EQ(test, -ENODEV, submit_status(b));
	KUNIT_EXPECT_EQ(test, -ENODEV, sub->error);
	KUNIT_EXPECT_FALSE(test, sub->open);
	list_del(&sub->link);
}

struct cb_case {
	const char *name;
	struct spyre_cb cb;
	bool ok;
};

#define CB(t, f)	.type = cpu_to_le16(t), .flags = cpu_to_le16(f)
static const struct cb_case cb_cases[] = {
	{ "fill", { CB(SPYRE_CB_FILL, 0), .u.fill.bytes = cpu_to_le64(128) }, true },
	{ "fill of nothing", { CB(SPYRE_CB_FILL, 0) }, false },
	{ "half a stick", { CB(SPYRE_CB_FILL, 0), .u.fill.bytes = cpu_to_le64(64) }, false },
	{ "barrier", { CB(SPYRE_CB_FILL, SPYRE_CB_F_BARRIER), .u.fill.bytes = cpu_to_le64(128) },
	  true },
	{ "response", { CB(SPYRE_CB_FILL, SPYRE_CB_F_RESPONSE), .u.fill.bytes = cpu_to_le64(128) },
	  false },
	{ "flag of another type", { CB(SPYRE_CB_FILL, SPYRE_CB_F_LIST),
				    .u.fill.bytes = cpu_to_le64(128) }, false },
	{ "spare word", { CB(SPYRE_CB_FILL, 0), .u.fill.bytes = cpu_to_le64(128),
			  .u.raw[5] = cpu_to_le64(1) }, false },
	{ "spare field", { CB(SPYRE_CB_FILL, 0), .u.fill.bytes = cpu_to_le64(128),
			   .reserved0 = cpu_to_le32(1) }, false },
	{ "copy", { CB(SPYRE_CB_DMAX, 0), .u.dma.bytes = cpu_to_le64(128),
		    .u.dma.ndims = cpu_to_le32(1) }, true },
	{ "five dimensions", { CB(SPYRE_CB_DMAX, 0), .u.dma.bytes = cpu_to_le64(128),
			       .u.dma.ndims = cpu_to_le32(5) }, false },
	{ "too much", { CB(SPYRE_CB_DMAI, 0), .u.dma.bytes = cpu_to_le64(SPYRE_DMA_BYTES_MAX + 1),
			.u.dma.ndims = cpu_to_le32(1) }, false },
	{ "list", { CB(SPYRE_CB_DMAO, SPYRE_CB_F_LIST), .u.list.entries = cpu_to_le32(1) }, true },
	{ "list of nothing", { CB(SPYRE_CB_DMAO, SPYRE_CB_F_LIST) }, false },
	{ "long list", { CB(SPYRE_CB_DMAO, SPYRE_CB_F_LIST),
			 .u.list.entries = cpu_to_le32(SPYRE_DMA_LIST_MAX + 1) }, false },
	{ "compute", { CB(SPYRE_CB_COMPUTE, 0), .u.compute.nsymbols = cpu_to_le32(8) }, true },
	{ "too many symbols", { CB(SPYRE_CB_COMPUTE, 0), .u.compute.nsymbols = cpu_to_le32(9) },
	  false },
	{ "timestamp", { CB(SPYRE_CB_TIMESTAMP, SPYRE_CB_F_HOST), .u.sync.addr = cpu_to_le64(8) },
	  true },
	{ "crooked timestamp", { CB(SPYRE_CB_TIMESTAMP, 0), .u.sync.addr = cpu_to_le64(4) },
	  false },
	{ "nop", { CB(SPYRE_CB_NOP, 0) }, false },
	{ "signal", { CB(SPYRE_CB_SIGNAL, 0) }, false },
	{ "wait", { CB(SPYRE_CB_WAIT, 0) }, false },
	{ "batch", { CB(SPYRE_CB_BATCH, 0) }, false },
	{ "type that is none", { CB(0xffff, 0) }, false },
};

KUNIT_ARRAY_PARAM_DESC(cb, cb_cases, name);

static void submit_checks(struct kunit *test)
{
	const struct cb_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, c->ok, cb_ok(&c->cb, 8));
}

static struct kunit_case submit_cases[] = {
	KUNIT_CASE(submit_in_order),
	KUNIT_CASE(submit_failure),
	KUNIT_CASE(submit_no_response),
	KUNIT_CASE(submit_nonsense),
	KUNIT_CASE(submit_cancelled),
	KUNIT_CASE(submit_blamed),
	KUNIT_CASE(submit_engines),
	KUNIT_CASE(submit_overdue),
	KUNIT_CASE(submit_card_goes),
	KUNIT_CASE_PARAM(submit_checks, cb_gen_params),
	{}
};

struct kunit_suite spyre_submit_suite = {
	.name = "spyre_submit",
	.test_cases = submit_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_submit_suite);
