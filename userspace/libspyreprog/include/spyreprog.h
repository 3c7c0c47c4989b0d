/* SPDX-License-Identifier: MIT */
/*
 * libspyreprog: job binaries for the Spyre card. Builds containers (include/spyre/isa.h),
 * translates them to text and back, and writes SpyreCode directories. Program generators are in
 * spyregen.h.
 *
 * No global state; a job belongs to one thread at a time. Functions that build are sticky on error:
 * the first mistake is remembered, later calls do nothing, and spyreprog_job_finish() reports it.
 */
#ifndef SPYREPROG_H
#define SPYREPROG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <spyre/isa.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Building ------------------------------------------------------------------------------- */

struct spyreprog_job;

/* NULL when out of memory. */
struct spyreprog_job *spyreprog_job_new(void);
void spyreprog_job_free(struct spyreprog_job *job);

/* What went wrong first, or NULL. Owned by the job. */
const char *spyreprog_job_error(const struct spyreprog_job *job);

/* Core cycles the job may take; 0: the card's cap. */
void spyreprog_job_watchdog(struct spyreprog_job *job, uint64_t cycles);
/* Symbols the launch must give, 0 to 256. Grows by itself when an initial value names one. */
void spyreprog_job_symbols(struct spyreprog_job *job, unsigned int count);
/* Multicast group 0 to 15: the cores that take part. */
void spyreprog_job_group(struct spyreprog_job *job, unsigned int group, uint32_t cores);

/* A constant word of 64 lanes, fp32 or int32 bits. Its index (equal words share one), or -1. */
int spyreprog_job_const(struct spyreprog_job *job, const uint32_t lanes[SPYRE_LANES]);
int spyreprog_job_const_fp32(struct spyreprog_job *job, float value);

/* An empty program for a kind of unit. Returns its number, or -1. */
int spyreprog_job_program(struct spyreprog_job *job, enum spyre_unit unit);
/* Appends an instruction as it is. */
void spyreprog_job_insn(struct spyreprog_job *job, int program, const struct spyre_insn *insn);

/*
 * A core's unit runs a program. corelet is 0 for L3LU and L3SU. Order is free; finish() sorts the
 * directory. Returns a handle for spyreprog_job_init(), or -1.
 */
int spyreprog_job_unit(struct spyreprog_job *job, unsigned int core, enum spyre_unit unit,
		       unsigned int corelet, int program);
/* Start value of a register: value, plus symbol's (SPYRE_NO_SYMBOL: none). */
void spyreprog_job_init(struct spyreprog_job *job, int unit, unsigned int reg, unsigned int symbol,
			uint64_t value);

/*
 * The container with its digest. Returns 0 and malloc()ed bytes in *out, or -1: see
 * spyreprog_job_error(). Programs get a RETURN if their last instruction is none; open loops are an
 * error.
 */
int spyreprog_job_finish(struct spyreprog_job *job, void **out, size_t *size);

/*
 * Puts second, which is freed, behind job: its units load nothing before all results of job are in
 * memory. symbols[i] is the number in job of second's symbol i; NULL: the same. At most 15 follow;
 * each starts with L3LU on every core, and together they have at most one set of multicast groups.
 * Registers that second gives no start value, and LX, hold what job left there. Tags 63, 62, ... are
 * taken, one for each job that follows: neither may use them.
 */
void spyreprog_job_then(struct spyreprog_job *job, struct spyreprog_job *second,
			const unsigned int *symbols);
/* Programs that turn out equal are written once. Their numbers change in finish(). */
void spyreprog_job_share(struct spyreprog_job *job);

/* Recomputes the digest of a container that was changed on purpose. */
void spyreprog_seal(void *container, size_t size);

/* --- Instructions by name ------------------------------------------------------------------- */

