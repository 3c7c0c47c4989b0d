/* SPDX-License-Identifier: MIT */
/* Inside of the SoC: shared by the loader and pool (soc.c), the functional pass and the timing pass. */
#ifndef SPYRE_SOC_INT_H
#define SPYRE_SOC_INT_H

#include <pthread.h>
#include <string.h>

#include "job.h"
#include "pt.h"
#include "soc.h"
#include "soc_seq.h"
#include "vec.h"

/*
 * FIFOs of the functional pass are deeper than the card's: results do not depend on the depth (each unit is
 * a sequential process that blocks), deadlocks were decided by the timing pass at the real depth, and longer
 * runs of words are cheaper. At least the 128 words of a PT_MM and the 64 of a PT_LDW must fit at once.
 */
#define FIFO_CAP	256u

_Static_assert(PT_TILES * 64 * SPYRE_STICK == SPYRE_XRF_SIZE, "XRF holds the tiles");

#define JOB_HASH	1024u

/* LX is cleared, and loads to it are copied, no earlier than they must be, in grains of a burst (soc_lx.h). */
#define LX_GRAIN_SHIFT	12
#define LX_GRAINS	(SPYRE_LX_SIZE >> LX_GRAIN_SHIFT)

struct fifo {
	uint8_t *buf;		/* FIFO_CAP words, allocated when the FIFO is first used */
	uint32_t head, count;
};

enum unit_state { UNIT_NONE, UNIT_LIVE, UNIT_DONE, UNIT_FAILED };

/* What a unit failed with; ordinal places it in modelled time. */
struct fault {
	enum spyre_status status;
	enum spyre_prog_err code;
	enum spyre_hmi_mode mode;
	enum spyre_syndrome syndrome;
	uint64_t addr;
	uint64_t ordinal;
	uint32_t pc;
};

struct unit {
	struct seq s;
	enum unit_state state;
	uint32_t done;		/* words or times of the instruction at pc */
	struct fault fault;
};

struct ldw {
	uint8_t tile, fmt, fifo;
};

struct corelet {
	struct fifo fifo[SPYRE_FIFOS];	/* RING: what this core's SFP reads, under soc->lock */
	uint8_t *l0;
	struct pt_tile *tile;		/* PT_TILES of them */
	uint8_t tile_fmt[PT_TILES];	/* 0xff: never loaded */
	uint8_t tile_pending[PT_TILES];
	struct ldw ldw[PT_TILES];	/* queue of the load port */
	unsigned int nldw;
	uint32_t (*rows)[SPYRE_LANES];	/* PT_ROWS */
	bool row_int[PT_ROWS];
	uint32_t (*v[2])[SPYRE_LANES];	/* PE, SFP: SPYRE_VREGS each */
	bool l0_dirty;
};

enum core_state { CORE_IDLE, CORE_QUEUED, CORE_RUNNING, CORE_PARKED };

struct core {
	struct spyre_soc *soc;
	unsigned int id;
	uint8_t *lx;
	/* A bit a grain. dirty is atomic: neighbours store here too, but then nothing is stale. */
	uint64_t lx_dirty[LX_GRAINS / 64], lx_stale[LX_GRAINS / 64];
	/* A bit a grain that was loaded and not copied (soc_lx.h), so many of them, and where they lie in memory. */
	uint64_t lx_lent[LX_GRAINS / 64];
	unsigned int nlent;
	const uint8_t *lent[LX_GRAINS];
	bool lx_parity;			/* atomic: the next read of LX fails */
	struct corelet cl[2];
	struct unit unit[JOB_CORE_UNITS];
	uint32_t ready;			/* units that may be able to advance */
	uint32_t live;			/* units that have not returned or failed */
	uint64_t tag[SPYRE_TAGS];
	int64_t budget;			/* work left until the worker's next checkpoint */
	bool started;			/* state is that of the running job */
	struct core *ring_next[2], *ring_prev[2];	/* by corelet */
	/* Under soc->lock. */
	enum core_state state;
	uint32_t in_tag[SPYRE_TAGS];	/* sends of other cores, not yet seen */
	uint32_t in_poke;		/* units to look at again */
	bool inbox;			/* also read without the lock, as a hint */
	struct fault group_fault;	/* of this core's L3LU, found when the last member arrived */
};

/*
 * Multicast: members load for themselves; that they agree is checked entry by entry. Deep, so that a core
 * stays on its thread and in its caches for long.
 */
#define GROUP_DEPTH 1024u
struct group_entry {
	struct {
		uint64_t ear, ordinal;
		uint32_t n, pc;
	} m[32];
};

struct group {
	uint32_t members;
	uint64_t base;			/* entries before it are complete */
	uint64_t next[32];		/* per member */
	uint32_t arrived[GROUP_DEPTH];	/* members, by entry */
	struct group_entry *e;		/* GROUP_DEPTH */
};

/*
 * What a job does each time it runs, for the card's counters; time is in ticks. Cores that one was
 * timed for share an entry. One allocation, units of all cores at its end.
 */
struct unit_counts {
	uint64_t spent[SPYRE_SPENT];
	uint64_t insns, bytes;
};

struct core_counts {
	uint32_t alike;			/* cores */
	uint32_t units;			/* that take part, SPYRE_PROFILE_UNITS at most */
	const struct unit_counts *unit;	/* one for each of them */
	struct spyre_link_counters link[SPYRE_LINKS];
	uint64_t macs;
};

struct counts {
	size_t bytes;			/* of the allocation */
	uint64_t memory_busy;
	struct spyre_link_counters port[2];
	uint32_t ncores;
	struct core_counts core[];
};

