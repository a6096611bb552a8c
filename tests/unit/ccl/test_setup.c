/* SPDX-License-Identifier: BSD-3-Clause */
/* From group file to collectives: threads stand for processes, verbs and switches are imaginary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ccl/group.h"
#include "lib/ccl/select.h"
#include "tests/unit/ccl/fake_switch.h"
#include "tests/unit/ccl/fake_verbs.h"

enum { N = 4, COUNT = 5000 };

struct job {
	struct ccl_group *group[N]; /* each rank reads its own file */
	struct fake_switch sw[3];
	unsigned n_sw;
	unsigned start; /* ranks that are started */
	unsigned lazy;  /* rank that does not take part */
	struct rank {
		struct job *job;
		unsigned rank;
		pthread_t thread;
		int created, worked, destroyed, wrong;
		struct ccl_info info;
		char err[CCL_ERR_LEN], failure[CCL_ERR_LEN];
	} rank[N];
};

/* What a test wants in the group file, and takes away again; NULL: AllReduce and Barrier. */
static json_t *wish;

static void prepare(struct job *j, bool tree, unsigned timeout_ms)
{
	static unsigned serial;
	const unsigned id = serial++;
	json_t *doc, *switches = json_array(), *ranks = json_array();
	char err[CCL_ERR_LEN];

	memset(j, 0, sizeof(*j));
	j->n_sw = tree ? 3 : 1;
	j->start = N;
	j->lazy = N;
	fake_init(N, 1024, id);
	fake_window(8);
	fake_auto(true);
	for (unsigned i = 0; i < N; i++) {
		char ip[32];

		snprintf(ip, sizeof(ip), "10.77.0.%u", 10 + i);
		json_array_append_new(ranks, json_pack("{s:s}", "ip", ip));
	}
	for (unsigned s = 0; s < j->n_sw; s++) {
		struct fake_switch *sw = &j->sw[s];
		json_t *children = json_array(), *obj;
		char name[16], ip[32], port[16];

		sw->number = s;
		sw->missing_rank = -1;
		snprintf(sw->path, sizeof(sw->path), "/tmp/ccl-setup-%d-%u-%u", getpid(), id, s);
		snprintf(name, sizeof(name), "s%u", s);
		snprintf(ip, sizeof(ip), "10.77.255.%u", s + 1);
		for (unsigned i = 0; i < N; i++) {
			snprintf(port, sizeof(port), "h%u", i);
			if (!tree || i / 2 + 1 == s)
				json_array_append_new(children,
					json_pack("{s:i, s:s}", "rank", (int)i, "port", port));
		}
		for (unsigned c = 1; tree && s == 0 && c < 3; c++) {
			snprintf(port, sizeof(port), "s%u", c);
			json_array_append_new(
				children, json_pack("{s:s, s:s}", "switch", port, "port", port));
		}
		obj = json_pack("{s:s, s:s, s:s, s:o}", "name", name, "socket", sw->path, "ip", ip,
			"children", children);
		if (s)
			json_object_update_new(
				obj, json_pack("{s:s, s:s}", "parent", "s0", "parent_port", "up0"));
		json_array_append_new(switches, obj);
	}
	doc = json_pack("{s:s, s:o, s:i, s:i, s:i, s:{s:b}, s:o, s:o}", "name", "g", "bootstrap",
		json_sprintf("unix:/tmp/ccl-setup-%d-%u", getpid(), id), "mtu", 256, "timeout_ms",
		(int)timeout_ms, "W", 8, "flags", "reproducible", 1, "ranks", ranks, "switches",
		switches);
	if (!wish)
		wish = json_pack("{s:[s, s]}", "collectives", "allreduce", "barrier");
	json_object_update(doc, wish);
	json_decref(wish);
	wish = NULL;
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(ccl_group_parse(doc, &j->group[i], err), 0);
	json_decref(doc);
}

static int wrong(const int32_t *buf, int first, int n, int32_t want, int slope)
{
	int bad = 0;

	for (int i = first; i < first + n; i++)
		bad += buf[i] != want + slope * (i - first);
	return bad;
}

