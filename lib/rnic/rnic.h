/* SPDX-License-Identifier: BSD-3-Clause */
/* Software RNIC core: protection domains, memory regions, completion queues, queue pairs and the RC
 * transport, without any I/O. Frames and the time go in; frames, completions and the next deadline
 * come out. The same object code runs under libibverbs programs (lib/verbs), in the switch (Mode-I)
 * and in tests on virtual time. Semantics are those of IBTA vol. 1 (chapters 9-11) as libibverbs
 * exposes them; types that applications know are taken from <infiniband/verbs.h>, header only.
 *
 * Threads. One thread at a time is the *owner* of a device: it may call everything. Besides, one
 * thread per queue may call, without being the owner and at any time:
 *	rnic_post_send, rnic_post_recv	(the QP's work queues are single-producer rings)
 *	rnic_cq_poll, rnic_cq_arm	(the CQ is a single-consumer ring)
 *	rnic_has_work, rnic_rang
 * and the thread of each receive worker ("receive workers", below):
 *	rnic_worker_rx
 * and any thread at any time:
 *	rnic_readers	(what a frame is, of what is constant in a device)
 *	rnic_frame_flatten
 * A ring that several threads use needs a lock of the caller's (lib/verbs has one per queue).
 * Nothing here takes a lock (only where there are receive workers, some calls wait for their
 *bursts), and rnic_rx, rnic_tx, rnic_timer never allocate.
 *
 * Errors are negative errno. Time is nanoseconds of any monotonic clock. */
#ifndef RNIC_RNIC_H
#define RNIC_RNIC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/frame.h"
#include "lib/wire/lldp.h"
#include "lib/wire/mrc.h"

struct rnic;
struct rnic_pd;
struct rnic_mr;
struct rnic_cq;
struct rnic_qp;
struct rnic_srq;
struct rnic_ah;

enum {
	RNIC_MAX_PORTS = 8, /* numbered from 0; in verbs' structures from 1 */
	RNIC_ALL_PORTS = 0xff,
	RNIC_MAX_GID = 8, /* per port */
	RNIC_MAX_SGE = 16,
	RNIC_MAX_INLINE = 256,
	RNIC_MAX_MSG = 1 << 30,  /* bytes of a message */
	RNIC_MAX_RD_ATOMIC = 16, /* READs and atomics outstanding per QP and direction */
	RNIC_NAME_LEN = 32,      /* of a port, with its end */
	RNIC_HOST_LEN = 65,      /* of the host, likewise */
};

/* Why a received frame was dropped: X(symbol, name, meaning); WIRE_DROPS come first, MRC_DROPS and
 * WIRE_LLDP_ERRORS last. */
#define RNIC_DROPS(X)                                                                           \
	X(NOT_MINE, "rnic_not_mine", "destination MAC or IP is not this device's")              \
	X(NOT_ROCE, "rnic_not_roce", "neither RoCE nor address resolution nor an echo request") \
	X(NO_QP, "rnic_no_qp", "destination QPN does not exist")                                \
	X(QP_STATE, "rnic_qp_state", "QP is not in a state that receives")                      \
	X(QP_TYPE, "rnic_qp_type", "opcode of another transport than the QP's")                 \
	X(SOURCE, "rnic_source", "source IP is not the QP's peer")                              \
	X(PORT, "rnic_port", "arrived at another port than the QP's")                           \
	X(DUPLICATE, "rnic_duplicate", "PSN seen before: acknowledged again")                   \
	X(SEQUENCE, "rnic_sequence", "PSN beyond the expected one: NAK or already asked")       \
	X(SKIPPED, "rnic_skipped_psn", "PSN inside a skipped range")                            \
	X(RNR, "rnic_rnr", "no receive posted: RNR NAK")                                        \
	X(OPCODE_SEQ, "rnic_opcode_seq", "opcode does not follow the one before it")            \
	X(LENGTH, "rnic_length", "payload length does not fit opcode, MTU or message")          \
	X(ACCESS, "rnic_access", "remote key, bounds or access flags forbid it")                \
	X(ACK_RANGE, "rnic_ack_range", "acknowledgement outside what is in flight")             \
	X(QKEY, "rnic_qkey", "Q_Key of a datagram is not the QP's")                             \
	X(RD_LIMIT, "rnic_rd_limit", "more READs and atomics than max_dest_rd_atomic")          \
	X(UNSUPPORTED, "rnic_unsupported", "operation not offered by this device")              \
	X(TUNNEL, "rnic_tunnel", "outer headers that no packet for here has")                   \
	X(CUT, "rnic_cut", "cut by a switch, and no NACK is agreed")                            \
	X(UNASKED, "rnic_unasked", "answers or states what nobody here waits for")              \
	X(BUSY, "rnic_busy", "more endpoint requests than are answered")                        \
	X(MAD, "rnic_mad", "datagram to QP 1 that is not 256 bytes from another QP 1")          \
	X(REPLY_QUEUE, "rnic_reply_queue", "too many answers to ARP, ND or echo requests waiting")

