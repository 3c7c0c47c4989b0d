/* SPDX-License-Identifier: MIT */
/* Job binaries that several suites run. The caller finishes and frees the job. */
#ifndef TESTS_JOBS_H
#define TESTS_JOBS_H

#include <spyreprog.h>

/* A core copies words sticks (1 to 32) from the address in symbol 0 to the one in symbol 1. */
static inline struct spyreprog_job *job_mover(unsigned int core, unsigned int words)
{
	struct spyreprog_job *job = spyreprog_job_new();
	int p, u;

	p = spyreprog_job_program(job, SPYRE_UNIT_L3LU);
	sp_l3(job, p, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, words, 0, 0, 0);
	sp_send(job, p, 1, 0);
	u = spyreprog_job_unit(job, core, SPYRE_UNIT_L3LU, 0, p);
	spyreprog_job_init(job, u, SPYRE_EAR0, 0, 0);
	p = spyreprog_job_program(job, SPYRE_UNIT_L3SU);
	sp_wait(job, p, 1, 1);
	sp_l3(job, p, SPYRE_OP_L3_STU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, words, 0, 0, 0);
	u = spyreprog_job_unit(job, core, SPYRE_UNIT_L3SU, 0, p);
	spyreprog_job_init(job, u, SPYRE_EAR0, 1, 0);
	return job;
}

/* The first ncores cores wait for what nobody sends. */
static inline struct spyreprog_job *job_deadlock(unsigned int ncores)
{
	struct spyreprog_job *job = spyreprog_job_new();
	int p = spyreprog_job_program(job, SPYRE_UNIT_L3LU);
	unsigned int core;

	sp_wait(job, p, 3, 1);
	for (core = 0; core < ncores; core++)
		spyreprog_job_unit(job, core, SPYRE_UNIT_L3LU, 0, p);
	return job;
}

/*
 * 140 s of card time, next to nothing to compute. Below the card's cap of modelled cycles, which would end it
 * before it starts.
 */
static inline struct spyreprog_job *job_endless(void)
{
	struct spyreprog_job *job = spyreprog_job_new();
	int p = spyreprog_job_program(job, SPYRE_UNIT_L3LU), i;

	sp_loop(job, p, 60);
	sp_loop(job, p, 60000);
	sp_loop(job, p, 60000);
	sp_addimm(job, p, SPYRE_LAR0, 128);
	for (i = 0; i < 3; i++)
		sp_end(job, p);
	spyreprog_job_unit(job, 0, SPYRE_UNIT_L3LU, 0, p);
	return job;
}

#endif
