/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether what asks the switch itself for something may be answered (RFC 1122, 3.2.1.3, 3.2.2.6 and
 * 3.3.6; RFC 4291, 2.5 and 2.7): an answer goes to one host, and to no address of the switch's. */
#ifndef DATAPLANE_IP_ASKER_H
#define DATAPLANE_IP_ASKER_H

#include <string.h>

#include "dataplane/runtime/node.h"

static inline bool asker_is_host(const struct wire_ip *ip)
{
	static const uint8_t zero[15];
	const uint8_t *b = ip->b;

	if (wire_ip_is4(ip))
		return b[12] != 0 && b[12] != 127 && b[12] < 224;
	return b[0] != 0xff && (memcmp(b, zero, sizeof(zero)) != 0 || b[15] > 1);
}

/* mac: where an answer would go, as far as it is from the frame's source. */
static inline enum drop asker_check(const struct worker *w, const uint8_t *frame,
	const uint8_t mac[6], const struct wire_ip *src)
{
	if ((frame[6] | mac[0]) & 1)
		return DROP_L2_SOURCE;
	if (!asker_is_host(src))
		return DROP_IP_SOURCE;
	return fwd_is_local(w->fwd, src) ? DROP_IP_FORGED : DROP_NONE;
}

#endif
