/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A running card: boot, interrupts, DMA, resets, injected faults. */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include <sys/un.h>
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"

#include "spyre-qtest.h"

#define ONE "-M q35 " SQ_PORT(1) "-device spyre,id=card,bus=port1,memory=1G,threads=1"

#define MSI_AT 0x200000ull /* guest memory that messages are sent to */
#define RAM_AT 0x300000ull /* guest memory for DMA */

static struct sq_card start_one(void)
{
	struct sq_card c;

	sq_setup(&c, sq_start(ONE), "card", 1);
	return c;
}

/* --- Boot ------------------------------------------------------------------------------------- */

static void test_boot(void)
{
	struct sq_card c = start_one();
	g_autofree char *state = NULL;
	uint32_t head;

	sq_boot(&c);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_BOOT_STATUS), ==, SPYRE_BOOT_RUNNING);
	state = sq_state(&c);
	g_assert_cmpstr(state, ==, "ONLINE");
	/* It does what it is told. */
	g_assert_cmpuint(sq_mcu_read(&c, MCU_SOC_HZ), ==, SPYRE_SOC_HZ);
	sq_mcu_write(&c, MCU_FW_VERSION, 0x10002);
	g_assert_cmphex(sq_reg(&c, SPYRE_REG_FW_VERSION), ==, 0x10002);
	/* The stop bit stops it. */
	sq_set_reg(&c, SPYRE_REG_MCU_CTRL, 0);
	head = sq_reg(&c, SPYRE_REG_MBOX_CMD_HEAD);
	sq_set_reg(&c, SPYRE_REG_MBOX_CMD_TAIL, c.calls + 1);
	g_usleep(50000);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_MBOX_CMD_HEAD), ==, head);
	qtest_quit(c.qts);
}

static void test_bad_images(void)
{
	static const struct {
		size_t off;   /* in the image */
		uint32_t set; /* one word, the digest left as it was */
		int shorter;
		uint64_t at;
		uint32_t status;
	} cases[] = {
		{ 0, 0x57465054, 0, 0x10000, SPYRE_BOOT_BAD_MAGIC },
		{ offsetof(struct spyre_fw_header, header_size), 128, 0, 0x10000,
		  SPYRE_BOOT_BAD_HEADER },
		{ offsetof(struct spyre_fw_header, load_addr), 0x20000000, 0, 0x10000,
		  SPYRE_BOOT_BAD_HEADER },
		{ offsetof(struct spyre_fw_header, entry), 0x1007fffe, 0, 0x10000,
		  SPYRE_BOOT_BAD_HEADER },
		{ 300, 0xdeadbeef, 0, 0x10000, SPYRE_BOOT_BAD_DIGEST },
		{ offsetof(struct spyre_fw_header, version), 0, 0, 0x10000, SPYRE_BOOT_BAD_DIGEST },
		{ 0, SPYRE_FW_MAGIC, 4, 0x10000, SPYRE_BOOT_BAD_LENGTH },
		{ 0, SPYRE_FW_MAGIC, 0, 0x10040, SPYRE_BOOT_BAD_ADDRESS },
	};
	struct sq_card c = start_one();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t image[1024];
		size_t len = sq_image(image, sizeof(image));

		memcpy(image + cases[i].off, &cases[i].set, 4);
		g_assert_cmpuint(sq_boot_image(&c, image, len - cases[i].shorter, cases[i].at), ==,
				 cases[i].status);
		g_assert_cmpuint(sq_reg(&c, SPYRE_REG_STATE), ==, SPYRE_STATE_OFFLINE);
	}
	/* A good one after all of them, and one that a fault makes bad. */
	sq_boot(&c);
	sq_inject(&c, "inject-fw-image", 2);
	{
		uint8_t image[1024];
		size_t len = sq_image(image, sizeof(image));

		g_assert_cmpuint(sq_boot_image(&c, image, len, 0x10000), ==, SPYRE_BOOT_TOO_OLD);
	}
	sq_boot(&c);
	qtest_quit(c.qts);
}

