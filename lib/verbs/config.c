/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/verbs/config.h"

enum { WAIT_DEFAULT = 10000 };
static const unsigned WAIT_UNSET = UINT_MAX;

struct reader {
	const char *path;
	const json_t *root;
	struct iv_config *config;
	char *err;
};

static int refuse(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(struct reader *r, const char *format, ...)
{
	int n = snprintf(r->err, IV_CONFIG_ERR, "%.200s: ", r->path);
	va_list ap;

	va_start(ap, format);
	vsnprintf(r->err + n, IV_CONFIG_ERR - (size_t)n, format, ap);
	va_end(ap);
	return -EINVAL;
}

/* An integer field of an object, which messages call path ("" or "name."), within limits; *value
 * keeps its default when the field is absent. */
static int read_int_of(struct reader *r, const json_t *from, const char *path, const char *key,
	json_int_t min, json_int_t max, unsigned *value)
{
	const json_t *v = json_object_get(from, key);

	if (!v)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return refuse(r, "%s%s: must be an integer %lld..%lld", path, key, (long long)min,
			(long long)max);
	*value = (unsigned)json_integer_value(v);
	return 0;
}

static int read_int(
	struct reader *r, const char *key, json_int_t min, json_int_t max, unsigned *value)
{
	return read_int_of(r, r->root, "", key, min, max, value);
}

static int read_mac(struct reader *r, const char *where, const json_t *v, uint8_t mac[6])
{
	static const uint8_t zero[6];

	if (!json_is_string(v))
		return refuse(r, "%s: must be a string such as \"02:00:00:00:00:0a\"", where);
	if (wire_mac_parse(json_string_value(v), mac))
		return refuse(r, "%s: \"%.40s\" is not a MAC address", where, json_string_value(v));
	if ((mac[0] & 1) || memcmp(mac, zero, sizeof(zero)) == 0)
		return refuse(r, "%s: must be a unicast address other than zero", where);
	return 0;
}

static int read_address(struct reader *r, const char *where, const json_t *v, struct wire_ip *ip)
{
	if (!json_is_string(v))
		return refuse(r, "%s: must be a string such as \"10.77.0.10\"", where);
	if (wire_ip_parse(json_string_value(v), ip) || wire_ip_is_zero(ip))
		return refuse(r, "%s: \"%.64s\" is not an address", where, json_string_value(v));
	return 0;
}

static int read_name(struct reader *r)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	const json_t *v = json_object_get(r->root, "device");
	const char *name = json_string_value(v);

	if (!v)
		return 0;
	if (!name || !*name || strlen(name) >= IV_NAME_LEN || name[strspn(name, ok)])
		return refuse(r, "device: must be a string of 1..31 of [A-Za-z0-9_-]");
	snprintf(r->config->name, sizeof(r->config->name), "%s", name);
	return 0;
}

static int read_ips(struct reader *r)
{
	const json_t *v = json_object_get(r->root, "ip");
	struct iv_config *c = r->config;
	char where[32];

	if (!v)
		return 0;
	if (!json_is_array(v) || json_array_size(v) > RNIC_MAX_GID - 1)
		return refuse(r, "ip: must be an array of at most %d addresses", RNIC_MAX_GID - 1);
	for (; c->n_ip < json_array_size(v); c->n_ip++) {
		int ret;

		snprintf(where, sizeof(where), "ip[%u]", c->n_ip);
		ret = read_address(r, where, json_array_get(v, c->n_ip), &c->ip[c->n_ip]);
		if (ret)
			return ret;
		for (unsigned i = 0; i < c->n_ip; i++) {
			if (wire_ip_eq(&c->ip[i], &c->ip[c->n_ip]))
				return refuse(r, "%s: same as ip[%u]", where, i);
		}
	}
	return 0;
}

static int read_neighbor(struct reader *r, unsigned i, const json_t *v, struct iv_neigh *neigh)
{
	static const char *const keys[] = {"ip", "mac", NULL};
	char where[48], err[PORT_ERR_LEN];
	int ret;

	snprintf(where, sizeof(where), "neighbors[%u]", i);
	if (!json_is_object(v))
		return refuse(r, "%s: must be an object with ip and mac", where);
	if (port_json_known(v, where, keys, err))
		return refuse(r, "%s", err);
	snprintf(where, sizeof(where), "neighbors[%u].ip", i);
	ret = read_address(r, where, json_object_get(v, "ip"), &neigh->ip);
	if (ret)
		return ret;
	snprintf(where, sizeof(where), "neighbors[%u].mac", i);
	return read_mac(r, where, json_object_get(v, "mac"), neigh->mac);
}

