/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices whose queue pairs are iWARP's: connected by RDMA-CM over TCP, on virtual time. */
#include "tests/unit/verbs/iwarp_ends.h"

static void agreement(void **state)
{
	struct iwarp_test *t = *state;
	struct rdma_cm_event *event;

	ask(t, PORT);
	event = take(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL);
	assert_ptr_equal(event->listen_id, t->listener);
	assert_string_equal(event->param.conn.private_data, "ask");
	assert_int_equal(event->param.conn.private_data_len, 4);
	assert_int_equal(event->param.conn.responder_resources, 5);
	assert_int_equal(event->param.conn.initiator_depth, 3);
	assert_int_equal(
		t->client.id->route.addr.src_sin.sin_port, event->id->route.addr.dst_sin.sin_port);
	make_end(&t->server, event->id);
	rdma_ack_cm_event(event);
	assert_int_equal(state_of(t->server.id->qp), IBV_QPS_INIT);
	accept_it(t);
	expect(t, RDMA_CM_EVENT_ESTABLISHED, t->server.id);
	event = take(t, RDMA_CM_EVENT_ESTABLISHED, t->client.id);
	assert_int_equal(event->param.conn.private_data_len, 4);
	assert_string_equal(event->param.conn.private_data, "yes");
	rdma_ack_cm_event(event);
	assert_int_equal(state_of(t->server.id->qp), IBV_QPS_RTS);
	assert_int_equal(state_of(t->client.id->qp), IBV_QPS_RTS);
	assert_int_equal(rdma_disconnect(t->server.id), 0);
	expect(t, RDMA_CM_EVENT_DISCONNECTED, NULL);
	expect(t, RDMA_CM_EVENT_DISCONNECTED, NULL);
	assert_int_equal(state_of(t->client.id->qp), IBV_QPS_ERR);
	assert_int_equal(
		rdma_disconnect(t->client.id), 0); /* as programs do, and nothing follows */
	expect_nothing(t);
}

static void over_ipv6(void **state)
{
	struct sockaddr_in6 from = address6(1, 0), to = address6(2, PORT);
	struct iwarp_test *t = *state;
	struct rdma_cm_id *six = listen_at(t, (struct sockaddr *)&to);

	resolve(t, (struct sockaddr *)&from, (struct sockaddr *)&to);
	make_end(&t->client, t->client.id);
	assert_int_equal(rdma_connect(t->client.id, NULL), 0);
	make_end(&t->server, expect(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL));
	assert_int_equal(rdma_accept(t->server.id, NULL), 0);
	expect(t, RDMA_CM_EVENT_ESTABLISHED, t->server.id);
	expect(t, RDMA_CM_EVENT_ESTABLISHED, t->client.id);
	assert_int_equal(rdma_destroy_id(six), 0);
}

/* What it sends meanwhile comes to the other in one piece. */
static void alone(struct iwarp_test *t, int side)
{
	struct ibv_context *other = t->f->end[!side].context;

	t->f->end[!side].context = NULL;
	pass(t, 0);
	t->f->end[!side].context = other;
}

static void many_at_once(void **state)
{
	enum { MANY = 60 };
	struct sockaddr_in from = address(1, 0), to = address(2, PORT + 3);
	struct rdma_cm_id *client[MANY], *server[MANY], *listener;
	struct iwarp_test *t = *state;

	listener = listen_at(t, (struct sockaddr *)&to);
	assert_int_equal(rdma_destroy_id(t->client.id), 0);
	for (unsigned i = 0; i < MANY; i++) {
		struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

		assert_int_equal(rdma_create_id(t->channel, &t->client.id, NULL, RDMA_PS_TCP), 0);
		resolve(t, (struct sockaddr *)&from, (struct sockaddr *)&to);
		client[i] = t->client.id;
		assert_int_equal(rdma_create_qp(client[i], NULL, &init), 0);
	}
	t->client.id = NULL;
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(rdma_connect(client[i], NULL), 0);
	alone(t, 1);
	alone(t, 0);
	for (unsigned i = 0; i < MANY; i++)
		server[i] = expect(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL);
	expect_nothing(t);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(rdma_destroy_id(server[i]), 0);
		rdma_destroy_qp(client[i]);
		assert_int_equal(rdma_destroy_id(client[i]), 0);
	}
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void rejection(void **state)
{
	struct iwarp_test *t = *state;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	ask(t, PORT);
	id = expect(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL);
	assert_int_equal(rdma_reject(id, "no", 3), 0);
	event = take(t, RDMA_CM_EVENT_REJECTED, t->client.id);
	assert_int_equal(event->param.conn.private_data_len, 3);
	assert_string_equal(event->param.conn.private_data, "no");
	assert_int_equal(event->status, -ECONNREFUSED);
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_destroy_id(id), 0);
	expect_nothing(t);
}

