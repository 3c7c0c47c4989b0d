// SPDX-License-Identifier: MIT
/*
 * Text to container.
 *
 * Two dialects in one grammar. The structured one says what runs where and leaves the container's
 * layout to image_layout(); the raw one (Layout, Text, Init, Unit lines) says where everything
 * lies, for containers that other tools laid out in their own way.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <spyre/hw.h>

#include "spyrecode.h"
#include "spyregen.h"
#include "text.h"

struct label {
	const char *p;
	size_t n;
};

struct pending_init {
	uint8_t reg;
	uint16_t symbol;
	uint64_t value, per_core;
};

/* A unit line of a core section, for all cores of the section. */
struct pending_unit {
	uint32_t cores;
	uint8_t unit, corelet;
	uint32_t program;
	struct pending_init inits[SPYRE_REGS];
	unsigned int ninits;
	unsigned int line;
};

struct as {
	struct image im;
	struct spyreprog_err *err;
	const char **names;		/* symbol names */
	size_t *name_len;
	struct spyreprog_tensor *tensors;
	size_t ntensors;
	struct label *labels;		/* of programs, by number */
	struct pending_unit *units;
	size_t nunits;
	size_t cap_programs, cap_units, cap_inits, cap_insns, cap_pending;
	uint32_t cores;			/* of the section */
	int unit;			/* whose text follows, or -1 */
	bool in_text, raw_text;		/* instructions may come */
	unsigned int depth;
	unsigned int text_line;
	int regs_of;			/* pending unit whose registers follow */
	int const_open;			/* constant whose lanes follow */
	unsigned int const_lanes;
	uint32_t const_seen[4];
	bool raw;
};

/* Room for one more element. */
static void *more(void *array, size_t n, size_t *cap, size_t size)
{
	void *p;

	if (n < *cap)
		return array;
	*cap = *cap ? 2 * *cap : 64;
	p = realloc(array, *cap * size);
	if (p)
		memset((char *)p + n * size, 0, (*cap - n) * size);
	return p;
}

#define MORE(as, array, n, cap) ({						\
	void *p_ = more((array), (n), &(cap), sizeof(*(array)));		\
	if (p_)									\
		(array) = p_;							\
	p_ != NULL;								\
})

static int colon(struct scan *s)
{
	if (!scan_char(s, ':'))
		return scan_fail(s, s->p, "expected ':'");
	return 0;
}

static int number(struct scan *s, uint64_t max, uint64_t *v)
{
	const char *at;

	scan_space(s);
	at = s->p;
	if (scan_u64(s, v))
		return -1;
	if (*v > max)
		return scan_fail(s, at, "%llu is too large; at most %llu", (unsigned long long)*v,
				 (unsigned long long)max);
	return 0;
}

static int line_end(struct scan *s)
{
	if (!scan_end(s))
		return scan_fail(s, s->p, "unexpected text '%.*s'",
				 (int)(s->end - s->p > 40 ? 40 : s->end - s->p), s->p);
	return 0;
}

static int keyed_number(struct scan *s, uint64_t max, uint64_t *v)
{
	return colon(s) || number(s, max, v) || line_end(s) ? -1 : 0;
}

/* lxlu.1 or l3su */
static int unit_name(struct scan *s, bool with_corelet, int *unit, unsigned int *corelet)
{
	const char *w, *dot;
	size_t n = scan_word(s, &w), len;
	unsigned int i;

	dot = memchr(w, '.', n);
	len = dot ? (size_t)(dot - w) : n;
	for (i = 0; i < SPYRE_UNITS; i++)
		if (strlen(spyreprog_unit_name(i)) == len &&
		    !memcmp(spyreprog_unit_name(i), w, len))
			break;
	if (i == SPYRE_UNITS)
		return scan_fail(s, w,
				 "'%.*s' is no unit (l3lu l3su lxlu lxsu l0lu l0su pt pe sfp)",
				 (int)len, w);
	*unit = (int)i;
	*corelet = 0;
	if (dot) {
		if (!with_corelet || i <= SPYRE_UNIT_L3SU || n - len != 2 ||
		    (dot[1] != '0' && dot[1] != '1'))
			return scan_fail(
				s, dot, "%s",
				with_corelet ? "a corelet is .0 or .1, and l3lu and l3su have none"
					     : "a program is for a kind of unit, without corelet");
		*corelet = (unsigned int)(dot[1] - '0');
	}
	return 0;
}

