/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user asks for. */
#include <errno.h>
#include <string.h>

#include "lib/cm/core.h"

/* ---- active side ---- */

static int say_first(struct cm_conn *conn, struct cm_msg *msg, const void *private_data, size_t len)
{
	struct cm *cm = conn->cm;
	int ret;

	conn->tid = (uint64_t)++cm->tid_high << 32 | conn->local_id;
	msg->tid = conn->tid;
	msg->local_id = conn->local_id;
	ret = cm_conn_say(conn, msg, private_data, len);
	if (ret) {
		cm_conn_free(conn);
		return ret;
	}
	conn->timeout_ns = code_ns(cm->config.response_timeout);
	conn->tries = cm->config.retries;
	return 0;
}

int cm_connect(struct cm *cm, const struct cm_path *path, const struct cm_req *req,
	const void *private_data, size_t len, void *user, uint64_t now, struct cm_conn **out)
{
	struct cm_conn *conn = cm_conn_new(cm, path, user);
	struct cm_msg msg = {.attr = CM_REQ, .req = *req};
	int ret;

	if (conn == NULL)
		return -ENOSPC;
	conn->local_qpn = req->qpn;
	msg.req.remote_timeout = msg.req.local_timeout = cm->config.response_timeout;
	msg.req.max_retries = cm->config.retries;
	memcpy(msg.req.ca_guid, cm->config.ca_guid, sizeof(msg.req.ca_guid));
	ret = say_first(conn, &msg, private_data, len);
	if (ret)
		return ret;
	cm_conn_await(conn, ST_REQ_SENT, now);
	*out = conn;
	return 0;
}

int cm_sidr_request(struct cm *cm, const struct cm_path *path, uint64_t service_id,
	const void *private_data, size_t len, void *user, uint64_t now, struct cm_conn **out)
{
	struct cm_conn *conn = cm_conn_new(cm, path, user);
	struct cm_msg msg = {.attr = CM_SIDR_REQ, .sidr_req = {0xffff, service_id}};
	int ret;

	if (conn == NULL)
		return -ENOSPC;
	ret = say_first(conn, &msg, private_data, len);
	if (ret)
		return ret;
	cm_conn_await(conn, ST_SIDR_SENT, now);
	*out = conn;
	return 0;
}

int cm_establish(struct cm_conn *conn, const void *private_data, size_t len, uint64_t now)
{
	struct cm_msg msg = cm_conn_msg(conn, CM_RTU);
	int ret;

	(void)now;
	if (conn->state != ST_REP_RCVD)
		return -EINVAL;
	ret = cm_conn_say(conn, &msg, private_data, len);
	if (ret == 0)
		cm_conn_rest(conn, ST_ESTABLISHED);
	return ret;
}

/* ---- passive side ---- */

int cm_accept(struct cm_conn *conn, const struct cm_rep *rep, const void *private_data, size_t len,
	uint64_t now)
{
	struct cm_msg msg = cm_conn_msg(conn, CM_REP);
	int ret;

	if (conn->state != ST_REQ_RCVD)
		return -EINVAL;
	msg.rep = *rep;
	memcpy(msg.rep.ca_guid, conn->cm->config.ca_guid, sizeof(msg.rep.ca_guid));
	ret = cm_conn_say(conn, &msg, private_data, len);
	if (ret)
		return ret;
	conn->local_qpn = rep->qpn;
	cm_conn_await(conn, ST_REP_SENT, now);
	return 0;
}

int cm_established(struct cm_conn *conn, uint64_t now)
{
	(void)now;
	if (conn->state == ST_ESTABLISHED)
		return 0;
	if (conn->state != ST_REP_SENT)
		return -EINVAL;
	cm_conn_rest(conn, ST_ESTABLISHED);
	cm_conn_event(conn, CM_EV_ESTABLISHED, 0, NULL);
	return 0;
}

int cm_sidr_reply(struct cm_conn *conn, const struct cm_sidr_rep *rep, const void *private_data,
	size_t len, uint64_t now)
{
	struct cm_msg msg = cm_conn_msg(conn, CM_SIDR_REP);
	int ret;

	if (conn->state != ST_SIDR_RCVD)
		return -EINVAL;
	msg.local_id = conn->remote_id; /* the number is the request's */
	msg.sidr_rep = *rep;
	ret = cm_conn_say(conn, &msg, private_data, len);
	if (ret == 0)
		cm_conn_linger(conn, ST_SIDR_DONE, now);
	return ret;
}

/* ---- both ---- */

int cm_reject(
	struct cm_conn *conn, unsigned reason, const void *private_data, size_t len, uint64_t now)
{
	const struct cm_sidr_rep no = {.status = CM_SIDR_REJECTED};
	int ret;

	switch ((enum cm_state)conn->state) {
	case ST_REQ_RCVD:
		ret = cm_conn_say_rej(conn, CM_ABOUT_REQ, reason, private_data, len);
		if (ret == 0)
			cm_conn_linger(conn, ST_REJ_SENT, now);
		return ret;
	case ST_REP_RCVD:
		ret = cm_conn_say_rej(conn, CM_ABOUT_REP, reason, private_data, len);
		if (ret == 0)
			cm_conn_rest(conn, ST_DONE);
		return ret;
	case ST_SIDR_RCVD:
		return cm_sidr_reply(conn, &no, private_data, len, now);
	default:
		return -EINVAL;
	}
}

int cm_disconnect(struct cm_conn *conn, uint64_t now)
{
	switch ((enum cm_state)conn->state) {
	case ST_ESTABLISHED:
	case ST_REP_SENT:
		return cm_conn_say_dreq(conn, now);
	case ST_DREQ_RCVD:
		return cm_conn_say_drep(conn, conn->tid, now);
	case ST_DREQ_SENT:
	case ST_TIMEWAIT:
	case ST_DONE:
		return 0;
	default:
		return -EINVAL;
	}
}

void cm_release(struct cm_conn *conn, uint64_t now)
{
	conn->released = true;
	switch ((enum cm_state)conn->state) {
	case ST_REQ_SENT:
		cm_conn_say_rej(conn, CM_ABOUT_REQ, CM_REJ_TIMEOUT, NULL, 0);
		cm_conn_rest(conn, ST_DONE);
		break;
	case ST_REP_SENT: /* what we have said of ourselves does not hold any more */
		cm_conn_say_rej(conn, CM_ABOUT_REQ, CM_REJ_CONSUMER, NULL, 0);
		cm_conn_linger(conn, ST_REJ_SENT, now);
		break;
	case ST_REQ_RCVD:
	case ST_REP_RCVD:
	case ST_SIDR_RCVD:
		cm_reject(conn, CM_REJ_CONSUMER, NULL, 0, now);
		break;
	case ST_ESTABLISHED:
	case ST_DREQ_RCVD:
		cm_disconnect(conn, now);
		break;
	case ST_SIDR_SENT:
	case ST_DONE:
		cm_conn_rest(conn, ST_DONE);
		break;
	default: /* it ends by itself */
		break;
	}
}

unsigned cm_unheard(const struct cm *cm)
{
	const struct cm_conn *conn;
	unsigned n = 0;

	TAILQ_FOREACH(conn, &cm->used, link)
	n += conn->state == ST_DREQ_SENT;
	return n;
}

void cm_shutdown(struct cm *cm, uint64_t now)
{
	struct cm_conn *conn, *next;

	cm->shut = true;
	for (conn = TAILQ_FIRST(&cm->used); conn != NULL; conn = next) {
		next = TAILQ_NEXT(conn, link);
		if (!conn->released)
			cm_release(conn, now);
	}
}
