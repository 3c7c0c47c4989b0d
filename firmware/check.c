// SPDX-License-Identifier: MIT
/*
 * The check of a control block: everything that can be decided without looking at memory. It works on
 * the firmware's copy, which nobody else can write, and runs once per control block.
 */
#include "firmware.h"

static const u16 type_flags[SPYRE_CB_TYPES] = SPYRE_CB_TYPE_FLAGS;

/* One of the cases of unused_words(). */
static const u8 type_words[SPYRE_CB_TYPES] = SPYRE_CB_TYPE_WORDS;

static const u8 type_kind[SPYRE_CB_TYPES] = {
	[SPYRE_CB_COMPUTE] = MCU_ENGINE_COMPUTE,
	[SPYRE_CB_DMAI] = MCU_ENGINE_DMI,
	[SPYRE_CB_DMAO] = MCU_ENGINE_DMO,
	[SPYRE_CB_DMAX] = MCU_ENGINE_DMX,
	[SPYRE_CB_FILL] = MCU_ENGINE_DMX,
};

u32 cb_kind(u32 type)
{
	return type_kind[type];
}

static u32 unaligned(struct verdict *v, u32 mode, u64 addr)
{
	v->mode = mode;
	v->addr = addr;
	return SPYRE_ERR_FAULT;
}

static u32 check_compute(const struct spyre_cb *cb, struct verdict *v)
{
	const struct spyre_cb_compute *c = &cb->u.compute;

	if (c->bootaddr % SPYRE_STICK || c->bootaddr < SPYRE_PROGRAM_BASE ||
	    c->bootaddr >= SPYRE_DMVA_SIZE) {
		v->mode = SPYRE_HMI_FETCH;
		v->addr = c->bootaddr;
		return SPYRE_ERR_BOOTADDR;
	}
	if (c->nsymbols > SPYRE_JOB_SYMBOLS || c->reserved[0] || c->reserved[1])
		return SPYRE_ERR_BAD_CB;
	if (c->core_mask & ~card.cores)
		return SPYRE_ERR_CORES;
	if (c->nsymbols && (cb->flags & SPYRE_CB_F_SYM_HOST) && c->symbols % 8)
		return unaligned(v, SPYRE_HMI_HOST_READ, c->symbols);
	if (c->nsymbols && !(cb->flags & SPYRE_CB_F_SYM_HOST) && c->symbols % SPYRE_STICK)
		return unaligned(v, SPYRE_HMI_LOAD, c->symbols);
	return SPYRE_OK;
}

static u32 check_list(const struct spyre_cb *cb, struct verdict *v)
{
	const struct spyre_dma_list *l = &cb->u.list;
	u32 i;

	/* A list uses two of the words that a descriptor would. */
	for (i = 2; i < 11; i++)
		if (cb->u.raw[i])
			return SPYRE_ERR_BAD_CB;
	if (!l->entries || l->entries > SPYRE_DMA_LIST_MAX || l->reserved)
		return SPYRE_ERR_BAD_CB;
	if (l->list % 8)
		return unaligned(v, SPYRE_HMI_HOST_READ, l->list);
	return SPYRE_OK;
}

static u32 check_dma(const struct spyre_cb *cb, struct verdict *v)
{
	const struct spyre_dma_desc *d = &cb->u.dma;
	int dst_card = cb->type != SPYRE_CB_DMAO && !(cb->flags & SPYRE_CB_F_DST_HOST);
	int src_card = cb->type != SPYRE_CB_DMAI && !(cb->flags & SPYRE_CB_F_SRC_HOST);
	u32 i;

	if (cb->flags & SPYRE_CB_F_LIST)
		return check_list(cb, v);
	if (!d->bytes || d->bytes > SPYRE_DMA_BYTES_MAX || !d->ndims || d->ndims > 4)
		return SPYRE_ERR_BAD_CB;
	for (i = 0; i < 3; i++) {
		if (i + 1 < d->ndims ? !d->count[i] :
		    d->count[i] || d->dst_stride[i] || d->src_stride[i])
			return SPYRE_ERR_BAD_CB;
	}
	if (dst_card && d->dst % SPYRE_STICK)
		return unaligned(v, SPYRE_HMI_STORE, d->dst);
	if (src_card && d->src % SPYRE_STICK)
		return unaligned(v, SPYRE_HMI_LOAD, d->src);
	return SPYRE_OK;
}

