/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Identity, configuration space, BARs, registers, properties, hot plug, several cards. */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"

#include "spyre-qtest.h"

#define MiB 0x100000ull
#define GiB 0x40000000ull

#define ONE "-M q35 " SQ_PORT(1) "-device spyre,id=card,bus=port1,memory=1G,threads=1"

static struct sq_card start_one(void)
{
	struct sq_card c;

	sq_setup(&c, sq_start(ONE), "card", 1);
	return c;
}

/* What lspci shows of a real card. */
static void test_identity(void)
{
	static const struct {
		unsigned int off;
		uint8_t id, next;
	} caps[] = {
		{ 0x40, PCI_CAP_ID_PM, 0x50 },
		{ 0x50, PCI_CAP_ID_MSI, 0x70 },
		{ 0x70, PCI_CAP_ID_EXP, 0 },
	};
	static const struct {
		unsigned int off;
		uint16_t id;
		unsigned int next;
	} ext[] = {
		{ 0x100, 0x01, 0x148 }, { 0x148, 0x0e, 0x158 }, { 0x158, 0x19, 0x188 },
		{ 0x188, 0x26, 0x1b8 }, { 0x1b8, 0x27, 0x200 }, { 0x200, 0x2a, 0x270 },
		{ 0x270, 0x0b, 0x370 }, { 0x370, 0x0b, 0x3a8 }, { 0x3a8, 0x25, 0 },
	};
	struct sq_card c = start_one();
	uint32_t v;
	size_t i;

	g_assert_cmphex(sq_readl(&c, PCI_VENDOR_ID), ==, 0x06a71014);
	g_assert_cmphex(sq_readl(&c, PCI_CLASS_REVISION), ==, 0x12000002);
	g_assert_cmphex(sq_readw(&c, PCI_SUBSYSTEM_VENDOR_ID), ==, 0x1014);
	g_assert_cmphex(sq_readw(&c, PCI_INTERRUPT_LINE) >> 8, ==, 1);
	g_assert_cmphex(sq_readw(&c, PCI_CAPABILITY_LIST) & 0xff, ==, 0x40);
	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		v = sq_readw(&c, caps[i].off);
		g_assert_cmphex(v & 0xff, ==, caps[i].id);
		g_assert_cmphex(v >> 8, ==, caps[i].next);
	}
	for (i = 0; i < ARRAY_SIZE(ext); i++) {
		v = sq_readl(&c, ext[i].off);
		g_assert_cmphex(v & 0xffff, ==, ext[i].id);
		g_assert_cmphex(v >> 20, ==, ext[i].next);
	}
	/* PM version 3, no D1 and D2, NoSoftRst, D0, no PME. */
	g_assert_cmphex(sq_readw(&c, 0x42), ==, 3);
	g_assert_cmphex(sq_readw(&c, 0x44), ==, 8);
	/* MSI: off, one of eight, maskable, 64-bit. */
	g_assert_cmphex(sq_readw(&c, 0x52), ==, 0x0186);
	/* Endpoint v2, payload 512, FLR, 75 W, extended tags. */
	g_assert_cmphex(sq_readw(&c, 0x72), ==, 0x0002);
	v = sq_readl(&c, 0x74);
	g_assert_cmphex(v & PCI_EXP_DEVCAP_PAYLOAD, ==, 2);
	g_assert_cmphex(v & PCI_EXP_DEVCAP_FLR, ==, PCI_EXP_DEVCAP_FLR);
	g_assert_cmphex(v & PCI_EXP_DEVCAP_EXT_TAG, ==, PCI_EXP_DEVCAP_EXT_TAG);
	g_assert_cmphex(v >> 18 & 0x3ff, ==, 75);
	/* 32 GT/s x16, L1 within 64 us, all speeds; trained so. */
	v = sq_readl(&c, 0x7c);
	g_assert_cmphex(v & 0x3ff, ==, 0x105);
	g_assert_cmphex(v & PCI_EXP_LNKCAP_ASPMS, ==, PCI_EXP_LNKCAP_ASPM_L1);
	g_assert_cmphex((v & PCI_EXP_LNKCAP_L1EL) >> 15, ==, 6);
	g_assert_cmphex(sq_readw(&c, 0x82) & 0x3ff, ==, 0x105);
	g_assert_cmphex(sq_readl(&c, 0x9c) & 0xfe, ==, 0x3e);
	g_assert_cmphex(sq_readl(&c, 0x94) & 0x10000, ==, 0x10000);
	/* The vendor-specific ones. */
	g_assert_cmphex(sq_readl(&c, 0x274), ==, 0x10040002);
	g_assert_cmphex(sq_readl(&c, 0x374), ==, 0x03810001);
	/* No MSI-X, no SR-IOV: the lists above are complete. */
	qtest_quit(c.qts);
}

