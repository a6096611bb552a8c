/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/rnic/net.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/ip.h"
#include "tests/rc_steps.h"

enum { ETHER_AROUND = 8 + 4 + 12 }; /* preamble, FCS, gap */

uint64_t net_random(struct net *net)
{
	uint64_t x = net->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return net->random = x;
}

/* ---- the link ---- */

static bool before(const struct net_frame *a, const struct net_frame *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct net *net, struct net_frame *frame)
{
	unsigned i;

	if (net->n_flight == net->cap_flight) {
		net->cap_flight = net->cap_flight * 2 + 64;
		net->flight = realloc(net->flight, net->cap_flight * sizeof(struct net_frame *));
		assert_non_null(net->flight);
	}
	for (i = net->n_flight++; i > 0 && before(frame, net->flight[(i - 1) / 2]); i = (i - 1) / 2)
		net->flight[i] = net->flight[(i - 1) / 2];
	net->flight[i] = frame;
}

static struct net_frame *pop(struct net *net)
{
	struct net_frame *first = net->flight[0], *last = net->flight[--net->n_flight];
	unsigned i = 0;

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= net->n_flight)
			break;
		if (child + 1 < net->n_flight && before(net->flight[child + 1], net->flight[child]))
			child++;
		if (!before(net->flight[child], last))
			break;
		net->flight[i] = net->flight[child];
		i = child;
	}
	net->flight[i] = last;
	return first;
}

static bool chance(struct net *net, unsigned per_mille)
{
	return per_mille > 0 && net_random(net) % 1000 < per_mille;
}

void net_put_at(
	struct net *net, int to, unsigned port, const uint8_t *bytes, size_t len, uint64_t delay)
{
	struct net_frame *frame = malloc(sizeof(*frame));

	assert_non_null(frame);
	assert_true(len <= sizeof(frame->bytes));
	frame->at = net->now + delay;
	frame->order = net->sent++;
	frame->to = to;
	frame->port = port;
	frame->len = len;
	memcpy(frame->bytes, bytes, len);
	push(net, frame);
}

void net_put(struct net *net, int to, const uint8_t *bytes, size_t len, uint64_t delay)
{
	net_put_at(net, to, 0, bytes, len, delay);
}

void net_inject(struct net *net, int to, const uint8_t *frame, size_t len)
{
	rnic_rx(net->end[to].rnic, 0, frame, len, net->now);
}

