// SPDX-License-Identifier: MIT
/* Containers to arrays and back. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../qemu-device/model/sha256.h"
#include "image.h"

#define STICKS(bytes) (((uint64_t)(bytes) + SPYRE_STICK - 1) / SPYRE_STICK * SPYRE_STICK)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "containers are built on little-endian hosts");

struct section {
	const char *name;
	uint32_t off;
	uint64_t bytes;
	const void *src;
};

#define NSECTIONS 6

static void sections(const struct image *im, struct section s[NSECTIONS])
{
	s[0] = (struct section){ "programs", im->programs_off,
		(uint64_t)im->nprograms * sizeof(*im->programs), im->programs };
	s[1] = (struct section){ "units", im->units_off,
		(uint64_t)im->nunits * sizeof(*im->units), im->units };
	s[2] = (struct section){ "inits", im->inits_off,
		(uint64_t)im->ninits * sizeof(*im->inits), im->inits };
	s[3] = (struct section){ "text", im->text_off,
		(uint64_t)im->ninsns * sizeof(*im->insns), im->insns };
	s[4] = (struct section){ "consts", im->consts_off,
		(uint64_t)im->nconsts * sizeof(*im->consts), im->consts };
	s[5] = (struct section){ "groups", im->groups_off,
		im->has_groups ? sizeof(im->groups) : 0, im->groups };
}

static int __attribute__((format(printf, 2, 3)))
bad(struct spyreprog_err *err, const char *fmt, ...)
{
	va_list ap;

	err->line = 0;
	err->column = 0;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

void image_layout(struct image *im)
{
	struct section s[NSECTIONS];
	uint32_t *off[NSECTIONS] = {
		&im->programs_off, &im->units_off, &im->inits_off,
		&im->text_off, &im->consts_off, &im->groups_off,
	};
	uint64_t at = sizeof(struct spyre_job_header);
	unsigned int i;

	sections(im, s);
	for (i = 0; i < NSECTIONS; i++) {
		*off[i] = s[i].bytes ? (uint32_t)at : 0;
		at += STICKS(s[i].bytes);
		if (at > UINT32_MAX)
			at = UINT32_MAX;
	}
	im->size = (uint32_t)at;
}

/* Sections lie on sticks, inside the container, behind the header and apart from each other. */
static int check_sections(const struct section s[NSECTIONS], uint64_t size,
			  struct spyreprog_err *err)
{
	unsigned int i, j;

	for (i = 0; i < NSECTIONS; i++) {
		if (!s[i].bytes) {
			if (s[i].off)
				return bad(err,
					   "section %s is empty but has offset %u; it must be 0",
					   s[i].name, s[i].off);
			continue;
		}
		if (s[i].off % SPYRE_STICK || s[i].off < sizeof(struct spyre_job_header) ||
		    s[i].off + s[i].bytes > size)
			return bad(err,
				   "section %s (offset %u, %llu bytes) must start on a stick "
				   "behind the header and end within the container's %llu bytes",
				   s[i].name, s[i].off, (unsigned long long)s[i].bytes,
				   (unsigned long long)size);
		for (j = 0; j < i; j++)
			if (s[j].bytes && s[i].off < s[j].off + s[j].bytes &&
			    s[j].off < s[i].off + s[i].bytes)
				return bad(err, "sections %s and %s overlap", s[j].name, s[i].name);
	}
	return 0;
}

static void digest_of(const void *container, size_t size, uint8_t digest[32])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_update(&s, (const uint8_t *)container + sizeof(struct spyre_job_header),
		      size - sizeof(struct spyre_job_header));
	sha256_final(&s, digest);
}

static bool digest_ok(const void *container, size_t size)
{
	uint8_t digest[32];

	digest_of(container, size, digest);
	return !memcmp(digest, ((const struct spyre_job_header *)container)->digest,
		       sizeof(digest));
}

void spyreprog_seal(void *container, size_t size)
{
	digest_of(container, size, ((struct spyre_job_header *)container)->digest);
}

int image_pack(const struct image *im, void **out, size_t *size, struct spyreprog_err *err)
{
	struct section s[NSECTIONS];
	struct spyre_job_header *h;
	unsigned int i;

	sections(im, s);
	if (im->size < sizeof(*h) || im->size % SPYRE_STICK || im->size > SPYRE_JOB_MAX)
		return bad(err,
			   "the container would take %u bytes; it must be a multiple of %u, from "
			   "%zu to %u",
			   im->size, SPYRE_STICK, sizeof(*h), SPYRE_JOB_MAX);
	if (check_sections(s, im->size, err))
		return -1;
	h = calloc(1, im->size);
	if (!h)
		return bad(err, "out of memory");
	h->magic = SPYRE_JOB_MAGIC;
	h->major = im->major;
	h->minor = im->minor;
	h->size = im->size;
	h->nprograms = im->nprograms;
	h->nunits = im->nunits;
	h->ninits = im->ninits;
	h->ninsns = im->ninsns;
	h->nconsts = im->nconsts;
	h->nsymbols = im->nsymbols;
	h->programs_off = im->programs_off;
	h->units_off = im->units_off;
	h->inits_off = im->inits_off;
	h->text_off = im->text_off;
	h->consts_off = im->consts_off;
	h->groups_off = im->groups_off;
	h->watchdog = im->watchdog;
	for (i = 0; i < im->nunits; i++)
		if (im->units[i].core < 32)
			h->core_mask |= 1u << im->units[i].core;
	for (i = 0; i < NSECTIONS; i++)
		if (s[i].bytes)
			memcpy((uint8_t *)h + s[i].off, s[i].src, s[i].bytes);
	spyreprog_seal(h, im->size);
	*out = h;
	*size = im->size;
	return 0;
}

