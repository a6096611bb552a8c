/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ctl/fake_switch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctrl/config/switch_config.h"

/* ---- tables ---- */

unsigned sw_routes_nowhere(const struct sw *sw)
{
	(void)sw;
	return 0;
}

/* Rows of classes are counted: one packet more each. */
bool sw_table_hits(const struct sw *sw, unsigned table, unsigned row, uint64_t *hits)
{
	(void)sw;
	*hits = row + 1;
	return table == 2;
}

static const struct table_desc neighbours = {
	.name = "neighbours",
	.help = "MAC addresses of directly reachable hosts",
	.size = 8,
	.n_keys = 1,
	.keys = {{.name = "ip", .help = "address of the host", .type = TABLE_IP}},
	.n_actions = 1,
	.actions = {{.name = "set",
		.help = "reachable at",
		.n_params = 3,
		.params = {{.name = "mac", .help = "its MAC", .type = TABLE_MAC},
			{.name = "port", .help = "out of", .type = TABLE_PORT},
			{.name = "vlan",
				.help = "tagged with",
				.min = 1,
				.max = 4094,
				.optional = true}}}},
};

static const struct table_desc routes = {
	.name = "routes",
	.node = "forward",
	.miss = "no_route",
	.help = "where networks are",
	.size = 200000,
	.n_keys = 1,
	.keys = {{.name = "dst", .help = "network", .type = TABLE_IP, .match = TABLE_LPM}},
	.n_actions = 2,
	.actions = {{.name = "via",
			    .help = "through a router",
			    .n_params = 1,
			    .params = {{.name = "hop", .help = "the router", .type = TABLE_IP}}},
		{.name = "blackhole", .help = "drop"}},
};

static const struct table_desc classes = {
	.name = "classes",
	.help = "what becomes of packets",
	.size = 16,
	.n_keys = 4,
	.keys = {{.name = "type", .help = "EtherType", .match = TABLE_TERNARY, .max = 0xffff},
		{.name = "dport", .help = "UDP port", .match = TABLE_RANGE, .max = 65535},
		{.name = "tagged", .help = "has a VLAN tag", .type = TABLE_BOOL},
		{.name = "in", .help = "received from", .type = TABLE_PORT}},
	.n_actions = 1,
	.actions = {{.name = "mark",
		.help = "set fields",
		.n_params = 2,
		.params = {{.name = "dscp", .help = "value", .max = 63},
			{.name = "cookie", .help = "any number", .optional = true}}}},
};

/* As in the real switch, which enters its own "addresses" here. */
static const struct table_desc local_addr = {
	.name = "local_addr",
	.help = "addresses of the switch",
	.size = 4,
	.n_keys = 1,
	.keys = {{.name = "ip", .help = "address", .type = TABLE_IP}},
	.n_actions = 1,
	.actions = {{.name = "local", .help = "for the switch"}},
};

static int publish(void *arg, const struct table_rows *tables, unsigned n, struct table_error *err)
{
	struct sw *sw = arg;

	(void)tables, (void)n;
	sw->publishes++;
	if (!sw->refuse || sw->publishes < sw->refuse)
		return 0;
	snprintf(err->msg, sizeof(err->msg), "no memory for the lookup structure");
	return -ENOMEM;
}

struct sw *fake_switch_create(void)
{
	static const struct table_desc *const descs[] = {
		&neighbours, &routes, &classes, &local_addr};
	struct sw *sw = calloc(1, sizeof(*sw));

	if (!sw || table_registry_create(descs, 4, publish, sw, &sw->tables))
		abort();
	sw->config = json_pack("{s:s,s:s,s:[s],s:i}", "#", "made by a test", "name", "leaf1",
		"addresses", "10.0.0.254", "arena_kb", 64);
	struct table_update own = {.table = 3};
	struct table_error err;
	wire_ip_parse("10.0.0.254", &own.entry.key[0].ip);
	if (table_write(sw->tables, &own, 1, &err))
		abort();
	sw->publishes = 0;
	sw->drops[1] = 7;
	sw->drops[2] = UINT64_MAX - 1;
	return sw;
}

void fake_switch_destroy(struct sw *sw)
{
	table_registry_destroy(sw->tables);
	for (unsigned i = 0; i < INC_GROUP_SLOTS; i++)
		free(sw->group[i]);
	json_decref(sw->config);
	free(sw);
}

