/* SPDX-License-Identifier: BSD-3-Clause */
/* A device with queue pairs in all states, and steps that bytes choose: packets of any opcode with
 * PSNs around the expected ones, acknowledgements, frames with wrong bits, posts, state changes,
 * skips, time. Whatever comes, frames that leave are right, requests complete once and in order,
 * nothing outside registered memory is touched (the region is its own allocation: build with
 * sanitizers), and every frame is counted as taken or dropped. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/ah.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/rc.h"
#include "lib/rnic/ring.h"
#include "lib/rnic/sr.h"
#include "lib/wire/psn.h"
#include "tests/fuzz/device.h"
#include "tests/rc_steps.h"

enum { LOOP = 5, UC, UD, MEM = 6000, STEP = 8, WR = 8, P = 0xfffffa, MAX_STEPS = 400 };

/* A queue pair of each type in each state. */
static const struct kind {
	enum ibv_qp_type type;
	bool selective;
	enum ibv_qp_state state;
} kinds[] = {
	{IBV_QPT_RC, false, IBV_QPS_RTR},
	{IBV_QPT_RC, false, IBV_QPS_RTS},
	{IBV_QPT_RC, false, IBV_QPS_RTS},
	{IBV_QPT_RC, false, IBV_QPS_RTS},
	{IBV_QPT_RC, false, IBV_QPS_SQD},
	[LOOP] = {IBV_QPT_RC, false, IBV_QPS_RTS}, /* to itself */
	[UC] = {IBV_QPT_UC, false, IBV_QPS_RTS},
	[UD] = {IBV_QPT_UD, false, IBV_QPS_RTS},
	{IBV_QPT_RC, true, IBV_QPS_RTS},
	{IBV_QPT_RC, true, IBV_QPS_RTS},
	{IBV_QPT_RC, true, IBV_QPS_RTR},
	{IBV_QPT_RC, true, IBV_QPS_SQD},
	{IBV_QPT_RC, true, IBV_QPS_ERR},
	{IBV_QPT_RC, false, IBV_QPS_RESET},
	{IBV_QPT_RC, false, IBV_QPS_INIT},
	{IBV_QPT_RC, false, IBV_QPS_ERR},
	{IBV_QPT_UC, false, IBV_QPS_INIT},
	{IBV_QPT_UC, false, IBV_QPS_RTR},
	{IBV_QPT_UC, false, IBV_QPS_SQD},
	{IBV_QPT_UC, false, IBV_QPS_SQE},
	{IBV_QPT_UC, false, IBV_QPS_ERR},
	{IBV_QPT_UD, false, IBV_QPS_INIT},
	{IBV_QPT_UD, false, IBV_QPS_RTR},
	{IBV_QPT_UD, false, IBV_QPS_SQD},
	{IBV_QPT_UD, false, IBV_QPS_SQE},
	{IBV_QPT_UD, false, IBV_QPS_ERR},
};

static struct rnic_qp_stats stats_of(const struct rnic_qp *qp)
{
	struct rnic_qp_stats stats;

	rnic_qp_stats(qp, &stats);
	return stats;
}

/* The PSN of the next request to be posted. */
static uint32_t after_last(const struct rnic_qp *qp)
{
	return qp->init.type == IBV_QPT_RC ? (uint32_t)rc_of(qp)->req.assign & PSN_MASK : 0;
}

enum { N_QP = sizeof(kinds) / sizeof(kinds[0]), WORKERS = 2 };

/* Datagrams are the owner's and each worker's, in turn. */
static unsigned worker_of(unsigned i)
{
	return kinds[i].type == IBV_QPT_UD ? i % (1 + WORKERS) : 0;
}

enum {
	ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC
};

struct world {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_cq *cq[2 + WORKERS]; /* of sends, of receives: the owner's and each worker's */
	struct rnic_qp *qp[N_QP];
	struct rnic_mr *mr;
	struct rnic_ah *ah;
	uint8_t *mem;
	uint64_t now;
	uint64_t posted[2][N_QP], completed[2][N_QP];
	unsigned room; /* ports that take frames */
	uint8_t at;    /* the port that packets come to, and that queue pairs are moved to */
};

static const struct wire_flow to_device = {.dmac = {2, 0, 0, 0, 0, 1},
	.smac = {2, 0, 0, 0, 0, 2},
	.src = {{[10] = 0xff, 0xff, 10, 0, 0, 2}},
	.dst = {{[10] = 0xff, 0xff, 10, 0, 0, 1}},
	.ttl = 64};

