/* SPDX-License-Identifier: MIT */
/*
 * Every access of the firmware to the world outside its own memory goes through here: registers of
 * the management core, the copy unit, the word unit and the full fence. On the card these are loads
 * and stores; for unit tests on the host (FW_HOST) they call a mock of the bus.
 */
#ifndef FW_BUS_H
#define FW_BUS_H

#include <spyre/cb.h>
#include <spyre/fw.h>
#include <spyre/hw.h>
#include <spyre/isa.h>
#include <spyre/mcu.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#ifdef FW_HOST

u32 mock_reg_read(u32 offset);
void mock_reg_write(u32 offset, u32 value);
/* The address by which the mock knows host pointer p until 64 more pointers were named. */
u32 mock_addr(const void *p);
void mock_fence(void);
void mock_wfi(void);

static inline u32 reg_read(u32 offset)
{
	return mock_reg_read(offset);
}

static inline void reg_write(u32 offset, u32 value)
{
	mock_reg_write(offset, value);
}

static inline u32 mcu_addr(const void *p)
{
	return mock_addr(p);
}

static inline void bus_fence(void)
{
	mock_fence();
}

static inline void bus_wfi(void)
{
	mock_wfi();
}

#else

static inline u32 reg_read(u32 offset)
{
	return *(const volatile u32 *)(SPYRE_MCU_MMIO_BASE + offset);
}

static inline void reg_write(u32 offset, u32 value)
{
	*(volatile u32 *)(SPYRE_MCU_MMIO_BASE + offset) = value;
}

static inline u32 mcu_addr(const void *p)
{
	return (u32)p;
}

/* Full barrier, on host memory too: the model maps it to a sequentially consistent fence. */
static inline void bus_fence(void)
{
	__asm__ volatile("fence iorw, iorw" ::: "memory");
}

static inline void bus_wfi(void)
{
	__asm__ volatile("wfi" ::: "memory");
}

#endif

/* Keeps the compiler from moving accesses to a buffer across the command that makes the unit use it. */
static inline void compiler_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Register pairs whose low half latches the high one. */
static inline u64 reg_read64(u32 offset)
{
	u32 lo = reg_read(offset);

	return (u64)reg_read(offset + 4) << 32 | lo;
}

static inline void reg_write64(u32 offset, u64 value)
{
	reg_write(offset, (u32)value);
	reg_write(offset + 4, (u32)(value >> 32));
}

/* A host-visible function register, as the driver last wrote it. */
static inline u32 host_reg(u32 offset)
{
	reg_write(MCU_HOST_REG, offset);
	return reg_read(MCU_HOST_REG_VALUE);
}

static inline u64 host_reg64(u32 offset)
{
	u32 lo = host_reg(offset);

	return (u64)host_reg(offset + 4) << 32 | lo;
}

/* SoC counter: card time. */
static inline u64 soc_time(void)
{
	return reg_read64(MCU_MTIME);
}

/* An address of one space in one context. */
struct place {
	u64 addr;
	u32 space;	/* MCU_SPACE_* | context << 16 */
};

static inline struct place place_of(u32 space, u32 context, u64 addr)
{
	return (struct place){ .addr = addr, .space = space | context << 16 };
}

static inline struct place place_bus(u64 addr)
{
	return place_of(MCU_SPACE_BUS, 0, addr);
}

/* Copies 1 to 4096 bytes; 0 or an enum spyre_syndrome, first bad address in MCU_COPY_FAULT. */
static inline u32 bus_copy(struct place at, u32 direction, const void *local, u32 len)
{
	reg_write64(MCU_COPY_ADDR, at.addr);
	reg_write(MCU_COPY_LOCAL, mcu_addr(local));
	reg_write(MCU_COPY_LEN, len);
	compiler_barrier();
	reg_write(MCU_COPY_GO, at.space | direction);
	compiler_barrier();
	return reg_read(MCU_COPY_STATUS);
}

static inline u32 bus_read(struct place from, void *to, u32 len)
{
	return bus_copy(from, MCU_COPY_IN, to, len);
}

static inline u32 bus_write(struct place to, const void *from, u32 len)
{
	return bus_copy(to, MCU_COPY_OUT, from, len);
}

/* Single words: loads acquire, stores release. 0 or an enum spyre_syndrome. */
static inline u32 bus_load32(struct place from, u32 *value)
{
	u32 syndrome;

	reg_write64(MCU_COPY_ADDR, from.addr);
	reg_write(MCU_WORD_GO, from.space | MCU_WORD_LOAD32);
	syndrome = reg_read(MCU_COPY_STATUS);
	*value = reg_read(MCU_WORD_DATA);
	return syndrome;
}

static inline u32 bus_load64(struct place from, u64 *value)
{
	u32 syndrome;

	reg_write64(MCU_COPY_ADDR, from.addr);
	reg_write(MCU_WORD_GO, from.space | MCU_WORD_LOAD64);
	syndrome = reg_read(MCU_COPY_STATUS);
	*value = reg_read64(MCU_WORD_DATA);
	return syndrome;
}

static inline u32 bus_word(struct place to, u32 op, u64 value)
{
	reg_write64(MCU_COPY_ADDR, to.addr);
	reg_write64(MCU_WORD_DATA, value);
	reg_write(MCU_WORD_GO, to.space | op);
	return reg_read(MCU_COPY_STATUS);
}

static inline u32 bus_store32(struct place to, u32 value)
{
	return bus_word(to, MCU_WORD_STORE32, value);
}

static inline u32 bus_store64(struct place to, u64 value)
{
	return bus_word(to, MCU_WORD_STORE64, value);
}

/* Two 32-bit fields that must agree, in the one 8-byte store they share. */
static inline u32 bus_store_pair(struct place to, u32 first, u32 second)
{
	return bus_store64(to, (u64)second << 32 | first);
}

#endif