static void *copy(const void *data, uint32_t off, uint64_t bytes)
{
	void *p = calloc(1, bytes + 1);

	if (p && bytes)
		memcpy(p, (const uint8_t *)data + off, bytes);
	return p;
}

int image_unpack(struct image *im, const void *data, size_t size, struct spyreprog_err *err)
{
	struct spyre_job_header h;
	struct section s[NSECTIONS];
	void *again = NULL;
	size_t again_size;
	int ret = -1;

	memset(im, 0, sizeof(*im));
	if (size < sizeof(h))
		return bad(err,
			   "%zu bytes are too short for a job binary; its header alone takes %zu",
			   size, sizeof(h));
	memcpy(&h, data, sizeof(h));
	if (h.magic != SPYRE_JOB_MAGIC)
		return bad(err, "not a job binary: magic is 0x%08x, not 0x%08x (\"SPJB\")", h.magic,
			   SPYRE_JOB_MAGIC);
	if (h.major != SPYRE_JOB_MAJOR)
		return bad(err, "container version %u.%u; this tool knows version %u", h.major,
			   h.minor, SPYRE_JOB_MAJOR);
	if (h.size < sizeof(h) || h.size % SPYRE_STICK || h.size > SPYRE_JOB_MAX || h.size > size)
		return bad(err,
			   "size field says %u, the file has %zu bytes; it must be a multiple of "
			   "%u, at most %u, and all there",
			   h.size, size, SPYRE_STICK, SPYRE_JOB_MAX);
	if (h.nconsts > SPYRE_JOB_CONSTS || h.nsymbols > SPYRE_JOB_SYMBOLS)
		return bad(err, "%u constants and %u symbols; at most %u and %u", h.nconsts,
			   h.nsymbols, SPYRE_JOB_CONSTS, SPYRE_JOB_SYMBOLS);
	im->major = h.major;
	im->minor = h.minor;
	im->nsymbols = h.nsymbols;
	im->watchdog = h.watchdog;
	im->has_groups = h.groups_off != 0;
	im->nprograms = h.nprograms;
	im->nunits = h.nunits;
	im->ninits = h.ninits;
	im->ninsns = h.ninsns;
	im->nconsts = h.nconsts;
	im->programs_off = h.programs_off;
	im->units_off = h.units_off;
	im->inits_off = h.inits_off;
	im->text_off = h.text_off;
	im->consts_off = h.consts_off;
	im->groups_off = h.groups_off;
	im->size = h.size;
	sections(im, s);
	if (check_sections(s, h.size, err))
		return -1;
	im->programs = copy(data, s[0].off, s[0].bytes);
	im->units = copy(data, s[1].off, s[1].bytes);
	im->inits = copy(data, s[2].off, s[2].bytes);
	im->insns = copy(data, s[3].off, s[3].bytes);
	im->consts = copy(data, s[4].off, s[4].bytes);
	if (!im->programs || !im->units || !im->inits || !im->insns || !im->consts) {
		bad(err, "out of memory");
		goto fail;
	}
	if (im->has_groups)
		memcpy(im->groups, (const uint8_t *)data + h.groups_off, sizeof(im->groups));
	/* What the arrays do not hold must be what packing puts there. */
	if (image_pack(im, &again, &again_size, err))
		goto fail;
	if (!digest_ok(data, h.size)) {
		bad(err, "the digest does not match the content: the file is damaged");
		goto fail;
	}
	memcpy(((struct spyre_job_header *)again)->digest, h.digest, sizeof(h.digest));
	if (memcmp(again, data, h.size)) {
		size_t i = 0;

		while (((uint8_t *)again)[i] == ((const uint8_t *)data)[i])
			i++;
		bad(err, "byte %zu is 0x%02x, must be 0x%02x (%s)", i, ((const uint8_t *)data)[i],
		    ((uint8_t *)again)[i],
		    i < sizeof(h) ? "core mask, flags or a reserved field" : "no section uses it");
		goto fail;
	}
	ret = 0;
fail:
	free(again);
	if (ret)
		image_free(im);
	return ret;
}

void image_free(struct image *im)
{
	free(im->programs);
	free(im->units);
	free(im->inits);
	free(im->insns);
	free(im->consts);
	memset(im, 0, sizeof(*im));
}
