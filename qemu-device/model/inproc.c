/* SPDX-License-Identifier: MIT */
/* In-process host of the card, see inproc.h. */
#include "inproc.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BIG_PAGE	SPYRE_PAGE_SIZE

struct region {
	struct region *next;
	uint64_t bus;
	uint8_t *ptr;
	uint64_t bytes;
	bool writable;
};

struct spyre_inproc {
	struct spyre_card *card;
	struct region arena;
	size_t used;		/* map_lock */
	uint64_t next_bus;	/* map_lock */

	/* Leaf locks; the card is never called with one of them held. */
	pthread_rwlock_t map_lock;	/* regions, master, used, next_bus */
	struct region *regions;
	bool master;
	bool big_lock;		/* atomic */

	pthread_mutex_t vec_lock;	/* raised */
	pthread_cond_t vec_cond;
	uint64_t raised[SPYRE_MSI_VECTORS];
	int fd[SPYRE_MSI_VECTORS];

	pthread_mutex_t time_lock;	/* deadline, quit, manual, manual_ns */
	pthread_cond_t time_cond;
	pthread_t timer;
	bool timer_started;
	int64_t deadline;
	bool quit;
	bool manual;
	int64_t manual_ns;
	int64_t start_ns;

	pthread_mutex_t hook_lock;	/* the next members */
	enum spyre_log_level level;
	void (*log_fn)(void *opaque, enum spyre_log_level level, const char *text);
	void *log_opaque;
	uint64_t inconsistencies;
};

static int64_t mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void *host_dma_map(void *opaque, uint64_t bus, uint64_t *len, bool write)
{
	struct spyre_inproc *ip = opaque;
	void *ret = NULL;
	struct region *r;

	if (__atomic_load_n(&ip->big_lock, __ATOMIC_RELAXED) && spyre_card_stopping(ip->card))
		return NULL;
	pthread_rwlock_rdlock(&ip->map_lock);
	if (ip->master) {
		for (r = ip->regions; r; r = r->next) {
			uint64_t off = bus - r->bus;

			if (off >= r->bytes || (write && !r->writable))
				continue;
			if (*len > r->bytes - off)
				*len = r->bytes - off;
			ret = r->ptr + off;
			break;
		}
	}
	pthread_rwlock_unlock(&ip->map_lock);
	return ret;
}

static int64_t host_clock(void *opaque)
{
	struct spyre_inproc *ip = opaque;

	if (__atomic_load_n(&ip->manual, __ATOMIC_ACQUIRE))
		return __atomic_load_n(&ip->manual_ns, __ATOMIC_ACQUIRE);
	return mono_ns() - ip->start_ns;
}

static void host_timer_mod(void *opaque, int64_t ns)
{
	struct spyre_inproc *ip = opaque;

	pthread_mutex_lock(&ip->time_lock);
	ip->deadline = ns;
	pthread_cond_broadcast(&ip->time_cond);
	pthread_mutex_unlock(&ip->time_lock);
}

static void host_raise(void *opaque, unsigned int v)
{
	struct spyre_inproc *ip = opaque;
	uint64_t one = 1;
	ssize_t n;

	if (v >= SPYRE_MSI_VECTORS)
		return;
	pthread_mutex_lock(&ip->vec_lock);
	ip->raised[v]++;
	pthread_cond_broadcast(&ip->vec_cond);
	pthread_mutex_unlock(&ip->vec_lock);
	/* Fails only when nobody has read 2^64 - 2 events: the reader is awake then anyway. */
	n = write(ip->fd[v], &one, sizeof(one));
	(void)n;
}

static void host_log(void *opaque, enum spyre_log_level level, const char *text)
{
	void (*fn)(void *opaque, enum spyre_log_level level, const char *text);
	struct spyre_inproc *ip = opaque;
	void *fn_opaque;
	bool wanted;

	pthread_mutex_lock(&ip->hook_lock);
	wanted = level <= ip->level;
	fn = ip->log_fn;
	fn_opaque = ip->log_opaque;
	pthread_mutex_unlock(&ip->hook_lock);
	if (!wanted)
		return;
	if (fn)
		fn(fn_opaque, level, text);
	else
		fprintf(stderr, "spyre: %s\n", text);
}

