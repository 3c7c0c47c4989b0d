// SPDX-License-Identifier: MIT
/*
 * The same bits everywhere: PT's kernels of every format against the definition, each width by itself; vector
 * operations from words to words against the way through lanes; then one job, with every format and every vector operation on eight cores, on every width and with 1 to 8 threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include <spyre/isa_table.h>
#include <spyre/num.h>

#include "pt.h"
#include "soc_int.h"
#include "test_soc_env.h"
#include "vec.h"

#define CORES	8u
#define IN	256u		/* words that a core loads */
#define ROUNDS	4u
#define F(f)	SPYRE_OPND_FIFO(SPYRE_FIFO_##f)

static uint64_t rng = 3;

static uint32_t rnd(void)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 32);
}

/*
 * Words first, first + 1, ... of what a core loads: bytes that are numbers in every format, but from word 96 on one
 * word in 16 holds whatever it holds.
 */
static void fill(uint8_t *p, size_t first, size_t words)
{
	size_t i, w;

	for (i = 0; i < words * SPYRE_STICK; i++) {
		p[i] = (uint8_t)rnd();
		w = (first + i / SPYRE_STICK) % IN;
		if ((w < 96 || w % 16 != 9) && (p[i] & 0x7c) == 0x7c)
			p[i] &= 0xbf;
	}
}

static void print_skipped(void)
{
	static const char *const names[] = { "plain", "avx2", "avx512", "avx512-vnni" };
	const struct pt_ops *const *o;
	const struct vec_ops *const *v;
	unsigned int i;

	for (v = spyre_vec_ops_all(); *v; v++)
		print_message("PE and SFP: %s\n", (*v)->name);
	for (i = 0; i < 4; i++) {
		for (o = spyre_pt_ops_all(); *o && strcmp((*o)->name, names[i]); o++)
			;
		print_message("PT: %s%s\n", names[i], *o ? "" : ": skipped, not supported by this host");
	}
}

/* --- PT's kernels --------------------------------------------------------------------------- */

static const enum spyre_format pt_formats[] = {
	SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16, SPYRE_SENINT8, SPYRE_SEN143_FP8, SPYRE_SEN152_FP8,
	SPYRE_SENINT4,
};
#define PT_FORMATS (sizeof(pt_formats) / sizeof(pt_formats[0]))

/* Element i of a run of elements: fp32 bits, or int32. */
static uint32_t element(const uint8_t *p, size_t i, enum spyre_format fmt)
{
	uint16_t h;

	switch (fmt) {
	case SPYRE_SENINT8:
		return (uint32_t)(int8_t)p[i];
	case SPYRE_SENINT4:
		return (uint32_t)spyre_int4_to_int32(p[i / 2] >> (i % 2 * 4));
	case SPYRE_SEN143_FP8:
		return spyre_fp8_143_to_bits(p[i]);
	case SPYRE_SEN152_FP8:
		return spyre_fp8_152_to_bits(p[i]);
	default:
		memcpy(&h, p + 2 * i, 2);
		return fmt == SPYRE_SEN169_FP16 ? spyre_dl16_to_bits(h) : fmt == SPYRE_IEEE_FP16 ? spyre_fp16_to_bits(h) :
		       spyre_bf16_to_bits(h);
	}
}

static uint32_t canon(float f)
{
	return isnan(f) ? SPYRE_FP32_NAN : spyre_fp32_bits(f);
}

/* Row of word a, column n of the tile. */
static uint32_t dot(const uint8_t *a, const uint8_t *w, unsigned int n, enum spyre_format fmt, uint32_t row, bool onto,
		    bool dl16)
{
	unsigned int k, ks = isa_formats[fmt].lanes;
	uint32_t sum = onto ? row : 0;
	float f = spyre_fp32_from_bits(sum), chunk = 0;

	for (k = 0; k < ks; k++) {
		uint32_t x = element(a, k, fmt), y = element(w, k * 64 + n, fmt);

		if (isa_formats[fmt].integer) {
			sum += x * y;
		} else if (dl16) {
			chunk = fmaf(spyre_fp32_from_bits(x), spyre_fp32_from_bits(y), chunk);
			chunk = spyre_dl16_to_fp32(spyre_fp32_to_dl16(chunk));
			if (k % 64 == 63) {
				f = onto || k > 63 ? f + chunk : chunk;
				chunk = 0;
			}
		} else {
			f = fmaf(spyre_fp32_from_bits(x), spyre_fp32_from_bits(y), f);
		}
	}
	return isa_formats[fmt].integer ? sum : canon(f);
}

