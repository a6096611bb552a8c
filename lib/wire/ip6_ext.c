/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/ip6_ext.h"

#include <errno.h>

#include "lib/wire/bytes.h"
#include "lib/wire/ip_fragment.h"

enum { EXT_UNIT = 8, SEGMENT_LEN = 16 };

/* RFC 8986, 4.1, S08 and S09. len: of the header, which is in the packet. */
static bool srh_ok(const struct srh_hdr *srh, size_t len)
{
	const unsigned room = (unsigned)(len - sizeof(*srh)) / SEGMENT_LEN;

	return room > srh->last && srh->left <= srh->last + 1u;
}

/* 1: the walk ends here, at a SRH; 0: go on behind it. */
static int routing(const uint8_t *p, size_t len, struct wire_ip6_ext *ext)
{
	struct srh_hdr srh;

	memcpy(&srh, p, sizeof(srh));
	if (srh.left == 0)
		return 0;
	if (srh.type != IP6_ROUTING_SRH)
		return -EPROTONOSUPPORT;
	if (!srh_ok(&srh, len))
		return -EBADMSG;
	ext->srh_len = (uint16_t)len;
	return 1;
}

/* The IPv6 header. */
static int begin(const uint8_t *ip6, size_t len, struct wire_ip6_ext *ext)
{
	size_t end;

	if (len < sizeof(struct wire_ip6_hdr) || ip6[0] >> 4 != 6)
		return -EBADMSG;
	end = sizeof(struct wire_ip6_hdr) + get_be16(ip6 + offsetof(struct wire_ip6_hdr, len));
	if (end > len || end > UINT16_MAX)
		return -EBADMSG;
	*ext = (struct wire_ip6_ext){
		.end = (uint16_t)end,
		.off = sizeof(struct wire_ip6_hdr),
		.next_off = offsetof(struct wire_ip6_hdr, next),
		.proto = ip6[offsetof(struct wire_ip6_hdr, next)],
	};
	return 0;
}

static void step(const uint8_t *ip6, size_t own, struct wire_ip6_ext *ext)
{
	ext->proto = ip6[ext->off];
	ext->next_off = ext->off;
	ext->off = (uint16_t)(ext->off + own);
}

/* From where ext is. */
static int go_on(const uint8_t *ip6, struct wire_ip6_ext *ext)
{
	while (ip6_is_ext(ext->proto)) {
		const uint8_t *p = ip6 + ext->off;
		size_t left = (size_t)(ext->end - ext->off), own;
		int rc;

		if (left < EXT_UNIT)
			return -EBADMSG;
		own = (p[1] + 1u) * EXT_UNIT;
		if (own > left)
			return -EBADMSG;
		rc = ext->proto == IP_PROTO_ROUTING ? routing(p, own, ext) : 0;
		if (rc != 0)
			return rc < 0 ? rc : 0;
		step(ip6, own, ext);
	}
	return 0;
}

int ip6_ext_walk(const uint8_t *ip6, size_t len, struct wire_ip6_ext *ext)
{
	const int rc = begin(ip6, len, ext);

	return rc < 0 ? rc : go_on(ip6, ext);
}

int ip6_ext_walk_into(const uint8_t *ip6, size_t len, struct wire_ip6_ext *ext)
{
	int rc = ip6_ext_walk(ip6, len, ext);

	while (rc == 0 && ext->proto == IP_PROTO_FRAGMENT &&
		ext->end - ext->off >= IP6_FRAGMENT_LEN && ip6_fragment_is_first(ip6 + ext->off)) {
		step(ip6, IP6_FRAGMENT_LEN, ext);
		rc = go_on(ip6, ext);
	}
	return rc;
}