enum rnic_drop {
	RNIC_DROP_BASE = WIRE_N_DROPS - 1,
#define X(sym, name, text) RNIC_DROP_##sym,
	RNIC_DROPS(X)
#undef X
#define X(sym, name, text) RNIC_DROP_MRC_##sym, /* in the order of enum mrc_drop */
		MRC_DROPS(X)
#undef X
#define X(sym, name, text) RNIC_DROP_##sym, /* in that of enum wire_lldp_error */
			WIRE_LLDP_ERRORS(X)
#undef X
				RNIC_N_DROPS
};

/* Name and meaning of a drop reason: valid for 1 .. RNIC_N_DROPS-1, WIRE_DROPS included. */
const char *rnic_drop_name(unsigned drop);
const char *rnic_drop_text(unsigned drop);

/* Counters: X(symbol, name, meaning). Written by the owner, and for its part by each worker; a
 * reader may see a slightly old value. rx_frames = delivered (accepted) + the sum of drops. */
#define RNIC_COUNTERS(X)                                            \
	X(RX_FRAMES, "rx_frames", "frames received")                \
	X(RX_BYTES, "rx_bytes", "bytes received")                   \
	X(TX_FRAMES, "tx_frames", "frames sent")                    \
	X(TX_BYTES, "tx_bytes", "bytes sent")                       \
	X(RX_ACCEPTED, "rx_accepted", "frames that took effect")    \
	X(ACK_TX, "ack_tx", "ACKs sent")                            \
	X(ACK_RX, "ack_rx", "ACKs received")                        \
	X(NAK_TX, "nak_tx", "NAKs sent")                            \
	X(NAK_RX, "nak_rx", "sequence NAKs received")               \
	X(RNR_TX, "rnr_tx", "RNR NAKs sent")                        \
	X(RNR_RX, "rnr_rx", "RNR NAKs received")                    \
	X(TIMEOUTS, "timeouts", "retransmission timeouts")          \
	X(PROBES, "probes", "probes of selective queue pairs")      \
	X(RETRANSMITS, "retransmits", "request packets sent again") \
	X(READ_TX, "read_tx", "READ and atomic responses sent")     \
	X(READ_RX, "read_rx", "READ and atomic responses taken")    \
	X(CNP_RX, "cnp_rx", "CNPs received")                        \
	X(CNP_TX, "cnp_tx", "CNPs sent for frames marked CE")       \
	X(RATE_CUTS, "rate_cuts", "times a QP's rate was cut")      \
	X(PACED, "paced", "times a QP was held back by its rate")   \
	X(LLDP_SENT, "lldp_sent", "times LLDP said who this is")    \
	X(LLDP_HEARD, "lldp_heard", "times a neighbour spoke LLDP") \
	X(LLDP_EXPIRED, "lldp_expired", "neighbours gone silent")   \
	X(LLDP_REFUSED, "lldp_refused", "neighbours without room")

enum rnic_counter {
#define X(sym, name, text) RNIC_C_##sym,
	RNIC_COUNTERS(X)
#undef X
		RNIC_N_COUNTERS
};
const char *rnic_counter_name(enum rnic_counter c);

/* Of each port. Frames that are lost (tx_lost) are not among those sent, nor among the device's. */
#define RNIC_PORT_COUNTERS(X)                                   \
	X(RX_FRAMES, "rx_frames", "frames received")            \
	X(RX_BYTES, "rx_bytes", "bytes received")               \
	X(RX_DROPS, "rx_drops", "of these, frames dropped")     \
	X(TX_FRAMES, "tx_frames", "frames sent")                \
	X(TX_BYTES, "tx_bytes", "bytes sent")                   \
	X(TX_LOST, "tx_lost", "frames lost: the port was down") \
	X(DOWNS, "downs", "times the port went down")

