/* SPDX-License-Identifier: MIT */
/*
 * libspyrert: devices, memory, programs, streams and events of the Spyre card.
 *
 * Conventions, once for all calls:
 *
 * Every call that can fail returns an enum spyrert_status; after anything but SPYRERT_SUCCESS and
 * SPYRERT_NOT_READY spyrert_last_error() says in a sentence what was wrong and what to do. Output
 * arguments are written on success only.
 *
 * Calls named ..._async, and those that take a stream, only submit: they return before the card has
 * done the work and may report an error of the arguments, or an earlier error of the same stream
 * (it is sticky, see spyrert_stream_error()). All others are done when they return.
 *
 * Every call may be made from any thread, on any object, except that an object must not be in use
 * by another thread while it is destroyed. A child made by fork() must not use objects of its
 * parent: it gets SPYRERT_ERROR_FORKED; it may call spyrert_init() itself.
 *
 * Timeouts are nanoseconds from now; 0 polls, SPYRERT_FOREVER has no end. Sizes are bytes. Device
 * addresses (spyrert_ptr) are device virtual addresses of one context and multiples of 128, the
 * stick, wherever a copy, a fill or a program starts.
 *
 * A struct that the library fills comes with its size, so that later versions can append members:
 * pass sizeof(*ptr).
 */
#ifndef SPYRERT_H
#define SPYRERT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPYRERT_VERSION_MAJOR	1
#define SPYRERT_VERSION_MINOR	0
#define SPYRERT_FOREVER		UINT64_MAX
#define SPYRERT_STICK		128u	/* bytes: the unit and alignment of device memory */
#define SPYRERT_CORES		32u
#define SPYRERT_MAX_SYMBOLS	256u

struct spyrert;			/* the library handle */
struct spyrert_device;		/* an opened card: one context */
struct spyrert_stream;		/* an in-order sequence of operations: one queue of the card */
struct spyrert_event;		/* a point in a stream */
struct spyrert_program;		/* a prepared SpyreCode or job binary */

/* Device virtual address; 0 is never a valid one. */
typedef uint64_t spyrert_ptr;

enum spyrert_status {
	SPYRERT_SUCCESS = 0,
	SPYRERT_NOT_READY = 1,			/* query: not done yet; no error */
	SPYRERT_ERROR_INVALID_ARGUMENT = 2,	/* also: unaligned or foreign addresses */
	SPYRERT_ERROR_NO_DEVICE = 3,		/* no such card, or it is not online */
	SPYRERT_ERROR_OUT_OF_MEMORY = 4,	/* device memory; see its text */
	SPYRERT_ERROR_HOST_MEMORY = 5,		/* host memory, or a limit on pinned memory */
	SPYRERT_ERROR_LIMIT = 6,		/* contexts, queues or the user's quota */
	SPYRERT_ERROR_PERMISSION = 7,
	SPYRERT_ERROR_TIMEOUT = 8,
	SPYRERT_ERROR_DEVICE_LOST = 9,		/* call spyrert_device_recover() */
	SPYRERT_ERROR_FORKED = 10,		/* object belongs to the parent process */
	SPYRERT_ERROR_NOT_SUPPORTED = 11,
	SPYRERT_ERROR_SYSTEM = 12,		/* unexpected errno, named in the text */
	SPYRERT_ERROR_BAD_SPYRECODE = 13,	/* malformed, as the host found */
	SPYRERT_ERROR_BUSY = 14,		/* still in use */
	SPYRERT_ERROR_REVOKED = 15,		/* memory behind a descriptor is gone */
	/* From here on: sticky errors of a stream, found by the card. */
	SPYRERT_ERROR_PAGE_FAULT = 20,		/* address not mapped or read-only */
	SPYRERT_ERROR_BAD_PROGRAM = 21,		/* the card refused the job binary */
	SPYRERT_ERROR_DEADLOCK = 22,		/* no unit of the program could advance */
	SPYRERT_ERROR_WATCHDOG = 23,		/* budget of cycles exceeded */
	SPYRERT_ERROR_PROGRAM = 24,		/* a unit failed while running */
	SPYRERT_ERROR_CARD_TIMEOUT = 25,	/* an operation's own timeout, in card time */
	SPYRERT_ERROR_CANCELLED = 26,		/* by a reset or another stream's error */
	SPYRERT_ERROR_RESET = 27,		/* in flight when the firmware was restarted */
	SPYRERT_ERROR_HARDWARE = 28,		/* engine abort, memory error, core not available */
	SPYRERT_ERROR_DEPENDENCY = 29,		/* a stream waited for failed */
	SPYRERT_ERROR_CONTROL_BLOCK = 30,	/* the card refused a control block */
	SPYRERT_ERROR_INTERNAL = 31,		/* please report */
};

/* --- Library -------------------------------------------------------------------------------- */

/**
 * spyrert_version() - version of the library in use
 *
 * Returns major << 16 | minor. Same major: compatible.
 */
uint32_t spyrert_version(void);

/**
 * spyrert_init() - make a library handle
 * @backend: "drm" (cards behind the kernel driver), "model" (cards in this process), or NULL: what
 *           the environment variable SPYRERT_BACKEND says, else "drm"
 * @lib: out
 *
 * Opens no card. Handles are independent of each other. Environment variables read here:
 * SPYRERT_BACKEND; SPYRERT_LOG, a comma list of ioctl, mem, stream, program, error, all: lines on
 * stderr; SPYRE_DEVICES, a comma list of card numbers to show (duplicates and unknown numbers are
 * dropped), else AIU_WORLD_SIZE, the largest number of cards to show. Backend model:
 * SPYRERT_FIRMWARE, the firmware image (else spyre/spyre-dd2-1.fw in firmware/ below or beside the
 * library's folder, or in /lib/firmware); SPYRERT_MODEL_CARDS, SPYRERT_MODEL_MEMORY (bytes, or with
 * K, M, G), SPYRERT_MODEL_THREADS, SPYRERT_MODEL_TIMING (virtual or off),
 * SPYRERT_MODEL_ACCUMULATE (fp32, or dl16: matrix products sum chunks of 64 in DL16),
 * SPYRERT_MODEL_CHECK (none, or races: jobs with a race fail, and the error names both accesses),
 * SPYRERT_MODEL_COUNTERS (a file: spyrert_exit() writes a line for each counter of each card that
 * was used, its number, the counter's name and value, all unsigned, parted by a blank).
 */
enum spyrert_status spyrert_init(const char *backend, struct spyrert **lib);

/**
 * spyrert_exit() - release a library handle
 * @lib: handle, or NULL
 *
 * Returns SPYRERT_ERROR_BUSY, and does nothing, while a device of it is open.
 */