/* Instructions of the text just left must be a whole program. */
static int text_done(struct as *a, struct scan *s)
{
	struct image *im = &a->im;

	if (!a->in_text || a->raw_text) {
		a->in_text = false;
		a->raw_text = false;
		return 0;
	}
	a->in_text = false;
	im->programs[im->nprograms - 1].count = im->ninsns - im->programs[im->nprograms - 1].first;
	if (!im->programs[im->nprograms - 1].count ||
	    im->insns[im->ninsns - 1].op != SPYRE_OP_RETURN) {
		s->line = a->text_line;
		return scan_fail(s, s->start,
				 "the program that begins here does not end in %sRETURN",
				 isa_prefixes[a->unit]);
	}
	return 0;
}

static int section(struct as *a, struct scan *s)
{
	if (a->const_open >= 0)
		return scan_fail(s, s->start,
				 "constant %d has %u lanes; it needs 64, or 'all' and one",
				 a->const_open, a->const_lanes);
	a->regs_of = -1;
	return text_done(a, s);
}

static int new_program(struct as *a, struct scan *s, int unit, struct label label)
{
	struct image *im = &a->im;

	if (!MORE(a, im->programs, im->nprograms, a->cap_programs))
		return scan_fail(s, s->start, "out of memory");
	a->labels = realloc(a->labels, a->cap_programs * sizeof(*a->labels));
	if (!a->labels)
		return scan_fail(s, s->start, "out of memory");
	a->labels[im->nprograms] = label;
	im->programs[im->nprograms++] = (struct spyre_job_program){
		.first = im->ninsns, .unit = (uint16_t)unit,
	};
	a->unit = unit;
	a->in_text = true;
	a->depth = 0;
	a->text_line = s->line;
	return 0;
}

static int find_program(struct as *a, const char *w, size_t n)
{
	uint32_t i;

	for (i = 0; i < a->im.nprograms; i++)
		if (a->labels[i].n == n && !memcmp(a->labels[i].p, w, n))
			return (int)i;
	return -1;
}

static bool all_digits(const char *w, size_t n)
{
	while (n && isdigit((unsigned char)w[n - 1]))
		n--;
	return !n;
}

/* "Program" was read. */
static int program_line(struct as *a, struct scan *s)
{
	struct image *im = &a->im;
	struct pending_unit *u;
	unsigned int corelet, line = s->line;
	struct label label = { NULL, 0 };
	uint32_t cores;
	uint64_t v;
	const char *w;
	size_t n;
	int unit, p;

	if (section(a, s))
		return -1;
	s->line = line;
	if (!scan_is(s, "for")) {
		/* Program LABEL for unit NAME: or the raw form. */
		label.n = scan_word(s, &label.p);
		if (!label.n)
			return scan_fail(s, s->p, "expected 'for' or a program's label");
		if (scan_char(s, ':')) {
			struct spyre_job_program rp = { 0 };
			uint64_t first, count;

			a->raw = true;
			if (!scan_is(s, "unit") || number(s, 0xffff, &v) || !scan_is(s, "first") ||
			    number(s, 0xffffffff, &first) || !scan_is(s, "count") ||
			    number(s, 0xffffffff, &count) || line_end(s))
				return a->err->text[0] ? -1 :
					scan_fail(s, s->p, "expected ': unit N first N count N'");
			rp.unit = (uint16_t)v;
			rp.first = (uint32_t)first;
			rp.count = (uint32_t)count;
			if (!MORE(a, im->programs, im->nprograms, a->cap_programs))
				return scan_fail(s, s->start, "out of memory");
			im->programs[im->nprograms++] = rp;
			return 0;
		}
		if (a->raw)
			return scan_fail(s, label.p,
					 "Layout, Text, Init and Unit lines do not mix with "
					 "'Program for unit'");
		if (find_program(a, label.p, label.n) >= 0)
			return scan_fail(s, label.p, "program '%.*s' is defined twice",
					 (int)label.n, label.p);
		if (all_digits(label.p, label.n) && strtoull(label.p, NULL, 10) != im->nprograms)
			return scan_fail(s, label.p,
					 "programs are numbered in order: this is number %u",
					 im->nprograms);
		if (!scan_is(s, "for") || !scan_is(s, "unit"))
			return scan_fail(s, s->p, "expected 'for unit NAME:'");
		if (unit_name(s, false, &unit, &corelet) || colon(s) || line_end(s))
			return -1;
		return new_program(a, s, unit, label);
	}
	if (scan_is(s, "coreID")) {
		if (colon(s))
			return -1;
		scan_space(s);
		w = s->p;
		if (scan_cores(s, &cores) || line_end(s))
			return -1;
		if (!cores)
			return scan_fail(s, w, "a section needs at least one core");
		a->cores = cores;
		return 0;
	}
	if (a->raw || !scan_is(s, "unit"))
		return scan_fail(s, s->p,
				 a->raw ? "'Program for unit' does not mix with Layout, Text, Init "
					  "and Unit lines"
					: "expected 'coreID' or 'unit'");
	scan_space(s);
	w = s->p;
	if (unit_name(s, true, &unit, &corelet) || colon(s))
		return -1;
	if (!a->cores)
		return scan_fail(s, s->start,
				 "no core yet: a line 'Program for coreID : 0-31' must come first");
	for (p = 0; p < (int)a->nunits; p++)
		if (a->units[p].unit == unit && a->units[p].corelet == corelet &&
		    a->units[p].cores & a->cores)
			return scan_fail(s, w, "this unit already has a program (line %u)",
					 a->units[p].line);
	if (!MORE(a, a->units, a->nunits, a->cap_pending))
		return scan_fail(s, s->start, "out of memory");
	u = &a->units[a->nunits++];
	*u = (struct pending_unit){ .cores = a->cores, .unit = (uint8_t)unit,
				    .corelet = (uint8_t)corelet, .line = s->line };
	if (scan_end(s)) {
		/* The text follows here; no other unit can name it. */
		u->program = im->nprograms;
		return new_program(a, s, unit, label);
	}
	n = scan_word(s, &w);
	p = find_program(a, w, n);
	if (!n || p < 0)
		return scan_fail(s, w, "no program '%.*s' is defined above", (int)n, w);
	if (im->programs[p].unit != unit)
		return scan_fail(s, w, "program '%.*s' is for %s, not for %s", (int)n, w,
				 spyreprog_unit_name(im->programs[p].unit),
				 spyreprog_unit_name((unsigned int)unit));
	u->program = (uint32_t)p;
	return line_end(s);
}

