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
	/* Worker w starts (true) and stops (false) being one that an invalidation must wait for. */
	void (*active)(void *opaque, unsigned int w, bool on);
};

struct spyre_soc_config {
	unsigned int threads;	/* workers, at least 1 */
	uint32_t cores;		/* mask of cores available */
	uint32_t core_hz, soc_hz;
	uint64_t watchdog;	/* core cycles, card's cap */
	bool accumulate_dl16;	/* PT sums chunks of 64 k in DL16 (pt.h); false: fp32 throughout */
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

/* Stuck units of the last DEADLOCK, up to max; returns how many there were. */
size_t spyre_soc_stuck(struct spyre_soc *soc, struct spyre_stuck *out, size_t max);

/*
 * The next read of the core's LX by one of its units fails with ERR_HW, which names the core. Any thread; a
 * running job may meet it or not.
 */
void spyre_soc_lx_parity(struct spyre_soc *soc, unsigned int core);

/* Drops decoded programs, remembered times and scratchpad contents (reset). No job runs. */
void spyre_soc_reset(struct spyre_soc *soc, uint32_t cores);

#endif
