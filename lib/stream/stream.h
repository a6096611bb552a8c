/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP (RFC 9293) as the control path of ZeroNIC (OSDI '24, 3.3 and 3.4): it sees headers, decides
 * what is acknowledged, sent and sent again, and tells the program; payload goes between frames and
 * the program's memory by the data path (path.h), which is the only one that touches it.
 *
 * One thread calls all of this; another, or the same, runs the data path. Time is an argument, in
 * nanoseconds; whoever calls asks stream_due() when to call again. Errors are negative errno. */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include "lib/stream/path.h"

struct stream;

#define STREAM_MAX_WAIT (86400ull * 1000000000) /* ns */

/* Congestion control. X(symbol, name, meaning) */
#define STREAM_CCS(X)                                                                         \
	X(CUBIC, "cubic", "RFC 9438; what the Linux kernel has when nothing else is said")    \
	X(NEWRENO, "newreno", "RFC 5681 and 6582")                                            \
	X(DELAY, "delay",                                                                     \
		"by the queue's delay, for one datacentre; few losses without delay are not " \
		"congestion")                                                                 \
	X(BBR, "bbr",                                                                         \
		"the first version, as in the Linux kernel: paced at the rate that the "      \
		"path delivers, whatever is lost")

enum stream_cc {
#define X(sym, name, text) STREAM_##sym,
	STREAM_CCS(X)
#undef X
		STREAM_N_CCS
};
const char *stream_cc_name(enum stream_cc cc);
/* enum stream_cc, -1: no such name. */
int stream_cc_by_name(const char *name);

struct stream_config {
	uint8_t mac[6];
	struct wire_ip ip;
	uint16_t mtu;       /* 576 .. 9216: of IP packets */
	uint16_t max_conns; /* also those in TIME-WAIT */
	/* Of max_conns: peers that have not answered our SYN yet. Those beyond are answered with
	 * SYN cookies: nothing is kept of them until they acknowledge. */
	uint16_t max_half_open;
	uint32_t max_ops;      /* sends and receives under way, or done and not yet polled */
	uint32_t ring;         /* entries of the queues to and from the data path, a power of two */
	uint16_t bounce_slots; /* packets that are kept until a buffer is posted for them */
	uint32_t allowance;    /* bytes a peer may send before there is a buffer; 0: it waits */
	uint8_t wscale;        /* allowance is 0 or at least 1 << wscale, unless wscale is 0 */
	uint32_t segments; /* sent and not acknowledged, of all connections; at least max_conns */
	enum stream_cc cc;
	uint32_t loss_tolerance;   /* STREAM_DELAY: of a million, lost without being congestion */
	uint64_t delay_target;     /* STREAM_DELAY: queueing delay that is aimed at */
	uint64_t tlp_min;          /* a tail loss probe is not sent earlier than this, */
	uint64_t ack_delay;        /* and of a single segment later by this: RFC 8985, 7.2 */
	uint64_t rto_min, rto_max; /* this and the next two: at most STREAM_MAX_WAIT */
	uint64_t give_up;          /* a peer that acknowledges nothing for so long is dead */
	uint64_t time_wait;        /* 2 MSL */
	struct place_config place; /* max_mrs of max_ops at least */
	bool arrivals;             /* STREAM_ARRIVED is wanted */
	/* That a completion is there: stream_arm. It must not call the stack. May be NULL. */
	void (*notify)(void *arg);
	void *notify_arg;
	uint32_t (*random)(void *arg); /* unpredictable: initial sequence numbers, ports */
	void *random_arg;
	/* Memory of a stack, 64 bytes aligned and all zero, as long as the stack lives; NULL: there
	 * is none. Not set: the heap. Control path and data path may be two processes that have
	 * this memory at the same addresses (mapped shared, before fork); the data path's has what
	 * is sent and received as well, and the control path's need not. */
	void *(*alloc)(void *arg, size_t bytes);
	void *alloc_arg;
};

/* Sensible numbers for conns connections; addresses, mtu and random are the caller's. */
void stream_defaults(struct stream_config *config, unsigned conns);
/* Allocates all there will ever be. 0, -EINVAL, -ENOMEM. What config.alloc has given is the
 * caller's to give back, also after an error. */
int stream_create(const struct stream_config *config, struct stream **stream);
void stream_destroy(struct stream *s);
struct stream_path *stream_path(struct stream *s);
/* Bytes it has allocated. */
size_t stream_bytes(const struct stream *s);

/* ---- connections ---- */

/* Connections to a port become completions STREAM_ACCEPTED with this cookie. -EADDRINUSE, -ENOSPC.
 */
int stream_listen(struct stream *s, uint16_t port, uint64_t cookie);
int stream_unlisten(struct stream *s, uint16_t port);
/* Begins to connect; STREAM_CONNECTED comes with the cookie. mac: of the peer or the router. port:
 * own, 0: any. -ENOSPC, -EADDRINUSE. *conn is a handle, valid until STREAM_CLOSED: until that is
 * polled no other connection has its low 16 bits, an index below max_conns. */
int stream_connect(struct stream *s, uint64_t now, const uint8_t mac[6], const struct wire_ip *ip,
	uint16_t remote_port, uint16_t port, uint64_t cookie, uint32_t *conn);
/* How a connection's sender is doing; times in ns, 0: not known. pace: bytes/s, 0: as the window
 * lets go. -EBADF. */
struct stream_info {
	enum stream_cc cc;
	uint64_t cwnd, ssthresh, flight, srtt, min_rtt, rto, pace;
};
int stream_info(const struct stream *s, uint32_t conn, struct stream_info *info);
/* A cookie for STREAM_CLOSED of a connection that was accepted. -EBADF. */
int stream_set_cookie(struct stream *s, uint32_t conn, uint64_t cookie);

/* Both ends of a connection. -EBADF. */
int stream_ends(const struct stream *s, uint32_t conn, struct place_tuple *tuple);

/* Asynchronous, in order; the memory is registered until the completion comes. A receive completes
 * when its buffer is full, or the peer has ended its stream (with what there is, at last 0). -EBADF
 * -EPIPE after stream_shutdown, -EINVAL length 0 or more than 4 GB, -ENOBUFS max_ops. */
int stream_send(struct stream *s, uint32_t conn, const void *buf, size_t len, uint64_t cookie);
int stream_recv(struct stream *s, uint32_t conn, void *buf, size_t len, uint64_t cookie);
/* Takes all receives back that are not full, for a thread that runs the data path too, when
 * stream_turn has returned 0 and nothing has come since: their memory is the caller's at once,
 * there are no completions for them. The next receive continues the stream at `from`, counted from
 * the connection's begin. Bytes before it are where they belong; of those up to `to` some have come
 * behind a hole, into the memory that is taken back: they are not sent again, so whoever posts
 * other memory brings all of it along. As many bytes as were posted have to be posted again before
 * the data path runs. -EBADF; -EAGAIN: it is not open yet. */
struct stream_recalled {
	uint64_t from, to;
};
int stream_recall(struct stream *s, uint32_t conn, struct stream_recalled *out);
/* No more is sent after what has been; receiving goes on. */
int stream_shutdown(struct stream *s, uint32_t conn);
/* shutdown; what the peer still sends is refused with a reset, as is what it has sent and no
 * receive was posted for. STREAM_CLOSED comes at last: a peer that does not end its stream is
 * waited for as long as config.give_up. */
int stream_close(struct stream *s, uint32_t conn);
/* Resets it now. STREAM_CLOSED comes with -ECONNABORTED. */
int stream_abort(struct stream *s, uint32_t conn);

/* ---- completions ---- */

enum stream_event {
	STREAM_ACCEPTED, /* cookie of the listener, result 0 */
	STREAM_CONNECTED,
	STREAM_SENT,     /* acknowledged: result is its length, or an error */
	STREAM_RECEIVED, /* result: bytes in the buffer, less than its length only at the end */
	/* More of the stream is in posted buffers, in order and for good: result is how many bytes
	 * since the connection began. Of several that were not polled there is one, the last. */
	STREAM_ARRIVED,
	STREAM_CLOSED, /* the last of a connection. 0, -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT ... */
};

struct stream_completion {
	enum stream_event event;
	uint32_t conn;
	uint64_t cookie;
	int64_t result;
};

/* Up to n of them; never a system call. */
unsigned stream_poll(struct stream *s, struct stream_completion *out, unsigned n);
/* For who will sleep: config.notify is called once, within the call that makes the next completion
 * (event.h: a descriptor that is readable then). false: there is one already, and no call. */
bool stream_arm(struct stream *s);

/* ---- time ---- */

/* Reads the data path's notes, runs what is due, writes requests. Returns how many notes there
 * were. To be called until it returns 0, then again when notes come, a call was made, or at
 * stream_due. */
unsigned stream_turn(struct stream *s, uint64_t now);
/* UINT64_MAX: nothing is waited for. */
uint64_t stream_due(const struct stream *s);

/* X(symbol, name, meaning) */
#define STREAM_COUNTERS(X)                                                                        \
	X(SEGMENTS, "segments", "headers received")                                               \
	X(SENT, "sent", "segments sent")                                                          \
	X(RETRANSMITTED, "retransmitted", "of them, again")                                       \
	X(TIMEOUTS, "timeouts", "retransmission timer has run out")                               \
	X(LOST, "lost", "segments taken for lost, without a timeout")                             \
	X(REPAIRS, "repairs", "recoveries that began without a timeout")                          \
	X(TAIL_PROBES, "tail_probes", "tail loss probes sent")                                    \
	X(TAIL_REPAIRED, "tail_repaired", "of them, those that repaired a loss by themselves")    \
	X(DSACKS, "dsacks", "reports of the peer that it had something twice")                    \
	X(UNDONE, "undone", "recoveries that were for nothing: the window was given back")        \
	X(NO_SEGMENT, "no_segment", "sending waited: entries for segments were used up")          \
	X(PROBES, "probes", "of a peer's window that is closed")                                  \
	X(RST_SENT, "rst_sent", "resets sent")                                                    \
	X(RST_TAKEN, "rst_taken", "resets believed: exactly at the next sequence number")         \
	X(RST_DOUBTED, "rst_doubted", "resets and SYNs in the window that were answered instead") \
	X(OUTSIDE, "outside", "segments outside of the window")                                   \
	X(BAD_ACK, "bad_ack", "acknowledge what was never sent, or long ago")                     \
	X(NO_CONN, "no_conn", "segments of no connection")                                        \
	X(NO_ROOM, "no_room", "SYNs that found no room")                                          \
	X(COOKIES, "cookies", "SYNs answered with a cookie: too many connections are half-open")  \
	X(COOKIES_TAKEN, "cookies_taken", "connections that began with a cookie's return")        \
	X(COOKIES_REFUSED, "cookies_refused", "acknowledgements of no cookie, or an old one")     \
	X(FORGOTTEN, "forgotten", "payload that came too scattered to be remembered")             \
	X(QUIET, "quiet", "answers that were not given: too many in this millisecond")

enum stream_counter {
#define X(sym, name, text) STREAM_COUNT_##sym,
	STREAM_COUNTERS(X)
#undef X
		STREAM_N_COUNTERS
};
uint64_t stream_count(const struct stream *s, enum stream_counter counter);
const char *stream_counter_name(enum stream_counter counter);
/* Connections that are there in any state; of them, half-open ones. */
unsigned stream_conns(const struct stream *s);
unsigned stream_half_open(const struct stream *s);

#endif
