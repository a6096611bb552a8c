/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections as the program asks for them, and what it is told. */
#include "lib/iwarp/link_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *iwarp_link_counter_name(enum iwarp_link_counter counter)
{
	static const char *const names[IWARP_LINK_N_COUNTERS] = {
#define X(sym, name, text) [IWARP_LINK_##sym] = name,
		IWARP_LINK_COUNTERS(X)
#undef X
	};

	return counter < IWARP_LINK_N_COUNTERS ? names[counter] : "unknown";
}

uint64_t iwarp_link_count(const struct iwarp_link *link, enum iwarp_link_counter counter)
{
	return link->count[counter];
}

static bool ring_size_ok(uint32_t bytes)
{
	return bytes >= MIN_RING && (bytes & (bytes - 1)) == 0;
}

int iwarp_link_create(const struct iwarp_link_config *config, struct iwarp_link **out)
{
	/* Headers without options: only segments that acknowledge have some. */
	const size_t headers = 40 + TCP_HDR_LEN;
	const size_t each = (size_t)config->rx_bytes + config->tx_bytes;
	struct iwarp_link *link;

	if (config->stream == NULL || config->max_conns == 0 || config->timeout == 0 ||
		!ring_size_ok(config->rx_bytes) || !ring_size_ok(config->tx_bytes) ||
		config->mtu < 576 || config->mtu > config->tx_bytes)
		return -EINVAL;
	link = calloc(1, sizeof(*link));
	if (link == NULL)
		return -ENOMEM;
	link->config = *config;
	link->mulpdu = mpa_mulpdu(config->mtu - headers);
	link->fpdu = mpa_fpdu_len(link->mulpdu);
	while (link->bucket_mask + 1 < config->max_conns)
		link->bucket_mask = link->bucket_mask * 2 + 1;
	link->conn = calloc(config->max_conns, sizeof(*link->conn));
	link->bucket = calloc(link->bucket_mask + 1, sizeof(*link->bucket));
	link->rings = malloc(each * config->max_conns);
	if (link->conn == NULL || link->bucket == NULL || link->rings == NULL) {
		iwarp_link_destroy(link);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < config->max_conns; i++) {
		link->conn[i].link = link;
		link->conn[i].rx = link->rings + each * i;
		link->conn[i].tx = link->conn[i].rx + config->rx_bytes;
	}
	*out = link;
	return 0;
}

/* What the stream has accepted and the link has not heard of would be the next link's. */
static void reset_unheard(struct stream *s)
{
	struct stream_completion done;

	while (stream_poll(s, &done, 1) == 1)
		if (done.event == STREAM_ACCEPTED)
			stream_abort(s, done.conn);
}

void iwarp_link_destroy(struct iwarp_link *link)
{
	if (link == NULL)
		return;
	for (unsigned i = 0; link->conn != NULL && i < link->config.max_conns; i++) {
		struct conn *c = &link->conn[i];

		if (c->link == NULL) /* the link was never whole */
			break;
		link_let_go(c);
		if (c->named && !c->closed) /* it has sends and receives in our rings */
			stream_abort(link->config.stream, c->handle);
	}
	for (unsigned port = 0; port <= UINT16_MAX; port++)
		if (link->listens[port / 8] & 1 << port % 8)
			stream_unlisten(link->config.stream, (uint16_t)port);
	if (link->conn != NULL)
		reset_unheard(link->config.stream);
	free(link->conn);
	free(link->bucket);
	free(link->rings);
	free(link);
}

/* ---- places ---- */

static struct conn_bucket *bucket_of(const struct iwarp_link *link, uint32_t handle)
{
	return &link->bucket[handle & link->bucket_mask];
}

struct conn *link_find(const struct iwarp_link *link, uint32_t handle)
{
	struct conn *c;

	LIST_FOREACH(c, bucket_of(link, handle), bucket)
	{
		if (c->handle == handle)
			return c;
	}
	return NULL;
}

static void clear(struct conn *c)
{
	*c = (struct conn){.link = c->link, .rx = c->rx, .tx = c->tx};
}

struct conn *link_take(struct iwarp_link *link, uint64_t cookie, uint64_t deadline)
{
	for (unsigned i = 0; i < link->config.max_conns; i++) {
		struct conn *c = &link->conn[i];

		if (c->state != FREE)
			continue;
		clear(c);
		c->state = STARTING;
		c->cookie = cookie;
		c->deadline = deadline;
		return c;
	}
	return NULL;
}

void link_name(struct conn *c, uint32_t handle)
{
	c->handle = handle;
	c->named = true;
	LIST_INSERT_HEAD(bucket_of(c->link, handle), c, bucket);
}

void link_drop(struct conn *c)
{
	if (c->named)
		LIST_REMOVE(c, bucket);
	clear(c);
}

/* ---- the program ---- */

int iwarp_listen(struct iwarp_link *link, uint16_t port, uint64_t cookie)
{
	const int err = stream_listen(link->config.stream, port, cookie);

	if (err == 0)
		link->listens[port / 8] |= (uint8_t)(1 << port % 8);
	return err;
}

