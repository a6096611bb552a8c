/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in and out, and the time. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/cq.h"
#include "lib/rnic/device.h"
#include "lib/rnic/gsi.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/neigh.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/scheduler.h"
#include "lib/rnic/timer.h"
#include "lib/rnic/transport.h"
#include "lib/wire/cm.h"
#include "lib/wire/icrc.h"
#include "lib/wire/multicast.h"

enum {
	LOOPBACK_MAX = 64, /* frames a device hands to itself in one call of rnic_tx */
	AHEAD = 3          /* headers fetched so many frames before they are read */
};

/* ---- receiving ---- */

bool qp_receives(const struct rnic_qp *qp)
{
	enum ibv_qp_state state = qp_state(qp);

	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
	       state == IBV_QPS_SQE;
}

static bool is_own(
	const struct rnic *rnic, const struct wire_pkt *pkt, const struct transport_ops **owner)
{
	*owner = atomic_load_explicit(&rnic->owner, memory_order_acquire);
	return *owner != NULL && (pkt->opcode & ~ROCE_OP_MASK) == (*owner)->opcodes;
}

static unsigned rx_roce(struct rnic *rnic, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	const struct transport_ops *owner;
	struct rnic_qp *qp;
	unsigned drop;

	if (wire_is_multicast(&pkt->dst))
		return mcast_rx(rnic, port, frame, pkt, now);
	if (pkt->dqpn == CM_QPN)
		return gsi_rx(rnic, port, frame, pkt);
	if (is_own(rnic, pkt, &owner) && owner->rx_device(rnic, port, frame, pkt, now, &drop))
		return drop;
	qp = rnic_qp_find(rnic, pkt->dqpn);
	if (qp == NULL)
		return RNIC_DROP_NO_QP;
	if (!qp_receives(qp))
		return RNIC_DROP_QP_STATE;
	if (port != qp->port && !qp->ops->several_ports)
		return RNIC_DROP_PORT;
	if (!qp->ops->connected || qp->ops->several_ports)
		return (pkt->opcode & ~ROCE_OP_MASK) == qp->ops->opcodes
			       ? qp->ops->rx(qp, port, frame, pkt, now)
			       : RNIC_DROP_QP_TYPE;
	if (!wire_ip_eq(&pkt->src, &qp->flow.dst) || !wire_ip_eq(&pkt->dst, &qp->flow.src))
		return RNIC_DROP_SOURCE;
	if ((pkt->opcode & ~ROCE_OP_MASK) != qp->ops->opcodes && pkt->opcode != ROCE_CNP)
		return RNIC_DROP_QP_TYPE;
	return qp->ops->rx(qp, port, frame, pkt, now);
}

static unsigned rx_echo(
	struct rnic *rnic, unsigned port, const uint8_t *frame, const struct wire_pkt *pkt)
{
	uint8_t *out;

	if (rnic_own_ip(rnic, port, &pkt->dst) < 0)
		return RNIC_DROP_NOT_MINE;
	if (pkt->end > rnic->port[port].reply_cap)
		return RNIC_DROP_LENGTH;
	out = rnic_reply(rnic, port);
	if (out == NULL)
		return RNIC_DROP_REPLY_QUEUE;
	memcpy(out, frame, pkt->end);
	wire_icmp_echo_reply(out, pkt);
	/* To a multicast MAC, perhaps; the answer does not come from there. */
	rnic_mac(rnic, port, out + 6);
	rnic_reply_send(rnic, port, pkt->end);
	return 0;
}

/* Opcodes that lib/wire does not know, but perhaps a transport here. */
static unsigned parse_own(const struct rnic *rnic, const uint8_t *frame, struct wire_pkt *pkt)
{
	const uint32_t own = atomic_load_explicit(&rnic->own_codecs, memory_order_relaxed);
	unsigned drop = own != 0 ? wire_parse_bth(frame, pkt) : WIRE_BTH_OPCODE;

	return drop == WIRE_OK && !(own >> (pkt->opcode >> 5) & 1) ? WIRE_BTH_OPCODE : drop;
}

