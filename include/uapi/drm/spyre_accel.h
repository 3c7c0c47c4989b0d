/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * IBM Spyre accelerator: user interface of /dev/accel/accelN.
 *
 * Rules for every ioctl: reserved fields and unknown flags must be 0, else EINVAL. Timeouts are
 * absolute CLOCK_MONOTONIC nanoseconds. Every ioctl may return EINTR and may then simply be
 * issued again with the same arguments. After the card lost its memory (reset, removal) every
 * ioctl on a file opened before returns ENODEV; open a new one. Sizes of structs may grow at the
 * end.
 *
 * Errors with one meaning everywhere: ENOENT no such handle, id or binding in this file; ENOSPC
 * device memory (of the card or a cgroup) or page-table area exhausted; ENOMEM host memory; EDQUOT
 * the user's quota; EMFILE the card's contexts or queues; ENODEV the card is gone or this file's
 * context was lost; ETIME timeout; EPERM a privilege or limit of the process (RLIMIT_MEMLOCK,
 * CAP_SYS_NICE, CAP_PERFMON).
 */
#ifndef _UAPI_SPYRE_ACCEL_H_
#define _UAPI_SPYRE_ACCEL_H_

/*
 * In a kernel build this header is not beside drm.h; in user space libdrm's folder is in the
 * path.
 */
#ifdef __KERNEL__
#include <drm/drm.h>
#else
#include "drm.h"
#endif

