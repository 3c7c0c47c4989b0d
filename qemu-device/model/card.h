/* SPDX-License-Identifier: MIT */
/*
 * Inside of the card model; hosts see spyre_model.h alone.
 *
 * Threads
 *   core     the management core (mcu.c): interpreter, its bus, copy and word unit
 *   engines  one per DMA engine (dma.c) and one for compute (compute.c), which brings the SoC's workers
 *   callers  whoever calls spyre_model.h; may hold a lock of the host
 *
 * Locks, in the order in which they nest; all others are leaves. No host operation is called, and
 * nothing waits for another thread, with any of them held except ctl_lock.
 *   ctl_lock      boot, stop, reset, free: one at a time. Waits for the core and the engines, which never
 *                 take it; they may be inside dma_map() waiting for the caller's big lock, and give up
 *                 when spyre_card_stopping() says so.
 *   mcu.lock      run state of the core, sleep and wake; gdb.lock nests in it
 *   engine.lock   hand-over of a job
 *   ann_lock      what is done and not yet announced, the completion FIFO, MTIMECMP
 *   others        db.lock, ras_lock, epoch.lock, stop_lock, mem_lock, tele.lock, gdb.lock
 * mcu.lock may be taken under none of the others: waking the core is the last thing a producer does.
 *
 * Single words that several threads use are atomic and say so.
 */
#ifndef SPYRE_MODEL_CARD_H
#define SPYRE_MODEL_CARD_H

#include <pthread.h>
#include <stdarg.h>

#include <spyre/cb.h>
#include <spyre/fw.h>
#include <spyre/mcu.h>

#include "soc.h"
#include "spyre_model.h"
#include "thread.h"

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define load_relaxed(p)		__atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)		__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define load_seq(p)		__atomic_load_n((p), __ATOMIC_SEQ_CST)
#define store_relaxed(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define store_seq(p, v)		__atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define add_relaxed(p, v)	__atomic_fetch_add((p), (v), __ATOMIC_RELAXED)

/* ThreadSanitizer does not model fences; a read-modify-write of one word orders as well. */
#ifdef __SANITIZE_THREAD__
#define full_fence(c)	((void)__atomic_fetch_add(&(c)->fence_word, 1, __ATOMIC_SEQ_CST))
#else
#define full_fence(c)	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/* --- Engines of this card -------------------------------------------------------------------- */

#define ENGINES		6u	/* 2 DMI, 2 DMO, 1 DMX, 1 compute */
#define ENG_COMPUTE	5u
#define WORKER_MCU	ENGINES			/* index of the core's worker */
#define WORKER_SOC	(ENGINES + 1u)		/* first of the SoC's workers */
#define SOC_THREADS_MAX	256u

/* --- Epochs: who may still use what was translated before (epoch.c) --------------------------- */

#define HOST_WINDOWS	64u

/* A piece of host memory that dma_map() gave; good while the card's epoch stands. */
struct host_window {
	uint64_t bus;
	uint64_t len;
	uint8_t *ptr;
	bool write;
};

struct worker {
	uint64_t seen;		/* atomic: epoch of its last checkpoint, 0: holds no pointer */
	const uint32_t *cancel;	/* atomic: has a bit of cancel_mask when it must stop; NULL: asked elsewhere */
	uint32_t cancel_mask;
	uint64_t cache_epoch;	/* from here on the worker's own */
	struct host_window cache[HOST_WINDOWS];
} __attribute__((aligned(64)));

/* --- Management core -------------------------------------------------------------------------- */

struct insn {
	uint8_t op, rd, rs1, rs2;
	int32_t imm;
};
_Static_assert(sizeof(struct insn) == 8, "the decoded program stays in the host's cache");

#define MCU_INSNS	(SPYRE_MCU_RAM_SIZE / 2)
#define MCU_BREAKPOINTS	64u

/* mcu.req: reasons for the core to leave its loop. */
#define REQ_STOP	(1u << 0)	/* ctl_lock holder wants it parked */
#define REQ_HANG	(1u << 1)	/* injected: does nothing until the next start */
#define REQ_CRASH	(1u << 2)	/* injected: illegal instruction */
#define REQ_GDB		(1u << 3)	/* debugger wants it halted */

