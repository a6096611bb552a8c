/* SPDX-License-Identifier: BSD-3-Clause */
/* What a transport is to the device, and what the device offers to transports. The device finds the
 * queue pair of a packet, says whose turn it is to send and whose time has come; all else, the
 * transport does, on state of its own that lies behind the queue pair (transport_state). RC (rc.h),
 * UC and UD (unreliable.h) are transports; others may be made outside of this folder and named in
 * rnic_qp_init.transport.
 *
 * A transport has no clock and keeps no memory but its state: times are arguments, nanoseconds.
 * All functions belong to the owner thread. */
#ifndef RNIC_TRANSPORT_H
#define RNIC_TRANSPORT_H

#include "lib/rnic/device.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/rnic.h"
#include "lib/rnic/scheduler.h"
#include "lib/rnic/timer.h"

enum { QP_N_STATES = IBV_QPS_ERR + 1 };

/* Attributes that a change of state needs and allows (IBTA vol. 1, 11.2.5.2). */
struct transition {
	bool valid;
	int required, optional; /* IBV_QP_* */
};

/* What tx_control gave. */
enum tx_control {
	CONTROL_NONE, /* no frame: there is nothing to say any more */
	CONTROL_LAST, /* a frame, and nothing after it */
	CONTROL_MORE  /* a frame, and perhaps another: asked again, but other QPs have their turn */
};

/* What transport_ops.look made of a frame. */
enum own_look {
	LOOK_NO,    /* nothing of the transport's, as far as it can tell: lib/wire is asked */
	LOOK_WHOLE, /* *pkt says what rx is to have, of kind WIRE_ROCE */
	LOOK_CUT,   /* the same, and its end is missing: there is no ICRC to look at */
	LOOK_DROP   /* *drop says why */
};

/* A counter of a transport's: where it is in its state. */
struct transport_counter {
	const char *name;
	size_t offset; /* of a uint64_t */
};

struct transport_ops {
	const char *name;
	enum ibv_qp_type type;
	bool connected; /* one peer, whose address the QP has */
	bool multicast; /* connected, its peer being a multicast group; messages of one packet */
	/* Its packets come and leave by any port; the QP's own says which GID table sgid_index is
	 * of. It looks itself at the addresses of what comes. If false the QP stays on the port
	 * of its path. */
	bool several_ports;
	/* lib/wire does not know what follows the BTH of its packets: rx finds it as payload, pad
	 * bytes included, and frame_finish_own takes headers that tx and tx_control have written.
	 */
	bool own_codec;
	/* rx touches nothing but the QP's receiving half, its receive CQ and registered memory, and
	 * says qp_break instead of qp_error: a receive worker may call it (worker.h). */
	bool by_worker;
	uint8_t opcodes;   /* upper three bits of the opcodes that are its own (enum roce_transport)
			    */
	size_t state_size; /* bytes behind the QP; zeros when reset is first called */
	uint32_t send_ops; /* requests that it takes: 1 << enum ibv_wr_opcode */
	const struct transition (*transitions)[QP_N_STATES]; /* [from][to] */
	const struct transport_counter *counters;            /* ends with a NULL name; or NULL */

	/* What it makes of a request for a new QP, beside what holds for all: negative errno. NULL:
	 * takes it. */
	int (*check)(const struct rnic *rnic, const struct rnic_qp_init *init);
	/* The same for attributes that are within their ranges; nothing is changed yet. */
	int (*check_attr)(const struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask);
	/* These of qp->attr are new. NULL: it looks when it needs them. */
	void (*set_attr)(struct rnic_qp *qp, int mask);
	/* What of the attributes is its own: PSNs, draining; and where it stands. */
	void (*query)(const struct rnic_qp *qp, struct ibv_qp_attr *attr);
	void (*stats)(const struct rnic_qp *qp, struct rnic_qp_stats *stats);

	/* The state has changed, attributes are in place; not to RESET or ERR. */
	void (*enter)(
		struct rnic_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint64_t now);
	/* The QP goes to ERR (it may be there already), or its send queue to SQE: all requests are
	 * about to be flushed. */
	void (*fail)(struct rnic_qp *qp);
	/* To RESET, or a new one: the state as it is to be in RESET. */
	void (*reset)(struct rnic_qp *qp);

	/* The next hops of what is to be the QP's path, of a transport with several ports, before
	 * any attribute is changed: 0, that of its own port being in the path, or the errors of
	 * rnic_resolve; called again after -EAGAIN. NULL: path_resolve. */
	int (*resolve)(struct rnic_qp *qp, struct rnic_path *path, uint64_t now);

