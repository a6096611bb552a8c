/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective by multicast: what the protocol asks for is posted, what completes is told to it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/mcast_priv.h"
#include "lib/mcast/schedule.h"
#include "lib/wire/bytes.h"

enum { GRH_IP4_SRC = 32, GRH_IP6_SRC = 8 };

/* At the end, for what is still being said to the neighbours. */
static const uint64_t DRAIN_NS = 1000000000;
/* Between two looks at what the device has marked. */
static const uint64_t LOOK_NS = 1000000;

static void broken(struct ccl_mcast *c, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void broken(struct ccl_mcast *c, int error, const char *fmt, ...)
{
	va_list ap;

	if (c->err[0] == '\0') {
		va_start(ap, fmt);
		vsnprintf(c->err, sizeof(c->err), fmt, ap);
		va_end(ap);
	}
	mcast_fail(&c->core, error);
}

static unsigned peer_index(const struct ccl_mcast *c, unsigned rank)
{
	unsigned i = 0;

	while (c->peer[i] != rank)
		i++;
	return i;
}

/* ---- posting ---- */

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct ibv_send_wr *bad;

	wr->sg_list = sge;
	wr->num_sge = 1;
	return -ibv_post_send(qp, wr, &bad);
}

static int post_batch(struct mc_tree *t)
{
	struct mc_batch *b = &t->batch;
	struct ibv_send_wr *bad;
	int rc;

	if (b->n == 0)
		return 0;
	rc = ibv_post_send(t->qp, b->wr, &bad);
	b->n = 0;
	return -rc;
}

/* What has been begun of them; after an error (rc) nothing more is posted. */
static int post_batches(struct ccl_mcast *c, int rc)
{
	for (unsigned i = 0; i < c->conf.trees; i++) {
		if (rc)
			c->tree[i].batch.n = 0;
		else
			rc = post_batch(&c->tree[i]);
	}
	return rc;
}

/* A queue pair sends in turn: what completes stands for those before it, and says how many they
 * are. The last of a tree always does. One that fails completes by itself. */
static void mark_last(
	const struct ccl_mcast *c, struct mc_tree *t, uint32_t psn, struct ibv_send_wr *wr)
{
	if (++t->quiet < mc_signal_every(c) &&
		!mcast_last_of_tree(psn, c->core.to_send, MC_PSN_BITS, c->conf.trees))
		return;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->wr_id |= t->quiet;
	t->quiet = 0;
}

static int post_chunk(struct ccl_mcast *c, const struct mcast_request *r)
{
	const uint32_t psn = r->imm & ((1u << MC_PSN_BITS) - 1);
	const unsigned tree = psn % c->conf.trees;
	struct mc_batch *b = &c->tree[tree].batch;
	struct ibv_send_wr *wr = &b->wr[b->n];

	b->sge[b->n] =
		(struct ibv_sge){(uintptr_t)c->buf + r->offset, (uint32_t)r->len, c->buf_mr->lkey};
	*wr = (struct ibv_send_wr){.wr_id = (uint64_t)MC_CHUNK_SEND << 32,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.sg_list = &b->sge[b->n],
		.num_sge = 1,
		.imm_data = htobe32(r->imm)};
	if (c->conf.uc) {
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->wr.rdma.remote_addr = r->offset;
		wr->wr.rdma.rkey = c->key + c->core.id;
	} else {
		wr->wr.ud.ah = c->tree[tree].ah;
		wr->wr.ud.remote_qpn = MC_QPN;
		wr->wr.ud.remote_qkey = MC_QKEY;
	}
	mark_last(c, &c->tree[tree], psn, wr);
	if (b->n > 0)
		b->wr[b->n - 1].next = wr;
	return ++b->n < MC_BATCH ? 0 : post_batch(&c->tree[tree]);
}

