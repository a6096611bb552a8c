/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices with several ports: who stays on his, what a link that goes down does, neighbours and
 * counters of each. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/transport.h"
#include "tests/unit/rnic/net.h"

static struct net net;

static const struct net_options two = {.n_ports = 2};

/* A pair of queue pairs of this port, connected. */
static void connect_on(struct rnic_qp *qp[2], unsigned port, const struct net_options *base)
{
	struct net_options options = *base;

	options.port = port;
	for (int i = 0; i < 2; i++)
		qp[i] = net_make_qp(&net.end[i], &options);
	for (int i = 0; i < 2; i++)
		net_to_rts(&net, i, qp[i], rnic_qp_num(qp[!i]), &options);
}

/* One of end 0's WRITEs of len bytes from and to the same place. */
static void write_on(struct rnic_qp *qp, uint64_t id, size_t offset, uint32_t len)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct rnic_qp *before = a->qp;

	a->qp = qp;
	assert_int_equal(0, end_send(a, IBV_WR_RDMA_WRITE, id, offset, len,
				    (uintptr_t)b->buf + offset, rnic_mr_rkey(b->mr)));
	a->qp = before;
}

static uint64_t count(int end, unsigned port, enum rnic_port_counter c)
{
	return rnic_port_count(net.end[end].rnic, port, c);
}

static void close_pairs(struct rnic_qp *qp[][2], unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		for (int i = 0; i < 2; i++)
			assert_int_equal(0, rnic_qp_destroy(qp[k][i]));
	net_close(&net);
}

/* ---- creation ---- */

static int create(const struct rnic_config *config)
{
	struct rnic *rnic = NULL;
	int err = rnic_create(config, &rnic);

	rnic_destroy(rnic);
	return err;
}

static struct rnic_config config_of(unsigned n)
{
	struct rnic_config config = {.n_ports = n, .seed = 3};

	for (unsigned p = 0; p < RNIC_MAX_PORTS; p++)
		config.port[p] = (struct rnic_port_config){.mac = {2, 0, 0, 0, 0, (uint8_t)(p + 1)},
			.ip = {wire_ip_from4(0x0a000001 + p)},
			.n_ip = 1,
			.mtu = p == 1 ? 1500 : 4200};
	return config;
}

static void test_create(void **state)
{
	struct rnic_config config = config_of(RNIC_MAX_PORTS);
	struct ibv_device_attr attr;
	struct wire_ip ip;
	struct rnic *rnic;

	(void)state;
	assert_int_equal(0, rnic_create(&config, &rnic));
	rnic_query_device(rnic, &attr);
	assert_int_equal(RNIC_MAX_PORTS, attr.phys_port_cnt);
	assert_int_equal(IBV_MTU_4096, rnic_active_mtu(rnic, 0));
	assert_int_equal(IBV_MTU_1024, rnic_active_mtu(rnic, 1));
	assert_int_equal(0, rnic_gid(rnic, 7, 1, &ip));
	assert_true(wire_ip_eq(&ip, &config.port[7].ip[0]));
	assert_int_equal(0, rnic_gid(rnic, 7, 0, &ip));
	assert_int_equal(8, ip.b[15]); /* of its own MAC */
	assert_int_equal(-EINVAL, rnic_gid(rnic, 8, 0, &ip));
	assert_int_equal(-EINVAL, rnic_gid(rnic, 0, 2, &ip));
	rnic_destroy(rnic);
	config.port[1].ip[0] = config.port[0].ip[0]; /* planes may share an address */
	assert_int_equal(0, create(&config));
	config.n_ports = RNIC_MAX_PORTS + 1;
	assert_int_equal(-EINVAL, create(&config));
	config = config_of(3);
	memcpy(config.port[2].mac, config.port[0].mac, 6);
	assert_int_equal(-EINVAL, create(&config));
	config.n_ports = 2; /* what is beyond is not looked at */
	assert_int_equal(0, create(&config));
	config.port[1].mtu = 300;
	assert_int_equal(-EINVAL, create(&config));
	config = config_of(2);
	config.port[1].via = config.port[1].ip[0];
	assert_int_equal(-EINVAL, create(&config));
	config.port[1].via.b[0] = 0xff;
	assert_int_equal(-EINVAL, create(&config));
}

