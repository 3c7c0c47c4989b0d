/* SPDX-License-Identifier: MIT */
/* The one table of instructions: drives assembler, disassembler and the manual. Internal. */
#ifndef SPYREPROG_TABLE_H
#define SPYREPROG_TABLE_H

#include "spyreprog.h"

/* What a field of an instruction holds, which decides how it is written. */
enum kind {
	K_END = 0,
	K_COUNT,	/* MVLOOPCNT: number (imm) or LCR (b, with c = 1) */
	K_REG,		/* any register */
	K_REG_OR_NONE,
	K_LAR,
	K_LBR,		/* or none */
	K_EAR,
	K_U8,
	K_BOOL,
	K_U16,
	K_U32,
	K_S32,
	K_CORES,	/* mask of cores; none: the own one */
	K_TAG,
	K_TILE,
	K_GROUP,
	K_FIFO,		/* one that this unit reads or writes, see op's flags */
	K_FMT,
	K_DST,		/* vector operands, format in a byte of imm2 */
	K_SRC,
};

enum where { W_A, W_B, W_C, W_D, W_N, W_IMM, W_IMM2 };

struct field {
	const char *name;
	uint8_t kind, where;
	uint32_t min, max;	/* of K_U8, K_U16, K_U32 */
	bool optional;		/* may be left out of the text; value then is fallback */
	uint32_t fallback;
};

#define OP_READS	(1u << 0)	/* K_FIFO is read by the unit */
#define OP_WRITES	(1u << 1)
#define OP_LOAD_PORT	(1u << 2)	/* the FIFO is read by PT's load port */
#define OP_IMM_FP32	(1u << 3)	/* imm of a SPYRE_OPND_IMM operand is written as fp32 */
#define OP_IMM_OWN	(1u << 4)	/* imm is a field of its own, no operand may be IMM */

struct opinfo {
	uint8_t op;
	const char *name;	/* without the unit's prefix */
	uint32_t units;		/* mask of enum spyre_unit */
	unsigned int flags;
	const char *does;
	struct field f[10];
};

const struct opinfo *op_by_code(unsigned int op);
/* name without prefix, for a unit; -1 as unit: any. */
const struct opinfo *op_by_name(const char *name, size_t len, int unit);
const struct opinfo *op_at(size_t i);	/* NULL behind the last */
const char *unit_prefix(unsigned int unit);

struct fifoinfo {
	const char *name;
	uint8_t writer, reader;		/* enum spyre_unit */
	bool load_port;			/* PT reads it by LDW only */
};

extern const struct fifoinfo fifos[SPYRE_FIFOS];

#endif
