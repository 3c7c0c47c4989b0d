/* SPDX-License-Identifier: MIT */
/* The timing pass that also says where the time goes. */
#define PROFILED	1
#define TIME_JOB	spyre_time_profile
#include "time.c"