/* ---- queue pairs that stay on their port ---- */

static void test_stays(void **state)
{
	struct rnic_qp *qp[2][2];
	struct end *b = &net.end[1];

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &two);
	for (unsigned p = 0; p < 2; p++)
		connect_on(qp[p], p, &two);
	net.n_log = 0;
	write_on(qp[0][0], 1, 0, 4096);
	write_on(qp[1][0], 2, 8192, 10240);
	net_run(&net, FOREVER);
	for (unsigned k = 0; k < 2; k++)
		assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	assert_memory_equal(net.end[0].buf + 8192, b->buf + 8192, 10240);
	for (unsigned i = 0; i < net.n_log; i++) {
		const struct net_log *log = &net.log[i];
		const struct rnic_qp *to = rnic_qp_find(net.end[!log->from].rnic, log->pkt.dqpn);

		assert_int_equal(to->path.port, log->port);
		assert_int_equal(log->port, log->pkt.dst.b[14]); /* 10.77.port.x */
	}
	/* Both ends have asked for the other. */
	assert_int_equal(2 + 4, count(1, 0, RNIC_PORT_C_RX_FRAMES));
	assert_int_equal(2 + 10, count(1, 1, RNIC_PORT_C_RX_FRAMES));
	for (unsigned p = 0; p < 2; p++)
		for (int i = 0; i < 2; i++) {
			assert_int_equal(count(i, p, RNIC_PORT_C_TX_FRAMES),
				count(!i, p, RNIC_PORT_C_RX_FRAMES));
			assert_int_equal(count(i, p, RNIC_PORT_C_TX_BYTES),
				count(!i, p, RNIC_PORT_C_RX_BYTES));
			assert_int_equal(0, count(i, p, RNIC_PORT_C_RX_DROPS));
		}
	assert_int_equal(rnic_count(b->rnic, RNIC_C_RX_BYTES),
		count(1, 0, RNIC_PORT_C_RX_BYTES) + count(1, 1, RNIC_PORT_C_RX_BYTES));
	assert_string_equal("tx_lost", rnic_port_counter_name(RNIC_PORT_C_TX_LOST));
	close_pairs(qp, 2);
}

/* A frame that would be right on the first port comes to the second, or is addressed to it. */
static void test_wrong_port(void **state)
{
	struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY};
	struct wire_flow flow = {.ttl = 64, .sport = 0xd00d};
	struct end *b = &net.end[1];
	uint8_t frame[256];
	size_t n;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &two);
	assert_int_equal(0, end_recv(b, 1, 0, 64));
	hdr.dqpn = rnic_qp_num(b->qp);
	for (unsigned p = 0; p < 2; p++) {
		rnic_mac(b->rnic, p, flow.dmac);
		rnic_gid(b->rnic, p, 1, &flow.dst);
		rnic_gid(net.end[0].rnic, p, 1, &flow.src);
		n = (size_t)wire_build_frame(frame, sizeof(frame), &flow, &hdr, "x", 1);
		assert_int_equal(RNIC_DROP_NOT_MINE, rnic_rx(b->rnic, !p, frame, n, net.now));
		assert_int_equal(
			p == 1 ? RNIC_DROP_PORT : 0, rnic_rx(b->rnic, p, frame, n, net.now));
	}
	assert_int_equal(1, rnic_drop_count(b->rnic, RNIC_DROP_PORT));
	assert_int_equal(2, count(1, 1, RNIC_PORT_C_RX_DROPS));
	assert_int_equal(1, count(1, 0, RNIC_PORT_C_RX_DROPS));
	net_close(&net);
}

enum { BIG = 65536, N_BIG = 4 };

/* What is on its way when one of the cables is pulled out. */
static void pull_one(struct rnic_qp *qp[2][2], const struct net_options *options)
{
	memset(&net, 0, sizeof(net));
	net_open(&net, options);
	for (unsigned p = 0; p < 2; p++)
		connect_on(qp[p], p, options);
	for (unsigned k = 0; k < N_BIG; k++)
		for (unsigned p = 0; p < 2; p++)
			write_on(qp[p][0], 10 * p + k, (p * N_BIG + k) * BIG, BIG);
	net.full[0] = 3;
	net_run(&net, net.now + 1);
	net.full[0] = 0;
	for (unsigned n = 0; n < 40; n++) { /* some packets have left, of either */
		struct rnic_frame frame;

		assert_true(rnic_tx(net.end[0].rnic, RNIC_ALL_PORTS, &frame, net.now));
	}
	net.cut = 1;
	for (int i = 0; i < 2; i++)
		net_port_set(&net, i, 0, false);
}

