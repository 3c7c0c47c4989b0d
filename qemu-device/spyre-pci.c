/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PCI front of the Spyre card: identity, capabilities, BARs, interrupts, reset, life.
 *
 * Identity, BARs and the offsets of the capabilities are those of a real card. What it has and this
 * one has not: SR-IOV. The contents of its two vendor-specific capabilities are not public; they
 * are in their places and read as zero.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "hw/hotplug.h"
#include "hw/pci/msi.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_port.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "hw/resettable.h"
#include "migration/vmstate.h"
#include "system/cpu-timers.h"
#include "system/runstate.h"

#include "spyre.h"
#include "trace.h"

/* Configuration space as the real card lays it out. */
#define CAP_PM	    0x40
#define CAP_MSI	    0x50
#define CAP_EXP	    0x70
#define EXT_AER	    0x100
#define EXT_ARI	    0x148
#define EXT_SECPCI  0x158
#define EXT_PL_16GT 0x188
#define EXT_MARGIN  0x1b8
#define EXT_PL_32GT 0x200
#define EXT_VSEC2   0x270
#define EXT_VSEC1   0x370
#define EXT_DLF	    0x3a8

#define EXT_CAP_ID_MARGIN 0x27 /* Lane Margining at the Receiver */
#define EXT_SECPCI_SIZE	  0x2c /* 12 and 2 bytes for each of 16 lanes */
#define EXT_PL_SIZE	  0x30 /* 32 and 1 byte for each of 16 lanes */
#define EXT_MARGIN_SIZE	  0x48 /* 8 and 4 bytes for each of 16 lanes */
#define EXT_VSEC2_SIZE	  0x100
#define EXT_VSEC1_SIZE	  0x38
#define EXT_DLF_SIZE	  0xc

#define DEVCAP_MPS_512	       2u
#define DEVCAP_POWER_75W       (75u << 18) /* captured slot power limit, scale 1 */
#define DEVCAP2_10BIT_TAG_COMP (1u << 16)
#define LNKCAP_L1_64US	       (6u << 15)
#define LNKSTA2_EQUALIZED      0x1e
#define PL_EQUALIZED	       0xf
#define PM_CAP_VER_3	       3
#define DEVCTL_DEFAULT \
	(PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B)
#define DEVCTL_WRITABLE                                                              \
	(PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_PAYLOAD | PCI_EXP_DEVCTL_EXT_TAG | \
	 PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ)

/* At most this many messages of the model reach the terminal in one window of real time. */
#define LOG_WINDOW_NS (10 * NANOSECONDS_PER_SECOND)
#define LOG_BURST     10

/* --- Operations of the model ------------------------------------------------------------------ */

