/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/seeded.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "dataplane/inc/seeded_bugs.h"

#ifdef INC_SEEDED_BUG

enum inc_seeded_bug inc_seeded_bug;

static const struct {
	const char *name, *text;
} bugs[] = {{"none", NULL},
#define X(sym, text) {#sym, #sym ", " text},
	INC_SEEDED_BUGS(X)
#undef X
};

int mc_seed(const char *name)
{
	for (unsigned i = 0; i < INC_N_BUGS; i++)
		if (strcmp(name, bugs[i].name) == 0) {
			inc_seeded_bug = (enum inc_seeded_bug)i;
			return 0;
		}
	return -EINVAL;
}

const char *mc_seeded(void)
{
	return bugs[inc_seeded_bug].text;
}

#else

int mc_seed(const char *name)
{
	return strcmp(name, "none") == 0 ? 0 : -EINVAL;
}

const char *mc_seeded(void)
{
	return NULL;
}

#endif
