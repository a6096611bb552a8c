/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread's part of learning bridges: reads what workers have noted, keeps the table
 * (mac_table.h) and writes what workers look up. */
#include <errno.h>
#include <inttypes.h>
#include <rte_hash_crc.h>
#include <rte_ring_elem.h>
#include <stdlib.h>

#include "dataplane/l2/bridge.h"
#include "dataplane/sw.h"

enum { KEY_MAC, KEY_VLAN, PARAM_PORT = 0 };

struct sw_bridge {
	struct bridge shared;
	struct mac_table table;
	uint8_t heard[MAC_ENTRIES];
	struct mac_pin pins[MAC_MAX_STATIC];
};

static_assert(MAC_ENTRIES <= UINT16_MAX, "bridge_data");

/* ---- what the table wants done ---- */

static int put(void *arg, unsigned i, const struct mac_entry *e)
{
	struct sw *sw = arg;
	const uintptr_t data = bridge_data(i, sw->ports[e->port].id, e->pinned);

	return rte_hash_add_key_data(sw->bridge->shared.macs, &e->key, (void *)data);
}

/* Its place is free when no worker can see it any more: the hash sees to that. */
static void forget(void *arg, uint64_t key)
{
	struct sw *sw = arg;

	rte_hash_del_key(sw->bridge->shared.macs, &key);
}

static bool heard(void *arg, unsigned i)
{
	struct sw *sw = arg;

	return __atomic_exchange_n(&sw->bridge->heard[i], 0, __ATOMIC_RELAXED) != 0;
}

static const struct mac_ops ops = {put, forget, heard};

/* ---- turns ---- */

void sw_bridge_turn(struct sw *sw, uint64_t now)
{
	struct sw_bridge *b = sw->bridge;
	struct bridge_note note;

	if (b == NULL)
		return;
	for (unsigned i = 0; i < BRIDGE_NOTES &&
			     rte_ring_dequeue_elem(b->shared.notes, &note, sizeof(note)) == 0;
		i++)
		mac_table_heard(&b->table, note.key, (uint16_t)sw_port_index(sw, note.port), now);
}

void sw_bridge_tick(struct sw *sw, uint64_t now)
{
	struct sw_bridge *b = sw->bridge;

	if (b == NULL)
		return;
	sw_bridge_turn(sw, now);
	/* Whoever was behind a link that is down may come back by another. */
	for (unsigned i = 0; i < sw->n_ports; i++)
		if (b->table.n_of[i] > 0 && !(sw->links >> i & 1))
			mac_table_flush(&b->table, (uint16_t)i);
	mac_table_tick(&b->table, now);
}

/* ---- rows of table mac ---- */

static int bad(struct table_error *err, const struct table_entry *e, const char *why)
{
	char mac[WIRE_MAC_STRLEN];

	snprintf(err->msg, sizeof(err->msg), "mac %s in VLAN %" PRIu64 ": %s",
		wire_mac_format(e->key[KEY_MAC].mac, mac, sizeof(mac)), e->key[KEY_VLAN].u, why);
	return -EINVAL;
}

static struct mac_pin pin_of(const struct sw *sw, const struct table_entry *e)
{
	return (struct mac_pin){mac_key(e->key[KEY_MAC].mac, (uint16_t)e->key[KEY_VLAN].u),
		(uint16_t)sw_port_index(sw, (uint16_t)e->param[PARAM_PORT].u)};
}

int sw_bridge_check(struct sw *sw, const struct table_rows *rows, struct table_error *err)
{
	const struct sw_bridge *b = sw->bridge;

	for (uint32_t i = 0; i < rows->n; i++) {
		const struct table_entry *e = &rows->entry[i];
		const uint64_t port = e->param[PARAM_PORT].u;

		if (b == NULL || port >= RTE_MAX_ETHPORTS ||
			!bridge_has(&b->shared, (uint16_t)port, (uint16_t)e->key[KEY_VLAN].u))
			return bad(err, e, "its port is in no bridge of this VLAN");
		if (!mac_is_host(&b->table, mac_key(e->key[KEY_MAC].mac, 0)))
			return bad(err, e, "is no address of a host");
	}
	return 0;
}

void sw_bridge_pin(struct sw *sw, const struct table_rows *rows)
{
	struct sw_bridge *b = sw->bridge;

	if (b == NULL || (rows->n == 0 && b->table.n_pinned == 0))
		return;
	for (uint32_t i = 0; i < rows->n; i++)
		b->pins[i] = pin_of(sw, &rows->entry[i]);
	mac_table_pin(&b->table, b->pins, rows->n);
}

