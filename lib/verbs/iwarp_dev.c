/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/verbs/iwarp_dev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
	FRAME_CAP = 9216 + 64, /* the largest MTU of lib/stream, and Ethernet's header */
	MTU_MAX = 9216,
	ROUNDS = 8,  /* of a turn, between TCP and iWARP */
	TX_TURN = 64 /* frames of an address in a turn */
};

struct stack {
	struct wire_ip ip;
	struct stream *stream;
	struct iwarp_link *link;
	uint64_t ended; /* connections whose end was told */
};

struct iv_iwarp {
	struct iv_dev *dev;
	uint8_t mac[6];
	struct stack stack[RNIC_MAX_GID - 1];
	unsigned n_stacks;
	uint8_t frame[FRAME_CAP];
};

/* ---- life ---- */

static uint32_t unpredictable(void *arg)
{
	uint32_t v;

	(void)arg;
	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		abort();
	return v;
}

static int make_stack(
	struct stack *s, const struct rnic_port_config *port, const struct wire_ip *ip)
{
	struct iwarp_link_config link = {.max_conns = IV_IWARP_CONNS,
		.rx_bytes = IV_IWARP_RING,
		.tx_bytes = IV_IWARP_RING,
		.timeout = IV_IWARP_WAIT_NS};
	struct stream_config c;
	int err;

	/* Twice as many, for those in TIME-WAIT. */
	stream_defaults(&c, 2 * IV_IWARP_CONNS);
	memcpy(c.mac, port->mac, sizeof(c.mac));
	c.ip = s->ip = *ip;
	c.mtu = (uint16_t)(port->mtu < MTU_MAX ? port->mtu : MTU_MAX);
	c.arrivals = true;
	c.random = unpredictable;
	c.place.seed = (uint64_t)unpredictable(NULL) << 32 | unpredictable(NULL);
	err = stream_create(&c, &s->stream);
	if (err < 0)
		return err;
	link.stream = s->stream;
	link.mtu = c.mtu;
	return iwarp_link_create(&link, &s->link);
}

int iv_iwarp_create(struct iv_dev *dev, const struct rnic_port_config *port, struct iv_iwarp **out)
{
	struct iv_iwarp *iw = calloc(1, sizeof(*iw));
	int err = 0;

	if (iw == NULL)
		return -ENOMEM;
	iw->dev = dev;
	memcpy(iw->mac, port->mac, sizeof(iw->mac));
	for (unsigned i = 0; i < port->n_ip && err == 0; i++)
		err = make_stack(&iw->stack[iw->n_stacks++], port, &port->ip[i]);
	if (err < 0) {
		iv_iwarp_destroy(iw);
		return err;
	}
	*out = iw;
	return 0;
}

void iv_iwarp_destroy(struct iv_iwarp *iw)
{
	if (iw == NULL)
		return;
	for (unsigned i = 0; i < iw->n_stacks; i++) {
		iwarp_link_destroy(iw->stack[i].link);
		if (iw->stack[i].stream != NULL)
			stream_destroy(iw->stack[i].stream);
	}
	free(iw);
}

/* ---- turns ---- */

bool iv_iwarp_rx(struct iv_iwarp *iw, const uint8_t *frame, size_t len)
{
	if (len < sizeof(iw->mac) || memcmp(frame, iw->mac, sizeof(iw->mac)) != 0)
		return false;
	for (unsigned i = 0; i < iw->n_stacks; i++)
		if (stream_path_rx(stream_path(iw->stack[i].stream), frame, len))
			return true;
	return false;
}

static unsigned run_stack(struct stack *s, uint64_t now)
{
	unsigned work = 0, n;
	bool busy = true;

	stream_path_quiesce(stream_path(s->stream));
	for (unsigned round = 0; round < ROUNDS && busy; round++) {
		while ((n = stream_turn(s->stream, now)) > 0)
			work += n;
		busy = iwarp_turn(s->link, now);
		work += busy;
	}
	if (busy) /* it has asked TCP for something */
		work += stream_turn(s->stream, now);
	return work;
}

unsigned iv_iwarp_turn(struct iv_iwarp *iw, uint64_t now)
{
	unsigned work = 0;

	for (unsigned i = 0; i < iw->n_stacks; i++)
		work += run_stack(&iw->stack[i], now);
	return work;
}

