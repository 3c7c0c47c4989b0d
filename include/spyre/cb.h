/* SPDX-License-Identifier: MIT */
/*
 * Control blocks, response blocks, queue rings, shadow doorbells and status pages. The names of the
 * timing, power and HMI error fields are public; the layouts are emulator-defined.
 */
#ifndef SPYRE_CB_H
#define SPYRE_CB_H

#include "hw.h"

enum spyre_cb_type {
	SPYRE_CB_NOP = 0,
	SPYRE_CB_COMPUTE = 1,
	SPYRE_CB_DMAI = 2,	/* host to card */
	SPYRE_CB_DMAO = 3,	/* card to host */
	SPYRE_CB_DMAX = 4,	/* card to card, or card to a bound peer window */
	SPYRE_CB_FILL = 5,
	SPYRE_CB_SIGNAL = 6,
	SPYRE_CB_WAIT = 7,
	SPYRE_CB_TIMESTAMP = 8,
	SPYRE_CB_BATCH = 9,	/* reserved: refused with BAD_CB */
	SPYRE_CB_TYPES
};

/* Flags for every type. */
#define SPYRE_CB_F_BARRIER	(1u << 0)	/* all earlier CBs of this queue complete first */
#define SPYRE_CB_F_RESPONSE	(1u << 1)	/* write an RB to the response ring (failures always do) */
#define SPYRE_CB_F_INTERRUPT	(1u << 2)	/* this completion may interrupt, subject to the arm word; so may .done moving */
/* Flags of single types. */
#define SPYRE_CB_F_HOST		(1u << 8)	/* SIGNAL, WAIT, TIMESTAMP: the address is an HMVA, else a DMVA */
#define SPYRE_CB_F_ADD		(1u << 9)	/* SIGNAL: add instead of store; DMVA only */
#define SPYRE_CB_F_DOORBELL	(1u << 10)	/* SIGNAL: then store .doorbell_value (32 bit) at HMVA .doorbell */
#define SPYRE_CB_F_LIST		(1u << 11)	/* DMA*: the body is a spyre_dma_list */
#define SPYRE_CB_F_KEEP_LX	(1u << 12)	/* COMPUTE: LX as the context's last job left it, else LX_LOST */
#define SPYRE_CB_F_SYM_HOST	(1u << 13)	/* COMPUTE: symbol table address is an HMVA */
#define SPYRE_CB_F_DST_HOST	(1u << 14)	/* DMAX: destination is an HMVA (a bound peer window) */
#define SPYRE_CB_F_SRC_HOST	(1u << 15)	/* DMAX: source is an HMVA (a bound peer window) */
#define SPYRE_CB_F_ALL_TYPES	0x7u

/* By type: the flags of single types that it takes. */
#define SPYRE_CB_TYPE_FLAGS { \
	[SPYRE_CB_COMPUTE] = SPYRE_CB_F_KEEP_LX | SPYRE_CB_F_SYM_HOST, \
	[SPYRE_CB_DMAI] = SPYRE_CB_F_LIST, \
	[SPYRE_CB_DMAO] = SPYRE_CB_F_LIST, \
	[SPYRE_CB_DMAX] = SPYRE_CB_F_LIST | SPYRE_CB_F_DST_HOST | SPYRE_CB_F_SRC_HOST, \
	[SPYRE_CB_SIGNAL] = SPYRE_CB_F_HOST | SPYRE_CB_F_ADD | SPYRE_CB_F_DOORBELL, \
	[SPYRE_CB_WAIT] = SPYRE_CB_F_HOST, \
	[SPYRE_CB_TIMESTAMP] = SPYRE_CB_F_HOST, \
}
/* By type: words of the body that it uses; the rest is 0. */
#define SPYRE_CB_TYPE_WORDS { \
	[SPYRE_CB_COMPUTE] = 5, \
	[SPYRE_CB_DMAI] = 11, \
	[SPYRE_CB_DMAO] = 11, \
	[SPYRE_CB_DMAX] = 11, \
	[SPYRE_CB_FILL] = 3, \
	[SPYRE_CB_SIGNAL] = 4, \
	[SPYRE_CB_WAIT] = 4, \
	[SPYRE_CB_TIMESTAMP] = 4, \
}

