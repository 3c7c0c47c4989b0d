/* SPDX-License-Identifier: MIT */
/*
 * The one table of instructions, FIFOs, formats and names. It drives assembler, disassembler and
 * the manual (libspyreprog), the card's checker and interpreter and the timing pass (the model),
 * and the tests. What an operation computes is told in isa.h.
 */
#ifndef SPYRE_ISA_TABLE_H
#define SPYRE_ISA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa.h"

/* What a field of an instruction holds: how it is written, and what the checker accepts. */
enum isa_kind {
	ISA_END = 0,
	ISA_COUNT,		/* imm: unsigned, or b: an LCR with c = 1 */
	ISA_REG,		/* any register */
	ISA_REG_OR_NONE,
	ISA_LAR,
	ISA_LBR,		/* or none */
	ISA_EAR,
	ISA_BOOL,
	ISA_NUM,		/* unsigned, min to max */
	ISA_S32,
	ISA_STRIDE,		/* signed multiple of a stick */
	ISA_CORES,		/* mask of cores of the job; none: the own one */
	ISA_TAG,
	ISA_TILE,
	ISA_GROUP,		/* one that the container defines */
	ISA_FIFO,		/* one that this unit reads or writes, by the operation's flags */
	ISA_FMT,		/* one of the formats in the mask .max */
	ISA_DST,		/* vector operands; their format is a byte of imm2 */
	ISA_SRC,
};

/* Where it lies in struct spyre_insn; ISA_GET() takes any struct with these members. */
enum isa_at { ISA_A, ISA_B, ISA_C, ISA_D, ISA_N, ISA_IMM, ISA_IMM2, ISA_PLACES };

#define ISA_GET(in, at) \
	((at) == ISA_A ? (uint32_t)(in)->a : (at) == ISA_B ? (uint32_t)(in)->b : \
	 (at) == ISA_C ? (uint32_t)(in)->c : (at) == ISA_D ? (uint32_t)(in)->d : \
	 (at) == ISA_N ? (uint32_t)(in)->n : (at) == ISA_IMM ? (uint32_t)(in)->imm : \
	 (uint32_t)(in)->imm2)

/* Shift of the format of the operand at a place, within imm2. */
static inline unsigned int isa_fmt_shift(unsigned int at)
{
	return at == ISA_A ? 24 : (at - ISA_B) * 8;
}

struct isa_field {
	const char *name;
	uint8_t kind;		/* enum isa_kind */
	uint8_t at;		/* enum isa_at */
	bool optional;		/* may be left out of the text and is .fallback then */
	uint32_t min, max;
	uint32_t fallback;
};

/* struct isa_op.flags */
#define ISA_READS	(1u << 0)	/* its FIFO is read */
#define ISA_WRITES	(1u << 1)
#define ISA_LOAD_PORT	(1u << 2)	/* its FIFO is read by PT's load port */
#define ISA_IMM_FP32	(1u << 3)	/* an immediate operand is written as fp32 */
#define ISA_IMM_OWN	(1u << 4)	/* imm is a field of its own, no operand may be IMM */
#define ISA_ROWS	(1u << 5)	/* imm + n is at most 128 */
#define ISA_LANES	(1u << 6)	/* imm + c is at most 64 */
#define ISA_MEMORY	(1u << 7)	/* accesses LPDDR5 */
#define ISA_RECAST	(1u << 8)	/* takes formats of more than 64 lanes a word */

/* Cost classes of the timing pass. */
enum isa_cost {
	ISA_CONTROL,		/* registers and program counter */
	ISA_SYNC,
	ISA_EXTERNAL,		/* bursts between LX and memory or another LX */
	ISA_STREAM,		/* words between LX, L0 or rows and a FIFO */
	ISA_TILE_LOAD,
	ISA_MATMUL,
	ISA_SIMPLE,		/* vector operations */
	ISA_SPECIAL,
	ISA_REDUCE,
	ISA_RANK,
};

/* Errors that an operation can end with while running: bits of struct isa_op.errors. */
#define ISA_ERR(pe)	((uint8_t)(1u << ((pe) - SPYRE_PE_LX_RANGE)))
#define ISA_ERR_LOCAL	(ISA_ERR(SPYRE_PE_LX_RANGE) | ISA_ERR(SPYRE_PE_ALIGN))

