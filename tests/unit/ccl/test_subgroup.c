/* SPDX-License-Identifier: BSD-3-Clause */
/* What a sub-communicator has of its group file. The tree that is left for it, and its name: the
 * programs of tests/integration (mpi_network.py, nccl_network.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/ccl/group.h"
#include "lib/ccl/subgroup.h"

#define FILE_OF(algorithm)                                                                      \
	"{\"name\": \"job\", \"bootstrap\": \"unix:/tmp/job\", \"manager\": \"/m\", " algorithm \
	"\"multicast\": {\"group\": \"239.1.1.1\", \"chains\": 2}, \"ranks\": [{\"ip\": "       \
	"\"10.0.0.1\"}, {\"ip\": \"10.0.0.2\"}, {\"ip\": \"10.0.0.3\"}, {\"ip\": \"10.0.0.4\"}]}"

static char *part_of(const char *file, int n, bool multicast, char why[CCL_ERR_LEN])
{
	const struct ccl_part part[] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
	char path[] = "/tmp/subgroup-XXXXXX", *text;
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%s", file) > 0);
	close(fd);
	text = ccl_subgroup(&(struct ccl_subgroup){.path = path,
				    .suffix = "0.1",
				    .alone = "alone",
				    .bootstrap = "unix:/tmp/part",
				    .multicast = multicast},
		part, n, why);
	unlink(path);
	return text;
}

static bool has_multicast(const char *file, int n, bool multicast)
{
	char why[CCL_ERR_LEN] = "", *text = part_of(file, n, multicast, why);
	struct ccl_group *group;
	bool has;

	assert_string_equal("", why);
	assert_int_equal(0, ccl_group_load_text(text, &group, why));
	has = group->mcast.given;
	ccl_group_free(group);
	free(text);
	return has;
}

/* Its address is for one communicator: what is sent there comes to the members of all. */
static void multicast(void **state)
{
	char why[CCL_ERR_LEN];

	(void)state;
	assert_true(has_multicast(FILE_OF(""), 4, true));
	assert_false(has_multicast(FILE_OF(""), 4, false));
	assert_false(has_multicast(FILE_OF(""), 3, false)); /* nor do chains matter then */
	assert_true(has_multicast(FILE_OF("\"algorithm\": \"multicast\", "), 4, true));
	assert_null(part_of(FILE_OF("\"algorithm\": \"multicast\", "), 4, false, why));
	assert_string_equal(
		"algorithm: multicast, but multicast.group is another communicator's", why);
}

static unsigned rings_of(int n)
{
	static const char file[] =
		"{\"name\": \"job\", \"bootstrap\": \"unix:/tmp/job\", \"mode\": \"netreduce\", "
		"\"rings\": 2, \"ranks\": [{\"ip\": \"10.0.0.1\"}, {\"ip\": \"10.0.0.2\"}, "
		"{\"ip\": \"10.0.0.3\"}, {\"ip\": \"10.0.0.4\"}], \"switches\": [{\"name\": \"s\", "
		"\"socket\": \"/s\", \"ip\": \"10.0.1.1\", \"children\": [{\"rank\": 0, \"port\": "
		"\"a\"}, {\"rank\": 1, \"port\": \"b\"}, {\"rank\": 2, \"port\": \"c\"}, "
		"{\"rank\": "
		"3, \"port\": \"d\"}]}]}";
	char why[CCL_ERR_LEN] = "", *text = part_of(file, n, false, why);
	struct ccl_group *group;
	unsigned rings;

	assert_string_equal("", why);
	assert_int_equal(0, ccl_group_load_text(text, &group, why));
	rings = group->rings;
	ccl_group_free(group);
	free(text);
	return rings;
}

/* Nodes are those of all ranks. */
static void rings(void **state)
{
	(void)state;
	assert_int_equal(2, rings_of(4));
	assert_int_equal(1, rings_of(3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(multicast), cmocka_unit_test(rings)};

	return cmocka_run_group_tests_name("subgroups", tests, NULL, NULL);
}
