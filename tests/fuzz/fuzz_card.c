// SPDX-License-Identifier: MIT
/*
 * libFuzzer on the whole card: the real firmware image on the model, by a clock of its own, so an input
 * always does the same. Each input gets a card from power-on with two contexts. It is a list of operations on
 * the first one; its first byte says whose:
 *
 *	user	control blocks, descriptor lists, symbol tables, programs, shadow tails, doorbells
 *	driver	that, mailbox messages of any type, length and body, and entries of the context's tables
 *	chaos	that, SHUTDOWN and INJECT, and registers of BAR0
 *
 * After user and driver the card is ONLINE, answers, its heartbeat counts, no turn of its loop was too long,
 * and the second context, which the input has no name for, runs its control blocks. Nothing of what is not
 * mapped for the first context has changed. After chaos a function-level reset and a boot bring it back.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/cardtest.h"
#include "../unit/counter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ARENA		(8u << 20)
#define HOST_BYTES	0x10000u	/* of the first context */
#define GUARD_BYTES	4096u
#define DMVA		0x400000ull	/* writable page */
#define DMVA_RO		0x600000ull
#define OPS_MAX		48
#define SETTLE_NS	3000000
#define STICKS_MAX	4096u		/* of one copy: the model moves data as fast as this machine does */

enum whose { USER, DRIVER, CHAOS };

static const uint8_t *in, *in_end;
static enum whose whose;
static struct ct_card *card;
static struct ct_ctx *a, *v;
static struct ct_queue *qa[2], *qv;
static uint8_t *host, *before, *behind, *vhost;
static uint64_t host_at, ro_at, vhost_at, page, vpage;
static uint32_t sent;

static void fail(const char *what, uint64_t value)
{
	fprintf(stderr, "fuzz_card: %s: %#" PRIx64 "\n", what, value);
	if (card)
		ct_print_log(card);
	abort();
}

/* --- Input: zeros behind its end ------------------------------------------------------------- */

static uint8_t u8(void)
{
	return in < in_end ? *in++ : 0;
}

static uint32_t u32(void)
{
	uint32_t x = u8();

	x |= (uint32_t)u8() << 8;
	x |= (uint32_t)u8() << 16;
	return x | (uint32_t)u8() << 24;
}

static uint64_t u64(void)
{
	uint64_t x = u32();

	return x | (uint64_t)u32() << 32;
}

/* An address, most of them near something. */
static uint64_t address(void)
{
	static const uint64_t near[] = {
		DMVA, DMVA_RO, SPYRE_PROGRAM_BASE, SPYRE_DMVA_SIZE - SPYRE_STICK, DMVA + SPYRE_PAGE_SIZE - SPYRE_STICK,
		0,
	};
	uint8_t k = u8();
	uint64_t off = (uint64_t)u8() << (k & 64 ? 3 : 7);

	switch (k & 15) {
	case 0:
		return u64();
	case 1:
	case 7:
		return ro_at + off;
	case 2:
	case 3:
	case 4:
		return host_at + (off & (HOST_BYTES - 1));
	case 5:
		return host_at + HOST_BYTES - 8 + off;
	case 6:
		return host_at + u32() % HOST_BYTES;
	default:
		return near[(k & 15) % (sizeof(near) / sizeof(near[0]))] + off;
	}
}

/* The same, but mostly of the kind that a copy has on this side: else its check is all that is reached. */
static uint64_t side(bool is_host)
{
	uint8_t k = u8();

	if (!(k & 3))
		return address();
	if (is_host)
		return (k & 12 ? host_at : ro_at) + (uint64_t)(k >> 4) * 512;
	return (k & 12 ? DMVA : DMVA_RO) + (uint64_t)(k >> 4) * 512;
}

