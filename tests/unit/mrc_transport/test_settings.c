/* SPDX-License-Identifier: BSD-3-Clause */
/* What a site may set differently (lib/mrc/settings.h): on the wire, and where it ends up. */
#include "tests/unit/mrc_transport/fabric.h"

#include <string.h>

#include "lib/mrc/transport_priv.h"
#include "lib/wire/bytes.h"
#include "lib/wire/ip6_ext.h"
#include "lib/wire/psn.h"

enum { OTHER_PORT = 4971 };

static const struct fabric_options formats[] = {{.format = RNIC_MRC_UDP}, {.format = RNIC_MRC_STEV},
	{.format = RNIC_MRC_SRV6}, {.format = RNIC_MRC_SRV6, .ports = true}};
enum { N_FORMATS = sizeof(formats) / sizeof(formats[0]) };

/* Outermost IP header, and UDP of the innermost. */
static const uint8_t *ip_of(const uint8_t *frame)
{
	return frame + ETH_HDR_LEN;
}

static const uint8_t *udp_of(const uint8_t *frame)
{
	const uint8_t *ip = ip_of(frame);

	if (ip[0] >> 4 == 4)
		return ip + 20;
	return ip + (ip[6] == IP_PROTO_IP6 ? 80 : 40);
}

static bool has_other_port(struct fabric *f, int from, uint8_t *frame, size_t *len)
{
	(void)from;
	(void)len;
	assert_int_equal(get_be16(udp_of(frame) + 2), OTHER_PORT);
	f->net.hook_n++;
	return true;
}

/* Another UDP port: everything leaves with it and is taken there, cut by a switch, spoilt or in a
 * tunnel, words and probes too; and what comes to RoCE's own is still taken. */
static void udp_port(void **state)
{
	const struct mrc_pkt ask = {.kind = MRC_KIND_ENDPOINT_REQUEST,
		.depth = MRC_DEPTH_ALL,
		.endpoint = {.id = 7, .op = MRC_EV_PROBE}};
	struct mrc_settings set = mrc_settings_default();

	(void)state;
	set.udp_port = OTHER_PORT;
	for (unsigned k = 0; k < N_FORMATS; k++) {
		struct fabric_options o = formats[k];
		struct fabric *f;

		o.settings = &set;
		f = fabric_make(&o);
		f->hook = has_other_port;
		f->trim = f->mark = f->corrupt = 50;
		fabric_messages(f, 300, 300);
		assert_true(fabric_run(f, 10 * SEC));
		assert_true(f->net.hook_n > 600);
		assert_true(fabric_dev_count(f, 1, "cut") > 0);
		assert_true(fabric_count(f, 0, "trimmed") > 0);
		f->hook = NULL;
		assert_int_equal(0, fabric_inject(f, 0, &ask, NULL, 0, 46, NULL));
		fabric_free(f);
	}
}

/* RoCE's own syndromes mean something else. */
static void syndrome(void **state)
{
	struct mrc_settings set = mrc_settings_default();
	const char *field, *other;

	(void)state;
	for (set.wimm_syndrome = 96; set.wimm_syndrome < 100; set.wimm_syndrome++) {
		assert_int_equal(mrc_settings_check(&set, &field, &other), -EINVAL);
		assert_string_equal(field, "wimm_syndrome");
	}
	assert_int_equal(mrc_settings_check(&set, &field, &other), 0);
}

/* A device that has not been told takes nothing there; nor does one that has if it is not MRC. */
static void udp_port_of_others(void **state)
{
	struct mrc_settings set = mrc_settings_default();
	const struct mrc_pkt ask = {.kind = MRC_KIND_ENDPOINT_REQUEST,
		.depth = MRC_DEPTH_ALL,
		.endpoint = {.id = 7, .op = MRC_EV_PROBE}};

	(void)state;
	for (unsigned told = 0; told < 2; told++) {
		struct fabric_options o = formats[0];
		uint8_t frame[NET_FRAME];
		struct fabric *f;
		size_t len;

		set.udp_port = told ? OTHER_PORT : 4791;
		o.settings = &set;
		f = fabric_make(&o);
		len = fabric_frame(f, 0, &ask, NULL, 0, 46, NULL, frame, sizeof(frame));
		put_be16((uint8_t *)udp_of(frame) + 2, OTHER_PORT);
		assert_int_not_equal(0, rnic_rx(f->net.end[1].rnic, 0, frame, len, f->net.now));
		((uint8_t *)udp_of(frame))[8] = 0x04; /* RC */
		assert_int_not_equal(0, rnic_rx(f->net.end[1].rnic, 0, frame, len, f->net.now));
		assert_int_equal(0, fabric_dev_count(f, 1, "requests"));
		fabric_free(f);
	}
}

