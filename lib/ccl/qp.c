/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs objects of a communicator: device, queue pair, memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/comm.h"

static const uint64_t DEFAULT_TIMEOUT_NS = 10000000000ull;
enum { PAGE = 4096, MIN_SLOT = 64 };

/* docs/inc-protocol.md, 2.4: attributes of host queue pairs. */
enum {
	QP_RNR_RETRY = 7, /* endless */
	QP_RETRY_CNT = 7,
	QP_MIN_RNR_TIMER = 12, /* 0.64 ms */
	QP_TIMEOUT = 14,       /* 67 ms */
	QP_HOP_LIMIT = 64,
};

/* ---- devices ---- */

/* A kernel device lists each address once per RoCE version; only sysfs and ioctls know which is
 * which. A device without sysfs entry is not of the kernel and speaks version 2 alone. */
static bool is_roce_v1(const struct ibv_device *dev, unsigned port, unsigned gid)
{
	char path[512], type[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/ports/%u/gid_attrs/types/%u", dev->ibdev_path, port, gid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(type, sizeof(type), f))
		type[0] = '\0';
	fclose(f);
	return strncmp(type, "IB/RoCE v1", 10) == 0;
}

struct finder {
	const struct wire_ip *ip;
	int gid_index;
	uint8_t port, gid;
	char seen[300]; /* "incline0: 10.77.0.10, fe80::1" */
};

static void __attribute__((format(printf, 2, 3))) note(struct finder *f, const char *fmt, ...)
{
	const size_t n = strlen(f->seen);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->seen + n, sizeof(f->seen) - n, fmt, ap);
	va_end(ap);
}

static bool search_port(struct finder *f, struct ibv_context *ctx, uint8_t port)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(ctx, port, &attr))
		return false;
	for (int i = 0; i < attr.gid_tbl_len && i < 256; i++) {
		char text[WIRE_IP_STRLEN];
		struct wire_ip ip;
		union ibv_gid gid;

		if ((f->gid_index >= 0 && i != f->gid_index) || ibv_query_gid(ctx, port, i, &gid))
			continue;
		memcpy(ip.b, gid.raw, sizeof(ip.b));
		if (wire_ip_is_zero(&ip) || is_roce_v1(ctx->device, port, (unsigned)i))
			continue;
		note(f, " %s", wire_ip_format(&ip, text, sizeof(text)));
		if (!wire_ip_eq(&ip, f->ip))
			continue;
		f->port = port;
		f->gid = (uint8_t)i;
		return true;
	}
	return false;
}

static struct ibv_context *search_device(struct finder *f, struct ibv_device *dev)
{
	struct ibv_context *ctx = ibv_open_device(dev);
	struct ibv_device_attr attr;

	note(f, "%s%s:", f->seen[0] ? "; " : "", ibv_get_device_name(dev));
	if (!ctx) {
		note(f, " cannot be opened (%s)", strerror(errno));
		return NULL;
	}
	if (ibv_query_device(ctx, &attr) == 0)
		for (uint8_t port = 1; port <= attr.phys_port_cnt; port++)
			if (search_port(f, ctx, port))
				return ctx;
	ibv_close_device(ctx);
	return NULL;
}

int ccl_device_open(const char *device, const struct wire_ip *ip, int gid_index,
	struct ibv_context **context, uint8_t *port, uint8_t *gid, char err[CCL_ERR_LEN])
{
	struct finder f = {.ip = ip, .gid_index = gid_index};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	char text[WIRE_IP_STRLEN];

	for (int i = 0; list && list[i] && !ctx; i++)
		if (!device[0] || strcmp(device, ibv_get_device_name(list[i])) == 0)
			ctx = search_device(&f, list[i]);
	if (list)
		ibv_free_device_list(list);
	if (ctx) {
		*context = ctx;
		*port = f.port;
		*gid = f.gid;
		return 0;
	}
	wire_ip_format(ip, text, sizeof(text));
	if (f.seen[0])
		snprintf(err, CCL_ERR_LEN,
			"no RDMA device has this rank's address %s%s (found: %s)", text,
			gid_index >= 0 ? " at the given gid_index" : "", f.seen);
	else
		snprintf(err, CCL_ERR_LEN,
			"no RDMA device%s%s on this machine; a software one is "
			"loaded with LD_PRELOAD=libincline_verbs.so and INCLINE_RNIC",
			device[0] ? " named " : "", device);
	return -ENODEV;
}

static int mtu_bytes(enum ibv_mtu mtu)
{
	return 128 << mtu;
}

int ccl_port_mtu(struct ibv_context *context, uint8_t port)
{
	struct ibv_port_attr attr;
	const int rc = ibv_query_port(context, port, &attr);

	return rc ? -rc : mtu_bytes(attr.active_mtu);
}

/* ---- queue pair ---- */

