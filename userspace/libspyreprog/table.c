// SPDX-License-Identifier: MIT
/* Names, and the manual's tables. */
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

static void rst_row(FILE *out, const char *first, const char *second, const char *third)
{
	fprintf(out, "   * - %s\n     - %s\n     - %s\n", first, second, third);
}

static size_t rst_field(char *buf, size_t size, const struct isa_field *f, bool more)
{
	static const char *const where[] = { "a", "b", "c", "d", "n", "imm", "imm2" };
	size_t at;

	at = (size_t)snprintf(buf, size, "%s``%s``: %s", more ? ", " : "", f->name,
			      f->kind == ISA_COUNT ? "imm, or b (LCR) with c = 1" : where[f->at]);
	if (f->kind == ISA_NUM)
		at += (size_t)snprintf(buf + at, size - at, " (%u to %u)", f->min, f->max);
	return at;
}

void spyreprog_print_rst(FILE *out)
{
	static const struct { const char *title; uint32_t units; } parts[] = {
		{ "Every unit", ISA_UNITS_ALL }, { "L3LU", ISA_U(L3LU) },
		{ "L3SU", ISA_U(L3SU) }, { "LXLU and L0LU", ISA_UNITS_LOAD },
		{ "LXSU and L0SU", ISA_UNITS_STORE }, { "PT", ISA_U(PT) },
		{ "PE and SFP", ISA_UNITS_VEC }, { "SFP", ISA_U(SFP) },
	};
	char left[64], mid[400];
	unsigned int i, j, k;

	fprintf(out, ".. SPDX-License-Identifier: MIT\n");
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		fprintf(out,
			"\n.. list-table:: %s\n   :header-rows: 1\n   :widths: 14 36 50\n\n",
			parts[i].title);
		rst_row(out, "instruction", "fields", "does");
		for (j = 0; j < ISA_OPS; j++) {
			const struct isa_op *o = isa_op(j);
			size_t at = 0;

			if (!o || o->units != parts[i].units)
				continue;
			snprintf(left, sizeof(left), "``%s`` (0x%02x)", o->name, j);
			mid[0] = 0;
			for (k = 0; o->fields[k].kind; k++)
				at += rst_field(mid + at, sizeof(mid) - at, &o->fields[k], k > 0);
			rst_row(out, left, mid[0] ? mid : "\\-", o->does);
		}
	}
}
