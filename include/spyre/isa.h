/* SPDX-License-Identifier: MIT */
/*
 * Job binaries: the container, units, registers, FIFOs, instructions and data formats. Unit names,
 * register names (LAR, LBR, EAR), MVLOOPCNT, LDU, STU, SYNC and block end (be) are public
 * vocabulary; encodings and the container are emulator-defined. The manual is Documentation/isa.rst.
 */
#ifndef SPYRE_ISA_H
#define SPYRE_ISA_H

#include "hw.h"

/* --- Container ------------------------------------------------------------------------------ */

#define SPYRE_JOB_MAGIC		0x424a5053u	/* "SPJB" */
#define SPYRE_JOB_MAJOR		1u
#define SPYRE_JOB_MINOR		0u
#define SPYRE_JOB_MAX		(16u << 20)	/* bytes of a container */
#define SPYRE_JOB_SYMBOLS	256u
#define SPYRE_JOB_CONSTS	128u
#define SPYRE_JOB_GROUPS	16u

/*
 * All sections start on a stick and lie inside .size; they may not overlap. Unused bytes are 0. A section
 * with no entries has offset 0.
 */
struct spyre_job_header {
	spyre_le32 magic;
	spyre_le16 major;		/* equal, or TOO_OLD / TOO_NEW */
	spyre_le16 minor;
	spyre_le32 size;		/* bytes of the container, multiple of 128 */
	spyre_le32 core_mask;		/* cores the directory names, not 0 */
	spyre_le32 nprograms;
	spyre_le32 nunits;		/* directory entries */
	spyre_le32 ninits;		/* register initial values */
	spyre_le32 ninsns;
	spyre_le32 nconsts;		/* constant words, 0 to 128 */
	spyre_le32 nsymbols;		/* 0 to 256 */
	spyre_le32 programs_off;	/* struct spyre_job_program[nprograms] */
	spyre_le32 units_off;		/* struct spyre_job_unit[nunits], sorted by core, unit, corelet */
	spyre_le32 inits_off;		/* struct spyre_job_init[ninits] */
	spyre_le32 text_off;		/* struct spyre_insn[ninsns] */
	spyre_le32 consts_off;		/* 64 fp32 or int32 lanes each, 256 bytes */
	spyre_le32 groups_off;		/* 16 multicast core masks (spyre_le32), or 0 */
	spyre_le64 watchdog;		/* core cycles, 0: the card's cap */
	spyre_le64 flags;		/* 0 */
	spyre_le64 reserved[2];		/* 0 */
	uint8_t digest[32];		/* SHA-256 of all bytes after this header */
};
SPYRE_SIZE(struct spyre_job_header, 128);
SPYRE_OFFSET(struct spyre_job_header, magic, 0);
SPYRE_OFFSET(struct spyre_job_header, major, 4);
SPYRE_OFFSET(struct spyre_job_header, minor, 6);
SPYRE_OFFSET(struct spyre_job_header, size, 8);
SPYRE_OFFSET(struct spyre_job_header, core_mask, 12);
SPYRE_OFFSET(struct spyre_job_header, nprograms, 16);
SPYRE_OFFSET(struct spyre_job_header, nunits, 20);
SPYRE_OFFSET(struct spyre_job_header, ninits, 24);
SPYRE_OFFSET(struct spyre_job_header, ninsns, 28);
SPYRE_OFFSET(struct spyre_job_header, nconsts, 32);
SPYRE_OFFSET(struct spyre_job_header, nsymbols, 36);
SPYRE_OFFSET(struct spyre_job_header, programs_off, 40);
SPYRE_OFFSET(struct spyre_job_header, units_off, 44);
SPYRE_OFFSET(struct spyre_job_header, inits_off, 48);
SPYRE_OFFSET(struct spyre_job_header, text_off, 52);
SPYRE_OFFSET(struct spyre_job_header, consts_off, 56);
SPYRE_OFFSET(struct spyre_job_header, groups_off, 60);
SPYRE_OFFSET(struct spyre_job_header, watchdog, 64);
SPYRE_OFFSET(struct spyre_job_header, flags, 72);
SPYRE_OFFSET(struct spyre_job_header, reserved, 80);
SPYRE_OFFSET(struct spyre_job_header, digest, 96);

