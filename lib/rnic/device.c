/* SPDX-License-Identifier: BSD-3-Clause */
/* The device: what it is made of, its addresses, capabilities and counters, its timers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/ah.h"
#include "lib/rnic/cq.h"
#include "lib/rnic/cwnd.h"
#include "lib/rnic/dcqcn.h"
#include "lib/rnic/device.h"
#include "lib/rnic/lldp.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/neigh.h"
#include "lib/rnic/srq.h"
#include "lib/rnic/transport.h"
#include "lib/rnic/worker.h"
#include "lib/rnic/wqe.h"
#include "lib/wire/random.h"

enum {
	WINDOW_DEFAULT = 512, /* packets in flight per QP */
	MAX_OBJECTS = 1 << 16,
	MAX_MR = 1 << 20, /* leaves 4 random bits above a key's index, and 8 below */
	MAX_WINDOW = 1 << 16,
};

struct name {
	const char *name, *text;
};

static const struct name drop_names[] = {
#define X(sym, name, text) [RNIC_DROP_##sym] = {name, text},
	RNIC_DROPS(X)
#undef X
#define X(sym, name, text) [RNIC_DROP_MRC_##sym] = {name, text},
		MRC_DROPS(X)
#undef X
#define X(sym, name, text) [RNIC_DROP_##sym] = {name, text},
			WIRE_LLDP_ERRORS(X)
#undef X
};

static const struct name counter_names[] = {
#define X(sym, name, text) [RNIC_C_##sym] = {name, text},
	RNIC_COUNTERS(X)
#undef X
};

const char *rnic_drop_name(unsigned drop)
{
	return drop < WIRE_N_DROPS ? wire_drop_name((enum wire_drop)drop) : drop_names[drop].name;
}

const char *rnic_drop_text(unsigned drop)
{
	return drop < WIRE_N_DROPS ? wire_drop_text((enum wire_drop)drop) : drop_names[drop].text;
}

const char *rnic_counter_name(enum rnic_counter c)
{
	return counter_names[c].name;
}

uint64_t rnic_count(const struct rnic *rnic, enum rnic_counter c)
{
	return rnic->count[c] + workers_count(rnic, c);
}

uint64_t rnic_drop_count(const struct rnic *rnic, unsigned drop)
{
	return rnic->drop[drop] + workers_drop(rnic, drop);
}

uint64_t rnic_random(struct rnic *rnic)
{
	return wire_random(&rnic->random);
}

/* ---- creation ---- */

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
	return value != 0 ? value : otherwise;
}

static uint32_t bits_for(uint32_t n)
{
	uint32_t bits = 0;

	while ((UINT64_C(1) << bits) < n)
		bits++;
	return bits;
}

static int set_sizes(struct rnic *rnic, const struct rnic_config *config)
{
	uint32_t limit = or_default(config->qpn_limit, 1 << 24);

	rnic->max_qp = or_default(config->max_qp, 1024);
	rnic->max_cq = or_default(config->max_cq, 1024);
	rnic->max_mr = or_default(config->max_mr, 1024);
	rnic->max_pd = or_default(config->max_pd, 1024);
	rnic->window = or_default(config->window, WINDOW_DEFAULT);
	if (config->quantum > MAX_QUANTUM)
		return -EINVAL;
	rnic->quantum = (uint8_t)or_default(config->quantum, QUANTUM);
	if (rnic->max_qp > MAX_OBJECTS || rnic->max_cq > MAX_OBJECTS ||
		rnic->max_pd > MAX_OBJECTS || rnic->max_mr > MAX_MR || rnic->window > MAX_WINDOW)
		return -EINVAL;
	rnic->qp_bits = bits_for(rnic->max_qp + 3);
	rnic->mr_bits = bits_for(rnic->max_mr);
	rnic->mr_changes = 1;
	rnic->qp_generations = limit >> rnic->qp_bits;
	if (limit > 1 << 24 || rnic->qp_generations == 0)
		return -EINVAL;
	rnic->n_bell = (rnic->max_qp + 63) / 64;
	rnic->n_bell_sum = (rnic->n_bell + 63) / 64;
	return 0;
}

