/* SPDX-License-Identifier: MIT */
/*
 * Job binaries: checks a container and decodes it into the private form that alone is executed and
 * timed. Nothing here knows memory, contexts or threads.
 */
#ifndef SPYRE_JOB_H
#define SPYRE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spyre/isa_table.h>

/* Units of one core: L3LU, L3SU, then seven of corelet 0 and seven of corelet 1. */
#define JOB_CORE_UNITS	16u
#define JOB_CORELET_UNITS 7u

static inline unsigned int job_unit_index(unsigned int kind, unsigned int corelet)
{
	return kind < SPYRE_UNIT_LXLU ? kind : kind + corelet * JOB_CORELET_UNITS;
}

static inline unsigned int job_unit_kind(unsigned int index)
{
	return index < 9 ? index : index - JOB_CORELET_UNITS;
}

static inline unsigned int job_unit_corelet(unsigned int index)
{
	return index >= 9;
}

/* A checked instruction. */
struct job_insn {
	uint8_t op, be;
	uint8_t a, b, c, d;
	uint16_t n;
	int32_t imm, imm2;
	/* MVLOOPCNT: instruction that ends the block, and how many outer blocks end there too. */
	uint32_t end;
	uint8_t outer;
	/* MVLOOPCNT: the block holds nothing but NOP and ADDIMM. */
	bool flat;
	/* PE, SFP: which of b, c, d the operation reads (bit 0 to 2). */
	uint8_t srcs;
	uint8_t cost;		/* enum isa_cost */
	uint8_t fifos;		/* PE, SFP: which of those are FIFOs */
	uint8_t ways;		/* PE, SFP: JOB_WAY_* */
};

/* Takes from no FIFO and puts into none. */
#define JOB_WAY_REGISTERS	1u
/* All FIFO operands are of one 16-bit format, whose words are the 64 lanes of a time, and different ones. */
#define JOB_WAY_STREAM		2u
/* Once, with FIFOs of whole words that are different ones and not the ring; a format fills one register. */
#define JOB_WAY_SHORT		4u

struct job_program {
	const struct job_insn *insns;
	uint32_t count;
	uint8_t unit;
	bool multicast;		/* has an L3_LDM */
	bool memory;		/* has any access to LPDDR5 */
	bool ring;		/* uses FIFO_RING */
	bool stores_cores;	/* has an L3_STC */
	bool mixed_sends;	/* SYNC_SENDs name different sets of cores, leaving own-core ones out */
	uint32_t far_sends;	/* cores named by a SYNC_SEND */
	uint16_t groups;	/* multicast groups it names */
	/* Registers whose start value can reach a loop count: all that modelled time depends on. */
	uint16_t timed_regs;
};

struct job_unit {
	uint8_t core;
	uint8_t index;		/* job_unit_index() */
	uint8_t ninits;
	const struct job_program *program;
	const struct spyre_job_init *inits;
};

/* All parts lie in one allocation; raw is the container as it was checked. */
struct job {
	uint8_t *raw;
	uint32_t size;
	uint32_t core_mask;
	uint32_t nprograms, nunits, ninits, ninsns, nconsts, nsymbols;
	uint64_t watchdog;
	uint8_t digest[32];
	uint32_t groups[SPYRE_JOB_GROUPS];
	struct job_program *programs;
	struct job_unit *units;
	struct job_insn *insns;
	struct spyre_job_init *inits;
	uint32_t (*consts)[SPYRE_LANES];
	/* Per core and unit, NULL: the unit does nothing. */
	const struct job_unit *unit[32][JOB_CORE_UNITS];
	/* Unit that waits for each tag of each core, 0xff: none. */
	uint8_t tag_waiter[32][SPYRE_TAGS];
	/* Bytes of all this, raw included. */
	size_t bytes;
	/* For the owner: most recently used first, and by digest; what it knows of the job's time. */
	struct job *prev, *next, *same_hash;
	struct timed *times;
	unsigned int ntimes;
};

struct job_error {
	enum spyre_prog_err code;
	uint16_t core;		/* 0xffff: not one core's */
	uint16_t unit;		/* enum spyre_unit | corelet << 8, 0xffff: none */
	uint32_t pc;		/* byte offset in the container; instruction index in the program for codes from 20 on */
};

/* Checks what must be known before the whole container is fetched. */
bool spyre_job_check_header(const struct spyre_job_header *h, struct job_error *err);

/*
 * Checks and decodes size bytes. Takes ownership of raw (malloc) when it succeeds. NULL with *err set, or
 * with err->code SPYRE_PE_NONE when memory ran out.
 */
struct job *spyre_job_decode(uint8_t *raw, size_t size, struct job_error *err);
void spyre_job_free(struct job *job);

#endif
