/* SPDX-License-Identifier: MIT */
/* Life cycle of the card: configuration, registers, boot ROM, resets, faults, sensors, several cards. */
#define _GNU_SOURCE	/* memfd_create, SEEK_DATA */
#include <pthread.h>
#include <sys/mman.h>

#include "model_util.h"

static void test_config(void **state)
{
	struct spyre_card_config good = { .memory = 1ull << 30, .aperture = 1ull << 31, .mem_fd = -1 }, c;
	char buf[200];

	(void)state;
	assert_null(spyre_card_config_check(&good, buf, sizeof(buf)));
#define BAD(change, word) \
	do { \
		const char *text; \
		c = good; \
		change; \
		text = spyre_card_config_check(&c, buf, sizeof(buf)); \
		assert_non_null(text); \
		assert_non_null(strstr(text, word)); \
	} while (0)
	BAD(c.memory = 1ull << 29, "memory");
	BAD(c.memory = 3ull << 30, "memory");
	BAD(c.memory = 1ull << 38, "memory");
	BAD(c.aperture = 128 * MB, "aperture");
	BAD(c.aperture = 3ull << 30, "aperture");
	BAD(c.threads = 1000, "threads");
	BAD(c.soc_hz = SPYRE_HZ_MIN - 1, "soc-hz is 999999");
	BAD(c.core_hz = ~0u, "core-hz");
	BAD(c.mcu_hz = 5, "mcu-hz");
	BAD(c.watchdog = ~0ull, "watchdog");
	BAD(c.mem = buf + 1, "memdev");
	c = good;
	c.memory = 0;
	errno = 0;
	assert_null(spyre_inproc_new(&c, 0));
	assert_int_equal(errno, EINVAL);
}

static void test_identity(void **state)
{
	struct spyre_card_config cfg = {
		.memory = 1ull << 33, .aperture = 1ull << 31, .mem_fd = -1, .cores = 0x7fffffff,
		.serial = "YA1234567890",
	};
	struct fix *f = fix_new(&cfg);
	char serial[16];
	unsigned int i;

	(void)state;
	assert_int_equal(rd32(f, SPYRE_REG_ID), SPYRE_ID_MAGIC);
	assert_int_equal(rd32(f, SPYRE_REG_HWVER), 2 << 16);
	assert_int_equal(rd32(f, SPYRE_REG_STATE), SPYRE_STATE_OFFLINE);
	assert_int_equal(spyre_card_mmio_read(f->card, SPYRE_REG_MEM_SIZE, 8), 7ull << 30);
	assert_int_equal(rd32(f, SPYRE_REG_MEM_SIZE + 4), 1);
	assert_int_equal(spyre_card_mmio_read(f->card, SPYRE_REG_APERTURE_SIZE, 8), 1ull << 31);
	assert_int_equal(rd32(f, SPYRE_REG_TIME_HZ), SPYRE_SOC_HZ);
	assert_int_equal(rd32(f, SPYRE_REG_CORE_HZ), SPYRE_CORE_HZ);
	assert_int_equal(rd32(f, SPYRE_REG_FW_RESERVED), SPYRE_FW_MEM_SIZE);
	assert_int_equal(rd32(f, SPYRE_REG_DB_PAGES), SPYRE_DB_PAGES);
	assert_int_equal(rd32(f, SPYRE_REG_CORES), 0x7fffffff);
	for (i = 0; i < 16; i += 4) {
		uint32_t w = rd32(f, SPYRE_REG_SERIAL + i);

		memcpy(serial + i, &w, 4);
	}
	assert_memory_equal(serial, cfg.serial, 16);
	fix_free(f);
	/* On the smallest card the firmware's part bounds the aperture. */
	f = fix_new(NULL);
	assert_int_equal(spyre_card_aperture(f->card), 896 * MB - SPYRE_FW_MEM_SIZE);
	fix_free(f);
}