struct timed {
	struct timed *next;
	struct counts *counts;
	uint64_t runs;			/* not in the totals yet; under soc->totals.lock */
	unsigned int slot;		/* in soc->totals.pending while there are any */
	uint32_t nkeys;
	struct spyre_soc_time time;
	uint64_t keys[];
};

/*
 * What all jobs did that ran since the last reset. A launch only counts the run of its remembered
 * time; totals take in what such a run does later: when somebody reads them, when the time is
 * forgotten, or, so that a reader has a bounded amount to do, when many wait.
 */
#define PENDING_MAX	64u

/* Ticks of 64 bits would wrap after a month. */
struct wide_unit {
	unsigned __int128 spent[SPYRE_SPENT];
	uint64_t insns, bytes;
};

struct wide_link {
	unsigned __int128 busy;
	uint64_t bytes;
};

struct totals {
	pthread_mutex_t lock;		/* innermost; all here, and runs and slot of struct timed */
	struct timed *pending[PENDING_MAX];
	unsigned int npending, victim;
	uint64_t jobs, rd_bytes, wr_bytes;
	unsigned __int128 memory_busy;
	struct wide_link port[2];
	struct {
		uint64_t jobs, macs;
		struct wide_unit unit[SPYRE_PROFILE_UNITS];
		struct wide_link link[SPYRE_LINKS];
	} core[32];
};

struct worker {
	struct spyre_soc *soc;
	unsigned int id;
	pthread_t thread;
};

struct spyre_soc {
	struct spyre_soc_config cfg;
	const struct vec_ops *vec;
	const struct pt_ops *pt;
	struct core *core;		/* 32 */
	uint8_t *lx;			/* theirs, one after the other, with slack to align */

	/* Decoded programs: most and least recently used, and by the start of their digest. */
	struct job *newest, *oldest, *hash[JOB_HASH];
	size_t jobs_bytes;

	/* The job between prepare() and the end of execute(). */
	struct spyre_soc_job req;
	const struct job *job;
	struct timed *timed;		/* its time; NULL when it is only profiled */
	uint64_t symbols[SPYRE_JOB_SYMBOLS];
	struct group group[SPYRE_JOB_GROUPS];

	bool shared_lx;			/* cores of this job store to each other's LX */
	bool lends;			/* its loads may be left where they lie (soc_lx.h) */
	bool lx_valid;			/* LX is as the last job of lx_owner left it */
	uint32_t lx_owner;

	struct spyre_stuck *stuck;
	size_t nstuck;
	struct totals totals;
	struct spyre_soc_profile *profile;	/* wanted: the job is timed, also if its time is remembered */

	pthread_mutex_t lock;
	pthread_cond_t work;		/* cores queued, or none left */
	pthread_cond_t idle;		/* helpers have left the job */
	struct core *queue[32];
	unsigned int qhead, nqueue, running;
	uint64_t generation;		/* counts jobs given to the helpers */
	unsigned int helpers;		/* in the current job */
	bool quit;
	bool cancel;			/* atomic */
	struct worker *workers;
	unsigned int nworkers;
};

/* True when the job must stop. */
static inline bool soc_checkpoint(struct spyre_soc *soc, unsigned int w)
{
	if (soc->req.mem->checkpoint && soc->req.mem->checkpoint(soc->req.mem->opaque, w))
		__atomic_store_n(&soc->cancel, true, __ATOMIC_RELAXED);
	return __atomic_load_n(&soc->cancel, __ATOMIC_RELAXED);
}

/* soc_exec.c: runs a core until it is done or waits for another one. */
void spyre_core_run(struct core *c, unsigned int w);
void spyre_core_free(struct core *c);

/* time.c */
/*
 * Times the job. True with *time and *counts (free() it) filled, or false with rb's status and
 * error fields (DEADLOCK, WATCHDOG, PROGRAM, CANCELLED, INTERNAL when memory ran out).
 */
bool spyre_time_job(struct spyre_soc *soc, struct spyre_soc_time *time, struct counts **counts,
		    struct spyre_rb *rb);
/* The same, without counts; fills soc->profile when it succeeds. */
bool spyre_time_profile(struct spyre_soc *soc, struct spyre_soc_time *time, struct counts **counts,
			struct spyre_rb *rb);
/* When instructions start, to put faults of different units in order: .time is set, UINT64_MAX: never. */
struct spyre_time_probe {
	struct spyre_time_probe *next;
	unsigned int core, unit;
	uint64_t ordinal, time;
};
void spyre_time_probes(struct spyre_soc *soc, struct spyre_time_probe *probes, unsigned int n);

/*
 * soc_race.c: true when FIFOs and tags order all accesses of the prepared job to LX, L0 and memory. Else false with rb
 * filled: PROGRAM with SPYRE_PE_RACE or SPYRE_PE_RACE_SIZE (isa.h), CANCELLED, or INTERNAL when memory ran out. Addresses
 * and control flow do not depend on data, so nothing is moved or changed.
 */
bool spyre_race_job(struct spyre_soc *soc, struct spyre_rb *rb);

/* soc_count.c */
void spyre_count_init(struct spyre_soc *soc);
void spyre_count_free(struct spyre_soc *soc);
void spyre_count_run(struct spyre_soc *soc, struct timed *t);
/* Frees t, which is in no list any more; what it has counted stays. */
void spyre_count_forget(struct spyre_soc *soc, struct timed *t);
/* All counters are 0 again. */
void spyre_count_clear(struct spyre_soc *soc);

/* soc.c */
void spyre_soc_fail(struct spyre_rb *rb, enum spyre_status status, enum spyre_prog_err code, unsigned int core,
		    unsigned int unit, uint32_t pc);

#endif
