/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread's part of neighbours that are learnt: reads what workers have noted, keeps the
 * cache (neigh_cache.h), has workers send requests and packets that have waited, and publishes
 * routes anew when somebody is known who was not, or the other way round. */
#include <errno.h>
#include <rte_errno.h>
#include <rte_ring_elem.h>
#include <stdlib.h>

#include "dataplane/l2/neigh_note.h"
#include "dataplane/l2/sw_neigh.h"
#include "dataplane/retag.h"
#include "dataplane/sw.h"

enum {
	TURN_NOTES = 1024,          /* that are read at a time */
	PUBLISH_PAUSE_NS = 4000000, /* for each thousand routes */
};

/* ---- what the cache wants done ---- */

static int build_request(
	struct sw *sw, const struct neigh_entry *e, bool unicast, uint8_t *b, size_t cap)
{
	const bool ip4 = wire_ip_is4(&e->ip);
	const struct port *port = &sw->ports[e->port];
	struct wire_ip src = sw->fwd->own[ip4];
	int len;

	if (wire_ip_is_zero(&src)) /* a probe (RFC 5227, 2.1.1); a link-local address always is */
		src = ip4 ? wire_ip_from4(0) : wire_ip_link_local(port->mac);
	if (!ip4)
		return unicast ? wire_build_ns_to(b, cap, port->mac, e->mac, &src, &e->ip, e->vlan)
			       : wire_build_ns(b, cap, port->mac, &src, &e->ip, e->vlan);
	len = wire_build_arp(b, cap, ARP_REQUEST, port->mac, &src, e->mac, &e->ip, e->vlan);
	if (len > 0 && unicast)
		memcpy(b, e->mac, sizeof(e->mac));
	return len;
}

static void ask(void *arg, const struct neigh_entry *e, bool unicast)
{
	struct sw *sw = arg;
	struct rte_mbuf *m = rte_pktmbuf_alloc(sw->pool);
	int len = -ENOMEM;

	if (m != NULL)
		len = build_request(
			sw, e, unicast, rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_tailroom(m));
	if (len < 0) {
		rte_pktmbuf_free(m);
		return;
	}
	rte_pktmbuf_append(m, (uint16_t)len);
	outbox_send(sw, m, e->port);
}

/* As ip/rewrite.c does it. */
static enum drop rewrite(struct sw *sw, const struct neigh_entry *e, const struct waiting *wait)
{
	struct rte_mbuf *m = wait->mbuf;
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	const uint8_t *smac = sw->ports[e->port].mac;
	struct wire_pkt pkt;

	wire_parse_ip(frame, m->data_len, wait->l3_off, &pkt);
	if (wait->hop_taken) {
		memcpy(frame, e->mac, sizeof(e->mac));
		memcpy(frame + 6, smac, 6);
	} else if (wire_forward(frame, &pkt, e->mac, smac) < 0) {
		return DROP_IP_TTL;
	}
	return retag(m, wait->l3_off != ETH_HDR_LEN, e->vlan) ? DROP_NONE : DROP_NO_MBUF;
}

static void settle(void *arg, const struct neigh_entry *e, void *packet, enum neigh_fate fate)
{
	struct sw *sw = arg;
	struct waiting *wait = packet;
	enum drop drop = fate == NEIGH_CROWDED ? DROP_NEIGH_FULL : DROP_IP_NO_NEIGH;

	if (fate == NEIGH_SEND)
		drop = rewrite(sw, e, wait);
	outbox_lose(sw, wait->mbuf, e->port, drop, wait->l3_off);
	wait->mbuf = NULL;
}

static bool needed(void *arg, const struct neigh_entry *e)
{
	const struct sw *sw = arg;
	const struct fwd *fwd = sw->fwd;

	return e->adj != 0 && sw_adj_in_use((struct sw *)(uintptr_t)sw, &fwd->adj[e->adj]);
}

static bool used(void *arg, const struct neigh_entry *e)
{
	const struct sw *sw = arg;
	uint8_t *flag = &sw->fwd->used[e->adj];
	const bool is = e->adj != 0 && *flag != 0;

	*flag = 0;
	return is;
}

static const struct neigh_ops ops = {ask, settle, needed, used};

/* ---- in ---- */

static struct waiting *place(struct sw_neigh *n, const struct neigh_note *note)
{
	struct waiting *wait = n->waiting;

	while (wait->mbuf != NULL) /* there is one more than may wait */
		wait++;
	*wait = (struct waiting){note->mbuf, note->l3_off, note->hop_taken};
	return wait;
}

static void read_note(struct sw *sw, const struct neigh_note *note, uint64_t now)
{
	struct sw_neigh *n = sw->neigh;
	const uint16_t port = (uint16_t)sw_port_index(sw, note->port);

	if (note->mbuf != NULL)
		neigh_cache_want(&n->cache, port, note->vlan, &note->ip, place(n, note), now);
	else
		neigh_cache_heard(
			&n->cache, note->word, port, note->vlan, &note->ip, note->mac, now);
}

/* Making routes anew takes about a millisecond for a thousand of them, and is let take a quarter of
 * the control thread's time. */