enum rnic_port_counter {
#define X(sym, name, text) RNIC_PORT_C_##sym,
	RNIC_PORT_COUNTERS(X)
#undef X
		RNIC_N_PORT_COUNTERS
};
const char *rnic_port_counter_name(enum rnic_port_counter c);

/* Addresses of a management datagram (lib/wire/cm.h), which goes from QP 1 to QP 1, and the port
 * that it came to or leaves from. */
struct rnic_mad {
	struct wire_ip src, dst;
	uint8_t tos;
	uint8_t port;
};

/* Called by the owner thread from inside rnic_rx / rnic_tx / rnic_timer / rnic_qp_modify; must not
 * call back into the device. Any may be NULL. */
struct rnic_events {
	void *arg;
	/* A completion was added to a CQ that rnic_cq_arm had armed (it is disarmed now). */
	void (*cq_event)(void *arg, struct rnic_cq *cq);
	/* Asynchronous event (IBV_EVENT_*) of a QP. */
	void (*qp_event)(void *arg, struct rnic_qp *qp, enum ibv_event_type type);
	/* IBV_EVENT_SRQ_LIMIT_REACHED. */
	void (*srq_event)(void *arg, struct rnic_srq *srq, enum ibv_event_type type);
	/* A management datagram of CM_MAD_LEN bytes with the right Q_Key, for the duration of the
	 * call. Returns 0, or RNIC_DROP_NO_QP if nobody wants it now. NULL: there is no QP 1. */
	unsigned (*mad)(void *arg, const struct rnic_mad *mad, const uint8_t *data);
	/* A CQ had no room for a completion (IBV_EVENT_CQ_ERR), once: see rnic_cq_poll. */
	void (*cq_error)(void *arg, struct rnic_cq *cq);
	/* IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE, from inside rnic_port_set. */
	void (*port_event)(void *arg, unsigned port, enum ibv_event_type type);
};

/* Congestion control: DCQCN (Zhu et al., SIGCOMM 2015). The device is a reaction point (a QP that
 * gets a CNP sends at a rate, which recovers) and a notification point (a frame marked CE draws a
 * CNP, at most one per QP and interval). The names are the paper's; 0 stands for the default. */
struct rnic_congestion {
	bool no_reaction, no_notification;
	bool ect; /* packets of QPs whose traffic class says not-ECT are sent as ECT(0), except CNPs
		   */
	uint8_t cnp_dscp;        /* default 48 */
	uint32_t line_mbps;      /* where a QP starts, and is not limited any more; 25000 */
	uint32_t min_mbps;       /* never below; 10 */
	uint32_t ai_mbps;        /* R_AI; 40 */
	uint32_t hai_mbps;       /* R_HAI; 400 */
	uint32_t alpha_shift;    /* g = 2^-alpha_shift, 1..16; 8 */
	uint32_t alpha_us;       /* alpha decays when no CNP came for so long; 55 */
	uint32_t timer_us;       /* T, steps of recovery by time; 55 */
	uint32_t byte_count;     /* B, steps of recovery by bytes sent; 10 MiB */
	uint32_t recovery_steps; /* F, of fast recovery; 5 */
	uint32_t cut_us;         /* no two cuts within; 4 */
	uint32_t cnp_us;         /* a CNP per QP at most every; 50 */
	uint32_t window_bytes;   /* that a QP of RC or SR may have unacknowledged at first, more as
				    that pays (cwnd.h); up to 2^30; 0: as many as packets allow */
};

struct rnic_port_config {
	uint8_t mac[6]; /* no two ports have the same */
	/* GID table: entry 0 is made from the MAC (link-local); ip[i] becomes entry i + 1. The
	 * device answers ARP, ND and echo requests for all of them, at this port alone. Ports are
	 * networks apart: an address may be on several of them. */
	struct wire_ip ip[RNIC_MAX_GID - 1];
	unsigned n_ip;
	unsigned mtu; /* largest IP packet the port carries; sets the active RoCE MTU */
	/* The router that transports with tunnels send to (rnic_next_hop); zero: none. */
	struct wire_ip via;
	char name[RNIC_NAME_LEN]; /* for LLDP only */
};

