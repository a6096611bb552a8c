/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ccl/fake_verbs.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/reduce/reduce.h"
#include "lib/verbs/incline_dv.h"

#undef ibv_query_port
#undef ibv_reg_mr

enum { QLEN = 8192, MAX_QP = 20, MAX_OPS = 1 << 15, MAX_MR = 128, FIRST_QPN = 0x100 };

#define CHECK(cond)                                                                \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                   \
		}                                                                  \
	} while (0)

struct wr {
	uint64_t id;
	uint8_t *addr;
	uint32_t len, psn;
	bool imm;
	uint32_t imm_data;
	uint8_t *copy; /* of a send, as it was posted */
};

/* Message i of operation k; 0 is the control. */
struct pos {
	unsigned k, i;
};

struct range {
	uint32_t from, count;
};

/* Queue pair g of a device is its membership in group g. */
struct fqp {
	struct ibv_qp qp;
	bool used;
	struct ibv_qp_cap cap;
	struct ibv_qp_attr attr;
	struct wr *send, *recv;
	unsigned cap_send, cap_recv;
	unsigned n_send, n_acked, n_recv, n_delivered; /* by the network */
	unsigned seen_acked, seen_delivered;           /* polled by the program */
	struct pos next;                               /* to be delivered */
	unsigned n_ops, op_start[MAX_OPS];             /* controls among the sends */
	unsigned ctrl_at[MAX_OPS];                     /* deliveries when it was delivered */
	bool plain;                                    /* AllReduce only, so far */
	uint32_t tx_psn, rx_psn;
	struct range skip[16]; /* of what is received */
	unsigned n_skip;
};

struct done {
	struct ibv_wc wc;
	struct fqp *q;
};

struct dev {
	struct ibv_device base;
	struct ibv_context ctx;
	unsigned rank, opened;
	union ibv_gid gid;
	struct ibv_mr mr[MAX_MR];
	bool mr_used[MAX_MR];
	unsigned n_pd, n_cq, n_channel;

	struct ibv_comp_channel channel;
	struct ibv_cq cq;
	bool armed;
	struct done wc[QLEN];
	unsigned wc_head, wc_tail;

	struct fqp q[MAX_QP];
	bool hold, hold_acks, can_skip;
	int fail_rtr;
	unsigned fail_rtr_left;
	unsigned shorten, flip, flip_byte; /* message + 1 */
};

static struct {
	pthread_mutex_t lock;
	struct dev *dev[FAKE_MAX];
	unsigned n, mtu, window, rnr;
	enum fake_kind kind;
	bool automatic;
	uint64_t rng;
} net = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned rnd(unsigned n)
{
	net.rng = net.rng * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(net.rng >> 33) % n;
}

static struct dev *of(const struct ibv_context *ctx)
{
	for (unsigned i = 0; i < net.n; i++)
		if (ctx == &net.dev[i]->ctx)
			return net.dev[i];
	CHECK(!"context");
	return NULL;
}

static struct fqp *q_of(const struct ibv_qp *qp)
{
	return (struct fqp *)qp;
}

/* ---- operations, as the control messages say ---- */

static bool mixed(void)
{
	return net.kind != FAKE_SINGLE;
}

static unsigned prim_of(uint32_t imm)
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
	for (unsigned i = 0; i < net.n; i++) {
		const struct fqp *q = &net.dev[i]->q[g];

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
	return prim_of(ctrl->imm_data) == 0 || (i == 0 && mixed());
}

static bool sends(const struct wr *ctrl, unsigned i, unsigned rank)
{
	return everybody(ctrl, i) ||
	       (root_of(ctrl->imm_data) == rank) == (prim_of(ctrl->imm_data) == 2);
}

static bool receives(const struct wr *ctrl, unsigned i, unsigned rank)
{
	return everybody(ctrl, i) || !sends(ctrl, i, rank);
}

/* ---- the imaginary switch ---- */

static void push(struct dev *d, struct fqp *q, const struct ibv_wc *wc)
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

	for (unsigned r = 0; r < net.n; r++) {
		const struct dev *d = net.dev[r];
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
		if (net.kind != FAKE_MODE1)
			CHECK(w->psn == first->psn);
		if (p.i == 0)
			CHECK(w->imm_data == first->imm_data && !memcmp(w->copy, out, w->len));
		else
			add(out, w->copy, w->len);
	}
	return first;
}

