/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/port/knock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/port/memif_shake.h"

enum {
	LOG2 = 5,
	RING_LEN = MEMIF_RING_HEADER + (MEMIF_DESC_LEN << LOG2),
	FILE_BYTES = KNOCK_RINGS_LEN
};
enum { COOKIE = 0x3E31F20, MANY = 10, ANSWER_S = 10, DOOR_MS = 2000 };

const char *const knock_counted[] = {
#define X(sym, counted, text) counted,
	KNOCKS(X)
#undef X
};

const char *const knock_text[] = {
#define X(sym, counted, text) text,
	KNOCKS(X)
#undef X
};

/* The server may have closed already; then the rest goes nowhere. */
static void say(int s, const struct memif_msg *msg, size_t len, int fd, unsigned n_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MANY * sizeof(int))] = {0};
	uint8_t bytes[MEMIF_MSG_LEN + 1] = {0};
	struct iovec iov = {.iov_base = bytes, .iov_len = len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	memcpy(bytes, msg, sizeof(*msg));
	if (n_fds > 0) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		for (unsigned i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	}
	sendmsg(s, &mh, MSG_NOSIGNAL);
}

static void say_init(int s, enum knock kind, uint16_t id, uint16_t busy_id)
{
	struct memif_msg m = {.type = MEMIF_INIT};

	m.init.version = kind == KNOCK_VERSION ? 1 << 8 : MEMIF_VERSION;
	m.init.mode = kind == KNOCK_MODE;
	if (kind == KNOCK_INIT_NAME)
		memset(m.init.name, 'x', sizeof(m.init.name));
	m.init.id = kind == KNOCK_BUSY ? busy_id : kind == KNOCK_ID ? 65537u + id : id;
	say(s, &m, kind == KNOCK_SHORT ? 64 : sizeof(m) + (kind == KNOCK_LONG), 0,
		kind == KNOCK_INIT_FD);
}

static int file(enum knock kind)
{
	int fd = memfd_create("knock", MFD_ALLOW_SEALING | MFD_CLOEXEC), both[2];
	uint32_t cookie = COOKIE;

	if (kind == KNOCK_REGION_PIPE && pipe(both) == 0) {
		close(fd);
		close(both[1]);
		return both[0];
	}
	if (ftruncate(fd, FILE_BYTES) != 0)
		return -1;
	if (kind != KNOCK_COOKIE && (pwrite(fd, &cookie, sizeof(cookie), 0) < 0 ||
					    pwrite(fd, &cookie, sizeof(cookie), RING_LEN) < 0))
		return -1;
	if (kind != KNOCK_REGION_FILE)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	return fd;
}

static void say_regions(int s, enum knock kind)
{
	struct memif_msg m = {.type = MEMIF_ADD_REGION};
	unsigned fds = kind == KNOCK_NO_FD ? 0 : kind == KNOCK_MANY_FDS ? MANY : 1;
	int fd = file(kind);

	m.region.size = kind == KNOCK_REGION_SIZE   ? FILE_BYTES + 1
			: kind == KNOCK_REGION_HUGE ? UINT64_MAX
						    : FILE_BYTES;
	m.region.index = kind == KNOCK_REGION_INDEX ? UINT16_MAX : 0;
	for (unsigned n = kind == KNOCK_REGIONS ? MEMIF_REGIONS + 1 : 1; n > 0; n--) {
		say(s, &m, sizeof(m), fd, fds);
		m.region.index++;
	}
	close(fd);
}

static void say_rings(int s, enum knock kind)
{
	struct memif_msg m = {.type = MEMIF_ADD_RING};
	int pipes[2];

	if (pipe(pipes) != 0)
		return;
	close(pipes[kind == KNOCK_PIPE_CLIENT ? 0 : 1]);
	m.ring.log2_size = kind == KNOCK_RING_SIZE ? UINT8_MAX : LOG2;
	m.ring.index = kind == KNOCK_RING_INDEX ? UINT16_MAX : 0;
	m.ring.region = kind == KNOCK_RING_REGION ? UINT16_MAX : 0;
	m.ring.offset = kind == KNOCK_RING_PLACE ? FILE_BYTES - RING_LEN + MEMIF_DESC_LEN
						 : (kind == KNOCK_RING_ODD);
	say(s, &m, sizeof(m), pipes[kind == KNOCK_PIPE_CLIENT], 1);
	m.ring.flags = kind != KNOCK_RING_TWICE;
	m.ring.offset = RING_LEN;
	if (kind != KNOCK_RINGLESS)
		say(s, &m, sizeof(m), pipes[kind == KNOCK_PIPE_CLIENT], 1);
	close(pipes[kind == KNOCK_PIPE_CLIENT]);
}

