// SPDX-License-Identifier: MIT
#include "gen.h"

void *gen_fail(char *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, 200, fmt, ap);
	va_end(ap);
	return NULL;
}

bool gen_is16(enum spyre_format fmt)
{
	return fmt == SPYRE_SEN169_FP16 || fmt == SPYRE_IEEE_FP16 || fmt == SPYRE_BFLOAT16;
}

bool gen_is8(enum spyre_format fmt)
{
	return fmt == SPYRE_SENINT8 || fmt == SPYRE_SEN143_FP8 || fmt == SPYRE_SEN152_FP8;
}

unsigned int gen_lane_words(enum spyre_format fmt)
{
	return fmt == SPYRE_IEEE_FP32 || fmt == SPYRE_IEEE_INT32 ? 2 : 1;
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
