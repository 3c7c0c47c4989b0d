/* SPDX-License-Identifier: MIT */
/*
 * Firmware image, mailbox and RAS records. Header field names of messages (MessageAppId, MessageTag,
 * MessageType, VfId) and the RAS fields, codes and names are public; the rest is emulator-defined.
 */
#ifndef SPYRE_FW_H
#define SPYRE_FW_H

#include "cb.h"

/* --- Image ---------------------------------------------------------------------------------- */

#define SPYRE_FW_MAGIC		0x57465053u	/* "SPFW" */
#define SPYRE_FW_HEADER_SIZE	256u
#define SPYRE_PROTO_MAJOR	1u
#define SPYRE_PROTO_MINOR	1u	/* 1: kernel queues, GET_ENGINES */

/* Followed by .image_size bytes, copied to .load_addr of private RAM. Header and body are digested. */
struct spyre_fw_header {
	spyre_le32 magic;
	spyre_le32 header_size;		/* SPYRE_FW_HEADER_SIZE */
	spyre_le32 image_size;		/* bytes after the header, multiple of 4 */
	spyre_le32 load_addr;		/* MCU address in private RAM, multiple of 4 */
	spyre_le32 entry;		/* MCU address inside the loaded image, even */
	spyre_le32 hw_major;		/* SPYRE_HWVER_MAJOR it was built for */
	spyre_le32 proto_major;
	spyre_le32 proto_minor;
	uint8_t version[32];		/* text, NUL padded */
	spyre_le32 key_id;		/* 0: not signed */
	spyre_le32 security_version;
	spyre_le64 reserved[5];		/* 0 */
	uint8_t signature[64];		/* Ed25519, reserved, 0 */
	uint8_t reserved1[16];		/* 0 */
	uint8_t digest[32];		/* SHA-256 of header (this field as zeros) and body */
	uint8_t reserved2[32];		/* 0 */
};
SPYRE_SIZE(struct spyre_fw_header, 256);
SPYRE_OFFSET(struct spyre_fw_header, magic, 0);
SPYRE_OFFSET(struct spyre_fw_header, header_size, 4);
SPYRE_OFFSET(struct spyre_fw_header, image_size, 8);
SPYRE_OFFSET(struct spyre_fw_header, load_addr, 12);
SPYRE_OFFSET(struct spyre_fw_header, entry, 16);
SPYRE_OFFSET(struct spyre_fw_header, hw_major, 20);
SPYRE_OFFSET(struct spyre_fw_header, proto_major, 24);
SPYRE_OFFSET(struct spyre_fw_header, proto_minor, 28);
SPYRE_OFFSET(struct spyre_fw_header, version, 32);
SPYRE_OFFSET(struct spyre_fw_header, key_id, 64);
SPYRE_OFFSET(struct spyre_fw_header, security_version, 68);
SPYRE_OFFSET(struct spyre_fw_header, reserved, 72);
SPYRE_OFFSET(struct spyre_fw_header, signature, 112);
SPYRE_OFFSET(struct spyre_fw_header, reserved1, 176);
SPYRE_OFFSET(struct spyre_fw_header, digest, 192);
SPYRE_OFFSET(struct spyre_fw_header, reserved2, 224);

enum spyre_boot_progress {
	SPYRE_PROGRESS_NONE = 0,
	SPYRE_PROGRESS_ENTRY = 1,
	SPYRE_PROGRESS_MEMORY_TEST = 2,
	SPYRE_PROGRESS_CORE_TEST = 3,
	SPYRE_PROGRESS_MAILBOX = 4,
	SPYRE_PROGRESS_ONLINE = 5,
	SPYRE_PROGRESS_FAILED = 0x100,	/* or-ed with the step that failed */
};

/* Log ring in log RAM: text lines, each ended by a newline, at .head modulo .size. */
#define SPYRE_LOG_MAGIC		0x474c5053u	/* "SPLG" */
struct spyre_log {
	spyre_le32 magic;
	spyre_le32 size;	/* bytes of text space behind this header */
	spyre_le32 head;	/* free running: bytes ever written */
	spyre_le32 level;	/* lines above it are not written */
};
SPYRE_SIZE(struct spyre_log, 16);
SPYRE_OFFSET(struct spyre_log, magic, 0);
SPYRE_OFFSET(struct spyre_log, size, 4);
SPYRE_OFFSET(struct spyre_log, head, 8);
SPYRE_OFFSET(struct spyre_log, level, 12);

