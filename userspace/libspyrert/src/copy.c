// SPDX-License-Identifier: MIT
/*
 * Copies and fills.
 *
 * A copy is normalised (dimensions of one, and those that only continue the next inner one,
 * disappear), then cut into pieces. Pieces of pinned copies are large and go to the engines
 * directly; the first carries the barrier, the others may run beside it on another engine. Pieces
 * of other memory pass through pinned staging chunks, so that the CPU fills one while the card
 * empties another. A cut must leave the device-side start of each piece on a stick.
 */
#include "rt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DIRECT_PIECE	(4ull << 20)
#define MAX_BYTES	(1ull << 40)

/* A normalised copy. Addresses are the user's, DMVAs, HMVAs or host pointers as the step needs. */
struct nd {
	uint32_t dims;
	uint64_t ext[4];
	int64_t ds[4], ss[4];		/* byte strides; [0] unused */
	uint64_t dst, src;
};

static uint64_t payload(const struct nd *c)
{
	uint64_t n = c->ext[0];
	uint32_t i;

	for (i = 1; i < c->dims; i++)
		n *= c->ext[i];
	return n;
}

/* Lowest and one past the highest byte relative to the start. */
static void span(const struct nd *c, const int64_t *stride, int64_t *low, int64_t *high)
{
	uint32_t i;

	*low = 0;
	*high = (int64_t)c->ext[0];
	for (i = 1; i < c->dims; i++) {
		int64_t d = (int64_t)(c->ext[i] - 1) * stride[i];

		if (d < 0)
			*low += d;
		else
			*high += d;
	}
}

/* False: a size is not representable. An empty copy has ext[0] == 0. */
static bool normalise(struct nd *c, const struct spyrert_copy *u)
{
	uint64_t total = u->extent[0];
	uint32_t i, k;

	memset(c, 0, sizeof(*c));
	c->dims = 1;
	c->ext[0] = u->extent[0];
	for (i = 1; i < u->dims; i++) {
		__int128 d = (__int128)(u->extent[i] ? u->extent[i] - 1 : 0);

		if (__builtin_mul_overflow(total, u->extent[i], &total))
			return false;
		if (d * u->dst_stride[i] > INT64_MAX / 8 || d * u->dst_stride[i] < INT64_MIN / 8 ||
		    d * u->src_stride[i] > INT64_MAX / 8 || d * u->src_stride[i] < INT64_MIN / 8)
			return false;
		if (u->extent[i] == 1)
			continue;
		k = c->dims++;
		c->ext[k] = u->extent[i];
		c->ds[k] = u->dst_stride[i];
		c->ss[k] = u->src_stride[i];
	}
	if (!total) {
		c->dims = 1;
		c->ext[0] = 0;
		return true;
	}
	if (total > MAX_BYTES)
		return false;
	for (i = 1; i < c->dims;) {
		/* Dimension i continues i - 1: its stride is the extent of i - 1 on both sides. */
		uint64_t dstep = i == 1 ? c->ext[0] : c->ext[i - 1] * (uint64_t)c->ds[i - 1];
		uint64_t sstep = i == 1 ? c->ext[0] : c->ext[i - 1] * (uint64_t)c->ss[i - 1];

		if ((uint64_t)c->ds[i] != dstep || (uint64_t)c->ss[i] != sstep) {
			i++;
			continue;
		}
		c->ext[i - 1] *= c->ext[i];
		for (k = i; k + 1 < c->dims; k++) {
			c->ext[k] = c->ext[k + 1];
			c->ds[k] = c->ds[k + 1];
			c->ss[k] = c->ss[k + 1];
		}
		c->dims--;
	}
	return true;
}

/* How many steps of a dimension keep a device address on a stick. */
static uint64_t granule(int64_t stride)
{
	uint64_t s = (uint64_t)stride & (SPYRERT_STICK - 1), g = 1;

	while (s * g % SPYRERT_STICK)
		g *= 2;
	return g;
}

