/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DMA behind an Intel IOMMU that the test programs itself (legacy mode, register-based
 * invalidation). */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"

#include "spyre-qtest.h"

#define VTD	     0xfed90000ull
#define VTD_GCMD     0x18
#define VTD_GSTS     0x1c
#define VTD_RTADDR   0x20
#define VTD_CCMD     0x28
#define VTD_FSTS     0x34
#define VTD_IVA	     0xf0
#define VTD_IOTLB    0xf8
#define GCMD_TE	     (1u << 31)
#define GCMD_SRTP    (1u << 30)
#define INV_GO	     (1ull << 63)
#define CCMD_GLOBAL  (1ull << 61)
#define IOTLB_GLOBAL (1ull << 60)
#define IOTLB_PAGE   (3ull << 60)
#define DOMAIN	     1ull

/* Tables in guest memory. */
#define ROOT_TABLE 0x1000000ull
#define CTX_TABLE  0x1001000ull
#define PT(level)  (0x1001000ull + (level)*0x1000) /* 4 to 1 */

#define RAM_A 0x2000000ull
#define RAM_B 0x2001000ull
#define IOVA  0x10000ull
#define PTE_R 1ull
#define PTE_W 2ull

static void flush_page(QTestState *qts, uint64_t iova)
{
	qtest_writeq(qts, VTD + VTD_IVA, iova);
	qtest_writeq(qts, VTD + VTD_IOTLB, INV_GO | IOTLB_PAGE | DOMAIN << 32);
	g_assert_cmphex(qtest_readq(qts, VTD + VTD_IOTLB) & INV_GO, ==, 0);
}

static void flush_all(QTestState *qts)
{
	qtest_writeq(qts, VTD + VTD_IOTLB, INV_GO | IOTLB_GLOBAL);
	g_assert_cmphex(qtest_readq(qts, VTD + VTD_IOTLB) & INV_GO, ==, 0);
}

static void set_pte(QTestState *qts, uint64_t iova, uint64_t pte)
{
	qtest_writeq(qts, PT(1) + (iova >> 12 & 511) * 8, pte);
}

static struct sq_card start(void)
{
	QTestState *qts =
		sq_start("-M q35,kernel-irqchip=split -device intel-iommu,intremap=off " SQ_PORT(
			1) "-device spyre,id=card,bus=port1,memory=1G,threads=1");
	struct sq_card c;
	unsigned int l;

	sq_setup(&c, qts, "card", 1);
	sq_boot(&c);

	qtest_writeq(qts, ROOT_TABLE + 1 * 16, CTX_TABLE | 1);
	qtest_writeq(qts, CTX_TABLE, PT(4) | 1);
	qtest_writeq(qts, CTX_TABLE + 8, DOMAIN << 8 | 2); /* four levels */
	for (l = 4; l > 1; l--)
		qtest_writeq(qts, PT(l), PT(l - 1) | PTE_R | PTE_W);
	qtest_writeq(qts, VTD + VTD_RTADDR, ROOT_TABLE);
	qtest_writel(qts, VTD + VTD_GCMD, GCMD_SRTP);
	qtest_writeq(qts, VTD + VTD_CCMD, INV_GO | CCMD_GLOBAL);
	flush_all(qts);
	qtest_writel(qts, VTD + VTD_GCMD, GCMD_TE);
	g_assert_cmphex(qtest_readl(qts, VTD + VTD_GSTS) & GCMD_TE, ==, GCMD_TE);
	return c;
}

static void test_translate(void)
{
	struct sq_card c = start();
	uint32_t v;

	/* Nothing is mapped: not even what bypasses no IOMMU. */
	g_assert_cmpuint(sq_dma_store(&c, RAM_A, 1), !=, 0);
	g_assert_cmphex(qtest_readl(c.qts, RAM_A), ==, 0);

	set_pte(c.qts, IOVA, RAM_A | PTE_R | PTE_W);
	flush_page(c.qts, IOVA);
	g_assert_cmpuint(sq_dma_store(&c, IOVA + 0x10, 0x1111), ==, 0);
	g_assert_cmphex(qtest_readl(c.qts, RAM_A + 0x10), ==, 0x1111);
	qtest_writel(c.qts, RAM_A + 0x20, 0x2222);
	g_assert_cmpuint(sq_dma_load(&c, IOVA + 0x20, &v), ==, 0);
	g_assert_cmphex(v, ==, 0x2222);
	qtest_quit(c.qts);
}

