/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in: what is wrong with one, whose it is, and what becomes of it. */
#include <string.h>

#include "lib/rnic/cq.h"
#include "lib/rnic/device.h"
#include "lib/rnic/gsi.h"
#include "lib/rnic/lldp.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/neigh.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/transport.h"
#include "lib/rnic/worker.h"
#include "lib/wire/cm.h"
#include "lib/wire/icrc.h"
#include "lib/wire/multicast.h"

enum { AHEAD = 3 }; /* headers fetched so many frames before they are read */

bool qp_receives(const struct rnic_qp *qp)
{
	enum ibv_qp_state state = qp_state(qp);

	return (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
		       state == IBV_QPS_SQE) &&
	       !qp_is_broken(qp);
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
		return mcast_rx(rnic, 0, port, frame, pkt, now);
	if (pkt->dqpn == CM_QPN)
		return gsi_rx(rnic, port, frame, pkt);
	if (is_own(rnic, pkt, &owner) && owner->rx_device(rnic, port, frame, pkt, now, &drop))
		return drop;
	qp = rnic_qp_find(rnic, pkt->dqpn);
	if (qp == NULL)
		return RNIC_DROP_NO_QP;
	if (qp->worker != 0)
		workers_hold_rx(rnic);
	return qp_rx(qp, port, frame, pkt, now);
}

/* Why a queue pair takes no packet of this kind, from there, or 0. */
static unsigned refused(const struct rnic_qp *qp, unsigned port, const struct wire_pkt *pkt)
{
	const bool own = (pkt->opcode & ~ROCE_OP_MASK) == qp->ops->opcodes;

	if (!qp_receives(qp))
		return RNIC_DROP_QP_STATE;
	if (port != qp->path.port && !qp->ops->several_ports)
		return RNIC_DROP_PORT;
	if (!qp->ops->connected || qp->ops->several_ports)
		return own ? 0 : RNIC_DROP_QP_TYPE;
	if (!wire_ip_eq(&pkt->src, &qp->path.flow.dst) ||
		!wire_ip_eq(&pkt->dst, &qp->path.flow.src))
		return RNIC_DROP_SOURCE;
	return own || pkt->opcode == ROCE_CNP ? 0 : RNIC_DROP_QP_TYPE;
}

unsigned qp_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame, const struct wire_pkt *pkt,
	uint64_t now)
{
	const unsigned drop = refused(qp, port, pkt);

	return drop ? drop : qp->ops->rx(qp, port, frame, pkt, now);
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

/* All that can be said of a frame before its ICRC is looked at. *sealed: it has one. */
static unsigned inspect(const struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len,
	struct wire_pkt *pkt, bool *sealed)
{
	unsigned drop;
	bool cut = false;

	*sealed = false;

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
	*sealed = !cut;
	return 0;
}

/* Where a payload goes before its ICRC is looked at, behind so many bytes of a transport's own
 * headers. */
struct way {
	uint8_t *to;
	uint16_t headers;
};

/* Of what kind it is a place may be known; flags are 0 of what lib/wire does not know. A CNP is of
 * no message, though its flags and what opcode it has in its class are like a SEND MIDDLE's. */
static bool may_have_place(const struct wire_pkt *pkt)
{
	const uint16_t kind = pkt->flags & (ROCE_F_FIRST | ROCE_F_LAST | ROCE_F_PAYLOAD);

	return pkt->pad == 0 && pkt->opcode != ROCE_CNP &&
	       (kind == ROCE_F_PAYLOAD || pkt->flags == 0 ||
		       (pkt->opcode & ~ROCE_OP_MASK) == ROCE_UD);
}

/* Whose alone the packet is, and of this thread. */
static struct rnic_qp *only_taker(
	const struct rnic *rnic, unsigned worker, unsigned port, const struct wire_pkt *pkt)
{
	struct rnic_qp *qp;

	if (wire_is_multicast(&pkt->dst))
		return mcast_only(rnic, worker, port, pkt);
	qp = rnic_qp_find(rnic, pkt->dqpn);
	return qp != NULL && qp->worker == worker && refused(qp, port, pkt) == 0 ? qp : NULL;
}

/* Most packets of a long message are neither its first nor its last, and their destination is known
 * before they come: the payload is read once. The queue pair, or NULL. */
static struct rnic_qp *knows_place(const struct rnic *rnic, unsigned worker, unsigned port,
	const uint8_t *frame, const struct wire_pkt *pkt, struct way *way)
{
	struct rnic_qp *qp = may_have_place(pkt) ? only_taker(rnic, worker, port, pkt) : NULL;

	if (qp == NULL || qp->ops->place == NULL)
		return NULL;
	way->headers = 0;
	way->to = qp->ops->place(qp, frame, pkt, &way->headers);
	return way->to != NULL ? qp : NULL;
}

static unsigned take(struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len,
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
		return rnic_lldp_reads(rnic, frame, len) ? rnic_lldp_rx(rnic, port, frame, len, now)
							 : RNIC_DROP_NOT_ROCE;
	}
}

