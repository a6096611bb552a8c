/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/rc_steps.h"
#include "tests/unit/verbs/fabric.h"

/* ---- the cable ---- */

static unsigned queued(const struct fabric_end *end)
{
	return end->tail - end->head;
}

static unsigned cable_rx(void *port, struct rnic_rx_frame *frames, unsigned n)
{
	struct fabric_end *end = port;
	unsigned got = 0;

	pthread_mutex_lock(&end->fabric->lock);
	for (; got < n && end->read != end->tail; got++, end->read++) {
		unsigned slot = end->read % CABLE_FRAMES;

		frames[got] = (struct rnic_rx_frame){.data = end->queue[slot].data,
			.len = end->queue[slot].len,
			.priv = &end->queue[slot].back};
	}
	pthread_mutex_unlock(&end->fabric->lock);
	return got;
}

static void cable_rx_free(void *port, const struct rnic_rx_frame *frames, unsigned n)
{
	struct fabric_end *end = port;

	pthread_mutex_lock(&end->fabric->lock);
	for (unsigned i = 0; i < n; i++) {
		bool *back = frames[i].priv;

		assert_false(*back);
		*back = true;
	}
	for (; end->head != end->read && end->queue[end->head % CABLE_FRAMES].back; end->head++)
		end->queue[end->head % CABLE_FRAMES].back = false;
	assert_true(end->read - end->head <= (end->fabric->workers ? CABLE_FRAMES : VERBS_BURST));
	pthread_mutex_unlock(&end->fabric->lock);
}

/* The other end of its cable. */
static struct fabric_end *peer(const struct fabric_end *end)
{
	struct fabric *f = end->fabric;

	return end->port ? &f->second[!end->index] : &f->end[!end->index];
}

static unsigned cable_room(void *port)
{
	struct fabric_end *end = port;
	struct fabric *f = end->fabric;
	unsigned room;

	pthread_mutex_lock(&f->lock);
	room = CABLE_FRAMES - queued(peer(end)) - peer(end)->staged;
	if (f->room && room > f->room)
		room = f->room;
	if (f->blocked)
		room = 0;
	pthread_mutex_unlock(&f->lock);
	return room;
}

static uint64_t next_random(struct fabric *f)
{
	f->rng = f->rng * 6364136223846793005u + 1442695040888963407u;
	return f->rng >> 33;
}

static void cable_tx(void *port, const struct rnic_frame *frame)
{
	struct fabric_end *end = port;
	struct fabric *f = end->fabric;
	struct fabric_end *to = peer(end);
	int len;

	if (f->on_tx)
		f->on_tx(f);
	pthread_mutex_lock(&f->lock);
	f->n_tx++;
	if ((f->cut >> end->port & 1) || next_random(f) % 1000 < f->loss) {
		f->n_lost++;
	} else {
		unsigned slot = (to->tail + to->staged) % CABLE_FRAMES;

		assert_true(queued(to) + to->staged < CABLE_FRAMES);
		len = rnic_frame_flatten(frame, to->queue[slot].data, CABLE_FRAME_CAP);
		assert_int_equal(len, frame->len);
		if (next_random(f) % 1000 < f->corrupt) {
			/* The last byte of payload, pad or headers. */
			to->queue[slot].data[len - 5] ^= 0x10;
			f->n_corrupt++;
		}
		to->queue[slot].len = (uint32_t)len;
		to->staged++;
	}
	pthread_mutex_unlock(&f->lock);
}

static unsigned cable_flush(void *port)
{
	struct fabric_end *end = port;
	struct fabric *f = end->fabric;
	struct fabric_end *to = peer(end);
	unsigned n, left;

	pthread_mutex_lock(&f->lock);
	n = f->flush && f->flush < to->staged ? f->flush : to->staged;
	to->tail += n;
	to->staged -= n;
	left = to->staged;
	pthread_mutex_unlock(&f->lock);
	return left;
}

