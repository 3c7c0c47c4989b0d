/* SPDX-License-Identifier: MIT */
/* Built with -mavx2 -mfma -mf16c on x86-64 hosts only. */
#define VEC_OPS spyre_vec_ops_avx2
#define VEC_NAME "avx2"
#include "vec_impl.h"