/* A text run by one unit kind; many cores share one. Must end in RETURN. */
struct spyre_job_program {
	spyre_le32 first;	/* instruction index */
	spyre_le32 count;
	spyre_le16 unit;	/* enum spyre_unit */
	spyre_le16 reserved;
	spyre_le32 reserved1;
};
SPYRE_SIZE(struct spyre_job_program, 16);
SPYRE_OFFSET(struct spyre_job_program, first, 0);
SPYRE_OFFSET(struct spyre_job_program, count, 4);
SPYRE_OFFSET(struct spyre_job_program, unit, 8);
SPYRE_OFFSET(struct spyre_job_program, reserved, 10);
SPYRE_OFFSET(struct spyre_job_program, reserved1, 12);

/* Which program a unit of a core runs. A unit that is not named does nothing. */
struct spyre_job_unit {
	uint8_t core;
	uint8_t unit;		/* enum spyre_unit */
	uint8_t corelet;	/* 0 or 1; 0 for L3LU and L3SU */
	uint8_t ninits;		/* 0 to 16 */
	spyre_le32 program;
	spyre_le32 init;	/* first of its initial values */
	spyre_le32 reserved;
};
SPYRE_SIZE(struct spyre_job_unit, 16);
SPYRE_OFFSET(struct spyre_job_unit, core, 0);
SPYRE_OFFSET(struct spyre_job_unit, unit, 1);
SPYRE_OFFSET(struct spyre_job_unit, corelet, 2);
SPYRE_OFFSET(struct spyre_job_unit, ninits, 3);
SPYRE_OFFSET(struct spyre_job_unit, program, 4);
SPYRE_OFFSET(struct spyre_job_unit, init, 8);
SPYRE_OFFSET(struct spyre_job_unit, reserved, 12);

/* Register's value at start: value, plus a symbol's if .symbol is not SPYRE_NO_SYMBOL. Others start at 0. */
#define SPYRE_NO_SYMBOL		0xffffu
struct spyre_job_init {
	uint8_t reg;		/* enum spyre_reg */
	uint8_t reserved;
	spyre_le16 symbol;
	spyre_le32 reserved1;
	spyre_le64 value;
};
SPYRE_SIZE(struct spyre_job_init, 16);
SPYRE_OFFSET(struct spyre_job_init, reg, 0);
SPYRE_OFFSET(struct spyre_job_init, reserved, 1);
SPYRE_OFFSET(struct spyre_job_init, symbol, 2);
SPYRE_OFFSET(struct spyre_job_init, reserved1, 4);
SPYRE_OFFSET(struct spyre_job_init, value, 8);

/* --- Units ---------------------------------------------------------------------------------- */

enum spyre_unit {
	SPYRE_UNIT_L3LU = 0,	/* per core: memory to LX */
	SPYRE_UNIT_L3SU = 1,	/* per core: LX to memory, LX to another core's LX */
	SPYRE_UNIT_LXLU = 2,	/* per corelet from here on: LX to FIFOs */
	SPYRE_UNIT_LXSU = 3,	/* FIFOs to LX */
	SPYRE_UNIT_L0LU = 4,	/* L0 to FIFOs */
	SPYRE_UNIT_L0SU = 5,	/* FIFO to L0 */
	SPYRE_UNIT_PT = 6,
	SPYRE_UNIT_PE = 7,
	SPYRE_UNIT_SFP = 8,
	SPYRE_UNITS
};

/* 64-bit address and loop registers of every unit. */
enum spyre_reg {
	SPYRE_LAR0 = 0,		/* local address: bytes in LX or L0 */
	SPYRE_LBR0 = 4,		/* local base, added to a LAR */
	SPYRE_EAR0 = 8,		/* external address: DMVA */
	SPYRE_LCR0 = 12,	/* loop counts */
	SPYRE_REGS = 16,
	SPYRE_REG_NONE = 0xff,
};

/*
 * FIFOs of a corelet: 128-byte words, depth 16, one writer, one reader. RING_OUT of a core is RING_IN of the
 * next core in the job's core mask for corelet 0 (clockwise), of the previous one for corelet 1 (public
 * directions); it wraps.
 */
