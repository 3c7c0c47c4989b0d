// SPDX-License-Identifier: MIT
#include <spyregen.h>
#include <spyrert.h>
#include <stdio.h>
#include <stdlib.h>

#define N 4096
#define CHECK(call) do { if ((call) != SPYRERT_SUCCESS) { \
	fprintf(stderr, "%s\n", spyrert_last_error()); exit(1); } } while (0)

int main(void)
{
	struct spyregen_elementwise add = { .op = SPYREGEN_ADD, .m = 64, .n = 64,
		.in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16 };
	struct spyrert *rt; struct spyrert_device *card; struct spyrert_program *prog;
	uint64_t bytes = spyregen_bytes(SPYRE_SEN169_FP16, 64, 64), arg[3];
	float x[N], y[N], z[N];
	char err[200];
	void *bin, *stage = malloc(bytes);
	size_t size;

	for (int i = 0; i < N; i++) { x[i] = i % 64; y[i] = 0.5f * (i / 64); }

	struct spyreprog_job *job = spyregen_elementwise(&add, err);
	if (!job || spyreprog_job_finish(job, &bin, &size)) return 1;

	CHECK(spyrert_init(NULL, &rt));
	CHECK(spyrert_device_open(rt, 0, &card));
	CHECK(spyrert_program_load_binary(card, bin, size, &prog));
	for (int i = 0; i < 3; i++) CHECK(spyrert_malloc(card, bytes, &arg[i]));
	spyregen_pack(stage, SPYRE_SEN169_FP16, x, 64, 64, 64);
	CHECK(spyrert_memcpy_h2d(card, arg[0], stage, bytes));
	spyregen_pack(stage, SPYRE_SEN169_FP16, y, 64, 64, 64);
	CHECK(spyrert_memcpy_h2d(card, arg[1], stage, bytes));
	CHECK(spyrert_launch(spyrert_default_stream(card), prog, arg, 3, 0, 0));
	CHECK(spyrert_device_synchronize(card, SPYRERT_FOREVER));
	CHECK(spyrert_memcpy_d2h(card, stage, arg[2], bytes));
	spyregen_unpack(z, 64, stage, SPYRE_SEN169_FP16, 64, 64);
	printf("%g + %g = %g\n", x[N - 1], y[N - 1], z[N - 1]);
	return z[N - 1] != x[N - 1] + y[N - 1];
}
