// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: ring arithmetic, and what the kernel writes into a status page when the card does not.
 */
#include "spyre_kunit.h"

static struct spyre_bo *kunit_bo(struct kunit *test, u32 pages)
{
	struct spyre_bo *bo = kunit_kzalloc(test, sizeof(*bo), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, bo);
	bo->pages = kunit_kcalloc(test, pages, sizeof(*bo->pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bo->pages);
	for (i = 0; i < pages; i++) {
		void *at = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, at);
		/* Whole pages: an allocation of this size is aligned to it. */
		KUNIT_ASSERT_EQ(test, 0, offset_in_page(at));
		bo->pages[bo->npages++] = virt_to_page(at);
	}
	return bo;
}

struct spyre_queue *spyre_kunit_queue(struct kunit *test, struct spyre_ctx *ctx, u32 entries)
{
	struct spyre_queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, q);
	kref_init(&q->ref);
	q->ctx = ctx;
	q->entries = entries;
	INIT_LIST_HEAD(&q->zombie);
	q->ring = kunit_bo(test, PFN_UP(entries * sizeof(struct spyre_cb)) + 1);
	q->status = kunit_bo(test, PFN_UP(entries * sizeof(struct spyre_rb)) + 1);
	return q;
}

static struct spyre_queue *new_queue(struct kunit *test, u32 entries)
{
	return spyre_kunit_queue(test, spyre_kunit_ctx(test, spyre_kunit_device(test)), entries);
}

static void queue_places(struct kunit *test)
{
	struct spyre_queue *q = new_queue(test, 64);
	char *first = spyre_queue_slot(q, 0);

	KUNIT_EXPECT_PTR_EQ(test, (void *)(first + 31 * 128), spyre_queue_slot(q, 31));
	KUNIT_EXPECT_PTR_EQ(test, spyre_bo_at(q->ring, PAGE_SIZE), spyre_queue_slot(q, 32));
	/* Indices run freely, over the end of the ring and of 32 bits. */
	KUNIT_EXPECT_PTR_EQ(test, (void *)first, spyre_queue_slot(q, 64));
	KUNIT_EXPECT_PTR_EQ(test, spyre_queue_slot(q, 63), spyre_queue_slot(q, U32_MAX));
	KUNIT_EXPECT_PTR_EQ(test, spyre_bo_at(q->ring, 2 * PAGE_SIZE),
			    (void *)spyre_queue_shadow(q));
	KUNIT_EXPECT_PTR_EQ(test, spyre_bo_at(q->status, 0), (void *)spyre_queue_status(q));
	KUNIT_EXPECT_PTR_EQ(test, spyre_bo_at(q->status, PAGE_SIZE),
			    (void *)spyre_queue_response(q, 64));
	KUNIT_EXPECT_PTR_EQ(test, (void *)spyre_queue_response(q, 63),
			    (void *)spyre_queue_response(q, U32_MAX));
}

struct push_case {
	const char *name;
	u32 tail, n, event_idx;
	bool doorbell;
};

/* The card wants a doorbell for the tail that passes event_idx, and for no other. */
static const struct push_case push_cases[] = {
	{ "at it", 10, 1, 10, true },
	{ "before it", 10, 1, 11, false },
	{ "behind it", 10, 1, 9, false },
	{ "first of many", 10, 4, 10, true },
	{ "last of many", 10, 4, 13, true },
	{ "after many", 10, 4, 14, false },
	{ "over the end", U32_MAX - 1, 4, 1, true },
	{ "over the end, before", U32_MAX - 1, 4, U32_MAX - 2, false },
	{ "over the end, at it", U32_MAX - 1, 4, U32_MAX - 1, true },
	{ "over the end, after", U32_MAX - 1, 4, 2, false },
	{ "nothing", 10, 0, 10, false },
	{ "far away", 10, 1, 10 + (1u << 31), false },
};

KUNIT_ARRAY_PARAM_DESC(push, push_cases, name);

static void queue_push(struct kunit *test)
{
	const struct push_case *c = test->param_value;
	struct spyre_queue *q = new_queue(test, 64);
	struct spyre_cb cbs[4] = {};
	u32 i;

	for (i = 0; i < 4; i++)
		cbs[i].cookie = cpu_to_le64(100 + i);
	spyre_queue_shadow(q)->tail = cpu_to_le32(c->tail);
	spyre_queue_status(q)->event_idx = cpu_to_le32(c->event_idx);
	KUNIT_EXPECT_EQ(test, c->doorbell, spyre_queue_push(q, cbs, c->n));
	KUNIT_EXPECT_EQ(test, c->tail + c->n, shadow_tail(q));
	for (i = 0; i < c->n; i++)
		KUNIT_EXPECT_MEMEQ(test, &cbs[i], spyre_queue_slot(q, c->tail + i),
				   sizeof(cbs[i]));
}