enum spyrert_status spyrert_exit(struct spyrert *lib);

/**
 * spyrert_backend_name() - backend of a handle: "drm" or "model"
 * @lib: handle
 *
 * NULL, and spyrert_last_error(), if @lib is NULL.
 */
const char *spyrert_backend_name(const struct spyrert *lib);

/**
 * spyrert_status_name() - name of a status, such as "SPYRERT_ERROR_DEADLOCK"
 * @status: any value
 */
const char *spyrert_status_name(enum spyrert_status status);

/**
 * spyrert_last_error() - text of this thread's last failed call
 *
 * Never NULL; "" if none failed. Valid until the thread's next failing call.
 */
const char *spyrert_last_error(void);

/**
 * spyrert_last_status() - status of this thread's last failed call
 */
enum spyrert_status spyrert_last_status(void);

/* --- Devices -------------------------------------------------------------------------------- */

/* What is known of a card without opening it. */
struct spyrert_device_info {
	char name[64];		/* "IBM Spyre" */
	char node[64];		/* device node, "" on backend model */
	char pci_address[16];	/* domain:bus:device.function, "" on backend model */
	char serial[20];	/* "" if the driver does not say */
	int32_t numa_node;	/* -1: unknown */
	uint32_t state;		/* 1 offline, 2 booting, 4 online, 6 in error, 7 removed */
	uint32_t link_speed;	/* PCIe link, 0.1 GT/s; 0: unknown */
	uint32_t link_width;	/* lanes; 0: unknown */
	uint32_t link_speed_max;
	uint32_t link_width_max;
};

/**
 * spyrert_device_count() - number of cards that work
 * @lib: handle
 * @count: out
 *
 * Looks the cards up anew and opens none of them. No card is no error: @count is 0. Only cards that
 * are online (or booting) count.
 */
enum spyrert_status spyrert_device_count(struct spyrert *lib, int *count);

/**
 * spyrert_device_get_info() - what is known of a card without opening it
 * @lib: handle
 * @index: 0 to count - 1
 * @info: out
 * @size: sizeof(*info)
 */
enum spyrert_status spyrert_device_get_info(struct spyrert *lib, int index,
					    struct spyrert_device_info *info, size_t size);

/* How near two cards are; public tiers of the topology file. */
enum spyrert_link {
	SPYRERT_LINK_SELF = 0,
	SPYRERT_LINK_SWITCH = 1,	/* one PCIe switch: tier 0 */
	SPYRERT_LINK_ROOT = 2,		/* one root complex */
	SPYRERT_LINK_SYSTEM = 3,	/* across sockets, or unknown */
};

/**
 * spyrert_device_topology() - how two cards are connected
 * @lib: handle
 * @a: index of a card
 * @b: index of another
 * @link: out
 */
enum spyrert_status spyrert_device_topology(struct spyrert *lib, int a, int b,
					    enum spyrert_link *link);

/**
 * spyrert_device_open() - open a card
 * @lib: handle
 * @index: 0 to count - 1
 * @dev: out
 *
 * Each open has its own address space, streams and memory, also of one card in one process. The
 * card's context is made by the first call that needs one.
 */
enum spyrert_status spyrert_device_open(struct spyrert *lib, int index,
					struct spyrert_device **dev);

/**
 * spyrert_device_close() - close a card and free all that is left on it
 * @dev: device, or NULL
 *
 * Streams, events and programs of it must be destroyed before: SPYRERT_ERROR_BUSY otherwise, and
 * nothing happens. Memory that is still allocated is freed.
 */
enum spyrert_status spyrert_device_close(struct spyrert_device *dev);

/* Constant facts of an open card. */
struct spyrert_device_props {
	char serial[20];
	char fw_version[36];
	uint32_t hw_version;		/* major << 16 | minor: compute capability "dd<major>" */
	uint32_t proto_version;		/* firmware protocol, major << 16 | minor */
	uint32_t cores;			/* number of cores available */
	uint32_t core_mask;
	uint32_t core_hz;
	uint32_t soc_hz;		/* unit of timestamps */
	uint64_t memory;		/* usable bytes of LPDDR5 */
	uint64_t aperture;		/* bytes of it the CPU could map */
	uint32_t dmi_engines;		/* host to card */
	uint32_t dmo_engines;		/* card to host */
	uint32_t dmx_engines;		/* card to card */
	uint32_t lx_bytes;		/* scratchpad of a core */
	uint32_t corelets;		/* of a core */
	uint32_t max_symbols;		/* of a job binary */
	uint32_t max_streams;		/* this user's share of the card's queues */
	uint32_t max_ring_entries;	/* operations in flight in one stream */
	uint32_t reset_generation;
	uint32_t priorities;		/* of streams: 0 to priorities - 1 */
};

/**
 * spyrert_device_get_props() - constant facts of an open card
 * @dev: device
 * @props: out
 * @size: sizeof(*props)
 */
enum spyrert_status spyrert_device_get_props(struct spyrert_device *dev,
					     struct spyrert_device_props *props, size_t size);

/* Sensors, activity and errors. Counters are free running. */
struct spyrert_device_health {
	uint32_t state;		/* as in spyrert_device_info */
	int32_t temp_mc;	/* millidegree Celsius */
	uint32_t power_mw;
	uint32_t ecc_corrected;
	uint32_t ecc_uncorrected;
	uint32_t reset_generation;
	uint64_t energy;	/* accumulated 12 V charge, 1/512 per count and SoC cycle */
	uint64_t busy_dmi;	/* modelled SoC cycles */
	uint64_t busy_dmo;
	uint64_t busy_dmx;
	uint64_t busy_compute;
	uint64_t mem_read;	/* LPDDR5 bytes */
	uint64_t mem_written;
	uint64_t soc_time;	/* SoC counter when taken */
	uint32_t contexts;	/* in use on the card */
	uint32_t queues;
};

/**
 * spyrert_device_get_health() - sensors, activity and errors of the whole card
 * @dev: device
 * @health: out, at most 100 ms old
 * @size: sizeof(*health)
 */
enum spyrert_status spyrert_device_get_health(struct spyrert_device *dev,
					      struct spyrert_device_health *health, size_t size);

/* Work done for this open of the card. */
struct spyrert_device_usage {
	uint64_t busy_dmi;	/* modelled SoC cycles */
	uint64_t busy_dmo;
	uint64_t busy_dmx;
	uint64_t busy_compute;
	uint64_t bytes_dmi;
	uint64_t bytes_dmo;
	uint64_t bytes_dmx;
	uint64_t bytes_compute;
	uint64_t operations;	/* control blocks completed */
	uint64_t errors;	/* control blocks failed */
};

