/* SPDX-License-Identifier: MIT */
/*
 * Random programs, valid by construction. Everything happens in events of one global order: a
 * transfer's ends both come to it in that order, so the event with the lowest number can always go
 * on, and loops repeat whole events on all units they concern. Accesses to LX, L0 and memory are
 * ordered by tags as vector clocks show the need. Hence a program always ends and races with
 * nothing.
 */
#ifndef REF_GEN_H
#define REF_GEN_H

#include "ref.h"

/* Segments: read only input; scratch; from REF_OUT_AT on what the cores held at the end. */
#define REF_SEG_IN 0u
#define REF_SEG_RW 1u
#define REF_SEG_OUT 2u
#define REF_IN_BYTES (256u << 10)
#define REF_RW_BYTES (64u * 4096u)
#define REF_OUT_AT 65536u

/* Words at the start of REF_SEG_OUT, of format fmt: results of op, compared within its bound. */
struct ref_special {
	uint32_t offset, bytes;
	uint8_t op, fmt;
};

struct ref_program {
	void *container;
	size_t size;
	uint64_t symbols[8];
	uint32_t nsymbols;
	uint64_t rw_bytes, out_bytes;
	uint64_t out_stride; /* of a clone's part of REF_SEG_OUT */
	unsigned int clones; /* at least 1 */
	uint32_t special_bytes;
	struct ref_special special[64];
	unsigned int nspecials;
};

/*
 * cores: each with programs of its own; or, if clones is not 0, so many that share one core's
 * programs. events: how many are tried at the outermost level; a program of fewer is a beginning of
 * one with more, which is how a failure is made small. words: about what all loops together may
 * move.
 */
void ref_generate(struct ref_program *p, uint64_t seed, unsigned int cores, unsigned int clones,
		  unsigned int events, uint64_t words);
void ref_program_free(struct ref_program *p);

#endif