/* The other four, each rank contributing i + rank; all in place. */
static void work_all(struct rank *me, struct ccl_comm *comm, int32_t *buf)
{
	const int rank = (int)me->rank, block = COUNT / N;

	for (int i = 0; i < COUNT; i++)
		buf[i] = i + rank;
	me->worked = ccl_broadcast(comm, buf, buf, COUNT, REDUCE_INT32, 2);
	me->wrong += wrong(buf, 0, COUNT, 2, 1);
	for (int i = 0; i < COUNT; i++)
		buf[i] = i + rank;
	if (!me->worked)
		me->worked = ccl_reduce(comm, buf, buf, COUNT, REDUCE_INT32, REDUCE_SUM, 1);
	if (rank == 1)
		me->wrong += wrong(buf, 0, COUNT, 6, N);
	for (int i = 0; i < COUNT; i++)
		buf[i] = i + rank;
	if (!me->worked)
		me->worked = ccl_reduce_scatter(
			comm, buf, buf + rank * block, (uint64_t)block, REDUCE_INT32, REDUCE_SUM);
	me->wrong += wrong(buf, rank * block, block, 6 + N * rank * block, N);
	if (!me->worked)
		me->worked =
			ccl_allgather(comm, buf + rank * block, buf, (uint64_t)block, REDUCE_INT32);
	me->wrong += wrong(buf, 0, N * block, 6, N);
}

static void work(struct rank *me, struct ccl_comm *comm)
{
	int32_t *buf = malloc(COUNT * sizeof(*buf));

	ccl_query(comm, &me->info);
	for (int round = 0; round < 5 && !me->worked; round++) {
		for (int i = 0; i < COUNT; i++)
			buf[i] = i + (int)me->rank + round;
		me->worked = ccl_allreduce(comm, buf, buf, COUNT, REDUCE_INT32, REDUCE_SUM);
		for (int i = 0; i < COUNT && !me->worked; i++)
			me->wrong += buf[i] != N * (i + round) + 6;
		if (!me->worked)
			me->worked = ccl_barrier(comm);
	}
	if (!me->worked && me->info.collectives == CCL_ALL_COLLECTIVES)
		work_all(me, comm, buf);
	snprintf(me->failure, sizeof(me->failure), "%s", ccl_error(comm));
	free(buf);
}

static void *rank_main(void *arg)
{
	struct rank *me = arg;
	struct ccl_comm *comm;

	me->created = ccl_comm_create(me->job->group[me->rank], me->rank, &comm, me->err);
	if (me->created)
		return NULL;
	if (me->rank != me->job->lazy)
		work(me, comm);
	me->destroyed = ccl_comm_destroy(comm);
	return NULL;
}

static void run(struct job *j)
{
	for (unsigned s = 0; s < j->n_sw; s++)
		fake_switch_start(&j->sw[s]);
	for (unsigned i = 0; i < j->start; i++) {
		j->rank[i] = (struct rank){.job = j, .rank = i};
		assert_int_equal(
			pthread_create(&j->rank[i].thread, NULL, rank_main, &j->rank[i]), 0);
	}
	for (unsigned i = 0; i < j->start; i++)
		pthread_join(j->rank[i].thread, NULL);
	for (unsigned s = 0; s < j->n_sw; s++) {
		fake_switch_stop(&j->sw[s]);
		assert_string_equal(j->sw[s].breach, "");
	}
}

static void finish(struct job *j)
{
	for (unsigned s = 0; s < j->n_sw; s++) {
		json_decref(j->sw[s].created);
		json_decref(j->sw[s].activated);
	}
	for (unsigned i = 0; i < N; i++)
		ccl_group_free(j->group[i]);
	fake_fini();
}

