/* SPDX-License-Identifier: MIT */
/* The SoC's boundary: the cache of decoded programs, launch checks, and the pool that runs cores. */
#include <stdlib.h>
#include <sys/mman.h>

#include "soc_lx.h"
#include "thread.h"

/* Containers kept decoded: as many as fit, the last one always. */
#define CACHE_BYTES	(64u << 20)
#define TIMES_MAX	64u	/* start values remembered for each */
#define LX_MAP		(33 * (size_t)SPYRE_LX_SIZE)

static void *worker_main(void *arg);

/* --- Life ----------------------------------------------------------------------------------- */

struct spyre_soc *spyre_soc_new(const struct spyre_soc_config *cfg)
{
	struct spyre_soc *soc = calloc(1, sizeof(*soc));
	unsigned int i;

	if (!soc)
		return NULL;
	soc->cfg = *cfg;
	if (!soc->cfg.threads)
		soc->cfg.threads = 1;
	soc->vec = spyre_vec_ops_best();
	soc->pt = spyre_pt_ops_best();
	pthread_mutex_init(&soc->lock, NULL);
	pthread_cond_init(&soc->work, NULL);
	pthread_cond_init(&soc->idle, NULL);
	spyre_count_init(soc);
	soc->core = calloc(32, sizeof(*soc->core));
	soc->workers = calloc(soc->cfg.threads, sizeof(*soc->workers));
	if (!soc->core || !soc->workers)
		goto fail;
	/* Zero pages until they are used; an LX is a huge page where the host has those. */
	soc->lx = mmap(NULL, LX_MAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (soc->lx == MAP_FAILED) {
		soc->lx = NULL;
		goto fail;
	}
	madvise(soc->lx, LX_MAP, MADV_HUGEPAGE);
	for (i = 0; i < 32; i++) {
		struct core *c = &soc->core[i];

		c->soc = soc;
		c->id = i;
		c->lx = soc->lx + (-(uintptr_t)soc->lx & (SPYRE_LX_SIZE - 1)) + i * (size_t)SPYRE_LX_SIZE;
	}
	for (i = 1; i < soc->cfg.threads; i++) {
		struct worker *w = &soc->workers[i];

		w->soc = soc;
		w->id = i;
		/* With fewer threads than asked for everything is only slower. */
		if (thread_start(&w->thread, worker_main, w))
			break;
		soc->nworkers++;
	}
	return soc;
fail:
	spyre_soc_free(soc);
	return NULL;
}

static struct job **bucket(struct spyre_soc *soc, const uint8_t *digest)
{
	return &soc->hash[(digest[0] | (unsigned int)digest[1] << 8) % JOB_HASH];
}

/* Into and out of the list in order of use. */
static void link_newest(struct spyre_soc *soc, struct job *job)
{
	job->prev = NULL;
	job->next = soc->newest;
	*(job->next ? &job->next->prev : &soc->oldest) = job;
	soc->newest = job;
}

static void unlink_job(struct spyre_soc *soc, struct job *job)
{
	*(job->prev ? &job->prev->next : &soc->newest) = job->next;
	*(job->next ? &job->next->prev : &soc->oldest) = job->prev;
}

static void drop(struct spyre_soc *soc, struct job *job)
{
	struct job **p;
	struct timed *t;

	for (p = bucket(soc, job->digest); *p != job; p = &(*p)->same_hash)
		;
	*p = job->same_hash;
	unlink_job(soc, job);
	soc->jobs_bytes -= job->bytes;
	while ((t = job->times)) {
		job->times = t->next;
		spyre_count_forget(soc, t);
	}
	spyre_job_free(job);
}

static void forget(struct spyre_soc *soc)
{
	while (soc->oldest)
		drop(soc, soc->oldest);
	soc->job = NULL;
	soc->timed = NULL;
}

void spyre_soc_free(struct spyre_soc *soc)
{
	unsigned int i;

	if (!soc)
		return;
	pthread_mutex_lock(&soc->lock);
	soc->quit = true;
	pthread_cond_broadcast(&soc->work);
	pthread_mutex_unlock(&soc->lock);
	for (i = 1; i <= soc->nworkers; i++)
		pthread_join(soc->workers[i].thread, NULL);
	for (i = 0; soc->core && i < 32; i++)
		spyre_core_free(&soc->core[i]);
	if (soc->lx)
		munmap(soc->lx, LX_MAP);
	for (i = 0; i < SPYRE_JOB_GROUPS; i++)
		free(soc->group[i].e);
	forget(soc);
	free(soc->stuck);
	free(soc->core);
	free(soc->workers);
	pthread_cond_destroy(&soc->idle);
	pthread_cond_destroy(&soc->work);
	pthread_mutex_destroy(&soc->lock);
	spyre_count_free(soc);
	free(soc);
}

void spyre_soc_reset(struct spyre_soc *soc, uint32_t cores)
{
	unsigned int i;

	spyre_count_clear(soc);
	forget(soc);
	soc->cfg.cores = cores;
	soc->lx_valid = false;
	soc->nstuck = 0;
	for (i = 0; i < 32; i++) {
		struct core *c = &soc->core[i];

		/* Gives the memory back; reads as zero again. */
		madvise(c->lx, SPYRE_LX_SIZE, MADV_DONTNEED);
		__atomic_store_n(&c->lx_parity, false, __ATOMIC_RELAXED);
		memset(c->lx_dirty, 0, sizeof(c->lx_dirty));
		memset(c->lx_stale, 0, sizeof(c->lx_stale));
	}
}

void spyre_soc_lx_parity(struct spyre_soc *soc, unsigned int core)
{
	__atomic_store_n(&soc->core[core].lx_parity, true, __ATOMIC_RELAXED);
}

size_t spyre_soc_stuck(struct spyre_soc *soc, struct spyre_stuck *out, size_t max)
{
	if (max > soc->nstuck)
		max = soc->nstuck;
	if (max)
		memcpy(out, soc->stuck, max * sizeof(*out));
	return soc->nstuck;
}

void spyre_soc_fail(struct spyre_rb *rb, enum spyre_status status, enum spyre_prog_err code, unsigned int core,
		    unsigned int unit, uint32_t pc)
{
	rb->status = status;
	rb->err_code = code;
	rb->err_core = (uint16_t)core;
	rb->err_unit = (uint16_t)unit;
	rb->err_pc = pc;
}

static bool fail(struct spyre_rb *rb, enum spyre_status status)
{
	spyre_soc_fail(rb, status, SPYRE_PE_NONE, 0xffff, 0xffff, 0);
	return false;
}

static bool mem_fail(struct spyre_rb *rb, enum spyre_hmi_mode mode, uint64_t addr, enum spyre_syndrome syn,
		     unsigned int snid)
{
	fail(rb, spyre_syndrome_status(syn));
	if (syn == SPYRE_SYN_CANCELLED)
		return false;
	rb->rb_hmierr_mode = mode;
	rb->rb_hmierr_addr = addr;
	rb->rb_hmierr_syndrome = syn;
	rb->rb_hmierr_snid = snid;
	return false;
}

/* --- Fetching ------------------------------------------------------------------------------- */

enum fetch { FETCH_COPY, FETCH_COMPARE };

/*
 * Copies or compares bytes of the job's memory, with a checkpoint each 64 KiB. *same: all were equal.
 */
static bool fetch(struct spyre_soc *soc, uint64_t addr, uint8_t *buf, uint64_t bytes, enum fetch what, bool *same,
		  bool host, struct spyre_rb *rb)
{
	const struct spyre_soc_mem *mem = soc->req.mem;
	uint64_t len;
	const uint8_t *p;

	while (bytes) {
		enum spyre_syndrome syn = SPYRE_SYN_RANGE;

		if (soc_checkpoint(soc, 0))
			return fail(rb, SPYRE_ERR_CANCELLED);
		len = bytes < 65536 ? bytes : 65536;
		if (host)
			p = mem->hmva ? mem->hmva(mem->opaque, addr, &len, &syn) : NULL;
		else
			p = addr < SPYRE_DMVA_SIZE ? mem->dmva(mem->opaque, addr, &len, false, &syn) : NULL;
		if (!p)
			return mem_fail(rb, host ? SPYRE_HMI_HOST_READ : SPYRE_HMI_FETCH, addr, syn, 0);
		if (len > bytes)
			len = bytes;
		if (len > 65536)
			len = 65536;
		if (what == FETCH_COPY) {
			memcpy(buf, p, len);
		} else if (memcmp(buf, p, len)) {
			*same = false;
			return true;
		}
		addr += len;
		buf += len;
		bytes -= len;
	}
	if (same)
		*same = true;
	return true;
}

static void bad_program(struct spyre_rb *rb, const struct job_error *e)
{
	spyre_soc_fail(rb, SPYRE_ERR_BAD_PROGRAM, e->code, e->core, e->unit, e->pc);
}

/* The newest one takes so many bytes more; others go for them. */
static void charge(struct spyre_soc *soc, struct job *job, size_t bytes)
{
	job->bytes += bytes;
	soc->jobs_bytes += bytes;
	while (soc->jobs_bytes > CACHE_BYTES && soc->oldest != job)
		drop(soc, soc->oldest);
}

static void cache_put(struct spyre_soc *soc, struct job *job)
{
	struct job **p = bucket(soc, job->digest);
	size_t bytes = job->bytes;

	job->same_hash = *p;
	*p = job;
	link_newest(soc, job);
	job->bytes = 0;
	charge(soc, job, bytes);
}

/* The decoded container at bootaddr, from the cache or new. NULL with rb filled. */
static struct job *load(struct spyre_soc *soc, struct spyre_rb *rb)
{
	uint64_t addr = soc->req.bootaddr;
	struct spyre_job_header h;
	struct job_error e;
	struct job *job;
	uint8_t *raw;
	bool same;