static void test_down_and_up(void **state)
{
	const struct net_options *const options[] = {
		&two, &(struct net_options){.n_ports = 2, .selective = true}};

	(void)state;
	for (unsigned o = 0; o < 2; o++) {
		struct end *a = &net.end[0], *b = &net.end[1];
		struct rnic_qp *qp[2][2];
		struct rnic_qp_stats stats;
		uint64_t sent;

		pull_one(qp, options[o]);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(1, net.end[i].n_port_event);
			assert_int_equal(IBV_EVENT_PORT_ERR, net.end[i].port_event[0]);
			assert_int_equal(0, net.end[i].event_port[0]);
			assert_false(rnic_port_is_up(net.end[i].rnic, 0));
		}
		net_port_set(&net, 0, 0, false); /* is not news */
		assert_int_equal(1, a->n_port_event);
		/* Default: eight waits of 67 to 268 ms. The other port has been done for long. */
		net_run(&net, net.now + 150 * MS);
		for (unsigned k = 0; k < N_BIG; k++)
			assert_int_equal(10 + k, end_wc(a->scq).wr_id);
		end_no_wc(a->scq);
		rnic_qp_stats(qp[0][0], &stats);
		assert_true(options[o]->selective || stats.retries < 7);
		assert_true(count(0, 0, RNIC_PORT_C_TX_LOST) > 0);
		sent = count(0, 0, RNIC_PORT_C_TX_FRAMES);
		assert_int_equal(2, count(1, 0, RNIC_PORT_C_RX_FRAMES)); /* ARP */
		net.cut = 0;
		for (int i = 0; i < 2; i++)
			net_port_set(&net, i, 0, true);
		assert_int_equal(IBV_EVENT_PORT_ACTIVE, a->port_event[1]);
		/* It does not wait for its timer. */
		net_run(&net, net.now + MS);
		for (unsigned k = 0; k < N_BIG; k++)
			assert_int_equal(k, end_wc(a->scq).wr_id);
		assert_memory_equal(a->buf, b->buf, 2 * N_BIG * BIG);
		assert_true(count(0, 0, RNIC_PORT_C_TX_FRAMES) > sent);
		assert_int_equal(1, count(0, 0, RNIC_PORT_C_DOWNS));
		assert_int_equal(0, count(0, 1, RNIC_PORT_C_DOWNS));
		close_pairs(qp, 2);
	}
}

static void test_stays_down(void **state)
{
	struct end *a = &net.end[0];
	struct rnic_qp *qp[2][2];

	(void)state;
	pull_one(qp, &two);
	net_run(&net, FOREVER);
	for (unsigned k = 0; k < N_BIG; k++)
		assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
	assert_int_equal(IBV_WC_RETRY_EXC_ERR, end_wc(a->scq).status);
	for (unsigned k = 1; k < N_BIG; k++)
		assert_int_equal(IBV_WC_WR_FLUSH_ERR, end_wc(a->scq).status);
	/* A link that comes back is nothing to one that has failed. */
	net_port_set(&net, 0, 0, true);
	net_run(&net, FOREVER);
	end_no_wc(a->scq);
	close_pairs(qp, 2);
}

/* Datagrams and UC have no tries: what is sent meanwhile is gone, and done. */
static void test_unreliable_down(void **state)
{
	struct net_options options = {.n_ports = 2, .type = IBV_QPT_UC, .port = 1};

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &options);
	net_port_set(&net, 0, 1, false);
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_SEND, 5, 0, 4096, 0, 0));
	net_run(&net, FOREVER);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	assert_int_equal(4, count(0, 1, RNIC_PORT_C_TX_LOST));
	assert_false(rnic_has_work(net.end[0].rnic));
	net_close(&net);
}

/* ---- ports that take nothing for a while ---- */