static bool lost(struct net *net, int from, unsigned port, const uint8_t *bytes, size_t len)
{
	struct wire_pkt pkt;

	if (net->cut >> port & 1)
		return true;
	if (wire_parse(bytes, len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE)
		return false;
	if (net->n_log < NET_LOG)
		net->log[net->n_log++] = (struct net_log){net->now, from, port, pkt};
	if (net->drop_nth > 0 && net->drop_from == from && net->drop_opcode == pkt.opcode &&
		--net->drop_nth == 0)
		return true;
	return net->mute[from];
}

static void transmit(struct net *net, int from, const struct rnic_frame *frame)
{
	uint8_t bytes[NET_FRAME];
	int n = rnic_frame_flatten(frame, bytes, sizeof(bytes));
	size_t len = (size_t)n;
	uint64_t wire = 0;

	assert_true(n > 0);
	if (net->rate != 0) {
		wire = (len + ETHER_AROUND) * 8 * SEC / net->rate;
		net->left[from] = net->now + wire;
	}
	if (lost(net, from, frame->port, bytes, len))
		return;
	net->hook_port = frame->port;
	if (net->hook != NULL && !net->hook(net, from, bytes, &len))
		return;
	if (chance(net, net->loss))
		return;
	if (chance(net, net->corrupt))
		bytes[net_random(net) % len] ^= (uint8_t)(1 << net_random(net) % 8);
	if (chance(net, net->twice))
		net_put_at(net, !from, frame->port, bytes, len,
			wire + NET_DELAY + net_random(net) % 20000);
	net_put_at(net, !from, frame->port, bytes, len,
		wire + NET_DELAY + (chance(net, net->late) ? net_random(net) % 20000 : 0));
}

void net_packet(struct net *net, int to, struct wire_hdr hdr, const void *payload, size_t len)
{
	uint8_t bytes[NET_FRAME];
	struct wire_flow flow = {.ttl = 64, .sport = 0xd00d};
	int n;

	rnic_mac(net->end[to].rnic, 0, flow.dmac);
	rnic_mac(net->end[!to].rnic, 0, flow.smac);
	rnic_gid(net->end[to].rnic, 0, 1, &flow.dst);
	rnic_gid(net->end[!to].rnic, 0, 1, &flow.src);
	if (hdr.dqpn == 0)
		hdr.dqpn = rnic_qp_num(net->end[to].qp);
	n = wire_build_frame(bytes, sizeof(bytes), &flow, &hdr, payload, len);
	assert_true(n > 0);
	net_inject(net, to, bytes, (size_t)n);
}

void net_ack(struct net *net, int to, uint32_t psn, unsigned syndrome)
{
	net_packet(net, to,
		(struct wire_hdr){.opcode = ROCE_ACK, .psn = psn, .syndrome = (uint8_t)syndrome},
		NULL, 0);
}

void net_expect(const struct net *net, unsigned i, int from, uint8_t opcode, uint32_t psn)
{
	const struct net_log *log = &net->log[i];

	if (i >= net->n_log)
		fail_msg("no frame %u", i);
	if (log->from != from || log->pkt.opcode != opcode || log->pkt.psn != psn)
		fail_msg("frame %u: from %d, %s, PSN %#x; not from %d, %s, PSN %#x", i, log->from,
			roce_opcode_name(log->pkt.opcode), log->pkt.psn, from,
			roce_opcode_name(opcode), psn);
}

void net_expect_ack(
	const struct net *net, unsigned i, int from, uint32_t psn, unsigned syndrome, uint32_t msn)
{
	net_expect(net, i, from, ROCE_ACK, psn);
	assert_int_equal(syndrome, net->log[i].pkt.syndrome);
	assert_int_equal(msn, net->log[i].pkt.msn);
}

static void pull(struct net *net)
{
	struct rnic_frame frame;

	for (int i = 0; i < 2; i++) {
		struct rnic *rnic = net->end[i].rnic;
		const unsigned ports = RNIC_ALL_PORTS & ~net->full[i];
		unsigned calls = 0;

		do {
			while (net->left[i] <= net->now && rnic_tx(rnic, ports, &frame, net->now)) {
				assert_true(ports >> frame.port & 1);
				if (net->before_port != NULL)
					net->before_port(net);
				transmit(net, i, &frame);
			}
			/* Ports that are down, and loopback, take some frames per call. */
			assert_true(++calls < 1000);
		} while (rnic_has_work(rnic) && net->full[i] == 0 && net->left[i] <= net->now);
	}
}

void net_port_set(struct net *net, int i, unsigned port, bool up)
{
	net->told = &net->end[i];
	rnic_port_set(net->end[i].rnic, port, up, net->now);
}

void net_run(struct net *net, uint64_t until)
{
	for (;;) {
		uint64_t next = UINT64_MAX;

		pull(net);
		for (int i = 0; i < 2; i++) {
			uint64_t deadline = rnic_deadline(net->end[i].rnic);

			next = deadline < next ? deadline : next;
			if (net->left[i] > net->now && net->left[i] < next)
				next = net->left[i];
		}
		if (net->n_flight > 0 && net->flight[0]->at < next)
			next = net->flight[0]->at;
		if (next == UINT64_MAX || next > until)
			break;
		net->now = next > net->now ? next : net->now;
		while (net->n_flight > 0 && net->flight[0]->at <= net->now) {
			struct net_frame *frame = pop(net);

			rnic_rx(net->end[frame->to].rnic, frame->port, frame->bytes, frame->len,
				net->now);
			free(frame);
		}
		rnic_timer(net->end[0].rnic, net->now);
		rnic_timer(net->end[1].rnic, net->now);
	}
	if (until != UINT64_MAX && until > net->now)
		net->now = until;
}

/* ---- devices and connections ---- */

static struct end *end_of(struct net *net, const struct rnic_qp *qp)
{
	return rnic_qp_user(qp) == &net->end[0] ? &net->end[0] : &net->end[1];
}

static void on_qp_event(void *arg, struct rnic_qp *qp, enum ibv_event_type type)
{
	struct end *end = end_of(arg, qp);

	assert_true(end->n_event < NET_EVENTS);
	end->event[end->n_event++] = type;
}

static void on_srq_event(void *arg, struct rnic_srq *srq, enum ibv_event_type type)
{
	struct end *end = rnic_srq_user(srq);

	(void)arg;
	assert_int_equal(IBV_EVENT_SRQ_LIMIT_REACHED, type);
	end->n_srq_event++;
}

static void on_cq_event(void *arg, struct rnic_cq *cq)
{
	struct end *end = rnic_cq_user(cq);

	(void)arg;
	end->cq_event[end->n_cq_event++ % NET_EVENTS] = cq;
}

static void on_cq_error(void *arg, struct rnic_cq *cq)
{
	struct end *end = rnic_cq_user(cq);

	(void)arg;
	end->n_cq_error++;
}

static void on_port_event(void *arg, unsigned port, enum ibv_event_type type)
{
	struct end *end = ((struct net *)arg)->told;

	assert_true(end->n_port_event < NET_EVENTS);
	end->event_port[end->n_port_event] = port;
	end->port_event[end->n_port_event++] = type;
}

/* 10.77.0.1 and fd77::1 on the first port of the first end; port p: 10.77.p.1, fd77:p::1. */
static struct rnic_port_config port_config(int i, unsigned p, bool planes)
{
	struct rnic_port_config config = {.mac = {2, 0, 0, 0, (uint8_t)p, (uint8_t)(10 + i)},
		.n_ip = 2,
		.mtu = NET_MTU,
		.name = {'n', 'i', 'c', (char)('0' + p)}};

	config.ip[0] = wire_ip_from4(0x0a4d0001 + (p << 8) + (uint32_t)i);
	assert_int_equal(0, wire_ip_parse(i ? "fd77::2" : "fd77::1", &config.ip[1]));
	config.ip[1].b[3] = (uint8_t)p;
	if (planes) { /* those of the first port on all */
		config.ip[0] = wire_ip_from4(0x0a4d0001 + (uint32_t)i);
		config.ip[1].b[3] = 0;
	}
	return config;
}

void net_open(struct net *net, const struct net_options *options)
{
	net->random = net->random != 0 ? net->random : 88172645463325252u;
	for (int i = 0; i < 2; i++) {
		struct end *end = &net->end[i];
		struct rnic_config config = {
			.n_ports = options->n_ports,
			.seed = 1234 + (uint64_t)i,
			.window = options->window,
			.quantum = options->quantum,
			.max_qp = options->max_qp,
			.congestion = options->congestion,
			.lldp = options->lldp,
			.host = {'h', (char)('0' + i)},
			.events = {net, on_cq_event, on_qp_event, on_srq_event, NULL, on_cq_error,
				on_port_event},
		};

		for (unsigned p = 0; p < RNIC_MAX_PORTS; p++)
			config.port[p] = port_config(i, p, options->planes);
		assert_int_equal(0, rnic_create(&config, &end->rnic));
		assert_int_equal(0, rnic_pd_alloc(end->rnic, &end->pd));
		assert_int_equal(0, rnic_cq_create(end->rnic, options->cqe ? options->cqe : 1024,
					    end, &end->scq));
		assert_int_equal(0, rnic_cq_create(end->rnic, options->cqe ? options->cqe : 1024,
					    end, &end->rcq));
		end->index = i;
		end->buf_len = 1 << 20;
		end->buf = malloc(end->buf_len);
		assert_non_null(end->buf);
		for (size_t j = 0; j < end->buf_len; j++)
			end->buf[j] = (uint8_t)(i ? 0xee : j * 7 + 3 + (j >> 8));
		assert_int_equal(
			0, rnic_mr_reg(end->pd, end->buf, end->buf_len, (uintptr_t)end->buf,
				   options->mr_access ? (int)options->mr_access : NET_ALL_ACCESS,
				   &end->mr));
	}
}

struct rnic_qp *net_make_qp(struct end *end, const struct net_options *options)
{
	uint32_t wr = options->wr ? options->wr : 64;
	struct rnic_qp_init init = {.type = options->type ? options->type : IBV_QPT_RC,
		.srq = options->srq[end->index],
		.pd = end->pd,
		.send_cq = end->scq,
		.recv_cq = end->rcq,
		.cap = {wr, wr, 4, 4, 64},
		.sq_sig_all = !options->sig_none,
		.transport = options->selective ? &rnic_sr : options->transport,
		.user = end};
	struct rnic_qp *qp;

	assert_int_equal(0, rnic_qp_create(end->rnic, &init, &qp));
	assert_true(init.cap.max_send_wr >= wr && init.cap.max_inline_data >= 64);
	return qp;
}

const int net_mask_init = RC_TO_INIT;
const int net_mask_rtr = RC_TO_RTR;
const int net_mask_rts = RC_TO_RTS;

struct ibv_qp_attr net_attr(
	struct net *net, int i, uint32_t peer_qpn, const struct net_options *options)
{
	struct ibv_qp_attr attr = {
		.path_mtu = options->mtu ? options->mtu : IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.rq_psn = options->psn[!i],
		.sq_psn = options->psn[i],
		.qp_access_flags = options->access ? options->access : NET_ALL_ACCESS,
		.port_num = (uint8_t)(options->port + 1),
		.qkey = options->type == IBV_QPT_UD ? NET_QKEY : 0,
		.min_rnr_timer = options->rnr_timer ? options->rnr_timer : 12,
		.timeout = options->timeout ? options->timeout : 14,
		.retry_cnt = options->no_retry ? options->retry : 7,
		.rnr_retry = options->no_retry ? options->rnr_retry : 7,
		.max_rd_atomic = options->no_rd ? 0
				 : options->rd  ? options->rd
						: 1,
		.max_dest_rd_atomic = options->dest_rd ? options->dest_rd : 16,
		.ah_attr = {.is_global = 1,
			.port_num = (uint8_t)(options->port + 1),
			.grh = {.hop_limit = 64}},
	};
	struct wire_ip ip;

	attr.ah_attr.grh.sgid_index = options->link_local ? 0 : options->ip6 ? 2 : 1;
	assert_int_equal(
		0, rnic_gid(net->end[!i].rnic, options->port, attr.ah_attr.grh.sgid_index, &ip));
	memcpy(attr.ah_attr.grh.dgid.raw, ip.b, 16);
	return attr;
}

/* Masks of the transitions to INIT, RTR, RTS. */
static const int *masks_of(enum ibv_qp_type type)
{
	static const int rc[3] = {RC_TO_INIT, RC_TO_RTR, RC_TO_RTS};
	static const int uc[3] = {RC_TO_INIT,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, IBV_QP_SQ_PSN};
	static const int ud[3] = {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN};

	return type == IBV_QPT_UC ? uc : type == IBV_QPT_UD ? ud : rc;
}

void net_to_rts(struct net *net, int i, struct rnic_qp *qp, uint32_t peer_qpn,
	const struct net_options *options)
{
	struct ibv_qp_attr attr = net_attr(net, i, peer_qpn, options);
	const int *mask = masks_of(options->type);
	int err;

	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(0, rnic_qp_modify(qp, &attr, IBV_QP_STATE | mask[0], net->now));
	attr.qp_state = IBV_QPS_RTR;
	while ((err = rnic_qp_modify(qp, &attr, IBV_QP_STATE | mask[1], net->now)) == -EAGAIN)
		net_run(net, net->now + MS);
	assert_int_equal(0, err);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(0, rnic_qp_modify(qp, &attr, IBV_QP_STATE | mask[2], net->now));
}

void net_connect(struct net *net, const struct net_options *options)
{
	net_open(net, options);
	for (int i = 0; i < 2; i++)
		net->end[i].qp = net_make_qp(&net->end[i], options);
	for (int i = 0; i < 2; i++)
		net_to_rts(net, i, net->end[i].qp, rnic_qp_num(net->end[!i].qp), options);
}

void net_close(struct net *net)
{
	net_check_counters(net);
	for (int i = 0; i < 2; i++) {
		struct end *end = &net->end[i];

		if (end->qp != NULL)
			assert_int_equal(0, rnic_qp_destroy(end->qp));
		assert_int_equal(0, rnic_mr_dereg(end->mr));
		assert_int_equal(0, rnic_cq_destroy(end->scq));
		assert_int_equal(0, rnic_cq_destroy(end->rcq));
		assert_int_equal(0, rnic_pd_free(end->pd));
		rnic_destroy(end->rnic);
		free(end->buf);
	}
	while (net->n_flight > 0)
		free(net->flight[--net->n_flight]);
	free(net->flight);
}

uint64_t net_drops(const struct rnic *rnic)
{
	uint64_t sum = 0;

	for (unsigned i = 1; i < RNIC_N_DROPS; i++)
		sum += rnic_drop_count(rnic, i);
	return sum;
}

void net_check_counters(const struct net *net)
{
	for (int i = 0; i < 2; i++) {
		const struct rnic *rnic = net->end[i].rnic;

		assert_int_equal(rnic_count(rnic, RNIC_C_RX_FRAMES),
			rnic_count(rnic, RNIC_C_RX_ACCEPTED) + net_drops(rnic));
	}
}

/* ---- posting ---- */

int end_send(struct end *end, enum ibv_wr_opcode opcode, uint64_t id, size_t offset, uint32_t len,
	uint64_t raddr, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)end->buf + offset, len, rnic_mr_lkey(end->mr)};
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.imm_data = htobe32(0xabcd0000 + (uint32_t)id),
		.wr.rdma = {raddr, rkey}};

	return rnic_post_send(end->qp, &wr);
}

int end_recv(struct end *end, uint64_t id, size_t offset, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)end->buf + offset, len, rnic_mr_lkey(end->mr)};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	return rnic_post_recv(end->qp, &wr);
}

struct ibv_wc end_wc(struct rnic_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(1, rnic_cq_poll(cq, 1, &wc));
	return wc;
}

void end_no_wc(struct rnic_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(0, rnic_cq_poll(cq, 1, &wc));
}