static void nobody_listens(void **state)
{
	struct iwarp_test *t = *state;

	ask(t, PORT + 1);
	expect(t, RDMA_CM_EVENT_REJECTED, t->client.id);
}

/* Programs listen for one connection after another. */
static void next_listener_comes_late(void **state)
{
	struct sockaddr_in at = address(2, PORT);
	struct iwarp_test *t = *state;

	assert_int_equal(rdma_destroy_id(t->listener), 0);
	ask(t, PORT);
	pass(t, SECOND);
	expect_nothing(t);
	t->listener = listen_at(t, (struct sockaddr *)&at);
	make_end(&t->server, expect(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL));
	accept_it(t);
	expect(t, RDMA_CM_EVENT_ESTABLISHED, t->server.id);
	expect(t, RDMA_CM_EVENT_ESTABLISHED, t->client.id);
}

static void next_listener_does_not_come(void **state)
{
	struct iwarp_test *t = *state;

	assert_int_equal(rdma_destroy_id(t->listener), 0);
	t->listener = NULL;
	ask(t, PORT);
	pass(t, 6 * SECOND);
	expect(t, RDMA_CM_EVENT_REJECTED, t->client.id);
	free_end(&t->client);
	assert_int_equal(rdma_create_id(t->channel, &t->client.id, NULL, RDMA_PS_TCP), 0);
	ask(t, PORT); /* the port is not open any more */
	expect(t, RDMA_CM_EVENT_REJECTED, t->client.id);
}

static void peer_is_gone_before_the_answer(void **state)
{
	struct iwarp_test *t = *state;

	ask(t, PORT);
	make_end(&t->server, expect(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL));
	free_end(&t->client);
	pass(t, SECOND);
	assert_int_equal(rdma_accept(t->server.id, NULL), -1);
	assert_int_equal(errno, ECONNRESET);
	expect_nothing(t);
}

