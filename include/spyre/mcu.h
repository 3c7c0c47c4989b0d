/* SPDX-License-Identifier: MIT */
/*
 * The management core's own bus: what firmware sees. RV32IMC with Zicsr, machine mode only, all
 * emulator-defined. Shared by firmware and model; the driver never includes it.
 *
 * The core starts at the image's entry with sp undefined, mtvec 0, interrupts off.
 * Traps: mcause 11 (machine external, MEIP: any enabled MCU_IRQ bit) and 7 (machine timer, MTIP).
 * mcycle counts the core's clock in card time (SPYRE_MCU_HZ unless the card says otherwise), time is MTIME,
 * minstret counts instructions.
 * WFI sleeps until an enabled bit of mie is pending, whatever mstatus.MIE says.
 */
#ifndef SPYRE_MCU_H
#define SPYRE_MCU_H

#include "hw.h"

#define SPYRE_MCU_RAM_BASE	0x10000000u
#define SPYRE_MCU_RAM_SIZE	0x00080000u	/* 512 KB */
#define SPYRE_MCU_MMIO_BASE	0x20000000u
#define SPYRE_MCU_MMIO_SIZE	0x00010000u
#define SPYRE_MCU_LOG_BASE	0x28000000u	/* 64 KiB log RAM, host sees it read-only */
#define SPYRE_MCU_FWMEM_BASE	0x30000000u	/* window on the top 64 MB of card memory */
#define SPYRE_MCU_FWMEM_SIZE	0x04000000u

/* MMIO offsets; 32-bit accesses only. Pairs marked 64 take LO at the offset and HI at +4. */

/* Time. MTIME is the SoC counter; MTIMECMP raises MTIP when MTIME >= MTIMECMP (64-bit, write HI last). */
#define MCU_MTIME		0x0000u	/* 64 RO, LO latches HI */
#define MCU_MTIMECMP		0x0008u	/* 64 RW; all ones: off */
#define MCU_SOC_HZ		0x0010u	/* RO */
#define MCU_HEARTBEAT		0x0014u	/* WO any value: host-visible HEARTBEAT register + 1 */
/* RO nanoseconds of host time, free running 32 bit: only for how long to poll before sleeping, never for card time. */
#define MCU_POLL_NS		0x0018u
/* WO any value: a turn of the firmware's loop begins. The card counts turns, and the most instructions of one. */
#define MCU_TURN		0x001cu

/* Interrupt controller: pending is level, cleared by serving its cause (MBOX: write 1). */
#define MCU_IRQ_PENDING		0x0020u	/* RO */
#define MCU_IRQ_ENABLE		0x0024u	/* RW */
#define MCU_IRQ_DOORBELL	(1u << 0)	/* doorbell FIFO not empty or overflow bitmap not empty */
#define MCU_IRQ_MBOX		(1u << 1)	/* host wrote MBOX_CMD_TAIL or MBOX_EVT_HEAD; write 1 to MCU_IRQ_CLEAR */
#define MCU_IRQ_ENGINE		(1u << 2)	/* completion FIFO not empty */
#define MCU_IRQ_RAS		(1u << 3)	/* hardware error FIFO not empty */
#define MCU_IRQ_INJECT		(1u << 4)	/* fault FIFO not empty */
#define MCU_IRQ_CLEAR		0x0028u	/* WO write-1-to-clear for MBOX */

/* Doorbell FIFO: 1024 entries; on overflow the page's bit is set in a bitmap instead, tails come from shadow memory then. */
#define MCU_DB_POP		0x0030u	/* RO pops: page | 1 << 31, or 0 when empty; DB_VALUE then holds the tail */
#define MCU_DB_VALUE		0x0034u	/* RO tail of the entry popped last */
#define MCU_DB_OVERFLOW_POP	0x0038u	/* RO pops one page from the bitmap: page | 1 << 31, or 0 */

/* Host-visible function registers that firmware writes. */
#define MCU_STATE		0x0040u	/* RW BAR0 STATE */
#define MCU_BOOT_PROGRESS	0x0044u	/* RW */
#define MCU_FW_VERSION		0x0048u	/* RW */
#define MCU_CMD_HEAD		0x004cu	/* RW */
#define MCU_EVT_TAIL		0x0050u	/* RW */
#define MCU_HOST_REG		0x0054u	/* WO BAR0 function-register offset to read (32-bit), value in MCU_HOST_REG_VALUE */
#define MCU_HOST_REG_VALUE	0x0058u	/* RO */
#define MCU_RAISE		0x005cu	/* WO vector number: raise that MSI */
#define MCU_MEM_TEST		0x0060u	/* WO 1: hardware memory test; RO result: 0 running, 1 pass, 2 fail */
#define MCU_CORE_TEST		0x0064u	/* WO core mask: test them; RO mask that passed */
#define MCU_CORES		0x0068u	/* RO mask of cores that exist */
#define MCU_HALT		0x006cu	/* WO code: stop the core for good (fatal); BOOT_STATUS = CRASHED, STATE = IN_ERROR */
#define MCU_CONSOLE		0x0070u	/* WO a character for the model's log (debugging) */
#define MCU_ENGINES		0x0074u	/* RO number of engines, see MCU_ENG_KIND */

