/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors to the sources of packets that are lost here. */
#ifndef DATAPLANE_IP_ICMP_ERROR_H
#define DATAPLANE_IP_ICMP_ERROR_H

#include "dataplane/runtime/node.h"

/* Errors about packets from one port: a second, and at once, of each worker. */
enum { ICMP_ERROR_RATE = 100, ICMP_ERROR_BURST = 50 };

/* Tells the source of m that it is lost for this reason, if that is one to be told, the source is a
 * host that is known, and there have not been too many. m stays the caller's; pkt: as m is now, its
 * hop limit not yet taken from. value: as of wire_build_icmp_error. */
void icmp_error(struct worker *w, const struct rte_mbuf *m, const struct wire_pkt *pkt,
	enum drop why, uint16_t value);

/* Inside or at an end of a tunnel of the switch's own, whose source would not understand. */
static inline bool ip_is_tunnelled(const struct meta *meta)
{
	return meta->srv6.passes != 0;
}

#endif