static void test_kernels(void **state)
{
	static const unsigned int counts[] = { 1, 2, 3, 6, 7, 13 };
	static uint8_t a[13 * 128], w[64 * 128];
	static uint32_t rows[14 * 64] __attribute__((aligned(64))), was[14 * 64], want[13 * 64];
	static struct pt_tile tile;
	const struct pt_ops *const *o;
	unsigned int f, c, i, mode, numbers;

	(void)state;
	print_skipped();
	for (f = 0; f < PT_FORMATS; f++) {
		enum spyre_format fmt = pt_formats[f];

		numbers = 0;
		for (mode = 0; mode < 4; mode++) {
			bool onto = mode & 1, dl16 = mode & 2;

			if (dl16 && isa_formats[fmt].integer)
				continue;
			fill(a, 96, 13);
			fill(w, 0, 64);
			for (i = 0; i < 14 * 64; i++)
				was[i] = isa_formats[fmt].integer ? rnd() : spyre_fp32_bits((float)(int32_t)rnd() / 65536);
			for (i = 0; i < 13 * 64; i++) {
				want[i] = dot(a + i / 64 * 128, w, i % 64, fmt, was[i], onto, dl16);
				numbers += want[i] != SPYRE_FP32_NAN;
			}
			for (o = spyre_pt_ops_all(); *o; o++) {
				assert_true((*o)->formats & 1u << fmt);
				(*o)->load(&tile, w, fmt);
				for (c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
					memcpy(rows, was, sizeof(rows));
					(dl16 ? (*o)->mm_dl16 : (*o)->mm)(rows, a, counts[c], &tile, fmt, onto);
					for (i = 0; i < counts[c] * 64; i++) {
						uint32_t got = rows[i];

						if (!isa_formats[fmt].integer)
							got = canon(spyre_fp32_from_bits(got));
						if (got != want[i])
							fail_msg("%s %s, %s%s: row %u column %u is %08x, expected %08x", (*o)->name,
								 isa_formats[fmt].name, onto ? "onto" : "into", dl16 ? ", DL16" : "",
								 i / 64, i % 64, got, want[i]);
					}
					assert_memory_equal(rows + i, was + i, 64 * 4);
				}
			}
		}
		/* NaN must not be all there is to compare. */
		assert_true(numbers > 13 * 64);
	}
}

/* --- From words to words -------------------------------------------------------------------- */

#define STREAM_WORDS 1024u	/* all codes of a 16-bit format */

