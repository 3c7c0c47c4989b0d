// SPDX-License-Identifier: MIT
/*
 * Two treaps over the same blocks: by address, with the largest free size of each subtree, which
 * answers "which block is this" and "first fit"; and the free ones by size, which answers "best
 * fit". Every operation is O(log n), and nothing depends on the number of regions but trimming.
 */
#include "heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BY_ADDR, BY_SIZE };

static bool block_less(int k, const struct rt_block *a, const struct rt_block *b)
{
	if (k == BY_SIZE && a->size != b->size)
		return a->size < b->size;
	return a->addr < b->addr;
}

static void block_pull(int k, struct rt_block *b)
{
	uint64_t max;

	if (k != BY_ADDR)
		return;
	max = b->used ? 0 : b->size;
	if (b->left[k] && b->left[k]->max_free > max)
		max = b->left[k]->max_free;
	if (b->right[k] && b->right[k]->max_free > max)
		max = b->right[k]->max_free;
	b->max_free = max;
}

static struct rt_block *tree_merge(int k, struct rt_block *a, struct rt_block *b)
{
	if (!a)
		return b;
	if (!b)
		return a;
	if (a->prio > b->prio) {
		a->right[k] = tree_merge(k, a->right[k], b);
		block_pull(k, a);
		return a;
	}
	b->left[k] = tree_merge(k, a, b->left[k]);
	block_pull(k, b);
	return b;
}

static void tree_split(int k, struct rt_block *t, const struct rt_block *at, struct rt_block **l,
		       struct rt_block **r)
{
	if (!t) {
		*l = NULL;
		*r = NULL;
	} else if (block_less(k, t, at)) {
		tree_split(k, t->right[k], at, &t->right[k], r);
		block_pull(k, t);
		*l = t;
	} else {
		tree_split(k, t->left[k], at, l, &t->left[k]);
		block_pull(k, t);
		*r = t;
	}
}

static void tree_insert(struct rt_heap *heap, int k, struct rt_block *b)
{
	struct rt_block *l, *r;

	b->left[k] = NULL;
	b->right[k] = NULL;
	block_pull(k, b);
	tree_split(k, heap->root[k], b, &l, &r);
	heap->root[k] = tree_merge(k, tree_merge(k, l, b), r);
}

static struct rt_block *tree_without(int k, struct rt_block *t, struct rt_block *b)
{
	if (t == b)
		return tree_merge(k, t->left[k], t->right[k]);
	if (block_less(k, b, t))
		t->left[k] = tree_without(k, t->left[k], b);
	else
		t->right[k] = tree_without(k, t->right[k], b);
	block_pull(k, t);
	return t;
}

static void tree_erase(struct rt_heap *heap, int k, struct rt_block *b)
{
	heap->root[k] = tree_without(k, heap->root[k], b);
}

/* Recomputes the subtree maxima on the way from the root to b after b changed. */
static void tree_refresh(struct rt_block *t, struct rt_block *b)
{
	if (t != b)
		tree_refresh(b->addr < t->addr ? t->left[BY_ADDR] : t->right[BY_ADDR], b);
	block_pull(BY_ADDR, t);
}

static struct rt_block *find_first_fit(struct rt_block *t, uint64_t size)
{
	while (t && t->max_free >= size) {
		if (t->left[BY_ADDR] && t->left[BY_ADDR]->max_free >= size)
			t = t->left[BY_ADDR];
		else if (!t->used && t->size >= size)
			return t;
		else
			t = t->right[BY_ADDR];
	}
	return NULL;
}

static struct rt_block *find_best_fit(struct rt_block *t, uint64_t size)
{
	struct rt_block *best = NULL;

	while (t) {
		if (t->size >= size) {
			best = t;
			t = t->left[BY_SIZE];
		} else {
			t = t->right[BY_SIZE];
		}
	}
	return best;
}

static struct rt_block *block_new(struct rt_heap *heap, struct rt_region *region, uint64_t addr,
				  uint64_t size)
{
	struct rt_block *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	/* xorshift: priorities only need to be unrelated to the order of addresses. */
	heap->seed ^= heap->seed << 13;
	heap->seed ^= heap->seed >> 17;
	heap->seed ^= heap->seed << 5;
	b->prio = heap->seed;
	b->region = region;
	b->addr = addr;
	b->size = size;
	return b;
}

void rt_heap_init(struct rt_heap *heap, uint64_t first_region, uint64_t last_region)
{
	memset(heap, 0, sizeof(*heap));
	heap->first_region = first_region;
	heap->last_region = last_region;
	heap->want = first_region;
	heap->seed = 2463534242u;
}

static void region_drop(struct rt_heap *heap, struct rt_region *region)
{
	heap->stats.reserved -= region->size;
	heap->stats.regions--;
	heap->release(heap->opaque, region->base, region->size, region->cookie);
	free(region);
}

static void tree_free(struct rt_block *t)
{
	if (!t)
		return;
	tree_free(t->left[BY_ADDR]);
	tree_free(t->right[BY_ADDR]);
	free(t);
}

