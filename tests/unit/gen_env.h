/* SPDX-License-Identifier: MIT */
/* For tests of generated programs: memory with guards, and the SoC in this process to run them on. */
#ifndef GEN_ENV_H
#define GEN_ENV_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <spyre/num.h>

#include "soc.h"
#include "spyregen.h"

#define DATA_BASE	0x400000000ull
#define PROG_BASE	0x1c00000000ull
#define GUARD		4096u

/* A context's memory: tensors in one segment, the program in segment 7. Everything else faults. */
struct mem {
	uint8_t *data, *prog;
	uint64_t used, size, prog_size;
};

static struct spyre_soc *soc;

static inline void *dmva(void *opaque, uint64_t addr, uint64_t *len, bool write, enum spyre_syndrome *syn)
{
	struct mem *m = opaque;

	if (addr >= DATA_BASE && addr < DATA_BASE + m->used) {
		if (*len > DATA_BASE + m->used - addr)
			*len = DATA_BASE + m->used - addr;
		return m->data + (addr - DATA_BASE);
	}
	if (!write && addr >= PROG_BASE && addr < PROG_BASE + m->prog_size) {
		if (*len > PROG_BASE + m->prog_size - addr)
			*len = PROG_BASE + m->prog_size - addr;
		return m->prog + (addr - PROG_BASE);
	}
	*syn = SPYRE_SYN_PAGE_FAULT;
	return NULL;
}

static inline void *hmva(void *opaque, uint64_t addr, uint64_t *len, enum spyre_syndrome *syn)
{
	(void)opaque;
	(void)len;
	(void)syn;
	return (void *)(uintptr_t)addr;
}

static inline bool checkpoint(void *opaque, unsigned int w)
{
	(void)opaque;
	(void)w;
	return false;
}

static inline bool keep(void *opaque, unsigned int w, bool *stop)
{
	*stop = checkpoint(opaque, w);
	return true;
}

static inline void active(void *opaque, unsigned int w, bool on)
{
	(void)opaque;
	(void)w;
	(void)on;
}

static inline uint64_t alloc(struct mem *m, uint64_t bytes, void **host)
{
	uint64_t at = m->used;

	assert_true(at + bytes + GUARD <= m->size);
	*host = m->data + at;
	/* Nothing may be written behind a tensor. */
	memset(m->data + at + bytes, 0xa5, GUARD);
	m->used = at + bytes + GUARD;
	return DATA_BASE + at;
}

static inline void check_guard(const void *tensor, uint64_t bytes)
{
	const uint8_t *p = (const uint8_t *)tensor + bytes;
	unsigned int i;

	for (i = 0; i < GUARD; i++)
		assert_int_equal(p[i], 0xa5);
}

static inline void run_on(struct mem *m, struct spyreprog_job *job, const uint64_t *symbols,
		   unsigned int nsymbols)
{
	struct spyre_soc_mem ops = { m, dmva, hmva, checkpoint, keep, active };
	struct spyre_soc_job j = { .bootaddr = PROG_BASE,
				   .symbols = (uintptr_t)symbols,
				   .nsymbols = nsymbols,
				   .symbols_host = true,
				   .context = 1,
				   .mem = &ops };
	struct spyre_soc_time time;
	struct spyre_rb rb = { 0 };
	struct spyre_stuck stuck[8];
	size_t size, i, n;
	bool ok;

	if (spyreprog_job_finish(job, (void **)&m->prog, &size))
		fail_msg("finish: %s", spyreprog_job_error(job));
	spyreprog_job_free(job);
	m->prog_size = size;
	ok = spyre_soc_prepare(soc, &j, &time, &rb) && spyre_soc_execute(soc, &rb);
	if (!ok || rb.status != SPYRE_OK) {
		n = spyre_soc_stuck(soc, stuck, 8);
		for (i = 0; rb.status == SPYRE_ERR_DEADLOCK && i < n && i < 8; i++)
			print_message("stuck: core %u unit %u waits %u number %u pc %u\n",
				      stuck[i].core, stuck[i].unit, stuck[i].waits, stuck[i].number,
				      stuck[i].pc);
		fail_msg("job failed: status %u err %u core %u unit 0x%x pc %u addr 0x%llx",
			 rb.status, rb.err_code, rb.err_core, rb.err_unit, rb.err_pc,
			 (unsigned long long)rb.rb_hmierr_addr);
	}
	free(m->prog);
	m->prog = NULL;
}

static uint32_t rng_state;

static inline uint32_t rng(void)
{
	rng_state = rng_state * 1664525u + 1013904223u;
	return rng_state >> 8;
}

static inline float rnd(void)
{
	return ((float)(rng() & 0xffff) - 32768.0f) / 16384.0f;
}

static inline float *random_matrix(size_t n, enum spyre_format fmt)
{
	float *v = malloc(n * sizeof(*v));
	size_t i;

	for (i = 0; i < n; i++)
		v[i] = rnd();
	spyregen_round(v, n, fmt);
	return v;
}

static inline struct mem mem_new(uint64_t size)
{
	struct mem m = { .size = size };

	m.data = aligned_alloc(4096, size);
	assert_non_null(m.data);
	return m;
}

static inline float tolerance(enum spyre_format fmt)
{
	return fmt == SPYRE_SEN169_FP16 ? 0x1p-9f : fmt == SPYRE_IEEE_FP16 ? 0x1p-10f :
	       fmt == SPYRE_BFLOAT16 ? 0x1p-7f : 0x1p-19f;
}

static inline int setup(void **state)
{
	struct spyre_soc_config cfg = { .threads = 2, .cores = 0xffffffffu, .core_hz = 1500000000u,
					.soc_hz = 560000000u, .watchdog = 1ull << 40 };

	(void)state;
	soc = spyre_soc_new(&cfg);
	return soc ? 0 : -1;
}

static inline int teardown(void **state)
{
	(void)state;
	spyre_soc_free(soc);
	return 0;
}

#endif