static int read_neighbors(struct reader *r)
{
	const json_t *v = json_object_get(r->root, "neighbors");
	struct iv_config *c = r->config;
	int ret = 0;

	if (!v)
		return 0;
	if (!json_is_array(v) || json_array_size(v) > IV_MAX_NEIGH)
		return refuse(r, "neighbors: must be an array of at most %d objects", IV_MAX_NEIGH);
	for (; c->n_neigh < json_array_size(v) && !ret; c->n_neigh++)
		ret = read_neighbor(
			r, c->n_neigh, json_array_get(v, c->n_neigh), &c->neigh[c->n_neigh]);
	return ret;
}

static int read_idle(struct reader *r)
{
	const json_t *v = json_object_get(r->root, "idle");
	int idle = PORT_IDLE_SLEEP;

	if (v)
		idle = json_is_string(v) ? port_idle_parse(json_string_value(v)) : -EINVAL;
	if (idle < 0)
		return refuse(r, "idle: must be \"spin\", \"pause\" or \"sleep\"");
	r->config->idle = (enum port_idle)idle;
	return 0;
}

/* Numbers of "congestion": X(name, largest). The smallest is 1; cnp_dscp is a byte, all others
 * numbers of 32 bits. */
#define CONGESTION_NUMBERS(X)     \
	X(line_mbps, 1000000)     \
	X(min_mbps, 1000000)      \
	X(ai_mbps, 1000000)       \
	X(hai_mbps, 1000000)      \
	X(alpha_shift, 16)        \
	X(alpha_us, 1000000)      \
	X(timer_us, 1000000)      \
	X(byte_count, 2147483647) \
	X(recovery_steps, 1000)   \
	X(cut_us, 1000000)        \
	X(cnp_us, 1000000)        \
	X(cnp_dscp, 63)

static int read_switch(
	struct reader *r, const json_t *from, const char *key, bool otherwise, bool *value)
{
	const json_t *v = json_object_get(from, key);

	if (v && !json_is_boolean(v))
		return refuse(r, "congestion.%s: must be true or false", key);
	*value = v ? json_is_true(v) : otherwise;
	return 0;
}

