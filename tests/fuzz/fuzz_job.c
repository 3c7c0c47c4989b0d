// SPDX-License-Identifier: MIT
/*
 * libFuzzer on the loader: any bytes as a container. The last byte says what is done with them: bit
 * 0: the digest is made right, else few inputs get beyond it; bit 1: as a launch that runs, under a
 * watchdog of few cycles.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "test_soc_env.h"

#define WATCHDOG 20000u
#define SEGMENT_BYTES (1u << 20)

static struct env env;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void setup(void)
{
	struct spyre_soc_config cfg = {
		.threads = 1,
		.cores = 0xffffffffu,
		.core_hz = SPYRE_CORE_HZ,
		.soc_hz = SPYRE_SOC_HZ,
		.watchdog = WATCHDOG,
	};
	unsigned int s;

	env_init(&env, 1);
	spyre_soc_free(env.soc);
	env.soc = spyre_soc_new(&cfg);
	for (s = 0; s < 3; s++)
		env_map(&env, s, SEGMENT_BYTES);
}

static void decode(uint8_t *raw, size_t size)
{
	struct job_error err;
	struct job *job = spyre_job_decode(raw, size, &err);

	/* Every refusal has a reason. */
	if (job)
		spyre_job_free(job);
	else if (err.code == SPYRE_PE_NONE)
		abort();
	else
		free(raw);
}

static void launch(const uint8_t *raw, size_t size)
{
	static const uint64_t symbols[SPYRE_JOB_SYMBOLS];
	const struct spyre_job_header *h = (const void *)raw;
	uint32_t n = h->nsymbols;

	env_load(&env, raw, size);
	env_run(&env, symbols, n <= SPYRE_JOB_SYMBOLS ? n : 0);
	if (env.rb.status == SPYRE_ERR_INTERNAL)
		abort();
	/* Decoded programs would fill the memory. */
	spyre_soc_reset(env.soc, 0xffffffffu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t how, *raw;

	if (!env.soc)
		setup();
	/* The card has read the header before it asks for a decoding. */
	if (size < sizeof(struct spyre_job_header) + 1)
		return -1;
	how = data[--size];
	raw = malloc(size);
	if (!raw)
		return -1;
	memcpy(raw, data, size);
	if (how & 1)
		spyreprog_seal(raw, size);
	if (how & 2) {
		launch(raw, size);
		free(raw);
	} else {
		decode(raw, size);
	}
	return 0;
}
