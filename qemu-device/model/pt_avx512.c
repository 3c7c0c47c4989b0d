/* SPDX-License-Identifier: MIT */
/* Built with this width's flags (soc-sources.txt) on x86-64 hosts only. */
#define PT_OPS spyre_pt_ops_avx512
#define PT_NAME "avx512"
#define MR 6
#define NV 4
#include "pt_impl.h"
