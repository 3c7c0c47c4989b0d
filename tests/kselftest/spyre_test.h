/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the driver share: opening cards, ioctls that return -errno, buffers, queues.
 */
#ifndef SPYRE_TEST_H
#define SPYRE_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <drm/spyre_accel.h>

#include <spyre/fw.h>

#define MB	(1ull << 20)
#define PAGE2M	(2 * MB)

/* A node of the driver, or -errno. The first card unless SPYRE_TEST_NODE names another. */
int card_open(void);
/* "0000:01:00.0" of that card. */
const char *card_pci(void);

/*
 * How many times longer things may take than on the stock kernel: SPYRE_TEST_SLOWER, which tests/run sets on
 * kernels that check themselves, else 1.
 */
int slower(void);

/* What a busy machine needs for anything that is expected to end. */
#define WAIT_MS	(20000 * slower())

#ifdef __KSELFTEST_HARNESS_H
/* The limits of all tests. Without a priority a constructor comes after those that register them. */
static void __attribute__((constructor)) stretch_limits(void)
{
	struct __fixture_metadata *f;
	struct __test_metadata *t;

	for (f = __fixture_list; f; f = f->next)
		for (t = f->tests; t; t = t->next)
			t->timeout *= slower();
}
#endif

/* "bind" or "unbind": what the driver is told about that card. 0 or -errno. */
int driver_file(const char *name);
/* Writes into a sysfs file of the card's PCI function. 0 or -errno. */
int pci_file(const char *name, const char *text);

/* A new file, context and queue work: 0, or what queue_wait() and others say. */
int card_works(void);

/* What the driver holds for its users. */
struct baseline {
	uint64_t memory, tables, host_pages, user_pages;
	uint32_t contexts, queues, objects;
};

void baseline_take(struct baseline *b);
/* 0 when the driver holds no more and no less than then; waits a while for it, then says what differs. */
int back_to_baseline(const struct baseline *b);

/* Jobs on the cores. */
enum job_kind {
	JOB_COPY,	/* moves the stick at symbol 0 to symbol 1 */
	JOB_DEADLOCK,	/* waits for what nobody sends */
	JOB_ENDLESS,	/* for longer than any test */
};

/* 0 or -errno; goes on after EINTR. */
int call(int fd, unsigned long request, void *arg);

int query(int fd, uint32_t type, void *data, uint32_t size);
struct drm_spyre_memory_info memory_info(int fd);
struct drm_spyre_limits limits(int fd);

int bo_create(int fd, uint64_t size, uint32_t flags, uint32_t *handle);
int bo_close(int fd, uint32_t handle);
/* NULL on failure, errno set. */
void *bo_map(int fd, uint32_t handle, uint64_t size, int prot);
int vm_map(int fd, uint32_t handle, uint32_t flags, uint32_t segment, uint64_t *addr);
int vm_unmap(int fd, uint64_t addr, uint32_t space);
/* A dma-buf of a buffer: its descriptor, or -errno. flags: DRM_RDWR or 0. */
int export_fd(int fd, uint32_t handle, uint32_t flags);
/* A handle of a dma-buf: 0 or -errno. */
int import_fd(int fd, int buf, uint32_t *handle);

struct queue {
	int fd;
	uint32_t id;
	uint32_t entries;
	uint32_t tail;
	size_t ring_size;
	size_t status_size;
	struct spyre_cb *ring;
	volatile struct spyre_shadow *shadow;
	volatile struct spyre_queue_status *status;
	volatile struct spyre_rb *response;
	volatile uint32_t *doorbell;
};

int queue_open(int fd, uint32_t entries, uint32_t priority, struct queue *q);
/* Unmaps; the kernel's queue goes by QUEUE_DESTROY. 0 or its -errno. */
int queue_close(struct queue *q);
void queue_unmap(struct queue *q);
/* Index of the entry. */
uint32_t queue_submit(struct queue *q, const struct spyre_cb *cb);
/* 0: the entry and all before it are done; else enum spyre_status of the queue, or -ETIME. */
int queue_wait(struct queue *q, uint32_t entry, unsigned int ms);

/*
 * Loads a job into segment 7 by a copy on @q, and makes the control block that runs it. symbols: two DMVAs
 * for JOB_COPY, else unused. 0 or -errno, or enum spyre_status of the copy.
 */
int job_load(int fd, struct queue *q, enum job_kind kind, const uint64_t symbols[2], struct spyre_cb *cb);
/* The same of a job of the test's own, of at most 1 MiB, which is freed. symbols: two, or NULL. */
struct spyreprog_job;
int job_put(int fd, struct queue *q, struct spyreprog_job *job, const uint64_t symbols[2], struct spyre_cb *cb);

