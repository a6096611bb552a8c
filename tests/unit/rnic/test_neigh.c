/* SPDX-License-Identifier: BSD-3-Clause */
/* Address resolution and echo: who is asked, who is answered, what is remembered for how long. */
#include <errno.h>
#include <string.h>

#include "tests/unit/rnic/net.h"

static const struct net_options base = {0};
static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 10}, other_mac[6] = {2, 0, 0, 0, 0, 0x77};

static void open_net(struct net *net)
{
	memset(net, 0, sizeof(*net));
	net_open(net, &base);
}

static struct wire_ip ip_of(const char *text)
{
	struct wire_ip ip;

	assert_int_equal(0, wire_ip_parse(text, &ip));
	return ip;
}

/* The next frame of a device, parsed; it must be the only one. */
static struct wire_pkt only_frame(
	struct rnic *rnic, uint64_t now, uint8_t bytes[NET_FRAME], int *len)
{
	struct rnic_frame frame;
	struct wire_pkt pkt;

	assert_true(rnic_tx(rnic, RNIC_ALL_PORTS, &frame, now));
	*len = rnic_frame_flatten(&frame, bytes, NET_FRAME);
	assert_true(*len > 0);
	assert_int_equal(WIRE_OK, wire_parse(bytes, (size_t)*len, &pkt));
	assert_false(rnic_tx(rnic, RNIC_ALL_PORTS, &frame, now));
	return pkt;
}

static void no_frame(struct rnic *rnic, uint64_t now)
{
	struct rnic_frame frame;

	assert_false(rnic_tx(rnic, RNIC_ALL_PORTS, &frame, now));
}

static void test_resolve(void **state)
{
	static const char *const from[2] = {"10.77.0.1", "fd77::1"}, *const to[2] = {"10.77.0.2",
									     "fd77::2"};
	static struct net net;
	uint8_t mac[6], want[6];

	(void)state;
	for (int ip6 = 0; ip6 < 2; ip6++) {
		struct wire_ip peer = ip_of(to[ip6]), own = ip_of(from[ip6]);
		uint8_t bytes[NET_FRAME];
		struct wire_pkt pkt;
		int len;

		open_net(&net);
		rnic_mac(net.end[1].rnic, 0, want);
		assert_int_equal(-EAGAIN, rnic_resolve(net.end[0].rnic, 0, &peer, mac, net.now));
		assert_int_equal(-EAGAIN, rnic_resolve(net.end[0].rnic, 0, &peer, mac, net.now));
		pkt = only_frame(net.end[0].rnic, net.now, bytes, &len);
		assert_int_equal(ip6 ? WIRE_ND_NS : WIRE_ARP, pkt.kind);
		assert_true(wire_ip_eq(&own, &pkt.src)); /* of the right family, not link-local */
		net_inject(&net, 1, bytes, (size_t)len);
		assert_int_equal(1, rnic_count(net.end[1].rnic, RNIC_C_RX_ACCEPTED));
		pkt = only_frame(net.end[1].rnic, net.now, bytes, &len);
		assert_int_equal(ip6 ? WIRE_ND_NA : WIRE_ARP, pkt.kind);
		net_inject(&net, 0, bytes, (size_t)len);
		assert_int_equal(0, rnic_resolve(net.end[0].rnic, 0, &peer, mac, net.now));
		assert_memory_equal(want, mac, 6);
		assert_int_equal(UINT64_MAX, rnic_deadline(net.end[0].rnic));
		/* A minute later it asks anew. */
		assert_int_equal(
			0, rnic_resolve(net.end[0].rnic, 0, &peer, mac, net.now + 59 * SEC));
		assert_int_equal(
			-EAGAIN, rnic_resolve(net.end[0].rnic, 0, &peer, mac, net.now + 61 * SEC));
		net_close(&net);
	}
}

static void test_link_local(void **state)
{
	static struct net net;
	struct wire_ip peer, own;
	uint8_t bytes[NET_FRAME], mac[6];
	struct wire_pkt pkt;
	int len;

	(void)state;
	open_net(&net);
	rnic_gid(net.end[1].rnic, 0, 0, &peer);
	rnic_gid(net.end[0].rnic, 0, 0, &own);
	assert_int_equal(-EAGAIN, rnic_resolve(net.end[0].rnic, 0, &peer, mac, 0));
	pkt = only_frame(net.end[0].rnic, 0, bytes, &len);
	assert_true(wire_ip_eq(&own, &pkt.src));
	net_inject(&net, 1, bytes, (size_t)len);
	net_run(&net, MS);
	assert_int_equal(0, rnic_resolve(net.end[0].rnic, 0, &peer, mac, MS));
	net_close(&net);
}

