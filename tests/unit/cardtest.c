// SPDX-License-Identifier: MIT
/* See cardtest.h. */
#include "cardtest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING		64u			/* mailbox entries */
#define VEC_ENTRIES	256u
#define TABLES		0x1000000ull		/* image below it, tables from here ... */
#define PAGES		0x4000000ull		/* ... pages of contexts from here */

uint64_t ct_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void nap(void)
{
	struct timespec ts = { .tv_nsec = 20000 };

	nanosleep(&ts, NULL);
}

/* Bounded polling: spins longer than the card needs for little work, then gives up the processor. */
#define SPIN_NS		200000

struct poll {
	struct ct_card *card;
	uint64_t start, end;
};

static struct poll poll_start(struct ct_card *c, int timeout_ms)
{
	uint64_t now = ct_now_ns();

	return (struct poll){ .card = c, .start = now, .end = now + timeout_ms * 1000000ull };
}

static bool poll_again(struct poll *p)
{
	uint64_t now = ct_now_ns();

	if (now > p->end)
		return false;
	/* The clock stands still unless it is moved. */
	if (p->card->sliced)
		spyre_inproc_advance(p->card->ip, SPYRE_SLICE_NS);
	else if (now - p->start >= SPIN_NS)
		nap();
	return true;
}

/* Memory that goes with the card: handles must outlive whoever still looks at them. */
struct owned {
	struct owned *next;
	max_align_t data[];
};

static void *own(struct ct_card *c, size_t bytes)
{
	struct owned *o = calloc(1, sizeof(*o) + bytes);

	if (!o)
		return NULL;
	pthread_mutex_lock(&c->lock);
	o->next = c->owned;
	c->owned = o;
	pthread_mutex_unlock(&c->lock);
	return o->data;
}

/* --- Registers, boot ------------------------------------------------------------------------ */

uint32_t ct_reg(struct ct_card *c, uint32_t offset)
{
	return (uint32_t)spyre_card_mmio_read(c->card, offset, 4);
}

void ct_set_reg(struct ct_card *c, uint32_t offset, uint32_t value)
{
	spyre_card_mmio_write(c->card, offset, value, 4);
}

void ct_set_reg64(struct ct_card *c, uint32_t offset, uint64_t value)
{
	ct_set_reg(c, offset, (uint32_t)value);
	ct_set_reg(c, offset + 4, (uint32_t)(value >> 32));
}

void ct_print_log(struct ct_card *c)
{
	uint32_t size, head, i;

	if (ct_reg(c, SPYRE_REG_LOG_RAM) != SPYRE_LOG_MAGIC) {
		fprintf(stderr, "log RAM holds no log\n");
		return;
	}
	size = ct_reg(c, SPYRE_REG_LOG_RAM + 4);
	head = ct_reg(c, SPYRE_REG_LOG_RAM + 8);
	if (!size || size > SPYRE_LOG_RAM_SIZE - sizeof(struct spyre_log))
		return;
	for (i = head > size ? head - size : 0; i != head; i++) {
		uint32_t at = SPYRE_REG_LOG_RAM + sizeof(struct spyre_log) + i % size;

		fputc((int)(ct_reg(c, at & ~3u) >> 8 * (at & 3) & 255), stderr);
	}
}

void *ct_image(size_t *size)
{
	const char *path = getenv("CT_FIRMWARE");
	uint8_t *data;
	FILE *f;
	long n;

	if (!path)
		path = CT_FIRMWARE;
	f = fopen(path, "rb");
	if (!f) {
		fprintf(stderr, "%s: %s (set CT_FIRMWARE to the firmware image)\n", path,
			strerror(errno));
		return NULL;
	}
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	data = n > 0 ? malloc((size_t)n) : NULL;
	if (data && fread(data, 1, (size_t)n, f) != (size_t)n) {
		free(data);
		data = NULL;
	}
	fclose(f);
	*size = (size_t)n;
	return data;
}

