/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports of both ends, EVs that a controller denies, endpoint requests. */
#include "tests/unit/mrc_transport/fabric.h"

#include <errno.h>
#include <string.h>

#include "lib/mrc/transport_priv.h"

static const struct fabric_options formats[] = {{.format = RNIC_MRC_UDP}, {.format = RNIC_MRC_STEV},
	{.format = RNIC_MRC_SRV6}, {.format = RNIC_MRC_STEV, .ports = true},
	{.format = RNIC_MRC_SRV6, .ports = true}};
enum { N_FORMATS = sizeof(formats) / sizeof(formats[0]) };

static uint64_t on_plane(const struct fabric *f, int from, unsigned port)
{
	uint64_t n = 0;

	for (unsigned p = port; p < FABRIC_PATHS; p += FABRIC_PORTS)
		n += f->sent[from][p];
	return n;
}

/* A link, or an operator's word. */
static void set_port(struct fabric *f, bool up)
{
	if (f->ports)
		net_port_set(&f->net, 0, 1, up);
	else
		rnic_mrc_ports(f->net.end[0].rnic, up ? 0x0f : 0x0d, f->net.now);
}

/* The end whose port goes stops at once, the other when it has been told; the word is repeated
 * until it has come. */
static void port_down(void **state)
{
	(void)state;
	for (unsigned k = 0; k < N_FORMATS; k++) {
		struct fabric *f = fabric_make(&formats[k]);
		uint64_t before, there;

		fabric_messages(f, 100, 100);
		assert_true(fabric_run(f, SEC));
		f->loss = 900;
		before = on_plane(f, 0, 1);
		set_port(f, false);
		fabric_wait(f, 5 * MS);
		f->loss = 0;
		fabric_wait(f, 100 * MS);
		assert_true(fabric_dev_count(f, 1, "statuses") > 0);
		there = on_plane(f, 1, 1);
		fabric_messages(f, 100, 100);
		assert_true(fabric_run(f, SEC));
		assert_int_equal(before, on_plane(f, 0, 1));
		assert_int_equal(there, on_plane(f, 1, 1));
		set_port(f, true);
		fabric_wait(f, MS);
		fabric_messages(f, 100, 100);
		assert_true(fabric_run(f, SEC));
		assert_true(on_plane(f, 0, 1) > before + 10);
		assert_true(on_plane(f, 1, 1) > there + 10);
		fabric_free(f);
	}
}

/* All connections between two addresses hear of it, and the last of them takes it along. */
static void shared(void **state)
{
	struct fabric *f = fabric_make(&formats[1]);
	const struct net_options no = {.ip6 = true, .transport = &rnic_mrc};
	struct rnic_mrc_attr attr = {.paths = &f->paths};
	struct rnic_qp *second[2], *first;
	uint64_t before;

	(void)state;
	for (int i = 0; i < 2; i++) {
		second[i] = net_make_qp(&f->net.end[i], &no);
		assert_int_equal(0, rnic_mrc_set(second[i], &attr, RNIC_MRC_PATHS));
	}
	for (int i = 0; i < 2; i++)
		net_to_rts(&f->net, i, second[i], rnic_qp_num(second[!i]), &no);
	rnic_mrc_ports(f->net.end[1].rnic, 0x07, f->net.now);
	fabric_wait(f, MS);
	before = on_plane(f, 0, 3);
	/* The one that has sent the word goes; the other one still knows. */
	for (int i = 0; i < 2; i++) {
		first = f->net.end[i].qp;
		f->net.end[i].qp = second[i];
		assert_int_equal(0, rnic_qp_destroy(first));
	}
	fabric_messages(f, 50, 0);
	assert_true(fabric_run(f, SEC));
	assert_int_equal(before, on_plane(f, 0, 3));
	fabric_free(f);
}

static void denied(void **state)
{
	struct fabric *f = fabric_make(&formats[1]);
	struct rnic_qp *qp = f->net.end[0].qp;
	enum mrc_ev_state ev;

	(void)state;
	assert_int_equal(-EINVAL, rnic_mrc_ev_set(qp, FABRIC_PATHS, MRC_EV_DENIED));
	assert_int_equal(-EINVAL, rnic_mrc_ev_set(qp, 3, MRC_EV_BAD));
	assert_int_equal(0, rnic_mrc_ev_set(qp, 3, MRC_EV_DENIED));
	assert_int_equal(0, rnic_mrc_ev_get(qp, 3, &ev));
	assert_int_equal(MRC_EV_DENIED, ev);
	fabric_messages(f, 200, 0);
	assert_true(fabric_run(f, SEC));
	assert_int_equal(0, f->sent[0][3]);
	assert_int_equal(0, rnic_mrc_ev_set(qp, 3, MRC_EV_GOOD));
	for (unsigned p = 7; p < FABRIC_PATHS; p += FABRIC_PORTS)
		assert_int_equal(0, rnic_mrc_ev_set(qp, p, MRC_EV_DENIED));
	fabric_messages(f, 200, 0);
	assert_true(fabric_run(f, SEC));
	assert_true(f->sent[0][3] > 0);
	fabric_free(f);
}

/* A word for which there is no path is gone, and counted. */
static void no_path_at_all(void **state)
{
	struct fabric *f = fabric_make(&formats[1]);
	struct rnic_qp *qp = f->net.end[1].qp;

	(void)state;
	for (unsigned p = 0; p < FABRIC_PATHS; p++)
		assert_int_equal(0, rnic_mrc_ev_set(qp, p, MRC_EV_DENIED));
	fabric_messages(f, 5, 0);
	assert_false(fabric_run(f, MS));
	assert_int_equal(0, fabric_count(f, 0, "words"));
	assert_true(fabric_count(f, 1, "words_pathless") > 0);
	for (unsigned p = 0; p < FABRIC_PATHS; p++)
		assert_int_equal(0, rnic_mrc_ev_set(qp, p, MRC_EV_GOOD));
	assert_true(fabric_run(f, SEC));
	fabric_free(f);
}