static int read_congestion(struct reader *r)
{
	static const char *const keys[] = {"reaction", "notification", "ect",
#define X(name, max) #name,
		CONGESTION_NUMBERS(X)
#undef X
			NULL};
	const json_t *v = json_object_get(r->root, "congestion");
	struct rnic_congestion *c = &r->config->congestion;
	bool reaction = true, notification = true;
	char err[PORT_ERR_LEN];
	unsigned value;
	int ret;

	if (!v)
		return 0;
	if (!json_is_object(v))
		return refuse(r, "congestion: must be an object");
	if (port_json_known(v, "congestion", keys, err))
		return refuse(r, "%s", err);
	(void)((ret = read_switch(r, v, "reaction", true, &reaction)) ||
		(ret = read_switch(r, v, "notification", true, &notification)) ||
		(ret = read_switch(r, v, "ect", false, &c->ect)));
	if (ret)
		return ret;
	c->no_reaction = !reaction;
	c->no_notification = !notification;
#define X(name, max)                                                     \
	value = 0;                                                       \
	ret = read_int_of(r, v, "congestion.", #name, 1, (max), &value); \
	if (ret)                                                         \
		return ret;                                              \
	c->name = (typeof(c->name))value;
	CONGESTION_NUMBERS(X)
#undef X
	if ((c->min_mbps ? c->min_mbps : 10) > (c->line_mbps ? c->line_mbps : 25000))
		return refuse(r, "congestion.min_mbps: above congestion.line_mbps");
	return 0;
}

/* As the kernel: 1..15 bytes, neither blanks nor slashes. */
static bool is_interface_name(const char *name)
{
	return name && *name && strlen(name) < IF_NAMESIZE && !name[strcspn(name, " \t\n/:%")] &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int read_netdev(struct reader *r)
{
	static const char *const keys[] = {"name", "prefix4", "prefix6", NULL};
	const json_t *v = json_object_get(r->root, "netdev");
	struct iv_netdev_config *n = &r->config->netdev;
	char err[PORT_ERR_LEN];
	const char *name;
	int ret;

	if (!v)
		return 0;
	if (!json_is_object(v))
		return refuse(r, "netdev: must be an object with the name of a tap device");
	if (port_json_known(v, "netdev", keys, err))
		return refuse(r, "%s", err);
	name = json_string_value(json_object_get(v, "name"));
	if (!is_interface_name(name))
		return refuse(r,
			"netdev.name: must be a string of 1..%d bytes without blanks and "
			"/:%%",
			IF_NAMESIZE - 1);
	n->prefix4 = 24;
	n->prefix6 = 64;
	(void)((ret = read_int_of(r, v, "netdev.", "prefix4", 0, 32, &n->prefix4)) ||
		(ret = read_int_of(r, v, "netdev.", "prefix6", 0, 128, &n->prefix6)));
	snprintf(n->name, sizeof(n->name), "%s", name);
	return ret;
}

static int read_control_lcore(struct reader *r)
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int ret;

	r->config->control_lcore = IV_NO_LCORE;
	ret = read_int(r, "control_lcore", 0,
		(cpus < 1                    ? 1
			: cpus > CPU_SETSIZE ? CPU_SETSIZE
					     : cpus) -
			1,
		&r->config->control_lcore);
	if (ret == 0 && r->config->control_lcore != IV_NO_LCORE && r->config->netdev.name[0])
		ret = refuse(r, "control_lcore: not together with netdev");
	return ret;
}

/* The port, with the RNIC's MTU and MAC unless it has its own. */
static int read_port(struct reader *r)
{
	const json_t *v = json_object_get(r->root, "port");
	struct iv_config *c = r->config;
	char err[PORT_ERR_LEN];
	json_t *port;
	int ret;

	if (!json_is_object(v))
		return refuse(r, "port: required, an object that describes the port");
	port = json_copy((json_t *)v);
	if (!port)
		return -ENOMEM;
	if (c->mtu && !json_object_get(port, "mtu"))
		json_object_set_new(port, "mtu", json_integer(c->mtu));
	ret = port_config_parse(port, &c->port, err);
	json_decref(port);
	if (ret)
		return refuse(r, "port.%s", err);
	if (c->mtu > c->port.mtu)
		return refuse(r, "mtu: %u is above port.mtu, %u", c->mtu, c->port.mtu);
	if (!c->mtu)
		c->mtu = c->port.mtu;
	if (!c->port.has_mac) {
		memcpy(c->port.mac, c->mac, sizeof(c->mac));
		c->port.has_mac = true;
	}
	return 0;
}

static int read_root(struct reader *r)
{
	static const char *const keys[] = {"mac", "ip", "port", "mtu", "idle", "neighbors",
		"device", "wait_ms", "memory_mb", "hugepages", "congestion", "netdev",
		"control_lcore", "max_qp", NULL};
	struct iv_config *c = r->config;
	const json_t *huge = json_object_get(r->root, "hugepages");
	char err[PORT_ERR_LEN];
	int ret;

	if (!json_is_object(r->root))
		return refuse(r, "must hold one object");
	if (port_json_known(r->root, "", keys, err))
		return refuse(r, "%s", err);
	if (!json_object_get(r->root, "mac"))
		return refuse(r, "mac: required");
	if (huge && !json_is_boolean(huge))
		return refuse(r, "hugepages: must be true or false");
	c->hugepages = json_is_true(huge);
	(void)((ret = read_name(r)) || (ret = read_idle(r)) ||
		(ret = read_mac(r, "mac", json_object_get(r->root, "mac"), c->mac)) ||
		(ret = read_ips(r)) || (ret = read_neighbors(r)) ||
		(ret = read_int(r, "mtu", 576, 9600, &c->mtu)) ||
		(ret = read_int(r, "wait_ms", 0, 600000, &c->wait_ms)) ||
		(ret = read_int(r, "memory_mb", 32, 65536, &c->memory_mb)) ||
		(ret = read_int(r, "max_qp", 1, 65536, &c->max_qp)) || (ret = read_port(r)) ||
		(ret = read_congestion(r)) || (ret = read_netdev(r)) ||
		(ret = read_control_lcore(r)));
	return ret;
}

/* Waits to be found, instead of looking for somebody. */
static bool is_server(const struct port_config *port)
{
	return !port->client &&
	       (strcmp(port->type, "memif") == 0 || strcmp(port->type, "vhost") == 0);
}

int iv_config_read(const char *path, struct iv_config *config, char err[IV_CONFIG_ERR])
{
	struct reader r = {.path = path, .config = config, .err = err};
	json_error_t at;
	json_t *root;
	int ret;

	memset(config, 0, sizeof(*config));
	config->wait_ms = WAIT_UNSET;
	config->max_qp = IV_MAX_QP_DEFAULT;
	root = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
	if (!root) {
		if (at.line > 0)
			return refuse(&r, "line %d column %d: %s", at.line, at.column, at.text);
		return refuse(&r, "INCLINE_RNIC: %s", at.text);
	}
	r.root = root;
	ret = read_root(&r);
	json_decref(root);
	if (config->wait_ms == WAIT_UNSET)
		config->wait_ms = is_server(&config->port) ? 0 : WAIT_DEFAULT;
	return ret;
}
