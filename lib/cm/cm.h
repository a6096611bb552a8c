/* SPDX-License-Identifier: BSD-3-Clause */
/* The communication manager of one port, without I/O: it sets up and takes down connections (IBTA
 * vol. 1, chapter 12) and resolves services to datagram queue pairs (SIDR, 12.11). Management
 * datagrams, requests and the time go in; datagrams, events and the next deadline come out. What
 * the datagrams look like is lib/wire/cm.h; what becomes of queue pairs is the caller's.
 *
 * Everything is allocated by cm_create. One thread at a time. Time is nanoseconds of any monotonic
 * clock. Errors are negative errno; a call that fails has changed nothing. */
#ifndef CM_CM_H
#define CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/cm.h"

struct cm;
struct cm_conn;

/* Between which addresses the datagrams of a connection go. */
struct cm_path {
	struct wire_ip local, remote;
	uint8_t tos; /* of what is sent */
};

/* Why a received datagram had no effect: X(symbol, name, meaning). */
#define CM_DROPS(X)                                                                            \
	X(LENGTH, "cm_length", "management datagram of another length than 256 bytes")         \
	X(HEADER, "cm_header", "management datagram of another class, version or method")      \
	X(MESSAGE, "cm_message", "unknown CM message, or a field in it is out of range")       \
	X(MIGRATION, "cm_migration", "LAP or APR: path migration is not offered")              \
	X(SOURCE, "cm_source", "CM message not from the address of the connection's peer")     \
	X(UNKNOWN, "cm_unknown", "CM message about a connection that does not exist")          \
	X(STATE, "cm_state", "CM message that the connection's state does not take")           \
	X(DUPLICATE, "cm_duplicate", "CM message seen before: answered again if it needs one") \
	X(REFUSED, "cm_refused", "REQ or SIDR REQ that nobody listens for, or not offered")    \
	X(STALE, "cm_stale", "REQ of a QP that is connected as far as known here: rejected")   \
	X(BACKLOG, "cm_backlog", "REQ that nobody has room for just now: it comes again")      \
	X(FULL, "cm_full", "REQ or SIDR REQ that finds the table of connections full")

enum cm_drop {
	CM_DROP_NONE,
#define X(sym, name, text) CM_DROP_##sym,
	CM_DROPS(X)
#undef X
		CM_N_DROPS
};
const char *cm_drop_name(unsigned drop); /* 1 .. CM_N_DROPS-1 */
const char *cm_drop_text(unsigned drop);

/* rx = accepted + the sum of drops. X(symbol, name, meaning) */
#define CM_COUNTERS(X)                                                                   \
	X(RX, "cm_rx", "management datagrams received")                                  \
	X(ACCEPTED, "cm_accepted", "management datagrams that took effect")              \
	X(TX, "cm_tx", "management datagrams sent")                                      \
	X(RESENT, "cm_resent", "of these, sent again because no answer came")            \
	X(TIMEOUTS, "cm_timeouts", "connections given up because no answer came")        \
	X(HELD, "cm_held", "requests that waited for somebody who listens")              \
	X(HELD_REFUSED, "cm_held_refused", "of these, refused: nobody came")             \
	X(TX_FULL, "cm_tx_full", "answers about unknown connections that found no room") \
	X(UNREACHABLE, "cm_unreachable", "datagrams whose destination has no known MAC")

enum cm_counter {
#define X(sym, name, text) CM_C_##sym,
	CM_COUNTERS(X)
#undef X
		CM_N_COUNTERS
};
const char *cm_counter_name(enum cm_counter c);

enum cm_event_type {
	CM_EV_REP,           /* the peer accepted (msg: REP); cm_establish or cm_reject is next */
	CM_EV_ESTABLISHED,   /* passive side: RTU, or cm_established */
	CM_EV_REJECTED,      /* msg: REJ */
	CM_EV_UNREACHABLE,   /* no answer to REQ, REP or SIDR REQ */
	CM_EV_DISCONNECTED,  /* DREQ (cm_disconnect answers it), DREP, or no answer to DREQ */
	CM_EV_TIMEWAIT_EXIT, /* late packets of the connection are gone */
	CM_EV_SIDR_REP,      /* msg: SIDR REP */
};

struct cm_event {
	enum cm_event_type type;
	int status; /* 0, or -ETIMEDOUT: no answer; -ECONNRESET: the peer began anew */
	const struct cm_msg *msg; /* or NULL; for the duration of the call */
};

/* A request that is to be treated as if it had been lost. */
enum { CM_IGNORE = 0x10000 };
/* Nobody listens yet: the request is shown again every few milliseconds, for a quarter of a second,
 * and then refused as for a service that does not exist. Programs connect to each other's next
 * listener as soon as they have told each other of it. */
enum { CM_LATER = 0x10001 };

