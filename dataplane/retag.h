/* SPDX-License-Identifier: BSD-3-Clause */
/* The VLAN tag of a frame that was received with one or without. */
#ifndef DATAPLANE_RETAG_H
#define DATAPLANE_RETAG_H

#include <rte_mbuf.h>
#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"

/* Gives a routed frame the tag of the VLAN that it leaves in (0: none), whatever it came with; of
 * its own tag the priority stays. False: there is no room in the buffer. */
static inline bool retag(struct rte_mbuf *m, bool tagged, uint16_t vlan)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	if (vlan == 0 && tagged) {
		memmove(frame + VLAN_HDR_LEN, frame, 12);
		rte_pktmbuf_adj(m, VLAN_HDR_LEN);
	} else if (vlan != 0 && tagged) {
		put_be16(frame + 14, (uint16_t)((get_be16(frame + 14) & ~WIRE_VLAN_ID) | vlan));
	} else if (vlan != 0) {
		frame = (uint8_t *)rte_pktmbuf_prepend(m, VLAN_HDR_LEN);
		if (frame == NULL)
			return false;
		memmove(frame, frame + VLAN_HDR_LEN, 12);
		put_be16(frame + 12, ETH_TYPE_VLAN);
		put_be16(frame + 14, vlan);
	}
	return true;
}

#endif
