/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport's face to the device: states, attributes, counters, the time. */
#include "lib/mrc/transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mrc/transport_priv.h"
#include "lib/rnic/device.h"
#include "lib/wire/psn.h"

enum { NS_PER_MS = 1000000, BITS_PER_MBIT = 1000000 };

/* ---- paths, memory ---- */

static const struct rnic_mrc_paths *paths_for(const struct mrc_conn *c, bool v4)
{
	if (c->attr.paths != NULL)
		return c->attr.paths;
	return v4 ? c->dev->auto4 : c->dev->auto6;
}

static int make_evs(struct mrc_conn *c, const struct rnic_mrc_paths *paths)
{
	const struct mrc_evset_config config = {.n_ports = c->dev->c.n_ports,
		.max_active = paths->max_active ? paths->max_active : c->dev->set.active_evs,
		.min_active =
			paths->min_active
				? paths->min_active
				: (paths->n < c->dev->c.n_ports ? paths->n : c->dev->c.n_ports),
		.base_rtt_ns = c->dev->base_rtt_ns,
		.probe_cap_ns = c->dev->set.probe_cap_ms * (uint64_t)NS_PER_MS,
		.probes_to_return = c->dev->set.probes_to_return,
		.seed = rnic_random(c->qp->rnic)};
	uint32_t ev[MRC_MAX_EVS];
	uint8_t port[MRC_MAX_EVS];

	for (unsigned i = 0; i < paths->n; i++) {
		ev[i] = paths->path[i].ev;
		port[i] = paths->path[i].port;
	}
	if (mrc_evset_init(&c->evs, &config, ev, port, paths->n) < 0)
		return -EINVAL;
	for (unsigned i = 0; i < paths->n; i++) {
		if (paths->path[i].denied)
			mrc_evset_deny(&c->evs, (int)i);
	}
	while (mrc_evset_take_changed(&c->evs) != MRC_NO_EV)
		; /* nobody needs to be told */
	return 0;
}

static uint32_t least_mtu(const struct rnic *rnic)
{
	uint32_t mtu = rnic->port[0].mtu;

	for (unsigned p = 1; p < rnic->n_ports; p++)
		mtu = rnic->port[p].mtu < mtu ? rnic->port[p].mtu : mtu;
	return mtu;
}

static size_t room_of(const struct rnic_mrc_paths *paths)
{
	bool srh = false;

	for (unsigned i = 0; i < paths->n; i++)
		srh |= paths->path[i].n_segments > 1;
	return srh ? MRC_ROOM_SRH : paths->format == RNIC_MRC_SRV6 ? MRC_ROOM_SRV6 : MRC_ROOM;
}

static struct mrc_rsp_config rsp_config(const struct mrc_conn *c, uint32_t pmtu)
{
	const struct ibv_qp_attr *attr = &c->qp->attr;
	const struct mrc_settings *set = &c->dev->set;
	const uint64_t rtt = c->dev->base_rtt_ns;

	return (struct mrc_rsp_config){.first_psn = attr->rq_psn,
		.dqpn = attr->dest_qp_num,
		.qpn_low = (uint16_t)c->qp->qpn,
		.mpr_units = c->attr.mpr_dest,
		.dynamic_mpr = c->attr.caps & RNIC_MRC_DYNAMIC_MPR,
		.max_wimm = c->attr.max_wimm_dest,
		.pmtu = pmtu,
		.sack_bytes = set->sack_bytes,
		.sack_least_bytes = set->sack_least_bytes,
		.wimm_syndrome = (uint8_t)set->wimm_syndrome,
		.guard_ns = set->guard_rtts * rtt,
		.oor_ns = set->oor_rtts * rtt,
		.no_oor = set->oor_rtts == 0,
		.service_time = c->attr.caps & RNIC_MRC_SERVICE_TIME};
}

static struct mrc_req_config req_config(const struct mrc_conn *c)
{
	const struct ibv_qp_attr *attr = &c->qp->attr;
	const struct mrc_settings *set = &c->dev->set;
	const uint64_t rtt = c->dev->base_rtt_ns;