static void all_worked(const struct job *j)
{
	for (unsigned i = 0; i < N; i++) {
		const struct rank *r = &j->rank[i];

		if (r->created || r->worked || r->destroyed || r->wrong)
			fail_msg("rank %u: %d %d %d, %d wrong: %s%s", i, r->created, r->worked,
				r->destroyed, r->wrong, r->err, r->failure);
	}
}

static void nobody_came_through(const struct job *j, const char *says)
{
	for (unsigned i = 0; i < j->start; i++) {
		assert_true(j->rank[i].created < 0);
		if (!strstr(j->rank[i].err, says))
			fail_msg("rank %u: \"%s\" lacks \"%s\"", i, j->rank[i].err, says);
	}
}

static int ep_int(const json_t *params, size_t i, const char *key)
{
	return (int)json_integer_value(
		json_object_get(json_array_get(json_object_get(params, "endpoints"), i), key));
}

static void star(void **state)
{
	struct job j;
	const json_t *c;

	(void)state;
	prepare(&j, false, 20000);
	run(&j);
	all_worked(&j);
	assert_int_equal(j.sw[0].creates, 1);
	assert_int_equal(j.sw[0].activates, 1);
	assert_int_equal(j.sw[0].deletes, 1);
	assert_int_equal(j.sw[0].forced, 1);
	c = j.sw[0].created;
	assert_string_equal(json_string_value(json_object_get(c, "name")), "g");
	assert_true(json_is_true(json_object_get(json_object_get(c, "flags"), "reproducible")));
	assert_int_equal(json_integer_value(json_object_get(c, "mtu")), 256);
	assert_int_equal(json_integer_value(json_object_get(c, "M")), 4);
	assert_int_equal(json_integer_value(json_object_get(c, "ranks")), 4);
	assert_int_equal(ep_int(c, 3, "qpn"), 0x103);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(j.rank[i].info.remote_qpn, 0x1000 + 0x40 * i);
		assert_int_equal(j.rank[i].info.start_psn,
			json_integer_value(json_object_get(c, "start_psn")));
		assert_int_equal(j.rank[i].info.gid_index, 1);
		assert_int_equal(j.rank[i].info.mtu, 256);
	}
	finish(&j);
}

/* s0 over s1 (ranks 0, 1) and s2 (ranks 2, 3): the switches' QPNs refer to one another. */
static void tree(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, true, 20000);
	run(&j);
	all_worked(&j);
	assert_int_equal(j.rank[1].info.remote_qpn, 0x2040);
	assert_int_equal(j.rank[2].info.remote_qpn, 0x3000);
	assert_int_equal(ep_int(j.sw[0].activated, 0, "qpn"), 0x2080); /* parent ep of s1 */
	assert_int_equal(ep_int(j.sw[0].activated, 1, "qpn"), 0x3080);
	assert_int_equal(ep_int(j.sw[1].activated, 0, "index"), 2);
	assert_int_equal(ep_int(j.sw[1].activated, 0, "qpn"), 0x1000);
	assert_int_equal(ep_int(j.sw[2].activated, 0, "qpn"), 0x1040);
	for (unsigned s = 0; s < 3; s++)
		assert_int_equal(j.sw[s].deletes, 1);
	finish(&j);
}

static void refused_by_a_switch(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, true, 20000);
	j.sw[2].fail_method = "group.create";
	j.sw[2].fail_errno = EINVAL;
	run(&j);
	nobody_came_through(&j, "switch s2: group.create: endpoints[0].ip: the test says no");
	assert_int_equal(j.sw[0].deletes, 1); /* nothing stays behind */
	assert_int_equal(j.sw[1].deletes, 1);
	finish(&j);
}

static void activation_refused(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, true, 20000);
	j.sw[1].fail_method = "group.activate";
	j.sw[1].fail_errno = EIO;
	run(&j);
	nobody_came_through(&j, "switch s1: group.activate");
	for (unsigned s = 0; s < 3; s++)
		assert_int_equal(j.sw[s].deletes, 1);
	finish(&j);
}

