/* SPDX-License-Identifier: MIT */
/*
 * Spyre hardware: PCI identity, BARs, registers, address spaces and translation tables; the management
 * core's own bus is in mcu.h. PCI identity and BAR sizes are public (lspci of a real card, see
 * Documentation/fidelity.rst); every register and table layout here is emulator-defined.
 */
#ifndef SPYRE_HW_H
#define SPYRE_HW_H

#include "base.h"

/* --- PCI (public) --------------------------------------------------------------------------- */

#define SPYRE_PCI_VENDOR		0x1014u	/* IBM */
#define SPYRE_PCI_DEVICE_PF		0x06a7u
#define SPYRE_PCI_DEVICE_VF		0x06a8u	/* reserved for SR-IOV */
#define SPYRE_PCI_REVISION		0x02u
#define SPYRE_PCI_CLASS			0x120000u	/* processing accelerator */
#define SPYRE_PCI_SUBDEVICE		0x06a7u
#define SPYRE_MSI_VECTORS		8u

#define SPYRE_BAR_REGS			0u
#define SPYRE_BAR_APERTURE		2u
#define SPYRE_BAR_DOORBELLS		4u
#define SPYRE_BAR_REGS_SIZE		0x400000ull
#define SPYRE_BAR_APERTURE_SIZE		0x80000000ull	/* default; property aperture= */
#define SPYRE_BAR_DOORBELLS_SIZE	0x2000000ull

/* --- BAR0 map ------------------------------------------------------------------------------- */

/* 0 to 1 MB: what a VF will need. */
#define SPYRE_REGS_PF			0x100000u	/* 1 to 2 MB: physical function only */
#define SPYRE_REGS_DOORBELLS		0x200000u	/* 2 to 4 MB: doorbell pages 0 to 511 */

/*
 * Registers are 32 bits wide and take naturally aligned 32-bit accesses; a pair marked 64 may also
 * be read or written with one 64-bit access. Other widths read as ones and are dropped on write.
 * Unnamed offsets read as zero and ignore writes. RO: writes are ignored. FW: written by firmware.
 */
#define SPYRE_REG_ID			0x0000u	/* RO SPYRE_ID_MAGIC */
#define SPYRE_ID_MAGIC			0x52595053u	/* "SPYR" */
#define SPYRE_REG_HWVER			0x0004u	/* RO major << 16 | minor */
#define SPYRE_HWVER_MAJOR		2u	/* "dd2" (public compute capability) */
#define SPYRE_HWVER_MINOR		0u
#define SPYRE_REG_CAPS			0x0008u	/* RO SPYRE_CAP_* */
#define SPYRE_CAP_SELF_REFRESH		(1u << 0)
#define SPYRE_CAP_FAULT_INJECT		(1u << 1)
#define SPYRE_REG_STATE			0x000cu	/* FW enum spyre_state */
#define SPYRE_REG_RESET_GEN		0x0010u	/* RO counts every loss of card memory */
#define SPYRE_REG_BOOT_STATUS		0x0014u	/* RO enum spyre_boot_status of the boot ROM */
#define SPYRE_REG_BOOT_PROGRESS		0x0018u	/* FW enum spyre_boot_progress */
/*
 * RO. Counts every 100 ms of card time while jobs are in flight or the core is awake, and with every
 * mailbox command. That of an idle card stands still: GET_TELEMETRY moves it if the core is alive.
 */
