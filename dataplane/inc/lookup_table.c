/* SPDX-License-Identifier: BSD-3-Clause */
/* LookupTable: two array reads from the destination QPN, then the checks of
 * docs/inc-protocol.md 1.5 in their order. */
#include "dataplane/inc/engine.h"
#include "dataplane/inc/seeded_bugs.h"

/* Class of a NAK. Reserved codes say nothing (IBTA vol. 1, table 59). */
static enum inc_drop classify_nak(uint8_t code, uint8_t *cls)
{
	*cls = code == ROCE_NAK_SEQUENCE ? INC_CLASS_NAK : INC_CLASS_FATAL;
	return code <= ROCE_NAK_INVALID_RD ? INC_OK : INC_DROP_NAK_CODE;
}

/* Class by opcode. INC_DROP_OPCODE: no collective uses it. */
static enum inc_drop classify(const struct inc_group *g, const struct wire_pkt *pkt, uint8_t *cls)
{
	if (pkt->opcode == ROCE_CNP) {
		*cls = INC_CLASS_CNP;
		return INC_OK;
	}
	if ((pkt->opcode & ~ROCE_OP_MASK) != inc_transport(g))
		return INC_DROP_OPCODE;
	switch (pkt->opcode & ROCE_OP_MASK) {
	case ROCE_WRITE_FIRST:
	case ROCE_WRITE_MIDDLE:
	case ROCE_WRITE_LAST_IMM:
	case ROCE_WRITE_ONLY_IMM:
		*cls = INC_CLASS_DATA;
		return g->flags & INC_F_WRITE ? INC_OK : INC_DROP_OPCODE;
	case ROCE_SEND_ONLY_IMM:
		*cls = INC_CLASS_CTRL;
		return INC_OK;
	case ROCE_SEND_FIRST:
	case ROCE_SEND_MIDDLE:
	case ROCE_SEND_LAST:
	case ROCE_SEND_ONLY:
		*cls = INC_CLASS_DATA;
		return INC_OK;
	case ROCE_ACK:
		break;
	default:
		return INC_DROP_OPCODE;
	}
	switch (pkt->syndrome & ROCE_AETH_CLASS) {
	case ROCE_AETH_ACK:
		*cls = INC_CLASS_ACK;
		return INC_OK;
	case ROCE_AETH_RNR:
		*cls = INC_CLASS_RNR;
		return INC_OK;
	case ROCE_AETH_NAK:
		return classify_nak(pkt->syndrome & ROCE_AETH_VALUE, cls);
	default:
		return INC_DROP_OPCODE;
	}
}

enum inc_drop inc_lookup(const struct inc_table *table, const struct wire_pkt *pkt,
	uint16_t in_port, struct inc_look *look)
{
	struct inc_group *g =
		__atomic_load_n(&table->group[inc_qpn_slot(pkt->dqpn)], __ATOMIC_ACQUIRE);
	unsigned index = inc_qpn_ep(pkt->dqpn);
	const struct inc_ep *ep;
	enum inc_drop drop;

	if (g == NULL || g->mode == INC_MODE_1) /* its QPNs are the RNIC's */
		return INC_DROP_NO_GROUP;
	if (g->gen != inc_qpn_gen(pkt->dqpn) && !INC_BUG(GEN))
		return INC_DROP_GENERATION;
	if (index >= g->n_ep)
		return INC_DROP_NO_ENDPOINT;
	ep = inc_ep_at(g, index);
	if (!wire_ip_eq(&pkt->src, &ep->flow.dst) || !wire_ip_eq(&pkt->dst, &ep->flow.src))
		return INC_DROP_SOURCE;
	if ((g->flags & INC_F_STRICT_PORT) && in_port != ep->port)
		return INC_DROP_PORT;
	if ((pkt->vlan ^ ep->flow.vlan) & WIRE_VLAN_ID)
		return INC_DROP_VLAN;
	if (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == INC_INSTALLED)
		return INC_DROP_GROUP_STATE;
	drop = classify(g, pkt, &look->cls);
	if (drop != INC_OK)
		return drop;
	if (pkt->pay_len > g->mtu)
		return INC_DROP_LENGTH;
	look->group = g;
	look->ep = (uint8_t)index;
	return INC_OK;
}
