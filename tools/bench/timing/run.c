// SPDX-License-Identifier: MIT
/* Makes the program of a case and asks the model for its time: the timing pass alone, nothing is computed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "sha256.h"
#include "soc.h"
#include "time_params.h"

#define WORDS_MAX	32u	/* of a burst */
#define BURST_BYTES	(WORDS_MAX * SPYRE_STICK)
#define SYMBOLS		4u
#define SEGMENT(s)	((uint64_t)(s) << SPYRE_SEGMENT_SHIFT)

bool timing_held_out(const struct timing_case *c)
{
	uint8_t digest[32];
	struct sha256 s;
	unsigned int i, sum = 0;

	sha256_init(&s);
	sha256_update(&s, c->id, strlen(c->id));
	sha256_final(&s, digest);
	/* 256 is 1 modulo 3. */
	for (i = 0; i < sizeof(digest); i++)
		sum += digest[i];
	return sum % 3 == 0;
}

/* --- Programs that no generator makes ---------------------------------------------------------- */

/* bytes in bursts over one 1 MiB half of LX: where they lie in memory makes no difference. */
static void bursts(struct spyreprog_job *job, int p, enum spyre_op op, uint64_t bytes)
{
	sp_loop(job, p, (uint32_t)(bytes / BURST_BYTES));
	sp_l3(job, p, op, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, WORDS_MAX, 0, 0, BURST_BYTES);
	sp_end(job, p);
}

static void stream(struct spyreprog_job *job, const struct timing_case *c, uint32_t cores)
{
	int in = spyreprog_job_program(job, SPYRE_UNIT_L3LU), out = spyreprog_job_program(job, SPYRE_UNIT_L3SU), u;
	uint32_t i;

	if (c->rd)
		bursts(job, in, SPYRE_OP_L3_LDU, c->rd);
	if (c->wr)
		bursts(job, out, SPYRE_OP_L3_STU, c->wr);
	for (i = 0; i < cores; i++) {
		if (c->rd) {
			u = spyreprog_job_unit(job, i, SPYRE_UNIT_L3LU, 0, in);
			spyreprog_job_init(job, u, SPYRE_EAR0, 0, c->kind == TIMING_SHARED ? 0 : i * c->rd);
		}
		if (c->wr) {
			u = spyreprog_job_unit(job, i, SPYRE_UNIT_L3SU, 0, out);
			spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, SPYRE_LX_SIZE / 2);
			spyreprog_job_init(job, u, SPYRE_EAR0, 1, i * c->wr);
		}
	}
}

/* EAR of L3_STC: the core's number above, the address in its LX below. */
static void lx_shared(struct spyreprog_job *job, const struct timing_case *c, uint32_t cores)
{
	int p = spyreprog_job_program(job, SPYRE_UNIT_L3SU), idle = spyreprog_job_program(job, SPYRE_UNIT_L3SU);
	uint32_t i;

	spyreprog_job_unit(job, 0, SPYRE_UNIT_L3SU, 0, p);
	for (i = 1; i <= cores; i++) {
		sp_mvreg(job, p, SPYRE_EAR0, SPYRE_REG_NONE, (int32_t)(i << 24));
		sp_loop(job, p, (uint32_t)(c->rd / BURST_BYTES));
		sp_l3(job, p, SPYRE_OP_L3_STC, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, WORDS_MAX, 0, 0, 0);
		sp_end(job, p);
		spyreprog_job_unit(job, i, SPYRE_UNIT_L3SU, 0, idle);
	}
}

/* Half of the words for each corelet. */
static void lx_copy(struct spyreprog_job *job, const struct timing_case *c)
{
	uint32_t x, n = c->m / 2, raw = SPYRE_FMTS(SPYRE_SEN169_FP16, 0, 0, SPYRE_SEN169_FP16);
	int lu, su, pe, u;

	for (x = 0; x < 2; x++) {
		lu = spyreprog_job_program(job, SPYRE_UNIT_LXLU);
		pe = spyreprog_job_program(job, SPYRE_UNIT_PE);
		su = spyreprog_job_program(job, SPYRE_UNIT_LXSU);
		sp_ld(job, lu, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PE0, n, SPYRE_STICK, 0);
		sp_vec(job, pe, SPYRE_OP_MOV, SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU), SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0), 0,
		       0, n, 0, raw);
		sp_st(job, su, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_PE_LXSU, n, SPYRE_STICK, 0);
		u = spyreprog_job_unit(job, 0, SPYRE_UNIT_LXLU, x, lu);
		spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, x * n * SPYRE_STICK);
		spyreprog_job_unit(job, 0, SPYRE_UNIT_PE, x, pe);
		u = spyreprog_job_unit(job, 0, SPYRE_UNIT_LXSU, x, su);
		spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, SPYRE_LX_SIZE / 2 + x * n * SPYRE_STICK);
	}
}

