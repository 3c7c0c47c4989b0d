// SPDX-License-Identifier: MIT
/*
 * Usage: spyre_fuzz [--seed N] [--seconds N] [--programs N] [--pcs]
 *
 * Fuzzes the driver's interface: programs of valid and nearly valid ioctls, mappings, ring entries,
 * closes and passed descriptors, from one description of the interface. A program that reaches code
 * of the driver that none reached before (KCOV) is kept and mutated; on a kernel without KCOV all
 * are made anew. A call that hangs, a taint of the kernel or anything left behind fails. --pcs
 * prints what was reached, as offsets into the module's .text.
 *
 * The same seed gives the same programs where no KCOV leads: what a program reaches depends on
 * timing too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/dma-heap.h>
#include <linux/kcov.h>

#include <drm.h>

#include "spyre_test.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define CALLS		32u	/* of one program */
#define FIELDS		12u
#define CORPUS		4096u
#define POOL		16u
#define COVER		(64u << 10)	/* PCs of one program */
#define SEEN		(64u << 10)	/* hash table of PCs; a power of two */
#define MEM_SIZE	(4 * MB)	/* for BO_USERPTR */
#define SCRATCH		(64u << 10)
#define HANG_S		120	/* without one call that ends */
#define TICK_US		50000	/* signals that interrupt calls */

/* --- What there is ---------------------------------------------------------------------------- */

/* What a program collects, and calls take one of. */
enum pool {
	P_FILE,
	P_HANDLE,
	P_QUEUE,
	P_SYNC,
	P_EVENT,
	P_BUF,
	P_FENCE,
	P_ADDR,
	P_WAIT,
	P_OFFSET,
	P_MAP,
	POOLS
};

enum kind {
	END,
	ZERO,		/* must be 0 */
	BITS,		/* of arg */
	ONEOF,		/* of list */
	TAKE,		/* one of pool arg */
	MADE,		/* out: goes into pool arg when the call succeeded */
	TIME,		/* absolute; soon, or over */
	SIZE,		/* bytes */
	PLACE,		/* offset into something */
	VALUE,		/* small, or anything */
	MEMORY,		/* pages of the program */
	OUT,		/* pointer to room */
	COUNT,		/* elements of the array in the field before */
	FEW,		/* the same, never more: the core warns when it cannot allocate as many */
	WAITS,		/* pointer to an array of struct drm_spyre_wait_entry */
	CBS,		/* of struct spyre_cb */
	SYNCS,		/* of struct drm_spyre_sync */
	HANDLES,	/* of syncobj handles */
	POINTS,		/* of u64 */
};

struct field {
	enum kind kind;
	uint8_t size;
	uint16_t at;
	uint32_t arg;
	const uint64_t *list;
	uint8_t n;
};

struct call_desc {
	const char *name;
	unsigned long request;
	uint8_t weight;
	struct field field[FIELDS];
};

#define F(t, m, k, a)                                                                       \
	{                                                                                   \
		.kind = k, .size = sizeof(((struct t *)0)->m), .at = offsetof(struct t, m), \
		.arg = a                                                                    \
	}
#define FL(t, m, l)                                                                             \
	{                                                                                       \
		.kind = ONEOF, .size = sizeof(((struct t *)0)->m), .at = offsetof(struct t, m), \
		.list = l, .n = ARRAY_SIZE(l)                                                   \
	}

static const uint64_t bo_flags[] = {
	DRM_SPYRE_BO_HOST,
	DRM_SPYRE_BO_DEVICE,
	DRM_SPYRE_BO_DEVICE | DRM_SPYRE_BO_MAPPABLE,
	DRM_SPYRE_BO_HOST,
	DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_DEVICE,
	DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_MAPPABLE,
	0,
};
static const uint64_t entries[] = { 64, 64, 128, 1024, 32, 65536, 131072, 96, 0 };
static const uint64_t priorities[] = { 0, 1, 1, 2, 3, 4 };
static const uint64_t prime_flags[] = { O_CLOEXEC, O_CLOEXEC | O_RDWR, O_CLOEXEC | O_RDWR,
					O_APPEND };
static const uint64_t sync_file_flag[] = { 1, 1, 1, 0 };
static const uint64_t query_types[] = { 0, 1, 2, 3, 4, 5 };
static const uint64_t query_sizes[] = { 0, 4, 8, 64, 112, 200, 4096, 1 << 20 };
static const uint64_t vm_ops[] = { DRM_SPYRE_VM_MAP, DRM_SPYRE_VM_MAP, DRM_SPYRE_VM_MAP, 2 };
static const uint64_t caps[] = { DRM_CAP_PRIME, DRM_CAP_SYNCOBJ, DRM_CAP_SYNCOBJ_TIMELINE, 99 };