static int set_congestion(struct rnic *rnic, const struct rnic_congestion *c)
{
	if (c->cnp_dscp > 63 || c->cnp_us > 1000000 || c->window_bytes > CWND_MAX)
		return -EINVAL;
	rnic->cnp_react = !c->no_reaction;
	rnic->cnp_notify = !c->no_notification;
	rnic->ect = c->ect;
	rnic->window_bytes = c->window_bytes;
	rnic->cnp_tos = (uint8_t)(or_default(c->cnp_dscp, 48) << 2);
	rnic->cnp_ns = UINT64_C(1000) * or_default(c->cnp_us, 50);
	return dcqcn_params_init(&rnic->dcqcn, c);
}

static int alloc_tables(struct rnic *rnic)
{
	rnic->qp = calloc(rnic->max_qp, sizeof(*rnic->qp));
	rnic->qp_generation = calloc(rnic->max_qp, sizeof(*rnic->qp_generation));
	rnic->qp_free = calloc(rnic->max_qp, sizeof(*rnic->qp_free));
	rnic->mr = calloc(UINT64_C(1) << rnic->mr_bits, sizeof(struct rnic_mr *));
	rnic->mr_free = calloc(rnic->max_mr, sizeof(*rnic->mr_free));
	rnic->bell = calloc(rnic->n_bell_sum * 64, sizeof(*rnic->bell));
	rnic->bell_sum = calloc(rnic->n_bell_sum, sizeof(*rnic->bell_sum));
	rnic->timers.slot =
		calloc((size_t)rnic->max_qp + N_NEIGH + RNIC_MAX_PORTS, sizeof(*rnic->timers.slot));
	if (rnic->qp == NULL || rnic->qp_generation == NULL || rnic->qp_free == NULL ||
		rnic->mr == NULL || rnic->mr_free == NULL || rnic->bell == NULL ||
		rnic->bell_sum == NULL || rnic->timers.slot == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < rnic->max_qp; i++) {
		rnic->qp_free[i] = i;
		rnic->qp_generation[i] = (uint32_t)(rnic_random(rnic) % rnic->qp_generations);
	}
	for (uint32_t i = 0; i < rnic->max_mr; i++)
		rnic->mr_free[i] = i;
	return 0;
}

int rnic_create(const struct rnic_config *config, struct rnic **rnic)
{
	struct rnic *new = calloc(1, sizeof(*new));
	int err;

	if (new == NULL)
		return -ENOMEM;
	new->events = config->events;
	new->random = config->seed;
	STAILQ_INIT(&new->gather.unshown);
	for (unsigned i = 0; i < N_LANES; i++) {
		TAILQ_INIT(&new->ready[i]);
		TAILQ_INIT(&new->controls[i]);
	}
	err = ports_init(new, config);
	if (err == 0)
		err = set_sizes(new, config);
	if (err == 0)
		err = set_congestion(new, &config->congestion);
	if (err == 0)
		err = alloc_tables(new);
	if (err == 0)
		err = ports_alloc(new);
	if (err == 0)
		err = neigh_init(new);
	if (err == 0)
		err = rnic_lldp_init(new, config);
	if (err == 0)
		err = workers_alloc(new, config->n_workers);
	if (err < 0) {
		rnic_destroy(new);
		return err;
	}
	new->ip_id = (uint16_t)rnic_random(new);
	*rnic = new;
	return 0;
}

static void free_regions(struct rnic *rnic, bool windows)
{
	for (uint32_t i = 0; rnic->mr != NULL && i < rnic->max_mr; i++)
		if (rnic->mr[i] != NULL && (rnic->mr[i]->type != 0) == windows)
			rnic_mr_dereg(rnic->mr[i]);
}

/* What its owner has left: each kind after all that may use it. */
static void free_objects(struct rnic *rnic)
{
	for (uint32_t i = 0; rnic->qp != NULL && i < rnic->max_qp; i++)
		if (rnic->qp[i] != NULL)
			rnic_qp_destroy(rnic->qp[i]);
	while (!LIST_EMPTY(&rnic->ahs))
		rnic_ah_destroy(LIST_FIRST(&rnic->ahs));
	while (!LIST_EMPTY(&rnic->srqs))
		rnic_srq_destroy(LIST_FIRST(&rnic->srqs));
	while (!LIST_EMPTY(&rnic->cqs))
		rnic_cq_destroy(LIST_FIRST(&rnic->cqs));
	free_regions(rnic, true);
	free_regions(rnic, false);
	while (!LIST_EMPTY(&rnic->pds))
		rnic_pd_free(LIST_FIRST(&rnic->pds));
}

