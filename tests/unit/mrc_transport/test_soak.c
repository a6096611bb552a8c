/* SPDX-License-Identifier: BSD-3-Clause */
/* Weather that changes all the time: loss, repetition, trimming, marks, corruption, paths that die
 * and come back, ports that flap at either end, in both directions at once. Every write is verified
 * when it completes, every immediate when it shows. So many packets; the argument says another
 * number. */
#include "tests/unit/mrc_transport/fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t wanted = 200000;

static uint64_t packets(const struct fabric *f)
{
	uint64_t n = 0;

	for (unsigned p = 0; p < FABRIC_PATHS; p++)
		n += f->data[0][p] + f->data[1][p];
	return n;
}

static unsigned draw(struct fabric *f, unsigned below)
{
	return (unsigned)(net_random(&f->net) % below);
}

/* How often a port went down. */
static unsigned flaps;

/* Half of all faults are off at a time; one port, and a quarter of the paths, at most. */
static void change(struct fabric *f)
{
	unsigned *const faults[] = {
		&f->loss, &f->twice, &f->trim, &f->lasthop, &f->mark, &f->corrupt};
	const unsigned end = draw(f, 2), port = draw(f, FABRIC_PORTS);

	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		*faults[i] = draw(f, 2) ? draw(f, 50) : 0;
	f->jitter = draw(f, FABRIC_HOP) + 1;
	memset(f->dead, 0, sizeof(f->dead));
	for (unsigned i = draw(f, 3) * FABRIC_PATHS / 8; i > 0; i--)
		f->dead[draw(f, FABRIC_PATHS)] = true;
	for (int i = 0; i < 2; i++) {
		f->net.end[i].n_port_event = 0; /* nobody looks */
		for (unsigned p = 0; p < FABRIC_PORTS && f->ports; p++) {
			const bool up = (unsigned)i != end || p != port;

			if (rnic_port_is_up(f->net.end[i].rnic, p) == up)
				continue;
			net_port_set(&f->net, i, p, up);
			flaps += !up;
		}
	}
}

/* Also that all of the weather was there. */
static void report(const struct fabric *f)
{
	uint64_t again = 0;

	for (int i = 0; i < 2; i++)
		again += fabric_count(f, i, "retransmits");
	printf("# %lu data packets, %u + %u messages verified, %lu packets lost, %lu doubled, %lu "
	       "overtaken, %lu cut, %lu spoilt, %u ports gone, %lu sent again, %.1f s of virtual "
	       "time\n",
		(unsigned long)packets(f), f->stream[0].done, f->stream[1].done,
		(unsigned long)f->lost, (unsigned long)f->doubled, (unsigned long)f->overtaken,
		(unsigned long)f->cut, (unsigned long)f->spoilt, flaps, (unsigned long)again,
		(double)f->net.now / (double)SEC);
	assert_true(f->lost && f->doubled && f->overtaken && f->cut && f->spoilt);
	assert_true(flaps > 0 || !f->ports);
}

static void weather(void **state)
{
	static const struct fabric_options o[] = {
		{.format = RNIC_MRC_SRV6, .ports = true, .out = 200, .psn = {0xfffff0, 7}},
		{.format = RNIC_MRC_UDP, .ports = true, .out = 200, .psn = {5, 0xfff000}},
		{.format = RNIC_MRC_STEV, .out = 200, .psn = {0, 1}},
	};

	(void)state;
	for (unsigned k = 0; k < sizeof(o) / sizeof(o[0]); k++) {
		struct fabric *f = fabric_make(&o[k]);
		uint64_t turns = 0;

		flaps = 0;
		while (packets(f) < wanted / 3) {
			if (turns++ % 4 == 0)
				change(f);
			fabric_messages(f, 50, 50);
			assert_true(fabric_run(f, 20 * SEC));
		}
		for (int i = 0; i < 2; i++) {
			assert_int_equal(f->stream[i].messages, f->stream[i].done);
			assert_int_equal(f->stream[i].wimms, f->stream[i].next_imm);
			assert_int_equal(0, fabric_count(f, i, "refused"));
		}
		report(f);
		fabric_free(f);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(weather)};

	if (argc > 1)
		wanted = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}
