// SPDX-License-Identifier: MIT
/*
 * Backend "model": cards in this process. The card model runs the real firmware image; this file is
 * what the kernel driver is otherwise: it boots the firmware, talks to it through the mailbox,
 * builds address spaces and queues, and answers the driver's ioctls.
 *
 * It is made for one well-meaning process: limits are the card's, there are no quotas, and a user
 * that writes over its own process is not defended against. Memory of the program is used where it
 * lies, not pinned. Host buffers are shared with other processes as memfds; card memory is not.
 *
 * Locks: model_state.lock (list of cards, boot), card.lock (everything of a card but the mailbox),
 * card.mbox_lock (mailbox; leaf). Waits for answers of the firmware are made with card.lock held:
 * the thread that collects answers takes only mbox_lock and, for records, ras_lock.
 */
#include "backend.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <spyre/cb.h>
#include <spyre/fw.h>
#include <spyre/mcu.h>

#include "inproc.h"

#define MB		(1ull << 20)
#define PAGE		4096u
#define MAX_CARDS	16
#define MAX_THREADS	1024
#define CMDS		64u
#define EVTS		256u
#define VEC_ENTRIES	256u
#define VECTOR		1u		/* of all contexts */
#define TABLES_AT	(4 * MB)	/* the image lies below */
#define TABLES_BYTES	(60 * MB)	/* page tables, in pieces of 4 KiB */
#define TABLE_PIECES	(TABLES_BYTES / PAGE)
#define PAGES_AT	(64 * MB)	/* from here to the firmware's part: buffers */
#define ANSWER_NS	10000000000ll	/* a firmware that takes longer is lost */
#define RAS_KEPT	512u
#define HMVA_FIRST	SPYRE_PAGE_SIZE	/* 0 is never a good address */
#define WAIT_MAX	64u

struct model_state;
struct model_dev;

struct answer {
	struct answer *next;
	uint32_t tag;
	bool done;
	struct spyre_msg msg;
};

struct model_card {
	struct model_state *state;
	int number;
	pthread_mutex_t lock;
	bool up;
	uint32_t generation;
	struct spyre_inproc *ip;
	struct spyre_card *card;
	uint8_t *mem;
	struct spyre_msg_info info;
	uint32_t reset_gen;		/* counts "flr"; added to the card's own */

	/* Pages of 2 MiB and pieces of the table area: free ones are 0. */
	uint8_t *page_used;
	uint32_t pages, pages_used;
	uint8_t *piece_used;
	uint32_t pieces_used;

	struct model_dev *context[MCU_CONTEXTS];
	uint32_t contexts_used;
	uint8_t block_used[SPYRE_DB_BLOCKS];
	uint32_t queues_used;
	struct model_dev *devs;

	pthread_mutex_t mbox_lock;
	pthread_cond_t mbox_cond;
	struct spyre_msg *cmd, *evt;
	uint32_t cmd_tail, evt_head, tag;
	struct answer *answers;

	/* Somebody waits for progress of a queue or a fence. */
	pthread_mutex_t wait_lock;
	pthread_cond_t wait_cond;
	uint64_t progress;

	pthread_mutex_t ras_lock;
	struct {
		struct drm_spyre_ras ras;
		uint32_t context;
	} ras[RAS_KEPT];
	uint64_t ras_seq;

	struct spyre_vec_event *vec;
	pthread_t thread;
	int quit_fd;
	bool quit;
};

struct model_state {
	pthread_mutex_t lock;
	int count;
	uint64_t memory;
	unsigned int threads;
	bool timing_off;
	bool accumulate_dl16;
	bool check_races;
	FILE *counters;			/* where all cards' go at the end, or NULL */
	uint8_t *image;
	size_t image_size;
	struct model_card *cards[MAX_CARDS];
};

struct model_bo {
	uint64_t size;
	uint32_t flags;
	unsigned int refs;		/* handle and bindings */
	uint32_t *pages;		/* device: numbers of 2 MiB pages */
	uint8_t *cpu;			/* host */
	uint64_t bus;
	int fd;				/* host: the memfd of its memory, -1: none */
};

/* Of BO_CREATE, in this backend alone: HOST memory that others can map. */
#define BO_EXPORTABLE	(1u << 31)

struct model_bind {
	struct model_bind *next;	/* by address, per space */
	uint64_t addr, size;
	struct model_bo *bo;
};

struct model_mapping {
	struct model_mapping *next;
	struct model_bo *bo;
};

struct model_queue {
	uint32_t id;			/* doorbell page, the user's name too */
	uint32_t entries;
	struct model_bo *ring, *status;
	uint64_t ring_hmva, status_hmva;
};

/* One open of a card: at most one context. */
struct model_dev {
	struct model_dev *next;
	struct model_card *card;
	uint32_t generation;
	bool lost;
	uint32_t id;			/* of the context, 0: none yet */
	uint64_t table_at;
	struct spyre_context_table *table;
	struct model_bo *pages;		/* arm and usage */
	struct spyre_arm *arm;
	struct spyre_usage *usage;
	struct model_bo **bos;		/* by handle - 1 */
	uint32_t nbos;
	struct model_bind *dmva, *hmva;
	struct model_queue **queues;
	uint32_t nqueues;
	int32_t blocks[SPYRE_DB_BLOCKS];	/* doorbell blocks, -1 ends */
	uint32_t nblocks, pages_left;
	uint32_t free_page[SPYRE_DB_PAGES];	/* doorbell pages of destroyed queues */
	uint32_t nfree_page;
	uint64_t host_bytes, device_bytes;
	struct model_mapping *maps;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000ll, .tv_nsec = ns % 1000000000ll };
}

static uint32_t reg(struct model_card *c, uint32_t offset)
{
	return (uint32_t)spyre_card_mmio_read(c->card, offset, 4);
}

static void set_reg(struct model_card *c, uint32_t offset, uint32_t value)
{
	spyre_card_mmio_write(c->card, offset, value, 4);
}

static void set_reg64(struct model_card *c, uint32_t offset, uint64_t value)
{
	set_reg(c, offset, (uint32_t)value);
	set_reg(c, offset + 4, (uint32_t)(value >> 32));
}

/* --- Mailbox -------------------------------------------------------------------------------- */

static void keep_ras(struct model_card *c, const struct spyre_msg_ras *m)
{
	struct drm_spyre_ras *r;
	uint32_t i;

	pthread_mutex_lock(&c->ras_lock);
	c->ras[c->ras_seq % RAS_KEPT].context = m->context;
	r = &c->ras[c->ras_seq % RAS_KEPT].ras;
	memset(r, 0, sizeof(*r));
	r->seq = ++c->ras_seq;
	r->time_ns = (uint64_t)now_ns();
	r->soc_time = m->time;
	r->cookie = m->cookie;
	r->addr = m->addr;
	r->code = m->code;
	r->severity = m->severity;
	r->category = m->category;
	r->action = m->action;
	r->status = m->status;
	r->queue = m->queue;
	r->entry = m->entry;
	r->syndrome = m->syndrome;
	r->mode = m->mode;
	r->err_code = m->err_code;
	r->err_pc = m->err_pc;
	r->err_core = m->err_core;
	r->err_unit = m->err_unit;
	r->nstuck = m->nstuck;
	for (i = 0; i < 4; i++)
		memcpy(&r->stuck[i], &m->stuck[i], sizeof(r->stuck[i]));
	pthread_mutex_unlock(&c->ras_lock);
}

static void collect(struct model_card *c)
{
	struct spyre_msg m;
	struct answer *a;
	bool some = false;

	pthread_mutex_lock(&c->mbox_lock);
	for (;;) {
		struct spyre_msg *slot = &c->evt[c->evt_head % EVTS];

		/* Written last, with release. */
		if (__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) != c->evt_head + 1)
			break;
		m = *slot;
		c->evt_head++;
		some = true;
		if (m.MessageType == SPYRE_MSG_RESPONSE) {
			for (a = c->answers; a; a = a->next) {
				if (a->tag != m.MessageTag)
					continue;
				a->msg = m;
				a->done = true;
			}
		} else if (m.MessageType == SPYRE_MSG_EVT_RAS) {
			struct spyre_msg_ras ras;

			memcpy(&ras, m.body, sizeof(ras));
			keep_ras(c, &ras);
		}
	}
	if (some) {
		set_reg(c, SPYRE_REG_MBOX_EVT_HEAD, c->evt_head);
		pthread_cond_broadcast(&c->mbox_cond);
	}
	pthread_mutex_unlock(&c->mbox_lock);
}

/* Sends a command and waits for its answer. A message status becomes an errno. */
static int call(struct model_card *c, uint32_t type, const void *body, uint32_t length,
		struct spyre_msg *out)
{
	static const int errs[] = {
		[SPYRE_MSG_OK] = 0,
		[SPYRE_MSG_ERR_TYPE] = -EOPNOTSUPP,
		[SPYRE_MSG_ERR_LENGTH] = -EPROTO,
		[SPYRE_MSG_ERR_ID] = -ENOENT,
		[SPYRE_MSG_ERR_ARG] = -EINVAL,
		[SPYRE_MSG_ERR_BUSY] = -EBUSY,
		[SPYRE_MSG_ERR_LIMIT] = -EMFILE,
		[SPYRE_MSG_ERR_FAULT] = -EFAULT,
	};
	int64_t end = now_ns() + ANSWER_NS;
	struct timespec ts = timespec_of(end);
	struct answer a = { 0 }, **link;
	struct spyre_msg *m;
	int ret = 0;

