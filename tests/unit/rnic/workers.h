/* SPDX-License-Identifier: BSD-3-Clause */
/* A device with receive workers, queue pairs that are theirs, and frames for these. */
#ifndef TEST_RNIC_WORKERS_H
#define TEST_RNIC_WORKERS_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> /* needs those above */
/* clang-format on */

#include <endian.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/uc_mcast.h"
#include "lib/wire/frame.h"
#include "lib/wire/multicast.h"

enum { GRH = 40, QKEY = 0x11111111, FRAME = 2048, CHUNK = 1024, KEY = 0x5eed, SLOT = 2048 };

struct host {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_cq *scq; /* the owner's, for all send queues */
	struct rnic_mr *mr;
	uint8_t *buf;
	size_t len;
	atomic_uint cq_events, cq_errors, fatal;
};

/* A queue pair with a receive CQ. */
struct member {
	struct host *host;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
};

static inline void host_cq_event(void *arg, struct rnic_cq *cq)
{
	struct host *host = arg;

	(void)cq;
	atomic_fetch_add(&host->cq_events, 1);
}

static inline void host_cq_error(void *arg, struct rnic_cq *cq)
{
	struct host *host = arg;

	(void)cq;
	atomic_fetch_add(&host->cq_errors, 1);
}

static inline void host_qp_event(void *arg, struct rnic_qp *qp, enum ibv_event_type type)
{
	struct host *host = arg;

	(void)qp;
	atomic_fetch_add(&host->fatal, type == IBV_EVENT_QP_FATAL);
}

static inline struct rnic_config host_config(struct host *host, unsigned workers)
{
	return (struct rnic_config){.n_workers = workers,
		.seed = 7,
		.port = {{.mac = {2, 0, 0, 0, 0, 1},
			.ip = {wire_ip_from4(0x0a4d0001)},
			.n_ip = 1,
			.mtu = 4200}},
		.events = {.arg = host,
			.cq_event = host_cq_event,
			.cq_error = host_cq_error,
			.qp_event = host_qp_event}};
}

static inline void host_open(struct host *host, unsigned workers, size_t len)
{
	struct rnic_config config = host_config(host, workers);

	memset(host, 0, sizeof(*host));
	assert_int_equal(0, rnic_create(&config, &host->rnic));
	assert_int_equal(workers, rnic_n_workers(host->rnic));
	assert_int_equal(0, rnic_pd_alloc(host->rnic, &host->pd));
	assert_int_equal(0, rnic_cq_create(host->rnic, 64, NULL, &host->scq));
	host->len = len;
	host->buf = calloc(1, len);
	assert_non_null(host->buf);
	assert_int_equal(0, rnic_mr_reg(host->pd, host->buf, len, (uintptr_t)host->buf,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &host->mr));
}

static inline void host_close(struct host *host)
{
	rnic_destroy(host->rnic);
	free(host->buf);
}

static inline struct rnic_qp_init member_init(const struct member *m,
	const struct transport_ops *ops, enum ibv_qp_type type, unsigned worker)
{
	return (struct rnic_qp_init){.type = type,
		.transport = ops,
		.pd = m->host->pd,
		.send_cq = m->host->scq,
		.recv_cq = m->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.worker = worker};
}

/* Datagrams, in RTR. cq: that of another member; NULL: one of its own. */
static inline void member_ud(
	struct member *m, struct host *host, unsigned worker, struct rnic_cq *cq)
{
	const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct rnic_qp_init init;

	m->host = host;
	m->cq = cq;
	if (cq == NULL)
		assert_int_equal(0, rnic_cq_create(host->rnic, 128, NULL, &m->cq));
	init = member_init(m, NULL, IBV_QPT_UD, worker);
	assert_int_equal(0, rnic_qp_create(host->rnic, &init, &m->qp));
	assert_int_equal(0, rnic_qp_modify(m->qp, &attr, to_init, 0));
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(0, rnic_qp_modify(m->qp, &attr, IBV_QP_STATE, 0));
}

