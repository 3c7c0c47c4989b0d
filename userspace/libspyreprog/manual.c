// SPDX-License-Identifier: MIT
/* The manual's part about each instruction, by the table. */
#include "../../qemu-device/model/time_params.h"
#include "table.h"

static const char *const places[] = { "a", "b", "c", "d", "n", "imm", "imm2" };

/* FIFOs that a field may name, for all units that run the operation. */
static void put_fifos(FILE *out, const struct isa_op *o)
{
	const char *sep = "";
	unsigned int f, u;

	for (f = 0; f < SPYRE_FIFOS; f++) {
		bool ok = false;

		for (u = 0; u < SPYRE_UNITS; u++)
			if (o->units >> u & 1)
				ok |= o->flags & ISA_WRITES ?
				      isa_writes(u, f) : isa_reads(u, f, o->flags & ISA_LOAD_PORT);
		if (!ok)
			continue;
		fprintf(out, "%s%s", sep, isa_fifos[f].name);
		sep = ", ";
	}
}

static void put_formats(FILE *out, uint32_t mask)
{
	const char *sep = "";
	unsigned int f;

	for (f = 0; f < SPYRE_FORMATS; f++) {
		if (!(mask >> f & 1))
			continue;
		fprintf(out, "%s%s", sep, isa_formats[f].name);
		sep = ", ";
	}
}

static void put_field(FILE *out, const struct isa_op *o, const struct isa_field *f)
{
	fprintf(out, "``%s`` (%s) ", f->name, places[f->at]);
	switch ((enum isa_kind)f->kind) {
	case ISA_END:
		break;
	case ISA_COUNT:
		fputs("0 to 4294967295, or LCR0 to LCR3 (b, with c = 1)", out);
		break;
	case ISA_REG:
		fputs("any register", out);
		break;
	case ISA_REG_OR_NONE:
		fputs("any register or none (255)", out);
		break;
	case ISA_LAR:
		fputs("LAR0 to LAR3", out);
		break;
	case ISA_LBR:
		fputs("LBR0 to LBR3 or none (255)", out);
		break;
	case ISA_EAR:
		fputs("EAR0 to EAR3", out);
		break;
	case ISA_BOOL:
		fputs("0 or 1", out);
		break;
	case ISA_NUM:
		fprintf(out, "%u to %u", f->min, f->max);
		break;
	case ISA_S32:
		fputs("32 bits with sign", out);
		break;
	case ISA_STRIDE:
		fprintf(out, "multiple of %u, with sign", SPYRE_STICK);
		break;
	case ISA_CORES:
		fputs("mask of cores of the job, 0 being the own core", out);
		break;
	case ISA_TAG:
		fprintf(out, "0 to %u", SPYRE_TAGS - 1);
		break;
	case ISA_TILE:
		fputs("0 to 7", out);
		break;
	case ISA_GROUP:
		fprintf(out, "0 to %u, one that the container defines and the core is in",
			SPYRE_JOB_GROUPS - 1);
		break;
	case ISA_FIFO:
		put_fifos(out, o);
		break;
	case ISA_FMT:
		put_formats(out, f->max);
		break;
	case ISA_DST:
		fputs("V register or FIFO", out);
		break;
	case ISA_SRC:
		fprintf(out, "V register, FIFO%s constant word%s",
			o->flags & ISA_IMM_OWN ? " or" : ",",
			o->flags & ISA_IMM_OWN ? "" : " or imm");
		break;
	}
	if (!f->optional)
		return;
	if (f->kind == ISA_LBR)
		fputs(", if absent none", out);
	else
		fprintf(out, ", if absent %u", f->fallback);
}

static void put_fields(FILE *out, const struct isa_op *o)
{
	const struct isa_field *f;

	fputs("   :Fields: ", out);
	for (f = o->fields; f->kind; f++) {
		if (f != o->fields)
			fputs("; ", out);
		put_field(out, o, f);
	}
	if (f == o->fields)
		fputs("none", out);
	if (o->flags & ISA_ROWS)
		fputs("; row + n is at most 128", out);
	if (o->flags & ISA_LANES)
		fputs("; first + count is at most 64", out);
	fputc('\n', out);
}

static void put_effect(FILE *out, const struct isa_op *o)
{
	char words[32];

	if (isa_is_vector(o)) {
		fprintf(out, "   :FIFOs: each of n times %sa push of the destination, in words as "
			     "the formats say\n",
			o->sources ? "a pop of each source and " : "");
		return;
	}
	if (!o->words)
		return;
	if (o->flags & ISA_LOAD_PORT)
		snprintf(words, sizeof(words), "%u words", o->words);
	else
		snprintf(words, sizeof(words), o->words > 1 ? "%u * n words" : "n words", o->words);
	fprintf(out, "   :FIFOs: %s %s%s\n", o->flags & ISA_WRITES ? "pushes" : "pops", words,
		o->flags & ISA_LOAD_PORT ? ", while the unit goes on" : "");
}