/* --- Mailbox -------------------------------------------------------------------------------- */

/*
 * Commands: the driver fills slot (tail mod entries) and writes MBOX_CMD_TAIL. Events, answers among
 * them, come in the event ring; .seq is written last and is the event's index + 1. The driver writes
 * MBOX_EVT_HEAD after reading. Answers are type SPYRE_MSG_RESPONSE with the command's tag. An unknown
 * command is answered with SPYRE_MSG_ERR_TYPE. Vector 0 is raised after one or more events.
 */
#define SPYRE_MSG_BODY		104u
struct spyre_msg {
	spyre_le16 MessageAppId;	/* SPYRE_APP_DRIVER or SPYRE_APP_FW */
	spyre_le16 MessageType;		/* enum spyre_msg_type */
	spyre_le32 MessageTag;		/* command's own, returned in its answer */
	spyre_le16 VfId;		/* 0: physical function */
	spyre_le16 status;		/* answers: enum spyre_msg_status */
	spyre_le32 length;		/* bytes of body used */
	union {
		uint8_t body[SPYRE_MSG_BODY];
		spyre_le64 align;
	};
	spyre_le32 reserved;
	spyre_le32 seq;			/* events only; written last: index + 1 */
};
SPYRE_SIZE(struct spyre_msg, 128);
SPYRE_OFFSET(struct spyre_msg, MessageAppId, 0);
SPYRE_OFFSET(struct spyre_msg, MessageType, 2);
SPYRE_OFFSET(struct spyre_msg, MessageTag, 4);
SPYRE_OFFSET(struct spyre_msg, VfId, 8);
SPYRE_OFFSET(struct spyre_msg, status, 10);
SPYRE_OFFSET(struct spyre_msg, length, 12);
SPYRE_OFFSET(struct spyre_msg, body, 16);
SPYRE_OFFSET(struct spyre_msg, reserved, 120);
SPYRE_OFFSET(struct spyre_msg, seq, 124);

#define SPYRE_APP_DRIVER	1u
#define SPYRE_APP_FW		2u

