/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/uc_mcast.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/place/decide.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/unreliable.h"
#include "lib/rnic/worker.h"
#include "lib/rnic/wqe.h"

enum { WRITE_IMM = ROCE_UC | ROCE_WRITE_ONLY_IMM };

struct uc_mcast {
	struct unreliable un;
	struct rnic_mcast_window window;  /* open if there are writers */
	struct rnic_mcast_writer *writer; /* window.writer; NULL: it is closed */
	unsigned last;                    /* who wrote last, most often also next */
	uint8_t *memory;                  /* of the window, as translated at mr_changes */
	uint64_t mr_changes;
};

static struct uc_mcast *of(const struct rnic_qp *qp)
{
	return transport_state(qp);
}

/* ---- sending ---- */

static bool uc_mcast_tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	const struct send_wqe *wqe = unreliable_next(qp);
	struct wire_hdr hdr = {
		.opcode = WRITE_IMM, .mig = true, .dqpn = MULTICAST_QPN, .psn = of(qp)->un.psn};

	(void)ports, (void)now;
	if (wqe == NULL)
		return false;
	if (gather_payload(qp->init.pd, wqe, 0, wqe->len, frame) < 0) {
		unreliable_refuse(qp);
		return false;
	}
	hdr.se = wqe->solicited;
	hdr.imm = wqe->imm;
	hdr.va = wqe->raddr;
	hdr.rkey = wqe->rkey;
	hdr.dmalen = wqe->len;
	frame_finish(qp, frame, &hdr, wqe->len);
	qp->rnic->copy_back = mcast_other_member(qp, &qp->flow.dst);
	unreliable_sent(qp, wqe, wqe->len);
	return true;
}

static enum tx_control uc_mcast_tx_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	(void)qp, (void)ports, (void)frame, (void)now;
	return CONTROL_NONE;
}

static void uc_mcast_timer(struct rnic_qp *qp, uint64_t now)
{
	(void)qp, (void)now;
}

/* ---- receiving ---- */

static bool is_in(const struct rnic_mcast_writer *w, uint64_t va)
{
	return va >= w->va && va - w->va < w->len;
}

/* Whose part the packet is for; if of nobody, *known: its source has other parts. */
static const struct rnic_mcast_writer *find_writer(
	struct uc_mcast *uc, const struct wire_pkt *pkt, bool *known)
{
	const unsigned n = uc->window.n_writers;

	*known = false;
	for (unsigned k = 0, i = uc->last; k < n; k++, i = i + 1 == n ? 0 : i + 1) {
		if (!wire_ip_eq(&uc->writer[i].ip, &pkt->src))
			continue;
		*known = true;
		if (is_in(&uc->writer[i], pkt->va)) {
			uc->last = i;
			return &uc->writer[i];
		}
	}
	return NULL;
}

/* A whole packet of the part, and the immediate data is its number. */
static unsigned check_packet(const struct rnic_qp *qp, const struct rnic_mcast_writer *w,
	uint32_t mask, const struct wire_pkt *pkt)
{
	const uint64_t offset = pkt->va - w->va, rest = w->len - offset;
	const uint32_t len = rest < qp->mtu ? (uint32_t)rest : qp->mtu;
	const uint32_t index = (uint32_t)(offset / qp->mtu);

	if (pkt->pay_len != len || pkt->dmalen != len)
		return RNIC_DROP_LENGTH;
	if (offset % qp->mtu != 0 || pkt->imm != ((w->first & ~mask) | ((w->first + index) & mask)))
		return RNIC_DROP_ACCESS;
	return 0;
}

/* Regions may have gone since the last packet. */
static uint8_t *window_memory(struct rnic_qp *qp)
{
	struct uc_mcast *uc = of(qp);

	if (uc->memory == NULL || uc->mr_changes != qp->rnic->mr_changes) {
		uc->memory = mr_translate(qp->init.pd, uc->window.lkey, uc->window.addr,
			uc->window.len, IBV_ACCESS_LOCAL_WRITE);
		uc->mr_changes = qp->rnic->mr_changes;
	}
	return uc->memory;
}

