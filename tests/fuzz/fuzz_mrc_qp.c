/* SPDX-License-Identifier: BSD-3-Clause */
/* A device with queue pairs of MRC in UDP, STEV and SRv6, and steps that bytes choose: packets of
 * every kind with fields around the expected ones, in an outer header or not, cut, spoiled or
 * whole; posts, receives, ports, controllers, time. Whatever comes: frames that leave are right,
 * requests complete once and in order, immediates never without a receive request, nothing outside
 * registered memory is touched (the region is its own allocation), and every frame is counted. */
#include <errno.h>
#include <string.h>

#include "lib/mrc/transport_priv.h"
#include "lib/rnic/qp.h"
#include "lib/wire/bytes.h"
#include "lib/wire/psn.h"
#include "tests/fuzz/device.h"

enum {
	MEM = 4096,
	STEP = 8,
	WR = 8,
	P = 0xfffff8,
	MAX_STEPS = 400,
	N_QP = 4,
	PATHS = 8,
	PORTS = 2
};
enum { VA = 0x10000, PMTU = 256, PEER_QPN = 0x99 };
enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static const struct wire_ip own4 = {{[10] = 0xff, 0xff, 10, 0, 0, 1}},
			    peer4 = {{[10] = 0xff, 0xff, 10, 0, 0, 2}},
			    own6 = {{0xfd, 0x77, [15] = 1}}, peer6 = {{0xfd, 0x77, [15] = 2}},
			    sid = {{0xfc, 0xbb, 0xbb, 0, 0x58, 0x7f}};
static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 2};

/* The last one only receives, and is of STEV as the second is. */
static const enum rnic_mrc_format format_of[N_QP] = {
	RNIC_MRC_UDP, RNIC_MRC_STEV, RNIC_MRC_SRV6, RNIC_MRC_STEV};

struct world {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_cq *cq[2];
	struct rnic_mr *mr;
	struct rnic_qp *qp[N_QP];
	struct rnic_mrc_paths paths[N_QP];
	uint8_t *mem;
	uint64_t now, posted[2][N_QP], completed[2][N_QP];
};

/* ---- packets ---- */

static uint32_t near(uint32_t psn, uint8_t by)
{
	return psn_add(psn, (int8_t)by);
}

static void sack(const struct mrc_conn *c, const uint8_t *in, struct mrc_sack *s)
{
	*s = (struct mrc_sack){.dqpn = c->qp->qpn,
		.mark = in[3] & 3,
		.rtx = in[3] & 4,
		.probe = (in[3] & 0x18) == 0x18,
		.probe_id = in[4],
		.trigger_psn = near(c->req.snd.next, in[4]),
		.cack_psn = near(c->req.snd.next, in[5]),
		.entropy = c->paths != NULL ? c->paths->path[in[6] % PATHS].ev : 0,
		.mpr = in[3] & 0x40 ? in[6] : 0,
		.bitmap = get_be64(in) * 0x9e3779b97f4a7c15u,
		.ts = (uint16_t)(in[6] << 8),
		.cwnd_penalty = in[4] & 0x7f,
		.restore_cwnd = in[5] & 1,
		.rcvd_units = in[7]};
	s->base_psn = near(s->cack_psn, in[3] & 0x20 ? in[6] : 1);
}

static void data(
	const struct world *w, const struct mrc_conn *c, const uint8_t *in, struct mrc_data *d)
{
	static const uint16_t lengths[] = {PMTU, PMTU, 0, 1, PMTU - 1, PMTU + 1, 7, 64};

	*d = (struct mrc_data){.place = in[3] & 3,
		.has_imm = (in[3] & 2) && (in[3] & 4),
		.se = in[3] & 8,
		.ackreq = in[3] & 16,
		.rtx = in[3] & 32,
		.has_ts = in[3] & 64,
		.ts = in[5],
		.dqpn = c->qp->qpn,
		.psn = near(c->rsp.rcv.cack, in[4]),
		.rkey = rnic_mr_rkey(w->mr) ^ (in[6] == 77 ? 0x100 : 0u),
		.dmalen = in[6] & 1 ? PMTU : (uint32_t)in[6] << 5,
		.va = VA + (uint64_t)in[5] * 20,
		.imm = in[6],
		.pay_len = lengths[in[7] & 7]};
}