struct piece_ctx {
	struct spyrert_stream *st;
	uint32_t direction;		/* enum spyrert_copy_direction, as the card sees it */
	enum spyrert_activity_kind kind;
	uint64_t max;
	bool staged;
	bool started;			/* the first piece was submitted: no barrier any more */
};

typedef enum spyrert_status (*piece_fn)(struct piece_ctx *x, const struct nd *c);

/* Calls fn for pieces of at most x->max bytes, or for what cannot be cut as it is. */
static enum spyrert_status cut(struct piece_ctx *x, const struct nd *c, piece_fn fn)
{
	enum spyrert_status status;
	struct nd a, b;
	uint32_t k;

	if (payload(c) <= x->max)
		return fn(x, c);
	for (k = c->dims; k-- > 0;) {
		uint64_t g = SPYRERT_STICK, half;

		if (k) {
			g = 1;
			if (x->direction != SPYRERT_D2H)
				g = granule(c->ds[k]);
			if (x->direction != SPYRERT_H2D && granule(c->ss[k]) > g)
				g = granule(c->ss[k]);
		}
		if (c->ext[k] <= g)
			continue;
		half = c->ext[k] / 2 / g * g;
		if (!half)
			half = g;
		a = *c;
		b = *c;
		a.ext[k] = half;
		b.ext[k] -= half;
		b.dst += half * (k ? (uint64_t)c->ds[k] : 1);
		b.src += half * (k ? (uint64_t)c->ss[k] : 1);
		status = cut(x, &a, fn);
		return status ? status : cut(x, &b, fn);
	}
	return fn(x, c);
}

static enum spyrert_status submit_dma(struct piece_ctx *x, const struct nd *c)
{
	static const uint16_t types[] = { SPYRE_CB_DMAI, SPYRE_CB_DMAO, SPYRE_CB_DMAX };
	enum spyrert_status status;
	struct spyre_cb *cb;
	uint32_t i;

	status = rt_stream_cb(x->st, types[x->direction], x->started ? 0 : SPYRE_CB_F_BARRIER,
			      x->kind, &cb);
	if (status)
		return status;
	x->started = true;
	cb->u.dma.dst = htole64(c->dst);
	cb->u.dma.src = htole64(c->src);
	cb->u.dma.bytes = htole64(c->ext[0]);
	cb->u.dma.ndims = htole32(c->dims);
	for (i = 1; i < c->dims; i++) {
		cb->u.dma.count[i - 1] = htole32((uint32_t)c->ext[i]);
		cb->u.dma.dst_stride[i - 1] = htole64((uint64_t)c->ds[i]);
		cb->u.dma.src_stride[i - 1] = htole64((uint64_t)c->ss[i]);
	}
	return SPYRERT_SUCCESS;
}

/* --- Staging -------------------------------------------------------------------------------- */

/* The chunk is somebody's until it says otherwise. */
#define CHUNK_TAKEN	(UINT64_MAX - 1)

/* A chunk for this thread; lock held, given up while waiting. */
static enum spyrert_status take_chunk(struct spyrert_stream *st, struct rt_chunk **out)
{
	enum spyrert_status status;
	struct rt_chunk *c, *oldest;
	unsigned int i;
	void *cpu;

