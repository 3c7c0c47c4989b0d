// SPDX-License-Identifier: MIT
/* RAS records: from the driver's numbers to names, messages and steps. */
#include "rt.h"

#include <stdio.h>
#include <string.h>

#include <spyre/ras.h>

static const struct ras_text {
	uint32_t code;
	const char *message;
	const char *step;
} texts[] = {
	{ SPYRE_RAS_SOFT_FAIL,
	  "A software error was detected in the card while executing a control block.",
	  "Check the program, addresses and sizes of the operation." },
	{ SPYRE_RAS_UNSUPPORTED_MSG, "The firmware does not know a message of the driver.",
	  "Check program compatibility with firmware." },
	{ SPYRE_RAS_COMPUTE_HW, "The compute engine failed while running a job.",
	  "Check the program's addresses; if they are right, reset the card." },
	{ SPYRE_RAS_BOOTADDR,
	  "The bootstrap address is outside the program segment or not a multiple of 128.",
	  "Load the job binary into segment 7 and launch it where it was loaded." },
	{ SPYRE_RAS_MSG_TIMEOUT,
	  "A message response from the hardware exceeded the expected time.", "Reset the card." },
	{ SPYRE_RAS_BAD_PROGRAM, "The job binary failed its check and was not started.",
	  "Build the job binary anew; spyre-dis shows where it is wrong." },
	{ SPYRE_RAS_DEADLOCK, "No unit of the job could advance.",
	  "Compare the listed units: each waits for a FIFO, a tag, a tile or a group that none of "
	  "the others will serve." },
	{ SPYRE_RAS_WATCHDOG, "The job did not end within its budget of modelled cycles.",
	  "Check its loop counts, or raise the budget in the job binary." },
	{ SPYRE_RAS_QUEUE,
	  "A queue's tail moved by more than its ring, or its memory did not answer.",
	  "Destroy the queue; report it if the library made it." },
	{ SPYRE_RAS_MEM_CE, "A memory error was corrected.",
	  "None; watch the count." },
	{ SPYRE_RAS_MEM_UE, "A memory error could not be corrected.",
	  "Run the job again; reset the card if it repeats." },
	{ SPYRE_RAS_CORE_UNAVAILABLE,
	  "A core of the job is not available.", "Build the program for the cores the card has." },
	{ SPYRE_RAS_THERMAL, "The card is too hot.", "Check its cooling." },
	{ SPYRE_RAS_TIMEOUT, "A control block did not complete within its timeout.",
	  "Check what it waits for, or raise the timeout." },
	{ SPYRE_RAS_FIRMWARE, "The firmware met an error of its own.",
	  "Report the firmware log." },
};

static bool is_race(uint32_t status, uint32_t code)
{
	return status == SPYRE_ERR_PROGRAM && code == SPYRE_PE_RACE;
}

static void unpack_stuck(struct spyrert_ras *out, const struct drm_spyre_ras *in, uint32_t first)
{
	uint32_t i, n = in->nstuck > first ? in->nstuck - first : 0;

	if (n > 4)
		n = 4;
	for (i = 0; i < n && out->nstuck_listed < 64; i++) {
		struct spyrert_stuck *s = &out->stuck[out->nstuck_listed++];
		struct spyre_stuck raw;

		memcpy(&raw, &in->stuck[i], sizeof(raw));
		s->core = raw.core;
		s->unit = raw.unit & 0x7f;
		s->corelet = raw.unit >> 7;
		s->waits = raw.waits;
		s->number = raw.number;
		s->pc = le32toh(raw.pc);
	}
}

bool rt_ras_continues(const struct drm_spyre_ras *in)
{
	return in->code == SPYRE_RAS_DEADLOCK && in->err_pc != 0;
}

void rt_ras_join(struct spyrert_ras *out, const struct drm_spyre_ras *in)
{
	unpack_stuck(out, in, in->err_pc);
}

void rt_ras_from_drm(struct spyrert_ras *out, const struct drm_spyre_ras *in)
{
	const struct ras_text *t = NULL;
	size_t i;

	memset(out, 0, sizeof(*out));
	out->seq = in->seq;
	out->time_ns = in->time_ns;
	out->soc_time = in->soc_time;
	out->cookie = in->cookie;
	out->addr = in->addr;
	out->code = in->code;
	out->severity = in->severity;
	out->category = in->category;
	out->action = in->action;
	out->card_status = in->status;
	out->entry = in->entry;
	out->syndrome = in->syndrome;
	out->mode = in->mode;
	out->err_code = in->err_code;
	out->err_pc = in->err_pc;
	out->err_core = in->err_core;
	out->err_unit = in->err_unit;
	out->queue = in->queue;
	out->nstuck = in->nstuck;
	if (in->code == SPYRE_RAS_DEADLOCK || is_race(in->status, in->err_code))
		unpack_stuck(out, in, in->code == SPYRE_RAS_DEADLOCK ? in->err_pc : 0);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].code == in->code)
			t = &texts[i];
	snprintf(out->name, sizeof(out->name), "%s", spyre_ras_name(in->code));
	snprintf(out->message, sizeof(out->message), "%s",
		 t ? t->message : "The card sent a record this library does not know.");
	snprintf(out->step, sizeof(out->step), "%s",
		 t ? t->step : "Use a library that is not older than the firmware.");
}

