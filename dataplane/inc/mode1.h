/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-I, connection terminated (docs/inc-protocol.md, section 5; EPIC, algorithm 1): the switch is
 * a RoCE endpoint of its own, with a reliable connection of lib/rnic per edge of the tree.
 * Aggregation is per message; loss, order and retransmission are the connections' business, and
 * receives that are not posted hold the sender.
 *
 * Sans-I/O: whoever owns the device feeds frames to mode1_rnic() with rnic_rx, calls mode1_run
 * afterwards, then takes what rnic_tx has to send, and calls mode1_run once more: a NAK that leaves
 * ends its queue pair, which nothing else might tell. All functions are for the owner of the rnic
 * (lib/rnic/rnic.h, Threads). Nothing allocates but mode1_device_create and mode1_create.
 *
 * Messages are numbered as other modes number packets: modulo 2^24 from the group's start_psn on,
 * a control first, then its data. Nothing of it is on the wire: each side counts. */
#ifndef INC_MODE1_H
#define INC_MODE1_H

#include "dataplane/inc/engine.h"
#include "lib/rnic/rnic.h"

enum {
	MODE1_QPN_LIMIT = 0x1000, /* the switch's own QPNs are below, groups' above (1.2) */
	MODE1_MAX_QP = 512,
	MODE1_MAX_IP = RNIC_MAX_GID - 1,
	MODE1_MAX_W = 1024,
};

struct mode1_device_config {
	uint8_t mac[6];
	struct wire_ip ip[MODE1_MAX_IP]; /* the switch's addresses */
	unsigned n_ip;
	struct inc_arena arena; /* payload of all groups lies here */
	uint64_t seed;
};

struct mode1_device;
struct mode1; /* a group's connections */

/* -EINVAL, -ENOMEM: nothing made. Destroy groups before the device. */
int mode1_device_create(const struct mode1_device_config *config, struct mode1_device **dev);
void mode1_device_destroy(struct mode1_device *dev);
struct rnic *mode1_rnic(struct mode1_device *dev);
unsigned mode1_n_groups(const struct mode1_device *dev);

/* Makes the queue pairs of an INSTALLED group with mode INC_MODE_1 and aggregation memory, and
 * fills in its endpoints' local QPNs. -ENOMEM, -EADDRNOTAVAIL with a reason in err: nothing made.
 * The block is used until mode1_destroy. */
int mode1_create(
	struct mode1_device *dev, struct inc_group *g, struct mode1 **m, char err[INC_ERR_LEN]);
/* The same in parts, for who shares the device and may not hold it for long: first everything but
 * queue pairs, then one of them at a time. After an error mode1_destroy ends what was begun. */
int mode1_begin(
	struct mode1_device *dev, struct inc_group *g, struct mode1 **m, char err[INC_ERR_LEN]);
int mode1_make_qp(struct mode1 *m, unsigned ep, char err[INC_ERR_LEN]);
/* Posts receives and connects every queue pair to the peer that its endpoint names, with the
 * group's start_psn in both directions. -errno with a reason: none of them is connected. */
int mode1_connect(struct mode1 *m, uint64_t now, char err[INC_ERR_LEN]);
/* The same in parts, of at most `budget` receives each and at last all connections: 1: call again.
 */
int mode1_connect_part(struct mode1 *m, unsigned budget, uint64_t now, char err[INC_ERR_LEN]);
/* Nothing more is received, and peers' queue pairs fail at once: NAKs answer what they send, and
 * they are sent a request that they must refuse. For a FAILED group. */
void mode1_stop(struct mode1 *m, uint64_t now);
void mode1_destroy(struct mode1 *m);

/* Does what the completions that are there make possible: aggregates, forwards, posts. Fails
 * groups (INC_FAIL_MODE1_QP, INC_FAIL_MODE1_SEQUENCE, INC_FAIL_CTRL_MISMATCH). */
void mode1_run(struct mode1_device *dev, uint64_t now);

/* Whose queue pair this is: the group and the endpoint's index; NULL: nobody's. */
struct inc_group *mode1_owner(struct mode1_device *dev, uint32_t qpn, unsigned *ep);

#endif
