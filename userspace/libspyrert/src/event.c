// SPDX-License-Identifier: MIT
/*
 * Events. Recording submits a SIGNAL of the stream's timeline, so an event is a timeline and a
 * value: a later record on another stream can never be mistaken for an earlier one, and the card
 * waits for events of other streams without the host.
 */
#include "rt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often a word is looked at that nobody can be told of. */
#define POLL_NS		1000000ll
#define EVENT_FLAGS	(SPYRERT_EVENT_NO_TIMING | SPYRERT_EVENT_INTERPROCESS)

/* fd: of the event to import, -1: a new one. */
static enum spyrert_status event_new(struct spyrert_device *dev, uint32_t flags, int fd,
				     struct spyrert_event **out)
{
	enum spyrert_status status;
	struct spyrert_event *ev;
	struct rt_session *s;

	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	ev = calloc(1, sizeof(*ev));
	if (!ev)
		status = rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	else if (fd >= 0)
		status = rt_event_share_import(s, fd, &ev->share);
	else if (flags & SPYRERT_EVENT_INTERPROCESS)
		status = rt_event_share_new(s, &ev->share);
	if (status) {
		free(ev);
		rt_session_put(s);
		return status;
	}
	ev->dev = dev;
	ev->session = s;
	ev->flags = flags;
	pthread_mutex_init(&ev->lock, NULL);
	__atomic_fetch_add(&dev->objects, 1, __ATOMIC_ACQ_REL);
	*out = ev;
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_event_create(struct spyrert_device *dev, uint32_t flags,
						   struct spyrert_event **out)
{
	if (!out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_event_create: event is NULL");
	if (flags & ~EVENT_FLAGS)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "unknown event flags %#x", flags);
	/* Where the time is would have to be known to all, before they read it. */
	if ((flags & EVENT_FLAGS) == SPYRERT_EVENT_INTERPROCESS)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "an event that is shared has no timing; add "
			       "SPYRERT_EVENT_NO_TIMING");
	return event_new(dev, flags, -1, out);
}

RT_PUBLIC enum spyrert_status spyrert_event_import(struct spyrert_device *dev, int fd,
						   struct spyrert_event **out)
{
	if (!out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_event_import: event is NULL");
	if (fd < 0)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "descriptor %d is not open", fd);
	return event_new(dev, EVENT_FLAGS, fd, out);
}

/* Gives up what is recorded; the card may not have written the time slot yet. */
static void forget(struct rt_session *s, struct rt_timeline *tl, uint64_t value,
		   struct rt_slot *time)
{
	if (time)
		rt_slot_retire(s, time, tl, value);
	else
		rt_timeline_put(tl);
}

RT_PUBLIC enum spyrert_status spyrert_event_destroy(struct spyrert_event *ev)
{
	struct spyrert_device *dev;

	if (!ev)
		return SPYRERT_SUCCESS;
	RT_CHECK_FORK(ev->session->lib);
	dev = ev->dev;
	if (ev->timeline)
		forget(ev->session, ev->timeline, ev->value, ev->time);
	rt_event_share_put(ev->session, ev->share);
	rt_memory_reap(ev->session);
	rt_session_put(ev->session);
	pthread_mutex_destroy(&ev->lock);
	free(ev);
	__atomic_fetch_sub(&dev->objects, 1, __ATOMIC_ACQ_REL);
	return SPYRERT_SUCCESS;
}

static enum spyrert_status check_event(struct spyrert_event *ev)
{
	if (!ev)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "event is NULL");
	RT_CHECK_FORK(ev->session->lib);
	if (rt_lost(ev->session))
		return rt_fail_lost();
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_event_record(struct spyrert_event *ev,
						   struct spyrert_stream *st)
{
	struct rt_slot *time = NULL, *old_time;
	struct rt_timeline *old;
	enum spyrert_status status;
	struct spyre_cb *cb;
	uint64_t old_value, ticket = 0;