static void fields(
	const struct world *w, const struct mrc_conn *c, const uint8_t *in, struct mrc_pkt *m)
{
	static const uint8_t reasons[] = {1, 2, 6, 7, 0x0a, 0x0b, 0x19, 0x55};
	static const uint8_t syndromes[] = {0x1f, 0x1f, 0, 0x60, 0x61, 0x62, 0x63, 0x65};

	*m = (struct mrc_pkt){.kind = in[2] % (MRC_KIND_PROBE + 1), .depth = MRC_DEPTH_ALL};
	switch (m->kind) {
	case MRC_KIND_DATA:
		data(w, c, in, &m->data);
		break;
	case MRC_KIND_SACK:
		sack(c, in, &m->sack);
		break;
	case MRC_KIND_ACK:
		m->ack = (struct mrc_ack){.dqpn = c->qp->qpn,
			.psn = near(c->req.snd.next, in[4]),
			.syndrome = syndromes[in[3] & 7]};
		break;
	case MRC_KIND_NACK:
		m->nack = (struct mrc_nack){.dqpn = c->qp->qpn,
			.psn = near(c->req.snd.next, in[4]),
			.reason = reasons[in[3] & 7],
			.entropy = c->paths != NULL ? c->paths->path[in[6] % PATHS].ev : 0};
		break;
	case MRC_KIND_PROBE:
		m->probe = (struct mrc_probe){.dqpn = c->qp->qpn, .id = in[4], .ts = in[5]};
		break;
	default:
		m->endpoint = (struct mrc_endpoint){
			.id = get_be16(in + 4), .op = in[3] & 3, .port_mask = in[6], .ts = in[7]};
		break;
	}
}

