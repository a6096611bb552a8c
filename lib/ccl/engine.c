/* SPDX-License-Identifier: BSD-3-Clause */
/* The core: collectives become operations, operations become messages, messages are sent under the
 * window and their results collected. No clock, no blocking, no allocation. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/wire/psn.h"

static const uint64_t WR_RECV = 1ull << 63; /* in wr_id, beside the message number */

int ccl_fail(struct ccl_comm *c, int error, const char *fmt, ...)
{
	char at[WIRE_IP_STRLEN];
	va_list ap;
	int n;

	if (c->failed)
		return c->failed;
	c->failed = error;
	n = snprintf(c->err, sizeof(c->err), "rank %u, switch %s (QPN 0x%x): ", c->rank,
		wire_ip_format(&c->remote_ip, at, sizeof(at)), c->remote_qpn);
	va_start(ap, fmt);
	vsnprintf(c->err + n, sizeof(c->err) - (size_t)n, fmt, ap);
	va_end(ap);
	ccl_qp_to_error(c);
	return error;
}

void ccl_abort(struct ccl_comm *c, const char *reason)
{
	ccl_fail(c, -ECANCELED, "%s", reason);
}

bool ccl_busy(const struct ccl_comm *c)
{
	return c->op_done != c->op_made || c->coll_open != c->coll_issued;
}

/* ---- issuing ---- */

static const struct ccl_region *find_region(
	const struct ccl_comm *c, const uint8_t *p, uint64_t len)
{
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		const struct ccl_region *r = &c->region[i];

		if (r->mr && p >= r->base && len <= r->len &&
			(uint64_t)(p - r->base) <= r->len - len)
			return r;
	}
	return NULL;
}

static void find_keys(const struct ccl_comm *c, struct ccl_coll *coll)
{
	const struct ccl_region *r = find_region(c, coll->send, coll->bytes);

	/* In place: a result may overwrite what the NIC might have to send again. */
	if (r && coll->send != coll->recv) {
		coll->send_direct = true;
		coll->send_lkey = r->mr->lkey;
	}
	r = find_region(c, coll->recv, coll->bytes);
	if (r) {
		coll->recv_direct = true;
		coll->recv_lkey = r->mr->lkey;
	}
}

static int pump(struct ccl_comm *c);

static int issue(struct ccl_comm *c, const struct ccl_coll *coll, struct ccl_req *req)
{
	if (c->failed)
		return c->failed;
	if (!c->connected)
		return -ENOTCONN;
	if (c->coll_issued - c->coll_done == CCL_MAX_QUEUED)
		return -EAGAIN;
	if (!ccl_busy(c))
		c->fresh = true; /* the wait begins now, whenever that is */
	*ccl_coll_at(c, c->coll_issued) = *coll;
	req->seq = c->coll_issued++;
	return pump(c);
}

int ccl_iallreduce(struct ccl_comm *c, const void *sendbuf, void *recvbuf, uint64_t count,
	enum reduce_dtype dtype, enum reduce_op op, struct ccl_req *req)
{
	struct ccl_coll coll = {
		.send = sendbuf, .recv = recvbuf, .op = (uint8_t)op, .dtype = (uint8_t)dtype};

	if ((dtype != REDUCE_FP32 && dtype != REDUCE_INT32) || op != REDUCE_SUM)
		return -EOPNOTSUPP;
	if (count > UINT64_MAX / 2 / reduce_size(dtype) || (count && (!sendbuf || !recvbuf)))
		return -EINVAL;
	coll.bytes = count * reduce_size(dtype);
	if (sendbuf != recvbuf && coll.send < coll.recv + coll.bytes &&
		coll.recv < coll.send + coll.bytes)
		return -EINVAL;
	find_keys(c, &coll);
	return issue(c, &coll, req);
}

int ccl_ibarrier(struct ccl_comm *c, struct ccl_req *req)
{
	const struct ccl_coll coll = {.barrier = true, .op = REDUCE_NONE, .dtype = REDUCE_BYTES};

	return issue(c, &coll, req);
}

int ccl_test(const struct ccl_comm *c, struct ccl_req req)
{
	if (req.seq >= c->coll_issued)
		return -EINVAL;
	if (req.seq < c->coll_done)
		return 1;
	return c->failed;
}

