// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/sync_file.h>

#include <drm.h>

#include "../jobs.h"
#include "spyre_test.h"

static char pci_name[64];

static bool is_spyre(const char *node)
{
	char path[PATH_MAX], link[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/class/accel/%s/device/driver", node);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = 0;
	if (strcmp(strrchr(link, '/') + 1, "spyre"))
		return false;
	snprintf(path, sizeof(path), "/sys/class/accel/%s/device", node);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = 0;
	snprintf(pci_name, sizeof(pci_name), "%s", strrchr(link, '/') + 1);
	return true;
}

static int find_node(char *node, size_t size)
{
	const char *wanted = getenv("SPYRE_TEST_NODE");
	glob_t g;
	size_t i;

	if (wanted) {
		snprintf(node, size, "%s", wanted);
		is_spyre(strrchr(wanted, '/') ? strrchr(wanted, '/') + 1 : wanted);
		return 0;
	}
	if (glob("/sys/class/accel/accel*", 0, NULL, &g))
		return -ENOENT;
	for (i = 0; i < g.gl_pathc; i++) {
		const char *name = strrchr(g.gl_pathv[i], '/') + 1;

		if (!is_spyre(name))
			continue;
		snprintf(node, size, "/dev/accel/%s", name);
		globfree(&g);
		return 0;
	}
	globfree(&g);
	return -ENOENT;
}

int slower(void)
{
	const char *text = getenv("SPYRE_TEST_SLOWER");
	int n = text ? atoi(text) : 1;

	return n > 1 ? n : 1;
}

int card_open(void)
{
	char node[PATH_MAX];
	int fd, i, ret = -ENOENT;

	/* After a bind the node comes a moment later. */
	for (i = 0; i < 100 * slower(); i++) {
		ret = find_node(node, sizeof(node));
		if (!ret) {
			fd = open(node, O_RDWR | O_CLOEXEC);
			if (fd >= 0)
				return fd;
			ret = -errno;
		}
		usleep(50000);
	}
	return ret;
}

const char *card_pci(void)
{
	char node[PATH_MAX];

	if (!*pci_name)
		find_node(node, sizeof(node));
	return pci_name;
}

int call(int fd, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, request, arg);
	} while (ret < 0 && (errno == EINTR || errno == EAGAIN));
	return ret < 0 ? -errno : 0;
}

int query(int fd, uint32_t type, void *data, uint32_t size)
{
	struct drm_spyre_query q = { .type = type, .size = size, .data = (uintptr_t)data };

	return call(fd, DRM_IOCTL_SPYRE_QUERY, &q);
}

struct drm_spyre_memory_info memory_info(int fd)
{
	struct drm_spyre_memory_info m = {};

	query(fd, DRM_SPYRE_QUERY_MEMORY, &m, sizeof(m));
	return m;
}

struct drm_spyre_limits limits(int fd)
{
	struct drm_spyre_limits l = {};

	query(fd, DRM_SPYRE_QUERY_LIMITS, &l, sizeof(l));
	return l;
}

int bo_create(int fd, uint64_t size, uint32_t flags, uint32_t *handle)
{
	struct drm_spyre_bo_create c = { .size = size, .flags = flags };
	int ret = call(fd, DRM_IOCTL_SPYRE_BO_CREATE, &c);

	*handle = c.handle;
	return ret;
}

int bo_close(int fd, uint32_t handle)
{
	struct drm_gem_close c = { .handle = handle };

	return call(fd, DRM_IOCTL_GEM_CLOSE, &c);
}

void *bo_map(int fd, uint32_t handle, uint64_t size, int prot)
{
	struct drm_spyre_bo_mmap m = { .handle = handle };
	void *p;
	int ret = call(fd, DRM_IOCTL_SPYRE_BO_MMAP, &m);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	p = mmap(NULL, size, prot, MAP_SHARED, fd, m.offset);
	return p == MAP_FAILED ? NULL : p;
}

int vm_map(int fd, uint32_t handle, uint32_t flags, uint32_t segment, uint64_t *addr)
{
	struct drm_spyre_vm_bind b = {
		.op = DRM_SPYRE_VM_MAP, .flags = flags, .handle = handle, .segment = segment,
		.addr = flags & DRM_SPYRE_VM_FIXED ? *addr : 0,
	};
	int ret = call(fd, DRM_IOCTL_SPYRE_VM_BIND, &b);

	*addr = b.addr;
	return ret;
}