/* The interface: what each call takes and makes. A new ioctl is a new line here. */
static const struct call_desc calls[] = {
	{ "QUERY", DRM_IOCTL_SPYRE_QUERY, 4, {
		FL(drm_spyre_query, type, query_types), FL(drm_spyre_query, size, query_sizes),
		F(drm_spyre_query, data, OUT, 0) } },
	{ "BO_CREATE", DRM_IOCTL_SPYRE_BO_CREATE, 12, {
		F(drm_spyre_bo_create, size, SIZE, 0), FL(drm_spyre_bo_create, flags, bo_flags),
		F(drm_spyre_bo_create, handle, MADE, P_HANDLE) } },
	{ "BO_USERPTR", DRM_IOCTL_SPYRE_BO_USERPTR, 6, {
		F(drm_spyre_bo_userptr, addr, MEMORY, 0), F(drm_spyre_bo_userptr, size, SIZE, 0),
		F(drm_spyre_bo_userptr, flags, BITS, DRM_SPYRE_USERPTR_READONLY),
		F(drm_spyre_bo_userptr, handle, MADE, P_HANDLE) } },
	{ "BO_INFO", DRM_IOCTL_SPYRE_BO_INFO, 2, { F(drm_spyre_bo_info, handle, TAKE, P_HANDLE) } },
	{ "BO_MMAP", DRM_IOCTL_SPYRE_BO_MMAP, 6, {
		F(drm_spyre_bo_mmap, handle, TAKE, P_HANDLE), F(drm_spyre_bo_mmap, pad, ZERO, 0),
		F(drm_spyre_bo_mmap, offset, MADE, P_OFFSET) } },
	{ "VM_BIND map", DRM_IOCTL_SPYRE_VM_BIND, 12, {
		FL(drm_spyre_vm_bind, op, vm_ops),
		F(drm_spyre_vm_bind, flags, BITS, DRM_SPYRE_VM_READONLY),
		F(drm_spyre_vm_bind, handle, TAKE, P_HANDLE),
		F(drm_spyre_vm_bind, segment, ZERO, 0),
		F(drm_spyre_vm_bind, offset, PLACE, 0), F(drm_spyre_vm_bind, size, PLACE, 0),
		F(drm_spyre_vm_bind, space, ZERO, 0), F(drm_spyre_vm_bind, pad, ZERO, 0),
		F(drm_spyre_vm_bind, addr, MADE, P_ADDR) } },
	{ "VM_BIND fixed", DRM_IOCTL_SPYRE_VM_BIND, 4, {
		F(drm_spyre_vm_bind, flags, BITS, DRM_SPYRE_VM_READONLY | DRM_SPYRE_VM_FIXED),
		F(drm_spyre_vm_bind, handle, TAKE, P_HANDLE),
		F(drm_spyre_vm_bind, segment, VALUE, 0),
		F(drm_spyre_vm_bind, offset, PLACE, 0), F(drm_spyre_vm_bind, addr, PLACE, 0) } },
	{ "VM_BIND unmap", DRM_IOCTL_SPYRE_VM_BIND, 5, {
		F(drm_spyre_vm_bind, op, BITS, DRM_SPYRE_VM_UNMAP),
		F(drm_spyre_vm_bind, addr, TAKE, P_ADDR),
		F(drm_spyre_vm_bind, space, BITS, 1), F(drm_spyre_vm_bind, flags, ZERO, 0),
		F(drm_spyre_vm_bind, handle, ZERO, 0), F(drm_spyre_vm_bind, offset, ZERO, 0) } },
	{ "QUEUE_CREATE", DRM_IOCTL_SPYRE_QUEUE_CREATE, 8, {
		FL(drm_spyre_queue_create, entries, entries),
		FL(drm_spyre_queue_create, priority, priorities),
		F(drm_spyre_queue_create, timeout, VALUE, 0),
		F(drm_spyre_queue_create, flags, ZERO, 0),
		F(drm_spyre_queue_create, ring_offset, MADE, P_OFFSET),
		F(drm_spyre_queue_create, status_offset, MADE, P_OFFSET),
		F(drm_spyre_queue_create, doorbell_offset, MADE, P_OFFSET),
		F(drm_spyre_queue_create, queue, MADE, P_QUEUE) } },
	{ "QUEUE_DESTROY", DRM_IOCTL_SPYRE_QUEUE_DESTROY, 3, {
		F(drm_spyre_queue_id, queue, TAKE, P_QUEUE),
		F(drm_spyre_queue_id, pad, ZERO, 0) } },
	{ "QUEUE_RESET", DRM_IOCTL_SPYRE_QUEUE_RESET, 4, {
		F(drm_spyre_queue_id, queue, TAKE, P_QUEUE),
		F(drm_spyre_queue_id, pad, ZERO, 0) } },
	{ "QUEUE_KICK", DRM_IOCTL_SPYRE_QUEUE_KICK, 3, {
		F(drm_spyre_queue_id, queue, TAKE, P_QUEUE),
		F(drm_spyre_queue_id, pad, ZERO, 0) } },
	{ "WAIT", DRM_IOCTL_SPYRE_WAIT, 8, {
		F(drm_spyre_wait, entries, WAITS, 0), F(drm_spyre_wait, count, COUNT, 64),
		F(drm_spyre_wait, flags, BITS, DRM_SPYRE_WAIT_ALL),
		F(drm_spyre_wait, timeout_ns, TIME, 0),
		F(drm_spyre_wait, eventfd, ZERO, 0) } },
	{ "WAIT eventfd", DRM_IOCTL_SPYRE_WAIT, 6, {
		F(drm_spyre_wait, entries, WAITS, 0), F(drm_spyre_wait, count, COUNT, 64),
		F(drm_spyre_wait, flags, BITS, DRM_SPYRE_WAIT_ALL | DRM_SPYRE_WAIT_EVENTFD),
		F(drm_spyre_wait, eventfd, TAKE, P_EVENT), F(drm_spyre_wait, timeout_ns, ZERO, 0),
		F(drm_spyre_wait, id, MADE, P_WAIT) } },
	{ "WAIT_CANCEL", DRM_IOCTL_SPYRE_WAIT_CANCEL, 3, {
		F(drm_spyre_wait_cancel, id, TAKE, P_WAIT) } },
	{ "RAS_READ", DRM_IOCTL_SPYRE_RAS_READ, 3, {
		F(drm_spyre_ras_read, records, OUT, 0), F(drm_spyre_ras_read, count, COUNT, 128),
		F(drm_spyre_ras_read, flags, BITS, DRM_SPYRE_RAS_CARD),
		F(drm_spyre_ras_read, after, VALUE, 0) } },
	{ "SUBMIT", DRM_IOCTL_SPYRE_SUBMIT, 14, {
		F(drm_spyre_submit, cbs, CBS, 0), F(drm_spyre_submit, cb_count, COUNT, 8),
		F(drm_spyre_submit, in_syncs, SYNCS, 0), F(drm_spyre_submit, in_count, COUNT, 2),
		F(drm_spyre_submit, out_syncs, SYNCS, 0), F(drm_spyre_submit, out_count, COUNT, 2),
		F(drm_spyre_submit, flags, BITS, DRM_SPYRE_SUBMIT_RESET) } },
	{ "GEM_CLOSE", DRM_IOCTL_GEM_CLOSE, 3, {
		F(drm_gem_close, handle, TAKE, P_HANDLE), F(drm_gem_close, pad, ZERO, 0) } },
	{ "HANDLE_TO_FD", DRM_IOCTL_PRIME_HANDLE_TO_FD, 4, {
		F(drm_prime_handle, handle, TAKE, P_HANDLE),
		FL(drm_prime_handle, flags, prime_flags),
		F(drm_prime_handle, fd, MADE, P_BUF) } },
	{ "FD_TO_HANDLE", DRM_IOCTL_PRIME_FD_TO_HANDLE, 5, {
		F(drm_prime_handle, fd, TAKE, P_BUF),
		F(drm_prime_handle, handle, MADE, P_HANDLE) } },
	{ "SYNCOBJ_CREATE", DRM_IOCTL_SYNCOBJ_CREATE, 5, {
		F(drm_syncobj_create, flags, BITS, DRM_SYNCOBJ_CREATE_SIGNALED),
		F(drm_syncobj_create, handle, MADE, P_SYNC) } },
	{ "SYNCOBJ_DESTROY", DRM_IOCTL_SYNCOBJ_DESTROY, 1, {
		F(drm_syncobj_destroy, handle, TAKE, P_SYNC) } },
	{ "SYNCOBJ_EXPORT", DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, 3, {
		F(drm_syncobj_handle, handle, TAKE, P_SYNC),
		FL(drm_syncobj_handle, flags, sync_file_flag),
		F(drm_syncobj_handle, fd, MADE, P_FENCE) } },
	{ "SYNCOBJ_IMPORT", DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, 2, {
		F(drm_syncobj_handle, handle, TAKE, P_SYNC),
		FL(drm_syncobj_handle, flags, sync_file_flag),
		F(drm_syncobj_handle, fd, TAKE, P_FENCE) } },
	{ "SYNCOBJ_SIGNAL", DRM_IOCTL_SYNCOBJ_SIGNAL, 1, {
		F(drm_syncobj_array, handles, HANDLES, 0),
		F(drm_syncobj_array, count_handles, FEW, 3) } },
	{ "SYNCOBJ_WAIT", DRM_IOCTL_SYNCOBJ_WAIT, 4, {
		F(drm_syncobj_wait, handles, HANDLES, 0),
		F(drm_syncobj_wait, count_handles, FEW, 3),
		F(drm_syncobj_wait, timeout_nsec, TIME, 0),
		F(drm_syncobj_wait, flags, BITS, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL) } },
	{ "SYNCOBJ_TIMELINE_SIGNAL", DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, 1, {
		F(drm_syncobj_timeline_array, points, POINTS, 0),
		F(drm_syncobj_timeline_array, handles, HANDLES, 0),
		F(drm_syncobj_timeline_array, count_handles, FEW, 3) } },
	{ "GET_CAP", DRM_IOCTL_GET_CAP, 1, { FL(drm_get_cap, capability, caps) } },
	{ "GET_MAGIC", DRM_IOCTL_GET_MAGIC, 1, {} },
};

