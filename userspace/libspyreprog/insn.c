// SPDX-License-Identifier: MIT
/* Instructions to text and back, by the table. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* --- Scanner -------------------------------------------------------------------------------- */

int scan_fail(struct scan *s, const char *at, const char *fmt, ...)
{
	va_list ap;

	s->err->line = s->line;
	s->err->column = (unsigned int)(at - s->start) + 1;
	va_start(ap, fmt);
	vsnprintf(s->err->text, sizeof(s->err->text), fmt, ap);
	va_end(ap);
	return -1;
}

void scan_space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r'))
		s->p++;
}

bool scan_end(struct scan *s)
{
	scan_space(s);
	return s->p == s->end;
}

bool scan_char(struct scan *s, char c)
{
	scan_space(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

size_t scan_word(struct scan *s, const char **word)
{
	scan_space(s);
	*word = s->p;
	while (s->p < s->end && word_char(*s->p))
		s->p++;
	return (size_t)(s->p - *word);
}

bool scan_is(struct scan *s, const char *word)
{
	const char *was = s->p, *w;
	size_t n = scan_word(s, &w);

	if (n == strlen(word) && !memcmp(w, word, n))
		return true;
	s->p = was;
	return false;
}

int scan_u64(struct scan *s, uint64_t *v)
{
	const char *w;
	size_t n = scan_word(s, &w);
	char buf[24], *e;

	if (!n || n >= sizeof(buf) || !isdigit((unsigned char)*w))
		return scan_fail(s, w, "expected a number (decimal or 0x...)");
	memcpy(buf, w, n);
	buf[n] = 0;
	errno = 0;
	*v = strtoull(buf, &e, buf[1] == 'x' ? 16 : 10);
	if (*e || errno)
		return scan_fail(s, w, "'%s' is no 64-bit number", buf);
	return 0;
}

static int scan_range(struct scan *s, const char *what, uint64_t min, uint64_t max, uint64_t *v)
{
	const char *at;

	scan_space(s);
	at = s->p;
	if (scan_u64(s, v))
		return -1;
	if (*v < min || *v > max)
		return scan_fail(s, at, "%s is %llu; it must be %llu to %llu", what,
				 (unsigned long long)*v, (unsigned long long)min,
				 (unsigned long long)max);
	return 0;
}

static int scan_s32(struct scan *s, const char *what, uint32_t *v)
{
	const char *at;
	uint64_t u;
	bool neg;

	scan_space(s);
	at = s->p;
	neg = scan_char(s, '-');
	if (scan_u64(s, &u))
		return -1;
	if (u > (neg ? 0x80000000ull : 0x7fffffffull))
		return scan_fail(s, at, "%s does not fit 32 bits with sign", what);
	*v = neg ? 0u - (uint32_t)u : (uint32_t)u;
	return 0;
}

int scan_bits(struct scan *s, uint32_t *bits)
{
	const char *at, *q;
	char buf[48], *e;
	size_t n;
	bool fp = false;
	float f;

	scan_space(s);
	at = q = s->p;
	while (q < s->end && (word_char(*q) || *q == '-' || *q == '+')) {
		if (*q == '.' ||
		    ((*q == 'e' || *q == 'E') && !fp && memchr(at, 'x', (size_t)(q - at)) == NULL))
			fp = true;
		/* A sign belongs to the number at its start and after an exponent only. */
		if ((*q == '-' || *q == '+') && q != at && (!fp || (q[-1] != 'e' && q[-1] != 'E')))
			break;
		q++;
	}
	if (!fp) {
		uint64_t u;

		if (*at == '-')
			return scan_s32(s, "number", bits);
		if (scan_range(s, "number", 0, 0xffffffffu, &u))
			return -1;
		*bits = (uint32_t)u;
		return 0;
	}
	n = (size_t)(q - at);
	if (n >= sizeof(buf))
		return scan_fail(s, at, "number is too long");
	memcpy(buf, at, n);
	buf[n] = 0;
	f = strtof(buf, &e);
	if (*e)
		return scan_fail(s, at, "'%s' is no number", buf);
	memcpy(bits, &f, sizeof(f));
	s->p = q;
	return 0;
}

int scan_cores(struct scan *s, uint32_t *mask)
{
	uint64_t lo, hi;

	*mask = 0;
	if (scan_is(s, "none"))
		return 0;
	do {
		if (scan_range(s, "core", 0, 31, &lo))
			return -1;
		hi = lo;
		if (scan_char(s, '-') && scan_range(s, "core", lo, 31, &hi))
			return -1;
		for (; lo <= hi; lo++)
			*mask |= 1u << lo;
	} while (scan_char(s, ','));
	return 0;
}

/* --- Printing pieces ------------------------------------------------------------------------ */

void print_bits(FILE *out, uint32_t bits, bool fp)
{
	char buf[32];
	int prec;
	float f, g;
	uint32_t back;

	memcpy(&f, &bits, sizeof(f));
	if (fp && bits && (bits & 0x7f800000u) != 0x7f800000u) {
		for (prec = 1; prec <= 9; prec++) {
			snprintf(buf, sizeof(buf), "%.*g", prec, (double)f);
			g = strtof(buf, NULL);
			memcpy(&back, &g, sizeof(g));
			if (back == bits) {
				fprintf(out, "%s%s", buf, strpbrk(buf, ".e") ? "" : ".0");
				return;
			}
		}
	}
	if (bits < 10)
		fprintf(out, "%u", bits);
	else
		fprintf(out, "0x%x", bits);
}

void print_cores(FILE *out, uint32_t mask)
{
	unsigned int i, j;
	const char *sep = "";

	if (!mask)
		fputs("none", out);
	for (i = 0; i < 32; i = j + 1) {
		for (j = i; j < 32 && mask >> j & 1; j++)
			;
		if (j == i)
			continue;
		fprintf(out, j - i > 1 ? "%s%u-%u" : "%s%u", sep, i, j - 1);
		sep = ",";
	}
}

/* --- Parsing fields ------------------------------------------------------------------------- */

static int scan_reg(struct scan *s, unsigned int lo, unsigned int hi, bool none, uint8_t *reg)
{
	const char *w;
	size_t n = scan_word(s, &w);
	unsigned int i;

	if (none && n == 4 && !memcmp(w, "none", 4)) {
		*reg = SPYRE_REG_NONE;
		return 0;
	}
	/* "lar:0" as well as "lar:LAR0". */
	if (n == 1 && hi - lo == 3 && *w >= '0' && *w <= '3') {
		*reg = (uint8_t)(lo + (unsigned int)(*w - '0'));
		return 0;
	}
	for (i = lo; i <= hi; i++) {
		const char *name = spyreprog_reg_name(i);

		if (strlen(name) == n && !memcmp(name, w, n)) {
			*reg = (uint8_t)i;
			return 0;
		}
	}
	if (!n)
		return scan_fail(s, w, "expected one of the registers %s to %s%s",
				 spyreprog_reg_name(lo), spyreprog_reg_name(hi),
				 none ? " or none" : "");
	return scan_fail(s, w, "'%.*s' is none of the registers %s to %s%s", (int)n, w,
			 spyreprog_reg_name(lo), spyreprog_reg_name(hi), none ? " or none" : "");
}

static int fifo_by_name(const char *w, size_t n)
{
	unsigned int i;

	for (i = 0; i < SPYRE_FIFOS; i++)
		if (strlen(isa_fifos[i].name) == n && !memcmp(isa_fifos[i].name, w, n))
			return (int)i;
	return -1;
}

static int check_fifo(struct scan *s, const char *at, int unit, unsigned int f, unsigned int flags)
{
	if (unit < 0)
		return 0;
	if ((flags & ISA_WRITES) && isa_fifos[f].writer != unit)
		return scan_fail(s, at, "%s is written by %s, not by %s", isa_fifos[f].name,
				 spyreprog_unit_name(isa_fifos[f].writer),
				 spyreprog_unit_name((unsigned int)unit));
	if ((flags & (ISA_READS | ISA_LOAD_PORT)) && isa_fifos[f].reader != unit)
		return scan_fail(s, at, "%s is read by %s, not by %s", isa_fifos[f].name,
				 spyreprog_unit_name(isa_fifos[f].reader),
				 spyreprog_unit_name((unsigned int)unit));
	if ((flags & (ISA_READS | ISA_LOAD_PORT)) &&
	    isa_fifos[f].load_port != !!(flags & ISA_LOAD_PORT))
		return scan_fail(s, at, "%s %s PT's load port (LDW)", isa_fifos[f].name,
				 isa_fifos[f].load_port ? "leads to" : "does not lead to");
	return 0;
}

static int scan_fmt(struct scan *s, uint8_t *fmt)
{
	const char *w;
	size_t n = scan_word(s, &w);
	unsigned int i;

	for (i = 0; i < SPYRE_FORMATS; i++) {
		const char *name = spyreprog_format_name(i);

		if (strlen(name) == n && !memcmp(name, w, n)) {
			*fmt = (uint8_t)i;
			return 0;
		}
	}
	return scan_fail(s, w, "'%.*s' is no data format (SEN169_FP16, IEEE_FP32, ...)", (int)n, w);
}

/* V3, const5, imm:VALUE, none, or FIFO/FORMAT[/half]. */
static int scan_operand(struct scan *s, int unit, const struct isa_op *o, bool dst, uint8_t *opnd,
			uint8_t *fmt, struct spyre_insn *in, bool *have_imm)
{
	const char *w;
	size_t n = scan_word(s, &w);
	unsigned int i;
	uint32_t bits;
	int f;

	*fmt = 0;
	if (n >= 2 && n <= 3 && w[0] == 'V' && isdigit((unsigned char)w[1])) {
		i = (unsigned int)strtoul(w + 1, NULL, 10);
		if (i >= SPYRE_VREGS || (n == 3 && !isdigit((unsigned char)w[2])))
			return scan_fail(s, w, "vector registers are V0 to V%u", SPYRE_VREGS - 1);
		*opnd = (uint8_t)i;
		return 0;
	}
	if (n == 4 && !memcmp(w, "none", 4)) {
		*opnd = SPYRE_OPND_NONE;
		return 0;
	}
	if (!dst && n > 5 && !memcmp(w, "const", 5) && isdigit((unsigned char)w[5])) {
		i = (unsigned int)strtoul(w + 5, NULL, 10);
		if (i >= SPYRE_JOB_CONSTS)
			return scan_fail(s, w, "constants are const0 to const%u",
					 SPYRE_JOB_CONSTS - 1);
		*opnd = (uint8_t)SPYRE_OPND_CONST(i);
		/* 255 means none: the last constant cannot be named as an operand. */
		if (*opnd == SPYRE_OPND_NONE)
			return scan_fail(s, w,
					 "const127 cannot be an operand; order the constants anew");
		return 0;
	}
	if (!dst && !(o->flags & ISA_IMM_OWN) && n == 3 && !memcmp(w, "imm", 3)) {
		if (!scan_char(s, '='))
			return scan_fail(s, s->p, "expected imm=VALUE");
		if (scan_bits(s, &bits))
			return -1;
		if (*have_imm && in->imm != bits)
			return scan_fail(s, w, "an instruction has room for one immediate value");
		in->imm = bits;
		*have_imm = true;
		*opnd = SPYRE_OPND_IMM;
		return 0;
	}
	f = fifo_by_name(w, n);
	if (f < 0)
		return scan_fail(s, w, "'%.*s' is no operand: V0 to V15, FIFO/FORMAT, %s", (int)n,
				 w, dst ? "none" : "constN, imm=VALUE");
	if (check_fifo(s, w, unit, (unsigned int)f, dst ? ISA_WRITES : ISA_READS))
		return -1;
	if (!scan_char(s, '/'))
		return scan_fail(s, s->p, "expected %s/FORMAT", isa_fifos[f].name);
	if (scan_fmt(s, fmt))
		return -1;
	if (scan_char(s, '/')) {
		if (!scan_is(s, "half"))
			return scan_fail(s, s->p, "only /half may follow the format");
		*fmt |= SPYRE_FMT_HALF;
	}
	*opnd = (uint8_t)SPYRE_OPND_FIFO(f);
	return 0;
}

static void put(struct spyre_insn *in, unsigned int at, uint32_t v)
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

static int parse_field(struct scan *s, int unit, const struct isa_op *o, const struct isa_field *f,
		       struct spyre_insn *in, bool *have_imm)
{
	const char *at;
	uint8_t r = 0, fmt;
	uint32_t v = 0;
	uint64_t u = 0;
	const char *w;
	size_t n;
	int i;

	scan_space(s);
	at = s->p;
	switch (f->kind) {
	case ISA_COUNT:
		if (s->p < s->end && !isdigit((unsigned char)*s->p)) {
			in->c = 1;
			return scan_reg(s, SPYRE_LCR0, SPYRE_LCR0 + 3, false, &in->b);
		}
		if (scan_range(s, f->name, 0, 0xffffffffu, &u))
			return -1;
		in->imm = (uint32_t)u;
		return 0;
	case ISA_REG:
	case ISA_REG_OR_NONE:
		if (scan_reg(s, 0, SPYRE_REGS - 1, f->kind == ISA_REG_OR_NONE, &r))
			return -1;
		v = r;
		break;
	case ISA_LAR:
	case ISA_LBR:
	case ISA_EAR:
		i = f->kind == ISA_LAR ? SPYRE_LAR0 : f->kind == ISA_LBR ? SPYRE_LBR0 : SPYRE_EAR0;
		if (scan_reg(s, (unsigned int)i, (unsigned int)i + 3, f->kind == ISA_LBR, &r))
			return -1;
		v = r;
		break;
	case ISA_NUM:
		if (scan_range(s, f->name, f->min, f->max, &u))
			return -1;
		v = (uint32_t)u;
		break;
	case ISA_BOOL:
		if (scan_range(s, f->name, 0, 1, &u))
			return -1;
		v = (uint32_t)u;
		break;
	case ISA_TAG:
		if (scan_range(s, f->name, 0, SPYRE_TAGS - 1, &u))
			return -1;
		v = (uint32_t)u;
		break;
	case ISA_TILE:
		if (scan_range(s, f->name, 0, 7, &u))
			return -1;
		v = (uint32_t)u;
		break;
	case ISA_GROUP:
		if (scan_range(s, f->name, 0, SPYRE_JOB_GROUPS - 1, &u))
			return -1;
		v = (uint32_t)u;
		break;
	case ISA_S32:
	case ISA_STRIDE:
		if (scan_s32(s, f->name, &v))
			return -1;
		if (f->kind == ISA_STRIDE && v % SPYRE_STICK)
			return scan_fail(s, at, "%s is %d; it must be a multiple of %u", f->name,
					 (int32_t)v, SPYRE_STICK);
		break;
	case ISA_CORES:
		if (scan_cores(s, &v))
			return -1;
		break;
	case ISA_FIFO:
		n = scan_word(s, &w);
		i = fifo_by_name(w, n);
		if (i < 0)
			return scan_fail(s, w, "'%.*s' is no FIFO", (int)n, w);
		if (check_fifo(s, w, unit, (unsigned int)i, o->flags))
			return -1;
		v = (uint32_t)i;
		break;
	case ISA_FMT:
		if (scan_fmt(s, &r))
			return -1;
		v = r;
		break;
	case ISA_DST:
	case ISA_SRC:
		if (scan_operand(s, unit, o, f->kind == ISA_DST, &r, &fmt, in, have_imm))
			return -1;
		v = r;
		in->imm2 |= (uint32_t)fmt << isa_fmt_shift(f->at);
		break;
	default:
		return scan_fail(s, at, "internal: field kind %u", f->kind);
	}
	put(in, f->at, v);
	return 0;
}

/* INSN :: op:.. be:.. a:.. b:.. c:.. d:.. n:.. imm:.. imm2:.. : sixteen bytes as they are. */
static int parse_raw(struct scan *s, struct spyre_insn *out)
{
	static const char *const names[] = { "op", "be", "a", "b", "c", "d", "n", "imm", "imm2" };
	static const uint32_t max[] = { 255, 255,   255,	 255,	     255,
					255, 65535, 0xffffffffu, 0xffffffffu };
	uint64_t v[9];
	unsigned int i;

	for (i = 0; i < 9; i++) {
		if (!scan_is(s, names[i]) || !scan_char(s, ':'))
			return scan_fail(s, s->p, "expected %s:NUMBER", names[i]);
		if (scan_range(s, names[i], 0, max[i], &v[i]))
			return -1;
	}
	*out = (struct spyre_insn){
		.op = (uint8_t)v[0], .be = (uint8_t)v[1], .a = (uint8_t)v[2], .b = (uint8_t)v[3],
		.c = (uint8_t)v[4], .d = (uint8_t)v[5], .n = (uint16_t)v[6],
		.imm = (uint32_t)v[7], .imm2 = (uint32_t)v[8],
	};
	if (!scan_end(s))
		return scan_fail(s, s->p, "unexpected text after the instruction");
	return 0;
}

static int no_field(struct scan *s, const struct isa_op *o, const char *w, size_t n)
{
	char names[120] = "be";
	size_t len = 2;
	unsigned int i;

	for (i = 0; o->fields[i].kind && len < sizeof(names); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, ", %s",
					o->fields[i].name);
	return scan_fail(s, w, "%s has no field '%.*s'; its fields: %s", o->name, (int)n, w, names);
}

int insn_parse(struct scan *s, int unit, struct spyre_insn *out)
{
	const char *prefix = unit < 0 ? "" : isa_prefixes[unit];
	size_t plen = strlen(prefix), n, flen, bare;
	const struct isa_op *o = NULL;
	const char *w, *fw;
	bool have_imm = false;
	uint32_t seen = 0;
	uint64_t be = 0;
	unsigned int i;

	memset(out, 0, sizeof(*out));
	n = scan_word(s, &w);
	if (n == 4 && !memcmp(w, "INSN", 4)) {
		if (!scan_char(s, ':') || !scan_char(s, ':'))
			return scan_fail(s, s->p, "expected '::' after INSN");
		return parse_raw(s, out);
	}
	if (n > plen && !memcmp(w, prefix, plen))
		o = op_by_name(w + plen, n - plen, unit);
	if (!o && n > plen && !memcmp(w, prefix, plen) && op_by_name(w + plen, n - plen, -1))
		return scan_fail(s, w, "%s does not execute '%.*s'; the ISA manual says which units do",
				 spyreprog_unit_name((unsigned int)unit), (int)n, w);
	bare = n > 3 && w[2] == '_' ? 3 : n > 4 && w[3] == '_' ? 4 : 0;
	if (!o && unit >= 0 && op_by_name(w + bare, n - bare, -1))
		return scan_fail(s, w, "%s does not execute '%.*s'; its instructions begin with %s",
				 spyreprog_unit_name((unsigned int)unit), (int)n, w, prefix);
	if (!o)
		return scan_fail(s, w, "'%.*s' is no instruction%s%s", (int)n, w,
				 unit >= 0 ? " of " : "",
				 unit >= 0 ? spyreprog_unit_name((unsigned int)unit) : "");
	if (!scan_char(s, ':') || !scan_char(s, ':'))
		return scan_fail(s, s->p, "expected '::' after the instruction");
	out->op = o->code;
	for (i = 0; o->fields[i].kind; i++)
		if (o->fields[i].optional)
			put(out, o->fields[i].at, o->fields[i].fallback);
	while (!scan_end(s)) {
		flen = scan_word(s, &fw);
		if (!flen || !scan_char(s, ':'))
			return scan_fail(s, fw, "expected FIELD:VALUE");
		if (flen == 2 && !memcmp(fw, "be", 2)) {
			if (scan_range(s, "be", 0, 255, &be))
				return -1;
			out->be = (uint8_t)be;
			continue;
		}
		for (i = 0; o->fields[i].kind; i++)
			if (strlen(o->fields[i].name) == flen &&
			    !memcmp(o->fields[i].name, fw, flen))
				break;
		if (!o->fields[i].kind)
			return no_field(s, o, fw, flen);
		if (seen >> i & 1)
			return scan_fail(s, fw, "field '%.*s' is given twice", (int)flen, fw);
		seen |= 1u << i;
		if (parse_field(s, unit, o, &o->fields[i], out, &have_imm))
			return -1;
	}
	for (i = 0; o->fields[i].kind; i++)
		if (!o->fields[i].optional && !(seen >> i & 1))
			return scan_fail(s, s->p, "%s needs the field '%s'", o->name,
					 o->fields[i].name);
	return 0;
}

/* --- Printing ------------------------------------------------------------------------------- */

static void print_reg(FILE *out, uint32_t r, unsigned int base)
{
	if (r == SPYRE_REG_NONE)
		fputs("none", out);
	else if (base == SPYRE_REGS)
		fputs(r < SPYRE_REGS ? spyreprog_reg_name(r) : "?", out);
	else
		fprintf(out, "%u", r - base);
}

static void print_operand(FILE *out, const struct isa_op *o, uint32_t v, uint32_t fmt,
			  const struct spyre_insn *in)
{
	if (v < SPYRE_VREGS) {
		fprintf(out, "V%u", v);
	} else if (v == SPYRE_OPND_NONE) {
		fputs("none", out);
	} else if (v == SPYRE_OPND_IMM) {
		fputs("imm=", out);
		print_bits(out, in->imm, o->flags & ISA_IMM_FP32);
	} else if (v >= SPYRE_OPND_CONST(0)) {
		fprintf(out, "const%u", v - SPYRE_OPND_CONST(0));
	} else {
		const char *fifo = spyreprog_fifo_name(v - SPYRE_OPND_FIFO(0));
		const char *name = spyreprog_format_name(fmt & ~SPYRE_FMT_HALF);

		fprintf(out, "%s/%s%s", fifo ? fifo : "?", name ? name : "?",
			fmt & SPYRE_FMT_HALF ? "/half" : "");
	}
}

static void print_table(FILE *out, int unit, const struct isa_op *o, const struct spyre_insn *in)
{
	const struct isa_field *f;

	fprintf(out, "%s%s :: be:%u", unit < 0 ? "" : isa_prefixes[unit], o->name,
		in->be);
	for (f = o->fields; f->kind; f++) {
		uint32_t v = ISA_GET(in, f->at);

		fprintf(out, " %s:", f->name);
		switch (f->kind) {
		case ISA_COUNT:
			if (in->c)
				fputs(in->b < SPYRE_REGS ? spyreprog_reg_name(in->b) : "?", out);
			else
				fprintf(out, "%u", v);
			break;
		case ISA_REG:
		case ISA_REG_OR_NONE:
			print_reg(out, v, SPYRE_REGS);
			break;
		case ISA_LAR:
			print_reg(out, v, SPYRE_LAR0);
			break;
		case ISA_LBR:
			print_reg(out, v, SPYRE_LBR0);
			break;
		case ISA_EAR:
			print_reg(out, v, SPYRE_EAR0);
			break;
		case ISA_S32:
		case ISA_STRIDE:
			fprintf(out, "%d", (int32_t)v);
			break;
		case ISA_CORES:
			print_cores(out, v);
			break;
		case ISA_FIFO:
			fputs(spyreprog_fifo_name(v) ? spyreprog_fifo_name(v) : "?", out);
			break;
		case ISA_FMT:
			fputs(spyreprog_format_name(v) ? spyreprog_format_name(v) : "?", out);
			break;
		case ISA_DST:
		case ISA_SRC:
			print_operand(out, o, v, in->imm2 >> isa_fmt_shift(f->at) & 0xff, in);
			break;
		default:
			fprintf(out, "%u", v);
		}
	}
}

void insn_print(FILE *out, int unit, const struct spyre_insn *in)
{
	const struct isa_op *o = isa_op(in->op);
	struct spyreprog_err err;
	struct spyre_insn again;
	char buf[400];
	FILE *m;

	/* The text is right if and only if reading it gives the same sixteen bytes. */
	if (o && (unit < 0 || o->units >> unit & 1)) {
		m = fmemopen(buf, sizeof(buf), "w");
		if (m) {
			struct scan s = { .p = buf, .start = buf, .line = 1, .err = &err };

			print_table(m, unit, o, in);
			fclose(m);
			s.end = buf + strnlen(buf, sizeof(buf));
			if (!insn_parse(&s, unit, &again) && !memcmp(&again, in, sizeof(again))) {
				fprintf(out, "%s\n", buf);
				return;
			}
		}
	}
	fprintf(out, "INSN :: op:0x%02x be:%u a:%u b:%u c:%u d:%u n:%u imm:0x%x imm2:0x%x\n",
		in->op, in->be, in->a, in->b, in->c, in->d, in->n, in->imm, in->imm2);
}
