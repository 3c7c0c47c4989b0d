/* SPDX-License-Identifier: MIT */
/* Translation of DMVA and HMVA, and the core's copy and word unit on top of it. */
#include "model_util.h"

#define LIMIT	(spyre_card_memory_size(f->card) - SPYRE_FW_MEM_SIZE)

static enum spyre_syndrome dmva(struct fix *f, uint64_t addr, uint64_t *len, bool write, uint64_t *phys)
{
	enum spyre_syndrome syn = 99;
	bool ok = xlate_dmva(f->card, 1, addr, len, write, phys, &syn);

	assert_int_equal(ok, syn == SPYRE_SYN_NONE);
	return syn;
}

static enum spyre_syndrome hmva(struct fix *f, uint64_t addr, uint64_t *len, bool write, bool priv,
				uint64_t *bus)
{
	enum spyre_syndrome syn = 99;
	bool ok = xlate_hmva(f->card, 1, addr, len, write, priv, bus, &syn);

	assert_int_equal(ok, syn == SPYRE_SYN_NONE);
	return syn;
}

static void test_device(void **state)
{
	struct fix *f = *state;
	struct spyre_context_table *t = ctx_new(f, 1);
	uint64_t phys, len = 1, base = 2 * SPYRE_SEGMENT_SIZE;

	assert_int_equal(dmva(f, base, &len, false, &phys), SPYRE_SYN_PAGE_FAULT);
	map_device(f, t, 2, 0, 3, SPYRE_PTE_WRITE);
	/* Three pages in a row are one piece, cut to what was asked for. */
	len = 5 * MB;
	assert_int_equal(dmva(f, base + 128, &len, true, &phys), SPYRE_SYN_NONE);
	assert_int_equal(phys, 32 * MB + 128);
	assert_int_equal(len, 5 * MB);
	len = 100 * MB;
	assert_int_equal(dmva(f, base + 128, &len, true, &phys), SPYRE_SYN_NONE);
	assert_int_equal(len, 6 * MB - 128);
	/* A gap ends the piece, and so does a page without the right. */
	*seg_pte(f, &t->dmva[2], 1) = (100 * MB) | SPYRE_PTE_VALID;
	len = 5 * MB;
	assert_int_equal(dmva(f, base, &len, false, &phys), SPYRE_SYN_NONE);
	assert_int_equal(len, 2 * MB);
	len = 1;
	assert_int_equal(dmva(f, base + 2 * MB, &len, true, &phys), SPYRE_SYN_PERMISSION);
	assert_int_equal(dmva(f, base + 2 * MB, &len, false, &phys), SPYRE_SYN_NONE);
	assert_int_equal(phys, 100 * MB);
	/* Beyond the table, invalid, another segment, beyond the space, another context. */
	assert_int_equal(dmva(f, base + 6 * MB, &len, false, &phys), SPYRE_SYN_PAGE_FAULT);
	*seg_pte(f, &t->dmva[2], 0) = 0;
	assert_int_equal(dmva(f, base, &len, false, &phys), SPYRE_SYN_PAGE_FAULT);
	assert_int_equal(dmva(f, 0, &len, false, &phys), SPYRE_SYN_PAGE_FAULT);
	assert_int_equal(dmva(f, SPYRE_DMVA_SIZE, &len, false, &phys), SPYRE_SYN_RANGE);
	assert_int_equal(dmva(f, ~0ull, &len, false, &phys), SPYRE_SYN_RANGE);
	{
		enum spyre_syndrome syn;

		assert_false(xlate_dmva(f->card, 2, base, &len, false, &phys, &syn));
		assert_int_equal(syn, SPYRE_SYN_PAGE_FAULT);
		assert_false(xlate_dmva(f->card, MCU_CONTEXTS, base, &len, false, &phys, &syn));
		assert_int_equal(syn, SPYRE_SYN_RANGE);
	}
}

