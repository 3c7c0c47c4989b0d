// SPDX-License-Identifier: MIT
/* Names, and which fields each instruction has. */
#include <string.h>

#include "table.h"

#define U(x)	(1u << SPYRE_UNIT_##x)
#define ALL_UNITS ((1u << SPYRE_UNITS) - 1)
#define LOADERS	(U(LXLU) | U(L0LU))
#define STORERS	(U(LXSU) | U(L0SU))
#define VECTOR	(U(PE) | U(SFP))

#define F(n, k, w)		{ .name = n, .kind = k, .where = w }
#define FR(n, k, w, lo, hi)	{ .name = n, .kind = k, .where = w, .min = lo, .max = hi }
#define FO(n, k, w, v) \
	{ .name = n, .kind = k, .where = w, .optional = true, .fallback = v }
#define TIMES \
	{ .name = "n", .kind = K_U16, .where = W_N, .min = 1, .max = 65535, .optional = true, \
	  .fallback = 1 }

#define L3_FIELDS(last) \
	F("lar", K_LAR, W_A), FO("lbr", K_LBR, W_B, SPYRE_REG_NONE), F("ear", K_EAR, W_C), \
	FR("burst", K_U16, W_N, 1, 32), FO("larinc", K_S32, W_IMM, 0), \
	FO("earinc", K_S32, W_IMM2, 0), last
#define LX_FIELDS \
	F("lar", K_LAR, W_A), FO("lbr", K_LBR, W_B, SPYRE_REG_NONE), F("fifo", K_FIFO, W_D), \
	FR("n", K_U16, W_N, 1, 65535), FO("stride", K_S32, W_IMM, SPYRE_STICK), \
	FO("larinc", K_S32, W_IMM2, 0)

#define V1(code, nm, units, flags, text) \
	{ SPYRE_OP_##code, nm, units, flags, text, \
	  { F("dst", K_DST, W_A), F("src0", K_SRC, W_B), TIMES } }
#define V2(code, nm, flags, text) \
	{ SPYRE_OP_##code, nm, VECTOR, flags, text, \
	  { F("dst", K_DST, W_A), F("src0", K_SRC, W_B), F("src1", K_SRC, W_C), TIMES } }
#define V3(code, nm, flags, text) \
	{ SPYRE_OP_##code, nm, VECTOR, flags, text, \
	  { F("dst", K_DST, W_A), F("src0", K_SRC, W_B), F("src1", K_SRC, W_C), \
	    F("src2", K_SRC, W_D), TIMES } }