static unsigned send_stack(struct iv_iwarp *iw, struct stack *s, unsigned room)
{
	struct stream_path *path = stream_path(s->stream);
	unsigned n = 0;
	size_t len;

	while (n < room && n < TX_TURN &&
		(len = stream_path_tx(path, iw->frame, sizeof(iw->frame))) > 0) {
		const struct rnic_frame frame = {
			.n_iov = 1, .len = (uint32_t)len, .iov[0] = {iw->frame, len}};

		iw->dev->ops->tx(iw->dev->port, &frame);
		n++;
	}
	stream_path_quiesce(path);
	return n;
}

unsigned iv_iwarp_transmit(struct iv_iwarp *iw, unsigned room, uint64_t now)
{
	unsigned n = 0;

	iv_iwarp_turn(iw, now);
	for (unsigned i = 0; i < iw->n_stacks; i++)
		n += send_stack(iw, &iw->stack[i], room - n);
	return n;
}

static uint64_t stack_due(const struct stack *s)
{
	const struct stream_path *path = stream_path(s->stream);
	const uint64_t stream = stream_due(s->stream), link = iwarp_due(s->link);

	/* Frames that found no room; copies that the control path has not heard of. */
	if (ring_count(&path->requests) > 0 || ring_count(&path->notes) > 0)
		return 0;
	return stream < link ? stream : link;
}

uint64_t iv_iwarp_deadline(const struct iv_iwarp *iw)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < iw->n_stacks; i++)
		if (stack_due(&iw->stack[i]) < due)
			due = stack_due(&iw->stack[i]);
	return due;
}

/* ---- connections ---- */

struct iwarp_link *iv_iwarp_link(const struct iv_iwarp *iw, unsigned i, struct wire_ip *ip)
{
	if (i >= iw->n_stacks)
		return NULL;
	*ip = iw->stack[i].ip;
	return iw->stack[i].link;
}

struct iwarp_link *iv_iwarp_find(const struct iv_iwarp *iw, const struct wire_ip *ip)
{
	for (unsigned i = 0; i < iw->n_stacks; i++)
		if (wire_ip_eq(&iw->stack[i].ip, ip))
			return iw->stack[i].link;
	return NULL;
}

bool iv_iwarp_poll(struct iv_iwarp *iw, struct iwarp_link **link, struct iwarp_event *event)
{
	for (unsigned i = 0; i < iw->n_stacks; i++)
		if (iwarp_poll(iw->stack[i].link, event)) {
			*link = iw->stack[i].link;
			iw->stack[i].ended += event->type == IWARP_CLOSED;
			return true;
		}
	return false;
}

unsigned iv_iwarp_open(const struct iv_iwarp *iw)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < iw->n_stacks; i++)
		n += iwarp_link_count(iw->stack[i].link, IWARP_LINK_CONNECTS) - iw->stack[i].ended;
	return (unsigned)n;
}

/* ---- what is said of it ---- */

#define LINK_NAME(sym, name, text) "iwarp_" name,
#define STREAM_NAME(sym, name, text) "tcp_" name,
#define PATH_NAME(sym, name, text) "tcp_path_" name,
static const char *const names[] = {IWARP_LINK_COUNTERS(LINK_NAME) STREAM_COUNTERS(STREAM_NAME)
		STREAM_PATH_COUNTERS(PATH_NAME)};

enum { N_STATS = IWARP_LINK_N_COUNTERS + STREAM_N_COUNTERS + STREAM_PATH_N_COUNTERS };

static uint64_t count(const struct stack *s, unsigned i)
{
	if (i < IWARP_LINK_N_COUNTERS)
		return iwarp_link_count(s->link, (enum iwarp_link_counter)i);
	i -= IWARP_LINK_N_COUNTERS;
	if (i < STREAM_N_COUNTERS)
		return stream_count(s->stream, (enum stream_counter)i);
	return stream_path(s->stream)->count[i - STREAM_N_COUNTERS];
}

unsigned iv_iwarp_stats(const struct iv_iwarp *iw, struct inc_dv_stat *stats, unsigned n)
{
	for (unsigned i = 0; i < N_STATS && i < n; i++) {
		stats[i] = (struct inc_dv_stat){names[i], 0};
		for (unsigned s = 0; s < iw->n_stacks; s++)
			stats[i].value += count(&iw->stack[s], i);
	}
	return N_STATS;
}

void iv_iwarp_query_device(struct ibv_device_attr *attr)
{
	attr->atomic_cap = IBV_ATOMIC_NONE;
	attr->max_ah = 0;
	attr->max_mcast_grp = attr->max_mcast_qp_attach = attr->max_total_mcast_qp_attach = 0;
	attr->device_cap_flags &= ~(unsigned)IBV_DEVICE_RC_RNR_NAK_GEN;
	attr->local_ca_ack_delay = 0;
}
