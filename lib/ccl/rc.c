/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/rc.h"

#include <errno.h>
#include <string.h>

int ccl_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	enum { TRIES = 4 };
	int rc = 0;

	for (unsigned i = 0; i < TRIES; i++) {
		rc = ibv_modify_qp(qp, attr, mask);
		if (rc < 0)
			rc = errno;
		if (rc != ETIMEDOUT)
			break;
	}
	return rc;
}

enum {
	/* as of a ring's connections (docs/inc-protocol.md, 2.4) */
	RNR_RETRY = 7,
	RETRY_CNT = 7,
	MIN_RNR_TIMER = 12,
	TIMEOUT = 14,
	HOP_LIMIT = 64,
};

int ccl_rc_init(struct ibv_qp *qp, uint8_t port)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = port,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ};

	return ccl_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int ccl_rc_connect(struct ibv_qp *qp, const struct ccl_rc_peer *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)(__builtin_ctz(peer->mtu) - 7),
		.dest_qp_num = peer->qpn,
		.max_dest_rd_atomic = peer->reads,
		.min_rnr_timer = MIN_RNR_TIMER,
		.ah_attr = {.is_global = 1,
			.port_num = peer->port,
			.grh = {.sgid_index = peer->gid_index, .hop_limit = HOP_LIMIT}}};
	int rc;

	memcpy(attr.ah_attr.grh.dgid.raw, peer->ip.b, sizeof(attr.ah_attr.grh.dgid.raw));
	rc = ccl_modify_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc)
		return rc;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = TIMEOUT,
		.retry_cnt = RETRY_CNT,
		.rnr_retry = RNR_RETRY,
		.max_rd_atomic = peer->reads};
	return ccl_modify_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}