static const struct opinfo ops[] = {
	{ SPYRE_OP_NOP, "NOP", ALL_UNITS, 0, "Nothing.", { { 0 } } },
	{ SPYRE_OP_RETURN, "RETURN", ALL_UNITS, 0, "End of the program.", { { 0 } } },
	{ SPYRE_OP_MVLOOPCNT, "MVLOOPCNT", ALL_UNITS, 0,
	  "Opens a block that runs count times; 0 skips it. The be of a later instruction ends it.",
	  { F("count", K_COUNT, W_IMM) } },
	{ SPYRE_OP_ADDIMM, "ADDIMM", ALL_UNITS, 0, "reg += imm.",
	  { F("reg", K_REG, W_A), F("imm", K_S32, W_IMM) } },
	{ SPYRE_OP_ADDREG, "ADDREG", ALL_UNITS, 0, "reg += src * times.",
	  { F("reg", K_REG, W_A), F("src", K_REG, W_B), F("times", K_S32, W_IMM) } },
	{ SPYRE_OP_MVREG, "MVREG", ALL_UNITS, 0, "reg = src + imm.",
	  { F("reg", K_REG, W_A), F("src", K_REG_OR_NONE, W_B), FO("imm", K_S32, W_IMM, 0) } },
	{ SPYRE_OP_SYNC_SEND, "SYNC_SEND", ALL_UNITS, 0,
	  "Tag of the cores += 1 after all earlier accesses of this unit. Cores none: the own core.",
	  { F("synctag", K_TAG, W_A), FO("cores", K_CORES, W_IMM, 0) } },
	{ SPYRE_OP_SYNC_WAIT, "SYNC_WAIT", ALL_UNITS, 0,
	  "Waits until the tag is at least n, then takes n off.",
	  { F("synctag", K_TAG, W_A),
	    TIMES } },

	{ SPYRE_OP_L3_LDU, "LDU", U(L3LU), 0, "Memory at EAR to LX at LAR + LBR, burst words.",
	  { L3_FIELDS({ 0 }) } },
	{ SPYRE_OP_L3_LDM, "LDM", U(L3LU), 0,
	  "The same for all cores of a group at once: same EAR and burst, each its own LX address.",
	  { L3_FIELDS(F("group", K_GROUP, W_D)) } },
	{ SPYRE_OP_L3_STU, "STU", U(L3SU), 0, "LX at LAR + LBR to memory at EAR, burst words.",
	  { L3_FIELDS({ 0 }) } },
	{ SPYRE_OP_L3_STC, "STC", U(L3SU), 0,
	  "LX to another core's LX: EAR holds core << 24 | LX address.",
	  { L3_FIELDS({ 0 }) } },

	{ SPYRE_OP_LD, "LD", LOADERS, OP_WRITES,
	  "n words from LAR + LBR, stride bytes apart, into a FIFO; then LAR += larinc.",
	  { LX_FIELDS } },
	{ SPYRE_OP_ST, "ST", STORERS, OP_READS,
	  "n words from a FIFO to LAR + LBR, stride bytes apart; then LAR += larinc.",
	  { LX_FIELDS } },

	{ SPYRE_OP_PT_LDW, "LDW", U(PT), OP_LOAD_PORT,
	  "64 words become a weight tile; goes on beside what follows.",
	  { F("tile", K_TILE, W_A), F("fmt", K_FMT, W_B), F("fifo", K_FIFO, W_D) } },
	{ SPYRE_OP_PT_MM, "MM", U(PT), OP_READS,
	  "n words times the tile, word i onto (onto:1) or into (onto:0) row row + i of the sums.",
	  { F("tile", K_TILE, W_A), F("fmt", K_FMT, W_B), F("onto", K_BOOL, W_C),
	    F("fifo", K_FIFO, W_D), FR("n", K_U16, W_N, 1, 128), FR("row", K_U32, W_IMM, 0, 127) } },
	{ SPYRE_OP_PT_PSOUT, "PSOUT", U(PT), OP_WRITES,
	  "n rows of partial sums to a FIFO, two words each.",
	  { F("fifo", K_FIFO, W_D), FR("n", K_U16, W_N, 1, 128),
	    FR("row", K_U32, W_IMM, 0, 127) } },
	{ SPYRE_OP_PT_PSIN, "PSIN", U(PT), OP_READS,
	  "n rows of partial sums from a FIFO, two words each.",
	  { F("fmt", K_FMT, W_B), F("fifo", K_FIFO, W_D), FR("n", K_U16, W_N, 1, 128),
	    FR("row", K_U32, W_IMM, 0, 127) } },

	V1(MOV, "MOV", VECTOR, OP_IMM_FP32, "dst = src0, converted between their formats."),
	V2(ADD, "ADD", OP_IMM_FP32, "src0 + src1."),
	V2(SUB, "SUB", OP_IMM_FP32, "src0 - src1."),
	V2(MUL, "MUL", OP_IMM_FP32, "src0 * src1."),
	V3(FMA, "FMA", OP_IMM_FP32, "src0 * src1 + src2, rounded once."),
	V2(MIN, "MIN", OP_IMM_FP32, "The smaller; a NaN operand gives the NaN."),
	V2(MAX, "MAX", OP_IMM_FP32, "The larger; a NaN operand gives the NaN."),
	V1(ABS, "ABS", VECTOR, OP_IMM_FP32, "Absolute value."),
	V1(NEG, "NEG", VECTOR, OP_IMM_FP32, "Sign changed."),
	V2(CMPEQ, "CMPEQ", OP_IMM_FP32, "1.0 where equal, else 0.0."),
	V2(CMPLT, "CMPLT", OP_IMM_FP32, "1.0 where src0 < src1, else 0.0."),
	V2(CMPLE, "CMPLE", OP_IMM_FP32, "1.0 where src0 <= src1, else 0.0."),
	V3(SEL, "SEL", OP_IMM_FP32, "src2 != 0 ? src0 : src1, 32 raw bits."),
	V2(IADD, "IADD", 0, "int32 sum, modulo 2^32."),
	V2(ISUB, "ISUB", 0, "int32 difference, modulo 2^32."),
	V2(IMUL, "IMUL", 0, "int32 product, modulo 2^32."),
	V2(IMIN, "IMIN", 0, "int32 minimum."),
	V2(IMAX, "IMAX", 0, "int32 maximum."),
	V2(AND, "AND", 0, "Bitwise and."),
	V2(OR, "OR", 0, "Bitwise or."),
	V2(XOR, "XOR", 0, "Bitwise exclusive or."),
	V2(SHL, "SHL", 0, "src0 << (src1 & 31)."),
	V2(SHR, "SHR", 0, "src0 >> (src1 & 31), zeros from above."),
	V2(SRA, "SRA", 0, "src0 >> (src1 & 31), the sign from above."),
	V1(I2F, "I2F", VECTOR, 0, "int32 to fp32, to nearest even."),
	V1(F2I, "F2I", VECTOR, OP_IMM_FP32,
	  "fp32 to int32, to nearest even, saturating; NaN gives 0."),
	{ SPYRE_OP_BCAST, "BCAST", VECTOR, OP_IMM_OWN, "A lane of src0 in every lane.",
	  { F("dst", K_DST, W_A), F("src0", K_SRC, W_B),
	    FR("lane", K_U32, W_IMM, 0, SPYRE_LANES - 1), TIMES } },
	{ SPYRE_OP_ROT, "ROT", VECTOR, OP_IMM_OWN, "Lane i = lane (i + by) mod 64 of src0.",
	  { F("dst", K_DST, W_A), F("src0", K_SRC, W_B), F("by", K_S32, W_IMM), TIMES } },

	V1(RECIP, "RECIP", U(SFP), OP_IMM_FP32, "1 / src0."),
	V1(RSQRT, "RSQRT", U(SFP), OP_IMM_FP32, "1 / square root."),
	V1(SQRT, "SQRT", U(SFP), OP_IMM_FP32, "Square root."),
	V1(EXP, "EXP", U(SFP), OP_IMM_FP32, "e to the src0."),
	V1(LN, "LN", U(SFP), OP_IMM_FP32, "Natural logarithm."),
	V1(SIGMOID, "SIGMOID", U(SFP), OP_IMM_FP32, "1 / (1 + exp(-src0))."),
	V1(TANH, "TANH", U(SFP), OP_IMM_FP32, "Hyperbolic tangent."),
	V1(ERF, "ERF", U(SFP), OP_IMM_FP32, "Error function."),
	V1(GELU, "GELU", U(SFP), OP_IMM_FP32, "src0 * (1 + erf(src0 / sqrt 2)) / 2."),
	V1(RSUM, "RSUM", U(SFP), OP_IMM_FP32,
	  "Sum of the 64 lanes in every lane, pairwise: lane i + lane i + 32, then 16, ..."),
	V1(RMAX, "RMAX", U(SFP), OP_IMM_FP32, "Largest lane in every lane."),
	V1(RMIN, "RMIN", U(SFP), OP_IMM_FP32, "Smallest lane in every lane."),
	V1(RARGMAX, "RARGMAX", U(SFP), OP_IMM_FP32,
	  "int32 number of the first largest lane, in every lane."),
};

