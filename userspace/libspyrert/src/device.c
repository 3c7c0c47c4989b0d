// SPDX-License-Identifier: MIT
/* Devices and their sessions. */
#include "rt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECOVER_POLL_NS	20000000

enum spyrert_status rt_fail_lost(void)
{
	return rt_fail(SPYRERT_ERROR_DEVICE_LOST,
		       "the card was reset or removed and lost its memory; call "
		       "spyrert_device_recover() and build everything on it anew");
}

bool rt_lost(struct rt_session *s)
{
	return __atomic_load_n(&s->lost, __ATOMIC_RELAXED);
}

void rt_set_lost(struct rt_session *s)
{
	if (!__atomic_exchange_n(&s->lost, true, __ATOMIC_RELAXED))
		rt_log(s->lib, RT_LOG_ERROR, "device lost");
}

int rt_query(struct rt_session *s, uint32_t type, void *data, uint32_t size)
{
	struct drm_spyre_query q = { .type = type, .size = size, .data = (uintptr_t)data };

	return rt_ioctl(s, DRM_IOCTL_SPYRE_QUERY, &q, "QUERY");
}

struct rt_session *rt_session_get(struct rt_session *s)
{
	__atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

void rt_session_put(struct rt_session *s)
{
	if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
		return;
	rt_memory_fini(s);
	s->lib->be->close(s->be_dev);
	pthread_mutex_destroy(&s->mem_lock);
	pthread_mutex_destroy(&s->load_lock);
	pthread_mutex_destroy(&s->prog_lock);
	free(s);
}

enum spyrert_status rt_session_open(struct spyrert_device *dev, const struct rt_card *card,
				    struct rt_session **out, struct spyrert_stream **def)
{
	enum spyrert_status status;
	char text[RT_TEXT] = "";
	struct rt_session *s;
	int err;

	s = calloc(1, sizeof(*s));
	if (!s)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	s->refs = 1;
	s->lib = dev->lib;
	s->dev = dev;
	pthread_mutex_init(&s->mem_lock, NULL);
	pthread_mutex_init(&s->prog_lock, NULL);
	pthread_mutex_init(&s->load_lock, NULL);
	err = s->lib->be->open(s->lib->be_state, card, &s->be_dev, text, sizeof(text));
	if (err) {
		status = rt_fail(err == -EACCES || err == -EPERM ? SPYRERT_ERROR_PERMISSION :
				 SPYRERT_ERROR_NO_DEVICE, "cannot open the card: %s",
				 text[0] ? text : strerror(-err));
		goto fail;
	}
	err = rt_query(s, DRM_SPYRE_QUERY_DEVICE, &s->info, sizeof(s->info));
	if (!err)
		err = rt_query(s, DRM_SPYRE_QUERY_LIMITS, &s->limits, sizeof(s->limits));
	if (!err)
		err = rt_memory_init(s);
	if (err) {
		status =
			rt_fail(SPYRERT_ERROR_NO_DEVICE, "cannot ask the card: %s", strerror(-err));
		goto fail_open;
	}
	s->info.serial[sizeof(s->info.serial) - 1] = '\0';
	s->info.fw_version[sizeof(s->info.fw_version) - 1] = '\0';
	status = rt_stream_new(dev, s, 0, NULL, def);
	if (status)
		goto fail_memory;
	status = rt_stream_new(dev, s, RT_INTERNAL_ID, NULL, &s->internal);
	if (status) {
		rt_stream_end(*def);
		goto fail_memory;
	}
	*out = s;
	return SPYRERT_SUCCESS;
fail_memory:
	rt_memory_fini(s);
fail_open:
	s->lib->be->close(s->be_dev);
fail:
	pthread_mutex_destroy(&s->mem_lock);
	pthread_mutex_destroy(&s->load_lock);
	pthread_mutex_destroy(&s->prog_lock);
	free(s);
	return status;
}

/* Ends what the library itself keeps in a session. */
static void session_quiesce(struct rt_session *s, struct spyrert_stream *def)
{
	if (def)
		rt_stream_end(def);
	if (s->internal)
		rt_stream_end(s->internal);
	s->internal = NULL;
}

struct rt_session *rt_device_session(struct spyrert_device *dev, enum spyrert_status *status)
{
	struct rt_session *s;

	if (!dev) {
		*status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "device is NULL");
		return NULL;
	}
	if (rt_forked(dev->lib)) {
		*status =
			rt_fail(SPYRERT_ERROR_FORKED,
				"this device belongs to the parent process; call spyrert_init() in "
				"the child and open the card there");
		return NULL;
	}
	pthread_mutex_lock(&dev->lock);
	s = rt_session_get(dev->session);
	pthread_mutex_unlock(&dev->lock);
	if (rt_lost(s)) {
		rt_session_put(s);
		*status = rt_fail_lost();
		return NULL;
	}
	*status = SPYRERT_SUCCESS;
	return s;
}

