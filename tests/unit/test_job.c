// SPDX-License-Identifier: MIT
/*
 * The container checker: every refusal has a case that names code, place and unit, and no bytes whatever
 * crash it or what runs after it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "job.h"
#include "pt.h"
#include "test_soc_env.h"
#include "vec.h"

/* A container that uses every section: load, matmul, vector operation with a constant, store. */
static void *good(size_t *size)
{
	struct spyreprog_job *job = spyreprog_job_new();
	uint32_t lanes[SPYRE_LANES];
	int p[6], u;
	void *out;
	unsigned int i, core;

	for (i = 0; i < SPYRE_LANES; i++)
		lanes[i] = 0x3f800000;
	p[0] = spyreprog_job_program(job, SPYRE_UNIT_L3LU);
	sp_loop(job, p[0], 2);
	sp_l3(job, p[0], SPYRE_OP_L3_LDM, SPYRE_LAR0, SPYRE_LBR0, SPYRE_EAR0, 32, 3, 4096, 4096);
	sp_end(job, p[0]);
	sp_l3(job, p[0], SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 2, 0, 256, 256);
	sp_send(job, p[0], 1, 0);
	p[1] = spyreprog_job_program(job, SPYRE_UNIT_LXLU);
	sp_wait(job, p[1], 1, 1);
	sp_ld(job, p[1], SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PTW, 64, 128, 8192);
	sp_ld(job, p[1], SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PT, 2, 128, 0);
	p[2] = spyreprog_job_program(job, SPYRE_UNIT_PT);
	sp_pt_ldw(job, p[2], 5, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
	sp_pt_mm(job, p[2], 5, SPYRE_SEN169_FP16, false, SPYRE_FIFO_LXLU_PT, 2, 7);
	sp_pt_psout(job, p[2], SPYRE_FIFO_PT_PE, 2, 7);
	p[3] = spyreprog_job_program(job, SPYRE_UNIT_PE);
	sp_vec(job, p[3], SPYRE_OP_ADD, SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU), SPYRE_OPND_FIFO(SPYRE_FIFO_PT_PE),
	       SPYRE_OPND_CONST(spyreprog_job_const(job, lanes)), 0, 2, 0,
	       SPYRE_FMTS(SPYRE_IEEE_FP32, 0, 0, SPYRE_SEN169_FP16));
	p[4] = spyreprog_job_program(job, SPYRE_UNIT_LXSU);
	sp_st(job, p[4], SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_PE_LXSU, 2, 128, 256);
	sp_send(job, p[4], 2, 0);
	p[5] = spyreprog_job_program(job, SPYRE_UNIT_L3SU);
	sp_wait(job, p[5], 2, 1);
	sp_l3(job, p[5], SPYRE_OP_L3_STU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 2, 0, 0, 0);
	spyreprog_job_group(job, 3, 0x6);
	for (core = 1; core < 3; core++) {
		u = spyreprog_job_unit(job, core, SPYRE_UNIT_L3LU, 0, p[0]);
		spyreprog_job_init(job, u, SPYRE_EAR0, 0, 0);
		u = spyreprog_job_unit(job, core, SPYRE_UNIT_LXLU, 1, p[1]);
		u = spyreprog_job_unit(job, core, SPYRE_UNIT_PT, 1, p[2]);
		u = spyreprog_job_unit(job, core, SPYRE_UNIT_PE, 1, p[3]);
		u = spyreprog_job_unit(job, core, SPYRE_UNIT_LXSU, 1, p[4]);
		spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, 65536);
		u = spyreprog_job_unit(job, core, SPYRE_UNIT_L3SU, 0, p[5]);
		spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, 65536);
		spyreprog_job_init(job, u, SPYRE_EAR0, 1, (core - 1) * 256);
	}
	if (spyreprog_job_finish(job, &out, size))
		fail_msg("%s", spyreprog_job_error(job));
	spyreprog_job_free(job);
	return out;
}

static struct spyre_job_header *head(void *c)
{
	return c;
}

#define AT(c, off, type, i) ((type *)((uint8_t *)(c) + head(c)->off) + (i))
#define PROG(c, i) AT(c, programs_off, struct spyre_job_program, i)
#define UNIT(c, i) AT(c, units_off, struct spyre_job_unit, i)
#define INIT(c, i) AT(c, inits_off, struct spyre_job_init, i)

/* First instruction with this opcode. */
static struct spyre_insn *insn(void *c, unsigned int op)
{
	struct spyre_insn *i = AT(c, text_off, struct spyre_insn, 0);

	while (i->op != op)
		i++;
	return i;
}

static struct job *decode(void *c, size_t size, struct job_error *e)
{
	uint8_t *raw = malloc(size);
	struct job *job;

	memcpy(raw, c, size);
	job = spyre_job_decode(raw, size, e);
	if (!job)
		free(raw);
	return job;
}

static void test_good(void **state)
{
	struct job_error e;
	struct job *job;
	size_t size;
	void *c = good(&size);

	(void)state;
	job = decode(c, size, &e);
	if (!job)
		fail_msg("error %u core %u unit %x pc %u", e.code, e.core, e.unit, e.pc);
	assert_int_equal(job->core_mask, 6);
	assert_int_equal(job->nsymbols, 2);
	assert_non_null(job->unit[1][SPYRE_UNIT_L3LU]);
	assert_non_null(job->unit[2][job_unit_index(SPYRE_UNIT_PE, 1)]);
	assert_null(job->unit[2][job_unit_index(SPYRE_UNIT_PE, 0)]);
	assert_int_equal(job->consts[0][63], 0x3f800000);
	assert_int_equal(job->groups[3], 6);
	spyre_job_free(job);
	free(c);
}

static size_t file_size;

static void expect(void *c, bool seal, enum spyre_prog_err code, int line)
{
	struct job_error e;
	struct job *job;

	if (seal)
		spyreprog_seal(c, file_size);
	job = decode(c, file_size, &e);
	if (job || e.code != code)
		fail_msg("line %d: got %s %u (core %x unit %x pc %u), expected %u", line, job ? "a job," : "error",
			 e.code, e.core, e.unit, e.pc, code);
}

/* Changes a good container and expects it to be refused. */
#define REFUSE(code, change) do { \
	void *c = good(&file_size); \
	change; \
	expect(c, true, code, __LINE__); \
	free(c); \
} while (0)

