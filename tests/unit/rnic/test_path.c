/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths: what attributes make of one, from another port, headers made ready; and that queue pairs,
 * address handles and frames go by them. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/ah.h"
#include "lib/rnic/device.h"
#include "lib/rnic/path.h"
#include "tests/unit/rnic/net.h"

static struct net net;

static struct rnic *begin(const struct net_options *options)
{
	memset(&net, 0, sizeof(net));
	net_open(&net, options);
	return net.end[0].rnic;
}

static struct ibv_ah_attr to(const char *text, uint8_t index)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = index};
	struct wire_ip ip;

	assert_int_equal(0, wire_ip_parse(text, &ip));
	memcpy(attr.grh.dgid.raw, ip.b, sizeof(ip.b));
	return attr;
}

/* ---- of attributes ---- */

static void test_attributes(void **state)
{
	struct rnic *rnic = begin(&(struct net_options){.n_ports = 2});
	struct ibv_ah_attr attr = to("10.77.1.9", 1);
	struct rnic_path path;

	(void)state;
	attr.grh.traffic_class = 0x68;
	assert_int_equal(0, path_of_attr(&path, rnic, 1, &attr));
	assert_int_equal(1, path.port);
	assert_false(path.loopback || path.multicast);
	assert_null(path.full);
	assert_true(wire_ip_eq(&path.flow.src, &rnic->port[1].gid[1]));
	assert_memory_equal(path.flow.dst.b, attr.grh.dgid.raw, 16);
	assert_memory_equal(path.flow.smac, rnic->port[1].mac, 6);
	assert_int_equal(0x68, path.flow.tos);
	assert_int_equal(64, path.flow.ttl);
	attr.grh.hop_limit = 1; /* means a subnet */
	assert_int_equal(0, path_of_attr(&path, rnic, 1, &attr));
	assert_int_equal(64, path.flow.ttl);
	attr.grh.hop_limit = 7;
	assert_int_equal(0, path_of_attr(&path, rnic, 1, &attr));
	assert_int_equal(7, path.flow.ttl);
	/* An address of that very port. */
	attr = to("10.77.1.1", 1);
	assert_int_equal(0, path_of_attr(&path, rnic, 1, &attr));
	assert_true(path.loopback);
	assert_int_equal(0, path_resolve(&path, rnic, net.now));
	assert_memory_equal(path.flow.dmac, rnic->port[1].mac, 6);
	assert_int_equal(0, path_of_attr(&path, rnic, 0, &attr));
	assert_false(path.loopback);
	net_close(&net);
}

static void test_groups(void **state)
{
	static const uint8_t mac4[] = {1, 0, 0x5e, 1, 2, 3}, mac6[] = {0x33, 0x33, 0, 0, 0, 9};
	struct rnic *rnic = begin(&(struct net_options){0});
	struct ibv_ah_attr attr = to("239.1.2.3", 1);
	struct rnic_path path;

	(void)state;
	assert_int_equal(0, path_of_attr(&path, rnic, 0, &attr));
	assert_true(path.multicast);
	assert_false(path.loopback);
	assert_int_equal(0, path_resolve(&path, rnic, net.now));
	assert_memory_equal(mac4, path.flow.dmac, 6);
	attr = to("ff05::9", 2);
	assert_int_equal(0, path_of_attr(&path, rnic, 0, &attr));
	assert_memory_equal(mac6, path.flow.dmac, 6);
	net_close(&net);
}

static void test_refused(void **state)
{
	struct rnic *rnic = begin(&(struct net_options){0});
	struct rnic_path path = {.port = 77};
	struct ibv_ah_attr attr;

	(void)state;
	attr = to("10.77.0.2", 1);
	attr.is_global = 0;
	assert_int_equal(-EINVAL, path_of_attr(&path, rnic, 0, &attr));
	attr = to("10.77.0.2", 3); /* entries 0 to 2 */
	assert_int_equal(-EINVAL, path_of_attr(&path, rnic, 0, &attr));
	attr = to("10.77.0.2", 2);
	assert_int_equal(-EINVAL, path_of_attr(&path, rnic, 0, &attr));
	attr = to("fd77::2", 1);
	assert_int_equal(-EINVAL, path_of_attr(&path, rnic, 0, &attr));
	attr = to("::", 2);
	assert_int_equal(-EINVAL, path_of_attr(&path, rnic, 0, &attr));
	attr = to("10.77.0.2", 1);
	assert_int_equal(-EINVAL, path_of_attr(&path, rnic, 1, &attr));
	assert_int_equal(-EINVAL, path_of_attr(&path, rnic, -1u, &attr)); /* port_num 0 */
	assert_int_equal(77, path.port);
	net_close(&net);
}