/* mcu.pend: MCU_IRQ_* and the timer. */
#define PEND_TIMER	(1u << 31)

struct mcu {
	/* The core's own while it runs; others touch them only when it is parked. */
	uint32_t x[64];		/* 32: where writes to x0 go */
	uint32_t pc;
	uint32_t mstatus, mie, mtvec, mscratch, mepc, mcause, mtval;
	uint32_t irq_enable;
	bool in_exception;
	uint64_t instret;
	uint8_t *ram;
	struct insn *code;	/* decoded RAM, one entry per halfword, and a sentinel */
	uint32_t code_lo, code_hi;	/* entries that may be decoded */

	/* Latches of the bus. */
	uint32_t mtime_hi;
	uint32_t mtimecmp_lo;
	uint32_t db_value;
	uint64_t ctx_table;
	uint32_t ctx_status;
	uint64_t copy_addr;
	uint32_t copy_local, copy_len, copy_status;
	uint64_t copy_fault;
	uint64_t word_data;
	uint32_t host_value;
	uint32_t compl_valid, ras_valid, stuck_valid, inject_arg;
	uint32_t mem_test, core_test;
	uint64_t pair;		/* latched by the LO word of a pair */
	char console[256];
	unsigned int console_len;

	/* Debugger: breakpoints change only while parked. */
	uint32_t bp[MCU_BREAKPOINTS];
	unsigned int nbp;
	uint32_t step_bp[3];
	unsigned int nstep;
	uint32_t skip_bp;	/* breakpoint not taken while stepping over it; ~0: none */

	uint64_t instructions;	/* atomic: published count */
	uint64_t turn_start;	/* instret at the last MCU_TURN; the core's own. 0: none since its start */
	uint64_t turns, turn_max;	/* atomic: MCU_TURN since the start, most instructions between two */
	uint32_t req;		/* atomic: REQ_* */
	uint32_t pend;		/* atomic: MCU_IRQ_* and PEND_TIMER */
	uint32_t sleeping;	/* atomic: in WFI */
	uint32_t awake;		/* atomic: executes, and so looks at the time itself */
	uint64_t slice_end;	/* config.sliced: instret that ends the slice */

	pthread_mutex_t lock;	/* the rest */
	pthread_cond_t cond;	/* the core waits */
	pthread_cond_t park_cond;	/* others wait for the core */
	pthread_t thread;
	bool started;		/* thread exists */
	bool run;		/* released by the boot ROM */
	bool halted;		/* by the debugger */
	bool parked;
	bool quit;
	bool granted;		/* config.sliced: a slice that has not ended */
};

/* --- Engines ---------------------------------------------------------------------------------- */

enum eng_state {
	ENG_IDLE = 0,
	ENG_QUEUED,		/* job waits for the thread */
	ENG_RUNNING,
	ENG_DONE,		/* waits to be announced */
};

struct dma_scratch;

struct engine {
	struct spyre_card *card;
	unsigned int number;
	enum mcu_engine_kind kind;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	pthread_cond_t cond;
	uint32_t state;		/* atomic enum eng_state; changes under lock */
	bool quit;
	bool discard;		/* under lock: the job's completion goes nowhere (stop) */

	uint32_t cancel;	/* atomic: the running job is to end CANCELLED */
	uint32_t progress;	/* atomic: checkpoints and ends of jobs */

	/* The job: written before QUEUED, read by the thread, then by the announcer after DONE. */
	uint32_t context;	/* atomic: aborts look at it */
	uint32_t tag;
	struct spyre_cb cb;
	struct spyre_rb rb;
	uint64_t ts1, ts5;	/* 64-bit SoC counter */
	uint32_t at, part;	/* of the job, struct mcu_job */
	uint32_t next;		/* of its completion */
	uint64_t done_seq;	/* order of completion among equal ts5 */

	uint64_t last_ts5;	/* atomic */
	uint32_t jobs;		/* atomic */
	uint64_t busy;		/* atomic, SoC cycles */
	uint64_t bytes;		/* atomic */

	struct dma_scratch *dma;	/* lists and windows, the thread's own */
};

