/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration object of the switch: checked as a whole, before anything is opened. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/config/parts.h"
#include "ctrl/config/switch_config.h"
#include "dataplane/runtime/worker.h"
#include "lib/ctl/config.h"
#include "lib/port/config.h"

static int fail(char err[SW_ERR_LEN], int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(char err[SW_ERR_LEN], int rc, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err, SW_ERR_LEN, fmt, args);
	va_end(args);
	return rc;
}

static int get_addresses(const json_t *json, struct sw_config *c, char err[SW_ERR_LEN])
{
	const json_t *list = json_object_get(json, "addresses"), *v;
	size_t i;

	c->addresses = calloc(json_array_size(list) + 1, sizeof(*c->addresses));
	if (c->addresses == NULL)
		return fail(err, -ENOMEM, "addresses: no memory");
	json_array_foreach(list, i, v)
	{
		if (wire_ip_parse(json_string_value(v), &c->addresses[i]))
			return fail(err, -EINVAL,
				"addresses[%zu]: \"%.64s\" is not an IPv4 or IPv6 address", i,
				json_string_value(v));
		for (size_t j = 0; j < i; j++)
			if (wire_ip_eq(&c->addresses[i], &c->addresses[j]))
				return fail(err, -EINVAL, "addresses[%zu]: %s is there twice", i,
					json_string_value(v));
		c->n_addresses++;
	}
	return 0;
}

/* The port object proper, without the switch's own keys. */
static json_t *port_part(const json_t *v)
{
	json_t *copy = json_copy((json_t *)(uintptr_t)v);

	json_object_del(copy, "proxy_arp");
	json_object_del(copy, "mcast_learn");
	json_object_del(copy, "neigh_learn");
	json_object_del(copy, "bridge");
	json_object_del(copy, "flood_pps");
	json_object_del(copy, "impair");
	json_object_del(copy, "queue");
	return copy;
}

/* The drivers' own words for these come late and do not name the ports. */
static int shares_socket(
	const json_t *list, size_t i, size_t j, const struct sw_config *c, char err[SW_ERR_LEN])
{
	const json_t *mine = json_array_get(list, i), *other = json_array_get(list, j);
	const struct port_config *a = &c->ports[i].port, *b = &c->ports[j].port;
	int64_t id = ctl_int(&ctl_port_config, mine, "id");

	if (a->socket[0] == '\0' || strcmp(a->socket, b->socket) != 0)
		return 0;
	if (strcmp(a->type, b->type) != 0 || strcmp(a->type, "memif") != 0)
		return fail(err, -EINVAL, "ports[%zu].socket: is that of ports[%zu] too", i, j);
	if (ctl_int(&ctl_port_config, other, "id") != id)
		return 0;
	return fail(err, -EINVAL,
		"ports[%zu].id: %lld is ports[%zu]'s at this socket: give one of them another", i,
		(long long)id, j);
}

/* VLANs of whose bridges it is a port. */
static int get_bridge(const json_t *list, struct fwd_vlans **vlans, char *err, size_t cap)
{
	struct fwd_vlans *v;
	const json_t *item;
	size_t i;

	if (list == NULL)
		return 0;
	v = *vlans = calloc(1, sizeof(*v));
	if (v == NULL) {
		snprintf(err, cap, "bridge: no memory");
		return -ENOMEM;
	}
	json_array_foreach(list, i, item)
	{
		const json_int_t id = json_integer_value(item);

		if (id < 0 || id >= WIRE_VLAN_ID) {
			snprintf(err, cap, "bridge[%zu]: %lld is not in 0..%d", i, (long long)id,
				WIRE_VLAN_ID - 1);
			return -EINVAL;
		}
		if (v->bit[id / 64] >> id % 64 & 1) {
			snprintf(err, cap, "bridge[%zu]: %lld is there twice", i, (long long)id);
			return -EINVAL;
		}
		v->bit[id / 64] |= UINT64_C(1) << id % 64;
	}
	return 0;
}

static int get_port(const json_t *list, size_t i, struct sw_config *c, char err[SW_ERR_LEN])
{
	const json_t *v = json_array_get(list, i);
	const json_t *impair = json_object_get(v, "impair");
	struct sw_config_port *p = &c->ports[i];
	char what[PORT_ERR_LEN];
	json_t *part = port_part(v);
	int rc = port_config_parse(part, &p->port, what);

	json_decref(part);
	if (rc < 0)
		return fail(err, rc, "ports[%zu].%.220s", i, what);
	for (size_t j = 0; j < i; j++) {
		if (strcmp(p->port.name, c->ports[j].port.name) == 0)
			return fail(err, -EINVAL,
				"ports[%zu].name: \"%s\" is the name of ports[%zu] too", i,
				p->port.name, j);
		if (shares_socket(list, i, j, c, err))
			return -EINVAL;
	}
	p->proxy_arp = ctl_bool(&ctl_switch_port_config, v, "proxy_arp");
	p->neigh_learn = ctl_bool(&ctl_switch_port_config, v, "neigh_learn");
	p->mcast_learn = ctl_bool(&ctl_switch_port_config, v, "mcast_learn");
	p->flood_pps = (unsigned)ctl_int(&ctl_switch_port_config, v, "flood_pps");
	if (get_bridge(json_object_get(v, "bridge"), &p->bridge, what, sizeof(what)) < 0)
		return fail(err, -EINVAL, "ports[%zu].%.200s", i, what);
	if (p->bridge != NULL && p->proxy_arp)
		return fail(err, -EINVAL,
			"ports[%zu].proxy_arp: not at a port of a bridge, where hosts answer for "
			"themselves",
			i);
	p->impaired = impair != NULL;
	if (p->impaired && impair_parse(impair, &p->impair, what, sizeof(what)) < 0)
		return fail(err, -EINVAL, "ports[%zu].impair.%.200s", i, what);
	if (queue_parse(json_object_get(v, "queue"), &p->queue, what, sizeof(what)) < 0)
		return fail(err, -EINVAL, "ports[%zu].queue.%.200s", i, what);
	return 0;
}

