/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/integration/fabric.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/verbs/incline_dv.h"
#include "lib/verbs/port_ops.h"
#include "tests/integration/capture.h"

enum {
	LINK_DELAY_NS = 2000,
	REORDER_NS = 20000,
	INBOX = 4096,
	GROUP_SLOT = 1,
	GROUP_GEN = 5,
	SMALL_FRAME = 80
};
enum { MODE1_ARENA = 8 << 20 };

struct event {
	uint64_t at, order;
	int node; /* >= 0: host; < 0: switch -1 - node */
	uint16_t port, len;
	uint8_t frame[];
};

struct host {
	struct fabric *fab;
	struct ibv_context *context;
	struct ccl_comm *comm;
	struct event *inbox[INBOX];
	unsigned head, tail;
	uint64_t frozen_until;
	unsigned leaf;
	bool down;
};

struct fabric {
	struct fab_opts opts;
	struct host host[FAB_MAX_HOSTS];
	struct fab_switch sw[FAB_MAX_SWITCHES];
	unsigned n_sw;
	uint64_t now, order, rng;
	uint64_t next; /* when something is to be done */
	uint64_t busy[FAB_MAX_HOSTS + FAB_MAX_SWITCHES][FAB_MAX_HOSTS + FAB_MAX_SWITCHES];
	struct event **heap;
	unsigned n_events, cap_events;
	FILE *pcap;
	fab_tap tap;
	void *tap_arg;
};

const struct fab_tree fab_star4 = {"star", 4, 1, {0}, {0}};
const struct fab_tree fab_tree_2x2 = {"two-level", 4, 3, {0}, {1, 1, 2, 2}};
const struct fab_tree fab_deep = {"depth 4", 8, 7, {0, 0, 0, 1, 1, 3, 3}, {5, 2, 6, 5, 4, 0, 6, 2}};

/* ---- events: a binary heap by time, then by order of making ---- */

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct fabric *fab, struct event *e)
{
	unsigned i = fab->n_events++;

	if (fab->n_events > fab->cap_events) {
		fab->cap_events = fab->cap_events ? 2 * fab->cap_events : 1024;
		fab->heap = realloc(fab->heap, fab->cap_events * sizeof(*fab->heap));
	}
	for (; i > 0 && before(e, fab->heap[(i - 1) / 2]); i = (i - 1) / 2)
		fab->heap[i] = fab->heap[(i - 1) / 2];
	fab->heap[i] = e;
}

static struct event *pop(struct fabric *fab)
{
	struct event *top = fab->heap[0], *last = fab->heap[--fab->n_events];
	unsigned i = 0;

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= fab->n_events)
			break;
		if (child + 1 < fab->n_events && before(fab->heap[child + 1], fab->heap[child]))
			child++;
		if (!before(fab->heap[child], last))
			break;
		fab->heap[i] = fab->heap[child];
		i = child;
	}
	fab->heap[i] = last;
	return top;
}

