/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection over two planes, by the API alone: both are used alike, one may be disabled or die.
 */
#include "tests/unit/libmrc_api/pair.h"

enum { FRAMES = SIDE_BUF / 1024, ROUNDS = 4 };

static int planes_setup(void **state)
{
	struct pair *p = pair_create(false, 2);

	pair_connect(p, 2);
	*state = p;
	return 0;
}

/* Frames that came to b meanwhile, by plane. */
struct count {
	unsigned plane[2];
};

static struct count writes(struct pair *p)
{
	unsigned first = p->f->end[1].tail, second = p->f->second[1].tail;
	struct ibv_wc wc;

	for (int i = 0; i < ROUNDS; i++) {
		for (unsigned at = 0; at < SIDE_BUF; at++)
			p->a.buf[at] = (uint8_t)(at * 7 + at / 251 + (unsigned)i);
		assert_int_equal(write_to(&p->a, &p->b, 1, 0, SIDE_BUF, 0), 0);
		wait_one(p, &p->a, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_memory_equal(p->b.buf, p->a.buf, SIDE_BUF);
	}
	return (struct count){{p->f->end[1].tail - first, p->f->second[1].tail - second}};
}

static enum ibv_port_state port_state(struct side *s, uint8_t port)
{
	struct ibv_port_attr v;

	assert_int_equal(ibv_query_port(s->verbs, port, &v), 0);
	return v.state;
}

static void set_port(struct side *s, uint8_t port, enum mrc_ctl_port_admin_state state)
{
	struct mrc_ctl_port_attr attr = {.port_admin_state = state};

	assert_int_equal(mrc_ctl_modify_port(s->ctx, port, &attr, MRC_CTL_PORT_ADMIN_STATE), 0);
}

static void both_alike(void **state)
{
	struct pair *p = *state;
	struct mrc_ctl_device_attr d;
	struct count n = writes(p);

	assert_int_equal(mrc_ctl_query_device(p->a.verbs, &d), 0);
	assert_int_equal(d.phy_port_mask, 1 << 1 | 1 << 2);
	for (int i = 0; i < 2; i++)
		assert_in_range(n.plane[i], ROUNDS * FRAMES / 2 - 8, ROUNDS * FRAMES / 2 + 32);
}

static void one_disabled(void **state)
{
	struct pair *p = *state;
	struct count n;

	writes(p);
	set_port(&p->a, 1, MRC_CTL_PORT_ADMIN_DISABLED);
	assert_int_equal(port_state(&p->a, 1), IBV_PORT_DOWN);
	assert_int_equal(port_state(&p->a, 2), IBV_PORT_ACTIVE);
	for (int i = 0; i < 100; i++)
		fabric_step(p->f); /* what was on its way */
	n = writes(p);
	assert_int_equal(n.plane[0], 0);
	assert_true(n.plane[1] >= ROUNDS * FRAMES);
	set_port(&p->a, 1, MRC_CTL_PORT_ADMIN_ENABLED);
	assert_int_equal(port_state(&p->a, 1), IBV_PORT_ACTIVE);
	n = writes(p);
	assert_true(n.plane[0] >= ROUNDS * FRAMES / 4);
}

/* It dies without a word: every write is completed all the same, and the plane comes back by
 * probes. */
static void one_dead(void **state)
{
	struct pair *p = *state;
	struct count n;

	writes(p);
	p->f->cut = 1 << 0;
	n = writes(p);
	assert_int_equal(n.plane[0], 0);
	assert_true(p->f->n_lost > 0);
	p->f->cut = 0;
	for (int i = 0; i < 1000000; i++)
		fabric_step(p->f);
	n = writes(p);
	assert_true(n.plane[0] >= ROUNDS * FRAMES / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_alike, planes_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(one_disabled, planes_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(one_dead, planes_setup, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
