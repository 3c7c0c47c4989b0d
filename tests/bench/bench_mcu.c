/* SPDX-License-Identifier: MIT */
/*
 * Speed of the management core: a loop of loads, stores, arithmetic, compares, calls and branches, as
 * firmware is made of. Prints one JSON line per round.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "../unit/counter.h"
#include "../unit/rv32.h"
#include "inproc.h"

/* Processor time: only the core is busy, and what else the machine does is no matter of its speed. */
static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static uint64_t instructions(struct spyre_card *card)
{
	uint64_t v = 0;

	find_counter(card, "mcu-instructions", &v);
	return v;
}

int main(void)
{
	struct spyre_inproc *ip = spyre_inproc_new(NULL, 1 << 20);
	struct rv p = { .n = 0 };
	unsigned int loop, i;
	struct spyre_card *card;

	if (!ip)
		return 1;
	card = spyre_inproc_card(ip);
	rv_li(&p, S0, RV_DATA);
	rv_li(&p, S1, 0x01234567);
	rv_li(&p, A0, 0);
	loop = p.n;
	/* A hash step over a small table. */
	rv_put(&p, ANDI(T0, A0, 0xff));
	rv_put(&p, SLLI(T0, T0, 2));
	rv_put(&p, ADD(T0, T0, S0));
	rv_put(&p, LW(T1, 0, T0));
	rv_put(&p, XOR(T1, T1, S1));
	rv_put(&p, SRLI(T2, T1, 7));
	rv_put(&p, ADD(T1, T1, T2));
	rv_put(&p, SW(T1, 0, T0));
	rv_put(&p, LBU(T3, 1, T0));
	rv_put(&p, ADD(S1, S1, T3));
	rv_put(&p, BEQ(T3, ZERO, 8));
	rv_put(&p, ADDI(S1, S1, 3));
	rv_put(&p, rv_jal(RA, 12));
	rv_put(&p, ADDI(A0, A0, 1));
	rv_put(&p, rv_jal(ZERO, 4 * ((int)loop - (int)p.n)));
	rv_put(&p, MUL(T4, T3, S1));
	rv_put(&p, JALR(ZERO, RA, 0));
	if (rv_boot(card, &p) != SPYRE_BOOT_RUNNING)
		return 1;
	for (i = 0; i < 5; i++) {
		/* The count is published when the core rests, so each round is one run. */
		uint64_t a, b;
		double t0, t1;

		spyre_card_mmio_write(card, SPYRE_REG_MCU_CTRL, 0, 4);
		a = instructions(card);
		if (rv_boot(card, &p) != SPYRE_BOOT_RUNNING)
			return 1;
		t0 = now();
		usleep(500000);
		spyre_card_mmio_write(card, SPYRE_REG_MCU_CTRL, 0, 4);
		t1 = now();
		b = instructions(card);
		printf("{\"figure\": \"fw-mips\", \"value\": %.0f, \"unit\": \"1/s\", "
		       "\"goal\": 150000000, \"better\": \"higher\"}\n", (double)(b - a) / (t1 - t0));
	}
	spyre_inproc_free(ip);
	return 0;
}
