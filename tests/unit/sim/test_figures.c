/* SPDX-License-Identifier: BSD-3-Clause */
/* What incline-sim mrc-figure ends with: whoever runs it looks at the exit status and at nothing
 * else. The figures are this test's own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "apps/sim_mrc.h"

static bool met, can, shortly;
static double ours;
static unsigned ran;

static bool usual(struct mrc_figure *fig)
{
	fig_row(fig, "rows of all other figures", 1, "", "-", "reached", true);
	ran++;
	return true;
}

#define USUAL(name)                       \
	bool name(struct mrc_figure *fig) \
	{                                 \
		return usual(fig);        \
	}
USUAL(mrc_figure_5)
USUAL(mrc_figure_6)
USUAL(mrc_figure_8)
USUAL(mrc_figure_9a)
USUAL(mrc_figure_9b)
USUAL(mrc_figure_9c)
USUAL(mrc_figure_9d)
USUAL(mrc_figure_10)
USUAL(mrc_figure_11)
USUAL(mrc_figure_12)
USUAL(mrc_figure_14)
USUAL(mrc_figure_15)
USUAL(mrc_figure_16)
USUAL(mrc_figure_17)
USUAL(mrc_figure_18)
USUAL(mrc_figure_19)
USUAL(mrc_figure_20)
USUAL(mrc_figure_21)
USUAL(mrc_figure_22)
USUAL(mrc_table_521)
USUAL(mrc_section_2)

bool mrc_figure_4(struct mrc_figure *fig)
{
	if (shortly)
		fig_short(fig, "a row of figure 4", ours, "%", "-", 95, 80, "as it is");
	else
		fig_row(fig, "a row of figure 4", ours, "", "-", "what it is for", met);
	return can;
}

/* Alone, and among all others. */
static void expect(int status)
{
	ran = 0;
	assert_int_equal(mrc_figure("4", 1, true, NULL), status);
	assert_int_equal(mrc_figure("all", 1, true, NULL), status);
	assert_true(ran >= 17);
}

static void statuses(void **state)
{
	(void)state;
	met = can = true;
	ours = 1;
	expect(0);
	met = false;
	expect(1);
	met = true;
	ours = NAN; /* a write failed: whatever was compared with it */
	expect(1);
	ours = 1;
	can = false;
	expect(1);
	assert_int_equal(mrc_figure("9a", 1, true, NULL), 0);
	assert_int_equal(mrc_figure("4a", 1, true, NULL), 2);
	can = true;
	assert_int_equal(mrc_figure("4", 1, true, "/nonexistent/figure.json"), 1);
}

/* Of the file, too: who plots it sees what was not met. */
static void file(void **state)
{
	char path[] = "/tmp/figures.XXXXXX";
	const int fd = mkstemp(path);
	const json_t *row;
	json_t *all;

	(void)state;
	assert_true(fd >= 0);
	met = can = true;
	ours = NAN;
	assert_int_equal(mrc_figure("4", 1, true, path), 1);
	all = json_load_file(path, 0, NULL);
	row = json_array_get(json_object_get(json_array_get(all, 0), "rows"), 0);
	assert_true(json_is_false(json_object_get(row, "met")));
	json_decref(all);
	close(fd);
	unlink(path);
}

/* An aim that is known not to be met: said with its reason, and no failure unless ours is below
 * what was known; once it is met there is no reason any more. */
static void known(void **state)
{
	char path[] = "/tmp/figures.XXXXXX";
	const int fd = mkstemp(path);
	const struct {
		double ours;
		int status;
		bool met;
	} as[] = {{81, 0, false}, {79, 1, false}, {95, 0, true}, {NAN, 1, false}};

	(void)state;
	assert_true(fd >= 0);
	can = true;
	for (unsigned i = 0; i < sizeof(as) / sizeof(as[0]); i++) {
		json_t *all, *row;

		shortly = true;
		ours = as[i].ours;
		assert_int_equal(mrc_figure("4", 1, true, path), as[i].status);
		all = json_load_file(path, 0, NULL);
		row = json_array_get(json_object_get(json_array_get(all, 0), "rows"), 0);
		assert_int_equal(json_is_true(json_object_get(row, "met")), as[i].met);
		assert_int_equal(json_object_get(row, "why") == NULL, as[i].met);
		assert_string_equal(json_string_value(json_object_get(row, "aim")), "95 %");
		json_decref(all);
	}
	shortly = false;
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statuses), cmocka_unit_test(file), cmocka_unit_test(known)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
