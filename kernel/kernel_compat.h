/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between kernels, by what compat/conftest.sh found.
 */
#ifndef SPYRE_KERNEL_COMPAT_H
#define SPYRE_KERNEL_COMPAT_H

#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/rcupdate.h>

#include <drm/drm_device.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/gpu_scheduler.h>

#include "conftest.h"

#ifdef SPYRE_HAVE_DMEM
#include <linux/cgroup_dmem.h>
#endif
#ifdef SPYRE_HAVE_DRM_RAS
#include <drm/drm_ras.h>
#endif

/*
 * Tells the operator's daemons that the card is off and what may help, the mildest first. It is the
 * event that drm_dev_wedged_event() sends on kernels that have it, but as late as 7.3 that one
 * follows drm->primary, and an accel device has none.
 */
static inline void spyre_compat_wedged(struct drm_device *drm)
{
	char method[] = "WEDGED=rebind,bus-reset";
	char *envp[2] = { method, NULL };

	kobject_uevent_env(&drm->accel->kdev->kobj, KOBJ_CHANGE, envp);
}

/*
 * Device memory as cgroups account it (dmem). Where a kernel has none of it nothing is registered,
 * and charging succeeds with no pool.
 */
struct dmem_cgroup_region;
struct dmem_cgroup_pool_state;

/* A region, NULL where nothing is accounted, or an error. */
static inline struct dmem_cgroup_region *spyre_compat_dmem_register(struct drm_device *drm,
								    const char *name, u64 size)
{
#ifdef SPYRE_HAVE_DMEM
	const struct dmem_cgroup_init init = { .size = size };

	return dmem_cgroup_register_region(&init, "drm/%s/%s", drm->unique, name);
#else
	return NULL;
#endif
}

static inline void spyre_compat_dmem_unregister(struct dmem_cgroup_region *region)
{
#ifdef SPYRE_HAVE_DMEM
	dmem_cgroup_unregister_region(region);
#endif
}

/* -EAGAIN: a cgroup of the caller is full. */
static inline int spyre_compat_dmem_charge(struct dmem_cgroup_region *region, u64 size,
					   struct dmem_cgroup_pool_state **pool)
{
	*pool = NULL;
#ifdef SPYRE_HAVE_DMEM
	if (region)
		return dmem_cgroup_try_charge(region, size, pool, NULL);
#endif
	return 0;
}

/* pool: what was charged, or NULL; good after the region is gone, too */
static inline void spyre_compat_dmem_uncharge(struct dmem_cgroup_pool_state *pool, u64 size)
{
#ifdef SPYRE_HAVE_DMEM
	dmem_cgroup_uncharge(pool, size);
#endif
}

#ifndef SPYRE_HAVE_DRM_RAS
/* What of it the driver fills in, for kernels with nobody to register it with. */
struct drm_ras_node {
	const char *device_name;
	const char *node_name;
	int type;
	struct {
		u32 first;
		u32 last;
	} error_counter_range;
	int (*query_error_counter)(struct drm_ras_node *node, u32 id, const char **name, u32 *val);
};

#define DRM_RAS_NODE_TYPE_ERROR_COUNTER	1

static inline int drm_ras_node_register(struct drm_ras_node *node)
{
	return 0;
}

static inline void drm_ras_node_unregister(struct drm_ras_node *node)
{
}
#endif

/*
 * After nodes were unregistered, before they and the code they call go. The core looks a node up
 * and calls it under no lock, with no reference: only that it sleeps nowhere in between tells when
 * it is through.
 */
static inline void spyre_compat_ras_drain(void)
{
#if defined(SPYRE_HAVE_DRM_RAS) && IS_ENABLED(CONFIG_DRM_RAS)
	synchronize_rcu_tasks();
#endif
}

/* A scheduler without a time limit of its own. */
static inline int spyre_compat_sched_init(struct drm_gpu_scheduler *sched,
					  const struct drm_sched_backend_ops *ops,
					  struct workqueue_struct *wq, u32 credits,
					  const char *name, struct device *dev)
{
#ifdef SPYRE_HAVE_SCHED_ARGS
	const struct drm_sched_init_args args = {
		.ops = ops,
		.submit_wq = wq,
#ifdef SPYRE_HAVE_SCHED_RQS
		.num_rqs = DRM_SCHED_PRIORITY_COUNT,
#endif
		.credit_limit = credits,
		.timeout = MAX_SCHEDULE_TIMEOUT,
		.name = name,
		.dev = dev,
	};

	return drm_sched_init(sched, &args);
#else
	return drm_sched_init(sched, ops, wq, DRM_SCHED_PRIORITY_COUNT, credits, 0,
			      MAX_SCHEDULE_TIMEOUT, NULL, NULL, name, dev);
#endif
}

static inline int spyre_compat_sched_job_init(struct drm_sched_job *job,
					      struct drm_sched_entity *entity, u32 credits,
					      struct drm_file *file)
{
#ifdef SPYRE_HAVE_SCHED_CLIENT
	return drm_sched_job_init(job, entity, credits, NULL, file->client_id);
#else
	return drm_sched_job_init(job, entity, credits, NULL);
#endif
}

#ifdef SPYRE_HAVE_DRIVER_DATE
#define SPYRE_COMPAT_DRIVER_DATE .date = "20261129",
#else
#define SPYRE_COMPAT_DRIVER_DATE
#endif

/* Who uses it includes linux/module.h. */
#ifdef SPYRE_HAVE_IMPORT_NS_WORD
#define SPYRE_COMPAT_IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define SPYRE_COMPAT_IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

#ifdef SPYRE_HAVE_IMPORT_NS_WORD
#define SPYRE_COMPAT_IMPORT_KUNIT MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING)
#else
#define SPYRE_COMPAT_IMPORT_KUNIT MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING")
#endif

#endif
