/* SPDX-License-Identifier: BSD-3-Clause */
/* MRC without source routes: an EV is a source port and a flow label (STEV), and the T0s of two
 * planes choose one of their T1s by it. How even the shipped hash is: dataplane-ecmp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/sim/conn.h"

enum { PLANES = 2, T0S = 2, T1S = 4, MS = 1000000, BYTES = 16 << 20, FULL = 4096 };
enum { EVS = MRC_MAX_EVS, OF_A_T1 = EVS / PLANES / T1S };

struct world {
	struct sim_topo topo;
	struct sim *sim;
	struct sim_conns *conns;
	unsigned arrived;
};

static void arrived(void *arg, unsigned conn, unsigned nth)
{
	struct world *w = arg;

	assert_int_equal(conn, 0);
	assert_int_equal(nth, w->arrived++);
}

/* From the first T0 to the second. */
static const struct sim_conn_conf conn = {.from = 1, .to = 2, .mrc = true, .ecmp = true};

static void make(struct world *w)
{
	const struct sim_conf conf = {.topo = &w->topo,
		.link = {.mbps = 25000, .delay_ns = 1000, .priority = true},
		.seed = 7,
		.mrc_base_rtt_ns = 15000};
	struct sim_conns_conf traffic = {.conn = &conn,
		.n = 1,
		.mtu = IBV_MTU_4096,
		.message = 32768,
		.seed = 3,
		.arrived = arrived,
		.arg = w};
	char err[SIM_ERR_LEN];

	assert_int_equal(0, sim_topo_make("planes:2x2x2x4", &w->topo, err));
	assert_int_equal(0, sim_create(&conf, &w->sim, err));
	traffic.sim = w->sim;
	assert_int_equal(0, sim_conns_open(&traffic, &w->conns));
	sim_conns_start(w->conns);
}

static void end(struct world *w)
{
	for (unsigned i = 0; i < w->topo.n_switches; i++)
		assert_int_equal(sim_switch(w->sim, i)->unroutable, 0);
	sim_conns_close(w->conns);
	sim_destroy(w->sim);
	sim_topo_free(&w->topo);
}

static bool idle(void *arg)
{
	const struct world *w = arg;

	return sim_conn_idle(w->conns, 0);
}

static uint64_t up(const struct world *w, unsigned plane, unsigned t1, enum sim_link_counter what)
{
	const unsigned e = plane * T0S * T1S + t1; /* from the first T0 */

	return sim_link(w->sim, sim_edge_link(w->sim, e) + 1)->count[what];
}

/* EVs take turns, so that a T1 has as many packets as EVs were drawn for it: 32 of 256, and of such
 * a draw half as many again is beyond three deviations. Planes carry alike. */
static void spread(void **state)
{
	struct world w = {0};
	uint64_t of_plane[PLANES] = {0};

	(void)state;
	make(&w);
	sim_conn_post(w.conns, 0, BYTES);
	assert_int_equal(0, sim_run(w.sim, idle, &w, 100 * MS));
	assert_int_equal(w.arrived, 1);
	assert_int_equal(sim_conn_count(w.conns, 0, "lost"), 0);
	for (unsigned p = 0; p < PLANES; p++)
		for (unsigned t1 = 0; t1 < T1S; t1++) {
			const uint64_t n = up(&w, p, t1, SIM_L_FRAMES),
				       mean = BYTES / FULL / PLANES / T1S;

			assert_in_range(n, mean / 2, mean * 3 / 2);
			of_plane[p] += n;
		}
	assert_in_range(of_plane[0], of_plane[1] * 49 / 50, of_plane[1] * 51 / 50);
	end(&w);
}

/* A T1 that forwards nothing: the EVs that happen to lead there are the bad ones, and no others; it
 * takes nothing but probes once they are known. */
static void a_t1_dies(void **state)
{
	const unsigned dead = 1; /* of plane 0: its switches come first, T1s before T0s */
	struct world w = {0};
	unsigned bad = 0;
	uint64_t before;

	(void)state;
	make(&w);
	sim_switch(w.sim, dead)->stopped = true;
	sim_conn_post(w.conns, 0, BYTES);
	assert_int_equal(0, sim_run(w.sim, idle, &w, 100 * MS));
	assert_int_equal(w.arrived, 1);
	assert_true(sim_conn_count(w.conns, 0, "lost") > 0);
	for (unsigned i = 0; i < EVS; i++) {
		enum mrc_ev_state ev;

		assert_int_equal(0, rnic_mrc_ev_get(sim_conn_qp(w.conns, 0, 0), i, &ev));
		assert_true(ev == MRC_EV_GOOD || sim_conn_paths(w.conns, 0)->path[i].port == 0);
		bad += ev == MRC_EV_BAD;
	}
	assert_in_range(bad, OF_A_T1 / 2, OF_A_T1 * 3 / 2);
	before = up(&w, 0, dead, SIM_L_BYTES);
	sim_conn_post(w.conns, 0, BYTES);
	assert_int_equal(0, sim_run(w.sim, idle, &w, 100 * MS));
	assert_int_equal(w.arrived, 2);
	assert_true(up(&w, 0, dead, SIM_L_BYTES) - before < BYTES / PLANES / T1S / 20);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(spread), cmocka_unit_test(a_t1_dies)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