struct rnic_config {
	struct rnic_port_config port[RNIC_MAX_PORTS];
	unsigned n_ports; /* 0 stands for 1 */
	uint32_t max_qp;  /* default 1024 when 0; likewise below; at most 65536, of max_mr 2^20 */
	uint32_t max_cq, max_mr, max_pd;
	uint32_t qpn_limit; /* QPNs are below it; default 2^24. 0x1000 in a switch, which uses the
			       rest */
	uint32_t window;    /* request packets in flight per QP, 1..65536; default 512 */
	uint32_t quantum;   /* packets of one QP before the next has its turn, 1..255; default 16 */
	uint64_t seed;      /* for first QPN, keys, jitter */
	unsigned n_workers; /* receive workers, up to RNIC_MAX_WORKERS */
	bool lldp;          /* ports speak it and hear it; they and the host have names then */
	char host[RNIC_HOST_LEN];
	struct rnic_events events;
	struct rnic_congestion congestion;
};

/* What a packet may carry beside its payload: IPv6, UDP, BTH, RETH, ImmDt, ICRC (a WRITE ONLY with
 * Immediate). A port carries a RoCE MTU if its own is that much larger. */
enum { RNIC_MTU_ROOM = 40 + 8 + 12 + 16 + 4 + 4 };

/* Allocates everything it will ever need except queues and regions. -EINVAL with nothing made if a
 * field is out of range. */
int rnic_create(const struct rnic_config *config, struct rnic **rnic);
/* Frees all objects that are left, too; nothing of the device may be used after it. NULL: nothing.
 */
void rnic_destroy(struct rnic *rnic);

/* ---- ports ---- */

/* Functions that take a port want one below this. */
unsigned rnic_n_ports(const struct rnic *rnic);
/* Largest MTU code (enum ibv_mtu) with RNIC_MTU_ROOM in the port's MTU. */
enum ibv_mtu rnic_active_mtu(const struct rnic *rnic, unsigned port);
unsigned rnic_gid_count(const struct rnic *rnic, unsigned port);
int rnic_gid(const struct rnic *rnic, unsigned port, unsigned index, struct wire_ip *ip);
void rnic_mac(const struct rnic *rnic, unsigned port, uint8_t mac[6]);
uint64_t rnic_port_count(const struct rnic *rnic, unsigned port, enum rnic_port_counter c);

/* The link of a port; all are up at first. A change raises events.port_event and is told to the
 * transports of the queue pairs that use the port. A port that is down loses what it is given, as a
 * cable that was pulled out does: RC, UC and UD stay on their port and go on sending, so that
 * requests of RC fail when their tries are used up, and a port that comes back in time is made use
 * of at once. A transport with several ports (transport.h) is not offered the one that is down. */
void rnic_port_set(struct rnic *rnic, unsigned port, bool up, uint64_t now);
bool rnic_port_is_up(const struct rnic *rnic, unsigned port);

/* ---- LLDP (IEEE 802.1AB), if rnic_config.lldp ---- */

/* Each port whose link is up says, when lib/lldp/table.h has it do so, who this is (chassis: the
 * MAC address of the first port; the port's name; the host's), and keeps who speaks to it. Counted
 * as RNIC_C_LLDP_*; what makes no sense is dropped as RNIC_DROP_LLDP_*. */

/* Who is at the other end of a port, one after the other from *at = 0 on, as of the last call of
 * rnic_rx or rnic_timer; NULL: no more. Owner. */
struct lldp_neighbour;
const struct lldp_neighbour *rnic_lldp_neighbour(
	const struct rnic *rnic, unsigned port, unsigned *at);
/* The device is about to go: its ports say so by rnic_tx, once; from now on they neither speak nor
 * hear. */
void rnic_lldp_stop(struct rnic *rnic);

/* ---- device ---- */

void rnic_query_device(const struct rnic *rnic, struct ibv_device_attr *attr);
uint64_t rnic_count(const struct rnic *rnic, enum rnic_counter c);
uint64_t rnic_drop_count(const struct rnic *rnic, unsigned drop);

/* ---- the wire ---- */

/* One received frame. Payload is copied to its final place before return: the frame stays the
 * caller's. Returns 0 if it took effect, else why it was dropped (which is counted, too). */
unsigned rnic_rx(struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len, uint64_t now);

/* The frames of a burst, in their order; those that are dropped are counted. Completions show when
 * the whole burst is taken. */
struct rnic_rx_frame {
	const uint8_t *data;
	uint32_t len;
	void *priv; /* the caller's own */
};
void rnic_rx_burst(struct rnic *rnic, unsigned port, const struct rnic_rx_frame *frames, unsigned n,
	uint64_t now);

