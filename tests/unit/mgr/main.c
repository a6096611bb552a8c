/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/mgr/mgr_test.h"

int main(void)
{
	return run_graph_tests() != 0;
}
