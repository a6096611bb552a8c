/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-I: what becomes of messages. Those of one endpoint are dealt with in the order in which they
 * came; the one in front waits for the other contributions, for its turn at every endpoint that it
 * goes to, and for a buffer. While it waits, receives are not posted again, and its sender is held
 * sooner or later. The oldest message never waits for a younger one, so this ends. */
#include <assert.h>
#include <endian.h>
#include <string.h>

#include "dataplane/inc/mode1_state.h"
#include "dataplane/inc/modules.h"

enum { POLL = 32, NO_EP = 0xff };

static void fail(struct mode1 *m, enum inc_fail reason, unsigned ep, unsigned status, uint64_t now)
{
	m->g->fail_status = (uint8_t)status;
	inc_group_fail(m->g, reason, ep);
	mode1_stop(m, now);
}

static struct mode1_message *front(const struct mode1 *m, unsigned ep)
{
	const struct mode1_ep *e = &m->ep[ep];

	return &e->queue[e->head];
}

/* ---- who sends and who gets the messages of a route ---- */

static uint64_t all_eps(const struct inc_group *g)
{
	return g->child_mask | (g->parent_ep == 0xff ? 0 : 1ull << g->parent_ep);
}

static uint64_t senders(const struct inc_group *g, const struct inc_route *r)
{
	return r->prim == INC_AR ? all_eps(g) : r->in;
}

static uint64_t receivers(const struct inc_group *g, const struct inc_route *r)
{
	if (r->prim == INC_AR)
		return all_eps(g);
	return r->in ? r->outs : 0;
}

/* The number after this one, for an endpoint that has to do with the operation's data or not. */
static uint32_t number_after(const struct inc_desc *d, uint32_t number, bool data)
{
	return psn_add(number == d->ctrl_psn && !data ? d->last : number, 1);
}

/* Does some endpoint still have messages of this operation before it? */
static bool is_live(struct inc_group *g, const struct inc_desc *d)
{
	uint64_t from = senders(g, &g->control), to = receivers(g, &g->control);

	for (unsigned i = 0; d->valid && i < g->n_ep; i++) {
		const struct inc_ep *ep = inc_ep_at(g, i);

		if ((from >> i & 1 && psn_le(ep->ack_next, d->last)) ||
			(to >> i & 1 && psn_le(ep->refl_next, d->last)))
			return true;
	}
	return false;
}

/* ---- is it the message that its number demands? ---- */

enum admission { ADMITTED, WAITS, REFUSED };

static enum admission refuse(struct mode1 *m, unsigned ep, enum inc_fail reason, uint64_t now)
{
	fail(m, reason, ep, 0, now);
	return REFUSED;
}

/* The first control of an operation to arrive. */
static enum admission begin(
	struct mode1 *m, unsigned ep, const struct mode1_message *msg, uint64_t now)
{
	struct inc_group *g = m->g;
	struct inc_desc *d = inc_desc_at(g, g->next_seq % INC_N_DESC);
	struct inc_desc fresh = {0};
	uint32_t n;

	if (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == INC_DRAINING || is_live(g, d))
		return WAITS;
	if (!inc_control_parse(g, msg->imm, mode1_buf_at(m, msg->buf), &fresh))
		return refuse(m, ep, INC_FAIL_CTRL_INVALID, now);
	n = (fresh.n + fresh.m - 1) / fresh.m;
	fresh.valid = 1;
	fresh.imm = msg->imm;
	fresh.ctrl_psn = g->next_ctrl;
	fresh.last = psn_add(fresh.ctrl_psn, (int32_t)n);
	memcpy(fresh.payload, mode1_buf_at(m, msg->buf), INC_CTRL_LEN);
	*d = fresh;
	g->next_ctrl = psn_add(fresh.last, 1);
	g->next_seq++;
	inc_count(g, INC_C_CONTROLS);
	return ADMITTED;
}

static enum admission admit_control(struct mode1 *m, unsigned ep, const struct mode1_message *msg,
	const struct inc_desc *d, uint64_t now)
{
	if (!msg->ctrl || msg->len != INC_CTRL_LEN)
		return refuse(m, ep, INC_FAIL_MODE1_SEQUENCE, now);
	if (d == NULL)
		return begin(m, ep, msg, now);
	if (d->imm != msg->imm || memcmp(d->payload, mode1_buf_at(m, msg->buf), INC_CTRL_LEN) != 0)
		return refuse(m, ep, INC_FAIL_CTRL_MISMATCH, now);
	return ADMITTED;
}

