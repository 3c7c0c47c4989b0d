/* SPDX-License-Identifier: MIT */
/*
 * Insides of libspyrert.
 *
 * A device is a handle the user keeps; its session is one open of the card (one context). Recovery
 * replaces the session; streams, events and programs hold a reference to the session they were made
 * in, so what is left over from a lost one stays valid to be destroyed.
 *
 * Locks, in the order in which they may nest:
 *   session.load_lock	loading a program; held while its upload is waited for
 *   device.lock		the session pointer, lists of streams
 *   stream.lock		everything of one stream
 *   session.mem_lock	heaps, host regions, pending frees, event slots
 *   session.prog_lock	the program cache; never held while anything is waited for, as launches that
 *			end in the meantime take it
 */
#ifndef RT_H
#define RT_H

#include <endian.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spyre/cb.h>
#include <spyre/fw.h>
#include <spyre/isa_table.h>

#include "backend.h"
#include "heap.h"
#include "spyrert.h"

#define RT_TEXT		1024
#define RT_MAX_CARDS	64
#define RT_PUBLIC	__attribute__((visibility("default")))

enum rt_log_group {
	RT_LOG_IOCTL = 1 << 0,
	RT_LOG_MEM = 1 << 1,
	RT_LOG_STREAM = 1 << 2,
	RT_LOG_PROGRAM = 1 << 3,
	RT_LOG_ERROR = 1 << 4,
	RT_LOG_ALL = (1 << 5) - 1,
};

struct spyrert {
	const struct rt_backend *be;
	void *be_state;
	void *dl;			/* handle of the backend's shared object */
	uint32_t *alive;		/* a page that a forked child sees as zero */
	unsigned int log;		/* enum rt_log_group */
	char *visible;			/* SPYRE_DEVICES */
	int world;			/* AIU_WORLD_SIZE, -1: not set */
	unsigned int devices;		/* open ones, atomic */
};

struct rt_session;
struct rt_slot;

/* A monotonic 64-bit word that a stream's SIGNALs count up; events are values of it. */
struct rt_timeline {
	unsigned int refs;		/* atomic */
	struct rt_session *session;
	struct rt_slot *slot;
	spyre_le64 *word;		/* written by the card */
	uint64_t hmva;
	uint64_t last;			/* last value submitted; stream.lock */
	uint64_t dead_from;		/* atomic: values from here on never come, 0: none */
	uint32_t stream_id;
	struct spyrert_stream *stream;	/* session.mem_lock; NULL once destroyed */
	struct rt_ticket *tickets;	/* of shared events that its values mark too; stream.lock */

	/* One ticket of a shared event, as somebody sees it who did not record it. */
	struct rt_event_share *share;	/* NULL: it is a stream's */
	const spyre_le64 *failed;	/* a ticket that never comes, or an earlier one */
};

/* An event's page, of which each session has one view. event_share.c has what is in it. */
struct rt_event_share {
	unsigned int refs;		/* session.mem_lock */
	struct rt_event_share *next;	/* session.shares; session.mem_lock */
	struct rt_host_region *region;
	struct rt_event_page *page;
	bool foreign;			/* another card's memory: this driver cannot sleep on it */
};

/* One record of a shared event, until the stream got there or never will. */
struct rt_ticket {
	struct rt_ticket *next;
	struct rt_event_share *share;
	uint64_t number;
	uint64_t value;			/* of the timeline */
};

/* Pinned host memory by which the card is told a 64-bit word or more. */
struct rt_slot {
	struct rt_slot *next;
	struct rt_block *block;
	void *cpu;
	uint64_t hmva;
};

/* A pinned host region: one buffer of the driver. The heap's cookie. */
struct rt_host_region {
	uint8_t *cpu;
	uint64_t hmva;
	uint64_t size;
	uint32_t handle;		/* 0: the binding alone holds the buffer */
	uint32_t flags;			/* SPYRERT_POINTER_* */
	unsigned int uses;		/* REGISTERED: work that names it; session.mem_lock */
};