static void test_no_room(void **state)
{
	struct rnic_qp *qp[2][2];
	struct rnic_frame frame;
	unsigned n[2] = {0};

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &two);
	for (unsigned p = 0; p < 2; p++)
		connect_on(qp[p], p, &two);
	for (unsigned p = 0; p < 2; p++)
		write_on(qp[p][0], p, p * BIG, 20 * 1024);
	for (; rnic_tx(net.end[0].rnic, 2, &frame, net.now); n[1]++)
		assert_int_equal(1, frame.port);
	assert_int_equal(20, n[1]);
	assert_true(rnic_has_work(net.end[0].rnic));
	assert_false(rnic_tx(net.end[0].rnic, 0, &frame, net.now));
	assert_true(rnic_has_work(net.end[0].rnic));
	for (; rnic_tx(net.end[0].rnic, RNIC_ALL_PORTS, &frame, net.now); n[0]++)
		assert_int_equal(0, frame.port);
	assert_int_equal(20, n[0]);
	assert_false(rnic_has_work(net.end[0].rnic));
	/* With room on both neither waits for the other to be done. */
	for (unsigned p = 0; p < 2; p++)
		write_on(qp[p][0], p, p * BIG, 40 * 1024);
	n[0] = n[1] = 0;
	for (unsigned i = 0; i < 32; i++) {
		assert_true(rnic_tx(net.end[0].rnic, RNIC_ALL_PORTS, &frame, net.now));
		n[frame.port]++;
	}
	assert_int_equal(16, n[0]);
	net_run(&net, FOREVER);
	assert_memory_equal(net.end[0].buf, net.end[1].buf, 40 * 1024);
	close_pairs(qp, 2);
}

/* ---- a queue pair that changes its port ---- */

static void test_move(void **state)
{
	struct net_options on_1 = {.n_ports = 2, .port = 1};
	struct ibv_qp_attr attr;
	struct rnic_frame frame;
	struct end *a = &net.end[0];

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &two);
	attr = net_attr(&net, 0, rnic_qp_num(net.end[1].qp), &on_1);
	attr.qp_state = IBV_QPS_SQD;
	assert_int_equal(0, rnic_qp_modify(a->qp, &attr, IBV_QP_STATE, net.now));
	/* Not without the path that goes with it, not to a port that there is not. */
	assert_int_equal(-EINVAL, rnic_qp_modify(a->qp, &attr, IBV_QP_PORT, net.now));
	attr.port_num = 3;
	assert_int_equal(-EINVAL, rnic_qp_modify(a->qp, &attr, IBV_QP_PORT | IBV_QP_AV, net.now));
	attr.port_num = 0;
	assert_int_equal(-EINVAL, rnic_qp_modify(a->qp, &attr, IBV_QP_PORT | IBV_QP_AV, net.now));
	attr.port_num = 2;
	while (rnic_qp_modify(a->qp, &attr, IBV_QP_PORT | IBV_QP_AV, net.now) == -EAGAIN)
		net_run(&net, net.now + MS);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(0, rnic_qp_modify(a->qp, &attr, IBV_QP_STATE, net.now));
	write_on(a->qp, 1, 0, 64);
	assert_true(rnic_tx(a->rnic, RNIC_ALL_PORTS, &frame, net.now));
	assert_int_equal(1, frame.port);
	assert_memory_equal(net.end[0].rnic->port[1].mac, frame.head + 6, 6);
	net_close(&net);
}

/* ---- neighbours, datagrams, answers ---- */