static uint32_t length_of(const struct inc_group *g, const struct inc_desc *d, uint32_t number)
{
	uint64_t full = (uint64_t)d->m * g->mtu;
	uint64_t done = full * ((number - d->ctrl_psn - 1) & PSN_MASK);

	return (uint32_t)(d->bytes - done < full ? d->bytes - done : full);
}

static enum admission admit(struct mode1 *m, unsigned ep, struct mode1_message *msg, uint64_t now)
{
	struct inc_group *g = m->g;
	uint32_t number = inc_ep_at(g, ep)->ack_next;
	const struct inc_desc *d = inc_desc_find(g, number);
	enum admission result = ADMITTED;

	if (msg->admitted)
		return ADMITTED;
	if (d == NULL && number != g->next_ctrl) /* an endpoint that never sends */
		return refuse(m, ep, INC_FAIL_MODE1_SEQUENCE, now);
	if (d == NULL || number == d->ctrl_psn)
		result = admit_control(m, ep, msg, d, now);
	else if (msg->ctrl || msg->len != length_of(g, d, number))
		return refuse(m, ep, INC_FAIL_MODE1_SEQUENCE, now);
	if (result != ADMITTED)
		return result;
	d = inc_desc_find(g, number);
	if (inc_role_of(g, inc_route_at(g, d, number), ep) == INC_ROLE_NONE)
		return refuse(m, ep, INC_FAIL_MODE1_SEQUENCE, now);
	msg->admitted = true;
	return ADMITTED;
}

/* ---- sending ---- */

/* Is it this message's turn at all of outs, and is there room in their queues? */
static bool may_send(const struct mode1 *m, uint32_t number, uint64_t outs)
{
	for (; outs != 0; outs &= outs - 1) {
		unsigned i = (unsigned)__builtin_ctzll(outs);

		if (inc_ep_at(m->g, i)->refl_next != number && !INC_BUG(M1_TURN))
			return false;
		if (m->ep[i].sends == m->sq_depth)
			return false;
	}
	return true;
}