/* What is no ioctl. */
enum {
	OP_OPEN = ARRAY_SIZE(calls),
	OP_CLOSE,
	OP_DUP,
	OP_MMAP,
	OP_MUNMAP,
	OP_TOUCH,
	OP_RING,
	OP_POLL,
	OP_FDINFO,
	OP_USER,
	OP_EVENTFD,
	OP_CLOSE_BUF,
	OP_MMAP_BUF,
	OP_FENCE_INFO,
	OP_HEAP,
	OP_SLEEP,
	OPS
};
static const char *const op_names[] = {
	"open",	   "close",	    "dup",	    "mmap",	  "munmap",
	"touch",   "ring",	    "poll",	    "fdinfo",	  "seteuid",
	"eventfd", "close dma-buf", "mmap dma-buf", "fence info", "foreign dma-buf",
	"sleep",
};
static const uint8_t op_weights[] = { 2, 1, 1, 8, 2, 6, 14, 1, 1, 1, 3, 2, 2, 2, 2, 3 };

static const char *op_name(unsigned int op)
{
	return op < ARRAY_SIZE(calls) ? calls[op].name : op_names[op - ARRAY_SIZE(calls)];
}

/* --- Programs --------------------------------------------------------------------------------- */

/* What the values are made from; the same numbers give the same call. */
struct step {
	uint8_t op;
	uint32_t file;
	uint32_t seed[FIELDS];
};

struct program {
	uint32_t n;
	struct step step[CALLS];
};