static u32 check_fill(const struct spyre_cb *cb, struct verdict *v)
{
	const struct spyre_cb_fill *f = &cb->u.fill;

	if (!f->bytes || f->bytes % SPYRE_STICK || f->bytes > SPYRE_DMVA_SIZE)
		return SPYRE_ERR_BAD_CB;
	if (f->dst % SPYRE_STICK)
		return unaligned(v, SPYRE_HMI_STORE, f->dst);
	return SPYRE_OK;
}

static u32 check_sync(const struct spyre_cb *cb, struct verdict *v)
{
	const struct spyre_cb_sync *s = &cb->u.sync;
	int host = cb->flags & SPYRE_CB_F_HOST;

	if (s->reserved || (host && (cb->flags & SPYRE_CB_F_ADD)))
		return SPYRE_ERR_BAD_CB;
	if (!(cb->flags & SPYRE_CB_F_DOORBELL) && (s->doorbell || s->doorbell_value))
		return SPYRE_ERR_BAD_CB;
	if (s->addr % 8) {
		if (cb->type == SPYRE_CB_WAIT)
			return unaligned(v, host ? SPYRE_HMI_HOST_READ : SPYRE_HMI_LOAD, s->addr);
		return unaligned(v, host ? SPYRE_HMI_HOST_WRITE : SPYRE_HMI_STORE, s->addr);
	}
	if (s->doorbell % 4)
		return unaligned(v, SPYRE_HMI_HOST_WRITE, s->doorbell);
	return SPYRE_OK;
}

/* Nonzero: a word of the body that the type does not use is set. Unrolled, since it is most of a check. */
static u64 unused_words(const struct spyre_cb *cb, u32 used)
{
	const spyre_le64 *w = cb->u.raw;
	u64 set = 0;

	switch (used) {
	case 0:
		set |= w[0] | w[1] | w[2];
		/* fall through */
	case 3:
		set |= w[3];
		/* fall through */
	case 4:
		set |= w[4];
		/* fall through */
	case 5:
		set |= w[5] | w[6] | w[7] | w[8] | w[9] | w[10];
		/* fall through */
	default:
		set |= w[11];
	}
	return set;
}

static u32 check_body(const struct spyre_cb *cb, struct verdict *v)
{
	switch (cb->type) {
	case SPYRE_CB_COMPUTE:
		return check_compute(cb, v);
	case SPYRE_CB_DMAI:
	case SPYRE_CB_DMAO:
	case SPYRE_CB_DMAX:
		return check_dma(cb, v);
	case SPYRE_CB_FILL:
		return check_fill(cb, v);
	case SPYRE_CB_SIGNAL:
	case SPYRE_CB_WAIT:
	case SPYRE_CB_TIMESTAMP:
		return check_sync(cb, v);
	default:
		return SPYRE_OK;
	}
}

u32 cb_check(const struct spyre_cb *cb, struct verdict *v)
{
	u32 type = cb->type;
	u32 status;

	v->mode = SPYRE_HMI_NONE;
	v->addr = 0;
	if (type >= SPYRE_CB_TYPES || type == SPYRE_CB_BATCH ||
	    (cb->flags & ~(SPYRE_CB_F_ALL_TYPES | type_flags[type])) ||
	    cb->reserved0 || cb->reserved1 || unused_words(cb, type_words[type]))
		status = SPYRE_ERR_BAD_CB;
	else
		status = check_body(cb, v);
	v->status = status;
	return status;
}
