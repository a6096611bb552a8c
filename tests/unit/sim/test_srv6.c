/* SPDX-License-Identifier: BSD-3-Clause */
/* Source routes through planes: every path is taken as its address says, by MRC's queue pairs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/sim/conn.h"
#include "lib/sim/srv6.h"

enum { PLANES = 4, T0S = 2, HOSTS = 3, T1S = 5, MS = 1000000 };

struct world {
	struct sim_topo topo;
	struct sim *sim;
	struct sim_conns *conns;
	unsigned arrived, last;
};

static void arrived(void *arg, unsigned conn, unsigned nth)
{
	struct world *w = arg;

	assert_int_equal(conn, 0);
	assert_int_equal(nth, w->arrived++);
}

static void make(struct world *w, const struct sim_conn_conf *conn)
{
	const struct sim_conf conf = {.topo = &w->topo,
		.link = {.mbps = 25000, .delay_ns = 1000, .priority = true},
		.seed = 7,
		.mrc_base_rtt_ns = 15000};
	struct sim_conns_conf traffic = {.conn = conn,
		.n = 1,
		.mtu = IBV_MTU_4096,
		.message = 32768,
		.seed = 3,
		.arrived = arrived,
		.arg = w};
	char err[SIM_ERR_LEN];

	assert_int_equal(0, sim_topo_make("planes:4x2x3x5", &w->topo, err));
	assert_int_equal(0, sim_create(&conf, &w->sim, err));
	traffic.sim = w->sim;
	assert_int_equal(0, sim_conns_open(&traffic, &w->conns));
	sim_conns_start(w->conns);
}

static void end(struct world *w)
{
	sim_conns_close(w->conns);
	sim_destroy(w->sim);
	sim_topo_free(&w->topo);
}

static bool idle(void *arg)
{
	struct world *w = arg;

	return sim_conn_idle(w->conns, 0);
}

static uint64_t frames(const struct world *w, unsigned link)
{
	return sim_link(w->sim, link)->count[SIM_L_FRAMES];
}

/* From the second T0 to the first: all T1s of all planes carry alike, and no other link any. */
static void spreads_over_all_paths(void **state)
{
	const struct sim_conn_conf conn = {.from = 4, .to = 1, .mrc = true};
	struct world w = {0};
	uint64_t least = UINT64_MAX, most = 0;

	(void)state;
	make(&w, &conn);
	for (unsigned i = 0; i < 3; i++)
		sim_conn_post(w.conns, 0, 1 << 20);
	assert_int_equal(0, sim_run(w.sim, idle, &w, 100 * MS));
	assert_int_equal(w.arrived, 3);
	assert_int_equal(sim_conn_acked(w.conns, 0), 3 << 20);
	for (unsigned p = 0; p < PLANES; p++)
		for (unsigned t1 = 0; t1 < T1S; t1++) {
			const unsigned e = (p * T0S + 1) * T1S + t1;
			const uint64_t n = frames(&w, sim_edge_link(w.sim, e) + 1);

			least = n < least ? n : least;
			most = n > most ? n : most;
		}
	assert_true(least * PLANES * T1S >= (3u << 20) / 4096 / 2 && most <= 2 * least);
	for (unsigned h = 0; h < T0S * HOSTS; h++)
		for (unsigned p = 0; p < PLANES; p++)
			assert_int_equal(
				frames(&w, sim_host_link(w.sim, h, p)) > 0, h == 4 || h == 1);
	for (unsigned i = 0; i < w.topo.n_switches; i++)
		assert_int_equal(sim_switch(w.sim, i)->unroutable, 0);
	end(&w);
}

/* Below one T0 there is a path per plane, and no T1 sees anything. Several queue pairs: a transfer
 * has arrived when all have brought their part. */
static void stays_below_a_t0(void **state)
{
	const struct sim_conn_conf conn = {.from = 0, .to = 2, .mrc = true, .qps = 4};
	struct world w = {0};

	(void)state;
	make(&w, &conn);
	assert_int_equal(sim_srv6_n_paths(w.sim, 0, 2), PLANES);
	sim_conn_post(w.conns, 0, 1 << 20);
	assert_int_equal(0, sim_run(w.sim, idle, &w, 100 * MS));
	assert_int_equal(w.arrived, 1);
	for (unsigned e = 0; e < w.topo.n_edges; e++)
		assert_int_equal(frames(&w, sim_edge_link(w.sim, e)) +
					 frames(&w, sim_edge_link(w.sim, e) + 1),
			0);
	end(&w);
}

