// SPDX-License-Identifier: MIT
/*
 * Streams: one queue of the card each.
 *
 * Submission on a busy queue is a few stores: fill the slot, publish the tail in shadow memory, and
 * look whether the card wants a doorbell. The memory-ordering argument stands in publish().
 *
 * Every control block carries the barrier flag unless it is a further piece of the same copy, so a
 * stream executes in order; streams overlap with each other.
 *
 * The card writes the status page; everything here that reads it takes progress from .done with
 * acquire, so that what a control block wrote is seen by whoever saw it done.
 */
#include "rt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sync_file.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_ENTRIES	1024u
#define SPIN_MIN_NS	2000u
#define SPIN_MAX_NS	50000u
#define IDLE_LIMIT_NS	10000000000ll
#define RAS_WAIT_NS	100000000ll

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

/* --- Timelines ------------------------------------------------------------------------------ */

static enum spyrert_status timeline_new(struct spyrert_stream *st, struct rt_timeline **out)
{
	enum spyrert_status status;
	struct rt_timeline *tl;

	tl = calloc(1, sizeof(*tl));
	if (!tl)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	status = rt_slot_get(st->session, &tl->slot);
	if (status) {
		free(tl);
		return status;
	}
	tl->refs = 1;
	tl->session = rt_session_get(st->session);
	tl->word = tl->slot->cpu;
	tl->hmva = tl->slot->hmva;
	tl->stream_id = st->id;
	*out = tl;
	return SPYRERT_SUCCESS;
}

struct rt_timeline *rt_timeline_get(struct rt_timeline *tl)
{
	__atomic_fetch_add(&tl->refs, 1, __ATOMIC_RELAXED);
	return tl;
}

void rt_timeline_put(struct rt_timeline *tl)
{
	if (!tl || __atomic_sub_fetch(&tl->refs, 1, __ATOMIC_ACQ_REL))
		return;
	rt_event_share_kill(tl);
	rt_event_share_put(tl->session, tl->share);
	rt_slot_put(tl->session, tl->slot);
	rt_session_put(tl->session);
	free(tl);
}

static uint64_t timeline_word(struct rt_timeline *tl)
{
	return le64toh(__atomic_load_n(tl->word, __ATOMIC_ACQUIRE));
}

static bool never_comes(struct rt_timeline *tl, uint64_t value)
{
	uint64_t dead = __atomic_load_n(&tl->dead_from, __ATOMIC_ACQUIRE);

	return (dead && value >= dead) || rt_lost(tl->session) ||
	       (tl->failed && le64toh(__atomic_load_n(tl->failed, __ATOMIC_ACQUIRE)) >= value);
}

enum rt_reach rt_timeline_reached(struct rt_timeline *tl, uint64_t value)
{
	if (timeline_word(tl) >= value)
		return RT_REACHED;
	if (!never_comes(tl, value))
		return RT_NOT_YET;
	/* The word stood still before it was declared dead. */
	return timeline_word(tl) >= value ? RT_REACHED : RT_NEVER;
}

/* Nothing signals the timeline any more. */
static void timeline_kill(struct rt_timeline *tl)
{
	if (!tl || tl->dead_from)
		return;
	__atomic_store_n(&tl->dead_from, timeline_word(tl) + 1, __ATOMIC_RELEASE);
	rt_event_share_kill(tl);
}

const char *rt_timeline_owner(const struct rt_timeline *tl, char buf[RT_OWNER_TEXT])
{
	if (tl->share)
		snprintf(buf, RT_OWNER_TEXT, "a stream of another process or device");
	else
		snprintf(buf, RT_OWNER_TEXT, "stream %u", tl->stream_id);
	return buf;
}

/* --- Queue ---------------------------------------------------------------------------------- */

static void unmap_queue(struct spyrert_stream *st)
{
	const struct rt_backend *be = st->session->lib->be;
	void *dev = st->session->be_dev;

	if (st->ring_map)
		be->unmap(dev, st->ring_map, st->q.ring_size);
	if (st->status_map)
		be->unmap(dev, st->status_map, st->q.status_size);
	if (st->doorbell_map)
		be->unmap(dev, st->doorbell_map, SPYRE_DB_PAGE_SIZE);
	st->ring_map = NULL;
	st->status_map = NULL;
	st->doorbell_map = NULL;
	st->mapped = false;
}

/* Takes the queue. Lock held. */
static enum spyrert_status take_queue(struct spyrert_stream *st)
{
	struct rt_session *s = st->session;
	const struct rt_backend *be = s->lib->be;
	enum spyrert_status status;
	struct drm_spyre_queue_id id = { 0 };
	int err;

	st->ops = calloc(st->entries, sizeof(*st->ops));
	st->deferred_size = 64;
	st->deferred = calloc(st->deferred_size, sizeof(*st->deferred));
	if (!st->ops || !st->deferred) {
		status = rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
		goto fail;
	}
	status = timeline_new(st, &st->timeline);
	if (status)
		goto fail;
	memset(&st->q, 0, sizeof(st->q));
	st->q.entries = st->entries;
	st->q.priority = st->priority;
	st->q.timeout = st->timeout;
	err = rt_ioctl(s, DRM_IOCTL_SPYRE_QUEUE_CREATE, &st->q, "QUEUE_CREATE");
	if (err) {
		status = rt_errno(s, err, "taking a queue for the stream");
		goto fail;
	}
	st->ring_map = be->map(s->be_dev, st->q.ring_offset, st->q.ring_size, true);
	if (st->ring_map)
		st->status_map = be->map(s->be_dev, st->q.status_offset, st->q.status_size, false);
	if (st->status_map && !be->doorbell)
		st->doorbell_map =
			be->map(s->be_dev, st->q.doorbell_offset, SPYRE_DB_PAGE_SIZE, true);
	if (!st->ring_map || !st->status_map || (!be->doorbell && !st->doorbell_map)) {
		status = rt_fail(SPYRERT_ERROR_SYSTEM, "cannot map the queue of a stream: %s",
				 strerror(errno));
		unmap_queue(st);
		id.queue = st->q.queue;
		rt_ioctl(s, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id, "QUEUE_DESTROY");
		goto fail;
	}
	st->ring = st->ring_map;
	st->shadow = (void *)((char *)st->ring_map + st->q.shadow_at);
	st->status = st->status_map;
	st->responses = (const void *)((char *)st->status_map + st->q.response_at);
	st->doorbell = st->doorbell_map;
	/* Entries are numbered as the card does from where it starts. */
	st->head = le32toh(st->shadow->tail);
	st->published = st->head;
	st->done = st->head;
	st->harvested = st->head;
	st->base = st->head;
	st->mapped = true;
	rt_log(s->lib, RT_LOG_STREAM, "stream %u: queue %u, %u entries", st->id, st->q.queue,
	       st->entries);
	return SPYRERT_SUCCESS;
fail:
	free(st->ops);
	free(st->deferred);
	st->ops = NULL;
	st->deferred = NULL;
	rt_timeline_put(st->timeline);
	st->timeline = NULL;
	return status;
}

