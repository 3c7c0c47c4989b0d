/* SPDX-License-Identifier: MIT */
/*
 * Included ahead of each file that tests/rt/sparse checks: the conversions of <endian.h> with the types
 * they truly have, and atomics that keep a restricted type.
 */
#include <endian.h>
#include <stdint.h>

#include <spyre/base.h>

#define SPARSE_CONVERT(bits)									\
	static inline uint##bits##_t sparse_from_le##bits(spyre_le##bits v)			\
	{											\
		return (__attribute__((force)) uint##bits##_t)v;				\
	}											\
	static inline spyre_le##bits sparse_to_le##bits(uint##bits##_t v)			\
	{											\
		return (__attribute__((force)) spyre_le##bits)v;				\
	}
SPARSE_CONVERT(16)
SPARSE_CONVERT(32)
SPARSE_CONVERT(64)

#undef le16toh
#undef le32toh
#undef le64toh
#undef htole16
#undef htole32
#undef htole64
#define le16toh sparse_from_le16
#define le32toh sparse_from_le32
#define le64toh sparse_from_le64
#define htole16 sparse_to_le16
#define htole32 sparse_to_le32
#define htole64 sparse_to_le64

#define __atomic_load_n(p, order) (*(p))
#define __atomic_store_n(p, v, order) ((void)(*(p) = (v)))
#define __atomic_compare_exchange_n(p, old, new, weak, done, failed) \
	(*(p) == *(old) ? (*(p) = (new), 1) : (*(old) = *(p), 0))