static int64_t spyre_clock_ns(void *opaque)
{
	return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void spyre_timer_mod(void *opaque, int64_t ns)
{
	SpyreState *s = opaque;

	if (ns == INT64_MAX || qatomic_read(&s->dead))
		timer_del(s->timer);
	else
		timer_mod_ns(s->timer, ns);
}

static void spyre_raise(void *opaque, unsigned int v)
{
	SpyreState *s = opaque;

	if (v >= SPYRE_MSI_VECTORS || qatomic_read(&s->dead))
		return;
	qatomic_or(&s->irq_pending, 1u << v);
	/* Bottom halves run when the host comes to it: only virtual time has an order that repeats. */
	if (s->sliced)
		timer_mod_ns(s->raise_timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
	else
		qemu_bh_schedule(s->irq_bh);
}

static void spyre_log(void *opaque, enum spyre_log_level level, const char *text)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	SpyreState *s = opaque;
	unsigned int suppressed = 0;
	int64_t now;
	bool show;

	trace_spyre_log(s->name, names[MIN(level, SPYRE_LOG_DEBUG)], text);
	if (level > SPYRE_LOG_WARN)
		return;
	qemu_log_mask(LOG_GUEST_ERROR, "%s: %s\n", s->name, text);
	if (level > SPYRE_LOG_ERROR)
		return;
	now = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
	WITH_QEMU_LOCK_GUARD(&s->log_lock) {
		if (now - s->log_window >= LOG_WINDOW_NS) {
			suppressed = s->log_suppressed;
			s->log_window = now;
			s->log_count = 0;
			s->log_suppressed = 0;
		}
		show = s->log_count < LOG_BURST;
		if (show)
			s->log_count++;
		else
			s->log_suppressed++;
	}
	if (suppressed)
		warn_report("%s: %u more messages were not shown; trace event spyre_log has all",
			    s->name, suppressed);
	if (show)
		warn_report("%s: %s", s->name, text);
}

static void spyre_trace(void *opaque, enum spyre_trace what, uint64_t a, uint64_t b, uint64_t c,
			uint64_t d)
{
	SpyreState *s = opaque;

	switch (what) {
	case SPYRE_TRACE_MMIO_READ:
		trace_spyre_mmio_read(s->name, a, b, c);
		break;
	case SPYRE_TRACE_MMIO_WRITE:
		trace_spyre_mmio_write(s->name, a, b, c);
		break;
	case SPYRE_TRACE_DOORBELL:
		trace_spyre_doorbell(s->name, a, b);
		break;
	case SPYRE_TRACE_BOOT:
		trace_spyre_boot(s->name, a, b, c);
		break;
	case SPYRE_TRACE_STATE:
		trace_spyre_state(s->name, spyre_state_name(a), spyre_state_name(b));
		break;
	case SPYRE_TRACE_ENGINE_START:
		trace_spyre_engine_start(s->name, a, b, c, d);
		break;
	case SPYRE_TRACE_ENGINE_DONE:
		trace_spyre_engine_done(s->name, a, b, c, d);
		break;
	case SPYRE_TRACE_IRQ:
		trace_spyre_irq(s->name, a);
		break;
	case SPYRE_TRACE_RESET:
		trace_spyre_model_reset(s->name, a, b);
		break;
	case SPYRE_TRACE_FAULT:
		trace_spyre_fault(s->name, a, b, c, d);
		break;
	case SPYRE_TRACE_CTX:
		trace_spyre_context(s->name, a, b);
		break;
	}
}

static void spyre_inconsistent(void *opaque, const char *text)
{
	SpyreState *s = opaque;

	spyre_log(s, SPYRE_LOG_ERROR, text);
	if (s->on_error == SPYRE_ON_ERROR_REPORT || qatomic_read(&s->dead))
		return;
	qatomic_inc(&s->errors);
	qemu_bh_schedule(s->error_bh);
}

static const struct spyre_host_ops host_ops = {
	.dma_map = spyre_dma_map,
	.clock_ns = spyre_clock_ns,
	.timer_mod = spyre_timer_mod,
	.raise = spyre_raise,
	.log = spyre_log,
	.trace = spyre_trace,
	.inconsistent = spyre_inconsistent,
};

/* --- Bottom halves and timers: the big lock is held ------------------------------------------ */

static void spyre_irq_bh(void *opaque)
{
	SpyreState *s = opaque;
	PCIDevice *pdev = PCI_DEVICE(s);
	uint32_t pending;
	unsigned int v, enabled;

	if (qatomic_read(&s->dead) || s->irq_held)
		return;
	if (s->irq_delay && qatomic_read(&s->irq_pending)) {
		s->irq_held = true;
		timer_mod_ns(s->irq_timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + s->irq_delay);
		s->irq_delay = 0;
		return;
	}
	pending = qatomic_xchg(&s->irq_pending, 0);
	if (!pending)
		return;
	if (!msi_enabled(pdev) || s->removed) {
		trace_spyre_msi_dropped(s->name, pending);
		return;
	}
	enabled = msi_nr_vectors_allocated(pdev);
	for (v = 0; v < SPYRE_MSI_VECTORS; v++) {
		if (!(pending & (1u << v)))
			continue;
		trace_spyre_msi_notify(s->name, v, v < enabled ? v : 0);
		msi_notify(pdev, v < enabled ? v : 0);
	}
}

static void spyre_irq_timer(void *opaque)
{
	SpyreState *s = opaque;

	s->irq_held = false;
	spyre_irq_bh(s);
}

static void spyre_card_timer_cb(void *opaque)
{
	SpyreState *s = opaque;

	if (!qatomic_read(&s->dead))
		spyre_card_timer(s->card);
}

static void spyre_error_bh(void *opaque)
{
	SpyreState *s = opaque;

	if (!qatomic_xchg(&s->errors, 0) || qatomic_read(&s->dead))
		return;
	if (s->on_error == SPYRE_ON_ERROR_HALT_CARD) {
		spyre_card_inject(s->card, SPYRE_FAULT_FW_HANG, 0);
		return;
	}
	error_report("%s: stopping the machine, as on-error=stop-vm asks", s->name);
	qemu_system_vmstop_request_prepare();
	qemu_system_vmstop_request(RUN_STATE_INTERNAL_ERROR);
}

/* --- BARs ------------------------------------------------------------------------------------- */

static uint64_t spyre_regs_read(void *opaque, hwaddr addr, unsigned int size)
{
	SpyreState *s = opaque;

	return s->removed ? UINT64_MAX : spyre_card_mmio_read(s->card, addr, size);
}

static void spyre_regs_write(void *opaque, hwaddr addr, uint64_t val, unsigned int size)
{
	SpyreState *s = opaque;

	if (!s->removed)
		spyre_card_mmio_write(s->card, addr, val, size);
}

static uint64_t spyre_db_read(void *opaque, hwaddr addr, unsigned int size)
{
	SpyreState *s = opaque;

	return s->removed ? UINT64_MAX : spyre_card_db_read(s->card, addr, size);
}

static void spyre_db_write(void *opaque, hwaddr addr, uint64_t val, unsigned int size)
{
	SpyreState *s = opaque;

	if (likely(!s->removed))
		spyre_card_db_write(s->card, addr, val, size);
}

static uint64_t spyre_beyond_read(void *opaque, hwaddr addr, unsigned int size)
{
	SpyreState *s = opaque;

	if (!s->removed) {
		trace_spyre_aperture_bad(s->name, addr, size, false);
		spyre_card_aperture_bad(s->card);
	}
	return UINT64_MAX;
}

static void spyre_beyond_write(void *opaque, hwaddr addr, uint64_t val, unsigned int size)
{
	SpyreState *s = opaque;

	if (!s->removed) {
		trace_spyre_aperture_bad(s->name, addr, size, true);
		spyre_card_aperture_bad(s->card);
	}
}

/* The model judges widths and alignment, so everything reaches it as the guest made it. */
#define SPYRE_ACCESS                                                          \
	{                                                                     \
		.min_access_size = 1, .max_access_size = 8, .unaligned = true \
	}

static const MemoryRegionOps spyre_regs_ops = {
	.read = spyre_regs_read,
	.write = spyre_regs_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = SPYRE_ACCESS,
	.impl = SPYRE_ACCESS,
};

static const MemoryRegionOps spyre_db_ops = {
	.read = spyre_db_read,
	.write = spyre_db_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = SPYRE_ACCESS,
	.impl = SPYRE_ACCESS,
};

static const MemoryRegionOps spyre_beyond_ops = {
	.read = spyre_beyond_read,
	.write = spyre_beyond_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = SPYRE_ACCESS,
	.impl = SPYRE_ACCESS,
};

static void spyre_init_bars(SpyreState *s)
{
	const uint8_t type = PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
	PCIDevice *pdev = PCI_DEVICE(s);
	uint64_t populated = spyre_card_aperture(s->card);
	Object *obj = OBJECT(s);

	memory_region_init(&s->regs, obj, "spyre-bar0", SPYRE_BAR_REGS_SIZE);
	memory_region_init_io(&s->regs_io, obj, &spyre_regs_ops, s, "spyre-regs",
			      SPYRE_REGS_DOORBELLS);
	memory_region_init_io(&s->regs_doorbells, obj, &spyre_db_ops, s, "spyre-regs-doorbells",
			      SPYRE_BAR_REGS_SIZE - SPYRE_REGS_DOORBELLS);
	memory_region_add_subregion(&s->regs, 0, &s->regs_io);
	memory_region_add_subregion(&s->regs, SPYRE_REGS_DOORBELLS, &s->regs_doorbells);
	pci_register_bar(pdev, SPYRE_BAR_REGS, type, &s->regs);

	memory_region_init(&s->aperture_bar, obj, "spyre-bar2", s->aperture);
	memory_region_init_io(&s->aperture_beyond, obj, &spyre_beyond_ops, s, "spyre-beyond",
			      s->aperture);
	memory_region_add_subregion(&s->aperture_bar, 0, &s->aperture_beyond);
	if (s->memdev)
		memory_region_init_alias(&s->aperture_ram, obj, "spyre-aperture",
					 host_memory_backend_get_memory(s->memdev), 0, populated);
	else
		memory_region_init_ram_ptr(&s->aperture_ram, obj, "spyre-aperture", populated,
					   spyre_card_memory(s->card));
	memory_region_add_subregion_overlap(&s->aperture_bar, 0, &s->aperture_ram, 1);
	pci_register_bar(pdev, SPYRE_BAR_APERTURE, type, &s->aperture_bar);

	memory_region_init_io(&s->doorbells, obj, &spyre_db_ops, s, "spyre-doorbells",
			      SPYRE_BAR_DOORBELLS_SIZE);
	pci_register_bar(pdev, SPYRE_BAR_DOORBELLS, type, &s->doorbells);
}

/* A region inside a container holds a reference on its owner, which here is the card itself. */
static void spyre_exit_bars(SpyreState *s)
{
	memory_region_del_subregion(&s->regs, &s->regs_io);
	memory_region_del_subregion(&s->regs, &s->regs_doorbells);
	memory_region_del_subregion(&s->aperture_bar, &s->aperture_ram);
	memory_region_del_subregion(&s->aperture_bar, &s->aperture_beyond);
}

/* --- Configuration space ---------------------------------------------------------------------- */

static void spyre_init_exp(PCIDevice *pdev)
{
	uint8_t *exp = pdev->config + pdev->exp.exp_cap;
	uint8_t *mask = pdev->wmask + pdev->exp.exp_cap;

	pcie_cap_deverr_init(pdev);
	pcie_cap_flr_init(pdev);
	pcie_cap_fill_link_ep_usp(pdev, QEMU_PCI_EXP_LNK_X16, QEMU_PCI_EXP_LNK_32GT);

	pci_long_test_and_set_mask(exp + PCI_EXP_DEVCAP,
				   DEVCAP_MPS_512 | PCI_EXP_DEVCAP_EXT_TAG | DEVCAP_POWER_75W);
	pci_set_word(exp + PCI_EXP_DEVCTL, DEVCTL_DEFAULT);
	pci_word_test_and_set_mask(mask + PCI_EXP_DEVCTL, DEVCTL_WRITABLE);
	pci_long_test_and_clear_mask(exp + PCI_EXP_LNKCAP,
				     PCI_EXP_LNKCAP_ASPMS | PCI_EXP_LNKCAP_L1EL);
	pci_long_test_and_set_mask(exp + PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_ASPM_L1 | LNKCAP_L1_64US);
	pci_word_test_and_set_mask(mask + PCI_EXP_LNKCTL,
				   PCI_EXP_LNKCTL_ASPM_L1 | PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_ES);
	pci_long_test_and_set_mask(exp + PCI_EXP_DEVCAP2, DEVCAP2_10BIT_TAG_COMP);
	pci_word_test_and_set_mask(exp + PCI_EXP_LNKSTA2, LNKSTA2_EQUALIZED);
}

static void spyre_add_vsec(PCIDevice *pdev, uint16_t offset, uint16_t size, unsigned int id,
			   unsigned int rev)
{
	pcie_add_capability(pdev, PCI_EXT_CAP_ID_VNDR, 1, offset, size);
	pci_set_long(pdev->config + offset + PCI_VNDR_HEADER,
		     id | rev << 16 | (uint32_t)size << 20);
}

static bool spyre_init_config(SpyreState *s, Error **errp)
{
	PCIDevice *pdev = PCI_DEVICE(s);
	int pos;

	/* The pin is there as on the real card; interrupts are messages or nothing. */
	pci_config_set_interrupt_pin(pdev->config, 1);

	/* The list is built from its end, so that it reads 40, 50, 70. */
	pos = pcie_endpoint_cap_init(pdev, CAP_EXP);
	if (pos < 0) {
		error_setg(errp, "cannot add the PCI Express capability");
		return false;
	}
	spyre_init_exp(pdev);

	if (msi_init(pdev, CAP_MSI, SPYRE_MSI_VECTORS, true, true, errp) < 0)
		return false;

	pos = pci_pm_init(pdev, CAP_PM, errp);
	if (pos < 0)
		return false;
	pci_set_word(pdev->config + pos + PCI_PM_PMC, PM_CAP_VER_3);
	pci_set_word(pdev->config + pos + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
	pci_set_word(pdev->wmask + pos + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);

	if (pcie_aer_init(pdev, PCI_ERR_VER, EXT_AER, PCI_ERR_SIZEOF, errp) < 0)
		return false;
	pcie_ari_init(pdev, EXT_ARI);
	pcie_add_capability(pdev, PCI_EXT_CAP_ID_SECPCI, 1, EXT_SECPCI, EXT_SECPCI_SIZE);
	pcie_add_capability(pdev, PCI_EXT_CAP_ID_PL_16GT, 1, EXT_PL_16GT, EXT_PL_SIZE);
	pci_set_long(pdev->config + EXT_PL_16GT + 0xc, PL_EQUALIZED);
	pcie_add_capability(pdev, EXT_CAP_ID_MARGIN, 1, EXT_MARGIN, EXT_MARGIN_SIZE);
	pcie_add_capability(pdev, PCI_EXT_CAP_ID_PL_32GT, 1, EXT_PL_32GT, EXT_PL_SIZE);
	pci_set_long(pdev->config + EXT_PL_32GT + 0xc, PL_EQUALIZED);
	spyre_add_vsec(pdev, EXT_VSEC2, EXT_VSEC2_SIZE, 2, 4);
	spyre_add_vsec(pdev, EXT_VSEC1, EXT_VSEC1_SIZE, 1, 1);
	pcie_add_capability(pdev, PCI_EXT_CAP_ID_DLF, 1, EXT_DLF, EXT_DLF_SIZE);
	pci_set_long(pdev->config + EXT_DLF + PCI_DLF_CAP, PCI_DLF_EXCHANGE_ENABLE | 1);
	return true;
}

/* What config space says about mastering now. */
static void spyre_update_master(SpyreState *s)
{
	PCIDevice *pdev = PCI_DEVICE(s);
	bool d0 = !(pci_get_word(pdev->config + CAP_PM + PCI_PM_CTRL) & PCI_PM_CTRL_STATE_MASK);
	bool on = pci_get_word(pdev->config + PCI_COMMAND) & PCI_COMMAND_MASTER;

	spyre_dma_allow(s, on && d0 && !s->removed);
}

static uint32_t spyre_config_read(PCIDevice *pdev, uint32_t addr, int len)
{
	if (SPYRE(pdev)->removed)
		return UINT32_MAX;
	return pci_default_read_config(pdev, addr, len);
}

static void spyre_config_write(PCIDevice *pdev, uint32_t addr, uint32_t val, int len)
{
	SpyreState *s = SPYRE(pdev);

	if (s->removed)
		return;
	pci_default_write_config(pdev, addr, val, len);
	spyre_update_master(s);
	pcie_aer_write_config(pdev, addr, val, len);
	/* May reset the card, so it comes last. */
	pcie_cap_flr_write_config(pdev, addr, val, len);
}

/* --- Faults of link and slot ------------------------------------------------------------------ */

void spyre_surprise_removal(SpyreState *s)
{
	PCIDevice *pdev = PCI_DEVICE(s), *port;
	uint8_t *exp;

	if (s->removed)
		return;
	trace_spyre_surprise_removal(s->name);
	s->removed = true;
	spyre_dma_allow(s, false);
	memory_region_set_enabled(&s->aperture_ram, false);

	/*
	 * The port notices: nobody present, link down. It has no event for the link: QEMU's ports
	 * never set that bit and so have no way for the guest to clear it.
	 */
	port = pci_bridge_get_device(pci_get_bus(pdev));
	if (!port || !object_dynamic_cast(OBJECT(port), TYPE_PCIE_SLOT))
		return;
	exp = port->config + port->exp.exp_cap;
	pci_word_test_and_clear_mask(exp + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_DLLLA);
	pci_word_test_and_clear_mask(exp + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDS);
	pci_word_test_and_set_mask(exp + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDC);
	/* A write that changes nothing makes the port look at its events and interrupt. */
	port->config_write(port, port->exp.exp_cap + PCI_EXP_SLTCTL,
			   pci_get_word(exp + PCI_EXP_SLTCTL), 2);
}

bool spyre_train_link(SpyreState *s, unsigned int speed, unsigned int width, Error **errp)
{
	PCIDevice *pdev = PCI_DEVICE(s);
	uint8_t *sta = pdev->config + pdev->exp.exp_cap + PCI_EXP_LNKSTA;

	if (speed < QEMU_PCI_EXP_LNK_2_5GT || speed > QEMU_PCI_EXP_LNK_32GT) {
		error_setg(errp, "link speed %u is not one of 1 (2.5 GT/s) to 5 (32 GT/s)", speed);
		return false;
	}
	if (width != 1 && width != 2 && width != 4 && width != 8 && width != 16) {
		error_setg(errp, "link width %u is not one of 1, 2, 4, 8, 16 lanes", width);
		return false;
	}
	pci_word_test_and_clear_mask(sta, PCI_EXP_LNKSTA_CLS | PCI_EXP_LNKSTA_NLW);
	pci_word_test_and_set_mask(sta,
				   QEMU_PCI_EXP_LNKSTA_CLS(speed) | QEMU_PCI_EXP_LNKSTA_NLW(width));
	return true;
}

bool spyre_inject_aer(SpyreState *s, const char *severity, Error **errp)
{
	PCIDevice *pdev = PCI_DEVICE(s);
	PCIEAERErr err = { .source_id = pci_requester_id(pdev) };
	uint8_t *sever = pdev->config + EXT_AER + PCI_ERR_UNCOR_SEVER;
	uint8_t *lnkcap = pdev->config + pdev->exp.exp_cap + PCI_EXP_LNKCAP;
	uint32_t link = pci_get_long(lnkcap);
	int ret;

	if (!strcmp(severity, "correctable")) {
		err.status = PCI_ERR_COR_RCVR;
		err.flags = PCIE_AER_ERR_IS_CORRECTABLE;
	} else if (!strcmp(severity, "non-fatal")) {
		err.status = PCI_ERR_UNC_COMP_TIME;
	} else if (!strcmp(severity, "fatal")) {
		err.status = PCI_ERR_UNC_DLP;
	} else {
		error_setg(errp, "'%s' is not one of correctable, non-fatal, fatal", severity);
		return false;
	}
	/* The guest decides what is fatal; make it what was asked for. */
	if (!(err.flags & PCIE_AER_ERR_IS_CORRECTABLE)) {
		if (!strcmp(severity, "fatal"))
			pci_long_test_and_set_mask(sever, err.status);
		else
			pci_long_test_and_clear_mask(sever, err.status);
	}
	ret = pcie_aer_inject_error(pdev, &err);
	/* QEMU stores the 16 bits of the device status as 32, and so over the link's capabilities. */
	pci_set_long(lnkcap, link);
	if (ret < 0) {
		error_setg_errno(errp, -ret, "the error could not be reported");
		return false;
	}
	return true;
}

void spyre_delay_irq(SpyreState *s, uint64_t ns)
{
	s->irq_delay = ns;
}

/* --- Reset ------------------------------------------------------------------------------------ */

static void spyre_reset_enter(Object *obj, ResetType type)
{
	SpyreState *s = SPYRE(obj);

	qatomic_set(&s->irq_pending, 0);
	s->irq_held = false;
	s->irq_delay = 0;
	timer_del(s->irq_timer);
	timer_del(s->raise_timer);
}

static void spyre_reset_hold(Object *obj, ResetType type)
{
	SpyreState *s = SPYRE(obj);
	PCIDevice *pdev = PCI_DEVICE(obj);
	uint8_t *devctl = pdev->config + pdev->exp.exp_cap + PCI_EXP_DEVCTL;
	DeviceState *root = DEVICE(BUS(pci_device_root_bus(pdev))->parent);
	uint16_t old = pci_get_word(devctl);
	enum spyre_reset kind;
	const char *name;

	if (old & PCI_EXP_DEVCTL_BCR_FLR) {
		kind = SPYRE_RESET_FLR;
		name = "function-level reset";
	} else if (type == RESET_TYPE_WAKEUP) {
		kind = SPYRE_RESET_WAKEUP;
		name = "wake-up";
	} else if (root && device_is_in_reset(root)) {
		kind = SPYRE_RESET_COLD;
		name = "system reset";
	} else {
		kind = SPYRE_RESET_FLR;
		name = "bus reset";
	}
	trace_spyre_reset(s->name, name);

	/* Command is cleared by the PCI core, but only after this and without telling. */
	spyre_dma_allow(s, false);
	spyre_card_reset(s->card, kind);
	qatomic_set(&s->irq_pending, 0);

	/* A function-level reset leaves what both ends of the link must agree on. */
	pci_set_word(devctl,
		     DEVCTL_DEFAULT |
			     (old & (PCI_EXP_DEVCTL_BCR_FLR |
				     (old & PCI_EXP_DEVCTL_BCR_FLR ? PCI_EXP_DEVCTL_PAYLOAD : 0))));
	spyre_train_link(s, QEMU_PCI_EXP_LNK_32GT, QEMU_PCI_EXP_LNK_X16, NULL);
}

/* --- gdb -------------------------------------------------------------------------------------- */

static void spyre_gdb_send(void *opaque, const uint8_t *data, size_t len)
{
	SpyreState *s = opaque;

	if (qatomic_read(&s->dead))
		return;
	qemu_mutex_lock(&s->gdb_lock);
	g_byte_array_append(s->gdb_out, data, len);
	qemu_mutex_unlock(&s->gdb_lock);
	qemu_bh_schedule(s->gdb_bh);
}

static void spyre_gdb_bh(void *opaque)
{
	SpyreState *s = opaque;
	GByteArray *out;

	if (qatomic_read(&s->dead))
		return;
	qemu_mutex_lock(&s->gdb_lock);
	out = s->gdb_out;
	s->gdb_out = g_byte_array_new();
	qemu_mutex_unlock(&s->gdb_lock);
	if (out->len)
		qemu_chr_fe_write_all(&s->gdb, out->data, out->len);
	g_byte_array_free(out, true);
}

static int spyre_gdb_can_read(void *opaque)
{
	return 4096;
}

static void spyre_gdb_read(void *opaque, const uint8_t *buf, int size)
{
	SpyreState *s = opaque;

	spyre_card_gdb_receive(s->card, buf, size, spyre_gdb_send, s);
}

/* --- Life ------------------------------------------------------------------------------------- */

/* Whoever runs the card's slice holds the big lock and waits: nobody could ask the IOMMU. */
#define SPYRE_NO_IOMMU                                                             \
	"the card does not go with -icount behind a virtual IOMMU, whose answers " \
	"it could not wait for; start without the IOMMU, or without -icount"

static bool spyre_behind_iommu(SpyreState *s)
{
	return pci_device_iommu_address_space(PCI_DEVICE(s)) != &address_space_memory;
}

/* An IOMMU that comes later on the command line than the card takes its place only then. */
static void spyre_machine_done(Notifier *n, void *data)
{
	SpyreState *s = container_of(n, SpyreState, machine_done);

	if (!spyre_behind_iommu(s))
		return;
	error_report("%s: " SPYRE_NO_IOMMU, s->name);
	exit(EXIT_FAILURE);
}

static bool spyre_parse(SpyreState *s, struct spyre_card_config *cfg, Error **errp)
{
	static unsigned int count;
	size_t i;

	if (s->timing && strcmp(s->timing, "virtual") && strcmp(s->timing, "off")) {
		error_setg(errp, "property timing=%s is not one of virtual, off", s->timing);
		return false;
	}
	s->sliced = icount_enabled();
	if (s->sliced && s->timing && !strcmp(s->timing, "off")) {
		error_setg(errp,
			   "property timing=off does not go with -icount: completions have no time "
			   "then that could repeat; use timing=virtual, or start without -icount");
		return false;
	}
	if (s->sliced && spyre_behind_iommu(s)) {
		error_setg(errp, SPYRE_NO_IOMMU);
		return false;
	}
	if (s->accumulate && strcmp(s->accumulate, "fp32") && strcmp(s->accumulate, "dl16")) {
		error_setg(errp, "property accumulate=%s is not one of fp32, dl16", s->accumulate);
		return false;
	}
	if (s->check && strcmp(s->check, "none") && strcmp(s->check, "races")) {
		error_setg(errp, "property check=%s is not one of none, races", s->check);
		return false;
	}
	if (!s->on_error_text || !strcmp(s->on_error_text, "report")) {
		s->on_error = SPYRE_ON_ERROR_REPORT;
	} else if (!strcmp(s->on_error_text, "halt-card")) {
		s->on_error = SPYRE_ON_ERROR_HALT_CARD;
	} else if (!strcmp(s->on_error_text, "stop-vm")) {
		s->on_error = SPYRE_ON_ERROR_STOP_VM;
	} else {
		error_setg(errp, "property on-error=%s is not one of report, halt-card, stop-vm",
			   s->on_error_text);
		return false;
	}
	if (!s->serial)
		s->serial = g_strdup_printf("SPYRE-VM-%06u", ++count);
	if (!*s->serial || strlen(s->serial) > sizeof(cfg->serial)) {
		error_setg(errp, "property serial=%s has %zu characters, not 1 to %zu", s->serial,
			   strlen(s->serial), sizeof(cfg->serial));
		return false;
	}
	for (i = 0; s->serial[i]; i++) {
		if (!g_ascii_isgraph(s->serial[i])) {
			error_setg(errp,
				   "property serial= holds a character that is not printable ASCII "
				   "at position %zu",
				   i);
			return false;
		}
	}

	*cfg = (struct spyre_card_config){
		.memory = s->memory,
		.aperture = s->aperture,
		.mem_fd = -1,
		.threads = s->threads,
		.timing_off = s->timing && !strcmp(s->timing, "off"),
		.sliced = s->sliced,
		.soc_hz = s->soc_hz,
		.core_hz = s->core_hz,
		.mcu_hz = s->mcu_hz,
		.watchdog = s->watchdog,
		.accumulate_dl16 = s->accumulate && !strcmp(s->accumulate, "dl16"),
		.check_races = s->check && !strcmp(s->check, "races"),
		.cores = s->cores,
	};
	/* Not a string: all of its bytes may be used. */
	memcpy(cfg->serial, s->serial, strlen(s->serial));
	return true;
}

static bool spyre_use_memdev(SpyreState *s, struct spyre_card_config *cfg, Error **errp)
{
	uint64_t usable = s->memory / 8 * 7;
	g_autofree char *path = NULL;
	MemoryRegion *mr;

	if (host_memory_backend_is_mapped(s->memdev)) {
		path = host_memory_backend_get_name(s->memdev);
		error_setg(errp, "property memdev=%s is already in use by another device", path);
		return false;
	}
	mr = host_memory_backend_get_memory(s->memdev);
	if (memory_region_size(mr) != usable) {
		error_setg(errp,
			   "property memdev= has 0x%" PRIx64 " bytes, but memory=0x%" PRIx64
			   " needs 0x%" PRIx64 ": one eighth is ECC",
			   memory_region_size(mr), s->memory, usable);
		return false;
	}
	cfg->mem = memory_region_get_ram_ptr(mr);
	if (qemu_ram_is_shared(mr->ram_block))
		cfg->mem_fd = memory_region_get_fd(mr);
	host_memory_backend_set_mapped(s->memdev, true);
	/* The link's own reference goes before the card does. */
	object_ref(OBJECT(s->memdev));
	return true;
}

static void spyre_realize(PCIDevice *pdev, Error **errp)
{
	SpyreState *s = SPYRE(pdev);
	struct spyre_card_config cfg;
	char text[256];
	const char *bad;

	s->name = DEVICE(s)->id ? g_strdup(DEVICE(s)->id)
				: g_strdup_printf("spyre@%02x.%x", PCI_SLOT(pdev->devfn),
						  PCI_FUNC(pdev->devfn));
	if (!spyre_parse(s, &cfg, errp))
		return;
	bad = spyre_card_config_check(&cfg, text, sizeof(text));
	if (bad) {
		error_setg(errp, "property %s", bad);
		return;
	}
	if (s->memdev) {
		if (!spyre_use_memdev(s, &cfg, errp)) {
			s->memdev = NULL;
			return;
		}
	}

	s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, spyre_card_timer_cb, s);
	s->irq_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, spyre_irq_timer, s);
	s->raise_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, spyre_irq_bh, s);
	s->irq_bh = qemu_bh_new_guarded(spyre_irq_bh, s, &DEVICE(s)->mem_reentrancy_guard);
	s->error_bh = qemu_bh_new_guarded(spyre_error_bh, s, &DEVICE(s)->mem_reentrancy_guard);
	s->gdb_bh = qemu_bh_new_guarded(spyre_gdb_bh, s, &DEVICE(s)->mem_reentrancy_guard);
	s->card = spyre_card_new(&cfg, &host_ops, s);
	if (!s->card) {
		error_setg_errno(errp, errno,
				 "cannot make a card with memory=0x%" PRIx64 " and threads=%u",
				 s->memory, s->threads);
		return;
	}
	if (!spyre_add_counters(s, errp))
		return;
	if (!spyre_init_config(s, errp))
		return;
	spyre_init_bars(s);
	spyre_dma_realize(s);
	if (s->sliced) {
		s->machine_done.notify = spyre_machine_done;
		qemu_add_machine_init_done_notifier(&s->machine_done);
	}
	if (qemu_chr_fe_backend_connected(&s->gdb))
		qemu_chr_fe_set_handlers(&s->gdb, spyre_gdb_can_read, spyre_gdb_read, NULL, NULL, s,
					 NULL, true);
	trace_spyre_realize(s->name, s->memory, spyre_card_memory_size(s->card),
			    spyre_card_aperture(s->card));
}

