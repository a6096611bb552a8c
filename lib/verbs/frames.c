/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames between the ports of a device and its rnic, and the links of the ports. */
#include "lib/verbs/iwarp_dev.h"
#include "lib/verbs/netdev.h"
#include "lib/verbs/workers.h"

enum {
	LINK_CHECK_NS = 100 * 1000 * 1000,
	DOWN_CHECK_NS = 1000 * 1000,
	RECONNECT_NS = 500 * 1000 * 1000,
	TX_TURN = 64,     /* frames sent per turn */
	TX_BURST = 8,     /* at once: their headers stay in the first cache */
	NETDEV_TURN = 32, /* of these, of the network interface */
};

/* The port is shared with a network interface. */
static void receive_shared(struct iv_dev *dev, const struct rnic_rx_frame *frame, uint64_t now)
{
	const unsigned readers = rnic_readers(dev->rnic, 0, frame->data, frame->len);

	if (readers & STACK_READS)
		iv_netdev_write(dev->netdev, frame->data, frame->len);
	if (readers & RNIC_READS)
		rnic_rx(dev->rnic, 0, frame->data, frame->len, now);
}

static void receive_one(struct iv_dev *dev, const struct rnic_rx_frame *frame, uint64_t now)
{
	if (dev->netdev)
		receive_shared(dev, frame, now);
	else if (!iv_iwarp_rx(dev->iwarp, frame->data, frame->len))
		rnic_rx(dev->rnic, 0, frame->data, frame->len, now);
}

static unsigned receive_port(struct iv_dev *dev, unsigned index, uint64_t now)
{
	void *const port = dev->ports[index].handle;
	struct rnic_rx_frame frames[VERBS_BURST];
	const unsigned n = dev->ops->rx_burst(port, frames, VERBS_BURST);
	const unsigned own = dev->workers ? iv_workers_hand(dev->workers, index, frames, n) : n;

	if (!dev->netdev && !dev->iwarp)
		rnic_rx_burst(dev->rnic, index, frames, own, now);
	else
		for (unsigned i = 0; i < own; i++)
			receive_one(dev, &frames[i], now);
	if (own)
		dev->ops->rx_free(port, frames, own);
	return n;
}

unsigned iv_receive(struct iv_dev *dev, uint64_t now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < dev->n_ports; i++)
		n += receive_port(dev, i, now);
	return n;
}

/* Passes on what the ports have taken, now or earlier. */
static void flush(struct iv_dev *dev, const unsigned sent[RNIC_MAX_PORTS])
{
	for (unsigned i = 0; i < dev->n_ports; i++) {
		struct iv_port *port = &dev->ports[i];

		if (sent[i] || port->tx_left)
			port->tx_left = dev->ops->tx_flush(port->handle);
	}
}

/* The ports that have room; *n is not more than each of them takes. */
static unsigned with_room(const struct iv_dev *dev, const unsigned room[RNIC_MAX_PORTS],
	const unsigned sent[RNIC_MAX_PORTS], unsigned *n)
{
	unsigned ports = 0;

	for (unsigned i = 0; i < dev->n_ports; i++) {
		const unsigned rest = room[i] - sent[i];

		if (rest == 0)
			continue;
		ports |= 1u << i;
		*n = rest < *n ? rest : *n;
	}
	return ports;
}

unsigned iv_transmit(struct iv_dev *dev, uint64_t now)
{
	unsigned room[RNIC_MAX_PORTS], sent[RNIC_MAX_PORTS] = {0}, total = 0, ports, most, n;
	struct rnic_frame frames[TX_BURST];

	for (unsigned i = 0; i < dev->n_ports; i++)
		room[i] = dev->ops->tx_room(dev->ports[i].handle);
	do {
		most = TX_TURN - total < TX_BURST ? TX_TURN - total : TX_BURST;
		ports = with_room(dev, room, sent, &most);
		n = ports ? rnic_tx_burst(dev->rnic, ports, frames, most, now) : 0;
		for (unsigned i = 0; i < n; i++) {
			dev->ops->tx(dev->ports[frames[i].port].handle, &frames[i]);
			sent[frames[i].port]++;
		}
		total += n;
	} while (n && total < TX_TURN);
	if (dev->iwarp) {
		n = iv_iwarp_transmit(dev->iwarp, room[0] - sent[0], now);
		sent[0] += n;
		total += n;
	}
	flush(dev, sent);
	return total;
}

bool iv_tx_left(const struct iv_dev *dev)
{
	unsigned left = 0;

	for (unsigned i = 0; i < dev->n_ports; i++)
		left |= dev->ports[i].tx_left;
	return left != 0;
}

unsigned iv_transmit_shared(struct iv_dev *dev, uint64_t now)
{
	struct rnic_frame frame;
	unsigned sent = 0, room;

	if (!iv_netdev_due(dev->netdev, now))
		return 0;
	room = dev->ops->tx_room(dev->port);
	if (room > NETDEV_TURN)
		room = NETDEV_TURN;
	for (; sent < room && iv_netdev_read(dev->netdev, &frame, now); sent++)
		dev->ops->tx(dev->port, &frame);
	if (sent)
		dev->ports[0].tx_left = dev->ops->tx_flush(dev->port);
	return sent;
}

static void check_link(struct iv_dev *dev, unsigned index, uint64_t now)
{
	struct iv_port *port = &dev->ports[index];

	if (!port->link && dev->ops->reconnect && now - port->tried_ns >= RECONNECT_NS) {
		port->tried_ns = now;
		dev->ops->reconnect(port->handle);
	}
	port->link = dev->ops->link_up(port->handle);
	rnic_port_set(dev->rnic, index, port->link, now);
}

/* A link that comes is wanted at once: until the rnic knows of it, it loses what it has to send. */
void iv_check_links(struct iv_dev *dev, uint64_t now)
{
	if (now - dev->link_ns < (dev->all_up ? LINK_CHECK_NS : DOWN_CHECK_NS))
		return;
	dev->link_ns = now;
	dev->all_up = true;
	for (unsigned i = 0; i < dev->n_ports; i++) {
		check_link(dev, i, now);
		dev->all_up = dev->all_up && dev->ports[i].link;
	}
}
