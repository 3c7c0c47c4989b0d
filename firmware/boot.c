// SPDX-License-Identifier: MIT
/*
 * From reset to ONLINE. Progress codes say how far it came; each test is bounded by card time.
 */
#include "firmware.h"

struct card card;
struct fw_mem fw_mem __attribute__((section(".fwmem")));

#define TEST_TIMEOUT	(1000ull * FW_MS)

void set_state(u32 state)
{
	card.state = state;
	reg_write(MCU_STATE, state);
	log_line(LOG_INFO, "state %u", state);
	event_id(SPYRE_MSG_EVT_STATE, 0, state);
}

/* The hardware answers from metadata; the deadline is for one that does not answer at all. */
u32 test_memory(void)
{
	u64 deadline = soc_time() + TEST_TIMEOUT;
	u32 result;

	reg_write(MCU_MEM_TEST, 1);
	do {
		result = reg_read(MCU_MEM_TEST);
	} while (!result && soc_time() < deadline);
	return result;
}

u32 test_cores(void)
{
	reg_write(MCU_CORE_TEST, reg_read(MCU_CORES));
	return reg_read(MCU_CORE_TEST);
}

static int fail(u32 step, const char *what)
{
	log_line(LOG_ERROR, "boot: %s", what);
	reg_write(MCU_BOOT_PROGRESS, SPYRE_PROGRESS_FAILED | step);
	card.state = SPYRE_STATE_IN_ERROR;
	reg_write(MCU_STATE, SPYRE_STATE_IN_ERROR);
	return -1;
}

static void missing_cores(u32 present)
{
	u32 core;

	for (core = 0; core < SPYRE_CORES; core++)
		if (!(card.cores >> core & 1))
			ras_card(SPYRE_RAS_CORE_UNAVAILABLE, SPYRE_SEV_WARNING, 0, core);
	if (card.cores != present)
		log_line(LOG_WARN, "boot: cores %x passed of %x", card.cores, present);
}

int boot(void)
{
	memset(&card, 0, sizeof(card));
	/* First of all: it is the unit of every time below. */
	card.soc_khz = reg_read(MCU_SOC_HZ) / 1000;
	card.power_limit = SPYRE_POWER_MAX_MW;
	log_init();
	log_line(LOG_INFO, "firmware " FW_VERSION ", protocol %u.%u", SPYRE_PROTO_MAJOR,
		 SPYRE_PROTO_MINOR);
	reg_write(MCU_BOOT_PROGRESS, SPYRE_PROGRESS_ENTRY);
	reg_write(MCU_STATE, SPYRE_STATE_BOOTING);
	card.state = SPYRE_STATE_BOOTING;
	card.can_inject = (host_reg(SPYRE_REG_CAPS) & SPYRE_CAP_FAULT_INJECT) != 0;
	card.core_khz = host_reg(SPYRE_REG_CORE_HZ) / 1000;
	card.long_job = (u64)((1u << 31) / card.soc_khz) * card.core_khz;

	reg_write(MCU_BOOT_PROGRESS, SPYRE_PROGRESS_MEMORY_TEST);
	if (test_memory() != 1)
		return fail(SPYRE_PROGRESS_MEMORY_TEST, "memory test failed");
	reg_write(MCU_BOOT_PROGRESS, SPYRE_PROGRESS_CORE_TEST);
	card.cores = test_cores();
	if (!card.cores)
		return fail(SPYRE_PROGRESS_CORE_TEST, "no core passed its test");

	reg_write(MCU_BOOT_PROGRESS, SPYRE_PROGRESS_MAILBOX);
	timer_init();
	usage_init();
	interrupt_init();
	context_init();
	queue_init();
	batch_init();
	dispatch_init();
	engine_init();
	sync_init();
	command_init();
	mailbox_init();
	missing_cores(reg_read(MCU_CORES));
	reg_write(MCU_IRQ_ENABLE, MCU_IRQ_DOORBELL | MCU_IRQ_MBOX | MCU_IRQ_ENGINE | MCU_IRQ_RAS |
		  MCU_IRQ_INJECT);

	/* Version and progress before ONLINE: a driver that sees ONLINE may read both. */
	reg_write(MCU_FW_VERSION, SPYRE_PROTO_MAJOR << 16 | SPYRE_PROTO_MINOR);
	reg_write(MCU_BOOT_PROGRESS, SPYRE_PROGRESS_ONLINE);
	heartbeat();
	set_state(SPYRE_STATE_ONLINE);
	reg_write(MCU_RAISE, 0);
	return 0;
}