struct isa_op {
	const char *name;	/* without the unit's prefix; NULL: no operation has this code */
	const char *does;
	const struct isa_field *fields;	/* until kind ISA_END */
	uint16_t units;		/* mask of enum spyre_unit */
	uint16_t flags;
	uint8_t code;		/* enum spyre_op */
	uint8_t cost;		/* enum isa_cost */
	uint8_t sources;	/* vector operations: operands b, c, d that are read */
	uint8_t words;		/* through its FIFO for each of n; in all if there is no n */
	uint8_t errors;		/* mask of ISA_ERR() */
};

#define ISA_U(x)	(1u << SPYRE_UNIT_##x)
#define ISA_UNITS_ALL	((1u << SPYRE_UNITS) - 1)
#define ISA_UNITS_LOAD	(ISA_U(LXLU) | ISA_U(L0LU))
#define ISA_UNITS_STORE	(ISA_U(LXSU) | ISA_U(L0SU))
#define ISA_UNITS_VEC	(ISA_U(PE) | ISA_U(SFP))

#define ISA_FORMATS_16 \
	(1u << SPYRE_SEN169_FP16 | 1u << SPYRE_IEEE_FP16 | 1u << SPYRE_BFLOAT16)
#define ISA_FORMATS_PT \
	(ISA_FORMATS_16 | 1u << SPYRE_SENINT8 | 1u << SPYRE_SEN143_FP8 | 1u << SPYRE_SEN152_FP8 | \
	 1u << SPYRE_SENINT4)
#define ISA_FORMATS_PS	(1u << SPYRE_IEEE_FP32 | 1u << SPYRE_IEEE_INT32)

/* --- Fields --------------------------------------------------------------------------------- */

#define ISA_F(nm, k, w)			{ .name = nm, .kind = k, .at = w }
#define ISA_FR(nm, k, w, lo, hi)	{ .name = nm, .kind = k, .at = w, .min = lo, .max = hi }
#define ISA_FO(nm, k, w, v) \
	{ .name = nm, .kind = k, .at = w, .optional = true, .fallback = v }
#define ISA_LAST			{ .kind = ISA_END }
#define ISA_TIMES \
	{ .name = "n", .kind = ISA_NUM, .at = ISA_N, .min = 1, .max = 65535, .optional = true, \
	  .fallback = 1 }
#define ISA_L3 \
	ISA_F("lar", ISA_LAR, ISA_A), ISA_FO("lbr", ISA_LBR, ISA_B, SPYRE_REG_NONE), \
	ISA_F("ear", ISA_EAR, ISA_C), ISA_FR("burst", ISA_NUM, ISA_N, 1, 32), \
	ISA_FO("larinc", ISA_S32, ISA_IMM, 0), ISA_FO("earinc", ISA_S32, ISA_IMM2, 0)
#define ISA_ROW_RANGE \
	ISA_F("fifo", ISA_FIFO, ISA_D), ISA_FR("n", ISA_NUM, ISA_N, 1, 128), \
	ISA_FR("row", ISA_NUM, ISA_IMM, 0, 127)
#define ISA_DST_SRC0	ISA_F("dst", ISA_DST, ISA_A), ISA_F("src0", ISA_SRC, ISA_B)

