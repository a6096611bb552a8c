/* SPDX-License-Identifier: BSD-3-Clause */
/* From maps to denials, on virtual time: what breaks in the fabric of fabric.h, and what each host
 * leaves out on the way to each other one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "lib/map/deny.h"
#include "lib/map/follow.h"

enum { ROLE = 10 };
static const uint64_t MS = 1000000, SECOND = 1000000000;

/* Agents at work, and the denials of one host to one other. */
struct site {
	struct fabric *f;
	struct map_follow follow;
	struct map_deny deny;
};

static struct site site_start(unsigned from, unsigned to, const struct map_deny_config *config)
{
	static const char *const name[F_HOSTS] = {"a0", "a1", "a2", "a3", "a4", "a5"};
	struct map_config c = map_defaults;
	char err[MAP_ERR_LEN] = "";
	struct site s;

	c.timeout_ns = 2 * MS;
	s.f = fabric_start(&c);
	assert_int_equal(map_follow_init(&s.follow, name, F_HOSTS, SECOND), 0);
	if (map_deny_init(&s.deny, config, s.f->paths[from], &s.f->paths[to]->address, err) < 0)
		fail_msg("%s", err);
	return s;
}

static void site_stop(struct site *s)
{
	map_follow_fini(&s->follow);
	fabric_stop(s->f);
}

static void look(struct site *s)
{
	for (unsigned i = 0; i < F_HOSTS; i++)
		map_follow_report(&s->follow, i, map_agent_json(s->f->agent[i], s->f->paths[i]),
			s->f->now_ns);
}

/* What the reports make of the denials. */
static unsigned turn(struct site *s, struct map_deny *d)
{
	char err[MAP_ERR_LEN] = "";
	struct map *m;
	unsigned n;

	if (map_follow_join(&s->follow, s->f->now_ns, &m, err) < 0)
		fail_msg("%s", err);
	n = map_deny_turn(d, m, s->f->now_ns);
	map_free(m);
	return n;
}

/* Reports come every millisecond. */
static unsigned run(struct site *s, uint64_t ns)
{
	unsigned changes = 0;

	for (const uint64_t end = s->f->now_ns + ns; s->f->now_ns < end;) {
		fabric_run(s->f, MS);
		look(s);
		changes += turn(s, &s->deny);
	}
	return changes;
}

/* A part of the fabric, and whether a path meets it, read off the path's address as switches do. */
struct part {
	enum map_kind kind;
	unsigned plane, host, t0, t1;
};

static bool crosses(const struct part *part, unsigned from, const struct wire_ip *address)
{
	uint16_t hop[SRV6_USIDS];
	const unsigned n = srv6_path(address, hop);
	const unsigned first = hop[0] & 1023, last = hop[n - 2] & 1023, down = hop[n - 1] & 1023;

	if (hop[0] >> 12 != part->plane + 1)
		return false;
	switch (part->kind) {
	case MAP_HOST_LINK:
		return from == part->host || last * F_DOWN + down == part->host;
	case MAP_T0:
		return first == part->t0 || last == part->t0;
	case MAP_UPLINK:
		return n == 4 && (hop[1] & 1023) == part->t1 &&
		       (first == part->t0 || last == part->t0);
	default:
		return n == 4 && (hop[1] & 1023) == part->t1;
	}
}

static void set_loss(struct fabric *f, const struct part *p, unsigned loss)
{
	if (p->kind == MAP_HOST_LINK)
		f->host_link[p->plane][p->host] = loss;
	else if (p->kind == MAP_T0)
		f->t0[p->plane][p->t0] = loss;
	else if (p->kind == MAP_UPLINK)
		f->uplink[p->plane][p->t0][p->t1] = loss;
	else
		f->t1[p->plane][p->t1] = loss;
}

static unsigned all_parts(struct part part[64])
{
	unsigned n = 0;

	for (unsigned plane = 0; plane < F_PLANES; plane++) {
		for (unsigned h = 0; h < F_HOSTS; h++)
			part[n++] = (struct part){MAP_HOST_LINK, plane, h, 0, 0};
		for (unsigned t0 = 0; t0 < F_T0; t0++)
			part[n++] = (struct part){MAP_T0, plane, 0, t0, 0};
		for (unsigned t1 = 0; t1 < F_T1; t1++)
			part[n++] = (struct part){MAP_T1, plane, 0, 0, t1};
		for (unsigned i = 0; i < F_T0 * F_T1; i++)
			part[n++] = (struct part){MAP_UPLINK, plane, 0, i / F_T1, i % F_T1};
	}
	return n;
}

/* All denials of a host to another, after one turn. */
static void expect_paths(struct site *s, const struct part *part, unsigned from, unsigned to)
{
	struct map_deny *d = malloc(sizeof(*d));
	char err[MAP_ERR_LEN] = "";
	unsigned n = 0;

	assert_non_null(d);
	assert_int_equal(map_deny_init(d, &map_deny_defaults, s->f->paths[from],
				 &s->f->paths[to]->address, err),
		0);
	turn(s, d);
	for (unsigned i = 0; i < d->n; i++) {
		const bool want = crosses(part, from, &d->ev[i].address);

		if (d->ev[i].denied != want)
			fail_msg("%s of plane %u: EV %#x from h%u to h%u: %s",
				map_kind_name(part->kind), part->plane, d->ev[i].ev, from, to,
				want ? "is not denied" : "is denied");
		n += want;
	}
	assert_int_equal(d->n_denied, n);
	free(d);
}

