/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/bench/manager_fabric.h"

#include "lib/ctl/manager_schema.h"

enum { PODS = 16, SPINES = 16, CORES = 16, HOSTS = 4 };

struct fabric fab;

static unsigned add_switch(json_t *list, const char *name)
{
	char ip[40];

	snprintf(ip, sizeof(ip), "10.200.%u.%u", fab.n_sw / 250, fab.n_sw % 250 + 1);
	json_array_append_new(
		list, json_pack("{s:s,s:s,s:s}", "name", name, "control", name, "ip", ip));
	return fab.n_sw++;
}

static void add_link(json_t *links, const char *a, unsigned ap, const char *b, unsigned bp)
{
	char p[16], q[16];

	snprintf(p, sizeof(p), "p%u", ap);
	snprintf(q, sizeof(q), "p%u", bp);
	json_array_append_new(
		links, json_pack("{s:s,s:s,s:s,s:s}", "a", a, "a_port", p, "b", b, "b_port", q));
}

void fabric_host_ip(unsigned i, char ip[40])
{
	snprintf(ip, 40, "10.%u.%u.%u", 1 + i / 62500, i / 250 % 250, i % 250 + 1);
}

static void say_hello(unsigned i, unsigned ports)
{
	char *at = fab.sw[i].hello, *end = at + sizeof(fab.sw[i].hello);

	at += snprintf(at, (size_t)(end - at),
		"{\"id\":\"hello\",\"result\":{\"boot\":\"%x\",\"modes\":[\"II\",\"III\"],"
		"\"max_groups\":400,\"arena_bytes\":1073741824,\"arena_used_bytes\":0,\"ports\":[",
		i + 1);
	for (unsigned p = 0; p < ports; p++)
		at += snprintf(at, (size_t)(end - at), "%s{\"name\":\"p%u\",\"link\":\"up\"}",
			p ? "," : "", p);
	snprintf(at, (size_t)(end - at), "]}}");
}

static void build_pod(unsigned pod, json_t *sw, json_t *hosts, json_t *links)
{
	char a[40], b[40], ip[40];

	for (unsigned s = 0; s < SPINES; s++) {
		snprintf(a, sizeof(a), "pod%u-spine%u", pod, s);
		say_hello(add_switch(sw, a), fab.leaves + CORES);
		for (unsigned c = 0; c < CORES; c++) {
			snprintf(b, sizeof(b), "core%u", s * CORES + c);
			add_link(links, a, fab.leaves + c, b, pod);
		}
	}
	for (unsigned l = 0; l < fab.leaves; l++) {
		snprintf(a, sizeof(a), "pod%u-leaf%u", pod, l);
		say_hello(add_switch(sw, a), SPINES + HOSTS);
		for (unsigned s = 0; s < SPINES; s++) {
			snprintf(b, sizeof(b), "pod%u-spine%u", pod, s);
			add_link(links, a, s, b, l);
		}
		for (unsigned h = 0; h < HOSTS; h++) {
			snprintf(b, sizeof(b), "h%u", fab.n_hosts);
			fabric_host_ip(fab.n_hosts++, ip);
			json_array_append_new(hosts, json_pack("{s:s,s:s}", "name", b, "ip", ip));
			add_link(links, a, SPINES + h, b, 0);
		}
	}
}

void fabric_build(bool quick)
{
	json_t *sw = json_array(), *hosts = json_array(), *links = json_array();
	struct ctl_problem p;
	char name[40];

	fab.pods = quick ? 2 : PODS;
	fab.leaves = quick ? 4 : 31;
	fab.sw = calloc(SPINES * CORES + fab.pods * (SPINES + fab.leaves), sizeof(*fab.sw));
	CHECK(fab.sw);
	for (unsigned c = 0; c < SPINES * CORES; c++) {
		snprintf(name, sizeof(name), "core%u", c);
		say_hello(add_switch(sw, name), fab.pods);
	}
	for (unsigned pod = 0; pod < fab.pods; pod++)
		build_pod(pod, sw, hosts, links);
	fab.config = json_pack(
		"{s:o,s:o,s:o,s:i}", "switches", sw, "hosts", hosts, "links", links, "drain_ms", 0);
	if (ctl_check_value(&ctl_manager_config, fab.config, "", &p)) {
		fprintf(stderr, "bench-manager: %s: %s\n", p.path, p.msg);
		exit(1);
	}
}

void fabric_free(void)
{
	for (unsigned i = 0; i < fab.n_sw; i++)
		free(fab.sw[i].group);
	free(fab.sw);
	json_decref(fab.config);
}
