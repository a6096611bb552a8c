/* SPDX-License-Identifier: BSD-3-Clause */
/* A vhost port, whoever knocks: it goes on, and the next client is heard. Its messages are what
 * the vhost-user protocol says, of the front end. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/port/port.h"

enum { MTU = 1500, ROUNDS = 40, ANSWER_S = 10, HEADER = 12, VERSION = 1, MORE = 0x100 };
enum { GET_FEATURES = 1, SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 5, SET_VRING_NUM = 8 };
enum { SET_VRING_ADDR = 9, SET_VRING_BASE, SET_VRING_KICK = 12, SET_VRING_CALL };
enum { SET_VRING_ENABLE = 18, UNKNOWN = 9999 };
enum { GUEST = 0x1000000, REGION = 1 << 21, FILE_BYTES = 4096, RING = 256, RINGS = 0x8000 };

static char dir[] = "/tmp/vhost-test-XXXXXX";
static char path[64];
static struct rte_mempool *pool;
static struct port port;
static struct sigaction guard; /* the port's, while cmocka has its own */
static sigjmp_buf out;

/* ---- the front end ---- */

static int come(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = ANSWER_S};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(s, (const struct sockaddr *)&at, sizeof(at)), 0);
	return s;
}

/* The server may have closed already. size: what the header says. fd: -1, none. */
static void say(int s, uint32_t request, uint32_t size, const void *payload, size_t len, int fd)
{
	const uint32_t header[] = {request, VERSION, size};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov[] = {
		{(void *)(uintptr_t)header, HEADER}, {(void *)(uintptr_t)payload, len}};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 2};

	if (fd >= 0) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		mh.msg_control = control;
		mh.msg_controllen = sizeof(control);
		*c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	sendmsg(s, &mh, MSG_NOSIGNAL);
}

static void say_u64(int s, uint32_t request, uint64_t u)
{
	say(s, request, sizeof(u), &u, sizeof(u), -1);
}

static void say_ring(int s, uint32_t request, uint32_t index, uint32_t value)
{
	say(s, request, 8, (const uint32_t[]){index, value}, 8, -1);
}

/* One region at GUEST, which ends where the file may not. */
static void say_memory(int s, uint64_t size, int fd)
{
	const struct {
		uint32_t n, padding;
		uint64_t guest, size, user, offset;
	} table = {.n = 1, .guest = 0, .size = size, .user = GUEST};

	say(s, SET_MEM_TABLE, sizeof(table), &table, sizeof(table), fd);
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
		say(s, SET_VRING_ADDR, sizeof(at), &at, sizeof(at), -1);
		say_u64(s, SET_VRING_CALL, i | MORE);
		say_u64(s, SET_VRING_KICK, i | MORE);
		say_ring(s, SET_VRING_ENABLE, i, 1);
	}
}

/* False: it has hung up. */
static bool answers(int s)
{
	uint8_t reply[HEADER + 8];

	say(s, GET_FEATURES, 0, NULL, 0, -1);
	return recv(s, reply, sizeof(reply), MSG_WAITALL) == (ssize_t)sizeof(reply);
}

/* ---- knocks ---- */

static void closes(int s)
{
	(void)s;
}

static void garbage(int s)
{
	uint8_t noise[300];

	for (unsigned i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)random();
	send(s, noise, sizeof(noise), MSG_NOSIGNAL);
}

static void half(int s)
{
	send(s, "\1\0\0\0\1\0", 6, MSG_NOSIGNAL);
}

static void nonsense(int s)
{
	say(s, UNKNOWN, 8, "nonsense", 8, -1);
	say(s, SET_MEM_TABLE, UINT32_MAX, NULL, 0, -1);
	for (uint32_t i = 0; i < 32; i++)
		say_ring(s, SET_VRING_NUM, 1u << i, UINT32_MAX);
}

static void no_memory(int s)
{
	say_memory(s, REGION, -1);
	say_rings(s);
}

/* Of this length, with whatever in it. */
static void with_memory(int s, off_t bytes)
{
	int fd = memfd_create("knock", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, bytes), 0);
	for (off_t at = 0; at < bytes; at += FILE_BYTES) {
		long noise[FILE_BYTES / sizeof(long)];

		for (unsigned i = 0; i < FILE_BYTES / sizeof(long); i++)
			noise[i] = random();
		assert_int_equal(pwrite(fd, noise, sizeof(noise), at), sizeof(noise));
	}
	say(s, SET_OWNER, 0, NULL, 0, -1);
	answers(s);
	say_u64(s, SET_FEATURES, 1ull << 32);
	say_memory(s, REGION, fd);
	say_rings(s);
	answers(s); /* all of it has been read, or refused */
	close(fd);
}

