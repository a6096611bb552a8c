/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/iwarp only: a link's connections. link.c is what the program calls, link_turn.c what
 * happens between queue pairs and streams. */
#ifndef IWARP_LINK_PRIV_H
#define IWARP_LINK_PRIV_H

#include <sys/queue.h>

#include "lib/iwarp/link.h"

enum {
	MIN_RING = 4096,
	RX_CHUNKS = IWARP_LINK_RECVS, /* receives that a ring is posted as */
	TX_OPS = IWARP_LINK_SENDS,    /* what comes meanwhile goes in fewer, larger ones */
	POLL = 32,
};

enum conn_state {
	FREE,
	STARTING, /* the peer's frame of MPA is waited for */
	ASKED,    /* the program's answer is */
	RUNNING,
	ENDING, /* nothing more is taken; the stream's end is waited for */
};

struct conn {
	struct iwarp_link *link;
	LIST_ENTRY(conn) bucket; /* if named */
	bool named;
	enum conn_state state;
	uint32_t handle; /* of the stream, and ours */
	uint64_t cookie;
	struct rnic_qp *qp; /* NULL: none yet, or gone */
	struct mpa mpa;
	uint64_t deadline;
	int result;                      /* of IWARP_CLOSED, once it is not 0 */
	bool asked, established, closed; /* events that are not polled */
	bool refused;                    /* by a reply: its private data is told */
	bool shut, close_asked;          /* our half has ended; both have */
	bool peer_ended;
	/* Positions since the beginning; modulo the ring's bytes, where they lie. */
	uint8_t *rx, *tx;
	uint64_t rx_posted, rx_full, rx_come, rx_taken;
	uint64_t tx_put, tx_posted, tx_acked;
	unsigned tx_ops;
};

LIST_HEAD(conn_bucket, conn);

struct iwarp_link {
	struct iwarp_link_config config;
	size_t mulpdu, fpdu;
	struct conn *conn; /* max_conns */
	/* By handle. The stream gives a place in its table to another connection while the end of
	 * the one before is still to be told: ours are of no other's number. */
	struct conn_bucket *bucket;
	uint32_t bucket_mask;
	uint8_t *rings;
	unsigned next_event;
	bool woken; /* something was asked for, or a queue pair has something to say: a turn is due
		     */
	uint64_t count[IWARP_LINK_N_COUNTERS];
	uint8_t listens[(UINT16_MAX + 1) / 8]; /* to which ports: a bit each */
};

/* The connection of a stream's handle; NULL: there is none. */
struct conn *link_find(const struct iwarp_link *link, uint32_t handle);
/* A place that nobody has, in STARTING; NULL: there is none. link_name: its handle is known. */
struct conn *link_take(struct iwarp_link *link, uint64_t cookie, uint64_t deadline);
void link_name(struct conn *c, uint32_t handle);
/* Gives it back; nothing refers to it any more. */
void link_drop(struct conn *c);

/* Attaches a queue pair with nothing agreed yet: it is this connection's, and its end is told. The
 * errors of iwarp_attach. */
int link_hold(struct conn *c, struct rnic_qp *qp);
void link_let_go(struct conn *c);
/* Both frames of MPA are there: the one that is held goes to RTS. If it does not, it is still held.
 */
int link_start_qp(struct iwarp_link *link, struct conn *c, uint64_t now);
/* Our half ends behind what was sent; the peer's is waited for. */
void link_finish(struct iwarp_link *link, struct conn *c, int result, uint64_t now);
/* Ends it at once. */
void link_give_up(struct iwarp_link *link, struct conn *c, int result);
/* Room for a message in one piece; what is left at the ring's end is passed over. */
uint8_t *link_tx_room(const struct iwarp_link *link, struct conn *c, size_t need, size_t *room);
/* Puts a frame of MPA that rejects; its length, or negative errno. */
int link_put_reject(struct iwarp_link *link, struct conn *c, const void *data, uint16_t data_len);

#endif
