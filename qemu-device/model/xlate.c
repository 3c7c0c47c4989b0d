/* SPDX-License-Identifier: MIT */
/*
 * Translation of DMVA and HMVA. The driver's tables are hostile: nothing of them is kept, each entry is
 * read with one load when it is used, and each address found in them is checked against the memory it may
 * name. A wrong table makes faults, never an access outside.
 */
#include "card.h"

#define PAGE_MASK	(SPYRE_PAGE_SIZE - 1)
#define L2_PAGE		4096ull

/* Tables lie where the driver can write them: inside the populated aperture. */
static bool table_ok(struct spyre_card *c, uint64_t addr, uint64_t len)
{
	return addr <= c->aperture && len <= c->aperture - addr;
}

static uint64_t load_entry(struct spyre_card *c, uint64_t addr)
{
	return load_acquire((uint64_t *)(c->mem + addr));
}

/* Finds the first-level entry of page .index of a segment. */
static enum spyre_syndrome level1(struct spyre_card *c, uint32_t ctx, uint32_t seg, uint64_t index,
				  uint64_t *entry)
{
	uint64_t base, table;
	uint32_t pages;

	if (ctx >= MCU_CONTEXTS)
		return SPYRE_SYN_RANGE;
	base = load_acquire(&c->ctx_table[ctx]);
	if (!base)
		return SPYRE_SYN_PAGE_FAULT;
	/* The base was checked when it was set. */
	base += seg * sizeof(struct spyre_segment);
	table = load_entry(c, base + offsetof(struct spyre_segment, table));
	pages = load_acquire((uint32_t *)(c->mem + base + offsetof(struct spyre_segment, pages)));
	if (index >= pages)
		return SPYRE_SYN_PAGE_FAULT;
	if ((table & (L2_PAGE - 1)) || !table_ok(c, table, (index + 1) * 8))
		return SPYRE_SYN_RANGE;
	*entry = load_entry(c, table + index * 8);
	return *entry & SPYRE_PTE_VALID ? SPYRE_SYN_NONE : SPYRE_SYN_PAGE_FAULT;
}

static enum spyre_syndrome dmva_page(struct spyre_card *c, uint32_t ctx, uint64_t page, bool write,
				     uint64_t *phys)
{
	uint32_t seg = page >> (SPYRE_SEGMENT_SHIFT - SPYRE_PAGE_SHIFT);
	enum spyre_syndrome syn;
	uint64_t e;

	syn = level1(c, ctx, seg, page & (SPYRE_SEGMENT_PAGES - 1), &e);
	if (syn)
		return syn;
	if ((write && !(e & SPYRE_PTE_WRITE)) || (e & SPYRE_PTE_PRIV))
		return SPYRE_SYN_PERMISSION;
	*phys = e & SPYRE_PTE_ADDR & ~PAGE_MASK;
	if (*phys > c->mem_limit || SPYRE_PAGE_SIZE > c->mem_limit - *phys)
		return SPYRE_SYN_RANGE;
	return SPYRE_SYN_NONE;
}

bool xlate_dmva(struct spyre_card *c, uint32_t ctx, uint64_t addr, uint64_t *len, bool write,
		uint64_t *phys, enum spyre_syndrome *syn)
{
	uint64_t want = *len, page = addr >> SPYRE_PAGE_SHIFT, got, first, next;

	*syn = SPYRE_SYN_NONE;
	if (addr >= SPYRE_DMVA_SIZE) {
		*syn = SPYRE_SYN_RANGE;
		return false;
	}
	*syn = dmva_page(c, ctx, page, write, &first);
	if (*syn)
		return false;
	got = SPYRE_PAGE_SIZE - (addr & PAGE_MASK);
	*phys = first + (addr & PAGE_MASK);
	/* Pages that follow each other in memory are one piece, which is the common case. */
	while (got < want && ++page < SPYRE_DMVA_SIZE >> SPYRE_PAGE_SHIFT) {
		first += SPYRE_PAGE_SIZE;
		if (dmva_page(c, ctx, page, write, &next) || next != first)
			break;
		got += SPYRE_PAGE_SIZE;
	}
	if (got > want)
		got = want;
	if (unlikely(load_acquire(&c->npoison))) {
		got = mem_ecc(c, *phys, got);
		if (!got) {
			*syn = SPYRE_SYN_ECC;
			return false;
		}
	}
	*len = got;
	return true;
}

static enum spyre_syndrome leaf_rights(uint64_t e, bool write, bool priv)
{
	if ((write && !(e & SPYRE_PTE_WRITE)) || (!priv && (e & SPYRE_PTE_PRIV)))
		return SPYRE_SYN_PERMISSION;
	return SPYRE_SYN_NONE;
}