/* Who is to read a received frame where the host's network stack shares the port: a set of enum
 * rnic_reader. The rnic reads RoCE, and what is for another MAC or broken, which it drops and
 * counts; ARP and ND are read by both, except for questions after the rnic's own addresses, which
 * it answers alone, and LLDP if the device hears it; all the rest is the stack's, echo requests and
 * VLANs too. Changes nothing. */
enum rnic_reader { RNIC_READS = 1, STACK_READS = 2 };
unsigned rnic_readers(const struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len);

/* One frame to send: bytes = headers, then the payload pieces, then trailer. The payload is
 * referenced in registered memory, where the program may write at any time: it is valid until the
 * next call into the device, and nobody has read it yet. */
/* Room for the headers of a transport made elsewhere, tunnels included. */
enum { RNIC_MAX_HEADERS = 176 };

struct rnic_frame {
	uint8_t head[RNIC_MAX_HEADERS];
	uint8_t tail[WIRE_MAX_TRAILER + 1];
	uint16_t head_len, tail_len;
	uint16_t n_iov;
	uint8_t port;  /* where it leaves */
	bool loopback; /* it does not: the device takes it itself */
	uint32_t len;  /* all together */
	bool stays;    /* the payload is the device's until the next rnic_rx or rnic_timer, not only
			  until the next call: requests of RC */
	bool unsealed; /* the ICRC is missing: it is of the payload as rnic_frame_flatten finds it
			*/
	uint32_t crc_before, crc_share; /* for it */
	uint32_t qpn; /* of the queue pair that it comes from; 0: from none, or one that is gone */
	struct {
		const uint8_t *base;
		size_t len;
	} iov[RNIC_MAX_SGE];
};

/* The next frame the device wants to send at this time: acknowledgements first, then requests, fair
 * over the QPs of a port, and over ports. False when there is none. ports: bit N, port N has room
 * for a frame; frame->port is one of them. Small frames (ARP etc.) come whole in head or as one
 * iov. Frames to an own address of the port that they would leave from do not come out: they are
 * received right away, and what goes to a port that is down is lost; some per call, so
 * rnic_has_work may still be true after false. So it is if a port without room is wanted. */
bool rnic_tx(struct rnic *rnic, unsigned ports, struct rnic_frame *frame, uint64_t now);

/* As many of them in a row as rnic_tx would give, at most n, whose payloads are all valid until the
 * next call into the device: fewer, though there are more, if one is not rnic_frame.stays. 0: there
 * is none. ports must have room for n frames each. */
unsigned rnic_tx_burst(
	struct rnic *rnic, unsigned ports, struct rnic_frame *frames, unsigned n, uint64_t now);

/* Copies a frame into cap bytes at out, reading its payload once, and finishes it with the ICRC of
 * that copy; returns its length, or -ENOSPC. */
int rnic_frame_flatten(const struct rnic_frame *frame, uint8_t *out, size_t cap);

/* Time at which to call rnic_timer; UINT64_MAX: never. It may be earlier than anything is due:
 * timers that moved on are found out then. rnic_timer runs what is due (retransmission, RNR wait,
 * address resolution); call rnic_tx after it. */
uint64_t rnic_deadline(const struct rnic *rnic);
void rnic_timer(struct rnic *rnic, uint64_t now);

/* True if rnic_tx may have a frame: a doorbell rang since the owner last emptied rnic_tx, or frames
 * were left. Any thread. */
bool rnic_has_work(const struct rnic *rnic);
/* True if a doorbell rang since rnic_tx last looked. Any thread. */
bool rnic_rang(const struct rnic *rnic);

/* ---- address resolution ---- */

/* What is known of one port says nothing of another. A QP resolves its peer's MAC when it goes to
 * RTR. Static entries never expire. rnic_resolve starts resolution and returns 0 if known (dmac
 * filled), -EAGAIN while asking (frames come from rnic_tx), -EHOSTUNREACH after RNIC_NEIGH_ASKS
 * requests, RNIC_NEIGH_EVERY_MS apart, without answer: three seconds, as a host has for it by RFC
 * 4861 (10: MAX_MULTICAST_SOLICIT x RETRANS_TIMER); the next call starts anew. Answers are good for
 * 60 s. -EINVAL: not a unicast address. -ENOMEM: too many being asked for. Destinations outside
 * every own prefix are not known here: one IP hop, resolved directly. */
enum { RNIC_NEIGH_ASKS = 15, RNIC_NEIGH_EVERY_MS = 200 };
int rnic_neigh_add(
	struct rnic *rnic, unsigned port, const struct wire_ip *ip, const uint8_t mac[6]);
