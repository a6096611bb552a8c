/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the transport only: what it keeps for a device, for a peer's address, for a queue pair. */
#ifndef MRC_TRANSPORT_PRIV_H
#define MRC_TRANSPORT_PRIV_H

#include <sys/queue.h>

#include "lib/mrc/ports.h"
#include "lib/mrc/req.h"
#include "lib/mrc/reverse.h"
#include "lib/mrc/rsp.h"
#include "lib/mrc/transport.h"
#include "lib/rnic/device.h"
#include "lib/rnic/transport.h"

enum {
	MRC_PEER_BUCKETS = 64,
	/* Of a packet around its payload: IPv6, UDP, BTH, METH, TSETH, RETH, ImmDt, ICRC; and with
	 * an outer header, and with a SRH of one segment. */
	MRC_ROOM = 40 + 8 + 12 + 4 + 4 + 16 + 4 + 4,
	MRC_ROOM_SRV6 = MRC_ROOM + 40,
	MRC_ROOM_SRH = MRC_ROOM_SRV6 + 8 + 16,
};

/* X(name, help): counters of the device, uint64_t of struct mrc_dev. */
#define MRC_DEV_COUNTERS(X)                                  \
	X(requests, "endpoint requests that came")           \
	X(answers, "answers to them")                        \
	X(statuses, "port status updates that peers sent")   \
	X(stale, "of these, older than the last one")        \
	X(strange, "port status updates of no peer")         \
	X(asked, "endpoint requests sent, own probes too")   \
	X(unasked, "answers to no request")                  \
	X(tunnelled, "packets that came in an outer header") \
	X(cut, "packets that switches had trimmed")

/* An endpoint request that is out: of the caller's, or the probe of a reverse path. */
struct mrc_asked {
	uint16_t id;
	bool used;
	bool reverse;
	uint32_t qpn;      /* reverse: whose, */
	uint16_t probe_id; /* and its own number for it */
	uint64_t cookie, at;
	uint16_t ts; /* of its packet */
	struct wire_ip src, dst;
};

struct mrc_conn;

/* A congestion window that several connections to one peer share. */
struct mrc_window {
	struct nscc nscc;
	unsigned n;                  /* connections that do; 0: nscc is not made */
	TAILQ_HEAD(, mrc_conn) line; /* those that it has refused, in the order of their turns */
};

/* All connections between two addresses. */
struct mrc_peer {
	LIST_ENTRY(mrc_peer) link;
	struct wire_ip src, dst;
	struct mrc_ports ports;
	struct mrc_window window;
	LIST_HEAD(, mrc_conn) conns; /* the first one sends what is the peer's, and has its timer */
	struct mrc_endpoint status;  /* the update that is being sent, */
	uint8_t status_left;         /* and ports that it has not left on */
	uint16_t own_id;             /* mrc_ports.id that it stands for; */
	uint16_t wire_id;            /* that it has in the packet */
};

struct mrc_dev {
	struct rnic *rnic;
	struct rnic_mrc_config c;
	struct mrc_settings set;
	uint64_t base_rtt_ns;       /* of these */
	uint8_t tos[MRC_N_CLASSES]; /* DSCP << 2 */
	uint8_t wanted, up;         /* planes: that may be used, and those whose port is up */
	LIST_HEAD(, mrc_peer) peers[MRC_PEER_BUCKETS];
	struct mrc_answers answered;
	/* Ids of requests: even ones are port status updates, which have to grow as a peer sees
	 * them, odd ones probes. */
	uint16_t next_status, next_probe;
	struct mrc_asked asked[RNIC_MRC_ASKED];
	struct mrc_pkt placed; /* what mrc_place has read, for mrc_rx_placed, which follows */
	struct rnic_mrc_paths *auto4, *auto6;
	struct {
#define X(name, help) uint64_t name;
		MRC_DEV_COUNTERS(X)
#undef X
	} n;
};

/* The transport's state of a queue pair. */
struct mrc_conn {
	struct rnic_qp *qp;
	struct mrc_dev *dev;
	struct rnic_mrc_attr attr;
	const struct rnic_mrc_paths *paths;
	struct mrc_peer *peer, *spare;         /* spare: memory for one, until RTR */
	struct rnic_path plane[MRC_MAX_PORTS]; /* by the port of each; */
	uint8_t hops;                          /* those whose next hop is known, a bit each; */
	uint64_t hops_at;                      /* when to ask for the others */
	LIST_ENTRY(mrc_conn) of_peer;
	bool receives, sends; /* RTR, RTS were reached, and no failure since */
	bool heard;           /* IBV_EVENT_COMM_EST was raised */
	bool refused;         /* a NAK is on its way: the QP is in ERR */

	/* Send requests up to here are the requestor's; one that cannot be read stays behind, and
	 * fails in its turn. */
	uint32_t posted;
	bool unreadable;

	int probe_ev; /* of the reverse path, to be sent; MRC_NO_EV */
	uint16_t probe_id;

	struct mrc_evset evs;
	struct mrc_reverse reverse;
	struct nscc nscc;
	bool shares; /* the peer's window, not nscc; */
	bool waits;  /* stands in its line */
	TAILQ_ENTRY(mrc_conn) in_line;
	struct mrc_req req;
	struct mrc_rsp rsp;
	void *req_mem, *rsp_mem;
	size_t req_bytes, rsp_bytes;
	/* Of a message whose First has come, and which is not whole: where its packets go. */
	struct mrc_part {
		uint32_t psn, n; /* of the First; packets, 0: there is none such */
		uint32_t rkey, dmalen;
		uint64_t va;
		uint8_t *memory; /* as translated at mr_changes */
		uint64_t mr_changes;
	} part;
	uint64_t words;         /* that came and took effect */
	uint64_t pathless;      /* that were to leave, and no path was there */
	uint64_t placed, again; /* data packets that were, and that were there already */
};

