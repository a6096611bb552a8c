/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ccl/fake_verbs.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

enum { QLEN = 4096, MAX_MSG = 1 << 16, MAX_MR = 128, FIRST_QPN = 0x100 };

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
	uint32_t len;
	bool imm;
	uint32_t imm_data;
	uint8_t *copy; /* of a send, as it was posted */
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
	struct ibv_wc wc[QLEN];
	unsigned wc_head, wc_tail;

	struct ibv_qp qp;
	bool has_qp;
	struct ibv_qp_cap cap;
	struct ibv_qp_attr attr;
	struct wr send[MAX_MSG], recv[MAX_MSG];
	unsigned n_send, n_acked, n_recv, n_delivered; /* by the network */
	unsigned seen_acked, seen_delivered;           /* polled by the program */
	bool hold, hold_acks;
	int fail_rtr;
	unsigned shorten, flip, flip_byte; /* message + 1 */
};

static struct {
	pthread_mutex_t lock;
	struct dev *dev[FAKE_MAX];
	unsigned n, mtu, window, rnr;
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

/* ---- the imaginary switch ---- */

static void push(struct dev *d, const struct ibv_wc *wc)
{
	CHECK(d->wc_tail - d->wc_head < (unsigned)d->cq.cqe);
	d->wc[d->wc_tail++ % QLEN] = *wc;
	if (d->armed) {
		d->armed = false;
		CHECK(eventfd_write(d->channel.fd, 1) == 0);
	}
}

/* Message k of all ranks is there: what rank d gets. */
static bool result(struct dev *d, unsigned k, uint8_t *out, uint32_t *len)
{
	const struct wr *first = &net.dev[0]->send[k];
	bool integers = false;

	for (unsigned i = 0; i < net.n; i++) {
		const struct wr *w = &net.dev[i]->send[k];

		if (net.dev[i]->n_send <= k || net.dev[i]->hold)
			return false;
		CHECK(w->len == first->len && w->imm == first->imm);
	}
	*len = first->len;
	if (first->imm) {
		for (unsigned i = 0; i < net.n; i++) {
			CHECK(net.dev[i]->send[k].imm_data == first->imm_data);
			CHECK(!memcmp(net.dev[i]->send[k].copy, first->copy, first->len));
		}
		memcpy(out, first->copy, first->len);
		return true;
	}
	for (unsigned j = k; j-- > 0;) {
		if (!d->send[j].imm)
			continue;
		integers = (ntohl(d->send[j].imm_data) >> 19 & 15) == 3; /* dtype int32 */
		break;
	}
	memcpy(out, first->copy, first->len);
	for (unsigned i = 1; i < net.n; i++) {
		const uint8_t *in = net.dev[i]->send[k].copy;

		for (uint32_t o = 0; o < first->len; o += 4) {
			uint32_t a, b;
			float x, y;

			memcpy(&a, out + o, 4);
			memcpy(&b, in + o, 4);
			memcpy(&x, out + o, 4);
			memcpy(&y, in + o, 4);
			a += b;
			x += y;
			memcpy(out + o, integers ? (void *)&a : (void *)&x, 4);
		}
	}
	return true;
}

static bool deliver(struct dev *d)
{
	static uint8_t buf[1 << 22];
	const unsigned k = d->n_delivered;
	struct ibv_wc wc = {.qp_num = d->qp.qp_num};
	uint32_t len;
	struct wr *r;

	if (!d->has_qp || d->attr.qp_state != IBV_QPS_RTS || !result(d, k, buf, &len))
		return false;
	if (d->n_recv <= k) {
		net.rnr++;
		return false;
	}
	r = &d->recv[k];
	if (d->shorten == k + 1)
		len -= 4;
	if (d->flip == k + 1)
		buf[d->flip_byte] ^= 0x40;
	CHECK(len <= r->len);
	memcpy(r->addr, buf, len);
	wc.wr_id = r->id;
	wc.opcode = IBV_WC_RECV;
	wc.byte_len = len;
	if (d->send[k].imm) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = d->send[k].imm_data;
	}
	d->n_delivered++;
	push(d, &wc);
	return true;
}

static bool acknowledge(struct dev *d)
{
	const struct wr *s = &d->send[d->n_acked];
	const struct ibv_wc wc = {.wr_id = s->id, .opcode = IBV_WC_SEND, .qp_num = d->qp.qp_num};

	if (!d->has_qp || d->n_acked == d->n_send || d->attr.qp_state != IBV_QPS_RTS || d->hold ||
		d->hold_acks)
		return false;
	/* Until now the NIC might have had to send it again. */
	CHECK(!memcmp(s->copy, s->addr, s->len));
	d->n_acked++;
	push(d, &wc);
	return true;
}