struct spyre_cb cb_nop(void);
struct spyre_cb cb_fill(uint64_t dst, uint64_t bytes, uint64_t pattern);
struct spyre_cb cb_dma(unsigned int type, uint64_t dst, uint64_t src, uint64_t bytes);
struct spyre_cb cb_signal_host(uint64_t addr, uint64_t value);
struct spyre_cb cb_wait_host(uint64_t addr, uint64_t value);

/* A new syncobj; 0: none. */
uint32_t syncobj(int fd);
/* A sync_file of the fence of a binary syncobj or of a timeline's point, or -errno. */
int sync_file(int fd, uint32_t handle, uint64_t point);
struct sync_fence_info;
/* 1 signalled, 0 not yet, or the error that the fence has; info: NULL, or filled with its names. */
int file_status(int file, struct sync_fence_info *info);
/* What the fence ended with: 0 or its error; -EBUSY when it did not end. */
int file_end(int file, int ms);
/* The same of a syncobj's fence. */
int sync_end(int fd, uint32_t handle, uint64_t point, int ms);
/* SUBMIT with at most one syncobj (0: none) on each side. */
int submit(int fd, const struct spyre_cb *cbs, uint32_t n, uint32_t flags, uint32_t in, uint64_t in_point,
	   uint32_t out, uint64_t out_point);
/* As SUBMIT takes it: responses and interrupts are the kernel's. */
struct spyre_cb cb_plain(struct spyre_cb cb);

/* CLOCK_MONOTONIC plus ms. */
int64_t after_ms(int64_t ms);
int wait_fence(int fd, uint32_t handle, uint64_t offset, uint64_t value, int64_t timeout);
int wait_queue(int fd, uint32_t queue, uint64_t value, int64_t timeout);

/* The folder that this program was built in: 0 or -errno. */
int build_folder(char *path, size_t size);
/*
 * The module of that name, without ".ko", that fits the running kernel, for finit_module(): what was built beside
 * this program; "spyre" is SPYRE_MODULE where that is set. A descriptor, or -1 and errno.
 */
int module_open(const char *name);
/* 0, or -EWOULDBLOCK: somebody holds it. Never waits. */
int module_unload(void);

/* Waits until the thread of this process that puts its id into tid sleeps in an ioctl. 0 or -ETIME. */
int thread_sleeps(const int *tid);

/*
 * Errors that the driver has counted since the card was bound, of a kind ("job-errors") and by the name of a RAS
 * record; NULL: of all names. From debugfs. 0 or more, or -errno.
 */
int errors_counted(const char *kind, const char *name);

struct ras_counter {
	uint32_t id, value;
	char name[64];
};

/* The card's node of that kind in the kernel's netlink family drm-ras: its id, -EOPNOTSUPP no such family, or -errno. */
int64_t ras_node(const char *kind);
/* The counters of a node: how many, or -errno. */
int ras_counters(uint32_t node, struct ras_counter *out, unsigned int room);
/* One of them by its id: 0 or -errno. */
int ras_counter(uint32_t node, uint32_t id, struct ras_counter *out);

#define CGROUPS	"/sys/fs/cgroup"
/* The one cgroup that tests use; who writes 0 into its cgroup.procs is in it. */
#define CGROUP	CGROUPS "/spyre-test"
/* Cgroups below the top have that controller; mounts the hierarchy. -EOPNOTSUPP: this kernel has none. */
int cgroup_controller(const char *name);
/* The same, and CGROUP is there, empty and without limits. */
int cgroup_new(const char *controller);

/*
 * The files of that name of a cgroup (v2) in which a limit counts device memory, and the card's value there.
 * Mounts the hierarchy. -EOPNOTSUPP: this kernel's cgroups count none; -ENOENT: not of this card.
 */
int64_t dmem_read(const char *cgroup, const char *file);
int dmem_limit(const char *cgroup, uint64_t bytes);

/* One word into a sysfs or debugfs file: 0 or -errno. */
int write_file(const char *path, const char *text);
int read_file(const char *path, char *buf, size_t size);
/* Path of a file below the card's debugfs folder. */
const char *debugfs_path(const char *name);
/* Lines of the kernel log since the mark that contain text. */
void log_mark(void);
bool log_has(const char *text);
/* Waits for that, half a minute at most. 0 or -ETIME. */
int wait_log(const char *text);

#endif