static void test_neighbours(void **state)
{
	struct rnic_config config = config_of(2);
	const struct wire_ip peer = wire_ip_from4(0x0a000063), via = wire_ip_from4(0x0a0000fe);
	uint8_t macs[2][6] = {{2, 9, 0, 0, 0, 1}, {2, 9, 0, 0, 0, 2}}, mac[6], bytes[64];
	struct rnic_frame frame;
	struct wire_pkt pkt;
	struct rnic *rnic;

	(void)state;
	config.port[1].via = via;
	assert_int_equal(0, rnic_create(&config, &rnic));
	for (unsigned p = 0; p < 2; p++)
		assert_int_equal(0, rnic_neigh_add(rnic, p, &peer, macs[p]));
	for (unsigned p = 0; p < 2; p++) {
		assert_int_equal(0, rnic_resolve(rnic, p, &peer, mac, 0));
		assert_memory_equal(macs[p], mac, 6);
	}
	assert_int_equal(0, rnic_next_hop(rnic, 0, &peer, mac, 0));
	assert_memory_equal(macs[0], mac, 6);
	/* The router is asked for, on its port and from that one's address. */
	assert_int_equal(-EAGAIN, rnic_next_hop(rnic, 1, &peer, mac, 0));
	assert_false(rnic_tx(rnic, 1, &frame, 0));
	assert_true(rnic_tx(rnic, 2, &frame, 0));
	assert_int_equal(1, frame.port);
	assert_int_equal(60, rnic_frame_flatten(&frame, bytes, sizeof(bytes)));
	assert_int_equal(WIRE_OK, wire_parse(bytes, 60, &pkt));
	assert_true(wire_ip_eq(&pkt.dst, &via) && wire_ip_eq(&pkt.src, &config.port[1].ip[0]));
	assert_memory_equal(config.port[1].mac, pkt.arp_sha, 6);
	/* An answer on the other port is not heard. */
	assert_int_equal(60, wire_build_arp(bytes, sizeof(bytes), ARP_REPLY, macs[1], &via,
				     config.port[0].mac, &config.port[0].ip[0], 0));
	assert_int_equal(0, rnic_rx(rnic, 0, bytes, 60, 1));
	assert_int_equal(-EAGAIN, rnic_next_hop(rnic, 1, &peer, mac, 1));
	assert_int_equal(60, wire_build_arp(bytes, sizeof(bytes), ARP_REPLY, macs[1], &via,
				     config.port[1].mac, &config.port[1].ip[0], 0));
	assert_int_equal(0, rnic_rx(rnic, 1, bytes, 60, 1));
	assert_int_equal(0, rnic_next_hop(rnic, 1, &peer, mac, 1));
	assert_memory_equal(macs[1], mac, 6);
	assert_int_equal(-EINVAL, rnic_next_hop(rnic, 2, &peer, mac, 1));
	assert_int_equal(-EINVAL, rnic_resolve(rnic, 2, &peer, mac, 1));
	assert_int_equal(-EINVAL, rnic_neigh_add(rnic, 2, &peer, mac));
	rnic_destroy(rnic);
}

static void test_datagrams(void **state)
{
	struct net_options options = {.n_ports = 2, .type = IBV_QPT_UD, .port = 1};
	const struct wire_ip group = wire_ip_from4(0xe0000042);
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = 1};
	struct end *a = &net.end[0];
	struct rnic_ah *ah[2];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &options);
	memcpy(attr.grh.dgid.raw, group.b, sizeof(group.b));
	for (unsigned p = 0; p < 2; p++, attr.port_num++)
		assert_int_equal(0, rnic_ah_create(a->pd, &attr, net.now, &ah[p]));
	for (unsigned p = 0; p < 2; p++) { /* now 3, then 0 */
		struct rnic_ah *none;

		assert_int_equal(-EINVAL, rnic_ah_create(a->pd, &attr, net.now, &none));
		attr.port_num = 0;
	}
	assert_int_equal(0, rnic_qp_attach_mcast(net.end[1].qp, &group));
	assert_int_equal(0, end_recv(&net.end[1], 1, 0, 128));
	sge = (struct ibv_sge){(uintptr_t)a->buf, 64, rnic_mr_lkey(a->mr)};
	wr.wr.ud.remote_qpn = 0xffffff;
	wr.wr.ud.remote_qkey = NET_QKEY;
	wr.wr.ud.ah = (struct ibv_ah *)ah[0]; /* of another port than the QP */
	assert_int_equal(-EINVAL, rnic_post_send(a->qp, &wr));
	wr.wr.ud.ah = (struct ibv_ah *)ah[1];
	assert_int_equal(0, rnic_post_send(a->qp, &wr));
	net_run(&net, FOREVER);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[1].rcq).status);
	assert_int_equal(1, net.log[net.n_log - 1].port);
	for (unsigned p = 0; p < 2; p++)
		rnic_ah_destroy(ah[p]);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_stays),
		cmocka_unit_test(test_wrong_port),
		cmocka_unit_test(test_down_and_up),
		cmocka_unit_test(test_stays_down),
		cmocka_unit_test(test_unreliable_down),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