	for (;;) {
		rt_stream_reap(st);
		oldest = NULL;
		for (i = 0; i < st->nchunks; i++) {
			c = &st->chunks[(st->next_chunk + i) % st->nchunks];
			if (c->index == CHUNK_TAKEN)
				continue;
			if (c->index < st->done || c->index == UINT64_MAX) {
				st->next_chunk = (unsigned int)(c - st->chunks) + 1;
				c->index = CHUNK_TAKEN;
				*out = c;
				return SPYRERT_SUCCESS;
			}
			if (!oldest || c->index < oldest->index)
				oldest = c;
		}
		if (st->nchunks < RT_CHUNKS) {
			c = &st->chunks[st->nchunks];
			status = rt_pinned_alloc(st->session, RT_CHUNK_SIZE, &c->block, &cpu,
						 &c->hmva);
			if (!status) {
				c->cpu = cpu;
				c->index = CHUNK_TAKEN;
				st->nchunks++;
				*out = c;
				return SPYRERT_SUCCESS;
			}
			if (!st->nchunks)
				return status;
		}
		if (oldest) {
			status = rt_stream_wait_locked(st, oldest->index + 1, INT64_MAX);
			if (status)
				return status;
		} else {
			/* All are in the hands of other threads, which are copying. */
			pthread_mutex_unlock(&st->lock);
			nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
			pthread_mutex_lock(&st->lock);
		}
	}
}

/* Copies the rows of a piece between user memory and a packed buffer. */
static void pack(const struct nd *c, const int64_t *stride, uint8_t *user, uint8_t *buf,
		 bool gather)
{
	uint64_t n1 = c->dims > 1 ? c->ext[1] : 1, n2 = c->dims > 2 ? c->ext[2] : 1;
	uint64_t n3 = c->dims > 3 ? c->ext[3] : 1, i1, i2, i3;

	for (i3 = 0; i3 < n3; i3++) {
		for (i2 = 0; i2 < n2; i2++) {
			for (i1 = 0; i1 < n1; i1++) {
				uint8_t *u = user + (int64_t)i3 * stride[3] +
					     (int64_t)i2 * stride[2] + (int64_t)i1 * stride[1];

				if (gather)
					memcpy(buf, u, c->ext[0]);
				else
					memcpy(u, buf, c->ext[0]);
				buf += c->ext[0];
			}
		}
	}
}

/* The strides of packed rows. */
static void packed(const struct nd *c, int64_t *stride)
{
	uint64_t step = c->ext[0];
	uint32_t i;

	for (i = 1; i < c->dims; i++) {
		stride[i] = (int64_t)step;
		step *= c->ext[i];
	}
}

/* A buffer for one piece: a chunk, or one of its own for a piece that cannot be cut small enough.
 */
struct stage {
	struct rt_chunk *chunk;
	struct rt_block *block;
	uint8_t *cpu;
	uint64_t hmva;
};

static enum spyrert_status stage_get(struct spyrert_stream *st, uint64_t bytes, struct stage *s)
{
	enum spyrert_status status;
	void *cpu;

	memset(s, 0, sizeof(*s));
	if (bytes <= RT_CHUNK_SIZE) {
		status = take_chunk(st, &s->chunk);
		if (!status) {
			s->cpu = s->chunk->cpu;
			s->hmva = s->chunk->hmva;
		}
		return status;
	}
	status = rt_pinned_alloc(st->session, bytes, &s->block, &cpu, &s->hmva);
	s->cpu = cpu;
	return status;
}

void rt_free_pinned(struct spyrert_stream *st, void *arg)
{
	rt_pinned_free(st->session, arg);
}

static enum spyrert_status stage_in(struct piece_ctx *x, const struct nd *c)
{
	struct spyrert_stream *st = x->st;
	enum spyrert_status status;
	struct nd d = *c;
	struct stage s;

	status = stage_get(st, payload(c), &s);
	if (status)
		return status;
	/* The memcpy may be long; nobody else touches the chunk meanwhile. */
	pthread_mutex_unlock(&st->lock);
	pack(c, c->ss, (uint8_t *)(uintptr_t)c->src, s.cpu, true);
	pthread_mutex_lock(&st->lock);
	d.src = s.hmva;
	packed(c, d.ss);
	status = st->error ? rt_stream_sticky(st) : submit_dma(x, &d);
	if (s.chunk) {
		s.chunk->index = status ? UINT64_MAX : st->head - 1;
		if (!status)
			rt_stream_publish(st);
		return status;
	}
	if (status) {
		rt_pinned_free(st->session, s.block);
		return status;
	}
	status = rt_stream_defer(st, rt_free_pinned, s.block);
	if (status && !rt_stream_wait_locked(st, st->head, INT64_MAX))
		rt_pinned_free(st->session, s.block);
	return status;
}