static void test_container(void **state)
{
	struct job_error e;
	void *c;

	(void)state;
	REFUSE(SPYRE_PE_MAGIC, head(c)->magic ^= 1);
	REFUSE(SPYRE_PE_TOO_OLD, head(c)->major = 0);
	REFUSE(SPYRE_PE_TOO_NEW, head(c)->major = 2);
	REFUSE(SPYRE_PE_TOO_NEW, head(c)->minor = 1);
	REFUSE(SPYRE_PE_SIZE, head(c)->size = 0);
	REFUSE(SPYRE_PE_SIZE, head(c)->size += 64);
	REFUSE(SPYRE_PE_SIZE, head(c)->size += 128);
	REFUSE(SPYRE_PE_SIZE, head(c)->size = SPYRE_JOB_MAX + 128);
	REFUSE(SPYRE_PE_RESERVED, head(c)->flags = 1);
	REFUSE(SPYRE_PE_RESERVED, head(c)->reserved[1] = 1);
	REFUSE(SPYRE_PE_CORE_MASK, head(c)->core_mask = 0);
	REFUSE(SPYRE_PE_CORE_MASK, head(c)->core_mask |= 1);
	REFUSE(SPYRE_PE_GROUP, head(c)->core_mask &= ~2u);
	REFUSE(SPYRE_PE_CONST, head(c)->nconsts = 129);
	REFUSE(SPYRE_PE_INIT, head(c)->nsymbols = 257);
	REFUSE(SPYRE_PE_INIT, head(c)->nsymbols = 1);
	REFUSE(SPYRE_PE_PROGRAM, head(c)->nprograms = 0);
	REFUSE(SPYRE_PE_UNIT, head(c)->nunits = 0);
	REFUSE(SPYRE_PE_SECTION, head(c)->nprograms = 0x7fffffff);
	REFUSE(SPYRE_PE_SECTION, head(c)->ninsns = 0xffffffff);
	REFUSE(SPYRE_PE_SECTION, head(c)->text_off += 16);
	REFUSE(SPYRE_PE_SECTION, head(c)->text_off = head(c)->size);
	REFUSE(SPYRE_PE_SECTION, head(c)->text_off = 0xffffff80);
	REFUSE(SPYRE_PE_SECTION, head(c)->text_off = 0);
	REFUSE(SPYRE_PE_SECTION, head(c)->inits_off = head(c)->text_off);
	REFUSE(SPYRE_PE_SECTION, head(c)->nconsts = 0);
	REFUSE(SPYRE_PE_PROGRAM, PROG(c, 0)->unit = SPYRE_UNITS);
	REFUSE(SPYRE_PE_PROGRAM, PROG(c, 0)->count = 0);
	REFUSE(SPYRE_PE_PROGRAM, PROG(c, 0)->count--);
	REFUSE(SPYRE_PE_PROGRAM, PROG(c, 0)->first = 0xffffffff);
	REFUSE(SPYRE_PE_PROGRAM, (PROG(c, 1)->first = PROG(c, 0)->first, PROG(c, 1)->count = PROG(c, 0)->count));
	REFUSE(SPYRE_PE_RESERVED, PROG(c, 0)->reserved = 1);
	REFUSE(SPYRE_PE_UNIT, UNIT(c, 0)->unit = SPYRE_UNITS);
	REFUSE(SPYRE_PE_UNIT, UNIT(c, 0)->core = 32);
	REFUSE(SPYRE_PE_UNIT, UNIT(c, 0)->corelet = 1);	/* L3LU */
	REFUSE(SPYRE_PE_UNIT, UNIT(c, 0)->program = 99);
	REFUSE(SPYRE_PE_UNIT, UNIT(c, 0)->program = 1);
	REFUSE(SPYRE_PE_UNIT, *UNIT(c, 1) = *UNIT(c, 0));
	REFUSE(SPYRE_PE_RESERVED, UNIT(c, 0)->reserved = 1);
	REFUSE(SPYRE_PE_INIT, UNIT(c, 0)->ninits = 17);
	REFUSE(SPYRE_PE_INIT, UNIT(c, 0)->init = 0xffffffff);
	REFUSE(SPYRE_PE_INIT, INIT(c, 0)->reg = 16);
	REFUSE(SPYRE_PE_INIT, INIT(c, 0)->symbol = 2);
	REFUSE(SPYRE_PE_RESERVED, INIT(c, 0)->reserved = 1);
	REFUSE(SPYRE_PE_INIT, INIT(c, 2)->reg = INIT(c, 1)->reg);
	/* Bytes that no section covers. */
	REFUSE(SPYRE_PE_RESERVED, *((uint8_t *)PROG(c, head(c)->nprograms)) = 1);

	c = good(&file_size);
	((uint8_t *)c)[file_size - 1] ^= 1;
	expect(c, false, SPYRE_PE_DIGEST, __LINE__);
	assert_null(spyre_job_decode(c, 64, &e));
	assert_int_equal(e.code, SPYRE_PE_SIZE);
	free(c);
}

static void test_instructions(void **state)
{
	(void)state;
#define OP(op) insn(c, SPYRE_OP_##op)
	REFUSE(SPYRE_PE_OPCODE, OP(ADD)->op = 0xee);
	REFUSE(SPYRE_PE_OPCODE, OP(ADD)->op = SPYRE_OP_PT_MM);
	REFUSE(SPYRE_PE_OPCODE, OP(ADD)->op = SPYRE_OP_EXP);	/* SFP only */
	REFUSE(SPYRE_PE_FIELD, OP(L3_LDU)->n = 0);
	REFUSE(SPYRE_PE_FIELD, OP(L3_LDU)->n = 33);
	REFUSE(SPYRE_PE_FIELD, OP(L3_LDU)->d = 1);
	REFUSE(SPYRE_PE_REGISTER, OP(L3_LDU)->a = SPYRE_LBR0);
	REFUSE(SPYRE_PE_REGISTER, OP(L3_LDU)->b = SPYRE_LAR0);
	REFUSE(SPYRE_PE_REGISTER, OP(L3_LDU)->c = 16);
	REFUSE(SPYRE_PE_GROUP, OP(L3_LDM)->d = 16);
	REFUSE(SPYRE_PE_GROUP, OP(L3_LDM)->d = 2);
	REFUSE(SPYRE_PE_GROUP, AT(c, groups_off, uint32_t, 3)[0] = 2);
	REFUSE(SPYRE_PE_GROUP, AT(c, groups_off, uint32_t, 5)[0] = 8);
	REFUSE(SPYRE_PE_LOOP, OP(MVLOOPCNT)->be = 1);
	REFUSE(SPYRE_PE_LOOP, OP(L3_LDM)->be = 2);
	REFUSE(SPYRE_PE_LOOP, OP(L3_LDM)->be = 0);
	REFUSE(SPYRE_PE_LOOP, OP(RETURN)->be = 1);
	REFUSE(SPYRE_PE_FIELD, OP(MVLOOPCNT)->n = 1);
	REFUSE(SPYRE_PE_REGISTER, (OP(MVLOOPCNT)->imm = 0, OP(MVLOOPCNT)->c = 1));
	REFUSE(SPYRE_PE_FIELD, OP(MVLOOPCNT)->c = 2);
	REFUSE(SPYRE_PE_TAG, OP(SYNC_SEND)->a = 64);
	REFUSE(SPYRE_PE_FIELD, OP(SYNC_SEND)->imm = 1);	/* core 0 is not in the job */
	REFUSE(SPYRE_PE_FIELD, OP(SYNC_WAIT)->n = 0);
	REFUSE(SPYRE_PE_TAG, insn(c, SPYRE_OP_SYNC_WAIT)[0].a = 2);	/* L3SU waits for it too */
	REFUSE(SPYRE_PE_FIFO, OP(LD)->d = SPYRE_FIFO_PE_LXSU);
	REFUSE(SPYRE_PE_FIFO, OP(LD)->d = 19);
	REFUSE(SPYRE_PE_FIFO, OP(ST)->d = SPYRE_FIFO_LXLU_PT);
	REFUSE(SPYRE_PE_FIELD, OP(LD)->imm = 64);
	REFUSE(SPYRE_PE_FIELD, OP(LD)->n = 0);
	REFUSE(SPYRE_PE_FIELD, OP(LD)->c = 1);
	REFUSE(SPYRE_PE_FIELD, OP(PT_LDW)->a = 8);
	REFUSE(SPYRE_PE_FIFO, OP(PT_LDW)->d = SPYRE_FIFO_LXLU_PT);
	REFUSE(SPYRE_PE_FORMAT, OP(PT_LDW)->b = SPYRE_IEEE_FP32);
	REFUSE(SPYRE_PE_FORMAT, OP(PT_MM)->b = SPYRE_SEN18F_FP24);
	REFUSE(SPYRE_PE_FIELD, OP(PT_MM)->n = 129);
	REFUSE(SPYRE_PE_FIELD, OP(PT_MM)->imm = 127);
	REFUSE(SPYRE_PE_FIELD, OP(PT_MM)->imm = 0xffffffff);
	REFUSE(SPYRE_PE_FIELD, OP(PT_MM)->c = 2);
	REFUSE(SPYRE_PE_FIFO, OP(PT_PSOUT)->d = SPYRE_FIFO_LXLU_PT);
	REFUSE(SPYRE_PE_FIFO, OP(ADD)->b = SPYRE_OPND_FIFO(SPYRE_FIFO_PE_LXSU));
	REFUSE(SPYRE_PE_FIFO, OP(ADD)->a = SPYRE_OPND_FIFO(SPYRE_FIFO_PT_PE));
	REFUSE(SPYRE_PE_FIFO, OP(ADD)->a = SPYRE_OPND_FIFO(31));
	REFUSE(SPYRE_PE_CONST, OP(ADD)->c = SPYRE_OPND_CONST(1));
	REFUSE(SPYRE_PE_FIELD, OP(ADD)->c = 0x50);
	REFUSE(SPYRE_PE_FIELD, OP(ADD)->c = SPYRE_OPND_NONE);
	REFUSE(SPYRE_PE_FIELD, OP(ADD)->d = 3);
	REFUSE(SPYRE_PE_FIELD, OP(ADD)->n = 0);
	REFUSE(SPYRE_PE_FIELD, OP(ADD)->imm = 5);
	REFUSE(SPYRE_PE_FORMAT, OP(ADD)->imm2 = SPYRE_FMTS(SPYRE_SENINT8, 0, 0, 0));
	REFUSE(SPYRE_PE_FORMAT, OP(ADD)->imm2 = SPYRE_FMTS(SPYRE_SEN152_FP8, 0, 0, 0));
	REFUSE(SPYRE_PE_FORMAT, OP(ADD)->imm2 = SPYRE_FMTS(SPYRE_SEN169_FP16 | SPYRE_FMT_HALF, 0, 0, 0));
	REFUSE(SPYRE_PE_FORMAT, OP(ADD)->imm2 = SPYRE_FMTS(0, 1, 0, 0));
}