/* The transport that has the device sees what lib/wire would not understand. */
static enum own_look look(const struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len,
	struct wire_pkt *pkt, unsigned *drop)
{
	const struct transport_ops *owner =
		atomic_load_explicit(&rnic->owner, memory_order_acquire);

	*drop = WIRE_OK;
	return owner != NULL ? owner->look(rnic, port, frame, len, pkt, drop) : LOOK_NO;
}

/* Of what is constant in a device only, but for n_mcast and own_codecs, which are atomic. */
static bool for_port(const struct rnic *rnic, unsigned port, const uint8_t *frame)
{
	return (frame[0] & 1) || memcmp(frame, rnic->port[port].mac, 6) == 0;
}

static unsigned check(const struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len,
	struct wire_pkt *pkt)
{
	unsigned drop;
	bool cut = false;

	switch (look(rnic, port, frame, len, pkt, &drop)) {
	case LOOK_NO:
		drop = wire_parse(frame, len, pkt);
		break;
	case LOOK_CUT:
		cut = true;
		break;
	default:
		break;
	}
	if (drop == WIRE_BTH_OPCODE)
		drop = parse_own(rnic, frame, pkt);
	if (drop != WIRE_OK)
		return drop;
	if (!for_port(rnic, port, frame))
		return RNIC_DROP_NOT_MINE;
	if (pkt->vlan & 0xfff)
		return RNIC_DROP_NOT_MINE;
	if (pkt->kind != WIRE_ROCE)
		return 0;
	if (wire_is_multicast(&pkt->dst)
			? atomic_load_explicit(&rnic->n_mcast, memory_order_relaxed) == 0
			: rnic_own_ip(rnic, port, &pkt->dst) < 0)
		return RNIC_DROP_NOT_MINE;
	return cut || wire_icrc_ok(frame, pkt) ? 0 : WIRE_ICRC_BAD;
}

void rnic_check(const struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len,
	struct rnic_checked *checked)
{
	checked->drop = check(rnic, port, frame, len, &checked->pkt);
	checked->port = (uint8_t)port;
	checked->done = true;
}

static unsigned take(struct rnic *rnic, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	switch (pkt->kind) {
	case WIRE_ROCE:
		return rx_roce(rnic, port, frame, pkt, now);
	case WIRE_ARP:
	case WIRE_ND_NS:
	case WIRE_ND_NA:
		return neigh_rx(rnic, port, pkt, frame, now);
	case WIRE_ICMP_ECHO:
		return rx_echo(rnic, port, frame, pkt);
	case WIRE_IP:
		return mcast_query(rnic, port, frame, pkt);
	default:
		return RNIC_DROP_NOT_ROCE;
	}
}

/* By rnic_check, for this port. */
static unsigned take_checked(struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len,
	const struct rnic_checked *checked, uint64_t now)
{
	uint64_t *count = rnic->port[port].count;
	unsigned drop;

	rnic->rx_at = now;
	drop = checked->drop ? checked->drop : take(rnic, port, frame, &checked->pkt, now);
	if (rnic->cq_overrun)
		cq_settle(rnic);
	rnic_inc(rnic, RNIC_C_RX_FRAMES);
	rnic->count[RNIC_C_RX_BYTES] += len;
	count[RNIC_PORT_C_RX_FRAMES]++;
	count[RNIC_PORT_C_RX_BYTES] += len;
	count[RNIC_PORT_C_RX_DROPS] += drop != 0;
	if (drop == 0)
		rnic_inc(rnic, RNIC_C_RX_ACCEPTED);
	else
		rnic->drop[drop]++;
	return drop;
}

