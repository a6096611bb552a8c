/* SPDX-License-Identifier: BSD-3-Clause */
/* EPIC's tables: figures where they can be had, orders elsewhere. */
#include <math.h>
#include <stdlib.h>

#include "lib/flowsim/paper.h"
#include "tests/unit/flowsim/flowsim_test.h"

/* Tables 36 to 43, 128 cells: all as printed, but for four of table 42 in which the paper has a job
 * that is slower with the network than without, or than with half the memory. */
static void single_jobs(void **state)
{
	unsigned same = 0;

	(void)state;
	for (unsigned i = 0; i < FS_SINGLES; i++) {
		const struct fs_single *t = &fs_singles[i];
		double ours[FS_SETTINGS][FS_UNITS];

		for (unsigned s = 0; s < FS_SETTINGS; s++) {
			for (unsigned u = 0; u < FS_UNITS; u++) {
				struct fs_config config = {.policy = NULL};
				struct fs_totals totals;
				char err[FS_ERR_LEN];

				assert_int_equal(fs_run_single(t, s, fs_units[u], &config,
							 &ours[s][u], &totals, err),
					0);
				assert_true(totals.peak_groups <= fs_units[u]);
				if (fabs(fs_as_printed(ours[s][u], t->paper[s][u]) -
					    t->paper[s][u]) < 1e-6)
					same++;
				else if (t->table != 42 || s < FS_SPATIAL || u > 1)
					fail_msg("table %u, %s, %u: %.4f, the paper has %g",
						t->table, fs_setting_name(s), fs_units[u],
						ours[s][u], t->paper[s][u]);
			}
		}
		for (unsigned u = 0; u < FS_UNITS; u++) {
			assert_true(ours[FS_RING][u] > ours[FS_EDT][u]);
			assert_true(ours[FS_EDT][u] >= ours[FS_SPATIAL][u]);
			assert_true(ours[FS_SPATIAL][u] >= ours[FS_TEMPORAL][u]);
			assert_true(u < 2 || ours[FS_SPATIAL][u] == ours[FS_TEMPORAL][u]);
		}
	}
	printf("tables 36 to 43: %u of 128 figures as the paper has them\n", same);
	assert_int_equal(same, 124);
}

int run_paper_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(single_jobs)};

	return cmocka_run_group_tests_name("paper", tests, NULL, NULL);
}