int vm_unmap(int fd, uint64_t addr, uint32_t space)
{
	struct drm_spyre_vm_bind b = { .op = DRM_SPYRE_VM_UNMAP, .addr = addr, .space = space };

	return call(fd, DRM_IOCTL_SPYRE_VM_BIND, &b);
}

int export_fd(int fd, uint32_t handle, uint32_t flags)
{
	struct drm_prime_handle p = { .handle = handle, .flags = O_CLOEXEC | flags };
	int ret = call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &p);

	return ret ? ret : p.fd;
}

int import_fd(int fd, int buf, uint32_t *handle)
{
	struct drm_prime_handle p = { .fd = buf };
	int ret = call(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &p);

	*handle = p.handle;
	return ret;
}

int queue_open(int fd, uint32_t entries, uint32_t priority, struct queue *q)
{
	struct drm_spyre_queue_create c = { .entries = entries, .priority = priority };
	char *ring, *status;
	void *db;
	int ret = call(fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &c);

	if (ret)
		return ret;
	ring = mmap(NULL, c.ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, c.ring_offset);
	status = mmap(NULL, c.status_size, PROT_READ, MAP_SHARED, fd, c.status_offset);
	db = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, c.doorbell_offset);
	if (ring == MAP_FAILED || status == MAP_FAILED || db == MAP_FAILED)
		return -errno;
	memset(q, 0, sizeof(*q));
	q->fd = fd;
	q->id = c.queue;
	q->entries = entries;
	q->ring_size = c.ring_size;
	q->status_size = c.status_size;
	q->ring = (struct spyre_cb *)ring;
	q->shadow = (volatile struct spyre_shadow *)(ring + c.shadow_at);
	q->status = (volatile struct spyre_queue_status *)status;
	q->response = (volatile struct spyre_rb *)(status + c.response_at);
	q->doorbell = db;
	return 0;
}

void queue_unmap(struct queue *q)
{
	munmap(q->ring, q->ring_size);
	munmap((void *)q->status, q->status_size);
	munmap((void *)q->doorbell, 4096);
}

int queue_close(struct queue *q)
{
	struct drm_spyre_queue_id id = { .queue = q->id };

	queue_unmap(q);
	return call(q->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &id);
}

uint32_t queue_submit(struct queue *q, const struct spyre_cb *cb)
{
	uint32_t old = q->tail, new = old + 1;

	while ((uint32_t)(old - __atomic_load_n(&q->status->fetched, __ATOMIC_ACQUIRE)) >= q->entries)
		usleep(50);
	q->ring[old & (q->entries - 1)] = *cb;
	__atomic_store_n(&q->shadow->tail, new, __ATOMIC_RELEASE);
	/* Orders the tail before event_idx; the card does it the other way round. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if ((uint32_t)(new - q->status->event_idx - 1) < (uint32_t)(new - old))
		*q->doorbell = new;
	q->tail = new;
	return old;
}

int queue_wait(struct queue *q, uint32_t entry, unsigned int ms)
{
	int64_t end = after_ms(ms);

	for (;;) {
		uint32_t done = __atomic_load_n(&q->status->done, __ATOMIC_ACQUIRE);

		if (q->status->error)
			return q->status->error;
		if ((int32_t)(done - entry - 1) >= 0)
			return 0;
		if (after_ms(0) > end)
			return -ETIME;
		usleep(100);
	}
}

int driver_file(const char *name)
{
	static char pci[64];
	char path[128];

	/* Without a driver there is no node that leads to the function. */
	if (!*pci)
		snprintf(pci, sizeof(pci), "%s", card_pci());
	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/spyre/%s", name);
	return write_file(path, pci);
}

int pci_file(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", card_pci(), name);
	return write_file(path, text);
}

int thread_sleeps(const int *tid)
{
	char path[64], word[64];
	int i, id;

	for (i = 0; i < 2000; i++) {
		id = __atomic_load_n(tid, __ATOMIC_ACQUIRE);
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", id);
		/* A thread that runs has "running" there; 16 is ioctl(). */
		if (id && !read_file(path, word, sizeof(word)) && atoi(word) == SYS_ioctl)
			return 0;
		usleep(5000);
	}
	return -ETIME;
}

