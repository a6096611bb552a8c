/* SPDX-License-Identifier: BSD-3-Clause */
/* The world: events, frames, links. */
#include "lib/sim/sim.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/sim/control_priv.h"
#include "lib/sim/priv.h"
#include "lib/wire/outer.h"

enum { SMALL = 256, START_NS = 1000000 };

/* ---- events: a heap by time, then by order of making. Four children each lie in two lines of the
 * cache, and half as many levels are missed there as with two ---- */

enum { FAN_OUT = 4, CACHE_LINE = 64 };
_Static_assert(FAN_OUT * sizeof(struct sim_event) == 2 * CACHE_LINE, "children fill lines");

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

/* The second event, the first child, begins a line. */
static void more_events(struct sim *sim)
{
	const unsigned cap = sim->cap_events ? 2 * sim->cap_events : 1024;
	const size_t room = CACHE_LINE - sizeof(struct sim_event);
	uint8_t *memory = aligned_alloc(
		CACHE_LINE, (cap + CACHE_LINE / sizeof(struct sim_event)) * sizeof(*sim->heap));

	if (!memory)
		abort();
	if (sim->cap_events)
		memcpy(memory + room, sim->heap, sim->cap_events * sizeof(*sim->heap));
	free(sim->events);
	sim->events = memory;
	sim->heap = (struct sim_event *)(memory + room);
	sim->cap_events = cap;
}

static void push(struct sim *sim, uint64_t at, struct sim_frame *frame, unsigned index)
{
	const struct sim_event e = {at, sim->order++, frame, index};
	unsigned i = sim->n_events++;

	if (sim->n_events > sim->cap_events)
		more_events(sim);
	for (unsigned up; i > 0; i = up) {
		up = (i - 1) / FAN_OUT;
		if (!before(&e, &sim->heap[up]))
			break;
		sim->heap[i] = sim->heap[up];
	}
	sim->heap[i] = e;
}

/* Of some neighbours, one at least, the first that happens. */
static unsigned earliest(const struct sim *sim, unsigned from)
{
	const unsigned end = from + FAN_OUT < sim->n_events ? from + FAN_OUT : sim->n_events;
	unsigned first = from;

	for (unsigned i = from + 1; i < end; i++)
		if (before(&sim->heap[i], &sim->heap[first]))
			first = i;
	return first;
}

static struct sim_event pop(struct sim *sim)
{
	const struct sim_event top = sim->heap[0], last = sim->heap[--sim->n_events];
	unsigned i = 0;

	for (unsigned child; (child = FAN_OUT * i + 1) < sim->n_events; i = child) {
		child = earliest(sim, child);
		if (!before(&sim->heap[child], &last))
			break;
		sim->heap[i] = sim->heap[child];
	}
	sim->heap[i] = last;
	return top;
}

/* ---- frames: two sizes, recycled ---- */

struct sim_frame *sim_frame_get(struct sim *sim, unsigned len)
{
	const bool full = len > SMALL;
	struct sim_frame *f = sim->free[full];

	if (f) {
		sim->free[full] = f->next;
		__builtin_prefetch(f->next); /* it has lain there for long */
	} else {
		unsigned cap = full ? sim->frame_cap : SMALL;

		f = malloc(sizeof(*f) + cap);
		if (!f)
			abort();
		f->cap = cap;
	}
	f->next = NULL;
	f->len = len;
	f->first = false;
	f->in = 0;
	return f;
}

void sim_frame_put(struct sim *sim, struct sim_frame *f)
{
	const bool full = f->cap > SMALL;

	f->next = sim->free[full];
	sim->free[full] = f;
}

/* ---- links ---- */

static void send_copy(struct sim *sim, unsigned link, const struct sim_frame *f, uint64_t at)
{
	struct sim_frame *copy = sim_frame_get(sim, f->len);

	memcpy(copy->data, f->data, f->len);
	push(sim, at, copy, link);
}

static void trim(const struct sim_link_conf *conf, struct sim_frame *f)
{
	struct wire_outer outer;

	f->len = sim_link_trims_to(conf);
	if (!conf->trim_dscp)
		return;
	outer = wire_outer(f->data, f->len);
	if (outer.ver == 0)
		return;
	wire_outer_cut(f->data, &outer, f->len); /* switches further on look at it */
	wire_outer_set_tos(
		f->data, &outer, (uint8_t)(conf->trim_dscp << 2 | (outer.tos & IP_ECN_MASK)));
}

