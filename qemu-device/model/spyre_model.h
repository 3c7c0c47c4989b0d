/* SPDX-License-Identifier: MIT */
/*
 * The Spyre card as a plain C library. QEMU, the unit tests, the fuzzers and the in-process backend of
 * libspyrert host it through the interface below and through nothing else. No QEMU header comes in.
 *
 * Threads. Every function may be called from any thread unless it says otherwise. The model takes its
 * own locks inside; it calls no host operation with one of them held. A host that has a big lock of its
 * own (QEMU) may hold it in every call here except where "may wait" is said: those wait for workers,
 * and workers never wait for the host's big lock (dma_map excepted, see there).
 */
#ifndef SPYRE_MODEL_H
#define SPYRE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spyre/hw.h>

struct spyre_card;

enum spyre_log_level { SPYRE_LOG_ERROR, SPYRE_LOG_WARN, SPYRE_LOG_INFO, SPYRE_LOG_DEBUG };

/* A point of interest; hosts turn them into their own trace events. Values are in .a to .d. */
enum spyre_trace {
	SPYRE_TRACE_MMIO_READ,		/* offset, value, size */
	SPYRE_TRACE_MMIO_WRITE,		/* offset, value, size */
	SPYRE_TRACE_DOORBELL,		/* page, tail */
	SPYRE_TRACE_BOOT,		/* status, address, length */
	SPYRE_TRACE_STATE,		/* old, new */
	SPYRE_TRACE_ENGINE_START,	/* engine, context, tag, cb type */
	SPYRE_TRACE_ENGINE_DONE,	/* engine, context, tag, status */
	SPYRE_TRACE_IRQ,		/* vector */
	SPYRE_TRACE_RESET,		/* kind, generation */
	SPYRE_TRACE_FAULT,		/* context, mode, address, syndrome */
	SPYRE_TRACE_CTX,		/* context, command */
};

