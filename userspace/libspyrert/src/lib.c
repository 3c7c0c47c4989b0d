// SPDX-License-Identifier: MIT
/* The library handle: environment, backend, enumeration. */
#include "rt.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

RT_PUBLIC uint32_t spyrert_version(void)
{
	return SPYRERT_VERSION_MAJOR << 16 | SPYRERT_VERSION_MINOR;
}

int64_t rt_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

int64_t rt_deadline(uint64_t timeout_ns)
{
	int64_t now;

	if (timeout_ns == SPYRERT_FOREVER)
		return INT64_MAX;
	now = rt_now_ns();
	return timeout_ns > (uint64_t)(INT64_MAX - now) ? INT64_MAX : now + (int64_t)timeout_ns;
}

/* The page of .alive is MADV_WIPEONFORK: no system call and no global is needed to notice a fork.
 */
bool rt_forked(struct spyrert *lib)
{
	return !__atomic_load_n(lib->alive, __ATOMIC_RELAXED);
}

static unsigned int parse_log(const char *env)
{
	static const struct {
		const char *name;
		unsigned int group;
	} groups[] = {
		{ "ioctl", RT_LOG_IOCTL }, { "mem", RT_LOG_MEM }, { "stream", RT_LOG_STREAM },
		{ "program", RT_LOG_PROGRAM }, { "error", RT_LOG_ERROR }, { "all", RT_LOG_ALL },
	};
	bool told = false, known;
	unsigned int ret = 0;
	size_t i, n;

	while (env && *env) {
		n = strcspn(env, ",");
		known = !n;
		for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
			if (strlen(groups[i].name) == n && !strncmp(groups[i].name, env, n)) {
				ret |= groups[i].group;
				known = true;
			}
		}
		if (!known && !told) {
			told = true;
			fprintf(stderr, "spyrert: SPYRERT_LOG: '%.*s' is none of", (int)n, env);
			for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
				fprintf(stderr, "%s %s", i ? "," : "", groups[i].name);
			fputc('\n', stderr);
		}
		env += n;
		env += *env == ',';
	}
	return ret;
}

/* Linked in by tests; else it comes with its shared object. */
extern const struct rt_backend *const spyrert_model_backend __attribute__((weak));

static enum spyrert_status load_model(struct spyrert *lib)
{
	const struct rt_backend *const *be;

	if (&spyrert_model_backend) {
		lib->be = spyrert_model_backend;
		return SPYRERT_SUCCESS;
	}

	lib->dl = dlopen(RT_MODEL_SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!lib->dl) {
		/* Not in the loader's path: beside this library, as in a build tree. */
		char path[PATH_MAX];
		Dl_info self;

		if (dladdr((void *)(uintptr_t)spyrert_version, &self) && self.dli_fname) {
			const char *slash = strrchr(self.dli_fname, '/');
			int dir = slash ? (int)(slash - self.dli_fname) : 1;

			if (snprintf(path, sizeof(path), "%.*s/%s", dir,
				     slash ? self.dli_fname : ".",
				     RT_MODEL_SONAME) < (int)sizeof(path))
				lib->dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		}
	}
	if (!lib->dl)
		return rt_fail(SPYRERT_ERROR_NOT_SUPPORTED, "backend model is not installed: %s",
			       dlerror());
	be = dlsym(lib->dl, RT_MODEL_SYMBOL);
	if (!be || !*be || (*be)->abi != RT_BACKEND_ABI) {
		dlclose(lib->dl);
		return rt_fail(SPYRERT_ERROR_NOT_SUPPORTED,
			       RT_MODEL_SONAME " is of another version than this library");
	}
	lib->be = *be;
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_init(const char *backend, struct spyrert **out)
{
	enum spyrert_status status = SPYRERT_SUCCESS;
	char text[RT_TEXT] = "";
	struct spyrert *lib;
	const char *env;
	int err;

	if (!out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_init: lib is NULL");
	if (!backend)
		backend = getenv("SPYRERT_BACKEND");
	if (!backend || !*backend)
		backend = "drm";
	lib = calloc(1, sizeof(*lib));
	if (!lib)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "spyrert_init: out of memory");
	lib->alive = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lib->alive == MAP_FAILED) {
		free(lib);
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "spyrert_init: out of memory");
	}
	if (madvise(lib->alive, 4096, MADV_WIPEONFORK)) {
		status = rt_fail(
			SPYRERT_ERROR_NOT_SUPPORTED,
			"spyrert_init: the kernel lacks MADV_WIPEONFORK (Linux 4.14 or later)");
		goto fail;
	}
	*lib->alive = 1;
	lib->log = parse_log(getenv("SPYRERT_LOG"));
	env = getenv("SPYRE_DEVICES");
	if (env && *env) {
		lib->visible = strdup(env);
		if (!lib->visible) {
			status = rt_fail(SPYRERT_ERROR_HOST_MEMORY, "spyrert_init: out of memory");
			goto fail;
		}
	}
	lib->world = -1;
	env = getenv("AIU_WORLD_SIZE");
	if (env && *env) {
		char *end;
		long n = strtol(env, &end, 10);

		if (*end || n < 1 || n > INT_MAX) {
			status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
					 "AIU_WORLD_SIZE is '%s'; it must be a number from 1 on",
					 env);
			goto fail;
		}
		lib->world = (int)n;
	}
	if (!strcmp(backend, "drm")) {
		lib->be = &rt_backend_drm;
	} else if (!strcmp(backend, "model")) {
		status = load_model(lib);
	} else {
		status = rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
				 "unknown backend '%s'; use drm or model", backend);
	}
	if (status)
		goto fail;
	err = lib->be->init(&lib->be_state, text, sizeof(text));
	if (err) {
		status = rt_fail(SPYRERT_ERROR_NO_DEVICE, "backend %s: %s", backend,
				 text[0] ? text : strerror(-err));
		if (lib->dl)
			dlclose(lib->dl);
		goto fail;
	}
	*out = lib;
	return SPYRERT_SUCCESS;
