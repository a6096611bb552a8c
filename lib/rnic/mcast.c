/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: which QPs of this device are attached to which, and what others are told of it.
 */
#include <errno.h>
#include <string.h>

#include "lib/rnic/device.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/transport.h"
#include "lib/rnic/worker.h"
#include "lib/wire/membership.h"
#include "lib/wire/multicast.h"

/* Of the port, for what is said to its link about a group: NULL if it has none of the family. */
static const struct wire_ip *source(const struct rnic_port *port, bool ip4)
{
	for (unsigned i = 0; i < port->n_gid; i++)
		if (wire_ip_is4(&port->gid[i]) == ip4) /* in IPv6 the first is link-local */
			return &port->gid[i];
	return NULL;
}

/* To the switches and bridges behind the port (IGMP, MLD). False if too many frames wait. */
static bool say(struct rnic *rnic, unsigned port, const struct wire_ip *group, bool joins)
{
	const struct wire_ip *src = source(&rnic->port[port], wire_ip_is4(group));
	uint8_t *out;

	if (src == NULL || wire_multicast_stays(group))
		return true;
	out = rnic_reply(rnic, port);
	if (out == NULL)
		return false;
	rnic_reply_send(rnic, port,
		wire_build_membership_report(
			out, rnic->port[port].reply_cap, rnic->port[port].mac, src, group, joins));
	return true;
}

void mcast_report(struct rnic *rnic, unsigned port)
{
	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		struct mcast *m = &rnic->mcast[i];

		if (!m->due || m->qp->path.port != port)
			continue;
		if (!say(rnic, port, &m->group, true))
			return;
		m->due = false;
	}
	rnic->reports_due &= ~(1u << port);
}

/* Its report leaves now, or as soon as fewer frames wait. */
static void owe(struct rnic *rnic, struct mcast *m)
{
	m->due = true;
	rnic->reports_due |= 1u << m->qp->path.port;
}

/* The first of the port and the group, or NULL. */
static struct mcast *first(struct rnic *rnic, unsigned port, const struct wire_ip *group)
{
	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		if (rnic->mcast[i].qp->path.port == port &&
			wire_ip_eq(&rnic->mcast[i].group, group))
			return &rnic->mcast[i];
	}
	return NULL;
}

bool mcast_member(struct rnic *rnic, unsigned port, const struct wire_ip *group)
{
	return first(rnic, port, group) != NULL;
}

bool mcast_other_member(const struct rnic_qp *qp, const struct wire_ip *group)
{
	const struct rnic *rnic = qp->rnic;

	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		const struct mcast *m = &rnic->mcast[i];

		if (m->qp != qp && m->qp->path.port == qp->path.port &&
			wire_ip_eq(&m->group, group))
			return true;
	}
	return false;
}

static struct mcast *find(struct rnic *rnic, const struct wire_ip *group, const struct rnic_qp *qp)
{
	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		if (rnic->mcast[i].qp == qp && wire_ip_eq(&rnic->mcast[i].group, group))
			return &rnic->mcast[i];
	}
	return NULL;
}

/* m: of the device's list. */
static void forget(struct rnic *rnic, struct mcast *m)
{
	const struct mcast gone = *m;
	struct mcast *other;

	workers_hold(rnic);
	*m = rnic->mcast[--rnic->n_mcast];
	workers_let_go(rnic);
	other = first(rnic, gone.qp->path.port, &gone.group);
	/* That nobody is left, where too many frames wait, is learnt from the next query. */
	if (other == NULL)
		say(rnic, gone.qp->path.port, &gone.group, false);
	else if (gone.due)
		owe(rnic, other);
}

int rnic_qp_attach_mcast(struct rnic_qp *qp, const struct wire_ip *group)
{
	struct rnic *rnic = qp->rnic;
	bool joins;

	if ((qp->init.type != IBV_QPT_UD && !qp->ops->multicast) || !wire_is_multicast(group))
		return -EINVAL;
	if (find(rnic, group, qp) != NULL)
		return 0;
	if (rnic->n_mcast == MAX_MCAST)
		return -ENOMEM;
	joins = !mcast_member(rnic, qp->path.port, group);
	workers_hold(rnic);
	rnic->mcast[rnic->n_mcast++] = (struct mcast){.group = *group, .qp = qp};
	workers_let_go(rnic);
	if (joins) {
		owe(rnic, &rnic->mcast[rnic->n_mcast - 1]);
		mcast_report(rnic, qp->path.port);
	}
	return 0;
}