int card_works(void)
{
	struct spyre_cb cb = cb_nop();
	struct queue q;
	int fd = card_open(), ret;

	if (fd < 0)
		return fd;
	ret = queue_open(fd, 64, 1, &q);
	if (!ret) {
		ret = queue_wait(&q, queue_submit(&q, &cb), WAIT_MS);
		queue_unmap(&q);
	}
	close(fd);
	return ret;
}

void baseline_take(struct baseline *b)
{
	struct drm_spyre_memory_info m;
	struct drm_spyre_limits l;
	unsigned long long host = 0, user = 0;
	char buf[1024], *at;
	int fd = card_open();

	m = memory_info(fd);
	l = limits(fd);
	close(fd);
	*b = (struct baseline){
		.memory = m.used, .tables = m.table_used,
		.contexts = l.contexts_used, .queues = l.queues_used,
	};
	if (read_file(debugfs_path("memory"), buf, sizeof(buf)))
		return;
	at = strstr(buf, "objects ");
	if (at && sscanf(at, "objects %u host-pages %llu user-pages %llu", &b->objects, &host, &user) == 3) {
		b->host_pages = host;
		b->user_pages = user;
	}
}

int back_to_baseline(const struct baseline *b)
{
	struct baseline now;
	int i;

	/* The last reference of a file goes a moment after the process. */
	for (i = 0; i < 100 * slower(); i++) {
		baseline_take(&now);
		if (now.memory == b->memory && now.tables == b->tables &&
		    now.host_pages == b->host_pages && now.user_pages == b->user_pages &&
		    now.objects == b->objects && now.contexts == b->contexts && now.queues == b->queues)
			return 0;
		usleep(50000);
	}
	fprintf(stderr, "# memory %llu tables %llu host pages %llu user pages %llu objects %u contexts %u queues %u, before %llu %llu %llu %llu %u %u %u\n",
		(unsigned long long)now.memory, (unsigned long long)now.tables,
		(unsigned long long)now.host_pages, (unsigned long long)now.user_pages,
		now.objects, now.contexts, now.queues,
		(unsigned long long)b->memory, (unsigned long long)b->tables,
		(unsigned long long)b->host_pages, (unsigned long long)b->user_pages,
		b->objects, b->contexts, b->queues);
	return -1;
}

static struct spyreprog_job *build_job(enum job_kind kind)
{
	switch (kind) {
	case JOB_COPY:
		return job_mover(0, 1);
	case JOB_DEADLOCK:
		return job_deadlock(4);
	case JOB_ENDLESS:
		return job_endless();
	}
	return NULL;
}

int job_put(int fd, struct queue *q, struct spyreprog_job *job, const uint64_t symbols[2], struct spyre_cb *cb)
{
	struct spyre_cb copy;
	uint32_t host, dev;
	uint64_t hmva, dmva, *p;
	void *data;
	size_t size;
	int ret;

	ret = spyreprog_job_finish(job, &data, &size);
	if (ret)
		fprintf(stderr, "# %s\n", spyreprog_job_error(job));
	spyreprog_job_free(job);
	if (ret)
		return -EINVAL;
	if (size > MB) {
		free(data);
		return -EFBIG;
	}
	ret = bo_create(fd, PAGE2M, DRM_SPYRE_BO_HOST, &host);
	if (!ret)
		ret = bo_create(fd, PAGE2M, DRM_SPYRE_BO_DEVICE, &dev);
	if (!ret)
		ret = vm_map(fd, host, 0, 0, &hmva);
	if (!ret)
		ret = vm_map(fd, dev, 0, 7, &dmva);
	p = ret ? NULL : bo_map(fd, host, PAGE2M, PROT_READ | PROT_WRITE);
	if (!p) {
		free(data);
		return ret ? ret : -errno;
	}
	memcpy(p, data, size);
	free(data);
	/* Symbols stay in host memory, behind the job. */
	if (symbols)
		memcpy(p + MB / 8, symbols, 2 * sizeof(*symbols));
	munmap(p, PAGE2M);
	copy = cb_dma(SPYRE_CB_DMAI, dmva, hmva, (size + 127) & ~127ull);
	ret = queue_wait(q, queue_submit(q, &copy), WAIT_MS);
	*cb = (struct spyre_cb){
		.type = SPYRE_CB_COMPUTE,
		.flags = SPYRE_CB_F_RESPONSE | SPYRE_CB_F_BARRIER | (symbols ? SPYRE_CB_F_SYM_HOST : 0),
	};
	cb->u.compute.bootaddr = dmva;
	cb->u.compute.symbols = symbols ? hmva + MB : 0;
	cb->u.compute.nsymbols = symbols ? 2 : 0;
	return ret;
}