const struct fifoinfo fifos[SPYRE_FIFOS] = {
	[SPYRE_FIFO_LXLU_PT] = { "LXLU_PT", SPYRE_UNIT_LXLU, SPYRE_UNIT_PT, false },
	[SPYRE_FIFO_LXLU_PTW] = { "LXLU_PTW", SPYRE_UNIT_LXLU, SPYRE_UNIT_PT, true },
	[SPYRE_FIFO_LXLU_PE0] = { "LXLU_PE0", SPYRE_UNIT_LXLU, SPYRE_UNIT_PE, false },
	[SPYRE_FIFO_LXLU_PE1] = { "LXLU_PE1", SPYRE_UNIT_LXLU, SPYRE_UNIT_PE, false },
	[SPYRE_FIFO_LXLU_SFP0] = { "LXLU_SFP0", SPYRE_UNIT_LXLU, SPYRE_UNIT_SFP, false },
	[SPYRE_FIFO_LXLU_SFP1] = { "LXLU_SFP1", SPYRE_UNIT_LXLU, SPYRE_UNIT_SFP, false },
	[SPYRE_FIFO_LXLU_L0SU] = { "LXLU_L0SU", SPYRE_UNIT_LXLU, SPYRE_UNIT_L0SU, false },
	[SPYRE_FIFO_L0LU_PT] = { "L0LU_PT", SPYRE_UNIT_L0LU, SPYRE_UNIT_PT, false },
	[SPYRE_FIFO_L0LU_PTW] = { "L0LU_PTW", SPYRE_UNIT_L0LU, SPYRE_UNIT_PT, true },
	[SPYRE_FIFO_L0LU_PE] = { "L0LU_PE", SPYRE_UNIT_L0LU, SPYRE_UNIT_PE, false },
	[SPYRE_FIFO_L0LU_SFP] = { "L0LU_SFP", SPYRE_UNIT_L0LU, SPYRE_UNIT_SFP, false },
	[SPYRE_FIFO_PT_PE] = { "PT_PE", SPYRE_UNIT_PT, SPYRE_UNIT_PE, false },
	[SPYRE_FIFO_PT_SFP] = { "PT_SFP", SPYRE_UNIT_PT, SPYRE_UNIT_SFP, false },
	[SPYRE_FIFO_PT_LXSU] = { "PT_LXSU", SPYRE_UNIT_PT, SPYRE_UNIT_LXSU, false },
	[SPYRE_FIFO_PE_SFP] = { "PE_SFP", SPYRE_UNIT_PE, SPYRE_UNIT_SFP, false },
	[SPYRE_FIFO_SFP_PE] = { "SFP_PE", SPYRE_UNIT_SFP, SPYRE_UNIT_PE, false },
	[SPYRE_FIFO_PE_LXSU] = { "PE_LXSU", SPYRE_UNIT_PE, SPYRE_UNIT_LXSU, false },
	[SPYRE_FIFO_SFP_LXSU] = { "SFP_LXSU", SPYRE_UNIT_SFP, SPYRE_UNIT_LXSU, false },
	[SPYRE_FIFO_RING] = { "RING", SPYRE_UNIT_SFP, SPYRE_UNIT_SFP, false },
};

