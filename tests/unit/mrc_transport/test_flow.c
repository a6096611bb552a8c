/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever the fabric does: every byte is there when the completion says so, immediates come in
 * order, and everything completes. */
#include "tests/unit/mrc_transport/fabric.h"

#include <stdio.h>
#include <string.h>

#include "lib/mrc/transport_priv.h"

static const struct fabric_options formats[] = {
	{.format = RNIC_MRC_UDP, .psn = {0xfffff0, 7}},
	{.format = RNIC_MRC_STEV, .psn = {0xfffff0, 7}},
	{.format = RNIC_MRC_STEV, .order = MRC_EV_FLOW_LOW, .psn = {5, 0xffffff}},
	{.format = RNIC_MRC_UDP, .ip6 = true, .order = MRC_EV_FLOW_LOW, .psn = {5, 7}},
	{.format = RNIC_MRC_SRV6, .psn = {0xfffff0, 7}},
	{.format = RNIC_MRC_STEV, .other_codec = true, .psn = {0xfffff0, 7}},
	{.format = RNIC_MRC_UDP, .ports = true, .psn = {0xfffff0, 7}},
	{.format = RNIC_MRC_SRV6, .ports = true, .psn = {0xfffff0, 7}},
};
enum { N_FORMATS = sizeof(formats) / sizeof(formats[0]) };

static void settled(const struct fabric *f)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(f->stream[i].messages, f->stream[i].done);
		assert_int_equal(f->stream[i].wimms, f->stream[i].next_imm);
		assert_int_equal(0, fabric_count(f, i, "refused"));
		assert_int_equal(0, fabric_count(f, i, "words_lost"));
	}
}

/* Nothing goes twice but the question for a last ACK, no path is thought bad, planes are even. */
static void fair_weather(void **state)
{
	(void)state;
	for (unsigned k = 0; k < N_FORMATS; k++) {
		struct fabric *f = fabric_make(&formats[k]);
		uint64_t plane[FABRIC_PORTS] = {0};

		fabric_messages(f, 400, 400);
		assert_true(fabric_run(f, SEC));
		fabric_wait(f, 10 * MS);
		settled(f);
		assert_int_equal(0, f->ev_changes);
		for (int i = 0; i < 2; i++) {
			assert_in_range(fabric_count(f, i, "retransmits"), 0, 2);
			assert_int_equal(0, fabric_count(f, i, "ignored"));
			assert_int_equal(formats[k].format == RNIC_MRC_SRV6,
				fabric_dev_count(f, i, "tunnelled") > 0);
		}
		for (unsigned p = 0; p < FABRIC_PATHS; p++)
			plane[p % FABRIC_PORTS] += f->data[0][p];
		for (unsigned p = 1; p < FABRIC_PORTS; p++)
			assert_in_range(plane[p], plane[0] - 4, plane[0] + 4);
		fabric_free(f);
	}
}

static void weather(void **state)
{
	static const struct {
		unsigned loss, twice, trim, mark, corrupt, dead;
	} w[] = {{10, 0, 0, 0, 0, 0}, {0, 50, 0, 0, 0, 0}, {0, 0, 50, 0, 0, 0},
		{0, 0, 0, 100, 0, 0}, {0, 0, 0, 0, 20, 0}, {0, 0, 0, 0, 0, 8},
		{1, 10, 10, 50, 5, 0}, {100, 100, 100, 100, 20, 0}, {20, 5, 20, 20, 5, 10},
		{0, 0, 300, 300, 0, 0}};

	(void)state;
	for (unsigned i = 0; i < sizeof(w) / sizeof(w[0]); i++) {
		struct fabric *f = fabric_make(&formats[i % N_FORMATS]);

		f->loss = w[i].loss;
		f->twice = w[i].twice;
		f->trim = w[i].trim;
		f->lasthop = 300;
		f->mark = w[i].mark;
		f->corrupt = w[i].corrupt;
		f->jitter = FABRIC_HOP;
		for (unsigned n = 0; n < w[i].dead; n++)
			f->dead[n * 5 % FABRIC_PATHS] = true;
		fabric_messages(f, 300, 300);
		assert_true(fabric_run(f, 10 * SEC));
		settled(f);
		/* Word of a cut packet may come after that of one behind it. */
		if (w[i].loss + w[i].corrupt + w[i].dead > 0)
			assert_true(fabric_count(f, 0, "lost") > 0);
		else if (w[i].trim == 0)
			assert_int_equal(0, fabric_count(f, 0, "lost"));
		assert_int_equal(w[i].trim > 0, fabric_count(f, 0, "trimmed") > 0);
		assert_int_equal(w[i].trim > 0, fabric_dev_count(f, 1, "cut") > 0);
		fabric_free(f);
	}
}