static void test_streams(void **state)
{
	static const enum spyre_format formats[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16 };
	/* Lanes that no word widens to: subnormals, signalling NaNs, numbers between two codes, too large and too small. */
	static const uint32_t odd[] = {
		0, 0x80000000, 1, 0x807fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xffffffff, 0x7fc00000, 0x2f803fff,
		0x2f804000, 0xaf804001, 0x4fffe000, 0xcfffffff, 0x3f802000, 0x3f806000,
	};
	static uint16_t words[3][STREAM_WORDS * SPYRE_LANES] __attribute__((aligned(64)));
	static uint16_t want[STREAM_WORDS * SPYRE_LANES], got[STREAM_WORDS * SPYRE_LANES + SPYRE_LANES];
	static uint32_t wide[3][STREAM_WORDS * SPYRE_LANES], out[STREAM_WORDS * SPYRE_LANES], lanes[3][SPYRE_LANES];
	const struct vec_ops *plain = &spyre_vec_ops_plain;
	const struct vec_ops *const *v;
	unsigned int f, op, packed, k, compared = 0;
	size_t i;

	(void)state;
	/* Each code meets itself, its negative and codes from everywhere. */
	for (i = 0; i < STREAM_WORDS * SPYRE_LANES; i++) {
		words[0][i] = (uint16_t)i;
		words[1][i] = i % 5 ? (uint16_t)rnd() : (uint16_t)(i ^ (i % 2) << 15);
		words[2][i] = (uint16_t)rnd();
	}
	for (f = 0; f < 3; f++) {
		for (k = 0; k < 3; k++) {
			plain->widen[formats[f]](wide[k], words[k], STREAM_WORDS * SPYRE_LANES);
			for (i = 0; i < SPYRE_LANES; i++)
				lanes[k][i] = i % 4 == k ? wide[0][rnd() % 65536] : odd[rnd() % (sizeof(odd) / 4)];
		}
		for (op = 0; op < ISA_OPS; op++) {
			unsigned int nsrc = isa_ops[op].sources;

			if (!plain->stream[op])
				continue;
			for (packed = 1; packed < 1u << nsrc; packed++) {
				const void *src[3] = { lanes[0], lanes[1], lanes[2] };
				const uint32_t *p[3] = { lanes[0], lanes[1], lanes[2] };
				size_t stride[3] = { 0 };

				for (k = 0; k < 3; k++) {
					if (!(packed & 1u << k))
						continue;
					src[k] = words[k];
					p[k] = wide[k];
					stride[k] = SPYRE_LANES;
				}
				plain->op[op](out, SPYRE_LANES, p[0], stride[0], p[1], stride[1], p[2], stride[2],
					      STREAM_WORDS, 0);
				plain->narrow[formats[f]](want, out, STREAM_WORDS * SPYRE_LANES);
				for (v = spyre_vec_ops_all(); *v; v++) {
					memset(got, 0xa5, sizeof(got));
					(*v)->stream[op](got, src, packed, formats[f], STREAM_WORDS);
					for (i = 0; i < STREAM_WORDS * SPYRE_LANES; i++)
						if (got[i] != want[i])
							fail_msg("%s %s of %s, packed %u, lane %zu: %04x, expected %04x", (*v)->name,
								 isa_ops[op].name, isa_formats[formats[f]].name, packed, i,
								 got[i], want[i]);
					for (; i < sizeof(got) / 2; i++)
						assert_int_equal(got[i], 0xa5a5);
					/* In place. */
					memcpy(got, src[__builtin_ctz(packed)], sizeof(want));
					src[__builtin_ctz(packed)] = got;
					(*v)->stream[op](got, src, packed, formats[f], STREAM_WORDS);
					assert_memory_equal(got, want, sizeof(want));
					src[__builtin_ctz(packed)] = words[__builtin_ctz(packed)];
					compared++;
				}
			}
		}
	}
	assert_true(compared >= 3 * 9);
}

/* --- A job ---------------------------------------------------------------------------------- */

struct build {
	struct spyreprog_job *j;
	int lxlu, lxsu, pt, sfp;
	unsigned int out;	/* words stored */
	unsigned int ops;	/* vector operations in it */
};

static void load(struct build *b, unsigned int word, unsigned int n, unsigned int fifo)
{
	sp_mvreg(b->j, b->lxlu, SPYRE_LAR0, SPYRE_REG_NONE, (int32_t)(word % (IN - 80) * SPYRE_STICK));
	sp_ld(b->j, b->lxlu, SPYRE_LAR0, SPYRE_REG_NONE, fifo, n, SPYRE_STICK, 0);
}

static void store(struct build *b, unsigned int n, unsigned int fifo)
{
	sp_st(b->j, b->lxsu, SPYRE_LAR0, SPYRE_REG_NONE, fifo, n, SPYRE_STICK, (int32_t)(n * SPYRE_STICK));
	b->out += n;
}

static void products(struct build *b)
{
	unsigned int f;

	for (f = 0; f < PT_FORMATS; f++) {
		enum spyre_format fmt = pt_formats[f];

		load(b, 10, 64, SPYRE_FIFO_LXLU_PTW);
		sp_pt_ldw(b->j, b->pt, f, fmt, SPYRE_FIFO_LXLU_PTW);
		load(b, 100 + f, 13, SPYRE_FIFO_LXLU_PT);
		sp_pt_mm(b->j, b->pt, f, fmt, false, SPYRE_FIFO_LXLU_PT, 13, 3);
		load(b, 120 + f, 13, SPYRE_FIFO_LXLU_PT);
		sp_pt_mm(b->j, b->pt, f, fmt, true, SPYRE_FIFO_LXLU_PT, 13, 3);
		sp_pt_psout(b->j, b->pt, SPYRE_FIFO_PT_LXSU, 13, 3);
		store(b, 26, SPYRE_FIFO_PT_LXSU);
	}
}

