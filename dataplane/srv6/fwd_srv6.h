/* SPDX-License-Identifier: BSD-3-Clause */
/* What the packet path needs of the rows of local_sid and of routes into tunnels; parts of struct
 * fwd (dataplane/fwd.h). */
#ifndef DATAPLANE_SRV6_FWD_SRV6_H
#define DATAPLANE_SRV6_FWD_SRV6_H

#include "dataplane/row_hits.h"
#include "dataplane/table.h"
#include "lib/srv6/encap.h"
#include "lib/srv6/endpoint.h"

/* Of one packet: more of the switch's own segments and tunnels in a row are a loop, or an attempt
 * to make one packet cost as much as many. */
enum { FWD_SRV6_MAX_PASSES = 8 };

struct fwd_sid {
	struct srv6_sid what;
	uint16_t adj;      /* uA: index of the neighbour's */
	struct wire_ip ip; /* the prefix, with what.bits: names the row */
};

struct fwd_sids {
	unsigned n;
	struct fwd_sid *row; /* in the order of the rows of local_sid */
	struct row_hits hits;
};

/* n rows of zeros, for so many workers. False: no memory; fwd_sids_free in either case. */
bool fwd_sids_alloc(struct fwd_sids *sids, unsigned n, unsigned n_workers);
void fwd_sids_free(struct fwd_sids *sids);

/* 0, or -EINVAL and why. */
int fwd_sid_from_row(const struct table_entry *row, struct fwd_sid *sid, const char **why);
/* A route's action "encap". */
int fwd_encap_from_row(const struct table_entry *row, struct srv6_encap *encap, const char **why);

/* As row_hits_inherit. */
void fwd_sids_inherit(struct fwd_sids *to, const struct fwd_sids *from);

#endif
