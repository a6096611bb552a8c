/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast and AllGather by multicast: exact whatever is lost, and when who sends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mcast/schedule.h"
#include "tests/unit/mcast/fake_net.h"

static struct net net;

static const struct mcast_config five = {.n_ranks = 5};

/* ---- loss, exhaustively ---- */

/* Bit 4 i + k of the pattern: leaf i loses chunk k. Ranks before the root are leaves 0 ..., those
 * behind it the others. */
static unsigned by_pattern(struct net *n, unsigned to, unsigned from, unsigned chunk)
{
	const unsigned leaf = to < from ? to : to - 1;

	return !(*(const uint32_t *)n->copies_arg >> (leaf * 4 + chunk) & 1);
}

static void every_subset(void **state)
{
	(void)state;
	for (uint32_t pattern = 0; pattern < 1 << 16; pattern++) {
		const uint32_t lost = (uint32_t)__builtin_popcount(pattern);
		uint64_t fetched = 0, asked = 0;

		net_open(&net, &five, false, pattern % 5, 4 * 64 - 5, 1);
		net.copies = by_pattern;
		net.copies_arg = &pattern;
		net_run(&net);
		net_all_done(&net);
		for (unsigned i = 0; i < 5; i++) {
			fetched += net.rank[i].m.count.fetched;
			asked += net.rank[i].m.count.asked;
		}
		assert_int_equal(fetched, lost); /* what was lost, and nothing twice */
		assert_true((asked == 0) == (lost == 0));
		net_close(&net);
	}
}

/* Of three ranks that gather, each chunk at each receiver. */
static unsigned by_gather_pattern(struct net *n, unsigned to, unsigned from, unsigned chunk)
{
	const unsigned other = to < from ? to : to - 1;

	return !(*(const uint32_t *)n->copies_arg >> ((from * 2 + other) * 2 + chunk) & 1);
}

static void every_subset_gathering(void **state)
{
	const struct mcast_config three = {.n_ranks = 3, .chains = 3};

	(void)state;
	for (uint32_t pattern = 0; pattern < 1 << 12; pattern++) {
		net_open(&net, &three, true, 0, 100, 1);
		net.copies = by_gather_pattern;
		net.copies_arg = &pattern;
		net_run(&net);
		net_all_done(&net);
		net_close(&net);
	}
}

/* ---- loss, at random ---- */

static void random_weather(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 300; seed++) {
		const unsigned n = 2 + seed % 15;
		const bool all = seed & 1;
		unsigned chains = 1 + seed / 7 % n;
		uint64_t seen = 0;

		while (n % chains != 0)
			chains--;
		/* PSN and id wrap in the middle of what follows. */
		const struct mcast_config c = {.n_ranks = n,
			.chains = chains,
			.psn_bits = 9,
			.first_psn = 500,
			.first_id = UINT32_MAX - 3,
			.send_window = 1 + seed % 5,
			.read_window = 1 + seed % 3,
			.read_bytes = seed % 4 * 64};

		net_open(&net, &c, all, seed % n, 1 + seed * 37 % 1000, 8);
		net.seed = seed;
		net.copies = net_weather;
		net.jitter = seed % 3 * 40000;
		for (unsigned i = 0; i < n; i++)
			net.rank[i].starts_at = net_random(&net) % 50000;
		net_run(&net);
		net_all_done(&net);
		for (unsigned i = 0; i < n; i++)
			seen += net.rank[i].m.count.fetched + net.rank[i].m.count.duplicate;
		assert_true(n < 4 || seen > 0);
		net_close(&net);
	}
}

static unsigned all_lost(struct net *n, unsigned to, unsigned from, unsigned chunk)
{
	(void)n, (void)to, (void)from, (void)chunk;
	return 0;
}

/* Nothing arrives: each rank reads what a ring would have sent it, and no more. */
static void as_the_ring(void **state)
{
	const struct mcast_config c = {.n_ranks = 8, .chains = 2};

	(void)state;
	net_open(&net, &c, true, 0, 1000, 2);
	net.copies = all_lost;
	net_run(&net);
	net_all_done(&net);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(net.rank[i].read_bytes, 2 * 7 * 1000);
	net_close(&net);
	net_open(&net, &c, false, 3, 1000, 1);
	net.copies = all_lost;
	net_run(&net);
	net_all_done(&net);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(net.rank[i].read_bytes, i == 3 ? 0 : 1000);
	net_close(&net);
}

/* ---- schedule and time ---- */

