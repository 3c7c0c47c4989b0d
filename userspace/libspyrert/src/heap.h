/* SPDX-License-Identifier: MIT */
/*
 * The allocator of addresses: regions that a grow function provides are divided into blocks of a
 * multiple of the stick. It touches no memory it hands out, so it serves device, program and pinned
 * host memory alike, and tests run it without a card. Callers lock.
 */
#ifndef RT_HEAP_H
#define RT_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spyrert.h"

struct rt_region {
	struct rt_region *next;
	uint64_t base;		/* first address of the region, 0 included */
	uint64_t start;		/* first address handed out: a block never starts at address 0 */
	uint64_t size;		/* bytes from base */
	uint64_t used;		/* bytes in used blocks */
	void *cookie;		/* the grower's */
	bool whole;		/* by rt_heap_adopt(): goes with its one block */
	uint32_t flags;		/* for the caller */
};

/* A block, used or free. Blocks of one region are chained in address order without a gap. */
struct rt_block {
	uint64_t addr;
	uint64_t size;
	struct rt_region *region;
	struct rt_block *prev, *next;
	bool used;
	void *owner;		/* for the caller; NULL in a new block */
	/* Index 0: all blocks by address, 1: free blocks by size, then address. */
	struct rt_block *left[2], *right[2];
	uint32_t prio;
	uint64_t max_free;	/* largest free block of the subtree of index 0 */
};

struct rt_heap {
	/*
	 * Provides a region of at least *size bytes: 0 and *base, *size, *cookie set, or a negative
	 * errno. want is what would be good to have, need the least that helps.
	 */
	int (*grow)(void *opaque, uint64_t need, uint64_t want, uint64_t *base, uint64_t *size,
		    void **cookie);
	void (*release)(void *opaque, uint64_t base, uint64_t size, void *cookie);
	void *opaque;
	uint64_t first_region;	/* size of the first region wanted, doubled for each next one ... */
	uint64_t last_region;	/* ... up to this */
	enum spyrert_alloc_policy policy;

	struct rt_region *regions;
	struct rt_block *root[2];
	uint32_t seed;
	uint64_t want;
	struct spyrert_memory_stats stats;
};

void rt_heap_init(struct rt_heap *heap, uint64_t first_region, uint64_t last_region);
/* Releases every region, used or not. */
void rt_heap_fini(struct rt_heap *heap);

/* bytes: not 0, rounded up to a stick. 0 and *block, or a negative errno of grow or -ENOMEM. */
int rt_heap_alloc(struct rt_heap *heap, uint64_t bytes, struct rt_block **block);
void rt_heap_free(struct rt_heap *heap, struct rt_block *block);
/*
 * A used block over the whole of a region that somebody else made; base is not 0. Freeing the block
 * releases the region at once. 0 or -ENOMEM, and then the region is still the caller's.
 */
int rt_heap_adopt(struct rt_heap *heap, uint64_t base, uint64_t size, void *cookie, uint32_t flags,
		  struct rt_block **block);
/* The used block that an address lies in, or NULL. */
struct rt_block *rt_heap_find(struct rt_heap *heap, uint64_t addr);
/* Gives regions without a used block back; returns the bytes. */
uint64_t rt_heap_trim(struct rt_heap *heap);
void rt_heap_get_stats(struct rt_heap *heap, struct spyrert_memory_stats *stats);
void rt_heap_reset_peak(struct rt_heap *heap);
/* Tests: NULL when all invariants hold, else what is wrong. */
const char *rt_heap_check(struct rt_heap *heap);

#endif