/* A former run has left a group of this name, which has failed. */
static void former_group_is_removed(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, false, 20000);
	j.sw[0].fail_method = "group.create";
	j.sw[0].fail_errno = EEXIST;
	j.sw[0].fail_times = 1;
	j.sw[0].state = "failed";
	run(&j);
	all_worked(&j);
	assert_int_equal(j.sw[0].deletes, 2);
	finish(&j);
}

static void name_in_use(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, false, 20000);
	j.sw[0].fail_method = "group.create";
	j.sw[0].fail_errno = EEXIST;
	run(&j);
	nobody_came_through(&j, "has a group \"g\" already (active)");
	assert_int_equal(j.sw[0].deletes, 0); /* it is somebody else's */
	finish(&j);
}

static void no_switch(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, false, 300);
	snprintf(j.group[0]->sw[0].socket, CCL_PATH_LEN, "/tmp/ccl-no-such-socket");
	run(&j);
	nobody_came_through(&j, "switch s0: ");
	finish(&j);
}

static void a_rank_cannot_connect(void **state)
{
	struct job j;

	(void)state;
	for (unsigned r = 0; r < N; r += 3) {
		prepare(&j, false, 20000);
		fake_fail_rtr(r, ETIMEDOUT);
		run(&j);
		nobody_came_through(&j, "queue pair to RTR: Connection timed out (the switch did");
		assert_int_equal(j.sw[0].deletes, 1);
		finish(&j);
	}
}

static void a_rank_has_no_device(void **state)
{
	struct job j;

	(void)state;
	for (unsigned r = 0; r < N; r += 2) {
		char says[64];

		prepare(&j, false, 20000);
		snprintf(j.group[r]->device, sizeof(j.group[r]->device), "mlx5_7");
		run(&j);
		snprintf(says, sizeof(says), "rank %u: no RDMA device named mlx5_7", r);
		nobody_came_through(&j, says);
		assert_int_equal(j.sw[0].creates, 0);
		finish(&j);
	}
	prepare(&j, false, 20000);
	j.group[1]->rank_ip[1] = wire_ip_from4(0x0a4d0063);
	run(&j);
	nobody_came_through(&j, "rank 1: no RDMA device has this rank's address 10.77.0.99 (found: "
				"fake0: 10.77.0.10; fake1: 10.77.0.11");
	finish(&j);
}

static void files_differ(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, false, 20000);
	j.group[2]->w = 16;
	run(&j);
	nobody_came_through(&j, "rank 2: its group file has another \"W\" than rank 0's");
	finish(&j);
}

static void port_mtu_too_small(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, false, 20000);
	for (unsigned i = 0; i < N; i++)
		j.group[i]->mtu = 4096;
	run(&j);
	nobody_came_through(&j, "its port has MTU 1024, the group needs 4096");
	finish(&j);
}

static void ranks_missing(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, false, 200);
	j.start = 2;
	run(&j);
	nobody_came_through(&j, "for ranks 2,3");
	assert_int_equal(j.sw[0].creates, 0);
	finish(&j);
}

/* Rank 3 is there but does not take part: the others fail after the timeout and say whom the switch
 * waits for; rank 3 hears of it when it says goodbye. */
static void stalled(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, false, 300);
	j.lazy = 3;
	j.sw[0].missing_rank = 3;
	run(&j);
	for (unsigned i = 0; i < 3; i++) {
		const struct rank *r = &j.rank[i];

		assert_int_equal(r->created, 0);
		/* By its own clock, or told by another one that was quicker. */
		assert_true(r->worked == -ETIMEDOUT || r->worked == -ECONNABORTED);
		if (!strstr(r->failure, "nothing came for 300 ms; waiting for the result of PSN") ||
			!strstr(r->failure, "; switch s0 waits for rank 3"))
			fail_msg("%s", r->failure);
		assert_true(r->destroyed < 0);
	}
	assert_true(j.rank[3].destroyed < 0);
	assert_int_equal(j.sw[0].deletes, 1);
	assert_int_equal(j.sw[0].forced, 0); /* somebody's queue pair may be alive: drain */
	finish(&j);
}