/* WRITEs to the group, in RTR. */
static inline void member_uc(
	struct member *m, struct host *host, unsigned worker, const struct wire_ip *group)
{
	const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int to_rtr =
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 0xffffff,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}}};
	struct rnic_qp_init init;

	memcpy(attr.ah_attr.grh.dgid.raw, group->b, 16);
	m->host = host;
	assert_int_equal(0, rnic_cq_create(host->rnic, 128, NULL, &m->cq));
	init = member_init(m, &rnic_uc_mcast, IBV_QPT_UC, worker);
	assert_int_equal(0, rnic_qp_create(host->rnic, &init, &m->qp));
	assert_int_equal(0, rnic_qp_modify(m->qp, &attr, to_init, 0));
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(0, rnic_qp_modify(m->qp, &attr, to_rtr, 0));
	assert_int_equal(0, rnic_qp_attach_mcast(m->qp, group));
}

/* Of the host's memory, from at on; the peer may write there. */
static inline int member_window(struct member *m, size_t at, size_t len)
{
	const struct rnic_mcast_writer peer = {
		.ip = wire_ip_from4(0x0a4d0002), .va = 0, .len = len};
	const struct rnic_mcast_window window = {.key = KEY,
		.lkey = rnic_mr_lkey(m->host->mr),
		.addr = (uintptr_t)m->host->buf + at,
		.len = len,
		.number_mask = 0xffffff,
		.writer = &peer,
		.n_writers = 1};

	return rnic_qp_mcast_window(m->qp, &window);
}

static inline int member_recv(struct member *m, uint64_t id, size_t at, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)m->host->buf + at, len, rnic_mr_lkey(m->host->mr)};

	return rnic_post_recv(
		m->qp, &(struct ibv_recv_wr){.wr_id = id, .sg_list = &sge, .num_sge = len > 0});
}

/* From the peer 10.77.0.2 to the host, or to a group. */
static inline struct rnic_rx_frame host_frame(struct host *host, uint8_t bytes[FRAME],
	const struct wire_ip *group, struct wire_hdr hdr, const void *payload, size_t len)
{
	struct wire_flow flow = {.ttl = 64, .sport = 0xd00d, .smac = {2, 0, 0, 0, 0, 2}};
	int n;

	flow.src = wire_ip_from4(0x0a4d0002);
	if (group != NULL) {
		flow.dst = *group;
		wire_multicast_mac(group, flow.dmac);
		hdr.dqpn = 0xffffff;
	} else {
		flow.dst = wire_ip_from4(0x0a4d0001);
		rnic_mac(host->rnic, 0, flow.dmac);
	}
	n = wire_build_frame(bytes, FRAME, &flow, &hdr, payload, len);
	assert_true(n > 0);
	return (struct rnic_rx_frame){.data = bytes, .len = (uint32_t)n};
}

static inline struct rnic_rx_frame ud_frame(struct host *host, uint8_t bytes[FRAME],
	const struct wire_ip *group, uint32_t qpn, uint32_t number, const void *payload, size_t len)
{
	const struct wire_hdr hdr = {.opcode = ROCE_UD | ROCE_SEND_ONLY_IMM,
		.mig = true,
		.dqpn = qpn,
		.sqpn = 77,
		.qkey = QKEY,
		.imm = number};

	return host_frame(host, bytes, group, hdr, payload, len);
}

/* The chunk of that number, which is whole. */
static inline struct rnic_rx_frame uc_frame(struct host *host, uint8_t bytes[FRAME],
	const struct wire_ip *group, uint32_t number, const void *payload)
{
	const struct wire_hdr hdr = {.opcode = ROCE_UC | ROCE_WRITE_ONLY_IMM,
		.mig = true,
		.imm = number,
		.va = (uint64_t)number * CHUNK,
		.rkey = KEY,
		.dmalen = CHUNK};

	return host_frame(host, bytes, group, hdr, payload, CHUNK);
}

static inline uint64_t host_drops(const struct host *host)
{
	uint64_t sum = 0;

	for (unsigned i = 1; i < RNIC_N_DROPS; i++)
		sum += rnic_drop_count(host->rnic, i);
	return sum;
}

static inline void host_check_counters(const struct host *host)
{
	assert_int_equal(rnic_count(host->rnic, RNIC_C_RX_FRAMES),
		rnic_count(host->rnic, RNIC_C_RX_ACCEPTED) + host_drops(host));
	assert_int_equal(rnic_count(host->rnic, RNIC_C_RX_FRAMES),
		rnic_port_count(host->rnic, 0, RNIC_PORT_C_RX_FRAMES));
	assert_int_equal(host_drops(host), rnic_port_count(host->rnic, 0, RNIC_PORT_C_RX_DROPS));
}

#endif