static void spyre_exit(PCIDevice *pdev)
{
	SpyreState *s = SPYRE(pdev);

	trace_spyre_unrealize(s->name);
	if (s->sliced)
		qemu_remove_machine_init_done_notifier(&s->machine_done);
	if (qemu_chr_fe_backend_connected(&s->gdb))
		qemu_chr_fe_set_handlers(&s->gdb, NULL, NULL, NULL, NULL, NULL, NULL, false);
	spyre_dma_unrealize(s);
	spyre_card_reset(s->card, SPYRE_RESET_COLD);
	qatomic_set(&s->dead, true);
	timer_del(s->timer);
	timer_del(s->irq_timer);
	timer_del(s->raise_timer);
	spyre_exit_bars(s);
	pcie_aer_exit(pdev);
	msi_uninit(pdev);
	pcie_cap_exit(pdev);
}

static void spyre_instance_init(Object *obj)
{
	SpyreState *s = SPYRE(obj);

	spyre_dma_init(s);
	qemu_mutex_init(&s->log_lock);
	qemu_mutex_init(&s->gdb_lock);
	s->gdb_out = g_byte_array_new();
	s->log_window = -LOG_WINDOW_NS;
}

/*
 * The card goes only now: the RAM of BAR 2 is its memory, and other threads may look into the
 * region until its last reference is gone.
 */
