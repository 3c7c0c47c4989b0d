/* SPDX-License-Identifier: MIT */
/* AVX-512 with byte dot products. Built with its flags (soc-sources.txt) on x86-64 hosts only. */
#define PT_OPS spyre_pt_ops_vnni
#define PT_NAME "avx512-vnni"
#define PT_VNNI
#define MR 6
#define NV 4
#include "pt_impl.h"
