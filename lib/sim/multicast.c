/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: a tree of the switches between the members, and copies to its ports. */
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/priv.h"
#include "lib/wire/multicast.h"

struct sim_group {
	struct sim_group *next;
	struct wire_ip ip;
	bool *port[]; /* [switch][port]; NULL: the switch is not in the tree */
};

static struct sim_group *find(const struct sim *sim, const struct wire_ip *ip)
{
	struct sim_group *g = sim->groups;

	while (g && !wire_ip_eq(&g->ip, ip))
		g = g->next;
	return g;
}

static void group_free(const struct sim *sim, struct sim_group *g)
{
	for (unsigned i = 0; i < sim->topo->n_switches; i++)
		free(g->port[i]);
	free(g);
}

static int mark(const struct sim *sim, struct sim_group *g, unsigned sw, unsigned port)
{
	if (!g->port[sw])
		g->port[sw] = calloc(sim->sw[sw].n_ports, sizeof(bool));
	if (!g->port[sw])
		return -ENOMEM;
	g->port[sw][port] = true;
	return 0;
}

/* The member's port, and both ends of every link from there to the root: each switch goes the same
 * way there for all members, so this is a tree. */
static int add_member(const struct sim *sim, struct sim_group *g, unsigned host, unsigned root)
{
	unsigned sw = sim->topo->host_switch[host];
	int rc = mark(sim, g, sw, (unsigned)sim_port_to_node(sim, sw, host));

	while (rc == 0 && sw != root) {
		const int up = sim_port_to_node(sim, sw, sim->topo->n_hosts + root);
		const struct sim_peer *peer;

		if (up < 0)
			return -ENETUNREACH;
		peer = &sim->sw[sw].port[up];
		rc = mark(sim, g, sw, (unsigned)up);
		sw = peer->node - sim->topo->n_hosts;
		if (rc == 0)
			rc = mark(sim, g, sw, sim->link[peer->link].to_port);
	}
	return rc;
}

int sim_multicast_add(
	struct sim *sim, const struct wire_ip *ip, unsigned first_host, unsigned n, unsigned root)
{
	const size_t size = sizeof(struct sim_group) + sim->topo->n_switches * sizeof(bool *);
	struct sim_group *g;
	int rc = 0;

	if (!wire_is_multicast(ip) || root >= sim->topo->n_switches ||
		first_host > sim->topo->n_hosts || n > sim->topo->n_hosts - first_host)
		return -EINVAL;
	if (find(sim, ip))
		return -EEXIST;
	g = calloc(1, size);
	if (!g)
		return -ENOMEM;
	g->ip = *ip;
	for (unsigned h = 0; rc == 0 && h < n; h++)
		rc = add_member(sim, g, first_host + h, root);
	if (rc) {
		group_free(sim, g);
		return rc;
	}
	g->next = sim->groups;
	sim->groups = g;
	return 0;
}

void sim_multicast_remove(struct sim *sim, const struct wire_ip *ip)
{
	for (struct sim_group **at = &sim->groups; *at; at = &(*at)->next)
		if (wire_ip_eq(&(*at)->ip, ip)) {
			struct sim_group *g = *at;

			*at = g->next;
			group_free(sim, g);
			return;
		}
}

void sim_multicast_close(struct sim *sim)
{
	while (sim->groups)
		sim_multicast_remove(sim, &sim->groups->ip);
}

void sim_multicast_rx(struct sim *sim, unsigned sw, unsigned port, struct sim_frame *f,
	const struct wire_pkt *pkt)
{
	struct sim_node_switch *s = &sim->sw[sw];
	const struct sim_group *g = find(sim, &pkt->dst);
	uint8_t dmac[6], smac[6];

	wire_multicast_mac(&pkt->dst, dmac);
	sim_switch_mac(sw, smac);
	if (!g || !g->port[sw] || wire_forward(f->data, pkt, dmac, smac) != 0) {
		s->pub.unroutable++;
		sim_frame_put(sim, f);
		return;
	}
	for (unsigned p = 0; p < s->n_ports; p++) {
		struct sim_frame *copy;

		if (p == port || !g->port[sw][p])
			continue;
		copy = sim_frame_get(sim, f->len);
		memcpy(copy->data, f->data, f->len);
		copy->len = f->len;
		copy->first = f->first;
		s->pub.forwarded++;
		sim_send(sim, s->port[p].link, copy);
	}
	sim_frame_put(sim, f);
}
