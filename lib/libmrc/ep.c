/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoint operations: a batch of probes or port updates, and their answers. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/libmrc/internal.h"
#include "lib/wire/ip.h"

/* A few at a time: a peer answers so many, and has room for so many answers that wait. */
enum { PACE = 8, PACE_NS = 100000 };
enum { ID_BITS = 16, NAP_NS = 50000, NS_PER_S = 1000000000, DSCP_MAX = 63 };

struct ep_batch {
	LIST_ENTRY(ep_batch) link;
	uint32_t id;
	pthread_cond_t come;
	struct mrc_ctl_ep_rsp *rsp;
	int n, n_rsp;
	uint8_t waiting[(1 << ID_BITS) / 8]; /* ids without an answer, a bit each */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static bool waits(const struct ep_batch *b, uint16_t id)
{
	return b->waiting[id / 8] >> id % 8 & 1;
}

void mrc_on_answer(void *arg, uint64_t cookie, unsigned port, uint64_t rtt_ns, bool adjusted)
{
	uint16_t id = (uint16_t)cookie;
	struct mrc_dev *dev = arg;
	struct ep_batch *b;

	pthread_mutex_lock(&dev->note);
	LIST_FOREACH(b, &dev->batches, link)
	{
		if (b->id != cookie >> ID_BITS || !waits(b, id))
			continue;
		b->waiting[id / 8] &= (uint8_t) ~(1u << id % 8);
		b->rsp[b->n_rsp++] = (struct mrc_ctl_ep_rsp){.req_id = id,
			.port = (uint8_t)(port + 1),
			.rtt = rtt_ns > UINT_MAX ? UINT_MAX : (unsigned)rtt_ns,
			.adj_svc_time = adjusted};
		if (b->n_rsp == b->n)
			pthread_cond_signal(&b->come);
	}
	pthread_mutex_unlock(&dev->note);
}

/* ---- requests ---- */

static bool own_gid(struct ibv_context *context, uint8_t port, const union ibv_gid *gid)
{
	union ibv_gid at;

	for (int i = 0; ibv_query_gid(context, port, i, &at) == 0; i++) {
		if (memcmp(&at, gid, sizeof(at)) == 0)
			return true;
	}
	return false;
}

/* The request's EV, which is what packets carry: there is no format here but the mode. */
static int path_of(const struct mrc_ctl_ep_req *req, bool ip4, struct rnic_mrc_request *out)
{
	unsigned width = fmt_width(req->ev_fmt_mode);
	struct ev_profile plain = {.fmt = {.mode = req->ev_fmt_mode,
					   .n_fields = 2,
					   .width = {(uint8_t)(width / 2), (uint8_t)(width / 2)}}};
	struct ev_path path;

	if (!width || (ip4 && req->ev_fmt_mode != MRC_CTL_EV_FMT_MODE_UDP) ||
		ev_to_path(&plain, &req->req_ev, 0, &path))
		return -EINVAL;
	out->format = req->ev_fmt_mode == MRC_CTL_EV_FMT_MODE_UDP    ? RNIC_MRC_UDP
		      : req->ev_fmt_mode == MRC_CTL_EV_FMT_MODE_STEV ? RNIC_MRC_STEV
								     : RNIC_MRC_SRV6;
	out->path = (struct rnic_mrc_path){
		.ev = path.ev, .port = path.port, .n_segments = path.n_segments};
	memcpy(out->path.segment, path.segment, sizeof(path.segment));
	return 0;
}

static int make(const struct mrc_context *ctx, enum mrc_ctl_ep_op_type type, uint8_t dscp,
	const struct mrc_ctl_ep_req *req, struct rnic_mrc_request *out)
{
	*out = (struct rnic_mrc_request){.dscp = dscp};
	memcpy(out->src.b, req->sgid.raw, sizeof(out->src.b));
	memcpy(out->dst.b, req->dgid.raw, sizeof(out->dst.b));
	if (req->req_ev.port < 1 || req->req_ev.port > ctx->dev->book.n_ports)
		return -EINVAL;
	if (wire_ip_is_zero(&out->src) || wire_ip_is_zero(&out->dst) ||
		wire_ip_is4(&out->src) != wire_ip_is4(&out->dst) ||
		!own_gid(ctx->verbs, req->req_ev.port, &req->sgid))
		return -EINVAL;
	out->op = type == MRC_CTL_EP_OP_EV_PROBE ? MRC_EV_PROBE : MRC_PORT_STATUS;
	if (type == MRC_CTL_EP_OP_PORT_STATUS_UPDATE)
		out->port_mask = req->op.port_status_update.port_status;
	return path_of(req, wire_ip_is4(&out->src), out);
}

/* Everything is checked before the first one leaves. */
static int make_all(const struct mrc_context *ctx, enum mrc_ctl_ep_op_type type, uint8_t dscp,
	const struct mrc_ctl_ep_req *req, struct ep_batch *b, struct rnic_mrc_request *out)
{
	for (int i = 0; i < b->n; i++) {
		int ret = make(ctx, type, dscp, &req[i], &out[i]);

		if (ret)
			return ret;
		if (waits(b, req[i].req_id))
			return -EINVAL; /* two of one id */
		b->waiting[req[i].req_id / 8] |= (uint8_t)(1u << req[i].req_id % 8);
		out[i].cookie = req[i].req_id;
	}
	return 0;
}

/* ---- waiting ---- */

static void nap(struct mrc_dev *dev, struct ep_batch *b, struct ibv_context *context)
{
	if (dev->dv->progress(context))
		return;
	pthread_mutex_lock(&dev->note);
	if (b->n_rsp < b->n) {
		uint64_t until = now_ns() + NAP_NS;
		struct timespec t = {
			.tv_sec = (time_t)(until / NS_PER_S), .tv_nsec = (long)(until % NS_PER_S)};

		pthread_cond_timedwait(&b->come, &dev->note, &t);
	}
	pthread_mutex_unlock(&dev->note);
}

static int answers(struct mrc_dev *dev, const struct ep_batch *b)
{
	int n;

	pthread_mutex_lock(&dev->note);
	n = b->n_rsp;
	pthread_mutex_unlock(&dev->note);
	return n;
}

/* Sends what may go, waits for the rest. A destination that does not answer to address resolution
 * does not answer. */
static int run(struct mrc_context *ctx, struct ep_batch *b, struct rnic_mrc_request *request,
	uint64_t until)
{
	struct mrc_dev *dev = ctx->dev;
	uint64_t go = 0;
	int next = 0;

	while (answers(dev, b) < b->n) {
		int ret = -ENOSPC;

		if (next < b->n && now_ns() >= go) {
			request[next].cookie =
				(uint64_t)b->id << ID_BITS | (uint16_t)request[next].cookie;
			ret = dev->dv->ask(ctx->verbs, &request[next]);
		}
		if (ret == 0 || ret == -EHOSTUNREACH) {
			if (++next % PACE == 0)
				go = now_ns() + PACE_NS;
			continue;
		}
		if (ret != -EAGAIN && ret != -ENOSPC)
			return ret == -EINVAL ? EINVAL : EIO;
		if (now_ns() >= until)
			return ETIMEDOUT;
		nap(dev, b, ctx->verbs);
	}
	return 0;
}

static int batch(struct mrc_context *ctx, struct ep_batch *b, struct rnic_mrc_request *request,
	uint64_t until, int *num_rsp)
{
	struct mrc_dev *dev = ctx->dev;
	pthread_condattr_t monotonic;
	int ret;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&b->come, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_lock(&dev->note);
	b->id = ++dev->batch_id;
	LIST_INSERT_HEAD(&dev->batches, b, link);
	pthread_mutex_unlock(&dev->note);

	ret = run(ctx, b, request, until);

	pthread_mutex_lock(&dev->note);
	LIST_REMOVE(b, link);
	*num_rsp = b->n_rsp;
	pthread_mutex_unlock(&dev->note);
	for (int i = 0; ret && i < b->n; i++)
		dev->dv->forget(ctx->verbs, request[i].cookie);
	pthread_cond_destroy(&b->come);
	return ret;
}

API int mrc_ctl_ep_batch_send_wait(struct mrc_context *ctx, uint8_t req_tc,
	enum mrc_ctl_ep_op_type op_type, struct mrc_ctl_ep_req *req, int num_req,
	uint32_t rsp_timeout, struct mrc_ctl_ep_rsp *rsp, int *num_rsp)
{
	uint64_t until = now_ns() + rsp_timeout;
	struct rnic_mrc_request *request;
	struct ep_batch *b;
	int ret;

	if (!ctx || !req || !rsp || !num_rsp || num_req < 1 || num_req > 1 << ID_BITS ||
		req_tc > DSCP_MAX)
		return mrc_fail(EINVAL);
	if (op_type != MRC_CTL_EP_OP_EV_PROBE && op_type != MRC_CTL_EP_OP_PORT_STATUS_UPDATE)
		return mrc_fail(ENOTSUP);
	if (!mrc_admin())
		return mrc_fail(EPERM);
	*num_rsp = 0;
	b = calloc(1, sizeof(*b));
	request = calloc((size_t)num_req, sizeof(*request));
	ret = b && request ? 0 : -ENOMEM;
	if (!ret) {
		b->n = num_req;
		b->rsp = rsp;
		ret = make_all(ctx, op_type, req_tc, req, b, request);
	}
	if (!ret)
		ret = batch(ctx, b, request, until, num_rsp);
	free(request);
	free(b);
	return ret ? mrc_fail(ret) : 0;
}