static unsigned take_one(
	struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len, uint64_t now)
{
	struct rnic_checked checked;

	rnic_check(rnic, port, frame, len, &checked);
	return take_checked(rnic, port, frame, len, &checked, now);
}

unsigned rnic_rx_checked(struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len,
	const struct rnic_checked *checked, uint64_t now)
{
	const bool outer = !rnic->cq_gathers;
	unsigned drop;

	cq_gather(rnic);
	drop = checked->done && checked->port == port
		       ? take_checked(rnic, port, frame, len, checked, now)
		       : take_one(rnic, port, frame, len, now);
	if (outer)
		cq_publish(rnic);
	return drop;
}

unsigned rnic_rx(struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len, uint64_t now)
{
	const bool outer = !rnic->cq_gathers;
	unsigned drop;

	cq_gather(rnic);
	drop = take_one(rnic, port, frame, len, now);
	if (outer)
		cq_publish(rnic);
	return drop;
}

void rnic_rx_burst(struct rnic *rnic, unsigned port, const struct rnic_rx_frame *frames, unsigned n,
	uint64_t now)
{
	cq_gather(rnic);
	for (unsigned i = 0; i < n; i++) {
		if (i + AHEAD < n) {
			__builtin_prefetch(frames[i + AHEAD].data);
			__builtin_prefetch(frames[i + AHEAD].data + 64);
		}
		take_one(rnic, port, frames[i].data, frames[i].len, now);
	}
	cq_publish(rnic);
}

unsigned rnic_readers(const struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len)
{
	struct wire_pkt pkt;
	unsigned drop;

	if (look(rnic, port, frame, len, &pkt, &drop) != LOOK_NO ||
		wire_parse(frame, len, &pkt) != WIRE_OK || !for_port(rnic, port, frame))
		return RNIC_READS;
	if (pkt.vlan & 0xfff)
		return STACK_READS;
	switch (pkt.kind) {
	case WIRE_ROCE:
		return RNIC_READS;
	case WIRE_ARP:
		return pkt.arp_op == ARP_REQUEST && rnic_own_ip(rnic, port, &pkt.dst) >= 0
			       ? RNIC_READS
			       : RNIC_READS | STACK_READS;
	case WIRE_ND_NS:
		return rnic_own_ip(rnic, port, &pkt.nd_target) >= 0 ? RNIC_READS
								    : RNIC_READS | STACK_READS;
	case WIRE_ND_NA:
		return RNIC_READS | STACK_READS;
	default:
		return STACK_READS;
	}
}

/* ---- sending ---- */

/* Headers are in place. */
static void finish(struct rnic_frame *frame, uint32_t before, uint32_t share, size_t pay_len)
{
	unsigned pad = wire_pad(pay_len);

	memset(frame->tail, 0, pad);
	frame->tail_len = (uint16_t)(pad + ROCE_ICRC_LEN);
	frame->len = (uint32_t)(frame->head_len + pay_len + frame->tail_len);
	frame->crc_before = before;
	frame->crc_share = share;
	frame->unsealed = true;
}

void frame_build(struct rnic *rnic, const struct wire_flow *flow, struct rnic_frame *frame,
	struct wire_hdr *hdr, size_t pay_len)
{
	size_t l3 = wire_l3_off(flow->vlan);

	hdr->ip_id = rnic->ip_id++;
	frame->head_len =
		(uint16_t)wire_build_headers(frame->head, sizeof(frame->head), flow, hdr, pay_len);
	finish(frame, icrc_headers(frame->head + l3, frame->head_len - l3), 0, pay_len);
}

void frame_finish_own(struct rnic_frame *frame, size_t l3_off, size_t head_len, size_t pay_len)
{
	frame->head_len = (uint16_t)head_len;
	finish(frame, icrc_headers(frame->head + l3_off, head_len - l3_off), 0, pay_len);
}

void frame_finish(
	struct rnic_qp *qp, struct rnic_frame *frame, struct wire_hdr *hdr, size_t pay_len)
{
	uint32_t share;

