/* SPDX-License-Identifier: BSD-3-Clause */
/* Source routes by uSID: what a host writes into an address, and the switches' static tables. What
 * a switch does with a packet is lib/srv6's, as in incline-switch. */
#include <errno.h>

#include "lib/sim/priv.h"
#include "lib/sim/srv6.h"
#include "lib/srv6/endpoint.h"
#include "lib/srv6/template.h"
#include "lib/wire/frame.h"

enum { BLOCK = 0xfcbbbb00, T0 = 0, T1 = 1, LINK = 2, INDEX = 0x3ff, ROLE = 10, PLANE = 12 };
enum { IP6_DST = 24, IP6_LEN = 40, EV_PLANE = 8 };

static uint16_t usid(unsigned plane, unsigned role, unsigned index)
{
	return (uint16_t)(plane << PLANE | role << ROLE | index);
}

/* A uSID of 0 would end the path: T0s are counted from 1 on. */
static uint16_t usid_t0(unsigned plane, unsigned t0)
{
	return usid(plane, T0, t0 + 1);
}

/* T1s of a plane come first. */
static unsigned n_t1(const struct sim_topo *t)
{
	return sim_topo_leaf(t, 0, 0);
}

static unsigned per_plane(const struct sim_topo *t)
{
	return t->n_switches / t->n_planes;
}

static uint16_t usid_of_switch(const struct sim_topo *t, unsigned sw)
{
	const unsigned plane = sim_topo_plane_of(t, sw), i = sw % per_plane(t);

	return i < n_t1(t) ? usid(plane, T1, i) : usid_t0(plane, i - n_t1(t));
}

/* The host's place among those of its T0. */
static unsigned downlink(const struct sim_topo *t, unsigned host)
{
	unsigned i = 0;

	while (i < host && sim_topo_leaf(t, host - i - 1, 0) == sim_topo_leaf(t, host, 0))
		i++;
	return i;
}

struct wire_ip sim_srv6_sid(const struct sim *sim, unsigned host, unsigned plane)
{
	const uint16_t hop = usid(plane, LINK, downlink(sim->topo, host));
	struct wire_ip ip = {0};

	if (sim->topo->n_planes)
		srv6_address(BLOCK, &hop, 1, &ip);
	return ip;
}

/* ---- a path's address ---- */

static bool share_t0(const struct sim_topo *t, unsigned from, unsigned to)
{
	return sim_topo_leaf(t, from, 0) == sim_topo_leaf(t, to, 0);
}

unsigned sim_srv6_n_paths(const struct sim *sim, unsigned from, unsigned to)
{
	const struct sim_topo *t = sim->topo;

	return t->n_planes * (share_t0(t, from, to) ? 1 : n_t1(t));
}

/* Of this pair of hosts: the plane goes into every uSID, the T1's number into its own. */
static int make_template(
	const struct sim_topo *t, unsigned from, unsigned to, struct srv6_template *out)
{
	const uint16_t source = usid_t0(0, sim_topo_leaf(t, from, 0) - n_t1(t)),
		       target = usid_t0(0, sim_topo_leaf(t, to, 0) - n_t1(t)),
		       last = usid(0, LINK, downlink(t, to));
	const bool local = share_t0(t, from, to);
	const uint16_t hop[4] = {source, local ? last : usid(0, T1, 0), target, last};
	char err[SRV6_ERR_LEN];
	int rc;

	*out = (struct srv6_template){.n_hops = local ? 2 : 4};
	put_be32(out->address.b, BLOCK);
	for (uint8_t i = 0; i < out->n_hops; i++) {
		srv6_usid_put(&out->address, i, hop[i]);
		out->copy[out->n_copies++] =
			(struct srv6_copy){.from = EV_PLANE, .width = 4, .usid = i, .shift = PLANE};
	}
	if (!local)
		out->copy[out->n_copies++] =
			(struct srv6_copy){.from = 0, .width = 8, .usid = 1, .shift = 0};
	rc = srv6_template_check(out, err);
	return rc;
}

/* Numbers 0 to n - 1 in random order. */
static void shuffle(unsigned *number, unsigned n, uint64_t *seed)
{
	for (unsigned i = 0; i < n; i++) {
		const unsigned k = (unsigned)(sim_random(seed) % (i + 1));

		number[i] = number[k];
		number[k] = i;
	}
}

