/* SPDX-License-Identifier: BSD-3-Clause */
/* What the packet path reads of the tables, made anew when they change and swapped in as a whole.
 */
#include <errno.h>
#include <rte_errno.h>
#include <rte_jhash.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/sw.h"

static const struct port *port_by_id(void *arg, uint64_t id)
{
	const struct sw *sw = arg;

	for (unsigned i = 0; i < sw->n_ports; i++)
		if (sw->ports[i].id == id)
			return &sw->ports[i];
	return NULL;
}

static bool port_learns(void *arg, uint16_t id)
{
	const struct sw *sw = arg;

	for (unsigned i = 0; i < sw->n_ports; i++)
		if (sw->ports[i].id == id)
			return sw->config.ports[i].neigh_learn;
	return false;
}

static void free_fwd(struct sw *sw, void *what)
{
	struct fwd *old = what, *now = atomic_load(&sw->fwd);

	if (now != NULL)
		fwd_sids_inherit(&now->sids, &old->sids);
	fwd_destroy(what);
}

static void free_mcast(struct sw *sw, void *what)
{
	mcast_fwd_inherit(atomic_load(&sw->mcast), what);
	mcast_fwd_destroy(what);
}

static int make_mcast(struct sw *sw, const struct table_rows *groups,
	const struct table_rows *senders, struct mcast_fwd **mcast, struct table_error *err)
{
	const struct mcast_sources from = {groups, senders, sw->members, sw->ports};

	return mcast_fwd_create(&from, port_by_id, sw, sw->config.workers, mcast, err);
}

static void publish_mcast(struct sw *sw, struct mcast_fwd *mcast)
{
	struct mcast_fwd *old = atomic_exchange_explicit(&sw->mcast, mcast, memory_order_acq_rel);

	if (old != NULL)
		sw_defer(sw, free_mcast, old);
}

int sw_mcast_publish(struct sw *sw)
{
	struct table_rows groups, senders;
	struct mcast_fwd *mcast;
	struct table_error err;
	int rc;

	table_rows(sw->tables, FWD_MCAST_GROUP, &groups);
	table_rows(sw->tables, FWD_MCAST_SENDER, &senders);
	rc = make_mcast(sw, &groups, &senders, &mcast, &err);
	if (rc == 0)
		publish_mcast(sw, mcast);
	return rc;
}

static int publish(void *arg, const struct table_rows *tables, unsigned n, struct table_error *err)
{
	struct sw *sw = arg;
	struct fwd *fwd, *old;
	struct mcast_fwd *mcast = NULL;
	struct fwd_sources from = {
		.tables = tables,
		.port = port_by_id,
		.learns = port_learns,
		.arg = sw,
		.n_workers = sw->config.workers,
	};
	int rc;

	(void)n;
	sw_neigh_list(sw, &from);
	rc = fwd_create(&from, &fwd, err);
	if (rc < 0)
		return rc;
	fwd->ecmp_seed = rte_jhash(sw->config.name, (uint32_t)strlen(sw->config.name), 0);
	rc = sw_tables_check(sw, fwd, err);
	if (rc == 0)
		rc = sw_bridge_check(sw, &tables[FWD_MAC], err);
	if (rc == 0)
		rc = make_mcast(
			sw, &tables[FWD_MCAST_GROUP], &tables[FWD_MCAST_SENDER], &mcast, err);
	if (rc < 0) {
		fwd_destroy(fwd);
		return rc;
	}
	old = atomic_exchange_explicit(&sw->fwd, fwd, memory_order_acq_rel);
	sw_neigh_listed(sw);
	publish_mcast(sw, mcast);
	sw_bridge_pin(sw, &tables[FWD_MAC]);
	sw_groups_follow(sw);
	if (old != NULL)
		sw_defer(sw, free_fwd, old);
	return 0;
}

unsigned sw_routes_nowhere(const struct sw *sw)
{
	return atomic_load(&sw->fwd)->n_nowhere;
}

void sw_fwd_publish(struct sw *sw)
{
	struct table_rows rows[FWD_N_TABLES];
	struct table_error err;

	for (unsigned i = 0; i < FWD_N_TABLES; i++)
		table_rows(sw->tables, i, &rows[i]);
	publish(sw, rows, FWD_N_TABLES, &err);
}

void sw_links_tick(struct sw *sw, uint64_t now)
{
	uint64_t links = 0;

	for (unsigned i = 0; i < sw->n_ports; i++) {
		links |= (uint64_t)port_link_up(&sw->ports[i]) << i;
		port_tick(&sw->ports[i], now);
	}
	if (links == sw->links)
		return;
	sw->links = links;
	sw_fwd_publish(sw);
}

int sw_tables_create(struct sw *sw, char err[SW_ERR_LEN])
{
	struct table_update *updates;
	struct table_error e = {0};
	unsigned n = sw->config.n_addresses;
	int rc;

	rc = table_registry_create(fwd_tables, FWD_N_TABLES, publish, sw, &sw->tables);
	if (rc < 0)
		return sw_fail(err, rc, "tables: %s", rte_strerror(-rc));
	if (n == 0) { /* nothing has been published yet */
		struct table_rows empty[FWD_N_TABLES] = {0};

		for (unsigned i = 0; i < FWD_N_TABLES; i++)
			empty[i].desc = fwd_tables[i];
		rc = publish(sw, empty, FWD_N_TABLES, &e);
		return rc < 0 ? sw_fail(err, rc, "%.190s", e.msg) : 0;
	}
	updates = calloc(n, sizeof(*updates));
	if (updates == NULL)
		return sw_fail(err, -ENOMEM, "addresses: no memory");
	for (unsigned i = 0; i < n; i++) {
		updates[i].table = FWD_LOCAL_ADDR;
		updates[i].entry.key[0].ip = sw->config.addresses[i];
	}
	rc = table_write(sw->tables, updates, n, &e);
	free(updates);
	return rc < 0 ? sw_fail(err, rc, "addresses: %.190s", e.msg) : 0;
}

struct table_registry *sw_tables(struct sw *sw)
{
	return sw->tables;
}