fail:
	munmap(lib->alive, 4096);
	free(lib->visible);
	free(lib);
	return status;
}

RT_PUBLIC enum spyrert_status spyrert_exit(struct spyrert *lib)
{
	if (!lib)
		return SPYRERT_SUCCESS;
	RT_CHECK_FORK(lib);
	if (__atomic_load_n(&lib->devices, __ATOMIC_ACQUIRE))
		return rt_fail(SPYRERT_ERROR_BUSY, "%u devices are still open; close them first",
			       lib->devices);
	lib->be->exit(lib->be_state);
	/* The backend's shared object stays loaded: threads of its runtime may still be returning.
	 */
	munmap(lib->alive, 4096);
	free(lib->visible);
	free(lib);
	return SPYRERT_SUCCESS;
}

RT_PUBLIC const char *spyrert_backend_name(const struct spyrert *lib)
{
	if (!lib) {
		rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT, "spyrert_backend_name: lib is NULL");
		return NULL;
	}
	return lib->be->name;
}

/* Cards that are shown and work, in the order of their numbers. */
int rt_scan(struct spyrert *lib, struct rt_card *cards)
{
	bool show[RT_MAX_CARDS];
	int i, found, kept = 0;

	found = lib->be->scan(lib->be_state, cards, RT_MAX_CARDS);
	if (found < 0)
		return found;
	for (i = 0; i < found; i++)
		show[i] = !lib->visible;
	if (lib->visible) {
		const char *p = lib->visible;

		while (*p) {
			char *end;
			long n = strtol(p, &end, 10);

			if (end != p && (*end == ',' || !*end) && n >= 0 && n < found)
				show[n] = true;
			p = end + strcspn(end, ",");
			p += *p == ',';
		}
	}
	for (i = 0; i < found; i++) {
		if (!show[i] || !cards[i].works)
			continue;
		if (!lib->visible && lib->world >= 0 && kept >= lib->world)
			break;
		if (kept != i)
			cards[kept] = cards[i];
		kept++;
	}
	return kept;
}

RT_PUBLIC enum spyrert_status spyrert_device_count(struct spyrert *lib, int *count)
{
	struct rt_card *cards;
	int n;

	if (!lib || !count)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_device_count: NULL argument");
	RT_CHECK_FORK(lib);
	cards = calloc(RT_MAX_CARDS, sizeof(*cards));
	if (!cards)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	n = rt_scan(lib, cards);
	free(cards);
	if (n < 0)
		return rt_fail(SPYRERT_ERROR_SYSTEM, "cannot look for cards: %s", strerror(-n));
	*count = n;
	return SPYRERT_SUCCESS;
}

static enum spyrert_status find_card(struct spyrert *lib, int index, struct rt_card *card)
{
	struct rt_card *cards;
	int n;

