/* SPDX-License-Identifier: BSD-3-Clause */
/* What the books of a switch stand on here (dataplane/runtime/host_ops.h), and what else its agent
 * asks of it (dataplane/switch.h). There are no workers: what is to be freed later can be freed at
 * once. */
#include "lib/sim/agent.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ctrl/config/switch_config.h"
#include "dataplane/runtime/host_ops.h"
#include "dataplane/sw.h"

struct sim_agent {
	struct sw sw; /* only what the books use of it */
	struct sim *sim;
	unsigned index;
	struct agent *agent;
	uint64_t due; /* of housekeeping; UINT64_MAX: none */
};

/* As incline-switch has them. */
static const uint64_t SLOT_REST_NS = 10000000000, DRAIN_NS = 2000000000, LEASE_TICK_NS = 100000000;

static struct sim_agent *agent_of(const struct sw *sw)
{
	return (struct sim_agent *)(uintptr_t)sw;
}

static struct sim_node_switch *node_of(const struct sw *sw)
{
	return &agent_of(sw)->sim->sw[agent_of(sw)->index];
}

/* ---- life ---- */

static int open_arena(struct sim_agent *a)
{
	struct inc_arena *arena = &a->sim->sw[a->index].pub.arena;
	void *p = mmap(NULL, SIM_ARENA_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	arena->base = p;
	arena->size = SIM_ARENA_BYTES;
	inc_ranges_init(a->sw.arena, SIM_ARENA_BYTES);
	return 0;
}

int sim_agent_open(struct sim *sim, unsigned i)
{
	struct sim_node_switch *s = &sim->sw[i];
	struct sim_agent *a = calloc(1, sizeof(*a));
	int rc = a ? 0 : -ENOMEM;

	if (rc)
		return rc;
	a->sim = sim;
	a->index = i;
	a->due = UINT64_MAX;
	a->sw.groups = &s->pub.table;
	a->sw.arena = calloc(1, sizeof(*a->sw.arena));
	a->sw.leases = sw_leases_create();
	a->sw.config.slot_rest_ns = SLOT_REST_NS;
	a->sw.config.drain_ns = DRAIN_NS;
	a->sw.config.stall_ns = UINT64_MAX; /* whoever simulates sees it */
	snprintf(a->sw.config.name, sizeof(a->sw.config.name), "%s", sim->topo->sw[i].name);
	s->agent = a;
	if (!a->sw.arena || !a->sw.leases)
		rc = -ENOMEM;
	if (rc == 0)
		rc = table_registry_create(NULL, 0, NULL, NULL, &a->sw.tables);
	if (rc == 0)
		rc = open_arena(a);
	return rc ? rc : agent_create(&a->sw, NULL, &a->agent);
}

void sim_agent_close(struct sim_agent *a)
{
	struct inc_arena *arena;

	if (!a)
		return;
	arena = &a->sim->sw[a->index].pub.arena;
	if (a->sw.arena && a->sw.leases) {
		sw_groups_destroy(&a->sw);
		sw_rings_destroy(&a->sw);
	}
	if (arena->base)
		munmap(arena->base, arena->size);
	agent_destroy(a->agent);
	if (a->sw.tables)
		table_registry_destroy(a->sw.tables);
	sw_leases_destroy(a->sw.leases);
	free(a->sw.arena);
	free(a);
}

/* The switch asks the groups up to here for their timers. */
static void count_slots(struct sim_agent *a)
{
	struct sim_switch *s = &a->sim->sw[a->index].pub;

	s->n_slots = INC_GROUP_SLOTS;
	while (s->n_slots > 0 && !s->table.group[s->n_slots - 1])
		s->n_slots--;
	s->arena_used = a->sw.arena->used;
	s->n_rings = a->sw.n_rings;
	s->n_groups = a->sw.n_groups;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return b != 0 && b < a ? b : a;
}

/* After anything that may have changed. */
static void look_around(struct sim_agent *a)
{
	uint64_t next = UINT64_MAX;

	count_slots(a);
	for (unsigned i = 0; i < a->sim->sw[a->index].pub.n_slots; i++)
		next = sooner(
			sooner(next, a->sw.slot[i].drain_until), a->sw.slot[i].activate_until);
	for (unsigned i = 0; i < NR_MAX_RINGS && a->sw.n_rings; i++)
		if (a->sw.ring[i] && a->sw.ring[i]->state == NR_INSTALLED)
			next = sooner(next, a->sw.ring_activate[i]);
	for (unsigned i = 0; i < SW_MAX_LEASES; i++)
		if (a->sw.leases->lease[i].holder[0])
			next = sooner(next, a->sim->now + LEASE_TICK_NS);
	a->due = sooner(next, agent_due(a->agent));
}

void sim_agent_peer_gone(struct sim_agent *a, struct agent_peer *peer)
{
	agent_peer_gone(a->agent, peer);
	look_around(a);
}

char *sim_agent_request(struct sim_agent *a, struct agent_peer *peer, const char *line, size_t len)
{
	char *answer = agent_handle_line(a->agent, peer, line, len);

	look_around(a);
	return answer;
}

uint64_t sim_agent_tick(struct sim_agent *a)
{
	if (a->due <= a->sim->now) {
		sw_tick(&a->sw, a->sim->now);
		agent_tick(a->agent, a->sim->now);
		look_around(a);
	}
	return a->due;
}

const struct nr_clt *sim_agent_clt(const struct sim_agent *a)
{
	return a ? atomic_load(&a->sw.clt) : NULL;
}

/* ---- what the books ask of their host ---- */

uint64_t sw_now(const struct sw *sw)
{
	return agent_of(sw)->sim->now;
}

void sw_defer(struct sw *sw, void (*run)(struct sw *sw, void *what), void *what)
{
	run(sw, what);
}

/* A simulated switch learns no members. */
void sw_membership_tick(struct sw *sw, uint64_t now)
{
	(void)sw, (void)now;
}

/* Nor neighbours, nor where addresses are. */
void sw_neigh_tick(struct sw *sw, uint64_t now)
{
	(void)sw, (void)now;
}

void sw_lldp_tick(struct sw *sw, uint64_t now)
{
	(void)sw, (void)now;
}

void sw_bridge_tick(struct sw *sw, uint64_t now)
{
	(void)sw, (void)now;
}

/* Nor do its routes ask for links. */
void sw_links_tick(struct sw *sw, uint64_t now)
{
	(void)sw, (void)now;
}

void sw_log_mismatches(struct sw *sw)
{
	(void)sw;
}

void sw_defer_unread(struct sw *sw, unsigned slot, size_t bytes,
	void (*run)(struct sw *sw, void *what), void *what)
{
	(void)slot, (void)bytes;
	run(sw, what);
}

void sw_reclaim(struct sw *sw)
{
	(void)sw;
}

void *sw_host_alloc(size_t bytes)
{
	void *block = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (block)
		memset(block, 0, bytes);
	return block;
}

void sw_host_free(void *block)
{
	free(block);
}

static void port_name(unsigned i, char name[PORT_NAME_LEN])
{
	snprintf(name, PORT_NAME_LEN, "p%u", i);
}

int sw_host_port(const struct sw *sw, uint16_t id, struct sw_host_port *port)
{
	if (id >= node_of(sw)->n_ports)
		return -ENOENT;
	port_name(id, port->name);
	port->mtu = (uint16_t)agent_of(sw)->sim->topo->mtu;
	sim_switch_mac(agent_of(sw)->index, port->mac);
	return 0;
}

int sw_host_path(const struct sw *sw, const struct wire_ip *ip, struct sw_host_path *path)
{
	struct sim *sim = agent_of(sw)->sim;
	const unsigned n_hosts = sim->topo->n_hosts;
	const int node = sim_node_of(sim, ip);
	unsigned peer;
	int port;

	if (node < 0 || node == (int)(n_hosts + agent_of(sw)->index))
		return -ENOENT;
	port = sim_port_to_node(sim, agent_of(sw)->index, (unsigned)node);
	if (port < 0)
		return -ENOENT;
	*path = (struct sw_host_path){.port = (uint16_t)port, .mtu = (uint16_t)sim->topo->mtu};
	peer = node_of(sw)->port[port].node;
	if (peer < n_hosts)
		sim_host_mac(peer, path->dmac);
	else
		sim_switch_mac(peer - n_hosts, path->dmac);
	return 0;
}

static const struct wire_ip *own_ip(const struct sw *sw)
{
	return &agent_of(sw)->sim->topo->sw[agent_of(sw)->index].ip;
}

/* What is sent is copied. */
bool sw_host_is_read(const struct sw *sw, unsigned slot)
{
	(void)sw, (void)slot;
	return false;
}

bool sw_host_is_local(const struct sw *sw, const struct wire_ip *ip)
{
	return wire_ip_eq(ip, own_ip(sw));
}

int sw_host_address(const struct sw *sw, const struct wire_ip *like, struct wire_ip *ip)
{
	*ip = *own_ip(sw);
	return wire_ip_is4(ip) == wire_ip_is4(like) ? 0 : -ENOENT;
}

int sw_rnic_make(struct sw *sw, struct inc_group *g, char *err)
{
	return sim_mode1_make(agent_of(sw)->sim, agent_of(sw)->index, g, err);
}

int sw_rnic_connect(struct sw *sw, struct inc_group *g, char *err)
{
	return sim_mode1_connect(agent_of(sw)->sim, agent_of(sw)->index, g, err);
}

void sw_rnic_stop(struct sw *sw, const struct inc_group *g)
{
	if (g->mode == INC_MODE_1)
		sim_mode1_stop(agent_of(sw)->sim, agent_of(sw)->index, g->slot);
}

void sw_rnic_remove(struct sw *sw, const struct inc_group *g)
{
	if (g->mode == INC_MODE_1)
		sim_mode1_forget(agent_of(sw)->sim, agent_of(sw)->index, g->slot);
}

/* A simulated switch is one worker. */
unsigned sw_host_place(const struct sw *sw, const struct wire_ip *own)
{
	(void)sw, (void)own;
	return 0;
}

int sw_group_move(struct sw *sw, unsigned slot, unsigned worker, char err[SW_ERR_LEN])
{
	(void)sw, (void)slot, (void)worker;
	return sw_fail(err, -EOPNOTSUPP, "a simulated switch has one worker");
}

/* ---- what the agent shows ---- */

unsigned sw_group_worker(const struct sw *sw, unsigned slot)
{
	(void)sw, (void)slot;
	return 0;
}

unsigned sw_n_workers(const struct sw *sw)
{
	(void)sw;
	return 0;
}

int sw_worker_get(struct sw *sw, unsigned i, struct sw_worker *worker)
{
	(void)sw, (void)i, (void)worker;
	return -ENOENT;
}

const char *sw_name(const struct sw *sw)
{
	return sw->config.name;
}

json_t *sw_config_json(const struct sw *sw)
{
	return json_pack("{s:s}", "name", sw->config.name);
}

unsigned sw_routes_nowhere(const struct sw *sw)
{
	(void)sw;
	return 0;
}

bool sw_table_hits(const struct sw *sw, unsigned table, unsigned row, uint64_t *hits)
{
	(void)sw, (void)table, (void)row, (void)hits;
	return false;
}

struct table_registry *sw_tables(struct sw *sw)
{
	return sw->tables;
}

unsigned sw_n_ports(const struct sw *sw)
{
	return node_of(sw)->n_ports;
}

int sw_port_get(struct sw *sw, unsigned i, struct sw_port *port)
{
	if (i >= node_of(sw)->n_ports)
		return -ENOENT;
	*port = (struct sw_port){.type = "sim",
		.id = (uint16_t)i,
		.mtu = (uint16_t)agent_of(sw)->sim->topo->mtu,
		.link = true};
	port_name(i, port->name);
	sim_switch_mac(agent_of(sw)->index, port->mac);
	return 0;
}

/* No graph is here. */
bool parse_state(unsigned i, struct parse_state *state)
{
	(void)i, (void)state;
	return false;
}

int sw_stage_get(struct sw *sw, unsigned i, struct sw_stage *stage)
{
	(void)sw, (void)i, (void)stage;
	return -ENOENT;
}

int sw_view_get(const struct sw *sw, unsigned i, struct sw_view *view)
{
	(void)sw, (void)i, (void)view;
	return -ENOENT;
}

/* What waits here, waits in links. */
unsigned sw_neighs(const struct sw *sw, struct neigh_counters *count)
{
	(void)sw;
	*count = (struct neigh_counters){0};
	return 0;
}

int sw_neigh_get(const struct sw *sw, unsigned *at, struct sw_neigh_info *info)
{
	(void)sw, (void)at, (void)info;
	return -ENOENT;
}

const char *sw_lldp_chassis(const struct sw *sw, char text[SW_LLDP_TEXT])
{
	(void)sw;
	text[0] = '\0';
	return text;
}

int sw_lldp_get(const struct sw *sw, unsigned port, unsigned *at, struct sw_lldp_info *info)
{
	(void)sw, (void)port, (void)at, (void)info;
	return -ENOENT;
}

unsigned sw_macs(const struct sw *sw, struct mac_counters *count, uint64_t *held)
{
	(void)sw;
	*count = (struct mac_counters){0};
	*held = 0;
	return 0;
}

int sw_mac_get(const struct sw *sw, unsigned *at, struct sw_mac_info *info)
{
	(void)sw, (void)at, (void)info;
	return -ENOENT;
}

unsigned sw_members(const struct sw *sw, struct sw_member_counters *count)
{
	(void)sw;
	*count = (struct sw_member_counters){0};
	return 0;
}

int sw_member_get(const struct sw *sw, unsigned i, struct sw_member *member)
{
	(void)sw, (void)i, (void)member;
	return -ENOENT;
}

int sw_queue_get(struct sw *sw, unsigned port, unsigned which, struct sw_queue *queue)
{
	(void)sw, (void)port, (void)which, (void)queue;
	return -ENOENT;
}

int sw_port_find(struct sw *sw, const char *name)
{
	char own[PORT_NAME_LEN];

	for (unsigned i = 0; i < node_of(sw)->n_ports; i++) {
		port_name(i, own);
		if (strcmp(own, name) == 0)
			return (int)i;
	}
	return -ENOENT;
}

void sw_drops(struct sw *sw, sw_drop_fn fn, void *arg)
{
	const struct sim_switch *s = &node_of(sw)->pub;

#define X(sym, name, text) fn(arg, name, text, s->inc_drop[INC_DROP_##sym]);
	INC_LOSSES(X)
#undef X
}

void sw_outcomes(struct sw *sw, sw_drop_fn fn, void *arg)
{
	const struct sim_switch *s = &node_of(sw)->pub;

#define X(sym, name, text) fn(arg, name, text, s->inc_drop[INC_DROP_##sym]);
	INC_OUTCOMES(X)
#undef X
}

void sw_drops_clear(struct sw *sw)
{
	(void)sw; /* they are the simulation's result */
}

void sw_nodes(struct sw *sw, sw_node_fn fn, void *arg)
{
	(void)sw, (void)fn, (void)arg;
}

void sw_values(struct sw *sw, sw_value_fn fn, void *arg)
{
	fn(arg, SW_GAUGE, "arena_bytes", "aggregation memory", sw->arena->size);
	fn(arg, SW_GAUGE, "arena_used_bytes", "aggregation memory in use", sw->arena->used);
	fn(arg, SW_GAUGE, "groups", "groups installed", sw->n_groups);
}

void sw_arena_usage(struct sw *sw, uint64_t *size, uint64_t *used)
{
	*size = sw->arena->size;
	*used = sw->arena->used;
}

int sw_port_impair(struct sw *sw, unsigned port, const struct impair *impair, char err[SW_ERR_LEN])
{
	(void)sw, (void)port, (void)impair;
	return sw_fail(err, -EOPNOTSUPP, "a simulated switch has the weather of its scenario");
}

int sw_trace_start(struct sw *sw, int port, unsigned n, char err[SW_ERR_LEN])
{
	(void)sw, (void)port, (void)n;
	return sw_fail(err, -EOPNOTSUPP, "a simulated switch traces nothing: capture its links");
}

unsigned sw_trace_read(struct sw *sw, unsigned from, struct sw_trace_rec *rec, unsigned n)
{
	(void)sw, (void)from, (void)rec, (void)n;
	return 0;
}

int sw_capture_start(
	struct sw *sw, const struct sw_capture_spec *spec, uint32_t *id, char err[SW_ERR_LEN])
{
	(void)sw, (void)spec, (void)id;
	return sw_fail(err, -EOPNOTSUPP, "a simulated switch captures nothing: capture its links");
}

int sw_capture_read(
	struct sw *sw, uint32_t id, unsigned n, size_t bytes, sw_captured_fn fn, void *arg)
{
	(void)sw, (void)id, (void)n, (void)bytes, (void)fn, (void)arg;
	return -ENOENT;
}

int sw_capture_stop(struct sw *sw, uint32_t id)
{
	(void)sw, (void)id;
	return -ENOENT;
}

int sw_capture_get(struct sw *sw, unsigned i, struct sw_capture_info *info)
{
	(void)sw, (void)i, (void)info;
	return -ENOENT;
}