static inline struct mrc_conn *conn_of(const struct rnic_qp *qp)
{
	return transport_state(qp);
}

/* The port of the device that carries a plane: its own, or all have the only one. */
static inline unsigned mrc_port_of(const struct mrc_dev *dev, unsigned plane)
{
	return dev->rnic->n_ports > 1 ? plane : 0;
}

/* The planes that these ports carry. */
static inline uint8_t mrc_planes_of(const struct mrc_dev *dev, unsigned ports)
{
	const unsigned all = (1u << dev->c.n_ports) - 1;

	return (uint8_t)(dev->rnic->n_ports > 1 ? ports & all : ports & 1 ? all : 0);
}

static inline struct mrc_dev *dev_of(const struct rnic *rnic)
{
	return transport_kept(rnic, &rnic_mrc);
}

/* ---- transport_look.c ---- */

enum own_look mrc_look(const struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len,
	struct wire_pkt *pkt, unsigned *drop);
/* Whether the DSCP says that a switch has cut the packet; on the last hop. */
bool mrc_is_cut(const struct mrc_dev *dev, uint8_t tos);
bool mrc_is_cut_last(const struct mrc_dev *dev, uint8_t tos);

/* ---- transport_dev.c ---- */

/* Counts a packet that was cut, or came in a tunnel. */
void mrc_count_way(struct mrc_dev *dev, const struct wire_pkt *pkt, bool cut);
bool mrc_rx_device(struct rnic *rnic, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now, unsigned *drop);
void mrc_close(struct rnic *rnic);

/* The peer of a connection that reaches RTR; its memory is conn->spare, if it is the first. */
void mrc_join(struct mrc_conn *conn);
void mrc_leave(struct mrc_conn *conn);
/* Ports that both ends have up go into the connection's paths. */
void mrc_take_ports(struct mrc_conn *conn);
/* Remembers the probe of a reverse path: the id that it goes out with, odd; 0: it may not now. */
uint16_t mrc_asks(struct mrc_conn *conn, uint16_t probe_id, uint64_t now);
/* A port of the device has changed. */
void mrc_port(struct rnic_qp *qp, unsigned port, bool up, uint64_t now);
/* The next hops of all planes whose port is up, as transport_ops.resolve; then, of those that have
 * none yet, when it is time. */
int mrc_resolve(struct rnic_qp *qp, struct rnic_path *path, uint64_t now);
void mrc_find_hops(struct mrc_conn *conn, uint64_t now);
/* Begins an update of our ports that is due; then, for each plane in turn of those in room, the
 * packet and its path, an index: false when there is none of these. */
void mrc_status_due(struct mrc_conn *conn, uint64_t now);
bool mrc_status_next(struct mrc_conn *conn, uint8_t room, struct mrc_pkt *pkt, int *ev);

/* ---- transport_tx.c ---- */

/* How a packet leaves: by a plane, and inside of it as an EV says. */
struct mrc_way {
	const struct rnic_path *plane;
	enum rnic_mrc_format format;
	const struct rnic_mrc_path *ev;
};

/* Ethernet up to the end of MRC's headers; *l3 is the inner IP header. Bytes written, or negative
 * errno. */
int mrc_put_headers(const struct mrc_dev *dev, const struct mrc_way *way, const struct mrc_pkt *pkt,
	uint8_t tos, uint8_t *out, size_t room, size_t *l3);
/* A whole packet without payload: its length. */
int mrc_put_packet(const struct mrc_dev *dev, const struct mrc_way *way, const struct mrc_pkt *pkt,
	uint8_t tos, uint8_t *out, size_t room);
/* Between two addresses, an own one first, for what belongs to no connection: all but the next hop.
 */
struct rnic_path mrc_path_between(const struct mrc_dev *dev, unsigned port,
	const struct wire_ip *src, const struct wire_ip *dst);
struct mrc_way mrc_way_of(const struct mrc_conn *conn, unsigned path);

bool mrc_tx(struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now);
enum tx_control mrc_tx_control(
	struct rnic_qp *qp, unsigned ports, struct rnic_frame *frame, uint64_t now);
/* Completions, states of EVs, who has to send, when the time comes: after anything that happened.
 */
void mrc_settle(struct mrc_conn *conn, uint64_t now);
/* The last of these alone. */
void mrc_schedule(struct mrc_conn *conn);

/* ---- transport_rx.c ---- */

/* As transport_ops.place and rx_placed. */
uint8_t *mrc_place(const struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt,
	uint16_t *headers);
void mrc_rx_placed(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now);
unsigned mrc_rx(struct rnic_qp *qp, unsigned port, const uint8_t *frame, const struct wire_pkt *pkt,
	uint64_t now);

/* ---- transport_window.c ---- */

/* The window of a connection that reaches RTS, its own being made: that one, or the peer's. */
struct nscc *mrc_window_join(struct mrc_conn *conn);
/* No effect if it has its own. */
void mrc_window_leave(struct mrc_conn *conn);
/* Before data may leave: whether it is this one's turn (req.held); and what came of it: whether a
 * packet of data has left. */
void mrc_window_turn(struct mrc_conn *conn);
void mrc_window_turned(struct mrc_conn *conn, bool sent);
/* Something has happened that may have made room: whoever's turn it is has something to send. */
void mrc_window_news(struct mrc_conn *conn);

/* ---- transport_paths.c ---- */

/* -EINVAL: a field out of range, or paths that addresses of this family cannot have. */
int mrc_paths_check(const struct rnic_mrc_paths *paths, unsigned n_ports, bool v4);

#endif
