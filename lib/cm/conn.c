/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of connections, and what they have to say. Look-ups other than by our own
 * ID go through the table: they are made for requests to connect only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cm/core.h"

#include "lib/wire/random.h"

const char *cm_drop_name(unsigned drop)
{
	static const char *const names[CM_N_DROPS] = {
#define X(sym, name, text) [CM_DROP_##sym] = name,
		CM_DROPS(X)
#undef X
	};

	return names[drop];
}

const char *cm_drop_text(unsigned drop)
{
	static const char *const texts[CM_N_DROPS] = {
#define X(sym, name, text) [CM_DROP_##sym] = text,
		CM_DROPS(X)
#undef X
	};

	return texts[drop];
}

const char *cm_counter_name(enum cm_counter c)
{
	static const char *const names[CM_N_COUNTERS] = {
#define X(sym, name, text) [CM_C_##sym] = name,
		CM_COUNTERS(X)
#undef X
	};

	return names[c];
}

uint64_t cm_count(const struct cm *cm, enum cm_counter c)
{
	return cm->count[c];
}

uint64_t cm_drop_count(const struct cm *cm, unsigned drop)
{
	return cm->drop[drop];
}

unsigned cm_conns(const struct cm *cm)
{
	return cm->n_used;
}

/* ---- life ---- */

static int fill_defaults(struct cm_config *c)
{
	if (c->max_conn == 0)
		c->max_conn = 1024;
	if (c->response_timeout == 0)
		c->response_timeout = 18;
	if (c->retries == 0)
		c->retries = 15;
	if (c->service_timeout == 0)
		c->service_timeout = 24;
	if (c->time_wait == 0)
		c->time_wait = 18;
	return c->max_conn > 65536 || c->response_timeout > 24 || c->retries > 15 ||
			       c->service_timeout > 24 || c->time_wait > 24 ||
			       c->events.request == NULL || c->events.event == NULL
		       ? -EINVAL
		       : 0;
}

int cm_create(const struct cm_config *config, struct cm **out)
{
	struct cm *cm = calloc(1, sizeof(*cm));
	uint64_t seed = config->seed;
	int ret;

	if (cm == NULL)
		return -ENOMEM;
	cm->config = *config;
	ret = fill_defaults(&cm->config);
	if (ret == 0) {
		cm->conn = calloc(cm->config.max_conn, sizeof(*cm->conn));
		cm->generation = calloc(cm->config.max_conn, sizeof(*cm->generation));
		ret = cm->conn != NULL && cm->generation != NULL ? 0 : -ENOMEM;
	}
	if (ret) {
		cm_destroy(cm);
		return ret;
	}
	TAILQ_INIT(&cm->used);
	TAILQ_INIT(&cm->free);
	TAILQ_INIT(&cm->out);
	while (UINT32_C(1) << cm->slot_bits < cm->config.max_conn)
		cm->slot_bits++;
	for (uint32_t i = 0; i < cm->config.max_conn; i++) {
		cm->generation[i] = (uint32_t)wire_random(&seed);
		TAILQ_INSERT_TAIL(&cm->free, &cm->conn[i], link);
	}
	cm->id_mask = (uint32_t)wire_random(&seed);
	cm->tid_high = (uint32_t)wire_random(&seed);
	cm->deadline = UINT64_MAX;
	*out = cm;
	return 0;
}

void cm_destroy(struct cm *cm)
{
	free(cm->conn);
	free(cm->generation);
	free(cm);
}

/* The ID is the slot and a generation, so that late messages about the slot's last user are told
 * apart; the mask makes IDs differ from those before a restart. 0 means "none" to some. */
struct cm_conn *cm_conn_new(struct cm *cm, const struct cm_path *path, void *user)
{
	struct cm_conn *conn = TAILQ_FIRST(&cm->free);
	uint32_t slot;

