// SPDX-License-Identifier: MIT
/*
 * Whole jobs on the SoC alone: every unit and operation, cores that meet, faults, memory that must read as
 * zero, the cache of programs, cancellation. Also built with TSan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <unistd.h>

#include <spyre/num.h>

#include "job.h"
#include "pt.h"
#include "spyregen.h"
#include "test_soc_env.h"
#include "vec.h"

#define R0 SPYRE_LAR0
#define B0 SPYRE_LBR0
#define E0 SPYRE_EAR0
#define NOREG SPYRE_REG_NONE
#define F(f) SPYRE_OPND_FIFO(SPYRE_FIFO_##f)

static uint64_t rng = 42;

static uint32_t rnd(void)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 32);
}

/* --- A small core: memory to LX, units of a test, LX to memory ------------------------------ */

/*
 * Job under construction on core 0: n words from segment 0 to LX 0, which end() announces with tag 60 to LXLU
 * of corelet x; what LXSU stores at LX 1 MB goes to segment 1.
 */
struct bench {
	struct spyreprog_job *job;
	unsigned int x;
	int l3lu, l3su, lxlu, lxsu, pt, pe, sfp, l0lu, l0su;
};

static void begin(struct bench *b, unsigned int core, unsigned int x, unsigned int in, unsigned int out)
{
	struct spyreprog_job *j = b->job = spyreprog_job_new();
	unsigned int n;
	int u;

	b->x = x;
	b->l3lu = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
	for (n = in; n; n -= n > 32 ? 32 : n)
		sp_l3(j, b->l3lu, SPYRE_OP_L3_LDU, R0, NOREG, E0, n > 32 ? 32 : n, 0, n > 32 ? 4096 : 0,
		      n > 32 ? 4096 : 0);
	sp_send(j, b->l3lu, 60, 0);
	spyreprog_job_unit(j, core, SPYRE_UNIT_L3LU, 0, b->l3lu);
	b->l3su = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
	sp_wait(j, b->l3su, 61, 1);
	for (n = out; n; n -= n > 32 ? 32 : n)
		sp_l3(j, b->l3su, SPYRE_OP_L3_STU, R0, NOREG, E0, n > 32 ? 32 : n, 0, n > 32 ? 4096 : 0,
		      n > 32 ? 4096 : 0);
	u = spyreprog_job_unit(j, core, SPYRE_UNIT_L3SU, 0, b->l3su);
	spyreprog_job_init(j, u, R0, SPYRE_NO_SYMBOL, 1 << 20);
	spyreprog_job_init(j, u, E0, SPYRE_NO_SYMBOL, ENV_SEGMENT(1));
	b->lxlu = spyreprog_job_program(j, SPYRE_UNIT_LXLU);
	sp_wait(j, b->lxlu, 60, 1);
	spyreprog_job_unit(j, core, SPYRE_UNIT_LXLU, x, b->lxlu);
	b->lxsu = spyreprog_job_program(j, SPYRE_UNIT_LXSU);
	u = spyreprog_job_unit(j, core, SPYRE_UNIT_LXSU, x, b->lxsu);
	spyreprog_job_init(j, u, R0, SPYRE_NO_SYMBOL, 1 << 20);
	b->pt = b->pe = b->sfp = b->l0lu = b->l0su = -1;
}

static int unit(struct bench *b, enum spyre_unit kind)
{
	int p = spyreprog_job_program(b->job, kind);

	spyreprog_job_unit(b->job, 0, kind, b->x, p);
	return p;
}

static void end(struct bench *b, struct env *e)
{
	sp_send(b->job, b->lxsu, 61, 0);
	env_load_job(e, b->job);
}

static void run_ok(struct env *e)
{
	env_run(e, NULL, 0);
	if (e->rb.status != SPYRE_OK)
		fail_msg("status %u code %u core %d unit %x pc %u addr %llx syn %u nstuck %u (unit %x waits %u number %u pc %u)",
			 e->rb.status, e->rb.err_code, (int16_t)e->rb.err_core, e->rb.err_unit, e->rb.err_pc,
			 (unsigned long long)e->rb.rb_hmierr_addr, e->rb.rb_hmierr_syndrome, e->rb.nstuck,
			 e->rb.stuck[0].unit, e->rb.stuck[0].waits, e->rb.stuck[0].number, e->rb.stuck[0].pc);
	assert_int_equal(e->active, 0);
}

static void random_fill(void *p, size_t n)
{
	uint32_t *w = p;

	for (n /= 4; n--; )
		*w++ = rnd();
}

/* Random values of a format without NaN and infinity, of modest size. */
static void random_floats(void *p, size_t n, enum spyre_format fmt)
{
	size_t i;

	for (i = 0; i < n; i++) {
		uint32_t f = (rnd() & 0x807fffff) | (120 + (rnd() & 15)) << 23;

		if (fmt == SPYRE_IEEE_FP32)
			((uint32_t *)p)[i] = f;
		else
			((uint16_t *)p)[i] = fmt == SPYRE_SEN169_FP16 ? spyre_bits_to_dl16(f) :
				fmt == SPYRE_IEEE_FP16 ? spyre_bits_to_fp16(f) : spyre_bits_to_bf16(f);
	}
}

/* --- Data movement -------------------------------------------------------------------------- */

static void test_copy(void **state)
{
	struct env e;
	struct bench b;
	unsigned int n = 1000, i;

	(void)state;
	env_init(&e, 1);
	e.piece = 4096 - 128;	/* translation in odd pieces */
	random_fill(env_map(&e, 0, n * 128), n * 128);
	env_map(&e, 1, n * 128);
	begin(&b, 0, 1, n, n);
	b.pe = unit(&b, SPYRE_UNIT_PE);
	/* Backwards through the FIFO, and back again: negative strides, LBR, more words than any FIFO holds. */
	sp_mvreg(b.job, b.lxlu, B0 + 1, NOREG, (int32_t)(n - 1) * 128);
	sp_ld(b.job, b.lxlu, R0, B0 + 1, SPYRE_FIFO_LXLU_PE1, n, -128, 0);
	sp_vec(b.job, b.pe, SPYRE_OP_MOV, F(PE_LXSU), F(LXLU_PE1), 0, 0, n / 2, 0,
	       SPYRE_FMTS(SPYRE_IEEE_INT32, 0, 0, SPYRE_IEEE_INT32));
	sp_addimm(b.job, b.lxsu, R0, (int32_t)(n - 1) * 128);
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PE_LXSU, n, -128, 0);
	end(&b, &e);
	run_ok(&e);
	for (i = 0; i < n; i++)
		assert_memory_equal(e.seg[1] + i * 128, e.seg[0] + i * 128, 128);
	assert_int_equal(e.time.rd_bytes, n * 128);
	assert_int_equal(e.time.wr_bytes, n * 128);
	env_free(&e);
}

/* Loops eight deep, a skipped block that ends with its outer ones, registers as counts. */
static void test_loops(void **state)
{
	struct env e;
	struct bench b;
	unsigned int i, k;

	(void)state;
	env_init(&e, 1);
	random_fill(env_map(&e, 0, 16384), 16384);
	env_map(&e, 1, 65536);
	begin(&b, 0, 0, 128, 384);
	b.pe = unit(&b, SPYRE_UNIT_PE);
	for (i = 0; i < 7; i++)
		sp_loop(b.job, b.lxlu, 2);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 1, 0, 128);
	sp_loop(b.job, b.lxlu, 0);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 1, 0, 128);
	for (i = 0; i < 8; i++)
		sp_end(b.job, b.lxlu);
	/* LCR0 = 3 + 125 by a flat loop, then LCR1 = 2 LCR0 words from LX 0 on, the same one each time. */
	sp_mvreg(b.job, b.lxlu, SPYRE_LCR0, NOREG, 3);
	sp_loop(b.job, b.lxlu, 125);
	sp_addimm(b.job, b.lxlu, SPYRE_LCR0, 1);
	sp_end(b.job, b.lxlu);
	sp_mvreg(b.job, b.lxlu, R0, NOREG, 0);
	sp_addreg(b.job, b.lxlu, SPYRE_LCR0 + 1, SPYRE_LCR0, 2);
	sp_loop_reg(b.job, b.lxlu, SPYRE_LCR0 + 1);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 1, 0, 0);
	sp_end(b.job, b.lxlu);
	sp_vec(b.job, b.pe, SPYRE_OP_MOV, F(PE_LXSU), F(LXLU_PE0), 0, 0, 384, 0,
	       SPYRE_FMTS(SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, 0, 0, SPYRE_IEEE_INT32 | SPYRE_FMT_HALF));
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PE_LXSU, 384, 128, 0);
	end(&b, &e);
	run_ok(&e);
	assert_memory_equal(e.seg[1], e.seg[0], 16384);
	for (k = 128; k < 384; k++)
		assert_memory_equal(e.seg[1] + k * 128, e.seg[0], 128);
	env_free(&e);
}

