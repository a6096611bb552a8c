/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections and datagrams. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/wire/membership.h"
#include "lib/wire/psn.h"
#include "tests/unit/rnic/net.h"

enum { P0 = 0x100, GRH = 40 };

static struct net net;
static const struct net_options uc = {.type = IBV_QPT_UC, .psn = {P0, 0x200}};

static void open_with(const struct net_options *options)
{
	memset(&net, 0, sizeof(net));
	net_connect(&net, options);
	memset(net.end[1].buf, 0, net.end[1].buf_len);
	net_run(&net, net.now + MS);
	net.n_log = 0;
}

static int write_to(uint64_t id, enum ibv_wr_opcode opcode, uint32_t len)
{
	return end_send(&net.end[0], opcode, id, 0, len, (uintptr_t)net.end[1].buf,
		rnic_mr_rkey(net.end[1].mr));
}

/* ---- UC ---- */

static void test_uc_messages(void **state)
{
	static const uint32_t sizes[] = {0, 1, 1024, 1025, 5000};
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_wc wc;

	(void)state;
	open_with(&uc);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(b->buf, 0, 8192);
		assert_int_equal(0, end_recv(b, 10 + i, 8192, 6000));
		assert_int_equal(0, write_to(i, IBV_WR_SEND_WITH_IMM, sizes[i]));
		net_run(&net, net.now + MS);
		assert_int_equal(IBV_WC_SEND, end_wc(a->scq).opcode);
		wc = end_wc(b->rcq);
		assert_int_equal(IBV_WC_RECV, wc.opcode);
		assert_int_equal(sizes[i], wc.byte_len);
		assert_int_equal(IBV_WC_WITH_IMM, wc.wc_flags);
		assert_memory_equal(a->buf, b->buf + 8192, sizes[i]);
		assert_int_equal(0, write_to(i, IBV_WR_RDMA_WRITE, sizes[i]));
		net_run(&net, net.now + MS);
		assert_int_equal(IBV_WC_RDMA_WRITE, end_wc(a->scq).opcode);
		end_no_wc(b->rcq);
		assert_memory_equal(a->buf, b->buf, sizes[i]);
	}
	assert_int_equal(0, rnic_count(b->rnic, RNIC_C_TX_FRAMES) - 2); /* ARP: nothing answered */
	net_close(&net);
}

/* A lost packet costs its message and nothing else; its receive is there for the next one. */
static void test_uc_loss(void **state)
{
	static const uint8_t opcodes[] = {ROCE_UC | ROCE_SEND_FIRST, ROCE_UC | ROCE_SEND_MIDDLE,
		ROCE_UC | ROCE_SEND_LAST, ROCE_UC | ROCE_SEND_ONLY};
	struct end *b = &net.end[1];
	struct ibv_wc wc;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		open_with(&uc);
		net.drop_from = 0;
		net.drop_opcode = opcodes[i];
		net.drop_nth = 1;
		assert_int_equal(0, end_recv(b, 77, 0, 5000));
		assert_int_equal(0, write_to(1, IBV_WR_SEND, i == 3 ? 100 : 4000));
		assert_int_equal(0, write_to(2, IBV_WR_SEND, 3000));
		net_run(&net, net.now + MS);
		assert_int_equal(1, end_wc(net.end[0].scq).wr_id - 0);
		assert_int_equal(2, end_wc(net.end[0].scq).wr_id);
		wc = end_wc(b->rcq);
		assert_int_equal(77, wc.wr_id);
		assert_int_equal(3000, wc.byte_len);
		assert_memory_equal(net.end[0].buf, b->buf, 3000);
		net_close(&net);
	}
}

static void test_uc_silent_drops(void **state)
{
	struct end *b = &net.end[1];
	struct wire_hdr hdr = {.opcode = ROCE_UC | ROCE_SEND_ONLY, .psn = P0};
	static const uint8_t data[2048];

	(void)state;
	open_with(&uc);
	net_packet(&net, 1, hdr, data, 10);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_RNR));
	assert_int_equal(0, end_recv(b, 1, 0, 64));
	hdr.psn++;
	net_packet(&net, 1, hdr, data, 65);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_LENGTH));
	hdr.opcode = ROCE_UC | ROCE_WRITE_ONLY;
	hdr.psn++;
	hdr.dmalen = 64;
	net_packet(&net, 1, hdr, data, 64);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_ACCESS));
	hdr.opcode = ROCE_UC | ROCE_SEND_MIDDLE;
	hdr.psn++;
	net_packet(&net, 1, hdr, data, 1024);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_OPCODE_SEQ));
	hdr.opcode = ROCE_READ_REQUEST;
	net_packet(&net, 1, hdr, NULL, 0);
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_QP_TYPE));
	net_run(&net, net.now + MS);
	assert_int_equal(0, net.n_log);
	end_no_wc(b->rcq);
	/* Still alive. */
	assert_int_equal(0, write_to(1, IBV_WR_SEND, 64));
	net_run(&net, net.now + MS);
	assert_int_equal(1, end_wc(b->rcq).wr_id);
	net_close(&net);
}