#define SPYRE_REG_HEARTBEAT		0x001cu
#define SPYRE_REG_FW_ADDR		0x0020u	/* 64 RW card address of the image, in the aperture */
#define SPYRE_REG_FW_LEN		0x0028u	/* RW bytes */
#define SPYRE_REG_MCU_CTRL		0x002cu	/* RW SPYRE_MCU_CTRL_* */
#define SPYRE_MCU_CTRL_RUN		(1u << 0)	/* 0 to 1: boot ROM runs. 1 to 0: stop the core, memory kept */
#define SPYRE_MCU_CTRL_SELF_REFRESH	(1u << 1)	/* keep LPDDR5 over wake-up reset and D3 */
#define SPYRE_REG_MEM_SIZE		0x0030u	/* 64 RO usable LPDDR5 bytes (after ECC) */
#define SPYRE_REG_APERTURE_SIZE		0x0038u	/* 64 RO populated bytes of BAR2 */
#define SPYRE_REG_TIME			0x0040u	/* 64 RO SoC counter; read LO first, it latches HI */
#define SPYRE_REG_TIME_HZ		0x0048u	/* RO SoC counter frequency */
#define SPYRE_REG_CORE_HZ		0x004cu	/* RO core clock */
#define SPYRE_REG_FW_RESERVED		0x0050u	/* RO bytes at the top of memory that are the firmware's */
#define SPYRE_REG_DB_PAGES		0x0054u	/* RO doorbell pages in BAR4 */
#define SPYRE_REG_CORES			0x0058u	/* RO mask of cores that exist and work */
#define SPYRE_REG_FW_VERSION		0x005cu	/* FW protocol major << 16 | minor, 0 until published */

#define SPYRE_REG_MBOX_CMD_BASE		0x0080u	/* 64 RW bus address of the command ring, 128-byte aligned */
#define SPYRE_REG_MBOX_EVT_BASE		0x0088u	/* 64 RW bus address of the event ring, 128-byte aligned */
#define SPYRE_REG_MBOX_CMD_ENTRIES	0x0090u	/* RW power of two, 2 to 1024 */
#define SPYRE_REG_MBOX_EVT_ENTRIES	0x0094u	/* RW power of two, 2 to 1024 */
#define SPYRE_REG_MBOX_CMD_TAIL		0x0098u	/* RW free running; a write interrupts the MCU */
#define SPYRE_REG_MBOX_CMD_HEAD		0x009cu	/* FW free running: commands before it were copied */
#define SPYRE_REG_MBOX_EVT_HEAD		0x00a0u	/* RW free running: events before it were read */
#define SPYRE_REG_MBOX_EVT_TAIL		0x00a4u	/* FW free running */

/*
 * Event rings of the queue vectors 1 to 7, or of vector 0 alone when VEC_COUNT is 1: bus address and
 * entries, kernel-only memory. Set before the first context of the vector is created.
 */
#define SPYRE_REG_VEC_BASE(v)		(0x0100u + 0x10u * (v))	/* 64 RW 64-byte aligned */
#define SPYRE_REG_VEC_ENTRIES(v)	(0x0108u + 0x10u * (v))	/* RW power of two, at least the number of contexts; 0: none */
#define SPYRE_REG_VEC_COUNT		0x0180u	/* RW vectors the driver enabled: 1 or 8 */

#define SPYRE_REG_DB_OVERFLOW		0x0184u	/* RO doorbells that met a full FIFO (none is lost: bitmap) */
#define SPYRE_REG_DB_BAD		0x0188u	/* RO doorbell writes of a bad width or offset */
#define SPYRE_REG_APERTURE_BAD		0x018cu	/* RO accesses beyond the populated aperture */

/*
 * RO. Signs of life of engine e, free running: counts with the end of each job and, while one runs, at
 * least with every 64 KiB that it moves or every millisecond of host time that it computes, and while it
 * waits for the end of its modelled time with every 2^19 cycles of the SoC's counter. One that
 * stands still under a busy engine is hung; one that moves is slow. Engines are numbered as in
 * rb_hmierr_snid and in the order of GET_INFO: all DMI, all DMO, all DMX, compute; zero where none is.
 */
#define SPYRE_REG_ENG_PROGRESS(e)	(0x01c0u + 4u * (e))
#define SPYRE_REG_ENGINES_MAX		16u

