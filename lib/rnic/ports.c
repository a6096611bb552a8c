/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports of a device: addresses, link, counters, and the frames that wait for one of them
 * outside of any queue pair. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/cq.h"
#include "lib/rnic/device.h"
#include "lib/rnic/lldp.h"
#include "lib/rnic/transport.h"
#include "lib/rnic/worker.h"

enum { MIN_MTU = 256 + RNIC_MTU_ROOM, MAX_MTU = 16384 };

static const char *const counter_names[] = {
#define X(sym, name, text) [RNIC_PORT_C_##sym] = name,
	RNIC_PORT_COUNTERS(X)
#undef X
};

const char *rnic_port_counter_name(enum rnic_port_counter c)
{
	return counter_names[c];
}

/* ---- creation ---- */

static bool usable(const struct wire_ip *ip)
{
	return !wire_ip_is_zero(ip) && ip->b[0] != 0xff;
}

static int set_addresses(struct rnic *rnic, unsigned index, const struct rnic_port_config *config)
{
	struct rnic_port *port = &rnic->port[index];

	if (config->n_ip > RNIC_MAX_GID - 1)
		return -EINVAL;
	port->gid[0] = wire_ip_link_local(config->mac);
	port->n_gid = 1;
	for (unsigned i = 0; i < config->n_ip; i++) {
		if (!usable(&config->ip[i]) || rnic_own_ip(rnic, index, &config->ip[i]) >= 0)
			return -EINVAL;
		port->gid[port->n_gid++] = config->ip[i];
	}
	if (!wire_ip_is_zero(&config->via) &&
		(!usable(&config->via) || rnic_own_ip(rnic, index, &config->via) >= 0))
		return -EINVAL;
	port->via = config->via;
	return 0;
}

static int init_port(struct rnic *rnic, unsigned index, const struct rnic_port_config *config)
{
	static const uint8_t zero[6];
	struct rnic_port *port = &rnic->port[index];

	if ((config->mac[0] & 1) || memcmp(config->mac, zero, sizeof(zero)) == 0)
		return -EINVAL;
	for (unsigned i = 0; i < index; i++)
		if (memcmp(config->mac, rnic->port[i].mac, sizeof(port->mac)) == 0)
			return -EINVAL;
	if (config->mtu < MIN_MTU || config->mtu > MAX_MTU)
		return -EINVAL;
	memcpy(port->mac, config->mac, sizeof(port->mac));
	port->mtu = config->mtu;
	for (unsigned code = IBV_MTU_256; code <= IBV_MTU_4096; code++) {
		if (roce_mtu_bytes(code) + RNIC_MTU_ROOM <= config->mtu)
			port->active_mtu = (enum ibv_mtu)code;
	}
	port->up = true;
	return set_addresses(rnic, index, config);
}

int ports_init(struct rnic *rnic, const struct rnic_config *config)
{
	int err = 0;

	rnic->n_ports = config->n_ports > 0 ? config->n_ports : 1;
	if (rnic->n_ports > RNIC_MAX_PORTS)
		return -EINVAL;
	rnic->up = (1u << rnic->n_ports) - 1;
	for (unsigned i = 0; err == 0 && i < rnic->n_ports; i++)
		err = init_port(rnic, i, &config->port[i]);
	return err;
}

static int alloc_replies(struct rnic_port *port)
{
	/* An echo request is as large as the port's packets, an own frame as the RoCE MTU. */
	port->reply_cap = port->mtu + ETH_HDR_LEN + VLAN_HDR_LEN;
	for (unsigned i = 0; i < N_REPLIES; i++) {
		port->reply[i].bytes = malloc(port->reply_cap);
		if (port->reply[i].bytes == NULL)
			return -ENOMEM;
	}
	return 0;
}

