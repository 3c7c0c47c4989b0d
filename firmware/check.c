// SPDX-License-Identifier: MIT
/*
 * The check of a control block: everything that can be decided without looking at memory. It works on
 * the firmware's copy, which nobody else can write, and runs once per control block.
 */
#include "firmware.h"

#define DMA_BYTES_MAX	(1ull << 34)
#define SYMBOLS_MAX	256u

/* Flags a type takes besides those of every type. */
static const u16 type_flags[SPYRE_CB_TYPES] = {
	[SPYRE_CB_COMPUTE] = SPYRE_CB_F_KEEP_LX | SPYRE_CB_F_SYM_HOST,
	[SPYRE_CB_DMAI] = SPYRE_CB_F_LIST,
	[SPYRE_CB_DMAO] = SPYRE_CB_F_LIST,
	[SPYRE_CB_DMAX] = SPYRE_CB_F_LIST | SPYRE_CB_F_DST_HOST | SPYRE_CB_F_SRC_HOST,
	[SPYRE_CB_SIGNAL] = SPYRE_CB_F_HOST | SPYRE_CB_F_ADD | SPYRE_CB_F_DOORBELL,
	[SPYRE_CB_WAIT] = SPYRE_CB_F_HOST,
	[SPYRE_CB_TIMESTAMP] = SPYRE_CB_F_HOST,
};

/* Words of .u.raw a type uses; the rest is zero. */
static const u8 type_words[SPYRE_CB_TYPES] = {
	[SPYRE_CB_COMPUTE] = 5,
	[SPYRE_CB_DMAI] = 11,
	[SPYRE_CB_DMAO] = 11,
	[SPYRE_CB_DMAX] = 11,
	[SPYRE_CB_FILL] = 3,
	[SPYRE_CB_SIGNAL] = 4,
	[SPYRE_CB_WAIT] = 4,
	[SPYRE_CB_TIMESTAMP] = 4,
};

static const u8 type_kind[SPYRE_CB_TYPES] = {
	[SPYRE_CB_COMPUTE] = MCU_ENGINE_COMPUTE,
	[SPYRE_CB_DMAI] = MCU_ENGINE_DMI,
	[SPYRE_CB_DMAO] = MCU_ENGINE_DMO,
	[SPYRE_CB_DMAX] = MCU_ENGINE_DMX,
	[SPYRE_CB_FILL] = MCU_ENGINE_DMX,
};

static const struct verdict good = { .status = SPYRE_OK };
static const struct verdict bad = { .status = SPYRE_ERR_BAD_CB };

u32 cb_kind(u32 type)
{
	return type_kind[type];
}

static struct verdict unaligned(u32 mode, u64 addr)
{
	return (struct verdict){ .status = SPYRE_ERR_FAULT, .mode = mode, .addr = addr };
}

static struct verdict check_compute(const struct spyre_cb *cb)
{
	const struct spyre_cb_compute *c = &cb->u.compute;

	if (c->bootaddr % SPYRE_STICK || c->bootaddr < SPYRE_PROGRAM_BASE ||
	    c->bootaddr >= SPYRE_DMVA_SIZE)
		return (struct verdict){ .status = SPYRE_ERR_BOOTADDR,
					 .mode = SPYRE_HMI_FETCH, .addr = c->bootaddr };
	if (c->nsymbols > SYMBOLS_MAX || c->reserved[0] || c->reserved[1])
		return bad;
	if (c->core_mask & ~card.cores)
		return (struct verdict){ .status = SPYRE_ERR_CORES };
	if (c->nsymbols && (cb->flags & SPYRE_CB_F_SYM_HOST) && c->symbols % 8)
		return unaligned(SPYRE_HMI_HOST_READ, c->symbols);
	if (c->nsymbols && !(cb->flags & SPYRE_CB_F_SYM_HOST) && c->symbols % SPYRE_STICK)
		return unaligned(SPYRE_HMI_LOAD, c->symbols);
	return good;
}

