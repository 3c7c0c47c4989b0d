/* SPDX-License-Identifier: MIT */
/* A container as plain arrays, with where each section lies. Internal. */
#ifndef SPYREPROG_IMAGE_H
#define SPYREPROG_IMAGE_H

#include "spyreprog.h"

struct image {
	uint16_t major, minor;
	uint32_t nsymbols;
	uint64_t watchdog;
	bool has_groups;
	uint32_t groups[SPYRE_JOB_GROUPS];
	uint32_t nprograms, nunits, ninits, ninsns, nconsts;
	struct spyre_job_program *programs;
	struct spyre_job_unit *units;
	struct spyre_job_init *inits;
	struct spyre_insn *insns;
	uint32_t (*consts)[SPYRE_LANES];
	/* Byte offsets, 0 for an empty section, and the size of the whole. */
	uint32_t programs_off, units_off, inits_off, text_off, consts_off, groups_off, size;
};

/* Places the sections in the order of the header, without gaps but for stick alignment. */
void image_layout(struct image *im);
/* Bytes of an image, with core mask and digest. 0, or -1 when a section does not fit its place. */
int image_pack(const struct image *im, void **out, size_t *size, struct spyreprog_err *err);
/*
 * The reverse. Refuses what cannot be represented: bad magic or size, sections outside the
 * container or over each other, bytes set where none belong. Does not judge instructions.
 */
int image_unpack(struct image *im, const void *data, size_t size, struct spyreprog_err *err);
void image_free(struct image *im);

#endif