int ports_alloc(struct rnic *rnic)
{
	int err = 0;

	for (unsigned i = 0; err == 0 && i < rnic->n_ports; i++) {
		err = alloc_replies(&rnic->port[i]);
		if (rnic->port[i].reply_cap > rnic->scratch_cap)
			rnic->scratch_cap = rnic->port[i].reply_cap;
	}
	if (err == 0)
		rnic->scratch = malloc(rnic->scratch_cap);
	return err == 0 && rnic->scratch == NULL ? -ENOMEM : err;
}

void ports_free(struct rnic *rnic)
{
	for (unsigned i = 0; i < RNIC_MAX_PORTS; i++)
		for (unsigned j = 0; j < N_REPLIES; j++)
			free(rnic->port[i].reply[j].bytes);
	free(rnic->scratch);
}

/* ---- queries ---- */

unsigned rnic_n_ports(const struct rnic *rnic)
{
	return rnic->n_ports;
}

enum ibv_mtu rnic_active_mtu(const struct rnic *rnic, unsigned port)
{
	return rnic->port[port].active_mtu;
}

unsigned rnic_gid_count(const struct rnic *rnic, unsigned port)
{
	return rnic->port[port].n_gid;
}

int rnic_gid(const struct rnic *rnic, unsigned port, unsigned index, struct wire_ip *ip)
{
	if (port >= rnic->n_ports || index >= rnic->port[port].n_gid)
		return -EINVAL;
	*ip = rnic->port[port].gid[index];
	return 0;
}

void rnic_mac(const struct rnic *rnic, unsigned port, uint8_t mac[6])
{
	memcpy(mac, rnic->port[port].mac, sizeof(rnic->port[port].mac));
}

uint64_t rnic_port_count(const struct rnic *rnic, unsigned port, enum rnic_port_counter c)
{
	return rnic->port[port].count[c] + workers_port_count(rnic, port, c);
}

int rnic_own_ip(const struct rnic *rnic, unsigned port, const struct wire_ip *ip)
{
	const struct rnic_port *p = &rnic->port[port];

	for (unsigned i = 0; i < p->n_gid; i++) {
		if (wire_ip_eq(&p->gid[i], ip))
			return (int)i;
	}
	return -1;
}

/* ---- link ---- */

static void tell(struct rnic_qp *qp, unsigned port, bool up, uint64_t now)
{
	if (!qp->ops->several_ports && qp->path.port != port)
		return;
	qp->refused = qp->control_refused = 0;
	if (qp->ops->port != NULL && qp_receives(qp))
		qp->ops->port(qp, port, up, now);
}

void rnic_port_set(struct rnic *rnic, unsigned port, bool up, uint64_t now)
{
	struct rnic_port *p = &rnic->port[port];

	if (p->up == up)
		return;
	p->up = up;
	rnic->up ^= 1u << port;
	p->count[RNIC_PORT_C_DOWNS] += !up;
	for (uint32_t i = 0; i < rnic->max_qp; i++)
		if (rnic->qp[i] != NULL)
			tell(rnic->qp[i], port, up, now);
	rnic_lldp_link(rnic, port, now);
	if (rnic->events.port_event != NULL)
		rnic->events.port_event(
			rnic->events.arg, port, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
	if (cq_unsettled(rnic))
		cq_settle(rnic);
}

bool rnic_port_is_up(const struct rnic *rnic, unsigned port)
{
	return rnic->port[port].up;
}

/* ---- frames that wait ---- */

uint8_t *rnic_reply(struct rnic *rnic, unsigned port)
{
	const struct rnic_port *p = &rnic->port[port];

	if (p->reply_head - p->reply_tail == N_REPLIES)
		return NULL;
	return p->reply[p->reply_head % N_REPLIES].bytes;
}

void rnic_reply_send(struct rnic *rnic, unsigned port, int len)
{
	struct rnic_port *p = &rnic->port[port];

	if (len <= 0)
		return;
	p->reply[p->reply_head++ % N_REPLIES].len = (uint32_t)len;
	rnic->has_replies |= 1u << port;
	atomic_store_explicit(&rnic->left, true, memory_order_relaxed);
}
