/* SPDX-License-Identifier: BSD-3-Clause */
/* What the packet path needs to know about multicast groups: an immutable object made from the rows
 * of mcast_group and mcast_sender, swapped in with the other tables (RCU). Only the counters are
 * written, by each worker its own. */
#ifndef DATAPLANE_MCAST_FWD_H
#define DATAPLANE_MCAST_FWD_H

#include <rte_hash.h>

#include "dataplane/fwd.h"
#include "dataplane/mcast/membership.h"

/* A port that a group's packets leave by. */
struct mcast_out {
	uint16_t port; /* DPDK port id */
	uint16_t vlan; /* 0: untagged */
	uint16_t mtu;
	uint8_t smac[6];
};

struct mcast_group {
	struct wire_ip ip;
	uint32_t out, n_out; /* in struct mcast_fwd's out */
	bool named;          /* has senders, and no others are heard */
};

/* Also the key of their hash: no padding. */
struct mcast_sender_key {
	struct wire_ip group, src;
};

struct mcast_fwd {
	unsigned n_groups, n_outs, n_rows, n_senders, n_workers;
	struct rte_hash *by_ip; /* group -> index in group */
	struct rte_hash
		*by_sender; /* struct mcast_sender_key -> index in sender_port; NULL: none */
	struct mcast_group *group;
	struct mcast_out *out;           /* by group, then port */
	uint16_t *sender_port;           /* in the order of the rows of mcast_sender */
	struct wire_ip *out_group;       /* whose out[i] is */
	uint32_t *row_out;               /* of mcast_group -> index in out */
	struct mcast_sender_key *sender; /* as sender_port */
	/* Copies sent by out[i], packets of sender[i] behind them: of each worker, in lines of its
	 * own; and of the same rows in objects before this one, which is control's. */
	unsigned n_counts;
	uint64_t *count, *inherited;
};

struct mcast_sources {
	const struct table_rows *groups, *senders;
	const struct membership *learnt; /* may be NULL */
	const struct port *ports;        /* by learnt's index */
};

/* *mcast is NULL if there is nothing. A learnt member at a port where the group has a row is the
 * row's. -EINVAL if a row makes no sense (err->msg says which),
 * -ENOMEM. */
int mcast_fwd_create(const struct mcast_sources *from, fwd_port_fn port, void *arg,
	unsigned n_workers, struct mcast_fwd **mcast, struct table_error *err);
void mcast_fwd_destroy(struct mcast_fwd *mcast);

/* The rows of `to` that `from` had as well go on counting where it stopped. No worker may see
 * `from` any more. Both may be NULL. */
void mcast_fwd_inherit(struct mcast_fwd *to, const struct mcast_fwd *from);

/* Hits of a row of FWD_MCAST_GROUP or FWD_MCAST_SENDER. False: there is no such row. */
bool mcast_fwd_hits(const struct mcast_fwd *mcast, unsigned table, unsigned row, uint64_t *hits);

/* NULL: not registered. */
static inline const struct mcast_group *mcast_find(
	const struct mcast_fwd *mcast, const struct wire_ip *ip)
{
	const int i = mcast != NULL ? rte_hash_lookup(mcast->by_ip, ip) : -1;

	return i < 0 ? NULL : &mcast->group[i];
}

/* What IGMP and MLD look like from outside; the control plane looks into it. */
static inline bool mcast_is_report(const struct wire_pkt *pkt)
{
	enum { IGMP = 2, HOP_BY_HOP = 0 };

	return pkt->ttl <= 1 && pkt->ip_proto == (pkt->ip_ver == 4 ? IGMP : HOP_BY_HOP);
}

/* Whether the group hears src, from this port. Counts it. */
static inline bool mcast_hears(const struct mcast_fwd *mcast, const struct mcast_group *g,
	const struct wire_ip *src, uint16_t port, unsigned worker)
{
	const struct mcast_sender_key key = {g->ip, *src};
	int i;

	if (!g->named)
		return true;
	i = rte_hash_lookup(mcast->by_sender, &key);
	if (i < 0 || mcast->sender_port[i] != port)
		return false;
	mcast->count[(size_t)worker * mcast->n_counts + mcast->n_outs + (unsigned)i]++;
	return true;
}

static inline void mcast_count_copy(const struct mcast_fwd *mcast, unsigned out, unsigned worker)
{
	mcast->count[(size_t)worker * mcast->n_counts + out]++;
}

#endif
