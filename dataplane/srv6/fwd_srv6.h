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
	uint64_t hits;      /* packets; of all workers */
	uint64_t inherited; /* of the same row in objects before this one; control's */
	struct wire_ip ip;  /* the prefix, with what.bits: names the row */
};

/* 0, or -EINVAL and why. */
int fwd_sid_from_row(const struct table_entry *row, struct fwd_sid *sid, const char **why);
/* A route's action "encap". */
int fwd_encap_from_row(const struct table_entry *row, struct srv6_encap *encap, const char **why);

/* The rows of `to` that `from` had as well go on counting where it stopped. No worker may see
 * `from` any more. Linear if their order is about the same. */
void fwd_sids_inherit(struct fwd_sid *to, unsigned n_to, const struct fwd_sid *from, unsigned n);

#endif
