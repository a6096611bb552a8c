/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/integration/fabric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/verbs/port_ops.h"

enum { LINK_DELAY_NS = 2000, MTU = 4200, MAX_QP = 256 };

/* Longer than a group drains. */
static const uint64_t DRAINED_NS = 3000000000;

const struct fab_tree fab_star4 = {"star", 4, 1, {0}, {0}};
const struct fab_tree fab_tree_2x2 = {"two-level", 4, 3, {0}, {1, 1, 2, 2}};
const struct fab_tree fab_deep = {"depth 4", 8, 7, {0, 0, 0, 1, 1, 3, 3}, {5, 2, 6, 5, 4, 0, 6, 2}};

struct fab_tree fab_leaves(unsigned n_hosts, unsigned n_leaves)
{
	struct fab_tree tree = {n_leaves ? "leaves" : "star", n_hosts, n_leaves + 1, {0}, {0}};

	for (unsigned r = 0; n_leaves && r < n_hosts; r++)
		tree.leaf_of[r] = (uint8_t)(1 + r * n_leaves / n_hosts);
	return tree;
}

static _Noreturn void give_up(const char *what, const char *err)
{
	fprintf(stderr, "fabric: %s: %s\n", what, err);
	abort();
}

/* ---- making ---- */

/* 10.77.0.10 .., 10.77.255.1 ..; fd77::a .., fd77::ff:1 .. */
static void name_node(struct sim_topo_node *node, bool host, unsigned i, bool ipv6)
{
	const char *first = ipv6   ? host ? "fd77::a" : "fd77::ff:1"
			    : host ? "10.77.0.10"
				   : "10.77.255.1";

	snprintf(node->name, sizeof(node->name), "%c%u", host ? 'h' : 's', i);
	wire_ip_parse(first, &node->ip);
	node->ip.b[15] = (uint8_t)(node->ip.b[15] + i);
}

/* Edge e is the uplink of switch e + 1. */
static void make_topology(const struct fab_tree *tree, bool ipv6, struct sim_topo *t)
{
	*t = (struct sim_topo){.mtu = MTU,
		.n_hosts = tree->n_hosts,
		.n_switches = tree->n_switches,
		.n_edges = tree->n_switches - 1,
		.host = calloc(tree->n_hosts, sizeof(*t->host)),
		.sw = calloc(tree->n_switches, sizeof(*t->sw)),
		.host_switch = calloc(tree->n_hosts, sizeof(*t->host_switch)),
		.edge = calloc(tree->n_switches, sizeof(*t->edge))};
	for (unsigned r = 0; r < tree->n_hosts; r++) {
		name_node(&t->host[r], true, r, ipv6);
		t->host_switch[r] = tree->leaf_of[r];
	}
	for (unsigned i = 0; i < tree->n_switches; i++) {
		name_node(&t->sw[i], false, i, ipv6);
		if (i > 0) {
			t->edge[i - 1][0] = tree->parent[i];
			t->edge[i - 1][1] = i;
		}
	}
}

static void capture_if_asked(struct fabric *fab)
{
	const char *dir = getenv("FABRIC_PCAP");
	static unsigned n;
	char path[512];

	if (!dir)
		return;
	snprintf(path, sizeof(path), "%s/%u.pcapng", dir, n++);
	if (sim_capture(fab->sim, path) != 0)
		give_up(path, "cannot be written");
}

static void make_sim(struct fabric *fab, const struct fab_opts *opts)
{
	const struct sim_conf conf = {.topo = &fab->topo,
		.link = {.mbps = 1000 * opts->link_gbps,
			.delay_ns = LINK_DELAY_NS,
			.priority = true},
		.max_qp = MAX_QP,
		.seed = opts->seed};
	char err[SIM_ERR_LEN];

	if (sim_create(&conf, &fab->sim, err) != 0)
		give_up("simulation", err);
	capture_if_asked(fab);
	fab_set_faults(fab, &opts->faults);
}

/* Both directions of a link. */
static void set_link(struct fabric *fab, unsigned link, bool up)
{
	for (unsigned i = link; i < link + 2; i++) {
		struct sim_link_conf *conf = &sim_link(fab->sim, i)->conf;

		conf->n_down = !up;
		conf->down[0].from = sim_now(fab->sim);
		conf->down[0].until = UINT64_MAX;
	}
}

static void make_coll(struct fabric *fab)
{
	const struct fab_opts *opts = &fab->opts;
	const struct sim_coll_conf conf = {.sim = fab->sim,
		.mode = opts->mode ? opts->mode : CCL_MODE_2,
		.n_ranks = fab->n,
		.collectives = opts->collectives,
		.kind = opts->kind == CCL_RING ? CCL_SINGLE : opts->kind, /* the mode says it */
		.mtu = opts->mtu,
		.m = opts->m,
		.w = opts->w,
		.flags = opts->flags,
		.start_psn = opts->start_psn,
		.first_msg = opts->first_msg,
		.rings = opts->rings,
		.timeout_ns = opts->timeout_ns};
	char err[CCL_ERR_LEN];

	if (sim_coll_create(&conf, &fab->coll, err) != 0)
		give_up("communicator", err);
}

struct fabric *fab_create(const struct fab_opts *opts)
{
	struct fabric *fab = calloc(1, sizeof(*fab));

	fab->opts = *opts;
	fab->n = opts->tree.n_hosts;
	fab->rng = opts->seed;
	make_topology(&opts->tree, opts->ipv6, &fab->topo);
	make_sim(fab, opts);
	make_coll(fab);
	return fab;
}