uint64_t sw_now(const struct sw *sw)
{
	struct timespec t;

	if (sw->now)
		return sw->now;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

const char *sw_name(const struct sw *sw)
{
	return json_string_value(json_object_get(sw->config, "name"));
}

json_t *sw_config_json(const struct sw *sw)
{
	return json_incref(sw->config);
}

struct table_registry *sw_tables(struct sw *sw)
{
	return sw->tables;
}

void sw_tick(struct sw *sw, uint64_t now_ns)
{
	(void)now_ns;
	sw->ticks++;
}

/* ---- ports and counters ---- */

unsigned sw_n_ports(const struct sw *sw)
{
	return sw && sw->n_ports ? sw->n_ports : 2;
}

int sw_port_get(struct sw *sw, unsigned i, struct sw_port *port)
{
	if (i >= (sw ? sw_n_ports(sw) : SW_MAX_PORTS))
		return -ENOENT;
	/* The DPDK id differs from the index, so that a mix-up shows. */
	*port = (struct sw_port){.id = (uint16_t)(i + 4),
		.mac = {2, 0, 0, 0, 1, (uint8_t)i},
		.mtu = 4200,
		.link = i == 0 && !(sw && sw->unplugged),
		.mbps = sw && i == 0 ? sw->mbps : 0,
		.rx_packets = 10 + i,
		.rx_bytes = 1ULL << (50 + 10 * (i & 1))};
	if (sw && sw->n_ports)
		port->link = !(sw->cut >> i & 1);
	snprintf(port->name, sizeof(port->name), "p%u", i);
	snprintf(port->type, sizeof(port->type), "null");
	return 0;
}

int sw_queue_get(struct sw *sw, unsigned port, unsigned which, struct sw_queue *q)
{
	(void)sw;
	if (port > 1 || which > 1)
		return -ENOENT;
	*q = (struct sw_queue){.name = which ? "data" : "control",
		.packets = 10 * port + which,
		.bytes = 1000,
		.limit_bytes = 2000,
		.count = {7, 1500, 3, 2, 5, 4}};
	snprintf(q->port, sizeof(q->port), "p%u", port);
	return 0;
}

int sw_port_find(struct sw *sw, const char *name)
{
	(void)sw;
	return !strcmp(name, "p0") ? 0 : !strcmp(name, "p1") ? 1 : -ENOENT;
}

void sw_drops(struct sw *sw, sw_drop_fn fn, void *arg)
{
	static const char *const names[] = {"parse_short", "icrc_bad", "inc_source"};
	static const char *const texts[] = {"too short", "wrong CRC", "not a member"};

	for (unsigned i = 0; i < 3; i++)
		fn(arg, names[i], texts[i], sw->drops[i]);
}

void sw_outcomes(struct sw *sw, sw_drop_fn fn, void *arg)
{
	fn(arg, "inc_consumed", "aggregated", sw->drops[1] * 3);
}

void sw_drops_clear(struct sw *sw)
{
	memset(sw->drops, 0, sizeof(sw->drops));
}

void sw_nodes(struct sw *sw, sw_node_fn fn, void *arg)
{
	(void)sw;
	fn(arg, "parse", 3, 100, 4500);
	fn(arg, "end", 0, 0, 0);
}

void sw_values(struct sw *sw, sw_value_fn fn, void *arg)
{
	(void)sw;
	fn(arg, SW_GAUGE, "uptime_ns", "since the start", 123456789);
	fn(arg, SW_GAUGE, "mbufs_free", "buffers left", 4000);
	fn(arg, SW_COUNTER, "emitted", "packets of its own", 17);
}

int sw_port_impair(struct sw *sw, unsigned port, const struct impair *impair, char err[SW_ERR_LEN])
{
	if (impair != NULL && impair->dup != 0) {
		snprintf(err, SW_ERR_LEN, "impair.dup: not here");
		return -EINVAL;
	}
	sw->impaired = impair ? (int)port : -1;
	return 0;
}

int sw_trace_start(struct sw *sw, int port, unsigned n, char err[SW_ERR_LEN])
{
	if (n == 4096) {
		snprintf(err, SW_ERR_LEN, "a trace is running");
		return -EBUSY;
	}
	sw->trace_port = port;
	sw->trace_count = n;
	return 0;
}

unsigned sw_trace_read(struct sw *sw, unsigned from, struct sw_trace_rec *rec, unsigned n)
{
	unsigned k = 0;

	for (; k < n && from + k < 2 * sw->trace_count; k++) {
		rec[k] = (struct sw_trace_rec){.ns = 1000 + from + k, .packet = (from + k) / 2};
		snprintf(rec[k].node, sizeof(rec[k].node), "%s", (from + k) % 2 ? "inc" : "parse");
		/* Not UTF-8: an answer must be made of it all the same. */
		snprintf(rec[k].text, sizeof(rec[k].text), "qpn 0x1000 \xff");
	}
	return k;
}

/* ---- groups ---- */

static int complete(struct inc_group_spec *spec, char err[SW_ERR_LEN])
{
	static const uint8_t none[6];

	for (unsigned i = 0; i < spec->n_ep; i++) {
		struct inc_ep_spec *ep = &spec->ep[i];
		struct sw_port port;

		sw_port_get(NULL, ep->port - 4u, &port);
		memcpy(ep->smac, port.mac, 6);
		if (wire_ip_is_zero(&ep->local_ip))
			wire_ip_parse("10.0.0.254", &ep->local_ip);
		if (memcmp(ep->dmac, none, 6) != 0)
			continue;
		if (ep->remote_ip.b[15] == 99) {
			snprintf(err, SW_ERR_LEN, "endpoints[%u].mac: no neighbour entry", i);
			return -ENOENT;
		}
		memcpy(ep->dmac, (uint8_t[]){2, 0, 0, 0, 0, ep->remote_ip.b[15]}, 6);
	}
	return 0;
}

static unsigned free_slot(const struct sw *sw)
{
	for (unsigned i = 1; i < INC_GROUP_SLOTS; i++)
		if (!sw->group[i])
			return i;
	return 0;
}

int sw_group_create(struct sw *sw, struct inc_group_spec *spec, bool activate, unsigned *slot,
	char err[SW_ERR_LEN])
{
	char text[INC_ERR_LEN] = "";
	int rc = complete(spec, err);

	if (!rc && sw_group_find(sw, spec->name) >= 0) {
		snprintf(err, SW_ERR_LEN, "name: a group of this name exists");
		rc = -EEXIST;
	}
	if (rc)
		return rc;
	rc = inc_group_check(spec, text);
	unsigned at = free_slot(sw);
	struct inc_group *g = rc ? NULL : calloc(1, inc_group_bytes(spec));
	if (!rc) {
		inc_group_init(g, spec, at, 5, 0);
		rc = activate ? inc_group_activate(g, text) : 0;
	}
	if (!rc && sw->arena) {
		rc = fake_arena_take(sw, at, spec, g->pay_bytes);
		if (rc)
			snprintf(text, sizeof(text), "out of aggregation memory");
	}
	if (rc) {
		snprintf(err, SW_ERR_LEN, "%s", text);
		free(g);
		return rc;
	}
	g->count[INC_C_RX] = 1ULL << 60;
	memcpy(sw->group_lease, spec->lease, sizeof(sw->group_lease));
	memcpy(sw->group_tenant, spec->tenant, sizeof(sw->group_tenant));
	sw->group[at] = g;
	*slot = at;
	return 0;
}

int sw_group_activate(
	struct sw *sw, unsigned slot, const uint32_t *qpn, unsigned n_qpn, char err[SW_ERR_LEN])
{
	struct inc_group *g = sw->group[slot];
	char text[INC_ERR_LEN] = "";

	for (unsigned i = 0; i < n_qpn; i++)
		if (qpn[i])
			inc_ep_at(g, i)->remote_qpn = qpn[i];
	int rc = inc_group_activate(g, text);
	snprintf(err, SW_ERR_LEN, "%s", text);
	return rc;
}

int sw_group_rebind(struct sw *sw, unsigned slot, bool bound, char err[SW_ERR_LEN])
{
	struct inc_group *g = sw->group[slot];
	uint64_t eps;
	uint32_t psn;

	if (inc_group_busy(g, &psn, &eps)) {
		snprintf(err, SW_ERR_LEN, "an operation is not finished: PSN %u", psn);
		return -EBUSY;
	}
	inc_group_rebind(g, bound ? 0 : INC_NO_ARENA);
	return 0;
}

int sw_group_resync(struct sw *sw, unsigned slot, uint32_t psn, bool *done, char err[SW_ERR_LEN])
{
	struct inc_group *g = sw->group[slot];

	*done = inc_group_is_anew(g);
	if (psn != g->next_ctrl) {
		snprintf(err, SW_ERR_LEN, "psn: the next operation's is %u", g->next_ctrl);
		return -EINVAL;
	}
	inc_group_resync(g);
	return 0;
}

/* ---- two workers ---- */

int sw_group_move(struct sw *sw, unsigned slot, unsigned worker, char err[SW_ERR_LEN])
{
	if (worker >= sw_n_workers(sw)) {
		snprintf(err, SW_ERR_LEN, "worker: there are %u, from 0 on", sw_n_workers(sw));
		return -ENOENT;
	}
	sw->worker[slot] = worker;
	return 0;
}

unsigned sw_group_worker(const struct sw *sw, unsigned slot)
{
	return sw->worker[slot];
}

unsigned sw_n_workers(const struct sw *sw)
{
	(void)sw;
	return 2;
}

int sw_worker_get(struct sw *sw, unsigned i, struct sw_worker *worker)
{
	*worker = (struct sw_worker){.cpu = i ? 3 : -1,
		.socket = 0,
		.handed_over = i,
		.turns = i < 2 ? sw->turns[i] : 0};
	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++)
		worker->groups += sw->group[slot] != NULL && sw->worker[slot] == i;
	return i < 2 ? 0 : -ENOENT;
}