bool xlate_hmva(struct spyre_card *c, uint32_t ctx, uint64_t addr, uint64_t *len, bool write, bool priv,
		uint64_t *bus, enum spyre_syndrome *syn)
{
	uint64_t want = *len, got, e, l2, at;
	unsigned int i;

	*syn = SPYRE_SYN_NONE;
	if (addr >= SPYRE_HMVA_SIZE) {
		*syn = SPYRE_SYN_RANGE;
		return false;
	}
	*syn = level1(c, ctx, SPYRE_SEGMENTS + (addr >> SPYRE_SEGMENT_SHIFT),
		      (addr >> SPYRE_PAGE_SHIFT) & (SPYRE_SEGMENT_PAGES - 1), &e);
	if (*syn)
		return false;
	if (e & SPYRE_PTE_LEAF) {
		*syn = leaf_rights(e, write, priv);
		if (*syn)
			return false;
		*bus = (e & SPYRE_PTE_ADDR & ~PAGE_MASK) + (addr & PAGE_MASK);
		got = SPYRE_PAGE_SIZE - (addr & PAGE_MASK);
		*len = got < want ? got : want;
		return true;
	}
	l2 = e & SPYRE_PTE_ADDR;
	if (!table_ok(c, l2, SPYRE_HOST_L2_SIZE)) {
		*syn = SPYRE_SYN_RANGE;
		return false;
	}
	i = (addr / L2_PAGE) & (SPYRE_HOST_L2_ENTRIES - 1);
	e = load_entry(c, l2 + 8 * i);
	if (!(e & SPYRE_PTE_VALID))
		*syn = SPYRE_SYN_PAGE_FAULT;
	else if (!(e & SPYRE_PTE_LEAF))
		*syn = SPYRE_SYN_RANGE;
	else
		*syn = leaf_rights(e, write, priv);
	if (*syn)
		return false;
	at = e & SPYRE_PTE_ADDR;
	*bus = at + (addr & (L2_PAGE - 1));
	got = L2_PAGE - (addr & (L2_PAGE - 1));
	while (got < want && ++i < SPYRE_HOST_L2_ENTRIES) {
		at += L2_PAGE;
		e = load_entry(c, l2 + 8 * i);
		if ((e & (SPYRE_PTE_VALID | SPYRE_PTE_LEAF)) != (SPYRE_PTE_VALID | SPYRE_PTE_LEAF) ||
		    (e & SPYRE_PTE_ADDR) != at || leaf_rights(e, write, priv))
			break;
		got += L2_PAGE;
	}
	*len = got < want ? got : want;
	return true;
}

void *host_map(struct spyre_card *c, struct worker *w, uint64_t bus, uint64_t *len, bool write,
	       enum spyre_syndrome *syn)
{
	struct host_window *h = &w->cache[bus >> SPYRE_PAGE_SHIFT & (HOST_WINDOWS - 1)];
	uint64_t epoch = load_relaxed(&w->seen), off, n;
	uint32_t seq;
	void *p;

	if (w->cache_epoch != epoch) {
		unsigned int i;

		for (i = 0; i < HOST_WINDOWS; i++)
			w->cache[i].len = 0;
		w->cache_epoch = epoch;
	}
	off = bus - h->bus;
	if (likely(off < h->len && (h->write || !write))) {
		if (*len > h->len - off)
			*len = h->len - off;
		return h->ptr + off;
	}
	for (;;) {
		seq = load_seq(&c->stop_seq);
		/* Ask for the rest of the 2 MiB page: the next access is likely to be in it. */
		n = SPYRE_PAGE_SIZE - (bus & PAGE_MASK);
		p = c->ops->dma_map(c->opaque, bus, &n, write);
		if (p && n)
			break;
		/* Nothing answers, or the host gave up because somebody waits for this worker. */
		if (!load_seq(&c->stopping) && seq == load_seq(&c->stop_seq)) {
			*syn = SPYRE_SYN_BUS;
			return NULL;
		}
		if (worker_cancelled(w)) {
			*syn = SPYRE_SYN_CANCELLED;
			return NULL;
		}
		worker_offline(c, w);
		stopping_wait(c, w);
		worker_online(c, w);
		w->cache_epoch = 0;
	}
	if (w->cache_epoch == load_relaxed(&w->seen)) {
		h->bus = bus;
		h->len = n;
		h->ptr = p;
		h->write = write;
	}
	if (*len > n)
		*len = n;
	*syn = SPYRE_SYN_NONE;
	return p;
}
