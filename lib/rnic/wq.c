/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting work requests: the producing side of a QP's rings. Any one thread per queue. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/rnic/ah.h"
#include "lib/rnic/transport.h"
#include "lib/rnic/window.h"
#include "lib/rnic/wqe.h"

static int sge_bytes(const struct ibv_sge *sge, int n, unsigned max, uint64_t *bytes)
{
	*bytes = 0;
	if (n < 0 || (unsigned)n > max || (n > 0 && sge == NULL))
		return -EINVAL;
	for (int i = 0; i < n; i++)
		*bytes += sge[i].length;
	return 0;
}

enum op_flags {
	OP_REMOTE = 1, /* names remote memory */
	OP_ATOMIC = 2, /* 8 bytes */
	OP_SINK = 4,   /* the list is written to: no inline data */
	OP_LOCAL = 8,  /* no data at all */
};

static const uint8_t op_flags[] = {
	[IBV_WR_RDMA_WRITE] = OP_REMOTE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = OP_REMOTE,
	[IBV_WR_RDMA_READ] = OP_REMOTE | OP_SINK,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = OP_ATOMIC | OP_SINK,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = OP_ATOMIC | OP_SINK,
	[IBV_WR_LOCAL_INV] = OP_LOCAL,
	[IBV_WR_BIND_MW] = OP_LOCAL,
};

enum { ATOMIC_LEN = 8 };

static unsigned flags_of(unsigned opcode)
{
	return opcode < sizeof(op_flags) ? op_flags[opcode] : 0;
}

static bool takes(const struct rnic_qp *qp, unsigned opcode)
{
	return opcode < 32 && (qp->ops->send_ops >> opcode & 1);
}

static bool fits(const struct rnic_qp *qp, const struct rnic_ah *ah)
{
	return ah->pd == qp->init.pd && ah->path.port == qp->path.port;
}

static int check_send(const struct rnic_qp *qp, const struct ibv_send_wr *wr, uint64_t *bytes)
{
	unsigned flags = flags_of(wr->opcode);
	bool inlined = wr->send_flags & IBV_SEND_INLINE;
	int err;

	*bytes = 0;
	if (!takes(qp, wr->opcode))
		return -EOPNOTSUPP;
	if (flags & OP_LOCAL)
		return 0;
	err = sge_bytes(wr->sg_list, wr->num_sge, qp->init.cap.max_send_sge, bytes);
	if (err < 0)
		return err;
	if (*bytes > RNIC_MAX_MSG || (inlined && *bytes > qp->init.cap.max_inline_data))
		return -EINVAL;
	if ((flags & OP_SINK) && inlined)
		return -EINVAL;
	if ((flags & OP_ATOMIC) && *bytes != ATOMIC_LEN)
		return -EINVAL;
	if (qp->init.type == IBV_QPT_UD &&
		(wr->wr.ud.ah == NULL || wr->wr.ud.remote_qpn > 0xffffff || *bytes > qp->mtu))
		return -EINVAL;
	if (qp->ops->multicast && *bytes > qp->mtu)
		return -EINVAL;
	/* IBTA vol. 1, 10.2.2.2 */
	if (qp->init.type == IBV_QPT_UD && !fits(qp, (const struct rnic_ah *)wr->wr.ud.ah))
		return -EINVAL;
	return 0;
}

static void set_dest(const struct rnic_qp *qp, struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	const struct rnic_ah *ah = (const struct rnic_ah *)wr->wr.ud.ah;
	struct ud_dest *dest = (struct ud_dest *)((uint8_t *)wqe + qp->dest_off);

	dest->path = ah->path;
	dest->path.flow.sport = ud_source_port(qp->qpn);
	dest->qpn = wr->wr.ud.remote_qpn;
	dest->qkey = wr->wr.ud.remote_qkey;
}

