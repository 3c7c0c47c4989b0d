// SPDX-License-Identifier: MIT
/* The table. Keys of sources are those of Documentation/timing.rst. */
#include "cases.h"

#define MS	1000.0
#define MIB	(1ull << 20)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The makers' cost model: bytes at 150 GB/s, and 0.00574 ns for each byte of the smaller direction. */
#define MEM_US(rd, wr)	(((double)(rd) + (wr)) / 150e3 + 0.00574e-3 * MIN((double)(rd), (double)(wr)))
#define TENSOR(m, n)	(2.0 * (m) * (n))

/* --- Formula points: memory ------------------------------------------------------------------ */

#define STREAM(id_, rd_, wr_) \
	{ .id = "stream-" id_, .group = "streaming", .source = "COST 2.3 bandwidth, turnaround", .formula = true, \
	  .kind = TIMING_STREAM, .published = MEM_US(32 * (rd_) * MIB, 32 * (wr_) * MIB), .rd = (rd_) * MIB, \
	  .wr = (wr_) * MIB }

/* Of 32 cores' bandwidth; as many bytes a core. */
#define CORES(n_, share_, mib_) \
	{ .id = "cores-" #n_ "-" #mib_ "m", .group = "streaming", .source = "COST 2.3 fewer cores", .formula = true, \
	  .kind = TIMING_STREAM, .published = MEM_US((n_) * (mib_) * MIB, 0) / (share_), .cores = n_, \
	  .rd = (mib_) * MIB }

#define RELU(m_, n_) \
	{ .id = "relu-" #m_ "x" #n_, .group = "streaming", .source = "COST 2.3 bandwidth, turnaround", \
	  .formula = true, .kind = TIMING_ELEMENTWISE, .op = SPYREGEN_OP_RELU, .m = m_, .n = n_, \
	  .published = MEM_US(TENSOR(m_, n_), TENSOR(m_, n_)) }

#define ADD(m_, n_) \
	{ .id = "add-" #m_ "x" #n_, .group = "streaming", .source = "COST 2.3 bandwidth, turnaround", \
	  .formula = true, .kind = TIMING_ELEMENTWISE, .op = SPYREGEN_ADD, .m = m_, .n = n_, \
	  .published = MEM_US(2 * TENSOR(m_, n_), TENSOR(m_, n_)) }

/* Bandwidth a - b log2(columns) - d log2(rows) for an operand that is one number. */
#define SCALAR(m_, n_) \
	{ .id = "adds-" #m_ "x" #n_, .group = "broadcast", .source = "COST 2.3 broadcast surface", \
	  .formula = true, .kind = TIMING_ELEMENTWISE, .op = SPYREGEN_ADDS, .m = m_, .n = n_, \
	  .published = 2 * TENSOR(m_, n_) / \
		       (162.0 - 1.8 * __builtin_log2(n_) - 2.2 * __builtin_log2(m_)) / 1e3 }

#define REDUCE(op_, m_, n_) \
	{ .id = #op_ "-" #m_ "x" #n_, .group = "reduction", .source = "COST 2.3 reduction read", .formula = true, \
	  .kind = TIMING_ROW, .rowop = SPYREGEN_##op_, .m = m_, .n = n_, \
	  .published = TENSOR(m_, n_) / MIN(150.0, 114 + 61 * __builtin_exp(-(m_) / 3700.0)) / 1e3 }

/* The reduction's read rate, which is 150 GB/s for so few rows, by fewer cores. */
#define REDUCE_CORES(n_, share_) \
	{ .id = "SUM-1024x8192-cores-" #n_, .group = "reduction", .source = "COST 2.3 fewer cores", .formula = true, \
	  .kind = TIMING_ROW, .rowop = SPYREGEN_SUM, .m = 1024, .n = 8192, .cores = n_, \
	  .published = TENSOR(1024, 8192) / 150e3 / (share_) }

/* --- Formula points: products ------------------------------------------------------------------ */

#define MATMUL_US(m, k, n) \
	MAX((double)(m) * (k) * (n) / (1140e3 * 32), MEM_US(TENSOR(m, k) + TENSOR(k, n), TENSOR(m, n)))
#define PRODUCT(m_, k_, n_) \
	{ .id = "matmul-" #m_ "x" #k_ "x" #n_, .group = "matmul", .source = "COST 2.3 sustained matmul", \
	  .formula = true, .kind = TIMING_MATMUL, .m = m_, .n = n_, .k = k_, .published = MATMUL_US(m_, k_, n_) }

/* --- Measured ---------------------------------------------------------------------------------- */

/* Wall times of an older stack, with its launch floor. */
#define LAUNCH	(3 * MS)

#define SPLIT(m_, k_, n_, sm_, sn_, ms_) \
	{ .id = "wall-" #m_ "x" #k_ "x" #n_ "-split-" #sm_ "-" #sn_, .group = "matmul", .source = "HMI-BW 2.5 sweep", \
	  .kind = TIMING_MATMUL, .m = m_, .n = n_, .k = k_, .split_m = sm_, .split_n = sn_, \
	  .published = (ms_) * MS, .floor = LAUNCH, .makers = MATMUL_US(m_, k_, n_) }

