/* SPDX-License-Identifier: MIT */
/* Plain vector operations and the choice of the variant. */
#define VEC_OPS spyre_vec_ops_plain
#define VEC_NAME "plain"
#include "vec_impl.h"

const struct vec_ops *const *spyre_vec_ops_all(void)
{
	static const struct vec_ops *all[4];
	unsigned int n = 0;

	/* Every caller stores the same values. */
#ifdef __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
		__atomic_store_n(&all[n++], &spyre_vec_ops_avx512, __ATOMIC_RELAXED);
	/* Every processor with AVX2 and FMA has F16C. */
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		__atomic_store_n(&all[n++], &spyre_vec_ops_avx2, __ATOMIC_RELAXED);
#endif
	__atomic_store_n(&all[n++], &spyre_vec_ops_plain, __ATOMIC_RELAXED);
	return all;
}

const struct vec_ops *spyre_vec_ops_best(void)
{
	return spyre_vec_ops_all()[0];
}