/* "Registers" was read. */
static int registers_line(struct as *a, struct scan *s)
{
	unsigned int corelet;
	size_t i;
	int unit;
	const char *w;

	if (section(a, s))
		return -1;
	if (!scan_is(s, "for") || !scan_is(s, "unit"))
		return scan_fail(s, s->p, "expected 'for unit NAME:'");
	scan_space(s);
	w = s->p;
	if (unit_name(s, true, &unit, &corelet) || colon(s) || line_end(s))
		return -1;
	for (i = a->nunits; i-- > 0;) {
		if (a->units[i].unit == unit && a->units[i].corelet == corelet &&
		    a->units[i].cores == a->cores) {
			a->regs_of = (int)i;
			return 0;
		}
	}
	return scan_fail(s, w, "this unit runs no program in the section; name it first");
}

/* VALUE: terms of numbers, one symbol, and core * NUMBER. */
static int init_value(struct as *a, struct scan *s, struct pending_init *in)
{
	bool neg = false, first = true;
	const char *w;
	uint64_t v, i;
	size_t n;

	in->symbol = SPYRE_NO_SYMBOL;
	for (;;) {
		if (scan_char(s, '-'))
			neg = true;
		else if (scan_char(s, '+'))
			neg = false;
		else if (!first)
			return 0;
		first = false;
		scan_space(s);
		w = s->p;
		if (s->p < s->end && isdigit((unsigned char)*s->p)) {
			if (scan_u64(s, &v))
				return -1;
			if (scan_char(s, '*')) {
				if (!scan_is(s, "core"))
					return scan_fail(s, s->p, "only 'core' can be multiplied");
				in->per_core += neg ? 0 - v : v;
			} else {
				in->value += neg ? 0 - v : v;
			}
			neg = false;
			continue;
		}
		if (scan_is(s, "core")) {
			v = 1;
			if (scan_char(s, '*') && scan_u64(s, &v))
				return -1;
			in->per_core += neg ? 0 - v : v;
			neg = false;
			continue;
		}
		n = scan_word(s, &w);
		if (!n)
			return scan_fail(s, s->p, "expected a number, 'core * NUMBER' or a symbol");
		for (i = 0; i < SPYRE_JOB_SYMBOLS; i++)
			if (a->name_len[i] == n && !memcmp(a->names[i], w, n))
				break;
		if (i == SPYRE_JOB_SYMBOLS && n > 3 && !memcmp(w, "sym", 3) &&
		    all_digits(w + 3, n - 3))
			i = strtoul(w + 3, NULL, 10);
		if (i >= SPYRE_JOB_SYMBOLS)
			return scan_fail(s, w,
					 "'%.*s' is no symbol: use sym0 to sym255, or name it with "
					 "'Symbol : N : NAME'",
					 (int)n, w);
		if (neg || in->symbol != SPYRE_NO_SYMBOL)
			return scan_fail(s, w, "a value can hold one symbol, added");
		in->symbol = (uint16_t)i;
		if (i >= a->im.nsymbols)
			a->im.nsymbols = (uint32_t)i + 1;
	}
}

