/* SPDX-License-Identifier: BSD-3-Clause */
/* Names. */
#include <errno.h>
#include <string.h>

#include "lib/ccl/ccl.h"

static const char *const names[] = {
#define X(id, name) [CCL_##id] = name,
	CCL_COLLECTIVES(X)
#undef X
};

const char *ccl_collective_name(enum ccl_collective collective)
{
	return (unsigned)collective < CCL_N_COLLECTIVES ? names[collective] : "?";
}

int ccl_collective_parse(const char *name)
{
	for (int i = 0; i < CCL_N_COLLECTIVES; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return -EINVAL;
}

const char *ccl_kind_name(enum ccl_kind kind)
{
	return kind == CCL_SINGLE ? "single" : kind == CCL_MIXED ? "mixed" : "ring";
}
