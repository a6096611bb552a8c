/* SPDX-License-Identifier: BSD-3-Clause */
/* A device of the kernel's, as sysfs has it, whose address is the loopback interface's: the
 * kernel's own lists say what it is a member of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/ccl/gid.h"
#include "lib/ccl/member.h"

static struct ibv_device device;
static const char *const folders[] = {"ports", "ports/1", "ports/1/gid_attrs",
	"ports/1/gid_attrs/ndevs", "ports/1/gid_attrs/types"};
static const struct {
	const char *name, *text;
} files[] = {{"ports/1/gid_attrs/ndevs/2", "lo\n"}, {"ports/1/gid_attrs/ndevs/3", "no-such0\n"},
	{"ports/1/gid_attrs/types/2", "RoCE v2\n"}, {"ports/1/gid_attrs/types/3", "IB/RoCE v1\n"}};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void path_of(char *path, size_t len, const char *name)
{
	assert_true((size_t)snprintf(path, len, "%s/%s", device.ibdev_path, name) < len);
}

static int make(void **state)
{
	char path[512];

	(void)state;
	strcpy(device.ibdev_path, "/tmp/incline-member-XXXXXX");
	assert_non_null(mkdtemp(device.ibdev_path));
	for (unsigned i = 0; i < COUNT(folders); i++) {
		path_of(path, sizeof(path), folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	for (unsigned i = 0; i < COUNT(files); i++) {
		FILE *f;

		path_of(path, sizeof(path), files[i].name);
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(files[i].text, f);
		fclose(f);
	}
	return 0;
}

static int take_away(void **state)
{
	char path[512];

	(void)state;
	for (unsigned i = 0; i < COUNT(files); i++) {
		path_of(path, sizeof(path), files[i].name);
		unlink(path);
	}
	for (unsigned i = COUNT(folders); i-- > 0;) {
		path_of(path, sizeof(path), folders[i]);
		rmdir(path);
	}
	return rmdir(device.ibdev_path);
}

static bool says(const char *list, const char *group)
{
	char line[256];
	bool found = false;
	FILE *f = fopen(list, "r");

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, group) != NULL;
	fclose(f);
	return found;
}

static struct wire_ip ip_of(const char *text)
{
	struct wire_ip ip;

	assert_int_equal(wire_ip_parse(text, &ip), 0);
	return ip;
}

static void test_ip4(void **state)
{
	const struct wire_ip one = ip_of("239.129.77.1"), two = ip_of("239.129.77.2");
	int fd = -1;

	(void)state;
	assert_false(says("/proc/net/igmp", "014D81EF") || says("/proc/net/igmp", "024D81EF"));
	assert_int_equal(ccl_member_join(&device, 1, 2, &one, &fd), 0);
	assert_true(fd >= 0 && says("/proc/net/igmp", "014D81EF"));
	assert_int_equal(ccl_member_join(&device, 1, 2, &two, &fd), 0);
	assert_true(says("/proc/net/igmp", "014D81EF") && says("/proc/net/igmp", "024D81EF"));
	close(fd);
	assert_false(says("/proc/net/igmp", "014D81EF") || says("/proc/net/igmp", "024D81EF"));
}

static void test_ip6(void **state)
{
	const struct wire_ip group = ip_of("ff0e::129:77");
	static const char listed[] = "ff0e0000000000000000000001290077";
	int fd = -1;

	(void)state;
	if (access("/proc/net/igmp6", R_OK))
		skip(); /* a kernel without IPv6 */
	assert_int_equal(ccl_member_join(&device, 1, 2, &group, &fd), 0);
	assert_true(says("/proc/net/igmp6", listed));
	close(fd);
	assert_false(says("/proc/net/igmp6", listed));
}

/* A device of somebody else's needs nothing; one whose interface has gone is an error. */
static void test_others(void **state)
{
	const struct wire_ip group = ip_of("239.129.77.3");
	int fd = -1;

	(void)state;
	assert_int_equal(ccl_member_join(&device, 1, 7, &group, &fd), 0);
	assert_int_equal(ccl_member_join(&device, 2, 2, &group, &fd), 0);
	assert_int_not_equal(ccl_member_join(&device, 1, 3, &group, &fd), 0);
	assert_int_equal(fd, -1);
}

static void test_versions(void **state)
{
	(void)state;
	assert_false(ccl_gid_is_roce_v1(&device, 1, 2));
	assert_true(ccl_gid_is_roce_v1(&device, 1, 3));
	assert_false(ccl_gid_is_roce_v1(&device, 1, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ip4),
		cmocka_unit_test(test_ip6),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_versions),
	};

	return cmocka_run_group_tests(tests, make, take_away);
}