int rnic_resolve(
	struct rnic *rnic, unsigned port, const struct wire_ip *ip, uint8_t dmac[6], uint64_t now);
/* The same for what leaves by the port's router: rnic_resolve of rnic_port_config.via, or of ip if
 * there is none. */
int rnic_next_hop(
	struct rnic *rnic, unsigned port, const struct wire_ip *ip, uint8_t dmac[6], uint64_t now);

/* ---- queue pair 1 ---- */

/* A management datagram of CM_MAD_LEN bytes to the QP 1 of another device, or of this one. It comes
 * out of rnic_tx; nothing else is ever sent from QP 1. mad->src: an own address of mad->port; dmac:
 * as rnic_resolve says. -ENOSPC: too many answers wait, try again after rnic_tx; -EINVAL:
 * addresses. */
int rnic_mad_send(
	struct rnic *rnic, const struct rnic_mad *mad, const uint8_t dmac[6], const uint8_t *data);

/* ---- objects (owner) ---- */

int rnic_pd_alloc(struct rnic *rnic, struct rnic_pd **pd);
int rnic_pd_free(struct rnic_pd *pd); /* -EBUSY while in use */

/* access: IBV_ACCESS_*. Memory addr .. addr+len belongs to the caller and must stay mapped; iova is
 * the address remote and local work requests use (usually (uint64_t)addr). lkey == rkey allowed.
 * -EINVAL: REMOTE_WRITE or REMOTE_ATOMIC without LOCAL_WRITE, or a range that wraps. */
int rnic_mr_reg(struct rnic_pd *pd, void *addr, uint64_t len, uint64_t iova, int access,
	struct rnic_mr **mr);
/* As ibv_rereg_mr; the key stays. -EBUSY while windows are bound. Nothing changes if it fails. */
int rnic_mr_rereg(struct rnic_mr *mr, int flags, struct rnic_pd *pd, void *addr, uint64_t len,
	uint64_t iova, int access);
/* A memory window, not bound: no peer reaches anything by its key. It is bound and invalidated by
 * IBV_WR_BIND_MW (of either type here) and IBV_WR_LOCAL_INV; type 2 also by the peer's SEND with
 * Invalidate. Windows and regions share max_mr. */
int rnic_mw_alloc(struct rnic_pd *pd, enum ibv_mw_type type, struct rnic_mr **mw);
int rnic_mr_dereg(struct rnic_mr *mr); /* either; -EBUSY: a region with windows bound */
uint32_t rnic_mr_lkey(const struct rnic_mr *mr);
uint32_t rnic_mr_rkey(const struct rnic_mr *mr);

/* depth: at least this many CQEs. user: given back by rnic_cq_user. */
int rnic_cq_create(struct rnic *rnic, unsigned depth, void *user, struct rnic_cq **cq);
int rnic_cq_destroy(struct rnic_cq *cq); /* -EBUSY while a QP uses it */
unsigned rnic_cq_depth(const struct rnic_cq *cq);
/* Room for at least depth CQEs from now on, with those that wait. -EINVAL: more than that wait, or
 * it has overrun. Owner, and nobody polls meanwhile. */
int rnic_cq_resize(struct rnic_cq *cq, unsigned depth);
void *rnic_cq_user(const struct rnic_cq *cq);
/* Up to n completions; wc->wr_id, status, opcode, byte_len, imm_data (network order), qp_num,
 * src_qp, wc_flags as libibverbs. Returns their number. A CQ that overruns is of no use any more
 * (IBTA vol. 1, 10.6): events.cq_error, QPs that use it go to ERR with IBV_EVENT_QP_FATAL, none can
 * be made with it or leave RESET, and once what it had room for is polled this is -EOVERFLOW for
 * good. */
int rnic_cq_poll(struct rnic_cq *cq, int n, struct ibv_wc *wc);
/* Next completion (if solicited_only: next solicited or failed one) raises events.cq_event once. */
void rnic_cq_arm(struct rnic_cq *cq, bool solicited_only);

/* Transports (transport.h says what one is). rnic_sr is RC with selective acknowledgement, for
 * lossy links: what comes out of order is placed at once and only what is missing is sent again.
 * Its type is IBV_QPT_RC; no SRQ; the path MTU and 92 bytes must fit the port's; no rnic_qp_skip.
 */
struct transport_ops;
extern const struct transport_ops rnic_rc, rnic_sr, rnic_uc, rnic_ud;

