// SPDX-License-Identifier: MIT
/*
 * Programs: prepared once, kept as long as loads or launches refer to them, found again by content.
 *
 * Addresses of a plan count from the base of the program segment as the compiler assumed it; they
 * move by the distance to where the allocation really lies.
 */
#include "rt.h"
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct spyrert_program {
	struct spyrert_program *next;	/* session.prog_lock */
	struct rt_session *session;
	struct spyrert_device *dev;
	unsigned int loads;		/* prog_lock */
	unsigned int refs;		/* loads and launches in flight; prog_lock */
	struct rt_plan plan;
	struct rt_block *block;
	uint64_t hash;
	uint32_t core_mask;		/* of the first job binary */
	uint32_t symbols;		/* values a launch takes */
	uint8_t digest[32];
	bool simple;			/* one compute, symbols are the arguments as they are */

	/*
	 * A plan that transfers writes the same card memory at each launch: launches of other
	 * streams wait for the last one.
	 */
	pthread_mutex_t order;
	struct rt_timeline *last;
	uint64_t last_value;
};

static uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}

static uint64_t hash_plan(const struct rt_plan *plan)
{
	uint64_t h = hash_bytes(0xcbf29ce484222325ull, &plan->bytes, sizeof(plan->bytes));
	size_t i;

	for (i = 0; i < plan->ninits; i++) {
		h = hash_bytes(h, &plan->inits[i].offset, sizeof(uint64_t));
		h = hash_bytes(h, plan->inits[i].data, plan->inits[i].bytes);
	}
	return h;
}

/* The hash only finds candidates; this decides. */
static bool same_plan(const struct rt_plan *a, const struct rt_plan *b)
{
	size_t i, k;

	if (a->bytes != b->bytes || a->ninits != b->ninits || a->nsteps != b->nsteps ||
	    a->nbuffers != b->nbuffers || a->arguments != b->arguments)
		return false;
	for (i = 0; i < a->ninits; i++)
		if (a->inits[i].offset != b->inits[i].offset ||
		    a->inits[i].bytes != b->inits[i].bytes ||
		    memcmp(a->inits[i].data, b->inits[i].data, a->inits[i].bytes))
			return false;
	for (i = 0; i < a->nsteps; i++) {
		const struct rt_step *s = &a->steps[i], *t = &b->steps[i];

		if (s->kind != t->kind || s->offset != t->offset || s->bytes != t->bytes ||
		    s->buffer != t->buffer || s->nsymbols != t->nsymbols)
			return false;
		for (k = 0; k < s->nsymbols; k++)
			if (s->symbols[k].argument != t->symbols[k].argument ||
			    s->symbols[k].offset != t->symbols[k].offset)
				return false;
	}
	return true;
}

/* The container that a compute step enters, as far as the plan's own bytes show it. */
static const struct spyre_job_header *job_at(const struct rt_plan *plan, uint64_t offset)
{
	size_t i;

	for (i = plan->ninits; i-- > 0;) {
		const struct rt_init *in = &plan->inits[i];

		if (offset >= in->offset &&
		    offset - in->offset + sizeof(struct spyre_job_header) <= in->bytes)
			return (const void *)(in->data + (offset - in->offset));
	}
	return NULL;
}

/* What can be known of the job binaries without the card; it checks them whole at launch. */
static enum spyrert_status look_at_jobs(struct spyrert_program *p)
{
	struct rt_plan *plan = &p->plan;
	uint32_t computes = 0, i, args = plan->arguments;
	bool hosted = false;

