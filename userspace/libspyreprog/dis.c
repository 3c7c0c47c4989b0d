// SPDX-License-Identifier: MIT
/* Container to text. */
#include <stdlib.h>
#include <string.h>

#include "text.h"

static void print_head(FILE *out, const struct image *im, bool raw)
{
	unsigned int i, k;

	fprintf(out, "# %u programs, %u instructions, %u bytes\n", im->nprograms, im->ninsns,
		im->size);
	fprintf(out, "Version : %u.%u\n", im->major, im->minor);
	if (im->watchdog)
		fprintf(out, "Watchdog : %llu\n", (unsigned long long)im->watchdog);
	if (im->nsymbols)
		fprintf(out, "Symbols : %u\n", im->nsymbols);
	for (i = 0; im->has_groups && i < SPYRE_JOB_GROUPS; i++) {
		/* One line at least: it is what says that the section exists. */
		if (!im->groups[i] && !(i == 0 && !raw))
			continue;
		fprintf(out, "Group : %u : ", i);
		print_cores(out, im->groups[i]);
		fputc('\n', out);
	}
	for (i = 0; i < im->nconsts; i++) {
		const uint32_t *c = im->consts[i];

		for (k = 1; k < SPYRE_LANES && c[k] == c[0]; k++)
			;
		fprintf(out, "Constant : %u :", i);
		if (k == SPYRE_LANES) {
			fputs(" all ", out);
			print_bits(out, c[0], true);
			fputc('\n', out);
			continue;
		}
		for (k = 0; k < SPYRE_LANES; k++) {
			fputs(k % 8 ? " " : "\n  ", out);
			print_bits(out, c[k], true);
		}
		fputc('\n', out);
	}
}

/* One term of a sum; values of 64 bits read best with their sign. */
static void print_term(FILE *out, bool first, uint64_t v, const char *what)
{
	bool neg = (int64_t)v < 0;

	if (neg)
		v = 0 - v;
	fputs(neg ? first ? "-" : " - " : first ? "" : " + ", out);
	if (what && v == 1)
		fputs(what, out);
	else if (what)
		fprintf(out, v < 65536 ? "%s * %llu" : "%s * 0x%llx", what, (unsigned long long)v);
	else
		fprintf(out, v < 65536 ? "%llu" : "0x%llx", (unsigned long long)v);
}

static void print_value(FILE *out, const struct spyre_job_init *in, uint64_t base,
			uint64_t per_core)
{
	bool first = in->symbol == SPYRE_NO_SYMBOL;

	if (!first)
		fprintf(out, "sym%u", in->symbol);
	if (base || (!per_core && first)) {
		print_term(out, first, base, NULL);
		first = false;
	}
	if (per_core)
		print_term(out, first, per_core, "core");
}

static void print_unit(FILE *out, const struct spyre_job_unit *u)
{
	fputs(spyreprog_unit_name(u->unit) ? spyreprog_unit_name(u->unit) : "?", out);
	if (u->unit > SPYRE_UNIT_L3SU)
		fprintf(out, ".%u", u->corelet);
}

/* Directory entries of one core. */
struct core {
	uint32_t first, n;
};

static bool same_shape(const struct image *im, struct core x, struct core y)
{
	uint32_t i, k;

	if (x.n != y.n)
		return false;
	for (i = 0; i < x.n; i++) {
		const struct spyre_job_unit *a = &im->units[x.first + i],
					    *b = &im->units[y.first + i];

		if (a->unit != b->unit || a->corelet != b->corelet || a->program != b->program ||
		    a->ninits != b->ninits)
			return false;
		for (k = 0; k < a->ninits; k++)
			if (im->inits[a->init + k].reg != im->inits[b->init + k].reg ||
			    im->inits[a->init + k].symbol != im->inits[b->init + k].symbol)
				return false;
	}
	return true;
}