/*
 * Context registers: tell translation where a context's spyre_context_table is. Write CTX_TABLE
 * (64, 0: none) and then CTX_SELECT with context | SET. INVALIDATE: bump the context's epoch and
 * wait until every worker has passed a checkpoint (bounded by the workers' 1 ms rule).
 */
#define MCU_CTX_TABLE		0x0080u	/* 64 WO card address, 128-byte aligned */
#define MCU_CTX_SELECT		0x0088u	/* WO context | command */
#define MCU_CTX_SET		(1u << 16)
#define MCU_CTX_INVALIDATE	(1u << 17)
#define MCU_CTX_ABORT		(1u << 18)	/* cancel every job of the context on any engine; they complete with CANCELLED */
#define MCU_CTX_STATUS		0x008cu	/* RO 0: last command done, 1: bad context or table */
#define MCU_CONTEXTS		256u

/*
 * Copy unit: one copy of up to 4 KiB between MCU memory (private RAM or the firmware memory window)
 * and an address in a space. Synchronous: when the write to COPY_GO returns, it is done. Loads by
 * the core after it see the data. Also single acquire loads and release stores of 4 or 8 bytes.
 * Any `fence` instruction is a full barrier on host memory too.
 */
#define MCU_COPY_ADDR		0x00a0u	/* 64 WO address in the space */
#define MCU_COPY_LOCAL		0x00a8u	/* WO MCU address */
#define MCU_COPY_LEN		0x00acu	/* WO bytes, 1 to 4096 */
#define MCU_COPY_GO		0x00b0u	/* WO space | direction | context << 16 */
#define MCU_COPY_STATUS		0x00b4u	/* RO enum spyre_syndrome of the last command, 0: good */
#define MCU_COPY_FAULT		0x00b8u	/* 64 RO first bad address */
#define MCU_SPACE_BUS		0u	/* raw bus address: kernel-owned memory only */
#define MCU_SPACE_HMVA		1u	/* context's host address with a user's rights */
#define MCU_SPACE_HMVA_PRIV	2u	/* context's host address, PRIV pages too */
#define MCU_SPACE_DMVA		3u	/* context's device address */
#define MCU_SPACE_CARD		4u	/* card physical address (below the firmware's 64 MB) */
#define MCU_COPY_IN		(0u << 8)	/* space to MCU */
#define MCU_COPY_OUT		(1u << 8)	/* MCU to space */
/* Word unit, same ADDR; DATA holds the value. Naturally aligned. */
#define MCU_WORD_DATA		0x00c0u	/* 64 RW */
#define MCU_WORD_GO		0x00c8u	/* WO space | op | context << 16, result in COPY_STATUS */
#define MCU_WORD_LOAD32		(0u << 8)	/* acquire */
#define MCU_WORD_LOAD64		(1u << 8)
#define MCU_WORD_STORE32	(2u << 8)	/* release */
#define MCU_WORD_STORE64	(3u << 8)
#define MCU_WORD_ADD64		(4u << 8)	/* DMVA or CARD only; atomic on the card */
#define MCU_WORD_PROBE64	(5u << 8)	/* as STORE64, every check made and nothing stored: what a store would answer */

/*
 * Engines. Start one by writing the address of a struct mcu_job (in private RAM or the window) to
 * ENG_START(e); the model copies it. One job at a time per engine: starting a busy engine sets
 * ENG_STATUS to BUSY and does nothing. Completions go to a FIFO, popped by COMPL_POP as a copy of
 * struct mcu_completion to the address written.
 */