/* LXLU to L0, L0 to PE and SFP; strides in L0. */
static void test_l0(void **state)
{
	struct env e;
	struct bench b;

	(void)state;
	env_init(&e, 1);
	random_fill(env_map(&e, 0, 64 * 128), 64 * 128);
	env_map(&e, 1, 64 * 128);
	begin(&b, 0, 1, 64, 64);
	b.pe = unit(&b, SPYRE_UNIT_PE);
	b.sfp = unit(&b, SPYRE_UNIT_SFP);
	b.l0lu = unit(&b, SPYRE_UNIT_L0LU);
	b.l0su = unit(&b, SPYRE_UNIT_L0SU);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_L0SU, 64, 128, 0);
	sp_st(b.job, b.l0su, R0, NOREG, SPYRE_FIFO_LXLU_L0SU, 64, 128, 0);
	sp_send(b.job, b.l0su, 5, 0);
	sp_wait(b.job, b.l0lu, 5, 1);
	sp_loop(b.job, b.l0lu, 32);
	sp_ld(b.job, b.l0lu, R0, NOREG, SPYRE_FIFO_L0LU_PE, 1, 128, 128);
	sp_ld(b.job, b.l0lu, R0, NOREG, SPYRE_FIFO_L0LU_SFP, 1, 128, 128);
	sp_end(b.job, b.l0lu);
	sp_vec(b.job, b.pe, SPYRE_OP_MOV, F(PE_LXSU), F(L0LU_PE), 0, 0, 16, 0,
	       SPYRE_FMTS(SPYRE_IEEE_INT32, 0, 0, SPYRE_IEEE_INT32));
	sp_vec(b.job, b.sfp, SPYRE_OP_MOV, F(SFP_LXSU), F(L0LU_SFP), 0, 0, 16, 0,
	       SPYRE_FMTS(SPYRE_IEEE_INT32, 0, 0, SPYRE_IEEE_INT32));
	sp_loop(b.job, b.lxsu, 32);
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PE_LXSU, 1, 128, 128);
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_SFP_LXSU, 1, 128, 128);
	sp_end(b.job, b.lxsu);
	end(&b, &e);
	run_ok(&e);
	assert_memory_equal(e.seg[1], e.seg[0], 64 * 128);
	env_free(&e);
}

/* --- PT ------------------------------------------------------------------------------------- */

static float widen(const void *p, size_t i, enum spyre_format fmt)
{
	uint16_t h = ((const uint16_t *)p)[i];

	return spyre_fp32_from_bits(fmt == SPYRE_SEN169_FP16 ? spyre_dl16_to_bits(h) : fmt == SPYRE_IEEE_FP16 ?
			 spyre_fp16_to_bits(h) : spyre_bf16_to_bits(h));
}

static void *aligned(size_t size)
{
	void *p = NULL;

	if (posix_memalign(&p, 64, size))
		abort();
	return p;
}

/* Every kernel against one chain of fmaf, NaN and infinity among the data, all row counts that differ. */
static void test_pt_kernels(void **state)
{
	static const enum spyre_format fmts[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16, SPYRE_SENINT8 };
	static const unsigned int counts[] = { 1, 2, 3, 5, 6, 7, 12, 13, 64, 127, 128 };
	const struct pt_ops *const *o;
	struct pt_tile *t;
	uint32_t *rows, *want;
	uint8_t *w, *a;
	unsigned int f, c, i, k, n;

	(void)state;
	t = aligned(sizeof(*t));
	rows = aligned(128 * 256);
	w = aligned(8192);
	a = aligned(128 * 128);
	want = malloc(128 * 256);
	for (f = 0; f < 4; f++) {
		bool is_int = fmts[f] == SPYRE_SENINT8;

		random_fill(w, 8192);
		random_fill(a, 128 * 128);
		if (!is_int) {
			random_floats(w, 4096, fmts[f]);
			random_floats(a, 8192, fmts[f]);
			for (i = 0; i < 30; i++)
				((uint16_t *)a)[rnd() % 8192] = (uint16_t)rnd();
			((uint16_t *)w)[77] = 0x7fff;
		} else {
			memset(w, 0x80, 300);
			memset(a, 0x80, 300);
		}
		for (c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			bool onto = c & 1;

			for (i = 0; i < counts[c]; i++) {
				for (n = 0; n < 64; n++) {
					uint32_t s = 0x3f000000 + i * 64 + n, acc = onto ? s : 0;
					float facc = spyre_fp32_from_bits(acc);

					for (k = 0; k < (is_int ? 128u : 64u); k++) {
						if (is_int)
							acc += (uint32_t)((int8_t)a[i * 128 + k] * (int8_t)w[k * 64 + n]);
						else
							facc = fmaf(widen(a, i * 64 + k, fmts[f]),
								    widen(w, k * 64 + n, fmts[f]), facc);
					}
					want[i * 64 + n] = is_int ? acc : isnan(facc) ? SPYRE_FP32_NAN :
							   spyre_fp32_bits(facc);
				}
			}
			for (o = spyre_pt_ops_all(); *o; o++) {
				for (i = 0; i < 128 * 64; i++)
					rows[i] = 0x3f000000 + i;
				(*o)->load(t, w, fmts[f]);
				(*o)->mm(rows, a, counts[c], t, fmts[f], onto);
				for (i = 0; i < counts[c] * 64; i++) {
					uint32_t got = !is_int && (rows[i] & 0x7fffffff) > 0x7f800000 ?
						       SPYRE_FP32_NAN : rows[i];
					if (got != want[i])
						fail_msg("%s format %u rows %u: row %u column %u is %08x, expected %08x",
							 (*o)->name, fmts[f], counts[c], i / 64, i % 64, got, want[i]);
				}
				/* Rows beyond stay. */
				for (; i < 128 * 64; i++)
					assert_int_equal(rows[i], 0x3f000000 + i);
			}
		}
	}
	free(t);
	free(rows);
	free(w);
	free(a);
	free(want);
}

/*
 * PT in a core: two tiles in flight, onto and into, PSOUT, sums taken back with PSIN, NaN as one code. The
 * weights come from LX and by L0.
 */
static void test_pt(void **state)
{
	const enum spyre_format f = SPYRE_IEEE_FP16;
	uint16_t *in;
	uint32_t *out;
	struct env e;
	struct bench b;
	unsigned int i, k, n;

	(void)state;
	env_init(&e, 1);
	in = (void *)env_map(&e, 0, 384 * 128);
	random_floats(in, 384 * 64, f);
	in[128 * 64 + 3] = 0xfe01;	/* a NaN with sign and payload */
	env_map(&e, 1, 256 * 128);
	begin(&b, 0, 0, 384, 256);
	b.pt = unit(&b, SPYRE_UNIT_PT);
	b.l0lu = unit(&b, SPYRE_UNIT_L0LU);
	b.l0su = unit(&b, SPYRE_UNIT_L0SU);
	/* Tile 3 from words 0 to 63 by LX, tile 6 from 64 to 127 by L0; activations 128 to 255 twice. */
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PTW, 64, 128, 8192);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_L0SU, 64, 128, 8192);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PT, 128, 128, 16384);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PT, 128, 128, 0);
	sp_st(b.job, b.l0su, R0, NOREG, SPYRE_FIFO_LXLU_L0SU, 64, 128, 0);
	sp_send(b.job, b.l0su, 5, 0);
	sp_wait(b.job, b.l0lu, 5, 1);
	sp_ld(b.job, b.l0lu, R0, NOREG, SPYRE_FIFO_L0LU_PTW, 64, 128, 0);
	sp_pt_ldw(b.job, b.pt, 3, f, SPYRE_FIFO_LXLU_PTW);
	sp_pt_ldw(b.job, b.pt, 6, f, SPYRE_FIFO_L0LU_PTW);
	sp_pt_mm(b.job, b.pt, 3, f, false, SPYRE_FIFO_LXLU_PT, 128, 0);
	sp_pt_psout(b.job, b.pt, SPYRE_FIFO_PT_LXSU, 128, 0);
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PT_LXSU, 256, 128, 0);
	/* The sums back from where LXSU put them, with what came before in memory's place of 256 to 383. */
	sp_send(b.job, b.lxsu, 7, 0);
	sp_pt_mm(b.job, b.pt, 6, f, true, SPYRE_FIFO_LXLU_PT, 128, 0);
	sp_pt_psout(b.job, b.pt, SPYRE_FIFO_PT_LXSU, 64, 64);
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PT_LXSU, 128, 128, 0);
	sp_send(b.job, b.lxsu, 7, 0);
	sp_wait(b.job, b.lxlu, 7, 2);
	sp_mvreg(b.job, b.lxlu, R0, NOREG, 1 << 20);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PT, 128, 128, 0);
	sp_pt_psin(b.job, b.pt, SPYRE_IEEE_FP32, SPYRE_FIFO_LXLU_PT, 64, 0);
	sp_pt_psout(b.job, b.pt, SPYRE_FIFO_PT_LXSU, 64, 0);
	sp_addimm(b.job, b.lxsu, R0, 128 * 128);
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PT_LXSU, 128, 128, 0);
	end(&b, &e);
	/* Activations of the second product are the same words: LD above started at word 256 by then. */
	memcpy(in + 256 * 64, in + 128 * 64, 128 * 128);
	run_ok(&e);
	out = (uint32_t *)e.seg[1];
	for (i = 0; i < 64; i++) {
		for (n = 0; n < 64; n++) {
			float s = 0;
			uint32_t want;

			for (k = 0; k < 64; k++)
				s = fmaf(widen(in, (128 + 64 + i) * 64 + k, f), widen(in, k * 64 + n, f), s);
			for (k = 0; k < 64; k++)
				s = fmaf(widen(in, (128 + 64 + i) * 64 + k, f), widen(in, (64 + k) * 64 + n, f), s);
			want = isnan(s) ? SPYRE_FP32_NAN : spyre_fp32_bits(s);
			assert_int_equal(out[i * 64 + n], want);
			assert_int_equal(out[(64 + i) * 64 + n], want);
		}
	}
	assert_int_equal(e.time.pt_macs, 256 * 4096);
	env_free(&e);
}

/* A DL16 accumulator by its definition: rounded after each step of 64, then added in fp32. */
static uint32_t dl16_chunk(const uint16_t *a, const uint16_t *w, enum spyre_format f, bool onto, uint32_t row)
{
	float sum = 0;
	unsigned int k;

	for (k = 0; k < 64; k++) {
		sum = fmaf(widen(a, k, f), widen(w, k * 64, f), sum);
		sum = spyre_fp32_from_bits(spyre_dl16_to_bits(spyre_bits_to_dl16(spyre_fp32_bits(sum))));
	}
	sum = onto ? spyre_fp32_from_bits(row) + sum : sum;
	return isnan(sum) ? SPYRE_FP32_NAN : spyre_fp32_bits(sum);
}

