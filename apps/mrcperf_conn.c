/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-mrcperf: devices, queue pairs, and the TCP connection by which the ends find each other.
 */
#include "apps/mrcperf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Timeouts for a machine whose cores are many programs': 134 ms, and a minute of silence. */
enum { PSN = 0x1000, TIMEOUT = 17, LINEAR = 7, EXP = 8 };

static int trouble(const char *what)
{
	fprintf(stderr, "incline-mrcperf: %s: %s\n", what, strerror(errno));
	return -1;
}

/* ---- TCP ---- */

static int attach(struct mrcperf_end *e, int fd)
{
	int other = dup(fd);

	e->in = fdopen(fd, "r");
	e->out = other < 0 ? NULL : fdopen(other, "w");
	return e->in && e->out ? 0 : trouble("fdopen");
}

static int tcp(const char *host, const char *port, bool server)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = server ? AI_PASSIVE : 0},
			*list;
	int fd = -1, on = 1;

	if (getaddrinfo(host, port, &hints, &list)) {
		errno = EADDRNOTAVAIL;
		return -1;
	}
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (server ? bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 1)
			   : connect(fd, a->ai_addr, a->ai_addrlen)) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	return fd;
}

int mrcperf_listen(struct mrcperf_end *e, const char *port)
{
	struct mrcperf_plan *p = &e->plan;
	int at = tcp(NULL, port, true), fd;

	if (at < 0)
		return trouble("listen");
	fd = accept(at, NULL, NULL);
	close(at);
	if (fd < 0)
		return trouble("accept");
	if (attach(e, fd))
		return -1;
	if (fscanf(e->in, "mrcperf %u %u %u %lu %lu %lu %u\n", &p->qps, &p->depth, &p->imm, &p->min,
		    &p->max, &p->iters, &p->seed) != 7 ||
		p->qps < 1 || p->qps > MRCPERF_QPS || p->depth < 1 || p->depth > MRCPERF_DEPTH ||
		p->min < 1 || p->max < p->min || p->max > 1ul << 30 || p->iters < 1) {
		fprintf(stderr, "incline-mrcperf: the peer is no incline-mrcperf\n");
		return -1;
	}
	return 0;
}

int mrcperf_dial(struct mrcperf_end *e, const char *host, const char *port)
{
	const struct mrcperf_plan *p = &e->plan;
	int fd = tcp(host, port, false);

	if (fd < 0)
		return trouble(host);
	if (attach(e, fd))
		return -1;
	fprintf(e->out, "mrcperf %u %u %u %lu %lu %lu %u\n", p->qps, p->depth, p->imm, p->min,
		p->max, p->iters, p->seed);
	return fflush(e->out) ? trouble("peer") : 0;
}

int mrcperf_say(struct mrcperf_end *e, const char *word, unsigned long number)
{
	fprintf(e->out, "%s %lu\n", word, number);
	return fflush(e->out) ? trouble("peer") : 0;
}

enum { WORD = 20 };

static bool hear(struct mrcperf_end *e, char word[WORD], unsigned long *number)
{
	char line[80];

	return fgets(line, sizeof(line), e->in) && sscanf(line, "%19s %lu", word, number) == 2;
}

static int has_failed(void)
{
	fprintf(stderr, "incline-mrcperf: the peer has failed\n");
	return -1;
}

long mrcperf_hear(struct mrcperf_end *e, const char *word)
{
	unsigned long number;
	char got[WORD];

	return hear(e, got, &number) && strcmp(got, word) == 0 ? (long)number : has_failed();
}

int mrcperf_next(struct mrcperf_end *e, unsigned long *size)
{
	char got[WORD];

	if (!hear(e, got, size))
		return has_failed();
	if (strcmp(got, "end") == 0)
		return 0;
	return strcmp(got, "size") == 0 && *size >= e->plan.min && *size <= e->plan.max
		       ? 1
		       : has_failed();
}

/* ---- the device ---- */

static int open_device(struct mrcperf_end *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct mrc_context_attr attr = {.mrc_api_version_used = MRC_API_VER_USED};
	struct mrc_device_attr device;
	int supported = 0;

	for (int i = 0; list && list[i] && !e->verbs; i++) {
		if (!e->device || strcmp(ibv_get_device_name(list[i]), e->device) == 0)
			e->verbs = ibv_open_device(list[i]);
	}
	if (list)
		ibv_free_device_list(list);
	if (!e->verbs)
		return trouble("no device");
	if (mrc_query_device(e->verbs, &device, &supported) || !supported) {
		fprintf(stderr, "incline-mrcperf: %s does not speak MRC\n",
			ibv_get_device_name(e->verbs->device));
		return -1;
	}
	e->ctx = mrc_create_context(e->verbs, &attr);
	e->pd = ibv_alloc_pd(e->verbs);
	return e->ctx && e->pd ? 0 : trouble("context");
}

