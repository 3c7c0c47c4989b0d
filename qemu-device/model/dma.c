/* SPDX-License-Identifier: MIT */
/*
 * DMI, DMO and DMX engines. A job's descriptors are copied and checked before the first byte moves: all
 * address arithmetic is done once, in 128 bits, on the whole extent of each side. Then pieces are
 * translated as they come. A pointer lives in a window until the epoch moves; checkpoints come at least
 * every CHUNK bytes or RUNS runs. Where source and destination overlap, the result is that of some order
 * of pieces.
 *
 * A job that may be moved in parts comes again for each. All checks are made each time, on the whole; modelled
 * times of the parts add up to that of the whole.
 */
#include "card.h"
#include "time_params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK		0x10000ull
#define RUNS		512u
#define SMALL		0x2000ull	/* takes less time than waking the engine's thread */

struct dma_scratch {
	struct spyre_dma_desc desc[SPYRE_DMA_LIST_MAX];
	uint64_t *holes;	/* mem_hole(), for one job */
	bool any_holes;
	uint8_t raw[SPYRE_DMA_LIST_MAX * SPYRE_DMA_LIST_STRIDE];
};

struct side {
	bool host;
	bool write;
	bool hole;		/* card side: the window's page was never written, do not look at it */
	bool asked;		/* destination: .hole says so; false: nobody has asked yet */
	bool written;		/* destination: by this job, with more than zeros */
	uint64_t addr, len;	/* window, len 0: none */
	uint64_t phys;		/* card address of its start, card side only */
	uint8_t *ptr;
};

struct dma {
	struct spyre_card *c;
	struct engine *e;
	struct worker *w;
	struct side src, dst;
	uint64_t epoch;		/* in which the windows were made */
	uint64_t since;		/* bytes since the last checkpoint */
	uint32_t runs;		/* pieces since then */
};

int dma_init(struct engine *e)
{
	e->dma = malloc(sizeof(*e->dma));
	if (!e->dma)
		return -ENOMEM;
	e->dma->any_holes = false;
	e->dma->holes = calloc(e->card->page_words, sizeof(*e->dma->holes));
	return e->dma->holes ? 0 : -ENOMEM;
}

void dma_free(struct engine *e)
{
	if (e->dma)
		free(e->dma->holes);
	free(e->dma);
	e->dma = NULL;
}

static enum spyre_hmi_mode mode(const struct side *s)
{
	if (s->host)
		return s->write ? SPYRE_HMI_HOST_WRITE : SPYRE_HMI_HOST_READ;
	return s->write ? SPYRE_HMI_STORE : SPYRE_HMI_LOAD;
}

/* --- Checks ----------------------------------------------------------------------------------- */

/* Whole extent of one side inside its space; false: the fault is recorded. */
static bool extent_ok(struct engine *e, const struct side *s, uint64_t addr,
		      const struct spyre_dma_desc *d, const uint64_t *stride)
{
	__int128 lo = addr, hi = (__int128)addr + d->bytes;
	uint64_t space = s->host ? SPYRE_HMVA_SIZE : SPYRE_DMVA_SIZE;
	unsigned int i;

	if (!s->host && addr & (SPYRE_STICK - 1)) {
		engine_fault(e, mode(s), addr, SPYRE_SYN_UNALIGNED);
		return false;
	}
	for (i = 0; i + 1 < d->ndims; i++) {
		__int128 reach = (__int128)(int64_t)stride[i] * (d->count[i] - 1);

		if (reach < 0)
			lo += reach;
		else
			hi += reach;
	}
	if (addr < space && lo >= 0 && hi <= (__int128)space)
		return true;
	engine_fault(e, mode(s), addr, SPYRE_SYN_RANGE);
	return false;
}

/* Bytes the descriptor moves, and in whole sticks; 0: it is not a descriptor. */
static uint64_t volume(const struct spyre_dma_desc *d, uint64_t *sticks)
{
	uint64_t runs = 1;
	unsigned int i;

	if (!d->bytes || d->bytes > SPYRE_DMA_BYTES_MAX || d->ndims < 1 || d->ndims > 4)
		return 0;
	for (i = 0; i < 3; i++) {
		if (i + 1 < d->ndims) {
			if (!d->count[i] || __builtin_mul_overflow(runs, d->count[i], &runs) ||
			    runs > SPYRE_DMA_STICKS_MAX)
				return 0;
		} else if (d->count[i] || d->dst_stride[i] || d->src_stride[i]) {
			return 0;
		}
	}
	/* The card moves sticks: a run of less costs as much as one. */
	*sticks = runs * ((d->bytes + SPYRE_STICK - 1) / SPYRE_STICK);
	return *sticks > SPYRE_DMA_STICKS_MAX ? 0 : runs * d->bytes;
}