static bool step(void)
{
	const unsigned start = rnd(2 * net.n);

	for (unsigned i = 0; i < 2 * net.n; i++) {
		const unsigned e = (start + i) % (2 * net.n);
		struct dev *d = net.dev[e / 2];

		if (e % 2 ? acknowledge(d) : deliver(d))
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

static void free_sends(struct dev *d)
{
	for (unsigned k = 0; k < d->n_send; k++)
		free(d->send[k].copy);
	d->n_send = d->n_acked = d->n_recv = d->n_delivered = 0;
	d->seen_acked = d->seen_delivered = 0;
}

void fake_fini(void)
{
	for (unsigned i = 0; i < net.n; i++) {
		struct dev *d = net.dev[i];

		CHECK(d->n_pd == 0 && d->n_cq == 0 && d->n_channel == 0 && !d->has_qp);
		for (unsigned m = 0; m < MAX_MR; m++)
			CHECK(!d->mr_used[m]);
		free_sends(d);
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
	return net.dev[rank]->n_send;
}

unsigned fake_delivered(unsigned rank)
{
	return net.dev[rank]->n_delivered;
}

unsigned fake_rnr(void)
{
	return net.rnr;
}

void fake_window(unsigned w)
{
	net.window = w;
}

const struct ibv_qp_attr *fake_attr(unsigned rank)
{
	return &net.dev[rank]->attr;
}

enum ibv_qp_state fake_state(unsigned rank)
{
	return net.dev[rank]->attr.qp_state;
}

void fake_fail_send(unsigned rank, enum ibv_wc_status status)
{
	struct dev *d = net.dev[rank];
	const struct ibv_wc wc = {.wr_id = d->send[d->n_acked].id, .status = status};

	CHECK(d->n_acked < d->n_send);
	push(d, &wc);
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
	net.dev[rank]->fail_rtr = err;
}

/* ---- verbs: work ---- */

static void check_sge(const struct dev *d, const struct ibv_sge *sge)
{
	CHECK(sge->lkey < MAX_MR && d->mr_used[sge->lkey]);
	const struct ibv_mr *mr = &d->mr[sge->lkey];

	CHECK(sge->addr >= (uintptr_t)mr->addr &&
		sge->addr + sge->length <= (uintptr_t)mr->addr + mr->length);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct dev *d = of(qp->context);

	(void)bad;
	pthread_mutex_lock(&net.lock);
	for (; wr; wr = wr->next) {
		struct wr *s = &d->send[d->n_send];
		const unsigned finished =
			d->seen_acked < d->seen_delivered ? d->seen_acked : d->seen_delivered;

		CHECK(d->attr.qp_state == IBV_QPS_RTS && d->n_send < MAX_MSG);
		CHECK(d->n_send - d->seen_acked < d->cap.max_send_wr);
		CHECK(wr->num_sge == 1 && wr->send_flags & IBV_SEND_SIGNALED);
		CHECK(d->n_recv > d->n_send); /* its result has a place to go */
		if (net.window)
			CHECK(d->n_send - finished < net.window);
		check_sge(d, wr->sg_list);
		*s = (struct wr){.id = wr->wr_id,
			.addr = (uint8_t *)(uintptr_t)wr->sg_list->addr,
			.len = wr->sg_list->length,
			.imm = wr->opcode == IBV_WR_SEND_WITH_IMM,
			.imm_data = wr->imm_data,
			.copy = malloc(wr->sg_list->length)};
		CHECK(s->copy);
		memcpy(s->copy, s->addr, s->len);
		d->n_send++;
	}
	pthread_mutex_unlock(&net.lock);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct dev *d = of(qp->context);

	(void)bad;
	pthread_mutex_lock(&net.lock);
	for (; wr; wr = wr->next) {
		CHECK(d->n_recv < MAX_MSG && d->n_recv - d->seen_delivered < d->cap.max_recv_wr);
		check_sge(d, wr->sg_list);
		d->recv[d->n_recv++] = (struct wr){.id = wr->wr_id,
			.addr = (uint8_t *)(uintptr_t)wr->sg_list->addr,
			.len = wr->sg_list->length};
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
		wc[i] = d->wc[d->wc_head++ % QLEN];
		if (wc[i].opcode == IBV_WC_RECV)
			d->seen_delivered++;
		else
			d->seen_acked++;
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

	CHECK(!d->has_qp && init->qp_type == IBV_QPT_RC);
	d->has_qp = true;
	d->cap = init->cap;
	d->qp = (struct ibv_qp){.context = pd->context, .pd = pd, .qp_num = FIRST_QPN + d->rank};
	memset(&d->attr, 0, sizeof(d->attr));
	free_sends(d);
	return &d->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct dev *d = of(qp->context);

	CHECK(d->has_qp);
	pthread_mutex_lock(&net.lock);
	d->has_qp = false;
	pthread_mutex_unlock(&net.lock);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct dev *d = of(qp->context);
	struct ibv_qp_attr *a = &d->attr;

	CHECK(mask & IBV_QP_STATE);
	if (attr->qp_state == IBV_QPS_RTR) {
		if (d->fail_rtr)
			return d->fail_rtr;
		CHECK(a->qp_state == IBV_QPS_INIT);
		*a = *attr;
	} else if (attr->qp_state == IBV_QPS_RTS) {
		CHECK(a->qp_state == IBV_QPS_RTR);
		a->sq_psn = attr->sq_psn;
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