enum spyre_msg_type {
	/* Commands. Body in, answer out. */
	SPYRE_MSG_GET_INFO = 1,		/* - / spyre_msg_info */
	SPYRE_MSG_CTX_CREATE = 2,	/* spyre_msg_ctx / - */
	SPYRE_MSG_CTX_DESTROY = 3,	/* spyre_msg_id: all its queues must be gone */
	SPYRE_MSG_CTX_TABLES = 4,	/* spyre_msg_ctx: set table again */
	SPYRE_MSG_CTX_INVALIDATE = 5,	/* spyre_msg_id: answered when no worker uses old translations */
	SPYRE_MSG_QUEUE_CREATE = 6,	/* spyre_msg_queue / - */
	SPYRE_MSG_QUEUE_DESTROY = 7,	/* spyre_msg_id: answered when the card touches none of its memory any more */
	SPYRE_MSG_QUEUE_SUSPEND = 8,	/* spyre_msg_id: stop fetching; answered when nothing is in flight */
	SPYRE_MSG_QUEUE_RESUME = 9,	/* spyre_msg_id */
	SPYRE_MSG_QUEUE_RESET = 10,	/* spyre_msg_id: cancel what is fetched, skip to the shadow tail, clear error */
	SPYRE_MSG_QUEUE_PRIORITY = 11,	/* spyre_msg_id with .arg */
	SPYRE_MSG_GET_TELEMETRY = 12,	/* - / spyre_msg_telemetry */
	/*
	 * spyre_msg_id .arg: 0 memory, answered with .arg 1 pass or 2 fail; 1 cores, answered with .arg the mask
	 * that passed. ERR_BUSY unless every queue that there is, the driver's own too, has been suspended
	 * (QUEUE_SUSPEND was answered), and after a thermal trip. Memory keeps what it holds.
	 */
	SPYRE_MSG_DIAG = 13,
	SPYRE_MSG_SET_LIMIT = 14,	/* spyre_msg_id .id 0 power limit mW, .arg value */
	SPYRE_MSG_SET_LOG_LEVEL = 15,	/* spyre_msg_id .arg 0 error to 3 debug */
	SPYRE_MSG_TIME_SYNC = 16,	/* spyre_msg_time / spyre_msg_time */
	SPYRE_MSG_DUMP_STATE = 17,	/* spyre_msg_id: queue summary to the log ring */
	SPYRE_MSG_INJECT = 18,		/* spyre_msg_id .id fault, .arg argument; only with CAP_FAULT_INJECT */
	SPYRE_MSG_SHUTDOWN = 19,	/* - : stop everything, state OFFLINE after the answer */
	SPYRE_MSG_CTX_RESET = 20,	/* spyre_msg_id: abort its jobs, its queues go to ERROR(CANCELLED) */
	SPYRE_MSG_GET_ENGINES = 21,	/* - / spyre_msg_engines */
	/* Events. */
	SPYRE_MSG_RESPONSE = 0x100,
	SPYRE_MSG_EVT_STATE = 0x101,	/* spyre_msg_id .arg new state */
	SPYRE_MSG_EVT_RAS = 0x102,	/* spyre_msg_ras */
	SPYRE_MSG_EVT_QUEUE_ERROR = 0x103,	/* spyre_msg_id queue, .arg status */
	SPYRE_MSG_EVT_LOG = 0x104,	/* spyre_msg_id .arg bytes waiting */
	/*
	 * spyre_msg_id .id 1 throttle on (too hot, or over the power limit), 2 off, 3 trip; .arg the temperature
	 * then, milli-degree Celsius, signed. A trip comes with a RAS record THERMAL.
	 */
	SPYRE_MSG_EVT_THERMAL = 0x105,
};

/* .id of SPYRE_MSG_INJECT: faults of the firmware itself. Faults of the hardware are the model's. */
enum spyre_inject {
	SPYRE_INJECT_CRASH = 0,		/* illegal instruction after the answer */
	SPYRE_INJECT_HANG = 1,		/* loops for ever after the answer, without a heartbeat */
	SPYRE_INJECT_SLOW = 2,		/* the next command is answered .arg milliseconds late, up to SLOW_MAX_MS */
	SPYRE_INJECT_LOST_RB = 3,	/* the next .arg response blocks are not written */
	SPYRE_INJECT_LOST_EVENT = 4,	/* the next .arg queue interrupts are not raised; the vector ring entry is written */
	SPYRE_INJECT_ODD_STATUS = 5,	/* the next command is not carried out and is answered with status .arg, not 0 */
};

#define SPYRE_INJECT_SLOW_MAX_MS	60000u

enum spyre_msg_status {
	SPYRE_MSG_OK = 0,
	SPYRE_MSG_ERR_TYPE = 1,		/* public name: UnsupportedMessageType */
	SPYRE_MSG_ERR_LENGTH = 2,
	SPYRE_MSG_ERR_ID = 3,		/* no such, or already such, context or queue */
	SPYRE_MSG_ERR_ARG = 4,
	SPYRE_MSG_ERR_BUSY = 5,
	SPYRE_MSG_ERR_LIMIT = 6,
	SPYRE_MSG_ERR_FAULT = 7,	/* memory named by the message is not reachable */
};

struct spyre_msg_id {
	spyre_le32 id;
	spyre_le32 arg;
};
SPYRE_SIZE(struct spyre_msg_id, 8);
SPYRE_OFFSET(struct spyre_msg_id, id, 0);
SPYRE_OFFSET(struct spyre_msg_id, arg, 4);

