// SPDX-License-Identifier: MIT
/* Assembler and disassembler: exact round trips, and what they say about bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "job.h"
#include "spyregen.h"

static uint32_t rng_state = 1;

static uint32_t rng(uint32_t below)
{
	rng_state = rng_state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(rng_state >> 4) * below >> 28);
}

static char *dis(const void *bin, size_t size, size_t *len)
{
	struct spyreprog_err err;
	char *text = NULL;
	FILE *m = open_memstream(&text, len);

	if (spyreprog_disassemble(bin, size, 0, m, &err))
		fail_msg("disassemble: %s", err.text);
	fclose(m);
	return text;
}

/* Bytes to text to bytes to text: both must come back. */
static void round_trip(const void *bin, size_t size)
{
	struct spyreprog_err err;
	size_t len, len2, size2;
	char *text = dis(bin, size, &len), *text2;
	void *bin2;

	if (spyreprog_assemble(text, len, &bin2, &size2, NULL, &err))
		fail_msg("%u:%u: %s in\n%s", err.line, err.column, err.text, text);
	assert_int_equal(size, size2);
	assert_memory_equal(bin, bin2, size);
	text2 = dis(bin2, size2, &len2);
	assert_string_equal(text, text2);
	free(text);
	free(text2);
	free(bin2);
}

/* --- Random containers that the card's checker accepts --------------------------------------- */

static const uint8_t pt_formats[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP16, SPYRE_BFLOAT16,
				      SPYRE_SENINT8 };
static const uint8_t lane_formats[] = { SPYRE_SEN169_FP16, SPYRE_IEEE_FP32,
					SPYRE_IEEE_FP16,   SPYRE_BFLOAT16,
					SPYRE_IEEE_INT32,  SPYRE_IEEE_FP32 | SPYRE_FMT_HALF };

static uint32_t word(void)
{
	static const uint32_t odd[] = { 0,	    1,		0xffffffff, 0x80000000, 0x7fffffff,
					0x3f800000, 0x7fc00000, 0xff800000, 0x00000001, 0x3dcccccd,
					9,	    10,		0x40490fdb };

	return rng(2) ? odd[rng(sizeof(odd) / sizeof(odd[0]))]
		      : rng(1u << 16) << 16 ^ rng(1u << 16);
}

static uint8_t some_fifo(unsigned int unit, bool write)
{
	unsigned int i;

	for (;;) {
		i = rng(SPYRE_FIFOS);
		if (unit == (write ? isa_fifos[i].writer : isa_fifos[i].reader) &&
		    (write || unit != SPYRE_UNIT_PT))
			return (uint8_t)i;
	}
}

static struct spyre_insn vector(unsigned int unit, unsigned int nconsts)
{
	const struct isa_op *o;
	const struct isa_field *f;
	unsigned int k, s;
	struct spyre_insn in = { .n = (uint16_t)(1 + rng(65535)) };
	uint8_t *src[] = { &in.b, &in.c, &in.d };
	bool own;

	do
		o = isa_op(rng(ISA_OPS));
	while (!o || !isa_is_vector(o) || !(o->units >> unit & 1));
	in.op = o->code;
	own = o->flags & ISA_IMM_OWN;
	for (k = 0; k < o->sources; k++) {
		s = rng(4);
		if (s == 0 && !own) {
			*src[k] = SPYRE_OPND_IMM;
			in.imm = word();
		} else if (s == 1 && nconsts) {
			*src[k] = (uint8_t)SPYRE_OPND_CONST(rng(nconsts < 127 ? nconsts : 127));
		} else if (s == 2) {
			*src[k] = (uint8_t)SPYRE_OPND_FIFO(some_fifo(unit, false));
			in.imm2 |= (uint32_t)lane_formats[rng(6)] << (8 * k);
		} else {
			*src[k] = (uint8_t)rng(SPYRE_VREGS);
		}
	}
	/* Sources that the operation does not have may be 0 or NONE. */
	for (; k < 3; k++)
		*src[k] = rng(20) ? 0 : SPYRE_OPND_NONE;
	if (rng(2)) {
		in.a = (uint8_t)SPYRE_OPND_FIFO(some_fifo(unit, true));
		in.imm2 |= (uint32_t)lane_formats[rng(6)] << 24;
	} else {
		in.a = (uint8_t)rng(SPYRE_VREGS);
	}
	for (f = o->fields; f->kind; f++)
		if (f->at == ISA_IMM)
			in.imm = f->kind == ISA_NUM ? f->min + rng(f->max - f->min + 1) : word();
	if (o->flags & ISA_LANES)
		in.c = (uint8_t)rng(SPYRE_LANES - in.imm + 1);
	return in;
}