/* D2H: pieces in flight, oldest first. */
struct out_ctx {
	struct piece_ctx x;
	struct {
		struct nd nd;
		struct stage s;
		uint64_t index;
	} fly[RT_CHUNKS];
	unsigned int first, count;
};

static enum spyrert_status land_oldest(struct out_ctx *o)
{
	struct spyrert_stream *st = o->x.st;
	enum spyrert_status status;
	unsigned int i = o->first;

	status = rt_stream_wait_locked(st, o->fly[i].index + 1, INT64_MAX);
	o->first = (o->first + 1) % RT_CHUNKS;
	o->count--;
	if (!status) {
		const struct nd *c = &o->fly[i].nd;

		pthread_mutex_unlock(&st->lock);
		pack(c, c->ds, (uint8_t *)(uintptr_t)c->dst, o->fly[i].s.cpu, false);
		pthread_mutex_lock(&st->lock);
	}
	if (o->fly[i].s.chunk) {
		/* After an error the card may still be at it: only its progress frees the chunk. */
		o->fly[i].s.chunk->index = o->fly[i].index;
	} else if (!status) {
		rt_pinned_free(st->session, o->fly[i].s.block);
	} else if (rt_stream_defer(st, rt_free_pinned, o->fly[i].s.block)) {
		return status; /* leaked until the device is closed, rather than freed under the
				  card */
	}
	return status;
}

static enum spyrert_status stage_out(struct piece_ctx *x, const struct nd *c)
{
	struct out_ctx *o = (struct out_ctx *)x;
	struct spyrert_stream *st = x->st;
	enum spyrert_status status;
	struct nd d = *c;
	unsigned int i;

	/*
	 * Land one before all chunks are this thread's own: a thread that waits for a chunk then
	 * holds none that others wait for.
	 */
	while (o->count >= RT_CHUNKS / 2) {
		status = land_oldest(o);
		if (status)
			return status;
	}
	i = (o->first + o->count) % RT_CHUNKS;
	status = stage_get(st, payload(c), &o->fly[i].s);
	if (status)
		return status;
	d.dst = o->fly[i].s.hmva;
	packed(c, d.ds);
	status = st->error ? rt_stream_sticky(st) : submit_dma(x, &d);
	if (status) {
		if (o->fly[i].s.chunk)
			o->fly[i].s.chunk->index = UINT64_MAX;
		else
			rt_pinned_free(st->session, o->fly[i].s.block);
		return status;
	}
	o->fly[i].nd = *c;
	o->fly[i].index = st->head - 1;
	o->count++;
	rt_stream_publish(st);
	return SPYRERT_SUCCESS;
}

/* --- Checks --------------------------------------------------------------------------------- */

static enum spyrert_status check_device(struct spyrert_stream *st, const char *what, bool write,
					spyrert_ptr start, const struct nd *c,
					const int64_t *stride)
{
	enum spyrert_status status = SPYRERT_SUCCESS;
	struct rt_session *s = st->session;
	struct rt_block *b;
	int64_t low, high;

	if (start % SPYRERT_STICK)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "%s address %#" PRIx64 " is not a multiple of 128", what, start);
	span(c, stride, &low, &high);
	pthread_mutex_lock(&s->mem_lock);
	b = rt_heap_find(rt_tensor_heap(s, start), start);
	if (!b)
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 "%s address %#" PRIx64 " is not in device memory allocated here",
				 what, start);
	else if ((uint64_t)-low > start - b->addr || start - b->addr + (uint64_t)high > b->size)
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 "%s range %#" PRIx64 " to %#" PRIx64
				 " leaves the allocation at %#" PRIx64 " of %" PRIu64 " bytes",
				 what, start + (uint64_t)low, start + (uint64_t)high, b->addr,
				 b->size);
	else if (write && b->region->flags & SPYRERT_POINTER_READONLY)
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 "%s address %#" PRIx64 " lies in memory that was imported to be "
				 "read only",
				 what, start);
	pthread_mutex_unlock(&s->mem_lock);
	return status;
}