void rt_heap_fini(struct rt_heap *heap)
{
	struct rt_region *r;

	tree_free(heap->root[BY_ADDR]);
	heap->root[BY_ADDR] = NULL;
	heap->root[BY_SIZE] = NULL;
	while ((r = heap->regions)) {
		heap->regions = r->next;
		region_drop(heap, r);
	}
}

/* The region, and the block that is all of it. */
static void region_add(struct rt_heap *heap, struct rt_region *r, struct rt_block *b)
{
	r->start = r->base ? r->base : SPYRERT_STICK;
	b->addr = r->start;
	b->size = (r->base + r->size - r->start) & ~(uint64_t)(SPYRERT_STICK - 1);
	r->next = heap->regions;
	heap->regions = r;
	heap->stats.regions++;
	heap->stats.reserved += r->size;
	if (heap->stats.reserved > heap->stats.reserved_peak)
		heap->stats.reserved_peak = heap->stats.reserved;
}

static void count_alloc(struct rt_heap *heap, struct rt_block *b)
{
	b->region->used += b->size;
	heap->stats.allocated += b->size;
	heap->stats.allocations++;
	heap->stats.total_allocations++;
	if (heap->stats.allocated > heap->stats.allocated_peak)
		heap->stats.allocated_peak = heap->stats.allocated;
}

static int heap_grow(struct rt_heap *heap, uint64_t need)
{
	struct rt_region *r;
	struct rt_block *b;
	int err;

	r = calloc(1, sizeof(*r));
	b = block_new(heap, r, 0, 0);
	if (!r || !b) {
		free(r);
		free(b);
		return -ENOMEM;
	}
	err = heap->grow(heap->opaque, need, need > heap->want ? need : heap->want, &r->base,
			 &r->size, &r->cookie);
	if (err) {
		free(r);
		free(b);
		return err;
	}
	region_add(heap, r, b);
	tree_insert(heap, BY_ADDR, b);
	tree_insert(heap, BY_SIZE, b);
	if (heap->want < heap->last_region)
		heap->want *= 2;
	return 0;
}

int rt_heap_alloc(struct rt_heap *heap, uint64_t bytes, struct rt_block **block)
{
	struct rt_block *b, *rest;
	uint64_t size;
	int err;

	if (!bytes || bytes > UINT64_MAX / 2)
		return -EINVAL;
	size = (bytes + SPYRERT_STICK - 1) & ~(uint64_t)(SPYRERT_STICK - 1);
	for (;;) {
		if (heap->policy == SPYRERT_FIRST_FIT)
			b = find_first_fit(heap->root[BY_ADDR], size);
		else
			b = find_best_fit(heap->root[BY_SIZE], size);
		if (b)
			break;
		/* A stick more, in case the region comes to lie at address 0. */
		err = heap_grow(heap, size + SPYRERT_STICK);
		if (err) {
			heap->stats.ooms++;
			return err;
		}
	}
	rest = NULL;
	if (b->size > size) {
		rest = block_new(heap, b->region, b->addr + size, b->size - size);
		if (!rest)
			return -ENOMEM;
	}
	tree_erase(heap, BY_SIZE, b);
	b->used = true;
	b->owner = NULL;
	b->size = size;
	tree_refresh(heap->root[BY_ADDR], b);
	if (rest) {
		rest->prev = b;
		rest->next = b->next;
		if (b->next)
			b->next->prev = rest;
		b->next = rest;
		tree_insert(heap, BY_ADDR, rest);
		tree_insert(heap, BY_SIZE, rest);
	}
	count_alloc(heap, b);
	*block = b;
	return 0;
}

int rt_heap_adopt(struct rt_heap *heap, uint64_t base, uint64_t size, void *cookie, uint32_t flags,
		  struct rt_block **block)
{
	struct rt_region *r = calloc(1, sizeof(*r));
	struct rt_block *b = block_new(heap, r, 0, 0);

	if (!r || !b) {
		free(r);
		free(b);
		return -ENOMEM;
	}
	r->base = base;
	r->size = size;
	r->cookie = cookie;
	r->whole = true;
	r->flags = flags;
	region_add(heap, r, b);
	b->used = true;
	tree_insert(heap, BY_ADDR, b);
	count_alloc(heap, b);
	*block = b;
	return 0;
}

/* Joins b with its right neighbour; both are out of the size tree. */
static void block_join(struct rt_heap *heap, struct rt_block *b)
{
	struct rt_block *gone = b->next;

	tree_erase(heap, BY_ADDR, gone);
	b->size += gone->size;
	b->next = gone->next;
	if (b->next)
		b->next->prev = b;
	free(gone);
}