#define MCU_ENG_KIND(e)		(0x0200u + 0x10u * (e))	/* RO enum mcu_engine_kind */
#define MCU_ENG_START(e)	(0x0204u + 0x10u * (e))	/* WO address of struct mcu_job */
#define MCU_ENG_STATUS(e)	(0x0208u + 0x10u * (e))	/* 0 idle, 1 busy; write 1: cancel its job, which completes with CANCELLED */
#define MCU_ENG_PROGRESS(e)	(0x020cu + 0x10u * (e))	/* RO free running: checkpoints of its jobs; BAR0 ENG_PROGRESS */
#define MCU_ENG_MAX		SPYRE_REG_ENGINES_MAX
#define MCU_COMPL_POP		0x0300u	/* WO MCU address to copy the completion to; COMPL_VALID says if there was one */
#define MCU_COMPL_VALID		0x0304u	/* RO 1: the last pop gave an entry */
/* Stuck units of the last deadlock on the compute engine: pops a struct spyre_stuck (cb.h) the same way, STUCK_VALID. */
#define MCU_STUCK_POP		0x0310u
#define MCU_STUCK_VALID		0x0314u
/* Hardware errors outside jobs: pops a struct spyre_ras_hw (fw.h) the same way. */
#define MCU_RAS_POP		0x0308u
#define MCU_RAS_VALID		0x030cu
/*
 * Faults of the firmware that somebody injects from outside, past the driver: SPYRE_MSG_INJECT without a
 * message. INJECT_POP is RO and pops: enum spyre_inject (fw.h) | 1 << 31, or 0 when there is none;
 * INJECT_ARG then holds its argument. One that was injected before a mailbox command counts for it.
 */
#define MCU_INJECT_POP		0x0320u
#define MCU_INJECT_ARG		0x0324u

enum mcu_engine_kind {
	MCU_ENGINE_NONE = 0,
	MCU_ENGINE_DMI = 1,
	MCU_ENGINE_DMO = 2,
	MCU_ENGINE_DMX = 3,	/* card to card, fills, peers */
	MCU_ENGINE_COMPUTE = 4,
};

struct mcu_job {
	uint32_t context;
	uint32_t tag;		/* firmware's own, comes back in the completion */
	uint8_t cb[128];	/* struct spyre_cb as copied and checked by firmware */
	/*
	 * Copies and fills may be moved in parts, between which others have the engine. Each part is checked as
	 * a whole job is, its list read again.
	 */
	uint32_t at;		/* sticks moved by the parts before this one: .next of the last one; 0: none */
	uint32_t part;		/* this one ends after so many more, 0: it is the last */
	uint64_t since;		/* with .at: .end of the part before it */
};
SPYRE_SIZE(struct mcu_job, 152);
SPYRE_OFFSET(struct mcu_job, context, 0);
SPYRE_OFFSET(struct mcu_job, tag, 4);
SPYRE_OFFSET(struct mcu_job, cb, 8);
SPYRE_OFFSET(struct mcu_job, at, 136);
SPYRE_OFFSET(struct mcu_job, part, 140);
SPYRE_OFFSET(struct mcu_job, since, 144);

struct mcu_completion {
	uint32_t engine;
	uint32_t tag;
	uint8_t rb[128];	/* struct spyre_rb: status, timestamps, power word, error fields filled by the model */
	uint32_t next;		/* 0: the job is over; else so many of its sticks were moved, this part's among them */
	uint32_t reserved;
	uint64_t end;		/* SoC counter at its end, TS5 */
};
SPYRE_SIZE(struct mcu_completion, 152);
SPYRE_OFFSET(struct mcu_completion, engine, 0);
SPYRE_OFFSET(struct mcu_completion, tag, 4);
SPYRE_OFFSET(struct mcu_completion, rb, 8);
SPYRE_OFFSET(struct mcu_completion, next, 136);
SPYRE_OFFSET(struct mcu_completion, reserved, 140);
SPYRE_OFFSET(struct mcu_completion, end, 144);

/* Sensors and activity, per card, free running; the model derives power and temperature from them. */
#define MCU_TEMP_MC		0x0400u	/* RO milli-degree Celsius */
#define MCU_POWER_MW		0x0404u	/* RO */
#define MCU_ENERGY		0x0408u	/* 64 RO accumulated 12 V, 1/512 per count (public power word) */
#define MCU_BUSY(e)		(0x0440u + 8u * (e))	/* 64 RO modelled SoC cycles engine e was busy */
#define MCU_BYTES(e)		(0x0500u + 8u * (e))	/* 64 RO bytes engine e moved (LPDDR5 bytes for compute) */
#define MCU_MEM_RD_BYTES	0x0600u	/* 64 RO */
#define MCU_MEM_WR_BYTES	0x0608u	/* 64 RO */
#define MCU_ECC_CE		0x0610u	/* RO corrected errors */
#define MCU_ECC_UE		0x0614u	/* RO uncorrected errors */

#endif
