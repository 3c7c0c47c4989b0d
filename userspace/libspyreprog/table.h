/* SPDX-License-Identifier: MIT */
/* Looking things up in the table of instructions (isa_table.h). Internal. */
#ifndef SPYREPROG_TABLE_H
#define SPYREPROG_TABLE_H

#include <spyre/isa_table.h>

#include "spyreprog.h"

/* name without prefix, for a unit; -1 as unit: any. */
const struct isa_op *op_by_name(const char *name, size_t len, int unit);

#endif