static struct spyre_insn any(unsigned int unit, uint32_t cores, unsigned int nconsts, bool groups)
{
	unsigned int lbr = rng(2) ? SPYRE_REG_NONE : SPYRE_LBR0 + rng(4), n;

	switch (rng(7)) {
	case 0:
		return (struct spyre_insn){ .op = SPYRE_OP_NOP };
	case 1:
		return (struct spyre_insn){ .op = SPYRE_OP_ADDIMM,
					    .a = (uint8_t)rng(16),
					    .imm = word() };
	case 2:
		return (struct spyre_insn){ .op = SPYRE_OP_ADDREG,
					    .a = (uint8_t)rng(16),
					    .b = (uint8_t)rng(16),
					    .imm = word() };
	case 3:
		return (struct spyre_insn){ .op = SPYRE_OP_MVREG,
					    .a = (uint8_t)rng(16),
					    .b = (uint8_t)(rng(3) ? rng(16) : SPYRE_REG_NONE),
					    .imm = word() };
	case 4:
		return (struct spyre_insn){ .op = SPYRE_OP_SYNC_SEND, .a = (uint8_t)rng(SPYRE_TAGS),
					    .imm = word() & cores };
	default:
		break;
	}
	switch (unit) {
	case SPYRE_UNIT_L3LU:
	case SPYRE_UNIT_L3SU: {
		struct spyre_insn in = {
			.op = (uint8_t)(unit == SPYRE_UNIT_L3LU
						? SPYRE_OP_L3_LDU + (unsigned int)(groups && rng(2))
						: SPYRE_OP_L3_STU + rng(2)),
			.a = (uint8_t)rng(4),
			.b = (uint8_t)lbr,
			.c = (uint8_t)(SPYRE_EAR0 + rng(4)),
			.n = (uint16_t)(1 + rng(32)),
			.imm = word(),
			.imm2 = word()
		};
		return in;
	}
	case SPYRE_UNIT_PT:
		n = 1 + rng(128);
		switch (rng(4)) {
		case 0:
			return (struct spyre_insn){ .op = SPYRE_OP_PT_LDW, .a = (uint8_t)rng(8),
				.b = pt_formats[rng(4)],
				.d = rng(2) ? SPYRE_FIFO_LXLU_PTW : SPYRE_FIFO_L0LU_PTW };
		case 1:
			return (struct spyre_insn){ .op = SPYRE_OP_PT_MM,
						    .a = (uint8_t)rng(8),
						    .b = pt_formats[rng(4)],
						    .c = (uint8_t)rng(2),
						    .d = rng(2) ? SPYRE_FIFO_LXLU_PT
								: SPYRE_FIFO_L0LU_PT,
						    .n = (uint16_t)n,
						    .imm = rng(129 - n) };
		case 2:
			return (struct spyre_insn){ .op = SPYRE_OP_PT_PSOUT,
						    .d = some_fifo(unit, true),
						    .n = (uint16_t)n,
						    .imm = rng(129 - n) };
		default:
			return (struct spyre_insn){
				.op = SPYRE_OP_PT_PSIN,
				.b = rng(2) ? SPYRE_IEEE_FP32 : SPYRE_IEEE_INT32,
				.d = rng(2) ? SPYRE_FIFO_LXLU_PT : SPYRE_FIFO_L0LU_PT,
				.n = (uint16_t)n,
				.imm = rng(129 - n)
			};
		}
	case SPYRE_UNIT_PE:
	case SPYRE_UNIT_SFP:
		return vector(unit, nconsts);
	default:
		return (struct spyre_insn){
			.op = unit == SPYRE_UNIT_LXLU || unit == SPYRE_UNIT_L0LU ? SPYRE_OP_LD
										 : SPYRE_OP_ST,
			.a = (uint8_t)rng(4),
			.b = (uint8_t)lbr,
			.d = some_fifo(unit, unit == SPYRE_UNIT_LXLU || unit == SPYRE_UNIT_L0LU),
			.n = (uint16_t)(1 + rng(65535)),
			.imm = word() & ~127u,
			.imm2 = word()
		};
	}
}

