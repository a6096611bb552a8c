/* SPDX-License-Identifier: BSD-3-Clause */
/* The builder interface to the send queue (ibv_wr_*): requests are gathered between wr_start and
 * wr_complete and posted there one by one. */
#include <errno.h>
#include <stdlib.h>

#include "lib/verbs/internal.h"

enum {
	SEND_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
		   IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |
		   IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		   IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW,
	UC_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
		 IBV_QP_EX_WITH_BIND_MW,
	UD_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	NOT_IWARP = IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
};

static struct iv_qp *qp_of(struct ibv_qp_ex *ex)
{
	return (struct iv_qp *)ex;
}

static void fail(struct iv_qp *qp, int err)
{
	if (!qp->batch.err)
		qp->batch.err = err;
}

static struct ibv_send_wr *last(struct iv_qp *qp)
{
	struct iv_batch *b = &qp->batch;

	if (b->err)
		return NULL;
	if (b->n == 0) {
		fail(qp, EINVAL);
		return NULL;
	}
	return &b->wr[b->n - 1];
}

static struct ibv_send_wr *append(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct iv_qp *qp = qp_of(ex);
	struct iv_batch *b = &qp->batch;
	struct ibv_send_wr *wr;

	if (b->err)
		return NULL;
	if (b->n == qp->cap.max_send_wr) {
		fail(qp, ENOMEM);
		return NULL;
	}
	wr = &b->wr[b->n];
	*wr = (struct ibv_send_wr){.wr_id = ex->wr_id,
		.opcode = opcode,
		.send_flags = ex->wr_flags & ~(unsigned)IBV_SEND_INLINE,
		.sg_list = &b->sge[(size_t)b->n * b->n_sge]};
	b->n++;
	return wr;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct iv_qp *qp = qp_of(ex);

	pthread_mutex_lock(&qp->sq_lock);
	qp->batch.n = 0;
	qp->batch.err = 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct iv_qp *qp = qp_of(ex);
	int ret = -qp->batch.err;

	for (unsigned i = 0; i < qp->batch.n && ret == 0; i++)
		ret = iv_post_one(qp, &qp->batch.wr[i]);
	pthread_mutex_unlock(&qp->sq_lock);
	iv_kick(iv_dev(qp->base.context));
	return ret ? iv_errno(ret) : 0;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&qp_of(ex)->sq_lock);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	append(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct ibv_send_wr *wr = append(ex, IBV_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	struct ibv_send_wr *wr = append(ex, IBV_WR_RDMA_WRITE);

	if (wr) {
		wr->wr.rdma.rkey = rkey;
		wr->wr.rdma.remote_addr = remote_addr;
	}
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	struct ibv_send_wr *wr = append(ex, IBV_WR_RDMA_WRITE_WITH_IMM);

	if (wr) {
		wr->wr.rdma.rkey = rkey;
		wr->wr.rdma.remote_addr = remote_addr;
		wr->imm_data = imm;
	}
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct ibv_send_wr *wr = append(ex, IBV_WR_SEND_WITH_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	struct ibv_send_wr *wr = append(ex, IBV_WR_RDMA_READ);

	if (wr) {
		wr->wr.rdma.rkey = rkey;
		wr->wr.rdma.remote_addr = remote_addr;
	}
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct ibv_send_wr *wr = append(ex, IBV_WR_LOCAL_INV);

	if (wr)
		wr->invalidate_rkey = rkey;
}

static void wr_bind_mw(
	struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = append(ex, IBV_WR_BIND_MW);

	if (wr) {
		wr->bind_mw.mw = mw;
		wr->bind_mw.rkey = rkey;
		wr->bind_mw.bind_info = *info;
	}
}

static void wr_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
	uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = append(ex, opcode);

	if (wr) {
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.remote_addr = remote_addr;
		wr->wr.atomic.compare_add = compare_add;
		wr->wr.atomic.swap = swap;
	}
}

static void wr_cmp_swp(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	wr_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	wr_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *sge)
{
	struct iv_qp *qp = qp_of(ex);
	struct ibv_send_wr *wr = last(qp);

	if (!wr)
		return;
	if (n > qp->cap.max_send_sge) {
		fail(qp, EINVAL);
		return;
	}
	for (size_t i = 0; i < n; i++)
		wr->sg_list[i] = sge[i];
	wr->num_sge = (int)n;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *buf)
{
	struct iv_qp *qp = qp_of(ex);
	struct ibv_send_wr *wr = last(qp);
	size_t len = 0;
	uint8_t *to;

	if (!wr)
		return;
	to = &qp->batch.inl[(size_t)(qp->batch.n - 1) * qp->cap.max_inline_data];
	for (size_t i = 0; i < n; i++) {
		if (buf[i].length > qp->cap.max_inline_data - len) {
			fail(qp, EINVAL);
			return;
		}
		if (buf[i].length)
			memcpy(to + len, buf[i].addr, buf[i].length);
		len += buf[i].length;
	}
	wr->send_flags |= IBV_SEND_INLINE;
	wr->num_sge = len > 0;
	if (len)
		wr->sg_list[0] = (struct ibv_sge){.addr = (uintptr_t)to, .length = (uint32_t)len};
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

static int alloc_batch(struct iv_qp *qp)
{
	const size_t n = qp->cap.max_send_wr ? qp->cap.max_send_wr : 1;

	/* One at least: inline data needs it. */
	qp->batch.n_sge = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1;
	qp->batch.wr = calloc(n, sizeof(*qp->batch.wr));
	qp->batch.sge = calloc(n * qp->batch.n_sge, sizeof(*qp->batch.sge));
	qp->batch.inl = calloc(n, qp->cap.max_inline_data ? qp->cap.max_inline_data : 1);
	return qp->batch.wr && qp->batch.sge && qp->batch.inl ? 0 : -ENOMEM;
}

static void wr_set_ud_addr(
	struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct ibv_send_wr *wr = last(qp_of(ex));

	if (wr) {
		wr->wr.ud.ah = ah;
		wr->wr.ud.remote_qpn = remote_qpn;
		wr->wr.ud.remote_qkey = remote_qkey;
	}
}

static uint64_t ops_of(const struct ibv_qp *qp)
{
	const enum ibv_qp_type type = qp->qp_type;

	if (iv_dev(qp->context)->iwarp)
		return SEND_OPS & ~(uint64_t)NOT_IWARP;
	return type == IBV_QPT_RC ? SEND_OPS : type == IBV_QPT_UC ? UC_OPS : UD_OPS;
}

int iv_qp_ex_init(struct iv_qp *qp, uint64_t send_ops)
{
	struct ibv_qp_ex *ex = &qp->ex;

	if (send_ops & ~ops_of(&qp->base))
		return -EOPNOTSUPP;
	if (alloc_batch(qp))
		return -ENOMEM;
	qp->has_ex = true;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (qp->base.qp_type == IBV_QPT_UD)
		ex->wr_set_ud_addr = wr_set_ud_addr;
	if (send_ops & IBV_QP_EX_WITH_SEND)
		ex->wr_send = wr_send;
	if (send_ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = wr_send_imm;
	if (send_ops & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = wr_rdma_write;
	if (send_ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = wr_rdma_write_imm;
	if (send_ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		ex->wr_send_inv = wr_send_inv;
	if (send_ops & IBV_QP_EX_WITH_LOCAL_INV)
		ex->wr_local_inv = wr_local_inv;
	if (send_ops & IBV_QP_EX_WITH_BIND_MW)
		ex->wr_bind_mw = wr_bind_mw;
	if (send_ops & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = wr_rdma_read;
	if (send_ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		ex->wr_atomic_cmp_swp = wr_cmp_swp;
	if (send_ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		ex->wr_atomic_fetch_add = wr_fetch_add;
	return 0;
}

void iv_qp_ex_fini(struct iv_qp *qp)
{
	free(qp->batch.wr);
	free(qp->batch.sge);
	free(qp->batch.inl);
}
