/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/iwarp/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MIN_RING = 4096,
	RX_CHUNKS = 4, /* receives that a ring is posted as */
	TX_OPS = 8,    /* sends under way: what comes meanwhile goes in fewer, larger ones */
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
	enum conn_state state;
	uint32_t handle; /* of the stream, and ours */
	uint64_t cookie;
	struct rnic_qp *qp; /* NULL: none yet, or gone */
	struct mpa mpa;
	struct mpa_offer offer;
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

struct iwarp_link {
	struct iwarp_link_config config;
	size_t mulpdu, fpdu;
	struct conn *conn; /* by the lower half of the stream's handles */
	uint8_t *rings;
	unsigned next_event;
	uint64_t count[IWARP_LINK_N_COUNTERS];
};

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
	link->conn = calloc(config->max_conns + 1u, sizeof(*link->conn));
	link->rings = malloc(each * (config->max_conns + 1u));
	if (link->conn == NULL || link->rings == NULL) {
		iwarp_link_destroy(link);
		return -ENOMEM;
	}
	for (unsigned i = 0; i <= config->max_conns; i++) {
		link->conn[i].rx = link->rings + each * i;
		link->conn[i].tx = link->conn[i].rx + config->rx_bytes;
	}
	*out = link;
	return 0;
}

void iwarp_link_destroy(struct iwarp_link *link)
{
	if (link == NULL)
		return;
	for (unsigned i = 0; link->conn != NULL && i <= link->config.max_conns; i++)
		if (link->conn[i].qp != NULL)
			iwarp_detach(link->conn[i].qp);
	free(link->conn);
	free(link->rings);
	free(link);
}

static struct conn *slot_of(const struct iwarp_link *link, uint32_t handle)
{
	return (handle & 0xffff) <= link->config.max_conns ? &link->conn[handle & 0xffff] : NULL;
}

static struct conn *conn_of(const struct iwarp_link *link, uint32_t handle)
{
	struct conn *c = slot_of(link, handle);

	return c != NULL && c->state != FREE && c->handle == handle ? c : NULL;
}

static void begin(struct conn *c, uint32_t handle, uint64_t cookie, uint64_t deadline)
{
	*c = (struct conn){.state = STARTING,
		.handle = handle,
		.cookie = cookie,
		.deadline = deadline,
		.rx = c->rx,
		.tx = c->tx};
}

/* ---- the queue pair ---- */

/* What it has to say is fetched by the next turn. */
static void ready(void *arg)
{
	(void)arg;
}

static void gone(void *arg)
{
	struct conn *c = arg;

	c->qp = NULL;
}

/* Nothing agreed yet: so that its end is told. */
static int hold(struct conn *c, struct rnic_qp *qp)
{
	const struct iwarp_attach a = {
		.mulpdu = IWARP_MIN_MULPDU, .ready = ready, .gone = gone, .arg = c};
	int err = iwarp_attach(qp, &a);

	if (err == 0)
		c->qp = qp;
	return err;
}

static void let_go(struct conn *c)
{
	if (c->qp != NULL)
		iwarp_detach(c->qp);
	c->qp = NULL;
}

static int start_qp(struct iwarp_link *link, struct conn *c, uint64_t now)
{
	const struct mpa_agreed agreed = mpa_agree(&c->mpa);
	const struct iwarp_attach a = {.mulpdu = (uint16_t)link->mulpdu,
		.ird = agreed.ird,
		.ord = agreed.ord,
		.waits = agreed.waits,
		.rtr = agreed.rtr && c->mpa.initiator,
		.ready = ready,
		.gone = gone,
		.arg = c};
	const struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	int err;

	if (c->qp == NULL)
		return -ECONNABORTED;
	iwarp_detach(c->qp); /* of what was held with nothing agreed */
	err = iwarp_attach(c->qp, &a);
	if (err == 0)
		err = rnic_qp_modify(c->qp, &attr, IBV_QP_STATE, now);
	if (err < 0)
		return err;
	c->state = RUNNING;
	c->established = true;
	link->count[IWARP_LINK_ESTABLISHED]++;
	return 0;
}

/* ---- ends ---- */

/* Our half ends behind what was sent; the peer's is waited for. */
static void finish(struct iwarp_link *link, struct conn *c, int result, uint64_t now)
{
	if (c->result == 0)
		c->result = result;
	if (c->state == ENDING)
		return;
	c->state = ENDING;
	c->deadline = now + link->config.timeout;
}

static void give_up(struct iwarp_link *link, struct conn *c, int result)
{
	if (c->result == 0)
		c->result = result;
	c->state = ENDING;
	c->deadline = UINT64_MAX;
	stream_abort(link->config.stream, c->handle);
}