RT_PUBLIC int spyrert_ras_format(const struct spyrert_ras *r, char *buf, size_t bytes)
{
	static const char *const sev[] = { "info", "warning", "error", "fatal" };
	static const char *const cat[] = { "hardware", "software", "firmware" };
	static const char *const act[] = { "information", "retry", "reset", "replace" };
	size_t at = 0;
	uint32_t i;

	if (!r || (!buf && bytes)) {
		rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_ras_format: NULL argument");
		return -1;
	}
#define PUT(...)									\
	do {										\
		int n_ = snprintf(at < bytes ? buf + at : NULL, at < bytes ? bytes - at : 0,	\
				  __VA_ARGS__);						\
		if (n_ > 0)								\
			at += n_;							\
	} while (0)

	PUT("{\"action\":\"%s\",\"category\":\"%s\",\"code\":\"0x%04x\",\"name\":\"%s\","
	    "\"severity\":\"%s\",\"step\":\"%s\",\"message\":\"%s\"",
	    r->action < 4 ? act[r->action] : "?", r->category < 3 ? cat[r->category] : "?", r->code,
	    r->name, r->severity < 4 ? sev[r->severity] : "?", r->step, r->message);
	PUT(",\"seq\":%llu,\"soc_time\":%llu", (unsigned long long)r->seq,
	    (unsigned long long)r->soc_time);
	if (r->queue != 0xffffffffu)
		PUT(",\"queue\":%u,\"entry\":%u,\"cookie\":%llu", r->queue, r->entry,
		    (unsigned long long)r->cookie);
	if (r->card_status)
		PUT(",\"status\":\"%s\"", rt_card_status_text(r->card_status));
	if (r->syndrome)
		PUT(",\"rb_hmierr_addr\":\"0x%llx\",\"rb_hmierr_syndrome\":%u,\"rb_hmierr_mode\":%"
		    "u",
		    (unsigned long long)r->addr, r->syndrome, r->mode);
	/* In a record of no job it is a number of the card's: a temperature, a core. */
	if (r->err_code && r->card_status)
		PUT(",\"program_error\":\"%s\",\"pc\":%u", isa_err_text(r->err_code),
		    r->err_pc);
	if (r->err_code && r->card_status && r->err_core != 0xffff)
		PUT(",\"core\":%u,\"unit\":\"%s\",\"corelet\":%u", r->err_core,
		    isa_unit_name(r->err_unit & 0xff), r->err_unit >> 8);
	if (is_race(r->card_status, r->err_code) && r->nstuck_listed) {
		const struct spyrert_stuck *s = &r->stuck[0];

		PUT(",\"race\":{\"place\":\"%s\",\"address\":\"0x%llx\",\"writes\":%s,\"core\":%u,"
		    "\"unit\":\"%s\",\"corelet\":%u,\"pc\":%u,\"other_writes\":%s}",
		    s->waits == SPYRE_RACE_LX	? "LX"
		    : s->waits == SPYRE_RACE_L0 ? "L0"
						: "memory",
		    (unsigned long long)r->addr,
		    s->number & SPYRE_RACE_WRITES ? "true" : "false", s->core,
		    isa_unit_name(s->unit), s->corelet, s->pc,
		    s->number & SPYRE_RACE_OTHER_WRITES ? "true" : "false");
	} else if (r->nstuck) {
		PUT(",\"nstuck\":%u,\"stuck\":[", r->nstuck);
		for (i = 0; i < r->nstuck_listed; i++) {
			const struct spyrert_stuck *s = &r->stuck[i];

			PUT("%s{\"core\":%u,\"unit\":\"%s\",\"corelet\":%u,\"pc\":%u,\"waits\":%u,"
			    "\"number\":%u}",
			    i ? "," : "", s->core, isa_unit_name(s->unit), s->corelet, s->pc,
			    s->waits, s->number);
		}
		PUT("]");
	}
	PUT("}");
#undef PUT
	return (int)at;
}
