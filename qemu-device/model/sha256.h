/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4) for the boot ROM and the job-binary loader. */
#ifndef SPYRE_MODEL_SHA256_H
#define SPYRE_MODEL_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
	uint32_t h[8];
	uint64_t bytes;
	uint8_t buf[64];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, size_t len);
void sha256_final(struct sha256 *s, uint8_t digest[32]);

#endif