/* The debugger's stub of the management core, over a chardev. */
static void test_gdb(void)
{
	g_autofree char *dir = g_dir_make_tmp("spyre-qtest-XXXXXX", NULL);
	g_autofree char *path = g_strdup_printf("%s/gdb", dir);
	g_autofree char *options = NULL;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char got[256] = "";
	size_t n = 0;
	struct sq_card c;
	ssize_t r;
	int fd;

	options = g_strdup_printf(
		"-M q35 -chardev socket,id=g,path=%s,server=on,wait=off " SQ_PORT(
			1) "-device spyre,id=card,bus=port1,memory=1G,threads=1,gdb=g",
		path);
	sq_setup(&c, sq_start(options), "card", 1);
	sq_boot(&c);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
	g_assert_cmpint(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), ==, 0);
	/* What did it stop for? And one that it cannot know: an empty answer. */
	g_assert_cmpint(write(fd, "$?#3f", 5), ==, 5);
	while (n < sizeof(got) - 1 && !strchr(got, '#')) {
		r = read(fd, got + n, sizeof(got) - 1 - n);
		g_assert_cmpint(r, >, 0);
		n += r;
	}
	g_assert_nonnull(strstr(got, "$S05#b8") ?: strstr(got, "$T05"));
	close(fd);
	/* The core is halted by now, and the machine goes on. */
	g_assert_cmphex(sq_reg(&c, SPYRE_REG_ID), ==, SPYRE_ID_MAGIC);
	qtest_quit(c.qts);
	unlink(path);
	rmdir(dir);
}

/* --- Interrupts ------------------------------------------------------------------------------- */

static void test_msi(void)
{
	struct sq_card c = start_one();
	unsigned int v;

	sq_boot(&c);

	/* Off: dropped, not kept for later. */
	sq_mcu_write(&c, MCU_RAISE, 0);
	sq_mcu_write(&c, MCU_RAISE, 3);
	sq_msi(&c, MSI_AT, 0x40, 3);
	qtest_clock_step(c.qts, 1000);
	g_assert_cmphex(qtest_readl(c.qts, MSI_AT), ==, 0);

	/* Eight: each sends its own data. */
	for (v = 0; v < 8; v++) {
		sq_mcu_write(&c, MCU_RAISE, v);
		g_assert_cmphex(sq_wait_mem(c.qts, MSI_AT, 0x40 + v), ==, 0x40 + v);
	}

	/* One: all of them send the first. */
	sq_msi(&c, MSI_AT, 0x51, 0);
	for (v = 0; v < 8; v += 7) {
		qtest_writel(c.qts, MSI_AT, 0);
		sq_mcu_write(&c, MCU_RAISE, v);
		g_assert_cmphex(sq_wait_mem(c.qts, MSI_AT, 0x51), ==, 0x51);
	}

	/* Four: what is above them is the first. */
	sq_msi(&c, MSI_AT, 0x60, 2);
	sq_mcu_write(&c, MCU_RAISE, 3);
	g_assert_cmphex(sq_wait_mem(c.qts, MSI_AT, 0x63), ==, 0x63);
	sq_mcu_write(&c, MCU_RAISE, 4);
	g_assert_cmphex(sq_wait_mem(c.qts, MSI_AT, 0x60), ==, 0x60);
	qtest_quit(c.qts);
}

static void test_msi_mask(void)
{
	struct sq_card c = start_one();

	sq_boot(&c);
	sq_msi(&c, MSI_AT, 0x40, 3);
	sq_writel(&c, 0x50 + PCI_MSI_MASK_64, 1 << 2);
	sq_mcu_write(&c, MCU_RAISE, 2);
	sq_mcu_write(&c, MCU_RAISE, 1);
	g_assert_cmphex(sq_wait_mem(c.qts, MSI_AT, 0x41), ==, 0x41);
	g_assert_cmphex(sq_readl(&c, 0x50 + PCI_MSI_PENDING_64), ==, 1 << 2);
	/* Unmasked: it comes, once. */
	sq_writel(&c, 0x50 + PCI_MSI_MASK_64, 0);
	g_assert_cmphex(sq_wait_mem(c.qts, MSI_AT, 0x42), ==, 0x42);
	g_assert_cmphex(sq_readl(&c, 0x50 + PCI_MSI_PENDING_64), ==, 0);
	qtest_quit(c.qts);
}

