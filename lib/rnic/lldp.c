/* SPDX-License-Identifier: BSD-3-Clause */
/* LLDP: ports say who the host is and hear who is at their other end; the table of lib/lldp decides
 * when and for how long. */
#include "lib/rnic/lldp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/lldp/table.h"
#include "lib/rnic/device.h"

struct lldp_port_says {
	struct timer timer;
	unsigned port;
	char name[RNIC_NAME_LEN];
};

struct rnic_lldp {
	struct lldp_port_says port[RNIC_MAX_PORTS];
	char host[RNIC_HOST_LEN];
	bool stopped;
	struct lldp_table *table;
};

/* ---- life ---- */

static bool is_name(const char *name, size_t cap)
{
	return name[0] != '\0' && memchr(name, '\0', cap) != NULL;
}

static int name_ports(struct rnic *rnic, const struct rnic_config *config)
{
	for (unsigned i = 0; i < rnic->n_ports; i++) {
		struct lldp_port_says *port = &rnic->lldp->port[i];

		if (!is_name(config->port[i].name, sizeof(port->name)))
			return -EINVAL;
		strcpy(port->name, config->port[i].name);
		port->port = i;
		port->timer.kind = TIMER_LLDP;
		/* Nobody has told the time yet. */
		timer_set(&rnic->timers, &port->timer, 0);
	}
	return 0;
}

int rnic_lldp_init(struct rnic *rnic, const struct rnic_config *config)
{
	if (!config->lldp)
		return 0;
	if (!is_name(config->host, sizeof(config->host)))
		return -EINVAL;
	rnic->lldp = calloc(1, sizeof(*rnic->lldp));
	if (rnic->lldp == NULL)
		return -ENOMEM;
	strcpy(rnic->lldp->host, config->host);
	rnic->lldp->table = lldp_table_new(rnic->n_ports);
	return rnic->lldp->table == NULL ? -ENOMEM : name_ports(rnic, config);
}

void rnic_lldp_free(struct rnic *rnic)
{
	if (rnic->lldp != NULL)
		free(rnic->lldp->table);
	free(rnic->lldp);
}

/* ---- out ---- */

/* False: too much waits for the port already. */
static bool put(struct rnic *rnic, unsigned port, const struct wire_lldp *says)
{
	const struct rnic_port *p = &rnic->port[port];
	uint8_t *out = rnic_reply(rnic, port);

	if (out == NULL)
		return false;
	rnic_reply_send(rnic, port, wire_build_lldp(out, p->reply_cap, p->mac, says));
	return true;
}

static void speak(struct rnic *rnic, unsigned port)
{
	struct rnic_lldp *l = rnic->lldp;
	const struct wire_lldp says =
		lldp_introduce(rnic->port[0].mac, l->port[port].name, l->host);

	l->table->count.sent += put(rnic, port, &says); /* or when the next is due */
}

void rnic_lldp_stop(struct rnic *rnic)
{
	struct rnic_lldp *l = rnic->lldp;

	if (l == NULL || l->stopped)
		return;
	l->stopped = true;
	for (unsigned i = 0; i < rnic->n_ports; i++) {
		const struct wire_lldp says = lldp_goodbye(rnic->port[0].mac, l->port[i].name);

		timer_stop(&l->port[i].timer);
		if (rnic->port[i].up)
			put(rnic, i, &says);
	}
}

/* ---- turns ---- */

static void count(struct rnic *rnic)
{
	const struct lldp_counters *c = &rnic->lldp->table->count;

	rnic->count[RNIC_C_LLDP_SENT] = c->sent;
	rnic->count[RNIC_C_LLDP_HEARD] = c->heard;
	rnic->count[RNIC_C_LLDP_EXPIRED] = c->expired;
	rnic->count[RNIC_C_LLDP_REFUSED] = c->refused;
}

static void turn(struct rnic *rnic, unsigned port, uint64_t now)
{
	struct rnic_lldp *l = rnic->lldp;

	if (lldp_turn(l->table, port, rnic->port[port].up, now))
		speak(rnic, port);
	timer_set(&rnic->timers, &l->port[port].timer, lldp_due(l->table, port));
	count(rnic);
}

void rnic_lldp_timer(struct rnic *rnic, struct timer *timer, uint64_t now)
{
	turn(rnic, ((struct lldp_port_says *)timer)->port, now);
}

void rnic_lldp_link(struct rnic *rnic, unsigned port, uint64_t now)
{
	if (rnic->lldp != NULL && !rnic->lldp->stopped)
		turn(rnic, port, now);
}

/* ---- in ---- */

bool rnic_lldp_reads(const struct rnic *rnic, const uint8_t *frame, size_t len)
{
	return rnic->lldp != NULL && wire_is_lldp(frame, len);
}

unsigned rnic_lldp_rx(
	struct rnic *rnic, unsigned port, const uint8_t *frame, size_t len, uint64_t now)
{
	struct rnic_lldp *l = rnic->lldp;
	enum wire_lldp_error error;
	struct wire_lldp says;

	if (l->stopped)
		return RNIC_DROP_NOT_ROCE;
	error = wire_lldp_parse(frame, len, &says);
	if (error != WIRE_LLDP_OK)
		return RNIC_DROP_LLDP_TLV - WIRE_LLDP_TLV + (unsigned)error;
	lldp_heard(l->table, port, &says, now);
	turn(rnic, port, now);
	return 0;
}

const struct lldp_neighbour *rnic_lldp_neighbour(
	const struct rnic *rnic, unsigned port, unsigned *at)
{
	while (rnic->lldp != NULL && *at < LLDP_PER_PORT) {
		const struct lldp_neighbour *n = &rnic->lldp->table->port[port].neighbour[(*at)++];

		if (n->used)
			return n;
	}
	return NULL;
}
