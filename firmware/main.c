// SPDX-License-Identifier: MIT
/*
 * The loop: a bounded amount of each kind of work, then sleep when there is none.
 */
#include "firmware.h"

/* Lowest word of the stack: the linker script puts the stack at the end of private RAM. */
#ifndef FW_HOST
extern u32 fw_stack_end[];
#define STACK_MARK	0x5adc0deu

static void check_stack(void)
{
	if (fw_stack_end[0] != STACK_MARK) {
		log_line(LOG_ERROR, "stack overflow");
		reg_write(MCU_HALT, 1);
	}
}

static void mark_stack(void)
{
	fw_stack_end[0] = STACK_MARK;
}
#else
static void check_stack(void)
{
}
#endif

/* Injected faults, only where the hardware has SPYRE_CAP_FAULT_INJECT. */
static void injected(void)
{
#ifndef FW_HOST
	if (card.crash)
		__builtin_trap();
	while (card.hang)
		compiler_barrier();
#endif
}

int turn(void)
{
	u32 pending;
	u64 now;
	int more = 0;

	reg_write(MCU_TURN, 1);
	pending = reg_read(MCU_IRQ_PENDING);
	now = soc_time();

	if (pending & MCU_IRQ_ENGINE)
		engine_completions();
	if (pending & MCU_IRQ_DOORBELL)
		doorbells();
	if (pending & MCU_IRQ_RAS)
		ras_hardware();
	if (pending & MCU_IRQ_INJECT)
		inject_pending();
	if (pending & MCU_IRQ_MBOX) {
		/* Cleared before the tail is read: a later write interrupts again. */
		reg_write(MCU_IRQ_CLEAR, MCU_IRQ_MBOX);
		mailbox_kick();
	}
	queue_poll();
	timer_turn(now);
	more |= sync_turn(now);
	more |= dispatch_turn(now);
	shutdown_turn();
	more |= mailbox_turn(now);
	health_tick(now);
	usage_turn(now);
	check_stack();
	/* Asked last: whatever ran in this turn may have run dry. */
	more |= queue_any_polled();
	/* After the answer to the command that asked for it. */
	if (mailbox_delivered())
		injected();
	return more;
}

/*
 * No turn left anything to do: sleep. What comes from now on is an enabled interrupt or a timer, and
 * WFI does not sleep while one is pending, so nothing is lost between the last look and here.
 */
void idle(void)
{
	u64 next = min64(timer_next(), sync_next());

	usage_flush();
	next = min64(next, mailbox_hold());
	/* A compute job that only waits for its engine's rest; one in the past wakes at once. */
	if (dispatch_waiting(MCU_ENGINE_COMPUTE) && engine_idle(MCU_ENGINE_COMPUTE) != FW_NONE)
		next = min64(next, engine_hold());
	/* The heartbeat goes on while work is in flight. An idle card is not woken for it. */
	if (engine_any_busy())
		next = min64(next, card.tick_at);
	/* The high half, written last, puts both into force. */
	reg_write64(MCU_MTIMECMP, next);
	bus_wfi();
}

void fw_main(void)
{
#ifndef FW_HOST
	mark_stack();
#endif
	if (boot()) {
		reg_write(MCU_IRQ_ENABLE, 0);
		for (;;)
			bus_wfi();
	}
	for (;;) {
		while (turn())
			;
		idle();
	}
}