/* Registers are enum spyre_reg numbers: SPYRE_LAR0 + i and so on; SPYRE_REG_NONE where none. */
void sp_loop(struct spyreprog_job *job, int p, uint32_t count);
void sp_loop_reg(struct spyreprog_job *job, int p, unsigned int lcr);
/* Ends the innermost open block after the last instruction. */
void sp_end(struct spyreprog_job *job, int p);
void sp_addimm(struct spyreprog_job *job, int p, unsigned int reg, int32_t imm);
void sp_addreg(struct spyreprog_job *job, int p, unsigned int reg, unsigned int src, int32_t times);
void sp_mvreg(struct spyreprog_job *job, int p, unsigned int reg, unsigned int src, int32_t imm);
/* cores 0: the own core. */
void sp_send(struct spyreprog_job *job, int p, unsigned int tag, uint32_t cores);
void sp_wait(struct spyreprog_job *job, int p, unsigned int tag, unsigned int n);
/* op L3_LDU, L3_STU, L3_STC; L3_LDM takes a group. */
void sp_l3(struct spyreprog_job *job, int p, enum spyre_op op, unsigned int lar, unsigned int lbr,
	   unsigned int ear, unsigned int burst, unsigned int group, int32_t lar_inc,
	   int32_t ear_inc);
void sp_ld(struct spyreprog_job *job, int p, unsigned int lar, unsigned int lbr, unsigned int fifo,
	   unsigned int n, int32_t stride, int32_t lar_inc);
void sp_st(struct spyreprog_job *job, int p, unsigned int lar, unsigned int lbr, unsigned int fifo,
	   unsigned int n, int32_t stride, int32_t lar_inc);
void sp_pt_ldw(struct spyreprog_job *job, int p, unsigned int tile, enum spyre_format fmt,
	       unsigned int fifo);
void sp_pt_mm(struct spyreprog_job *job, int p, unsigned int tile, enum spyre_format fmt, bool onto,
	      unsigned int fifo, unsigned int n, unsigned int row);
void sp_pt_psout(struct spyreprog_job *job, int p, unsigned int fifo, unsigned int n,
		 unsigned int row);
void sp_pt_psin(struct spyreprog_job *job, int p, enum spyre_format fmt, unsigned int fifo,
		unsigned int n, unsigned int row);
/* Vector operation; operands SPYRE_OPND_*, fmts from SPYRE_FMTS(b, c, d, a), unused operands 0. */
void sp_vec(struct spyreprog_job *job, int p, enum spyre_op op, unsigned int a, unsigned int b,
	    unsigned int c, unsigned int d, unsigned int n, uint32_t imm, uint32_t fmts);

/* --- Text ----------------------------------------------------------------------------------- */

/* Where and why a translation stopped. line and column count from 1; 0: not about a place. */
struct spyreprog_err {
	unsigned int line, column;
	char text[240];
};

/*
 * Text (see spyre-as(1)) to container. Also takes the public init.txt form: lines of 256 hex
 * digits, a stick each, last byte first. names may be NULL; else it receives what Symbol lines
 * name, by symbol number, malloc()ed strings or NULL. Returns 0, or -1 with *err.
 */
int spyreprog_assemble(const char *text, size_t len, void **out, size_t *size,
		       char *names[SPYRE_JOB_SYMBOLS], struct spyreprog_err *err);

/* Container to text. Assembling the result gives the same bytes again. */
/* Core by core with each program's text, in the public dump's manner. */
#define SPYREPROG_DIS_EXPAND	(1u << 0)
int spyreprog_disassemble(const void *container, size_t size, unsigned int flags, FILE *out,
			  struct spyreprog_err *err);

/* The instruction tables of the manual as reStructuredText. */
void spyreprog_print_rst(FILE *out);

/* Names as in the text form: "l3lu", "LAR0", "LXLU_PT", "SEN169_FP16"; NULL when there is none. */
const char *spyreprog_unit_name(unsigned int unit);
const char *spyreprog_reg_name(unsigned int reg);
const char *spyreprog_fifo_name(unsigned int fifo);
const char *spyreprog_format_name(unsigned int format);

#ifdef __cplusplus
}
#endif
#endif
