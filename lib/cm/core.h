/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/cm only. */
#ifndef CM_CORE_H
#define CM_CORE_H

#include <sys/queue.h>

#include "lib/cm/cm.h"

/* 12.9.7, 12.9.8: the states of both sides, and those of SIDR. */
enum cm_state {
	ST_FREE,
	ST_DONE, /* nothing is expected from the peer, nor will be said, after what is queued */
	ST_REQ_SENT,
	ST_REP_RCVD,
	ST_REQ_RCVD,
	ST_REP_SENT,
	ST_REJ_SENT, /* of a REQ: said again if that comes again */
	ST_ESTABLISHED,
	ST_DREQ_SENT,
	ST_DREQ_RCVD,
	ST_TIMEWAIT,
	ST_SIDR_SENT,
	ST_SIDR_RCVD,
	ST_SIDR_DONE, /* answered: said again if the request comes again */
	ST_REQ_HELD,  /* nobody listens yet; the request is in mad */
	ST_SIDR_HELD,
};

struct cm_conn {
	struct cm *cm;
	TAILQ_ENTRY(cm_conn) link; /* of those in use, or of the free ones */
	TAILQ_ENTRY(cm_conn) out;
	void *user;
	uint8_t state; /* enum cm_state */
	bool passive;
	bool released;
	bool queued; /* mad is to be sent */
	uint32_t local_id, remote_id;
	uint32_t local_qpn, remote_qpn;
	uint64_t tid;
	struct cm_path path;
	uint64_t at;             /* timer; UINT64_MAX: not running */
	uint64_t timeout_ns;     /* until mad is sent again, at most */
	uint64_t pause_ns;       /* the same, this time */
	uint64_t since;          /* a request: when it came */
	unsigned tries;          /* left */
	unsigned waits;          /* MRAs of the peer that are still believed */
	uint8_t mad[CM_MAD_LEN]; /* what was said last */
};

TAILQ_HEAD(conn_list, cm_conn);

enum { N_ANSWERS = 16 }; /* about connections that do not exist */

struct cm {
	struct cm_config config;
	struct cm_conn *conn; /* config.max_conn of them */
	struct conn_list used, free, out;
	uint32_t n_used, slot_bits;
	uint32_t n_held;      /* connections in ST_REQ_HELD and ST_SIDR_HELD */
	uint32_t *generation; /* per slot */
	uint32_t id_mask;
	uint32_t tid_high;
	uint64_t deadline; /* not later than any timer */
	bool shut;
	struct cm_out answer[N_ANSWERS];
	uint32_t answer_head, answer_tail;
	uint64_t count[CM_N_COUNTERS];
	uint64_t drop[CM_N_DROPS];
};

static inline uint64_t code_ns(unsigned code)
{
	return UINT64_C(4096) << code;
}

/* ---- conn.c ---- */

struct cm_conn *cm_conn_new(struct cm *cm, const struct cm_path *path, void *user);
void cm_conn_free(struct cm_conn *conn);
/* By the ID that was given out for it. */
struct cm_conn *cm_conn_find(struct cm *cm, uint32_t local_id);
/* A passive one by what its peer calls it; sidr: by the number of the request. */
struct cm_conn *cm_conn_find_peer(
	struct cm *cm, const struct wire_ip *peer, uint32_t remote_id, bool sidr);
/* One that is connected to that QP, or nearly. */
struct cm_conn *cm_conn_find_qp(struct cm *cm, const struct wire_ip *peer, uint32_t qpn);

/* A message of this connection: local and remote ID and tid are set. */
struct cm_msg cm_conn_msg(const struct cm_conn *conn, unsigned attr);
/* Fills in private data (-EINVAL: too much), builds it into conn->mad (-EINVAL) and queues it. */
int cm_conn_say(struct cm_conn *conn, struct cm_msg *msg, const void *private_data, size_t len);
/* What was said last, once more. */
void cm_conn_repeat(struct cm_conn *conn);
/* An answer that no connection is there to remember; msg has its IDs. */
void cm_answer(struct cm *cm, const struct cm_path *path, struct cm_msg *msg);

void cm_conn_timer(struct cm_conn *conn, uint64_t at);
/* Until the peer answers what was said: timeout and retries. What the peer's manager answers by
 * itself is first asked for again after a sixteenth of the timeout, then ever more rarely; a REP
 * waits for the peer's user. */
void cm_conn_await(struct cm_conn *conn, enum cm_state state, uint64_t now);
/* A state in which nothing is awaited; of a released connection ST_DONE is the end. */
void cm_conn_rest(struct cm_conn *conn, enum cm_state state);
/* For a while, in case the peer did not hear what was said. */
void cm_conn_linger(struct cm_conn *conn, enum cm_state state, uint64_t now);
void cm_conn_event(
	struct cm_conn *conn, enum cm_event_type type, int status, const struct cm_msg *msg);

int cm_conn_say_rej(struct cm_conn *conn, enum cm_about about, unsigned reason,
	const void *private_data, size_t len);
int cm_conn_say_dreq(struct cm_conn *conn, uint64_t now);
int cm_conn_say_drep(struct cm_conn *conn, uint64_t tid, uint64_t now);

/* ---- rx.c ---- */

/* The request of a held connection is shown to the user once more. */
void cm_conn_ask_again(struct cm_conn *conn, uint64_t now);

#endif