/* ECN bits are the device's; a router's address is nothing of RC's, UC's and UD's. */
static void test_ect(void **state)
{
	struct rnic *rnic = begin(&(struct net_options){.congestion = {.ect = true}});
	struct ibv_ah_attr attr = to("10.77.0.2", 1);
	struct rnic_path path;

	(void)state;
	attr.grh.traffic_class = 0x68;
	assert_int_equal(0, path_of_attr(&path, rnic, 0, &attr));
	assert_int_equal(0x68 | IP_ECN_ECT0, path.flow.tos);
	attr.grh.traffic_class = 0x68 | IP_ECN_ECT1;
	assert_int_equal(0, path_of_attr(&path, rnic, 0, &attr));
	assert_int_equal(0x68 | IP_ECN_ECT1, path.flow.tos);
	assert_int_equal(-EAGAIN, path_resolve(&path, rnic, net.now));
	net_close(&net);
}

/* ---- frames ---- */

static size_t build(struct rnic *rnic, const struct rnic_path *path, uint8_t opcode, size_t len,
	uint8_t *out, size_t cap)
{
	static uint8_t payload[4096];
	struct wire_hdr hdr = {.opcode = opcode, .mig = true, .dqpn = 0x123, .psn = 0x456789};
	struct rnic_frame frame;
	int n;

	memset(payload, 0xa5, sizeof(payload));
	rnic->ip_id = 4242;
	frame.iov[0].base = payload;
	frame.iov[0].len = len;
	frame.n_iov = 1;
	frame.port = 99;
	frame_build(rnic, path, &frame, &hdr, len);
	assert_int_equal(path->port, frame.port);
	assert_int_equal(path->loopback, frame.loopback);
	n = rnic_frame_flatten(&frame, out, cap);
	assert_true(n > 0);
	return (size_t)n;
}

/* Headers made ready are the same bytes as those made anew, and used for their size alone. */
static void test_made_ready(void **state)
{
	static const uint8_t opcodes[] = {
		ROCE_SEND_MIDDLE, ROCE_WRITE_MIDDLE, ROCE_SEND_ONLY, ROCE_WRITE_FIRST};
	static const size_t lens[] = {1024, 1020, 1021, 0};
	static const char *const dsts[] = {"10.77.1.9", "fd77:1::9"};
	struct rnic *rnic = begin(&(struct net_options){.n_ports = 2});
	uint8_t a[2048], b[2048];
	struct wire_template full;
	struct rnic_path path, plain;

	(void)state;
	for (unsigned d = 0; d < 2; d++) {
		const struct ibv_ah_attr attr = to(dsts[d], (uint8_t)(1 + d));

		assert_int_equal(0, path_of_attr(&path, rnic, 1, &attr));
		path.flow.sport = 0xc123;
		memset(path.flow.dmac, 2, 6);
		plain = path;
		path_prepare(&path, &full, 0x123, 1024);
		assert_ptr_equal(&full, path.full);
		for (unsigned o = 0; o < 4; o++)
			for (unsigned l = 0; l < 4; l++) {
				const size_t n =
					build(rnic, &path, opcodes[o], lens[l], a, sizeof(a));

				assert_int_equal(
					n, build(rnic, &plain, opcodes[o], lens[l], b, sizeof(b)));
				assert_memory_equal(a, b, n);
			}
	}
	/* It is what it says: a mark in it shows. */
	full.head[full.l3 + 6] ^= 1; /* payload length of IPv6 or so: any byte */
	assert_int_equal(build(rnic, &path, ROCE_SEND_MIDDLE, 1024, a, sizeof(a)),
		build(rnic, &plain, ROCE_SEND_MIDDLE, 1024, b, sizeof(b)));
	assert_memory_not_equal(a, b, ETH_HDR_LEN + 40);
	/* Another port has other headers. */
	plain = path_by_port(&path, rnic, 0);
	assert_null(plain.full);
	assert_int_equal(0, plain.port);
	assert_memory_equal(plain.flow.smac, rnic->port[0].mac, 6);
	assert_true(wire_ip_eq(&plain.flow.src, &path.flow.src));
	net_close(&net);
}

