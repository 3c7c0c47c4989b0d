/* SPDX-License-Identifier: MIT */
/*
 * The SoC: 32 cores, their units, FIFOs, tags, ring and scratchpads. The card (card.c and the engines)
 * hands it one compute job at a time; it knows nothing of queues, firmware or PCI.
 */
#ifndef SPYRE_SOC_H
#define SPYRE_SOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spyre/cb.h>
#include <spyre/isa.h>

struct spyre_soc;

/* How the SoC reaches memory and learns that it must stop. Called from the SoC's workers. */
struct spyre_soc_mem {
	void *opaque;
	/*
	 * DMVA of the running job's context to host pointer. *len in: bytes wanted, out: bytes contiguous
	 * (at least 1). NULL with *syn set when it faults. Good until the worker's next checkpoint.
	 */
	void *(*dmva)(void *opaque, uint64_t addr, uint64_t *len, bool write, enum spyre_syndrome *syn);
	/* The same for a symbol table in host memory (read only). */
	void *(*hmva)(void *opaque, uint64_t addr, uint64_t *len, enum spyre_syndrome *syn);
	/*
	 * Worker w (0 to workers - 1) holds no pointer from dmva(). Called at least every millisecond or
	 * 64 KiB of data, by a worker that is not active too: it only asks then. True: stop the job as
	 * soon as may be (it then ends CANCELLED).
	 */
	bool (*checkpoint)(void *opaque, unsigned int w);
	/*
	 * In place of checkpoint(), by a worker that would go on with its pointers. True: they stay good until it is
	 * asked next, and *stop is what checkpoint() would have said. False: somebody waits for them; it lets go of them
	 * and calls checkpoint(). NULL: always false.
	 */
	bool (*keep)(void *opaque, unsigned int w, bool *stop);
	/* Worker w starts (true) and stops (false) being one that an invalidation must wait for. */
	void (*active)(void *opaque, unsigned int w, bool on);
};

struct spyre_soc_config {
	unsigned int threads;	/* workers, at least 1 */
	uint32_t cores;		/* mask of cores available */
	uint32_t core_hz, soc_hz;
	uint64_t watchdog;	/* core cycles, card's cap */
	bool accumulate_dl16;	/* PT sums chunks of 64 k in DL16 (pt.h); false: fp32 throughout */
	bool check_races;	/* prepare() refuses jobs with a race: PROGRAM, SPYRE_PE_RACE (isa.h) */
};

struct spyre_soc *spyre_soc_new(const struct spyre_soc_config *cfg);
void spyre_soc_free(struct spyre_soc *soc);

struct spyre_soc_job {
	uint64_t bootaddr;
	uint64_t symbols;
	uint32_t nsymbols;
	uint32_t core_mask;	/* 0: the container's */
	bool symbols_host;
	bool keep_lx;
	uint32_t context;	/* owner of what LX holds */
	const struct spyre_soc_mem *mem;
};

/* What the timing pass found, before any data moved. */
struct spyre_soc_time {
	uint64_t cycles;	/* core cycles of the whole job */
	uint64_t rd_bytes, wr_bytes;	/* LPDDR5 traffic */
	uint64_t pt_macs;	/* activity, for power */
};

/*
 * Two steps, both on the calling thread (the compute engine's) and the SoC's workers. prepare() fetches
 * the container and the symbols, checks, decodes (both cached by content) and runs the timing pass; it
 * sets rb->status and the error fields and returns false when the job must not run (BAD_PROGRAM,
 * BOOTADDR, FAULT, HW, SYMBOLS, CORES, DEADLOCK, WATCHDOG, LX_LOST, CANCELLED). execute() then moves and
 * computes; it fills the same fields on failure and leaves SPYRE_OK otherwise. If several units fault,
 * the one earliest in modelled time, then lowest core and unit, is reported.
 */
bool spyre_soc_prepare(struct spyre_soc *soc, const struct spyre_soc_job *job,
		       struct spyre_soc_time *time, struct spyre_rb *rb);
bool spyre_soc_execute(struct spyre_soc *soc, struct spyre_rb *rb);

/* --- Profile ------------------------------------------------------------------------------------ */

/* Time in a profile is in ticks, so many to a core cycle. */
#define SPYRE_SOC_TICKS		4096u

/*
 * What a unit does between its start and its RETURN. Starved: waits for a word, a tag, a tile, or the other
 * members of a multicast group. Blocked: waits for room in a FIFO, for a place in flight, or, at RETURN, for its
 * loads and stores in flight. Busy: all else. The three add up to its end; a load port of PT may idle besides.
 */
enum spyre_spent { SPYRE_BUSY, SPYRE_STARVED, SPYRE_BLOCKED, SPYRE_SPENT };

/* A stretch of a unit's run: mostly one of the three, exactly .spent. */
struct spyre_phase {
	uint64_t start, end;
	uint64_t spent[SPYRE_SPENT];
};

