/* SPDX-License-Identifier: MIT */
/*
 * Program generators: job binaries for matrix products, elementwise operations, row softmax and
 * reductions, over 1 to 32 cores; the layout of tensors on the card; host references in the defined
 * order of arithmetic.
 *
 * Layout "sticks". A matrix of R rows and C columns lies in columns of sticks: element (r, c) is at
 * place ((c / W) * R' + r) * W + c % W, with W = 64 (128 for 8-bit formats, 256 for SENINT4, whose
 * even places are the low halves of bytes) and R' = spyregen_rows(R). So what one column of PT tiles needs of 128 rows is one run of words, and
 * a result is the next product's operand as it lies. A row of a column is one stick in formats
 * of up to 16 bits, two in 32-bit ones, SEN18F_FP24 being one too. Padding columns may hold any finite number (reductions skip
 * them, products multiply them with weights of 0); padding rows may hold anything.
 *
 * Layout "weights" (right operand of products, K x N): the same with W = 64 for every format and
 * R' = K rounded up to 64 (128 for 8-bit formats, 256 for SENINT4); all padding is 0. One 8 KiB run is one XRF tile.
 */
#ifndef SPYREGEN_H
#define SPYREGEN_H

#include "spyrecode.h"
#include "spyreprog.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Layout --------------------------------------------------------------------------------- */

/* Stored rows of a tensor of so many rows: blocks of equal height, at most 128. */
uint64_t spyregen_rows(uint64_t rows);
/* Bytes on the card, multiples of 128. */
uint64_t spyregen_bytes(enum spyre_format fmt, uint64_t rows, uint64_t cols);
uint64_t spyregen_weight_bytes(enum spyre_format fmt, uint64_t k, uint64_t n);

/*
 * Between row-major host fp32 (ld elements from row to row) and the card's layout, converting;
 * padding is written as 0. All floating-point formats. The integer forms take SENINT8 and SENINT4,
 * whose host elements are int8_t (saturating in SENINT4), and IEEE_INT32, where they are int32_t.
 */
void spyregen_pack(void *dst, enum spyre_format fmt, const float *src, uint64_t rows, uint64_t cols,
		   uint64_t ld);
void spyregen_unpack(float *dst, uint64_t ld, const void *src, enum spyre_format fmt, uint64_t rows,
		     uint64_t cols);
void spyregen_pack_weights(void *dst, enum spyre_format fmt, const float *src, uint64_t k,
			   uint64_t n, uint64_t ld);
void spyregen_pack_int(void *dst, enum spyre_format fmt, const void *src, uint64_t rows,
		       uint64_t cols, uint64_t ld);
void spyregen_unpack_int(void *dst, uint64_t ld, const void *src, enum spyre_format fmt,
			 uint64_t rows, uint64_t cols);
/* SENINT8 or SENINT4. */
void spyregen_pack_weights_int(void *dst, enum spyre_format fmt, const int8_t *src, uint64_t k,
			       uint64_t n, uint64_t ld);
/* Rounds host values to what the format can hold, as packing does. */
void spyregen_round(float *v, size_t count, enum spyre_format fmt);

/* --- Generators ----------------------------------------------------------------------------- */

enum spyregen_act {
	SPYREGEN_NONE, SPYREGEN_RELU, SPYREGEN_GELU, SPYREGEN_SIGMOID, SPYREGEN_TANH,
};

#define SPYREGEN_NO_MULTICAST	(1u << 0)	/* each core loads for itself */
#define SPYREGEN_SHARED_A	(1u << 1)	/* one a for the whole batch */
#define SPYREGEN_SHARED_B	(1u << 2)	/* one b for the whole batch */
#define SPYREGEN_TRANSPOSED_A	(1u << 3)	/* a is k x m */
#define SPYREGEN_TRANSPOSED_B	(1u << 4)	/* b is n x k, in sticks */
#define SPYREGEN_STICKS_B	(1u << 5)	/* b is k x n, but in sticks */
#define SPYREGEN_SPLIT_FREE	UINT32_MAX	/* split_k: chosen too */