/* ---- which kind of groups ---- */

static void everybody_has(
	const struct job *j, enum ccl_kind kind, unsigned n_groups, const char *says)
{
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(j->rank[i].info.kind, kind);
		assert_int_equal(j->rank[i].info.n_groups, n_groups);
		if (!strstr(j->rank[i].info.selection, says))
			fail_msg("\"%s\" lacks \"%s\"", j->rank[i].info.selection, says);
	}
}

static const char *created(const struct job *j, const char *key)
{
	return json_string_value(json_object_get(j->sw[0].created, key));
}

static void prepare_all(struct job *j, const char *kind, unsigned can_skip)
{
	wish = json_pack("{s:s}", "kind", kind);
	prepare(j, true, 20000);
	for (unsigned r = 0; r < can_skip; r++)
		fake_can_skip(r, true);
}

static void mixed_where_all_can(void **state)
{
	struct job j;

	(void)state;
	prepare_all(&j, "auto", N);
	fake_set_kind(FAKE_MODE2);
	run(&j);
	all_worked(&j);
	everybody_has(&j, CCL_MIXED, 1, "every rank's device can leave out PSNs");
	assert_int_equal(j.sw[0].creates, 1);
	assert_string_equal(created(&j, "kind"), "mixed");
	assert_null(created(&j, "primitive"));
	finish(&j);
}

static void single_where_one_cannot(void **state)
{
	struct job j;

	(void)state;
	prepare_all(&j, "auto", N - 1);
	run(&j);
	all_worked(&j);
	everybody_has(&j, CCL_SINGLE, 2 * N + 1, "rank 3's device (fake3) cannot leave out PSNs");
	for (unsigned s = 0; s < 3; s++) {
		assert_int_equal(j.sw[s].creates, 2 * N + 1);
		assert_int_equal(j.sw[s].activates, 2 * N + 1);
		assert_int_equal(j.sw[s].deletes, 2 * N + 1);
	}
	assert_string_equal(created(&j, "kind"), "single");
	assert_string_equal(created(&j, "primitive"), "broadcast");
	assert_string_equal(created(&j, "name"), "g.bc3");
	assert_int_equal(json_integer_value(json_object_get(j.sw[0].created, "root")), 3);
	finish(&j);
}

static void mode_one_needs_no_skip(void **state)
{
	struct job j;

	(void)state;
	wish = json_pack("{s:s}", "mode", "I");
	prepare(&j, false, 20000);
	fake_set_kind(FAKE_MODE1);
	run(&j);
	all_worked(&j);
	everybody_has(&j, CCL_MIXED, 1, "mode I needs no PSN skip");
	finish(&j);
}

static void asked_for(void **state)
{
	struct job j;

	(void)state;
	prepare_all(&j, "single", N);
	run(&j);
	all_worked(&j);
	everybody_has(&j, CCL_SINGLE, 2 * N + 1, "the group file asks for them");
	finish(&j);

	prepare_all(&j, "mixed", 1);
	run(&j);
	nobody_came_through(&j, "kind: a mixed group in mode II needs devices that can leave out "
				"PSNs, and rank 1's (fake1) cannot");
	assert_int_equal(j.sw[0].creates, 0);
	finish(&j);
}

static void no_selective_queue_pairs(void **state)
{
	struct job j;

	(void)state;
	wish = json_pack("{s:s, s:{s:b}}", "mode", "III", "flags", "sr", 1);
	prepare(&j, false, 20000);
	run(&j);
	nobody_came_through(&j, "flags.sr: rank 0's device (fake0) has no selective queue pairs");
	assert_int_equal(j.sw[0].creates, 0);
	finish(&j);
}

