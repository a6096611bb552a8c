/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/real_host.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/device.h"
#include "lib/rnic/sr.h"
#include "lib/wire/icrc.h"
#include "tests/model/real_comm.h"
#include "tests/rc_steps.h"

enum { BTH_LEN = 12, HALF = MC_MAX_PSN * MC_MTU, DEPTH = 256, TIMERS_MAX = 64, RNR_TIMER = 12 };
static const uint64_t START = 1000000000;

static void must(int rc, const char *what)
{
	if (rc != 0) {
		fprintf(stderr, "incline-model-conform: %s: %s\n", what, strerror(-rc));
		exit(2);
	}
}

static bool sends(const struct real_host *h, unsigned i)
{
	return h->s->prog.psn[i].senders >> h->rank & 1;
}

static bool receives(const struct real_host *h, unsigned i)
{
	return h->s->prog.psn[i].receivers >> h->rank & 1;
}

static bool is_sr(const struct real_host *h)
{
	return h->s->cfg.flags & INC_F_SR;
}

static void open_qp(struct real_host *h, const struct rnic_config *config)
{
	struct rnic_qp_init init = {
		.type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 1, 1, 0}, .sq_sig_all = true};

	must(rnic_create(config, &h->rnic), "device");
	must(rnic_pd_alloc(h->rnic, &h->pd), "protection domain");
	must(rnic_cq_create(h->rnic, 2 * DEPTH, NULL, &h->scq), "completion queue");
	must(rnic_cq_create(h->rnic, 2 * DEPTH, NULL, &h->rcq), "completion queue");
	h->buf = calloc(2, HALF);
	must(h->buf ? 0 : -ENOMEM, "buffer");
	must(rnic_mr_reg(h->pd, h->buf, 2 * HALF, (uintptr_t)h->buf,
		     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &h->mr),
		"region");
	init.transport = is_sr(h) ? &rnic_sr : NULL;
	init.pd = h->pd;
	init.send_cq = h->scq;
	init.recv_cq = h->rcq;
	must(rnic_qp_create(h->rnic, &init, &h->qp), "queue pair");
}

void real_open(
	struct real_host *h, const struct mc_sys *s, unsigned rank, struct real_controls *controls)
{
	struct rnic_config config = {.n_ports = 1,
		.max_qp = 32,
		.max_cq = 4,
		.max_mr = 32,
		.max_pd = 4,
		.window = s->cfg.in_flight,
		.seed = 1 + rank,
		.congestion = {.no_reaction = true, .no_notification = true}};

	memset(h, 0, sizeof(*h));
	h->s = s;
	h->rank = rank;
	memcpy(config.port[0].mac, s->flow[rank].smac, 6);
	config.port[0].ip[0] = s->flow[rank].src;
	config.port[0].n_ip = 1;
	config.port[0].mtu = 1500;
	if (controls)
		real_comm_open(h, &config, controls);
	else
		open_qp(h, &config);
	must(rnic_neigh_add(h->rnic, 0, &s->flow[rank].dst, s->flow[rank].dmac), "neighbour");
}

/* PSNs that the rank does not send, or receive, are left out (Mode-I has none such, and selective
 * queue pairs send and receive all or none). */
static void skip(struct real_host *h, enum rnic_dir dir, unsigned from, unsigned to)
{
	const struct mc_config *c = &h->s->cfg;

	if (to > from && c->mode != INC_MODE_1 && !is_sr(h))
		must(rnic_qp_skip(h->qp, dir, psn_add(c->start_psn, (int32_t)from), to - from),
			"skip");
}

static unsigned next_posted(struct real_host *h, unsigned i)
{
	unsigned next = i;

	while (next < h->s->prog.n && !sends(h, next))
		next++;
	skip(h, RNIC_SEND, i, next);
	return next;
}

static void skip_received(struct real_host *h)
{
	for (unsigned i = 0, next; i < h->s->prog.n; i = next + 1) {
		for (next = i; next < h->s->prog.n && !receives(h, next);)
			next++;
		skip(h, RNIC_RECV, i, next);
	}
}

static void to_rts(struct real_host *h)
{
	const uint32_t psn = h->s->cfg.start_psn;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = h->s->dqpn[h->rank],
		.rq_psn = psn,
		.sq_psn = psn,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.min_rnr_timer = RNR_TIMER,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.ah_attr = {
			.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64, .sgid_index = 1}}};

	memcpy(a.ah_attr.grh.dgid.raw, h->s->flow[h->rank].dst.b, 16);
	must(rnic_qp_modify(h->qp, &a, IBV_QP_STATE, h->now), "RESET");
	a.qp_state = IBV_QPS_INIT;
	must(rnic_qp_modify(h->qp, &a, RC_TO_INIT, h->now), "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(rnic_qp_modify(h->qp, &a, RC_TO_RTR, h->now), "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(rnic_qp_modify(h->qp, &a, RC_TO_RTS, h->now), "RTS");
}

