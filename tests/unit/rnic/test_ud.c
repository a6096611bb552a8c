/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams, multicast groups and what is said of these. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/wire/membership.h"
#include "tests/unit/rnic/net.h"

enum { P0 = 0x100, GRH = 40 };

static struct net net;

static void open_ud(void)
{
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){.type = IBV_QPT_UD, .psn = {P0, 0x200}});
	memset(net.end[1].buf, 0, net.end[1].buf_len);
	net_run(&net, net.now + MS);
	net.n_log = 0;
}

static struct ibv_ah_attr ah_attr(const struct wire_ip *to, int sgid_index)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = (uint8_t)sgid_index, .hop_limit = 64, .traffic_class = 0x20}};

	memcpy(attr.grh.dgid.raw, to->b, 16);
	return attr;
}

static struct rnic_ah *make_ah(int from, const struct wire_ip *to, int sgid_index)
{
	struct ibv_ah_attr attr = ah_attr(to, sgid_index);
	struct rnic_ah *ah;
	int err;

	while ((err = rnic_ah_create(net.end[from].pd, &attr, net.now, &ah)) == -EAGAIN)
		net_run(&net, net.now + MS);
	assert_int_equal(0, err);
	return ah;
}

static struct rnic_ah *ah_to_peer(int from, int sgid_index)
{
	struct wire_ip ip;

	assert_int_equal(0, rnic_gid(net.end[!from].rnic, 0, (unsigned)sgid_index, &ip));
	return make_ah(from, &ip, sgid_index);
}

static int datagram(
	struct rnic_ah *ah, uint64_t id, uint32_t len, uint32_t qpn, uint32_t qkey, bool imm)
{
	struct end *a = &net.end[0];
	struct ibv_sge sge = {(uintptr_t)a->buf, len, rnic_mr_lkey(a->mr)};
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.imm_data = htobe32(0x12345678),
		.wr.ud = {(struct ibv_ah *)ah, qpn, qkey}};

	return rnic_post_send(a->qp, &wr);
}

/* An address handle of another domain is refused when it is posted. */
static void test_foreign_handle(void **state)
{
	struct end *a = &net.end[0];
	struct rnic_pd *plain, *other;
	struct rnic_ah *ah;
	uint32_t qpn;

	(void)state;
	open_ud();
	plain = a->pd;
	qpn = rnic_qp_num(net.end[1].qp);
	assert_int_equal(0, rnic_pd_alloc(a->rnic, &other));
	a->pd = other;
	ah = ah_to_peer(0, 1);
	a->pd = plain;
	assert_int_equal(-EINVAL, datagram(ah, 1, 10, qpn, NET_QKEY, false));
	assert_int_equal(0, rnic_ah_destroy(ah));
	assert_int_equal(0, rnic_pd_free(other));
	ah = ah_to_peer(0, 1);
	assert_int_equal(0, datagram(ah, 1, 10, qpn, NET_QKEY, false));
	assert_int_equal(0, rnic_ah_destroy(ah));
	net_close(&net);
}

static void test_datagrams(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	uint32_t qpn;

	(void)state;
	open_ud();
	qpn = rnic_qp_num(b->qp);
	for (int sgid = 0; sgid < 3; sgid++) {
		struct rnic_ah *ah = ah_to_peer(0, sgid);
		struct wire_ip src, dst;
		struct ibv_wc wc;

		net.n_log = 0;
		rnic_gid(a->rnic, 0, (unsigned)sgid, &src);
		rnic_gid(b->rnic, 0, (unsigned)sgid, &dst);
		memset(b->buf, 0xaa, 8192);
		assert_int_equal(0, end_recv(b, 1, 0, 4096 + GRH));
		assert_int_equal(0, datagram(ah, 2, 1000, qpn, NET_QKEY, sgid == 1));
		net_run(&net, net.now + MS);
		assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
		wc = end_wc(b->rcq);
		assert_int_equal(GRH + 1000, wc.byte_len);
		assert_int_equal(rnic_qp_num(a->qp), wc.src_qp);
		assert_int_equal(IBV_WC_GRH | (sgid == 1 ? IBV_WC_WITH_IMM : 0), (int)wc.wc_flags);
		/* As ConnectX: bit 3 for UDP, below it 1 for IPv6, 2 for IPv4. */
		assert_int_equal(b->buf[0] >> 4 == 6 ? 9 : 10, wc.sl);
		if (sgid == 1)
			assert_int_equal(0x12345678, be32toh(wc.imm_data));
		assert_memory_equal(a->buf, b->buf + GRH, 1000);
		if (sgid == 1) {
			for (unsigned i = 0; i < 20; i++)
				assert_int_equal(0, b->buf[i]);
			assert_int_equal(0x45, b->buf[20]);
			assert_int_equal(0x20, b->buf[21]);
			assert_memory_equal(src.b + 12, b->buf + 20 + 12, 4);
			assert_memory_equal(dst.b + 12, b->buf + 20 + 16, 4);
		} else {
			assert_int_equal(6, b->buf[0] >> 4);
			assert_memory_equal(src.b, b->buf + 8, 16);
			assert_memory_equal(dst.b, b->buf + 24, 16);
		}
		assert_int_equal(0xaa, b->buf[GRH + 1000]);
		assert_int_equal(P0 + (uint32_t)sgid, net.log[0].pkt.psn);
		assert_int_equal(0, rnic_ah_destroy(ah));
	}
	net_close(&net);
}

