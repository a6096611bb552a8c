/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs objects of a ring: two queue pairs, one completion queue, one registered block of slots. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/ring_priv.h"

static const uint64_t DEFAULT_TIMEOUT_NS = 10000000000ull;
enum { PAGE = 4096, MAX_M = 1024, MAX_W = 1024, MIN_MTU = 256 };

/* docs/inc-protocol.md, 2.4 */
enum {
	QP_RNR_RETRY = 7, /* endless */
	QP_RETRY_CNT = 7,
	QP_MIN_RNR_TIMER = 12, /* 0.64 ms */
	QP_TIMEOUT = 14,       /* 67 ms */
	QP_HOP_LIMIT = 64,
};

/* ---- state changes ---- */

static int modify(const struct ccl_ring *r, struct ibv_qp *qp, unsigned peer, const char *to,
	struct ibv_qp_attr *attr, int mask, char *err)
{
	int rc = ccl_modify_qp(qp, attr, mask);

	if (rc == 0)
		return 0;
	snprintf(err, CCL_ERR_LEN, "rank %u: queue pair of rank %u to %s: %s%s",
		ring_known_as(r, r->rank), ring_known_as(r, peer), to, strerror(rc),
		rc == ETIMEDOUT || rc == EHOSTUNREACH ? " (nobody answered ARP for it)" : "");
	return -rc;
}

static int to_init(const struct ccl_ring *r, struct ibv_qp *qp, char *err)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = r->conf.port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	return modify(r, qp, r->rank, "INIT", &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, err);
}

static int connect_qp(const struct ccl_ring *r, struct ibv_qp *qp, unsigned peer,
	const struct ccl_ring_address *at, uint32_t qpn, char *err)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)(__builtin_ctz(r->mtu) - 7),
		.dest_qp_num = qpn,
		.rq_psn = at->start_psn & 0xffffff,
		.min_rnr_timer = QP_MIN_RNR_TIMER,
		.ah_attr =
			{
				.is_global = 1,
				.port_num = r->conf.port,
				.grh = {.sgid_index = r->conf.gid_index, .hop_limit = QP_HOP_LIMIT},
			},
	};
	int rc;

	memcpy(attr.ah_attr.grh.dgid.raw, at->ip.b, 16);
	rc = modify(r, qp, peer, "RTR", &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		err);
	if (rc)
		return rc;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = r->conf.start_psn & 0xffffff,
		.timeout = QP_TIMEOUT,
		.retry_cnt = QP_RETRY_CNT,
		.rnr_retry = QP_RNR_RETRY,
	};
	return modify(r, qp, peer, "RTS", &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
		err);
}

void ring_qps_to_error(struct ccl_ring *r)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (r->next)
		(void)ibv_modify_qp(r->next, &attr, IBV_QP_STATE);
	if (r->prev)
		(void)ibv_modify_qp(r->prev, &attr, IBV_QP_STATE);
}

/* ---- opening ---- */

static int check_conf(const struct ccl_ring_conf *conf, char *err)
{
	const char *wrong = NULL;

	if (conf->n_ranks < 1 || conf->n_ranks > CCL_RING_MAX_RANKS || conf->rank >= conf->n_ranks)
		wrong = "rank or n_ranks";
	else if (conf->m < 1 || conf->m > MAX_M || conf->w < 1 || conf->w > MAX_W)
		wrong = "m or w";
	else if (conf->mtu &&
		 (conf->mtu < MIN_MTU || conf->mtu > 4096 || (conf->mtu & (conf->mtu - 1))))
		wrong = "mtu";
	if (!wrong)
		return 0;
	snprintf(err, CCL_ERR_LEN, "ring: %s out of range", wrong);
	return -EINVAL;
}

static struct ibv_qp *make_qp(struct ccl_ring *r, unsigned sends, unsigned receives)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {.max_send_wr = sends,
			.max_recv_wr = receives,
			.max_send_sge = 3,
			.max_recv_sge = 1},
	};

	return ibv_create_qp(r->pd, &init);
}