static void test_registers(void **state)
{
	struct fix *f = *state;
	uint64_t t0, t1;
	unsigned int v;

	/* Read-only ones ignore writes; unknown ones read zero. */
	wr32(f, SPYRE_REG_ID, 0);
	assert_int_equal(rd32(f, SPYRE_REG_ID), SPYRE_ID_MAGIC);
	wr32(f, SPYRE_REG_STATE, SPYRE_STATE_ONLINE);
	assert_int_equal(rd32(f, SPYRE_REG_STATE), SPYRE_STATE_OFFLINE);
	wr32(f, 0x1f0, 5);
	assert_int_equal(rd32(f, 0x1f0), 0);
	assert_int_equal(rd32(f, 0x8000), 0);
	/* Widths: 32 bits, and 64 on pairs alone. */
	spyre_card_mmio_write(f->card, SPYRE_REG_FW_ADDR, 0x1122334455667788, 8);
	assert_int_equal(rd32(f, SPYRE_REG_FW_ADDR), 0x55667788);
	assert_int_equal(spyre_card_mmio_read(f->card, SPYRE_REG_FW_ADDR, 8), 0x1122334455667788);
	wr32(f, SPYRE_REG_FW_ADDR + 4, 9);
	assert_int_equal(spyre_card_mmio_read(f->card, SPYRE_REG_FW_ADDR, 8), 0x955667788);
	assert_int_equal(spyre_card_mmio_read(f->card, SPYRE_REG_ID, 1), 0xff);
	assert_int_equal(spyre_card_mmio_read(f->card, SPYRE_REG_ID, 2), 0xffff);
	assert_int_equal(spyre_card_mmio_read(f->card, SPYRE_REG_ID, 8), ~0ull);
	assert_int_equal(spyre_card_mmio_read(f->card, SPYRE_REG_ID + 2, 4), 0xffffffff);
	spyre_card_mmio_write(f->card, SPYRE_REG_FW_LEN, 77, 2);
	spyre_card_mmio_write(f->card, SPYRE_REG_FW_LEN, 77, 8);
	assert_int_equal(rd32(f, SPYRE_REG_FW_LEN), 0);
	for (v = 0; v < SPYRE_MSI_VECTORS; v++) {
		spyre_card_mmio_write(f->card, SPYRE_REG_VEC_BASE(v), 0x100000000ull * v + 64, 8);
		wr32(f, SPYRE_REG_VEC_ENTRIES(v), 1u << v);
	}
	for (v = 0; v < SPYRE_MSI_VECTORS; v++) {
		assert_int_equal(spyre_card_mmio_read(f->card, SPYRE_REG_VEC_BASE(v), 8),
				 0x100000000ull * v + 64);
		assert_int_equal(rd32(f, SPYRE_REG_VEC_ENTRIES(v)), 1u << v);
	}
	/* The counter moves and its halves agree. */
	t0 = rd32(f, SPYRE_REG_TIME);
	t0 |= (uint64_t)rd32(f, SPYRE_REG_TIME + 4) << 32;
	usleep(2000);
	t1 = spyre_card_mmio_read(f->card, SPYRE_REG_TIME, 8);
	assert_true(t1 - t0 >= 2 * 560000);
	spyre_card_aperture_bad(f->card);
	assert_int_equal(rd32(f, SPYRE_REG_APERTURE_BAD), 1);
	/* The log cannot be written from here. */
	wr32(f, SPYRE_REG_LOG_RAM, 1);
	assert_int_equal(rd32(f, SPYRE_REG_LOG_RAM), 0);
}

/* --- Boot ROM --------------------------------------------------------------------------------------- */

static uint32_t boot(struct fix *f, uint64_t addr, uint32_t len)
{
	wr32(f, SPYRE_REG_MCU_CTRL, 0);
	spyre_card_mmio_write(f->card, SPYRE_REG_FW_ADDR, addr, 8);
	wr32(f, SPYRE_REG_FW_LEN, len);
	wr32(f, SPYRE_REG_MCU_CTRL, SPYRE_MCU_CTRL_RUN);
	return rd32(f, SPYRE_REG_BOOT_STATUS);
}