#define KERNEL(stack_, m_, k_, n_, ms_) \
	{ .id = stack_ "-" #m_ "x" #k_ "x" #n_, .group = "matmul", .source = "MLP-DECODE 2.5 " stack_, \
	  .kind = TIMING_MATMUL, .m = m_, .n = n_, .k = k_, .published = (ms_) * MS, \
	  .makers = MATMUL_US(m_, k_, n_) }

/* Columns by sticks a core; what was measured is the rate of reading the right operand. */
#define OUT_SPLIT(sticks_, gbs_) \
	{ .id = "out-split-" #sticks_, .group = "banks", .source = "HBM-BANK 2.5 out-split", .kind = TIMING_MATMUL, \
	  .m = 128, .k = 4096, .n = 32 * 64 * (sticks_), .split_m = 1, .split_n = 32, \
	  .published = TENSOR(4096, 32 * 64 * (sticks_)) / (gbs_) / 1e3, \
	  .makers = MATMUL_US(128, 4096, 32 * 64 * (sticks_)) }

#define FAN_OUT(n_, ms_) \
	{ .id = "fan-out-" #n_, .group = "fan-out", .source = "PLANNER 2.5 fan-out probe", .kind = TIMING_SHARED, \
	  .cores = n_, .rd = 2 * MIB, .published = (ms_) * MS, .floor = LAUNCH }

#define LX_FAN_OUT(n_, mib_) \
	{ .id = "lx-fan-out-" #n_ "-" #mib_ "m", .group = "ring", .source = "PLANNER 1.3 ring share", .formula = true, \
	  .kind = TIMING_LX_SHARED, .cores = n_, .rd = (mib_) * MIB, .published = 11.5e-6 * (mib_) * MIB * (n_) }

/*
 * One core, one image, at 1.1 GHz: bytes and times agree with what one core gets of the memory, and the
 * trace's ideal cycles are one core's. Activations are 56 x 56 pixels of 64 or 256 channels.
 */
#define TRACE(id_, us_) \
	.id = "trace-" id_, .group = "trace", .source = "ATA 2.1", .published = us_, .cores = 1, .core_hz = 1100000000
#define PIXELS	(56 * 56)
/* Bytes at one core's share of the bandwidth. */
#define ONE_CORE(channels_) .makers = TENSOR(PIXELS, channels_) / 150e3 / 0.11