static const int masks[] = {
	IBV_QP_STATE,
	RC_TO_INIT,
	RC_TO_RTR,
	RC_TO_RTS,
};

static const int uc_masks[] = {
	IBV_QP_STATE,
	RC_TO_INIT,
	IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	IBV_QP_STATE | IBV_QP_SQ_PSN,
};

static const int ud_masks[] = {
	IBV_QP_STATE,
	IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
	IBV_QP_STATE,
	IBV_QP_STATE | IBV_QP_SQ_PSN,
};

static int mask_of(unsigned i, unsigned to)
{
	return (kinds[i].type == IBV_QPT_UC   ? uc_masks
		: kinds[i].type == IBV_QPT_UD ? ud_masks
					      : masks)[to];
}

static int modify(struct world *w, unsigned i, unsigned state, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = (enum ibv_qp_state)state,
		.path_mtu = i % 2 ? IBV_MTU_256 : IBV_MTU_1024,
		.dest_qp_num = i == LOOP ? rnic_qp_num(w->qp[LOOP]) : 0x99,
		.rq_psn = P,
		.sq_psn = P,
		.qp_access_flags = ALL_ACCESS,
		.max_rd_atomic = 3,
		.max_dest_rd_atomic = 3,
		.port_num = (uint8_t)(w->at + 1),
		.min_rnr_timer = 1,
		.timeout = 1,
		.retry_cnt = (uint8_t)(i % 6 + 1),
		.rnr_retry = (uint8_t)(i % 6 + 2),
		.en_sqd_async_notify = 1,
		.ah_attr = {.is_global = 1, .grh.sgid_index = 1}};
	int err;

	memcpy(attr.ah_attr.grh.dgid.raw, (i == LOOP ? &to_device.dst : &to_device.src)->b, 16);
	err = rnic_qp_modify(w->qp[i], &attr, mask, w->now);
	if (err == 0 && (mask & IBV_QP_STATE) && state == IBV_QPS_RESET) {
		w->completed[0][i] = w->posted[0][i];
		w->completed[1][i] = w->posted[1][i];
	}
	return err;
}

/* ---- steps ---- */

static uint32_t length(const uint8_t *in, uint32_t mtu)
{
	const uint32_t lengths[] = {mtu, mtu, mtu - 1, mtu + 1, 0, 1, in[1], 3 * mtu + in[1]};

	return lengths[in[0] & 7];
}

/* By whom it is for, or else by the owner, who may take anything. */
static void take(struct world *w, const uint8_t *frame, size_t len, bool steered)
{
	const struct rnic_rx_frame f = {.data = frame, .len = (uint32_t)len};
	const unsigned worker = rnic_steer(w->rnic, w->at, frame, len);

	if (worker != 0 && steered)
		fuzz_check(rnic_worker_rx(w->rnic, worker, w->at, &f, 1, w->now), "it may");
	else
		rnic_rx(w->rnic, w->at, frame, len, w->now);
}

/* A packet of any opcode; bit 7 of in[7] spoils a byte behind the ICRC's back. */
static void packet(struct world *w, struct rnic_qp *qp, const uint8_t *in)
{
	static uint8_t payload[4096];
	struct wire_flow flow = to_device;
	uint8_t frame[5000];
	struct wire_hdr hdr = {.opcode = in[2] & 0x40 ? in[2] : in[2] % 24,
		.ackreq = in[7] & 1,
		.se = in[7] & 2,
		.psn = psn_add(stats_of(qp).epsn, (int8_t)in[3] / (in[7] & 4 ? 1 : 60)),
		.dqpn = qp->qpn ^ (in[7] & 0x40 ? in[6] : 0u),
		.rkey = rnic_mr_rkey(w->mr) ^ (in[7] & 8 ? in[6] : 0u),
		.va = 0x10000 + (in[7] & 16 ? (uint64_t)(int8_t)in[6] * 64 : 0),
		.dmalen = length(in + 4, qp->mtu ? qp->mtu : 256)};
	size_t len = hdr.dmalen;
	int n;

	if (qp->ops == &rnic_sr) {
		hdr.pos_offset = (uint32_t)psn_diff(hdr.psn, stats_of(qp).epsn) * qp->mtu +
				 (in[7] & 8 ? in[6] : 0u);
		hdr.pos_recv = sr_of(qp)->recvs + (in[6] & 3);
	}
	if (!(in[2] & 0x40))
		hdr.opcode |= qp->ops->opcodes;
	if (qp->ops == &rnic_sr && (roce_opcode_flags(hdr.opcode) & ROCE_F_WRITE) && !(in[7] & 32))
		hdr.dmalen = qp->mtu * (1 + in[5] % 5u); /* of the whole message */
	if (qp->ops == &rnic_ud && (in[7] & 4)) {
		flow.dst = (struct wire_ip){{[10] = 0xff, 0xff, 239, 0, 0, 1}};
		hdr.dqpn = 0xffffff;
	}
	if (hdr.opcode % 32 >= ROCE_READ_REQUEST && !(in[7] & 32))
		len = 0;
	hdr.compare = in[4];
	hdr.swap_add = in[5];
	if (hdr.opcode % 32 == ROCE_WRITE_FIRST && !(in[7] & 32)) {
		len = qp->mtu;
		hdr.dmalen = (uint32_t)len * 2 + in[5];
	}
	n = wire_build_frame(frame, sizeof(frame), &flow, &hdr, payload, len);
	if (n <= 0)
		return;
	frame[5] ^= w->at; /* its MAC */
	if (in[7] & 0x80)
		frame[(in[5] * 256u + in[6]) % (unsigned)n] ^= in[4];
	take(w, frame, (size_t)(in[7] == 0xff ? in[5] % n : n), in[1] & 1);
}