static void test_boot(void **state)
{
	struct fix *f = *state;
	struct spyre_fw_header *h, good;
	struct rv p = { .n = 0 };
	uint32_t len, i;
	uint8_t *body;

	rv_put(&p, WFI);
	for (i = 0; i < 50; i++)
		rv_put(&p, rv_jal(ZERO, 0));
	len = rv_image(f->card, 4096, &p);
	h = card_at(f, 4096);
	body = (uint8_t *)(h + 1);
	good = *h;
	assert_int_equal(boot(f, 4096, len), SPYRE_BOOT_RUNNING);

#define REFUSED(change, redo, status) \
	do { \
		*h = good; \
		change; \
		if (redo) \
			rv_digest(h, body); \
		assert_int_equal(boot(f, 4096, len), status); \
		assert_int_equal(rd32(f, SPYRE_REG_STATE), SPYRE_STATE_OFFLINE); \
	} while (0)
	REFUSED(h->magic ^= 1, true, SPYRE_BOOT_BAD_MAGIC);
	REFUSED(h->header_size = 128, true, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->load_addr = 0x20000000, true, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->load_addr = SPYRE_MCU_RAM_BASE + SPYRE_MCU_RAM_SIZE - 4, true, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->load_addr += 2, true, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->entry = SPYRE_MCU_RAM_BASE + h->image_size, true, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->entry += 1, true, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->image_size = 0, false, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->image_size = SPYRE_MCU_RAM_SIZE + 4, false, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->image_size = 0xfffffffc, false, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->reserved[4] = 1, true, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->reserved1[15] = 1, true, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->reserved2[0] = 1, true, SPYRE_BOOT_BAD_HEADER);
	REFUSED(h->image_size -= 4, true, SPYRE_BOOT_BAD_LENGTH);
	REFUSED(h->image_size += 4, true, SPYRE_BOOT_BAD_LENGTH);
	REFUSED(h->digest[0] ^= 1, false, SPYRE_BOOT_BAD_DIGEST);
	REFUSED(h->digest[31] ^= 0x80, false, SPYRE_BOOT_BAD_DIGEST);
	REFUSED(h->version[3] ^= 1, false, SPYRE_BOOT_BAD_DIGEST);
	REFUSED(h->hw_major = 1, true, SPYRE_BOOT_TOO_OLD);
	REFUSED(h->hw_major = 3, true, SPYRE_BOOT_TOO_NEW);
	REFUSED(h->key_id = 7, true, SPYRE_BOOT_BAD_SIGNATURE);
	REFUSED(h->signature[63] = 7, true, SPYRE_BOOT_BAD_SIGNATURE);
	*h = good;
	body[100] ^= 4;
	assert_int_equal(boot(f, 4096, len), SPYRE_BOOT_BAD_DIGEST);
	body[100] ^= 4;
	/* Truncated, by register. */
	assert_int_equal(boot(f, 4096, len - 4), SPYRE_BOOT_BAD_LENGTH);
	assert_int_equal(boot(f, 4096, 100), SPYRE_BOOT_BAD_LENGTH);
	assert_int_equal(boot(f, 4096, 0), SPYRE_BOOT_BAD_LENGTH);
	/* Outside the aperture, unaligned, wrapping. */
	assert_int_equal(boot(f, 4096 + 64, len), SPYRE_BOOT_BAD_ADDRESS);
	assert_int_equal(boot(f, spyre_card_aperture(f->card), len), SPYRE_BOOT_BAD_ADDRESS);
	assert_int_equal(boot(f, spyre_card_aperture(f->card) - 128, len), SPYRE_BOOT_BAD_ADDRESS);
	assert_int_equal(boot(f, ~0ull & ~127ull, len), SPYRE_BOOT_BAD_ADDRESS);
	/* A refusal leaves nothing behind, and the good one boots. */
	assert_int_equal(boot(f, 4096, len), SPYRE_BOOT_RUNNING);
	/* The core is running already: setting RUN again changes nothing. */
	h->magic = 0;
	wr32(f, SPYRE_REG_MCU_CTRL, SPYRE_MCU_CTRL_RUN);
	assert_int_equal(rd32(f, SPYRE_REG_BOOT_STATUS), SPYRE_BOOT_RUNNING);
}

/* --- Resets ------------------------------------------------------------------------------------------- */