	return (struct mrc_req_config){.snd = {.first_psn = attr->sq_psn,
					       .mpr_units = c->attr.mpr,
					       .timeout = c->attr.timeout,
					       .linear_cnt = c->attr.linear_cnt,
					       .exp_cnt = c->attr.exp_cnt,
					       .later_ns = set->later_rtts * rtt,
					       .tail_ns = set->tail_rtts * rtt,
					       .tail_rtts = set->tail_rtts,
					       .tail_again = (uint8_t)set->tail_again,
					       .guard_ns = set->guard_rtts * rtt,
					       .late_ns = set->late_rtts * rtt,
					       .tail_probes = (uint8_t)set->tail_probes,
					       .loss_least = set->loss_least},
		.dqpn = attr->dest_qp_num,
		.qpn_low = (uint16_t)c->qp->qpn,
		.pmtu = c->qp->mtu,
		.messages = c->qp->sq.mask + 1,
		.max_wimm = c->attr.max_wimm,
		.cc = !c->attr.cc.none,
		.loss_percent = set->loss_percent,
		.stamps_us = set->stamps_us,
		.wimm_syndrome = (uint8_t)set->wimm_syndrome,
		.peer_nacks_trimmed = !(c->attr.caps & RNIC_MRC_PEER_NO_TRIM_NACK)};
}

static int make_nscc(struct mrc_conn *c)
{
	struct nscc_config config = c->attr.cc.nscc;
	struct nscc_link link = c->attr.cc.link;

	if (config.base_rtt_ns == 0)
		config.base_rtt_ns = (uint32_t)c->dev->base_rtt_ns;
	if (link.bits_per_s == 0)
		link.bits_per_s = c->dev->set.mbps * (uint64_t)BITS_PER_MBIT;
	if (link.settings == NULL)
		link.settings = &c->dev->set;
	if (link.mtu == 0) {
		link.mtu = c->qp->mtu + MRC_ROOM;
		link.trims = !(c->attr.caps & RNIC_MRC_PEER_NO_TRIM_NACK);
	}
	return nscc_init(&c->nscc, &config, &link);
}

/* All that can fail on the way to RTR and RTS. */
static int ready_to_receive(struct mrc_conn *c, const struct ibv_qp_attr *attr)
{
	const uint32_t pmtu = roce_mtu_bytes(attr->path_mtu);
	const struct mrc_rsp_config config = rsp_config(c, pmtu);
	const struct rnic_mrc_paths *paths;
	struct wire_ip dst;
	int err;

	memcpy(dst.b, attr->ah_attr.grh.dgid.raw, sizeof(dst.b));
	paths = paths_for(c, wire_ip_is4(&dst));
	err = mrc_paths_check(paths, c->dev->c.n_ports, wire_ip_is4(&dst));
	if (err == 0 && pmtu + room_of(paths) > least_mtu(c->qp->rnic))
		err = -EINVAL;
	if (err == 0)
		err = make_evs(c, paths);
	if (err < 0)
		return err;
	c->paths = paths;
	c->rsp_bytes = mrc_rsp_bytes(&config);
	if (c->rsp_mem == NULL)
		c->rsp_mem = malloc(c->rsp_bytes);
	if (c->spare == NULL)
		c->spare = malloc(sizeof(*c->spare));
	return c->rsp_mem == NULL || c->spare == NULL ? -ENOMEM : 0;
}

static int ready_to_send(struct mrc_conn *c)
{
	const struct mrc_req_config config = req_config(c);

	c->req_bytes = mrc_req_bytes(&config);
	if (c->req_bytes == 0 || (config.cc && make_nscc(c) < 0))
		return -EINVAL;
	if (c->req_mem == NULL)
		c->req_mem = malloc(c->req_bytes);
	return c->req_mem == NULL ? -ENOMEM : 0;
}

static int check(const struct rnic *rnic, const struct rnic_qp_init *init)
{
	(void)init;
	return dev_of(rnic) == NULL ? -EINVAL : 0;
}

