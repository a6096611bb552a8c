/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch reduces and copies whole messages, as the control messages say. */
#include "tests/unit/ccl/fake_net.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/reduce/reduce.h"

struct fake_net fake_net = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned rnd(unsigned n)
{
	fake_net.rng = fake_net.rng * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(fake_net.rng >> 33) % n;
}

/* ---- operations, as the control messages say ---- */

static bool mixed(void)
{
	return fake_net.kind != FAKE_SINGLE;
}

unsigned fake_prim(uint32_t imm)
{
	return ntohl(imm) >> 26 & 7;
}

static unsigned root_of(uint32_t imm)
{
	return ntohl(imm) >> 8 & 0x7ff;
}

/* The control of operation k as somebody has sent it, NULL if nobody has. */
static const struct wr *control(unsigned g, unsigned k)
{
	for (unsigned i = 0; i < fake_net.n; i++) {
		const struct fqp *q = &fake_net.dev[i]->q[g];

		if (q->used && q->n_ops > k)
			return &q->send[q->op_start[k]];
	}
	return NULL;
}

static unsigned messages(const struct wr *ctrl)
{
	uint32_t n, m;

	memcpy(&n, ctrl->copy + 4, 4);
	memcpy(&m, ctrl->copy + 20, 4);
	return 1 + (le32toh(n) + le32toh(m) - 1) / le32toh(m);
}

static bool everybody(const struct wr *ctrl, unsigned i)
{
	return fake_prim(ctrl->imm_data) == 0 || (i == 0 && mixed());
}

static bool sends(const struct wr *ctrl, unsigned i, unsigned rank)
{
	return everybody(ctrl, i) ||
	       (root_of(ctrl->imm_data) == rank) == (fake_prim(ctrl->imm_data) == 2);
}

static bool receives(const struct wr *ctrl, unsigned i, unsigned rank)
{
	return everybody(ctrl, i) || !sends(ctrl, i, rank);
}

/* ---- the imaginary switch ---- */

void fake_push(struct dev *d, struct fqp *q, const struct ibv_wc *wc)
{
	CHECK(d->wc_tail - d->wc_head < (unsigned)d->cq.cqe);
	d->wc[d->wc_tail++ % QLEN] = (struct done){*wc, q};
	if (d->armed) {
		d->armed = false;
		CHECK(eventfd_write(d->channel.fd, 1) == 0);
	}
}

/* Message i of operation k has come from everybody it takes: the result, and one of them. */
static const struct wr *result(
	unsigned g, const struct wr *ctrl, struct pos p, uint8_t *out, uint32_t *len)
{
	const uint32_t imm = ntohl(ctrl->imm_data);
	const reduce_fn add = reduce_kernel(imm >> 23 & 7, imm >> 19 & 15);
	const struct wr *first = NULL;

	for (unsigned r = 0; r < fake_net.n; r++) {
		const struct dev *d = fake_net.dev[r];
		const struct fqp *q = &d->q[g];
		const struct wr *w;

		if (!sends(ctrl, p.i, r))
			continue;
		if (d->hold || q->n_ops <= p.k || q->op_start[p.k] + p.i >= q->n_send)
			return NULL;
		w = &q->send[q->op_start[p.k] + p.i];
		CHECK(w->imm == (p.i == 0));
		if (!first) {
			first = w;
			*len = w->len;
			memcpy(out, w->copy, w->len);
			continue;
		}
		CHECK(w->len == first->len);
		if (fake_net.kind != FAKE_MODE1)
			CHECK(w->psn == first->psn);
		if (p.i == 0)
			CHECK(w->imm_data == first->imm_data && !memcmp(w->copy, out, w->len));
		else
			add(out, w->copy, w->len);
	}
	return first;
}

uint32_t fake_packets(const struct fqp *q, uint32_t len)
{
	const uint32_t mtu = 128u << q->attr.path_mtu;

	return (len + mtu - 1) / mtu;
}

uint32_t fake_forward(uint32_t psn, uint32_t n)
{
	return (psn + n) & 0xffffff;
}

/* The PSN that the receiver expects, past those it was told to leave out. */
static void check_psn(struct fqp *q, const struct wr *w)
{
	if (fake_net.kind == FAKE_MODE1)
		return;
	for (unsigned i = 0; i < q->n_skip; i++) {
		if (q->skip[i].from != q->rx_psn)
			continue;
		q->rx_psn = fake_forward(q->rx_psn, q->skip[i].count);
		q->skip[i] = q->skip[--q->n_skip];
		i = (unsigned)-1;
	}
	CHECK(w->psn == q->rx_psn);
	q->rx_psn = fake_forward(q->rx_psn, fake_packets(q, w->len));
}