void sim_transmit(struct sim *sim, unsigned i, struct sim_frame *f, bool ahead)
{
	const struct sim_verdict v = sim_link_send(&sim->link[i], sim->now, f->len, ahead);

	if (v.copies == 0) {
		sim_frame_put(sim, f);
		return;
	}
	if (v.trim)
		trim(&sim->link[i].conf, f);
	if (v.mark)
		sim_mark_ce(f->data, f->len);
	if (v.copies == 2)
		send_copy(sim, i, f, v.at[1]);
	if (v.corrupt)
		f->data[v.bit / 8 % f->len] ^= (uint8_t)(1u << v.bit % 8);
	push(sim, v.at[0], f, i);
}

void sim_send(struct sim *sim, unsigned i, struct sim_frame *f)
{
	const bool ahead = f->first || sim_is_answer(f);

	sim->hops++;
	sim_hash_frame(sim, i, f);
	if (sim->pcap)
		sim_capture_frame(sim, i, f);
	if (sim->tap)
		sim->tap(sim->tap_arg, i, f->data, f->len);
	if (sim->link[i].conf.pfc_xoff)
		sim_queue_put(sim, i, f, ahead && sim->link[i].conf.priority);
	else
		sim_transmit(sim, i, f, ahead);
}

void sim_set_tap(struct sim *sim, sim_tap tap, void *arg)
{
	sim->tap = tap;
	sim->tap_arg = arg;
}

void sim_inject(struct sim *sim, unsigned link, const uint8_t *frame, unsigned len)
{
	struct sim_frame *f = sim_frame_get(sim, len);

	memcpy(f->data, frame, len);
	push(sim, sim->now + sim->link[link].conf.delay_ns, f, link);
}

unsigned sim_host_link(const struct sim *sim, unsigned host, unsigned plane)
{
	return 2 * (host * sim_topo_planes(sim->topo) + plane);
}

unsigned sim_edge_link(const struct sim *sim, unsigned edge)
{
	return 2 * (sim->topo->n_hosts * sim_topo_planes(sim->topo) + edge);
}

unsigned sim_n_links(const struct sim *sim)
{
	return sim->n_links;
}

struct sim_link *sim_link(struct sim *sim, unsigned i)
{
	return &sim->link[i];
}

void sim_set_link(struct sim *sim, unsigned i, const struct sim_link_conf *conf)
{
	sim->link[i].conf = *conf;
}

static const char *node_name(const struct sim_topo *t, unsigned node)
{
	return node < t->n_hosts ? t->host[node].name : t->sw[node - t->n_hosts].name;
}

void sim_link_name(const struct sim *sim, unsigned i, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s>%s", node_name(sim->topo, sim->link[i].from),
		node_name(sim->topo, sim->link[i].to));
}

/* ---- running ---- */

void sim_kick(struct sim *sim, unsigned host)
{
	struct sim_host *h = &sim->host[host];

	if (h->ready)
		return;
	h->ready = true;
	sim->ready[(sim->ready_head + sim->n_ready++) % sim->topo->n_hosts] = host;
}

void sim_wake(struct sim *sim, unsigned host, uint64_t at)
{
	struct sim_host *h = &sim->host[host];

	if (at == UINT64_MAX || (h->wake > sim->now && h->wake <= at))
		return;
	h->wake = at > sim->now ? at : sim->now + 1;
	push(sim, h->wake, NULL, host);
}

void sim_freeze(struct sim *sim, unsigned host, uint64_t until)
{
	sim->host[host].frozen_until = until;
	sim_kick(sim, host); /* it wakes up by itself */
}

void sim_switch_wake(struct sim *sim, unsigned sw, uint64_t at)
{
	struct sim_node_switch *s = &sim->sw[sw];

	if (at == UINT64_MAX || (s->wake > sim->now && s->wake <= at))
		return;
	s->wake = at > sim->now ? at : sim->now + 1;
	push(sim, s->wake, NULL, sim->topo->n_hosts + sw);
}

static unsigned n_nodes(const struct sim *sim)
{
	return sim->topo->n_hosts + sim->topo->n_switches;
}

void sim_control_event(struct sim *sim, uint64_t at)
{
	push(sim, at, NULL, n_nodes(sim));
}

void sim_queue_wake(struct sim *sim, unsigned event, uint64_t at)
{
	push(sim, at, NULL, n_nodes(sim) + 1 + event);
}

static void happen(struct sim *sim, const struct sim_event *e)
{
	struct sim_link *link;

	if (!e->frame && e->index > n_nodes(sim)) {
		sim_queue_event(sim, e->index - n_nodes(sim) - 1);
		return;
	}
	if (!e->frame && e->index == n_nodes(sim)) {
		sim_control_turn(sim);
		return;
	}
	if (!e->frame && e->index >= sim->topo->n_hosts) {
		sim_switch_tick(sim, e->index - sim->topo->n_hosts);
		return;
	}
	if (!e->frame) {
		sim_kick(sim, e->index);
		return;
	}
	link = &sim->link[e->index];
	e->frame->in = e->index + 1;
	if (link->to < sim->topo->n_hosts)
		link->count[SIM_L_HOST_DROP] +=
			!sim_host_rx(&sim->host[link->to], link->to_port, e->frame);
	else
		sim_switch_rx(sim, link->to - sim->topo->n_hosts, link->to_port, e->frame);
}