static const struct isa_field isa_f_none[] = { ISA_LAST };
static const struct isa_field isa_f_loop[] = { ISA_F("count", ISA_COUNT, ISA_IMM), ISA_LAST };
static const struct isa_field isa_f_addimm[] = {
	ISA_F("reg", ISA_REG, ISA_A), ISA_F("imm", ISA_S32, ISA_IMM), ISA_LAST,
};
static const struct isa_field isa_f_addreg[] = {
	ISA_F("reg", ISA_REG, ISA_A), ISA_F("src", ISA_REG, ISA_B),
	ISA_F("times", ISA_S32, ISA_IMM), ISA_LAST,
};
static const struct isa_field isa_f_mvreg[] = {
	ISA_F("reg", ISA_REG, ISA_A), ISA_F("src", ISA_REG_OR_NONE, ISA_B),
	ISA_FO("imm", ISA_S32, ISA_IMM, 0), ISA_LAST,
};
static const struct isa_field isa_f_send[] = {
	ISA_F("synctag", ISA_TAG, ISA_A), ISA_FO("cores", ISA_CORES, ISA_IMM, 0), ISA_LAST,
};
static const struct isa_field isa_f_wait[] = {
	ISA_F("synctag", ISA_TAG, ISA_A), ISA_TIMES, ISA_LAST,
};
static const struct isa_field isa_f_l3[] = { ISA_L3, ISA_LAST };
static const struct isa_field isa_f_ldm[] = { ISA_L3, ISA_F("group", ISA_GROUP, ISA_D), ISA_LAST };
static const struct isa_field isa_f_local[] = {
	ISA_F("lar", ISA_LAR, ISA_A), ISA_FO("lbr", ISA_LBR, ISA_B, SPYRE_REG_NONE),
	ISA_F("fifo", ISA_FIFO, ISA_D), ISA_FR("n", ISA_NUM, ISA_N, 1, 65535),
	ISA_FO("stride", ISA_STRIDE, ISA_IMM, SPYRE_STICK),
	ISA_FO("larinc", ISA_S32, ISA_IMM2, 0), ISA_LAST,
};
static const struct isa_field isa_f_ldw[] = {
	ISA_F("tile", ISA_TILE, ISA_A), ISA_FR("fmt", ISA_FMT, ISA_B, 0, ISA_FORMATS_PT),
	ISA_F("fifo", ISA_FIFO, ISA_D), ISA_LAST,
};
static const struct isa_field isa_f_mm[] = {
	ISA_F("tile", ISA_TILE, ISA_A), ISA_FR("fmt", ISA_FMT, ISA_B, 0, ISA_FORMATS_PT),
	ISA_F("onto", ISA_BOOL, ISA_C), ISA_ROW_RANGE, ISA_LAST,
};
static const struct isa_field isa_f_psout[] = { ISA_ROW_RANGE, ISA_LAST };
static const struct isa_field isa_f_psin[] = {
	ISA_FR("fmt", ISA_FMT, ISA_B, 0, ISA_FORMATS_PS), ISA_ROW_RANGE, ISA_LAST,
};
static const struct isa_field isa_f_v1[] = { ISA_DST_SRC0, ISA_TIMES, ISA_LAST };
static const struct isa_field isa_f_v2[] = {
	ISA_DST_SRC0, ISA_F("src1", ISA_SRC, ISA_C), ISA_TIMES, ISA_LAST,
};
static const struct isa_field isa_f_v3[] = {
	ISA_DST_SRC0, ISA_F("src1", ISA_SRC, ISA_C), ISA_F("src2", ISA_SRC, ISA_D), ISA_TIMES,
	ISA_LAST,
};
static const struct isa_field isa_f_bcast[] = {
	ISA_DST_SRC0, ISA_FR("lane", ISA_NUM, ISA_IMM, 0, SPYRE_LANES - 1), ISA_TIMES, ISA_LAST,
};
static const struct isa_field isa_f_rot[] = {
	ISA_DST_SRC0, ISA_F("by", ISA_S32, ISA_IMM), ISA_TIMES, ISA_LAST,
};
static const struct isa_field isa_f_lmask[] = {
	ISA_F("dst", ISA_DST, ISA_A), ISA_FR("first", ISA_NUM, ISA_IMM, 0, SPYRE_LANES),
	ISA_FR("count", ISA_NUM, ISA_C, 0, SPYRE_LANES), ISA_TIMES, ISA_LAST,
};
static const struct isa_field isa_f_iota[] = {
	ISA_F("dst", ISA_DST, ISA_A), ISA_FO("base", ISA_S32, ISA_IMM, 0), ISA_TIMES, ISA_LAST,
};

/* --- Operations ----------------------------------------------------------------------------- */

#define ISA_OP(op, nm, text, f, u, fl, c) \
	.name = nm, .does = text, .fields = f, .units = u, .flags = fl, .cost = c, \
	.code = SPYRE_OP_##op
