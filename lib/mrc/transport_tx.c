/* SPDX-License-Identifier: BSD-3-Clause */
/* What leaves: requests, the words of the responder, and the headers of both. */
#include <errno.h>
#include <string.h>

#include "lib/mrc/transport_priv.h"
#include "lib/srv6/encap.h"
#include "lib/wire/bytes.h"
#include "lib/wire/icrc.h"

/* ---- headers ---- */

struct mrc_way mrc_way_of(const struct mrc_conn *c, unsigned path)
{
	const struct rnic_mrc_path *ev = &c->paths->path[path];

	return (struct mrc_way){.plane = &c->plane[ev->port], .format = c->paths->format, .ev = ev};
}

struct rnic_path mrc_path_between(const struct mrc_dev *dev, unsigned port,
	const struct wire_ip *src, const struct wire_ip *dst)
{
	struct rnic_path path = path_between(dev->rnic, port, src, dst, 0);

	path.flow.ttl = (uint8_t)dev->set.hop_limit;
	return path;
}

static struct srv6_encap encap_of(const struct mrc_way *way)
{
	struct srv6_encap e = {.src = way->plane->flow.src, .n = way->ev->n_segments};

	for (unsigned i = 0; i < e.n; i++)
		e.segment[i] = way->ev->segment[i];
	return e;
}

/* tunnel: the packet goes in an outer header. */
static struct mrc_flow flow_of(
	const struct mrc_dev *dev, const struct mrc_way *way, uint8_t tos, bool tunnel)
{
	const struct wire_flow *flow = &way->plane->flow;

	return (struct mrc_flow){.src = flow->src,
		.dst = flow->dst,
		.tos = tos,
		.ttl = flow->ttl + tunnel, /* a tunnel's head is one of the hops */
		.udp_port = (uint16_t)dev->set.udp_port,
		.ev = way->ev->ev,
		/* An EV of 16 bits is the source port, whatever the order. */
		.order = way->format == RNIC_MRC_UDP ? MRC_EV_FLOW_HIGH : dev->set.ev_order};
}

