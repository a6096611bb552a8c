/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/lldp/table.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t SECOND_NS = UINT64_C(1000000000);

struct lldp_table *lldp_table_new(unsigned n_ports)
{
	struct lldp_table *t = calloc(1, sizeof(*t) + n_ports * sizeof(t->port[0]));

	if (t != NULL)
		t->n_ports = n_ports;
	return t;
}

/* A neighbour is a chassis and a port of it (8.2). NULL: he is not known. */
static struct lldp_neighbour *find(struct lldp_port *p, const struct wire_lldp *says)
{
	for (unsigned i = 0; i < LLDP_PER_PORT; i++) {
		struct lldp_neighbour *n = &p->neighbour[i];

		if (n->used && wire_lldp_id_eq(&n->says.chassis, &says->chassis) &&
			wire_lldp_id_eq(&n->says.port, &says->port))
			return n;
	}
	return NULL;
}

static struct lldp_neighbour *place(struct lldp_port *p)
{
	for (unsigned i = 0; i < LLDP_PER_PORT; i++)
		if (!p->neighbour[i].used)
			return &p->neighbour[i];
	return NULL;
}

/* Somebody new shall not wait for us until our turn comes. */
static void speed_up(struct lldp_port *p, uint64_t now)
{
	if (p->fast > 0)
		return;
	p->fast = LLDP_FAST;
	if (p->next > now + LLDP_FAST_NS)
		p->next = now + LLDP_FAST_NS;
}

void lldp_heard(struct lldp_table *t, unsigned port, const struct wire_lldp *says, uint64_t now)
{
	struct lldp_port *p = &t->port[port];
	struct lldp_neighbour *n = find(p, says);
	const uint64_t kept_s = says->ttl < LLDP_KEPT_S ? says->ttl : LLDP_KEPT_S;

	t->count.heard++;
	if (says->ttl == 0) {
		if (n != NULL)
			n->used = false;
		return;
	}
	if (n == NULL) {
		n = place(p);
		if (n == NULL) {
			t->count.refused++;
			return;
		}
		speed_up(p, now);
	}
	*n = (struct lldp_neighbour){
		.used = true, .heard = now, .until = now + kept_s * SECOND_NS, .says = *says};
}

bool lldp_turn(struct lldp_table *t, unsigned port, bool up, uint64_t now)
{
	struct lldp_port *p = &t->port[port];

	if (!up) {
		memset(p, 0, sizeof(*p));
		return false;
	}
	if (!p->up) {
		p->up = true;
		p->fast = LLDP_FAST;
		p->next = now;
	}
	for (unsigned i = 0; i < LLDP_PER_PORT; i++)
		if (p->neighbour[i].used && now >= p->neighbour[i].until) {
			p->neighbour[i].used = false;
			t->count.expired++;
		}
	if (now < p->next)
		return false;
	p->fast -= p->fast > 0;
	p->next = now + (p->fast > 0 ? LLDP_FAST_NS : LLDP_EVERY_NS);
	return true;
}

uint64_t lldp_due(const struct lldp_table *t, unsigned port)
{
	const struct lldp_port *p = &t->port[port];
	uint64_t due = p->up ? p->next : UINT64_MAX;

	for (unsigned i = 0; i < LLDP_PER_PORT; i++)
		if (p->neighbour[i].used && p->neighbour[i].until < due)
			due = p->neighbour[i].until;
	return due;
}

unsigned lldp_neighbours(const struct lldp_table *t)
{
	unsigned n = 0;

	for (unsigned port = 0; port < t->n_ports; port++)
		for (unsigned i = 0; i < LLDP_PER_PORT; i++)
			n += t->port[port].neighbour[i].used;
	return n;
}

/* ---- what is said ---- */

static uint8_t put_name(uint8_t to[LLDP_ID_MAX], const char *name)
{
	const size_t len = strnlen(name, LLDP_ID_MAX);

	memcpy(to, name, len);
	return (uint8_t)len;
}

struct wire_lldp lldp_goodbye(const uint8_t chassis[6], const char *port)
{
	struct wire_lldp says = {.ttl = 0,
		.chassis = {.type = LLDP_CHASSIS_MAC, .len = 6},
		.port = {.type = LLDP_PORT_INTERFACE}};

	memcpy(says.chassis.b, chassis, says.chassis.len);
	says.port.len = put_name(says.port.b, port);
	return says;
}

struct wire_lldp lldp_introduce(const uint8_t chassis[6], const char *port, const char *system)
{
	struct wire_lldp says = lldp_goodbye(chassis, port);

	says.ttl = LLDP_TTL_S;
	says.name_len = put_name(says.name, system);
	return says;
}