/* LAR : 0 : VALUE or LBR : 0..3 : VALUE, VALUE, ... */
static int register_line(struct as *a, struct scan *s, unsigned int base)
{
	struct pending_unit *u;
	uint64_t lo, hi;
	unsigned int i;
	const char *w;
	size_t n;

	if (a->regs_of < 0)
		return scan_fail(s, s->start,
				 "no unit yet: a line 'Registers for unit NAME:' must come first");
	u = &a->units[a->regs_of];
	if (colon(s))
		return -1;
	/* A word takes "0..3" whole. */
	n = scan_word(s, &w);
	if (n == 1 && *w >= '0' && *w <= '3') {
		lo = hi = (uint64_t)(*w - '0');
	} else if (n == 4 && *w >= '0' && w[3] <= '3' && *w <= w[3] && !memcmp(w + 1, "..", 2)) {
		lo = (uint64_t)(*w - '0');
		hi = (uint64_t)(w[3] - '0');
	} else {
		return scan_fail(s, w, "expected a register 0 to 3, or a range such as 0..3");
	}
	if (colon(s))
		return -1;
	for (; lo <= hi; lo++) {
		struct pending_init *in;

		for (i = 0; i < u->ninits; i++)
			if (u->inits[i].reg == base + lo)
				return scan_fail(s, w, "%s has a value already",
						 spyreprog_reg_name((unsigned int)(base + lo)));
		in = &u->inits[u->ninits++];
		memset(in, 0, sizeof(*in));
		in->reg = (uint8_t)(base + lo);
		if (init_value(a, s, in))
			return -1;
		if (lo < hi && !scan_char(s, ','))
			return scan_fail(s, s->p, "expected ',' and a value for each register");
	}
	return line_end(s);
}

static int const_lanes(struct as *a, struct scan *s)
{
	uint32_t *lane = a->im.consts[a->const_open];
	uint32_t bits;

	while (!scan_end(s)) {
		scan_char(s, ',');
		if (scan_bits(s, &bits))
			return -1;
		if (a->const_lanes == SPYRE_LANES)
			return scan_fail(s, s->start, "constant %d has more than 64 lanes",
					 a->const_open);
		lane[a->const_lanes++] = bits;
	}
	if (a->const_lanes == SPYRE_LANES)
		a->const_open = -1;
	return 0;
}

static int const_line(struct as *a, struct scan *s)
{
	struct image *im = &a->im;
	const char *at;
	uint64_t i, k;

	if (section(a, s) || colon(s))
		return -1;
	scan_space(s);
	at = s->p;
	if (number(s, SPYRE_JOB_CONSTS - 1, &i) || colon(s))
		return -1;
	if (a->const_seen[i / 32] >> (i % 32) & 1)
		return scan_fail(s, at, "constant %llu is given twice", (unsigned long long)i);
	a->const_seen[i / 32] |= 1u << (i % 32);
	if (i >= im->nconsts) {
		void *p = realloc(im->consts, (i + 1) * sizeof(*im->consts));

		if (!p)
			return scan_fail(s, s->start, "out of memory");
		im->consts = p;
		memset(im->consts[im->nconsts], 0, (i + 1 - im->nconsts) * sizeof(*im->consts));
		im->nconsts = (uint32_t)i + 1;
	}
	a->const_open = (int)i;
	a->const_lanes = 0;
	if (scan_is(s, "all")) {
		uint32_t bits;

		if (scan_bits(s, &bits) || line_end(s))
			return -1;
		for (k = 0; k < SPYRE_LANES; k++)
			im->consts[i][k] = bits;
		a->const_open = -1;
		return 0;
	}
	return const_lanes(a, s);
}

/* --- Symbols and tensors --------------------------------------------------------------------- */

/* The name of symbol v. A later one takes its place. */
static int symbol_name(struct as *a, struct scan *s, unsigned int v, const char **name, size_t *len)
{
	size_t n = scan_word(s, name);
	unsigned int i;

	if (!n || isdigit((unsigned char)**name) || (n == 4 && !memcmp(*name, "core", 4)))
		return scan_fail(s, *name,
				 "expected a name that begins with a letter and is not 'core'");
	for (i = 0; i < SPYRE_JOB_SYMBOLS; i++)
		if (a->name_len[i] == n && !memcmp(a->names[i], *name, n))
			return scan_fail(s, *name, "symbol %u already has this name", i);
	a->names[v] = *name;
	a->name_len[v] = *len = n;
	if (v >= a->im.nsymbols)
		a->im.nsymbols = v + 1;
	return 0;
}

