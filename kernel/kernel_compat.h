/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between kernels, by what compat/conftest.sh found.
 */
#ifndef SPYRE_KERNEL_COMPAT_H
#define SPYRE_KERNEL_COMPAT_H

#include <linux/kobject.h>

#include <drm/drm_device.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "conftest.h"

/* Tells the operator's daemons that the card is off and a rebind may help. */
static inline void spyre_compat_wedged(struct drm_device *drm)
{
#if defined(SPYRE_HAVE_WEDGED_3)
	drm_dev_wedged_event(drm, DRM_WEDGE_RECOVERY_REBIND, NULL);
#elif defined(SPYRE_HAVE_WEDGED_2)
	drm_dev_wedged_event(drm, DRM_WEDGE_RECOVERY_REBIND);
#else
	char method[] = "WEDGED=rebind";
	char *envp[2] = { method, NULL };

	kobject_uevent_env(&drm->accel->kdev->kobj, KOBJ_CHANGE, envp);
#endif
}

#ifdef SPYRE_HAVE_DRIVER_DATE
#define SPYRE_COMPAT_DRIVER_DATE .date = "20261129",
#else
#define SPYRE_COMPAT_DRIVER_DATE
#endif

#endif
