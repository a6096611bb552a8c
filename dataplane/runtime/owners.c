/* SPDX-License-Identifier: BSD-3-Clause */
/* Which worker owns which group and ring: how they move, what each worker has. */
#include <errno.h>
#include <rte_lcore.h>

#include "dataplane/runtime/host_ops.h"
#include "dataplane/sw.h"

/* ---- moving ---- */

struct move {
	struct inc_table *table;
	struct inc_group *g;
	unsigned to;
};

static void let_go(struct worker *w, void *arg)
{
	const struct move *m = arg;

	(void)w;
	inc_set_owner(m->table, m->g->slot, m->to);
}

/* Its timer, of which the new owner may not have heard. */
static void take_up(struct worker *w, void *arg)
{
	const struct move *m = arg;

	if (inc_owner(m->table, m->g->slot) == m->to)
		worker_note_timer(w, m->g);
}

unsigned sw_group_worker(const struct sw *sw, unsigned slot)
{
	return inc_owner(sw->groups, slot);
}

int sw_group_move(struct sw *sw, unsigned slot, unsigned worker, char err[SW_ERR_LEN])
{
	struct move m = {.table = sw->groups, .to = worker};
	int rc;

	m.g = sw_group_get(sw, slot);
	if (m.g == NULL)
		return sw_fail(err, -ENOENT, "there is no group in slot %u", slot);
	if (worker >= sw->n_workers)
		return sw_fail(err, -ENOENT, "worker: there are %u, from 0 on", sw->n_workers);
	if (m.g->mode == INC_MODE_1)
		return sw_fail(err, -EOPNOTSUPP,
			"a group of mode I stays with the worker of the switch's RNIC");
	rc = sw_worker_call(sw, inc_owner(sw->groups, slot), let_go, &m);
	if (rc == 0)
		rc = sw_worker_call(sw, worker, take_up, &m);
	return rc < 0 ? sw_fail(err, rc, "worker %u does not respond", inc_owner(sw->groups, slot))
		      : 0;
}

/* ---- showing ---- */

unsigned sw_n_workers(const struct sw *sw)
{
	return sw->n_workers;
}

/* What the group in this slot, or the ring, has of the arena. */
static uint64_t bytes_of(struct sw *sw, unsigned slot, bool *is_group)
{
	const struct inc_group *g = sw->groups->group[slot];

	*is_group = g != NULL;
	return g != NULL && g->pay_off != INC_NO_ARENA ? g->pay_bytes : 0;
}

int sw_worker_get(struct sw *sw, unsigned i, struct sw_worker *out)
{
	const struct worker *w = sw->worker[i < sw->n_workers ? i : 0];
	bool is_group;

	if (i >= sw->n_workers)
		return -ENOENT;
	*out = (struct sw_worker){
		.cpu = -1,
		.socket = -1,
		.turns = w->turns,
		.busy_cycles = w->busy_cycles,
		.idle_cycles = w->idle_cycles,
		.handed_over = w->handed_over,
		.taken_over = w->taken_over,
		.handoff_full = w->drops[DROP_HANDOFF_FULL],
	};
	for (unsigned k = 0; k < w->n_ports; k++) {
		out->rx_packets += w->port[w->port_id[k]].rx_packets;
		out->tx_packets += w->port[w->port_id[k]].tx_packets;
	}
	for (unsigned slot = 1; slot < SW_RING_SLOT0; slot++)
		if (inc_owner(sw->groups, slot) == i) {
			out->arena_bytes += bytes_of(sw, slot, &is_group);
			out->groups += is_group;
		}
	for (unsigned k = 0; k < NR_MAX_RINGS; k++)
		out->rings += sw->ring[k] != NULL && inc_owner(sw->groups, SW_RING_SLOT0 + k) == i;
	if (sw->running) {
		const rte_cpuset_t cpus = rte_lcore_cpuset(w->lcore_id);

		out->socket = (int)rte_lcore_to_socket_id(w->lcore_id);
		if (CPU_COUNT(&cpus) == 1)
			while (out->cpu < CPU_SETSIZE - 1 && !CPU_ISSET(++out->cpu, &cpus))
				;
	}
	return 0;
}