struct spyre_unit_profile {
	uint64_t spent[SPYRE_SPENT];
	uint64_t end;		/* its RETURN is done; 0: it takes no part */
	uint64_t bytes;		/* words of FIFOs read and written; L3: bytes moved */
	struct spyre_phase *phase;	/* ascending; their .spent add up to the unit's */
	uint32_t nphases;
};

/* Load ports of corelet 0 and 1 follow the 16 units, which are L3LU, L3SU, then corelet 0's and corelet 1's. */
#define SPYRE_PROFILE_UNITS	18u
#define SPYRE_PROFILE_PORT	16u

struct spyre_core_profile {
	/* Cores whose profile this is: one was timed for all of them. 0: the core takes no part. */
	uint32_t alike;
	struct spyre_unit_profile unit[SPYRE_PROFILE_UNITS];	/* phases: of the lowest core of .alike alone */
	uint64_t in_bytes, out_bytes;	/* its place on the ring, between memory or other cores and LX */
	uint64_t in_busy, out_busy;
	uint64_t ring_bytes[2];		/* FIFO RING: 0 clockwise */
	uint64_t ring_busy[2];
	/* [0] loads and stores of memory, [1] multicasts; and the sum of how long each was in flight. */
	uint64_t bursts[2], burst_time[2];
	uint64_t macs;
	uint64_t pt_words;		/* words of activations that both PTs took */
};

struct spyre_soc_profile {
	uint32_t phases;		/* in: to keep of each unit at most; 0: none, else at least 2 */
	struct spyre_soc_time time;
	uint32_t core_mask;
	uint64_t total;			/* ticks of the whole job */
	uint64_t overhead;		/* of that, start and end of the job on the cores */
	uint64_t tail;			/* what the last of cores alike lags behind the one that was timed */
	uint64_t memory_busy;		/* moving all bytes through the memory, turnaround included */
	uint64_t port_busy[2];		/* HMI ports of cores 0 to 15 and 16 to 31 */
	/* The card: memory's rate, how many bursts (as above) a core has in flight, core cycles of a PT for a word at best. */
	uint64_t memory_bytes_s, core_hz;
	uint32_t bursts_in_flight[2], pt_beats;
	struct spyre_core_profile core[32];
};

/*
 * Where the time of a job goes, without running it; blocks as prepare() does, and has the same errors. A function
 * of container, symbols and configuration alone. On success phases belong to the caller: spyre_soc_profile_free().
 */
bool spyre_soc_profile(struct spyre_soc *soc, const struct spyre_soc_job *job, struct spyre_soc_profile *profile,
		       struct spyre_rb *rb);
void spyre_soc_profile_free(struct spyre_soc_profile *profile);

/* --- Counters ------------------------------------------------------------------------------- */

/*
 * What the cores did in all jobs that ran since spyre_soc_new() or the last reset, as the timing
 * pass has it, whatever the host did. A job counts when it begins to run, and as a whole: also one
 * that then faults or is cancelled, as its response block has its cycles and bytes. One that
 * prepare() refuses counts nothing. Time is in core cycles.
 */
struct spyre_unit_counters {
	uint64_t spent[SPYRE_SPENT];
	uint64_t instructions;	/* RETURN included; 0 for a load port of PT */
	uint64_t bytes;		/* words of FIFOs read and written; L3: bytes moved */
};

/* Of a core: into it, out of it; what it sends to FIFO RING, clockwise and counter-clockwise. */
enum spyre_link { SPYRE_LINK_IN, SPYRE_LINK_OUT, SPYRE_LINK_CW, SPYRE_LINK_CCW, SPYRE_LINKS };

struct spyre_link_counters {
	uint64_t busy, bytes;
};

struct spyre_core_counters {
	uint64_t jobs, macs;
	struct spyre_unit_counters unit[SPYRE_PROFILE_UNITS];
	struct spyre_link_counters link[SPYRE_LINKS];
};

struct spyre_soc_counters {
	uint64_t jobs;
	uint64_t rd_bytes, wr_bytes;	/* LPDDR5 traffic */
	uint64_t memory_busy;		/* moving them, turnaround included */
	struct spyre_link_counters port[2];	/* HMI ports of cores 0 to 15 and 16 to 31 */
	struct spyre_core_counters core[32];
};

/* Any thread; all counters are of one moment. Does not wait for jobs. */
void spyre_soc_counters(struct spyre_soc *soc, struct spyre_soc_counters *out);

/* Stuck units of the last DEADLOCK, up to max; returns how many there were. */
size_t spyre_soc_stuck(struct spyre_soc *soc, struct spyre_stuck *out, size_t max);

/*
 * The next read of the core's LX by one of its units fails with ERR_HW, which names the core. Any thread; a
 * running job may meet it or not.
 */
void spyre_soc_lx_parity(struct spyre_soc *soc, unsigned int core);

/* Drops decoded programs, remembered times, counts and scratchpad contents (reset). No job runs. */
void spyre_soc_reset(struct spyre_soc *soc, uint32_t cores);

#endif