	for (i = 0; i < plan->nsteps; i++) {
		const struct rt_step *host = NULL, *step = &plan->steps[i];
		const struct spyre_job_header *h;
		uint32_t n;

		hosted |= step->kind == RT_STEP_HOST;
		if (step->kind != RT_STEP_COMPUTE)
			continue;
		h = job_at(plan, step->offset);
		if (!h || le32toh(h->magic) != SPYRE_JOB_MAGIC)
			return rt_fail(
				SPYRERT_ERROR_BAD_SPYRECODE,
				"JobExecPlan[%u] ComputeOnDevice: there is no job binary at 0x%llx",
				i, SPYRE_PROGRAM_BASE + (unsigned long long)step->offset);
		n = le32toh(h->nsymbols);
		if (n > SPYRE_JOB_SYMBOLS)
			return rt_fail(SPYRERT_ERROR_BAD_SPYRECODE,
				       "the job binary names %u symbols; at most %u "
				       "are possible",
				       n, SPYRE_JOB_SYMBOLS);
		if (i >= 2 && plan->steps[i - 1].kind == RT_STEP_H2D &&
		    plan->steps[i - 2].kind == RT_STEP_HOST)
			host = &plan->steps[i - 2];
		if (host && host->nsymbols != n && n)
			return rt_fail(SPYRERT_ERROR_BAD_SPYRECODE,
				       "JobExecPlan[%u] ComputeOnHost: hcm gives %u symbols, the "
				       "job binary takes %u",
				       i - 2, host->nsymbols, n);
		if (!host && n > args)
			args = n;
		if (!computes++) {
			p->core_mask = le32toh(h->core_mask);
			memcpy(p->digest, h->digest, sizeof(p->digest));
		}
	}
	p->symbols = args;
	p->simple = !hosted && plan->nbuffers == 0;
	return SPYRERT_SUCCESS;
}

/* Transfers on the internal stream, which recovers by itself from what other streams did to it. */
static enum spyrert_status upload(struct spyrert_program *p)
{
	struct spyrert_stream *st = p->session->internal;
	enum spyrert_status status;
	struct rt_block *block;
	uint64_t hmva, done, n;
	struct spyre_cb *cb;
	void *cpu;
	size_t i;
	int tries;

	for (i = 0; i < p->plan.ninits; i++) {
		const struct rt_init *in = &p->plan.inits[i];

		for (done = 0; done < in->bytes; done += n) {
			n = in->bytes - done < (4u << 20) ? in->bytes - done : 4u << 20;
			status = rt_pinned_alloc(p->session, n, &block, &cpu, &hmva);
			if (status)
				return status;
			memcpy(cpu, in->data + done, n);
			for (tries = 0; tries < 2; tries++) {
				status = rt_stream_begin(st);
				if (status) {
					spyrert_stream_reset(st);
					continue;
				}
				status = rt_stream_cb(st, SPYRE_CB_DMAI, SPYRE_CB_F_BARRIER,
						      SPYRERT_ACTIVITY_H2D, &cb);
				if (!status) {
					cb->u.dma.dst = htole64(p->block->addr + in->offset + done);
					cb->u.dma.src = htole64(hmva);
					cb->u.dma.bytes = htole64(n);
					cb->u.dma.ndims = htole32(1);
				}
				rt_stream_commit(st);
				if (!status)
					status = spyrert_stream_synchronize(st, 60000000000ull);
				if (!status)
					break;
				spyrert_stream_reset(st);
			}
			rt_pinned_free(p->session, block);
			if (status)
				return status;
		}
	}
	return SPYRERT_SUCCESS;
}

static void program_free(struct spyrert_program *p)
{
	struct rt_session *s = p->session;

	if (p->block)
		rt_program_free(s, p->block);
	rt_timeline_put(p->last);
	pthread_mutex_destroy(&p->order);
	rt_plan_free(&p->plan);
	free(p);
	rt_session_put(s);
}

/* Takes the plan over, also on failure. */
static enum spyrert_status prepare(struct spyrert_device *dev, struct rt_session *s,
				   struct rt_plan *plan, struct spyrert_program **out)
{
	enum spyrert_status status;
	struct spyrert_program *p, *q;

