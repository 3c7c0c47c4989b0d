/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host memory for the model's workers.
 *
 * Without an IOMMU a worker searches a table of the RAM that the card's bus mastering reaches,
 * peers' RAM BARs among it. Memory listeners rebuild the table under the big lock and publish it by
 * RCU; what left it is let go of only after spyre_card_dma_sync(), when no worker holds a pointer
 * into it.
 *
 * Behind an IOMMU the worker asks a bottom half to translate, because the IOMMU models report
 * faults by sending interrupts and need the big lock for it. The worker never takes that lock: it
 * waits with a bound and gives up when somebody, who may be holding the lock, waits for it.
 * Translations are kept per page until the IOMMU's notifier names them; the notifier returns, and
 * with it the guest's invalidation, when no worker uses them any more.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "exec/target_page.h"
#include "system/tcg.h"
#include "exec/address-spaces.h"

#include "spyre.h"
#include "trace.h"

/* Pages of the translation cache: 2 GB of host memory, about 100 MB of entries. */
#define TLB_MAX	      (1u << 19)
#define TLB_PAGE_BITS 12
#define TLB_PAGE      (1ull << TLB_PAGE_BITS)
/* What one translation may bring along: a large page of the IOMMU. */
#define TLB_SPAN 0x200000ull

/*
 * How far one answer for writing reaches under TCG. Translated guest code in what is handed out
 * must be thrown away, and code that happens to lie near a buffer should not be thrown away with
 * it.
 */
#define TCG_WRITE_SPAN 0x10000ull

typedef struct SpyreSection {
	hwaddr base, size;
	MemoryRegion *mr;
	hwaddr offset; /* of base in mr */
	uint8_t *host; /* NULL: behind an IOMMU */
	bool writable;
} SpyreSection;

struct SpyreMap {
	struct rcu_head rcu;
	unsigned int n;
	SpyreSection s[]; /* ascending, disjoint */
};

typedef struct SpyreTlbEntry {
	uint8_t *host;
	MemoryRegion *mr; /* referenced */
	hwaddr offset;
	bool writable;
} SpyreTlbEntry;

/* On the waiting worker's stack. */
struct SpyreXlate {
	QSIMPLEQ_ENTRY(SpyreXlate) next;
	uint64_t id;
	hwaddr addr;
	bool write;
	bool done, ok;
	SpyreTlbEntry e; /* with caching off: the answer itself, not referenced */
};

struct SpyreIommu {
	IOMMUNotifier n;
	MemoryRegion *mr;
	hwaddr delta; /* address space minus region */
	SpyreState *s;
	bool notifies; /* tells about unmapped pages, so answers may be kept */
	QLIST_ENTRY(SpyreIommu) next;
};

/*
 * Readers of RCU data must be registered. The model's threads are not QEMU's, so each registers
 * itself when it comes here first and the key's destructor takes it out when it ends.
 */
static pthread_key_t rcu_key;
static __thread bool rcu_registered;

static void rcu_thread_ends(void *unused)
{
	rcu_unregister_thread();
}

static void __attribute__((constructor)) rcu_key_create(void)
{
	if (pthread_key_create(&rcu_key, rcu_thread_ends))
		abort();
}

static void rcu_thread_here(void)
{
	if (likely(rcu_registered))
		return;
	rcu_registered = true;
	/* The main loop and vCPU threads have registered themselves. */
	if (bql_locked())
		return;
	rcu_register_thread();
	pthread_setspecific(rcu_key, &rcu_registered);
}

/*
 * Tells TCG and dirty logging that [offset, offset + len) of mr is about to be written. A guest
 * that runs code from a page while a device writes the same page is told nothing by real hardware
 * either, so it is enough to do this when a worker gets the pointer.
 */
static void mark_written(MemoryRegion *mr, hwaddr offset, uint8_t *host, hwaddr len)
{
	MemoryRegionCache cache = {
		.ptr = host,
		.xlat = offset,
		.len = len,
		.mrs.mr = mr,
		.is_write = true,
	};

	address_space_cache_invalidate(&cache, 0, len);
}

