/* SPDX-License-Identifier: MIT */
/* Arguments of the tools' options, checked. What is wrong ends the program with exit status 2 and a text. */
#ifndef ARGS_H
#define ARGS_H

#include <stdint.h>

/* "NAME: text" on stderr, then exit(status). NAME is the program's. */
void args_quit(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));

/* The whole text is a number from min to max: decimal, 0x... or 0... option is named in the error. */
uint64_t args_number(const char *option, const char *text, uint64_t min, uint64_t max);

/* The whole text is a number from min on that is finite in fp32. */
double args_real(const char *option, const char *text, double min);

#endif