static int post(struct mode1 *m, unsigned ep, const struct inc_desc *d, uint32_t number,
	uint32_t buf, uint32_t len)
{
	struct ibv_sge sge = {.length = len, .lkey = rnic_mr_lkey(m->dev->mr)};
	struct ibv_send_wr wr = {
		.wr_id = WR_SEND | WR_ID(ep, buf),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (number == d->ctrl_psn) {
		sge.addr = (uintptr_t)d->payload;
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		wr.imm_data = htobe32(d->imm);
		wr.send_flags |= IBV_SEND_INLINE;
	} else {
		sge.addr = (uintptr_t)mode1_buf_at(m, buf);
	}
	return rnic_post_send(m->ep[ep].qp, &wr);
}

/* Puts the message into the queues of outs. buf: where it lies, WR_NO_BUF for a control. */
static void hand_out(struct mode1 *m, const struct inc_desc *d, uint32_t number, uint64_t outs,
	uint32_t buf, uint32_t len, uint64_t now)
{
	uint64_t data = receivers(m->g, &d->route);

	if (buf != WR_NO_BUF)
		m->buf[buf].sends = INC_BUG(M1_FREE) ? 1 : (uint8_t)__builtin_popcountll(outs);
	for (; outs != 0; outs &= outs - 1) {
		unsigned i = (unsigned)__builtin_ctzll(outs);
		struct inc_ep *ep = inc_ep_at(m->g, i);

		if (post(m, i, d, number, buf, len) < 0) {
			fail(m, INC_FAIL_MODE1_QP, i, IBV_WC_WR_FLUSH_ERR, now);
			return;
		}
		m->ep[i].sends++;
		ep->refl_next = number_after(d, number, data >> i & 1);
		inc_count(m->g, INC_C_TX);
	}
}

static void buf_free(struct mode1 *m, uint32_t buf, enum mode1_pool pool)
{
	assert(m->n_free[pool] < m->g->w);
	m->free[pool][m->n_free[pool]++] = buf;
}

static uint32_t buf_take(struct mode1 *m, enum mode1_pool pool)
{
	uint32_t buf = m->free[pool][--m->n_free[pool]];

	m->buf[buf] = (struct mode1_buf){.pool = (uint8_t)pool};
	return buf;
}

/* The message in front of the queue is done; a receive takes its place, into buf. */
static void take_front(
	struct mode1 *m, unsigned ep, const struct inc_desc *d, uint32_t buf, uint64_t now)
{
	struct mode1_ep *e = &m->ep[ep];
	struct inc_ep *stat = inc_ep_at(m->g, ep);
	bool data = senders(m->g, &d->route) >> ep & 1;

	stat->ack_next = number_after(d, stat->ack_next, data);
	e->head = (uint16_t)(e->head + 1u == m->credits ? 0 : e->head + 1);
	if (--e->n == 0)
		m->g->in_front &= ~(1ull << ep);
	m->g->last_progress_ns = now;
	if (!m->stopped && mode1_post_recv(m, ep, buf) < 0)
		fail(m, INC_FAIL_MODE1_QP, ep, IBV_WC_WR_FLUSH_ERR, now);
}

/* ---- up: aggregation ---- */

static bool all_here(const struct mode1 *m, const struct inc_route *route, uint32_t number)
{
	uint64_t in = route->in;

	if ((m->g->in_front & in) != in)
		return false;
	for (; in != 0; in &= in - 1) {
		unsigned i = (unsigned)__builtin_ctzll(in);

		if (inc_ep_at(m->g, i)->ack_next != number || !front(m, i)->admitted)
			return false;
	}
	return true;
}

/* The sum of all contributions in the order of endpoints, a packet's worth at a time so that it
 * stays in the cache; fp16 and bf16 are rounded once. */
static void aggregate(
	const struct mode1 *m, const struct inc_desc *d, uint64_t in, uint8_t *result, uint32_t len)
{
	reduce_fn widen = reduce_widen(d->dtype), narrow = reduce_narrow(d->dtype);
	reduce_fn add = reduce_accumulate(d->op, d->dtype);
	uint8_t wide[2 * 4096] __attribute__((aligned(64)));
	uint32_t step = m->g->mtu;

	for (uint32_t at = 0; at < len; at += step) {
		uint32_t n = len - at < step ? len - at : step;
		uint8_t *acc = narrow ? wide : result + at;
		uint64_t rest = in;

		widen(acc, mode1_buf_at(m, front(m, (unsigned)__builtin_ctzll(rest))->buf) + at, n);
		for (rest &= rest - 1; rest != 0; rest &= rest - 1)
			add(acc,
				mode1_buf_at(m, front(m, (unsigned)__builtin_ctzll(rest))->buf) +
					at,
				n);
		if (narrow)
			narrow(result + at, acc, n);
	}
}

static bool up(struct mode1 *m, unsigned ep, const struct inc_desc *d, uint32_t number,
	const struct inc_route *route, uint64_t now)
{
	uint32_t buf = WR_NO_BUF, len = front(m, ep)->len;

	if (!all_here(m, route, number) || !may_send(m, number, route->outs))
		return false;
	if (number != d->ctrl_psn) {
		if (m->n_free[MODE1_UP] == 0)
			return false;
		buf = buf_take(m, MODE1_UP);
		aggregate(m, d, route->in, mode1_buf_at(m, buf), len);
	}
	inc_count(m->g, INC_C_COMPLETED);
	hand_out(m, d, number, route->outs, buf, len, now);
	for (uint64_t in = route->in; in != 0 && !m->stopped; in &= in - 1) {
		unsigned i = (unsigned)__builtin_ctzll(in);

		inc_count(m->g, INC_C_CONSUMED);
		take_front(m, i, d, front(m, i)->buf, now);
	}
	return true;
}

/* ---- down: replication, from the buffer that it came in ---- */

static bool down(struct mode1 *m, unsigned ep, const struct inc_desc *d, uint32_t number,
	const struct inc_route *route, uint64_t now)
{
	uint64_t outs = route->prim == INC_AR ? m->g->child_mask : route->outs;
	const struct mode1_message *msg = front(m, ep);
	uint32_t came = msg->buf, next = came, sent = WR_NO_BUF;

	if (!may_send(m, number, outs))
		return false;
	if (number != d->ctrl_psn && outs != 0) {
		if (m->n_free[MODE1_DOWN] == 0)
			return false;
		next = buf_take(m, MODE1_DOWN); /* takes the place of the one that is sent from */
		sent = came;
		m->buf[sent].pool = MODE1_DOWN;
	}
	hand_out(m, d, number, outs, sent, msg->len, now);
	if (!m->stopped)
		take_front(m, ep, d, next, now);
	return true;
}

/* ---- completions ---- */

/* The message in front of an endpoint's queue, if it can be dealt with now. */
static bool step(struct mode1 *m, unsigned ep, uint64_t now)
{
	struct inc_group *g = m->g;
	uint32_t number = inc_ep_at(g, ep)->ack_next;
	const struct inc_route *route;
	const struct inc_desc *d;

	if (m->ep[ep].n == 0 || admit(m, ep, front(m, ep), now) != ADMITTED)
		return false;
	d = inc_desc_find(g, number);
	route = inc_route_at(g, d, number);
	if (inc_role_of(g, route, ep) == INC_ROLE_UP)
		return up(m, ep, d, number, route, now);
	return down(m, ep, d, number, route, now);
}

static void advance(struct mode1 *m, uint64_t now)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (uint64_t eps = m->g->in_front; eps != 0 && !m->stopped; eps &= eps - 1)
			moved |= step(m, (unsigned)__builtin_ctzll(eps), now);
	}
}

