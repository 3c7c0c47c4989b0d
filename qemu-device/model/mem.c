/* SPDX-License-Identifier: MIT */
/*
 * LPDDR5: one sparse mapping. No operation of the card populates 2 MiB pages that nobody wrote: engines and
 * the copy unit read them as zeros without looking at them (not every host has a shared zero page for
 * private memory, and files never have one), a zero fill skips them, and memory test, scrub and reset do not visit them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* fallocate, SEEK_DATA */
#endif
#include "card.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOST_PAGE	4096ull
#define DISCARD_MIN	0x10000ull	/* below it clearing is cheaper than giving pages back */

int mem_init(struct spyre_card *c)
{
	uint64_t size = c->cfg.memory / 8 * 7;
	uint8_t *p, *at;

	c->mem_size = size;
	c->mem_limit = size - SPYRE_FW_MEM_SIZE;
	c->aperture = c->cfg.aperture < c->mem_limit ? c->cfg.aperture : c->mem_limit;
	pthread_mutex_init(&c->mem_lock, NULL);
	c->pagemap_fd = -1;
	c->page_words = size / SPYRE_PAGE_SIZE / 64 + 1;
	c->touched = calloc(c->page_words, sizeof(*c->touched));
	c->compute_holes = calloc(c->page_words, sizeof(*c->compute_holes));
	if (!c->touched || !c->compute_holes)
		return -ENOMEM;
	if (c->cfg.mem) {
		c->mem = c->cfg.mem;
		return 0;
	}
	p = mmap(NULL, size + SPYRE_PAGE_SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	at = (uint8_t *)(((uintptr_t)p + SPYRE_PAGE_SIZE - 1) & ~(uintptr_t)(SPYRE_PAGE_SIZE - 1));
	if (at != p)
		munmap(p, at - p);
	if (at != p + SPYRE_PAGE_SIZE)
		munmap(at + size, p + SPYRE_PAGE_SIZE - at);
	/* Device pages are 2 MiB; without large host pages the copies spend their time in page faults. */
	madvise(at, size, MADV_HUGEPAGE);
	c->mem = at;
	/* Says what is populated without touching it. Memory of the host's own may be shared, where it lies. */
	c->pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	return 0;
}

void mem_free(struct spyre_card *c)
{
	free(c->touched);
	free(c->compute_holes);
	if (!c->mem)
		return;
	if (c->pagemap_fd >= 0)
		close(c->pagemap_fd);
	if (!c->cfg.mem)
		munmap(c->mem, c->mem_size);
	c->mem = NULL;
	pthread_mutex_destroy(&c->mem_lock);
}

static bool discard(struct spyre_card *c, uint64_t addr, uint64_t len)
{
	if (c->cfg.mem && c->cfg.mem_fd >= 0)
		return !fallocate(c->cfg.mem_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  addr, len);
	/* Shared memory without a descriptor keeps its pages under DONTNEED, private memory refuses REMOVE. */
	if (c->cfg.mem && !madvise(c->mem + addr, len, MADV_REMOVE))
		return true;
	return !madvise(c->mem + addr, len, MADV_DONTNEED);
}

void mem_clear(struct spyre_card *c)
{
	pthread_mutex_lock(&c->mem_lock);
	store_release(&c->npoison, 0);
	pthread_mutex_unlock(&c->mem_lock);
	memset(c->touched, 0, c->page_words * sizeof(*c->touched));
	if (!discard(c, 0, c->mem_size)) {
		card_log(c, SPYRE_LOG_WARN, "memory could not be given back (%s), it is cleared instead",
			 strerror(errno));
		memset(c->mem, 0, c->mem_size);
	}
}

/*
 * Whether anybody has written to the 2 MiB page of addr. A page once found touched counts so until it is
 * discarded, which makes the common answer one bit test; being wrong in that direction costs memory only.
 */
bool mem_touched(struct spyre_card *c, uint64_t addr)
{
	uint64_t page = addr >> SPYRE_PAGE_SHIFT, at = page << SPYRE_PAGE_SHIFT, n, i;
	uint64_t *word = &c->touched[page / 64], bit = 1ull << (page & 63);
	uint64_t map[SPYRE_PAGE_SIZE / HOST_PAGE];
	bool found = true;

	if (load_relaxed(word) & bit)
		return true;
	n = c->mem_size - at < SPYRE_PAGE_SIZE ? c->mem_size - at : SPYRE_PAGE_SIZE;
	if (c->cfg.mem && c->cfg.mem_fd >= 0) {
		off_t data = lseek(c->cfg.mem_fd, at, SEEK_DATA);

		found = data < 0 ? errno != ENXIO : (uint64_t)data < at + n;
	} else if (c->pagemap_fd >= 0) {
		ssize_t len = n / HOST_PAGE * 8;

		if (pread(c->pagemap_fd, map, len, (uintptr_t)(c->mem + at) / HOST_PAGE * 8) == len) {
			found = false;
			/* Present or swapped out. */
			for (i = 0; !found && i < n / HOST_PAGE; i++)
				found = map[i] >> 62;
		}
	}
	if (found)
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
	return found;
}

bool mem_hole(struct spyre_card *c, uint64_t addr, uint64_t *holes)
{
	uint64_t page = addr >> SPYRE_PAGE_SHIFT, bit = 1ull << (page & 63);

	/* Written first: a job that stores to what it found untouched reads what it stored. */
	if (likely(load_relaxed(&c->touched[page / 64]) & bit))
		return false;
	if (holes && load_relaxed(&holes[page / 64]) & bit)
		return true;
	if (mem_touched(c, addr))
		return false;
	if (holes)
		__atomic_fetch_or(&holes[page / 64], bit, __ATOMIC_RELAXED);
	return true;
}

const void *mem_read(struct spyre_card *c, uint64_t addr, uint64_t *len, uint64_t *holes)
{
	static const uint8_t zeros[HOST_PAGE] __attribute__((aligned(4096)));
	uint64_t n = SPYRE_PAGE_SIZE - (addr & (SPYRE_PAGE_SIZE - 1));

	if (*len > n)
		*len = n;
	if (!mem_hole(c, addr, holes))
		return c->mem + addr;
	n = HOST_PAGE - (addr & (HOST_PAGE - 1));
	if (*len > n)
		*len = n;
	return zeros + (addr & (HOST_PAGE - 1));
}

void mem_touch(struct spyre_card *c, uint64_t addr, uint64_t len)
{
	uint64_t page, last = (addr + len - 1) >> SPYRE_PAGE_SHIFT;

	for (page = addr >> SPYRE_PAGE_SHIFT; page <= last; page++)
		if (unlikely(!(load_relaxed(&c->touched[page / 64]) & 1ull << (page & 63))))
			__atomic_fetch_or(&c->touched[page / 64], 1ull << (page & 63), __ATOMIC_RELAXED);
}

/* Clears by looking first, so that what is zero already is not written. */
static void clear(struct spyre_card *c, uint64_t addr, uint64_t len)
{
	while (len) {
		uint64_t n = HOST_PAGE - (addr & (HOST_PAGE - 1));
		uint8_t *p = c->mem + addr;

		if (n > len)
			n = len;
		/* All bytes equal their neighbour and the first is 0. */
		if (*p || (n > 1 && memcmp(p, p + 1, n - 1)))
			memset(p, 0, n);
		addr += n;
		len -= n;
	}
}

/* Inside one 2 MiB page. */
static void zero_page(struct spyre_card *c, uint64_t addr, uint64_t len)
{
	uint64_t first = (addr + HOST_PAGE - 1) & ~(HOST_PAGE - 1);
	uint64_t last = (addr + len) & ~(HOST_PAGE - 1);
	uint64_t page = addr >> SPYRE_PAGE_SHIFT;

	if (!mem_touched(c, addr))
		return;
	if (last <= first || last - first < DISCARD_MIN || !discard(c, first, last - first)) {
		clear(c, addr, len);
		return;
	}
	if (last - first == SPYRE_PAGE_SIZE)
		__atomic_fetch_and(&c->touched[page / 64], ~(1ull << (page & 63)), __ATOMIC_RELAXED);
	clear(c, addr, first - addr);
	clear(c, last, addr + len - last);
}

void mem_zero(struct spyre_card *c, uint64_t addr, uint64_t len)
{
	while (len) {
		uint64_t n = SPYRE_PAGE_SIZE - (addr & (SPYRE_PAGE_SIZE - 1));

		if (n > len)
			n = len;
		zero_page(c, addr, n);
		addr += n;
		len -= n;
	}
}

uint64_t mem_ecc(struct spyre_card *c, uint64_t addr, uint64_t len)
{
	uint64_t good = len, hit = 0;
	unsigned int i;
	bool bad = false;

	pthread_mutex_lock(&c->mem_lock);
	for (i = 0; i < c->npoison; i++) {
		uint64_t p = c->poison[i];

		if (p + SPYRE_STICK <= addr || p >= addr + len)
			continue;
		if (p > addr) {
			if (p - addr < good)
				good = p - addr;
			continue;
		}
		bad = true;
		hit = p;
		c->poison[i] = c->poison[c->npoison - 1];
		store_release(&c->npoison, c->npoison - 1);
		break;
	}
	pthread_mutex_unlock(&c->mem_lock);
	if (!bad)
		return good;
	add_relaxed(&c->ecc_ue, 1);
	ras_push(c, SPYRE_RAS_MEM_UE, load_relaxed(&c->ecc_ue), hit);
	return 0;
}

int mem_poison(struct spyre_card *c, uint64_t addr)
{
	int ret = -ENOSPC;

	pthread_mutex_lock(&c->mem_lock);
	if (c->npoison < POISON_MAX) {
		c->poison[c->npoison] = addr & ~(uint64_t)(SPYRE_STICK - 1);
		store_release(&c->npoison, c->npoison + 1);
		ret = 0;
	}
	pthread_mutex_unlock(&c->mem_lock);
	return ret;
}
