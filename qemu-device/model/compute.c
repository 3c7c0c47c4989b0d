/* SPDX-License-Identifier: MIT */
/* The compute engine: one job at a time on the SoC, and the SoC's way to memory. */
#include "card.h"
#include "time_params.h"

#include <errno.h>
#include <string.h>

static void *soc_dmva(void *opaque, uint64_t addr, uint64_t *len, bool write, enum spyre_syndrome *syn)
{
	struct spyre_card *c = opaque;
	uint64_t phys;

	if (!xlate_dmva(c, c->engine[ENG_COMPUTE].context, addr, len, write, &phys, syn))
		return NULL;
	if (!write)
		return (void *)mem_read(c, phys, len, c->compute_holes);
	mem_touch(c, phys, *len);
	return c->mem + phys;
}

/* Host symbols were copied before the job began, so that no SoC worker ever waits for the host. */
static void *soc_hmva(void *opaque, uint64_t addr, uint64_t *len, enum spyre_syndrome *syn)
{
	struct spyre_card *c = opaque;
	uint64_t off = addr - c->compute_symbols_at;
	uint64_t have = 8ull * c->engine[ENG_COMPUTE].cb.u.compute.nsymbols;

	if (off >= have) {
		*syn = SPYRE_SYN_RANGE;
		return NULL;
	}
	if (*len > have - off)
		*len = have - off;
	*syn = SPYRE_SYN_NONE;
	return (uint8_t *)c->compute_symbols + off;
}

static bool soc_checkpoint(void *opaque, unsigned int w)
{
	struct spyre_card *c = opaque;

	worker_checkpoint(c, &c->epoch.workers[WORKER_SOC + w]);
	add_relaxed(&c->engine[ENG_COMPUTE].progress, 1);
	return load_acquire(&c->engine[ENG_COMPUTE].cancel);
}

static bool soc_keep(void *opaque, unsigned int w, bool *stop)
{
	struct spyre_card *c = opaque;

	if (!worker_unwaited(c, &c->epoch.workers[WORKER_SOC + w]))
		return false;
	add_relaxed(&c->engine[ENG_COMPUTE].progress, 1);
	*stop = load_acquire(&c->engine[ENG_COMPUTE].cancel);
	return true;
}

static void soc_active(void *opaque, unsigned int w, bool on)
{
	struct spyre_card *c = opaque;

	if (on)
		worker_online(c, &c->epoch.workers[WORKER_SOC + w]);
	else
		worker_offline(c, &c->epoch.workers[WORKER_SOC + w]);
}

int compute_init(struct spyre_card *c)
{
	struct spyre_soc_config cfg = {
		.threads = c->soc_threads,
		.cores = c->cores,
		.core_hz = c->cfg.core_hz,
		.soc_hz = c->cfg.soc_hz,
		.watchdog = c->cfg.watchdog,
		.accumulate_dl16 = c->cfg.accumulate_dl16,
		.check_races = c->cfg.check_races,
	};

	c->soc_mem.opaque = c;
	c->soc_mem.dmva = soc_dmva;
	c->soc_mem.hmva = soc_hmva;
	c->soc_mem.checkpoint = soc_checkpoint;
	c->soc_mem.keep = soc_keep;
	c->soc_mem.active = soc_active;
	pthread_mutex_init(&c->stuck_lock, NULL);
	counters_init(c);
	c->soc = spyre_soc_new(&cfg);
	return c->soc ? 0 : -ENOMEM;
}

void compute_free(struct spyre_card *c)
{
	if (!c->soc)
		return;
	spyre_soc_free(c->soc);
	pthread_mutex_destroy(&c->stuck_lock);
}

static bool copy_symbols(struct engine *e)
{
	struct spyre_card *c = e->card;
	struct worker *w = engine_worker(e);
	uint64_t addr = e->cb.u.compute.symbols, left = 8ull * e->cb.u.compute.nsymbols;
	uint8_t *to = (uint8_t *)c->compute_symbols;
	enum spyre_syndrome syn = SPYRE_SYN_UNALIGNED;
	bool ok = !(addr & 7);

	c->compute_symbols_at = addr;
	worker_online(c, w);
	while (ok && left) {
		uint64_t n = left, bus;
		uint8_t *p = NULL;

		if (xlate_hmva(c, e->context, addr, &n, false, false, &bus, &syn))
			p = host_map(c, w, bus, &n, false, &syn);
		ok = p;
		if (ok) {
			memcpy(to, p, n);
			to += n;
			addr += n;
			left -= n;
		}
	}
	worker_offline(c, w);
	if (!ok)
		engine_fault(e, SPYRE_HMI_HOST_READ, addr, syn);
	return ok;
}