/* Shared between the one who runs programs and the one who watches. */
struct shared {
	uint64_t programs, calls, refused;
	uint32_t corpus, pcs;
	uint32_t at;
	bool end;
	struct program now;
	uint64_t seen[SEEN];
};

static struct shared *shared;
static uint64_t rng;

static uint32_t random32(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 32;
}

static unsigned int pick_op(void)
{
	unsigned int sum = 0, i, at;

	for (i = 0; i < OPS; i++)
		sum += i < ARRAY_SIZE(calls) ? calls[i].weight : op_weights[i - ARRAY_SIZE(calls)];
	at = random32(&rng) % sum;
	for (i = 0;; i++) {
		unsigned int w =
			i < ARRAY_SIZE(calls) ? calls[i].weight : op_weights[i - ARRAY_SIZE(calls)];

		if (at < w)
			return i;
		at -= w;
	}
}

static void new_step(struct step *s, unsigned int op)
{
	unsigned int i;

	s->op = op;
	s->file = random32(&rng);
	for (i = 0; i < FIELDS; i++)
		s->seed[i] = random32(&rng);
}

static unsigned int op_named(const char *name)
{
	unsigned int i;

	for (i = 0; strcmp(op_name(i), name); i++)
		;
	return i;
}

/* Something to work with first, then whatever comes. */
#define FIRST	8u

static void new_program(struct program *p)
{
	static const char *const first[][FIRST] = {
		{ "BO_CREATE", "BO_CREATE", "VM_BIND map", "VM_BIND map", "QUEUE_CREATE", "ring",
		  "WAIT", "BO_MMAP" },
		{ "BO_CREATE", "VM_BIND map", "SYNCOBJ_CREATE", "SUBMIT", "SYNCOBJ_EXPORT",
		  "fence info", "SUBMIT", "SYNCOBJ_WAIT" },
		{ "BO_CREATE", "HANDLE_TO_FD", "open", "FD_TO_HANDLE", "foreign dma-buf",
		  "FD_TO_HANDLE", "VM_BIND map", "mmap dma-buf" },
	};
	const char * const *start = first[random32(&rng) % ARRAY_SIZE(first)];
	unsigned int n = random32(&rng) % (FIRST + 1), i;

	p->n = n + 1 + random32(&rng) % (CALLS - n);
	for (i = 0; i < p->n; i++)
		new_step(&p->step[i], i < n ? op_named(start[i]) : pick_op());
}

static void mutate(struct program *p, const struct program *other)
{
	unsigned int i, j, times = 1 + random32(&rng) % 4;

	while (times--) {
		i = random32(&rng) % p->n;
		switch (random32(&rng) % 6) {
		case 0:	/* another value */
		case 1:
			p->step[i].seed[random32(&rng) % FIELDS] = random32(&rng);
			break;
		case 2:	/* another call */
			new_step(&p->step[i], pick_op());
			break;
		case 3:	/* one more, or once more */
			if (p->n == CALLS)
				break;
			memmove(&p->step[i + 1], &p->step[i], (p->n - i) * sizeof(p->step[0]));
			p->n++;
			if (random32(&rng) % 2)
				new_step(&p->step[i], pick_op());
			break;
		case 4:	/* one less */
			if (p->n == 1)
				break;
			p->n--;
			memmove(&p->step[i], &p->step[i + 1], (p->n - i) * sizeof(p->step[0]));
			break;
		case 5:	/* the end of another */
			j = random32(&rng) % other->n;
			while (i < CALLS && j < other->n)
				p->step[i++] = other->step[j++];
			p->n = i > p->n ? i : p->n;
			break;
		}
	}
}

/* --- Running ---------------------------------------------------------------------------------- */

struct map {
	void *at;
	uint64_t size;
	bool write;
};

static struct {
	uint64_t pool[POOLS][POOL];
	unsigned int n[POOLS];
	struct map map[POOL];
	struct queue ring[POOL];	/* as in the pool of queues */
} run;

static uint8_t *memory, *scratch;
static char node[64];

static void put(enum pool p, uint64_t value)
{
	unsigned int n = run.n[p];

	/* A full pool forgets the oldest, which stays open: the end of the program closes it. */
	if (n == POOL) {
		memmove(&run.pool[p][0], &run.pool[p][1], (POOL - 1) * sizeof(run.pool[p][0]));
		n--;
	}
	run.pool[p][n] = value;
	run.n[p] = n + 1;
}

static uint64_t take(enum pool p, uint32_t seed)
{
	/* One in sixteen is nobody's, or of another kind. */
	if (!run.n[p] || seed >> 28 == 0)
		return seed & 1 ? seed & 0xff : 0;
	return run.pool[p][seed % run.n[p]];
}

static uint64_t any_value(uint32_t seed)
{
	static const uint64_t odd[] = {
		0,	    1,		2,	    7,		8,	    63,		64,
		127,	    128,	4095,	    4096,	4097,	    0x7fffffff, 0x80000000,
		0xffffffff, 1ull << 32, 1ull << 38, 1ull << 52, 1ull << 63, ~0ull,	~0ull << 12,
	};

	return odd[seed % ARRAY_SIZE(odd)];
}

static uint64_t in_card_space(uint64_t *state)
{
	static const uint64_t offsets[] = { 0, 0, 0, 128, 4096, 8, 64, 1, PAGE2M, ~0ull };

	return take(P_ADDR, random32(state)) + offsets[random32(state) % ARRAY_SIZE(offsets)];
}

