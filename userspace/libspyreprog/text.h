/* SPDX-License-Identifier: MIT */
/* One instruction as text. Internal. */
#ifndef SPYREPROG_TEXT_H
#define SPYREPROG_TEXT_H

#include "image.h"
#include "table.h"

/* Scanner of one line. */
struct scan {
	const char *p, *end;	/* rest of the line */
	const char *start;
	unsigned int line;
	struct spyreprog_err *err;
};

int scan_fail(struct scan *s, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void scan_space(struct scan *s);
bool scan_end(struct scan *s);
bool scan_char(struct scan *s, char c);
/* A word of letters, digits, '_' and '.'; length 0 when there is none. */
size_t scan_word(struct scan *s, const char **word);
bool scan_is(struct scan *s, const char *word);		/* takes the word if it comes next */
int scan_u64(struct scan *s, uint64_t *v);		/* decimal or 0x */
int scan_bits(struct scan *s, uint32_t *bits); /* fp32 with a point or exponent, else 32 bits */
int scan_cores(struct scan *s, uint32_t *mask);		/* 0-3,7 or none */

/* unit -1: mnemonics without prefix, and no checks that need the unit. */
int insn_parse(struct scan *s, int unit, struct spyre_insn *out);
/* Never fails: what the table cannot say is written as INSN. */
void insn_print(FILE *out, int unit, const struct spyre_insn *in);

void print_bits(FILE *out, uint32_t bits, bool fp);
void print_cores(FILE *out, uint32_t mask);

#endif
