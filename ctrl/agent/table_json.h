/* SPDX-License-Identifier: BSD-3-Clause */
/* Table entries between JSON and the registry, after the table's descriptor. Values in JSON:
 *
 *	uint    integer, or a string "18", "0x12"
 *	bool    true or false, or the strings "true", "false"
 *	ip...   "10.0.0.1", "fd00::1"
 *	mac     "02:00:00:00:00:01"
 *	port    name of a port
 *	lpm     "10.0.0.0/24"; without a length: that address alone
 *	ternary "0x0400&&&0xfc00" (value and mask); a plain uint: all bits count;
 *		of IP types as lpm, of a port its name;
 *	        "*" or absent: none
 *	range   "10..20"; a plain uint: that one alone; "*" or absent: any
 *
 * To JSON they go in canonical form; fields that match anything, and optional parameters that are
 * not set, are left out. */
#ifndef AGENT_TABLE_JSON_H
#define AGENT_TABLE_JSON_H

#include "ctrl/agent/rpc.h"

/* Names of the switch's ports, read once per request. */
struct port_names {
	unsigned n;
	struct {
		char name[PORT_NAME_LEN];
		uint16_t id;
	} port[SW_MAX_PORTS];
};
void port_names_read(struct sw *sw, struct port_names *ports);
const char *port_names_of(const struct port_names *ports, uint16_t id); /* NULL if unknown */
int port_names_id(const struct port_names *ports, const char *name);    /* -ENOENT */

const char *table_type_name(enum table_type type);
const char *table_match_name(enum table_match match);

/* The key of an entry; absent fields of a filter (any is not NULL) are allowed and set in *any as a
 * bit per field. at is the path of the key in messages, "updates[3].key". -EINVAL. */
int table_key_from_json(const struct table_desc *desc, const json_t *key, const char *at,
	const struct port_names *ports, struct table_entry *entry, unsigned *any,
	struct rpc_error *e);

/* Action and data; at is the path of the entry. -EINVAL. */
int table_action_from_json(const struct table_desc *desc, const char *action, const json_t *data,
	const char *at, const struct port_names *ports, struct table_entry *entry,
	struct rpc_error *e);

/* {"key":{},"action":"","data":{}} and "priority" where the table has one. */
json_t *table_entry_to_json(const struct table_desc *desc, const struct table_entry *entry,
	const struct port_names *ports);

bool table_has_priority(const struct table_desc *desc);

/* -ENOENT: the parameter at `path` names no table; the message names those that there are. */
int rpc_no_table(
	const struct table_registry *reg, const char *name, const char *path, struct rpc_error *e);
/* The registry's error in terms of the request; returns rc. at: path of the update at fault. */
int rpc_write_failed(int rc, const struct table_error *err, const char *at, struct rpc_error *e);

/* The i-th row: one of those that the switch makes of its configuration's "addresses"? */
bool table_row_is_own(const json_t *config, const struct table_rows *rows, uint32_t i);

/* startup.c: makes the tables what a configuration's "tables" say (NULL: nothing is in them but the
 * switch's own rows), as one batch, and says by how much that changed them. -errno. */
struct table_change {
	unsigned added, changed, removed, kept;
};
int tables_replace(
	struct sw *sw, const json_t *tables, struct table_change *change, struct rpc_error *e);

#endif
