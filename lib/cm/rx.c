/* SPDX-License-Identifier: BSD-3-Clause */
/* What the peer says. A message may be lost, come twice, or come late: every state knows what it
 * has said last, and says it again to a peer that asks again. */
#include <errno.h>
#include <string.h>

#include "lib/cm/core.h"

enum {
	HOLD_NS = 250000000, /* a request, for somebody who listens */
	HOLD_STEP_NS = 5000000,
	N_HELD = 16,
};

enum { MAX_TIMEOUT_CODE = 24, MIN_TIMEOUT_CODE = 12 };

static unsigned clamp(unsigned code)
{
	return code > MAX_TIMEOUT_CODE   ? MAX_TIMEOUT_CODE
	       : code < MIN_TIMEOUT_CODE ? MIN_TIMEOUT_CODE
					 : code;
}

/* ---- requests ---- */

/* Says no, and keeps nothing. */
static unsigned refuse(struct cm *cm, const struct cm_path *path, const struct cm_msg *msg,
	unsigned reason, unsigned drop)
{
	struct cm_msg no = {.attr = CM_REJ, .tid = msg->tid, .remote_id = msg->local_id};

	if (msg->attr == CM_SIDR_REQ) {
		no.attr = CM_SIDR_REP;
		no.local_id = msg->local_id;
		no.sidr_rep.status = CM_SIDR_NO_SERVICE;
		no.sidr_rep.service_id = msg->sidr_req.service_id;
	} else {
		no.rej.about = CM_ABOUT_REQ;
		no.rej.reason = (uint16_t)reason;
	}
	cm_answer(cm, path, &no);
	return drop;
}

static unsigned duplicate_req(struct cm_conn *conn, uint64_t now)
{
	struct cm_msg wait;

	switch ((enum cm_state)conn->state) {
	case ST_REQ_RCVD: /* the user takes his time */
		if (now - conn->since < code_ns(conn->cm->config.response_timeout))
			break;
		wait = cm_conn_msg(conn, CM_MRA);
		wait.mra.about = CM_ABOUT_REQ;
		wait.mra.service_timeout = conn->cm->config.service_timeout;
		cm_conn_say(conn, &wait, NULL, 0);
		break;
	case ST_REP_SENT:
	case ST_REJ_SENT:
	case ST_SIDR_DONE:
		cm_conn_repeat(conn);
		break;
	default:
		break;
	}
	return CM_DROP_DUPLICATE;
}

/* The peer has begun anew without an end of what we think is there (12.9.8.3.1). */
static unsigned stale(struct cm *cm, struct cm_conn *old, const struct cm_path *path,
	const struct cm_msg *msg, uint64_t now)
{
	if (old->state == ST_ESTABLISHED) {
		cm_conn_say_dreq(old, now);
	} else {
		cm_conn_say_rej(old, old->passive ? CM_ABOUT_REQ : CM_ABOUT_REP, CM_REJ_STALE_CONN,
			NULL, 0);
		cm_conn_event(old, CM_EV_UNREACHABLE, -ECONNRESET, NULL);
		cm_conn_rest(old, ST_DONE);
	}
	return refuse(cm, path, msg, CM_REJ_STALE_CONN, CM_DROP_STALE);
}

/* Nobody listens: perhaps in a moment. */
static bool hold(struct cm_conn *conn, const struct cm_msg *msg, uint64_t now)
{
	struct cm *cm = conn->cm;

	if (cm->n_held == N_HELD || cm_build(msg, conn->mad) != 0)
		return false;
	cm->n_held++;
	cm->count[CM_C_HELD]++;
	conn->state = msg->attr == CM_SIDR_REQ ? ST_SIDR_HELD : ST_REQ_HELD;
	cm_conn_timer(conn, now + HOLD_STEP_NS);
	return true;
}