static int make_objects(struct ccl_ring *r, const char **what)
{
	const int depth = (int)(2 * r->w + CCL_RECV_EXTRA + RING_CREDIT_RECVS + 2);
	int flags;

	*what = "protection domain";
	r->pd = ibv_alloc_pd(r->conf.context);
	if (!r->pd)
		return -errno;
	*what = "completion channel";
	r->channel = ibv_create_comp_channel(r->conf.context);
	if (!r->channel)
		return -errno;
	flags = fcntl(r->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(r->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	*what = "completion queue";
	r->cq = ibv_create_cq(r->conf.context, depth, r, r->channel, 0);
	if (!r->cq)
		return -errno;
	*what = "queue pair";
	r->next = make_qp(r, r->w, RING_CREDIT_RECVS);
	if (r->next)
		r->prev = make_qp(r, 1, r->w + CCL_RECV_EXTRA);
	return r->prev ? 0 : -errno;
}

static int make_memory(struct ccl_ring *r, char *err)
{
	const size_t len = (2 * (size_t)r->w + 1) * r->slot_len + (size_t)r->w * INA_LEN;

	if (posix_memalign((void **)&r->memory, PAGE, len)) {
		r->memory = NULL;
		snprintf(err, CCL_ERR_LEN, "no memory for %zu bytes of message buffers", len);
		return -ENOMEM;
	}
	memset(r->memory, 0, len);
	r->mr = ibv_reg_mr(r->pd, r->memory, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (r->mr)
		return 0;
	snprintf(err, CCL_ERR_LEN,
		"registering %zu bytes: %s (is the limit on locked memory, ulimit -l, high "
		"enough?)",
		len, strerror(errno));
	return -errno;
}

static int open_objects(struct ccl_ring *r, char *err)
{
	const char *what;
	union ibv_gid gid;
	int rc, mtu = ccl_port_mtu(r->conf.context, r->conf.port);

	if (mtu < 0 || (r->conf.mtu && r->conf.mtu > (unsigned)mtu)) {
		snprintf(err, CCL_ERR_LEN, "rank %u: the port of %s has MTU %d, the ring needs %u",
			ring_known_as(r, r->rank), ibv_get_device_name(r->conf.context->device),
			mtu, r->conf.mtu);
		return -EMSGSIZE;
	}
	r->mtu = r->conf.mtu ? r->conf.mtu : (unsigned)mtu;
	r->slot_len = r->m * r->mtu;
	rc = make_objects(r, &what);
	if (rc) {
		snprintf(err, CCL_ERR_LEN, "rank %u: making a %s on %s: %s",
			ring_known_as(r, r->rank), what,
			ibv_get_device_name(r->conf.context->device), strerror(-rc));
		return rc;
	}
	if (ibv_query_gid(r->conf.context, r->conf.port, r->conf.gid_index, &gid) == 0)
		memcpy(r->ip.b, gid.raw, sizeof(r->ip.b));
	rc = make_memory(r, err);
	if (rc == 0)
		rc = to_init(r, r->next, err);
	return rc ? rc : to_init(r, r->prev, err);
}

int ccl_ring_open(const struct ccl_ring_conf *conf, struct ccl_ring **ring, char err[CCL_ERR_LEN])
{
	struct ccl_ring *r;
	int rc = check_conf(conf, err);

	*ring = NULL;
	if (rc)
		return rc;
	r = calloc(1, sizeof(*r));
	if (!r) {
		snprintf(err, CCL_ERR_LEN, "out of memory");
		return -ENOMEM;
	}
	r->conf = *conf;
	r->conf.port = conf->port ? conf->port : 1;
	r->rank = conf->rank;
	r->n_ranks = conf->n_ranks;
	r->m = conf->m;
	r->w = conf->w;
	r->timeout_ns = conf->timeout_ns ? conf->timeout_ns : DEFAULT_TIMEOUT_NS;
	rc = open_objects(r, err);
	if (rc)
		ccl_ring_close(r);
	else
		*ring = r;
	return rc;
}

void ccl_ring_address(const struct ccl_ring *r, struct ccl_ring_address *a)
{
	*a = (struct ccl_ring_address){
		.ip = r->ip,
		.next_qpn = r->next->qp_num,
		.prev_qpn = r->prev->qp_num,
		.start_psn = r->conf.start_psn & 0xffffff,
		.mtu = r->mtu,
		.slots = (uintptr_t)ring_recv_slot(r, 0),
		.slot_len = r->slot_len,
		.rkey = r->mr->rkey,
		.first_msg = r->conf.first_msg,
	};
}

/* ---- connecting ---- */

/* Receives that a WRITE with Immediate takes carry no memory. */
static int post_receives(struct ccl_ring *r, char *err)
{
	struct ibv_recv_wr wr = {.wr_id = RING_WR_RECV}, *bad;
	int rc = 0;

	for (unsigned i = 0; i < r->w + CCL_RECV_EXTRA && !rc; i++)
		rc = ibv_post_recv(r->prev, &wr, &bad);
	wr.wr_id = RING_WR_CREDIT;
	for (unsigned i = 0; i < RING_CREDIT_RECVS && !rc; i++)
		rc = ibv_post_recv(r->next, &wr, &bad);
	if (rc)
		snprintf(err, CCL_ERR_LEN, "rank %u: posting receives: %s",
			ring_known_as(r, r->rank), strerror(rc));
	return -rc;
}

int ccl_ring_connect(struct ccl_ring *r, const struct ccl_ring_address *prev,
	const struct ccl_ring_address *next, unsigned mtu, char err[CCL_ERR_LEN])
{
	const unsigned last = r->n_ranks - 1;
	int rc;

	if (r->connected)
		return -EISCONN;
	if (mtu < MIN_MTU || mtu > r->mtu || (mtu & (mtu - 1)) ||
		(next && (next->slot_len < r->m * mtu || prev->slot_len < r->m * mtu))) {
		snprintf(err, CCL_ERR_LEN, "rank %u: ring: mtu %u, must be a power of two, 256..%u",
			ring_known_as(r, r->rank), mtu, r->mtu);
		return -EINVAL;
	}
	r->mtu = mtu;
	r->cap = r->m * mtu - (r->conf.netreduce ? INA_LEN : 0);
	if (r->n_ranks > 1) {
		r->next_at = *next;
		r->prev_at = *prev;
		if ((rc = post_receives(r, err)) ||
			(rc = connect_qp(r, r->prev, (r->rank + last) % r->n_ranks, prev,
				 prev->next_qpn, err)) ||
			(rc = connect_qp(r, r->next, (r->rank + 1) % r->n_ranks, next,
				 next->prev_qpn, err)))
			return rc;
	}
	r->connected = true;
	return 0;
}

/* In the order in which they depend on one another; any may be missing. */
void ccl_ring_close(struct ccl_ring *r)
{
	if (!r)
		return;
	if (r->next)
		ibv_destroy_qp(r->next);
	if (r->prev)
		ibv_destroy_qp(r->prev);
	if (r->cq)
		ibv_destroy_cq(r->cq);
	if (r->channel)
		ibv_destroy_comp_channel(r->channel);
	if (r->mr)
		ibv_dereg_mr(r->mr);
	for (unsigned i = 0; i < CCL_RING_MAX_REGIONS; i++)
		if (r->region[i].mr)
			ibv_dereg_mr(r->region[i].mr);
	if (r->pd)
		ibv_dealloc_pd(r->pd);
	for (unsigned i = 0; i < CCL_RING_MAX_QUEUED; i++)
		free(r->coll[i].scratch);
	free(r->memory);
	free(r);
}

/* ---- registered memory ---- */

int ccl_ring_register(struct ccl_ring *r, void *buf, size_t len)
{
	uint8_t *base = buf;
	struct ring_region *free_entry = NULL;

	if (!buf || len == 0)
		return -EINVAL;
	for (unsigned i = 0; i < CCL_RING_MAX_REGIONS; i++) {
		struct ring_region *reg = &r->region[i];

		if (!reg->mr)
			free_entry = free_entry ? free_entry : reg;
		else if (base < reg->base + reg->len && reg->base < base + len)
			return -EEXIST;
	}
	if (!free_entry)
		return -ENOSPC;
	*free_entry = (struct ring_region){.base = base,
		.len = len,
		.mr = ibv_reg_mr(r->pd, buf, len, IBV_ACCESS_LOCAL_WRITE)};
	return free_entry->mr ? 0 : -errno;
}

int ccl_ring_deregister(struct ccl_ring *r, void *buf)
{
	for (unsigned i = 0; i < CCL_RING_MAX_REGIONS; i++) {
		struct ring_region *reg = &r->region[i];
		int rc;

		if (!reg->mr || reg->base != buf)
			continue;
		if (!r->failed && ring_uses(r, reg->base, reg->len))
			return -EBUSY;
		rc = ibv_dereg_mr(reg->mr);
		if (rc == 0)
			reg->mr = NULL;
		return -rc;
	}
	return -ENOENT;
}

struct ibv_comp_channel *ccl_ring_channel(const struct ccl_ring *r)
{
	return r->channel;
}

struct ibv_cq *ccl_ring_cq(const struct ccl_ring *r)
{
	return r->cq;
}

void ccl_ring_query(const struct ccl_ring *r, struct ccl_ring_info *info)
{
	*info = (struct ccl_ring_info){
		.netreduce = r->conf.netreduce,
		.mtu = r->mtu,
		.m = r->m,
		.w = r->w,
		.local_ip = r->ip,
		.prev_ip = r->prev_at.ip,
		.next_ip = r->next_at.ip,
		.next_qpn = r->next->qp_num,
		.prev_qpn = r->prev->qp_num,
		.collectives = r->done,
		.messages_sent = r->tx_acked,
		.messages_received = r->rx_taken,
		.staged_sends = r->staged_sends,
	};
}