	cards = calloc(RT_MAX_CARDS, sizeof(*cards));
	if (!cards)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	n = rt_scan(lib, cards);
	if (n > 0 && index >= 0 && index < n)
		*card = cards[index];
	free(cards);
	if (n < 0)
		return rt_fail(SPYRERT_ERROR_SYSTEM, "cannot look for cards: %s", strerror(-n));
	if (!n)
		return rt_fail(SPYRERT_ERROR_NO_DEVICE,
			       "no Spyre card that works was found (backend %s); check 'lspci -d "
			       "1014:06a7', "
			       "that the spyre module is loaded, and SPYRE_DEVICES",
			       lib->be->name);
	if (index < 0 || index >= n)
		return rt_fail(SPYRERT_ERROR_NO_DEVICE, "there is no card %d; cards are 0 to %d",
			       index, n - 1);
	return SPYRERT_SUCCESS;
}

void rt_copy_out(void *dst, size_t dst_size, const void *src, size_t src_size)
{
	memcpy(dst, src, dst_size < src_size ? dst_size : src_size);
	if (dst_size > src_size)
		memset((char *)dst + src_size, 0, dst_size - src_size);
}

RT_PUBLIC enum spyrert_status spyrert_device_get_info(struct spyrert *lib, int index,
						      struct spyrert_device_info *info, size_t size)
{
	enum spyrert_status status;
	struct rt_card card;

	if (!lib || !info)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_device_get_info: NULL argument");
	RT_CHECK_SIZE(size);
	RT_CHECK_FORK(lib);
	status = find_card(lib, index, &card);
	if (!status)
		rt_copy_out(info, size, &card.info, sizeof(card.info));
	return status;
}

/*
 * Two cards are under one switch when the paths of their PCI devices share two bridges below the
 * root: a root port and the switch's upstream port.
 */
RT_PUBLIC enum spyrert_status spyrert_device_topology(struct spyrert *lib, int a, int b,
						      enum spyrert_link *link)
{
	struct rt_card ca, cb;
	enum spyrert_status status;
	int i, shared = 0;

	if (!lib || !link)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_device_topology: NULL argument");
	RT_CHECK_FORK(lib);
	status = find_card(lib, a, &ca);
	if (!status)
		status = find_card(lib, b, &cb);
	if (status)
		return status;
	if (ca.number == cb.number) {
		*link = SPYRERT_LINK_SELF;
		return SPYRERT_SUCCESS;
	}
	*link = SPYRERT_LINK_SYSTEM;
	if (strncmp(ca.syspath, "/sys/devices/pci", 16) ||
	    strncmp(cb.syspath, "/sys/devices/pci", 16))
		return SPYRERT_SUCCESS;
	/* Components after /sys/devices: the root bus, then bridges. */
	for (i = 12; ca.syspath[i] && ca.syspath[i] == cb.syspath[i]; i++)
		if (ca.syspath[i] == '/')
			shared++;
	/* shared: 1 separator before the root bus, 1 after it, 1 for each common bridge. */
	if (shared >= 4)
		*link = SPYRERT_LINK_SWITCH;
	else if (shared >= 2 && (ca.info.numa_node < 0 || ca.info.numa_node == cb.info.numa_node))
		*link = SPYRERT_LINK_ROOT;
	return SPYRERT_SUCCESS;
}

RT_PUBLIC enum spyrert_status spyrert_device_open(struct spyrert *lib, int index,
						  struct spyrert_device **out)
{
	enum spyrert_status status;
	struct spyrert_device *dev;

	if (!lib || !out)
		return rt_fail(SPYRERT_ERROR_INVALID_ARGUMENT,
			       "spyrert_device_open: NULL argument");
	RT_CHECK_FORK(lib);
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	dev->lib = lib;
	pthread_mutex_init(&dev->lock, NULL);
	status = find_card(lib, index, &dev->card);
	if (!status)
		status = rt_session_open(dev, &dev->card, &dev->session, &dev->def);
	if (status) {
		pthread_mutex_destroy(&dev->lock);
		free(dev);
		return status;
	}
	__atomic_fetch_add(&lib->devices, 1, __ATOMIC_ACQ_REL);
	*out = dev;
	return SPYRERT_SUCCESS;
}

