/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/seeded.h"

#include <errno.h>
#include <string.h>

int mc_seed(const char *name)
{
	return strcmp(name, "none") == 0 ? 0 : -EINVAL;
}

const char *mc_seeded(void)
{
	return NULL;
}
