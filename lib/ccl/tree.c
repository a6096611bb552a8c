/* SPDX-License-Identifier: BSD-3-Clause */
/* The core of a tree: one collective at a time, in messages. No clock, no blocking. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/tree_priv.h"

enum { POLL = 16 };

static int fail(struct ccl_tree *t, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int fail(struct ccl_tree *t, int error, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->failed)
		return t->failed;
	t->failed = error;
	n = snprintf(t->err, sizeof(t->err), "rank %u: tree: ", t->conf.rank);
	va_start(ap, fmt);
	vsnprintf(t->err + n, sizeof(t->err) - (size_t)n, fmt, ap);
	va_end(ap);
	return error;
}

/* ---- messages ---- */

static uint64_t cap(const struct ccl_tree *t)
{
	return (uint64_t)t->conf.m * t->mtu;
}

static struct ibv_sge message(const struct ccl_tree *t, const struct tree_coll *c, uint64_t k)
{
	const uint64_t at = k * cap(t), left = c->bytes - at;

	return (struct ibv_sge){
		(uintptr_t)c->buf + at, (uint32_t)(left < cap(t) ? left : cap(t)), t->mr->lkey};
}

static const struct tree_coll *current(const struct ccl_tree *t)
{
	return &t->coll[t->done % CCL_MAX_QUEUED];
}

static uint64_t here(const struct ccl_tree *t)
{
	return t->parent ? t->parent->arrived - t->parent_first : t->n_messages;
}

static int post_receives(struct ccl_tree *t)
{
	struct tree_link *p = t->parent;

	while (p->posted - t->parent_first < t->n_messages && p->posted - p->arrived < t->conf.w) {
		struct ibv_sge sge = message(t, current(t), p->posted - t->parent_first);
		struct ibv_recv_wr wr = {.wr_id = (uint64_t)TREE_DATA << 32 | (unsigned)(p - t->in),
					   .sg_list = &sge,
					   .num_sge = 1},
				   *bad;
		const int rc = ibv_post_recv(p->qp, &wr, &bad);

		if (rc)
			return fail(t, -rc, "posting a receive: %s", strerror(rc));
		p->posted++;
	}
	return 0;
}

/* How many receives there are, half a window at a time, one telling at a time. */
static int tell(struct ccl_tree *t)
{
	struct tree_link *p = t->parent;
	const bool last = p->posted - t->parent_first == t->n_messages;
	const uint32_t more = p->posted - p->told;
	struct ibv_send_wr wr = {.wr_id = (uint64_t)TREE_TOLD << 32 | (unsigned)(p - t->in),
				   .opcode = IBV_WR_SEND_WITH_IMM,
				   .imm_data = htonl(p->posted)},
			   *bad;
	int rc;

	if (p->telling || more == 0 || (!last && more < (t->conf.w + 1) / 2))
		return 0;
	rc = ibv_post_send(p->qp, &wr, &bad);
	if (rc)
		return fail(t, -rc, "telling rank %u of receives: %s", p->rank, strerror(rc));
	p->told = p->posted;
	p->telling = true;
	return 0;
}

static int send_on(struct ccl_tree *t, unsigned i)
{
	struct tree_link *c = t->child[i];

	while (c->sent - t->child_first[i] < here(t) && c->sent != c->allowed &&
		c->sent - c->acked < t->conf.w) {
		struct ibv_sge sge = message(t, current(t), c->sent - t->child_first[i]);
		struct ibv_send_wr wr = {.wr_id = (uint64_t)TREE_DATA_SENT << 32 |
						  (unsigned)(c - t->out),
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND},
				   *bad;
		const int rc = ibv_post_send(c->qp, &wr, &bad);

		if (rc)
			return fail(t, -rc, "sending to rank %u: %s", c->rank, strerror(rc));
		c->sent++;
	}
	return 0;
}

/* ---- a collective ---- */

static struct tree_link *find(struct tree_link *link, unsigned n, unsigned rank)
{
	unsigned i = 0;

	while (i < n && link[i].rank != rank)
		i++;
	return &link[i];
}

static int begin(struct ccl_tree *t)
{
	const struct tree_coll *c = current(t);
	const unsigned n = t->conf.n_ranks, place = tree_place(t, c->root);
	unsigned child[CCL_TREE_MAX_CHILDREN];

	t->begun = true;
	t->fresh = true;
	t->n_messages = (c->bytes + cap(t) - 1) / cap(t);
	t->mr = t->conf.find ? t->conf.find(t->conf.find_arg, c->buf, c->bytes) : NULL;
	if (!t->mr && c->bytes)
		t->mr = t->own_mr = ibv_reg_mr(t->pd, c->buf, c->bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!t->mr && c->bytes)
		return fail(t, -errno, "registering %llu bytes: %s", (unsigned long long)c->bytes,
			strerror(errno));
	t->parent = NULL;
	if (place > 0) {
		t->parent = find(
			t->in, t->n_in, (ccl_tree_parent(&t->conf.shape, place) + c->root) % n);
		t->parent_first = t->parent->posted;
	}
	t->n_children = ccl_tree_children(&t->conf.shape, n, place, child);
	for (unsigned i = 0; i < t->n_children; i++) {
		t->child[i] = find(t->out, t->n_out, (child[i] + c->root) % n);
		t->child_first[i] = t->child[i]->sent;
	}
	return 0;
}