/* One open of the card. */
struct rt_session {
	unsigned int refs;		/* atomic: device, streams, events, timelines, programs */
	struct spyrert *lib;
	struct spyrert_device *dev;	/* valid while the device is open */
	void *be_dev;
	struct drm_spyre_device_info info;
	struct drm_spyre_limits limits;
	bool lost;			/* atomic */
	int64_t checked_ns;		/* rt_session_check(); atomic */
	struct rt_session *older;	/* device.lock: lost ones, kept for their pinned memory */

	pthread_mutex_t mem_lock;
	struct rt_heap tensor;
	struct rt_heap program;
	struct rt_heap pinned;
	struct rt_heap peer;		/* imported memory of other cards, by rt_peer_addr() */
	struct rt_host_region **host_regions;	/* by .cpu; none overlap */
	size_t nhost_regions, host_regions_size;
	struct rt_event_share *shares;
	struct rt_slot *free_slots;
	struct rt_pending *pending;	/* stream-ordered frees, oldest first */
	struct rt_pending **pending_tail;
	struct rt_event_slot *retired;	/* time slots of records given up, maybe not yet written */
	struct rt_pending *spare;

	pthread_mutex_t prog_lock;
	struct spyrert_program *programs;

	pthread_mutex_t load_lock;
	struct spyrert_stream *internal;	/* uploads; load_lock */
};

struct spyrert_device {
	struct spyrert *lib;
	pthread_mutex_t lock;
	bool recovering;		/* a thread waits for the card, without the lock */
	struct rt_card card;
	struct rt_session *session;
	struct spyrert_stream *def;		/* default stream of the session */
	struct spyrert_stream *streams; /* the user's, of all sessions; the default is not in it */
	uint32_t next_stream;
	unsigned int objects; /* streams, events and programs of the user; atomic */
	spyrert_activity_callback activity;	/* lock */
	void *activity_arg;
};

/* What to do when an entry has completed: staging chunks, programs, symbol space. */
struct rt_deferred {
	uint64_t index;			/* when done > index */
	void (*fn)(struct spyrert_stream *stream, void *arg);
	void *arg;
};

/* Host side of a ring slot. */
struct rt_op {
	uint64_t submit_ns;
	const struct spyrert_program *program;
	uint64_t bytes;
	uint8_t kind;			/* enum spyrert_activity_kind */
	bool response;			/* an activity record is wanted */
};

/* An event of another stream that an entry of this one waits for. */
struct rt_dep {
	uint64_t index;
	uint64_t value;
	struct rt_timeline *timeline;
};

struct rt_chunk {
	struct rt_block *block;
	uint8_t *cpu;
	uint64_t hmva;
	uint64_t index;			/* free when done > index */
};
#define RT_CHUNK_SIZE	(1u << 20)
#define RT_CHUNKS	8u

struct rt_callback {
	struct rt_callback *next;
	spyrert_callback fn;
	void *arg;
	int fence;			/* a sync_file to wait for instead of a function, -1: none */
	uint64_t index;			/* runs when done > index ... */
	uint64_t gate;			/* ... and then the gate word becomes this */
	enum spyrert_status status;	/* of a stream that was reset */
};

#define RT_SYM_BYTES	(128u << 10)
#define RT_SYM_MARKS	1024u

struct spyrert_stream {
	struct spyrert_device *dev;
	struct rt_session *session;
	struct spyrert_stream *next;	/* device.lock */
	uint32_t id;
	uint32_t priority;
	uint32_t entries;
	uint64_t timeout;
	unsigned int pins;		/* waits that must end before it is destroyed; atomic */

	pthread_mutex_t lock;
	spyrert_activity_callback activity;
	void *activity_arg;
	bool mapped;
	bool ended;			/* the queue is gone */
	struct drm_spyre_queue_create q;
	struct spyre_cb *ring;
	struct spyre_shadow *shadow;
	const struct spyre_queue_status *status;
	const struct spyre_rb *responses;
	spyre_le32 *doorbell;		/* NULL: the backend rings */
	void *ring_map, *status_map, *doorbell_map;