static void post_receive(struct real_host *h, unsigned at)
{
	struct ibv_sge sge = {
		(uintptr_t)h->buf + HALF + at * MC_MTU, h->s->cfg.m * MC_MTU, rnic_mr_lkey(h->mr)};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	must(rnic_post_recv(h->qp, &wr), "receive");
}

/* What is behind a missing message needs receives as well. */
static void post_receives(struct real_host *h)
{
	for (unsigned i = 0; i < h->s->prog.n; i++)
		if (receives(h, i) && h->s->prog.psn[i].first)
			post_receive(h, i);
}

void real_reset(struct real_host *h)
{
	h->now = START;
	if (h->comm) {
		real_comm_reset(h);
		return;
	}
	to_rts(h);
	h->sent = h->taken = 0;
	h->next_in = 0;
	h->posted = next_posted(h, 0);
	skip_received(h);
	if (is_sr(h))
		post_receives(h);
}

/* ---- events ---- */

/* The message that begins at PSN index posted. */
static void post_message(struct real_host *h)
{
	const struct mc_program *p = &h->s->prog;
	const unsigned first = h->posted;
	struct ibv_sge sge = {(uintptr_t)h->buf + first * MC_MTU, 0, rnic_mr_lkey(h->mr)};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	unsigned i = first;

	for (;; i++) {
		sge.length +=
			mc_payload_sent(&h->s->cfg, p, h->rank, false, i, h->buf + i * MC_MTU);
		if (p->psn[i].last)
			break;
	}
	if (mc_has_imm(&h->s->cfg, &p->psn[i])) {
		const bool write = roce_opcode_flags(p->psn[i].opcode) & ROCE_F_WRITE;

		wr.opcode = write ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM;
		wr.imm_data = htobe32(mc_imm(&h->s->cfg, p, first));
	}
	must(rnic_post_send(h->qp, &wr), "send");
	h->posted = next_posted(h, i + 1);
}

static unsigned next_received(const struct real_host *h)
{
	unsigned i = h->next_in;

	while (i < h->s->prog.n && !receives(h, i))
		i++;
	return i;
}

/* Where the model has its messages, in this buffer. */
static void put_reth(const struct real_host *h, uint8_t *reth, uint64_t va)
{
	const uint64_t to = htobe64((uintptr_t)h->buf + HALF + (va - MC_WRITE_VA));
	const uint32_t key = htobe32(rnic_mr_rkey(h->mr));

	memcpy(reth, &to, sizeof(to));
	memcpy(reth + sizeof(to), &key, sizeof(key));
}

/* The frame as it is for this queue pair, whose number the device chose. */
static const char *receive(struct real_host *h, uint32_t id)
{
	uint8_t bytes[MC_FRAME];
	const uint8_t *from;
	struct mc_sys *s = (struct mc_sys *)h->s;
	const struct wire_pkt *pkt = mc_frame_pkt(s, id, &from);
	const uint32_t qpn = rnic_qp_num(h->qp);
	uint8_t *bth = bytes + pkt->l4_off + 8;
	const char *why;

	memcpy(bytes, from, pkt->end);
	why = h->comm ? real_comm_in(h, pkt, bytes) : NULL;
	bth[5] = (uint8_t)(qpn >> 16);
	bth[6] = (uint8_t)(qpn >> 8);
	bth[7] = (uint8_t)qpn;
	if (pkt->flags & ROCE_F_WRITE && pkt->flags & ROCE_F_FIRST)
		put_reth(h, bth + BTH_LEN, pkt->va);
	icrc_store(bytes + pkt->end - 4, wire_icrc(bytes, pkt));
	rnic_rx(h->rnic, 0, bytes, pkt->end, h->now);
	return why;
}

static uint64_t fired(const struct real_host *h)
{
	struct rnic_qp_stats stats;

	rnic_qp_stats(h->qp, &stats);
	return stats.timeouts + (is_sr(h) ? sr_of(h->qp)->n_probes : 0);
}

/* Until a retransmission timer fires, of SR also one that only probes, or a wait for a receive
 * ends. */