static void test_hostile_tables(void **state)
{
	struct fix *f = *state;
	struct spyre_context_table *t = ctx_new(f, 1);
	uint64_t phys, len = 1, good;

	map_device(f, t, 0, 0, 1, SPYRE_PTE_WRITE);
	/* Pages outside memory, in the firmware's part, or half in it. */
	*seg_pte(f, &t->dmva[0], 0) = LIMIT | SPYRE_PTE_VALID;
	assert_int_equal(dmva(f, 0, &len, false, &phys), SPYRE_SYN_RANGE);
	*seg_pte(f, &t->dmva[0], 0) = 1ull << 50 | SPYRE_PTE_VALID;
	assert_int_equal(dmva(f, 0, &len, false, &phys), SPYRE_SYN_RANGE);
	*seg_pte(f, &t->dmva[0], 0) = SPYRE_PTE_ADDR | SPYRE_PTE_VALID;
	assert_int_equal(dmva(f, 0, &len, false, &phys), SPYRE_SYN_RANGE);
	*seg_pte(f, &t->dmva[0], 0) = (LIMIT - SPYRE_PAGE_SIZE) | SPYRE_PTE_VALID;
	assert_int_equal(dmva(f, 0, &len, false, &phys), SPYRE_SYN_NONE);
	/* A page of the firmware's alone is not for control blocks. */
	*seg_pte(f, &t->dmva[0], 0) |= SPYRE_PTE_PRIV;
	assert_int_equal(dmva(f, 0, &len, false, &phys), SPYRE_SYN_PERMISSION);
	/* Tables outside the aperture, unaligned, or running over its end. */
	good = t->dmva[0].table;
	t->dmva[0].table = good + 8;
	assert_int_equal(dmva(f, 0, &len, false, &phys), SPYRE_SYN_RANGE);
	t->dmva[0].table = spyre_card_aperture(f->card);
	assert_int_equal(dmva(f, 0, &len, false, &phys), SPYRE_SYN_RANGE);
	t->dmva[0].table = ~0xfffull;
	assert_int_equal(dmva(f, 0, &len, false, &phys), SPYRE_SYN_RANGE);
	t->dmva[0].table = spyre_card_aperture(f->card) - 4096;
	t->dmva[0].pages = ~0u;
	assert_int_equal(dmva(f, 511 * SPYRE_PAGE_SIZE, &len, false, &phys), SPYRE_SYN_PAGE_FAULT);
	assert_int_equal(dmva(f, 512 * SPYRE_PAGE_SIZE, &len, false, &phys), SPYRE_SYN_RANGE);
	/* A context table that does not lie where it may is refused when it is set. */
	{
		static const uint64_t bad[] = { 64, ~0ull - 127, 1ull << 40 };
		unsigned int i;
		uint32_t v;

		for (i = 0; i < ARRAY_SIZE(bad) + 1; i++) {
			uint64_t a = i < ARRAY_SIZE(bad) ? bad[i] : spyre_card_aperture(f->card) - 128;

			mcu_bus_store(f->card, SPYRE_MCU_MMIO_BASE + MCU_CTX_TABLE, 4, a);
			mcu_bus_store(f->card, SPYRE_MCU_MMIO_BASE + MCU_CTX_TABLE + 4, 4, a >> 32);
			mcu_bus_store(f->card, SPYRE_MCU_MMIO_BASE + MCU_CTX_SELECT, 4,
				      3 | MCU_CTX_SET);
			mcu_bus_load(f->card, SPYRE_MCU_MMIO_BASE + MCU_CTX_STATUS, 4, &v);
			assert_int_equal(v, 1);
			assert_int_equal(f->card->ctx_table[3], 0);
		}
		mcu_bus_store(f->card, SPYRE_MCU_MMIO_BASE + MCU_CTX_SELECT, 4,
			      MCU_CONTEXTS | MCU_CTX_INVALIDATE);
		mcu_bus_load(f->card, SPYRE_MCU_MMIO_BASE + MCU_CTX_STATUS, 4, &v);
		assert_int_equal(v, 1);
	}
}