struct rnic_qp_init {
	enum ibv_qp_type type; /* IBV_QPT_RC, _UC, _UD; others -EOPNOTSUPP */
	struct rnic_pd *pd;
	struct rnic_cq *send_cq, *recv_cq;
	struct ibv_qp_cap cap; /* rounded up in place to what was made */
	bool sq_sig_all;
	/* How its packets are made and taken; NULL: by the type, whose transport it must be. The
	 * peer's QP must have the same: packets of another transport are dropped. */
	const struct transport_ops *transport;
	void *user;
	struct rnic_srq
		*srq;    /* instead of a receive queue of its own, or NULL; of the same device */
	unsigned worker; /* "receive workers", below; 0: none, the owner receives */
};
int rnic_qp_create(struct rnic *rnic, struct rnic_qp_init *init, struct rnic_qp **qp);
int rnic_qp_destroy(struct rnic_qp *qp); /* its CQEs are removed from the CQs */
uint32_t rnic_qp_num(const struct rnic_qp *qp);
void *rnic_qp_user(const struct rnic_qp *qp);
struct rnic_qp *rnic_qp_find(const struct rnic *rnic, uint32_t qpn);

/* State changes and attributes as ibv_modify_qp, checked against the IBTA table of required and
 * optional attributes per transition (11.2.5.2): -EINVAL and nothing changed otherwise; -EOPNOTSUPP
 * for path migration. PSNs are taken modulo 2^24. In
 * INIT->RTR the destination (ah_attr.grh.dgid, sgid_index) must have been resolved: -EAGAIN or
 * -EHOSTUNREACH as rnic_resolve. To ERR: all work requests are flushed; to RESET: forgotten. */
int rnic_qp_modify(struct rnic_qp *qp, const struct ibv_qp_attr *attr, int mask, uint64_t now);
/* Takes no request of the peer's any more: a NAK (remote operational error) answers the oldest one
 * that it has outstanding, behind the answers to READs and atomics that came before, and all that
 * come. A peer that has none hears nothing. Own requests go on. RC in RTR, RTS or SQD; else
 * -EOPNOTSUPP, -EINVAL and nothing is changed. */
