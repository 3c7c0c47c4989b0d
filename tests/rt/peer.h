/* SPDX-License-Identifier: MIT */
/*
 * Two processes of a test. The other one is the test program again, started afresh, as a child that
 * only forks may not use the library's objects: PROGRAM --role NAME SOCKET. cmocka.h comes before.
 */
#ifndef PEER_H
#define PEER_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spyrert.h"

struct peer {
	pid_t pid;
	int sock;
};

static inline struct peer peer_start(const char *role)
{
	struct peer p;
	char num[16];
	int sock[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock), 0);
	p.sock = sock[0];
	fcntl(sock[0], F_SETFD, FD_CLOEXEC);
	snprintf(num, sizeof(num), "%d", sock[1]);
	p.pid = fork();
	assert_true(p.pid >= 0);
	if (!p.pid) {
		execl("/proc/self/exe", "peer", "--role", role, num, NULL);
		_exit(127);
	}
	close(sock[1]);
	return p;
}

static inline void peer_end(struct peer p)
{
	int status;

	close(p.sock);
	assert_int_equal(waitpid(p.pid, &status, 0), p.pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("the other process ended with status %#x", status);
}

/* One way or the other, each waits for the other to have got to the same point. */
static inline void tell(int sock)
{
	if (write(sock, "", 1) != 1)
		abort();
}

static inline void hear(int sock)
{
	char c;

	if (read(sock, &c, 1) != 1)
		abort();
}

/* In the other process, whose results are an exit status and a line. */
#define NEED(cond)									\
	do {										\
		if (!(cond)) {								\
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #cond,		\
				spyrert_last_error());					\
			_exit(1);							\
		}									\
	} while (0)

#endif