static uint64_t bar_size(struct sq_card *c, unsigned int bar)
{
	unsigned int off = PCI_BASE_ADDRESS_0 + 4 * bar;
	uint64_t was = sq_readl(c, off) & ~0xfull, mask;

	was |= (uint64_t)sq_readl(c, off + 4) << 32;
	g_assert_cmphex(sq_readl(c, off) & 0xf, ==,
			PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	sq_writel(c, off, ~0u);
	sq_writel(c, off + 4, ~0u);
	mask = sq_readl(c, off) & ~0xfull;
	mask |= (uint64_t)sq_readl(c, off + 4) << 32;
	sq_writel(c, off, was);
	sq_writel(c, off + 4, was >> 32);
	return ~mask + 1;
}

static void test_bars(void)
{
	struct sq_card c = start_one();
	QTestState *qts;

	g_assert_cmphex(bar_size(&c, 0), ==, 4 * MiB);
	g_assert_cmphex(bar_size(&c, 2), ==, 2 * GiB);
	g_assert_cmphex(bar_size(&c, 4), ==, 32 * MiB);
	qtest_quit(c.qts);

	qts = sq_start(
		"-M q35 " SQ_PORT(1) "-device spyre,id=card,bus=port1,memory=8G,aperture=4G");
	sq_setup(&c, qts, "card", 1);
	g_assert_cmphex(bar_size(&c, 2), ==, 4 * GiB);
	qtest_quit(qts);
}

static void test_registers(void)
{
	struct sq_card c = start_one();
	uint64_t regs = c.regs;

	g_assert_cmphex(sq_reg(&c, SPYRE_REG_ID), ==, SPYRE_ID_MAGIC);
	g_assert_cmphex(sq_reg(&c, SPYRE_REG_HWVER), ==,
			SPYRE_HWVER_MAJOR << 16 | SPYRE_HWVER_MINOR);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_STATE), ==, SPYRE_STATE_OFFLINE);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_BOOT_STATUS), ==, SPYRE_BOOT_IDLE);
	g_assert_cmphex(qtest_readq(c.qts, regs + SPYRE_REG_MEM_SIZE), ==, GiB / 8 * 7);
	g_assert_cmphex(qtest_readq(c.qts, regs + SPYRE_REG_APERTURE_SIZE), ==,
			GiB / 8 * 7 - SPYRE_FW_MEM_SIZE);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_TIME_HZ), ==, SPYRE_SOC_HZ);
	g_assert_cmphex(sq_reg(&c, SPYRE_REG_CORES), ==, 0xffffffff);

	/* One register of 32 bits and a pair. */
	sq_set_reg(&c, SPYRE_REG_FW_LEN, 0x12345678);
	g_assert_cmphex(sq_reg(&c, SPYRE_REG_FW_LEN), ==, 0x12345678);
	qtest_writeq(c.qts, regs + SPYRE_REG_FW_ADDR, 0x1122334455667788);
	g_assert_cmphex(qtest_readq(c.qts, regs + SPYRE_REG_FW_ADDR), ==, 0x1122334455667788);
	g_assert_cmphex(sq_reg(&c, SPYRE_REG_FW_ADDR + 4), ==, 0x11223344);

	/* Other widths and alignments: ones, and nothing changes. */
	g_assert_cmphex(qtest_readb(c.qts, regs + SPYRE_REG_FW_LEN), ==, 0xff);
	g_assert_cmphex(qtest_readw(c.qts, regs + SPYRE_REG_FW_LEN), ==, 0xffff);
	g_assert_cmphex(qtest_readl(c.qts, regs + SPYRE_REG_FW_LEN + 2), ==, 0xffffffff);
	g_assert_cmphex(qtest_readq(c.qts, regs + SPYRE_REG_FW_LEN), ==, UINT64_MAX);
	qtest_writeb(c.qts, regs + SPYRE_REG_FW_LEN, 0);
	qtest_writew(c.qts, regs + SPYRE_REG_FW_LEN, 0);
	qtest_writeq(c.qts, regs + SPYRE_REG_FW_LEN, 0);
	g_assert_cmphex(sq_reg(&c, SPYRE_REG_FW_LEN), ==, 0x12345678);

	/* Read-only and unnamed ones. */
	sq_set_reg(&c, SPYRE_REG_ID, 0);
	g_assert_cmphex(sq_reg(&c, SPYRE_REG_ID), ==, SPYRE_ID_MAGIC);
	sq_set_reg(&c, 0x8000, 0xaaaaaaaa);
	g_assert_cmphex(sq_reg(&c, 0x8000), ==, 0);
	qtest_quit(c.qts);
}

