// SPDX-License-Identifier: MIT
/*
 * Speed of the firmware on the card in process: empty control blocks in batches and one at a time. One
 * JSON line per figure and round; instructions per control block do not depend on the machine.
 */
#include "../unit/cardtest.h"
#include "../unit/counter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS	5
#define BATCH	4000u
#define LONE	1000u

static struct ct_card *card;
static struct ct_queue *q;

static uint64_t instructions(void)
{
	uint64_t v = 0;

	/* The counter is brought up to date when the core goes to sleep. */
	usleep(20000);
	find_counter(card->card, "mcu-instructions", &v);
	return v;
}

static void print(const char *figure, double value, const char *unit)
{
	printf("{\"figure\": \"%s\", \"value\": %.3f, \"unit\": \"%s\"}\n", figure, value, unit);
	fflush(stdout);
}

static void batched(const char *name, uint16_t flags)
{
	struct spyre_cb cb = ct_cb(SPYRE_CB_NOP, flags);
	uint64_t start, ins = instructions();
	char figure[64];
	uint32_t i, e = 0;

	for (i = 0; i < BATCH; i++)
		e = ct_put(q, &cb);
	start = ct_now_ns();
	ct_submit(q);
	if (ct_wait(q, e, CT_TIMEOUT_MS))
		exit(1);
	snprintf(figure, sizeof(figure), "fw-%s-rate", name);
	print(figure, BATCH / ((ct_now_ns() - start) / 1e9), "1/s");
	snprintf(figure, sizeof(figure), "fw-%s-instructions", name);
	print(figure, (double)(instructions() - ins) / BATCH, "per CB");
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* pause: microseconds before each, 0 finds the card polling, 1000 finds it asleep. */
static void lone(const char *name, unsigned int pause)
{
	static uint64_t ns[LONE];
	struct spyre_cb cb = ct_cb(SPYRE_CB_NOP, 0);
	uint64_t bells = q->doorbells, start;
	char figure[64];
	uint32_t i, e;

	for (i = 0; i < LONE; i++) {
		if (pause)
			usleep(pause);
		start = ct_now_ns();
		e = ct_put(q, &cb);
		ct_submit(q);
		if (ct_wait(q, e, CT_TIMEOUT_MS))
			exit(1);
		ns[i] = ct_now_ns() - start;
	}
	qsort(ns, LONE, sizeof(ns[0]), compare);
	snprintf(figure, sizeof(figure), "fw-lone-%s", name);
	print(figure, ns[LONE / 2] / 1e3, "us");
	snprintf(figure, sizeof(figure), "fw-lone-%s-best", name);
	print(figure, ns[0] / 1e3, "us");
	snprintf(figure, sizeof(figure), "fw-lone-%s-doorbells", name);
	print(figure, (double)(q->doorbells - bells) / LONE, "per CB");
}

int main(void)
{
	struct ct_queue_config cfg = { .entries = 4096 };
	struct ct_ctx *x;
	int i;

	card = ct_boot(NULL, 64 << 20, 8);
	x = card ? ct_ctx_new(card, 1) : NULL;
	q = x ? ct_queue_new(x, &cfg) : NULL;
	if (!q)
		return 1;
	for (i = 0; i < ROUNDS; i++) {
		batched("empty", 0);
		batched("response", SPYRE_CB_F_RESPONSE);
		lone("busy", 0);
		lone("idle", 1000);
	}
	ct_free(card);
	return 0;
}