static bool is_over(const struct ccl_tree *t)
{
	bool over = here(t) == t->n_messages && !(t->parent && t->parent->telling);

	for (unsigned i = 0; over && i < t->n_children; i++)
		over = t->child[i]->acked - t->child_first[i] == t->n_messages;
	return over;
}

static int work(struct ccl_tree *t)
{
	int rc = 0;

	if (t->parent)
		(void)((rc = post_receives(t)) || (rc = tell(t)));
	for (unsigned i = 0; rc == 0 && i < t->n_children; i++)
		rc = send_on(t, i);
	return rc;
}

/* As far as it goes: how many collectives have ended. */
static int go_on(struct ccl_tree *t)
{
	int n = 0, rc = 0;

	while (rc == 0 && t->done != t->issued) {
		if (!t->begun)
			rc = begin(t);
		if (rc == 0)
			rc = work(t);
		if (rc || !is_over(t))
			break;
		if (t->own_mr)
			ibv_dereg_mr(t->own_mr);
		t->own_mr = NULL;
		t->begun = false;
		t->done++;
		n++;
	}
	return rc ? rc : n;
}

/* ---- completions ---- */

static int credit(struct ccl_tree *t, unsigned out, const struct ibv_wc *wc)
{
	struct tree_link *c = &t->out[out];
	const uint32_t allowed = ntohl(wc->imm_data);

	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || allowed - c->allowed > t->conf.w ||
		allowed - c->sent > t->conf.w)
		return fail(t, -EPROTO, "rank %u tells of receives that cannot be", c->rank);
	c->allowed = allowed;
	return -tree_post_credit(t, out);
}

static int data(struct ccl_tree *t, struct tree_link *p, const struct ibv_wc *wc)
{
	if (!t->begun || p != t->parent ||
		wc->byte_len != message(t, current(t), p->arrived - t->parent_first).length)
		return fail(t, -EPROTO,
			"a message of %u bytes from rank %u: the ranks call different collectives",
			wc->byte_len, p->rank);
	p->arrived++;
	return 0;
}

static int completed(struct ccl_tree *t, const struct ibv_wc *wc)
{
	const enum tree_kind kind = (enum tree_kind)(wc->wr_id >> 32);
	const unsigned i = (uint32_t)wc->wr_id;
	const bool out = kind == TREE_DATA_SENT || kind == TREE_CREDIT;

	if (wc->status != IBV_WC_SUCCESS)
		return fail(t, wc->status == IBV_WC_RETRY_EXC_ERR ? -ETIMEDOUT : -EIO,
			"connection %s rank %u: %s", out ? "to" : "from",
			out ? t->out[i].rank : t->in[i].rank, ibv_wc_status_str(wc->status));
	switch (kind) {
	case TREE_DATA_SENT:
		t->out[i].acked++;
		return 0;
	case TREE_CREDIT:
		return credit(t, i, wc);
	case TREE_TOLD:
		t->in[i].telling = false;
		return 0;
	default:
		return data(t, &t->in[i], wc);
	}
}

static int check_time(struct ccl_tree *t, uint64_t now, bool moved)
{
	/* Time in which nobody looked proves nothing. */
	if (moved || t->fresh || now - t->looked_ns > t->conf.timeout_ns / 2) {
		t->progress_ns = now;
		t->fresh = false;
	}
	t->looked_ns = now;
	if (!t->begun || now - t->progress_ns < t->conf.timeout_ns)
		return 0;
	return fail(t, -ETIMEDOUT, "nothing came for %llu ms; %llu of %llu messages are here",
		(unsigned long long)(t->conf.timeout_ns / 1000000), (unsigned long long)here(t),
		(unsigned long long)t->n_messages);
}

int ccl_tree_progress(struct ccl_tree *t, uint64_t now)
{
	struct ibv_wc wc[POLL];
	int n, more, rc = 0;

	if (t->failed)
		return t->failed;
	n = ibv_poll_cq(t->cq, POLL, wc);
	if (n < 0)
		return fail(t, -EIO, "the completion queue failed");
	for (int i = 0; i < n && !rc; i++)
		rc = completed(t, &wc[i]);
	more = rc ? rc : go_on(t);
	if (more < 0)
		return fail(t, more, "%s", strerror(-more));
	rc = check_time(t, now, n + more > 0);
	return rc ? rc : n + more;
}

/* ---- issuing ---- */

int ccl_tree_ibroadcast(
	struct ccl_tree *t, void *buf, uint64_t bytes, unsigned root, struct ccl_req *req)
{
	if (t->failed)
		return t->failed;
	if (!t->ready)
		return -ENOTCONN;
	if (root >= t->conf.n_ranks || (bytes && !buf) ||
		(t->conf.only_root >= 0 && root != (unsigned)t->conf.only_root))
		return -EINVAL;
	if (t->issued - t->done == CCL_MAX_QUEUED)
		return -EAGAIN;
	t->coll[t->issued % CCL_MAX_QUEUED] = (struct tree_coll){buf, bytes, root};
	req->seq = t->issued++;
	return 0;
}

int ccl_tree_test(const struct ccl_tree *t, struct ccl_req req)
{
	if (req.seq >= t->issued)
		return -EINVAL;
	return req.seq < t->done ? 1 : t->failed;
}

void ccl_tree_fail(struct ccl_tree *t, int error)
{
	if (!t->failed)
		t->failed = error;
}

const char *ccl_tree_error(const struct ccl_tree *t)
{
	return t->err;
}
