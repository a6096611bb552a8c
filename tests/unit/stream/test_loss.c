/* SPDX-License-Identifier: BSD-3-Clause */
/* Every byte, in order, once, whatever the network does: loss from 0.1 to 10 %, repetition,
 * overtaking, MTUs from 576 to 9000, receivers that are late, numbers that wrap. */
#include "tests/unit/stream/net.h"

static const uint64_t second = 1000000000;
static uint16_t mtu;
static uint32_t allowance;
static uint8_t wscale;

static void change(struct stream_config *c, int side)
{
	c->mtu = mtu;
	c->allowance = allowance;
	c->wscale = wscale;
	c->bounce_slots = 256;
	(void)side;
}

struct weather {
	uint32_t loss, repeat, overtake;
	size_t up, down;
	uint64_t late, pause;
};

static void play(const struct weather *w, uint64_t seed)
{
	struct net *n = net_new(seed, change);
	struct program p[2];

	n->loss = w->loss;
	n->repeat = w->repeat;
	n->overtake = w->overtake;
	n->isn = (uint32_t)-30000; /* wraps early in the stream */
	program_init(&p[0], n, CLIENT, w->up, w->down);
	program_init(&p[1], n, SERVER, w->down, w->up);
	p[SERVER].recv_after = w->late;
	p[SERVER].recv_pause = w->pause;
	programs_connect(p);
	if (!programs_run(p, 2000 * second))
		fail_msg("loss %u, mtu %u, seed %lu: not closed: %zu of %zu, %zu of %zu", w->loss,
			mtu, (unsigned long)seed, p[0].received, w->down, p[1].received, w->up);
	programs_check(p);
	n->loss = n->repeat = n->overtake = 0;
	net_check_empty(n);
	program_free(&p[0]);
	program_free(&p[1]);
	net_free(n);
}

static void defaults(void)
{
	mtu = 1500;
	allowance = 65536;
	wscale = 10;
}

static void test_loss(void **state)
{
	static const uint32_t loss[] = {0, 1000, 10000, 30000, 100000};

	(void)state;
	defaults();
	for (unsigned i = 0; i < sizeof(loss) / sizeof(loss[0]); i++)
		for (uint64_t seed = 1; seed <= 6; seed++)
			play(&(struct weather){.loss = loss[i], .up = 1000000, .down = 300000},
				seed);
}

static void test_everything(void **state)
{
	(void)state;
	defaults();
	for (uint64_t seed = 1; seed <= 12; seed++)
		play(&(struct weather){.loss = 20000,
			     .repeat = 20000,
			     .overtake = 100000,
			     .up = 400000,
			     .down = 400000,
			     .late = seed % 3 * 30000000,
			     .pause = seed % 2 * 2000000},
			seed);
}

static void test_mtu(void **state)
{
	static const uint16_t mtus[] = {576, 1006, 1500, 4088, 9000};

	(void)state;
	defaults();
	for (unsigned i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		mtu = mtus[i];
		play(
			&(struct weather){
				.loss = 10000, .overtake = 30000, .up = 500000, .down = 200000},
			i + 1);
	}
}

/* A peer may send nothing before there is a buffer, and buffers come late: the window closes. */
static void test_zero_window(void **state)
{
	(void)state;
	defaults();
	allowance = 0;
	for (wscale = 0; wscale <= 4; wscale += 4)
		for (uint64_t seed = 1; seed <= 6; seed++)
			play(&(struct weather){.loss = seed % 2 * 20000,
				     .up = 120000,
				     .down = 1000,
				     .late = second,
				     .pause = 20000000},
				seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_mtu),
		cmocka_unit_test(test_zero_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
