/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast and AllGather by multicast, and Broadcast down trees, on virtual time: exact in bad
 * weather, each link once, many communicators, bounded when a rank dies. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/sim/coll.h"
#include "lib/verbs/incline_dv.h"
#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"
#include "lib/wire/multicast.h"

enum { MTU = 1024 };
static const uint64_t LIMIT_NS = UINT64_C(60000000000);

static bool over_uc, staged;        /* multicast */
static unsigned n_trees, n_workers; /* likewise; 0: one, none */
static uint32_t first_psn;          /* likewise */

struct world {
	struct sim_topo topo;
	struct sim *sim;
};

static void open_world(struct world *w, const char *topology, bool bad_weather)
{
	char err[SIM_ERR_LEN];
	struct sim_conf conf = {.topo = &w->topo,
		.seed = 7,
		.max_qp = 512,
		.rx_workers = n_workers,
		.link = {.mbps = 100000, .delay_ns = 500}};

	if (bad_weather) {
		conf.link.loss = conf.link.dup = conf.link.reorder = 0.01;
		conf.link.corrupt = 0.002;
	}
	assert_int_equal(sim_topo_make(topology, &w->topo, err), 0);
	assert_int_equal(sim_create(&conf, &w->sim, err), 0);
}

static void close_world(struct world *w)
{
	sim_destroy(w->sim);
	sim_topo_free(&w->topo);
}

static struct sim_coll *make(const struct world *w, enum ccl_algorithm algorithm, unsigned ranks,
	unsigned chains, struct ccl_tree_shape shape)
{
	const struct sim_coll_conf conf = {.sim = w->sim,
		.algorithm = algorithm,
		.chains = chains,
		.uc = over_uc,
		.staged = staged,
		.trees = n_trees,
		.first_psn = first_psn,
		.tree = shape,
		.any_root = true,
		.n_ranks = ranks,
		.root = w->topo.root,
		.mtu = MTU,
		.m = 4,
		.w = 8,
		.timeout_ns = 2000000000};
	char err[CCL_ERR_LEN];
	struct sim_coll *coll;

	if (sim_coll_create(&conf, &coll, err))
		fail_msg("%s", err);
	return coll;
}

static bool done(void *coll)
{
	return sim_coll_done(coll, NULL);
}

static void finish(const struct world *w, struct sim_coll *coll)
{
	const int rc = sim_run(w->sim, done, coll, sim_now(w->sim) + LIMIT_NS);

	if (rc)
		fail_msg("%s: %s", strerror(-rc), sim_coll_error(coll));
	assert_int_equal(sim_coll_check(coll), 0);
}

static void issue(struct sim_coll *coll, enum ccl_collective op, unsigned root, uint64_t bytes)
{
	const struct sim_work work = {.op = op, .root = root, .bytes = bytes};

	assert_int_equal(sim_coll_issue(coll, &work, 20000), 0);
}

/* One collective behind the other, at ranks that come at different times. */
static void exact(void **state)
{
	uint64_t fetched = 0, twice = 0;

	(void)state;
	for (unsigned n = 2; n <= 9; n++) {
		struct world w;
		struct sim_coll *coll;

		open_world(&w, "clos2:3x3x2", true);
		coll = make(&w, CCL_BY_MULTICAST, n, n % 2 ? 1 : n / 2, (struct ccl_tree_shape){0});
		for (unsigned i = 0; i < 4; i++) {
			issue(coll, CCL_BROADCAST, i % n, 1 + i * 30000);
			issue(coll, CCL_ALLGATHER, 0, n * (4 + i * 5000));
		}
		finish(&w, coll);
		for (unsigned r = 0; r < n; r++) {
			fetched += ccl_mcast_counters(sim_coll_mcast(coll, r))->fetched;
			twice += ccl_mcast_counters(sim_coll_mcast(coll, r))->duplicate;
		}
		sim_coll_destroy(coll);
		close_world(&w);
	}
	assert_true(fetched > 0 && twice > 0);
}