int sim_srv6_paths(const struct sim *sim, unsigned from, unsigned to, unsigned n, unsigned active,
	uint64_t seed, struct rnic_mrc_paths *paths)
{
	const struct sim_topo *t = sim->topo;
	const unsigned all = sim_srv6_n_paths(sim, from, to), planes = t->n_planes;
	unsigned t1[MRC_MAX_EVS], count = 0;
	uint32_t ev[MRC_MAX_EVS];
	uint8_t port[MRC_MAX_EVS];
	struct srv6_template template;
	int rc;

	n = n ? n : all;
	if (planes == 0 || n > all || n > MRC_MAX_EVS || n % planes || all / planes > MRC_MAX_EVS)
		return -EINVAL;
	rc = make_template(t, from, to, &template);
	for (unsigned p = 0; rc == 0 && p < planes; p++) {
		shuffle(t1, all / planes, &seed);
		for (unsigned i = 0; i < n / planes; i++) {
			ev[count] = p << EV_PLANE | t1[i];
			port[count++] = (uint8_t)p;
		}
	}
	if (rc == 0)
		rc = rnic_mrc_paths_srv6(paths, &template, ev, port, n); /* makes all anew */
	paths->max_active = active;
	/* With a path per plane each of them must be able to go. */
	paths->min_active = n > planes ? planes : 1;
	return rc;
}

/* ---- the switches' tables: static, as they are in the paper ---- */

/* The port towards a uSID; -1: this switch knows no such. */
static int port_of(const struct sim *sim, unsigned sw, uint16_t hop)
{
	const struct sim_topo *t = sim->topo;
	const struct sim_node_switch *s = &sim->sw[sw];
	const unsigned plane = sim_topo_plane_of(t, sw), index = hop & INDEX;
	const bool is_t0 = sw % per_plane(t) >= n_t1(t);

	if (hop >> PLANE != plane)
		return -1;
	switch (hop >> ROLE & 3) {
	case LINK: /* a T0's first ports */
		return is_t0 && index < s->n_hosts ? (int)index : -1;
	case T1:
		return is_t0 && index < n_t1(t) ? (int)(s->n_hosts + index) : -1;
	case T0:
		return !is_t0 && index > 0 && index <= s->n_ports ? (int)index - 1 : -1;
	default:
		return -1;
	}
}

static bool is_for(const struct sim *sim, unsigned sw, const struct sim_frame *f)
{
	const uint8_t *dst = f->data + ETH_HDR_LEN + IP6_DST;

	return sim->topo->n_planes && f->len >= ETH_HDR_LEN + IP6_LEN &&
	       get_be16(f->data + 12) == ETH_TYPE_IP6 && get_be32(dst) == BLOCK &&
	       get_be16(dst + SRV6_BLOCK_LEN) == usid_of_switch(sim->topo, sw);
}

static void next_hop(struct sim *sim, unsigned sw, struct sim_frame *f)
{
	struct sim_node_switch *s = &sim->sw[sw];
	const int port =
		port_of(sim, sw, get_be16(f->data + ETH_HDR_LEN + IP6_DST + SRV6_BLOCK_LEN));
	unsigned peer;

	if (port < 0) {
		s->pub.unroutable++;
		sim_frame_put(sim, f);
		return;
	}
	peer = s->port[port].node;
	if (peer < sim->topo->n_hosts)
		sim_host_port_mac(peer, sim_topo_plane_of(sim->topo, sw), f->data);
	else
		sim_switch_mac(peer - sim->topo->n_hosts, f->data);
	sim_switch_mac(sw, f->data + 6);
	s->pub.forwarded++;
	sim_send(sim, s->port[port].link, f);
}

bool sim_srv6_rx(struct sim *sim, unsigned sw, struct sim_frame *f)
{
	static const struct srv6_sid un = {.behaviour = SRV6_UN, .bits = 48};
	struct srv6_done done;

	if (!is_for(sim, sw, f))
		return false;
	if (srv6_endpoint(&un, f->data + ETH_HDR_LEN, f->len - ETH_HDR_LEN, &done) != SRV6_OK ||
		done.verdict != SRV6_LOOKUP) {
		sim->sw[sw].pub.unroutable++;
		sim_frame_put(sim, f);
	} else {
		next_hop(sim, sw, f);
	}
	return true;
}
