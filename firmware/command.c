// SPDX-License-Identifier: MIT
/*
 * Mailbox commands: one handler each, behind one table that knows how long each body is.
 */
#include "firmware.h"

#ifndef FW_VERSION
#error "FW_VERSION is the text that image and GET_INFO carry"
#endif

static const struct spyre_msg *now_at;	/* the command being handled */

/* Handlers return a status, or LATER when they or an op answer by themselves. */
#define LATER	0xffffu

static u32 shutdown_tag;
static u8 shutting_down;

static u32 get_info(const void *body)
{
	struct spyre_msg_info i;
	static const char version[] = FW_VERSION;
	u32 n;

	(void)body;
	memset(&i, 0, sizeof(i));
	i.proto = SPYRE_PROTO_MAJOR << 16 | SPYRE_PROTO_MINOR;
	i.contexts = FW_CONTEXTS;
	i.queues = FW_QUEUES;
	for (n = 0; n < FW_KINDS; n++)
		i.engines[n] = card.engines[n];
	i.cores = card.cores;
	i.ring_min = SPYRE_RING_MIN;
	i.ring_max = SPYRE_RING_MAX;
	i.symbols = SPYRE_JOB_SYMBOLS;
	i.power_limit_mw = card.power_limit;
	for (n = 0; n < sizeof(i.version) - 1 && version[n]; n++)
		i.version[n] = (u8)version[n];
	answer(now_at->MessageTag, SPYRE_MSG_OK, &i, sizeof(i));
	return LATER;
}

static u32 ctx_create(const void *body)
{
	return context_create(body);
}

static u32 ctx_destroy(const void *body)
{
	return context_destroy(((const struct spyre_msg_id *)body)->id);
}

static u32 ctx_tables(const void *body)
{
	return context_tables(body);
}

static u32 ctx_invalidate(const void *body)
{
	return context_invalidate(((const struct spyre_msg_id *)body)->id);
}

static u32 ctx_reset(const void *body)
{
	u32 status = context_reset(((const struct spyre_msg_id *)body)->id, now_at->MessageTag);

	return status ? status : LATER;
}

static u32 q_create(const void *body)
{
	return queue_create(body);
}

static u32 q_op(const void *body)
{
	u32 status = queue_op(((const struct spyre_msg_id *)body)->id, now_at->MessageType,
			      now_at->MessageTag);

	return status ? status : LATER;
}

static u32 q_resume(const void *body)
{
	return queue_resume(((const struct spyre_msg_id *)body)->id);
}

static u32 q_priority(const void *body)
{
	const struct spyre_msg_id *m = body;

	return queue_priority(m->id, m->arg);
}

static u32 get_telemetry(const void *body)
{
	struct spyre_msg_telemetry t;

	(void)body;
	health_check();
	telemetry(&t);
	answer(now_at->MessageTag, SPYRE_MSG_OK, &t, sizeof(t));
	return LATER;
}

static u32 get_engines(const void *body)
{
	struct spyre_msg_engines m;

	(void)body;
	engine_holders(&m);
	answer(now_at->MessageTag, SPYRE_MSG_OK, &m, sizeof(m));
	return LATER;
}

static u32 diag(const void *body)
{
	struct spyre_msg_id m = *(const struct spyre_msg_id *)body;

	if (m.arg > 1)
		return SPYRE_MSG_ERR_ARG;
	if (card.tripped || !queue_all_suspended())
		return SPYRE_MSG_ERR_BUSY;
	set_state(SPYRE_STATE_RUNNING_DIAGNOSTICS);
	m.arg = m.arg ? test_cores() : test_memory();
	set_state(SPYRE_STATE_ONLINE);
	answer(now_at->MessageTag, SPYRE_MSG_OK, &m, sizeof(m));
	return LATER;
}

static u32 set_limit(const void *body)
{
	const struct spyre_msg_id *m = body;

	return health_limit(m->id, m->arg);
}

