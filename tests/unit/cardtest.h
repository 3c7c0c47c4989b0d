/* SPDX-License-Identifier: MIT */
/*
 * A driver in miniature for the card inside the process: boots the real firmware image, talks to it
 * through the mailbox, builds address spaces in card memory and drives queues as a user does. For
 * tests; nothing of it is particular to them.
 *
 * Functions return 0 or a negative errno unless they say otherwise, and print what went wrong to
 * stderr. A queue belongs to one thread; all else may be called from any.
 */
#ifndef CARDTEST_H
#define CARDTEST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <spyre/cb.h>
#include <spyre/fw.h>
#include <spyre/hw.h>

#include "inproc.h"

/* Waits are bounded by this much host time: sanitizers and busy machines are slow. */
#define CT_TIMEOUT_MS	20000

/*
 * Most instructions of a turn of the firmware's loop, for those with few queues; a command that makes a whole
 * context or the card fail adds CT_TURN_QUEUE for each of its queues. At 800 MHz 100,000 take 125 us.
 */
#define CT_TURN_MAX	200000u
#define CT_TURN_QUEUE	600u

struct ct_card {
	void *owned;		/* list of contexts and queues: they go with the card */
	struct spyre_inproc *ip;
	struct spyre_card *card;
	uint8_t *mem;		/* card memory, from card address 0 */
	bool sliced;		/* its clock moves while a function here waits, a slice at a time */
	uint64_t next_table;	/* tables are given out from here, never taken back */
	uint64_t next_page;	/* and 2 MiB pages from here */

	pthread_mutex_t lock;	/* mailbox: all below */
	struct spyre_msg *cmd, *evt;
	uint32_t cmd_tail, evt_head, tag;
	/* Answers and events that nobody has asked for yet. */
	struct spyre_msg kept[256];
	unsigned int nkept;

	struct spyre_vec_event *vec;	/* event ring of vector 1, or 0 with one vector */
	uint32_t vectors;
	uint32_t vec_seen;
};

struct ct_ctx {
	struct ct_card *card;
	uint32_t id;
	struct spyre_context_table *table;
	uint64_t table_addr;
	struct spyre_arm *arm;
	struct spyre_usage *usage;
	uint64_t next_hmva;
	uint32_t next_page;	/* doorbell page, in blocks of the context's own */
};

struct ct_queue_config {
	uint32_t entries;	/* 0: 256 */
	uint32_t priority;
	uint64_t timeout;
	uint32_t start;
	bool no_response;
};

struct ct_queue {
	struct ct_ctx *ctx;
	uint32_t id;		/* doorbell page */
	uint32_t entries;
	uint32_t tail;		/* next entry to be filled */
	uint32_t rung;		/* tail as last submitted */
	uint64_t doorbells;	/* written */
	struct spyre_cb *ring;
	struct spyre_rb *rb;
	struct spyre_shadow *shadow;
	struct spyre_queue_status *status;
};

/* The image to boot: CT_FIRMWARE in the environment, else what the build made. Caller frees. */
void *ct_image(size_t *size);

/* cfg as for spyre_inproc_new(). vectors: 1 or 8. NULL on failure. */
struct ct_card *ct_boot(const struct spyre_card_config *cfg, size_t arena, uint32_t vectors);
/* Writes an image and releases the core; waits for ONLINE. On failure boot status and log are printed. */
int ct_boot_image(struct ct_card *c, const void *image, size_t size);
/* As above, without waiting and without printing: the boot status. */
uint32_t ct_boot_status(struct ct_card *c, const void *image, size_t size, uint32_t length);
void ct_free(struct ct_card *c);
uint32_t ct_reg(struct ct_card *c, uint32_t offset);
void ct_set_reg(struct ct_card *c, uint32_t offset, uint32_t value);
void ct_set_reg64(struct ct_card *c, uint32_t offset, uint64_t value);
void ct_print_log(struct ct_card *c);

