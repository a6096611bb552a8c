/* SPDX-License-Identifier: BSD-3-Clause */
/* What makes an IP packet a fragment (RFC 791, 3.1; RFC 8200, 4.5). */
#ifndef WIRE_IP_FRAGMENT_H
#define WIRE_IP_FRAGMENT_H

#include <stdbool.h>
#include <stdint.h>

/* In ip4_hdr.frag, beside IP4_DF: more fragments follow, and the offset, which say together whether
 * it is one. */
enum { IP4_FRAG_MASK = 0x3fff, IP4_FRAG_OFFSET = 0x1fff };

/* IPv6's header, by the number that announces it. */
enum { IP_PROTO_FRAGMENT = 44, IP6_FRAGMENT_LEN = 8 };

/* p: that header. */
static inline bool ip6_fragment_is_first(const uint8_t *p)
{
	return p[2] == 0 && p[3] >> 3 == 0;
}

#endif