static u32 set_log_level(const void *body)
{
	return log_set_level(((const struct spyre_msg_id *)body)->arg) ? SPYRE_MSG_ERR_ARG :
		SPYRE_MSG_OK;
}

static u32 time_sync(const void *body)
{
	struct spyre_msg_time t = *(const struct spyre_msg_time *)body;

	t.soc = soc_time();
	answer(now_at->MessageTag, SPYRE_MSG_OK, &t, sizeof(t));
	return LATER;
}

#define INJECT_PER_TURN	8

/* At most so many queues, the log ring has no room for all. */
#define DUMP_MAX	64

static u32 dump_state(const void *body)
{
	u32 id, n, queue = ((const struct spyre_msg_id *)body)->id;

	log_line(LOG_ERROR, "state %u queues %u commands pending %u throttled %u", card.state,
		 card.queues, card.pending_ops, card.throttled);
	if (queue != FW_NONE) {
		if (!queue_find(queue))
			return SPYRE_MSG_ERR_ID;
		queue_dump(queue);
		return SPYRE_MSG_OK;
	}
	for (id = 0, n = 0; id < SPYRE_DB_PAGES && n < DUMP_MAX; id++) {
		if (!queue_find(id))
			continue;
		queue_dump(id);
		n++;
	}
	return SPYRE_MSG_OK;
}

static u32 inject_fault(u32 id, u32 arg)
{
	switch (id) {
	case SPYRE_INJECT_CRASH:
		card.crash = 1;
		return SPYRE_MSG_OK;
	case SPYRE_INJECT_HANG:
		card.hang = 1;
		return SPYRE_MSG_OK;
	case SPYRE_INJECT_SLOW:
		if (arg > SPYRE_INJECT_SLOW_MAX_MS)
			return SPYRE_MSG_ERR_ARG;
		card.slow_ms = arg;
		return SPYRE_MSG_OK;
	case SPYRE_INJECT_LOST_RB:
		card.lost_rb = arg;
		return SPYRE_MSG_OK;
	case SPYRE_INJECT_LOST_EVENT:
		card.lost_event = arg;
		return SPYRE_MSG_OK;
	case SPYRE_INJECT_ODD_STATUS:
		if (!arg)
			return SPYRE_MSG_ERR_ARG;
		card.odd_status = arg;
		return SPYRE_MSG_OK;
	default:
		return SPYRE_MSG_ERR_ARG;
	}
}

static u32 inject(const void *body)
{
	const struct spyre_msg_id *m = body;

	return card.can_inject ? inject_fault(m->id, m->arg) : SPYRE_MSG_ERR_TYPE;
}

void inject_pending(void)
{
	u32 i, pop, status;

	for (i = 0; i < INJECT_PER_TURN && (pop = reg_read(MCU_INJECT_POP)); i++) {
		status = inject_fault(pop & ~(1u << 31), reg_read(MCU_INJECT_ARG));
		if (status)
			log_line(LOG_ERROR, "injected fault %x: status %u", pop, status);
	}
}

static u32 shutdown(const void *body)
{
	(void)body;
	if (shutting_down)
		return SPYRE_MSG_ERR_BUSY;
	shutting_down = 1;
	shutdown_tag = now_at->MessageTag;
	card.pending_ops++;
	card.tripped = 1;	/* no queue is created or reset any more */
	set_state(SPYRE_STATE_SHUTTING_DOWN);
	context_stop_all(SPYRE_ERR_CANCELLED);
	return LATER;
}

void shutdown_turn(void)
{
	if (!shutting_down || card.stopped || engine_any_busy())
		return;
	usage_flush();
	op_done(shutdown_tag, SPYRE_MSG_OK);
	mailbox_turn(soc_time());
	card.stopped = 1;
	log_line(LOG_INFO, "shut down");
	set_state(SPYRE_STATE_OFFLINE);
}

struct handler {
	u32 length;
	u32 (*handle)(const void *body);
};

