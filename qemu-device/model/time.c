/* SPDX-License-Identifier: MIT */
#include "soc_int.h"

bool spyre_time_job(struct spyre_soc *soc, struct spyre_soc_time *time, struct spyre_rb *rb)
{
	(void)soc; (void)rb;
	time->cycles = 1000;
	return true;
}

uint64_t spyre_time_of(struct spyre_soc *soc, unsigned int core, unsigned int unit, uint64_t ordinal)
{
	(void)soc; (void)core; (void)unit;
	return ordinal;
}