/* ---- operations ---- */

/* Makes the next operation of the oldest collective that has bytes left. */
static void open_op(struct ccl_comm *c)
{
	struct ccl_coll *coll = ccl_coll_at(c, c->coll_open);
	struct ccl_op *op = ccl_op_at(c, c->op_made);
	const uint64_t part =
		ccl_plan_part(coll->bytes - coll->opened, c->mtu, c->m, c->max_packets);

	*op = (struct ccl_op){.coll = c->coll_open, .offset = coll->opened, .psn = c->next_psn};
	coll->opened += part;
	op->last = coll->opened == coll->bytes;
	ccl_plan_init(&op->plan, part, c->mtu, c->m);
	op->ctrl = (struct ccl_ctrl){
		.prim = CCL_ALLREDUCE,
		.op = coll->op,
		.dtype = coll->dtype,
		.op_seq = (uint8_t)c->op_made,
		.n = op->plan.n,
		.bytes = part,
		.flags = op->last && op->offset ? CCL_F_LAST : 0,
		.m = c->m,
		.tag = c->coll_open,
	};
	c->next_psn = psn_add(op->psn, (int32_t)op->plan.n + 1);
	c->op_made++;
	if (op->last)
		c->coll_open++;
}

static void step(struct ccl_comm *c, struct ccl_cursor *cur)
{
	cur->msg++;
	if (++cur->in == ccl_op_at(c, cur->op)->plan.n_msgs) {
		cur->op++;
		cur->in = 0;
	}
}

static uint64_t oldest_unfinished(const struct ccl_comm *c)
{
	return c->tx_ack.msg < c->rx.msg ? c->tx_ack.msg : c->rx.msg;
}

/* Operations that both cursors have left behind are finished. */
static void close_ops(struct ccl_comm *c)
{
	while (c->op_done < c->tx_ack.op && c->op_done < c->rx.op) {
		if (ccl_op_at(c, c->op_done)->last)
			c->coll_done++;
		c->op_done++;
	}
}

/* ---- posting ---- */

static uint8_t *send_slot(const struct ccl_comm *c, uint64_t msg)
{
	return c->stage + msg % c->w * c->slot_len;
}

static uint8_t *recv_slot(const struct ccl_comm *c, uint64_t msg)
{
	return c->stage + (c->w + msg % c->n_recv) * c->slot_len;
}

static struct ibv_sge recv_sge(struct ccl_comm *c)
{
	const struct ccl_cursor *cur = &c->rx_post;
	const struct ccl_op *op = ccl_op_at(c, cur->op);
	const struct ccl_coll *coll = ccl_coll_at(c, op->coll);
	const uint32_t len = ccl_plan_len(&op->plan, cur->in);
	const uint8_t *to = recv_slot(c, cur->msg);

	if (cur->in == 0 || !coll->recv_direct)
		return (struct ibv_sge){(uintptr_t)to, len, c->stage_mr->lkey};
	to = coll->recv + op->offset + ccl_plan_offset(&op->plan, cur->in);
	return (struct ibv_sge){(uintptr_t)to, len, coll->recv_lkey};
}

static int post_receives(struct ccl_comm *c)
{
	for (;;) {
		struct ibv_recv_wr wr[CCL_BATCH], *bad;
		struct ibv_sge sge[CCL_BATCH];
		unsigned n = 0;
		int rc;

		while (n < CCL_BATCH && c->rx_post.op < c->op_made &&
			c->rx_post.msg - c->rx.msg < c->n_recv) {
			sge[n] = recv_sge(c);
			wr[n] = (struct ibv_recv_wr){.wr_id = WR_RECV | c->rx_post.msg,
				.sg_list = &sge[n],
				.num_sge = 1};
			if (n)
				wr[n - 1].next = &wr[n];
			n++;
			step(c, &c->rx_post);
		}
		if (n == 0)
			return 0;
		rc = ibv_post_recv(c->qp, wr, &bad);
		if (rc)
			return ccl_fail(c, -rc, "posting a receive: %s", strerror(rc));
	}
}