static void ended(struct conn *c, int result)
{
	if (c->state == FREE)
		return;
	if (c->qp != NULL)
		iwarp_lost(c->qp, result);
	let_go(c);
	if (c->result == 0)
		c->result = result;
	c->closed = true;
	c->asked = c->established = false;
	c->state = ENDING;
	c->deadline = UINT64_MAX;
	c->peer_ended = c->shut = true;
}

/* ---- bytes out ---- */

/* Room for a message in one piece; what is left at the ring's end is passed over. */
static uint8_t *tx_room(const struct iwarp_link *link, struct conn *c, size_t need, size_t *room)
{
	const uint32_t size = link->config.tx_bytes;
	const size_t to_end = size - c->tx_put % size;

	if (c->tx_ops == 0 && c->tx_posted == c->tx_put)
		c->tx_acked = c->tx_put; /* also what was passed over */
	if (to_end < need && c->tx_put == c->tx_posted && c->tx_put + to_end <= c->tx_acked + size)
		c->tx_put = c->tx_posted = c->tx_put + to_end;
	*room = size - c->tx_put % size;
	if (*room > c->tx_acked + size - c->tx_put)
		*room = c->tx_acked + size - c->tx_put;
	return *room < need ? NULL : c->tx + c->tx_put % size;
}

/* What is put and not given to the stream; it never crosses the ring's end. */
static bool post_tx(struct iwarp_link *link, struct conn *c)
{
	const uint32_t size = link->config.tx_bytes;

	if (c->tx_posted == c->tx_put || c->tx_ops == TX_OPS ||
		stream_send(link->config.stream, c->handle, c->tx + c->tx_posted % size,
			c->tx_put - c->tx_posted, c->tx_put) < 0)
		return false;
	c->tx_posted = c->tx_put;
	c->tx_ops++;
	return true;
}

static bool pump_tx(struct iwarp_link *link, struct conn *c)
{
	bool busy = false;

	while (c->qp != NULL && c->state == RUNNING && c->tx_ops < TX_OPS) {
		size_t room, len;
		uint8_t *at = tx_room(link, c, link->fpdu, &room);

		len = at != NULL ? iwarp_tx(c->qp, at, room) : 0;
		c->tx_put += len;
		if (!post_tx(link, c))
			break;
		busy = true;
	}
	return busy || post_tx(link, c);
}

/* ---- bytes in ---- */

static bool post_rx(struct iwarp_link *link, struct conn *c)
{
	const uint32_t size = link->config.rx_bytes, chunk = size / RX_CHUNKS;
	bool busy = false;

	while (!c->peer_ended && c->rx_posted + chunk <= c->rx_taken + size &&
		stream_recv(link->config.stream, c->handle, c->rx + c->rx_posted % size, chunk,
			chunk) == 0) {
		c->rx_posted += chunk;
		busy = true;
	}
	return busy;
}

static void count_start(struct iwarp_link *link, enum iwarp_fault fault)
{
	switch (fault) {
	case IWARP_FAULT_MARKER:
		link->count[IWARP_LINK_MARKERS]++;
		break;
	case IWARP_FAULT_RTR:
		link->count[IWARP_LINK_NO_RTR]++;
		break;
	case IWARP_FAULT_IRD:
		link->count[IWARP_LINK_LOW_IRD]++;
		break;
	default:
		link->count[IWARP_LINK_BAD_START]++;
	}
}

/* A frame of MPA that answers: a peer that only lacks what we need is told. */
static int put_reject(struct iwarp_link *link, struct conn *c, const void *data, uint16_t data_len)
{
	size_t room;
	uint8_t *at = tx_room(link, c, MPA_MAX_START, &room);
	int len = at == NULL ? -ENOSPC : mpa_reject(&c->mpa, data, data_len, at, room);

	if (len > 0)
		c->tx_put += (size_t)len;
	return len;
}

static size_t take_start(
	struct iwarp_link *link, struct conn *c, const uint8_t *bytes, size_t len, uint64_t now)
{
	enum iwarp_fault fault;
	size_t used;
	int got = mpa_rx(&c->mpa, bytes, len, &used, &fault);

	if (got == 0)
		return used;
	c->deadline = UINT64_MAX;
	if (got == -ECONNREFUSED) {
		link->count[IWARP_LINK_REFUSED]++;
		c->refused = true;
		finish(link, c, got, now);
	} else if (got < 0) {
		count_start(link, fault);
		if (c->mpa.initiator || fault == IWARP_FAULT_START ||
			put_reject(link, c, NULL, 0) < 0)
			give_up(link, c, got);
		else
			finish(link, c, got, now);
	} else if (!c->mpa.initiator) {
		c->state = ASKED;
		c->asked = true;
	} else {
		got = start_qp(link, c, now);
		if (got < 0)
			give_up(link, c, got);
	}
	return used;
}

