/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration object of the switch: checked as a whole, before anything is opened. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/sw.h"

enum {
	MAX_ADDRESSES = 256,
	ARENA_KB_DEFAULT = 4096,
	ARENA_KB_MAX = 1 << 20,
	MEMORY_MB_MIN = 64,
	MEMORY_MB_MAX = 1 << 20,
	MEMORY_MB_DEFAULT = 256,
	MS_MAX = 3600000,
};

static const char *const keys[] = {"name", "addresses", "ports", "arena_kb", "idle", "lcores",
	"hugepages", "pci", "telemetry", "memory_mb", "control", "control_tcp", "tables",
	"slot_rest_ms", "drain_ms", "stall_ms", NULL};

int sw_fail(char err[SW_ERR_LEN], int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, SW_ERR_LEN, fmt, ap);
	va_end(ap);
	return error;
}

static int get_int(const json_t *json, const char *field, long long min, long long max,
	long long dflt, long long *value, char err[SW_ERR_LEN])
{
	const json_t *v = json_object_get(json, field);

	*value = dflt;
	if (v == NULL)
		return 0;
	if (!json_is_integer(v))
		return sw_fail(err, -EINVAL, "%s: must be an integer", field);
	*value = json_integer_value(v);
	if (*value < min || *value > max)
		return sw_fail(err, -EINVAL, "%s: %lld is out of range %lld..%lld", field, *value,
			min, max);
	return 0;
}

static int get_bool(const json_t *json, const char *path, const char *field, bool dflt, bool *value,
	char err[SW_ERR_LEN])
{
	const json_t *v = json_object_get(json, field);

	*value = v ? json_is_true(v) : dflt;
	if (v != NULL && !json_is_boolean(v))
		return sw_fail(err, -EINVAL, "%s%s: must be true or false", path, field);
	return 0;
}

static int get_text(const json_t *json, const char *field, const char *dflt, char *value,
	size_t cap, char err[SW_ERR_LEN])
{
	const json_t *v = json_object_get(json, field);

	snprintf(value, cap, "%s", dflt);
	if (v == NULL)
		return 0;
	if (!json_is_string(v) || json_string_length(v) == 0 || json_string_length(v) >= cap)
		return sw_fail(
			err, -EINVAL, "%s: must be a text of 1 to %zu characters", field, cap - 1);
	snprintf(value, cap, "%s", json_string_value(v));
	return 0;
}

