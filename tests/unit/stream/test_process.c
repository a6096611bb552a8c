/* SPDX-License-Identifier: BSD-3-Clause */
/* The control path in an environment of its own (ZeroNIC, 3.3): another process. This process has
 * the two programs, their memory, and the data paths with the cable between them; each of two
 * children has a control path, and neither the programs' memory, which it was not given, nor the
 * bounce memory, which is closed to it: who touches payload there dies. Programs and control paths
 * talk through queues in shared memory, as control paths and data paths do. Time is a number of
 * turns. */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/stream/net.h"

enum { LEN = 2 << 20, PIECE = 64 << 10, CABLE = 256, SHARED = 32 << 20, DEPTH = 64, DROP = 50 };

struct cable_frame {
	uint32_t len;
	uint8_t bytes[1600];
};

/* From a program to its control path; back come completions. */
struct call {
	bool send;
	uint8_t *buf;
	uint32_t len;
	uint64_t cookie;
};

/* What the processes share. */
static struct shared {
	struct ring calls[2], done[2];
	atomic_bool stop;
	size_t used;
	_Alignas(4096) uint8_t memory[SHARED];
} * shared;

static struct net *net;
static struct ring cable[2]; /* to each side */
static uint8_t *tx[2], *rx[2];

static void *from_shared(void *arg, size_t bytes)
{
	uint8_t *p = shared->memory + shared->used;

	(void)arg;
	/* Pages of their own: some are closed to one process. */
	shared->used += (bytes + 4095) / 4096 * 4096;
	return shared->used <= SHARED ? p : NULL;
}

static void change(struct stream_config *c, int side)
{
	(void)side;
	c->alloc = from_shared;
	c->give_up = STREAM_MAX_WAIT; /* turns are no time that passes for the other process */
	c->max_conns = c->max_half_open = 4;
	c->segments = 2048;
	c->allowance =
		2048; /* most comes before its buffer now and then: copied by the data path */
	c->wscale = 3;
}

/* ---- a child: a control path, and who speaks for the program ---- */

static void take_calls(int side, uint32_t conn)
{
	struct stream *s = net->s[side];
	const struct call *call;

	while ((call = ring_peek(&shared->calls[side])) != NULL) {
		if ((call->send ? stream_send(s, conn, call->buf, call->len, call->cookie)
				: stream_recv(s, conn, call->buf, call->len, call->cookie)) < 0)
			return;
		ring_release_one(&shared->calls[side]);
	}
}

static void control(int side)
{
	struct stream *s = net->s[side];
	struct stream_completion *done;
	uint64_t now = 1;
	uint32_t conn = 0;
	bool open = false;

	if (side == SERVER && stream_listen(s, 80, 0) < 0)
		_exit(2);
	if (side == CLIENT &&
		stream_connect(s, now, net->mac[SERVER], &net->ip[SERVER], 80, 0, 0, &conn) < 0)
		_exit(3);
	while (!atomic_load(&shared->stop)) {
		now += 1000;
		stream_turn(s, now);
		while ((done = ring_claim(&shared->done[side])) != NULL &&
			stream_poll(s, done, 1) > 0) {
			if (done->event == STREAM_ACCEPTED || done->event == STREAM_CONNECTED) {
				conn = done->conn;
				open = true;
			}
			ring_publish(&shared->done[side]);
		}
		if (open)
			take_calls(side, conn);
		if (now % 64000 == 0)
			sched_yield();
	}
	_exit(0);
}

static pid_t start(int side, bool touch)
{
	const struct stream_path *path = stream_path(net->s[side]);
	const size_t bounce = ((size_t)path->slot_bytes * 257 + 4095) / 4096 * 4096;
	const pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mprotect(path->bounce, bounce, PROT_NONE) < 0)
		_exit(4);
	if (touch) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile uint8_t *)rx[side]);
	}
	control(side);
	return 0;
}

/* ---- here: programs and data paths ---- */