/* Each entry that was fetched and not done gets its response block, the others keep theirs. */
static void queue_cancels(struct kunit *test)
{
	struct spyre_queue *q = new_queue(test, 64);
	struct spyre_queue_status *s = spyre_queue_status(q);
	u32 i, done = U32_MAX - 2;

	q->ctx->sdev->gen = 5;
	for (i = 0; i < 64; i++)
		spyre_queue_response(q, i)->valid = cpu_to_le32(77);
	cancel_fetched(q, done, done + 6, SPYRE_ERR_RESET);
	for (i = done; i != done + 6; i++) {
		KUNIT_EXPECT_EQ(test, i + 1, le32_to_cpu(spyre_queue_response(q, i)->valid));
		KUNIT_EXPECT_EQ(test, SPYRE_ERR_RESET,
				le32_to_cpu(spyre_queue_response(q, i)->status));
	}
	KUNIT_EXPECT_EQ(test, 77, le32_to_cpu(spyre_queue_response(q, done - 1)->valid));
	KUNIT_EXPECT_EQ(test, 77, le32_to_cpu(spyre_queue_response(q, done + 6)->valid));
	KUNIT_EXPECT_EQ(test, SPYRE_ERR_RESET, le32_to_cpu(s->error));
	KUNIT_EXPECT_EQ(test, done, le32_to_cpu(s->error_entry));
	KUNIT_EXPECT_EQ(test, 5, le32_to_cpu(s->generation));
	KUNIT_EXPECT_EQ(test, SPYRE_QUEUE_ERROR, le32_to_cpu(s->state));
	KUNIT_EXPECT_EQ(test, done + 6, le32_to_cpu(s->done));
	KUNIT_EXPECT_EQ(test, done + 6, le32_to_cpu(s->fetched));
}

/* Indices that cannot be come from a card that is broken: nothing is written by them. */
static void queue_cancels_nonsense(struct kunit *test)
{
	struct spyre_queue *q = new_queue(test, 64);
	u32 i;

	cancel_fetched(q, 10, 10 + 65, SPYRE_ERR_RESET);
	for (i = 0; i < 64; i++)
		KUNIT_EXPECT_EQ(test, 0, le32_to_cpu(spyre_queue_response(q, i)->valid));
	KUNIT_EXPECT_EQ(test, 10, le32_to_cpu(spyre_queue_status(q)->fetched));
	cancel_fetched(q, 10, 9, SPYRE_ERR_RESET);
	KUNIT_EXPECT_EQ(test, 10, le32_to_cpu(spyre_queue_status(q)->fetched));
}

static void queue_final_status(struct kunit *test)
{
	struct spyre_queue *q = new_queue(test, 64);
	struct spyre_queue_status *s = spyre_queue_status(q);

	s->done = cpu_to_le32(3);
	spyre_queue_final(q, SPYRE_ERR_RESET, 9);
	KUNIT_EXPECT_EQ(test, SPYRE_ERR_RESET, le32_to_cpu(s->error));
	KUNIT_EXPECT_EQ(test, 3, le32_to_cpu(s->error_entry));
	KUNIT_EXPECT_EQ(test, 9, le32_to_cpu(s->generation));
	KUNIT_EXPECT_EQ(test, SPYRE_QUEUE_LOST, le32_to_cpu(s->state));
	/* What failed before has failed of that. */
	s->error = cpu_to_le32(SPYRE_ERR_FAULT);
	s->error_entry = cpu_to_le32(2);
	spyre_queue_final(q, SPYRE_ERR_RESET, 10);
	KUNIT_EXPECT_EQ(test, SPYRE_ERR_FAULT, le32_to_cpu(s->error));
	KUNIT_EXPECT_EQ(test, 2, le32_to_cpu(s->error_entry));
	KUNIT_EXPECT_EQ(test, 10, le32_to_cpu(s->generation));
}

/* After a restart of the firmware: who had entries in flight fails, nobody asks the card. */
static void queue_recreates(struct kunit *test)
{
	struct spyre_queue *q = new_queue(test, 64);
	struct spyre_queue_status *s = spyre_queue_status(q);

	mutex_lock(&q->ctx->lock);
	q->id = 1;
	s->done = cpu_to_le32(4);
	s->fetched = cpu_to_le32(4);
	/* The card did not have it: there is nothing to tell. */
	KUNIT_EXPECT_EQ(test, 0, spyre_queue_recreate(q));
	KUNIT_EXPECT_EQ(test, 0, le32_to_cpu(s->error));
	q->on_card = true;
	s->fetched = cpu_to_le32(6);
	KUNIT_EXPECT_EQ(test, 0, spyre_queue_recreate(q));
	KUNIT_EXPECT_FALSE(test, q->on_card);
	KUNIT_EXPECT_EQ(test, SPYRE_ERR_RESET, le32_to_cpu(s->error));
	KUNIT_EXPECT_EQ(test, 6, le32_to_cpu(s->done));
	/* In error, it waits for its user. */
	q->on_card = true;
	KUNIT_EXPECT_EQ(test, 0, spyre_queue_recreate(q));
	KUNIT_EXPECT_FALSE(test, q->on_card);
	mutex_unlock(&q->ctx->lock);
}

static struct kunit_case queue_cases[] = {
	KUNIT_CASE(queue_places),
	KUNIT_CASE_PARAM(queue_push, push_gen_params),
	KUNIT_CASE(queue_cancels),
	KUNIT_CASE(queue_cancels_nonsense),
	KUNIT_CASE(queue_final_status),
	KUNIT_CASE(queue_recreates),
	{}
};

struct kunit_suite spyre_queue_suite = {
	.name = "spyre_queue",
	.test_cases = queue_cases,
};
EXPORT_SYMBOL_IF_KUNIT(spyre_queue_suite);