static void asking(void **state)
{
	(void)state;
	for (unsigned k = 0; k < N_FORMATS; k++) {
		struct fabric *f = fabric_make(&formats[k]);
		struct rnic *rnic = f->net.end[0].rnic;
		struct rnic_mrc_request r = {.op = MRC_EV_PROBE,
			.format = formats[k].format,
			.path = f->paths.path[5],
			.dscp = 0,
			.cookie = 99};
		const unsigned gid = k == 0 ? 1 : 2;

		rnic_gid(rnic, 0, gid, &r.src);
		assert_int_equal(-EINVAL, rnic_mrc_ask(rnic, &r, f->net.now));
		rnic_gid(f->net.end[1].rnic, 0, gid, &r.dst);
		f->jitter = 0;
		assert_int_equal(0, rnic_mrc_ask(rnic, &r, f->net.now));
		fabric_wait(f, MS);
		assert_int_equal(1, f->n_answered);
		assert_int_equal(99, f->answered_cookie);
		assert_int_equal(2 * FABRIC_HOP, f->answered_rtt);
		assert_true(f->sent[0][5] > 0);
		/* Nobody waits any more. */
		assert_int_equal(0, rnic_mrc_ask(rnic, &r, f->net.now));
		rnic_mrc_forget(rnic, 99);
		fabric_wait(f, MS);
		assert_int_equal(1, f->n_answered);
		assert_int_equal(1, fabric_dev_count(f, 0, "unasked"));
		/* As many as there is room for. */
		f->loss = 1000;
		for (unsigned i = 0; i < RNIC_MRC_ASKED / 2; i++) {
			assert_int_equal(0, rnic_mrc_ask(rnic, &r, f->net.now));
			fabric_wait(f, FABRIC_HOP);
		}
		assert_int_equal(-ENOSPC, rnic_mrc_ask(rnic, &r, f->net.now));
		r.path.port = FABRIC_PORTS;
		assert_int_equal(-EINVAL, rnic_mrc_ask(rnic, &r, f->net.now));
		fabric_free(f);
	}
}

static bool lose_answers(struct fabric *f, int from, uint8_t *frame, size_t *len)
{
	(void)f;
	(void)frame;
	(void)len;
	return from == 0;
}

/* An endpoint that adds the time that it takes to the time stamp that it gives back: the round trip
 * is without it, and says so. What cannot be is not believed. */
static void service_time(void **state)
{
	static const struct {
		uint16_t added;
		uint64_t later;
		bool adjusted;
	} cases[] = {
		{0, 50000, false}, {100, 50000, true},
		{1000, 50000, false}, /* longer than it all took */
		{(uint16_t)-1, 50000, false},
		{100, 10 * MS, false}, /* when the time stamp may have gone round */
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fabric *f = fabric_make(&formats[0]);
		struct rnic *rnic = f->net.end[0].rnic;
		struct rnic_mrc_request r = {.op = MRC_EV_PROBE,
			.format = RNIC_MRC_UDP,
			.path = {.ev = f->paths.path[5].ev, .port = 1},
			.dscp = 46,
			.cookie = 5};
		struct mrc_pkt answer = {
			.kind = MRC_KIND_ENDPOINT_RESPONSE, .depth = MRC_DEPTH_ALL};
		const uint64_t asked = f->net.now;
		uint64_t rtt;

		rnic_gid(rnic, 0, 1, &r.src);
		rnic_gid(f->net.end[1].rnic, 0, 1, &r.dst);
		f->hook = lose_answers;
		assert_int_equal(0, rnic_mrc_ask(rnic, &r, f->net.now));
		answer.endpoint = (struct mrc_endpoint){.id = dev_of(rnic)->next_probe | 1,
			.op = MRC_EV_PROBE,
			.ts = (uint16_t)(mrc_ts(asked) + cases[i].added)};
		fabric_wait(f, cases[i].later);
		assert_int_equal(0, f->n_answered);
		assert_int_equal(0, fabric_inject(f, 1, &answer, NULL, 5, 46, NULL));
		assert_int_equal(1, f->n_answered);
		rtt = f->net.now - asked - (cases[i].adjusted ? cases[i].added * MRC_TS_NS : 0);
		assert_int_equal(rtt, f->answered_rtt);
		assert_int_equal(cases[i].adjusted, f->answered_adjusted);
		fabric_free(f);
	}
}

/* A port that takes nothing for a while gets nothing, the others what they did. */
static void full_port(void **state)
{
	struct fabric *f = fabric_make(&formats[4]);
	uint64_t before;

	(void)state;
	f->net.full[0] = 1 << 2;
	before = on_plane(f, 0, 2);
	fabric_messages(f, 100, 100);
	assert_true(fabric_run(f, SEC));
	assert_int_equal(before, on_plane(f, 0, 2));
	/* All: what is to leave waits, and leaves. */
	f->net.full[0] = 0x0f;
	fabric_messages(f, 20, 20);
	assert_false(fabric_run(f, MS));
	f->net.full[0] = 0;
	fabric_messages(f, 100, 100);
	assert_true(fabric_run(f, SEC));
	assert_true(on_plane(f, 0, 2) > before);
	fabric_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(port_down),
		cmocka_unit_test(service_time),
		cmocka_unit_test(full_port),
		cmocka_unit_test(shared),
		cmocka_unit_test(denied),
		cmocka_unit_test(no_path_at_all),
		cmocka_unit_test(asking),
	};

	return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