/* Where an instruction error is reported: first core that runs it, unit, corelet, index in the program. */
static void test_place(void **state)
{
	struct job_error e;
	size_t size;
	void *c = good(&size);

	(void)state;
	insn(c, SPYRE_OP_PT_PSOUT)->d = 0;
	spyreprog_seal(c, size);
	assert_null(decode(c, size, &e));
	assert_int_equal(e.code, SPYRE_PE_FIFO);
	assert_int_equal(e.core, 1);
	assert_int_equal(e.unit, SPYRE_UNIT_PT | 1 << 8);
	assert_int_equal(e.pc, 2);
	free(c);
}

/* --- Container, every field ----------------------------------------------------------------- */

#define OFF(m) offsetof(struct spyre_job_header, m)

static void expect_at(void *c, enum spyre_prog_err code, uint32_t at, const char *what)
{
	struct job_error e;
	struct job *job;

	spyreprog_seal(c, file_size);
	job = decode(c, file_size, &e);
	if (job || e.code != code || e.pc != at || e.core != 0xffff || e.unit != 0xffff)
		fail_msg("%s: got %s %u at %u (core %x unit %x), expected %u at %u", what, job ? "a job," : "error", e.code,
			 e.pc, e.core, e.unit, code, at);
}

#define REFUSE_AT(code, at, change) do { \
	void *c = good(&file_size); \
	uint32_t at_; \
	change; \
	at_ = (uint32_t)(at); \
	expect_at(c, code, at_, #change); \
	free(c); \
} while (0)

/* Code and byte offset of each malformed field. */
static void test_container_places(void **state)
{
	static const uint32_t off[] = { OFF(programs_off), OFF(units_off), OFF(inits_off), OFF(text_off),
					OFF(consts_off), OFF(groups_off) };
	static const uint32_t count[] = { OFF(nprograms), OFF(nunits), OFF(ninits), OFF(ninsns) };
	unsigned int i, k, bit;

	(void)state;
	for (bit = 0; bit < 32; bit++)
		REFUSE_AT(SPYRE_PE_MAGIC, OFF(magic), head(c)->magic ^= 1u << bit);
	REFUSE_AT(SPYRE_PE_TOO_OLD, OFF(major), head(c)->major = 0);
	REFUSE_AT(SPYRE_PE_TOO_NEW, OFF(major), head(c)->major = 2);
	REFUSE_AT(SPYRE_PE_TOO_NEW, OFF(major), head(c)->minor = 1);
	for (bit = 0; bit < 32; bit++)
		REFUSE_AT(SPYRE_PE_SIZE, OFF(size), head(c)->size ^= 1u << bit);
	for (bit = 0; bit < 64; bit++)
		REFUSE_AT(SPYRE_PE_RESERVED, OFF(flags), head(c)->flags = 1ull << bit);
	for (k = 0; k < 2; k++)
		for (bit = 0; bit < 64; bit++)
			REFUSE_AT(SPYRE_PE_RESERVED, OFF(reserved), head(c)->reserved[k] = 1ull << bit);
	REFUSE_AT(SPYRE_PE_CORE_MASK, OFF(core_mask), head(c)->core_mask = 0);
	for (bit = 0; bit < 32; bit++)
		if (!(6 >> bit & 1))
			REFUSE_AT(SPYRE_PE_CORE_MASK, OFF(core_mask), head(c)->core_mask |= 1u << bit);
	REFUSE_AT(SPYRE_PE_CONST, OFF(nconsts), head(c)->nconsts = 129);
	REFUSE_AT(SPYRE_PE_CONST, OFF(nconsts), head(c)->nconsts = 0xffffffff);
	REFUSE_AT(SPYRE_PE_INIT, OFF(nsymbols), head(c)->nsymbols = 257);
	REFUSE_AT(SPYRE_PE_INIT, OFF(nsymbols), head(c)->nsymbols = 0xffffffff);
	REFUSE_AT(SPYRE_PE_PROGRAM, OFF(nprograms), head(c)->nprograms = 0);
	REFUSE_AT(SPYRE_PE_UNIT, OFF(nunits), head(c)->nunits = 0);
	/* Counts beyond the container, those whose bytes overflow 32 bits too; empty sections with an offset. */
	for (i = 0; i < 4; i++) {
		static const uint32_t huge[] = { 0x00100000, 0x08000001, 0x10000001, 0x7fffffff, 0xffffffff };

		for (k = 0; k < 5; k++)
			REFUSE_AT(SPYRE_PE_SECTION, off[i], *(uint32_t *)((uint8_t *)c + count[i]) = huge[k]);
	}
	REFUSE_AT(SPYRE_PE_SECTION, OFF(inits_off), head(c)->ninits = 0);
	REFUSE_AT(SPYRE_PE_SECTION, OFF(text_off), head(c)->ninsns = 0);
	REFUSE_AT(SPYRE_PE_SECTION, OFF(consts_off), head(c)->nconsts = 0);
	/* Each section: off a stick, in the header, at and beyond the end, onto another section. */
	for (i = 0; i < 6; i++) {
#define FIELD (*(uint32_t *)((uint8_t *)c + off[i]))
		for (bit = 0; bit < 7; bit++)
			REFUSE_AT(SPYRE_PE_SECTION, off[i], FIELD |= 1u << bit);
		if (off[i] != OFF(groups_off))
			REFUSE_AT(SPYRE_PE_SECTION, off[i], FIELD = 0);
		REFUSE_AT(SPYRE_PE_SECTION, off[i], FIELD = head(c)->size);
		REFUSE_AT(SPYRE_PE_SECTION, off[i], FIELD = 0x80000000);
		REFUSE_AT(SPYRE_PE_SECTION, off[i], FIELD = 0xffffff80);
		for (k = 0; k < i; k++)
			REFUSE_AT(SPYRE_PE_SECTION, off[i], FIELD = *(uint32_t *)((uint8_t *)c + off[k]));
	}

#define PROG_AT(i) (head(c)->programs_off + (i) * 16u)
#define UNIT_AT(i) (head(c)->units_off + (i) * 16u)
#define INIT_AT(i) (head(c)->inits_off + (i) * 16u)
	for (i = 0; i < 6; i++) {
		REFUSE_AT(SPYRE_PE_PROGRAM, PROG_AT(i), PROG(c, i)->unit = SPYRE_UNITS);
		REFUSE_AT(SPYRE_PE_PROGRAM, PROG_AT(i), PROG(c, i)->unit = 0xffff);
		REFUSE_AT(SPYRE_PE_PROGRAM, PROG_AT(i), PROG(c, i)->count = 0);
		REFUSE_AT(SPYRE_PE_PROGRAM, PROG_AT(i), PROG(c, i)->count--);
		REFUSE_AT(SPYRE_PE_PROGRAM, PROG_AT(i), PROG(c, i)->count = 0xffffffff);
		REFUSE_AT(SPYRE_PE_PROGRAM, PROG_AT(i), PROG(c, i)->first = head(c)->ninsns);
		REFUSE_AT(SPYRE_PE_PROGRAM, PROG_AT(i), PROG(c, i)->first = 0xffffffff);
		REFUSE_AT(SPYRE_PE_RESERVED, PROG_AT(i), PROG(c, i)->reserved = 1);
		REFUSE_AT(SPYRE_PE_RESERVED, PROG_AT(i), PROG(c, i)->reserved1 = 1);
		REFUSE_AT(SPYRE_PE_UNIT, UNIT_AT(i), UNIT(c, i)->unit = SPYRE_UNITS);
		REFUSE_AT(SPYRE_PE_UNIT, UNIT_AT(i), UNIT(c, i)->core = 32);
		REFUSE_AT(SPYRE_PE_UNIT, UNIT_AT(i), UNIT(c, i)->core = 255);
		REFUSE_AT(SPYRE_PE_UNIT, UNIT_AT(i), UNIT(c, i)->corelet = 2);
		REFUSE_AT(SPYRE_PE_UNIT, UNIT_AT(i), UNIT(c, i)->program = 6);
		REFUSE_AT(SPYRE_PE_UNIT, UNIT_AT(i), UNIT(c, i)->program = 0xffffffff);
		REFUSE_AT(SPYRE_PE_UNIT, UNIT_AT(i + 1), *UNIT(c, i + 1) = *UNIT(c, i));
		REFUSE_AT(SPYRE_PE_RESERVED, UNIT_AT(i), UNIT(c, i)->reserved = 1);
		REFUSE_AT(SPYRE_PE_INIT, UNIT_AT(i), UNIT(c, i)->ninits = 17);
		REFUSE_AT(SPYRE_PE_INIT, UNIT_AT(i), UNIT(c, i)->init = 0xffffffff);
		REFUSE_AT(SPYRE_PE_INIT, INIT_AT(i), INIT(c, i)->reg = 16);
		REFUSE_AT(SPYRE_PE_INIT, INIT_AT(i), INIT(c, i)->symbol = 2);
		REFUSE_AT(SPYRE_PE_INIT, INIT_AT(i), INIT(c, i)->symbol = 0xfffe);
		REFUSE_AT(SPYRE_PE_RESERVED, INIT_AT(i), INIT(c, i)->reserved = 1);
		REFUSE_AT(SPYRE_PE_RESERVED, INIT_AT(i), INIT(c, i)->reserved1 = 1);
	}
	for (i = 0; i < 16; i++)
		REFUSE_AT(SPYRE_PE_GROUP, head(c)->groups_off + 4 * i, AT(c, groups_off, uint32_t, i)[0] = 1);
}

