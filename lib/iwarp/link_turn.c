/* SPDX-License-Identifier: BSD-3-Clause */
/* Between queue pairs and streams: bytes both ways, MPA's frames, ends. */
#include <errno.h>
#include <string.h>

#include "lib/iwarp/link_priv.h"

/* ---- the queue pair ---- */

/* What it has to say is fetched by the next turn. */
static void ready(void *arg)
{
	struct conn *c = arg;

	c->link->woken = true;
}

static void gone(void *arg)
{
	struct conn *c = arg;

	c->qp = NULL;
	c->link->woken = true;
}

int link_hold(struct conn *c, struct rnic_qp *qp)
{
	const struct iwarp_attach a = {.mulpdu = IWARP_MIN_MULPDU,
		.pending = true,
		.ready = ready,
		.gone = gone,
		.arg = c};
	int err = iwarp_attach(qp, &a);

	if (err == 0)
		c->qp = qp;
	return err;
}

void link_let_go(struct conn *c)
{
	if (c->qp != NULL)
		iwarp_detach(c->qp);
	c->qp = NULL;
	c->link->woken = true;
}

int link_start_qp(struct iwarp_link *link, struct conn *c, uint64_t now)
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
	err = iwarp_attach(c->qp, &a);
	if (err == 0)
		err = rnic_qp_modify(c->qp, &attr, IBV_QP_STATE, now);
	if (err < 0)
		return err;
	c->state = RUNNING;
	c->established = true;
	/* In revision 1 the peer may be silent as long as it likes. */
	if (agreed.rtr && agreed.waits)
		c->deadline = now + link->config.timeout;
	link->count[IWARP_LINK_ESTABLISHED]++;
	return 0;
}

/* ---- ends ---- */

void link_finish(struct iwarp_link *link, struct conn *c, int result, uint64_t now)
{
	if (c->result == 0)
		c->result = result;
	if (c->state == ENDING)
		return;
	c->asked = false;
	c->state = ENDING;
	c->deadline = now + link->config.timeout;
	link->woken = true;
}

void link_give_up(struct iwarp_link *link, struct conn *c, int result)
{
	if (c->result == 0)
		c->result = result;
	c->asked = false;
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
	link_let_go(c);
	if (c->result == 0)
		c->result = result;
	c->closed = true;
	c->asked = false; /* nobody can answer; but who runs has been established */
	c->state = ENDING;
	c->deadline = UINT64_MAX;
	c->peer_ended = c->shut = true;
}

/* ---- bytes out ---- */

uint8_t *link_tx_room(const struct iwarp_link *link, struct conn *c, size_t need, size_t *room)
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
		uint8_t *at = link_tx_room(link, c, link->fpdu, &room);

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

int link_put_reject(struct iwarp_link *link, struct conn *c, const void *data, uint16_t data_len)
{
	size_t room;
	uint8_t *at = link_tx_room(link, c, MPA_MAX_START, &room);
	int len = at == NULL ? -ENOSPC : mpa_reject(&c->mpa, data, data_len, at, room);

	if (len > 0)
		c->tx_put += (size_t)len;
	return len;
}

/* In words that the peer knows: an answer to its request, a Terminate message to its reply (RFC
 * 6581). False: there are none. */
static bool put_refusal(struct iwarp_link *link, struct conn *c, enum iwarp_fault fault)
{
	size_t room, len;
	uint8_t *at;

	if (fault == IWARP_FAULT_START)
		return false;
	if (!c->mpa.initiator)
		return link_put_reject(link, c, NULL, 0) > 0;
	at = link_tx_room(link, c, link->fpdu, &room);
	len = at != NULL ? iwarp_refusal(at, room, fault) : 0;
	c->tx_put += len;
	return len > 0;
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
		link_finish(link, c, got, now);
	} else if (got < 0) {
		count_start(link, fault);
		if (put_refusal(link, c, fault))
			link_finish(link, c, got, now);
		else
			link_give_up(link, c, got);
	} else if (!c->mpa.initiator) {
		c->state = ASKED;
		c->asked = true;
	} else {
		got = link_start_qp(link, c, now);
		if (got < 0)
			link_give_up(link, c, got);
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
			link_give_up(link, c, -EPROTO);
		} else if (c->state == STARTING) {
			len = take_start(link, c, bytes, len, now);
		} else if (c->state == RUNNING && c->qp != NULL) {
			iwarp_rx(c->qp, bytes, len);
		} else {
			link->count[IWARP_LINK_LATE_BYTES] += len;
		}
		c->rx_taken += len;
		busy = true;
	}
	return busy;
}