const struct wr *fake_skim(const struct dev *d, struct fqp *q)
{
	const struct wr *ctrl;

	while ((ctrl = control((unsigned)(q - d->q), q->next.k)) &&
		!receives(ctrl, q->next.i, d->rank))
		if (++q->next.i == messages(ctrl))
			q->next = (struct pos){q->next.k + 1, 0};
	return ctrl;
}

static bool deliver(struct dev *d, unsigned g)
{
	static uint8_t buf[1 << 22];
	struct fqp *q = &d->q[g];
	const unsigned n = q->n_delivered;
	struct ibv_wc wc = {.qp_num = q->qp.qp_num};
	const struct wr *ctrl, *w;
	uint32_t len;
	struct wr *r;

	if (!q->used || q->attr.qp_state != IBV_QPS_RTS)
		return false;
	ctrl = fake_skim(d, q);
	if (!ctrl || !(w = result(g, ctrl, q->next, buf, &len)))
		return false;
	if (q->n_recv <= n) {
		fake_net.rnr += everybody(ctrl, q->next.i);
		return false;
	}
	check_psn(q, w);
	r = &q->recv[n];
	if (d->shorten == n + 1)
		len -= 4;
	if (d->flip == n + 1)
		buf[d->flip_byte] ^= 0x40;
	CHECK(len <= r->len);
	memcpy(r->addr, buf, len);
	wc.wr_id = r->id;
	wc.opcode = IBV_WC_RECV;
	wc.byte_len = len;
	if (w->imm) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = w->imm_data;
		q->ctrl_at[q->next.k] = n + 1;
	}
	q->n_delivered++;
	if (++q->next.i == messages(ctrl))
		q->next = (struct pos){q->next.k + 1, 0};
	fake_push(d, q, &wc);
	return true;
}

/* Operation and message of a send. */
static struct pos pos_of(const struct fqp *q, unsigned s)
{
	unsigned k = q->n_ops;

	while (q->op_start[k - 1] > s)
		k--;
	return (struct pos){k - 1, s - q->op_start[k - 1]};
}

/* Reduce and Broadcast are acknowledged by those who receive. */
static bool arrived(unsigned g, const struct wr *ctrl, struct pos p)
{
	for (unsigned r = 0; r < fake_net.n; r++) {
		const struct pos *at = &fake_net.dev[r]->q[g].next;

		if (receives(ctrl, p.i, r) && (at->k < p.k || (at->k == p.k && at->i <= p.i)))
			return false;
	}
	return true;
}

static bool acknowledge(struct dev *d, unsigned g)
{
	struct fqp *q = &d->q[g];
	struct ibv_wc wc = {.opcode = IBV_WC_SEND, .qp_num = q->qp.qp_num};
	const struct wr *s, *ctrl;
	struct pos p;

	if (!q->used || q->n_acked == q->n_send || q->attr.qp_state != IBV_QPS_RTS || d->hold ||
		d->hold_acks)
		return false;
	s = &q->send[q->n_acked];
	p = pos_of(q, q->n_acked);
	ctrl = &q->send[q->op_start[p.k]];
	if (!everybody(ctrl, p.i) && !arrived(g, ctrl, p))
		return false;
	/* Until now the NIC might have had to send it again. */
	CHECK(!memcmp(s->copy, s->addr, s->len));
	wc.wr_id = s->id;
	q->n_acked++;
	fake_push(d, q, &wc);
	return true;
}

bool fake_step_locked(void)
{
	const unsigned total = 2 * fake_net.n * MAX_QP, start = rnd(total);

	for (unsigned i = 0; i < total; i++) {
		const unsigned e = (start + i) % total;
		struct dev *d = fake_net.dev[e / 2 % fake_net.n];
		const unsigned g = e / 2 / fake_net.n;

		if (e % 2 ? acknowledge(d, g) : deliver(d, g))
			return true;
	}
	return false;
}

bool fake_step(void)
{
	bool moved;

	pthread_mutex_lock(&fake_net.lock);
	moved = fake_step_locked();
	pthread_mutex_unlock(&fake_net.lock);
	return moved;
}
