/* SPDX-License-Identifier: BSD-3-Clause */
/* The heap beside a plain array that is looked through. */
#include "lib/mgr/heap.h"
#include "tests/unit/mgr/mgr_test.h"

enum { IDS = 200, STEPS = 100000 };

static bool first_of(const uint64_t *due, unsigned *id)
{
	*id = 0;
	for (unsigned i = 1; i < IDS; i++) {
		if (due[i] < due[*id])
			*id = i;
	}
	return due[*id] != UINT64_MAX;
}

static void beside_an_array(void **state)
{
	struct mgr_heap h = {.n = 0};
	uint64_t due[IDS], random = 81, at;
	unsigned id, want;

	(void)state;
	for (unsigned i = 0; i < IDS; i++)
		due[i] = UINT64_MAX;
	assert_false(mgr_heap_first(&h, &id, &at));
	mgr_heap_remove(&h, 7);
	for (unsigned step = 0; step < STEPS; step++) {
		id = test_random(&random) % IDS;
		if (test_random(&random) % 3 == 0) {
			mgr_heap_remove(&h, id);
			due[id] = UINT64_MAX;
		} else {
			due[id] = test_random(&random) % 64; /* often the same */
			assert_int_equal(mgr_heap_set(&h, id, due[id]), 0);
		}
		assert_int_equal(mgr_heap_first(&h, &id, &at), first_of(due, &want));
		if (h.n == 0)
			continue;
		assert_int_equal(id, want);
		assert_int_equal(at, due[want]);
	}
	mgr_heap_free(&h);
	assert_false(mgr_heap_first(&h, &id, &at));
}

int run_heap_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(beside_an_array)};

	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
