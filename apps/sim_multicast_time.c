/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 10: where the time of a collective by multicast goes, at the rank that is ready last. */
#include "apps/sim_multicast_time.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/sim/coll.h"

enum { MBPS = 100000, DELAY_NS = 500, MTU = 4096 };
static const uint64_t LIMIT_NS = UINT64_C(60000000000);
static const char PAPER[] = "dominates from 16 nodes on: 99 %";

static const struct parts_case {
	const char *topology;
	unsigned ranks;
	enum ccl_collective op;
	uint64_t bytes; /* a rank's block; of a Broadcast all */
	double loss;
	bool paper, large;
} cases[] = {
	{"star:4", 4, CCL_ALLGATHER, 4096, 0, false, false},
	{"star:4", 4, CCL_ALLGATHER, 1 << 20, 0, false, false},
	{"star:16", 16, CCL_ALLGATHER, 4096, 0, true, false},
	{"star:16", 16, CCL_ALLGATHER, 65536, 0, true, false},
	{"star:16", 16, CCL_ALLGATHER, 1 << 20, 0, true, true},
	{"clos2:12x16x6", 188, CCL_ALLGATHER, 4096, 0, true, true},
	{"star:16", 16, CCL_BROADCAST, 4096, 0, false, false},
	{"star:16", 16, CCL_BROADCAST, 1 << 20, 0, false, false},
	{"clos2:12x16x6", 188, CCL_BROADCAST, 65536, 0, false, false},
	{"star:16", 16, CCL_ALLGATHER, 65536, 0.001, false, false},
	{"star:16", 16, CCL_BROADCAST, 1 << 20, 0.001, false, false},
};

/* Each of ns, of the rank that is ready last. */
struct parts {
	uint64_t barrier, multicast, wait, recovery, handshake;
	uint64_t total; /* from the issue on, by the simulator's clock */
};

static bool done(void *coll)
{
	return sim_coll_done(coll, NULL);
}

/* From one step to the next. Without a cutoff all of it is multicast; what comes of that after the
 * cutoff is no wait. */
static struct parts split(const struct ccl_mcast_times *t)
{
	const uint64_t came = !t->cut                ? t->whole
			      : t->came > t->cut     ? t->cut
			      : t->came < t->running ? t->running
						     : t->came;

	return (struct parts){.barrier = t->running - t->begun,
		.multicast = came - t->running,
		.wait = t->cut ? t->cut - came : 0,
		.recovery = t->cut ? t->whole - t->cut : 0,
		.handshake = t->ended - t->whole};
}

static const struct ccl_mcast_times *last_rank(
	const struct sim_coll *coll, unsigned n, struct ccl_mcast_times *out)
{
	for (unsigned r = 0; r < n; r++) {
		struct ccl_mcast_times t;

		ccl_mcast_times(sim_coll_mcast(coll, r), &t);
		if (t.ended > out->ended)
			*out = t;
	}
	return out;
}

static int measure(
	const struct parts_case *p, struct sim *sim, unsigned root, struct parts *out, char *err)
{
	const struct sim_coll_conf conf = {.sim = sim,
		.algorithm = CCL_BY_MULTICAST,
		.mode = CCL_MODE_RING,
		.staged = true, /* whose thread sees each chunk come */
		.n_ranks = p->ranks,
		.root = root,
		.mtu = MTU,
		.m = 4,
		.w = 16,
		.start_psn = 1000};
	const struct sim_work work = {
		.op = p->op, .bytes = p->op == CCL_ALLGATHER ? p->bytes * p->ranks : p->bytes};
	struct ccl_mcast_times last = {0};
	struct sim_coll *coll;
	uint64_t ns = 0;
	int rc = sim_coll_create(&conf, &coll, err);

	if (rc)
		return rc;
	rc = sim_coll_issue(coll, &work, 0);
	rc = rc ? rc : sim_run(sim, done, coll, sim_now(sim) + LIMIT_NS);
	if (rc == 0) {
		sim_coll_done(coll, &ns);
		*out = split(last_rank(coll, p->ranks, &last));
		out->total = ns;
		rc = sim_coll_check(coll);
	}
	if (rc)
		snprintf(err, CCL_ERR_LEN, "%s: %.400s", strerror(-rc), sim_coll_error(coll));
	sim_coll_destroy(coll);
	return rc;
}

static int one(const struct parts_case *p, uint64_t seed, struct parts *out, char *err)
{
	struct sim_topo topo;
	struct sim_conf conf = {.topo = &topo,
		.seed = seed,
		.max_qp = 300,
		.link = {.mbps = MBPS, .delay_ns = DELAY_NS, .loss = p->loss}};
	struct sim *sim;
	int rc = sim_topo_make(p->topology, &topo, err);

	if (rc)
		return rc;
	rc = sim_create(&conf, &sim, err);
	if (rc == 0) {
		rc = measure(p, sim, topo.root, out, err);
		sim_destroy(sim);
	}
	sim_topo_free(&topo);
	return rc;
}

static void report(const struct parts_case *p, const struct parts *t, json_t *rows)
{
	const double share = 100 * (double)t->multicast / (double)t->total;

	printf("%-9s %5u %8llu %6.1f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %6.1f %%  %s\n",
		ccl_collective_name(p->op), p->ranks, (unsigned long long)p->bytes, 100 * p->loss,
		(double)t->barrier / 1000, (double)t->multicast / 1000, (double)t->wait / 1000,
		(double)t->recovery / 1000, (double)t->handshake / 1000, (double)t->total / 1000,
		share, p->paper ? PAPER : "");
	json_array_append_new(rows,
		json_pack("{s:s,s:i,s:I,s:f,s:I,s:I,s:I,s:I,s:I,s:I}", "collective",
			ccl_collective_name(p->op), "ranks", (int)p->ranks, "bytes",
			(json_int_t)p->bytes, "loss", p->loss, "barrier_ns", (json_int_t)t->barrier,
			"multicast_ns", (json_int_t)t->multicast, "wait_ns", (json_int_t)t->wait,
			"recovery_ns", (json_int_t)t->recovery, "handshake_ns",
			(json_int_t)t->handshake, "total_ns", (json_int_t)t->total));
}

int sim_multicast_time(bool quick, uint64_t seed, json_t *rows)
{
	char err[CCL_ERR_LEN] = "";
	int rc = 0;

	printf("where the time of the rank goes that is ready last, us; 100 Gb/s, loss in %% per "
	       "link\n%-9s %5s %8s %6s %9s %9s %9s %9s %9s %9s %8s  paper, of multicast\n",
		"", "ranks", "bytes", "loss", "barrier", "multicast", "cutoff", "recovery",
		"handshake", "all", "");
	for (unsigned i = 0; rc == 0 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parts t;

		if (quick && cases[i].large)
			continue;
		rc = one(&cases[i], seed, &t, err);
		if (rc)
			printf("%s: %s\n", cases[i].topology, err[0] ? err : strerror(-rc));
		else
			report(&cases[i], &t, rows);
	}
	return rc;
}
