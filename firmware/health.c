// SPDX-License-Identifier: MIT
/*
 * Heartbeat, temperature and power.
 *
 * The heartbeat register counts while the core is awake or has work in flight (every FW_TICK) and
 * with every mailbox command. An idle card sleeps and does not count: a driver that wants to know
 * whether it is alive sends GET_TELEMETRY and gets an answer, and finds the register moved.
 *
 * Too hot, the hardware slows its clocks by itself, and the firmware tells the driver. Over the power
 * limit the firmware spaces compute jobs: the engine rests as long as the last job took, which halves
 * its duty. At SPYRE_TEMP_TRIP_MC everything is cancelled and the card stays IN_ERROR until its next boot.
 */
#include "firmware.h"

void heartbeat(void)
{
	card.heartbeat++;
	reg_write(MCU_HEARTBEAT, 1);
}

static void trip(int temperature)
{
	card.tripped = 1;
	event_id(SPYRE_MSG_EVT_THERMAL, 3, (u32)temperature);
	ras_card(SPYRE_RAS_THERMAL, SPYRE_SEV_FATAL, 0, (u32)temperature);
	context_stop_all(SPYRE_ERR_HW);
	set_state(SPYRE_STATE_IN_ERROR);
}

void health_check(void)
{
	int temperature = (int)reg_read(MCU_TEMP_MC);
	u32 power = reg_read(MCU_POWER_MW);

	if (card.tripped || card.stopped)
		return;
	card.over_power = power > card.power_limit;
	if (temperature >= SPYRE_TEMP_TRIP_MC) {
		trip(temperature);
	} else if (!card.throttled && (temperature >= SPYRE_TEMP_THROTTLE_MC || card.over_power)) {
		card.throttled = 1;
		event_id(SPYRE_MSG_EVT_THERMAL, 1, (u32)temperature);
		log_line(LOG_WARN, "throttled at %u mC, %u mW", (u32)temperature, power);
	} else if (card.throttled && temperature < SPYRE_TEMP_RESUME_MC && !card.over_power) {
		card.throttled = 0;
		event_id(SPYRE_MSG_EVT_THERMAL, 2, (u32)temperature);
		log_line(LOG_INFO, "throttle ended at %u mC, %u mW", (u32)temperature, power);
	}
}

void health_tick(u64 now)
{
	u32 bytes;

	if (now < card.tick_at)
		return;
	card.tick_at = now + FW_TICK;
	heartbeat();
	health_check();
	engine_held(now);
	bytes = log_news();
	if (bytes)
		event_id(SPYRE_MSG_EVT_LOG, 0, bytes);
}

void telemetry(struct spyre_msg_telemetry *t)
{
	u32 e, kind, n = reg_read(MCU_ENGINES);

	memset(t, 0, sizeof(*t));
	t->temp_mc = reg_read(MCU_TEMP_MC);
	t->power_mw = reg_read(MCU_POWER_MW);
	t->energy = reg_read64(MCU_ENERGY);
	for (e = 0; e < n && e < MCU_ENG_MAX; e++) {
		kind = reg_read(MCU_ENG_KIND(e));
		if (kind < FW_KINDS)
			t->busy[kind] += reg_read64(MCU_BUSY(e));
		if (kind && kind < FW_KINDS)
			t->progress[kind - 1] += reg_read(MCU_ENG_PROGRESS(e));
	}
	t->mem_rd = reg_read64(MCU_MEM_RD_BYTES);
	t->mem_wr = reg_read64(MCU_MEM_WR_BYTES);
	t->ecc_ce = reg_read(MCU_ECC_CE);
	t->ecc_ue = reg_read(MCU_ECC_UE);
	t->heartbeat = card.heartbeat;
	t->throttled = card.throttled;
}

u32 health_limit(u32 id, u32 value)
{
	if (id || value < SPYRE_POWER_MIN_MW || value > SPYRE_POWER_MAX_MW)
		return SPYRE_MSG_ERR_ARG;
	card.power_limit = value;
	health_check();
	return SPYRE_MSG_OK;
}