/* Half of the sticks for each corelet: sums of m words, times 1 / m. */
static void lx_mean(struct spyreprog_job *job, const struct timing_case *c)
{
	uint32_t x, n = c->n / 2;
	int lu, su, pe, u;

	for (x = 0; x < 2; x++) {
		lu = spyreprog_job_program(job, SPYRE_UNIT_LXLU);
		pe = spyreprog_job_program(job, SPYRE_UNIT_PE);
		su = spyreprog_job_program(job, SPYRE_UNIT_LXSU);
		sp_ld(job, lu, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PE0, n * c->m, SPYRE_STICK, 0);
		sp_loop(job, pe, n);
		sp_vec(job, pe, SPYRE_OP_MOV, SPYRE_OPND_V(0), SPYRE_OPND_IMM, 0, 0, 1, 0, 0);
		sp_vec(job, pe, SPYRE_OP_ADD, SPYRE_OPND_V(0), SPYRE_OPND_V(0), SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0), 0,
		       c->m, 0, SPYRE_FMTS(0, SPYRE_SEN169_FP16, 0, 0));
		sp_vec(job, pe, SPYRE_OP_MUL, SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU), SPYRE_OPND_V(0), SPYRE_OPND_IMM, 0, 1,
		       0x3ca72f05u /* 1/49 */, SPYRE_FMTS(0, 0, 0, SPYRE_SEN169_FP16));
		sp_end(job, pe);
		sp_st(job, su, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_PE_LXSU, n, SPYRE_STICK, 0);
		u = spyreprog_job_unit(job, 0, SPYRE_UNIT_LXLU, x, lu);
		spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, x * n * c->m * SPYRE_STICK);
		spyreprog_job_unit(job, 0, SPYRE_UNIT_PE, x, pe);
		u = spyreprog_job_unit(job, 0, SPYRE_UNIT_LXSU, x, su);
		spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, SPYRE_LX_SIZE / 2 + x * n * SPYRE_STICK);
	}
}

/* --- Cases ------------------------------------------------------------------------------------- */

static struct spyreprog_job *make(const struct timing_case *c, char *err)
{
	uint32_t n = c->cores ? c->cores : 32, mask = n == 32 ? 0xffffffffu : (1u << n) - 1;
	struct spyregen_matmul mm = {
		.m = c->m, .n = c->n, .k = c->k, .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16, .cores = mask,
		.split_m = c->split_m, .split_n = c->split_n,
	};
	struct spyregen_elementwise ew = {
		.op = c->op, .m = c->m, .n = c->n, .in = SPYRE_SEN169_FP16, .out = SPYRE_SEN169_FP16, .scalar = 1,
		.cores = mask,
	};
	struct spyregen_row row = { .op = c->rowop, .m = c->m, .n = c->n, .fmt = SPYRE_SEN169_FP16, .cores = mask };
	struct spyreprog_job *job;

	switch (c->kind) {
	case TIMING_MATMUL:
		return spyregen_matmul(&mm, err);
	case TIMING_ELEMENTWISE:
		return spyregen_elementwise(&ew, err);
	case TIMING_ROW:
		return spyregen_row(&row, err);
	default:
		break;
	}
	job = spyreprog_job_new();
	if (!job) {
		strcpy(err, "out of memory");
		return NULL;
	}
	switch (c->kind) {
	case TIMING_LX_SHARED:
		lx_shared(job, c, n);
		break;
	case TIMING_LX_COPY:
		lx_copy(job, c);
		break;
	case TIMING_LX_MEAN:
		lx_mean(job, c);
		break;
	default:
		stream(job, c, n);
	}
	spyreprog_job_symbols(job, 2);
	return job;
}

