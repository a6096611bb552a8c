/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/ctl/config.h"
#include "lib/port/config.h"
#include "lib/verbs/config.h"

enum { WAIT_DEFAULT = 10000 };

struct reader {
	const char *path;
	const json_t *root;
	struct iv_config *config;
	char *err;
	char at[16]; /* before the names of a port's fields: "ports[1].", or "" */
};

/* An object of the file. */
static const struct ctl_field *part(const char *name)
{
	return ctl_member(&ctl_rnic_config, name);
}

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

/* where: of the port that is being read. */
static int parse_mac(struct reader *r, const char *where, const char *text, uint8_t mac[6])
{
	static const uint8_t zero[6];

	if (wire_mac_parse(text, mac))
		return refuse(r, "%s%s: \"%.40s\" is not a MAC address", r->at, where, text);
	if ((mac[0] & 1) || memcmp(mac, zero, sizeof(zero)) == 0)
		return refuse(r, "%s%s: must be a unicast address other than zero", r->at, where);
	return 0;
}

static int parse_address(struct reader *r, const char *where, const char *text, struct wire_ip *ip)
{
	if (wire_ip_parse(text, ip) || wire_ip_is_zero(ip))
		return refuse(r, "%s%s: \"%.64s\" is not an address", r->at, where, text);
	return 0;
}

static int read_name(struct reader *r)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	const char *name = ctl_text(&ctl_rnic_config, r->root, "device");

	if (name && name[strspn(name, ok)])
		return refuse(r, "device: must be made of A-Z a-z 0-9 _ -");
	snprintf(r->config->name, sizeof(r->config->name), "%s", name ? name : "");
	return 0;
}

static int read_ips(struct reader *r, const json_t *from, struct iv_port_config *c)
{
	const json_t *list = json_object_get(from, "ip");
	char where[32];

	for (; c->n_ip < json_array_size(list); c->n_ip++) {
		const char *text = json_string_value(json_array_get(list, c->n_ip));

		snprintf(where, sizeof(where), "ip[%u]", c->n_ip);
		if (parse_address(r, where, text, &c->ip[c->n_ip]))
			return -EINVAL;
		for (unsigned i = 0; i < c->n_ip; i++) {
			if (wire_ip_eq(&c->ip[i], &c->ip[c->n_ip]))
				return refuse(r, "%s%s: same as ip[%u]", r->at, where, i);
		}
	}
	return 0;
}

static int read_neighbors(struct reader *r, const json_t *from, struct iv_port_config *c)
{
	const json_t *v;
	char where[48];
	size_t i;

	json_array_foreach(json_object_get(from, "neighbors"), i, v)
	{
		struct iv_neigh *neigh = &c->neigh[c->n_neigh++];
		const char *ip = json_string_value(json_object_get(v, "ip"));
		const char *mac = json_string_value(json_object_get(v, "mac"));

		snprintf(where, sizeof(where), "neighbors[%zu].ip", i);
		if (parse_address(r, where, ip, &neigh->ip))
			return -EINVAL;
		snprintf(where, sizeof(where), "neighbors[%zu].mac", i);
		if (parse_mac(r, where, mac, neigh->mac))
			return -EINVAL;
	}
	return 0;
}

static int read_congestion(struct reader *r)
{
	const struct ctl_field *schema = part("congestion");
	const json_t *v = json_object_get(r->root, "congestion");
	struct rnic_congestion *c = &r->config->congestion;

	*c = (struct rnic_congestion){
		.no_reaction = !ctl_bool(schema, v, "reaction"),
		.no_notification = !ctl_bool(schema, v, "notification"),
		.ect = ctl_bool(schema, v, "ect"),
		.cnp_dscp = (uint8_t)ctl_int(schema, v, "cnp_dscp"),
#define NUMBER(name) .name = (uint32_t)ctl_int(schema, v, #name)
		NUMBER(line_mbps),
		NUMBER(min_mbps),
		NUMBER(ai_mbps),
		NUMBER(hai_mbps),
		NUMBER(alpha_shift),
		NUMBER(alpha_us),
		NUMBER(timer_us),
		NUMBER(byte_count),
		NUMBER(recovery_steps),
		NUMBER(cut_us),
		NUMBER(cnp_us),
		NUMBER(window_bytes),
#undef NUMBER
	};
	if (c->min_mbps > c->line_mbps)
		return refuse(r, "congestion.min_mbps: above congestion.line_mbps");
	return 0;
}

