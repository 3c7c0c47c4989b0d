// SPDX-License-Identifier: MIT
/*
 * Events of several processes and devices. What they share is a page of host memory. Who records
 * takes the next ticket, and the card stores it into the word of that ticket when the stream gets
 * there; who waits does so for the word of the newest ticket. A word for each of the last tickets,
 * because two records on two streams are reached in any order, and a word that went back would hold
 * up whoever waits for the later one.
 *
 * Everybody who has the page may write it, the other process too: what is read here is compared,
 * never used as an address or a size.
 */
#include "rt.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>

#define MAGIC	0x31746e6576655053ull	/* "SPevent1" */
#define TICKETS	128u

struct rt_event_page {
	spyre_le64 magic;
	spyre_le64 given;	/* tickets that were taken */
	spyre_le64 last;	/* the newest that is in a queue */
	spyre_le64 reserved[13];
	/* By ticket modulo TICKETS; the CPU stores here that it never comes, the card that it is there. */
	spyre_le64 failed[TICKETS];
	spyre_le64 reached[TICKETS];
};

static uint64_t load(const spyre_le64 *word)
{
	return le64toh(__atomic_load_n(word, __ATOMIC_ACQUIRE));
}

/* --- The page ------------------------------------------------------------------------------- */

/* Takes the region over. mem_lock held. */
static struct rt_event_share *share_add(struct rt_session *s, struct rt_host_region *r)
{
	struct rt_event_share *share = calloc(1, sizeof(*share));

	if (!share)
		return NULL;
	share->refs = 1;
	share->region = r;
	share->page = (struct rt_event_page *)r->cpu;
	share->next = s->shares;
	s->shares = share;
	return share;
}

enum spyrert_status rt_event_share_new(struct rt_session *s, struct rt_event_share **out)
{
	enum spyrert_status status = SPYRERT_SUCCESS;
	struct rt_host_region *r;
	int err;

	pthread_mutex_lock(&s->mem_lock);
	err = rt_host_region_new(s, sizeof(struct rt_event_page), SPYRERT_POINTER_EXPORTABLE, &r);
	if (!err) {
		*out = share_add(s, r);
		if (*out) {
			(*out)->page->magic = htole64(MAGIC);
		} else {
			rt_host_region_drop(s, r);
			err = -ENOMEM;
		}
	}
	if (err)
		status = rt_fail_host(s, err, sizeof(struct rt_event_page), "making an event");
	pthread_mutex_unlock(&s->mem_lock);
	return status;
}

static struct rt_event_share *share_get(struct rt_session *s, struct rt_event_share *share)
{
	pthread_mutex_lock(&s->mem_lock);
	share->refs++;
	pthread_mutex_unlock(&s->mem_lock);
	return share;
}

void rt_event_share_put(struct rt_session *s, struct rt_event_share *share)
{
	struct rt_event_share **p;

	if (!share)
		return;
	pthread_mutex_lock(&s->mem_lock);
	if (!--share->refs) {
		for (p = &s->shares; *p != share; p = &(*p)->next)
			;
		*p = share->next;
		rt_host_region_drop(s, share->region);
		free(share);
	}
	pthread_mutex_unlock(&s->mem_lock);
}

/* --- Tickets -------------------------------------------------------------------------------- */

uint64_t rt_event_share_last(const struct rt_event_share *share)
{
	return load(&share->page->last);
}

static bool resolved(const struct rt_event_page *page, uint64_t ticket)
{
	return load(&page->reached[ticket % TICKETS]) >= ticket ||
	       load(&page->failed[ticket % TICKETS]) >= ticket;
}

