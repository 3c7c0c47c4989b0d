/* SPDX-License-Identifier: MIT */
/*
 * What the model's tests share: a card in this process, programs run to their end, and address spaces
 * built as the driver builds them. Tests call the model's inner functions in the place of the core's
 * thread, which is fine while the core rests.
 */
#ifndef TESTS_MODEL_UTIL_H
#define TESTS_MODEL_UTIL_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "card.h"
#include "counter.h"
#include "inproc.h"
#include "rv32.h"

#define MB		(1ull << 20)
#define UTIL_WAIT_MS	60000

struct fix {
	struct spyre_inproc *ip;
	struct spyre_card *card;
	uint64_t table_next;	/* card address: next free byte of the table area */
	uint64_t page_next;	/* card address: next free device page */
};

static inline void fix_quiet(void *opaque, enum spyre_log_level level, const char *text)
{
	(void)opaque;
	(void)level;
	(void)text;
}

static inline struct fix *fix_new(const struct spyre_card_config *cfg)
{
	struct fix *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ip = spyre_inproc_new(cfg, 64 * MB);
	assert_non_null(f->ip);
	f->card = spyre_inproc_card(f->ip);
	/* Refusals and crashes are what many tests are about. */
	spyre_inproc_log(f->ip, SPYRE_LOG_WARN, fix_quiet, NULL);
	f->table_next = 16 * MB;
	f->page_next = 32 * MB;
	return f;
}

static inline void fix_free(struct fix *f)
{
	assert_int_equal(spyre_inproc_inconsistencies(f->ip), 0);
	spyre_inproc_free(f->ip);
	free(f);
}

static inline int setup_card(void **state)
{
	*state = fix_new(NULL);
	return 0;
}

static inline int teardown_card(void **state)
{
	fix_free(*state);
	return 0;
}

static inline uint32_t rd32(struct fix *f, uint64_t off)
{
	return spyre_card_mmio_read(f->card, off, 4);
}

static inline void wr32(struct fix *f, uint64_t off, uint32_t v)
{
	spyre_card_mmio_write(f->card, off, v, 4);
}

static inline uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