/* Time is the virtual clock at the SoC frequency. */
static void test_time(void)
{
	struct sq_card c = start_one();
	uint64_t a, b;

	a = qtest_readq(c.qts, c.regs + SPYRE_REG_TIME);
	qtest_clock_step(c.qts, 1000000);
	b = qtest_readq(c.qts, c.regs + SPYRE_REG_TIME);
	g_assert_cmpuint(b - a, ==, SPYRE_SOC_HZ / 1000);
	qtest_quit(c.qts);
}

static void test_aperture(void)
{
	struct sq_card c = start_one();
	uint64_t populated = qtest_readq(c.qts, c.regs + SPYRE_REG_APERTURE_SIZE);
	uint8_t out[4096], in[4096];
	size_t i;

	for (i = 0; i < sizeof(out); i++)
		out[i] = i * 7 + 1;
	/* Any width, any alignment, first and last byte. */
	g_assert_cmphex(qtest_readq(c.qts, c.aperture), ==, 0);
	qtest_memwrite(c.qts, c.aperture + 12345, out, sizeof(out));
	qtest_memread(c.qts, c.aperture + 12345, in, sizeof(in));
	g_assert_cmpmem(in, sizeof(in), out, sizeof(out));
	qtest_writeb(c.qts, c.aperture + populated - 1, 0x5a);
	g_assert_cmphex(qtest_readb(c.qts, c.aperture + populated - 1), ==, 0x5a);

	/* Beyond: ones, dropped, counted. */
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_APERTURE_BAD), ==, 0);
	g_assert_cmphex(qtest_readl(c.qts, c.aperture + populated), ==, 0xffffffff);
	qtest_writel(c.qts, c.aperture + populated, 0);
	g_assert_cmphex(qtest_readq(c.qts, c.aperture + 2 * GiB - 8), ==, UINT64_MAX);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_APERTURE_BAD), ==, 3);
	qtest_quit(c.qts);
}

static void test_doorbells(void)
{
	struct sq_card c = start_one();

	/* Nobody listens yet; a good one is not an error, the others are counted. */
	qtest_writel(c.qts, c.doorbells + 5 * SPYRE_DB_PAGE_SIZE, 1);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_DB_BAD), ==, 0);
	qtest_writel(c.qts, c.doorbells + 5 * SPYRE_DB_PAGE_SIZE + 4, 1);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_DB_BAD), ==, 1);
	qtest_writew(c.qts, c.doorbells, 1);
	qtest_writeq(c.qts, c.doorbells + SPYRE_BAR_DOORBELLS_SIZE - SPYRE_DB_PAGE_SIZE, 1);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_DB_BAD), ==, 3);
	/* The first 512 are in BAR0 too. */
	qtest_writel(c.qts, c.regs + SPYRE_REGS_DOORBELLS, 1);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_DB_BAD), ==, 3);
	qtest_writel(c.qts, c.regs + SPYRE_REGS_DOORBELLS + 8, 1);
	g_assert_cmpuint(sq_reg(&c, SPYRE_REG_DB_BAD), ==, 4);
	g_assert_cmphex(qtest_readl(c.qts, c.doorbells + 5 * SPYRE_DB_PAGE_SIZE), ==, 0);
	qtest_quit(c.qts);
}

/* Starts QEMU with an option that it must refuse; the message must say why. */
static void refuse(const char *options, const char *const *words)
{
	g_autofree char *cmd = g_strdup_printf("%s -display none -S %s%s",
					       getenv("QTEST_QEMU_BINARY"), SQ_MACHINE, options);
	g_autofree char *err = NULL;
	g_autofree char *out = NULL;
	int status;

	g_assert_true(g_spawn_command_line_sync(cmd, &out, &err, &status, NULL));
	g_assert_true(WIFEXITED(status));
	g_assert_cmpint(WEXITSTATUS(status), ==, 1);
	for (; *words; words++) {
		if (!strstr(err, *words))
			g_error("%s: the message has no \"%s\": %s", options, *words, err);
	}
}