	if (pay_len != qp->mtu || roce_ext_len(roce_opcode_flags(hdr->opcode)) != 0) {
		frame_build(qp->rnic, &qp->flow, frame, hdr, pay_len);
		return;
	}
	hdr->ip_id = qp->rnic->ip_id++;
	share = wire_template_write(&qp->full, hdr, 0, frame->head);
	frame->head_len = qp->full.len;
	finish(frame, 0, share, pay_len);
}

int rnic_frame_flatten(const struct rnic_frame *frame, uint8_t *out, size_t cap)
{
	uint8_t *at = out + frame->head_len;
	uint32_t crc = frame->crc_before;

	if (frame->len > cap)
		return -ENOSPC;
	memcpy(out, frame->head, frame->head_len);
	for (unsigned i = 0; i < frame->n_iov; i++) {
		/* One reading: the program may write to its memory at any time, and what leaves is
		 * what the ICRC must be of. */
		if (frame->unsealed)
			crc = icrc_copy(crc, at, frame->iov[i].base, frame->iov[i].len);
		else
			memcpy(at, frame->iov[i].base, frame->iov[i].len);
		at += frame->iov[i].len;
	}
	memcpy(at, frame->tail, frame->tail_len);
	if (frame->unsealed) {
		/* Payload and pad append to what is before them; the rest was worked out from the
		 * headers. */
		const size_t pad = frame->tail_len - (size_t)ROCE_ICRC_LEN;

		if (pad)
			crc = icrc_append(crc, at, pad);
		icrc_store(at + pad, crc ^ frame->crc_share);
	}
	return (int)frame->len;
}

/* What is made ready in a call of rnic_tx. */
struct sending {
	unsigned ports; /* up, and with room */
	unsigned lanes; /* whose turn it may be */
	bool loopback;
};

/* A port that is down takes everything: it is lost. */
static unsigned lanes_of(const struct rnic *rnic, unsigned ports)
{
	const unsigned all = (1u << rnic->n_ports) - 1;

	return ports | (all & ~rnic->up) | (ports != 0 ? 1u << LANE_SEVERAL : 0);
}

/* One of lanes, which are some. */
static unsigned next_lane(const struct rnic *rnic, unsigned lanes)
{
	const unsigned later = lanes >> rnic->turn << rnic->turn;

	return (unsigned)__builtin_ctz(later != 0 ? later : lanes);
}

/* Sent so many of a list in a row, a queue pair waits until the others had their turn. */
static bool used_up(struct rnic *rnic, unsigned lane, uint8_t *budget)
{
	rnic->turn = lane;
	if (--*budget > 0)
		return false;
	*budget = QUANTUM;
	rnic->turn = (lane + 1) % N_LANES;
	return true;
}

/* It was asked in vain. True: it has said that it lacks a port, and stays where it is. */
static bool lacks_port(struct rnic_qp *qp, unsigned ports, uint8_t *refused)
{
	if (!qp->no_room)
		return false;
	qp->no_room = false;
	*refused = (uint8_t)ports;
	return true;
}

/* Has it refused all of these? */
static bool refuses(uint8_t refused, unsigned ports)
{
	return refused != 0 && (ports & ~(unsigned)refused) == 0;
}