static void test_pt_dl16(void **state)
{
	static const enum spyre_format fmts[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16 };
	static uint32_t rows[7][64] __attribute__((aligned(64))), was[7][64];
	static uint16_t a[7 * 64], w[64 * 64];
	static struct pt_tile tile;
	const struct pt_ops *const *o;
	struct spyre_soc_config cfg = {
		.threads = 1, .cores = 1, .core_hz = SPYRE_CORE_HZ, .soc_hz = SPYRE_SOC_HZ, .accumulate_dl16 = true,
	};
	unsigned int fi, onto, i, n, differ = 0;
	struct env e;
	struct bench b;
	uint16_t *in;
	uint32_t *out, got;

	(void)state;
	for (fi = 0; fi < 3; fi++) {
		for (onto = 0; onto < 2; onto++) {
			random_floats(a, 7 * 64, fmts[fi]);
			random_floats(w, 64 * 64, fmts[fi]);
			random_floats(was, 7 * 64, SPYRE_IEEE_FP32);
			a[3] = 0x7fff;	/* a NaN in all of them */
			for (o = spyre_pt_ops_all(); *o; o++) {
				memcpy(rows, was, sizeof(rows));
				(*o)->load(&tile, (uint8_t *)w, fmts[fi]);
				(*o)->mm_dl16(rows[0], (uint8_t *)a, 7, &tile, fmts[fi], onto);
				for (i = 0; i < 7 * 64; i++) {
					got = rows[i / 64][i % 64];
					got = isnan(spyre_fp32_from_bits(got)) ? SPYRE_FP32_NAN : got;
					assert_int_equal(got, dl16_chunk(a + i / 64 * 64, w + i % 64, fmts[fi], onto,
									 was[i / 64][i % 64]));
				}
			}
		}
	}

	/* Two chunks of k on a card that is configured for it. */
	env_init(&e, 1);
	spyre_soc_free(e.soc);
	e.soc = spyre_soc_new(&cfg);
	in = (void *)env_map(&e, 0, 192 * 128);
	random_floats(in, 192 * 64, SPYRE_SEN169_FP16);
	env_map(&e, 1, 128 * 128);
	begin(&b, 0, 0, 192, 128);
	b.pt = unit(&b, SPYRE_UNIT_PT);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PTW, 64, 128, 8192);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PT, 64, 128, 8192);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PTW, 64, 128, -8192);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PT, 64, 128, 0);
	sp_pt_ldw(b.job, b.pt, 0, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
	sp_pt_mm(b.job, b.pt, 0, SPYRE_SEN169_FP16, false, SPYRE_FIFO_LXLU_PT, 64, 0);
	sp_pt_ldw(b.job, b.pt, 1, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
	sp_pt_mm(b.job, b.pt, 1, SPYRE_SEN169_FP16, true, SPYRE_FIFO_LXLU_PT, 64, 0);
	sp_pt_psout(b.job, b.pt, SPYRE_FIFO_PT_LXSU, 64, 0);
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PT_LXSU, 128, 128, 0);
	end(&b, &e);
	run_ok(&e);
	out = (uint32_t *)e.seg[1];
	for (i = 0; i < 64; i++) {
		for (n = 0; n < 64; n++) {
			uint32_t first = dl16_chunk(in + (64 + i) * 64, in + n, SPYRE_SEN169_FP16, false, 0);
			float exact = 0;

			assert_int_equal(out[i * 64 + n], dl16_chunk(in + (64 + i) * 64, in + 128 * 64 + n,
								      SPYRE_SEN169_FP16, true, first));
			for (fi = 0; fi < 64; fi++)
				exact = fmaf(widen(in, (64 + i) * 64 + fi, SPYRE_SEN169_FP16),
					     widen(in, fi * 64 + n, SPYRE_SEN169_FP16), exact);
			differ += first != spyre_fp32_bits(exact);
		}
	}
	/* It is another arithmetic than the default one. */
	assert_true(differ > 2048);
	env_free(&e);
}

/* NaN rows of floats become canonical before integers are added to them. */
static void test_pt_nan_to_int(void **state)
{
	struct env e;
	struct bench b;
	uint32_t *out;
	unsigned int i;

	(void)state;
	env_init(&e, 1);
	memset(env_map(&e, 0, 256 * 128), 0xff, 256 * 128);	/* NaN in DL16, -1 in int8 */
	env_map(&e, 1, 128 * 128);
	begin(&b, 0, 0, 256, 2);
	b.pt = unit(&b, SPYRE_UNIT_PT);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PTW, 128, 128, 0);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PT, 2, 128, 0);
	sp_pt_ldw(b.job, b.pt, 0, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
	sp_pt_ldw(b.job, b.pt, 1, SPYRE_SENINT8, SPYRE_FIFO_LXLU_PTW);
	sp_pt_mm(b.job, b.pt, 0, SPYRE_SEN169_FP16, true, SPYRE_FIFO_LXLU_PT, 1, 9);
	sp_pt_mm(b.job, b.pt, 1, SPYRE_SENINT8, true, SPYRE_FIFO_LXLU_PT, 1, 9);
	sp_pt_psout(b.job, b.pt, SPYRE_FIFO_PT_LXSU, 1, 9);
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PT_LXSU, 2, 128, 0);
	end(&b, &e);
	run_ok(&e);
	out = (uint32_t *)e.seg[1];
	for (i = 0; i < 64; i++)
		assert_int_equal(out[i], SPYRE_FP32_NAN + 128);
	env_free(&e);
}

/* --- PE and SFP ----------------------------------------------------------------------------- */

/* Formats in and out, constants, immediates, registers that accumulate over many times. */
static void test_vec(void **state)
{
	static const enum spyre_format fmts[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16, SPYRE_IEEE_FP32 };
	unsigned int fi, i, k, n = 200;

	(void)state;
	for (fi = 0; fi < 4; fi++) {
		enum spyre_format f = fmts[fi];
		unsigned int w = f == SPYRE_IEEE_FP32 ? 2 : 1;
		float acc[64] = { 0 };
		uint32_t *out;
		struct env e;
		struct bench b;
		uint8_t *in;

		env_init(&e, 1);
		in = env_map(&e, 0, 2 * n * w * 128);
		random_floats(in, 2 * n * 64, f);
		env_map(&e, 1, (n + 1) * 2 * 128);
		begin(&b, 0, 0, 2 * n * w, (n + 1) * 2);
		b.pe = unit(&b, SPYRE_UNIT_PE);
		b.sfp = unit(&b, SPYRE_UNIT_SFP);
		sp_loop(b.job, b.lxlu, n);
		sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, w, 128, (int32_t)(w * 128));
		sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PE1, w, 128, (int32_t)(w * 128));
		sp_end(b.job, b.lxlu);
		/* x * y + 1.5 to SFP; there kept as it comes, and summed in V3. */
		sp_vec(b.job, b.pe, SPYRE_OP_FMA, F(PE_SFP), F(LXLU_PE0), F(LXLU_PE1), SPYRE_OPND_IMM, n, 0x3fc00000,
		       SPYRE_FMTS(f, f, 0, SPYRE_IEEE_FP32));
		sp_loop(b.job, b.sfp, n);
		sp_vec(b.job, b.sfp, SPYRE_OP_MOV, 1, F(PE_SFP), 0, 0, 1, 0, SPYRE_FMTS(SPYRE_IEEE_FP32, 0, 0, 0));
		sp_vec(b.job, b.sfp, SPYRE_OP_ADD, 3, 3, 1, 0, 1, 0, 0);
		sp_vec(b.job, b.sfp, SPYRE_OP_MOV, F(SFP_LXSU), 1, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_FP32));
		sp_end(b.job, b.sfp);
		sp_vec(b.job, b.sfp, SPYRE_OP_MOV, F(SFP_LXSU), 3, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_FP32));
		sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_SFP_LXSU, (n + 1) * 2, 128, 0);
		end(&b, &e);
		run_ok(&e);
		out = (uint32_t *)e.seg[1];
		for (i = 0; i < n; i++) {
			for (k = 0; k < 64; k++) {
				float x = f == SPYRE_IEEE_FP32 ? ((float *)in)[i * 128 + k] : widen(in, i * 128 + k, f);
				float y = f == SPYRE_IEEE_FP32 ? ((float *)in)[i * 128 + 64 + k] :
					  widen(in, i * 128 + 64 + k, f);

				x = fmaf(x, y, 1.5f);
				acc[k] += x;
				assert_int_equal(out[i * 64 + k], spyre_fp32_bits(x));
			}
		}
		for (k = 0; k < 64; k++)
			assert_int_equal(out[n * 64 + k], spyre_fp32_bits(acc[k]));
		env_free(&e);
	}
}