/* Any type; mostly with addresses that are bound. */
static struct spyre_cb make_cb(uint32_t seed)
{
	static const uint64_t bytes[] = { 128, 128, 256, 4096, PAGE2M, 0, 64, ~0ull };
	static const uint16_t flags[] = {
		0,
		0,
		SPYRE_CB_F_BARRIER,
		SPYRE_CB_F_RESPONSE,
		SPYRE_CB_F_HOST,
		SPYRE_CB_F_LIST,
		SPYRE_CB_F_ADD,
		SPYRE_CB_F_SYM_HOST,
		SPYRE_CB_F_INTERRUPT,
		0xffff,
	};
	uint64_t state = seed;
	struct spyre_cb cb = {
		.type = random32(&state) % (SPYRE_CB_TYPES + 1),
		.flags = flags[random32(&state) % ARRAY_SIZE(flags)] | flags[random32(&state) % 4],
	};

	if (random32(&state) % 3 == 0)
		cb.type = SPYRE_CB_FILL;
	switch (cb.type) {
	case SPYRE_CB_DMAI:
	case SPYRE_CB_DMAO:
	case SPYRE_CB_DMAX:
		if (cb.flags & SPYRE_CB_F_LIST) {
			cb.u.raw[0] = in_card_space(&state);
			cb.u.list.entries = random32(&state) % 3;
			break;
		}
		cb.u.dma.dst = in_card_space(&state);
		cb.u.dma.src = in_card_space(&state);
		cb.u.dma.bytes = bytes[random32(&state) % ARRAY_SIZE(bytes)];
		cb.u.dma.ndims = 1 + (random32(&state) % 8 == 0) * random32(&state);
		break;
	case SPYRE_CB_FILL:
		cb.u.fill.dst = in_card_space(&state);
		cb.u.fill.bytes = bytes[random32(&state) % ARRAY_SIZE(bytes)];
		break;
	case SPYRE_CB_COMPUTE:
		cb.u.compute.bootaddr = in_card_space(&state);
		cb.u.compute.symbols = random32(&state) % 2 ? in_card_space(&state) : 0;
		cb.u.compute.nsymbols = random32(&state) % 3;
		break;
	case SPYRE_CB_SIGNAL:
	case SPYRE_CB_WAIT:
	case SPYRE_CB_TIMESTAMP:
		cb.u.sync.addr = in_card_space(&state);
		cb.u.sync.value = random32(&state) % 4;
		break;
	}
	if (random32(&state) % 16 == 0)
		((uint64_t *)&cb)[random32(&state) % (sizeof(cb) / 8)] =
			any_value(random32(&state));
	return cb;
}

static int64_t make_time(uint32_t seed)
{
	/* What waits longer than a tick is interrupted and goes on: a second at most. */
	static const int ms[] = { -1, 0, 1, 5, 20, 100, 1000 };

	return seed >> 28 == 0 ? 0 : after_ms(ms[seed % ARRAY_SIZE(ms)]);
}

static uint64_t make_size(uint32_t seed)
{
	static const uint64_t sizes[] = {
		1,	    4096,	4096, 8192,	  65536,      PAGE2M, PAGE2M + 4096,
		2 * PAGE2M, 8 * PAGE2M, 0,    1ull << 36, 1ull << 63, 4097,   ~0ull,
	};

	return sizes[seed % ARRAY_SIZE(sizes)];
}

static uint64_t make_place(uint32_t seed)
{
	static const uint64_t places[] = { 0,	 0, 0,		0,	    4096, PAGE2M,
					   8192, 8, 1ull << 35, 3ull << 35, ~0ull };

	return places[seed % ARRAY_SIZE(places)];
}

/* The elements of an array, of which the next field says how many count. */
static uint64_t make_array(enum kind kind, uint32_t seed, unsigned int slot)
{
	uint64_t state = seed;
	uint8_t *at = scratch + slot * (SCRATCH / FIELDS & ~63u);
	unsigned int i;

	if (seed >> 28 == 0)
		return seed & 1 ? 0 : (uintptr_t)-4096;
	for (i = 0; i < 8; i++) {
		switch (kind) {
		case WAITS: {
			bool queue = random32(&state) % 2;

			((struct drm_spyre_wait_entry *)at)[i] = (struct drm_spyre_wait_entry){
				.kind = random32(&state) % 16 ? queue : random32(&state),
				.handle = take(queue ? P_QUEUE : P_HANDLE, random32(&state)),
				.offset = queue ? random32(&state) % 16 == 0
						: make_place(random32(&state)),
				.value = random32(&state) % 4 ? random32(&state) % 3
							      : any_value(random32(&state)),
			};
			break;
		}
		case CBS:
			((struct spyre_cb *)at)[i] = make_cb(random32(&state));
			/* What SUBMIT never takes hides the rest. */
			if (random32(&state) % 8)
				((struct spyre_cb *)at)[i] = cb_plain(((struct spyre_cb *)at)[i]);
			break;
		case SYNCS:
			((struct drm_spyre_sync *)at)[i] = (struct drm_spyre_sync){
				.handle = take(P_SYNC, random32(&state)),
				.flags = random32(&state) % 32 == 0,
				.point = random32(&state) % 2 ? random32(&state) % 8 : 0,
			};
			break;
		case HANDLES:
			((uint32_t *)at)[i] = take(P_SYNC, random32(&state));
			break;
		case POINTS:
			((uint64_t *)at)[i] = random32(&state) % 8;
			break;
		default:
			break;
		}
	}
	return (uintptr_t)at;
}