uint64_t fab_random(struct fabric *fab)
{
	uint64_t z = fab->rng += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static bool chance(struct fabric *fab, double p)
{
	return p > 0 && (double)(fab_random(fab) >> 11) * 0x1p-53 < p;
}

static void deliver_later(struct fabric *fab, int node, unsigned port, const uint8_t *frame,
	size_t len, uint64_t delay)
{
	struct event *e = malloc(sizeof(*e) + len);

	e->at = fab->now + delay;
	e->order = fab->order++;
	e->node = node;
	e->port = (uint16_t)port;
	e->len = (uint16_t)len;
	memcpy(e->frame, frame, len);
	push(fab, e);
}

void fab_capture(struct fabric *fab, const char *path)
{
	fab->pcap = capture_open(path);
}

/* Is the link of a host, or of a switch to its parent, down? Hosts are >= 0, switches below. */
static bool is_down(const struct fabric *fab, int lower, int upper)
{
	if (lower >= 0)
		return fab->host[lower].down;
	return fab->sw[-1 - lower].uplink_down && upper == -1 - (int)fab->sw[-1 - lower].parent;
}

/* How long a frame waits for the frames before it, and is on its way. */
static uint64_t link_delay(struct fabric *fab, int from, int to, size_t len)
{
	uint64_t *busy = &fab->busy[from < 0 ? FAB_MAX_HOSTS - 1 - from : from]
				   [to < 0 ? FAB_MAX_HOSTS - 1 - to : to];

	/* Acknowledgements and their like have a queue of their own that goes first. */
	if (fab->opts.link_gbps == 0 || len < SMALL_FRAME)
		return LINK_DELAY_NS;
	if (*busy < fab->now)
		*busy = fab->now;
	*busy += len * 8 / fab->opts.link_gbps;
	return *busy - fab->now + LINK_DELAY_NS;
}

/* One frame onto a link: its faults happen here. */
static void link_send(
	struct fabric *fab, int from, int node, unsigned port, uint8_t *frame, size_t len)
{
	const struct fab_faults *f = &fab->opts.faults;
	uint64_t delay = link_delay(fab, from, node, len);

	if (fab->pcap)
		capture_frame(fab->pcap, fab->now, frame, len);
	if (is_down(fab, from, node) || is_down(fab, node, from))
		return;
	if (fab->tap)
		fab->tap(fab->tap_arg, fab, frame, len);
	if (chance(fab, f->loss))
		return;
	if (chance(fab, f->dup))
		deliver_later(fab, node, port, frame, len, delay + fab_random(fab) % REORDER_NS);
	if (chance(fab, f->reorder))
		delay += fab_random(fab) % REORDER_NS;
	if (chance(fab, f->corrupt))
		frame[fab_random(fab) % len] ^= (uint8_t)(1u << fab_random(fab) % 8);
	deliver_later(fab, node, port, frame, len, delay);
}

/* ---- hosts: a port of the verbs device ---- */

static unsigned host_rx(void *port, struct verbs_rx_frame *frames, unsigned n)
{
	struct host *h = port;
	unsigned i;

	for (i = 0; i < n && h->head != h->tail; i++) {
		struct event *e = h->inbox[h->head++ % INBOX];

		frames[i] = (struct verbs_rx_frame){e->frame, e->len, e};
	}
	return i;
}

static void host_rx_free(void *port, const struct verbs_rx_frame *frames, unsigned n)
{
	(void)port;
	for (unsigned i = 0; i < n; i++)
		free(frames[i].priv);
}

static unsigned host_tx_room(void *port)
{
	(void)port;
	return VERBS_BURST;
}

static void host_tx(void *port, const struct rnic_frame *frame)
{
	struct host *h = port;
	uint8_t flat[FAB_FRAME];
	int len = rnic_frame_flatten(frame, flat, sizeof(flat));

	assert(len > 0);
	link_send(h->fab, (int)(h - h->fab->host), -1 - (int)h->leaf, 0, flat, (size_t)len);
}

static unsigned host_tx_flush(void *port)
{
	(void)port;
	return 0;
}

static uint64_t host_now(void *port)
{
	return ((struct host *)port)->fab->now;
}

static void host_wait(void *port, uint64_t until)
{
	struct host *h = port;

	(void)until;
	h->fab->now += 1000;
}

static const struct verbs_port_ops host_ops = {
	.rx_burst = host_rx,
	.rx_free = host_rx_free,
	.tx_room = host_tx_room,
	.tx = host_tx,
	.tx_flush = host_tx_flush,
	.now = host_now,
	.wait = host_wait,
};

/* ---- addresses ---- */

static struct wire_ip host_ip(unsigned rank)
{
	return wire_ip_from4(0x0a4d0000 + 10 + rank);
}

static struct wire_ip switch_ip(unsigned i)
{
	return wire_ip_from4(0x0a4dff01 + i);
}

static void set_mac(uint8_t mac[6], unsigned kind, unsigned i)
{
	const uint8_t m[6] = {2, 0, 0, 0, (uint8_t)kind, (uint8_t)i};

	memcpy(mac, m, sizeof(m));
}

/* ---- switches ---- */

struct emitting {
	struct fabric *fab;
	unsigned sw;
};

static void switch_emit(void *arg, struct inc_group *g, const struct inc_emit *emit)
{
	struct emitting *em = arg;

	for (unsigned i = 0; i < g->n_ep; i++) {
		const struct inc_ep *ep = inc_ep_at(g, i);
		uint8_t frame[FAB_FRAME], tail[WIRE_MAX_TRAILER];
		unsigned tail_len;
		int head;

		if (!(emit->out_mask >> i & 1))
			continue;
		head = inc_translate_header(
			g, i, emit, (uint16_t)em->fab->order, frame, tail, &tail_len);
		if (emit->pay_len)
			memcpy(frame + head, emit->payload, emit->pay_len);
		memcpy(frame + head + emit->pay_len, tail, tail_len);
		/* Port numbers of this fabric say who is at the other end: hosts, then switches. */
		link_send(em->fab, -1 - (int)em->sw,
			ep->port < FAB_MAX_HOSTS ? ep->port : FAB_MAX_HOSTS - 1 - ep->port, 0,
			frame, (size_t)head + emit->pay_len + tail_len);
	}
}

/* Port numbers of this fabric say who is at the other end: hosts, then switches. */
static int node_at(unsigned port)
{
	return port < FAB_MAX_HOSTS ? (int)port : FAB_MAX_HOSTS - 1 - (int)port;
}

/* What a switch's own RNIC does after something came, or when it is time. */
static void switch_mode1(struct fabric *fab, unsigned i)
{
	struct fab_switch *sw = &fab->sw[i];
	struct rnic *rnic = mode1_rnic(sw->mode1);
	struct rnic_frame frame;
	uint8_t flat[FAB_FRAME];
	unsigned ep;

	rnic_timer(rnic, fab->now);
	do {
		mode1_run(sw->mode1, fab->now);
		while (rnic_tx(rnic, &frame, fab->now)) {
			struct inc_group *g = mode1_owner(sw->mode1, frame.qpn, &ep);
			int len = rnic_frame_flatten(&frame, flat, sizeof(flat));

			assert(g != NULL && len > 0);
			link_send(fab, -1 - (int)i, node_at(inc_ep_at(g, ep)->port), 0, flat,
				(size_t)len);
		}
	} while (rnic_has_work(rnic));
}

static void switch_rx(struct fabric *fab, unsigned i, const struct event *e)
{
	struct fab_switch *sw = &fab->sw[i];
	struct emitting em = {fab, i};
	const struct inc_sink sink = {&em, switch_emit};
	struct inc_look look;
	struct wire_pkt pkt;
	enum wire_drop bad;
	enum inc_drop drop;
	uint32_t crc = 0;

	if (sw->dead)
		return;
	sw->rx++;
	bad = wire_parse(e->frame, e->len, &pkt);
	if (bad == WIRE_OK && pkt.kind != WIRE_ROCE)
		return;
	if (bad == WIRE_OK && sw->mode1 && pkt.dqpn < MODE1_QPN_LIMIT) {
		rnic_rx(mode1_rnic(sw->mode1), e->frame, e->len, fab->now);
		switch_mode1(fab, i);
		return;
	}
	if (bad == WIRE_OK) {
		drop = inc_lookup(&sw->table, &pkt, e->port, &look);
		if (drop != INC_OK) {
			sw->inc_drop[drop]++;
			return;
		}
		if (!inc_check_icrc(&look, e->frame, &pkt, &crc))
			bad = WIRE_ICRC_BAD;
	}
	if (bad != WIRE_OK) {
		sw->wire_drop[bad]++;
		return;
	}
	drop = inc_packet(
		look.group, &sw->arena, &look, &pkt, e->frame + pkt.pay_off, crc, fab->now, &sink);
	sw->inc_drop[drop]++;
}

static struct inc_ep_spec *add_ep(struct inc_group_spec *spec, unsigned sw)
{
	struct inc_ep_spec *ep = &spec->ep[spec->n_ep++];

	ep->local_ip = switch_ip(sw);
	set_mac(ep->smac, 1, sw);
	return ep;
}

static void add_host_ep(
	struct fabric *fab, struct inc_group_spec *spec, unsigned sw, unsigned rank, unsigned g)
{
	struct inc_ep_spec *ep = add_ep(spec, sw);
	struct ccl_member member;

	if (ccl_member(fab->host[rank].comm, g, &member) != 0)
		abort();
	ep->remote_ip = host_ip(rank);
	ep->remote_qpn = member.qpn;
	ep->mr_addr = member.mr_addr;
	ep->mr_len = member.mr_len;
	ep->rkey = member.rkey;
	ep->port = (uint16_t)rank;
	ep->host = true;
	set_mac(ep->dmac, 0, rank);
	ep->ranks[ep->n_ranks++] = (uint16_t)rank;
}

/* The endpoint toward another switch; peer_ep is its index over there. */
static struct inc_ep_spec *add_switch_ep(const struct fabric *fab, struct inc_group_spec *spec,
	unsigned sw, unsigned peer, unsigned peer_ep, unsigned g)
{
	struct inc_ep_spec *ep = add_ep(spec, sw);

	ep->remote_ip = switch_ip(peer);
	/* Mode-I: known when all switches have made theirs. */
	if (fab->opts.mode != INC_MODE_1)
		ep->remote_qpn = inc_qpn(GROUP_SLOT + g, peer_ep, GROUP_GEN);
	ep->port = (uint16_t)(FAB_MAX_HOSTS + peer);
	set_mac(ep->dmac, 1, peer);
	return ep;
}

static void create_mode1(struct fab_switch *sw, unsigned g)
{
	char err[INC_ERR_LEN];

	if (mode1_create(sw->mode1, sw->all[g], &sw->connections[g], err) != 0) {
		fprintf(stderr, "fabric: %s\n", err);
		abort();
	}
}

static void install(struct fabric *fab, unsigned i, struct inc_group_spec *spec, unsigned g)
{
	struct fab_switch *sw = &fab->sw[i];
	const uint64_t offset = sw->arena.size;
	struct inc_group *group;
	char err[INC_ERR_LEN];

	if (inc_group_check(spec, err) != 0) {
		fprintf(stderr, "fabric: switch %u: %s\n", i, err);
		abort();
	}
	sw->all[g] = group = calloc(1, inc_group_bytes(spec));
	sw->arena.size += (inc_group_payload_bytes(spec) + 63) & ~63ull;
	if (sw->mode1)
		assert(sw->arena.size <= MODE1_ARENA);
	else
		sw->arena.base = realloc(sw->arena.base, sw->arena.size);
	inc_group_init(group, spec, (uint16_t)(GROUP_SLOT + g), GROUP_GEN, offset);
	if (sw->mode1)
		create_mode1(sw, g);
	else if (inc_group_activate(group, err) != 0)
		abort();
	inc_table_set(&sw->table, (uint16_t)(GROUP_SLOT + g), group);
	sw->group = sw->all[0];
}

static bool is_below(const struct fabric *fab, unsigned sw, unsigned rank)
{
	unsigned at = fab->host[rank].leaf;

	while (at != sw && at != 0)
		at = fab->sw[at].parent;
	return at == sw;
}

/* What hangs below a switch, in ascending order of the lowest rank: hosts and switches. */
struct child {
	bool host;
	unsigned index, min_rank;
};

static int by_min_rank(const void *a, const void *b)
{
	const struct child *x = a, *y = b;

	return (int)x->min_rank - (int)y->min_rank;
}

static unsigned children(const struct fabric *fab, unsigned sw, struct child *child)
{
	unsigned n = 0;

	for (unsigned r = 0; r < fab->opts.n_hosts; r++)
		if (fab->host[r].leaf == sw)
			child[n++] = (struct child){true, r, r};
	for (unsigned i = sw + 1; i < fab->n_sw; i++) {
		unsigned r = 0;

		if (fab->sw[i].parent != sw)
			continue;
		while (r < fab->opts.n_hosts && !is_below(fab, i, r))
			r++;
		if (r < fab->opts.n_hosts) /* else nobody is below it */
			child[n++] = (struct child){false, i, r};
	}
	qsort(child, n, sizeof(*child), by_min_rank);
	return n;
}

/* Endpoint of a switch among its parent's. */
static unsigned ep_at_parent(const struct fabric *fab, unsigned sw)
{
	struct child child[FAB_MAX_HOSTS + FAB_MAX_SWITCHES];
	unsigned n = children(fab, fab->sw[sw].parent, child), i = 0;

	while (i < n && (child[i].host || child[i].index != sw))
		i++;
	assert(i < n);
	return i;
}

static void add_child_ep(struct fabric *fab, struct inc_group_spec *spec, unsigned sw,
	const struct child *c, unsigned g)
{
	struct child below[FAB_MAX_HOSTS + FAB_MAX_SWITCHES];
	struct inc_ep_spec *ep;

	if (c->host) {
		add_host_ep(fab, spec, sw, c->index, g);
		return;
	}
	/* The parent's endpoint is the last one over there. */
	ep = add_switch_ep(fab, spec, sw, c->index, children(fab, c->index, below), g);
	for (unsigned r = 0; r < fab->opts.n_hosts; r++)
		if (is_below(fab, c->index, r))
			ep->ranks[ep->n_ranks++] = (uint16_t)r;
}

/* A group's own first PSN, but for the first group's. */
static uint32_t start_psn(const struct fabric *fab, unsigned g)
{
	return (fab->opts.start_psn + g * 0x10001) & PSN_MASK;
}

/* Group g of those that the ranks are members of. */
static void install_group(struct fabric *fab, unsigned g, const struct ccl_member *member)
{
	struct inc_ep_spec *ep = calloc(INC_MAX_EP, sizeof(*ep));

	for (unsigned i = 0; i < fab->n_sw; i++) {
		struct child child[FAB_MAX_HOSTS + FAB_MAX_SWITCHES];
		unsigned n = children(fab, i, child);
		struct inc_group_spec spec = {
			.name = "fabric",
			.mode = fab->opts.mode ? fab->opts.mode : INC_MODE_2,
			.kind = fab->opts.kind,
			.prim = (uint8_t)member->prim,
			.root = (uint16_t)member->root,
			.mtu = fab->opts.mtu,
			.m = fab->opts.m,
			.w = fab->opts.w,
			.flags = fab->opts.flags,
			.start_psn = start_psn(fab, g),
			.n_ranks = (uint16_t)fab->opts.n_hosts,
			.ep = ep,
		};

		if (n == 0)
			continue;
		memset(ep, 0, INC_MAX_EP * sizeof(*ep));
		for (unsigned k = 0; k < n; k++)
			add_child_ep(fab, &spec, i, &child[k], g);
		if (i > 0) {
			struct inc_ep_spec *up = add_switch_ep(
				fab, &spec, i, fab->sw[i].parent, ep_at_parent(fab, i), g);

			up->parent = true;
			for (unsigned r = 0; r < fab->opts.n_hosts; r++)
				if (!is_below(fab, i, r))
					up->ranks[up->n_ranks++] = (uint16_t)r;
		}
		install(fab, i, &spec, g);
	}
	free(ep);
}

/* Mode-I: all switches have their queue pairs, so that they can be told one another's. */
static void connect_switches(struct fabric *fab, unsigned g)
{
	char err[INC_ERR_LEN];

	for (unsigned i = 1; i < fab->n_sw; i++) {
		struct inc_group *below = fab->sw[i].all[g],
				 *above = fab->sw[fab->sw[i].parent].all[g];
		struct inc_ep *up, *down;

		if (below == NULL)
			continue;
		up = inc_ep_at(below, below->n_ep - 1u);
		down = inc_ep_at(above, ep_at_parent(fab, i));
		up->remote_qpn = down->local_qpn;
		down->remote_qpn = up->local_qpn;
	}
	for (unsigned i = 0; i < fab->n_sw; i++)
		if (fab->sw[i].all[g] &&
			(inc_group_activate(fab->sw[i].all[g], err) != 0 ||
				mode1_connect(fab->sw[i].connections[g], fab->now, err) != 0)) {
			fprintf(stderr, "fabric: switch %u: %s\n", i, err);
			abort();
		}
}

static void install_groups(struct fabric *fab)
{
	struct ccl_member member;

	for (unsigned g = 0; ccl_member(fab->host[0].comm, g, &member) == 0; g++) {
		assert(g < FAB_MAX_GROUPS);
		install_group(fab, g, &member);
		if (fab->opts.mode == INC_MODE_1)
			connect_switches(fab, g);
	}
}

/* Every switch's own RNIC, before there are groups. */
static void make_mode1(struct fabric *fab)
{
	for (unsigned i = 0; i < fab->n_sw && fab->opts.mode == INC_MODE_1; i++) {
		struct fab_switch *sw = &fab->sw[i];
		struct mode1_device_config config = {
			.ip = {switch_ip(i)},
			.n_ip = 1,
			.arena = {calloc(1, MODE1_ARENA), MODE1_ARENA},
			.seed = fab->opts.seed + 1000 + i,
		};

		set_mac(config.mac, 1, i);
		sw->arena.base = config.arena.base;
		if (mode1_device_create(&config, &sw->mode1) != 0)
			abort();
	}
}

/* ---- making and running ---- */

static int host_skip(struct ibv_qp *qp, int dir, uint32_t from, uint32_t count)
{
	return inc_dv_qp_skip(qp, (enum inc_dv_dir)dir, from, count);
}

static void open_host(struct fabric *fab, unsigned rank, struct ccl_conn *conn)
{
	struct host *h = &fab->host[rank];
	struct verbs_open_attr attr = {
		.rnic = {.n_ip = 1, .port_mtu = 4200, .seed = fab->opts.seed + rank}};
	char err[CCL_ERR_LEN];

	h->fab = fab;
	set_mac(attr.rnic.mac, 0, rank);
	attr.rnic.ip[0] = host_ip(rank);
	h->context = incline_verbs_open_port(&host_ops, h, &attr);
	assert(h->context);
	*conn = (struct ccl_conn){
		.context = h->context,
		.gid_index = 1,
		.rank = rank,
		.n_ranks = fab->opts.n_hosts,
		.m = fab->opts.m,
		.w = fab->opts.w,
		.timeout_ns = fab->opts.timeout_ns,
		.mode = fab->opts.mode ? (enum ccl_mode)fab->opts.mode : CCL_MODE_2,
		.kind = fab->opts.kind == INC_MIXED ? CCL_MIXED : CCL_SINGLE,
		.collectives = fab->opts.collectives,
		.skip = host_skip,
		.write = fab->opts.flags & INC_F_WRITE,
		.mtu = fab->opts.mtu,
		.remote_ip = switch_ip(h->leaf),
		.start_psn = fab->opts.start_psn,
	};
	if (ccl_comm_open(conn, &h->comm, err) != 0) {
		fprintf(stderr, "fabric: rank %u: %s\n", rank, err);
		abort();
	}
}

static void connect_host(struct fabric *fab, unsigned rank, struct ccl_conn *conn)
{
	struct host *h = &fab->host[rank];
	struct fab_switch *sw = &fab->sw[h->leaf];
	struct ccl_remote remote[FAB_MAX_GROUPS];
	uint8_t mac[6];
	char err[CCL_ERR_LEN];

	set_mac(mac, 1, h->leaf);
	rnic_neigh_add(incline_verbs_rnic(h->context), &conn->remote_ip, mac);
	for (unsigned g = 0; g < FAB_MAX_GROUPS && sw->all[g]; g++)
		remote[g] = (struct ccl_remote){
			inc_ep_at(sw->all[g], inc_rank_ep(sw->all[g])[rank])->local_qpn,
			start_psn(fab, g)};
	conn->remote = remote;
	if (ccl_comm_connect(h->comm, conn, err) != 0) {
		fprintf(stderr, "fabric: rank %u: %s\n", rank, err);
		abort();
	}
}

/* Where everybody is. */
static void plan(struct fabric *fab)
{
	struct fab_opts *opts = &fab->opts;
	const struct fab_tree *tree = opts->tree;

	if (tree)
		opts->n_hosts = tree->n_hosts;
	fab->n_sw = tree ? tree->n_switches : opts->n_leaves + 1;
	assert(opts->n_hosts <= FAB_MAX_HOSTS && fab->n_sw <= FAB_MAX_SWITCHES);
	for (unsigned i = 1; tree && i < fab->n_sw; i++)
		fab->sw[i].parent = tree->parent[i];
	for (unsigned r = 0; r < opts->n_hosts; r++)
		fab->host[r].leaf = tree             ? tree->leaf_of[r]
				    : opts->n_leaves ? 1 + r * opts->n_leaves / opts->n_hosts
						     : 0;
}

struct fabric *fab_create(const struct fab_opts *opts)
{
	struct fabric *fab = calloc(1, sizeof(*fab));
	struct ccl_conn conn[FAB_MAX_HOSTS];

	fab->opts = *opts;
	fab->rng = opts->seed;
	fab->now = 1000000;
	plan(fab);
	fab->pcap = capture_if_asked();
	for (unsigned r = 0; r < fab->opts.n_hosts; r++)
		open_host(fab, r, &conn[r]);
	make_mode1(fab);
	install_groups(fab);
	for (unsigned r = 0; r < fab->opts.n_hosts; r++)
		connect_host(fab, r, &conn[r]);
	return fab;
}

void fab_destroy(struct fabric *fab)
{
	for (unsigned r = 0; r < fab->opts.n_hosts; r++) {
		struct host *h = &fab->host[r];

		ccl_comm_destroy(h->comm);
		ibv_close_device(h->context);
		while (h->head != h->tail)
			free(h->inbox[h->head++ % INBOX]);
	}
	for (unsigned i = 0; i < fab->n_sw; i++) {
		for (unsigned g = 0; g < FAB_MAX_GROUPS; g++) {
			if (fab->sw[i].connections[g])
				mode1_destroy(fab->sw[i].connections[g]);
			free(fab->sw[i].all[g]);
		}
		mode1_device_destroy(fab->sw[i].mode1);
		free(fab->sw[i].arena.base);
	}
	while (fab->n_events)
		free(pop(fab));
	if (fab->pcap)
		fclose(fab->pcap);
	free(fab->heap);
	free(fab);
}

/* Everything due now. */
static void turn(struct fabric *fab)
{
	while (fab->n_events && fab->heap[0]->at <= fab->now) {
		struct event *e = pop(fab);

		if (e->node < 0) {
			switch_rx(fab, (unsigned)(-1 - e->node), e);
			free(e);
		} else {
			struct host *h = &fab->host[e->node];

			if (h->tail - h->head == INBOX)
				free(e); /* a full receive ring drops */
			else
				h->inbox[h->tail++ % INBOX] = e;
		}
	}
}

/* Hosts work until they have nothing to do; returns the next time anything happens. */
static uint64_t hosts_turn(struct fabric *fab, int *error)
{
	uint64_t next = UINT64_MAX;

	for (unsigned r = 0; r < fab->opts.n_hosts; r++) {
		struct host *h = &fab->host[r];
		uint64_t deadline;
		unsigned busy;
		int rc;

		if (fab->now < h->frozen_until) {
			next = h->frozen_until < next ? h->frozen_until : next;
			continue;
		}
		do {
			busy = incline_verbs_progress(h->context);
			rc = ccl_progress(h->comm, fab->now);
			if (rc > 0)
				busy += (unsigned)rc;
			else if (rc < 0 && *error == 0)
				*error = rc;
		} while (busy);
		deadline = incline_verbs_deadline(h->context);
		next = deadline < next ? deadline : next;
	}
	return next;
}

/* Timers of the switches and of their own RNICs; returns when the next one ends. */
static uint64_t switches_turn(struct fabric *fab)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < fab->n_sw; i++) {
		struct fab_switch *sw = &fab->sw[i];
		struct emitting em = {fab, i};
		const struct inc_sink sink = {&em, switch_emit};
		uint64_t at;

		for (unsigned g = 0; g < FAB_MAX_GROUPS && sw->all[g] && !sw->dead; g++) {
			at = inc_tick(sw->all[g], &sw->arena, fab->now, &sink);
			next = at < next ? at : next;
		}
		if (sw->mode1 == NULL || sw->dead)
			continue;
		switch_mode1(fab, i);
		at = rnic_deadline(mode1_rnic(sw->mode1));
		next = at < next ? at : next;
	}
	return next;
}

