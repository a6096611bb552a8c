/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/agent/table_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WHY_LEN = 384 };

/* ---- names ---- */

void port_names_read(struct sw *sw, struct port_names *ports)
{
	struct sw_port p;

	ports->n = 0;
	for (unsigned i = 0; i < sw_n_ports(sw) && ports->n < SW_MAX_PORTS; i++) {
		if (sw_port_get(sw, i, &p))
			continue;
		memcpy(ports->port[ports->n].name, p.name, sizeof(p.name));
		ports->port[ports->n++].id = p.id;
	}
}

const char *port_names_of(const struct port_names *ports, uint16_t id)
{
	for (unsigned i = 0; i < ports->n; i++)
		if (ports->port[i].id == id)
			return ports->port[i].name;
	return NULL;
}

int port_names_id(const struct port_names *ports, const char *name)
{
	for (unsigned i = 0; i < ports->n; i++)
		if (!strcmp(ports->port[i].name, name))
			return ports->port[i].id;
	return -ENOENT;
}

const char *table_type_name(enum table_type type)
{
	static const char *const names[] = {"uint", "bool", "ip4", "ip6", "ip", "mac", "port"};

	return names[type];
}

const char *table_match_name(enum table_match match)
{
	static const char *const names[] = {"exact", "lpm", "ternary", "range"};

	return names[match];
}

bool table_has_priority(const struct table_desc *desc)
{
	for (unsigned i = 0; i < desc->n_keys; i++)
		if (desc->keys[i].match == TABLE_TERNARY || desc->keys[i].match == TABLE_RANGE)
			return true;
	return false;
}

/* ---- values from JSON ---- */

static uint64_t field_max(const struct table_field *f)
{
	return f->max ? f->max : UINT64_MAX;
}

static uint64_t field_mask(const struct table_field *f)
{
	return UINT64_MAX >> __builtin_clzll(field_max(f));
}

static int parse_u64(const char *text, size_t len, uint64_t *u)
{
	json_t *s = json_stringn(text, len);
	int rc = s ? ctl_get_u64(s, u) : -EINVAL;

	json_decref(s);
	return rc;
}

/* Two numbers around a separator. */
static int parse_pair(const char *text, const char *sep, uint64_t *a, uint64_t *b)
{
	const char *at = strstr(text, sep);

	if (!at)
		return -ENOENT;
	const char *right = at + strlen(sep);
	if (parse_u64(text, (size_t)(at - text), a) || parse_u64(right, strlen(right), b))
		return -EINVAL;
	return 0;
}

static const char *uint_from_json(
	const struct table_field *f, bool key, const json_t *v, struct table_value *out)
{
	const char *text = json_string_value(v);
	enum table_match match = key ? f->match : TABLE_EXACT;

	if (match == TABLE_TERNARY) {
		if (text && !strcmp(text, "*"))
			return NULL;
		if (text && strstr(text, "&&&"))
			return parse_pair(text, "&&&", &out->u, &out->mask)
				       ? "must be \"value&&&mask\""
				       : NULL;
		out->mask = field_mask(f);
		return ctl_get_u64(v, &out->u) ? "must be an integer, \"value&&&mask\" or \"*\""
					       : NULL;
	}
	if (match == TABLE_RANGE) {
		if (text && !strcmp(text, "*")) {
			out->u = f->min;
			out->high = field_max(f);
			return NULL;
		}
		if (text && strstr(text, ".."))
			return parse_pair(text, "..", &out->u, &out->high) ? "must be \"low..high\""
									   : NULL;
		if (ctl_get_u64(v, &out->u))
			return "must be an integer, \"low..high\" or \"*\"";
		out->high = out->u;
		return NULL;
	}
	return ctl_get_u64(v, &out->u) ? "must be an integer, or a string of digits" : NULL;
}

static const char *bool_from_json(const json_t *v, struct table_value *out)
{
	const char *text = json_string_value(v);

	if (!json_is_boolean(v) && (!text || (strcmp(text, "true") && strcmp(text, "false"))))
		return "must be true or false";
	out->u = json_is_true(v) || (text && !strcmp(text, "true"));
	return NULL;
}

static const char *ip_from_json(
	const struct table_field *f, bool key, const json_t *v, struct table_value *out)
{
	bool lpm = key && f->match != TABLE_EXACT;
	const char *text = json_string_value(v), *slash = text ? strchr(text, '/') : NULL;
	size_t len = text ? slash ? (size_t)(slash - text) : strlen(text) : 0;
	char addr[WIRE_IP_STRLEN];
	uint64_t prefix;

	out->any = key && f->match == TABLE_TERNARY && text && !strcmp(text, "*");
	if (out->any)
		return NULL;
	if (!text || len >= sizeof(addr) || (slash && !lpm))
		return lpm ? "must be \"address/length\"" : "must be an IP address";
	memcpy(addr, text, len);
	addr[len] = '\0';
	if (wire_ip_parse(addr, &out->ip))
		return lpm ? "must be \"address/length\"" : "must be an IP address";
	if (!lpm)
		return NULL;
	out->prefix = wire_ip_is4(&out->ip) ? 32 : 128;
	if (!slash)
		return NULL;
	if (parse_u64(slash + 1, strlen(slash + 1), &prefix) || prefix > UINT8_MAX)
		return "must be \"address/length\"";
	out->prefix = (uint8_t)prefix;
	return NULL;
}

