// SPDX-License-Identifier: MIT
/*
 * RAS records: what failed, under its public code where there is one. Text is made by the reader.
 */
#include "firmware.h"

#define HARDWARE_PER_TURN	8
#define STUCK_PER_RECORD	4u
#define STUCK_RECORDS		16u
#define STUCK_MAX		(SPYRE_CORES * 2 * 16)	/* more units than a job can have */

struct kind {
	u16 code;
	u8 severity, category, action;
};

static const struct kind by_status[] = {
	[SPYRE_ERR_BAD_CB] = { SPYRE_RAS_SOFT_FAIL, SPYRE_SEV_ERROR, SPYRE_CAT_SOFTWARE,
			       SPYRE_ACT_INFORMATION },
	[SPYRE_ERR_FAULT] = { SPYRE_RAS_SOFT_FAIL, SPYRE_SEV_ERROR, SPYRE_CAT_SOFTWARE,
			      SPYRE_ACT_INFORMATION },
	[SPYRE_ERR_BAD_PROGRAM] = { SPYRE_RAS_BAD_PROGRAM, SPYRE_SEV_ERROR, SPYRE_CAT_SOFTWARE,
				    SPYRE_ACT_INFORMATION },
	[SPYRE_ERR_BOOTADDR] = { SPYRE_RAS_BOOTADDR, SPYRE_SEV_ERROR, SPYRE_CAT_SOFTWARE,
				 SPYRE_ACT_INFORMATION },
	[SPYRE_ERR_DEADLOCK] = { SPYRE_RAS_DEADLOCK, SPYRE_SEV_ERROR, SPYRE_CAT_SOFTWARE,
				 SPYRE_ACT_INFORMATION },
	[SPYRE_ERR_WATCHDOG] = { SPYRE_RAS_WATCHDOG, SPYRE_SEV_ERROR, SPYRE_CAT_SOFTWARE,
				 SPYRE_ACT_INFORMATION },
	[SPYRE_ERR_PROGRAM] = { SPYRE_RAS_SOFT_FAIL, SPYRE_SEV_ERROR, SPYRE_CAT_SOFTWARE,
				SPYRE_ACT_INFORMATION },
	[SPYRE_ERR_TIMEOUT] = { SPYRE_RAS_TIMEOUT, SPYRE_SEV_ERROR, SPYRE_CAT_SOFTWARE,
				SPYRE_ACT_RETRY },
	[SPYRE_ERR_LX_LOST] = { SPYRE_RAS_SOFT_FAIL, SPYRE_SEV_WARNING, SPYRE_CAT_SOFTWARE,
				SPYRE_ACT_RETRY },
	[SPYRE_ERR_CORES] = { SPYRE_RAS_CORE_UNAVAILABLE, SPYRE_SEV_ERROR, SPYRE_CAT_HARDWARE,
			      SPYRE_ACT_INFORMATION },
	[SPYRE_ERR_HW] = { SPYRE_RAS_COMPUTE_HW, SPYRE_SEV_ERROR, SPYRE_CAT_HARDWARE,
			   SPYRE_ACT_RETRY },
	[SPYRE_ERR_QUEUE] = { SPYRE_RAS_QUEUE, SPYRE_SEV_ERROR, SPYRE_CAT_SOFTWARE,
			      SPYRE_ACT_INFORMATION },
	[SPYRE_ERR_SYMBOLS] = { SPYRE_RAS_BAD_PROGRAM, SPYRE_SEV_ERROR, SPYRE_CAT_SOFTWARE,
				SPYRE_ACT_INFORMATION },
	[SPYRE_ERR_INTERNAL] = { SPYRE_RAS_FIRMWARE, SPYRE_SEV_ERROR, SPYRE_CAT_FIRMWARE,
				 SPYRE_ACT_RESET },
};

static void start(struct spyre_msg_ras *r, u32 status)
{
	static const struct kind unknown = { SPYRE_RAS_SOFT_FAIL, SPYRE_SEV_ERROR,
					     SPYRE_CAT_SOFTWARE, SPYRE_ACT_INFORMATION };
	const struct kind *k = &unknown;

	if (status < sizeof(by_status) / sizeof(by_status[0]) && by_status[status].code)
		k = &by_status[status];
	memset(r, 0, sizeof(*r));
	r->code = k->code;
	r->severity = k->severity;
	r->category = k->category;
	r->action = k->action;
	r->status = (u16)status;
	r->queue = FW_NONE;
	r->time = soc_time();
	r->err_core = 0xffff;
}

static void send(const struct spyre_msg_ras *r)
{
	event(SPYRE_MSG_EVT_RAS, r, sizeof(*r));
}

