/* SPDX-License-Identifier: MIT */
/*
 * LPDDR5: one sparse mapping. No operation of the card populates memory that nobody wrote: a hole reads
 * as zero, is not filled with zeros, and is not visited by memory test, scrub or reset.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* fallocate, SEEK_DATA */
#endif
#include "card.h"

#include <errno.h>
#include <fcntl.h>
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
	return 0;
}

void mem_free(struct spyre_card *c)
{
	if (!c->mem)
		return;
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
	if (!discard(c, 0, c->mem_size)) {
		card_log(c, SPYRE_LOG_WARN, "memory could not be given back (%s), it is cleared instead",
			 strerror(errno));
		memset(c->mem, 0, c->mem_size);
	}
}

bool mem_is_hole(struct spyre_card *c, uint64_t addr, uint64_t len)
{
	off_t data;

	/* Reading a hole of private memory gives the shared zero page; only files allocate. */
	if (!c->cfg.mem || c->cfg.mem_fd < 0)
		return false;
	data = lseek(c->cfg.mem_fd, addr, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO;
	return (uint64_t)data >= addr + len;
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
		if (!mem_is_hole(c, addr, n) && (*p || (n > 1 && memcmp(p, p + 1, n - 1))))
			memset(p, 0, n);
		addr += n;
		len -= n;
	}
}

void mem_zero(struct spyre_card *c, uint64_t addr, uint64_t len)
{
	uint64_t first = (addr + HOST_PAGE - 1) & ~(HOST_PAGE - 1);
	uint64_t last = (addr + len) & ~(HOST_PAGE - 1);

	if (last <= first || last - first < DISCARD_MIN || !discard(c, first, last - first)) {
		clear(c, addr, len);
		return;
	}
	clear(c, addr, first - addr);
	clear(c, last, addr + len - last);
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