/* One FIFO as two operands; accumulation straight from a FIFO with n times; HALF; int8 both ways. */
static void test_vec_odd(void **state)
{
	uint32_t *in, *out;
	unsigned int i, k;
	struct env e;
	struct bench b;

	(void)state;
	env_init(&e, 1);
	in = (void *)env_map(&e, 0, 256 * 128);
	random_fill(in, 256 * 128);
	env_map(&e, 1, 64 * 128);
	begin(&b, 0, 1, 256, 34 + 2 + 1 + 3);
	b.pe = unit(&b, SPYRE_UNIT_PE);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 256, 128, 0);
	/* 17 times: word pairs 4i, 4i+1 minus 4i+2, 4i+3. */
	sp_vec(b.job, b.pe, SPYRE_OP_ISUB, F(PE_LXSU), F(LXLU_PE0), F(LXLU_PE0), 0, 17, 0,
	       SPYRE_FMTS(SPYRE_IEEE_INT32, SPYRE_IEEE_INT32, 0, SPYRE_IEEE_INT32));
	/* 50 times onto V2. */
	sp_vec(b.job, b.pe, SPYRE_OP_IADD, 2, 2, F(LXLU_PE0), 0, 50, 0, SPYRE_FMTS(0, SPYRE_IEEE_INT32, 0, 0));
	sp_vec(b.job, b.pe, SPYRE_OP_MOV, F(PE_LXSU), 2, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
	/* Word 168 as int8 into V4, V5 and out again after + 1. */
	sp_vec(b.job, b.pe, SPYRE_OP_MOV, 4, F(LXLU_PE0), 0, 0, 1, 0, SPYRE_FMTS(SPYRE_SENINT8, 0, 0, 0));
	sp_vec(b.job, b.pe, SPYRE_OP_IADD, 4, 4, SPYRE_OPND_IMM, 0, 1, 1, 0);
	sp_vec(b.job, b.pe, SPYRE_OP_IADD, 5, 5, SPYRE_OPND_IMM, 0, 1, 1, 0);
	sp_vec(b.job, b.pe, SPYRE_OP_MOV, F(PE_LXSU), 4, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_SENINT8));
	/* 87 halves: the last one stays, with zeros above. */
	sp_vec(b.job, b.pe, SPYRE_OP_MOV, 6, F(LXLU_PE0), 0, 0, 87, 0,
	       SPYRE_FMTS(SPYRE_IEEE_INT32 | SPYRE_FMT_HALF, 0, 0, 0));
	sp_vec(b.job, b.pe, SPYRE_OP_MOV, F(PE_LXSU), 6, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
	sp_vec(b.job, b.pe, SPYRE_OP_MOV, F(PE_LXSU), 6, 0, 0, 1, 0,
	       SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32 | SPYRE_FMT_HALF));
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PE_LXSU, 40, 128, 0);
	end(&b, &e);
	run_ok(&e);
	out = (uint32_t *)e.seg[1];
	for (i = 0; i < 17; i++)
		for (k = 0; k < 64; k++)
			assert_int_equal(out[i * 64 + k], in[i * 128 + k] - in[i * 128 + 64 + k]);
	for (k = 0; k < 64; k++) {
		uint32_t s = 0;

		for (i = 0; i < 50; i++)
			s += in[68 * 32 + i * 64 + k];
		assert_int_equal(out[34 * 32 + k], s);
	}
	for (k = 0; k < 128; k++)
		assert_int_equal(((int8_t *)(out + 36 * 32))[k], spyre_int32_to_int8(((int8_t *)(in + 168 * 32))[k] + 1));
	assert_memory_equal(out + 37 * 32, in + 255 * 32, 128);
	for (k = 0; k < 32; k++)
		assert_int_equal(out[38 * 32 + k], 0);
	assert_memory_equal(out + 39 * 32, in + 255 * 32, 128);
	env_free(&e);
}

/* Order of values as RRANK has it: NaN on top, zeros equal. */
static bool before(uint32_t a, unsigned int i, uint32_t b, unsigned int k)
{
	bool na = isnan(spyre_fp32_from_bits(a)), nb = isnan(spyre_fp32_from_bits(b));

	if (na != nb)
		return na;
	if (!na && spyre_fp32_from_bits(a) != spyre_fp32_from_bits(b))
		return spyre_fp32_from_bits(a) > spyre_fp32_from_bits(b);
	return i < k;
}

/* Operations across lanes, by their definitions one lane at a time. */
static void test_lanes(void **state)
{
	static const uint32_t odd[] = { 0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x3f800000,
					0xbf800000, 1, 0x80000001, 0x7f7fffff };
	unsigned int n = 40, i, k, s;
	uint32_t *in, *out, t[64], o[64];
	struct env e;
	struct bench b;

	(void)state;
	env_init(&e, 1);
	in = (void *)env_map(&e, 0, 4 * n * 128);
	random_floats(in, 2 * n * 64, SPYRE_IEEE_FP32);
	for (i = 0; i < 2 * n * 64; i++) {
		if (i / 128 % 4 == 1 && !(rnd() & 3))
			in[i] = odd[rnd() % 11];
		else if (i / 128 % 4 == 2)
			in[i] = (rnd() & 1) << 31 | 0x3f800000 | (rnd() & 3) << 22;
	}
	/* One row whose first lane alone is a NaN with a payload. */
	in[3 * 128] = 0x7f923456;
	env_map(&e, 1, (3 * n + 4) * 2 * 128);
	begin(&b, 0, 0, 4 * n, (3 * n + 4) * 2);
	b.sfp = unit(&b, SPYRE_UNIT_SFP);
	sp_loop(b.job, b.lxlu, n);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_SFP0, 2, 128, 256);
	sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_SFP1, 2, 128, 256);
	sp_end(b.job, b.lxlu);
	sp_loop(b.job, b.sfp, n);
	sp_vec(b.job, b.sfp, SPYRE_OP_MOV, 1, F(LXLU_SFP0), 0, 0, 1, 0, SPYRE_FMTS(SPYRE_IEEE_FP32, 0, 0, 0));
	sp_vec(b.job, b.sfp, SPYRE_OP_SCAN, F(SFP_LXSU), 1, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_FP32));
	sp_vec(b.job, b.sfp, SPYRE_OP_RRANK, F(SFP_LXSU), 1, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
	sp_vec(b.job, b.sfp, SPYRE_OP_SHUF, F(SFP_LXSU), 1, F(LXLU_SFP1), 0, 1, 0,
	       SPYRE_FMTS(0, SPYRE_IEEE_INT32, 0, SPYRE_IEEE_INT32));
	sp_end(b.job, b.sfp);
	sp_vec(b.job, b.sfp, SPYRE_OP_IOTA, F(SFP_LXSU), 0, 0, 0, 2, (uint32_t)-5, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
	sp_vec(b.job, b.sfp, SPYRE_OP_LMASK, F(SFP_LXSU), 0, 50, 0, 1, 9, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_FP32));
	sp_vec(b.job, b.sfp, SPYRE_OP_LMASK, F(SFP_LXSU), 0, 0, 0, 1, 64, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_FP32));
	sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_SFP_LXSU, (3 * n + 4) * 2, 128, 0);
	end(&b, &e);
	run_ok(&e);
	out = (uint32_t *)e.seg[1];
	for (i = 0; i < n; i++, in += 128, out += 192) {
		memcpy(t, in, sizeof(t));
		for (s = 1; s < 64; s *= 2) {
			memcpy(o, t, sizeof(o));
			for (k = s; k < 64; k++)
				t[k] = spyre_fp32_bits(spyre_fp32_from_bits(o[k]) + spyre_fp32_from_bits(o[k - s]));
		}
		for (k = 0; k < 64; k++) {
			unsigned int rank = 0;

			assert_int_equal(out[k], isnan(spyre_fp32_from_bits(t[k])) ? SPYRE_FP32_NAN : t[k]);
			for (s = 0; s < 64; s++)
				rank += s != k && before(in[s], s, in[k], k);
			assert_int_equal(out[64 + k], rank);
			assert_int_equal(out[128 + k], in[in[64 + k] & 63]);
		}
	}
	for (k = 0; k < 64; k++) {
		assert_int_equal((int32_t)out[k], (int)k - 5);
		assert_int_equal(out[64 + k], out[k]);
		assert_int_equal(out[128 + k], k >= 9 && k < 59 ? 0x3f800000 : 0);
		assert_int_equal(out[192 + k], 0);
	}
	env_free(&e);
}

/* Every vector operation of the table has code on every kind of host, and nothing else has. */
static void test_vec_complete(void **state)
{
	const struct vec_ops *const *v;
	unsigned int op;

	(void)state;
	for (v = spyre_vec_ops_all(); *v; v++) {
		for (op = 0; op < 256; op++) {
			const struct isa_op *o = isa_op(op);

			if (!(*v)->op[op] != !(o && isa_is_vector(o)))
				fail_msg("%s: operation 0x%02x", (*v)->name, op);
		}
	}
}

/* --- Cores ---------------------------------------------------------------------------------- */

