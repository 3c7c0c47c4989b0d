/* SPDX-License-Identifier: MIT */
/*
 * The firmware's own types and the calls between its files.
 *
 * One loop, no interrupts: mstatus.MIE stays clear and WFI only sleeps, so nothing here needs a lock.
 * A turn of the loop does a bounded amount of each kind of work. No function recurses; loops whose
 * length a host could choose have a constant bound or work on one batch per turn:
 *
 *	completions		16	engine.c; with one DEADLOCK among them 1024 stuck units, 16 events
 *	doorbells		64	queue.c
 *	hardware errors		8	ras.c; injected faults as many, command.c
 *	polled queues		8	queue.c
 *	timers			16	timer.c; each some log2(FW_QUEUES) steps
 *	parked queues		256 looked at for signals and doorbells, 64 woken by a sweep; sync.c
 *	jobs started		one per engine, dispatch.c
 *	queues served		4, of FW_BATCH control blocks each; dispatch.c, run.c
 *	commands, events	4 (5 with a shutdown), 32; mailbox.c
 *	usage pages		FW_CONTEXTS, once per FW_USAGE; usage.c
 *
 * Only what makes a whole context or the card fail visits more, once: a fault, CTX_RESET, a thermal trip
 * and SHUTDOWN visit the context's queues or all (FW_QUEUES); DIAG and DUMP_STATE the doorbell pages
 * (SPYRE_DB_PAGES), DUMP_STATE with 64 lines of log. tests/unit/test_fw_bounds.c measures it.
 */
#ifndef FW_FIRMWARE_H
#define FW_FIRMWARE_H

#include "bus.h"

#define FW_CONTEXTS	MCU_CONTEXTS	/* ids 1 to 255 */
#define FW_QUEUES	4096u
/* Sticks (64 MiB) after which a copy or fill lets others have its engine. */
#define FW_DMA_PART	(1u << 19)
#define FW_BATCH	32u		/* control blocks per copy and per turn of a queue */
#define FW_BATCHES	8u		/* batches in private RAM */
#define FW_KINDS	5u		/* work of the core itself, then enum mcu_engine_kind */
#define FW_KIND_CORE	0u
#define FW_BACKLOG	1024u		/* events not yet in the driver's ring, power of two */
#define FW_NONE		0xffffffffu

/* Card time, in SoC cycles. */
#define FW_MS			(card.soc_khz)	/* as the counter runs on this card */
#define FW_TICK			(100u * FW_MS)	/* heartbeat, sensors */
#define FW_WAIT_MIN		(FW_MS / 10u)	/* how often a parked WAIT looks at its word ... */
#define FW_WAIT_MAX		(10u * FW_MS)	/* ... doubling up to this */
#define FW_SWEEP		(FW_MS / 20u)	/* a SIGNAL is seen by WAITs on aliases of its word within this */
#define FW_GRACE		(50u * FW_MS)	/* reset and destroy let jobs end for so long, then cancel them */
#define FW_HELD			(60000ull * FW_MS)	/* how long contexts wait for another's job to leave the cores */
#define FW_USAGE		(50u * FW_MS)	/* usage pages are at most this old while they change */
/* Host time: how long a queue that has run dry is polled before a doorbell is asked for. */
#define FW_POLL_NS		50000u