static const SpyreSection *map_find(const SpyreMap *map, hwaddr addr)
{
	unsigned int lo = 0, hi = map ? map->n : 0;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;
		const SpyreSection *e = &map->s[mid];

		if (addr < e->base)
			hi = mid;
		else if (addr - e->base >= e->size)
			lo = mid + 1;
		else
			return e;
	}
	return NULL;
}

static hwaddr cut(hwaddr addr, hwaddr want, hwaddr room, bool write)
{
	hwaddr n = MIN(want, room);

	if (write && tcg_enabled())
		n = MIN(n, TCG_WRITE_SPAN - (addr & (TCG_WRITE_SPAN - 1)));
	return n;
}

/* --- IOMMU ----------------------------------------------------------------------------------- */

static void tlb_entry_free(gpointer p)
{
	SpyreTlbEntry *e = p;

	memory_region_unref(e->mr);
	g_free(e);
}

static gpointer tlb_key(hwaddr addr)
{
	return (gpointer)(uintptr_t)(addr >> TLB_PAGE_BITS);
}

/*
 * Takes entries of [first, last] out of the cache and into gone, from which the caller lets go of
 * them after spyre_card_dma_sync(). Big lock.
 */
static unsigned int tlb_take(SpyreState *s, hwaddr first, hwaddr last, GPtrArray *gone)
{
	uint64_t lo = first >> TLB_PAGE_BITS, hi = last >> TLB_PAGE_BITS;
	unsigned int n = 0;
	gpointer key, val;

	QEMU_LOCK_GUARD(&s->dma.lock);
	if (hi - lo < g_hash_table_size(s->dma.iotlb)) {
		for (uint64_t page = lo; page <= hi; page++) {
			if (g_hash_table_steal_extended(s->dma.iotlb, (gpointer)(uintptr_t)page,
							&key, &val)) {
				g_ptr_array_add(gone, val);
				n++;
			}
		}
	} else {
		GHashTableIter it;

		g_hash_table_iter_init(&it, s->dma.iotlb);
		while (g_hash_table_iter_next(&it, &key, &val)) {
			if ((uintptr_t)key < lo || (uintptr_t)key > hi)
				continue;
			g_hash_table_iter_steal(&it);
			g_ptr_array_add(gone, val);
			n++;
		}
	}
	return n;
}

static void tlb_drop(SpyreState *s, hwaddr first, hwaddr last)
{
	g_autoptr(GPtrArray) gone = g_ptr_array_new_with_free_func(tlb_entry_free);
	unsigned int n = tlb_take(s, first, last, gone);
	bool all = first == 0 && last == HWADDR_MAX;
	bool forgot;

	qemu_mutex_lock(&s->dma.lock);
	forgot = s->dma.forgot;
	if (all)
		s->dma.forgot = false;
	qemu_mutex_unlock(&s->dma.lock);
	trace_spyre_iommu_unmap(s->name, first, last - first, n);
	/* What is not in the cache was never handed out, so most unmaps wait for nobody. */
	if (n || forgot)
		spyre_card_dma_sync(s->card);
}

static void iommu_unmap(IOMMUNotifier *n, IOMMUTLBEntry *entry)
{
	SpyreIommu *io = container_of(n, SpyreIommu, n);
	hwaddr first = (entry->iova & ~entry->addr_mask) + io->delta;

	tlb_drop(io->s, first, first + entry->addr_mask);
}

/*
 * The page of addr and, where the IOMMU maps it as part of a larger page, what follows in that; all
 * through the IOMMU model. False when it refuses or there is no plain memory. Big lock; *e is
 * referenced.
 */