RT_PUBLIC enum spyrert_status spyrert_device_close(struct spyrert_device *dev)
{
	struct rt_session *s, *next;
	unsigned int objects;

	if (!dev)
		return SPYRERT_SUCCESS;
	RT_CHECK_FORK(dev->lib);
	objects = __atomic_load_n(&dev->objects, __ATOMIC_ACQUIRE);
	if (objects)
		return rt_fail(
			SPYRERT_ERROR_BUSY,
			"%u streams, events or programs of the device are left; destroy them first",
			objects);
	session_quiesce(dev->session, dev->def);
	for (s = dev->session; s; s = next) {
		next = s->older;
		s->dev = NULL;
		rt_session_put(s);
	}
	__atomic_fetch_sub(&dev->lib->devices, 1, __ATOMIC_ACQ_REL);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
	return SPYRERT_SUCCESS;
}

/* The card may have another node now: it is known by its place, or by its number if it has none. */
static bool find_again(struct spyrert_device *dev, struct rt_card *cards, struct rt_card *card)
{
	int i, n = dev->lib->be->scan(dev->lib->be_state, cards, RT_MAX_CARDS);

	for (i = 0; i < n; i++) {
		if (cards[i].works &&
		    (card->syspath[0] ? !strcmp(cards[i].syspath, card->syspath) :
					cards[i].number == card->number)) {
			*card = cards[i];
			return true;
		}
	}
	return false;
}

/* Waits for the card and opens it. No lock is held: others of the device only find it lost. */
static enum spyrert_status reopen(struct spyrert_device *dev, int64_t deadline,
				  struct rt_card *card, struct rt_session **fresh,
				  struct spyrert_stream **def)
{
	struct rt_card *cards = calloc(RT_MAX_CARDS, sizeof(*cards));