static void test_host(void **state)
{
	struct fix *f = *state;
	struct spyre_context_table *t = ctx_new(f, 1);
	uint64_t bus, len = 4 * MB, *l1;

	map_host(f, t, 0, 2 * MB, SPYRE_PTE_WRITE, false);
	map_host(f, t, 2 * MB, 16384, SPYRE_PTE_WRITE, true);
	map_host(f, t, 2 * MB + 16384, 4096, 0, true);
	map_host(f, t, 2 * MB + 20480, 4096, SPYRE_PTE_PRIV | SPYRE_PTE_WRITE, true);
	assert_int_equal(hmva(f, 100, &len, true, false, &bus), SPYRE_SYN_NONE);
	assert_int_equal(bus, SPYRE_INPROC_BUS + 100);
	assert_int_equal(len, 2 * MB - 100);
	/* Four 4 KiB pages that follow each other are one piece for a writer, five for a reader. */
	len = MB;
	assert_int_equal(hmva(f, 2 * MB + 8, &len, true, false, &bus), SPYRE_SYN_NONE);
	assert_int_equal(len, 16384 - 8);
	len = MB;
	assert_int_equal(hmva(f, 2 * MB + 8, &len, false, false, &bus), SPYRE_SYN_NONE);
	assert_int_equal(len, 20480 - 8);
	len = MB;
	assert_int_equal(hmva(f, 2 * MB + 8, &len, false, true, &bus), SPYRE_SYN_NONE);
	assert_int_equal(len, 24576 - 8);
	len = 1;
	assert_int_equal(hmva(f, 2 * MB + 16384, &len, true, true, &bus), SPYRE_SYN_PERMISSION);
	assert_int_equal(hmva(f, 2 * MB + 20480, &len, true, false, &bus), SPYRE_SYN_PERMISSION);
	assert_int_equal(hmva(f, 2 * MB + 20480, &len, true, true, &bus), SPYRE_SYN_NONE);
	assert_int_equal(hmva(f, 2 * MB + 24576, &len, false, false, &bus), SPYRE_SYN_PAGE_FAULT);
	assert_int_equal(hmva(f, 4 * MB, &len, false, false, &bus), SPYRE_SYN_PAGE_FAULT);
	assert_int_equal(hmva(f, SPYRE_SEGMENT_SIZE, &len, false, false, &bus), SPYRE_SYN_PAGE_FAULT);
	assert_int_equal(hmva(f, SPYRE_HMVA_SIZE, &len, false, false, &bus), SPYRE_SYN_RANGE);
	/* A second level outside the aperture, and one that is not a leaf. */
	l1 = seg_pte(f, &t->hmva[0], 1);
	((uint64_t *)card_at(f, *l1 & SPYRE_PTE_ADDR))[0] &= ~SPYRE_PTE_LEAF;
	assert_int_equal(hmva(f, 2 * MB, &len, false, false, &bus), SPYRE_SYN_RANGE);
	*l1 = ((spyre_card_aperture(f->card) + 4096) & SPYRE_PTE_ADDR) | SPYRE_PTE_VALID;
	assert_int_equal(hmva(f, 2 * MB, &len, false, false, &bus), SPYRE_SYN_RANGE);
}

/* --- Copy and word unit --------------------------------------------------------------------------- */

static uint32_t copy(struct fix *f, uint32_t space, bool out, uint64_t addr, uint32_t local, uint32_t len)
{
	f->card->mcu.copy_addr = addr;
	f->card->mcu.copy_local = local;
	f->card->mcu.copy_len = len;
	copy_go(f->card, space | (out ? MCU_COPY_OUT : MCU_COPY_IN) | 1u << 16);
	return f->card->mcu.copy_status;
}

static uint32_t word(struct fix *f, uint32_t space, uint32_t op, uint64_t addr, uint64_t *data)
{
	f->card->mcu.copy_addr = addr;
	f->card->mcu.word_data = *data;
	word_go(f->card, space | op | 1u << 16);
	*data = f->card->mcu.word_data;
	return f->card->mcu.copy_status;
}

