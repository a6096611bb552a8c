/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON file: what is accepted, and that each mistake is named. */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/rnic/dcqcn.h"
#include "lib/verbs/config.h"

static char err[IV_CONFIG_ERR];

static int read_text(const char *text, struct iv_config *config)
{
	char path[] = "/tmp/incline-verbs-XXXXXX";
	int fd = mkstemp(path), ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	memset(err, 0, sizeof(err));
	ret = iv_config_read(path, config, err);
	unlink(path);
	return ret;
}

#define PORT "\"port\":{\"name\":\"p0\",\"type\":\"memif\",\"socket\":\"/tmp/s\"}"
#define MAC "\"mac\":\"02:00:00:00:00:0a\""

#define IWARP "\"ip\":[\"10.0.0.1\"],\"transport\":\"iwarp\""
#define PORT2 "\"port\":{\"name\":\"p1\",\"type\":\"null\"}"
#define MAC2 "\"mac\":\"02:00:00:00:00:0b\""

static void smallest(void **state)
{
	struct iv_config c;

	(void)state;
	assert_int_equal(read_text("{" MAC "," PORT "}", &c), 0);
	assert_string_equal(c.name, "");
	assert_int_equal(c.ports[0].mac[5], 0x0a);
	assert_int_equal(c.ports[0].n_ip, 0);
	assert_int_equal(c.ports[0].mtu, 4200);
	assert_int_equal(c.ports[0].port.mtu, 4200);
	assert_int_equal(c.idle, PORT_IDLE_SLEEP);
	assert_int_equal(c.ports[0].wait_ms, 10000);
	assert_int_equal(c.rx_workers, 0);
	assert_int_equal(c.max_qp, 16384);
	assert_true(c.ports[0].port.has_mac); /* the RNIC's */
	assert_memory_equal(c.ports[0].port.mac, c.ports[0].mac, 6);
	assert_int_equal(read_text("{" MAC ",\"port\":{\"name\":\"p0\",\"type\":\"memif\","
				   "\"socket\":\"/tmp/s\",\"role\":\"server\"}}",
				 &c),
		0);
	assert_int_equal(c.ports[0].wait_ms, 0); /* a server's link comes with its client */
	assert_int_equal(c.mrc.base_rtt_us, 200);
	assert_int_equal(c.mrc.mbps, 25000);
	assert_int_equal(
		read_text("{" MAC "," PORT ",\"mrc\":{\"base_rtt_us\":4000,\"mbps\":1000}}", &c),
		0);
	assert_int_equal(c.mrc.base_rtt_us, 4000);
	assert_int_equal(c.mrc.mbps, 1000);
	assert_int_equal(read_text("{" MAC "," PORT ",\"rx_workers\":16}", &c), 0);
	assert_int_equal(c.rx_workers, 16);
	assert_false(c.iwarp);
	assert_int_equal(read_text("{" MAC "," PORT ",\"transport\":\"roce\"}", &c), 0);
	assert_false(c.iwarp);
	assert_int_equal(read_text("{" MAC "," PORT "," IWARP "}", &c), 0);
	assert_true(c.iwarp);
}

