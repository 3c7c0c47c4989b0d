/* SPDX-License-Identifier: MIT */
/*
 * The SoC alone for tests: flat memory for each segment, a launch, and a look at the result. Header only,
 * so that every test program is one file.
 */
#ifndef TEST_SOC_ENV_H
#define TEST_SOC_ENV_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soc.h"
#include "spyreprog.h"

#define ENV_SEGMENT(s)	((uint64_t)(s) << SPYRE_SEGMENT_SHIFT)

struct env {
	struct spyre_soc *soc;
	struct spyre_soc_mem mem;
	uint8_t *seg[SPYRE_SEGMENTS];
	uint64_t len[SPYRE_SEGMENTS];
	uint64_t ro;			/* segments that may not be written, a bit each */
	uint64_t piece;			/* longest contiguous run that is given, 0: all */
	uint64_t checkpoints;		/* counted, atomic */
	uint64_t stop_at;		/* checkpoint that asks to stop, 0: none */
	bool let_go;			/* somebody always waits for workers to let go of their pointers */
	void (*between)(struct env *e);	/* NULL, or what happens once they have */
	int active;			/* workers between active(true) and active(false), atomic */
	struct spyre_rb rb;
	struct spyre_soc_time time;
};

static inline void *env_dmva(void *opaque, uint64_t addr, uint64_t *len, bool write, enum spyre_syndrome *syn)
{
	struct env *e = opaque;
	uint64_t s = addr >> SPYRE_SEGMENT_SHIFT, off = addr & (SPYRE_SEGMENT_SIZE - 1);

	if (s >= SPYRE_SEGMENTS || off >= e->len[s]) {
		*syn = SPYRE_SYN_PAGE_FAULT;
		return NULL;
	}
	if (write && (e->ro >> s & 1)) {
		*syn = SPYRE_SYN_PERMISSION;
		return NULL;
	}
	if (*len > e->len[s] - off)
		*len = e->len[s] - off;
	if (e->piece && *len > e->piece - off % e->piece)
		*len = e->piece - off % e->piece;
	return e->seg[s] + off;
}

static inline void *env_hmva(void *opaque, uint64_t addr, uint64_t *len, enum spyre_syndrome *syn)
{
	return env_dmva(opaque, addr, len, false, syn);
}

static inline bool env_checkpoint(void *opaque, unsigned int w)
{
	struct env *e = opaque;
	uint64_t n = __atomic_add_fetch(&e->checkpoints, 1, __ATOMIC_RELAXED);

	(void)w;
	if (e->between)
		e->between(e);
	return e->stop_at && n >= e->stop_at;
}

static inline bool env_keep(void *opaque, unsigned int w, bool *stop)
{
	struct env *e = opaque;

	if (e->let_go)
		return false;
	*stop = env_checkpoint(opaque, w);
	return true;
}

static inline void env_active(void *opaque, unsigned int w, bool on)
{
	struct env *e = opaque;

	(void)w;
	__atomic_add_fetch(&e->active, on ? 1 : -1, __ATOMIC_RELAXED);
}

static inline void env_init(struct env *e, unsigned int threads)
{
	struct spyre_soc_config cfg = {
		.threads = threads, .cores = 0xffffffffu, .core_hz = SPYRE_CORE_HZ, .soc_hz = SPYRE_SOC_HZ,
		.watchdog = 1ull << 40,
	};

	memset(e, 0, sizeof(*e));
	e->soc = spyre_soc_new(&cfg);
	e->mem = (struct spyre_soc_mem){
		.opaque = e, .dmva = env_dmva, .hmva = env_hmva, .checkpoint = env_checkpoint, .keep = env_keep,
		.active = env_active,
	};
}

/* Zeroed memory of a segment. */
static inline uint8_t *env_map(struct env *e, unsigned int s, uint64_t len)
{
	free(e->seg[s]);
	if (posix_memalign((void **)&e->seg[s], 4096, len ? len : 1))
		abort();
	memset(e->seg[s], 0, len);
	e->len[s] = len;
	return e->seg[s];
}

static inline void env_free(struct env *e)
{
	unsigned int s;

	spyre_soc_free(e->soc);
	for (s = 0; s < SPYRE_SEGMENTS; s++)
		free(e->seg[s]);
}

/* Puts a container at the start of segment 7. */
static inline void env_load(struct env *e, const void *container, size_t size)
{
	memcpy(env_map(e, 7, (size + 8192 + 127) & ~(size_t)127), container, size);
}

/* Finishes and loads a job; prints why if the builder refused it. */
static inline void env_load_job(struct env *e, struct spyreprog_job *job)
{
	void *c;
	size_t n;

	if (spyreprog_job_finish(job, &c, &n)) {
		fprintf(stderr, "builder: %s\n", spyreprog_job_error(job));
		abort();
	}
	env_load(e, c, n);
	free(c);
	spyreprog_job_free(job);
}

#define ENV_SYMBOLS 4096u	/* before the end of segment 7 */

/* Runs what segment 7 holds; symbols may be NULL. Returns the status. */
static inline enum spyre_status env_run_flags(struct env *e, const uint64_t *symbols, uint32_t nsymbols,
					      uint32_t context, bool keep_lx)
{
	struct spyre_soc_job job = {
		.bootaddr = ENV_SEGMENT(7), .nsymbols = nsymbols, .mem = &e->mem, .context = context,
		.keep_lx = keep_lx, .symbols = ENV_SEGMENT(7) + e->len[7] - ENV_SYMBOLS,
	};

	if (nsymbols)
		memcpy(e->seg[7] + e->len[7] - ENV_SYMBOLS, symbols, nsymbols * 8);
	memset(&e->rb, 0, sizeof(e->rb));
	if (spyre_soc_prepare(e->soc, &job, &e->time, &e->rb))
		spyre_soc_execute(e->soc, &e->rb);
	return e->rb.status;
}

static inline enum spyre_status env_run(struct env *e, const uint64_t *symbols, uint32_t nsymbols)
{
	return env_run_flags(e, symbols, nsymbols, 1, false);
}

#endif
