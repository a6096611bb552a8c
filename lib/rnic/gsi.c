/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pair 1 (IBTA vol. 1, 10.2.4.1, 13.5): it has no queues; what comes is handed on, what goes
 * waits with the answers to ARP. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/ah.h"
#include "lib/rnic/device.h"
#include "lib/rnic/gsi.h"
#include "lib/wire/cm.h"
#include "lib/wire/psn.h"

unsigned gsi_rx(struct rnic *rnic, unsigned port, const uint8_t *frame, const struct wire_pkt *pkt)
{
	const struct rnic_mad mad = {pkt->src, pkt->dst, pkt->tos, (uint8_t)port};

	if (rnic->events.mad == NULL)
		return RNIC_DROP_NO_QP;
	if (pkt->opcode != (ROCE_UD | ROCE_SEND_ONLY))
		return RNIC_DROP_QP_TYPE;
	if (pkt->qkey != CM_QKEY)
		return RNIC_DROP_QKEY;
	if (pkt->sqpn != CM_QPN || pkt->pay_len != CM_MAD_LEN)
		return RNIC_DROP_MAD;
	return rnic->events.mad(rnic->events.arg, &mad, frame + pkt->pay_off);
}

int rnic_mad_send(
	struct rnic *rnic, const struct rnic_mad *mad, const uint8_t dmac[6], const uint8_t *data)
{
	struct wire_hdr hdr = {.opcode = ROCE_UD | ROCE_SEND_ONLY,
		.mig = true,
		.sqpn = CM_QPN,
		.dqpn = CM_QPN,
		.qkey = CM_QKEY};
	struct rnic_path path;
	uint8_t *out;
	int len;

	if (mad->port >= rnic->n_ports || rnic_own_ip(rnic, mad->port, &mad->src) < 0)
		return -EINVAL;
	out = rnic_reply(rnic, mad->port);
	if (out == NULL)
		return -ENOSPC;
	path = path_between(rnic, mad->port, &mad->src, &mad->dst, mad->tos);
	path.flow.sport = ud_source_port(CM_QPN);
	memcpy(path.flow.dmac, dmac, sizeof(path.flow.dmac));
	hdr.psn = rnic->gsi_psn++ & PSN_MASK;
	hdr.ip_id = rnic->ip_id++;
	len = wire_build_frame(
		out, rnic->port[path.port].reply_cap, &path.flow, &hdr, data, CM_MAD_LEN);
	rnic_reply_send(rnic, path.port, len);
	return len < 0 ? len : 0;
}