/* Makes dimensions that lie end to end on both sides one. */
static void merge(struct spyre_dma_desc *d)
{
	unsigned int i, n = 0, left = d->ndims - 1;
	uint64_t bytes = d->bytes;

	for (i = 0; i < left; i++) {
		uint32_t count = d->count[i];
		uint64_t ds = d->dst_stride[i], ss = d->src_stride[i];

		if (count == 1)
			continue;
		if (!n && ds == bytes && ss == bytes) {
			bytes *= count;
			continue;
		}
		d->count[n] = count;
		d->dst_stride[n] = ds;
		d->src_stride[n] = ss;
		n++;
	}
	d->bytes = bytes;
	d->ndims = n + 1;
}

/* --- Pieces ----------------------------------------------------------------------------------- */

static void drop_windows(struct dma *j)
{
	j->src.len = 0;
	j->dst.len = 0;
	j->epoch = load_relaxed(&j->w->seen);
}

/* False: cancelled. */
static bool checkpoint(struct dma *j)
{
	j->since = 0;
	j->runs = 0;
	add_relaxed(&j->e->progress, 1);
	worker_checkpoint(j->c, j->w);
	if (load_relaxed(&j->w->seen) != j->epoch)
		drop_windows(j);
	if (!load_acquire(&j->e->cancel))
		return true;
	j->e->rb.status = SPYRE_ERR_CANCELLED;
	return false;
}

/* What others write while the job runs is not ordered against it, so that a page is asked about once. */
static bool hole(struct dma *j, uint64_t phys)
{
	uint64_t *holes = j->e->dma->holes;

	if (!mem_hole(j->c, phys, holes))
		return false;
	j->e->dma->any_holes = true;
	return true;
}

/* The job's own writes are in order: what it finds in that page from now on is theirs. */
static void own_page(struct dma *j, struct side *d)
{
	uint64_t page = d->phys >> SPYRE_PAGE_SHIFT;

	d->written = true;
	d->asked = false;
	__atomic_fetch_and(&j->e->dma->holes[page / 64], ~(1ull << (page & 63)), __ATOMIC_RELAXED);
}

/* Puts addr into the side's window. */
static bool window(struct dma *j, struct side *s, uint64_t addr)
{
	uint64_t len = SPYRE_PAGE_SIZE - (addr & (SPYRE_PAGE_SIZE - 1)), at;
	enum spyre_syndrome syn;
	uint8_t *p = NULL;

	if (likely(addr - s->addr < s->len))
		return true;
	/* Looking for how many 4 KiB pages follow each other should not cost more than the copy. */
	if (s->host && len > CHUNK)
		len = CHUNK;
	if (!s->host) {
		if (xlate_dmva(j->c, j->e->context, addr, &len, s->write, &at, &syn)) {
			p = j->c->mem + at;
			s->phys = at;
			s->hole = !s->write && hole(j, at);
			s->asked = false;
			s->written = false;
		}
	} else if (xlate_hmva(j->c, j->e->context, addr, &len, s->write, false, &at, &syn)) {
		p = host_map(j->c, j->w, at, &len, s->write, &syn);
		/* It may have been a checkpoint: then the other side's pointer is not good any more. */
		if (load_relaxed(&j->w->seen) != j->epoch)
			drop_windows(j);
	}
	if (!p) {
		engine_fault(j->e, mode(s), addr, syn);
		return false;
	}
	s->addr = addr;
	s->len = len;
	s->ptr = p;
	return true;
}

static bool copy_run(struct dma *j, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct side *s = &j->src, *d = &j->dst;

	while (bytes) {
		uint64_t n = bytes < CHUNK - j->since ? bytes : CHUNK - j->since;
		uint8_t *from, *to;

		/* The second window may cost the first. */
		do {
			if (!window(j, s, src) || !window(j, d, dst))
				return false;
		} while (unlikely(src - s->addr >= s->len));
		if (n > s->len - (src - s->addr))
			n = s->len - (src - s->addr);
		if (n > d->len - (dst - d->addr))
			n = d->len - (dst - d->addr);
		from = s->ptr + (src - s->addr);
		to = d->ptr + (dst - d->addr);
		if (!d->host && !d->written && !s->hole)
			own_page(j, d);
		if (unlikely(s->hole)) {
			if (d->host) {
				memset(to, 0, n);
			} else {
				if (!d->asked)
					d->hole = hole(j, d->phys);
				d->asked = true;
				if (!d->hole)
					mem_zero(j->c, d->phys + (dst - d->addr), n);
			}
		} else if (s->host != d->host) {
			memcpy(to, from, n);
		} else {
			memmove(to, from, n);
		}
		dst += n;
		src += n;
		bytes -= n;
		j->since += n;
		j->e->rb.bytes += n;
		if ((j->since >= CHUNK || ++j->runs >= RUNS) && !checkpoint(j))
			return false;
	}
	return true;
}

