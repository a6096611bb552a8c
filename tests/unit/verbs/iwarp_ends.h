/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices of iWARP, an event channel, and IDs with what they need, on virtual time. */
#ifndef TEST_VERBS_IWARP_ENDS_H
#define TEST_VERBS_IWARP_ENDS_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verbs/fabric.h"

enum { PORT = 7471, MS = 1000, LEN = 1 << 16, DEPTH = 64 };
static const uint64_t SECOND = 1000000000;

/* An ID's end of a connection. */
struct end {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buf;
};

struct iwarp_test {
	struct fabric *f;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct end client, server;
};

static inline struct sockaddr_in address(unsigned last, uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(last ? 0x0a4d0000 + last : 0)};
}

static inline struct sockaddr_in6 address6(uint8_t last, uint16_t port)
{
	return (struct sockaddr_in6){.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr.s6_addr = {0xfd, 0x77, [15] = last}};
}

static inline struct rdma_cm_id *listen_at(struct iwarp_test *t, struct sockaddr *at)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(t->channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, at), 0);
	assert_int_equal(rdma_listen(id, 64), 0);
	return id;
}

/* The next event is this one, of that ID unless it is NULL; it is not acknowledged. */
static inline struct rdma_cm_event *take(
	struct iwarp_test *t, enum rdma_cm_event_type type, const struct rdma_cm_id *of)
{
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_cm_event(t->channel, &event), 0);
	if (event->event != type || (of && event->id != of)) {
		const enum rdma_cm_event_type got = event->event;

		rdma_ack_cm_event(event); /* or the failed test would never end */
		fail_msg("event %d in place of %d", got, type);
	}
	return event;
}

static inline struct rdma_cm_id *expect(
	struct iwarp_test *t, enum rdma_cm_event_type type, const struct rdma_cm_id *of)
{
	struct rdma_cm_event *event = take(t, type, of);
	struct rdma_cm_id *id = event->id;

	rdma_ack_cm_event(event);
	return id;
}

static inline void expect_nothing(struct iwarp_test *t)
{
	const int flags = fcntl(t->channel->fd, F_GETFL);
	struct rdma_cm_event *event;

	assert_int_equal(fcntl(t->channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_int_equal(rdma_get_cm_event(t->channel, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(t->channel->fd, F_SETFL, flags), 0);
}

/* With nothing from the devices meanwhile but what is due. */
static inline void pass(struct iwarp_test *t, uint64_t time)
{
	for (int i = 0; i < 64; i++)
		fabric_step(t->f);
	t->f->now += time;
	for (int i = 0; i < 64; i++)
		fabric_step(t->f);
}

static inline struct iwarp_test *start(void)
{
	struct iwarp_test *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->f = fabric_create();
	t->f->iwarp = true;
	fabric_open(t->f, false);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(incline_verbs_cm_add(t->f->end[i].context), 0);
	t->channel = rdma_create_event_channel();
	assert_non_null(t->channel);
	return t;
}

static inline int setup(void **state)
{
	struct sockaddr_in at = address(2, PORT);
	struct iwarp_test *t = start();

	t->listener = listen_at(t, (struct sockaddr *)&at);
	assert_int_equal(rdma_create_id(t->channel, &t->client.id, NULL, RDMA_PS_TCP), 0);
	*state = t;
	return 0;
}

static inline void free_end(struct end *e)
{
	if (!e->id)
		return;
	rdma_destroy_qp(e->id);
	if (e->mr)
		assert_int_equal(ibv_dereg_mr(e->mr), 0);
	if (e->cq)
		assert_int_equal(ibv_destroy_cq(e->cq), 0);
	assert_int_equal(rdma_destroy_id(e->id), 0);
	free(e->buf);
	*e = (struct end){0};
}

static inline int teardown(void **state)
{
	struct iwarp_test *t = *state;

	free_end(&t->client);
	free_end(&t->server);
	if (t->listener)
		assert_int_equal(rdma_destroy_id(t->listener), 0);
	rdma_destroy_event_channel(t->channel);
	fabric_destroy(t->f);
	free(t);
	return 0;
}

/* ---- connecting ---- */

static inline void make_end(struct end *e, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 2, 2, 64}};

	e->id = id;
	e->buf = calloc(1, LEN);
	assert_non_null(e->buf);
	e->mr = ibv_reg_mr(id->pd, e->buf, LEN,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_non_null(e->mr);
	e->cq = ibv_create_cq(id->verbs, 4 * DEPTH, NULL, NULL, 0);
	assert_non_null(e->cq);
	init.send_cq = init.recv_cq = e->cq;
	assert_int_equal(rdma_create_qp(id, id->pd, &init), 0);
}

static inline void resolve(struct iwarp_test *t, struct sockaddr *from, struct sockaddr *to)
{
	assert_int_equal(rdma_resolve_addr(t->client.id, from, to, MS), 0);
	expect(t, RDMA_CM_EVENT_ADDR_RESOLVED, t->client.id);
	assert_int_equal(rdma_resolve_route(t->client.id, MS), 0);
	expect(t, RDMA_CM_EVENT_ROUTE_RESOLVED, t->client.id);
}

/* Until the request is on its way. */
static inline void ask(struct iwarp_test *t, uint16_t port)
{
	struct sockaddr_in from = address(1, 0), to = address(2, port);
	struct rdma_conn_param param = {.private_data = "ask",
		.private_data_len = 4,
		.responder_resources = 3,
		.initiator_depth = 5};

	resolve(t, (struct sockaddr *)&from, (struct sockaddr *)&to);
	make_end(&t->client, t->client.id);
	assert_int_equal(rdma_connect(t->client.id, &param), 0);
}

static inline void accept_it(struct iwarp_test *t)
{
	struct rdma_conn_param param = {.private_data = "yes",
		.private_data_len = 4,
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH};

	assert_int_equal(rdma_accept(t->server.id, &param), 0);
}

static inline void connect_both(struct iwarp_test *t)
{
	ask(t, PORT);
	make_end(&t->server, expect(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL));
	accept_it(t);
	expect(t, RDMA_CM_EVENT_ESTABLISHED, t->server.id);
	expect(t, RDMA_CM_EVENT_ESTABLISHED, t->client.id);
}

static inline enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

#endif
