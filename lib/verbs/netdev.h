/* SPDX-License-Identifier: BSD-3-Clause */
/* The Ethernet face of the device: a network interface (a tap) of the kernel's that shares the
 * port with the rnic. Frames that are not the rnic's are written to it; frames that the kernel
 * sends through it leave through the port. rnic_readers decides which is which.
 *
 * Threads: read, write and due by the owner of the device only; wake_fd by any. */
#ifndef VERBS_NETDEV_H
#define VERBS_NETDEV_H

#include "lib/verbs/config.h"

/* X(symbol, name, meaning) */
#define IV_NETDEV_COUNTERS(X)                                                         \
	X(RX, "tap_rx", "frames from the wire given to the interface")                \
	X(TX, "tap_tx", "frames of the interface sent")                               \
	X(RX_DOWN, "tap_rx_down", "frames from the wire lost: the interface is down") \
	X(RX_FULL, "tap_rx_full", "frames from the wire lost: its queue is full")     \
	X(TX_TOO_LONG, "tap_tx_too_long", "frames of the interface above the port's MTU, lost")

enum iv_netdev_counter {
#define X(sym, name, text) IV_NETDEV_##sym,
	IV_NETDEV_COUNTERS(X)
#undef X
		IV_NETDEV_N_COUNTERS
};

struct iv_netdev {
	int fd; /* a frame per read and write, non-blocking; not closed here */
	uint8_t *frame;
	size_t cap;         /* the longest frame that may leave */
	uint64_t looked_ns; /* when it was last found to have nothing to send */
	atomic_int wake_fd; /* fd while there is nothing to read, to be waited for; else 0 */
	uint64_t count[IV_NETDEV_N_COUNTERS];
};

/* mtu: largest IP packet. 0 or -ENOMEM. */
int iv_netdev_init(struct iv_netdev *netdev, int fd, unsigned mtu);
void iv_netdev_fini(struct iv_netdev *netdev);
/* One received frame for the kernel. */
void iv_netdev_write(struct iv_netdev *netdev, const uint8_t *frame, size_t len);
/* The next frame of the kernel's, valid until the next call; false: there is none. */
bool iv_netdev_read(struct iv_netdev *netdev, struct rnic_frame *frame, uint64_t now);
/* Is it time to read? Asking costs a system call, and a program that polls takes turns much more
 * often than the interface has frames. */
bool iv_netdev_due(const struct iv_netdev *netdev, uint64_t now);
unsigned iv_netdev_stats(const struct iv_netdev *netdev, struct inc_dv_stat *stats, unsigned n);

/* Attaches to the tap device of that name in the network namespace of the calling thread, or makes
 * one that goes with the process, and sees that it is up and has MAC, MTU and addresses of the
 * port. What is right already is left alone: then no privilege is needed but to be the tap's owner.
 * Returns the file descriptor, or -errno with "netdev: NAME: reason" in err. */
int iv_tap_open(const struct iv_config *config, char err[PORT_ERR_LEN]);

#endif