/* --- Instructions, by the table ------------------------------------------------------------- */

#define PC 1u		/* where the instruction under test stands */
#define MASK 0x6u
#define NCONSTS 2u
#define GROUP 3u

struct one {
	uint8_t *bin;
	size_t size;
	struct spyre_insn *insn;
	unsigned int unit;
	const struct isa_op *op;
};

/* An operand, or a FIFO, that the unit may use; -1: it has none. */
static int some_fifo(unsigned int unit, bool write, bool port)
{
	unsigned int f;

	for (f = 0; f < SPYRE_FIFOS; f++)
		if (write ? isa_writes(unit, f) : isa_reads(unit, f, port))
			return (int)f;
	return -1;
}

static void set(struct spyre_insn *in, unsigned int at, uint32_t v)
{
	switch (at) {
	case ISA_A: in->a = (uint8_t)v; break;
	case ISA_B: in->b = (uint8_t)v; break;
	case ISA_C: in->c = (uint8_t)v; break;
	case ISA_D: in->d = (uint8_t)v; break;
	case ISA_N: in->n = (uint16_t)v; break;
	case ISA_IMM: in->imm = v; break;
	case ISA_IMM2: in->imm2 = v; break;
	}
}

static uint32_t place_max(unsigned int at)
{
	return at < ISA_N ? 0xff : at == ISA_N ? 0xffff : 0xffffffff;
}

/* The plainest instruction that the checker takes. */
static struct spyre_insn plain(const struct isa_op *o, unsigned int unit)
{
	struct spyre_insn in = { .op = o->code };
	const struct isa_field *f;

	for (f = o->fields; f->kind; f++) {
		switch (f->kind) {
		case ISA_NUM:
			set(&in, f->at, f->min);
			break;
		case ISA_LBR:
			set(&in, f->at, SPYRE_REG_NONE);
			break;
		case ISA_EAR:
			set(&in, f->at, SPYRE_EAR0);
			break;
		case ISA_GROUP:
			set(&in, f->at, GROUP);
			break;
		case ISA_FMT:
			set(&in, f->at, (uint32_t)__builtin_ctz(f->max));
			break;
		case ISA_FIFO:
			set(&in, f->at, (uint32_t)some_fifo(unit, o->flags & ISA_WRITES, o->flags & ISA_LOAD_PORT));
			break;
		}
	}
	return in;
}

/* A container in which one unit of core 1 (corelet 1, if it has one) runs NOP, the instruction, NOP, RETURN. */
static void one_begin(struct one *t, const struct isa_op *o, unsigned int unit)
{
	struct spyreprog_job *job = spyreprog_job_new();
	struct spyre_insn nop = { .op = SPYRE_OP_NOP }, in = plain(o, unit);
	unsigned int core;
	int p;

	spyreprog_job_const_fp32(job, 1.0f);
	spyreprog_job_const_fp32(job, 2.0f);
	spyreprog_job_group(job, GROUP, MASK);
	p = spyreprog_job_program(job, unit);
	spyreprog_job_insn(job, p, &nop);
	spyreprog_job_insn(job, p, &in);
	nop.be = o->code == SPYRE_OP_MVLOOPCNT;
	spyreprog_job_insn(job, p, &nop);
	for (core = 1; core < 3; core++)
		spyreprog_job_unit(job, core, unit, unit > SPYRE_UNIT_L3SU, p);
	if (spyreprog_job_finish(job, (void **)&t->bin, &t->size))
		fail_msg("%s", spyreprog_job_error(job));
	spyreprog_job_free(job);
	t->insn = (struct spyre_insn *)(t->bin + head(t->bin)->text_off) + PC;
	t->unit = unit;
	t->op = o;
}

static unsigned int checked;

/* The instruction as it is now gives this code, at its place; NONE: it is accepted. Then it is restored. */
static void one_expect(struct one *t, enum spyre_prog_err code, const char *what, int line)
{
	struct job_error e = { 0 };
	struct job *job;

	spyreprog_seal(t->bin, t->size);
	job = decode(t->bin, t->size, &e);
	if (job ? code != SPYRE_PE_NONE :
	    e.code != code || e.core != 1 || e.pc != PC || e.unit != (t->unit | (t->unit > SPYRE_UNIT_L3SU) << 8))
		fail_msg("line %d: %s of %s%s (a:%u b:%u c:%u d:%u n:%u imm:0x%x imm2:0x%x be:%u): got %u core %u unit %x pc %u, expected %u",
			 line, what, isa_prefixes[t->unit], t->op->name, t->insn->a, t->insn->b, t->insn->c, t->insn->d,
			 t->insn->n, t->insn->imm, t->insn->imm2, t->insn->be, e.code, e.core, e.unit, e.pc, code);
	spyre_job_free(job);
	*t->insn = plain(t->op, t->unit);
	checked++;
}

