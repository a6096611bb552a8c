/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/lldp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"

/* A TLV begins with 7 bits of type and 9 of length (802.1AB, 8.4). */
enum {
	TLV_END,
	TLV_CHASSIS,
	TLV_PORT,
	TLV_TTL,
	TLV_NAME = 5,
	TLV_HEAD = 2,
	TLV_LEN_BITS = 9,
	TLV_LEN_MASK = (1 << TLV_LEN_BITS) - 1,
	MAX_SUBTYPE = 7,
	MAC_LEN = 6,
	IANA_IP4 = 1,
	IANA_IP6 = 2,
};

static const uint8_t nearest_bridge[MAC_LEN] = {0x01, 0x80, 0xc2, 0, 0, 0x0e};

static_assert(LLDP_MAX_LEN >= ETH_HDR_LEN + 2 * (TLV_HEAD + 1 + LLDP_ID_MAX) + (TLV_HEAD + 2) +
				      (TLV_HEAD + LLDP_ID_MAX) + TLV_HEAD,
	"room for the longest frame");

bool wire_is_lldp(const uint8_t *frame, size_t len)
{
	return len >= ETH_HDR_LEN && get_be16(frame + 2 * MAC_LEN) == ETH_TYPE_LLDP &&
	       memcmp(frame, nearest_bridge, sizeof(nearest_bridge)) == 0;
}

/* ---- reading ---- */

static bool id_ok(const struct wire_lldp_id *id, uint8_t mac_type)
{
	return id->len > 0 && id->type > 0 && id->type <= MAX_SUBTYPE &&
	       (id->type != mac_type || id->len == MAC_LEN);
}

static enum wire_lldp_error read_id(
	const uint8_t *p, size_t len, uint8_t mac_type, struct wire_lldp_id *id)
{
	if (len < 1 || len > 1 + LLDP_ID_MAX)
		return WIRE_LLDP_ID;
	id->type = p[0];
	id->len = (uint8_t)(len - 1);
	memcpy(id->b, p + 1, len - 1);
	return id_ok(id, mac_type) ? WIRE_LLDP_OK : WIRE_LLDP_ID;
}

/* The n-th TLV, which is not the end. */
static enum wire_lldp_error take(
	unsigned n, unsigned type, const uint8_t *p, size_t len, struct wire_lldp *says)
{
	if (n < TLV_TTL ? type != n + 1 : type <= TLV_TTL)
		return WIRE_LLDP_ORDER;
	switch (type) {
	case TLV_CHASSIS:
		return read_id(p, len, LLDP_CHASSIS_MAC, &says->chassis);
	case TLV_PORT:
		return read_id(p, len, LLDP_PORT_MAC, &says->port);
	case TLV_TTL:
		if (len < sizeof(says->ttl))
			return WIRE_LLDP_TTL;
		says->ttl = get_be16(p);
		return WIRE_LLDP_OK;
	case TLV_NAME:
		if (says->name_len == 0 && len <= LLDP_ID_MAX) {
			says->name_len = (uint8_t)len;
			memcpy(says->name, p, len);
		}
		return WIRE_LLDP_OK;
	default:
		return WIRE_LLDP_OK;
	}
}

enum wire_lldp_error wire_lldp_parse(const uint8_t *frame, size_t len, struct wire_lldp *says)
{
	const uint8_t *p = frame + ETH_HDR_LEN;
	size_t left = len - ETH_HDR_LEN;
	unsigned n = 0;

	memset(says, 0, sizeof(*says));
	for (; left > 0; n++) {
		enum wire_lldp_error error;
		unsigned type, size;

		if (left < TLV_HEAD)
			return WIRE_LLDP_TLV;
		type = p[0] >> 1;
		size = get_be16(p) & TLV_LEN_MASK;
		p += TLV_HEAD;
		left -= TLV_HEAD;
		if (size > left || (type == TLV_END && size > 0))
			return WIRE_LLDP_TLV;
		if (type == TLV_END)
			break;
		error = take(n, type, p, size, says);
		if (error != WIRE_LLDP_OK)
			return error;
		p += size;
		left -= size;
	}
	return n < TLV_TTL ? WIRE_LLDP_ORDER : WIRE_LLDP_OK;
}

bool wire_lldp_id_eq(const struct wire_lldp_id *a, const struct wire_lldp_id *b)
{
	return a->type == b->type && a->len == b->len && memcmp(a->b, b->b, a->len) == 0;
}

/* ---- building ---- */