void *timing_container(const struct timing_case *c, size_t *size, char *err)
{
	struct spyreprog_job *job = make(c, err);
	void *container = NULL;

	if (!job)
		return NULL;
	if (spyreprog_job_finish(job, &container, size)) {
		snprintf(err, 256, "%s", spyreprog_job_error(job));
		container = NULL;
	}
	spyreprog_job_free(job);
	return container;
}

/* Segment 7 as it is; nothing else is read before a job runs. */
struct image {
	uint8_t *p;
	size_t len;
};

static void *dmva(void *opaque, uint64_t addr, uint64_t *len, bool write, enum spyre_syndrome *syn)
{
	struct image *im = opaque;
	uint64_t off = addr - SEGMENT(7);

	if (addr < SEGMENT(7) || off >= im->len || write) {
		*syn = SPYRE_SYN_PAGE_FAULT;
		return NULL;
	}
	if (*len > im->len - off)
		*len = im->len - off;
	return im->p + off;
}

static void *hmva(void *opaque, uint64_t addr, uint64_t *len, enum spyre_syndrome *syn)
{
	return dmva(opaque, addr, len, false, syn);
}

bool timing_run(const struct timing_case *c, struct timing_result *r, char *err)
{
	struct spyre_soc_config cfg = {
		.threads = 1, .cores = 0xffffffffu, .core_hz = c->core_hz ? c->core_hz : SPYRE_CORE_HZ,
		.soc_hz = SPYRE_SOC_HZ, .watchdog = 1ull << 40,
	};
	static const uint64_t symbols[SYMBOLS] = { SEGMENT(0), SEGMENT(1), SEGMENT(2), SEGMENT(3) };
	uint32_t times = c->times ? c->times : 1;
	struct spyre_soc_job job = { .bootaddr = SEGMENT(7) };
	struct spyre_rb rb = { 0 };
	struct image im;
	struct spyre_soc_mem mem = { .opaque = &im, .dmva = dmva, .hmva = hmva };
	struct spyre_soc *soc;
	double bytes, macs;
	size_t size;
	void *p = timing_container(c, &size, err);
	bool ok;

	if (!p)
		return false;
	im.len = (size + SPYRE_STICK - 1) / SPYRE_STICK * SPYRE_STICK + sizeof(symbols);
	im.p = realloc(p, im.len);
	soc = im.p ? spyre_soc_new(&cfg) : NULL;
	if (!soc) {
		strcpy(err, "out of memory");
		free(im.p ? im.p : p);
		return false;
	}
	memset(im.p + size, 0, im.len - size);
	memcpy(im.p + im.len - sizeof(symbols), symbols, sizeof(symbols));
	job.symbols = SEGMENT(7) + im.len - sizeof(symbols);
	job.nsymbols = ((struct spyre_job_header *)im.p)->nsymbols;
	job.mem = &mem;
	ok = spyre_soc_prepare(soc, &job, &r->time, &rb);
	if (!ok)
		snprintf(err, 256, "status %u, code %u, core %d, unit %u, pc %u", rb.status, rb.err_code,
			 (int16_t)rb.err_core, rb.err_unit, rb.err_pc);
	spyre_soc_free(soc);
	free(im.p);
	if (!ok)
		return false;
	r->us = (double)times * (double)r->time.cycles * 1e6 / cfg.core_hz;
	/* Operands must be read and results written once, however the work is divided. */
	bytes = c->kind == TIMING_MATMUL ?
		2.0 * ((double)c->m * c->k + (double)c->k * c->n + (double)c->m * c->n) / TIME_HMI_BYTES_S :
		c->kind == TIMING_ROW ? 2.0 * (double)c->m * c->n / TIME_HMI_BYTES_S :
		c->kind == TIMING_LX_SHARED ? (double)c->rd * c->cores / TIME_MNI_OUT_BYTES_S :
		(double)(r->time.rd_bytes + r->time.wr_bytes) / TIME_HMI_BYTES_S;
	macs = (double)c->m * c->n * c->k / (1024.0 * (c->cores ? c->cores : 32) * cfg.core_hz);
	r->peak_us = times * (bytes > macs ? bytes : macs) * 1e6;
	return true;
}