static void chains(void **state)
{
	(void)state;
	for (unsigned m = 1; m <= 12; m++) {
		/* Slow links: what a chain does takes longer than the barrier's messages. */
		const struct mcast_config c = {.n_ranks = 12, .chains = m, .link_bps = 100000000};
		struct mcast_config own = c;
		struct mcast one;

		own.chunk = own.read_bytes = own.psn_bits = own.send_window = own.read_window = 1;
		own.link_bps = own.give_up_ns = 1;
		if (12 % m != 0) {
			assert_int_equal(mcast_init(&one, &own), -EINVAL);
			continue;
		}
		net_open(&net, &c, true, 0, 640, 1);
		net_run(&net);
		net_all_done(&net);
		assert_int_equal(net.most_roots, m);
		assert_int_equal(net.multicasts, 12 * 10); /* each chunk once */
		assert_int_equal(net.first_ask, 0);
		net_close(&net);
	}
	/* Appendix A: step i is {i, R + i, 2R + i ...}. */
	for (unsigned rank = 0; rank < 12; rank++)
		assert_int_equal(mcast_step_of(rank, 12, 3), rank % 4);
}

static unsigned last_lost(struct net *n, unsigned to, unsigned from, unsigned chunk)
{
	(void)from;
	return !(to == 2 && chunk >= *(const unsigned *)n->copies_arg);
}

/* The last chunks are lost, so that only time can tell: recovery begins when it is over, not before
 * and not never. */
static void cutoff(void **state)
{
	/* 1 Gb/s: 640 bytes take 5120 ns */
	const struct mcast_config c = {.n_ranks = 4, .link_bps = 1000000000, .alpha_ns = 77777};
	unsigned kept = 7;

	(void)state;
	net_open(&net, &c, false, 0, 640, 1);
	net.copies = last_lost;
	net.copies_arg = &kept;
	net_run(&net);
	net_all_done(&net);
	assert_int_equal(net.first_ask, net.rank[2].m.cutoff_at);
	assert_in_range(net.first_ask, 1000 + 2 * NET_DELAY + 5120 + 77777,
		1000 + 4 * NET_DELAY + 5120 + 77777);
	assert_int_equal(net.rank[2].m.count.fetched, 3);
	assert_int_equal(net.rank[2].m.count.cutoffs, 1);
	assert_int_equal(net.rank[1].m.count.cutoffs, 0);
	net_close(&net);
}

/* A rank that comes late loses nothing: nobody sends before it has said that it is there. */
static void late_rank(void **state)
{
	(void)state;
	for (unsigned n = 2; n <= 17; n++)
		for (unsigned late = 0; late < n; late++) {
			const struct mcast_config c = {.n_ranks = n};

			net_open(&net, &c, true, 0, 100, 1);
			net.rank[late].starts_at = 5000000;
			net_run(&net);
			net_all_done(&net);
			assert_int_equal(net.first_ask, 0);
			assert_int_equal(net.rank[late].m.count.stale, 0);
			net_close(&net);
		}
}

/* Chunks that are being read come by multicast after all: the left neighbour must not hear that his
 * buffer is free while he is still read. */
static void late_datagrams(void **state)
{
	const struct mcast_config c = {.n_ranks = 2, .psn_bits = 8};
	struct mcast_message msg = {MCAST_MSG_BARRIER, 0, 0};
	struct mcast_request r;
	struct mcast *m;
	uint64_t at;

	(void)state;
	net_open(&net, &c, false, 0, 128, 1);
	m = &net.rank[1].m;
	assert_int_equal(mcast_begin_broadcast(m, 0, 128, net.rank[1].memory, 1 << 20, 1), 0);
	assert_int_equal(mcast_message(m, 0, &msg, 2), 0);
	assert_true(mcast_next(m, &r) && r.message.type == MCAST_MSG_BARRIER);
	mcast_tick(m, mcast_deadline(m));
	assert_true(mcast_next(m, &r) && r.message.type == MCAST_MSG_ASK);
	assert_false(mcast_next(m, &r));
	msg.type = MCAST_MSG_GRANT;
	assert_int_equal(mcast_message(m, 0, &msg, 3), 0);
	assert_true(mcast_next(m, &r) && r.type == MCAST_POST_READ);
	assert_int_equal(r.n, 2);
	assert_int_equal(r.len, 128);
	assert_int_equal(mcast_datagram(m, 0, 0, 64, 4, &at), MCAST_TAKE);
	assert_int_equal(mcast_datagram(m, 0, 1, 64, 4, &at), MCAST_TAKE);
	assert_false(mcast_next(m, &r));
	mcast_read_done(m, r.block, r.first, r.n, 5);
	assert_true(mcast_next(m, &r) && r.message.type == MCAST_MSG_FINAL);
	assert_int_equal(m->count.fetched, 0);
	msg.type = MCAST_MSG_FINAL;
	assert_int_equal(mcast_message(m, 0, &msg, 6), 0);
	assert_int_equal(m->phase, MCAST_DONE);
	net_close(&net);
}