	uint64_t base;			/* number of the first entry */
	uint64_t head;			/* entries written */
	uint64_t published;		/* entries the card was told of */
	uint64_t done;			/* entries known to be done */
	uint64_t harvested;		/* entries whose response was looked at */
	struct rt_op *ops;		/* by slot */

	struct rt_timeline *timeline;

	struct rt_deferred *deferred;	/* ring, in order of index */
	uint32_t deferred_size, deferred_head, deferred_tail;
	struct rt_dep *deps;
	uint32_t ndeps, deps_size;

	struct rt_block *sym_block;	/* symbol tables: a ring of bytes */
	uint8_t *sym_cpu;
	uint64_t sym_hmva;
	uint64_t sym_head, sym_tail;	/* free running bytes */
	uint64_t sym_mark[RT_SYM_MARKS];	/* ends of tables in use, a ring */
	uint32_t sym_first, sym_count;

	struct rt_chunk chunks[RT_CHUNKS];
	unsigned int nchunks, next_chunk;

	struct spyrert_error_info *error;	/* sticky, NULL: none */
	uint64_t ras_seen;
	uint32_t spin_ns;		/* how long the next wait spins; relaxed atomic */

	pthread_cond_t cb_cond;
	pthread_t cb_thread;
	bool cb_started, cb_quit;
	struct rt_callback *cb_list, **cb_tail;
	struct rt_slot *gate;
	uint64_t gate_last;
};

struct rt_event_slot {
	struct rt_event_slot *next;
	struct rt_slot *slot;
	struct rt_timeline *timeline;
	uint64_t value;
};

struct spyrert_event {
	struct spyrert_device *dev;
	struct rt_session *session;
	pthread_mutex_t lock;		/* nests inside stream.lock */
	uint32_t flags;
	struct rt_timeline *timeline;	/* NULL: never recorded */
	uint64_t value;
	struct rt_slot *time;		/* the card's 64-bit counter goes here */
	struct rt_event_share *share;	/* NULL: not INTERPROCESS */
	uint64_t ticket;		/* that .timeline has in it */
};