static void fill_desc(struct spyre_dma_desc *d, bool dst_host, bool src_host)
{
	uint8_t shape = u8();
	uint64_t sticks;
	unsigned int i;

	memset(d, 0, sizeof(*d));
	d->dst = side(dst_host);
	d->src = side(src_host);
	d->bytes = shape & 128 && !(u8() & 3) ? u64() : 1u + u32() % 0x2000;
	d->ndims = shape & 8 ? 1 : shape & 7;
	for (i = 0; i < 3 && (i + 1 < d->ndims || shape & 64); i++) {
		d->count[i] = shape & 32 ? u32() : u8() % 8;
		d->dst_stride[i] = (uint64_t)(int64_t)(int16_t)(u8() << 5 | u8() << 12);
		d->src_stride[i] = shape & 16 ? u64() : 128u * u8();
	}
	/* One that is good and huge would only be slow. */
	sticks = d->bytes / SPYRE_STICK + 1;
	for (i = 0; i < 3; i++)
		sticks = sticks < STICKS_MAX && d->count[i] ? sticks * d->count[i] : sticks;
	if (sticks >= STICKS_MAX && d->bytes <= SPYRE_DMA_BYTES_MAX) {
		d->bytes = d->bytes % 4096 + 1;
		for (i = 0; i < 3; i++)
			d->count[i] = d->count[i] > 4 ? 4 : d->count[i];
	}
}

static struct spyre_cb control_block(void)
{
	uint8_t kind = u8(), extra;
	struct spyre_cb cb = ct_cb(kind % 12, 0);
	unsigned int i;

	cb.flags = u8() & SPYRE_CB_F_ALL_TYPES;
	/* One flag of single types, or any number of them. */
	extra = kind & 64 ? u8() : 0;
	if (extra & 128)
		cb.flags |= (uint16_t)(u8() << 8);
	else if (extra)
		cb.flags |= (uint16_t)(0x100u << (extra & 7));
	if (extra & 64 && cb.type >= SPYRE_CB_SIGNAL)
		cb.flags |= SPYRE_CB_F_HOST;
	if (kind & 128)
		cb.timeout = u32();
	switch (cb.type) {
	case SPYRE_CB_COMPUTE:
		cb.u.compute.bootaddr = u8() & 1 ? address() : SPYRE_PROGRAM_BASE;
		cb.u.compute.symbols = address();
		cb.u.compute.nsymbols = u8() % 20;
		cb.u.compute.core_mask = u8();
		break;
	case SPYRE_CB_DMAI:
	case SPYRE_CB_DMAO:
	case SPYRE_CB_DMAX:
		if (cb.flags & SPYRE_CB_F_LIST) {
			cb.u.list.list = u8() & 1 ? address() : host_at;
			cb.u.list.entries = u8() & 7 ? u8() : u32();
		} else {
			fill_desc(&cb.u.dma,
				  cb.type == SPYRE_CB_DMAO || cb.flags & SPYRE_CB_F_DST_HOST,
				  cb.type == SPYRE_CB_DMAI || cb.flags & SPYRE_CB_F_SRC_HOST);
		}
		break;
	case SPYRE_CB_FILL:
		cb.u.fill.dst = side(false);
		cb.u.fill.bytes = u8() & 1 ? u64() : 128u * u8();
		cb.u.fill.pattern = u64();
		break;
	case SPYRE_CB_SIGNAL:
	case SPYRE_CB_WAIT:
	case SPYRE_CB_TIMESTAMP:
		cb.u.sync.addr = side(cb.flags & SPYRE_CB_F_HOST);
		cb.u.sync.value = u8();
		if (cb.flags & SPYRE_CB_F_DOORBELL) {
			cb.u.sync.doorbell = address();
			cb.u.sync.doorbell_value = u32();
		}
		break;
	default:
		break;
	}
	/* One word of anything, anywhere. */
	if (kind & 32 && !(u8() & 3)) {
		i = u8() % 16;
		if (i < 4)
			memcpy((uint8_t *)&cb + 8 * i, &(uint64_t){ u64() }, 8);
		else if (cb.type < SPYRE_CB_DMAI || cb.type > SPYRE_CB_DMAX)
			cb.u.raw[i - 4] = u64();
	}
	return cb;
}