/* Each link and each switch, of every plane: the paths that cross it, and no others, whoever
 * writes to whomever. */
static void every_part(void **state)
{
	struct part part[64];
	const unsigned n = all_parts(part);

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		struct site s = site_start(0, 1, &map_deny_defaults);

		set_loss(s.f, &part[i], 1000);
		fabric_run(s.f, 19 * MS);
		look(&s);
		run(&s, MS);
		for (unsigned from = 0; from < F_HOSTS; from++)
			for (unsigned to = 0; to < F_HOSTS; to++)
				if (from != to)
					expect_paths(&s, &part[i], from, to);
		site_stop(&s);
	}
}

static const struct map_deny_ev *ev_of(const struct map_deny *d, uint32_t ev)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->ev[i].ev == ev)
			return &d->ev[i];
	fail_msg("no EV %#x", ev);
	return NULL;
}

/* How long a path stays out after its link has come back. */
static uint64_t out_for(struct site *s, unsigned *link, const struct map_deny_ev *e)
{
	uint64_t up;

	*link = 1000;
	run(s, 20 * MS);
	assert_true(e->denied);
	*link = 0;
	for (up = s->f->now_ns; e->denied; assert_true(s->f->now_ns - up < 10 * SECOND))
		run(s, MS);
	return s->f->now_ns - up;
}

/* It comes back after a hundred good probes, a millisecond each, and after twice as many each time
 * that it goes again soon. */
static void flapping(void **state)
{
	struct site s = site_start(0, 2, &map_deny_defaults);
	const struct map_deny_ev *e = ev_of(&s.deny, 0x201);
	uint64_t last = 0;

	(void)state;
	run(&s, 50 * MS);
	assert_int_equal(s.deny.n, F_PLANES * F_T1);
	for (unsigned i = 0; i < 4; i++) {
		const uint64_t out = out_for(&s, &s.f->uplink[1][0][1], e);

		assert_in_range(
			out, (UINT64_C(100) << i) * MS, (UINT64_C(100) << i) * MS + 10 * MS);
		assert_true(out > last);
		assert_int_equal(s.deny.n_denied, 0);
		last = out;
	}
	assert_int_equal(s.deny.denials, 4);
	assert_int_equal(s.deny.returns, 4);
	site_stop(&s);
}

/* A link that loses one packet in five: lossy is bad enough. */
static void lossy_plane(void **state)
{
	struct site s = site_start(3, 4, &map_deny_defaults);

	(void)state;
	s.f->host_link[0][3] = 200;
	run(&s, 200 * MS);
	for (unsigned k = 0; k < F_T1; k++) {
		assert_true(ev_of(&s.deny, 0x100 | k)->denied);
		assert_false(ev_of(&s.deny, 0x200 | k)->denied);
	}
	site_stop(&s);
}

/* Of two planes whose T1s have all gone something is left to a host of another T0: as many as may
 * be are denied, those that are dead before those that lose. Good again, all come back. */
static void all_is_bad(void **state)
{
	const struct map_deny_config config = {.hold_ns = 60 * SECOND, .keep = 2};
	struct site s = site_start(0, 2, &config), near = site_start(0, 1, &map_deny_defaults);

	(void)state;
	for (unsigned i = 0; i < F_PLANES * F_T1; i++)
		s.f->t1[i / F_T1][i % F_T1] = near.f->t1[i / F_T1][i % F_T1] = 1000;
	run(&s, 20 * MS);
	run(&near, 20 * MS);
	assert_int_equal(s.deny.n_denied, s.deny.n - 2);
	assert_int_equal(near.deny.n_denied, 0);
	memset(s.f->t1, 0, sizeof(s.f->t1));
	run(&s, SECOND);
	assert_int_equal(s.deny.n_denied, 0);
	site_stop(&s);
	site_stop(&near);
}

/* The agents are gone, and then the network fails in another place: nothing that was denied comes
 * back before its time, nothing new is denied, and then all is as without a map. */
static void lost_map(void **state)
{
	const struct map_deny_config config = {.hold_ns = 3 * SECOND, .keep = 1};
	struct site s = site_start(0, 2, &config);
	uint64_t lost;

	(void)state;
	s.f->uplink[0][0][2] = 1000;
	run(&s, 100 * MS);
	assert_int_equal(s.deny.n_denied, 1);
	assert_true(ev_of(&s.deny, 0x102)->denied);
	lost = s.f->now_ns;
	s.f->uplink[0][0][1] = 1000;
	for (; s.f->now_ns < lost + 4 * SECOND - MS; s.f->now_ns += MS)
		assert_int_equal(turn(&s, &s.deny), 0);
	for (; s.deny.n_denied > 0; s.f->now_ns += MS) {
		assert_true(s.f->now_ns <= lost + 4 * SECOND);
		turn(&s, &s.deny);
	}
	assert_int_equal(s.deny.denials, 1);
	/* They are back. */
	run(&s, 100 * MS);
	assert_true(ev_of(&s.deny, 0x101)->denied && ev_of(&s.deny, 0x102)->denied);
	site_stop(&s);
}