/*
 * A copy of 1 to 4 dimensions. The innermost is .bytes contiguous bytes; dimension i (0 to ndims - 2)
 * repeats .count[i] times with the byte strides given for each side. The device-side start address is
 * a multiple of 128; strides and bytes are free. Unused counts and strides are 0.
 */
#define SPYRE_DMA_BYTES_MAX	(1ull << 34)
/*
 * All runs of .bytes of a control block, those of its list together, in whole sticks: a run of one byte
 * costs a stick. More is BAD_CB. What is longer than 2^19 sticks is moved in parts of as many, between which
 * the engine serves others; later control blocks of its queue start when the last part has ended, and a list
 * is read again for each part.
 */
#define SPYRE_DMA_STICKS_MAX	(1ull << 27)
struct spyre_dma_desc {
	spyre_le64 dst;
	spyre_le64 src;
	spyre_le64 bytes;		/* 1 to SPYRE_DMA_BYTES_MAX */
	spyre_le32 ndims;		/* 1 to 4 */
	spyre_le32 count[3];		/* each at least 1 where used */
	spyre_le64 dst_stride[3];	/* two's complement */
	spyre_le64 src_stride[3];
};
SPYRE_SIZE(struct spyre_dma_desc, 88);
SPYRE_OFFSET(struct spyre_dma_desc, dst, 0);
SPYRE_OFFSET(struct spyre_dma_desc, src, 8);
SPYRE_OFFSET(struct spyre_dma_desc, bytes, 16);
SPYRE_OFFSET(struct spyre_dma_desc, ndims, 24);
SPYRE_OFFSET(struct spyre_dma_desc, count, 28);
SPYRE_OFFSET(struct spyre_dma_desc, dst_stride, 40);
SPYRE_OFFSET(struct spyre_dma_desc, src_stride, 64);

/* A list of descriptors at an HMVA, copied once, then checked, then used. Entries are 96 bytes apart. */
struct spyre_dma_list {
	spyre_le64 list;	/* HMVA, 8-byte aligned */
	spyre_le32 entries;	/* 1 to SPYRE_DMA_LIST_MAX */
	spyre_le32 reserved;
};
SPYRE_SIZE(struct spyre_dma_list, 16);
SPYRE_OFFSET(struct spyre_dma_list, list, 0);
SPYRE_OFFSET(struct spyre_dma_list, entries, 8);
SPYRE_OFFSET(struct spyre_dma_list, reserved, 12);
#define SPYRE_DMA_LIST_STRIDE	96u
#define SPYRE_DMA_LIST_MAX	1024u

struct spyre_cb_compute {
	spyre_le64 bootaddr;	/* DMVA of the job binary, segment 7, multiple of 128 */
	spyre_le64 symbols;	/* DMVA (multiple of 128) or HMVA (multiple of 8) of nsymbols 64-bit values */
	spyre_le32 nsymbols;	/* 0 to SPYRE_JOB_SYMBOLS (isa.h), must equal the container's */
	spyre_le32 core_mask;	/* cores to use; 0: the container's mask; a container runs on the mask it was built for */
	spyre_le64 reserved[2];
};
SPYRE_SIZE(struct spyre_cb_compute, 40);
SPYRE_OFFSET(struct spyre_cb_compute, bootaddr, 0);
SPYRE_OFFSET(struct spyre_cb_compute, symbols, 8);
SPYRE_OFFSET(struct spyre_cb_compute, nsymbols, 16);
SPYRE_OFFSET(struct spyre_cb_compute, core_mask, 20);
SPYRE_OFFSET(struct spyre_cb_compute, reserved, 24);