/* A switch that does not offer the best kind: the next one, and nothing stays behind. */
static void next_best(void **state)
{
	struct job j;

	(void)state;
	prepare_all(&j, "auto", N);
	j.sw[2].lacks = "mixed";
	run(&j);
	all_worked(&j);
	everybody_has(&j, CCL_SINGLE, 2 * N + 1, "the switches offer no mixed ones");
	assert_int_equal(j.sw[0].creates, 2 * N + 2);
	assert_int_equal(j.sw[0].deletes, 2 * N + 2);
	finish(&j);

	prepare_all(&j, "single", 0);
	j.sw[1].lacks = "broadcast";
	run(&j);
	all_worked(&j);
	everybody_has(&j, CCL_SINGLE, 1, "1 single group,");
	assert_int_equal(j.rank[0].info.collectives, 1 << CCL_ALLREDUCE | 1 << CCL_BARRIER);
	assert_int_equal(j.sw[0].creates, j.sw[0].deletes);
	finish(&j);
}

/* What is tried, in which order. */
static void choices(void **state)
{
	static const struct {
		const char *mode, *kind;
		bool skip, fallback;
		int n;
		enum ccl_kind order[CCL_MAX_CHOICES];
	} t[] = {
		{"II", "auto", true, true, 4, {CCL_MIXED, CCL_SINGLE, CCL_SINGLE, CCL_RING}},
		{"II", "auto", false, true, 3, {CCL_SINGLE, CCL_SINGLE, CCL_RING}},
		{"III", "auto", false, false, 2, {CCL_SINGLE, CCL_SINGLE}},
		{"III", "mixed", true, true, 2, {CCL_MIXED, CCL_RING}},
		{"I", "mixed", false, false, 1, {CCL_MIXED}},
		{"II", "mixed", false, true, -EOPNOTSUPP, {CCL_SINGLE}},
		{"II", "single", true, false, 2, {CCL_SINGLE, CCL_SINGLE}},
		{"netreduce", "auto", true, true, 1, {CCL_RING}},
		{"ring", "auto", true, true, 1, {CCL_RING}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct ccl_choice choice[CCL_MAX_CHOICES];
		struct ccl_ability rank[N] = {0};
		char err[CCL_ERR_LEN];
		struct job j;

		wish = json_pack("{s:s, s:s, s:b}", "mode", t[i].mode, "kind", t[i].kind,
			"fallback", t[i].fallback);
		prepare(&j, false, 1000);
		for (unsigned r = 0; r < N; r++)
			rank[r].skip = t[i].skip || r == 0, rank[r].rnr = r != 1;
		assert_int_equal(ccl_choose(j.group[0], rank, choice, err), t[i].n);
		assert_int_equal(ccl_cannot_stall(j.group[0], rank),
			strcmp(t[i].mode, "I") == 0 || strcmp(t[i].mode, "ring") == 0 ? N : 1);
		rank[1].rnr = true;
		rank[N - 1].rnr = false;
		if (strcmp(t[i].mode, "II") == 0)
			assert_int_equal(ccl_cannot_stall(j.group[0], rank), N - 1);
		for (int k = 0; k < t[i].n; k++) {
			assert_int_equal(choice[k].kind, t[i].order[k]);
			assert_int_equal(choice[k].fallback, k > 0 && choice[k].kind == CCL_RING);
		}
		finish(&j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(star),
		cmocka_unit_test(tree),
		cmocka_unit_test(refused_by_a_switch),
		cmocka_unit_test(activation_refused),
		cmocka_unit_test(former_group_is_removed),
		cmocka_unit_test(name_in_use),
		cmocka_unit_test(no_switch),
		cmocka_unit_test(a_rank_cannot_connect),
		cmocka_unit_test(a_rank_has_no_device),
		cmocka_unit_test(files_differ),
		cmocka_unit_test(port_mtu_too_small),
		cmocka_unit_test(ranks_missing),
		cmocka_unit_test(stalled),
		cmocka_unit_test(mixed_where_all_can),
		cmocka_unit_test(single_where_one_cannot),
		cmocka_unit_test(mode_one_needs_no_skip),
		cmocka_unit_test(asked_for),
		cmocka_unit_test(no_selective_queue_pairs),
		cmocka_unit_test(next_best),
		cmocka_unit_test(choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