static void short_memory(int s)
{
	with_memory(s, FILE_BYTES);
}

static void noisy_memory(int s)
{
	with_memory(s, REGION);
}

static void (*const knocks[])(int) = {
	closes, garbage, half, nonsense, no_memory, short_memory, noisy_memory};

static void turn(void)
{
	struct rte_mbuf *m[32];
	unsigned n = port_rx_burst(&port, m, 32);

	rte_pktmbuf_free_bulk(m, n);
}

static void knocked(void **state)
{
	int s;

	sigaction(SIGBUS, &guard, NULL);
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < sizeof(knocks) / sizeof(knocks[0]); i++) {
			s = come();
			knocks[i](s);
			turn();
			close(s);
		}
	s = come();
	assert_true(answers(s));
	close(s);
}

/* What is lost is counted, this client is hung up on, and the next one is heard. */
static void lost_one(int s, uint64_t before)
{
	assert_int_equal(port_vhost_lost(), before + 1);
	assert_false(answers(s));
	close(s);
	s = come();
	assert_true(answers(s));
	close(s);
}

/* The vhost library's own thread reads rings that lie behind the end of the file. */
static void memory_is_shorter_than_it_says(void **state)
{
	const uint64_t before = port_vhost_lost();
	int s = come();

	sigaction(SIGBUS, &guard, NULL);
	(void)state;
	short_memory(s);
	lost_one(s, before);
}

/* The thread that polls the port finds the file cut. */
static void memory_is_cut_in_use(void **state)
{
	const uint64_t before = port_vhost_lost();
	int s = come(), fd = memfd_create("memory", MFD_CLOEXEC);

	sigaction(SIGBUS, &guard, NULL);
	(void)state;
	assert_int_equal(ftruncate(fd, REGION), 0);
	say_u64(s, SET_FEATURES, 1ull << 32);
	say_memory(s, REGION, fd);
	say_rings(s);
	assert_true(answers(s));
	assert_true(port_link_up(&port));
	turn();
	assert_int_equal(port_vhost_lost(), before);
	assert_int_equal(ftruncate(fd, 0), 0);
	turn();
	turn();
	lost_one(s, before);
	close(fd);
}

static void leave(int number)
{
	siglongjmp(out, number);
}

/* What is not a client's goes to who had the signal before. */
static void other_memory_is_others_concern(void **state)
{
	const uint64_t before = port_vhost_lost();
	int fd = memfd_create("own", MFD_CLOEXEC);
	volatile char *own = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);

	(void)state;
	sigaction(SIGBUS, &guard, NULL);
	if (sigsetjmp(out, 1) == 0) {
		(void)*own;
		fail_msg("an empty file can be read");
	}
	assert_int_equal(port_vhost_lost(), before);
	munmap((void *)(uintptr_t)own, FILE_BYTES);
	close(fd);
}

static int start(void)
{
	const struct port_eal eal = {.program = "test", .memory_mb = 64};
	struct port_config config;
	char err[PORT_ERR_LEN] = "";
	json_t *json;
	int rc = -1;

	signal(SIGBUS, leave);
	if (port_eal_init(&eal, err) == 0 && mkdtemp(dir) != NULL)
		pool = port_pool_create("test", 4095, MTU, SOCKET_ID_ANY, err);
	snprintf(path, sizeof(path), "%s/v.sock", dir);
	json = json_pack("{ss ss ss si}", "name", "v", "type", "vhost", "socket", path, "mtu", MTU);
	if (pool != NULL && port_config_parse(json, &config, err) == 0)
		rc = port_open(&config, pool, 5000, &port, err);
	json_decref(json);
	if (rc != 0)
		print_error("%s\n", err);
	sigaction(SIGBUS, NULL, &guard);
	return rc;
}

static int teardown(void **state)
{
	(void)state;
	port_close(&port);
	rte_mempool_free(pool);
	port_eal_fini();
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_shorter_than_it_says),
		cmocka_unit_test(memory_is_cut_in_use),
		cmocka_unit_test(other_memory_is_others_concern),
		cmocka_unit_test(knocked),
	};

	return start() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, teardown);
}