	if (conn == NULL)
		return NULL;
	slot = (uint32_t)(conn - cm->conn);
	TAILQ_REMOVE(&cm->free, conn, link);
	TAILQ_INSERT_TAIL(&cm->used, conn, link);
	cm->n_used++;
	memset(&conn->user, 0, sizeof(*conn) - offsetof(struct cm_conn, user));
	conn->cm = cm;
	conn->user = user;
	conn->state = ST_DONE;
	conn->path = *path;
	conn->at = UINT64_MAX;
	do
		conn->local_id = (++cm->generation[slot] << cm->slot_bits | slot) ^ cm->id_mask;
	while (conn->local_id == 0);
	return conn;
}

void cm_conn_free(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;

	if (conn->queued)
		TAILQ_REMOVE(&cm->out, conn, out);
	conn->state = ST_FREE;
	TAILQ_REMOVE(&cm->used, conn, link);
	TAILQ_INSERT_TAIL(&cm->free, conn, link);
	cm->n_used--;
}

struct cm_conn *cm_conn_find(struct cm *cm, uint32_t local_id)
{
	uint32_t slot = (local_id ^ cm->id_mask) & ((UINT32_C(1) << cm->slot_bits) - 1);
	struct cm_conn *conn = &cm->conn[slot];

	if (slot >= cm->config.max_conn || conn->state == ST_FREE || conn->local_id != local_id)
		return NULL;
	return conn;
}

struct cm_conn *cm_conn_find_peer(
	struct cm *cm, const struct wire_ip *peer, uint32_t remote_id, bool sidr)
{
	struct cm_conn *conn;

	TAILQ_FOREACH(conn, &cm->used, link)
	{
		bool of_sidr = conn->state == ST_SIDR_RCVD || conn->state == ST_SIDR_DONE ||
			       conn->state == ST_SIDR_HELD;

		if (conn->passive && conn->state != ST_DONE && of_sidr == sidr &&
			conn->remote_id == remote_id && wire_ip_eq(&conn->path.remote, peer))
			return conn;
	}
	return NULL;
}

struct cm_conn *cm_conn_find_qp(struct cm *cm, const struct wire_ip *peer, uint32_t qpn)
{
	struct cm_conn *conn;

	TAILQ_FOREACH(conn, &cm->used, link)
	{
		bool live = conn->state == ST_REP_RCVD || conn->state == ST_REP_SENT ||
			    conn->state == ST_ESTABLISHED;

		if (live && conn->remote_qpn == qpn && wire_ip_eq(&conn->path.remote, peer))
			return conn;
	}
	return NULL;
}

/* ---- saying ---- */

struct cm_msg cm_conn_msg(const struct cm_conn *conn, unsigned attr)
{
	return (struct cm_msg){.attr = (uint16_t)attr,
		.tid = conn->tid,
		.local_id = conn->local_id,
		.remote_id = conn->remote_id};
}

void cm_conn_repeat(struct cm_conn *conn)
{
	if (conn->queued)
		return;
	conn->queued = true;
	TAILQ_INSERT_TAIL(&conn->cm->out, conn, out);
}

int cm_conn_say(struct cm_conn *conn, struct cm_msg *msg, const void *private_data, size_t len)
{
	int ret;

	if (len > cm_private_len(msg->attr) || (len > 0 && private_data == NULL))
		return -EINVAL;
	if (len > 0)
		memcpy(msg->private_data, private_data, len);
	ret = cm_build(msg, conn->mad);
	if (ret == 0)
		cm_conn_repeat(conn);
	return ret;
}

void cm_answer(struct cm *cm, const struct cm_path *path, struct cm_msg *msg)
{
	struct cm_out *out = &cm->answer[cm->answer_head % N_ANSWERS];

	if (cm->answer_head - cm->answer_tail == N_ANSWERS) {
		cm->count[CM_C_TX_FULL]++;
		return;
	}
	out->path = *path;
	if (cm_build(msg, out->mad) == 0)
		cm->answer_head++;
}

bool cm_has_work(const struct cm *cm)
{
	return cm->answer_head != cm->answer_tail || !TAILQ_EMPTY(&cm->out);
}