static uint64_t cable_now(void *port)
{
	const struct fabric *f = ((struct fabric_end *)port)->fabric;

	return f->real_time ? port_now_ns() : f->now;
}

void fabric_step(struct fabric *f)
{
	f->now += 1000;
	for (int i = 0; i < 2; i++) {
		if (f->end[i].context)
			incline_verbs_progress(f->end[i].context);
	}
}

static void cable_wait(void *port, uint64_t until)
{
	struct fabric *f = ((struct fabric_end *)port)->fabric;
	const struct timespec t = {.tv_nsec = 50000};

	if (f->real_time) {
		nanosleep(&t, NULL);
		return;
	}
	for (int i = 0; i < 16; i++)
		fabric_step(f);
	if (until > f->now && until - f->now < 10000000)
		f->now = until;
}

static void cable_idle(void *port)
{
	struct fabric *f = ((struct fabric_end *)port)->fabric;

	if (f->alone)
		f->now += 1000;
	else if (!f->real_time)
		fabric_step(f);
}

static bool cable_link(void *port)
{
	const struct fabric_end *end = port;

	return !(end->fabric->link_down >> end->port & 1);
}

static void cable_close(void *port)
{
	struct fabric_end *end = port;

	end->closed++;
	assert_int_equal(end->read, end->head); /* all buffers came back */
}

static const struct verbs_port_ops cable_ops = {
	.rx_burst = cable_rx,
	.rx_free = cable_rx_free,
	.tx_room = cable_room,
	.tx = cable_tx,
	.tx_flush = cable_flush,
	.now = cable_now,
	.wait = cable_wait,
	.idle = cable_idle,
	.link_up = cable_link,
	.close = cable_close,
};

struct fabric *fabric_create(void)
{
	struct fabric *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->now = 1000000000;
	f->rng = 7;
	f->mtu = 4200;
	pthread_mutex_init(&f->lock, NULL);
	for (unsigned i = 0; i < 2; i++) {
		f->end[i].fabric = f->second[i].fabric = f;
		f->end[i].index = f->second[i].index = i;
		f->second[i].port = 1;
	}
	return f;
}

void fabric_open(struct fabric *f, bool thread)
{
	f->real_time = thread;
	for (unsigned i = 0; i < 2; i++) {
		struct verbs_open_attr attr = {
			.name = i ? "b" : "a", .thread = thread, .idle = PORT_IDLE_SLEEP};

		for (uint8_t p = 0; p < 2; p++) {
			uint8_t net = f->same_addresses ? 0 : p;

			attr.rnic.port[p] =
				(struct rnic_port_config){.mac = {2, 0, 0, 0, p, (uint8_t)(i + 1)},
					.ip = {wire_ip_from4(0x0a4d0001 + (net << 8) + i),
						{{0xfd, 0x77, 0, net, [15] = (uint8_t)(i + 1)}}},
					.n_ip = 2,
					.mtu = f->mtu,
					.name = {'n', 'i', 'c', (char)('0' + p)}};
		}
		attr.rnic.n_ports = f->n_ports;
		attr.more[0] = &f->second[i];
		attr.rnic.max_qp = f->max_qp;
		attr.rnic.n_workers = f->workers;
		attr.rnic.lldp = f->lldp;
		strcpy(attr.rnic.host, attr.name);
		attr.rnic.seed = i + 1;
		attr.netdev = f->netdev[i];
		attr.iwarp = f->iwarp;
		f->end[i].context = incline_verbs_open_port(&cable_ops, &f->end[i], &attr);
		assert_non_null(f->end[i].context);
	}
}

void fabric_destroy(struct fabric *f)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_context *context = f->end[i].context;

		f->end[i].context = NULL; /* the cable does not run it any more */
		if (context) {
			assert_int_equal(ibv_close_device(context), 0);
			assert_int_equal(f->end[i].closed, 1);
			assert_int_equal(f->second[i].closed, f->n_ports > 1);
		}
	}
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* ---- queue pairs ---- */