/* The bytes from one position to another, counted over all runs in their order. */
static bool copy(struct dma *j, const struct spyre_dma_desc *d, uint64_t from, uint64_t to)
{
	uint64_t dst = d->dst, src = d->src, run = from / d->bytes, off = from % d->bytes;
	uint32_t at[3] = { 0 };
	unsigned int i;

	for (i = 0; i + 1 < d->ndims; i++) {
		at[i] = run % d->count[i];
		run /= d->count[i];
		dst += d->dst_stride[i] * at[i];
		src += d->src_stride[i] * at[i];
	}
	for (;;) {
		uint64_t n = d->bytes - off;

		if (n > to - from)
			n = to - from;
		if (!copy_run(j, dst + off, src + off, n))
			return false;
		from += n;
		off = 0;
		if (from == to)
			return true;
		for (i = 0; i + 1 < d->ndims; i++) {
			dst += d->dst_stride[i];
			src += d->src_stride[i];
			if (++at[i] < d->count[i])
				break;
			dst -= d->dst_stride[i] * d->count[i];
			src -= d->src_stride[i] * d->count[i];
			at[i] = 0;
		}
		if (i + 1 >= d->ndims)
			return true;
	}
}

static bool fill(struct dma *j, uint64_t dst, uint64_t bytes, uint64_t pattern)
{
	struct side *d = &j->dst;
	/* Giving a whole page back takes one call, so zeros go by pages. */
	uint64_t chunk = pattern ? CHUNK : SPYRE_PAGE_SIZE;

	while (bytes) {
		uint64_t n = bytes < chunk ? bytes : chunk, i, *p;

		if (!window(j, d, dst))
			return false;
		if (n > d->len - (dst - d->addr))
			n = d->len - (dst - d->addr);
		p = (uint64_t *)(d->ptr + (dst - d->addr));
		if (!pattern)
			mem_zero(j->c, d->phys + (dst - d->addr), n);
		else
			for (i = 0; i < n / 8; i++)
				p[i] = pattern;
		dst += n;
		bytes -= n;
		j->e->rb.bytes += n;
		if (!checkpoint(j))
			return false;
	}
	return true;
}

/* --- Jobs ------------------------------------------------------------------------------------- */

/* Copies a descriptor list, which stays the user's to write, into the engine. */
static bool fetch_list(struct dma *j, uint64_t addr, uint32_t entries)
{
	struct side s = { .host = true };
	uint64_t left = (uint64_t)entries * SPYRE_DMA_LIST_STRIDE;
	uint8_t *to = j->e->dma->raw;
	uint32_t i;

	if (addr & 7) {
		engine_fault(j->e, SPYRE_HMI_HOST_READ, addr, SPYRE_SYN_UNALIGNED);
		return false;
	}
	while (left) {
		uint64_t n;

		if (!window(j, &s, addr))
			return false;
		n = s.len < left ? s.len : left;
		memcpy(to, s.ptr, n);
		to += n;
		addr += n;
		left -= n;
		s.len = 0;
	}
	for (i = 0; i < entries; i++)
		memcpy(&j->e->dma->desc[i], j->e->dma->raw + i * SPYRE_DMA_LIST_STRIDE,
		       sizeof(struct spyre_dma_desc));
	return true;
}

/* Sets what the job is from its CB; returns the number of descriptors, 0 when it is refused. */
static uint32_t setup(struct dma *j)
{
	struct spyre_cb *cb = &j->e->cb;
	uint32_t n = 1;

	j->dst.write = true;
	switch (cb->type) {
	case SPYRE_CB_DMAI:
		j->src.host = true;
		break;
	case SPYRE_CB_DMAO:
		j->dst.host = true;
		break;
	case SPYRE_CB_DMAX:
		j->src.host = cb->flags & SPYRE_CB_F_SRC_HOST;
		j->dst.host = cb->flags & SPYRE_CB_F_DST_HOST;
		break;
	}
	if (cb->flags & SPYRE_CB_F_LIST) {
		n = cb->u.list.entries;
		if (!n || n > SPYRE_DMA_LIST_MAX || cb->u.list.reserved) {
			j->e->rb.status = SPYRE_ERR_BAD_CB;
			return 0;
		}
		if (!fetch_list(j, cb->u.list.list, n))
			return 0;
	} else {
		j->e->dma->desc[0] = cb->u.dma;
	}
	return n;
}