struct spyre_msg_info {
	spyre_le32 proto;		/* major << 16 | minor */
	spyre_le32 contexts;		/* ids 1 to contexts - 1; 0 is never used */
	spyre_le32 queues;
	spyre_le32 engines[5];		/* by enum mcu_engine_kind */
	spyre_le32 cores;		/* mask of cores that passed the test */
	spyre_le32 ring_min;
	spyre_le32 ring_max;
	spyre_le32 symbols;
	spyre_le32 power_limit_mw;
	spyre_le32 reserved;
	uint8_t version[32];
};
SPYRE_SIZE(struct spyre_msg_info, 88);
SPYRE_OFFSET(struct spyre_msg_info, proto, 0);
SPYRE_OFFSET(struct spyre_msg_info, contexts, 4);
SPYRE_OFFSET(struct spyre_msg_info, queues, 8);
SPYRE_OFFSET(struct spyre_msg_info, engines, 12);
SPYRE_OFFSET(struct spyre_msg_info, cores, 32);
SPYRE_OFFSET(struct spyre_msg_info, ring_min, 36);
SPYRE_OFFSET(struct spyre_msg_info, ring_max, 40);
SPYRE_OFFSET(struct spyre_msg_info, symbols, 44);
SPYRE_OFFSET(struct spyre_msg_info, power_limit_mw, 48);
SPYRE_OFFSET(struct spyre_msg_info, reserved, 52);
SPYRE_OFFSET(struct spyre_msg_info, version, 56);

struct spyre_msg_ctx {
	spyre_le32 id;		/* chosen by the driver, 1 to contexts - 1 */
	spyre_le32 vector;	/* event-ring vector of its queues, 1 to 7, or 0 with one vector */
	spyre_le64 table;	/* card address of its spyre_context_table */
	spyre_le64 arm;		/* bus address of its spyre_arm */
	spyre_le64 usage;	/* bus address of its spyre_usage */
};
SPYRE_SIZE(struct spyre_msg_ctx, 32);
SPYRE_OFFSET(struct spyre_msg_ctx, id, 0);
SPYRE_OFFSET(struct spyre_msg_ctx, vector, 4);
SPYRE_OFFSET(struct spyre_msg_ctx, table, 8);
SPYRE_OFFSET(struct spyre_msg_ctx, arm, 16);
SPYRE_OFFSET(struct spyre_msg_ctx, usage, 24);

struct spyre_msg_queue {
	spyre_le32 id;		/* = its doorbell page, 0 to DB_PAGES - 1 */
	spyre_le32 context;
	spyre_le32 entries;	/* power of two, RING_MIN to RING_MAX */
	spyre_le32 priority;	/* 0 to 3, or SPYRE_QUEUE_KERNEL */
	spyre_le64 ring;	/* HMVA, 4 KiB aligned, entries * 128 bytes */
	spyre_le64 response;	/* HMVA (PRIV or not), entries * 128 bytes; 0: none */
	spyre_le64 shadow;	/* HMVA of a spyre_shadow, 64-byte aligned */
	spyre_le64 status;	/* HMVA (PRIV) of a spyre_queue_status, 64-byte aligned */
	spyre_le64 timeout;	/* default CB timeout, SoC cycles; 0: none */
	spyre_le32 start;	/* first index: fetched = done = start */
	spyre_le32 generation;	/* put into the status page */
};
SPYRE_SIZE(struct spyre_msg_queue, 64);
SPYRE_OFFSET(struct spyre_msg_queue, id, 0);
SPYRE_OFFSET(struct spyre_msg_queue, context, 4);
SPYRE_OFFSET(struct spyre_msg_queue, entries, 8);
SPYRE_OFFSET(struct spyre_msg_queue, priority, 12);
SPYRE_OFFSET(struct spyre_msg_queue, ring, 16);
SPYRE_OFFSET(struct spyre_msg_queue, response, 24);
SPYRE_OFFSET(struct spyre_msg_queue, shadow, 32);
SPYRE_OFFSET(struct spyre_msg_queue, status, 40);
SPYRE_OFFSET(struct spyre_msg_queue, timeout, 48);
SPYRE_OFFSET(struct spyre_msg_queue, start, 56);
SPYRE_OFFSET(struct spyre_msg_queue, generation, 60);

/*
 * .priority of a kernel queue, whose submitters others wait for in the kernel: it is in no class, and core
 * and engines serve those that wait at least every other turn, one after the other.
 */
#define SPYRE_QUEUE_KERNEL	(1u << 31)

