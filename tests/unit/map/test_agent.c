/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent sends and when, and what it makes of what comes back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"

static const uint64_t MS = 1000000;
static struct fabric *f;
static struct map_agent *a;
static struct {
	struct wire_ip dst;
	uint8_t plane, payload[MAP_PROBE_LEN];
} sent[64];
static unsigned n_sent;

static int start(void **state)
{
	struct map_config c = map_defaults;

	(void)state;
	c.rate_hz = 100;
	f = fabric_start(&c);
	a = f->agent[0];
	return 0;
}

static int stop(void **state)
{
	(void)state;
	fabric_stop(f);
	return 0;
}

static void keep(void *arg, const struct map_target *t, const uint8_t payload[MAP_PROBE_LEN])
{
	(void)arg;
	assert_true(n_sent < 64);
	sent[n_sent].dst = t->dst;
	sent[n_sent].plane = t->plane;
	memcpy(sent[n_sent++].payload, payload, MAP_PROBE_LEN);
}

static void turn(uint64_t now)
{
	n_sent = 0;
	map_agent_turn(a, now, keep, NULL);
}

static bool answer(unsigned i, uint64_t now)
{
	uint8_t ip6[40 + MAP_PROBE_LEN] = {0x60, [6] = MAP_PROBE_NEXT};

	memcpy(ip6 + 40, sent[i].payload, MAP_PROBE_LEN);
	return map_agent_receive(a, now, sent[i].plane, ip6, sizeof(ip6));
}

/* To each T0 and back, and over it to each T1. */
static void paths(void **state)
{
	static const char *const want[] = {
		"fcbb:bb00:1000:1800::", "fcbb:bb00:1000:1400:1000:1800::",
		"fcbb:bb00:1000:1401:1000:1800::", "fcbb:bb00:1000:1402:1000:1800::",
		"fcbb:bb00:2000:2800::", "fcbb:bb00:2000:2400:2000:2800::",
		"fcbb:bb00:2000:2401:2000:2800::", "fcbb:bb00:2000:2402:2000:2800::"};
	char text[WIRE_IP_STRLEN];

	(void)state;
	assert_int_equal(a->n, 8);
	turn(1000 * MS);
	assert_int_equal(n_sent, 8);
	for (unsigned i = 0; i < 8; i++)
		assert_string_equal(wire_ip_format(&sent[i].dst, text, sizeof(text)), want[i]);
}

static uint64_t skipped(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < a->n; i++)
		n += a->target[i].skipped;
	return n;
}

/* At the rate, spread out, and no more than one at once after a pause; what the pause has cost is
 * counted, and after it they are as spread out as before. */
static void schedule(void **state)
{
	unsigned n = 0, most = 0;
	uint64_t next;

	(void)state;
	for (uint64_t now = 0; now < 1000 * MS; now += MS) {
		turn(now);
		n += n_sent;
		most = n_sent > most ? n_sent : most;
	}
	assert_int_equal(n, 8 * 100);
	assert_in_range(most, 1, 1 + 8 / 10 + 1);
	assert_int_equal(skipped(), 0);
	turn(5000 * MS);
	assert_int_equal(n_sent, 8);
	/* Due since 1000 ms: 400 of each, and the first's at 5000. */
	assert_int_equal(skipped(), 8 * 399 + 1);
	n_sent = 0;
	next = map_agent_turn(a, 5000 * MS, keep, NULL);
	assert_int_equal(n_sent, 0);
	assert_int_equal(next, 5000 * MS + 10 * MS / 8);
	n = most = 0;
	for (uint64_t now = 5001 * MS; now <= 5100 * MS; now += MS) {
		turn(now);
		n += n_sent;
		most = n_sent > most ? n_sent : most;
	}
	assert_int_equal(n, 8 * 10);
	assert_in_range(most, 1, 1 + 8 / 10 + 1);
	assert_int_equal(skipped(), 8 * 399 + 1);
}

/* The uplinks' rate is shared with the other agents of the T0; that of the own link is not. */
static void shared(void **state)
{
	struct map_config c = map_defaults;
	unsigned t0 = 0, t1 = 0;
	char err[SRV6_ERR_LEN];

	(void)state;
	free(f->agent[0]);
	c.share = 4;
	c.rate_hz = 1000;
	assert_int_equal(map_agent_create(f->paths[0], &c, 0, &f->agent[0], err), 0);
	a = f->agent[0];
	for (uint64_t now = 0; now < 1000 * MS; now += MS / 10) {
		turn(now);
		for (unsigned i = 0; i < n_sent; i++)
			*(srv6_usid(&sent[i].dst, 2) ? &t1 : &t0) += 1;
	}
	assert_int_equal(t0, 2 * 1000);
	assert_int_equal(t1, 6 * 250);
}

