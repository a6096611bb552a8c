/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/srv6/fwd_srv6.h"

#include <errno.h>

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

void fwd_sids_inherit(struct fwd_sid *to, unsigned n_to, const struct fwd_sid *from, unsigned n)
{
	unsigned at = 0;

	for (unsigned i = 0; i < n_to && n > 0; i++)
		for (unsigned k = 0; k < n; k++, at = at + 1 == n ? 0 : at + 1) {
			if (to[i].what.bits != from[at].what.bits ||
				!wire_ip_eq(&to[i].ip, &from[at].ip))
				continue;
			to[i].inherited += from[at].inherited + from[at].hits;
			at = at + 1 == n ? 0 : at + 1;
			break;
		}
}