static void ring_doorbell(struct spyrert_stream *st, uint32_t tail)
{
	const struct rt_backend *be = st->session->lib->be;

	if (be->doorbell)
		be->doorbell(st->session->be_dev, st->q.queue, tail);
	else
		__atomic_store_n(st->doorbell, htole32(tail), __ATOMIC_RELEASE);
}

/*
 * Tells the card of the entries written. Lock held.
 *
 *	here (H)				card (C)
 *	H0: fill slots
 *	H1: shadow.tail = new, release		C1: status.event_idx = old
 *	H2: full fence				C2: full fence
 *	H3: load status.event_idx		C3: load shadow.tail, acquire
 *	H4: ring if event_idx was passed	C4: sleep if the tail did not move
 *
 * H1 is a release: a card that sees the tail sees the slots. H2 and C2 forbid that H3 misses C1 and
 * C3 misses H1 both (store buffering), so an idle card is either rung or finds the tail by itself.
 * On a busy queue event_idx stands behind: no MMIO.
 */
static void publish(struct spyrert_stream *st)
{
	uint32_t old = (uint32_t)st->published, new = (uint32_t)st->head, ev;

	if (old == new)
		return;
	__atomic_store_n(&st->shadow->tail, htole32(new), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ev = le32toh(__atomic_load_n(&st->status->event_idx, __ATOMIC_RELAXED));
	st->published = st->head;
	if ((uint32_t)(new - ev - 1) < (uint32_t)(new - old))
		ring_doorbell(st, new);
}

void rt_stream_publish(struct spyrert_stream *st)
{
	publish(st);
}

/* A word that the stream may wait for was written: wake a parked card. The fence pairs with the
 * card's between its store of .parked and its last look at the word. */
static void wake_parked(struct spyrert_stream *st)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&st->status->parked, __ATOMIC_RELAXED))
		ring_doorbell(st, le32toh(__atomic_load_n(&st->shadow->tail, __ATOMIC_RELAXED)));
}

/* --- Errors --------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
	[SPYRERT_ACTIVITY_NOP] = "nop",
	[SPYRERT_ACTIVITY_COMPUTE] = "compute",
	[SPYRERT_ACTIVITY_H2D] = "copy host to device",
	[SPYRERT_ACTIVITY_D2H] = "copy device to host",
	[SPYRERT_ACTIVITY_D2D] = "copy device to device",
	[SPYRERT_ACTIVITY_FILL] = "fill",
	[SPYRERT_ACTIVITY_SIGNAL] = "event record",
	[SPYRERT_ACTIVITY_WAIT] = "wait",
	[SPYRERT_ACTIVITY_TIMESTAMP] = "timestamp",
};

enum spyrert_status rt_stream_sticky(struct spyrert_stream *st)
{
	return rt_fail(st->error->status, "%s", st->error->text);
}

/* What a control block carries through the card: stream and number of the operation. */
static uint64_t cookie_of(const struct spyrert_stream *st, uint64_t operation)
{
	return (uint64_t)st->id << 40 | (operation & 0xffffffffffull);
}

/* The RAS record of a failed entry comes by the driver's event path, a little after the status. */
static void find_ras(struct spyrert_stream *st, struct spyrert_error_info *e, uint32_t entry)
{
	int64_t deadline = rt_now_ns() + RAS_WAIT_NS;
	uint64_t cookie = cookie_of(st, e->operation);
	struct drm_spyre_ras *raw;
	uint32_t i, want;

	raw = calloc(64, sizeof(*raw));
	if (!raw)
		return;
	for (;;) {
		struct drm_spyre_ras_read rd = {
			.records = (uintptr_t)raw, .count = 64, .after = st->ras_seen,
		};

		if (rt_ioctl(st->session, DRM_IOCTL_SPYRE_RAS_READ, &rd, "RAS_READ"))
			break;
		for (i = 0; i < rd.count; i++) {
			st->ras_seen = raw[i].seq;
			/* The name of a queue is used again; the cookie is not. A queue's own error
			 * has none. */
			if (raw[i].queue != st->q.queue || raw[i].entry != entry ||
			    (raw[i].cookie && raw[i].cookie != cookie))
				continue;
			if (!e->ras.code)
				rt_ras_from_drm(&e->ras, &raw[i]);
			else if (rt_ras_continues(&raw[i]))
				rt_ras_join(&e->ras, &raw[i]);
		}
		want = e->ras.nstuck < 64 ? e->ras.nstuck : 64;
		if ((e->ras.code && e->ras.nstuck_listed >= want) || rt_now_ns() >= deadline)
			break;
		if (rd.count < 64)
			nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	}
	free(raw);
}

/* Both accesses of a race: who, at which instruction, and which of them writes. */
static void describe_race(const struct spyre_rb *rb, char *text, size_t size)
{
	static const char *const does[] = { "reads", "writes" };
	const struct spyre_stuck *o = &rb->stuck[0];
	uint64_t addr = le64toh(rb->rb_hmierr_addr);
	unsigned int unit = le16toh(rb->err_unit);
	char where[80];

	if (o->waits == SPYRE_RACE_LX)
		snprintf(where, sizeof(where), "LX of core %u at %#x", (unsigned int)(addr >> 24),
			 (unsigned int)(addr & 0xffffff));
	else
		snprintf(where, sizeof(where), "%s at %#" PRIx64,
			 o->waits == SPYRE_RACE_L0 ? "L0" : "memory", addr);
	snprintf(text, size,
		 ": core %u %s corelet %u at instruction %u %s, "
		 "core %u %s corelet %u at instruction %u %s",
		 le16toh(rb->err_core), isa_unit_name(unit & 0xff), unit >> 8, le32toh(rb->err_pc),
		 does[!!(o->number & SPYRE_RACE_WRITES)], o->core, isa_unit_name(o->unit & 0x7f),
		 o->unit >> 7, le32toh(o->pc), does[!!(o->number & SPYRE_RACE_OTHER_WRITES)]);
	size -= strlen(text);
	text += strlen(text);
	snprintf(text, size, " %s", where);
}