/**
 * spyrert_device_get_usage() - work done for this open of the card
 * @dev: device
 * @usage: out, at most 100 ms old
 * @size: sizeof(*usage)
 */
enum spyrert_status spyrert_device_get_usage(struct spyrert_device *dev,
					     struct spyrert_device_usage *usage, size_t size);

/**
 * spyrert_device_synchronize() - wait until all streams of this device are idle
 * @dev: device
 * @timeout_ns: nanoseconds, 0 or SPYRERT_FOREVER
 *
 * Returns the first sticky error it meets.
 */
enum spyrert_status spyrert_device_synchronize(struct spyrert_device *dev, uint64_t timeout_ns);

/**
 * spyrert_device_recover() - go on after SPYRERT_ERROR_DEVICE_LOST
 * @dev: device
 * @timeout_ns: how long to wait for the card to come back online
 *
 * Opens the card anew under the same handle. Everything made before is gone: streams, events and
 * programs made before answer SPYRERT_ERROR_DEVICE_LOST and can only be destroyed; device addresses
 * must not be used or freed; pinned host memory can still be read and freed, and no longer be used
 * for copies without staging; registered memory is to be unregistered, and registered anew. Does
 * nothing if the device is not lost.
 */
enum spyrert_status spyrert_device_recover(struct spyrert_device *dev, uint64_t timeout_ns);

/* --- Memory --------------------------------------------------------------------------------- */

/**
 * spyrert_malloc() - allocate device memory
 * @dev: device
 * @bytes: size, rounded up to a multiple of 128; 0 gives address 0
 * @ptr: out: address, a multiple of 128
 *
 * Memory comes out of regions that the library takes from the driver and keeps (see
 * spyrert_empty_cache()). New regions read as zero, reused memory holds what it held. One
 * allocation is at most 16 GB (a segment).
 */
enum spyrert_status spyrert_malloc(struct spyrert_device *dev, uint64_t bytes, spyrert_ptr *ptr);

/**
 * spyrert_free() - free device memory
 * @dev: device
 * @ptr: what spyrert_malloc(), spyrert_malloc_async(), spyrert_malloc_exportable() or
 *       spyrert_import() gave, or 0
 *
 * Does not wait: work that still uses the memory must have completed, or use spyrert_free_async().
 */
enum spyrert_status spyrert_free(struct spyrert_device *dev, spyrert_ptr ptr);

/**
 * spyrert_malloc_async() - allocate device memory in stream order
 * @stream: stream whose later work may use the memory at once
 * @bytes: as spyrert_malloc()
 * @ptr: out
 *
 * May reuse what spyrert_free_async() gave back in the same stream without waiting. Other streams
 * must be ordered behind @stream by an event.
 */
enum spyrert_status spyrert_malloc_async(struct spyrert_stream *stream, uint64_t bytes,
					 spyrert_ptr *ptr);

/**
 * spyrert_free_async() - free device memory when the stream gets there
 * @stream: stream; the memory is free for others when all its work submitted so far is done
 * @ptr: as for spyrert_free()
 */
enum spyrert_status spyrert_free_async(struct spyrert_stream *stream, spyrert_ptr ptr);

/**
 * spyrert_host_alloc() - allocate pinned host memory
 * @dev: device
 * @bytes: size, not 0
 * @ptr: out: 128-byte aligned; zeroed when it comes from the system, not when reused
 *
 * Copies between it and the card need no staging, and it can hold the words of
 * spyrert_stream_wait_value(). A child of fork() does not inherit it.
 */
enum spyrert_status spyrert_host_alloc(struct spyrert_device *dev, size_t bytes, void **ptr);

/**
 * spyrert_host_free() - free pinned host memory
 * @dev: device it was allocated on
 * @ptr: what spyrert_host_alloc(), spyrert_host_alloc_exportable() or spyrert_host_import() gave,
 *       or NULL
 *
 * Does not wait: work that still uses the memory must have completed.
 */
enum spyrert_status spyrert_host_free(struct spyrert_device *dev, void *ptr);

#define SPYRERT_REGISTER_READONLY	(1u << 0)	/* the card only reads it */

/**
 * spyrert_host_register() - let the card read and write memory of the program itself
 * @dev: device
 * @ptr: start, a multiple of 4096
 * @bytes: size, a multiple of 4096, not 0; at most 16 GB
 * @flags: SPYRERT_REGISTER_*
 *
 * Copies whose host side lies wholly inside go to it and from it without staging, as with
 * spyrert_host_alloc(), and it can hold the words of spyrert_stream_wait_value(). With
 * SPYRERT_REGISTER_READONLY the memory need not be writable, and copies to it are refused.
 *
 * The pages stay pinned until spyrert_host_unregister() and count against RLIMIT_MEMLOCK of the
 * process (SPYRERT_ERROR_PERMISSION; the text has limit and use). Registered are the pages that lie
 * there now: while it is registered the range must neither be unmapped nor moved nor mapped anew.
 * If it is, nobody else is harmed, but copies still use the old pages. On backend model nothing is
 * pinned or limited, and the card uses the addresses themselves: copies of an unmapped range end the
 * process there.
 *
 * Memory that other drivers map, and, unless READONLY, shared mappings of files on a disk cannot be
 * registered, nor can what is registered or pinned on this device already, not even in part. A
 * child of fork() gets copies of the pages, and the registration stays its parent's.
 */
enum spyrert_status spyrert_host_register(struct spyrert_device *dev, void *ptr, size_t bytes,
					  uint32_t flags);

/**
 * spyrert_host_unregister() - end a registration
 * @dev: device
 * @ptr: start of the range, as registered
 *
 * Never waits. SPYRERT_ERROR_BUSY, and nothing happens, while a stream has work that uses the
 * memory: synchronize with it, or reset it if it failed.
 */
enum spyrert_status spyrert_host_unregister(struct spyrert_device *dev, void *ptr);

enum spyrert_memory_kind {
	SPYRERT_MEMORY_UNKNOWN = 0,	/* not of this device: pageable host memory, or nothing */
	SPYRERT_MEMORY_DEVICE = 1,	/* segments 0 to 6 */
	SPYRERT_MEMORY_PROGRAM = 2,	/* segment 7, held by a program */
	SPYRERT_MEMORY_PINNED = 3,	/* host */
	SPYRERT_MEMORY_PEER = 4,	/* device memory of another card, imported */
};

#define SPYRERT_POINTER_EXPORTABLE	(1u << 0)	/* spyrert_export() takes it */
#define SPYRERT_POINTER_IMPORTED	(1u << 1)
#define SPYRERT_POINTER_REGISTERED	(1u << 2)	/* by spyrert_host_register() */
#define SPYRERT_POINTER_READONLY	(1u << 3)	/* for the card */

