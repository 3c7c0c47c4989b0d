/* SPDX-License-Identifier: MIT */
/* Plain PT kernels and the choice of the variant. */
#define PT_OPS spyre_pt_ops_plain
#define PT_NAME "plain"
#define MR 4
#define NV 4
#include "pt_impl.h"

const struct pt_ops *const *spyre_pt_ops_all(void)
{
	static const struct pt_ops *all[5];
	unsigned int n = 0;

	/* Every caller stores the same values. */
#ifdef __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
		if (__builtin_cpu_supports("avx512vnni"))
			__atomic_store_n(&all[n++], &spyre_pt_ops_vnni, __ATOMIC_RELAXED);
		__atomic_store_n(&all[n++], &spyre_pt_ops_avx512, __ATOMIC_RELAXED);
	}
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		__atomic_store_n(&all[n++], &spyre_pt_ops_avx2, __ATOMIC_RELAXED);
#endif
	__atomic_store_n(&all[n++], &spyre_pt_ops_plain, __ATOMIC_RELAXED);
	return all;
}

const struct pt_ops *spyre_pt_ops_best(void)
{
	return spyre_pt_ops_all()[0];
}