int rnic_qp_refuse(struct rnic_qp *qp);
void rnic_qp_query(
	const struct rnic_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/* Shared receive queues. attr: max_wr (rounded up in place) and max_sge. rnic_srq_modify: with
 * IBV_SRQ_LIMIT, the next time that fewer than srq_limit requests are left raises events.srq_event,
 * once; IBV_SRQ_MAX_WR is -EOPNOTSUPP. Destroy: -EBUSY while a QP uses it. A QP with an SRQ that
 * goes to ERR raises IBV_EVENT_QP_LAST_WQE_REACHED. rnic_srq_post_recv: as rnic_post_recv, one
 * thread. */
int rnic_srq_create(
	struct rnic_pd *pd, struct ibv_srq_attr *attr, void *user, struct rnic_srq **srq);
int rnic_srq_destroy(struct rnic_srq *srq);
int rnic_srq_modify(struct rnic_srq *srq, const struct ibv_srq_attr *attr, int mask);
void rnic_srq_query(const struct rnic_srq *srq, struct ibv_srq_attr *attr);
void *rnic_srq_user(const struct rnic_srq *srq);
int rnic_srq_post_recv(struct rnic_srq *srq, const struct ibv_recv_wr *wr);

/* Address handles of datagrams: to a host, whose MAC must have been resolved (-EAGAIN or
 * -EHOSTUNREACH as rnic_resolve), or to a multicast group, whose MAC follows from its address (RFC
 * 1112, RFC 2464). -EINVAL: no GRH, sgid_index, address families that differ. */
int rnic_ah_create(
	struct rnic_pd *pd, const struct ibv_ah_attr *attr, uint64_t now, struct rnic_ah **ah);
int rnic_ah_destroy(struct rnic_ah *ah); /* requests posted with it are not affected */

/* Multicast: datagrams to QPN 0xffffff at the group's address (its MGID: an IPv6 group, or an IPv4
 * one mapped) are for all QPs attached, also the device's own. Attaching twice is attaching once.
 * -EINVAL: neither UD nor the transport of uc_mcast.h, not a group, detach: not attached. -ENOMEM:
 * 256 attachments in all. */
int rnic_qp_attach_mcast(struct rnic_qp *qp, const struct wire_ip *group);
int rnic_qp_detach_mcast(struct rnic_qp *qp, const struct wire_ip *group);

/* Posts one work request (next is ignored); the sg_list is copied, payload is referenced (or copied
 * if IBV_SEND_INLINE). -EINVAL: state, too many SGEs, length; -EOPNOTSUPP: opcode; -ENOMEM: the
 * queue is full. UD: wr.ud.ah is a struct rnic_ah *, cast, of
 * the QP's PD (-EINVAL); at most the active MTU. Keys are checked
 * when the packet is made: failures complete with IBV_WC_LOC_PROT_ERR. */
int rnic_post_send(struct rnic_qp *qp, const struct ibv_send_wr *wr);
int rnic_post_recv(struct rnic_qp *qp, const struct ibv_recv_wr *wr);

/* PSN skip (docs/inc-protocol.md, 3.7). RNIC_RECV from RTR on, RNIC_SEND from RTS on. -EINVAL:
 * count 0 or > 2^22; state; send: from is not where the next message would start; receive: from
 * already passed, before the end of a range given earlier, or the range ends 2^23 PSNs or more
 * ahead; -ENOSPC: 16 ranges to receive are pending. Owner only. */
enum { RNIC_MAX_SKIP = 1 << 22 };
enum rnic_dir { RNIC_SEND, RNIC_RECV };
int rnic_qp_skip(struct rnic_qp *qp, enum rnic_dir dir, uint32_t from, uint32_t count);

/* ---- receive workers ---- */

/* A device may have workers, numbered from 1, each with a thread of its own that takes frames
 * beside the owner and beside one another. A queue pair is its worker's if it was created so
 * (rnic_qp_init.worker): UD, or the transport of uc_mcast.h, without SRQ. Its receive CQ holds then
 * nothing but completions of receive queues of that worker; -EINVAL for what is not so, also later
 * for another queue pair with that CQ. Sending, and all else, stays the owner's.
 *
 * Threads. rnic_steer: the owner. rnic_worker_rx: one thread at a time for each worker. During it
 * the worker produces for receive CQs as the owner does for others, and calls events.cq_event and
 * cq_error for them, which must wait for nobody who waits for the owner. Receive queues and CQs
 * have the consumers and producers that they have without workers. What a worker reads is changed
 * while none takes frames: any call of the owner that makes, changes or removes a queue pair, a
 * region, a window, a membership or a window of uc_mcast.h, and any frame for a worker's queue pair
 * that the owner takes by rnic_rx or from rnic_tx (it came from here), first waits for the bursts
 * that are being taken, at most one a worker; in rnic_rx_burst the first such frame does, and
 * workers take nothing until it returns. A receive that fails puts its QP into ERR when the
 * owner is next in rnic_rx, rnic_tx or rnic_timer; rnic_has_work says so, and until then the QP
 * takes nothing. */
enum { RNIC_MAX_WORKERS = 16 };
unsigned rnic_n_workers(const struct rnic *rnic);

/* The worker whom a received frame is for; 0: the owner (also what is for several of them). It is a
 * look at the headers, nothing is checked or counted. */
unsigned rnic_steer(const struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len);

/* As rnic_rx_burst for frames that were steered to the worker. What has no queue pair of the
 * worker's any more is dropped (RNIC_DROP_NO_QP, of a group RNIC_DROP_NOT_MINE). False: nothing was
 * taken, the owner changes something just now; to be called again. */
bool rnic_worker_rx(struct rnic *rnic, unsigned worker, unsigned port,
	const struct rnic_rx_frame *frames, unsigned n, uint64_t now);

/* Where the transport stands, for errors and tests. */
struct rnic_qp_stats {
	uint32_t sq_una, sq_next, epsn; /* oldest unacknowledged, next to send, expected */
	uint32_t retries, rnr_retries;  /* left */
	uint64_t retransmits, timeouts;
	uint64_t rate;   /* bit/s as of the last packet, 0: not limited */
	uint32_t window; /* bytes that may be unacknowledged, 0: as many as packets allow */
};
void rnic_qp_stats(const struct rnic_qp *qp, struct rnic_qp_stats *stats);
/* Name of the QP's transport; name and value of one of that transport's own counters, of this QP
 * since it left RESET, NULL: there are no more. */
const char *rnic_qp_transport(const struct rnic_qp *qp);
const char *rnic_qp_counter(const struct rnic_qp *qp, unsigned index, uint64_t *value);

#endif