static void test_unreachable(void **state)
{
	static struct net net;
	struct wire_ip nobody = ip_of("10.77.0.99");
	struct rnic *rnic;
	uint8_t bytes[NET_FRAME], mac[6];
	int len;

	(void)state;
	open_net(&net);
	rnic = net.end[0].rnic;
	for (int round = 0; round < 2; round++) {
		uint64_t start = net.now;

		assert_int_equal(-EAGAIN, rnic_resolve(rnic, 0, &nobody, mac, net.now));
		for (int i = 0; i < RNIC_NEIGH_ASKS; i++) {
			only_frame(rnic, net.now, bytes, &len);
			assert_int_equal(-EAGAIN, rnic_resolve(rnic, 0, &nobody, mac, net.now));
			assert_true(rnic_deadline(rnic) ==
				    start + (uint64_t)(i + 1) * RNIC_NEIGH_EVERY_MS * MS);
			net.now = rnic_deadline(rnic) - 1;
			rnic_timer(rnic, net.now);
			no_frame(rnic, net.now);
			rnic_timer(rnic, ++net.now);
		}
		no_frame(rnic, net.now);
		assert_int_equal(UINT64_MAX, rnic_deadline(rnic));
		assert_int_equal(-EHOSTUNREACH, rnic_resolve(rnic, 0, &nobody, mac, net.now));
	}
	net_close(&net);
}

static void test_modify_waits(void **state)
{
	static struct net net;
	struct ibv_qp_attr attr;
	struct rnic_qp *qp;
	struct ibv_qp_init_attr init;
	int err;

	(void)state;
	open_net(&net);
	qp = net.end[0].qp = net_make_qp(&net.end[0], &base);
	attr = net_attr(&net, 0, 0x11, &base);
	attr.ah_attr.grh.dgid.raw[15] = 99;
	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(0, rnic_qp_modify(qp, &attr, net_mask_init, net.now));
	attr.qp_state = IBV_QPS_RTR;
	while ((err = rnic_qp_modify(qp, &attr, net_mask_rtr, net.now)) == -EAGAIN)
		net_run(&net, net.now + 10 * MS);
	assert_int_equal(-EHOSTUNREACH, err);
	assert_true(net.now >= 3 * SEC && net.now < 3020 * MS);
	rnic_qp_query(qp, &attr, &init);
	assert_int_equal(IBV_QPS_INIT, attr.qp_state);
	net_close(&net);
}

static void test_static(void **state)
{
	static struct net net;
	struct wire_ip peer = ip_of("10.77.0.2"), own = ip_of("10.77.0.1"), zero = {{0}},
		       group = ip_of("ff02::1");
	struct rnic *rnic;
	uint8_t frame[64], mac[6];
	int len;

	(void)state;
	open_net(&net);
	rnic = net.end[0].rnic;
	assert_int_equal(-EINVAL, rnic_neigh_add(rnic, 0, &own, other_mac));
	assert_int_equal(-EINVAL, rnic_neigh_add(rnic, 0, &zero, other_mac));
	assert_int_equal(-EINVAL, rnic_neigh_add(rnic, 0, &group, other_mac));
	assert_int_equal(-EINVAL, rnic_neigh_add(rnic, 0, &peer, (const uint8_t[6]){1}));
	assert_int_equal(-EINVAL, rnic_resolve(rnic, 0, &group, mac, 0));
	assert_int_equal(-EAGAIN, rnic_resolve(rnic, 0, &peer, mac, 0));
	net_run(&net, 0);
	assert_int_equal(0, rnic_neigh_add(rnic, 0, &peer, other_mac));
	assert_int_equal(UINT64_MAX, rnic_deadline(rnic)); /* no more questions */
	/* Neither time nor what others say changes it. */
	len = wire_build_arp(frame, sizeof(frame), ARP_REPLY, (const uint8_t[6]){2, 9, 9, 9, 9, 9},
		&peer, own_mac, &own, 0);
	net_inject(&net, 0, frame, (size_t)len);
	assert_int_equal(0, rnic_resolve(rnic, 0, &peer, mac, 1000000 * SEC));
	assert_memory_equal(other_mac, mac, 6);
	no_frame(rnic, 0);
	/* The own address is here. */
	assert_int_equal(0, rnic_resolve(rnic, 0, &own, mac, 0));
	rnic_mac(rnic, 0, frame);
	assert_memory_equal(frame, mac, 6);
	net_close(&net);
}

