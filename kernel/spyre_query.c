// SPDX-License-Identifier: GPL-2.0-only
/*
 * QUERY and fdinfo: facts, limits, use. Needs no context; telemetry comes from the cached
 * reading.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_gem.h"
#include "spyre_wait.h"

union query {
	struct drm_spyre_device_info device;
	struct drm_spyre_limits limits;
	struct drm_spyre_memory_info memory;
	struct drm_spyre_telemetry telemetry;
	struct drm_spyre_usage usage;
	struct drm_spyre_clock clock;
};

static void query_device(struct spyre_device *sdev, struct drm_spyre_device_info *out)
{
	unsigned int i;

	down_read(&sdev->reset_sem);
	out->hw_version = sdev->hw_version;
	out->proto_version = sdev->info.proto;
	out->cores = sdev->info.cores;
	if (sdev->gone)
		out->state = SPYRE_STATE_REMOVED;
	else if (sdev->suspended)
		out->state = SPYRE_STATE_OFFLINE;
	else
		out->state = sdev->card_ok ? spyre_read(sdev, SPYRE_REG_STATE) :
			SPYRE_STATE_IN_ERROR;
	out->core_hz = sdev->core_hz;
	out->soc_hz = sdev->soc_hz;
	out->mem_size = sdev->mem_size;
	out->aperture_size = sdev->aperture_size;
	out->reset_generation = sdev->gen;
	for (i = 0; i < ARRAY_SIZE(out->engines); i++)
		out->engines[i] = sdev->info.engines[i];
	memcpy(out->serial, sdev->serial, sizeof(out->serial));
	strscpy(out->fw_version, sdev->info.version, sizeof(out->fw_version));
	up_read(&sdev->reset_sem);
}

static void query_limits(struct spyre_file *file, struct drm_spyre_limits *out)
{
	struct spyre_device *sdev = file->sdev;
	struct spyre_ctx *ctx, *own;
	unsigned long id;
	u32 n = 0;

	down_read(&sdev->reset_sem);
	rcu_read_lock();
	xa_for_each(&sdev->ctxs, id, ctx)
		n++;
	rcu_read_unlock();
	/* Without the driver's own context and queue. */
	out->contexts_max = sdev->info.contexts - 2;
	out->contexts_used = n - !!sdev->kctx;
	out->queues_max = sdev->info.queues - 1;
	out->queues_used = max(atomic_read(&sdev->nqueues), 1) - 1;
	out->contexts_user_max = file->exempt ? out->contexts_max :
		spyre_user_max(sdev, SPYRE_QUOTA_CONTEXTS);
	out->queues_user_max = file->exempt ? out->queues_max :
		spyre_user_max(sdev, SPYRE_QUOTA_QUEUES);
	out->host_user_max = (file->exempt ? totalram_pages() : spyre_user_max_host()) <<
		PAGE_SHIFT;
	mutex_lock(&sdev->users.lock);
	out->host_user_used = file->user->host_pages << PAGE_SHIFT;
	out->contexts_user_used = file->user->contexts;
	out->queues_user_used = file->user->queues;
	mutex_unlock(&sdev->users.lock);
	out->ring_min = sdev->info.ring_min;
	out->ring_max = sdev->info.ring_max;
	out->symbols_max = sdev->info.symbols;
	out->wait_entries_max = SPYRE_WAIT_MAX;
	out->submit_cbs_max = SPYRE_SUBMIT_CBS;
	out->submit_syncs_max = SPYRE_SUBMIT_SYNCS;
	out->submits_max = SPYRE_SUBMIT_JOBS;
	own = spyre_file_ctx_peek(file);
	out->submits_used = own ? spyre_submit_count(own) : 0;
	up_read(&sdev->reset_sem);
}

static void query_memory(struct drm_file *drm_file, struct drm_spyre_memory_info *out)
{
	struct spyre_file *file = drm_file->driver_priv;
	struct spyre_device *sdev = file->sdev;
	struct spyre_mem *m = &sdev->mem;

	mutex_lock(&m->lock);
	out->total = (u64)(m->end - m->first) << SPYRE_PAGE_SHIFT;
	out->used = (u64)m->used << SPYRE_PAGE_SHIFT;
	out->mappable_total = (u64)(m->map_end - m->first) << SPYRE_PAGE_SHIFT;
	out->mappable_used = (u64)m->used_map << SPYRE_PAGE_SHIFT;
	mutex_unlock(&m->lock);
	/* Memory need not be contiguous: all that is free fits one buffer. */
	out->largest_free = out->total - out->used;
	mutex_lock(&sdev->tables.lock);
	out->table_total = (u64)sdev->tables.units * SPYRE_TABLE_UNIT;
	out->table_used = (u64)sdev->tables.used * SPYRE_TABLE_UNIT;
	mutex_unlock(&sdev->tables.lock);
	spyre_file_sizes(drm_file, &out->file_device, &out->file_host);
}

