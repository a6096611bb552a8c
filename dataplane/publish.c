/* SPDX-License-Identifier: BSD-3-Clause */
/* What the packet path reads of the tables, made anew when they change and swapped in as a whole.
 */
#include <errno.h>
#include <rte_errno.h>
#include <rte_jhash.h>
#include <stdio.h>
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

/* ---- parts ---- */

/* What is made anew of which tables. */
enum part { PART_FWD = 1, PART_MCAST = 2, PART_MAC = 4, PART_ACL = 8, PART_ALL = 15 };

static const uint8_t part_of[FWD_N_TABLES] = {
	[FWD_LOCAL_ADDR] = PART_FWD,
	[FWD_NEIGH] = PART_FWD,
	[FWD_ROUTE4] = PART_FWD,
	[FWD_ROUTE6] = PART_FWD,
	[FWD_LOCAL_SID] = PART_FWD,
	[FWD_MCAST_GROUP] = PART_MCAST,
	[FWD_MCAST_SENDER] = PART_MCAST,
	[FWD_MAC] = PART_MAC,
	[FWD_ACL] = PART_ACL,
};

static int make_fwd(
	struct sw *sw, const struct table_rows *tables, struct fwd **fwd, struct table_error *err)
{
	struct fwd_sources from = {
		.tables = tables,
		.port = port_by_id,
		.learns = port_learns,
		.arg = sw,
		.n_workers = sw->config.workers,
	};
	int rc;

	sw_neigh_list(sw, &from);
	rc = fwd_create(&from, fwd, err);
	if (rc < 0) {
		*fwd = NULL;
		return rc;
	}
	(*fwd)->ecmp_seed = rte_jhash(sw->config.name, (uint32_t)strlen(sw->config.name), 0);
	return sw_tables_check(sw, *fwd, err);
}

static int make_mcast(struct sw *sw, const struct table_rows *tables, struct mcast_fwd **mcast,
	struct table_error *err)
{
	const struct mcast_sources from = {
		&tables[FWD_MCAST_GROUP], &tables[FWD_MCAST_SENDER], sw->members, sw->ports};

	return mcast_fwd_create(&from, port_by_id, sw, sw->config.workers, mcast, err);
}

static int make_parts(struct sw *sw, const struct table_rows *tables, unsigned parts,
	struct published *next, struct table_error *err)
{
	int rc = 0;

	if (parts & PART_FWD)
		rc = make_fwd(sw, tables, &next->fwd, err);
	if (rc == 0 && parts & PART_MAC)
		rc = sw_bridge_check(sw, &tables[FWD_MAC], err);
	if (rc == 0 && parts & PART_MCAST)
		rc = make_mcast(sw, tables, &next->mcast, err);
	if (rc == 0 && parts & PART_ACL)
		rc = acl_create(&tables[FWD_ACL], sw->config.workers, &next->acl, err);
	return rc;
}

static void destroy_parts(struct published *p, unsigned parts)
{
	if (parts & PART_FWD)
		fwd_destroy(p->fwd);
	if (parts & PART_MCAST)
		mcast_fwd_destroy(p->mcast);
	if (parts & PART_ACL)
		acl_destroy(p->acl);
	free(p);
}

/* Counters of its rows go on in what has replaced them. */
static void free_old(struct sw *sw, void *what)
{
	struct published *old = what, *now = atomic_load(&sw->published);

	if (old->ends & PART_FWD)
		fwd_sids_inherit(&now->fwd->sids, &old->fwd->sids);
	if (old->ends & PART_MCAST)
		mcast_fwd_inherit(now->mcast, old->mcast);
	if (old->ends & PART_ACL)
		acl_inherit(now->acl, old->acl);
	destroy_parts(old, old->ends);
}

/* Takes the parts that have been made, and those that are published of the others. */
static void swap(struct sw *sw, struct published *next, unsigned parts)
{
	struct published *old = atomic_load(&sw->published);

	if (!(parts & PART_FWD))
		next->fwd = old->fwd;
	if (!(parts & PART_MCAST))
		next->mcast = old->mcast;
	if (!(parts & PART_ACL))
		next->acl = old->acl;
	sw->fwd = next->fwd;
	atomic_store_explicit(&sw->published, next, memory_order_release);
	if (parts & PART_FWD) {
		sw_neigh_listed(sw);
		sw_groups_follow(sw);
	}
	if (old == NULL)
		return;
	old->ends = parts;
	sw_defer(sw, free_old, old);
}

static int publish_parts(
	struct sw *sw, const struct table_rows *tables, unsigned parts, struct table_error *err)
{
	struct published *next = calloc(1, sizeof(*next));
	int rc;

	if (next == NULL) {
		snprintf(err->msg, sizeof(err->msg), "no memory");
		return -ENOMEM;
	}
	rc = make_parts(sw, tables, parts, next, err);
	if (rc < 0) {
		destroy_parts(next, PART_ALL);
		return rc;
	}
	if (parts & PART_MAC)
		sw_bridge_pin(sw, &tables[FWD_MAC]);
	swap(sw, next, parts);
	return 0;
}

/* ---- when ---- */

static int publish(void *arg, const struct table_rows *tables, unsigned n, struct table_error *err)
{
	unsigned parts = 0;

	for (unsigned i = 0; i < n; i++)
		if (tables[i].changed)
			parts |= part_of[i];
	return publish_parts(arg, tables, parts, err);
}

static int publish_again(struct sw *sw, unsigned parts, struct table_error *err)
{
	struct table_rows rows[FWD_N_TABLES];

	for (unsigned i = 0; i < FWD_N_TABLES; i++)
		table_rows(sw->tables, i, &rows[i]);
	return publish_parts(sw, rows, parts, err);
}

int sw_mcast_publish(struct sw *sw)
{
	struct table_error err;

	return publish_again(sw, PART_MCAST, &err);
}

void sw_fwd_publish(struct sw *sw)
{
	struct table_error err;

	publish_again(sw, PART_FWD, &err);
}

unsigned sw_routes_nowhere(const struct sw *sw)
{
	return sw->fwd->n_nowhere;
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
	rc = publish_again(sw, PART_ALL, &e); /* of empty tables */
	if (rc < 0)
		return sw_fail(err, rc, "%.190s", e.msg);
	if (n == 0)
		return 0;
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

void sw_tables_destroy(struct sw *sw)
{
	struct published *last = atomic_load(&sw->published);

	table_registry_destroy(sw->tables);
	if (last != NULL)
		destroy_parts(last, PART_ALL);
}

struct table_registry *sw_tables(struct sw *sw)
{
	return sw->tables;
}