	if (!cards)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	for (;;) {
		if (find_again(dev, cards, card) && !rt_session_open(dev, card, fresh, def)) {
			if ((*fresh)->info.state == SPYRE_STATE_ONLINE)
				break;
			session_quiesce(*fresh, *def);
			rt_session_put(*fresh);
		}
		if (rt_now_ns() >= deadline) {
			free(cards);
			return rt_fail(SPYRERT_ERROR_TIMEOUT,
				       "the card did not come back online in time");
		}
		nanosleep(&(struct timespec){ .tv_nsec = RECOVER_POLL_NS }, NULL);
	}
	free(cards);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_device_recover(struct spyrert_device *dev,
						     uint64_t timeout_ns)
{
	int64_t deadline = rt_deadline(timeout_ns);
	struct spyrert_stream *def, *old_def;
	struct drm_spyre_device_info info;
	struct rt_session *s, *fresh;
	enum spyrert_status status;
	struct rt_card card;

	if (!dev)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_device_recover: device is NULL");
	RT_CHECK_FORK(dev->lib);
	pthread_mutex_lock(&dev->lock);
	while (dev->recovering) {
		/* Somebody else's recovery serves as well, if it succeeds. */
		pthread_mutex_unlock(&dev->lock);
		if (rt_now_ns() >= deadline)
			return rt_fail(SPYRERT_ERROR_TIMEOUT,
				       "another thread's recovery did not end in time");
		nanosleep(&(struct timespec){ .tv_nsec = RECOVER_POLL_NS }, NULL);
		pthread_mutex_lock(&dev->lock);
	}
	s = dev->session;
	/* Nobody may have noticed the loss yet. */
	if (!rt_lost(s) && !rt_query(s, DRM_SPYRE_QUERY_DEVICE, &info, sizeof(info)) &&
	    info.reset_generation == s->info.reset_generation) {
		pthread_mutex_unlock(&dev->lock);
		return SPYRERT_SUCCESS;
	}
	rt_set_lost(s);
	dev->recovering = true;
	card = dev->card;
	pthread_mutex_unlock(&dev->lock);

	status = reopen(dev, deadline, &card, &fresh, &def);

	pthread_mutex_lock(&dev->lock);
	dev->recovering = false;
	if (status) {
		pthread_mutex_unlock(&dev->lock);
		return status;
	}
	def->activity = dev->activity;
	def->activity_arg = dev->activity_arg;
	old_def = dev->def;
	fresh->older = s;
	dev->card = card;
	dev->def = def;
	dev->session = fresh;
	pthread_mutex_unlock(&dev->lock);
	session_quiesce(s, old_def);
	rt_log(dev->lib, RT_LOG_ERROR, "device recovered, generation %u",
	       fresh->info.reset_generation);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC struct spyrert_stream *spyrert_default_stream(struct spyrert_device *dev)
{
	struct spyrert_stream *def;

	if (!dev || rt_forked(dev->lib))
		return NULL;
	pthread_mutex_lock(&dev->lock);
	def = dev->def;
	pthread_mutex_unlock(&dev->lock);
	return def;
}

RT_PUBLIC enum spyrert_status
spyrert_device_get_props(struct spyrert_device *dev, struct spyrert_device_props *out, size_t size)
{
	struct spyrert_device_props p = { 0 };
	const struct drm_spyre_device_info *i;
	enum spyrert_status status;
	struct rt_session *s;

	if (!out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_device_get_props: props is NULL");
	RT_CHECK_SIZE(size);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	i = &s->info;
	memcpy(p.serial, i->serial, sizeof(i->serial));
	memcpy(p.fw_version, i->fw_version, sizeof(i->fw_version));
	p.hw_version = i->hw_version;
	p.proto_version = i->proto_version;
	p.cores = (uint32_t)__builtin_popcount(i->cores);
	p.core_mask = i->cores;
	p.core_hz = i->core_hz;
	p.soc_hz = i->soc_hz;
	p.memory = i->mem_size;
	p.aperture = i->aperture_size;
	p.dmi_engines = i->engines[1];
	p.dmo_engines = i->engines[2];
	p.dmx_engines = i->engines[3];
	p.lx_bytes = SPYRE_LX_SIZE;
	p.corelets = SPYRE_CORELETS;
	p.max_symbols = s->limits.symbols_max;
	p.max_streams = s->limits.queues_user_max;
	p.max_ring_entries = s->limits.ring_max;
	p.reset_generation = i->reset_generation;
	p.priorities = SPYRE_PRIORITIES;
	rt_copy_out(out, size, &p, sizeof(p));
	rt_session_put(s);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_device_get_health(struct spyrert_device *dev,
							struct spyrert_device_health *out,
							size_t size)
{
	struct spyrert_device_health h = { 0 };
	struct drm_spyre_telemetry t = { 0 };
	struct drm_spyre_device_info i = { 0 };
	struct drm_spyre_limits l = { 0 };
	enum spyrert_status status;
	struct rt_session *s;
	int err;

	if (!out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_device_get_health: health is NULL");
	RT_CHECK_SIZE(size);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	err = rt_query(s, DRM_SPYRE_QUERY_TELEMETRY, &t, sizeof(t));
	if (!err)
		err = rt_query(s, DRM_SPYRE_QUERY_DEVICE, &i, sizeof(i));
	if (!err)
		err = rt_query(s, DRM_SPYRE_QUERY_LIMITS, &l, sizeof(l));
	if (err) {
		status = rt_errno(s, err, "reading the sensors");
		rt_session_put(s);
		return status;
	}
	h.state = i.state;
	h.temp_mc = t.temp_mc;
	h.power_mw = t.power_mw;
	h.ecc_corrected = t.ecc_ce;
	h.ecc_uncorrected = t.ecc_ue;
	h.reset_generation = i.reset_generation;
	h.energy = t.energy;
	h.busy_dmi = t.busy[1];
	h.busy_dmo = t.busy[2];
	h.busy_dmx = t.busy[3];
	h.busy_compute = t.busy[4];
	h.mem_read = t.mem_rd;
	h.mem_written = t.mem_wr;
	h.soc_time = t.soc_time;
	h.contexts = l.contexts_used;
	h.queues = l.queues_used;
	rt_copy_out(out, size, &h, sizeof(h));
	rt_session_put(s);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status
spyrert_device_get_usage(struct spyrert_device *dev, struct spyrert_device_usage *out, size_t size)
{
	struct spyrert_device_usage u = { 0 };
	struct drm_spyre_usage d = { 0 };
	enum spyrert_status status;
	struct rt_session *s;
	int err;

	if (!out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_device_get_usage: usage is NULL");
	RT_CHECK_SIZE(size);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	err = rt_query(s, DRM_SPYRE_QUERY_USAGE, &d, sizeof(d));
	if (err) {
		status = rt_errno(s, err, "reading the usage");
		rt_session_put(s);
		return status;
	}
	u.busy_dmi = d.busy[1];
	u.busy_dmo = d.busy[2];
	u.busy_dmx = d.busy[3];
	u.busy_compute = d.busy[4];
	u.bytes_dmi = d.bytes[1];
	u.bytes_dmo = d.bytes[2];
	u.bytes_dmx = d.bytes[3];
	u.bytes_compute = d.bytes[4];
	u.operations = d.cbs;
	u.errors = d.errors;
	rt_copy_out(out, size, &u, sizeof(u));
	rt_session_put(s);
	return SPYRERT_SUCCESS;
}

static enum spyrert_status ras_read(struct spyrert_device *dev, uint32_t flags, uint64_t after,
				    struct spyrert_ras *records, size_t *count, size_t size)
{
	enum { BATCH = 64 };
	struct drm_spyre_ras_read rd = { .flags = flags, .after = after };
	struct drm_spyre_ras *raw;
	struct spyrert_ras one;
	enum spyrert_status status;
	struct rt_session *s;
	size_t n = 0, room;
	bool more = true;
	uint32_t i;
	int err;

	if (!count || (*count && !records))
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "reading RAS records: NULL argument");
	RT_CHECK_SIZE(size);
	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	raw = calloc(BATCH, sizeof(*raw));
	if (!raw) {
		rt_session_put(s);
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	}
	room = *count;
	while (more && room) {
		rd.records = (uintptr_t)raw;
		rd.count = BATCH;
		err = rt_ioctl(s, DRM_IOCTL_SPYRE_RAS_READ, &rd, "RAS_READ");
		if (err == -EPERM || err == -EACCES) {
			status = rt_fail(SPYRERT_ERROR_PERMISSION,
					 "RAS records of the whole card need CAP_PERFMON");
			break;
		}
		if (err) {
			status = rt_errno(s, err, "reading RAS records");
			break;
		}
		for (i = 0; i < rd.count; i++) {
			char *at;

			rd.after = raw[i].seq;
			if (n && rt_ras_continues(&raw[i])) {
				at = (char *)records + (n - 1) * size;
				memset(&one, 0, sizeof(one));
				memcpy(&one, at, size < sizeof(one) ? size : sizeof(one));
				rt_ras_join(&one, &raw[i]);
				rt_copy_out(at, size, &one, sizeof(one));
				continue;
			}
			if (n == room) {
				more = false;
				break;
			}
			rt_ras_from_drm(&one, &raw[i]);
			rt_copy_out((char *)records + n++ * size, size, &one, sizeof(one));
		}
		if (rd.count < BATCH)
			more = false;
	}
	free(raw);
	rt_session_put(s);
	if (!status)
		*count = n;
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_ras_read(struct spyrert_device *dev, uint64_t after,
					       struct spyrert_ras *records, size_t *count,
					       size_t size)
{
	return ras_read(dev, 0, after, records, count, size);
}

RT_PUBLIC enum spyrert_status spyrert_device_ras_read(struct spyrert_device *dev, uint64_t after,
						      struct spyrert_ras *records, size_t *count,
						      size_t size)
{
	return ras_read(dev, DRM_SPYRE_RAS_CARD, after, records, count, size);
}

RT_PUBLIC enum spyrert_status spyrert_device_synchronize(struct spyrert_device *dev,
							 uint64_t timeout_ns)
{
	int64_t deadline = rt_deadline(timeout_ns);
	enum spyrert_status ret = SPYRERT_SUCCESS, status;
	struct spyrert_stream **list;
	struct rt_session *s;
	char text[RT_TEXT];
	size_t i, n;

	s = rt_device_session(dev, &status);
	if (!s)
		return status;
	list = rt_stream_pin_all(dev, s, &n);
	if (!list) {
		rt_session_put(s);
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	}
	for (i = 0; i < n; i++) {
		pthread_mutex_lock(&list[i]->lock);
		status = rt_stream_wait_locked(list[i], list[i]->head, deadline);
		pthread_mutex_unlock(&list[i]->lock);
		/* Later waits may leave another text. */
		if (status && !ret) {
			ret = status;
			snprintf(text, sizeof(text), "%s", spyrert_last_error());
		}
	}
	rt_stream_unpin_all(list, n);
	rt_session_put(s);
	return ret ? rt_fail(ret, "%s", text) : SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_activity_subscribe(struct spyrert_device *dev,
							 spyrert_activity_callback fn, void *arg)
{
	struct spyrert_stream *st;

	if (!dev)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_activity_subscribe: device is NULL");
	RT_CHECK_FORK(dev->lib);
	pthread_mutex_lock(&dev->lock);
	dev->activity_arg = arg;
	dev->activity = fn;
	for (st = dev->def; st; st = st == dev->def ? dev->streams : st->next) {
		pthread_mutex_lock(&st->lock);
		rt_stream_reap(st);
		st->activity = fn;
		st->activity_arg = arg;
		pthread_mutex_unlock(&st->lock);
	}
	pthread_mutex_unlock(&dev->lock);
	return SPYRERT_SUCCESS;
}