uint32_t ct_boot_status(struct ct_card *c, const void *image, size_t size, uint32_t length)
{
	struct poll p = poll_start(c, CT_TIMEOUT_MS);
	uint32_t status;

	ct_set_reg(c, SPYRE_REG_MCU_CTRL, 0);
	memcpy(c->mem, image, size);
	ct_set_reg64(c, SPYRE_REG_FW_ADDR, 0);
	ct_set_reg(c, SPYRE_REG_FW_LEN, length);
	ct_set_reg(c, SPYRE_REG_MCU_CTRL, SPYRE_MCU_CTRL_RUN);
	do {
		status = ct_reg(c, SPYRE_REG_BOOT_STATUS);
	} while (status == SPYRE_BOOT_IDLE && poll_again(&p));
	return status;
}

int ct_boot_image(struct ct_card *c, const void *image, size_t size)
{
	struct poll p = poll_start(c, CT_TIMEOUT_MS);
	uint32_t status = ct_boot_status(c, image, size, (uint32_t)size);

	while (status == SPYRE_BOOT_RUNNING &&
	       ct_reg(c, SPYRE_REG_STATE) != SPYRE_STATE_ONLINE && poll_again(&p))
		status = ct_reg(c, SPYRE_REG_BOOT_STATUS);
	if (ct_reg(c, SPYRE_REG_STATE) == SPYRE_STATE_ONLINE)
		return 0;
	fprintf(stderr, "card not online: boot status %u, progress %#x, state %u\n", status,
		ct_reg(c, SPYRE_REG_BOOT_PROGRESS), ct_reg(c, SPYRE_REG_STATE));
	ct_print_log(c);
	return -EIO;
}

static int set_up_mailbox(struct ct_card *c)
{
	uint32_t v = c->vectors == 1 ? 0 : 1;

	c->cmd = spyre_inproc_alloc(c->ip, RING * sizeof(*c->cmd), 4096);
	c->evt = spyre_inproc_alloc(c->ip, RING * sizeof(*c->evt), 4096);
	c->vec = spyre_inproc_alloc(c->ip, VEC_ENTRIES * sizeof(*c->vec), 4096);
	if (!c->cmd || !c->evt || !c->vec)
		return -ENOMEM;
	ct_set_reg64(c, SPYRE_REG_MBOX_CMD_BASE, spyre_inproc_bus(c->ip, c->cmd));
	ct_set_reg64(c, SPYRE_REG_MBOX_EVT_BASE, spyre_inproc_bus(c->ip, c->evt));
	ct_set_reg(c, SPYRE_REG_MBOX_CMD_ENTRIES, RING);
	ct_set_reg(c, SPYRE_REG_MBOX_EVT_ENTRIES, RING);
	ct_set_reg(c, SPYRE_REG_MBOX_CMD_TAIL, 0);
	ct_set_reg(c, SPYRE_REG_MBOX_EVT_HEAD, 0);
	ct_set_reg64(c, SPYRE_REG_VEC_BASE(v), spyre_inproc_bus(c->ip, c->vec));
	ct_set_reg(c, SPYRE_REG_VEC_ENTRIES(v), VEC_ENTRIES);
	ct_set_reg(c, SPYRE_REG_VEC_COUNT, c->vectors);
	return 0;
}

struct ct_card *ct_boot(const struct spyre_card_config *cfg, size_t arena, uint32_t vectors)
{
	struct ct_card *c = calloc(1, sizeof(*c));
	void *image = NULL;
	size_t size;

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	c->vectors = vectors;
	c->next_table = TABLES;
	c->next_page = PAGES;
	c->ip = spyre_inproc_new(cfg, arena);
	c->sliced = cfg && cfg->sliced;
	if (!c->ip)
		goto fail;
	c->card = spyre_inproc_card(c->ip);
	c->mem = spyre_card_memory(c->card);
	image = ct_image(&size);
	if (!image || set_up_mailbox(c) || ct_boot_image(c, image, size))
		goto fail;
	free(image);
	return c;
fail:
	free(image);
	ct_free(c);
	return NULL;
}

