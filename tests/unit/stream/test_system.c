/* SPDX-License-Identifier: BSD-3-Clause */
/* No system call per operation (ZeroNIC, 3.3): after connections are there, a process that the
 * kernel kills at its first system call but the one that ends it (seccomp, strict) sends and
 * receives through two stacks, both paths of each, also what is lost and sent again. */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/stream/net.h"

enum { OPERATIONS = 2000, PIECE = 20000, WRONG = 1, RIGHT = 42 };

static struct ends {
	struct stream *s[2];
	uint32_t conn[2];
	uint64_t now;
	unsigned frames, sent, received;
	uint8_t out[PIECE], in[PIECE];
} ends;

static uint32_t counting(void *arg)
{
	static uint32_t n = 1;

	(void)arg;
	return n = n * 1664525 + 1013904223;
}

/* Every 50th frame is lost. */
static void turn(int side)
{
	struct stream_path *path = stream_path(ends.s[side]), *peer = stream_path(ends.s[!side]);
	uint8_t frame[2000];
	size_t len;

	ends.now += 10000;
	while (stream_turn(ends.s[side], ends.now) > 0)
		;
	while ((len = stream_path_tx(path, frame, sizeof(frame))) > 0)
		if (ends.frames++ % 50 != 49)
			stream_path_rx(peer, frame, len);
	stream_path_quiesce(path);
	stream_path_quiesce(peer);
}

/* 0, or the process ends. */
static bool poll_one(int side)
{
	struct stream_completion c;

	if (stream_poll(ends.s[side], &c, 1) == 0)
		return false;
	if (c.event == STREAM_ACCEPTED || c.event == STREAM_CONNECTED) {
		ends.conn[side] = c.conn;
		return true;
	}
	if (c.result != PIECE)
		syscall(SYS_exit, WRONG);
	if (c.event == STREAM_SENT) {
		ends.sent++;
	} else {
		ends.received++;
		for (unsigned i = 0; i < PIECE; i++)
			if (ends.in[i] != (uint8_t)(i * 7))
				syscall(SYS_exit, WRONG);
		memset(ends.in, 0, PIECE);
	}
	return true;
}

static void start(void)
{
	static const uint8_t mac[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
	struct wire_ip server = wire_ip_from4(0x0a000002);

	for (int k = 0; k < 2; k++) {
		struct stream_config c;

		stream_defaults(&c, 4);
		memcpy(c.mac, mac[k], 6);
		c.ip = wire_ip_from4(0x0a000001 + (uint32_t)k);
		c.rto_min = 5000000;
		c.random = counting;
		assert_int_equal(stream_create(&c, &ends.s[k]), 0);
	}
	for (unsigned i = 0; i < PIECE; i++)
		ends.out[i] = (uint8_t)(i * 7);
	assert_int_equal(stream_listen(ends.s[SERVER], 80, 0), 0);
	assert_int_equal(stream_connect(ends.s[CLIENT], 0, mac[SERVER], &server, 80, 0, 0,
				 &ends.conn[CLIENT]),
		0);
	while (ends.conn[SERVER] == 0) {
		turn(CLIENT);
		turn(SERVER);
		poll_one(CLIENT);
		poll_one(SERVER);
	}
}

static void child(bool call)
{
	unsigned posted = 0, rounds = 0;

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
		_exit(WRONG);
	if (call)
		getppid();
	while (ends.received < OPERATIONS && rounds++ < 1000000) {
		if (posted == ends.received && posted == ends.sent) {
			if (stream_recv(ends.s[SERVER], ends.conn[SERVER], ends.in, PIECE, 0) < 0 ||
				stream_send(ends.s[CLIENT], ends.conn[CLIENT], ends.out, PIECE, 0) <
					0)
				syscall(SYS_exit, WRONG);
			posted++;
		}
		turn(CLIENT);
		turn(SERVER);
		while (poll_one(CLIENT) || poll_one(SERVER))
			;
	}
	syscall(SYS_exit, ends.received == OPERATIONS ? RIGHT : WRONG);
}

static int status_of(bool call)
{
	const pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		child(call);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_no_calls(void **state)
{
	int status;

	(void)state;
	start();
	status = status_of(false);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), RIGHT);
	/* One that makes a call does not get that far. */
	status = status_of(true);
	assert_true(WIFSIGNALED(status));
	for (int k = 0; k < 2; k++)
		stream_destroy(ends.s[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