static int get_ports(const json_t *json, struct sw_config *c, char err[SW_ERR_LEN])
{
	const json_t *list = json_object_get(json, "ports");
	size_t max = SW_MAX_PORTS < RTE_MAX_ETHPORTS ? SW_MAX_PORTS : RTE_MAX_ETHPORTS;

	if (json_array_size(list) > max)
		return fail(err, -EINVAL, "ports: %zu are more than the %zu that DPDK can have",
			json_array_size(list), max);
	for (size_t i = 0; i < json_array_size(list); i++) {
		int rc = get_port(list, i, c, err);

		if (rc < 0)
			return rc;
		c->n_ports++;
	}
	return 0;
}

static uint64_t get_ms(const json_t *json, const char *field)
{
	return (uint64_t)ctl_int(&ctl_switch_config, json, field) * 1000000;
}

/* What the schema has checked completely. */
static void get_plain(const json_t *json, struct sw_config *c)
{
	const struct ctl_field *schema = &ctl_switch_config;
	const char *lcores = ctl_text(schema, json, "lcores");

	snprintf(c->name, sizeof(c->name), "%s", ctl_text(schema, json, "name"));
	snprintf(c->lcores, sizeof(c->lcores), "%s", lcores ? lcores : "");
	c->workers = (unsigned)ctl_int(schema, json, "workers");
	c->hugepages = ctl_bool(schema, json, "hugepages");
	c->pci = ctl_bool(schema, json, "pci");
	c->telemetry = ctl_bool(schema, json, "telemetry");
	c->idle = (enum port_idle)port_idle_parse(ctl_text(schema, json, "idle"));
	c->arena_bytes = (size_t)ctl_int(schema, json, "arena_kb") << 10;
	c->icmp_errors = ctl_bool(schema, json, "icmp_errors");
	c->lldp = ctl_bool(schema, json, "lldp");
	c->neigh_max = (unsigned)ctl_int(schema, json, "neigh_max");
	c->mac_max = (unsigned)ctl_int(schema, json, "mac_max");
	c->mac_age_ns = (uint64_t)ctl_int(schema, json, "mac_age_s") * 1000000000;
	c->mcast_max = (unsigned)ctl_int(schema, json, "mcast_max");
	c->memory_mb = (unsigned)ctl_int(schema, json, "memory_mb");
	c->slot_rest_ns = get_ms(json, "slot_rest_ms");
	c->drain_ns = get_ms(json, "drain_ms");
	c->stall_ns = get_ms(json, "stall_ms");
}

static int parse(const json_t *json, struct sw_config *c, char err[SW_ERR_LEN])
{
	struct ctl_problem problem;
	char what[SW_ERR_LEN];

	if (ctl_check_value(&ctl_switch_config, json, "", &problem) < 0) {
		ctl_problem_text(&problem, err, SW_ERR_LEN);
		return -EINVAL;
	}
	get_plain(json, c);
	if (c->workers == 0 && c->lcores[0] != '\0')
		return fail(err, -EINVAL, "lcores: cannot be set where \"workers\" is auto");
	if (classes_parse(json_object_get(json, "dscp"), &c->classes, what, sizeof(what)) < 0)
		return fail(err, -EINVAL, "dscp.%.200s", what);
	if (get_addresses(json, c, err) || get_ports(json, c, err))
		return -EINVAL;
	return 0;
}

int sw_config_parse(const json_t *json, struct sw_config *config, char err[SW_ERR_LEN])
{
	json_t *plain = ctl_strip_comments(json);
	int rc;

	static_assert(SW_ERR_LEN == (int)PORT_ERR_LEN, "messages of lib/port are passed on");
	static_assert(SW_MAX_PORTS == (int)CTL_MAX_PORTS, "as docs/config.md says");
	static_assert(WORKER_MAX == (int)CTL_MAX_WORKERS, "as docs/config.md says");
	memset(config, 0, sizeof(*config));
	if (plain == NULL)
		return fail(err, -ENOMEM, "no memory");
	rc = parse(plain, config, err);
	json_decref(plain);
	if (rc < 0)
		sw_config_free(config);
	return rc;
}

static void free_json(void *json)
{
	json_decref(json);
}

int switch_create(const json_t *json, bool plugged, struct sw **sw, char err[SW_ERR_LEN])
{
	struct sw_config config;
	int rc = sw_config_parse(json, &config, err);

	if (rc < 0)
		return rc;
	config.given = json_copy((json_t *)(uintptr_t)json);
	config.free_given = free_json;
	json_object_del(config.given, "tables");
	return (plugged ? sw_create : sw_create_unplugged)(&config, sw, err);
}

json_t *sw_config_json(const struct sw *sw)
{
	return json_incref(sw_given(sw));
}
