// SPDX-License-Identifier: MIT
/* Tensors between the host's rows and the card's columns of sticks. */
#include <string.h>

#include <spyre/isa_table.h>
#include <spyre/num.h>

#include "gen.h"

uint64_t spyregen_rows(uint64_t rows)
{
	uint64_t blocks = (rows + 127) / 128;

	return blocks ? (rows + blocks - 1) / blocks * blocks : 0;
}

static unsigned int bits(enum spyre_format fmt)
{
	return SPYRE_STICK * 8 / isa_formats[fmt].lanes;
}

unsigned int gen_width(enum spyre_format fmt)
{
	return isa_formats[fmt].lanes > SPYRE_LANES ? isa_formats[fmt].lanes : SPYRE_LANES;
}

uint64_t spyregen_bytes(enum spyre_format fmt, uint64_t rows, uint64_t cols)
{
	return spyregen_rows(rows) * (gen_up(cols, gen_width(fmt)) * bits(fmt) / 8);
}

static uint64_t weight_rows(enum spyre_format fmt, uint64_t k)
{
	return gen_up(k, gen_width(fmt));
}

uint64_t spyregen_weight_bytes(enum spyre_format fmt, uint64_t k, uint64_t n)
{
	return weight_rows(fmt, k) * (gen_up(n, 64) * bits(fmt) / 8);
}

/* Of an element on the host: float, int8_t or int32_t. */
static unsigned int host_bytes(enum spyre_format fmt)
{
	return fmt == SPYRE_SENINT8 || fmt == SPYRE_SENINT4 ? 1 : 4;
}

/* One stretch of a row. */
static void put(uint8_t *dst, enum spyre_format fmt, const void *host, uint64_t n)
{
	uint16_t *h = (uint16_t *)dst;
	const float *src = host;
	const int8_t *b = host;
	uint64_t i;

	switch (fmt) {
	case SPYRE_IEEE_FP32:
	case SPYRE_IEEE_INT32:
	case SPYRE_SENINT8:
		memcpy(dst, host, n * host_bytes(fmt));
		break;
	case SPYRE_SENINT4:
		for (i = 0; i < n; i += 2)
			dst[i / 2] = (uint8_t)(spyre_int32_to_int4(b[i]) |
				     (i + 1 < n ? spyre_int32_to_int4(b[i + 1]) << 4 : 0));
		break;
	case SPYRE_SEN18F_FP24:
		for (i = 0; i < n; i++)
			((uint32_t *)dst)[i] = spyre_fp32_to_fp24(src[i]);
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

static void get(void *host, const uint8_t *src, enum spyre_format fmt, uint64_t n)
{
	const uint16_t *h = (const uint16_t *)src;
	float *dst = host;
	uint64_t i;

	switch (fmt) {
	case SPYRE_IEEE_FP32:
	case SPYRE_IEEE_INT32:
	case SPYRE_SENINT8:
		memcpy(host, src, n * host_bytes(fmt));
		break;
	case SPYRE_SENINT4:
		for (i = 0; i < n; i++)
			((int8_t *)host)[i] =
				(int8_t)spyre_int4_to_int32((uint8_t)(src[i / 2] >> i % 2 * 4));
		break;
	case SPYRE_SEN18F_FP24:
		for (i = 0; i < n; i++)
			dst[i] = spyre_fp24_to_fp32(((const uint32_t *)src)[i]);
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
	uint32_t h[256];
	size_t i, n;

	if (fmt == SPYRE_IEEE_FP32)
		return;
	for (i = 0; i < count; i += n) {
		n = count - i < 256 ? count - i : 256;
		put((uint8_t *)h, fmt, v + i, n);
		get(v + i, (const uint8_t *)h, fmt, n);
	}
}

/* w columns to a column block. */
static void pack(uint8_t *dst, enum spyre_format fmt, const void *src, uint64_t w, uint64_t rows,
		 uint64_t stored, uint64_t cols, uint64_t ld)
{
	uint64_t row = w * bits(fmt) / 8, c, r, n, used;

	for (c = 0; c < cols; c += w) {
		n = cols - c < w ? cols - c : w;
		used = (n * bits(fmt) + 7) / 8;
		for (r = 0; r < rows; r++, dst += row) {
			put(dst, fmt, (const uint8_t *)src + (r * ld + c) * host_bytes(fmt), n);
			memset(dst + used, 0, row - used);
		}
		memset(dst, 0, (stored - rows) * row);
		dst += (stored - rows) * row;
	}
}

static void unpack(void *dst, uint64_t ld, const uint8_t *src, enum spyre_format fmt, uint64_t rows,
		   uint64_t cols)
{
	uint64_t w = gen_width(fmt), row = w * bits(fmt) / 8, c, r, n;

	for (c = 0; c < cols; c += w) {
		n = cols - c < w ? cols - c : w;
		for (r = 0; r < rows; r++, src += row)
			get((uint8_t *)dst + (r * ld + c) * host_bytes(fmt), src, fmt, n);
		src += (spyregen_rows(rows) - rows) * row;
	}
}

void spyregen_pack(void *dst, enum spyre_format fmt, const float *src, uint64_t rows, uint64_t cols,
		   uint64_t ld)
{
	pack(dst, fmt, src, gen_width(fmt), rows, spyregen_rows(rows), cols, ld);
}

void spyregen_pack_weights(void *dst, enum spyre_format fmt, const float *src, uint64_t k,
			   uint64_t n, uint64_t ld)
{
	pack(dst, fmt, src, 64, k, weight_rows(fmt, k), n, ld);
}

void spyregen_unpack(float *dst, uint64_t ld, const void *src, enum spyre_format fmt, uint64_t rows,
		     uint64_t cols)
{
	unpack(dst, ld, src, fmt, rows, cols);
}

void spyregen_pack_int(void *dst, enum spyre_format fmt, const void *src, uint64_t rows,
		       uint64_t cols, uint64_t ld)
{
	pack(dst, fmt, src, gen_width(fmt), rows, spyregen_rows(rows), cols, ld);
}

void spyregen_pack_weights_int(void *dst, enum spyre_format fmt, const int8_t *src, uint64_t k,
			       uint64_t n, uint64_t ld)
{
	pack(dst, fmt, src, 64, k, weight_rows(fmt, k), n, ld);
}

void spyregen_unpack_int(void *dst, uint64_t ld, const void *src, enum spyre_format fmt,
			 uint64_t rows, uint64_t cols)
{
	unpack(dst, ld, src, fmt, rows, cols);
}