static int check_attr(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const enum ibv_qp_state from = qp_state(qp);
	struct mrc_conn *c = conn_of(qp);

	if ((mask & IBV_QP_STATE) && from == IBV_QPS_INIT && attr->qp_state == IBV_QPS_RTR)
		return ready_to_receive(c, attr);
	if ((mask & IBV_QP_STATE) && from == IBV_QPS_RTR && attr->qp_state == IBV_QPS_RTS)
		return ready_to_send(c);
	return 0;
}

/* ---- states ---- */

static void enter(struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now)
{
	struct mrc_conn *c = conn_of(qp);

	(void)from;
	if (to == IBV_QPS_RTR) {
		const struct mrc_rsp_config config = rsp_config(c, qp->mtu);

		mrc_rsp_init(&c->rsp, &config, c->rsp_mem);
		mrc_reverse_init(
			&c->reverse, &c->evs, c->dev->set.reverse_silent, rnic_random(qp->rnic));
		mrc_join(c);
		mrc_find_hops(c, now);
		c->receives = true;
	} else if (to == IBV_QPS_RTS) {
		const struct mrc_req_config config = req_config(c);

		mrc_req_init(&c->req, &config, &c->evs, config.cc ? mrc_window_join(c) : NULL,
			c->req_mem);
		c->posted = ring_tail(&qp->sq);
		c->sends = true;
	}
	mrc_settle(c, now);
}

static void failed(struct rnic_qp *qp)
{
	struct mrc_conn *c = conn_of(qp);

	c->sends = c->receives = false;
	c->probe_ev = MRC_NO_EV;
	mrc_leave(c);
	transport_schedule(qp, UINT64_MAX);
}

static void reset(struct rnic_qp *qp)
{
	struct mrc_conn *c = conn_of(qp);

	mrc_leave(c);
	free(c->spare);
	free(c->req_mem);
	free(c->rsp_mem);
	*c = (struct mrc_conn){.qp = qp,
		.dev = dev_of(qp->rnic),
		.probe_ev = MRC_NO_EV,
		.hops_at = UINT64_MAX,
		.attr = rnic_mrc_defaults()};
}

static void query(const struct rnic_qp *qp, struct ibv_qp_attr *attr)
{
	const struct mrc_conn *c = conn_of(qp);

	if (c->receives)
		attr->rq_psn = psn_add(c->rsp.rcv.cack, 1);
	if (c->sends)
		attr->sq_psn = c->req.snd.next;
}

static void stats(const struct rnic_qp *qp, struct rnic_qp_stats *s)
{
	const struct mrc_conn *c = conn_of(qp);

	s->epsn = c->rsp_mem ? psn_add(c->rsp.rcv.cack, 1) : 0;
	s->sq_una = psn_add(c->req.snd.acked, 1);
	s->sq_next = c->req.snd.next;
	s->retransmits = c->req.again;
}

static void timer(struct rnic_qp *qp, uint64_t now)
{
	struct mrc_conn *c = conn_of(qp);

	if (c->sends && now >= mrc_req_deadline(&c->req)) {
		const uint8_t tries = c->req.snd.tries;

		mrc_req_timer(&c->req, now);
		if (c->req.snd.tries > tries)
			rnic_inc(qp->rnic, RNIC_C_TIMEOUTS);
	}
	if (c->receives) {
		int ev;

		mrc_rsp_timer(&c->rsp, now);
		if (mrc_reverse_probe(&c->reverse, &c->evs, c->evs.up, now, &ev, &c->probe_id))
			c->probe_ev = ev;
	}
	if (c->peer != NULL && now >= c->hops_at)
		mrc_find_hops(c, now);
	mrc_status_due(c, now);
	qp_ready(qp);
	mrc_settle(c, now);
}

/* ---- attributes ---- */

