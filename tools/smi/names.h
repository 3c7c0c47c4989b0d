/* SPDX-License-Identifier: MIT */
/* Names that the table, the JSON and a core dump share. */
#ifndef SMI_NAMES_H
#define SMI_NAMES_H

#include <stdint.h>

/* Of an enum spyre_state, which the runtime passes on as it is. */
static inline const char *card_state_name(uint32_t state)
{
	static const char *const names[] = {
		"unknown", "offline",	  "booting",  "shutting down",
		"online",  "diagnostics", "in error", "removed",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

#endif
