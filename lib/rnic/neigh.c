/* SPDX-License-Identifier: BSD-3-Clause */
/* Address resolution by ARP (RFC 826) and neighbour discovery (RFC 4861). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/device.h"
#include "lib/rnic/neigh.h"
#include "lib/rnic/timer.h"

static const uint64_t ASK_EVERY = RNIC_NEIGH_EVERY_MS * UINT64_C(1000000),
		      VALID_FOR = UINT64_C(60000000000);

int neigh_init(struct rnic *rnic)
{
	rnic->neigh = calloc(N_NEIGH, sizeof(*rnic->neigh));
	rnic->neigh_bucket = calloc(N_NEIGH, sizeof(*rnic->neigh_bucket));
	if (rnic->neigh == NULL || rnic->neigh_bucket == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < N_NEIGH; i++) {
		rnic->neigh[i].timer.kind = TIMER_NEIGH;
		timer_stop(&rnic->neigh[i].timer);
	}
	return 0;
}

static uint32_t *bucket(struct rnic *rnic, unsigned port, const struct wire_ip *ip)
{
	uint64_t w[2];

	memcpy(w, ip->b, sizeof(w));
	return &rnic->neigh_bucket[((w[0] ^ w[1] ^ port) * UINT64_C(0x9e3779b97f4a7c15) >> 32) %
				   N_NEIGH];
}

static struct neigh *find(struct rnic *rnic, unsigned port, const struct wire_ip *ip)
{
	for (uint32_t i = *bucket(rnic, port, ip); i != 0; i = rnic->neigh[i - 1].chain) {
		struct neigh *neigh = &rnic->neigh[i - 1];

		if (neigh->port == port && wire_ip_eq(&neigh->ip, ip))
			return neigh;
	}
	return NULL;
}

static void forget(struct rnic *rnic, struct neigh *neigh)
{
	uint32_t index = (uint32_t)(neigh - rnic->neigh) + 1;
	uint32_t *link = bucket(rnic, neigh->port, &neigh->ip);

	while (*link != index)
		link = &rnic->neigh[*link - 1].chain;
	*link = neigh->chain;
	neigh->state = NEIGH_FREE;
	timer_remove(&rnic->timers, &neigh->timer);
}

/* A free entry, or the first one from the hand on that is only a cached answer. */
static struct neigh *take_entry(struct rnic *rnic)
{
	struct neigh *victim = NULL;

	for (unsigned i = 0; i < N_NEIGH; i++) {
		struct neigh *neigh = &rnic->neigh[(rnic->neigh_hand + i) % N_NEIGH];

		if (neigh->state == NEIGH_FREE)
			return neigh;
		if (victim == NULL && (neigh->state == NEIGH_KNOWN || neigh->state == NEIGH_FAILED))
			victim = neigh;
	}
	if (victim != NULL) {
		rnic->neigh_hand = (uint32_t)(victim - rnic->neigh) + 1;
		forget(rnic, victim);
	}
	return victim;
}

static struct neigh *add(struct rnic *rnic, unsigned port, const struct wire_ip *ip)
{
	struct neigh *neigh = take_entry(rnic);
	uint32_t *first = bucket(rnic, port, ip);

	if (neigh == NULL)
		return NULL;
	neigh->ip = *ip;
	neigh->port = (uint8_t)port;
	neigh->chain = *first;
	*first = (uint32_t)(neigh - rnic->neigh) + 1;
	return neigh;
}

static void ask(struct rnic *rnic, struct neigh *neigh, uint64_t now)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	const struct rnic_port *port = &rnic->port[neigh->port];
	uint8_t *out = rnic_reply(rnic, neigh->port);
	int len;

	neigh->asked++;
	timer_set(&rnic->timers, &neigh->timer, now + ASK_EVERY);
	if (out == NULL)
		return; /* the next one may find room */
	if (wire_ip_is4(&neigh->ip))
		len = wire_build_arp(out, port->reply_cap, ARP_REQUEST, port->mac, &neigh->src,
			broadcast, &neigh->ip, 0);
	else
		len = wire_build_ns(out, port->reply_cap, port->mac, &neigh->src, &neigh->ip, 0);
	rnic_reply_send(rnic, neigh->port, len);
}

int neigh_resolve(struct rnic *rnic, unsigned port, const struct wire_ip *src,
	const struct wire_ip *ip, uint8_t dmac[6], uint64_t now)
{
	struct neigh *neigh;

	if (rnic_own_ip(rnic, port, ip) >= 0) {
		memcpy(dmac, rnic->port[port].mac, 6);
		return 0;
	}
	neigh = find(rnic, port, ip);
	if (neigh == NULL) {
		neigh = add(rnic, port, ip);
		if (neigh == NULL)
			return -ENOMEM;
	} else if (neigh->state == NEIGH_ASKING) {
		return -EAGAIN;
	} else if (neigh->state == NEIGH_FAILED) {
		forget(rnic, neigh);
		return -EHOSTUNREACH;
	} else if (neigh->state == NEIGH_STATIC || now < neigh->expires) {
		memcpy(dmac, neigh->mac, sizeof(neigh->mac));
		return 0;
	}
	neigh->state = NEIGH_ASKING;
	neigh->asked = 0;
	neigh->src = *src;
	ask(rnic, neigh, now);
	return -EAGAIN;
}

