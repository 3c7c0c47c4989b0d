/* SPDX-License-Identifier: MIT */
/* What the runtime's test programs share; cmocka.h comes before. */
#ifndef RTTEST_H
#define RTTEST_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "spyrert.h"

#define SECOND	1000000000ull
#define LONG	(60 * SECOND)

#define OK(call)                                                               \
	do {                                                                   \
		enum spyrert_status s_ = (call);                               \
		if (s_ != SPYRERT_SUCCESS)                                     \
			fail_msg("%s: %s: %s", #call, spyrert_status_name(s_), \
				 spyrert_last_error());                        \
	} while (0)

/* Fails with the status and a text that contains what is named. */
#define FAILS(call, want, text)								\
	do {										\
		enum spyrert_status s_ = (call);					\
		if (s_ != (want))							\
			fail_msg("%s: %s instead of %s (%s)", #call, spyrert_status_name(s_),	\
				 spyrert_status_name(want), spyrert_last_error());	\
		if (!strstr(spyrert_last_error(), text))				\
			fail_msg("%s: '%s' lacks '%s'", #call, spyrert_last_error(), text);	\
	} while (0)

static inline void fill_bytes(void *p, size_t n, uint32_t seed)
{
	uint8_t *b = p;

	while (n--) {
		seed = seed * 1664525 + 1013904223;
		*b++ = (uint8_t)(seed >> 24);
	}
}

static inline void same_bytes(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;
	size_t i;

	if (!memcmp(a, b, n))
		return;
	for (i = 0; x[i] == y[i]; i++)
		;
	fail_msg("byte %zu of %zu is %#x instead of %#x", i, n, y[i], x[i]);
}

/* So many bytes, at most 100000, to the card and back. */
static inline void copy_works(struct spyrert_device *dev, size_t bytes)
{
	uint8_t a[100000], b[100000];
	spyrert_ptr d;

	memset(a, 0x3c, bytes);
	memset(b, 0, bytes);
	OK(spyrert_malloc(dev, bytes, &d));
	OK(spyrert_memcpy_h2d(dev, d, a, bytes));
	OK(spyrert_memcpy_d2h(dev, b, d, bytes));
	assert_memory_equal(a, b, bytes);
	OK(spyrert_free(dev, d));
}

/* A thread that synchronizes with the stream in arg for a minute; it returns the status. */
static inline void *wait_stream(void *arg)
{
	return (void *)(intptr_t)spyrert_stream_synchronize(arg, LONG);
}

/* The build for unit tests carries two cards, unless the environment says otherwise. */
static inline void two_cards_carried(void)
{
#ifdef FIRMWARE
	setenv("SPYRERT_BACKEND", "model", 0);
	setenv("SPYRERT_FIRMWARE", FIRMWARE, 0);
	setenv("SPYRERT_MODEL_TIMING", "off", 0);
	setenv("SPYRERT_MODEL_CARDS", "2", 0);
#endif
}

#endif