/* Do all initial values of core z continue the line through those of cores x and y? */
static bool on_line(const struct image *im, struct core x, struct core y, struct core z)
{
	uint64_t cx = im->units[x.first].core, cy = im->units[y.first].core,
		 cz = im->units[z.first].core;
	uint32_t i, k;

	for (i = 0; i < x.n; i++) {
		for (k = 0; k < im->units[x.first + i].ninits; k++) {
			uint64_t a = im->inits[im->units[x.first + i].init + k].value;
			uint64_t b = im->inits[im->units[y.first + i].init + k].value;
			uint64_t c = im->inits[im->units[z.first + i].init + k].value;
			int64_t d = (int64_t)(b - a);

			if (d % (int64_t)(cy - cx))
				return false;
			if (c - a != (uint64_t)(d / (int64_t)(cy - cx)) * (cz - cx))
				return false;
		}
	}
	return true;
}

static void print_text(FILE *out, const struct image *im, const struct spyre_job_program *p)
{
	uint32_t i;

	for (i = 0; i < p->count; i++)
		insn_print(out, p->unit, &im->insns[p->first + i]);
}

/* One section for all the cores in mask, whose values lie on the line through cores x and y. */
static void print_section(FILE *out, const struct image *im, uint32_t mask, struct core x,
			  struct core y, unsigned int flags)
{
	uint64_t cx = im->units[x.first].core, cy = im->units[y.first].core;
	uint32_t i, k;

	fputs("\nProgram for coreID : ", out);
	print_cores(out, mask);
	fputc('\n', out);
	for (i = 0; i < x.n; i++) {
		const struct spyre_job_unit *u = &im->units[x.first + i],
					    *v = &im->units[y.first + i];

		fputs("Program for unit ", out);
		print_unit(out, u);
		if (flags & SPYREPROG_DIS_EXPAND) {
			fputs(":\n", out);
			print_text(out, im, &im->programs[u->program]);
		} else {
			fprintf(out, ": %u\n", u->program);
		}
		if (!u->ninits)
			continue;
		fputs("Registers for unit ", out);
		print_unit(out, u);
		fputs(":\n", out);
		for (k = 0; k < u->ninits; k++) {
			const struct spyre_job_init *in = &im->inits[u->init + k];
			int64_t d = (int64_t)(im->inits[v->init + k].value - in->value);
			uint64_t per = cy > cx ? (uint64_t)(d / (int64_t)(cy - cx)) : 0;

			fprintf(out, "%.3s : %u : ", spyreprog_reg_name(in->reg), in->reg % 4u);
			print_value(out, in, in->value - per * cx, per);
			fputc('\n', out);
		}
	}
}

/* Are all references inside the arrays? The structured form needs them. */
static bool sane(const struct image *im)
{
	uint32_t i, k;

	for (i = 0; i < im->nprograms; i++)
		if (im->programs[i].unit >= SPYRE_UNITS ||
		    (uint64_t)im->programs[i].first + im->programs[i].count > im->ninsns)
			return false;
	for (i = 0; i < im->nunits; i++) {
		const struct spyre_job_unit *u = &im->units[i];

		if (u->core >= 32 || u->unit >= SPYRE_UNITS || u->corelet > 1 ||
		    u->ninits > SPYRE_REGS || u->program >= im->nprograms ||
		    (uint64_t)u->init + u->ninits > im->ninits)
			return false;
		for (k = 0; k < u->ninits; k++)
			if (im->inits[u->init + k].reg >= SPYRE_REGS)
				return false;
	}
	return true;
}

