/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/sim_multicast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/sim_multicast_time.h"
#include "lib/sim/coll.h"

enum { MBPS = 100000, DELAY_NS = 500, MTU = 4096 };
static const uint64_t LIMIT_NS = UINT64_C(60000000000);

struct world {
	struct sim_topo topo;
	struct sim *sim;
};

/* priority: acknowledgements go ahead of data on every link. quantum: of RNICs, 0: their default.
 */
static int world_open(struct world *w, const char *topology, bool priority, uint32_t quantum,
	uint64_t seed, char *err)
{
	struct sim_conf conf = {.topo = &w->topo,
		.seed = seed,
		.max_qp = 300,
		.rnic_quantum = quantum,
		.link = {.mbps = MBPS, .delay_ns = DELAY_NS, .priority = priority}};
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
	bool uc;
};

static const struct way ways[] = {{"multicast", CCL_BY_MULTICAST, {0}},
	{"multicast, UC", CCL_BY_MULTICAST, .uc = true}, {"ring", CCL_BY_RING, {0}},
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

static bool done(void *coll)
{
	return sim_coll_done(coll, NULL);
}

/* Ranks come up to skew_ns apart. */
static int run_one(const struct traffic *t, const struct way *way, uint64_t seed, uint64_t skew_ns,
	struct outcome *out, char *err)
{
	const struct sim_work work = {
		.op = t->op, .bytes = t->op == CCL_ALLGATHER ? t->bytes * t->ranks : t->bytes};
	struct world w;
	struct sim_coll *coll;
	struct sim_coll_conf conf;
	uint64_t before;
	int rc = world_open(&w, t->topology, false, 0, seed, err);

	if (rc)
		return rc;
	conf = between_hosts(&w, way->algorithm, t->ranks);
	conf.tree = way->tree;
	conf.uc = way->uc;
	rc = sim_coll_create(&conf, &coll, err);
	if (rc == 0) {
		before = sim_port_bytes(w.sim);
		rc = sim_coll_issue(coll, &work, skew_ns);
		rc = rc ? rc : sim_run(w.sim, done, coll, sim_now(w.sim) + LIMIT_NS);
		out->bytes = sim_port_bytes(w.sim) - before;
		sim_coll_done(coll, &out->ns);
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
		rc = run_one(t, &ways[i], seed, 0, &out, err);
		if (rc)
			break;
		if (i == 0)
			mine = out;
		printf("%-14s %5u %-10s %7llu  %-13s %14llu %9.1f %7.2f  %s\n", t->topology,
			t->ranks, ccl_collective_name(t->op), (unsigned long long)t->bytes,
			ways[i].name, (unsigned long long)out.bytes, (double)out.ns / 1000,
			(double)out.bytes / (double)mine.bytes,
			ways[i].algorithm != CCL_BY_MULTICAST ? t->paper : "");
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

	printf("%-14s %5s %-10s %7s  %-13s %14s %9s %7s  paper\n", "topology", "ranks",
		"collective", "bytes", "algorithm", "bytes at ports", "us", "ratio");
	for (unsigned i = 0; rc == 0 && i < sizeof(traffics) / sizeof(traffics[0]); i++)
		if (!(quick && traffics[i].large))
			rc = one_traffic(&traffics[i], seed, rows);
	return rc;
}

/* ---- throughput ---- */

/* Figure 11. Only when ranks come differs from run to run: hosts and switches take no time. */
enum { RUNS = 5, RUNS_QUICK = 3 };
/* From this size on it makes no difference when ranks come, and a run takes long: one is made. */
enum { ONE_RUN = 8 << 20 };
static const uint64_t SKEW_NS = 10000;

static const struct traffic rates[] = {
	{"clos2:12x16x6", "1.3 and 4.75 x at most", 188, CCL_BROADCAST, 4096, false},
	{"clos2:12x16x6", "1.3 and 4.75 x at most", 188, CCL_BROADCAST, 65536, false},
	{"clos2:12x16x6", "1.3 and 4.75 x at most", 188, CCL_BROADCAST, 1 << 20, true},
	{"clos2:12x16x6", "1.3 and 4.75 x at most", 188, CCL_BROADCAST, ONE_RUN, true},
	{"clos2:12x16x6", "as the ring", 188, CCL_ALLGATHER, 4096, false},
};

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Gb/s that a rank receives, of each run, in order. */
static int rates_of(const struct traffic *t, const struct way *way, uint64_t seed, unsigned n,
	double *rate, char *err)
{
	const uint64_t bytes = t->op == CCL_ALLGATHER ? t->bytes * (t->ranks - 1) : t->bytes;
	struct outcome out;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		rc = run_one(t, way, seed + i, SKEW_NS, &out, err);
		rate[i] = rc ? 0 : 8 * (double)bytes / (double)out.ns;
	}
	qsort(rate, n, sizeof(rate[0]), by_size);
	return rc;
}

static int one_rate(const struct traffic *t, unsigned n, uint64_t seed, json_t *rows)
{
	double rate[RUNS], mine = 0;
	char err[CCL_ERR_LEN] = "";
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!(ccl_algorithm_does(ways[i].algorithm) >> t->op & 1))
			continue;
		rc = rates_of(t, &ways[i], seed, n, rate, err);
		if (rc)
			break;
		mine = i == 0 ? rate[n / 2] : mine;
		printf("%-10s %8llu  %-13s %8.2f %8.2f %8.2f %7.2f  %s\n",
			ccl_collective_name(t->op), (unsigned long long)t->bytes, ways[i].name,
			rate[n / 2], rate[0], rate[n - 1], mine / rate[n / 2],
			ways[i].algorithm != CCL_BY_MULTICAST ? t->paper : "");
		json_array_append_new(
			rows, json_pack("{s:s,s:I,s:s,s:f,s:f,s:f,s:f}", "collective",
				      ccl_collective_name(t->op), "bytes", (json_int_t)t->bytes,
				      "algorithm", ways[i].name, "median", rate[n / 2], "least",
				      rate[0], "most", rate[n - 1], "gain", mine / rate[n / 2]));
	}
	if (rc)
		printf("%s: %s\n", t->topology, err);
	return rc;
}

