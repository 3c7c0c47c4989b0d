/* SPDX-License-Identifier: MIT */
/*
 * Boot ROM. The image in card memory stays writable for the host, so it is copied first and only the copy
 * is looked at and run.
 */
#include "card.h"
#include "sha256.h"

#include <string.h>

static bool all_zero(const void *p, size_t len)
{
	const uint8_t *b = p;

	while (len--)
		if (*b++)
			return false;
	return true;
}

static enum spyre_boot_status check_header(const struct spyre_fw_header *h)
{
	uint32_t load = h->load_addr, size = h->image_size, ram = SPYRE_MCU_RAM_BASE;

	if (h->magic != SPYRE_FW_MAGIC)
		return SPYRE_BOOT_BAD_MAGIC;
	if (h->header_size != SPYRE_FW_HEADER_SIZE || !size || size & 3 || load & 3 || load < ram ||
	    load - ram > SPYRE_MCU_RAM_SIZE || size > SPYRE_MCU_RAM_SIZE - (load - ram))
		return SPYRE_BOOT_BAD_HEADER;
	if (h->entry & 1 || h->entry < load || h->entry - load >= size)
		return SPYRE_BOOT_BAD_HEADER;
	if (!all_zero(h->reserved, sizeof(h->reserved)) ||
	    !all_zero(h->reserved1, sizeof(h->reserved1)) ||
	    !all_zero(h->reserved2, sizeof(h->reserved2)))
		return SPYRE_BOOT_BAD_HEADER;
	return SPYRE_BOOT_RUNNING;
}

enum spyre_boot_status bootrom_load(struct spyre_card *c, uint32_t *entry)
{
	uint32_t bad = __atomic_exchange_n(&c->fault_fw_image, SPYRE_FAULT_IMAGE_GOOD, __ATOMIC_RELAXED);
	uint64_t addr = reg64(c, SPYRE_REG_FW_ADDR);
	uint32_t len = load_acquire(reg_ptr(c, SPYRE_REG_FW_LEN));
	static const uint8_t zero[32];
	enum spyre_boot_status status;
	struct spyre_fw_header h;
	uint8_t digest[32];
	struct sha256 s;
	uint8_t *body;

	if (addr & (SPYRE_STICK - 1) || addr >= c->aperture || len > c->aperture - addr)
		return SPYRE_BOOT_BAD_ADDRESS;
	if (len < sizeof(h))
		return SPYRE_BOOT_BAD_LENGTH;
	memcpy(&h, c->mem + addr, sizeof(h));
	status = check_header(&h);
	if (status != SPYRE_BOOT_RUNNING)
		return status;
	if (len - sizeof(h) != h.image_size)
		return SPYRE_BOOT_BAD_LENGTH;

	/* RAM holds nothing of the last run. */
	memset(c->mcu.ram, 0, SPYRE_MCU_RAM_SIZE);
	body = c->mcu.ram + (h.load_addr - SPYRE_MCU_RAM_BASE);
	memcpy(body, c->mem + addr + sizeof(h), h.image_size);
	if (bad == SPYRE_FAULT_IMAGE_CORRUPT)
		body[0] ^= 1;
	sha256_init(&s);
	sha256_update(&s, &h, offsetof(struct spyre_fw_header, digest));
	sha256_update(&s, zero, sizeof(zero));
	sha256_update(&s, h.reserved2, sizeof(h.reserved2));
	sha256_update(&s, body, h.image_size);
	sha256_final(&s, digest);
	/* Such an image has a digest that is right. */
	if (bad == SPYRE_FAULT_IMAGE_TOO_OLD)
		h.hw_major = SPYRE_HWVER_MAJOR - 1;
	else if (bad == SPYRE_FAULT_IMAGE_TOO_NEW)
		h.hw_major = SPYRE_HWVER_MAJOR + 1;
	if (memcmp(digest, h.digest, sizeof(digest)))
		status = SPYRE_BOOT_BAD_DIGEST;
	/* No key is fused into this card, so a signed image cannot be checked; an unsigned one carries none. */
	else if (h.key_id || !all_zero(h.signature, sizeof(h.signature)))
		status = SPYRE_BOOT_BAD_SIGNATURE;
	else if (h.hw_major < SPYRE_HWVER_MAJOR)
		status = SPYRE_BOOT_TOO_OLD;
	else if (h.hw_major > SPYRE_HWVER_MAJOR)
		status = SPYRE_BOOT_TOO_NEW;
	if (status != SPYRE_BOOT_RUNNING) {
		memset(c->mcu.ram, 0, SPYRE_MCU_RAM_SIZE);
		return status;
	}
	*entry = h.entry;
	return SPYRE_BOOT_RUNNING;
}
