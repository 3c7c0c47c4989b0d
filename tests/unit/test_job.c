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
#include "test_soc_env.h"

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
	REFUSE(SPYRE_PE_FORMAT, OP(PT_MM)->b = SPYRE_SEN143_FP8);
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
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
