// SPDX-License-Identifier: MIT
/*
 * Exceptions. Interrupts are never taken (mstatus.MIE is clear), so every trap is a fault of the
 * firmware: it says where, and stops the core. The driver sees IN_ERROR and reads the log.
 */
#include "firmware.h"

#ifndef FW_HOST

void fw_trap(u32 cause, u32 pc, u32 value, u32 ra);

void fw_trap(u32 cause, u32 pc, u32 value, u32 ra)
{
	log_line(LOG_ERROR, "trap %u at %x value %x from %x", cause, pc, value, ra);
	reg_write(MCU_HALT, cause | 0x100);
	for (;;)
		bus_wfi();
}

#endif