static void trees(void **state)
{
	static const struct ccl_tree_shape shapes[] = {
		{.radix = 2}, {.radix = 4}, {.binary = true}};

	(void)state;
	for (unsigned s = 0; s < 3; s++)
		for (unsigned n = 1; n <= 9; n += 2) {
			struct world w;
			struct sim_coll *coll;

			open_world(&w, "clos2:3x3x2", true);
			coll = make(&w, CCL_BY_TREE, n, 0, shapes[s]);
			for (unsigned root = 0; root < n; root++)
				issue(coll, CCL_BROADCAST, root, root * 9999);
			finish(&w, coll);
			sim_coll_destroy(coll);
			close_world(&w);
		}
}

/* ---- each link once ---- */

enum { MAX_LINKS = 256, MAX_CHUNKS = 4096 };
struct seen {
	unsigned n_links, copies, twice;
	uint32_t first; /* immediate data of the first chunk */
	bool any;
	bool chunk[MAX_LINKS][MAX_CHUNKS];
	unsigned on[MAX_LINKS];
};

static void look(void *arg, unsigned link, const uint8_t *frame, unsigned len)
{
	struct seen *s = arg;
	struct wire_pkt pkt;
	uint32_t psn;

	if (wire_parse(frame, len, &pkt) != WIRE_OK || !wire_is_multicast(&pkt.dst) ||
		pkt.kind != WIRE_ROCE)
		return;
	psn = pkt.imm & 0xffffff;
	assert_in_range(psn, 0, MAX_CHUNKS - 1);
	s->copies++;
	s->on[link]++;
	s->twice += s->chunk[link][psn];
	s->chunk[link][psn] = true;
}

static void each_link_once(void **state)
{
	enum { N = 16, CHUNKS = 3, BLOCK = CHUNKS * 4096 - 100 };
	static struct seen seen;
	struct world w;
	struct sim_coll *coll;

	(void)state;
	for (unsigned chains = 1; chains <= N; chains *= 4) {
		memset(&seen, 0, sizeof(seen));
		open_world(&w, "fattree:4", false);
		assert_in_range(sim_n_links(w.sim), 2 * N, MAX_LINKS);
		coll = make(&w, CCL_BY_MULTICAST, N, chains, (struct ccl_tree_shape){0});
		sim_set_tap(w.sim, look, &seen);
		issue(coll, CCL_ALLGATHER, 0, N * BLOCK);
		finish(&w, coll);
		assert_int_equal(seen.twice, 0);
		for (unsigned h = 0; h < N; h++) {
			assert_int_equal(seen.on[2 * h], CHUNKS); /* up: the own ones */
			assert_int_equal(
				seen.on[2 * h + 1], (N - 1) * CHUNKS); /* down: the others' */
			assert_int_equal(ccl_mcast_counters(sim_coll_mcast(coll, h))->taken,
				(N - 1) * CHUNKS);
			assert_int_equal(ccl_mcast_counters(sim_coll_mcast(coll, h))->fetched, 0);
		}
		for (unsigned l = 2 * N; l < sim_n_links(w.sim); l += 2) /* both ways of an edge */
			assert_true(seen.on[l] + seen.on[l + 1] == 0 ||
				    seen.on[l] + seen.on[l + 1] == N * CHUNKS);
		sim_coll_destroy(coll);
		close_world(&w);
	}
}

/* ---- workers ---- */

static uint64_t stat_of(const struct world *w, unsigned host, const char *name)
{
	struct inc_dv_stat stats[256];
	unsigned n;

	assert_int_equal(inc_dv_query_stats(sim_context(w->sim, host), stats, 256, &n), 0);
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(stats[i].name, name) == 0)
			return stats[i].value;
	}
	fail_msg("no counter %s", name);
	return 0;
}

struct shares {
	unsigned of[CCL_MCAST_MAX_TREES], other;
};

/* What a root sends to each of the groups. */
static void count_shares(void *arg, unsigned link, const uint8_t *frame, unsigned len)
{
	struct shares *s = arg;
	struct wire_pkt pkt;

	if (link != 0 || wire_parse(frame, len, &pkt) != WIRE_OK || pkt.kind != WIRE_ROCE ||
		!wire_is_multicast(&pkt.dst))
		return;
	if (pkt.dst.b[15] - 1u < CCL_MCAST_MAX_TREES)
		s->of[pkt.dst.b[15] - 1]++;
	else
		s->other++;
}