int iwarp_unlisten(struct iwarp_link *link, uint16_t port)
{
	if (!(link->listens[port / 8] & 1 << port % 8))
		return -ENOENT;
	link->listens[port / 8] &= (uint8_t) ~(1 << port % 8);
	return stream_unlisten(link->config.stream, port);
}

static bool depths_ok(const struct mpa_offer *offer)
{
	return offer->ird <= RNIC_MAX_RD_ATOMIC && offer->ord <= RNIC_MAX_RD_ATOMIC &&
	       offer->private_len <= MPA_MAX_PRIVATE - MPA_ENHANCED_LEN &&
	       (offer->private_len == 0 || offer->private_data != NULL);
}

int iwarp_connect(struct iwarp_link *link, uint64_t now, const uint8_t mac[6],
	const struct wire_ip *ip, uint16_t port, struct rnic_qp *qp, const struct mpa_offer *offer,
	uint64_t cookie, uint32_t *conn)
{
	struct conn *c;
	int err;

	if (!depths_ok(offer))
		return -EINVAL;
	c = link_take(link, cookie, now + link->config.timeout);
	if (c == NULL)
		return -ENOSPC;
	err = link_hold(c, qp);
	if (err == 0)
		err = stream_connect(
			link->config.stream, now, mac, ip, port, 0, cookie, &c->handle);
	if (err < 0) {
		link_let_go(c);
		link_drop(c);
		return err;
	}
	link_name(c, c->handle);
	c->tx_put = (uint64_t)mpa_connect(&c->mpa, offer, c->tx, link->config.tx_bytes);
	link->count[IWARP_LINK_CONNECTS]++;
	link->woken = true;
	*conn = c->handle;
	return 0;
}

int iwarp_request(const struct iwarp_link *link, uint32_t conn, struct mpa_start *start)
{
	const struct conn *c = link_find(link, conn);

	if (c == NULL || c->state != ASKED)
		return -EBADF;
	*start = c->mpa.peer;
	return 0;
}

int iwarp_accept(struct iwarp_link *link, uint64_t now, uint32_t conn, struct rnic_qp *qp,
	const struct mpa_offer *offer, uint64_t cookie)
{
	struct conn *c = link_find(link, conn);
	size_t room;
	uint8_t *at;
	int err, len;

	if (c == NULL || c->state != ASKED)
		return -EBADF;
	if (!depths_ok(offer))
		return -EINVAL;
	at = link_tx_room(link, c, MPA_MAX_START, &room);
	err = at == NULL ? -ENOSPC : link_hold(c, qp);
	if (err < 0)
		return err;
	len = mpa_accept(&c->mpa, offer, at, room);
	err = link_start_qp(link, c, now);
	if (err < 0) {
		link_let_go(c);
		return err;
	}
	c->cookie = cookie;
	c->tx_put += (size_t)len;
	link->woken = true;
	return 0;
}

int iwarp_reject(struct iwarp_link *link, uint64_t now, uint32_t conn, const void *private_data,
	uint16_t len)
{
	struct conn *c = link_find(link, conn);
	int err;

	if (c == NULL || c->state != ASKED)
		return -EBADF;
	if (len > 0 && private_data == NULL)
		return -EINVAL;
	err = link_put_reject(link, c, private_data, len);
	if (err < 0)
		return err;
	link->count[IWARP_LINK_REJECTED]++;
	link_finish(link, c, -ECONNREFUSED, now);
	return 0;
}

int iwarp_close(struct iwarp_link *link, uint32_t conn)
{
	struct conn *c = link_find(link, conn);

	if (c == NULL || c->closed)
		return -EBADF;
	if (c->state == RUNNING)
		link_let_go(c);
	else if (c->state != ENDING)
		link_give_up(link, c, -ECONNABORTED);
	return 0;
}

int iwarp_ends(const struct iwarp_link *link, uint32_t conn, struct place_tuple *ends)
{
	return link_find(link, conn) != NULL ? stream_ends(link->config.stream, conn, ends)
					     : -EBADF;
}

static void tell(const struct conn *c, enum iwarp_event_type type, struct iwarp_event *event)
{
	*event = (struct iwarp_event){.type = type, .conn = c->handle, .cookie = c->cookie};
	if (type == IWARP_CLOSED)
		event->result = c->result;
	if ((type == IWARP_ESTABLISHED && c->mpa.initiator) ||
		(type == IWARP_CLOSED && c->refused)) {
		event->private_len = c->mpa.peer.private_len;
		memcpy(event->private_data, c->mpa.peer.private_data, event->private_len);
	}
}

static bool poll_conn(struct conn *c, struct iwarp_event *event)
{
	if (c->asked) {
		c->asked = false;
		tell(c, IWARP_REQUEST, event);
	} else if (c->established) {
		c->established = false;
		tell(c, IWARP_ESTABLISHED, event);
	} else if (c->closed) {
		tell(c, IWARP_CLOSED, event);
		link_drop(c);
	} else {
		return false;
	}
	return true;
}

bool iwarp_poll(struct iwarp_link *link, struct iwarp_event *event)
{
	for (unsigned i = 0; i < link->config.max_conns; i++) {
		const unsigned at = link->next_event;

		link->next_event = (at + 1) % link->config.max_conns;
		if (poll_conn(&link->conn[at], event))
			return true;
	}
	return false;
}