static void test_irq_faults(void)
{
	struct sq_card c = start_one();

	sq_boot(&c);
	sq_msi(&c, MSI_AT, 0x40, 3);
	sq_inject(&c, "inject-lost-irq", 0);
	sq_mcu_write(&c, MCU_RAISE, 1);
	sq_mcu_write(&c, MCU_RAISE, 2);
	g_assert_cmphex(sq_wait_mem(c.qts, MSI_AT, 0x42), ==, 0x42);

	sq_inject(&c, "inject-delayed-irq", 5000000);
	sq_mcu_write(&c, MCU_RAISE, 3);
	g_usleep(20000);
	qtest_clock_step(c.qts, 4000000);
	g_assert_cmphex(qtest_readl(c.qts, MSI_AT), ==, 0x42);
	qtest_clock_step(c.qts, 2000000);
	g_assert_cmphex(sq_wait_mem(c.qts, MSI_AT, 0x43), ==, 0x43);
	qtest_quit(c.qts);
}

/* --- DMA -------------------------------------------------------------------------------------- */

static void test_dma(void)
{
	struct sq_card c = start_one();
	uint32_t v;

	sq_boot(&c);
	qtest_writel(c.qts, RAM_AT, 0x11223344);
	g_assert_cmpuint(sq_dma_load(&c, RAM_AT, &v), ==, 0);
	g_assert_cmphex(v, ==, 0x11223344);
	g_assert_cmpuint(sq_dma_store(&c, RAM_AT + 4, 0x55667788), ==, 0);
	g_assert_cmphex(qtest_readl(c.qts, RAM_AT + 4), ==, 0x55667788);

	/* Nobody at home; a read-only BIOS; registers, which are no memory. */
	g_assert_cmpuint(sq_dma_load(&c, 0x7000000000ull, &v), !=, 0);
	g_assert_cmpuint(sq_dma_store(&c, 0xfffffff0u, 1), !=, 0);
	g_assert_cmpuint(sq_dma_store(&c, c.regs + SPYRE_REG_FW_LEN, 1), !=, 0);
	qtest_quit(c.qts);
}

