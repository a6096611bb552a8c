/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames out: of those that have something to send, whose turn it is. */
#include <string.h>

#include "lib/rnic/cq.h"
#include "lib/rnic/device.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/scheduler.h"
#include "lib/rnic/transport.h"

enum { LOOPBACK_MAX = 64 }; /* frames a device hands to itself in one call of rnic_tx */

/* What is made ready in a call of rnic_tx. */
struct sending {
	unsigned ports; /* up, and with room */
	unsigned lanes; /* whose turn it may be */
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
	*budget = rnic->quantum;
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
	frame->loopback = memcmp(reply->bytes, port->mac, sizeof(port->mac)) == 0;
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
		got = qp->ops->tx_control(qp, s->ports, frame, now);
		next = TAILQ_NEXT(qp, control);
		rnic->sched_steps++;
		if (got == CONTROL_NONE && lacks_port(qp, s->ports, &qp->control_refused))
			continue;
		if (got != CONTROL_MORE)
			sched_uncontrol(qp);
		else if (used_up(rnic, lane, &qp->budget))
			sched_rotate_control(qp);
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
		if (!qp->ops->tx(qp, s->ports, frame, now)) {
			next = TAILQ_NEXT(qp, ready);
			if (!lacks_port(qp, s->ports, &qp->refused))
				sched_unready(qp);
			continue;
		}
		if (used_up(rnic, lane, &qp->quantum))
			sched_rotate_ready(qp);
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
static bool leaves(struct rnic *rnic, struct rnic_frame *frame, uint64_t now)
{
	struct rnic_port *port = &rnic->port[frame->port];
	const bool copy = rnic->copy_back;

	rnic->copy_back = false;
	if (!frame->loopback && !port->up) {
		port->count[RNIC_PORT_C_TX_LOST]++;
		return false;
	}
	rnic_inc(rnic, RNIC_C_TX_FRAMES);
	rnic->count[RNIC_C_TX_BYTES] += frame->len;
	port->count[RNIC_PORT_C_TX_FRAMES]++;
	port->count[RNIC_PORT_C_TX_BYTES] += frame->len;
	if (copy || frame->loopback)
		take_back(rnic, frame, now);
	return !frame->loopback;
}

bool rnic_tx(struct rnic *rnic, unsigned ports, struct rnic_frame *frame, uint64_t now)
{
	struct sending s;

	s.ports = ports & rnic->up;
	s.lanes = lanes_of(rnic, s.ports);
	for (unsigned i = 0; i < LOOPBACK_MAX; i++) {
		if (cq_unsettled(rnic))
			cq_settle(rnic);
		sched_collect(rnic);
		frame->stays = frame->unsealed = false;
		if (!tx_control(rnic, frame, &s, now) && !tx_reply(rnic, frame, &s) &&
			!tx_request(rnic, frame, &s, now) &&
			!tx_control(rnic, frame, &s, now)) { /* a READ that failed just now */
			if (cq_unsettled(rnic))
				continue;
			if ((rnic->has_ready | rnic->has_controls | rnic->has_replies) == 0)
				atomic_store_explicit(&rnic->left, false, memory_order_relaxed);
			return false;
		}
		if (leaves(rnic, frame, now))
			return true;
	}
	return false;
}

/* Another request right behind one, while nothing else has become due: as rnic_tx would find. */
static bool tx_more(
	struct rnic *rnic, const struct sending *s, struct rnic_frame *frame, uint64_t now)
{
	struct sending more = *s;

	if (cq_unsettled(rnic) || rnic_rang(rnic) ||
		((rnic->has_controls | rnic->has_replies) & s->lanes) != 0)
		return false;
	frame->stays = frame->unsealed = false;
	return tx_request(rnic, frame, &more, now) && leaves(rnic, frame, now);
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
