/* SPDX-License-Identifier: MIT */
/* Copy and word unit of the management core. They run on the core's thread and are done when they return. */
#include "card.h"

#include <string.h>

/*
 * Address in a space to pointer. *len in: wanted, out: contiguous. The pointer is good until the next
 * call, which may be a checkpoint.
 */
static void *resolve(struct spyre_card *c, uint32_t space, uint32_t ctx, uint64_t addr, uint64_t *len,
		     bool write, enum spyre_syndrome *syn)
{
	struct worker *w = &c->epoch.workers[WORKER_MCU];
	uint64_t at;

	switch (space) {
	case MCU_SPACE_BUS:
		return host_map(c, w, addr, len, write, syn);
	case MCU_SPACE_HMVA:
	case MCU_SPACE_HMVA_PRIV:
		if (!xlate_hmva(c, ctx, addr, len, write, space == MCU_SPACE_HMVA_PRIV, &at, syn))
			return NULL;
		return host_map(c, w, at, len, write, syn);
	case MCU_SPACE_DMVA:
		if (!xlate_dmva(c, ctx, addr, len, write, &at, syn))
			return NULL;
		return write ? c->mem + at : (void *)mem_read(c, at, len, NULL);
	case MCU_SPACE_CARD:
		if (addr >= c->mem_limit) {
			*syn = SPYRE_SYN_RANGE;
			return NULL;
		}
		if (*len > c->mem_limit - addr)
			*len = c->mem_limit - addr;
		if (unlikely(load_acquire(&c->npoison))) {
			*len = mem_ecc(c, addr, *len);
			if (!*len) {
				*syn = SPYRE_SYN_ECC;
				return NULL;
			}
		}
		*syn = SPYRE_SYN_NONE;
		return write ? c->mem + addr : (void *)mem_read(c, addr, len, NULL);
	}
	*syn = SPYRE_SYN_RANGE;
	return NULL;
}

static enum spyre_hmi_mode mode(uint32_t space, bool write)
{
	if (space == MCU_SPACE_DMVA || space == MCU_SPACE_CARD)
		return write ? SPYRE_HMI_STORE : SPYRE_HMI_LOAD;
	return write ? SPYRE_HMI_HOST_WRITE : SPYRE_HMI_HOST_READ;
}

static void failed(struct spyre_card *c, uint32_t cmd, uint64_t addr, enum spyre_syndrome syn, bool write)
{
	c->mcu.copy_status = syn;
	c->mcu.copy_fault = addr;
	card_trace(c, SPYRE_TRACE_FAULT, cmd >> 16, mode(cmd & 0xff, write), addr, syn);
}

void copy_go(struct spyre_card *c, uint32_t cmd)
{
	struct worker *w = &c->epoch.workers[WORKER_MCU];
	uint32_t len = c->mcu.copy_len, space = cmd & 0xff, ctx = cmd >> 16;
	uint64_t addr = c->mcu.copy_addr;
	bool out = cmd & MCU_COPY_OUT;
	uint8_t *local;

	c->mcu.copy_status = SPYRE_SYN_NONE;
	local = mcu_memory(c, c->mcu.copy_local, len);
	if (!len || len > 4096 || !local) {
		failed(c, cmd, c->mcu.copy_local, SPYRE_SYN_RANGE, out);
		return;
	}
	worker_online(c, w);
	while (len) {
		enum spyre_syndrome syn;
		uint64_t n = len;
		uint8_t *p = resolve(c, space, ctx, addr, &n, out, &syn);

		if (!p) {
			failed(c, cmd, addr, syn, out);
			break;
		}
		if (out)
			memcpy(p, local, n);
		else
			memcpy(local, p, n);
		local += n;
		addr += n;
		len -= n;
	}
	worker_offline(c, w);
}

void word_go(struct spyre_card *c, uint32_t cmd)
{
	struct worker *w = &c->epoch.workers[WORKER_MCU];
	uint32_t space = cmd & 0xff, op = cmd & 0xff00, ctx = cmd >> 16;
	unsigned int size = op == MCU_WORD_LOAD32 || op == MCU_WORD_STORE32 ? 4 : 8;
	bool write = op != MCU_WORD_LOAD32 && op != MCU_WORD_LOAD64;
	uint64_t addr = c->mcu.copy_addr, n = size;
	enum spyre_syndrome syn;
	void *p;

	c->mcu.copy_status = SPYRE_SYN_NONE;
	if (addr & (size - 1)) {
		failed(c, cmd, addr, SPYRE_SYN_UNALIGNED, write);
		return;
	}
	if (op > MCU_WORD_PROBE64 ||
	    (op == MCU_WORD_ADD64 && space != MCU_SPACE_DMVA && space != MCU_SPACE_CARD)) {
		failed(c, cmd, addr, SPYRE_SYN_PERMISSION, write);
		return;
	}
	worker_online(c, w);
	p = resolve(c, space, ctx, addr, &n, write, &syn);
	if (!p) {
		failed(c, cmd, addr, syn, write);
	} else if (n < size || (uintptr_t)p & (size - 1)) {
		/* A bus page whose host memory is not aligned cannot hold atomic words. */
		failed(c, cmd, addr, SPYRE_SYN_UNALIGNED, write);
	} else {
		switch (op) {
		case MCU_WORD_LOAD32:
			c->mcu.word_data = load_acquire((uint32_t *)p);
			break;
		case MCU_WORD_LOAD64:
			c->mcu.word_data = load_acquire((uint64_t *)p);
			break;
		case MCU_WORD_STORE32:
			store_release((uint32_t *)p, (uint32_t)c->mcu.word_data);
			break;
		case MCU_WORD_STORE64:
			store_release((uint64_t *)p, c->mcu.word_data);
			break;
		case MCU_WORD_ADD64:
			c->mcu.word_data = __atomic_add_fetch((uint64_t *)p, c->mcu.word_data,
							      __ATOMIC_SEQ_CST);
			break;
		}
	}
	worker_offline(c, w);
}