static void acknowledge(struct world *w, struct rnic_qp *qp, const uint8_t *in)
{
	static uint8_t payload[4096];
	uint8_t frame[5000];
	struct wire_hdr hdr = {.opcode = ROCE_ACK,
		.psn = psn_add(stats_of(qp).sq_una, (int8_t)in[3]),
		.syndrome = in[4],
		.dqpn = qp->qpn};
	size_t len = 0;
	int n;

	/* Or a response to a READ, or to an atomic. */
	if (in[2] & 1) {
		hdr.opcode = ROCE_READ_RESP_FIRST + in[2] / 2 % 6;
		hdr.syndrome = in[2] & 0x80 ? in[4] : ROCE_AETH_NO_CREDITS;
		len = hdr.opcode >= ROCE_ACK ? 0 : length(in + 5, qp->mtu ? qp->mtu : 256);
	}
	if (qp->ops == &rnic_sr) {
		hdr.opcode |= ROCE_SEL;
		if (!(in[2] & 1))
			len = in[5] % 80u;
		for (unsigned i = 0; i < 80; i++)
			payload[i] = (uint8_t)(in[6] * (i + 1) ^ in[7]);
	}
	n = wire_build_frame(frame, sizeof(frame), &to_device, &hdr, payload, len);
	if (n <= 0)
		return;
	frame[5] ^= w->at;
	rnic_rx(w->rnic, w->at, frame, (size_t)n, w->now);
}

static void post(struct world *w, unsigned i, const uint8_t *in, bool send)
{
	struct ibv_sge sge[3] = {{0}};
	struct ibv_recv_wr recv = {.wr_id = w->posted[1][i], .sg_list = sge, .num_sge = in[2] % 4};
	struct ibv_send_wr wr = {.wr_id = w->posted[0][i],
		.sg_list = sge,
		.num_sge = in[2] % 4,
		.opcode = (enum ibv_wr_opcode)(in[3] % 9),
		.send_flags = (in[3] & 0x80 ? IBV_SEND_INLINE : 0u) |
			      (in[3] & 0x40 ? IBV_SEND_FENCE : 0u)};

	for (unsigned j = 0; j < 3; j++) {
		sge[j].addr = in[3] & 0x80 ? (uintptr_t)w->mem : 0x10000u + in[4 + j] * 16u;
		sge[j].length = wr.send_flags & IBV_SEND_INLINE ? in[4 + j] % 64 : in[4 + j] * 9u;
		sge[j].lkey = rnic_mr_lkey(w->mr) ^ (in[7] == j ? 1 : 0);
	}
	wr.wr.rdma.remote_addr = 0x10000 + in[7];
	wr.wr.rdma.rkey = rnic_mr_rkey(w->mr);
	if (kinds[i].type == IBV_QPT_UD) {
		wr.wr.ud.ah = (struct ibv_ah *)w->ah;
		wr.wr.ud.remote_qpn = in[7];
		wr.wr.ud.remote_qkey = in[6];
	}
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.num_sge = 1;
		sge[0].length = 8;
		wr.wr.atomic.remote_addr = 0x10000 + in[7];
		wr.wr.atomic.rkey = rnic_mr_rkey(w->mr);
	}
	if (send)
		w->posted[0][i] += rnic_post_send(w->qp[i], &wr) == 0;
	else
		w->posted[1][i] += rnic_post_recv(w->qp[i], &recv) == 0;
}