static void print_structured(FILE *out, const struct image *im, unsigned int flags)
{
	struct core cores[32];
	uint32_t i, done = 0, mask;
	unsigned int n = 0, j, k, second;

	print_head(out, im, false);
	for (i = 0; !(flags & SPYREPROG_DIS_EXPAND) && i < im->nprograms; i++) {
		fprintf(out, "\nProgram %u for unit %s:\n", i,
			spyreprog_unit_name(im->programs[i].unit));
		print_text(out, im, &im->programs[i]);
	}
	for (i = 0; i < im->nunits && n < 32; i++) {
		if (!i || im->units[i].core != im->units[i - 1].core)
			cores[n++] = (struct core){ i, 0 };
		cores[n - 1].n++;
	}
	for (j = 0; j < n; j++) {
		if (done >> j & 1)
			continue;
		mask = 1u << im->units[cores[j].first].core;
		second = j;
		for (k = j + 1; k < n && !(flags & SPYREPROG_DIS_EXPAND); k++) {
			if (done >> k & 1 || !same_shape(im, cores[j], cores[k]))
				continue;
			if (!on_line(im, cores[j], second == j ? cores[k] : cores[second],
				     cores[k]))
				continue;
			if (second == j)
				second = k;
			done |= 1u << k;
			mask |= 1u << im->units[cores[k].first].core;
		}
		print_section(out, im, mask, cores[j], cores[second], flags);
	}
}

static void print_raw(FILE *out, const struct image *im)
{
	uint32_t i;

	fputs("# laid out by other rules than this assembler's: tables as they are\n", out);
	print_head(out, im, true);
	fprintf(out,
		"Layout : size %u\nLayout : programs %u\nLayout : units %u\nLayout : inits %u\n"
		"Layout : text %u\nLayout : consts %u\nLayout : groups %u\n",
		im->size, im->programs_off, im->units_off, im->inits_off, im->text_off,
		im->consts_off, im->groups_off);
	for (i = 0; i < im->nprograms; i++)
		fprintf(out, "Program %u : unit %u first %u count %u\n", i, im->programs[i].unit,
			im->programs[i].first, im->programs[i].count);
	fputs("# core unit corelet program init ninits\n", out);
	for (i = 0; i < im->nunits; i++)
		fprintf(out, "Unit : %u %u %u %u %u %u\n", im->units[i].core, im->units[i].unit,
			im->units[i].corelet, im->units[i].program, im->units[i].init,
			im->units[i].ninits);
	fputs("# register symbol value\n", out);
	for (i = 0; i < im->ninits; i++)
		fprintf(out, "Init : %u %u 0x%llx\n", im->inits[i].reg, im->inits[i].symbol,
			(unsigned long long)im->inits[i].value);
	fputs("Text:\n", out);
	for (i = 0; i < im->ninsns; i++)
		insn_print(out, -1, &im->insns[i]);
}

int spyreprog_disassemble(const void *container, size_t size, unsigned int flags, FILE *out,
			  struct spyreprog_err *err)
{
	struct spyreprog_err again_err;
	size_t len = 0, again_size;
	char *text = NULL;
	void *again = NULL;
	struct image im;
	int ret = -1;
	FILE *m;

	memset(err, 0, sizeof(*err));
	if (image_unpack(&im, container, size, err))
		return -1;
	if (flags & SPYREPROG_DIS_EXPAND && sane(&im)) {
		print_structured(out, &im, flags);
		image_free(&im);
		return 0;
	}
	m = open_memstream(&text, &len);
	if (!m) {
		snprintf(err->text, sizeof(err->text), "out of memory");
		goto out;
	}
	/* Whatever was laid out differently shows when the text is read back. */
	if (sane(&im)) {
		print_structured(m, &im, flags);
		fflush(m);
		if (spyreprog_assemble(text, len, &again, &again_size, NULL, &again_err) ||
		    again_size != im.size || memcmp(again, container, again_size)) {
			rewind(m);
			free(again);
			again = NULL;
		}
	}
	if (!again) {
		print_raw(m, &im);
		fflush(m);
		len = (size_t)ftell(m);
		if (spyreprog_assemble(text, len, &again, &again_size, NULL, &again_err) ||
		    again_size != im.size || memcmp(again, container, again_size)) {
			snprintf(err->text, sizeof(err->text),
				 "a reserved field of a table is not 0");
			goto close;
		}
	}
	ret = fwrite(text, 1, len, out) == len ? 0 : -1;
	if (ret)
		snprintf(err->text, sizeof(err->text), "cannot write the text");
close:
	fclose(m);
out:
	free(text);
	free(again);
	image_free(&im);
	return ret;
}
