// SPDX-License-Identifier: MIT
/* Products of SENINT8 and SENINT4: sums, and sums scaled and converted, against plain C, bit by bit. */
#include "gen_env.h"

struct kind {
	enum spyre_format in, out;
	float scale;
	bool bias, relu;
};

static uint32_t wanted(const struct kind *q, int32_t sum)
{
	float f = (float)sum * q->scale;

	switch (q->out) {
	case SPYRE_IEEE_INT32:
		return (uint32_t)sum;
	case SPYRE_SENINT8:
		return (uint8_t)spyre_int32_to_int8(spyre_bits_to_int32(spyre_fp32_bits(f)));
	case SPYRE_SENINT4:
		return spyre_int32_to_int4(spyre_bits_to_int32(spyre_fp32_bits(f)));
	case SPYRE_IEEE_FP32:
		return spyre_fp32_bits(f);
	case SPYRE_IEEE_FP16:
		return spyre_fp32_to_fp16(f);
	case SPYRE_BFLOAT16:
		return spyre_fp32_to_bf16(f);
	default:
		return spyre_fp32_to_dl16(f);
	}
}

/* Bits of element (r, c). */
static uint32_t element(const uint8_t *t, enum spyre_format f, uint32_t m, uint32_t r, uint32_t c)
{
	uint32_t w = f == SPYRE_SENINT4 ? 256 : f == SPYRE_SENINT8 ? 128 : 64;
	size_t i = ((size_t)(c / w) * spyregen_rows(m) + r) * w + c % w;

	switch (f) {
	case SPYRE_SENINT4:
		return t[i / 2] >> i % 2 * 4 & 15;
	case SPYRE_SENINT8:
		return t[i];
	case SPYRE_IEEE_INT32:
	case SPYRE_IEEE_FP32:
		return ((const uint32_t *)t)[i];
	default:
		return ((const uint16_t *)t)[i];
	}
}

static int8_t *values(enum spyre_format f, size_t n)
{
	int8_t *v = malloc(n);
	size_t i;

	for (i = 0; i < n; i++)
		v[i] = f == SPYRE_SENINT4 ? (int8_t)(rng() % 16) - 8 : (int8_t)rng();
	return v;
}

static void product(const struct kind *q, uint32_t m, uint32_t n, uint32_t k, uint32_t batch,
		    uint32_t split_k)
{
	struct spyregen_matmul mm = { .m = m, .n = n, .k = k, .in = q->in, .out = q->out,
				      .bias = q->bias, .act = q->relu ? SPYREGEN_RELU : SPYREGEN_NONE,
				      .batch = batch, .split_k = split_k, .scale = q->scale };
	uint64_t ab = spyregen_bytes(q->in, m, k), bb = spyregen_weight_bytes(q->in, k, n);
	uint64_t cb = spyregen_bytes(q->out, m, n), vb = spyregen_bytes(SPYRE_IEEE_INT32, 1, n);
	uint64_t sb = spyregen_bytes(SPYRE_IEEE_INT32, m, n), sym[5];
	int8_t *a = values(q->in, (size_t)batch * m * k), *b = values(q->in, (size_t)batch * k * n);
	int32_t *v = malloc(n * 4), *c = malloc((size_t)m * n * 4);
	struct mem mem = mem_new((batch * (ab + bb + cb + sb) + vb + 5 * GUARD + 4095) / 4096 * 4096);
	bool scratch = q->out != SPYRE_IEEE_INT32;
	uint8_t *ha, *hb, *hc, *hv, *hs;
	struct spyreprog_job *job;
	unsigned int ns = 0, i;
	char err[200];
	uint32_t r, j;

	sym[ns++] = alloc(&mem, batch * ab, (void **)&ha);
	sym[ns++] = alloc(&mem, batch * bb, (void **)&hb);
	sym[ns++] = alloc(&mem, batch * cb, (void **)&hc);
	if (q->bias)
		sym[ns++] = alloc(&mem, vb, (void **)&hv);
	if (scratch)
		sym[ns++] = alloc(&mem, batch * sb, (void **)&hs);
	for (i = 0; i < n; i++)
		v[i] = (int32_t)(rng() % 20000) - 10000;
	if (q->bias)
		spyregen_pack_int(hv, SPYRE_IEEE_INT32, v, 1, n, n);
	for (i = 0; i < batch; i++) {
		spyregen_pack_int(ha + i * ab, q->in, a + (size_t)i * m * k, m, k, k);
		spyregen_pack_weights_int(hb + i * bb, q->in, b + (size_t)i * k * n, k, n, n);
	}
	memset(hc, 0x5a, batch * cb);
	job = spyregen_matmul(&mm, err);
	if (!job)
		fail_msg("%ux%ux%u: %s", m, n, k, err);
	run_on(&mem, job, sym, ns);
	check_guard(hc, batch * cb);
	if (scratch)
		check_guard(hs, batch * sb);
	for (i = 0; i < batch; i++) {
		spyregen_ref_matmul_int8(a + (size_t)i * m * k, b + (size_t)i * k * n, q->bias ? v : NULL,
					 q->relu, c, m, n, k);
		for (r = 0; r < m; r++) {
			for (j = 0; j < n; j++) {
				uint32_t want = wanted(q, c[(size_t)r * n + j]);
				uint32_t got = element(hc + i * cb, q->out, m, r, j);

				if (got != want)
					fail_msg("format %u to %u, %u of %ux%ux%u: [%u][%u] of %d is 0x%x, "
						 "expected 0x%x", q->in, q->out, i, m, n, k, r, j,
						 c[(size_t)r * n + j], got, want);
			}
		}
	}
	free(mem.data);
	free(a);
	free(b);
	free(v);
	free(c);
}

