/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator by multicast whose chunks are RDMA WRITEs (multicast AllGather, appendix C): the
 * device places them in the result, so each collective opens a window on its own. The key is drawn
 * by all ranks together and goes up by one with every collective: what comes too late, or from who
 * has not been told the key, is not placed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
	if (!c->conf.window)
		c->conf.window = ccl_device_window(c->conf.context);
	if (!c->conf.create || !c->conf.window) {
		snprintf(err, CCL_ERR_LEN,
			"rank %u: multicast: transport uc: device %s has no multicast of RDMA "
			"WRITEs, an extension of the software RNIC",
			c->conf.rank, ibv_get_device_name(c->conf.context->device));
		return -EOPNOTSUPP;
	}
	rc = ccl_random(&c->own_key, sizeof(c->own_key));
	if (rc)
		return mc_say(c, err, "random bytes", -rc);
	c->writer = calloc(c->conf.n_ranks, sizeof(*c->writer));
	return c->writer ? 0 : mc_say(c, err, "memory", ENOMEM);
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

int mc_uc_begin(struct ccl_mcast *c)
{
	const struct mcast *m = &c->core;
	struct inc_dv_mcast_window window = {.key = c->key + m->id,
		.number_mask = (1u << MC_PSN_BITS) - 1,
		.mr = c->buf_mr,
		.addr = c->buf,
		.length = m->n_blocks * m->block_bytes,
		.writer = c->writer};
	int rc = 0;

	for (uint32_t i = 0; i < m->n_blocks; i++) {
		const unsigned root = mcast_root(m, i);
		struct inc_dv_mcast_writer *w = &c->writer[window.n_writers];

		if (root == c->conf.rank)
			continue;
		*w = (struct inc_dv_mcast_writer){.length = m->block_bytes};
		memcpy(w->gid.raw, c->rank[root].ip.b, sizeof(w->gid.raw));
		w->offset = mcast_part(m, i, &w->first);
		window.n_writers++;
	}
	for (unsigned i = 0; rc == 0 && window.n_writers > 0 && i < c->conf.trees; i++)
		rc = c->conf.window(c->tree[i].qp, &window);
	return rc;
}

void mc_uc_end(struct ccl_mcast *c)
{
	for (unsigned i = 0; c->conf.uc && i < c->conf.trees; i++)
		c->conf.window(c->tree[i].qp, NULL);
}
