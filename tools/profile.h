/* SPDX-License-Identifier: MIT */
/*
 * Where the time of a SpyreCode's jobs goes, worked out in this process from the job binaries and their symbols:
 * modelled time is a function of these alone, whatever card the jobs run on.
 */
#ifndef TOOLS_PROFILE_H
#define TOOLS_PROFILE_H

#include <jansson.h>

#include <soc.h>

struct profile_job {
	uint64_t offset;	/* of the container in the allocation */
	struct spyre_soc_profile p;
};

struct profile {
	struct profile_job *jobs;	/* in the order of the plan */
	size_t njobs;
};

/*
 * Profiles each ComputeOnDevice of the SpyreCode in dir, launched with args, for a card whose cores run at core_hz;
 * phases: struct spyre_soc_profile. 0, or -1 with err (at least 300 bytes).
 */
int profile_read(const char *dir, const uint64_t *args, unsigned int nargs, uint32_t core_hz, uint32_t phases,
		 struct profile *out, char *err);
void profile_free(struct profile *p);

/* "L3LU" ... "SFP", and "PT load" for PT's load ports. */
const char *profile_unit_name(unsigned int unit);
/* One sentence: what the job would have to have more of to be faster. At least 300 bytes. */
void profile_limit(const struct spyre_soc_profile *p, char *text);
void profile_print(const struct profile *p);
json_t *profile_json(const struct profile *p);

#endif