/* Nobody can fill the table with what was not asked for, nor with a group address. */
static void test_unasked(void **state)
{
	static struct net net;
	struct wire_ip peer = ip_of("10.77.0.2"), own = ip_of("10.77.0.1");
	uint8_t frame[64], bytes[NET_FRAME], mac[6];
	struct wire_pkt pkt;
	int len;

	(void)state;
	open_net(&net);
	len = wire_build_arp(frame, sizeof(frame), ARP_REQUEST, other_mac, &peer, own_mac, &own, 0);
	net_inject(&net, 0, frame, (size_t)len);
	pkt = only_frame(net.end[0].rnic, 0, bytes, &len);
	assert_int_equal(ARP_REPLY, pkt.arp_op);
	assert_memory_equal(other_mac, bytes, 6);
	assert_int_equal(-EAGAIN, rnic_resolve(net.end[0].rnic, 0, &peer, mac, 0));
	only_frame(net.end[0].rnic, 0, bytes, &len);
	len = wire_build_arp(
		frame, sizeof(frame), ARP_REPLY, (const uint8_t[6]){0xff}, &peer, own_mac, &own, 0);
	net_inject(&net, 0, frame, (size_t)len);
	assert_int_equal(-EAGAIN, rnic_resolve(net.end[0].rnic, 0, &peer, mac, 0));
	/* Not for us. */
	len = wire_build_arp(frame, sizeof(frame), ARP_REQUEST, other_mac, &own, own_mac, &peer, 0);
	net_inject(&net, 0, frame, (size_t)len);
	assert_int_equal(1, rnic_drop_count(net.end[0].rnic, RNIC_DROP_NOT_MINE));
	net_close(&net);
}

static void mac_of(unsigned i, uint8_t mac[6])
{
	const uint8_t bytes[6] = {2, 1, 1, 0, (uint8_t)(i >> 8), (uint8_t)i};

	memcpy(mac, bytes, 6);
}

/* More addresses than the table holds: answers are forgotten, questions are not. */
static void test_table_full(void **state)
{
	static struct net net;
	struct rnic *rnic;
	struct wire_ip own = ip_of("10.77.0.1");
	uint8_t frame[64], mac[6], want[6];

	(void)state;
	open_net(&net);
	rnic = net.end[0].rnic;
	for (unsigned i = 0; i < 5000; i++) {
		struct wire_ip ip = wire_ip_from4(0x0b000000 + i);
		struct rnic_frame out;
		int len;

		assert_int_equal(-EAGAIN, rnic_resolve(rnic, 0, &ip, mac, 0));
		assert_true(rnic_tx(rnic, RNIC_ALL_PORTS, &out, 0));
		mac_of(i, want);
		len = wire_build_arp(frame, sizeof(frame), ARP_REPLY, want, &ip, own_mac, &own, 0);
		net_inject(&net, 0, frame, (size_t)len);
		assert_int_equal(0, rnic_resolve(rnic, 0, &ip, mac, 0));
	}
	assert_int_equal(UINT64_MAX, rnic_deadline(rnic));
	/* It holds the last ones that came, each with its own address. */
	for (unsigned i = 5000; i-- > 5000 - 1024;) {
		struct wire_ip ip = wire_ip_from4(0x0b000000 + i);

		mac_of(i, want);
		assert_int_equal(0, rnic_resolve(rnic, 0, &ip, mac, 0));
		assert_memory_equal(want, mac, 6);
	}
	for (unsigned i = 0; i < 2000; i++) {
		struct wire_ip ip = wire_ip_from4(0x0c000000 + i);

		assert_int_equal(i < 1024 ? -EAGAIN : -ENOMEM, rnic_resolve(rnic, 0, &ip, mac, 0));
	}
	net_close(&net);
}

