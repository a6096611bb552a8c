/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/port/serve_knock.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/port/memif_shake.h"

/* What a copying client asks: INIT, one region, two rings; then CONNECT. */
enum { ASKED = 4, MANY = 10, ANSWER_S = 10, FILE_BYTES = 4096 };

const char *const serve_knock_counted[] = {
#define X(sym, counted, text) counted,
	SERVE_KNOCKS(X)
#undef X
};

const char *const serve_knock_text[] = {
#define X(sym, counted, text) text,
	SERVE_KNOCKS(X)
#undef X
};

/* The client may have closed already; then the rest goes nowhere. */
static void say_with(int s, const struct memif_msg *msg, size_t len, unsigned n_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MANY * sizeof(int))] = {0};
	uint8_t bytes[MEMIF_MSG_LEN + 1] = {0};
	struct iovec iov = {.iov_base = bytes, .iov_len = len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	int fd = -1;

	memcpy(bytes, msg, sizeof(*msg));
	if (n_fds > 0) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		fd = memfd_create("knock", MFD_CLOEXEC);
		if (ftruncate(fd, FILE_BYTES) != 0)
			return;
		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		*c = (struct cmsghdr){CMSG_LEN(n_fds * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		for (unsigned i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	}
	sendmsg(s, &mh, MSG_NOSIGNAL);
	if (fd >= 0)
		close(fd);
}

/* Of this type, with as many file descriptors as it should have. */
static void say(int s, enum memif_type type)
{
	struct memif_msg m = {.type = (uint16_t)type};

	if (type == MEMIF_INIT)
		m.init.version = MEMIF_VERSION;
	if (type == MEMIF_ADD_REGION)
		m.region.size = FILE_BYTES;
	say_with(s, &m, sizeof(m), type == MEMIF_ADD_REGION || type == MEMIF_ADD_RING);
}

static void say_hello(int s, enum serve_knock kind)
{
	struct memif_msg m;

	memif_hello(&m);
	if (kind == SERVE_HELLO_OLD)
		m.hello.min_version = m.hello.max_version = 1 << 8;
	if (kind == SERVE_HELLO_NEW || kind == SERVE_HELLO_BACKWARDS)
		m.hello.min_version = m.hello.max_version = 3 << 8;
	if (kind == SERVE_HELLO_BACKWARDS)
		m.hello.max_version = 1 << 8;
	if (kind == SERVE_HELLO_NAME)
		memset(m.hello.name, 'x', sizeof(m.hello.name));
	if (kind == SERVE_HUGE)
		m.hello.max_region = m.hello.max_m2s_ring = m.hello.max_s2m_ring = UINT16_MAX;
	if (kind == SERVE_HUGE || kind == SERVE_TINY)
		m.hello.max_log2_ring = kind == SERVE_HUGE ? UINT8_MAX : 0;
	say_with(s, &m, kind == SERVE_SHORT ? sizeof(m) / 2 : sizeof(m) + (kind == SERVE_LONG),
		kind == SERVE_HELLO_FD    ? 1
		: kind == SERVE_HELLO_FDS ? MANY
					  : 0);
}

static void say_noise(int s)
{
	static unsigned seed = 1;
	struct memif_msg m;

	for (unsigned i = 0; i < sizeof(m); i++)
		((uint8_t *)&m)[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
	m.type |= 0x100;
	say_with(s, &m, sizeof(m), 0);
}

/* The text of a message is what fills it. */
static void say_endless(int s, enum memif_type type)
{
	struct memif_msg m;

	memset(&m, 'x', sizeof(m));
	m.type = (uint16_t)type;
	say_with(s, &m, sizeof(m), 0);
}

/* What the client says next: its type, 0 at its end, -errno. */
static int hear(int s)
{
	struct memif_msg m;
	ssize_t n = recv(s, &m, sizeof(m), 0);

	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	return n == 0 ? 0 : m.type;
}

static int until_closed(int s)
{
	int rc;

	do
		rc = hear(s);
	while (rc > 0);
	return rc;
}

/* Answers so many of the client's messages; CONNECT is the one after ASKED. */
static int answer(int s, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const int type = hear(s);

		if (type <= 0)
			return type < 0 ? type : -ECONNRESET;
		if ((type == MEMIF_CONNECT) != (i == ASKED))
			return -EPROTO;
		say(s, type == MEMIF_CONNECT ? MEMIF_CONNECTED : MEMIF_ACK);
	}
	return 0;
}

static void before_hello(int s, enum serve_knock kind)
{
	static const enum memif_type said[] = {[SERVE_BYE] = MEMIF_DISCONNECT,
		[SERVE_ACK] = MEMIF_ACK,
		[SERVE_CONNECTED] = MEMIF_CONNECTED,
		[SERVE_INIT] = MEMIF_INIT,
		[SERVE_REGION] = MEMIF_ADD_REGION};

	if (kind == SERVE_NOISE)
		say_noise(s);
	else if (kind == SERVE_EMPTY)
		send(s, "", 0, MSG_NOSIGNAL);
	else if (kind == SERVE_SHORT || kind == SERVE_LONG)
		say_hello(s, kind);
	else
		say(s, said[kind]);
}

/* When the client has asked for an answer to its first message, its last, or is connected. */
static void instead(int s, enum serve_knock kind)
{
	static const enum memif_type said[N_SERVE_KNOCKS] = {[SERVE_HELLO_BYE] = MEMIF_DISCONNECT,
		[SERVE_HELLO_CONNECTED] = MEMIF_CONNECTED,
		[SERVE_HELLO_INIT] = MEMIF_INIT,
		[SERVE_HELLO_REGION] = MEMIF_ADD_REGION,
		[SERVE_HELLO_RING] = MEMIF_ADD_RING,
		[SERVE_HELLO_CONNECT] = MEMIF_CONNECT,
		[SERVE_ACKS_ACK] = MEMIF_ACK,
		[SERVE_ACKS_REGION] = MEMIF_ADD_REGION,
		[SERVE_UP_BYE] = MEMIF_DISCONNECT,
		[SERVE_UP_ACK] = MEMIF_ACK,
		[SERVE_UP_CONNECTED] = MEMIF_CONNECTED,
		[SERVE_UP_REGION] = MEMIF_ADD_REGION,
		[SERVE_UP_CONNECT] = MEMIF_CONNECT};
	const struct memif_msg region = {.type = MEMIF_ADD_REGION, .region.size = FILE_BYTES};

	if (said[kind] != 0)
		say(s, said[kind]);
	else if (kind == SERVE_HELLO_REGION_NO_FD)
		say_with(s, &region, sizeof(region), 0);
	else if (kind == SERVE_ACKS_NAME || kind == SERVE_ACKS_BYE)
		say_endless(s, kind == SERVE_ACKS_NAME ? MEMIF_CONNECTED : MEMIF_DISCONNECT);
	else if (kind != SERVE_HELLO_NAME)
		say_hello(s, kind);
}

static unsigned answers(enum serve_knock kind)
{
	if (kind < SERVE_ACKS_GONE_1)
		return 0;
	if (kind <= SERVE_ACKS_GONE_4)
		return kind - SERVE_ACKS_GONE_1 + 1;
	return kind < SERVE_UP_GONE ? ASKED : ASKED + 1;
}

static bool goes(enum serve_knock kind)
{
	return kind == SERVE_GONE || kind == SERVE_HELLO_GONE || kind == SERVE_UP_GONE ||
	       kind >= SERVE_HUGE || (kind >= SERVE_ACKS_GONE_1 && kind <= SERVE_ACKS_GONE_4);
}

static int talk(int s, enum serve_knock kind, void (*while_up)(void))
{
	int rc = 0;

	if (kind > SERVE_GONE && kind < SERVE_HELLO_OLD)
		before_hello(s, kind);
	if (kind >= SERVE_HELLO_OLD)
		say_hello(s, kind);
	if (kind >= SERVE_ACKS_GONE_1)
		rc = answer(s, answers(kind));
	if (rc < 0)
		return rc;
	if (kind >= SERVE_UP_GONE && while_up != NULL)
		while_up();
	if (kind >= SERVE_HELLO_TWICE && !goes(kind))
		instead(s, kind);
	return goes(kind) ? 0 : until_closed(s);
}

int serve_knock(int s, enum serve_knock kind, void (*while_up)(void))
{
	const struct timeval patience = {.tv_sec = ANSWER_S};
	int rc;

	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	rc = talk(s, kind, while_up);
	close(s);
	return rc;
}