static bool has_other_classes(struct fabric *f, int from, uint8_t *frame, size_t *len)
{
	const uint8_t *ip = ip_of(frame), opcode = udp_of(frame)[8];
	const unsigned dscp = (ip[0] >> 4 == 4 ? ip[1] : get_be16(ip) >> 4 & 0xff) >> 2;
	const bool rtx = udp_of(frame)[16] & 0x20;

	(void)from;
	(void)len;
	if ((opcode & 0x1f) < 0x10)
		assert_int_equal(dscp, rtx ? 33 : 32);
	else
		assert_int_equal(dscp, opcode == 0xde ? 31 : 36);
	f->net.hook_n |= (opcode & 0x1f) >= 0x10 ? 1 : rtx ? 2 : 4;
	return true;
}

static void classes(void **state)
{
	struct mrc_settings set = mrc_settings_default();

	(void)state;
	set.dscp_no_trim = 31;
	set.dscp_trimmable = 32;
	set.dscp_trimmable_retx = 33;
	set.dscp_trimmed = 34;
	set.dscp_trimmed_lasthop = 35;
	set.dscp_control = 36;
	for (unsigned k = 0; k < N_FORMATS; k++) {
		const struct mrc_pkt data = {.kind = MRC_KIND_DATA,
			.depth = MRC_DEPTH_ALL,
			.data = {.place = MRC_ONLY, .psn = 50, .dqpn = 0}};
		struct fabric_options o = formats[k];
		struct mrc_pkt cut = data;
		struct fabric *f;

		o.settings = &set;
		f = fabric_make(&o);
		f->hook = has_other_classes;
		f->loss = 20;
		fabric_messages(f, 300, 300);
		assert_true(fabric_run(f, 10 * SEC));
		assert_int_equal(f->net.hook_n, 7);
		cut.data.dqpn = rnic_qp_num(f->net.end[1].qp);
		cut.data.psn = conn_of(f->net.end[1].qp)->rsp.rcv.cack + 2;
		fabric_inject(f, 0, &cut, NULL, 0, 12, NULL); /* what used to be TRIMMED */
		assert_int_equal(0, fabric_count(f, 1, "came_trimmed"));
		fabric_inject(f, 0, &cut, NULL, 0, 34, NULL);
		assert_int_equal(1, fabric_count(f, 1, "came_trimmed"));
		fabric_free(f);
	}
}

/* Where each number ends up in a connection. */
static void connection(void **state)
{
	struct mrc_settings set = mrc_settings_default();
	struct fabric_options o = formats[1];
	const struct mrc_conn *c;
	struct fabric *f;

	(void)state;
	set.wimm_syndrome = 0x70;
	set.stamps_us = 4000;
	set.sack_bytes = 4096;
	set.sack_least_bytes = 512;
	set.guard_rtts = 2;
	set.oor_rtts = 3;
	set.later_rtts = 4;
	set.tail_rtts = 5;
	set.tail_again = 3;
	set.late_rtts = 8;
	set.tail_probes = 6;
	set.loss_percent = 300;
	set.loss_least = 7;
	set.probe_cap_ms = 50;
	set.probes_to_return = 5;
	set.reverse_silent = 6;
	set.status_rtts = 9;
	set.status_cap_ms = 20;
	set.status_again_ms = 500;
	o.settings = &set;
	f = fabric_make(&o);
	c = conn_of(f->net.end[0].qp);
	assert_int_equal(c->rsp.c.wimm_syndrome, 0x70);
	assert_int_equal(c->req.c.wimm_syndrome, 0x70);
	assert_int_equal(c->req.c.stamps_us, 4000);
	assert_int_equal(c->rsp.c.sack_bytes, 4096);
	assert_int_equal(c->rsp.c.sack_least_bytes, 512);
	assert_int_equal(c->rsp.c.guard_ns, 2 * FABRIC_RTT);
	assert_int_equal(c->rsp.c.oor_ns, 3 * FABRIC_RTT);
	assert_false(c->rsp.c.no_oor);
	assert_int_equal(c->req.snd.later_ns, 4 * FABRIC_RTT);
	assert_int_equal(c->req.snd.tail_ns, 5 * FABRIC_RTT);
	assert_int_equal(c->req.snd.tail_rtts, 5);
	assert_int_equal(c->req.snd.tail_again, 3);
	assert_int_equal(c->req.snd.late_ns, 8 * FABRIC_RTT);
	assert_int_equal(c->req.snd.tail_probes, 6);
	assert_int_equal(c->req.c.loss_percent, 300);
	assert_int_equal(c->req.snd.loss_least, 7);
	assert_int_equal(c->evs.probe_cap_ns, 50 * MS);
	assert_int_equal(c->evs.probes_to_return, 5);
	assert_int_equal(c->reverse.silent_most, 6);
	assert_int_equal(c->peer->ports.first_ns, 9 * FABRIC_RTT);
	assert_int_equal(c->peer->ports.cap_ns, 20 * MS);
	assert_int_equal(c->peer->ports.again_ns, 500 * MS);
	fabric_messages(f, 100, 100);
	assert_true(fabric_run(f, SEC));
	fabric_free(f);
}