	pthread_mutex_lock(&c->mbox_lock);
	while (c->cmd_tail - reg(c, SPYRE_REG_MBOX_CMD_HEAD) >= CMDS) {
		struct timespec nap = timespec_of(now_ns() + 1000000);

		if (now_ns() > end) {
			pthread_mutex_unlock(&c->mbox_lock);
			return -EIO;
		}
		pthread_cond_timedwait(&c->mbox_cond, &c->mbox_lock, &nap);
	}
	m = &c->cmd[c->cmd_tail % CMDS];
	memset(m, 0, sizeof(*m));
	a.tag = ++c->tag;
	m->MessageAppId = SPYRE_APP_DRIVER;
	m->MessageType = (uint16_t)type;
	m->MessageTag = a.tag;
	m->length = length;
	if (length)
		memcpy(m->body, body, length);
	a.next = c->answers;
	c->answers = &a;
	/* The message is whole before the card hears of it. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	set_reg(c, SPYRE_REG_MBOX_CMD_TAIL, ++c->cmd_tail);
	while (!a.done && !ret) {
		if (pthread_cond_timedwait(&c->mbox_cond, &c->mbox_lock, &ts) == ETIMEDOUT &&
		    !a.done)
			ret = -EIO;
	}
	for (link = &c->answers; *link != &a; link = &(*link)->next)
		;
	*link = a.next;
	pthread_mutex_unlock(&c->mbox_lock);
	if (ret) {
		fprintf(stderr, "spyrert: the firmware of card %d did not answer message %u\n",
			c->number, type);
		return ret;
	}
	if (out)
		*out = a.msg;
	return a.msg.status < sizeof(errs) / sizeof(errs[0]) ? errs[a.msg.status] : -EPROTO;
}

static int call_id(struct model_card *c, uint32_t type, uint32_t id, uint32_t arg)
{
	struct spyre_msg_id m = { .id = id, .arg = arg };

	return call(c, type, &m, sizeof(m), NULL);
}

/* Interrupts: vector 0 is the mailbox, the others say that some queue moved. */
static void *irq_main(void *arg)
{
	struct model_card *c = arg;
	struct pollfd fds[3] = {
		{ .fd = spyre_inproc_fd(c->ip, 0), .events = POLLIN },
		{ .fd = spyre_inproc_fd(c->ip, VECTOR), .events = POLLIN },
		{ .fd = c->quit_fd, .events = POLLIN },
	};
	uint64_t n;
	int i;

	while (!__atomic_load_n(&c->quit, __ATOMIC_ACQUIRE)) {
		/* Bounded, so that a lost interrupt costs time and no more. */
		poll(fds, 3, 100);
		for (i = 0; i < 2; i++)
			if (fds[i].revents & POLLIN && read(fds[i].fd, &n, sizeof(n)) < 0 &&
			    errno != EAGAIN)
				break;
		collect(c);
		pthread_mutex_lock(&c->wait_lock);
		c->progress++;
		pthread_cond_broadcast(&c->wait_cond);
		pthread_mutex_unlock(&c->wait_lock);
	}
	return NULL;
}

/* --- Boot ----------------------------------------------------------------------------------- */

static int boot(struct model_card *c, char *text, size_t size)
{
	struct model_state *s = c->state;
	int64_t end = now_ns() + ANSWER_NS;
	struct spyre_msg answer;
	uint32_t status;
	int ret;

	set_reg64(c, SPYRE_REG_MBOX_CMD_BASE, spyre_inproc_bus(c->ip, c->cmd));
	set_reg64(c, SPYRE_REG_MBOX_EVT_BASE, spyre_inproc_bus(c->ip, c->evt));
	set_reg(c, SPYRE_REG_MBOX_CMD_ENTRIES, CMDS);
	set_reg(c, SPYRE_REG_MBOX_EVT_ENTRIES, EVTS);
	set_reg(c, SPYRE_REG_MBOX_CMD_TAIL, 0);
	set_reg(c, SPYRE_REG_MBOX_EVT_HEAD, 0);
	set_reg64(c, SPYRE_REG_VEC_BASE(VECTOR), spyre_inproc_bus(c->ip, c->vec));
	set_reg(c, SPYRE_REG_VEC_ENTRIES(VECTOR), VEC_ENTRIES);
	set_reg(c, SPYRE_REG_VEC_COUNT, SPYRE_MSI_VECTORS);
	memset(c->cmd, 0, CMDS * sizeof(*c->cmd));
	memset(c->evt, 0, EVTS * sizeof(*c->evt));
	memset(c->vec, 0, VEC_ENTRIES * sizeof(*c->vec));
	pthread_mutex_lock(&c->mbox_lock);
	c->cmd_tail = 0;
	c->evt_head = 0;
	pthread_mutex_unlock(&c->mbox_lock);

	memcpy(c->mem, s->image, s->image_size);
	set_reg64(c, SPYRE_REG_FW_ADDR, 0);
	set_reg(c, SPYRE_REG_FW_LEN, (uint32_t)s->image_size);
	set_reg(c, SPYRE_REG_MCU_CTRL, SPYRE_MCU_CTRL_RUN);
	for (;;) {
		status = reg(c, SPYRE_REG_BOOT_STATUS);
		if (status == SPYRE_BOOT_RUNNING && reg(c, SPYRE_REG_STATE) == SPYRE_STATE_ONLINE)
			break;
		if (status > SPYRE_BOOT_RUNNING || now_ns() > end) {
			snprintf(text, size,
				 "card %d did not boot: boot status %u, progress %#x; is the "
				 "firmware image good?",
				 c->number, status, reg(c, SPYRE_REG_BOOT_PROGRESS));
			return -EIO;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
	ret = call(c, SPYRE_MSG_GET_INFO, NULL, 0, &answer);
	if (ret) {
		snprintf(text, size, "card %d does not answer", c->number);
		return ret;
	}
	memcpy(&c->info, answer.body, sizeof(c->info));
	if (c->info.proto >> 16 != SPYRE_PROTO_MAJOR) {
		snprintf(text, size, "firmware speaks protocol %u, this library %u",
			 c->info.proto >> 16, SPYRE_PROTO_MAJOR);
		return -EPROTO;
	}
	c->up = true;
	return 0;
}

static void card_free(struct model_card *c)
{
	uint64_t one = 1;

	if (!c)
		return;
	if (c->ip) {
		if (c->quit_fd >= 0) {
			__atomic_store_n(&c->quit, true, __ATOMIC_RELEASE);
			if (write(c->quit_fd, &one, sizeof(one)) == sizeof(one))
				pthread_join(c->thread, NULL);
			close(c->quit_fd);
		}
		spyre_inproc_free(c->ip);
	}
	free(c->page_used);
	free(c->piece_used);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->mbox_lock);
	pthread_mutex_destroy(&c->wait_lock);
	pthread_mutex_destroy(&c->ras_lock);
	pthread_cond_destroy(&c->mbox_cond);
	pthread_cond_destroy(&c->wait_cond);
	free(c);
}

/* Powers the card on; state lock held. */
static int card_get(struct model_state *s, int number, struct model_card **out, char *text,
		    size_t size)
{
	struct spyre_card_config cfg = {
		.memory = s->memory,
		.aperture = 256 * MB,
		.mem_fd = -1,
		.threads = s->threads,
		.timing_off = s->timing_off,
		.accumulate_dl16 = s->accumulate_dl16,
		.check_races = s->check_races,
	};
	pthread_condattr_t attr;
	struct model_card *c;
	char buf[200];
	int ret;

	c = s->cards[number];
	if (c) {
		ret = 0;
		pthread_mutex_lock(&c->lock);
		if (!c->up)
			ret = boot(c, text, size);
		pthread_mutex_unlock(&c->lock);
		*out = c;
		return ret;
	}
	snprintf(cfg.serial, sizeof(cfg.serial), "MODEL%04d", number);
	if (spyre_card_config_check(&cfg, buf, sizeof(buf))) {
		snprintf(text, size, "SPYRERT_MODEL_*: %s", buf);
		return -EINVAL;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->state = s;
	c->number = number;
	c->quit_fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->mbox_lock, NULL);
	pthread_mutex_init(&c->wait_lock, NULL);
	pthread_mutex_init(&c->ras_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->mbox_cond, &attr);
	pthread_cond_init(&c->wait_cond, &attr);
	pthread_condattr_destroy(&attr);
	c->ip = spyre_inproc_new(&cfg, 2 * MB);
	if (!c->ip) {
		ret = -errno;
		snprintf(text, size, "cannot make card %d: %s", number, strerror(-ret));
		goto fail;
	}
	c->card = spyre_inproc_card(c->ip);
	c->mem = spyre_card_memory(c->card);
	c->pages = (uint32_t)((spyre_card_memory_size(c->card) - SPYRE_FW_MEM_SIZE - PAGES_AT) >>
			      SPYRE_PAGE_SHIFT);
	c->page_used = calloc(c->pages, 1);
	c->piece_used = calloc(TABLE_PIECES, 1);
	c->cmd = spyre_inproc_alloc(c->ip, CMDS * sizeof(*c->cmd), PAGE);
	c->evt = spyre_inproc_alloc(c->ip, EVTS * sizeof(*c->evt), PAGE);
	c->vec = spyre_inproc_alloc(c->ip, VEC_ENTRIES * sizeof(*c->vec), PAGE);
	if (!c->page_used || !c->piece_used || !c->cmd || !c->evt || !c->vec) {
		ret = -ENOMEM;
		goto fail;
	}
	c->quit_fd = eventfd(0, EFD_CLOEXEC);
	if (c->quit_fd < 0) {
		ret = -errno;
		goto fail;
	}
	ret = -pthread_create(&c->thread, NULL, irq_main, c);
	if (ret) {
		close(c->quit_fd);
		c->quit_fd = -1;
		goto fail;
	}
	ret = boot(c, text, size);
	if (ret)
		goto fail;
	s->cards[number] = c;
	*out = c;
	return 0;
fail:
	card_free(c);
	return ret;
}

/* "4G" as bytes; 0: not a size. */
static uint64_t parse_size(const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	switch (*end) {
	case 'G':
	case 'g':
		v <<= 10;
		/* fall through */
	case 'M':
	case 'm':
		v <<= 10;
		/* fall through */
	case 'K':
	case 'k':
		v <<= 10;
		end++;
	}
	return *end || end == text ? 0 : v;
}

static const char image_name[] = "spyre/spyre-dd2-1.fw";

/*
 * Where the image is when nobody says: below the folder of this library (installed), beside that folder
 * (where it was built), or where the kernel looks.
 */
static const char *default_image(char *path, size_t size)
{
	static const char *const below[] = { "", "/.." };
	const char *slash;
	Dl_info self;
	size_t i;

	if (dladdr(&image_name, &self) && self.dli_fname) {
		slash = strrchr(self.dli_fname, '/');
		for (i = 0; i < 2; i++) {
			int n = snprintf(path, size, "%.*s%s/firmware/%s",
					 slash ? (int)(slash - self.dli_fname) : 1,
					 slash ? self.dli_fname : ".", below[i], image_name);

			if (n < (int)size && !access(path, R_OK))
				return path;
		}
	}
	snprintf(path, size, "/lib/firmware/%s", image_name);
	return path;
}

static int read_image(struct model_state *s, char *text, size_t size)
{
	const char *path = getenv("SPYRERT_FIRMWARE");
	char found[PATH_MAX];
	struct stat st;
	ssize_t n;
	int fd;

	if (!path || !*path)
		path = default_image(found, sizeof(found));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		int err = errno;

		snprintf(text, size, "firmware image %s: %s; set SPYRERT_FIRMWARE to it", path,
			 strerror(err));
		if (fd >= 0)
			close(fd);
		return -err;
	}
	if (st.st_size < (off_t)SPYRE_FW_HEADER_SIZE || st.st_size > (off_t)TABLES_AT) {
		snprintf(text, size, "firmware image %s has %lld bytes, which cannot be right",
			 path, (long long)st.st_size);
		close(fd);
		return -EINVAL;
	}
	s->image_size = (size_t)st.st_size;
	s->image = malloc(s->image_size);
	n = s->image ? read(fd, s->image, s->image_size) : -1;
	close(fd);
	if (n != (ssize_t)s->image_size) {
		snprintf(text, size, "firmware image %s cannot be read", path);
		return -EIO;
	}
	return 0;
}

static int model_init(void **state, char *text, size_t size)
{
	struct model_state *s = calloc(1, sizeof(*s));
	const char *env;
	char *end;
	int ret;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->count = 1;
	s->memory = 4096 * MB;
	env = getenv("SPYRERT_MODEL_CARDS");
	if (env && *env) {
		unsigned long n = strtoul(env, &end, 10);

		s->count = (int)n;
		if (*end || *env == '-' || n > MAX_CARDS) {
			snprintf(text, size, "SPYRERT_MODEL_CARDS is '%s'; it must be 0 to %d", env,
				 MAX_CARDS);
			ret = -EINVAL;
			goto fail;
		}
	}
	env = getenv("SPYRERT_MODEL_MEMORY");
	if (env && *env) {
		s->memory = parse_size(env);
		if (!s->memory) {
			snprintf(text, size,
				 "SPYRERT_MODEL_MEMORY is '%s'; it must be a size such as 4G", env);
			ret = -EINVAL;
			goto fail;
		}
	}
	env = getenv("SPYRERT_MODEL_THREADS");
	if (env && *env) {
		unsigned long n = strtoul(env, &end, 10);

		s->threads = (unsigned int)n;
		if (*end || *env == '-' || n > MAX_THREADS) {
			snprintf(text, size,
				 "SPYRERT_MODEL_THREADS is '%s'; it must be 0 (as many as the host "
				 "has processors) to %d",
				 env, MAX_THREADS);
			ret = -EINVAL;
			goto fail;
		}
	}
	env = getenv("SPYRERT_MODEL_TIMING");
	if (env && *env) {
		s->timing_off = !strcmp(env, "off");
		if (!s->timing_off && strcmp(env, "virtual")) {
			snprintf(text, size,
				 "SPYRERT_MODEL_TIMING is '%s'; it must be virtual or off", env);
			ret = -EINVAL;
			goto fail;
		}
	}
	env = getenv("SPYRERT_MODEL_ACCUMULATE");
	if (env && *env) {
		s->accumulate_dl16 = !strcmp(env, "dl16");
		if (!s->accumulate_dl16 && strcmp(env, "fp32")) {
			snprintf(text, size,
				 "SPYRERT_MODEL_ACCUMULATE is '%s'; it must be fp32 or dl16", env);
			ret = -EINVAL;
			goto fail;
		}
	}
	env = getenv("SPYRERT_MODEL_CHECK");
	if (env && *env) {
		s->check_races = !strcmp(env, "races");
		if (!s->check_races && strcmp(env, "none")) {
			snprintf(text, size,
				 "SPYRERT_MODEL_CHECK is '%s'; it must be none or races", env);
			ret = -EINVAL;
			goto fail;
		}
	}
	ret = read_image(s, text, size);
	if (ret)
		goto fail;
	/* Before there is anything to count, so that a bad name does not cost a run. */
	env = getenv("SPYRERT_MODEL_COUNTERS");
	if (env && *env) {
		s->counters = fopen(env, "we");
		if (!s->counters) {
			ret = -errno;
			snprintf(text, size,
				 "SPYRERT_MODEL_COUNTERS is '%s'; it must be a file that can be "
				 "written: %s",
				 env, strerror(-ret));
			goto fail;
		}
	}
	*state = s;
	return 0;
fail:
	free(s->image);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return ret;
}

/* A card, a counter and its value a line, of cards that were used. */
static void write_counters(struct model_state *s)
{
	struct spyre_counter *all;
	size_t n, k;
	int i;

	for (i = 0; i < MAX_CARDS; i++) {
		if (!s->cards[i])
			continue;
		n = spyre_card_counters(s->cards[i]->card, NULL, 0);
		all = calloc(n, sizeof(*all));
		if (!all)
			break;
		spyre_card_counters(s->cards[i]->card, all, n);
		for (k = 0; k < n; k++)
			fprintf(s->counters, "%d %s %llu\n", i, all[k].name,
				(unsigned long long)all[k].value);
		free(all);
	}
	if (i < MAX_CARDS || ferror(s->counters))
		fprintf(stderr, "spyrert: SPYRERT_MODEL_COUNTERS: not all could be written\n");
}

static void model_exit(void *state)
{
	struct model_state *s = state;
	int i;

	if (s->counters) {
		write_counters(s);
		if (fclose(s->counters))
			fprintf(stderr, "spyrert: SPYRERT_MODEL_COUNTERS: %s\n", strerror(errno));
	}
	for (i = 0; i < MAX_CARDS; i++)
		card_free(s->cards[i]);
	free(s->image);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int model_scan(void *state, struct rt_card *cards, int max)
{
	struct model_state *s = state;
	int i;

	for (i = 0; i < s->count && i < max; i++) {
		memset(&cards[i], 0, sizeof(cards[i]));
		cards[i].number = i;
		cards[i].works = true;
		snprintf(cards[i].info.name, sizeof(cards[i].info.name), "IBM Spyre (model)");
		snprintf(cards[i].info.serial, sizeof(cards[i].info.serial), "MODEL%04d", i);
		cards[i].info.numa_node = -1;
		/* It will be when it is opened: powering on is opening. */
		cards[i].info.state = SPYRE_STATE_ONLINE;
	}
	return i;
}

/* --- Card memory ---------------------------------------------------------------------------- */

/* n pieces of 4 KiB in a row, n a power of two; card address, 0: none. Card lock held. */
static uint64_t table_alloc(struct model_card *c, uint32_t n)
{
	uint32_t i, k;

	for (i = 0; i + n <= TABLE_PIECES; i += n) {
		for (k = 0; k < n && !c->piece_used[i + k]; k++)
			;
		if (k < n)
			continue;
		memset(c->piece_used + i, 1, n);
		c->pieces_used += n;
		memset(c->mem + TABLES_AT + (uint64_t)i * PAGE, 0, (size_t)n * PAGE);
		return TABLES_AT + (uint64_t)i * PAGE;
	}
	return 0;
}

static void table_free(struct model_card *c, uint64_t at, uint32_t n)
{
	memset(c->piece_used + (at - TABLES_AT) / PAGE, 0, n);
	c->pieces_used -= n;
}

static uint8_t *page_ptr(struct model_card *c, uint32_t page)
{
	return c->mem + PAGES_AT + ((uint64_t)page << SPYRE_PAGE_SHIFT);
}

/* Host memory that is there, for the card too; NULL and errno. */
static struct model_bo *bo_wrap(struct model_card *c, uint8_t *cpu, uint64_t size, uint32_t flags,
				int fd)
{
	struct model_bo *bo = calloc(1, sizeof(*bo));

	if (!bo)
		return NULL;
	bo->bus = spyre_inproc_map(c->ip, cpu, size, !(flags & DRM_SPYRE_BO_READONLY));
	if (!bo->bus) {
		free(bo);
		return NULL;
	}
	bo->cpu = cpu;
	bo->size = size;
	bo->flags = flags;
	bo->fd = fd;
	bo->refs = 1;
	return bo;
}

/* fd: of its memory, which becomes the buffer's on success; -1: the system's. */
static struct model_bo *bo_new_host(struct model_card *c, uint64_t size, uint32_t flags, int fd)
{
	int prot = flags & DRM_SPYRE_BO_READONLY ? PROT_READ : PROT_READ | PROT_WRITE;
	uint64_t pad = size >= SPYRE_PAGE_SIZE ? SPYRE_PAGE_SIZE : 0;
	struct model_bo *bo;
	uint8_t *p, *at;
	int err;

	/* Large ones on 2 MiB, so that leaves of that size can map them. */
	p = mmap(NULL, size + pad, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	at = p;
	if (pad) {
		at = (uint8_t *)(((uintptr_t)p + pad - 1) & ~(uintptr_t)(pad - 1));
		if (at != p)
			munmap(p, (size_t)(at - p));
		if (p + pad != at)
			munmap(at + size, (size_t)(p + pad - at));
	}
	if (fd >= 0 && mmap(at, size, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		err = errno;
		munmap(at, size);
		errno = err;
		return NULL;
	}
	/* A child must not share it: the card is not the child's. */
	madvise(at, size, MADV_DONTFORK);
	bo = bo_wrap(c, at, size, flags, fd);
	if (!bo)
		munmap(at, size);
	return bo;
}

/* Memory that can be passed on; it never gets smaller, so nobody who maps it finds it gone. */
static struct model_bo *bo_new_exportable(struct model_card *c, uint64_t size)
{
	struct model_bo *bo = NULL;
	int fd, err;

	fd = memfd_create("spyre", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, (off_t)size) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		bo = bo_new_host(c, size, DRM_SPYRE_BO_HOST, fd);
	if (!bo) {
		err = errno;
		close(fd);
		errno = err;
	}
	return bo;
}

static struct model_bo *bo_new_device(struct model_card *c, uint64_t size, uint32_t flags)
{
	uint32_t n = (uint32_t)(size >> SPYRE_PAGE_SHIFT), i, k = 0;
	uint32_t limit = c->pages;
	struct model_bo *bo;

	if (flags & DRM_SPYRE_BO_MAPPABLE)
		limit = (uint32_t)((spyre_card_aperture(c->card) - PAGES_AT) >> SPYRE_PAGE_SHIFT);
	if (limit > c->pages)
		limit = c->pages;
	bo = calloc(1, sizeof(*bo));
	if (!bo)
		return NULL;
	bo->pages = calloc(n, sizeof(*bo->pages));
	if (!bo->pages) {
		free(bo);
		errno = ENOMEM;
		return NULL;
	}
	/* From the top, so that the aperture is left for those who need it. */
	for (i = limit; i-- > 0 && k < n;)
		if (!c->page_used[i])
			bo->pages[k++] = i;
	if (k < n) {
		free(bo->pages);
		free(bo);
		errno = ENOSPC;
		return NULL;
	}
	for (i = 0; i < n; i++)
		c->page_used[bo->pages[i]] = 1;
	c->pages_used += n;
	bo->size = size;
	bo->flags = flags;
	bo->refs = 1;
	return bo;
}

/* Card lock held. */
static void bo_put(struct model_card *c, struct model_bo *bo)
{
	uint32_t n, i;

	if (!bo || --bo->refs)
		return;
	if (bo->cpu) {
		spyre_inproc_unmap(c->ip, bo->bus);
		if (!(bo->flags & DRM_SPYRE_BO_USER))
			munmap(bo->cpu, bo->size);
		if (bo->fd >= 0)
			close(bo->fd);
	} else {
		n = (uint32_t)(bo->size >> SPYRE_PAGE_SHIFT);
		for (i = 0; i < n; i++) {
			/* What was never touched must not become resident. */
			if (madvise(page_ptr(c, bo->pages[i]), SPYRE_PAGE_SIZE, MADV_DONTNEED))
				memset(page_ptr(c, bo->pages[i]), 0, SPYRE_PAGE_SIZE);
			c->page_used[bo->pages[i]] = 0;
		}
		c->pages_used -= n;
		free(bo->pages);
	}
	free(bo);
}

/* --- Address spaces ------------------------------------------------------------------------- */

/* The page table of a segment, made when first needed; NULL: the table area is full. */
static uint64_t *segment_table(struct model_dev *d, struct spyre_segment *s)
{
	if (!s->table) {
		uint64_t at = table_alloc(d->card, SPYRE_TABLE_SIZE / PAGE);

		if (!at)
			return NULL;
		s->table = at;
		__atomic_store_n(&s->pages, SPYRE_SEGMENT_PAGES, __ATOMIC_RELEASE);
	}
	return (uint64_t *)(void *)(d->card->mem + s->table);
}

static uint64_t *segment_entry(struct model_dev *d, struct spyre_segment *segs, uint64_t addr)
{
	uint64_t *t = segment_table(d, &segs[addr >> SPYRE_SEGMENT_SHIFT]);

	return t ? &t[addr >> SPYRE_PAGE_SHIFT & (SPYRE_SEGMENT_PAGES - 1)] : NULL;
}

static void store_pte(uint64_t *e, uint64_t v)
{
	__atomic_store_n(e, v, __ATOMIC_RELEASE);
}

static int map_device(struct model_dev *d, uint64_t addr, const struct model_bo *bo,
		      uint64_t offset, uint64_t size, uint64_t flags)
{
	uint64_t i, *e;

	for (i = 0; i < size; i += SPYRE_PAGE_SIZE) {
		e = segment_entry(d, d->table->dmva, addr + i);
		if (!e)
			return -ENOSPC;
		store_pte(e, (PAGES_AT + ((uint64_t)bo->pages[(offset + i) >> SPYRE_PAGE_SHIFT]
					  << SPYRE_PAGE_SHIFT)) | flags | SPYRE_PTE_VALID);
	}
	return 0;
}

static int map_host(struct model_dev *d, uint64_t addr, uint64_t bus, uint64_t size, uint64_t flags)
{
	uint64_t i, *e, *l2, table;

	flags |= SPYRE_PTE_VALID | SPYRE_PTE_LEAF;
	for (i = 0; i < size;) {
		e = segment_entry(d, d->table->hmva, addr + i);
		if (!e)
			return -ENOSPC;
		if (!((addr + i) & (SPYRE_PAGE_SIZE - 1)) && !((bus + i) & (SPYRE_PAGE_SIZE - 1)) &&
		    size - i >= SPYRE_PAGE_SIZE) {
			store_pte(e, (bus + i) | flags);
			i += SPYRE_PAGE_SIZE;
			continue;
		}
		if (!*e) {
			table = table_alloc(d->card, SPYRE_HOST_L2_SIZE / PAGE);
			if (!table)
				return -ENOSPC;
			store_pte(e, table | SPYRE_PTE_VALID);
		}
		l2 = (uint64_t *)(void *)(d->card->mem + (*e & SPYRE_PTE_ADDR));
		store_pte(&l2[(addr + i) >> 12 & (SPYRE_HOST_L2_ENTRIES - 1)], (bus + i) | flags);
		i += PAGE;
	}
	return 0;
}

/* Clears entries and waits until the card uses no old one; L2 tables go when 2 MiB of them are
 * free. */
static void unmap_range(struct model_dev *d, bool host, uint64_t addr, uint64_t size)
{
	struct spyre_segment *segs = host ? d->table->hmva : d->table->dmva;
	uint64_t i, *e, *l2;

	if (d->lost)
		return;
	for (i = 0; i < size; i += SPYRE_PAGE_SIZE) {
		uint64_t at = (addr & ~(SPYRE_PAGE_SIZE - 1)) + i, k;

		if (!segs[at >> SPYRE_SEGMENT_SHIFT].table)
			continue;
		e = segment_entry(d, segs, at);
		if (!host || *e & SPYRE_PTE_LEAF) {
			store_pte(e, 0);
			continue;
		}
		if (!*e)
			continue;
		l2 = (uint64_t *)(void *)(d->card->mem + (*e & SPYRE_PTE_ADDR));
		for (k = 0; k < SPYRE_HOST_L2_ENTRIES; k++)
			if (at + k * PAGE >= addr && at + k * PAGE < addr + size)
				store_pte(&l2[k], 0);
	}
	call_id(d->card, SPYRE_MSG_CTX_INVALIDATE, d->id, 0);
	for (i = 0; host && i < size; i += SPYRE_PAGE_SIZE) {
		uint64_t at = (addr & ~(SPYRE_PAGE_SIZE - 1)) + i, table, k;

		if (!segs[at >> SPYRE_SEGMENT_SHIFT].table)
			continue;
		e = segment_entry(d, segs, at);
		if (!*e || *e & SPYRE_PTE_LEAF)
			continue;
		table = *e & SPYRE_PTE_ADDR;
		l2 = (uint64_t *)(void *)(d->card->mem + table);
		for (k = 0; k < SPYRE_HOST_L2_ENTRIES && !l2[k]; k++)
			;
		if (k < SPYRE_HOST_L2_ENTRIES)
			continue;
		store_pte(e, 0);
		call_id(d->card, SPYRE_MSG_CTX_INVALIDATE, d->id, 0);
		table_free(d->card, table, SPYRE_HOST_L2_SIZE / PAGE);
	}
}

/* First gap of size bytes in [from, to), behind which a hole of guard bytes stays. */
static struct model_bind **find_gap(struct model_bind **list, uint64_t from, uint64_t to,
				    uint64_t size, uint64_t align, uint64_t guard, uint64_t *addr)
{
	struct model_bind **link;
	uint64_t at = from;

	for (link = list; *link && (*link)->addr < to; link = &(*link)->next) {
		if ((*link)->addr + (*link)->size <= from)
			continue;
		at = (at + align - 1) & ~(align - 1);
		if ((*link)->addr >= at && (*link)->addr - at >= size + guard)
			break;
		if ((*link)->addr + (*link)->size + guard > at)
			at = (*link)->addr + (*link)->size + guard;
	}
	at = (at + align - 1) & ~(align - 1);
	if (at > to || to - at < size)
		return NULL;
	*addr = at;
	return link;
}

static int bind(struct model_dev *d, struct model_bo *bo, uint64_t offset, uint64_t size,
		uint32_t segment, bool fixed, uint64_t flags, uint64_t *addr)
{
	bool host = bo->cpu != NULL;
	struct model_bind **list = host ? &d->hmva : &d->dmva, **link, *b;
	uint64_t at, seg = host ? 0 : (uint64_t)segment << SPYRE_SEGMENT_SHIFT;
	int ret;

	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	if (fixed) {
		at = *addr;
		for (link = list; *link && (*link)->addr + (*link)->size <= at;
		     link = &(*link)->next)
			;
		if (*link && (*link)->addr < at + size) {
			free(b);
			return -EBUSY;
		}
	} else if (host) {
		/* Segment by segment, for no binding crosses one. */
		link = NULL;
		for (seg = 0; seg < SPYRE_HMVA_SIZE && !link; seg += SPYRE_SEGMENT_SIZE)
			link = find_gap(list, seg ? seg : HMVA_FIRST, seg + SPYRE_SEGMENT_SIZE,
					size, size >= SPYRE_PAGE_SIZE ? SPYRE_PAGE_SIZE : PAGE,
					PAGE, &at);
	} else {
		link = find_gap(list, seg, seg + SPYRE_SEGMENT_SIZE, size, SPYRE_PAGE_SIZE, 0, &at);
	}
	if (!link) {
		free(b);
		return -ENOSPC;
	}
	ret = host ? map_host(d, at, bo->bus + offset, size, flags)
		   : map_device(d, at, bo, offset, size, flags);
	if (ret) {
		unmap_range(d, host, at, size);
		free(b);
		return ret;
	}
	b->addr = at;
	b->size = size;
	b->bo = bo;
	bo->refs++;
	b->next = *link;
	*link = b;
	*addr = at;
	return 0;
}

static int unbind(struct model_dev *d, bool host, uint64_t addr)
{
	struct model_bind **link, *b;

	for (link = host ? &d->hmva : &d->dmva; *link && (*link)->addr != addr;
	     link = &(*link)->next)
		;
	b = *link;
	if (!b)
		return -ENOENT;
	*link = b->next;
	unmap_range(d, host, b->addr, b->size);
	bo_put(d->card, b->bo);
	free(b);
	return 0;
}

/* --- Context -------------------------------------------------------------------------------- */

/* The context, made by the first call that needs one. Card lock held. */
static int need_context(struct model_dev *d)
{
	struct model_card *c = d->card;
	struct spyre_msg_ctx m = { .vector = VECTOR };
	uint32_t id;
	int ret;

	if (d->id)
		return 0;
	for (id = 1; id < c->info.contexts && id < MCU_CONTEXTS && c->context[id]; id++)
		;
	if (id >= c->info.contexts || id >= MCU_CONTEXTS)
		return -EMFILE;
	d->table_at = table_alloc(c, 1);
	if (!d->table_at)
		return -ENOSPC;
	d->table = (void *)(c->mem + d->table_at);
	d->pages = bo_new_host(c, PAGE, DRM_SPYRE_BO_HOST, -1);
	if (!d->pages) {
		table_free(c, d->table_at, 1);
		return -ENOMEM;
	}
	d->arm = (void *)d->pages->cpu;
	d->usage = (void *)(d->pages->cpu + 128);
	m.id = id;
	m.table = d->table_at;
	m.arm = d->pages->bus;
	m.usage = d->pages->bus + 128;
	ret = call(c, SPYRE_MSG_CTX_CREATE, &m, sizeof(m), NULL);
	if (ret) {
		bo_put(c, d->pages);
		d->pages = NULL;
		table_free(c, d->table_at, 1);
		return ret;
	}
	c->context[id] = d;
	c->contexts_used++;
	d->id = id;
	return 0;
}

static int model_open(void *state, const struct rt_card *card, void **dev, char *text, size_t size)
{
	struct model_state *s = state;
	struct model_card *c = NULL;
	struct model_dev *d;
	int ret;

	pthread_mutex_lock(&s->lock);
	ret = card_get(s, card->number, &c, text, size);
	pthread_mutex_unlock(&s->lock);
	if (ret)
		return ret;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->card = c;
	pthread_mutex_lock(&c->lock);
	d->generation = c->reset_gen;
	d->next = c->devs;
	c->devs = d;
	pthread_mutex_unlock(&c->lock);
	*dev = d;
	return 0;
}

static void queue_free(struct model_dev *d, struct model_queue *q)
{
	bo_put(d->card, q->ring);
	bo_put(d->card, q->status);
	free(q);
}

static int queue_destroy(struct model_dev *d, uint32_t id)
{
	struct model_queue *q;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < d->nqueues && d->queues[i]->id != id; i++)
		;
	if (i == d->nqueues)
		return -ENOENT;
	q = d->queues[i];
	d->queues[i] = d->queues[--d->nqueues];
	if (!d->lost)
		ret = call_id(d->card, SPYRE_MSG_QUEUE_DESTROY, id, 0);
	unbind(d, true, q->ring_hmva);
	unbind(d, true, q->status_hmva);
	queue_free(d, q);
	d->free_page[d->nfree_page++] = id;
	d->card->queues_used--;
	return ret;
}

static void tables_free(struct model_dev *d)
{
	struct model_card *c = d->card;
	uint32_t i, k;

	for (i = 0; i < SPYRE_SEGMENTS; i++)
		if (d->table->dmva[i].table)
			table_free(c, d->table->dmva[i].table, SPYRE_TABLE_SIZE / PAGE);
	for (i = 0; i < SPYRE_HOST_SEGMENTS; i++) {
		uint64_t *t;

		if (!d->table->hmva[i].table)
			continue;
		t = (uint64_t *)(void *)(c->mem + d->table->hmva[i].table);
		for (k = 0; k < SPYRE_SEGMENT_PAGES; k++)
			if (t[k] && !(t[k] & SPYRE_PTE_LEAF))
				table_free(c, t[k] & SPYRE_PTE_ADDR, SPYRE_HOST_L2_SIZE / PAGE);
		table_free(c, d->table->hmva[i].table, SPYRE_TABLE_SIZE / PAGE);
	}
	table_free(c, d->table_at, 1);
}

/* Everything on the card of an open; afterwards it has no context. Card lock held. */
static void context_drop(struct model_dev *d)
{
	struct model_card *c = d->card;
	uint32_t i;

	while (d->nqueues)
		queue_destroy(d, d->queues[0]->id);
	if (d->id && !d->lost)
		call_id(c, SPYRE_MSG_CTX_DESTROY, d->id, 0);
	while (d->dmva)
		unbind(d, false, d->dmva->addr);
	while (d->hmva)
		unbind(d, true, d->hmva->addr);
	if (d->id) {
		tables_free(d);
		bo_put(c, d->pages);
		d->pages = NULL;
		c->context[d->id] = NULL;
		c->contexts_used--;
		for (i = 0; i < d->nblocks; i++)
			c->block_used[d->blocks[i]] = 0;
		d->id = 0;
	}
}

static void model_close(void *dev)
{
	struct model_dev *d = dev, **link;
	struct model_card *c = d->card;
	struct model_mapping *m;
	uint32_t i;

	pthread_mutex_lock(&c->lock);
	context_drop(d);
	while ((m = d->maps)) {
		d->maps = m->next;
		bo_put(c, m->bo);
		free(m);
	}
	for (i = 0; i < d->nbos; i++)
		bo_put(c, d->bos[i]);
	for (link = &c->devs; *link != d; link = &(*link)->next)
		;
	*link = d->next;
	pthread_mutex_unlock(&c->lock);
	free(d->bos);
	free(d->queues);
	free(d);
}

/* --- ioctls: card lock held ------------------------------------------------------------------- */

static int do_query(struct model_dev *d, struct drm_spyre_query *q)
{
	struct model_card *c = d->card;
	union {
		struct drm_spyre_device_info device;
		struct drm_spyre_limits limits;
		struct drm_spyre_memory_info memory;
		struct drm_spyre_telemetry telemetry;
		struct drm_spyre_usage usage;
	} u;
	struct spyre_msg_telemetry t;
	struct spyre_msg answer;
	uint32_t size, i;
	int ret;

	memset(&u, 0, sizeof(u));
	switch (q->type) {
	case DRM_SPYRE_QUERY_DEVICE:
		size = sizeof(u.device);
		u.device.hw_version = reg(c, SPYRE_REG_HWVER);
		u.device.proto_version = c->info.proto;
		u.device.cores = c->info.cores;
		u.device.state = reg(c, SPYRE_REG_STATE);
		u.device.core_hz = reg(c, SPYRE_REG_CORE_HZ);
		u.device.soc_hz = reg(c, SPYRE_REG_TIME_HZ);
		u.device.mem_size = spyre_card_memory_size(c->card);
		u.device.aperture_size = spyre_card_aperture(c->card);
		u.device.reset_generation = reg(c, SPYRE_REG_RESET_GEN);
		memcpy(u.device.engines, c->info.engines, sizeof(u.device.engines));
		snprintf((char *)u.device.serial, sizeof(u.device.serial), "MODEL%04d", c->number);
		memcpy(u.device.fw_version, c->info.version, sizeof(u.device.fw_version));
		break;
	case DRM_SPYRE_QUERY_LIMITS:
		size = sizeof(u.limits);
		u.limits.contexts_max = c->info.contexts - 1;
		u.limits.contexts_used = c->contexts_used;
		u.limits.contexts_user_max = c->info.contexts - 1;
		u.limits.contexts_user_used = c->contexts_used;
		u.limits.queues_max = c->info.queues;
		u.limits.queues_used = c->queues_used;
		u.limits.queues_user_max = c->info.queues;
		u.limits.queues_user_used = c->queues_used;
		u.limits.ring_min = c->info.ring_min;
		u.limits.ring_max = c->info.ring_max;
		u.limits.symbols_max = c->info.symbols;
		u.limits.wait_entries_max = WAIT_MAX;
		u.limits.host_user_max = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
		u.limits.host_user_used = d->host_bytes;
		break;
	case DRM_SPYRE_QUERY_MEMORY:
		size = sizeof(u.memory);
		u.memory.total = (uint64_t)c->pages << SPYRE_PAGE_SHIFT;
		u.memory.used = (uint64_t)c->pages_used << SPYRE_PAGE_SHIFT;
		u.memory.largest_free = u.memory.total - u.memory.used;
		for (i = 0; i < c->pages && PAGES_AT + ((uint64_t)(i + 1) << SPYRE_PAGE_SHIFT) <=
		     spyre_card_aperture(c->card); i++) {
			u.memory.mappable_total += SPYRE_PAGE_SIZE;
			u.memory.mappable_used += c->page_used[i] ? SPYRE_PAGE_SIZE : 0;
		}
		u.memory.table_total = TABLES_BYTES;
		u.memory.table_used = (uint64_t)c->pieces_used * PAGE;
		u.memory.file_device = d->device_bytes;
		u.memory.file_host = d->host_bytes;
		break;
	case DRM_SPYRE_QUERY_TELEMETRY:
		size = sizeof(u.telemetry);
		ret = call(c, SPYRE_MSG_GET_TELEMETRY, NULL, 0, &answer);
		if (ret)
			return ret;
		memcpy(&t, answer.body, sizeof(t));
		u.telemetry.temp_mc = (int32_t)t.temp_mc;
		u.telemetry.power_mw = t.power_mw;
		u.telemetry.energy = t.energy;
		memcpy(u.telemetry.busy, t.busy, sizeof(u.telemetry.busy));
		u.telemetry.mem_rd = t.mem_rd;
		u.telemetry.mem_wr = t.mem_wr;
		u.telemetry.ecc_ce = t.ecc_ce;
		u.telemetry.ecc_ue = t.ecc_ue;
		u.telemetry.soc_time = reg(c, SPYRE_REG_TIME);
		u.telemetry.soc_time |= (uint64_t)reg(c, SPYRE_REG_TIME + 4) << 32;
		break;
	case DRM_SPYRE_QUERY_USAGE:
		size = sizeof(u.usage);
		if (!d->id)
			break;
		for (i = 0; i < 5; i++) {
			u.usage.busy[i] = __atomic_load_n(&d->usage->busy[i], __ATOMIC_RELAXED);
			u.usage.bytes[i] = __atomic_load_n(&d->usage->bytes[i], __ATOMIC_RELAXED);
		}
		u.usage.cbs = __atomic_load_n(&d->usage->cbs, __ATOMIC_RELAXED);
		u.usage.errors = __atomic_load_n(&d->usage->errors, __ATOMIC_RELAXED);
		break;
	default:
		return -EINVAL;
	}
	if (q->data) {
		memcpy((void *)(uintptr_t)q->data, &u, q->size < size ? q->size : size);
		if (q->size > size)
			memset((char *)(uintptr_t)q->data + size, 0, q->size - size);
	}
	q->size = size;
	return 0;
}

static int add_handle(struct model_dev *d, struct model_bo *bo, uint32_t *handle)
{
	struct model_bo **bos;
	uint32_t i;

	for (i = 0; i < d->nbos && d->bos[i]; i++)
		;
	if (i == d->nbos) {
		bos = realloc(d->bos, (d->nbos * 2 + 16) * sizeof(*bos));
		if (!bos)
			return -ENOMEM;
		memset(bos + d->nbos, 0, (d->nbos + 16) * sizeof(*bos));
		d->bos = bos;
		d->nbos = d->nbos * 2 + 16;
	}
	d->bos[i] = bo;
	*handle = i + 1;
	return 0;
}

static struct model_bo *find_bo(struct model_dev *d, uint32_t handle)
{
	return handle && handle <= d->nbos ? d->bos[handle - 1] : NULL;
}

/* A handle of a new buffer, NULL: of what errno says there is none. */
static int take_bo(struct model_dev *d, struct model_bo *bo, uint32_t *handle)
{
	int ret;

	if (!bo)
		return -errno;
	ret = add_handle(d, bo, handle);
	if (ret) {
		bo_put(d->card, bo);
		return ret;
	}
	*(bo->cpu ? &d->host_bytes : &d->device_bytes) += bo->size;
	return 0;
}

static int do_bo_create(struct model_dev *d, struct drm_spyre_bo_create *a)
{
	bool dev = a->flags & DRM_SPYRE_BO_DEVICE, host = a->flags & DRM_SPYRE_BO_HOST;
	uint64_t page = dev ? SPYRE_PAGE_SIZE : PAGE;
	struct model_bo *bo;

	if (a->flags & ~(7u | BO_EXPORTABLE) || dev == host ||
	    (host && a->flags & DRM_SPYRE_BO_MAPPABLE) || (dev && a->flags & BO_EXPORTABLE) ||
	    !a->size || a->size > SPYRE_DMVA_SIZE)
		return -EINVAL;
	a->size = (a->size + page - 1) & ~(page - 1);
	errno = ENOMEM;
	if (dev)
		bo = bo_new_device(d->card, a->size, a->flags);
	else if (a->flags & BO_EXPORTABLE)
		bo = bo_new_exportable(d->card, a->size);
	else
		bo = bo_new_host(d->card, a->size, DRM_SPYRE_BO_HOST, -1);
	return take_bo(d, bo, &a->handle);
}

/* Is the range mapped throughout, to be read, and to be written if write says so? */
static int range_mapped(uint64_t addr, uint64_t size, bool write)
{
	uint64_t end = addr + size;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128];

	if (!f)
		return -errno;
	/* In the order of addresses; a line that is cut off goes on without the numbers of a range. */
	while (addr < end && fgets(line, sizeof(line), f)) {
		unsigned long long from, to;
		char r, w;

		if (sscanf(line, "%llx-%llx %c%c", &from, &to, &r, &w) != 4 || to <= addr)
			continue;
		if (from > addr || r != 'r' || (write && w != 'w'))
			break;
		addr = to;
	}
	fclose(f);
	return addr < end ? -EFAULT : 0;
}

/* The driver pins the pages; here the card uses the addresses, whatever lies there. */
static int do_bo_userptr(struct model_dev *d, struct drm_spyre_bo_userptr *a)
{
	bool readonly = a->flags & DRM_SPYRE_USERPTR_READONLY;
	uint32_t flags = DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_USER;
	int ret;

	if (a->flags & ~DRM_SPYRE_USERPTR_READONLY || !a->size || (a->addr | a->size) % PAGE ||
	    a->addr + a->size < a->addr)
		return -EINVAL;
	if (a->size > SPYRE_HMVA_SIZE)
		return -ENOMEM;
	ret = range_mapped(a->addr, a->size, !readonly);
	if (ret)
		return ret;
	if (readonly)
		flags |= DRM_SPYRE_BO_READONLY;
	return take_bo(d, bo_wrap(d->card, (uint8_t *)(uintptr_t)a->addr, a->size, flags, -1),
		       &a->handle);
}

static int do_handle_to_fd(struct model_dev *d, struct drm_prime_handle *a)
{
	struct model_bo *bo = find_bo(d, a->handle);

	if (!bo)
		return -ENOENT;
	if (a->flags & ~(DRM_CLOEXEC | DRM_RDWR))
		return -EINVAL;
	if (!bo->cpu || bo->fd < 0)
		return -EOPNOTSUPP;
	a->fd = fcntl(bo->fd, F_DUPFD_CLOEXEC, 0);
	return a->fd < 0 ? -errno : 0;
}

static int do_fd_to_handle(struct model_dev *d, struct drm_prime_handle *a)
{
	uint32_t flags = DRM_SPYRE_BO_HOST | DRM_SPYRE_BO_IMPORT;
	int mode = fcntl(a->fd, F_GETFL), seals = fcntl(a->fd, F_GET_SEALS), fd, err;
	struct model_bo *bo;
	struct stat st;

	if (mode < 0 || fstat(a->fd, &st))
		return -errno;
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || st.st_size <= 0 || st.st_size % PAGE)
		return -EINVAL;
	if ((mode & O_ACCMODE) != O_RDWR)
		flags |= DRM_SPYRE_BO_READONLY;
	/* The descriptor is the caller's; what was imported can be exported again. */
	fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	bo = bo_new_host(d->card, (uint64_t)st.st_size, flags, fd);
	if (!bo) {
		err = errno;
		close(fd);
		errno = err;
	}
	return take_bo(d, bo, &a->handle);
}

static int do_bo_info(struct model_dev *d, struct drm_spyre_bo_info *a)
{
	struct model_bo *bo = find_bo(d, a->handle);

	if (!bo)
		return -ENOENT;
	a->flags = bo->flags;
	a->size = bo->size;
	return 0;
}

static int do_gem_close(struct model_dev *d, struct drm_gem_close *a)
{
	struct model_bo *bo = find_bo(d, a->handle);

	if (!bo)
		return -EINVAL;
	d->bos[a->handle - 1] = NULL;
	*(bo->cpu ? &d->host_bytes : &d->device_bytes) -= bo->size;
	bo_put(d->card, bo);
	return 0;
}

static int do_vm_bind(struct model_dev *d, struct drm_spyre_vm_bind *a)
{
	struct model_bo *bo;
	uint64_t page, size, addr = a->addr;
	int ret;

	if (a->op == DRM_SPYRE_VM_UNMAP)
		return d->id ? unbind(d, a->space != 0, a->addr) : -ENOENT;
	bo = find_bo(d, a->handle);
	if (!bo)
		return -ENOENT;
	page = bo->cpu ? PAGE : SPYRE_PAGE_SIZE;
	if (a->offset % page || a->size % page || a->offset >= bo->size ||
	    a->segment >= SPYRE_SEGMENTS ||
	    (a->flags & DRM_SPYRE_VM_FIXED && (bo->cpu || a->addr % page)))
		return -EINVAL;
	if (bo->flags & DRM_SPYRE_BO_READONLY && !(a->flags & DRM_SPYRE_VM_READONLY))
		return -EACCES;
	size = a->size ? a->size : bo->size - a->offset;
	if (size > bo->size - a->offset || size > SPYRE_SEGMENT_SIZE)
		return -EINVAL;
	if (a->flags & DRM_SPYRE_VM_FIXED &&
	    a->addr >> SPYRE_SEGMENT_SHIFT != (a->addr + size - 1) >> SPYRE_SEGMENT_SHIFT)
		return -EINVAL;
	ret = need_context(d);
	if (ret)
		return ret;
	ret = bind(d, bo, a->offset, size, a->segment, a->flags & DRM_SPYRE_VM_FIXED,
		   a->flags & DRM_SPYRE_VM_READONLY ? 0 : SPYRE_PTE_WRITE, &addr);
	a->addr = addr;
	a->space = bo->cpu != NULL;
	return ret;
}

/* A doorbell page: blocks of them belong to one context. */
static int take_doorbell(struct model_dev *d, uint32_t *page)
{
	struct model_card *c = d->card;
	uint32_t b;

	if (d->nfree_page) {
		*page = d->free_page[--d->nfree_page];
		return 0;
	}
	if (!d->pages_left) {
		for (b = 0; b < SPYRE_DB_BLOCKS && c->block_used[b]; b++)
			;
		if (b == SPYRE_DB_BLOCKS)
			return -EMFILE;
		c->block_used[b] = 1;
		d->blocks[d->nblocks++] = (int32_t)b;
		d->pages_left = SPYRE_DB_BLOCK_PAGES;
	}
	*page = (uint32_t)d->blocks[d->nblocks - 1] * SPYRE_DB_BLOCK_PAGES +
		SPYRE_DB_BLOCK_PAGES - d->pages_left--;
	return 0;
}

#define MAP_BO		1ull
#define MAP_RING	2ull
#define MAP_STATUS	3ull
#define MAP_OFFSET(kind, n)	((kind) << 60 | (uint64_t)(n) << 12)

static int do_queue_create(struct model_dev *d, struct drm_spyre_queue_create *a)
{
	struct spyre_msg_queue m = { 0 };
	struct model_card *c = d->card;
	struct model_queue *q, **queues;
	uint32_t page;
	int ret;

	if (a->flags || a->entries < c->info.ring_min || a->entries > c->info.ring_max ||
	    (a->entries & (a->entries - 1)) || a->priority >= SPYRE_PRIORITIES)
		return -EINVAL;
	ret = need_context(d);
	if (ret)
		return ret;
	queues = realloc(d->queues, (d->nqueues + 1) * sizeof(*queues));
	q = calloc(1, sizeof(*q));
	if (queues)
		d->queues = queues;
	if (!queues || !q) {
		free(q);
		return -ENOMEM;
	}
	ret = take_doorbell(d, &page);
	if (ret) {
		free(q);
		return ret;
	}
	q->id = page;
	q->entries = a->entries;
	a->shadow_at = a->entries * SPYRE_STICK;
	a->ring_size = a->shadow_at + PAGE;
	a->response_at = PAGE;
	a->status_size = PAGE + (uint64_t)a->entries * sizeof(struct spyre_rb);
	ret = -ENOMEM;
	q->ring = bo_new_host(c, a->ring_size, DRM_SPYRE_BO_HOST, -1);
	if (!q->ring)
		goto fail;
	q->status = bo_new_host(c, a->status_size, DRM_SPYRE_BO_HOST, -1);
	if (!q->status)
		goto fail;
	ret = bind(d, q->ring, 0, a->ring_size, 0, false, SPYRE_PTE_PRIV, &q->ring_hmva);
	if (ret)
		goto fail;
	ret = bind(d, q->status, 0, a->status_size, 0, false, SPYRE_PTE_PRIV | SPYRE_PTE_WRITE,
		   &q->status_hmva);
	if (ret)
		goto fail_ring;
	m.id = page;
	m.context = d->id;
	m.entries = a->entries;
	m.priority = a->priority;
	m.ring = q->ring_hmva;
	m.shadow = q->ring_hmva + a->shadow_at;
	m.status = q->status_hmva;
	m.response = q->status_hmva + a->response_at;
	m.timeout = a->timeout;
	m.generation = reg(c, SPYRE_REG_RESET_GEN);
	ret = call(c, SPYRE_MSG_QUEUE_CREATE, &m, sizeof(m), NULL);
	if (ret)
		goto fail_status;
	a->queue = page;
	a->ring_offset = MAP_OFFSET(MAP_RING, page);
	a->status_offset = MAP_OFFSET(MAP_STATUS, page);
	a->doorbell_offset = 0;
	d->queues[d->nqueues++] = q;
	c->queues_used++;
	return 0;
fail_status:
	unbind(d, true, q->status_hmva);
fail_ring:
	unbind(d, true, q->ring_hmva);
fail:
	bo_put(c, q->ring);
	bo_put(c, q->status);
	free(q);
	d->free_page[d->nfree_page++] = page;
	return ret;
}

static struct model_queue *find_queue(struct model_dev *d, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < d->nqueues; i++)
		if (d->queues[i]->id == id)
			return d->queues[i];
	return NULL;
}