static void describe(struct spyrert_stream *st, struct spyrert_error_info *e, uint32_t entry,
		     const struct spyre_rb *rb)
{
	static const char *const waits[] = {
		[SPYRE_WAIT_FIFO_EMPTY] = "for a word in FIFO",
		[SPYRE_WAIT_FIFO_FULL] = "for room in FIFO",
		[SPYRE_WAIT_TAG] = "for tag",
		[SPYRE_WAIT_TILE] = "for the load of tile",
		[SPYRE_WAIT_GROUP] = "for members of group",
	};
	static const char *const modes[] = { "access", "fetch",	    "load",
					     "store",  "host read", "host write" };
	static const char *const syndromes[] = {
		"unknown reason", "not mapped", "no permission", "unaligned", "out of range",
		"host memory did not answer", "uncorrectable memory error", "cancelled",
	};
	const struct rt_op *op = &st->ops[entry & (st->entries - 1)];
	uint32_t i, mode = 0, syndrome = 0, code = 0, pc = 0, core = SPYRE_CORES, unit = 0;
	size_t at = 0, size = sizeof(e->text);
	uint64_t addr = 0;

	if (rb) {
		addr = le64toh(rb->rb_hmierr_addr);
		syndrome = le32toh(rb->rb_hmierr_syndrome);
		mode = le32toh(rb->rb_hmierr_mode);
		code = le32toh(rb->err_code);
		pc = le32toh(rb->err_pc);
		core = le16toh(rb->err_core);
		unit = le16toh(rb->err_unit);
	}
#define PUT(...)									\
	do {										\
		if (at < size)								\
			at += snprintf(e->text + at, size - at, __VA_ARGS__);		\
	} while (0)
	PUT("stream %u, operation %" PRIu64 " (%s): %s", st->id, e->operation, kind_names[op->kind],
	    rt_card_status_text(e->card_status));
	switch (e->card_status) {
	case SPYRE_ERR_FAULT:
		if (!rb)
			break;
		PUT(": %s at %#" PRIx64, mode < 6 ? modes[mode] : "access", addr);
		if (mode < SPYRE_HMI_HOST_READ)
			PUT(" (segment %" PRIu64 " + %#" PRIx64 ")", addr >> SPYRE_SEGMENT_SHIFT,
			    (uint64_t)(addr & (SPYRE_SEGMENT_SIZE - 1)));
		PUT(": %s", syndrome < 8 ? syndromes[syndrome] : "?");
		if (op->kind == SPYRERT_ACTIVITY_COMPUTE && core < SPYRE_CORES)
			PUT(", core %u %s corelet %u pc %u", core, isa_unit_name(unit & 0xff),
			    unit >> 8, pc);
		break;
	case SPYRE_ERR_BAD_PROGRAM:
	case SPYRE_ERR_PROGRAM:
		if (!rb)
			break;
		PUT(": %s", isa_err_text(code));
		if (code == SPYRE_PE_RACE) {
			char both[240];

			describe_race(rb, both, sizeof(both));
			PUT("%s", both);
			break;
		}
		if (core < SPYRE_CORES)
			PUT(", core %u", core);
		if ((unit & 0xff) < SPYRE_UNITS && code >= SPYRE_PE_OPCODE)
			PUT(" %s corelet %u", isa_unit_name(unit & 0xff), unit >> 8);
		PUT(code >= SPYRE_PE_OPCODE ? ", instruction %u" : ", at byte %u", pc);
		break;
	case SPYRE_ERR_CORES:
		if (core < SPYRE_CORES)
			PUT(": core %u", core);
		break;
	case SPYRE_ERR_DEADLOCK:
		PUT(": %u units are stuck", e->ras.code ? e->ras.nstuck : rb ? le32toh(rb->nstuck) : 0);
		for (i = 0; i < e->ras.nstuck_listed && i < 6; i++) {
			const struct spyrert_stuck *u = &e->ras.stuck[i];

			PUT("; core %u %s corelet %u at pc %u waits %s %u", u->core,
			    isa_unit_name(u->unit), u->corelet, u->pc,
			    u->waits >= 1 && u->waits <= 5 ? waits[u->waits] : "for", u->number);
		}
		break;
	case SPYRE_ERR_CANCELLED:
		PUT(" because another stream of this device failed; look at spyrert_stream_error() "
		    "of the "
		    "others");
		break;
	}
	if (e->ras.code)
		PUT(" [%s 0x%04x: %s]", e->ras.name, e->ras.code, e->ras.step);
	PUT("; the stream takes no more work until spyrert_stream_reset() or _destroy()");
#undef PUT
}

static void stream_fail_host(struct spyrert_stream *st, enum spyrert_status status,
			     uint64_t operation, const char *text)
{
	struct spyrert_error_info *e;

	if (st->error)
		return;
	e = calloc(1, sizeof(*e));
	if (!e)
		return;
	e->status = status;
	e->operation = operation;
	snprintf(e->text, sizeof(e->text), "%s", text);
	st->error = e;
	timeline_kill(st->timeline);
	rt_log(st->session->lib, RT_LOG_ERROR, "%s", e->text);
}

/* The card says the queue failed at an entry. Lock held. */
static void stream_fail_card(struct spyrert_stream *st, uint32_t card_status, uint32_t entry)
{
	const struct spyre_rb *rb = &st->responses[entry & (st->entries - 1)];
	struct spyrert_error_info *e;

	if (st->error)
		return;
	e = calloc(1, sizeof(*e));
	if (!e)
		return;
	e->card_status = card_status;
	e->status = rt_from_card(card_status);
	e->operation = st->head - (uint32_t)((uint32_t)st->head - entry) - st->base + 1;
	/* Stored before the error was: status comes last. */
	if (le32toh(__atomic_load_n(&rb->valid, __ATOMIC_ACQUIRE)) != entry + 1)
		rb = NULL;
	if (card_status != SPYRE_ERR_CANCELLED && card_status != SPYRE_ERR_RESET)
		find_ras(st, e, entry);
	describe(st, e, entry, rb);
	st->error = e;
	timeline_kill(st->timeline);
	rt_log(st->session->lib, RT_LOG_ERROR, "%s", e->text);
}

static void stream_fail_lost(struct spyrert_stream *st)
{
	rt_set_lost(st->session);
	rt_fail_lost();
	stream_fail_host(st, SPYRERT_ERROR_DEVICE_LOST, 0, spyrert_last_error());
}

/* --- Progress ------------------------------------------------------------------------------- */

static void harvest(struct spyrert_stream *st, uint64_t upto)
{
	for (; st->harvested < upto; st->harvested++) {
		uint32_t slot = (uint32_t)st->harvested & (st->entries - 1);
		const struct spyre_rb *rb = &st->responses[slot];
		const struct rt_op *op = &st->ops[slot];
		struct spyrert_activity a = { 0 };
		int i;

		if (!op->response || !st->activity ||
		    le32toh(__atomic_load_n(&rb->valid, __ATOMIC_ACQUIRE)) !=
			    (uint32_t)st->harvested + 1)
			continue;
		a.kind = op->kind;
		a.stream = st->id;
		a.correlation = st->harvested - st->base + 1;
		a.card_status = le32toh(rb->status);
		a.status = rt_from_card(a.card_status);
		for (i = 0; i < 5; i++)
			a.ts[i] = le32toh(rb->ts[i]);
		a.power = le32toh(rb->power);
		a.ts4 = le64toh(rb->ts4);
		a.cycles = le64toh(rb->cycles);
		a.bytes = le64toh(rb->bytes);
		a.submit_ns = op->submit_ns;
		a.program = op->program;
		st->activity(st->activity_arg, &a);
	}
}

/* fetched and done are one 8-byte store of the card, and one load here. */
static uint32_t load_done(const struct spyrert_stream *st)
{
	const spyre_le64 *pair = (const void *)&st->status->fetched;

	return (uint32_t)(le64toh(__atomic_load_n(pair, __ATOMIC_ACQUIRE)) >> 32);
}

/* Everything before done is done: drop what was held for it. */
static void advance(struct spyrert_stream *st, uint64_t done)
{
	uint32_t i, k;

	harvest(st, done);
	st->done = done;
	while (st->deferred_head != st->deferred_tail) {
		struct rt_deferred *d = &st->deferred[st->deferred_head & (st->deferred_size - 1)];

		if (d->index >= done)
			break;
		st->deferred_head++;
		d->fn(st, d->arg);
	}
	for (i = k = 0; i < st->ndeps; i++) {
		if (st->deps[i].index < done)
			rt_timeline_put(st->deps[i].timeline);
		else
			st->deps[k++] = st->deps[i];
	}
	st->ndeps = k;
}

