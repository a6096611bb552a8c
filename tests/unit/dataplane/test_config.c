/* SPDX-License-Identifier: BSD-3-Clause */
/* Configurations: what is refused and how it is said; the shipped ones are all right. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "tests/unit/shipped.h"

static void refused(void **state)
{
	static const struct {
		const char *json, *err;
	} cases[] = {
		{"{}", "ports: is missing"},
		{"{'ports':[]}", "ports: must have 1..64 items, has 0"},
		{"{'ports':{}}", "ports: must be list of objects, not an object"},
		{"{'ports':[5]}", "ports[0]: must be object, not an integer"},
		{"{'port':[]}", "port: is not a known field, \"ports\" is"},
		{"{'ports':[{'name':'a','type':'null'}],'nome':1}",
			"nome: is not a known field, \"name\" is"},
		{"{'ports':[{'name':'a','type':'null','x':1}]}",
			"ports[0].x: is not a known field for type null"},
		{"{'ports':[{'name':'a','type':'null'},{'name':'a','type':'null'}]}",
			"ports[1].name: \"a\" is the name of ports[0] too"},
		{"{'ports':[{'name':'a','type':'null'},{'name':'b','type':'nil'}]}",
			"ports[1].type: \"nil\" must be memif, "},
		{"{'ports':[{'name':'a','type':'null','proxy_arp':1}]}",
			"ports[0].proxy_arp: must be boolean"},
		{"{'ports':[{'name':'a','type':'null','impair':{'lost':1}}]}",
			"ports[0].impair.lost: is not a known field, \"loss\" is"},
		{"{'ports':[{'name':'a','type':'null','impair':{'loss':1.5}}]}",
			"ports[0].impair.loss: 1.5 is not in 0..1"},
		{"{'ports':[{'name':'a','type':'null','impair':{'dup':'x'}}]}",
			"ports[0].impair.dup: must be number, not a string"},
		{"{'ports':[{'name':'a','type':'null','impair':{'seed':-1}}]}",
			"ports[0].impair.seed: -1 is not in 0.."},
		{"{'ports':[{'name':'a','type':'null','impair':{'lose':{}}}]}",
			"ports[0].impair.lose: must be list of objects"},
		{"{'ports':[{'name':'a','type':'null','impair':{'lose':[{'opcode':1}]}}]}",
			"ports[0].impair.lose[0].loss: is missing"},
		{"{'ports':[{'name':'a','type':'null','impair':{'lose':[{'opcode':256,'loss':1}]}}"
		 "]}",
			"ports[0].impair.lose[0].opcode: 256 is not in 0..255"},
		{"{'ports':[{'name':'a','type':'null','impair':{'lose':[{'opcode':1,'loss':2}]}}]"
		 "}",
			"ports[0].impair.lose[0].loss: 2 is not in 0..1"},
		{"{'ports':[{'name':'a','type':'null','queue':{'data':1}}]}",
			"ports[0].queue.data: is not a known field"},
		{"{'ports':[{'name':'a','type':'null','queue':{'mark_min_kb':2,'mark_max_kb':1}}]}",
			"ports[0].queue.mark_min_kb: is more than mark_max_kb"},
		{"{'ports':[{'name':'a','type':'null','queue':{'trim_bytes':63}}]}",
			"ports[0].queue.trim_bytes: 63 is neither 0 nor at least 64"},
		{"{'ports':[{'name':'a','type':'null'}],'dscp':{'control':[46,64]}}",
			"dscp.control[1]: 64 is not in 0..63"},
		{"{'ports':[{'name':'a','type':'null'}],'dscp':{'trimmable':[-1]}}",
			"dscp.trimmable[0]: -1 is not in 0..63"},
		{"{'ports':[{'name':'a','type':'null','impair':[]}]}",
			"ports[0].impair: must be object, not a list"},
		{"{'ports':[{'name':'a','type':'null'}],'addresses':'10.0.0.1'}",
			"addresses: must be list of strings, not a string"},
		{"{'ports':[{'name':'a','type':'null'}],'addresses':['10.0.0.1','x']}",
			"addresses[1]: \"x\" is not an IPv4 or IPv6 address"},
		{"{'ports':[{'name':'a','type':'null'}],'addresses':['10.0.0.1','10.0.0.1']}",
			"addresses[1]: 10.0.0.1 is there twice"},
		{"{'ports':[{'name':'a','type':'null'}],'idle':'doze'}",
			"idle: \"doze\" must be spin or pause or sleep"},
		{"{'ports':[{'name':'a','type':'null'}],'arena_kb':3}",
			"arena_kb: 3 is not in 4..1048576"},
		{"{'ports':[{'name':'a','type':'null'}],'memory_mb':'big'}",
			"memory_mb: must be integer 64..1048576, not a string"},
		{"{'ports':[{'name':'a','type':'null'}],'stall_ms':0}",
			"stall_ms: 0 is not in 1..3600000"},
		{"{'ports':[{'name':'a','type':'null'}],'hugepages':1}",
			"hugepages: must be boolean"},
		{"{'ports':[{'name':'a','type':'null'}],'name':''}",
			"name: must have 1..31 bytes, has 0"},
		{"{'ports':[{'name':'a','type':'null'}],'lcores':7}",
			"lcores: must be string, not an integer"},
		{"{'ports':[{'name':'a','type':'memif','socket':'/s'},"
		 "{'name':'b','type':'memif','socket':'/s','role':'server'}]}",
			"ports[1].id: 0 is ports[0]'s at this socket"},
		{"{'ports':[{'name':'a','type':'vhost','socket':'/s'},"
		 "{'name':'b','type':'memif','socket':'/s'}]}",
			"ports[1].socket: is that of ports[0] too"},
		{"{'ports':[{'name':'a','type':'null','bridge':[4095]}]}",
			"ports[0].bridge[0]: 4095 is not in 0..4094"},
		{"{'ports':[{'name':'a','type':'null','bridge':[1,-1]}]}",
			"ports[0].bridge[1]: -1 is not in 0..4094"},
		{"{'ports':[{'name':'a','type':'null','bridge':[3,3]}]}",
			"ports[0].bridge[1]: 3 is there twice"},
		{"{'ports':[{'name':'a','type':'null','bridge':[]}]}",
			"ports[0].bridge: must have 1..64 items, has 0"},
		{"{'ports':[{'name':'a','type':'null','bridge':[0],'proxy_arp':true}]}",
			"ports[0].proxy_arp: not at a port of a bridge, where hosts answer for "
			"themselves"},
		{"{'ports':[{'name':'a','type':'null','flood_pps':0}]}",
			"ports[0].flood_pps: 0 is not in 1..100000000"},
		{"{'ports':[{'name':'a','type':'null'}],'mac_age_s':9}",
			"mac_age_s: 9 is not in 10..86400"},
		{"{'ports':[{'name':'a','type':'null'}],'workers':'many'}",
			"workers: \"many\" must be integer 1..16 or \"auto\""},
		{"{'ports':[{'name':'a','type':'null'}],'workers':'auto','lcores':'0@0,1@1'}",
			"lcores: cannot be set where \"workers\" is auto"},
		{"[]", "must be object, not a list"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *json = h_json(cases[i].json);
		char err[SW_ERR_LEN] = "";
		struct sw_config config;

		assert_int_equal(sw_config_parse(json, &config, err), -EINVAL);
		if (strncmp(err, cases[i].err, strlen(cases[i].err)) != 0)
			fail_msg("%s: \"%s\", not \"%s\"", cases[i].json, err, cases[i].err);
		json_decref(json);
	}
}

static void too_many_ports(void **state)
{
	json_t *json = h_json("{'ports':[]}"), *ports = json_object_get(json, "ports");
	char err[SW_ERR_LEN] = "", name[16];
	struct sw_config config;

	(void)state;
	for (unsigned i = 0; i < RTE_MAX_ETHPORTS + 1; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		json_array_append_new(ports, json_pack("{ssss}", "name", name, "type", "null"));
	}
	assert_int_equal(sw_config_parse(json, &config, err), -EINVAL);
	json_array_remove(ports, 0);
	assert_int_equal(sw_config_parse(json, &config, err), 0);
	assert_int_equal(config.n_ports, RTE_MAX_ETHPORTS);
	sw_config_free(&config);
	json_decref(json);
}

static void defaults(void **state)
{
	json_t *json = h_json("{'#':'comment','ports':[{'name':'a','type':'null','# x':1}]}");
	char err[SW_ERR_LEN] = "";
	struct sw_config c;

	(void)state;
	assert_int_equal(sw_config_parse(json, &c, err), 0);
	assert_string_equal(c.name, "incline");
	assert_int_equal(c.arena_bytes, 4096 << 10);
	assert_int_equal(c.idle, PORT_IDLE_SLEEP);
	assert_int_equal(c.memory_mb, 256);
	assert_int_equal(c.slot_rest_ns, 10000000000);
	assert_int_equal(c.drain_ns, 2000000000);
	assert_int_equal(c.stall_ns, 30000000000);
	assert_false(c.ports[0].proxy_arp);
	assert_false(c.ports[0].impaired || c.hugepages || c.pci || c.telemetry);
	sw_config_free(&c);
	json_decref(json);
}

static bool untold; /* the kernel has more CPUs than there is room for */

