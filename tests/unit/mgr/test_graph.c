/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric as it is told: links, tiers, conflicts, changes, bounds; and against a plain matrix
 * through random events. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/mgr/mgr_test.h"

/* Two spines, two leaves, two hosts each. */
struct small {
	struct mgr_graph *g;
	unsigned spine[2], leaf[2], host[4];
};

static struct small make(void)
{
	struct small s = {.g = mgr_graph_new()};
	char name[MGR_NAME_LEN];

	assert_non_null(s.g);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "spine%u", i);
		s.spine[i] = test_switch(s.g, name, 0, 1 << 20);
		snprintf(name, sizeof(name), "leaf%u", i);
		s.leaf[i] = test_switch(s.g, name, 0, 1 << 20);
	}
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "host%u", i);
		s.host[i] = test_host(s.g, name);
		test_cable(s.g, s.host[i], s.leaf[i / 2], 0, 100ull * TEST_GBPS);
		test_cable(s.g, s.leaf[i / 2], s.spine[i % 2], 0, 100ull * TEST_GBPS);
	}
	return s;
}

static unsigned n_conflicts(struct mgr_graph *g)
{
	struct mgr_conflict c;
	unsigned n = 0, at = 0;

	while (mgr_graph_conflict(g, &at, &c))
		n++;
	return n;
}

/* The only one. */
static struct mgr_conflict conflict(struct mgr_graph *g)
{
	struct mgr_conflict c, second;
	unsigned at = 0;

	assert_true(mgr_graph_conflict(g, &at, &c));
	if (mgr_graph_conflict(g, &at, &second))
		fail_msg("also: %s", second.line);
	return c;
}