/* What the driver does for a user whose queue has failed: without it the first bad entry is the last. */
static void recover(struct ct_queue *q)
{
	if (whose == CHAOS || !ct_load(&q->status->error))
		return;
	__atomic_store_n(&q->shadow->tail, q->tail, __ATOMIC_RELEASE);
	q->rung = q->tail;
	ct_answer(card, ct_send(card, SPYRE_MSG_QUEUE_RESET, &(struct spyre_msg_id){ .id = q->id },
				sizeof(struct spyre_msg_id)), NULL, 1000);
}

static void advance(uint32_t slices)
{
	spyre_inproc_advance(card->ip, (int64_t)SPYRE_SLICE_NS * slices);
}

static void put(struct ct_queue *q)
{
	struct spyre_cb cb = control_block();

	/* Room or not: an entry that is overwritten early is the user's own affair. */
	q->ring[q->tail++ & (q->entries - 1)] = cb;
}

/* Bytes for a list, a symbol table or the word of a WAIT. */
static void poke_host(void)
{
	struct spyre_dma_desc d;
	uint32_t i = u8() % 32;

	if (u8() & 1) {
		fill_desc(&d, i & 1, i & 2);
		memcpy(host + i * SPYRE_DMA_LIST_STRIDE, &d, sizeof(d));
	} else {
		memcpy(host + 8u * i, &(uint64_t){ u8() }, 8);
	}
}

static void poke_program(void)
{
	uint8_t *at = card->mem + page + 2 * SPYRE_PAGE_SIZE;
	uint32_t off = u8() * 16u, n = 1 + u8() % 64;

	while (n--)
		at[off++] = u8();
}

/* Addresses a table may hold: the context's own pages, what does not exist, what is reserved. */
static uint64_t table_address(void)
{
	switch (u8() % 6) {
	case 0:
		return page + (uint64_t)(u8() % 3) * SPYRE_PAGE_SIZE;
	case 1:
		return spyre_card_memory_size(card->card) - (uint64_t)u8() * SPYRE_PAGE_SIZE;
	case 2:
		return spyre_card_memory_size(card->card) + u32();
	case 3:
		return ~0ull << (u8() % 52);
	case 4:
		return spyre_inproc_bus(card->ip, host) + (u8() % 16) * 4096u;
	default:
		return SPYRE_INPROC_BUS - 4096 * (1ull + u8());
	}
}

static void poke_tables(void)
{
	struct spyre_segment *s = u8() & 1 ? &a->table->dmva[u8() % SPYRE_SEGMENTS] :
					     &a->table->hmva[u8() % SPYRE_HOST_SEGMENTS];
	uint64_t *entry;

	switch (u8() % 4) {
	case 0:
		s->pages = u8() & 1 ? u32() : u8();
		break;
	case 1:
		s->flags = u32();
		break;
	case 2:
		if (s->table && s->table < spyre_card_aperture(card->card) - SPYRE_TABLE_SIZE) {
			entry = (uint64_t *)(void *)(card->mem + s->table) + u8() % 4;
			*entry = (table_address() & ~0xfull) | (u8() & 15);
		}
		break;
	default:
		/* A table beyond the memory that there is. */
		s->table = spyre_card_memory_size(card->card) - 8 + (u32() & ~7u);
		break;
	}
}

static bool is_victim(uint16_t type, const uint8_t *body)
{
	struct spyre_msg_queue m;

	memcpy(&m, body, sizeof(m));
	switch (type) {
	case SPYRE_MSG_CTX_CREATE:
	case SPYRE_MSG_CTX_DESTROY:
	case SPYRE_MSG_CTX_TABLES:
	case SPYRE_MSG_CTX_RESET:
		return m.id == v->id;
	case SPYRE_MSG_QUEUE_CREATE:
		return m.context == v->id || m.id == qv->id;
	case SPYRE_MSG_QUEUE_DESTROY ... SPYRE_MSG_QUEUE_PRIORITY:
		return m.id == qv->id;
	default:
		return false;
	}
}