#define ONE(code, what, change) do { change; one_expect(t, code, what, __LINE__); } while (0)
#define VALUE(code, v) ONE(code, f->name, set(t->insn, f->at, v))

static bool executed(unsigned int f)
{
	return f == SPYRE_IEEE_FP32 || f == SPYRE_IEEE_INT32 || spyre_vec_ops_plain.widen[f];
}

/* What the checker must say to the format of a FIFO operand when the other side is V0. */
static enum spyre_prog_err format_code(const struct isa_op *o, unsigned int fmt)
{
	unsigned int f = fmt & 0x7f;

	if (f >= SPYRE_FORMATS || !executed(f))
		return SPYRE_PE_FORMAT;
	if (fmt & SPYRE_FMT_HALF)
		return isa_formats[f].lanes == 32 ? SPYRE_PE_NONE : SPYRE_PE_FORMAT;
	return isa_formats[f].lanes > 64 && o->code != SPYRE_OP_MOV ? SPYRE_PE_FORMAT : SPYRE_PE_NONE;
}

static void try_operand(struct one *t, const struct isa_field *f)
{
	bool dst = f->kind == ISA_DST;
	unsigned int v, fmt, shift = isa_fmt_shift(f->at);
	int fifo = some_fifo(t->unit, dst, false);
	enum spyre_prog_err code;

	for (v = 0; v < 256; v++) {
		if (v < 16)
			code = SPYRE_PE_NONE;
		else if (v >= 0x20 && v < 0x40)
			code = (dst ? isa_writes(t->unit, v - 0x20) : isa_reads(t->unit, v - 0x20, false)) ? SPYRE_PE_NONE :
				SPYRE_PE_FIFO;
		else if (v == 0x40 && !dst)
			code = t->op->flags & ISA_IMM_OWN ? SPYRE_PE_FIELD : SPYRE_PE_NONE;
		else if (v >= 0x80 && v != 0xff && !dst)
			code = v - 0x80 < NCONSTS ? SPYRE_PE_NONE : SPYRE_PE_CONST;
		else
			code = SPYRE_PE_FIELD;
		VALUE(code, v);
	}
	for (fmt = 1; fmt < 256; fmt++) {
		/* All formats, with HALF and without, and what lies around them. */
		if ((fmt & 0x7f) > SPYRE_FORMATS + 1 && (fmt & 0x7f) != 0x7f)
			continue;
		ONE(SPYRE_PE_FORMAT, "format of a register", t->insn->imm2 |= fmt << shift);
		ONE(format_code(t->op, fmt), "format of a FIFO",
		    (set(t->insn, f->at, 0x20u + (unsigned int)fifo), t->insn->imm2 |= fmt << shift));
	}
	/* An immediate has its value in imm, which is 0 else. */
	if (!dst && !(t->op->flags & ISA_IMM_OWN))
		ONE(SPYRE_PE_NONE, "immediate", (set(t->insn, f->at, 0x40), t->insn->imm = 0xdeadbeef));
}

/* Formats of more than 64 lanes: registers beside them from a multiple of their number on, and nothing else. */
static void try_recast(struct one *t)
{
	unsigned int f, g, v, in = 0x20u + (unsigned int)some_fifo(t->unit, false, false);
	unsigned int out = 0x20u + (unsigned int)some_fifo(t->unit, true, false);

	for (f = 0; f < SPYRE_FORMATS; f++) {
		unsigned int n = isa_vregs(f);

		if (n == 1 || !executed(f))
			continue;
		for (v = 0; v < 16; v++) {
			ONE(v % n ? SPYRE_PE_FIELD : SPYRE_PE_NONE, "first register",
			    (t->insn->a = (uint8_t)v, t->insn->b = (uint8_t)in, t->insn->imm2 = f));
			ONE(v % n ? SPYRE_PE_FIELD : SPYRE_PE_NONE, "first register",
			    (t->insn->a = (uint8_t)out, t->insn->b = (uint8_t)v, t->insn->imm2 = f << 24));
		}
		ONE(SPYRE_PE_FORMAT, "constant", (t->insn->a = (uint8_t)out, t->insn->b = 0x80, t->insn->imm2 = f << 24));
		ONE(SPYRE_PE_FORMAT, "immediate", (t->insn->a = (uint8_t)out, t->insn->b = 0x40, t->insn->imm2 = f << 24));
		/* Pairs of formats without a register between them. */
		for (g = 0; g < SPYRE_FORMATS; g++) {
			ONE(SPYRE_PE_FORMAT, "pair", (t->insn->a = (uint8_t)out, t->insn->b = (uint8_t)in,
						      t->insn->imm2 = f | g << 24));
			ONE(SPYRE_PE_FORMAT, "pair", (t->insn->a = (uint8_t)out, t->insn->b = (uint8_t)in,
						      t->insn->imm2 = g | f << 24));
		}
	}
}

static void try_field(struct one *t, const struct isa_field *f)
{
	uint32_t v, max = place_max(f->at);

	switch (f->kind) {
	case ISA_COUNT:
		VALUE(SPYRE_PE_NONE, 0xffffffff);
		for (v = 2; v < 256; v++)
			ONE(SPYRE_PE_FIELD, "c", t->insn->c = (uint8_t)v);
		for (v = 1; v < 256; v++)
			ONE(SPYRE_PE_FIELD, "b", t->insn->b = (uint8_t)v);
		for (v = 0; v < 256; v++)
			ONE(v >= SPYRE_LCR0 && v < SPYRE_REGS ? SPYRE_PE_NONE : SPYRE_PE_REGISTER, "b",
			    (t->insn->c = 1, t->insn->b = (uint8_t)v));
		ONE(SPYRE_PE_FIELD, "imm", (t->insn->c = 1, t->insn->b = SPYRE_LCR0, t->insn->imm = 1));
		break;
	case ISA_REG:
	case ISA_REG_OR_NONE:
	case ISA_LAR:
	case ISA_LBR:
	case ISA_EAR:
		for (v = 0; v < 256; v++) {
			bool ok = f->kind == ISA_LAR ? v < 4 : f->kind == ISA_LBR ? (v >= 4 && v < 8) || v == 255 :
				  f->kind == ISA_EAR ? v >= 8 && v < 12 :
				  v < 16 || (f->kind == ISA_REG_OR_NONE && v == 255);

			VALUE(ok ? SPYRE_PE_NONE : SPYRE_PE_REGISTER, v);
		}
		break;
	case ISA_NUM:
		VALUE(SPYRE_PE_NONE, f->max);
		if (f->min)
			VALUE(SPYRE_PE_FIELD, f->min - 1);
		if (f->max < max) {
			VALUE(SPYRE_PE_FIELD, f->max + 1);
			VALUE(SPYRE_PE_FIELD, max);
			VALUE(SPYRE_PE_FIELD, max / 2 + 1);
		}
		break;
	case ISA_S32:
		VALUE(SPYRE_PE_NONE, 0x80000000);
		VALUE(SPYRE_PE_NONE, 0x7fffffff);
		break;
	case ISA_STRIDE:
		VALUE(SPYRE_PE_NONE, 0x80000000);
		for (v = 1; v < 128; v++) {
			VALUE(SPYRE_PE_FIELD, v);
			VALUE(SPYRE_PE_FIELD, 0u - v);
		}
		break;
	case ISA_CORES:
		VALUE(SPYRE_PE_NONE, MASK);
		for (v = 0; v < 32; v++)
			if (!(MASK >> v & 1))
				VALUE(SPYRE_PE_FIELD, MASK | 1u << v);
		break;
	case ISA_BOOL:
	case ISA_TILE:
		for (v = 0; v < 256; v++)
			VALUE(v < (f->kind == ISA_BOOL ? 2u : 8u) ? SPYRE_PE_NONE : SPYRE_PE_FIELD, v);
		break;
	case ISA_TAG:
		for (v = 0; v < 256; v++)
			VALUE(v < SPYRE_TAGS ? SPYRE_PE_NONE : SPYRE_PE_TAG, v);
		break;
	case ISA_GROUP:
		for (v = 0; v < 256; v++)
			VALUE(v == GROUP ? SPYRE_PE_NONE : SPYRE_PE_GROUP, v);
		break;
	case ISA_FIFO:
		for (v = 0; v < 256; v++)
			VALUE((t->op->flags & ISA_WRITES ? isa_writes(t->unit, v) :
			       isa_reads(t->unit, v, t->op->flags & ISA_LOAD_PORT)) ? SPYRE_PE_NONE : SPYRE_PE_FIFO, v);
		break;
	case ISA_FMT:
		for (v = 0; v < 256; v++) {
			bool ok = v < SPYRE_FORMATS && (f->max >> v & 1) &&
				  (v == SPYRE_IEEE_FP32 || v == SPYRE_IEEE_INT32 || spyre_pt_ops_plain.formats >> v & 1);

			VALUE(ok ? SPYRE_PE_NONE : SPYRE_PE_FORMAT, v);
		}
		break;
	case ISA_DST:
	case ISA_SRC:
		try_operand(t, f);
		break;
	}
}

