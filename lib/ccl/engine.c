/* SPDX-License-Identifier: BSD-3-Clause */
/* The core: parts of collectives become operations, operations become messages, messages are sent
 * under the window and received. No clock, no blocking, no allocation. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/resume.h"
#include "lib/verbs/incline_dv.h"
#include "lib/wire/psn.h"

/* wr_id: direction, member, message. */
static const uint64_t WR_RECV = 1ull << 63;
enum { WR_MEMB_SHIFT = 48, WR_MEMB_MASK = 0x7fff };
static const uint64_t WR_MSG = (1ull << WR_MEMB_SHIFT) - 1;

/* ---- cursors ---- */

static uint32_t messages(struct ccl_memb *mb, uint64_t op, bool rx)
{
	const struct ccl_op *o = ccl_op_at(mb, op);

	return rx ? o->n_rx : o->n_tx;
}

/* A cursor stands on a message of its direction, or behind all operations. */
static void settle(struct ccl_memb *mb, struct ccl_cursor *cur, bool rx)
{
	while (cur->op != mb->op_made && cur->in == messages(mb, cur->op, rx)) {
		cur->op++;
		cur->in = 0;
		cur->msg =
			cur->op == mb->op_made ? mb->next_msg : ccl_op_at(mb, cur->op)->first_msg;
	}
}

static void step(struct ccl_memb *mb, struct ccl_cursor *cur, bool rx)
{
	cur->msg++;
	cur->in++;
	settle(mb, cur, rx);
}

/* ---- operations ---- */

/* What this rank has to do in an operation (2.2 rule 4, 3.7). */
static void cast(const struct ccl_memb *mb, struct ccl_op *op)
{
	const struct ccl_comm *c = mb->comm;
	const bool is_root = op->part.root == c->rank;
	const bool sends =
		op->part.prim == CCL_PRIM_AR || is_root == (op->part.prim == CCL_PRIM_BC);
	const bool receives = op->part.prim == CCL_PRIM_AR || !sends;
	const uint32_t control = mb->mixed ? 1 : 0; /* all ranks send and receive it */

	op->n_tx = sends ? op->plan.n_msgs : control;
	op->n_rx = receives ? op->plan.n_msgs : control;
	if (mb->mixed && c->mode != CCL_MODE_1 && op->plan.n && !c->resync) {
		op->skip_send = !sends;
		op->skip_recv = !receives;
	}
}

static bool must_fence(struct ccl_memb *mb, const struct ccl_op *op)
{
	if (!mb->mixed || mb->comm->mode != CCL_MODE_2)
		return false;
	return op->part.prim != CCL_PRIM_AR ||
	       (mb->op_made && ccl_op_at(mb, mb->op_made - 1)->part.prim != CCL_PRIM_AR);
}

/* The operation before has left PSNs that differ, and nobody leaves them out (3.7). */
static bool must_resync(struct ccl_memb *mb)
{
	const struct ccl_op *before;

	if (!mb->comm->resync || !mb->op_made)
		return false;
	before = ccl_op_at(mb, mb->op_made - 1);
	return before->part.prim != CCL_PRIM_AR && before->plan.n > 0;
}

/* The number of the collective, and what the immediate does not say of it. */
static uint64_t tag_of(const struct ccl_coll *coll, uint64_t number)
{
	return (uint64_t)coll->kind << 56 | (uint64_t)coll->dtype << 48 | (number & WR_MSG);
}

static void control_of(struct ccl_memb *mb, struct ccl_op *op, const struct ccl_coll *coll)
{
	const bool whole = coll->n_parts == 1;

	op->ctrl = (struct ccl_ctrl){
		.prim = (uint8_t)op->part.prim,
		.op = coll->op,
		.dtype = op->part.prim == CCL_PRIM_BC ? REDUCE_BYTES : coll->dtype,
		.op_seq = (uint8_t)mb->op_made,
		.root = op->part.prim == CCL_PRIM_AR ? 0 : op->part.root,
		.n = op->plan.n,
		.bytes = op->plan.bytes,
		.flags = (op->last && mb->part + 1 == coll->n_parts && !(whole && op->offset == 0)
					 ? CCL_F_LAST
					 : 0u) |
			 (mb->comm->write ? CCL_F_WRITE : 0u),
		.m = mb->comm->m,
		.tag = tag_of(coll, op->coll),
	};
}

