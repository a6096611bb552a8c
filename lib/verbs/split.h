/* SPDX-License-Identifier: BSD-3-Clause */
/* A device in two halves ("control_lcore"), as ZeroNIC (OSDI '24, 3) has them: the data path has
 * the port and reads every byte (bursts, parsing, ICRC of what comes, ICRC and gathering of what
 * goes); the control path has the rnic (transports, completions, timers, the connection manager).
 * Four rings of pointers join them, each with one producer and one consumer, of slots that both
 * halves hand to and fro:
 *
 *	rx	data to control		a frame in the port's buffer, and what rnic_check said
 *	rx_back	control to data		the same, for the port to have its buffer back
 *	tx	control to data		headers and, by reference, payload, without ICRC
 *	tx_back	data to control		the same, free
 *
 * A ring has room for all its slots, so that nothing is ever lost at one. Who finds no free slot
 * stands back and counts it: the data path leaves frames in the port, the control path leaves them
 * in the rnic.
 *
 * Who places. In ZeroNIC the NIC copies a payload on its own, by the flow cursor that the control
 * stack tells it now and then, and the header follows. Here the control path copies, inside
 * rnic_rx_checked, from the port's buffer, in which the frame stays until then: the verdict
 * (place_decide), the check of keys and bounds, the copy and the completion are one step under the
 * device's ownership, which ibv_dereg_mr or the end of a queue pair wait for as ever. Were it the
 * data path, a verdict would go back, the copy be waited for before the completion, and a region
 * that goes would have to wait for both. The price is that one pass over the payload of two is left
 * on the control path's core.
 *
 * Payload by reference. What stays the transport's (rnic_frame.stays) and is more than a few bytes
 * is read by the data path, in the program's memory. Until it has been, the control path takes no
 * frame, runs no timer and lets nobody else own the device: then nothing completes, is deregistered
 * or freed, whatever a peer claims to have received. What the port has no room for the data path
 * copies, so that this never waits for the wire. All other payload is copied into the slot.
 *
 * Threads: create to stop, and destroy, by one; settle, receive, transmit by the owner of the
 * device; ring_control by any; turn by the data thread, or by the owner while there is none. */
#ifndef VERBS_SPLIT_H
#define VERBS_SPLIT_H

#include "lib/verbs/internal.h"

struct iv_split;

/* For a device with its rnic and port in place. NULL with errno set. */
struct iv_split *iv_split_create(struct iv_dev *dev, unsigned port_mtu);
/* The frames that are still inside go back to the port, unsent. The data thread has been stopped.
 */
void iv_split_destroy(struct iv_split *split);

/* The data thread, on any CPU but control_lcore if there is another. 0 or -errno. */
int iv_split_start(struct iv_split *split, unsigned control_lcore);
void iv_split_stop(struct iv_split *split);
/* Attributes of the control thread: -EINVAL if this process may not run on that CPU. */
int iv_split_pin(pthread_attr_t *attr, unsigned control_lcore);

/* The data path's turn: frames moved. */
unsigned iv_split_turn(struct iv_split *split);

/* Does the data path need anything in the program's memory? While it does (false), the owner may
 * transmit and nothing else; not even that if there is something else to do, which must_settle says
 * and counts: due is what the rings do not show. */
bool iv_split_settled(struct iv_split *split);
bool iv_split_must_settle(struct iv_split *split, bool due);
/* Waits until it does not. */
void iv_split_settle(struct iv_split *split);

/* Settled only. */
unsigned iv_split_receive(struct iv_split *split, uint64_t now);
unsigned iv_split_transmit(struct iv_split *split, uint64_t now);

/* A doorbell rang: the control thread may be asleep. */
void iv_split_ring_control(struct iv_split *split);
/* port_backoff for the control thread, which the bell wakes. */
void iv_split_back_off(struct iv_split *split, struct port_backoff *backoff, unsigned work,
	uint64_t now, uint64_t deadline);

/* Counters: X(symbol, name, meaning) */
#define IV_SPLIT_COUNTERS(X)                                                                   \
	X(RX, "data_rx", "frames handed to the control path")                                  \
	X(TX, "data_tx", "frames handed to the port")                                          \
	X(RX_HELD, "data_rx_held", "turns that left frames in the port: no free slot")         \
	X(TX_HELD, "control_tx_held", "turns that left frames in the rnic: no free slot")      \
	X(REFERENCES, "control_tx_by_reference", "frames whose payload the data path fetched") \
	X(WAITS, "control_waits", "turns that waited for payload to be fetched")               \
	X(COPIED, "data_tx_copied", "frames copied because the port was full")

unsigned iv_split_stats(const struct iv_split *split, struct inc_dv_stat *stats, unsigned n);

#endif