static void test_bus_master(void)
{
	struct sq_card c = start_one();
	uint32_t v;

	sq_boot(&c);
	sq_msi(&c, MSI_AT, 0x40, 0);
	g_assert_cmpuint(sq_dma_store(&c, RAM_AT, 1), ==, 0);
	sq_writew(&c, PCI_COMMAND, PCI_COMMAND_MEMORY);
	g_assert_cmpuint(sq_dma_store(&c, RAM_AT, 2), !=, 0);
	g_assert_cmpuint(sq_dma_load(&c, RAM_AT, &v), !=, 0);
	sq_mcu_write(&c, MCU_RAISE, 0);
	qtest_clock_step(c.qts, 1000);
	g_assert_cmphex(qtest_readl(c.qts, RAM_AT), ==, 1);
	g_assert_cmphex(qtest_readl(c.qts, MSI_AT), ==, 0);

	sq_writew(&c, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	g_assert_cmpuint(sq_dma_store(&c, RAM_AT, 3), ==, 0);
	g_assert_cmphex(qtest_readl(c.qts, RAM_AT), ==, 3);

	/* D3hot is silent too, and its context survives (NoSoftRst). */
	sq_writew(&c, 0x44, 3);
	g_assert_cmphex(qtest_readl(c.qts, c.regs + SPYRE_REG_ID), !=, SPYRE_ID_MAGIC);
	sq_writew(&c, 0x44, 0);
	g_assert_cmpuint(sq_dma_store(&c, RAM_AT, 4), ==, 0);
	g_assert_cmphex(qtest_readl(c.qts, RAM_AT), ==, 4);
	qtest_quit(c.qts);
}

/* Bus mastering goes off and on a hundred times while the card stores as fast as it can. */
static void test_bus_master_race(void)
{
	struct sq_card c = start_one();
	int i;

	sq_boot(&c);
	sq_mcu_write(&c, MCU_COPY_ADDR, RAM_AT);
	sq_mcu_write(&c, MCU_COPY_ADDR + 4, 0);
	for (i = 1; i <= 100; i++) {
		uint32_t seen;

		sq_set_reg(&c, SPYRE_REG_FW_LEN, 0);
		sq_mcu_write(&c, MCU_WORD_DATA, i);
		sq_set_reg(&c, SPYRE_REG_FW_ADDR, MCU_WORD_GO);
		sq_set_reg(&c, SPYRE_REG_FW_ADDR + 4, MCU_SPACE_BUS | MCU_WORD_STORE32);
		sq_set_reg(&c, SPYRE_REG_MBOX_CMD_TAIL, ++c.calls);
		sq_writew(&c, PCI_COMMAND, PCI_COMMAND_MEMORY);
		/* From here on nothing changes any more. */
		seen = qtest_readl(c.qts, RAM_AT);
		g_assert_cmpuint(sq_wait_reg(&c, SPYRE_REG_MBOX_CMD_HEAD, c.calls), ==, c.calls);
		g_assert_cmphex(qtest_readl(c.qts, RAM_AT), ==, seen);
		sq_writew(&c, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	}
	qtest_quit(c.qts);
}

/* --- Copies by the engines ------------------------------------------------------------------- */

#define RAM_BYTES  0x10000000ull /* of the machine */
#define COPY_AT	   0x4000000ull	 /* guest memory, 32 MB */
#define COPY_BYTES 0x2000000ull

static void test_copies(void)
{
	struct sq_card c = start_one();
	g_autofree uint8_t *out = g_malloc(0x100000);
	g_autofree uint8_t *in = g_malloc(0x100000);
	size_t i;

	for (i = 0; i < 0x100000; i++)
		out[i] = i * 13 + (i >> 9);
	sq_boot(&c);
	sq_context(&c, COPY_AT);
	qtest_memwrite(c.qts, COPY_AT + 0x1f0000, out, 0x100000);
	sq_start_copy(&c, MCU_ENGINE_DMI, COPY_BYTES);
	g_assert_cmpuint(sq_copy_status(&c), ==, SPYRE_OK);
	qtest_memset(c.qts, COPY_AT, 0, COPY_BYTES);
	sq_start_copy(&c, MCU_ENGINE_DMO, COPY_BYTES);
	g_assert_cmpuint(sq_copy_status(&c), ==, SPYRE_OK);
	qtest_memread(c.qts, COPY_AT + 0x1f0000, in, 0x100000);
	g_assert_cmpmem(in, 0x100000, out, 0x100000);
	g_assert_cmpuint(sq_prop(&c, "dmi0-bytes"), ==, COPY_BYTES);
	g_assert_cmpuint(sq_prop(&c, "dmo0-jobs"), ==, 1);
	/* Each 64 KiB is a sign of life that the driver reads. */
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_ENG_PROGRESS(0)), >=, COPY_BYTES / 65536);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_ENG_PROGRESS(0)), ==,
			 sq_mcu_read(&c, MCU_ENG_PROGRESS(0)));
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_ENG_PROGRESS(1)), ==, 0);
	g_assert_cmpuint(sq_prop(&c, "ras-lost"), ==, 0);
	/* Of the last counters there are: nothing ran on the cores. */
	g_assert_cmpuint(sq_prop(&c, "soc-jobs"), ==, 0);
	g_assert_cmpuint(sq_prop(&c, "core31-ccw-bytes"), ==, 0);

	sq_inject(&c, "inject-dma-abort", 0);
	sq_start_copy(&c, MCU_ENGINE_DMI, 4096);
	g_assert_cmpuint(sq_copy_status(&c), ==, SPYRE_ERR_HW);
	qtest_quit(c.qts);
}

static void flr(struct sq_card *c)
{
	sq_writew(c, 0x78, sq_readw(c, 0x78) | PCI_EXP_DEVCTL_BCR_FLR);
}

/*
 * What a driver does when it wants its pages back: nothing is written to them afterwards. The
 * machine's memory is a file that this process maps too, so that it can look at all of it quickly.
 */