static uint32_t packets(const struct fqp *q, uint32_t len)
{
	const uint32_t mtu = 128u << q->attr.path_mtu;

	return (len + mtu - 1) / mtu;
}

static uint32_t forward(uint32_t psn, uint32_t n)
{
	return (psn + n) & 0xffffff;
}

/* The PSN that the receiver expects, past those it was told to leave out. */
static void check_psn(struct fqp *q, const struct wr *w)
{
	if (net.kind == FAKE_MODE1)
		return;
	for (unsigned i = 0; i < q->n_skip; i++) {
		if (q->skip[i].from != q->rx_psn)
			continue;
		q->rx_psn = forward(q->rx_psn, q->skip[i].count);
		q->skip[i] = q->skip[--q->n_skip];
		i = (unsigned)-1;
	}
	CHECK(w->psn == q->rx_psn);
	q->rx_psn = forward(q->rx_psn, packets(q, w->len));
}

/* Passes over what this rank does not receive; the control of what is next, NULL: not known yet. */
static const struct wr *skim(const struct dev *d, struct fqp *q)
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
	ctrl = skim(d, q);
	if (!ctrl || !(w = result(g, ctrl, q->next, buf, &len)))
		return false;
	if (q->n_recv <= n) {
		net.rnr += everybody(ctrl, q->next.i);
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
	push(d, q, &wc);
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
	for (unsigned r = 0; r < net.n; r++) {
		const struct pos *at = &net.dev[r]->q[g].next;

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
	push(d, q, &wc);
	return true;
}

static bool step(void)
{
	const unsigned total = 2 * net.n * MAX_QP, start = rnd(total);

	for (unsigned i = 0; i < total; i++) {
		const unsigned e = (start + i) % total;
		struct dev *d = net.dev[e / 2 % net.n];
		const unsigned g = e / 2 / net.n;

		if (e % 2 ? acknowledge(d, g) : deliver(d, g))
			return true;
	}
	return false;
}

bool fake_step(void)
{
	bool moved;

	pthread_mutex_lock(&net.lock);
	moved = step();
	pthread_mutex_unlock(&net.lock);
	return moved;
}

/* ---- control by the test ---- */

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
static int req_notify(struct ibv_cq *cq, int solicited);

void fake_init(unsigned n, unsigned mtu, uint64_t seed)
{
	net.n = n;
	net.mtu = mtu;
	net.rng = seed;
	net.window = net.rnr = 0;
	net.kind = FAKE_SINGLE;
	net.automatic = false;
	for (unsigned i = 0; i < n; i++) {
		struct dev *d = calloc(1, sizeof(*d));
		uint8_t *raw;

		CHECK(d);
		raw = d->gid.raw;
		net.dev[i] = d;
		d->rank = i;
		snprintf(d->base.name, sizeof(d->base.name), "fake%u", i);
		raw[10] = raw[11] = 0xff;
		raw[12] = 10;
		raw[13] = 77;
		raw[15] = (uint8_t)(10 + i);
		d->ctx.device = &d->base;
		d->ctx.ops.post_send = post_send;
		d->ctx.ops.post_recv = post_recv;
		d->ctx.ops.poll_cq = poll_cq;
		d->ctx.ops.req_notify_cq = req_notify;
	}
}

static void free_work(struct fqp *q)
{
	for (unsigned k = 0; k < q->n_send; k++)
		free(q->send[k].copy);
	free(q->send);
	free(q->recv);
}

void fake_fini(void)
{
	for (unsigned i = 0; i < net.n; i++) {
		struct dev *d = net.dev[i];

		CHECK(d->n_pd == 0 && d->n_cq == 0 && d->n_channel == 0);
		for (unsigned g = 0; g < MAX_QP; g++) {
			CHECK(!d->q[g].used);
			free_work(&d->q[g]);
		}
		for (unsigned m = 0; m < MAX_MR; m++)
			CHECK(!d->mr_used[m]);
		free(d);
	}
	net.n = 0;
}

struct ibv_context *fake_context(unsigned i)
{
	return &net.dev[i]->ctx;
}

void fake_auto(bool on)
{
	net.automatic = on;
}

unsigned fake_sends(unsigned rank)
{
	return net.dev[rank]->q[0].n_send;
}

unsigned fake_delivered(unsigned rank)
{
	return net.dev[rank]->q[0].n_delivered;
}

unsigned fake_rnr(void)
{
	return net.rnr;
}

void fake_set_kind(enum fake_kind kind)
{
	net.kind = kind;
}

unsigned fake_qps(unsigned rank)
{
	unsigned n = 0;

	for (unsigned g = 0; g < MAX_QP; g++)
		n += net.dev[rank]->q[g].used;
	return n;
}

void fake_window(unsigned w)
{
	net.window = w;
}

const struct ibv_qp_attr *fake_attr(unsigned rank)
{
	return &net.dev[rank]->q[0].attr;
}

enum ibv_qp_state fake_state(unsigned rank)
{
	return net.dev[rank]->q[0].attr.qp_state;
}

void fake_fail_send(unsigned rank, enum ibv_wc_status status)
{
	struct dev *d = net.dev[rank];
	struct fqp *q = &d->q[0];
	const struct ibv_wc wc = {.wr_id = q->send[q->n_acked].id, .status = status};

	CHECK(q->n_acked < q->n_send);
	push(d, q, &wc);
}

void fake_hold(unsigned rank, bool on)
{
	net.dev[rank]->hold = on;
}

void fake_hold_acks(unsigned rank, bool on)
{
	net.dev[rank]->hold_acks = on;
}

void fake_shorten(unsigned rank, unsigned msg)
{
	net.dev[rank]->shorten = msg + 1;
}

void fake_flip(unsigned rank, unsigned msg, unsigned byte)
{
	net.dev[rank]->flip = msg + 1;
	net.dev[rank]->flip_byte = byte;
}

void fake_fail_rtr(unsigned rank, int err)
{
	fake_fail_rtr_times(rank, err, UINT_MAX);
}

void fake_fail_rtr_times(unsigned rank, int err, unsigned n)
{
	net.dev[rank]->fail_rtr = err;
	net.dev[rank]->fail_rtr_left = n;
}

/* ---- verbs: work ---- */

static void check_sge(const struct dev *d, const struct ibv_sge *sge)
{
	CHECK(sge->lkey < MAX_MR && d->mr_used[sge->lkey]);
	const struct ibv_mr *mr = &d->mr[sge->lkey];

	CHECK(sge->addr >= (uintptr_t)mr->addr &&
		sge->addr + sge->length <= (uintptr_t)mr->addr + mr->length);
}

static struct wr *add(struct wr **list, unsigned n, unsigned *cap)
{
	if (n == *cap) {
		*cap = *cap ? 2 * *cap : 64;
		*list = realloc(*list, *cap * sizeof(**list));
		CHECK(*list);
	}
	return &(*list)[n];
}

/* A fence before and a rendezvous after the control of what is not AllReduce after AllReduce. */
static void check_fence(const struct dev *d, struct fqp *q)
{
	const unsigned k = q->n_ops - 1, start = q->op_start[k];
	const bool before = k && prim_of(q->send[q->op_start[k - 1]].imm_data);

	if (net.kind != FAKE_MODE2 || (!before && prim_of(q->send[start].imm_data) == 0))
		return;
	skim(d, q);
	if (q->n_send == start)
		CHECK(q->seen_acked == q->n_send && q->seen_delivered == q->n_delivered &&
			q->next.k >= k);
	else
		CHECK(q->seen_acked > start && q->ctrl_at[k] && q->seen_delivered >= q->ctrl_at[k]);
}

static void check_send(const struct dev *d, struct fqp *q, const struct ibv_send_wr *wr)
{
	const unsigned finished =
		q->seen_acked < q->seen_delivered ? q->seen_acked : q->seen_delivered;

	CHECK(q->attr.qp_state == IBV_QPS_RTS);
	CHECK(q->n_send - q->seen_acked < q->cap.max_send_wr);
	CHECK(wr->num_sge == 1 && wr->send_flags & IBV_SEND_SIGNALED);
	check_sge(d, wr->sg_list);
	if (q->plain)
		CHECK(q->n_recv > q->n_send); /* its result has a place to go */
	if (net.window)
		CHECK(q->n_send - (q->plain ? finished : q->seen_acked) < net.window);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct dev *d = of(qp->context);
	struct fqp *q = q_of(qp);

	(void)bad;
	pthread_mutex_lock(&net.lock);
	for (; wr; wr = wr->next) {
		struct wr *s = add(&q->send, q->n_send, &q->cap_send);

		*s = (struct wr){.id = wr->wr_id,
			.addr = (uint8_t *)(uintptr_t)wr->sg_list->addr,
			.len = wr->sg_list->length,
			.psn = q->tx_psn,
			.imm = wr->opcode == IBV_WR_SEND_WITH_IMM,
			.imm_data = wr->imm_data,
			.copy = malloc(wr->sg_list->length)};
		CHECK(s->copy);
		memcpy(s->copy, s->addr, s->len);
		if (s->imm) {
			CHECK(q->n_ops < MAX_OPS);
			q->plain = q->plain && prim_of(s->imm_data) == 0;
			q->op_start[q->n_ops++] = q->n_send;
		}
		check_send(d, q, wr);
		check_fence(d, q);
		q->tx_psn = forward(q->tx_psn, packets(q, s->len));
		q->n_send++;
	}
	pthread_mutex_unlock(&net.lock);
	return 0;
}

/* What the program looks for in the process. */
bool inc_dv_is_supported(const struct ibv_context *context)
{
	return of(context)->can_skip;
}

int inc_dv_qp_skip(struct ibv_qp *qp, enum inc_dv_dir dir, uint32_t from, uint32_t count)
{
	return fake_skip(qp, dir, from, count);
}

void fake_can_skip(unsigned rank, bool yes)
{
	net.dev[rank]->can_skip = yes;
}

int fake_skip(struct ibv_qp *qp, int dir, uint32_t from, uint32_t count)
{
	struct fqp *q = q_of(qp);

	pthread_mutex_lock(&net.lock);
	CHECK(count > 0);
	if (dir == INC_DV_SEND) {
		CHECK(from == q->tx_psn);
		q->tx_psn = forward(q->tx_psn, count);
	} else {
		CHECK(q->n_skip < 16);
		q->skip[q->n_skip++] = (struct range){from, count};
	}
	pthread_mutex_unlock(&net.lock);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct dev *d = of(qp->context);
	struct fqp *q = q_of(qp);

	(void)bad;
	pthread_mutex_lock(&net.lock);
	for (; wr; wr = wr->next) {
		CHECK(q->n_recv - q->seen_delivered < q->cap.max_recv_wr);
		check_sge(d, wr->sg_list);
		*add(&q->recv, q->n_recv, &q->cap_recv) = (struct wr){.id = wr->wr_id,
			.addr = (uint8_t *)(uintptr_t)wr->sg_list->addr,
			.len = wr->sg_list->length};
		q->n_recv++;
	}
	pthread_mutex_unlock(&net.lock);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct dev *d = of(cq->context);
	int i = 0;

	pthread_mutex_lock(&net.lock);
	while (net.automatic && step())
		;
	for (; i < n && d->wc_head != d->wc_tail; i++) {
		const struct done *done = &d->wc[d->wc_head++ % QLEN];

		wc[i] = done->wc;
		if (wc[i].opcode == IBV_WC_RECV)
			done->q->seen_delivered++;
		else
			done->q->seen_acked++;
	}
	pthread_mutex_unlock(&net.lock);
	return i;
}

static int req_notify(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	of(cq->context)->armed = true;
	return 0;
}

/* ---- verbs: objects ---- */

struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list = calloc(net.n + 1, sizeof(*list));

	for (unsigned i = 0; i < net.n; i++)
		list[i] = &net.dev[i]->base;
	if (n)
		*n = (int)net.n;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct dev *d = (struct dev *)device;

	d->opened++;
	return &d->ctx;
}

