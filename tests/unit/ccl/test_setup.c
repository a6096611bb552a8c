/* SPDX-License-Identifier: BSD-3-Clause */
/* From group file to collectives, and what keeps a group from coming up. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "tests/unit/ccl/setup_job.h"

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

/* Nothing fails: all meet at the end, saying where they stand, and part. Devices that cannot leave
 * out PSNs get one group. */
static void may_resume(void **state)
{
	struct job j;

	(void)state;
	wish = json_pack("{s:b, s:{}}", "resume", 1, "flags");
	prepare(&j, true, 20000);
	run(&j);
	all_worked(&j);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(j.rank[i].info.n_groups, 1);
		assert_int_equal(j.rank[i].info.collectives, 1 << CCL_ALLREDUCE | 1 << CCL_BARRIER);
		assert_false(j.rank[i].info.resumed);
		assert_non_null(strstr(j.rank[i].info.selection,
			"AllReduce and Barrier alone, which a ring could resume"));
	}
	for (unsigned s = 0; s < 3; s++)
		assert_int_equal(j.sw[s].deletes, 1);
	finish(&j);
}

static void lose_the_groups(unsigned rank, struct ccl_comm *comm)
{
	if (rank == 1 || rank == 2)
		ccl_fail(comm, -EREMOTEIO, "the group has failed");
}

/* A group that fails when a rank has nothing unfinished any more: it could help others, and says
 * so; nobody needs it, so they part as if nothing were. */
static void fails_when_done(void **state)
{
	struct job j;

	(void)state;
	wish = json_pack("{s:b, s:{}}", "resume", 1, "flags");
	prepare(&j, true, 20000);
	j.after = lose_the_groups;
	run(&j);
	all_worked(&j);
	for (unsigned i = 0; i < N; i++)
		assert_false(j.rank[i].ended.resumed);
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
	prepare(&j, false, 20000);
	j.group[3]->rings = 2;
	run(&j);
	nobody_came_through(&j, "rank 3: its group file has another \"rings\" than rank 0's");
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
	assert_true(j.sw[0].shows > 0);
	finish(&j);
}

static int aborted;

static void abort_one(unsigned rank, struct ccl_comm *comm)
{
	if (rank != 1)
		return;
	ccl_abort(comm, "its program has had enough");
	aborted = ccl_wait(comm, (struct ccl_req){UINT64_MAX}, 0);
}

/* Who aborts knows why: the others hear it, and no switch is asked first, which may not answer. */
static void a_rank_aborts(void **state)
{
	struct job j;

	(void)state;
	prepare(&j, true, 20000);
	j.after = abort_one;
	run(&j);
	assert_int_equal(aborted, -ECANCELED);
	for (unsigned i = 0; i < N; i++)
		assert_true(j.rank[i].destroyed < 0);
	for (unsigned s = 0; s < 3; s++)
		assert_int_equal(j.sw[s].shows, 0);
	finish(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(star),
		cmocka_unit_test(tree),
		cmocka_unit_test(may_resume),
		cmocka_unit_test(fails_when_done),
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
		cmocka_unit_test(a_rank_aborts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