void ct_free(struct ct_card *c)
{
	struct owned *o, *next;

	if (!c)
		return;
	spyre_inproc_free(c->ip);
	for (o = c->owned; o; o = next) {
		next = o->next;
		free(o);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* --- Mailbox -------------------------------------------------------------------------------- */

uint32_t ct_send(struct ct_card *c, uint32_t type, const void *body, uint32_t length)
{
	struct poll p = poll_start(c, CT_TIMEOUT_MS);
	struct spyre_msg *m;
	uint32_t tag;

	pthread_mutex_lock(&c->lock);
	while (c->cmd_tail - ct_reg(c, SPYRE_REG_MBOX_CMD_HEAD) >= RING && poll_again(&p))
		;
	m = &c->cmd[c->cmd_tail % RING];
	memset(m, 0, sizeof(*m));
	tag = ++c->tag;
	m->MessageAppId = SPYRE_APP_DRIVER;
	m->MessageType = (uint16_t)type;
	m->MessageTag = tag;
	m->length = length;
	if (length && body)
		memcpy(m->body, body, length < SPYRE_MSG_BODY ? length : SPYRE_MSG_BODY);
	/* The register write orders: it is a full barrier on every way to the card. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ct_set_reg(c, SPYRE_REG_MBOX_CMD_TAIL, ++c->cmd_tail);
	pthread_mutex_unlock(&c->lock);
	return tag;
}

/* Moves what the card has sent into .kept; true: there was something. Lock held. */
static bool collect(struct ct_card *c)
{
	bool some = false;

	for (;;) {
		struct spyre_msg *m = &c->evt[c->evt_head % RING];

		if (ct_load(&m->seq) != c->evt_head + 1)
			break;
		/* The oldest event goes first when nobody reads them. */
		if (c->nkept == sizeof(c->kept) / sizeof(c->kept[0])) {
			memmove(c->kept, c->kept + 1, sizeof(c->kept) - sizeof(c->kept[0]));
			c->nkept--;
		}
		c->kept[c->nkept++] = *m;
		c->evt_head++;
		some = true;
	}
	if (some)
		ct_set_reg(c, SPYRE_REG_MBOX_EVT_HEAD, c->evt_head);
	return some;
}

static int take(struct ct_card *c, bool answer, uint32_t key, struct spyre_msg *msg, int timeout_ms)
{
	uint64_t end = ct_now_ns() + timeout_ms * 1000000ull;
	uint64_t seen;
	unsigned int i;
	int ret;

	for (;;) {
		seen = spyre_inproc_raised(c->ip, 0);
		pthread_mutex_lock(&c->lock);
		collect(c);
		for (i = 0; i < c->nkept; i++) {
			struct spyre_msg *m = &c->kept[i];
			bool is_answer = m->MessageType == SPYRE_MSG_RESPONSE;

			if (is_answer != answer ||
			    (answer ? m->MessageTag != key : key && m->MessageType != key))
				continue;
			if (msg)
				*msg = *m;
			ret = m->status;
			memmove(m, m + 1, (size_t)(&c->kept[--c->nkept] - m) * sizeof(*m));
			pthread_mutex_unlock(&c->lock);
			return ret;
		}
		pthread_mutex_unlock(&c->lock);
		if (ct_now_ns() > end)
			return -ETIMEDOUT;
		if (c->sliced)
			spyre_inproc_advance(c->ip, SPYRE_SLICE_NS);
		else
			spyre_inproc_wait(c->ip, 0, seen, 20);
	}
}

int ct_answer(struct ct_card *c, uint32_t tag, struct spyre_msg *msg, int timeout_ms)
{
	return take(c, true, tag, msg, timeout_ms);
}

int ct_event(struct ct_card *c, uint32_t type, struct spyre_msg *msg, int timeout_ms)
{
	int ret = take(c, false, type, msg, timeout_ms);

	return ret < 0 ? ret : 0;
}

int ct_call(struct ct_card *c, uint32_t type, const void *body, uint32_t length,
	    struct spyre_msg *answer)
{
	int ret = ct_answer(c, ct_send(c, type, body, length), answer, CT_TIMEOUT_MS);

	if (ret < 0) {
		fprintf(stderr, "message %u was not answered\n", type);
		ct_print_log(c);
	}
	return ret;
}

int ct_call_id(struct ct_card *c, uint32_t type, uint32_t id, uint32_t arg)
{
	struct spyre_msg_id m = { .id = id, .arg = arg };

	return ct_call(c, type, &m, sizeof(m), NULL);
}

/* --- Address spaces ------------------------------------------------------------------------- */

static uint64_t table_alloc(struct ct_card *c, uint64_t bytes)
{
	uint64_t at;

	pthread_mutex_lock(&c->lock);
	at = c->next_table;
	c->next_table += (bytes + 4095) & ~4095ull;
	pthread_mutex_unlock(&c->lock);
	if (at + bytes > PAGES) {
		fprintf(stderr, "no room for tables\n");
		abort();
	}
	memset(c->mem + at, 0, bytes);
	return at;
}

uint64_t ct_pages(struct ct_card *c, unsigned int n)
{
	uint64_t end = spyre_card_memory_size(c->card) - SPYRE_FW_MEM_SIZE;
	uint64_t at = 0;

	pthread_mutex_lock(&c->lock);
	if (c->next_page + n * SPYRE_PAGE_SIZE <= end) {
		at = c->next_page;
		c->next_page += n * SPYRE_PAGE_SIZE;
	}
	pthread_mutex_unlock(&c->lock);
	return at;
}

struct ct_ctx *ct_ctx_new(struct ct_card *c, uint32_t id)
{
	struct ct_ctx *x = own(c, sizeof(*x));
	struct spyre_msg_ctx m = { .id = id };

	if (!x)
		return NULL;
	x->card = c;
	x->id = id;
	x->table_addr = table_alloc(c, sizeof(*x->table));
	x->table = (void *)(c->mem + x->table_addr);
	x->arm = spyre_inproc_alloc(c->ip, 4096, 4096);
	x->next_hmva = 0x200000;
	/* Blocks of doorbell pages by context, 32 of them each. */
	x->next_page = id * 32;
	if (!x->arm)
		return NULL;
	x->usage = (void *)((uint8_t *)x->arm + 128);
	m.vector = c->vectors == 1 ? 0 : 1;
	m.table = x->table_addr;
	m.arm = spyre_inproc_bus(c->ip, x->arm);
	m.usage = spyre_inproc_bus(c->ip, x->usage);
	return ct_call(c, SPYRE_MSG_CTX_CREATE, &m, sizeof(m), NULL) ? NULL : x;
}

int ct_ctx_free(struct ct_ctx *x)
{
	return ct_call_id(x->card, SPYRE_MSG_CTX_DESTROY, x->id, 0);
}

/* The page table of a segment, full size, made when it is first needed. */
static uint64_t *segment_table(struct ct_ctx *x, struct spyre_segment *s)
{
	if (!s->table) {
		s->table = table_alloc(x->card, SPYRE_TABLE_SIZE);
		__atomic_store_n(&s->pages, SPYRE_SEGMENT_PAGES, __ATOMIC_RELEASE);
	}
	return (uint64_t *)(void *)(x->card->mem + s->table);
}

void ct_map_card(struct ct_ctx *x, uint64_t dmva, uint64_t phys, unsigned int pages, uint64_t flags)
{
	unsigned int i;

	for (i = 0; i < pages; i++) {
		uint64_t at = dmva + i * SPYRE_PAGE_SIZE;
		uint64_t *t = segment_table(x, &x->table->dmva[at >> SPYRE_SEGMENT_SHIFT]);

		__atomic_store_n(&t[at >> SPYRE_PAGE_SHIFT & (SPYRE_SEGMENT_PAGES - 1)],
				 (phys + i * SPYRE_PAGE_SIZE) | flags | SPYRE_PTE_VALID,
				 __ATOMIC_RELEASE);
	}
}

static uint64_t *host_entry(struct ct_ctx *x, uint64_t hmva)
{
	uint64_t *t = segment_table(x, &x->table->hmva[hmva >> SPYRE_SEGMENT_SHIFT]);
	uint64_t *e = &t[hmva >> SPYRE_PAGE_SHIFT & (SPYRE_SEGMENT_PAGES - 1)];

	if (!*e)
		__atomic_store_n(e, table_alloc(x->card, SPYRE_HOST_L2_SIZE) | SPYRE_PTE_VALID,
				 __ATOMIC_RELEASE);
	t = (uint64_t *)(void *)(x->card->mem + (*e & SPYRE_PTE_ADDR));
	return &t[hmva >> 12 & (SPYRE_HOST_L2_ENTRIES - 1)];
}

void ct_map_host(struct ct_ctx *x, uint64_t hmva, uint64_t bus, uint64_t bytes, uint64_t flags)
{
	uint64_t i;

	for (i = 0; i < bytes; i += 4096)
		__atomic_store_n(host_entry(x, hmva + i),
				 (bus + i) | flags | SPYRE_PTE_LEAF | SPYRE_PTE_VALID,
				 __ATOMIC_RELEASE);
}

void ct_unmap_host(struct ct_ctx *x, uint64_t hmva, uint64_t bytes)
{
	uint64_t i;

	for (i = 0; i < bytes; i += 4096)
		__atomic_store_n(host_entry(x, hmva + i), 0, __ATOMIC_RELEASE);
	ct_call_id(x->card, SPYRE_MSG_CTX_INVALIDATE, x->id, 0);
}

void *ct_host(struct ct_ctx *x, uint64_t bytes, uint64_t flags, uint64_t *hmva)
{
	void *p;

	bytes = (bytes + 4095) & ~4095ull;
	p = spyre_inproc_alloc(x->card->ip, bytes, 4096);
	if (!p)
		return NULL;
	*hmva = x->next_hmva;
	/* A page stays free behind it. */
	x->next_hmva += bytes + 4096;
	ct_map_host(x, *hmva, spyre_inproc_bus(x->card->ip, p), bytes, flags);
	return p;
}

/* --- Queues --------------------------------------------------------------------------------- */

struct ct_queue *ct_queue_prepare(struct ct_ctx *x, const struct ct_queue_config *cfg,
				  struct spyre_msg_queue *m)
{
	static const struct ct_queue_config def;
	struct ct_queue *q = own(x->card, sizeof(*q));
	uint64_t shared;

	if (!q)
		return NULL;
	if (!cfg)
		cfg = &def;
	memset(m, 0, sizeof(*m));
	q->ctx = x;
	q->id = x->next_page++;
	q->entries = cfg->entries ? cfg->entries : 256;
	q->tail = cfg->start;
	q->rung = cfg->start;
	m->id = q->id;
	m->context = x->id;
	m->entries = q->entries;
	m->priority = cfg->priority;
	m->timeout = cfg->timeout;
	m->start = cfg->start;
	m->generation = ct_reg(x->card, SPYRE_REG_RESET_GEN);
	/* Ring and shadow are the user's; the rest only the card may write, through the firmware. */
	q->ring = ct_host(x, q->entries * sizeof(*q->ring), SPYRE_PTE_WRITE, &m->ring);
	if (!cfg->no_response)
		q->rb = ct_host(x, q->entries * sizeof(*q->rb), SPYRE_PTE_WRITE | SPYRE_PTE_PRIV,
				&m->response);
	q->shadow = ct_host(x, 4096, SPYRE_PTE_WRITE, &m->shadow);
	q->status = ct_host(x, 4096, SPYRE_PTE_WRITE | SPYRE_PTE_PRIV, &shared);
	m->status = shared;
	if (!q->ring || !q->shadow || !q->status)
		return NULL;
	q->shadow->tail = cfg->start;
	return q;
}

struct ct_queue *ct_queue_new(struct ct_ctx *x, const struct ct_queue_config *cfg)
{
	struct spyre_msg_queue m;
	struct ct_queue *q = ct_queue_prepare(x, cfg, &m);
	int ret;

	if (!q)
		return NULL;
	ret = ct_call(x->card, SPYRE_MSG_QUEUE_CREATE, &m, sizeof(m), NULL);
	if (ret) {
		fprintf(stderr, "queue %u not created: %d\n", q->id, ret);
		return NULL;
	}
	return q;
}

int ct_queue_free(struct ct_queue *q)
{
	return ct_call_id(q->ctx->card, SPYRE_MSG_QUEUE_DESTROY, q->id, 0);
}

void ct_ring(struct ct_queue *q, uint32_t value)
{
	q->doorbells++;
	spyre_card_db_write(q->ctx->card->card, (uint64_t)q->id * SPYRE_DB_PAGE_SIZE, value, 4);
}

void ct_submit(struct ct_queue *q)
{
	uint32_t old = q->rung, new = q->tail;

	if (old == new)
		return;
	/* Release: the entries are seen before the tail. */
	__atomic_store_n(&q->shadow->tail, new, __ATOMIC_RELEASE);
	/* The tail is seen before event_idx is read; see spyre/cb.h and firmware/queue.c. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if ((uint32_t)(new - ct_load(&q->status->event_idx) - 1) < (uint32_t)(new - old))
		ct_ring(q, new);
	q->rung = new;
}

uint32_t ct_put(struct ct_queue *q, const struct spyre_cb *cb)
{
	struct poll p = poll_start(q->ctx->card, CT_TIMEOUT_MS);

	while (q->tail - ct_load(&q->status->fetched) >= q->entries) {
		ct_submit(q);
		if (!poll_again(&p)) {
			fprintf(stderr, "queue %u: the ring stays full\n", q->id);
			abort();
		}
	}
	q->ring[q->tail & (q->entries - 1)] = *cb;
	return q->tail++;
}

int ct_wait(struct ct_queue *q, uint32_t index, int timeout_ms)
{
	struct poll p = poll_start(q->ctx->card, timeout_ms);

	while ((int32_t)(ct_load(&q->status->done) - index) <= 0)
		if (!poll_again(&p))
			return -ETIMEDOUT;
	return 0;
}

const struct spyre_rb *ct_response(struct ct_queue *q, uint32_t index, int timeout_ms)
{
	const struct spyre_rb *rb = &q->rb[index & (q->entries - 1)];
	struct poll p = poll_start(q->ctx->card, timeout_ms);

	while (ct_load(&rb->valid) != index + 1)
		if (!poll_again(&p))
			return NULL;
	return rb;
}

int ct_wait_state(struct ct_queue *q, uint32_t state, int timeout_ms)
{
	struct poll p = poll_start(q->ctx->card, timeout_ms);

	while (ct_load(&q->status->state) != state)
		if (!poll_again(&p))
			return -ETIMEDOUT;
	return 0;
}

int ct_run(struct ct_queue *q, const struct spyre_cb *cb)
{
	struct spyre_cb copy = *cb;
	const struct spyre_rb *rb;
	uint32_t index;

	copy.flags |= SPYRE_CB_F_RESPONSE;
	index = ct_put(q, &copy);
	ct_submit(q);
	rb = ct_response(q, index, CT_TIMEOUT_MS);
	return rb ? (int)rb->status : -ETIMEDOUT;
}

struct spyre_cb ct_cb(uint16_t type, uint16_t flags)
{
	struct spyre_cb cb;

	memset(&cb, 0, sizeof(cb));
	cb.type = type;
	cb.flags = flags;
	return cb;
}

struct spyre_cb ct_cb_copy(uint16_t type, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct spyre_cb cb = ct_cb(type, 0);

	cb.u.dma.dst = dst;
	cb.u.dma.src = src;
	cb.u.dma.bytes = bytes;
	cb.u.dma.ndims = 1;
	return cb;
}

struct spyre_cb ct_cb_fill(uint64_t dst, uint64_t bytes, uint64_t pattern)
{
	struct spyre_cb cb = ct_cb(SPYRE_CB_FILL, 0);

	cb.u.fill.dst = dst;
	cb.u.fill.bytes = bytes;
	cb.u.fill.pattern = pattern;
	return cb;
}

struct spyre_cb ct_cb_sync(uint16_t type, uint16_t flags, uint64_t addr, uint64_t value)
{
	struct spyre_cb cb = ct_cb(type, flags);

	cb.u.sync.addr = addr;
	cb.u.sync.value = value;
	return cb;
}
