/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/stream: connections and what all of the control path's files share. Positions are
 * sequence numbers of 64 bits (lib/place): they begin at 2^32 plus the initial one, so that none
 * that is compared is negative. */
#ifndef STREAM_CONN_H
#define STREAM_CONN_H

#include <sys/queue.h>

#include "lib/stream/congestion.h"
#include "lib/stream/prr.h"
#include "lib/stream/rack.h"
#include "lib/stream/ranges.h"
#include "lib/stream/segs.h"
#include "lib/stream/stream.h"
#include "lib/stream/undo.h"

enum tcp_state {
	FREE,
	SYN_SENT,
	SYN_RECEIVED,
	ESTABLISHED,
	FIN_WAIT, /* our FIN is sent or will be; the peer's has not come: FIN-WAIT-1 and -2 */
	CLOSE_WAIT,
	LAST_ACK, /* both: CLOSING as well */
	TIME_WAIT,
};

/* A send or a receive of the program. */
struct op {
	TAILQ_ENTRY(op) link;
	uint8_t *buf;
	uint64_t len, cookie;
	uint64_t start, end; /* positions, once posted */
	int64_t result;
	uint64_t ticket;
	enum stream_event event;
	uint32_t conn, mr;
	bool posted;
};
TAILQ_HEAD(op_list, op);

/* A slot of bounce memory that holds payload [from, to) of a connection. */
struct held {
	TAILQ_ENTRY(held) link;
	struct conn *conn; /* NULL: ended while it is being copied */
	uint64_t from, to;
	uint32_t offset; /* of from, in the slot */
	bool copying;
};
TAILQ_HEAD(held_list, held);

enum { MAX_LISTENERS = 64, MAX_HELD = 64, MAX_TWICE = 4, CHALLENGES = 100, RETRY = 1000000 };

/* What was lost, and how it is repaired (recover.c). */
struct recovery {
	enum {
		OPEN,
		REPAIR, /* fast recovery: the peer has shown what is missing */
		LOSS,   /* the retransmission timer has run out */
	} phase;
	uint64_t point; /* it is over when all before this is acknowledged */
	bool force;     /* the next retransmission goes whatever the window says */
	bool probe;     /* a tail loss probe is due */
	struct rack rack;
	struct tlp tlp;
	struct prr prr;
	struct undo undo;
	struct range known[TCP_MAX_SACK]; /* SACK blocks that are in the log already */
	uint64_t reorder_due, probe_due;  /* 0: none */
};

struct conn {
	enum tcp_state state;
	uint32_t handle, flow;
	struct place_tuple tuple;
	uint8_t mac[6];
	uint64_t cookie;
	struct conn *hash_next;
	TAILQ_ENTRY(conn) work, age; /* to be flushed; half-open or TIME-WAIT, oldest first */
	struct op *closing;          /* the last completion's */
	bool on_work, passive, sack, app_closed, reported, retry;
	bool owed; /* STREAM_CLOSED, to the program: nobody else gets this index */
	struct op_list tx, rx;

	/* sending */
	uint64_t una, nxt, tail; /* tail: end of what is posted; the FIN's position */
	uint64_t wl1, wl2;
	uint64_t snd_wnd, max_wnd;
	uint32_t mss;
	uint8_t snd_scale, rcv_scale, dupacks;
	bool fin, probe;
	struct segs log;
	struct recovery rec;
	struct congestion cc;
	struct rate rate;
	uint64_t pace_at; /* the next segment may go */
	uint64_t srtt, rttvar, rto, syn_at;
	uint64_t rtx_due, due, progress; /* due: of probes and of states; 0: none */
	uint8_t backoff;

	/* receiving */
	uint64_t rcv, edge, rx_tail, fin_at; /* fin_at 0: none has come */
	struct ranges ahead;
	struct range newest;           /* of ahead: SACK's first block */
	struct range twice[MAX_TWICE]; /* came again: to be told (RFC 2883) */
	uint8_t n_twice;
	struct held_list held;
	uint32_t n_held;
	uint64_t held_bytes;
	unsigned acks;            /* to be sent */
	bool cursor_moved, first; /* first: our FIN was before the peer's */
	/* STREAM_ARRIVED: begin of the stream, what the program knows, what it is to be told after
	 * the ticket; once at a time. */
	uint64_t origin, known, arrived, arrival_ticket;
	bool arriving, arrival_told; /* told: and not polled yet */
	TAILQ_ENTRY(conn) arrival;
	TAILQ_ENTRY(conn) pacing; /* waits for pace_at */
	bool paced;
};
TAILQ_HEAD(conn_list, conn);

struct listener {
	uint16_t port; /* 0: unused */
	uint64_t cookie;
};

