/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that operators and schedulers write: group files, switch configurations, port objects. Any
 * JSON text is taken or refused with a reason; nothing is opened. */
#include <errno.h>
#include <string.h>

#include "ctrl/config/switch_config.h"
#include "lib/ccl/group.h"
#include "lib/port/config.h"
#include "tests/fuzz/fuzz.h"

static void refused(int rc, const char *err, size_t cap)
{
	fuzz_check(rc < 0, "a refusal is an error");
	fuzz_check(memchr(err, '\0', cap) != NULL, "the reason ends");
	fuzz_check(rc == -ENOMEM || err[0] != '\0', "there is a reason");
}

static void group_file(const json_t *json)
{
	char err[CCL_ERR_LEN] = "";
	struct ccl_group *group = NULL;
	int rc = ccl_group_parse(json, &group, err);

	if (rc != 0) {
		refused(rc, err, sizeof(err));
		fuzz_check(group == NULL, "nothing is left of a file refused");
		return;
	}
	fuzz_check(group->n_ranks > 0 && group->root < group->n_switches, "a group has a tree");
	for (unsigned r = 0; r < group->n_ranks; r++)
		fuzz_check(ccl_group_first_hop(group, r) < group->n_switches,
			"every rank is on a switch");
	ccl_group_free(group);
}

static void switch_file(const json_t *json)
{
	char err[SW_ERR_LEN] = "";
	struct sw_config config = {0};
	int rc = sw_config_parse(json, &config, err);

	if (rc != 0) {
		refused(rc, err, sizeof(err));
		return;
	}
	fuzz_check(config.n_ports > 0 && config.n_ports <= SW_MAX_PORTS, "a switch has ports");
	sw_config_free(&config);
}

static void port_object(const json_t *json)
{
	char err[PORT_ERR_LEN] = "";
	struct port_config config;
	int rc = port_config_parse(json, &config, err);

	if (rc != 0)
		refused(rc, err, sizeof(err));
	else
		fuzz_check(
			config.name[0] != '\0' && config.mtu > 0, "a port has a name and an MTU");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *json;

	json_object_seed(1);
	json = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
	if (!json)
		return 0;
	group_file(json);
	switch_file(json);
	port_object(json);
	json_decref(json);
	return 0;
}

static const char *const seeds[] = {
	"{\"name\":\"g\",\"bootstrap\":\"unix:/tmp/"
	"b\",\"mode\":\"II\",\"kind\":\"mixed\",\"mtu\":1024,"
	"\"M\":4,\"W\":8,\"timeout_ms\":1000,\"flags\":{\"reproducible\":true},\"ranks\":["
	"{\"ip\":\"10.0.0.1\"},{\"ip\":\"10.0.0.2\"},{\"ip\":\"fd00::3\"}],\"switches\":["
	"{\"name\":\"s\",\"socket\":\"/s\",\"ip\":\"10.0.0.9\",\"parent\":null,\"children\":["
	"{\"switch\":\"l\",\"port\":\"p\"},{\"rank\":2,\"port\":\"q\"}]},"
	"{\"name\":\"l\",\"socket\":\"/l\",\"ip\":\"10.0.0.8\",\"parent\":\"s\","
	"\"parent_port\":\"u\",\"children\":[{\"rank\":0,\"port\":\"a\"},{\"rank\":1,\"port\":"
	"\"b\"}]}]}",
	"{\"name\":\"s\",\"addresses\":[\"10.0.0.1\",\"fd00::1\"],\"control\":\"/"
	"c\",\"idle\":\"sleep\","
	"\"arena_kb\":64,\"slot_rest_ms\":1,\"tables\":{\"neigh\":[]},\"ports\":["
	"{\"name\":\"a\",\"type\":\"memif\",\"mtu\":4200,\"mac\":\"02:00:00:00:00:01\",\"role\":"
	"\"server\",\"socket\":\"/x\",\"proxy_arp\":true,\"impair\":{\"loss\":0.1,\"dup\":0.1,"
	"\"reorder\":0.1,\"seed\":3}},{\"name\":\"b\",\"type\":\"tap\",\"iface\":\"t0\"}]}",
	"{\"name\":\"a\",\"type\":\"ring\",\"mtu\":1500,\"rxd\":256,\"txd\":256}",
	"{\"name\":\"a\",\"type\":\"pci\",\"address\":\"0000:3b:00.0\",\"args\":\"x=1\"}",
	"{\"name\":\"a\",\"type\":\"vhost\",\"socket\":\"/v\",\"queues\":1}",
};

size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	size_t len = i < sizeof(seeds) / sizeof(seeds[0]) ? strlen(seeds[i]) : 0;

	if (len > cap)
		return 0;
	memcpy(out, seeds[i < 5 ? i : 0], len);
	return len;
}
