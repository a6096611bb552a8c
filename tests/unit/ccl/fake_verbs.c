/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ccl/fake_verbs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/verbs/incline_dv.h"
#include "tests/unit/ccl/fake_net.h"

#undef ibv_query_port
#undef ibv_reg_mr

enum { FIRST_QPN = 0x100 };

static struct dev *of(const struct ibv_context *ctx)
{
	for (unsigned i = 0; i < fake_net.n; i++)
		if (ctx == &fake_net.dev[i]->ctx)
			return fake_net.dev[i];
	CHECK(!"context");
	return NULL;
}

static struct fqp *q_of(const struct ibv_qp *qp)
{
	return (struct fqp *)qp;
}

/* ---- control by the test ---- */

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
static int req_notify(struct ibv_cq *cq, int solicited);

void fake_init(unsigned n, unsigned mtu, uint64_t seed)
{
	fake_net.n = n;
	fake_net.mtu = mtu;
	fake_net.rng = seed;
	fake_net.window = fake_net.rnr = 0;
	fake_net.kind = FAKE_SINGLE;
	fake_net.automatic = false;
	for (unsigned i = 0; i < n; i++) {
		struct dev *d = calloc(1, sizeof(*d));
		uint8_t *raw;

		CHECK(d);
		raw = d->gid.raw;
		fake_net.dev[i] = d;
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
	for (unsigned i = 0; i < fake_net.n; i++) {
		struct dev *d = fake_net.dev[i];

		CHECK(d->n_pd == 0 && d->n_cq == 0 && d->n_channel == 0);
		for (unsigned g = 0; g < MAX_QP; g++) {
			CHECK(!d->q[g].used);
			free_work(&d->q[g]);
		}
		for (unsigned m = 0; m < MAX_MR; m++)
			CHECK(!d->mr_used[m]);
		free(d);
	}
	fake_net.n = 0;
}

struct ibv_context *fake_context(unsigned i)
{
	return &fake_net.dev[i]->ctx;
}

void fake_auto(bool on)
{
	fake_net.automatic = on;
}

unsigned fake_sends(unsigned rank)
{
	return fake_net.dev[rank]->q[0].n_send;
}

unsigned fake_delivered(unsigned rank)
{
	return fake_net.dev[rank]->q[0].n_delivered;
}

unsigned fake_rnr(void)
{
	return fake_net.rnr;
}

void fake_set_kind(enum fake_kind kind)
{
	fake_net.kind = kind;
}

unsigned fake_qps(unsigned rank)
{
	unsigned n = 0;

	for (unsigned g = 0; g < MAX_QP; g++)
		n += fake_net.dev[rank]->q[g].used;
	return n;
}

void fake_window(unsigned w)
{
	fake_net.window = w;
}

const struct ibv_qp_attr *fake_attr(unsigned rank)
{
	return &fake_net.dev[rank]->q[0].attr;
}

enum ibv_qp_state fake_state(unsigned rank)
{
	return fake_net.dev[rank]->q[0].attr.qp_state;
}

void fake_fail_send(unsigned rank, enum ibv_wc_status status)
{
	struct dev *d = fake_net.dev[rank];
	struct fqp *q = &d->q[0];
	const struct ibv_wc wc = {.wr_id = q->send[q->n_acked].id, .status = status};

	CHECK(q->n_acked < q->n_send);
	fake_push(d, q, &wc);
}

void fake_hold(unsigned rank, bool on)
{
	fake_net.dev[rank]->hold = on;
}

void fake_hold_acks(unsigned rank, bool on)
{
	fake_net.dev[rank]->hold_acks = on;
}

void fake_shorten(unsigned rank, unsigned msg)
{
	fake_net.dev[rank]->shorten = msg + 1;
}

void fake_flip(unsigned rank, unsigned msg, unsigned byte)
{
	fake_net.dev[rank]->flip = msg + 1;
	fake_net.dev[rank]->flip_byte = byte;
}

void fake_fail_rtr(unsigned rank, int err)
{
	fake_fail_rtr_times(rank, err, UINT_MAX);
}

void fake_fail_rtr_times(unsigned rank, int err, unsigned n)
{
	fake_net.dev[rank]->fail_rtr = err;
	fake_net.dev[rank]->fail_rtr_left = n;
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
	const bool before = k && fake_prim(q->send[q->op_start[k - 1]].imm_data);

	if (fake_net.kind != FAKE_MODE2 || (!before && fake_prim(q->send[start].imm_data) == 0))
		return;
	fake_skim(d, q);
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
	if (fake_net.window)
		CHECK(q->n_send - (q->plain ? finished : q->seen_acked) < fake_net.window);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct dev *d = of(qp->context);
	struct fqp *q = q_of(qp);

	(void)bad;
	pthread_mutex_lock(&fake_net.lock);
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
			q->plain = q->plain && fake_prim(s->imm_data) == 0;
			q->op_start[q->n_ops++] = q->n_send;
		}
		check_send(d, q, wr);
		check_fence(d, q);
		q->tx_psn = fake_forward(q->tx_psn, fake_packets(q, s->len));
		q->n_send++;
	}
	pthread_mutex_unlock(&fake_net.lock);
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
	fake_net.dev[rank]->can_skip = yes;
}