	if (!fetch(soc, addr, (uint8_t *)&h, sizeof(h), FETCH_COPY, NULL, false, rb))
		return NULL;
	if (!spyre_job_check_header(&h, &e)) {
		bad_program(rb, &e);
		return NULL;
	}
	for (job = *bucket(soc, h.digest); job; job = job->same_hash) {
		if (job->size != h.size || memcmp(job->digest, h.digest, sizeof(h.digest)))
			continue;
		if (!fetch(soc, addr, job->raw, job->size, FETCH_COMPARE, &same, false, rb))
			return NULL;
		if (!same)
			continue;
		unlink_job(soc, job);
		link_newest(soc, job);
		return job;
	}
	raw = malloc(h.size);
	if (!raw) {
		fail(rb, SPYRE_ERR_INTERNAL);
		return NULL;
	}
	if (!fetch(soc, addr, raw, h.size, FETCH_COPY, NULL, false, rb)) {
		free(raw);
		return NULL;
	}
	/*
	 * What was copied is what is checked: its own header may differ from the one read first. Hashing 16 MiB
	 * takes longer than an invalidation may wait, and touches no memory of the card.
	 */
	if (soc->req.mem->active)
		soc->req.mem->active(soc->req.mem->opaque, 0, false);
	job = spyre_job_decode(raw, h.size, &e);
	if (soc->req.mem->active)
		soc->req.mem->active(soc->req.mem->opaque, 0, true);
	if (!job) {
		free(raw);
		if (e.code)
			bad_program(rb, &e);
		else
			fail(rb, SPYRE_ERR_INTERNAL);
		return NULL;
	}
	cache_put(soc, job);
	return job;
}

/* --- Time, remembered ----------------------------------------------------------------------- */

/* Start values that modelled time depends on, in the order of the directory. */
static uint32_t time_keys(const struct spyre_soc *soc, uint64_t *keys)
{
	const struct job *job = soc->job;
	uint32_t n = 0, i, k;

	for (i = 0; i < job->nunits; i++) {
		const struct job_unit *u = &job->units[i];

		for (k = 0; k < u->ninits; k++) {
			if (!(u->program->timed_regs & 1u << u->inits[k].reg) ||
			    u->inits[k].symbol == SPYRE_NO_SYMBOL)
				continue;
			if (keys)
				keys[n] = u->inits[k].value + soc->symbols[u->inits[k].symbol];
			n++;
		}
	}
	return n;
}

static size_t timed_bytes(const struct timed *t)
{
	return sizeof(*t) + t->nkeys * sizeof(t->keys[0]) + t->counts->bytes;
}

static bool timed(struct spyre_soc *soc, struct job *job, struct spyre_soc_time *time, struct spyre_rb *rb)
{
	uint32_t n = time_keys(soc, NULL);
	struct timed *t, **p, *hit;

	t = calloc(1, sizeof(*t) + n * sizeof(t->keys[0]));
	if (!t)
		return fail(rb, SPYRE_ERR_INTERNAL);
	time_keys(soc, t->keys);
	for (p = &job->times; (hit = *p); p = &hit->next) {
		if (hit->nkeys != n || memcmp(hit->keys, t->keys, n * sizeof(t->keys[0])))
			continue;
		free(t);
		*p = hit->next;
		hit->next = job->times;
		job->times = hit;
		soc->timed = hit;
		*time = hit->time;
		return true;
	}
	if (!spyre_time_job(soc, time, &t->counts, rb)) {
		free(t);
		return false;
	}
	t->nkeys = n;
	t->time = *time;
	t->next = job->times;
	job->times = t;
	soc->timed = t;
	charge(soc, job, timed_bytes(t));
	if (++job->ntimes > TIMES_MAX) {
		for (p = &job->times; (*p)->next; p = &(*p)->next)
			;
		job->bytes -= timed_bytes(*p);
		soc->jobs_bytes -= timed_bytes(*p);
		spyre_count_forget(soc, *p);
		*p = NULL;
		job->ntimes--;
	}
	return true;
}

/* --- Launch --------------------------------------------------------------------------------- */

/* The check touches no memory of the card, and not all of it passes a checkpoint as often as an invalidation needs. */
static bool check_races(struct spyre_soc *soc, struct spyre_rb *rb)
{
	const struct spyre_soc_mem *mem = soc->req.mem;
	bool ok;

	if (mem->active)
		mem->active(mem->opaque, 0, false);
	ok = spyre_race_job(soc, rb);
	if (mem->active)
		mem->active(mem->opaque, 0, true);
	return ok;
}

static bool prepare(struct spyre_soc *soc, struct spyre_soc_time *time, struct spyre_rb *rb)
{
	const struct spyre_soc_job *req = &soc->req;
	struct job *job;
	uint32_t wrong;

	if (req->bootaddr >> SPYRE_SEGMENT_SHIFT != SPYRE_PROGRAM_SEGMENT || req->bootaddr % SPYRE_STICK)
		return fail(rb, SPYRE_ERR_BOOTADDR);
	job = load(soc, rb);
	if (!job)
		return false;
	if (job->nsymbols != req->nsymbols)
		return fail(rb, SPYRE_ERR_SYMBOLS);
	wrong = job->core_mask & ~soc->cfg.cores;
	if (!wrong && req->core_mask)
		wrong = req->core_mask ^ job->core_mask;
	if (wrong) {
		fail(rb, SPYRE_ERR_CORES);
		rb->err_core = (uint16_t)__builtin_ctz(wrong);
		return false;
	}
	memset(soc->symbols, 0, sizeof(soc->symbols));
	if (req->nsymbols) {
		if (req->symbols % (req->symbols_host ? 8 : SPYRE_STICK))
			return mem_fail(rb, req->symbols_host ? SPYRE_HMI_HOST_READ : SPYRE_HMI_FETCH, req->symbols,
					SPYRE_SYN_UNALIGNED, 0);
		if (!fetch(soc, req->symbols, (uint8_t *)soc->symbols, req->nsymbols * 8ull, FETCH_COPY, NULL,
			   req->symbols_host, rb))
			return false;
	}
	if (req->keep_lx && (!soc->lx_valid || soc->lx_owner != req->context))
		return fail(rb, SPYRE_ERR_LX_LOST);
	soc->job = job;
	if (!(soc->profile ? spyre_time_profile(soc, time, NULL, rb) : timed(soc, job, time, rb))) {
		soc->job = NULL;
		return false;
	}
	if (soc->cfg.check_races && !soc->profile && !check_races(soc, rb)) {
		soc->job = NULL;
		return false;
	}
	return true;
}

bool spyre_soc_prepare(struct spyre_soc *soc, const struct spyre_soc_job *req, struct spyre_soc_time *time,
		       struct spyre_rb *rb)
{
	bool ok;

