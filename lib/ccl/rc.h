/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs brought up: those of CommLib's ranks to one another, and of plug-ins. */
#ifndef CCL_RC_H
#define CCL_RC_H

#include <infiniband/verbs.h>

#include "lib/wire/ip.h"

/* ibv_modify_qp; 0 or a positive errno. A NIC of the kernel asks for the peer's MAC on the way to
 * RTR, and gives up after a second: tried again, for an ARP packet may be lost. */
int ccl_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

/* An RC queue pair from RESET to INIT; from there to RTS, PSNs from 0 on. 0 or a positive errno. */
int ccl_rc_init(struct ibv_qp *qp, uint8_t port);
struct ccl_rc_peer {
	struct wire_ip ip;
	uint32_t qpn;
	uint8_t port, gid_index; /* own ones */
	unsigned mtu;
	uint8_t reads; /* outstanding, either way */
};
int ccl_rc_connect(struct ibv_qp *qp, const struct ccl_rc_peer *peer);

#endif