static enum spyrert_status fail_peer(spyrert_ptr ptr)
{
	return rt_fail(SPYRERT_ERROR_NOT_SUPPORTED,
		       "%#" PRIx64 " lies in memory of another card, which this one only copies to "
		       "and from its own; go through memory of this card, or have the other do it",
		       ptr);
}

/* HMVA of a host side that lies wholly in pinned memory, else 0. held: as rt_host_use() has it. */
static enum spyrert_status host_hmva(struct spyrert_stream *st, const void *p, const struct nd *c,
				     const int64_t *stride, bool write, uint64_t *hmva,
				     struct rt_host_region **held)
{
	enum spyrert_status status;
	int64_t low, high;

	span(c, stride, &low, &high);
	status = rt_host_use(st->session, (const char *)p + low, (uint64_t)(high - low), write,
			     hmva, held);
	if (*hmva)
		*hmva -= (uint64_t)low;
	return status;
}

enum spyrert_status rt_copy_submit(struct spyrert_stream *st, const struct spyrert_copy *u)
{
	static const enum spyrert_activity_kind kinds[] = {
		SPYRERT_ACTIVITY_H2D, SPYRERT_ACTIVITY_D2H, SPYRERT_ACTIVITY_D2D,
	};
	struct out_ctx o = { .x = { .st = st, .direction = u->direction, .max = DIRECT_PIECE } };
	bool peer_dst = u->direction != SPYRERT_D2H && rt_is_peer(u->dst_dev);
	bool peer_src = u->direction != SPYRERT_H2D && rt_is_peer(u->src_dev);
	enum spyrert_status status = SPYRERT_SUCCESS;
	uint64_t hmva, before = st->head;
	struct rt_host_region *held;
	struct nd c;

	if (u->dims < 1 || u->dims > 4)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "a copy has 1 to 4 dimensions, not %u", u->dims);
	if (u->direction > SPYRERT_D2D)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "unknown copy direction %u",
			       u->direction);
	if (!normalise(&c, u))
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "extents or strides of a copy are too large (1 TiB at most)");
	if (!c.ext[0])
		return SPYRERT_SUCCESS;
	if (u->direction != SPYRERT_D2H)
		status = check_device(st, "destination", true, u->dst_dev, &c, c.ds);
	if (!status && u->direction != SPYRERT_H2D)
		status = check_device(st, "source", false, u->src_dev, &c, c.ss);
	if (status)
		return status;
	if ((peer_dst || peer_src) && (u->direction != SPYRERT_D2D || (peer_dst && peer_src)))
		return fail_peer(peer_dst ? u->dst_dev : u->src_dev);
	o.x.kind = kinds[u->direction];
	c.dst = u->dst_dev;
	c.src = u->src_dev;
	switch (u->direction) {
	case SPYRERT_H2D:
		if (!u->src_host)
			return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "source of a copy is NULL");
		status = host_hmva(st, u->src_host, &c, c.ss, false, &hmva, &held);
		if (status)
			return status;
		c.src = hmva ? hmva : (uintptr_t)u->src_host;
		if (hmva)
			return rt_stream_hold(st, held, before, cut(&o.x, &c, submit_dma));
		o.x.max = RT_CHUNK_SIZE;
		return cut(&o.x, &c, stage_in);
	case SPYRERT_D2H:
		if (!u->dst_host)
			return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				       "destination of a copy is NULL");
		status = host_hmva(st, u->dst_host, &c, c.ds, true, &hmva, &held);
		if (status)
			return status;
		c.dst = hmva ? hmva : (uintptr_t)u->dst_host;
		if (hmva)
			return rt_stream_hold(st, held, before, cut(&o.x, &c, submit_dma));
		o.x.max = RT_CHUNK_SIZE;
		status = cut(&o.x, &c, stage_out);
		while (o.count) {
			enum spyrert_status s = land_oldest(&o);

			if (!status)
				status = s;
		}
		return status;
	default:
		/* To the card the other one's memory is on the bus, as the host's is. */
		if (peer_dst || peer_src) {
			if (peer_dst)
				c.dst = rt_peer_hmva(c.dst);
			else
				c.src = rt_peer_hmva(c.src);
			o.x.direction = peer_dst ? SPYRERT_D2H : SPYRERT_H2D;
			return cut(&o.x, &c, submit_dma);
		}
		if (c.dims == 1 && c.dst < c.src + c.ext[0] && c.src < c.dst + c.ext[0])
			return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				       "source and destination of a copy inside the card overlap");
		/* One engine does these: nothing to gain from pieces. */
		o.x.max = 1ull << 34;
		return cut(&o.x, &c, submit_dma);
	}
}

