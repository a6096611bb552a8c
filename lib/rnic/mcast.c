/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: which QPs of this device are attached to which. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/device.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/transport.h"
#include "lib/wire/multicast.h"

static struct mcast *find(struct rnic *rnic, const struct wire_ip *group, const struct rnic_qp *qp)
{
	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		if (rnic->mcast[i].qp == qp && wire_ip_eq(&rnic->mcast[i].group, group))
			return &rnic->mcast[i];
	}
	return NULL;
}

int rnic_qp_attach_mcast(struct rnic_qp *qp, const struct wire_ip *group)
{
	struct rnic *rnic = qp->rnic;

	if (qp->init.type != IBV_QPT_UD || !wire_is_multicast(group))
		return -EINVAL;
	if (find(rnic, group, qp) != NULL)
		return 0;
	if (rnic->n_mcast == MAX_MCAST)
		return -ENOMEM;
	rnic->mcast[rnic->n_mcast++] = (struct mcast){*group, qp};
	return 0;
}

int rnic_qp_detach_mcast(struct rnic_qp *qp, const struct wire_ip *group)
{
	struct mcast *m = find(qp->rnic, group, qp);

	if (m == NULL)
		return -EINVAL;
	*m = qp->rnic->mcast[--qp->rnic->n_mcast];
	return 0;
}

void mcast_forget(struct rnic_qp *qp)
{
	struct rnic *rnic = qp->rnic;

	for (uint32_t i = rnic->n_mcast; i-- > 0;) {
		if (rnic->mcast[i].qp == qp)
			rnic->mcast[i] = rnic->mcast[--rnic->n_mcast];
	}
}

bool mcast_member(const struct rnic *rnic, unsigned port, const struct wire_ip *group)
{
	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		if (rnic->mcast[i].qp->port == port && wire_ip_eq(&rnic->mcast[i].group, group))
			return true;
	}
	return false;
}

unsigned mcast_rx(struct rnic *rnic, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now)
{
	unsigned drop = RNIC_DROP_NOT_MINE;
	bool taken = false;

	if (pkt->dqpn != MULTICAST_QPN)
		return RNIC_DROP_NO_QP;
	for (uint32_t i = 0; i < rnic->n_mcast; i++) {
		struct rnic_qp *qp = rnic->mcast[i].qp;

		if (qp->port != port || !wire_ip_eq(&rnic->mcast[i].group, &pkt->dst))
			continue;
		if (!qp_receives(qp))
			drop = RNIC_DROP_QP_STATE;
		else if ((pkt->opcode & ~ROCE_OP_MASK) != qp->ops->opcodes)
			drop = RNIC_DROP_QP_TYPE;
		else
			drop = qp->ops->rx(qp, port, frame, pkt, now);
		taken = taken || drop == 0;
	}
	return taken ? 0 : drop;
}