struct stream {
	struct stream_config config;
	struct stream_path path;
	struct place *place;
	struct conn *conn;
	struct conn **bucket;
	uint32_t bucket_mask, n_conns, n_half, next_port;
	struct conn_list unused, work, half, waiting, arrivals, paced;
	struct listener listener[MAX_LISTENERS];
	struct op *op;
	struct op_list free_ops, settling;
	struct seg *seg;
	struct seg_pool segs;
	struct held *held; /* by slot */
	struct held_list to_free;
	struct stream_completion *done; /* a ring */
	bool armed;                     /* its next one is to be notified */
	uint32_t done_mask, done_head, done_tail;
	uint64_t now, due, pace_due, quiet_from;
	uint64_t *timer; /* by connection, when to look at its timers; due is the least */
	uint64_t cookie_key[2], cookies_until; /* 0: no cookie was ever sent */
	unsigned answers;
	uint32_t user_ops;  /* that the program has not been told of */
	uint32_t unsettled; /* have no ticket yet */
	uint32_t n_held;
	uint64_t count[STREAM_N_COUNTERS];
	size_t bytes;
};

/* conn.c */
struct conn *conn_find(const struct stream *s, const struct place_tuple *tuple);
struct conn *conn_new(struct stream *s, const struct place_tuple *tuple, const uint8_t mac[6]);
void conn_work(struct stream *s, struct conn *c);
/* Its timers are looked at then. */
void conn_due(struct stream *s, struct conn *c, uint64_t when);
/* It has more to send, at pace_at; it is flushed then. */
void conn_pace(struct stream *s, struct conn *c);
void conn_paced(struct stream *s);
/* Established: the program hears of it, what it has posted goes into the lists. */
void conn_open(struct stream *s, struct conn *c);
void conn_post(struct stream *s, struct conn *c);
/* Of the program's operations, those that are done. */
void conn_complete(struct stream *s, struct conn *c);
/* Of its receives, those that are not full are the program's again. */
void conn_recall(struct stream *s, struct conn *c, struct stream_recalled *out);
/* Ends it: all operations with this result, the flow is gone. keep: as TIME-WAIT. */
void conn_end(struct stream *s, struct conn *c, int result, bool keep);
void conn_forget(struct stream *s, struct conn *c);
/* The program has polled the end of this handle. */
void conn_heard_of(struct stream *s, uint32_t handle);
void held_free(struct stream *s, struct held *h);
uint64_t conn_ready(const struct conn *c);
void conn_copied(struct stream *s, const struct stream_note *note);
void conn_settled(struct stream *s);
/* Whether both ends are through with it. */
void conn_check_end(struct stream *s, struct conn *c);
/* FIN-WAIT-2 of a program that has closed: its peer is waited for, but not for ever. */
void conn_linger(struct stream *s, struct conn *c);

/* in.c */
void segment_in(struct stream *s, const struct stream_note *note);

/* out.c */
/* Variables of both sides; iss and peer_seq: the initial sequence numbers. */
void conn_start(struct stream *s, struct conn *c, uint32_t iss, uint32_t peer_seq);
uint32_t conn_isn(struct stream *s); /* a new one */
void conn_options(struct stream *s, struct conn *c, const struct wire_tcp *syn);
bool conn_flush(struct stream *s, struct conn *c); /* false: the ring is full, more is to be sent */
bool send_rst(struct stream *s, const struct place_tuple *t, const uint8_t mac[6], uint32_t seq,
	uint32_t ack, uint8_t flags);
/* The answer to a SYN of which nothing is kept. false: no room in the ring. */
bool send_cookie(struct stream *s, const struct place_tuple *t, const uint8_t mac[6], uint32_t isn,
	const struct wire_tcp *syn);
bool may_answer(struct stream *s); /* to what may be forged: a bounded number */

/* recover.c */
/* An acknowledgement that is possible, and its SACK blocks. dup: it is a duplicate by RFC 5681, 2.
 */
void conn_acked(
	struct stream *s, struct conn *c, const struct wire_tcp *tcp, uint64_t ack, bool dup);
void conn_timers(struct stream *s, struct conn *c);
/* Bytes taken to be on their way (RFC 6675, SetPipe). */
uint64_t conn_pipe(const struct conn *c);
void conn_rtt(struct stream *s, struct conn *c, uint64_t rtt);
/* After something was sent or acknowledged: when a tail loss probe is due. */
void conn_arm_probe(struct stream *s, struct conn *c);

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The position near `about` that has this sequence number. */
static inline uint64_t position_of(uint64_t about, uint32_t seq)
{
	return about + (uint64_t)(int64_t)(int32_t)(seq - (uint32_t)about);
}

#endif