enum spyre_fifo {
	SPYRE_FIFO_LXLU_PT = 0,		/* activations, or partial sums for PSIN */
	SPYRE_FIFO_LXLU_PTW = 1,	/* weights: PT's load port */
	SPYRE_FIFO_LXLU_PE0 = 2,
	SPYRE_FIFO_LXLU_PE1 = 3,
	SPYRE_FIFO_LXLU_SFP0 = 4,
	SPYRE_FIFO_LXLU_SFP1 = 5,
	SPYRE_FIFO_LXLU_L0SU = 6,
	SPYRE_FIFO_L0LU_PT = 7,
	SPYRE_FIFO_L0LU_PTW = 8,
	SPYRE_FIFO_L0LU_PE = 9,
	SPYRE_FIFO_L0LU_SFP = 10,
	SPYRE_FIFO_PT_PE = 11,
	SPYRE_FIFO_PT_SFP = 12,
	SPYRE_FIFO_PT_LXSU = 13,
	SPYRE_FIFO_PE_SFP = 14,
	SPYRE_FIFO_SFP_PE = 15,
	SPYRE_FIFO_PE_LXSU = 16,
	SPYRE_FIFO_SFP_LXSU = 17,
	SPYRE_FIFO_RING = 18,		/* SFP writes: to the neighbour; SFP reads: from the other neighbour */
	SPYRE_FIFOS
};
#define SPYRE_FIFO_DEPTH	16u
#define SPYRE_TAGS		64u	/* per core; counting, up to 65535 */
#define SPYRE_LOOPS		8u	/* nesting depth */

/* What a stuck unit waits for. */
enum spyre_wait_kind {
	SPYRE_WAIT_FIFO_EMPTY = 1,	/* number: FIFO it reads */
	SPYRE_WAIT_FIFO_FULL = 2,	/* number: FIFO it writes */
	SPYRE_WAIT_TAG = 3,		/* number: tag */
	SPYRE_WAIT_TILE = 4,		/* number: XRF tile whose load is not complete */
	SPYRE_WAIT_GROUP = 5,		/* number: multicast group */
};

/* --- Data formats (names public) ------------------------------------------------------------ */

enum spyre_format {
	SPYRE_SEN169_FP16 = 0,	/* DL16: 1-6-9, bias 31, no subnormals, nearest with ties away */
	SPYRE_IEEE_FP32 = 1,
	SPYRE_IEEE_FP16 = 2,
	SPYRE_BFLOAT16 = 3,
	SPYRE_SENINT8 = 4,
	SPYRE_IEEE_INT32 = 5,
	SPYRE_SEN143_FP8 = 6,	/* 1-4-3, bias 7, largest 448 */
	SPYRE_SEN152_FP8 = 7,	/* 1-5-2, bias 15 */
	SPYRE_SEN18F_FP24 = 8,	/* 1-8-15, the upper 24 of 32 bits, the lower 8 being 0 */
	SPYRE_SENINT4 = 9,	/* two to a byte, the even lane in the low half */
	SPYRE_FORMATS
};

/* --- Instructions --------------------------------------------------------------------------- */

/*
 * Fixed width, 16 bytes, eight to a stick. be: blocks (loops) that end after this instruction, innermost
 * first. Fields an operation does not name are 0. LAR, LBR, EAR and register operands are numbers of enum
 * spyre_reg. An instruction that opens a block cannot end one.
 */
struct spyre_insn {
	uint8_t op;		/* enum spyre_op */
	uint8_t be;
	uint8_t a, b, c, d;
	spyre_le16 n;
	spyre_le32 imm;		/* two's complement where signed */
	spyre_le32 imm2;
};
SPYRE_SIZE(struct spyre_insn, 16);
SPYRE_OFFSET(struct spyre_insn, op, 0);
SPYRE_OFFSET(struct spyre_insn, be, 1);
SPYRE_OFFSET(struct spyre_insn, a, 2);
SPYRE_OFFSET(struct spyre_insn, b, 3);
SPYRE_OFFSET(struct spyre_insn, c, 4);
SPYRE_OFFSET(struct spyre_insn, d, 5);
SPYRE_OFFSET(struct spyre_insn, n, 6);
SPYRE_OFFSET(struct spyre_insn, imm, 8);
SPYRE_OFFSET(struct spyre_insn, imm2, 12);

