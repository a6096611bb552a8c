/* SPDX-License-Identifier: BSD-3-Clause */
/* Two RNIC cores wired back to back on virtual time, each port to the other's of the same number,
 * over links that lose, double, delay and corrupt frames as a seeded generator or a test's own hook
 * says. */
#ifndef TEST_RNIC_NET_H
#define TEST_RNIC_NET_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> /* needs those above */
/* clang-format on */

#include "lib/rnic/rnic.h"
#include "lib/wire/frame.h"

enum { NET_MTU = 4200, NET_DELAY = 5000, NET_FRAME = 4400, NET_EVENTS = 64, NET_LOG = 1024 };

enum {
	NET_ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			 IBV_ACCESS_REMOTE_ATOMIC
};

struct net;

/* Looks at, or changes, a frame that device `from` sends. False: it is lost. */
typedef bool net_hook(struct net *net, int from, uint8_t *frame, size_t *len);

struct net_frame {
	uint64_t at;
	uint64_t order; /* of sending: equal times keep it */
	int to;
	unsigned port;
	size_t len;
	uint8_t bytes[NET_FRAME];
};

/* A RoCE frame as sent, lost or not. */
struct net_log {
	uint64_t at;
	int from;
	unsigned port;
	struct wire_pkt pkt;
};

/* One end of a connection. */
struct end {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_cq *scq, *rcq;
	struct rnic_qp *qp;
	struct rnic_mr *mr; /* of buf, all access */
	unsigned n_srq_event;
	int index; /* 0 or 1 */
	uint8_t *buf;
	size_t buf_len;
	enum ibv_event_type event[NET_EVENTS];
	unsigned n_event, n_cq_event, n_cq_error;
	struct rnic_cq *cq_event[NET_EVENTS];
	enum ibv_event_type port_event[NET_EVENTS];
	unsigned event_port[NET_EVENTS], n_port_event;
};

struct net {
	struct end end[2];
	uint64_t now;
	uint64_t random;
	/* per 1000 frames */
	unsigned loss, twice, late, corrupt;
	net_hook *hook;
	void *hook_arg;
	unsigned hook_n;    /* for the hook's use */
	unsigned hook_port; /* that the frame left by */
	/* Between the making of a frame and the port's copy of it. May be NULL. */
	void (*before_port)(struct net *net);
	bool mute[2];     /* nothing that this end sends arrives */
	unsigned cut;     /* bit N: nothing that is sent on ports N arrives */
	unsigned full[2]; /* ports of this end that take nothing now */
	/* Bit/s of the links, 0: a frame takes no time. What an end sends leaves one by one: no
	 * frame is taken from it before the last one has left, which is at left[]. */
	uint64_t rate, left[2];
	struct end *told; /* net_port_set's */
	/* The drop_nth-th frame (from 1) of this opcode from this end is lost; 0: none. */
	int drop_from;
	uint8_t drop_opcode;
	unsigned drop_nth;
	struct net_log log[NET_LOG]; /* the first frames sent since n_log was set to 0 */
	unsigned n_log;
	struct net_frame **flight; /* a heap by (at, order) */
	unsigned n_flight, cap_flight;
	uint64_t sent;
};

struct net_options {
	enum ibv_qp_type type; /* default RC */
	struct rnic_srq *srq[2];
	bool ip6, link_local;
	enum ibv_mtu mtu;         /* default 1024 */
	uint32_t psn[2];          /* starting PSN of end 0, 1 */
	uint8_t timeout;          /* default 14 */
	uint8_t retry, rnr_retry; /* default 7 when no_retry is false */
	bool no_retry;            /* retry and rnr_retry are meant as they stand */
	uint8_t rnr_timer;        /* default 12 */
	unsigned access;          /* of QPs; default all */
	unsigned mr_access;       /* default all */
	uint8_t rd, dest_rd;      /* max_rd_atomic, default 1, and max_dest_rd_atomic, default 16 */
	bool no_rd;               /* max_rd_atomic 0 */
	uint32_t wr;              /* depth of the queues, default 64 */
	uint32_t window, quantum;
	uint32_t max_qp;  /* of the device */
	unsigned n_ports; /* default 1 */
	bool planes;      /* all ports have the addresses of the first */
	unsigned port;    /* of QPs, from 0 */
	unsigned cqe;     /* depth of the CQs, default 1024 */
	bool selective;
	const struct transport_ops *transport; /* of the type; NULL: that of the type, or SR */
	bool sig_none;                         /* sq_sig_all off */
	struct rnic_congestion congestion;
	bool lldp; /* hosts h0, h1, ports nic0, nic1 ...; there is no end of it for net_run */
};

uint64_t net_random(struct net *net);
/* Devices with one IPv4 and one IPv6 address for each port, no connection yet. */
void net_open(struct net *net, const struct net_options *options);
void net_close(struct net *net);
/* A QP on each end, connected and in RTS. */
void net_connect(struct net *net, const struct net_options *options);
struct rnic_qp *net_make_qp(struct end *end, const struct net_options *options);
/* One end's way from RESET to RTS towards a peer. */
void net_to_rts(struct net *net, int i, struct rnic_qp *qp, uint32_t peer_qpn,
	const struct net_options *options);
/* The attributes net_to_rts uses, and their masks for INIT, RTR, RTS. */
struct ibv_qp_attr net_attr(
	struct net *net, int i, uint32_t peer_qpn, const struct net_options *options);
extern const int net_mask_init, net_mask_rtr, net_mask_rts;
enum { NET_QKEY = 0x11111111 };

/* rnic_port_set at end i; events are written down in port_event. */
void net_port_set(struct net *net, int i, unsigned port, bool up);
/* Runs until nothing is in flight and no timer runs, or until the time. */
void net_run(struct net *net, uint64_t until);
/* Delivers a frame after a while, not subject to loss. */
void net_put(struct net *net, int to, const uint8_t *bytes, size_t len, uint64_t delay);
void net_put_at(
	struct net *net, int to, unsigned port, const uint8_t *bytes, size_t len, uint64_t delay);
/* Delivers a frame at once. */
void net_inject(struct net *net, int to, const uint8_t *frame, size_t len);
/* Builds a packet as from the other end (to the QP of `to` if hdr->dqpn is 0) and delivers it. */
void net_packet(struct net *net, int to, struct wire_hdr hdr, const void *payload, size_t len);
/* An ACK, NAK or RNR NAK to the QP of end `to`. */
void net_ack(struct net *net, int to, uint32_t psn, unsigned syndrome);
/* The log's i-th frame must be this. */
void net_expect(const struct net *net, unsigned i, int from, uint8_t opcode, uint32_t psn);
void net_expect_ack(
	const struct net *net, unsigned i, int from, uint32_t psn, unsigned syndrome, uint32_t msn);
/* rx_frames = accepted + drops on both ends. */
void net_check_counters(const struct net *net);
uint64_t net_drops(const struct rnic *rnic);

/* Posting with one SGE in the end's buffer. */
int end_send(struct end *end, enum ibv_wr_opcode opcode, uint64_t id, size_t offset, uint32_t len,
	uint64_t raddr, uint32_t rkey);
int end_recv(struct end *end, uint64_t id, size_t offset, uint32_t len);
/* Exactly one completion must be there. */
struct ibv_wc end_wc(struct rnic_cq *cq);
void end_no_wc(struct rnic_cq *cq);

static const uint64_t FOREVER = UINT64_MAX;
static const uint64_t MS = 1000000, SEC = 1000000000;

#endif