/* "is not a port of this switch, which has: p0, p1", as many as fit. */
static const char *no_such_port(const struct port_names *ports, char why[WHY_LEN])
{
	size_t at = (size_t)snprintf(why, WHY_LEN, "is not a port of this switch, which has: ");

	for (unsigned i = 0; i < ports->n; i++) {
		const char *name = ports->port[i].name;

		if (at + strlen(name) + sizeof(", , ...") > WHY_LEN) {
			snprintf(why + at, WHY_LEN - at, ", ...");
			break;
		}
		at += (size_t)snprintf(why + at, WHY_LEN - at, "%s%s", i ? ", " : "", name);
	}
	return why;
}

static const char *port_from_json(const struct table_field *f, bool key, const json_t *v,
	const struct port_names *ports, struct table_value *out, char why[WHY_LEN])
{
	bool ternary = key && f->match == TABLE_TERNARY;

	if (ternary && json_is_string(v) && !strcmp(json_string_value(v), "*"))
		return NULL;
	int id = json_is_string(v) ? port_names_id(ports, json_string_value(v)) : -ENOENT;

	if (!json_is_string(v))
		return "must be the name of a port";
	if (id < 0)
		return no_such_port(ports, why);
	out->u = (uint64_t)id;
	out->mask = ternary ? UINT16_MAX : 0;
	return NULL;
}

/* NULL, or why v is no value for the field; why is room for a reason that is made up. Limits are
 * the registry's to check. */
static const char *value_from_json(const struct table_field *f, bool key, const json_t *v,
	const struct port_names *ports, struct table_value *out, char why[WHY_LEN])
{
	switch (f->type) {
	case TABLE_UINT:
		return uint_from_json(f, key, v, out);
	case TABLE_BOOL:
		return bool_from_json(v, out);
	case TABLE_IP4:
	case TABLE_IP6:
	case TABLE_IP:
		return ip_from_json(f, key, v, out);
	case TABLE_MAC:
		return json_is_string(v) && !wire_mac_parse(json_string_value(v), out->mac)
			       ? NULL
			       : "must be a MAC address";
	case TABLE_PORT:
		return port_from_json(f, key, v, ports, out, why);
	}
	return "has a type that is not known";
}

static const struct table_field *find_field(
	const struct table_field *f, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(f[i].name, name))
			return &f[i];
	return NULL;
}

static const char *field_names(const struct table_field *f, unsigned n, char *buf, size_t cap)
{
	size_t at = 0;

	snprintf(buf, cap, "none");
	for (unsigned i = 0; i < n && at < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%s%s", i ? ", " : "", f[i].name);
	return buf;
}

static int no_unknown(const struct table_field *f, unsigned n, const json_t *object, const char *at,
	const char *owner, struct rpc_error *e)
{
	char path[CTL_PATH_LEN], all[256];
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)object, name, v)
	{
		if (find_field(f, n, name))
			continue;
		snprintf(path, sizeof(path), "%s.%.48s", at, name);
		return rpc_fail(e, -EINVAL, path, "is not a field of %s, which has: %s", owner,
			field_names(f, n, all, sizeof(all)));
	}
	return 0;
}

/* What an absent key field stands for; false if it must be given. */
static bool wildcard(const struct table_field *f, struct table_value *out)
{
	if (f->match == TABLE_RANGE) {
		out->u = f->min;
		out->high = field_max(f);
	}
	out->any = f->match == TABLE_TERNARY && table_is_ip(f->type);
	return f->match == TABLE_TERNARY || f->match == TABLE_RANGE;
}

int table_key_from_json(const struct table_desc *desc, const json_t *key, const char *at,
	const struct port_names *ports, struct table_entry *entry, unsigned *any,
	struct rpc_error *e)
{
	char path[CTL_PATH_LEN], owner[64], made[WHY_LEN];

	snprintf(owner, sizeof(owner), "the key of table %s", desc->name);
	int rc = no_unknown(desc->keys, desc->n_keys, key, at, owner, e);
	if (rc)
		return rc;
	memset(entry->key, 0, sizeof(entry->key));
	for (unsigned i = 0; i < desc->n_keys; i++) {
		const struct table_field *f = &desc->keys[i];
		const json_t *v = json_object_get(key, f->name);
		const char *why = NULL;

		if (v)
			why = value_from_json(f, true, v, ports, &entry->key[i], made);
		else if (any)
			*any |= 1u << i;
		else if (!wildcard(f, &entry->key[i]))
			why = "is missing";
		if (!why)
			continue;
		snprintf(path, sizeof(path), "%s.%s", at, f->name);
		return rpc_fail(e, -EINVAL, path, "%s", why);
	}
	return 0;
}

static int find_action(const struct table_desc *desc, const char *name)
{
	for (unsigned i = 0; i < desc->n_actions; i++)
		if (!strcmp(desc->actions[i].name, name))
			return (int)i;
	return -ENOENT;
}

