/* SPDX-License-Identifier: BSD-3-Clause */
/* Members that are learnt: workers put reports into a ring, the control thread reads them at every
 * tick, keeps the books (membership.h), asks, and publishes groups anew when they have changed. */
#include <errno.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_ring.h>

#include "dataplane/sw.h"
#include "lib/wire/membership.h"
#include "lib/wire/multicast.h"

enum {
	REPORTS = 256,
	TICK_RECORDS =
		1024, /* that are read at a tick; what is more is lost: it will be said again */
	STARTUP_QUERIES = 2,
};
static const uint64_t STARTUP_EVERY = UINT64_C(31000000000);

struct sw_membership {
	struct rte_ring *reports;
	struct membership book;
	unsigned queries; /* general ones sent, up to STARTUP_QUERIES */
	uint64_t next_query;
	bool due; /* the packet path does not know yet what the book says */
};

static bool any_port(const struct sw *sw)
{
	for (unsigned i = 0; i < sw->n_ports; i++)
		if (sw->config.ports[i].mcast_learn)
			return true;
	return false;
}

int sw_membership_create(struct sw *sw, char err[SW_ERR_LEN])
{
	struct sw_membership *m;

	if (!any_port(sw))
		return 0;
	m = calloc(1, sizeof(*m));
	sw->membership = m;
	if (m != NULL)
		m->reports = rte_ring_create("reports", REPORTS, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (m == NULL || m->reports == NULL)
		return sw_fail(err, -ENOMEM, "no memory for reports of members");
	m->book.max_per_port = sw->config.mcast_max;
	sw->members = &m->book;
	for (unsigned i = 0; i < sw->n_workers; i++) {
		sw->worker[i]->reports = m->reports;
		for (unsigned k = 0; k < sw->n_ports; k++)
			sw->worker[i]->port[sw->ports[k].id].mcast_learn =
				sw->config.ports[k].mcast_learn;
	}
	return 0;
}

void sw_membership_destroy(struct sw *sw)
{
	struct rte_mbuf *mbuf;

	if (sw->membership == NULL)
		return;
	while (sw->membership->reports != NULL &&
		rte_ring_dequeue(sw->membership->reports, (void **)&mbuf) == 0)
		rte_pktmbuf_free(mbuf);
	rte_ring_free(sw->membership->reports);
	free(sw->membership);
	sw->membership = NULL;
	sw->members = NULL;
}

/* ---- asking ---- */

/* From the switch's first address of the family, or of no address (RFC 3376 4.2.13 lets a member
 * answer that); in IPv6 from the port's link-local one. */
static struct wire_ip source(const struct sw *sw, unsigned port, bool ip4)
{
	if (!ip4)
		return wire_ip_link_local(sw->ports[port].mac);
	for (unsigned i = 0; i < sw->config.n_addresses; i++)
		if (wire_ip_is4(&sw->config.addresses[i]))
			return sw->config.addresses[i];
	return wire_ip_from4(0);
}

static void ask(struct sw *sw, unsigned port, bool ip4, const struct wire_ip *group, uint32_t ms)
{
	const struct wire_ip src = source(sw, port, ip4);
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(sw->pool);
	int len;

	if (mbuf == NULL)
		return;
	len = wire_build_membership_query(rte_pktmbuf_mtod(mbuf, uint8_t *),
		rte_pktmbuf_tailroom(mbuf), sw->ports[port].mac, &src, group, ms);
	if (len < 0) {
		rte_pktmbuf_free(mbuf);
		return;
	}
	rte_pktmbuf_append(mbuf, (uint16_t)len);
	outbox_send(sw, mbuf, port);
}

static void ask_all(struct sw *sw, uint64_t now)
{
	static const struct wire_ip all;
	struct sw_membership *m = sw->membership;

	if (now < m->next_query)
		return;
	for (unsigned i = 0; i < sw->n_ports; i++)
		for (unsigned ip4 = 0; ip4 < 2 && sw->config.ports[i].mcast_learn; ip4++)
			ask(sw, i, ip4, &all, MEMBERSHIP_RESPONSE_MS);
	m->next_query =
		now + (m->queries < STARTUP_QUERIES ? STARTUP_EVERY : MEMBERSHIP_QUERY_EVERY);
	m->queries += m->queries < STARTUP_QUERIES;
}

/* ---- reading ---- */

static unsigned read_report(struct sw *sw, const struct rte_mbuf *mbuf, uint64_t now, bool *changed)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	const uint16_t port = (uint16_t)sw_port_index(sw, mbuf->port);
	struct membership *book = &sw->membership->book;
	struct wire_membership report;
	struct wire_ip group;
	struct wire_pkt pkt;
	unsigned n = 0;
	bool joins;

	wire_parse(frame, mbuf->data_len, &pkt);
	if (wire_membership_parse(frame + pkt.l3_off, mbuf->data_len - pkt.l3_off, &report) < 0) {
		book->bad++;
		return 1;
	}
	for (; n < TICK_RECORDS && wire_membership_next(&report, &group, &joins); n++) {
		if (wire_multicast_stays(&group))
			continue;
		if (joins)
			*changed |= membership_join(
					    book, port, pkt.vlan & WIRE_VLAN_ID, &group, now) > 0;
		else if (membership_leave(book, port, &group, now))
			ask(sw, port, wire_ip_is4(&group), &group, MEMBERSHIP_LAST_RESPONSE_MS);
	}
	return n + 1;
}

/* What does not fit into memory is tried again at the next tick. */
static void publish(struct sw *sw)
{
	struct sw_membership *m = sw->membership;

	if (!m->due)
		return;
	m->due = sw_mcast_publish(sw) < 0;
	m->book.deferred += m->due;
}

void sw_membership_tick(struct sw *sw, uint64_t now)
{
	struct rte_mbuf *mbuf;
	bool changed = false;
	unsigned n = 0;

	if (sw->membership == NULL)
		return;
	while (n < TICK_RECORDS && rte_ring_dequeue(sw->membership->reports, (void **)&mbuf) == 0) {
		n += read_report(sw, mbuf, now, &changed);
		rte_pktmbuf_free(mbuf);
	}
	changed |= membership_expire(&sw->membership->book, now) > 0;
	sw->membership->due |= changed;
	publish(sw);
	ask_all(sw, now);
	outbox_end(sw);
}

/* ---- for the control plane ---- */

unsigned sw_members(const struct sw *sw, struct sw_member_counters *count)
{
	const struct membership *book = sw->members;

	*count = (struct sw_member_counters){0};
	if (book == NULL)
		return 0;
#define X(field) count->field = book->field;
	SW_MEMBER_COUNTERS(X)
#undef X
	return book->n;
}

int sw_member_get(const struct sw *sw, unsigned i, struct sw_member *member)
{
	const struct membership *book = sw->members;
	const struct membership_entry *e;
	const uint64_t now = sw_now(sw);

	if (book == NULL || i >= book->n)
		return -ENOENT;
	e = &book->entry[i];
	*member = (struct sw_member){.group = e->group,
		.vlan = e->vlan,
		.leaving = e->leaving,
		.left_ns = e->until > now ? e->until - now : 0};
	memcpy(member->port, sw->ports[e->port].config.name, sizeof(member->port));
	return 0;
}