/* 0: the words of all tickets are still in use. */
static uint64_t take_ticket(struct rt_event_page *page)
{
	spyre_le64 given = __atomic_load_n(&page->given, __ATOMIC_ACQUIRE);
	uint64_t ticket;

	do {
		ticket = le64toh(given) + 1;
		if (ticket > TICKETS && !resolved(page, ticket - TICKETS))
			return 0;
	} while (!__atomic_compare_exchange_n(&page->given, &given, htole64(ticket), false,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	return ticket;
}

static void fail_ticket(struct rt_event_page *page, uint64_t ticket)
{
	if (load(&page->reached[ticket % TICKETS]) < ticket)
		__atomic_store_n(&page->failed[ticket % TICKETS], htole64(ticket),
				 __ATOMIC_RELEASE);
}

/* Stream locked, or the timeline is nobody else's any more. */
static void drop_tickets(struct rt_timeline *tl, bool all)
{
	struct rt_ticket **p = &tl->tickets, *t;

	while ((t = *p)) {
		if (!all && rt_timeline_reached(tl, t->value) != RT_REACHED) {
			p = &t->next;
			continue;
		}
		*p = t->next;
		fail_ticket(t->share->page, t->number);
		rt_event_share_put(tl->session, t->share);
		free(t);
	}
}

void rt_event_share_kill(struct rt_timeline *tl)
{
	drop_tickets(tl, true);
}

enum spyrert_status rt_event_share_record(struct spyrert_stream *st, struct rt_event_share *share,
					  uint64_t *ticket)
{
	struct rt_event_page *page = share->page;
	enum spyrert_status status;
	struct rt_ticket *t;
	struct spyre_cb *cb;

	drop_tickets(st->timeline, false);
	t = calloc(1, sizeof(*t));
	if (!t)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	t->number = take_ticket(page);
	if (!t->number) {
		free(t);
		return rt_fail(SPYRERT_ERROR_BUSY,
			       "the event was recorded %u times since a record that was not reached "
			       "yet; wait for the streams, or, if the process that recorded it is "
			       "gone, make another event",
			       TICKETS);
	}
	status = rt_stream_cb(st, SPYRE_CB_SIGNAL, SPYRE_CB_F_BARRIER | SPYRE_CB_F_HOST,
			      SPYRERT_ACTIVITY_SIGNAL, &cb);
	if (status) {
		fail_ticket(page, t->number);
		free(t);
		return status;
	}
	cb->u.sync.addr = htole64(share->region->hmva +
				  offsetof(struct rt_event_page, reached[t->number % TICKETS]));
	cb->u.sync.value = htole64(t->number);
	t->value = st->timeline->last + 1;
	t->share = share_get(st->session, share);
	t->next = st->timeline->tickets;
	st->timeline->tickets = t;
	*ticket = t->number;
	return SPYRERT_SUCCESS;
}

void rt_event_share_recorded(struct rt_event_share *share, uint64_t ticket)
{
	spyre_le64 last = __atomic_load_n(&share->page->last, __ATOMIC_ACQUIRE);

	while (le64toh(last) < ticket &&
	       !__atomic_compare_exchange_n(&share->page->last, &last, htole64(ticket), false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

struct rt_timeline *rt_event_share_timeline(struct rt_session *s, struct rt_event_share *share,
					    uint64_t ticket)
{
	struct rt_timeline *tl = calloc(1, sizeof(*tl));

	if (!tl)
		return NULL;
	tl->refs = 1;
	tl->session = rt_session_get(s);
	tl->share = share_get(s, share);
	tl->word = &share->page->reached[ticket % TICKETS];
	tl->failed = &share->page->failed[ticket % TICKETS];
	tl->hmva = share->region->hmva +
		   offsetof(struct rt_event_page, reached[ticket % TICKETS]);
	return tl;
}

/* --- From process to process ---------------------------------------------------------------- */

RT_PUBLIC enum spyrert_status spyrert_event_export(struct spyrert_event *ev, int *fd)
{
	enum spyrert_status status;

	if (!ev || !fd)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_event_export: %s is NULL",
			       ev ? "fd" : "event");
	RT_CHECK_FORK(ev->session->lib);
	if (!ev->share)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "the event was not made to be shared; make it with "
			       "SPYRERT_EVENT_INTERPROCESS");
	if (rt_lost(ev->session))
		return rt_fail_lost();
	pthread_mutex_lock(&ev->session->mem_lock);
	status = rt_export_handle(ev->session, ev->share->region->handle, fd);
	pthread_mutex_unlock(&ev->session->mem_lock);
	return status;
}

static enum spyrert_status fail_no_event(int fd)
{
	return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
		       "descriptor %d is not what spyrert_event_export() gave", fd);
}

/* A view of its own. mem_lock held. */
static enum spyrert_status import_page(struct rt_session *s, int fd,
				       const struct drm_spyre_bo_info *info,
				       struct rt_event_share **out)
{
	struct rt_host_region *r = NULL;
	enum spyrert_status status;
	int err = -ENOMEM, unseen = 0;

	*out = NULL;
	if (info->size >= sizeof(struct rt_event_page))
		r = calloc(1, sizeof(*r));
	if (r) {
		r->size = info->size;
		r->flags = SPYRERT_POINTER_IMPORTED;
		err = rt_vm_map(s, info->handle, 0, 0, &r->hmva);
		if (!err)
			unseen = rt_import_map(r, fd, false);
		if (!err && !unseen)
			err = rt_host_region_add(s, r);
	}
	if (r && !err && !unseen &&
	    load(&((struct rt_event_page *)r->cpu)->magic) == MAGIC) {
		r->handle = info->handle;
		*out = share_add(s, r);
		if (*out)
			(*out)->foreign = info->flags & DRM_SPYRE_BO_IMPORT;
		else
			err = -ENOMEM;
	}
	/* It closes the handle but where a region has it. */
	if (r && !*out)
		r->handle = 0;
	status = rt_import_end(s, info, err);
	if (r && !*out)
		rt_host_region_drop(s, r);
	if (info->size < sizeof(struct rt_event_page) || (!status && !*out))
		return fail_no_event(fd);
	return status;
}

enum spyrert_status rt_event_share_import(struct rt_session *s, int fd,
					  struct rt_event_share **out)
{
	struct drm_spyre_bo_info info;
	struct rt_event_share *share;
	enum spyrert_status status;
	int mode = fcntl(fd, F_GETFL);
	size_t i;

	if (mode >= 0 && (mode & O_ACCMODE) != O_RDWR)
		return rt_fail(SPYRERT_ERROR_PERMISSION,
			       "descriptor %d is open for reading only; an event needs one as "
			       "spyrert_event_export() gives it",
			       fd);
	pthread_mutex_lock(&s->mem_lock);
	status = rt_import_begin(s, fd, 0, true, &info);
	if (status) {
		pthread_mutex_unlock(&s->mem_lock);
		return status;
	}
	/* A file has one handle for a buffer, however often it imports it: then there is a view. */
	for (share = s->shares; share; share = share->next)
		if (share->region->handle == info.handle)
			break;
	for (i = 0; !share && i < s->nhost_regions; i++)
		if (s->host_regions[i]->handle == info.handle)
			status = fail_no_event(fd);
	if (share)
		share->refs++;
	else if (!status)
		status = import_page(s, fd, &info, &share);
	pthread_mutex_unlock(&s->mem_lock);
	*out = share;
	return status;
}
