/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/port/internal.h"
#include "lib/wire/ip.h"

enum {
	MTU_MIN = 576,
	MTU_MAX = 9600,
	MTU_DEFAULT = 4200,
	MTU_MAX_TAP = 1500, /* the driver of DPDK 22.11 sends nothing larger */
	DESC_MIN = 64,
	DESC_MAX = 16384,
	DESC_DEFAULT = 1024,
	SUN_PATH_MAX = 107,
	IFNAME_MAX = 15,
	RING_NAME_MAX = 25,
};

int port_json_known(
	const json_t *obj, const char *path, const char *const *keys, char err[PORT_ERR_LEN])
{
	const char *key;
	json_t *value;

	if (!json_is_object(obj)) {
		snprintf(err, PORT_ERR_LEN, "%s: must be an object", path);
		return -EINVAL;
	}
	json_object_foreach((json_t *)obj, key, value)
	{
		unsigned i = 0;

		while (key[0] != '#' && keys[i] != NULL && strcmp(key, keys[i]) != 0)
			i++;
		if (key[0] != '#' && keys[i] == NULL) {
			snprintf(err, PORT_ERR_LEN, "%s%s%.64s: unknown field", path,
				path[0] ? "." : "", key);
			return -EINVAL;
		}
	}
	return 0;
}

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

static int get_int(const json_t *json, const char *field, int min, int max, int dflt, int *value,
	char err[PORT_ERR_LEN])
{
	const json_t *v = json_object_get(json, field);

	*value = dflt;
	if (v == NULL)
		return 0;
	if (!json_is_integer(v))
		return invalid(err, field, "must be an integer");
	if (json_integer_value(v) < min || json_integer_value(v) > max)
		return invalid(err, field, "%lld is out of range %d..%d",
			(long long)json_integer_value(v), min, max);
	*value = (int)json_integer_value(v);
	return 0;
}

static int get_bool(
	const json_t *json, const char *field, bool dflt, bool *value, char err[PORT_ERR_LEN])
{
	const json_t *v = json_object_get(json, field);

	*value = dflt;
	if (v == NULL)
		return 0;
	if (!json_is_boolean(v))
		return invalid(err, field, "must be true or false");
	*value = json_is_true(v);
	return 0;
}

/* A text that goes into devargs, where these characters would end it. *value NULL if absent. */
static int get_text(const json_t *json, const char *field, bool required, size_t max,
	const char **value, char err[PORT_ERR_LEN])
{
	const json_t *v = json_object_get(json, field);

	*value = NULL;
	if (v == NULL)
		return required ? invalid(err, field, "is required for type %s",
					  json_string_value(json_object_get(json, "type")))
				: 0;
	if (!json_is_string(v) || json_string_length(v) == 0)
		return invalid(err, field, "must be a text that is not empty");
	if (json_string_length(v) != strlen(json_string_value(v)) || json_string_length(v) > max)
		return invalid(err, field, "must have at most %zu characters", max);
	if (strpbrk(json_string_value(v), ",=[]\"' \t\n") != NULL)
		return invalid(err, field, "must not contain , = [ ] quotes or blanks");
	*value = json_string_value(v);
	return 0;
}

static int get_desc(const json_t *json, const char *field, uint16_t *value, char err[PORT_ERR_LEN])
{
	int n;

	if (get_int(json, field, DESC_MIN, DESC_MAX, DESC_DEFAULT, &n, err))
		return -EINVAL;
	if (n & (n - 1))
		return invalid(err, field, "%d is not a power of two", n);
	*value = (uint16_t)n;
	return 0;
}

static int get_name(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.-";
	const char *name = json_string_value(json_object_get(json, "name"));

	if (name == NULL || name[0] == '\0')
		return invalid(err, "name", "is required, a text that is not empty");
	if (strlen(name) >= sizeof(c->name) || strspn(name, allowed) != strlen(name))
		return invalid(err, "name", "must be at most %zu characters of A-Z a-z 0-9 _ . -",
			sizeof(c->name) - 1);
	snprintf(c->name, sizeof(c->name), "%s", name);
	return 0;
}