/* In its outer header, if the queue pair's format has one; then cut or spoiled, perhaps. */
static size_t make(const struct world *w, unsigned i, const uint8_t *in, uint8_t *out, size_t cap)
{
	static const uint8_t payload[PMTU + 1], dscps[4] = {4, 46, 12, 16};
	const bool v4 = format_of[i] == RNIC_MRC_UDP;
	struct mrc_flow flow = {.src = v4 ? peer4 : peer6,
		.dst = v4 ? own4 : own6,
		.tos = (uint8_t)(dscps[in[7] >> 6] << 2 | (in[7] >> 4 & 3)),
		.ttl = 64,
		.udp_port = 4791,
		.ev = w->paths[i].path[in[5] % PATHS].ev};
	const size_t outer = format_of[i] == RNIC_MRC_SRV6 ? 40 : 0;
	uint8_t *ip = out + ETH_HDR_LEN;
	struct mrc_pkt m;
	int n;

	fields(w, conn_of(w->qp[i]), in, &m);
	rnic_mac(w->rnic, 0, out);
	memcpy(out + 6, peer_mac, 6);
	put_be16(out + 12, v4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
	n = mrc_build(ip + outer, cap - ETH_HDR_LEN - outer, &mrc_codec_ocp_r1, &flow, &m, payload);
	if (n < 0)
		return 0; /* a field that does not fit its place */
	if (outer) {
		memcpy(ip, ip + outer, 40);
		put_be16(ip + 4, (uint16_t)n);
		ip[6] = 41;
		memcpy(ip + 24, sid.b, 16);
	}
	return ETH_HDR_LEN + outer + (size_t)n;
}

static void arrive(struct world *w, const uint8_t *in, bool harm)
{
	const unsigned i = in[1] % N_QP;
	uint8_t *frame = malloc(1024);
	size_t len = make(w, i, in, frame, 1024);
	uint8_t *exact;

	if (len > 0 && harm && (in[0] & 0x40))
		frame[(in[0] ^ in[6] ^ in[7]) % len] ^= (uint8_t)(1 << (in[5] & 7));
	else if (len > 0 && harm)
		len = len * in[6] / 256;
	exact = malloc(len + 1);
	memcpy(exact, frame, len);
	if (len > 0)
		rnic_rx(w->rnic, 0, exact, len, w->now);
	free(exact);
	free(frame);
}

/* ---- steps ---- */

static void post(struct world *w, unsigned i, const uint8_t *in)
{
	struct ibv_sge sge = {VA + in[3], (uint32_t)in[4] * (in[2] & 1 ? 9 : 1),
		rnic_mr_lkey(w->mr) ^ (in[5] == 99 ? 0x100 : 0u)};
	struct ibv_send_wr wr = {.wr_id = w->posted[0][i] << 8 | i,
		.sg_list = &sge,
		.num_sge = in[4] ? 1 : 0,
		.opcode = in[2] & 2 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.send_flags = in[2] & 4 ? IBV_SEND_SOLICITED : 0,
		.wr.rdma = {in[6], in[7]}};

	w->posted[0][i] += rnic_post_send(w->qp[i], &wr) == 0;
}

static void receive(struct world *w, unsigned i)
{
	struct ibv_recv_wr wr = {.wr_id = w->posted[1][i] << 8 | i};

	w->posted[1][i] += rnic_post_recv(w->qp[i], &wr) == 0;
}

static void control(struct world *w, const uint8_t *in)
{
	struct rnic_mrc_request r = {.src = own6,
		.dst = peer6,
		.op = in[2] & 1,
		.format = RNIC_MRC_STEV,
		.path = w->paths[1].path[in[3] % PATHS],
		.cookie = in[4] & 3};

	switch (in[2] >> 1 & 3) {
	case 0:
		rnic_mrc_ports(w->rnic, in[3], w->now);
		break;
	case 1:
		rnic_mrc_ev_set(w->qp[in[1] % N_QP], in[3] % PATHS,
			in[4] & 1 ? MRC_EV_DENIED : MRC_EV_GOOD);
		break;
	case 2:
		rnic_mrc_ask(w->rnic, &r, w->now);
		break;
	default:
		rnic_mrc_forget(w->rnic, r.cookie);
		break;
	}
}

static int modify(struct world *w, unsigned i, enum ibv_qp_state to)
{
	static const int masks[] = {IBV_QP_STATE, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		IBV_QP_STATE | IBV_QP_SQ_PSN};
	struct ibv_qp_attr attr = {.qp_state = to,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = PEER_QPN,
		.rq_psn = P,
		.sq_psn = P,
		.qp_access_flags = ACCESS,
		.ah_attr = {
			.is_global = 1, .grh.sgid_index = format_of[i] == RNIC_MRC_UDP ? 1 : 2}};

	memcpy(attr.ah_attr.grh.dgid.raw, (format_of[i] == RNIC_MRC_UDP ? &peer4 : &peer6)->b, 16);
	return rnic_qp_modify(
		w->qp[i], &attr, to == IBV_QPS_ERR ? IBV_QP_STATE : masks[to], w->now);
}

/* Into the state where it begins. */
static void bring(struct world *w, unsigned i)
{
	struct rnic_mrc_attr attr = {.paths = &w->paths[i],
		.mpr = 1,
		.mpr_dest = 1,
		.max_wimm = 4,
		.max_wimm_dest = 2,
		.timeout = 4,
		.linear_cnt = 1,
		.exp_cnt = 1,
		.cc.none = i == 1,
		.caps = i == 2 ? RNIC_MRC_DYNAMIC_MPR | RNIC_MRC_SERVICE_TIME : 0};
	const enum ibv_qp_state most = i == N_QP - 1 ? IBV_QPS_RTR : IBV_QPS_RTS;

	fuzz_check(rnic_mrc_set(w->qp[i], &attr, 0x1ff) == 0, "attributes");
	for (enum ibv_qp_state to = IBV_QPS_INIT; to <= most; to++)
		fuzz_check(modify(w, i, to) == 0, "a connection");
}

static void again(struct world *w, unsigned i)
{
	fuzz_check(modify(w, i, IBV_QPS_RESET) == 0, "RESET");
	for (unsigned q = 0; q < 2; q++)
		w->completed[q][i] = w->posted[q][i];
	bring(w, i);
}

static void step(struct world *w, const uint8_t *in)
{
	const unsigned i = in[1] % N_QP;

	switch (in[0] & 0x0f) {
	case 0:
		arrive(w, in, true);
		break;
	case 1:
		receive(w, i);
		break;
	case 2:
	case 3:
		post(w, i, in);
		break;
	case 4:
		w->now += get_be32(in + 2) % 5000000;
		rnic_timer(w->rnic, w->now);
		break;
	case 5:
		control(w, in);
		break;
	case 6:
		if (in[2] % 8 == 0)
			again(w, i);
		else if (in[2] % 8 == 1)
			modify(w, i, IBV_QPS_ERR);
		break;
	default:
		arrive(w, in, false);
		break;
	}
}

/* ---- what must hold ---- */

/* All that leaves is MRC that a peer can read, with the right ICRC. */
static void check_frame(const struct rnic_frame *frame)
{
	uint8_t bytes[1024];
	const int len = rnic_frame_flatten(frame, bytes, sizeof(bytes));
	struct wire_pkt pkt;
	struct mrc_pkt m;
	size_t l3 = ETH_HDR_LEN, bth;

	fuzz_check(len > 0, "a frame has its length");
	if (get_be16(bytes + 12) == ETH_TYPE_IP6 && bytes[ETH_HDR_LEN + 6] == 41)
		l3 += 40;
	else if (get_be16(bytes + 12) == ETH_TYPE_IP6 && bytes[ETH_HDR_LEN + 6] == 43)
		l3 += 40 + 8 + 16;
	fuzz_check(wire_parse_ip(bytes, (size_t)len, l3, &pkt) == WIRE_BTH_OPCODE &&
			   wire_parse_bth(bytes, &pkt) == WIRE_OK && wire_icrc_ok(bytes, &pkt),
		"a frame that leaves is whole");
	bth = pkt.l4_off + sizeof(struct udp_hdr);
	fuzz_check(mrc_codec_ocp_r1.decode(bytes + bth, pkt.end - bth, false, &m) == MRC_OK,
		"a frame that leaves is MRC");
}

static void check_frames(struct world *w)
{
	struct rnic_frame frame;

	for (unsigned n = 0; rnic_tx(w->rnic, RNIC_ALL_PORTS, &frame, w->now); n++) {
		fuzz_check(n < 4000, "sending ends");
		check_frame(&frame);
	}
}

static void check_completions(struct world *w)
{
	struct ibv_wc wc;

	for (unsigned q = 0; q < 2; q++) {
		while (rnic_cq_poll(w->cq[q], 1, &wc) == 1) {
			const unsigned i = wc.wr_id & 0xff;

			fuzz_check(wc.wr_id >> 8 == w->completed[q][i]++,
				"completions come once and in order");
			fuzz_check(w->completed[q][i] <= w->posted[q][i], "of what was posted");
		}
	}
}

static void check_state(const struct world *w)
{
	for (unsigned i = 0; i < N_QP; i++) {
		const struct mrc_conn *c = conn_of(w->qp[i]);

		if (!c->sends)
			continue;
		fuzz_check(psn_le(c->req.snd.acked, c->req.snd.cack) ||
				   c->req.snd.acked == c->req.snd.cack,
			"what is acknowledged has arrived");
		fuzz_check(psn_lt(c->req.snd.cack, c->req.snd.next), "cack < next");
		fuzz_check(c->evs.n_active <= PATHS, "active paths are of the set");
	}
	fuzz_device_counts(w->rnic, 1);
}

/* ---- the world ---- */

static void set_paths(struct rnic_mrc_paths *paths, enum rnic_mrc_format format)
{
	paths->format = format;
	paths->n = PATHS;
	paths->max_active = PATHS / 2;
	for (unsigned i = 0; i < PATHS; i++) {
		struct rnic_mrc_path *path = &paths->path[i];

		*path = (struct rnic_mrc_path){.ev = 0x8000 + i, .port = (uint8_t)(i % PORTS)};
		if (format != RNIC_MRC_SRV6)
			continue;
		path->n_segments = i == 0 ? 2 : 1;
		path->segment[0] = path->segment[1] = sid;
	}
}

static void open_world(struct world *w)
{
	struct rnic_config config = {
		.port[0] = {.mac = {2, 0, 0, 0, 0, 1}, .ip = {own4, own6}, .n_ip = 2, .mtu = 600},
		.max_qp = N_QP};
	struct mrc_settings set = mrc_settings_default();
	const struct rnic_mrc_config mrc = {.n_ports = PORTS, .sid = {sid}, .settings = &set};

	set.base_rtt_us = 10;
	memset(w, 0, sizeof(*w));
	fuzz_check(rnic_create(&config, &w->rnic) == 0, "a device");
	fuzz_check(rnic_mrc_open(w->rnic, &mrc) == 0, "MRC");
	rnic_neigh_add(w->rnic, 0, &peer4, peer_mac);
	rnic_neigh_add(w->rnic, 0, &peer6, peer_mac);
	fuzz_device_open(w->rnic, VA, MEM, ACCESS, 1 << 12, &w->pd, w->cq, &w->mem, &w->mr);
	for (unsigned i = 0; i < N_QP; i++) {
		struct rnic_qp_init init = {.type = IBV_QPT_RC,
			.transport = &rnic_mrc,
			.pd = w->pd,
			.send_cq = w->cq[0],
			.recv_cq = w->cq[1],
			.cap = {WR, WR, 2, 2, 0},
			.sq_sig_all = true};

		set_paths(&w->paths[i], format_of[i]);
		fuzz_check(rnic_qp_create(w->rnic, &init, &w->qp[i]) == 0, "a queue pair");
		bring(w, i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;

	open_world(&w);
	for (size_t at = 0; at + STEP <= size && at < MAX_STEPS * STEP; at += STEP) {
		step(&w, data + at);
		check_frames(&w);
		check_completions(&w);
		check_state(&w);
	}
	rnic_destroy(w.rnic);
	free(w.mem);
	return 0;
}

/* What works, for mutations to start from: a message that arrives in two orders with its receive
 * request; writes that are acknowledged, refused, cut; ports and questions. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	static const uint8_t steps[6][4][STEP] = {
		{{1, 0}, {7, 0, 0, 1, 1, 0, 1, 0}, {7, 0, 0, 6, 1, 9, 1, 3},
			{4, 0, 0, 1, 0, 0, 0, 0}},
		{{1, 1}, {7, 1, 0, 6, 2, 9, 1, 3}, {7, 1, 0, 1, 1, 0, 1, 0},
			{4, 0, 0, 0, 99, 0, 0, 0}},
		{{2, 2, 0, 0, 200, 0, 0, 0}, {7, 2, 4, 0, 0xff, 0xff, 0, 9},
			{7, 2, 1, 0, 0xff, 0, 0, 0}, {2, 2, 3, 0, 90, 0, 0, 0}},
		{{2, 0, 3, 0, 200, 0, 0, 0}, {7, 0, 5, 0, 0xfe, 0, 0, 0x80},
			{7, 0, 0, 0, 1, 0, 1, 0x80}, {7, 0, 1, 5, 0xff, 0, 0, 0}},
		{{5, 0, 0, 1, 0, 0, 0, 0}, {7, 1, 2, 0, 0, 2, 2, 0}, {5, 1, 5, 2, 0, 0, 0, 0},
			{7, 1, 3, 0, 0, 3, 0, 0}},
		{{2, 1, 1, 0, 250, 0, 0, 0}, {4, 0, 0, 8, 0, 0, 0, 0}, {7, 1, 6, 0, 7, 7, 7, 0x30},
			{6, 1, 0, 0, 0, 0, 0, 0}},
	};

	if (i >= 36 || cap < 2 * sizeof(steps[0]))
		return 0;
	memcpy(out, steps[i / 6], sizeof(steps[0]));
	memcpy(out + sizeof(steps[0]), steps[i % 6], sizeof(steps[0]));
	return 2 * sizeof(steps[0]);
}