#if defined(__cplusplus)
extern "C" {
#endif

/* Place new ioctls at the end, never re-order. */
enum drm_spyre_ioctl_id {
	DRM_SPYRE_QUERY = 0,
	DRM_SPYRE_BO_CREATE,
	DRM_SPYRE_BO_INFO,
	DRM_SPYRE_BO_MMAP,
	DRM_SPYRE_VM_BIND,
	DRM_SPYRE_QUEUE_CREATE,
	DRM_SPYRE_QUEUE_DESTROY,
	DRM_SPYRE_QUEUE_RESET,
	DRM_SPYRE_QUEUE_KICK,
	DRM_SPYRE_WAIT,
	DRM_SPYRE_WAIT_CANCEL,
	DRM_SPYRE_RAS_READ,
	DRM_SPYRE_SUBMIT,
	DRM_SPYRE_BO_USERPTR,
};

/**
 * enum drm_spyre_query_type - what DRM_IOCTL_SPYRE_QUERY returns
 */
enum drm_spyre_query_type {
	/** @DRM_SPYRE_QUERY_DEVICE: struct drm_spyre_device_info */
	DRM_SPYRE_QUERY_DEVICE = 0,
	/** @DRM_SPYRE_QUERY_LIMITS: struct drm_spyre_limits */
	DRM_SPYRE_QUERY_LIMITS = 1,
	/** @DRM_SPYRE_QUERY_MEMORY: struct drm_spyre_memory_info */
	DRM_SPYRE_QUERY_MEMORY = 2,
	/** @DRM_SPYRE_QUERY_TELEMETRY: struct drm_spyre_telemetry */
	DRM_SPYRE_QUERY_TELEMETRY = 3,
	/** @DRM_SPYRE_QUERY_USAGE: struct drm_spyre_usage of this file's context */
	DRM_SPYRE_QUERY_USAGE = 4,
	/** @DRM_SPYRE_QUERY_CLOCK: struct drm_spyre_clock; ENODEV while the card is off */
	DRM_SPYRE_QUERY_CLOCK = 5,
};

/**
 * struct drm_spyre_query - DRM_IOCTL_SPYRE_QUERY
 *
 * Needs no context. Copies min(size, size known to the kernel) bytes, zero-fills the rest of a
 * larger buffer, and returns the kernel's size in @size. @data 0 asks for the size alone.
 */
struct drm_spyre_query {
	/** @type: in, enum drm_spyre_query_type */
	__u32 type;
	/** @size: in: bytes at @data; out: bytes the kernel has */
	__u32 size;
	/** @data: in, user pointer, or 0 */
	__u64 data;
};

/** struct drm_spyre_device_info - constant facts of the card */
struct drm_spyre_device_info {
	/** @hw_version: major << 16 | minor */
	__u32 hw_version;
	/** @proto_version: firmware protocol spoken, major << 16 | minor */
	__u32 proto_version;
	/** @cores: mask of cores available */
	__u32 cores;
	/**
	 * @state: device state, public enum: 1 offline, 2 booting, 4 online, 6 in error, 7
	 * removed
	 */
	__u32 state;
	/** @core_hz: core clock */
	__u32 core_hz;
	/** @soc_hz: SoC counter frequency, unit of timestamps */
	__u32 soc_hz;
	/** @mem_size: usable LPDDR5 bytes, the firmware's part included */
	__u64 mem_size;
	/** @aperture_size: bytes of it the CPU can map */
	__u64 aperture_size;
	/** @reset_generation: counts losses of card memory */
	__u32 reset_generation;
	/** @engines: by kind: unused, DMI, DMO, DMX, compute */
	__u32 engines[5];
	/** @serial: text, NUL padded */
	__u8 serial[16];
	/** @fw_version: text, NUL padded */
	__u8 fw_version[32];
};

/** struct drm_spyre_limits - each limit and how much of it is in use */
struct drm_spyre_limits {
	/** @contexts_max: contexts of the card */
	__u32 contexts_max;
	/** @contexts_used: in use on the card */
	__u32 contexts_used;
	/** @contexts_user_max: this user's quota */
	__u32 contexts_user_max;
	/** @contexts_user_used: of it in use */
	__u32 contexts_user_used;
	/** @queues_max: queues of the card */
	__u32 queues_max;
	/** @queues_used: in use on the card */
	__u32 queues_used;
	/** @queues_user_max: this user's quota */
	__u32 queues_user_max;
	/** @queues_user_used: of it in use */
	__u32 queues_user_used;
	/** @ring_min: smallest ring, entries */
	__u32 ring_min;
	/** @ring_max: largest ring, entries */
	__u32 ring_max;
	/** @symbols_max: symbols of a job binary */
	__u32 symbols_max;
	/** @wait_entries_max: entries of one WAIT */
	__u32 wait_entries_max;
	/** @submit_cbs_max: control blocks of one SUBMIT */
	__u32 submit_cbs_max;
	/** @submit_syncs_max: syncobjs on each side of one SUBMIT */
	__u32 submit_syncs_max;
	/** @submits_max: unfinished SUBMITs of one file */
	__u32 submits_max;
	/** @submits_used: of this file */
	__u32 submits_used;
	/**
	 * @host_user_max: bytes of host memory that this user's HOST buffers and queues may hold
	 * on this card
	 */
	__u64 host_user_max;
	/** @host_user_used: of it in use */
	__u64 host_user_used;
};

/** struct drm_spyre_memory_info - device memory */
struct drm_spyre_memory_info {
	/** @total: bytes that buffers can ever use */
	__u64 total;
	/** @used: bytes allocated on the card */
	__u64 used;
	/** @mappable_total: of @total, bytes inside the aperture */
	__u64 mappable_total;
	/** @mappable_used: of @used, bytes inside the aperture */
	__u64 mappable_used;
	/** @largest_free: largest buffer that would fit now (memory need not be contiguous) */
	__u64 largest_free;
	/** @table_total: page-table area */
	__u64 table_total;
	/** @table_used: of it in use */
	__u64 table_used;
	/** @file_device: device bytes of this file */
	__u64 file_device;
	/** @file_host: host bytes of this file */
	__u64 file_host;
};

/** struct drm_spyre_telemetry - sensors, from a page refreshed at most every 100 ms */
struct drm_spyre_telemetry {
	/** @temp_mc: millidegree Celsius */
	__s32 temp_mc;
	/** @power_mw: milliwatt */
	__u32 power_mw;
	/** @energy: accumulated 12 V charge, 1/512 per count and SoC cycle */
	__u64 energy;
	/** @busy: modelled SoC cycles by engine kind */
	__u64 busy[5];
	/** @mem_rd: LPDDR5 bytes read */
	__u64 mem_rd;
	/** @mem_wr: LPDDR5 bytes written */
	__u64 mem_wr;
	/** @ecc_ce: corrected memory errors */
	__u32 ecc_ce;
	/** @ecc_ue: uncorrected memory errors */
	__u32 ecc_ue;
	/** @soc_time: SoC counter when taken */
	__u64 soc_time;
};

/** struct drm_spyre_usage - work done by this file's context */
struct drm_spyre_usage {
	/** @busy: modelled SoC cycles by engine kind */
	__u64 busy[5];
	/** @bytes: bytes moved by engine kind */
	__u64 bytes[5];
	/** @cbs: control blocks completed */
	__u64 cbs;
	/** @errors: control blocks failed */
	__u64 errors;
};

/**
 * struct drm_spyre_clock - the card's clock and the host's at one moment
 *
 * Two of these, some time apart, put timestamps of response blocks and RAS records on the host's
 * clock.
 */
struct drm_spyre_clock {
	/** @soc_time: SoC counter, in units of 1 / @soc_hz */
	__u64 soc_time;
	/** @host_ns: CLOCK_MONOTONIC then, within @span_ns / 2 */
	__u64 host_ns;
	/** @soc_hz: as in struct drm_spyre_device_info */
	__u32 soc_hz;
	/** @span_ns: how long the reading took, the shortest of a few */
	__u32 span_ns;
};

/**
 * DRM_SPYRE_BO_DEVICE: card memory, 2 MiB pages, scrubbed, on kernels that count it charged to the
 * caller's cgroup (dmem; ENOSPC when that is full, too). Not with HOST.
 */
#define DRM_SPYRE_BO_DEVICE	(1 << 0)
/**
 * DRM_SPYRE_BO_HOST: pinned host memory, 4 KiB pages, zeroed, charged to the memory cgroup and to
 * the user's quota (EDQUOT)
 */
#define DRM_SPYRE_BO_HOST	(1 << 1)
/** DRM_SPYRE_BO_USER: out of BO_INFO: with HOST: memory of a process, by BO_USERPTR */
#define DRM_SPYRE_BO_USER	(1 << 3)
/** DRM_SPYRE_BO_READONLY: out of BO_INFO: with HOST: the card may only read */
#define DRM_SPYRE_BO_READONLY	(1 << 4)
/** DRM_SPYRE_BO_IMPORT: out of BO_INFO: with HOST: a dma-buf of another driver or card */
#define DRM_SPYRE_BO_IMPORT	(1 << 5)
/**
 * DRM_SPYRE_BO_PEER: out of BO_INFO: with HOST and IMPORT: device memory of another card, bound at
 * host addresses as the way to it is the bus
 */
#define DRM_SPYRE_BO_PEER	(1 << 6)
/** DRM_SPYRE_BO_MAPPABLE: with DEVICE: inside the aperture, so that BO_MMAP works. */
#define DRM_SPYRE_BO_MAPPABLE	(1 << 2)

/**
 * struct drm_spyre_bo_create - DRM_IOCTL_SPYRE_BO_CREATE
 *
 * The buffer lives until its handle is closed (DRM_IOCTL_GEM_CLOSE), every binding and mapping is
 * gone, and the card has stopped using it.
 *
 * DRM_IOCTL_PRIME_HANDLE_TO_FD makes a dma-buf of it (O_RDWR in its flags: one that may be mapped
 * writable), and DRM_IOCTL_PRIME_FD_TO_HANDLE a handle of a dma-buf. Another file of the same card
 * gets the same buffer, of either kind, and may wait for words in it; one file gets one handle.
 * Devices of other drivers get host buffers only (EOPNOTSUPP). A dma-buf of another device or
 * driver, such as udmabuf, is bound like a host buffer; it has no BO_MMAP (EPERM), and no WAIT for
 * words in it (EINVAL). mmap() of the dma-buf is as by BO_MMAP: device buffers must be MAPPABLE
 * (EPERM). While a dma-buf lives the driver cannot be unloaded. After the card lost its memory a
 * device buffer is still imported by files of the same card, but not bound (ENODEV), and its
 * mappings show zeroed pages; a host buffer is as good as ever. Both ioctls return ENODEV on a file
 * whose context was lost.
 *
 * A device buffer that is MAPPABLE (EPERM: it is not) goes to another card of this driver too, and
 * is bound there like a host buffer, at host addresses. The way between the cards must be a switch
 * that both are below, by ports of their own (EXDEV: there is none; share a host buffer). A dma-buf
 * made without O_RDWR gives a handle that is READONLY. The buffer stays allocated on its card until
 * the last import of it is gone. It is revoked when its card is reset or goes away: then it is
 * bound no more (ENODEV); what is bound keeps its addresses, until VM_BIND ends it, and reading or
 * writing there is a page fault of the context that does it. While its card is away, and after it,
 * it is not imported (ENODEV). In flight at that moment, a copy ends with a page fault or, where
 * the card was pulled out, an abort.
 */
struct drm_spyre_bo_create {
	/** @size: in: bytes, not 0; out: rounded up to the page size of its kind */
	__u64 size;
	/** @flags: in, DRM_SPYRE_BO_*: exactly one of DEVICE and HOST */
	__u32 flags;
	/** @handle: out */
	__u32 handle;
};

/** struct drm_spyre_bo_info - DRM_IOCTL_SPYRE_BO_INFO */
struct drm_spyre_bo_info {
	/** @handle: in */
	__u32 handle;
	/** @flags: out, as created; HOST for the caller's own memory too */
	__u32 flags;
	/** @size: out, bytes */
	__u64 size;
};

/**
 * struct drm_spyre_bo_mmap - DRM_IOCTL_SPYRE_BO_MMAP
 *
 * Device buffers must be MAPPABLE (else EPERM). Mappings are shared, not inherited by fork, and
 * never raise SIGBUS: while the card is away they show zeroed pages of this file.
 */
struct drm_spyre_bo_mmap {
	/** @handle: in */
	__u32 handle;
	/** @pad: 0 */
	__u32 pad;
	/** @offset: out, for mmap() */
	__u64 offset;
};

/** DRM_SPYRE_VM_MAP: bind */
#define DRM_SPYRE_VM_MAP	0
/** DRM_SPYRE_VM_UNMAP: unbind the whole binding that starts at @addr */
#define DRM_SPYRE_VM_UNMAP	1
/** DRM_SPYRE_VM_READONLY: the card may only read */
#define DRM_SPYRE_VM_READONLY	(1 << 0)
/** DRM_SPYRE_VM_FIXED: @addr is given, not chosen; device buffers only; EBUSY if occupied */
#define DRM_SPYRE_VM_FIXED	(1 << 1)

/**
 * struct drm_spyre_vm_bind - DRM_IOCTL_SPYRE_VM_BIND
 *
 * Synchronous: after UNMAP the card uses no old translation. Device buffers are bound at DMVAs (2
 * MiB granularity, never across a segment), host buffers at HMVAs chosen by the kernel. Creates
 * the context if there is none yet. EACCES: the buffer may only be read, and READONLY is not given.
 */
struct drm_spyre_vm_bind {
	/** @op: in, DRM_SPYRE_VM_MAP or _UNMAP */
	__u32 op;
	/** @flags: in, MAP: DRM_SPYRE_VM_READONLY, _FIXED; UNMAP: 0 */
	__u32 flags;
	/** @handle: in, MAP: buffer; UNMAP: 0 */
	__u32 handle;
	/**
	 * @segment: in, MAP of a device buffer without FIXED: segment 0 to 7 to place it in; else
	 * 0
	 */
	__u32 segment;
	/** @offset: in, MAP: first byte of the buffer, multiple of its page size; UNMAP: 0 */
	__u64 offset;
	/** @size: in, MAP: bytes, multiple of its page size, 0: to the end; UNMAP: 0 */
	__u64 size;
	/** @addr: in with FIXED and UNMAP, out with MAP: DMVA or HMVA */
	__u64 addr;
	/** @space: in for UNMAP, out for MAP: 0 DMVA, 1 HMVA */
	__u32 space;
	/** @pad: 0 */
	__u32 pad;
};

/**
 * struct drm_spyre_queue_create - DRM_IOCTL_SPYRE_QUEUE_CREATE
 *
 * The kernel allocates ring, shadow tail, status page and response ring. Three mappings:
 * @ring_offset (read-write): @entries control blocks of 128 bytes, then, at @shadow_at, struct
 * spyre_shadow; @status_offset (read-only, for ever): struct spyre_queue_status, and at
 * @response_at
 * @entries response blocks; @doorbell_offset (write-only page): write the new tail as 32 bits at
 * its start. Creates the context if there is none yet. @priority 2 and 3 need CAP_SYS_NICE
 * (EPERM).
 */
struct drm_spyre_queue_create {
	/** @entries: in, power of two between the limits' ring_min and ring_max */
	__u32 entries;
	/** @priority: in, 0 low, 1 normal, 2 high, 3 urgent */
	__u32 priority;
	/** @timeout: in, default card-time timeout of a control block, SoC cycles, 0: none */
	__u64 timeout;
	/** @flags: in, 0 */
	__u32 flags;
	/** @queue: out, id in this file */
	__u32 queue;
	/** @ring_offset: out, for mmap() */
	__u64 ring_offset;
	/** @ring_size: out, bytes to map */
	__u64 ring_size;
	/** @status_offset: out, for mmap() */
	__u64 status_offset;
	/** @status_size: out, bytes to map */
	__u64 status_size;
	/** @doorbell_offset: out, for mmap(), one page of 4 KiB */
	__u64 doorbell_offset;
	/** @shadow_at: out, bytes into the ring mapping */
	__u32 shadow_at;
	/** @response_at: out, bytes into the status mapping */
	__u32 response_at;
};

/**
 * struct drm_spyre_queue_id - DRM_IOCTL_SPYRE_QUEUE_DESTROY, _RESET and _KICK
 *
 * DESTROY cancels what is not done and returns when the card touches none of the queue's memory
 * any more. RESET cancels what was fetched or submitted, clears the error and goes on at the
 * shadow tail. KICK rings the doorbell for users that cannot write device pages.
 */
struct drm_spyre_queue_id {
	/** @queue: in */
	__u32 queue;
	/** @pad: 0 */
	__u32 pad;
};

/** DRM_SPYRE_WAIT_FENCE: a 64-bit word of a host buffer reaches @value (unsigned >=) */
#define DRM_SPYRE_WAIT_FENCE	0
/**
 * DRM_SPYRE_WAIT_QUEUE: queue's done index reaches the low 32 bits of @value, or the
 * queue is in error
 */
#define DRM_SPYRE_WAIT_QUEUE	1

/** struct drm_spyre_wait_entry - one condition */
struct drm_spyre_wait_entry {
	/** @kind: DRM_SPYRE_WAIT_FENCE or _QUEUE */
	__u32 kind;
	/** @handle: buffer handle or queue id */
	__u32 handle;
	/** @offset: FENCE: byte offset, multiple of 8; QUEUE: 0 */
	__u64 offset;
	/** @value: see @kind */
	__u64 value;
};

/** DRM_SPYRE_WAIT_ALL: every condition, not any */
#define DRM_SPYRE_WAIT_ALL	(1 << 0)
/**
 * DRM_SPYRE_WAIT_EVENTFD: do not sleep: signal @eventfd once when it holds; @id names
 * it for WAIT_CANCEL
 */
#define DRM_SPYRE_WAIT_EVENTFD	(1 << 1)

/**
 * struct drm_spyre_wait - DRM_IOCTL_SPYRE_WAIT
 *
 * Returns 0 when the condition holds, ETIME at the timeout (a timeout in the past polls), EIO
 * when it waits for a queue in error and the value was not reached.
 */
struct drm_spyre_wait {
	/** @entries: in, user pointer to @count struct drm_spyre_wait_entry */
	__u64 entries;
	/** @count: in, 1 to wait_entries_max */
	__u32 count;
	/** @flags: in, DRM_SPYRE_WAIT_* */
	__u32 flags;
	/** @timeout_ns: in, absolute CLOCK_MONOTONIC; EVENTFD: 0 */
	__s64 timeout_ns;
	/** @first: out, without ALL: index of the first condition that held */
	__u32 first;
	/** @eventfd: in, with EVENTFD: file descriptor; else 0 */
	__s32 eventfd;
	/** @id: out, with EVENTFD */
	__u64 id;
};

/** struct drm_spyre_wait_cancel - DRM_IOCTL_SPYRE_WAIT_CANCEL; ENOENT if it has fired already */
struct drm_spyre_wait_cancel {
	/** @id: in */
	__u64 id;
};

/**
 * struct drm_spyre_ras - one RAS record
 *
 * The binary part of a record; names, steps and messages follow from @code (public codes where
 * one exists).
 */
struct drm_spyre_ras {
	/** @seq: number of the record, from 1 */
	__u64 seq;
	/** @time_ns: CLOCK_MONOTONIC when the kernel got it */
	__u64 time_ns;
	/** @soc_time: SoC counter when it happened */
	__u64 soc_time;
	/** @cookie: of the control block */
	__u64 cookie;
	/** @addr: faulting address */
	__u64 addr;
	/** @code: enum spyre_ras_code */
	__u32 code;
	/** @severity: 0 info, 1 warning, 2 error, 3 fatal */
	__u16 severity;
	/** @category: 0 hardware, 1 software, 2 firmware */
	__u16 category;
	/** @action: 0 information, 1 retry, 2 reset, 3 replace */
	__u16 action;
	/** @status: enum spyre_status of the control block */
	__u16 status;
	/** @queue: id in this file, 0xffffffff: none */
	__u32 queue;
	/** @entry: ring index of the control block */
	__u32 entry;
	/** @syndrome: enum spyre_syndrome */
	__u32 syndrome;
	/** @mode: enum spyre_hmi_mode */
	__u32 mode;
	/** @err_code: enum spyre_prog_err */
	__u32 err_code;
	/** @err_pc: instruction, byte offset, or number of the first stuck unit here */
	__u32 err_pc;
	/** @err_core: failing core, 0xffff: none */
	__u16 err_core;
	/** @err_unit: enum spyre_unit | corelet << 8 */
	__u16 err_unit;
	/** @nstuck: deadlock: stuck units in all */
	__u32 nstuck;
	/** @pad: 0 */
	__u32 pad;
	/**
	 * @stuck: struct spyre_stuck: core, unit | corelet << 7, what it waits for, its number,
	 * 32-bit pc
	 */
	__u64 stuck[4];
};

/**
 * DRM_SPYRE_RAS_CARD: also the card's own and other contexts' records; needs
 * CAP_PERFMON (EPERM)
 */
#define DRM_SPYRE_RAS_CARD	(1 << 0)

/**
 * struct drm_spyre_ras_read - DRM_IOCTL_SPYRE_RAS_READ
 *
 * Copies records with seq greater than @after, oldest first. A file sees the records of its own
 * context.
 */
struct drm_spyre_ras_read {
	/** @records: in, user pointer to @count struct drm_spyre_ras */
	__u64 records;
	/** @count: in: room; out: records copied */
	__u32 count;
	/** @flags: in, DRM_SPYRE_RAS_* */
	__u32 flags;
	/** @after: in */
	__u64 after;
	/** @dropped: out, records that were overwritten before they were read */
	__u64 dropped;
};

/** struct drm_spyre_sync - a syncobj that a SUBMIT waits for or signals */
struct drm_spyre_sync {
	/** @handle: syncobj of this file */
	__u32 handle;
	/** @flags: 0 */
	__u32 flags;
	/** @point: point of a timeline, 0: a binary syncobj */
	__u64 point;
};

/**
 * DRM_SPYRE_SUBMIT_RESET: go on after an error: what was submitted before and has not ended is
 * cancelled. Does nothing when there was none.
 */
#define DRM_SPYRE_SUBMIT_RESET	(1 << 0)

/**
 * struct drm_spyre_submit - DRM_IOCTL_SPYRE_SUBMIT
 *
 * Hands control blocks to the kernel, which runs them in order on a queue of its own when the
 * fences of @in_syncs have signalled; the fence put into @out_syncs signals when they have ended.
 * A SUBMIT begins when the one before it has ended; within it control blocks overlap unless they
 * say BARRIER. The first one creates the context if there is none yet, and the queue, which counts
 * in the quota.
 *
 * COMPUTE, DMAI, DMAO, DMAX, FILL and TIMESTAMP are taken; NOP, SIGNAL, WAIT and the flags RESPONSE
 * and INTERRUPT are not (EINVAL). No control block at all is allowed: a fence.
 *
 * How it ended is the error of the fence, details are in the RAS records: ECANCELED an earlier one
 * failed, or the file was closed, or another queue of the context faulted; EIO it failed itself, or
 * the firmware was restarted while it was on the card's queue; ETIME it exceeded its own time, or a
 * job of this context held an engine for too long while it and others waited; ENODEV the card is
 * gone or has lost its memory. After an error every SUBMIT answers EIO until one has
 * DRM_SPYRE_SUBMIT_RESET.
 *
 * While a SUBMIT waits for an engine or runs on it, one job may hold that engine for 10 s without
 * progress and for 60 s in all (module parameters submit_hang_ms and submit_total_ms, host time).
 * Then its context is reset, be it of a SUBMIT or of a user queue.
 *
 * Errors: EINVAL also for a syncobj in @in_syncs that has no fence yet (at its point); ENOENT no
 * such syncobj; EDQUOT also for more than submits_max unfinished ones; EOPNOTSUPP the firmware is
 * too old.
 */
struct drm_spyre_submit {
	/** @cbs: in, user pointer to @cb_count control blocks of 128 bytes */
	__u64 cbs;
	/** @in_syncs: in, user pointer to @in_count struct drm_spyre_sync to wait for */
	__u64 in_syncs;
	/** @out_syncs: in, user pointer to @out_count struct drm_spyre_sync to signal */
	__u64 out_syncs;
	/** @cb_count: in, 0 to submit_cbs_max */
	__u32 cb_count;
	/** @in_count: in, 0 to submit_syncs_max */
	__u32 in_count;
	/** @out_count: in, 0 to submit_syncs_max */
	__u32 out_count;
	/** @flags: in, DRM_SPYRE_SUBMIT_* */
	__u32 flags;
};

/** DRM_SPYRE_USERPTR_READONLY: the card may only read; the pages need not be writable */
#define DRM_SPYRE_USERPTR_READONLY	(1 << 0)

/**
 * struct drm_spyre_bo_userptr - DRM_IOCTL_SPYRE_BO_USERPTR
 *
 * Makes a buffer of the caller's own memory. Its pages stay pinned, and count against
 * RLIMIT_MEMLOCK of the process that made it together with what mlock() locked (EPERM;
 * CAP_IPC_LOCK exempts), until the handle is closed, the bindings are gone and the card has
 * stopped using them. The buffer means the pages that lie there now: what munmap(), mremap() or
 * MADV_DONTNEED do to the addresses later changes nothing for the card. A child of fork() gets
 * copies.
 *
 * Bound like a host buffer; its 2 MiB pages are bound as such. A READONLY one is bound with
 * DRM_SPYRE_VM_READONLY only (else EACCES). It has no BO_MMAP (EPERM), and no WAIT for words in it
 * (EINVAL). EFAULT: the range is not all mapped with the permission needed, or not by memory that
 * can be pinned for long (mappings of devices; with writing, shared mappings of files on a disk).
 */
struct drm_spyre_bo_userptr {
	/** @addr: in, multiple of 4096 */
	__u64 addr;
	/** @size: in, bytes, multiple of 4096, not 0 */
	__u64 size;
	/** @flags: in, DRM_SPYRE_USERPTR_* */
	__u32 flags;
	/** @handle: out */
	__u32 handle;
};

#define DRM_IOCTL_SPYRE(access, name, type) \
	DRM_##access(DRM_COMMAND_BASE + DRM_SPYRE_##name, struct drm_spyre_##type)

#define DRM_IOCTL_SPYRE_QUERY		DRM_IOCTL_SPYRE(IOWR, QUERY, query)
#define DRM_IOCTL_SPYRE_BO_CREATE	DRM_IOCTL_SPYRE(IOWR, BO_CREATE, bo_create)
#define DRM_IOCTL_SPYRE_BO_INFO		DRM_IOCTL_SPYRE(IOWR, BO_INFO, bo_info)
#define DRM_IOCTL_SPYRE_BO_MMAP		DRM_IOCTL_SPYRE(IOWR, BO_MMAP, bo_mmap)
#define DRM_IOCTL_SPYRE_VM_BIND		DRM_IOCTL_SPYRE(IOWR, VM_BIND, vm_bind)
#define DRM_IOCTL_SPYRE_QUEUE_CREATE	DRM_IOCTL_SPYRE(IOWR, QUEUE_CREATE, queue_create)
#define DRM_IOCTL_SPYRE_QUEUE_DESTROY	DRM_IOCTL_SPYRE(IOW, QUEUE_DESTROY, queue_id)
#define DRM_IOCTL_SPYRE_QUEUE_RESET	DRM_IOCTL_SPYRE(IOW, QUEUE_RESET, queue_id)
#define DRM_IOCTL_SPYRE_QUEUE_KICK	DRM_IOCTL_SPYRE(IOW, QUEUE_KICK, queue_id)
#define DRM_IOCTL_SPYRE_WAIT		DRM_IOCTL_SPYRE(IOWR, WAIT, wait)
#define DRM_IOCTL_SPYRE_WAIT_CANCEL	DRM_IOCTL_SPYRE(IOW, WAIT_CANCEL, wait_cancel)
#define DRM_IOCTL_SPYRE_RAS_READ	DRM_IOCTL_SPYRE(IOWR, RAS_READ, ras_read)
#define DRM_IOCTL_SPYRE_SUBMIT		DRM_IOCTL_SPYRE(IOW, SUBMIT, submit)
#define DRM_IOCTL_SPYRE_BO_USERPTR	DRM_IOCTL_SPYRE(IOWR, BO_USERPTR, bo_userptr)

#if defined(__cplusplus)
}
#endif

#endif