static void skip(struct rnic_qp *qp, const uint8_t *in)
{
	uint32_t count = in[4] & 0x80 ? 1u << (in[4] & 31) : in[4];

	if (in[2] & 1)
		rnic_qp_skip(qp, RNIC_SEND, psn_add(after_last(qp), in[3] & 3), count);
	else
		rnic_qp_skip(qp, RNIC_RECV, psn_add(stats_of(qp).epsn, (int8_t)in[3]), count);
}

/* A link comes or goes, a port takes nothing, the other port is meant. */
static void ports(struct world *w, const uint8_t *in)
{
	rnic_port_set(w->rnic, in[1] & 1, in[1] & 2, w->now);
	w->room = in[2] & 3;
	w->at = in[3] & 1;
}

static void step(struct world *w, const uint8_t *in)
{
	unsigned i = in[1] % N_QP;

	if (in[0] >= 240) {
		ports(w, in);
		return;
	}
	switch (in[0] % 10) {
	case 0:
	case 1:
	case 2:
		packet(w, w->qp[i], in);
		break;
	case 3:
	case 4:
		acknowledge(w, w->qp[i], in);
		break;
	case 5:
	case 6:
		post(w, i, in, in[0] % 10 == 5);
		break;
	case 7:
		w->now += in[2] * 1000u + (uint64_t)in[3] * 100000;
		rnic_timer(w->rnic, w->now);
		break;
	case 8:
		modify(w, i, in[2] % 8,
			in[3] & 1 ? (in[4] | in[5] << 8 | in[6] << 16) : mask_of(i, in[4] % 4));
		break;
	default:
		skip(w->qp[i], in);
		break;
	}
}

/* ---- what must hold ---- */

static void check_frames(struct world *w)
{
	struct rnic_frame frame;
	uint8_t bytes[2000];
	struct wire_pkt pkt;

	for (unsigned i = 0; i < 100 && rnic_tx(w->rnic, w->room, &frame, w->now); i++) {
		int n = rnic_frame_flatten(&frame, bytes, sizeof(bytes));

		fuzz_check(w->room >> frame.port & 1, "a frame leaves where there is room");
		fuzz_check(rnic_port_is_up(w->rnic, frame.port), "and where the link is up");
		fuzz_check(n > 0, "a frame fits");
		fuzz_check(wire_parse(bytes, (size_t)n, &pkt) == WIRE_OK, "a frame parses");
		fuzz_check(pkt.kind != WIRE_ROCE || wire_icrc_ok(bytes, &pkt), "an ICRC is right");
	}
}

static void check_completions(struct world *w)
{
	struct ibv_wc wc[16];
	int n;

	for (unsigned c = 0; c < 2 + WORKERS; c++) {
		const unsigned q = c > 0;

		while ((n = rnic_cq_poll(w->cq[c], 16, wc)) > 0) {
			for (int j = 0; j < n; j++) {
				struct rnic_qp *qp = rnic_qp_find(w->rnic, wc[j].qp_num);
				unsigned i;

				fuzz_check(qp != NULL, "a completion has a queue pair");
				i = (unsigned)(uintptr_t)rnic_qp_user(qp);
				fuzz_check(c < 2 || worker_of(i) == c - 1, "in its worker's queue");
				fuzz_check(wc[j].wr_id == w->completed[q][i]++,
					"completions are in order");
				fuzz_check(
					w->completed[q][i] <= w->posted[q][i], "one per request");
			}
		}
		fuzz_check(n == 0, "no overrun");
	}
}

static void check_state(struct world *w)
{
	for (unsigned i = 0; i < N_QP; i++) {
		const struct rc_requester *req = &rc_of(w->qp[i])->req;
		enum ibv_qp_state state = qp_state(w->qp[i]);

		if (kinds[i].type != IBV_QPT_RC)
			continue;
		if (state != IBV_QPS_RTS && state != IBV_QPS_SQD)
			continue;
		fuzz_check(req->una <= req->next && req->next <= req->high, "una <= next <= high");
		fuzz_check(req->high <= req->assign, "high <= assign");
		fuzz_check(req->una_idx == ring_tail(&w->qp[i]->sq), "the tail is the oldest");
	}
	fuzz_device_counts(w->rnic, 2);
}