static const char *const unit_names[SPYRE_UNITS] = {
	"l3lu", "l3su", "lxlu", "lxsu", "l0lu", "l0su", "pt", "pe", "sfp",
};

static const char *const prefixes[SPYRE_UNITS] = {
	"L3_", "L3_", "LX_", "LX_", "L0_", "L0_", "PT_", "PE_", "SFP_",
};

static const char *const reg_names[SPYRE_REGS] = {
	"LAR0", "LAR1", "LAR2", "LAR3", "LBR0", "LBR1", "LBR2", "LBR3",
	"EAR0", "EAR1", "EAR2", "EAR3", "LCR0", "LCR1", "LCR2", "LCR3",
};

static const char *const format_names[SPYRE_FORMATS] = {
	"SEN169_FP16", "IEEE_FP32", "IEEE_FP16", "BFLOAT16", "SENINT8", "IEEE_INT32",
	"SEN143_FP8", "SEN152_FP8", "SEN18F_FP24", "SENINT4",
};

#define NAME(fn, table, n) \
const char *fn(unsigned int i) { return i < (n) ? (table)[i] : NULL; }

NAME(spyreprog_unit_name, unit_names, SPYRE_UNITS)
NAME(spyreprog_reg_name, reg_names, SPYRE_REGS)
NAME(spyreprog_format_name, format_names, SPYRE_FORMATS)
NAME(unit_prefix, prefixes, SPYRE_UNITS)