static int throughput(bool quick, uint64_t seed, json_t *rows)
{
	const unsigned n = quick ? RUNS_QUICK : RUNS;
	int rc = 0;

	printf("188 hosts on 18 switches, 100 Gb/s: Gb/s that a rank receives, of %u runs (8 MiB: "
	       "of one)\n"
	       "%-10s %8s  %-13s %8s %8s %8s %7s  paper\n",
		n, "collective", "bytes", "algorithm", "median", "least", "most", "gain");
	for (unsigned i = 0; rc == 0 && i < sizeof(rates) / sizeof(rates[0]); i++)
		if (!(quick && rates[i].large))
			rc = one_rate(&rates[i], rates[i].bytes < ONE_RUN ? n : 1, seed, rows);
	return rc;
}

/* ---- FSDP ---- */

/* Packets that a queue pair sends in its turn. A ReduceScatter has one for each rank, an AllGather
 * one: what all of them send in a turn has to be little beside a rank's block. */
enum { FSDP_QUANTUM = 1 };

/* Bytes of a rank's block, the paper's N: all of them are ranks squared, of both collectives. lead:
 * so long is the gather there before the scatter, by the network. Its barrier's messages wait a
 * turn in each round, which are as many packets as the scatter has queue pairs: log2(P) P of them,
 * which 64 ranks feel. No switch has 64 children: those are on two tiers. */
static const struct fsdp {
	const char *topology;
	unsigned ranks, block;
	bool large;
	uint64_t lead_ns;
} fsdps[] = {
	{"star:4", 4, 1 << 20, false},
	{"star:8", 8, 1 << 20, false},
	{"star:16", 16, 512 << 10, false},
	{"star:32", 32, 256 << 10, true},
	{"clos2:8x8x4", 64, 64 << 10, true, 20000},
};