static void host_inconsistent(void *opaque, const char *text)
{
	struct spyre_inproc *ip = opaque;

	__atomic_fetch_add(&ip->inconsistencies, 1, __ATOMIC_RELAXED);
	fprintf(stderr, "spyre: internal inconsistency: %s\n", text);
}

static const struct spyre_host_ops host_ops = {
	.dma_map = host_dma_map,
	.clock_ns = host_clock,
	.timer_mod = host_timer_mod,
	.raise = host_raise,
	.log = host_log,
	.inconsistent = host_inconsistent,
};

static void *timer_main(void *arg)
{
	struct spyre_inproc *ip = arg;

	pthread_mutex_lock(&ip->time_lock);
	while (!ip->quit) {
		struct timespec ts;
		int64_t at;

		/* By hand, the clock may have passed a deadline before it was set: that one is due now. */
		if (ip->deadline == INT64_MAX || (ip->manual && ip->deadline > ip->manual_ns)) {
			pthread_cond_wait(&ip->time_cond, &ip->time_lock);
			continue;
		}
		at = ip->deadline + ip->start_ns;
		if (!ip->manual && at > mono_ns()) {
			ts.tv_sec = at / 1000000000ll;
			ts.tv_nsec = at % 1000000000ll;
			pthread_cond_timedwait(&ip->time_cond, &ip->time_lock, &ts);
			continue;
		}
		ip->deadline = INT64_MAX;
		pthread_mutex_unlock(&ip->time_lock);
		spyre_card_timer(ip->card);
		pthread_mutex_lock(&ip->time_lock);
	}
	pthread_mutex_unlock(&ip->time_lock);
	return NULL;
}

struct spyre_inproc *spyre_inproc_new(const struct spyre_card_config *cfg, size_t arena)
{
	struct spyre_card_config def = {
		.memory = 1ull << 30,
		.aperture = SPYRE_BAR_APERTURE_SIZE,
		.mem_fd = -1,
	};
	struct spyre_inproc *ip;
	pthread_condattr_t attr;
	sigset_t all, old;
	const char *bad;
	char buf[200];
	uint8_t *p;
	int i;

	if (!cfg)
		cfg = &def;
	bad = spyre_card_config_check(cfg, buf, sizeof(buf));
	if (bad) {
		fprintf(stderr, "spyre: %s\n", bad);
		errno = EINVAL;
		return NULL;
	}
	ip = calloc(1, sizeof(*ip));
	if (!ip)
		return NULL;
	arena = (arena + BIG_PAGE - 1) & ~(BIG_PAGE - 1);
	if (!arena)
		arena = BIG_PAGE;
	/* One page more than asked for, so that the arena can start on a 2 MiB boundary. */
	p = mmap(NULL, arena + BIG_PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		free(ip);
		return NULL;
	}
	ip->arena.ptr = (uint8_t *)(((uintptr_t)p + BIG_PAGE - 1) & ~(uintptr_t)(BIG_PAGE - 1));
	if (ip->arena.ptr != p)
		munmap(p, ip->arena.ptr - p);
	if (ip->arena.ptr + arena != p + arena + BIG_PAGE)
		munmap(ip->arena.ptr + arena, p + BIG_PAGE - ip->arena.ptr);
	ip->arena.bus = SPYRE_INPROC_BUS;
	ip->arena.bytes = arena;
	ip->arena.writable = true;
	ip->regions = &ip->arena;
	ip->next_bus = SPYRE_INPROC_BUS + arena + BIG_PAGE;
	ip->master = true;
	ip->level = SPYRE_LOG_WARN;
	ip->deadline = INT64_MAX;
	ip->start_ns = mono_ns();
	/* A card that repeats exactly needs a clock that does. */
	ip->manual = cfg->sliced;
	for (i = 0; i < (int)SPYRE_MSI_VECTORS; i++)
		ip->fd[i] = -1;

	pthread_rwlock_init(&ip->map_lock, NULL);
	pthread_mutex_init(&ip->vec_lock, NULL);
	pthread_mutex_init(&ip->time_lock, NULL);
	pthread_mutex_init(&ip->hook_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&ip->vec_cond, &attr);
	pthread_cond_init(&ip->time_cond, &attr);
	pthread_condattr_destroy(&attr);