static int modify(struct ccl_comm *c, const char *to, struct ibv_qp_attr *attr, int mask, char *err)
{
	int rc = ibv_modify_qp(c->qp, attr, mask);

	if (rc == 0)
		return 0;
	if (rc < 0)
		rc = errno;
	snprintf(err, CCL_ERR_LEN, "rank %u: queue pair to %s: %s%s", c->rank, to, strerror(rc),
		rc == ETIMEDOUT || rc == EHOSTUNREACH ? " (the switch did not answer ARP)" : "");
	return -rc;
}

static int to_init(struct ccl_comm *c, char *err)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = c->port};

	return modify(c, "INIT", &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, err);
}

static int to_rtr(struct ccl_comm *c, char *err)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)(__builtin_ctz(c->mtu) - 7),
		.dest_qp_num = c->remote_qpn,
		.rq_psn = c->start_psn,
		.min_rnr_timer = QP_MIN_RNR_TIMER,
		.ah_attr =
			{
				.is_global = 1,
				.port_num = c->port,
				.grh = {.sgid_index = c->gid_index, .hop_limit = QP_HOP_LIMIT},
			},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, c->remote_ip.b, 16);
	return modify(c, "RTR", &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		err);
}

static int to_rts(struct ccl_comm *c, char *err)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = c->start_psn,
		.timeout = QP_TIMEOUT,
		.retry_cnt = QP_RETRY_CNT,
		.rnr_retry = QP_RNR_RETRY,
	};

	return modify(c, "RTS", &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
		err);
}

void ccl_qp_to_error(struct ccl_comm *c)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (c->qp)
		(void)ibv_modify_qp(c->qp, &attr, IBV_QP_STATE);
}

static int make_objects(struct ccl_comm *c, const char **what)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = c->w,
			.max_recv_wr = c->n_recv,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	int flags;

	*what = "protection domain";
	c->pd = ibv_alloc_pd(c->context);
	if (!c->pd)
		return -errno;
	*what = "completion channel";
	c->channel = ibv_create_comp_channel(c->context);
	if (!c->channel)
		return -errno;
	flags = fcntl(c->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(c->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	*what = "completion queue";
	c->cq = ibv_create_cq(c->context, (int)(c->w + c->n_recv), c, c->channel, 0);
	if (!c->cq)
		return -errno;
	*what = "queue pair";
	init.send_cq = init.recv_cq = c->cq;
	c->qp = ibv_create_qp(c->pd, &init);
	return c->qp ? 0 : -errno;
}

static int make_stage(struct ccl_comm *c, char *err)
{
	const size_t slot = (size_t)c->m * c->mtu;
	size_t len;

	c->slot_len = slot < MIN_SLOT ? MIN_SLOT : slot;
	len = c->slot_len * (c->w + c->n_recv);
	if (posix_memalign((void **)&c->stage, PAGE, len)) {
		c->stage = NULL;
		snprintf(err, CCL_ERR_LEN, "no memory for %zu bytes of message buffers", len);
		return -ENOMEM;
	}
	memset(c->stage, 0, len);
	c->stage_mr = ibv_reg_mr(c->pd, c->stage, len, IBV_ACCESS_LOCAL_WRITE);
	if (c->stage_mr)
		return 0;
	snprintf(err, CCL_ERR_LEN,
		"registering %zu bytes: %s (is the limit on locked memory, "
		"ulimit -l, high enough?)",
		len, strerror(errno));
	return -errno;
}

/* ---- communicators ---- */

static int check_conn(const struct ccl_conn *conn, char *err)
{
	const char *wrong = NULL;

	if (conn->n_ranks < 1 || conn->n_ranks > CCL_MAX_RANKS || conn->rank >= conn->n_ranks)
		wrong = "rank or n_ranks";
	else if (conn->m < 1 || conn->m > 1024 || conn->w < 1 || conn->w > 1024 ||
		 conn->m * conn->w < 2)
		wrong = "m or w";
	else if (conn->max_packets > CCL_MAX_PACKETS ||
		 (conn->max_packets && conn->max_packets < conn->m))
		wrong = "max_packets";
	if (!wrong)
		return 0;
	snprintf(err, CCL_ERR_LEN, "%s out of range", wrong);
	return -EINVAL;
}

int ccl_comm_open(const struct ccl_conn *conn, struct ccl_comm **comm, char err[CCL_ERR_LEN])
{
	struct ccl_comm *c;
	const char *what;
	union ibv_gid gid;
	int rc = check_conn(conn, err);

	if (rc)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c) {
		snprintf(err, CCL_ERR_LEN, "out of memory");
		return -ENOMEM;
	}
	c->context = conn->context;
	c->port = conn->port ? conn->port : 1;
	c->gid_index = conn->gid_index;
	c->rank = conn->rank;
	c->n_ranks = conn->n_ranks;
	c->m = conn->m;
	c->w = conn->w;
	c->n_recv = conn->w + CCL_RECV_EXTRA;
	c->timeout_ns = conn->timeout_ns ? conn->timeout_ns : DEFAULT_TIMEOUT_NS;
	c->max_packets = conn->max_packets ? conn->max_packets : CCL_MAX_PACKETS;
	rc = make_objects(c, &what);
	if (rc)
		snprintf(err, CCL_ERR_LEN, "rank %u: making a %s on %s: %s", c->rank, what,
			ibv_get_device_name(c->context->device), strerror(-rc));
	else
		rc = to_init(c, err);
	if (rc) {
		ccl_comm_free(c);
		return rc;
	}
	if (ibv_query_gid(c->context, c->port, c->gid_index, &gid) == 0)
		memcpy(c->local_ip.b, gid.raw, sizeof(c->local_ip.b));
	*comm = c;
	return 0;
}