/* Each format read, and what was read written in every format. */
static void conversions(struct build *b)
{
	unsigned int from, to, round, k;

	for (k = 0; k < 4; k++) {
		load(b, k, 2, SPYRE_FIFO_LXLU_SFP0);
		sp_vec(b->j, b->sfp, SPYRE_OP_MOV, SPYRE_OPND_V(k), F(LXLU_SFP0), 0, 0, 1, 0,
		       SPYRE_FMTS(SPYRE_IEEE_FP32, 0, 0, 0));
	}
	for (round = 0; round < ROUNDS; round++) {
		for (from = 0; from < SPYRE_FORMATS; from++) {
			load(b, round * 7 + from, isa_words(from), SPYRE_FIFO_LXLU_SFP0);
			sp_vec(b->j, b->sfp, SPYRE_OP_MOV, SPYRE_OPND_V(0), F(LXLU_SFP0), 0, 0, 1, 0,
			       SPYRE_FMTS(from, 0, 0, 0));
			for (to = 0; to < SPYRE_FORMATS; to++) {
				sp_vec(b->j, b->sfp, SPYRE_OP_MOV, F(SFP_LXSU), SPYRE_OPND_V(0), 0, 0, 1, 0,
				       SPYRE_FMTS(0, 0, 0, to));
				store(b, isa_words(to), SPYRE_FIFO_SFP_LXSU);
			}
		}
	}
}