void rt_heap_free(struct rt_heap *heap, struct rt_block *b)
{
	heap->stats.allocated -= b->size;
	heap->stats.allocations--;
	heap->stats.total_frees++;
	b->region->used -= b->size;
	b->used = false;
	b->owner = NULL;
	if (b->region->whole) {
		struct rt_region **link = &heap->regions;

		while (*link != b->region)
			link = &(*link)->next;
		*link = b->region->next;
		tree_erase(heap, BY_ADDR, b);
		region_drop(heap, b->region);
		free(b);
		return;
	}
	if (b->next && !b->next->used) {
		tree_erase(heap, BY_SIZE, b->next);
		block_join(heap, b);
	}
	if (b->prev && !b->prev->used) {
		b = b->prev;
		tree_erase(heap, BY_SIZE, b);
		block_join(heap, b);
	}
	tree_refresh(heap->root[BY_ADDR], b);
	tree_insert(heap, BY_SIZE, b);
}

struct rt_block *rt_heap_find(struct rt_heap *heap, uint64_t addr)
{
	struct rt_block *t = heap->root[BY_ADDR], *floor = NULL;

	while (t) {
		if (t->addr <= addr) {
			floor = t;
			t = t->right[BY_ADDR];
		} else {
			t = t->left[BY_ADDR];
		}
	}
	if (!floor || !floor->used || addr - floor->addr >= floor->size)
		return NULL;
	return floor;
}

static struct rt_block *find_exact(struct rt_block *t, uint64_t addr)
{
	while (t && t->addr != addr)
		t = addr < t->addr ? t->left[BY_ADDR] : t->right[BY_ADDR];
	return t;
}

uint64_t rt_heap_trim(struct rt_heap *heap)
{
	struct rt_region **link = &heap->regions, *r;
	struct rt_block *b;
	uint64_t bytes = 0;

	while ((r = *link)) {
		if (r->used) {
			link = &r->next;
			continue;
		}
		b = find_exact(heap->root[BY_ADDR], r->start);
		tree_erase(heap, BY_SIZE, b);
		tree_erase(heap, BY_ADDR, b);
		free(b);
		bytes += r->size;
		*link = r->next;
		region_drop(heap, r);
	}
	if (!heap->regions)
		heap->want = heap->first_region;
	return bytes;
}

void rt_heap_get_stats(struct rt_heap *heap, struct spyrert_memory_stats *stats)
{
	*stats = heap->stats;
	stats->largest_free = heap->root[BY_ADDR] ? heap->root[BY_ADDR]->max_free : 0;
}

void rt_heap_reset_peak(struct rt_heap *heap)
{
	heap->stats.allocated_peak = heap->stats.allocated;
	heap->stats.reserved_peak = heap->stats.reserved;
}

struct check {
	const char *bad;
	struct rt_block *last;
	uint64_t blocks, free_blocks, used_bytes, free_bytes;
};

static void check_addr(struct rt_block *t, struct check *c)
{
	uint64_t max;

	if (!t || c->bad)
		return;
	check_addr(t->left[BY_ADDR], c);
	if (c->last && c->last->addr + c->last->size > t->addr)
		c->bad = "blocks overlap";
	if (c->last && c->last->region == t->region) {
		if (c->last->next != t || t->prev != c->last)
			c->bad = "neighbours are not chained";
		else if (c->last->addr + c->last->size != t->addr)
			c->bad = "a gap between blocks";
		else if (!c->last->used && !t->used)
			c->bad = "two free neighbours are not joined";
	} else {
		if (t->prev || (c->last && c->last->next))
			c->bad = "a chain crosses regions";
		if (t->addr != t->region->start)
			c->bad = "a region does not start with a block";
	}
	if (t->addr % SPYRERT_STICK || t->size % SPYRERT_STICK || !t->size)
		c->bad = "a block is not made of sticks";
	max = t->used ? 0 : t->size;
	if (t->left[BY_ADDR] && t->left[BY_ADDR]->max_free > max)
		max = t->left[BY_ADDR]->max_free;
	if (t->right[BY_ADDR] && t->right[BY_ADDR]->max_free > max)
		max = t->right[BY_ADDR]->max_free;
	if (max != t->max_free)
		c->bad = "subtree maximum is stale";
	c->last = t;
	c->blocks++;
	if (t->used) {
		c->used_bytes += t->size;
	} else {
		c->free_blocks++;
		c->free_bytes += t->size;
	}
	check_addr(t->right[BY_ADDR], c);
}

static void check_size(struct rt_block *t, struct check *c)
{
	if (!t || c->bad)
		return;
	check_size(t->left[BY_SIZE], c);
	if (t->used)
		c->bad = "a used block is in the size tree";
	if (c->last && !block_less(BY_SIZE, c->last, t))
		c->bad = "size tree is out of order";
	c->last = t;
	c->free_blocks--;
	check_size(t->right[BY_SIZE], c);
}

const char *rt_heap_check(struct rt_heap *heap)
{
	struct check c = { 0 };

	check_addr(heap->root[BY_ADDR], &c);
	if (c.bad)
		return c.bad;
	if (c.used_bytes != heap->stats.allocated)
		return "bytes in use are miscounted";
	c.last = NULL;
	check_size(heap->root[BY_SIZE], &c);
	if (!c.bad && c.free_blocks)
		return "a free block is missing in the size tree";
	return c.bad;
}
