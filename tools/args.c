// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "args.h"

void args_quit(int status, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

uint64_t args_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long v;
	char *end;

	/* strtoull() would take blanks before, and a minus. */
	errno = 0;
	v = strtoull(text, &end, 0);
	if (!isdigit((unsigned char)*text) || *end || errno || v < min || v > max)
		args_quit(2, "%s takes a number from %" PRIu64 " to %" PRIu64 ", not '%s'", option,
			  min, max, text);
	return v;
}

double args_real(const char *option, const char *text, double min)
{
	char *end;
	double v = strtod(text, &end);

	/* What overflows in fp32 would be infinite where it is used. */
	if (end == text || *end || !isfinite((float)v) || v < min) {
		if (isfinite(min))
			args_quit(2, "%s takes a number from %g to %g, not '%s'", option, min, (double)FLT_MAX, text);
		args_quit(2, "%s takes a number of fp32's range, not '%s'", option, text);
	}
	return v;
}
