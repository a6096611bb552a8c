/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank a process is, from what its launcher has set. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/ccl/group.h"

static const char THREE[] =
	"{\"name\": \"a\", \"bootstrap\": \"unix:/b\", \"manager\": \"/m\", \"ranks\": ["
	"{\"ip\": \"10.0.0.1\"}, {\"ip\": \"10.0.0.2\"}, {\"ip\": \"10.0.0.3\"}]}";

static const char *const variables[] = {"INCLINE_RANK", "OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "RANK", "WORLD_SIZE",
	"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};

/* "OMPI_COMM_WORLD_RANK=1 PMIX_RANK=1", and what comes of it in a group of three. */
static void launched_as(const char *env, int want, unsigned rank, unsigned size, const char *why)
{
	char copy[256], err[CCL_ERR_LEN] = "", *next = copy, *pair;
	unsigned is = 77, n = 77;
	struct ccl_group *g;

	for (unsigned i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	snprintf(copy, sizeof(copy), "%s", env);
	while ((pair = strsep(&next, " ")) && *pair) {
		char *value = strchr(pair, '=');

		*value = '\0';
		setenv(pair, value + 1, 1);
	}
	assert_int_equal(ccl_group_load_text(THREE, &g, err), 0);
	assert_int_equal(ccl_launched(g, &is, &n, err), want);
	assert_int_equal(is, want ? 77 : rank);
	assert_int_equal(n, want ? 77 : size);
	if (want && !strstr(err, why))
		fail_msg("\"%s\" does not say \"%s\"", err, why);
	ccl_group_free(g);
}

static void launchers(void **state)
{
	(void)state;
	launched_as("", -ENOENT, 0, 0, "set INCLINE_RANK");
	launched_as("INCLINE_RANK=1", 0, 1, 0, "");
	launched_as("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 PMIX_RANK=1", 0, 1, 3, "");
	launched_as("PMI_RANK=2 PMI_SIZE=3", 0, 2, 3, "");
	launched_as("PMIX_RANK=2", 0, 2, 0, "");
	launched_as("RANK=2 WORLD_SIZE=3", 0, 2, 3, "");
	launched_as("SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=3", 0, 2, 3, "");
	/* RANK is anybody's word, and a batch script has SLURM_PROCID. */
	launched_as("RANK=2", -ENOENT, 0, 0, "set INCLINE_RANK");
	launched_as("SLURM_PROCID=0", -ENOENT, 0, 0, "set INCLINE_RANK");
	/* What srun has started may start others. */
	launched_as("PMI_RANK=2 PMI_SIZE=3 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", 0, 2, 3, "");
	/* Who sets it means it. */
	launched_as("INCLINE_RANK=0 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=9", 0, 0, 0, "");

	launched_as("INCLINE_RANK=one", -EINVAL, 0, 0, "INCLINE_RANK: \"one\"");
	launched_as("INCLINE_RANK=", -EINVAL, 0, 0, "INCLINE_RANK: \"\"");
	launched_as(
		"INCLINE_RANK=3", -EINVAL, 0, 0, "INCLINE_RANK=3, and the group has ranks 0 to 2");
	launched_as("PMI_RANK=-1 PMI_SIZE=3", -EINVAL, 0, 0, "PMI_RANK: \"-1\"");
	launched_as("PMI_RANK=1", -EINVAL, 0, 0, "PMI_RANK is set and PMI_SIZE is not");
	launched_as("PMI_RANK=3 PMI_SIZE=3", -EINVAL, 0, 0, "PMI_RANK=3, and PMI_SIZE=3");
	launched_as(
		"PMI_RANK=1 PMI_SIZE=2", -EINVAL, 0, 0, "PMI_SIZE=2 (PMI), and the group has 3");
	launched_as("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 PMIX_RANK=2", -EINVAL, 0, 0,
		"OMPI_COMM_WORLD_RANK=1 (Open MPI) and PMIX_RANK=2 (PMIx) disagree");
	launched_as("PMI_RANK=1 PMI_SIZE=3 RANK=1 WORLD_SIZE=4", -EINVAL, 0, 0,
		"PMI_SIZE=3 (PMI) and WORLD_SIZE=4 (torchrun) disagree");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(launchers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
