/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours that are known, as the packet path's tables are made from them. */
#include <string.h>

#include "dataplane/l2/sw_neigh.h"

void sw_neigh_list(struct sw *sw, struct fwd_sources *from)
{
	struct sw_neigh *n = sw->neigh;

	if (n == NULL)
		return;
	n->n_list = 0;
	for (unsigned i = 0; i < NEIGH_MAX; i++) {
		const struct neigh_entry *e = &n->cache.entry[i];
		struct fwd_learnt *l = &n->list[n->n_list];

		if (e->state == NEIGH_FREE || !neigh_is_known(e))
			continue;
		*l = (struct fwd_learnt){
			.ip = e->ip, .port = sw->ports[e->port].id, .vlan = e->vlan};
		memcpy(l->mac, e->mac, sizeof(l->mac));
		n->list_of[n->n_list++] = (uint16_t)i;
	}
	from->learnt = n->list;
	from->n_learnt = n->n_list;
}

void sw_neigh_listed(struct sw *sw)
{
	struct sw_neigh *n = sw->neigh;

	if (n == NULL)
		return;
	n->cache.changed = false;
	for (unsigned i = 0; i < NEIGH_MAX; i++)
		n->cache.entry[i].adj = 0;
	for (unsigned i = 0; i < n->n_list; i++)
		n->cache.entry[n->list_of[i]].adj = n->list[i].adj;
}
