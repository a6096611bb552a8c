/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs objects of a communicator: queue pairs, memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/verbs/incline_dv.h"

enum { PAGE = 4096 };

/* docs/inc-protocol.md, 2.4: attributes of host queue pairs. */
enum {
	QP_RNR_RETRY = 7, /* endless */
	QP_RETRY_CNT = 7,
	QP_MIN_RNR_TIMER = 12,   /* 0.64 ms */
	QP_TIMEOUT = 14,         /* 67 ms */
	QP_PATIENT_TIMEOUT = 18, /* 1.1 s */
	QP_HOP_LIMIT = 64,
};

/* ---- groups of a kind ---- */

static bool uses(unsigned collectives, enum ccl_collective a, enum ccl_collective b)
{
	return collectives & (1u << a | 1u << b);
}

unsigned ccl_count_groups(enum ccl_kind kind, unsigned collectives, unsigned n_ranks)
{
	if (kind != CCL_SINGLE || n_ranks == 1)
		return 1;
	return 1 + (uses(collectives, CCL_REDUCE, CCL_REDUCE_SCATTER) ? n_ranks : 0) +
	       (uses(collectives, CCL_BROADCAST, CCL_ALLGATHER) ? n_ranks : 0);
}

void ccl_describe_group(enum ccl_kind kind, unsigned collectives, unsigned n_ranks, unsigned i,
	enum ccl_prim *prim, unsigned *root)
{
	const bool reduces = uses(collectives, CCL_REDUCE, CCL_REDUCE_SCATTER);

	*prim = CCL_PRIM_AR;
	*root = 0;
	if (kind != CCL_SINGLE || i == 0)
		return;
	*prim = reduces && i <= n_ranks ? CCL_PRIM_RED : CCL_PRIM_BC;
	*root = (i - 1) % n_ranks;
}

/* A share for each when the groups of all roots are in use: R of them would queue R windows in the
 * switches. And a switch keeps slots for two windows of each group that adds: the Reduce groups of
 * all roots get the memory of two AllReduce groups together. */
unsigned ccl_group_window(
	enum ccl_kind kind, enum ccl_prim prim, bool shared, unsigned w, unsigned n_ranks)
{
	const unsigned share = 2 * w / n_ranks;

	if (kind != CCL_SINGLE || prim == CCL_PRIM_AR || share >= w || w < 2)
		return w;
	if (prim == CCL_PRIM_BC && !shared)
		return w;
	return share > 2 ? share : 2;
}

/* ---- queue pair ---- */

static int modify(
	struct ccl_memb *mb, const char *to, struct ibv_qp_attr *attr, int mask, char *err)
{
	int rc = ccl_modify_qp(mb->qp, attr, mask);

	if (rc == 0)
		return 0;
	snprintf(err, CCL_ERR_LEN, "rank %u: queue pair to %s: %s%s", mb->comm->rank, to,
		strerror(rc),
		rc == ETIMEDOUT || rc == EHOSTUNREACH ? " (the switch did not answer ARP)" : "");
	return -rc;
}

static int to_init(struct ccl_memb *mb, char *err)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = mb->comm->port,
		.qp_access_flags = mb->comm->write ? IBV_ACCESS_REMOTE_WRITE : 0};

	return modify(mb, "INIT", &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, err);
}

static int to_rtr(struct ccl_memb *mb, uint32_t psn, char *err)
{
	const struct ccl_comm *c = mb->comm;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)(__builtin_ctz(c->mtu) - 7),
		.dest_qp_num = mb->remote_qpn,
		.rq_psn = psn,
		.min_rnr_timer = QP_MIN_RNR_TIMER,
		.ah_attr =
			{
				.is_global = 1,
				.port_num = c->port,
				.grh = {.sgid_index = c->gid_index, .hop_limit = QP_HOP_LIMIT},
			},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, c->remote_ip.b, 16);
	return modify(mb, "RTR", &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		err);
}