static void time_out(struct real_host *h)
{
	const bool waits = rc_of(h->qp)->req.rnr_wait;
	const uint64_t before = fired(h);

	for (unsigned i = 0; i < TIMERS_MAX; i++) {
		const uint64_t at = rnic_deadline(h->rnic);

		if (at == UINT64_MAX)
			return;
		h->now = at > h->now ? at : h->now;
		rnic_timer(h->rnic, h->now);
		if (fired(h) != before || rc_of(h->qp)->req.rnr_wait != waits)
			return;
	}
}

static bool pull(struct real_host *h, struct real_out *out)
{
	struct rnic_frame frame;
	struct real_frame *f = &out->frame[out->n];
	int n;

	if (out->n == MC_MAX_EMIT || !rnic_tx(h->rnic, 1, &frame, h->now))
		return false;
	n = rnic_frame_flatten(&frame, f->bytes, sizeof(f->bytes));
	if (n <= 0 || wire_parse(f->bytes, (size_t)n, &f->pkt) != WIRE_OK ||
		!wire_icrc_ok(f->bytes, &f->pkt))
		out->why = "a frame that is none";
	else if (h->comm && out->why == NULL)
		out->why = real_comm_out(h, &f->pkt, f->bytes);
	out->n++;
	return true;
}

/* ---- completions ---- */

static const char *check_message(struct real_host *h, const struct ibv_wc *wc)
{
	const struct mc_program *p = &h->s->prog;
	unsigned i = next_received(h), at = HALF + i * MC_MTU, len = 0;
	const struct mc_psn *last = &p->psn[p->msg_last[p->psn[i].msg]];
	uint8_t due[MC_MTU];

	if (roce_opcode_flags(last->opcode) & ROCE_F_WRITE)
		at = HALF + (unsigned)(mc_write_va(&h->s->cfg, p, i) - MC_WRITE_VA);
	if (mc_has_imm(&h->s->cfg, last) != !!(wc->wc_flags & IBV_WC_WITH_IMM) ||
		(wc->wc_flags & IBV_WC_WITH_IMM &&
			be32toh(wc->imm_data) != mc_imm(&h->s->cfg, p, i)))
		return "a message with another immediate";
	for (;; i++) {
		const unsigned n = mc_payload_due(&h->s->cfg, p, h->rank, false, i, due);

		if (memcmp(h->buf + at + len, due, n) != 0)
			return "a message with other contents";
		len += n;
		if (p->psn[i].last)
			break;
	}
	h->next_in = i + 1;
	h->taken++;
	return wc->byte_len == len ? NULL : "a message of another length";
}

static void poll(struct real_host *h, struct real_out *out)
{
	struct ibv_wc wc;

	while (rnic_cq_poll(h->scq, 1, &wc) == 1)
		h->sent += wc.status == IBV_WC_SUCCESS;
	while (rnic_cq_poll(h->rcq, 1, &wc) == 1)
		if (wc.status == IBV_WC_SUCCESS && out->why == NULL)
			out->why = check_message(h, &wc);
}

void real_step(
	struct real_host *h, enum mc_event ev, uint32_t frame, bool post, struct real_out *out)
{
	out->n = 0;
	out->why = NULL;
	switch (ev) {
	case MC_EV_PACKET:
		if (post && !h->comm && !is_sr(h))
			post_receive(h, next_received(h));
		out->why = receive(h, frame);
		break;
	case MC_EV_HOLD:
		out->why = receive(h, frame);
		break;
	case MC_EV_TIMEOUT:
		time_out(h);
		break;
	case MC_EV_ANSWER:
		pull(h, out);
		break;
	case MC_EV_SEND:
		if (post && !h->comm)
			post_message(h);
		pull(h, out);
		break;
	default:
		break;
	}
	/* Acknowledgements at once, requests when they are asked for. */
	while (!h->s->cfg.coalesce && h->rnic->has_controls && pull(h, out))
		;
	if (h->comm)
		real_comm_poll(h, out);
	else
		poll(h, out);
}

bool real_may_time_out(const struct real_host *h)
{
	struct rnic_qp_stats stats;

	rnic_qp_stats(h->qp, &stats);
	return stats.retries > 1 && rc_of(h->qp)->req.retry_at != UINT64_MAX;
}

bool real_sends(struct real_host *h)
{
	struct rnic_frame frame;

	return rnic_tx(h->rnic, 1, &frame, h->now);
}

bool real_done(const struct real_host *h)
{
	const struct mc_program *p = &h->s->prog;
	unsigned out = 0, in = 0;

	if (h->comm)
		return real_comm_done(h);
	for (unsigned i = 0; i < p->n; i++) {
		out += p->psn[i].last && sends(h, i);
		in += p->psn[i].last && receives(h, i);
	}
	return h->sent == out && h->taken == in;
}
