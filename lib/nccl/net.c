/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's network: data from one rank to another. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/nccl/net.h"

/* Between two looks at the partner's TCP connection; closed at so many, it is gone. What it has
 * sent before is here by then. */
static const uint64_t LOOK_NS = 100000000;
enum { LOOKS = 3 };

/* wr_id: an own request's number, or one of these. */
enum { ANNOUNCED = 1000, ANNOUNCEMENT };

static nccl_rc init(nccl_logger log)
{
	np_set_log(log);
	if (np_ports())
		return NCCL_OK;
	np_info("no RDMA device%s%s with an address; a software one is loaded with "
		"LD_PRELOAD=libincline_verbs.so and INCLINE_RNIC",
		getenv("INCLINE_DEVICE") ? " named " : "",
		getenv("INCLINE_DEVICE") ? getenv("INCLINE_DEVICE") : "");
	return NCCL_SYSTEM_ERROR;
}

/* ---- memory ---- */

static nccl_rc reg(void *conn, void *data, size_t len, int memory, void **mem)
{
	const struct np_conn *c = conn;

	*mem = NULL;
	if (memory != NCCL_MEMORY_HOST)
		return np_warn(NCCL_INTERNAL_ERROR,
			"memory of kind %d: the properties say host memory alone", memory);
	*mem = ibv_reg_mr(c->pd, data, len, IBV_ACCESS_LOCAL_WRITE);
	return *mem ? NCCL_OK
		    : np_warn(NCCL_SYSTEM_ERROR, "%zu bytes cannot be registered: %s", len,
			      strerror(errno));
}

static nccl_rc dereg(void *conn, void *mem)
{
	const int rc = mem ? ibv_dereg_mr(mem) : 0;

	(void)conn;
	return rc ? np_warn(NCCL_SYSTEM_ERROR, "memory cannot be given back: %s", strerror(rc))
		  : NCCL_OK;
}

/* ---- the queue pair ---- */

int np_await(struct np_conn *c)
{
	struct ibv_recv_wr wr = {.wr_id = ANNOUNCEMENT}, *bad;

	return ibv_post_recv(c->qp, &wr, &bad);
}

static nccl_rc fail(struct np_conn *c, nccl_rc rc, const char *what, const char *why)
{
	if (!c->failed)
		c->failed = np_warn(rc, "%s, %s: %s", c->port->name, what, why);
	return c->failed;
}

static void announcement(struct np_conn *c, const struct ibv_wc *wc)
{
	int rc;

	if (c->room_tail - c->room_head == NP_ROOM || !(wc->wc_flags & IBV_WC_WITH_IMM)) {
		fail(c, NCCL_REMOTE_ERROR, "a buffer is announced",
			"more than there can be, or without its length");
		return;
	}
	c->room[c->room_tail++ % NP_ROOM] = ntohl(wc->imm_data);
	rc = np_await(c);
	if (rc)
		fail(c, NCCL_SYSTEM_ERROR, "a receive cannot be posted", strerror(rc));
}

static void complete(struct np_conn *c, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		/* A partner that does not answer any more has ended, or its machine has. */
		fail(c, wc->status == IBV_WC_RETRY_EXC_ERR ? NCCL_REMOTE_ERROR : NCCL_SYSTEM_ERROR,
			c->sends ? "sending" : "receiving", ibv_wc_status_str(wc->status));
	} else if (wc->wr_id == ANNOUNCED) {
		c->n_announced--;
	} else if (wc->wr_id == ANNOUNCEMENT) {
		announcement(c, wc);
	} else if (wc->wr_id < NP_REQUESTS) {
		if (!c->sends)
			c->request[wc->wr_id].len = wc->byte_len;
		c->request[wc->wr_id].done = true;
	}
}

static int poll_all(struct np_conn *c)
{
	struct ibv_wc wc[16];
	int n, all = 0;

	do {
		n = ibv_poll_cq(c->cq, 16, wc);
		for (int i = 0; i < n && !c->failed; i++)
			complete(c, &wc[i]);
		all += n > 0 ? n : 0;
	} while (n == 16 && !c->failed);
	if (n < 0)
		fail(c, NCCL_SYSTEM_ERROR, "its completion queue", "cannot be polled");
	return all;
}

static void look_at_partner(struct np_conn *c)
{
	const uint64_t now = np_clock();
	char byte;
	ssize_t n;

	if (now - c->looked < LOOK_NS)
		return;
	c->looked = now;
	n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (++c->gone == LOOKS)
		fail(c, NCCL_REMOTE_ERROR, "its partner", "has ended");
}

/* What has come; if nothing has, whether anything still can. */
static nccl_rc turn(struct np_conn *c)
{
	if (!c->failed && poll_all(c) == 0)
		look_at_partner(c);
	return c->failed;
}

/* ---- requests ---- */

static struct np_net_request *take(struct np_conn *c)
{
	for (unsigned i = 0; i < NP_REQUESTS; i++)
		if (!c->request[i].used) {
			c->request[i] = (struct np_net_request){.on = c};
			return &c->request[i];
		}
	return NULL;
}

