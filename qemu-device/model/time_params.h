/* SPDX-License-Identifier: MIT */
/*
 * Every number that modelled time depends on: the cores (time.c), the card's DMA and its surroundings. Each
 * has its source, by the keys of Documentation/timing.rst; or is "fitted", with the group of published cases
 * it was fitted to (never those held out); or is "ours": the card's own choice, with no published case.
 */
#ifndef SPYRE_MODEL_TIME_PARAMS_H
#define SPYRE_MODEL_TIME_PARAMS_H

/* --- Rates -------------------------------------------------------------------------------------- */

/* FIFO links and SFP ring, a word a cycle. STAGE18, deeptools sysconfig. */
#define TIME_LINK_HZ		1100000000ull

/* LPDDR5 as the ring sees it, one direction. COST 2.3. Nameplate: 204.8 GB/s. */
#define TIME_HMI_BYTES_S	150000000000ull
/* Each of the two HMI ports serves half of the cores. COST 2.3: 16 of 32 cores get 0.54 of the bandwidth. */
#define TIME_PORT_BYTES_S	81000000000ull
/* Switching between reading and writing, for each byte of the smaller side. COST 2.3: 0.00574 ns. */
#define TIME_TURN_FS_BYTE	5740ull

/* --- Bursts ------------------------------------------------------------------------------------- */

/* Bursts in flight for each core, loads and stores together. STAGE18 ("LDM capped at 4 per core"). */
#define TIME_BURSTS_IN_FLIGHT	4u
/*
 * From a burst's service by the HMI to its place being free again: loads, COST 2.3 (one core gets 0.11 of the
 * bandwidth); stores, fitted with trace (add and relu on one core).
 */
#define TIME_LOAD_NS		950ull
#define TIME_STORE_NS		770ull
/* Multicasts in flight for each core. PLANNER 1.3: 67 GB/s from memory. */
#define TIME_MULTICASTS_IN_FLIGHT 16u
/*
 * What a core's MNI takes from the ring: 32 of the 128 bytes of each ring cycle (1.3 GHz, STAGE18), fitted with
 * matmul (splits along m, where every core takes much of the right operand). What it gives: fitted with ring.
 */
#define TIME_MNI_IN_BYTES_S	41600000000ull
#define TIME_MNI_OUT_BYTES_S	89000000000ull
/* Last word of a store to another core's LX until it is seen there. Ours. */
#define TIME_STC_CYCLES		40u

/* --- Units, in core cycles ---------------------------------------------------------------------- */

#define TIME_JOB_NS		430u	/* start and end of a job on the cores. Fitted with trace */
#define TIME_LINK_CYCLES	4u	/* a word's way through a FIFO. Ours */
#define TIME_LX_CYCLES		8u	/* LX or L0 read to FIFO. Ours */
/*
 * A word of activations goes through a tile in so many beats (ATA: 512 multiply-adds a cycle); a beat is a core
 * cycle, or what its operands need, whichever is longer. Fitted with matmul (COST 2.3: 1140 a ns and core).
 */
#define TIME_MM_BEATS		8u
#define TIME_PT_BEAT_HZ		1180000000ull
#define TIME_TAG_CYCLES		2u	/* send to seen, own core. Ours */
#define TIME_TAG_FAR_CYCLES	40u	/* the same over the ring. Ours */
#define TIME_SPECIAL_CYCLES	4u	/* exp and the like against an add. KTIR latency.py */
#define TIME_REDUCE_CYCLES	6u	/* steps of the tree over 64 lanes. Ours */
#define TIME_RANK_CYCLES	64u	/* each lane against all, one a cycle. Ours */

/* --- DMA and control blocks, in SoC cycles unless said -------------------------------------------- */

/*
 * PCIe Gen5 x16: 63.02 GB/s on the link (OP). Payload of 512 bytes (HC: MPS) with 24 bytes of TLP and DLLP
 * framing leaves 60.2 GB/s.
 */
#define TIME_PCIE_BYTES_S	60200000000ull
/* Memory under DMA: as the cores see it, and reads and writes balanced. COST 2.3. */
#define TIME_MEM_BYTES_S	TIME_HMI_BYTES_S
#define TIME_MEM_MIXED_BYTES_S	105000000000ull

/* From the start of a DMA job to its first byte: descriptor decode and one round trip. Ours. */
#define TIME_DMI_SETUP		560u	/* 1 us: a read goes to the host and back */
#define TIME_DMO_SETUP		280u	/* writes are posted */
#define TIME_DMX_SETUP		140u
#define TIME_DMA_DESC		28u	/* each further descriptor of a list */
#define TIME_DMA_LIST		560u	/* a list is fetched from the host first */

#define TIME_PREPARE		560u	/* TS2 to TS3 of a compute job. Ours */
#define TIME_COMPUTE_TAIL	6u	/* TS4 to TS5. ATA */
/* Execute time is multiplied by this while the card throttles. Ours. */
#define TIME_THROTTLE		2u

/* --- Power and heat ------------------------------------------------------------------------------- */

/*
 * Idle is what the public trace shows (ATA: 10.8 W and more). A multiply-add costs what makes the planner's
 * peak of 98.3 TFLOPS (TS-code) fit into 75 W (HC); the interface energies are typical of their kind.
 */
#define POWER_IDLE_W		11.0
#define ENERGY_MAC_PJ		1.1
#define ENERGY_MEM_BYTE_PJ	32.0
#define ENERGY_PCIE_BYTE_PJ	40.0

/* Thermal RC: 42 C at idle is SPI's sample line. */
#define THERMAL_AMBIENT_C	32.0
#define THERMAL_K_PER_W		0.9
#define THERMAL_TAU_S		8.0

#endif