void cm_conn_ask_again(struct cm_conn *conn, uint64_t now)
{
	struct cm *cm = conn->cm;
	const struct cm_path path = conn->path;
	struct cm_msg msg;
	unsigned reason = CM_LATER;

	if (cm_parse(conn->mad, CM_MAD_LEN, &msg) == 0 && !cm->shut)
		reason = cm->config.events.request(
			cm->config.events.arg, conn, &path, &msg, &conn->user);
	if (reason == CM_LATER && !cm->shut && now - conn->since < HOLD_NS) {
		cm_conn_timer(conn, now + HOLD_STEP_NS);
		return;
	}
	cm->n_held--;
	if (reason == 0) {
		conn->state = conn->state == ST_SIDR_HELD ? ST_SIDR_RCVD : ST_REQ_RCVD;
		return;
	}
	cm_conn_free(conn);
	cm->count[CM_C_HELD_REFUSED]++;
	if (reason != CM_IGNORE)
		refuse(cm, &path, &msg, reason == CM_LATER ? CM_REJ_INVALID_SERVICE_ID : reason,
			CM_DROP_REFUSED);
}

static unsigned ask_user(struct cm_conn *conn, const struct cm_msg *msg, uint64_t now)
{
	struct cm *cm = conn->cm;
	const struct cm_path path = conn->path;
	unsigned reason =
		cm->config.events.request(cm->config.events.arg, conn, &path, msg, &conn->user);

	if (reason == 0 || (reason == CM_LATER && hold(conn, msg, now)))
		return 0;
	if (reason == CM_LATER)
		reason = CM_REJ_INVALID_SERVICE_ID;
	cm_conn_free(conn);
	return reason == CM_IGNORE ? CM_DROP_BACKLOG
				   : refuse(cm, &path, msg, reason, CM_DROP_REFUSED);
}

static unsigned rx_request(
	struct cm *cm, const struct cm_path *path, const struct cm_msg *msg, uint64_t now)
{
	const bool sidr = msg->attr == CM_SIDR_REQ;
	struct cm_conn *conn = cm_conn_find_peer(cm, &path->remote, msg->local_id, sidr);

	if (conn != NULL)
		return duplicate_req(conn, now);
	if (cm->shut)
		return refuse(cm, path, msg, CM_REJ_INVALID_SERVICE_ID, CM_DROP_REFUSED);
	if (!sidr && msg->req.transport != CM_RC && msg->req.transport != CM_UC)
		return refuse(cm, path, msg, CM_REJ_INVALID_TRANSPORT, CM_DROP_REFUSED);
	if (!sidr) {
		conn = cm_conn_find_qp(cm, &path->remote, msg->req.qpn);
		if (conn != NULL)
			return stale(cm, conn, path, msg, now);
	}
	conn = cm_conn_new(cm, path, NULL);
	if (conn == NULL)
		return CM_DROP_FULL;
	conn->passive = true;
	conn->remote_id = msg->local_id;
	conn->tid = msg->tid;
	conn->since = now;
	conn->state = sidr ? ST_SIDR_RCVD : ST_REQ_RCVD;
	if (!sidr) {
		unsigned code = clamp(msg->req.local_timeout);

		conn->remote_qpn = msg->req.qpn;
		if (code > cm->config.response_timeout)
			code = cm->config.response_timeout;
		conn->timeout_ns = code_ns(code);
		conn->tries = msg->req.max_retries;
	}
	return ask_user(conn, msg, now);
}

/* ---- answers to REQ and REP ---- */

static unsigned rx_rep(struct cm_conn *conn, const struct cm_msg *msg)
{
	struct cm_msg wait;

	switch ((enum cm_state)conn->state) {
	case ST_REQ_SENT:
		conn->remote_id = msg->local_id;
		conn->remote_qpn = msg->rep.qpn;
		cm_conn_rest(conn, ST_REP_RCVD);
		cm_conn_event(conn, CM_EV_REP, 0, msg);
		return 0;
	case ST_REP_RCVD:
		wait = cm_conn_msg(conn, CM_MRA);
		wait.mra.about = CM_ABOUT_REP;
		wait.mra.service_timeout = conn->cm->config.service_timeout;
		cm_conn_say(conn, &wait, NULL, 0);
		return CM_DROP_DUPLICATE;
	case ST_ESTABLISHED: /* the RTU was lost */
	case ST_DREQ_SENT:
		if (!conn->passive)
			cm_conn_repeat(conn);
		return CM_DROP_DUPLICATE;
	default:
		return CM_DROP_STATE;
	}
}

