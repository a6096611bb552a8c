/* SPDX-License-Identifier: BSD-3-Clause */
/* What groups and rings need of the tables: their addresses stay the switch's, and the way to their
 * peers stays where it is. Whoever wants to take that away hears who needs it; a peer's new MAC
 * address is followed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/sw.h"

struct user {
	const char *kind, *name;
	struct table_error *err;
};

static int in_use(
	const struct user *u, const char *table, const struct wire_ip *ip, const char *why)
{
	char text[WIRE_IP_STRLEN];

	snprintf(u->err->msg, sizeof(u->err->msg), "%s %s: %s \"%s\" %s", table,
		wire_ip_format(ip, text, sizeof(text)), u->kind, u->name, why);
	return -EBUSY;
}

static int check_local(const struct user *u, const struct fwd *fwd, const struct wire_ip *ip)
{
	return fwd_is_local(fwd, ip) ? 0
				     : in_use(u, "local_addr", ip, "uses it: delete that first");
}

static int check_peer(const struct user *u, const struct fwd *fwd, const struct wire_ip *ip,
	uint16_t port, const uint16_t *vlan)
{
	const struct adj *adj = fwd_lookup(fwd, ip);

	if (adj->kind != ADJ_REWRITE)
		return in_use(u, "neigh", ip, "sends to it: delete that first");
	if (adj->port != port || (vlan != NULL && adj->vlan != (*vlan & WIRE_VLAN_ID)))
		return in_use(u, "neigh", ip, "sends to it at another port or VLAN");
	return 0;
}

static int check_group(struct sw *sw, unsigned slot, const struct fwd *fwd, struct table_error *err)
{
	struct inc_group *g = sw->groups->group[slot];
	const struct user u = {"group", g->name, err};
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < g->n_ep; i++) {
		const struct inc_ep *ep = inc_ep_at(g, i);

		rc = check_local(&u, fwd, &ep->flow.src);
		if (rc == 0 && (sw->slot[slot].by_neigh >> i & 1))
			rc = check_peer(&u, fwd, &ep->flow.dst, ep->port, &ep->flow.vlan);
	}
	return rc;
}

static int check_ring(struct nr_ring *r, const struct fwd *fwd, struct table_error *err)
{
	const struct user u = {"ring", r->name, err};
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < r->n_in; i++) {
		const struct nr_in *in = nr_in_at(r, i);

		rc = check_peer(&u, fwd, &in->key.src, in->port, NULL);
		if (rc == 0)
			rc = in->host ? check_peer(&u, fwd, &in->key.dst, in->back_port, NULL)
				      : check_local(&u, fwd, &in->flow.src);
	}
	if (rc == 0 && r->has_parent)
		rc = check_local(&u, fwd, &r->parent_flow.src);
	if (rc == 0 && r->has_parent)
		rc = check_peer(&u, fwd, &r->parent_flow.dst, r->parent_port, NULL);
	return rc;
}

int sw_tables_check(struct sw *sw, const struct fwd *fwd, struct table_error *err)
{
	int rc = 0;

	for (unsigned slot = 1; rc == 0 && sw->n_groups > 0 && slot < INC_GROUP_SLOTS; slot++)
		if (sw->groups->group[slot] != NULL)
			rc = check_group(sw, slot, fwd, err);
	for (unsigned i = 0; rc == 0 && i < NR_MAX_RINGS; i++)
		if (sw->ring[i] != NULL)
			rc = check_ring(sw->ring[i], fwd, err);
	return rc;
}

static bool ring_uses(const struct fwd *fwd, struct nr_ring *r, const struct adj *adj)
{
	for (unsigned i = 0; i < r->n_in; i++) {
		const struct nr_in *in = nr_in_at(r, i);

		if (fwd_lookup(fwd, &in->key.src) == adj ||
			(in->host && fwd_lookup(fwd, &in->key.dst) == adj))
			return true;
	}
	return r->has_parent && fwd_lookup(fwd, &r->parent_flow.dst) == adj;
}

static bool group_uses(
	const struct fwd *fwd, struct inc_group *g, uint64_t by_neigh, const struct adj *adj)
{
	for (; by_neigh != 0; by_neigh &= by_neigh - 1) {
		const unsigned i = (unsigned)__builtin_ctzll(by_neigh);

		if (fwd_lookup(fwd, &inc_ep_at(g, i)->flow.dst) == adj)
			return true;
	}
	return false;
}

bool sw_adj_in_use(struct sw *sw, const struct adj *adj)
{
	const struct fwd *fwd = sw->fwd;
	bool uses = false;

	for (unsigned slot = 1; !uses && sw->n_groups > 0 && slot < INC_GROUP_SLOTS; slot++)
		uses = sw->groups->group[slot] != NULL &&
		       group_uses(fwd, sw->groups->group[slot], sw->slot[slot].by_neigh, adj);
	for (unsigned i = 0; !uses && i < NR_MAX_RINGS; i++)
		uses = sw->ring[i] != NULL && ring_uses(fwd, sw->ring[i], adj);
	return uses;
}

void sw_groups_follow(struct sw *sw)
{
	const struct fwd *fwd = sw->fwd;

	for (unsigned slot = 1; sw->n_groups > 0 && slot < INC_GROUP_SLOTS; slot++) {
		struct inc_group *g = sw->groups->group[slot];
		uint64_t left = g != NULL ? sw->slot[slot].by_neigh : 0;

		for (; left != 0; left &= left - 1) {
			const unsigned i = (unsigned)__builtin_ctzll(left);

			inc_ep_set_dmac(g, i, fwd_lookup(fwd, &inc_ep_at(g, i)->flow.dst)->dmac);
		}
	}
}