/* A job with everything the text form knows, by the builder. */
static struct spyreprog_job *random_job(void)
{
	struct spyreprog_job *job = spyreprog_job_new();
	uint32_t cores = 0, lanes[SPYRE_LANES], i, k, tagged = 0;
	unsigned int nconsts = rng(4), nprogs = 1 + rng(6), c, unit, corelet;
	bool groups = rng(2);
	int prog[SPYRE_UNITS][8], np[SPYRE_UNITS] = { 0 }, p, u;

	for (i = 1 + rng(5); i--;)
		cores |= 1u << rng(32);
	if (!rng(4))
		cores = 0xffffffff;
	for (i = 0; i < nconsts; i++) {
		for (k = 0; k < SPYRE_LANES; k++)
			lanes[k] = i & 1 ? 0x3f800000u + i : word();
		spyreprog_job_const(job, lanes);
	}
	if (groups)
		spyreprog_job_group(job, 0, cores);
	if (rng(2))
		spyreprog_job_watchdog(job, rng(1000000));
	spyreprog_job_symbols(job, rng(5));
	(void)tagged;
	for (i = 0; i < nprogs; i++) {
		unsigned int depth = 0, n = rng(12);

		unit = rng(SPYRE_UNITS);
		p = spyreprog_job_program(job, unit);
		while (n--) {
			struct spyre_insn in = any(unit, cores, nconsts, groups);

			if (depth < SPYRE_LOOPS && !rng(4)) {
				if (rng(2))
					sp_loop(job, p, word());
				else
					sp_loop_reg(job, p, SPYRE_LCR0 + rng(4));
				depth++;
			}
			in.be = (uint8_t)(depth ? rng(depth + 1) : 0);
			depth -= in.be;
			spyreprog_job_insn(job, p, &in);
		}
		while (depth--)
			sp_end(job, p);
		prog[unit][np[unit]++] = p;
	}
	for (c = 0; c < 32; c++) {
		bool any_unit = false;

		if (!(cores >> c & 1))
			continue;
		for (unit = 0; unit < SPYRE_UNITS; unit++) {
			for (corelet = 0; corelet < (unit > SPYRE_UNIT_L3SU ? 2u : 1u); corelet++) {
				if (!np[unit] || (any_unit && !rng(3)))
					continue;
				any_unit = true;
				u = spyreprog_job_unit(job, c, unit, corelet,
						       prog[unit][c * 7u % (unsigned int)np[unit]]);
				for (k = 0; k < SPYRE_REGS; k++)
					if (!rng(6))
						spyreprog_job_init(
							job, u, k,
							rng(2) ? SPYRE_NO_SYMBOL : rng(9),
							k & 1 ? c * 4096u + 77
							      : (uint64_t)word() << 32 | word());
			}
		}
	}
	return job;
}

static void check_accepted(const void *bin, size_t size)
{
	struct job_error je;
	uint8_t *copy = malloc(size);
	struct job *j;

	memcpy(copy, bin, size);
	j = spyre_job_decode(copy, size, &je);
	if (!j)
		fail_msg("the checker refuses the container: code %d core %u unit 0x%x pc %u",
			 je.code, je.core, je.unit, je.pc);
	spyre_job_free(j);
}

static void test_random(void **state)
{
	struct spyreprog_job *job;
	unsigned int i;
	size_t size;
	void *bin;

	(void)state;
	for (i = 0; i < 400; i++) {
		rng_state = i * 2654435761u;
		job = random_job();
		if (spyreprog_job_finish(job, &bin, &size))
			fail_msg("%u: %s", i, spyreprog_job_error(job));
		check_accepted(bin, size);
		round_trip(bin, size);
		spyreprog_job_free(job);
		free(bin);
	}
}