static bool both_done(void *pair)
{
	struct sim_coll **coll = pair;

	return sim_coll_done(coll[0], NULL) && sim_coll_done(coll[1], NULL);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static int pass(struct sim *sim, uint64_t ns)
{
	const int rc = ns > 0 ? sim_run(sim, never, NULL, sim_now(sim) + ns) : 0;

	return rc == -ETIME ? 0 : rc;
}

/* AllGather and ReduceScatter of `bytes` at the same time, but for the lead; *ns from the first one
 * on. */
static int run_pair(
	struct sim *sim, struct sim_coll *coll[2], uint64_t bytes, uint64_t lead_ns, uint64_t *ns)
{
	const struct sim_work gather = {.op = CCL_ALLGATHER, .bytes = bytes},
			      scatter = {.op = CCL_REDUCE_SCATTER, .bytes = bytes};
	const uint64_t began = sim_now(sim);
	int rc = sim_coll_issue(coll[0], &gather, 0);

	if (rc == 0)
		rc = pass(sim, lead_ns);
	if (rc == 0)
		rc = sim_coll_issue(coll[1], &scatter, 0);
	if (rc == 0)
		rc = sim_run(sim, both_done, coll, began + LIMIT_NS);
	*ns = sim_now(sim) - began;
	for (unsigned i = 0; rc == 0 && i < 2; i++)
		rc = sim_coll_check(coll[i]);
	return rc;
}

static int fsdp_one(const struct fsdp *f, bool network, uint64_t seed, uint64_t *ns, char *err)
{
	struct sim_coll *coll[2] = {NULL, NULL};
	struct sim_coll_conf conf[2];
	const unsigned ranks = f->ranks;
	struct world w;
	int rc = world_open(&w, f->topology, true, FSDP_QUANTUM, seed, err);

	if (rc)
		return rc;
	conf[0] = conf[1] = between_hosts(&w, network ? CCL_BY_MULTICAST : CCL_BY_RING, ranks);
	if (network) {
		/* All roots at a time: one alone would share its uplink, and hold the others up. */
		conf[0].chains = ranks;
		conf[1].algorithm = CCL_BY_INC;
		conf[1].mode = CCL_MODE_3;
		conf[1].kind = CCL_SINGLE;
		conf[1].collectives = 1u << CCL_REDUCE_SCATTER;
		conf[1].w = (uint16_t)(16 * ranks);
		conf[1].flags = INC_F_STALL_RNR;
	}
	for (unsigned i = 0; rc == 0 && i < 2; i++)
		rc = sim_coll_create(&conf[i], &coll[i], err);
	if (rc == 0)
		rc = run_pair(
			w.sim, coll, (uint64_t)f->block * ranks, network ? f->lead_ns : 0, ns);
	for (unsigned i = 0; i < 2; i++) {
		if (rc && coll[i] && !err[0])
			snprintf(err, CCL_ERR_LEN, "%s: %.400s", strerror(-rc),
				sim_coll_error(coll[i]));
		if (coll[i])
			sim_coll_destroy(coll[i]);
	}
	world_close(&w);
	return rc;
}

static int fsdp(bool quick, uint64_t seed, json_t *rows)
{
	char err[CCL_ERR_LEN] = "";
	int rc = 0;

	printf("AllGather and ReduceScatter at the same time, 100 Gb/s\n"
	       "%5s %8s %14s %14s %9s %9s %9s\n",
		"ranks", "block", "rings, us", "network, us", "speedup", "2 - 2/P", "of it");
	for (unsigned i = 0; rc == 0 && i < sizeof(fsdps) / sizeof(fsdps[0]); i++) {
		const unsigned p = fsdps[i].ranks;
		const double want = 2 - 2.0 / p;
		uint64_t ring = 0, network = 0;
		double speedup;

		if (quick && fsdps[i].large)
			continue;
		rc = fsdp_one(&fsdps[i], false, seed, &ring, err);
		if (rc == 0)
			rc = fsdp_one(&fsdps[i], true, seed, &network, err);
		if (rc)
			break;
		speedup = (double)ring / (double)network;
		printf("%5u %8u %14.1f %14.1f %9.3f %9.3f %8.1f %%\n", p, fsdps[i].block,
			(double)ring / 1000, (double)network / 1000, speedup, want,
			100 * speedup / want);
		json_array_append_new(rows,
			json_pack("{s:i,s:i,s:I,s:I,s:f,s:f}", "ranks", (int)p, "block",
				(int)fsdps[i].block, "ring_ns", (json_int_t)ring, "network_ns",
				(json_int_t)network, "speedup", speedup, "paper", want));
	}
	if (rc)
		printf("%s\n", err[0] ? err : strerror(-rc));
	return rc;
}

int sim_multicast(const char *what, bool quick, uint64_t seed, json_t *result)
{
	json_t *rows = json_array();

	json_object_set_new(result, "rows", rows);
	if (strcmp(what, "traffic") == 0)
		return traffic(quick, seed, rows);
	if (strcmp(what, "throughput") == 0)
		return throughput(quick, seed, rows);
	if (strcmp(what, "fsdp") == 0)
		return fsdp(quick, seed, rows);
	if (strcmp(what, "time") == 0)
		return sim_multicast_time(quick, seed, rows);
	fprintf(stderr, "incline-sim: multicast: %s: traffic, throughput, fsdp or time\n", what);
	return -EINVAL;
}