static int do_ras_read(struct model_dev *d, struct drm_spyre_ras_read *a)
{
	struct drm_spyre_ras *out = (void *)(uintptr_t)a->records;
	struct model_card *c = d->card;
	uint32_t n = 0;
	uint64_t seq;

	if (a->flags & ~DRM_SPYRE_RAS_CARD)
		return -EINVAL;
	pthread_mutex_lock(&c->ras_lock);
	seq = c->ras_seq > RAS_KEPT ? c->ras_seq - RAS_KEPT : 0;
	a->dropped = a->after < seq ? seq - a->after : 0;
	if (a->after > seq)
		seq = a->after;
	for (; seq < c->ras_seq && n < a->count; seq++)
		if (a->flags & DRM_SPYRE_RAS_CARD ||
		    (d->id && c->ras[seq % RAS_KEPT].context == d->id))
			out[n++] = c->ras[seq % RAS_KEPT].ras;
	pthread_mutex_unlock(&c->ras_lock);
	a->count = n;
	return 0;
}

/* --- WAIT: takes the card lock only to resolve what it waits for ----------------------------- */

struct condition {
	const uint64_t *done;		/* queue: the pair fetched, done */
	const uint32_t *error;
	const uint64_t *word;		/* fence */
	uint64_t value;
	struct model_bo *bo;		/* held meanwhile */
};