static int get_addresses(const json_t *json, struct sw_config *c, char err[SW_ERR_LEN])
{
	const json_t *list = json_object_get(json, "addresses"), *v;
	size_t i;

	if (list == NULL)
		return 0;
	if (!json_is_array(list) || json_array_size(list) > MAX_ADDRESSES)
		return sw_fail(err, -EINVAL, "addresses: must be a list of at most %d addresses",
			MAX_ADDRESSES);
	c->addresses = calloc(json_array_size(list) + 1, sizeof(*c->addresses));
	if (c->addresses == NULL)
		return sw_fail(err, -ENOMEM, "addresses: no memory");
	json_array_foreach(list, i, v)
	{
		if (!json_is_string(v) || wire_ip_parse(json_string_value(v), &c->addresses[i]))
			return sw_fail(
				err, -EINVAL, "addresses[%zu]: must be an IPv4 or IPv6 address", i);
		for (size_t j = 0; j < i; j++)
			if (wire_ip_eq(&c->addresses[i], &c->addresses[j]))
				return sw_fail(err, -EINVAL, "addresses[%zu]: %s is there twice", i,
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
	json_object_del(copy, "impair");
	return copy;
}

static int get_impair(
	const json_t *v, const char *path, struct sw_config_port *p, char err[SW_ERR_LEN])
{
	static const char *const impair_keys[] = {
		"loss", "dup", "reorder", "corrupt", "tx_loss", "lose", "seed", NULL};
	const json_t *impair = json_object_get(v, "impair");
	char where[64], what[PORT_ERR_LEN];

	if (impair == NULL)
		return 0;
	snprintf(where, sizeof(where), "%simpair", path);
	if (port_json_known(impair, where, impair_keys, what) < 0)
		return sw_fail(err, -EINVAL, "%.200s", what);
	if (impair_parse(impair, &p->impair, what, sizeof(what)) < 0)
		return sw_fail(err, -EINVAL, "%s.%.180s", where, what);
	p->impaired = true;
	return 0;
}

static int get_port(const json_t *v, size_t i, struct sw_config *c, char err[SW_ERR_LEN])
{
	struct sw_config_port *p = &c->ports[i];
	char path[32], what[PORT_ERR_LEN];
	json_t *part;
	int rc;

	snprintf(path, sizeof(path), "ports[%zu].", i);
	if (!json_is_object(v))
		return sw_fail(err, -EINVAL, "ports[%zu]: must be an object", i);
	part = port_part(v);
	rc = port_config_parse(part, &p->port, what);
	json_decref(part);
	if (rc < 0)
		return sw_fail(err, rc, "%s%.220s", path, what);
	for (size_t j = 0; j < i; j++)
		if (strcmp(p->port.name, c->ports[j].port.name) == 0)
			return sw_fail(err, -EINVAL, "%sname: \"%s\" is the name of ports[%zu] too",
				path, p->port.name, j);
	if (get_bool(v, path, "proxy_arp", true, &p->proxy_arp, err))
		return -EINVAL;
	return get_impair(v, path, p, err);
}

static int get_ports(const json_t *json, struct sw_config *c, char err[SW_ERR_LEN])
{
	const json_t *list = json_object_get(json, "ports"), *v;
	size_t max = SW_MAX_PORTS < RTE_MAX_ETHPORTS ? SW_MAX_PORTS : RTE_MAX_ETHPORTS, i;

	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > max)
		return sw_fail(err, -EINVAL, "ports: must be a list of 1 to %zu port objects", max);
	json_array_foreach(list, i, v)
	{
		int rc = get_port(v, i, c, err);

		if (rc < 0)
			return rc;
		c->n_ports++;
	}
	return 0;
}

static int get_idle(const json_t *json, struct sw_config *c, char err[SW_ERR_LEN])
{
	char name[16];
	int idle;

	if (get_text(json, "idle", "sleep", name, sizeof(name), err))
		return -EINVAL;
	idle = port_idle_parse(name);
	if (idle < 0)
		return sw_fail(err, -EINVAL, "idle: \"%s\" is none of spin, pause, sleep", name);
	c->idle = (enum port_idle)idle;
	return 0;
}

static int get_numbers(const json_t *json, struct sw_config *c, char err[SW_ERR_LEN])
{
	long long arena_kb, memory_mb, rest, drain, stall;

	if (get_int(json, "arena_kb", 4, ARENA_KB_MAX, ARENA_KB_DEFAULT, &arena_kb, err) ||
		get_int(json, "memory_mb", MEMORY_MB_MIN, MEMORY_MB_MAX, MEMORY_MB_DEFAULT,
			&memory_mb, err) ||
		get_int(json, "slot_rest_ms", 0, MS_MAX, 10000, &rest, err) ||
		get_int(json, "drain_ms", 0, MS_MAX, 2000, &drain, err) ||
		get_int(json, "stall_ms", 1, MS_MAX, 30000, &stall, err))
		return -EINVAL;
	c->arena_bytes = (size_t)arena_kb << 10;
	c->memory_mb = (unsigned)memory_mb;
	c->slot_rest_ns = (uint64_t)rest * 1000000;
	c->drain_ns = (uint64_t)drain * 1000000;
	c->stall_ns = (uint64_t)stall * 1000000;
	return 0;
}

static int parse(const json_t *json, struct sw_config *c, char err[SW_ERR_LEN])
{
	char control[108];

	if (port_json_known(json, "", keys, err) < 0)
		return -EINVAL;
	if (get_text(json, "name", "incline", c->name, sizeof(c->name), err) ||
		get_text(json, "lcores", "", c->lcores, sizeof(c->lcores), err) ||
		get_text(json, "control", "", control, sizeof(control), err) ||
		get_bool(json, "", "hugepages", false, &c->hugepages, err) ||
		get_bool(json, "", "pci", false, &c->pci, err) ||
		get_bool(json, "", "telemetry", false, &c->telemetry, err) ||
		get_idle(json, c, err) || get_numbers(json, c, err))
		return -EINVAL;
	if (get_addresses(json, c, err) || get_ports(json, c, err))
		return -EINVAL;
	return 0;
}

int sw_config_parse(const json_t *json, struct sw_config *config, char err[SW_ERR_LEN])
{
	int rc;

	static_assert(SW_ERR_LEN == (int)PORT_ERR_LEN, "messages of lib/port are passed on");
	memset(config, 0, sizeof(*config));
	rc = parse(json, config, err);
	if (rc < 0)
		sw_config_free(config);
	return rc;
}

void sw_config_free(struct sw_config *config)
{
	free(config->addresses);
	config->addresses = NULL;
}