/* Tensor : SYMBOL : NAME input|output FORMAT ROWS x COLUMNS [sticks|weights] */
static int tensor_line(struct as *a, struct scan *s)
{
	struct spyreprog_tensor *t = &a->tensors[a->ntensors];
	const char *w, *name, *at;
	uint64_t v, max = UINT32_MAX;
	unsigned int f, i;
	size_t n, len;

	if (section(a, s) || colon(s))
		return -1;
	scan_space(s);
	at = s->p;
	if (number(s, SPYRE_JOB_SYMBOLS - 1, &v) || colon(s))
		return -1;
	for (i = 0; i < a->ntensors; i++)
		if (a->tensors[i].argument == v)
			return scan_fail(s, at, "symbol %u already is tensor '%s'", (unsigned int)v,
					 a->tensors[i].name);
	if (symbol_name(a, s, (unsigned int)v, &name, &n))
		return -1;
	*t = (struct spyreprog_tensor){ .argument = (unsigned int)v };
	scan_space(s);
	if (scan_is(s, "output"))
		t->output = true;
	else if (!scan_is(s, "input"))
		return scan_fail(s, s->p, "expected input or output");
	len = scan_word(s, &w);
	for (f = 0; f < SPYRE_FORMATS; f++)
		if (strlen(spyreprog_format_name(f)) == len &&
		    !memcmp(spyreprog_format_name(f), w, len))
			break;
	if (f == SPYRE_FORMATS)
		return scan_fail(s, w, "expected a tensor's format, such as SEN169_FP16");
	t->format = (enum spyre_format)f;
	if (number(s, max, &t->rows))
		return -1;
	scan_space(s);
	if (!scan_is(s, "x"))
		return scan_fail(s, s->p, "expected the shape: ROWS x COLUMNS");
	if (number(s, max, &t->cols))
		return -1;
	if (!t->rows || !t->cols)
		return scan_fail(s, s->start, "a tensor has at least one row and one column");
	/* Beyond this, bytes with their padding would wrap. */
	if (t->rows > 2 * SPYRE_DMVA_SIZE / t->cols)
		return scan_fail(s, s->start,
				 "a tensor of %llu x %llu elements does not fit the card's "
				 "addresses",
				 (unsigned long long)t->rows, (unsigned long long)t->cols);
	scan_space(s);
	if (scan_is(s, "weights"))
		t->weights = true;
	else
		scan_is(s, "sticks");
	if (line_end(s))
		return -1;
	t->bytes = t->weights ? spyregen_weight_bytes(t->format, t->rows, t->cols) :
				spyregen_bytes(t->format, t->rows, t->cols);
	t->name = strndup(name, n);
	if (!t->name)
		return scan_fail(s, s->start, "out of memory");
	a->ntensors++;
	return 0;
}

/* --- Raw lines ------------------------------------------------------------------------------ */

static int layout_line(struct as *a, struct scan *s)
{
	struct image *im = &a->im;
	const struct {
		const char *name;
		uint32_t *v;
	} keys[] = {
		{ "size", &im->size },
		{ "programs", &im->programs_off },
		{ "units", &im->units_off },
		{ "inits", &im->inits_off },
		{ "text", &im->text_off },
		{ "consts", &im->consts_off },
		{ "groups", &im->groups_off },
	};
	unsigned int i;
	uint64_t v;

	if (section(a, s) || colon(s))
		return -1;
	a->raw = true;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (scan_is(s, keys[i].name)) {
			if (number(s, 0xffffffff, &v))
				return -1;
			*keys[i].v = (uint32_t)v;
			im->has_groups |= keys[i].v == &im->groups_off && v;
			return line_end(s);
		}
	}
	return scan_fail(s, s->p, "expected size, programs, units, inits, text, consts or groups");
}

/* Init : REG SYMBOL VALUE */
static int raw_init(struct as *a, struct scan *s)
{
	struct image *im = &a->im;
	uint64_t reg, symbol, value;

	if (section(a, s) || colon(s) || number(s, 255, &reg) || number(s, 0xffff, &symbol) ||
	    number(s, UINT64_MAX, &value) || line_end(s))
		return -1;
	a->raw = true;
	if (!MORE(a, im->inits, im->ninits, a->cap_inits))
		return scan_fail(s, s->start, "out of memory");
	im->inits[im->ninits++] = (struct spyre_job_init){
		.reg = (uint8_t)reg, .symbol = (uint16_t)symbol, .value = value };
	return 0;
}

