// SPDX-License-Identifier: MIT
/*
 * Response blocks. The valid word of a slot is stored last, with release: whoever sees it sees the
 * rest. Nothing else ever writes that word, so a user may poll it at any time.
 */
#include "firmware.h"

struct spyre_rb *response_core(u64 cookie, u32 status, u64 now)
{
	/* What is not set below stays zero for ever. */
	static struct spyre_rb rb;
	u32 i;

	for (i = 0; i < 5; i++)
		rb.ts[i] = (u32)now;
	rb.ts4 = now;
	rb.cookie = cookie;
	rb.status = status;
	rb.rb_hmierr_mode = SPYRE_HMI_NONE;
	rb.rb_hmierr_addr = 0;
	rb.rb_hmierr_syndrome = SPYRE_SYN_NONE;
	rb.err_core = 0xffff;
	return &rb;
}

void response_write(struct queue *q, u32 entry, const struct spyre_rb *rb)
{
	struct place at;

	if (!q->response)
		return;
	at = place_of(MCU_SPACE_HMVA_PRIV, q->context,
		      q->response + (u64)(entry & (q->entries - 1)) * sizeof(*rb));
	if (bus_write(at, rb, offsetof(struct spyre_rb, valid))) {
		queue_lost_ring(q, entry, at.addr);
		return;
	}
	if (card.lost_rb) {
		card.lost_rb--;
		return;
	}
	at.addr += offsetof(struct spyre_rb, valid);
	if (bus_store32(at, entry + 1))
		queue_lost_ring(q, entry, at.addr);
}