/* Vector operands (PE and SFP): a: destination, b, c, d: sources; sources an operation has not are 0 or NONE. */
#define SPYRE_VREGS		16u
#define SPYRE_LANES		64u	/* 32 bits each: fp32 or int32 */
#define SPYRE_OPND_V(n)		(n)		/* 0 to 15 */
#define SPYRE_OPND_FIFO(f)	(0x20u + (f))	/* pop as source, push as destination */
#define SPYRE_OPND_IMM		0x40u		/* .imm in every lane */
#define SPYRE_OPND_CONST(i)	(0x80u + (i))	/* constant word i, 0 to 126: 127 would be NONE */
#define SPYRE_OPND_NONE		0xffu
/*
 * Formats of FIFO operands: byte 0 of imm2 for b, 1 for c, 2 for d, 3 for a. A pop gives 64 lanes: one word
 * of a 16-bit format; two words (lanes 0 to 31, then 32 to 63) of a 32-bit one, SEN18F_FP24 being one too; with
 * HALF one word of a 32-bit format into lanes 0 to 31, zeros above. A pop of an 8-bit format (MOV only, b) is one
 * word into 128 lanes: V registers a (even) and a + 1; a push of one (MOV only) takes b (even) and b + 1. The same
 * with a 4-bit format: 256 lanes, four registers, the first a multiple of 4. Pushes convert: round to nearest even
 * (DL16: ties away), integers saturate. Lanes of integer formats hold int32, the others fp32. A push of HALF stores
 * lanes 0 to 31.
 */
#define SPYRE_FMT_HALF		0x80u
#define SPYRE_FMTS(b, c, d, a)	((uint32_t)(b) | (uint32_t)(c) << 8 | (uint32_t)(d) << 16 | (uint32_t)(a) << 24)

enum spyre_op {
	/* Every unit. */
	SPYRE_OP_NOP = 0x00,
	SPYRE_OP_RETURN = 0x01,		/* end of the program, be 0 */
	SPYRE_OP_MVLOOPCNT = 0x02,	/* open a block: count imm (unsigned), or register b (LCR) if c = 1; 0: block is skipped */
	SPYRE_OP_ADDIMM = 0x03,		/* register a += imm (signed) */
	SPYRE_OP_ADDREG = 0x04,		/* register a += register b * imm (signed) */
	SPYRE_OP_MVREG = 0x05,		/* register a = register b (0xff: 0) + imm (signed) */
	SPYRE_OP_SYNC_SEND = 0x06,	/* tag a of the cores in imm (mask; 0: own core) += 1, after all earlier accesses of this unit */
	SPYRE_OP_SYNC_WAIT = 0x07,	/* wait until tag a of the own core >= n (1 to 65535), then -= n */

	/*
	 * L3LU. LX address LAR a + LBR b (b 0xff: none), memory at EAR c, burst n words (1 to 32); afterwards
	 * LAR += imm, EAR += imm2 (signed). LX addresses and DMVAs are multiples of 128.
	 */
	SPYRE_OP_L3_LDU = 0x10,		/* unicast */
	SPYRE_OP_L3_LDM = 0x11,		/* multicast in group d: every member executes it with the same EAR and n, each its own LX address */
	/* L3SU, fields as L3_LDU. */
	SPYRE_OP_L3_STU = 0x12,		/* LX to memory */
	/*
	 * LX to another core's LX, or to the own one: EAR c holds core << 24 | LX address. All words are read
	 * before one is written.
	 */
	SPYRE_OP_L3_STC = 0x13,

	/*
	 * LXLU, L0LU: n words (1 to 65535) from LAR a + LBR b, imm bytes apart (signed multiple of 128), into FIFO
	 * d; afterwards LAR += imm2 (signed). LXSU, L0SU: the same from FIFO d to LX or L0.
	 */
	SPYRE_OP_LD = 0x20,
	SPYRE_OP_ST = 0x21,