static unsigned rx_rtu(struct cm_conn *conn, const struct cm_msg *msg)
{
	if (conn->state == ST_ESTABLISHED)
		return CM_DROP_DUPLICATE;
	if (conn->state != ST_REP_SENT)
		return CM_DROP_STATE;
	cm_conn_rest(conn, ST_ESTABLISHED);
	cm_conn_event(conn, CM_EV_ESTABLISHED, 0, msg);
	return 0;
}

static unsigned rx_rej(struct cm_conn *conn, const struct cm_msg *msg, uint64_t now)
{
	switch ((enum cm_state)conn->state) {
	case ST_REQ_SENT:
	case ST_REP_RCVD:
	case ST_REQ_RCVD:
	case ST_REP_SENT:
		cm_conn_event(conn, CM_EV_REJECTED, 0, msg);
		cm_conn_rest(conn, ST_DONE);
		return 0;
	case ST_ESTABLISHED: /* the peer did not take our RTU, or forgot us */
		cm_conn_linger(conn, ST_TIMEWAIT, now);
		cm_conn_event(conn, CM_EV_DISCONNECTED, -ECONNRESET, NULL);
		return 0;
	case ST_DREQ_SENT:
		cm_conn_linger(conn, ST_TIMEWAIT, now);
		cm_conn_event(conn, CM_EV_DISCONNECTED, 0, NULL);
		return 0;
	default:
		return CM_DROP_STATE;
	}
}

/* The peer needs longer; as often as it may be asked at all. */
static unsigned rx_mra(struct cm_conn *conn, const struct cm_msg *msg, uint64_t now)
{
	const unsigned about = msg->mra.about;

	if ((conn->state != ST_REQ_SENT || about != CM_ABOUT_REQ) &&
		(conn->state != ST_REP_SENT || about != CM_ABOUT_REP))
		return CM_DROP_STATE;
	if (conn->waits == 0)
		return CM_DROP_DUPLICATE;
	conn->waits--;
	cm_conn_timer(conn, now + code_ns(clamp(msg->mra.service_timeout)) + conn->timeout_ns);
	return 0;
}

/* ---- the end ---- */

static unsigned rx_dreq(struct cm_conn *conn, const struct cm_msg *msg, uint64_t now)
{
	switch ((enum cm_state)conn->state) {
	case ST_REP_SENT: /* its RTU was lost */
	case ST_ESTABLISHED:
		conn->tid = msg->tid;
		cm_conn_rest(conn, ST_DREQ_RCVD);
		cm_conn_event(conn, CM_EV_DISCONNECTED, 0, msg);
		return 0;
	case ST_DREQ_SENT: /* both at once */
		cm_conn_say_drep(conn, msg->tid, now);
		cm_conn_event(conn, CM_EV_DISCONNECTED, 0, msg);
		return 0;
	case ST_TIMEWAIT:
		cm_conn_say_drep(conn, msg->tid, now);
		return CM_DROP_DUPLICATE;
	case ST_DREQ_RCVD:
		return CM_DROP_DUPLICATE;
	default:
		return CM_DROP_STATE;
	}
}

static unsigned rx_drep(struct cm_conn *conn, const struct cm_msg *msg, uint64_t now)
{
	if (conn->state != ST_DREQ_SENT)
		return conn->state == ST_TIMEWAIT ? CM_DROP_DUPLICATE : CM_DROP_STATE;
	cm_conn_linger(conn, ST_TIMEWAIT, now);
	cm_conn_event(conn, CM_EV_DISCONNECTED, 0, msg);
	return 0;
}

static unsigned rx_sidr_rep(struct cm_conn *conn, const struct cm_msg *msg)
{
	if (conn->state != ST_SIDR_SENT)
		return CM_DROP_STATE;
	cm_conn_event(conn, CM_EV_SIDR_REP, 0, msg);
	cm_conn_rest(conn, ST_DONE);
	return 0;
}