static uint8_t *put_head(uint8_t *p, unsigned type, size_t len)
{
	put_be16(p, (uint16_t)(type << TLV_LEN_BITS | len));
	return p + TLV_HEAD;
}

static uint8_t *put_id(uint8_t *p, unsigned type, const struct wire_lldp_id *id)
{
	p = put_head(p, type, 1u + id->len);
	*p++ = id->type;
	memcpy(p, id->b, id->len);
	return p + id->len;
}

static size_t length(const struct wire_lldp *says)
{
	size_t len = ETH_HDR_LEN + (TLV_HEAD + 1u + says->chassis.len) +
		     (TLV_HEAD + 1u + says->port.len) + (TLV_HEAD + sizeof(says->ttl)) + TLV_HEAD;

	if (says->name_len > 0)
		len += TLV_HEAD + (size_t)says->name_len;
	return len < ETH_MIN_LEN ? (size_t)ETH_MIN_LEN : len;
}

int wire_build_lldp(uint8_t *out, size_t cap, const uint8_t smac[6], const struct wire_lldp *says)
{
	const size_t len = length(says);
	uint8_t *p = out + ETH_HDR_LEN;

	if (!id_ok(&says->chassis, LLDP_CHASSIS_MAC) || !id_ok(&says->port, LLDP_PORT_MAC))
		return -EINVAL;
	if (cap < len)
		return -ENOSPC;
	memset(out, 0, ETH_MIN_LEN);
	memcpy(out, nearest_bridge, MAC_LEN);
	memcpy(out + MAC_LEN, smac, MAC_LEN);
	put_be16(out + 2 * MAC_LEN, ETH_TYPE_LLDP);
	p = put_id(p, TLV_CHASSIS, &says->chassis);
	p = put_id(p, TLV_PORT, &says->port);
	p = put_head(p, TLV_TTL, sizeof(says->ttl));
	put_be16(p, says->ttl);
	p += sizeof(says->ttl);
	if (says->name_len > 0) {
		p = put_head(p, TLV_NAME, says->name_len);
		memcpy(p, says->name, says->name_len);
		p += says->name_len;
	}
	put_head(p, TLV_END, 0);
	return (int)len;
}

/* ---- as text ---- */

static const char *bytes_text(const uint8_t *b, size_t len, char *buf, size_t cap)
{
	bool plain = true;
	size_t at;

	for (size_t i = 0; i < len; i++)
		plain &= b[i] >= ' ' && b[i] <= '~';
	if (plain) {
		snprintf(buf, cap, "%.*s", (int)len, (const char *)b);
		return buf;
	}
	at = (size_t)snprintf(buf, cap, "0x");
	for (size_t i = 0; i < len && at + 2 < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%02x", b[i]);
	return buf;
}

/* Behind a byte that says of which family it is. */
static bool read_ip(const struct wire_lldp_id *id, struct wire_ip *ip)
{
	if (id->b[0] == IANA_IP4 && id->len == 1 + 4) {
		*ip = wire_ip_from4(get_be32(id->b + 1));
		return true;
	}
	if (id->b[0] != IANA_IP6 || id->len != 1 + sizeof(ip->b))
		return false;
	memcpy(ip->b, id->b + 1, sizeof(ip->b));
	return true;
}

static const char *id_text(
	const struct wire_lldp_id *id, unsigned mac, unsigned network, char *buf, size_t cap)
{
	char text[WIRE_IP_STRLEN];
	struct wire_ip ip;

	if (id->type == mac && id->len == MAC_LEN)
		wire_mac_format(id->b, text, sizeof(text));
	else if (id->type == network && read_ip(id, &ip))
		wire_ip_format(&ip, text, sizeof(text));
	else
		return bytes_text(id->b, id->len, buf, cap);
	snprintf(buf, cap, "%s", text);
	return buf;
}

const char *wire_lldp_chassis_text(const struct wire_lldp_id *id, char *buf, size_t cap)
{
	return id_text(id, LLDP_CHASSIS_MAC, LLDP_CHASSIS_NETWORK, buf, cap);
}

const char *wire_lldp_port_text(const struct wire_lldp_id *id, char *buf, size_t cap)
{
	return id_text(id, LLDP_PORT_MAC, LLDP_PORT_NETWORK, buf, cap);
}

const char *wire_lldp_name_text(const struct wire_lldp *says, char *buf, size_t cap)
{
	return bytes_text(says->name, says->name_len, buf, cap);
}