const char *spyreprog_fifo_name(unsigned int fifo)
{
	return fifo < SPYRE_FIFOS ? fifos[fifo].name : NULL;
}

const struct opinfo *op_at(size_t i)
{
	return i < sizeof(ops) / sizeof(ops[0]) ? &ops[i] : NULL;
}

const struct opinfo *op_by_code(unsigned int op)
{
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i].op == op)
			return &ops[i];
	return NULL;
}

const struct opinfo *op_by_name(const char *name, size_t len, int unit)
{
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strlen(ops[i].name) == len && !memcmp(ops[i].name, name, len) &&
		    (unit < 0 || ops[i].units >> unit & 1))
			return &ops[i];
	return NULL;
}

static void rst_row(FILE *out, const char *first, const char *second, const char *third)
{
	fprintf(out, "   * - %s\n     - %s\n     - %s\n", first, second, third);
}

static size_t rst_field(char *buf, size_t size, const struct field *f, bool more)
{
	static const char *const where[] = { "a", "b", "c", "d", "n", "imm", "imm2" };
	bool range = f->kind == K_U8 || f->kind == K_U16 || (f->kind == K_U32 && f->max);
	size_t at;

	at = (size_t)snprintf(buf, size, "%s``%s``: %s", more ? ", " : "", f->name,
			      f->kind == K_COUNT ? "imm, or b (LCR) with c = 1" : where[f->where]);
	if (range)
		at += (size_t)snprintf(buf + at, size - at, " (%u to %u)", f->min, f->max);
	return at;
}

void spyreprog_print_rst(FILE *out)
{
	static const struct { const char *title; uint32_t units; } parts[] = {
		{ "Every unit", ALL_UNITS }, { "L3LU", U(L3LU) }, { "L3SU", U(L3SU) },
		{ "LXLU and L0LU", LOADERS }, { "LXSU and L0SU", STORERS }, { "PT", U(PT) },
		{ "PE and SFP", VECTOR }, { "SFP", U(SFP) },
	};
	char left[64], mid[400];
	size_t i, j, k;

	fprintf(out, ".. SPDX-License-Identifier: MIT\n");
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		fprintf(out,
			"\n.. list-table:: %s\n   :header-rows: 1\n   :widths: 14 36 50\n\n",
			parts[i].title);
		rst_row(out, "instruction", "fields", "does");
		for (j = 0; j < sizeof(ops) / sizeof(ops[0]); j++) {
			const struct opinfo *o = &ops[j];
			size_t at = 0;

			if (o->units != parts[i].units)
				continue;
			snprintf(left, sizeof(left), "``%s`` (0x%02x)", o->name, o->op);
			mid[0] = 0;
			for (k = 0; o->f[k].kind; k++)
				at += rst_field(mid + at, sizeof(mid) - at, &o->f[k], k > 0);
			rst_row(out, left, mid[0] ? mid : "\\-", o->does);
		}
	}
}