static void message(void)
{
	struct spyre_msg *m = &card->cmd[card->cmd_tail % 64];
	uint8_t body[SPYRE_MSG_BODY] = { 0 }, how = u8();
	struct spyre_msg_queue q = { 0 };
	struct spyre_msg_ctx c = { 0 };
	uint16_t type = how & 64 ? (uint16_t)u32() : u8() % 24;
	uint32_t length = 0, i;

	/* The driver's own rule: as many as there is room for. */
	if (card->cmd_tail - ct_reg(card, SPYRE_REG_MBOX_CMD_HEAD) >= 64)
		return;
	switch (type) {
	case SPYRE_MSG_CTX_CREATE:
	case SPYRE_MSG_CTX_TABLES:
		length = sizeof(c);
		c.id = u8();
		c.vector = u8() % 10;
		c.table = how & 1 ? u64() : a->table_addr;
		c.arm = spyre_inproc_bus(card->ip, host) + u8() * 64u;
		c.usage = how & 2 ? u64() : c.arm + 64;
		/* A context elsewhere is another matter than the first one's own memory. */
		if (c.usage - SPYRE_INPROC_BUS < ARENA)
			c.usage = spyre_inproc_bus(card->ip, host) + c.usage % (HOST_BYTES - 128);
		if (c.table > a->table_addr + 8192 || c.table < a->table_addr)
			c.table |= 1ull << 40;
		memcpy(body, &c, sizeof(c));
		break;
	case SPYRE_MSG_QUEUE_CREATE:
		length = sizeof(q);
		q.id = how & 1 ? u32() : a->id * 32 + u8() % 64;
		q.context = how & 2 ? u8() : a->id;
		q.entries = how & 4 ? u32() : 64u << (u8() % 12);
		q.priority = u8() % 5;
		q.ring = address();
		q.response = address();
		q.shadow = address();
		q.status = address();
		q.timeout = u8();
		q.start = how & 8 ? u32() : 0;
		memcpy(body, &q, sizeof(q));
		break;
	case SPYRE_MSG_GET_INFO:
	case SPYRE_MSG_GET_TELEMETRY:
	case SPYRE_MSG_SHUTDOWN:
		break;
	case SPYRE_MSG_TIME_SYNC:
		length = sizeof(struct spyre_msg_time);
		break;
	default:
		length = sizeof(struct spyre_msg_id);
		i = how & 1 ? u32() : how & 2 ? u8() : qa[u8() & 1]->id;
		memcpy(body, &i, 4);
		i = how & 4 ? u32() : u8() % 4;
		memcpy(body + 4, &i, 4);
	}
	if (how & 32)
		length = how & 16 ? u32() : u8() % 128;
	if (how & 128)
		for (i = 0; i < 16; i++)
			body[u8() % SPYRE_MSG_BODY] = u8();
	if (whose != CHAOS && (type == SPYRE_MSG_SHUTDOWN || type == SPYRE_MSG_INJECT || is_victim(type, body)))
		return;
	if (type == SPYRE_MSG_CTX_CREATE || type == SPYRE_MSG_CTX_TABLES) {
		memcpy(&c, body, sizeof(c));
		if (c.usage - SPYRE_INPROC_BUS < ARENA && c.usage - spyre_inproc_bus(card->ip, host) > HOST_BYTES - 128)
			return;
	}
	memset(m, 0, sizeof(*m));
	m->MessageAppId = how & 8 && how & 16 ? u8() : SPYRE_APP_DRIVER;
	m->MessageType = type;
	m->MessageTag = 0x80000000u + sent++;
	m->length = length;
	memcpy(m->body, body, sizeof(body));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ct_set_reg(card, SPYRE_REG_MBOX_CMD_TAIL, ++card->cmd_tail);
}

static void reg(void)
{
	uint8_t how = u8();
	uint64_t off = how & 1 ? u32() % 0x400000 : u8() * 4u + (how & 2 ? 0x100u : 0);
	unsigned int size = how & 4 ? 1u << (how >> 3 & 3) : 4;

	if (how & 128)
		spyre_card_mmio_write(card->card, off, u64(), size);
	else
		spyre_card_mmio_read(card->card, off, size);
}

