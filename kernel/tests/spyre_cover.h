/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_COVER_H
#define SPYRE_COVER_H

/*
 * Which blocks of the driver ran, in whatever context: a build with SPYRE_COVER=1 alone has it. The
 * kernel log tells every few seconds what is new, and the rest when the module goes. A line is
 * "spyre-cover: OFFSET BYTES", both hexadecimal: bit 0 of the first byte stands for OFFSET bytes
 * behind spyre_cover_anchor(), the next bit for one byte more; set where the call returns to that
 * the compiler put at the start of a block. tests/cover/spyre-cover makes lines of source of it.
 */
#ifdef SPYRE_COVER
void spyre_cover_begin(void);
void spyre_cover_end(void);
void spyre_cover_anchor(void);
void __sanitizer_cov_trace_pc(void);
#else
static inline void spyre_cover_begin(void) { }
static inline void spyre_cover_end(void) { }
#endif

#endif