static unsigned mask_until(enum ibv_qp_state state)
{
	const unsigned always = RNIC_MRC_TIMEOUT | RNIC_MRC_RETRY;
	const unsigned rts = RNIC_MRC_CC | RNIC_MRC_MPR | RNIC_MRC_MAX_WIMM;
	const unsigned rtr =
		RNIC_MRC_PATHS | RNIC_MRC_MPR_DEST | RNIC_MRC_MAX_WIMM_DEST | RNIC_MRC_CAPS;

	switch (state) {
	case IBV_QPS_RESET:
	case IBV_QPS_INIT:
		return always | rts | rtr;
	case IBV_QPS_RTR:
		return always | rts;
	case IBV_QPS_RTS:
		return always;
	default:
		return 0;
	}
}

static bool values_ok(const struct rnic_mrc_attr *a, unsigned mask, unsigned n_ports)
{
	if ((mask & RNIC_MRC_PATHS) && a->paths != NULL &&
		mrc_paths_check(a->paths, n_ports, false) < 0)
		return false;
	return rnic_mrc_within_limits(a, mask);
}

static void take_values(struct rnic_mrc_attr *to, const struct rnic_mrc_attr *a, unsigned mask)
{
	if (mask & RNIC_MRC_PATHS)
		to->paths = a->paths;
	if (mask & RNIC_MRC_CC)
		to->cc = a->cc;
	if (mask & RNIC_MRC_MPR)
		to->mpr = a->mpr;
	if (mask & RNIC_MRC_MPR_DEST)
		to->mpr_dest = a->mpr_dest;
	if (mask & RNIC_MRC_MAX_WIMM)
		to->max_wimm = a->max_wimm;
	if (mask & RNIC_MRC_MAX_WIMM_DEST)
		to->max_wimm_dest = a->max_wimm_dest;
	if (mask & RNIC_MRC_TIMEOUT)
		to->timeout = a->timeout;
	if (mask & RNIC_MRC_RETRY) {
		to->linear_cnt = a->linear_cnt;
		to->exp_cnt = a->exp_cnt;
	}
	if (mask & RNIC_MRC_CAPS)
		to->caps = a->caps;
}

static bool is_mrc(const struct rnic_qp *qp)
{
	return qp->ops == &rnic_mrc;
}

int rnic_mrc_set(struct rnic_qp *qp, const struct rnic_mrc_attr *attr, unsigned mask)
{
	struct mrc_conn *c = conn_of(qp);

	if (!is_mrc(qp) || (mask & ~mask_until(qp_state(qp))) ||
		!values_ok(attr, mask, c->dev->c.n_ports))
		return -EINVAL;
	take_values(&c->attr, attr, mask);
	if ((mask & (RNIC_MRC_TIMEOUT | RNIC_MRC_RETRY)) && c->sends)
		mrc_snd_patience(&c->req.snd, c->attr.timeout, c->attr.linear_cnt, c->attr.exp_cnt);
	return 0;
}

int rnic_mrc_get(const struct rnic_qp *qp, struct rnic_mrc_attr *attr)
{
	if (!is_mrc(qp))
		return -EINVAL;
	*attr = conn_of(qp)->attr;
	return 0;
}

static bool has_ev(const struct rnic_qp *qp, unsigned index)
{
	return is_mrc(qp) && conn_of(qp)->paths != NULL && index < conn_of(qp)->evs.n;
}

int rnic_mrc_ev_set(struct rnic_qp *qp, unsigned index, enum mrc_ev_state state)
{
	struct mrc_conn *c = conn_of(qp);

	if (!has_ev(qp, index) || (state != MRC_EV_GOOD && state != MRC_EV_DENIED))
		return -EINVAL;
	if (state == MRC_EV_DENIED)
		mrc_evset_deny(&c->evs, (int)index);
	else
		mrc_evset_allow(&c->evs, (int)index);
	qp_ready(qp);
	return 0;
}

int rnic_mrc_ev_get(const struct rnic_qp *qp, unsigned index, enum mrc_ev_state *state)
{
	if (!has_ev(qp, index))
		return -EINVAL;
	*state = (enum mrc_ev_state)conn_of(qp)->evs.ev[index].state;
	if (*state == MRC_EV_SKIP)
		*state = MRC_EV_GOOD;
	return 0;
}

const struct rnic_mrc_paths *rnic_mrc_paths_of(const struct rnic_qp *qp)
{
	return is_mrc(qp) ? conn_of(qp)->paths : NULL;
}

