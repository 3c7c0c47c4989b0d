// SPDX-License-Identifier: MIT
#include <spyre/isa_table.h>

#include "gen.h"

void *gen_fail(char *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, 200, fmt, ap);
	va_end(ap);
	return NULL;
}

const char *gen_format_name(enum spyre_format fmt)
{
	return (unsigned int)fmt < SPYRE_FORMATS ? isa_formats[fmt].name : "unknown";
}

bool gen_fits(enum spyre_format fmt, uint32_t m, uint32_t n, char *err)
{
	/* Rounding up stays below 2^32, and the number of bytes below 2^64. */
	if (m <= UINT32_MAX - 128 && n <= UINT32_MAX - 256 && (uint64_t)m * n <= 2 * SPYRE_DMVA_SIZE &&
	    spyregen_bytes(fmt, m, n) <= SPYRE_DMVA_SIZE)
		return true;
	gen_fail(err, "%u x %u elements of %s, in whole sticks, do not fit the card's addresses", m, n,
		 gen_format_name(fmt));
	return false;
}

bool gen_is16(enum spyre_format fmt)
{
	return fmt == SPYRE_SEN169_FP16 || fmt == SPYRE_IEEE_FP16 || fmt == SPYRE_BFLOAT16;
}

bool gen_is8(enum spyre_format fmt)
{
	return fmt == SPYRE_SENINT8 || fmt == SPYRE_SEN143_FP8 || fmt == SPYRE_SEN152_FP8;
}

bool gen_is_int(enum spyre_format fmt)
{
	return isa_formats[fmt].integer;
}

unsigned int gen_lane_words(enum spyre_format fmt)
{
	return isa_words(fmt);
}

void gen_l3(struct spyreprog_job *job, int p, enum spyre_op op, unsigned int lar, unsigned int ear,
	    uint64_t words, unsigned int group)
{
	uint32_t full = (uint32_t)(words / BURST), rest = (uint32_t)(words % BURST);

	if (full > 1)
		sp_loop(job, p, full);
	if (full)
		sp_l3(job, p, op, lar, SPYRE_REG_NONE, ear, BURST, group, BURST * SPYRE_STICK,
		      BURST * SPYRE_STICK);
	if (full > 1)
		sp_end(job, p);
	if (rest)
		sp_l3(job, p, op, lar, SPYRE_REG_NONE, ear, rest, group,
		      (int32_t)(rest * SPYRE_STICK), (int32_t)(rest * SPYRE_STICK));
}

void gen_set(struct spyreprog_job *job, int p, unsigned int reg, uint32_t value)
{
	sp_mvreg(job, p, reg, SPYRE_REG_NONE, (int32_t)value);
}

void gen_swap(struct spyreprog_job *job, int p, unsigned int reg, unsigned int spare, uint32_t base,
	      uint32_t size)
{
	/* Their sum minus the one is the other. */
	gen_set(job, p, spare, 2 * base + size);
	sp_addreg(job, p, spare, reg, -1);
	sp_mvreg(job, p, reg, spare, 0);
}

uint64_t gen_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}
