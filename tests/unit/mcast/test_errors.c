/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that die, datagrams and messages that lie, numbers beyond their limits, and communicators
 * side by side. */
#include <errno.h>
#include <string.h>

#include "lib/mcast/schedule.h"
#include "tests/unit/mcast/fake_net.h"

static struct net net;

/* Whoever dies, and when: all others are over in time, done or failed, and none is wrong. */
static void deaths(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (unsigned seed = 0; seed < 400; seed++) {
		const struct mcast_config c = {.n_ranks = 6, .chains = 1 + seed % 3};
		const unsigned dies = seed % 6;

		net_open(&net, &c, seed & 1, seed / 6 % 6, 700, 3);
		net.seed = seed;
		net.copies = net_weather;
		net.rank[dies].dies_at = 1000 + seed * 900;
		net_run(&net);
		for (unsigned i = 0; i < 6; i++) {
			const struct net_rank *r = &net.rank[i];

			if (i == dies)
				continue;
			assert_true(r->over_at != 0);
			assert_in_range(r->over_at, 1, 1000 + seed * 900 + 2 * 10000000);
			if (r->m.phase == MCAST_FAILED) {
				assert_true(
					r->m.error == -ETIMEDOUT || r->m.error == -ECONNABORTED);
				failed++;
			}
		}
		net_close(&net);
	}
	assert_true(failed > 400);
}

static void forged(void **state)
{
	const struct mcast_config c = {
		.n_ranks = 4, .psn_bits = 8, .first_psn = 250, .first_id = 9};
	const uint32_t id = 9u << 8;
	uint64_t at = 77;
	struct mcast *m;
	struct mcast_message msg = {MCAST_MSG_BARRIER, 9, 0};
	const struct {
		unsigned from;
		uint32_t imm;
		uint64_t len;
		enum mcast_verdict verdict;
	} of[] = {{0, 8u << 8 | 250, 64, MCAST_STALE}, {0, 10u << 8 | 250, 64, MCAST_STALE},
		{0, id | 249, 64, MCAST_RANGE}, {0, id | 4, 64, MCAST_RANGE},
		{2, id | 250, 64, MCAST_FORGED}, {0, id | 250, 63, MCAST_LENGTH},
		{0, id | 250, 65, MCAST_LENGTH}, {0, id | 250, 0, MCAST_LENGTH},
		{0, id | 3, 64, MCAST_LENGTH} /* the last one is shorter */,
		{0, id | 3, 1, MCAST_TAKE}, {0, id | 3, 1, MCAST_DUPLICATE},
		{0, id | 255, 64, MCAST_TAKE}, {0, id | 0, 64, MCAST_TAKE}};

	(void)state;
	net_open(&net, &c, false, 0, 64 * 9 + 1, 1);
	m = &net.rank[1].m;
	assert_int_equal(mcast_datagram(m, 0, id | 250, 64, 1, &at), MCAST_STALE); /* of none yet */
	assert_int_equal(
		mcast_begin_broadcast(m, 0, 64 * 9 + 1, net.rank[1].memory, 1 << 20, 1), 0);
	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		assert_int_equal(
			mcast_datagram(m, of[i].from, of[i].imm, of[i].len, 2, &at), of[i].verdict);
	assert_int_equal(at, 64 * 6);
	assert_int_equal(m->count.taken, 3);
	assert_int_equal(m->count.stale, 3);
	assert_int_equal(m->count.forged, 1);
	/* Messages from whom they cannot be, of what does not exist, from another time. */
	assert_int_equal(mcast_message(m, 2, &msg, 3), -EPROTO);
	for (msg.type = MCAST_MSG_ACTIVATE; msg.type < 9; msg.type++) {
		msg.arg = 1;
		assert_int_equal(mcast_message(m, 3, &msg, 3), -EPROTO);
		if (msg.type != MCAST_MSG_FINAL && msg.type != MCAST_MSG_ABORT)
			assert_int_equal(mcast_message(m, 2, &msg, 3), -EPROTO);
	}
	msg = (struct mcast_message){MCAST_MSG_FINAL, 8, 0};
	assert_int_equal(mcast_message(m, 2, &msg, 3), -EPROTO);
	assert_int_equal(m->phase, MCAST_BARRIER);
	net_close(&net);
}

