/* SPDX-License-Identifier: MIT */
/*
 * Energy, power and temperature, from what the engines did on card time. All is worked out when somebody
 * asks: an idle card costs nothing.
 *
 * The power word counts charge on the 12 V rail, 1/512 per count and SoC cycle (public):
 * watts = 12 * counts / 512 / cycles, so a joule is hz * 512 / 12 counts.
 */
#include "card.h"
#include "time_params.h"

#include <string.h>

#define COUNTS_PER_WATT_CYCLE	(512.0 / 12.0)
#define SAMPLE_HZ		100u	/* power is that of the last 10 ms or more */

static double idle_counts(uint64_t cycles)
{
	return cycles * (POWER_IDLE_W * COUNTS_PER_WATT_CYCLE);
}

void tele_init(struct spyre_card *c)
{
	pthread_mutex_init(&c->tele.lock, NULL);
	c->tele.power_mw = POWER_IDLE_W * 1000;
	c->tele.temp_c = THERMAL_AMBIENT_C + POWER_IDLE_W * THERMAL_K_PER_W;
}

void tele_reset(struct spyre_card *c)
{
	pthread_mutex_lock(&c->tele.lock);
	c->tele.overtemp_mc = 0;
	c->tele.tripped = false;
	store_relaxed(&c->tele.throttled, 0);
	pthread_mutex_unlock(&c->tele.lock);
}

void tele_activity(struct spyre_card *c, unsigned int engine, uint64_t t0, uint64_t t1, double pj)
{
	struct activity *a = &c->tele.act[engine];

	pthread_mutex_lock(&c->tele.lock);
	/* An engine's stretches do not overlap: the one before has ended when the next begins. */
	c->tele.counts += a->counts;
	a->t0 = t0;
	a->t1 = t1;
	a->counts = pj * 1e-12 * c->cfg.soc_hz * COUNTS_PER_WATT_CYCLE;
	pthread_mutex_unlock(&c->tele.lock);
}

void tele_cut(struct spyre_card *c, unsigned int engine, uint64_t end)
{
	struct activity *a = &c->tele.act[engine];

	pthread_mutex_lock(&c->tele.lock);
	if (end <= a->t0) {
		a->counts = 0;
	} else if (end < a->t1) {
		a->counts *= (double)(end - a->t0) / (double)(a->t1 - a->t0);
		a->t1 = end;
	}
	pthread_mutex_unlock(&c->tele.lock);
}

static uint64_t energy(struct spyre_card *c, uint64_t now)
{
	double sum = idle_counts(now) + c->tele.counts;
	unsigned int i;

	for (i = 0; i < ENGINES; i++) {
		const struct activity *a = &c->tele.act[i];

		if (now >= a->t1)
			sum += a->counts;
		else if (now > a->t0)
			sum += a->counts * (double)(now - a->t0) / (double)(a->t1 - a->t0);
	}
	return sum;
}

uint64_t tele_energy(struct spyre_card *c, uint64_t now)
{
	uint64_t ret;

	pthread_mutex_lock(&c->tele.lock);
	ret = energy(c, now);
	pthread_mutex_unlock(&c->tele.lock);
	return ret;
}

static double watts(uint64_t counts, uint64_t cycles)
{
	return (double)counts / (double)cycles / COUNTS_PER_WATT_CYCLE;
}

uint32_t tele_power_mw(struct spyre_card *c)
{
	uint64_t now = soc_now(c), counts;
	uint32_t ret;

	pthread_mutex_lock(&c->tele.lock);
	if (now > c->tele.power_time && now - c->tele.power_time >= c->cfg.soc_hz / SAMPLE_HZ) {
		counts = energy(c, now);
		if (counts > c->tele.power_counts)
			c->tele.power_mw = 1000 * watts(counts - c->tele.power_counts,
							now - c->tele.power_time);
		c->tele.power_time = now;
		c->tele.power_counts = counts;
	}
	ret = c->tele.power_mw;
	pthread_mutex_unlock(&c->tele.lock);
	return ret;
}

/* e^-x for x >= 0: 256 implicit steps, good to a few per mille and stable for any x. */
static double decay(double x)
{
	double y = 1.0 / (1.0 + x / 256.0);
	unsigned int i;

	for (i = 0; i < 8; i++)
		y *= y;
	return y;
}

int32_t tele_temp_mc(struct spyre_card *c)
{
	uint64_t now = soc_now(c), counts;
	uint32_t event = 0;
	double steady;
	int64_t mc;

	pthread_mutex_lock(&c->tele.lock);
	if (now > c->tele.temp_time) {
		uint64_t cycles = now - c->tele.temp_time;

		counts = energy(c, now);
		steady = THERMAL_AMBIENT_C;
		if (counts > c->tele.temp_counts)
			steady += THERMAL_K_PER_W * watts(counts - c->tele.temp_counts, cycles);
		c->tele.temp_c = steady + (c->tele.temp_c - steady) *
				 decay((double)cycles / c->cfg.soc_hz / THERMAL_TAU_S);
		c->tele.temp_time = now;
		c->tele.temp_counts = counts;
	}
	mc = (int64_t)(c->tele.temp_c * 1000) + c->tele.overtemp_mc;
	if (!c->tele.throttled && mc >= SPYRE_TEMP_THROTTLE_MC) {
		store_relaxed(&c->tele.throttled, 1);
		event = 1;
	} else if (c->tele.throttled && mc < SPYRE_TEMP_RESUME_MC) {
		store_relaxed(&c->tele.throttled, 0);
		c->tele.tripped = false;
		event = 2;
	}
	if (!c->tele.tripped && mc >= SPYRE_TEMP_TRIP_MC) {
		c->tele.tripped = true;
		event = 3;
	}
	pthread_mutex_unlock(&c->tele.lock);
	if (event)
		ras_push(c, SPYRE_RAS_THERMAL, event, mc);
	return mc;
}

void tele_overtemp(struct spyre_card *c, int64_t mc)
{
	pthread_mutex_lock(&c->tele.lock);
	c->tele.overtemp_mc = mc;
	pthread_mutex_unlock(&c->tele.lock);
	/* Crosses thresholds now, not when somebody next reads the sensor. */
	tele_temp_mc(c);
}