int job_load(int fd, struct queue *q, enum job_kind kind, const uint64_t symbols[2], struct spyre_cb *cb)
{
	return job_put(fd, q, build_job(kind), symbols, cb);
}

struct spyre_cb cb_nop(void)
{
	return (struct spyre_cb){ .type = SPYRE_CB_NOP, .flags = SPYRE_CB_F_RESPONSE };
}

struct spyre_cb cb_fill(uint64_t dst, uint64_t bytes, uint64_t pattern)
{
	struct spyre_cb cb = { .type = SPYRE_CB_FILL, .flags = SPYRE_CB_F_RESPONSE | SPYRE_CB_F_BARRIER };

	cb.u.fill.dst = dst;
	cb.u.fill.bytes = bytes;
	cb.u.fill.pattern = pattern;
	return cb;
}

struct spyre_cb cb_dma(unsigned int type, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct spyre_cb cb = { .type = type, .flags = SPYRE_CB_F_RESPONSE | SPYRE_CB_F_BARRIER };

	cb.u.dma.dst = dst;
	cb.u.dma.src = src;
	cb.u.dma.bytes = bytes;
	cb.u.dma.ndims = 1;
	return cb;
}

struct spyre_cb cb_signal_host(uint64_t addr, uint64_t value)
{
	struct spyre_cb cb = {
		.type = SPYRE_CB_SIGNAL, .flags = SPYRE_CB_F_HOST | SPYRE_CB_F_INTERRUPT,
	};

	cb.u.sync.addr = addr;
	cb.u.sync.value = value;
	return cb;
}

struct spyre_cb cb_wait_host(uint64_t addr, uint64_t value)
{
	struct spyre_cb cb = { .type = SPYRE_CB_WAIT, .flags = SPYRE_CB_F_HOST };

	cb.u.sync.addr = addr;
	cb.u.sync.value = value;
	return cb;
}

int64_t after_ms(int64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (t.tv_sec * 1000 + ms) * 1000000 + t.tv_nsec;
}

static int wait_one(int fd, struct drm_spyre_wait_entry *e, int64_t timeout)
{
	struct drm_spyre_wait w = { .entries = (uintptr_t)e, .count = 1, .timeout_ns = timeout };

	return call(fd, DRM_IOCTL_SPYRE_WAIT, &w);
}

int wait_fence(int fd, uint32_t handle, uint64_t offset, uint64_t value, int64_t timeout)
{
	struct drm_spyre_wait_entry e = {
		.kind = DRM_SPYRE_WAIT_FENCE, .handle = handle, .offset = offset, .value = value,
	};

	return wait_one(fd, &e, timeout);
}

int wait_queue(int fd, uint32_t queue, uint64_t value, int64_t timeout)
{
	struct drm_spyre_wait_entry e = {
		.kind = DRM_SPYRE_WAIT_QUEUE, .handle = queue, .value = value,
	};

	return wait_one(fd, &e, timeout);
}

int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

int read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return -errno;
	buf[n] = 0;
	return 0;
}

const char *debugfs_path(const char *name)
{
	static char path[PATH_MAX];

	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	snprintf(path, sizeof(path), "/sys/kernel/debug/accel/%s/%s", card_pci(), name);
	return path;
}

static char *kernel_log(void)
{
	int size = klogctl(10, NULL, 0), n;
	char *buf = malloc(size + 1);

	n = klogctl(3, buf, size);
	buf[n > 0 ? n : 0] = 0;
	return buf;
}

static char mark[64];

void log_mark(void)
{
	static int count;

	snprintf(mark, sizeof(mark), "spyre-test mark %d of %d", count++, getpid());
	write_file("/dev/kmsg", mark);
}

bool log_has(const char *text)
{
	char *log = kernel_log(), *from = strstr(log, mark);
	bool found = from && strstr(from, text);

	free(log);
	return found;
}