bool cm_tx(struct cm *cm, struct cm_out *out)
{
	struct cm_conn *conn = TAILQ_FIRST(&cm->out);

	if (cm->answer_head != cm->answer_tail) {
		*out = cm->answer[cm->answer_tail++ % N_ANSWERS];
	} else if (conn != NULL) {
		TAILQ_REMOVE(&cm->out, conn, out);
		conn->queued = false;
		out->path = conn->path;
		memcpy(out->mad, conn->mad, sizeof(out->mad));
		if (conn->released && conn->state == ST_DONE)
			cm_conn_free(conn);
	} else {
		return false;
	}
	cm->count[CM_C_TX]++;
	return true;
}

void cm_unreachable(struct cm *cm)
{
	cm->count[CM_C_UNREACHABLE]++;
}

/* ---- states and time ---- */

void cm_conn_timer(struct cm_conn *conn, uint64_t at)
{
	conn->at = at;
	if (at < conn->cm->deadline)
		conn->cm->deadline = at;
}

void cm_conn_await(struct cm_conn *conn, enum cm_state state, uint64_t now)
{
	conn->state = (uint8_t)state;
	conn->waits = conn->tries + 1;
	conn->pause_ns = state == ST_REP_SENT ? conn->timeout_ns : conn->timeout_ns >> 4;
	cm_conn_timer(conn, now + conn->pause_ns);
}

void cm_conn_rest(struct cm_conn *conn, enum cm_state state)
{
	conn->state = (uint8_t)state;
	conn->at = UINT64_MAX;
	if (state == ST_DONE && conn->released && !conn->queued)
		cm_conn_free(conn);
}

void cm_conn_linger(struct cm_conn *conn, enum cm_state state, uint64_t now)
{
	conn->state = (uint8_t)state;
	cm_conn_timer(conn, now + code_ns(conn->cm->config.time_wait));
}

void cm_conn_event(
	struct cm_conn *conn, enum cm_event_type type, int status, const struct cm_msg *msg)
{
	const struct cm_event event = {type, status, msg};

	if (!conn->released)
		conn->cm->config.events.event(
			conn->cm->config.events.arg, conn, conn->user, &event);
}

/* ---- messages that more than one place says ---- */

int cm_conn_say_rej(struct cm_conn *conn, enum cm_about about, unsigned reason,
	const void *private_data, size_t len)
{
	struct cm_msg msg = cm_conn_msg(conn, CM_REJ);

	msg.rej.about = (uint8_t)about;
	msg.rej.reason = (uint16_t)reason;
	if (reason == CM_REJ_TIMEOUT && about == CM_ABOUT_REQ) {
		/* The peer knows us by GUID and our ID: its own has not come here. */
		memcpy(msg.rej.info, conn->cm->config.ca_guid, sizeof(conn->cm->config.ca_guid));
		msg.rej.info_len = sizeof(conn->cm->config.ca_guid);
	}
	return cm_conn_say(conn, &msg, private_data, len);
}

int cm_conn_say_dreq(struct cm_conn *conn, uint64_t now)
{
	struct cm_msg msg = cm_conn_msg(conn, CM_DREQ);
	int ret;

	msg.tid = (uint64_t)++conn->cm->tid_high << 32 | conn->local_id;
	msg.dreq_qpn = conn->remote_qpn;
	ret = cm_conn_say(conn, &msg, NULL, 0);
	if (ret)
		return ret;
	conn->timeout_ns = code_ns(conn->cm->config.response_timeout);
	conn->tries = conn->cm->config.retries;
	cm_conn_await(conn, ST_DREQ_SENT, now);
	return 0;
}

int cm_conn_say_drep(struct cm_conn *conn, uint64_t tid, uint64_t now)
{
	struct cm_msg msg = cm_conn_msg(conn, CM_DREP);
	int ret;

	msg.tid = tid;
	ret = cm_conn_say(conn, &msg, NULL, 0);
	if (ret == 0)
		cm_conn_linger(conn, ST_TIMEWAIT, now);
	return ret;
}
