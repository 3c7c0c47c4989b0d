// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "spyre_work.h"

#define SIZE	PAGE2M
#define CHAIN	5u

int life_begin(struct life *l)
{
	uint32_t in, out, a, b;
	uint64_t symbols[2];
	int ret;

	memset(l, 0, sizeof(*l));
	l->fd = card_open();
	if (l->fd < 0)
		return l->fd;
	ret = bo_create(l->fd, SIZE, DRM_SPYRE_BO_HOST, &in);
	if (!ret)
		ret = bo_create(l->fd, SIZE, DRM_SPYRE_BO_HOST, &out);
	if (!ret)
		ret = bo_create(l->fd, SIZE, DRM_SPYRE_BO_DEVICE, &a);
	if (!ret)
		ret = bo_create(l->fd, SIZE, DRM_SPYRE_BO_DEVICE, &b);
	if (!ret)
		ret = vm_map(l->fd, in, DRM_SPYRE_VM_READONLY, 0, &l->in_at);
	if (!ret)
		ret = vm_map(l->fd, out, 0, 0, &l->out_at);
	if (!ret)
		ret = vm_map(l->fd, a, 0, 0, &l->a);
	if (!ret)
		ret = vm_map(l->fd, b, 0, 1, &l->b);
	if (!ret)
		ret = queue_open(l->fd, 64, 1, &l->q);
	if (ret)
		return ret;
	l->in = bo_map(l->fd, in, SIZE, PROT_READ | PROT_WRITE);
	l->out = bo_map(l->fd, out, SIZE, PROT_READ | PROT_WRITE);
	if (!l->in || !l->out)
		return -errno;
	l->sync = syncobj(l->fd);
	if (!l->sync)
		return -ENOMEM;
	/* The program moves the second stick of a to the third of b. */
	symbols[0] = l->a + 128;
	symbols[1] = l->b + 256;
	return job_load(l->fd, &l->q, JOB_COPY, symbols, &l->program);
}

void life_end(struct life *l)
{
	if (l->in)
		munmap(l->in, SIZE);
	if (l->out)
		munmap(l->out, SIZE);
	if (l->q.ring)
		queue_unmap(&l->q);
	if (l->fd >= 0)
		close(l->fd);
}

bool life_lost(const struct life *l)
{
	struct drm_spyre_device_info info;

	return l->q.status->state == SPYRE_QUEUE_LOST ||
	       query(l->fd, DRM_SPYRE_QUERY_DEVICE, &info, sizeof(info)) == -ENODEV;
}

/* 0: @entry is done; else enum spyre_status, LOST_CARD or -ETIME. */
static int wait_done(struct life *l, uint32_t entry, bool sleep)
{
	int64_t end = after_ms(PATIENCE_MS);
	int ret;

	if (!sleep) {
		ret = queue_wait(&l->q, entry, PATIENCE_MS);
	} else {
		/* An interrupt that was lost may cost time, but not for ever. */
		ret = wait_queue(l->fd, l->q.id, entry + 1, end);
		if (ret == -EIO)
			ret = 0;
		if (ret == -ENODEV)
			return LOST_CARD;
		if (l->q.status->error)
			ret = l->q.status->error;
	}
	if (ret && ret != -ETIME && life_lost(l))
		return LOST_CARD;
	return ret;
}

/* What must be in out after one round. */
static uint64_t expected(uint64_t salt, unsigned int i)
{
	/* Words 32 to 47 of b come from words 16 to 31 of a. */
	if (i >= 32 && i < 48)
		return salt + (i - 16) * 0x9e3779b97f4a7c15ull;
	return salt ^ (i < SIZE / 16 ? 0x5555 : 0xaaaa);
}

/* The same by SUBMIT, each control block after the one before. As wait_done(), or LOST_FENCE. */
static int submit_all(struct life *l, struct spyre_cb *cb, uint32_t n)
{
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++) {
		cb[i] = cb_plain(cb[i]);
		cb[i].flags |= SPYRE_CB_F_BARRIER;
	}
	/* An earlier failure was accounted for when its fence said so. */
	ret = submit(l->fd, cb, n, DRM_SPYRE_SUBMIT_RESET, 0, 0, l->sync, 0);
	if (!ret)
		ret = sync_end(l->fd, l->sync, 0, PATIENCE_MS);
	switch (ret) {
	case 0:
		return 0;
	case -EBUSY:
		return -ETIME;
	case -ENODEV:
		return LOST_CARD;
	case -ECANCELED:
		return SPYRE_ERR_CANCELLED;
	default:
		return life_lost(l) ? LOST_CARD : LOST_FENCE;
	}
}

int life_round(struct life *l, uint64_t salt, enum way way, char *why, size_t size)
{
	struct spyre_cb cb[CHAIN];
	uint32_t first = 0, last = 0, i;
	int ret;

	for (i = 0; i < 32; i++)
		l->in[i] = salt + i * 0x9e3779b97f4a7c15ull;
	l->in[SIZE / 8 - 1] = salt;
	memset(l->out, 0xee, SIZE);
	cb[0] = cb_dma(SPYRE_CB_DMAI, l->a, l->in_at, SIZE);
	cb[1] = cb_fill(l->b, SIZE / 2, salt ^ 0x5555);
	cb[2] = cb_fill(l->b + SIZE / 2, SIZE / 2, salt ^ 0xaaaa);
	cb[3] = l->program;
	cb[4] = cb_dma(SPYRE_CB_DMAO, l->out_at, l->b, SIZE);
	cb[4].flags |= SPYRE_CB_F_INTERRUPT;
	for (i = 0; i < CHAIN; i++)
		cb[i].cookie = salt + i;
	for (i = 0; way != SUBMIT && i < CHAIN; i++) {
		last = queue_submit(&l->q, &cb[i]);
		if (!i)
			first = last;
	}
	ret = way == SUBMIT ? submit_all(l, cb, CHAIN) : wait_done(l, last, way == SLEEP);
	if (ret)
		return ret;
	for (i = 0; i < SIZE / 8; i++) {
		if (l->out[i] != expected(salt, i)) {
			snprintf(why, size, "word %u is %#llx, not %#llx", i,
				 (unsigned long long)l->out[i],
				 (unsigned long long)expected(salt, i));
			return -EILSEQ;
		}
	}
	for (i = 0; way != SUBMIT && i < CHAIN; i++) {
		volatile struct spyre_rb *rb = &l->q.response[(first + i) & (l->q.entries - 1)];

		if (rb->valid != first + i + 1)
			ret = LOST_RESPONSE;
		else if (rb->status || rb->cookie != salt + i) {
			snprintf(why, size, "response of entry %u: status %u, cookie %#llx",
				 first + i, rb->status, (unsigned long long)rb->cookie);
			return -EILSEQ;
		}
	}
	return ret;
}
