/* SPDX-License-Identifier: MIT */
/*
 * Who may still use an old translation. There is one epoch per card. A worker that holds pointers shows
 * the epoch of its last checkpoint in .seen, and 0 when it holds none. Whoever takes memory away first
 * makes it unreachable (table entry cleared, dma_map() refusing), then advances the epoch and waits until
 * every worker shows 0 or the new one. Workers pass a checkpoint every millisecond or 64 KiB and hold no
 * lock that the waiting side has, so the wait is bounded.
 *
 * Ordering: a worker stores .seen, fully fences and only then reads tables; the other side changes the
 * tables, advances the epoch, fully fences and only then reads .seen. Either the worker sees the change
 * or the other side sees the worker.
 */
#include "card.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int epoch_init(struct spyre_card *c, unsigned int nworkers)
{
	void *p;

	if (posix_memalign(&p, 64, nworkers * sizeof(struct worker)))
		return -ENOMEM;
	memset(p, 0, nworkers * sizeof(struct worker));
	c->epoch.workers = p;
	c->epoch.nworkers = nworkers;
	c->epoch.now = 1;
	pthread_mutex_init(&c->epoch.lock, NULL);
	pthread_cond_init(&c->epoch.cond, NULL);
	return 0;
}

void epoch_free(struct spyre_card *c)
{
	if (!c->epoch.workers)
		return;
	free(c->epoch.workers);
	pthread_mutex_destroy(&c->epoch.lock);
	pthread_cond_destroy(&c->epoch.cond);
}

static void tell(struct spyre_card *c)
{
	pthread_mutex_lock(&c->epoch.lock);
	pthread_cond_broadcast(&c->epoch.cond);
	pthread_mutex_unlock(&c->epoch.lock);
}

void worker_online(struct spyre_card *c, struct worker *w)
{
	store_seq(&w->seen, load_seq(&c->epoch.now));
	full_fence(c);
}

void worker_offline(struct spyre_card *c, struct worker *w)
{
	uint64_t seen = load_relaxed(&w->seen);

	store_seq(&w->seen, 0);
	/* Full ordering against the waiter: it sees 0, or we see its epoch and wake it. */
	if (load_seq(&c->epoch.now) != seen)
		tell(c);
}

bool worker_unwaited(struct spyre_card *c, const struct worker *w)
{
	return load_seq(&c->epoch.now) == load_relaxed(&w->seen);
}

void worker_checkpoint(struct spyre_card *c, struct worker *w)
{
	uint64_t now = load_seq(&c->epoch.now), seen = load_relaxed(&w->seen);

	/* One that holds no translations passes here to see its cancellation: it must not begin to count. */
	if (likely(now == seen) || !seen)
		return;
	store_seq(&w->seen, now);
	full_fence(c);
	tell(c);
}

void epoch_sync(struct spyre_card *c)
{
	uint64_t target = __atomic_add_fetch(&c->epoch.now, 1, __ATOMIC_SEQ_CST);
	unsigned int i;

	full_fence(c);
	pthread_mutex_lock(&c->epoch.lock);
	for (i = 0; i < c->epoch.nworkers; i++) {
		uint64_t *seen = &c->epoch.workers[i].seen;

		for (;;) {
			uint64_t s = load_seq(seen);

			if (!s || s >= target)
				break;
			pthread_cond_wait(&c->epoch.cond, &c->epoch.lock);
		}
	}
	pthread_mutex_unlock(&c->epoch.lock);
}

void stopping_begin(struct spyre_card *c)
{
	__atomic_fetch_add(&c->stopping, 1, __ATOMIC_SEQ_CST);
}

void stopping_end(struct spyre_card *c)
{
	pthread_mutex_lock(&c->stop_lock);
	__atomic_fetch_add(&c->stop_seq, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&c->stopping, 1, __ATOMIC_SEQ_CST);
	pthread_cond_broadcast(&c->stop_cond);
	pthread_mutex_unlock(&c->stop_lock);
}

/*
 * Whoever stops the engines says first that it is stopping, then cancels their jobs, then waits for them. A
 * worker that sleeps here must see its cancellation, or it would wait for the one that waits for it.
 */
void stopping_wait(struct spyre_card *c, struct worker *w)
{
	pthread_mutex_lock(&c->stop_lock);
	while (load_seq(&c->stopping) && !worker_cancelled(w))
		pthread_cond_wait(&c->stop_cond, &c->stop_lock);
	pthread_mutex_unlock(&c->stop_lock);
}

void stopping_kick(struct spyre_card *c)
{
	pthread_mutex_lock(&c->stop_lock);
	pthread_cond_broadcast(&c->stop_cond);
	pthread_mutex_unlock(&c->stop_lock);
}
