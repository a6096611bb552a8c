/* SPDX-License-Identifier: BSD-3-Clause */
/* One Broadcast by multicast on virtual time, for multicast.py to count the instructions of:
 * bench-multicast ud|uc|staged RANKS CHUNKS. Rank 0 is the root. Links take no time, so that chunks
 * come in bursts, as they do where packets come faster than programs look. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/sim/coll.h"

enum { MTU = 4096 };
static const uint64_t LIMIT_NS = UINT64_C(60000000000);

static int run(const struct sim_coll_conf *conf, unsigned chunks, char *err)
{
	struct sim_coll *coll;
	int rc = sim_coll_create(conf, &coll, err);
	uint64_t ns;

	if (rc)
		return rc;
	rc = sim_coll_run(coll, CCL_BROADCAST, (uint64_t)chunks * MTU, LIMIT_NS, &ns);
	rc = rc ? rc : sim_coll_check(coll);
	for (unsigned r = 1; rc == 0 && r < conf->n_ranks; r++) {
		const struct mcast_counters *c = ccl_mcast_counters(sim_coll_mcast(coll, r));

		if (c->taken == chunks && c->duplicate == 0)
			continue;
		snprintf(err, CCL_ERR_LEN, "rank %u took %llu chunks of %u", r,
			(unsigned long long)c->taken, chunks);
		rc = -1;
	}
	sim_coll_destroy(coll);
	return rc;
}

int main(int argc, char **argv)
{
	struct sim_topo topo;
	char err[CCL_ERR_LEN] = "bench-multicast ud|uc|staged RANKS CHUNKS", star[32];
	struct sim_coll_conf conf = {.algorithm = CCL_BY_MULTICAST, .mtu = MTU, .m = 4, .w = 16};
	struct sim_conf world = {.topo = &topo, .seed = 1, .link = {.delay_ns = 500}};
	int rc = -1;

	if (argc == 4) {
		conf.uc = strcmp(argv[1], "uc") == 0;
		conf.staged = strcmp(argv[1], "staged") == 0;
		conf.n_ranks = (unsigned)atoi(argv[2]);
		snprintf(star, sizeof(star), "star:%u", conf.n_ranks);
		rc = sim_topo_make(star, &topo, err);
		conf.root = rc ? 0 : topo.root;
	}
	if (rc == 0)
		rc = sim_create(&world, &conf.sim, err);
	if (rc == 0)
		rc = run(&conf, (unsigned)atoi(argv[3]), err);
	if (rc)
		fprintf(stderr, "%s\n", err);
	return rc != 0;
}