/* Places that the operation does not name. */
static void try_unused(struct one *t)
{
	const struct isa_field *f;
	unsigned int named = 0, at, bit, bits;
	bool vector = isa_is_vector(t->op);

	for (f = t->op->fields; f->kind; f++)
		named |= f->kind == ISA_COUNT ? 1u << ISA_B | 1u << ISA_C | 1u << ISA_IMM : 1u << f->at;
	for (at = ISA_A; at <= ISA_IMM2; at++) {
		bits = at < ISA_N ? 8 : at == ISA_N ? 16 : 32;
		if (named >> at & 1)
			continue;
		for (bit = 0; bit < bits; bit++) {
			/* Formats belong to operands. */
			if (vector && at == ISA_IMM2 && (bit >= 24 || bit / 8 < t->op->sources))
				continue;
			ONE(SPYRE_PE_FIELD, "unused place", set(t->insn, at, 1u << bit));
		}
		if (vector && at >= ISA_B && at <= ISA_D)
			ONE(SPYRE_PE_NONE, "no source", set(t->insn, at, SPYRE_OPND_NONE));
	}
}

static void test_every_instruction(void **state)
{
	const struct isa_field *f;
	struct one one, *t = &one;
	unsigned int op, unit;

	(void)state;
	checked = 0;
	for (unit = 0; unit < SPYRE_UNITS; unit++) {
		for (op = 0; op < 256; op++) {
			const struct isa_op *o = isa_op(op);

			if (!o || !(o->units >> unit & 1)) {
				one_begin(t, isa_op(SPYRE_OP_NOP), unit);
				ONE(SPYRE_PE_OPCODE, "operation", t->insn->op = (uint8_t)op);
				free(t->bin);
				continue;
			}
			one_begin(t, o, unit);
			ONE(SPYRE_PE_NONE, "nothing", (void)0);
			for (f = o->fields; f->kind; f++)
				try_field(t, f);
			try_unused(t);
			if (o->flags & ISA_RECAST)
				try_recast(t);
			if (o->flags & ISA_ROWS) {
				ONE(SPYRE_PE_NONE, "rows", (t->insn->n = 128, t->insn->imm = 0));
				ONE(SPYRE_PE_FIELD, "rows", (t->insn->n = 128, t->insn->imm = 1));
				ONE(SPYRE_PE_FIELD, "rows", (t->insn->n = 2, t->insn->imm = 127));
			}
			if (o->flags & ISA_LANES) {
				ONE(SPYRE_PE_NONE, "lanes", (t->insn->c = 24, t->insn->imm = 40));
				ONE(SPYRE_PE_FIELD, "lanes", (t->insn->c = 25, t->insn->imm = 40));
				ONE(SPYRE_PE_FIELD, "lanes", (t->insn->c = 1, t->insn->imm = 64));
			}
			ONE(SPYRE_PE_LOOP, "be", t->insn->be = 1);
			ONE(SPYRE_PE_LOOP, "be", t->insn->be = 255);
			free(t->bin);
		}
	}
	print_message("%u instructions checked\n", checked);
	assert_true(checked > 50000);
}

/* Blocks: every depth opens and closes, one more does not. */
static void test_nesting(void **state)
{
	unsigned int depth, i;
	struct job_error e;
	struct job *job;
	void *bin;
	size_t size;

	(void)state;
	for (depth = 1; depth <= SPYRE_LOOPS + 1; depth++) {
		struct spyreprog_job *j = spyreprog_job_new();
		struct spyre_insn loop = { .op = SPYRE_OP_MVLOOPCNT, .imm = 2 };
		struct spyre_insn nop = { .op = SPYRE_OP_NOP, .be = (uint8_t)depth };
		int p = spyreprog_job_program(j, SPYRE_UNIT_L3SU);

		/* The builder knows the limit; the bytes need not come from it. */
		for (i = 0; i < depth; i++) {
			nop = (struct spyre_insn){ .op = SPYRE_OP_NOP };
			spyreprog_job_insn(j, p, &nop);
		}
		spyreprog_job_insn(j, p, &nop);
		spyreprog_job_unit(j, 4, SPYRE_UNIT_L3SU, 0, p);
		assert_int_equal(spyreprog_job_finish(j, &bin, &size), 0);
		spyreprog_job_free(j);
		for (i = 0; i < depth; i++)
			AT(bin, text_off, struct spyre_insn, 0)[i] = loop;
		AT(bin, text_off, struct spyre_insn, 0)[depth].be = (uint8_t)depth;
		spyreprog_seal(bin, size);
		job = decode(bin, size, &e);
		if (depth <= SPYRE_LOOPS) {
			assert_non_null(job);
		} else {
			assert_null(job);
			assert_int_equal(e.code, SPYRE_PE_LOOP);
			assert_int_equal(e.core, 4);
			assert_int_equal(e.unit, SPYRE_UNIT_L3SU);
			assert_int_equal(e.pc, SPYRE_LOOPS);
		}
		spyre_job_free(job);
		/* Open at the end. */
		AT(bin, text_off, struct spyre_insn, 0)[depth].be = (uint8_t)(depth - 1);
		spyreprog_seal(bin, size);
		assert_null(decode(bin, size, &e));
		assert_int_equal(e.code, SPYRE_PE_LOOP);
		free(bin);
	}
}

/* --- While running -------------------------------------------------------------------------- */

/*
 * Eight nested loops of two rounds around an access of two words; at level's end the address moves on by step, 2^level times in
 * all. From start on it just fits, or the last round is outside: then it ends there, at the access.
 */
