/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/port/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/ctl/config.h"
#include "lib/port/internal.h"
#include "lib/wire/ip.h"

enum { RING_NAME_MAX = 25 };

static int invalid(char err[PORT_ERR_LEN], const char *field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int invalid(char err[PORT_ERR_LEN], const char *field, const char *fmt, ...)
{
	int len = snprintf(err, PORT_ERR_LEN, "%s: ", field);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err + len, PORT_ERR_LEN - (size_t)len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* A text that goes into devargs, where these characters would end it; the schema has seen to its
 * length. *value NULL if absent. */
static int get_text(
	const json_t *json, const char *field, const char **value, char err[PORT_ERR_LEN])
{
	const json_t *v = json_object_get(json, field);

	*value = v ? json_string_value(v) : NULL;
	if (v != NULL && json_string_length(v) != strlen(*value))
		return invalid(err, field, "must not contain a zero byte");
	if (v != NULL && strpbrk(*value, ",=[]\"' \t\n") != NULL)
		return invalid(err, field, "must not contain , = [ ] quotes or blanks");
	return 0;
}

static int get_desc(const json_t *json, const char *field, uint16_t *value, char err[PORT_ERR_LEN])
{
	int64_t n = ctl_int(&ctl_port_config, json, field);

	if (n & (n - 1))
		return invalid(err, field, "%lld is not a power of two", (long long)n);
	*value = (uint16_t)n;
	return 0;
}

static int get_name(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.-";
	const char *name = json_string_value(json_object_get(json, "name"));

	if (strlen(name) >= sizeof(c->name) || strspn(name, allowed) != strlen(name))
		return invalid(err, "name", "must be at most %zu characters of A-Z a-z 0-9 _ . -",
			sizeof(c->name) - 1);
	snprintf(c->name, sizeof(c->name), "%s", name);
	return 0;
}

static int parse_memif(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *socket, *role = ctl_text(&ctl_port_config, json, "role");
	unsigned log2 = 0;

	if (get_text(json, "socket", &socket, err))
		return -EINVAL;
	c->client = strcmp(role, "client") == 0;
	c->id = (uint16_t)ctl_int(&ctl_port_config, json, "id");
	c->zero_copy = c->client && ctl_bool(&ctl_port_config, json, "zero_copy");
	if (!c->client && json_is_true(json_object_get(json, "zero_copy")))
		return invalid(err, "zero_copy", "only the client of a memif can be zero-copy");
	while ((1u << log2) < c->rxd || (1u << log2) < c->txd)
		log2++;
	snprintf(c->vdev, sizeof(c->vdev),
		"net_memif_%s,role=%s,id=%d,socket=%s,socket-abstract=no,rsize=%u,bsize=%u%s",
		c->name, role, c->id, socket, log2,
		(unsigned)(c->mtu + PORT_FRAME_OVERHEAD + 63) & ~63u,
		c->zero_copy ? ",zero-copy=yes" : "");
	snprintf(c->socket, sizeof(c->socket), "%s", socket);
	return 0;
}

/* A frame of the packet socket's ring holds its header, an address and the packet, for which a
 * buffer has room. The driver takes frames to be contiguous: a block, which is made of pages, holds
 * whole frames exactly. */
static int parse_af_packet(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	enum { PER_BLOCK = 64 };
	unsigned frame = port_room(c->mtu);
	const char *iface;

	static_assert((int)CTL_MIN_DESC >= (int)PER_BLOCK, "descriptors are whole blocks");
	if (get_text(json, "iface", &iface, err))
		return -EINVAL;
	snprintf(c->vdev, sizeof(c->vdev),
		"net_af_packet_%s,iface=%s,qpairs=1,framesz=%u,blocksz=%u,framecnt=%u,"
		"qdisc_bypass=1",
		c->name, iface, frame, frame * PER_BLOCK, c->rxd);
	snprintf(c->iface, sizeof(c->iface), "%s", iface);
	return 0;
}

static int parse_tap(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *iface;

	if (get_text(json, "iface", &iface, err))
		return -EINVAL;
	snprintf(c->vdev, sizeof(c->vdev), "net_tap_%s,iface=%s,mac=fixed", c->name, iface);
	snprintf(c->iface, sizeof(c->iface), "%s", iface);
	return 0;
}

static int parse_vhost(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *socket;

	if (get_text(json, "socket", &socket, err))
		return -EINVAL;
	c->client = ctl_bool(&ctl_port_config, json, "client");
	snprintf(c->vdev, sizeof(c->vdev), "net_vhost_%s,iface=%s,queues=1,client=%d", c->name,
		socket, c->client);
	snprintf(c->socket, sizeof(c->socket), "%s", socket);
	return 0;
}

static int parse_pcap(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *rx, *tx;

	if (get_text(json, "rx", &rx, err) || get_text(json, "tx", &tx, err))
		return -EINVAL;
	if (rx == NULL && tx == NULL)
		return invalid(err, "rx", "a pcap port needs rx, tx or both");
	snprintf(c->vdev, sizeof(c->vdev), "net_pcap_%s%s%s%s%s", c->name, rx ? ",rx_pcap=" : "",
		rx ? rx : "", tx ? ",tx_pcap=" : "", tx ? tx : "");
	return 0;
}

/* By itself the null driver receives frames of zeros without end; here it receives nothing. */
static int parse_null(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	(void)json;
	(void)err;
	snprintf(c->vdev, sizeof(c->vdev), "net_null_%s,no-rx=1", c->name);
	return 0;
}

static int parse_ring(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *peer;

	if (strlen(c->name) > RING_NAME_MAX)
		return invalid(
			err, "name", "a ring port's has at most %d characters", RING_NAME_MAX);
	if (get_text(json, "peer", &peer, err))
		return -EINVAL;
	if (peer != NULL && strcmp(peer, c->name) == 0)
		return invalid(err, "peer", "a port cannot be its own peer");
	snprintf(c->peer, sizeof(c->peer), "%s", peer ? peer : "");
	return 0;
}

static int parse_pci(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *address;
	const json_t *args = json_object_get(json, "args");
	unsigned domain, bus, dev, fn;
	char end;

	if (get_text(json, "address", &address, err))
		return -EINVAL;
	if (sscanf(address, "%4x:%2x:%2x.%1x%c", &domain, &bus, &dev, &fn, &end) != 4)
		return invalid(err, "address", "\"%s\" does not look like 0000:3b:00.0", address);
	snprintf(c->pci, sizeof(c->pci), "%s", address);
	snprintf(c->vdev, sizeof(c->vdev), "%s%s%.400s", address, args ? "," : "",
		args ? json_string_value(args) : "");
	return 0;
}

static int parse_vdev(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *args = json_string_value(json_object_get(json, "args"));

	if (strlen(args) >= sizeof(c->vdev))
		return invalid(err, "args", "must have at most %zu bytes", sizeof(c->vdev) - 1);
	snprintf(c->vdev, sizeof(c->vdev), "%s", args);
	return 0;
}

static const struct port_type {
	const char *name;
	int (*parse)(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN]);
	const char *driver; /* of a ring linked, of a pci port loaded by the EAL's start */
} types[] = {
	{"memif", parse_memif, "net_memif"},
	{"af_packet", parse_af_packet, "net_af_packet"},
	{"tap", parse_tap, "net_tap"},
	{"vhost", parse_vhost, "net_vhost"},
	{"ring", parse_ring, NULL},
	{"null", parse_null, "net_null"},
	{"pcap", parse_pcap, "net_pcap"},
	{"pci", parse_pci, NULL},
	{"vdev", parse_vdev, PORT_ANY_DRIVER},
};

/* The schema has no other types. */
static const struct port_type *type_of(const char *name)
{
	unsigned i = 0;

	while (i < sizeof(types) / sizeof(types[0]) && strcmp(name, types[i].name) != 0)
		i++;
	return i < sizeof(types) / sizeof(types[0]) ? &types[i] : NULL;
}

const char *port_config_driver(const struct port_config *config)
{
	const struct port_type *type = type_of(config->type);

	return type != NULL ? type->driver : PORT_ANY_DRIVER;
}

static int get_common(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const json_t *mac = json_object_get(json, "mac");

	if (mac != NULL) {
		if (wire_mac_parse(json_string_value(mac), c->mac))
			return invalid(err, "mac", "must look like 02:00:00:00:00:01");
		if (c->mac[0] & 1)
			return invalid(err, "mac", "must not be a multicast address");
		c->has_mac = true;
	}
	if (get_desc(json, "rxd", &c->rxd, err) || get_desc(json, "txd", &c->txd, err))
		return -EINVAL;
	c->mtu = (uint16_t)ctl_int(&ctl_port_config, json, "mtu");
	c->queues = 1;
	return 0;
}

static int parse(const json_t *json, struct port_config *config, char err[PORT_ERR_LEN])
{
	const struct port_type *type;
	struct port_config c = {0};
	struct ctl_problem problem;

	if (ctl_check_value(&ctl_port_config, json, "", &problem) < 0) {
		ctl_problem_text(&problem, err, PORT_ERR_LEN);
		return -EINVAL;
	}
	type = type_of(json_string_value(json_object_get(json, "type")));
	if (type == NULL)
		return invalid(err, "type", "is not built");
	snprintf(c.type, sizeof(c.type), "%s", type->name);
	if (get_name(json, &c, err) || get_common(json, &c, err) || type->parse(json, &c, err))
		return -EINVAL;
	*config = c;
	return 0;
}

int port_config_parse(const json_t *json, struct port_config *config, char err[PORT_ERR_LEN])
{
	json_t *plain = ctl_strip_comments(json);
	int rc = plain ? parse(plain, config, err) : invalid(err, "port", "no memory");

	json_decref(plain);
	return rc;
}

void port_config_unplug(struct port_config *c)
{
	char err[PORT_ERR_LEN];

	snprintf(c->type, sizeof(c->type), "null");
	c->socket[0] = c->iface[0] = c->pci[0] = c->peer[0] = '\0';
	c->client = c->zero_copy = false;
	parse_null(NULL, c, err);
}
