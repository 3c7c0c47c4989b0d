/* SPDX-License-Identifier: MIT */
/*
 * Doorbells: a FIFO of (page, tail), and a bit per page for what did not fit. None is lost: the core reads
 * the tail of an overflowed page from the queue's shadow word.
 */
#include "card.h"

#include <string.h>

void db_init(struct spyre_card *c)
{
	pthread_mutex_init(&c->db.lock, NULL);
}

void db_clear(struct spyre_card *c)
{
	pthread_mutex_lock(&c->db.lock);
	c->db.head = 0;
	c->db.tail = 0;
	memset(c->db.bitmap, 0, sizeof(c->db.bitmap));
	c->db.bits = 0;
	mcu_irq_clear(c, MCU_IRQ_DOORBELL);
	pthread_mutex_unlock(&c->db.lock);
}

uint64_t spyre_card_db_read(struct spyre_card *c, uint64_t offset, unsigned int size)
{
	(void)c;
	(void)offset;
	(void)size;
	return 0;
}

void spyre_card_db_write(struct spyre_card *c, uint64_t offset, uint64_t value, unsigned int size)
{
	uint32_t page = offset / SPYRE_DB_PAGE_SIZE;
	bool overflow = false;

	if (size != 4 || offset % SPYRE_DB_PAGE_SIZE || page >= SPYRE_DB_PAGES) {
		add_relaxed(&c->db_bad, 1);
		return;
	}
	card_trace(c, SPYRE_TRACE_DOORBELL, page, (uint32_t)value, 0, 0);
	add_relaxed(&c->db.rung, 1);
	pthread_mutex_lock(&c->db.lock);
	if (c->db.tail - c->db.head < DB_FIFO) {
		c->db.fifo[c->db.tail % DB_FIFO].page = page;
		c->db.fifo[c->db.tail % DB_FIFO].value = value;
		c->db.tail++;
	} else {
		uint64_t bit = 1ull << (page & 63);

		c->db.bits += !(c->db.bitmap[page / 64] & bit);
		c->db.bitmap[page / 64] |= bit;
		overflow = true;
	}
	/* Inside the lock, so that a pop that empties the FIFO cannot clear it afterwards. */
	__atomic_fetch_or(&c->mcu.pend, MCU_IRQ_DOORBELL, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&c->db.lock);
	if (overflow)
		add_relaxed(&c->db_overflow, 1);
	mcu_wake(c);
}

static void settle(struct spyre_card *c)
{
	if (c->db.head == c->db.tail && !c->db.bits)
		mcu_irq_clear(c, MCU_IRQ_DOORBELL);
}

uint32_t db_pop(struct spyre_card *c, uint32_t *value)
{
	uint32_t ret = 0;

	/* Polling costs no lock; what is added meanwhile is seen by the next look. */
	if (!(load_seq(&c->mcu.pend) & MCU_IRQ_DOORBELL))
		return 0;
	pthread_mutex_lock(&c->db.lock);
	if (c->db.head != c->db.tail) {
		*value = c->db.fifo[c->db.head % DB_FIFO].value;
		ret = c->db.fifo[c->db.head % DB_FIFO].page | 1u << 31;
		c->db.head++;
	}
	settle(c);
	pthread_mutex_unlock(&c->db.lock);
	return ret;
}

uint32_t db_overflow_pop(struct spyre_card *c)
{
	uint32_t ret = 0;
	unsigned int i;

	if (!(load_seq(&c->mcu.pend) & MCU_IRQ_DOORBELL))
		return 0;
	pthread_mutex_lock(&c->db.lock);
	for (i = 0; c->db.bits && i < ARRAY_SIZE(c->db.bitmap); i++) {
		uint64_t word = c->db.bitmap[i];

		if (!word)
			continue;
		c->db.bitmap[i] = word & (word - 1);
		c->db.bits--;
		ret = (i * 64 + __builtin_ctzll(word)) | 1u << 31;
		break;
	}
	settle(c);
	pthread_mutex_unlock(&c->db.lock);
	return ret;
}
