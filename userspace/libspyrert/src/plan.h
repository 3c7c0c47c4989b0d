/* SPDX-License-Identifier: MIT */
/* The SpyreCode reader: spyrecode.json to a plan. Knows nothing of devices. */
#ifndef RT_PLAN_H
#define RT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spyrert.h"

/* A copy of a file into the job's allocation. */
struct rt_init {
	uint64_t offset;	/* from the start of the allocation */
	uint64_t bytes;		/* transferred: at most the file's size rounded up to a stick */
	uint8_t *data;		/* .bytes, zero padded */
};

/* One word of a symbol table: argument's value plus offset. */
struct rt_symbol {
	uint64_t offset;
	int32_t argument;	/* -1: offset alone */
};

enum rt_step_kind { RT_STEP_HOST, RT_STEP_H2D, RT_STEP_D2H, RT_STEP_COMPUTE };

struct rt_step {
	enum rt_step_kind kind;
	uint64_t offset; /* H2D, D2H, COMPUTE: device address from the start of the allocation */
	uint64_t bytes;		/* H2D, D2H; HOST: size of the buffer */
	uint32_t buffer;	/* HOST: output, H2D: source, D2H: destination */
	/* HOST */
	struct rt_symbol *symbols;
	uint32_t nsymbols;
};

struct rt_plan {
	uint64_t bytes;		/* of the allocation */
	struct rt_init *inits;
	size_t ninits;
	struct rt_step *steps;
	size_t nsteps;
	uint64_t *buffers;	/* sizes of the host buffers */
	uint32_t nbuffers;
	uint32_t arguments;	/* a launch takes; the host computes' */
};

/* Gives the content of a file that the plan names, to be freed with free(). */
typedef enum spyrert_status (*rt_file_fn)(void *opaque, const char *name, uint8_t **data,
					  size_t *bytes);

enum spyrert_status rt_plan_parse(const char *json, size_t bytes, rt_file_fn file, void *opaque,
				  struct rt_plan *plan);
void rt_plan_free(struct rt_plan *plan);

#endif