/* --- Calls ---------------------------------------------------------------------------------- */

RT_PUBLIC enum spyrert_status spyrert_copy_async(struct spyrert_stream *st,
						 const struct spyrert_copy *copy)
{
	enum spyrert_status status;

	if (!copy)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_copy_async: copy is NULL");
	status = rt_stream_begin(st);
	if (status)
		return status;
	status = rt_copy_submit(st, copy);
	rt_stream_commit(st);
	return status;
}

static enum spyrert_status finish(struct spyrert_stream *st, enum spyrert_status status)
{
	return status ? status : spyrert_stream_synchronize(st, SPYRERT_FOREVER);
}

/* The default stream, or NULL with *status set. */
static struct spyrert_stream *default_of(struct spyrert_device *dev, enum spyrert_status *status)
{
	struct rt_session *s = rt_device_session(dev, status);

	if (!s)
		return NULL;
	rt_session_put(s);
	return spyrert_default_stream(dev);
}

RT_PUBLIC enum spyrert_status spyrert_copy(struct spyrert_device *dev,
					   const struct spyrert_copy *copy)
{
	enum spyrert_status status;
	struct spyrert_stream *st = default_of(dev, &status);

	return st ? finish(st, spyrert_copy_async(st, copy)) : status;
}

RT_PUBLIC enum spyrert_status spyrert_memcpy_h2d_async(struct spyrert_stream *st, spyrert_ptr dst,
						       const void *src, uint64_t bytes)
{
	struct spyrert_copy c = {
		.dims = 1,
		.direction = SPYRERT_H2D,
		.dst_dev = dst,
		.src_host = src,
		.extent = { bytes },
	};

	return spyrert_copy_async(st, &c);
}

RT_PUBLIC enum spyrert_status spyrert_memcpy_d2h_async(struct spyrert_stream *st, void *dst,
						       spyrert_ptr src, uint64_t bytes)
{
	struct spyrert_copy c = {
		.dims = 1,
		.direction = SPYRERT_D2H,
		.dst_host = dst,
		.src_dev = src,
		.extent = { bytes },
	};

	return spyrert_copy_async(st, &c);
}

RT_PUBLIC enum spyrert_status spyrert_memcpy_d2d_async(struct spyrert_stream *st, spyrert_ptr dst,
						       spyrert_ptr src, uint64_t bytes)
{
	struct spyrert_copy c = {
		.dims = 1,
		.direction = SPYRERT_D2D,
		.dst_dev = dst,
		.src_dev = src,
		.extent = { bytes },
	};

	return spyrert_copy_async(st, &c);
}