int rnic_qp_detach_mcast(struct rnic_qp *qp, const struct wire_ip *group)
{
	struct mcast *m = find(qp->rnic, group, qp);

	if (m == NULL)
		return -EINVAL;
	forget(qp->rnic, m);
	return 0;
}

void mcast_forget(struct rnic_qp *qp)
{
	struct rnic *rnic = qp->rnic;

	for (uint32_t i = rnic->n_mcast; i-- > 0;) {
		if (rnic->mcast[i].qp == qp)
			forget(rnic, &rnic->mcast[i]);
	}
}

unsigned mcast_worker(const struct rnic *rnic, unsigned port, const struct wire_ip *group)
{
	unsigned worker = 0;

	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		const struct rnic_qp *qp = rnic->mcast[i].qp;

		if (qp->path.port != port || !wire_ip_eq(&rnic->mcast[i].group, group))
			continue;
		if (qp->worker == 0 || (worker != 0 && worker != qp->worker))
			return 0;
		worker = qp->worker;
	}
	return worker;
}

static bool pinned_member(const struct rnic *rnic, unsigned port, const struct wire_ip *group)
{
	for (uint32_t i = 0; rnic->n_pinned > 0 && i < rnic->n_mcast; i++) {
		const struct rnic_qp *qp = rnic->mcast[i].qp;

		if (qp->worker != 0 && qp->path.port == port &&
			wire_ip_eq(&rnic->mcast[i].group, group))
			return true;
	}
	return false;
}

/* A member that hears of the packet where the worker, or the owner, delivers it. */
static bool hears(const struct mcast *m, unsigned worker, unsigned port, const struct wire_pkt *pkt)
{
	return m->qp->path.port == port && wire_ip_eq(&m->group, &pkt->dst) &&
	       (worker == 0 || worker == m->qp->worker);
}

/* Why it takes no packet of this kind, or 0. */
static unsigned refused(const struct rnic_qp *qp, const struct wire_pkt *pkt)
{
	if (!qp_receives(qp))
		return RNIC_DROP_QP_STATE;
	return (pkt->opcode & ~ROCE_OP_MASK) == qp->ops->opcodes ? 0 : RNIC_DROP_QP_TYPE;
}

struct rnic_qp *mcast_only(
	const struct rnic *rnic, unsigned worker, unsigned port, const struct wire_pkt *pkt)
{
	struct rnic_qp *only = NULL;

	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		if (!hears(&rnic->mcast[i], worker, port, pkt))
			continue;
		if (only != NULL)
			return NULL;
		only = rnic->mcast[i].qp;
	}
	return only != NULL && only->worker == worker && pkt->dqpn == MULTICAST_QPN &&
			       refused(only, pkt) == 0
		       ? only
		       : NULL;
}

static unsigned deliver(struct rnic *rnic, unsigned worker, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	unsigned drop = RNIC_DROP_NOT_MINE;
	bool taken = false;

	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		struct rnic_qp *qp = rnic->mcast[i].qp;

		if (!hears(&rnic->mcast[i], worker, port, pkt))
			continue;
		drop = refused(qp, pkt);
		if (drop == 0)
			drop = qp->ops->rx(qp, port, frame, pkt, now);
		taken = taken || drop == 0;
	}
	return taken ? 0 : drop;
}

unsigned mcast_rx(struct rnic *rnic, unsigned worker, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	if (pkt->dqpn != MULTICAST_QPN)
		return RNIC_DROP_NO_QP;
	if (worker == 0 && pinned_member(rnic, port, &pkt->dst))
		workers_hold_rx(rnic);
	return deliver(rnic, worker, port, frame, pkt, now);
}

unsigned mcast_query(
	struct rnic *rnic, unsigned port, const uint8_t *frame, const struct wire_pkt *pkt)
{
	struct wire_membership m;

	if (rnic->n_mcast == 0 || pkt->ttl != 1 ||
		wire_membership_parse(frame + pkt->l3_off, (size_t)pkt->end - pkt->l3_off, &m) <
			0 ||
		m.kind != MEMBERSHIP_QUERY)
		return RNIC_DROP_NOT_ROCE;
	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		struct mcast *mine = &rnic->mcast[i];

		if (mine->qp->path.port == port && wire_ip_is4(&mine->group) == m.ip4 &&
			(wire_ip_is_zero(&m.group) || wire_ip_eq(&m.group, &mine->group)) &&
			first(rnic, port, &mine->group) == mine)
			owe(rnic, mine);
	}
	mcast_report(rnic, port);
	return 0;
}