#define COMPLETIONS	64u
#define RAS_ENTRIES	64u
#define DB_FIFO		1024u
#define POISON_MAX	16u
#define INJECT_FIFO	16u

/* Activity that adds energy evenly over a stretch of card time (telemetry.c). */
struct activity {
	uint64_t t0, t1;	/* SoC counter */
	double counts;		/* power-word counts in all */
};

/* Jobs, units by kind and what PT's load ports add, memory and its ports, cores. */
#define SOC_COUNTERS	(1 + SPYRE_UNITS * 5 + 5 + 3 + 2 * 2 + 32 * (6 + 2 * SPYRE_LINKS))
#define SOC_NAME	24u

struct spyre_card {
	struct spyre_card_config cfg;
	const struct spyre_host_ops *ops;
	void *opaque;

	/* Memory (mem.c); constant after creation. */
	uint8_t *mem;
	uint64_t mem_size;	/* usable */
	uint64_t mem_limit;	/* below the firmware's part */
	uint64_t aperture;	/* populated */
	uint8_t *log_ram;
	int pagemap_fd;
	uint64_t *touched;	/* atomic words: bit per 2 MiB page known to be populated */
	uint64_t *compute_holes;	/* the same: pages that the running compute job found untouched */
	size_t page_words;	/* in each of the two */

	pthread_mutex_t mem_lock;	/* poison */
	uint32_t npoison;	/* atomic */
	uint64_t poison[POISON_MAX];
	uint32_t ecc_ce, ecc_ue;	/* atomic */
	uint64_t mem_rd, mem_wr;	/* atomic */

	pthread_mutex_t ctl_lock;
	uint32_t stopping;	/* atomic: a stop or dma_sync waits */
	uint32_t stop_seq;	/* atomic: ended waits */
	pthread_mutex_t stop_lock;
	pthread_cond_t stop_cond;

	/* Function registers (regs.c), 32 bits each, atomic. */
	uint32_t regs[0x200 / 4];
	uint32_t heartbeat, db_overflow, db_bad, aperture_bad;	/* atomic */
	uint32_t time_hi;	/* atomic: latched by TIME LO */
	uint32_t cores;		/* atomic: exist and work, as of the last boot */
	uint32_t cores_lost;	/* atomic: gone from the next boot on */
	uint32_t reset_gen;	/* atomic */

	struct {
		pthread_mutex_t lock;
		struct { uint32_t page, value; } fifo[DB_FIFO];
		uint32_t head, tail;	/* free running */
		uint64_t bitmap[SPYRE_DB_PAGES / 64];
		uint32_t bits;		/* set in bitmap */
		uint64_t rung;		/* atomic */
	} db;

	struct mcu mcu;

	uint64_t ctx_table[MCU_CONTEXTS];	/* atomic: card address, 0: none */

	struct {
		uint64_t now;		/* atomic, starts at 1 */
		pthread_mutex_t lock;
		pthread_cond_t cond;
		unsigned int nworkers;
		struct worker *workers;
	} epoch;
	uint32_t fence_word;

	struct engine engine[ENGINES];
	pthread_mutex_t ann_lock;
	uint32_t nfifo;
	uint32_t fifo_head;
	struct mcu_completion fifo[COMPLETIONS];
	uint64_t done_seq;
	uint64_t mtimecmp;	/* atomic, changes under ann_lock */
	uint64_t ann_next;	/* atomic: earliest ts5 not announced, ~0: none */
	uint32_t timer_users;	/* atomic, see timer_update() */
	int64_t timer_ns;	/* what was asked of the host last; of whoever updates */

	pthread_mutex_t link_lock;
	uint64_t link_free[3];	/* SoC counter at which PCIe in, out and LPDDR5 copy are free */

	pthread_mutex_t ras_lock;
	struct spyre_ras_hw ras[RAS_ENTRIES];
	uint32_t ras_head, ras_tail;	/* free running */
	uint32_t ras_lost;	/* atomic: records that met a full FIFO */

	struct spyre_soc *soc;
	unsigned int soc_threads;
	struct spyre_soc_mem soc_mem;
	char soc_names[SOC_COUNTERS][SOC_NAME];	/* of its counters; fixed by counters_init() */
	uint64_t compute_symbols[256];	/* copy of a host symbol table; the compute thread's */
	uint64_t compute_symbols_at;
	pthread_mutex_t stuck_lock;	/* the next three */
	uint32_t nstuck, stuck_at;
	struct spyre_stuck stuck[64];

