/* SPDX-License-Identifier: BSD-3-Clause */
/* What the packet path needs to know about addresses: an immutable object made from the tables'
 * content and swapped in as a whole (RCU). Local addresses and neighbours are host routes, so that
 * one longest-prefix lookup decides everything about a packet that is to be forwarded. */
#ifndef DATAPLANE_FWD_H
#define DATAPLANE_FWD_H

#include <rte_fib.h>
#include <rte_hash.h>

#include "dataplane/match/prefix6.h"
#include "dataplane/srv6/fwd_srv6.h"
#include "dataplane/table.h"
#include "lib/port/port.h"
#include "lib/wire/frame.h"

enum { FWD_FEW_LOCAL = 8, FWD_MAX_NEXTHOPS = 8, FWD_MAX_GLEANS = 1024 };

enum adj_kind {
	ADJ_NO_ROUTE,
	ADJ_LOCAL,
	ADJ_BLACKHOLE,
	ADJ_NO_NEIGH,
	ADJ_REWRITE, /* a neighbour */
	ADJ_SID,     /* one of our own SIDs */
	ADJ_ENCAP,   /* into a tunnel */
	ADJ_ECMP,    /* one of several neighbours, or none of them is known */
	ADJ_GLEAN,   /* a neighbour that is not known, but may be asked for */
};

struct adj {
	uint8_t dmac[6], smac[6]; /* as a frame begins */
	uint8_t kind;
	bool learnt;   /* not a row of neigh */
	uint16_t port; /* DPDK port id */
	uint16_t mtu;  /* of the port */
	uint16_t vlan; /* 0: untagged */
	uint16_t at;   /* SID, ENCAP, ECMP, GLEAN: index in sids, encap, ecmp or glean below */
};

/* Who is to be asked for: the packet's destination, or this next hop. */
struct fwd_glean {
	struct wire_ip nexthop; /* zero: the destination */
	uint16_t adj;
};

/* A neighbour that is not a row of neigh. */
struct fwd_learnt {
	struct wire_ip ip;
	uint8_t mac[6];
	uint16_t port; /* DPDK port id */
	uint16_t vlan;
	uint16_t
		adj; /* of fwd_create: its index, 0: it has none, for no direct route leads there */
};

/* Neighbours among which flows are dealt out: those that are known, and of these those whose port
 * has a link, if one has. */
struct fwd_ecmp {
	uint16_t n;                     /* at least 1 */
	uint32_t key[FWD_MAX_NEXTHOPS]; /* of their addresses: the same whatever else changes */
	uint16_t adj[FWD_MAX_NEXTHOPS];
};

/* Bit per VLAN. */
struct fwd_vlans {
	uint64_t bit[4096 / 64];
};

struct fwd {
	unsigned n_local;
	struct wire_ip few[FWD_FEW_LOCAL];
	struct wire_ip own[2];  /* the first IPv6 address, the first IPv4 address; zero: none */
	struct rte_hash *local; /* of all, if there are more than few */
	uint64_t local_ends[256 / 64]; /* bit per last byte of theirs */
	struct rte_fib *fib4;          /* address -> index in adj */
	struct prefix6 *fib6;
	unsigned n_nowhere; /* routes whose next hops are no neighbours, nor can be asked for */
	unsigned n_adj;
	struct adj *adj;         /* [kind] for the first kinds, neighbours, all others */
	struct wire_ip *neigh;   /* whose adj[i] is */
	struct fwd_vlans *vlans; /* by DPDK port id: those that its neighbours are in */
	unsigned n_encap, n_ecmp, n_glean;
	uint32_t ecmp_seed; /* so that switches choose apart from one another */
	struct fwd_sids sids;
	struct srv6_encap *encap;
	struct fwd_ecmp *ecmp;
	struct fwd_glean *glean; /* [0]: the destination of whatever packet it is */
	/* By adjacency: something has been sent to this neighbour that is learnt. Set by workers,
	 * cleared by control. */
	uint8_t *used;
};

/* Indices of the tables in the registry and in the rows below. */
enum {
	FWD_LOCAL_ADDR,
	FWD_NEIGH,
	FWD_ROUTE4,
	FWD_ROUTE6,
	FWD_LOCAL_SID,
	FWD_MCAST_GROUP, /* these are of mcast/mcast_fwd.h */
	FWD_MCAST_SENDER,
	FWD_MAC, /* l2/mac_table.h */
	FWD_ACL, /* acl/acl.h */
	FWD_N_TABLES
};
extern const struct table_desc *const fwd_tables[FWD_N_TABLES];

/* Port by DPDK id, or NULL. */
typedef const struct port *(*fwd_port_fn)(void *arg, uint64_t id);

/* What it is made from. */
struct fwd_sources {
	const struct table_rows *tables;
	fwd_port_fn port;
	bool (*learns)(void *arg, uint16_t port); /* neighbours at this port may be asked for */
	void *arg;
	struct fwd_learnt *learnt;
	unsigned n_learnt, n_workers;
};

/* Builds one. -EINVAL if an entry makes no sense (err->msg says which), -ENOMEM. A row of neigh
 * goes before what is learnt of the same address. */
int fwd_create(const struct fwd_sources *from, struct fwd **fwd, struct table_error *err);
void fwd_destroy(struct fwd *fwd);

/* One address; never NULL, never ADJ_ECMP: the first of several next hops. For the control plane
 * and rare packets. */
const struct adj *fwd_lookup(const struct fwd *fwd, const struct wire_ip *ip);

/* Whether adj is the entry of this neighbour, and not of one that it is reached through. */
static inline bool fwd_is_neigh(
	const struct fwd *fwd, const struct adj *adj, const struct wire_ip *ip)
{
	return adj->kind == ADJ_REWRITE && wire_ip_eq(&fwd->neigh[adj - fwd->adj], ip);
}

/* Something is being sent to this neighbour. */
static inline void fwd_note_used(const struct fwd *fwd, uint16_t adj)
{
	if (fwd->adj[adj].learnt && fwd->used[adj] == 0)
		fwd->used[adj] = 1;
}

/* Whether packets with this TCI are routed from a port: untagged ones, and those of its neighbours'
 * VLANs. */
static inline bool fwd_vlan_ok(const struct fwd *fwd, uint16_t port, uint16_t tci)
{
	const unsigned id = tci & WIRE_VLAN_ID;

	return id == 0 || (fwd->vlans[port].bit[id / 64] >> id % 64 & 1);
}

static inline bool fwd_is_local(const struct fwd *fwd, const struct wire_ip *ip)
{
	if (!(fwd->local_ends[ip->b[15] / 64] >> ip->b[15] % 64 & 1))
		return false;
	if (fwd->local != NULL)
		return rte_hash_lookup(fwd->local, ip) >= 0;
	for (unsigned i = 0; i < fwd->n_local; i++)
		if (wire_ip_eq(&fwd->few[i], ip))
			return true;
	return false;
}

#endif