struct spyre_cb_fill {
	spyre_le64 dst;		/* DMVA, multiple of 128 */
	spyre_le64 bytes;	/* multiple of 128 */
	spyre_le64 pattern;	/* repeated every 8 bytes */
};
SPYRE_SIZE(struct spyre_cb_fill, 24);
SPYRE_OFFSET(struct spyre_cb_fill, dst, 0);
SPYRE_OFFSET(struct spyre_cb_fill, bytes, 8);
SPYRE_OFFSET(struct spyre_cb_fill, pattern, 16);

/*
 * WAIT compares unsigned. TIMESTAMP stores the 64-bit SoC counter and ignores value. SIGNAL and
 * TIMESTAMP happen after everything before them in the queue has completed, with or without BARRIER.
 */
struct spyre_cb_sync {
	spyre_le64 addr;	/* 8-byte aligned HMVA or DMVA */
	spyre_le64 value;
	spyre_le64 doorbell;	/* HMVA of a peer's doorbell, with F_DOORBELL */
	spyre_le32 doorbell_value;
	spyre_le32 reserved;
};
SPYRE_SIZE(struct spyre_cb_sync, 32);
SPYRE_OFFSET(struct spyre_cb_sync, addr, 0);
SPYRE_OFFSET(struct spyre_cb_sync, value, 8);
SPYRE_OFFSET(struct spyre_cb_sync, doorbell, 16);
SPYRE_OFFSET(struct spyre_cb_sync, doorbell_value, 24);
SPYRE_OFFSET(struct spyre_cb_sync, reserved, 28);

struct spyre_cb {
	spyre_le16 type;	/* enum spyre_cb_type */
	spyre_le16 flags;	/* SPYRE_CB_F_* valid for the type; others are BAD_CB */
	spyre_le32 reserved0;	/* 0 */
	spyre_le64 cookie;	/* returned in the RB */
	spyre_le64 timeout;	/* SoC cycles of card time; 0: the queue's default */
	spyre_le64 reserved1;	/* 0 */
	union {
		struct spyre_cb_compute compute;
		struct spyre_dma_desc dma;
		struct spyre_dma_list list;
		struct spyre_cb_fill fill;
		struct spyre_cb_sync sync;
		spyre_le64 raw[12];	/* unused words of a body are 0 */
	} u;
};
SPYRE_SIZE(struct spyre_cb, 128);
SPYRE_OFFSET(struct spyre_cb, type, 0);
SPYRE_OFFSET(struct spyre_cb, flags, 2);
SPYRE_OFFSET(struct spyre_cb, reserved0, 4);
SPYRE_OFFSET(struct spyre_cb, cookie, 8);
SPYRE_OFFSET(struct spyre_cb, timeout, 16);
SPYRE_OFFSET(struct spyre_cb, reserved1, 24);
SPYRE_OFFSET(struct spyre_cb, u, 32);

/* Why a CB ended. */
enum spyre_status {
	SPYRE_OK = 0,
	SPYRE_ERR_BAD_CB = 1,		/* unknown type or flag, reserved field set, size out of range */
	SPYRE_ERR_FAULT = 2,		/* HMI page fault: see rb_hmierr_* */
	SPYRE_ERR_BAD_PROGRAM = 3,	/* the job binary failed its check: see err_* */
	SPYRE_ERR_BOOTADDR = 4,		/* bootstrap address outside segment 7 or unaligned (RAS::CBRB::InvalidBootstrapAddress) */
	SPYRE_ERR_DEADLOCK = 5,
	SPYRE_ERR_WATCHDOG = 6,		/* modelled cycles exceeded the program's or the card's budget */
	SPYRE_ERR_PROGRAM = 7,		/* a unit failed while running: see err_* */
	SPYRE_ERR_TIMEOUT = 8,		/* the CB's own card-time timeout; or other contexts waited 60 s for the cores it had */
	SPYRE_ERR_CANCELLED = 9,	/* an earlier CB failed, or the queue was reset or destroyed */
	SPYRE_ERR_RESET = 10,		/* fetched but not done when the card was reset */
	SPYRE_ERR_LX_LOST = 11,		/* KEEP_LX, but another job ran in between */
	SPYRE_ERR_CORES = 12,		/* a core in the mask is not available */
	SPYRE_ERR_HW = 13,		/* engine abort, uncorrectable memory error */
	SPYRE_ERR_QUEUE = 14,		/* queue error: tail jumped, ring or response not accessible */
	SPYRE_ERR_SYMBOLS = 15,		/* number of symbols differs from the container's */
	SPYRE_ERR_INTERNAL = 16,	/* the model found itself inconsistent */
};