void rt_stream_reap(struct spyrert_stream *st)
{
	uint64_t done, pair;
	uint32_t d32, err;

	if (!st->mapped)
		return;
	d32 = load_done(st);
	done = st->published - (uint32_t)((uint32_t)st->published - d32);
	/* error and error_entry are one 8-byte store; they come before done passes the entry. */
	pair = le64toh(__atomic_load_n((const spyre_le64 *)(const void *)&st->status->error,
				       __ATOMIC_ACQUIRE));
	err = (uint32_t)pair;
	if (!st->error) {
		if (rt_lost(st->session) ||
		    le32toh(__atomic_load_n(&st->status->state, __ATOMIC_RELAXED)) ==
			    SPYRE_QUEUE_LOST)
			stream_fail_lost(st);
		else if (err)
			stream_fail_card(st, err, (uint32_t)(pair >> 32));
	}
	/* A lost card touches no host memory any more. */
	if (rt_lost(st->session))
		done = st->published;
	if (done > st->done && done <= st->published)
		advance(st, done);
}

/* Poisons the stream if something it waits for will never come. Lock held. */
static void check_deps(struct spyrert_stream *st)
{
	char text[256];
	uint32_t i;

	if (st->error)
		return;
	for (i = 0; i < st->ndeps; i++) {
		struct rt_dep *d = &st->deps[i];
		uint64_t operation = d->index - st->base + 1;
		char other[RT_OWNER_TEXT];

		if (d->index < st->done || rt_timeline_reached(d->timeline, d->value) != RT_NEVER)
			continue;
		/* The reset forgets what was waited for. */
		rt_timeline_owner(d->timeline, other);
		if (rt_stream_reset_locked(st))
			return;
		snprintf(text, sizeof(text),
			 "stream %u, operation %" PRIu64
			 " waits for an event of %s, which failed or was "
			 "reset before it got there; work behind the wait was cancelled; reset or "
			 "destroy the "
			 "stream",
			 st->id, operation, other);
		stream_fail_host(st, SPYRERT_ERROR_DEPENDENCY, operation, text);
		return;
	}
}

/*
 * Looks after every stream of the session, so that failures travel along waits even when nobody
 * waits for the stream that failed. No lock held. now: even if that was done a moment ago.
 */
void rt_session_check(struct rt_session *s, bool now)
{
	int64_t t = rt_now_ns();
	struct spyrert_stream **list;
	size_t i, n;

	if (!s->dev || (!now && t - __atomic_load_n(&s->checked_ns, __ATOMIC_RELAXED) < 1000000))
		return;
	__atomic_store_n(&s->checked_ns, t, __ATOMIC_RELAXED);
	list = rt_stream_pin_all(s->dev, s, &n);
	if (!list)
		return;
	for (i = 0; i < n; i++) {
		pthread_mutex_lock(&list[i]->lock);
		if (list[i]->mapped && !list[i]->ended) {
			rt_stream_reap(list[i]);
			check_deps(list[i]);
		}
		pthread_mutex_unlock(&list[i]->lock);
	}
	rt_stream_unpin_all(list, n);
}

static bool reached(struct spyrert_stream *st, uint32_t target)
{
	return (int32_t)(load_done(st) - target) >= 0;
}

/*
 * One wait without the lock: spins as long as recent waits make it seem worthwhile, then sleeps in
 * the kernel until target, an error, or the deadline.
 */
static int wait_once(struct spyrert_stream *st, uint32_t target, int64_t deadline)
{
	struct drm_spyre_wait_entry entry = {
		.kind = DRM_SPYRE_WAIT_QUEUE, .handle = st->q.queue, .value = target,
	};
	struct drm_spyre_wait w = { .entries = (uintptr_t)&entry, .count = 1 };
	uint32_t spin = __atomic_load_n(&st->spin_ns, __ATOMIC_RELAXED), i;
	int64_t start = rt_now_ns(), now = start;
	int64_t end = deadline - start < spin ? deadline : start + spin;

	while (now < end) {
		for (i = 0; i < 32; i++) {
			if (reached(st, target) ||
			    __atomic_load_n(&st->status->error, __ATOMIC_RELAXED)) {
				spin = (uint32_t)(now - start) * 2 + SPIN_MIN_NS;
				__atomic_store_n(&st->spin_ns,
						 spin < SPIN_MAX_NS ? spin : SPIN_MAX_NS,
						 __ATOMIC_RELAXED);
				return 0;
			}
			cpu_relax();
		}
		now = rt_now_ns();
	}
	if (now >= deadline)
		return -ETIME;
	spin -= spin / 4;
	__atomic_store_n(&st->spin_ns, spin > SPIN_MIN_NS ? spin : SPIN_MIN_NS, __ATOMIC_RELAXED);
	w.timeout_ns = deadline - now < RT_RECHECK_NS ? deadline : now + RT_RECHECK_NS;
	return rt_ioctl(st->session, DRM_IOCTL_SPYRE_WAIT, &w, "WAIT");
}

enum spyrert_status rt_stream_wait_locked(struct spyrert_stream *st, uint64_t target,
					  int64_t deadline)
{
	int64_t slept = 0, began;
	int err;

	if (!st->mapped)
		return st->error ? rt_stream_sticky(st) :
		       st->ended ? rt_fail(SPYRERT_ERROR_CANCELLED, "the stream was destroyed") :
		       SPYRERT_SUCCESS;
	publish(st);
	for (;;) {
		rt_stream_reap(st);
		if (st->done < target)
			check_deps(st);
		/* Work before the failed operation was done all the same. */
		if (st->error &&
		    (!st->error->operation || st->error->operation + st->base - 1 < target))
			return rt_stream_sticky(st);
		if (st->done >= target)
			return SPYRERT_SUCCESS;
		if (st->ended)
			return rt_fail(SPYRERT_ERROR_CANCELLED, "the stream was destroyed");
		if (rt_now_ns() >= deadline)
			return rt_fail(SPYRERT_ERROR_TIMEOUT,
				       "stream %u: operation %" PRIu64 " is not done yet, %" PRIu64
				       " are",
				       st->id, target - st->base, st->done - st->base);
		pthread_mutex_unlock(&st->lock);
		began = rt_now_ns();
		err = wait_once(st, (uint32_t)target, deadline);
		slept = rt_now_ns() - began;
		/* Somebody it waits for may have failed without anybody looking. */
		if (err == -ETIME && slept > RT_RECHECK_NS / 2)
			rt_session_check(st->session, true);
		pthread_mutex_lock(&st->lock);
		if (err == -ENODEV)
			rt_set_lost(st->session);
		else if (err && err != -ETIME && err != -EIO && err != -ENOENT)
			return rt_errno(st->session, err, "waiting for a stream");
		/* An error that the status page does not show yet must not make this loop a busy
		 * one. */
		if (err == -EIO && slept < 1000000)
			nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	}
}

/* --- Submission ----------------------------------------------------------------------------- */

enum spyrert_status rt_stream_begin(struct spyrert_stream *st)
{
	enum spyrert_status status = SPYRERT_SUCCESS;