static void late_data(unsigned int how)
{
	g_autofree char *path = NULL, *options = NULL;
	unsigned int under_way = 0, n;
	struct sq_card c;
	uint8_t *ram;
	size_t i;
	int fd;

	fd = g_file_open_tmp("spyre-qtest-XXXXXX", &path, NULL);
	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(ftruncate(fd, RAM_BYTES), ==, 0);
	ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	g_assert_true(ram != MAP_FAILED);
	options = g_strdup_printf(
		"-M q35,memory-backend=ram -object memory-backend-file,id=ram,size=256M,"
		"share=on,mem-path=%s " SQ_PORT(
			1) "-device spyre,id=card,bus=port1,memory=1G,threads=1",
		path);
	sq_setup(&c, sq_start(options), "card", 1);
	unlink(path);

	for (n = 0; n < 12; n++) {
		sq_boot(&c);
		sq_context(&c, COPY_AT);
		memset(ram + COPY_AT, 0x22, COPY_BYTES);
		sq_start_copy(&c, MCU_ENGINE_DMO, COPY_BYTES);
		g_usleep(n * 200);
		if (how == 0)
			flr(&c);
		else if (how == 1)
			sq_writew(&c, PCI_COMMAND, PCI_COMMAND_MEMORY);
		else
			sq_set_reg(&c, SPYRE_REG_MCU_CTRL, 0);
		under_way += ram[COPY_AT] == 0 && ram[COPY_AT + COPY_BYTES - 1] == 0x22;
		memset(ram + COPY_AT, 0x11, COPY_BYTES);
		g_usleep(5000);
		for (i = 0; i < COPY_BYTES; i++) {
			if (ram[COPY_AT + i] != 0x11)
				g_error("round %u: byte 0x%zx was written after the card was "
					"stopped",
					n, i);
		}
		if (how)
			flr(&c);
		sq_enable(&c);
	}
	g_test_message("%u of %u stops met a copy under way", under_way, n);
	qtest_quit(c.qts);
	munmap(ram, RAM_BYTES);
	close(fd);
}

static void test_flr_in_copy(void)
{
	late_data(0);
}

static void test_master_off_in_copy(void)
{
	late_data(1);
}

static void test_core_stop_in_copy(void)
{
	late_data(2);
}

/* A peer's memory is memory as well. */
static void test_peer(void)
{
	QTestState *qts = sq_start("-M q35 " SQ_PORT(1) SQ_PORT(
		2) "-device spyre,id=a,bus=port1,memory=1G -device spyre,id=b,bus=port2,memory=1G");
	struct sq_card a, b;
	uint32_t v;

	sq_setup(&a, qts, "a", 1);
	sq_setup(&b, qts, "b", 2);
	sq_boot(&a);
	g_assert_cmpuint(sq_dma_store(&a, b.aperture + 0x2000, 0x99), ==, 0);
	g_assert_cmphex(qtest_readl(qts, b.aperture + 0x2000), ==, 0x99);
	/* Gone when the peer stops decoding; there again when it starts. */
	sq_writew(&b, PCI_COMMAND, 0);
	g_assert_cmpuint(sq_dma_load(&a, b.aperture + 0x2000, &v), !=, 0);
	sq_writew(&b, PCI_COMMAND, PCI_COMMAND_MEMORY);
	g_assert_cmpuint(sq_dma_load(&a, b.aperture + 0x2000, &v), ==, 0);
	g_assert_cmphex(v, ==, 0x99);
	qtest_quit(qts);
}

/* --- Resets ----------------------------------------------------------------------------------- */

static void test_flr(void)
{
	struct sq_card c = start_one();
	uint32_t gen = sq_reg(&c, SPYRE_REG_RESET_GEN);
	int i;

	for (i = 1; i <= 3; i++) {
		sq_boot(&c);
		sq_msi(&c, MSI_AT, 0x40, 3);
		sq_writew(&c, 0x78, 0x2850); /* payload 512 */
		qtest_writel(c.qts, c.aperture + 0x100000, 0x1234);
		g_assert_cmpuint(sq_dma_store(&c, RAM_AT, i), ==, 0);
		flr(&c);

		/* Config space: as after power-on, but for what both ends of the link agreed on. */
		g_assert_cmphex(sq_readw(&c, PCI_COMMAND), ==, 0);
		g_assert_cmphex(sq_readl(&c, PCI_BASE_ADDRESS_2) & ~0xf, ==, 0);
		g_assert_cmphex(sq_readw(&c, 0x52), ==, 0x0186);
		g_assert_cmphex(sq_readw(&c, 0x78), ==, 0x2850);
		sq_enable(&c);
		g_assert_cmpuint(sq_reg(&c, SPYRE_REG_RESET_GEN), ==, gen + i);
		g_assert_cmpuint(sq_reg(&c, SPYRE_REG_STATE), ==, SPYRE_STATE_OFFLINE);
		g_assert_cmpuint(sq_reg(&c, SPYRE_REG_FW_LEN), ==, 0);
		g_assert_cmphex(qtest_readl(c.qts, c.aperture + 0x100000), ==, 0);
	}
	qtest_quit(c.qts);
}