static void open_op(struct ccl_memb *mb, const struct ccl_part *part)
{
	struct ccl_comm *c = mb->comm;
	const struct ccl_coll *coll = ccl_coll_at(c, mb->coll);
	struct ccl_op *op = ccl_op_at(mb, mb->op_made);
	const bool fenced = must_fence(mb, &(struct ccl_op){.part = *part});
	const bool resync = must_resync(mb);
	const uint64_t bytes =
		ccl_plan_part(coll->bytes - mb->offset, c->mtu, c->m, c->max_packets);

	*op = (struct ccl_op){.coll = mb->coll,
		.part = *part,
		.offset = mb->offset,
		.fenced = fenced,
		.resync = resync,
		.psn = mb->next_psn,
		.first_msg = mb->next_msg,
		.first_data = mb->next_data,
		.recv_direct = coll->recv_direct && !c->write};
	op->last = mb->offset + bytes == coll->bytes;
	op->w = coll->n_parts > 1 ? mb->share : mb->w;
	ccl_plan_init(&op->plan, bytes, c->mtu, c->m);
	cast(mb, op);
	control_of(mb, op, coll);
	if (part->prim == CCL_PRIM_RED && part->recv) {
		op->add = reduce_kernel((enum reduce_op)coll->op, (enum reduce_dtype)coll->dtype);
		op->recv_direct &= part->send != part->recv;
	}
	mb->offset = op->last ? 0 : mb->offset + bytes;
	mb->part += op->last;
	mb->next_psn = psn_add(op->psn, (int32_t)op->plan.n + 1);
	mb->next_msg += op->plan.n_msgs;
	mb->next_data += op->plan.n_msgs - 1;
	mb->op_made++;
	settle(mb, &mb->rx_post, true);
	settle(mb, &mb->tx_post, false);
	settle(mb, &mb->tx_ack, false);
	settle(mb, &mb->rx, true);
}

/* Operations that both later cursors have left behind are finished. */
static void close_ops(struct ccl_memb *mb)
{
	while (mb->op_done < mb->tx_ack.op && mb->op_done < mb->rx.op) {
		const struct ccl_op *op = ccl_op_at(mb, mb->op_done++);

		if (mb->comm->resume)
			ccl_resume_finished(mb, op);
		if (op->last)
			ccl_part_done(mb->comm, op->coll);
	}
}

/* ---- posting ---- */

static uint8_t *send_slot(const struct ccl_memb *mb, uint64_t msg)
{
	return mb->stage + msg % mb->n_send * mb->comm->slot_len;
}

static uint8_t *recv_slot(const struct ccl_memb *mb, uint64_t msg)
{
	return mb->stage + (mb->n_send + msg % mb->n_recv) * mb->comm->slot_len;
}

/* Where the switch writes a message of data to: one after the other, through all operations. */
static uint8_t *inbox_slot(const struct ccl_memb *mb, const struct ccl_op *op, uint32_t in)
{
	return mb->inbox + (op->first_data + in - 1) % mb->n_inbox * mb->comm->slot_len;
}

static uint64_t wr_id(const struct ccl_memb *mb, uint64_t msg)
{
	return (uint64_t)mb->number << WR_MEMB_SHIFT | msg;
}

static struct ibv_sge recv_sge(struct ccl_memb *mb)
{
	const struct ccl_cursor *cur = &mb->rx_post;
	const struct ccl_op *op = ccl_op_at(mb, cur->op);
	const uint32_t len = ccl_plan_len(&op->plan, cur->in);
	const uint8_t *to = recv_slot(mb, cur->msg);

