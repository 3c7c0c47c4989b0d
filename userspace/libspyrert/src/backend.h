/* SPDX-License-Identifier: MIT */
/*
 * What the library asks of a backend: the ioctls of uapi/drm/spyre_accel.h, mappings, and a way to
 * ring a doorbell. "drm" hands them to the kernel driver; "model" answers them in the process, with
 * the card model and its firmware behind. Everything above this table is the same for both.
 */
#ifndef RT_BACKEND_H
#define RT_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drm/spyre_accel.h>

#include "spyrert.h"

#define RT_BACKEND_ABI	2u

/* A card that was found, not opened. */
struct rt_card {
	struct spyrert_device_info info;
	char syspath[256];	/* real path of the PCI device in sysfs, "" if it has none */
	int number;		/* the backend's own */
	bool works;
};

struct rt_backend {
	uint32_t abi;		/* RT_BACKEND_ABI */
	const char *name;
	uint32_t exportable;	/* of BO_CREATE: a host buffer that is to be exported; 0: all can be */
	/*
	 * Per library handle. text: where to say what was wrong, of RT_TEXT bytes. 0 or -errno.
	 */
	int (*init)(void **state, char *text, size_t size);
	void (*exit)(void *state);
	/* Fills up to max cards and returns how many there are, or -errno. Opens none. */
	int (*scan)(void *state, struct rt_card *cards, int max);
	int (*open)(void *state, const struct rt_card *card, void **dev, char *text, size_t size);
	void (*close)(void *dev);
	/* request: DRM_IOCTL_*. 0 or -errno; never -EINTR. */
	int (*ioctl)(void *dev, unsigned long request, void *arg);
	/* NULL and errno on failure. offset: as an ioctl gave it. */
	void *(*map)(void *dev, uint64_t offset, size_t size, bool write);
	void (*unmap)(void *dev, void *ptr, size_t size);
	/* Rings by a call instead of a store to the mapped page; NULL: store. */
	void (*doorbell)(void *dev, uint32_t queue, uint32_t tail);
	/*
	 * What only a card in the process can do: "flr" resets it, other names inject that fault
	 * (spyre_fault_name()). For tests; NULL on real cards. 0 or -errno.
	 */
	int (*provoke)(void *dev, const char *what, uint64_t arg);
};

extern const struct rt_backend rt_backend_drm;
/* Symbol of libspyrert-model.so.1. */
#define RT_MODEL_SONAME	"libspyrert-model.so.1"
#define RT_MODEL_SYMBOL	"spyrert_model_backend"

#endif