int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	if (!untold)
		return __real_sched_getaffinity(pid, size, set);
	errno = EINVAL;
	return -1;
}

/* Only who asks for CPUs is refused where they cannot be told. */
static void workers_untold(void **state)
{
	json_t *json = h_json("{'workers':2,'lcores':'0@0,1@1,2@0','ports':[{'name':'a',"
			      "'type':'null'}]}");
	char err[SW_ERR_LEN] = "";
	struct sw_config c;
	int node = 7, rc;

	(void)state;
	assert_int_equal(sw_config_parse(json, &c, err), 0);
	untold = true;
	rc = sw_workers_find(&c, &node, err);
	untold = false;
	assert_int_equal(rc, 0);
	assert_int_equal(node, -1);
	assert_int_equal(c.workers, 2);
	assert_string_equal(c.lcores, "0@0,1@1,2@0");
	c.workers = 0;
	untold = true;
	rc = sw_workers_find(&c, &node, err);
	untold = false;
	assert_int_equal(rc, -EINVAL);
	assert_string_equal(err, "workers: cannot tell the CPUs: Invalid argument");
	sw_config_free(&c);
	json_decref(json);
}

/* What the machine decides is decided before anything is opened, and what was set stays. */
static void workers_auto(void **state)
{
	json_t *json = h_json("{'workers':'auto','ports':[{'name':'a','type':'null'}]}");
	char err[SW_ERR_LEN] = "";
	struct sw_config c;
	int node = 7;

	(void)state;
	assert_int_equal(sw_config_parse(json, &c, err), 0);
	assert_int_equal(c.workers, 0);
	assert_int_equal(sw_workers_find(&c, &node, err), 0);
	assert_in_range(c.workers, 1, WORKER_MAX);
	assert_int_equal(node, -1);
	assert_true(c.workers == 1 || c.lcores[0] != '\0');
	c.workers = 3;
	c.lcores[0] = '\0';
	assert_int_equal(sw_workers_find(&c, &node, err), 0);
	assert_int_equal(c.workers, 3);
	assert_string_equal(c.lcores, "");
	sw_config_free(&c);
	json_decref(json);
}

