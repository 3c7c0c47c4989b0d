/* SPDX-License-Identifier: MIT */
/*
 * Engines as the firmware sees them: start, cancel, announce. An engine's thread runs a job as soon as it
 * is started; its completion is announced at the later of that and TS5. A core that is awake looks at the
 * time itself between instructions; only for one that sleeps or rests the host's timer is armed. State
 * changes to QUEUED and RUNNING happen under engine.lock, those to DONE and back to IDLE under ann_lock.
 */
#include "card.h"

#include <errno.h>
#include <string.h>

/* --- Time ------------------------------------------------------------------------------------- */

uint64_t soc_now(struct spyre_card *c)
{
	int64_t ns = c->ops->clock_ns(c->opaque);

	return ns <= 0 ? 0 : (uint64_t)((unsigned __int128)ns * c->cfg.soc_hz / 1000000000u);
}

/* First nanosecond at which the counter shows cycles. */
static int64_t soc_to_ns(struct spyre_card *c, uint64_t cycles)
{
	unsigned __int128 ns;

	if (cycles == ~0ull)
		return INT64_MAX;
	ns = ((unsigned __int128)cycles * 1000000000u + c->cfg.soc_hz - 1) / c->cfg.soc_hz;
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

uint64_t next_due(struct spyre_card *c)
{
	uint64_t at = load_seq(&c->ann_next), cmp = load_seq(&c->mtimecmp);

	return cmp < at && !(load_seq(&c->mcu.pend) & PEND_TIMER) ? cmp : at;
}

/* With config.sliced: the next slice, if the core has something to do, or the next thing that is due. */
static int64_t sliced_deadline(struct spyre_card *c)
{
	int64_t now = c->ops->clock_ns(c->opaque), due, next = now - now % SPYRE_SLICE_NS + SPYRE_SLICE_NS;
	uint64_t at;

	if (mcu_wants_slice(c))
		return next;
	pthread_mutex_lock(&c->ann_lock);
	at = next_due(c);
	pthread_mutex_unlock(&c->ann_lock);
	due = soc_to_ns(c, at);
	if (due <= next)
		return next;
	return due > INT64_MAX - SPYRE_SLICE_NS ? INT64_MAX :
	       (due + SPYRE_SLICE_NS - 1) / SPYRE_SLICE_NS * SPYRE_SLICE_NS;
}

static int64_t deadline(struct spyre_card *c)
{
	uint64_t at;

	if (c->cfg.sliced)
		return sliced_deadline(c);
	if (load_seq(&c->mcu.awake))
		return INT64_MAX;
	pthread_mutex_lock(&c->ann_lock);
	at = next_due(c);
	pthread_mutex_unlock(&c->ann_lock);
	return soc_to_ns(c, at);
}

/*
 * Tells the host about the earliest deadline. The host is called without a lock, so two callers could tell
 * it in the wrong order: the first to come does it for all who come meanwhile.
 */
void timer_update(struct spyre_card *c)
{
	uint32_t users = __atomic_fetch_add(&c->timer_users, 1, __ATOMIC_SEQ_CST) + 1;

	if (users != 1)
		return;
	do {
		int64_t ns;

		users = load_seq(&c->timer_users);
		ns = deadline(c);
		if (__atomic_exchange_n(&c->timer_ns, ns, __ATOMIC_SEQ_CST) != ns)
			c->ops->timer_mod(c->opaque, ns);
	} while (__atomic_sub_fetch(&c->timer_users, users, __ATOMIC_SEQ_CST));
}

static void check_mtimecmp(struct spyre_card *c)
{
	uint64_t now = soc_now(c);

	pthread_mutex_lock(&c->ann_lock);
	if (now >= c->mtimecmp)
		__atomic_fetch_or(&c->mcu.pend, PEND_TIMER, __ATOMIC_SEQ_CST);
	else
		mcu_irq_clear(c, PEND_TIMER);
	pthread_mutex_unlock(&c->ann_lock);
	mcu_wake(c);
}

void mtimecmp_set(struct spyre_card *c, uint64_t value)
{
	pthread_mutex_lock(&c->ann_lock);
	store_seq(&c->mtimecmp, value);
	pthread_mutex_unlock(&c->ann_lock);
	check_mtimecmp(c);
	timer_update(c);
}

void time_passed(struct spyre_card *c)
{
	if (load_seq(&c->ann_next) != ~0ull)
		announce(c);
	check_mtimecmp(c);
}

void spyre_card_timer(struct spyre_card *c)
{
	/* The host's timer is spent: whatever is next has to be asked for again. */
	__atomic_store_n(&c->timer_ns, INT64_MAX, __ATOMIC_SEQ_CST);
	announce(c);
	check_mtimecmp(c);
	if (c->cfg.sliced)
		mcu_slice(c);
	timer_update(c);
}

/* --- Announcing ------------------------------------------------------------------------------- */

/* The next job to announce, by modelled time, then by the order of completion; ann_lock held. */
static struct engine *first_done(struct spyre_card *c)
{
	struct engine *best = NULL;
	unsigned int i;

	for (i = 0; i < ENGINES; i++) {
		struct engine *e = &c->engine[i];

		if (load_relaxed(&e->state) != ENG_DONE)
			continue;
		if (!best || e->ts5 < best->ts5 ||
		    (e->ts5 == best->ts5 && e->done_seq < best->done_seq))
			best = e;
	}
	return best;
}

/*
 * A job that has run and waits for the end of its modelled time is not hung either: that time counts, in units of about
 * a millisecond. What it has counted stays when the job is announced.
 */
static uint32_t waited(const struct engine *e, uint64_t until)
{
	return until > e->ts1 ? (uint32_t)((until - e->ts1) >> 19) : 0;
}

void announce(struct spyre_card *c)
{
	uint64_t now = soc_now(c), next = ~0ull;
	struct { uint32_t engine, context, tag, status; } said[ENGINES];
	unsigned int n = 0, i;
	struct engine *e;

	pthread_mutex_lock(&c->ann_lock);
	while ((e = first_done(c))) {
		struct mcu_completion *slot;

		if (c->nfifo == COMPLETIONS)
			break;
		if (!c->cfg.timing_off && e->ts5 > now) {
			next = e->ts5;
			break;
		}
		if (n == ENGINES)
			break;
		slot = &c->fifo[(c->fifo_head + c->nfifo) % COMPLETIONS];
		slot->engine = e->number;
		slot->tag = e->tag;
		memcpy(slot->rb, &e->rb, sizeof(slot->rb));
		slot->next = e->next;
		slot->reserved = 0;
		slot->end = e->ts5;
		c->nfifo++;
		said[n].engine = e->number;
		said[n].context = e->context;
		said[n].tag = e->tag;
		said[n].status = e->rb.status;
		n++;
		add_relaxed(&e->progress, waited(e, e->ts5));
		store_release(&e->state, ENG_IDLE);
	}
	store_seq(&c->ann_next, next);
	if (n)
		__atomic_fetch_or(&c->mcu.pend, MCU_IRQ_ENGINE, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&c->ann_lock);
	for (i = 0; i < n; i++)
		card_trace(c, SPYRE_TRACE_ENGINE_DONE, said[i].engine, said[i].context, said[i].tag,
			   said[i].status);
	if (n)
		mcu_wake(c);
	timer_update(c);
}

bool completion_pop(struct spyre_card *c, struct mcu_completion *out)
{
	bool ret = false, was_full;

	if (!(load_seq(&c->mcu.pend) & MCU_IRQ_ENGINE))
		return false;
	pthread_mutex_lock(&c->ann_lock);
	was_full = c->nfifo == COMPLETIONS;
	if (c->nfifo) {
		*out = c->fifo[c->fifo_head];
		c->fifo_head = (c->fifo_head + 1) % COMPLETIONS;
		c->nfifo--;
		ret = true;
	}
	if (!c->nfifo)
		mcu_irq_clear(c, MCU_IRQ_ENGINE);
	pthread_mutex_unlock(&c->ann_lock);
	if (was_full)
		announce(c);
	return ret;
}

uint32_t engine_progress(struct engine *e)
{
	uint32_t n;

	pthread_mutex_lock(&e->lock);
	n = (uint32_t)load_relaxed(&e->progress);
	if (load_acquire(&e->state) == ENG_DONE) {
		uint64_t now = soc_now(e->card);

		n += waited(e, now < e->ts5 ? now : e->ts5);
	}
	pthread_mutex_unlock(&e->lock);
	return n;
}

/* --- Jobs ------------------------------------------------------------------------------------- */

void engine_fault(struct engine *e, enum spyre_hmi_mode mode, uint64_t addr, enum spyre_syndrome syn)
{
	e->rb.status = spyre_syndrome_status(syn);
	if (syn == SPYRE_SYN_CANCELLED)
		return;
	e->rb.rb_hmierr_mode = mode;
	e->rb.rb_hmierr_addr = addr;
	e->rb.rb_hmierr_syndrome = syn;
	card_trace(e->card, SPYRE_TRACE_FAULT, e->context, mode, addr, syn);
}

static void run(struct engine *e)
{
	struct spyre_card *c = e->card;

	if (load_acquire(&e->cancel))
		e->rb.status = SPYRE_ERR_CANCELLED;
	else if (e->kind == MCU_ENGINE_COMPUTE)
		compute_run(e);
	else
		dma_run(e);
	e->rb.power = tele_energy(c, e->ts5);
	store_relaxed(&e->last_ts5, e->ts5);
	add_relaxed(&e->busy, e->ts5 - e->ts1);
	add_relaxed(&e->bytes, e->rb.bytes);
	add_relaxed(&e->jobs, !e->next);
	add_relaxed(&e->progress, 1);
}

/*
 * The job was cancelled and is announced at once. It held the engine until now and no longer: the next job
 * does not begin at the end that it would have had. now: read before the locks.
 */
static void cut_short(struct engine *e, uint64_t now)
{
	uint64_t end = load_relaxed(&e->last_ts5);

	e->next = 0;
	if (now < e->ts1)
		now = e->ts1;
	if (end > now) {
		store_relaxed(&e->last_ts5, now);
		add_relaxed(&e->busy, now - end);
		tele_cut(e->card, e->number, now);
	}
	e->ts5 = 0;
}

/* The job has run: what comes of it. Takes e->lock and gives it back. */
static void finish(struct engine *e)
{
	bool cancelled = e->rb.status == SPYRE_ERR_CANCELLED, forget;
	struct spyre_card *c = e->card;
	uint64_t now = cancelled ? soc_now(c) : 0;

	pthread_mutex_lock(&e->lock);
	forget = e->discard;
	pthread_mutex_lock(&c->ann_lock);
	if (cancelled)
		cut_short(e, now);
	e->done_seq = c->done_seq++;
	store_release(&e->state, forget ? ENG_IDLE : ENG_DONE);
	pthread_mutex_unlock(&c->ann_lock);
	pthread_cond_broadcast(&e->cond);
	pthread_mutex_unlock(&e->lock);
	if (!forget)
		announce(c);
}

void engine_start(struct spyre_card *c, unsigned int n, const struct mcu_job *job)
{
	struct engine *e = &c->engine[n];
	uint64_t now, last, begin;
	bool here;

	if (load_acquire(&e->state) != ENG_IDLE)
		return;
	now = soc_now(c);
	last = load_relaxed(&e->last_ts5);
	pthread_mutex_lock(&e->lock);
	store_relaxed(&e->context, job->context);
	e->tag = job->tag;
	memcpy(&e->cb, job->cb, sizeof(e->cb));
	memset(&e->rb, 0, sizeof(e->rb));
	e->rb.cookie = e->cb.cookie;
	e->rb.rb_hmierr_snid = n;
	e->rb.rb_hmierr_jobcount = load_relaxed(&e->jobs);
	e->rb.err_core = 0xffff;
	/* On an engine that nobody wanted meanwhile the parts of a copy follow without a gap. */
	begin = job->at && job->since < now ? job->since : now;
	e->ts1 = begin > last ? begin : last;
	e->at = job->at;
	e->part = job->part;
	e->next = 0;
	e->ts5 = e->ts1;
	store_release(&e->cancel, 0);
	here = c->cfg.sliced || (e->kind != MCU_ENGINE_COMPUTE && dma_is_small(&e->cb));
	store_release(&e->state, here ? ENG_RUNNING : ENG_QUEUED);
	if (!here)
		pthread_cond_broadcast(&e->cond);
	pthread_mutex_unlock(&e->lock);
	card_trace(c, SPYRE_TRACE_ENGINE_START, n, job->context, job->tag, job->cb[0] | job->cb[1] << 8);
	if (here) {
		run(e);
		finish(e);
	}
}

void engine_cancel(struct spyre_card *c, unsigned int n)
{
	struct engine *e = &c->engine[n];
	uint64_t now = soc_now(c);

	pthread_mutex_lock(&e->lock);
	store_release(&e->cancel, 1);
	pthread_mutex_lock(&c->ann_lock);
	if (load_relaxed(&e->state) == ENG_DONE) {
		/* Nothing is left to stop; it only must not wait for its time any more. */
		if (e->rb.status == SPYRE_OK)
			e->rb.status = SPYRE_ERR_CANCELLED;
		cut_short(e, now);
	}
	pthread_mutex_unlock(&c->ann_lock);
	pthread_mutex_unlock(&e->lock);
	stopping_kick(c);
	announce(c);
}

void engines_abort(struct spyre_card *c, uint32_t ctx)
{
	unsigned int i;

	for (i = 0; i < ENGINES; i++)
		if (load_acquire(&c->engine[i].state) != ENG_IDLE &&
		    load_relaxed(&c->engine[i].context) == ctx)
			engine_cancel(c, i);
}

void engines_stop(struct spyre_card *c)
{
	unsigned int i;

	for (i = 0; i < ENGINES; i++) {
		struct engine *e = &c->engine[i];

		pthread_mutex_lock(&e->lock);
		store_release(&e->cancel, 1);
		if (load_relaxed(&e->state) == ENG_QUEUED)
			store_release(&e->state, ENG_IDLE);
		e->discard = true;
		pthread_mutex_unlock(&e->lock);
	}
	stopping_kick(c);
	for (i = 0; i < ENGINES; i++) {
		struct engine *e = &c->engine[i];

		pthread_mutex_lock(&e->lock);
		while (load_relaxed(&e->state) == ENG_RUNNING)
			pthread_cond_wait(&e->cond, &e->lock);
		e->discard = false;
		store_relaxed(&e->last_ts5, 0);
		pthread_mutex_unlock(&e->lock);
	}
	pthread_mutex_lock(&c->ann_lock);
	for (i = 0; i < ENGINES; i++)
		store_release(&c->engine[i].state, ENG_IDLE);
	c->nfifo = 0;
	store_seq(&c->ann_next, ~0ull);
	mcu_irq_clear(c, MCU_IRQ_ENGINE);
	pthread_mutex_unlock(&c->ann_lock);
	pthread_mutex_lock(&c->link_lock);
	memset(c->link_free, 0, sizeof(c->link_free));
	pthread_mutex_unlock(&c->link_lock);
	timer_update(c);
}

static void *engine_main(void *arg)
{
	struct engine *e = arg;

	pthread_mutex_lock(&e->lock);
	while (!e->quit) {
		if (load_relaxed(&e->state) != ENG_QUEUED) {
			pthread_cond_wait(&e->cond, &e->lock);
			continue;
		}
		store_release(&e->state, ENG_RUNNING);
		pthread_mutex_unlock(&e->lock);
		run(e);
		finish(e);
		pthread_mutex_lock(&e->lock);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

int engines_init(struct spyre_card *c)
{
	static const enum mcu_engine_kind kind[ENGINES] = {
		MCU_ENGINE_DMI, MCU_ENGINE_DMI, MCU_ENGINE_DMO, MCU_ENGINE_DMO,
		MCU_ENGINE_DMX, MCU_ENGINE_COMPUTE,
	};
	unsigned int i;
	int ret;

	for (i = 0; i < ENGINES; i++) {
		struct engine *e = &c->engine[i];

		e->card = c;
		e->number = i;
		e->kind = kind[i];
		engine_worker(e)->cancel = &e->cancel;
		engine_worker(e)->cancel_mask = ~0u;
		pthread_mutex_init(&e->lock, NULL);
		pthread_cond_init(&e->cond, NULL);
		if (e->kind != MCU_ENGINE_COMPUTE) {
			ret = dma_init(e);
			if (ret)
				return ret;
		}
		ret = thread_start(&e->thread, engine_main, e);
		if (ret)
			return -ret;
		e->started = true;
	}
	return 0;
}

void engines_free(struct spyre_card *c)
{
	unsigned int i;

	for (i = 0; i < ENGINES; i++) {
		struct engine *e = &c->engine[i];

		if (e->started) {
			pthread_mutex_lock(&e->lock);
			e->quit = true;
			pthread_cond_broadcast(&e->cond);
			pthread_mutex_unlock(&e->lock);
			pthread_join(e->thread, NULL);
		}
		dma_free(e);
		if (e->card) {
			pthread_mutex_destroy(&e->lock);
			pthread_cond_destroy(&e->cond);
		}
	}
}
