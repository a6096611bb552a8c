/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-manager --check refuses what a start refuses, naming the field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctrl/manager/serve.h"
#include "lib/ctl/manager_schema.h"

static json_t *config(void)
{
	struct ctl_problem p;
	json_t *c = json_loads(
		"{\"store\":\"memory\",\"switches\":[{\"name\":\"s\",\"control\":\"/tmp/"
		"s\",\"ip\":\"10.2.0.1\"}],"
		"\"hosts\":[{\"name\":\"a\",\"ip\":\"10.1.0.1\"},{\"name\":\"b\",\"ip\":\"10.1.0."
		"2\"}],"
		"\"links\":[{\"a\":\"s\",\"a_port\":\"p0\",\"b\":\"a\"},"
		"{\"a\":\"s\",\"a_port\":\"p1\",\"b\":\"b\"}]}",
		0, NULL);

	assert_non_null(c);
	assert_int_equal(ctl_check_value(&ctl_manager_config, c, "", &p), 0);
	return c;
}

static void test_good(void **state)
{
	char err[MANAGER_ERR_LEN];
	json_t *c = config();

	(void)state;
	json_object_set_new(c, "listen_tcp", json_string("127.0.0.1:7471"));
	assert_int_equal(manager_check(c, err), 0);
	/* A host with two links has two ports. */
	json_array_append_new(
		json_object_get(c, "links"), json_pack("{s:s,s:s,s:s,s:s}", "a", "s", "a_port",
						     "p2", "b", "a", "b_port", "nic1"));
	assert_int_equal(manager_check(c, err), 0);
	json_decref(c);
}

/* In list (NULL: at the top), the field of item i becomes value. */
static const struct bad {
	const char *list;
	size_t i;
	const char *field, *value, *says;
} bad[] = {
	{NULL, 0, "store", "etcd:127.0.0.1:2379", "store: etcd: must be etcd:http://HOST:PORT"},
	{NULL, 0, "store_tls", "/nowhere",
		"store_tls: is for an etcd whose members are all at https://"},
	{NULL, 0, "listen_tcp", "127.0.0.1", "listen_tcp: must be ADDRESS:PORT"},
	{NULL, 0, "listen_tcp", "0.0.0.0:7471", "listen_tcp: must be an address of this machine"},
	{"switches", 0, "control", "tcp:nowhere", "switches[0].control: tcp:nowhere: must be"},
	{"switches", 0, "ip", "10.2.0", "switches[0].ip: is not an IP address"},
	{"hosts", 1, "ip", "10.1.0.1", "hosts[1].ip: is used twice"},
	{"hosts", 1, "name", "a", "hosts[1].name: is used twice"},
	{"links", 1, "b", "c", "links[1].b: is neither a switch nor a host"},
	{"links", 1, "b", "a", "links[1].b_port: nic of a has a link already: links[0]"},
	{"links", 1, "a_port", "p0", "links[1].a_port: p0 of s has a link already: links[0]"},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char err[MANAGER_ERR_LEN] = "";
		json_t *c = config(), *at = c;

		if (bad[i].list)
			at = json_array_get(json_object_get(c, bad[i].list), bad[i].i);
		json_object_set_new(at, bad[i].field, json_string(bad[i].value));
		if (!manager_check(c, err))
			fail_msg("%s = %s was accepted", bad[i].field, bad[i].value);
		if (!strstr(err, bad[i].says))
			fail_msg("\"%s\" lacks \"%s\"", err, bad[i].says);
		json_decref(c);
	}
}

/* Lists may be left out where the rest is heard. */
static void test_discover(void **state)
{
	char err[MANAGER_ERR_LEN] = "";
	json_t *c = config();

	(void)state;
	json_object_del(c, "links");
	assert_int_not_equal(manager_check(c, err), 0);
	assert_string_equal(
		err, "links: is missing: without \"discover\" the file is all there is");
	json_object_set_new(c, "discover", json_true());
	assert_int_equal(manager_check(c, err), 0);
	json_decref(c);
}

/* Found out at the start, not by who waits for an answer of etcd. */
static void test_store_tls(void **state)
{
	static const char *const stores[][2] = {
		{"etcd:https://h:1,http://h:2", "store_tls: is for an etcd whose members"},
		{"etcd:https://h:1/fab", "store_tls: /nowhere/ca.pem: no CA's certificate there"}};
	char err[MANAGER_ERR_LEN];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		json_t *c = config();

		json_object_set_new(c, "store", json_string(stores[i][0]));
		assert_int_equal(manager_check(c, err), 0);
		json_object_set_new(c, "store_tls", json_string("/nowhere"));
		assert_int_not_equal(manager_check(c, err), 0);
		if (!strstr(err, stores[i][1]))
			fail_msg("\"%s\" lacks \"%s\"", err, stores[i][1]);
		json_decref(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad),
		cmocka_unit_test(test_discover), cmocka_unit_test(test_store_tls)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