/* ---- the world ---- */

/* Somewhere to send to, and a group to hear from. */
static void open_datagrams(struct world *w)
{
	static const struct wire_ip group = {{[10] = 0xff, 0xff, 239, 0, 0, 1}};
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = 1};

	memcpy(attr.grh.dgid.raw, to_device.src.b, 16);
	fuzz_check(rnic_ah_create(w->pd, &attr, w->now, &w->ah) == 0, "an address handle");
	fuzz_check(rnic_qp_attach_mcast(w->qp[UD], &group) == 0, "a group");
}

/* Into the state where it begins. */
static void bring(struct world *w, unsigned i)
{
	static const uint8_t bad[STEP] = {5, 0, 1, 2, 9, 0, 0, 0};
	enum ibv_qp_state state = kinds[i].state;
	/* SQE comes of an error, ERR may be told. */
	enum ibv_qp_state most = state > IBV_QPS_RTS ? IBV_QPS_RTS : state;

	for (unsigned to = IBV_QPS_INIT; to <= most; to++)
		fuzz_check(modify(w, i, to, mask_of(i, to)) == 0, "a connection");
	if (state == IBV_QPS_SQD || state == IBV_QPS_ERR)
		fuzz_check(modify(w, i, state, IBV_QP_STATE) == 0, "SQD or ERR");
	if (state == IBV_QPS_SQE) {
		post(w, i, bad, true);
		check_frames(w);
		check_completions(w);
	}
	fuzz_check(qp_state(w->qp[i]) == state, "its state");
}

static void open_world(struct world *w)
{
	struct rnic_config config = {.port[0].mac = {2, 0, 0, 0, 0, 1},
		.port[0].ip = {to_device.dst},
		.port[0].n_ip = 1,
		.port[0].mtu = 1500,
		.n_ports = 2,
		.max_qp = N_QP,
		.n_workers = WORKERS,
		.window = 6};

	memset(w, 0, sizeof(*w));
	w->room = 3;
	config.port[1] = config.port[0];
	config.port[1].mac[5] ^= 1;
	fuzz_check(rnic_create(&config, &w->rnic) == 0, "a device");
	for (unsigned p = 0; p < 2; p++)
		rnic_neigh_add(w->rnic, p, &to_device.src, to_device.smac);
	fuzz_device_open(
		w->rnic, 0x10000, MEM, ALL_ACCESS, 1 << 14, &w->pd, w->cq, &w->mem, &w->mr);
	for (unsigned i = 0; i < WORKERS; i++)
		fuzz_check(rnic_cq_create(w->rnic, 1 << 14, NULL, &w->cq[2 + i]) == 0, "a queue");
	for (unsigned i = 0; i < N_QP; i++) {
		struct rnic_qp_init init = {.type = kinds[i].type,
			.transport = kinds[i].selective ? &rnic_sr : NULL,
			.pd = w->pd,
			.send_cq = w->cq[0],
			.recv_cq = w->cq[1 + worker_of(i)],
			.worker = worker_of(i),
			.cap = {WR, WR, 3, 3, 100},
			.sq_sig_all = true,
			.user = (void *)(uintptr_t)i};

		fuzz_check(rnic_qp_create(w->rnic, &init, &w->qp[i]) == 0, "a queue pair");
	}
	open_datagrams(w);
	for (unsigned i = 0; i < N_QP; i++)
		bring(w, i);
}