/* Sections in another order, with gaps, initial values shared, tables reversed: still exact. */
static void test_foreign_layout(void **state)
{
	struct spyreprog_job *job = spyreprog_job_new();
	struct spyre_job_header h, *n;
	struct spyre_job_unit *units;
	uint8_t *bin, *moved;
	size_t size;
	int p, u, i;

	(void)state;
	p = spyreprog_job_program(job, SPYRE_UNIT_SFP);
	sp_vec(job, p, SPYRE_OP_MOV, 1, SPYRE_OPND_CONST(0), 0, 0, 1, 0, 0);
	spyreprog_job_const_fp32(job, 1.5f);
	for (i = 0; i < 2; i++) {
		u = spyreprog_job_unit(job, 3, SPYRE_UNIT_SFP, (unsigned int)i, p);
		spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, 128);
	}
	assert_int_equal(spyreprog_job_finish(job, (void **)&bin, &size), 0);
	spyreprog_job_free(job);
	memcpy(&h, bin, sizeof(h));

	/* Everything one stick further, then the text at the end. */
	moved = calloc(1, size + 512);
	memcpy(moved, bin, sizeof(h));
	memcpy(moved + sizeof(h) + 128, bin + sizeof(h), size - sizeof(h));
	n = (struct spyre_job_header *)moved;
	n->size = h.size + 512;
	n->programs_off += 128;
	n->units_off += 128;
	n->inits_off += 128;
	n->consts_off += 128;
	n->text_off = h.size + 256;
	memset(moved + h.text_off + 128, 0, h.ninsns * 16);
	memcpy(moved + n->text_off, bin + h.text_off, h.ninsns * 16);
	/* Both units start with the first initial value; the second is nobody's. */
	units = (struct spyre_job_unit *)(moved + n->units_off);
	units[1].init = 0;
	spyreprog_seal(moved, n->size);
	check_accepted(moved, n->size);
	round_trip(moved, n->size);
	free(bin);
	free(moved);
}

static void test_generated(void **state)
{
	static const uint32_t shapes[][3] = { { 64, 10, 64 },
					      { 300, 640, 1000 },
					      { 2048, 2048, 2048 } };
	struct spyreprog_job *job;
	unsigned int i, f;
	char err[200];
	size_t size;
	void *bin;

	(void)state;
	for (i = 0; i < 3; i++) {
		for (f = 0; f < 2; f++) {
			struct spyregen_matmul mm = {
				.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2],
				.bias = true, .act = SPYREGEN_GELU, .flags = f,
			};

			job = spyregen_matmul(&mm, err);
			assert_non_null(job);
			assert_int_equal(spyreprog_job_finish(job, &bin, &size), 0);
			check_accepted(bin, size);
			round_trip(bin, size);
			spyreprog_job_free(job);
			free(bin);
		}
	}
}

/* --- Text written by hand -------------------------------------------------------------------- */

static const char hand[] =
	"# copies a stick, core by core\n"
	"Symbol : 0 : SRC\n"
	"Symbol : 1 : DST\n"
	"Program for coreID : 0-3,8\n"
	"Program for unit l3lu:\n"
	"L3_LDU :: lar:0 ear:0 burst:4 be:0\n"
	"L3_SYNC_SEND :: synctag:0\n"
	"L3_RETURN :: be:0\n"
	"Registers for unit l3lu:\n"
	"EAR : 0 : SRC + core * 512\n"
	"Program for unit l3su:\n"
	"L3_SYNC_WAIT :: synctag:0\n"
	"L3_STU :: lar:0 ear:0 burst:4\n"
	"L3_RETURN ::\n"
	"Registers for unit l3su:\n"
	"EAR : 0 : DST + 512 * core\n"
	"LBR : 0..3 : 0, 4096, 0x2000, 12288\n";