#define WAIT_FOR(cond) \
	do { \
		uint64_t end_ = now_ms() + UTIL_WAIT_MS; \
		while (!(cond)) { \
			if (now_ms() > end_) \
				fail_msg("waited %d ms for: %s", UTIL_WAIT_MS, #cond); \
			usleep(200); \
		} \
	} while (0)

static inline uint64_t counter(struct fix *f, const char *name)
{
	uint64_t v = 0;

	if (!find_counter(f->card, name, &v))
		fail_msg("no counter named %s", name);
	return v;
}

static inline void stop_core(struct fix *f)
{
	wr32(f, SPYRE_REG_MCU_CTRL, 0);
}

/* Ends the program with MCU_HALT. */
static inline void rv_halt(struct rv *p)
{
	rv_poke(p, SPYRE_MCU_MMIO_BASE + MCU_HALT, 1);
	rv_put(p, rv_jal(ZERO, 0));
}

/* Boots, waits for MCU_HALT or a crash, stops; RAM keeps what the program left. */
static inline uint32_t *run_to_halt(struct fix *f, const struct rv *p)
{
	uint32_t status = rv_boot(f->card, p);

	/* A short program has ended before the status is read. */
	assert_true(status == SPYRE_BOOT_RUNNING || status == SPYRE_BOOT_CRASHED);
	WAIT_FOR(rd32(f, SPYRE_REG_BOOT_STATUS) == SPYRE_BOOT_CRASHED);
	stop_core(f);
	return (uint32_t *)(f->card->mcu.ram + (RV_DATA - SPYRE_MCU_RAM_BASE));
}

/* --- Address spaces --------------------------------------------------------------------------- */

static inline void *card_at(struct fix *f, uint64_t addr)
{
	return (uint8_t *)spyre_card_memory(f->card) + addr;
}

static inline uint64_t table_alloc(struct fix *f, uint64_t bytes)
{
	uint64_t at = (f->table_next + 4095) & ~4095ull;

	f->table_next = at + bytes;
	assert_true(f->table_next <= 32 * MB);
	memset(card_at(f, at), 0, bytes);
	return at;
}

static inline uint64_t page_alloc(struct fix *f)
{
	uint64_t at = f->page_next;

	f->page_next += SPYRE_PAGE_SIZE;
	return at;
}

/* An empty context; its table is set as the firmware would. */
static inline struct spyre_context_table *ctx_new(struct fix *f, uint32_t ctx)
{
	uint64_t at = table_alloc(f, sizeof(struct spyre_context_table));
	uint32_t base = SPYRE_MCU_MMIO_BASE, v;

	assert_int_equal(mcu_bus_store(f->card, base + MCU_CTX_TABLE, 4, at), BUS_OK);
	assert_int_equal(mcu_bus_store(f->card, base + MCU_CTX_TABLE + 4, 4, at >> 32), BUS_OK);
	assert_int_equal(mcu_bus_store(f->card, base + MCU_CTX_SELECT, 4, ctx | MCU_CTX_SET), BUS_OK);
	assert_int_equal(mcu_bus_load(f->card, base + MCU_CTX_STATUS, 4, &v), BUS_OK);
	assert_int_equal(v, 0);
	return card_at(f, at);
}

static inline void seg_set(struct fix *f, struct spyre_segment *s, uint32_t pages)
{
	s->table = table_alloc(f, pages * 8);
	s->pages = pages;
}

static inline uint64_t *seg_pte(struct fix *f, struct spyre_segment *s, uint64_t page)
{
	return (uint64_t *)card_at(f, s->table) + page;
}

/* Maps DMVA pages [first, first + n) of segment seg to fresh device pages. */
static inline void map_device(struct fix *f, struct spyre_context_table *t, uint32_t seg, uint64_t first,
			      uint64_t n, uint64_t flags)
{
	uint64_t i;

	if (!t->dmva[seg].pages)
		seg_set(f, &t->dmva[seg], first + n);
	for (i = 0; i < n; i++)
		*seg_pte(f, &t->dmva[seg], first + i) = page_alloc(f) | SPYRE_PTE_VALID | flags;
}

/* Maps arena bytes [off, off + bytes) at the same HMVA, as 2 MiB leaves or as single 4 KiB pages. */
static inline void map_host(struct fix *f, struct spyre_context_table *t, uint64_t off, uint64_t bytes,
			    uint64_t flags, bool small)
{
	uint64_t a, pages = (spyre_inproc_arena_size(f->ip) + SPYRE_PAGE_SIZE - 1) / SPYRE_PAGE_SIZE;

	if (!t->hmva[0].pages)
		seg_set(f, &t->hmva[0], pages);
	for (a = off; a < off + bytes; a += small ? 4096 : SPYRE_PAGE_SIZE) {
		uint64_t *e = seg_pte(f, &t->hmva[0], a / SPYRE_PAGE_SIZE);

		if (!small) {
			*e = (SPYRE_INPROC_BUS + a) | SPYRE_PTE_VALID | SPYRE_PTE_LEAF | flags;
			continue;
		}
		if (!*e)
			*e = table_alloc(f, SPYRE_HOST_L2_SIZE) | SPYRE_PTE_VALID;
		((uint64_t *)card_at(f, *e & SPYRE_PTE_ADDR))[a / 4096 % 512] =
			(SPYRE_INPROC_BUS + a) | SPYRE_PTE_VALID | SPYRE_PTE_LEAF | flags;
	}
}

static inline uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* --- Jobs ------------------------------------------------------------------------------------- */

static inline void job_start(struct fix *f, unsigned int engine, uint32_t ctx, uint32_t tag,
			     const struct spyre_cb *cb)
{
	struct mcu_job job = { .context = ctx, .tag = tag };

	memcpy(job.cb, cb, sizeof(job.cb));
	assert_int_equal(f->card->engine[engine].state, ENG_IDLE);
	engine_start(f->card, engine, &job);
}

static inline struct spyre_rb job_wait(struct fix *f, uint32_t tag)
{
	struct mcu_completion done;
	struct spyre_rb rb;

	WAIT_FOR(completion_pop(f->card, &done));
	assert_int_equal(done.tag, tag);
	memcpy(&rb, done.rb, sizeof(rb));
	return rb;
}

static inline struct spyre_rb job_run(struct fix *f, unsigned int engine, uint32_t ctx,
				      const struct spyre_cb *cb)
{
	job_start(f, engine, ctx, 77, cb);
	return job_wait(f, 77);
}

/* A copy or fill in parts of so many sticks: the last part's response block, with the bytes of all. */
static inline struct spyre_rb job_parts(struct fix *f, unsigned int engine, uint32_t ctx, const struct spyre_cb *cb,
					uint32_t part)
{
	struct mcu_job job = { .context = ctx, .tag = 77, .part = part };
	struct mcu_completion done;
	struct spyre_rb rb;
	uint64_t bytes = 0;

	memcpy(job.cb, cb, sizeof(job.cb));
	do {
		assert_int_equal(f->card->engine[engine].state, ENG_IDLE);
		engine_start(f->card, engine, &job);
		WAIT_FOR(completion_pop(f->card, &done));
		assert_int_equal(done.tag, 77);
		memcpy(&rb, done.rb, sizeof(rb));
		bytes += rb.bytes;
		if (done.next)
			assert_int_equal(done.next, job.at + part);
		job.at = done.next;
		job.since = done.end;
	} while (done.next);
	rb.bytes = bytes;
	return rb;
}

#endif
