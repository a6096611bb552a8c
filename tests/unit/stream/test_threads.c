/* SPDX-License-Identifier: BSD-3-Clause */
/* Each stack's data path on a thread of its own, its control path on another: the rings and grace
 * periods carry a stream both ways. Under a thread sanitizer as well. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "tests/unit/stream/net.h"

enum { LEN = 4 << 20, PIECE = 64 << 10, CABLE = 1024 };

/* Frames from one data path to the other. */
struct cable_frame {
	uint32_t len;
	uint8_t bytes[1600];
};

static struct net *net;
static struct ring cable[2]; /* to each side */
static atomic_bool stop;

static void data_turn(int side)
{
	struct stream_path *path = stream_path(net->s[side]);
	const struct cable_frame *in;
	struct cable_frame *out;

	for (unsigned i = 0; i < 32 && (in = ring_peek(&cable[side])) != NULL; i++) {
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

static void *data_thread(void *arg)
{
	const int side = (int)(intptr_t)arg;

	while (!atomic_load(&stop)) {
		data_turn(side);
		sched_yield();
	}
	return NULL;
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint8_t tx[2][LEN], rx[2][LEN];
static size_t sent[2], posted[2], got[2];
static unsigned sends[2], recvs[2];
static uint32_t conn[2];
static bool open_[2];

static void program(int side)
{
	struct stream_completion c[16];
	struct stream *s = net->s[side];
	const unsigned n = stream_poll(s, c, 16);

	for (unsigned i = 0; i < n; i++) {
		if (c[i].event == STREAM_ACCEPTED || c[i].event == STREAM_CONNECTED) {
			conn[side] = c[i].conn;
			open_[side] = true;
			continue;
		}
		assert_true(c[i].event != STREAM_CLOSED);
		assert_int_equal(c[i].result, PIECE);
		if (c[i].event == STREAM_SENT) {
			sends[side]--;
		} else {
			recvs[side]--;
			assert_memory_equal(rx[side] + c[i].cookie, tx[!side] + c[i].cookie, PIECE);
			/* The program's again: nothing may come behind. */
			memset(rx[side] + c[i].cookie, 0xaa, PIECE);
			got[side] += PIECE;
		}
	}
	if (!open_[side])
		return;
	while (posted[side] < LEN && recvs[side] < 8 &&
		stream_recv(s, conn[side], rx[side] + posted[side], PIECE, posted[side]) == 0) {
		posted[side] += PIECE;
		recvs[side]++;
	}
	while (sent[side] < LEN && sends[side] < 8 &&
		stream_send(s, conn[side], tx[side] + sent[side], PIECE, sent[side]) == 0) {
		sent[side] += PIECE;
		sends[side]++;
	}
}

static void test_threads(void **state)
{
	pthread_t thread[2];
	uint64_t begin, turns = 0;

	(void)state;
	net = net_new(21, NULL);
	for (int i = 0; i < 2; i++) {
		ring_init(&cable[i], malloc(CABLE * sizeof(struct cable_frame)), CABLE,
			sizeof(struct cable_frame));
		for (size_t k = 0; k < LEN; k++)
			tx[i][k] = net_byte(i, k);
	}
	for (intptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, data_thread, (void *)i), 0);
	assert_int_equal(stream_listen(net->s[1], 80, 0), 0);
	begin = clock_ns();
	assert_int_equal(
		stream_connect(net->s[0], begin, net->mac[1], &net->ip[1], 80, 0, 1, &conn[0]), 0);
	while (got[0] + got[1] < 2 * LEN || sends[0] + sends[1] > 0) {
		for (int i = 0; i < 2; i++) {
			stream_turn(net->s[i], clock_ns());
			program(i);
		}
		if (++turns % 64 == 0)
			sched_yield();
	}
	print_message("%d MB both ways in %.0f ms, %lu turns\n", LEN >> 20,
		(double)(clock_ns() - begin) / 1e6, (unsigned long)turns);
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		free(cable[i].mem);
	}
	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < LEN; k++)
			if (rx[i][k] != 0xaa)
				fail_msg("side %d: byte %zu written after it was told", i, k);
	net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