static bool take_rx(struct iwarp_link *link, struct conn *c, uint64_t now)
{
	const uint32_t size = link->config.rx_bytes;
	bool busy = false;

	while (c->rx_taken < c->rx_come) {
		const uint8_t *bytes = c->rx + c->rx_taken % size;
		size_t len = size - c->rx_taken % size;

		if (len > c->rx_come - c->rx_taken)
			len = c->rx_come - c->rx_taken;
		if (c->state == ASKED) {
			link->count[IWARP_LINK_EARLY]++;
			give_up(link, c, -EPROTO);
		} else if (c->state == STARTING) {
			len = take_start(link, c, bytes, len, now);
		} else if (c->state == RUNNING && c->qp != NULL) {
			iwarp_rx(c->qp, bytes, len);
		}
		c->rx_taken += len;
		busy = true;
	}
	return busy;
}

/* ---- what the stream says ---- */

static void note(struct iwarp_link *link, const struct stream_completion *done, uint64_t now)
{
	struct conn *c = slot_of(link, done->conn);

	if (done->event == STREAM_ACCEPTED) {
		if (c == NULL || c->closed) {
			link->count[IWARP_LINK_NO_ROOM]++;
			stream_abort(link->config.stream, done->conn);
			return;
		}
		begin(c, done->conn, done->cookie, now + link->config.timeout);
		mpa_listen(&c->mpa);
		link->count[IWARP_LINK_CONNECTS]++;
		return;
	}
	if (c == NULL || c->handle != done->conn)
		return;
	switch (done->event) {
	case STREAM_SENT:
		c->tx_acked = done->cookie;
		c->tx_ops--;
		break;
	case STREAM_RECEIVED:
		/* The end of the peer's stream, or an error. */
		c->peer_ended |= done->result < (int64_t)done->cookie;
		c->rx_full += done->result > 0 ? (uint64_t)done->result : 0;
		if (c->rx_full > c->rx_come)
			c->rx_come = c->rx_full;
		break;
	case STREAM_ARRIVED:
		if ((uint64_t)done->result > c->rx_come)
			c->rx_come = (uint64_t)done->result;
		break;
	case STREAM_CLOSED:
		take_rx(link, c, now);
		ended(c, (int)done->result);
		break;
	default:
		break;
	}
}

static bool poll(struct iwarp_link *link, uint64_t now)
{
	struct stream_completion done[POLL];
	bool busy = false;
	unsigned n;

	while ((n = stream_poll(link->config.stream, done, POLL)) > 0) {
		for (unsigned i = 0; i < n; i++)
			note(link, &done[i], now);
		busy = true;
	}
	return busy;
}

/* ---- turns ---- */

static void check_end(struct iwarp_link *link, struct conn *c, uint64_t now)
{
	if (c->state != FREE && c->state != ENDING && c->peer_ended && c->rx_taken == c->rx_come) {
		if (c->qp != NULL)
			iwarp_lost(c->qp, 0);
		finish(link, c, c->state == RUNNING ? 0 : -ECONNRESET, now);
	}
	if (c->state == RUNNING && c->tx_posted == c->tx_put &&
		(c->qp == NULL || iwarp_over(c->qp)))
		finish(link, c, 0, now);
	if (c->state == STARTING && c->mpa.initiator && c->qp == NULL)
		give_up(link, c, -ECONNABORTED);
	if (c->state == STARTING && now >= c->deadline) {
		link->count[IWARP_LINK_TIMEOUTS]++;
		give_up(link, c, -ETIMEDOUT);
	}
	if (c->state != ENDING || c->closed)
		return;
	if (!c->shut && c->tx_posted == c->tx_put) {
		c->shut = true;
		stream_shutdown(link->config.stream, c->handle);
	}
	if (c->shut && c->peer_ended && !c->close_asked) {
		c->close_asked = true;
		c->deadline = UINT64_MAX;
		stream_close(link->config.stream, c->handle);
	} else if (now >= c->deadline) {
		give_up(link, c, -ETIMEDOUT);
	}
}

static bool step(struct iwarp_link *link, struct conn *c, uint64_t now)
{
	const bool shut = c->shut, close_asked = c->close_asked;
	bool busy = take_rx(link, c, now);
	enum conn_state state;

	busy |= post_rx(link, c);
	busy |= pump_tx(link, c);
	state = c->state;
	check_end(link, c, now);
	return busy || c->state != state || c->shut != shut || c->close_asked != close_asked;
}

bool iwarp_turn(struct iwarp_link *link, uint64_t now)
{
	bool busy = poll(link, now);

	for (unsigned i = 0; i <= link->config.max_conns; i++)
		if (link->conn[i].state != FREE && !link->conn[i].closed)
			busy |= step(link, &link->conn[i], now);
	return busy;
}