/* Each of n cores passes a token (words through STC and tags, and by the ring) until it is round. */
static void test_cores(void **state)
{
	const unsigned int n = 32;
	struct env e;
	unsigned int c, x, i;

	(void)state;
	for (x = 0; x < 2; x++) {
		struct spyreprog_job *j = spyreprog_job_new();
		uint32_t *out;

		env_init(&e, 4);
		for (i = 0; i < 64; i++)
			((uint32_t *)env_map(&e, 0, 128 * 64))[i] = 0;
		env_map(&e, 1, n * 256);
		random_fill(e.seg[0], 256);
		for (c = 0; c < n; c++) {
			int l3lu, l3su, lxlu, lxsu, sfp, u;

			/* Core 0 loads; core c stores its sum to the next one's LX and tells it. */
			lxlu = spyreprog_job_program(j, SPYRE_UNIT_LXLU);
			sp_wait(j, lxlu, 1, 1);
			sp_ld(j, lxlu, R0, NOREG, SPYRE_FIFO_LXLU_SFP0, 2, 128, 0);
			spyreprog_job_unit(j, c, SPYRE_UNIT_LXLU, x, lxlu);
			sfp = spyreprog_job_program(j, SPYRE_UNIT_SFP);
			sp_vec(j, sfp, SPYRE_OP_IADD, 0, F(LXLU_SFP0), SPYRE_OPND_IMM, 0, 1, 1,
			       SPYRE_FMTS(SPYRE_IEEE_INT32, 0, 0, 0));
			sp_vec(j, sfp, SPYRE_OP_MOV, F(SFP_LXSU), 0, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
			/* All to all around the ring: own value out, n - 1 of others' through, each added to V1. */
			sp_vec(j, sfp, SPYRE_OP_MOV, F(RING), 0, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
			sp_vec(j, sfp, SPYRE_OP_IADD, 1, 1, 0, 0, 1, 0, 0);
			sp_loop(j, sfp, n - 2);
			sp_vec(j, sfp, SPYRE_OP_MOV, 2, F(RING), 0, 0, 1, 0, SPYRE_FMTS(SPYRE_IEEE_INT32, 0, 0, 0));
			sp_vec(j, sfp, SPYRE_OP_MOV, F(RING), 2, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
			sp_vec(j, sfp, SPYRE_OP_IADD, 1, 1, 2, 0, 1, 0, 0);
			sp_end(j, sfp);
			sp_vec(j, sfp, SPYRE_OP_IADD, 1, 1, F(RING), 0, 1, 0, SPYRE_FMTS(0, SPYRE_IEEE_INT32, 0, 0));
			sp_vec(j, sfp, SPYRE_OP_MOV, F(SFP_LXSU), 1, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
			spyreprog_job_unit(j, c, SPYRE_UNIT_SFP, x, sfp);
			lxsu = spyreprog_job_program(j, SPYRE_UNIT_LXSU);
			sp_st(j, lxsu, R0, NOREG, SPYRE_FIFO_SFP_LXSU, 2, 128, 256);
			sp_send(j, lxsu, 2, 0);
			sp_st(j, lxsu, R0, NOREG, SPYRE_FIFO_SFP_LXSU, 2, 128, 256);
			sp_send(j, lxsu, 2, 0);
			u = spyreprog_job_unit(j, c, SPYRE_UNIT_LXSU, x, lxsu);
			spyreprog_job_init(j, u, R0, SPYRE_NO_SYMBOL, 4096);
			l3su = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
			sp_wait(j, l3su, 2, 1);
			if (c + 1 < n) {
				sp_l3(j, l3su, SPYRE_OP_L3_STC, R0, NOREG, E0, 2, 0, 256, 0);
				sp_send(j, l3su, 1, 1u << (c + 1));
			} else {
				sp_addimm(j, l3su, R0, 256);
			}
			sp_wait(j, l3su, 2, 1);
			sp_l3(j, l3su, SPYRE_OP_L3_STU, R0, NOREG, E0 + 1, 2, 0, 0, 0);
			u = spyreprog_job_unit(j, c, SPYRE_UNIT_L3SU, 0, l3su);
			spyreprog_job_init(j, u, R0, SPYRE_NO_SYMBOL, 4096);
			spyreprog_job_init(j, u, E0, SPYRE_NO_SYMBOL, (uint64_t)(c + 1) << 24);
			spyreprog_job_init(j, u, E0 + 1, SPYRE_NO_SYMBOL, ENV_SEGMENT(1) + c * 256);
			if (!c) {
				l3lu = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
				sp_l3(j, l3lu, SPYRE_OP_L3_LDU, R0, NOREG, E0, 2, 0, 0, 0);
				sp_send(j, l3lu, 1, 0);
				spyreprog_job_unit(j, c, SPYRE_UNIT_L3LU, 0, l3lu);
			}
		}
		env_load_job(&e, j);
		for (i = 0; i < 3; i++) {
			memset(e.seg[1], 0, n * 256);
			run_ok(&e);
			out = (uint32_t *)e.seg[1];
			for (c = 0; c < n * 64; c++)
				assert_int_equal(out[c], ((uint32_t *)e.seg[0])[c % 64] * n + n * (n + 1) / 2);
		}
		env_free(&e);
	}
}

/* Matrix products over 32 cores with multicast: the same bits for 1, 2 and 5 threads, and those of the reference. */
static void test_threads(void **state)
{
	const uint32_t n = 256;
	struct spyregen_matmul mm = {
		.m = n, .n = n, .k = n, .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16,
	};
	static const unsigned int threads[] = { 1, 2, 5 };
	float *a = malloc(n * n * 4), *b = malloc(n * n * 4), *c = malloc(n * n * 4);
	uint64_t syms[3] = { 0, ENV_SEGMENT(1), ENV_SEGMENT(2) }, cycles = 0;
	uint64_t bytes = spyregen_bytes(mm.out, n, n);
	uint8_t *first = malloc(bytes);
	unsigned int t, i, k, q;
	char err[200];

	(void)state;
	for (i = 0; i < n * n; i++) {
		a[i] = (float)((int)(rnd() % 2001) - 1000) / 999;
		b[i] = (float)((int)(rnd() % 2001) - 1000) / 999;
	}
	spyregen_round(a, n * n, mm.in);
	spyregen_round(b, n * n, mm.in);
	for (t = 0; t < 3; t++) {
		struct env e;
		struct spyreprog_job *j = spyregen_matmul(&mm, err);

		env_init(&e, threads[t]);
		if (!j)
			fail_msg("%s", err);
		env_load_job(&e, j);
		spyregen_pack(env_map(&e, 0, spyregen_bytes(mm.in, n, n)), mm.in, a, n, n, n);
		spyregen_pack_weights(env_map(&e, 1, spyregen_weight_bytes(mm.in, n, n)), mm.in, b, n, n, n);
		env_map(&e, 2, bytes);
		assert_int_equal(env_run(&e, syms, 3), SPYRE_OK);
		if (!t) {
			memcpy(first, e.seg[2], bytes);
			cycles = e.time.cycles;
			spyregen_unpack(c, n, e.seg[2], mm.out, n, n);
			for (q = 0; q < 3000; q++) {
				uint32_t row = rnd() % n, col = rnd() % n;
				float s = 0;

				for (k = 0; k < n; k++)
					s = fmaf(a[row * n + k], b[k * n + col], s);
				spyregen_round(&s, 1, mm.out);
				assert_int_equal(spyre_fp32_bits(c[row * n + col]), spyre_fp32_bits(s));
			}
		}
		assert_memory_equal(first, e.seg[2], bytes);
		assert_int_equal(cycles, e.time.cycles);
		env_free(&e);
	}
	free(a);
	free(b);
	free(c);
	free(first);
}

/* --- What reads as zero, what is kept ------------------------------------------------------- */

/* Core c: stores LX 0 to segment 1 (read) or loads segment 0 there first (write). */
static void lx_job(struct env *e, uint32_t cores, bool write)
{
	struct spyreprog_job *j = spyreprog_job_new();
	unsigned int c;
	int p, u;

	for (c = 0; c < 32; c++) {
		if (!(cores & 1u << c))
			continue;
		if (write) {
			p = spyreprog_job_program(j, SPYRE_UNIT_L3LU);
			sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 0, 0);
			u = spyreprog_job_unit(j, c, SPYRE_UNIT_L3LU, 0, p);
		} else {
			p = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
			sp_l3(j, p, SPYRE_OP_L3_STU, R0, NOREG, E0, 32, 0, 0, 0);
			u = spyreprog_job_unit(j, c, SPYRE_UNIT_L3SU, 0, p);
			spyreprog_job_init(j, u, E0, SPYRE_NO_SYMBOL, ENV_SEGMENT(1) + c * 4096);
		}
		spyreprog_job_init(j, u, R0, SPYRE_NO_SYMBOL, 0x1ff000);
	}
	env_load_job(e, j);
}

static bool all(const uint8_t *p, size_t n, uint8_t v)
{
	while (n--)
		if (*p++ != v)
			return false;
	return true;
}

static void test_keep_lx(void **state)
{
	struct env e;

	(void)state;
	env_init(&e, 2);
	memset(env_map(&e, 0, 4096), 0x5a, 4096);
	env_map(&e, 1, 32 * 4096);

	/* Nothing to keep yet. */
	lx_job(&e, 3, false);
	assert_int_equal(env_run_flags(&e, NULL, 0, 1, true), SPYRE_ERR_LX_LOST);

	lx_job(&e, 3, true);
	assert_int_equal(env_run_flags(&e, NULL, 0, 1, false), SPYRE_OK);
	lx_job(&e, 3, false);
	assert_int_equal(env_run_flags(&e, NULL, 0, 1, true), SPYRE_OK);
	assert_true(all(e.seg[1], 8192, 0x5a));
	/* Without the flag it reads as zero, and is zero from then on. */
	memset(e.seg[1], 1, 32 * 4096);
	assert_int_equal(env_run_flags(&e, NULL, 0, 1, false), SPYRE_OK);
	assert_true(all(e.seg[1], 8192, 0));
	memset(e.seg[1], 1, 32 * 4096);
	assert_int_equal(env_run_flags(&e, NULL, 0, 1, true), SPYRE_OK);
	assert_true(all(e.seg[1], 8192, 0));

	/* Another context in between. */
	lx_job(&e, 3, true);
	assert_int_equal(env_run_flags(&e, NULL, 0, 1, false), SPYRE_OK);
	assert_int_equal(env_run_flags(&e, NULL, 0, 2, false), SPYRE_OK);
	lx_job(&e, 3, false);
	assert_int_equal(env_run_flags(&e, NULL, 0, 1, true), SPYRE_ERR_LX_LOST);
	assert_int_equal(env_run_flags(&e, NULL, 0, 2, true), SPYRE_OK);

	/*
	 * Context 1 writes cores 0 and 1; context 2 runs on core 0 alone, then keeps LX on both: core 1 must not
	 * show what context 1 left there.
	 */
	lx_job(&e, 3, true);
	assert_int_equal(env_run_flags(&e, NULL, 0, 1, false), SPYRE_OK);
	lx_job(&e, 1, true);
	assert_int_equal(env_run_flags(&e, NULL, 0, 2, false), SPYRE_OK);
	lx_job(&e, 3, false);
	assert_int_equal(env_run_flags(&e, NULL, 0, 2, true), SPYRE_OK);
	assert_true(all(e.seg[1], 4096, 0x5a));
	assert_true(all(e.seg[1] + 4096, 4096, 0));

	spyre_soc_reset(e.soc, 0xffffffff);
	assert_int_equal(env_run_flags(&e, NULL, 0, 2, true), SPYRE_ERR_LX_LOST);
	env_free(&e);
}

/* Rows, V registers and L0 of a job before do not show. */
static void test_zero_state(void **state)
{
	unsigned int round;
	struct env e;

	(void)state;
	env_init(&e, 1);
	memset(env_map(&e, 0, 64 * 128), 0x11, 64 * 128);
	env_map(&e, 1, 64 * 128);
	for (round = 0; round < 3; round++) {
		struct bench b;

		/* Odd rounds only read: rows, V0 and L0 as they are at the start. */
		begin(&b, 0, 0, 64, 6);
		b.pt = unit(&b, SPYRE_UNIT_PT);
		b.pe = unit(&b, SPYRE_UNIT_PE);
		b.l0lu = unit(&b, SPYRE_UNIT_L0LU);
		b.l0su = unit(&b, SPYRE_UNIT_L0SU);
		sp_pt_psout(b.job, b.pt, SPYRE_FIFO_PT_LXSU, 1, 0);
		sp_vec(b.job, b.pe, SPYRE_OP_MOV, F(PE_LXSU), 0, 0, 0, 1, 0, SPYRE_FMTS(0, 0, 0, SPYRE_IEEE_INT32));
		sp_ld(b.job, b.l0lu, R0, NOREG, SPYRE_FIFO_L0LU_PE, 2, 128, 0);
		sp_vec(b.job, b.pe, SPYRE_OP_MOV, F(PE_LXSU), F(L0LU_PE), 0, 0, 1, 0,
		       SPYRE_FMTS(SPYRE_IEEE_INT32, 0, 0, SPYRE_IEEE_INT32));
		sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PT_LXSU, 2, 128, 256);
		sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PE_LXSU, 4, 128, 0);
		sp_send(b.job, b.l0lu, 9, 0);
		sp_wait(b.job, b.l0su, 9, 1);
		if (!(round & 1)) {
			sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PT, 2, 128, 0);
			sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 2, 128, 0);
			sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_L0SU, 2, 128, 0);
			sp_pt_psin(b.job, b.pt, SPYRE_IEEE_INT32, SPYRE_FIFO_LXLU_PT, 1, 0);
			sp_vec(b.job, b.pe, SPYRE_OP_MOV, 0, F(LXLU_PE0), 0, 0, 1, 0,
			       SPYRE_FMTS(SPYRE_IEEE_INT32, 0, 0, 0));
			sp_st(b.job, b.l0su, R0, NOREG, SPYRE_FIFO_LXLU_L0SU, 2, 128, 0);
		}
		end(&b, &e);
		memset(e.seg[1], 1, 64 * 128);
		run_ok(&e);
		assert_true(all(e.seg[1], 6 * 128, 0));
	}
	env_free(&e);
}