static int unknown_action(
	const struct table_desc *desc, const char *name, const char *path, struct rpc_error *e)
{
	char all[256];
	size_t at = 0;

	for (unsigned i = 0; i < desc->n_actions && at < sizeof(all); i++)
		at += (size_t)snprintf(
			all + at, sizeof(all) - at, "%s%s", i ? ", " : "", desc->actions[i].name);
	return rpc_fail(e, -EINVAL, path, "\"%.48s\" is not an action of table %s, which has: %s",
		name, desc->name, all);
}

int table_action_from_json(const struct table_desc *desc, const char *action, const json_t *data,
	const char *at, const struct port_names *ports, struct table_entry *entry,
	struct rpc_error *e)
{
	char path[CTL_PATH_LEN], owner[64], made[WHY_LEN];

	snprintf(path, sizeof(path), "%s.action", at);
	if (!action)
		return rpc_fail(e, -EINVAL, path, "is missing");
	int index = find_action(desc, action);
	if (index < 0)
		return unknown_action(desc, action, path, e);
	const struct table_action *a = &desc->actions[index];
	entry->action = (uint16_t)index;
	memset(entry->param, 0, sizeof(entry->param));
	snprintf(path, sizeof(path), "%s.data", at);
	snprintf(owner, sizeof(owner), "action %s", a->name);
	int rc = no_unknown(a->params, a->n_params, data, path, owner, e);
	if (rc)
		return rc;
	for (unsigned i = 0; i < a->n_params; i++) {
		const struct table_field *f = &a->params[i];
		const json_t *v = json_object_get(data, f->name);
		const char *why = f->optional ? NULL : "is missing";

		if (v)
			why = value_from_json(f, false, v, ports, &entry->param[i], made);
		if (!why)
			continue;
		snprintf(path, sizeof(path), "%s.data.%s", at, f->name);
		return rpc_fail(e, -EINVAL, path, "%s", why);
	}
	return 0;
}

/* ---- values to JSON ---- */

static json_t *uint_to_json(const struct table_field *f, bool key, const struct table_value *v)
{
	char text[64];
	int digits = (67 - __builtin_clzll(field_max(f))) / 4;

	if (key && f->match == TABLE_TERNARY) {
		if (!v->mask)
			return NULL;
		snprintf(text, sizeof(text), "0x%0*" PRIx64 "&&&0x%0*" PRIx64, digits, v->u, digits,
			v->mask);
		return json_string(text);
	}
	if (key && f->match == TABLE_RANGE) {
		if (v->u == f->min && v->high == field_max(f))
			return NULL;
		snprintf(text, sizeof(text), "%" PRIu64 "..%" PRIu64, v->u, v->high);
		return json_string(text);
	}
	return ctl_u64(v->u);
}

/* New reference; NULL: nothing to say, the field is left out. */
static json_t *value_to_json(const struct table_field *f, bool key, const struct table_value *v,
	const struct port_names *ports)
{
	char text[WIRE_IP_STRLEN + 4];
	const char *name;

	switch (f->type) {
	case TABLE_UINT:
		return uint_to_json(f, key, v);
	case TABLE_BOOL:
		return json_boolean(v->u);
	case TABLE_IP4:
	case TABLE_IP6:
	case TABLE_IP:
		if (v->any)
			return NULL;
		wire_ip_format(&v->ip, text, WIRE_IP_STRLEN);
		if (key && f->match != TABLE_EXACT)
			snprintf(text + strlen(text), 5, "/%u", v->prefix);
		return json_string(text);
	case TABLE_MAC:
		return json_string(wire_mac_format(v->mac, text, sizeof(text)));
	case TABLE_PORT:
		if (key && f->match == TABLE_TERNARY && !v->mask)
			return NULL;
		name = port_names_of(ports, (uint16_t)v->u);
		return name ? json_string(name) : ctl_u64(v->u);
	}
	return NULL;
}

static bool is_unset(const struct table_field *f, const struct table_value *v)
{
	static const struct table_value zero;

	return f->optional && !memcmp(v, &zero, sizeof(zero));
}

json_t *table_entry_to_json(const struct table_desc *desc, const struct table_entry *entry,
	const struct port_names *ports)
{
	const struct table_action *a = &desc->actions[entry->action];
	json_t *key = json_object(), *data = json_object(), *out = json_object();

	for (unsigned i = 0; i < desc->n_keys; i++) {
		json_t *v = value_to_json(&desc->keys[i], true, &entry->key[i], ports);

		if (v)
			json_object_set_new(key, desc->keys[i].name, v);
	}
	for (unsigned i = 0; i < a->n_params; i++)
		if (!is_unset(&a->params[i], &entry->param[i]))
			json_object_set_new(data, a->params[i].name,
				value_to_json(&a->params[i], false, &entry->param[i], ports));
	json_object_set_new(out, "key", key);
	if (table_has_priority(desc))
		json_object_set_new(out, "priority", json_integer(entry->priority));
	json_object_set_new(out, "action", json_string(a->name));
	json_object_set_new(out, "data", data);
	return out;
}
