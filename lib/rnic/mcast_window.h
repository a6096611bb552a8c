/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a queue pair fills from a multicast group by itself: the receive path of multicast
 * AllGather (sections III-B, V-B, appendix C), in the device. All ranks agree on the numbers of the
 * packets and on who sends which; each receiver says in a window where they go here. A packet is
 * judged where it lies, in the buffer of the port's receive ring, and its payload copied once, to
 * its place: what is not right is never written.
 *
 *	immediate data  number_mask's bits of it count the packets of the parts, the others are
 *	                those of the first one's; it is one of a part's
 *	source          the part's: address, of datagrams also queue pair
 *	length          a whole packet: chunk, and what is left for the last of a part
 *	WRITEs          the window's key (a new one for each use keeps late packets out), and the
 *	                offset of that number
 *
 * What is not so is dropped and counted: RNIC_DROP_ACCESS, for the source RNIC_DROP_SOURCE, for the
 * length RNIC_DROP_LENGTH, of other opcodes RNIC_DROP_UNSUPPORTED. Refusing costs no more than
 * finding the part: the logarithm of their number.
 *
 * Without marks each packet takes a receive request, of no bytes, and one that comes twice is
 * written twice. With marks nobody is told before the last of those that are expected has come:
 * that one takes a request (RNIC_DROP_RNR without: it is as if it had not come), the others set
 * their bits, when their bytes are there. What is marked is not written again.
 *
 * Transports: rnic_uc_mcast, and UD, with marks alone. While a UD queue pair has a window it takes
 * nothing but what is for it, and does not hear itself; one without writers takes nothing.
 *
 * Threads and errors as rnic.h; windows are the owner's, what comes is taken by the queue pair's
 * worker, if it has one. */
#ifndef RNIC_MCAST_WINDOW_H
#define RNIC_MCAST_WINDOW_H

#include "lib/rnic/rnic.h"

enum { RNIC_MAX_WRITERS = 1 << 16 };

/* Parts may have the same source, if several of a group send from it. */
struct rnic_mcast_writer {
	struct wire_ip ip;
	uint32_t qpn;     /* UD */
	uint32_t first;   /* immediate data of the part's first packet */
	uint64_t va, len; /* its part of the window */
};

/* The caller's until the window is closed; by the worker stored with release, the bits after the
 * payload, so to be loaded with acquire. */
struct rnic_mcast_marks {
	uint64_t *bit;  /* NULL: no marks */
	uint32_t n;     /* bits */
	uint32_t first; /* of the first writer's first packet; those of other numbers follow */
	uint32_t expect;
	uint64_t *again; /* packets that have come once more */
};

struct rnic_mcast_window {
	uint32_t key;       /* UC */
	uint32_t lkey;      /* of a region of the queue pair's domain, with LOCAL_WRITE */
	uint64_t addr, len; /* offset 0 is addr */
	uint32_t chunk;     /* 0: the path MTU */
	uint32_t number_mask;
	/* Copied. In the order of their numbers, counted from the first one's, no number in two. */
	const struct rnic_mcast_writer *writer;
	unsigned n_writers;
	struct rnic_mcast_marks marks;
};

/* Opens a window, instead of the one before; NULL: closes it, and when this returns nothing is
 * written or marked any more. Before RTR there is none, and RESET closes it; UC queue pairs need
 * IBV_ACCESS_REMOTE_WRITE in qp_access_flags. -EOPNOTSUPP: the QP has another transport; -EINVAL:
 * the state, the memory is not registered so, a part that is not within the window, numbers out of
 * order, a bit beyond the marks, mask + 1 no power of two, too many writers, UD without marks;
 * -ENOMEM. */
int rnic_qp_mcast_window(struct rnic_qp *qp, const struct rnic_mcast_window *window);

#endif