/* Unit : CORE UNIT CORELET PROGRAM INIT NINITS */
static int raw_unit(struct as *a, struct scan *s)
{
	struct image *im = &a->im;
	uint64_t core, unit, corelet, program, init, ninits;

	if (section(a, s) || colon(s) || number(s, 255, &core) || number(s, 255, &unit) ||
	    number(s, 255, &corelet) || number(s, 0xffffffff, &program) ||
	    number(s, 0xffffffff, &init) || number(s, 255, &ninits) || line_end(s))
		return -1;
	a->raw = true;
	if (!MORE(a, im->units, im->nunits, a->cap_units))
		return scan_fail(s, s->start, "out of memory");
	im->units[im->nunits++] = (struct spyre_job_unit){
		.core = (uint8_t)core, .unit = (uint8_t)unit, .corelet = (uint8_t)corelet,
		.ninits = (uint8_t)ninits, .program = (uint32_t)program, .init = (uint32_t)init };
	return 0;
}

/* --- Lines ---------------------------------------------------------------------------------- */

static int insn_line(struct as *a, struct scan *s)
{
	struct image *im = &a->im;
	struct spyre_insn in;
	const char *at = s->start;
	bool plain;

	scan_space(s);
	plain = !(s->end - s->p > 4 && !memcmp(s->p, "INSN", 4));
	if (insn_parse(s, a->raw_text ? -1 : a->unit, &in))
		return -1;
	if (!a->raw_text) {
		if (im->ninsns > im->programs[im->nprograms - 1].first &&
		    im->insns[im->ninsns - 1].op == SPYRE_OP_RETURN && plain)
			return scan_fail(s, at, "nothing can follow RETURN");
		if (in.op == SPYRE_OP_MVLOOPCNT && ++a->depth > SPYRE_LOOPS && plain)
			return scan_fail(s, at, "blocks nest at most %u deep", SPYRE_LOOPS);
		if (in.op == SPYRE_OP_MVLOOPCNT && in.be && plain)
			return scan_fail(
				s, at, "an instruction that opens a block cannot end one: use NOP");
		if (in.be > a->depth && plain)
			return scan_fail(s, at, "be:%u ends more blocks than the %u that are open",
					 in.be, a->depth);
		a->depth -= in.be > a->depth ? a->depth : in.be;
		if (in.op == SPYRE_OP_RETURN && a->depth && plain)
			return scan_fail(s, at,
					 "%u blocks are still open at RETURN; end them with be",
					 a->depth);
	}
	if (!MORE(a, im->insns, im->ninsns, a->cap_insns))
		return scan_fail(s, at, "out of memory");
	im->insns[im->ninsns++] = in;
	return 0;
}

static int parse_line(struct as *a, struct scan *s)
{
	static const char *const regs[] = { "LAR", "LBR", "EAR", "LCR" };
	const char *hash = memchr(s->p, '#', (size_t)(s->end - s->p));
	struct image *im = &a->im;
	uint32_t mask;
	unsigned int i;
	uint64_t v;
	const char *w, *was;
	size_t n;

	if (hash)
		s->end = hash;
	if (scan_end(s))
		return 0;
	if (a->const_open >= 0 && (isdigit((unsigned char)*s->p) || *s->p == '-'))
		return const_lanes(a, s);
	was = s->p;
	if (scan_is(s, "Program"))
		return program_line(a, s);
	if (scan_is(s, "Registers"))
		return registers_line(a, s);
	for (i = 0; i < 4; i++)
		if (scan_is(s, regs[i]))
			return register_line(a, s, i * 4);
	if (scan_is(s, "Constant"))
		return const_line(a, s);
	if (scan_is(s, "Version")) {
		uint64_t major;

		/* "1.0" is one word to the scanner. */
		if (section(a, s) || colon(s))
			return -1;
		n = scan_word(s, &w);
		if (n < 3 || w[0] != '1' || w[1] != '.' || !all_digits(w + 2, n - 2))
			return scan_fail(s, w, "expected version 1.N");
		major = strtoul(w + 2, NULL, 10);
		if (major > 0xffff)
			return scan_fail(s, w, "minor version is too large");
		im->minor = (uint16_t)major;
		return line_end(s);
	}
	if (scan_is(s, "Watchdog"))
		return section(a, s) || keyed_number(s, UINT64_MAX, &im->watchdog) ? -1 : 0;
	if (scan_is(s, "Symbols")) {
		if (section(a, s) || keyed_number(s, SPYRE_JOB_SYMBOLS, &v))
			return -1;
		im->nsymbols = (uint32_t)v > im->nsymbols ? (uint32_t)v : im->nsymbols;
		return 0;
	}
	if (scan_is(s, "Symbol")) {
		if (section(a, s) || colon(s) || number(s, SPYRE_JOB_SYMBOLS - 1, &v) || colon(s))
			return -1;
		return symbol_name(a, s, (unsigned int)v, &w, &n) || line_end(s) ? -1 : 0;
	}
	if (scan_is(s, "Tensor"))
		return tensor_line(a, s);
	if (scan_is(s, "Group")) {
		if (section(a, s) || colon(s) || number(s, SPYRE_JOB_GROUPS - 1, &v) || colon(s) ||
		    scan_cores(s, &mask) || line_end(s))
			return -1;
		im->groups[v] = mask;
		im->has_groups = true;
		return 0;
	}
	if (scan_is(s, "Layout"))
		return layout_line(a, s);
	if (scan_is(s, "Init"))
		return raw_init(a, s);
	if (scan_is(s, "Unit"))
		return raw_unit(a, s);
	if (scan_is(s, "Text")) {
		if (section(a, s) || colon(s) || line_end(s))
			return -1;
		a->raw = true;
		a->in_text = true;
		a->raw_text = true;
		return 0;
	}
	s->p = was;
	if (a->in_text)
		return insn_line(a, s);
	n = scan_word(s, &w);
	return scan_fail(s, was,
			 "'%.*s' begins no line here (Program, Registers, LAR, LBR, EAR, LCR, "
			 "Constant, Group, Symbol, Symbols, Tensor, Watchdog); instructions come after "
			 "'Program ... for unit NAME:'",
			 (int)n, w);
}