static struct verdict check_list(const struct spyre_cb *cb)
{
	const struct spyre_dma_list *l = &cb->u.list;
	u32 i;

	/* A list uses two of the words that a descriptor would. */
	for (i = 2; i < 11; i++)
		if (cb->u.raw[i])
			return bad;
	if (!l->entries || l->entries > SPYRE_DMA_LIST_MAX || l->reserved)
		return bad;
	if (l->list % 8)
		return unaligned(SPYRE_HMI_HOST_READ, l->list);
	return good;
}

static struct verdict check_dma(const struct spyre_cb *cb)
{
	const struct spyre_dma_desc *d = &cb->u.dma;
	int dst_card = cb->type != SPYRE_CB_DMAO && !(cb->flags & SPYRE_CB_F_DST_HOST);
	int src_card = cb->type != SPYRE_CB_DMAI && !(cb->flags & SPYRE_CB_F_SRC_HOST);
	u32 i;

	if (cb->flags & SPYRE_CB_F_LIST)
		return check_list(cb);
	if (!d->bytes || d->bytes > DMA_BYTES_MAX || !d->ndims || d->ndims > 4)
		return bad;
	for (i = 0; i < 3; i++) {
		if (i + 1 < d->ndims ? !d->count[i] :
		    d->count[i] || d->dst_stride[i] || d->src_stride[i])
			return bad;
	}
	if (dst_card && d->dst % SPYRE_STICK)
		return unaligned(SPYRE_HMI_STORE, d->dst);
	if (src_card && d->src % SPYRE_STICK)
		return unaligned(SPYRE_HMI_LOAD, d->src);
	return good;
}

static struct verdict check_fill(const struct spyre_cb *cb)
{
	const struct spyre_cb_fill *f = &cb->u.fill;

	if (!f->bytes || f->bytes % SPYRE_STICK || f->bytes > SPYRE_DMVA_SIZE)
		return bad;
	if (f->dst % SPYRE_STICK)
		return unaligned(SPYRE_HMI_STORE, f->dst);
	return good;
}

static struct verdict check_sync(const struct spyre_cb *cb)
{
	const struct spyre_cb_sync *s = &cb->u.sync;
	int host = cb->flags & SPYRE_CB_F_HOST;

	if (s->reserved || (host && (cb->flags & SPYRE_CB_F_ADD)))
		return bad;
	if (!(cb->flags & SPYRE_CB_F_DOORBELL) && (s->doorbell || s->doorbell_value))
		return bad;
	if (s->addr % 8) {
		if (cb->type == SPYRE_CB_WAIT)
			return unaligned(host ? SPYRE_HMI_HOST_READ : SPYRE_HMI_LOAD, s->addr);
		return unaligned(host ? SPYRE_HMI_HOST_WRITE : SPYRE_HMI_STORE, s->addr);
	}
	if (s->doorbell % 4)
		return unaligned(SPYRE_HMI_HOST_WRITE, s->doorbell);
	return good;
}

struct verdict cb_check(const struct spyre_cb *cb)
{
	u32 type = cb->type;
	u32 i;

	if (type >= SPYRE_CB_TYPES || type == SPYRE_CB_BATCH ||
	    (cb->flags & ~(SPYRE_CB_F_ALL_TYPES | type_flags[type])) ||
	    cb->reserved0 || cb->reserved1)
		return bad;
	for (i = type_words[type]; i < 12; i++)
		if (cb->u.raw[i])
			return bad;
	switch (type) {
	case SPYRE_CB_COMPUTE:
		return check_compute(cb);
	case SPYRE_CB_DMAI:
	case SPYRE_CB_DMAO:
	case SPYRE_CB_DMAX:
		return check_dma(cb);
	case SPYRE_CB_FILL:
		return check_fill(cb);
	case SPYRE_CB_SIGNAL:
	case SPYRE_CB_WAIT:
	case SPYRE_CB_TIMESTAMP:
		return check_sync(cb);
	default:
		return good;
	}
}
