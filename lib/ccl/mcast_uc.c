/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator by multicast whose chunks are RDMA WRITEs (multicast AllGather, appendix C): the
 * device places them in the window of the collective (mcast_marks.c), whose key is drawn
 * by all ranks together and goes up by one with every collective: what comes too late, or from who
 * has not been told the key, is not placed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/mcast_priv.h"
#include "lib/ccl/random.h"
#include "lib/verbs/incline_dv.h"

enum { HOP_LIMIT = 64 };

int mc_uc_open(struct ccl_mcast *c, char *err)
{
	int rc;

	if (!c->conf.create)
		c->conf.create = ccl_device_create(c->conf.context);
	if (!c->conf.create || !c->conf.window) {
		snprintf(err, CCL_ERR_LEN,
			"rank %u: multicast: transport uc: device %s has no multicast of RDMA "
			"WRITEs, an extension of the software RNIC",
			c->conf.rank, ibv_get_device_name(c->conf.context->device));
		return -EOPNOTSUPP;
	}
	rc = ccl_random(&c->own_key, sizeof(c->own_key));
	return rc ? mc_say(c, err, "random bytes", -rc) : 0;
}

static enum ibv_mtu mtu_code(unsigned bytes)
{
	return (enum ibv_mtu)(__builtin_ctz(bytes) - 7);
}

int mc_uc_join(struct ccl_mcast *c, unsigned tree)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(c->mtu),
		.dest_qp_num = MC_QPN,
		.ah_attr = {.is_global = 1,
			.port_num = c->conf.port,
			.grh = {.sgid_index = c->conf.gid_index, .hop_limit = HOP_LIMIT}}};
	struct ibv_qp *qp = c->tree[tree].qp;
	int rc;

	memcpy(attr.ah_attr.grh.dgid.raw, c->tree[tree].group.b, sizeof(attr.ah_attr.grh.dgid.raw));
	rc = ccl_modify_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
	attr.qp_state = IBV_QPS_RTS;
	return rc ? rc : ccl_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}