	if (!st)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "stream is NULL");
	RT_CHECK_FORK(st->session->lib);
	pthread_mutex_lock(&st->lock);
	if (st->error)
		status = rt_stream_sticky(st);
	else if (rt_lost(st->session))
		status = rt_fail_lost();
	else if (!st->mapped)
		status = take_queue(st);
	if (!status && __atomic_load_n(&st->status->error, __ATOMIC_RELAXED)) {
		rt_stream_reap(st);
		if (st->error)
			status = rt_stream_sticky(st);
	}
	if (status)
		pthread_mutex_unlock(&st->lock);
	return status;
}

void rt_stream_commit(struct spyrert_stream *st)
{
	publish(st);
	/* Keeps what is held for finished work small without a look at the card on every
	 * submission. */
	if (st->published - st->done >= st->entries / 2)
		rt_stream_reap(st);
	pthread_mutex_unlock(&st->lock);
}

/* Room for one entry; may give up the lock. */
static enum spyrert_status room(struct spyrert_stream *st)
{
	enum spyrert_status status;

	while (st->head - st->done >= st->entries) {
		rt_stream_reap(st);
		if (st->head - st->done < st->entries)
			break;
		/* A quarter at a time, so that a full ring is not refilled entry by entry. */
		status = rt_stream_wait_locked(st, st->done + st->entries / 4, INT64_MAX);
		if (status)
			return status;
	}
	return SPYRERT_SUCCESS;
}

enum spyrert_status rt_stream_cb(struct spyrert_stream *st, uint16_t type, uint16_t flags,
				 enum spyrert_activity_kind kind, struct spyre_cb **out)
{
	enum spyrert_status status;
	struct spyre_cb *cb;
	struct rt_op *op;
	uint32_t slot;

	status = room(st);
	if (status)
		return status;
	slot = (uint32_t)st->head & (st->entries - 1);
	cb = &st->ring[slot];
	memset(cb, 0, sizeof(*cb));
	flags |= SPYRE_CB_F_INTERRUPT;
	op = &st->ops[slot];
	op->kind = (uint8_t)kind;
	op->program = NULL;
	op->response = st->activity != NULL;
	if (op->response) {
		flags |= SPYRE_CB_F_RESPONSE;
		op->submit_ns = (uint64_t)rt_now_ns();
	}
	cb->type = htole16(type);
	cb->flags = htole16(flags);
	cb->cookie = htole64(cookie_of(st, st->head - st->base + 1));
	st->head++;
	*out = cb;
	return SPYRERT_SUCCESS;
}

enum spyrert_status rt_stream_defer(struct spyrert_stream *st,
				    void (*fn)(struct spyrert_stream *stream, void *arg), void *arg)
{
	struct rt_deferred *d;

	if (st->deferred_tail - st->deferred_head == st->deferred_size) {
		uint32_t i, n = st->deferred_size;
		struct rt_deferred *bigger = calloc((size_t)n * 2, sizeof(*bigger));

		if (!bigger)
			return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
		for (i = 0; i < n; i++)
			bigger[i] = st->deferred[(st->deferred_head + i) & (n - 1)];
		free(st->deferred);
		st->deferred = bigger;
		st->deferred_size = n * 2;
		st->deferred_head = 0;
		st->deferred_tail = n;
	}
	d = &st->deferred[st->deferred_tail++ & (st->deferred_size - 1)];
	d->index = st->head - 1;
	d->fn = fn;
	d->arg = arg;
	return SPYRERT_SUCCESS;
}

static void unuse(struct spyrert_stream *st, void *arg)
{
	rt_host_unuse(st->session, arg);
}

enum spyrert_status rt_stream_hold(struct spyrert_stream *st, struct rt_host_region *held,
				   uint64_t before, enum spyrert_status status)
{
	if (!held)
		return status;
	if (status && st->head == before) {
		rt_host_unuse(st->session, held);
		return status;
	}
	/* No memory for it: wait here. What still runs then keeps it until the device is closed. */
	if (rt_stream_defer(st, unuse, held) && !rt_stream_wait_locked(st, st->head, INT64_MAX))
		rt_host_unuse(st->session, held);
	return status;
}

static void symbols_done(struct spyrert_stream *st, void *arg)
{
	(void)arg;
	st->sym_tail = st->sym_mark[st->sym_first++ & (RT_SYM_MARKS - 1)];
	st->sym_count--;
}

enum spyrert_status rt_stream_symbols(struct spyrert_stream *st, uint32_t bytes, void **cpu,
				      uint64_t *hmva)
{
	enum spyrert_status status;
	uint64_t at;

	if (!st->sym_block) {
		void *p;

		status = rt_pinned_alloc(st->session, RT_SYM_BYTES, &st->sym_block, &p,
					 &st->sym_hmva);
		if (status)
			return status;
		st->sym_cpu = p;
	}
	bytes = (bytes + 63) & ~63u;
	for (;;) {
		at = st->sym_head;
		/* A table does not wrap. */
		if (at % RT_SYM_BYTES + bytes > RT_SYM_BYTES)
			at += RT_SYM_BYTES - at % RT_SYM_BYTES;
		if (at + bytes - st->sym_tail <= RT_SYM_BYTES && st->sym_count < RT_SYM_MARKS &&
		    st->head - st->done < st->entries)
			break;
		rt_stream_reap(st);
		if (at + bytes - st->sym_tail <= RT_SYM_BYTES && st->sym_count < RT_SYM_MARKS &&
		    st->head - st->done < st->entries)
			break;
		status = rt_stream_wait_locked(st, st->done + 1, INT64_MAX);
		if (status)
			return status;
	}
	st->sym_head = at + bytes;
	*cpu = st->sym_cpu + at % RT_SYM_BYTES;
	*hmva = st->sym_hmva + at % RT_SYM_BYTES;
	return SPYRERT_SUCCESS;
}

enum spyrert_status rt_stream_symbols_used(struct spyrert_stream *st)
{
	st->sym_mark[(st->sym_first + st->sym_count++) & (RT_SYM_MARKS - 1)] = st->sym_head;
	return rt_stream_defer(st, symbols_done, NULL);
}

enum spyrert_status rt_stream_signal(struct spyrert_stream *st)
{
	enum spyrert_status status;
	struct spyre_cb *cb;

	status = rt_stream_cb(st, SPYRE_CB_SIGNAL, SPYRE_CB_F_BARRIER | SPYRE_CB_F_HOST,
			      SPYRERT_ACTIVITY_SIGNAL, &cb);
	if (status)
		return status;
	cb->u.sync.addr = htole64(st->timeline->hmva);
	cb->u.sync.value = htole64(++st->timeline->last);
	return SPYRERT_SUCCESS;
}