static int query_clock(struct spyre_file *file, struct drm_spyre_clock *out)
{
	struct spyre_device *sdev = file->sdev;
	unsigned int i;
	int ret;

	ret = spyre_enter(sdev, file);
	if (ret)
		return ret;
	out->soc_hz = sdev->soc_hz;
	out->span_ns = U32_MAX;
	/* Whatever comes between makes a reading long. */
	for (i = 0; i < 5; i++) {
		u64 before = ktime_get_ns(), time = spyre_soc_time(sdev);
		u64 span = ktime_get_ns() - before;

		if (i && span >= out->span_ns)
			continue;
		out->soc_time = time;
		out->host_ns = before + span / 2;
		out->span_ns = min_t(u64, span, U32_MAX);
	}
	spyre_exit(sdev);
	return 0;
}

/* A buffer may be as large as its size can say: whoever is killed does not wait for all of it. */
static int clear_rest(u64 at, u32 n)
{
	u32 part;

	for (; n; n -= part, at += part) {
		part = min_t(u32, n, SZ_1M);
		if (clear_user(u64_to_user_ptr(at), part))
			return -EFAULT;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

int spyre_query_ioctl(struct drm_device *drm, void *data, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;
	struct drm_spyre_query *args = data;
	struct spyre_ctx *ctx;
	union query q;
	u32 size, n;
	int ret;

	if (READ_ONCE(sdev->gen) != file->gen)
		return -ENODEV;
	memset(&q, 0, sizeof(q));
	switch (args->type) {
	case DRM_SPYRE_QUERY_DEVICE:
		size = sizeof(q.device);
		query_device(sdev, &q.device);
		break;
	case DRM_SPYRE_QUERY_LIMITS:
		size = sizeof(q.limits);
		query_limits(file, &q.limits);
		break;
	case DRM_SPYRE_QUERY_MEMORY:
		size = sizeof(q.memory);
		query_memory(drm_file, &q.memory);
		break;
	case DRM_SPYRE_QUERY_TELEMETRY:
		size = sizeof(q.telemetry);
		if (!args->data)
			break;
		ret = spyre_telemetry_get(sdev, &q.telemetry, NULL);
		if (ret)
			return ret;
		break;
	case DRM_SPYRE_QUERY_USAGE:
		size = sizeof(q.usage);
		ctx = spyre_file_ctx_peek(file);
		if (ctx)
			spyre_ctx_usage(ctx, &q.usage);
		break;
	case DRM_SPYRE_QUERY_CLOCK:
		size = sizeof(q.clock);
		if (!args->data)
			break;
		ret = query_clock(file, &q.clock);
		if (ret)
			return ret;
		break;
	default:
		return -EINVAL;
	}
	n = min(args->size, size);
	if (args->data) {
		if (copy_to_user(u64_to_user_ptr(args->data), &q, n))
			return -EFAULT;
		if (args->size > size) {
			ret = clear_rest(args->data + size, args->size - size);
			if (ret)
				return ret;
		}
	}
	args->size = size;
	return 0;
}

void spyre_show_fdinfo(struct drm_printer *p, struct drm_file *drm_file)
{
	static const char * const names[] = { NULL, "dmi", "dmo", "dmx", "compute" };
	struct spyre_file *file = drm_file->driver_priv;
	struct spyre_device *sdev = file->sdev;
	struct spyre_ctx *ctx = spyre_file_ctx_peek(file);
	struct drm_spyre_usage usage = {};
	u32 engines[ARRAY_SIZE(names)];
	u64 device, host;
	unsigned int i;

	BUILD_BUG_ON(sizeof(engines) != sizeof(sdev->info.engines));
	if (ctx)
		spyre_ctx_usage(ctx, &usage);
	down_read(&sdev->reset_sem);
	memcpy(engines, sdev->info.engines, sizeof(engines));
	up_read(&sdev->reset_sem);
	for (i = 1; i < ARRAY_SIZE(names); i++) {
		drm_printf(p, "drm-engine-%s:\t%llu ns\n", names[i],
			   mul_u64_u32_div(usage.busy[i], NSEC_PER_SEC, sdev->soc_hz));
		drm_printf(p, "drm-engine-capacity-%s:\t%u\n", names[i], engines[i]);
		drm_printf(p, "drm-cycles-%s:\t%llu\n", names[i], usage.busy[i]);
	}
	spyre_file_sizes(drm_file, &device, &host);
	drm_printf(p, "drm-total-device:\t%llu KiB\n", device >> 10);
	drm_printf(p, "drm-resident-device:\t%llu KiB\n", device >> 10);
	drm_printf(p, "drm-total-host:\t%llu KiB\n", host >> 10);
	drm_printf(p, "drm-resident-host:\t%llu KiB\n", host >> 10);
	drm_printf(p, "spyre-cbs:\t%llu\n", usage.cbs);
	drm_printf(p, "spyre-errors:\t%llu\n", usage.errors);
}