static void test_refused(void)
{
#define BAD(options, ...) \
	refuse("-M q35 " SQ_PORT(1) options, (const char *const[]){ __VA_ARGS__, NULL })
#define BADPROP(prop, ...) BAD("-device spyre,bus=port1," prop, __VA_ARGS__)

	BADPROP("memory=3G", "memory", "3221225472", "1G", "128G");
	BADPROP("memory=512M", "memory", "1G");
	BADPROP("memory=256G", "memory", "128G");
	BADPROP("aperture=3G", "aperture", "power of two");
	BADPROP("aperture=64M", "aperture", "256M");
	BADPROP("threads=100000", "threads", "100000", "256");
	BADPROP("timing=fast", "timing", "fast", "virtual", "off");
	BADPROP("check=everything", "check", "everything", "none", "races");
	BADPROP("on-error=explode", "on-error", "explode", "report", "halt-card", "stop-vm");
	BADPROP("soc-hz=5", "soc-hz", "5", "1000000");
	BADPROP("core-hz=4294967295", "core-hz", "4000000000");
	BADPROP("mcu-hz=1", "mcu-hz", "1000000");
	BADPROP("serial=0123456789abcdefg", "serial", "0123456789abcdefg", "17", "16");
	BADPROP("watchdog=18446744073709551615", "watchdog", "18446744073709551615");
	BADPROP("memdev=nothing", "nothing");
	BAD("-object memory-backend-ram,id=m,size=1G,reserve=off -device "
	    "spyre,bus=port1,memory=1G,memdev=m",
	    "memdev", "0x40000000", "0x38000000");
	BAD("-icount shift=5 -device spyre,bus=port1,timing=off", "timing=off", "icount");
}

static void test_memdev(void)
{
	struct sq_card c;

	sq_setup(&c,
		 sq_start("-M q35 -object memory-backend-memfd,id=m,size=896M,reserve=off " SQ_PORT(
			 1) "-device spyre,id=card,bus=port1,memory=1G,memdev=m"),
		 "card", 1);
	qtest_writel(c.qts, c.aperture + 0x1000, 0xcafe);
	g_assert_cmphex(qtest_readl(c.qts, c.aperture + 0x1000), ==, 0xcafe);
	/* A power cycle loses it, in a backend too. */
	qtest_system_reset(c.qts);
	sq_setup(&c, c.qts, "card", 1);
	g_assert_cmphex(qtest_readl(c.qts, c.aperture + 0x1000), ==, 0);
	qtest_quit(c.qts);
}

static void test_two_cards(void)
{
	QTestState *qts =
		sq_start("-M q35 " SQ_PORT(1)
				 SQ_PORT(2) "-device spyre,id=a,bus=port1,memory=1G,serial=AAAA "
					    "-device spyre,id=b,bus=port2,memory=2G,cores=0xff");
	struct sq_card a, b;
	char serial[17] = "";

	sq_setup(&a, qts, "a", 1);
	sq_setup(&b, qts, "b", 2);
	g_assert_cmphex(qtest_readq(qts, a.regs + SPYRE_REG_MEM_SIZE), ==, GiB / 8 * 7);
	g_assert_cmphex(qtest_readq(qts, b.regs + SPYRE_REG_MEM_SIZE), ==, 2 * GiB / 8 * 7);
	g_assert_cmphex(sq_reg(&b, SPYRE_REG_CORES), ==, 0xff);
	qtest_memread(qts, a.regs + SPYRE_REG_SERIAL, serial, 4);
	g_assert_cmpstr(serial, ==, "AAAA");

	sq_set_reg(&a, SPYRE_REG_FW_LEN, 1);
	sq_set_reg(&b, SPYRE_REG_FW_LEN, 2);
	g_assert_cmpuint(sq_reg(&a, SPYRE_REG_FW_LEN), ==, 1);
	qtest_writel(qts, a.aperture, 11);
	qtest_writel(qts, b.aperture, 22);
	g_assert_cmpuint(qtest_readl(qts, a.aperture), ==, 11);
	g_assert_cmpuint(qtest_readl(qts, b.aperture), ==, 22);
	qtest_quit(qts);
}

