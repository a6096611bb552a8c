/* SPDX-License-Identifier: BSD-3-Clause */
/* Priority flow control: nothing is lost, the pause spreads, and only to its class. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/sim/conn.h"
#include "lib/sim/priv.h"

enum { MS = 1000000, MBPS = 100000, DELAY = 1000, FULL = 4352, XOFF = 100000, VICTIM = 2 };
/* What still comes after a pause was asked for: on the wire there and back, and half out. */
enum { ROOM = XOFF + 4 * (MBPS / 8 * 2 * DELAY / 1000) + 4 * FULL };

struct world {
	struct sim_topo topo;
	struct sim *sim;
	struct sim_conns *conns;
};

/* Hosts 3 and 4 write to host 0, 5 to host 1; the T0s are joined by a T1, with links four times as
 * fast as the hosts'. */
static void make(struct world *w, struct sim_link_conf link)
{
	static const struct sim_conn_conf conn[3] = {{.from = 3, .to = 0, .endless = true},
		{.from = 4, .to = 0, .endless = true}, {.from = 5, .to = 1, .endless = true}};
	const struct sim_conf conf = {.topo = &w->topo, .link = link, .seed = 5};
	struct sim_conns_conf traffic = {
		.conn = conn, .n = 3, .mtu = IBV_MTU_4096, .message = 32768, .seed = 3};
	char err[SIM_ERR_LEN];

	assert_int_equal(0, sim_topo_make("planes:1x2x3x1", &w->topo, err));
	assert_int_equal(0, sim_create(&conf, &w->sim, err));
	link.mbps *= 4;
	for (unsigned l = sim_edge_link(w->sim, 0); l < sim_n_links(w->sim); l++)
		sim_set_link(w->sim, l, &link);
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

static struct sim_link_conf pfc(void)
{
	return (struct sim_link_conf){.mbps = MBPS,
		.delay_ns = DELAY,
		.priority = true,
		.pfc_xoff = XOFF,
		.pfc_xon = XOFF * 3 / 4,
		.pfc_room = ROOM};
}

static uint64_t sum(const struct world *w, enum sim_link_counter c)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < sim_n_links(w->sim); i++)
		n += sim_link(w->sim, i)->count[c];
	return n;
}

/* Mb/s of the victim, and of all to host 0, between 1 and 3 ms. */
static void measure(struct world *w, uint64_t *victim, uint64_t *incast)
{
	uint64_t v, i;

	assert_int_equal(-ETIME, sim_run(w->sim, NULL, NULL, sim_now(w->sim) + MS));
	v = sim_conn_acked(w->conns, VICTIM);
	i = sim_conn_acked(w->conns, 0) + sim_conn_acked(w->conns, 1);
	assert_int_equal(-ETIME, sim_run(w->sim, NULL, NULL, sim_now(w->sim) + 2 * MS));
	*victim = (sim_conn_acked(w->conns, VICTIM) - v) * 8 / 2000;
	*incast = (sim_conn_acked(w->conns, 0) + sim_conn_acked(w->conns, 1) - i) * 8 / 2000;
}

/* No frame is dropped, no switch holds more than it has room for, the bottleneck is never idle; but
 * the pause reaches the hosts, and the one whose way is free is held up with the others. */
static void loses_nothing_and_holds_up_all(void **state)
{
	struct world w = {0};
	uint64_t victim, incast;

	(void)state;
	make(&w, pfc());
	measure(&w, &victim, &incast);
	assert_int_equal(sum(&w, SIM_L_QUEUE_DROP), 0);
	assert_true(incast > MBPS * 9 / 10);
	assert_true(victim < MBPS * 3 / 4);
	for (unsigned h = 3; h < 6; h++)
		assert_true(sim_link(w.sim, sim_host_link(w.sim, h, 0))->count[SIM_L_PAUSES] > 0);
	for (unsigned i = 0; i < sim_n_links(w.sim); i++)
		assert_true(sim_link(w.sim, i)->held <= ROOM);
	end(&w);
}

/* The same without a limit and without pauses: the victim has its link. */
static void without_it_nobody_waits(void **state)
{
	struct sim_link_conf link = pfc();
	struct world w = {0};
	uint64_t victim, incast;

	(void)state;
	link.pfc_xoff = 0;
	make(&w, link);
	measure(&w, &victim, &incast);
	assert_true(victim > MBPS * 9 / 10);
	assert_int_equal(sum(&w, SIM_L_PAUSES), 0);
	end(&w);
}

/* With less room than what comes after the pause was asked for, frames are dropped, and counted. */
static void room_that_does_not_do(void **state)
{
	struct sim_link_conf link = pfc();
	struct world w = {0};
	uint64_t victim, incast;

	(void)state;
	link.pfc_room = XOFF + 2 * FULL;
	make(&w, link);
	measure(&w, &victim, &incast);
	assert_true(sum(&w, SIM_L_QUEUE_DROP) > 0);
	for (unsigned i = 0; i < sim_n_links(w.sim); i++)
		assert_true(sim_link(w.sim, i)->held <= link.pfc_room);
	end(&w);
}

static void put(struct world *w, unsigned link, bool ahead)
{
	struct sim_frame *f = sim_frame_get(w->sim, 1000);

	memset(f->data, 0, f->len);
	sim_queue_put(w->sim, link, f, ahead);
}

/* A paused link still takes the class that goes ahead; the other waits, in its order, and goes when
 * the pause is over. */
static void pauses_one_class(void **state)
{
	struct world w = {0};
	struct sim_link *l;
	unsigned up;

	(void)state;
	make(&w, pfc());
	up = sim_host_link(w.sim, 2, 0); /* of a host that has no traffic */
	l = sim_link(w.sim, up);
	l->queue.paused = true;
	put(&w, up, false);
	put(&w, up, false);
	put(&w, up, true);
	put(&w, up, true);
	assert_int_equal(-ETIME, sim_run(w.sim, NULL, NULL, sim_now(w.sim) + MS));
	assert_int_equal(l->count[SIM_L_DELIVERED], 2);
	assert_int_equal(sim_link_backlog(l, sim_now(w.sim)), 2 * (1000 + SIM_WIRE_OVERHEAD));
	l->queue.paused = false;
	put(&w, up, true);
	assert_int_equal(-ETIME, sim_run(w.sim, NULL, NULL, sim_now(w.sim) + MS));
	assert_int_equal(l->count[SIM_L_DELIVERED], 5);
	assert_int_equal(sim_link_backlog(l, sim_now(w.sim)), 0);
	end(&w);
}

/* A link that is down takes what waits for it, and drops it: its list does not stand still. */
static void a_link_that_is_down(void **state)
{
	struct world w = {0};
	struct sim_link *l;
	unsigned up;

	(void)state;
	make(&w, pfc());
	up = sim_host_link(w.sim, 2, 0);
	l = sim_link(w.sim, up);
	l->conf.n_down = 1;
	l->conf.down[0].until = UINT64_MAX;
	put(&w, up, false);
	put(&w, up, false);
	assert_int_equal(l->count[SIM_L_DOWN_DROP], 2);
	assert_int_equal(sim_link_backlog(l, sim_now(w.sim)), 0);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loses_nothing_and_holds_up_all),
		cmocka_unit_test(without_it_nobody_waits),
		cmocka_unit_test(room_that_does_not_do),
		cmocka_unit_test(pauses_one_class),
		cmocka_unit_test(a_link_that_is_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