static void test_bus_reset(void)
{
	struct sq_card c = start_one();
	uint32_t gen = sq_reg(&c, SPYRE_REG_RESET_GEN);

	sq_boot(&c);
	qtest_writel(c.qts, c.aperture + 0x100000, 0x1234);
	sq_cfg_writew(c.qts, 0, 1 << 3, PCI_BRIDGE_CONTROL, PCI_BRIDGE_CTL_BUS_RESET);
	sq_cfg_writew(c.qts, 0, 1 << 3, PCI_BRIDGE_CONTROL, 0);
	g_assert_cmphex(sq_readw(&c, PCI_COMMAND), ==, 0);
	sq_enable(&c);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_RESET_GEN), ==, gen + 1);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_STATE), ==, SPYRE_STATE_OFFLINE);
	g_assert_cmphex(qtest_readl(c.qts, c.aperture + 0x100000), ==, 0);
	sq_boot(&c);
	qtest_quit(c.qts);
}

static void test_system_reset(void)
{
	struct sq_card c = start_one();
	QTestState *qts = c.qts;

	sq_boot(&c);
	qtest_writel(qts, c.aperture + 0x100000, 0x1234);
	qtest_system_reset(qts);
	qtest_outl(qts, 0xcf8, 0x80000060u);
	qtest_outl(qts, 0xcfc, 0xb0000001u);
	sq_setup(&c, qts, "card", 1);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_STATE), ==, SPYRE_STATE_OFFLINE);
	g_assert_cmphex(qtest_readl(qts, c.aperture + 0x100000), ==, 0);
	sq_boot(&c);
	qtest_quit(qts);
}

/* --- Faults ----------------------------------------------------------------------------------- */

static void test_fw_faults(void)
{
	struct sq_card c = start_one();

	sq_boot(&c);
	sq_inject(&c, "inject-fw-hang", 0);
	sq_set_reg(&c, SPYRE_REG_MBOX_CMD_TAIL, ++c.calls);
	g_usleep(50000);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_MBOX_CMD_HEAD), ==, c.calls - 1);
	flr(&c);
	sq_enable(&c);
	sq_boot(&c);
	sq_inject(&c, "inject-fw-crash", 0);
	g_assert_cmpuint(sq_wait_reg(&c, SPYRE_REG_BOOT_STATUS, SPYRE_BOOT_CRASHED), ==,
			 SPYRE_BOOT_CRASHED);
	g_assert_cmpuint(sq_wait_reg(&c, SPYRE_REG_STATE, SPYRE_STATE_IN_ERROR), ==,
			 SPYRE_STATE_IN_ERROR);
	qtest_quit(c.qts);
}

/* Faults of the firmware arrive in the core's FIFO, in order, and a boot forgets them. */
static void test_fw_injected(void)
{
	struct sq_card c = start_one();

	sq_boot(&c);
	g_assert_cmphex(sq_mcu_read(&c, MCU_INJECT_POP), ==, 0);
	sq_inject(&c, "inject-lost-rb", 3);
	sq_inject(&c, "inject-fw-slow", 1500);
	g_assert_cmphex(sq_mcu_read(&c, MCU_IRQ_PENDING) & MCU_IRQ_INJECT, ==, MCU_IRQ_INJECT);
	g_assert_cmphex(sq_mcu_read(&c, MCU_INJECT_POP), ==, 1u << 31 | SPYRE_INJECT_LOST_RB);
	g_assert_cmpuint(sq_mcu_read(&c, MCU_INJECT_ARG), ==, 3);
	g_assert_cmphex(sq_mcu_read(&c, MCU_INJECT_POP), ==, 1u << 31 | SPYRE_INJECT_SLOW);
	g_assert_cmpuint(sq_mcu_read(&c, MCU_INJECT_ARG), ==, 1500);
	g_assert_cmphex(sq_mcu_read(&c, MCU_IRQ_PENDING) & MCU_IRQ_INJECT, ==, 0);
	sq_inject(&c, "inject-lost-rb", 1);
	sq_inject(&c, "inject-lx-parity", 31);
	flr(&c);
	sq_enable(&c);
	sq_boot(&c);
	g_assert_cmphex(sq_mcu_read(&c, MCU_INJECT_POP), ==, 0);
	qtest_quit(c.qts);
}