static void test_reset(void **state)
{
	struct fix *f = *state;
	struct rv p = { .n = 0 };
	uint64_t *word = card_at(f, 100 * MB);

	rv_poke(&p, SPYRE_MCU_LOG_BASE, 0x1111);
	rv_poke(&p, SPYRE_MCU_FWMEM_BASE, 0x2222);
	rv_poke(&p, SPYRE_MCU_MMIO_BASE + MCU_STATE, SPYRE_STATE_ONLINE);
	rv_put(&p, rv_jal(ZERO, 0));
	assert_int_equal(rd32(f, SPYRE_REG_RESET_GEN), 0);

	/* A stop keeps memory. */
	*word = 42;
	rv_boot(f->card, &p);
	WAIT_FOR(rd32(f, SPYRE_REG_STATE) == SPYRE_STATE_ONLINE);
	stop_core(f);
	assert_int_equal(*word, 42);
	assert_int_equal(rd32(f, SPYRE_REG_RESET_GEN), 0);

	/* FLR loses memory, not the log, which tells what was before. */
	rv_boot(f->card, &p);
	WAIT_FOR(rd32(f, SPYRE_REG_STATE) == SPYRE_STATE_ONLINE);
	spyre_card_reset(f->card, SPYRE_RESET_FLR);
	assert_int_equal(*word, 0);
	assert_int_equal(*(uint32_t *)card_at(f, spyre_card_memory_size(f->card) - SPYRE_FW_MEM_SIZE), 0);
	assert_int_equal(rd32(f, SPYRE_REG_RESET_GEN), 1);
	assert_int_equal(rd32(f, SPYRE_REG_STATE), SPYRE_STATE_OFFLINE);
	assert_int_equal(rd32(f, SPYRE_REG_MCU_CTRL), 0);
	assert_int_equal(rd32(f, SPYRE_REG_FW_LEN), 0);
	assert_int_equal(rd32(f, SPYRE_REG_LOG_RAM), 0x1111);

	/* Wake-up keeps memory if it was told to. */
	*word = 43;
	wr32(f, SPYRE_REG_MCU_CTRL, SPYRE_MCU_CTRL_SELF_REFRESH);
	spyre_card_reset(f->card, SPYRE_RESET_WAKEUP);
	assert_int_equal(*word, 43);
	assert_int_equal(rd32(f, SPYRE_REG_RESET_GEN), 1);
	spyre_card_reset(f->card, SPYRE_RESET_WAKEUP);
	assert_int_equal(*word, 0);
	assert_int_equal(rd32(f, SPYRE_REG_RESET_GEN), 2);

	spyre_card_reset(f->card, SPYRE_RESET_COLD);
	assert_int_equal(rd32(f, SPYRE_REG_RESET_GEN), 3);
	assert_int_equal(rd32(f, SPYRE_REG_LOG_RAM), 0);
}

/* Memory that the host brought, as QEMU does with a memfd: holes are punched, reading them allocates nothing. */
static void test_host_memory(void **state)
{
	uint64_t size = 896 * MB;
	int fd = memfd_create("spyre", 0);
	struct spyre_card_config cfg = { .memory = 1ull << 30, .aperture = 1ull << 31, .mem_fd = fd };
	struct spyre_cb cb = { .type = SPYRE_CB_DMAO };
	struct spyre_context_table *t;
	struct fix *f;
	uint8_t *p;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	cfg.mem = p;
	f = fix_new(&cfg);
	assert_ptr_equal(spyre_card_memory(f->card), p);
	t = ctx_new(f, 1);
	map_host(f, t, 0, 4 * MB, SPYRE_PTE_WRITE, false);
	map_device(f, t, 0, 0, 2, SPYRE_PTE_WRITE);
	memset(spyre_inproc_arena(f->ip), 0xee, 4 * MB);
	p[34 * MB] = 5;
	cb.u.dma.bytes = 4 * MB;
	cb.u.dma.ndims = 1;
	assert_int_equal(job_run(f, 2, 1, &cb).status, SPYRE_OK);
	assert_int_equal(*(uint64_t *)spyre_inproc_arena(f->ip), 0);
	assert_int_equal(((uint8_t *)spyre_inproc_arena(f->ip))[2 * MB], 5);
	/* The page that nobody wrote is still a hole. */
	assert_int_equal(lseek(fd, 32 * MB, SEEK_DATA), 34 * MB);
	memset(&cb, 0, sizeof(cb));
	cb.type = SPYRE_CB_FILL;
	cb.u.fill.bytes = 4 * MB;
	assert_int_equal(job_run(f, 4, 1, &cb).status, SPYRE_OK);
	assert_true(lseek(fd, 32 * MB, SEEK_DATA) < 0 || lseek(fd, 32 * MB, SEEK_DATA) >= (off_t)(36 * MB));
	p[500 * MB] = 1;
	spyre_card_reset(f->card, SPYRE_RESET_COLD);
	assert_int_equal(lseek(fd, 0, SEEK_DATA), -1);
	assert_int_equal(p[500 * MB], 0);
	fix_free(f);
	munmap(p, size);
	close(fd);
}

/* --- Faults and sensors --------------------------------------------------------------------------------- */