void rt_ioctl_decode(char *buf, size_t size, unsigned long request, const void *arg)
{
	switch (request) {
	case DRM_IOCTL_SPYRE_QUERY: {
		const struct drm_spyre_query *a = arg;

		snprintf(buf, size, "type %u size %u", a->type, a->size);
		break;
	}
	case DRM_IOCTL_SPYRE_BO_CREATE: {
		const struct drm_spyre_bo_create *a = arg;

		snprintf(buf, size, "size %#llx flags %#x handle %u", (unsigned long long)a->size,
			 a->flags, a->handle);
		break;
	}
	case DRM_IOCTL_SPYRE_BO_INFO: {
		const struct drm_spyre_bo_info *a = arg;

		snprintf(buf, size, "handle %u size %#llx flags %#x", a->handle,
			 (unsigned long long)a->size, a->flags);
		break;
	}
	case DRM_IOCTL_SPYRE_BO_MMAP: {
		const struct drm_spyre_bo_mmap *a = arg;

		snprintf(buf, size, "handle %u offset %#llx", a->handle,
			 (unsigned long long)a->offset);
		break;
	}
	case DRM_IOCTL_GEM_CLOSE:
		snprintf(buf, size, "handle %u", ((const struct drm_gem_close *)arg)->handle);
		break;
	case DRM_IOCTL_SPYRE_VM_BIND: {
		const struct drm_spyre_vm_bind *a = arg;

		snprintf(buf, size, "%s handle %u segment %u size %#llx addr %#llx space %u",
			 a->op ? "unmap" : "map", a->handle, a->segment,
			 (unsigned long long)a->size, (unsigned long long)a->addr, a->space);
		break;
	}
	case DRM_IOCTL_SPYRE_QUEUE_CREATE: {
		const struct drm_spyre_queue_create *a = arg;

		snprintf(buf, size, "entries %u priority %u queue %u", a->entries, a->priority,
			 a->queue);
		break;
	}
	case DRM_IOCTL_SPYRE_QUEUE_DESTROY:
	case DRM_IOCTL_SPYRE_QUEUE_RESET:
	case DRM_IOCTL_SPYRE_QUEUE_KICK:
		snprintf(buf, size, "queue %u", ((const struct drm_spyre_queue_id *)arg)->queue);
		break;
	case DRM_IOCTL_SPYRE_WAIT: {
		const struct drm_spyre_wait *a = arg;
		const struct drm_spyre_wait_entry *e = (const void *)(uintptr_t)a->entries;

		snprintf(buf, size, "count %u kind %u handle %u value %llu timeout %lld", a->count,
			 e->kind, e->handle, (unsigned long long)e->value,
			 (long long)a->timeout_ns);
		break;
	}
	case DRM_IOCTL_SPYRE_WAIT_CANCEL:
		snprintf(buf, size, "id %llu",
			 (unsigned long long)((const struct drm_spyre_wait_cancel *)arg)->id);
		break;
	case DRM_IOCTL_SPYRE_RAS_READ: {
		const struct drm_spyre_ras_read *a = arg;

		snprintf(buf, size, "after %llu flags %#x records %u dropped %llu",
			 (unsigned long long)a->after, a->flags, a->count,
			 (unsigned long long)a->dropped);
		break;
	}
	case DRM_IOCTL_SPYRE_SUBMIT: {
		const struct drm_spyre_submit *a = arg;

		snprintf(buf, size, "control blocks %u in %u out %u flags %#x", a->cb_count,
			 a->in_count, a->out_count, a->flags);
		break;
	}
	case DRM_IOCTL_SPYRE_BO_USERPTR: {
		const struct drm_spyre_bo_userptr *a = arg;

		snprintf(buf, size, "addr %#llx size %#llx flags %#x handle %u",
			 (unsigned long long)a->addr, (unsigned long long)a->size, a->flags,
			 a->handle);
		break;
	}
	case DRM_IOCTL_PRIME_HANDLE_TO_FD:
	case DRM_IOCTL_PRIME_FD_TO_HANDLE: {
		const struct drm_prime_handle *a = arg;

		snprintf(buf, size, "handle %u fd %d flags %#x", a->handle, a->fd, a->flags);
		break;
	}
	default:
		snprintf(buf, size, "request %#lx", request);
	}
}

int rt_ioctl(struct rt_session *s, unsigned long request, void *arg, const char *name)
{
	int err = s->lib->be->ioctl(s->be_dev, request, arg);

	if (s->lib->log & RT_LOG_IOCTL) {
		char text[200];

		rt_ioctl_decode(text, sizeof(text), request, arg);
		rt_log(s->lib, RT_LOG_IOCTL, "%s %s = %d%s%s", name, text, err, err ? " " : "",
		       err ? strerror(-err) : "");
	}
	return err;
}