static void put_cycles(FILE *out, const struct isa_op *o)
{
	unsigned int vector = 0;

	fputs("   :Cycles: ", out);
	switch ((enum isa_cost)o->cost) {
	case ISA_CONTROL:
		fputs("1\n", out);
		return;
	case ISA_SYNC:
		fprintf(out, "1, and the way of a send: %u on the core, %u to others\n",
			TIME_TAG_CYCLES, TIME_TAG_FAR_CYCLES);
		return;
	case ISA_EXTERNAL:
		if (o->flags & ISA_MEMORY)
			fprintf(out, "1 to ask, with at most %u bursts in flight; memory and ring "
				     "take theirs\n",
				o->code == SPYRE_OP_L3_LDM ? TIME_MULTICASTS_IN_FLIGHT :
							     TIME_BURSTS_IN_FLIGHT);
		else
			fprintf(out, "its words at %llu GB/s, and %u until they are seen\n",
				TIME_MNI_OUT_BYTES_S / 1000000000, TIME_STC_CYCLES);
		return;
	case ISA_STREAM:
		fprintf(out, "a word each cycle of the FIFO's link (%llu MHz)\n",
			TIME_LINK_HZ / 1000000);
		return;
	case ISA_TILE_LOAD:
		fprintf(out, "1; the load port takes a word each cycle of the FIFO's link "
			     "(%llu MHz)\n",
			TIME_LINK_HZ / 1000000);
		return;
	case ISA_MATMUL:
		fprintf(out, "%u beats for each word, of a cycle or 1/%llu us, whichever is "
			     "longer\n",
			TIME_MM_BEATS, TIME_PT_BEAT_HZ / 1000000);
		return;
	case ISA_SIMPLE:
		vector = 1;
		break;
	case ISA_SPECIAL:
		vector = TIME_SPECIAL_CYCLES;
		break;
	case ISA_REDUCE:
		vector = TIME_REDUCE_CYCLES;
		break;
	case ISA_RANK:
		vector = TIME_RANK_CYCLES;
		break;
	}
	fprintf(out, "%u each time, or its words over the links where that is longer\n", vector);
}

static void put_errors(FILE *out, const struct isa_op *o)
{
	static const uint8_t of_kind[] = {
		[ISA_COUNT] = SPYRE_PE_REGISTER, [ISA_REG] = SPYRE_PE_REGISTER,
		[ISA_REG_OR_NONE] = SPYRE_PE_REGISTER, [ISA_LAR] = SPYRE_PE_REGISTER,
		[ISA_LBR] = SPYRE_PE_REGISTER, [ISA_EAR] = SPYRE_PE_REGISTER,
		[ISA_TAG] = SPYRE_PE_TAG, [ISA_GROUP] = SPYRE_PE_GROUP,
		[ISA_FIFO] = SPYRE_PE_FIFO, [ISA_FMT] = SPYRE_PE_FORMAT,
		[ISA_DST] = SPYRE_PE_FIFO, [ISA_SRC] = SPYRE_PE_CONST,
	};
	uint64_t codes = 1ull << SPYRE_PE_OPCODE | 1ull << SPYRE_PE_FIELD | 1ull << SPYRE_PE_LOOP;
	const struct isa_field *f;
	const char *sep = "";
	unsigned int e;

	for (f = o->fields; f->kind; f++)
		if (f->kind < sizeof(of_kind))
			codes |= 1ull << of_kind[f->kind];
	if (isa_is_vector(o))
		codes |= 1ull << SPYRE_PE_FORMAT;
	codes |= (uint64_t)o->errors << SPYRE_PE_LX_RANGE;
	fputs("   :Errors: ", out);
	for (e = 1; e < SPYRE_PE_LX_RANGE; e++) {
		if (!(codes >> e & 1))
			continue;
		fprintf(out, "%s%s", sep, isa_errs[e].name);
		sep = ", ";
	}
	sep = "; while running ";
	for (; e < sizeof(isa_errs) / sizeof(isa_errs[0]); e++) {
		if (!(codes >> e & 1))
			continue;
		fprintf(out, "%s%s", sep, isa_errs[e].name);
		sep = ", ";
	}
	fprintf(out, "%s\n", o->flags & ISA_MEMORY ? ", faults of memory" : "");
}

static void put_op(FILE *out, const struct isa_op *o)
{
	/* Where a mnemonic has several prefixes, it is given without. */
	bool one = !(o->units & (o->units - 1u));

	fprintf(out, "``%s%s`` (0x%02x)\n   %s\n\n",
		one ? isa_prefixes[__builtin_ctz(o->units)] : "", o->name, o->code, o->does);
	put_fields(out, o);
	put_effect(out, o);
	put_cycles(out, o);
	put_errors(out, o);
	fputc('\n', out);
}

void spyreprog_print_rst(FILE *out)
{
	static const struct { const char *title; uint32_t units; } parts[] = {
		{ "Every unit", ISA_UNITS_ALL }, { "L3LU", ISA_U(L3LU) },
		{ "L3SU", ISA_U(L3SU) }, { "LXLU and L0LU", ISA_UNITS_LOAD },
		{ "LXSU and L0SU", ISA_UNITS_STORE }, { "PT", ISA_U(PT) },
		{ "PE and SFP", ISA_UNITS_VEC }, { "SFP", ISA_U(SFP) },
	};
	unsigned int i, k;

	fputs(".. SPDX-License-Identifier: MIT\n\n", out);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		fprintf(out, "%s\n", parts[i].title);
		for (k = 0; parts[i].title[k]; k++)
			fputc('-', out);
		fputs("\n\n", out);
		for (k = 0; k < ISA_OPS; k++)
			if (isa_op(k) && isa_op(k)->units == parts[i].units)
				put_op(out, isa_op(k));
	}
}