/* Nothing beats for a while. *beat: the last one. */
static bool stands_still(struct fix *f, uint32_t *beat)
{
	*beat = rd32(f, SPYRE_REG_HEARTBEAT);
	usleep(20000);
	return rd32(f, SPYRE_REG_HEARTBEAT) == *beat;
}

static void test_faults(void **state)
{
	struct fix *f = *state;
	struct spyre_ras_hw ras;
	struct rv p = { .n = 0 };
	uint64_t irqs;
	unsigned int i, wait_loop;

	for (i = 0; i < SPYRE_FAULTS; i++)
		assert_non_null(spyre_fault_name(i));
	assert_null(spyre_fault_name(SPYRE_FAULTS));
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULTS, 0), -EINVAL);

	/* Lost interrupt: the next one, and only that. */
	irqs = spyre_inproc_raised(f->ip, 2);
	spyre_card_inject(f->card, SPYRE_FAULT_LOST_IRQ, 0);
	card_raise(f->card, 2);
	assert_int_equal(spyre_inproc_raised(f->ip, 2), irqs);
	card_raise(f->card, 2);
	assert_int_equal(spyre_inproc_raised(f->ip, 2), irqs + 1);
	assert_int_equal(counter(f, "interrupts-lost"), 1);

	/* Hang: no heartbeat until the next start. */
	rv_li(&p, T0, SPYRE_MCU_MMIO_BASE);
	wait_loop = p.n;
	rv_put(&p, SW(ZERO, MCU_HEARTBEAT, T0));
	rv_put(&p, rv_jal(ZERO, 4 * ((int)wait_loop - (int)p.n)));
	rv_boot(f->card, &p);
	WAIT_FOR(rd32(f, SPYRE_REG_HEARTBEAT) > 10);
	spyre_card_inject(f->card, SPYRE_FAULT_FW_HANG, 0);
	/* The core's thread sees it when it next runs. */
	WAIT_FOR(stands_still(f, &i));
	assert_int_equal(rd32(f, SPYRE_REG_BOOT_STATUS), SPYRE_BOOT_RUNNING);
	rv_boot(f->card, &p);
	WAIT_FOR(rd32(f, SPYRE_REG_HEARTBEAT) > i + 10);

	/* Crash. */
	spyre_card_inject(f->card, SPYRE_FAULT_FW_CRASH, 0);
	WAIT_FOR(rd32(f, SPYRE_REG_BOOT_STATUS) == SPYRE_BOOT_CRASHED);
	assert_int_equal(rd32(f, SPYRE_REG_STATE), SPYRE_STATE_IN_ERROR);
	stop_core(f);
	assert_true(ras_pop(f->card, &ras));
	assert_int_equal(ras.code, SPYRE_RAS_FIRMWARE);

	/* A core that does not listen: what its FIFOs cannot hold is refused or counted. */
	for (i = 0; i < RAS_ENTRIES + 5; i++)
		assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_MEM_CE, 0), 0);
	assert_int_equal(counter(f, "ras-lost"), 5);
	ras_clear(f->card);
	for (i = 0; i < INJECT_FIFO; i++)
		assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_LOST_RB, 1), 0);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_FW_SLOW, 1), -EAGAIN);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_FW_SLOW, 60001), -EINVAL);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_LOST_RB, 1ull << 32), -EINVAL);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_LX_PARITY, 32), -EINVAL);
	inject_clear(f->card);

	/* One boot finds a bad image, the next the good one again. */
	{
		static const uint32_t status[SPYRE_FAULT_IMAGES] = {
			[SPYRE_FAULT_IMAGE_GOOD] = SPYRE_BOOT_RUNNING,
			[SPYRE_FAULT_IMAGE_CORRUPT] = SPYRE_BOOT_BAD_DIGEST,
			[SPYRE_FAULT_IMAGE_TOO_OLD] = SPYRE_BOOT_TOO_OLD,
			[SPYRE_FAULT_IMAGE_TOO_NEW] = SPYRE_BOOT_TOO_NEW,
		};

		for (i = 0; i < SPYRE_FAULT_IMAGES; i++) {
			assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_FW_IMAGE, i), 0);
			assert_int_equal(rv_boot(f->card, &p), status[i]);
			assert_int_equal(rv_boot(f->card, &p), SPYRE_BOOT_RUNNING);
		}
	}
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_FW_IMAGE, 2), 0);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_FW_IMAGE, 0), 0);
	assert_int_equal(rv_boot(f->card, &p), SPYRE_BOOT_RUNNING);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_FW_IMAGE, SPYRE_FAULT_IMAGES), -EINVAL);

	/* A lost core is gone from the next boot on. */
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_CORE_LOST, 32), -EINVAL);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_CORE_LOST, 5), 0);
	assert_int_equal(rd32(f, SPYRE_REG_CORES), 0xffffffff);
	rv_boot(f->card, &p);
	assert_int_equal(rd32(f, SPYRE_REG_CORES), 0xffffffdf);
}