/* rb_hmierr_syndrome and copy-unit results. */
enum spyre_syndrome {
	SPYRE_SYN_NONE = 0,
	SPYRE_SYN_PAGE_FAULT = 1,	/* not mapped (public: "page fault") */
	SPYRE_SYN_PERMISSION = 2,	/* mapped without the right */
	SPYRE_SYN_UNALIGNED = 3,
	SPYRE_SYN_RANGE = 4,		/* beyond the address space, or a table names memory that does not exist */
	SPYRE_SYN_BUS = 5,		/* host memory did not answer (IOMMU, bus mastering off) */
	SPYRE_SYN_ECC = 6,
	SPYRE_SYN_CANCELLED = 7,
};

/* How a control block ends that met it: memory that cannot be corrected is no fault of the user's addresses. */
static inline enum spyre_status spyre_syndrome_status(enum spyre_syndrome syn)
{
	switch (syn) {
	case SPYRE_SYN_NONE:
		return SPYRE_OK;
	case SPYRE_SYN_ECC:
		return SPYRE_ERR_HW;
	case SPYRE_SYN_CANCELLED:
		return SPYRE_ERR_CANCELLED;
	default:
		return SPYRE_ERR_FAULT;
	}
}

enum spyre_hmi_mode {
	SPYRE_HMI_NONE = 0,
	SPYRE_HMI_FETCH = 1,	/* public */
	SPYRE_HMI_LOAD = 2,
	SPYRE_HMI_STORE = 3,
	SPYRE_HMI_HOST_READ = 4,
	SPYRE_HMI_HOST_WRITE = 5,
};

/* A unit that could not advance when its job deadlocked. */
struct spyre_stuck {
	uint8_t core;
	uint8_t unit;		/* enum spyre_unit | corelet << 7 */
	uint8_t waits;		/* enum spyre_wait_kind (isa.h) */
	uint8_t number;		/* of the FIFO, tag, tile or group it waits for */
	spyre_le32 pc;		/* instruction index in the unit's program */
};
SPYRE_SIZE(struct spyre_stuck, 8);
SPYRE_OFFSET(struct spyre_stuck, core, 0);
SPYRE_OFFSET(struct spyre_stuck, unit, 1);
SPYRE_OFFSET(struct spyre_stuck, waits, 2);
SPYRE_OFFSET(struct spyre_stuck, number, 3);
SPYRE_OFFSET(struct spyre_stuck, pc, 4);

/*
 * Response block. TS1..TS5 are the low 32 bits of the SoC counter: DMA-in TS1 to TS2, prepare TS2 to
 * TS3, execute TS3 to TS4, DMA-out TS4 to TS5 (public). power: accumulated charge, 12 V, 1/512 per
 * count and SoC cycle (public).
 */