int ccl_comm_connect(struct ccl_comm *c, const struct ccl_conn *conn, char err[CCL_ERR_LEN])
{
	const int port_mtu = ccl_port_mtu(c->context, c->port);
	int rc;

	if (c->connected)
		return -EISCONN;
	if (conn->mtu < 256 || conn->mtu > 4096 || conn->mtu & (conn->mtu - 1)) {
		snprintf(err, CCL_ERR_LEN, "mtu %u is not 256, 512, 1024, 2048 or 4096", conn->mtu);
		return -EINVAL;
	}
	if (port_mtu < 0 || (unsigned)port_mtu < conn->mtu) {
		snprintf(err, CCL_ERR_LEN, "rank %u: the port of %s has MTU %d, the group needs %u",
			c->rank, ibv_get_device_name(c->context->device), port_mtu, conn->mtu);
		return -EMSGSIZE;
	}
	c->mtu = conn->mtu;
	c->remote_ip = conn->remote_ip;
	c->remote_qpn = conn->remote_qpn;
	c->start_psn = c->next_psn = conn->start_psn & 0xffffff;
	if ((rc = make_stage(c, err)) || (rc = to_rtr(c, err)) || (rc = to_rts(c, err)))
		return rc;
	c->connected = true;
	return 0;
}

int ccl_comm_create_connected(
	const struct ccl_conn *conn, struct ccl_comm **comm, char err[CCL_ERR_LEN])
{
	int rc = ccl_comm_open(conn, comm, err);

	if (rc)
		return rc;
	rc = ccl_comm_connect(*comm, conn, err);
	if (rc) {
		ccl_comm_free(*comm);
		*comm = NULL;
	}
	return rc;
}

/* Objects in the order in which they depend on one another; any may be missing. */
void ccl_comm_free(struct ccl_comm *c)
{
	if (!c)
		return;
	if (c->qp)
		ibv_destroy_qp(c->qp);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	if (c->stage_mr)
		ibv_dereg_mr(c->stage_mr);
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++)
		if (c->region[i].mr)
			ibv_dereg_mr(c->region[i].mr);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
	if (c->own_context)
		ibv_close_device(c->context);
	free(c->stage);
	free(c);
}

/* ---- registered memory ---- */

int ccl_register(struct ccl_comm *c, void *buf, size_t len)
{
	uint8_t *base = buf;
	struct ccl_region *free_entry = NULL;

	if (!buf || len == 0)
		return -EINVAL;
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		struct ccl_region *r = &c->region[i];

		if (!r->mr)
			free_entry = free_entry ? free_entry : r;
		else if (base < r->base + r->len && r->base < base + len)
			return -EEXIST;
	}
	if (!free_entry)
		return -ENOSPC;
	*free_entry = (struct ccl_region){.base = base,
		.len = len,
		.mr = ibv_reg_mr(c->pd, buf, len, IBV_ACCESS_LOCAL_WRITE)};
	return free_entry->mr ? 0 : -errno;
}

int ccl_deregister(struct ccl_comm *c, void *buf)
{
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		struct ccl_region *r = &c->region[i];
		int rc;

		if (!r->mr || r->base != buf)
			continue;
		if (!c->failed && ccl_busy(c))
			return -EBUSY;
		rc = ibv_dereg_mr(r->mr);
		if (rc == 0)
			r->mr = NULL;
		return -rc;
	}
	return -ENOENT;
}

/* ---- looking ---- */

uint32_t ccl_qpn(const struct ccl_comm *c)
{
	return c->qp->qp_num;
}

unsigned ccl_rank(const struct ccl_comm *c)
{
	return c->rank;
}

unsigned ccl_size(const struct ccl_comm *c)
{
	return c->n_ranks;
}

const char *ccl_error(const struct ccl_comm *c)
{
	return c->err;
}

void ccl_query(const struct ccl_comm *c, struct ccl_info *info)
{
	*info = (struct ccl_info){
		.local_ip = c->local_ip,
		.remote_ip = c->remote_ip,
		.local_qpn = c->qp->qp_num,
		.remote_qpn = c->remote_qpn,
		.start_psn = c->start_psn,
		.mtu = c->mtu,
		.m = c->m,
		.w = c->w,
		.gid_index = c->gid_index,
		.operations = c->op_done,
		.messages = c->tx_ack.msg < c->rx.msg ? c->tx_ack.msg : c->rx.msg,
		.staged_sends = c->staged_sends,
		.staged_receives = c->staged_receives,
	};
	snprintf(info->device, sizeof(info->device), "%s", ibv_get_device_name(c->context->device));
}
