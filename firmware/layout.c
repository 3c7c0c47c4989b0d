// SPDX-License-Identifier: MIT
/*
 * Compiled to assembly, never linked: what the image tool and the linker script need of the headers, as lines
 * "->NAME value" that the build turns into definitions.
 */
#include <spyre/fw.h>
#include <spyre/mcu.h>

#define DEFINE(name, value) __asm__ volatile("\n->" #name " %0" :: "i"(value))

void layout(void);

void layout(void)
{
	DEFINE(MAGIC, SPYRE_FW_MAGIC);
	DEFINE(HEADER_SIZE, sizeof(struct spyre_fw_header));
	DEFINE(HW_MAJOR, SPYRE_HWVER_MAJOR);
	DEFINE(PROTO_MAJOR, SPYRE_PROTO_MAJOR);
	DEFINE(PROTO_MINOR, SPYRE_PROTO_MINOR);
	DEFINE(VERSION_AT, offsetof(struct spyre_fw_header, version));
	DEFINE(VERSION_SIZE, sizeof(((struct spyre_fw_header *)0)->version));
	DEFINE(DIGEST_AT, offsetof(struct spyre_fw_header, digest));
	DEFINE(DIGEST_SIZE, sizeof(((struct spyre_fw_header *)0)->digest));
	DEFINE(RAM_BASE, SPYRE_MCU_RAM_BASE);
	DEFINE(RAM_SIZE, SPYRE_MCU_RAM_SIZE);
	DEFINE(LOG_BASE, SPYRE_MCU_LOG_BASE);
	DEFINE(LOG_SIZE, SPYRE_LOG_RAM_SIZE);
	DEFINE(FWMEM_BASE, SPYRE_MCU_FWMEM_BASE);
	DEFINE(FWMEM_SIZE, SPYRE_MCU_FWMEM_SIZE);
}