static void spyre_instance_finalize(Object *obj)
{
	SpyreState *s = SPYRE(obj);

	qatomic_set(&s->dead, true);
	if (s->card)
		spyre_card_free(s->card);
	if (s->memdev) {
		host_memory_backend_set_mapped(s->memdev, false);
		object_unref(OBJECT(s->memdev));
	}
	if (s->timer) {
		timer_free(s->timer);
		timer_free(s->irq_timer);
		timer_free(s->raise_timer);
		qemu_bh_delete(s->irq_bh);
		qemu_bh_delete(s->error_bh);
		qemu_bh_delete(s->gdb_bh);
	}
	spyre_dma_finalize(s);
	g_byte_array_free(s->gdb_out, true);
	qemu_mutex_destroy(&s->gdb_lock);
	qemu_mutex_destroy(&s->log_lock);
	g_free(s->name);
}

static const VMStateDescription spyre_vmstate = {
	.name = "spyre",
	.unmigratable = 1,
};

static const Property spyre_properties[] = {
	DEFINE_PROP_SIZE("memory", SpyreState, memory, 16 * GiB),
	DEFINE_PROP_LINK("memdev", SpyreState, memdev, TYPE_MEMORY_BACKEND, HostMemoryBackend *),
	DEFINE_PROP_SIZE("aperture", SpyreState, aperture, SPYRE_BAR_APERTURE_SIZE),
	DEFINE_PROP_UINT32("threads", SpyreState, threads, 0),
	DEFINE_PROP_STRING("timing", SpyreState, timing),
	DEFINE_PROP_STRING("accumulate", SpyreState, accumulate),
	DEFINE_PROP_STRING("check", SpyreState, check),
	DEFINE_PROP_UINT32("soc-hz", SpyreState, soc_hz, SPYRE_SOC_HZ),
	DEFINE_PROP_UINT32("core-hz", SpyreState, core_hz, SPYRE_CORE_HZ),
	DEFINE_PROP_UINT32("mcu-hz", SpyreState, mcu_hz, SPYRE_MCU_HZ),
	DEFINE_PROP_STRING("serial", SpyreState, serial),
	DEFINE_PROP_UINT32("cores", SpyreState, cores, UINT32_MAX),
	DEFINE_PROP_UINT64("watchdog", SpyreState, watchdog, 0),
	DEFINE_PROP_STRING("on-error", SpyreState, on_error_text),
	DEFINE_PROP_CHR("gdb", SpyreState, gdb),
};