/* ---- which connection ---- */

/* Nothing is known of it here: the peer is told so, that it does not wait. */
static unsigned rx_unknown(struct cm *cm, const struct cm_path *path, const struct cm_msg *msg)
{
	struct cm_msg out = {
		.tid = msg->tid, .local_id = msg->remote_id, .remote_id = msg->local_id};

	if (msg->attr == CM_DREQ) {
		out.attr = CM_DREP;
		cm_answer(cm, path, &out);
	} else if (msg->attr == CM_REP) {
		out.attr = CM_REJ;
		out.rej.about = CM_ABOUT_REP;
		out.rej.reason = CM_REJ_INVALID_COMM_ID;
		cm_answer(cm, path, &out);
	}
	return CM_DROP_UNKNOWN;
}

static struct cm_conn *find(struct cm *cm, const struct cm_path *path, const struct cm_msg *msg)
{
	/* One who gave up waiting for a REP does not know our ID. */
	if (msg->attr == CM_REJ && msg->rej.reason == CM_REJ_TIMEOUT && msg->remote_id == 0)
		return cm_conn_find_peer(cm, &path->remote, msg->local_id, false);
	return cm_conn_find(cm, msg->attr == CM_SIDR_REP ? msg->local_id : msg->remote_id);
}

static bool from_peer(
	const struct cm_conn *conn, const struct cm_path *path, const struct cm_msg *msg)
{
	bool sidr = conn->state == ST_SIDR_SENT || conn->state == ST_SIDR_RCVD ||
		    conn->state == ST_SIDR_DONE || conn->state == ST_SIDR_HELD;

	if (!wire_ip_eq(&conn->path.remote, &path->remote))
		return false;
	if (sidr || msg->attr == CM_SIDR_REP)
		return sidr && msg->attr == CM_SIDR_REP;
	return conn->remote_id == 0 || conn->remote_id == msg->local_id ||
	       (msg->attr == CM_REJ && msg->local_id == 0);
}

static unsigned dispatch(
	struct cm *cm, const struct cm_path *path, const struct cm_msg *msg, uint64_t now)
{
	struct cm_conn *conn;

	if (msg->attr == CM_REQ || msg->attr == CM_SIDR_REQ)
		return rx_request(cm, path, msg, now);
	conn = find(cm, path, msg);
	if (conn == NULL || conn->state == ST_DONE)
		return rx_unknown(cm, path, msg);
	if (!from_peer(conn, path, msg))
		return CM_DROP_SOURCE;
	switch ((enum cm_attr)msg->attr) {
	case CM_REP:
		return rx_rep(conn, msg);
	case CM_RTU:
		return rx_rtu(conn, msg);
	case CM_REJ:
		return rx_rej(conn, msg, now);
	case CM_MRA:
		return rx_mra(conn, msg, now);
	case CM_DREQ:
		return rx_dreq(conn, msg, now);
	case CM_DREP:
		return rx_drep(conn, msg, now);
	case CM_SIDR_REP:
		return rx_sidr_rep(conn, msg);
	default:
		return CM_DROP_MESSAGE;
	}
}

static unsigned rx(
	struct cm *cm, const struct cm_path *path, const uint8_t *mad, size_t len, uint64_t now)
{
	struct cm_msg msg;

	switch (cm_parse(mad, len, &msg)) {
	case 0:
		return dispatch(cm, path, &msg, now);
	case -EMSGSIZE:
		return CM_DROP_LENGTH;
	case -EPROTO:
		return CM_DROP_HEADER;
	case -EOPNOTSUPP:
		return CM_DROP_MIGRATION;
	default:
		return CM_DROP_MESSAGE;
	}
}

unsigned cm_rx(
	struct cm *cm, const struct cm_path *path, const uint8_t *mad, size_t len, uint64_t now)
{
	unsigned drop = rx(cm, path, mad, len, now);

	cm->count[CM_C_RX]++;
	if (drop == 0)
		cm->count[CM_C_ACCEPTED]++;
	else
		cm->drop[drop]++;
	return drop;
}