	memset(time, 0, sizeof(*time));
	fail(rb, SPYRE_OK);
	rb->rb_hmierr_mode = SPYRE_HMI_NONE;
	rb->rb_hmierr_addr = 0;
	rb->rb_hmierr_syndrome = SPYRE_SYN_NONE;
	rb->rb_hmierr_snid = 0;
	rb->nstuck = 0;
	memset(rb->stuck, 0, sizeof(rb->stuck));
	soc->req = *req;
	soc->job = NULL;
	soc->timed = NULL;
	soc->nstuck = 0;
	__atomic_store_n(&soc->cancel, false, __ATOMIC_RELAXED);
	if (req->mem->active)
		req->mem->active(req->mem->opaque, 0, true);
	ok = prepare(soc, time, rb);
	if (req->mem->active)
		req->mem->active(req->mem->opaque, 0, false);
	return ok;
}

bool spyre_soc_profile(struct spyre_soc *soc, const struct spyre_soc_job *job, struct spyre_soc_profile *profile,
		       struct spyre_rb *rb)
{
	uint32_t phases = profile->phases;
	bool ok;

	memset(profile, 0, sizeof(*profile));
	profile->phases = phases;
	soc->profile = profile;
	ok = spyre_soc_prepare(soc, job, &profile->time, rb);
	soc->profile = NULL;
	soc->job = NULL;
	return ok;
}

void spyre_soc_profile_free(struct spyre_soc_profile *profile)
{
	unsigned int i, k;

	for (i = 0; i < 32; i++)
		for (k = 0; k < SPYRE_PROFILE_UNITS; k++) {
			free(profile->core[i].unit[k].phase);
			profile->core[i].unit[k].phase = NULL;
			profile->core[i].unit[k].nphases = 0;
		}
}

/* --- Pool ----------------------------------------------------------------------------------- */

/*
 * Runs cores until none can advance; several workers at once. Under soc->lock. A worker is one that an
 * invalidation waits for only while it runs a core: when it waits here, it may be for long.
 */
static void pool_run(struct spyre_soc *soc, unsigned int w)
{
	const struct spyre_soc_mem *mem = soc->req.mem;
	struct core *c;

	for (;;) {
		while (!soc->nqueue && soc->running)
			pthread_cond_wait(&soc->work, &soc->lock);
		if (!soc->nqueue)
			return;
		c = soc->queue[soc->qhead];
		soc->qhead = (soc->qhead + 1) % 32;
		soc->nqueue--;
		c->state = CORE_RUNNING;
		soc->running++;
		pthread_mutex_unlock(&soc->lock);
		if (mem->active)
			mem->active(mem->opaque, w, true);
		spyre_core_run(c, w);
		if (mem->active)
			mem->active(mem->opaque, w, false);
		pthread_mutex_lock(&soc->lock);
		soc->running--;
		if (!soc->nqueue && !soc->running)
			pthread_cond_broadcast(&soc->work);
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct spyre_soc *soc = w->soc;
	uint64_t seen = 0;

	pthread_mutex_lock(&soc->lock);
	while (!soc->quit) {
		if (soc->generation == seen) {
			pthread_cond_wait(&soc->work, &soc->lock);
			continue;
		}
		seen = soc->generation;
		/* A job that is over already wants no help. */
		if (!soc->nqueue)
			continue;
		soc->helpers++;
		pool_run(soc, w->id);
		if (!--soc->helpers)
			pthread_cond_broadcast(&soc->idle);
	}
	pthread_mutex_unlock(&soc->lock);
	return NULL;
}

static bool setup(struct spyre_soc *soc)
{
	const struct job *job = soc->job;
	struct core *first[2] = { NULL, NULL }, *last[2] = { NULL, NULL };
	uint32_t m;
	unsigned int i, x;
	bool ring = false;

	soc->shared_lx = false;
	soc->lends = true;
	for (i = 0; i < job->nprograms; i++) {
		const struct job_program *p = &job->programs[i];

		ring |= p->ring;
		soc->shared_lx |= p->stores_cores;
		soc->lends &= !p->ring && !p->stores_cores && !p->multicast && !p->far_sends;
	}
	/* All cores: one that the job leaves out reads as zero in a later job with KEEP_LX too. */
	for (i = 0; !soc->req.keep_lx && i < 32; i++) {
		struct core *c = &soc->core[i];

		for (x = 0; x < LX_GRAINS / 64; x++) {
			c->lx_stale[x] |= c->lx_dirty[x];
			c->lx_dirty[x] = 0;
		}
	}
	for (m = job->core_mask; m; m &= m - 1) {
		struct core *c = &soc->core[__builtin_ctz(m)];

		c->started = false;
		/* Else the thread that runs the core clears what it needs: nobody else stores there. */
		if (soc->shared_lx)
			lx_clear_stale(c);
		c->inbox = false;
		c->in_poke = 0;
		memset(c->in_tag, 0, sizeof(c->in_tag));
		memset(&c->group_fault, 0, sizeof(c->group_fault));
		for (i = 0; i < JOB_CORE_UNITS; i++) {
			c->unit[i].state = UNIT_NONE;
			memset(&c->unit[i].fault, 0, sizeof(c->unit[i].fault));
		}
		for (x = 0; x < 2; x++) {
			struct fifo *f = &c->cl[x].fifo[SPYRE_FIFO_RING];

			f->head = f->count = 0;
			if (ring && !f->buf && posix_memalign((void **)&f->buf, 64, FIFO_CAP * SPYRE_STICK))
				return false;
			/* Corelet 0 sends to the next core, corelet 1 to the previous one. */
			if (last[x]) {
				*(x ? &c->ring_next[x] : &c->ring_prev[x]) = last[x];
				*(x ? &last[x]->ring_prev[x] : &last[x]->ring_next[x]) = c;
			} else {
				first[x] = c;
			}
			last[x] = c;
		}
		c->state = CORE_QUEUED;
		soc->queue[(soc->qhead + soc->nqueue++) % 32] = c;
	}
	for (x = 0; x < 2; x++) {
		*(x ? &first[x]->ring_next[x] : &first[x]->ring_prev[x]) = last[x];
		*(x ? &last[x]->ring_prev[x] : &last[x]->ring_next[x]) = first[x];
	}
	for (i = 0; i < SPYRE_JOB_GROUPS; i++) {
		struct group *g = &soc->group[i];

		g->members = job->groups[i];
		g->base = 0;
		memset(g->next, 0, sizeof(g->next));
		if (!g->members)
			continue;
		if (!g->e)
			g->e = malloc(GROUP_DEPTH * sizeof(*g->e));
		if (!g->e)
			return false;
		memset(g->arrived, 0, sizeof(g->arrived));
	}
	return true;
}

/* The fault that is reported: earliest in modelled time, then lowest core and unit. */
static void report(struct spyre_soc *soc, struct spyre_rb *rb)
{
	struct spyre_time_probe *probes;
	const struct fault **faults;
	unsigned int i, n = 0, best = 0;
	bool unfinished = false;
	uint32_t m;

	probes = malloc(32 * (JOB_CORE_UNITS + 1) * sizeof(*probes));
	faults = malloc(32 * (JOB_CORE_UNITS + 1) * sizeof(*faults));
	if (!probes || !faults) {
		fail(rb, SPYRE_ERR_INTERNAL);
		goto out;
	}
	for (m = soc->job->core_mask; m; m &= m - 1) {
		struct core *c = &soc->core[__builtin_ctz(m)];

		unfinished |= c->live || !c->started;
		for (i = 0; i < JOB_CORE_UNITS + 1; i++) {
			unsigned int u = i < JOB_CORE_UNITS ? i : SPYRE_UNIT_L3LU;

			faults[n] = i < JOB_CORE_UNITS ? &c->unit[i].fault : &c->group_fault;
			if (!faults[n]->status)
				continue;
			probes[n] = (struct spyre_time_probe){ .core = c->id, .unit = u, .ordinal = faults[n]->ordinal };
			n++;
		}
	}
	if (!n) {
		if (unfinished)
			fail(rb, SPYRE_ERR_INTERNAL);
		goto out;
	}
	/* One fault needs no order. */
	if (n > 1)
		spyre_time_probes(soc, probes, n);
	for (i = 1; i < n; i++)
		if (probes[i].time < probes[best].time ||
		    (probes[i].time == probes[best].time && probes[i].core == probes[best].core &&
		     probes[i].unit < probes[best].unit))
			best = i;
	if (faults[best]->mode != SPYRE_HMI_NONE)
		mem_fail(rb, faults[best]->mode, faults[best]->addr, faults[best]->syndrome, probes[best].core);
	spyre_soc_fail(rb, faults[best]->status, faults[best]->code, probes[best].core,
		       job_unit_kind(probes[best].unit) | job_unit_corelet(probes[best].unit) << 8,
		       faults[best]->pc);
out:
	free(probes);
	free(faults);
}

bool spyre_soc_execute(struct spyre_soc *soc, struct spyre_rb *rb)
{
	uint32_t m;
	unsigned int i;

	fail(rb, SPYRE_OK);
	if (!soc->job)
		return fail(rb, SPYRE_ERR_INTERNAL);
	pthread_mutex_lock(&soc->lock);
	soc->qhead = soc->nqueue = 0;
	if (!setup(soc)) {
		soc->nqueue = 0;
		pthread_mutex_unlock(&soc->lock);
		return fail(rb, SPYRE_ERR_INTERNAL);
	}
	spyre_count_run(soc, soc->timed);
	soc->lx_valid = true;
	soc->lx_owner = soc->req.context;
	if (soc->nqueue > 1 && soc->nworkers) {
		soc->generation++;
		pthread_cond_broadcast(&soc->work);
	}
	pool_run(soc, 0);
	while (soc->helpers)
		pthread_cond_wait(&soc->idle, &soc->lock);
	pthread_mutex_unlock(&soc->lock);
	if (__atomic_load_n(&soc->cancel, __ATOMIC_RELAXED))
		fail(rb, SPYRE_ERR_CANCELLED);
	else
		report(soc, rb);
	for (m = soc->job->core_mask, i = 0; m; m &= m - 1, i++)
		soc->core[__builtin_ctz(m)].state = CORE_IDLE;
	soc->job = NULL;
	soc->timed = NULL;
	return rb->status == SPYRE_OK;
}