#define ISA_CTL(op, f, c, e, text) \
	[SPYRE_OP_##op] = { ISA_OP(op, #op, text, f, ISA_UNITS_ALL, 0, c), .errors = e }
#define ISA_EXT(op, f, u, fl, e, text) \
	[SPYRE_OP_L3_##op] = { ISA_OP(L3_##op, #op, text, f, u, fl, ISA_EXTERNAL), \
			       .errors = ISA_ERR_LOCAL | (e) }
#define ISA_IO(op, nm, f, u, fl, c, w, e, text) \
	[SPYRE_OP_##op] = { ISA_OP(op, nm, text, f, u, fl, c), .words = w, .errors = e }
#define ISA_V(op, s, f, u, fl, c, text) \
	[SPYRE_OP_##op] = { ISA_OP(op, #op, text, f, u, fl, c), .sources = s }
#define ISA_V1(op, fl, text)	ISA_V(op, 1, isa_f_v1, ISA_UNITS_VEC, fl, ISA_SIMPLE, text)
#define ISA_V2(op, fl, text)	ISA_V(op, 2, isa_f_v2, ISA_UNITS_VEC, fl, ISA_SIMPLE, text)
#define ISA_V3(op, fl, text)	ISA_V(op, 3, isa_f_v3, ISA_UNITS_VEC, fl, ISA_SIMPLE, text)
#define ISA_S1(op, c, text)	ISA_V(op, 1, isa_f_v1, ISA_U(SFP), ISA_IMM_FP32, c, text)

/* By opcode. */
#define ISA_OPS		0x80u
static const struct isa_op isa_ops[ISA_OPS] = {
	ISA_CTL(NOP, isa_f_none, ISA_CONTROL, 0, "Nothing."),
	ISA_CTL(RETURN, isa_f_none, ISA_CONTROL, ISA_ERR(SPYRE_PE_FIFO_LEFT),
		"End of the program, once its loads and stores in flight are done."),
	ISA_CTL(MVLOOPCNT, isa_f_loop, ISA_CONTROL, 0,
		"Opens a block that runs count times; 0 skips it. "
		"The be of a later instruction ends it."),
	ISA_CTL(ADDIMM, isa_f_addimm, ISA_CONTROL, 0, "reg += imm."),
	ISA_CTL(ADDREG, isa_f_addreg, ISA_CONTROL, 0, "reg += src * times."),
	ISA_CTL(MVREG, isa_f_mvreg, ISA_CONTROL, 0, "reg = src + imm."),
	ISA_CTL(SYNC_SEND, isa_f_send, ISA_SYNC, ISA_ERR(SPYRE_PE_TAG_OVERFLOW),
		"Tag of the cores += 1 after all earlier accesses of this unit. "
		"Cores none: the own core."),
	ISA_CTL(SYNC_WAIT, isa_f_wait, ISA_SYNC, 0,
		"Waits until the tag is at least n, then takes n off."),

	ISA_EXT(LDU, isa_f_l3, ISA_U(L3LU), ISA_MEMORY, 0,
		"Memory at EAR to LX at LAR + LBR, burst words."),
	ISA_EXT(LDM, isa_f_ldm, ISA_U(L3LU), ISA_MEMORY, ISA_ERR(SPYRE_PE_GROUP_MISMATCH),
		"The same for all cores of a group at once: same EAR and burst, "
		"each its own LX address."),
	ISA_EXT(STU, isa_f_l3, ISA_U(L3SU), ISA_MEMORY, 0,
		"LX at LAR + LBR to memory at EAR, burst words."),
	ISA_EXT(STC, isa_f_l3, ISA_U(L3SU), 0, ISA_ERR(SPYRE_PE_CORE),
		"LX to another core's LX: EAR holds core << 24 | LX address; "
		"all words are read before one is written."),

	ISA_IO(LD, "LD", isa_f_local, ISA_UNITS_LOAD, ISA_WRITES, ISA_STREAM, 1,
		ISA_ERR_LOCAL,
		"n words from LAR + LBR, stride bytes apart, into a FIFO; then LAR += larinc."),
	ISA_IO(ST, "ST", isa_f_local, ISA_UNITS_STORE, ISA_READS, ISA_STREAM, 1,
		ISA_ERR_LOCAL,
		"n words from a FIFO to LAR + LBR, stride bytes apart; then LAR += larinc."),

	ISA_IO(PT_LDW, "LDW", isa_f_ldw, ISA_U(PT), ISA_LOAD_PORT, ISA_TILE_LOAD, 64, 0,
		"64 words become a weight tile; goes on beside what follows."),
	ISA_IO(PT_MM, "MM", isa_f_mm, ISA_U(PT), ISA_READS | ISA_ROWS, ISA_MATMUL, 1,
		ISA_ERR(SPYRE_PE_TILE),
		"n words times the tile, word i onto (onto:1) or into (onto:0) row row + i "
		"of the sums."),
	ISA_IO(PT_PSOUT, "PSOUT", isa_f_psout, ISA_U(PT), ISA_WRITES | ISA_ROWS, ISA_STREAM, 2, 0,
		"n rows of partial sums to a FIFO, two words each."),
	ISA_IO(PT_PSIN, "PSIN", isa_f_psin, ISA_U(PT), ISA_READS | ISA_ROWS, ISA_STREAM, 2, 0,
		"n rows of partial sums from a FIFO, two words each."),

	ISA_V1(MOV, ISA_IMM_FP32 | ISA_RECAST, "dst = src0, converted between their formats."),
	ISA_V2(ADD, ISA_IMM_FP32, "src0 + src1."),
	ISA_V2(SUB, ISA_IMM_FP32, "src0 - src1."),
	ISA_V2(MUL, ISA_IMM_FP32, "src0 * src1."),
	ISA_V3(FMA, ISA_IMM_FP32, "src0 * src1 + src2, rounded once."),
	ISA_V2(MIN, ISA_IMM_FP32, "The smaller; a NaN operand gives the NaN."),
	ISA_V2(MAX, ISA_IMM_FP32, "The larger; a NaN operand gives the NaN."),
	ISA_V1(ABS, ISA_IMM_FP32, "Absolute value."),
	ISA_V1(NEG, ISA_IMM_FP32, "Sign changed."),
	ISA_V2(CMPEQ, ISA_IMM_FP32, "1.0 where equal, else 0.0."),
	ISA_V2(CMPLT, ISA_IMM_FP32, "1.0 where src0 < src1, else 0.0."),
	ISA_V2(CMPLE, ISA_IMM_FP32, "1.0 where src0 <= src1, else 0.0."),
	ISA_V3(SEL, ISA_IMM_FP32, "src2 != 0 ? src0 : src1, 32 raw bits."),
	ISA_V(LMASK, 0, isa_f_lmask, ISA_UNITS_VEC, ISA_IMM_OWN | ISA_LANES, ISA_SIMPLE,
		"1.0 in count lanes from first on, else 0.0; first + count is at most 64."),
	ISA_V(IOTA, 0, isa_f_iota, ISA_UNITS_VEC, ISA_IMM_OWN, ISA_SIMPLE,
		"Lane i = int32 base + i."),
	ISA_V2(SHUF, 0, "Lane i = lane (src1[i] & 63) of src0, 32 raw bits."),
	ISA_V2(IADD, 0, "int32 sum, modulo 2^32."),
	ISA_V2(ISUB, 0, "int32 difference, modulo 2^32."),
	ISA_V2(IMUL, 0, "int32 product, modulo 2^32."),
	ISA_V2(IMIN, 0, "int32 minimum."),
	ISA_V2(IMAX, 0, "int32 maximum."),
	ISA_V2(AND, 0, "Bitwise and."),
	ISA_V2(OR, 0, "Bitwise or."),
	ISA_V2(XOR, 0, "Bitwise exclusive or."),
	ISA_V2(SHL, 0, "src0 << (src1 & 31)."),
	ISA_V2(SHR, 0, "src0 >> (src1 & 31), zeros from above."),
	ISA_V2(SRA, 0, "src0 >> (src1 & 31), the sign from above."),
	ISA_V1(I2F, 0, "int32 to fp32, to nearest even."),
	ISA_V1(F2I, ISA_IMM_FP32, "fp32 to int32, to nearest even, saturating; NaN gives 0."),
	ISA_V(BCAST, 1, isa_f_bcast, ISA_UNITS_VEC, ISA_IMM_OWN, ISA_SIMPLE,
		"A lane of src0 in every lane."),
	ISA_V(ROT, 1, isa_f_rot, ISA_UNITS_VEC, ISA_IMM_OWN, ISA_SIMPLE,
		"Lane i = lane (i + by) mod 64 of src0."),

	ISA_S1(RECIP, ISA_SPECIAL, "1 / src0."),
	ISA_S1(RSQRT, ISA_SPECIAL, "1 / square root."),
	ISA_S1(SQRT, ISA_SPECIAL, "Square root."),
	ISA_S1(EXP, ISA_SPECIAL, "e to the src0."),
	ISA_S1(LN, ISA_SPECIAL, "Natural logarithm."),
	ISA_S1(SIGMOID, ISA_SPECIAL, "1 / (1 + exp(-src0))."),
	ISA_S1(TANH, ISA_SPECIAL, "Hyperbolic tangent."),
	ISA_S1(ERF, ISA_SPECIAL, "Error function."),
	ISA_S1(GELU, ISA_SPECIAL, "src0 * (1 + erf(src0 / sqrt 2)) / 2."),
	ISA_S1(RSUM, ISA_REDUCE,
		"Sum of the 64 lanes in every lane, pairwise: lane i + lane i + 32, then 16, ..."),
	ISA_S1(RMAX, ISA_REDUCE, "Largest lane in every lane."),
	ISA_S1(RMIN, ISA_REDUCE, "Smallest lane in every lane."),
	ISA_S1(RARGMAX, ISA_REDUCE,
		"int32 number of the first largest lane, in every lane."),
	ISA_S1(SCAN, ISA_REDUCE,
		"Lane i = sum of lanes 0 to i, in steps: + lane i - 1, then i - 2, 4, ... 32."),
	ISA_S1(RRANK, ISA_RANK,
		"int32 number of lanes greater than lane i, and of equal ones before it."),
};

/* The operation with this code, or NULL. */
static inline const struct isa_op *isa_op(unsigned int code)
{
	return code < ISA_OPS && isa_ops[code].name ? &isa_ops[code] : NULL;
}

/* PE's and SFP's operations are those with a destination. */
static inline bool isa_is_vector(const struct isa_op *o)
{
	return o->fields[0].kind == ISA_DST;
}

/* --- FIFOs ---------------------------------------------------------------------------------- */

struct isa_fifo {
	const char *name;
	uint8_t writer, reader;	/* enum spyre_unit; of RING: the neighbour's SFP writes */
	bool load_port;		/* PT reads it by LDW only */
};

static const struct isa_fifo isa_fifos[SPYRE_FIFOS] = {
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

static inline bool isa_writes(unsigned int unit, unsigned int fifo)
{
	return fifo < SPYRE_FIFOS && isa_fifos[fifo].writer == unit;
}

/* load_port: by PT's load port; other units have none. */
static inline bool isa_reads(unsigned int unit, unsigned int fifo, bool load_port)
{
	return fifo < SPYRE_FIFOS && isa_fifos[fifo].reader == unit &&
	       isa_fifos[fifo].load_port == load_port;
}

/* --- Formats -------------------------------------------------------------------------------- */

struct isa_format {
	const char *name;
	uint16_t lanes;		/* in a word */
	bool integer;
};

static const struct isa_format isa_formats[SPYRE_FORMATS] = {
	[SPYRE_SEN169_FP16] = { "SEN169_FP16", 64, false },
	[SPYRE_IEEE_FP32] = { "IEEE_FP32", 32, false },
	[SPYRE_IEEE_FP16] = { "IEEE_FP16", 64, false },
	[SPYRE_BFLOAT16] = { "BFLOAT16", 64, false },
	[SPYRE_SENINT8] = { "SENINT8", 128, true },
	[SPYRE_IEEE_INT32] = { "IEEE_INT32", 32, true },
	[SPYRE_SEN143_FP8] = { "SEN143_FP8", 128, false },
	[SPYRE_SEN152_FP8] = { "SEN152_FP8", 128, false },
	[SPYRE_SEN18F_FP24] = { "SEN18F_FP24", 32, false },
	[SPYRE_SENINT4] = { "SENINT4", 256, true },
};

/* Words that a FIFO operand in a format (with or without SPYRE_FMT_HALF) moves at a time. */
static inline unsigned int isa_words(unsigned int fmt)
{
	unsigned int lanes = fmt < SPYRE_FORMATS ? isa_formats[fmt].lanes : SPYRE_LANES;

	return lanes < SPYRE_LANES ? SPYRE_LANES / lanes : 1;
}

/* Registers that a word of a valid format fills: 1, or more for the formats that only MOV takes. */
static inline unsigned int isa_vregs(unsigned int fmt)
{
	unsigned int lanes = fmt < SPYRE_FORMATS ? isa_formats[fmt].lanes : SPYRE_LANES;

	return lanes > SPYRE_LANES ? lanes / SPYRE_LANES : 1;
}

/* --- Names ---------------------------------------------------------------------------------- */

static const char *const isa_unit_names[SPYRE_UNITS] = {
	"l3lu", "l3su", "lxlu", "lxsu", "l0lu", "l0su", "pt", "pe", "sfp",
};

/* Of a unit's mnemonics. */
static const char *const isa_prefixes[SPYRE_UNITS] = {
	"L3_", "L3_", "LX_", "LX_", "L0_", "L0_", "PT_", "PE_", "SFP_",
};

static const char *const isa_reg_names[SPYRE_REGS] = {
	"LAR0", "LAR1", "LAR2", "LAR3", "LBR0", "LBR1", "LBR2", "LBR3",
	"EAR0", "EAR1", "EAR2", "EAR3", "LCR0", "LCR1", "LCR2", "LCR3",
};

static inline const char *isa_unit_name(unsigned int unit)
{
	return unit < SPYRE_UNITS ? isa_unit_names[unit] : "unit?";
}

/* --- Errors --------------------------------------------------------------------------------- */

/* What is wrong, for a message that also names core, unit and place. */
static const struct isa_err {
	const char *name, *text;
} isa_errs[] = {
#define ISA_E(err, words) [SPYRE_PE_##err] = { #err, words }
	ISA_E(MAGIC, "it does not begin with the magic of a job binary"),
	ISA_E(TOO_OLD, "its container version is too old"),
	ISA_E(TOO_NEW, "its container version is too new"),
	ISA_E(SIZE, "its size field is wrong or above 16 MiB"),
	ISA_E(SECTION, "offset, count or alignment of a section, or an overlap"),
	ISA_E(RESERVED, "a reserved field is set"),
	ISA_E(DIGEST, "its content does not match its digest"),
	ISA_E(CORE_MASK, "core mask and directory differ"),
	ISA_E(PROGRAM, "program table: range, unit or missing RETURN"),
	ISA_E(UNIT, "directory: unknown unit, named twice, out of order, or a program of "
			  "another unit"),
	ISA_E(INIT, "register or symbol number of an initial value"),
	ISA_E(OPCODE, "operation unknown, or not of this unit"),
	ISA_E(FIELD, "a field of an instruction is out of range or not 0"),
	ISA_E(REGISTER, "register number"),
	ISA_E(FIFO, "this unit does not read or write that FIFO"),
	ISA_E(FORMAT, "data format: unknown, not executed by this operation, or not with the "
			    "other operand"),
	ISA_E(LOOP, "blocks do not match, or are nested deeper than 8"),
	ISA_E(TAG, "tag number, or a tag with two waiting units"),
	ISA_E(GROUP, "multicast group"),
	ISA_E(CONST, "constant number"),
	ISA_E(LX_RANGE, "LX or L0 address out of range"),
	ISA_E(ALIGN, "address is not a multiple of 128"),
	ISA_E(TAG_OVERFLOW, "a sync tag overflowed"),
	ISA_E(TILE, "PT used a tile that was never loaded, or in another format"),
	ISA_E(GROUP_MISMATCH, "members of a multicast disagree on address or burst"),
	ISA_E(FIFO_LEFT, "words were left in a FIFO, or a tag not at 0, at the end"),
	ISA_E(CORE, "store to a core outside the job"),
	ISA_E(RACE, "no FIFO and no tag orders two accesses to a word, of which one writes"),
	ISA_E(RACE_SIZE, "too many sends are ahead of their waits for the race check: wait sooner, or run "
			       "the job without check=races"),
#undef ISA_E
};

/* err: enum spyre_prog_err, or whatever a card sent. */
static inline const char *isa_err_text(uint32_t err)
{
	return err < sizeof(isa_errs) / sizeof(isa_errs[0]) && isa_errs[err].text ?
	       isa_errs[err].text : "unknown program error";
}

#endif