static void level_run(struct env *e, enum spyre_op op, unsigned int level, unsigned int reg, uint64_t start,
		      int32_t step, enum spyre_status status, enum spyre_prog_err code)
{
	struct spyreprog_job *j = spyreprog_job_new();
	bool lx = op == SPYRE_OP_LD;
	enum spyre_unit kind = lx ? SPYRE_UNIT_LXLU : op == SPYRE_OP_L3_LDU ? SPYRE_UNIT_L3LU : SPYRE_UNIT_L3SU;
	int p = spyreprog_job_program(j, kind), u, pe;
	unsigned int d;

	for (d = 0; d < SPYRE_LOOPS; d++)
		sp_loop(j, p, 2);
	if (lx)
		sp_ld(j, p, SPYRE_LAR0, SPYRE_LBR0, SPYRE_FIFO_LXLU_PE0, 2, 128, 0);
	else
		sp_l3(j, p, op, SPYRE_LAR0, SPYRE_LBR0, SPYRE_EAR0, 2, 0, 0, 0);
	for (d = SPYRE_LOOPS; d; d--) {
		sp_addimm(j, p, reg, d == level ? step : 0);
		sp_end(j, p);
	}
	u = spyreprog_job_unit(j, 5, kind, lx, p);
	spyreprog_job_init(j, u, reg, SPYRE_NO_SYMBOL, start);
	if (reg != SPYRE_EAR0 && !lx)
		spyreprog_job_init(j, u, SPYRE_EAR0, SPYRE_NO_SYMBOL, op == SPYRE_OP_L3_STC ? 5ull << 24 : ENV_SEGMENT(1));
	if (lx) {
		pe = spyreprog_job_program(j, SPYRE_UNIT_PE);
		sp_vec(j, pe, SPYRE_OP_MOV, 0, SPYRE_OPND_FIFO(SPYRE_FIFO_LXLU_PE0), 0, 0, 2 << SPYRE_LOOPS, 0, 0);
		spyreprog_job_unit(j, 5, SPYRE_UNIT_PE, 1, pe);
	}
	env_load_job(e, j);
	env_run(e, NULL, 0);
	if (e->rb.status != status || e->rb.err_code != code)
		fail_msg("op 0x%02x level %u reg %u start 0x%llx step %d: status %u code %u, expected %u %u", op, level, reg,
			 (unsigned long long)start, step, e->rb.status, e->rb.err_code, status, code);
	if (status == SPYRE_OK)
		return;
	assert_int_equal(e->rb.err_core, 5);
	assert_int_equal(e->rb.err_unit, kind | (unsigned int)lx << 8);
	assert_int_equal(e->rb.err_pc, SPYRE_LOOPS);
}

/* An address runs out of its memory in each level of a loop nest, upwards and downwards, by each register. */
static void test_levels(void **state)
{
	static const enum spyre_op ops[] = { SPYRE_OP_L3_LDU, SPYRE_OP_L3_STU, SPYRE_OP_L3_STC, SPYRE_OP_LD };
	static const unsigned int regs[] = { SPYRE_LAR0, SPYRE_LBR0 };
	unsigned int level, o, r;
	struct env e;

	(void)state;
	env_init(&e, 1);
	env_map(&e, 1, 1 << 20);
	for (level = 1; level <= SPYRE_LOOPS; level++) {
		/* Steps before the last access: the move at the end of the last round is not used. */
		uint64_t way = (((uint64_t)1 << level) - 1) * 128;

		for (o = 0; o < 4; o++) {
			for (r = 0; r < 2; r++) {
				uint64_t top = SPYRE_LX_SIZE - 256;

				level_run(&e, ops[o], level, regs[r], top - way, 128, SPYRE_OK, 0);
				level_run(&e, ops[o], level, regs[r], top - way + 128, 128, SPYRE_ERR_PROGRAM,
					  SPYRE_PE_LX_RANGE);
				level_run(&e, ops[o], level, regs[r], way, -128, SPYRE_OK, 0);
				level_run(&e, ops[o], level, regs[r], way - 128, -128, SPYRE_ERR_PROGRAM,
					  SPYRE_PE_LX_RANGE);
				/* Around the end of 64 bits, and off a stick. */
				level_run(&e, ops[o], level, regs[r], 0 - way, 128, SPYRE_ERR_PROGRAM, SPYRE_PE_LX_RANGE);
				level_run(&e, ops[o], level, regs[r], way, -64, SPYRE_ERR_PROGRAM, SPYRE_PE_ALIGN);
			}
		}
		/* The same in memory: the end of the mapping, below it, and another core's LX. */
		level_run(&e, SPYRE_OP_L3_LDU, level, SPYRE_EAR0, ENV_SEGMENT(1) + (1 << 20) - 256 - way, 128, SPYRE_OK, 0);
		level_run(&e, SPYRE_OP_L3_LDU, level, SPYRE_EAR0, ENV_SEGMENT(1) + (1 << 20) - 128 - way, 128, SPYRE_ERR_FAULT, 0);
		assert_int_equal(e.rb.rb_hmierr_addr, ENV_SEGMENT(1) + (1 << 20));
		level_run(&e, SPYRE_OP_L3_STU, level, SPYRE_EAR0, ENV_SEGMENT(1) + way - 128, -128, SPYRE_ERR_FAULT, 0);
		assert_int_equal(e.rb.rb_hmierr_addr, ENV_SEGMENT(1) - 128);
		assert_int_equal(e.rb.rb_hmierr_snid, 5);
		level_run(&e, SPYRE_OP_L3_STC, level, SPYRE_EAR0, (5ull << 24) + SPYRE_LX_SIZE - 256 - way, 128, SPYRE_OK, 0);
		level_run(&e, SPYRE_OP_L3_STC, level, SPYRE_EAR0, (5ull << 24) + SPYRE_LX_SIZE - 128 - way, 128, SPYRE_ERR_PROGRAM,
			  SPYRE_PE_LX_RANGE);
		level_run(&e, SPYRE_OP_L3_STC, level, SPYRE_EAR0, (5ull << 24) + way - 128, -128, SPYRE_ERR_PROGRAM,
			  SPYRE_PE_CORE);
	}
	env_free(&e);
}

/* n words into or out of a FIFO by the unit at that end; pairs of them where the unit moves pairs. */
static void use_fifo(struct spyreprog_job *j, int p, unsigned int unit, unsigned int f, bool write, unsigned int n)
{
	unsigned int half = SPYRE_IEEE_FP32 | SPYRE_FMT_HALF;

	if (unit == SPYRE_UNIT_PT && write)
		sp_pt_psout(j, p, f, n / 2, 0);
	else if (unit == SPYRE_UNIT_PT && isa_fifos[f].load_port)
		sp_pt_ldw(j, p, 3, SPYRE_BFLOAT16, f);
	else if (unit == SPYRE_UNIT_PT)
		sp_pt_psin(j, p, SPYRE_IEEE_FP32, f, n / 2, 0);
	else if (unit >= SPYRE_UNIT_PE && write)
		sp_vec(j, p, SPYRE_OP_MOV, SPYRE_OPND_FIFO(f), 0, 0, 0, n, 0, SPYRE_FMTS(0, 0, 0, half));
	else if (unit >= SPYRE_UNIT_PE)
		sp_vec(j, p, SPYRE_OP_MOV, 0, SPYRE_OPND_FIFO(f), 0, 0, n, 0, SPYRE_FMTS(half, 0, 0, 0));
	else if (write)
		sp_ld(j, p, SPYRE_LAR0, SPYRE_REG_NONE, f, n, 0, 0);
	else
		sp_st(j, p, SPYRE_LAR0, SPYRE_REG_NONE, f, n, 128, 0);
}