/* ---- of queue pairs and address handles ---- */

/* Of a connection to another device and of one to itself on the same port, frames in turn. */
static void test_each_by_its_own(void **state)
{
	const struct net_options options = {.n_ports = 2, .port = 1};
	struct rnic_qp *away, *self;
	struct ibv_ah_attr attr;
	struct rnic_ah *ah;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &options);
	away = net.end[0].qp;
	assert_int_equal(1, away->path.port);
	assert_false(away->path.loopback);
	assert_ptr_equal(&away->full, away->path.full);
	assert_int_equal(away->mtu, away->full.pay_len);
	self = net_make_qp(&net.end[0], &options);
	{
		struct ibv_qp_attr a = net_attr(&net, 0, rnic_qp_num(self), &options);
		struct wire_ip own;

		assert_int_equal(0, rnic_gid(net.end[0].rnic, 1, a.ah_attr.grh.sgid_index, &own));
		memcpy(a.ah_attr.grh.dgid.raw, own.b, sizeof(own.b));
		a.qp_state = IBV_QPS_INIT;
		assert_int_equal(0, rnic_qp_modify(self, &a, net_mask_init, net.now));
		assert_int_equal(1, self->path.port);
		a.qp_state = IBV_QPS_RTR;
		assert_int_equal(0, rnic_qp_modify(self, &a, net_mask_rtr, net.now));
		a.qp_state = IBV_QPS_RTS;
		assert_int_equal(0, rnic_qp_modify(self, &a, net_mask_rts, net.now));
	}
	assert_true(self->path.loopback);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(
			0, end_send(&net.end[0], IBV_WR_RDMA_WRITE, 1, 0, 5000,
				   (uintptr_t)net.end[1].buf, rnic_mr_rkey(net.end[1].mr)));
		net.end[0].qp = self;
		assert_int_equal(
			0, end_send(&net.end[0], IBV_WR_RDMA_WRITE, 2, 0, 5000,
				   (uintptr_t)net.end[0].buf + 8192, rnic_mr_rkey(net.end[0].mr)));
		net.end[0].qp = away;
	}
	net.n_log = 0;
	net_run(&net, net.now + MS);
	for (unsigned i = 0; i < 6; i++) {
		struct ibv_wc wc;

		assert_int_equal(1, rnic_cq_poll(net.end[0].scq, 1, &wc));
		assert_int_equal(IBV_WC_SUCCESS, wc.status);
	}
	/* None of its own came out. */
	for (unsigned i = 0; i < net.n_log; i++) {
		assert_int_equal(1, net.log[i].port);
		assert_int_not_equal(rnic_qp_num(self), net.log[i].pkt.dqpn);
	}
	assert_memory_equal(net.end[0].buf, net.end[1].buf, 5000);
	/* A handle has what the queue pair found. */
	attr = away->attr.ah_attr;
	attr.port_num = 2;
	assert_int_equal(0, rnic_ah_create(net.end[0].pd, &attr, net.now, &ah));
	assert_int_equal(away->path.port, ah->path.port);
	assert_memory_equal(away->path.flow.dmac, ah->path.flow.dmac, 6);
	assert_memory_equal(away->path.flow.smac, ah->path.flow.smac, 6);
	assert_true(wire_ip_eq(&away->path.flow.dst, &ah->path.flow.dst));
	assert_int_equal(0, ah->path.flow.sport);
	assert_null(ah->path.full);
	rnic_ah_destroy(ah);
	assert_int_equal(0, rnic_qp_destroy(self));
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_groups), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ect), cmocka_unit_test(test_made_ready),
		cmocka_unit_test(test_each_by_its_own)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