	if (cur->in == 0 || !op->recv_direct)
		return (struct ibv_sge){(uintptr_t)to, len, mb->stage_mr->lkey};
	to = op->part.recv + op->offset + ccl_plan_offset(&op->plan, cur->in);
	return (struct ibv_sge){(uintptr_t)to, len, ccl_coll_at(mb->comm, op->coll)->recv_lkey};
}

/* What goes to its final place needs no slot and may be posted further ahead: a sender that needs
 * nothing from here is held less often. */
static bool may_receive(struct ccl_memb *mb)
{
	const struct ccl_cursor *cur = &mb->rx_post;
	const bool direct = cur->in > 0 && ccl_op_at(mb, cur->op)->recv_direct;

	/* RESET would take what is posted. */
	return cur->op != mb->op_made && !ccl_op_at(mb, cur->op)->resync &&
	       cur->msg - mb->rx.msg < (direct ? mb->max_recv : mb->n_recv);
}

static int post_receives(struct ccl_memb *mb)
{
	for (;;) {
		struct ibv_recv_wr wr[CCL_BATCH], *bad;
		struct ibv_sge sge[CCL_BATCH];
		unsigned n = 0;
		int rc;

		while (n < CCL_BATCH && may_receive(mb)) {
			sge[n] = recv_sge(mb);
			wr[n] = (struct ibv_recv_wr){.wr_id = WR_RECV | wr_id(mb, mb->rx_post.msg),
				.sg_list = &sge[n],
				.num_sge = 1};
			if (n)
				wr[n - 1].next = &wr[n];
			n++;
			step(mb, &mb->rx_post, true);
		}
		if (n == 0)
			return 0;
		rc = ibv_post_recv(mb->qp, wr, &bad);
		if (rc)
			return ccl_fail(mb->comm, -rc, "posting a receive: %s", strerror(rc));
	}
}

static struct ibv_sge send_sge(struct ccl_memb *mb)
{
	struct ccl_comm *c = mb->comm;
	const struct ccl_cursor *cur = &mb->tx_post;
	const struct ccl_op *op = ccl_op_at(mb, cur->op);
	const struct ccl_coll *coll = ccl_coll_at(c, op->coll);
	const uint32_t len = ccl_plan_len(&op->plan, cur->in);
	uint8_t *slot = send_slot(mb, cur->msg);
	const uint8_t *from;
	uint64_t at;

	if (cur->in == 0) {
		ccl_ctrl_encode(&op->ctrl, slot);
		return (struct ibv_sge){(uintptr_t)slot, len, mb->stage_mr->lkey};
	}
	at = op->offset + ccl_plan_offset(&op->plan, cur->in);
	from = op->part.send + at;
	if (op->part.prim == CCL_PRIM_BC && op->part.recv != op->part.send)
		memcpy(op->part.recv + at, from, len); /* the root's own result */
	if (coll->send_direct)
		return (struct ibv_sge){(uintptr_t)from, len, coll->send_lkey};
	memcpy(slot, from, len); /* the slot's former message is acknowledged: the window */
	c->staged_sends++;
	return (struct ibv_sge){(uintptr_t)slot, len, mb->stage_mr->lkey};
}

/* Fence: a control waits until this rank is done with all operations before. Rendezvous: data waits
 * for the result and the acknowledgement of its control. */
static bool fence_lifted(struct ccl_memb *mb, const struct ccl_op *op)
{
	const struct ccl_cursor *cur = &mb->tx_post;

	if (!op->fenced)
		return true;
	if (cur->in == 0)
		return mb->op_done == cur->op;
	return mb->tx_ack.msg > op->first_msg && mb->rx.msg > op->first_msg;
}

static bool may_send(struct ccl_memb *mb)
{
	const struct ccl_cursor *cur = &mb->tx_post;
	const struct ccl_op *op = ccl_op_at(mb, cur->op);

	if (cur->op == mb->op_made || op->resync || cur->msg - ccl_memb_finished(mb) >= op->w)
		return false;
	if (cur->in < op->n_rx && cur->msg >= mb->rx_post.msg)
		return false; /* its result would find no receive */
	return fence_lifted(mb, op);
}