struct spyrert_pointer_info {
	uint32_t kind;		/* enum spyrert_memory_kind; the rest is 0 for UNKNOWN */
	uint32_t segment;	/* of device memory */
	uint64_t base;		/* start of the allocation: device address or host pointer */
	uint64_t bytes;		/* of the allocation, as rounded */
	uint64_t offset;	/* of the address in it */
	uint64_t hmva;		/* PINNED, PEER: the card's name for the address */
	uint32_t flags;		/* SPYRERT_POINTER_* */
	uint32_t pad;		/* 0 */
};

/**
 * spyrert_pointer_query() - which allocation a device address lies in
 * @dev: device
 * @ptr: any value
 * @info: out
 * @size: sizeof(*info)
 */
enum spyrert_status spyrert_pointer_query(struct spyrert_device *dev, spyrert_ptr ptr,
					  struct spyrert_pointer_info *info, size_t size);

/**
 * spyrert_host_pointer_query() - which pinned allocation a host address lies in
 * @dev: device
 * @ptr: any value
 * @info: out
 * @size: sizeof(*info)
 */
enum spyrert_status spyrert_host_pointer_query(struct spyrert_device *dev, const void *ptr,
					       struct spyrert_pointer_info *info, size_t size);

/* One kind of memory. reserved >= allocated + what can be reused. */
struct spyrert_memory_stats {
	uint64_t allocated;	/* bytes in use by the caller */
	uint64_t allocated_peak;
	uint64_t reserved;	/* bytes taken from the driver */
	uint64_t reserved_peak;
	uint64_t allocations;	/* in use */
	uint64_t total_allocations;	/* ever */
	uint64_t total_frees;
	uint64_t largest_free;	/* largest free block inside reserved memory */
	uint64_t regions;
	uint64_t ooms;		/* failed allocations */
};

struct spyrert_memory_info {
	uint64_t total;		/* device bytes that allocations could ever have */
	uint64_t free;		/* device bytes that are neither allocated here nor by others */
	uint64_t card_used;	/* taken from the driver by all processes */
	uint64_t largest_free;	/* largest allocation that would succeed now */
	struct spyrert_memory_stats tensor;	/* segments 0 to 6: spyrert_malloc() */
	struct spyrert_memory_stats program;	/* segment 7: programs */
	struct spyrert_memory_stats pinned;	/* host, the library's own included */
};

/**
 * spyrert_memory_get_info() - capacity, use, peak and the largest free block
 * @dev: device
 * @info: out
 * @size: sizeof(*info)
 */
enum spyrert_status spyrert_memory_get_info(struct spyrert_device *dev,
					    struct spyrert_memory_info *info, size_t size);

/**
 * spyrert_memory_reset_peak() - set the peaks to what is in use now
 * @dev: device
 */
enum spyrert_status spyrert_memory_reset_peak(struct spyrert_device *dev);

enum spyrert_alloc_policy {
	SPYRERT_BEST_FIT = 0,	/* smallest free block that is large enough; the default */
	SPYRERT_FIRST_FIT = 1,	/* lowest address */
};

/**
 * spyrert_memory_set_policy() - how spyrert_malloc() chooses among free blocks
 * @dev: device
 * @policy: enum spyrert_alloc_policy
 */
enum spyrert_status spyrert_memory_set_policy(struct spyrert_device *dev,
					      enum spyrert_alloc_policy policy);

/**
 * spyrert_empty_cache() - give regions that hold no allocation back to the driver
 * @dev: device
 */
enum spyrert_status spyrert_empty_cache(struct spyrert_device *dev);

/* --- Sharing -------------------------------------------------------------------------------- */

/**
 * spyrert_malloc_exportable() - allocate device memory that other processes may share
 * @dev: device
 * @bytes: size, rounded up to a multiple of 2 MiB, not 0; at most 16 GB (a segment)
 * @ptr: out: address, a multiple of 2 MiB
 *
 * A buffer of its own, zeroed, that goes back to the driver when it is freed. Used and freed like
 * other device memory. It lies in the card's aperture (2 GiB unless the card was made with more),
 * where other cards reach it, as long as there is room; after that, in the rest of the memory,
 * where only the same card's processes do.
 */
enum spyrert_status spyrert_malloc_exportable(struct spyrert_device *dev, uint64_t bytes,
					      spyrert_ptr *ptr);

/**
 * spyrert_export() - a descriptor by which another process can import device memory
 * @dev: device
 * @ptr: what spyrert_malloc_exportable() gave
 * @fd: out: a dma-buf, close-on-exec; the caller's to pass on (SCM_RIGHTS) and to close
 *
 * The descriptor holds the memory, whatever becomes of this allocation and this process, until a
 * reset of the card. It may be exported any number of times. Writes of one process are seen by the
 * other when the operation that made them has completed; nothing orders the two but what they agree
 * on. SPYRERT_ERROR_NOT_SUPPORTED on backend model, whose cards live in one process.
 */
enum spyrert_status spyrert_export(struct spyrert_device *dev, spyrert_ptr ptr, int *fd);

#define SPYRERT_IMPORT_READONLY		(1u << 0)	/* this device only reads it */

/**
 * spyrert_import() - device memory that another process, open of the card, or card exported
 * @dev: device, of the same card or of one below the same PCIe switch
 * @fd: what spyrert_export() gave there; not closed, and no longer needed afterwards
 * @flags: SPYRERT_IMPORT_*
 * @ptr: out: address here, a multiple of 2 MiB; for copies and programs, and for spyrert_free()
 * @bytes: out: size; may be NULL
 *
 * The memory lives until its last user frees it or ends. SPYRERT_ERROR_REVOKED: the card lost it in
 * a reset since it was allocated; it has to be allocated and exported anew. (Who has it imported
 * when that happens gets SPYRERT_ERROR_DEVICE_LOST, as always.) SPYRERT_ERROR_NOT_SUPPORTED: it is
 * memory of another driver, of a card that shares no switch with this one, or beyond that card's
 * aperture: share host memory, spyrert_host_alloc_exportable().
 *
 * Memory of another card is for copies on this one, spyrert_memcpy_d2d() and SPYRERT_D2D with
 * memory of this card on the other side, which go from card to card over the switch. Anything else,
 * such as copies to the host and fills, is refused; to programs it is no address (a page fault).
 * When the other card is reset or goes away, copies with it end in SPYRERT_ERROR_PAGE_FAULT, or
 * SPYRERT_ERROR_HARDWARE if it was pulled out; all else of this device goes on. Then it is to be
 * freed.
 */
enum spyrert_status spyrert_import(struct spyrert_device *dev, int fd, uint32_t flags,
				   spyrert_ptr *ptr, uint64_t *bytes);