const struct timing_case timing_cases[] = {
	STREAM("read-1m", 1, 0), STREAM("read-4m", 4, 0), STREAM("read-16m", 16, 0), STREAM("read-64m", 64, 0),
	STREAM("write-1m", 0, 1), STREAM("write-4m", 0, 4), STREAM("write-16m", 0, 16), STREAM("write-64m", 0, 64),
	STREAM("both-1m", 1, 1), STREAM("both-4m", 4, 4), STREAM("both-16m", 16, 16), STREAM("both-64m", 64, 64),
	STREAM("read-2m-write-1m", 2, 1), STREAM("read-8m-write-4m", 8, 4), STREAM("read-32m-write-8m", 32, 8),
	STREAM("read-1m-write-2m", 1, 2), STREAM("read-4m-write-8m", 4, 8), STREAM("read-4m-write-16m", 4, 16),
	STREAM("read-24m-write-8m", 24, 8), STREAM("read-8m-write-24m", 8, 24),

	CORES(1, 0.11, 2), CORES(1, 0.11, 16), CORES(4, 0.43, 2), CORES(4, 0.43, 16), CORES(16, 0.54, 2),
	CORES(16, 0.54, 16), CORES(32, 1, 2), CORES(32, 1, 32),

	RELU(2048, 2048), RELU(4096, 2048), RELU(4096, 4096), RELU(8192, 4096), RELU(8192, 8192), RELU(1024, 16384),
	ADD(2048, 2048), ADD(4096, 2048), ADD(4096, 4096), ADD(8192, 4096), ADD(8192, 8192), ADD(1024, 16384),

	SCALAR(1024, 1024), SCALAR(1024, 4096), SCALAR(2048, 2048), SCALAR(4096, 1024), SCALAR(4096, 4096),
	SCALAR(8192, 2048), SCALAR(8192, 8192), SCALAR(16384, 1024),

	REDUCE(SUM, 512, 4096), REDUCE(SUM, 1024, 4096), REDUCE(SUM, 2048, 4096), REDUCE(SUM, 4096, 4096),
	REDUCE(SUM, 8192, 2048), REDUCE(SUM, 16384, 1024), REDUCE(ROWMAX, 1024, 2048), REDUCE(ROWMAX, 4096, 2048),
	REDUCE(ROWMAX, 8192, 1024), REDUCE(MEAN, 2048, 2048), REDUCE(MEAN, 4096, 1024), REDUCE(MEAN, 16384, 2048),
	REDUCE_CORES(1, 0.11), REDUCE_CORES(4, 0.43), REDUCE_CORES(16, 0.54), REDUCE_CORES(32, 1),

	PRODUCT(1024, 1024, 1024), PRODUCT(2048, 2048, 2048), PRODUCT(4096, 4096, 4096), PRODUCT(1024, 4096, 4096),
	PRODUCT(4096, 1024, 4096), PRODUCT(4096, 4096, 1024), PRODUCT(2048, 4096, 8192), PRODUCT(8192, 2048, 2048),
	PRODUCT(2048, 8192, 2048), PRODUCT(512, 4096, 4096), PRODUCT(256, 4096, 4096), PRODUCT(128, 8192, 8192),
	PRODUCT(64, 2048, 8192),
	/* Eight tiles of rows, one after the other. */
	{ .id = "matmul-4096x2048x1024-tiles-8", .group = "matmul", .source = "COST 2.3 worked example", .formula = true,
	  .kind = TIMING_MATMUL, .m = 512, .k = 2048, .n = 1024, .times = 8, .published = 423.1 },

	SPLIT(128, 8192, 8192, 32, 1, 6.52), SPLIT(128, 8192, 8192, 1, 32, 4.03), SPLIT(128, 8192, 8192, 2, 16, 3.98),
	SPLIT(128, 8192, 8192, 8, 4, 4.04), SPLIT(128, 8192, 8192, 16, 2, 4.56),
	SPLIT(128, 4096, 4096, 32, 1, 3.90), SPLIT(128, 4096, 4096, 1, 32, 3.24), SPLIT(128, 4096, 4096, 8, 4, 3.30),
	SPLIT(128, 4096, 4096, 2, 16, 3.31),
	SPLIT(128, 32768, 8192, 1, 32, 7.37), SPLIT(128, 32768, 8192, 2, 16, 6.83), SPLIT(128, 32768, 8192, 4, 8, 6.99),
	SPLIT(128, 32768, 8192, 8, 4, 6.91), SPLIT(128, 32768, 8192, 16, 2, 8.70),

	KERNEL("sendnn", 512, 4096, 12800, 0.96), KERNEL("sendnn", 1, 4096, 16384, 0.94),
	KERNEL("sendnn", 64, 4096, 16384, 0.99), KERNEL("sendnn", 512, 4096, 16384, 1.18),
	KERNEL("torch-spyre", 1, 4096, 16384, 0.95), KERNEL("torch-spyre", 64, 4096, 16384, 0.99),

	OUT_SPLIT(5, 117), OUT_SPLIT(6, 73), OUT_SPLIT(7, 67), OUT_SPLIT(8, 124), OUT_SPLIT(9, 117), OUT_SPLIT(10, 124),
	OUT_SPLIT(11, 118), OUT_SPLIT(12, 71), OUT_SPLIT(13, 120), OUT_SPLIT(14, 72), OUT_SPLIT(15, 123),
	OUT_SPLIT(16, 118),

	FAN_OUT(8, 3.194), FAN_OUT(16, 3.603), FAN_OUT(32, 3.944),
	LX_FAN_OUT(2, 1), LX_FAN_OUT(4, 1), LX_FAN_OUT(8, 1), LX_FAN_OUT(8, 4), LX_FAN_OUT(16, 4), LX_FAN_OUT(31, 2),

	{ TRACE("add", 281.040), .kind = TIMING_ELEMENTWISE, .op = SPYREGEN_ADD, .m = PIXELS, .n = 256, ONE_CORE(3 * 256) },
	{ TRACE("add_1", 280.967), .kind = TIMING_ELEMENTWISE, .op = SPYREGEN_ADD, .m = PIXELS, .n = 256, ONE_CORE(3 * 256) },
	{ TRACE("relu_3", 176.116), .kind = TIMING_ELEMENTWISE, .op = SPYREGEN_OP_RELU, .m = PIXELS, .n = 256, ONE_CORE(2 * 256) },
	{ TRACE("relu_6", 178.960), .kind = TIMING_ELEMENTWISE, .op = SPYREGEN_OP_RELU, .m = PIXELS, .n = 256, ONE_CORE(2 * 256) },
	/* Convolutions of one pixel are products. */
	{ TRACE("convolution_1", 35.664), .kind = TIMING_MATMUL, .m = PIXELS, .k = 64, .n = 64, ONE_CORE(64 + 64) },
	{ TRACE("convolution_3", 107.552), .kind = TIMING_MATMUL, .m = PIXELS, .k = 64, .n = 256, ONE_CORE(64 + 256) },
	{ TRACE("convolution_4", 109.544), .kind = TIMING_MATMUL, .m = PIXELS, .k = 64, .n = 256, ONE_CORE(64 + 256) },
	{ TRACE("convolution_7", 110.266), .kind = TIMING_MATMUL, .m = PIXELS, .k = 64, .n = 256, ONE_CORE(64 + 256) },
	/* 2048 channels are 32 sticks; the pool is over 7 x 7 of each. */
	{ TRACE("mean", 2.064), .kind = TIMING_LX_MEAN, .m = 49, .n = 32 },
	{ TRACE("view", 0.470), .kind = TIMING_LX_COPY, .m = 32 },
};

const size_t timing_ncases = sizeof(timing_cases) / sizeof(timing_cases[0]);
