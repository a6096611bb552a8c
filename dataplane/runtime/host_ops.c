/* SPDX-License-Identifier: BSD-3-Clause */
/* host_ops.h on DPDK. */
#include "dataplane/runtime/host_ops.h"

#include <errno.h>
#include <limits.h>
#include <rte_malloc.h>
#include <string.h>

#include "dataplane/sw.h"

uint64_t sw_now(const struct sw *sw)
{
	(void)sw;
	return port_now_ns();
}

int sw_host_port(const struct sw *sw, uint16_t id, struct sw_host_port *port)
{
	for (unsigned i = 0; i < sw->n_ports; i++) {
		const struct port *p = &sw->ports[i];

		if (p->id != id)
			continue;
		port->mtu = p->config.mtu;
		memcpy(port->name, p->config.name, sizeof(port->name));
		memcpy(port->mac, p->mac, sizeof(port->mac));
		return 0;
	}
	return -ENOENT;
}

int sw_host_path(const struct sw *sw, const struct wire_ip *ip, struct sw_host_path *path)
{
	const struct adj *adj = fwd_lookup(sw->fwd, ip);

	if (adj->kind != ADJ_REWRITE)
		return -ENOENT;
	*path = (struct sw_host_path){.port = adj->port, .mtu = adj->mtu, .vlan = adj->vlan};
	memcpy(path->dmac, adj->dmac, sizeof(path->dmac));
	return 0;
}

bool sw_host_is_local(const struct sw *sw, const struct wire_ip *ip)
{
	return fwd_is_local(sw->fwd, ip);
}

int sw_host_address(const struct sw *sw, const struct wire_ip *like, struct wire_ip *ip)
{
	struct table_rows rows;

	table_rows(sw->tables, FWD_LOCAL_ADDR, &rows);
	for (unsigned i = 0; i < rows.n; i++) {
		if (wire_ip_is4(&rows.entry[i].key[0].ip) != wire_ip_is4(like))
			continue;
		*ip = rows.entry[i].key[0].ip;
		return 0;
	}
	return -ENOENT;
}

bool sw_host_is_read(const struct sw *sw, unsigned slot)
{
	bool is_read = false;

	/* A slot's groups may have had several owners; each has its own account. */
	for (unsigned i = 0; !sw->closed && i < sw->n_workers; i++) {
		const struct worker_lent *lent = &sw->worker[i]->lent[slot];

		is_read |= __atomic_load_n(&lent->given, __ATOMIC_ACQUIRE) !=
			   __atomic_load_n(&lent->returned, __ATOMIC_ACQUIRE);
	}
	return is_read;
}

/* By this own address, if the switch has several of its family; UINT_MAX: nothing is said by it. */
static unsigned by_address(const struct sw *sw, const struct wire_ip *own)
{
	unsigned alike = 0, mine = UINT_MAX;

	for (unsigned i = 0; i < sw->config.n_addresses; i++) {
		const struct wire_ip *ip = &sw->config.addresses[i];

		if (wire_ip_eq(ip, own))
			mine = alike;
		alike += wire_ip_is4(ip) == wire_ip_is4(own);
	}
	return alike > 1 && mine < alike ? mine % sw->n_workers : UINT_MAX;
}

unsigned sw_host_place(const struct sw *sw, const struct wire_ip *own)
{
	unsigned n[WORKER_MAX] = {0}, best = own != NULL ? by_address(sw, own) : UINT_MAX;

	if (best != UINT_MAX)
		return best;
	for (unsigned slot = 1; slot < SW_RING_SLOT0; slot++)
		n[inc_owner(sw->groups, slot)] += sw->groups->group[slot] != NULL;
	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		n[inc_owner(sw->groups, SW_RING_SLOT0 + i)] += sw->ring[i] != NULL;
	best = 0;
	for (unsigned i = 1; i < sw->n_workers; i++)
		best = n[i] < n[best] ? i : best;
	return best;
}

void *sw_host_alloc(size_t bytes)
{
	return rte_zmalloc("group", bytes, RTE_CACHE_LINE_SIZE);
}

void sw_host_free(void *block)
{
	rte_free(block);
}