static void test_sensors(void **state)
{
	struct fix *f = *state;
	struct spyre_ras_hw ras;
	int32_t idle;
	uint64_t e0, e1;

	spyre_inproc_manual_clock(f->ip);
	spyre_inproc_advance(f->ip, 100000000);
	/* Idle as in the public trace, and its energy in counts of 1/512 at 12 V. */
	assert_in_range(rd32(f, SPYRE_REG_POWER_MW), 10900, 11100);
	idle = (int32_t)rd32(f, SPYRE_REG_TEMP_MC);
	assert_in_range(idle, 38000, 46000);
	e0 = tele_energy(f->card, 0);
	e1 = tele_energy(f->card, SPYRE_SOC_HZ);
	assert_in_range(e1 - e0, 11ull * 512 * SPYRE_SOC_HZ / 12 - 1000, 11ull * 512 * SPYRE_SOC_HZ / 12 + 1000);
	/* 50 J of work in the next second: 61 W. The card warms up and cools down again. */
	tele_activity(f->card, 0, soc_now(f->card), soc_now(f->card) + SPYRE_SOC_HZ, 50e12);
	spyre_inproc_advance(f->ip, 500000000);
	assert_in_range(rd32(f, SPYRE_REG_POWER_MW), 60500, 61500);
	assert_true((int32_t)rd32(f, SPYRE_REG_TEMP_MC) > idle + 1000);
	spyre_inproc_advance(f->ip, 500000000);
	spyre_inproc_advance(f->ip, 100000000000);
	rd32(f, SPYRE_REG_POWER_MW);
	spyre_inproc_advance(f->ip, 20000000);
	assert_in_range(rd32(f, SPYRE_REG_POWER_MW), 10900, 11100);
	assert_in_range(rd32(f, SPYRE_REG_TEMP_MC), idle - 500, idle + 500);

	/* Over-temperature: throttle, trip, and back. */
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_OVERTEMP, 55000), 0);
	assert_true(ras_pop(f->card, &ras));
	assert_int_equal(ras.code, SPYRE_RAS_THERMAL);
	assert_int_equal(ras.arg, 1);
	assert_true(ras.addr >= 95000);
	assert_int_equal(counter(f, "throttled"), 1);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_OVERTEMP, 70000), 0);
	assert_true(ras_pop(f->card, &ras));
	assert_int_equal(ras.arg, 3);
	{
		/* A tripped card computes nothing. */
		struct spyre_cb cb = { .type = SPYRE_CB_COMPUTE };

		cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE;
		spyre_inproc_advance(f->ip, 1000000);
		job_start(f, ENG_COMPUTE, 1, 1, &cb);
		WAIT_FOR(load_acquire(&f->card->engine[ENG_COMPUTE].state) == ENG_DONE);
		spyre_inproc_advance(f->ip, 1000000);
		assert_int_equal(job_wait(f, 1).status, SPYRE_ERR_HW);
	}
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_OVERTEMP, 0), 0);
	assert_true(ras_pop(f->card, &ras));
	assert_int_equal(ras.arg, 2);
	assert_int_equal(counter(f, "throttled"), 0);
	assert_int_equal(spyre_card_inject(f->card, SPYRE_FAULT_OVERTEMP, ~0ull), -EINVAL);
}