/**
 * spyrert_host_alloc_exportable() - allocate pinned host memory that others may share
 * @dev: device
 * @bytes: size, rounded up to a multiple of 4096, not 0
 * @ptr: out: a multiple of 4096, zeroed
 *
 * Like spyrert_host_alloc(), in a buffer of its own, which goes back when it is freed.
 */
enum spyrert_status spyrert_host_alloc_exportable(struct spyrert_device *dev, size_t bytes,
						  void **ptr);

/**
 * spyrert_host_export() - a descriptor by which others can import pinned host memory
 * @dev: device
 * @ptr: what spyrert_host_alloc_exportable() gave
 * @fd: out: a dma-buf (backend model: a memfd), close-on-exec; the caller's to pass on and to close
 *
 * The descriptor holds the memory, whatever becomes of this allocation, this process and the card.
 */
enum spyrert_status spyrert_host_export(struct spyrert_device *dev, const void *ptr, int *fd);

/**
 * spyrert_host_import() - host memory that another process, card or driver exported
 * @dev: device
 * @fd: a dma-buf in host memory (backend model: a memfd, sealed with F_SEAL_SHRINK); not closed,
 *      and no longer needed afterwards
 * @flags: SPYRERT_IMPORT_*; needed when the descriptor is open for reading only
 * @ptr: out: where it is mapped; for copies without staging, for the words of
 *       spyrert_stream_wait_value(), and for spyrert_host_free()
 * @bytes: out: size; may be NULL
 *
 * Streams of two processes can be ordered by such words: one writes with
 * spyrert_stream_write_value(), the other waits. If both use one card, its own write wakes the wait;
 * words that a CPU or another card writes are found within 10 ms. A process that ends leaves its
 * words as they are. Events do more: spyrert_event_export().
 */
enum spyrert_status spyrert_host_import(struct spyrert_device *dev, int fd, uint32_t flags,
					void **ptr, size_t *bytes);

/* --- Copies --------------------------------------------------------------------------------- */

/**
 * spyrert_memcpy_h2d_async() - copy from host to card
 * @stream: stream
 * @dst: device address, multiple of 128
 * @src: host memory, pinned or not
 * @bytes: any size
 *
 * Pinned memory is read by the card while the stream runs and must stay unchanged until then. Other
 * memory is copied to pinned staging buffers first and may be changed when the call returns; the
 * call may wait for staging buffers.
 */
enum spyrert_status spyrert_memcpy_h2d_async(struct spyrert_stream *stream, spyrert_ptr dst,
					     const void *src, uint64_t bytes);

/**
 * spyrert_memcpy_d2h_async() - copy from card to host
 * @stream: stream
 * @dst: host memory, pinned or not
 * @src: device address, multiple of 128
 * @bytes: any size
 *
 * To memory that is not pinned the call returns when the copy is done.
 */
enum spyrert_status spyrert_memcpy_d2h_async(struct spyrert_stream *stream, void *dst,
					     spyrert_ptr src, uint64_t bytes);

/**
 * spyrert_memcpy_d2d_async() - copy inside the card, or between it and another
 * @stream: stream; of two cards, that which has the other's memory by spyrert_import()
 * @dst: device address, multiple of 128
 * @src: device address, multiple of 128
 * @bytes: any size; the ranges must not overlap
 */
enum spyrert_status spyrert_memcpy_d2d_async(struct spyrert_stream *stream, spyrert_ptr dst,
					     spyrert_ptr src, uint64_t bytes);

/**
 * spyrert_memcpy_h2d() - copy from host to card on the default stream and wait
 * @dev: device
 * @dst: device address, multiple of 128
 * @src: host memory
 * @bytes: any size
 */
enum spyrert_status spyrert_memcpy_h2d(struct spyrert_device *dev, spyrert_ptr dst,
				       const void *src, uint64_t bytes);

/**
 * spyrert_memcpy_d2h() - copy from card to host on the default stream and wait
 * @dev: device
 * @dst: host memory
 * @src: device address, multiple of 128
 * @bytes: any size
 */
enum spyrert_status spyrert_memcpy_d2h(struct spyrert_device *dev, void *dst, spyrert_ptr src,
				       uint64_t bytes);

/**
 * spyrert_memcpy_d2d() - copy inside the card on the default stream and wait
 * @dev: device
 * @dst: device address, multiple of 128
 * @src: device address, multiple of 128
 * @bytes: any size
 */
enum spyrert_status spyrert_memcpy_d2d(struct spyrert_device *dev, spyrert_ptr dst, spyrert_ptr src,
				       uint64_t bytes);

enum spyrert_copy_direction {
	SPYRERT_H2D = 0,
	SPYRERT_D2H = 1,
	SPYRERT_D2D = 2,
};

/*
 * A copy of 1 to 4 dimensions. extent[0] is the number of contiguous bytes; dimension i > 0 repeats
 * extent[i] times with a stride of dst_stride[i] and src_stride[i] bytes (they may be negative or 0
 * on the source side). extent[], strides beyond .dims, and stride[0] are not read.
 */
struct spyrert_copy {
	uint32_t dims;		/* 1 to 4 */
	uint32_t direction;	/* enum spyrert_copy_direction */
	spyrert_ptr dst_dev;	/* H2D, D2D: multiple of 128 */
	spyrert_ptr src_dev;	/* D2H, D2D: multiple of 128 */
	void *dst_host;		/* D2H */
	const void *src_host;	/* H2D */
	uint64_t extent[4];
	int64_t dst_stride[4];
	int64_t src_stride[4];
};

/**
 * spyrert_copy_async() - copy of up to four dimensions
 * @stream: stream
 * @copy: description, not kept
 *
 * Host memory as in spyrert_memcpy_h2d_async() and spyrert_memcpy_d2h_async().
 */
enum spyrert_status spyrert_copy_async(struct spyrert_stream *stream,
				       const struct spyrert_copy *copy);

/**
 * spyrert_copy() - copy of up to four dimensions on the default stream, and wait
 * @dev: device
 * @copy: description
 */
enum spyrert_status spyrert_copy(struct spyrert_device *dev, const struct spyrert_copy *copy);

/**
 * spyrert_fill_async() - fill device memory with a pattern
 * @stream: stream
 * @dst: device address, multiple of 128
 * @pattern: value; its low @width bytes are repeated
 * @width: 1, 2, 4 or 8
 * @bytes: size, a multiple of @width
 */
enum spyrert_status spyrert_fill_async(struct spyrert_stream *stream, spyrert_ptr dst,
				       uint64_t pattern, unsigned int width, uint64_t bytes);

/**
 * spyrert_fill() - fill device memory on the default stream and wait
 * @dev: device
 * @dst: device address, multiple of 128
 * @pattern: value; its low @width bytes are repeated
 * @width: 1, 2, 4 or 8
 * @bytes: size, a multiple of @width
 */