/* As wire_icrc_ok, of a packet without pad whose payload is copied on the way, whatever comes of
 * it.
 */
static bool copied_right(const uint8_t *frame, const struct wire_pkt *pkt, const struct way *way)
{
	const uint8_t *l3 = frame + pkt->l3_off, *payload = frame + pkt->pay_off + way->headers;
	const uint32_t headers = icrc_headers(l3, (size_t)(payload - l3));
	const size_t len = pkt->pay_len - way->headers;

	return icrc_place(headers, way->to, payload, len) == icrc_load(payload + len);
}

unsigned rx_frame(struct rnic *rnic, unsigned worker, unsigned port, const uint8_t *frame,
	size_t len, uint64_t now)
{
	struct rnic_qp *qp = NULL;
	struct wire_pkt pkt;
	struct way way;
	bool sealed;
	const unsigned drop = inspect(rnic, port, frame, len, &pkt, &sealed);

	if (drop != 0)
		return drop;
	if (sealed)
		qp = knows_place(rnic, worker, port, frame, &pkt, &way);
	if (qp == NULL) {
		if (sealed && !wire_icrc_ok(frame, &pkt))
			return WIRE_ICRC_BAD;
		return worker != 0 ? worker_take(rnic, worker, port, frame, &pkt, now)
				   : take(rnic, port, frame, len, &pkt, now);
	}
	if (!copied_right(frame, &pkt, &way))
		return WIRE_ICRC_BAD;
	qp->ops->rx_placed(qp, frame, &pkt, now);
	return 0;
}

static unsigned take_one(
	struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len, uint64_t now)
{
	uint64_t *count = rnic->port[port].count;
	unsigned drop;

	rnic->rx_at = now;
	drop = rx_frame(rnic, 0, port, frame, len, now);
	if (cq_unsettled(rnic))
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

/* All frames of the call are. */
static void taken(struct rnic *rnic)
{
	workers_let_go_rx(rnic);
	cq_publish(&rnic->gather);
}

unsigned rnic_rx(struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len, uint64_t now)
{
	const bool outer = !rnic->gather.on;
	unsigned drop;

	cq_gather(&rnic->gather);
	drop = take_one(rnic, port, frame, len, now);
	if (outer)
		taken(rnic);
	return drop;
}

void rnic_rx_burst(struct rnic *rnic, unsigned port, const struct rnic_rx_frame *frames, unsigned n,
	uint64_t now)
{
	cq_gather(&rnic->gather);
	for (unsigned i = 0; i < n; i++) {
		if (i + AHEAD < n) {
			__builtin_prefetch(frames[i + AHEAD].data);
			__builtin_prefetch(frames[i + AHEAD].data + 64);
		}
		take_one(rnic, port, frames[i].data, frames[i].len, now);
	}
	taken(rnic);
}

unsigned rnic_steer(const struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len)
{
	const struct rnic_qp *qp;
	struct wire_pkt pkt;
	unsigned drop;

	if (rnic->n_pinned == 0 || look(rnic, port, frame, len, &pkt, &drop) != LOOK_NO ||
		wire_parse(frame, len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE ||
		(pkt.vlan & 0xfff) || !for_port(rnic, port, frame))
		return 0;
	if (wire_is_multicast(&pkt.dst))
		return mcast_worker(rnic, port, &pkt.dst);
	qp = rnic_qp_find(rnic, pkt.dqpn);
	return qp != NULL ? qp->worker : 0;
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
		return rnic_lldp_reads(rnic, frame, len) ? RNIC_READS | STACK_READS : STACK_READS;
	}
}