/*
 * c[m x n] = act(a[m x k] * b[k x n] + bias[n]). Symbols (addresses): 0: a (sticks), 1: b
 * (weights), 2: c (sticks), 3: bias (fp32 vector; int32 for integers), if any. in: SEN169_FP16,
 * IEEE_FP16, BFLOAT16, SEN143_FP8, SEN152_FP8 with out a 16-bit one or IEEE_FP32; or SENINT8 or
 * SENINT4 with act NONE or RELU. Order of arithmetic: one chain of fp32 fused multiply-adds per element,
 * k ascending from 0; then bias, activation, conversion. With k divided there is such a chain for each
 * slice; the slices are added in fp32, ascending, or descending for every other block of 64 columns (the
 * odd ones, when n has an even number of blocks and both corelets work).
 *
 * Integers are summed in int32 modulo 2^32, as is the bias (int32). out IEEE_INT32 has the sums; with
 * SENINT8, SENINT4, a 16-bit format or IEEE_FP32 they become fp32 (nearest even) after the activation, are
 * multiplied by scale (rounded), then converted: to integers nearest even, saturating. The last symbol is
 * memory for the sums then: spyregen_bytes() of m x n in IEEE_INT32, times the batch.
 * With a bias and a batch, shapes that need all of a unit's registers are refused: convert the sums
 * with COPY.
 *
 * Transposed operands and a b in sticks (16-bit formats) are laid out anew first, in memory that the
 * caller gives: symbols behind the others, one for a (spyregen_bytes() of m x k) if it is
 * transposed, one for b (spyregen_weight_bytes()) if it is no weights; times the batch if not
 * shared.
 *
 * A batch is so many products of one shape; a, b and c are its tensors one behind the other, each
 * as long as spyregen_bytes() or spyregen_weight_bytes() says. The bias is the same for all.
 */
struct spyregen_matmul {
	uint32_t m, n, k;
	enum spyre_format in, out;
	bool bias;
	enum spyregen_act act;
	uint32_t cores;		/* mask of cores that may be used, 0: all 32 */
	uint32_t flags;
	/* Work division: cores along m and along n; 0: chosen. */
	uint32_t split_m, split_n;
	/* Slices of k, a divisor of its tiles of 64 (8-bit formats: 128, SENINT4: 256); 0: not divided. */
	uint32_t split_k;
	uint32_t batch;		/* 0: 1 */
	float scale;		/* of sums of integers that do not stay IEEE_INT32; else 0 */
};

/* NULL: err (at least 200 bytes) says why. The caller frees the job. */
struct spyreprog_job *spyregen_matmul(const struct spyregen_matmul *mm, char *err);

enum spyregen_op {
	/* out = f(a) */
	SPYREGEN_COPY, /* converts when formats differ, between any two */
	SPYREGEN_OP_RELU,
	SPYREGEN_OP_GELU,
	SPYREGEN_OP_SIGMOID,
	SPYREGEN_OP_TANH,
	SPYREGEN_EXP,
	SPYREGEN_LN,
	SPYREGEN_SQRT,
	SPYREGEN_RSQRT,
	SPYREGEN_RECIP,
	SPYREGEN_ABS,
	SPYREGEN_NEG,
	SPYREGEN_ERF,
	/* out = f(a, scalar) */
	SPYREGEN_ADDS,
	SPYREGEN_MULS,
	SPYREGEN_MAXS,
	SPYREGEN_MINS,
	/* out = f(a, b) */
	SPYREGEN_ADD,
	SPYREGEN_SUB,
	SPYREGEN_MUL,
	SPYREGEN_MAX,
	SPYREGEN_MIN,
	/* out = scalar */
	SPYREGEN_FILL,
	/* out = f(a, b): 1 or 0 */
	SPYREGEN_CMPEQ,
	SPYREGEN_CMPLT,
	SPYREGEN_CMPLE,
	/* The same on IEEE_INT32, modulo 2^32; shifts by b modulo 32, SHR filling with 0. */
	SPYREGEN_IADD,
	SPYREGEN_ISUB,
	SPYREGEN_IMUL,
	SPYREGEN_IMIN,
	SPYREGEN_IMAX,
	SPYREGEN_AND,
	SPYREGEN_OR,
	SPYREGEN_XOR,
	SPYREGEN_SHL,
	SPYREGEN_SHR,
	SPYREGEN_SRA,
	/* out = f(a): IEEE_INT32 to floating point; the reverse, nearest even, saturating, NaN 0 */
	SPYREGEN_I2F,
	SPYREGEN_F2I,
	SPYREGEN_OPS
};

/* How an operand of a binary operation is stretched to m x n. */
enum spyregen_stretch {
	SPYREGEN_FULL,		/* it is m x n */
	SPYREGEN_ROW,		/* 1 x n, for every row */
	SPYREGEN_COLUMN,	/* m x 1, for every column */
	SPYREGEN_SCALAR,	/* 1 x 1 */
};

/* Operands that op has: 0 to 2. */
unsigned int spyregen_operands(enum spyregen_op op);

/*
 * Elementwise on matrices of one shape and layout, padding included. Symbols: 0: a, 1: b (binary
 * operations only), last: out; FILL has out alone. Formats: 16-bit ones and IEEE_FP32, where the
 * operation does not say IEEE_INT32; COPY takes all. It goes from integers to floating point and back
 * as I2F and F2I do and saturates in narrow integers; padding columns that the operand's layout has
 * not become 0, and others may overflow as any number does. At most 2^35 elements.
 */
