/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a job that gathers and broadcasts by multicast:
 *   mcast_job GROUP-FILE RANK MULTICAST-GROUP BYTES TIMES CHAINS [staged]
 * TIMES AllGathers of BYTES per rank, then as many Broadcasts of BYTES from every rank in turns,
 * each checked. staged: received by this program, as where the device does not do it by itself.
 * Prints its counters, its footprint and what it took as JSON. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/comm.h"
#include "lib/ccl/group.h"
#include "lib/ccl/mcast.h"

enum { MEET_MS = 60000 };

static uint8_t content(unsigned time, unsigned rank, uint64_t at)
{
	return (uint8_t)(time * 59 + rank * 17 + at * 7 + at / 256 * 13 + 1);
}

static bool is(const uint8_t *buf, uint64_t bytes, unsigned time, unsigned rank)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (buf[i] != content(time, rank, i)) {
			fprintf(stderr, "time %u, rank %u's block, byte %lu is wrong\n", time, rank,
				(unsigned long)i);
			return false;
		}
	return true;
}

static void fill(uint8_t *buf, uint64_t bytes, unsigned time, unsigned rank)
{
	for (uint64_t i = 0; i < bytes; i++)
		buf[i] = content(time, rank, i);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int wait_for(struct ccl_mcast *m, int rc, struct ccl_req req)
{
	while (rc == 0) {
		const int n = ccl_mcast_progress(m, (uint64_t)(now() * 1e9));

		rc = n < 0 ? n : ccl_mcast_test(m, req);
		if (rc == 0 && n == 0)
			sched_yield();
	}
	return rc == 1 ? 0 : rc;
}

static int gather(struct ccl_mcast *m, uint8_t *buf, uint64_t bytes, unsigned rank, unsigned n,
	unsigned times)
{
	struct ccl_req req = {0};
	int rc = 0;

	for (unsigned t = 0; rc == 0 && t < times; t++) {
		memset(buf, 0xee, n * bytes);
		fill(buf + rank * bytes, bytes, t, rank);
		rc = ccl_mcast_iallgather(m, buf + rank * bytes, buf, bytes, &req);
		rc = wait_for(m, rc, req);
		for (unsigned i = 0; rc == 0 && i < n; i++)
			rc = is(buf + i * bytes, bytes, t, i) ? 0 : -EILSEQ;
	}
	return rc;
}

static int broadcast(struct ccl_mcast *m, uint8_t *buf, uint64_t bytes, unsigned rank, unsigned n,
	unsigned times)
{
	struct ccl_req req = {0};
	int rc = 0;

	for (unsigned t = 0; rc == 0 && t < times * n; t++) {
		memset(buf, 0xee, bytes);
		if (t % n == rank)
			fill(buf, bytes, t, rank);
		rc = ccl_mcast_ibroadcast(m, buf, bytes, t % n, &req);
		rc = wait_for(m, rc, req);
		if (rc == 0)
			rc = is(buf, bytes, t, t % n) ? 0 : -EILSEQ;
	}
	return rc;
}

static void report(const struct ccl_mcast *m, double seconds)
{
	const struct mcast_counters *c = ccl_mcast_counters(m);
	struct ccl_mcast_info info;

	ccl_mcast_query(m, &info);
	printf("{\"seconds\": %.6f, \"mtu\": %u, \"ud_qps\": %u, \"rc_qps\": %u, \"staging\": %lu",
		seconds, info.mtu, info.ud_qps, info.rc_qps, (unsigned long)info.staging_bytes);
#define X(name, text) printf(", \"" #name "\": %lu", (unsigned long)c->name);
	MCAST_COUNTERS(X)
#undef X
	printf("}\n");
}

static int job(char **argv, char *err)
{
	const unsigned rank = (unsigned)atoi(argv[2]), times = (unsigned)atoi(argv[5]);
	const uint64_t bytes = (uint64_t)atoll(argv[4]);
	struct ccl_mcast_conf conf = {
		.rank = rank, .chains = (unsigned)atoi(argv[6]), .staged = argv[7] != NULL};
	struct ccl_group *group;
	struct ccl_boot *boot = NULL;
	struct ccl_mcast *m = NULL;
	uint8_t *buf = NULL;
	double began;
	int rc = ccl_group_load(argv[1], &group, err);

	if (rc)
		return rc;
	conf.n_ranks = group->n_ranks;
	conf.timeout_ns = UINT64_C(30000000000);
	rc = wire_ip_parse(argv[3], &conf.group);
	if (rc == 0)
		rc = ccl_boot_open(group->bootstrap, rank, group->n_ranks, MEET_MS, &boot, err);
	if (rc == 0)
		rc = ccl_device_open(group->device, &group->rank_ip[rank], group->gid_index,
			&conf.context, &conf.port, &conf.gid_index, err);
	if (rc == 0)
		rc = ccl_mcast_open(&conf, &m, err);
	if (rc == 0)
		rc = ccl_mcast_meet(m, boot, err);
	if (rc == 0) {
		buf = malloc(group->n_ranks * bytes);
		began = now();
		rc = gather(m, buf, bytes, rank, group->n_ranks, times);
		if (rc == 0)
			rc = broadcast(m, buf, bytes, rank, group->n_ranks, times);
		if (rc)
			snprintf(err, CCL_ERR_LEN, "%s", ccl_mcast_error(m));
		else
			report(m, now() - began);
	}
	/* Everybody has had his answers before anybody's queue pairs go. */
	if (rc == 0)
		rc = ccl_boot_barrier(boot, err);
	ccl_mcast_close(m);
	ccl_boot_close(boot);
	if (conf.context)
		ibv_close_device(conf.context);
	ccl_group_free(group);
	free(buf);
	return rc;
}

int main(int argc, char **argv)
{
	char err[CCL_ERR_LEN] = "";
	int rc;

	if (argc != 7 && (argc != 8 || strcmp(argv[7], "staged"))) {
		fprintf(stderr, "usage: mcast_job GROUP-FILE RANK MULTICAST-GROUP BYTES TIMES "
				"CHAINS [staged]\n");
		return 2;
	}
	rc = job(argv, err);
	if (rc)
		fprintf(stderr, "mcast_job: rank %s: %s (%s)\n", argv[2], err, strerror(-rc));
	return rc != 0;
}