int rnic_resolve(
	struct rnic *rnic, unsigned port, const struct wire_ip *ip, uint8_t dmac[6], uint64_t now)
{
	bool local = ip->b[0] == 0xfe && (ip->b[1] & 0xc0) == 0x80;
	const struct rnic_port *from;
	const struct wire_ip *src = NULL;

	if (port >= rnic->n_ports || wire_ip_is_zero(ip) || ip->b[0] == 0xff)
		return -EINVAL;
	/* The first address of the same family; entry 0, link-local, if there is no better one. */
	from = &rnic->port[port];
	for (unsigned i = from->n_gid; i-- > 0;) {
		if (wire_ip_is4(&from->gid[i]) == wire_ip_is4(ip) &&
			(i > 0 || src == NULL || local))
			src = &from->gid[i];
	}
	return src == NULL ? -EHOSTUNREACH : neigh_resolve(rnic, port, src, ip, dmac, now);
}

int rnic_next_hop(
	struct rnic *rnic, unsigned port, const struct wire_ip *ip, uint8_t dmac[6], uint64_t now)
{
	if (port >= rnic->n_ports)
		return -EINVAL;
	if (!wire_ip_is_zero(&rnic->port[port].via))
		ip = &rnic->port[port].via;
	return rnic_resolve(rnic, port, ip, dmac, now);
}

int rnic_neigh_add(struct rnic *rnic, unsigned port, const struct wire_ip *ip, const uint8_t mac[6])
{
	struct neigh *neigh;

	if (port >= rnic->n_ports || wire_ip_is_zero(ip) || ip->b[0] == 0xff || (mac[0] & 1) ||
		rnic_own_ip(rnic, port, ip) >= 0)
		return -EINVAL;
	neigh = find(rnic, port, ip);
	if (neigh == NULL)
		neigh = add(rnic, port, ip);
	if (neigh == NULL)
		return -ENOMEM;
	neigh->state = NEIGH_STATIC;
	memcpy(neigh->mac, mac, sizeof(neigh->mac));
	timer_remove(&rnic->timers, &neigh->timer);
	return 0;
}

void neigh_timer(struct rnic *rnic, struct neigh *neigh, uint64_t now)
{
	if (neigh->state != NEIGH_ASKING)
		return;
	if (neigh->asked == RNIC_NEIGH_ASKS)
		neigh->state = NEIGH_FAILED;
	else
		ask(rnic, neigh, now);
}

/* Somebody says where ip is. Only what was asked for is remembered. */
static void learn(struct rnic *rnic, unsigned port, const struct wire_ip *ip, const uint8_t mac[6],
	uint64_t now)
{
	struct neigh *neigh = find(rnic, port, ip);

	if (neigh == NULL || neigh->state == NEIGH_STATIC || (mac[0] & 1))
		return;
	memcpy(neigh->mac, mac, sizeof(neigh->mac));
	neigh->state = NEIGH_KNOWN;
	neigh->expires = now + VALID_FOR;
	timer_remove(&rnic->timers, &neigh->timer);
}

static unsigned rx_arp(struct rnic *rnic, unsigned port, const struct wire_pkt *pkt, uint64_t now)
{
	const struct rnic_port *own = &rnic->port[port];
	uint8_t *out;

	learn(rnic, port, &pkt->src, pkt->arp_sha, now);
	if (rnic_own_ip(rnic, port, &pkt->dst) < 0)
		return RNIC_DROP_NOT_MINE;
	if (pkt->arp_op != ARP_REQUEST)
		return 0;
	out = rnic_reply(rnic, port);
	if (out == NULL)
		return RNIC_DROP_REPLY_QUEUE;
	rnic_reply_send(rnic, port,
		wire_build_arp(out, own->reply_cap, ARP_REPLY, own->mac, &pkt->dst, pkt->arp_sha,
			&pkt->src, pkt->vlan));
	return 0;
}

static unsigned rx_solicitation(struct rnic *rnic, unsigned port, const struct wire_pkt *pkt,
	const uint8_t *frame, uint64_t now)
{
	static const struct wire_ip all_nodes = {{0xff, 0x02, [15] = 1}};
	static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	const uint8_t *mac = pkt->has_lladdr ? pkt->nd_lladdr : frame + 6;
	const struct wire_ip *dst = &pkt->src;
	const struct rnic_port *own = &rnic->port[port];
	uint8_t *out;

	if (pkt->has_lladdr)
		learn(rnic, port, &pkt->src, pkt->nd_lladdr, now);
	if (rnic_own_ip(rnic, port, &pkt->nd_target) < 0)
		return RNIC_DROP_NOT_MINE;
	if (wire_ip_is_zero(&pkt->src)) { /* duplicate address detection */
		dst = &all_nodes;
		mac = all_nodes_mac;
	}
	out = rnic_reply(rnic, port);
	if (out == NULL)
		return RNIC_DROP_REPLY_QUEUE;
	rnic_reply_send(rnic, port,
		wire_build_na(out, own->reply_cap, own->mac, mac, &pkt->nd_target, dst, pkt->vlan));
	return 0;
}

unsigned neigh_rx(struct rnic *rnic, unsigned port, const struct wire_pkt *pkt,
	const uint8_t *frame, uint64_t now)
{
	switch (pkt->kind) {
	case WIRE_ARP:
		return rx_arp(rnic, port, pkt, now);
	case WIRE_ND_NS:
		return rx_solicitation(rnic, port, pkt, frame, now);
	default:
		learn(rnic, port, &pkt->nd_target, pkt->has_lladdr ? pkt->nd_lladdr : frame + 6,
			now);
		return 0;
	}
}