struct spyregen_elementwise {
	enum spyregen_op op;
	uint32_t m, n;
	enum spyre_format in, out;	/* of a and b; of the result */
	float scalar;
	uint32_t cores;
	enum spyregen_stretch a, b;
};

struct spyreprog_job *spyregen_elementwise(const struct spyregen_elementwise *ew, char *err);

enum spyregen_rowop {
	SPYREGEN_SOFTMAX,		/* out m x n; padding columns 0 */
	SPYREGEN_SUM, SPYREGEN_ROWMAX, SPYREGEN_MEAN,	/* out m x 1, other columns 0 */
	SPYREGEN_ROWMIN,		/* the same */
	/* The same, IEEE_INT32: number of the first maximum. n at most 2^24; no NaN. */
	SPYREGEN_ARGMAX,
	SPYREGEN_LOG_SOFTMAX,		/* out m x n; padding columns are finite */
	SPYREGEN_LAYER_NORM,		/* (x - mean) / sqrt(variance + eps), the same */
	SPYREGEN_RMS_NORM,		/* x / sqrt(mean of x^2 + eps), the same */
	SPYREGEN_ROWOPS
};

/*
 * Along rows. Symbols: 0: in, 1: out. Formats: 16-bit ones and IEEE_FP32, the same for both but where
 * the operation says another. Sums: fp32, each lane over the column blocks in ascending order, then
 * the lanes pairwise.
 */
struct spyregen_row {
	enum spyregen_rowop op;
	uint32_t m, n;
	enum spyre_format fmt;
	uint32_t cores;
	float eps;
};

struct spyreprog_job *spyregen_row(const struct spyregen_row *row, char *err);

enum spyregen_column_op {
	SPYREGEN_COLUMN_SUM, SPYREGEN_COLUMN_MAX, SPYREGEN_COLUMN_MIN, SPYREGEN_COLUMN_MEAN,
	/* out IEEE_INT32: number of the row of the first maximum. m at most 2^24; no NaN. */
	SPYREGEN_COLUMN_ARGMAX,
};

/*
 * Down columns, out 1 x n. Symbols: 0: in, 1: out, 2: memory of spyregen_column_scratch() bytes, if
 * that is not 0. Formats as along rows. Sums: fp32, rows ascending in parts of 512, then the parts; of
 * more than 1024 parts again 512 at a time. At most 2^35 elements.
 */
struct spyregen_column {
	enum spyregen_column_op op;
	uint32_t m, n;
	enum spyre_format fmt;
	uint32_t cores;
};

struct spyreprog_job *spyregen_column(const struct spyregen_column *col, char *err);
uint64_t spyregen_column_scratch(enum spyregen_column_op op, uint64_t m, uint64_t n);

enum spyregen_relayout_op {
	SPYREGEN_TRANSPOSE,		/* sticks to sticks, cols x rows */
	SPYREGEN_TRANSPOSE_WEIGHTS,	/* sticks to weights, cols x rows */
	SPYREGEN_TO_WEIGHTS,		/* sticks to weights */
	SPYREGEN_TO_ROWS,		/* sticks to rows */
	SPYREGEN_FROM_ROWS,		/* rows to sticks */
};

/*
 * The same tensor, or its transposed, in another layout. Layout "rows": row by row, each padded to
 * whole sticks of 64 elements (two of 32 in 32-bit formats). Symbols: 0: in, 1: out. Formats: 16-bit
 * ones; IEEE_FP32 and IEEE_INT32 too, but not for weights. Numbers stay as they are; any NaN becomes
 * the format's canonical one.
 */
struct spyregen_relayout {
	enum spyregen_relayout_op op;
	uint32_t rows, cols;	/* of the input */
	enum spyre_format fmt;
	uint32_t batch;		/* tensors, one behind the other; 0: 1 */
	uint32_t cores;
};

struct spyreprog_job *spyregen_relayout(const struct spyregen_relayout *r, char *err);
/* Bytes of a tensor in the layout "rows". */
uint64_t spyregen_row_bytes(enum spyre_format fmt, uint64_t rows, uint64_t cols);

/* --- References ----------------------------------------------------------------------------- */

/*
 * What the card computes, in the same order, bit for bit but for act GELU, SIGMOID and TANH (libm's
 * here). a is m x k, b is k x n, bias n or NULL, c m x n, row-major fp32 without padding, a and b
 * values that the input format holds. threads 0: all of the host's.
 */
void spyregen_ref_matmul(const float *a, const float *b, const float *bias, enum spyregen_act act,
			 float *c, uint32_t m, uint32_t n, uint32_t k, unsigned int threads);
void spyregen_ref_matmul_int8(const int8_t *a, const int8_t *b, const int32_t *bias, bool relu,
			      int32_t *c, uint32_t m, uint32_t n, uint32_t k);

#ifdef __cplusplus
}
#endif
#endif