/* Each FIFO with one end that nobody uses: words left, a full one, an empty one; who it is and where is told. */
static void test_fifo_misuse(void **state)
{
	unsigned int f, x, how;
	struct env e;

	(void)state;
	env_init(&e, 1);
	for (f = 0; f < SPYRE_FIFOS; f++) {
		for (x = 0; x < 2; x++) {
			for (how = 0; how < 3; how++) {
				unsigned int unit = how < 2 ? isa_fifos[f].writer : isa_fifos[f].reader;
				struct spyreprog_job *j = spyreprog_job_new();
				int p = spyreprog_job_program(j, unit);
				struct spyre_stuck s[4];

				use_fifo(j, p, unit, f, how < 2, how == 1 ? 18 : 16);
				spyreprog_job_unit(j, 9, unit, x, p);
				env_load_job(&e, j);
				env_run(&e, NULL, 0);
				if (!how) {
					assert_int_equal(e.rb.status, SPYRE_ERR_PROGRAM);
					assert_int_equal(e.rb.err_code, SPYRE_PE_FIFO_LEFT);
					assert_int_equal(e.rb.err_core, 9);
					assert_int_equal(e.rb.err_unit, isa_fifos[f].reader | x << 8);
					continue;
				}
				assert_int_equal(e.rb.status, SPYRE_ERR_DEADLOCK);
				assert_int_equal(spyre_soc_stuck(e.soc, s, 4), 1);
				assert_int_equal(s[0].core, 9);
				assert_int_equal(s[0].unit, unit | x << 7);
				if (how == 2 && isa_fifos[f].load_port) {
					/* The unit went on while the load waited. */
					assert_int_equal(s[0].waits, SPYRE_WAIT_TILE);
					assert_int_equal(s[0].number, 3);
					assert_int_equal(s[0].pc, 1);
				} else {
					assert_int_equal(s[0].waits, how == 1 ? SPYRE_WAIT_FIFO_FULL : SPYRE_WAIT_FIFO_EMPTY);
					assert_int_equal(s[0].number, f);
					assert_int_equal(s[0].pc, 0);
				}
			}
		}
	}
	env_free(&e);
}

/* Every tag: sent and not taken, taken and not sent, taken by two. */
static void test_tag_imbalance(void **state)
{
	unsigned int tag, how;
	struct env e;

	(void)state;
	env_init(&e, 1);
	for (tag = 0; tag < SPYRE_TAGS; tag++) {
		for (how = 0; how < 4; how++) {
			struct spyreprog_job *j = spyreprog_job_new();
			int a = spyreprog_job_program(j, SPYRE_UNIT_LXLU), b = spyreprog_job_program(j, SPYRE_UNIT_SFP);
			struct spyre_stuck s[4];

			/* 0: two sent, two taken; 1: one left; 2: one missing; 3: a second unit waits too. */
			sp_send(j, a, tag, how == 3 ? 0 : 1u << 9);
			sp_send(j, a, tag, 0);
			sp_wait(j, b, tag, how == 1 ? 1 : 2);
			if (how == 2)
				sp_wait(j, b, tag, 1);
			if (how == 3)
				sp_wait(j, a, tag, 1);
			spyreprog_job_unit(j, 9, SPYRE_UNIT_LXLU, 1, a);
			spyreprog_job_unit(j, 9, SPYRE_UNIT_SFP, 1, b);
			env_load_job(&e, j);
			env_run(&e, NULL, 0);
			switch (how) {
			case 0:
				assert_int_equal(e.rb.status, SPYRE_OK);
				break;
			case 1:
				assert_int_equal(e.rb.status, SPYRE_ERR_PROGRAM);
				assert_int_equal(e.rb.err_code, SPYRE_PE_FIFO_LEFT);
				assert_int_equal(e.rb.err_core, 9);
				assert_int_equal(e.rb.err_unit, SPYRE_UNIT_SFP | 1 << 8);
				break;
			case 2:
				assert_int_equal(e.rb.status, SPYRE_ERR_DEADLOCK);
				assert_int_equal(spyre_soc_stuck(e.soc, s, 4), 1);
				assert_int_equal(s[0].waits, SPYRE_WAIT_TAG);
				assert_int_equal(s[0].number, tag);
				assert_int_equal(s[0].pc, 1);
				break;
			default:
				assert_int_equal(e.rb.status, SPYRE_ERR_BAD_PROGRAM);
				assert_int_equal(e.rb.err_code, SPYRE_PE_TAG);
				assert_int_equal(e.rb.err_unit, SPYRE_UNIT_SFP | 1 << 8);
				assert_int_equal(e.rb.err_pc, 0);
			}
		}
	}
	env_free(&e);
}

/* A program for cores that the card has not: the first of them is named. */
static void test_missing_cores(void **state)
{
	struct spyre_soc_config cfg = { .threads = 1, .cores = 0x0000ffff, .core_hz = SPYRE_CORE_HZ, .soc_hz = SPYRE_SOC_HZ };
	uint32_t mask;
	struct env e;

	(void)state;
	env_init(&e, 1);
	spyre_soc_free(e.soc);
	e.soc = spyre_soc_new(&cfg);
	for (mask = 0xffff; mask; mask = mask == 0xffff ? 0xffffffff : mask == 0xffffffff ? 1u << 31 : 0) {
		struct spyreprog_job *j = spyreprog_job_new();
		int p = spyreprog_job_program(j, SPYRE_UNIT_SFP);
		unsigned int core;

		for (core = 0; core < 32; core++)
			if (mask >> core & 1)
				spyreprog_job_unit(j, core, SPYRE_UNIT_SFP, 0, p);
		env_load_job(&e, j);
		assert_int_equal(env_run(&e, NULL, 0), mask == 0xffff ? SPYRE_OK : SPYRE_ERR_CORES);
		if (mask != 0xffff)
			assert_int_equal(e.rb.err_core, mask == 0xffffffff ? 16 : 31);
	}
	env_free(&e);
}

/* Every error has words of its own. */
static void test_error_texts(void **state)
{
	unsigned int i, k, n = 0;

	(void)state;
	for (i = 0; i < 256; i++) {
		if (!strcmp(isa_err_text(i), "unknown program error"))
			continue;
		n++;
		for (k = 0; k < i; k++)
			assert_string_not_equal(isa_err_text(i), isa_err_text(k));
	}
	assert_int_equal(n, SPYRE_PE_INIT + (SPYRE_PE_CONST - SPYRE_PE_OPCODE + 1) +
			    (SPYRE_PE_RACE_SIZE - SPYRE_PE_LX_RANGE + 1));
	assert_string_equal(isa_err_text(0xffffffff), "unknown program error");
}

/*
 * Random damage, sealed again: it is refused or it runs to some end, without a crash (sanitizers watch).
 * The watchdog keeps damaged loop counts short.
 */
static void test_damage(void **state)
{
	static const uint8_t likely[] = { 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 254, 255 };
	uint64_t rng = 12345, syms[2] = { 0, ENV_SEGMENT(1) };
	unsigned int round, k, n, ran = 0;
	struct env e;
	size_t size;
	void *c = good(&size), *d = malloc(size);

	(void)state;
	env_init(&e, 2);
	env_map(&e, 0, 1 << 20);
	env_map(&e, 1, 1 << 20);
	env_load(&e, c, size);
	assert_int_equal(env_run(&e, syms, 2), SPYRE_OK);
	for (round = 0; round < 3000; round++) {
		memcpy(d, c, size);
		head(d)->watchdog = 1000000;
		n = 1 + round % 4;
		for (k = 0; k < n; k++) {
			size_t at;

			rng = rng * 6364136223846793005ull + 1442695040888963407ull;
			at = (rng >> 33) % size;
			/* Most of it where it matters. */
			if (rng >> 20 & 3)
				at = head(c)->text_off + (rng >> 33) % (head(c)->ninsns * 16);
			if (at >= offsetof(struct spyre_job_header, digest) && at < sizeof(struct spyre_job_header))
				continue;
			((uint8_t *)d)[at] = rng >> 60 ? likely[rng >> 56 & 15] : (uint8_t)(rng >> 40);
		}
		spyreprog_seal(d, size);
		memcpy(e.seg[7], d, size);
		env_run(&e, syms, 2);
		ran += e.rb.status != SPYRE_ERR_BAD_PROGRAM;
		assert_int_not_equal(e.rb.status, SPYRE_ERR_INTERNAL);
	}
	print_message("%u of %u damaged programs got as far as running\n", ran, round);
	assert_true(ran > 100);
	env_free(&e);
	free(c);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_instructions),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_container_places),
		cmocka_unit_test(test_every_instruction),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_fifo_misuse),
		cmocka_unit_test(test_tag_imbalance),
		cmocka_unit_test(test_missing_cores),
		cmocka_unit_test(test_error_texts),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