enum spyrert_status spyrert_fill(struct spyrert_device *dev, spyrert_ptr dst, uint64_t pattern,
				 unsigned int width, uint64_t bytes);

/* --- Programs ------------------------------------------------------------------------------- */

/**
 * spyrert_program_load() - prepare a SpyreCode directory
 * @dev: device
 * @path: directory with spyrecode.json and the files it names
 * @program: out
 *
 * Runs the job preparation plan: allocates in the program segment and transfers the job binary.
 * Preparing the same content again gives another reference to the same card memory. What the plan
 * gets wrong is SPYRERT_ERROR_BAD_SPYRECODE with a text that names command and value. Whether the
 * card accepts the job binary shows at launch.
 */
enum spyrert_status spyrert_program_load(struct spyrert_device *dev, const char *path,
					 struct spyrert_program **program);

/* A file of a SpyreCode that is in memory. */
struct spyrert_file {
	const char *name;	/* as spyrecode.json names it */
	const void *data;
	size_t bytes;
};

/**
 * spyrert_program_load_memory() - prepare a SpyreCode that is in memory
 * @dev: device
 * @json: text of spyrecode.json
 * @json_bytes: its length
 * @files: the files it names
 * @nfiles: their number
 * @program: out
 *
 * Nothing is kept of the arguments.
 */
enum spyrert_status spyrert_program_load_memory(struct spyrert_device *dev, const char *json,
						size_t json_bytes, const struct spyrert_file *files,
						size_t nfiles, struct spyrert_program **program);

/**
 * spyrert_program_load_binary() - prepare a job binary without a plan
 * @dev: device
 * @data: job binary (struct spyre_job_header and what follows)
 * @bytes: its size, a multiple of 128
 * @program: out
 *
 * Its launch passes the arguments as symbols. Nothing is kept of @data.
 */
enum spyrert_status spyrert_program_load_binary(struct spyrert_device *dev, const void *data,
						size_t bytes, struct spyrert_program **program);

struct spyrert_program_info {
	spyrert_ptr address;	/* bootstrap address on the card, segment 7 */
	uint64_t bytes;		/* program memory held */
	uint32_t core_mask;	/* cores of the (first) job binary */
	uint32_t symbols;	/* values a launch takes */
	uint32_t computes;	/* ComputeOnDevice steps of a launch */
	uint32_t references;	/* loads of the same content */
	uint8_t digest[32];	/* of the (first) job binary, from its header */
};

/**
 * spyrert_program_get_info() - facts of a prepared program
 * @program: program
 * @info: out
 * @size: sizeof(*info)
 */
enum spyrert_status spyrert_program_get_info(struct spyrert_program *program,
					     struct spyrert_program_info *info, size_t size);

/**
 * spyrert_program_unload() - give a program up
 * @program: program, or NULL
 *
 * Launches already submitted keep it until they are done.
 */
enum spyrert_status spyrert_program_unload(struct spyrert_program *program);

/* LX as this device's last launch left it; the launch fails if another job ran since. */
#define SPYRERT_LAUNCH_KEEP_LX	(1u << 0)

/**
 * spyrert_launch() - run a program
 * @stream: stream
 * @program: program of the same device
 * @symbols: its symbol values (tensor addresses, loop counts), copied
 * @nsymbols: exactly as many as the program takes
 * @core_mask: cores to run on, 0: those the program was built for; else must be equal to them
 * @flags: SPYRERT_LAUNCH_*
 *
 * Runs the job execution plan: host computes, transfers and device computes in their order.
 */
enum spyrert_status spyrert_launch(struct spyrert_stream *stream, struct spyrert_program *program,
				   const uint64_t *symbols, uint32_t nsymbols, uint32_t core_mask,
				   uint32_t flags);

/* --- Streams -------------------------------------------------------------------------------- */

#define SPYRERT_PRIORITY_LOW	0
#define SPYRERT_PRIORITY_NORMAL	1
#define SPYRERT_PRIORITY_HIGH	2	/* CAP_SYS_NICE */
#define SPYRERT_PRIORITY_URGENT	3	/* CAP_SYS_NICE */

struct spyrert_stream_attr {
	int32_t priority;	/* SPYRERT_PRIORITY_* */
	uint32_t ring_entries;	/* operations in flight: power of two, 64 to 65536; 0: 1024 */
	uint64_t timeout;	/* card-time timeout of an operation, SoC cycles; 0: none */
};

/**
 * spyrert_stream_create() - make a stream
 * @dev: device
 * @attr: attributes, or NULL for priority normal and defaults
 * @stream: out
 *
 * The card's queue is taken at the first submission; a limit on queues shows there.
 */
enum spyrert_status spyrert_stream_create(struct spyrert_device *dev,
					  const struct spyrert_stream_attr *attr,
					  struct spyrert_stream **stream);

/**
 * spyrert_stream_destroy() - end a stream
 * @stream: stream, or NULL; not the default stream
 *
 * Waits for its work as long as that makes progress; what makes none for 10 s, or stands behind an
 * error, is cancelled (SPYRERT_ERROR_CANCELLED says so). The stream is gone in every case.
 */
enum spyrert_status spyrert_stream_destroy(struct spyrert_stream *stream);

/**
 * spyrert_default_stream() - the stream of calls that name none
 * @dev: device
 *
 * Belongs to the device. Orders nothing but its own work.
 */
struct spyrert_stream *spyrert_default_stream(struct spyrert_device *dev);

/**
 * spyrert_stream_device() - device of a stream
 * @stream: stream
 *
 * NULL, and spyrert_last_error(), if @stream is NULL.
 */
struct spyrert_device *spyrert_stream_device(struct spyrert_stream *stream);

/**
 * spyrert_stream_id() - number of a stream in its device, 0 for the default stream
 * @stream: stream
 *
 * UINT32_MAX, and spyrert_last_error(), if @stream is NULL.
 */
uint32_t spyrert_stream_id(const struct spyrert_stream *stream);

/**
 * spyrert_stream_query() - is all submitted work done?
 * @stream: stream
 *
 * SPYRERT_SUCCESS, SPYRERT_NOT_READY or the sticky error. Never waits.
 */
enum spyrert_status spyrert_stream_query(struct spyrert_stream *stream);

/**
 * spyrert_stream_synchronize() - wait until all work submitted so far is done
 * @stream: stream
 * @timeout_ns: nanoseconds, 0 or SPYRERT_FOREVER
 *
 * Spins for some tens of microseconds, then sleeps in the kernel.
 */
enum spyrert_status spyrert_stream_synchronize(struct spyrert_stream *stream, uint64_t timeout_ns);