	struct {
		pthread_mutex_t lock;
		double counts;		/* activity that has ended */
		struct activity act[ENGINES];
		uint64_t power_time;	/* SoC counter of the last sample */
		uint64_t power_counts;
		uint32_t power_mw;
		uint64_t temp_time;
		uint64_t temp_counts;
		double temp_c;
		int64_t overtemp_mc;
		uint32_t throttled;	/* atomic */
		bool tripped;
	} tele;

	/* Under ras_lock: on their way to the firmware. */
	struct { uint32_t id, arg; } inject[INJECT_FIFO];
	uint32_t inject_head, inject_tail;	/* free running */
	uint32_t fault_dma_abort;	/* atomic: jobs to fail */
	uint32_t fault_lost_irq;	/* atomic */
	uint32_t fault_core_hang;	/* atomic */
	uint32_t fault_fw_image;	/* atomic: enum spyre_fault_image of the next boot */
	uint64_t irqs, irqs_lost;	/* atomic */

	struct {
		pthread_mutex_t lock;
		void (*send)(void *opaque, const uint8_t *data, size_t len);
		void *opaque;
		bool attached;		/* atomic */
		bool want_stop_reply;
		bool passing;		/* stepping over a breakpoint on the way of a continue */
		bool interrupt;		/* the user wants it halted wherever it is */
		unsigned int state;	/* of the packet parser */
		uint8_t sum;
		char buf[4096];
		unsigned int len;
	} gdb;
};

/* card.c */
__attribute__((format(printf, 3, 4)))
void card_log(struct spyre_card *c, enum spyre_log_level level, const char *fmt, ...);
__attribute__((format(printf, 2, 3)))
void card_inconsistent(struct spyre_card *c, const char *fmt, ...);
void card_raise(struct spyre_card *c, unsigned int v);
void card_start_core(struct spyre_card *c);	/* caller holds ctl_lock */
void card_stop_core(struct spyre_card *c);	/* caller holds ctl_lock */
void card_control(struct spyre_card *c, uint32_t value);	/* MCU_CTRL was written */

static inline void card_trace(struct spyre_card *c, enum spyre_trace what, uint64_t a, uint64_t b,
			      uint64_t d, uint64_t e)
{
	if (c->ops->trace)
		c->ops->trace(c->opaque, what, a, b, d, e);
}

/* regs.c. Offsets are those of the function registers, 32 bits. */
uint32_t regs_read(struct spyre_card *c, uint32_t off);
static inline uint32_t *reg_ptr(struct spyre_card *c, uint32_t off)
{
	return &c->regs[off / 4];
}
static inline uint64_t reg64(struct spyre_card *c, uint32_t off)
{
	return load_acquire(&c->regs[off / 4]) |
	       (uint64_t)load_acquire(&c->regs[off / 4 + 1]) << 32;
}
void regs_reset(struct spyre_card *c);
void regs_set_state(struct spyre_card *c, uint32_t state);

/* db.c */
void db_init(struct spyre_card *c);
void db_clear(struct spyre_card *c);
uint32_t db_pop(struct spyre_card *c, uint32_t *value);
uint32_t db_overflow_pop(struct spyre_card *c);

/* bootrom.c: checks the image, copies it into RAM and gives its entry. Core parked. */
enum spyre_boot_status bootrom_load(struct spyre_card *c, uint32_t *entry);

/* mem.c. Addresses are card physical and checked by the caller. */
int mem_init(struct spyre_card *c);
void mem_free(struct spyre_card *c);
void mem_clear(struct spyre_card *c);		/* lose everything */
void mem_zero(struct spyre_card *c, uint64_t addr, uint64_t len);
bool mem_touched(struct spyre_card *c, uint64_t addr);	/* its 2 MiB page; false: reads as zeros */
/* The contrary, asked of the host once for each page if the caller keeps holes: a bit a page, clear at first. */
bool mem_hole(struct spyre_card *c, uint64_t addr, uint64_t *holes);
/*
 * Where a read of *len bytes finds them. *len is cut to the 2 MiB page; one that nobody has written to is
 * not looked at: its bytes are in a run of zeros, to which *len is cut then. holes: bit per page that was
 * found so before and is taken to be so still, or NULL: asked anew each time, which costs a system call.
 */