/* Congestion control of which nobody says anything is derived by the device's settings. */
static void congestion(void **state)
{
	struct mrc_settings set = mrc_settings_default();
	struct fabric_options o = formats[1];
	const struct nscc *cc;
	struct fabric *f;
	const uint64_t bdp = UINT64_C(50000000000) / 8 * FABRIC_RTT / SEC;

	(void)state;
	set.nscc_adjust_mtus = 4;
	set.nscc_gamma_permille = 500;
	set.nscc_md_permille = 250;
	set.nscc_cwnd_permille = 2000;
	set.nscc_qa_gate = 2;
	set.nscc_qa_targets = 3;
	set.nscc_target_trim_permille = 2000;
	set.nscc_fast_ns = 500;
	set.nscc_low_bytes = 8192;
	o.settings = &set;
	f = fabric_make(&o);
	cc = &conn_of(f->net.end[0].qp)->nscc;
	assert_int_equal(cc->adjust_bytes, 4 * cc->mtu);
	assert_int_equal(cc->gamma_q16, 32768);
	assert_int_equal(cc->md_q16, 16384);
	assert_int_equal(cc->max_cwnd, 2 * bdp);
	assert_int_equal(cc->qa_gate, 2);
	assert_int_equal(cc->target_ns, 2 * FABRIC_RTT);
	assert_int_equal(cc->qa_threshold_ns, 6 * FABRIC_RTT);
	assert_int_equal(cc->fast_ns, 500);
	assert_int_equal(cc->low_bytes, 8192);
	fabric_free(f);
}

/* Paths that nobody has given, and how many of them are used. */
static void paths(void **state)
{
	struct mrc_settings set = mrc_settings_default();
	struct fabric_options o = formats[1];
	const struct net_options no = {.ip6 = true, .transport = &rnic_mrc};
	struct rnic_qp *qp;
	struct fabric *f;

	(void)state;
	set.auto_evs = 64;
	set.active_evs = 32;
	o.settings = &set;
	f = fabric_make(&o);
	qp = net_make_qp(&f->net.end[0], &no);
	net_to_rts(&f->net, 0, qp, rnic_qp_num(f->net.end[1].qp), &no);
	assert_int_equal(rnic_mrc_paths_of(qp)->n, 64);
	assert_int_equal(conn_of(qp)->evs.n_active, 32);
	rnic_qp_destroy(qp);
	fabric_free(f);
}

/* Beyond the window: refused, or dropped without a word. */
static void beyond(void **state)
{
	(void)state;
	for (unsigned rtts = 0; rtts < 2; rtts++) {
		struct mrc_settings set = mrc_settings_default();
		struct fabric_options o = formats[1];
		struct mrc_pkt data = {
			.kind = MRC_KIND_DATA, .depth = MRC_DEPTH_ALL, .data = {.place = MRC_ONLY}};
		struct mrc_conn *c;
		struct fabric *f;

		set.oor_rtts = rtts;
		o.settings = &set;
		f = fabric_make(&o);
		c = conn_of(f->net.end[1].qp);
		data.data.dqpn = rnic_qp_num(f->net.end[1].qp);
		data.data.psn = psn_add(c->rsp.rcv.cack, 30000);
		assert_int_equal(RNIC_DROP_SEQUENCE, fabric_inject(f, 0, &data, NULL, 0, 4, NULL));
		assert_int_equal(1, fabric_count(f, 1, "beyond"));
		assert_int_equal(mrc_rsp_pending(&c->rsp), rtts == 1);
		fabric_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(udp_port),
		cmocka_unit_test(syndrome),
		cmocka_unit_test(udp_port_of_others),
		cmocka_unit_test(classes),
		cmocka_unit_test(connection),
		cmocka_unit_test(congestion),
		cmocka_unit_test(paths),
		cmocka_unit_test(beyond),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