enum spyrert_status rt_stream_wait_timeline(struct spyrert_stream *st, struct rt_timeline *tl,
					    uint64_t value)
{
	enum spyrert_status status;
	char owner[RT_OWNER_TEXT];
	struct spyre_cb *cb;

	if (tl == st->timeline)
		return SPYRERT_SUCCESS;
	switch (rt_timeline_reached(tl, value)) {
	case RT_REACHED:
		return SPYRERT_SUCCESS;
	case RT_NEVER:
		return rt_fail(SPYRERT_ERROR_DEPENDENCY,
			       "the event was recorded on %s, which failed or was reset before it "
			       "got there",
			       rt_timeline_owner(tl, owner));
	case RT_NOT_YET:
		break;
	}
	/* First, since it may give up the lock. */
	status = room(st);
	if (status)
		return status;
	if (st->ndeps == st->deps_size) {
		uint32_t n = st->deps_size ? st->deps_size * 2 : 16;
		struct rt_dep *d = realloc(st->deps, n * sizeof(*d));

		if (!d)
			return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
		st->deps = d;
		st->deps_size = n;
	}
	status = rt_stream_cb(st, SPYRE_CB_WAIT, SPYRE_CB_F_BARRIER | SPYRE_CB_F_HOST,
			      SPYRERT_ACTIVITY_WAIT, &cb);
	if (status)
		return status;
	cb->u.sync.addr = htole64(tl->hmva);
	cb->u.sync.value = htole64(value);
	st->deps[st->ndeps++] = (struct rt_dep){
		.index = st->head - 1, .value = value, .timeline = rt_timeline_get(tl),
	};
	return SPYRERT_SUCCESS;
}

/* --- Life ----------------------------------------------------------------------------------- */

enum spyrert_status rt_stream_new(struct spyrert_device *dev, struct rt_session *s, uint32_t id,
				  const struct spyrert_stream_attr *attr,
				  struct spyrert_stream **out)
{
	struct spyrert_stream_attr a = { .priority = SPYRERT_PRIORITY_NORMAL };
	pthread_condattr_t ca;
	struct spyrert_stream *st;

	if (attr)
		a = *attr;
	if (!a.ring_entries)
		a.ring_entries = DEFAULT_ENTRIES;
	if (a.priority < 0 || a.priority >= (int)SPYRE_PRIORITIES)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "priority is %d; it must be 0 to %u",
			       a.priority, SPYRE_PRIORITIES - 1);
	if (a.ring_entries < s->limits.ring_min || a.ring_entries > s->limits.ring_max ||
	    (a.ring_entries & (a.ring_entries - 1)))
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "ring_entries is %u; it must be a power of two from %u to %u",
			       a.ring_entries, s->limits.ring_min, s->limits.ring_max);
	st = calloc(1, sizeof(*st));
	if (!st)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	st->dev = dev;
	st->session = rt_session_get(s);
	st->id = id;
	st->priority = (uint32_t)a.priority;
	st->entries = a.ring_entries;
	st->timeout = a.timeout;
	st->spin_ns = 20000;
	st->cb_tail = &st->cb_list;
	pthread_mutex_init(&st->lock, NULL);
	pthread_condattr_init(&ca);
	pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
	pthread_cond_init(&st->cb_cond, &ca);
	pthread_condattr_destroy(&ca);
	*out = st;
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_stream_create(struct spyrert_device *dev,
						    const struct spyrert_stream_attr *attr,
						    struct spyrert_stream **out)
{
	enum spyrert_status status;
	struct spyrert_stream *st;
	struct rt_session *s;
	uint32_t id;

	if (!out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_stream_create: stream is NULL");
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	pthread_mutex_lock(&dev->lock);
	id = ++dev->next_stream;
	status = rt_stream_new(dev, s, id, attr, &st);
	if (!status) {
		st->activity = dev->activity;
		st->activity_arg = dev->activity_arg;
		st->next = dev->streams;
		dev->streams = st;
		__atomic_fetch_add(&dev->objects, 1, __ATOMIC_ACQ_REL);
		*out = st;
	}
	pthread_mutex_unlock(&dev->lock);
	rt_session_put(s);
	return status;
}

/* Waits while there is progress. Lock held. */
static void drain(struct spyrert_stream *st)
{
	int64_t moved = rt_now_ns();
	uint64_t seen = st->done;

	publish(st);
	while (st->mapped && !st->error && st->done < st->head) {
		rt_stream_wait_locked(st, st->head, rt_now_ns() + RT_RECHECK_NS);
		if (st->done != seen) {
			seen = st->done;
			moved = rt_now_ns();
		} else if (rt_now_ns() - moved > IDLE_LIMIT_NS) {
			break;
		}
	}
}

enum spyrert_status rt_stream_end(struct spyrert_stream *st)
{
	struct drm_spyre_queue_id id = { 0 };
	enum spyrert_status status = SPYRERT_SUCCESS;
	struct rt_session *s = st->session;
	unsigned int i;
	bool cut;