/* What a caller may ask for of a set of paths, and gets. */
static void sets_of_paths(void **state)
{
	const struct sim_conn_conf conn = {.from = 4, .to = 1, .mrc = true};
	static struct rnic_mrc_paths paths;
	struct world w = {0};
	unsigned of_plane[PLANES] = {0};

	(void)state;
	make(&w, &conn);
	assert_int_equal(-EINVAL, sim_srv6_paths(w.sim, 4, 1, 6, 0, 1, &paths));
	assert_int_equal(-EINVAL, sim_srv6_paths(w.sim, 4, 1, 24, 0, 1, &paths));
	assert_int_equal(0, sim_srv6_paths(w.sim, 4, 1, 12, 8, 1, &paths));
	assert_int_equal(paths.n, 12);
	assert_int_equal(paths.max_active, 8);
	assert_int_equal(paths.min_active, PLANES);
	for (unsigned i = 0; i < paths.n; i++) {
		assert_int_equal(paths.path[i].port, paths.path[i].ev >> 8);
		of_plane[paths.path[i].port]++;
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(paths.path[i].ev, paths.path[k].ev);
	}
	for (unsigned p = 0; p < PLANES; p++)
		assert_int_equal(of_plane[p], 3);
	end(&w);
}

/* A switch that has stopped drops and counts; the transfer arrives all the same. A port that is
 * down carries nothing. */
static void failures(void **state)
{
	const struct sim_conn_conf conn = {.from = 4, .to = 1, .mrc = true};
	struct world w = {0};
	uint64_t before;

	(void)state;
	make(&w, &conn);
	sim_switch(w.sim, 2)->stopped = true; /* a T1 of plane 0 */
	sim_set_port(w.sim, 4, 3, false);
	before = frames(&w, sim_host_link(w.sim, 4, 3));
	sim_conn_post(w.conns, 0, 4 << 20);
	assert_int_equal(0, sim_run(w.sim, idle, &w, 100 * MS));
	assert_int_equal(w.arrived, 1);
	assert_true(sim_switch(w.sim, 2)->stopped_drop > 0);
	assert_true(sim_conn_count(w.conns, 0, "lost") > 0);
	assert_int_equal(frames(&w, sim_host_link(w.sim, 4, 3)), before);
	end(&w);
}

/* RC over the same fabric of one plane would do, and over several: it stays on the first port. */
static void beside_rc(void **state)
{
	const struct sim_conn_conf conn = {.from = 4, .to = 1, .qps = 2};
	struct world w = {0};

	(void)state;
	make(&w, &conn);
	sim_conn_post(w.conns, 0, 1 << 20);
	assert_int_equal(0, sim_run(w.sim, idle, &w, 100 * MS));
	assert_int_equal(w.arrived, 1);
	for (unsigned p = 1; p < PLANES; p++)
		assert_int_equal(frames(&w, sim_host_link(w.sim, 4, p)), 0);
	end(&w);
}

/* What is trimmed between T0 and T1 passes two more switches, and is asked for by its name. */
static void trimmed_inside(void **state)
{
	const struct sim_conn_conf conn = {.from = 4, .to = 1, .mrc = true};
	struct world w = {0};
	uint64_t trimmed = 0;

	(void)state;
	make(&w, &conn);
	for (unsigned e = 0; e < w.topo.n_edges; e++) {
		struct sim_link_conf *up = &sim_link(w.sim, sim_edge_link(w.sim, e) + 1)->conf;

		up->mbps = 2500;
		up->queue_bytes = 6000;
		up->trim = true;
		up->trim_to = SIM_TRIMMED_MRC;
		up->trim_dscp = 12;
	}
	sim_conn_post(w.conns, 0, 4 << 20);
	assert_int_equal(0, sim_run(w.sim, idle, &w, 100 * MS));
	assert_int_equal(w.arrived, 1);
	for (unsigned l = 0; l < sim_n_links(w.sim); l++)
		trimmed += sim_link(w.sim, l)->count[SIM_L_TRIMMED];
	assert_true(trimmed > 0);
	assert_int_equal(sim_conn_count(w.conns, 0, "trimmed"), trimmed);
	for (unsigned i = 0; i < w.topo.n_switches; i++)
		assert_int_equal(sim_switch(w.sim, i)->unroutable, 0);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spreads_over_all_paths),
		cmocka_unit_test(stays_below_a_t0),
		cmocka_unit_test(sets_of_paths),
		cmocka_unit_test(failures),
		cmocka_unit_test(beside_rc),
		cmocka_unit_test(trimmed_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