static void test_sensors(void)
{
	struct sq_card c = start_one();
	uint32_t before, after;

	sq_boot(&c);
	before = sq_prop(&c, "temperature-mc");
	g_assert_cmpuint(before, ==, sq_reg(&c, SPYRE_REG_TEMP_MC));
	sq_inject(&c, "inject-overtemp", 30000);
	after = sq_reg(&c, SPYRE_REG_TEMP_MC);
	g_assert_cmpuint(after, >=, before + 29000);
	sq_inject(&c, "inject-overtemp", 0);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_TEMP_MC), <, after);
	qtest_quit(c.qts);
}

static void test_core_lost(void)
{
	struct sq_card c = start_one();

	sq_inject(&c, "inject-core-lost", 7);
	sq_boot(&c);
	g_assert_cmphex(sq_mcu_read(&c, MCU_CORES), ==, ~(1u << 7));
	g_assert_cmphex(sq_reg(&c, SPYRE_REG_CORES), ==, ~(1u << 7));
	qtest_quit(c.qts);
}

/* Values that make no sense are answered with an error, and nothing happens. */
static void test_refused_faults(void)
{
	static const struct {
		const char *name;
		uint64_t value;
	} bad[] = {
		{ "inject-memory-ue", 1ull << 40 },
		{ "inject-memory-ce", 1ull << 40 },
		{ "inject-core-lost", 32 },
		{ "inject-lx-parity", 32 },
		{ "inject-lost-rb", 1ull << 32 },
		{ "inject-fw-slow", 60001 },
		{ "inject-fw-image", 4 },
		{ "inject-overtemp", 100000000 },
		{ "inject-link-train", 6 << 8 | 16 },
		{ "inject-link-train", 5 << 8 | 3 },
		{ "inject-delayed-irq", 100000000000ull },
	};
	struct sq_card c = start_one();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		QDict *r = qtest_qmp(c.qts,
				     "{'execute': 'qom-set', 'arguments': {'path': "
				     "'/machine/peripheral/card', 'property': %s, 'value': %" PRIu64
				     "}}",
				     bad[i].name, bad[i].value);

		g_assert_true(qdict_haskey(r, "error"));
		qobject_unref(r);
	}
	g_assert_cmphex(sq_readw(&c, 0x82) & 0x3ff, ==, 0x105);
	qtest_quit(c.qts);
}

static void test_link_faults(void)
{
	struct sq_card c = start_one();
	uint32_t lnkcap;

	sq_inject(&c, "inject-link-train", 4 << 8 | 8);
	g_assert_cmphex(sq_readw(&c, 0x82) & 0x3ff, ==, 0x084);
	flr(&c);
	g_assert_cmphex(sq_readw(&c, 0x82) & 0x3ff, ==, 0x105);

	/* An error of each kind is recorded where the driver looks. */
	sq_writew(&c, 0x78, 0x281f);
	sq_writel(&c, 0x114, 0); /* unmask correctable */
	lnkcap = sq_readl(&c, 0x7c);
	qtest_qmp_assert_success(
		c.qts,
		"{'execute': 'qom-set', 'arguments': {'path': "
		"'/machine/peripheral/card', 'property': 'inject-aer', 'value': 'correctable'}}");
	g_assert_cmphex(sq_readl(&c, 0x110), ==, 1);
	qtest_qmp_assert_success(
		c.qts,
		"{'execute': 'qom-set', 'arguments': {'path': "
		"'/machine/peripheral/card', 'property': 'inject-aer', 'value': 'non-fatal'}}");
	g_assert_cmphex(sq_readl(&c, 0x104), ==, 1 << 14);
	qtest_qmp_assert_success(
		c.qts, "{'execute': 'qom-set', 'arguments': {'path': "
		       "'/machine/peripheral/card', 'property': 'inject-aer', 'value': 'fatal'}}");
	g_assert_cmphex(sq_readl(&c, 0x104) & 1 << 4, ==, 1 << 4);
	/* And nothing beside is changed. */
	g_assert_cmphex(lnkcap & 0xffff, !=, 0);
	g_assert_cmphex(sq_readl(&c, 0x7c), ==, lnkcap);
	qtest_quit(c.qts);
}

