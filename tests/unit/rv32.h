/* SPDX-License-Identifier: MIT */
/* RV32 encoders and a firmware-image builder for tests of the management core. */
#ifndef TESTS_RV32_H
#define TESTS_RV32_H

#include <stdint.h>
#include <string.h>

#include <spyre/fw.h>
#include <spyre/mcu.h>

#include "sha256.h"
#include "spyre_model.h"

enum { ZERO, RA, SP, GP, TP, T0, T1, T2, S0, S1, A0, A1, A2, A3, A4, A5, A6, A7, S2, S3, S4, S5, S6,
       S7, S8, S9, S10, S11, T3, T4, T5, T6 };

#define RV_R(f7, rs2, rs1, f3, rd, op) \
	((uint32_t)(f7) << 25 | (rs2) << 20 | (rs1) << 15 | (f3) << 12 | (rd) << 7 | (op))
#define RV_I(imm, rs1, f3, rd, op) \
	(((uint32_t)(imm) & 0xfff) << 20 | (rs1) << 15 | (f3) << 12 | (rd) << 7 | (op))
#define RV_S(imm, rs2, rs1, f3) \
	(((uint32_t)(imm) >> 5 & 0x7f) << 25 | (rs2) << 20 | (rs1) << 15 | (f3) << 12 | \
	 ((uint32_t)(imm) & 0x1f) << 7 | 0x23)
#define RV_B(imm, rs2, rs1, f3) \
	(((uint32_t)(imm) >> 12 & 1) << 31 | ((uint32_t)(imm) >> 5 & 0x3f) << 25 | (rs2) << 20 | \
	 (rs1) << 15 | (f3) << 12 | ((uint32_t)(imm) >> 1 & 0xf) << 8 | \
	 ((uint32_t)(imm) >> 11 & 1) << 7 | 0x63)
#define LUI(rd, imm20)		((uint32_t)(imm20) << 12 | (rd) << 7 | 0x37)
#define AUIPC(rd, imm20)	((uint32_t)(imm20) << 12 | (rd) << 7 | 0x17)
#define ADDI(rd, rs1, imm)	RV_I(imm, rs1, 0, rd, 0x13)
#define ANDI(rd, rs1, imm)	RV_I(imm, rs1, 7, rd, 0x13)
#define SLLI(rd, rs1, n)	RV_I(n, rs1, 1, rd, 0x13)
#define SRLI(rd, rs1, n)	RV_I(n, rs1, 5, rd, 0x13)
#define ADD(rd, a, b)		RV_R(0, b, a, 0, rd, 0x33)
#define XOR(rd, a, b)		RV_R(0, b, a, 4, rd, 0x33)
#define MUL(rd, a, b)		RV_R(1, b, a, 0, rd, 0x33)
#define LW(rd, imm, rs1)	RV_I(imm, rs1, 2, rd, 0x03)
#define LH(rd, imm, rs1)	RV_I(imm, rs1, 1, rd, 0x03)
#define LHU(rd, imm, rs1)	RV_I(imm, rs1, 5, rd, 0x03)
#define LB(rd, imm, rs1)	RV_I(imm, rs1, 0, rd, 0x03)
#define LBU(rd, imm, rs1)	RV_I(imm, rs1, 4, rd, 0x03)
#define SB(rs2, imm, rs1)	RV_S(imm, rs2, rs1, 0)
#define SH(rs2, imm, rs1)	RV_S(imm, rs2, rs1, 1)
#define SW(rs2, imm, rs1)	RV_S(imm, rs2, rs1, 2)
#define BEQ(a, b, imm)		RV_B(imm, b, a, 0)
#define BNE(a, b, imm)		RV_B(imm, b, a, 1)
#define JALR(rd, rs1, imm)	RV_I(imm, rs1, 0, rd, 0x67)
#define CSRRW(rd, csr, rs1)	RV_I(csr, rs1, 1, rd, 0x73)
#define CSRRS(rd, csr, rs1)	RV_I(csr, rs1, 2, rd, 0x73)
#define CSRRSI(rd, csr, imm)	RV_I(csr, imm, 6, rd, 0x73)
#define FENCE			0x0ff0000fu
#define FENCE_I			0x0000100fu
#define ECALL			0x00000073u
#define EBREAK			0x00100073u
#define MRET			0x30200073u
#define WFI			0x10500073u

static inline uint32_t rv_jal(uint32_t rd, int32_t imm)
{
	uint32_t u = imm;

	return (u >> 20 & 1) << 31 | (u >> 1 & 0x3ff) << 21 | (u >> 11 & 1) << 20 |
	       (u >> 12 & 0xff) << 12 | rd << 7 | 0x6f;
}

/* A program under construction. */
struct rv {
	uint32_t w[4096];
	unsigned int n;
};

static inline void rv_put(struct rv *p, uint32_t w)
{
	if (p->n < sizeof(p->w) / 4)
		p->w[p->n++] = w;
}

static inline void rv_li(struct rv *p, uint32_t rd, uint32_t v)
{
	rv_put(p, LUI(rd, (v + 0x800) >> 12 & 0xfffff));
	rv_put(p, ADDI(rd, rd, v & 0xfff));
}

/* Stores v at an MCU address; uses t0 and t1. */
static inline void rv_poke(struct rv *p, uint32_t addr, uint32_t v)
{
	rv_li(p, T0, addr);
	rv_li(p, T1, v);
	rv_put(p, SW(T1, 0, T0));
}

#define RV_ENTRY	SPYRE_MCU_RAM_BASE
#define RV_DATA		(SPYRE_MCU_RAM_BASE + 0x40000u)	/* free for the program */

static inline void rv_digest(struct spyre_fw_header *h, const void *body)
{
	struct sha256 s;

	memset(h->digest, 0, sizeof(h->digest));
	sha256_init(&s);
	sha256_update(&s, h, sizeof(*h));
	sha256_update(&s, body, h->image_size);
	sha256_final(&s, h->digest);
}

/* Writes a good image of the program to card address addr and returns its length. */
static inline uint32_t rv_image(struct spyre_card *card, uint64_t addr, const struct rv *p)
{
	uint8_t *at = (uint8_t *)spyre_card_memory(card) + addr;
	struct spyre_fw_header h = {
		.magic = SPYRE_FW_MAGIC,
		.header_size = SPYRE_FW_HEADER_SIZE,
		.image_size = p->n * 4,
		.load_addr = RV_ENTRY,
		.entry = RV_ENTRY,
		.hw_major = SPYRE_HWVER_MAJOR,
		.proto_major = SPYRE_PROTO_MAJOR,
		.version = "test",
	};

	rv_digest(&h, p->w);
	memcpy(at, &h, sizeof(h));
	memcpy(at + sizeof(h), p->w, h.image_size);
	return sizeof(h) + h.image_size;
}

/* Boots a program that lies at card address 0; returns BOOT_STATUS. */
static inline uint32_t rv_boot(struct spyre_card *card, const struct rv *p)
{
	uint32_t len = rv_image(card, 0, p);

	spyre_card_mmio_write(card, SPYRE_REG_MCU_CTRL, 0, 4);
	spyre_card_mmio_write(card, SPYRE_REG_FW_ADDR, 0, 8);
	spyre_card_mmio_write(card, SPYRE_REG_FW_LEN, len, 4);
	spyre_card_mmio_write(card, SPYRE_REG_MCU_CTRL, SPYRE_MCU_CTRL_RUN, 4);
	return spyre_card_mmio_read(card, SPYRE_REG_BOOT_STATUS, 4);
}

#endif
