/* SPDX-License-Identifier: BSD-3-Clause */
/* From group file to collectives: which kind of groups it is to be. */
#include <errno.h>
#include <string.h>

#include "lib/ccl/select.h"
#include "tests/unit/ccl/setup_job.h"

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
	j.group[0]->resume = true;
	run(&j);
	nobody_came_through(&j, "kind: a mixed group in mode II that is to resume needs devices "
				"that can leave out PSNs, and rank 1's (fake1) cannot");
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

char *__real_boot_line(const json_t *object, size_t *len);
char *__wrap_boot_line(const json_t *object, size_t *len);
static unsigned no_memory; /* for so many plans */

char *__wrap_boot_line(const json_t *object, size_t *len)
{
	if (!no_memory || !json_object_get(object, "plan"))
		return __real_boot_line(object, len);
	no_memory--;
	return NULL;
}

/* Everybody knows why, and rank 0 does not go on with a ring of those who have left. */
static void a_plan_without_memory(void **state)
{
	struct job j;

	(void)state;
	wish = json_pack("{s:s, s:b}", "mode", "II", "fallback", 1);
	prepare(&j, false, 20000);
	no_memory = 1;
	run(&j);
	assert_int_equal(no_memory, 0);
	nobody_came_through(&j, "rank 0: out of memory");
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
		bool resync; /* the first */
	} t[] = {
		{"II", "auto", true, true, 4, {CCL_MIXED, CCL_SINGLE, CCL_SINGLE, CCL_RING}},
		{"II", "auto", false, true, 3, {CCL_SINGLE, CCL_SINGLE, CCL_RING}},
		{"III", "auto", false, false, 2, {CCL_SINGLE, CCL_SINGLE}},
		{"III", "mixed", true, true, 2, {CCL_MIXED, CCL_RING}},
		{"I", "mixed", false, false, 1, {CCL_MIXED}},
		{"II", "mixed", false, true, 2, {CCL_MIXED, CCL_RING}, true},
		{"III", "mixed", false, false, 1, {CCL_MIXED}, true},
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
			assert_int_equal(choice[k].resync, k == 0 && t[i].resync);
			assert_int_equal(choice[k].fallback, k > 0 && choice[k].kind == CCL_RING);
		}
		finish(&j);
	}
}

/* Which algorithm, by what the file asks for and the devices can do. */
static void algorithm_over(
	const char *transport, const char *algorithm, bool device, int want, const char *says)
{
	struct ccl_choice choice[CCL_MAX_CHOICES];
	struct ccl_ability rank[N] = {0};
	char err[CCL_ERR_LEN] = "";
	struct job j;
	int n;

	wish = json_pack("{s:s, s:s, s:{s:s, s:s}}", "mode", "II", "algorithm", algorithm,
		"multicast", "group", "239.1.2.3", "transport", transport);
	prepare(&j, false, 1000);
	for (unsigned r = 0; r < N; r++) {
		rank[r] = (struct ccl_ability){
			.skip = true, .rnr = true, .multicast = device || r != 2};
		snprintf(rank[r].device, sizeof(rank[r].device), "dev%u", r);
	}
	ccl_group_apply_algorithm(j.group[0]);
	n = ccl_choose(j.group[0], rank, choice, err);
	assert_int_equal(n < 0 ? n : (int)choice[0].kind, want);
	assert_non_null(strstr(n < 0 ? err : choice[0].why, says));
	if (strcmp(algorithm, "auto") == 0)
		for (int i = 0; i < n; i++)
			assert_int_equal(choice[i].multicast, device);
	else if (n > 0)
		assert_false(choice[0].multicast || choice[n - 1].fallback);
	finish(&j);
}

static void algorithm_of(const char *algorithm, bool device, int want, const char *says)
{
	algorithm_over("ud", algorithm, device, want, says);
}

static void algorithms(void **state)
{
	(void)state;
	algorithm_over("uc", "multicast", true, CCL_MULTICAST, "is asked for");
	algorithm_over("uc", "multicast", false, -EOPNOTSUPP,
		"multicast.transport: uc, multicast of RDMA WRITEs, but rank 2's device (dev2) has "
		"none");
	algorithm_over("uc", "auto", false, CCL_MIXED,
		"no multicast of RDMA WRITEs, which rank 2's device (dev2) has not");
	algorithm_of("auto", true, CCL_MIXED, "of 65536 bytes and more by multicast");
	algorithm_of(
		"auto", false, CCL_MIXED, "no multicast, which rank 2's device (dev2) has not");
	algorithm_of("multicast", true, CCL_MULTICAST, "is asked for");
	algorithm_of("multicast", false, -EOPNOTSUPP, "rank 2's device (dev2) has none");
	algorithm_of("inc", false, CCL_MIXED, "one mixed group");
	algorithm_of("ring", false, CCL_RING, "algorithm ring is asked for");
	algorithm_of("tree", false, CCL_TREE, "k-nomial tree of radix 4");
}

/* The device of these tests has no multicast: all ranks hear it, and no switch was asked. */
static void no_multicast(void **state)
{
	struct job j;

	(void)state;
	wish = json_pack(
		"{s:s, s:{s:s}}", "algorithm", "multicast", "multicast", "group", "239.1.2.3");
	prepare(&j, true, 20000);
	run(&j);
	nobody_came_through(&j, "algorithm: multicast, but rank 0's device (fake0) has none");
	assert_int_equal(j.sw[0].creates, 0);
	finish(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mixed_where_all_can),
		cmocka_unit_test(single_where_one_cannot),
		cmocka_unit_test(mode_one_needs_no_skip),
		cmocka_unit_test(asked_for),
		cmocka_unit_test(no_selective_queue_pairs),
		cmocka_unit_test(next_best),
		cmocka_unit_test(a_plan_without_memory),
		cmocka_unit_test(choices),
		cmocka_unit_test(algorithms),
		cmocka_unit_test(no_multicast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