struct spyre_host_ops {
	/*
	 * Bus address to pointer. Called by workers and the management core, without locks. Returns NULL
	 * when nothing (or no plain memory) answers; else a pointer good for *len bytes (cut to what is
	 * contiguous, at least 1), valid until the host has called spyre_card_dma_sync() after a change.
	 * A host that must go through its big lock to answer (vIOMMU) may wait for it, but polls
	 * spyre_card_stopping() while it does, since the holder may be in spyre_card_reset().
	 */
	void *(*dma_map)(void *opaque, uint64_t bus_addr, uint64_t *len, bool write);
	/* The card's notion of time: nanoseconds, monotonic (QEMU: the virtual clock). */
	int64_t (*clock_ns)(void *opaque);
	/* (Re)arm the one timer: spyre_card_timer() is to be called at ns or soon after. INT64_MAX: off. Any thread. */
	void (*timer_mod)(void *opaque, int64_t ns);
	/* Raise MSI vector v; the host drops or folds it as its PCI state says. Any thread; must not wait. */
	void (*raise)(void *opaque, unsigned int v);
	void (*log)(void *opaque, enum spyre_log_level level, const char *text);
	/* Optional (NULL). Must be cheap. */
	void (*trace)(void *opaque, enum spyre_trace what, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
	/* Optional: an internal inconsistency was found (on-error=report: the job fails and the card goes on). */
	void (*inconsistent)(void *opaque, const char *text);
};

#define SPYRE_SLICE_NS	20000

#define SPYRE_HZ_MIN	1000000u
#define SPYRE_HZ_MAX	4000000000u

struct spyre_card_config {
	uint64_t memory;		/* nameplate LPDDR5 bytes: power of two, 1 GB to 128 GB; 7/8 of it is usable */
	uint64_t aperture;		/* BAR2 size: power of two, 256 MB to 128 GB */
	void *mem;			/* host-provided memory of usable size (memdev), or NULL: the model maps its own, sparse */
	int mem_fd;			/* with mem: its file descriptor for punching holes, or -1 */
	unsigned int threads;		/* host threads for compute, 0: as many as the host has CPUs */
	bool timing_off;		/* announce completions as soon as the work is done */
	/*
	 * Repeat exactly: nothing of the card runs but inside spyre_card_timer(), which then waits. The
	 * management core executes in slices of SPYRE_SLICE_NS of the host's clock, at multiples of it, and
	 * carries jobs out where it starts them; what the host sees is a function of what it did and when, in
	 * its own time. The clock must stand still while the card's timer is served. Not with timing_off.
	 */
	bool sliced;
	uint32_t soc_hz, core_hz, mcu_hz;	/* SPYRE_HZ_MIN to SPYRE_HZ_MAX, 0: defaults of hw.h */
	uint64_t watchdog;		/* cap of a program's modelled core cycles, 0: 2^40 */
	bool accumulate_dl16;		/* PT sums chunks of 64 k in DL16; false: in fp32 */
	bool check_races;		/* compute jobs with a race fail: PROGRAM, SPYRE_PE_RACE (isa.h) */
	uint32_t cores;			/* mask of cores present, 0: all 32 */
	char serial[16];
};

/* What a bad configuration is, in one sentence naming field, value and range; NULL: it is good. Writes into buf. */
const char *spyre_card_config_check(const struct spyre_card_config *cfg, char *buf, size_t size);

/* NULL and errno on failure. The card starts as after power-on: OFFLINE, core stopped, memory zero. */
struct spyre_card *spyre_card_new(const struct spyre_card_config *cfg, const struct spyre_host_ops *ops,
				  void *opaque);
/* May wait for workers. */
void spyre_card_free(struct spyre_card *card);

/*
 * Card memory, for the aperture and for tests: all usable bytes at one address. The first
 * spyre_card_aperture() bytes are what BAR2 shows.
 */
void *spyre_card_memory(struct spyre_card *card);
uint64_t spyre_card_memory_size(struct spyre_card *card);	/* usable, firmware's 64 MB included */
uint64_t spyre_card_aperture(struct spyre_card *card);		/* populated aperture bytes */
void spyre_card_aperture_bad(struct spyre_card *card);		/* counts an access beyond it */

/* BAR0 and BAR4. size 1 to 8. */
uint64_t spyre_card_mmio_read(struct spyre_card *card, uint64_t offset, unsigned int size);
void spyre_card_mmio_write(struct spyre_card *card, uint64_t offset, uint64_t value, unsigned int size);
uint64_t spyre_card_db_read(struct spyre_card *card, uint64_t offset, unsigned int size);
void spyre_card_db_write(struct spyre_card *card, uint64_t offset, uint64_t value, unsigned int size);

/* The armed timer has expired. May wait for workers with config.sliced, not else. */
void spyre_card_timer(struct spyre_card *card);

enum spyre_reset {
	SPYRE_RESET_COLD,	/* power-on: memory lost */
	SPYRE_RESET_FLR,	/* function-level or bus reset: memory lost */
	SPYRE_RESET_WAKEUP,	/* D3 or wake-up: memory kept if SELF_REFRESH was set */
};
/*
 * Stops the core, cancels every job and waits until each worker has passed a checkpoint (bounded, see
 * Documentation); no byte of host memory is touched afterwards. Lost memory is punched out and
 * RESET_GEN counts. May wait for workers.
 */
void spyre_card_reset(struct spyre_card *card, enum spyre_reset kind);
/* True while a reset or dma_sync waits for workers: dma_map must give up with NULL. */
bool spyre_card_stopping(struct spyre_card *card);
/*
 * Pointers given by dma_map are about to go away (bus mastering off, IOMMU unmap, memory removed):
 * returns when no worker uses an old one. The host makes dma_map refuse or change first. May wait.
 */
void spyre_card_dma_sync(struct spyre_card *card);

/* Counters, sensors and knobs by name, for QOM and tools. */
struct spyre_counter {
	const char *name;	/* "dmi0-bytes", "pt-busy", "core0-in-bytes", "energy", ... */
	uint64_t value;
};
/*
 * Fills up to max, returns how many there are; how many, their order and their names stay for the
 * card's life. Those of the cores are of one moment, all others each of its own.
 */
size_t spyre_card_counters(struct spyre_card *card, struct spyre_counter *out, size_t max);

/*
 * Faults to inject, one-shot unless said. Unknown names or values: -EINVAL. LOST_RB and FW_SLOW are the
 * firmware's: -EAGAIN when it has not taken the ones before, as one that does not run.
 */
enum spyre_fault {
	SPYRE_FAULT_MEM_CE,	/* arg: card address: corrected error is counted and reported */
	SPYRE_FAULT_MEM_UE,	/* arg: card address: next access to its stick fails */
	SPYRE_FAULT_DMA_ABORT,	/* next DMA job fails with ERR_HW */
	SPYRE_FAULT_LOST_IRQ,	/* next MSI is dropped */
	SPYRE_FAULT_FW_HANG,	/* the management core stops executing, sticky until reset */
	SPYRE_FAULT_FW_CRASH,	/* the management core takes an illegal instruction */
	SPYRE_FAULT_CORE_HANG,	/* next compute job runs into its watchdog */
	SPYRE_FAULT_CORE_LOST,	/* arg: core number: not available from the next boot on, sticky */
	SPYRE_FAULT_OVERTEMP,	/* arg: milli-degrees added to the sensor, sticky, 0 ends it */
	SPYRE_FAULT_LOST_RB,	/* arg: so many of the next response blocks are not written, 0 ends it */
	SPYRE_FAULT_FW_SLOW,	/* arg: milliseconds of card time that the next mailbox command waits, up to 60,000 */
	SPYRE_FAULT_LX_PARITY,	/* arg: core number: the next read of its LX fails the job with ERR_HW */
	SPYRE_FAULT_FW_IMAGE,	/* arg: enum spyre_fault_image: what the next boot finds at FW_ADDR */
	SPYRE_FAULTS
};
enum spyre_fault_image {
	SPYRE_FAULT_IMAGE_GOOD,		/* takes the fault back */
	SPYRE_FAULT_IMAGE_CORRUPT,	/* BAD_DIGEST */
	SPYRE_FAULT_IMAGE_TOO_OLD,
	SPYRE_FAULT_IMAGE_TOO_NEW,
	SPYRE_FAULT_IMAGES
};
const char *spyre_fault_name(enum spyre_fault fault);
int spyre_card_inject(struct spyre_card *card, enum spyre_fault fault, uint64_t arg);

/* gdb remote serial protocol for the management core, byte stream in, byte stream out by callback. */
void spyre_card_gdb_receive(struct spyre_card *card, const uint8_t *data, size_t len,
			    void (*send)(void *opaque, const uint8_t *data, size_t len), void *opaque);

#endif
