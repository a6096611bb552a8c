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
	static const char *const kinds[] = {"single", "mixed", "ring", "multicast", "tree"};

	return kinds[kind];
}

static const struct {
	const char *name;
	unsigned does;
} algorithms[] = {
#define X(id, name, does, how) [CCL_BY_##id] = {name, does},
	CCL_ALGORITHMS(X)
#undef X
};

const char *ccl_algorithm_name(enum ccl_algorithm algorithm)
{
	return (unsigned)algorithm < CCL_N_ALGORITHMS ? algorithms[algorithm].name : "?";
}

int ccl_algorithm_parse(const char *name)
{
	for (int i = 0; i < CCL_N_ALGORITHMS; i++)
		if (strcmp(name, algorithms[i].name) == 0)
			return i;
	return -EINVAL;
}

unsigned ccl_algorithm_does(enum ccl_algorithm algorithm)
{
	return (unsigned)algorithm < CCL_N_ALGORITHMS ? algorithms[algorithm].does : 0;
}