int mrc_put_headers(const struct mrc_dev *dev, const struct mrc_way *way, const struct mrc_pkt *pkt,
	uint8_t tos, uint8_t *out, size_t room, size_t *l3)
{
	const size_t pay_len = pkt->kind == MRC_KIND_DATA ? pkt->data.pay_len : 0;
	const struct wire_flow *eth = &way->plane->flow;
	const struct srv6_encap e = encap_of(way);
	const struct mrc_flow flow = flow_of(dev, way, tos, e.n > 0);
	uint8_t headers[MRC_MAX_HEADERS];
	int n = dev->c.codec->encode(pkt, headers, sizeof(headers)), n3;
	size_t rest;

	*l3 = ETH_HDR_LEN + (e.n ? srv6_encap_len(&e) : 0);
	if (n < 0)
		return n;
	if (room < *l3)
		return -ENOSPC;
	rest = (size_t)n + pay_len + wire_pad(pay_len) + ROCE_ICRC_LEN;
	n3 = mrc_build_l3(out + *l3, room - *l3, &flow, rest);
	if (n3 < 0)
		return n3;
	if (room < *l3 + (size_t)n3 + (size_t)n)
		return -ENOSPC;
	memcpy(out + *l3 + n3, headers, (size_t)n);
	if (e.n && srv6_encap(&e, out + *l3, (size_t)n3 + rest, out + ETH_HDR_LEN) != SRV6_OK)
		return -EINVAL;
	memcpy(out, eth->dmac, 6);
	memcpy(out + 6, eth->smac, 6);
	put_be16(out + 12, wire_ip_is4(&eth->src) ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
	return (int)(*l3 + (size_t)n3 + (size_t)n);
}

int mrc_put_packet(const struct mrc_dev *dev, const struct mrc_way *way, const struct mrc_pkt *pkt,
	uint8_t tos, uint8_t *out, size_t room)
{
	size_t l3;
	int n = mrc_put_headers(dev, way, pkt, tos, out, room, &l3);

	if (n < 0)
		return n;
	if (room < (size_t)n + ROCE_ICRC_LEN)
		return -ENOSPC;
	icrc_store(out + n, icrc_headers(out + l3, (size_t)n - l3));
	n += ROCE_ICRC_LEN;
	if (n < ETH_MIN_LEN && room >= ETH_MIN_LEN) {
		memset(out + n, 0, (size_t)(ETH_MIN_LEN - n));
		n = ETH_MIN_LEN;
	}
	return n;
}

/* Headers of a packet on one of the connection's paths; payload is named by the frame already. */
static bool put(struct mrc_conn *c, unsigned path, uint8_t tos, const struct mrc_pkt *pkt,
	struct rnic_frame *frame)
{
	const struct mrc_way way = mrc_way_of(c, path);
	size_t l3;
	int n = mrc_put_headers(c->dev, &way, pkt, tos, frame->head, sizeof(frame->head), &l3);

	if (n < 0)
		return false;
	frame_finish_own(frame, way.plane, l3, (size_t)n,
		pkt->kind == MRC_KIND_DATA ? pkt->data.pay_len : 0);
	return true;
}

/* ---- completions ---- */

static enum ibv_wc_status wc_of(enum mrc_status status)
{
	switch (status) {
	case MRC_STATUS_OK:
		return IBV_WC_SUCCESS;
	case MRC_STATUS_RETRY:
		return IBV_WC_RETRY_EXC_ERR;
	case MRC_STATUS_INV_REQ:
		return IBV_WC_REM_INV_REQ_ERR;
	case MRC_STATUS_ACCESS:
		return IBV_WC_REM_ACCESS_ERR;
	case MRC_STATUS_OPERATION:
		return IBV_WC_REM_OP_ERR;
	default:
		return IBV_WC_WR_FLUSH_ERR;
	}
}

/* The oldest request fails, everything else is flushed. */
static void fail(struct mrc_conn *c, enum ibv_wc_status status)
{
	c->sends = false;
	qp_complete_send(c->qp, status);
	qp_error(c->qp);
}

/* Request `index` cannot be read any more: what became of those before it is not known. */
static void lost_memory(struct mrc_conn *c, uint32_t index)
{
	c->sends = false;
	while (ring_tail(&c->qp->sq) != index)
		qp_complete_send(c->qp, IBV_WC_WR_FLUSH_ERR);
	fail(c, IBV_WC_LOC_PROT_ERR);
}

static void complete(struct mrc_conn *c)
{
	struct mrc_done done;

	while (c->sends && mrc_req_done(&c->req, &done)) {
		if (done.status == MRC_STATUS_OK)
			qp_complete_send(c->qp, IBV_WC_SUCCESS);
		else
			fail(c, wc_of(done.status));
	}
	if (c->sends && c->unreadable && c->posted == ring_tail(&c->qp->sq))
		fail(c, IBV_WC_LOC_PROT_ERR);
}

static void tell_evs(struct mrc_conn *c)
{
	const struct rnic_mrc_events *events = &c->dev->c.events;
	int i;

	if (events->ev_changed == NULL)
		return;
	while ((i = mrc_evset_take_changed(&c->evs)) != MRC_NO_EV) {
		const uint8_t state = c->evs.ev[i].state;

		events->ev_changed(events->arg, c->qp, (unsigned)i,
			state == MRC_EV_SKIP ? MRC_EV_GOOD : (enum mrc_ev_state)state);
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void mrc_schedule(struct mrc_conn *c)
{
	uint64_t at = UINT64_MAX;

	if (c->sends)
		at = mrc_req_deadline(&c->req);
	if (c->receives) {
		at = earlier(at, mrc_rsp_deadline(&c->rsp));
		at = earlier(at, mrc_reverse_deadline(&c->reverse));
	}
	if (c->peer != NULL && LIST_FIRST(&c->peer->conns) == c && !c->peer->status_left)
		at = earlier(at, mrc_ports_deadline(&c->peer->ports));
	if (c->peer != NULL)
		at = earlier(at, c->hops_at);
	transport_schedule(c->qp, at);
}

static bool owes_words(const struct mrc_conn *c)
{
	return mrc_rsp_pending(&c->rsp) || c->probe_ev != MRC_NO_EV ||
	       (c->peer != NULL && c->peer->status_left && LIST_FIRST(&c->peer->conns) == c);
}

void mrc_settle(struct mrc_conn *c, uint64_t now)
{
	(void)now;
	complete(c);
	tell_evs(c);
	mrc_window_news(c);
	if (owes_words(c))
		qp_has_control(c->qp);
	mrc_schedule(c);
}

/* ---- requests ---- */

/* Whether all of the request's memory may be read now. */
static bool readable(const struct rnic_qp *qp, const struct send_wqe *wqe)
{
	struct rnic_frame all;

	return gather_payload(qp->init.pd, wqe, 0, wqe->len, &all) == 0;
}

static void take_posted(struct mrc_conn *c)
{
	const uint32_t head = ring_head(&c->qp->sq);

	while (c->posted != head && !c->unreadable) {
		const struct send_wqe *wqe = ring_at(&c->qp->sq, c->posted);
		const struct mrc_msg msg = {.cookie = c->posted,
			.va = wqe->raddr,
			.rkey = wqe->rkey,
			.length = wqe->len,
			.imm = wqe->imm,
			.has_imm = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM,
			.se = wqe->solicited};

		if (!readable(c->qp, wqe)) {
			c->unreadable = true;
			complete(c);
			return;
		}
		if (mrc_req_post(&c->req, &msg) < 0)
			return; /* as many as the queue has: does not happen */
		c->posted++;
	}
}

/* Classes that the data queue of switches has are ECN-capable. */
static uint8_t tos_of(const struct mrc_dev *dev, uint8_t class)
{
	return dev->tos[class] | (class == MRC_CLASS_CONTROL ? IP_ECN_NOT_ECT : IP_ECN_ECT0);
}

static bool make(struct mrc_conn *c, const struct mrc_out *out, struct rnic_frame *frame)
{
	frame->n_iov = 0;
	if (out->pkt.kind == MRC_KIND_DATA) {
		const uint32_t index = (uint32_t)out->cookie;

		if (gather_payload(c->qp->init.pd, ring_at(&c->qp->sq, index), out->offset,
			    out->pkt.data.pay_len, frame) < 0) {
			lost_memory(c, index);
			return false;
		}
		mrc_reverse_sent(&c->reverse);
		if (out->pkt.data.rtx)
			rnic_inc(c->qp->rnic, RNIC_C_RETRANSMITS);
	} else {
		rnic_inc(c->qp->rnic, RNIC_C_PROBES);
	}
	frame->stays = true;
	return put(c, (unsigned)mrc_evset_find(&c->evs, out->ev), tos_of(c->dev, out->class),
		&out->pkt, frame);
}

bool mrc_tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	struct mrc_conn *c = conn_of(qp);
	const uint8_t room = mrc_planes_of(c->dev, ports) & c->evs.up;
	struct mrc_out out;
	bool made;

	if (qp_state(qp) == IBV_QPS_ERR)
		qp_flush(qp);
	if (qp_state(qp) != IBV_QPS_RTS || !c->sends)
		return false;
	take_posted(c);
	mrc_window_turn(c);
	made = c->sends && mrc_req_tx(&c->req, room, now, &out);
	mrc_window_turned(c, made && out.pkt.kind == MRC_KIND_DATA);
	if (!made && room != c->evs.up && c->sends && mrc_req_wants(&c->req))
		transport_no_room(qp);
	made = made && make(c, &out, frame);
	mrc_schedule(c);
	return made;
}

/* ---- words ---- */

static void count_word(struct mrc_conn *c, const struct mrc_pkt *pkt)
{
	if (pkt->kind == MRC_KIND_ACK && pkt->ack.syndrome != MRC_SYNDROME_ACK)
		rnic_inc(c->qp->rnic, RNIC_C_NAK_TX);
	else
		rnic_inc(c->qp->rnic, RNIC_C_ACK_TX);
}

/* The next word with its path, of a plane in room; false: none. One for which there is no path is
 * lost, as it might be on the way, and counted. */
static bool next_word(struct mrc_conn *c, uint8_t room, uint64_t now, struct mrc_pkt *pkt, int *ev)
{
	if (mrc_status_next(c, room, pkt, ev))
		return true;
	if (c->probe_ev != MRC_NO_EV && (room >> c->evs.ev[c->probe_ev].port & 1)) {
		const uint16_t id = mrc_asks(c, c->probe_id, now);

		*ev = c->probe_ev;
		c->probe_ev = MRC_NO_EV;
		*pkt = (struct mrc_pkt){.kind = MRC_KIND_ENDPOINT_REQUEST,
			.depth = MRC_DEPTH_ALL,
			.endpoint = {.id = id, .op = MRC_EV_PROBE, .ts = mrc_ts(now)}};
		if (id != 0)
			return true;
	}
	room &= mrc_reverse_ports(&c->reverse, &c->evs);
	while ((room != 0 || c->evs.up == 0) && mrc_rsp_tx(&c->rsp, now, pkt)) {
		*ev = mrc_reverse_next(&c->reverse, &c->evs, room);
		if (*ev == MRC_NO_EV) {
			c->pathless++;
			continue;
		}
		count_word(c, pkt);
		return true;
	}
	return false;
}

enum tx_control mrc_tx_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	struct mrc_conn *c = conn_of(qp);
	const uint8_t room = mrc_planes_of(c->dev, ports);
	struct mrc_pkt pkt;
	int ev;

	frame->n_iov = 0;
	if (c->rsp_mem == NULL)
		return CONTROL_NONE;
	if (next_word(c, room & c->evs.up, now, &pkt, &ev) &&
		put(c, (unsigned)ev, tos_of(c->dev, MRC_CLASS_CONTROL), &pkt, frame)) {
		if (owes_words(c))
			return CONTROL_MORE;
		mrc_schedule(c);
		return CONTROL_LAST;
	}
	if (owes_words(c) && (room & c->evs.up) != c->evs.up)
		transport_no_room(qp);
	return CONTROL_NONE;
}