/* What PE stored to LX straight from its words is as little the next job's as what went through FIFOs. */
static void test_zero_stored(void **state)
{
	unsigned int round;
	struct env e;

	(void)state;
	env_init(&e, 1);
	random_floats(env_map(&e, 0, 8 * 128), 8 * 64, SPYRE_SEN169_FP16);
	env_map(&e, 1, 32 * 128);
	for (round = 0; round < 3; round++) {
		struct bench b;

		begin(&b, 0, 0, 8, 32);
		if (!(round & 1)) {
			b.pe = unit(&b, SPYRE_UNIT_PE);
			sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 8, 128, 0);
			sp_vec(b.job, b.pe, SPYRE_OP_NEG, F(PE_LXSU), F(LXLU_PE0), 0, 0, 8, 0,
			       SPYRE_FMTS(SPYRE_SEN169_FP16, 0, 0, SPYRE_SEN169_FP16));
			sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PE_LXSU, 8, 128, 0);
		}
		end(&b, &e);
		memset(e.seg[1], 1, 32 * 128);
		run_ok(&e);
		assert_true(all(e.seg[1] + 8 * 128, 24 * 128, 0));
		assert_int_equal(all(e.seg[1], 8 * 128, 0), round & 1);
	}
	env_free(&e);
}

/* --- Launch --------------------------------------------------------------------------------- */

static void test_launch(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	int p = spyreprog_job_program(j, SPYRE_UNIT_L3SU), u;
	uint64_t syms[2] = { ENV_SEGMENT(1), 0 };
	struct spyre_soc_job req;
	struct env e;

	(void)state;
	env_init(&e, 1);
	env_map(&e, 1, 4096);
	sp_l3(j, p, SPYRE_OP_L3_STU, R0, NOREG, E0, 1, 0, 0, 0);
	u = spyreprog_job_unit(j, 5, SPYRE_UNIT_L3SU, 0, p);
	spyreprog_job_init(j, u, E0, 0, 128);
	env_load_job(&e, j);
	assert_int_equal(env_run(&e, syms, 1), SPYRE_OK);
	/* The second launch comes from the cache and costs the same modelled time. */
	u = (int)e.time.cycles;
	assert_int_equal(env_run(&e, syms, 1), SPYRE_OK);
	assert_int_equal(u, (int)e.time.cycles);

	assert_int_equal(env_run(&e, syms, 0), SPYRE_ERR_SYMBOLS);
	assert_int_equal(env_run(&e, syms, 2), SPYRE_ERR_SYMBOLS);
	syms[0] = ENV_SEGMENT(1) + 64;
	assert_int_equal(env_run(&e, syms, 1), SPYRE_ERR_FAULT);
	assert_int_equal(e.rb.rb_hmierr_syndrome, SPYRE_SYN_UNALIGNED);
	assert_int_equal(e.rb.rb_hmierr_mode, SPYRE_HMI_STORE);
	assert_int_equal(e.rb.rb_hmierr_addr, ENV_SEGMENT(1) + 192);
	syms[0] = ENV_SEGMENT(1) + 4096;
	assert_int_equal(env_run(&e, syms, 1), SPYRE_ERR_FAULT);
	assert_int_equal(e.rb.rb_hmierr_syndrome, SPYRE_SYN_PAGE_FAULT);
	assert_int_equal(e.rb.rb_hmierr_snid, 5);
	assert_int_equal(e.rb.err_core, 5);
	assert_int_equal(e.rb.err_unit, SPYRE_UNIT_L3SU);
	syms[0] = 1ull << 60;
	assert_int_equal(env_run(&e, syms, 1), SPYRE_ERR_FAULT);
	assert_int_equal(e.rb.rb_hmierr_syndrome, SPYRE_SYN_RANGE);
	e.ro = 2;
	syms[0] = ENV_SEGMENT(1);
	assert_int_equal(env_run(&e, syms, 1), SPYRE_ERR_FAULT);
	assert_int_equal(e.rb.rb_hmierr_syndrome, SPYRE_SYN_PERMISSION);
	e.ro = 0;

	req = (struct spyre_soc_job){ .bootaddr = ENV_SEGMENT(6), .mem = &e.mem };
	assert_false(spyre_soc_prepare(e.soc, &req, &e.time, &e.rb));
	assert_int_equal(e.rb.status, SPYRE_ERR_BOOTADDR);
	req.bootaddr = ENV_SEGMENT(7) + 64;
	assert_false(spyre_soc_prepare(e.soc, &req, &e.time, &e.rb));
	assert_int_equal(e.rb.status, SPYRE_ERR_BOOTADDR);
	req.bootaddr = ENV_SEGMENT(7) + (1 << 30);
	assert_false(spyre_soc_prepare(e.soc, &req, &e.time, &e.rb));
	assert_int_equal(e.rb.status, SPYRE_ERR_FAULT);
	assert_int_equal(e.rb.rb_hmierr_mode, SPYRE_HMI_FETCH);
	req.bootaddr = ENV_SEGMENT(7);
	req.nsymbols = 1;
	req.symbols = ENV_SEGMENT(7) + 8;
	assert_false(spyre_soc_prepare(e.soc, &req, &e.time, &e.rb));
	assert_int_equal(e.rb.status, SPYRE_ERR_FAULT);
	req.symbols_host = true;	/* 8 is enough there */
	assert_true(spyre_soc_prepare(e.soc, &req, &e.time, &e.rb));
	req.core_mask = 1;
	assert_false(spyre_soc_prepare(e.soc, &req, &e.time, &e.rb));
	assert_int_equal(e.rb.status, SPYRE_ERR_CORES);
	spyre_soc_reset(e.soc, ~(1u << 5));
	assert_int_equal(env_run(&e, syms, 1), SPYRE_ERR_CORES);
	spyre_soc_reset(e.soc, 0xffffffff);
	/* A changed container is seen at the next launch. */
	assert_int_equal(env_run(&e, syms, 1), SPYRE_OK);
	e.seg[7][300] ^= 1;
	assert_int_equal(env_run(&e, syms, 1), SPYRE_ERR_BAD_PROGRAM);
	assert_int_equal(e.rb.err_code, SPYRE_PE_DIGEST);
	env_free(&e);
}