static void test_qkey(void **state)
{
	struct end *b = &net.end[1];
	struct rnic_ah *ah;

	(void)state;
	open_ud();
	ah = ah_to_peer(0, 1);
	assert_int_equal(0, end_recv(b, 1, 0, 4096));
	assert_int_equal(0, datagram(ah, 1, 10, rnic_qp_num(b->qp), NET_QKEY + 1, false));
	net_run(&net, net.now + MS);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_QKEY));
	end_no_wc(b->rcq);
	/* With the upper bit: the sender's own. */
	assert_int_equal(0, datagram(ah, 1, 10, rnic_qp_num(b->qp), 0x80000000, false));
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(b->rcq).status);
	assert_int_equal(0, rnic_ah_destroy(ah));
	net_close(&net);
}

static void test_ud_drops(void **state)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct rnic_ah *ah;
	uint32_t qpn;

	(void)state;
	open_ud();
	qpn = rnic_qp_num(b->qp);
	ah = ah_to_peer(0, 2);
	assert_int_equal(0, datagram(ah, 1, 10, qpn, NET_QKEY, false));
	net_run(&net, net.now + MS);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_RNR));
	assert_int_equal(0, end_recv(b, 1, 0, GRH + 9));
	assert_int_equal(0, datagram(ah, 1, 10, qpn, NET_QKEY, false));
	net_run(&net, net.now + MS);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_LENGTH));
	end_no_wc(b->rcq);
	assert_int_equal(0, datagram(ah, 1, 10, qpn + 1, NET_QKEY, false));
	net_run(&net, net.now + MS);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_NO_QP));
	/* The receive that was too short is there for what fits. */
	assert_int_equal(0, datagram(ah, 1, 9, qpn, NET_QKEY, false));
	net_run(&net, net.now + MS);
	assert_int_equal(GRH + 9, end_wc(b->rcq).byte_len);
	assert_int_equal(-EINVAL, datagram(ah, 1, 4097, qpn, NET_QKEY, false));
	assert_int_equal(-EINVAL, datagram(ah, 1, 1, 0x1000000, NET_QKEY, false));
	assert_int_equal(-EINVAL, datagram(NULL, 1, 1, qpn, NET_QKEY, false));
	assert_int_equal(-EOPNOTSUPP, end_send(a, IBV_WR_RDMA_WRITE, 1, 0, 1, 0, 0));
	assert_int_equal(-EOPNOTSUPP, end_send(a, IBV_WR_RDMA_READ, 1, 0, 1, 0, 0));
	assert_int_equal(0, rnic_ah_destroy(ah));
	net_close(&net);
}