int wait_log(const char *text)
{
	int i;

	for (i = 0; i < 600 * slower(); i++) {
		if (log_has(text))
			return 0;
		usleep(50000);
	}
	return -ETIME;
}

/* --- Module ---------------------------------------------------------------------------------- */

int build_folder(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	int i;

	if (n < 0)
		return -errno;
	path[n] = 0;
	/* BUILD/tests/kselftest/NAME */
	for (i = 0; i < 3; i++)
		*strrchr(path, '/') = 0;
	return 0;
}

int module_open(const char *name)
{
	const char *named = strcmp(name, "spyre") ? NULL : getenv("SPYRE_MODULE");
	char build[PATH_MAX], path[PATH_MAX + 128];
	struct utsname u;
	int fd;

	if (named)
		return open(named, O_RDONLY | O_CLOEXEC);
	if (build_folder(build, sizeof(build)) || uname(&u))
		return -1;
	snprintf(path, sizeof(path), "%s/kernel-%s/%s.ko", build, u.release, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%s/kernel/%s.ko", build, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int module_unload(void)
{
	return syscall(SYS_delete_module, "spyre", O_NONBLOCK) ? -errno : 0;
}

/* --- SUBMIT ---------------------------------------------------------------------------------- */

uint32_t syncobj(int fd)
{
	struct drm_syncobj_create c = {};

	return call(fd, DRM_IOCTL_SYNCOBJ_CREATE, &c) ? 0 : c.handle;
}

int sync_file(int fd, uint32_t handle, uint64_t point)
{
	uint32_t binary = point ? syncobj(fd) : handle;
	struct drm_syncobj_transfer t = { .src_handle = handle, .dst_handle = binary, .src_point = point };
	struct drm_syncobj_handle h = {
		.handle = binary, .flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE, .fd = -1,
	};
	struct drm_syncobj_destroy d = { .handle = binary };
	int ret = point ? call(fd, DRM_IOCTL_SYNCOBJ_TRANSFER, &t) : 0;

	if (!ret)
		ret = call(fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &h);
	if (point)
		call(fd, DRM_IOCTL_SYNCOBJ_DESTROY, &d);
	return ret ? ret : h.fd;
}

int file_status(int file, struct sync_fence_info *info)
{
	struct sync_fence_info own = {};
	struct sync_file_info f = { .num_fences = 1, .sync_fence_info = (uintptr_t)(info ? info : &own) };

	return ioctl(file, SYNC_IOC_FILE_INFO, &f) ? -errno : f.status;
}

int file_end(int file, int ms)
{
	struct pollfd p = { .fd = file, .events = POLLIN };
	int status;

	if (poll(&p, 1, ms) != 1)
		return -EBUSY;
	status = file_status(file, NULL);
	return status == 1 ? 0 : status;
}

int sync_end(int fd, uint32_t handle, uint64_t point, int ms)
{
	int file = sync_file(fd, handle, point), ret;

	if (file < 0)
		return file;
	ret = file_end(file, ms);
	close(file);
	return ret;
}

int submit(int fd, const struct spyre_cb *cbs, uint32_t n, uint32_t flags, uint32_t in, uint64_t in_point,
		  uint32_t out, uint64_t out_point)
{
	struct drm_spyre_sync from = { .handle = in, .point = in_point };
	struct drm_spyre_sync to = { .handle = out, .point = out_point };
	struct drm_spyre_submit s = {
		.cbs = (uintptr_t)cbs, .cb_count = n, .flags = flags,
		.in_syncs = (uintptr_t)&from, .in_count = !!in,
		.out_syncs = (uintptr_t)&to, .out_count = !!out,
	};

	return call(fd, DRM_IOCTL_SPYRE_SUBMIT, &s);
}

struct spyre_cb cb_plain(struct spyre_cb cb)
{
	cb.flags &= ~(SPYRE_CB_F_RESPONSE | SPYRE_CB_F_INTERRUPT);
	return cb;
}

int errors_counted(const char *kind, const char *name)
{
	char buf[8192], *line, *rest = buf, k[64], n[64];
	unsigned int value;
	int sum = 0, ret;

	ret = read_file(debugfs_path("counters"), buf, sizeof(buf));
	if (ret)
		return ret;
	while ((line = strsep(&rest, "\n")))
		if (sscanf(line, "%63s %63s %u", k, n, &value) == 3 && !strcmp(k, kind) &&
		    (!name || !strcmp(n, name)))
			sum += value;
	return sum;
}

/* --- Netlink ---------------------------------------------------------------------------------- */

/* drm/drm_ras.h of newer kernels. */
enum { RAS_LIST_NODES = 1, RAS_GET_ERROR_COUNTER };
enum { RAS_NODE_ID = 1, RAS_DEVICE_NAME, RAS_NODE_NAME };
enum { RAS_COUNTER_NODE = 1, RAS_COUNTER_ID, RAS_COUNTER_NAME, RAS_COUNTER_VALUE };

struct request {
	struct nlmsghdr h;
	struct genlmsghdr g;
	char attrs[128];
};

static struct request request(uint16_t family, uint8_t cmd, uint16_t flags)
{
	return (struct request){
		.h = { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = family,
		       .nlmsg_flags = NLM_F_REQUEST | flags },
		.g = { .cmd = cmd, .version = 1 },
	};
}

static void attr_put(struct request *r, uint16_t type, const void *data, uint16_t len)
{
	struct nlattr *a = (void *)((char *)r + r->h.nlmsg_len);

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy((char *)a + NLA_HDRLEN, data, len);
	r->h.nlmsg_len += NLA_ALIGN(a->nla_len);
}

/* Its data, of at least so many bytes, or NULL. */
static const void *attr_get(const struct nlmsghdr *h, uint16_t type, size_t len)
{
	size_t at = NLMSG_LENGTH(GENL_HDRLEN);

	while (at + NLA_HDRLEN <= h->nlmsg_len) {
		const struct nlattr *a = (const void *)((const char *)h + at);

		if (a->nla_len < NLA_HDRLEN || at + a->nla_len > h->nlmsg_len)
			break;
		if ((a->nla_type & NLA_TYPE_MASK) == type && a->nla_len >= NLA_HDRLEN + len)
			return (const char *)a + NLA_HDRLEN;
		at += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static uint32_t attr_u32(const struct nlmsghdr *h, uint16_t type)
{
	const uint32_t *v = attr_get(h, type, sizeof(*v));

	return v ? *v : UINT32_MAX;
}

static const char *attr_text(const struct nlmsghdr *h, uint16_t type)
{
	const char *s = attr_get(h, type, 1);

	return s ? s : "";
}

/* Calls each() for every answer. 0, or -errno as the kernel says it. */
static int ask(const struct request *r, void (*each)(const struct nlmsghdr *h, void *arg), void *arg)
{
	_Alignas(struct nlmsghdr) char buf[32768];
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct timeval limit = { .tv_sec = WAIT_MS / 1000 };
	int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), ret = 1;
	const struct nlmsghdr *h;
	ssize_t n;

	if (s < 0)
		return -errno;
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (sendto(s, r, r->h.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		ret = -errno;
	while (ret > 0) {
		n = recv(s, buf, sizeof(buf), 0);
		if (n < 0) {
			ret = -errno;
			break;
		}
		for (h = (void *)buf; ret > 0 && NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_type == NLMSG_DONE) {
				ret = h->nlmsg_len >= NLMSG_LENGTH(sizeof(int)) ? *(int *)NLMSG_DATA(h) : 0;
				continue;
			}
			each(h, arg);
			/* The parts of a dump are not marked as such by every family. */
			if (!(r->h.nlmsg_flags & NLM_F_DUMP))
				ret = 0;
		}
	}
	close(s);
	return ret;
}

static void get_family(const struct nlmsghdr *h, void *arg)
{
	const uint16_t *v = attr_get(h, CTRL_ATTR_FAMILY_ID, sizeof(*v));

	if (v)
		*(int *)arg = *v;
}

static int ras_family(void)
{
	struct request r = request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	int family = -EOPNOTSUPP, ret;

	attr_put(&r, CTRL_ATTR_FAMILY_NAME, "drm-ras", sizeof("drm-ras"));
	ret = ask(&r, get_family, &family);
	return ret && ret != -ENOENT ? ret : family;
}

struct node_wanted {
	const char *kind;
	int64_t id;
};

static void get_node(const struct nlmsghdr *h, void *arg)
{
	struct node_wanted *w = arg;

	if (!strcmp(attr_text(h, RAS_DEVICE_NAME), card_pci()) &&
	    !strcmp(attr_text(h, RAS_NODE_NAME), w->kind))
		w->id = attr_u32(h, RAS_NODE_ID);
}

int64_t ras_node(const char *kind)
{
	struct node_wanted w = { .kind = kind, .id = -ENOENT };
	struct request r;
	int ret = ras_family();

	if (ret < 0)
		return ret;
	r = request(ret, RAS_LIST_NODES, NLM_F_DUMP);
	ret = ask(&r, get_node, &w);
	return ret ? ret : w.id;
}

struct counters_wanted {
	struct ras_counter *out;
	unsigned int room, n;
};

static void get_counter(const struct nlmsghdr *h, void *arg)
{
	struct counters_wanted *w = arg;
	struct ras_counter *c = &w->out[w->n];

	if (w->n++ >= w->room)
		return;
	c->id = attr_u32(h, RAS_COUNTER_ID);
	c->value = attr_u32(h, RAS_COUNTER_VALUE);
	snprintf(c->name, sizeof(c->name), "%s", attr_text(h, RAS_COUNTER_NAME));
}

int ras_counters(uint32_t node, struct ras_counter *out, unsigned int room)
{
	struct counters_wanted w = { .out = out, .room = room };
	struct request r;
	int ret = ras_family();

	if (ret < 0)
		return ret;
	r = request(ret, RAS_GET_ERROR_COUNTER, NLM_F_DUMP);
	attr_put(&r, RAS_COUNTER_NODE, &node, sizeof(node));
	ret = ask(&r, get_counter, &w);
	return ret ? ret : (int)w.n;
}

int ras_counter(uint32_t node, uint32_t id, struct ras_counter *out)
{
	struct counters_wanted w = { .out = out, .room = 1 };
	struct request r;
	int ret = ras_family();

	if (ret < 0)
		return ret;
	r = request(ret, RAS_GET_ERROR_COUNTER, 0);
	attr_put(&r, RAS_COUNTER_NODE, &node, sizeof(node));
	attr_put(&r, RAS_COUNTER_ID, &id, sizeof(id));
	ret = ask(&r, get_counter, &w);
	return ret ? ret : w.n == 1 ? 0 : -EPROTO;
}

/* --- Cgroups ---------------------------------------------------------------------------------- */

int cgroup_controller(const char *name)
{
	char buf[4096];
	int ret;

	if (access(CGROUPS "/cgroup.controllers", F_OK) && mount("none", CGROUPS, "cgroup2", 0, NULL))
		return -errno;
	ret = read_file(CGROUPS "/cgroup.controllers", buf, sizeof(buf));
	if (ret)
		return ret;
	if (!strstr(buf, name))
		return -EOPNOTSUPP;
	/* Who may not write there may know that it is there already. */
	ret = read_file(CGROUPS "/cgroup.subtree_control", buf, sizeof(buf));
	if (ret || strstr(buf, name))
		return ret;
	snprintf(buf, sizeof(buf), "+%s", name);
	return write_file(CGROUPS "/cgroup.subtree_control", buf);
}

int cgroup_new(const char *controller)
{
	int ret = cgroup_controller(controller);

	if (ret)
		return ret;
	rmdir(CGROUP);
	return mkdir(CGROUP, 0755) ? -errno : 0;
}

int64_t dmem_read(const char *cgroup, const char *file)
{
	char path[PATH_MAX], buf[4096], region[128], *at;
	int ret = cgroup_controller("dmem");

	if (ret)
		return ret;
	snprintf(path, sizeof(path), "%s/dmem.%s", cgroup, file);
	ret = read_file(path, buf, sizeof(buf));
	if (ret)
		return ret;
	snprintf(region, sizeof(region), "drm/%s/device ", card_pci());
	at = strstr(buf, region);
	if (!at)
		return -ENOENT;
	at += strlen(region);
	return strncmp(at, "max", 3) ? strtoll(at, NULL, 10) : INT64_MAX;
}

int dmem_limit(const char *cgroup, uint64_t bytes)
{
	char path[PATH_MAX], text[128];
	int ret = cgroup_controller("dmem");

	if (ret)
		return ret;
	snprintf(path, sizeof(path), "%s/dmem.max", cgroup);
	snprintf(text, sizeof(text), "drm/%s/device %llu", card_pci(), (unsigned long long)bytes);
	return write_file(path, text);
}