static void test_copy(void **state)
{
	struct fix *f = *state;
	struct spyre_context_table *t = ctx_new(f, 1);
	uint8_t *host = spyre_inproc_arena(f->ip), *ram = f->card->mcu.ram;
	unsigned int i;

	map_host(f, t, 0, 8192, SPYRE_PTE_WRITE, true);
	map_host(f, t, 8192, 4096, SPYRE_PTE_PRIV, true);
	map_device(f, t, 1, 0, 2, SPYRE_PTE_WRITE);
	*seg_pte(f, &t->dmva[1], 1) = (200 * MB) | SPYRE_PTE_VALID | SPYRE_PTE_WRITE;
	for (i = 0; i < 16384; i++)
		host[i] = i * 7 + (i >> 8);

	/* Across a page boundary, then out again to device pages that do not follow each other. */
	assert_int_equal(copy(f, MCU_SPACE_HMVA, false, 3000, SPYRE_MCU_RAM_BASE + 5, 4096), 0);
	assert_memory_equal(ram + 5, host + 3000, 4096);
	assert_int_equal(copy(f, MCU_SPACE_DMVA, true, SPYRE_SEGMENT_SIZE + 2 * MB - 100,
			      SPYRE_MCU_RAM_BASE + 5, 4096), 0);
	assert_memory_equal(card_at(f, 34 * MB - 100), host + 3000, 100);
	assert_memory_equal(card_at(f, 200 * MB), host + 3100, 3996);
	/* The window on card memory is MCU memory as well. */
	assert_int_equal(copy(f, MCU_SPACE_BUS, false, SPYRE_INPROC_BUS + 77, SPYRE_MCU_FWMEM_BASE + 64, 500),
			 0);
	assert_memory_equal(card_at(f, LIMIT + 64), host + 77, 500);
	assert_int_equal(copy(f, MCU_SPACE_CARD, true, LIMIT - 500, SPYRE_MCU_FWMEM_BASE + 64, 500), 0);
	assert_memory_equal(card_at(f, LIMIT - 500), host + 77, 500);

	/* Rights and ends. The first bad address is told. */
	assert_int_equal(copy(f, MCU_SPACE_HMVA, false, 8000, SPYRE_MCU_RAM_BASE, 1000), SPYRE_SYN_PERMISSION);
	assert_int_equal(f->card->mcu.copy_fault, 8192);
	assert_int_equal(copy(f, MCU_SPACE_HMVA_PRIV, false, 8000, SPYRE_MCU_RAM_BASE, 1000), 0);
	assert_int_equal(copy(f, MCU_SPACE_HMVA_PRIV, true, 8192, SPYRE_MCU_RAM_BASE, 8), SPYRE_SYN_PERMISSION);
	assert_int_equal(copy(f, MCU_SPACE_HMVA, false, 12288, SPYRE_MCU_RAM_BASE, 8), SPYRE_SYN_PAGE_FAULT);
	assert_int_equal(copy(f, MCU_SPACE_CARD, false, LIMIT - 4, SPYRE_MCU_RAM_BASE, 8), SPYRE_SYN_RANGE);
	assert_int_equal(copy(f, MCU_SPACE_BUS, false, 64, SPYRE_MCU_RAM_BASE, 8), SPYRE_SYN_BUS);
	assert_int_equal(copy(f, 9, false, 0, SPYRE_MCU_RAM_BASE, 8), SPYRE_SYN_RANGE);
	assert_int_equal(copy(f, MCU_SPACE_HMVA, false, 0, SPYRE_MCU_RAM_BASE, 0), SPYRE_SYN_RANGE);
	assert_int_equal(copy(f, MCU_SPACE_HMVA, false, 0, SPYRE_MCU_RAM_BASE, 4097), SPYRE_SYN_RANGE);
	assert_int_equal(copy(f, MCU_SPACE_HMVA, false, 0, SPYRE_MCU_RAM_BASE + SPYRE_MCU_RAM_SIZE - 4, 8),
			 SPYRE_SYN_RANGE);
	assert_int_equal(copy(f, MCU_SPACE_HMVA, false, 0, SPYRE_MCU_MMIO_BASE, 8), SPYRE_SYN_RANGE);
	spyre_inproc_bus_master(f->ip, false);
	assert_int_equal(copy(f, MCU_SPACE_HMVA, false, 0, SPYRE_MCU_RAM_BASE, 8), SPYRE_SYN_BUS);
	spyre_inproc_bus_master(f->ip, true);
	assert_int_equal(copy(f, MCU_SPACE_HMVA, false, 0, SPYRE_MCU_RAM_BASE, 8), 0);
}