size_t rnic_mrc_bytes(const struct rnic_qp *qp)
{
	const struct mrc_conn *c = conn_of(qp);

	if (!is_mrc(qp))
		return 0;
	return sizeof(*c) + (c->req_mem ? c->req_bytes : 0) + (c->rsp_mem ? c->rsp_bytes : 0);
}

/* ---- the transport ---- */

enum {
	NO_EFFECT = IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		    IBV_QP_RNR_RETRY | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
		    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_CUR_STATE,
	TO_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
};

static const struct transition transitions[QP_N_STATES][QP_N_STATES] = {
	[IBV_QPS_RESET] = {[IBV_QPS_RESET] = {true},
		[IBV_QPS_INIT] = {true, IBV_QP_ACCESS_FLAGS, NO_EFFECT},
		[IBV_QPS_ERR] = {true}},
	[IBV_QPS_INIT] = {[IBV_QPS_RESET] = {true},
		[IBV_QPS_INIT] = {true, 0, IBV_QP_ACCESS_FLAGS | NO_EFFECT},
		[IBV_QPS_RTR] = {true, TO_RTR, IBV_QP_ACCESS_FLAGS | NO_EFFECT},
		[IBV_QPS_ERR] = {true}},
	[IBV_QPS_RTR] = {[IBV_QPS_RESET] = {true},
		[IBV_QPS_RTS] = {true, IBV_QP_SQ_PSN, IBV_QP_ACCESS_FLAGS | NO_EFFECT},
		[IBV_QPS_ERR] = {true}},
	[IBV_QPS_RTS] = {[IBV_QPS_RESET] = {true},
		[IBV_QPS_RTS] = {true, 0, IBV_QP_ACCESS_FLAGS | NO_EFFECT},
		[IBV_QPS_ERR] = {true}},
	[IBV_QPS_ERR] = {[IBV_QPS_RESET] = {true}, [IBV_QPS_ERR] = {true}},
};

static const struct transport_counter counters[] = {
	{"placed", offsetof(struct mrc_conn, placed)},
	{"placed_before", offsetof(struct mrc_conn, again)},
	{"words", offsetof(struct mrc_conn, words)},
	{"ignored", offsetof(struct mrc_conn, req.ignored)},
	{"unknown_evs", offsetof(struct mrc_conn, req.unknown_evs)},
	{"retransmits", offsetof(struct mrc_conn, req.again)},
	{"lost", offsetof(struct mrc_conn, req.lost)},
	{"trimmed", offsetof(struct mrc_conn, req.trimmed)},
	{"probes", offsetof(struct mrc_conn, req.probes)},
	{"refused", offsetof(struct mrc_conn, rsp.refused)},
	{"beyond", offsetof(struct mrc_conn, rsp.beyond)},
	{"came_trimmed", offsetof(struct mrc_conn, rsp.trimmed)},
	{"words_lost", offsetof(struct mrc_conn, rsp.lost_sayings)},
	{"words_pathless", offsetof(struct mrc_conn, pathless)},
	{NULL, 0},
};

const struct transport_ops rnic_mrc = {
	.name = "mrc",
	.type = IBV_QPT_RC,
	.connected = true,
	.several_ports = true,
	.own_codec = true,
	.opcodes = MRC_OPCODES,
	.state_size = sizeof(struct mrc_conn),
	.send_ops = 1 << IBV_WR_RDMA_WRITE | 1 << IBV_WR_RDMA_WRITE_WITH_IMM,
	.transitions = transitions,
	.counters = counters,
	.check = check,
	.check_attr = check_attr,
	.query = query,
	.stats = stats,
	.enter = enter,
	.fail = failed,
	.reset = reset,
	.resolve = mrc_resolve,
	.port = mrc_port,
	.rx = mrc_rx,
	.place = mrc_place,
	.rx_placed = mrc_rx_placed,
	.tx_control = mrc_tx_control,
	.tx = mrc_tx,
	.timer = timer,
	.look = mrc_look,
	.rx_device = mrc_rx_device,
	.close = mrc_close,
};