static bool tx_reply(struct rnic *rnic, struct rnic_frame *frame, struct sending *s)
{
	const unsigned ports = rnic->has_replies & s->lanes, due = rnic->reports_due & ports;
	const struct reply *reply;
	struct rnic_port *port;

	if (ports == 0)
		return false;
	if (due != 0) /* they found no room */
		mcast_report(rnic, (unsigned)__builtin_ctz(due));
	frame->port = (uint8_t)__builtin_ctz(ports);
	port = &rnic->port[frame->port];
	reply = &port->reply[port->reply_tail++ % N_REPLIES];
	if (port->reply_tail == port->reply_head)
		rnic->has_replies &= ~(1u << frame->port);
	frame->head_len = frame->tail_len = frame->n_iov = 0;
	frame->len = reply->len;
	frame->qpn = 0;
	s->loopback = memcmp(reply->bytes, port->mac, sizeof(port->mac)) == 0;
	if (reply->len <= sizeof(frame->head)) {
		memcpy(frame->head, reply->bytes, reply->len);
		frame->head_len = (uint16_t)reply->len;
	} else {
		frame->iov[0].base = reply->bytes;
		frame->iov[0].len = reply->len;
		frame->n_iov = 1;
	}
	return true;
}

static bool control_of(
	struct rnic *rnic, unsigned lane, struct rnic_frame *frame, struct sending *s, uint64_t now)
{
	struct rnic_qp *qp, *next;

	for (qp = TAILQ_FIRST(&rnic->controls[lane]); qp != NULL; qp = next) {
		enum tx_control got;

		if (refuses(qp->control_refused, s->ports)) {
			next = TAILQ_NEXT(qp, control);
			continue;
		}
		frame->port = qp->port;
		got = qp->ops->tx_control(qp, s->ports, frame, now);
		next = TAILQ_NEXT(qp, control);
		rnic->sched_steps++;
		if (got == CONTROL_NONE && lacks_port(qp, s->ports, &qp->control_refused))
			continue;
		if (got != CONTROL_MORE)
			sched_uncontrol(qp);
		else if (used_up(rnic, lane, &qp->budget))
			sched_rotate_control(qp);
		s->loopback = qp->loopback;
		frame->qpn = qp->qpn;
		if (got != CONTROL_NONE)
			return true;
	}
	return false;
}

static bool request_of(
	struct rnic *rnic, unsigned lane, struct rnic_frame *frame, struct sending *s, uint64_t now)
{
	struct rnic_qp *qp, *next;

	for (qp = TAILQ_FIRST(&rnic->ready[lane]); qp != NULL; qp = next) {
		if (refuses(qp->refused, s->ports)) {
			next = TAILQ_NEXT(qp, ready);
			continue;
		}
		rnic->sched_steps++;
		frame->port = qp->port;
		if (!qp->ops->tx(qp, s->ports, frame, now)) {
			next = TAILQ_NEXT(qp, ready);
			if (!lacks_port(qp, s->ports, &qp->refused))
				sched_unready(qp);
			continue;
		}
		if (used_up(rnic, lane, &qp->quantum))
			sched_rotate_ready(qp);
		s->loopback = qp->loopback;
		frame->qpn = qp->qpn;
		return true;
	}
	return false;
}

static bool tx_control(struct rnic *rnic, struct rnic_frame *frame, struct sending *s, uint64_t now)
{
	unsigned lanes = s->lanes;

	while ((lanes & rnic->has_controls) != 0) {
		const unsigned lane = next_lane(rnic, lanes & rnic->has_controls);

		if (control_of(rnic, lane, frame, s, now))
			return true;
		lanes &= ~(1u << lane);
	}
	return false;
}

static bool tx_request(struct rnic *rnic, struct rnic_frame *frame, struct sending *s, uint64_t now)
{
	unsigned lanes = s->lanes;

	while ((lanes & rnic->has_ready) != 0) {
		const unsigned lane = next_lane(rnic, lanes & rnic->has_ready);

		if (request_of(rnic, lane, frame, s, now))
			return true;
		lanes &= ~(1u << lane);
	}
	return false;
}

/* A frame of the device's own for itself. */
static void take_back(struct rnic *rnic, struct rnic_frame *frame, uint64_t now)
{
	rnic_rx(rnic, frame->port, rnic->scratch,
		(size_t)rnic_frame_flatten(frame, rnic->scratch, rnic->scratch_cap), now);
}