int ibv_close_device(struct ibv_context *ctx)
{
	CHECK(of(ctx)->opened-- > 0);
	return 0;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	memset(attr, 0, sizeof(*attr));
	attr->phys_port_cnt = 1;
	return 0;
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)attr;

	(void)ctx;
	CHECK(port == 1);
	memset(a, 0, offsetof(struct ibv_port_attr, port_cap_flags2));
	a->state = IBV_PORT_ACTIVE;
	a->active_mtu = (enum ibv_mtu)(__builtin_ctz(net.mtu) - 7);
	a->gid_tbl_len = 4;
	return 0;
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	CHECK(port == 1);
	memset(gid, 0, sizeof(*gid));
	if (index == 1)
		*gid = of(ctx)->gid;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	of(ctx)->n_pd++;
	pd->context = ctx;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	of(pd->context)->n_pd--;
	free(pd);
	return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct dev *d = of(pd->context);

	CHECK(access == IBV_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < MAX_MR; i++) {
		if (d->mr_used[i])
			continue;
		d->mr_used[i] = true;
		d->mr[i] = (struct ibv_mr){
			.context = pd->context, .addr = addr, .length = length, .lkey = i};
		return &d->mr[i];
	}
	errno = ENOMEM;
	return NULL;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct dev *d = of(mr->context);

	CHECK(d->mr_used[mr->lkey]);
	d->mr_used[mr->lkey] = false;
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct dev *d = of(ctx);

	d->n_channel++;
	d->channel.context = ctx;
	d->channel.fd = eventfd(0, EFD_SEMAPHORE);
	return &d->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	of(channel->context)->n_channel--;
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **arg)
{
	eventfd_t one;

	if (eventfd_read(channel->fd, &one))
		return -1;
	*cq = &of(channel->context)->cq;
	*arg = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	CHECK(n > 0);
}

