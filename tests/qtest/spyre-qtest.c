/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See spyre-qtest.h. */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"

#include "spyre-qtest.h"

#define ECAM	 0xb0000000ull
#define PCIEXBAR 0x60 /* of the q35 host bridge */

/* Every card has this much bus address space behind its port. */
#define CARD_SPACE	0x100000000ull
#define CARD_BASE(port) (0x8000000000ull + ((port)-1) * CARD_SPACE)

QTestState *sq_start(const char *options)
{
	QTestState *qts = qtest_initf(SQ_MACHINE "%s", options);

	qtest_outl(qts, 0xcf8, 0x80000000u | PCIEXBAR);
	qtest_outl(qts, 0xcfc, ECAM | 1);
	return qts;
}

static uint64_t ecam(unsigned int bus, unsigned int devfn, unsigned int off)
{
	return ECAM | bus << 20 | devfn << 12 | off;
}

uint32_t sq_cfg_readl(QTestState *qts, unsigned int bus, unsigned int devfn, unsigned int off)
{
	return qtest_readl(qts, ecam(bus, devfn, off));
}

uint16_t sq_cfg_readw(QTestState *qts, unsigned int bus, unsigned int devfn, unsigned int off)
{
	return qtest_readw(qts, ecam(bus, devfn, off));
}

uint8_t sq_cfg_readb(QTestState *qts, unsigned int bus, unsigned int devfn, unsigned int off)
{
	return qtest_readb(qts, ecam(bus, devfn, off));
}

void sq_cfg_writel(QTestState *qts, unsigned int bus, unsigned int devfn, unsigned int off,
		   uint32_t v)
{
	qtest_writel(qts, ecam(bus, devfn, off), v);
}

void sq_cfg_writew(QTestState *qts, unsigned int bus, unsigned int devfn, unsigned int off,
		   uint16_t v)
{
	qtest_writew(qts, ecam(bus, devfn, off), v);
}

static void set_bar(struct sq_card *c, unsigned int bar, uint64_t addr)
{
	sq_writel(c, PCI_BASE_ADDRESS_0 + 4 * bar, addr);
	sq_writel(c, PCI_BASE_ADDRESS_0 + 4 * bar + 4, addr >> 32);
}