void fab_renew(struct fabric *fab)
{
	char err[CCL_ERR_LEN];

	if (sim_coll_close(fab->coll, err) != 0)
		give_up("closing", err);
	fab_run(fab, DRAINED_NS);
	for (unsigned i = 0; i < fab->topo.n_switches; i++) {
		const struct sim_switch *s = sim_switch(fab->sim, i);

		assert_int_equal(s->arena_used, 0);
		assert_int_equal(s->n_groups + s->n_rings, 0);
	}
	for (unsigned r = 0; r < fab->n; r++)
		sim_freeze(fab->sim, r, 0);
	for (unsigned i = 0; i < sim_n_links(fab->sim); i += 2)
		set_link(fab, i, true);
	make_coll(fab);
}

void fab_destroy(struct fabric *fab)
{
	sim_coll_destroy(fab->coll);
	sim_destroy(fab->sim);
	sim_topo_free(&fab->topo);
	free(fab);
}

/* ---- looking ---- */

struct ccl_comm *fab_comm(struct fabric *fab, unsigned rank)
{
	return sim_coll_comm(fab->coll, rank);
}

struct ccl_ring *fab_ring(struct fabric *fab, unsigned rank)
{
	return sim_coll_ring(fab->coll, rank);
}

struct rnic *fab_rnic(struct fabric *fab, unsigned rank)
{
	return incline_verbs_rnic(sim_context(fab->sim, rank));
}

const char *fab_error(struct fabric *fab, unsigned rank)
{
	return fab_ring(fab, rank) ? ccl_ring_error(fab_ring(fab, rank))
				   : ccl_error(fab_comm(fab, rank));
}

int fab_test(struct fabric *fab, unsigned rank, struct ccl_req req)
{
	return fab_ring(fab, rank) ? ccl_ring_test(fab_ring(fab, rank), req)
				   : ccl_test(fab_comm(fab, rank), req);
}

struct inc_group *fab_group(struct fabric *fab, unsigned sw)
{
	const struct sim_switch *s = sim_switch(fab->sim, sw);
	unsigned slot = 0;

	while (slot < s->n_slots && !s->table.group[slot])
		slot++;
	return slot < s->n_slots ? s->table.group[slot] : NULL;
}

uint64_t fab_link_bytes(struct fabric *fab)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < sim_n_links(fab->sim); i++)
		bytes += sim_link(fab->sim, i)->count[SIM_L_BYTES];
	return bytes;
}

/* ---- links ---- */

void fab_set_faults(struct fabric *fab, const struct fab_faults *faults)
{
	for (unsigned i = 0; i < sim_n_links(fab->sim); i++) {
		struct sim_link_conf *conf = &sim_link(fab->sim, i)->conf;

		conf->loss = faults->loss;
		conf->dup = faults->dup;
		conf->reorder = faults->reorder;
		conf->corrupt = faults->corrupt;
	}
}

void fab_set_host_link(struct fabric *fab, unsigned rank, bool up)
{
	set_link(fab, 2 * rank, up);
}

void fab_set_uplink(struct fabric *fab, unsigned sw, bool up)
{
	set_link(fab, 2 * (fab->n + sw - 1), up);
}

void fab_kill(struct fabric *fab, unsigned sw)
{
	const unsigned node = fab->n + sw;

	for (unsigned i = 0; i < sim_n_links(fab->sim); i += 2)
		if (sim_link(fab->sim, i)->from == node || sim_link(fab->sim, i)->to == node)
			set_link(fab, i, false);
}

void fab_inject_host(struct fabric *fab, unsigned rank, const uint8_t *frame, size_t len)
{
	sim_inject(fab->sim, 2 * rank + 1, frame, (unsigned)len);
}

/* ---- running ---- */

struct waiting {
	struct fabric *fab;
	const struct ccl_req *req;
};

static bool all_done(void *arg)
{
	const struct waiting *w = arg;

	for (unsigned r = 0; r < w->fab->n; r++)
		if (fab_test(w->fab, r, w->req[r]) != 1)
			return false;
	return true;
}

/* Whatever the test has posted. */
static void kick(struct fabric *fab)
{
	for (unsigned r = 0; r < fab->n; r++)
		sim_kick(fab->sim, r);
}

int fab_wait(struct fabric *fab, const struct ccl_req *req, uint64_t limit_ns)
{
	struct waiting w = {fab, req};

	kick(fab);
	return sim_run(fab->sim, all_done, &w, sim_now(fab->sim) + limit_ns);
}

void fab_must(struct fabric *fab, int rc)
{
	if (rc == 0)
		return;
	for (unsigned r = 0; r < fab->n; r++)
		fprintf(stderr, "rank %u: %s\n", r, fab_error(fab, r));
	fail_msg("%s: %s after %.6f s, seed %llu", fab->opts.tree.name, strerror(-rc),
		(double)sim_now(fab->sim) * 1e-9, (unsigned long long)fab->opts.seed);
}

/* A rank's error ends nothing here. */
void fab_run(struct fabric *fab, uint64_t ns)
{
	const uint64_t end = sim_now(fab->sim) + ns;

	kick(fab);
	while (sim_now(fab->sim) < end) {
		sim_wake(fab->sim, 0, end); /* something is left to happen */
		sim_run(fab->sim, NULL, NULL, end);
	}
}