static bool iommu_translate(SpyreState *s, hwaddr addr, bool write, SpyreTlbEntry *e,
			    unsigned int *pages)
{
	AddressSpace *as = pci_get_address_space(PCI_DEVICE(s));
	hwaddr page = addr & ~(TLB_PAGE - 1), off, len = TLB_SPAN - (page & (TLB_SPAN - 1));
	MemoryRegion *mr;

	RCU_READ_LOCK_GUARD();
	mr = address_space_translate(as, page, &off, &len, write, MEMTXATTRS_UNSPECIFIED);
	if (len < TLB_PAGE || !memory_region_is_ram(mr) || memory_region_is_ram_device(mr) ||
	    memory_region_is_romd(mr) || (write && mr->readonly))
		return false;
	/*
	 * address_space_translate() answers for one kind of access. A page that was asked for to be
	 * read is not known to be writable; it is asked for again when it is to be written.
	 */
	*e = (SpyreTlbEntry){
		.host = (uint8_t *)memory_region_get_ram_ptr(mr) + off,
		.mr = mr,
		.offset = off,
		.writable = write,
	};
	*pages = len >> TLB_PAGE_BITS;
	memory_region_ref(mr);
	return true;
}

static void tlb_insert(SpyreState *s, hwaddr addr, const SpyreTlbEntry *e, unsigned int pages)
{
	unsigned int i;

	if (g_hash_table_size(s->dma.iotlb) + pages > TLB_MAX) {
		g_hash_table_remove_all(s->dma.iotlb);
		s->dma.forgot = true;
	}
	for (i = 0; i < pages; i++) {
		SpyreTlbEntry *kept = g_new(SpyreTlbEntry, 1);

		*kept = *e;
		kept->host += i * TLB_PAGE;
		kept->offset += i * TLB_PAGE;
		memory_region_ref(kept->mr);
		g_hash_table_replace(s->dma.iotlb, tlb_key(addr + i * TLB_PAGE), kept);
	}
}

static bool iommu_may_cache(SpyreState *s, hwaddr addr)
{
	SpyreIommu *io;

	QLIST_FOREACH(io, &s->dma.iommus, next)
	{
		if (addr - io->delta >= io->n.start && addr - io->delta <= io->n.end)
			return io->notifies;
	}
	return false;
}

static SpyreXlate *request_find(SpyreState *s, uint64_t id)
{
	SpyreXlate *r;

	QSIMPLEQ_FOREACH(r, &s->dma.requests, next)
	{
		if (r->id == id)
			return r;
	}
	return NULL;
}

static void iommu_bh(void *opaque)
{
	SpyreState *s = opaque;
	SpyreXlate *r;

	qemu_mutex_lock(&s->dma.lock);
	for (;;) {
		unsigned int pages;
		SpyreTlbEntry e;
		hwaddr addr;
		uint64_t id;
		bool write, ok;

		QSIMPLEQ_FOREACH(r, &s->dma.requests, next)
		{
			if (!r->done)
				break;
		}
		if (!r)
			break;
		/* The worker may give up and take its request away while the lock is not held. */
		id = r->id;
		addr = r->addr;
		write = r->write;
		qemu_mutex_unlock(&s->dma.lock);

		ok = qatomic_read(&s->dma.allowed) && iommu_translate(s, addr, write, &e, &pages);
		trace_spyre_iommu_translate(s->name, addr, write, ok);

		qemu_mutex_lock(&s->dma.lock);
		r = request_find(s, id);
		if (r) {
			r->done = true;
			r->ok = ok;
			if (ok)
				r->e = e;
		}
		if (!ok)
			continue;
		/*
		 * What is not kept is the worker's until the next dma_sync; what it points into
		 * cannot go away before, the listener on system memory sees to that.
		 */
		if (r && iommu_may_cache(s, addr))
			tlb_insert(s, addr, &e, pages);
		memory_region_unref(e.mr);
	}
	qemu_cond_broadcast(&s->dma.cond);
	qemu_mutex_unlock(&s->dma.lock);
}