static void several_ports(void **state)
{
	struct rnic_port_config port;
	struct iv_config c;

	(void)state;
	assert_int_equal(
		read_text(
			"{\"max_qp\":10,\"ports\":["
			"{" MAC "," PORT ",\"ip\":[\"10.0.0.1\"],\"mtu\":1500},"
			"{" MAC2 "," PORT2 ",\"ip\":[\"10.0.0.1\",\"fd00::1\"],"
			"\"via\":\"fd00::ff\",\"sid\":\"fcbb:bb00:1801::\",\"# x\":1,\"neighbors\":"
			"[{\"ip\":\"fd00::ff\",\"mac\":\"02:00:00:00:00:01\"}]}]}",
			&c),
		0);
	assert_int_equal(c.n_ports, 2);
	assert_int_equal(c.ports[0].mtu, 1500);
	assert_int_equal(c.ports[0].port.mtu, 1500);
	assert_int_equal(c.ports[0].wait_ms, 10000);
	assert_int_equal(c.ports[1].mtu, 4200);
	assert_int_equal(c.ports[1].mac[5], 0x0b);
	assert_int_equal(c.ports[1].port.mac[5], 0x0b);
	assert_int_equal(c.ports[1].n_ip, 2);
	assert_int_equal(c.ports[1].n_neigh, 1);
	assert_true(wire_ip_is_zero(&c.ports[0].sid));
	assert_int_equal(c.ports[1].sid.b[0], 0xfc);
	assert_int_equal(c.ports[1].sid.b[5], 0x01);
	port = iv_config_port(&c.ports[1]);
	assert_int_equal(port.via.b[15], 0xff);
	assert_int_equal(port.n_ip, 2);
	assert_int_equal(port.ip[1].b[15], 1);
	assert_int_equal(port.mtu, 4200);
	/* One, too, with what goes with one. */
	assert_int_equal(
		read_text("{\"ports\":[{" MAC "," PORT "}],\"netdev\":{\"name\":\"t\"}}", &c), 0);
	assert_int_equal(c.n_ports, 1);
}

static void netdev(void **state)
{
	struct iv_config c;

	(void)state;
	assert_int_equal(read_text("{" MAC "," PORT "}", &c), 0);
	assert_string_equal(c.netdev.name, "");
	assert_int_equal(
		read_text("{" MAC "," PORT ",\"netdev\":{\"name\":\"123456789012345\"}}", &c), 0);
	assert_string_equal(c.netdev.name, "123456789012345");
	assert_int_equal(c.netdev.prefix4, 24);
	assert_int_equal(c.netdev.prefix6, 64);
	assert_int_equal(read_text("{" MAC "," PORT ",\"netdev\":{\"name\":\"eth0\",\"prefix4\":0,"
				   "\"prefix6\":128,\"#\":1}}",
				 &c),
		0);
	assert_int_equal(c.netdev.prefix4, 0);
	assert_int_equal(c.netdev.prefix6, 128);
}

static void congestion(void **state)
{
	struct iv_config c;

	(void)state;
	assert_int_equal(read_text("{" MAC "," PORT "}", &c), 0);
	assert_false(c.congestion.no_reaction || c.congestion.no_notification || c.congestion.ect);
	assert_int_equal(read_text("{" MAC "," PORT ",\"congestion\":{\"reaction\":false,"
				   "\"notification\":false,\"ect\":true,\"cnp_dscp\":40,"
				   "\"line_mbps\":1000,\"byte_count\":65536}}",
				 &c),
		0);
	assert_true(c.congestion.no_reaction && c.congestion.no_notification && c.congestion.ect);
	assert_int_equal(c.congestion.cnp_dscp, 40);
	assert_int_equal(c.congestion.line_mbps, 1000);
	assert_int_equal(c.congestion.byte_count, 65536);
	assert_int_equal(c.congestion.window_bytes, 0);
	assert_int_equal(
		read_text("{" MAC "," PORT ",\"congestion\":{\"window_bytes\":32768}}", &c), 0);
	assert_int_equal(c.congestion.window_bytes, 32768);
}

static void lldp(void **state)
{
	char name[RNIC_HOST_LEN];
	struct rnic_config rnic = {0};
	struct iv_config c;

	(void)state;
	assert_int_equal(read_text("{" MAC "," PORT "}", &c), 0);
	iv_config_lldp(&c, &rnic);
	assert_false(rnic.lldp);
	assert_string_equal(rnic.host, "");
	assert_int_equal(read_text("{" MAC "," PORT ",\"lldp\":true}", &c), 0);
	assert_int_equal(gethostname(name, sizeof(name)), 0);
	assert_string_equal(c.host, name);
	assert_int_equal(read_text("{" MAC "," PORT ",\"lldp\":true,\"host\":\"h0\"}", &c), 0);
	iv_config_lldp(&c, &rnic);
	assert_true(rnic.lldp);
	assert_string_equal(rnic.host, "h0");
	assert_string_equal(iv_config_port(&c.ports[0]).name, "p0");
}

