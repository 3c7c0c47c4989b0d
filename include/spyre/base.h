/* SPDX-License-Identifier: MIT */
/*
 * Types and helpers that every side of the Spyre interface shares: the kernel driver, the firmware,
 * the card model and user space. Every structure in these headers is little-endian, has no
 * bit-fields and no implicit padding; SPYRE_SIZE() and SPYRE_OFFSET() hold that to account at
 * compile time.
 */
#ifndef SPYRE_BASE_H
#define SPYRE_BASE_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
typedef __le16 spyre_le16;
typedef __le32 spyre_le32;
typedef __le64 spyre_le64;
#else
#include <stddef.h>
#include <stdint.h>
/*
 * Firmware and model run on little-endian machines; user space converts at the place of use. Sparse
 * (__CHECKER__) finds where it does not, as in the kernel.
 */
#ifdef __CHECKER__
#define SPYRE_BITWISE __attribute__((bitwise))
#else
#define SPYRE_BITWISE
#endif
typedef uint16_t SPYRE_BITWISE spyre_le16;
typedef uint32_t SPYRE_BITWISE spyre_le32;
typedef uint64_t SPYRE_BITWISE spyre_le64;
#endif

#ifdef __cplusplus
#define SPYRE_ASSERT(cond, text) static_assert(cond, text)
#else
#define SPYRE_ASSERT(cond, text) _Static_assert(cond, text)
#endif
#define SPYRE_SIZE(type, size) \
	SPYRE_ASSERT(sizeof(type) == (size), #type " has a fixed size")
#define SPYRE_OFFSET(type, member, off) \
	SPYRE_ASSERT(offsetof(type, member) == (off), #type "." #member " has a fixed place")

/* Bytes in a stick, the unit in which the card moves everything (public: torch-spyre BYTES_IN_STICK). */
#define SPYRE_STICK 128u

#endif