static void peer_does_not_answer(void **state)
{
	struct iwarp_test *t = *state;
	struct rdma_cm_id *id;

	ask(t, PORT);
	id = expect(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL);
	pass(t, 19 * SECOND);
	expect_nothing(t);
	pass(t, 2 * SECOND);
	expect(t, RDMA_CM_EVENT_UNREACHABLE, t->client.id);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void device_is_closed(void **state)
{
	struct iwarp_test *t = *state;
	struct ibv_context *context = t->f->end[1].context;

	connect_both(t);
	t->f->end[1].context = NULL;
	assert_int_equal(ibv_close_device(context), 0);
	t->server.cq = NULL;
	t->server.mr = NULL;
	expect(t, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL);
	expect(t, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL);
	expect(t, RDMA_CM_EVENT_DISCONNECTED, t->client.id);
	expect_nothing(t);
}

/* ---- requests ---- */

static struct ibv_sge piece(const struct end *e, size_t at, uint32_t len)
{
	return (struct ibv_sge){(uintptr_t)e->buf + at, len, e->mr->lkey};
}

static int post(struct end *e, const struct end *peer, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge sge = piece(e, 0, len);
	struct ibv_send_wr *bad, wr = {.wr_id = opcode,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = IBV_SEND_SIGNALED,
					 .imm_data = htonl(77),
					 .wr.rdma = {(uintptr_t)peer->buf, peer->mr->rkey}};

	return ibv_post_send(e->id->qp, &wr, &bad);
}

static void post_receive(struct end *e, size_t at, uint32_t len)
{
	struct ibv_sge sge = piece(e, at, len);
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	assert_int_equal(ibv_post_recv(e->id->qp, &wr, &bad), 0);
}

static struct ibv_wc completion(struct end *e)
{
	struct ibv_wc wc;
	int n = 0;

	for (unsigned i = 0; n == 0 && i < 2000000; i++)
		n = ibv_poll_cq(e->cq, 1, &wc);
	assert_int_equal(n, 1);
	return wc;
}

static void fill(struct end *e, uint8_t seed, size_t len)
{
	for (size_t i = 0; i < len; i++)
		e->buf[i] = (uint8_t)(seed + i * 7);
}

static void operations(void **state)
{
	struct iwarp_test *t = *state;
	struct ibv_wc wc;

	connect_both(t);
	fill(&t->client, 3, LEN);
	post_receive(&t->server, 0, LEN);
	assert_int_equal(post(&t->client, &t->server, IBV_WR_SEND, LEN), 0);
	wc = completion(&t->server);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, LEN);
	assert_memory_equal(t->server.buf, t->client.buf, LEN);
	assert_int_equal(completion(&t->client).status, IBV_WC_SUCCESS);

	fill(&t->server, 9, LEN); /* from the side that was asked, too */
	assert_int_equal(post(&t->server, &t->client, IBV_WR_RDMA_WRITE, LEN), 0);
	assert_int_equal(completion(&t->server).opcode, IBV_WC_RDMA_WRITE);
	post_receive(&t->client, 0, 0);
	assert_int_equal(post(&t->server, &t->client, IBV_WR_RDMA_WRITE_WITH_IMM, 16), 0);
	wc = completion(&t->client);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(ntohl(wc.imm_data), 77);
	assert_memory_equal(t->server.buf, t->client.buf, LEN);
	assert_int_equal(completion(&t->server).status, IBV_WC_SUCCESS);

	fill(&t->server, 21, LEN);
	assert_int_equal(post(&t->client, &t->server, IBV_WR_RDMA_READ, LEN), 0);
	wc = completion(&t->client);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
	assert_memory_equal(t->server.buf, t->client.buf, LEN);
}

static void with_losses(void **state)
{
	struct iwarp_test *t = *state;

	connect_both(t);
	t->f->loss = 30;
	for (uint8_t i = 0; i < 20; i++) {
		fill(&t->client, i, LEN);
		post_receive(&t->server, 0, LEN);
		assert_int_equal(post(&t->client, &t->server, IBV_WR_SEND, LEN), 0);
		assert_int_equal(completion(&t->server).status, IBV_WC_SUCCESS);
		assert_memory_equal(t->server.buf, t->client.buf, LEN);
		assert_int_equal(completion(&t->client).status, IBV_WC_SUCCESS);
	}
	assert_true(t->f->n_lost > 5);
	t->f->loss = 0;
}

/* What was sent before it arrives; what was asked for is flushed. */
static void disconnection(void **state)
{
	struct iwarp_test *t = *state;
	struct ibv_wc wc;

	connect_both(t);
	fill(&t->client, 5, LEN);
	post_receive(&t->server, 0, LEN);
	post_receive(&t->server, 0, LEN);
	assert_int_equal(post(&t->client, &t->server, IBV_WR_SEND, LEN), 0);
	assert_int_equal(completion(&t->client).status, IBV_WC_SUCCESS);
	assert_int_equal(rdma_disconnect(t->client.id), 0);
	wc = completion(&t->server);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(t->server.buf, t->client.buf, LEN);
	assert_int_equal(completion(&t->server).status, IBV_WC_WR_FLUSH_ERR);
	expect(t, RDMA_CM_EVENT_DISCONNECTED, NULL);
	expect(t, RDMA_CM_EVENT_DISCONNECTED, NULL);
	expect_nothing(t);
}

/* ---- what the device says of itself, and what it does not do ---- */

static void attributes(void **state)
{
	struct iwarp_test *t = *state;
	struct ibv_context *context = t->f->end[0].context;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	union ibv_gid gid;

	assert_int_equal(context->device->node_type, IBV_NODE_RNIC);
	assert_int_equal(context->device->transport_type, IBV_TRANSPORT_IWARP);
	assert_int_equal(ibv_query_device(context, &device), 0);
	assert_int_equal(device.atomic_cap, IBV_ATOMIC_NONE);
	assert_int_equal(device.max_ah, 0);
	assert_int_equal(device.max_mcast_grp, 0);
	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	assert_int_equal(port.gid_tbl_len, 1);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(port.flags & IBV_QPF_GRH_REQUIRED, 0);
	assert_int_equal(ibv_query_gid(context, 1, 0, &gid), 0);
	assert_memory_equal(gid.raw, ((uint8_t[16]){2, 0, 0, 0, 0, 1}), 16);
	assert_int_equal(ibv_query_gid(context, 1, 1, &gid), -1);
}

