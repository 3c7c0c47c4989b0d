/* SPDX-License-Identifier: MIT */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdbool.h>
#include <string.h>

#include "spyre_model.h"

/* A counter of the card by its name; false: there is none. */
static inline bool find_counter(struct spyre_card *card, const char *name, uint64_t *value)
{
	struct spyre_counter c[1024];
	size_t n = spyre_card_counters(card, c, 1024), i;

	for (i = 0; i < n && i < 1024; i++) {
		if (strcmp(c[i].name, name))
			continue;
		*value = c[i].value;
		return true;
	}
	return false;
}

#endif
