/* SPDX-License-Identifier: MIT */
/* The driver's core dump (kernel/spyre_dump.c), for people. */
#ifndef SMI_DUMP_H
#define SMI_DUMP_H

/*
 * Prints the core dump in a file, "-": standard input, to standard output, with names for numbers. A line it does
 * not know is printed as it is. 0, or -1 when the file cannot be read or is no such dump: then a text is on stderr.
 */
int dump_print(const char *path);

#endif