/* ---- their end ---- */

int sw_group_delete(struct sw *sw, unsigned slot, bool force, char err[SW_ERR_LEN])
{
	struct inc_group *g = sw->group[slot];

	(void)err;
	if (!force && inc_group_set_state(g, INC_ACTIVE, INC_DRAINING))
		return 0;
	fake_lease_leave(sw, slot);
	free(g);
	sw->group[slot] = NULL;
	return 0;
}

int sw_group_fail(struct sw *sw, unsigned slot, char err[SW_ERR_LEN])
{
	struct inc_group *g = sw->group[slot];

	if (g->state != INC_ACTIVE) {
		snprintf(err, SW_ERR_LEN, "state: group is %s, must be active",
			inc_state_name(g->state));
		return -EBUSY;
	}
	inc_group_fail(g, INC_FAIL_MANAGER, 0xff);
	return 0;
}

struct inc_group *sw_group_get(struct sw *sw, unsigned slot)
{
	return slot < INC_GROUP_SLOTS ? sw->group[slot] : NULL;
}

int sw_group_find(struct sw *sw, const char *name)
{
	for (unsigned i = 0; i < INC_GROUP_SLOTS; i++)
		if (sw->group[i] && !strcmp(sw->group[i]->name, name))
			return (int)i;
	return -ENOENT;
}