/* Physical-function registers. */
#define SPYRE_REG_SERIAL		(SPYRE_REGS_PF + 0x0000u)	/* RO 16 bytes ASCII, NUL padded */
#define SPYRE_REG_TEMP_MC		(SPYRE_REGS_PF + 0x0010u)	/* RO milli-degree Celsius, signed */
#define SPYRE_REG_POWER_MW		(SPYRE_REGS_PF + 0x0014u)	/* RO milliwatt, last interval */
/*
 * Limits. At THROTTLE the clocks are halved until the card is below RESUME; at TRIP everything is
 * cancelled and the card is in error until its next boot. POWER_MAX is what the slot gives and the limit
 * after boot; the limit can be set from POWER_MIN on.
 */
#define SPYRE_TEMP_THROTTLE_MC		95000
#define SPYRE_TEMP_RESUME_MC		90000
#define SPYRE_TEMP_TRIP_MC		105000
#define SPYRE_POWER_MIN_MW		10000u
#define SPYRE_POWER_MAX_MW		75000u	/* public: slot power */

#define SPYRE_REG_LOG_RAM		(SPYRE_REGS_PF + 0x80000u)	/* RO 64 KiB, struct spyre_log; survives a firmware restart */
#define SPYRE_LOG_RAM_SIZE		0x10000u

/* Device state (public: health checker protocol enum). */
enum spyre_state {
	SPYRE_STATE_UNSPECIFIED = 0,
	SPYRE_STATE_OFFLINE = 1,
	SPYRE_STATE_BOOTING = 2,
	SPYRE_STATE_SHUTTING_DOWN = 3,
	SPYRE_STATE_ONLINE = 4,
	SPYRE_STATE_RUNNING_DIAGNOSTICS = 5,
	SPYRE_STATE_IN_ERROR = 6,
	SPYRE_STATE_REMOVED = 7,
};

/* What the boot ROM found. Anything but RUNNING leaves the card OFFLINE with the core stopped. */
enum spyre_boot_status {
	SPYRE_BOOT_IDLE = 0,
	SPYRE_BOOT_RUNNING = 1,		/* image accepted, core released */
	SPYRE_BOOT_BAD_ADDRESS = 2,	/* image outside the aperture or not 128-byte aligned */
	SPYRE_BOOT_BAD_MAGIC = 3,
	SPYRE_BOOT_BAD_HEADER = 4,	/* header size, entry or load address out of range, reserved field set */
	SPYRE_BOOT_BAD_LENGTH = 5,	/* truncated: length register and header disagree */
	SPYRE_BOOT_BAD_DIGEST = 6,
	SPYRE_BOOT_TOO_OLD = 7,		/* image was built for an older hardware major */
	SPYRE_BOOT_TOO_NEW = 8,		/* image was built for a newer hardware major */
	SPYRE_BOOT_BAD_SIGNATURE = 9,	/* key id names a key this card does not hold */
	SPYRE_BOOT_CRASHED = 10,	/* the core trapped twice or ran off its memory */
};

/* --- Doorbells ------------------------------------------------------------------------------ */

/*
 * Page p of BAR4 (4 KiB) belongs to the queue that was created on it. A 32-bit write at offset 0 of
 * the page is a doorbell with the queue's new tail. It only wakes: the tail that counts is the shadow
 * word's, since doorbells of several threads may arrive in any order. All else in the page reads zero and is counted in
 * DB_BAD when written. Blocks of 16 pages (64 KiB) belong to one context.
 */
#define SPYRE_DB_PAGE_SIZE		0x1000u
#define SPYRE_DB_PAGES			8192u
#define SPYRE_DB_BLOCK_PAGES		16u
#define SPYRE_DB_BLOCKS			(SPYRE_DB_PAGES / SPYRE_DB_BLOCK_PAGES)

/* --- Memory and address spaces -------------------------------------------------------------- */