/* Paths die while they are full, a whole plane among them; all come back. */
static void paths_die(void **state)
{
	(void)state;
	for (unsigned k = 0; k < N_FORMATS; k++) {
		struct fabric *f = fabric_make(&formats[k]);
		enum mrc_ev_state ev;
		unsigned bad = 0;

		fabric_messages(f, 300, 300);
		assert_true(fabric_run(f, SEC));
		for (unsigned p = 1; p < FABRIC_PATHS; p += FABRIC_PORTS)
			f->dead[p] = true;
		f->dead[2] = true;
		fabric_messages(f, 1000, 1000);
		assert_true(fabric_run(f, 10 * SEC));
		for (unsigned p = 0; p < FABRIC_PATHS; p++) {
			assert_int_equal(0, rnic_mrc_ev_get(f->net.end[0].qp, p, &ev));
			bad += ev == MRC_EV_BAD;
		}
		assert_true(bad >= 2);
		memset(f->dead, 0, sizeof(f->dead));
		fabric_wait(f, 2 * SEC);
		for (unsigned p = 0; p < FABRIC_PATHS; p++) {
			assert_int_equal(0, rnic_mrc_ev_get(f->net.end[0].qp, p, &ev));
			assert_int_equal(MRC_EV_GOOD, ev);
		}
		fabric_messages(f, 100, 100);
		assert_true(fabric_run(f, SEC));
		settled(f);
		fabric_free(f);
	}
}

/* Without NACKs for trimmed packets, packets say that they must not be; one that is all the same is
 * lost, and comes again. */
static void no_trimming(void **state)
{
	const struct fabric_options o = {.format = RNIC_MRC_STEV,
		.no_trim_nack = true,
		.attr = {.caps = RNIC_MRC_PEER_NO_TRIM_NACK},
		.mask = RNIC_MRC_CAPS};
	struct fabric *f = fabric_make(&o);

	(void)state;
	f->trim = 200;
	fabric_messages(f, 200, 0);
	assert_true(fabric_run(f, SEC));
	assert_int_equal(0, f->cut);
	settled(f);
	fabric_free(f);
}

/* Words of either end never get through on the paths that it began with. */
static bool lose_words(struct fabric *f, int from, uint8_t *frame, size_t *len)
{
	static int first[2][FABRIC_PORTS];
	const uint8_t *udp = frame + ETH_HDR_LEN + 40;
	const unsigned path = (unsigned)(udp[0] << 8 | udp[1]) % FABRIC_PATHS;
	int *known = &first[from][path % FABRIC_PORTS];

	(void)len;
	if (f->net.hook_n == 0)
		memset(first, 0xff, sizeof(first));
	f->net.hook_n++;
	if ((udp[8] & 0x1f) < 0x10)
		return true;
	if (*known < 0)
		*known = (int)path;
	return *known != (int)path;
}

static void words_do_not_come(void **state)
{
	struct fabric *f = fabric_make(&formats[1]);

	(void)state;
	f->hook = lose_words;
	fabric_messages(f, 200, 200);
	assert_true(fabric_run(f, 10 * SEC));
	settled(f);
	fabric_free(f);
}

/* Words take the paths that are known to work: all of them in time, whichever half of an EV the
 * peer echoes first. */
static void words_take_all_paths(void **state)
{
	(void)state;
	for (unsigned k = 0; k < N_FORMATS; k++) {
		struct fabric *f = fabric_make(&formats[k]);
		unsigned n = 0, active = 0;

		fabric_messages(f, 2000, 2000);
		assert_true(fabric_run(f, SEC));
		for (unsigned p = 0; p < FABRIC_PATHS; p++) {
			n += f->sent[1][p] > f->data[1][p];
			active += f->data[1][p] > 0;
		}
		assert_int_equal(active, FABRIC_PATHS * 3 / 4);
		assert_in_range(n, active - 4, FABRIC_PATHS);
		fabric_free(f);
	}
}

static const uint8_t *bth_of(const uint8_t *frame)
{
	return frame + ETH_HDR_LEN + 40 + 8;
}

/* Packets that ask for a SACK, which those behind them do not need. */
static bool lose_questions(struct fabric *f, int from, uint8_t *frame, size_t *len)
{
	(void)f;
	(void)from;
	(void)len;
	return (bth_of(frame)[0] & 0x1f) >= 0x10 || !(bth_of(frame)[8] & 0x80);
}

/* One that asks about the tail later than it is told unasked. */
static struct mrc_settings patient(void)
{
	struct mrc_settings set = mrc_settings_default();

	set.tail_rtts = 4;
	return set;
}

/* What has arrived and nobody asks about is told after one round trip: the sender does not have to
 * ask by a probe, which it would after four here. */