/* Of many hosts each comes from memory: what the next ones begin with is asked for meanwhile. */
static void look_ahead(const struct sim *sim)
{
	const unsigned n = sim->topo->n_hosts;

	if (sim->n_ready > 2)
		sim_host_prefetch(&sim->host[sim->ready[(sim->ready_head + 2) % n]], false);
	if (sim->n_ready > 1)
		sim_host_prefetch(&sim->host[sim->ready[(sim->ready_head + 1) % n]], true);
}

/* All events of one point in time, then the hosts they have reached: 0, or their first error. */
static int step(struct sim *sim)
{
	int error = 0;

	while (sim->n_events && sim->heap[0].at <= sim->now) {
		const struct sim_event e = pop(sim);

		happen(sim, &e);
	}
	while (sim->n_ready) { /* a host that runs may kick others, and itself again */
		struct sim_host *h = &sim->host[sim->ready[sim->ready_head]];
		int rc;

		look_ahead(sim);
		sim->ready_head = (sim->ready_head + 1) % sim->topo->n_hosts;
		sim->n_ready--;
		h->ready = false;
		rc = sim_host_run(h);
		error = error ? error : rc;
	}
	return error;
}

void sim_set_sampler(struct sim *sim, uint64_t every_ns, sim_sampler look, void *arg)
{
	sim->sampler = look;
	sim->sampler_arg = arg;
	sim->every = every_ns;
	sim->sample_at = sim->now + every_ns;
}

/* Everything before a point in time has happened. */
static void sample(struct sim *sim, uint64_t before)
{
	for (; sim->sampler && sim->sample_at <= before; sim->sample_at += sim->every)
		sim->sampler(sim->sampler_arg, sim->sample_at);
}

int sim_run(struct sim *sim, bool (*done)(void *arg), void *arg, uint64_t until)
{
	for (;;) {
		int rc = step(sim);

		if (rc < 0)
			return rc;
		if (done && done(arg))
			return 0;
		if (sim->n_events == 0)
			return -EDEADLK;
		if (sim->heap[0].at > until) {
			sim->now = until;
			return -ETIME;
		}
		sample(sim, sim->heap[0].at);
		sim->now = sim->heap[0].at;
	}
}

/* ---- making ---- */

uint64_t sim_now(const struct sim *sim)
{
	return sim->now;
}

const struct sim_topo *sim_topo(const struct sim *sim)
{
	return sim->topo;
}

uint64_t sim_trace_hash(const struct sim *sim)
{
	return sim->hash;
}

uint64_t sim_hops(const struct sim *sim)
{
	return sim->hops;
}

struct ibv_context *sim_context(struct sim *sim, unsigned host)
{
	return sim->host[host].context;
}

int sim_add_app(struct sim *sim, unsigned host, sim_app app, void *arg)
{
	struct sim_host *h = &sim->host[host];

	if (h->n_apps == SIM_MAX_APPS)
		return -ENOSPC;
	h->app[h->n_apps].run = app;
	h->app[h->n_apps++].arg = arg;
	return 0;
}

void sim_remove_app(struct sim *sim, unsigned host, const void *arg)
{
	struct sim_host *h = &sim->host[host];
	unsigned n = 0;

	for (unsigned i = 0; i < h->n_apps; i++)
		if (h->app[i].arg != arg)
			h->app[n++] = h->app[i];
	h->n_apps = n;
}

static void add_link(struct sim *sim, unsigned from, unsigned to)
{
	struct sim_link *link = &sim->link[sim->n_links];

	sim_link_init(link, &sim->conf.link, sim->conf.seed * 0x100000001b3 + sim->n_links);
	link->from = from;
	link->to = to;
	sim->n_links++;
}

static void add_links(struct sim *sim)
{
	const struct sim_topo *t = sim->topo;

	for (unsigned h = 0; h < t->n_hosts; h++)
		for (unsigned p = 0; p < sim_topo_planes(t); p++) {
			const unsigned leaf = t->n_hosts + sim_topo_leaf(t, h, p);

			add_link(sim, h, leaf);
			add_link(sim, leaf, h);
			sim->link[sim->n_links - 2].from_port = p;
			sim->link[sim->n_links - 1].to_port = p;
		}
	for (unsigned e = 0; e < t->n_edges; e++) {
		add_link(sim, t->n_hosts + t->edge[e][0], t->n_hosts + t->edge[e][1]);
		add_link(sim, t->n_hosts + t->edge[e][1], t->n_hosts + t->edge[e][0]);
	}
}

