/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/port/vhost_knock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_S = 10, HEADER = 12, VERSION = 1, MORE = 0x100, MAX_FDS = 3 };
enum { GET_FEATURES = 1, SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 5, SET_VRING_NUM = 8 };
enum { SET_VRING_ADDR = 9, SET_VRING_BASE, SET_VRING_KICK = 12, SET_VRING_CALL };
enum { SET_VRING_ENABLE = 18, UNKNOWN = 9999 };
enum { GUEST = 0x1000000, RING = 256, RINGS = 0x8000 };

const char *const vhost_knock_text[N_VHOST_KNOCKS] = {
#define X(sym, text) text,
	VHOST_KNOCKS(X)
#undef X
};

int vhost_come(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = ANSWER_S};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (s < 0)
		return -errno;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(s, (const struct sockaddr *)&at, sizeof(at)) != 0) {
		const int error = errno;

		close(s);
		return -error;
	}
	return s;
}

/* The server may have closed already. size: what the header says. With n file descriptors, all
 * the same. */
static void say_with(
	int s, uint32_t request, uint32_t size, const void *payload, size_t len, int fd, unsigned n)
{
	const uint32_t header[] = {request, VERSION, size};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_FDS * sizeof(int))] = {0};
	struct iovec iov[] = {
		{(void *)(uintptr_t)header, HEADER}, {(void *)(uintptr_t)payload, len}};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 2};

	if (n > 0) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
		*c = (struct cmsghdr){CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		for (unsigned i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	}
	sendmsg(s, &mh, MSG_NOSIGNAL);
}

static void say(int s, uint32_t request, uint32_t size, const void *payload, size_t len)
{
	say_with(s, request, size, payload, len, -1, 0);
}

static void say_u64(int s, uint32_t request, uint64_t u)
{
	say(s, request, sizeof(u), &u, sizeof(u));
}

static void say_ring(int s, uint32_t request, uint32_t index, uint32_t value)
{
	say(s, request, 8, (const uint32_t[]){index, value}, 8);
}

/* One region at GUEST, which ends where the file may not. */
static void say_memory(int s, int fd, unsigned n_fds)
{
	const struct {
		uint32_t n, padding;
		uint64_t guest, size, user, offset;
	} table = {.n = 1, .guest = 0, .size = VHOST_REGION, .user = GUEST};

	say_with(s, SET_MEM_TABLE, sizeof(table), &table, sizeof(table), fd, n_fds);
}

static void say_rings(int s)
{
	for (uint32_t i = 0; i < 2; i++) {
		const struct {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} at = {i, 0, GUEST, GUEST + 2 * RINGS, GUEST + RINGS, 0};

		say_ring(s, SET_VRING_NUM, i, RING);
		say_ring(s, SET_VRING_BASE, i, 0);
		say(s, SET_VRING_ADDR, sizeof(at), &at, sizeof(at));
		say_u64(s, SET_VRING_CALL, i | MORE);
		say_u64(s, SET_VRING_KICK, i | MORE);
		say_ring(s, SET_VRING_ENABLE, i, 1);
	}
}

bool vhost_answers(int s)
{
	uint8_t reply[HEADER + 8];

	say(s, GET_FEATURES, 0, NULL, 0);
	return recv(s, reply, sizeof(reply), MSG_WAITALL) == (ssize_t)sizeof(reply);
}

void vhost_offer(int s, int fd)
{
	say_u64(s, SET_FEATURES, 1ull << 32);
	say_memory(s, fd, 1);
	say_rings(s);
}

int vhost_noise(off_t bytes)
{
	const int fd = memfd_create("knock", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (off_t at = 0; at < bytes; at += VHOST_PAGE) {
		long noise[VHOST_PAGE / sizeof(long)];

		for (unsigned i = 0; i < VHOST_PAGE / sizeof(long); i++)
			noise[i] = random();
		if (pwrite(fd, noise, sizeof(noise), at) != (ssize_t)sizeof(noise)) {
			close(fd);
			return -ENOSPC;
		}
	}
	return fd;
}

/* ---- knocks ---- */

static void garbage(int s)
{
	uint8_t noise[300];

	for (unsigned i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)random();
	send(s, noise, sizeof(noise), MSG_NOSIGNAL);
}

static void nonsense(int s)
{
	say(s, UNKNOWN, 8, "nonsense", 8);
	say(s, SET_MEM_TABLE, UINT32_MAX, NULL, 0);
	for (uint32_t i = 0; i < 32; i++)
		say_ring(s, SET_VRING_NUM, 1u << i, UINT32_MAX);
}

static void uninvited(int s, int fd)
{
	say_with(s, SET_OWNER, 0, NULL, 0, fd, 1);
	say_with(s, SET_FEATURES, 8, &(uint64_t){1ull << 32}, 8, fd, MAX_FDS);
	say_with(s, GET_FEATURES, 0, NULL, 0, fd, 1);
}

/* With whatever in it. */
static int with_memory(int s, enum vhost_knock kind)
{
	const int fd = vhost_noise(kind == VHOST_NOISY ? VHOST_REGION : VHOST_PAGE);

	if (fd < 0)
		return fd;
	if (kind == VHOST_UNINVITED_FD) {
		uninvited(s, fd);
	} else if (kind == VHOST_MANY_FDS) {
		say_memory(s, fd, MAX_FDS);
	} else {
		say(s, SET_OWNER, 0, NULL, 0);
		vhost_answers(s);
		vhost_offer(s, fd);
	}
	vhost_answers(s); /* all of it has been read, or refused */
	close(fd);
	return 0;
}

int vhost_knock(int s, enum vhost_knock kind)
{
	switch (kind) {
	case VHOST_CLOSE:
		return 0;
	case VHOST_GARBAGE:
		garbage(s);
		return 0;
	case VHOST_HALF:
		send(s, "\1\0\0\0\1\0", 6, MSG_NOSIGNAL);
		return 0;
	case VHOST_NONSENSE:
		nonsense(s);
		return 0;
	case VHOST_NO_FD:
		say_memory(s, -1, 0);
		say_rings(s);
		return 0;
	default:
		return with_memory(s, kind);
	}
}
