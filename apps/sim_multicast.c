/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/sim_multicast.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/sim/coll.h"

enum { MBPS = 100000, DELAY_NS = 500, MTU = 4096 };
static const uint64_t LIMIT_NS = UINT64_C(60000000000);

struct world {
	struct sim_topo topo;
	struct sim *sim;
};

static int world_open(struct world *w, const char *topology, uint64_t seed, char *err)
{
	struct sim_conf conf = {.topo = &w->topo,
		.seed = seed,
		.max_qp = 300,
		.link = {.mbps = MBPS, .delay_ns = DELAY_NS}};
	int rc = sim_topo_make(topology, &w->topo, err);

	if (rc)
		return rc;
	rc = sim_create(&conf, &w->sim, err);
	if (rc)
		sim_topo_free(&w->topo);
	return rc;
}

static void world_close(struct world *w)
{
	sim_destroy(w->sim);
	sim_topo_free(&w->topo);
}

static struct sim_coll_conf between_hosts(
	const struct world *w, enum ccl_algorithm algorithm, unsigned ranks)
{
	return (struct sim_coll_conf){.sim = w->sim,
		.algorithm = algorithm,
		.mode = CCL_MODE_RING,
		.n_ranks = ranks,
		.root = w->topo.root,
		.mtu = MTU,
		.m = 4,
		.w = 16,
		.start_psn = 1000};
}

/* ---- traffic ---- */

struct way {
	const char *name;
	enum ccl_algorithm algorithm;
	struct ccl_tree_shape tree;
};

static const struct way ways[] = {{"multicast", CCL_BY_MULTICAST, {0}}, {"ring", CCL_BY_RING, {0}},
	{"k-nomial, 4", CCL_BY_TREE, {.radix = 4}}, {"binary tree", CCL_BY_TREE, {.binary = true}}};

static const struct traffic {
	const char *topology, *paper;
	unsigned ranks;
	enum ccl_collective op;
	uint64_t bytes; /* a rank's block; of a Broadcast all */
	bool large;
} traffics[] = {
	{"clos2:12x16x6", "1.5 to 2, fig. 12", 188, CCL_BROADCAST, 65536, false},
	{"clos2:12x16x6", "1.5 to 2, fig. 12", 188, CCL_ALLGATHER, 4096, false},
	{"fattree:16", "2, fig. 2", 1024, CCL_BROADCAST, 65536, true},
	{"fattree:16", "2, fig. 2", 1024, CCL_ALLGATHER, 1024, true},
};

struct outcome {
	uint64_t bytes, ns;
};

static int run_one(const struct traffic *t, const struct way *way, uint64_t seed,
	struct outcome *out, char *err)
{
	const uint64_t whole = t->op == CCL_ALLGATHER ? t->bytes * t->ranks : t->bytes;
	struct world w;
	struct sim_coll *coll;
	struct sim_coll_conf conf;
	uint64_t before;
	int rc = world_open(&w, t->topology, seed, err);

	if (rc)
		return rc;
	conf = between_hosts(&w, way->algorithm, t->ranks);
	conf.tree = way->tree;
	rc = sim_coll_create(&conf, &coll, err);
	if (rc == 0) {
		before = sim_port_bytes(w.sim);
		rc = sim_coll_run(coll, t->op, whole, LIMIT_NS, &out->ns);
		out->bytes = sim_port_bytes(w.sim) - before;
		rc = rc ? rc : sim_coll_check(coll);
		if (rc)
			snprintf(err, CCL_ERR_LEN, "%s: %.400s", strerror(-rc),
				sim_coll_error(coll));
		sim_coll_destroy(coll);
	}
	world_close(&w);
	return rc;
}

static int one_traffic(const struct traffic *t, uint64_t seed, json_t *rows)
{
	struct outcome mine = {0}, out;
	char err[CCL_ERR_LEN] = "";
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!(ccl_algorithm_does(ways[i].algorithm) >> t->op & 1))
			continue;
		rc = run_one(t, &ways[i], seed, &out, err);
		if (rc)
			break;
		if (i == 0)
			mine = out;
		printf("%-14s %5u %-10s %7llu  %-12s %14llu %9.1f %7.2f  %s\n", t->topology,
			t->ranks, ccl_collective_name(t->op), (unsigned long long)t->bytes,
			ways[i].name, (unsigned long long)out.bytes, (double)out.ns / 1000,
			(double)out.bytes / (double)mine.bytes, i ? t->paper : "");
		json_array_append_new(
			rows, json_pack("{s:s,s:i,s:s,s:I,s:s,s:I,s:I,s:f,s:s}", "topology",
				      t->topology, "ranks", (int)t->ranks, "collective",
				      ccl_collective_name(t->op), "bytes", (json_int_t)t->bytes,
				      "algorithm", ways[i].name, "port_bytes",
				      (json_int_t)out.bytes, "ns", (json_int_t)out.ns, "ratio",
				      (double)out.bytes / (double)mine.bytes, "paper", t->paper));
	}
	if (rc)
		printf("%s: %s\n", t->topology, err);
	return rc;
}

static int traffic(bool quick, uint64_t seed, json_t *rows)
{
	int rc = 0;

	printf("%-14s %5s %-10s %7s  %-12s %14s %9s %7s  paper\n", "topology", "ranks",
		"collective", "bytes", "algorithm", "bytes at ports", "us", "ratio");
	for (unsigned i = 0; rc == 0 && i < sizeof(traffics) / sizeof(traffics[0]); i++)
		if (!(quick && traffics[i].large))
			rc = one_traffic(&traffics[i], seed, rows);
	return rc;
}

int sim_multicast(const char *what, bool quick, uint64_t seed, json_t *result)
{
	json_t *rows = json_array();

	json_object_set_new(result, "rows", rows);
	if (strcmp(what, "traffic") == 0)
		return traffic(quick, seed, rows);
	fprintf(stderr, "incline-sim: multicast: %s: traffic is built\n", what);
	return -EINVAL;
}