static void fault_case(enum spyre_prog_err code, uint64_t lar, int32_t stride, enum spyre_op op, uint64_t ear)
{
	struct env e;
	struct bench b;
	int u;

	env_init(&e, 1);
	env_map(&e, 0, 4096);
	env_map(&e, 1, 4096);
	if (op == SPYRE_OP_L3_STC) {
		struct spyreprog_job *j = spyreprog_job_new();
		int p = spyreprog_job_program(j, SPYRE_UNIT_L3SU);

		sp_l3(j, p, SPYRE_OP_L3_STC, R0, NOREG, E0, 4, 0, 0, 0);
		u = spyreprog_job_unit(j, 3, SPYRE_UNIT_L3SU, 0, p);
		spyreprog_job_init(j, u, R0, SPYRE_NO_SYMBOL, lar);
		spyreprog_job_init(j, u, E0, SPYRE_NO_SYMBOL, ear);
		env_load_job(&e, j);
	} else {
		begin(&b, 0, 0, 1, 1);
		b.pe = unit(&b, SPYRE_UNIT_PE);
		sp_mvreg(b.job, b.lxlu, R0, NOREG, (int32_t)lar);
		sp_ld(b.job, b.lxlu, R0, NOREG, SPYRE_FIFO_LXLU_PE0, 4, stride, 0);
		sp_vec(b.job, b.pe, SPYRE_OP_MOV, F(PE_LXSU), F(LXLU_PE0), 0, 0, 4, 0, 0);
		sp_st(b.job, b.lxsu, R0, NOREG, SPYRE_FIFO_PE_LXSU, 4, 128, 0);
		end(&b, &e);
	}
	env_run(&e, NULL, 0);
	if (code == SPYRE_PE_NONE) {
		assert_int_equal(e.rb.status, SPYRE_OK);
	} else {
		assert_int_equal(e.rb.status, SPYRE_ERR_PROGRAM);
		assert_int_equal(e.rb.err_code, code);
		assert_int_equal(e.rb.err_unit, op == SPYRE_OP_L3_STC ? SPYRE_UNIT_L3SU : SPYRE_UNIT_LXLU);
		assert_int_equal(e.rb.err_pc, op == SPYRE_OP_L3_STC ? 0 : 2);
	}
	env_free(&e);
}

static void test_faults(void **state)
{
	(void)state;
	fault_case(SPYRE_PE_NONE, 0x1ffe00, 128, SPYRE_OP_LD, 0);
	fault_case(SPYRE_PE_LX_RANGE, 0x1ffe80, 128, SPYRE_OP_LD, 0);
	fault_case(SPYRE_PE_LX_RANGE, 0x200000, 128, SPYRE_OP_LD, 0);
	fault_case(SPYRE_PE_LX_RANGE, (uint64_t)-128, 128, SPYRE_OP_LD, 0);
	fault_case(SPYRE_PE_NONE, 0x180, -128, SPYRE_OP_LD, 0);
	fault_case(SPYRE_PE_LX_RANGE, 0x100, -128, SPYRE_OP_LD, 0);
	fault_case(SPYRE_PE_LX_RANGE, 0x1000, 0x7fffff80, SPYRE_OP_LD, 0);
	fault_case(SPYRE_PE_LX_RANGE, 0x1000, (int32_t)0x80000000, SPYRE_OP_LD, 0);
	fault_case(SPYRE_PE_ALIGN, 0x40, 128, SPYRE_OP_LD, 0);
	fault_case(SPYRE_PE_NONE, 0, 0, SPYRE_OP_L3_STC, 3u << 24 | 4096);
	fault_case(SPYRE_PE_CORE, 0, 0, SPYRE_OP_L3_STC, 4u << 24 | 4096);
	fault_case(SPYRE_PE_CORE, 0, 0, SPYRE_OP_L3_STC, 1ull << 62);
	fault_case(SPYRE_PE_LX_RANGE, 0, 0, SPYRE_OP_L3_STC, 3u << 24 | 0x1ffe80);
	fault_case(SPYRE_PE_ALIGN, 0, 0, SPYRE_OP_L3_STC, 3u << 24 | 0x40);
}

/*
 * Several cores fault: the one earliest in modelled time is named, whatever the threads do. Core c waits
 * through delay[c] idle cycles first.
 */
static void test_fault_order(void **state)
{
	static const uint32_t delay[] = { 5000, 3000, 400, 9000, 400, 7000 };
	struct spyreprog_job *j = spyreprog_job_new();
	struct env e;
	unsigned int c, i;
	int p = spyreprog_job_program(j, SPYRE_UNIT_L3LU), u;

	(void)state;
	env_init(&e, 4);
	sp_loop_reg(j, p, SPYRE_LCR0);
	spyreprog_job_insn(j, p, &(struct spyre_insn){ .op = SPYRE_OP_NOP });
	sp_end(j, p);
	sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0, 1, 0, 0, 0);
	for (c = 0; c < 6; c++) {
		u = spyreprog_job_unit(j, c, SPYRE_UNIT_L3LU, 0, p);
		spyreprog_job_init(j, u, SPYRE_LCR0, SPYRE_NO_SYMBOL, delay[c]);
	}
	env_load_job(&e, j);
	for (i = 0; i < 20; i++) {
		assert_int_equal(env_run(&e, NULL, 0), SPYRE_ERR_FAULT);
		assert_int_equal(e.rb.err_core, 2);
		assert_int_equal(e.rb.rb_hmierr_snid, 2);
		assert_int_equal(e.rb.err_pc, 2);
	}
	env_free(&e);
}

/* Multicast members that name different addresses: the lowest that differs from the first is named. */
static void test_group_mismatch(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	struct env e;
	unsigned int c, i;
	int p = spyreprog_job_program(j, SPYRE_UNIT_L3LU), u;

	(void)state;
	env_init(&e, 3);
	env_map(&e, 0, 1 << 20);
	spyreprog_job_group(j, 2, 0xf0);
	sp_loop(j, p, 100);
	sp_l3(j, p, SPYRE_OP_L3_LDM, R0, NOREG, E0, 4, 2, 0, 512);
	sp_addreg(j, p, E0, E0 + 1, 1);
	sp_end(j, p);
	for (c = 4; c < 8; c++) {
		u = spyreprog_job_unit(j, c, SPYRE_UNIT_L3LU, 0, p);
		spyreprog_job_init(j, u, E0 + 1, 0, c == 6 ? 128 : 0);
	}
	env_load_job(&e, j);
	for (i = 0; i < 10; i++) {
		uint64_t sym = 0;

		assert_int_equal(env_run(&e, &sym, 1), SPYRE_ERR_PROGRAM);
		assert_int_equal(e.rb.err_code, SPYRE_PE_GROUP_MISMATCH);
		assert_int_equal(e.rb.err_core, 6);
		assert_int_equal(e.rb.err_pc, 1);
	}
	env_free(&e);
}

/* A checkpoint that says stop ends the job; the next one runs as if nothing had been. */
static void test_cancel(void **state)
{
	struct spyregen_matmul mm = {
		.m = 256, .n = 256, .k = 256, .in = SPYRE_SEN169_FP16, .out = SPYRE_IEEE_FP32,
	};
	uint64_t syms[3] = { 0, ENV_SEGMENT(1), ENV_SEGMENT(2) }, total;
	unsigned int i;
	struct env e;
	char err[200];

	(void)state;
	env_init(&e, 3);
	env_load_job(&e, spyregen_matmul(&mm, err));
	env_map(&e, 0, spyregen_bytes(mm.in, 256, 256));
	env_map(&e, 1, spyregen_weight_bytes(mm.in, 256, 256));
	env_map(&e, 2, spyregen_bytes(mm.out, 256, 256));
	assert_int_equal(env_run(&e, syms, 3), SPYRE_OK);
	total = e.checkpoints;
	assert_true(total > 8);
	for (i = 1; i < 9; i++) {
		e.checkpoints = 0;
		e.stop_at = total * i / 10 + 1;
		assert_int_equal(env_run(&e, syms, 3), SPYRE_ERR_CANCELLED);
		assert_int_equal(e.active, 0);
	}
	e.stop_at = 0;
	assert_int_equal(env_run(&e, syms, 3), SPYRE_OK);
	env_free(&e);
}

/* More programs than the cache holds, each found again or decoded again, always the right one. */
static void test_cache(void **state)
{
	void *c[24];
	size_t n[24];
	unsigned int i, round;
	struct env e;

	(void)state;
	env_init(&e, 1);
	env_map(&e, 1, 4096);
	for (i = 0; i < 24; i++) {
		struct spyreprog_job *j = spyreprog_job_new();
		int p = spyreprog_job_program(j, SPYRE_UNIT_L3SU), k, u;

		/* 4 MiB each of instructions that never run but have to be kept. */
		sp_mvreg(j, p, E0, NOREG, (int32_t)(i * 128));
		sp_addreg(j, p, E0, E0 + 1, 1);
		sp_l3(j, p, SPYRE_OP_L3_STU, R0, NOREG, E0, 1, 0, 0, 0);
		sp_loop(j, p, 0);
		for (k = 0; k < (4 << 20) / 16; k++)
			spyreprog_job_insn(j, p, &(struct spyre_insn){ .op = SPYRE_OP_NOP });
		sp_end(j, p);
		u = spyreprog_job_unit(j, 0, SPYRE_UNIT_L3SU, 0, p);
		spyreprog_job_init(j, u, E0 + 1, SPYRE_NO_SYMBOL, ENV_SEGMENT(1));
		assert_int_equal(spyreprog_job_finish(j, &c[i], &n[i]), 0);
		spyreprog_job_free(j);
	}
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 24; i++) {
			env_load(&e, c[i], n[i]);
			memset(e.seg[1], 0xff, 4096);
			run_ok(&e);
			assert_true(all(e.seg[1] + i * 128, 128, 0));
			assert_true(all(e.seg[1], i * 128, 0xff));
		}
	}
	for (i = 0; i < 24; i++)
		free(c[i]);
	env_free(&e);
}

/* --- Random programs ------------------------------------------------------------------------ */

#define RC 3u			/* cores */
#define HALF_(k) ((uint32_t)(SPYRE_IEEE_INT32 | SPYRE_FMT_HALF) << (8 * (k)))

struct prog {
	struct spyre_insn insn[400];
	unsigned int n;
};

static void put(struct prog *p, struct spyre_insn i)
{
	if (p->n < 400)
		p->insn[p->n++] = i;
}