static unsigned int count_threads(QTestState *qts)
{
	g_autofree char *tasks = g_strdup_printf("/proc/%d/task", qtest_pid(qts));
	GDir *d = g_dir_open(tasks, 0, NULL);
	unsigned int n = 0;

	g_assert_nonnull(d);
	while (g_dir_read_name(d))
		n++;
	g_dir_close(d);
	return n;
}

static uint64_t virtual_pages(QTestState *qts)
{
	g_autofree char *statm = g_strdup_printf("/proc/%d/statm", qtest_pid(qts));
	g_autofree char *text = NULL;

	g_assert_true(g_file_get_contents(statm, &text, NULL, NULL));
	return g_ascii_strtoull(text, NULL, 10);
}

/* Twenty cards come and go on one port; then neither their threads nor their memory is there. */
static void test_hotplug(void)
{
	QTestState *qts = sq_start(
		"-M q35 -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off " SQ_PORT(1));
	unsigned int ctl = sq_port_exp(qts, 1) + PCI_EXP_SLTCTL, threads = count_threads(qts);
	uint64_t pages = 0;
	struct sq_card c;
	int64_t end;
	int i;

	for (i = 0; i < 20; i++) {
		sq_cfg_writew(qts, 0, 1 << 3, ctl,
			      PCI_EXP_SLTCTL_PWR_IND_ON | PCI_EXP_SLTCTL_ATTN_IND_OFF);
		qtest_qmp_device_add(qts, "spyre", "card",
				     "{'bus': 'port1', 'memory': 1073741824, 'threads': 2}");
		sq_setup(&c, qts, "card", 1);
		g_assert_cmphex(sq_reg(&c, SPYRE_REG_ID), ==, SPYRE_ID_MAGIC);
		qtest_writel(qts, c.aperture + 0x100000, i);
		sq_boot(&c);
		g_assert_cmpuint(count_threads(qts), >, threads);

		/* The button is pressed, and the guest switches the slot off. */
		qtest_qmp_device_del_send(qts, "card");
		sq_cfg_writew(qts, 0, 1 << 3, ctl,
			      PCI_EXP_SLTCTL_PWR_OFF | PCI_EXP_SLTCTL_PWR_IND_OFF |
				      PCI_EXP_SLTCTL_ATTN_IND_OFF);
		qtest_qmp_eventwait(qts, "DEVICE_DELETED");
		g_assert_cmphex(sq_readl(&c, PCI_VENDOR_ID), ==, 0xffffffff);
		/* The last reference goes with an RCU grace period. */
		end = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
		while (count_threads(qts) > threads && g_get_monotonic_time() < end)
			g_usleep(10000);
		g_assert_cmpuint(count_threads(qts), <=, threads);
		if (i == 1)
			pages = virtual_pages(qts);
	}
	/* Less than a quarter of one card's address space more than after the second. */
	g_assert_cmpuint(virtual_pages(qts), <, pages + (GiB / 4) / 4096);
	qtest_quit(qts);
}

static void test_unmigratable(void)
{
	QTestState *qts = sq_start(ONE);
	QDict *r = qtest_qmp(qts,
			     "{'execute': 'migrate', 'arguments': {'uri': 'exec:cat >/dev/null'}}");
	QDict *e;

	g_assert_true(qdict_haskey(r, "error"));
	e = qdict_get_qdict(r, "error");
	g_assert_nonnull(strstr(qdict_get_str(e, "desc"), "spyre"));
	qobject_unref(r);
	qtest_quit(qts);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	qtest_add_func("/spyre/pci/identity", test_identity);
	qtest_add_func("/spyre/pci/bars", test_bars);
	qtest_add_func("/spyre/pci/registers", test_registers);
	qtest_add_func("/spyre/pci/time", test_time);
	qtest_add_func("/spyre/pci/aperture", test_aperture);
	qtest_add_func("/spyre/pci/doorbells", test_doorbells);
	qtest_add_func("/spyre/pci/refused-properties", test_refused);
	qtest_add_func("/spyre/pci/memdev", test_memdev);
	qtest_add_func("/spyre/pci/two-cards", test_two_cards);
	qtest_add_func("/spyre/pci/hotplug", test_hotplug);
	qtest_add_func("/spyre/pci/unmigratable", test_unmigratable);
	return g_test_run();
}
