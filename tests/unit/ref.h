/* SPDX-License-Identifier: MIT */
/*
 * A second, slow interpreter of job binaries and of their modelled time, written from the manual
 * and include/spyre/isa.h alone: what it and the card's model agree on is not one author's mistake.
 * It trusts the container (programs come from ref_gen.c or a test) and says so when it meets what
 * it does not know.
 */
#ifndef REF_H
#define REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spyre/cb.h>
#include <spyre/isa.h>

#define REF_CORES 32u
#define REF_UNITS 16u /* of a core: L3LU, L3SU, then seven of each corelet */
#define REF_TILES 8u
#define REF_ROWS 128u

struct ref_insn {
	uint8_t op, be, a, b, c, d;
	uint16_t n;
	int32_t imm, imm2;
};

/*
 * How often instructions were executed: by unit, by what their operands were, by FIFO. Operands are
 * b, c, d and a: a vector instruction's format of a FIFO, or one of REF_SEEN_V and so on; for PT
 * operand b is its format, c that of products that were summed in DL16.
 */
#define REF_SEEN_V     0x40u
#define REF_SEEN_IMM   0x41u
#define REF_SEEN_CONST 0x42u
struct ref_seen {
	uint64_t unit[0x80][SPYRE_UNITS];
	uint64_t operand[0x80][4][0x100];
	uint64_t written[SPYRE_FIFOS], read[SPYRE_FIFOS];
	uint64_t alike[0x80][SPYRE_FORMATS]; /* from FIFOs to a FIFO, all of this format */
};

/* A unit's program and the values its registers start with. */
struct ref_unit {
	const struct ref_insn *text; /* NULL: the unit does nothing */
	uint64_t reg[SPYRE_REGS];
	uint8_t kind, corelet;
};

struct ref_job {
	uint32_t cores;
	uint64_t watchdog;
	uint32_t groups[SPYRE_JOB_GROUPS];
	uint32_t consts[SPYRE_JOB_CONSTS][SPYRE_LANES];
	struct ref_unit unit[REF_CORES][REF_UNITS];
	struct ref_insn *text;
	bool accumulate_dl16; /* the card's property; decoded as false */
	struct ref_seen *seen; /* counted into by ref_run(); decoded as NULL */
};

/* Where a unit is in its program. */
struct ref_seq {
	const struct ref_insn *text;
	uint32_t pc;
	uint64_t reg[SPYRE_REGS];
	unsigned int depth;
	struct {
		uint32_t first;
		uint64_t left;
	} block[SPYRE_LOOPS];
	uint64_t retired; /* instructions completed */
};

/* Decodes a container with the symbols of its launch. Free with ref_job_free(). */
struct ref_job *ref_job_decode(const uint8_t *container, size_t size, const uint64_t *symbols);
void ref_job_free(struct ref_job *job);
/* The core whose SFP reads what core's writes into the ring. */
unsigned int ref_ring_to(const struct ref_job *job, unsigned int core, unsigned int corelet);

void ref_seq_start(struct ref_seq *s, const struct ref_unit *u);
static inline const struct ref_insn *ref_seq_insn(const struct ref_seq *s)
{
	return &s->text[s->pc];
}
/* Completes the instruction: registers, loops, next one. */
void ref_seq_retire(struct ref_seq *s);
static inline bool ref_seq_done(const struct ref_seq *s)
{
	return s->text[s->pc].op == SPYRE_OP_RETURN;
}

/* Words that n times of a vector instruction's operand k (0 to 2: b, c, d; 3: a) move, 0: not a
 * FIFO. */
unsigned int ref_operand_words(const struct ref_insn *in, unsigned int k, unsigned int *fifo);
/* Sources of a vector operation. */
unsigned int ref_sources(unsigned int op);

struct ref_result {
	enum spyre_status status;
	enum spyre_prog_err code;
	int core, unit; /* of the error; unit: kind | corelet << 8 */
	uint32_t pc;
	uint64_t instructions; /* executed, all units */
	uint64_t words;	       /* through FIFOs */
};

struct ref_mem {
	uint8_t *seg[SPYRE_SEGMENTS];
	uint64_t len[SPYRE_SEGMENTS];
};

/* Moves and computes. seed picks the order in which units advance: no result may depend on it. */
void ref_run(const struct ref_job *job, struct ref_mem *mem, uint64_t seed, struct ref_result *res);

/* What a unit does until its RETURN is done, in ticks of 1/4096 core cycle. */
struct ref_work {
	uint64_t busy, starved, blocked;
	uint64_t bytes, insns;
};

#define REF_PROCS (REF_UNITS + 2) /* of a core: its units, then the load ports of its PTs */

struct ref_time {
	uint64_t cycles, rd_bytes, wr_bytes, pt_macs;
	struct ref_work work[REF_CORES][REF_PROCS];
	/* Words: into a core, out of it, from it round the ring each way; through the HMI's ports.
	 */
	uint64_t in[REF_CORES], out[REF_CORES], ring[REF_CORES][2], port[2];
	enum spyre_status status; /* OK, DEADLOCK or PROGRAM */
	enum spyre_prog_err code; /* of the last error */
	unsigned int errors;	  /* units that failed */
};

/* Modelled time of a job, whatever its data and addresses are; true when it comes to its end. */
bool ref_time(const struct ref_job *job, struct ref_time *t);

#endif