static void say_connect(int s, enum knock kind)
{
	struct memif_msg m = {.type = MEMIF_CONNECT};

	if (kind == KNOCK_CONNECT_NAME)
		memset(m.connect.name, 'x', sizeof(m.connect.name));
	say(s, &m, sizeof(m), -1, 0);
}

static void say_noise(int s)
{
	static unsigned seed = 1;
	struct memif_msg m;

	for (unsigned i = 0; i < sizeof(m); i++)
		((uint8_t *)&m)[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
	m.type |= 0x100;
	say(s, &m, sizeof(m), -1, 0);
}

/* Until this message, or the end (which is what 0 waits for). */
static int hear(int s, unsigned type)
{
	struct memif_msg m;

	for (;;) {
		ssize_t n = recv(s, &m, sizeof(m), 0);

		if (n < 0 && errno != ECONNRESET)
			return -errno;
		if (n <= 0)
			return type == 0 ? 0 : -ECONNRESET;
		if (m.type == type)
			return 0;
	}
}

int knock_connect(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = ANSWER_S};
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), error;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(s, (const struct sockaddr *)&at, sizeof(at)) == 0)
		return s;
	error = errno;
	close(s);
	return -error;
}

static int talk(int s, enum knock kind, uint16_t id, uint16_t busy_id)
{
	int rc;

	if (kind == KNOCK_GARBAGE)
		say_noise(s);
	else if (kind == KNOCK_UNINVITED)
		say_connect(s, kind);
	else
		say_init(s, kind, id, busy_id);
	if (kind > KNOCK_INIT_FD)
		say_regions(s, kind);
	if (kind > KNOCK_REGION_FILE)
		say_rings(s, kind);
	if (kind >= KNOCK_RINGLESS)
		say_connect(s, kind);
	if (kind == KNOCK_INIT_GONE || kind == KNOCK_CONNECT_GONE)
		return 0;
	if (kind < KNOCK_CONNECT_GONE)
		return hear(s, 0);
	rc = hear(s, MEMIF_CONNECTED);
	if (rc == 0 && kind == KNOCK_CONNECT_TWICE) {
		say_connect(s, kind);
		rc = hear(s, 0);
	}
	return rc;
}

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int knock(const char *path, enum knock kind, uint16_t id, uint16_t busy_id)
{
	const uint64_t begun = clock_ms();
	int s = knock_connect(path), rc;

	if (s < 0)
		return s;
	rc = kind == KNOCK_CLOSE ? 0 : talk(s, kind, id, busy_id);
	close(s);
	/* The door sends away who is not connected in time, also where it was the machine's. */
	return rc == -ECONNRESET && clock_ms() - begun >= DOOR_MS ? 0 : rc;
}

/* ---- a client with buffers of its own ---- */

enum { PACKET = 64 };

/* What is used of a ring of the client's packets, which is the second. */
struct ring {
	uint32_t cookie;
	uint16_t flags, head;
	uint8_t rest[MEMIF_RING_HEADER - 8];
	struct {
		uint16_t flags, region;
		uint32_t length, offset, metadata;
	} desc[1 << LOG2];
};
static_assert(sizeof(struct ring) == RING_LEN, "as the driver has it");

int knock_with_buffers(const char *path, uint16_t id, int buffers, void **rings)
{
	struct memif_msg m = {.type = MEMIF_ADD_REGION, .region = {.index = 0, .size = FILE_BYTES}};
	int s = knock_connect(path), fd = file(KNOCK_CLIENT), rc;

	*rings = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s < 0 || *rings == MAP_FAILED)
		return s < 0 ? s : -errno;
	say_init(s, KNOCK_CLIENT, id, id);
	say(s, &m, sizeof(m), fd, 1);
	m.region.index = 1;
	say(s, &m, sizeof(m), buffers, 1);
	say_rings(s, KNOCK_CLIENT);
	say_connect(s, KNOCK_CLIENT);
	close(fd);
	rc = hear(s, MEMIF_CONNECTED);
	return rc < 0 ? rc : s;
}

void knock_send(void *rings)
{
	struct ring *ring = (void *)((uint8_t *)rings + RING_LEN);
	const uint16_t head = ring->head;

	ring->desc[head % (1 << LOG2)].region = 1;
	ring->desc[head % (1 << LOG2)].length = PACKET;
	__atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
}