#define SPYRE_FW_MEM_SIZE		0x4000000ull	/* top 64 MB */
#define SPYRE_PAGE_SHIFT		21u		/* device pages: 2 MiB */
#define SPYRE_PAGE_SIZE			(1ull << SPYRE_PAGE_SHIFT)
#define SPYRE_SEGMENTS			8u		/* public */
#define SPYRE_SEGMENT_SHIFT		34u		/* public: 16 GB */
#define SPYRE_SEGMENT_SIZE		(1ull << SPYRE_SEGMENT_SHIFT)
#define SPYRE_PROGRAM_SEGMENT		7u		/* public */
#define SPYRE_PROGRAM_BASE		0x1C00000000ull	/* public */
#define SPYRE_DMVA_SIZE			(SPYRE_SEGMENTS * SPYRE_SEGMENT_SIZE)	/* 128 GB */
#define SPYRE_HOST_SEGMENTS		16u		/* HMVA: 16 times 16 GB */
#define SPYRE_HMVA_SIZE			(SPYRE_HOST_SEGMENTS * SPYRE_SEGMENT_SIZE)	/* 256 GB */
#define SPYRE_SEGMENT_PAGES		(1u << (SPYRE_SEGMENT_SHIFT - SPYRE_PAGE_SHIFT))	/* 8192 */
#define SPYRE_TABLE_SIZE		0x10000u	/* a full segment's page table: 64 KiB */
#define SPYRE_HOST_L2_ENTRIES		512u
#define SPYRE_HOST_L2_SIZE		0x1000u

/*
 * Page-table entries are 64-bit, written by the kernel into card memory with one store and read by
 * the card with one load. Segments 0 to 7 map 2 MiB card pages: address bits 21 to 46 and VALID and
 * WRITE. Host segments map bus addresses: a 2 MiB leaf (LEAF set, bits 21 to 51), or a pointer
 * (LEAF clear) to 512 entries of 4 KiB (bits 12 to 51), which carry LEAF too. WRITE and PRIV count
 * in leaves only.
 */
#define SPYRE_PTE_VALID			(1ull << 0)
#define SPYRE_PTE_WRITE			(1ull << 1)	/* the card may write */
#define SPYRE_PTE_PRIV			(1ull << 2)	/* only the firmware's own accesses, never a control block's */
#define SPYRE_PTE_LEAF			(1ull << 3)	/* host tables only */
#define SPYRE_PTE_ADDR			0x000ffffffffff000ull

/* One segment. Written by the kernel, read by the card at each use. */
struct spyre_segment {
	spyre_le64 table;	/* card address of the page table, 4 KiB aligned, in the driver's table area */
	spyre_le32 pages;	/* 2 MiB pages mapped by the table, 0 to 8192 */
	spyre_le32 flags;	/* 0 */
};
SPYRE_SIZE(struct spyre_segment, 16);
SPYRE_OFFSET(struct spyre_segment, table, 0);
SPYRE_OFFSET(struct spyre_segment, pages, 8);
SPYRE_OFFSET(struct spyre_segment, flags, 12);

/* The address space of one context, 128-byte aligned in card memory. */
struct spyre_context_table {
	struct spyre_segment dmva[SPYRE_SEGMENTS];
	struct spyre_segment hmva[SPYRE_HOST_SEGMENTS];
	spyre_le64 reserved[16];
};
SPYRE_SIZE(struct spyre_context_table, 512);
SPYRE_OFFSET(struct spyre_context_table, dmva, 0);
SPYRE_OFFSET(struct spyre_context_table, hmva, 128);
SPYRE_OFFSET(struct spyre_context_table, reserved, 384);

/* --- Clocks --------------------------------------------------------------------------------- */

#define SPYRE_SOC_HZ			560000000u	/* public */
#define SPYRE_CORE_HZ			1500000000u	/* public planner peak */
#define SPYRE_MCU_HZ			800000000u	/* emulator-defined */

#define SPYRE_CORES			32u		/* public */
#define SPYRE_CORELETS			2u		/* public */
#define SPYRE_LX_SIZE			0x200000u	/* public: 2 MB per core */
#define SPYRE_L0_SIZE			0x2000u		/* public: 8 KB per corelet */
#define SPYRE_XRF_SIZE			0x10000u	/* public: 64 KB per corelet */

#endif