static void *iommu_map(SpyreState *s, hwaddr addr, uint64_t *len, bool write)
{
	SpyreXlate r = { .addr = addr, .write = write };
	hwaddr in = addr & (TLB_PAGE - 1), n;
	SpyreTlbEntry *e, got;
	bool found = false;

	qemu_mutex_lock(&s->dma.lock);
	e = g_hash_table_lookup(s->dma.iotlb, tlb_key(addr));
	if (e && (e->writable || !write)) {
		got = *e;
		found = true;
	} else if (!s->dma.closed && !bql_locked()) {
		r.id = ++s->dma.next_id;
		QSIMPLEQ_INSERT_TAIL(&s->dma.requests, &r, next);
		qemu_bh_schedule(s->dma.bh);
		while (!r.done && !s->dma.closed) {
			qemu_cond_timedwait(&s->dma.cond, &s->dma.lock, 1);
			if (spyre_card_stopping(s->card))
				break;
		}
		QSIMPLEQ_REMOVE(&s->dma.requests, &r, SpyreXlate, next);
		found = r.done && r.ok;
		got = r.e;
	}
	if (!found) {
		qemu_mutex_unlock(&s->dma.lock);
		return NULL;
	}
	/*
	 * Contiguous pages that are known already come along; nothing is translated ahead, because
	 * a page that is not mapped would be reported to the guest as a fault the card never
	 * caused.
	 */
	for (n = TLB_PAGE - in; n < *len; n += TLB_PAGE) {
		e = g_hash_table_lookup(s->dma.iotlb, tlb_key(addr + n));
		if (!e || e->host != got.host + in + n || e->mr != got.mr ||
		    (write && !e->writable))
			break;
	}
	qemu_mutex_unlock(&s->dma.lock);

	*len = cut(addr, *len, n, write);
	if (write)
		mark_written(got.mr, got.offset + in, got.host + in, *len);
	return got.host + in;
}

/* --- What workers call ------------------------------------------------------------------------ */

void *spyre_dma_map(void *opaque, uint64_t addr, uint64_t *len, bool write)
{
	SpyreState *s = opaque;
	const SpyreSection *e;
	void *p = NULL;
	bool iommu = false;

	rcu_thread_here();
	if (!qatomic_load_acquire(&s->dma.allowed))
		return NULL;
	WITH_RCU_READ_LOCK_GUARD() {
		e = map_find(qatomic_rcu_read(&s->dma.map), addr);
		if (e && !e->host) {
			iommu = true;
		} else if (e && (e->writable || !write)) {
			hwaddr off = addr - e->base;

			*len = cut(addr, *len, e->size - off, write);
			p = e->host + off;
			if (write)
				mark_written(e->mr, e->offset + off, p, *len);
		}
	}
	/* Waiting inside the RCU read section would hold up the whole emulator's grace periods. */
	if (iommu)
		p = iommu_map(s, addr, len, write);
	if (!p)
		trace_spyre_map_fail(s->name, addr, write);
	return p;
}

/* --- Listeners -------------------------------------------------------------------------------- */

static void gone_unref(gpointer mr)
{
	memory_region_unref(mr);
}

static void dma_begin(MemoryListener *l)
{
	SpyreState *s = container_of(l, SpyreState, dma.listener);

	s->dma.changed = false;
	s->dma.lost = false;
}

static void iommu_add(SpyreState *s, MemoryRegionSection *sec)
{
	IOMMUMemoryRegion *imr = IOMMU_MEMORY_REGION(sec->mr);
	SpyreIommu *io = g_new0(SpyreIommu, 1);
	Error *err = NULL;

	io->s = s;
	io->mr = sec->mr;
	io->delta = sec->offset_within_address_space - sec->offset_within_region;
	iommu_notifier_init(&io->n, iommu_unmap, IOMMU_NOTIFIER_UNMAP, sec->offset_within_region,
			    sec->offset_within_region +
				    int128_get64(int128_sub(sec->size, int128_one())),
			    memory_region_iommu_attrs_to_index(imr, MEMTXATTRS_UNSPECIFIED));
	/* This one accepts a notifier and then never calls it. */
	io->notifies = !object_dynamic_cast(OBJECT(imr), "amd-iommu-iommu-memory-region");
	if (memory_region_register_iommu_notifier(sec->mr, &io->n, &err)) {
		warn_reportf_err(err,
				 "%s: translations are not cached, DMA will be slow: ", s->name);
		io->notifies = false;
		io->mr = NULL;
	}
	QLIST_INSERT_HEAD(&s->dma.iommus, io, next);
}

