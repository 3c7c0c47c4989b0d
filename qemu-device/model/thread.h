/* SPDX-License-Identifier: MIT */
/* Starting the threads of the card and of the SoC. */
#ifndef SPYRE_MODEL_THREAD_H
#define SPYRE_MODEL_THREAD_H

#include <pthread.h>
#include <signal.h>

/* 0 or a positive errno. The host's signals are not for the model's threads. */
static inline int thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

#endif