const void *mem_read(struct spyre_card *c, uint64_t addr, uint64_t *len, uint64_t *holes);
/* The pages of a range are about to be written to: from now on their reads look. */
void mem_touch(struct spyre_card *c, uint64_t addr, uint64_t len);
/* Bytes from addr that are free of poison, at most len; 0: addr's stick is bad, which is counted and reported. */
uint64_t mem_ecc(struct spyre_card *c, uint64_t addr, uint64_t len);
int mem_poison(struct spyre_card *c, uint64_t addr);

/* epoch.c */
int epoch_init(struct spyre_card *c, unsigned int nworkers);
void epoch_free(struct spyre_card *c);
void worker_online(struct spyre_card *c, struct worker *w);
void worker_offline(struct spyre_card *c, struct worker *w);
bool worker_unwaited(struct spyre_card *c, const struct worker *w);	/* nobody waits for it to pass a checkpoint */
void worker_checkpoint(struct spyre_card *c, struct worker *w);
void epoch_sync(struct spyre_card *c);	/* waits until no worker uses what it saw before */
void stopping_begin(struct spyre_card *c);
void stopping_end(struct spyre_card *c);
void stopping_wait(struct spyre_card *c, struct worker *w);	/* until nobody stops, or w is cancelled */
void stopping_kick(struct spyre_card *c);	/* somebody was cancelled; call without locks */
static inline bool worker_cancelled(struct worker *w)
{
	return w->cancel && (load_acquire(w->cancel) & w->cancel_mask);
}

/* xlate.c */
/*
 * DMVA of a context to card physical address. *len in: bytes wanted, at least 1; out: contiguous bytes
 * from there, at least 1. False and *syn when it faults. Reads the tables anew each time.
 */
bool xlate_dmva(struct spyre_card *c, uint32_t ctx, uint64_t addr, uint64_t *len, bool write,
		uint64_t *phys, enum spyre_syndrome *syn);
/* HMVA of a context to bus address, the same way. priv: pages of the firmware alone are allowed. */
bool xlate_hmva(struct spyre_card *c, uint32_t ctx, uint64_t addr, uint64_t *len, bool write, bool priv,
		uint64_t *bus, enum spyre_syndrome *syn);
/*
 * Bus address to pointer, through the worker's windows. May wait for the host, and then it counts as a
 * checkpoint of the worker: other pointers must be taken after it.
 */
void *host_map(struct spyre_card *c, struct worker *w, uint64_t bus, uint64_t *len, bool write,
	       enum spyre_syndrome *syn);

/* mcu.c, mcu_bus.c, copy.c */
int mcu_init(struct spyre_card *c);
void mcu_free(struct spyre_card *c);
void mcu_park(struct spyre_card *c);		/* waits until the core does nothing */
void mcu_start(struct spyre_card *c, uint32_t entry);
void mcu_request(struct spyre_card *c, uint32_t req);
void mcu_wake(struct spyre_card *c);
/* With config.sliced: executes one slice and waits for its end. */
void mcu_slice(struct spyre_card *c);
/* Could the core use a slice? */
bool mcu_wants_slice(struct spyre_card *c);
void mcu_invalidate_code(struct mcu *m);
void mcu_invalidate_insn(struct mcu *m, uint32_t addr);
/* Addresses that can be run after m->pc; how many. Core parked. */
uint32_t mcu_next_pcs(struct mcu *m, uint32_t pc[3]);
void mcu_crash(struct spyre_card *c, const char *why, uint32_t code, uint32_t pc);
static inline void mcu_irq_set(struct spyre_card *c, uint32_t bits)
{
	__atomic_fetch_or(&c->mcu.pend, bits, __ATOMIC_SEQ_CST);
	mcu_wake(c);
}
static inline void mcu_irq_clear(struct spyre_card *c, uint32_t bits)
{
	__atomic_fetch_and(&c->mcu.pend, ~bits, __ATOMIC_SEQ_CST);
}
enum bus_result { BUS_OK = 0, BUS_FAULT = 1, BUS_RECHECK = 2, BUS_TURN = 3 };
enum bus_result mcu_bus_load(struct spyre_card *c, uint32_t addr, unsigned int size, uint32_t *value);
enum bus_result mcu_bus_store(struct spyre_card *c, uint32_t addr, unsigned int size, uint32_t value);
void mcu_bus_reset(struct spyre_card *c);
/* Memory of the core (RAM, window) for blocks; NULL: not all of it is one of the two. */
uint8_t *mcu_memory(struct spyre_card *c, uint32_t addr, uint32_t len);
void copy_go(struct spyre_card *c, uint32_t cmd);
void word_go(struct spyre_card *c, uint32_t cmd);