static uint64_t make_value(const struct field *f, uint32_t seed, unsigned int slot)
{
	/* One in 64 is anything at all. */
	if (seed >> 26 == 0 && f->kind != TIME && f->kind != FEW)
		return any_value(seed);
	switch (f->kind) {
	case BITS:
		/* All of what it takes more often than a part. */
		return seed % 4 == 3 ? seed & f->arg : seed % 4 ? f->arg : 0;
	case ONEOF:
		return f->list[seed % f->n];
	case TAKE:
		return take(f->arg, seed);
	case TIME:
		return make_time(seed);
	case SIZE:
		return make_size(seed);
	case PLACE:
		return make_place(seed);
	case VALUE:
		return seed % 2 ? seed % 9 : any_value(seed >> 1);
	case MEMORY:
		return (uintptr_t)memory + (seed % 4 ? 0 : (seed >> 4) % MEM_SIZE & ~4095u);
	case OUT:
		return seed % 16 ? (uintptr_t)scratch : seed % 32 ? 0 : (uintptr_t)-4096;
	case COUNT:
		return seed % 16 ? seed % 4 : seed % 32 ? f->arg : f->arg + 1;
	case FEW:
		return seed % (f->arg + 1);
	case WAITS:
	case CBS:
	case SYNCS:
	case HANDLES:
	case POINTS:
		return make_array(f->kind, seed, slot);
	default:
		return 0;
	}
}

/* The mappings of a queue, as a program makes them: where they are, entries go into its ring. */
static void map_queue(int fd, const struct drm_spyre_queue_create *c)
{
	struct queue *q = &run.ring[run.n[P_QUEUE] - 1];
	char *ring, *status;
	void *db;

	/* A full pool is one place for all that come then. */
	if (q->ring)
		queue_unmap(q);
	*q = (struct queue){};
	ring = mmap(NULL, c->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, c->ring_offset);
	status = mmap(NULL, c->status_size, PROT_READ, MAP_SHARED, fd, c->status_offset);
	db = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, c->doorbell_offset);
	if (ring == MAP_FAILED || status == MAP_FAILED || db == MAP_FAILED) {
		if (ring != MAP_FAILED)
			munmap(ring, c->ring_size);
		if (status != MAP_FAILED)
			munmap(status, c->status_size);
		if (db != MAP_FAILED)
			munmap(db, 4096);
		return;
	}
	*q = (struct queue){
		.fd = fd, .id = c->queue, .entries = c->entries, .ring_size = c->ring_size,
		.status_size = c->status_size, .ring = (struct spyre_cb *)ring,
		.shadow = (volatile struct spyre_shadow *)(ring + c->shadow_at),
		.status = (volatile struct spyre_queue_status *)status,
		.response = (volatile struct spyre_rb *)(status + c->response_at), .doorbell = db,
	};
}

static int run_ioctl(const struct call_desc *d, const struct step *s)
{
	uint64_t arg[32] = {};
	uint8_t *bytes = (uint8_t *)arg;
	const struct field *f;
	unsigned int i;
	uint64_t v;
	int fd, ret;

	fd = take(P_FILE, s->file | 1u << 28);
	for (i = 0; i < FIELDS && d->field[i].kind; i++) {
		f = &d->field[i];
		if (f->kind == MADE)
			continue;
		v = make_value(f, s->seed[i], i);
		memcpy(bytes + f->at, &v, f->size);
	}
	ret = ioctl(fd, d->request, arg) < 0 ? -errno : 0;
	if (ret)
		return ret;
	for (i = 0; i < FIELDS && d->field[i].kind; i++) {
		f = &d->field[i];
		if (f->kind != MADE)
			continue;
		v = 0;
		memcpy(&v, bytes + f->at, f->size);
		put(f->arg, v);
		if (f->arg == P_QUEUE)
			map_queue(fd, (struct drm_spyre_queue_create *)arg);
	}
	return 0;
}

static void add_map(void *at, uint64_t size, bool write)
{
	unsigned int i;

	for (i = 0; i < POOL && run.map[i].at; i++)
		;
	if (i == POOL)
		munmap(at, size);
	else
		run.map[i] = (struct map){ at, size, write };
}

static int run_mmap(int fd, uint64_t offset, const struct step *s)
{
	static const int prots[] = { PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE,
				     PROT_EXEC };
	static const uint64_t sizes[] = { 4096, 4096, 8192, PAGE2M, 1 };
	uint64_t size = sizes[s->seed[1] % ARRAY_SIZE(sizes)];
	int prot = prots[s->seed[2] % ARRAY_SIZE(prots)];
	void *at = mmap(NULL, size, prot, s->seed[3] % 16 ? MAP_SHARED : MAP_PRIVATE, fd, offset);

	if (at == MAP_FAILED)
		return -errno;
	add_map(at, size, prot & PROT_WRITE);
	return 0;
}