static void memifs_of_one_socket(void **state)
{
	json_t *json = h_json("{'ports':[{'name':'a','type':'memif','socket':'/s','id':1},"
			      "{'name':'b','type':'memif','socket':'/s','id':2}]}");
	char err[SW_ERR_LEN] = "";
	struct sw_config config;

	(void)state;
	assert_int_equal(sw_config_parse(json, &config, err), 0);
	sw_config_free(&config);
	json_decref(json);
}

static void check_shipped(const char *file, const json_t *json)
{
	char err[SW_ERR_LEN] = "";
	struct sw_config config;

	if (strncmp(file, "rnic-", 5) == 0)
		return;
	if (sw_config_parse(json, &config, err) != 0)
		fail_msg("%s: %s", file, err);
	assert_true(config.n_addresses > 0);
	sw_config_free(&config);
}

static void shipped(void **state)
{
	(void)state;
	shipped_configs(check_shipped);
}

/* A switch that cannot be made says why, and leaves nothing behind that keeps the next from it. */
static void cannot_open(void **state)
{
	static const struct {
		const char *json, *err;
	} cases[] = {
		{"{'ports':[{'name':'a','type':'null'},{'name':'b','type':'ring','peer':'c'}]}",
			"port b: peer: no ring port \"c\""},
		{"{'ports':[{'name':'a','type':'null'}],'arena_kb':1000000}",
			"arena_kb: no memory"},
		{"{'ports':[{'name':'a','type':'pcap','rx':'/nonexistent/x.pcap'}]}", "port a: "},
		{"{'ports':[{'name':'a','type':'pci','address':'0000:00:1f.6'}]}",
			"port a: the program was started without PCI"},
		{"{'ports':[{'name':'a','type':'ring','rxd':16384,'txd':16384},"
		 "{'name':'b','type':'ring','rxd':16384,'txd':16384}]}",
			"no memory for 69760 packet buffers"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *json = h_json(cases[i].json);
		char err[SW_ERR_LEN] = "";
		struct sw *sw;

		assert_true(switch_create(json, true, &sw, err) < 0);
		if (strncmp(err, cases[i].err, strlen(cases[i].err)) != 0)
			fail_msg("%s: \"%s\", not \"%s\"", cases[i].json, err, cases[i].err);
		json_decref(json);
		h_stop(h_start(2, NULL, NULL));
	}
}

static void as_given(void **state)
{
	struct sw *sw = h_start(1, "{'name':'x','control':'/c','tables':{}}", NULL);
	json_t *config = sw_config_json(sw);

	(void)state;
	assert_string_equal(sw_name(sw), "x");
	assert_string_equal(json_string_value(json_object_get(config, "control")), "/c");
	assert_null(json_object_get(config, "tables"));
	json_decref(config);
	h_stop(sw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(too_many_ports),
		cmocka_unit_test(defaults),
		cmocka_unit_test(workers_auto),
		cmocka_unit_test(workers_untold),
		cmocka_unit_test(memifs_of_one_socket),
		cmocka_unit_test(shipped),
		cmocka_unit_test(cannot_open),
		cmocka_unit_test(as_given),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