static void test_bad_handles(void **state)
{
	struct wire_ip ip4 = wire_ip_from4(0x0a4d0002), ip6, nobody = wire_ip_from4(0x0a4d0063);
	struct ibv_ah_attr attr;
	struct rnic_ah *ah;
	int err;

	(void)state;
	open_ud();
	rnic_gid(net.end[1].rnic, 0, 2, &ip6);
	attr = ah_attr(&ip4, 2);
	assert_int_equal(-EINVAL, rnic_ah_create(net.end[0].pd, &attr, net.now, &ah));
	attr = ah_attr(&ip6, 1);
	assert_int_equal(-EINVAL, rnic_ah_create(net.end[0].pd, &attr, net.now, &ah));
	attr = ah_attr(&ip4, 3);
	assert_int_equal(-EINVAL, rnic_ah_create(net.end[0].pd, &attr, net.now, &ah));
	attr = ah_attr(&ip4, 1);
	attr.is_global = 0;
	assert_int_equal(-EINVAL, rnic_ah_create(net.end[0].pd, &attr, net.now, &ah));
	attr = ah_attr(&nobody, 1);
	while ((err = rnic_ah_create(net.end[0].pd, &attr, net.now, &ah)) == -EAGAIN)
		net_run(&net, net.now + 100 * MS);
	assert_int_equal(-EHOSTUNREACH, err);
	net_close(&net);
}

/* ---- multicast ---- */

static void to_group(const char *text, int sgid, const char *mac_text)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct wire_ip group, other;
	struct rnic_ah *ah;
	uint8_t mac[6];
	struct rnic_frame frame;

	open_ud();
	assert_int_equal(0, wire_ip_parse(text, &group));
	assert_int_equal(0, wire_mac_parse(mac_text, mac));
	ah = make_ah(0, &group, sgid);
	assert_int_equal(0, end_recv(b, 1, 0, 4096));
	assert_int_equal(0, end_recv(b, 2, 0, 4096));
	assert_int_equal(0, end_recv(a, 3, 8192, 4096));
	/* Nobody there. */
	assert_int_equal(0, datagram(ah, 1, 10, 0xffffff, NET_QKEY, false));
	net_run(&net, net.now + MS);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_NOT_MINE));
	assert_int_equal(0, rnic_qp_attach_mcast(b->qp, &group));
	assert_int_equal(0, rnic_qp_attach_mcast(b->qp, &group)); /* once */
	assert_int_equal(0, datagram(ah, 1, 10, 0xffffff, NET_QKEY, false));
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_memory_equal(mac, frame.head, 6);
	net.n_log = 0;
	assert_int_equal(0, datagram(ah, 1, 10, 0xffffff, NET_QKEY, false));
	net_run(&net, net.now + MS);
	assert_int_equal(1, end_wc(b->rcq).wr_id);
	end_no_wc(b->rcq);
	end_no_wc(a->rcq);
	/* Members on the sender's device get it as well. */
	assert_int_equal(0, rnic_qp_attach_mcast(a->qp, &group));
	assert_int_equal(0, datagram(ah, 1, 10, 0xffffff, NET_QKEY, false));
	net_run(&net, net.now + MS);
	assert_int_equal(2, end_wc(b->rcq).wr_id);
	assert_int_equal(3, end_wc(a->rcq).wr_id);
	assert_int_equal(0, rnic_qp_detach_mcast(b->qp, &group));
	assert_int_equal(-EINVAL, rnic_qp_detach_mcast(b->qp, &group));
	rnic_gid(b->rnic, 0, 1, &other);
	assert_int_equal(-EINVAL, rnic_qp_attach_mcast(b->qp, &other));
	assert_int_equal(0, rnic_ah_destroy(ah));
	net_close(&net);
}

static void test_multicast(void **state)
{
	(void)state;
	to_group("239.129.2.3", 1, "01:00:5e:01:02:03");
	to_group("ff0e::1234:5678", 2, "33:33:12:34:56:78");
}

/* The last report that a device sent. */
static struct {
	unsigned n;
	bool joins;
	struct wire_ip group;
} said;

static bool hear(struct net *n, int from, uint8_t *frame, size_t *len)
{
	struct wire_membership m;

	(void)n, (void)from;
	if (wire_membership_parse(frame + ETH_HDR_LEN, *len - ETH_HDR_LEN, &m) == 0 &&
		wire_membership_next(&m, &said.group, &said.joins))
		said.n++;
	return true;
}

static unsigned ask(const char *from, const struct wire_ip *group)
{
	static const uint8_t mac[6] = {2, 9};
	uint8_t frame[WIRE_MEMBERSHIP_LEN];
	struct wire_ip src;
	int len;

	assert_int_equal(0, wire_ip_parse(from, &src));
	len = wire_build_membership_query(frame, sizeof(frame), mac, &src, group, 1000);
	assert_true(len > 0);
	return rnic_rx(net.end[1].rnic, 0, frame, (size_t)len, net.now);
}