/* Who holds each engine, numbered as in ENG_PROGRESS: context | number of the job << 8; 0: idle. */
struct spyre_msg_engines {
	spyre_le32 job[SPYRE_REG_ENGINES_MAX];
};
SPYRE_SIZE(struct spyre_msg_engines, 64);
SPYRE_OFFSET(struct spyre_msg_engines, job, 0);

struct spyre_msg_telemetry {
	spyre_le32 temp_mc;
	spyre_le32 power_mw;
	spyre_le64 energy;
	spyre_le64 busy[5];	/* by enum mcu_engine_kind, summed over its engines */
	spyre_le64 mem_rd;
	spyre_le64 mem_wr;
	spyre_le32 ecc_ce;
	spyre_le32 ecc_ue;
	spyre_le32 heartbeat;
	spyre_le32 throttled;	/* 1: too hot or over the power limit */
	spyre_le32 progress[4];	/* ENG_PROGRESS by enum mcu_engine_kind from DMI on, summed over its engines */
};
SPYRE_SIZE(struct spyre_msg_telemetry, SPYRE_MSG_BODY);
SPYRE_OFFSET(struct spyre_msg_telemetry, temp_mc, 0);
SPYRE_OFFSET(struct spyre_msg_telemetry, power_mw, 4);
SPYRE_OFFSET(struct spyre_msg_telemetry, energy, 8);
SPYRE_OFFSET(struct spyre_msg_telemetry, busy, 16);
SPYRE_OFFSET(struct spyre_msg_telemetry, mem_rd, 56);
SPYRE_OFFSET(struct spyre_msg_telemetry, mem_wr, 64);
SPYRE_OFFSET(struct spyre_msg_telemetry, ecc_ce, 72);
SPYRE_OFFSET(struct spyre_msg_telemetry, ecc_ue, 76);
SPYRE_OFFSET(struct spyre_msg_telemetry, heartbeat, 80);
SPYRE_OFFSET(struct spyre_msg_telemetry, throttled, 84);
SPYRE_OFFSET(struct spyre_msg_telemetry, progress, 88);

struct spyre_msg_time {
	spyre_le64 host_ns;	/* CLOCK_MONOTONIC when sent */
	spyre_le64 soc;		/* answer: SoC counter when handled */
};
SPYRE_SIZE(struct spyre_msg_time, 16);
SPYRE_OFFSET(struct spyre_msg_time, host_ns, 0);
SPYRE_OFFSET(struct spyre_msg_time, soc, 8);

/* --- RAS ------------------------------------------------------------------------------------ */

/* Codes that are public carry their public value; those of ours start at 0xe000. */
enum spyre_ras_code {
	SPYRE_RAS_SOFT_FAIL = 0x1274,		/* RAS::CBRB::ControlBlockSoftFail */
	SPYRE_RAS_UNSUPPORTED_MSG = 0x1d8c,	/* RAS::VFMSG::UnsupportedMessageType */
	SPYRE_RAS_COMPUTE_HW = 0x7b1b,		/* RAS::RUNTIMESCHEDULER::ComputeHardwareError */
	SPYRE_RAS_BOOTADDR = 0xd715,		/* RAS::CBRB::InvalidBootstrapAddress */
	SPYRE_RAS_MSG_TIMEOUT = 0xd9ec,		/* message response exceeded the expected time */
	SPYRE_RAS_BAD_PROGRAM = 0xe001,
	SPYRE_RAS_DEADLOCK = 0xe002,
	SPYRE_RAS_WATCHDOG = 0xe003,
	SPYRE_RAS_QUEUE = 0xe004,
	SPYRE_RAS_MEM_CE = 0xe005,
	SPYRE_RAS_MEM_UE = 0xe006,
	SPYRE_RAS_CORE_UNAVAILABLE = 0xe007,
	SPYRE_RAS_THERMAL = 0xe008,
	SPYRE_RAS_TIMEOUT = 0xe009,
	SPYRE_RAS_FIRMWARE = 0xe00a,
};