static void set_operands(struct send_wqe *wqe, const struct ibv_send_wr *wr, unsigned flags)
{
	wqe->imm = wr->opcode == IBV_WR_SEND_WITH_INV ? wr->invalidate_rkey : be32toh(wr->imm_data);
	if (flags & OP_REMOTE) {
		wqe->raddr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
	if (!(flags & OP_ATOMIC))
		return;
	wqe->raddr = wr->wr.atomic.remote_addr;
	wqe->rkey = wr->wr.atomic.rkey;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wqe->swap_add = wr->wr.atomic.swap;
		wqe->compare = wr->wr.atomic.compare_add;
	} else {
		wqe->swap_add = wr->wr.atomic.compare_add;
		wqe->compare = 0;
	}
}

static void copy_inline(uint8_t *out, const struct ibv_send_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length == 0)
			continue;
		memcpy(out, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		out += wr->sg_list[i].length;
	}
}

static void copy_sges(struct ibv_sge *out, const struct ibv_sge *sge, int n)
{
	if (n > 0)
		memcpy(out, sge, (size_t)n * sizeof(*sge));
}

int rnic_post_send(struct rnic_qp *qp, const struct ibv_send_wr *wr)
{
	int state = atomic_load_explicit(&qp->state, memory_order_relaxed);
	struct send_wqe *wqe;
	uint64_t bytes;
	unsigned flags;
	int err;

	if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR)
		return -EINVAL;
	err = check_send(qp, wr, &bytes);
	if (err < 0)
		return err;
	wqe = ring_claim(&qp->sq);
	if (wqe == NULL)
		return -ENOMEM;
	flags = flags_of(wr->opcode);
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->len = (uint32_t)bytes;
	wqe->signaled = qp->init.sq_sig_all || (wr->send_flags & IBV_SEND_SIGNALED);
	wqe->solicited = wr->send_flags & IBV_SEND_SOLICITED;
	wqe->inlined = wr->send_flags & IBV_SEND_INLINE;
	wqe->fenced = wr->send_flags & IBV_SEND_FENCE;
	wqe->done = false;
	if (flags & OP_LOCAL)
		err = window_post(wqe, wr);
	else
		set_operands(wqe, wr, flags);
	if (err < 0)
		return err; /* the entry was not published */
	if (qp->init.type == IBV_QPT_UD)
		set_dest(qp, wqe, wr);
	if (flags & OP_LOCAL) {
		wqe->n_sge = 0;
	} else if (wqe->inlined) {
		wqe->n_sge = 0;
		copy_inline((uint8_t *)wqe->sge, wr);
	} else {
		wqe->n_sge = (uint8_t)wr->num_sge;
		copy_sges(wqe->sge, wr->sg_list, wr->num_sge);
	}
	ring_post(&qp->sq);
	sched_ring_bell(qp->rnic, qp->slot);
	return 0;
}

int recv_post(struct ring *ring, uint32_t max_sge, const struct ibv_recv_wr *wr)
{
	struct recv_wqe *wqe;
	uint64_t bytes;
	int err = sge_bytes(wr->sg_list, wr->num_sge, max_sge, &bytes);

	if (err < 0)
		return err;
	wqe = ring_claim(ring);
	if (wqe == NULL)
		return -ENOMEM;
	wqe->wr_id = wr->wr_id;
	wqe->len = bytes;
	wqe->n_sge = (uint32_t)wr->num_sge;
	copy_sges(wqe->sge, wr->sg_list, wr->num_sge);
	ring_post(ring);
	return 0;
}

int rnic_post_recv(struct rnic_qp *qp, const struct ibv_recv_wr *wr)
{
	int err;

	if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RESET ||
		qp->init.srq != NULL)
		return -EINVAL;
	err = recv_post(&qp->rq, qp->init.cap.max_recv_sge, wr);
	if (err < 0)
		return err;
	/* The owner writes the state, then reads the ring's head; here it is the other way round,
	 * all sequentially consistent: one of the two sees the other, and the request is flushed.
	 */
	if (atomic_load(&qp->state) == IBV_QPS_ERR)
		sched_ring_bell(qp->rnic, qp->slot);
	return 0;
}