	/* PT. 128 rows of partial sums, 64 lanes of fp32 (int32 for integer formats). */
	/*
	 * Load port: 64 words from FIFO d into tile a (0 to 7) in format b; asynchronous, up to 8 pending. Word k is
	 * row k of W (64 columns); in 8-bit formats word w is rows 2w and 2w + 1, in SENINT4 rows 4w to 4w + 3. All
	 * formats but the 32-bit ones.
	 */
	SPYRE_OP_PT_LDW = 0x30,
	SPYRE_OP_PT_MM = 0x31,		/* n (1 to 128) words of FIFO d times tile a, format b; word i into row imm + i; c = 1: onto the row, 0: onto zero */
	SPYRE_OP_PT_PSOUT = 0x32,	/* rows imm to imm + n - 1 to FIFO d, two words each */
	SPYRE_OP_PT_PSIN = 0x33,	/* the same rows from FIFO d, two words each (format b: IEEE_FP32 or IEEE_INT32) */

	/* PE and SFP: n (1 to 65535) times. */
	SPYRE_OP_MOV = 0x40,		/* a = b */
	SPYRE_OP_ADD = 0x41,		/* fp32 */
	SPYRE_OP_SUB = 0x42,
	SPYRE_OP_MUL = 0x43,
	SPYRE_OP_FMA = 0x44,		/* b * c + d, fused */
	SPYRE_OP_MIN = 0x45,		/* b < c ? b : c; a NaN operand gives the NaN */
	SPYRE_OP_MAX = 0x46,		/* b > c ? b : c, the same */
	SPYRE_OP_ABS = 0x47,
	SPYRE_OP_NEG = 0x48,
	SPYRE_OP_CMPEQ = 0x49,		/* 1.0 or 0.0 */
	SPYRE_OP_CMPLT = 0x4a,
	SPYRE_OP_CMPLE = 0x4b,
	SPYRE_OP_SEL = 0x4c,		/* d != 0 ? b : c, 32 raw bits */
	SPYRE_OP_LMASK = 0x4d,		/* 1.0 in the c lanes from lane imm on, else 0.0; c is a number, imm + c at most 64 */
	SPYRE_OP_IOTA = 0x4e,		/* lane i = imm + i, int32 modulo 2^32 */
	SPYRE_OP_SHUF = 0x4f,		/* lane i = lane (c[i] & 63) of b, 32 raw bits */
	SPYRE_OP_IADD = 0x50,		/* int32, modulo 2^32 */
	SPYRE_OP_ISUB = 0x51,
	SPYRE_OP_IMUL = 0x52,
	SPYRE_OP_IMIN = 0x53,
	SPYRE_OP_IMAX = 0x54,
	SPYRE_OP_AND = 0x55,
	SPYRE_OP_OR = 0x56,
	SPYRE_OP_XOR = 0x57,
	SPYRE_OP_SHL = 0x58,		/* by c & 31 */
	SPYRE_OP_SHR = 0x59,		/* logical */
	SPYRE_OP_SRA = 0x5a,
	SPYRE_OP_I2F = 0x5b,		/* int32 to fp32, nearest even */
	SPYRE_OP_F2I = 0x5c,		/* fp32 to int32, nearest even, saturating, NaN: 0 */
	SPYRE_OP_BCAST = 0x5d,		/* lane imm of b in every lane (b is not IMM) */
	SPYRE_OP_ROT = 0x5e,		/* lane i = lane (i + imm) mod 64 of b (b is not IMM) */

	/* SFP only. Error bounds: Documentation/isa.rst. */
	SPYRE_OP_RECIP = 0x60,
	SPYRE_OP_RSQRT = 0x61,
	SPYRE_OP_SQRT = 0x62,
	SPYRE_OP_EXP = 0x63,
	SPYRE_OP_LN = 0x64,
	SPYRE_OP_SIGMOID = 0x65,
	SPYRE_OP_TANH = 0x66,
	SPYRE_OP_ERF = 0x67,
	SPYRE_OP_GELU = 0x68,		/* x * (1 + erf(x / sqrt 2)) / 2 */
	SPYRE_OP_RSUM = 0x70,		/* sum of the 64 lanes of b in every lane: pairwise tree, lane i + lane i + 32, then 16, ... */
	SPYRE_OP_RMAX = 0x71,
	SPYRE_OP_RMIN = 0x72,
	SPYRE_OP_RARGMAX = 0x73,	/* int32 lane number of the first maximum, in every lane; NaN is greater than all */
	/*
	 * Lane i = sum of lanes 0 to i, fp32, in six steps s = 1, 2, 4, ... 32: in each, all lanes i >= s at once become
	 * lane i + lane (i - s) of the step before. Lanes that no step changes stay (-0.0 too); a NaN is canonical.
	 */
	SPYRE_OP_SCAN = 0x74,
	/*
	 * Lane i = int32 rank of lane i of b by descending value: how many lanes are greater, plus how many equal ones
	 * have a lower number. A NaN is greater than all and equal to every NaN; zeros of both signs are equal. The k
	 * greatest lanes are those with a rank below k.
	 */
	SPYRE_OP_RRANK = 0x75,
};