static void limits(void **state)
{
	struct mcast_config c = {.n_ranks = 4,
		.chains = 2,
		.chunk = 4096,
		.psn_bits = 10,
		.send_window = 1,
		.read_window = 1,
		.read_bytes = 4096,
		.link_bps = 1,
		.give_up_ns = 1};
	unsigned peer[MCAST_MAX_PEERS];
	uint64_t memory[4096];
	struct mcast m;

	(void)state;
	c.read_bytes = 4095; /* less than a chunk */
	assert_int_equal(mcast_init(&m, &c), -EINVAL);
	c.read_bytes = 4096;
	assert_int_equal(mcast_init(&m, &c), 0);
	assert_true(mcast_memory(&c, false, 4096 * 1024) > 0);
	assert_int_equal(mcast_memory(&c, false, 4096 * 1024 + 1), 0);
	assert_true(mcast_memory(&c, true, 4096 * 256) > 0);
	assert_int_equal(mcast_memory(&c, true, 4096 * 256 + 1), 0);
	assert_int_equal(mcast_memory(&c, true, UINT64_MAX), 0);
	assert_int_equal(mcast_begin_broadcast(&m, 4, 1, memory, sizeof(memory), 0), -EINVAL);
	assert_int_equal(mcast_begin_broadcast(&m, 0, 0, memory, sizeof(memory), 0), -EINVAL);
	assert_int_equal(mcast_begin_broadcast(&m, 0, 4096 * 1024 + 1, memory, sizeof(memory), 0),
		-EMSGSIZE);
	assert_int_equal(mcast_begin_broadcast(&m, 0, 4096, memory, 8, 0), -ENOSPC);
	assert_int_equal(mcast_begin_broadcast(&m, 0, 4096, memory, sizeof(memory), 0), 0);
	assert_int_equal(mcast_begin_broadcast(&m, 0, 4096, memory, sizeof(memory), 0), -EBUSY);
	mcast_fail(&m, -EIO);
	assert_int_equal(m.error, -EIO);
	assert_int_equal(
		mcast_begin_broadcast(&m, 0, 4096, memory, sizeof(memory), 0), -ECONNABORTED);
	/* The ring's two connections, and those of the barrier. */
	c.n_ranks = 16;
	assert_int_equal(mcast_peers(&c, peer), 5); /* 15 1 2 4 8 */
	assert_int_equal(peer[0], 15);
	assert_int_equal(peer[1], 1);
	/* Figure 7: 1.5 MB of bitmap address 50 GB at 4 KiB. */
	assert_int_equal(mcast_max_bytes(23, 4096) >> 30, 32);
	assert_int_equal(mcast_max_bitmap(23), 1 << 20);
	assert_int_equal(mcast_staging_bytes(8192, 4096), 32 << 20);
}

/* Sixteen communicators of the same ranks at a time, each of which hears another one's datagrams as
 * well: their ids differ, and nothing is taken. */
static void sixteen(void **state)
{
	static struct net nets[16];
	bool more = true;

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		const struct mcast_config c = {.n_ranks = 4, .first_id = 1000 * i};

		net_open(&nets[i], &c, i & 1, 0, 200 + i, 4);
		nets[i].seed = i + 1;
		nets[i].copies = net_weather;
		nets[i].heard_by = &nets[(i + 1) % 16];
		net_start(&nets[i]);
	}
	while (more) {
		more = false;
		for (unsigned i = 0; i < 16; i++)
			more |= net_step(&nets[i]);
	}
	for (unsigned i = 0; i < 16; i++) {
		net_all_done(&nets[i]);
		assert_true(nets[i].rank[1].m.count.stale > 0);
		net_close(&nets[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deaths),
		cmocka_unit_test(forged),
		cmocka_unit_test(limits),
		cmocka_unit_test(sixteen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