static int parse_memif(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *socket, *role;
	unsigned log2 = 0;
	bool zero_copy;
	int id;

	if (get_text(json, "socket", true, SUN_PATH_MAX, &socket, err) ||
		get_text(json, "role", false, 8, &role, err) ||
		get_int(json, "id", 0, 65535, 0, &id, err) ||
		get_bool(json, "zero_copy", true, &zero_copy, err))
		return -EINVAL;
	if (role == NULL)
		role = "client";
	if (strcmp(role, "server") != 0 && strcmp(role, "client") != 0)
		return invalid(err, "role", "\"%s\" is neither server nor client", role);
	c->client = strcmp(role, "client") == 0;
	c->id = (uint16_t)id;
	c->zero_copy = c->client && zero_copy;
	if (!c->client && json_is_true(json_object_get(json, "zero_copy")))
		return invalid(err, "zero_copy", "only the client of a memif can be zero-copy");
	while ((1u << log2) < c->rxd || (1u << log2) < c->txd)
		log2++;
	if (log2 > 14)
		return invalid(err, "rxd", "a memif has at most 16384 descriptors");
	snprintf(c->vdev, sizeof(c->vdev),
		"net_memif_%s,role=%s,id=%d,socket=%s,socket-abstract=no,rsize=%u,bsize=%u%s",
		c->name, role, id, socket, log2,
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

	static_assert((int)DESC_MIN >= (int)PER_BLOCK, "descriptors are whole blocks");
	if (get_text(json, "iface", true, IFNAME_MAX, &iface, err))
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

	if (get_text(json, "iface", true, IFNAME_MAX, &iface, err))
		return -EINVAL;
	snprintf(c->vdev, sizeof(c->vdev), "net_tap_%s,iface=%s,mac=fixed", c->name, iface);
	snprintf(c->iface, sizeof(c->iface), "%s", iface);
	return 0;
}

static int parse_vhost(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *socket;

	if (get_text(json, "socket", true, SUN_PATH_MAX, &socket, err) ||
		get_bool(json, "client", false, &c->client, err))
		return -EINVAL;
	snprintf(c->vdev, sizeof(c->vdev), "net_vhost_%s,iface=%s,queues=1,client=%d", c->name,
		socket, c->client);
	snprintf(c->socket, sizeof(c->socket), "%s", socket);
	return 0;
}

static int parse_pcap(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *rx, *tx;

	if (get_text(json, "rx", false, 200, &rx, err) ||
		get_text(json, "tx", false, 200, &tx, err))
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
	if (get_text(json, "peer", false, RING_NAME_MAX, &peer, err))
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

	if (get_text(json, "address", true, 16, &address, err))
		return -EINVAL;
	if (sscanf(address, "%4x:%2x:%2x.%1x%c", &domain, &bus, &dev, &fn, &end) != 4)
		return invalid(err, "address", "\"%s\" does not look like 0000:3b:00.0", address);
	if (args != NULL && !json_is_string(args))
		return invalid(err, "args", "must be a text of devargs: \"key=value,key=value\"");
	snprintf(c->pci, sizeof(c->pci), "%s", address);
	snprintf(c->vdev, sizeof(c->vdev), "%s%s%.400s", address, args ? "," : "",
		args ? json_string_value(args) : "");
	return 0;
}

static int parse_vdev(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const char *args = json_string_value(json_object_get(json, "args"));

	if (args == NULL || args[0] == '\0' || strlen(args) >= sizeof(c->vdev))
		return invalid(err, "args",
			"is required for type vdev: a --vdev text, at most %zu characters",
			sizeof(c->vdev) - 1);
	snprintf(c->vdev, sizeof(c->vdev), "%s", args);
	return 0;
}

static const struct port_type {
	const char *name;
	const char *keys[5];
	int (*parse)(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN]);
} types[] = {
	{"memif", {"socket", "role", "id", "zero_copy"}, parse_memif},
	{"af_packet", {"iface"}, parse_af_packet},
	{"tap", {"iface"}, parse_tap},
	{"vhost", {"socket", "client"}, parse_vhost},
	{"ring", {"peer"}, parse_ring},
	{"null", {NULL}, parse_null},
	{"pcap", {"rx", "tx"}, parse_pcap},
	{"pci", {"address", "args"}, parse_pci},
	{"vdev", {"args"}, parse_vdev},
};

static const char *const common_keys[] = {"name", "type", "mac", "mtu", "rxd", "txd"};

static int get_type(const json_t *json, struct port_config *c, const struct port_type **type,
	char err[PORT_ERR_LEN])
{
	const char *name = json_string_value(json_object_get(json, "type"));
	unsigned n = sizeof(types) / sizeof(types[0]), i = 0;

	while (i < n && (name == NULL || strcmp(name, types[i].name) != 0))
		i++;
	if (i == n)
		return invalid(err, "type",
			"must be memif, af_packet, tap, vhost, ring, null, pcap, pci or vdev");
	snprintf(c->type, sizeof(c->type), "%s", name);
	*type = &types[i];
	return 0;
}

static int check_keys(const json_t *json, const struct port_type *type, char err[PORT_ERR_LEN])
{
	const char *keys[16] = {NULL};
	unsigned n = 0;

	for (unsigned i = 0; i < sizeof(common_keys) / sizeof(common_keys[0]); i++)
		keys[n++] = common_keys[i];
	for (unsigned i = 0; type->keys[i] != NULL; i++)
		keys[n++] = type->keys[i];
	return port_json_known(json, "", keys, err);
}

static int get_common(const json_t *json, struct port_config *c, char err[PORT_ERR_LEN])
{
	const json_t *mac = json_object_get(json, "mac");
	bool tap = strcmp(c->type, "tap") == 0;
	int mtu, mtu_max = tap ? MTU_MAX_TAP : MTU_MAX;

	if (mac != NULL) {
		if (!json_is_string(mac) || wire_mac_parse(json_string_value(mac), c->mac))
			return invalid(err, "mac", "must look like 02:00:00:00:00:01");
		if (c->mac[0] & 1)
			return invalid(err, "mac", "must not be a multicast address");
		c->has_mac = true;
	}
	if (get_int(json, "mtu", MTU_MIN, mtu_max, tap ? MTU_MAX_TAP : MTU_DEFAULT, &mtu, err) ||
		get_desc(json, "rxd", &c->rxd, err) || get_desc(json, "txd", &c->txd, err))
		return -EINVAL;
	c->mtu = (uint16_t)mtu;
	c->queues = 1;
	return 0;
}

int port_config_parse(const json_t *json, struct port_config *config, char err[PORT_ERR_LEN])
{
	struct port_config c = {0};
	const struct port_type *type = NULL;

	if (!json_is_object(json))
		return invalid(err, "port", "must be an object");
	if (get_name(json, &c, err) || get_type(json, &c, &type, err) ||
		check_keys(json, type, err) || get_common(json, &c, err) ||
		type->parse(json, &c, err))
		return -EINVAL;
	*config = c;
	return 0;
}