/* True if the frame goes out, else it is taken care of. */
static bool leaves(struct rnic *rnic, struct rnic_frame *frame, bool loopback, uint64_t now)
{
	struct rnic_port *port = &rnic->port[frame->port];
	const bool copy = rnic->copy_back;

	rnic->copy_back = false;
	if (!loopback && !port->up) {
		port->count[RNIC_PORT_C_TX_LOST]++;
		return false;
	}
	rnic_inc(rnic, RNIC_C_TX_FRAMES);
	rnic->count[RNIC_C_TX_BYTES] += frame->len;
	port->count[RNIC_PORT_C_TX_FRAMES]++;
	port->count[RNIC_PORT_C_TX_BYTES] += frame->len;
	if (copy || loopback)
		take_back(rnic, frame, now);
	return !loopback;
}

bool rnic_tx(struct rnic *rnic, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	struct sending s;

	s.ports = ports & rnic->up;
	s.lanes = lanes_of(rnic, s.ports);
	for (unsigned i = 0; i < LOOPBACK_MAX; i++) {
		s.loopback = false;
		if (rnic->cq_overrun)
			cq_settle(rnic);
		sched_collect(rnic);
		frame->stays = frame->unsealed = false;
		if (!tx_control(rnic, frame, &s, now) && !tx_reply(rnic, frame, &s) &&
			!tx_request(rnic, frame, &s, now) &&
			!tx_control(rnic, frame, &s, now)) { /* a READ that failed just now */
			if (rnic->cq_overrun)
				continue;
			if ((rnic->has_ready | rnic->has_controls | rnic->has_replies) == 0)
				atomic_store_explicit(&rnic->left, false, memory_order_relaxed);
			return false;
		}
		if (leaves(rnic, frame, s.loopback, now))
			return true;
	}
	return false;
}

/* Another request right behind one, while nothing else has become due: as rnic_tx would find. */
static bool tx_more(
	struct rnic *rnic, const struct sending *s, struct rnic_frame *frame, uint64_t now)
{
	struct sending more = *s;

	if (rnic->cq_overrun || rnic_rang(rnic) ||
		((rnic->has_controls | rnic->has_replies) & s->lanes) != 0)
		return false;
	more.loopback = false;
	frame->stays = frame->unsealed = false;
	return tx_request(rnic, frame, &more, now) && leaves(rnic, frame, more.loopback, now);
}

unsigned rnic_tx_burst(
	struct rnic *rnic, unsigned ports, struct rnic_frame *frames, unsigned n, uint64_t now)
{
	struct sending s;
	unsigned made = 0;

	s.ports = ports & rnic->up;
	s.lanes = lanes_of(rnic, s.ports);
	while (made < n && (made == 0 || frames[made - 1].stays || frames[made - 1].n_iov == 0) &&
		((made > 0 && tx_more(rnic, &s, &frames[made], now)) ||
			rnic_tx(rnic, ports, &frames[made], now)))
		made++;
	return made;
}

/* ---- time ---- */

uint64_t rnic_deadline(const struct rnic *rnic)
{
	return rnic->timers.n > 0 ? rnic->timers.slot[0].key : UINT64_MAX;
}

static void expire(struct rnic *rnic, struct timer *timer, uint64_t now)
{
	char *at = (char *)timer;
	struct rnic_qp *qp;

	switch (timer->kind) {
	case TIMER_NEIGH:
		neigh_timer(rnic, (struct neigh *)(at - offsetof(struct neigh, timer)), now);
		break;
	case TIMER_QP:
		qp = (struct rnic_qp *)(at - offsetof(struct rnic_qp, timer));
		qp->ops->timer(qp, now);
		break;
	}
}

void rnic_timer(struct rnic *rnic, uint64_t now)
{
	struct timer *timer;

	while ((timer = timer_expired(&rnic->timers, now)) != NULL)
		expire(rnic, timer, now);
	if (rnic->cq_overrun)
		cq_settle(rnic);
}
