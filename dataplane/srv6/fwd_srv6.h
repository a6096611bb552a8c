/* SPDX-License-Identifier: BSD-3-Clause */
/* What the packet path needs of the rows of local_sid and of routes into tunnels; parts of struct
 * fwd (dataplane/fwd.h). */
#ifndef DATAPLANE_SRV6_FWD_SRV6_H
#define DATAPLANE_SRV6_FWD_SRV6_H

#include "dataplane/table.h"
#include "lib/srv6/encap.h"
#include "lib/srv6/endpoint.h"

/* Of one packet: more of the switch's own segments and tunnels in a row are a loop, or an attempt
 * to make one packet cost as much as many. */
enum { FWD_SRV6_MAX_PASSES = 8 };

struct fwd_sid {
	struct srv6_sid what;
	uint16_t adj;       /* uA: index of the neighbour's */
	uint64_t inherited; /* hits of the same row in objects before this one; control's */
	struct wire_ip ip;  /* the prefix, with what.bits: names the row */
};

struct fwd_sids {
	unsigned n, n_workers, stride;
	struct fwd_sid *row; /* in the order of the rows of local_sid */
	uint64_t *hits;      /* packets: of each worker, in lines of its own */
};

/* n rows of zeros, for so many workers. False: no memory; fwd_sids_free in either case. */
bool fwd_sids_alloc(struct fwd_sids *sids, unsigned n, unsigned n_workers);
void fwd_sids_free(struct fwd_sids *sids);

/* A worker's counters, by row. */
static inline uint64_t *fwd_sids_of(const struct fwd_sids *sids, unsigned worker)
{
	return sids->hits + (size_t)worker * sids->stride;
}

/* Packets that row i has matched, here and in objects before. */
uint64_t fwd_sid_hits(const struct fwd_sids *sids, unsigned i);

/* 0, or -EINVAL and why. */
int fwd_sid_from_row(const struct table_entry *row, struct fwd_sid *sid, const char **why);
/* A route's action "encap". */
int fwd_encap_from_row(const struct table_entry *row, struct srv6_encap *encap, const char **why);

/* The rows of `to` that `from` had as well go on counting where it stopped. No worker may see
 * `from` any more. Linear if their order is about the same. */
void fwd_sids_inherit(struct fwd_sids *to, const struct fwd_sids *from);

#endif