/* Each tree carries the same part, and all of it is taken by the receive workers. */
static void shares(void **state)
{
	enum { N = 4, CHUNKS = 120 };
	struct shares seen = {0};
	struct sim_coll *coll;
	struct world w;

	(void)state;
	open_world(&w, "clos2:2x4x2", false);
	coll = make(&w, CCL_BY_MULTICAST, N, 1, (struct ccl_tree_shape){0});
	sim_set_tap(w.sim, count_shares, &seen);
	issue(coll, CCL_BROADCAST, 0, CHUNKS * 4096);
	finish(&w, coll);
	assert_int_equal(seen.other, 0);
	for (unsigned i = 0; i < n_trees; i++)
		assert_int_equal(seen.of[i], CHUNKS / n_trees);
	for (unsigned r = 1; r < N; r++) {
		assert_int_equal(ccl_mcast_counters(sim_coll_mcast(coll, r))->taken, CHUNKS);
		assert_int_equal(stat_of(&w, r, "worker_handed"), CHUNKS);
		assert_int_equal(stat_of(&w, r, "worker_full"), 0);
	}
	sim_coll_destroy(coll);
	close_world(&w);
}

/* Numbers of chunks that wrap, not in step with three trees: as far from the wrap each time. */
static void wraps(void **state)
{
	enum { N = 4, CHUNKS = 25 };

	(void)state;
	for (unsigned before = 0; before <= 2 * CHUNKS; before += 5) {
		struct sim_coll *coll;
		struct world w;

		first_psn = (1u << 24) - before;
		open_world(&w, "star:4", false);
		coll = make(&w, CCL_BY_MULTICAST, N, 2, (struct ccl_tree_shape){0});
		first_psn = 0;
		issue(coll, CCL_BROADCAST, 1, CHUNKS * 4096 - 8);
		issue(coll, CCL_ALLGATHER, 0, N * (CHUNKS / 4 * 4096));
		finish(&w, coll);
		for (unsigned r = 0; r < N; r++) {
			const struct mcast_counters *c =
				ccl_mcast_counters(sim_coll_mcast(coll, r));

			assert_int_equal(c->taken, (r == 1 ? 0 : CHUNKS) + (N - 1) * (CHUNKS / 4));
			assert_int_equal(c->cutoffs, 0);
		}
		sim_coll_destroy(coll);
		close_world(&w);
	}
}

/* ---- many, and too few ---- */

static unsigned of_worker[3]; /* queue pairs */

struct ibv_qp *__real_inc_dv_create_qp(
	struct ibv_pd *pd, struct ibv_qp_init_attr *init, uint32_t flags);
struct ibv_qp *__wrap_inc_dv_create_qp(
	struct ibv_pd *pd, struct ibv_qp_init_attr *init, uint32_t flags);
struct ibv_qp *__wrap_inc_dv_create_qp(
	struct ibv_pd *pd, struct ibv_qp_init_attr *init, uint32_t flags)
{
	for (unsigned i = 0; i < 3; i++)
		of_worker[i] += (flags & INC_DV_QP_WORKER(0xff)) == INC_DV_QP_WORKER(i);
	return __real_inc_dv_create_qp(pd, init, flags);
}

/* Communicators of one tree each share the workers. */
static void in_turn(void **state)
{
	enum { N = 4, COMMS = 6 };
	struct sim_coll *coll[COMMS];
	struct world w;

	(void)state;
	n_trees = 1;
	memset(of_worker, 0, sizeof(of_worker));
	open_world(&w, "star:4", false);
	for (unsigned i = 0; i < COMMS; i++)
		coll[i] = make(&w, CCL_BY_MULTICAST, N, 1, (struct ccl_tree_shape){0});
	assert_int_equal(of_worker[1], N * COMMS / 2);
	assert_int_equal(of_worker[2], N * COMMS / 2);
	for (unsigned i = 0; i < COMMS; i++)
		sim_coll_destroy(coll[i]);
	close_world(&w);
}

