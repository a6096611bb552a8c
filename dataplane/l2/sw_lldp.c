/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread's part of LLDP: reads what workers have noted, keeps the table
 * (lib/lldp/table.h), and has ports say who the switch is: the first port's MAC address as its
 * chassis, the port's name, the switch's name. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/l2/lldp_note.h"
#include "dataplane/sw.h"
#include "lib/lldp/table.h"

struct sw_lldp {
	uint64_t now; /* of the last tick */
	struct rte_ring *notes;
	struct lldp_table *table;
};

/* ---- out ---- */

static struct wire_lldp who_we_are(const struct sw *sw, const struct port *port)
{
	return lldp_introduce(sw->ports[0].mac, port->config.name, sw->config.name);
}

static void speak(struct sw *sw, unsigned i)
{
	const struct port *port = &sw->ports[i];
	const struct wire_lldp says = who_we_are(sw, port);
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(sw->pool);
	int len;

	if (mbuf == NULL)
		return; /* and again when the next is due */
	len = wire_build_lldp(
		rte_pktmbuf_mtod(mbuf, uint8_t *), rte_pktmbuf_tailroom(mbuf), port->mac, &says);
	if (len < 0) {
		rte_pktmbuf_free(mbuf);
		return;
	}
	rte_pktmbuf_append(mbuf, (uint16_t)len);
	outbox_send(sw, mbuf, i);
}

/* ---- turns ---- */

void sw_lldp_tick(struct sw *sw, uint64_t now)
{
	struct sw_lldp *l = sw->lldp;
	struct lldp_note note;

	if (l == NULL)
		return;
	l->now = now;
	for (unsigned i = 0;
		i < LLDP_NOTES && rte_ring_dequeue_elem(l->notes, &note, sizeof(note)) == 0; i++)
		lldp_heard(l->table, sw_port_index(sw, (uint16_t)note.port), &note.says, now);
	for (unsigned i = 0; i < sw->n_ports; i++)
		if (lldp_turn(l->table, i, port_link_up(&sw->ports[i]), now))
			speak(sw, i);
	l->table->count.sent += outbox_end(sw);
}

/* ---- life ---- */

int sw_lldp_create(struct sw *sw, char err[SW_ERR_LEN])
{
	static_assert(PORT_NAME_LEN <= (int)LLDP_ID_MAX, "names fit");
	if (!sw->config.lldp)
		return 0;
	sw->lldp = calloc(1, sizeof(*sw->lldp));
	if (sw->lldp != NULL) {
		sw->lldp->table = lldp_table_new(sw->n_ports);
		sw->lldp->notes = rte_ring_create_elem("lldp_notes", sizeof(struct lldp_note),
			LLDP_NOTES, SOCKET_ID_ANY, RING_F_SC_DEQ);
	}
	if (sw->lldp == NULL || sw->lldp->table == NULL || sw->lldp->notes == NULL)
		return sw_fail(err, -ENOMEM, "no memory for LLDP");
	for (unsigned i = 0; i < sw->n_workers; i++)
		sw->worker[i]->lldp_notes = sw->lldp->notes;
	return 0;
}

void sw_lldp_destroy(struct sw *sw)
{
	if (sw->lldp == NULL)
		return;
	rte_ring_free(sw->lldp->notes);
	free(sw->lldp->table);
	free(sw->lldp);
	sw->lldp = NULL;
}

/* ---- for the control plane ---- */

void sw_lldp_values(const struct sw *sw, sw_value_fn fn, void *arg)
{
	if (sw->lldp == NULL)
		return;
	fn(arg, SW_GAUGE, "lldp_neighbours", "neighbours that LLDP tells of",
		lldp_neighbours(sw->lldp->table));
#define X(field, text) fn(arg, SW_COUNTER, "lldp_" #field, text, sw->lldp->table->count.field);
	LLDP_COUNTERS(X)
#undef X
}

const char *sw_lldp_chassis(const struct sw *sw, char text[SW_LLDP_TEXT])
{
	struct wire_lldp says;

	text[0] = '\0';
	if (sw->lldp == NULL)
		return text;
	says = who_we_are(sw, &sw->ports[0]);
	return wire_lldp_chassis_text(&says.chassis, text, SW_LLDP_TEXT);
}

int sw_lldp_get(const struct sw *sw, unsigned port, unsigned *at, struct sw_lldp_info *info)
{
	for (; sw->lldp != NULL && port < sw->n_ports && *at < LLDP_PER_PORT; ++*at) {
		const struct lldp_neighbour *n = &sw->lldp->table->port[port].neighbour[*at];

		if (!n->used)
			continue;
		++*at;
		info->age_ns = sw->lldp->now - n->heard;
		wire_lldp_chassis_text(&n->says.chassis, info->chassis, sizeof(info->chassis));
		wire_lldp_port_text(&n->says.port, info->port, sizeof(info->port));
		wire_lldp_name_text(&n->says, info->system, sizeof(info->system));
		return 0;
	}
	return -ENOENT;
}
