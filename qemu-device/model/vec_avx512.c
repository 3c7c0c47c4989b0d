/* SPDX-License-Identifier: MIT */
/* Built with -mavx512f -mavx512bw -mavx512vl -mavx512dq and AVX2's flags on x86-64 hosts only. */
#define VEC_OPS spyre_vec_ops_avx512
#define VEC_NAME "avx512"
#include "vec_impl.h"