struct ibv_cq *ibv_create_cq(
	struct ibv_context *ctx, int cqe, void *arg, struct ibv_comp_channel *channel, int vector)
{
	struct dev *d = of(ctx);

	CHECK(d->n_cq++ == 0 && channel == &d->channel && vector == 0 && cqe > 0 && cqe < QLEN);
	d->cq = (struct ibv_cq){.context = ctx, .channel = channel, .cq_context = arg, .cqe = cqe};
	d->wc_head = d->wc_tail = 0;
	d->armed = false;
	return &d->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	of(cq->context)->n_cq--;
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct dev *d = of(pd->context);
	struct fqp *q = d->q;

	while (q->used)
		q++;
	CHECK(q < d->q + MAX_QP && init->qp_type == IBV_QPT_RC);
	pthread_mutex_lock(&net.lock);
	free_work(q);
	*q = (struct fqp){.used = true, .plain = true, .cap = init->cap};
	q->qp = (struct ibv_qp){.context = pd->context,
		.pd = pd,
		.qp_num = FIRST_QPN + d->rank + 0x10 * (uint32_t)(q - d->q)};
	pthread_mutex_unlock(&net.lock);
	return &q->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	CHECK(q_of(qp)->used);
	pthread_mutex_lock(&net.lock);
	q_of(qp)->used = false;
	pthread_mutex_unlock(&net.lock);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct dev *d = of(qp->context);
	struct fqp *q = q_of(qp);
	struct ibv_qp_attr *a = &q->attr;

	CHECK(mask & IBV_QP_STATE);
	if (attr->qp_state == IBV_QPS_RTR) {
		if (d->fail_rtr && d->fail_rtr_left > 0) {
			d->fail_rtr_left--;
			return d->fail_rtr;
		}
		CHECK(a->qp_state == IBV_QPS_INIT);
		*a = *attr;
		q->rx_psn = attr->rq_psn;
	} else if (attr->qp_state == IBV_QPS_RTS) {
		CHECK(a->qp_state == IBV_QPS_RTR);
		a->sq_psn = q->tx_psn = attr->sq_psn;
		a->timeout = attr->timeout;
		a->retry_cnt = attr->retry_cnt;
		a->rnr_retry = attr->rnr_retry;
	}
	a->qp_state = attr->qp_state;
	return 0;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "some error";
}