/* Called from inside cm_rx, cm_timer and cm_established; must not call back. */
struct cm_events {
	void *arg;
	/* A REQ or SIDR REQ. 0: it is taken, and cm_accept, cm_sidr_reply or cm_reject follows;
	 * user is then passed with the connection's events. Else the reason to reject it with (enum
	 * cm_rej_reason; the same word for a SIDR REQ), CM_IGNORE or CM_LATER. */
	unsigned (*request)(void *arg, struct cm_conn *conn, const struct cm_path *path,
		const struct cm_msg *msg, void **user);
	/* Not for connections that were released. */
	void (*event)(void *arg, struct cm_conn *conn, void *user, const struct cm_event *event);
};

struct cm_config {
	uint32_t max_conn;        /* connections, with those in time-wait; 1..65536, default 1024 */
	uint8_t response_timeout; /* 4.096 us << n for an answer, 1..24; default 18: 1.07 s */
	uint8_t retries;          /* how often a message is sent again, 1..15; default 15 */
	uint8_t service_timeout;  /* what an MRA asks for, 1..24; default 24: 69 s */
	uint8_t time_wait;        /* 1..24; default 18 */
	uint8_t ca_guid[8];
	uint64_t seed; /* for communication and transaction IDs */
	struct cm_events events;
};

/* -EINVAL: a field out of range; -ENOMEM. */
int cm_create(const struct cm_config *config, struct cm **cm);
void cm_destroy(struct cm *cm);

uint64_t cm_count(const struct cm *cm, enum cm_counter c);
uint64_t cm_drop_count(const struct cm *cm, unsigned drop);
unsigned cm_conns(const struct cm *cm); /* in the table */

/* ---- the wire ---- */

/* The payload of a datagram that came to QP 1 from another's QP 1: path->local is its destination.
 * 0, or enum cm_drop (which is counted). */
unsigned cm_rx(
	struct cm *cm, const struct cm_path *path, const uint8_t *mad, size_t len, uint64_t now);

/* The next datagram to send; false if there is none. At most one per connection waits. */
struct cm_out {
	struct cm_path path;
	uint8_t mad[CM_MAD_LEN];
};
bool cm_tx(struct cm *cm, struct cm_out *out);
bool cm_has_work(const struct cm *cm);
/* What cm_tx gave has no way to its destination: counted; timers bring it again if it matters. */
void cm_unreachable(struct cm *cm);

/* When to call cm_timer; UINT64_MAX: never. It may be early. */
uint64_t cm_deadline(const struct cm *cm);
void cm_timer(struct cm *cm, uint64_t now);

/* ---- connections ---- */

/* Sends a REQ, and again until REP, REJ, or CM_EV_UNREACHABLE. req: as it goes, but for the CM
 * timeouts, max_retries and GUID, which are the core's to fill. -EINVAL: a field, or more than
 * CM_REQ_PRIVATE bytes of private data; -ENOSPC: the table is full. */
int cm_connect(struct cm *cm, const struct cm_path *path, const struct cm_req *req,
	const void *private_data, size_t len, void *user, uint64_t now, struct cm_conn **conn);
/* A REP; CM_EV_ESTABLISHED, _REJECTED or _UNREACHABLE follows. -EINVAL: no REQ was received that
 * waits for an answer, fields, private data. */
int cm_accept(struct cm_conn *conn, const struct cm_rep *rep, const void *private_data, size_t len,
	uint64_t now);
/* After CM_EV_REP: an RTU. */
int cm_establish(struct cm_conn *conn, const void *private_data, size_t len, uint64_t now);
/* Passive side: something came over the connection, so the RTU is as good as here; gives
 * CM_EV_ESTABLISHED if there was none. -EINVAL: not in that state, nor established. */
int cm_established(struct cm_conn *conn, uint64_t now);
/* A REJ of the REQ or the REP that waits for an answer, or a SIDR REP with CM_SIDR_REJECTED. No
 * event follows. */
int cm_reject(
	struct cm_conn *conn, unsigned reason, const void *private_data, size_t len, uint64_t now);
/* A DREQ; or the DREP that the peer's waits for; nothing if both are done. -EINVAL: the connection
 * was never there. */
int cm_disconnect(struct cm_conn *conn, uint64_t now);

/* Asks for the datagram QP of a service: CM_EV_SIDR_REP or CM_EV_UNREACHABLE follows. */
int cm_sidr_request(struct cm *cm, const struct cm_path *path, uint64_t service_id,
	const void *private_data, size_t len, void *user, uint64_t now, struct cm_conn **conn);
/* The answer; service_id is the request's. */
int cm_sidr_reply(struct cm_conn *conn, const struct cm_sidr_rep *rep, const void *private_data,
	size_t len, uint64_t now);

/* The user has no more interest: conn is not his any more, no event follows. What the peer should
 * know it is told: REJ, DREQ (sent again until the DREP comes) or DREP. */
void cm_release(struct cm_conn *conn, uint64_t now);
/* All of them: before the end. Takes no requests from now on. */
void cm_shutdown(struct cm *cm, uint64_t now);
/* How many peers have been sent a DREQ and have not answered it. */
unsigned cm_unheard(const struct cm *cm);

#endif