/* A lost run of more bytes than a verbs message can have is read in parts, each of which covers
 * what its chunks are: nothing is believed that was not read. */
static void large_run(void **state)
{
	const uint64_t bytes = (UINT64_C(5) << 30) + 12345;
	const struct mcast_config c = {.n_ranks = 2,
		.rank = 1,
		.chains = 1,
		.chunk = 4096,
		.psn_bits = 24,
		.send_window = 1,
		.read_window = 2,
		.read_bytes = (1u << 30) + 1,
		.link_bps = 1000000000,
		.give_up_ns = UINT64_C(1000000000000)};
	const struct mcast_message here = {MCAST_MSG_BARRIER, 0, 0}, yes = {MCAST_MSG_GRANT, 0, 0};
	const size_t need = mcast_memory(&c, false, bytes);
	struct mcast_request r, before;
	uint64_t at = 0;
	void *memory = malloc(need);
	struct mcast m;

	(void)state;
	assert_int_equal(mcast_init(&m, &c), 0);
	assert_int_equal(mcast_begin_broadcast(&m, 0, bytes, memory, need, 1), 0);
	assert_int_equal(mcast_message(&m, 0, &here, 2), 0);
	mcast_tick(&m, mcast_deadline(&m));
	while (mcast_next(&m, &r))
		assert_int_equal(r.type, MCAST_POST_MESSAGE);
	assert_int_equal(mcast_message(&m, 0, &yes, 3), 0);
	assert_true(mcast_next(&m, &before));
	for (unsigned i = 0; m.n_missing > 0; i++) {
		const bool more = mcast_next(&m, &r); /* the window: one beside it */

		assert_int_equal(before.type, MCAST_POST_READ);
		assert_int_equal(before.offset, at);
		assert_in_range(before.len, 1, c.read_bytes);
		assert_int_equal(before.n, (before.len + c.chunk - 1) / c.chunk);
		at += before.len;
		mcast_read_done(&m, before.block, before.first, before.n, 4 + i);
		assert_int_equal(more, m.n_missing > 0);
		before = r;
	}
	assert_int_equal(at, bytes);
	assert_int_equal(m.count.fetched, (bytes + c.chunk - 1) / c.chunk);
	free(memory);
}

/* Exactly one chunk of each tree that has any is its last, also where numbers wrap. */
static void last_of_tree(void **state)
{
	enum { BITS = 6, NUMBERS = 1 << BITS };

	(void)state;
	for (unsigned trees = 1; trees <= 8; trees++)
		for (uint32_t first = 0; first < NUMBERS; first++)
			for (uint32_t n = 1; n < NUMBERS; n++) {
				unsigned last[8] = {0}, any[8] = {0};

				for (uint32_t i = 0; i < n; i++) {
					const uint32_t psn = (first + i) % NUMBERS;

					any[psn % trees] = 1;
					last[psn % trees] +=
						mcast_last_of_tree(psn, n - 1 - i, BITS, trees);
				}
				assert_memory_equal(last, any, sizeof(any));
			}
}

/* As counted one by one, also where numbers wrap. */
static void of_tree(void **state)
{
	enum { BITS = 5, NUMBERS = 1 << BITS };

	(void)state;
	for (unsigned trees = 1; trees <= 8; trees++)
		for (uint32_t first = 0; first < 2 * NUMBERS; first++) {
			uint32_t count[8] = {0};

			for (uint32_t n = 0; n <= NUMBERS; n++) {
				for (unsigned tree = 0; tree < trees; tree++)
					assert_int_equal(mcast_of_tree(first, n, BITS, trees, tree),
						count[tree]);
				count[(first + n) % NUMBERS % trees]++;
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_subset),
		cmocka_unit_test(every_subset_gathering),
		cmocka_unit_test(random_weather),
		cmocka_unit_test(as_the_ring),
		cmocka_unit_test(chains),
		cmocka_unit_test(last_of_tree),
		cmocka_unit_test(of_tree),
		cmocka_unit_test(cutoff),
		cmocka_unit_test(late_rank),
		cmocka_unit_test(late_datagrams),
		cmocka_unit_test(large_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