	/* A packet with right ICRC that came to a port, from the peer if connected; of the own
	 * opcodes, or a CNP if connected. 0 if it took effect, else the drop reason. */
	unsigned (*rx)(struct rnic_qp *qp, unsigned port, const uint8_t *frame,
		const struct wire_pkt *pkt, uint64_t now);
	/* The payload's destination, in one piece, of a packet without pad whose ICRC nobody has
	 * looked at yet; NULL: not before that. Changes nothing. The payload is copied there and
	 * its ICRC computed in one pass, and if that is wrong the packet is dropped, and its bytes
	 * are there all the same. So it is to be memory whose bytes are nobody's until the very
	 * packet that belongs there has been taken:
	 *   - of a message under way, at its packet's number from a packet that was verified; not
	 *     of a number that has come, and not the message's end, which programs poll;
	 *   - of the receive request that is next, of messages of one packet: nobody looks there
	 *     before it completes.
	 * The address may not come out of the packet, which may be wrong about it, though the
	 * packet may be asked whether it agrees. Of RC, UC and SR it is asked for packets in the
	 * middle of messages, else for all; with own_codec *headers, 0 before, is to be the bytes
	 * of its own headers at the payload's start. Of CNPs it is not asked. NULL: of no packet.
	 */
	uint8_t *(*place)(const struct rnic_qp *qp, const uint8_t *frame,
		const struct wire_pkt *pkt, uint16_t *headers);
	/* It is there, and the ICRC is right: in place of rx, and of rx_device. */
	void (*rx_placed)(
		struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now);
	/* The next packet of those that qp_has_control announced: acknowledgements and the like.
	 * They go before all requests, and never wait for a rate. ports, here and below: bit N,
	 * port N is up and has room; one with several ports takes the path of one of them, or says
	 * transport_no_room. */
	enum tx_control (*tx_control)(
		struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now);
	/* The next other packet; false if there is none or none may be sent: the QP then leaves the
	 * scheduler until qp_ready, which a posted request calls. */
	bool (*tx)(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now);
	/* The link of its port, or with several of any port, has changed, in a state in which
	 * packets are taken. NULL: nothing to do. */
	void (*port)(struct rnic_qp *qp, unsigned port, bool up, uint64_t now);
	/* The time that transport_schedule gave has come; none is set any more. */
	void (*timer)(struct rnic_qp *qp, uint64_t now);

	/* For one that transport_own has given the device to, else never called.
	 * look: a frame of a known length before lib/wire reads it, as packets in tunnels or cut on
	 * their way would mean nothing to it. Any thread, by what is constant.
	 * rx_device: a packet of its opcodes, before its queue pair is looked for. True: it
	 * belonged to none, and *drop says what became of it, 0: it took effect. close: the device
	 * goes, all queue pairs have gone. */
	enum own_look (*look)(const struct rnic *rnic, unsigned port, const uint8_t *frame,
		size_t len, struct wire_pkt *pkt, unsigned *drop);
	bool (*rx_device)(struct rnic *rnic, unsigned port, const uint8_t *frame,
		const struct wire_pkt *pkt, uint64_t now, unsigned *drop);
	void (*close)(struct rnic *rnic);

	/* rnic_qp_skip, rnic_qp_refuse. NULL: -EOPNOTSUPP. */
	int (*skip)(struct rnic_qp *qp, enum rnic_dir dir, uint32_t from, uint32_t count);
	void (*refuse)(struct rnic_qp *qp);
};

/* The transport's own state, aligned as the QP is: 64 bytes. */
static inline void *transport_state(const struct rnic_qp *qp)
{
	return (void *)(uintptr_t)(qp + 1);
}

/* From tx or tx_control before they return false, CONTROL_NONE: there is a packet, for a port that
 * was not offered. They are asked again when another is, or a link changes, or after qp_ready,
 * qp_has_control. */
static inline void transport_no_room(struct rnic_qp *qp)
{
	qp->no_room = true;
}

/* Gives the device to a transport with a codec of its own and something to keep for all its queue
 * pairs, until the device goes. -EEXIST: another one has it. Before frames come. */
int transport_own(struct rnic *rnic, const struct transport_ops *ops, void *kept);
/* What it keeps; NULL if it does not have the device. */
void *transport_kept(const struct rnic *rnic, const struct transport_ops *ops);

/* The one deadline of a QP, in place of the one before: the earliest of whatever its transport
 * waits for; UINT64_MAX: none. Later is one store. */
static inline void transport_schedule(struct rnic_qp *qp, uint64_t at)
{
	timer_set(&qp->rnic->timers, &qp->timer, at);
}

extern const struct transition rc_transitions[QP_N_STATES][QP_N_STATES];
extern const struct transition uc_transitions[QP_N_STATES][QP_N_STATES];
extern const struct transition ud_transitions[QP_N_STATES][QP_N_STATES];

#endif
