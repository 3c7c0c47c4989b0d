// SPDX-License-Identifier: MIT
/*
 * The memory functions that a freestanding compiler expects. On the host the C library has them.
 */
#include "firmware.h"

#ifndef FW_HOST

/* no-tree-loop-distribute-patterns: or the compiler turns these loops into calls of themselves. */
__attribute__((optimize("no-tree-loop-distribute-patterns")))
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	u8 *d = to;
	const u8 *s = from;

	if (!(((u32)d | (u32)s) & 3)) {
		for (; n >= 4; n -= 4, d += 4, s += 4)
			*(u32 *)(void *)d = *(const u32 *)(const void *)s;
	}
	for (; n; n--)
		*d++ = *s++;
	return to;
}

__attribute__((optimize("no-tree-loop-distribute-patterns")))
void *memset(void *to, int c, size_t n)
{
	u8 *d = to;

	if (!((u32)d & 3)) {
		u32 word = (u8)c * 0x01010101u;

		for (; n >= 4; n -= 4, d += 4)
			*(u32 *)(void *)d = word;
	}
	for (; n; n--)
		*d++ = (u8)c;
	return to;
}

#endif