static inline u64 min64(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* --- Lists ---------------------------------------------------------------------------------- */

struct node {
	struct node *next, *prev;
};

static inline void list_init(struct node *head)
{
	head->next = head;
	head->prev = head;
}

static inline int list_empty(const struct node *head)
{
	return head->next == head;
}

static inline void list_add_tail(struct node *head, struct node *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

static inline void list_del(struct node *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	n->next = n;
	n->prev = n;
}

#define list_entry(n, type, member) ((type *)(void *)((char *)(n) - offsetof(type, member)))

/* --- State ---------------------------------------------------------------------------------- */

/* Where a queue is: it is in at most one list, by .link. */
enum where {
	/* 0 to FW_KINDS - 1: wants a turn of the core, or an engine of that kind */
	WHERE_POLLED = FW_KINDS,	/* ran dry, its shadow tail is looked at */
	WHERE_ARMED,			/* ran dry, a doorbell is asked for */
	WHERE_BLOCKED,			/* goes on when one of its jobs completes */
	WHERE_PARKED,			/* in a WAIT, in its context's list of those */
	WHERE_OFF,			/* suspended, being stopped, or its ring is unusable */
	WHERE_TURN,			/* the queue whose turn it is now */
};

struct queue {
	/* Touched for every control block. */
	struct node link;
	u8 where;
	u8 priority;
	u8 state;		/* enum spyre_queue_state */
	u8 inflight;		/* jobs on engines */
	u16 index;		/* in fw_mem.queue */
	u16 context;
	u32 id;			/* doorbell page */
	u32 entries;
	u32 tail;		/* user's tail as last read and found sane */
	u32 fetch;		/* entries before it were copied */
	u32 issue;		/* entries before it were started */
	u32 done;		/* entries before it have completed */
	u32 done_mask;		/* bit i: entry done + i completed ahead of an earlier one */
	u32 shown_fetch;	/* as last stored in the status page */
	u32 shown_done;
	u32 polled_since;	/* MCU_POLL_NS at the last work */
	u8 suspended;
	u8 batch;		/* which batch of private RAM holds its copies, FW_BATCHES: the window */
	u8 no_ring;		/* ring or response unusable: nothing is fetched until reset */
	u8 checked;		/* entry .issue was checked and waits for an engine or its turn */
	u8 kernel;		/* SPYRE_QUEUE_KERNEL: in no class, served at least every other turn */
	/* A copy at .issue that goes to engines in parts (FW_DMA_PART) */
	u8 part;		/* one is on an engine */
	u32 part_at;		/* where the next one begins, 0: the first */
	u32 part_ts1;		/* of the first */
	u64 part_ts4;
	u64 part_end;		/* TS5 of the last one that has ended */
	u64 part_busy, part_bytes;	/* of those that have ended */
	/* WAIT at .issue */
	u8 waiting;		/* its first look was made */
	u8 parked;		/* status page says parked */
	u32 backoff;
	u64 wait_until;		/* card time of its timeout, all ones: none */
	u64 wait_addr;
	u32 wait_space;
	u32 parked_as;		/* number of its parking */
	struct node waiter;	/* in the list of all parked queues */

	u64 ring, response, shadow, status;
	u64 timeout;
	u32 event_idx;
	u32 error;
	u32 error_entry;
	u32 generation;
	/* Pending command, answered when nothing is in flight: 0 or enum spyre_msg_type. */
	u16 op;
	u8 op_cancelled;	/* its jobs were cancelled */
	u32 op_tag;
	/* One timer: next look of a WAIT, or end of the grace of an op. */
	u64 timer;
	u16 timer_slot;		/* place in the heap + 1, 0: not set */
	struct node sibling;	/* in its context's list of queues */
};

struct context {
	u8 live;
	u8 vector;
	u16 queues;
	u32 inflight;
	u32 last_arm;		/* arm word at the last interrupt */
	u16 op;			/* CTX_RESET waits for its jobs to end */
	u8 usage_dirty;
	u32 op_tag;
	u64 table, arm, usage_bus;
	struct node all;	/* its queues */
	struct node parked;	/* those in a WAIT */
	struct node dirty;	/* in the list of contexts whose usage page is old */
	struct spyre_usage usage;
};

/* An engine and what runs on it. */
struct engine {
	u8 kind;
	u8 busy;
	u8 part;		/* the job is, or may be, a part of a copy */
	u16 flags;		/* of the control block */
	u32 tag;
	struct queue *queue;
	u32 entry;
	u64 cookie;
	u64 timeout;
	u64 addr;		/* COMPUTE: bootstrap address, for the RAS record */
	u64 wanted;		/* COMPUTE: since when others were seen to wait for the job to end, 0: nobody does */
	u8 overdue;		/* it was cancelled for that */
};

/*
 * What lies in the firmware's window of card memory. It is never cleared as a whole: queue and
 * control block slots are set up when they are given out, so untouched ones cost nothing.
 */
struct fw_mem {
	struct context context[FW_CONTEXTS];
	struct queue queue[FW_QUEUES];
	struct spyre_msg backlog[FW_BACKLOG];
	u16 free_queue[FW_QUEUES];
	struct spyre_cb cb[FW_QUEUES][FW_BATCH];	/* copies that had to leave private RAM, see run.c */
};

extern struct fw_mem fw_mem;

/* What the card is and what became of it. */
struct card {
	u32 cores;		/* that exist and passed the test */
	u32 engines[FW_KINDS];	/* number by kind */
	u32 state;		/* enum spyre_state */
	u32 power_limit;	/* mW */
	u32 soc_khz, core_khz;
	u64 long_job;		/* core cycles from which on a job's TS words may have wrapped */
	u8 can_inject;
	u8 throttled;		/* too hot or over the power limit, as the driver was told */
	u8 over_power;
	u8 tripped;
	u8 stopped;		/* shut down: nothing runs until the next boot */
	u32 heartbeat;
	u64 tick_at;
	u32 queues;
	u32 pending_ops;
	/* Injected faults. */
	u8 crash, hang;
	u32 slow_ms, lost_rb, lost_event, odd_status;
};

extern struct card card;

/* --- lib.c ---------------------------------------------------------------------------------- */

/* Freestanding: the compiler may call these. */
void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memset(void *to, int c, size_t n);

/* --- log.c ---------------------------------------------------------------------------------- */

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_init(void);
/* 0 or -1: no such level. */
int log_set_level(u32 level);
/* %u %x: u32; %X: u64 in hexadecimal; %s. One line, cut at 160 characters; the newline is added. */
void log_line(enum log_level level, const char *format, ...);
/* Bytes written since the driver was last told, for EVT_LOG; forgets them. */
u32 log_news(void);

/* --- boot.c, main.c, trap.c ------------------------------------------------------------------ */

/* 0: online; else the firmware sleeps for good, the reason is in BOOT_PROGRESS and the log. */
int boot(void);
void set_state(u32 state);
/* Hardware tests, bounded. memory: enum result 1 pass, 2 fail, 0 no answer. */
u32 test_memory(void);
u32 test_cores(void);
/* One turn of the loop. Nonzero: there is more to do at once. */
int turn(void);
/* Sleeps until an interrupt or the next timer. */
void idle(void);
void fw_main(void);

/* --- mailbox.c, command.c -------------------------------------------------------------------- */

void mailbox_init(void);
/* The driver wrote a mailbox register. */
void mailbox_kick(void);
/* Takes a few commands and moves events to the driver. Nonzero: more to do at once. */
int mailbox_turn(u64 now);
/* Nonzero: the driver has all answers and events. */
int mailbox_delivered(void);
/* Card time at which a held command may be taken or a ring be tried again, all ones: never. */
u64 mailbox_hold(void);
/* An answer is never lost: a command is only taken while there is room for its answer. */
void answer(u32 tag, u32 status, const void *body, u32 length);
/* An event of the card's own; dropped and counted when the driver reads none. */
void event(u32 type, const void *body, u32 length);
void event_id(u32 type, u32 id, u32 arg);
void command(const struct spyre_msg *msg);
/* A command that ended later than it came. */
void op_done(u32 tag, u32 status);
void command_init(void);
/* Takes the faults that were injected from outside, a bounded number. */
void inject_pending(void);
/* Ends a shutdown once no job is left. */
void shutdown_turn(void);

/* --- context.c ------------------------------------------------------------------------------ */

void context_init(void);
/* NULL when there is no such context. */
struct context *context_find(u32 id);
u32 context_create(const struct spyre_msg_ctx *m);
u32 context_tables(const struct spyre_msg_ctx *m);
u32 context_destroy(u32 id);
u32 context_invalidate(u32 id);
/* Answers by itself when the context's jobs have ended. Anything but OK: answer now. */
u32 context_reset(u32 id, u32 tag);
void context_check_op(struct context *c);
/* Puts every other queue of the context into ERROR. */
void context_fault(struct context *c, const struct queue *guilty);
/* Thermal trip and shutdown: every queue fails with the status, every job is cancelled. */
void context_stop_all(u32 status);
u32 context_id(const struct context *c);

/* --- queue.c -------------------------------------------------------------------------------- */

void queue_init(void);
struct queue *queue_find(u32 page);
u32 queue_create(const struct spyre_msg_queue *m);
/* SUSPEND, RESET, DESTROY: answered by queue_check_op() when nothing is in flight. */
u32 queue_op(u32 id, u32 op, u32 tag);
void queue_check_op(struct queue *q);
u32 queue_resume(u32 id);
u32 queue_priority(u32 id, u32 priority);
/* Goes on as soon as it is its turn, whatever it waited for. */
void queue_wake(struct queue *q);
/* Takes the queue out of whatever list it is in. */
void queue_unlink(struct queue *q);
/* First failure: state ERROR, error words, event, interrupt. Later ones change nothing. */
void queue_fail(struct queue *q, u32 entry, u32 status);
/* Entry has completed; .done advances over what has completed in order. */
void queue_done(struct queue *q, u32 entry);
/* Stores fetched and done when they moved, then may interrupt. */
void queue_show(struct queue *q);
void queue_show_event_idx(struct queue *q);
void queue_timer(struct queue *q, u64 now);
void queue_dump(u32 id);
/* Nonzero: every queue there is has ended a SUSPEND, so nothing is in flight and nothing starts. */
int queue_all_suspended(void);
/* Reads the shadow tail and checks it. 0: the queue has failed. */
int queue_read_tail(struct queue *q);
/* Ring, response ring or shadow is unusable, or the tail is nonsense: ERR_QUEUE, nothing more is fetched. */
void queue_lost_ring(struct queue *q, u32 entry, u64 addr);
/* Its turn is over and it has run dry. */
void queue_idle(struct queue *q);
struct place queue_status_at(const struct queue *q, u32 offset);
/* Doorbells of the FIFO and the overflow bitmap, a bounded number. */
void doorbells(void);
/* Looks at some of the queues that ran dry. */
void queue_poll(void);
/* Nonzero: some are being polled, so the core must not sleep. */
int queue_any_polled(void);

/* --- dispatch.c ----------------------------------------------------------------------------- */

void dispatch_init(void);
/* The queue waits for a turn of the core or for an engine of a kind. */
void dispatch_push(struct queue *q, u32 kind);
/* Whose turn it is, out of its list; NULL: nobody's. */
struct queue *dispatch_pop(u32 kind);
void dispatch_remove(struct queue *q);
/* The queue's class is served without having waited: nobody did. Time goes on all the same. */
void dispatch_direct(u32 kind, const struct queue *q);
/* Service the queue's class has had: SoC cycles of an engine, or control blocks of the core. */
void dispatch_charge(u32 kind, const struct queue *q, u32 cost);
int dispatch_waiting(u32 kind);
/* Nonzero when queues of contexts other than this one wait. */
int dispatch_wanted(u32 kind, u32 context);
/* Engines get jobs, then some queues get a turn. Nonzero: more to do at once. */
int dispatch_turn(u64 now);

/* --- run.c ---------------------------------------------------------------------------------- */

/* One turn of a queue: up to FW_BATCH control blocks. */
void queue_run(struct queue *q, u64 now);
/* The firmware's copy of a fetched entry; good until the next batch is fetched for any queue. */
struct spyre_cb *queue_cb(const struct queue *q, u32 entry);
void batch_init(void);
/* The queue goes away: its place for a batch is free. */
void batch_free(struct queue *q);
/* Entries copied but not started end as CANCELLED. */
void queue_cancel_fetched(struct queue *q);

/* --- check.c -------------------------------------------------------------------------------- */

/* What a check found: SPYRE_OK, or the status and, for FAULT and BOOTADDR, the address. */
struct verdict {
	u32 status;
	u32 mode;
	u64 addr;
};

/* The status; *v has it too. */
u32 cb_check(const struct spyre_cb *cb, struct verdict *v);
/* Engine kind that executes a type, FW_KIND_CORE for those of the firmware. */
u32 cb_kind(u32 type);

/* --- response.c ----------------------------------------------------------------------------- */

/* The response of a control block that the core itself completes; good until the next one. */
struct spyre_rb *response_core(u64 cookie, u32 status, u64 now);
/* Writes one; nothing without a response ring. */
void response_write(struct queue *q, u32 entry, const struct spyre_rb *rb);

/* --- engine.c ------------------------------------------------------------------------------- */

void engine_init(void);
/* An idle engine of the kind, FW_NONE when all are busy. */
u32 engine_idle(u32 kind);
/* Starts entry .issue and moves on to the next. Nonzero: .issue stays, the queue waits for its completion. */
int engine_start(u32 e, struct queue *q, const struct spyre_cb *cb);
/* Completions of the FIFO, a bounded number. */
void engine_completions(void);
/* Ends a job that has the cores while other contexts have waited for them for FW_HELD; its status is TIMEOUT. */
void engine_held(u64 now);
/* Cancels the jobs of one queue. */
void engine_cancel(const struct queue *q);
int engine_any_busy(void);
/* Compute jobs may start from this card time on (throttling). */
u64 engine_hold(void);
/* Who holds each engine. */
void engine_holders(struct spyre_msg_engines *m);

/* --- sync.c --------------------------------------------------------------------------------- */

void sync_init(void);
/* Both return a status; the fault, if any, is in *v. */
u32 sync_signal(struct queue *q, const struct spyre_cb *cb, struct verdict *v, u32 *syndrome);
/* Every check of the SIGNAL's stores and none of the stores. */
u32 sync_probe(struct queue *q, const struct spyre_cb *cb, struct verdict *v, u32 *syndrome);
u32 sync_timestamp(struct queue *q, const struct spyre_cb *cb, struct verdict *v, u32 *syndrome);
enum wait_result { WAIT_DONE, WAIT_PARK, WAIT_FAILED };
enum wait_result sync_wait(struct queue *q, const struct spyre_cb *cb, u64 now,
			   struct verdict *v, u32 *syndrome);
void sync_park(struct queue *q, u64 now);
/* The WAIT at .issue is over, whatever ended it. */
void sync_unpark(struct queue *q);
/* A doorbell of the context rang: all its WAITs look again. */
void sync_wake_context(struct context *c);
/* Nonzero: parked queues are left that are to look now. */
int sync_turn(u64 now);
u64 sync_next(void);

/* --- interrupt.c ---------------------------------------------------------------------------- */

void interrupt_init(void);
/* SPYRE_MSG_OK when the vector has a usable event ring. */
u32 interrupt_check_vector(u32 vector);
/* Something of the context became visible. */
void interrupt_progress(struct context *c);

/* --- ras.c ---------------------------------------------------------------------------------- */

/* kind: of the engine that failed, or FW_KIND_CORE. */
void ras_cb(const struct queue *q, u32 entry, u32 kind, const struct spyre_rb *rb, u64 addr);
void ras_queue(const struct queue *q, u32 entry, u32 status, u64 addr);
void ras_card(u32 code, u32 severity, u64 addr, u32 arg);
/* The hardware error FIFO, a bounded number. */
void ras_hardware(void);

/* --- timer.c -------------------------------------------------------------------------------- */

void timer_init(void);
void timer_set(struct queue *q, u64 when);
void timer_clear(struct queue *q);
/* Fires what is due, a bounded number. */
void timer_turn(u64 now);
/* Card time of the next, all ones: none. */
u64 timer_next(void);

/* --- health.c ------------------------------------------------------------------------------- */

void heartbeat(void);
/* Once per FW_TICK while the core is awake. */
void health_tick(u64 now);
void health_check(void);
void telemetry(struct spyre_msg_telemetry *t);
u32 health_limit(u32 id, u32 value);

/* --- usage.c -------------------------------------------------------------------------------- */

void usage_init(void);
void usage_job(struct context *c, u32 kind, u64 busy, u64 bytes);
void usage_cb(struct context *c, u32 n, u32 errors);
void usage_flush(void);
void usage_turn(u64 now);
/* Stores the page of one context, if it is old. */
void usage_show(struct context *c);

#endif