/* The compute engine names every stuck unit of a deadlock: four to a record. */
static void send_deadlock(struct spyre_msg_ras *r)
{
	static struct spyre_stuck unit;
	u32 n, sent = 0, records = 0;

	for (n = 0; n < STUCK_MAX; n++) {
		reg_write(MCU_STUCK_POP, mcu_addr(&unit));
		compiler_barrier();
		if (!reg_read(MCU_STUCK_VALID))
			break;
		r->stuck[n % STUCK_PER_RECORD] = unit;
		if (n % STUCK_PER_RECORD == STUCK_PER_RECORD - 1 && records < STUCK_RECORDS) {
			r->err_pc = sent;
			send(r);
			records++;
			sent = n + 1;
			memset(r->stuck, 0, sizeof(r->stuck));
		}
	}
	if ((n > sent || !n) && records < STUCK_RECORDS) {
		r->err_pc = sent;
		send(r);
	}
}

void ras_cb(const struct queue *q, u32 entry, u32 kind, const struct spyre_rb *rb, u64 addr)
{
	struct spyre_msg_ras r;

	start(&r, rb->status);
	r.context = q->context;
	r.queue = q->id;
	r.entry = entry;
	r.cookie = rb->cookie;
	r.addr = rb->rb_hmierr_addr ? rb->rb_hmierr_addr : addr;
	r.syndrome = rb->rb_hmierr_syndrome;
	r.mode = rb->rb_hmierr_mode;
	r.err_code = rb->err_code;
	r.err_pc = rb->err_pc;
	r.err_core = rb->err_core;
	r.err_unit = rb->err_unit;
	r.nstuck = rb->nstuck;
	if (rb->status == SPYRE_ERR_HW && rb->rb_hmierr_syndrome == SPYRE_SYN_ECC)
		r.code = SPYRE_RAS_MEM_UE;
	else if (rb->status == SPYRE_ERR_HW && kind != MCU_ENGINE_COMPUTE)
		r.code = SPYRE_RAS_SOFT_FAIL;	/* the public name of the other is about compute */
	if (rb->status == SPYRE_ERR_PROGRAM && rb->err_code == SPYRE_PE_RACE) {
		/* Address 0 of core 0's LX is one. */
		r.addr = rb->rb_hmierr_addr;
		r.stuck[0] = rb->stuck[0];
	}
	log_line(LOG_WARN, "queue %u context %u entry %x: status %u code %x at %X syndrome %u",
		 q->id, q->context, entry, rb->status, r.code, r.addr, r.syndrome);
	if (rb->status == SPYRE_ERR_DEADLOCK)
		send_deadlock(&r);
	else
		send(&r);
}

void ras_queue(const struct queue *q, u32 entry, u32 status, u64 addr)
{
	struct spyre_msg_ras r;

	start(&r, status);
	r.context = q->context;
	r.queue = q->id;
	r.entry = entry;
	r.addr = addr;
	log_line(LOG_WARN, "queue %u context %u entry %x: queue error at %X", q->id, q->context,
		 entry, addr);
	send(&r);
}

void ras_card(u32 code, u32 severity, u64 addr, u32 arg)
{
	struct spyre_msg_ras r;

	start(&r, SPYRE_OK);
	r.code = code;
	r.severity = (u16)severity;
	r.category = SPYRE_CAT_HARDWARE;
	r.action = severity >= SPYRE_SEV_FATAL ? SPYRE_ACT_RESET : SPYRE_ACT_INFORMATION;
	r.addr = addr;
	r.err_code = arg;
	log_line(severity >= SPYRE_SEV_ERROR ? LOG_ERROR : LOG_WARN,
		 "hardware: code %x at %X argument %u", code, addr, arg);
	send(&r);
}

static u32 severity_of(u32 code)
{
	switch (code) {
	case SPYRE_RAS_MEM_CE:
		return SPYRE_SEV_INFO;
	case SPYRE_RAS_THERMAL:
		return SPYRE_SEV_WARNING;
	default:
		return SPYRE_SEV_ERROR;
	}
}

void ras_hardware(void)
{
	static struct spyre_ras_hw hw;
	u32 i;

	for (i = 0; i < HARDWARE_PER_TURN; i++) {
		reg_write(MCU_RAS_POP, mcu_addr(&hw));
		compiler_barrier();
		if (!reg_read(MCU_RAS_VALID))
			return;
		if (hw.code == SPYRE_RAS_THERMAL)
			health_check();
		else
			ras_card(hw.code, severity_of(hw.code), hw.addr, hw.arg);
	}
}