static unsigned int operations(struct build *b)
{
	const struct isa_op *o;
	unsigned int code, round, k, n = 0;

	for (code = 0; code < 256; code++) {
		o = isa_op(code);
		if (!o || !(o->units & ISA_U(SFP)) || !isa_is_vector(o))
			continue;
		n++;
		for (round = 0; round < ROUNDS; round++) {
			/* Bits of any kind; those of the 16-bit format are magnitudes that functions care about. */
			for (k = 0; k < 3; k++) {
				enum spyre_format fmt = round & 1 ? SPYRE_IEEE_INT32 : SPYRE_SEN169_FP16;

				load(b, code + round * 5 + k * 3, isa_words(fmt), SPYRE_FIFO_LXLU_SFP1);
				sp_vec(b->j, b->sfp, SPYRE_OP_MOV, SPYRE_OPND_V(k), F(LXLU_SFP1), 0, 0, 1, 0,
				       SPYRE_FMTS(fmt, 0, 0, 0));
			}
			sp_vec(b->j, b->sfp, code, F(SFP_LXSU), SPYRE_OPND_V(0),
			       code == SPYRE_OP_LMASK ? 7 : o->sources > 1 ? SPYRE_OPND_V(1) : 0,
			       o->sources > 2 ? SPYRE_OPND_V(2) : 0, 1, o->flags & ISA_IMM_OWN ? round * 9 : 0,
			       SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
			store(b, 2, SPYRE_FIFO_SFP_LXSU);
		}
	}
	return n;
}

/* Returns the words that each core writes. */
static unsigned int build_job(struct build *b)
{
	int l3lu, l3su, u;
	unsigned int i, core;

	b->j = spyreprog_job_new();
	b->out = 0;
	l3lu = spyreprog_job_program(b->j, SPYRE_UNIT_L3LU);
	l3su = spyreprog_job_program(b->j, SPYRE_UNIT_L3SU);
	b->lxlu = spyreprog_job_program(b->j, SPYRE_UNIT_LXLU);
	b->lxsu = spyreprog_job_program(b->j, SPYRE_UNIT_LXSU);
	b->pt = spyreprog_job_program(b->j, SPYRE_UNIT_PT);
	b->sfp = spyreprog_job_program(b->j, SPYRE_UNIT_SFP);
	for (i = 0; i < IN; i += 32)
		sp_l3(b->j, l3lu, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 32, 0, 4096, 4096);
	sp_send(b->j, l3lu, 60, 0);
	sp_wait(b->j, b->lxlu, 60, 1);
	products(b);
	conversions(b);
	b->ops = operations(b);
	sp_send(b->j, b->lxsu, 61, 0);
	sp_wait(b->j, l3su, 61, 1);
	for (i = 0; i < b->out; i += 32)
		sp_l3(b->j, l3su, SPYRE_OP_L3_STU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0,
		      b->out - i < 32 ? b->out - i : 32, 0, 4096, 4096);
	for (core = 0; core < CORES; core++) {
		u = spyreprog_job_unit(b->j, core, SPYRE_UNIT_L3LU, 0, l3lu);
		spyreprog_job_init(b->j, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, core * IN * SPYRE_STICK);
		u = spyreprog_job_unit(b->j, core, SPYRE_UNIT_L3SU, 0, l3su);
		spyreprog_job_init(b->j, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, 1 << 20);
		spyreprog_job_init(b->j, u, SPYRE_EAR0, SPYRE_NO_SYMBOL,
				   ENV_SEGMENT(1) + core * (uint64_t)b->out * SPYRE_STICK);
		spyreprog_job_unit(b->j, core, SPYRE_UNIT_LXLU, 0, b->lxlu);
		u = spyreprog_job_unit(b->j, core, SPYRE_UNIT_LXSU, 0, b->lxsu);
		spyreprog_job_init(b->j, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, 1 << 20);
		spyreprog_job_unit(b->j, core, SPYRE_UNIT_PT, 0, b->pt);
		spyreprog_job_unit(b->j, core, SPYRE_UNIT_SFP, 0, b->sfp);
	}
	return b->out;
}

static void test_threads_and_widths(void **state)
{
	const struct pt_ops *const *o;
	const struct vec_ops *const *v;
	unsigned int threads, dl16, words, widths = 0;
	uint8_t *in, *want[2] = { NULL, NULL };
	struct build b;
	struct env e;
	size_t size, i;

	(void)state;
	in = malloc(CORES * IN * SPYRE_STICK);
	fill(in, 0, CORES * IN);
	for (threads = 1; threads <= 8; threads++) {
		env_init(&e, threads);
		words = build_job(&b);
		env_load_job(&e, b.j);
		memcpy(env_map(&e, 0, CORES * IN * SPYRE_STICK), in, CORES * IN * SPYRE_STICK);
		size = CORES * (size_t)words * SPYRE_STICK;
		for (o = spyre_pt_ops_all(); *o; o++) {
			for (v = spyre_vec_ops_all(); *v; v++) {
				for (dl16 = 0; dl16 < 2; dl16++) {
					e.soc->pt = *o;
					e.soc->vec = *v;
					e.soc->cfg.accumulate_dl16 = dl16;
					env_map(&e, 1, size);
					env_run(&e, NULL, 0);
					if (e.rb.status != SPYRE_OK)
						fail_msg("status %u code %u unit %x pc %u", e.rb.status, e.rb.err_code,
							 e.rb.err_unit, e.rb.err_pc);
					if (!want[dl16]) {
						want[dl16] = malloc(size);
						memcpy(want[dl16], e.seg[1], size);
					}
					for (i = 0; i < size && e.seg[1][i] == want[dl16][i]; i++)
						;
					if (i < size)
						fail_msg("PT %s, PE and SFP %s, %u threads: word %zu of core %zu differs at byte %zu",
							 (*o)->name, (*v)->name, threads, i / SPYRE_STICK % words,
							 i / SPYRE_STICK / words, i % SPYRE_STICK);
					widths++;
				}
			}
		}
		env_free(&e);
	}
	/* The two accumulators are not the same. */
	assert_memory_not_equal(want[0], want[1], size);
	print_message("%u runs of %u vector operations and %u formats, %u words on each of %u cores\n", widths, b.ops,
		      SPYRE_FORMATS, words, CORES);
	free(want[0]);
	free(want[1]);
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_threads_and_widths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