	p = calloc(1, sizeof(*p));
	if (!p) {
		rt_plan_free(plan);
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	}
	p->session = rt_session_get(s);
	p->dev = dev;
	p->plan = *plan;
	p->loads = 1;
	p->refs = 1;
	pthread_mutex_init(&p->order, NULL);
	status = look_at_jobs(p);
	if (status) {
		program_free(p);
		return status;
	}
	p->hash = hash_plan(&p->plan);
	/* Two loads of one program upload it once. */
	pthread_mutex_lock(&s->load_lock);
	pthread_mutex_lock(&s->prog_lock);
	for (q = s->programs; q; q = q->next)
		if (q->hash == p->hash && q->loads && same_plan(&q->plan, &p->plan))
			break;
	if (q) {
		q->loads++;
		q->refs++;
		pthread_mutex_unlock(&s->prog_lock);
		pthread_mutex_unlock(&s->load_lock);
		program_free(p);
		p = q;
		goto done;
	}
	/* The wait for the upload looks after all streams, and launches that end give programs up. */
	pthread_mutex_unlock(&s->prog_lock);
	status = rt_program_alloc(s, p->plan.bytes, &p->block);
	if (!status)
		status = upload(p);
	if (status) {
		pthread_mutex_unlock(&s->load_lock);
		program_free(p);
		return status;
	}
	pthread_mutex_lock(&s->prog_lock);
	p->next = s->programs;
	s->programs = p;
	pthread_mutex_unlock(&s->prog_lock);
	pthread_mutex_unlock(&s->load_lock);
	rt_log(s->lib, RT_LOG_PROGRAM, "program at %#llx, %llu bytes, %u symbols",
	       (unsigned long long)p->block->addr, (unsigned long long)p->plan.bytes, p->symbols);
done:
	__atomic_fetch_add(&dev->objects, 1, __ATOMIC_ACQ_REL);
	*out = p;
	return SPYRERT_SUCCESS;
}

static void program_put(struct spyrert_program *p)
{
	struct spyrert_program **link;
	struct rt_session *s = p->session;
	bool last;

	pthread_mutex_lock(&s->prog_lock);
	last = --p->refs == 0;
	if (last) {
		for (link = &s->programs; *link && *link != p; link = &(*link)->next)
			;
		if (*link)
			*link = p->next;
	}
	pthread_mutex_unlock(&s->prog_lock);
	if (last)
		program_free(p);
}

/* --- Sources of files ----------------------------------------------------------------------- */

/* Whole file; 0 or an errno. */
static int read_file(const char *path, uint8_t **data, size_t *bytes)
{
	size_t size, at = 0;
	struct stat st;
	uint8_t *buf;
	ssize_t n;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (fstat(fd, &st)) {
		err = errno;
		close(fd);
		return err;
	}
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	}
	size = (size_t)st.st_size;
	buf = malloc(size + 1);
	if (!buf) {
		close(fd);
		return ENOMEM;
	}
	while (at < size && (n = read(fd, buf + at, size - at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err = errno;
			free(buf);
			close(fd);
			return err;
		}
		at += (size_t)n;
	}
	close(fd);
	*data = buf;
	*bytes = at;
	return 0;
}

static enum spyrert_status dir_file(void *opaque, const char *name, uint8_t **data, size_t *bytes)
{
	char path[PATH_MAX];

	/* A plan names files of its own directory only. */
	if (!*name || name[0] == '/' || strstr(name, ".."))
		return SPYRERT_ERROR_BAD_SPYRECODE;
	if (snprintf(path, sizeof(path), "%s/%s", (const char *)opaque, name) >= (int)sizeof(path))
		return SPYRERT_ERROR_BAD_SPYRECODE;
	return read_file(path, data, bytes) ? SPYRERT_ERROR_BAD_SPYRECODE : SPYRERT_SUCCESS;
}

struct memory_files {
	const struct spyrert_file *files;
	size_t n;
};

static enum spyrert_status memory_file(void *opaque, const char *name, uint8_t **data,
				       size_t *bytes)
{
	const struct memory_files *m = opaque;
	size_t i;

	for (i = 0; i < m->n; i++) {
		if (!m->files[i].name || strcmp(m->files[i].name, name))
			continue;
		*data = malloc(m->files[i].bytes + 1);
		if (!*data)
			return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
		memcpy(*data, m->files[i].data, m->files[i].bytes);
		*bytes = m->files[i].bytes;
		return SPYRERT_SUCCESS;
	}
	return SPYRERT_ERROR_BAD_SPYRECODE;
}

/* --- Calls ---------------------------------------------------------------------------------- */

RT_PUBLIC enum spyrert_status spyrert_program_load(struct spyrert_device *dev, const char *path,
						   struct spyrert_program **out)
{
	char name[PATH_MAX];
	enum spyrert_status status;
	struct rt_session *s;
	struct rt_plan plan;
	struct stat st;
	uint8_t *json;
	size_t bytes;
	int err;