static void test_words(void **state)
{
	struct fix *f = *state;
	struct spyre_context_table *t = ctx_new(f, 1);
	uint64_t *host = spyre_inproc_arena(f->ip), v, dev = 3 * SPYRE_SEGMENT_SIZE + 8;
	uint64_t *card = card_at(f, 32 * MB + 8);

	map_host(f, t, 0, 4096, SPYRE_PTE_WRITE, true);
	map_host(f, t, 4096, 4096, 0, true);
	map_device(f, t, 3, 0, 1, SPYRE_PTE_WRITE);
	v = 0x1122334455667788;
	assert_int_equal(word(f, MCU_SPACE_HMVA, MCU_WORD_STORE64, 16, &v), 0);
	assert_int_equal(host[2], 0x1122334455667788);
	assert_int_equal(word(f, MCU_SPACE_HMVA, MCU_WORD_STORE32, 28, &v), 0);
	assert_int_equal(host[3], 0x5566778800000000);
	assert_int_equal(word(f, MCU_SPACE_HMVA, MCU_WORD_LOAD32, 20, &v), 0);
	assert_int_equal(v, 0x11223344);
	assert_int_equal(word(f, MCU_SPACE_BUS, MCU_WORD_LOAD64, SPYRE_INPROC_BUS + 16, &v), 0);
	assert_int_equal(v, 0x1122334455667788);
	*card = 40;
	v = 2;
	assert_int_equal(word(f, MCU_SPACE_DMVA, MCU_WORD_ADD64, dev, &v), 0);
	assert_int_equal(*card, 42);
	v = ~0ull;
	assert_int_equal(word(f, MCU_SPACE_CARD, MCU_WORD_ADD64, 32 * MB + 8, &v), 0);
	assert_int_equal(*card, 41);
	/* A probe answers what a store would, and stores nothing. */
	v = 9;
	assert_int_equal(word(f, MCU_SPACE_DMVA, MCU_WORD_PROBE64, dev, &v), 0);
	assert_int_equal(*card, 41);
	assert_int_equal(word(f, MCU_SPACE_HMVA, MCU_WORD_PROBE64, 4096, &v), SPYRE_SYN_PERMISSION);
	assert_int_equal(word(f, MCU_SPACE_HMVA, MCU_WORD_PROBE64, 8192, &v), SPYRE_SYN_PAGE_FAULT);
	assert_int_equal(word(f, MCU_SPACE_HMVA, MCU_WORD_LOAD64, 4096, &v), 0);
	assert_int_equal(word(f, MCU_SPACE_HMVA, MCU_WORD_STORE64, 4096, &v), SPYRE_SYN_PERMISSION);
	assert_int_equal(word(f, MCU_SPACE_HMVA, MCU_WORD_LOAD64, 4, &v), SPYRE_SYN_UNALIGNED);
	assert_int_equal(word(f, MCU_SPACE_HMVA, MCU_WORD_LOAD32, 2, &v), SPYRE_SYN_UNALIGNED);
	assert_int_equal(word(f, MCU_SPACE_HMVA, MCU_WORD_ADD64, 0, &v), SPYRE_SYN_PERMISSION);
	assert_int_equal(word(f, MCU_SPACE_HMVA, 6u << 8, 0, &v), SPYRE_SYN_PERMISSION);
}

static void test_ecc(void **state)
{
	struct fix *f = *state;
	struct spyre_context_table *t = ctx_new(f, 1);
	struct spyre_ras_hw ras;
	uint64_t phys, len = MB;

	map_device(f, t, 0, 0, 1, SPYRE_PTE_WRITE);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_MEM_UE, 32 * MB + 1000), 0);
	/* Good up to the bad stick; the stick fails once; then it has been rewritten. */
	assert_int_equal(dmva(f, 0, &len, false, &phys), SPYRE_SYN_NONE);
	assert_int_equal(len, 896);
	len = 1;
	assert_int_equal(dmva(f, 1023, &len, false, &phys), SPYRE_SYN_ECC);
	assert_int_equal(dmva(f, 1023, &len, false, &phys), SPYRE_SYN_NONE);
	assert_true(ras_pop(f->card, &ras));
	assert_int_equal(ras.code, SPYRE_RAS_MEM_UE);
	assert_int_equal(ras.addr, 32 * MB + 896);
	assert_int_equal(counter(f, "ecc-uncorrected"), 1);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_MEM_CE, 4096), 0);
	assert_true(ras_pop(f->card, &ras));
	assert_int_equal(ras.code, SPYRE_RAS_MEM_CE);
	assert_int_equal(counter(f, "ecc-corrected"), 1);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_MEM_CE, 1ull << 40), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup_card, teardown_card)
		T(test_device),
		T(test_hostile_tables),
		T(test_host),
		T(test_copy),
		T(test_words),
		T(test_ecc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