/* The end of a transfer that a unit has: words of FIFO f, or for the vector units between it and V3. */
static void put_end(struct prog *p, unsigned int kind, unsigned int f, unsigned int n, bool writes)
{
	if (kind == SPYRE_UNIT_LXLU || kind == SPYRE_UNIT_L0LU)
		put(p, (struct spyre_insn){ .op = SPYRE_OP_LD, .b = NOREG, .d = (uint8_t)f, .n = (uint16_t)n, .imm = 128 });
	else if (kind == SPYRE_UNIT_LXSU || kind == SPYRE_UNIT_L0SU)
		put(p, (struct spyre_insn){ .op = SPYRE_OP_ST, .b = NOREG, .d = (uint8_t)f, .n = (uint16_t)n, .imm = 128 });
	else if (kind == SPYRE_UNIT_PT)
		put(p, writes ?
		    (struct spyre_insn){ .op = SPYRE_OP_PT_PSOUT, .d = (uint8_t)f, .n = (uint16_t)(n / 2) } :
		    (struct spyre_insn){ .op = SPYRE_OP_PT_MM, .b = SPYRE_SENINT8, .c = 1, .d = (uint8_t)f, .n = (uint16_t)n });
	else if (writes)
		put(p, (struct spyre_insn){ .op = SPYRE_OP_MOV, .a = (uint8_t)SPYRE_OPND_FIFO(f), .b = 3, .n = (uint16_t)n,
					    .imm2 = HALF_(3) });
	else
		put(p, (struct spyre_insn){ .op = SPYRE_OP_IADD, .a = 3, .b = 3, .c = (uint8_t)SPYRE_OPND_FIFO(f),
					    .n = (uint16_t)n, .imm2 = HALF_(1) });
}

/*
 * Transfers in one order at both ends always get through; with some neighbours swapped they may deadlock.
 * Whatever the timing pass says holds: the functional pass gets to the end if it says so (else it would report
 * INTERNAL), with the same bits for any number of threads.
 */
static void test_random(void **state)
{
	static const uint8_t fifos[] = {
		SPYRE_FIFO_LXLU_PE0, SPYRE_FIFO_LXLU_PE1, SPYRE_FIFO_LXLU_SFP0, SPYRE_FIFO_LXLU_SFP1, SPYRE_FIFO_LXLU_PT,
		/* Nothing goes into L0: what comes out would have to be ordered behind it. */
		SPYRE_FIFO_L0LU_PE, SPYRE_FIFO_L0LU_SFP, SPYRE_FIFO_PT_PE, SPYRE_FIFO_PT_SFP,
		SPYRE_FIFO_PT_LXSU, SPYRE_FIFO_PE_SFP, SPYRE_FIFO_SFP_PE, SPYRE_FIFO_PE_LXSU, SPYRE_FIFO_SFP_LXSU,
		SPYRE_FIFO_RING,
	};
	static struct prog prog[RC][2][SPYRE_UNITS];
	unsigned int round, c, x, k, i, good = 0, dead = 0;
	struct env e[2];
	int u;

	(void)state;
	for (k = 0; k < 2; k++) {
		env_init(&e[k], k ? 3 : 1);
		env_map(&e[k], 0, 64 * 128);
		env_map(&e[k], 1, RC * 2 * 4096);
	}
	for (round = 0; round < 400; round++) {
		struct spyreprog_job *j = spyreprog_job_new();
		unsigned int swaps = round % 3 ? rnd() % 16 : 0;
		void *bin;
		size_t size;

		random_fill(e[0].seg[0], 64 * 128);
		memcpy(e[1].seg[0], e[0].seg[0], 64 * 128);
		memset(prog, 0, sizeof(prog));
		for (c = 0; c < RC; c++) {
			for (x = 0; x < 2; x++) {
				put(&prog[c][x][SPYRE_UNIT_LXLU],
				    (struct spyre_insn){ .op = SPYRE_OP_SYNC_WAIT, .a = (uint8_t)(40 + x), .n = 1 });
				put(&prog[c][x][SPYRE_UNIT_LXLU],
				    (struct spyre_insn){ .op = SPYRE_OP_LD, .b = NOREG, .d = SPYRE_FIFO_LXLU_PTW, .n = 64,
							 .imm = 128 });
				put(&prog[c][x][SPYRE_UNIT_PT],
				    (struct spyre_insn){ .op = SPYRE_OP_PT_LDW, .b = SPYRE_SENINT8,
							 .d = SPYRE_FIFO_LXLU_PTW });
			}
		}
		for (i = 0; i < 60; i++) {
			unsigned int f = fifos[rnd() % sizeof(fifos)], n = 2 * (1 + rnd() % 20), to;
			unsigned int w, r;

			c = rnd() % RC;
			x = rnd() & 1;
			w = isa_fifos[f].writer;
			r = isa_fifos[f].reader;
			to = f != SPYRE_FIFO_RING ? c : x ? (c + RC - 1) % RC : (c + 1) % RC;
			/* A ring's both ends are in one kind of unit: what it writes must fit before it reads. */
			if (f == SPYRE_FIFO_RING)
				n = 1 + n % 8;
			put_end(&prog[c][x][w], w, f, n, true);
			put_end(&prog[to][x][r], r, f, n, false);
			if (rnd() % 4 == 0) {
				/* A send to a random unit of a random core; tags are numbered by who waits. */
				unsigned int from = SPYRE_UNIT_LXLU + rnd() % 7, wait = SPYRE_UNIT_LXLU + rnd() % 7, oc = rnd() % RC;

				put(&prog[c][x][from],
				    (struct spyre_insn){ .op = SPYRE_OP_SYNC_SEND, .a = (uint8_t)(wait * 2 + x), .imm = 1u << oc });
				put(&prog[oc][x][wait],
				    (struct spyre_insn){ .op = SPYRE_OP_SYNC_WAIT, .a = (uint8_t)(wait * 2 + x), .n = 1 });
			}
		}
		while (swaps--) {
			struct prog *p = &prog[rnd() % RC][rnd() & 1][SPYRE_UNIT_LXLU + rnd() % 7];
			struct spyre_insn t;

			if (p->n < 4)
				continue;
			k = 2 + rnd() % (p->n - 3);
			t = p->insn[k];
			p->insn[k] = p->insn[k + 1];
			p->insn[k + 1] = t;
		}
		for (c = 0; c < RC; c++) {
			int p = spyreprog_job_program(j, SPYRE_UNIT_L3LU);

			sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 4096, 4096);
			sp_l3(j, p, SPYRE_OP_L3_LDU, R0, NOREG, E0, 32, 0, 0, 0);
			sp_send(j, p, 40, 0);
			sp_send(j, p, 41, 0);
			spyreprog_job_unit(j, c, SPYRE_UNIT_L3LU, 0, p);
			p = spyreprog_job_program(j, SPYRE_UNIT_L3SU);
			sp_wait(j, p, 42, 2);
			sp_l3(j, p, SPYRE_OP_L3_STU, R0, SPYRE_LBR0, E0, 32, 0, 0, 4096);
			sp_l3(j, p, SPYRE_OP_L3_STU, R0, SPYRE_LBR0 + 1, E0, 32, 0, 0, 0);
			u = spyreprog_job_unit(j, c, SPYRE_UNIT_L3SU, 0, p);
			spyreprog_job_init(j, u, SPYRE_LBR0, SPYRE_NO_SYMBOL, 65536);
			spyreprog_job_init(j, u, SPYRE_LBR0 + 1, SPYRE_NO_SYMBOL, 2 * 65536);
			spyreprog_job_init(j, u, E0, SPYRE_NO_SYMBOL, ENV_SEGMENT(1) + c * 8192);
			for (x = 0; x < 2; x++) {
				for (k = SPYRE_UNIT_LXLU; k < SPYRE_UNITS; k++) {
					p = spyreprog_job_program(j, k);
					for (i = 0; i < prog[c][x][k].n; i++)
						spyreprog_job_insn(j, p, &prog[c][x][k].insn[i]);
					if (k == SPYRE_UNIT_LXSU)
						sp_send(j, p, 42, 0);
					u = spyreprog_job_unit(j, c, k, x, p);
					if (k == SPYRE_UNIT_LXSU)
						spyreprog_job_init(j, u, R0, SPYRE_NO_SYMBOL, (1 + x) * 65536);
				}
			}
		}
		if (spyreprog_job_finish(j, &bin, &size))
			fail_msg("%s", spyreprog_job_error(j));
		spyreprog_job_free(j);
		for (k = 0; k < 2; k++) {
			env_load(&e[k], bin, size);
			env_run(&e[k], NULL, 0);
		}
		free(bin);
		if (e[0].rb.status != e[1].rb.status || e[0].time.cycles != e[1].time.cycles ||
		    (e[0].rb.status != SPYRE_OK && e[0].rb.status != SPYRE_ERR_DEADLOCK))
			fail_msg("round %u: status %u and %u, code %u core %d unit %x pc %u", round, e[0].rb.status,
				 e[1].rb.status, e[0].rb.err_code, (int16_t)e[0].rb.err_core, e[0].rb.err_unit,
				 e[0].rb.err_pc);
		assert_memory_equal(e[0].seg[1], e[1].seg[1], RC * 2 * 4096);
		good += e[0].rb.status == SPYRE_OK;
		dead += e[0].rb.status == SPYRE_ERR_DEADLOCK;
	}
	print_message("%u ran to the end, %u deadlocked\n", good, dead);
	assert_true(good > 40 && dead > 40);
	env_free(&e[0]);
	env_free(&e[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_l0),
		cmocka_unit_test(test_pt_kernels),
		cmocka_unit_test(test_pt),
		cmocka_unit_test(test_pt_dl16),
		cmocka_unit_test(test_pt_nan_to_int),
		cmocka_unit_test(test_vec),
		cmocka_unit_test(test_vec_odd),
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_vec_complete),
		cmocka_unit_test(test_cores),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_keep_lx),
		cmocka_unit_test(test_zero_state),
		cmocka_unit_test(test_zero_stored),
		cmocka_unit_test(test_launch),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_fault_order),
		cmocka_unit_test(test_group_mismatch),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_cache),
	};

	/* A test that hangs is a failed test. */
	alarm(900);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
