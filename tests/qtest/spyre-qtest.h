/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Spyre cards under qtest: a q35 machine whose root ports, windows and BARs are set up by hand
 * above 4 GB, where a real machine has them, and a small firmware that does what the test tells it.
 */
#ifndef SPYRE_QTEST_H
#define SPYRE_QTEST_H

#include "libqtest.h"
#include "spyre/cb.h"
#include "spyre/fw.h"
#include "spyre/hw.h"
#include "spyre/mcu.h"

/* Where Debian's seabios package has the BIOS, without which no PC starts. */
#define SQ_MACHINE "-L /usr/share/seabios -nodefaults -vga none -m 256M "
/* A root port for the card; ports are at 00:01.0 and following. */
#define SQ_PORT(n) \
	"-device pcie-root-port,id=port" #n ",bus=pcie.0,chassis=" #n ",slot=" #n ",addr=" #n " "

struct sq_card {
	QTestState *qts;
	const char *id;			    /* of the device, for QMP */
	unsigned int port;		    /* 1 and up; also its bus number */
	uint64_t regs, aperture, doorbells; /* bus addresses of the BARs */
	uint32_t calls;			    /* commands given to the test firmware */
};

QTestState *sq_start(const char *options); /* -M and devices; SQ_MACHINE is added */

/* Configuration space, extended part included; bus 0 is the root's. */
uint32_t sq_cfg_readl(QTestState *qts, unsigned int bus, unsigned int devfn, unsigned int off);
uint16_t sq_cfg_readw(QTestState *qts, unsigned int bus, unsigned int devfn, unsigned int off);
uint8_t sq_cfg_readb(QTestState *qts, unsigned int bus, unsigned int devfn, unsigned int off);
void sq_cfg_writel(QTestState *qts, unsigned int bus, unsigned int devfn, unsigned int off,
		   uint32_t v);
void sq_cfg_writew(QTestState *qts, unsigned int bus, unsigned int devfn, unsigned int off,
		   uint16_t v);
#define sq_readl(c, off)     sq_cfg_readl((c)->qts, (c)->port, 0, off)
#define sq_readw(c, off)     sq_cfg_readw((c)->qts, (c)->port, 0, off)
#define sq_writel(c, off, v) sq_cfg_writel((c)->qts, (c)->port, 0, off, v)
#define sq_writew(c, off, v) sq_cfg_writew((c)->qts, (c)->port, 0, off, v)

/* Sets up the port's windows, the card's BARs, memory decoding and bus mastering. */
void sq_setup(struct sq_card *c, QTestState *qts, const char *id, unsigned int port);
/* BARs and Command alone, as after a reset of the function. */
void sq_enable(struct sq_card *c);

/* Where the port's PCI Express capability is, in configuration space of 00:port.0. */
unsigned int sq_port_exp(QTestState *qts, unsigned int port);

uint32_t sq_reg(struct sq_card *c, uint32_t off);
void sq_set_reg(struct sq_card *c, uint32_t off, uint32_t v);

/* MSI to RAM: address, data, log2 of the vectors. */
void sq_msi(struct sq_card *c, uint64_t addr, uint16_t data, unsigned int order);

/*
 * The test firmware: an image that stores to and loads from the management core's bus as it is
 * told. Boots it, waits until it listens. sq_image() gives the image for tests that spoil it first.
 */
size_t sq_image(uint8_t *buf, size_t size);
uint32_t sq_boot_image(struct sq_card *c, const void *image, size_t len, uint64_t addr);
void sq_boot(struct sq_card *c);
void sq_mcu_write(struct sq_card *c, uint32_t off, uint32_t v);
uint32_t sq_mcu_read(struct sq_card *c, uint32_t off);
/* Loads and stores of 32 bits at a bus address, by the card. They return enum spyre_syndrome. */
uint32_t sq_dma_store(struct sq_card *c, uint64_t addr, uint32_t v);
uint32_t sq_dma_load(struct sq_card *c, uint64_t addr, uint32_t *v);

/*
 * One context, number 1, whose device addresses below 32 MB are card memory from 64 MB on and whose
 * host addresses below 32 MB are bus addresses from host on; both writable.
 */
void sq_context(struct sq_card *c, uint64_t host);
/* Starts a copy of bytes from device or host address 0 to 0 on the first engine of that kind. */
void sq_start_copy(struct sq_card *c, enum mcu_engine_kind kind, uint64_t bytes);
bool sq_engine_busy(struct sq_card *c, enum mcu_engine_kind kind);
/* Status of the response block of the copy that ended last. */
uint32_t sq_copy_status(struct sq_card *c);

/* Waits until *addr in guest memory is v, at most ten seconds; what is there then. */
uint32_t sq_wait_mem(QTestState *qts, uint64_t addr, uint32_t v);
uint32_t sq_wait_reg(struct sq_card *c, uint32_t off, uint32_t v);

uint64_t sq_prop(struct sq_card *c, const char *name);
char *sq_state(struct sq_card *c);
void sq_inject(struct sq_card *c, const char *name, uint64_t arg);

#endif