static void operation(void)
{
	struct ct_queue *q;
	uint8_t op = u8();

	q = qa[op >> 7];
	switch (op % 16) {
	case 0 ... 3:
		put(q);
		break;
	case 4:
	case 5:
		put(q);
		ct_submit(q);
		break;
	case 6:
		__atomic_store_n(&q->shadow->tail, u8() & 1 ? u32() : q->tail + u8(), __ATOMIC_RELEASE);
		ct_ring(q, u32());
		break;
	case 7:
		/* Pages of the victim's block are not the first context's. */
		spyre_card_db_write(card->card, (uint64_t)(a->id * 32 + u8() % 32) * SPYRE_DB_PAGE_SIZE, u32(), 4);
		break;
	case 8:
		poke_host();
		break;
	case 9:
		poke_program();
		break;
	case 10:
	case 14:
	case 15:
		advance(1 + u8() % 16);
		recover(q);
		break;
	case 11:
		if (whose != USER)
			poke_tables();
		else
			poke_host();
		break;
	default:
		if (whose == CHAOS && u8() & 1)
			reg();
		else if (whose != USER)
			message();
		else
			put(q);
	}
}

/* --- The world ------------------------------------------------------------------------------- */

static void pattern(uint8_t *p, size_t bytes, uint64_t seed)
{
	uint64_t *w = (uint64_t *)(void *)p;
	size_t i;

	for (i = 0; i < bytes / 8; i++)
		w[i] = (seed + i) * 0x9e3779b97f4a7c15ull;
}

static void check(const uint8_t *p, size_t bytes, uint64_t seed, const char *what)
{
	const uint64_t *w = (const uint64_t *)(const void *)p;
	size_t i;

	for (i = 0; i < bytes / 8; i++)
		if (w[i] != (seed + i) * 0x9e3779b97f4a7c15ull)
			fail(what, i * 8);
}

static void quiet(void *opaque, enum spyre_log_level level, const char *text)
{
	(void)opaque;
	(void)level;
	(void)text;
}

/* Card pages in order: three of the first context, the victim's. Host memory: guard, first's, guard, victim's. */
static void setup(void)
{
	static const struct spyre_card_config cfg = {
		.memory = 1ull << 30, .aperture = 1ull << 30, .mem_fd = -1, .threads = 1, .sliced = true,
		.watchdog = 20000,
	};
	struct ct_queue_config small = { .entries = 64 };

	card = ct_boot(&cfg, ARENA, 8);
	if (!card)
		fail("no card", 0);
	spyre_inproc_log(card->ip, SPYRE_LOG_ERROR, quiet, NULL);
	a = ct_ctx_new(card, 1);
	v = ct_ctx_new(card, 2);
	page = ct_pages(card, 3);
	vpage = ct_pages(card, 1);
	if (!a || !v || !vpage)
		fail("no contexts", 0);
	ct_map_card(a, DMVA, page, 1, SPYRE_PTE_WRITE);
	ct_map_card(a, DMVA_RO, page + SPYRE_PAGE_SIZE, 1, 0);
	ct_map_card(a, SPYRE_PROGRAM_BASE, page + 2 * SPYRE_PAGE_SIZE, 1, SPYRE_PTE_WRITE);
	ct_map_card(v, DMVA, vpage, 1, SPYRE_PTE_WRITE);
	before = spyre_inproc_alloc(card->ip, GUARD_BYTES, 4096);
	host = ct_host(a, HOST_BYTES, SPYRE_PTE_WRITE, &host_at);
	behind = ct_host(a, GUARD_BYTES, 0, &ro_at);
	vhost = ct_host(v, GUARD_BYTES, SPYRE_PTE_WRITE, &vhost_at);
	qa[0] = ct_queue_new(a, &small);
	qa[1] = ct_queue_new(a, &small);
	qv = ct_queue_new(v, &small);
	if (!before || !host || !behind || !vhost || !qa[0] || !qa[1] || !qv)
		fail("no queues", 0);
	pattern(before, GUARD_BYTES, 1);
	pattern(behind, GUARD_BYTES, 2);
	pattern(vhost, GUARD_BYTES, 3);
	pattern(card->mem + vpage, 65536, 4);
	pattern(card->mem + page + SPYRE_PAGE_SIZE, 65536, 5);
}