static struct ibv_sge send_sge(struct ccl_comm *c)
{
	const struct ccl_cursor *cur = &c->tx_post;
	const struct ccl_op *op = ccl_op_at(c, cur->op);
	const struct ccl_coll *coll = ccl_coll_at(c, op->coll);
	const uint32_t len = ccl_plan_len(&op->plan, cur->in);
	uint8_t *slot = send_slot(c, cur->msg);
	const uint8_t *from;

	if (cur->in == 0) {
		ccl_ctrl_encode(&op->ctrl, slot);
		return (struct ibv_sge){(uintptr_t)slot, len, c->stage_mr->lkey};
	}
	from = coll->send + op->offset + ccl_plan_offset(&op->plan, cur->in);
	if (coll->send_direct)
		return (struct ibv_sge){(uintptr_t)from, len, coll->send_lkey};
	memcpy(slot, from, len); /* the slot's former message is acknowledged: the window */
	c->staged_sends++;
	return (struct ibv_sge){(uintptr_t)slot, len, c->stage_mr->lkey};
}

static bool may_send(const struct ccl_comm *c)
{
	return c->tx_post.op < c->op_made && c->tx_post.msg - oldest_unfinished(c) < c->w &&
	       c->tx_post.msg < c->rx_post.msg;
}

static int post_sends(struct ccl_comm *c)
{
	while (may_send(c)) {
		struct ibv_send_wr wr[CCL_BATCH], *bad;
		struct ibv_sge sge[CCL_BATCH];
		unsigned n = 0;
		int rc;

		for (; n < CCL_BATCH && may_send(c); n++) {
			const bool control = c->tx_post.in == 0;

			sge[n] = send_sge(c);
			wr[n] = (struct ibv_send_wr){
				.wr_id = c->tx_post.msg,
				.sg_list = &sge[n],
				.num_sge = 1,
				.opcode = control ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
				.send_flags = IBV_SEND_SIGNALED,
			};
			if (control)
				wr[n].imm_data =
					htonl(ccl_ctrl_imm(&ccl_op_at(c, c->tx_post.op)->ctrl));
			if (n)
				wr[n - 1].next = &wr[n];
			step(c, &c->tx_post);
		}
		rc = ibv_post_send(c->qp, wr, &bad);
		if (rc)
			return ccl_fail(c, -rc, "posting a send: %s", strerror(rc));
	}
	return 0;
}

static int pump(struct ccl_comm *c)
{
	int rc;

	while (c->coll_open != c->coll_issued && c->op_made - c->op_done < CCL_MAX_OPS)
		open_op(c);
	rc = post_receives(c);
	return rc ? rc : post_sends(c);
}

/* ---- completions ---- */

static int take_control(struct ccl_comm *c, const struct ibv_wc *wc)
{
	const struct ccl_op *op = ccl_op_at(c, c->rx.op);
	struct ccl_ctrl got;
	const char *field;

	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || wc->byte_len != CCL_CTRL_LEN ||
		ccl_ctrl_decode(ntohl(wc->imm_data), recv_slot(c, c->rx.msg), &got))
		return ccl_fail(c, -EPROTO,
			"the result of control message PSN 0x%06x is not one "
			"(%u bytes)",
			op->psn, wc->byte_len);
	field = ccl_ctrl_differ(&op->ctrl, &got);
	if (field)
		return ccl_fail(c, -EPROTO, "the ranks disagree on operation %llu: other %s",
			(unsigned long long)c->rx.op, field);
	return 0;
}

static int take_result(struct ccl_comm *c, const struct ibv_wc *wc)
{
	const struct ccl_op *op = ccl_op_at(c, c->rx.op);
	const struct ccl_coll *coll = ccl_coll_at(c, op->coll);
	const uint32_t len = ccl_plan_len(&op->plan, c->rx.in);
	const uint32_t psn = psn_add(op->psn, (int32_t)ccl_plan_psn(&op->plan, c->rx.in));

	if (wc->byte_len != len || wc->wc_flags & IBV_WC_WITH_IMM)
		return ccl_fail(c, -EPROTO, "the result at PSN 0x%06x has %u bytes%s instead of %u",
			psn, wc->byte_len,
			wc->wc_flags & IBV_WC_WITH_IMM ? " and an immediate" : "", len);
	if (coll->recv_direct)
		return 0;
	c->staged_receives++;
	memcpy(coll->recv + op->offset + ccl_plan_offset(&op->plan, c->rx.in),
		recv_slot(c, c->rx.msg), len);
	return 0;
}

