// SPDX-License-Identifier: MIT
/* corpus FOLDER COUNT: small valid containers to start fuzz_job from. */
#include <stdio.h>
#include <stdlib.h>

#include "ref_gen.h"

int main(int argc, char **argv)
{
	unsigned long i, count = argc == 3 ? strtoul(argv[2], NULL, 0) : 0;
	char name[4096];

	if (!count) {
		fprintf(stderr, "usage: corpus FOLDER COUNT\n");
		return 1;
	}
	for (i = 1; i <= count; i++) {
		struct ref_program p;
		FILE *f;

		ref_generate(&p, i, 1 + i % 2, i % 5 == 4 ? 3 : 0, 1 + (unsigned int)(i % 12), 500);
		snprintf(name, sizeof(name), "%s/%lu", argv[1], i);
		f = fopen(name, "wb");
		if (!f || fwrite(p.container, 1, p.size, f) != p.size ||
		    fputc((int)(i % 4) | 1, f) == EOF || fclose(f)) {
			perror(name);
			return 1;
		}
		ref_program_free(&p);
	}
	return 0;
}