void endpoint_create(struct endpoint *ep, struct ibv_context *context, size_t len, bool events)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = EP_DEPTH,
			.max_recv_wr = EP_DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 64}};

	memset(ep, 0, sizeof(*ep));
	ep->context = context;
	ep->timeout = 8; /* 1 ms */
	ep->len = len;
	ep->buf = calloc(1, len);
	assert_non_null(ep->buf);
	ep->pd = ibv_alloc_pd(context);
	assert_non_null(ep->pd);
	ep->mr = ibv_reg_mr(ep->pd, ep->buf, len,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC);
	assert_non_null(ep->mr);
	if (events) {
		ep->channel = ibv_create_comp_channel(context);
		assert_non_null(ep->channel);
	}
	ep->cq = ibv_create_cq(context, 4 * EP_DEPTH, ep, ep->channel, 0);
	assert_non_null(ep->cq);
	init.send_cq = ep->cq;
	init.recv_cq = ep->cq;
	ep->qp = ibv_create_qp(ep->pd, &init);
	assert_non_null(ep->qp);
}

void endpoint_destroy(struct endpoint *ep)
{
	if (ep->qp)
		assert_int_equal(ibv_destroy_qp(ep->qp), 0);
	assert_int_equal(ibv_destroy_cq(ep->cq), 0);
	if (ep->channel)
		assert_int_equal(ibv_destroy_comp_channel(ep->channel), 0);
	assert_int_equal(ibv_dereg_mr(ep->mr), 0);
	assert_int_equal(ibv_dealloc_pd(ep->pd), 0);
	free(ep->buf);
}

int endpoint_init(struct endpoint *ep)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = ep->port ? ep->port : 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC};

	return ibv_modify_qp(ep->qp, &attr, RC_TO_INIT);
}

int endpoint_rtr(struct endpoint *ep, uint32_t dest_qpn, const union ibv_gid *dgid, int sgid_index)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = EP_PSN,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = 4,
		.ah_attr = {.is_global = 1,
			.port_num = ep->port ? ep->port : 1,
			.grh = {.dgid = *dgid, .sgid_index = (uint8_t)sgid_index, .hop_limit = 1}}};

	return ibv_modify_qp(ep->qp, &attr, RC_TO_RTR);
}

int endpoint_rts(struct endpoint *ep)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
		.timeout = ep->timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
		.sq_psn = EP_PSN};

	return ibv_modify_qp(ep->qp, &attr, RC_TO_RTS);
}

void endpoints_connect(struct endpoint *a, struct endpoint *b, int gid_index)
{
	const uint8_t port = a->port ? a->port : 1;
	union ibv_gid ga, gb;

	assert_int_equal(ibv_query_gid(a->context, port, gid_index, &ga), 0);
	assert_int_equal(ibv_query_gid(b->context, port, gid_index, &gb), 0);
	assert_int_equal(endpoint_init(a), 0);
	assert_int_equal(endpoint_init(b), 0);
	assert_int_equal(endpoint_rtr(a, b->qp->qp_num, &gb, gid_index), 0);
	assert_int_equal(endpoint_rtr(b, a->qp->qp_num, &ga, gid_index), 0);
	assert_int_equal(endpoint_rts(a), 0);
	assert_int_equal(endpoint_rts(b), 0);
}

int post_recv(struct endpoint *ep, uint64_t wr_id, size_t offset, uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ep->buf + offset, .length = len, .lkey = ep->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(ep->qp, &wr, &bad);
}

int post_send(
	struct endpoint *ep, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t offset, uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ep->buf + offset, .length = len, .lkey = ep->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = opcode,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	return ibv_post_send(ep->qp, &wr, &bad);
}

void wait_wc(struct endpoint *ep, struct ibv_wc *wc)
{
	int n;

	do {
		n = ibv_poll_cq(ep->cq, 1, wc);
		assert_true(n >= 0);
	} while (n == 0);
}