static int make_memory(struct mrcperf_end *e)
{
	const struct mrcperf_plan *p = &e->plan;
	size_t len;

	e->slots = (size_t)p->qps * p->depth * p->max;
	e->slots = (e->slots + 63) / 64 * 64;
	len = e->slots + MRCPERF_QPS * sizeof(uint64_t);
	e->buf = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
	if (!e->buf)
		return trouble("memory");
	memset(e->buf, 0, len);
	e->credit = (volatile uint64_t *)(e->buf + e->slots);
	e->mr = ibv_reg_mr(e->pd, e->buf, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return e->mr ? 0 : trouble("ibv_reg_mr");
}

static int make_qps(struct mrcperf_end *e)
{
	const struct mrcperf_plan *p = &e->plan;

	e->cq = mrc_create_cq(e->ctx, (int)(4 * p->qps * p->depth), NULL, NULL, 0);
	if (!e->cq)
		return trouble("mrc_create_cq");
	for (unsigned i = 0; i < p->qps; i++) {
		struct mrc_qp_init_attr init = {.qp_context = e,
			.send_cq = e->cq,
			.recv_cq = e->cq,
			.cap = {.max_send_wr = 2 * p->depth,
				.max_recv_wr = p->depth,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = sizeof(uint64_t)},
			.sq_sig_all = 1,
			.pd = e->pd,
			.protocol_version = MRC_PROTOCOL_VERSION_1};

		e->qp[i] = mrc_create_qp(e->ctx, &init);
		if (!e->qp[i])
			return trouble("mrc_create_qp");
	}
	return 0;
}

/* ---- connecting ---- */

static int put_address(struct mrcperf_end *e)
{
	union ibv_gid gid;

	if (ibv_query_gid(e->verbs, 1, e->gid, &gid))
		return trouble("GID");
	for (unsigned i = 0; i < sizeof(gid.raw); i++)
		fprintf(e->out, "%02x", gid.raw[i]);
	fprintf(e->out, " %lx %x", (unsigned long)(uintptr_t)e->buf, e->mr->rkey);
	for (unsigned i = 0; i < e->plan.qps; i++) {
		uint32_t qpn;

		mrc_get_qpn(e->qp[i], &qpn);
		fprintf(e->out, " %x", qpn);
	}
	fprintf(e->out, "\n");
	return fflush(e->out) ? trouble("peer") : 0;
}

static int get_address(struct mrcperf_end *e, union ibv_gid *gid, uint32_t *qpn)
{
	char text[MRCPERF_GID_TEXT];
	int ok = fscanf(e->in, "%32s %lx %x", text, &e->peer_addr, &e->peer_rkey) == 3;

	for (unsigned i = 0; ok && i < sizeof(gid->raw); i++)
		ok = sscanf(text + 2 * i, "%2hhx", &gid->raw[i]) == 1;
	for (unsigned i = 0; ok && i < e->plan.qps; i++)
		ok = fscanf(e->in, "%x", &qpn[i]) == 1;
	if (ok && fgetc(e->in) == '\n')
		return 0;
	return has_failed();
}

static int connect_qp(struct mrcperf_end *e, struct mrc_qp *qp, const union ibv_gid *gid,
	uint32_t qpn, uint64_t profile)
{
	struct mrc_qp_attr m = {
		.profile.ev_profile_id = profile, .timeout = TIMEOUT, .retry = {LINEAR, EXP}};
	struct ibv_port_attr port;
	struct ibv_qp_attr v = {.qp_state = IBV_QPS_INIT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.dest_qp_num = qpn,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = *gid, .sgid_index = (uint8_t)e->gid, .hop_limit = 64}}};

	if (ibv_query_port(e->verbs, 1, &port))
		return trouble("ibv_query_port");
	v.path_mtu = port.active_mtu;
	if (mrc_modify_qp(qp, &v, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, &m,
		    MRC_QP_EV_PROFILE_ID))
		return trouble("to INIT");
	v.qp_state = IBV_QPS_RTR;
	if (mrc_modify_qp(qp, &v,
		    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		    NULL, 0))
		return trouble("to RTR");
	v.qp_state = IBV_QPS_RTS;
	return mrc_modify_qp(
		       qp, &v, IBV_QP_STATE | IBV_QP_SQ_PSN, &m, MRC_QP_RETRY_CNT | MRC_QP_TIMEOUT)
		       ? trouble("to RTS")
		       : 0;
}

int mrcperf_open(struct mrcperf_end *e)
{
	uint32_t qpn[MRCPERF_QPS];
	union ibv_gid gid;
	uint64_t profile;

	if (open_device(e) || (e->paths && mrcperf_paths_read(e)) || make_memory(e) ||
		make_qps(e) || put_address(e) || get_address(e, &gid, qpn) ||
		mrcperf_profile(e, &gid, &profile))
		return -1;
	for (unsigned i = 0; i < e->plan.qps; i++) {
		if (connect_qp(e, e->qp[i], &gid, qpn[i], profile))
			return -1;
	}
	if (mrcperf_watch_start(e, &gid))
		return -1;
	/* Nobody writes to a peer that cannot take it yet. */
	return mrcperf_say(e, "ready", 0) || mrcperf_hear(e, "ready") < 0 ? -1 : 0;
}

void mrcperf_close(struct mrcperf_end *e)
{
	mrcperf_watch_stop(e);
	for (unsigned i = 0; i < MRCPERF_QPS; i++) {
		if (e->qp[i])
			mrc_destroy_qp(e->qp[i]);
	}
	if (e->cq)
		mrc_destroy_cq(e->cq);
	if (e->mr)
		ibv_dereg_mr(e->mr);
	free(e->buf);
	if (e->pd)
		ibv_dealloc_pd(e->pd);
	if (e->ctx)
		mrc_destroy_context(e->ctx);
	if (e->verbs)
		ibv_close_device(e->verbs);
	mrcperf_paths_free(e);
	if (e->in)
		fclose(e->in);
	if (e->out)
		fclose(e->out);
}
