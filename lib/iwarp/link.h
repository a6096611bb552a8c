/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of iWARP on connections of lib/stream: who connects, asks, accepts and rejects; bytes
 * from one to the other. All of it belongs to one thread, which is the owner of the device and runs
 * the stream's control path. No I/O, no clock; the heap only in iwarp_link_create. Errors are
 * negative errno, time is nanoseconds.
 *
 * Received bytes lie in a ring of the connection's, from which the verified payload of a frame goes
 * to the program's memory, in one copy; frames that are sent wait in another until they are
 * acknowledged. Whoever does not poll his completions stops no peer but by TCP's window. */
#ifndef IWARP_LINK_H
#define IWARP_LINK_H

#include "lib/iwarp/iwarp.h"
#include "lib/iwarp/mpa.h"
#include "lib/stream/stream.h"

struct iwarp_link;

enum { IWARP_LINK_RECVS = 4, IWARP_LINK_SENDS = 8 }; /* of a connection, under way at most */

struct iwarp_link_config {
	/* With arrivals, and max_ops for IWARP_LINK_RECVS and _SENDS of every connection: one that
	 * finds none waits for another's to complete. Nobody else polls it. */
	struct stream *stream;
	uint16_t mtu;       /* of its IP packets: frames fill segments */
	uint16_t max_conns; /* until IWARP_CLOSED is polled; the stream's table may be larger */
	uint32_t rx_bytes;  /* ring of a connection: a power of two, 4 KB at least */
	uint32_t tx_bytes;  /* the same, and mtu at least */
	uint64_t timeout;   /* from a connection to the peer's frame of MPA */
};

int iwarp_link_create(const struct iwarp_link_config *config, struct iwarp_link **link);
/* Connections are reset, ports are not listened to any more, queue pairs lose their streams:
 * nothing of the stream refers to the link's memory. The stream is the caller's, and outlives the
 * link; no thread is inside a call of its data path. What it still tells is of nobody's: a new link
 * on it passes it over. NULL: nothing. */
void iwarp_link_destroy(struct iwarp_link *link);

/* Peers that ask become IWARP_REQUEST. As stream_listen. */
int iwarp_listen(struct iwarp_link *link, uint16_t port, uint64_t cookie);
int iwarp_unlisten(struct iwarp_link *link, uint16_t port);
/* qp: in INIT; it is in RTS when IWARP_ESTABLISHED comes. offer as of mpa_connect; depths at most
 * RNIC_MAX_RD_ATOMIC. -EINVAL, -ENOSPC, and the errors of stream_connect. *conn: a handle until
 * IWARP_CLOSED. */
int iwarp_connect(struct iwarp_link *link, uint64_t now, const uint8_t mac[6],
	const struct wire_ip *ip, uint16_t port, struct rnic_qp *qp, const struct mpa_offer *offer,
	uint64_t cookie, uint32_t *conn);
/* Of IWARP_REQUEST: what the peer says, until accepted, rejected or closed. -EBADF. */
int iwarp_request(const struct iwarp_link *link, uint32_t conn, struct mpa_start *start);
/* qp: in INIT, then in RTS. Or the errors of iwarp_attach, and nothing is done. -EBADF. */
int iwarp_accept(struct iwarp_link *link, uint64_t now, uint32_t conn, struct rnic_qp *qp,
	const struct mpa_offer *offer, uint64_t cookie);
/* -EBADF; -EINVAL: private data that is too long, or none: nothing is done. */
int iwarp_reject(struct iwarp_link *link, uint64_t now, uint32_t conn, const void *private_data,
	uint16_t len);
/* Ends the stream behind what has been sent; the queue pair goes to ERR. One that is not agreed
 * upon is reset, and its queue pair as it was; one that ends already goes on to. -EBADF. */
int iwarp_close(struct iwarp_link *link, uint32_t conn);
/* Both ends' addresses. -EBADF. */
int iwarp_ends(const struct iwarp_link *link, uint32_t conn, struct place_tuple *ends);

enum iwarp_event_type {
	/* Cookie of the listener; not of one that is over by then. It has one of max_conns until it
	 * is answered, and how long that takes is the program's to bound: the link sets no time. A
	 * peer that gives up is told of by IWARP_CLOSED; one that goes without a word is not seen
	 * before the answer is sent. */
	IWARP_REQUEST,
	IWARP_ESTABLISHED, /* connecting: the peer has accepted; accepting: the reply has left */
	/* The last of every connection, also of those that never were a request. 0, -ECONNREFUSED
	 * (by the peer's MPA, or TCP), -EPROTO, ... */
	IWARP_CLOSED,
};

struct iwarp_event {
	enum iwarp_event_type type;
	uint32_t conn;
	uint64_t cookie;
	int result;
	/* ESTABLISHED of who connects, and CLOSED with -ECONNREFUSED by a reply: what it said. */
	uint16_t private_len;
	uint8_t private_data[MPA_MAX_PRIVATE];
};
/* false: none. */
bool iwarp_poll(struct iwarp_link *link, struct iwarp_event *event);

/* Takes what the stream tells, gives it what is to be sent; after stream_turn, and before it when a
 * request was posted and rnic_tx has been called. True: there was something. */
bool iwarp_turn(struct iwarp_link *link, uint64_t now);
/* When to call at the latest; 0: at once, for one of the calls above was made, or a queue pair has
 * something to say or is gone; UINT64_MAX: whenever the stream has something. */
uint64_t iwarp_due(const struct iwarp_link *link);

/* X(symbol, name, meaning) */
#define IWARP_LINK_COUNTERS(X)                                                                \
	X(CONNECTS, "connects", "connections that began, either side")                        \
	X(ESTABLISHED, "established", "of them, those that both ends agreed upon")            \
	X(REJECTED, "rejected", "peers whose request was rejected by the program")            \
	X(REFUSED, "refused", "peers that rejected ours")                                     \
	X(NO_ROOM, "no_room", "peers that came when max_conns were there")                    \
	X(BAD_START, "bad_start", "peers whose first frame was malformed, or not MPA's")      \
	X(MARKERS, "markers", "peers that asked for markers")                                 \
	X(NO_RTR, "no_rtr", "peers without our ready-to-receive message")                     \
	X(LOW_IRD, "low_ird", "replies that have more READs outstanding than offered")        \
	X(TIMEOUTS, "timeouts",                                                               \
		"peers that sent no frame of MPA in time, or no ready-to-receive message")    \
	X(NO_END, "no_end", "peers that did not take what was left, or did not end, in time") \
	X(EARLY, "early", "peers that sent before our reply")                                 \
	X(LATE_BYTES, "late_bytes", "bytes that came when no queue pair took them any more")

enum iwarp_link_counter {
#define X(sym, name, text) IWARP_LINK_##sym,
	IWARP_LINK_COUNTERS(X)
#undef X
		IWARP_LINK_N_COUNTERS
};
uint64_t iwarp_link_count(const struct iwarp_link *link, enum iwarp_link_counter counter);
const char *iwarp_link_counter_name(enum iwarp_link_counter counter);

#endif