static void test_duplicate_address(void **state)
{
	static struct net net;
	struct wire_ip own = ip_of("fd77::1"), zero = {{0}};
	uint8_t frame[128], bytes[NET_FRAME];
	struct wire_pkt pkt;
	int len;

	(void)state;
	open_net(&net);
	len = wire_build_ns(frame, sizeof(frame), other_mac, &zero, &own, 0);
	net_inject(&net, 0, frame, (size_t)len);
	pkt = only_frame(net.end[0].rnic, 0, bytes, &len);
	assert_int_equal(WIRE_ND_NA, pkt.kind);
	assert_int_equal(0xff, pkt.dst.b[0]);
	assert_memory_equal("\x33\x33\0\0\0\1", bytes, 6);
	net_close(&net);
}

/* An ICMP echo request with the given number of data bytes. */
static size_t echo_request(const struct net *net, uint8_t *out, bool ip6, size_t data)
{
	struct wire_ip src, dst;
	uint8_t *l4 = out + 14 + (ip6 ? 40 : 20);
	size_t len = 8 + data;
	uint16_t sum;

	rnic_gid(net->end[1].rnic, 0, ip6 ? 2 : 1, &src);
	rnic_gid(net->end[0].rnic, 0, ip6 ? 2 : 1, &dst);
	memset(out, 0, 14 + 40 + len);
	rnic_mac(net->end[0].rnic, 0, out);
	rnic_mac(net->end[1].rnic, 0, out + 6);
	memcpy(out + 12, ip6 ? "\x86\xdd" : "\x08\x00", 2);
	l4[0] = ip6 ? 128 : 8;
	for (size_t i = 4; i < len; i++)
		l4[i] = (uint8_t)(i * 3);
	if (ip6) {
		const uint8_t head[8] = {0x60, 0, 0, 0, (uint8_t)(len >> 8), (uint8_t)len, 58, 64};

		memcpy(out + 14, head, 8);
		memcpy(out + 22, src.b, 16);
		memcpy(out + 38, dst.b, 16);
		sum = ip_l4_checksum(&src, &dst, IP_PROTO_ICMP6, l4, len);
	} else {
		uint8_t head[12] = {0x45, 0, (uint8_t)((len + 20) >> 8), (uint8_t)(len + 20), 0, 1,
			0, 0, 64, 1};

		memcpy(out + 14, head, 12);
		memcpy(out + 26, src.b + 12, 4);
		memcpy(out + 30, dst.b + 12, 4);
		sum = (uint16_t)~ip_sum(out + 14, 20, 0);
		out[24] = (uint8_t)(sum >> 8);
		out[25] = (uint8_t)sum;
		sum = (uint16_t)~ip_sum(l4, len, 0);
	}
	l4[2] = (uint8_t)(sum >> 8);
	l4[3] = (uint8_t)sum;
	return 14 + (ip6 ? 40 : 20) + len;
}

static void test_echo(void **state)
{
	static const size_t sizes[] = {0, 1, 56, 1400, 4000};
	static struct net net;
	uint8_t request[NET_FRAME], reply[NET_FRAME];
	uint64_t unanswered = 0;

	(void)state;
	open_net(&net);
	for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		bool ip6 = i % 2;
		size_t data = sizes[i / 2], len = echo_request(&net, request, ip6, data);
		size_t l4 = len - 8 - data;
		struct wire_pkt pkt;
		int got;

		net_inject(&net, 0, request, len);
		pkt = only_frame(net.end[0].rnic, 0, reply, &got);
		assert_int_equal(len, got);
		assert_int_equal(WIRE_IP, pkt.kind);
		assert_int_equal(ip6 ? 129 : 0, reply[l4]);
		assert_memory_equal(request + l4 + 4, reply + l4 + 4, 4 + data);
		assert_memory_equal(request, reply + 6, 6);
		assert_memory_equal(request + 6, reply, 6);
		if (!ip6)
			assert_int_equal(0xffff, ip_sum(reply + l4, 8 + data, 0));
	}
	/* No more than some answers wait. */
	assert_false(rnic_has_work(net.end[0].rnic));
	for (unsigned i = 0; i < 40; i++)
		net_inject(&net, 0, request, echo_request(&net, request, false, 10));
	unanswered = rnic_drop_count(net.end[0].rnic, RNIC_DROP_REPLY_QUEUE);
	assert_int_equal(24, unanswered);
	assert_true(rnic_has_work(net.end[0].rnic));
	net_run(&net, 0);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_link_local),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_modify_waits),
		cmocka_unit_test(test_static),
		cmocka_unit_test(test_unasked),
		cmocka_unit_test(test_table_full),
		cmocka_unit_test(test_duplicate_address),
		cmocka_unit_test(test_echo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