int transport_own(struct rnic *rnic, const struct transport_ops *ops, void *kept)
{
	if (atomic_load(&rnic->owner) != NULL)
		return -EEXIST;
	rnic->kept = kept;
	atomic_fetch_or(&rnic->own_codecs, 1u << (ops->opcodes >> 5));
	atomic_store(&rnic->owner, ops);
	return 0;
}

void *transport_kept(const struct rnic *rnic, const struct transport_ops *ops)
{
	return atomic_load(&rnic->owner) == ops ? rnic->kept : NULL;
}

void rnic_destroy(struct rnic *rnic)
{
	const struct transport_ops *owner;

	if (rnic == NULL)
		return;
	free_objects(rnic);
	owner = atomic_load(&rnic->owner);
	if (owner != NULL)
		owner->close(rnic);
	ports_free(rnic);
	free(rnic->qp);
	free(rnic->qp_generation);
	free(rnic->qp_free);
	free(rnic->mr);
	free(rnic->mr_free);
	free(rnic->bell);
	free(rnic->bell_sum);
	free(rnic->timers.slot);
	workers_free(rnic);
	rnic_lldp_free(rnic);
	free(rnic->neigh);
	free(rnic->neigh_bucket);
	free(rnic);
}

/* ---- queries ---- */

void rnic_query_device(const struct rnic *rnic, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000,
		.max_qp = (int)rnic->max_qp,
		.max_qp_wr = MAX_WR,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_MEM_WINDOW |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B,
		.max_sge = RNIC_MAX_SGE,
		.max_sge_rd = RNIC_MAX_SGE,
		.max_cq = (int)rnic->max_cq,
		.max_cqe = MAX_CQE,
		.max_mr = (int)rnic->max_mr,
		.max_mw = (int)rnic->max_mr, /* together */
		.max_pd = (int)rnic->max_pd,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_qp_rd_atom = RNIC_MAX_RD_ATOMIC,
		.max_qp_init_rd_atom = RNIC_MAX_RD_ATOMIC,
		.max_res_rd_atom = (int)rnic->max_qp * RNIC_MAX_RD_ATOMIC,
		.max_ah = 1 << 16,
		.max_srq = (int)rnic->max_qp,
		.max_srq_wr = MAX_WR,
		.max_srq_sge = RNIC_MAX_SGE,
		.max_mcast_grp = MAX_MCAST,
		.max_mcast_qp_attach = MAX_MCAST,
		.max_total_mcast_qp_attach = MAX_MCAST,
		.max_pkeys = 1,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = (uint8_t)rnic->n_ports};
	strcpy(attr->fw_ver, INCLINE_VERSION);
	/* The interface identifier of the first port's link-local address is its EUI-64. */
	memcpy(&attr->node_guid, rnic->port[0].gid[0].b + 8, sizeof(attr->node_guid));
	attr->sys_image_guid = attr->node_guid;
}

/* ---- time ---- */

uint64_t rnic_deadline(const struct rnic *rnic)
{
	return rnic->timers.n > 0 ? rnic->timers.slot[0].key : UINT64_MAX;
}

static void expire(struct rnic *rnic, struct timer *timer, uint64_t now)
{
	char *at = (char *)timer;
	struct rnic_qp *qp;

	switch (timer->kind) {
	case TIMER_NEIGH:
		neigh_timer(rnic, (struct neigh *)(at - offsetof(struct neigh, timer)), now);
		break;
	case TIMER_LLDP:
		rnic_lldp_timer(rnic, timer, now);
		break;
	case TIMER_QP:
		qp = (struct rnic_qp *)(at - offsetof(struct rnic_qp, timer));
		qp->ops->timer(qp, now);
		break;
	}
}

void rnic_timer(struct rnic *rnic, uint64_t now)
{
	struct timer *timer;

	while ((timer = timer_expired(&rnic->timers, now)) != NULL)
		expire(rnic, timer, now);
	if (cq_unsettled(rnic))
		cq_settle(rnic);
}