static unsigned check(struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	struct uc_mcast *uc = of(qp);
	const struct rnic_mcast_writer *w;
	unsigned drop;
	bool known;

	if (pkt->opcode != WRITE_IMM)
		return RNIC_DROP_UNSUPPORTED;
	if (uc->writer == NULL || pkt->rkey != uc->window.key ||
		!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
		return RNIC_DROP_ACCESS;
	w = find_writer(uc, pkt, &known);
	if (w == NULL)
		return known ? RNIC_DROP_ACCESS : RNIC_DROP_SOURCE;
	drop = check_packet(qp, w, uc->window.number_mask, pkt);
	if (drop != 0)
		return drop;
	return window_memory(qp) != NULL ? 0 : RNIC_DROP_ACCESS;
}

static unsigned uc_mcast_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	struct place_flow flow = {.unmatched = PLACE_DROP};
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = pkt->pay_len,
		.imm_data = htobe32(pkt->imm),
		.wc_flags = IBV_WC_WITH_IMM};
	const unsigned drop = check(qp, pkt);

	(void)port, (void)now;
	if (drop != 0)
		return drop;
	flow.posted = qp_take_recv(qp);
	if (place_decide(&flow, 0, 1).verdict != PLACE_ACCEPT)
		return RNIC_DROP_RNR;
	memcpy(of(qp)->memory + pkt->va, frame + pkt->pay_off, pkt->pay_len);
	qp_complete_recv(qp, &wc, pkt->se);
	return 0;
}

/* ---- windows ---- */

static int check_window(const struct rnic_qp *qp, const struct rnic_mcast_window *w)
{
	if (!qp_receives(qp) || w->n_writers == 0 || w->n_writers > RNIC_MAX_WRITERS ||
		(w->number_mask & (w->number_mask + 1)) != 0 ||
		mr_translate(qp->init.pd, w->lkey, w->addr, w->len, IBV_ACCESS_LOCAL_WRITE) == NULL)
		return -EINVAL;
	for (unsigned i = 0; i < w->n_writers; i++) {
		const struct rnic_mcast_writer *part = &w->writer[i];

		if (part->va > w->len || part->len > w->len - part->va)
			return -EINVAL;
	}
	return 0;
}

/* Workers are held. */
static void close_window(struct uc_mcast *uc)
{
	free(uc->writer);
	uc->writer = NULL;
	uc->memory = NULL;
	uc->last = 0;
	uc->window = (struct rnic_mcast_window){0};
}

int rnic_qp_mcast_window(struct rnic_qp *qp, const struct rnic_mcast_window *window)
{
	struct uc_mcast *uc = of(qp);
	struct rnic_mcast_writer *copy;
	int err;

	if (qp->ops != &rnic_uc_mcast)
		return -EOPNOTSUPP;
	if (window == NULL) {
		workers_hold(qp->rnic);
		close_window(uc);
		workers_let_go(qp->rnic);
		return 0;
	}
	err = check_window(qp, window);
	if (err < 0)
		return err;
	copy = calloc(window->n_writers, sizeof(*copy));
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, window->writer, window->n_writers * sizeof(*copy));
	workers_hold(qp->rnic);
	close_window(uc);
	uc->window = *window;
	uc->window.writer = uc->writer = copy;
	workers_let_go(qp->rnic);
	return 0;
}

/* ---- states ---- */

static int uc_mcast_check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_DEST_QPN) && attr->dest_qp_num != MULTICAST_QPN)
		return -EINVAL;
	return unreliable_check_attr(qp, attr, mask);
}

static void uc_mcast_reset(struct rnic_qp *qp)
{
	close_window(of(qp));
	*of(qp) = (struct uc_mcast){0};
}

const struct transport_ops rnic_uc_mcast = {
	.name = "uc-multicast",
	.type = IBV_QPT_UC,
	.connected = true,
	.multicast = true,
	.by_worker = true,
	.opcodes = ROCE_UC,
	.state_size = sizeof(struct uc_mcast),
	.send_ops = 1 << IBV_WR_RDMA_WRITE_WITH_IMM,
	.transitions = uc_transitions,
	.check_attr = uc_mcast_check_attr,
	.query = unreliable_query,
	.stats = unreliable_stats,
	.enter = unreliable_enter,
	.fail = unreliable_fail,
	.reset = uc_mcast_reset,
	.rx = uc_mcast_rx,
	.tx_control = uc_mcast_tx_control,
	.tx = uc_mcast_tx,
	.timer = uc_mcast_timer,
};