static int skip(struct ccl_memb *mb, const struct ccl_op *op, int dir)
{
	const uint32_t first = psn_add(op->psn, 1);
	const int rc = mb->comm->skip(mb->qp, dir, first, op->plan.n);

	if (rc == 0)
		return 0;
	return ccl_fail(mb->comm, -rc, "leaving out %u PSNs from 0x%06x (%s): %s", op->plan.n,
		first, dir == INC_DV_SEND ? "send" : "receive", strerror(rc));
}

/* Right behind the control, before any packet of the next operation can be sent or accepted. */
static int skip_data(struct ccl_memb *mb, const struct ccl_op *op)
{
	int rc = op->skip_send ? skip(mb, op, INC_DV_SEND) : 0;

	return rc == 0 && op->skip_recv ? skip(mb, op, INC_DV_RECV) : rc;
}

static int post_sends(struct ccl_memb *mb)
{
	while (may_send(mb)) {
		struct ibv_send_wr wr[CCL_BATCH], *bad;
		struct ibv_sge sge[CCL_BATCH];
		const struct ccl_op *skipping = NULL;
		unsigned n = 0;
		int rc;

		for (; n < CCL_BATCH && !skipping && may_send(mb); n++) {
			const struct ccl_op *op = ccl_op_at(mb, mb->tx_post.op);
			const bool control = mb->tx_post.in == 0;

			sge[n] = send_sge(mb);
			wr[n] = (struct ibv_send_wr){
				.wr_id = wr_id(mb, mb->tx_post.msg),
				.sg_list = &sge[n],
				.num_sge = 1,
				.opcode = control           ? IBV_WR_SEND_WITH_IMM
					  : mb->comm->write ? IBV_WR_RDMA_WRITE_WITH_IMM
							    : IBV_WR_SEND,
				.send_flags = IBV_SEND_SIGNALED,
				/* Where a write goes is the switch's to say, for each rank. */
				.imm_data = htonl(
					control ? ccl_ctrl_imm(&op->ctrl) : mb->tx_post.in - 1),
			};
			if (control && (op->skip_send || op->skip_recv))
				skipping = op;
			if (n)
				wr[n - 1].next = &wr[n];
			step(mb, &mb->tx_post, false);
		}
		rc = ibv_post_send(mb->qp, wr, &bad);
		if (rc)
			return ccl_fail(mb->comm, -rc, "posting a send: %s", strerror(rc));
		if (skipping && (rc = skip_data(mb, skipping)))
			return rc;
	}
	return 0;
}

int ccl_pump(struct ccl_memb *mb)
{
	struct ccl_part part;
	int rc;

	while (mb->op_made - mb->op_done < CCL_MAX_OPS && ccl_next_part(mb, &part))
		open_op(mb, &part);
	rc = post_receives(mb);
	return rc ? rc : post_sends(mb);
}

/* ---- completions ---- */

static int take_control(struct ccl_memb *mb, const struct ibv_wc *wc)
{
	const struct ccl_op *op = ccl_op_at(mb, mb->rx.op);
	struct ccl_ctrl got;
	const char *field;

	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || wc->byte_len != CCL_CTRL_LEN ||
		ccl_ctrl_decode(ntohl(wc->imm_data), recv_slot(mb, mb->rx.msg), &got))
		return ccl_fail(mb->comm, -EPROTO,
			"the result of control message PSN 0x%06x is not one "
			"(%u bytes)",
			op->psn, wc->byte_len);
	field = ccl_ctrl_differ(&op->ctrl, &got);
	if (field)
		return ccl_fail(mb->comm, -EPROTO, "the ranks disagree on operation %llu: other %s",
			(unsigned long long)mb->rx.op, field);
	return 0;
}

