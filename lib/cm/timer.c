/* SPDX-License-Identifier: BSD-3-Clause */
/* What a connection does when nobody answers, or when its time is over. */
#include <errno.h>

#include "lib/cm/core.h"

/* No answer, ever. The peer may be there all the same: what it may still think is put right. */
static void give_up(struct cm_conn *conn, uint64_t now)
{
	bool disconnecting = conn->state == ST_DREQ_SENT, sidr = conn->state == ST_SIDR_SENT;

	conn->cm->count[CM_C_TIMEOUTS]++;
	if (disconnecting) {
		cm_conn_linger(conn, ST_TIMEWAIT, now);
		cm_conn_event(conn, CM_EV_DISCONNECTED, -ETIMEDOUT, NULL);
		return;
	}
	if (!sidr)
		cm_conn_say_rej(conn, conn->state == ST_REQ_SENT ? CM_ABOUT_REQ : CM_ABOUT_REP,
			CM_REJ_TIMEOUT, NULL, 0);
	cm_conn_event(conn, CM_EV_UNREACHABLE, -ETIMEDOUT, NULL);
	cm_conn_rest(conn, ST_DONE);
}

static void expire(struct cm_conn *conn, uint64_t now)
{
	conn->at = UINT64_MAX;
	switch ((enum cm_state)conn->state) {
	case ST_TIMEWAIT:
		cm_conn_event(conn, CM_EV_TIMEWAIT_EXIT, 0, NULL);
		cm_conn_rest(conn, ST_DONE);
		return;
	case ST_REJ_SENT:
	case ST_SIDR_DONE:
		cm_conn_rest(conn, ST_DONE);
		return;
	case ST_REQ_HELD:
	case ST_SIDR_HELD:
		cm_conn_ask_again(conn, now);
		return;
	default:
		break;
	}
	if (conn->tries == 0) {
		give_up(conn, now);
		return;
	}
	conn->tries--;
	conn->cm->count[CM_C_RESENT]++;
	cm_conn_repeat(conn);
	conn->pause_ns =
		2 * conn->pause_ns < conn->timeout_ns ? 2 * conn->pause_ns : conn->timeout_ns;
	cm_conn_timer(conn, now + conn->pause_ns);
}

uint64_t cm_deadline(const struct cm *cm)
{
	return cm->deadline;
}

/* All connections are looked at: timers are a second apart, and few. */
void cm_timer(struct cm *cm, uint64_t now)
{
	struct cm_conn *conn, *next;

	if (now < cm->deadline)
		return;
	cm->deadline = UINT64_MAX;
	for (conn = TAILQ_FIRST(&cm->used); conn != NULL; conn = next) {
		next = TAILQ_NEXT(conn, link);
		if (conn->at <= now)
			expire(conn, now);
		else if (conn->at < cm->deadline)
			cm->deadline = conn->at;
	}
}
