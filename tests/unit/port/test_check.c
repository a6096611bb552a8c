/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/port/config.h"

static char dir[] = "/tmp/check-test-XXXXXX";

static int check(json_t *json, char err[PORT_ERR_LEN])
{
	struct port_config config;

	assert_non_null(json);
	assert_int_equal(port_config_parse(json, &config, err), 0);
	json_decref(json);
	return port_check(&config, err);
}

static void refused(json_t *json, int rc, const char *text)
{
	char err[PORT_ERR_LEN] = "";

	assert_int_equal(check(json, err), rc);
	if (strncmp(err, text, strlen(text)) != 0)
		fail_msg("\"%s\", not \"%s\"", err, text);
}

static json_t *memif(const char *socket)
{
	return json_pack(
		"{ss ss ss ss}", "name", "m", "type", "memif", "role", "server", "socket", socket);
}

static void things_that_are_missing(void **state)
{
	(void)state;
	refused(memif("/no/such/dir/s.sock"), -ENOENT,
		"socket: there is no directory /no/such/dir");
	refused(json_pack("{ssssss}", "name", "a", "type", "af_packet", "iface", "no-such-if"),
		-ENODEV, "iface: there is no interface no-such-if");
	refused(json_pack("{ssssss}", "name", "a", "type", "pci", "address", "ffff:ff:1f.7"),
		-ENODEV, "address: there is no PCI device ffff:ff:1f.7");
	refused(json_pack(
			"{sssssssi}", "name", "a", "type", "af_packet", "iface", "lo", "mtu", 576),
		0, "");
}

static void nothing_is_left(void **state)
{
	char path[64], err[PORT_ERR_LEN] = "";
	DIR *d;
	unsigned n = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s.sock", dir);
	assert_int_equal(check(memif(path), err), 0);
	d = opendir(dir);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	assert_int_equal(n, 2); /* . and .. */
	assert_int_equal(rmdir(dir), 0);
}

static void unplugged(void **state)
{
	struct port_config config;
	char err[PORT_ERR_LEN] = "";
	json_t *json = memif("/tmp/x");

	(void)state;
	assert_int_equal(port_config_parse(json, &config, err), 0);
	json_decref(json);
	port_config_unplug(&config);
	assert_string_equal(config.vdev, "net_null_m,no-rx=1");
	assert_string_equal(config.socket, "");
	assert_string_equal(config.name, "m");
	assert_int_equal(config.mtu, 4200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(things_that_are_missing),
		cmocka_unit_test(nothing_is_left),
		cmocka_unit_test(unplugged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