/* A message of data is at its place or in a slot: the root of a Reduce adds its own. */
static void place(struct ccl_memb *mb, const struct ccl_op *op, uint64_t at, uint32_t len)
{
	const uint8_t *slot =
		mb->comm->write ? inbox_slot(mb, op, mb->rx.in) : recv_slot(mb, mb->rx.msg);
	uint8_t *to = op->part.recv + at;

	if (op->recv_direct) {
		if (op->add)
			op->add(to, op->part.send + at, len);
		return;
	}
	mb->comm->staged_receives++;
	if (!op->add) {
		memcpy(to, slot, len);
		return;
	}
	if (op->part.send != op->part.recv)
		memcpy(to, op->part.send + at, len);
	op->add(to, slot, len);
}

static int take_data(struct ccl_memb *mb, const struct ibv_wc *wc)
{
	const struct ccl_op *op = ccl_op_at(mb, mb->rx.op);
	const uint32_t len = ccl_plan_len(&op->plan, mb->rx.in);
	const uint32_t psn = psn_add(op->psn, (int32_t)ccl_plan_psn(&op->plan, mb->rx.in));
	const bool imm = wc->wc_flags & IBV_WC_WITH_IMM;

	if (wc->byte_len != len || imm != mb->comm->write)
		return ccl_fail(mb->comm, -EPROTO,
			"the result at PSN 0x%06x has %u bytes%s instead of %u", psn, wc->byte_len,
			imm == mb->comm->write ? ""
			: imm                  ? " and an immediate"
					       : " and no immediate",
			len);
	if (imm &&
		(wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM || ntohl(wc->imm_data) != mb->rx.in - 1))
		return ccl_fail(mb->comm, -EPROTO,
			"the result at PSN 0x%06x was not written as message %u", psn,
			mb->rx.in - 1);
	place(mb, op, op->offset + ccl_plan_offset(&op->plan, mb->rx.in), len);
	return 0;
}

static int take(struct ccl_comm *c, const struct ibv_wc *wc)
{
	const bool recv = wc->wr_id & WR_RECV;
	const unsigned number = wc->wr_id >> WR_MEMB_SHIFT & WR_MEMB_MASK;
	struct ccl_cursor *cur;
	struct ccl_memb *mb;
	int rc;

	if (wc->status != IBV_WC_SUCCESS)
		return ccl_completion_error(c, wc);
	if (number >= c->n_memb)
		return ccl_fail(c, -EPROTO, "completion of a stranger");
	mb = &c->memb[number];
	mb->touched = true;
	cur = recv ? &mb->rx : &mb->tx_ack;
	/* Within a queue completions come in order of posting. */
	if ((wc->wr_id & WR_MSG) != cur->msg ||
		cur->msg >= (recv ? mb->rx_post.msg : mb->tx_post.msg))
		return ccl_fail(c, -EPROTO, "completion of %s %llu instead of %llu",
			recv ? "receive" : "send", (unsigned long long)(wc->wr_id & WR_MSG),
			(unsigned long long)cur->msg);
	if (recv) {
		/* A result of what has not been sent cannot be one. */
		if (cur->in < ccl_op_at(mb, cur->op)->n_tx && cur->msg >= mb->tx_post.msg)
			return ccl_fail(c, -EPROTO, "a result came before its request was sent");
		rc = cur->in == 0 ? take_control(mb, wc) : take_data(mb, wc);
		if (rc)
			return rc;
	}
	step(mb, cur, recv);
	return 0;
}

static int go_on(struct ccl_comm *c)
{
	for (unsigned i = 0; i < c->n_memb; i++) {
		struct ccl_memb *mb = &c->memb[i];

		if (!mb->touched)
			continue;
		mb->touched = false;
		close_ops(mb);
		if (ccl_pump(mb))
			return c->failed;
	}
	return 0;
}

int ccl_reap(struct ccl_comm *c)
{
	struct ibv_wc wc[CCL_POLL];
	int total = 0, n;

	do {
		n = ibv_poll_cq(c->cq, CCL_POLL, wc);
		if (n < 0)
			return ccl_fail(c, -EIO, "the completion queue failed");
		for (int i = 0; i < n; i++) {
			const int rc = take(c, &wc[i]);

			if (rc)
				return rc;
		}
		if (n && go_on(c))
			return c->failed;
		total += n;
	} while (n == CCL_POLL && total < 16 * (int)c->w);
	return total;
}