/* What "-device spyre,help" says about them. */
static const char *const spyre_descriptions[][2] = {
	{ "memory", "LPDDR5 before ECC, a power of two from 1G to 128G; 7/8 of it is usable" },
	{ "memdev", "Host memory backend of the usable size; without it the card maps its own" },
	{ "aperture", "Size of BAR 2, a power of two from 256M to 128G" },
	{ "threads", "Host threads for compute, 0: one per host CPU" },
	{ "timing",
	  "virtual: completions at their modelled time (default); off: when the work is done" },
	{ "accumulate", "Matrix products: fp32 sums (default), or dl16: chunks of 64 in DL16" },
	{ "check", "none (default), or races: a job with accesses that nothing orders fails; slow" },
	{ "soc-hz", "SoC counter frequency, 1 MHz to 4 GHz" },
	{ "core-hz", "Core clock, 1 MHz to 4 GHz" },
	{ "mcu-hz", "Management core clock, which its mcycle counts, 1 MHz to 4 GHz" },
	{ "serial", "Serial number, 1 to 16 printable characters" },
	{ "cores", "Mask of cores that are present, 0: all 32" },
	{ "watchdog", "Cap of a program's modelled core cycles, up to 2^48, 0: 2^40" },
	{ "on-error",
	  "What an inconsistency of the model does: report (default), halt-card, stop-vm" },
	{ "gdb", "Character device with the gdb stub of the management core" },
};