static int post_message(struct ccl_mcast *c, const struct mcast_request *r)
{
	struct ibv_sge sge = {.length = sizeof(struct mc_wire), .lkey = c->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	unsigned slot = 0;
	struct mc_wire *w;

	while (c->message_busy[slot])
		slot++;
	w = mc_outgoing(c, slot);
	*w = (struct mc_wire){.type = r->message.type};
	put_be32(w->id, r->message.id);
	put_be32(w->arg, r->message.arg);
	if (c->buf_mr) {
		put_be32(w->rkey, c->buf_mr->rkey);
		put_be64(w->addr, (uintptr_t)c->buf);
	}
	sge.addr = (uintptr_t)w;
	wr.wr_id = (uint64_t)MC_RC_SEND << 32 | slot;
	c->message_busy[slot] = true;
	c->n_messages++;
	return post(c->rc[peer_index(c, r->peer)], &wr, &sge);
}

static int post_read(struct ccl_mcast *c, const struct mcast_request *r)
{
	struct ibv_sge sge = {(uintptr_t)c->buf + r->offset, (uint32_t)r->len, c->buf_mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ, .wr.rdma = {c->left_addr + r->offset, c->left_rkey}};
	unsigned slot = 0;

	while (c->read[slot].busy)
		slot++;
	c->read[slot] = (struct mc_read){true, r->block, r->first, r->n};
	wr.wr_id = (uint64_t)MC_RC_READ << 32 | slot;
	return post(c->rc[peer_index(c, r->peer)], &wr, &sge);
}

static void post_all(struct ccl_mcast *c)
{
	struct mcast_request r;
	int rc = 0;

	while (rc == 0 && c->n_messages < MC_MESSAGES && mcast_next(&c->core, &r)) {
		if (r.type == MCAST_POST_SEND)
			rc = post_chunk(c, &r);
		else if (r.type == MCAST_POST_MESSAGE)
			rc = post_message(c, &r);
		else
			rc = post_read(c, &r);
	}
	rc = post_batches(c, rc);
	if (rc)
		broken(c, rc, "rank %u: posting: %s", c->conf.rank, strerror(-rc));
}

/* ---- completions ---- */

/* Whose datagram it is, tried first: the last one's; n_ranks: nobody's. GRH: for IPv4, the packet's
 * header in its last 20 bytes. */
static unsigned sender(
	struct ccl_mcast *c, unsigned tree, const uint8_t *grh, const struct ibv_wc *wc)
{
	const bool ip4 = wire_ip_is4(&c->conf.group);
	const unsigned n = c->conf.n_ranks;
	struct wire_ip src;

	if (!(wc->wc_flags & IBV_WC_GRH))
		return n;
	if (ip4)
		src = wire_ip_from4(get_be32(grh + GRH_IP4_SRC));
	else
		memcpy(src.b, grh + GRH_IP6_SRC, sizeof(src.b));
	for (unsigned k = 0; k < n; k++) {
		const unsigned i = (c->sender + k) % n;

		if (c->rank[i].group_qpn[tree] == wc->src_qp && wire_ip_eq(&c->rank[i].ip, &src))
			return c->sender = i;
	}
	return n;
}

static void datagram(struct ccl_mcast *c, unsigned slot, const struct ibv_wc *wc, uint64_t now)
{
	const uint8_t *at = mc_staging(c, slot);
	const uint64_t len = wc->byte_len - MC_GRH;
	uint64_t offset;

	if (wc->byte_len >= MC_GRH && (wc->wc_flags & IBV_WC_WITH_IMM) &&
		mcast_datagram(&c->core, sender(c, mc_tree_of(c, slot), at, wc),
			be32toh(wc->imm_data), len, now, &offset) == MCAST_TAKE)
		memcpy(c->buf + offset, at + MC_GRH, len);
}

static void message(struct ccl_mcast *c, unsigned peer, unsigned slot, uint32_t len, uint64_t now)
{
	const struct mc_wire *w = mc_incoming(c, peer, slot);
	const struct mcast_message m = {w->type, get_be32(w->id), get_be32(w->arg)};

	if (len == sizeof(*w)) {
		if (m.type == MCAST_MSG_GRANT && m.id == c->core.id && peer == 0) {
			c->left_addr = get_be64(w->addr);
			c->left_rkey = get_be32(w->rkey);
		}
		if (m.type == MCAST_MSG_ASK || m.type == MCAST_MSG_GRANT)
			mc_marks_look(c, now);
		mcast_message(&c->core, c->peer[peer], &m, now);
	}
	if (mc_post_rc_recv(c, peer, slot))
		broken(c, -EIO, "rank %u: posting a receive failed", c->conf.rank);
}

static void complete(struct ccl_mcast *c, const struct ibv_wc *wc, uint64_t now)
{
	const unsigned index = (uint32_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS) {
		broken(c, -EIO, "rank %u: multicast: %s", c->conf.rank,
			ibv_wc_status_str(wc->status));
		return;
	}
	switch ((enum mc_kind)(wc->wr_id >> 32)) {
	case MC_CHUNK_RECV:
		if (c->marked) /* a tree has brought all that it was to */
			mc_marks_look(c, now);
		else
			datagram(c, index, wc, now);
		c->used[c->n_used++] = index;
		break;
	case MC_CHUNK_SEND:
		mcast_sent(&c->core, index, now);
		break;
	case MC_RC_RECV:
		message(c, index >> 16, index & 0xffff, wc->byte_len, now);
		break;
	case MC_RC_SEND:
		c->message_busy[index] = false;
		c->n_messages--;
		break;
	case MC_RC_READ:
		c->read[index].busy = false;
		mcast_read_done(&c->core, c->read[index].block, c->read[index].first,
			c->read[index].n, now);
		break;
	}
}

/* ---- a collective ---- */

static bool is_over(const struct ccl_mcast *c)
{
	return c->core.phase != MCAST_BARRIER && c->core.phase != MCAST_RUNNING;
}

static unsigned poll_one(struct ccl_mcast *c, struct ibv_cq *cq, uint64_t now)
{
	struct ibv_wc wc[MC_POLL];
	const int n = ibv_poll_cq(cq, MC_POLL, wc);

	for (int i = 0; i < n; i++)
		complete(c, &wc[i], now);
	if (c->n_used > 0 && mc_post_chunk_recvs(c, c->used, c->n_used))
		broken(c, -EIO, "rank %u: posting a receive failed", c->conf.rank);
	c->n_used = 0;
	if (n < 0)
		broken(c, -EIO, "rank %u: polling failed", c->conf.rank);
	return n > 0 ? (unsigned)n : 0;
}

/* While chunks come and complete nothing, it is seen that they do: what is here is not fetched, and
 * who waits knows of progress. How many are new. */
static unsigned look(struct ccl_mcast *c, uint64_t now)
{
	const uint64_t before = c->core.count.taken;

	if (!c->marked || now - c->looked < LOOK_NS)
		return 0;
	c->looked = now;
	mc_marks_look(c, now);
	return (unsigned)(c->core.count.taken - before);
}

static unsigned turn(struct ccl_mcast *c, uint64_t now)
{
	struct ibv_cq *cq;
	unsigned n = 0;

	for (unsigned i = 0; (cq = ccl_mcast_cq(c, i)) != NULL; i++)
		n += poll_one(c, cq, now);
	n += look(c, now);
	if (now >= mcast_deadline(&c->core)) {
		mc_marks_look(c, now);
		mcast_tick(&c->core, now);
	}
	post_all(c);
	return n;
}

/* Registered memory, or the buffer is registered for this one alone. */
static int find_memory(struct ccl_mcast *c, uint64_t len)
{
	c->buf_mr = c->conf.find ? c->conf.find(c->conf.find_arg, c->buf, len) : NULL;
	if (c->buf_mr)
		return 0;
	c->own_mr = c->buf_mr =
		ibv_reg_mr(c->pd, c->buf, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	return c->buf_mr ? 0 : -errno;
}

static void begin(struct ccl_mcast *c, uint64_t now)
{
	const struct mc_coll *coll = &c->coll[c->done % CCL_MAX_QUEUED];
	const size_t need = mcast_memory(&c->core.config, coll->all, coll->block);
	int rc;

	c->begun = true;
	c->drain_until = 0;
	c->buf = coll->buf;
	c->core_memory = calloc(1, need);
	rc = c->core_memory
		     ? find_memory(c, coll->all ? coll->block * c->conf.n_ranks : coll->block)
		     : -ENOMEM;
	if (rc == 0)
		rc = coll->all ? mcast_begin_allgather(
					 &c->core, coll->block, c->core_memory, need, now)
			       : mcast_begin_broadcast(&c->core, coll->root, coll->block,
					 c->core_memory, need, now);
	/* Before the barrier's first message: who has heard all of it may send. */
	if (rc == 0)
		rc = -mc_marks_begin(c);
	if (rc == 0) {
		post_all(c);
		return;
	}
	mc_marks_end(c);
	c->failed = rc;
	snprintf(c->err, sizeof(c->err), "rank %u: multicast: beginning a collective: %s",
		c->conf.rank, strerror(-rc));
}

/* Messages are the caller's memory's last users: they name it. */
static bool drained(struct ccl_mcast *c, uint64_t now)
{
	if (!is_over(c))
		return false;
	if (c->drain_until == 0)
		c->drain_until = now + DRAIN_NS;
	return c->n_messages == 0 || now >= c->drain_until;
}

static void finish(struct ccl_mcast *c, uint64_t now)
{
	const struct mcast_times *t = &c->core.times;

	mc_marks_end(c);
	if (c->own_mr)
		ibv_dereg_mr(c->own_mr);
	free(c->core_memory);
	c->buf_mr = c->own_mr = NULL;
	c->core_memory = NULL;
	c->begun = false;
	if (c->core.phase == MCAST_DONE) {
		c->times = (struct ccl_mcast_times){
			t->begun, t->running, t->came, t->cut, t->whole, now};
		c->done++;
		return;
	}
	c->failed = c->core.error;
	if (c->err[0] == '\0')
		snprintf(c->err, sizeof(c->err), "rank %u: multicast: %s; %u blocks incomplete",
			c->conf.rank,
			c->core.error == -ECONNABORTED ? "a neighbour has failed"
						       : strerror(-c->core.error),
			c->core.n_missing);
}

int ccl_mcast_progress(struct ccl_mcast *c, uint64_t now)
{
	unsigned n;

	if (c->failed)
		return c->failed;
	n = turn(c, now);
	if (c->begun && drained(c, now))
		finish(c, now);
	while (!c->failed && !c->begun && c->done != c->issued) {
		if (c->coll[c->done % CCL_MAX_QUEUED].block > 0)
			begin(c, now);
		else
			c->done++; /* nothing to be told */
		n++;
	}
	return c->failed ? c->failed : (int)n;
}

uint64_t ccl_mcast_deadline(const struct ccl_mcast *c)
{
	const uint64_t at = mcast_deadline(&c->core);

	return c->begun && c->drain_until && c->drain_until < at ? c->drain_until : at;
}

bool ccl_mcast_busy(const struct ccl_mcast *c)
{
	return c->done != c->issued;
}

void ccl_mcast_fail(struct ccl_mcast *c, int error)
{
	mcast_fail(&c->core, error);
	post_all(c);
	mc_marks_end(c);
	if (!c->failed)
		c->failed = error;
}

/* ---- issuing ---- */

bool ccl_mcast_fits(const struct ccl_mcast *c, bool allgather, uint64_t bytes)
{
	return mcast_memory(&c->core.config, allgather, bytes) > 0;
}

static int issue(struct ccl_mcast *c, const struct mc_coll *coll, struct ccl_req *req)
{
	if (c->failed)
		return c->failed;
	if (!c->ready)
		return -ENOTCONN;
	if (coll->root >= c->conf.n_ranks)
		return -EINVAL;
	if (!ccl_mcast_fits(c, coll->all, coll->block))
		return -EMSGSIZE;
	if (c->issued - c->done == CCL_MAX_QUEUED)
		return -EAGAIN;
	c->coll[c->issued % CCL_MAX_QUEUED] = *coll;
	req->seq = c->issued++;
	return 0;
}

int ccl_mcast_iallgather(struct ccl_mcast *c, const void *sendbuf, void *recvbuf, uint64_t bytes,
	struct ccl_req *req)
{
	const struct mc_coll coll = {.buf = recvbuf, .block = bytes, .all = true};
	uint8_t *own = (uint8_t *)recvbuf + c->conf.rank * bytes;
	const int rc = issue(c, &coll, req);

	if (rc == 0 && own != sendbuf)
		memcpy(own, sendbuf, bytes);
	return rc;
}

int ccl_mcast_ibroadcast(
	struct ccl_mcast *c, void *buf, uint64_t bytes, unsigned root, struct ccl_req *req)
{
	const struct mc_coll coll = {.buf = buf, .block = bytes, .root = root};

	return issue(c, &coll, req);
}

int ccl_mcast_test(const struct ccl_mcast *c, struct ccl_req req)
{
	if (req.seq >= c->issued)
		return -EINVAL;
	return req.seq < c->done ? 1 : c->failed;
}

const char *ccl_mcast_error(const struct ccl_mcast *c)
{
	return c->err;
}

void ccl_mcast_times(const struct ccl_mcast *c, struct ccl_mcast_times *times)
{
	*times = c->times;
}

const struct mcast_counters *ccl_mcast_counters(const struct ccl_mcast *c)
{
	return &c->core.count;
}