/* What is asked for and cannot be is told as it is. */
static void staged_writes(void **state)
{
	const struct sim_coll_conf conf = {.algorithm = CCL_BY_MULTICAST,
		.uc = true,
		.staged = true,
		.n_ranks = 2,
		.mtu = MTU};
	struct sim_coll_conf own = conf;
	char err[CCL_ERR_LEN];
	struct sim_coll *coll;
	struct world w;

	(void)state;
	open_world(&w, "star:2", false);
	own.sim = w.sim;
	assert_int_equal(sim_coll_create(&own, &coll, err), -EINVAL);
	assert_non_null(strstr(err, "staged is of datagrams"));
	close_world(&w);
}

/* Sixteen communicators of the same hosts at once; what each takes is what III-D says. */
static void sixteen(void **state)
{
	enum { N = 8, COMMS = 16 };
	struct sim_coll *coll[COMMS];
	struct ccl_mcast_info info;
	struct world w;

	(void)state;
	open_world(&w, "clos2:2x4x2", true);
	for (unsigned i = 0; i < COMMS; i++)
		coll[i] = make(&w, CCL_BY_MULTICAST, N, 1u << i % 4, (struct ccl_tree_shape){0});
	for (unsigned i = 0; i < COMMS; i++) {
		issue(coll[i], CCL_ALLGATHER, 0, N * 4000);
		issue(coll[i], CCL_BROADCAST, i % N, 20000);
	}
	for (unsigned i = 0; i < COMMS; i++)
		finish(&w, coll[i]);
	ccl_mcast_query(sim_coll_mcast(coll[0], 0), &info);
	assert_int_equal(info.ud_qps, over_uc ? 0 : n_trees ?: 1);
	assert_int_equal(info.uc_qps, over_uc ? n_trees ?: 1 : 0);
	assert_int_equal(info.rc_qps, 2 + 2); /* the ring; ranks 2 and 4 of the barrier */
	assert_int_equal(info.marked, !staged);
	assert_int_equal(info.staging_bytes, staged ? 256 * (info.mtu + 40) : 0);
	for (unsigned i = 0; i < COMMS; i++)
		sim_coll_destroy(coll[i]);
	close_world(&w);
}

/* What ranks post to queue pairs of the group: calls, chunks, and of these with a completion. */
static struct {
	unsigned calls, chunks, signalled;
	/* Of those, by their numbers, where they lie. */
	uintptr_t at[2048];
	unsigned in_pieces;
} posted;

int __real_iv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int __wrap_iv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int __wrap_iv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (qp->qp_type != IBV_QPT_RC) {
		posted.calls++;
		for (const struct ibv_send_wr *i = wr; i; i = i->next) {
			posted.chunks++;
			posted.in_pieces += i->num_sge != 1;
			posted.at[be32toh(i->imm_data) % 2048] = i->sg_list->addr;
			posted.signalled += (i->send_flags & IBV_SEND_SIGNALED) != 0;
		}
	}
	return __real_iv_post_send(qp, wr, bad);
}

/* Chunks go to the device in batches, and of so many the last one alone completes. */
static void batches(void **state)
{
	enum { RANKS = 4, CHUNKS = 256, CHUNK = 4096 /* the port's MTU */ };
	const unsigned n = n_trees ? n_trees : 1, every = n > 2 ? 32 / n : 16;
	uintptr_t sent, gathered[RANKS];
	unsigned want = 0;
	struct world w;
	struct sim_coll *coll;

	(void)state;
	open_world(&w, "star:4", false);
	coll = make(&w, CCL_BY_MULTICAST, RANKS, 1, (struct ccl_tree_shape){0});
	memset(&posted, 0, sizeof(posted));
	issue(coll, CCL_BROADCAST, 0, CHUNKS * CHUNK);
	issue(coll, CCL_ALLGATHER, 0, RANKS * CHUNKS * CHUNK);
	sent = (uintptr_t)sim_coll_result(coll, 0, 0);
	for (unsigned r = 0; r < RANKS; r++)
		gathered[r] = (uintptr_t)sim_coll_result(coll, r, 1);
	finish(&w, coll);
	assert_int_equal(posted.chunks, (1 + RANKS) * CHUNKS);
	/* Half of the 64 that may be posted at a time, shared by the trees; 16 at most. */
	for (unsigned t = 0; t < n; t++)
		want += ((CHUNKS + t) / n + every - 1) / every;
	assert_int_equal(posted.signalled, (1 + RANKS) * want);
	assert_true(posted.calls < posted.chunks / 2);
	/* From the user's memory, as they lie there. */
	assert_int_equal(posted.in_pieces, 0);
	for (unsigned i = 0; i < CHUNKS; i++)
		assert_int_equal(posted.at[i], sent + (size_t)i * CHUNK);
	for (unsigned i = 0; i < RANKS * CHUNKS; i++)
		assert_int_equal(posted.at[CHUNKS + i], gathered[i / CHUNKS] + (size_t)i * CHUNK);
	sim_coll_destroy(coll);
	close_world(&w);
}

