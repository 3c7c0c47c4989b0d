// SPDX-License-Identifier: MIT
/*
 * A fuzz target without libFuzzer: replay [FILE...] runs these inputs; replay --random N [SEED] as many random
 * ones; with nothing, the inputs that make check runs. TAP.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK_INPUTS	120
#define SIZE_MAX_INPUT	2048

static uint64_t state;

static uint8_t rnd(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint8_t)(state >> 56);
}

static void random_inputs(unsigned long n, uint64_t seed)
{
	static uint8_t data[SIZE_MAX_INPUT];
	unsigned long i;
	size_t size, j;

	for (i = 0; i < n; i++) {
		/* Each input by itself: a failure is repeated by its own seed. */
		state = seed + i;
		for (j = 0; j < 8; j++)
			rnd();
		size = 1 + (rnd() | (size_t)rnd() << 8) % SIZE_MAX_INPUT;
		for (j = 0; j < size; j++)
			data[j] = rnd();
		fprintf(stderr, "# repeat: --random 1 %llu\n", (unsigned long long)(seed + i));
		LLVMFuzzerTestOneInput(data, size);
	}
}

static int file_input(const char *name)
{
	static uint8_t data[1 << 20];
	FILE *f = fopen(name, "rb");
	size_t size;

	if (!f) {
		perror(name);
		return 1;
	}
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	fprintf(stderr, "# repeat: %s\n", name);
	LLVMFuzzerTestOneInput(data, size);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long n = CHECK_INPUTS;
	uint64_t seed = 1;
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..1\n");
	if (argc > 1 && strcmp(argv[1], "--random")) {
		for (i = 1; i < argc; i++)
			if (file_input(argv[i]))
				return 1;
	} else {
		if (argc > 2)
			n = strtoul(argv[2], NULL, 0);
		if (argc > 3)
			seed = strtoull(argv[3], NULL, 0);
		random_inputs(n, seed);
	}
	printf("ok 1 - no finding\n");
	return 0;
}