static uint64_t cycles_for(struct spyre_card *c, uint64_t bytes, uint64_t rate)
{
	return ((unsigned __int128)bytes * c->cfg.soc_hz + rate - 1) / rate;
}

/*
 * Modelled times. Both engines of a direction share the link in the order in which they start, and so do
 * copies within the card: that is the bandwidth-sharing rule. The job moves sticks in all, from e->at to this
 * time. False: the CB's timeout comes first.
 */
static bool stamp(struct dma *j, uint64_t setup_cycles, uint64_t sticks, uint64_t to, uint64_t rate,
		  unsigned int link)
{
	struct engine *e = j->e;
	uint64_t all = setup_cycles + cycles_for(j->c, sticks * SPYRE_STICK, rate);
	uint64_t data_cycles = cycles_for(j->c, to * SPYRE_STICK, rate) -
			       cycles_for(j->c, (uint64_t)e->at * SPYRE_STICK, rate);
	uint64_t ts[5], start, i;
	bool ok = true;

	if (e->at)
		setup_cycles = 0;

	for (i = 0; i < 5; i++)
		ts[i] = e->ts1;
	if (e->cb.timeout && all > e->cb.timeout) {
		ts[4] = e->ts1 + e->cb.timeout;
		e->rb.status = SPYRE_ERR_TIMEOUT;
		ok = false;
	} else {
		pthread_mutex_lock(&j->c->link_lock);
		start = e->ts1 + setup_cycles;
		if (start < j->c->link_free[link])
			start = j->c->link_free[link];
		ts[4] = start + data_cycles;
		j->c->link_free[link] = ts[4];
		pthread_mutex_unlock(&j->c->link_lock);
	}
	/* The phase that the engine's kind is: in, execute or out. */
	if (e->kind == MCU_ENGINE_DMI)
		ts[1] = ts[2] = ts[3] = ts[4];
	else if (e->kind == MCU_ENGINE_DMX)
		ts[3] = ts[4];
	for (i = 0; i < 5; i++)
		e->rb.ts[i] = ts[i];
	e->rb.ts4 = ts[3];
	e->ts5 = ts[4];
	return ok;
}

/* Where this part of so many sticks ends; 0: there are not as many as were moved before. */
static uint64_t part_end(const struct engine *e, uint64_t sticks)
{
	if (e->at >= sticks)
		return 0;
	return e->part && sticks - e->at > e->part ? (uint64_t)e->at + e->part : sticks;
}

/* Bytes before stick at, of bytes in so many sticks. */
static uint64_t bytes_at(uint64_t bytes, uint64_t at, uint64_t sticks)
{
	return (unsigned __int128)bytes * at / sticks;
}