static void received(struct mode1 *m, const struct ibv_wc *wc)
{
	uint32_t buf = WR_BUF(wc->wr_id);
	unsigned ep = WR_EP(wc->wr_id);
	struct mode1_ep *e = &m->ep[ep];
	unsigned at = (e->head + e->n) % m->credits;

	assert(e->n < m->credits);
	e->queue[at] = (struct mode1_message){
		.buf = buf,
		.len = wc->byte_len,
		.ctrl = wc->wc_flags & IBV_WC_WITH_IMM,
		.imm = wc->wc_flags & IBV_WC_WITH_IMM ? be32toh(wc->imm_data) : 0,
	};
	e->n++;
	m->g->in_front |= 1ull << ep;
	inc_count(m->g, INC_C_RX);
}

static void sent(struct mode1 *m, const struct ibv_wc *wc)
{
	uint32_t buf = WR_BUF(wc->wr_id);

	m->ep[WR_EP(wc->wr_id)].sends--;
	if (buf != WR_NO_BUF && --m->buf[buf].sends == 0)
		buf_free(m, buf, m->buf[buf].pool);
}

static void completion(struct mode1 *m, const struct ibv_wc *wc, uint64_t now)
{
	if (m->stopped)
		return;
	if (wc->status != IBV_WC_SUCCESS)
		fail(m, INC_FAIL_MODE1_QP, WR_EP(wc->wr_id), wc->status, now);
	else if (wc->wr_id & WR_SEND)
		sent(m, wc);
	else
		received(m, wc);
}

/* All completions of the group, and what follows from them. */
static void flow(struct mode1 *m, uint64_t now)
{
	struct ibv_wc wc[POLL];
	int n;

	/* First, so that what completes from here on is heard of. */
	rnic_cq_arm(m->cq, false);
	/* Failed by the manager. */
	if (!m->stopped && __atomic_load_n(&m->g->state, __ATOMIC_ACQUIRE) == INC_FAILED)
		mode1_stop(m, now);
	do {
		n = rnic_cq_poll(m->cq, POLL, wc);
		for (int i = 0; i < n; i++)
			completion(m, &wc[i], now);
	} while (n == POLL);
	if (n < 0 && !m->stopped) /* completions lost; the queue has room for all */
		fail(m, INC_FAIL_MODE1_QP, NO_EP, IBV_WC_GENERAL_ERR, now);
	advance(m, now);
}

void mode1_run(struct mode1_device *dev, uint64_t now)
{
	struct mode1 *m;

	while ((m = STAILQ_FIRST(&dev->ready)) != NULL) {
		STAILQ_REMOVE_HEAD(&dev->ready, ready);
		m->is_ready = false;
		flow(m, now);
	}
}