static void spyre_class_init(ObjectClass *oc, void *data)
{
	DeviceClass *dc = DEVICE_CLASS(oc);
	PCIDeviceClass *pc = PCI_DEVICE_CLASS(oc);
	ResettableClass *rc = RESETTABLE_CLASS(oc);
	size_t i;

	pc->realize = spyre_realize;
	pc->exit = spyre_exit;
	pc->config_read = spyre_config_read;
	pc->config_write = spyre_config_write;
	pc->vendor_id = SPYRE_PCI_VENDOR;
	pc->device_id = SPYRE_PCI_DEVICE_PF;
	pc->revision = SPYRE_PCI_REVISION;
	pc->class_id = SPYRE_PCI_CLASS >> 8;
	pc->subsystem_vendor_id = SPYRE_PCI_VENDOR;
	pc->subsystem_id = SPYRE_PCI_SUBDEVICE;

	rc->phases.enter = spyre_reset_enter;
	rc->phases.hold = spyre_reset_hold;

	dc->desc = "IBM Spyre accelerator card";
	dc->vmsd = &spyre_vmstate;
	set_bit(DEVICE_CATEGORY_MISC, dc->categories);
	device_class_set_props(dc, spyre_properties);
	for (i = 0; i < ARRAY_SIZE(spyre_descriptions); i++)
		object_class_property_set_description(oc, spyre_descriptions[i][0],
						      spyre_descriptions[i][1]);
	spyre_class_add_properties(oc);
}

static const TypeInfo spyre_info = {
	.name = TYPE_SPYRE,
	.parent = TYPE_PCI_DEVICE,
	.instance_size = sizeof(SpyreState),
	.instance_init = spyre_instance_init,
	.instance_finalize = spyre_instance_finalize,
	.class_init = spyre_class_init,
	.interfaces =
		(InterfaceInfo[]){
			{ INTERFACE_PCIE_DEVICE },
			{},
		},
};

static void spyre_register_types(void)
{
	type_register_static(&spyre_info);
}
type_init(spyre_register_types)
