/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank a process is, by the variables that launchers set. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/ccl/group.h"

struct launcher {
	const char *name, *rank, *size; /* size NULL: it has none */
	bool outer; /* starts other launchers, whose processes inherit its variables */
	bool loose; /* the rank alone does not mean it */
};

static const struct launcher launchers[] = {
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false, false},
	{"PMI", "PMI_RANK", "PMI_SIZE", false, false},
	{"PMIx", "PMIX_RANK", NULL, false, false},
	{"torchrun", "RANK", "WORLD_SIZE", false, true},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", true, true},
};
enum { N_LAUNCHERS = sizeof(launchers) / sizeof(launchers[0]), MOST = 1 << 20 };

struct found {
	const struct launcher *by;
	long rank, size;
};

static int number(const char *name, long *value, char *err)
{
	const char *text = getenv(name);
	char *end;

	if (!text)
		return -ENOENT;
	errno = 0;
	*value = strtol(text, &end, 10);
	if (end != text && !*end && !errno && *value >= 0 && *value <= MOST)
		return 0;
	snprintf(err, CCL_ERR_LEN, "%s: \"%.64s\" is not a number from 0 to %d", name, text, MOST);
	return -EINVAL;
}

/* -ENOENT: it has not started this process. */
static int look(const struct launcher *l, struct found *f, char *err)
{
	int rc, rc2;

	if (l->loose && !getenv(l->size))
		return -ENOENT;
	rc = number(l->rank, &f->rank, err);
	f->by = l;
	f->size = 0;
	if (rc || !l->size)
		return rc;
	rc2 = number(l->size, &f->size, err);
	if (rc2 == -ENOENT) {
		snprintf(err, CCL_ERR_LEN, "%s is set and %s is not", l->rank, l->size);
		return -EINVAL;
	}
	if (!rc2 && f->rank >= f->size) {
		snprintf(
			err, CCL_ERR_LEN, "%s=%ld, and %s=%ld", l->rank, f->rank, l->size, f->size);
		return -EINVAL;
	}
	return rc2;
}

static int disagree(const struct found *a, const struct found *b, char *err)
{
	const bool rank = a->rank != b->rank;

	snprintf(err, CCL_ERR_LEN, "%s=%ld (%s) and %s=%ld (%s) disagree: set INCLINE_RANK",
		rank ? a->by->rank : a->by->size, rank ? a->rank : a->size, a->by->name,
		rank ? b->by->rank : b->by->size, rank ? b->rank : b->size, b->by->name);
	return -EINVAL;
}

/* The launcher next to the process. */
static int find(struct found *is, char *err)
{
	for (unsigned i = 0; i < N_LAUNCHERS; i++) {
		struct found f;
		const int rc =
			is->by && launchers[i].outer ? -ENOENT : look(&launchers[i], &f, err);

		if (rc == -ENOENT)
			continue;
		if (rc)
			return rc;
		if (is->by && (is->rank != f.rank || (is->size && f.size && is->size != f.size)))
			return disagree(is, &f, err);
		if (!is->by || !is->size)
			*is = f;
	}
	return is->by ? 0 : -ENOENT;
}

int ccl_launched(
	const struct ccl_group *group, unsigned *rank, unsigned *size, char err[CCL_ERR_LEN])
{
	struct found is = {0};
	int rc = number("INCLINE_RANK", &is.rank, err);

	if (rc == -ENOENT)
		rc = find(&is, err);
	if (rc == -ENOENT)
		snprintf(err, CCL_ERR_LEN, "no launcher says which rank this is: set INCLINE_RANK");
	if (rc)
		return rc;
	if (group && is.size && is.size != (long)group->n_ranks) {
		snprintf(err, CCL_ERR_LEN, "%s=%ld (%s), and the group has %u ranks", is.by->size,
			is.size, is.by->name, group->n_ranks);
		return -EINVAL;
	}
	if (group && is.rank >= (long)group->n_ranks) {
		snprintf(err, CCL_ERR_LEN, "%s=%ld, and the group has ranks 0 to %u",
			is.by ? is.by->rank : "INCLINE_RANK", is.rank, group->n_ranks - 1);
		return -EINVAL;
	}
	*rank = (unsigned)is.rank;
	*size = (unsigned)is.size;
	return 0;
}
