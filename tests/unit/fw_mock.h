/* SPDX-License-Identifier: MIT */
/*
 * A bus for the firmware compiled into the test: registers, host memory, doorbells and engines that do
 * what the test says, in one thread and with a clock of its own. Every space shows the same memory:
 * address MOCK_BASE is mock.mem[0]; all else faults.
 */
#ifndef FW_MOCK_H
#define FW_MOCK_H

#include "firmware.h"

#define MOCK_BASE	0x100000ull
#define MOCK_SIZE	0x800000u
#define MOCK_ENGINES	6u	/* DMI, DMI, DMO, DMO, DMX, COMPUTE */
#define MOCK_TRACE	4096u

/* What the firmware did to memory and interrupts, in order. */
struct mock_store {
	u64 addr;	/* ~0: MCU_RAISE */
	u32 len;
	u64 value;	/* of words */
};

struct mock {
	u8 mem[MOCK_SIZE];
	u64 readonly, readonly_end;	/* stores there are refused */
	u32 host_reg[0x200 / 4];
	u32 reg[0x400 / 4];		/* STATE to FW_VERSION as written */
	u64 time, timecmp;
	u32 poll_ns;
	u32 irq;			/* MBOX and STOP */
	u32 cores, cores_good, memory_result;
	u32 soc_hz;
	u32 temperature, power;
	u32 doorbell[64], doorbells;
	u32 overflow;			/* page + 1 in the overflow bitmap */
	u32 raised[8];
	u32 heartbeats;
	u32 sleeps;
	struct {
		u32 kind;
		int busy, cancelled;
		u32 progress;
		struct mcu_job job __attribute__((aligned(8)));
	} engine[MOCK_ENGINES];
	struct mcu_completion done[64];
	u32 done_put, done_got;
	struct spyre_stuck stuck[256];
	u32 stuck_put, stuck_got;
	struct { u32 id, arg; } inject[8];	/* faults from outside */
	u32 inject_put, inject_got;
	struct mock_store trace[MOCK_TRACE];
	u32 traced;
	u32 ctx_abort[256], ctx_invalidate[256];
	u32 fences;
};

extern struct mock mock;

/* Power-on: everything forgotten, mailbox rings set up, firmware booted. The result of boot(). */
int mock_boot(void);
/* Turns of the loop until there is nothing to do. */
void mock_run(void);
/* One message each way. */
u32 mock_send(u32 type, const void *body, u32 length);
/* The answer to a tag: status, or -1 when there is none yet. */
int mock_answer(u32 tag, struct spyre_msg *out);
int mock_call(u32 type, const void *body, u32 length);
/* Number of events of a type so far, the last one in *out. */
u32 mock_events(u32 type, struct spyre_msg *out);
/* Ends the job of engine e; the response block says status and as many SoC cycles. */
void mock_finish(u32 e, u32 status, u32 cycles);
/* The same of a part of a copy that ran from card time begin to end; next: where the next part begins, 0: none. */
void mock_finish_part(u32 e, u32 begin, u32 end, u32 next);
void mock_doorbell(u32 page, u32 value);
void *mock_at(u64 addr);

#endif