	pthread_mutex_lock(&st->lock);
	drain(st);
	cut = st->mapped && (st->done < st->head || st->error);
	if (st->mapped) {
		id.queue = st->q.queue;
		rt_ioctl(s, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id, "QUEUE_DESTROY");
		/* Whatever it said: the card is done with the queue, or with the whole session. */
		advance(st, st->head);
		timeline_kill(st->timeline);
	}
	st->ended = true;
	if (cut && !(st->error && st->error->status == SPYRERT_ERROR_DEVICE_LOST)) {
		stream_fail_host(st, SPYRERT_ERROR_CANCELLED, 0,
				 "the stream was destroyed while work in it made no progress");
		status = rt_fail(SPYRERT_ERROR_CANCELLED, "work of stream %u was cancelled: %s",
				 st->id, st->error ? st->error->text : "");
	}
	st->cb_quit = true;
	pthread_cond_broadcast(&st->cb_cond);
	pthread_mutex_unlock(&st->lock);
	if (st->cb_started)
		pthread_join(st->cb_thread, NULL);
	while (__atomic_load_n(&st->pins, __ATOMIC_ACQUIRE))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	unmap_queue(st);
	rt_memory_reap(s);
	rt_timeline_put(st->timeline);
	rt_slot_put(s, st->gate);
	rt_pinned_free(s, st->sym_block);
	for (i = 0; i < st->nchunks; i++)
		rt_pinned_free(s, st->chunks[i].block);
	pthread_cond_destroy(&st->cb_cond);
	pthread_mutex_destroy(&st->lock);
	free(st->ops);
	free(st->deferred);
	free(st->deps);
	free(st->error);
	free(st);
	rt_session_put(s);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_stream_destroy(struct spyrert_stream *st)
{
	struct spyrert_stream **link;
	struct spyrert_device *dev;
	enum spyrert_status status;

	if (!st)
		return SPYRERT_SUCCESS;
	dev = st->dev;
	RT_CHECK_FORK(dev->lib);
	pthread_mutex_lock(&dev->lock);
	for (link = &dev->streams; *link && *link != st; link = &(*link)->next)
		;
	if (*link)
		*link = st->next;
	else
		link = NULL;
	pthread_mutex_unlock(&dev->lock);
	if (!link)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "the default stream belongs to its device and cannot be destroyed");
	status = rt_stream_end(st);
	__atomic_fetch_sub(&dev->objects, 1, __ATOMIC_ACQ_REL);
	return status;
}

struct spyrert_stream **rt_stream_pin_all(struct spyrert_device *dev, struct rt_session *s,
					  size_t *n)
{
	struct spyrert_stream *st, **list;
	size_t count = 1;

	pthread_mutex_lock(&dev->lock);
	for (st = dev->streams; st; st = st->next)
		count++;
	list = calloc(count, sizeof(*list));
	if (list) {
		count = 0;
		for (st = dev->def; st; st = st == dev->def ? dev->streams : st->next) {
			if (st->session != s)
				continue;
			__atomic_fetch_add(&st->pins, 1, __ATOMIC_ACQUIRE);
			list[count++] = st;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	*n = count;
	return list;
}

void rt_stream_unpin_all(struct spyrert_stream **list, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		__atomic_fetch_sub(&list[i]->pins, 1, __ATOMIC_RELEASE);
	free(list);
}

RT_PUBLIC struct spyrert_device *spyrert_stream_device(struct spyrert_stream *st)
{
	if (!st) {
		rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_stream_device: stream is NULL");
		return NULL;
	}
	return st->dev;
}

RT_PUBLIC uint32_t spyrert_stream_id(const struct spyrert_stream *st)
{
	if (!st) {
		rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_stream_id: stream is NULL");
		return UINT32_MAX;
	}
	return st->id;
}

RT_PUBLIC enum spyrert_status spyrert_stream_query(struct spyrert_stream *st)
{
	enum spyrert_status status = SPYRERT_SUCCESS;

	if (!st)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "stream is NULL");
	RT_CHECK_FORK(st->session->lib);
	pthread_mutex_lock(&st->lock);
	rt_stream_reap(st);
	if (st->done < st->head && st->ndeps) {
		pthread_mutex_unlock(&st->lock);
		rt_session_check(st->session, false);
		pthread_mutex_lock(&st->lock);
	}
	if (st->error)
		status = rt_stream_sticky(st);
	else if (rt_lost(st->session))
		status = rt_fail_lost();
	else if (st->done < st->head)
		status = SPYRERT_NOT_READY;
	pthread_mutex_unlock(&st->lock);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_stream_synchronize(struct spyrert_stream *st,
							 uint64_t timeout_ns)
{
	enum spyrert_status status;

	if (!st)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "stream is NULL");
	RT_CHECK_FORK(st->session->lib);
	pthread_mutex_lock(&st->lock);
	if (!st->mapped && rt_lost(st->session))
		status = rt_fail_lost();
	else
		status = rt_stream_wait_locked(st, st->head, rt_deadline(timeout_ns));
	if (!status && st->error)
		status = rt_stream_sticky(st);
	pthread_mutex_unlock(&st->lock);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_stream_error(struct spyrert_stream *st,
						   struct spyrert_error_info *info, size_t size)
{
	static const struct spyrert_error_info none;

	if (!st || !info)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_stream_error: NULL argument");
	RT_CHECK_SIZE(size);
	RT_CHECK_FORK(st->session->lib);
	pthread_mutex_lock(&st->lock);
	rt_stream_reap(st);
	rt_copy_out(info, size, st->error ? st->error : &none, sizeof(none));
	pthread_mutex_unlock(&st->lock);
	return SPYRERT_SUCCESS;
}

enum spyrert_status rt_stream_reset_locked(struct spyrert_stream *st)
{
	struct drm_spyre_queue_id id = { .queue = st->q.queue };
	enum spyrert_status status;
	struct rt_timeline *fresh;
	struct rt_callback *cb;
	int err;

	if (rt_lost(st->session))
		return rt_fail_lost();
	if (st->mapped) {
		/* Later values of the old timeline must stay unreached for ever. */
		status = timeline_new(st, &fresh);
		if (status)
			return status;
		publish(st);
		err = rt_ioctl(st->session, DRM_IOCTL_SPYRE_QUEUE_RESET, &id, "QUEUE_RESET");
		if (err) {
			rt_timeline_put(fresh);
			return rt_errno(st->session, err, "resetting a stream");
		}
		for (cb = st->cb_list; cb; cb = cb->next)
			if (cb->index > st->done)
				cb->status = SPYRERT_ERROR_CANCELLED;
		advance(st, st->head);
		timeline_kill(st->timeline);
		rt_timeline_put(st->timeline);
		st->timeline = fresh;
	}
	free(st->error);
	st->error = NULL;
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_stream_reset(struct spyrert_stream *st)
{
	enum spyrert_status status;

	if (!st)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "stream is NULL");
	RT_CHECK_FORK(st->session->lib);
	pthread_mutex_lock(&st->lock);
	rt_stream_reap(st);
	status = rt_stream_reset_locked(st);
	pthread_mutex_unlock(&st->lock);
	return status;
}

/* --- Values and callbacks ------------------------------------------------------------------- */

static enum spyrert_status word_hmva(struct spyrert_stream *st, const uint64_t *addr, bool write,
				     uint64_t *hmva, struct rt_host_region **held)
{
	enum spyrert_status status;

	*held = NULL;
	if ((uintptr_t)addr % 8)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "%p is not a multiple of 8",
			       (const void *)addr);
	status = rt_host_use(st->session, addr, 8, write, hmva, held);
	if (!status && !*hmva)
		status = rt_fail(
			SPYRERT_ERROR_INVALID_ARGUMENT,
			"%p is not in pinned memory of this device; use spyrert_host_alloc()",
			(const void *)addr);
	return status;
}

static enum spyrert_status sync_value(struct spyrert_stream *st, const uint64_t *addr,
				      uint64_t value, uint16_t type,
				      enum spyrert_activity_kind kind)
{
	struct rt_host_region *held;
	enum spyrert_status status;
	struct spyre_cb *cb;
	uint64_t hmva, before;

	status = rt_stream_begin(st);
	if (status)
		return status;
	before = st->head;
	status = word_hmva(st, addr, type == SPYRE_CB_SIGNAL, &hmva, &held);
	if (!status)
		status = rt_stream_cb(st, type, SPYRE_CB_F_BARRIER | SPYRE_CB_F_HOST, kind, &cb);
	if (!status) {
		cb->u.sync.addr = htole64(hmva);
		cb->u.sync.value = htole64(value);
	}
	status = rt_stream_hold(st, held, before, status);
	rt_stream_commit(st);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_stream_write_value(struct spyrert_stream *st, uint64_t *addr,
							 uint64_t value)
{
	return sync_value(st, addr, value, SPYRE_CB_SIGNAL, SPYRERT_ACTIVITY_SIGNAL);
}

RT_PUBLIC enum spyrert_status spyrert_stream_wait_value(struct spyrert_stream *st,
							const uint64_t *addr, uint64_t value)
{
	return sync_value(st, addr, value, SPYRE_CB_WAIT, SPYRERT_ACTIVITY_WAIT);
}

RT_PUBLIC enum spyrert_status spyrert_host_write_value(struct spyrert_device *dev, uint64_t *addr,
						       uint64_t value)
{
	struct spyrert_stream **list;
	enum spyrert_status status;
	struct rt_session *s;
	size_t i, n;

	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	if ((uintptr_t)addr % 8 || !rt_pinned_hmva(s, addr, 8)) {
		rt_session_put(s);
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "%p is not an 8-byte aligned word of pinned memory of this device",
			       (void *)addr);
	}
	__atomic_store_n((spyre_le64 *)addr, htole64(value), __ATOMIC_RELEASE);
	list = rt_stream_pin_all(dev, s, &n);
	/* Without it the card finds the word by its own polling. */
	for (i = 0; list && i < n; i++) {
		pthread_mutex_lock(&list[i]->lock);
		if (list[i]->mapped && !list[i]->ended)
			wake_parked(list[i]);
		pthread_mutex_unlock(&list[i]->lock);
	}
	if (list)
		rt_stream_unpin_all(list, n);
	rt_session_put(s);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_stream_nop(struct spyrert_stream *st)
{
	enum spyrert_status status;
	struct spyre_cb *cb;

	status = rt_stream_begin(st);
	if (status)
		return status;
	status = rt_stream_cb(st, SPYRE_CB_NOP, SPYRE_CB_F_BARRIER, SPYRERT_ACTIVITY_NOP, &cb);
	rt_stream_commit(st);
	return status;
}

/* What became of a sync_file's fence: 1 signalled, 0 not yet, else the error it ended with. */
static int fence_status(int file)
{
	struct sync_file_info info = { 0 };

	/* Fails on no sync_file, which spyrert_stream_wait_sync_file() has refused. */
	return ioctl(file, SYNC_IOC_FILE_INFO, &info) ? -errno : info.status;
}

/* The stream does not wait for the gate of cb any more: it failed, was reset, or ends. */
static bool gave_up(struct spyrert_stream *st, const struct rt_callback *cb)
{
	bool ret;

	pthread_mutex_lock(&st->lock);
	rt_stream_reap(st);
	ret = st->error || st->ended || st->done > cb->index;
	pthread_mutex_unlock(&st->lock);
	return ret;
}

/* Waits for the fence, without a lock. 0, or the error it ended with. */
static int wait_fence(struct spyrert_stream *st, const struct rt_callback *cb)
{
	struct pollfd p = { .fd = cb->fence, .events = POLLIN };
	int status;

	/* Cut like every sleep, as nothing else would wake it when the stream gives up. */
	while (!(status = fence_status(cb->fence)) && !gave_up(st, cb))
		poll(&p, 1, RT_RECHECK_NS / 1000000);
	return status < 0 ? status : 0;
}

/* Lock held. */
static void fail_fence(struct spyrert_stream *st, const struct rt_callback *cb, int err)
{
	uint64_t operation = cb->index - st->base + 1;
	char text[256];

	if (st->error || st->ended || st->done > cb->index || rt_stream_reset_locked(st))
		return;
	snprintf(text, sizeof(text),
		 "stream %u, operation %" PRIu64 " waits for a sync_file, whose fence ended with an "
		 "error (%s); work behind the wait was cancelled; reset or destroy the stream",
		 st->id, operation, strerror(-err));
	stream_fail_host(st, SPYRERT_ERROR_DEPENDENCY, operation, text);
}

/*
 * One thread per stream that uses callbacks, so that a slow callback holds up its own stream alone.
 * It sleeps on the condition until there is a callback, then in the kernel until the stream gets
 * there.
 */
static void *callback_main(void *arg)
{
	struct spyrert_stream *st = arg;
	enum spyrert_status status;
	struct rt_callback *cb;
	int err;

	pthread_mutex_lock(&st->lock);
	for (;;) {
		while (!st->cb_list && !st->cb_quit)
			pthread_cond_wait(&st->cb_cond, &st->lock);
		cb = st->cb_list;
		if (!cb)
			break;
		status = rt_stream_wait_locked(st, cb->index, INT64_MAX);
		if (cb->status)
			status = cb->status;
		st->cb_list = cb->next;
		if (!st->cb_list)
			st->cb_tail = &st->cb_list;
		pthread_mutex_unlock(&st->lock);
		err = 0;
		if (cb->fence < 0)
			cb->fn(cb->arg, status);
		else if (!status)
			err = wait_fence(st, cb);
		pthread_mutex_lock(&st->lock);
		if (err)
			fail_fence(st, cb, err);
		__atomic_store_n((spyre_le64 *)st->gate->cpu, htole64(cb->gate), __ATOMIC_RELEASE);
		if (st->mapped && !st->ended)
			wake_parked(st);
		if (cb->fence >= 0)
			close(cb->fence);
		free(cb);
	}
	pthread_mutex_unlock(&st->lock);
	return NULL;
}

/* Lock held by rt_stream_begin(). fence: becomes the stream's on success. */
static enum spyrert_status add_callback(struct spyrert_stream *st, spyrert_callback fn, void *arg,
					int fence)
{
	enum spyrert_status status = SPYRERT_SUCCESS;
	struct rt_callback *c;
	struct spyre_cb *cb;
	int err;

	c = calloc(1, sizeof(*c));
	if (!c)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	if (!st->gate)
		status = rt_slot_get(st->session, &st->gate);
	if (!status && !st->cb_started) {
		err = pthread_create(&st->cb_thread, NULL, callback_main, st);
		if (err)
			status = rt_fail(SPYRERT_ERROR_HOST_MEMORY, "cannot start a thread: %s",
					 strerror(err));
		else
			st->cb_started = true;
	}
	if (!status)
		status = rt_stream_cb(st, SPYRE_CB_WAIT, SPYRE_CB_F_BARRIER | SPYRE_CB_F_HOST,
				      SPYRERT_ACTIVITY_WAIT, &cb);
	if (status) {
		free(c);
		return status;
	}
	c->fn = fn;
	c->arg = arg;
	c->fence = fence;
	c->index = st->head - 1;
	c->gate = ++st->gate_last;
	cb->u.sync.addr = htole64(st->gate->hmva);
	cb->u.sync.value = htole64(c->gate);
	*st->cb_tail = c;
	st->cb_tail = &c->next;
	pthread_cond_signal(&st->cb_cond);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_stream_add_callback(struct spyrert_stream *st,
							  spyrert_callback fn, void *arg)
{
	enum spyrert_status status;

	if (!fn)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_stream_add_callback: fn is NULL");
	status = rt_stream_begin(st);
	if (status)
		return status;
	status = add_callback(st, fn, arg, -1);
	rt_stream_commit(st);
	return status;
}

/* The wait itself; lock held by rt_stream_begin(). */
static enum spyrert_status wait_sync_file(struct spyrert_stream *st, int fd)
{
	enum spyrert_status status;
	int ret = fence_status(fd), own;

	if (ret == 1)
		return SPYRERT_SUCCESS;
	if (ret < 0)
		return rt_fail(SPYRERT_ERROR_DEPENDENCY,
			       "the fence of sync_file %d has ended with an error: %s", fd,
			       strerror(-ret));
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return rt_fail(SPYRERT_ERROR_LIMIT, "cannot keep sync_file %d: %s", fd,
			       strerror(errno));
	status = add_callback(st, NULL, NULL, own);
	if (status)
		close(own);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_stream_wait_sync_file(struct spyrert_stream *st, int fd)
{
	struct sync_file_info info = { 0 };
	enum spyrert_status status;

	status = rt_stream_begin(st);
	if (status)
		return status;
	if (ioctl(fd, SYNC_IOC_FILE_INFO, &info))
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 errno == EBADF ? "descriptor %d is not open" :
						  "descriptor %d is not a sync_file",
				 fd);
	else
		status = wait_sync_file(st, fd);
	rt_stream_commit(st);
	return status;
}