static int pending_order(const void *x, const void *y)
{
	const struct spyre_job_unit *p = x, *q = y;

	return (p->core << 8 | p->unit << 1 | p->corelet) -
	       (q->core << 8 | q->unit << 1 | q->corelet);
}

/* Core sections become the sorted directory and its initial values. */
static int expand_units(struct as *a)
{
	struct image *im = &a->im;
	size_t i, n = 0, inits = 0;
	unsigned int c, k;

	for (i = 0; i < a->nunits; i++) {
		n += (size_t)__builtin_popcount(a->units[i].cores);
		inits += (size_t)__builtin_popcount(a->units[i].cores) * a->units[i].ninits;
	}
	free(im->units);
	free(im->inits);
	im->units = calloc(n + 1, sizeof(*im->units));
	im->inits = calloc(inits + 1, sizeof(*im->inits));
	if (!im->units || !im->inits)
		return -1;
	for (i = 0; i < a->nunits; i++)
		for (c = 0; c < 32; c++)
			if (a->units[i].cores >> c & 1)
				im->units[im->nunits++] = (struct spyre_job_unit){
					.core = (uint8_t)c, .unit = a->units[i].unit,
					.corelet = a->units[i].corelet,
					.ninits = (uint8_t)a->units[i].ninits,
					.program = a->units[i].program, .init = (uint32_t)i };
	qsort(im->units, im->nunits, sizeof(*im->units), pending_order);
	for (i = 0; i < im->nunits; i++) {
		struct pending_unit *u = &a->units[im->units[i].init];

		im->units[i].init = u->ninits ? im->ninits : 0;
		for (k = 0; k < u->ninits; k++)
			im->inits[im->ninits++] = (struct spyre_job_init){
				.reg = u->inits[k].reg,
				.symbol = u->inits[k].symbol,
				.value =
					u->inits[k].value + u->inits[k].per_core * im->units[i].core
			};
	}
	return 0;
}

/* --- init.txt ------------------------------------------------------------------------------- */

static bool hex_line(const char *p, size_t n)
{
	size_t i;

	while (n && isspace((unsigned char)p[n - 1]))
		n--;
	if (n != 2 * SPYRE_STICK)
		return false;
	for (i = 0; i < n; i++)
		if (!isxdigit((unsigned char)p[i]))
			return false;
	return true;
}

static unsigned int hex_digit(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
}

static int read_sticks(const char *text, size_t len, void **out, size_t *size,
		       struct spyreprog_err *err)
{
	const char *p = text, *end = text + len, *nl;
	uint8_t *buf = malloc(len / (2 * SPYRE_STICK) * SPYRE_STICK + SPYRE_STICK);
	struct scan s = { .err = err };
	struct image im;
	size_t n = 0;
	unsigned int i;

	if (!buf) {
		snprintf(err->text, sizeof(err->text), "out of memory");
		return -1;
	}
	for (; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			nl = end;
		s.line++;
		s.start = p;
		s.p = p;
		s.end = memchr(p, '#', (size_t)(nl - p));
		if (!s.end)
			s.end = nl;
		if (scan_end(&s))
			continue;
		if (!hex_line(s.p, (size_t)(s.end - s.p))) {
			scan_fail(&s, s.p, "a line of init.txt is 256 hex digits, one stick");
			free(buf);
			return -1;
		}
		for (i = 0; i < SPYRE_STICK; i++)
			buf[n + SPYRE_STICK - 1 - i] =
				(uint8_t)(hex_digit(s.p[2 * i]) << 4 | hex_digit(s.p[2 * i + 1]));
		n += SPYRE_STICK;
	}
	err->line = 0;
	if (image_unpack(&im, buf, n, err)) {
		free(buf);
		return -1;
	}
	*out = buf;
	*size = im.size;
	image_free(&im);
	return 0;
}