static void test_hand_written(void **state)
{
	const struct spyre_job_header *h;
	const struct spyre_job_unit *u;
	const struct spyre_job_init *in;
	char *names[SPYRE_JOB_SYMBOLS];
	struct spyreprog_err err;
	size_t size;
	void *bin;

	(void)state;
	if (spyreprog_assemble(hand, strlen(hand), &bin, &size, names, &err))
		fail_msg("%u:%u: %s", err.line, err.column, err.text);
	check_accepted(bin, size);
	round_trip(bin, size);
	h = bin;
	assert_int_equal(h->core_mask, 0x10f);
	assert_int_equal(h->nsymbols, 2);
	assert_int_equal(h->nprograms, 2);
	assert_string_equal(names[0], "SRC");
	assert_string_equal(names[1], "DST");
	u = (const void *)((const char *)bin + h->units_off);
	in = (const void *)((const char *)bin + h->inits_off);
	/* Core 8's L3LU is the last but one. */
	assert_int_equal(u[8].core, 8);
	assert_int_equal(in[u[8].init].value, 8 * 512);
	assert_int_equal(in[u[8].init].symbol, 0);
	assert_int_equal(in[u[9].init + 3].reg, SPYRE_LBR0 + 2);
	assert_int_equal(in[u[9].init + 3].value, 0x2000);
	free(names[0]);
	free(names[1]);
	free(bin);
}