/* engine.c */
int engines_init(struct spyre_card *c);
void engines_free(struct spyre_card *c);
void engines_stop(struct spyre_card *c);	/* cancels all, waits, forgets completions */
void engine_start(struct spyre_card *c, unsigned int e, const struct mcu_job *job);
uint32_t engine_progress(struct engine *e);	/* ENG_PROGRESS */
void engine_cancel(struct spyre_card *c, unsigned int e);
void engines_abort(struct spyre_card *c, uint32_t ctx);
void engine_fault(struct engine *e, enum spyre_hmi_mode mode, uint64_t addr, enum spyre_syndrome syn);
bool completion_pop(struct spyre_card *c, struct mcu_completion *out);
void announce(struct spyre_card *c);	/* what is due */
void mtimecmp_set(struct spyre_card *c, uint64_t value);
void timer_update(struct spyre_card *c);
uint64_t next_due(struct spyre_card *c);	/* SoC counter of the next announcement or timer interrupt, ~0: none */
void time_passed(struct spyre_card *c);		/* it is due */
uint64_t soc_now(struct spyre_card *c);
static inline struct worker *engine_worker(struct engine *e)
{
	return &e->card->epoch.workers[e->number];
}

/* dma.c, compute.c: run the job of an engine; set rb and ts5. Called on its thread. */
int dma_init(struct engine *e);
void dma_free(struct engine *e);
void dma_run(struct engine *e);
/* A job that the core's thread had better run itself. */
bool dma_is_small(const struct spyre_cb *cb);
int compute_init(struct spyre_card *c);
void compute_free(struct spyre_card *c);
void compute_run(struct engine *e);
bool compute_pop_stuck(struct spyre_card *c, struct spyre_stuck *out);	/* on the core's thread */

/* counters.c */
void counters_init(struct spyre_card *c);
/* The SoC's counters, up to max; returns how many there are. */
size_t counters_soc(struct spyre_card *c, struct spyre_counter *out, size_t max);

/* ras.c */
void ras_push(struct spyre_card *c, uint32_t code, uint32_t arg, uint64_t addr);
bool ras_pop(struct spyre_card *c, struct spyre_ras_hw *out);
void ras_clear(struct spyre_card *c);

/* fault.c */
uint32_t inject_pop(struct spyre_card *c, uint32_t *arg);	/* as MCU_INJECT_POP */
void inject_clear(struct spyre_card *c);
/* Takes one of a number of faults to come; false: none is left. */
static inline bool take_fault(uint32_t *count)
{
	uint32_t left = load_relaxed(count);

	while (left && !__atomic_compare_exchange_n(count, &left, left - 1, false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED))
		;
	return left;
}

/* telemetry.c */
void tele_init(struct spyre_card *c);
void tele_reset(struct spyre_card *c);
void tele_activity(struct spyre_card *c, unsigned int engine, uint64_t t0, uint64_t t1, double picojoules);
void tele_cut(struct spyre_card *c, unsigned int engine, uint64_t end);	/* the stretch ended already */
uint64_t tele_energy(struct spyre_card *c, uint64_t now);
uint32_t tele_power_mw(struct spyre_card *c);
int32_t tele_temp_mc(struct spyre_card *c);
void tele_overtemp(struct spyre_card *c, int64_t mc);

/* gdb.c */
void gdb_init(struct spyre_card *c);
void gdb_halted(struct spyre_card *c);	/* the core has halted; called by it without locks */

#endif