static const struct handler handlers[] = {
	[SPYRE_MSG_GET_INFO] = { 0, get_info },
	[SPYRE_MSG_CTX_CREATE] = { sizeof(struct spyre_msg_ctx), ctx_create },
	[SPYRE_MSG_CTX_DESTROY] = { sizeof(struct spyre_msg_id), ctx_destroy },
	[SPYRE_MSG_CTX_TABLES] = { sizeof(struct spyre_msg_ctx), ctx_tables },
	[SPYRE_MSG_CTX_INVALIDATE] = { sizeof(struct spyre_msg_id), ctx_invalidate },
	[SPYRE_MSG_QUEUE_CREATE] = { sizeof(struct spyre_msg_queue), q_create },
	[SPYRE_MSG_QUEUE_DESTROY] = { sizeof(struct spyre_msg_id), q_op },
	[SPYRE_MSG_QUEUE_SUSPEND] = { sizeof(struct spyre_msg_id), q_op },
	[SPYRE_MSG_QUEUE_RESUME] = { sizeof(struct spyre_msg_id), q_resume },
	[SPYRE_MSG_QUEUE_RESET] = { sizeof(struct spyre_msg_id), q_op },
	[SPYRE_MSG_QUEUE_PRIORITY] = { sizeof(struct spyre_msg_id), q_priority },
	[SPYRE_MSG_GET_TELEMETRY] = { 0, get_telemetry },
	[SPYRE_MSG_DIAG] = { sizeof(struct spyre_msg_id), diag },
	[SPYRE_MSG_SET_LIMIT] = { sizeof(struct spyre_msg_id), set_limit },
	[SPYRE_MSG_SET_LOG_LEVEL] = { sizeof(struct spyre_msg_id), set_log_level },
	[SPYRE_MSG_TIME_SYNC] = { sizeof(struct spyre_msg_time), time_sync },
	[SPYRE_MSG_DUMP_STATE] = { sizeof(struct spyre_msg_id), dump_state },
	[SPYRE_MSG_INJECT] = { sizeof(struct spyre_msg_id), inject },
	[SPYRE_MSG_SHUTDOWN] = { 0, shutdown },
	[SPYRE_MSG_CTX_RESET] = { sizeof(struct spyre_msg_id), ctx_reset },
	[SPYRE_MSG_GET_ENGINES] = { 0, get_engines },
};

void op_done(u32 tag, u32 status)
{
	card.pending_ops--;
	answer(tag, status, NULL, 0);
}

void command(const struct spyre_msg *msg)
{
	const struct handler *h;
	u32 type = msg->MessageType;
	u32 status;

	heartbeat();
	if (type >= sizeof(handlers) / sizeof(handlers[0]) || !handlers[type].handle) {
		log_line(LOG_WARN, "mailbox: unknown message type %u", type);
		ras_card(SPYRE_RAS_UNSUPPORTED_MSG, SPYRE_SEV_INFO, 0, type);
		answer(msg->MessageTag, SPYRE_MSG_ERR_TYPE, NULL, 0);
		return;
	}
	h = &handlers[type];
	if (msg->length != h->length) {
		log_line(LOG_WARN, "mailbox: type %u has %u bytes, wants %u", type, msg->length,
			 h->length);
		answer(msg->MessageTag, SPYRE_MSG_ERR_LENGTH, NULL, 0);
		return;
	}
	if (msg->MessageAppId != SPYRE_APP_DRIVER || msg->VfId) {
		answer(msg->MessageTag, SPYRE_MSG_ERR_ARG, NULL, 0);
		return;
	}
	if (card.odd_status) {
		answer(msg->MessageTag, card.odd_status, NULL, 0);
		card.odd_status = 0;
		return;
	}
	now_at = msg;
	status = h->handle(msg->body);
	if (status != LATER)
		answer(msg->MessageTag, status, NULL, 0);
	log_line(LOG_DEBUG, "mailbox: type %u tag %x status %u", type, msg->MessageTag, status);
}

void command_init(void)
{
	shutting_down = 0;
	now_at = NULL;
}