/* What the oldest unfinished message is, for messages to people. */
static void describe_wait(struct ccl_comm *c, char *buf, size_t cap)
{
	const bool ack = c->tx_ack.msg < c->rx.msg;
	const struct ccl_cursor *cur = ack ? &c->tx_ack : &c->rx;
	const struct ccl_op *op = ccl_op_at(c, cur->op);

	if (c->op_done == c->op_made) {
		snprintf(buf, cap, "nothing was outstanding");
		return;
	}
	snprintf(buf, cap, "waiting for the %s of PSN 0x%06x (operation %llu, %s %u of %u)",
		ack ? "acknowledgement" : "result",
		psn_add(op->psn, (int32_t)ccl_plan_psn(&op->plan, cur->in)),
		(unsigned long long)cur->op, cur->in ? "message" : "control, message", cur->in,
		op->plan.n_msgs - 1);
}

static int completion_error(struct ccl_comm *c, const struct ibv_wc *wc)
{
	char wait[128];

	describe_wait(c, wait, sizeof(wait));
	switch (wc->status) {
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return ccl_fail(
			c, -ETIMEDOUT, "no answer: %s; %s", ibv_wc_status_str(wc->status), wait);
	case IBV_WC_REM_OP_ERR:
		return ccl_fail(c, -EREMOTEIO,
			"the switch has failed the group (the ranks disagree "
			"on an operation, or a rank broke down): %s; %s",
			ibv_wc_status_str(wc->status), wait);
	case IBV_WC_WR_FLUSH_ERR:
		return ccl_fail(
			c, -ECONNABORTED, "the queue pair left its working state; %s", wait);
	default:
		return ccl_fail(c, -EIO, "%s (vendor error 0x%x); %s",
			ibv_wc_status_str(wc->status), wc->vendor_err, wait);
	}
}

static int take(struct ccl_comm *c, const struct ibv_wc *wc)
{
	const bool recv = wc->wr_id & WR_RECV;
	struct ccl_cursor *cur = recv ? &c->rx : &c->tx_ack;
	int rc;

	if (wc->status != IBV_WC_SUCCESS)
		return completion_error(c, wc);
	/* Within a queue completions come in order of posting. */
	if ((wc->wr_id & ~WR_RECV) != cur->msg ||
		cur->msg >= (recv ? c->rx_post.msg : c->tx_post.msg))
		return ccl_fail(c, -EPROTO, "completion of %s %llu instead of %llu",
			recv ? "receive" : "send", (unsigned long long)(wc->wr_id & ~WR_RECV),
			(unsigned long long)cur->msg);
	if (recv) {
		/* A result of what has not been sent cannot be one. */
		if (cur->msg >= c->tx_post.msg)
			return ccl_fail(c, -EPROTO, "a result came before its request was sent");
		rc = cur->in == 0 ? take_control(c, wc) : take_result(c, wc);
		if (rc)
			return rc;
	}
	step(c, cur);
	return 0;
}

static int reap(struct ccl_comm *c)
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
		if (n) {
			close_ops(c);
			if (pump(c))
				return c->failed;
		}
		total += n;
	} while (n == CCL_POLL && total < 4 * (int)(c->w + c->n_recv));
	return total;
}

int ccl_progress(struct ccl_comm *c, uint64_t now)
{
	char wait[128];
	int n;

	if (c->failed)
		return c->failed;
	if (!c->connected)
		return -ENOTCONN;
	n = reap(c);
	if (n < 0)
		return n;
	/* Time in which nobody looked proves nothing. */
	if (n > 0 || c->fresh || now - c->looked_ns > c->timeout_ns / 2) {
		c->progress_ns = now;
		c->fresh = false;
	}
	c->looked_ns = now;
	if (ccl_busy(c) && now - c->progress_ns >= c->timeout_ns) {
		describe_wait(c, wait, sizeof(wait));
		return ccl_fail(c, -ETIMEDOUT, "nothing came for %llu ms; %s",
			(unsigned long long)(c->timeout_ns / 1000000), wait);
	}
	return n;
}