static void iommu_del(SpyreState *s, MemoryRegionSection *sec)
{
	SpyreIommu *io;

	QLIST_FOREACH(io, &s->dma.iommus, next)
	{
		if (io->n.start != sec->offset_within_region ||
		    io->delta != sec->offset_within_address_space - sec->offset_within_region)
			continue;
		if (io->mr)
			memory_region_unregister_iommu_notifier(io->mr, &io->n);
		QLIST_REMOVE(io, next);
		g_free(io);
		return;
	}
}

static bool section_used(const MemoryRegionSection *sec)
{
	MemoryRegion *mr = sec->mr;

	return memory_region_is_iommu(mr) ||
	       (memory_region_is_ram(mr) && !memory_region_is_ram_device(mr) &&
		!memory_region_is_romd(mr));
}

static void dma_region_add(MemoryListener *l, MemoryRegionSection *sec)
{
	SpyreState *s = container_of(l, SpyreState, dma.listener);
	SpyreSection e = {
		.base = sec->offset_within_address_space,
		.mr = sec->mr,
		.offset = sec->offset_within_region,
		.writable = !sec->readonly && !sec->mr->readonly,
	};

	if (!section_used(sec))
		return;
	/* The whole 64-bit space does not fit a size; its last byte is no loss. */
	e.size = int128_getlo(sec->size) ? int128_getlo(sec->size) : HWADDR_MAX;
	memory_region_ref(sec->mr);
	if (memory_region_is_iommu(sec->mr))
		iommu_add(s, sec);
	else
		e.host = (uint8_t *)memory_region_get_ram_ptr(sec->mr) + sec->offset_within_region;
	g_array_append_val(s->dma.sections, e);
	s->dma.changed = true;
}

static void dma_region_del(MemoryListener *l, MemoryRegionSection *sec)
{
	SpyreState *s = container_of(l, SpyreState, dma.listener);
	unsigned int i;

	if (!section_used(sec))
		return;
	for (i = 0; i < s->dma.sections->len; i++) {
		SpyreSection *e = &g_array_index(s->dma.sections, SpyreSection, i);

		if (e->mr != sec->mr || e->base != sec->offset_within_address_space ||
		    e->offset != sec->offset_within_region)
			continue;
		if (!e->host)
			iommu_del(s, sec);
		g_ptr_array_add(s->dma.gone, e->mr);
		g_array_remove_index_fast(s->dma.sections, i);
		s->dma.changed = true;
		s->dma.lost = true;
		return;
	}
}