uint64_t iwarp_due(const struct iwarp_link *link)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i <= link->config.max_conns; i++) {
		const struct conn *c = &link->conn[i];

		if ((c->state == STARTING || c->state == ENDING) && !c->closed && c->deadline < due)
			due = c->deadline;
	}
	return due;
}

/* ---- the program ---- */

int iwarp_listen(struct iwarp_link *link, uint16_t port, uint64_t cookie)
{
	return stream_listen(link->config.stream, port, cookie);
}

int iwarp_unlisten(struct iwarp_link *link, uint16_t port)
{
	return stream_unlisten(link->config.stream, port);
}

static bool depths_ok(const struct mpa_offer *offer)
{
	return offer->ird <= RNIC_MAX_RD_ATOMIC && offer->ord <= RNIC_MAX_RD_ATOMIC &&
	       offer->private_len <= MPA_MAX_PRIVATE - MPA_ENHANCED_LEN;
}

int iwarp_connect(struct iwarp_link *link, uint64_t now, const uint8_t mac[6],
	const struct wire_ip *ip, uint16_t port, struct rnic_qp *qp, const struct mpa_offer *offer,
	uint64_t cookie, uint32_t *conn)
{
	struct conn *c;
	int err;

	if (!depths_ok(offer))
		return -EINVAL;
	err = stream_connect(link->config.stream, now, mac, ip, port, 0, cookie, conn);
	if (err < 0)
		return err;
	c = slot_of(link, *conn);
	if (c == NULL || c->closed) {
		stream_abort(link->config.stream, *conn);
		return -ENOSPC;
	}
	begin(c, *conn, cookie, now + link->config.timeout);
	err = hold(c, qp);
	if (err < 0) {
		c->state = FREE;
		stream_abort(link->config.stream, *conn);
		return err;
	}
	c->tx_put = (uint64_t)mpa_connect(&c->mpa, offer, c->tx, link->config.tx_bytes);
	link->count[IWARP_LINK_CONNECTS]++;
	return 0;
}

int iwarp_request(const struct iwarp_link *link, uint32_t conn, struct mpa_start *start)
{
	const struct conn *c = conn_of(link, conn);

	if (c == NULL || c->state != ASKED)
		return -EBADF;
	*start = c->mpa.peer;
	return 0;
}

int iwarp_accept(struct iwarp_link *link, uint64_t now, uint32_t conn, struct rnic_qp *qp,
	const struct mpa_offer *offer, uint64_t cookie)
{
	struct conn *c = conn_of(link, conn);
	size_t room;
	uint8_t *at;
	int err;

	if (c == NULL || c->state != ASKED)
		return -EBADF;
	if (!depths_ok(offer))
		return -EINVAL;
	at = tx_room(link, c, MPA_MAX_START, &room);
	err = at == NULL ? -ENOSPC : hold(c, qp);
	if (err < 0)
		return err;
	c->cookie = cookie;
	c->tx_put += (uint64_t)mpa_accept(&c->mpa, offer, at, room);
	err = start_qp(link, c, now);
	if (err < 0)
		give_up(link, c, err);
	return err;
}

int iwarp_reject(struct iwarp_link *link, uint64_t now, uint32_t conn, const void *private_data,
	uint16_t len)
{
	struct conn *c = conn_of(link, conn);
	int err;

	if (c == NULL || c->state != ASKED)
		return -EBADF;
	err = put_reject(link, c, private_data, len);
	if (err < 0)
		return err;
	link->count[IWARP_LINK_REJECTED]++;
	finish(link, c, -ECONNREFUSED, now);
	return 0;
}

int iwarp_close(struct iwarp_link *link, uint32_t conn)
{
	struct conn *c = conn_of(link, conn);

	if (c == NULL || c->closed)
		return -EBADF;
	if (c->state != RUNNING) {
		give_up(link, c, -ECONNABORTED);
		return 0;
	}
	let_go(c);
	return 0;
}

int iwarp_ends(const struct iwarp_link *link, uint32_t conn, struct place_tuple *ends)
{
	return conn_of(link, conn) != NULL ? stream_ends(link->config.stream, conn, ends) : -EBADF;
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
		*c = (struct conn){.rx = c->rx, .tx = c->tx};
	} else {
		return false;
	}
	return true;
}

bool iwarp_poll(struct iwarp_link *link, struct iwarp_event *event)
{
	for (unsigned i = 0; i <= link->config.max_conns; i++) {
		const unsigned at = link->next_event;

		link->next_event = (at + 1) % (link->config.max_conns + 1u);
		if (poll_conn(&link->conn[at], event))
			return true;
	}
	return false;
}