void sq_enable(struct sq_card *c)
{
	set_bar(c, SPYRE_BAR_REGS, c->regs);
	set_bar(c, SPYRE_BAR_APERTURE, c->aperture);
	set_bar(c, SPYRE_BAR_DOORBELLS, c->doorbells);
	sq_writew(c, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

void sq_setup(struct sq_card *c, QTestState *qts, const char *id, unsigned int port)
{
	uint64_t base = CARD_BASE(port), limit = base + CARD_SPACE - 1;
	unsigned int devfn = port << 3;

	*c = (struct sq_card){
		.qts = qts,
		.id = id,
		.port = port,
		/* The order in which the real card's BARs lie. */
		.aperture = base,
		.doorbells = base + SPYRE_BAR_APERTURE_SIZE,
		.regs = base + SPYRE_BAR_APERTURE_SIZE + SPYRE_BAR_DOORBELLS_SIZE,
	};
	sq_cfg_writel(qts, 0, devfn, PCI_PRIMARY_BUS, port << 8 | port << 16);
	sq_cfg_writew(qts, 0, devfn, PCI_PREF_MEMORY_BASE, (base >> 16) & 0xfff0);
	sq_cfg_writew(qts, 0, devfn, PCI_PREF_MEMORY_LIMIT, (limit >> 16) & 0xfff0);
	sq_cfg_writel(qts, 0, devfn, PCI_PREF_BASE_UPPER32, base >> 32);
	sq_cfg_writel(qts, 0, devfn, PCI_PREF_LIMIT_UPPER32, limit >> 32);
	sq_cfg_writew(qts, 0, devfn, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	sq_enable(c);
}

unsigned int sq_port_exp(QTestState *qts, unsigned int port)
{
	unsigned int off = sq_cfg_readb(qts, 0, port << 3, PCI_CAPABILITY_LIST);

	while (off && sq_cfg_readb(qts, 0, port << 3, off) != PCI_CAP_ID_EXP)
		off = sq_cfg_readb(qts, 0, port << 3, off + 1);
	g_assert_cmpuint(off, !=, 0);
	return off;
}

uint32_t sq_reg(struct sq_card *c, uint32_t off)
{
	return qtest_readl(c->qts, c->regs + off);
}

void sq_set_reg(struct sq_card *c, uint32_t off, uint32_t v)
{
	qtest_writel(c->qts, c->regs + off, v);
}

void sq_msi(struct sq_card *c, uint64_t addr, uint16_t data, unsigned int order)
{
	sq_writel(c, 0x50 + PCI_MSI_ADDRESS_LO, addr);
	sq_writel(c, 0x50 + PCI_MSI_ADDRESS_HI, addr >> 32);
	sq_writew(c, 0x50 + PCI_MSI_DATA_64, data);
	sq_writew(c, 0x50 + PCI_MSI_FLAGS, PCI_MSI_FLAGS_ENABLE | order << 4);
}

/* --- Test firmware ---------------------------------------------------------------------------- */

enum { X0, X5 = 5, X6, X7, X8, X9, X10 };

static uint32_t rv_i(unsigned int op, unsigned int f3, unsigned int rd, unsigned int rs1, int imm)
{
	return (uint32_t)imm << 20 | rs1 << 15 | f3 << 12 | rd << 7 | op;
}

static uint32_t rv_addi(unsigned int rd, unsigned int rs1, int imm)
{
	return rv_i(0x13, 0, rd, rs1, imm);
}

static uint32_t rv_lw(unsigned int rd, unsigned int rs1, int off)
{
	return rv_i(0x03, 2, rd, rs1, off);
}

static uint32_t rv_sw(unsigned int rs2, unsigned int rs1, unsigned int off)
{
	return (off >> 5) << 25 | rs2 << 20 | rs1 << 15 | 2 << 12 | (off & 0x1f) << 7 | 0x23;
}

static uint32_t rv_lui(unsigned int rd, uint32_t imm)
{
	return imm | rd << 7 | 0x37;
}

static uint32_t rv_csrw(unsigned int csr, unsigned int rs1)
{
	return csr << 20 | rs1 << 15 | 1 << 12 | 0x73;
}

/* beq and bne: off in bytes from the instruction itself. */
static uint32_t rv_b(unsigned int f3, unsigned int rs1, unsigned int rs2, int off)
{
	uint32_t o = off;

	return (o >> 12 & 1) << 31 | (o >> 5 & 0x3f) << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 |
	       (o >> 1 & 0xf) << 8 | (o >> 11 & 1) << 7 | 0x63;
}

#define RV_WFI		 0x10500073u
#define RV_ADD(rd, a, b) ((b) << 20 | (a) << 15 | (rd) << 7 | 0x33u)

/* Host register to core register. */
static size_t emit_host_reg(uint32_t *p, unsigned int rd, uint32_t reg)
{
	p[0] = rv_addi(X7, X0, reg);
	p[1] = rv_sw(X7, X5, MCU_HOST_REG);
	p[2] = rv_lw(rd, X5, MCU_HOST_REG_VALUE);
	return 3;
}

/*
 * Sleeps until the host writes MBOX_CMD_TAIL. FW_LEN is the operation (0 store, else load into
 * BOOT_PROGRESS), FW_ADDR the offset on the core's bus, FW_ADDR + 4 the value; MBOX_CMD_HEAD
 * follows MBOX_CMD_TAIL when it is done.
 */
static size_t agent(uint32_t *p)
{
	size_t n = 0, loop, branch;

	p[n++] = rv_lui(X5, SPYRE_MCU_MMIO_BASE);
	p[n++] = rv_addi(X6, X0, MCU_IRQ_MBOX);
	p[n++] = rv_sw(X6, X5, MCU_IRQ_ENABLE);
	p[n++] = rv_lui(X7, 0x1000);
	p[n++] = rv_i(0x13, 5, X7, X7, 1); /* srli: 0x800, MEIE */
	p[n++] = rv_csrw(0x304, X7);	   /* mie; mstatus.MIE stays off */
	p[n++] = rv_addi(X7, X0, SPYRE_STATE_ONLINE);
	p[n++] = rv_sw(X7, X5, MCU_STATE);
	loop = n;
	p[n++] = rv_lw(X6, X5, MCU_IRQ_PENDING);
	p[n++] = rv_i(0x13, 7, X6, X6, MCU_IRQ_MBOX); /* andi */
	p[n++] = rv_b(1, X6, X0, 12);		      /* bne: over the sleep */
	p[n++] = RV_WFI;
	p[n] = rv_b(0, X0, X0, ((int)loop - (int)n) * 4);
	n++;
	p[n++] = rv_sw(X6, X5, MCU_IRQ_CLEAR);
	n += emit_host_reg(p + n, X8, SPYRE_REG_FW_LEN);
	n += emit_host_reg(p + n, X9, SPYRE_REG_FW_ADDR);
	n += emit_host_reg(p + n, X10, SPYRE_REG_FW_ADDR + 4);
	p[n++] = RV_ADD(X9, X9, X5);
	branch = n++;
	p[n++] = rv_lw(X10, X9, 0);
	p[n++] = rv_sw(X10, X5, MCU_BOOT_PROGRESS);
	p[n++] = rv_b(0, X0, X0, 8);
	p[branch] = rv_b(0, X8, X0, ((int)n - (int)branch) * 4); /* beq: store */
	p[n++] = rv_sw(X10, X9, 0);
	n += emit_host_reg(p + n, X10, SPYRE_REG_MBOX_CMD_TAIL);
	p[n++] = rv_sw(X10, X5, MCU_CMD_HEAD);
	p[n] = rv_b(0, X0, X0, ((int)loop - (int)n) * 4);
	n++;
	return n * 4;
}

size_t sq_image(uint8_t *buf, size_t size)
{
	struct spyre_fw_header h = {
		.magic = SPYRE_FW_MAGIC,
		.header_size = SPYRE_FW_HEADER_SIZE,
		.load_addr = SPYRE_MCU_RAM_BASE,
		.entry = SPYRE_MCU_RAM_BASE,
		.hw_major = SPYRE_HWVER_MAJOR,
		.proto_major = SPYRE_PROTO_MAJOR,
		.proto_minor = SPYRE_PROTO_MINOR,
		.version = "qtest",
	};
	uint32_t code[128];
	gsize dlen = sizeof(h.digest);
	GChecksum *sum;

	h.image_size = agent(code);
	g_assert_cmpuint(sizeof(h) + h.image_size, <=, size);
	sum = g_checksum_new(G_CHECKSUM_SHA256);
	g_checksum_update(sum, (const guchar *)&h, sizeof(h));
	g_checksum_update(sum, (const guchar *)code, h.image_size);
	g_checksum_get_digest(sum, h.digest, &dlen);
	g_checksum_free(sum);
	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h), code, h.image_size);
	return sizeof(h) + h.image_size;
}

uint32_t sq_boot_image(struct sq_card *c, const void *image, size_t len, uint64_t addr)
{
	int64_t end = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
	uint32_t status;

	qtest_memwrite(c->qts, c->aperture + addr, image, len);
	sq_set_reg(c, SPYRE_REG_MCU_CTRL, 0);
	sq_set_reg(c, SPYRE_REG_FW_ADDR, addr);
	sq_set_reg(c, SPYRE_REG_FW_ADDR + 4, addr >> 32);
	sq_set_reg(c, SPYRE_REG_FW_LEN, len);
	sq_set_reg(c, SPYRE_REG_MCU_CTRL, SPYRE_MCU_CTRL_RUN);
	do {
		status = sq_reg(c, SPYRE_REG_BOOT_STATUS);
	} while (status == SPYRE_BOOT_IDLE && g_get_monotonic_time() < end);
	return status;
}

void sq_boot(struct sq_card *c)
{
	uint8_t image[1024];
	size_t len = sq_image(image, sizeof(image));

	g_assert_cmpuint(sq_boot_image(c, image, len, 0x10000), ==, SPYRE_BOOT_RUNNING);
	g_assert_cmpuint(sq_wait_reg(c, SPYRE_REG_STATE, SPYRE_STATE_ONLINE), ==,
			 SPYRE_STATE_ONLINE);
	c->calls = 0;
}

static void call(struct sq_card *c, uint32_t op, uint32_t off, uint32_t v)
{
	sq_set_reg(c, SPYRE_REG_FW_LEN, op);
	sq_set_reg(c, SPYRE_REG_FW_ADDR, off);
	sq_set_reg(c, SPYRE_REG_FW_ADDR + 4, v);
	sq_set_reg(c, SPYRE_REG_MBOX_CMD_TAIL, ++c->calls);
	g_assert_cmpuint(sq_wait_reg(c, SPYRE_REG_MBOX_CMD_HEAD, c->calls), ==, c->calls);
}

void sq_mcu_write(struct sq_card *c, uint32_t off, uint32_t v)
{
	call(c, 0, off, v);
}

uint32_t sq_mcu_read(struct sq_card *c, uint32_t off)
{
	call(c, 1, off, 0);
	return sq_reg(c, SPYRE_REG_BOOT_PROGRESS);
}

uint32_t sq_dma_store(struct sq_card *c, uint64_t addr, uint32_t v)
{
	sq_mcu_write(c, MCU_COPY_ADDR, addr);
	sq_mcu_write(c, MCU_COPY_ADDR + 4, addr >> 32);
	sq_mcu_write(c, MCU_WORD_DATA, v);
	sq_mcu_write(c, MCU_WORD_GO, MCU_SPACE_BUS | MCU_WORD_STORE32);
	return sq_mcu_read(c, MCU_COPY_STATUS);
}

uint32_t sq_dma_load(struct sq_card *c, uint64_t addr, uint32_t *v)
{
	uint32_t status;

	sq_mcu_write(c, MCU_COPY_ADDR, addr);
	sq_mcu_write(c, MCU_COPY_ADDR + 4, addr >> 32);
	sq_mcu_write(c, MCU_WORD_GO, MCU_SPACE_BUS | MCU_WORD_LOAD32);
	status = sq_mcu_read(c, MCU_COPY_STATUS);
	*v = sq_mcu_read(c, MCU_WORD_DATA);
	return status;
}

/* --- Contexts and engines --------------------------------------------------------------------- */

/* Card memory: tables, then what device addresses name. */
#define CTX_TABLE  0x100000ull
#define DMVA_TABLE 0x110000ull
#define HMVA_TABLE 0x120000ull
#define DMVA_MEM   0x4000000ull
#define CTX_PAGES  16u
#define CTX_ID	   1u

/* Where the test firmware has room, as offsets that its stores add to the start of the core's MMIO.
 */
#define JOB_ADDR      (SPYRE_MCU_RAM_BASE + 0x1000u)
#define COMPL_ADDR    (SPYRE_MCU_RAM_BASE + 0x2000u)
#define RAM_OFF(addr) ((uint32_t)((addr)-SPYRE_MCU_MMIO_BASE))

void sq_context(struct sq_card *c, uint64_t host)
{
	struct spyre_context_table t = { 0 };
	uint64_t pte[CTX_PAGES];
	unsigned int i;

	t.dmva[0].table = DMVA_TABLE;
	t.dmva[0].pages = CTX_PAGES;
	t.hmva[0].table = HMVA_TABLE;
	t.hmva[0].pages = CTX_PAGES;
	qtest_memwrite(c->qts, c->aperture + CTX_TABLE, &t, sizeof(t));
	for (i = 0; i < CTX_PAGES; i++)
		pte[i] = (DMVA_MEM + i * SPYRE_PAGE_SIZE) | SPYRE_PTE_VALID | SPYRE_PTE_WRITE;
	qtest_memwrite(c->qts, c->aperture + DMVA_TABLE, pte, sizeof(pte));
	for (i = 0; i < CTX_PAGES; i++)
		pte[i] = (host + i * SPYRE_PAGE_SIZE) | SPYRE_PTE_VALID | SPYRE_PTE_WRITE |
			 SPYRE_PTE_LEAF;
	qtest_memwrite(c->qts, c->aperture + HMVA_TABLE, pte, sizeof(pte));

	sq_mcu_write(c, MCU_CTX_TABLE, CTX_TABLE);
	sq_mcu_write(c, MCU_CTX_TABLE + 4, 0);
	sq_mcu_write(c, MCU_CTX_SELECT, CTX_ID | MCU_CTX_SET);
	g_assert_cmpuint(sq_mcu_read(c, MCU_CTX_STATUS), ==, 0);
}

static unsigned int engine_of(struct sq_card *c, enum mcu_engine_kind kind)
{
	unsigned int e, n = sq_mcu_read(c, MCU_ENGINES);

	for (e = 0; e < n; e++) {
		if (sq_mcu_read(c, MCU_ENG_KIND(e)) == kind)
			return e;
	}
	g_error("the card has no engine of kind %d", kind);
}

void sq_start_copy(struct sq_card *c, enum mcu_engine_kind kind, uint64_t bytes)
{
	struct spyre_cb cb = {
		.type = kind == MCU_ENGINE_DMI ? SPYRE_CB_DMAI : SPYRE_CB_DMAO,
		.u.dma = { .bytes = bytes, .ndims = 1 },
	};
	struct mcu_job job = { .context = CTX_ID, .tag = 1 };
	unsigned int e = engine_of(c, kind), i;
	uint32_t words[sizeof(job) / 4];

	memcpy(job.cb, &cb, sizeof(cb));
	memcpy(words, &job, sizeof(job));
	for (i = 0; i < ARRAY_SIZE(words); i++)
		sq_mcu_write(c, RAM_OFF(JOB_ADDR) + 4 * i, words[i]);
	sq_mcu_write(c, MCU_ENG_START(e), JOB_ADDR);
}

bool sq_engine_busy(struct sq_card *c, enum mcu_engine_kind kind)
{
	return sq_mcu_read(c, MCU_ENG_STATUS(engine_of(c, kind)));
}

uint32_t sq_copy_status(struct sq_card *c)
{
	int64_t end = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;

	/* Completion is announced on the virtual clock. */
	do {
		qtest_clock_step(c->qts, 1000000);
		sq_mcu_write(c, MCU_COMPL_POP, COMPL_ADDR);
		if (sq_mcu_read(c, MCU_COMPL_VALID))
			return sq_mcu_read(c, RAM_OFF(COMPL_ADDR) +
						      offsetof(struct mcu_completion, rb) +
						      offsetof(struct spyre_rb, status));
	} while (g_get_monotonic_time() < end);
	g_error("the copy does not end");
}

/* --- Waiting, properties ---------------------------------------------------------------------- */

uint32_t sq_wait_mem(QTestState *qts, uint64_t addr, uint32_t v)
{
	int64_t end = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
	uint32_t got;

	do {
		got = qtest_readl(qts, addr);
	} while (got != v && g_get_monotonic_time() < end);
	return got;
}

uint32_t sq_wait_reg(struct sq_card *c, uint32_t off, uint32_t v)
{
	return sq_wait_mem(c->qts, c->regs + off, v);
}

static QDict *qom_get(struct sq_card *c, const char *name)
{
	g_autofree char *path = g_strdup_printf("/machine/peripheral/%s", c->id);
	QDict *r = qtest_qmp(c->qts,
			     "{'execute': 'qom-get', 'arguments': {'path': %s, 'property': %s}}",
			     path, name);

	if (!qdict_haskey(r, "return"))
		g_error("property %s cannot be read", name);
	return r;
}

uint64_t sq_prop(struct sq_card *c, const char *name)
{
	QDict *r = qom_get(c, name);
	uint64_t v = qdict_get_int(r, "return");

	qobject_unref(r);
	return v;
}

char *sq_state(struct sq_card *c)
{
	QDict *r = qom_get(c, "state");
	char *s = g_strdup(qdict_get_str(r, "return"));

	qobject_unref(r);
	return s;
}

void sq_inject(struct sq_card *c, const char *name, uint64_t arg)
{
	g_autofree char *path = g_strdup_printf("/machine/peripheral/%s", c->id);

	qtest_qmp_assert_success(c->qts,
				 "{'execute': 'qom-set', 'arguments': "
				 "{'path': %s, 'property': %s, 'value': %" PRIu64 "}}",
				 path, name, arg);
}