static void clos(void **state)
{
	struct small s = make();
	const struct mgr_edge *e;
	struct mgr_link l;
	int link;

	(void)state;
	assert_int_equal(mgr_graph_tier(s.g, s.host[3]), 0);
	assert_int_equal(mgr_graph_tier(s.g, s.leaf[1]), 1);
	assert_int_equal(mgr_graph_tier(s.g, s.spine[0]), 2);
	assert_int_equal(mgr_graph_edges(s.g, s.leaf[0], &e), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_true(e[i].up && e[i].bps == 100ull * TEST_GBPS);
	link = test_link(s.g, s.leaf[0], s.spine[1]);
	assert_int_equal(link, test_link(s.g, s.spine[1], s.leaf[0]));
	assert_int_equal(mgr_graph_link(s.g, (unsigned)link, &l), 0);
	assert_int_equal(l.port[0], link);
	assert_int_equal(l.node[0] + l.node[1], s.leaf[0] + s.spine[1]);
	assert_int_equal(mgr_graph_link(s.g, l.port[1], &l), -ENOENT); /* not its name */
	assert_int_equal(n_conflicts(s.g), 0);
	mgr_graph_free(s.g);
}

static void tier_given(void **state)
{
	struct small s = make();
	struct mgr_node n = *mgr_graph_node(s.g, s.spine[1]);
	unsigned far = test_switch(s.g, "far", 0, 0);

	(void)state;
	n.tier = 3;
	assert_int_equal(mgr_graph_set_node(s.g, &n), 1);
	assert_int_equal(mgr_graph_tier(s.g, s.spine[1]), 3);
	assert_int_equal(mgr_graph_tier(s.g, s.spine[0]), 2);
	assert_int_equal(mgr_graph_tier(s.g, far), MGR_NO_TIER);
	test_cable(s.g, far, s.spine[0], 0, TEST_GBPS);
	assert_int_equal(mgr_graph_tier(s.g, far), 3);
	mgr_graph_free(s.g);
}

static void down_and_up(void **state)
{
	struct small s = make();
	struct mgr_node n = *mgr_graph_node(s.g, s.spine[0]);
	unsigned link = (unsigned)test_link(s.g, s.leaf[0], s.spine[0]);
	struct mgr_link l;

	(void)state;
	test_port(s.g, s.leaf[0], s.spine[0], 0, 100ull * TEST_GBPS, false);
	assert_int_equal(mgr_graph_link(s.g, link, &l), 0);
	assert_false(l.up);
	assert_int_equal(mgr_graph_tier(s.g, s.spine[0]), 2); /* a failure moves no tier */
	test_port(s.g, s.leaf[0], s.spine[0], 0, 100ull * TEST_GBPS, true);
	n.up = false;
	assert_int_equal(mgr_graph_set_node(s.g, &n), 1);
	assert_int_equal(mgr_graph_set_node(s.g, &n), 0); /* said before */
	assert_int_equal(mgr_graph_link(s.g, link, &l), 0);
	assert_false(l.up);
	n.up = true;
	mgr_graph_set_node(s.g, &n);
	mgr_graph_link(s.g, link, &l);
	assert_true(l.up);
	mgr_graph_free(s.g);
}

static void one_end_says(void **state)
{
	struct small s = make();
	unsigned a = test_switch(s.g, "a", 1, 0), h = test_host(s.g, "h");
	struct mgr_link l;

	(void)state;
	/* The host says nothing: the switch's word makes the link. */
	test_port(s.g, a, h, 0, TEST_GBPS, true);
	test_port(s.g, h, a, 0, TEST_GBPS, true);
	test_claim(s.g, a, h, 0);
	assert_int_equal(mgr_graph_link(s.g, (unsigned)test_link(s.g, a, h), &l), 0);
	/* Nothing is said any more. */
	assert_int_equal(mgr_graph_claim(s.g, a, "none", NULL, NULL), -ENOENT);
	assert_int_equal(
		mgr_graph_claim(s.g, a, mgr_graph_port(s.g, l.port[0])->name, NULL, NULL), 1);
	assert_int_equal(test_link(s.g, a, h), -1);
	mgr_graph_free(s.g);
}

/* leaf0's cable to spine0 is plugged into spine1's port for leaf1. */
static void miscabled(void **state)
{
	struct small s = make();
	struct mgr_conflict c;
	char mine[MGR_NAME_LEN], its[MGR_NAME_LEN];
	unsigned n = 0, at = 0;

	(void)state;
	snprintf(mine, sizeof(mine), "to%u.0", s.spine[0]);
	snprintf(its, sizeof(its), "to%u.0", s.leaf[1]);
	assert_int_equal(mgr_graph_claim(s.g, s.leaf[0], mine, "spine1", its), 1);
	/* Neither link is there: the ends contradict each other. */
	assert_int_equal(test_link(s.g, s.leaf[0], s.spine[0]), -1);
	assert_int_equal(n_conflicts(s.g), 2);
	/* The other end says it too: it is the link. */
	assert_int_equal(mgr_graph_claim(s.g, s.spine[1], its, "leaf0", mine), 1);
	assert_int_not_equal(test_link(s.g, s.leaf[0], s.spine[1]), -1);
	while (mgr_graph_conflict(s.g, &at, &c)) {
		n++;
		assert_int_equal(c.kind, MGR_C_ENDS);
		if (c.node == s.spine[0]) {
			assert_non_null(strstr(c.line, "spine0:"));
			assert_non_null(strstr(c.line, "is cabled to leaf0:"));
			assert_non_null(strstr(c.line, ", which says spine1:"));
		}
	}
	assert_int_equal(n, 2); /* spine0 and leaf1, which were left alone */
	mgr_graph_free(s.g);
}

static void other_conflicts(void **state)
{
	struct small s = make();
	unsigned a = test_switch(s.g, "a", 1, 0), b = test_switch(s.g, "b", 1, 0);
	unsigned c = test_switch(s.g, "c", 1, 0);
	char its[MGR_NAME_LEN];

	(void)state;
	/* A stranger, then known. */
	test_port(s.g, a, b, 0, TEST_GBPS, true);
	test_claim(s.g, a, b, 0);
	assert_int_equal(conflict(s.g).kind, MGR_C_UNKNOWN);
	test_port(s.g, b, a, 0, 2ull * TEST_GBPS, true);
	assert_int_equal(conflict(s.g).kind, MGR_C_SPEED);
	assert_int_not_equal(test_link(s.g, a, b), -1);
	/* Two that name one silent port. */
	test_port(s.g, b, a, 0, TEST_GBPS, true);
	test_port(s.g, c, b, 0, TEST_GBPS, true);
	snprintf(its, sizeof(its), "to%u.0", a);
	assert_int_equal(n_conflicts(s.g), 0);
	assert_int_equal(mgr_graph_claim(s.g, c, "to99.0", "b", its), -ENOENT);
	{
		char mine[MGR_NAME_LEN];

		snprintf(mine, sizeof(mine), "to%u.0", b);
		assert_int_equal(mgr_graph_claim(s.g, c, mine, "b", its), 1);
	}
	assert_int_equal(n_conflicts(s.g), 2);
	assert_int_equal(test_link(s.g, a, b), -1);
	/* One of them goes: the other's word stands. */
	assert_int_equal(mgr_graph_remove(s.g, c), 1);
	assert_int_equal(n_conflicts(s.g), 0);
	assert_int_not_equal(test_link(s.g, a, b), -1);
	mgr_graph_free(s.g);
}

static void refused(void **state)
{
	struct small s = make();
	struct mgr_node n = {.name = "x", .kind = MGR_HOST, .tier = 1};
	struct mgr_port p = {.name = ""};
	char own[MGR_NAME_LEN];

	(void)state;
	assert_int_equal(mgr_graph_set_node(s.g, &n), -EINVAL); /* a host has no tier */
	n = (struct mgr_node){.name = "x", .kind = MGR_SWITCH, .modes = 1};
	assert_int_equal(mgr_graph_set_node(s.g, &n), -EINVAL);
	n = (struct mgr_node){.name = "x", .kind = MGR_SWITCH, .tier = MGR_NO_TIER};
	assert_int_equal(mgr_graph_set_node(s.g, &n), -EINVAL);
	n = (struct mgr_node){.name = "", .kind = MGR_SWITCH};
	assert_int_equal(mgr_graph_set_node(s.g, &n), -EINVAL);
	n = (struct mgr_node){.name = "host0", .kind = MGR_SWITCH};
	assert_int_equal(mgr_graph_set_node(s.g, &n), -EEXIST);
	memset(n.name, 'a', sizeof(n.name));
	assert_int_equal(mgr_graph_set_node(s.g, &n), -EINVAL);
	assert_int_equal(mgr_graph_set_port(s.g, s.host[0], &p), -EINVAL);
	assert_int_equal(mgr_graph_set_port(s.g, 9999, &p), -ENOENT);
	snprintf(own, sizeof(own), "to%u.0", s.leaf[0]);
	assert_int_equal(mgr_graph_claim(s.g, s.host[0], own, "host0", own), -EINVAL);
	assert_int_equal(mgr_graph_claim(s.g, s.host[0], own, "host1", NULL), -EINVAL);
	assert_int_equal(mgr_graph_claim(s.g, s.host[0], own, n.name, own), -EINVAL);
	assert_int_equal(mgr_graph_remove(s.g, 9999), -ENOENT);
	assert_int_equal(n_conflicts(s.g), 0);
	mgr_graph_free(s.g);
}

static void bounds(void **state)
{
	struct mgr_graph *g = mgr_graph_new();
	unsigned s = test_switch(g, "s", 1, 0);
	struct mgr_port p = {.up = true};
	struct mgr_node n = {.kind = MGR_HOST};

	(void)state;
	for (unsigned i = 0; i < MGR_MAX_NODE_PORTS; i++) {
		snprintf(p.name, sizeof(p.name), "p%u", i);
		assert_int_equal(mgr_graph_set_port(g, s, &p), 1);
	}
	snprintf(p.name, sizeof(p.name), "more");
	assert_int_equal(mgr_graph_set_port(g, s, &p), -ENOSPC);
	for (unsigned i = 1; i < MGR_MAX_NODES; i++) {
		snprintf(n.name, sizeof(n.name), "h%u", i);
		assert_int_equal(mgr_graph_set_node(g, &n), 1);
	}
	snprintf(n.name, sizeof(n.name), "more");
	assert_int_equal(mgr_graph_set_node(g, &n), -ENOSPC);
	/* An index that was left is the next one's. */
	assert_int_equal(mgr_graph_remove(g, 77), 1);
	assert_int_equal(mgr_graph_set_node(g, &n), 1);
	assert_int_equal(mgr_graph_find(g, "more"), 77);
	mgr_graph_free(g);
}

/* The oracle of random_events: who is there, and which cable is up, by pair of nodes. */
enum { NODES = 24, EVENTS = 20000 };

struct oracle {
	bool there[NODES], port[NODES][NODES], up[NODES][NODES], says[NODES][NODES];
	unsigned index[NODES];
};

/* The node's own list says the same of the link. */
static void compare_edge(struct mgr_graph *g, unsigned node, unsigned link, bool up)
{
	const struct mgr_edge *e;
	const unsigned n = mgr_graph_edges(g, node, &e);
	unsigned found = 0;

	for (unsigned i = 0; i < n; i++) {
		if (e[i].link != link)
			continue;
		assert_int_equal(e[i].up, up);
		found++;
	}
	assert_int_equal(found, 1);
}

static void compare(struct mgr_graph *g, const struct oracle *o)
{
	char port[MGR_NAME_LEN];

	for (unsigned a = 0; a < NODES; a++) {
		for (unsigned b = 0; b < NODES; b++) {
			bool ports = o->there[a] && o->there[b] && o->port[a][b] && o->port[b][a];
			bool link = ports && (o->says[a][b] || o->says[b][a]);
			int name = ports ? test_link(g, o->index[a], o->index[b]) : -1;
			struct mgr_link l;

			assert_int_equal(link, name >= 0);
			snprintf(port, sizeof(port), "p%u", b);
			if (o->there[a])
				assert_int_equal(mgr_graph_link_at(g, o->index[a], port),
					link ? name : -ENOENT);
			if (!link)
				continue;
			compare_edge(g, o->index[a], (unsigned)name, o->up[a][b] && o->up[b][a]);
			assert_int_equal(mgr_graph_link(g, (unsigned)name, &l), 0);
			assert_int_equal(l.up, o->up[a][b] && o->up[b][a]);
		}
	}
}

static void event(struct mgr_graph *g, struct oracle *o, uint64_t *random)
{
	unsigned a = test_random(random) % NODES, b = test_random(random) % NODES;
	char name[MGR_NAME_LEN], peer[MGR_NAME_LEN], mine[MGR_NAME_LEN], its[MGR_NAME_LEN];
	struct mgr_port p = {.bps = TEST_GBPS};

	snprintf(name, sizeof(name), "n%u", a);
	snprintf(peer, sizeof(peer), "n%u", b);
	snprintf(mine, sizeof(mine), "p%u", b);
	snprintf(its, sizeof(its), "p%u", a);
	if (!o->there[a]) {
		o->index[a] = test_switch(g, name, 0, 0);
		o->there[a] = true;
		return;
	}
	switch (a == b ? 9 : test_random(random) % 10) {
	case 9:
		if (test_random(random) % 8)
			return;
		assert_int_equal(mgr_graph_remove(g, o->index[a]), 1);
		o->there[a] = false;
		memset(o->port[a], 0, sizeof(o->port[a]));
		memset(o->says[a], 0, sizeof(o->says[a]));
		return;
	case 0 ... 4:
		memcpy(p.name, mine, sizeof(p.name));
		o->up[a][b] = p.up = test_random(random) % 2;
		assert_true(mgr_graph_set_port(g, o->index[a], &p) >= 0);
		o->port[a][b] = true;
		return;
	default:
		if (!o->port[a][b])
			return;
		o->says[a][b] = test_random(random) % 3;
		assert_true(mgr_graph_claim(g, o->index[a], mine, peer, its) >= 0);
		if (!o->says[a][b])
			mgr_graph_claim(g, o->index[a], mine, NULL, NULL);
	}
}

static void random_events(void **state)
{
	struct mgr_graph *g = mgr_graph_new();
	struct oracle *o = calloc(1, sizeof(*o));
	uint64_t random = 15;

	(void)state;
	for (unsigned i = 0; i < EVENTS; i++) {
		event(g, o, &random);
		if (i % 10 < 3) /* after one event, too, that may be a port's alone */
			compare(g, o);
	}
	free(o);
	mgr_graph_free(g);
}

/* Ports that say anything of each other, one claim after the other: which links there are is what a
 * graph says that hears all claims at once. */
enum { WILD_NODES = 4, WILD_PORTS = 4, WILD = WILD_NODES * WILD_PORTS };

static void claim_of(unsigned i, char node[MGR_NAME_LEN], char port[MGR_NAME_LEN])
{
	snprintf(node, MGR_NAME_LEN, "n%u", i / WILD_PORTS);
	snprintf(port, MGR_NAME_LEN, "p%u", i % WILD_PORTS);
}

static struct mgr_graph *wild_graph(const int says[WILD])
{
	struct mgr_graph *g = mgr_graph_new();
	char node[MGR_NAME_LEN], port[MGR_NAME_LEN];
	struct mgr_port p = {.bps = TEST_GBPS, .up = true};

	for (unsigned i = 0; i < WILD; i++) {
		claim_of(i, node, p.name);
		if (i % WILD_PORTS == 0)
			test_switch(g, node, 0, 0);
		mgr_graph_set_port(g, i / WILD_PORTS, &p);
	}
	for (unsigned i = 0; i < WILD; i++) {
		char mine[MGR_NAME_LEN], self[MGR_NAME_LEN];

		if (says[i] < 0)
			continue;
		claim_of(i, self, mine);
		claim_of((unsigned)says[i], node, port);
		assert_int_equal(mgr_graph_claim(g, i / WILD_PORTS, mine, node, port), 1);
	}
	return g;
}

static void claims_at_random(void **state)
{
	struct mgr_graph *g, *anew;
	int says[WILD];
	uint64_t random = 7;

	(void)state;
	memset(says, -1, sizeof(says));
	g = wild_graph(says);
	for (unsigned k = 0; k < 20000; k++) {
		const unsigned i = test_random(&random) % WILD, to = test_random(&random) % WILD;
		const bool none = i == to || test_random(&random) % 3 == 0;
		char node[MGR_NAME_LEN], port[MGR_NAME_LEN], self[MGR_NAME_LEN], mine[MGR_NAME_LEN];

		claim_of(i, self, mine);
		claim_of(to, node, port);
		says[i] = none ? -1 : (int)to;
		assert_true(mgr_graph_claim(g, i / WILD_PORTS, mine, none ? NULL : node,
				    none ? NULL : port) >= 0);
		if (k % 4)
			continue;
		anew = wild_graph(says);
		for (unsigned j = 0; j < WILD; j++) {
			claim_of(j, self, mine);
			assert_int_equal(mgr_graph_link_at(g, j / WILD_PORTS, mine),
				mgr_graph_link_at(anew, j / WILD_PORTS, mine));
		}
		mgr_graph_free(anew);
	}
	mgr_graph_free(g);
}

/* A graph that grows by a link at a time, each asked for at once: twice as many links are twice as
 * much work. */
static uint64_t work_of(unsigned links)
{
	struct mgr_graph *g = mgr_graph_new();
	struct mgr_port p = {.name = "p", .bps = TEST_GBPS, .up = true};
	char a[MGR_NAME_LEN], b[MGR_NAME_LEN];
	uint64_t work;

	for (unsigned i = 0; i < links; i++) {
		snprintf(a, sizeof(a), "a%u", i);
		snprintf(b, sizeof(b), "b%u", i);
		const unsigned an = test_switch(g, a, 0, 0), bn = test_switch(g, b, 0, 0);

		assert_true(
			mgr_graph_set_port(g, an, &p) == 1 && mgr_graph_set_port(g, bn, &p) == 1);
		assert_int_equal(mgr_graph_claim(g, an, "p", b, "p"), 1);
		assert_int_equal(mgr_graph_claim(g, bn, "p", a, "p"), 1);
		assert_true(mgr_graph_link_at(g, an, "p") >= 0);
	}
	work = mgr_graph_work(g);
	mgr_graph_free(g);
	return work;
}

static void grows_linearly(void **state)
{
	(void)state;
	assert_int_equal(work_of(4000), 2 * work_of(2000));
}

int run_graph_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(clos), cmocka_unit_test(tier_given),
		cmocka_unit_test(down_and_up), cmocka_unit_test(one_end_says),
		cmocka_unit_test(miscabled), cmocka_unit_test(other_conflicts),
		cmocka_unit_test(refused), cmocka_unit_test(bounds),
		cmocka_unit_test(random_events), cmocka_unit_test(claims_at_random),
		cmocka_unit_test(grows_linearly)};

	return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