/* Everything that is to be done at the next point in time, fab->next at the latest. */
static bool step(struct fabric *fab, int *error)
{
	uint64_t next, other;

	fab->now = fab->next > fab->now ? fab->next : fab->now;
	turn(fab);
	next = hosts_turn(fab, error);
	other = switches_turn(fab);
	next = other < next ? other : next;
	if (fab->n_events && fab->heap[0]->at < next)
		next = fab->heap[0]->at;
	if (next == UINT64_MAX)
		return false;
	fab->next = next > fab->now ? next : fab->now + 1;
	return true;
}

int fab_wait(struct fabric *fab, const struct ccl_req *req, uint64_t limit_ns)
{
	uint64_t end = fab->now + limit_ns;
	int error = 0;

	fab->next = fab->now;
	for (;;) {
		unsigned done = 0;
		bool more = step(fab, &error);

		if (error)
			return error;
		for (unsigned r = 0; r < fab->opts.n_hosts; r++)
			done += ccl_test(fab->host[r].comm, req[r]) == 1;
		if (done == fab->opts.n_hosts)
			return 0;
		if (!more)
			return -EDEADLK;
		if (fab->next > end) {
			fab->now = end;
			return -ETIME;
		}
	}
}

void fab_freeze(struct fabric *fab, unsigned rank, uint64_t ns)
{
	fab->host[rank].frozen_until = fab->now + ns;
}

