/* SPDX-License-Identifier: MIT */
/*
 * What the card's DMA and its surroundings cost, in card time. The cores' own timing is the SoC's.
 * "public" is said in Documentation/fidelity.rst; the rest is emulator-defined.
 */
#ifndef SPYRE_MODEL_TIMING_H
#define SPYRE_MODEL_TIMING_H

/*
 * PCIe Gen5 x16: 63.02 GB/s on the link (public). Payload of 512 bytes (public MPS) with 24 bytes of TLP
 * and DLLP framing leaves 60.2 GB/s.
 */
#define TIME_PCIE_BYTES_S	60200000000ull

/* LPDDR5: 204.8 GB/s nameplate, 150 GB/s reached one way, 105 GB/s reads and writes balanced (all public). */
#define TIME_MEM_BYTES_S	150000000000ull
#define TIME_MEM_MIXED_BYTES_S	105000000000ull

/* SoC cycles from the start of a DMA job to its first byte: descriptor decode and one round trip. */
#define TIME_DMI_SETUP		560u	/* 1 us: a read goes to the host and back */
#define TIME_DMO_SETUP		280u	/* writes are posted */
#define TIME_DMX_SETUP		140u
#define TIME_DMA_DESC		28u	/* each further descriptor of a list */
#define TIME_DMA_LIST		560u	/* a list is fetched from the host first */

/* SoC cycles around a compute job: prepare (TS2 to TS3), and TS4 to TS5, which is 6 in the public trace. */
#define TIME_PREPARE		560u
#define TIME_COMPUTE_TAIL	6u
/* Execute time is multiplied by this while the card throttles. */
#define TIME_THROTTLE		2u

/*
 * Power. Idle is what the public trace shows (10.8 W and more). A multiply-add costs what makes the public
 * peak of 98.3 TFLOPS fit into the public 75 W; the interface energies are typical of their kind.
 */
#define POWER_IDLE_W		11.0
#define ENERGY_MAC_PJ		1.1
#define ENERGY_MEM_BYTE_PJ	32.0
#define ENERGY_PCIE_BYTE_PJ	40.0

/* Thermal RC: 42 C at idle is the public sample line. */
#define THERMAL_AMBIENT_C	32.0
#define THERMAL_K_PER_W		0.9
#define THERMAL_TAU_S		8.0

#endif