/* Without RNR NAKs from the switch only patience holds a rank that waits for others: in Mode-II its
 * packets are acknowledged when all are done, in Mode-III when there is room. */
static unsigned qp_timeout(const struct ccl_comm *c)
{
	bool waits = c->mode == CCL_MODE_2 || c->mode == CCL_MODE_3;

	return waits && !c->stall_rnr ? QP_PATIENT_TIMEOUT : QP_TIMEOUT;
}

static int to_rts(struct ccl_memb *mb, uint32_t psn, char *err)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = (uint8_t)qp_timeout(mb->comm),
		.retry_cnt = QP_RETRY_CNT,
		.rnr_retry = QP_RNR_RETRY,
	};

	return modify(mb, "RTS", &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
		err);
}

void ccl_qp_to_error(struct ccl_comm *c)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	for (unsigned i = 0; i < c->n_memb; i++)
		if (c->memb[i].qp)
			(void)ibv_modify_qp(c->memb[i].qp, &attr, IBV_QP_STATE);
}

struct ibv_qp *ccl_qp_of(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type,
	unsigned sends, unsigned receives)
{
	struct ibv_qp_init_attr init = {.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = sends,
			.max_recv_wr = receives,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	return ibv_create_qp(pd, &init);
}

static int make_qp(struct ccl_memb *mb)
{
	struct ccl_comm *c = mb->comm;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.cap = {.max_send_wr = mb->n_send ? mb->n_send : 1,
			.max_recv_wr = mb->max_recv ? mb->max_recv : 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	mb->qp = c->selective ? c->create(c->pd, &init, INC_DV_QP_SELECTIVE)
			      : ibv_create_qp(c->pd, &init);
	return mb->qp ? 0 : -errno;
}

static int make_stage(struct ccl_memb *mb, char *err)
{
	struct ccl_comm *c = mb->comm;
	const size_t len = c->slot_len * (mb->n_send + mb->n_recv);

	if (posix_memalign((void **)&mb->stage, PAGE, len)) {
		mb->stage = NULL;
		snprintf(err, CCL_ERR_LEN, "no memory for %zu bytes of message buffers", len);
		return -ENOMEM;
	}
	memset(mb->stage, 0, len);
	mb->stage_mr = ibv_reg_mr(c->pd, mb->stage, len, IBV_ACCESS_LOCAL_WRITE);
	if (mb->stage_mr)
		return 0;
	snprintf(err, CCL_ERR_LEN,
		"registering %zu bytes: %s (is the limit on locked memory, "
		"ulimit -l, high enough?)",
		len, strerror(errno));
	return -errno;
}

/* Memory that the switch writes results to, if this rank gets any in the group. */
static int make_inbox(struct ccl_memb *mb, char *err)
{
	struct ccl_comm *c = mb->comm;

	if (!c->write || mb->n_recv == 0)
		return 0;
	mb->n_inbox = mb->n_recv + 1;
	if (posix_memalign((void **)&mb->inbox, PAGE, mb->n_inbox * c->slot_len)) {
		mb->inbox = NULL;
		snprintf(err, CCL_ERR_LEN, "no memory for %zu bytes of results",
			mb->n_inbox * c->slot_len);
		return -ENOMEM;
	}
	memset(mb->inbox, 0, mb->n_inbox * c->slot_len);
	mb->inbox_mr = ibv_reg_mr(c->pd, mb->inbox, mb->n_inbox * c->slot_len,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (mb->inbox_mr)
		return 0;
	snprintf(err, CCL_ERR_LEN, "registering memory for results: %s", strerror(errno));
	return -errno;
}

/* ---- joining and leaving ---- */

static void init_memb(struct ccl_comm *c, unsigned i)
{
	struct ccl_memb *mb = &c->memb[i];
	bool sends = true, receives = true;

	mb->comm = c;
	mb->number = i;
	mb->mixed = c->kind == CCL_MIXED;
	ccl_describe_group(c->kind, c->collectives, c->n_ranks, i, &mb->prim, &mb->root);
	if (!mb->mixed && mb->prim != CCL_PRIM_AR) {
		sends = (mb->root == c->rank) == (mb->prim == CCL_PRIM_BC);
		receives = !sends;
	}
	mb->w = ccl_group_window(c->kind, mb->prim, false, c->w, c->n_ranks);
	mb->share = ccl_group_window(c->kind, mb->prim, true, c->w, c->n_ranks);
	mb->n_send = sends ? mb->w : 0;
	mb->n_recv = receives ? mb->w + CCL_RECV_EXTRA : 0;
	mb->max_recv = receives ? CCL_RECV_AHEAD * mb->w + CCL_RECV_EXTRA : 0;
}

static int join_failed(struct ccl_comm *c, const char *what, int rc, char *err)
{
	snprintf(err, CCL_ERR_LEN, "rank %u: making a %s on %s: %s", c->rank, what,
		ibv_get_device_name(c->context->device), strerror(-rc));
	ccl_leave(c);
	return rc;
}

int ccl_join(struct ccl_comm *c, enum ccl_kind kind, unsigned collectives, char err[CCL_ERR_LEN])
{
	const unsigned n = ccl_count_groups(kind, collectives, c->n_ranks);
	unsigned cqe = 0;
	int rc;

	c->memb = calloc(n, sizeof(*c->memb));
	if (!c->memb)
		return join_failed(c, "table of groups", -ENOMEM, err);
	c->n_memb = n;
	c->kind = kind;
	c->collectives = collectives;
	for (unsigned i = 0; i < n; i++) {
		init_memb(c, i);
		cqe += c->memb[i].n_send + c->memb[i].max_recv;
	}
	c->cq = ibv_create_cq(c->context, (int)cqe, c, c->channel, 0);
	if (!c->cq)
		return join_failed(c, "completion queue", -errno, err);
	for (unsigned i = 0; i < n; i++) {
		rc = make_qp(&c->memb[i]);
		if (rc)
			return join_failed(c, "queue pair", rc, err);
		rc = to_init(&c->memb[i], err);
		if (rc == 0)
			rc = make_inbox(&c->memb[i], err);
		if (rc) {
			ccl_leave(c);
			return rc;
		}
	}
	return 0;
}

/* Objects in the order in which they depend on one another; any may be missing. */
void ccl_leave(struct ccl_comm *c)
{
	for (unsigned i = 0; i < c->n_memb; i++) {
		struct ccl_memb *mb = &c->memb[i];

		if (mb->qp)
			ibv_destroy_qp(mb->qp);
		if (mb->stage_mr)
			ibv_dereg_mr(mb->stage_mr);
		if (mb->inbox_mr)
			ibv_dereg_mr(mb->inbox_mr);
		free(mb->stage);
		free(mb->inbox);
	}
	free(c->memb);
	c->memb = NULL;
	c->n_memb = 0;
	if (c->cq)
		ibv_destroy_cq(c->cq);
	c->cq = NULL;
}

/* ---- connecting ---- */

int ccl_connect_memb(struct ccl_memb *mb, const struct ccl_remote *remote, char *err)
{
	int rc;

	mb->remote_qpn = remote->qpn;
	mb->start_psn = mb->next_psn = remote->start_psn & 0xffffff;
	if ((rc = make_stage(mb, err)) || (rc = to_rtr(mb, mb->start_psn, err)))
		return rc;
	return to_rts(mb, mb->start_psn, err);
}

int ccl_memb_anew(struct ccl_memb *mb, uint32_t psn, char *err)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	int rc = modify(mb, "RESET", &attr, IBV_QP_STATE, err);

	if (rc || (rc = to_init(mb, err)) || (rc = to_rtr(mb, psn, err)))
		return rc;
	return to_rts(mb, psn, err);
}