/* The public init.txt form: last byte of a stick first. */
static void test_hex_sticks(void **state)
{
	struct spyreprog_err err;
	size_t size, size2, i, k, len = 0;
	uint8_t *bin, *bin2;
	char *text;

	(void)state;
	assert_int_equal(spyreprog_assemble(hand, strlen(hand), (void **)&bin, &size, NULL, &err),
			 0);
	text = malloc(size * 2 + size / 128 + 100);
	len += (size_t)sprintf(text, "# init\n");
	for (i = 0; i < size; i += 128) {
		for (k = 128; k-- > 0;)
			len += (size_t)sprintf(text + len, "%02x", bin[i + k]);
		len += (size_t)sprintf(text + len, "\n");
	}
	if (spyreprog_assemble(text, len, (void **)&bin2, &size2, NULL, &err))
		fail_msg("%u:%u: %s", err.line, err.column, err.text);
	assert_int_equal(size, size2);
	assert_memory_equal(bin, bin2, size);
	free(bin2);
	text[300] = 'x';
	assert_int_not_equal(spyreprog_assemble(text, len, (void **)&bin2, &size2, NULL, &err), 0);
	assert_int_equal(err.line, 3);
	free(text);
	free(bin);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text;
		unsigned int line, column;
		const char *says;
	} cases[] = {
		{ "", 1, 1, "no unit runs a program" },
		{ "nonsense\n", 1, 1, "begins no line" },
		{ "Program a for unit l3lv:\n", 1, 20, "is no unit" },
		{ "Program a for unit l3lu:\nL3_RETURN ::\n", 0, 0, "no unit runs a program" },
		{ "Program a for unit l3lu:\nL3_NOP ::\n", 1, 1, "does not end in L3_RETURN" },
		{ "Program a for unit l3lu:\nL3_LDU :: lar:0 ear:0 burst:33\n", 2, 29, "1 to 32" },
		{ "Program a for unit l3lu:\nL3_LDU :: lar:0 burst:3\n", 2, 24,
		  "needs the field 'ear'" },
		{ "Program a for unit l3lu:\nL3_LDU :: lar:4 ear:0 burst:3\n", 2, 15,
		  "registers LAR0 to LAR3" },
		{ "Program a for unit l3lu:\nL3_LDU :: lar:0 lar:0\n", 2, 17, "given twice" },
		{ "Program a for unit l3lu:\nPT_MM :: tile:0\n", 2, 1, "l3lu does not execute" },
		{ "Program a for unit pe:\nPE_EXP :: dst:V0 src0:V1\n", 2, 1,
		  "pe does not execute" },
		{ "Program a for unit pe:\nPE_MOV :: dst:V16 src0:V1\n", 2, 15, "V0 to V15" },
		{ "Program a for unit pe:\nPE_MOV :: dst:LXLU_PE0/IEEE_FP32 src0:V1\n", 2, 15,
		  "is written by lxlu" },
		{ "Program a for unit pe:\nPE_MOV :: dst:PE_SFP/FP99 src0:V1\n", 2, 22,
		  "no data format" },
		{ "Program a for unit pe:\nPE_ADD :: dst:V0 src0:imm=1.0 src1:imm=2.0\n", 2, 36,
		  "one immediate" },
		{ "Program a for unit pt:\nPT_MM :: tile:0 fmt:SEN169_FP16 onto:0 fifo:LXLU_PTW "
		  "n:1 row:0\n",
		  2, 45, "load port" },
		{ "Program a for unit pt:\nPT_NOP :: be:1\n", 2, 1, "more blocks" },
		{ "Program a for unit pt:\nPT_MVLOOPCNT :: count:3\nPT_RETURN ::\n", 3, 1,
		  "still open" },
		{ "Program a for unit pt:\nPT_RETURN ::\nPT_NOP ::\n", 3, 1, "nothing can follow" },
		{ "Program a for unit pt:\nPT_RETURN ::\nProgram a for unit pt:\n", 3, 9,
		  "defined twice" },
		{ "Program 7 for unit pt:\n", 1, 9, "number 0" },
		{ "Program for unit pt:\n", 1, 1, "no core yet" },
		{ "Program for coreID : 32\n", 1, 22, "0 to 31" },
		{ "Program for coreID : 0\nProgram for unit pt: b\n", 2, 22, "no program 'b'" },
		{ "Program a for unit pe:\nPE_RETURN ::\nProgram for coreID : 0\nProgram for unit "
		  "pt: a\n",
		  4, 22, "is for pe" },
		{ "Program a for unit pt:\nPT_RETURN ::\nProgram for coreID : 0\nProgram for unit "
		  "pt: a\n"
		  "Program for unit pt.0: a\n",
		  5, 18, "already has a program" },
		{ "Program a for unit pt:\nPT_RETURN ::\nProgram for coreID : 0\nProgram for unit "
		  "pt.2: a\n",
		  4, 20, "corelet" },
		{ "LAR : 0 : 1\n", 1, 1, "no unit yet" },
		{ "Program a for unit pt:\nPT_RETURN ::\nProgram for coreID : 0\nProgram for unit "
		  "pt: a\n"
		  "Registers for unit pt:\nLCR : 0 : N\n",
		  6, 11, "is no symbol" },
		{ "Constant : 1 : all 1.0\n", 2, 1, "constant 0 is missing" },
		{ "Constant : 0 : 1 2 3\nGroup : 0 : 0\n", 2, 1, "3 lanes" },
		{ "Group : 16 : 0\n", 1, 9, "too large" },
		{ "Symbol : 0 : core\n", 1, 14, "expected a name" },
	};
	struct spyreprog_err err;
	unsigned int i;
	size_t size;
	void *bin;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!spyreprog_assemble(cases[i].text, strlen(cases[i].text), &bin, &size, NULL,
					&err))
			fail_msg("case %u was accepted:\n%s", i, cases[i].text);
		if (!strstr(err.text, cases[i].says) ||
		    (cases[i].line && err.line != cases[i].line) ||
		    (cases[i].line && err.column != cases[i].column && i))
			fail_msg("case %u: said %u:%u: %s; expected %u:%u: ...%s...\n%s", i,
				 err.line, err.column, err.text, cases[i].line, cases[i].column,
				 cases[i].says, cases[i].text);
	}
}

static void test_damaged_container(void **state)
{
	struct spyreprog_err err;
	char *sink = NULL;
	uint8_t *bin;
	size_t size, len, i;
	FILE *m = open_memstream(&sink, &len);

	(void)state;
	assert_int_equal(spyreprog_assemble(hand, strlen(hand), (void **)&bin, &size, NULL, &err),
			 0);
	/* Any changed byte is found: by magic, version, size, section, reserved field, digest. */
	for (i = 0; i < size; i++) {
		bin[i] ^= 0x10;
		if (!spyreprog_disassemble(bin, size, 0, m, &err) &&
		    i >= offsetof(struct spyre_job_header, digest))
			fail_msg("byte %zu changed and nobody noticed", i);
		bin[i] ^= 0x10;
	}
	for (i = 0; i < size; i += 64)
		assert_int_not_equal(spyreprog_disassemble(bin, i, 0, m, &err), 0);
	fclose(m);
	free(sink);
	free(bin);
}