/* What was cached is gone when the invalidation is done, page by page and as a whole. */
static void test_invalidate(void)
{
	struct sq_card c = start();
	int whole;

	for (whole = 0; whole < 2; whole++) {
		set_pte(c.qts, IOVA, RAM_A | PTE_R | PTE_W);
		flush_page(c.qts, IOVA);
		g_assert_cmpuint(sq_dma_store(&c, IOVA, 1), ==, 0);
		g_assert_cmphex(qtest_readl(c.qts, RAM_A), ==, 1);

		set_pte(c.qts, IOVA, RAM_B | PTE_R | PTE_W);
		whole ? flush_all(c.qts) : flush_page(c.qts, IOVA);
		g_assert_cmpuint(sq_dma_store(&c, IOVA, 2), ==, 0);
		g_assert_cmphex(qtest_readl(c.qts, RAM_A), ==, 1);
		g_assert_cmphex(qtest_readl(c.qts, RAM_B), ==, 2);

		set_pte(c.qts, IOVA, 0);
		whole ? flush_all(c.qts) : flush_page(c.qts, IOVA);
		g_assert_cmpuint(sq_dma_store(&c, IOVA, 3), !=, 0);
		g_assert_cmphex(qtest_readl(c.qts, RAM_B), ==, 2);
	}
	qtest_quit(c.qts);
}

static void test_read_only(void)
{
	struct sq_card c = start();
	uint32_t v;

	set_pte(c.qts, IOVA, RAM_A | PTE_R);
	flush_page(c.qts, IOVA);
	qtest_writel(c.qts, RAM_A, 0x77);
	g_assert_cmpuint(sq_dma_store(&c, IOVA, 1), !=, 0);
	g_assert_cmphex(qtest_readl(c.qts, RAM_A), ==, 0x77);
	/* The guest's driver finds the fault recorded. */
	g_assert_cmphex(qtest_readl(c.qts, VTD + VTD_FSTS) & 2, ==, 2);
	g_assert_cmpuint(sq_dma_load(&c, IOVA, &v), ==, 0);
	g_assert_cmphex(v, ==, 0x77);
	g_assert_cmpuint(sq_dma_store(&c, IOVA, 1), !=, 0);
	g_assert_cmphex(qtest_readl(c.qts, RAM_A), ==, 0x77);
	qtest_quit(c.qts);
}

/* The card translates while the guest, holding the big lock, invalidates, masters off and resets.
 */
static void test_race(void)
{
	struct sq_card c = start();
	int i;

	for (i = 1; i <= 60; i++) {
		uint32_t a, b;

		set_pte(c.qts, IOVA, RAM_A | PTE_R | PTE_W);
		flush_page(c.qts, IOVA);
		sq_mcu_write(&c, MCU_COPY_ADDR, IOVA);
		sq_mcu_write(&c, MCU_COPY_ADDR + 4, 0);
		sq_mcu_write(&c, MCU_WORD_DATA, i);
		sq_set_reg(&c, SPYRE_REG_FW_LEN, 0);
		sq_set_reg(&c, SPYRE_REG_FW_ADDR, MCU_WORD_GO);
		sq_set_reg(&c, SPYRE_REG_FW_ADDR + 4, MCU_SPACE_BUS | MCU_WORD_STORE32);
		sq_set_reg(&c, SPYRE_REG_MBOX_CMD_TAIL, ++c.calls);

		switch (i % 3) {
		case 0:
			set_pte(c.qts, IOVA, 0);
			flush_page(c.qts, IOVA);
			break;
		case 1:
			sq_writew(&c, PCI_COMMAND, PCI_COMMAND_MEMORY);
			break;
		case 2:
			sq_writew(&c, 0x78, sq_readw(&c, 0x78) | PCI_EXP_DEVCTL_BCR_FLR);
			break;
		}
		/* Whatever the store did, it has done by now. */
		a = qtest_readl(c.qts, RAM_A);
		g_usleep(2000);
		b = qtest_readl(c.qts, RAM_A);
		g_assert_cmphex(a, ==, b);

		sq_enable(&c);
		if (i % 3 == 2)
			sq_boot(&c);
		else
			g_assert_cmpuint(sq_wait_reg(&c, SPYRE_REG_MBOX_CMD_HEAD, c.calls), ==,
					 c.calls);
	}
	qtest_quit(c.qts);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	qtest_add_func("/spyre/iommu/translate", test_translate);
	qtest_add_func("/spyre/iommu/invalidate", test_invalidate);
	qtest_add_func("/spyre/iommu/read-only", test_read_only);
	qtest_add_func("/spyre/iommu/race", test_race);
	return g_test_run();
}