/* What the table says is what lib/rnic takes where nothing is said. */
static void congestion_defaults(void **state)
{
	const struct rnic_congestion none = {0};
	struct dcqcn_params from_table, own;
	struct iv_config c;

	(void)state;
	assert_int_equal(read_text("{" MAC "," PORT "}", &c), 0);
	assert_int_equal(dcqcn_params_init(&from_table, &c.congestion), 0);
	assert_int_equal(dcqcn_params_init(&own, &none), 0);
	assert_memory_equal(&from_table, &own, sizeof(own));
}

static void everything(void **state)
{
	struct iv_config c;
	struct wire_ip ip;

	(void)state;
	assert_int_equal(
		read_text("{\"#\":\"a comment\"," MAC ",\"ip\":[\"10.77.0.10\",\"fd77::10\"],"
			  "\"mtu\":1500,\"port\":{\"name\":\"p0\",\"type\":\"null\","
			  "\"mac\":\"02:00:00:00:00:0b\",\"mtu\":2000,\"#why\":1},"
			  "\"idle\":\"spin\",\"device\":\"rnic_1\",\"wait_ms\":0,"
			  "\"memory_mb\":512,\"hugepages\":true,\"max_qp\":65536,"
			  "\"neighbors\":[{\"ip\":\"10.77.0.1\",\"mac\":\"02:00:00:00:00:01\","
			  "\"# x\":0}]}",
			&c),
		0);
	assert_string_equal(c.name, "rnic_1");
	assert_int_equal(c.ports[0].n_ip, 2);
	assert_int_equal(wire_ip_parse("fd77::10", &ip), 0);
	assert_memory_equal(&c.ports[0].ip[1], &ip, sizeof(ip));
	assert_int_equal(c.ports[0].mtu, 1500);
	assert_int_equal(c.ports[0].port.mtu, 2000);
	assert_int_equal(c.ports[0].port.mac[5], 0x0b);
	assert_int_equal(c.idle, PORT_IDLE_SPIN);
	assert_int_equal(c.ports[0].wait_ms, 0);
	assert_int_equal(c.memory_mb, 512);
	assert_true(c.hugepages);
	assert_int_equal(c.max_qp, 65536);
	assert_int_equal(c.ports[0].n_neigh, 1);
	assert_int_equal(c.ports[0].neigh[0].mac[5], 1);
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "line 1"},
		{"{" MAC "," PORT "", "line 1"},
		{"[]", "must be object"},
		{"{" PORT "}", "mac: is missing"},
		{"{" MAC "," MAC "," PORT "}", "duplicate"},
		{"{" MAC "," PORT ",\"extra\":1}", "extra"},
		{"{\"ports\":[]}", "ports: must have 1..8 items"},
		{"{\"ports\":{}}", "ports: must be"},
		{"{\"ports\":[{" MAC "}]}", "ports[0].port: is missing"},
		{"{" MAC ",\"ports\":[{" MAC "," PORT "}]}", "mac: not together with ports"},
		{"{\"mtu\":1500,\"ports\":[{" MAC "," PORT "}]}", "mtu: not together with ports"},
		{"{\"ports\":[{" MAC "," PORT ",\"idle\":\"spin\"}]}", "ports[0].idle"},
		{"{\"ports\":[{" MAC "," PORT "},{" MAC "," PORT2 "}]}",
			"ports[1].mac: same as ports[0].mac"},
		{"{\"ports\":[{" MAC "," PORT "},{" MAC2 "," PORT "}]}",
			"ports[1].port.name: same as ports[0].port.name"},
		{"{\"ports\":[{" MAC "," PORT "},{" MAC2 "," PORT2 ",\"ip\":[\"x\"]}]}",
			"ports[1].ip[0]: \"x\""},
		{"{\"ports\":[{" MAC "," PORT "},{" MAC2 "," PORT2 ",\"via\":\"::\"}]}",
			"ports[1].via: \"::\""},
		{"{" MAC "," PORT ",\"mrc\":{\"base_rtt_us\":0}}", "mrc.base_rtt_us: 0"},
		{"{\"ports\":[{" MAC "," PORT "},{" MAC2 "," PORT2 ",\"sid\":\"ff02::1\"}]}",
			"ports[1].sid: \"ff02::1\" is not a unicast"},
		{"{" MAC "," PORT ",\"sid\":\"10.0.0.1\"}", "sid: \"10.0.0.1\" is not a unicast"},
		{"{\"ports\":[{" MAC "," PORT "},{" MAC2 "," PORT2 "}],"
		 "\"netdev\":{\"name\":\"t\"}}",
			"ports: one only together with netdev"},
		{"{\"mac\":5," PORT "}", "mac: must be string"},
		{"{\"mac\":\"02:00\"," PORT "}", "mac: \"02:00\""},
		{"{\"mac\":\"01:00:00:00:00:01\"," PORT "}", "mac: must be a unicast"},
		{"{\"mac\":\"00:00:00:00:00:00\"," PORT "}", "mac: must be a unicast"},
		{"{" MAC "}", "port: is missing"},
		{"{" MAC ",\"port\":\"memif\"}", "port: must be"},
		{"{" MAC ",\"port\":{\"name\":\"p0\",\"type\":\"memif\"}}", "port.socket"},
		{"{" MAC ",\"port\":{\"name\":\"p0\",\"type\":\"null\",\"sock\":1}}", "sock"},
		{"{" MAC "," PORT ",\"ip\":\"10.0.0.1\"}", "ip: must be"},
		{"{" MAC "," PORT ",\"ip\":[7]}", "ip[0]: must be string"},
		{"{" MAC "," PORT ",\"ip\":[\"10.0.0.1\",\"10.0.0\"]}", "ip[1]: \"10.0.0\""},
		{"{" MAC "," PORT ",\"ip\":[\"::\"]}", "ip[0]"},
		{"{" MAC "," PORT ",\"ip\":[\"10.0.0.1\",\"10.0.0.1\"]}", "ip[1]: same as ip[0]"},
		{"{" MAC "," PORT ",\"ip\":[\"1.0.0.1\",\"1.0.0.2\",\"1.0.0.3\",\"1.0.0.4\","
		 "\"1.0.0.5\",\"1.0.0.6\",\"1.0.0.7\",\"1.0.0.8\"]}",
			"ip: must have 0..7 items"},
		{"{" MAC "," PORT ",\"mtu\":575}", "mtu: 575 is not in 576..9600"},
		{"{" MAC "," PORT ",\"mtu\":\"big\"}", "mtu: must be integer"},
		{"{" MAC ",\"mtu\":4000,\"port\":{\"name\":\"p0\",\"type\":\"null\",\"mtu\":1500}}",
			"mtu: 4000 is above port.mtu, 1500"},
		{"{" MAC "," PORT ",\"idle\":\"lazy\"}", "idle"},
		{"{" MAC "," PORT ",\"idle\":3}", "idle"},
		{"{" MAC "," PORT ",\"congestion\":3}", "congestion"},
		{"{" MAC "," PORT ",\"congestion\":{\"reaction\":1}}", "congestion.reaction"},
		{"{" MAC "," PORT ",\"congestion\":{\"ect\":null}}", "congestion.ect"},
		{"{" MAC "," PORT ",\"congestion\":{\"speed\":1}}", "speed"},
		{"{" MAC "," PORT ",\"congestion\":{\"cnp_dscp\":64}}", "congestion.cnp_dscp"},
		{"{" MAC "," PORT ",\"congestion\":{\"timer_us\":0}}", "congestion.timer_us"},
		{"{" MAC "," PORT ",\"congestion\":{\"alpha_shift\":17}}",
			"congestion.alpha_shift"},
		{"{" MAC "," PORT ",\"congestion\":{\"line_mbps\":9}}", "congestion.min_mbps"},
		{"{" MAC "," PORT ",\"netdev\":\"eth0\"}", "netdev: must be"},
		{"{" MAC "," PORT ",\"netdev\":{}}", "netdev.name"},
		{"{" MAC "," PORT ",\"netdev\":{\"name\":\"\"}}", "netdev.name"},
		{"{" MAC "," PORT ",\"netdev\":{\"name\":\"1234567890123456\"}}", "netdev.name"},
		{"{" MAC "," PORT ",\"netdev\":{\"name\":\"a/b\"}}", "netdev.name"},
		{"{" MAC "," PORT ",\"netdev\":{\"name\":\"..\"}}", "netdev.name"},
		{"{" MAC "," PORT ",\"netdev\":{\"name\":\"t\",\"mtu\":1}}", "netdev.mtu"},
		{"{" MAC "," PORT ",\"netdev\":{\"name\":\"t\",\"prefix4\":33}}",
			"netdev.prefix4: 33 is not in 0..32"},
		{"{" MAC "," PORT ",\"netdev\":{\"name\":\"t\",\"prefix6\":true}}",
			"netdev.prefix6: must be integer 0..128"},
		{"{" MAC "," PORT ",\"lldp\":\"on\"}", "lldp: must be"},
		{"{" MAC "," PORT ",\"lldp\":true,\"host\":\"\"}", "host: must have 1..64 bytes"},
		{"{" MAC "," PORT ",\"host\":\"h0\"}", "host: only together with lldp"},
		{"{" MAC "," PORT ",\"max_qp\":0}", "max_qp: 0 is not in 1..65536"},
		{"{" MAC "," PORT ",\"max_qp\":65537}", "max_qp: 65537 is not in 1..65536"},
		{"{" MAC "," PORT ",\"control_lcore\":0}", "control_lcore"}, /* there was one */
		{"{" MAC "," PORT ",\"rx_workers\":17}", "rx_workers: 17 is not in 0..16"},
		{"{" MAC "," PORT "," IWARP ",\"rx_workers\":1}",
			"transport: iwarp not together with rx_workers"},
		{"{" MAC "," PORT ",\"transport\":\"udp\"}",
			"transport: \"udp\" must be roce or iwarp"},
		{"{" MAC "," PORT ",\"transport\":\"iwarp\"}",
			"ip: at least one address for transport iwarp"},
		{"{" MAC "," PORT "," IWARP ",\"netdev\":{\"name\":\"t\"}}",
			"transport: iwarp not together with netdev"},
		{"{\"ports\":[{" MAC "," PORT "},{" MAC2 "," PORT2 "}],\"transport\":\"iwarp\"}",
			"transport: iwarp not together with several ports"},
		{"{" MAC "," PORT ",\"device\":\"\"}", "device"},
		{"{" MAC "," PORT ",\"device\":\"a/b\"}", "device"},
		{"{" MAC "," PORT ",\"device\":7}", "device"},
		{"{" MAC "," PORT ",\"device\":\"12345678901234567890123456789012\"}", "device"},
		{"{" MAC "," PORT ",\"wait_ms\":-1}", "wait_ms"},
		{"{" MAC "," PORT ",\"memory_mb\":1}", "memory_mb: 1 is not in 32..65536"},
		{"{" MAC "," PORT ",\"hugepages\":1}", "hugepages"},
		{"{" MAC "," PORT ",\"neighbors\":{}}", "neighbors: must be"},
		{"{" MAC "," PORT ",\"neighbors\":[1]}", "neighbors[0]: must be"},
		{"{" MAC "," PORT ",\"neighbors\":[{\"ip\":\"10.0.0.1\"}]}", "neighbors[0].mac"},
		{"{" MAC "," PORT ",\"neighbors\":[{\"mac\":\"02:00:00:00:00:01\"}]}",
			"neighbors[0].ip"},
		{"{" MAC "," PORT ",\"neighbors\":[{\"ip\":\"10.0.0.1\",\"vlan\":1}]}",
			"neighbors[0].vlan"},
	};
	struct iv_config c;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(read_text(bad[i].text, &c), -EINVAL);
		if (!strstr(err, bad[i].says))
			fail_msg("%s\n  gave: %s\n  not: %s", bad[i].text, err, bad[i].says);
		assert_true(strncmp(err, "/tmp/incline-verbs-", 19) == 0);
	}
	assert_int_equal(iv_config_read("/nonexistent/x.json", &c, err), -EINVAL);
	assert_non_null(strstr(err, "/nonexistent/x.json"));
	assert_non_null(strstr(err, "INCLINE_RNIC"));
}

