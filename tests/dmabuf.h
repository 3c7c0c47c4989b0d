/* SPDX-License-Identifier: MIT */
/*
 * Descriptors between processes, and dma-bufs of another driver, for several suites; _GNU_SOURCE
 * comes before.
 */
#ifndef TESTS_DMABUF_H
#define TESTS_DMABUF_H

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* One descriptor over a Unix socket: 0 or -errno. */
static inline int send_fd(int sock, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
	char c = 0;
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	return sendmsg(sock, &m, 0) == 1 ? 0 : -errno;
}

/* It, close-on-exec, or a negative number. */
static inline int recv_fd(int sock)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	char c;
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
		return -EIO;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* Of size bytes in a memfd; the descriptor or -errno. */
static inline int udmabuf(uint64_t size, uint8_t **map)
{
	int mem = memfd_create("spyre", MFD_CLOEXEC | MFD_ALLOW_SEALING), dev, buf;
	struct udmabuf_create c = { .memfd = mem, .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };

	*map = NULL;
	if (mem < 0 || ftruncate(mem, size) || fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK))
		return -errno;
	*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	if (*map == MAP_FAILED)
		return -errno;
	dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -errno;
	buf = ioctl(dev, UDMABUF_CREATE, &c);
	if (buf < 0)
		buf = -errno;
	close(dev);
	close(mem);
	return buf;
}

#endif