static void told_unasked(void **state)
{
	const struct mrc_settings set = patient();
	struct fabric_options o = formats[1];
	struct fabric *f;

	(void)state;
	o.settings = &set;
	f = fabric_make(&o);
	f->hook = lose_questions;
	f->fixed = 3 * FABRIC_MTU;
	fabric_messages(f, 1, 0);
	assert_false(fabric_run(f, 3 * FABRIC_RTT));
	assert_int_equal(2, fabric_count(f, 1, "placed"));
	assert_int_equal(1, fabric_count(f, 0, "words"));
	assert_int_equal(0, fabric_count(f, 0, "probes"));
	f->hook = NULL;
	assert_true(fabric_run(f, SEC));
	settled(f);
	fabric_free(f);
}

/* What a SACK that waits for the guard timer, one round trip, makes of the measured one: nothing if
 * it is agreed that the responder adds what it takes to the time stamp that it gives back; all of
 * it if not. */
static void service_time(void **state)
{
	(void)state;
	for (unsigned agreed = 0; agreed < 2; agreed++) {
		const struct mrc_settings set = patient();
		struct fabric_options o = formats[1];
		const struct nscc *cc;
		struct fabric *f;

		o.attr.caps = agreed ? RNIC_MRC_SERVICE_TIME : 0;
		o.mask = RNIC_MRC_CAPS;
		o.settings = &set;
		f = fabric_make(&o);
		f->jitter = 0;
		f->hook = lose_questions;
		f->fixed = 3 * FABRIC_MTU;
		fabric_messages(f, 1, 0);
		assert_false(fabric_run(f, 3 * FABRIC_RTT));
		assert_int_equal(1, fabric_count(f, 0, "words"));
		cc = &conn_of(f->net.end[0].qp)->nscc;
		if (agreed) { /* the ways there and back, which are less than the base RTT said */
			assert_in_range(cc->base_rtt_ns, 2 * FABRIC_HOP - 2 * MRC_TS_NS,
				2 * FABRIC_HOP + 2 * MRC_TS_NS);
			assert_int_equal(cc->avg_delay_ns, 0);
		} else {
			assert_int_equal(cc->base_rtt_ns, FABRIC_RTT);
			assert_true(cc->avg_delay_ns > 0);
		}
		fabric_free(f);
	}
}

/* Neither congestion control nor a window of more than one unit. */
static void small_windows(void **state)
{
	const struct fabric_options o = {.format = RNIC_MRC_SRV6,
		.attr = {.cc.none = true,
			.mpr = 1,
			.mpr_dest = 1,
			.max_wimm = 1,
			.max_wimm_dest = 1,
			.caps = RNIC_MRC_DYNAMIC_MPR | RNIC_MRC_SERVICE_TIME},
		.mask = RNIC_MRC_CC | RNIC_MRC_MPR | RNIC_MRC_MPR_DEST | RNIC_MRC_MAX_WIMM |
			RNIC_MRC_MAX_WIMM_DEST | RNIC_MRC_CAPS};
	struct fabric *f = fabric_make(&o);

	(void)state;
	f->loss = f->twice = f->mark = 20;
	fabric_messages(f, 500, 500);
	assert_true(fabric_run(f, 10 * SEC));
	settled(f);
	fabric_free(f);
}

static void state_bytes(void **state)
{
	static const unsigned evs[] = {128, 256};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		static struct rnic_mrc_paths paths;
		struct fabric *f = fabric_make(&formats[1]);
		struct rnic_mrc_attr attr = {.paths = &paths};
		const struct net_options no = {.ip6 = true, .transport = &rnic_mrc};
		struct rnic_qp *qp = net_make_qp(&f->net.end[0], &no);

		assert_int_equal(
			0, rnic_mrc_paths_auto(&paths, RNIC_MRC_STEV, FABRIC_PORTS, evs[i], 1));
		assert_int_equal(0, rnic_mrc_set(qp, &attr, RNIC_MRC_PATHS));
		net_to_rts(&f->net, 0, qp, rnic_qp_num(f->net.end[1].qp), &no);
		printf("# state of a queue pair, %u EVs, window 1024 packets, 64 requests: %zu "
		       "bytes\n",
			evs[i], rnic_mrc_bytes(qp));
		assert_true(rnic_mrc_bytes(qp) < 128 * 1024);
		rnic_qp_destroy(qp);
		fabric_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fair_weather),
		cmocka_unit_test(weather),
		cmocka_unit_test(paths_die),
		cmocka_unit_test(no_trimming),
		cmocka_unit_test(words_do_not_come),
		cmocka_unit_test(words_take_all_paths),
		cmocka_unit_test(told_unasked),
		cmocka_unit_test(service_time),
		cmocka_unit_test(small_windows),
		cmocka_unit_test(state_bytes),
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