/* 0 is a DSCP of packets that are not trimmed. */
static int read_setting(const char *name, uint64_t value, struct iv_config *c)
{
	const char *beside = strncmp(name, "dscp_trimmed", 12) == 0 ? ",\"dscp_no_trim\":1" : "";
	char text[256];

	snprintf(text, sizeof(text), "{" MAC "," PORT ",\"mrc\":{\"%s\":%" PRIu64 "%s}}", name,
		value, beside);
	return read_text(text, c);
}

/* Each number of MRC's table is a field, with its default and its limits. */
static void settings_of_mrc(void **state)
{
	struct iv_config c, least, most;

	(void)state;
	assert_int_equal(read_text("{" MAC "," PORT "}", &c), 0);
#define X(name, unit, dflt, low, high, mark, section, help)                     \
	assert_int_equal(c.mrc.name, dflt);                                     \
	assert_int_equal(read_setting(#name, low, &least), 0);                  \
	assert_int_equal(least.mrc.name, low);                                  \
	assert_int_equal(read_setting(#name, high, &most), 0);                  \
	assert_int_equal(most.mrc.name, high);                                  \
	assert_int_equal(read_setting(#name, UINT64_C(high) + 1, &c), -EINVAL); \
	assert_non_null(strstr(err, "mrc." #name ": "));                        \
	assert_non_null(strstr(err, " is not in " #low ".." #high));            \
	assert_int_equal(read_text("{" MAC "," PORT "}", &c), 0);
	MRC_SETTINGS(X)
#undef X
	assert_int_equal(read_setting("dscp_control", 12, &c), -EINVAL);
	assert_non_null(strstr(err, "mrc.dscp_control: must not be the same as mrc.dscp_trimmed"));
	assert_int_equal(read_setting("dscp_trimmed_lasthop", 4, &c), -EINVAL);
	assert_non_null(strstr(
		err, "mrc.dscp_trimmable: must not be the same as mrc.dscp_trimmed_lasthop"));
}

/* The files that are shipped, from the directory in PMD_CONFIGS. */
static void shipped_files(void **state)
{
	char pattern[4096];
	struct iv_config c;
	glob_t found;

	(void)state;
	assert_non_null(getenv("PMD_CONFIGS"));
	snprintf(pattern, sizeof(pattern), "%s/rnic-*.json", getenv("PMD_CONFIGS"));
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= 4);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		if (iv_config_read(found.gl_pathv[i], &c, err))
			fail_msg("%s", err);
	}
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_files),
		cmocka_unit_test(smallest),
		cmocka_unit_test(everything),
		cmocka_unit_test(several_ports),
		cmocka_unit_test(netdev),
		cmocka_unit_test(congestion),
		cmocka_unit_test(congestion_defaults),
		cmocka_unit_test(lldp),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(settings_of_mrc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
