// SPDX-License-Identifier: MIT
/* Names. */
#include <string.h>

#include "table.h"

#define NAME(fn, table, n) \
const char *fn(unsigned int i) { return i < (n) ? (table)[i] : NULL; }

NAME(spyreprog_unit_name, isa_unit_names, SPYRE_UNITS)
NAME(spyreprog_reg_name, isa_reg_names, SPYRE_REGS)

const char *spyreprog_fifo_name(unsigned int fifo)
{
	return fifo < SPYRE_FIFOS ? isa_fifos[fifo].name : NULL;
}

const char *spyreprog_format_name(unsigned int format)
{
	return format < SPYRE_FORMATS ? isa_formats[format].name : NULL;
}

const struct isa_op *op_by_name(const char *name, size_t len, int unit)
{
	const struct isa_op *o;
	unsigned int i;

	for (i = 0; i < ISA_OPS; i++) {
		o = isa_op(i);
		if (o && strlen(o->name) == len && !memcmp(o->name, name, len) &&
		    (unit < 0 || o->units >> unit & 1))
			return o;
	}
	return NULL;
}