static struct ibv_sge piece(void *data, int len, void *mem)
{
	const struct ibv_mr *mr = mem;

	return (struct ibv_sge){
		.addr = (uintptr_t)data, .length = (uint32_t)len, .lkey = mr ? mr->lkey : 0};
}

static nccl_rc send_locked(struct np_conn *c, void *data, int len, void *mem, void **request)
{
	struct ibv_sge sge = piece(data, len, mem);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = len > 0}, *bad;
	struct np_net_request *q;
	int rc;

	if (turn(c))
		return c->failed;
	q = c->room_head != c->room_tail ? take(c) : NULL;
	if (!q)
		return NCCL_OK; /* not now */
	if ((uint32_t)len > c->room[c->room_head % NP_ROOM])
		return fail(c, NCCL_INVALID_USAGE, "sending",
			"more bytes than the receiver has room for");
	wr.wr_id = (uint64_t)(q - c->request);
	rc = ibv_post_send(c->qp, &wr, &bad);
	if (rc)
		return fail(c, NCCL_SYSTEM_ERROR, "a send cannot be posted", strerror(rc));
	c->room_head++;
	q->used = true;
	q->len = (uint32_t)len;
	*request = q;
	return NCCL_OK;
}

static nccl_rc net_send(void *conn, void *data, int len, int tag, void *mem, void **request)
{
	struct np_conn *c = conn;
	nccl_rc rc;

	(void)tag;
	*request = NULL;
	if (!c->sends || len < 0)
		return np_warn(NCCL_INTERNAL_ERROR, "a send of %d bytes by who %s", len,
			c->sends ? "sends" : "receives");
	pthread_mutex_lock(&c->lock);
	rc = send_locked(c, data, len, mem, request);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static int announce(struct np_conn *c, int len)
{
	struct ibv_send_wr wr = {.wr_id = ANNOUNCED,
				   .opcode = IBV_WR_SEND_WITH_IMM,
				   .imm_data = htonl((uint32_t)len)},
			   *bad;
	const int rc = ibv_post_send(c->qp, &wr, &bad);

	c->n_announced += !rc;
	return rc;
}

static nccl_rc receive_locked(struct np_conn *c, void *data, int len, void *mem, void **request)
{
	struct ibv_sge sge = piece(data, len, mem);
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = len > 0}, *bad;
	struct np_net_request *q;
	int rc;

	if (turn(c))
		return c->failed;
	q = c->n_announced < NP_ROOM ? take(c) : NULL;
	if (!q)
		return NCCL_OK; /* not now */
	wr.wr_id = (uint64_t)(q - c->request);
	rc = ibv_post_recv(c->qp, &wr, &bad);
	if (!rc)
		rc = announce(c, len);
	if (rc)
		return fail(c, NCCL_SYSTEM_ERROR, "a receive cannot be posted", strerror(rc));
	q->used = true;
	*request = q;
	return NCCL_OK;
}

static nccl_rc net_receive(
	void *conn, int n, void **data, int *len, int *tag, void **mem, void **request)
{
	struct np_conn *c = conn;
	nccl_rc rc;

	(void)tag;
	*request = NULL;
	if (c->sends || n != 1 || len[0] < 0)
		return np_warn(NCCL_INTERNAL_ERROR, "%d receives at once by who %s", n,
			c->sends ? "sends" : "receives");
	pthread_mutex_lock(&c->lock);
	rc = receive_locked(c, data[0], len[0], mem[0], request);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static nccl_rc net_flush(void *conn, int n, void **data, int *len, void **mem, void **request)
{
	(void)conn;
	(void)n;
	(void)data;
	(void)len;
	(void)mem;
	*request = NULL; /* a GPU sees host memory as it is */
	return NCCL_OK;
}

static nccl_rc test_locked(struct np_net_request *q, int *done, int *len)
{
	if (!q->used)
		return np_warn(NCCL_INTERNAL_ERROR, "a test of a request that is over");
	if (!q->done && turn(q->on))
		return q->on->failed;
	*done = q->done;
	if (q->done && len)
		*len = (int)q->len;
	q->used = !q->done;
	return NCCL_OK;
}

static nccl_rc net_test(void *request, int *done, int *len)
{
	struct np_net_request *q = request;
	struct np_conn *c = q->on;
	nccl_rc rc;

	*done = 0;
	pthread_mutex_lock(&c->lock);
	rc = test_locked(q, done, len);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

const struct nccl_net ncclNetPlugin_v8 = {
	.name = "Incline",
	.init = init,
	.devices = np_devices,
	.properties = np_properties,
	.listen = np_listen,
	.connect = np_connect,
	.accept = np_accept,
	.reg = reg,
	.dereg = dereg,
	.send = net_send,
	.receive = net_receive,
	.flush = net_flush,
	.test = net_test,
	.close_send = np_close,
	.close_receive = np_close,
	.close_listen = np_close_listen,
};
