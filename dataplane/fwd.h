/* SPDX-License-Identifier: BSD-3-Clause */
/* What the packet path needs to know about addresses: an immutable object made from the tables'
 * content and swapped in as a whole (RCU). Local addresses and neighbours are host routes, so that
 * one longest-prefix lookup decides everything about a packet that is to be forwarded. */
#ifndef DATAPLANE_FWD_H
#define DATAPLANE_FWD_H

#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_hash.h>

#include "dataplane/table.h"
#include "lib/port/port.h"
#include "lib/wire/ip.h"

enum { FWD_FEW_LOCAL = 8 };

enum adj_kind { ADJ_NO_ROUTE, ADJ_LOCAL, ADJ_BLACKHOLE, ADJ_NO_NEIGH, ADJ_REWRITE };

struct adj {
	uint8_t kind;
	uint8_t smac[6], dmac[6];
	uint16_t port; /* DPDK port id */
	uint16_t mtu;  /* of the port */
};

struct fwd {
	unsigned n_local;
	struct wire_ip few[FWD_FEW_LOCAL];
	struct rte_hash *local; /* of all, if there are more than few */
	struct rte_fib *fib4;   /* address -> index in adj */
	struct rte_fib6 *fib6;
	unsigned n_adj;
	struct adj *adj; /* [kind] for the first kinds, then the neighbours */
};

/* Indices of the tables in the registry and in the rows below. */
enum { FWD_LOCAL_ADDR, FWD_NEIGH, FWD_ROUTE4, FWD_ROUTE6, FWD_N_TABLES };
extern const struct table_desc *const fwd_tables[FWD_N_TABLES];

/* Port by DPDK id, or NULL. */
typedef const struct port *(*fwd_port_fn)(void *arg, uint64_t id);

/* Builds one. -EINVAL if an entry makes no sense (err->msg says which), -ENOMEM. */
int fwd_create(const struct table_rows *tables, fwd_port_fn port, void *arg, struct fwd **fwd,
	struct table_error *err);
void fwd_destroy(struct fwd *fwd);

/* One address; never NULL. For the control plane and rare packets. */
const struct adj *fwd_lookup(const struct fwd *fwd, const struct wire_ip *ip);

static inline bool fwd_is_local(const struct fwd *fwd, const struct wire_ip *ip)
{
	if (fwd->local != NULL)
		return rte_hash_lookup(fwd->local, ip) >= 0;
	for (unsigned i = 0; i < fwd->n_local; i++)
		if (wire_ip_eq(&fwd->few[i], ip))
			return true;
	return false;
}

#endif