/* Switches hear who joins and who leaves, once for each group, and are answered. */
static void test_reports(void **state)
{
	struct wire_ip four = wire_ip_from4(0xef810203), six, all = {0};
	struct rnic_qp *qp;

	(void)state;
	open_ud();
	assert_int_equal(0, wire_ip_parse("ff0e::7", &six));
	qp = net.end[1].qp;
	net.hook = hear;
	said.n = 0;
	assert_int_equal(RNIC_DROP_NOT_ROCE, ask("10.9.9.9", &all)); /* member of nothing */
	assert_int_equal(0, rnic_qp_attach_mcast(qp, &four));
	assert_int_equal(0, rnic_qp_attach_mcast(qp, &four));
	net_run(&net, net.now + MS);
	assert_int_equal(1, said.n);
	assert_true(said.joins && wire_ip_eq(&said.group, &four));
	assert_int_equal(0, rnic_qp_attach_mcast(qp, &six));
	net_run(&net, net.now + MS);
	assert_int_equal(2, said.n);
	assert_true(said.joins && wire_ip_eq(&said.group, &six));
	assert_int_equal(0, ask("10.9.9.9", &all));
	net_run(&net, net.now + MS);
	assert_int_equal(3, said.n);
	assert_true(said.joins && wire_ip_eq(&said.group, &four));
	assert_int_equal(0, ask("fe80::9", &six));
	net_run(&net, net.now + MS);
	assert_int_equal(4, said.n);
	assert_true(said.joins && wire_ip_eq(&said.group, &six));
	six.b[15]++; /* of another group */
	assert_int_equal(0, ask("fe80::9", &six));
	assert_int_equal(0, rnic_qp_detach_mcast(qp, &four));
	net_run(&net, net.now + MS);
	assert_int_equal(5, said.n);
	assert_false(said.joins);
	assert_true(wire_ip_eq(&said.group, &four));
	net_close(&net);
}

enum { FIRST_GROUP = 0xef810300 };

static uint8_t *each; /* joins heard, by group from FIRST_GROUP */

static bool hear_each(struct net *n, int from, uint8_t *frame, size_t *len)
{
	const unsigned before = said.n;
	uint32_t group;

	hear(n, from, frame, len);
	if (said.n == before)
		return true;
	memcpy(&group, said.group.b + 12, sizeof(group));
	if (said.joins)
		each[be32toh(group) - FIRST_GROUP]++;
	return true;
}

/* A device of more groups than frames may wait: what finds no room is said later, each group once,
 * in answers to queries as well, and what has gone meanwhile is not said. */
static void test_many_groups(void **state)
{
	enum { GROUPS = 50 };
	struct wire_ip all = {0};
	uint8_t heard[GROUPS];
	struct rnic_qp *qp;

	(void)state;
	open_ud();
	qp = net.end[1].qp;
	net.hook = hear_each;
	each = heard;
	for (unsigned round = 0; round < 3; round++) {
		memset(heard, 0, sizeof(heard));
		for (uint32_t i = 0; round == 0 && i < GROUPS; i++) {
			struct wire_ip group = wire_ip_from4(FIRST_GROUP + i);

			assert_int_equal(0, rnic_qp_attach_mcast(qp, &group));
		}
		if (round > 0)
			assert_int_equal(0, ask("10.9.9.9", &all));
		if (round == 2) { /* it was still waiting */
			struct wire_ip group = wire_ip_from4(FIRST_GROUP + GROUPS - 1);

			assert_int_equal(0, rnic_qp_detach_mcast(qp, &group));
		}
		net_run(&net, net.now + MS);
		for (unsigned i = 0; i < GROUPS; i++)
			assert_int_equal(round < 2 || i < GROUPS - 1, heard[i]);
	}
	net_close(&net);
}

static void test_multicast_only_ud(void **state)
{
	struct wire_ip group = wire_ip_from4(0xe8000001);

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){.type = IBV_QPT_UC});
	assert_int_equal(-EINVAL, rnic_qp_attach_mcast(net.end[0].qp, &group));
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_foreign_handle),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_qkey),
		cmocka_unit_test(test_ud_drops),
		cmocka_unit_test(test_bad_handles),
		cmocka_unit_test(test_multicast),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_multicast_only_ud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
