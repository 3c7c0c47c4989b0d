// SPDX-License-Identifier: MIT
/* Tensors between the host's rows and the card's columns of sticks. */
#include <string.h>

#include <spyre/num.h>

#include "spyregen.h"

uint64_t spyregen_rows(uint64_t rows)
{
	uint64_t blocks = (rows + 127) / 128;

	return blocks ? (rows + blocks - 1) / blocks * blocks : 0;
}

static unsigned int elem_bytes(enum spyre_format fmt)
{
	switch (fmt) {
	case SPYRE_IEEE_FP32:
	case SPYRE_IEEE_INT32:
		return 4;
	case SPYRE_SENINT8:
	case SPYRE_SEN143_FP8:
	case SPYRE_SEN152_FP8:
		return 1;
	default:
		return 2;
	}
}

static unsigned int width(enum spyre_format fmt)
{
	return elem_bytes(fmt) == 1 ? 128 : 64;
}

static uint64_t up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

uint64_t spyregen_bytes(enum spyre_format fmt, uint64_t rows, uint64_t cols)
{
	return spyregen_rows(rows) * up(cols, width(fmt)) * elem_bytes(fmt);
}

static uint64_t weight_rows(enum spyre_format fmt, uint64_t k)
{
	return up(k, elem_bytes(fmt) == 1 ? 128 : 64);
}

uint64_t spyregen_weight_bytes(enum spyre_format fmt, uint64_t k, uint64_t n)
{
	return weight_rows(fmt, k) * up(n, 64) * elem_bytes(fmt);
}

/* One stretch of a row. */
static void put(uint8_t *dst, enum spyre_format fmt, const float *src, uint64_t n)
{
	uint16_t *h = (uint16_t *)dst;
	uint64_t i;

	switch (fmt) {
	case SPYRE_IEEE_FP32:
		memcpy(dst, src, n * 4);
		break;
	case SPYRE_IEEE_FP16:
		for (i = 0; i < n; i++)
			h[i] = spyre_fp32_to_fp16(src[i]);
		break;
	case SPYRE_BFLOAT16:
		for (i = 0; i < n; i++)
			h[i] = spyre_fp32_to_bf16(src[i]);
		break;
	case SPYRE_SEN143_FP8:
		for (i = 0; i < n; i++)
			dst[i] = spyre_fp32_to_fp8_143(src[i]);
		break;
	case SPYRE_SEN152_FP8:
		for (i = 0; i < n; i++)
			dst[i] = spyre_fp32_to_fp8_152(src[i]);
		break;
	default:
		for (i = 0; i < n; i++)
			h[i] = spyre_fp32_to_dl16(src[i]);
	}
}

static void get(float *dst, const uint8_t *src, enum spyre_format fmt, uint64_t n)
{
	const uint16_t *h = (const uint16_t *)src;
	uint64_t i;

	switch (fmt) {
	case SPYRE_IEEE_FP32:
		memcpy(dst, src, n * 4);
		break;
	case SPYRE_IEEE_FP16:
		for (i = 0; i < n; i++)
			dst[i] = spyre_fp16_to_fp32(h[i]);
		break;
	case SPYRE_BFLOAT16:
		for (i = 0; i < n; i++)
			dst[i] = spyre_bf16_to_fp32(h[i]);
		break;
	case SPYRE_SEN143_FP8:
		for (i = 0; i < n; i++)
			dst[i] = spyre_fp8_143_to_fp32(src[i]);
		break;
	case SPYRE_SEN152_FP8:
		for (i = 0; i < n; i++)
			dst[i] = spyre_fp8_152_to_fp32(src[i]);
		break;
	default:
		for (i = 0; i < n; i++)
			dst[i] = spyre_dl16_to_fp32(h[i]);
	}
}

void spyregen_round(float *v, size_t count, enum spyre_format fmt)
{
	uint16_t h[256];
	size_t i, n;

	if (fmt == SPYRE_IEEE_FP32)
		return;
	for (i = 0; i < count; i += n) {
		n = count - i < 256 ? count - i : 256;
		put((uint8_t *)h, fmt, v + i, n);
		get(v + i, (const uint8_t *)h, fmt, n);
	}
}

static void pack(uint8_t *dst, enum spyre_format fmt, const float *src, uint64_t w, uint64_t rows,
		 uint64_t stored, uint64_t cols, uint64_t ld)
{
	uint64_t b = elem_bytes(fmt), c, r, n;

	for (c = 0; c < cols; c += w) {
		n = cols - c < w ? cols - c : w;
		for (r = 0; r < rows; r++, dst += w * b) {
			put(dst, fmt, src + r * ld + c, n);
			memset(dst + n * b, 0, (w - n) * b);
		}
		memset(dst, 0, (stored - rows) * w * b);
		dst += (stored - rows) * w * b;
	}
}

void spyregen_pack(void *dst, enum spyre_format fmt, const float *src, uint64_t rows, uint64_t cols,
		   uint64_t ld)
{
	pack(dst, fmt, src, width(fmt), rows, spyregen_rows(rows), cols, ld);
}

void spyregen_pack_weights(void *dst, enum spyre_format fmt, const float *src, uint64_t k,
			   uint64_t n, uint64_t ld)
{
	pack(dst, fmt, src, 64, k, weight_rows(fmt, k), n, ld);
}

void spyregen_unpack(float *dst, uint64_t ld, const void *src, enum spyre_format fmt, uint64_t rows,
		     uint64_t cols)
{
	uint64_t w = width(fmt), b = elem_bytes(fmt), c, r, n;
	const uint8_t *s = src;

	for (c = 0; c < cols; c += w) {
		n = cols - c < w ? cols - c : w;
		for (r = 0; r < rows; r++, s += w * b)
			get(dst + r * ld + c, s, fmt, n);
		s += (spyregen_rows(rows) - rows) * w * b;
	}
}

static void pack_int(uint8_t *dst, const uint8_t *src, uint64_t w, uint64_t b, uint64_t rows,
		     uint64_t stored, uint64_t cols, uint64_t ld)
{
	uint64_t c, r, n;

	for (c = 0; c < cols; c += w) {
		n = cols - c < w ? cols - c : w;
		for (r = 0; r < rows; r++, dst += w * b) {
			memcpy(dst, src + (r * ld + c) * b, n * b);
			memset(dst + n * b, 0, (w - n) * b);
		}
		memset(dst, 0, (stored - rows) * w * b);
		dst += (stored - rows) * w * b;
	}
}

void spyregen_pack_int(void *dst, enum spyre_format fmt, const void *src, uint64_t rows,
		       uint64_t cols, uint64_t ld)
{
	pack_int(dst, src, width(fmt), elem_bytes(fmt), rows, spyregen_rows(rows), cols, ld);
}

void spyregen_pack_weights_int8(void *dst, const int8_t *src, uint64_t k, uint64_t n, uint64_t ld)
{
	pack_int(dst, (const uint8_t *)src, 64, 1, k, weight_rows(SPYRE_SENINT8, k), n, ld);
}

void spyregen_unpack_int(void *dst, uint64_t ld, const void *src, enum spyre_format fmt,
			 uint64_t rows, uint64_t cols)
{
	uint64_t w = width(fmt), b = elem_bytes(fmt), c, r, n;
	const uint8_t *s = src;
	uint8_t *d = dst;

	for (c = 0; c < cols; c += w) {
		n = cols - c < w ? cols - c : w;
		for (r = 0; r < rows; r++, s += w * b)
			memcpy(d + (r * ld + c) * b, s, n * b);
		s += (spyregen_rows(rows) - rows) * w * b;
	}
}
