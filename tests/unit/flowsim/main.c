/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/flowsim/flowsim_test.h"

int main(void)
{
	return run_waterfill_tests() + run_flowsim_tests() + run_paper_tests() != 0;
}