/* A request that cannot be sent stops the send queue, not the receive queue; RTS again. */
static void test_sqe(void **state)
{
	struct end *a = &net.end[0];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_wc wc;

	(void)state;
	open_with(&uc);
	sge = (struct ibv_sge){(uintptr_t)a->buf, 64, rnic_mr_lkey(a->mr) + 1};
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	assert_int_equal(0, write_to(6, IBV_WR_RDMA_WRITE, 64));
	net_run(&net, net.now + MS);
	wc = end_wc(a->scq);
	assert_int_equal(IBV_WC_LOC_PROT_ERR, wc.status);
	assert_int_equal(5, wc.wr_id);
	wc = end_wc(a->scq);
	assert_int_equal(IBV_WC_WR_FLUSH_ERR, wc.status);
	assert_int_equal(0, net.n_log);
	assert_int_equal(0, write_to(7, IBV_WR_RDMA_WRITE, 64));
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(a->scq).status);
	assert_int_equal(0, rnic_qp_modify(a->qp, &attr, IBV_QP_STATE, net.now));
	assert_int_equal(0, write_to(8, IBV_WR_RDMA_WRITE, 64));
	net_run(&net, net.now + MS);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	net_close(&net);
}

/* The completion waits until the frame, which refers to the memory, cannot be looked at any more.
 */
static void test_completes_after_copy(void **state)
{
	struct end *a = &net.end[0];
	struct rnic_frame frame;

	(void)state;
	open_with(&uc);
	assert_int_equal(0, write_to(1, IBV_WR_RDMA_WRITE, 64));
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	end_no_wc(a->scq);
	assert_int_equal(-EOPNOTSUPP, rnic_qp_skip(a->qp, RNIC_SEND, P0, 1));
	assert_true(rnic_has_work(a->rnic));
	assert_false(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	net_close(&net);
}

static void test_uc_drain(void **state)
{
	struct end *a = &net.end[0];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct rnic_frame frame;

	(void)state;
	open_with(&uc);
	net_run(&net, net.now + MS);
	assert_int_equal(0, write_to(1, IBV_WR_RDMA_WRITE, 3000));
	assert_int_equal(0, write_to(2, IBV_WR_RDMA_WRITE, 3000));
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_int_equal(0,
		rnic_qp_modify(a->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, net.now));
	assert_int_equal(0, a->n_event);
	/* What was begun is finished, no more. */
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_false(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_int_equal(1, end_wc(a->scq).wr_id);
	end_no_wc(a->scq);
	assert_int_equal(IBV_EVENT_SQ_DRAINED, a->event[0]);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(0, rnic_qp_modify(a->qp, &attr, IBV_QP_STATE, net.now));
	net_run(&net, net.now + MS);
	assert_int_equal(2, end_wc(a->scq).wr_id);
	net_close(&net);
}

/* ---- UD ---- */

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

static void open_ud(void)
{
	open_with(&(struct net_options){.type = IBV_QPT_UD, .psn = {P0, 0x200}});
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

static void test_multicast_only_ud(void **state)
{
	struct wire_ip group = wire_ip_from4(0xe8000001);

	(void)state;
	open_with(&uc);
	assert_int_equal(-EINVAL, rnic_qp_attach_mcast(net.end[0].qp, &group));
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uc_messages),
		cmocka_unit_test(test_uc_loss),
		cmocka_unit_test(test_uc_silent_drops),
		cmocka_unit_test(test_sqe),
		cmocka_unit_test(test_completes_after_copy),
		cmocka_unit_test(test_uc_drain),
		cmocka_unit_test(test_foreign_handle),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_qkey),
		cmocka_unit_test(test_ud_drops),
		cmocka_unit_test(test_bad_handles),
		cmocka_unit_test(test_multicast),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_multicast_only_ud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