static void answers(void **state)
{
	const struct map_link *l = &a->target[1].link;

	(void)state;
	turn(1000 * MS);
	assert_true(answer(1, 1001 * MS));
	assert_int_equal(l->answered, 1);
	assert_false(answer(1, 1001 * MS)); /* twice */
	assert_int_equal(a->late, 1);
	assert_int_equal(a->target[2].link.lost, 0);
	assert_false(answer(2, 1100 * MS)); /* too late: it was lost */
	assert_int_equal(a->target[2].link.lost, 1);
	assert_int_equal(a->target[2].link.answered, 0);
	assert_int_equal(a->late, 2);
}

/* Whatever comes in, of others, or made up: nothing happens, it is counted. */
static void foreign(void **state)
{
	uint8_t ip6[40 + MAP_PROBE_LEN] = {0x60, [6] = MAP_PROBE_NEXT};
	struct map_probe p = {a->config.id, 0, 0};
	uint64_t n = 0;

	(void)state;
	turn(1000 * MS);
	map_probe_encode(&p, ip6 + 40);
	for (size_t len = 0; len < sizeof(ip6); len++, n++)
		assert_false(map_agent_receive(a, 1000 * MS, 0, ip6, len));
	assert_false(map_agent_receive(a, 1000 * MS, 1, ip6, sizeof(ip6))); /* another plane */
	p.agent++;
	map_probe_encode(&p, ip6 + 40);
	assert_false(map_agent_receive(a, 1000 * MS, 0, ip6, sizeof(ip6)));
	p = (struct map_probe){a->config.id, a->n, 0};
	map_probe_encode(&p, ip6 + 40);
	assert_false(map_agent_receive(a, 1000 * MS, 0, ip6, sizeof(ip6)));
	ip6[40] ^= 1;
	assert_false(map_agent_receive(a, 1000 * MS, 0, ip6, sizeof(ip6)));
	ip6[40] ^= 1;
	ip6[6] = 17;
	assert_false(map_agent_receive(a, 1000 * MS, 0, ip6, sizeof(ip6)));
	ip6[6] = MAP_PROBE_NEXT;
	ip6[0] = 0x45;
	assert_false(map_agent_receive(a, 1000 * MS, 0, ip6, sizeof(ip6)));
	assert_int_equal(a->foreign, n + 6);
	assert_int_equal(a->late, 0);
	ip6[0] = 0x60;
	for (uint32_t seq = 1; seq != 0; seq *= 2) { /* never sent */
		p = (struct map_probe){a->config.id, 0, seq};
		map_probe_encode(&p, ip6 + 40);
		assert_false(map_agent_receive(a, 1000 * MS, 0, ip6, sizeof(ip6)));
	}
	assert_int_equal(a->late, 32);
	for (unsigned i = 0; i < a->n; i++)
		assert_int_equal(a->target[i].link.answered, 0);
}

/* Sequence numbers pass their end. */
static void wraps(void **state)
{
	(void)state;
	for (unsigned i = 0; i < a->n; i++)
		a->target[i].next_seq = a->target[i].oldest = UINT32_MAX - 5;
	fabric_run(f, 1000 * MS);
	for (unsigned i = 0; i < a->n; i++) {
		assert_int_equal(a->target[i].link.state, MAP_GOOD);
		assert_int_equal(a->target[i].link.lost, 0);
		assert_in_range(a->target[i].link.answered, 99, 101);
	}
}

static void refused(void **state)
{
	struct map_config c = map_defaults;
	struct map_agent *made = NULL;
	char err[SRV6_ERR_LEN];

	(void)state;
	c.rate_hz = 0;
	assert_int_equal(map_agent_create(f->paths[0], &c, 0, &made, err), -EINVAL);
	assert_non_null(strstr(err, "rate"));
	c = map_defaults;
	c.timeout_ns = 1023 * MS; /* more under way than are remembered */
	assert_int_equal(map_agent_create(f->paths[0], &c, 0, &made, err), -EINVAL);
	assert_non_null(strstr(err, "timeout"));
	c = map_defaults;
	c.share = 0;
	assert_int_equal(map_agent_create(f->paths[0], &c, 0, &made, err), -EINVAL);
	c = map_defaults;
	f->paths[0]->uplinks = MAP_MAX_UPLINKS + 1; /* a map has no room for what it would write */
	assert_int_equal(map_agent_create(f->paths[0], &c, 0, &made, err), -EINVAL);
	assert_string_equal(err, "uplinks: 65, must be at most 64 for a map");
	f->paths[0]->uplinks = F_T1;
	f->paths[0]->address = (struct wire_ip){{0xfd, 0x78}};
	assert_int_equal(map_agent_create(f->paths[0], &c, 0, &made, err), -EINVAL);
	assert_non_null(strstr(err, "rows"));
	assert_null(made);
}

int test_agent(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(paths, start, stop),
		cmocka_unit_test_setup_teardown(schedule, start, stop),
		cmocka_unit_test_setup_teardown(shared, start, stop),
		cmocka_unit_test_setup_teardown(answers, start, stop),
		cmocka_unit_test_setup_teardown(foreign, start, stop),
		cmocka_unit_test_setup_teardown(wraps, start, stop),
		cmocka_unit_test_setup_teardown(refused, start, stop),
	};

	return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