	for (i = 0; i < (int)SPYRE_MSI_VECTORS; i++) {
		ip->fd[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (ip->fd[i] < 0)
			goto fail;
	}
	ip->card = spyre_card_new(cfg, &host_ops, ip);
	if (!ip->card)
		goto fail;
	/* Signals are for the threads of whoever uses the card. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	i = pthread_create(&ip->timer, NULL, timer_main, ip);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (i) {
		errno = i;
		goto fail;
	}
	ip->timer_started = true;
	return ip;
fail:
	i = errno;
	spyre_inproc_free(ip);
	errno = i;
	return NULL;
}

void spyre_inproc_free(struct spyre_inproc *ip)
{
	struct region *r, *next;
	unsigned int i;

	if (!ip)
		return;
	if (ip->timer_started) {
		pthread_mutex_lock(&ip->time_lock);
		ip->quit = true;
		pthread_cond_broadcast(&ip->time_cond);
		pthread_mutex_unlock(&ip->time_lock);
		pthread_join(ip->timer, NULL);
	}
	if (ip->card)
		spyre_card_free(ip->card);
	for (r = ip->regions; r; r = next) {
		next = r->next;
		if (r != &ip->arena)
			free(r);
	}
	for (i = 0; i < SPYRE_MSI_VECTORS; i++)
		if (ip->fd[i] >= 0)
			close(ip->fd[i]);
	munmap(ip->arena.ptr, ip->arena.bytes);
	pthread_rwlock_destroy(&ip->map_lock);
	pthread_mutex_destroy(&ip->vec_lock);
	pthread_mutex_destroy(&ip->time_lock);
	pthread_mutex_destroy(&ip->hook_lock);
	pthread_cond_destroy(&ip->vec_cond);
	pthread_cond_destroy(&ip->time_cond);
	free(ip);
}

struct spyre_card *spyre_inproc_card(struct spyre_inproc *ip)
{
	return ip->card;
}

void *spyre_inproc_arena(struct spyre_inproc *ip)
{
	return ip->arena.ptr;
}

size_t spyre_inproc_arena_size(struct spyre_inproc *ip)
{
	return ip->arena.bytes;
}

void *spyre_inproc_alloc(struct spyre_inproc *ip, size_t bytes, size_t align)
{
	void *ret = NULL;
	size_t at;

	pthread_rwlock_wrlock(&ip->map_lock);
	at = (ip->used + align - 1) & ~(align - 1);
	if (at <= ip->arena.bytes && bytes <= ip->arena.bytes - at) {
		ret = ip->arena.ptr + at;
		ip->used = at + bytes;
	}
	pthread_rwlock_unlock(&ip->map_lock);
	return ret;
}

uint64_t spyre_inproc_bus(struct spyre_inproc *ip, const void *ptr)
{
	uint64_t ret = 0;
	struct region *r;

	pthread_rwlock_rdlock(&ip->map_lock);
	for (r = ip->regions; r; r = r->next) {
		uint64_t off = (uintptr_t)ptr - (uintptr_t)r->ptr;

		if (off < r->bytes) {
			ret = r->bus + off;
			break;
		}
	}
	pthread_rwlock_unlock(&ip->map_lock);
	return ret;
}

uint64_t spyre_inproc_map(struct spyre_inproc *ip, void *ptr, size_t bytes, bool writable)
{
	struct region *r;

	if (!bytes || ((uintptr_t)ptr | bytes) & 4095) {
		errno = EINVAL;
		return 0;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return 0;
	r->ptr = ptr;
	r->bytes = bytes;
	r->writable = writable;
	pthread_rwlock_wrlock(&ip->map_lock);
	r->bus = ip->next_bus + ((uintptr_t)ptr & (BIG_PAGE - 1));
	/* A page stays free behind each range, so that running over its end faults. */
	ip->next_bus = ((r->bus + bytes + BIG_PAGE - 1) & ~(BIG_PAGE - 1)) + BIG_PAGE;
	r->next = ip->regions;
	ip->regions = r;
	pthread_rwlock_unlock(&ip->map_lock);
	return r->bus;
}

void spyre_inproc_unmap(struct spyre_inproc *ip, uint64_t bus)
{
	struct region **at, *r = NULL;

	pthread_rwlock_wrlock(&ip->map_lock);
	for (at = &ip->regions; *at; at = &(*at)->next) {
		if ((*at)->bus == bus && *at != &ip->arena) {
			r = *at;
			*at = r->next;
			break;
		}
	}
	pthread_rwlock_unlock(&ip->map_lock);
	if (!r)
		return;
	spyre_card_dma_sync(ip->card);
	free(r);
}

void spyre_inproc_bus_master(struct spyre_inproc *ip, bool on)
{
	pthread_rwlock_wrlock(&ip->map_lock);
	ip->master = on;
	pthread_rwlock_unlock(&ip->map_lock);
	spyre_card_dma_sync(ip->card);
}

void spyre_inproc_big_lock(struct spyre_inproc *ip, bool on)
{
	__atomic_store_n(&ip->big_lock, on, __ATOMIC_RELAXED);
}

uint64_t spyre_inproc_raised(struct spyre_inproc *ip, unsigned int v)
{
	uint64_t n;

	pthread_mutex_lock(&ip->vec_lock);
	n = v < SPYRE_MSI_VECTORS ? ip->raised[v] : 0;
	pthread_mutex_unlock(&ip->vec_lock);
	return n;
}

uint64_t spyre_inproc_wait(struct spyre_inproc *ip, unsigned int v, uint64_t seen, int timeout_ms)
{
	struct timespec ts;
	int64_t at = mono_ns() + timeout_ms * 1000000ll;
	uint64_t n;

	if (v >= SPYRE_MSI_VECTORS)
		return 0;
	ts.tv_sec = at / 1000000000ll;
	ts.tv_nsec = at % 1000000000ll;
	pthread_mutex_lock(&ip->vec_lock);
	while (ip->raised[v] <= seen) {
		if (timeout_ms < 0)
			pthread_cond_wait(&ip->vec_cond, &ip->vec_lock);
		else if (pthread_cond_timedwait(&ip->vec_cond, &ip->vec_lock, &ts) == ETIMEDOUT)
			break;
	}
	n = ip->raised[v];
	pthread_mutex_unlock(&ip->vec_lock);
	return n;
}

int spyre_inproc_fd(struct spyre_inproc *ip, unsigned int v)
{
	return v < SPYRE_MSI_VECTORS ? ip->fd[v] : -1;
}

void spyre_inproc_manual_clock(struct spyre_inproc *ip)
{
	pthread_mutex_lock(&ip->time_lock);
	__atomic_store_n(&ip->manual_ns, mono_ns() - ip->start_ns, __ATOMIC_RELEASE);
	__atomic_store_n(&ip->manual, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&ip->time_cond);
	pthread_mutex_unlock(&ip->time_lock);
}

void spyre_inproc_advance(struct spyre_inproc *ip, int64_t ns)
{
	int64_t end;

	pthread_mutex_lock(&ip->time_lock);
	end = ip->manual_ns + ns;
	while (ip->deadline <= end) {
		int64_t at = ip->deadline;

		/* A deadline in the past fires now; the clock never goes back. */
		if (at > ip->manual_ns)
			__atomic_store_n(&ip->manual_ns, at, __ATOMIC_RELEASE);
		ip->deadline = INT64_MAX;
		pthread_mutex_unlock(&ip->time_lock);
		spyre_card_timer(ip->card);
		pthread_mutex_lock(&ip->time_lock);
	}
	__atomic_store_n(&ip->manual_ns, end, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&ip->time_lock);
}

void spyre_inproc_log(struct spyre_inproc *ip, enum spyre_log_level level,
		      void (*fn)(void *opaque, enum spyre_log_level level, const char *text),
		      void *opaque)
{
	pthread_mutex_lock(&ip->hook_lock);
	ip->level = level;
	ip->log_fn = fn;
	ip->log_opaque = opaque;
	pthread_mutex_unlock(&ip->hook_lock);
}

uint64_t spyre_inproc_inconsistencies(struct spyre_inproc *ip)
{
	return __atomic_load_n(&ip->inconsistencies, __ATOMIC_RELAXED);
}