/* A rank that is gone: the others end in time, with an error. */
static void death(void **state)
{
	struct world w;
	struct sim_coll *coll;
	uint64_t began;

	(void)state;
	for (unsigned tree = 0; tree < 2; tree++) {
		open_world(&w, "star:5", false);
		coll = make(&w, tree ? CCL_BY_TREE : CCL_BY_MULTICAST, 5, 1,
			(struct ccl_tree_shape){.radix = 2});
		issue(coll, CCL_BROADCAST, 0, 100000);
		finish(&w, coll);
		began = sim_now(w.sim);
		sim_freeze(w.sim, tree ? 0 : 2, UINT64_MAX);
		issue(coll, CCL_BROADCAST, 0, 100000);
		assert_true(sim_run(w.sim, done, coll, began + LIMIT_NS) < 0);
		assert_in_range(sim_now(w.sim) - began, 1, UINT64_C(10000000000));
		assert_true(sim_coll_error(coll)[0] != '\0');
		sim_coll_destroy(coll);
		close_world(&w);
	}
}

static int by_uc(void **state)
{
	(void)state;
	over_uc = true;
	return 0;
}

static int by_ud(void **state)
{
	(void)state;
	over_uc = false;
	return 0;
}

static int by_staging(void **state)
{
	staged = true;
	return by_ud(state);
}

static int by_workers(void **state)
{
	(void)state;
	n_trees = 3;
	n_workers = 2;
	return 0;
}

static int by_workers_uc(void **state)
{
	by_uc(state);
	return by_workers(state);
}

static int by_workers_staging(void **state)
{
	by_staging(state);
	return by_workers(state);
}

static int by_none(void **state)
{
	n_trees = n_workers = 0;
	staged = false;
	return by_ud(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact),
		cmocka_unit_test(trees),
		cmocka_unit_test(each_link_once),
		cmocka_unit_test(sixteen),
		cmocka_unit_test(batches),
		cmocka_unit_test(death),
		cmocka_unit_test(staged_writes),
		{"uc: exact", exact, by_uc, by_ud, NULL},
		{"uc: each_link_once", each_link_once, by_uc, by_ud, NULL},
		{"uc: sixteen", sixteen, by_uc, by_ud, NULL},
		{"uc: batches", batches, by_uc, by_ud, NULL},
		{"uc: death", death, by_uc, by_ud, NULL},
		{"staging: exact", exact, by_staging, by_none, NULL},
		{"staging: each_link_once", each_link_once, by_staging, by_none, NULL},
		{"staging: sixteen", sixteen, by_staging, by_none, NULL},
		{"staging: death", death, by_staging, by_none, NULL},
		{"workers, staging: shares", shares, by_workers_staging, by_none, NULL},
		{"workers, staging: exact", exact, by_workers_staging, by_none, NULL},
		{"workers: shares", shares, by_workers, by_none, NULL},
		{"workers: batches", batches, by_workers, by_none, NULL},
		{"workers: wraps", wraps, by_workers, by_none, NULL},
		{"workers, uc: wraps", wraps, by_workers_uc, by_none, NULL},
		{"workers, staging: wraps", wraps, by_workers_staging, by_none, NULL},
		{"workers: in_turn", in_turn, by_workers, by_none, NULL},
		{"workers: exact", exact, by_workers, by_none, NULL},
		{"workers: each_link_once", each_link_once, by_workers, by_none, NULL},
		{"workers: sixteen", sixteen, by_workers, by_none, NULL},
		{"workers, uc: shares", shares, by_workers_uc, by_none, NULL},
		{"workers, uc: exact", exact, by_workers_uc, by_none, NULL},
		{"workers, uc: death", death, by_workers_uc, by_none, NULL},
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
