/* SPDX-License-Identifier: MIT */
/*
 * Numbers of the reference: conversions by their definition. A 16-bit code's magnitude has a value,
 * which grows with the code; rounding looks for the two codes around the number and takes the
 * nearer.
 */
#ifndef REF_NUM_H
#define REF_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include <spyre/isa.h>

#define REF_NAN 0x7fc00000u

bool ref_is_float(unsigned int fmt);
bool ref_is_nan(uint32_t lane);
/* fp32 bits with every NaN the canonical one. */
uint32_t ref_canon(uint32_t lane);
float ref_float(uint32_t lane);
uint32_t ref_lane(float f);
/* Bits of an element of fmt. */
unsigned int ref_bits(unsigned int fmt);
/* An element of fmt, in its low bits, to a lane: int32 for integer formats, else fp32. */
uint32_t ref_widen(unsigned int fmt, uint32_t code);
uint32_t ref_narrow(unsigned int fmt, uint32_t lane);
/* One lane of an operation on lanes that treats each alone; special functions rounded from double.
 */
uint32_t ref_op(unsigned int op, uint32_t b, uint32_t c, uint32_t d);
/* The operations that do not treat each lane alone; .imm and field .c are the instruction's. */
bool ref_is_cross(unsigned int op);
void ref_cross(unsigned int op, uint32_t *out, const uint32_t *b, const uint32_t *c, uint32_t imm,
	       uint32_t count);

#endif
