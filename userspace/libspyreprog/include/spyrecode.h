/* SPDX-License-Identifier: MIT */
/* Writing SpyreCode directories. What the files hold: spyrecode(5). */
#ifndef SPYRECODE_H
#define SPYRECODE_H

#include "spyreprog.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One 64-bit word of the symbol table: argument's value (a tensor's device address, or a number)
 * plus offset; with constant set, offset alone.
 */
struct spyreprog_symbol {
	const char *name;	/* or NULL */
	unsigned int argument;	/* of the launch, from 0 */
	bool constant;
	uint64_t offset;
};

/* How an argument is laid out on the card, for tools that move tensors. */
struct spyreprog_tensor {
	const char *name;
	unsigned int argument;
	bool output;
	bool weights;			/* layout of PT weights, else of tensors: spyregen.h */
	enum spyre_format format;
	uint64_t rows, cols;
	uint64_t bytes;			/* on the card */
};

struct spyreprog_meta {
	const struct spyreprog_symbol *symbols;
	size_t nsymbols;		/* as many as the container's */
	const struct spyreprog_tensor *tensors;
	size_t ntensors;
};

/*
 * spyreprog_assemble() that also hands over what Tensor lines say, in their order. The names are
 * malloc()ed, the caller's.
 */
int spyreprog_assemble_tensors(const char *text, size_t len, void **out, size_t *size,
			       char *names[SPYRE_JOB_SYMBOLS],
			       struct spyreprog_tensor tensors[SPYRE_JOB_SYMBOLS],
			       size_t *ntensors, struct spyreprog_err *err);

/* Makes dir if needed and writes init.bin and spyrecode.json in it. 0, or -1 with *err. */
int spyreprog_write_spyrecode(const char *dir, const void *container, size_t size,
			      const struct spyreprog_meta *meta, struct spyreprog_err *err);

#ifdef __cplusplus
}
#endif
#endif
