/* SPDX-License-Identifier: BSD-3-Clause */
#include "map_test.h"

int main(void)
{
	return test_link() + test_agent() + test_deny() + test_locate() + test_report();
}
