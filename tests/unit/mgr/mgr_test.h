/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_MGR_TEST_H
#define TESTS_MGR_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/mgr/graph.h"

int run_book_tests(void);
int run_graph_tests(void);
int run_hash_tests(void);
int run_heap_tests(void);
int run_job_tests(void);
int run_job_life_tests(void);
int run_policy_tests(void);
int run_policy_all_tests(void);
int run_size_tests(void);
int run_windows_tests(void);

enum { TEST_GBPS = 1000000000 };

/* Numbers of a test, the same in every run. */
static inline uint32_t test_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static inline unsigned test_host(struct mgr_graph *g, const char *name)
{
	struct mgr_node n = {.kind = MGR_HOST, .up = true};

	snprintf(n.name, sizeof(n.name), "%s", name);
	assert_true(mgr_graph_set_node(g, &n) >= 0);
	return (unsigned)mgr_graph_find(g, name);
}

static inline unsigned test_switch(
	struct mgr_graph *g, const char *name, unsigned tier, uint64_t sram)
{
	struct mgr_node n = {.kind = MGR_SWITCH,
		.up = true,
		.tier = tier,
		.modes = MGR_MODES,
		.sram = sram,
		.groups = 64};

	snprintf(n.name, sizeof(n.name), "%s", name);
	assert_true(mgr_graph_set_node(g, &n) >= 0);
	return (unsigned)mgr_graph_find(g, name);
}

/* A port that is named after its peer, with the number k if there are several. */
static inline void test_port(
	struct mgr_graph *g, unsigned at, unsigned to, unsigned k, uint64_t bps, bool up)
{
	struct mgr_port p = {.bps = bps, .up = up};

	snprintf(p.name, sizeof(p.name), "to%u.%u", to, k);
	assert_true(mgr_graph_set_port(g, at, &p) >= 0);
}

static inline void test_claim(struct mgr_graph *g, unsigned at, unsigned to, unsigned k)
{
	char mine[MGR_NAME_LEN], its[MGR_NAME_LEN];

	snprintf(mine, sizeof(mine), "to%u.%u", to, k);
	snprintf(its, sizeof(its), "to%u.%u", at, k);
	assert_true(mgr_graph_claim(g, at, mine, mgr_graph_node(g, to)->name, its) >= 0);
}

/* Cabled as the file has it. */
static inline void test_cable(struct mgr_graph *g, unsigned a, unsigned b, unsigned k, uint64_t bps)
{
	test_port(g, a, b, k, bps, true);
	test_port(g, b, a, k, bps, true);
	test_claim(g, a, b, k);
	test_claim(g, b, a, k);
}

/* Name of the first link between two nodes, or -1. */
static inline int test_link(struct mgr_graph *g, unsigned a, unsigned b)
{
	const struct mgr_edge *e;
	unsigned n = mgr_graph_edges(g, a, &e);

	for (unsigned i = 0; i < n; i++) {
		if (e[i].peer == b)
			return (int)e[i].link;
	}
	return -1;
}

#endif