static bool looks_like_sticks(const char *text, size_t len)
{
	const char *p = text, *end = text + len, *nl;

	for (; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			nl = end;
		while (p < nl && isspace((unsigned char)*p))
			p++;
		if (p < nl && *p != '#')
			return hex_line(p, (size_t)(nl - p)) ||
			       (nl - p > 64 && strspn(p, "0123456789abcdefABCDEF") > 64);
	}
	return false;
}

static int assemble(const char *text, size_t len, void **out, size_t *size,
		    char *names[SPYRE_JOB_SYMBOLS], struct spyreprog_tensor *tensors,
		    size_t *ntensors, struct spyreprog_err *err)
{
	struct as a = { .err = err, .regs_of = -1, .const_open = -1, .unit = -1 };
	struct scan s = { .err = err };
	const char *p, *end = text + len, *nl;
	char *copy = NULL;
	int ret = -1;
	unsigned int i;

	memset(err, 0, sizeof(*err));
	if (names)
		memset(names, 0, SPYRE_JOB_SYMBOLS * sizeof(*names));
	/* strtoul() and friends need an end. */
	copy = malloc(len + 1);
	a.names = calloc(SPYRE_JOB_SYMBOLS, sizeof(*a.names));
	a.name_len = calloc(SPYRE_JOB_SYMBOLS, sizeof(*a.name_len));
	a.tensors = calloc(SPYRE_JOB_SYMBOLS, sizeof(*a.tensors));
	if (!copy || !a.names || !a.name_len || !a.tensors) {
		snprintf(err->text, sizeof(err->text), "out of memory");
		goto out;
	}
	memcpy(copy, text, len);
	copy[len] = 0;
	text = copy;
	end = text + len;
	if (looks_like_sticks(text, len)) {
		ret = read_sticks(text, len, out, size, err);
		goto out;
	}
	a.im.major = SPYRE_JOB_MAJOR;
	a.im.minor = SPYRE_JOB_MINOR;
	for (p = text; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			nl = end;
		s.line++;
		s.start = s.p = p;
		s.end = nl;
		if (parse_line(&a, &s))
			goto out;
	}
	s.start = s.p = s.end = end;
	s.line++;
	if (section(&a, &s))
		goto out;
	for (i = 0; i < a.im.nconsts; i++) {
		if (!(a.const_seen[i / 32] >> (i % 32) & 1)) {
			scan_fail(&s, end, "constant %u is missing; they are numbered from 0", i);
			goto out;
		}
	}
	if (a.raw && a.nunits) {
		scan_fail(&s, end,
			  "Layout, Text, Init and Unit lines do not mix with 'Program for unit'");
		goto out;
	}
	if (!a.raw) {
		if (!a.nunits) {
			scan_fail(&s, end,
				  "no unit runs a program: lines 'Program for coreID : ...' and "
				  "'Program for unit NAME: LABEL' are missing");
			goto out;
		}
		if (expand_units(&a)) {
			snprintf(err->text, sizeof(err->text), "out of memory");
			goto out;
		}
		image_layout(&a.im);
	}
	ret = image_pack(&a.im, out, size, err);
	for (i = 0; !ret && names && i < SPYRE_JOB_SYMBOLS; i++)
		if (a.names[i])
			names[i] = strndup(a.names[i], a.name_len[i]);
	if (!ret && tensors) {
		memcpy(tensors, a.tensors, a.ntensors * sizeof(*tensors));
		*ntensors = a.ntensors;
		a.ntensors = 0;
	}
out:
	for (i = 0; i < a.ntensors; i++)
		free((char *)a.tensors[i].name);
	free(a.tensors);
	image_free(&a.im);
	free(a.units);
	free(a.labels);
	free(a.names);
	free(a.name_len);
	free(copy);
	return ret;
}

int spyreprog_assemble(const char *text, size_t len, void **out, size_t *size,
		       char *names[SPYRE_JOB_SYMBOLS], struct spyreprog_err *err)
{
	return assemble(text, len, out, size, names, NULL, NULL, err);
}

int spyreprog_assemble_tensors(const char *text, size_t len, void **out, size_t *size,
			       char *names[SPYRE_JOB_SYMBOLS],
			       struct spyreprog_tensor tensors[SPYRE_JOB_SYMBOLS],
			       size_t *ntensors, struct spyreprog_err *err)
{
	*ntensors = 0;
	return assemble(text, len, out, size, names, tensors, ntensors, err);
}