int fake_skip(struct ibv_qp *qp, int dir, uint32_t from, uint32_t count)
{
	struct fqp *q = q_of(qp);

	pthread_mutex_lock(&fake_net.lock);
	CHECK(count > 0);
	if (dir == INC_DV_SEND) {
		CHECK(from == q->tx_psn);
		q->tx_psn = fake_forward(q->tx_psn, count);
	} else {
		CHECK(q->n_skip < 16);
		q->skip[q->n_skip++] = (struct range){from, count};
	}
	pthread_mutex_unlock(&fake_net.lock);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct dev *d = of(qp->context);
	struct fqp *q = q_of(qp);

	(void)bad;
	pthread_mutex_lock(&fake_net.lock);
	for (; wr; wr = wr->next) {
		CHECK(q->n_recv - q->seen_delivered < q->cap.max_recv_wr);
		check_sge(d, wr->sg_list);
		*add(&q->recv, q->n_recv, &q->cap_recv) = (struct wr){.id = wr->wr_id,
			.addr = (uint8_t *)(uintptr_t)wr->sg_list->addr,
			.len = wr->sg_list->length};
		q->n_recv++;
	}
	pthread_mutex_unlock(&fake_net.lock);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct dev *d = of(cq->context);
	int i = 0;

	pthread_mutex_lock(&fake_net.lock);
	while (fake_net.automatic && fake_step_locked())
		;
	for (; i < n && d->wc_head != d->wc_tail; i++) {
		const struct done *done = &d->wc[d->wc_head++ % QLEN];

		wc[i] = done->wc;
		if (wc[i].opcode == IBV_WC_RECV)
			done->q->seen_delivered++;
		else
			done->q->seen_acked++;
	}
	pthread_mutex_unlock(&fake_net.lock);
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
	struct ibv_device **list = calloc(fake_net.n + 1, sizeof(*list));

	for (unsigned i = 0; i < fake_net.n; i++)
		list[i] = &fake_net.dev[i]->base;
	if (n)
		*n = (int)fake_net.n;
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
	a->active_mtu = (enum ibv_mtu)(__builtin_ctz(fake_net.mtu) - 7);
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
	pthread_mutex_lock(&fake_net.lock);
	free_work(q);
	*q = (struct fqp){.used = true, .plain = true, .cap = init->cap};
	q->qp = (struct ibv_qp){.context = pd->context,
		.pd = pd,
		.qp_num = FIRST_QPN + d->rank + 0x10 * (uint32_t)(q - d->q)};
	pthread_mutex_unlock(&fake_net.lock);
	return &q->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	CHECK(q_of(qp)->used);
	pthread_mutex_lock(&fake_net.lock);
	q_of(qp)->used = false;
	pthread_mutex_unlock(&fake_net.lock);
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

/* It has no multicast. */
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd, (void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return EOPNOTSUPP;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return EOPNOTSUPP;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return EOPNOTSUPP;
}