static void data_turn(int side)
{
	struct stream_path *path = stream_path(net->s[side]);
	const struct cable_frame *in;
	struct cable_frame *out;

	for (unsigned i = 0; i < 32 && (in = ring_peek(&cable[side])) != NULL; i++) {
		if (net_random(net, DROP) != 0)
			stream_path_rx(path, in->bytes, in->len);
		ring_release_one(&cable[side]);
	}
	while ((out = ring_claim(&cable[!side])) != NULL) {
		out->len = (uint32_t)stream_path_tx(path, out->bytes, sizeof(out->bytes));
		if (out->len == 0)
			break;
		ring_publish(&cable[!side]);
	}
	stream_path_quiesce(path);
}

static size_t asked[2][2], got[2], acked[2]; /* asked: [side][send] */

static void ask(int side, bool send)
{
	struct call *call;

	while (asked[side][send] < LEN &&
		asked[side][send] < (send ? acked : got)[side] + 4 * PIECE &&
		(call = ring_claim(&shared->calls[side])) != NULL) {
		*call = (struct call){.send = send,
			.buf = (send ? tx : rx)[side] + asked[side][send],
			.len = PIECE,
			.cookie = asked[side][send]};
		ring_publish(&shared->calls[side]);
		asked[side][send] += PIECE;
	}
}

static void program(int side)
{
	const struct stream_completion *c;

	while ((c = ring_peek(&shared->done[side])) != NULL) {
		if (c->event == STREAM_SENT) {
			assert_int_equal(c->result, PIECE);
			acked[side] += PIECE;
		} else if (c->event == STREAM_RECEIVED) {
			assert_int_equal(c->result, PIECE);
			assert_memory_equal(rx[side] + c->cookie, tx[!side] + c->cookie, PIECE);
			memset(rx[side] + c->cookie, 0xaa, PIECE); /* ours again */
			got[side] += PIECE;
		} else {
			assert_true(c->event != STREAM_CLOSED);
		}
		ring_release_one(&shared->done[side]);
	}
	ask(side, true);
	/* The server's receives come after the first data, which is kept for them. */
	if (side == CLIENT || stream_path(net->s[SERVER])->count[STREAM_PATH_BOUNCED] > 0)
		ask(side, false);
}

static void *mine(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	/* No child has it. */
	assert_int_equal(madvise(p, bytes, MADV_DONTFORK), 0);
	return p;
}

static void queue(struct ring *r, size_t size)
{
	ring_init(r, from_shared(NULL, DEPTH * size), DEPTH, (uint32_t)size);
}

static int set_up(void **state)
{
	(void)state;
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	net = net_new(21, change);
	for (int i = 0; i < 2; i++) {
		queue(&shared->calls[i], sizeof(struct call));
		queue(&shared->done[i], sizeof(struct stream_completion));
		ring_init(&cable[i], mine(CABLE * sizeof(struct cable_frame)), CABLE,
			sizeof(struct cable_frame));
		tx[i] = mine(LEN);
		rx[i] = mine(LEN);
		for (size_t k = 0; k < LEN; k++)
			tx[i][k] = net_byte(i, k);
	}
	return 0;
}

static void test_another_process(void **state)
{
	pid_t pid[2];
	int status;

	(void)state;
	for (int i = 0; i < 2; i++) {
		pid[i] = start(i, false);
		assert_true(pid[i] > 0);
	}
	while (got[0] + got[1] < 2 * LEN || acked[0] + acked[1] < 2 * LEN) {
		for (int i = 0; i < 2; i++) {
			data_turn(i);
			program(i);
			if (waitpid(pid[i], &status, WNOHANG) != 0)
				fail_msg("control path %d has ended: %x", i, (unsigned)status);
		}
		sched_yield();
	}
	atomic_store(&shared->stop, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < LEN; k++)
			if (rx[i][k] != 0xaa)
				fail_msg("side %d: byte %zu written after it was told", i, k);
	assert_true(stream_count(net->s[CLIENT], STREAM_COUNT_RETRANSMITTED) > 0);
	assert_true(stream_path(net->s[SERVER])->count[STREAM_PATH_BOUNCED] > 0);
}

/* The check itself: a control path that looks at payload dies of it. */
static void test_payload_is_not_there(void **state)
{
	const pid_t pid = start(CLIENT, true);
	int status;

	(void)state;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_payload_is_not_there),
		cmocka_unit_test(test_another_process),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