enum spyre_ras_severity { SPYRE_SEV_INFO = 0, SPYRE_SEV_WARNING = 1, SPYRE_SEV_ERROR = 2, SPYRE_SEV_FATAL = 3 };
enum spyre_ras_category { SPYRE_CAT_HARDWARE = 0, SPYRE_CAT_SOFTWARE = 1, SPYRE_CAT_FIRMWARE = 2 };
enum spyre_ras_action { SPYRE_ACT_INFORMATION = 0, SPYRE_ACT_RETRY = 1, SPYRE_ACT_RESET = 2, SPYRE_ACT_REPLACE = 3 };

/* One record, as sent in EVT_RAS; text (name, step, message) is made by the reader from the code. */
struct spyre_msg_ras {
	spyre_le32 code;
	spyre_le16 severity;
	spyre_le16 category;
	spyre_le16 action;
	spyre_le16 status;	/* enum spyre_status of the CB, if one */
	spyre_le32 context;	/* 0: the card's own */
	spyre_le32 queue;	/* 0xffffffff: none */
	spyre_le32 entry;
	spyre_le64 time;	/* SoC counter */
	spyre_le64 cookie;
	spyre_le64 addr;	/* rb_hmierr_addr, bootstrap address or, in the card's own, as spyre_ras_hw.addr */
	spyre_le32 syndrome;
	spyre_le32 mode;
	/*
	 * Of a job as in its response block. In the card's own: spyre_ras_hw.arg; the core (CORE_UNAVAILABLE), the
	 * temperature in milli-degree Celsius, signed (THERMAL), or the message type (UNSUPPORTED_MSG).
	 */
	spyre_le32 err_code;
	spyre_le32 err_pc;
	spyre_le16 err_core;
	spyre_le16 err_unit;
	/*
	 * DEADLOCK: a job with more than four stuck units sends one record for every four of them, up to
	 * 16 records; nstuck is the total, err_pc the number of the first one in this record. A race: see isa.h.
	 */
	spyre_le32 nstuck;
	struct spyre_stuck stuck[4];
};
SPYRE_SIZE(struct spyre_msg_ras, 104);
SPYRE_OFFSET(struct spyre_msg_ras, code, 0);
SPYRE_OFFSET(struct spyre_msg_ras, severity, 4);
SPYRE_OFFSET(struct spyre_msg_ras, category, 6);
SPYRE_OFFSET(struct spyre_msg_ras, action, 8);
SPYRE_OFFSET(struct spyre_msg_ras, status, 10);
SPYRE_OFFSET(struct spyre_msg_ras, context, 12);
SPYRE_OFFSET(struct spyre_msg_ras, queue, 16);
SPYRE_OFFSET(struct spyre_msg_ras, entry, 20);
SPYRE_OFFSET(struct spyre_msg_ras, time, 24);
SPYRE_OFFSET(struct spyre_msg_ras, cookie, 32);
SPYRE_OFFSET(struct spyre_msg_ras, addr, 40);
SPYRE_OFFSET(struct spyre_msg_ras, syndrome, 48);
SPYRE_OFFSET(struct spyre_msg_ras, mode, 52);
SPYRE_OFFSET(struct spyre_msg_ras, err_code, 56);
SPYRE_OFFSET(struct spyre_msg_ras, err_pc, 60);
SPYRE_OFFSET(struct spyre_msg_ras, err_core, 64);
SPYRE_OFFSET(struct spyre_msg_ras, err_unit, 66);
SPYRE_OFFSET(struct spyre_msg_ras, nstuck, 68);
SPYRE_OFFSET(struct spyre_msg_ras, stuck, 72);

/* What the model puts into the hardware error FIFO (MCU_RAS_POP). */
struct spyre_ras_hw {
	uint32_t code;		/* enum spyre_ras_code */
	/* MEM_CE, MEM_UE: errors of the kind so far. THERMAL: as .id of EVT_THERMAL. FIRMWARE: code of the crash. */
	uint32_t arg;
	/* MEM_*: card address. THERMAL: milli-degree Celsius. FIRMWARE: program counter. */
	uint64_t addr;
};
SPYRE_SIZE(struct spyre_ras_hw, 16);
SPYRE_OFFSET(struct spyre_ras_hw, code, 0);
SPYRE_OFFSET(struct spyre_ras_hw, arg, 4);
SPYRE_OFFSET(struct spyre_ras_hw, addr, 8);

#endif