	status = check_event(ev);
	if (!status)
		status = rt_stream_begin(st);
	if (status)
		return status;
	if (st->session != ev->session) {
		rt_stream_commit(st);
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "event and stream are of different devices");
	}
	if (!(ev->flags & SPYRERT_EVENT_NO_TIMING)) {
		status = rt_slot_get(st->session, &time);
		if (!status)
			status = rt_stream_cb(st, SPYRE_CB_TIMESTAMP,
					      SPYRE_CB_F_BARRIER | SPYRE_CB_F_HOST,
					      SPYRERT_ACTIVITY_TIMESTAMP, &cb);
		if (!status)
			cb->u.sync.addr = htole64(time->hmva);
		else if (time)
			rt_slot_put(st->session, time);
	}
	if (!status && ev->share)
		status = rt_event_share_record(st, ev->share, &ticket);
	if (!status) {
		status = rt_stream_signal(st);
		/* The TIMESTAMP was written: the slot must outlive the stream's work. */
		if (status && time)
			rt_slot_retire(st->session, time, rt_timeline_get(st->timeline),
				       st->timeline->last + 1);
	}
	if (!status) {
		pthread_mutex_lock(&ev->lock);
		old = ev->timeline;
		old_value = ev->value;
		old_time = ev->time;
		ev->timeline = rt_timeline_get(st->timeline);
		ev->value = st->timeline->last;
		ev->time = time;
		ev->ticket = ticket;
		pthread_mutex_unlock(&ev->lock);
		if (ticket)
			rt_event_share_recorded(ev->share, ticket);
	}
	rt_stream_commit(st);
	if (!status && old)
		forget(ev->session, old, old_value, old_time);
	return status;
}

/* A consistent look at what is recorded, with a reference; NULL: nothing. */
static enum spyrert_status recorded(struct spyrert_event *ev, struct rt_timeline **tl,
				    uint64_t *value)
{
	uint64_t last = ev->share ? rt_event_share_last(ev->share) : 0;

	*tl = NULL;
	pthread_mutex_lock(&ev->lock);
	/* One's own record is known better, if it is the newest. */
	if (ev->timeline && ev->ticket >= last) {
		*tl = rt_timeline_get(ev->timeline);
		*value = ev->value;
	}
	pthread_mutex_unlock(&ev->lock);
	if (*tl || !last)
		return SPYRERT_SUCCESS;
	*value = last;
	*tl = rt_event_share_timeline(ev->session, ev->share, last);
	return *tl ? SPYRERT_SUCCESS : rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
}

RT_PUBLIC enum spyrert_status spyrert_stream_wait_event(struct spyrert_stream *st,
							struct spyrert_event *ev)
{
	enum spyrert_status status;
	struct rt_timeline *tl = NULL;
	uint64_t value = 0;

	status = check_event(ev);
	if (!status)
		status = rt_stream_begin(st);
	if (status)
		return status;
	if (st->session != ev->session)
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 "event and stream are of different devices; an event that was "
				 "made with SPYRERT_EVENT_INTERPROCESS can be exported and imported "
				 "on the other");
	else
		status = recorded(ev, &tl, &value);
	if (tl)
		status = rt_stream_wait_timeline(st, tl, value);
	rt_stream_commit(st);
	rt_timeline_put(tl);
	return status;
}

static enum spyrert_status never(struct rt_timeline *tl)
{
	char owner[RT_OWNER_TEXT];

	if (rt_lost(tl->session))
		return rt_fail_lost();
	return rt_fail(SPYRERT_ERROR_DEPENDENCY,
		       "%s failed or was reset before it got to the event; see "
		       "spyrert_stream_error()",
		       rt_timeline_owner(tl, owner));
}