static uint64_t pause_after(struct sw *sw)
{
	struct table_rows four, six;

	table_rows(sw->tables, FWD_ROUTE4, &four);
	table_rows(sw->tables, FWD_ROUTE6, &six);
	return (four.n + six.n) / 1000 * PUBLISH_PAUSE_NS;
}

static void publish(struct sw *sw, uint64_t now)
{
	struct sw_neigh *n = sw->neigh;

	if (!n->cache.changed || now < n->publish_at)
		return;
	sw_fwd_publish(sw);
	n->publish_at = now + pause_after(sw);
}

static void read_notes(struct sw *sw, uint64_t now)
{
	struct sw_neigh *n = sw->neigh;
	struct neigh_note note;

	for (unsigned i = 0;
		i < TURN_NOTES && rte_ring_dequeue_elem(n->notes, &note, sizeof(note)) == 0; i++)
		read_note(sw, &note, now);
}

void sw_neigh_turn(struct sw *sw, uint64_t now)
{
	if (sw->neigh == NULL)
		return;
	read_notes(sw, now);
	publish(sw, now);
	outbox_end(sw);
}

/* Next hops of routes are known before there is something for them. */
static void want_nexthops(struct sw *sw, uint64_t now)
{
	const struct fwd *fwd = sw->fwd;

	for (unsigned i = 1; i < fwd->n_glean; i++) {
		const struct adj *adj = &fwd->adj[fwd->glean[i].adj];

		if (neigh_cache_find(&sw->neigh->cache, &fwd->glean[i].nexthop) == NULL)
			neigh_cache_want(&sw->neigh->cache, (uint16_t)sw_port_index(sw, adj->port),
				adj->vlan, &fwd->glean[i].nexthop, NULL, now);
	}
}

void sw_neigh_tick(struct sw *sw, uint64_t now)
{
	if (sw->neigh == NULL)
		return;
	read_notes(sw, now);
	want_nexthops(sw, now);
	neigh_cache_tick(&sw->neigh->cache, now);
	publish(sw, now);
	outbox_end(sw);
}

/* ---- life ---- */

static bool any_port(const struct sw *sw)
{
	for (unsigned i = 0; i < sw->n_ports; i++)
		if (sw->config.ports[i].neigh_learn)
			return true;
	return false;
}

int sw_neigh_create(struct sw *sw, char err[SW_ERR_LEN])
{
	struct sw_neigh *n;

	static_assert(SW_MAX_PORTS <= (int)NEIGH_MAX_PORTS, "the cache's ports");
	if (!any_port(sw))
		return 0;
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return sw_fail(err, -ENOMEM, "no memory for neighbours");
	sw->neigh = n;
	neigh_cache_init(&n->cache, sw->config.neigh_max, &ops, sw);
	n->notes = rte_ring_create_elem("neigh_notes", sizeof(struct neigh_note), NEIGH_NOTES,
		SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (n->notes == NULL)
		return sw_fail(err, -ENOMEM, "no memory for notes of neighbours");
	for (unsigned i = 0; i < sw->n_workers; i++)
		sw->worker[i]->neigh_notes = n->notes;
	return 0;
}

void sw_neigh_destroy(struct sw *sw)
{
	struct sw_neigh *n = sw->neigh;
	struct neigh_note note;

	if (n == NULL)
		return;
	while (n->notes != NULL && rte_ring_dequeue_elem(n->notes, &note, sizeof(note)) == 0)
		rte_pktmbuf_free(note.mbuf);
	for (unsigned i = 0; i < RTE_DIM(n->waiting); i++)
		rte_pktmbuf_free(n->waiting[i].mbuf);
	rte_ring_free(n->notes);
	free(n);
	sw->neigh = NULL;
}

unsigned sw_neigh_buffers(const struct sw_config *config)
{
	for (unsigned i = 0; i < config->n_ports; i++)
		if (config->ports[i].neigh_learn)
			return NEIGH_NOTES + NEIGH_ALL_WAITING + OUTBOX;
	return 0;
}

/* ---- for the control plane ---- */

unsigned sw_neighs(const struct sw *sw, struct neigh_counters *count)
{
	*count = (struct neigh_counters){0};
	if (sw->neigh == NULL)
		return 0;
	*count = sw->neigh->cache.count;
	return sw->neigh->cache.n;
}

int sw_neigh_get(const struct sw *sw, unsigned *at, struct sw_neigh_info *info)
{
	const uint64_t now = sw_now(sw);

	for (; sw->neigh != NULL && *at < NEIGH_MAX; ++*at) {
		const struct neigh_entry *e = &sw->neigh->cache.entry[*at];

		if (e->state == NEIGH_FREE)
			continue;
		++*at;
		*info = (struct sw_neigh_info){.ip = e->ip,
			.vlan = e->vlan,
			.known = neigh_is_known(e),
			.state = neigh_state_name(e->state),
			.waiting = e->n_waiting,
			.state_ns = now > e->since ? now - e->since : 0};
		memcpy(info->mac, e->mac, sizeof(info->mac));
		memcpy(info->port, sw->ports[e->port].config.name, sizeof(info->port));
		return 0;
	}
	return -ENOENT;
}