void sw_arena_usage(struct sw *sw, uint64_t *size, uint64_t *used)
{
	*size = sw->arena ? sw->arena : 65536;
	*used = sw->arena ? 0 : 1024;
	for (unsigned i = 0; sw->arena && i < INC_GROUP_SLOTS; i++)
		*used += sw->group[i] && !fake_lease_has(sw, i) ? sw->group[i]->pay_bytes : 0;
	*used += sw->arena ? fake_leases_bytes(sw) : 0;
}

void fake_switch_arrived(struct sw *sw, unsigned slot, uint32_t psn, uint64_t eps)
{
	struct inc_slot *s = inc_slot_at(sw->group[slot], psn);

	s->tag = psn;
	s->arrived = eps;
}

/* ---- rings: the real blocks, without packets ---- */

static struct nr_ring *fake_rings[NR_MAX_RINGS];

int sw_ring_create(
	struct sw *sw, struct nr_spec *spec, bool activate, unsigned *ring, char err[SW_ERR_LEN])
{
	struct nr_ring *r;
	int rc = nr_check(spec, err);

	if (rc)
		return rc;
	if (sw_ring_find(sw, spec->name) >= 0) {
		snprintf(err, SW_ERR_LEN, "name: there is a ring \"%s\" already", spec->name);
		return -EEXIST;
	}
	for (*ring = 0; fake_rings[*ring];)
		++*ring;
	r = fake_rings[*ring] = calloc(1, nr_ring_bytes(spec));
	nr_init(r, spec, 4032 + *ring, 0, 0);
	return activate ? nr_activate(r, err) : 0;
}

int sw_ring_activate(struct sw *sw, unsigned ring, const uint32_t qpn[NR_MAX_IN],
	uint32_t parent_qpn, char err[SW_ERR_LEN])
{
	struct nr_ring *r = sw_ring_get(sw, ring);

	for (unsigned i = 0; i < r->n_in; i++)
		if (qpn[i])
			nr_in_at(r, i)->remote_qpn = qpn[i];
	if (parent_qpn)
		r->parent_qpn = parent_qpn;
	return nr_activate(r, err);
}

int sw_ring_fail(struct sw *sw, unsigned ring, char err[SW_ERR_LEN])
{
	(void)err;
	nr_set_failed(sw_ring_get(sw, ring));
	return 0;
}

int sw_ring_delete(struct sw *sw, unsigned ring, char err[SW_ERR_LEN])
{
	(void)sw, (void)err;
	free(fake_rings[ring]);
	fake_rings[ring] = NULL;
	return 0;
}

struct nr_ring *sw_ring_get(struct sw *sw, unsigned ring)
{
	(void)sw;
	return ring < NR_MAX_RINGS ? fake_rings[ring] : NULL;
}

int sw_ring_find(struct sw *sw, const char *name)
{
	(void)sw;
	for (int i = 0; i < NR_MAX_RINGS; i++)
		if (fake_rings[i] && strcmp(fake_rings[i]->name, name) == 0)
			return i;
	return -ENOENT;
}
