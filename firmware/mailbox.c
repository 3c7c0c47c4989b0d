// SPDX-License-Identifier: MIT
/*
 * Mailbox rings: taking commands, delivering answers and events.
 *
 * Events wait in a backlog of ours until the driver's ring has room. A command is only taken while
 * the backlog has room for its answer and for those of all commands that have not ended yet, so no
 * answer is ever lost; events of the card's own are dropped before they could take that room.
 */
#include "firmware.h"

#define COMMANDS_PER_TURN	4
#define EVENTS_PER_TURN		32
#define EVENT_RESERVE		64u	/* backlog kept for answers */
/*
 * A ring in host memory that does not answer is tried again after 2 ms, doubling up to 2 to this power:
 * the doorbell that told of a command is spent, and who waits for an answer rings none.
 */
#define RETRY_MAX		9

struct ring {
	u64 base;
	u32 entries;		/* 0: not usable */
};

static struct ring commands, events;
static u32 command_head;
static u32 event_tail;		/* as the driver sees it */
static u32 event_head;
static u32 put, got;		/* backlog */
static u32 dropped;
static u8 kicked, complained;
static u64 hold;		/* injected slow answer: no command is taken before */
static u64 retry_at;		/* 0: no ring failed */
static u8 tries;		/* RETRY_MAX at most */
static struct spyre_msg message;

void mailbox_init(void)
{
	command_head = 0;
	event_tail = 0;
	event_head = 0;
	put = 0;
	got = 0;
	dropped = 0;
	complained = 0;
	hold = 0;
	retry_at = 0;
	tries = 0;
	/* The driver may have set up its rings before it started the core. */
	kicked = 1;
	reg_write(MCU_CMD_HEAD, 0);
	reg_write(MCU_EVT_TAIL, 0);
}

void mailbox_kick(void)
{
	kicked = 1;
}

u64 mailbox_hold(void)
{
	return min64(hold ? hold : ~0ull, retry_at ? retry_at : ~0ull);
}

static void ring_failed(u64 now)
{
	if (tries < RETRY_MAX)
		tries++;
	retry_at = now + (FW_MS << tries);
}

int mailbox_delivered(void)
{
	return got == put;
}

static void read_ring(struct ring *r, u32 base, u32 entries)
{
	r->base = host_reg64(base);
	r->entries = host_reg(entries);
	if (r->entries < 2 || r->entries > 1024 || (r->entries & (r->entries - 1)) ||
	    !r->base || r->base % SPYRE_STICK)
		r->entries = 0;
}

static u32 room(void)
{
	return FW_BACKLOG - (put - got);
}

static void post(u32 type, u32 tag, u32 status, const void *body, u32 length)
{
	struct spyre_msg *m = &fw_mem.backlog[put++ % FW_BACKLOG];

	memset(m, 0, sizeof(*m));
	m->MessageAppId = SPYRE_APP_FW;
	m->MessageType = (u16)type;
	m->MessageTag = tag;
	m->status = (u16)status;
	m->length = length;
	if (length)
		memcpy(m->body, body, length);
}

void answer(u32 tag, u32 status, const void *body, u32 length)
{
	post(SPYRE_MSG_RESPONSE, tag, status, body, length);
}

void event(u32 type, const void *body, u32 length)
{
	if (room() <= card.pending_ops + EVENT_RESERVE) {
		dropped++;
		return;
	}
	post(type, 0, SPYRE_MSG_OK, body, length);
}

void event_id(u32 type, u32 id, u32 arg)
{
	struct spyre_msg_id m = { .id = id, .arg = arg };

	event(type, &m, sizeof(m));
}

/* Nonzero: the ring does not answer. */
static int write_event(const struct spyre_msg *m)
{
	struct place at = place_bus(events.base + (event_tail & (events.entries - 1)) *
				    (u64)sizeof(*m));

	/* All but seq, then seq: whoever sees it sees the rest. */
	if (bus_write(at, m, offsetof(struct spyre_msg, seq)))
		return -1;
	at.addr += offsetof(struct spyre_msg, seq);
	return bus_store32(at, event_tail + 1);
}

/* Moves events to the driver. Nonzero: it was told of some. */
static int deliver(u64 now)
{
	u32 n;

	for (n = 0; n < EVENTS_PER_TURN && got != put && events.entries &&
	     event_tail - event_head < events.entries; n++) {
		if (write_event(&fw_mem.backlog[got % FW_BACKLOG])) {
			ring_failed(now);
			break;
		}
		event_tail++;
		got++;
		tries = 0;
	}
	if (!n)
		return 0;
	reg_write(MCU_EVT_TAIL, event_tail);
	reg_write(MCU_RAISE, 0);
	if (dropped && got == put) {
		log_line(LOG_WARN, "%u events dropped: the driver did not read its ring", dropped);
		dropped = 0;
	}
	return 1;
}

static int take_one(u64 now)
{
	u32 tail = host_reg(SPYRE_REG_MBOX_CMD_TAIL);
	struct place at;

	if (tail == command_head || !commands.entries || card.stopped)
		return 0;
	if (tail - command_head > commands.entries) {
		if (!complained)
			log_line(LOG_ERROR, "mailbox: command tail %x is more than a ring past %x",
				 tail, command_head);
		complained = 1;
		return 0;
	}
	if (room() <= card.pending_ops + 1)
		return 0;
	/* After the tail was read: what was injected before the command counts for it. */
	if (reg_read(MCU_IRQ_PENDING) & MCU_IRQ_INJECT)
		inject_pending();
	if (card.slow_ms && !hold) {
		hold = now + (u64)card.slow_ms * FW_MS;
		card.slow_ms = 0;
	}
	if (now < hold)
		return 0;
	hold = 0;
	at = place_bus(commands.base + (command_head & (commands.entries - 1)) *
		       (u64)sizeof(message));
	if (bus_read(at, &message, sizeof(message))) {
		if (!complained)
			log_line(LOG_ERROR, "mailbox: command ring at %X does not answer", at.addr);
		complained = 1;
		ring_failed(now);
		return 0;
	}
	complained = 0;
	tries = 0;
	command_head++;
	reg_write(MCU_CMD_HEAD, command_head);
	command(&message);
	return 1;
}

int mailbox_turn(u64 now)
{
	u32 i;

	if (retry_at && now >= retry_at) {
		retry_at = 0;
		kicked = 1;
	}
	if (kicked || hold) {
		kicked = 0;
		read_ring(&commands, SPYRE_REG_MBOX_CMD_BASE, SPYRE_REG_MBOX_CMD_ENTRIES);
		read_ring(&events, SPYRE_REG_MBOX_EVT_BASE, SPYRE_REG_MBOX_EVT_ENTRIES);
		event_head = host_reg(SPYRE_REG_MBOX_EVT_HEAD);
		for (i = 0; i < COMMANDS_PER_TURN && take_one(now); i++)
			;
		/* Full turn: there may be more. */
		if (i == COMMANDS_PER_TURN)
			kicked = 1;
	}
	if (got == put)
		return kicked;
	return deliver(now) || kicked;
}