struct spyre_rb {
	spyre_le32 ts[5];
	spyre_le32 power;
	spyre_le64 cookie;
	spyre_le32 status;		/* enum spyre_status */
	spyre_le32 rb_hmierr_mode;	/* enum spyre_hmi_mode */
	spyre_le64 rb_hmierr_addr;
	spyre_le32 rb_hmierr_syndrome;	/* enum spyre_syndrome */
	spyre_le32 rb_hmierr_snid;	/* core of the fault, or engine number */
	spyre_le32 rb_hmierr_jobcount;	/* jobs the engine had run before this one */
	spyre_le32 err_code;		/* enum spyre_prog_err (isa.h) for BAD_PROGRAM and PROGRAM */
	spyre_le16 err_core;		/* failing unit, 0xffff when not one unit's fault */
	spyre_le16 err_unit;		/* enum spyre_unit | corelet << 8 */
	spyre_le32 err_pc;		/* instruction index, or byte offset in the container */
	spyre_le64 cycles;		/* COMPUTE: modelled core cycles */
	spyre_le64 bytes;		/* bytes moved */
	spyre_le64 ts4;			/* 64-bit SoC counter at TS4 */
	spyre_le32 nstuck;		/* DEADLOCK: units that could not advance; of a race see isa.h */
	struct spyre_stuck stuck[3];	/* the first of them */
	spyre_le32 valid;		/* written last: index of the entry + 1 */
};
SPYRE_SIZE(struct spyre_rb, 128);
SPYRE_OFFSET(struct spyre_rb, ts, 0);
SPYRE_OFFSET(struct spyre_rb, power, 20);
SPYRE_OFFSET(struct spyre_rb, cookie, 24);
SPYRE_OFFSET(struct spyre_rb, status, 32);
SPYRE_OFFSET(struct spyre_rb, rb_hmierr_mode, 36);
SPYRE_OFFSET(struct spyre_rb, rb_hmierr_addr, 40);
SPYRE_OFFSET(struct spyre_rb, rb_hmierr_syndrome, 48);
SPYRE_OFFSET(struct spyre_rb, rb_hmierr_snid, 52);
SPYRE_OFFSET(struct spyre_rb, rb_hmierr_jobcount, 56);
SPYRE_OFFSET(struct spyre_rb, err_code, 60);
SPYRE_OFFSET(struct spyre_rb, err_core, 64);
SPYRE_OFFSET(struct spyre_rb, err_unit, 66);
SPYRE_OFFSET(struct spyre_rb, err_pc, 68);
SPYRE_OFFSET(struct spyre_rb, cycles, 72);
SPYRE_OFFSET(struct spyre_rb, bytes, 80);
SPYRE_OFFSET(struct spyre_rb, ts4, 88);
SPYRE_OFFSET(struct spyre_rb, nstuck, 96);
SPYRE_OFFSET(struct spyre_rb, stuck, 100);
SPYRE_OFFSET(struct spyre_rb, valid, 124);

#define SPYRE_RING_MIN		64u
#define SPYRE_RING_MAX		65536u
#define SPYRE_PRIORITIES	4u	/* 0 low, 1 normal: open to all; 2 high, 3 urgent: CAP_SYS_NICE */

/*
 * Submission, writer by writer.
 *
 * User: fills ring slot (tail mod entries) with a struct spyre_cb, release-stores the new tail to the
 * shadow page, full barrier, loads status->event_idx, and writes the doorbell if
 * (uint32_t)(new - event_idx - 1) < (uint32_t)(new - old) for old and new tail.
 *
 * Card: after draining a queue stores event_idx = tail, full barrier, loads the shadow tail again; only
 * if it did not move does the queue count as idle. Either the card sees the new tail or the user sees
 * the new event_idx: the two full barriers forbid that both miss.
 */
struct spyre_shadow {			/* one 64-byte line of user memory */
	spyre_le32 tail;		/* written by the user, free running */
	spyre_le32 reserved[15];
};
SPYRE_SIZE(struct spyre_shadow, 64);
SPYRE_OFFSET(struct spyre_shadow, tail, 0);
SPYRE_OFFSET(struct spyre_shadow, reserved, 4);