/**
 * spyrert_stream_wait_event() - let later work of a stream wait for an event
 * @stream: stream that waits, on the card; the host does not
 * @event: event of the same device; as it was recorded last at this call; never recorded: no wait
 */
enum spyrert_status spyrert_stream_wait_event(struct spyrert_stream *stream,
					      struct spyrert_event *event);

/**
 * spyrert_stream_wait_sync_file() - let later work of a stream wait for a fence of the kernel
 * @stream: stream that waits
 * @fd: sync_file of any driver; not closed, and no longer needed afterwards
 *
 * A thread of the library sleeps until the stream has got there and the fence has signalled. If the
 * fence ends with an error, the stream fails with SPYRERT_ERROR_DEPENDENCY; if it already has, so
 * does this call.
 *
 * There is no way back: an event cannot become a sync_file. A fence must signal in bounded time
 * whatever a program does, and work of a stream may wait for the program.
 */
enum spyrert_status spyrert_stream_wait_sync_file(struct spyrert_stream *stream, int fd);

/* Called once in any case: status is SPYRERT_SUCCESS or the stream's sticky error. */
typedef void (*spyrert_callback)(void *arg, enum spyrert_status status);

/**
 * spyrert_stream_add_callback() - call a function when all earlier work is done
 * @stream: stream; its later work waits until the function has returned
 * @fn: called on a thread of the library; may use the library, but not wait for @stream
 * @arg: its argument
 */
enum spyrert_status spyrert_stream_add_callback(struct spyrert_stream *stream,
						spyrert_callback fn, void *arg);

/**
 * spyrert_stream_write_value() - store a 64-bit value in pinned host memory in stream order
 * @stream: stream
 * @addr: 8-byte aligned, in pinned host memory that the card may write
 * @value: value
 */
enum spyrert_status spyrert_stream_write_value(struct spyrert_stream *stream, uint64_t *addr,
					       uint64_t value);

/**
 * spyrert_stream_wait_value() - let later work wait until a word reaches a value
 * @stream: stream
 * @addr: 8-byte aligned, in pinned host memory
 * @value: the wait ends when *addr >= @value (unsigned)
 *
 * The CPU writes such words with spyrert_host_write_value(), which wakes the card.
 */
enum spyrert_status spyrert_stream_wait_value(struct spyrert_stream *stream, const uint64_t *addr,
					      uint64_t value);

/**
 * spyrert_host_write_value() - store a word that a stream may wait for, and wake it
 * @dev: device
 * @addr: 8-byte aligned, in pinned host memory
 * @value: value
 */
enum spyrert_status spyrert_host_write_value(struct spyrert_device *dev, uint64_t *addr,
					     uint64_t value);

/**
 * spyrert_stream_nop() - submit an empty operation
 * @stream: stream
 *
 * For measuring and for waking profilers; does nothing on the card.
 */
enum spyrert_status spyrert_stream_nop(struct spyrert_stream *stream);

/* --- Errors --------------------------------------------------------------------------------- */

/*
 * A unit that could not advance when its job deadlocked. Of a race (err_code SPYRE_PE_RACE of
 * spyre/isa.h) the other access: .waits is enum spyre_race_place, .number SPYRE_RACE_*, and .addr of
 * the record the word.
 */
struct spyrert_stuck {
	uint32_t core;
	uint32_t unit;		/* enum spyre_unit */
	uint32_t corelet;
	uint32_t waits;		/* enum spyre_wait_kind */
	uint32_t number;	/* of the FIFO, tag, tile or group */
	uint32_t pc;		/* instruction index in the unit's program */
};

/* A RAS record: numbers as the card gave them, texts as the public records have them. */
struct spyrert_ras {
	uint64_t seq;
	uint64_t time_ns;	/* CLOCK_MONOTONIC when the host got it */
	uint64_t soc_time;
	uint64_t cookie;
	uint64_t addr;		/* faulting or bootstrap address */
	uint32_t code;		/* enum spyre_ras_code */
	uint32_t severity;	/* 0 info, 1 warning, 2 error, 3 fatal */
	uint32_t category;	/* 0 hardware, 1 software, 2 firmware */
	uint32_t action;	/* 0 information, 1 retry, 2 reset, 3 replace */
	uint32_t card_status;	/* enum spyre_status of the control block */
	uint32_t entry;		/* number of the operation in its queue */
	uint32_t syndrome;	/* enum spyre_syndrome */
	uint32_t mode;		/* enum spyre_hmi_mode */
	uint32_t err_code;	/* enum spyre_prog_err */
	uint32_t err_pc;
	uint32_t err_core;	/* 0xffff: none */
	uint32_t err_unit;	/* enum spyre_unit | corelet << 8 */
	uint32_t queue;		/* 0xffffffff: none */
	uint32_t nstuck;	/* stuck units in all */
	uint32_t nstuck_listed;	/* of them in stuck[] */
	struct spyrert_stuck stuck[64];
	char name[64];		/* "RAS::CBRB::ControlBlockSoftFail" */
	char message[192];
	char step[192];		/* what the user can do */
};

/* The sticky error of a stream. */
struct spyrert_error_info {
	uint32_t status;	/* enum spyrert_status, SPYRERT_SUCCESS: none */
	uint32_t card_status;	/* enum spyre_status */
	uint64_t operation;	/* correlation number of the failed operation */
	char text[1024];	/* what spyrert_last_error() says */
	struct spyrert_ras ras;	/* .code 0: the card sent no record */
};

/**
 * spyrert_stream_error() - the sticky error of a stream
 * @stream: stream
 * @info: out; .status is SPYRERT_SUCCESS if there is none
 * @size: sizeof(*info)
 *
 * After an error everything submitted later is refused with the same status, until
 * spyrert_stream_reset() or spyrert_stream_destroy().
 */
enum spyrert_status spyrert_stream_error(struct spyrert_stream *stream,
					 struct spyrert_error_info *info,
					 size_t size);

/**
 * spyrert_stream_reset() - cancel a stream's work and clear its error
 * @stream: stream
 *
 * Work not yet done is cancelled. Events recorded and not reached stay unreached: streams that wait
 * for them get SPYRERT_ERROR_DEPENDENCY.
 */
enum spyrert_status spyrert_stream_reset(struct spyrert_stream *stream);

/**
 * spyrert_ras_read() - RAS records of this device's context
 * @dev: device
 * @after: only records with a greater .seq
 * @records: out, oldest first; a deadlock's continuation records are joined into one
 * @count: in: room, out: records given
 * @size: sizeof(*records)
 */
enum spyrert_status spyrert_ras_read(struct spyrert_device *dev, uint64_t after,
				     struct spyrert_ras *records,
				     size_t *count, size_t size);