RT_PUBLIC enum spyrert_status spyrert_memcpy_h2d(struct spyrert_device *dev, spyrert_ptr dst,
						 const void *src, uint64_t bytes)
{
	enum spyrert_status status;
	struct spyrert_stream *st = default_of(dev, &status);

	return st ? finish(st, spyrert_memcpy_h2d_async(st, dst, src, bytes)) : status;
}

RT_PUBLIC enum spyrert_status spyrert_memcpy_d2h(struct spyrert_device *dev, void *dst,
						 spyrert_ptr src, uint64_t bytes)
{
	enum spyrert_status status;
	struct spyrert_stream *st = default_of(dev, &status);

	return st ? finish(st, spyrert_memcpy_d2h_async(st, dst, src, bytes)) : status;
}

RT_PUBLIC enum spyrert_status spyrert_memcpy_d2d(struct spyrert_device *dev, spyrert_ptr dst,
						 spyrert_ptr src, uint64_t bytes)
{
	enum spyrert_status status;
	struct spyrert_stream *st = default_of(dev, &status);

	return st ? finish(st, spyrert_memcpy_d2d_async(st, dst, src, bytes)) : status;
}

RT_PUBLIC enum spyrert_status spyrert_fill_async(struct spyrert_stream *st, spyrert_ptr dst,
						 uint64_t pattern, unsigned int width,
						 uint64_t bytes)
{
	struct nd c = { .dims = 1, .ext = { bytes } };
	uint64_t bulk = bytes & ~(uint64_t)(SPYRERT_STICK - 1), i;
	enum spyrert_status status;
	struct spyre_cb *cb;

	if (width != 1 && width != 2 && width != 4 && width != 8)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "width of a fill is %u; it must be 1, 2, 4 or 8", width);
	if (bytes % width)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "%" PRIu64 " bytes are not a multiple of the pattern's width %u",
			       bytes, width);
	for (i = width; i < 8; i *= 2)
		pattern = (pattern & ((1ull << (i * 8)) - 1)) | pattern << (i * 8);
	status = rt_stream_begin(st);
	if (status)
		return status;
	if (bytes)
		status = check_device(st, "fill", true, dst, &c, c.ds);
	if (!status && bytes && rt_is_peer(dst))
		status = fail_peer(dst);
	if (!status && bulk) {
		status = rt_stream_cb(st, SPYRE_CB_FILL, SPYRE_CB_F_BARRIER, SPYRERT_ACTIVITY_FILL,
				      &cb);
		if (!status) {
			cb->u.fill.dst = htole64(dst);
			cb->u.fill.bytes = htole64(bulk);
			cb->u.fill.pattern = htole64(pattern);
		}
	}
	/* The card fills sticks; what is left is a copy of the pattern. */
	if (!status && bytes > bulk) {
		uint64_t hmva;
		spyre_le64 word = htole64(pattern);
		void *cpu;

		status = rt_stream_symbols(st, SPYRERT_STICK, &cpu, &hmva);
		if (!status) {
			for (i = 0; i < SPYRERT_STICK; i += 8)
				memcpy((char *)cpu + i, &word, 8);
			status = rt_stream_cb(st, SPYRE_CB_DMAI, SPYRE_CB_F_BARRIER,
					      SPYRERT_ACTIVITY_FILL, &cb);
		}
		if (!status) {
			cb->u.dma.dst = htole64(dst + bulk);
			cb->u.dma.src = htole64(hmva);
			cb->u.dma.bytes = htole64(bytes - bulk);
			cb->u.dma.ndims = htole32(1);
			status = rt_stream_symbols_used(st);
		}
	}
	rt_stream_commit(st);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_fill(struct spyrert_device *dev, spyrert_ptr dst,
					   uint64_t pattern, unsigned int width, uint64_t bytes)
{
	enum spyrert_status status;
	struct spyrert_stream *st = default_of(dev, &status);

	return st ? finish(st, spyrert_fill_async(st, dst, pattern, width, bytes)) : status;
}