/* status.c, ras.c */
enum spyrert_status rt_fail(enum spyrert_status status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
enum spyrert_status rt_errno(struct rt_session *s, int err, const char *what);
enum spyrert_status rt_from_card(uint32_t card_status);
const char *rt_card_status_text(uint32_t card_status);
void rt_log(struct spyrert *lib, unsigned int group, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void rt_ras_from_drm(struct spyrert_ras *out, const struct drm_spyre_ras *in);
/* Appends the stuck units of a continuation record. */
void rt_ras_join(struct spyrert_ras *out, const struct drm_spyre_ras *in);
bool rt_ras_continues(const struct drm_spyre_ras *in);

/* lib.c */
bool rt_forked(struct spyrert *lib);
#define RT_CHECK_FORK(lib)								\
	do {										\
		if (rt_forked(lib))							\
			return rt_fail(SPYRERT_ERROR_FORKED,				\
				"this object belongs to the parent process; call "	\
				"spyrert_init() in the child and open the card there");	\
	} while (0)
int64_t rt_now_ns(void);
/* Absolute end of a relative timeout; INT64_MAX: never. */
int64_t rt_deadline(uint64_t timeout_ns);
/* Fields of an ioctl that say what it is about, for SPYRERT_LOG=ioctl. */
void rt_ioctl_decode(char *buf, size_t size, unsigned long request, const void *arg);
int rt_ioctl(struct rt_session *s, unsigned long request, void *arg, const char *name);
int rt_scan(struct spyrert *lib, struct rt_card *cards);

/* device.c */
/* Opens the card and makes what each session has, and a default stream for it. */
enum spyrert_status rt_session_open(struct spyrert_device *dev, const struct rt_card *card,
				    struct rt_session **out, struct spyrert_stream **def);
struct rt_session *rt_session_get(struct rt_session *s);
void rt_session_put(struct rt_session *s);
/* The device's session with a reference, or NULL and the last error set. */
struct rt_session *rt_device_session(struct spyrert_device *dev, enum spyrert_status *status);
bool rt_lost(struct rt_session *s);
void rt_set_lost(struct rt_session *s);
enum spyrert_status rt_fail_lost(void);
int rt_query(struct rt_session *s, uint32_t type, void *data, uint32_t size);
void rt_copy_out(void *dst, size_t dst_size, const void *src, size_t src_size);

/*
 * Memory of other cards is bound at host addresses. To programs of the library it is device memory,
 * so it has names of its own, above all that the card has in its own address space.
 */
#define RT_PEER_BASE	(1ull << 48)

static inline uint64_t rt_peer_addr(uint64_t hmva)
{
	return RT_PEER_BASE + hmva;
}

static inline bool rt_is_peer(spyrert_ptr ptr)
{
	return ptr >= RT_PEER_BASE;
}

static inline uint64_t rt_peer_hmva(spyrert_ptr ptr)
{
	return ptr - RT_PEER_BASE;
}

/* Where tensors of that address are; mem_lock for what is in it. */
static inline struct rt_heap *rt_tensor_heap(struct rt_session *s, spyrert_ptr ptr)
{
	return rt_is_peer(ptr) ? &s->peer : &s->tensor;
}

/* memory.c */
int rt_memory_init(struct rt_session *s);
void rt_memory_fini(struct rt_session *s);
enum spyrert_status rt_program_alloc(struct rt_session *s, uint64_t bytes, struct rt_block **block);
void rt_program_free(struct rt_session *s, struct rt_block *block);
/* Pinned memory for the library itself. cpu and hmva may be NULL. */
enum spyrert_status rt_pinned_alloc(struct rt_session *s, uint64_t bytes, struct rt_block **block,
				    void **cpu, uint64_t *hmva);
void rt_pinned_free(struct rt_session *s, struct rt_block *block);
/* HMVA of [ptr, ptr + bytes), or 0 if it is not wholly in one pinned allocation. */
uint64_t rt_pinned_hmva(struct rt_session *s, const void *ptr, uint64_t bytes);
/*
 * The same for work that the card does there; write: it stores. Fails where the card may only read.
 * *held, if not NULL afterwards, cannot be unregistered until rt_stream_hold() or rt_host_unuse().
 */
enum spyrert_status rt_host_use(struct rt_session *s, const void *ptr, uint64_t bytes, bool write,
				uint64_t *hmva, struct rt_host_region **held);
void rt_host_unuse(struct rt_session *s, struct rt_host_region *held);
/* mem_lock held for all of these. */
int rt_host_region_add(struct rt_session *s, struct rt_host_region *r);
struct rt_host_region *rt_host_region_find(struct rt_session *s, const void *ptr);
/* Some region that has a byte of [ptr, ptr + bytes), or NULL. */
struct rt_host_region *rt_host_region_overlap(struct rt_session *s, const void *ptr,
					      uint64_t bytes);
/* A buffer of its own, of bytes rounded up to pages, bound, mapped and entered. 0 or -errno. */
int rt_host_region_new(struct rt_session *s, uint64_t bytes, uint32_t flags,
		       struct rt_host_region **out);
/* Ends whatever there is of it, and frees it. */
void rt_host_region_drop(struct rt_session *s, struct rt_host_region *r);
int rt_vm_map(struct rt_session *s, uint32_t handle, uint32_t flags, uint32_t segment,
	      uint64_t *addr);
void rt_vm_unmap(struct rt_session *s, uint64_t addr, uint32_t space);
/* In whatever segment of tensors there is room, not at address 0. */
int rt_vm_map_own(struct rt_session *s, uint32_t handle, uint32_t flags, uint64_t *addr);
void rt_bo_close(struct rt_session *s, uint32_t handle);
/* Device memory in a buffer of its own, of bytes, a multiple of 2 MiB. */
enum spyrert_status rt_device_own(struct rt_session *s, uint64_t bytes, struct rt_block **block);
enum spyrert_status rt_slot_get(struct rt_session *s, struct rt_slot **slot);
void rt_slot_put(struct rt_session *s, struct rt_slot *slot);
/* Stream-ordered frees whose stream got there; mem_lock held. */
void rt_pending_reap(struct rt_session *s);
/* The same, and time slots; no lock held. */
void rt_memory_reap(struct rt_session *s);
/* The slot is free once the timeline gets to value; takes over the reference to it. */
void rt_slot_retire(struct rt_session *s, struct rt_slot *slot, struct rt_timeline *tl,
		    uint64_t value);

/* stream.c */
#define RT_INTERNAL_ID	UINT32_MAX
/* The default stream and the user's streams of a session, held against destruction. NULL: no
 * memory. */
struct spyrert_stream **rt_stream_pin_all(struct spyrert_device *dev, struct rt_session *s,
					  size_t *n);
void rt_stream_unpin_all(struct spyrert_stream **list, size_t n);
enum spyrert_status rt_stream_new(struct spyrert_device *dev, struct rt_session *s, uint32_t id,
				  const struct spyrert_stream_attr *attr,
				  struct spyrert_stream **out);
enum spyrert_status rt_stream_end(struct spyrert_stream *st);
/*
 * Locks a stream for submission: checks fork, loss and the sticky error and takes the queue. On
 * success the lock is held.
 */
enum spyrert_status rt_stream_begin(struct spyrert_stream *st);
/* Publishes what was written, and unlocks. After a failure too: what was written is whole. */
void rt_stream_commit(struct spyrert_stream *st);
/*
 * The next control block, zeroed but for type, flags, cookie and timeout; waits for room and may
 * give up the lock for it. flags: SPYRE_CB_F_BARRIER and those of single types.
 */
enum spyrert_status rt_stream_cb(struct spyrert_stream *st, uint16_t type, uint16_t flags,
				 enum spyrert_activity_kind kind, struct spyre_cb **cb);
/* fn(arg) once all entries written so far are done. On failure fn is not called. */
enum spyrert_status rt_stream_defer(struct spyrert_stream *st,
				    void (*fn)(struct spyrert_stream *stream, void *arg),
				    void *arg);
/* Waits until done >= target. Lock held; given up while waiting. */
enum spyrert_status rt_stream_wait_locked(struct spyrert_stream *st, uint64_t target,
					  int64_t deadline);
/* Notices progress and errors. Lock held. */
void rt_stream_reap(struct spyrert_stream *st);
enum spyrert_status rt_stream_sticky(struct spyrert_stream *st);
/*
 * Space for a symbol table that is good until the next entry is done, and room for that entry, so
 * that rt_stream_cb() and rt_stream_symbols_used() can follow without giving up the lock.
 */
enum spyrert_status rt_stream_symbols(struct spyrert_stream *st, uint32_t bytes, void **cpu,
				      uint64_t *hmva);
enum spyrert_status rt_stream_symbols_used(struct spyrert_stream *st);
void rt_stream_publish(struct spyrert_stream *st);
/* Sleeps are cut to this, so that a lost wake-up or a failed dependency costs time and no more. */
#define RT_RECHECK_NS	50000000ll
void rt_session_check(struct rt_session *s, bool now);
enum spyrert_status rt_stream_signal(struct spyrert_stream *st);
enum spyrert_status rt_stream_wait_timeline(struct spyrert_stream *st, struct rt_timeline *tl,
					    uint64_t value);
/* Cancels what is not done and clears the error. Lock held. */
enum spyrert_status rt_stream_reset_locked(struct spyrert_stream *st);
struct rt_timeline *rt_timeline_get(struct rt_timeline *tl);
void rt_timeline_put(struct rt_timeline *tl);
enum rt_reach { RT_NOT_YET, RT_REACHED, RT_NEVER };
enum rt_reach rt_timeline_reached(struct rt_timeline *tl, uint64_t value);
/* Whose it is, in words. */
#define RT_OWNER_TEXT	48
const char *rt_timeline_owner(const struct rt_timeline *tl, char buf[RT_OWNER_TEXT]);

/* share.c: mem_lock held for all of these. */
enum spyrert_status rt_export_handle(struct rt_session *s, uint32_t handle, int *fd);
/* A handle of what the descriptor means, to be given to rt_import_end(). */
enum spyrert_status rt_import_begin(struct rt_session *s, int fd, uint32_t flags, bool host,
				    struct drm_spyre_bo_info *info);
/* err: of the binding, which holds the buffer from now on. Closes the handle but where a region has it. */
enum spyrert_status rt_import_end(struct rt_session *s, const struct drm_spyre_bo_info *info,
				  int err);
/* Where the CPU sees it: r->cpu. A child of fork() has none of the library's memory. 0 or -errno. */
int rt_import_map(struct rt_host_region *r, int fd, bool readonly);

/* event_share.c */
enum spyrert_status rt_event_share_new(struct rt_session *s, struct rt_event_share **out);
enum spyrert_status rt_event_share_import(struct rt_session *s, int fd,
					  struct rt_event_share **out);
void rt_event_share_put(struct rt_session *s, struct rt_event_share *share);
/*
 * In a stream locked by rt_stream_begin(): the next ticket of the event, which the card stores when
 * it has got here. rt_event_share_recorded() afterwards, once the timeline's signal is in the stream
 * too.
 */
enum spyrert_status rt_event_share_record(struct spyrert_stream *st, struct rt_event_share *share,
					  uint64_t *ticket);
void rt_event_share_recorded(struct rt_event_share *share, uint64_t ticket);
/* The newest ticket that was recorded, 0: none. */
uint64_t rt_event_share_last(const struct rt_event_share *share);
/* What is to be waited for until the ticket is there. NULL: no memory. */
struct rt_timeline *rt_event_share_timeline(struct rt_session *s, struct rt_event_share *share,
					    uint64_t ticket);
/* Nothing signals the timeline any more: nobody waits for its tickets that are not there. Stream locked. */
void rt_event_share_kill(struct rt_timeline *tl);

/*
 * What rt_host_use() held stays so until all entries written so far are done. before: .head when none
 * that names it was written. Passes status on. NULL: does nothing.
 */
enum spyrert_status rt_stream_hold(struct spyrert_stream *st, struct rt_host_region *held,
				   uint64_t before, enum spyrert_status status);

/* limits.c */
/* Which limit kept so many bytes of pinned host memory from being had; err is negative. */
enum spyrert_status rt_fail_host(struct rt_session *s, int err, uint64_t bytes, const char *what);
/*
 * Fails with the cgroup that kept so many bytes of device memory from being had after the driver answered
 * ENOSPC; SPYRERT_SUCCESS and no message if none did. The device is open.
 */
enum spyrert_status rt_fail_dmem(struct rt_session *s, uint64_t bytes);
/* "1.50 GiB (1610612736 bytes)" */
const char *rt_size_text(char *buf, size_t len, uint64_t bytes);

/* copy.c: stream locked by rt_stream_begin(). */
enum spyrert_status rt_copy_submit(struct spyrert_stream *st, const struct spyrert_copy *copy);

/* For rt_stream_defer(): arg is a struct rt_block of pinned memory. */
void rt_free_pinned(struct spyrert_stream *st, void *arg);

#define RT_CHECK_SIZE(size)								\
	do {										\
		if (!(size))								\
			return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,			\
				       "%s: size is 0; pass sizeof the struct", __func__);	\
	} while (0)

#endif