/* 1: holds, 0: not yet, -EIO: queue in error. */
static int holds(const struct condition *w)
{
	if (w->word)
		return __atomic_load_n(w->word, __ATOMIC_ACQUIRE) >= w->value;
	if ((int32_t)((uint32_t)(__atomic_load_n(w->done, __ATOMIC_ACQUIRE) >> 32) -
		      (uint32_t)w->value) >= 0)
		return 1;
	return __atomic_load_n(w->error, __ATOMIC_ACQUIRE) ? -EIO : 0;
}

static int do_wait(struct model_dev *d, struct drm_spyre_wait *a)
{
	const struct drm_spyre_wait_entry *e = (const void *)(uintptr_t)a->entries;
	struct condition w[WAIT_MAX] = { 0 };
	struct model_card *c = d->card;
	struct model_bo *pages = NULL;
	struct spyre_arm *arm = NULL;
	uint32_t i, ok, n = 0;
	int ret = 0, h;

	if (!a->count || a->count > WAIT_MAX || a->flags & ~DRM_SPYRE_WAIT_ALL)
		return -EINVAL;
	pthread_mutex_lock(&c->lock);
	for (; n < a->count && !ret; n++) {
		if (e[n].kind == DRM_SPYRE_WAIT_QUEUE) {
			struct model_queue *q = find_queue(d, e[n].handle);
			struct spyre_queue_status *st;

			if (!q) {
				ret = -ENOENT;
				break;
			}
			st = (void *)q->status->cpu;
			w[n].done = (const void *)&st->fetched;
			w[n].error = &st->error;
			w[n].bo = q->status;
		} else {
			struct model_bo *bo = find_bo(d, e[n].handle);

			if (!bo) {
				ret = -ENOENT;
				break;
			}
			if (!bo->cpu || e[n].offset % 8 || e[n].offset >= bo->size) {
				ret = -EINVAL;
				break;
			}
			w[n].word = (uint64_t *)(void *)(bo->cpu + e[n].offset);
			w[n].bo = bo;
		}
		w[n].value = e[n].value;
		w[n].bo->refs++;
	}
	if (d->lost)
		ret = -ENODEV;
	/* A reset takes the context away; what is waited on stays until this wait has ended. */
	if (!ret && d->pages) {
		pages = d->pages;
		pages->refs++;
		arm = d->arm;
	}
	pthread_mutex_unlock(&c->lock);
	while (!ret) {
		struct timespec ts;
		uint64_t seen;
		int64_t now;

		pthread_mutex_lock(&c->wait_lock);
		seen = c->progress;
		pthread_mutex_unlock(&c->wait_lock);
		/*
		 * Arm, full fence, look: a card that moves later finds the arm word changed and
		 * interrupts; one that moved before is seen by the look.
		 */
		if (arm)
			__atomic_fetch_add(&arm->arm, 1, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		for (i = ok = 0; i < n && !ret; i++) {
			h = holds(&w[i]);
			if (h < 0)
				ret = h;
			else if (h && !ok++)
				a->first = i;
		}
		if (ret || (a->flags & DRM_SPYRE_WAIT_ALL ? ok == n : ok))
			break;
		now = now_ns();
		if (now >= a->timeout_ns) {
			ret = -ETIME;
			break;
		}
		if (__atomic_load_n(&d->lost, __ATOMIC_ACQUIRE)) {
			ret = -ENODEV;
			break;
		}
		ts = timespec_of(a->timeout_ns < now + 20000000 ? a->timeout_ns : now + 20000000);
		pthread_mutex_lock(&c->wait_lock);
		while (c->progress == seen &&
		       pthread_cond_timedwait(&c->wait_cond, &c->wait_lock, &ts) != ETIMEDOUT)
			;
		pthread_mutex_unlock(&c->wait_lock);
	}
	pthread_mutex_lock(&c->lock);
	for (i = 0; i < n; i++)
		bo_put(c, w[i].bo);
	bo_put(c, pages);
	pthread_mutex_unlock(&c->lock);
	return ret;
}

static int model_ioctl(void *dev, unsigned long request, void *arg)
{
	struct model_dev *d = dev;
	struct model_card *c = d->card;
	int ret;

	if (request == DRM_IOCTL_SPYRE_WAIT)
		return do_wait(d, arg);
	pthread_mutex_lock(&c->lock);
	if (d->lost && request != DRM_IOCTL_GEM_CLOSE) {
		pthread_mutex_unlock(&c->lock);
		return -ENODEV;
	}
	switch (request) {
	case DRM_IOCTL_SPYRE_QUERY:
		ret = do_query(d, arg);
		break;
	case DRM_IOCTL_SPYRE_BO_CREATE:
		ret = do_bo_create(d, arg);
		break;
	case DRM_IOCTL_GEM_CLOSE:
		ret = do_gem_close(d, arg);
		break;
	case DRM_IOCTL_SPYRE_BO_USERPTR:
		ret = do_bo_userptr(d, arg);
		break;
	case DRM_IOCTL_SPYRE_BO_INFO:
		ret = do_bo_info(d, arg);
		break;
	case DRM_IOCTL_PRIME_HANDLE_TO_FD:
		ret = do_handle_to_fd(d, arg);
		break;
	case DRM_IOCTL_PRIME_FD_TO_HANDLE:
		ret = do_fd_to_handle(d, arg);
		break;
	case DRM_IOCTL_SPYRE_BO_MMAP: {
		struct drm_spyre_bo_mmap *a = arg;

		ret = find_bo(d, a->handle) ? 0 : -ENOENT;
		a->offset = MAP_OFFSET(MAP_BO, a->handle);
		break;
	}
	case DRM_IOCTL_SPYRE_VM_BIND:
		ret = do_vm_bind(d, arg);
		break;
	case DRM_IOCTL_SPYRE_QUEUE_CREATE:
		ret = do_queue_create(d, arg);
		break;
	case DRM_IOCTL_SPYRE_QUEUE_DESTROY:
		ret = queue_destroy(d, ((struct drm_spyre_queue_id *)arg)->queue);
		break;
	case DRM_IOCTL_SPYRE_QUEUE_RESET:
		ret = find_queue(d, ((struct drm_spyre_queue_id *)arg)->queue)
			      ? call_id(c, SPYRE_MSG_QUEUE_RESET,
					((struct drm_spyre_queue_id *)arg)->queue, 0)
			      : -ENOENT;
		break;
	case DRM_IOCTL_SPYRE_RAS_READ:
		ret = do_ras_read(d, arg);
		break;
	default:
		ret = -ENOTTY;
	}
	pthread_mutex_unlock(&c->lock);
	return ret;
}

/* Mappings keep what they show, as those of a file do. */
static void *model_map(void *dev, uint64_t offset, size_t size, bool write)
{
	struct model_dev *d = dev;
	uint32_t n = (uint32_t)(offset >> 12 & 0xffffffff);
	struct model_queue *q;
	struct model_mapping *m = NULL;
	struct model_bo *bo = NULL;

	(void)write;
	pthread_mutex_lock(&d->card->lock);
	if (offset >> 60 == MAP_BO) {
		bo = find_bo(d, n);
	} else {
		q = find_queue(d, n);
		if (q)
			bo = offset >> 60 == MAP_RING ? q->ring : q->status;
	}
	if (bo && (!bo->cpu || size > bo->size))
		bo = NULL;
	if (bo)
		m = malloc(sizeof(*m));
	if (m) {
		bo->refs++;
		m->bo = bo;
		m->next = d->maps;
		d->maps = m;
	}
	pthread_mutex_unlock(&d->card->lock);
	if (!m) {
		errno = bo ? ENOMEM : EINVAL;
		return NULL;
	}
	return bo->cpu;
}

static void model_unmap(void *dev, void *ptr, size_t size)
{
	struct model_mapping **link, *m;
	struct model_dev *d = dev;

	(void)size;
	pthread_mutex_lock(&d->card->lock);
	for (link = &d->maps; (m = *link); link = &m->next) {
		if (m->bo->cpu != ptr)
			continue;
		*link = m->next;
		bo_put(d->card, m->bo);
		free(m);
		break;
	}
	pthread_mutex_unlock(&d->card->lock);
}

static void model_doorbell(void *dev, uint32_t queue, uint32_t tail)
{
	struct model_dev *d = dev;

	if (!__atomic_load_n(&d->lost, __ATOMIC_RELAXED))
		spyre_card_db_write(d->card->card, (uint64_t)queue * SPYRE_DB_PAGE_SIZE, tail, 4);
}

/* The card loses its memory; every open of it is lost. */
static int reset_card(struct model_card *c)
{
	char text[256] = "";
	struct model_dev *d;
	uint32_t i;
	int ret;

	pthread_mutex_lock(&c->lock);
	spyre_card_reset(c->card, SPYRE_RESET_FLR);
	c->up = false;
	for (d = c->devs; d; d = d->next) {
		__atomic_store_n(&d->lost, true, __ATOMIC_RELEASE);
		for (i = 0; i < d->nqueues; i++) {
			struct spyre_queue_status *st = (void *)d->queues[i]->status->cpu;

			__atomic_store_n(&st->state, SPYRE_QUEUE_LOST, __ATOMIC_RELEASE);
		}
		/* Table memory is gone with its content; only the books are put right. */
		context_drop(d);
	}
	ret = boot(c, text, sizeof(text));
	pthread_mutex_unlock(&c->lock);
	if (ret)
		fprintf(stderr, "spyrert: %s\n", text);
	pthread_mutex_lock(&c->wait_lock);
	c->progress++;
	pthread_cond_broadcast(&c->wait_cond);
	pthread_mutex_unlock(&c->wait_lock);
	return ret;
}

static int model_provoke(void *dev, const char *what, uint64_t arg)
{
	struct model_dev *d = dev;
	int i;

	if (!strcmp(what, "flr"))
		return reset_card(d->card);
	for (i = 0; i < SPYRE_FAULTS; i++)
		if (!strcmp(spyre_fault_name(i), what))
			return spyre_card_inject(d->card->card, i, arg);
	return -EINVAL;
}

static const struct rt_backend backend = {
	.abi = RT_BACKEND_ABI,
	.name = "model",
	.exportable = BO_EXPORTABLE,
	.init = model_init,
	.exit = model_exit,
	.scan = model_scan,
	.open = model_open,
	.close = model_close,
	.ioctl = model_ioctl,
	.map = model_map,
	.unmap = model_unmap,
	.doorbell = model_doorbell,
	.provoke = model_provoke,
};

__attribute__((visibility("default"))) extern const struct rt_backend *const spyrert_model_backend;
const struct rt_backend *const spyrert_model_backend = &backend;