/* ---- what the stream says ---- */

static void accepted(struct iwarp_link *link, const struct stream_completion *done, uint64_t now)
{
	struct conn *c = link_take(link, done->cookie, now + link->config.timeout);

	if (c == NULL) {
		link->count[IWARP_LINK_NO_ROOM]++;
		stream_abort(link->config.stream, done->conn);
		return;
	}
	link_name(c, done->conn);
	mpa_listen(&c->mpa);
	link->count[IWARP_LINK_CONNECTS]++;
}

static void note(struct iwarp_link *link, const struct stream_completion *done, uint64_t now)
{
	struct conn *c = link_find(link, done->conn);

	if (done->event == STREAM_ACCEPTED) {
		accepted(link, done, now);
		return;
	}
	if (c == NULL)
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

/* In RUNNING there is one wait with a bound at most: for the ready-to-receive message that the peer
 * has promised, or for room for the last word of a queue pair that has failed. */
static void check_running(struct iwarp_link *link, struct conn *c, uint64_t now)
{
	const bool failed = c->qp == NULL || iwarp_failed(c->qp);

	if (failed && c->tx_posted == c->tx_put && (c->qp == NULL || iwarp_over(c->qp))) {
		link_finish(link, c, 0, now);
		return;
	}
	if (failed && c->deadline == UINT64_MAX)
		c->deadline = now + link->config.timeout;
	if (!failed && !iwarp_waits(c->qp))
		c->deadline = UINT64_MAX;
	if (now < c->deadline)
		return;
	link->count[failed ? IWARP_LINK_NO_END : IWARP_LINK_TIMEOUTS]++;
	link_give_up(link, c, -ETIMEDOUT);
}

static void check_starting(struct iwarp_link *link, struct conn *c, uint64_t now)
{
	if (c->mpa.initiator && (c->qp == NULL || iwarp_over(c->qp))) {
		link_give_up(link, c, -ECONNABORTED);
	} else if (now >= c->deadline) {
		link->count[IWARP_LINK_TIMEOUTS]++;
		link_give_up(link, c, -ETIMEDOUT);
	}
}

static void check_ending(struct iwarp_link *link, struct conn *c, uint64_t now)
{
	if (!c->shut && c->tx_posted == c->tx_put) {
		c->shut = true;
		stream_shutdown(link->config.stream, c->handle);
	}
	if (c->shut && c->peer_ended && !c->close_asked) {
		c->close_asked = true;
		stream_close(link->config.stream, c->handle);
	}
	/* The rest has TCP's own bounds; a peer that answers probes and takes nothing has none. */
	if (c->close_asked && c->tx_acked == c->tx_put)
		c->deadline = UINT64_MAX;
	if (now >= c->deadline) {
		link->count[IWARP_LINK_NO_END]++;
		link_give_up(link, c, -ETIMEDOUT);
	}
}

static void check_end(struct iwarp_link *link, struct conn *c, uint64_t now)
{
	if (c->state != ENDING && c->peer_ended && c->rx_taken == c->rx_come) {
		if (c->qp != NULL)
			iwarp_lost(c->qp, 0);
		link_finish(link, c, c->state == RUNNING ? 0 : -ECONNRESET, now);
	}
	if (c->state == RUNNING)
		check_running(link, c, now);
	else if (c->state == STARTING)
		check_starting(link, c, now);
	if (c->state == ENDING && !c->closed)
		check_ending(link, c, now);
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
	bool busy;

	link->woken = false;
	busy = poll(link, now);
	for (unsigned i = 0; i < link->config.max_conns; i++)
		if (link->conn[i].state != FREE && !link->conn[i].closed)
			busy |= step(link, &link->conn[i], now);
	return busy || link->woken;
}

uint64_t iwarp_due(const struct iwarp_link *link)
{
	uint64_t due = link->woken ? 0 : UINT64_MAX;

	for (unsigned i = 0; i < link->config.max_conns; i++) {
		const struct conn *c = &link->conn[i];

		if (c->state != FREE && !c->closed && c->deadline < due)
			due = c->deadline;
	}
	return due;
}