void fab_run(struct fabric *fab, uint64_t ns)
{
	uint64_t end = fab->now + ns;
	int error = 0;

	fab->next = fab->now;
	while (fab->next < end && step(fab, &error))
		;
	fab->now = end;
}

void fab_inject_switch(struct fabric *fab, unsigned sw, const uint8_t *frame, size_t len)
{
	deliver_later(fab, -1 - (int)sw, 0, frame, len, LINK_DELAY_NS);
}

void fab_inject_host(struct fabric *fab, unsigned rank, const uint8_t *frame, size_t len)
{
	deliver_later(fab, (int)rank, 0, frame, len, LINK_DELAY_NS);
}

void fab_set_tap(struct fabric *fab, fab_tap tap, void *arg)
{
	fab->tap = tap;
	fab->tap_arg = arg;
}

void fab_set_faults(struct fabric *fab, const struct fab_faults *faults)
{
	fab->opts.faults = *faults;
}

unsigned fab_n_switches(const struct fabric *fab)
{
	return fab->n_sw;
}

struct fab_switch *fab_switch(struct fabric *fab, unsigned i)
{
	return &fab->sw[i];
}

struct ccl_comm *fab_comm(struct fabric *fab, unsigned rank)
{
	return fab->host[rank].comm;
}

struct rnic *fab_rnic(struct fabric *fab, unsigned rank)
{
	return incline_verbs_rnic(fab->host[rank].context);
}

uint64_t fab_now(const struct fabric *fab)
{
	return fab->now;
}

void fab_set_host_link(struct fabric *fab, unsigned rank, bool up)
{
	fab->host[rank].down = !up;
}

void fab_set_uplink(struct fabric *fab, unsigned sw, bool up)
{
	fab->sw[sw].uplink_down = !up;
}