static void run_copy(struct dma *j)
{
	struct engine *e = j->e;
	struct spyre_dma_desc *desc = e->dma->desc;
	uint64_t total = 0, sticks = 0, setup_cycles, rate, to, begin = 0;
	unsigned int link;
	uint32_t n, i;

	n = setup(j);
	for (i = 0; i < n; i++) {
		uint64_t st, bytes = volume(&desc[i], &st);

		if (!bytes || sticks + st > SPYRE_DMA_STICKS_MAX) {
			e->rb.status = SPYRE_ERR_BAD_CB;
			return;
		}
		total += bytes;
		sticks += st;
		if (!extent_ok(e, &j->src, desc[i].src, &desc[i], desc[i].src_stride) ||
		    !extent_ok(e, &j->dst, desc[i].dst, &desc[i], desc[i].dst_stride))
			return;
	}
	if (!n)
		return;
	if (e->kind == MCU_ENGINE_DMI) {
		setup_cycles = TIME_DMI_SETUP;
		rate = TIME_PCIE_BYTES_S;
		link = 0;
	} else if (e->kind == MCU_ENGINE_DMO) {
		setup_cycles = TIME_DMO_SETUP;
		rate = TIME_PCIE_BYTES_S;
		link = 1;
	} else if (j->src.host || j->dst.host) {
		setup_cycles = TIME_DMX_SETUP;
		rate = TIME_PCIE_BYTES_S;
		link = j->src.host ? 0 : 1;
	} else {
		/* Each byte is read and written. */
		setup_cycles = TIME_DMX_SETUP;
		rate = TIME_MEM_MIXED_BYTES_S / 2;
		link = 2;
	}
	if (e->cb.flags & SPYRE_CB_F_LIST)
		setup_cycles += TIME_DMA_LIST + (uint64_t)(n - 1) * TIME_DMA_DESC;
	to = part_end(e, sticks);
	if (!to) {
		/* The user has changed the list meanwhile. */
		e->rb.status = SPYRE_ERR_BAD_CB;
		return;
	}
	if (!stamp(j, setup_cycles, sticks, to, rate, link))
		return;
	tele_activity(j->c, e->number, e->ts1, e->ts5,
		      (bytes_at(total, to, sticks) - bytes_at(total, e->at, sticks)) * (link == 2 ? 2 * ENERGY_MEM_BYTE_PJ :
			       ENERGY_MEM_BYTE_PJ + ENERGY_PCIE_BYTE_PJ));
	for (i = 0; i < n && begin < to; i++) {
		uint64_t st, bytes = volume(&desc[i], &st);
		uint64_t first = e->at > begin ? e->at - begin : 0;
		uint64_t last = to - begin < st ? to - begin : st;

		begin += st;
		if (first >= last)
			continue;
		merge(&desc[i]);
		if (!copy(j, &desc[i], bytes_at(bytes, first, st), bytes_at(bytes, last, st)))
			break;
	}
	if (e->rb.status == SPYRE_OK && to < sticks)
		e->next = to;
	if (!j->src.host)
		add_relaxed(&j->c->mem_rd, e->rb.bytes);
	if (!j->dst.host)
		add_relaxed(&j->c->mem_wr, e->rb.bytes);
}

static void run_fill(struct dma *j)
{
	struct engine *e = j->e;
	struct spyre_cb_fill *f = &e->cb.u.fill;
	struct spyre_dma_desc d = { .dst = f->dst, .bytes = f->bytes, .ndims = 1 };
	uint64_t sticks = f->bytes / SPYRE_STICK, to = part_end(e, sticks), bytes;

	j->dst.write = true;
	if (!to || f->bytes & (SPYRE_STICK - 1)) {
		e->rb.status = SPYRE_ERR_BAD_CB;
		return;
	}
	if (!extent_ok(e, &j->dst, f->dst, &d, d.dst_stride))
		return;
	if (!stamp(j, TIME_DMX_SETUP, sticks, to, TIME_MEM_BYTES_S, 2))
		return;
	bytes = (to - e->at) * SPYRE_STICK;
	tele_activity(j->c, e->number, e->ts1, e->ts5, bytes * ENERGY_MEM_BYTE_PJ);
	if (fill(j, f->dst + (uint64_t)e->at * SPYRE_STICK, bytes, f->pattern) && to < sticks)
		e->next = to;
	add_relaxed(&j->c->mem_wr, e->rb.bytes);
}

bool dma_is_small(const struct spyre_cb *cb)
{
	const struct spyre_dma_desc *d = &cb->u.dma;

	return cb->type != SPYRE_CB_FILL && !(cb->flags & SPYRE_CB_F_LIST) && d->ndims == 1 &&
	       d->bytes <= SMALL;
}

static bool takes(enum mcu_engine_kind kind, uint32_t type)
{
	switch (kind) {
	case MCU_ENGINE_DMI:
		return type == SPYRE_CB_DMAI;
	case MCU_ENGINE_DMO:
		return type == SPYRE_CB_DMAO;
	case MCU_ENGINE_DMX:
		return type == SPYRE_CB_DMAX || type == SPYRE_CB_FILL;
	default:
		return false;
	}
}

void dma_run(struct engine *e)
{
	struct dma j = { .c = e->card, .e = e, .w = engine_worker(e) };
	unsigned int i;

	for (i = 0; i < 5; i++)
		e->rb.ts[i] = e->ts1;
	e->rb.ts4 = e->ts1;
	if (!takes(e->kind, e->cb.type)) {
		e->rb.status = SPYRE_ERR_BAD_CB;
		return;
	}
	if (unlikely(take_fault(&j.c->fault_dma_abort))) {
		e->rb.status = SPYRE_ERR_HW;
		return;
	}
	if (e->dma->any_holes) {
		memset(e->dma->holes, 0, j.c->page_words * sizeof(*e->dma->holes));
		e->dma->any_holes = false;
	}
	worker_online(j.c, j.w);
	j.epoch = load_relaxed(&j.w->seen);
	if (e->cb.type == SPYRE_CB_FILL)
		run_fill(&j);
	else
		run_copy(&j);
	worker_offline(j.c, j.w);
}
