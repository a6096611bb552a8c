/* SPDX-License-Identifier: BSD-3-Clause */
/* Failing, and what is said of it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/mcast.h"
#include "lib/ccl/ring.h"
#include "lib/ccl/tree.h"
#include "lib/wire/psn.h"

static bool said(const struct ccl_comm *c)
{
	return (c->ring && ccl_ring_error(c->ring)[0]) ||
	       (c->across && ccl_ring_error(c->across)[0]) ||
	       (c->mcast && ccl_mcast_error(c->mcast)[0]) ||
	       (c->tree && ccl_tree_error(c->tree)[0]);
}

int ccl_fail(struct ccl_comm *c, int error, const char *fmt, ...)
{
	char at[WIRE_IP_STRLEN];
	va_list ap;
	int n = 0;

	if (c->failed)
		return c->failed;
	c->failed = error;
	if (c->n_memb)
		n = snprintf(c->err, sizeof(c->err), "rank %u, switch %s (QPN 0x%x): ", c->rank,
			wire_ip_format(&c->remote_ip, at, sizeof(at)), c->memb[0].remote_qpn);
	else if (!said(c)) /* who failed says it */
		n = snprintf(c->err, sizeof(c->err), "rank %u: ", c->rank);
	va_start(ap, fmt);
	vsnprintf(c->err + n, sizeof(c->err) - (size_t)n, fmt, ap);
	va_end(ap);
	if (c->ring)
		ccl_ring_fail(c->ring, error, "%s", c->err);
	else if (c->meeting)
		ccl_ring_fail(c->meeting->ring, error, "%s", c->err);
	if (c->across)
		ccl_ring_fail(c->across, error, "%s", c->err);
	if (c->mcast)
		ccl_mcast_fail(c->mcast, error);
	if (c->tree)
		ccl_tree_fail(c->tree, error);
	ccl_qp_to_error(c);
	return error;
}

void ccl_abort(struct ccl_comm *c, const char *reason)
{
	ccl_fail(c, -ECANCELED, "%s", reason);
}

struct ccl_memb *ccl_waiting_memb(struct ccl_comm *c)
{
	for (unsigned i = 0; i < c->n_memb; i++)
		if (c->memb[i].op_done != c->memb[i].op_made)
			return &c->memb[i];
	return c->memb;
}

void ccl_describe_wait(struct ccl_comm *c, char *buf, size_t cap)
{
	struct ccl_memb *mb = ccl_waiting_memb(c);
	const struct ccl_cursor *cur;
	const struct ccl_op *op;
	char whose[48] = "";
	bool ack;

	if (mb->op_done == mb->op_made) {
		snprintf(buf, cap, "nothing was outstanding");
		return;
	}
	ack = mb->tx_ack.msg < mb->rx.msg;
	cur = ack ? &mb->tx_ack : &mb->rx;
	op = ccl_op_at(mb, cur->op);
	if (op->part.prim != CCL_PRIM_AR)
		snprintf(whose, sizeof(whose), "%s %u, ",
			op->part.prim == CCL_PRIM_RED ? "reduce to rank" : "broadcast of rank",
			op->part.root);
	snprintf(buf, cap, "waiting for the %s of PSN 0x%06x (%soperation %llu, %s %u of %u)",
		ack ? "acknowledgement" : "result",
		psn_add(op->psn, (int32_t)ccl_plan_psn(&op->plan, cur->in)), whose,
		(unsigned long long)cur->op, cur->in ? "message" : "control, message", cur->in,
		op->plan.n_msgs - 1);
}

int ccl_completion_error(struct ccl_comm *c, const struct ibv_wc *wc)
{
	char wait[160];

	ccl_describe_wait(c, wait, sizeof(wait));
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
		return ccl_fail(c, -ECONNABORTED, "the queue pair left its working state%s; %s",
			c->mode == CCL_MODE_1 ? ": the switch has failed the group" : "", wait);
	default:
		return ccl_fail(c, -EIO, "%s (vendor error 0x%x); %s",
			ibv_wc_status_str(wc->status), wc->vendor_err, wait);
	}
}