static const enum spyre_format outs[] = { SPYRE_IEEE_INT32, SPYRE_SENINT8, SPYRE_SENINT4,
					  SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16,
					  SPYRE_IEEE_FP32 };

static struct kind kind(enum spyre_format in, unsigned int out, float scale, unsigned int i)
{
	return (struct kind){ in, outs[out], out ? scale : 0, i & 1, i & 2 };
}

static void test_shapes(void **state)
{
	static const uint32_t shapes[][3] = {
		{ 1, 1, 1 }, { 3, 64, 255 }, { 64, 65, 256 }, { 65, 130, 257 }, { 129, 200, 300 },
		{ 40, 257, 700 },
	};
	unsigned int s, o, i = 0;
	struct kind q;

	(void)state;
	for (s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		for (o = 0; o < 7; o++, i++) {
			/* A power of two makes ties, others do not. */
			q = kind(SPYRE_SENINT4, o, i % 2 ? 0x1p-4f : 0.0123f, i);
			product(&q, shapes[s][0], shapes[s][1], shapes[s][2], 1, 0);
			q = kind(SPYRE_SENINT8, o, i % 2 ? 0x1p-10f : -0.0007f, i / 2);
			product(&q, shapes[s][0], shapes[s][1], shapes[s][2], 1, 0);
		}
	}
}

/* Batches, slices of k, sums that only just saturate and those that wrap. */
static void test_ways(void **state)
{
	struct kind q = kind(SPYRE_SENINT8, 1, 0x1p-8f, 1);
	unsigned int o;

	(void)state;
	product(&q, 33, 70, 130, 3, 0);
	q.scale = 1;
	product(&q, 8, 64, 1, 1, 0);
	q.scale = 3e38f;
	product(&q, 8, 64, 128, 1, 0);
	q = kind(SPYRE_SENINT4, 1, 0x1p-5f, 3);
	product(&q, 17, 130, 1024, 1, 4);
	product(&q, 128, 256, 3000, 2, 0);
	/* The product's load unit uses all of its registers. */
	for (o = 0; o < 7; o++) {
		q = kind(o & 1 ? SPYRE_SENINT4 : SPYRE_SENINT8, o, 0x1p-6f, 1);
		product(&q, 5, 200, 70, 2, 0);
		product(&q, 65, 130, 300, 3, 0);
		product(&q, 3, 130, 64, 40, 0);
	}
}

static void test_refuses(void **state)
{
	struct spyregen_matmul mm = { .m = 4, .n = 4, .k = 4, .in = SPYRE_SENINT8, .out = SPYRE_SENINT8 };
	char err[200] = "";

	(void)state;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "SENINT8 in, SENINT8 out: the scale must be finite"));
	mm.scale = NAN;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "finite"));
	mm.scale = 1;
	mm.out = SPYRE_IEEE_INT32;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "nothing to scale"));
	mm.out = SPYRE_SEN143_FP8;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "SENINT8 in, SEN143_FP8 out"));
	mm.in = SPYRE_SEN169_FP16;
	mm.out = SPYRE_SENINT8;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "SEN169_FP16 in, SENINT8 out"));
	mm.in = SPYRE_FORMATS;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "unknown in"));
	mm.in = SPYRE_SENINT4;
	mm.act = SPYREGEN_GELU;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "activation"));
	mm.act = SPYREGEN_NONE;
	mm.flags = SPYREGEN_TRANSPOSED_A;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "16-bit"));
	mm.flags = 0;
	mm.k = 0;
	assert_null(spyregen_matmul(&mm, err));
	assert_non_null(strstr(err, "at least 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_ways),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