static uint64_t counter(const char *name)
{
	uint64_t v = 0;

	if (!find_counter(card->card, name, &v))
		fail("no such counter", 0);
	return v;
}

static void check_alive(void)
{
	struct spyre_cb cb = ct_cb_copy(SPYRE_CB_DMAI, DMVA, vhost_at, 4096);
	uint32_t beats = ct_reg(card, SPYRE_REG_HEARTBEAT);
	int ret;

	if (ct_reg(card, SPYRE_REG_BOOT_STATUS) != SPYRE_BOOT_RUNNING)
		fail("boot status", ct_reg(card, SPYRE_REG_BOOT_STATUS));
	if (ct_reg(card, SPYRE_REG_STATE) != SPYRE_STATE_ONLINE)
		fail("state", ct_reg(card, SPYRE_REG_STATE));
	ret = ct_call(card, SPYRE_MSG_GET_TELEMETRY, NULL, 0, NULL);
	if (ret)
		fail("telemetry", (uint32_t)ret);
	if (ct_reg(card, SPYRE_REG_HEARTBEAT) == beats)
		fail("the heartbeat stands still", beats);
	ret = ct_run(qv, &cb);
	if (ret)
		fail("the second context's copy", (uint32_t)ret);
	if (memcmp(card->mem + vpage, vhost, 4096))
		fail("the second context's copy has other data", 0);
	pattern(card->mem + vpage, 4096, 4);
	cb = ct_cb(SPYRE_CB_NOP, SPYRE_CB_F_BARRIER);
	ret = ct_run(qv, &cb);
	if (ret || qv->status->error)
		fail("the second context's queue", (uint32_t)ret);
	if (counter("mcu-turn-max") > CT_TURN_MAX)
		fail("instructions of a turn", counter("mcu-turn-max"));
}

static void check_memory(void)
{
	check(before, GUARD_BYTES, 1, "host memory before the first context's");
	check(behind, GUARD_BYTES, 2, "read-only host memory");
	check(vhost, GUARD_BYTES, 3, "the second context's host memory");
	check(card->mem + vpage, 65536, 4, "the second context's card memory");
	check(card->mem + page + SPYRE_PAGE_SIZE, 65536, 5, "read-only card memory");
}

/* From whatever state: a reset, the rings anew, a boot. */
static void revive(void)
{
	void *image;
	size_t size;

	spyre_card_reset(card->card, SPYRE_RESET_FLR);
	memset(card->evt, 0, 64 * sizeof(*card->evt));
	card->cmd_tail = 0;
	card->evt_head = 0;
	card->nkept = 0;
	ct_set_reg64(card, SPYRE_REG_MBOX_CMD_BASE, spyre_inproc_bus(card->ip, card->cmd));
	ct_set_reg64(card, SPYRE_REG_MBOX_EVT_BASE, spyre_inproc_bus(card->ip, card->evt));
	ct_set_reg(card, SPYRE_REG_MBOX_CMD_ENTRIES, 64);
	ct_set_reg(card, SPYRE_REG_MBOX_EVT_ENTRIES, 64);
	image = ct_image(&size);
	if (!image || ct_boot_image(card, image, size))
		fail("no boot after a reset", 0);
	free(image);
	if (ct_call(card, SPYRE_MSG_GET_INFO, NULL, 0, NULL))
		fail("no answer after a reset", 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int i;

	in = data;
	in_end = data + size;
	whose = u8() % 3;
	sent = 0;
	setup();
	for (i = 0; i < OPS_MAX && in < in_end; i++)
		operation();
	spyre_inproc_advance(card->ip, SETTLE_NS);
	if (whose == CHAOS) {
		revive();
	} else {
		check_alive();
		check_memory();
	}
	if (spyre_inproc_inconsistencies(card->ip))
		fail("internal inconsistencies", spyre_inproc_inconsistencies(card->ip));
	ct_free(card);
	card = NULL;
	return 0;
}