static int run_other(const struct step *s)
{
	int fd = take(P_FILE, s->file | 1u << 28), file;
	struct map *m = &run.map[s->seed[0] % POOL];
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };
	struct dma_heap_allocation_data heap = { .len = 4096 << s->seed[0] % 4,
						 .fd_flags = O_RDWR | O_CLOEXEC };
	/* Of those that there are. */
	struct queue *q = &run.ring[run.n[P_QUEUE] ? s->seed[0] % run.n[P_QUEUE] : 0];
	struct spyre_cb cb;
	char path[64], buf[512];
	unsigned int i;

	switch (s->op) {
	case OP_OPEN:
		file = open(node, s->seed[0] % 8 ? O_RDWR | O_CLOEXEC : O_RDONLY | O_CLOEXEC);
		if (file < 0)
			return -errno;
		put(P_FILE, file);
		return 0;
	case OP_CLOSE:
		if (run.n[P_FILE] < 2)
			return 0;
		/* The descriptor stays in the pool: calls on it are refused, or meet whatever took
		 * its number. */
		return close(fd) ? -errno : 0;
	case OP_DUP:
		file = fcntl(fd, F_DUPFD_CLOEXEC, 100);
		if (file < 0)
			return -errno;
		put(P_FILE, file);
		return 0;
	case OP_MMAP:
		return run_mmap(fd, take(P_OFFSET, s->seed[0]), s);
	case OP_MMAP_BUF:
		return run_mmap(take(P_BUF, s->seed[0]), 0, s);
	case OP_MUNMAP:
		if (m->at)
			munmap(m->at, m->size);
		*m = (struct map){};
		return 0;
	case OP_TOUCH:
		if (!m->at)
			return 0;
		/* What cannot be read here is found by the kernel, which does not die of it. */
		for (i = 0; i < 2; i++) {
			uint64_t at =
				(s->seed[1 + i] % (m->size > 4095 ? m->size : 4096)) & ~4095ull;

			if (write(run.pool[P_EVENT][0], (char *)m->at + at, 8) < 0 &&
			    errno == EFAULT)
				return -EFAULT;
			if (m->write)
				(void)!read(run.pool[P_EVENT][0], (char *)m->at + at, 8);
		}
		return 0;
	case OP_RING:
		if (!q->ring)
			return 0;
		if (q->tail - q->status->fetched >= q->entries)
			return -EAGAIN;
		cb = make_cb(s->seed[1]);
		queue_submit(q, &cb);
		if (s->seed[2] % 64 == 0)
			q->shadow->tail = s->seed[3];
		return 0;
	case OP_POLL:
		poll(&p, 1, 0);
		return 0;
	case OP_FDINFO:
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		return read_file(path, buf, sizeof(buf));
	case OP_USER:
		return seteuid(geteuid() ? 0 : 1000) ? -errno : 0;
	case OP_EVENTFD:
		file = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (file < 0)
			return -errno;
		put(P_EVENT, file);
		return 0;
	case OP_CLOSE_BUF:
		if (!run.n[P_BUF])
			return 0;
		return close(take(P_BUF, s->seed[0] | 1u << 28)) ? -errno : 0;
	case OP_FENCE_INFO:
		if (!run.n[P_FENCE])
			return 0;
		return file_status(take(P_FENCE, s->seed[0]), NULL) < 0;
	case OP_HEAP:
		file = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
		if (file < 0)
			return -errno;
		i = ioctl(file, DMA_HEAP_IOCTL_ALLOC, &heap) < 0 ? errno : 0;
		close(file);
		if (i)
			return -i;
		put(P_BUF, heap.fd);
		return 0;
	case OP_SLEEP:
		usleep(s->seed[0] % 3000);
		return 0;
	}
	return 0;
}

/* Of kinds of descriptors that programs make, what is open. */
static void run_end(int lowest)
{
	unsigned int i;

	if (geteuid())
		(void)!seteuid(0);
	for (i = 0; i < POOL; i++) {
		if (run.map[i].at)
			munmap(run.map[i].at, run.map[i].size);
		if (run.ring[i].ring)
			queue_unmap(&run.ring[i]);
	}
	close_range(lowest, ~0u, 0);
	memset(&run, 0, sizeof(run));
}

static void run_program(const struct program *p, int lowest)
{
	unsigned int i;
	int fd, ret;

	shared->now = *p;
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		put(P_FILE, fd);
	put(P_EVENT, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	for (i = 0; i < p->n; i++) {
		const struct step *s = &p->step[i];

		shared->at = i;
		ret = s->op < ARRAY_SIZE(calls) ? run_ioctl(&calls[s->op], s) : run_other(s);
		shared->calls++;
		if (ret)
			shared->refused++;
	}
	shared->at = p->n;
	run_end(lowest);
	shared->programs++;
}

/* --- Coverage --------------------------------------------------------------------------------- */

static unsigned long *cover;
static uint64_t text_base;

/* 0 or -errno: no KCOV, programs are not led by what they reach. */
static int cover_open(void)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	char text[32];

	if (fd < 0)
		return -errno;
	if (ioctl(fd, KCOV_INIT_TRACE, COVER))
		return -errno;
	cover = mmap(NULL, COVER * sizeof(*cover), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (cover == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC)) {
		cover = NULL;
		return -errno;
	}
	if (!read_file("/sys/module/spyre/sections/.text", text, sizeof(text)))
		text_base = strtoull(text, NULL, 16);
	return 0;
}

/* How many of the last program's PCs are new. */
static unsigned int cover_new(void)
{
	unsigned long n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED), i;
	unsigned int found = 0;

	for (i = 1; i <= n && i < COVER; i++) {
		uint64_t pc = cover[i], at = (pc * 0x9e3779b97f4a7c15ull) >> 48 & (SEEN - 1);

		while (shared->seen[at] && shared->seen[at] != pc)
			at = (at + 1) & (SEEN - 1);
		if (shared->seen[at])
			continue;
		/* Never full: a table that could be would not end. */
		if (shared->pcs >= SEEN - SEEN / 4)
			break;
		shared->seen[at] = pc;
		shared->pcs++;
		found++;
	}
	__atomic_store_n(&cover[0], 0, __ATOMIC_RELAXED);
	return found;
}

/* Room with nothing behind it for as far as any 32-bit size reaches: the kernel and the card write
 * there. */