static int read_netdev(struct reader *r)
{
	const json_t *v = json_object_get(r->root, "netdev");
	struct iv_netdev_config *n = &r->config->netdev;
	const char *name = ctl_text(part("netdev"), v, "name");

	if (!v)
		return 0;
	/* As the kernel. */
	if (name[strcspn(name, " \t\n/:%")] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return refuse(r, "netdev.name: must be without blanks and /:%%");
	n->prefix4 = (unsigned)ctl_int(part("netdev"), v, "prefix4");
	n->prefix6 = (unsigned)ctl_int(part("netdev"), v, "prefix6");
	snprintf(n->name, sizeof(n->name), "%s", name);
	return 0;
}

static int read_transport(struct reader *r)
{
	const struct iv_config *c = r->config;
	const char *not_with = c->n_ports > 1      ? "several ports"
			       : c->netdev.name[0] ? "netdev"
			       : c->rx_workers > 0 ? "rx_workers"
						   : NULL;

	r->config->iwarp = strcmp(ctl_text(&ctl_rnic_config, r->root, "transport"), "iwarp") == 0;
	if (c->iwarp && not_with)
		return refuse(r, "transport: iwarp not together with %s", not_with);
	if (c->iwarp && c->ports[0].n_ip == 0)
		return refuse(r, "ip: at least one address for transport iwarp");
	return 0;
}

static int read_workers(struct reader *r)
{
	r->config->rx_workers = (unsigned)ctl_int(&ctl_rnic_config, r->root, "rx_workers");
	if (r->config->n_ports > 1 && r->config->netdev.name[0])
		return refuse(r, "ports: one only together with netdev");
	return 0;
}

/* The port of lib/port, with the RNIC's MTU and MAC unless it has its own. */
static int read_lower(struct reader *r, const json_t *from, struct iv_port_config *c)
{
	char err[PORT_ERR_LEN];
	json_t *port = json_copy(json_object_get(from, "port"));
	int ret;

	if (!port)
		return -ENOMEM;
	if (c->mtu && !json_object_get(port, "mtu"))
		json_object_set_new(port, "mtu", json_integer(c->mtu));
	ret = port_config_parse(port, &c->port, err);
	json_decref(port);
	if (ret)
		return refuse(r, "%sport.%s", r->at, err);
	if (c->mtu > c->port.mtu)
		return refuse(
			r, "%smtu: %u is above %sport.mtu, %u", r->at, c->mtu, r->at, c->port.mtu);
	if (!c->mtu)
		c->mtu = c->port.mtu;
	if (!c->port.has_mac) {
		memcpy(c->port.mac, c->mac, sizeof(c->mac));
		c->port.has_mac = true;
	}
	return 0;
}

static int parse_sid(struct reader *r, const char *text, struct wire_ip *sid)
{
	if (parse_address(r, "sid", text, sid))
		return -EINVAL;
	if (wire_ip_is4(sid) || sid->b[0] == 0xff)
		return refuse(r, "%ssid: \"%.64s\" is not a unicast IPv6 address", r->at, text);
	return 0;
}

/* Waits to be found, instead of looking for somebody. */
static bool is_server(const struct port_config *port)
{
	return !port->client &&
	       (strcmp(port->type, "memif") == 0 || strcmp(port->type, "vhost") == 0);
}

static int read_port(struct reader *r, const json_t *from)
{
	const struct ctl_field *schema = part("ports");
	struct iv_port_config *c = &r->config->ports[r->config->n_ports];
	const char *via = ctl_text(schema, from, "via"), *sid = ctl_text(schema, from, "sid");
	const json_t *wait = json_object_get(r->root, "wait_ms");

	c->mtu = (unsigned)ctl_int(schema, from, "mtu");
	if (parse_mac(r, "mac", ctl_text(schema, from, "mac"), c->mac) ||
		(via && parse_address(r, "via", via, &c->via)) ||
		(sid && parse_sid(r, sid, &c->sid)) || read_ips(r, from, c) ||
		read_neighbors(r, from, c) || read_lower(r, from, c))
		return -EINVAL;
	c->wait_ms = wait                  ? (unsigned)json_integer_value(wait)
		     : is_server(&c->port) ? 0
					   : WAIT_DEFAULT;
	for (unsigned i = 0; i < r->config->n_ports; i++) {
		const struct iv_port_config *other = &r->config->ports[i];

		if (memcmp(other->mac, c->mac, sizeof(c->mac)) == 0)
			return refuse(r, "%smac: same as ports[%u].mac", r->at, i);
		if (strcmp(other->port.name, c->port.name) == 0)
			return refuse(r, "%sport.name: same as ports[%u].port.name", r->at, i);
	}
	r->config->n_ports++;
	return 0;
}

/* What the file says of its one port, as an object of "ports". */
static json_t *only_port(struct reader *r)
{
	json_t *port = json_object();

	for (const struct ctl_field *f = part("ports")->fields; port && f->name; f++) {
		json_t *v = json_object_get(r->root, f->name);

		if (v)
			json_object_set(port, f->name, v);
		else if (f->required)
			refuse(r, "%s: is missing", f->name);
		if (!v && f->required) {
			json_decref(port);
			return NULL;
		}
	}
	return port;
}

static int read_ports(struct reader *r)
{
	json_t *list = json_object_get(r->root, "ports"), *port;
	size_t i;
	int ret;

	if (!list) {
		port = only_port(r);
		ret = port ? read_port(r, port) : -EINVAL;
		json_decref(port);
		return ret;
	}
	for (const struct ctl_field *f = part("ports")->fields; f->name; f++)
		if (json_object_get(r->root, f->name))
			return refuse(r, "%s: not together with ports", f->name);
	json_array_foreach(list, i, port)
	{
		snprintf(r->at, sizeof(r->at), "ports[%u].", (unsigned)i);
		if (read_port(r, port))
			return -EINVAL;
	}
	return 0;
}

static int read_mrc(struct reader *r)
{
	const struct ctl_field *schema = part("mrc");
	const json_t *v = json_object_get(r->root, "mrc");
	struct mrc_settings *s = &r->config->mrc;
	const char *field, *other;

	*s = (struct mrc_settings){
#define X(name, unit, dflt, least, most, mark, section, help) \
	.name = (uint32_t)ctl_int(schema, v, #name),
		MRC_SETTINGS(X)
#undef X
	};
	if (mrc_settings_check(s, &field, &other) < 0)
		return refuse(r, "mrc.%s: must not be the same as mrc.%s", field, other);
	return 0;
}

static void read_plain(struct reader *r)
{
	const struct ctl_field *schema = &ctl_rnic_config;
	struct iv_config *c = r->config;

	c->memory_mb = (unsigned)ctl_int(schema, r->root, "memory_mb");
	c->max_qp = (unsigned)ctl_int(schema, r->root, "max_qp");
	c->hugepages = ctl_bool(schema, r->root, "hugepages");
	c->idle = (enum port_idle)port_idle_parse(ctl_text(schema, r->root, "idle"));
}

static int read_lldp(struct reader *r)
{
	const char *name = ctl_text(&ctl_rnic_config, r->root, "host");
	struct iv_config *c = r->config;

	static_assert(RNIC_HOST_LEN - 1 == (int)CTL_MAX_RNIC_HOST, "as the table says");
	c->lldp = ctl_bool(&ctl_rnic_config, r->root, "lldp");
	if (name && !c->lldp)
		return refuse(r, "host: only together with lldp");
	if (name)
		snprintf(c->host, sizeof(c->host), "%s", name);
	else if (c->lldp && (gethostname(c->host, sizeof(c->host)) || !c->host[0]))
		return refuse(r, "host: this machine has no name, say one");
	return 0;
}

static int read_root(struct reader *r)
{
	struct ctl_problem problem;
	char text[CTL_PATH_LEN + CTL_MSG_LEN];

	if (ctl_check_value(&ctl_rnic_config, r->root, "", &problem) < 0) {
		ctl_problem_text(&problem, text, sizeof(text));
		return refuse(r, "%s", text);
	}
	read_plain(r);
	if (read_name(r) || read_ports(r) || read_congestion(r) || read_mrc(r) || read_netdev(r) ||
		read_workers(r) || read_transport(r) || read_lldp(r))
		return -EINVAL;
	return 0;
}

struct rnic_port_config iv_config_port(const struct iv_port_config *config)
{
	struct rnic_port_config port = {
		.n_ip = config->n_ip, .mtu = config->mtu, .via = config->via};

	memcpy(port.mac, config->mac, sizeof(port.mac));
	memcpy(port.ip, config->ip, sizeof(port.ip));
	snprintf(port.name, sizeof(port.name), "%s", config->port.name);
	return port;
}

void iv_config_lldp(const struct iv_config *config, struct rnic_config *rnic)
{
	rnic->lldp = config->lldp;
	memcpy(rnic->host, config->host, sizeof(rnic->host));
}

int iv_config_read(const char *path, struct iv_config *config, char err[IV_CONFIG_ERR])
{
	struct reader r = {.path = path, .config = config, .err = err};
	json_error_t at;
	json_t *json, *root;
	int ret;

	static_assert(RNIC_MAX_GID - 1 == (int)CTL_MAX_RNIC_ADDRESSES, "as the table says");
	static_assert(RNIC_MAX_PORTS == (int)CTL_MAX_RNIC_PORTS, "as the table says");
	static_assert(RNIC_NAME_LEN >= (int)PORT_NAME_LEN, "names fit");
	static_assert(IV_MAX_NEIGH == (int)CTL_MAX_NEIGHBORS, "as the table says");
	memset(config, 0, sizeof(*config));
	json = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
	if (!json) {
		if (at.line > 0)
			return refuse(&r, "line %d column %d: %s", at.line, at.column, at.text);
		return refuse(&r, "INCLINE_RNIC: %s", at.text);
	}
	root = ctl_strip_comments(json);
	json_decref(json);
	if (!root)
		return refuse(&r, "no memory");
	r.root = root;
	ret = read_root(&r);
	json_decref(root);
	return ret;
}