/* ---- life ---- */

/* True: some port is in a bridge. */
static bool take_ports(struct sw *sw, struct bridge *b)
{
	bool any = false;

	for (unsigned i = 0; i < sw->n_ports; i++) {
		const uint8_t *mac = sw->ports[i].mac;

		b->vlans[sw->ports[i].id] = sw->config.ports[i].bridge;
		any |= sw->config.ports[i].bridge != NULL;
		memcpy(b->own[b->n_own++], mac, 6);
		b->own_ends[mac[5] / 64] |= UINT64_C(1) << mac[5] % 64;
	}
	return any;
}

/* Twice as large as need be: places of what is forgotten come back late. */
static struct rte_hash *make_hash(struct sw *sw)
{
	const struct rte_hash_parameters p = {
		.name = "macs",
		.entries = 2 * MAC_ENTRIES,
		.key_len = sizeof(uint64_t),
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY,
		.extra_flag =
			RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF | RTE_HASH_EXTRA_FLAGS_EXT_TABLE,
	};
	struct rte_hash_rcu_config rcu = {.v = sw->rcu, .mode = RTE_HASH_QSBR_MODE_DQ};
	struct rte_hash *h = rte_hash_create(&p);

	if (h != NULL && rte_hash_rcu_qsbr_add(h, &rcu) != 0) {
		rte_hash_free(h);
		h = NULL;
	}
	return h;
}

int sw_bridge_create(struct sw *sw, char err[SW_ERR_LEN])
{
	struct sw_bridge *b = calloc(1, sizeof(*b));

	static_assert(SW_MAX_PORTS <= (int)MAC_MAX_PORTS, "the table's ports");
	if (b == NULL)
		return sw_fail(err, -ENOMEM, "no memory for bridges");
	if (!take_ports(sw, &b->shared)) {
		free(b);
		return 0;
	}
	sw->bridge = b;
	b->shared.heard = b->heard;
	mac_table_init(&b->table, sw->config.mac_max, sw->config.mac_age_ns, b->shared.own,
		b->shared.n_own, &ops, sw);
	b->shared.macs = make_hash(sw);
	b->shared.notes = rte_ring_create_elem("mac_notes", sizeof(struct bridge_note),
		BRIDGE_NOTES, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (b->shared.macs == NULL || b->shared.notes == NULL)
		return sw_fail(err, -ENOMEM, "no memory for bridges: raise \"memory_mb\"");
	for (unsigned i = 0; i < sw->n_workers; i++)
		sw->worker[i]->bridge = &b->shared;
	return 0;
}

void sw_bridge_destroy(struct sw *sw)
{
	if (sw->bridge == NULL)
		return;
	rte_ring_free(sw->bridge->shared.notes);
	rte_hash_free(sw->bridge->shared.macs);
	free(sw->bridge);
	sw->bridge = NULL;
}

/* ---- for the control plane ---- */

unsigned sw_bridge_learnt(const struct sw *sw)
{
	return sw->bridge != NULL ? sw->bridge->table.n_learnt : 0;
}

unsigned sw_macs(const struct sw *sw, struct mac_counters *count, uint64_t *held)
{
	*count = (struct mac_counters){0};
	*held = 0;
	if (sw->bridge == NULL)
		return 0;
	for (unsigned i = 0; i < sw->n_workers; i++)
		*held += sw->worker[i]->bridge_held;
	*count = sw->bridge->table.count;
	return sw->bridge->table.n_learnt + sw->bridge->table.n_pinned;
}

int sw_mac_get(const struct sw *sw, unsigned *at, struct sw_mac_info *info)
{
	const uint64_t now = sw_now(sw);

	for (; sw->bridge != NULL && *at < MAC_ENTRIES; ++*at) {
		const struct mac_entry *e = &sw->bridge->table.entry[*at];

		if (!e->used)
			continue;
		++*at;
		*info = (struct sw_mac_info){.vlan = mac_vlan_of_key(e->key),
			.is_static = e->pinned,
			.idle_ns = now > e->heard ? now - e->heard : 0};
		mac_of_key(e->key, info->mac);
		memcpy(info->port, sw->ports[e->port].config.name, sizeof(info->port));
		return 0;
	}
	return -ENOENT;
}