static unsigned ip_slot(const struct sim *sim, const struct wire_ip *ip)
{
	uint64_t tail;

	memcpy(&tail, ip->b + 8, sizeof(tail));
	return (unsigned)(sim_random(&tail) & sim->ip_mask);
}

static const struct wire_ip *node_ip(const struct sim_topo *t, unsigned node)
{
	return node < t->n_hosts ? &t->host[node].ip : &t->sw[node - t->n_hosts].ip;
}

int sim_node_of(const struct sim *sim, const struct wire_ip *ip)
{
	for (unsigned i = ip_slot(sim, ip); sim->by_ip[i]; i = (i + 1) & sim->ip_mask)
		if (wire_ip_eq(node_ip(sim->topo, sim->by_ip[i] - 1), ip))
			return (int)sim->by_ip[i] - 1;
	return -1;
}

static int index_addresses(struct sim *sim, char *err)
{
	const struct sim_topo *t = sim->topo;
	const unsigned n = t->n_hosts + t->n_switches;

	while (sim->ip_mask < 2 * n)
		sim->ip_mask = 2 * sim->ip_mask + 1;
	sim->by_ip = calloc(sim->ip_mask + 1, sizeof(*sim->by_ip));
	if (!sim->by_ip)
		return -ENOMEM;
	for (unsigned node = 0; node < n; node++) {
		unsigned i = ip_slot(sim, node_ip(t, node));

		if (sim_node_of(sim, node_ip(t, node)) >= 0) {
			snprintf(err, SIM_ERR_LEN, "%s: its address is another's too",
				node_name(t, node));
			return -EINVAL;
		}
		while (sim->by_ip[i])
			i = (i + 1) & sim->ip_mask;
		sim->by_ip[i] = node + 1;
	}
	return 0;
}

static int build(struct sim *sim, char *err)
{
	const struct sim_topo *t = sim->topo;
	int rc;

	sim->link = calloc(
		2 * ((size_t)t->n_hosts * sim_topo_planes(t) + t->n_edges), sizeof(*sim->link));
	sim->host = calloc(t->n_hosts, sizeof(*sim->host));
	sim->sw = calloc(t->n_switches, sizeof(*sim->sw));
	sim->ready = calloc(t->n_hosts, sizeof(*sim->ready));
	if (!sim->link || !sim->host || !sim->sw || !sim->ready)
		return -ENOMEM;
	add_links(sim);
	rc = index_addresses(sim, err);
	if (rc == 0)
		rc = sim_switches_open(sim);
	if (rc == -ENETUNREACH)
		snprintf(err, SIM_ERR_LEN, "topology: not all switches are connected");
	if (rc == -E2BIG)
		snprintf(err, SIM_ERR_LEN,
			"topology: more than %d links between a switch and others",
			SIM_MAX_UPLINKS);
	for (unsigned i = 0; rc == 0 && i < t->n_hosts; i++)
		rc = sim_host_open(sim, i);
	if (rc == 0)
		rc = sim_control_open(sim);
	if (rc == 0)
		sim_set_control(sim, &sim->conf.control);
	return rc;
}

int sim_create(const struct sim_conf *conf, struct sim **out, char err[SIM_ERR_LEN])
{
	struct sim *sim = calloc(1, sizeof(*sim));
	int rc;

	if (!sim)
		return -ENOMEM;
	sim->conf = *conf;
	sim->topo = conf->topo;
	sim->now = START_NS;
	sim->frame_cap = conf->topo->mtu + 64;
	err[0] = 0;
	rc = build(sim, err);
	if (rc == 0) {
		*out = sim;
		return 0;
	}
	if (!err[0])
		snprintf(err, SIM_ERR_LEN, "%s", strerror(-rc));
	sim_destroy(sim);
	return rc;
}

void sim_destroy(struct sim *sim)
{
	for (unsigned i = 0; sim->host && i < sim->topo->n_hosts; i++)
		sim_host_close(&sim->host[i]);
	sim_control_close(sim);
	if (sim->sw)
		sim_switches_close(sim);
	while (sim->n_events)
		free(pop(sim).frame);
	for (unsigned i = 0; sim->link && i < sim->n_links; i++)
		sim_queue_close(&sim->link[i]);
	for (unsigned i = 0; i < 2; i++)
		for (struct sim_frame *f; (f = sim->free[i]); free(f))
			sim->free[i] = f->next;
	if (sim->pcap)
		fclose(sim->pcap);
	free(sim->events);
	free(sim->link);
	free(sim->host);
	free(sim->sw);
	free(sim->ready);
	free(sim->by_ip);
	free(sim);
}