	if (!path || !out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_program_load: NULL argument");
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	if (stat(path, &st))
		status = rt_fail(SPYRERT_ERROR_BAD_SPYRECODE, "SpyreCode directory '%s': %s", path,
				 strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		status = rt_fail(SPYRERT_ERROR_BAD_SPYRECODE, "'%s' is not a directory", path);
	else if (snprintf(name, sizeof(name), "%s/spyrecode.json", path) >= (int)sizeof(name))
		status = rt_fail(SPYRERT_ERROR_BAD_SPYRECODE, "the path is too long");
	if (status)
		goto out;
	err = read_file(name, &json, &bytes);
	if (err) {
		status = rt_fail(SPYRERT_ERROR_BAD_SPYRECODE, "required file '%s': %s", name,
				 strerror(err));
		goto out;
	}
	status = rt_plan_parse((const char *)json, bytes, dir_file, (void *)(uintptr_t)path, &plan);
	free(json);
	if (!status)
		status = prepare(dev, s, &plan, out);
out:
	rt_session_put(s);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_program_load_memory(struct spyrert_device *dev,
							  const char *json, size_t json_bytes,
							  const struct spyrert_file *files,
							  size_t nfiles,
							  struct spyrert_program **out)
{
	struct memory_files m = { .files = files, .n = nfiles };
	enum spyrert_status status;
	struct rt_session *s;
	struct rt_plan plan;

	if (!json || !out || (nfiles && !files))
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_program_load_memory: NULL argument");
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	status = rt_plan_parse(json, json_bytes, memory_file, &m, &plan);
	if (!status)
		status = prepare(dev, s, &plan, out);
	rt_session_put(s);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_program_load_binary(struct spyrert_device *dev,
							  const void *data, size_t bytes,
							  struct spyrert_program **out)
{
	enum spyrert_status status;
	struct rt_plan plan = { 0 };
	struct rt_session *s;

	if (!data || !out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_program_load_binary: NULL argument");
	if (bytes < sizeof(struct spyre_job_header) || bytes % SPYRERT_STICK ||
	    bytes > SPYRE_JOB_MAX)
		return rt_fail(SPYRERT_ERROR_BAD_SPYRECODE,
			       "a job binary has a multiple of 128 bytes, at least 128 and at most "
			       "16 MiB, not %zu",
			       bytes);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	plan.bytes = bytes;
	plan.inits = calloc(1, sizeof(*plan.inits));
	plan.steps = calloc(1, sizeof(*plan.steps));
	if (plan.inits)
		plan.inits[0].data = malloc(bytes);
	if (!plan.inits || !plan.steps || !plan.inits[0].data) {
		free(plan.inits);
		free(plan.steps);
		rt_session_put(s);
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	}
	memcpy(plan.inits[0].data, data, bytes);
	plan.inits[0].bytes = bytes;
	plan.ninits = 1;
	plan.steps[0].kind = RT_STEP_COMPUTE;
	plan.nsteps = 1;
	status = prepare(dev, s, &plan, out);
	rt_session_put(s);
	return status;
}

RT_PUBLIC enum spyrert_status
spyrert_program_get_info(struct spyrert_program *p, struct spyrert_program_info *out, size_t size)
{
	struct spyrert_program_info i = { 0 };
	size_t k;

	if (!p || !out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_program_get_info: NULL argument");
	RT_CHECK_SIZE(size);
	RT_CHECK_FORK(p->session->lib);
	for (k = 0; k < p->plan.nsteps; k++) {
		if (p->plan.steps[k].kind != RT_STEP_COMPUTE)
			continue;
		if (!i.computes++)
			i.address = p->block->addr + p->plan.steps[k].offset;
	}
	i.bytes = p->block->size;
	i.core_mask = p->core_mask;
	i.symbols = p->symbols;
	memcpy(i.digest, p->digest, sizeof(i.digest));
	pthread_mutex_lock(&p->session->prog_lock);
	i.references = p->loads;
	pthread_mutex_unlock(&p->session->prog_lock);
	rt_copy_out(out, size, &i, sizeof(i));
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_program_unload(struct spyrert_program *p)
{
	struct spyrert_device *dev;

	if (!p)
		return SPYRERT_SUCCESS;
	RT_CHECK_FORK(p->session->lib);
	dev = p->dev;
	pthread_mutex_lock(&p->session->prog_lock);
	if (!p->loads) {
		pthread_mutex_unlock(&p->session->prog_lock);
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "the program was unloaded already");
	}
	p->loads--;
	pthread_mutex_unlock(&p->session->prog_lock);
	program_put(p);
	__atomic_fetch_sub(&dev->objects, 1, __ATOMIC_ACQ_REL);
	return SPYRERT_SUCCESS;
}

/* --- Launch --------------------------------------------------------------------------------- */

static void launch_done(struct spyrert_stream *st, void *arg)
{
	(void)st;
	program_put(arg);
}

static enum spyrert_status submit_compute(struct spyrert_stream *st, struct spyrert_program *p,
					  uint64_t bootaddr, uint64_t table, uint32_t nsymbols,
					  uint32_t core_mask, uint16_t flags)
{
	enum spyrert_status status;
	struct spyre_cb *cb;

	status = rt_stream_cb(st, SPYRE_CB_COMPUTE, SPYRE_CB_F_BARRIER | flags,
			      SPYRERT_ACTIVITY_COMPUTE, &cb);
	if (status)
		return status;
	st->ops[(uint32_t)(st->head - 1) & (st->entries - 1)].program = p;
	cb->u.compute.bootaddr = htole64(bootaddr);
	cb->u.compute.symbols = htole64(nsymbols ? table : 0);
	cb->u.compute.nsymbols = htole32(nsymbols);
	cb->u.compute.core_mask = htole32(core_mask);
	return SPYRERT_SUCCESS;
}

/* A symbol table in pinned memory, then the compute that reads it there. */
static enum spyrert_status compute_direct(struct spyrert_stream *st, struct spyrert_program *p,
					  uint64_t offset, const uint64_t *symbols,
					  uint32_t core_mask, uint16_t flags)
{
	const struct spyre_job_header *h = job_at(&p->plan, offset);
	uint32_t n = le32toh(h->nsymbols), i;
	enum spyrert_status status;
	uint64_t hmva = 0;
	spyre_le64 *words;
	void *cpu;

	if (n) {
		status = rt_stream_symbols(st, n * 8, &cpu, &hmva);
		if (status)
			return status;
		words = cpu;
		for (i = 0; i < n; i++)
			words[i] = htole64(symbols[i]);
		flags |= SPYRE_CB_F_SYM_HOST;
	}
	status = submit_compute(st, p, p->block->addr + offset, hmva, n, core_mask, flags);
	return !status && n ? rt_stream_symbols_used(st) : status;
}

/* The exec plan in full: buffers of a launch are made and filled while it is submitted. */
static enum spyrert_status run_plan(struct spyrert_stream *st, struct spyrert_program *p,
				    const uint64_t *symbols, uint32_t core_mask, uint16_t flags)
{
	struct {
		struct rt_block *block;
		void *cpu;
		uint64_t hmva;
	} *buf;
	enum spyrert_status status = SPYRERT_SUCCESS;
	struct rt_plan *plan = &p->plan;
	uint64_t first = st->head;
	struct spyre_cb *cb;
	uint32_t i, k;

	buf = calloc(plan->nbuffers ? plan->nbuffers : 1, sizeof(*buf));
	if (!buf)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	for (i = 0; i < plan->nbuffers && !status; i++)
		status = rt_pinned_alloc(st->session, plan->buffers[i], &buf[i].block, &buf[i].cpu,
					 &buf[i].hmva);
	for (i = 0; i < plan->nsteps && !status; i++) {
		const struct rt_step *s = &plan->steps[i];

		switch (s->kind) {
		case RT_STEP_HOST:
			memset(buf[s->buffer].cpu, 0, s->bytes);
			for (k = 0; k < s->nsymbols; k++) {
				uint64_t v = s->symbols[k].offset;

				if (s->symbols[k].argument >= 0)
					v += symbols[s->symbols[k].argument];
				((spyre_le64 *)buf[s->buffer].cpu)[k] = htole64(v);
			}
			break;
		case RT_STEP_H2D:
		case RT_STEP_D2H: {
			bool in = s->kind == RT_STEP_H2D;
			uint64_t dev = p->block->addr + s->offset, host = buf[s->buffer].hmva;

			status = rt_stream_cb(
				st, in ? SPYRE_CB_DMAI : SPYRE_CB_DMAO, SPYRE_CB_F_BARRIER,
				in ? SPYRERT_ACTIVITY_H2D : SPYRERT_ACTIVITY_D2H, &cb);
			if (status)
				break;
			cb->u.dma.dst = htole64(in ? dev : host);
			cb->u.dma.src = htole64(in ? host : dev);
			cb->u.dma.bytes = htole64(s->bytes);
			cb->u.dma.ndims = htole32(1);
			break;
		}
		case RT_STEP_COMPUTE: {
			const struct spyre_job_header *h = job_at(plan, s->offset);

			if (i && plan->steps[i - 1].kind == RT_STEP_H2D)
				status = submit_compute(st, p, p->block->addr + s->offset,
							p->block->addr + plan->steps[i - 1].offset,
							le32toh(h->nsymbols), core_mask, flags);
			else
				status =
					compute_direct(st, p, s->offset, symbols, core_mask, flags);
			break;
		}
		}
	}
	for (i = 0; i < plan->nbuffers; i++) {
		if (!buf[i].block)
			continue;
		if (st->head == first)
			rt_pinned_free(st->session, buf[i].block);
		else if (rt_stream_defer(st, rt_free_pinned, buf[i].block) && !status)
			status = SPYRERT_ERROR_HOST_MEMORY;
	}
	free(buf);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_launch(struct spyrert_stream *st, struct spyrert_program *p,
					     const uint64_t *symbols, uint32_t nsymbols,
					     uint32_t core_mask, uint32_t flags)
{
	uint16_t cb_flags = flags & SPYRERT_LAUNCH_KEEP_LX ? SPYRE_CB_F_KEEP_LX : 0;
	enum spyrert_status status;
	uint64_t first;
	bool ordered;

	if (!p)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_launch: program is NULL");
	if (flags & ~SPYRERT_LAUNCH_KEEP_LX)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "unknown launch flags %#x", flags);
	/* Outside of the stream's lock, which waits for room give up and take again. */
	ordered = !p->simple;
	if (ordered)
		pthread_mutex_lock(&p->order);
	status = rt_stream_begin(st);
	if (status) {
		if (ordered)
			pthread_mutex_unlock(&p->order);
		return status;
	}
	first = st->head;
	if (p->session != st->session)
		status = rt_fail(rt_lost(p->session) ? SPYRERT_ERROR_DEVICE_LOST
						     : SPYRERT_ERROR_INVALID_ARGUMENT,
				 "program and stream are of different devices, or the program was "
				 "loaded before "
				 "the device was lost");
	else if (nsymbols != p->symbols || (nsymbols && !symbols))
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 "the program takes %u symbol values, %u were given", p->symbols,
				 symbols ? nsymbols : 0);
	else if (core_mask && core_mask != p->core_mask)
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 "the program was built for cores %#x and cannot run on %#x",
				 p->core_mask, core_mask);
	if (status) {
		rt_stream_commit(st);
		if (ordered)
			pthread_mutex_unlock(&p->order);
		return status;
	}
	pthread_mutex_lock(&p->session->prog_lock);
	p->refs++;
	pthread_mutex_unlock(&p->session->prog_lock);

	if (ordered) {
		if (p->last && p->last != st->timeline)
			status = rt_stream_wait_timeline(st, p->last, p->last_value);
		/* A launch that failed leaves nothing to wait for. */
		if (status == SPYRERT_ERROR_DEPENDENCY)
			status = SPYRERT_SUCCESS;
		if (!status)
			status = run_plan(st, p, symbols, core_mask, cb_flags);
		if (!status)
			status = rt_stream_signal(st);
		if (!status) {
			rt_timeline_put(p->last);
			p->last = rt_timeline_get(st->timeline);
			p->last_value = st->timeline->last;
		}
	} else {
		uint32_t i;

		for (i = 0; i < p->plan.nsteps && !status; i++)
			status = compute_direct(st, p, p->plan.steps[i].offset, symbols, core_mask,
						cb_flags);
	}
	/* Whatever was submitted of it reads the program, after a failure too. */
	if (st->head == first) {
		program_put(p);
	} else if (rt_stream_defer(st, launch_done, p)) {
		rt_stream_wait_locked(st, st->head, INT64_MAX);
		program_put(p);
	}
	rt_stream_commit(st);
	if (ordered)
		pthread_mutex_unlock(&p->order);
	return status;
}