static void test_surprise_removal(void)
{
	struct sq_card c = start_one();
	g_autofree char *state = NULL;
	unsigned int sta;

	sq_boot(&c);
	sq_mcu_write(&c, MCU_COPY_ADDR, RAM_AT);
	sq_mcu_write(&c, MCU_COPY_ADDR + 4, 0);
	qtest_qom_set_bool(c.qts, "/machine/peripheral/card", "inject-surprise-removal", true);
	g_assert_cmphex(sq_readl(&c, PCI_VENDOR_ID), ==, 0xffffffff);
	g_assert_cmphex(sq_reg(&c, SPYRE_REG_ID), ==, 0xffffffff);
	g_assert_cmphex(qtest_readl(c.qts, c.aperture), ==, 0xffffffff);
	g_assert_cmphex(qtest_readl(c.qts, c.doorbells), ==, 0xffffffff);
	/* The port says that presence has changed, nobody is there, and the event can be cleared.
	 */
	sta = sq_port_exp(c.qts, 1) + PCI_EXP_SLTSTA;
	g_assert_cmphex(sq_cfg_readw(c.qts, 0, 1 << 3, sta) &
				(PCI_EXP_SLTSTA_PDS | PCI_EXP_SLTSTA_PDC),
			==, PCI_EXP_SLTSTA_PDC);
	sq_cfg_writew(c.qts, 0, 1 << 3, sta, sq_cfg_readw(c.qts, 0, 1 << 3, sta));
	g_assert_cmphex(sq_cfg_readw(c.qts, 0, 1 << 3, sta) & ~PCI_EXP_SLTSTA_PDS, ==, 0);
	state = sq_state(&c);
	g_assert_cmpstr(state, ==, "REMOVED");
	qtest_quit(c.qts);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	qtest_add_func("/spyre/card/boot", test_boot);
	qtest_add_func("/spyre/card/bad-images", test_bad_images);
	qtest_add_func("/spyre/card/gdb", test_gdb);
	qtest_add_func("/spyre/card/msi", test_msi);
	qtest_add_func("/spyre/card/msi-mask", test_msi_mask);
	qtest_add_func("/spyre/card/irq-faults", test_irq_faults);
	qtest_add_func("/spyre/card/dma", test_dma);
	qtest_add_func("/spyre/card/bus-master", test_bus_master);
	qtest_add_func("/spyre/card/bus-master-race", test_bus_master_race);
	qtest_add_func("/spyre/card/copies", test_copies);
	qtest_add_func("/spyre/card/flr-in-copy", test_flr_in_copy);
	qtest_add_func("/spyre/card/bus-master-off-in-copy", test_master_off_in_copy);
	qtest_add_func("/spyre/card/core-stop-in-copy", test_core_stop_in_copy);
	qtest_add_func("/spyre/card/peer", test_peer);
	qtest_add_func("/spyre/card/flr", test_flr);
	qtest_add_func("/spyre/card/bus-reset", test_bus_reset);
	qtest_add_func("/spyre/card/system-reset", test_system_reset);
	qtest_add_func("/spyre/card/fw-faults", test_fw_faults);
	qtest_add_func("/spyre/card/fw-injected", test_fw_injected);
	qtest_add_func("/spyre/card/sensors", test_sensors);
	qtest_add_func("/spyre/card/core-lost", test_core_lost);
	qtest_add_func("/spyre/card/refused-faults", test_refused_faults);
	qtest_add_func("/spyre/card/link-faults", test_link_faults);
	qtest_add_func("/spyre/card/surprise-removal", test_surprise_removal);
	return g_test_run();
}
