/* SPDX-License-Identifier: BSD-3-Clause */
/* WRITEs to a multicast group: the extension that multicast AllGather asks of RDMA (section II-B,
 * appendix C). A queue pair of type UC with this transport has a group for its peer: in INIT -> RTR
 * ah_attr.grh.dgid is the group and dest_qp_num 0xffffff. Its only request is RDMA WRITE with
 * Immediate, of one packet, and so is all that it takes; no PSN is looked at, since many send and
 * packets may come in any order. It hears the groups that it is attached to
 * (rnic_qp_attach_mcast), never itself.
 *
 * A WRITE names memory by an agreed key and offset, the same for all receivers: each of them opens
 * a window (mcast_window.h), which says where the offsets are here and who may write which of them.
 * So a packet is placed at once, without staging. Without a window all are dropped and counted
 * (RNIC_DROP_ACCESS). */
#ifndef RNIC_UC_MCAST_H
#define RNIC_UC_MCAST_H

#include "lib/rnic/mcast_window.h"
#include "lib/rnic/rnic.h"

extern const struct transport_ops rnic_uc_mcast;

#endif