/* Noise must give an error, never a crash; the sanitizers watch. */
static void test_noise(void **state)
{
	struct spyreprog_err err;
	char buf[4096];
	unsigned int i, k, n;
	size_t size;
	void *bin;

	(void)state;
	rng_state = 99;
	for (i = 0; i < 3000; i++) {
		n = (unsigned int)sizeof(hand) - 1;
		memcpy(buf, hand, n);
		for (k = 1 + rng(6); k--;) {
			unsigned int at = rng(n);

			if (rng(3))
				buf[at] = (char)(32 + rng(95));
			else
				memmove(buf + at, buf + rng(n),
					rng(8) < n - at ? rng(8) % (n - at) : 0);
		}
		if (!spyreprog_assemble(buf, n - rng(n), &bin, &size, NULL, &err))
			free(bin);
		else
			assert_string_not_equal(err.text, "");
	}
}

/* The manual has a place for every operation, with all that it says of each. */
static void test_manual(void **state)
{
	static const char *const parts[] = { ":Fields: ", ":Cycles: ", ":Errors: OPCODE, FIELD, " };
	char *text = NULL, head[40], *at, *end;
	unsigned int op, k, n = 0;
	size_t len;
	FILE *m = open_memstream(&text, &len);

	(void)state;
	spyreprog_print_rst(m);
	fclose(m);
	assert_null(strstr(text, "(null)"));
	for (op = 0; op < 256; op++) {
		const struct isa_op *o = isa_op(op);

		if (!o)
			continue;
		snprintf(head, sizeof(head), "%s`` (0x%02x)\n   ", o->name, op);
		at = strstr(text, head);
		if (!at)
			fail_msg("%s is missing", o->name);
		/* Each in its own paragraph, not in that of a later one. */
		end = strstr(at + strlen(head), "`` (0x");
		for (k = 0; k < 3; k++)
			if (!strstr(at, parts[k]) || (end && strstr(at, parts[k]) > end))
				fail_msg("%s has no %s", o->name, parts[k]);
		n++;
	}
	for (k = 0, at = text; (at = strstr(at, ":Cycles: ")); at++)
		k++;
	assert_int_equal(k, n);
	free(text);
}

static void test_builder_errors(void **state)
{
	struct spyreprog_job *job;
	size_t size;
	void *bin;
	int p, u;

	(void)state;
	job = spyreprog_job_new();
	assert_int_equal(spyreprog_job_finish(job, &bin, &size), -1);
	assert_non_null(strstr(spyreprog_job_error(job), "no unit"));
	spyreprog_job_free(job);

	job = spyreprog_job_new();
	p = spyreprog_job_program(job, SPYRE_UNIT_PT);
	sp_loop(job, p, 3);
	spyreprog_job_unit(job, 0, SPYRE_UNIT_PT, 0, p);
	assert_int_equal(spyreprog_job_finish(job, &bin, &size), -1);
	assert_non_null(strstr(spyreprog_job_error(job), "not ended"));
	spyreprog_job_free(job);

	job = spyreprog_job_new();
	p = spyreprog_job_program(job, SPYRE_UNIT_PT);
	assert_int_equal(spyreprog_job_unit(job, 0, SPYRE_UNIT_PE, 0, p), -1);
	assert_int_equal(spyreprog_job_unit(job, 0, SPYRE_UNIT_PT, 0, p), -1);
	assert_non_null(spyreprog_job_error(job));
	spyreprog_job_free(job);

	job = spyreprog_job_new();
	p = spyreprog_job_program(job, SPYRE_UNIT_PT);
	u = spyreprog_job_unit(job, 0, SPYRE_UNIT_PT, 1, p);
	spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, 1);
	spyreprog_job_init(job, u, SPYRE_LAR0, SPYRE_NO_SYMBOL, 1);
	assert_non_null(strstr(spyreprog_job_error(job), "twice"));
	spyreprog_job_free(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_foreign_layout),
		cmocka_unit_test(test_generated),
		cmocka_unit_test(test_hand_written),
		cmocka_unit_test(test_hex_sticks),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_damaged_container),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_manual),
		cmocka_unit_test(test_builder_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