static void close_world(struct world *w)
{
	for (unsigned i = 0; i < N_QP; i++)
		rnic_qp_destroy(w->qp[i]);
	rnic_ah_destroy(w->ah);
	fuzz_check(rnic_mr_dereg(w->mr) == 0, "the region goes");
	for (unsigned i = 0; i < 2 + WORKERS; i++)
		fuzz_check(rnic_cq_destroy(w->cq[i]) == 0, "the queues go");
	fuzz_check(rnic_pd_free(w->pd) == 0, "the domain goes");
	rnic_destroy(w->rnic);
	free(w->mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w;

	open_world(&w);
	for (size_t at = 0; at + STEP <= size && at < MAX_STEPS * STEP; at += STEP) {
		step(&w, data + at);
		check_frames(&w);
		check_completions(&w);
		check_state(&w);
	}
	close_world(&w);
	return 0;
}

/* Transfers that work, for mutations to start from. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	static const uint8_t steps[13][4][STEP] = {
		/* a send, its port down, no room at the other, up again */
		{{5, 3, 1, 1, 200, 0, 0, 9}, {255, 0, 1, 0, 0, 0, 0, 0},
			{7, 0, 200, 10, 0, 0, 0, 0}, {255, 2, 3, 1, 0, 0, 0, 0}},
		/* UC: a receive, SEND FIRST, LAST; a send */
		{{6, 6, 1, 0, 200, 0, 0, 9}, {0, 6, 0, 0, 0, 0, 0, 0}, {0, 6, 2, 0, 5, 0, 0, 1},
			{5, 6, 1, 1, 200, 0, 0, 9}},
		/* UD: two receives, a datagram, one to the group */
		{{6, 7, 1, 0, 100, 0, 0, 9}, {6, 7, 1, 0, 100, 0, 0, 9}, {0, 7, 4, 0, 5, 9, 0, 0},
			{0, 7, 4, 0, 5, 9, 0, 4}},
		/* a READ and an atomic to answer, once more, a duplicate */
		{{0, 1, 12, 0, 7, 200, 0, 0}, {0, 1, 20, 0, 0, 5, 0, 0},
			{0, 1, 20, 0xff, 0, 5, 0, 4}, {0, 1, 12, 0xfb, 7, 200, 0, 4}},
		/* a READ and an atomic, answered */
		{{5, 3, 1, 4, 100, 0, 0, 9}, {5, 3, 1, 6, 1, 0, 0, 9}, {3, 3, 1, 0, 0, 0, 0, 0},
			{3, 3, 11, 1, 0, 0, 0, 0}},
		/* receive, SEND FIRST, MIDDLE, LAST */
		{{6, 1, 1, 0, 100, 0, 0, 9}, {0, 1, 0, 0, 0, 0, 0, 0}, {0, 1, 1, 0, 0, 0, 0, 0},
			{0, 1, 2, 0, 2, 0, 0, 1}},
		/* WRITE FIRST, LAST; a gap; a duplicate */
		{{0, 2, 6, 0, 0, 200, 0, 0}, {0, 2, 7, 0, 0, 0, 0, 0}, {0, 2, 4, 5, 6, 3, 0, 5},
			{0, 2, 4, 0xff, 6, 3, 0, 5}},
		/* sends, acknowledged */
		{{5, 3, 1, 1, 200, 0, 0, 9}, {5, 3, 2, 0, 20, 30, 0, 9},
			{3, 3, 0, 0, 0x1f, 0, 0, 0}, {3, 3, 0, 3, 0x1f, 0, 0, 0}},
		/* a send, RNR NAK, its time, sequence NAK */
		{{5, 3, 1, 1, 200, 0, 0, 9}, {3, 3, 0, 0, 0x21, 0, 0, 0},
			{7, 0, 200, 10, 0, 0, 0, 0}, {3, 3, 0, 1, 0x60, 0, 0, 0}},
		/* skips, a packet behind one */
		{{9, 1, 0, 0, 4, 0, 0, 0}, {0, 1, 4, 4, 6, 9, 0, 4}, {9, 1, 1, 0, 9, 0, 0, 0},
			{5, 1, 1, 0, 20, 0, 0, 9}},
		/* selective: a receive, two packets of a SEND, then its first */
		{{6, 9, 1, 0, 200, 0, 0, 9}, {0, 9, 1, 1, 0, 0, 0, 4}, {0, 9, 1, 2, 0, 0, 0, 4},
			{0, 9, 0, 0, 0, 0, 0, 0}},
		/* selective: sends; the first is missing; all are there */
		{{5, 9, 1, 1, 200, 0, 0, 9}, {5, 9, 1, 0, 100, 0, 0, 9},
			{3, 9, 0, 0, 0x60, 8, 5, 0}, {3, 9, 0, 5, 0x1f, 0, 0, 0}},
		/* drained, resumed, an error, forgotten */
		{{8, 1, 4, 0, 0, 0, 0, 0}, {8, 1, 3, 0, 0, 0, 0, 0}, {8, 1, 6, 0, 0, 0, 0, 0},
			{8, 1, 0, 0, 0, 0, 0, 0}},
	};

	if (i >= 13 * 13 || cap < 2 * sizeof(steps[0]))
		return 0;
	memcpy(out, steps[i / 13], sizeof(steps[0]));
	memcpy(out + sizeof(steps[0]), steps[i % 13], sizeof(steps[0]));
	return 2 * sizeof(steps[0]);
}