/**
 * spyrert_device_ras_read() - RAS records of the whole card
 * @dev: device
 * @after: only records with a greater .seq
 * @records: out, as spyrert_ras_read()
 * @count: in: room, out: records given
 * @size: sizeof(*records)
 *
 * Other users' records are among them, so it needs CAP_PERFMON: else SPYRERT_ERROR_PERMISSION.
 */
enum spyrert_status spyrert_device_ras_read(struct spyrert_device *dev, uint64_t after,
					    struct spyrert_ras *records, size_t *count, size_t size);

/**
 * spyrert_ras_format() - one RAS record as the public one-line JSON
 * @record: record
 * @buf: out, NUL-terminated
 * @bytes: its size
 *
 * Returns the length of the whole line, as snprintf() does; -1, and spyrert_last_error(), if
 * @record is NULL, or @buf is and @bytes is not 0.
 */
int spyrert_ras_format(const struct spyrert_ras *record, char *buf, size_t bytes);

/* --- Events --------------------------------------------------------------------------------- */

#define SPYRERT_EVENT_NO_TIMING	(1u << 0)	/* cheaper: elapsed time is not available */
/* Can be exported; only with NO_TIMING. The card stores a word more for each record. */
#define SPYRERT_EVENT_INTERPROCESS	(1u << 1)

/**
 * spyrert_event_create() - make an event
 * @dev: device
 * @flags: SPYRERT_EVENT_*
 * @event: out
 */
enum spyrert_status spyrert_event_create(struct spyrert_device *dev, uint32_t flags,
					 struct spyrert_event **event);

/**
 * spyrert_event_export() - a descriptor by which another process or device has the same event
 * @event: made with SPYRERT_EVENT_INTERPROCESS, or imported
 * @fd: out: close-on-exec; the caller's to pass on and to close
 *
 * Whoever has the event records it and waits for it as everybody's: it marks what was recorded last.
 */
enum spyrert_status spyrert_event_export(struct spyrert_event *event, int *fd);

/**
 * spyrert_event_import() - an event that another process, or another device here, exported
 * @dev: device whose streams record it or wait for it
 * @fd: what spyrert_event_export() gave; not closed, and no longer needed afterwards
 * @event: out: as if made with SPYRERT_EVENT_INTERPROCESS and SPYRERT_EVENT_NO_TIMING
 *
 * A wait for a record of a stream that failed or was reset ends with SPYRERT_ERROR_DEPENDENCY when
 * the process with that stream has noticed. A process that ends without having destroyed such a
 * stream tells nobody: waits go on, until spyrert_stream_reset() or a timeout. Records by another card
 * are found within 10 ms by streams, and are looked for every millisecond by
 * spyrert_event_synchronize().
 */
enum spyrert_status spyrert_event_import(struct spyrert_device *dev, int fd,
					 struct spyrert_event **event);

/**
 * spyrert_event_destroy() - destroy an event
 * @event: event, or NULL; streams that wait for it go on waiting for what was recorded
 */
enum spyrert_status spyrert_event_destroy(struct spyrert_event *event);

/**
 * spyrert_event_record() - let an event mark this point of a stream
 * @event: event; what it marked before is forgotten
 * @stream: stream of the same device
 *
 * SPYRERT_ERROR_BUSY: it is INTERPROCESS and was recorded 128 times since a record that was not
 * reached yet.
 */
enum spyrert_status spyrert_event_record(struct spyrert_event *event,
					 struct spyrert_stream *stream);

/**
 * spyrert_event_query() - has the recorded point been reached?
 * @event: event; one never recorded counts as reached
 */
enum spyrert_status spyrert_event_query(struct spyrert_event *event);

/**
 * spyrert_event_synchronize() - wait until the recorded point is reached
 * @event: event
 * @timeout_ns: nanoseconds, 0 or SPYRERT_FOREVER
 */
enum spyrert_status spyrert_event_synchronize(struct spyrert_event *event, uint64_t timeout_ns);

/**
 * spyrert_event_timestamp() - the card's 64-bit SoC counter when the point was reached
 * @event: event with timing
 * @cycles: out, SoC cycles
 *
 * SPYRERT_NOT_READY before.
 */
enum spyrert_status spyrert_event_timestamp(struct spyrert_event *event, uint64_t *cycles);

/**
 * spyrert_event_elapsed() - card time between two events
 * @start: event with timing
 * @end: another of the same device
 * @ns: out, nanoseconds; negative if @end came first
 */
enum spyrert_status spyrert_event_elapsed(struct spyrert_event *start, struct spyrert_event *end,
					  double *ns);

/* --- Profiling ------------------------------------------------------------------------------ */

enum spyrert_activity_kind {
	SPYRERT_ACTIVITY_NOP = 0,
	SPYRERT_ACTIVITY_COMPUTE = 1,
	SPYRERT_ACTIVITY_H2D = 2,
	SPYRERT_ACTIVITY_D2H = 3,
	SPYRERT_ACTIVITY_D2D = 4,
	SPYRERT_ACTIVITY_FILL = 5,
	SPYRERT_ACTIVITY_SIGNAL = 6,
	SPYRERT_ACTIVITY_WAIT = 7,
	SPYRERT_ACTIVITY_TIMESTAMP = 8,
};

/* One completed control block, from its response block. */
struct spyrert_activity {
	uint32_t kind;		/* enum spyrert_activity_kind */
	uint32_t stream;	/* spyrert_stream_id() */
	uint64_t correlation;	/* number of the operation in its stream, from 1 */
	uint32_t status;	/* enum spyrert_status */
	uint32_t card_status;	/* enum spyre_status */
	uint32_t ts[5];		/* TS1..TS5, low 32 bits of the SoC counter */
	uint32_t power;		/* accumulated power word */
	uint64_t ts4;		/* 64-bit SoC counter at TS4 */
	uint64_t cycles;	/* COMPUTE: modelled core cycles */
	uint64_t bytes;		/* moved */
	uint64_t submit_ns;	/* CLOCK_MONOTONIC at submission */
	const struct spyrert_program *program;	/* COMPUTE; only for comparing */
};

typedef void (*spyrert_activity_callback)(void *arg, const struct spyrert_activity *activity);

/**
 * spyrert_activity_subscribe() - get a record of every control block that completes
 * @dev: device
 * @fn: called while a stream's lock is held, so it must not call the library; NULL: stop
 * @arg: its argument
 *
 * Records come in submission order per stream, from the calls that submit to, query, wait for, or
 * destroy the stream. Work submitted before the subscription gives no record. No thread is made.
 */
enum spyrert_status spyrert_activity_subscribe(struct spyrert_device *dev,
					       spyrert_activity_callback fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