/* ---- maps by hand ---- */

static struct map *map_of(const char *t0, const char *t1)
{
	char text[400], err[MAP_ERR_LEN] = "";
	struct map *m = NULL;
	json_t *list;

	snprintf(text, sizeof(text),
		"[{\"host\":\"h0\",\"address\":\"fd77::1:0\",\"group\":0,\"uplinks\":3,\"planes\":"
		"[{\"plane\":1,\"t0\":{\"state\":\"%s\"},\"t1\":[{\"state\":\"%s\"},"
		"{\"state\":\"good\"},{\"state\":\"good\"}]}]}]",
		t0, t1);
	list = json_loads(text, 0, NULL);
	assert_non_null(list);
	if (map_join(list, NULL, &m, err) < 0)
		fail_msg("%s", err);
	json_decref(list);
	return m;
}

static void says(struct site *s, const char *t0, const char *t1, unsigned changes, unsigned denied)
{
	struct map *m = map_of(t0, t1);

	s->f->now_ns += MS;
	assert_int_equal(map_deny_turn(&s->deny, m, s->f->now_ns), changes);
	assert_int_equal(s->deny.n_denied, denied);
	map_free(m);
}

/* An agent that has begun anew knows nothing: no reason to take back what was denied. */
static void unknown_is_not_good(void **state)
{
	struct site s = site_start(0, 2, &map_deny_defaults);

	(void)state;
	says(&s, "good", "good", 0, 0);
	says(&s, "good", "dead", 1, 1);
	says(&s, "good", "unknown", 0, 1);
	says(&s, "unknown", "good", 0, 1); /* over a T0 that nobody has seen yet */
	says(&s, "good", "lossy", 0, 1);
	says(&s, "good", "good", 1, 0);
	/* The whole plane, then only one path of it. */
	says(&s, "dead", "unknown", F_T1, F_T1);
	says(&s, "unknown", "unknown", 0, F_T1);
	says(&s, "good", "dead", F_T1 - 1, 1);
	site_stop(&s);
}

/* The first report may be from yesterday: only one that changes is of today. */
static void old_report(void **state)
{
	const char *const name[] = {"a"};
	char err[MAP_ERR_LEN] = "";
	struct map_follow f;
	struct map *m;

	(void)state;
	assert_int_equal(map_follow_init(&f, name, 1, SECOND), 0);
	map_follow_report(&f, 0, NULL, 0);
	assert_int_equal(map_follow_join(&f, 0, &m, err), 0);
	assert_null(m);
	map_follow_report(&f, 0, json_pack("{s:i}", "sent", 7), 0);
	assert_int_equal(map_follow_join(&f, 0, &m, err), 0);
	assert_null(m);
	map_follow_report(&f, 0, json_pack("{s:i}", "sent", 7), 1);
	assert_int_equal(map_follow_join(&f, 1, &m, err), 0);
	assert_null(m);
	/* One that makes no sense is named, and there is no map. */
	map_follow_report(&f, 0, json_pack("{s:i}", "sent", 8), 2);
	assert_int_equal(map_follow_join(&f, 2, &m, err), -EINVAL);
	assert_non_null(strstr(err, "a: host"));
	assert_null(m);
	assert_int_equal(map_follow_join(&f, 2 + SECOND, &m, err), 0);
	assert_null(m);
	map_follow_fini(&f);
}

static void refused(void **state)
{
	struct map_deny_config config = map_deny_defaults;
	struct site s = site_start(0, 1, &config);
	const struct wire_ip nobody = wire_ip_from4(0x0a000001);
	char err[MAP_ERR_LEN] = "";

	(void)state;
	assert_int_equal(map_deny_init(&s.deny, &config, s.f->paths[0], &nobody, err), -EINVAL);
	assert_non_null(strstr(err, "rows"));
	config.hold_ns = 0;
	assert_int_equal(
		map_deny_init(&s.deny, &config, s.f->paths[0], &s.f->paths[1]->address, err),
		-EINVAL);
	assert_non_null(strstr(err, "hold"));
	config.hold_ns = 1;
	for (config.keep = 0; config.keep <= F_PLANES + 1; config.keep += F_PLANES + 1) {
		assert_int_equal(map_deny_init(&s.deny, &config, s.f->paths[0],
					 &s.f->paths[1]->address, err),
			-EINVAL);
		assert_non_null(strstr(err, "keep"));
	}
	site_stop(&s);
}

int test_deny(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part),
		cmocka_unit_test(flapping),
		cmocka_unit_test(lossy_plane),
		cmocka_unit_test(all_is_bad),
		cmocka_unit_test(lost_map),
		cmocka_unit_test(unknown_is_not_good),
		cmocka_unit_test(old_report),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests_name("deny", tests, NULL, NULL);
}