/* --- Errors --------------------------------------------------------------------------------- */

/* err_code of BAD_PROGRAM (err_pc: byte offset in the container or instruction index) and PROGRAM. */
enum spyre_prog_err {
	SPYRE_PE_NONE = 0,
	/* The container. */
	SPYRE_PE_MAGIC = 1,
	SPYRE_PE_TOO_OLD = 2,
	SPYRE_PE_TOO_NEW = 3,
	SPYRE_PE_SIZE = 4,		/* size field, or longer than 16 MiB */
	SPYRE_PE_SECTION = 5,		/* offset, count, overlap or alignment of a section */
	SPYRE_PE_RESERVED = 6,
	SPYRE_PE_DIGEST = 7,
	SPYRE_PE_CORE_MASK = 8,
	SPYRE_PE_PROGRAM = 9,		/* program table: range, unit, missing RETURN */
	SPYRE_PE_UNIT = 10,		/* directory: unknown unit, twice, out of order, wrong program */
	SPYRE_PE_INIT = 11,		/* register or symbol number */
	/* Instructions, checked before anything runs. */
	SPYRE_PE_OPCODE = 20,		/* unknown, or not of this unit */
	SPYRE_PE_FIELD = 21,		/* a field out of range or not 0 */
	SPYRE_PE_REGISTER = 22,
	SPYRE_PE_FIFO = 23,		/* this unit does not read or write that FIFO */
	SPYRE_PE_FORMAT = 24,
	SPYRE_PE_LOOP = 25,		/* block ends without a block, nesting deeper than 8, open at RETURN */
	SPYRE_PE_TAG = 26,		/* tag number, or a tag with two waiting units */
	SPYRE_PE_GROUP = 27,
	SPYRE_PE_CONST = 28,
	/* While running. */
	SPYRE_PE_LX_RANGE = 40,		/* LX or L0 address out of range */
	SPYRE_PE_ALIGN = 41,
	SPYRE_PE_TAG_OVERFLOW = 42,
	SPYRE_PE_TILE = 43,		/* MM on a tile never loaded, or of another format */
	SPYRE_PE_GROUP_MISMATCH = 44,	/* members of a multicast disagree on address or burst */
	SPYRE_PE_FIFO_LEFT = 45,	/* words left in a FIFO, or a tag not at 0, when all units returned */
	SPYRE_PE_CORE = 46,		/* STC to a core outside the job */
	SPYRE_PE_RACE = 47,		/* nothing orders two accesses to a word; only with the card property check=races */
	SPYRE_PE_RACE_SIZE = 48,	/* that check would need more memory than it takes; err_* say where it gave up */
};

/*
 * Response block and RAS record of a RACE: err_* name one access, stuck[0] the other one, with nstuck 1: core, unit and
 * pc, .waits holds enum spyre_race_place, .number which of the two write. rb_hmierr_addr is where, a multiple of 128:
 * a DMVA; of LX core << 24 | LX address; of L0 the address in that of err_core and the corelet of err_unit.
 */
enum spyre_race_place {
	SPYRE_RACE_MEMORY = 16,
	SPYRE_RACE_LX = 17,
	SPYRE_RACE_L0 = 18,
};
#define SPYRE_RACE_WRITES	0x1u	/* the access of err_* does */
#define SPYRE_RACE_OTHER_WRITES	0x2u	/* that of stuck[0] does */

#endif