/* Sends a command, does not wait; the tag. */
uint32_t ct_send(struct ct_card *c, uint32_t type, const void *body, uint32_t length);
/* Waits for the answer of a tag: enum spyre_msg_status, or -ETIMEDOUT. msg may be NULL. */
int ct_answer(struct ct_card *c, uint32_t tag, struct spyre_msg *msg, int timeout_ms);
/* Both. */
int ct_call(struct ct_card *c, uint32_t type, const void *body, uint32_t length,
	    struct spyre_msg *answer);
int ct_call_id(struct ct_card *c, uint32_t type, uint32_t id, uint32_t arg);
/* The next event of a type, or any with type 0; -ETIMEDOUT. */
int ct_event(struct ct_card *c, uint32_t type, struct spyre_msg *msg, int timeout_ms);

/* Card memory: physical address of n 2 MiB pages, 0 when there are none left. */
uint64_t ct_pages(struct ct_card *c, unsigned int n);

/* A context with an empty address space. NULL on failure. */
struct ct_ctx *ct_ctx_new(struct ct_card *c, uint32_t id);
/* Its queues must be gone. The handle stays readable until ct_free(), as that of a queue does. */
int ct_ctx_free(struct ct_ctx *x);
/* flags: SPYRE_PTE_WRITE, SPYRE_PTE_PRIV. Addresses are multiples of 2 MiB. */
void ct_map_card(struct ct_ctx *x, uint64_t dmva, uint64_t phys, unsigned int pages,
		 uint64_t flags);
/* Maps host memory that has a bus address; hmva and bytes are multiples of 4096. */
void ct_map_host(struct ct_ctx *x, uint64_t hmva, uint64_t bus, uint64_t bytes, uint64_t flags);
void ct_unmap_host(struct ct_ctx *x, uint64_t hmva, uint64_t bytes);
/* Zeroed host memory, mapped for the context; its HMVA in *hmva. NULL when the arena is full. */
void *ct_host(struct ct_ctx *x, uint64_t bytes, uint64_t flags, uint64_t *hmva);

/* NULL cfg: defaults. NULL on failure. */
struct ct_queue *ct_queue_new(struct ct_ctx *x, const struct ct_queue_config *cfg);
int ct_queue_free(struct ct_queue *q);
/* The message that ct_queue_new would send, for tests that change it. Sets up the memory. */
struct ct_queue *ct_queue_prepare(struct ct_ctx *x, const struct ct_queue_config *cfg,
				  struct spyre_msg_queue *m);

/* Puts one control block into the ring, waiting for room; its index. */
uint32_t ct_put(struct ct_queue *q, const struct spyre_cb *cb);
/* Makes everything put visible to the card and rings if it asks for it. */
void ct_submit(struct ct_queue *q);
/* Rings whatever the card wants. */
void ct_ring(struct ct_queue *q, uint32_t value);
/* Waits until .done has reached index + 1. */
int ct_wait(struct ct_queue *q, uint32_t index, int timeout_ms);
/* Waits for the response block of an entry; NULL: it did not come. */
const struct spyre_rb *ct_response(struct ct_queue *q, uint32_t index, int timeout_ms);
int ct_wait_state(struct ct_queue *q, uint32_t state, int timeout_ms);
/* put, submit, wait for the response: enum spyre_status, or -ETIMEDOUT. */
int ct_run(struct ct_queue *q, const struct spyre_cb *cb);

static inline uint32_t ct_load(const spyre_le32 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline uint64_t ct_load64(const spyre_le64 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

uint64_t ct_now_ns(void);

/* Control blocks. */
struct spyre_cb ct_cb(uint16_t type, uint16_t flags);
struct spyre_cb ct_cb_copy(uint16_t type, uint64_t dst, uint64_t src, uint64_t bytes);
struct spyre_cb ct_cb_fill(uint64_t dst, uint64_t bytes, uint64_t pattern);
struct spyre_cb ct_cb_sync(uint16_t type, uint16_t flags, uint64_t addr, uint64_t value);

#endif
