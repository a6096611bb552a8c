/* SPDX-License-Identifier: BSD-3-Clause */
/* NetReduce, section 3.4: an AllReduce of four machines with four devices each, 400 Gb/s inside and
 * 100 Gb/s between them, by the ways of figure 6, beside the cost model. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/sim_measure.h"
#include "apps/sim_models.h"
#include "lib/sim/nodes.h"
#include "lib/sim/ring_cost.h"

enum { NODES = 4, LOCAL = 4, MTU = 1024, M = 4, W = 64, INTRA = 400000, INTER = 100000 };

static const struct sim_link_conf inside = {.mbps = INTRA, .delay_ns = 1000},
				  between = {.mbps = INTER, .delay_ns = 1000};

enum { FLAT, MASTER, PARALLEL_RINGS, PARALLEL, N_WAYS };
static const char *const way_name[N_WAYS] = {
	"flat ring", "Tencent's", "parallel rings", "parallel NetReduce"};

static double flat(uint64_t bytes, uint64_t seed, char *err)
{
	const struct sim_job job = {.topology = "tree:4x4",
		.conf = {.seed = seed, .link = between},
		.group = {.mode = CCL_MODE_RING,
			.mtu = MTU,
			.m = M,
			.w = W,
			.flags = INC_F_STALL_RNR,
			.start_psn = 1000},
		.n_other = 2 * NODES * LOCAL,
		.other = inside,
		.op = CCL_ALLREDUCE,
		.bytes = bytes};

	return sim_measure(&job, err).ns;
}

static double by_nodes(unsigned way, uint64_t bytes, uint64_t seed, char *err)
{
	struct sim_topo topo;
	struct sim_conf conf = {.topo = &topo, .seed = seed, .link = between};
	struct sim_nodes_conf k = {.n_nodes = NODES,
		.n_local = LOCAL,
		.way = way == MASTER ? CCL_NODES_MASTER : CCL_NODES_PARALLEL,
		.across = way == PARALLEL ? CCL_MODE_NETREDUCE : CCL_MODE_RING,
		.mtu = MTU,
		.m = M,
		.w = W};
	struct sim_nodes *nodes;
	uint64_t ns = 0;
	int rc = sim_topo_make("tree:4x4", &topo, err);

	if (rc)
		return NAN;
	k.root = topo.root;
	rc = sim_create(&conf, &k.sim, err);
	if (rc == 0) {
		for (unsigned i = 0; i < 2 * NODES * LOCAL; i++)
			sim_set_link(k.sim, i, &inside);
		rc = sim_nodes_create(&k, &nodes, err);
		if (rc == 0) {
			rc = sim_nodes_allreduce(nodes, bytes / 4, false, 60000000000, &ns);
			if (rc)
				snprintf(err, CCL_ERR_LEN, "%s: %.400s", strerror(-rc),
					sim_nodes_error(nodes));
			sim_nodes_destroy(nodes);
		}
		sim_destroy(k.sim);
	}
	sim_topo_free(&topo);
	return rc ? NAN : (double)ns;
}

/* Headers off the bandwidth; a hop inside is two links. NAN: the paper has no model of it. */
static double model(unsigned way, double bytes)
{
	const double payload = MTU / (MTU + 82.0) * 1e6 / 8;
	const struct ring_cost_setting s = {
		LOCAL, NODES * LOCAL, 2e-6, INTRA * payload, INTER * payload};
	const struct ring_cost c = way == FLAT     ? ring_cost_flat(&s)
				   : way == MASTER ? ring_cost_tencent(&s)
						   : ring_cost_parallel(&s);

	return way == PARALLEL_RINGS ? NAN : ring_cost_seconds(c, &s, bytes) * 1e6;
}

static int row(json_t *rows, unsigned way, uint64_t bytes, uint64_t seed)
{
	char err[CCL_ERR_LEN] = "", by_model[16] = "-";
	const double ns = way == FLAT ? flat(bytes, seed, err) : by_nodes(way, bytes, seed, err);
	const double us = model(way, (double)bytes);

	if (isnan(ns)) {
		printf("%s: %s\n", way_name[way], err);
		return -1;
	}
	if (!isnan(us))
		snprintf(by_model, sizeof(by_model), "%.1f", us);
	printf("%10llu  %-18s %12.1f %10.2f %10s\n", (unsigned long long)bytes, way_name[way],
		ns / 1e3, (double)bytes * 8 / ns, by_model);
	json_array_append_new(
		rows, json_pack("{s:I,s:s,s:f,s:f,s:o}", "bytes", (json_int_t)bytes, "way",
			      way_name[way], "us", ns / 1e3, "gbps", (double)bytes * 8 / ns,
			      "model_us", isnan(us) ? json_null() : json_real(us)));
	return 0;
}

int sim_nodes_table(bool quick, uint64_t seed, json_t *result)
{
	static const uint64_t size[] = {16384, 262144, 1 << 20, 4 << 20};
	json_t *rows = json_array();
	int rc = 0;

	printf("AllReduce, four machines of four ranks, 400 Gb/s inside, 100 Gb/s between\n"
	       "%10s  %-18s %12s %10s %10s\n",
		"bytes", "", "us", "Gb/s", "model, us");
	for (unsigned k = 0; k < (quick ? 2 : sizeof(size) / sizeof(size[0])); k++)
		for (unsigned way = 0; way < N_WAYS; way++)
			rc |= row(rows, way, size[k], seed);
	json_object_set_new(result, "rows", rows);
	return rc;
}
