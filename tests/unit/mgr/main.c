/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/mgr/mgr_test.h"

int main(void)
{
	return run_graph_tests() + run_book_tests() + run_size_tests() + run_heap_tests() +
		       run_hash_tests() + run_policy_tests() + run_policy_all_tests() +
		       run_job_tests() + run_job_life_tests() + run_windows_tests() !=
	       0;
}
