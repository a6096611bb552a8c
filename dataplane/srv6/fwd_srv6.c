/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/srv6/fwd_srv6.h"

#include <errno.h>
#include <stdlib.h>

enum { SID_MIN_BITS = 48, USID_PAIR_BITS = 64 };

/* Where the actions of local_sid (dataplane/tables.c) have these parameters. */
enum { PARAM_PSP, PARAM_DSCP = 0, UA_PARAM_NEXTHOP = 0, UA_PARAM_PSP };

int fwd_sid_from_row(const struct table_entry *row, struct fwd_sid *sid, const char **why)
{
	const struct table_value *key = &row->key[0];
	struct srv6_sid what = {.behaviour = (uint8_t)row->action, .bits = key->prefix};

	*why = "is multicast";
	if (key->ip.b[0] == 0xff)
		return -EINVAL;
	*why = "must have a length of 48 to 128";
	if (key->prefix < SID_MIN_BITS)
		return -EINVAL;
	*why = "must have a length of 48 (uSID) or 64 (two uSIDs)";
	switch (row->action) {
	case SRV6_UN:
	case SRV6_UA:
		if (key->prefix != SID_MIN_BITS && key->prefix != USID_PAIR_BITS)
			return -EINVAL;
		what.psp = row->param[row->action == SRV6_UA ? UA_PARAM_PSP : PARAM_PSP].u != 0;
		break;
	case SRV6_END:
		what.psp = row->param[PARAM_PSP].u != 0;
		break;
	default:
		what.outer_dscp = row->param[PARAM_DSCP].u != 0;
		break;
	}
	*sid = (struct fwd_sid){.what = what, .ip = key->ip};
	return 0;
}

int fwd_encap_from_row(const struct table_entry *row, struct srv6_encap *encap, const char **why)
{
	*encap = (struct srv6_encap){.src = row->param[0].ip};
	for (unsigned i = 1; i <= SRV6_MAX_SEGMENTS; i++) {
		const struct wire_ip *ip = &row->param[i].ip;

		if (wire_ip_is_zero(ip))
			continue;
		*why = "data.sid1 to sid4 must be given without a gap";
		if (encap->n != i - 1)
			return -EINVAL;
		*why = "data.sid1 to sid4 must not be multicast";
		if (ip->b[0] == 0xff)
			return -EINVAL;
		encap->segment[encap->n++] = *ip;
	}
	*why = "data.src and data.sid1 must be addresses";
	return encap->n == 0 || wire_ip_is_zero(&encap->src) || encap->src.b[0] == 0xff ? -EINVAL
											: 0;
}

bool fwd_sids_alloc(struct fwd_sids *sids, unsigned n, unsigned n_workers)
{
	*sids = (struct fwd_sids){.row = calloc(n + 1, sizeof(*sids->row))};
	return row_hits_alloc(&sids->hits, n, n_workers) && sids->row != NULL;
}

void fwd_sids_free(struct fwd_sids *sids)
{
	free(sids->row);
	row_hits_free(&sids->hits);
}

struct pair {
	const struct fwd_sids *to, *from;
};

static bool same(const void *arg, unsigned i, unsigned k)
{
	const struct pair *p = arg;
	const struct fwd_sid *a = &p->to->row[i], *b = &p->from->row[k];

	return a->what.bits == b->what.bits && wire_ip_eq(&a->ip, &b->ip);
}

void fwd_sids_inherit(struct fwd_sids *to, const struct fwd_sids *from)
{
	const struct pair pair = {to, from};

	row_hits_inherit(&to->hits, &from->hits, same, &pair);
}