static void test_compute_refusals(void **state)
{
	struct fix *f = *state;
	struct spyre_context_table *t = ctx_new(f, 1);
	struct spyre_cb cb = { .type = SPYRE_CB_COMPUTE };
	struct spyre_rb rb;

	map_host(f, t, 0, 2 * MB, 0, false);
	map_device(f, t, 7, 0, 1, SPYRE_PTE_WRITE);
	cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE;
	/* What lies there is no container. */
	rb = job_run(f, ENG_COMPUTE, 1, &cb);
	assert_int_equal(rb.status, SPYRE_ERR_BAD_PROGRAM);
	assert_int_equal(rb.ts[4] - rb.ts[3], 6);
	/* Nothing is mapped there; not segment 7; too many symbols; not a compute CB. */
	cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE + 4 * MB;
	rb = job_run(f, ENG_COMPUTE, 1, &cb);
	assert_int_equal(rb.status, SPYRE_ERR_FAULT);
	assert_int_equal(rb.rb_hmierr_addr, SPYRE_PROGRAM_BASE + 4 * MB);
	cb.u.compute.bootaddr = 0;
	assert_int_equal(job_run(f, ENG_COMPUTE, 1, &cb).status, SPYRE_ERR_BOOTADDR);
	cb.u.compute.bootaddr = SPYRE_PROGRAM_BASE;
	cb.u.compute.nsymbols = 257;
	assert_int_equal(job_run(f, ENG_COMPUTE, 1, &cb).status, SPYRE_ERR_SYMBOLS);
	/* Symbols in host memory that is not there. */
	cb.u.compute.nsymbols = 2;
	cb.u.compute.symbols = 2 * MB - 8;
	cb.flags = SPYRE_CB_F_SYM_HOST;
	rb = job_run(f, ENG_COMPUTE, 1, &cb);
	assert_int_equal(rb.status, SPYRE_ERR_FAULT);
	assert_int_equal(rb.rb_hmierr_mode, SPYRE_HMI_HOST_READ);
	assert_int_equal(rb.rb_hmierr_addr, 2 * MB);
	cb.u.compute.symbols = 4;
	assert_int_equal(job_run(f, ENG_COMPUTE, 1, &cb).rb_hmierr_syndrome, SPYRE_SYN_UNALIGNED);
	cb.type = SPYRE_CB_FILL;
	assert_int_equal(job_run(f, ENG_COMPUTE, 1, &cb).status, SPYRE_ERR_BAD_CB);
}

/* --- Several cards, several callers ----------------------------------------------------------------------- */

static void *bother(void *arg)
{
	struct fix *f = arg;
	unsigned int i;

	for (i = 0; i < 3000; i++) {
		rd32(f, SPYRE_REG_TIME);
		rd32(f, SPYRE_REG_TEMP_MC);
		rd32(f, SPYRE_REG_LOG_RAM);
		spyre_card_db_write(f->card, (i % SPYRE_DB_PAGES) * SPYRE_DB_PAGE_SIZE, i, 4);
		wr32(f, SPYRE_REG_MBOX_CMD_TAIL, i);
		counter(f, "doorbells");
		if (i % 500 == 0)
			spyre_card_dma_sync(f->card);
		if (i % 1000 == 0)
			spyre_card_reset(f->card, SPYRE_RESET_FLR);
	}
	return NULL;
}

static void test_two_cards(void **state)
{
	struct fix *a = *state, *b = fix_new(NULL);
	pthread_t thread[4];
	struct rv p = { .n = 0 };
	unsigned int i, loop;

	rv_li(&p, T0, SPYRE_MCU_MMIO_BASE);
	loop = p.n;
	rv_put(&p, SW(ZERO, MCU_HEARTBEAT, T0));
	rv_put(&p, LW(T1, MCU_DB_POP, T0));
	rv_put(&p, LW(T1, MCU_TEMP_MC, T0));
	rv_put(&p, rv_jal(ZERO, 4 * ((int)loop - (int)p.n)));
	rv_boot(b->card, &p);
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, bother, i & 1 ? a : b);
	for (i = 0; i < 20; i++) {
		rv_boot(a->card, &p);
		rv_boot(b->card, &p);
		usleep(1000);
	}
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	/* What is left works, and one card's reset is not the other's. */
	rv_boot(a->card, &p);
	rv_boot(b->card, &p);
	spyre_card_reset(a->card, SPYRE_RESET_FLR);
	i = rd32(b, SPYRE_REG_HEARTBEAT);
	WAIT_FOR(rd32(b, SPYRE_REG_HEARTBEAT) > i);
	assert_int_equal(rd32(a, SPYRE_REG_STATE), SPYRE_STATE_OFFLINE);
	fix_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup_card, teardown_card)
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_identity),
		T(test_registers),
		T(test_boot),
		T(test_reset),
		cmocka_unit_test(test_host_memory),
		T(test_faults),
		T(test_sensors),
		T(test_compute_refusals),
		T(test_two_cards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