RT_PUBLIC enum spyrert_status spyrert_event_query(struct spyrert_event *ev)
{
	enum spyrert_status status;
	struct rt_timeline *tl;
	enum rt_reach reach;
	uint64_t value = 0;

	status = check_event(ev);
	if (!status)
		status = recorded(ev, &tl, &value);
	if (status || !tl)
		return status;
	reach = rt_timeline_reached(tl, value);
	if (reach == RT_NOT_YET) {
		rt_session_check(ev->session, false);
		reach = rt_timeline_reached(tl, value);
	}
	status = reach == RT_REACHED   ? SPYRERT_SUCCESS
		 : reach == RT_NOT_YET ? SPYRERT_NOT_READY
				       : never(tl);
	rt_timeline_put(tl);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_event_synchronize(struct spyrert_event *ev,
							uint64_t timeout_ns)
{
	int64_t deadline = rt_deadline(timeout_ns), start, now, pause;
	struct rt_host_region *r;
	enum spyrert_status status;
	struct rt_timeline *tl;
	enum rt_reach reach;
	uint64_t value = 0;
	int err;

	status = check_event(ev);
	if (!status)
		status = recorded(ev, &tl, &value);
	if (status || !tl)
		return status;
	start = rt_now_ns();
	r = tl->share ? tl->share->region : tl->slot->block->region->cookie;
	for (;;) {
		struct drm_spyre_wait_entry e = {
			.kind = DRM_SPYRE_WAIT_FENCE, .handle = r->handle,
			.offset = tl->hmva - r->hmva, .value = value,
		};
		struct drm_spyre_wait w = { .entries = (uintptr_t)&e, .count = 1 };

		reach = rt_timeline_reached(tl, value);
		now = rt_now_ns();
		if (reach != RT_NOT_YET || now >= deadline)
			break;
		/* As short as the wait of a stream spins, then in the kernel. */
		if (now - start < 20000)
			continue;
		if (tl->share && tl->share->foreign) {
			pause = deadline - now < POLL_NS ? deadline - now : POLL_NS;
			nanosleep(&(struct timespec){ .tv_nsec = pause }, NULL);
			rt_session_check(ev->session, false);
			continue;
		}
		w.timeout_ns = deadline - now < RT_RECHECK_NS ? deadline : now + RT_RECHECK_NS;
		err = rt_ioctl(ev->session, DRM_IOCTL_SPYRE_WAIT, &w, "WAIT");
		if (err == -ENODEV) {
			rt_set_lost(ev->session);
		} else if (err == -ETIME) {
			rt_session_check(ev->session, true);
		} else if (err) {
			status = rt_errno(ev->session, err, "waiting for an event");
			break;
		}
	}
	if (!status && reach == RT_NEVER)
		status = never(tl);
	else if (!status && reach == RT_NOT_YET)
		status = rt_fail(SPYRERT_ERROR_TIMEOUT, "the event was not reached in time");
	rt_timeline_put(tl);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_event_timestamp(struct spyrert_event *ev, uint64_t *cycles)
{
	enum spyrert_status status;

	if (!cycles)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_event_timestamp: cycles is NULL");
	status = spyrert_event_query(ev);
	if (status)
		return status;
	pthread_mutex_lock(&ev->lock);
	if (!ev->time)
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 ev->flags & SPYRERT_EVENT_NO_TIMING ?
				 "the event was made with SPYRERT_EVENT_NO_TIMING" :
				 "the event was never recorded");
	else
		*cycles = le64toh(__atomic_load_n((const spyre_le64 *)ev->time->cpu, __ATOMIC_ACQUIRE));
	pthread_mutex_unlock(&ev->lock);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_event_elapsed(struct spyrert_event *start,
						    struct spyrert_event *end, double *ns)
{
	enum spyrert_status status;
	uint64_t a, b;

	if (!ns)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_event_elapsed: ns is NULL");
	status = spyrert_event_timestamp(start, &a);
	if (!status)
		status = spyrert_event_timestamp(end, &b);
	if (status)
		return status;
	if (start->session != end->session)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "the events are of different devices; their counters are unrelated");
	*ns = (double)(int64_t)(b - a) * 1e9 / start->session->info.soc_hz;
	return SPYRERT_SUCCESS;
}
