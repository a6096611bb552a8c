/* SPDX-License-Identifier: BSD-3-Clause */
/* WRITEs to a multicast group: the extension that multicast AllGather asks of RDMA (section II-B,
 * appendix C). A queue pair of type UC with this transport has a group for its peer: in INIT -> RTR
 * ah_attr.grh.dgid is the group and dest_qp_num 0xffffff. Its only request is RDMA WRITE with
 * Immediate, of one packet, and so is all that it takes; no PSN is looked at, since many send and
 * packets may come in any order. It hears the groups that it is attached to
 * (rnic_qp_attach_mcast), never itself.
 *
 * A WRITE names memory by an agreed key and offset, the same for all receivers: each of them opens
 * a window, which says where the offsets are here and who may write which of them. So a packet is
 * placed at once, without staging, and a receive request, of no bytes, tells of it. As nobody looks
 * at a packet between wire and memory, the window is all that guards it, and holds more than a key
 * does:
 *
 *	key             the window's; a new one for each use keeps late packets out
 *	source address  one of the writers', and the offset in that writer's part
 *	offset, length  a whole packet of the part: its MTU's multiple, and an MTU but
 *	                the last
 *	immediate data  the number of that packet, so that it never speaks of another one
 *
 * What is not so is dropped and counted, nothing is written: RNIC_DROP_ACCESS, for the source
 * RNIC_DROP_SOURCE, for the length RNIC_DROP_LENGTH, without a receive request RNIC_DROP_RNR, of
 * other opcodes RNIC_DROP_UNSUPPORTED.
 *
 * Threads and errors as rnic.h; windows are the owner's, what comes is taken by the queue pair's
 * worker, if it has one. */
#ifndef RNIC_UC_MCAST_H
#define RNIC_UC_MCAST_H

#include "lib/rnic/rnic.h"

extern const struct transport_ops rnic_uc_mcast;

enum { RNIC_MAX_WRITERS = 1 << 16 };

/* Parts may have the same address, if several of a group send from it. */
struct rnic_mcast_writer {
	struct wire_ip ip;
	uint64_t va, len; /* its part of the window */
	uint32_t first;   /* immediate data of the part's first packet */
};

struct rnic_mcast_window {
	uint32_t key;
	uint32_t lkey;      /* of a region of the queue pair's domain, with LOCAL_WRITE */
	uint64_t addr, len; /* offset 0 is addr */
	/* Low bits of the immediate data in which packets are counted, modulo; the others are those
	 * of `first`. */
	uint32_t number_mask;
	const struct rnic_mcast_writer *writer; /* copied */
	unsigned n_writers;
};

/* Opens a window, instead of the one before; NULL: closes it. Before RTR there is none, and RESET
 * closes it; QPs need IBV_ACCESS_REMOTE_WRITE in qp_access_flags. -EOPNOTSUPP: the QP has another
 * transport; -EINVAL: the state, the memory is not registered so, a part that is not within the
 * window, mask + 1 no power of two, too many writers; -ENOMEM. */
int rnic_qp_mcast_window(struct rnic_qp *qp, const struct rnic_mcast_window *window);

#endif