static void refused_queue_pairs(void **state)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};
	struct iwarp_test *t = *state;
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};

	connect_both(t);
	init.send_cq = init.recv_cq = t->client.cq;
	for (unsigned i = 0; i < 2; i++) {
		init.qp_type = types[i];
		assert_null(ibv_create_qp(t->client.id->pd, &init));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	init.qp_type = IBV_QPT_RC;
	assert_null(inc_dv_create_qp(t->client.id->pd, &init, INC_DV_QP_SELECTIVE));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(ibv_create_ah(t->client.id->pd, &ah));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(post(&t->client, &t->server, IBV_WR_SEND_WITH_IMM, 8), EOPNOTSUPP);
	assert_int_equal(post(&t->client, &t->server, IBV_WR_ATOMIC_FETCH_AND_ADD, 8), EOPNOTSUPP);
	assert_int_equal(ibv_modify_qp(t->client.id->qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(state_of(t->client.id->qp), IBV_QPS_RTS);
}

static void refused_connections(void **state)
{
	struct sockaddr_in own = address(1, PORT), to = address(2, PORT), at = address(1, 0);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct rdma_conn_param param = {.qp_num = 77};
	struct iwarp_test *t = *state;
	struct rdma_cm_id *ud;
	int mask;

	assert_int_equal(rdma_create_id(t->channel, &ud, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(ud, (struct sockaddr *)&at), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(rdma_resolve_addr(ud, NULL, (struct sockaddr *)&to, MS), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(rdma_listen(ud, 1), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(rdma_destroy_id(ud), 0);

	resolve(t, (struct sockaddr *)&at, (struct sockaddr *)&to);
	assert_int_equal(rdma_connect(t->client.id, &param), -1); /* somebody else's queue pair */
	assert_int_equal(errno, EOPNOTSUPP);
	make_end(&t->client, t->client.id);
	assert_int_equal(rdma_init_qp_attr(t->client.id, &attr, &mask), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_modify_qp(t->client.id->qp, &attr, IBV_QP_STATE), EOPNOTSUPP);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(t->client.id->qp, &attr, IBV_QP_STATE), EOPNOTSUPP);
	assert_int_equal(state_of(t->client.id->qp), IBV_QPS_INIT);
	free_end(&t->client);

	assert_int_equal(rdma_create_id(t->channel, &t->client.id, NULL, RDMA_PS_TCP), 0);
	resolve(t, (struct sockaddr *)&at, (struct sockaddr *)&own);
	make_end(&t->client, t->client.id);
	assert_int_equal(rdma_connect(t->client.id, NULL), -1);
	assert_int_equal(errno, EOPNOTSUPP);
}

static void counters(void **state)
{
	struct iwarp_test *t = *state;
	struct inc_dv_stat stats[512];
	uint64_t established = 0, segments = 0;
	unsigned n;

	connect_both(t);
	assert_int_equal(inc_dv_query_stats(t->f->end[0].context, stats, 512, &n), 0);
	assert_true(n < 512);
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(stats[i].name, "iwarp_established") == 0)
			established = stats[i].value;
		if (strcmp(stats[i].name, "tcp_sent") == 0)
			segments = stats[i].value;
	}
	assert_int_equal(established, 1);
	assert_true(segments > 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(agreement), TEST(over_ipv6), TEST(many_at_once),
		TEST(rejection), TEST(nobody_listens), TEST(next_listener_comes_late),
		TEST(next_listener_does_not_come), TEST(peer_is_gone_before_the_answer),
		TEST(peer_does_not_answer), TEST(device_is_closed), TEST(operations),
		TEST(with_losses), TEST(disconnection), TEST(attributes), TEST(refused_queue_pairs),
		TEST(refused_connections), TEST(counters)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