static uint8_t *guarded(uint64_t size)
{
	uint8_t *at = mmap(NULL, size + (8ull << 30), PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED || mprotect(at, size, PROT_READ | PROT_WRITE)) {
		perror("spyre_fuzz: memory");
		exit(1);
	}
	return at;
}

/* --- The two processes ------------------------------------------------------------------------ */

static void tick(int sig)
{
}

static void work(double seconds, uint64_t programs)
{
	static struct program corpus[CORPUS], p;
	struct itimerval every = { { 0, TICK_US }, { 0, TICK_US } };
	struct sigaction act = { .sa_handler = tick };
	struct rlimit memlock = { 1 * MB, 1 * MB };
	int64_t end = after_ms(seconds * 1000);
	int lowest;

	/* Calls that wait are interrupted. */
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	setrlimit(RLIMIT_MEMLOCK, &memlock);
	lowest = dup(0);
	close(lowest);
	while (shared->programs < programs && after_ms(0) < end) {
		uint32_t n = shared->corpus;

		if (n && random32(&rng) % 4) {
			p = corpus[random32(&rng) % n];
			mutate(&p, &corpus[random32(&rng) % n]);
		} else {
			new_program(&p);
		}
		if (cover)
			__atomic_store_n(&cover[0], 0, __ATOMIC_RELAXED);
		run_program(&p, lowest);
		if (cover && cover_new() && n < CORPUS) {
			corpus[n] = p;
			shared->corpus++;
		}
	}
	shared->end = true;
	_exit(0);
}

static void say_program(void)
{
	const struct program *p = &shared->now;
	unsigned int i, j;

	for (i = 0; i < p->n; i++) {
		printf("# %s%s file %x", i == shared->at ? "> " : "", op_name(p->step[i].op),
		       p->step[i].file);
		for (j = 0; j < FIELDS; j++)
			printf(" %x", p->step[i].seed[j]);
		printf("\n");
	}
}

/* Bits that a WARNING, an Oops or a bad page set. */
static unsigned long taints(void)
{
	char text[32];

	if (read_file("/proc/sys/kernel/tainted", text, sizeof(text)))
		return 0;
	return strtoul(text, NULL, 10) & (1 << 5 | 1 << 7 | 1 << 9 | 1 << 14);
}

/* NULL, or what went wrong. */
static const char *watch(pid_t pid, unsigned long before)
{
	int64_t last = after_ms(0);
	uint64_t calls = 0;
	int status;

	for (;;) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) && !WEXITSTATUS(status) ? NULL : "the fuzzer died";
		if (taints() & ~before) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return "the kernel is tainted";
		}
		if (shared->calls + shared->programs != calls) {
			calls = shared->calls + shared->programs;
			last = after_ms(0);
		} else if (after_ms(-1000ll * HANG_S) > last) {
			kill(pid, SIGKILL);
			return "a call hangs";
		}
		usleep(200000);
	}
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (end == text || *end) {
		fprintf(stderr, "spyre_fuzz: '%s' is no number\n", text);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "programs", required_argument, NULL, 'n' },
		{ "pcs", no_argument, NULL, 'p' },
		{},
	};
	uint64_t seed = 1, seconds = 1 << 20, programs = UINT64_MAX;
	const char *wrong;
	struct baseline base;
	unsigned long before;
	char link[64];
	bool pcs = false, kcov;
	unsigned int i;
	pid_t pid;
	int c, fd;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			seed = number(optarg);
			break;
		case 't':
			seconds = number(optarg);
			break;
		case 'n':
			programs = number(optarg);
			break;
		case 'p':
			pcs = true;
			break;
		default:
			fprintf(stderr, "usage: spyre_fuzz [--seed N] [--seconds N] [--programs N] "
					"[--pcs]\n");
			return 2;
		}
	}
	if (seconds == 1 << 20 && programs == UINT64_MAX)
		seconds = 10;
	printf("TAP version 13\n1..1\n");
	fd = card_open();
	if (fd < 0) {
		printf("Bail out! no card: %s\n", strerror(-fd));
		return 1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, node, sizeof(node) - 1) <= 0)
		return 1;
	close(fd);
	/* Mounts debugfs where it is not. */
	debugfs_path("");
	baseline_take(&base);
	before = taints();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	rng = seed;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		memory = guarded(MEM_SIZE);
		scratch = guarded(SCRATCH);
		cover_open();
		work(seconds, programs);
	}
	kcov = !access("/sys/kernel/debug/kcov", F_OK);
	wrong = watch(pid, before);
	if (wrong)
		say_program();
	else if (!shared->programs)
		wrong = "no program ran";
	else if (kcov && !shared->pcs)
		wrong = "KCOV saw nothing of the driver: was it built for this kernel?";
	else if (card_works())
		wrong = "the card does not work afterwards";
	else if (back_to_baseline(&base))
		wrong = "something was left behind";
	printf("# seed %llu: %llu programs, %llu calls, %llu refused, ", (unsigned long long)seed,
	       (unsigned long long)shared->programs, (unsigned long long)shared->calls,
	       (unsigned long long)shared->refused);
	if (kcov)
		printf("%u PCs reached, %u programs kept\n", shared->pcs, shared->corpus);
	else
		printf("not led by coverage: this kernel has no KCOV\n");
	for (i = 0; pcs && i < SEEN; i++)
		if (shared->seen[i])
			printf("pc 0x%llx\n", (unsigned long long)(shared->seen[i] - text_base));
	if (wrong)
		printf("# %s\n", wrong);
	printf("%sok 1 fuzz\n", wrong ? "not " : "");
	return wrong ? 1 : 0;
}