/*
 * Status page, written by the card (by the kernel once the card can no longer write), read-only for
 * the user. Pairs that must agree share one 8-byte store.
 */
struct spyre_queue_status {
	spyre_le32 fetched;	/* ring space before it is free */
	spyre_le32 done;	/* everything before it has completed */
	spyre_le32 event_idx;	/* tail at which the card wants a doorbell */
	spyre_le32 parked;	/* 1: a WAIT is not satisfied; ring the doorbell after writing its word */
	spyre_le64 last_fence;	/* value of the last SIGNAL done */
	spyre_le32 error;	/* enum spyre_status of the first failure, 0: none */
	spyre_le32 error_entry;	/* its entry index */
	spyre_le32 generation;	/* reset generation in which this queue lives */
	spyre_le32 state;	/* enum spyre_queue_state */
	spyre_le32 reserved[6];
};
SPYRE_SIZE(struct spyre_queue_status, 64);
SPYRE_OFFSET(struct spyre_queue_status, fetched, 0);
SPYRE_OFFSET(struct spyre_queue_status, done, 4);
SPYRE_OFFSET(struct spyre_queue_status, event_idx, 8);
SPYRE_OFFSET(struct spyre_queue_status, parked, 12);
SPYRE_OFFSET(struct spyre_queue_status, last_fence, 16);
SPYRE_OFFSET(struct spyre_queue_status, error, 24);
SPYRE_OFFSET(struct spyre_queue_status, error_entry, 28);
SPYRE_OFFSET(struct spyre_queue_status, generation, 32);
SPYRE_OFFSET(struct spyre_queue_status, state, 36);
SPYRE_OFFSET(struct spyre_queue_status, reserved, 40);

enum spyre_queue_state {
	SPYRE_QUEUE_ACTIVE = 1,
	SPYRE_QUEUE_SUSPENDED = 2,
	SPYRE_QUEUE_ERROR = 3,
	SPYRE_QUEUE_LOST = 4,	/* device lost: written by the kernel */
};

/*
 * Per-context interrupt arming and usage, both kernel-only host memory named by bus address.
 * arm: written by the kernel, read by the card. A change since the context's last interrupt allows
 * one more.
 */
struct spyre_arm {
	spyre_le32 arm;
	spyre_le32 reserved[15];
};
SPYRE_SIZE(struct spyre_arm, 64);
SPYRE_OFFSET(struct spyre_arm, arm, 0);
SPYRE_OFFSET(struct spyre_arm, reserved, 4);

struct spyre_usage {			/* written by the card, at least every 100 ms while it changes */
	spyre_le64 busy[5];		/* SoC cycles by enum mcu_engine_kind index: -, DMI, DMO, DMX, COMPUTE */
	spyre_le64 bytes[5];
	spyre_le64 cbs;			/* completed */
	spyre_le64 errors;
	spyre_le64 reserved[4];
};
SPYRE_SIZE(struct spyre_usage, 128);
SPYRE_OFFSET(struct spyre_usage, busy, 0);
SPYRE_OFFSET(struct spyre_usage, bytes, 40);
SPYRE_OFFSET(struct spyre_usage, cbs, 80);
SPYRE_OFFSET(struct spyre_usage, errors, 88);
SPYRE_OFFSET(struct spyre_usage, reserved, 96);

/* Entry of a vector's event ring: seq is written last, index + 1. */
struct spyre_vec_event {
	spyre_le32 context;
	spyre_le32 arm;
	spyre_le32 reserved;
	spyre_le32 seq;
};
SPYRE_SIZE(struct spyre_vec_event, 16);
SPYRE_OFFSET(struct spyre_vec_event, context, 0);
SPYRE_OFFSET(struct spyre_vec_event, arm, 4);
SPYRE_OFFSET(struct spyre_vec_event, reserved, 8);
SPYRE_OFFSET(struct spyre_vec_event, seq, 12);

#endif