static gint section_cmp(gconstpointer a, gconstpointer b)
{
	const SpyreSection *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

static void dma_commit(MemoryListener *l)
{
	SpyreState *s = container_of(l, SpyreState, dma.listener);
	SpyreMap *map, *old = s->dma.map;
	g_autoptr(GPtrArray) gone = NULL;
	unsigned int n = s->dma.sections->len;

	if (!s->dma.changed)
		return;
	s->dma.changed = false;
	g_array_sort(s->dma.sections, section_cmp);
	map = g_malloc(sizeof(*map) + n * sizeof(map->s[0]));
	map->n = n;
	if (n)
		memcpy(map->s, s->dma.sections->data, n * sizeof(map->s[0]));
	qatomic_rcu_set(&s->dma.map, map);
	if (old)
		g_free_rcu(old, rcu);

	trace_spyre_map_update(s->name, n, s->dma.gone->len);
	if (!s->dma.lost)
		return;
	s->dma.lost = false;
	/* Workers and the cache first, then the references. */
	gone = s->dma.gone;
	s->dma.gone = g_ptr_array_new_with_free_func(gone_unref);
	tlb_drop(s, 0, HWADDR_MAX);
	spyre_card_dma_sync(s->card);
}

/*
 * The card's own listener sees an IOMMU and not what lies behind it. Memory that goes away there
 * (a peer's BAR that moves, an unplugged DIMM) invalidates translations as well.
 */
static void system_region_del(MemoryListener *l, MemoryRegionSection *sec)
{
	SpyreState *s = container_of(l, SpyreState, dma.system);

	if (!QLIST_EMPTY(&s->dma.iommus) && memory_region_is_ram(sec->mr))
		s->dma.system_lost = true;
}

static void system_commit(MemoryListener *l)
{
	SpyreState *s = container_of(l, SpyreState, dma.system);

	if (!s->dma.system_lost)
		return;
	s->dma.system_lost = false;
	tlb_drop(s, 0, HWADDR_MAX);
	spyre_card_dma_sync(s->card);
}

/* --- Life ------------------------------------------------------------------------------------- */

void spyre_dma_allow(SpyreState *s, bool on)
{
	if (qatomic_read(&s->dma.allowed) == on)
		return;
	trace_spyre_bus_master(s->name, on);
	qatomic_set(&s->dma.allowed, on);
	/* Pairs with the acquire in spyre_dma_map(): after the sync every worker has seen it. */
	smp_mb();
	if (!on)
		spyre_card_dma_sync(s->card);
}

void spyre_dma_init(SpyreState *s)
{
	s->dma.sections = g_array_new(false, false, sizeof(SpyreSection));
	s->dma.gone = g_ptr_array_new_with_free_func(gone_unref);
	s->dma.iotlb = g_hash_table_new_full(NULL, NULL, NULL, tlb_entry_free);
	qemu_mutex_init(&s->dma.lock);
	qemu_cond_init(&s->dma.cond);
	QSIMPLEQ_INIT(&s->dma.requests);
	QLIST_INIT(&s->dma.iommus);
}

void spyre_dma_realize(SpyreState *s)
{
	s->dma.bh = qemu_bh_new_guarded(iommu_bh, s, &DEVICE(s)->mem_reentrancy_guard);
	s->dma.closed = false;
	s->dma.listener = (MemoryListener){
		.name = "spyre-dma",
		.begin = dma_begin,
		.region_add = dma_region_add,
		.region_del = dma_region_del,
		.commit = dma_commit,
	};
	s->dma.system = (MemoryListener){
		.name = "spyre-system",
		.region_del = system_region_del,
		.commit = system_commit,
	};
	memory_listener_register(&s->dma.listener, pci_get_address_space(PCI_DEVICE(s)));
	memory_listener_register(&s->dma.system, &address_space_memory);
	s->dma.listening = true;
}

void spyre_dma_unrealize(SpyreState *s)
{
	if (!s->dma.listening)
		return;
	spyre_dma_allow(s, false);
	qemu_mutex_lock(&s->dma.lock);
	s->dma.closed = true;
	qemu_cond_broadcast(&s->dma.cond);
	qemu_mutex_unlock(&s->dma.lock);
	/* Both take every region out, which also drops and synchronises. */
	memory_listener_unregister(&s->dma.system);
	memory_listener_unregister(&s->dma.listener);
	s->dma.listening = false;
}

void spyre_dma_finalize(SpyreState *s)
{
	if (s->dma.bh)
		qemu_bh_delete(s->dma.bh);
	g_array_free(s->dma.sections, true);
	g_ptr_array_free(s->dma.gone, true);
	g_hash_table_destroy(s->dma.iotlb);
	if (s->dma.map)
		g_free_rcu(s->dma.map, rcu);
	qemu_cond_destroy(&s->dma.cond);
	qemu_mutex_destroy(&s->dma.lock);
}