static void keep_stuck(struct spyre_card *c)
{
	size_t n;

	pthread_mutex_lock(&c->stuck_lock);
	n = spyre_soc_stuck(c->soc, c->stuck, ARRAY_SIZE(c->stuck));
	c->nstuck = n < ARRAY_SIZE(c->stuck) ? n : ARRAY_SIZE(c->stuck);
	c->stuck_at = 0;
	pthread_mutex_unlock(&c->stuck_lock);
}

bool compute_pop_stuck(struct spyre_card *c, struct spyre_stuck *out)
{
	bool ret = false;

	pthread_mutex_lock(&c->stuck_lock);
	if (c->stuck_at < c->nstuck) {
		*out = c->stuck[c->stuck_at++];
		ret = true;
	}
	pthread_mutex_unlock(&c->stuck_lock);
	return ret;
}

static void stamp(struct engine *e, uint64_t ts3, uint64_t ts4)
{
	e->rb.ts[0] = e->ts1;
	e->rb.ts[1] = e->ts1;
	e->rb.ts[2] = ts3;
	e->rb.ts[3] = ts4;
	e->rb.ts[4] = ts4 + TIME_COMPUTE_TAIL;
	e->rb.ts4 = ts4;
	e->ts5 = ts4 + TIME_COMPUTE_TAIL;
}

void compute_run(struct engine *e)
{
	struct spyre_card *c = e->card;
	struct spyre_cb_compute *cb = &e->cb.u.compute;
	struct spyre_soc_job job = {
		.bootaddr = cb->bootaddr,
		.symbols = cb->symbols,
		.nsymbols = cb->nsymbols,
		.core_mask = cb->core_mask,
		.symbols_host = e->cb.flags & SPYRE_CB_F_SYM_HOST,
		.keep_lx = e->cb.flags & SPYRE_CB_F_KEEP_LX,
		.context = e->context,
		.mem = &c->soc_mem,
	};
	struct spyre_soc_time time = { 0 };
	uint64_t ts3 = e->ts1 + TIME_PREPARE, exec;
	bool tripped;

	stamp(e, ts3, ts3);
	if (e->cb.type != SPYRE_CB_COMPUTE) {
		e->rb.status = SPYRE_ERR_BAD_CB;
		return;
	}
	if (cb->nsymbols > SPYRE_JOB_SYMBOLS) {
		e->rb.status = SPYRE_ERR_SYMBOLS;
		return;
	}
	pthread_mutex_lock(&c->tele.lock);
	tripped = c->tele.tripped;
	pthread_mutex_unlock(&c->tele.lock);
	if (tripped) {
		e->rb.status = SPYRE_ERR_HW;
		return;
	}
	if (job.symbols_host && !copy_symbols(e))
		return;
	/*
	 * What others write while the job runs is not ordered against it, so that a page need be asked about
	 * only once in a job; before it, anybody may have written by means that the card does not see.
	 */
	memset(c->compute_holes, 0, c->page_words * sizeof(*c->compute_holes));
	if (!spyre_soc_prepare(c->soc, &job, &time, &e->rb)) {
		if (e->rb.status == SPYRE_OK) {
			card_inconsistent(c, "a job was refused without a reason");
			e->rb.status = SPYRE_ERR_INTERNAL;
		}
		if (e->rb.status == SPYRE_ERR_DEADLOCK)
			keep_stuck(c);
		return;
	}
	if (unlikely(take_fault(&c->fault_core_hang))) {
		e->rb.status = SPYRE_ERR_WATCHDOG;
		e->rb.cycles = c->cfg.watchdog;
		return;
	}
	e->rb.cycles = time.cycles;
	exec = ((unsigned __int128)time.cycles * c->cfg.soc_hz + c->cfg.core_hz - 1) / c->cfg.core_hz;
	if (load_relaxed(&c->tele.throttled))
		exec *= TIME_THROTTLE;
	if (e->cb.timeout && TIME_PREPARE + exec > e->cb.timeout) {
		/* Decided before data moves, as for the watchdog. */
		uint64_t end = e->ts1 + e->cb.timeout;

		stamp(e, ts3 < end ? ts3 : end, end);
		e->rb.status = SPYRE_ERR_TIMEOUT;
		return;
	}
	stamp(e, ts3, ts3 + exec);
	tele_activity(c, e->number, ts3, ts3 + exec,
		      time.pt_macs * ENERGY_MAC_PJ +
		      (double)(time.rd_bytes + time.wr_bytes) * ENERGY_MEM_BYTE_PJ);
	e->rb.bytes = time.rd_bytes + time.wr_bytes;
	add_relaxed(&c->mem_rd, time.rd_bytes);
	add_relaxed(&c->mem_wr, time.wr_bytes);
	if (!spyre_soc_execute(c->soc, &e->rb) && e->rb.status == SPYRE_OK) {
		card_inconsistent(c, "a job failed without a reason");
		e->rb.status = SPYRE_ERR_INTERNAL;
	}
}
