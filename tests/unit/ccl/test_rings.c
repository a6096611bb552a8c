/* SPDX-License-Identifier: BSD-3-Clause */
/* Two parallel rings on three switches: what is asked of the switches, in which order, and what is
 * left where one refuses. The switches are lines of JSON on imaginary connections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/rings.h"
#include "lib/ctl/client.h"

enum { N_SWITCHES = 3, N_RANKS = 8, MAX_CONN = 16, MAX_LOG = 128 };

/* ---- switches ---- */

static struct {
	unsigned opened[N_SWITCHES], held[N_SWITCHES];
	int made[N_SWITCHES]; /* rings that are there */
	struct conn {
		unsigned sw;
		bool open;
		char *answer;
		size_t at;
	} conn[MAX_CONN];
	unsigned n_conn, n_log;
	char log[MAX_LOG][80]; /* "s1 ring.create g.r0" */
	/* Refused with ENOSPC: requests that begin so; "": none. */
	char refused[80], refused_too[80];
} net;

static json_t *created(unsigned sw, const json_t *params)
{
	const json_t *list = json_object_get(params, "leaves"), *leaf;
	json_t *leaves = json_array();
	size_t i;

	json_array_foreach(list, i, leaf)
	{
		json_t *one = json_pack("{s:O, s:i, s:i}", "ranks", json_object_get(leaf, "ranks"),
			"qpn", 100 + (int)i, "input", (int)i);

		json_array_append_new(leaves, one);
	}
	return json_pack("{s:i, s:o, s:i}", "ring", ++net.made[sw], "leaves", leaves, "parent_qpn",
		200 + (int)sw);
}

static json_t *result_of(unsigned sw, const char *method, const json_t *params)
{
	if (!strcmp(method, "ring.create"))
		return created(sw, params);
	if (!strcmp(method, "ring.delete"))
		net.made[sw]--;
	if (!strcmp(method, "owner.hold"))
		net.held[sw]++;
	return json_object();
}

/* A ring is known by its name to who creates it, then by its number. */
static void answer(struct conn *c, const json_t *request)
{
	const json_t *params = json_object_get(request, "params");
	const char *method = json_string_value(json_object_get(request, "method"));
	const char *name = json_string_value(json_object_get(params, "name"));
	json_t *out =
		json_pack("{s:s, s:O}", "jsonrpc", "2.0", "id", json_object_get(request, "id"));
	char *line = net.log[net.n_log++], number[16];
	bool no;

	assert_true(net.n_log < MAX_LOG);
	snprintf(number, sizeof(number), "%lld",
		json_integer_value(json_object_get(params, "ring")));
	snprintf(line, sizeof(net.log[0]), "s%u %s %s", c->sw, method, name ? name : number);
	no = (net.refused[0] && !strncmp(line, net.refused, strlen(net.refused))) ||
	     (net.refused_too[0] && !strncmp(line, net.refused_too, strlen(net.refused_too)));
	if (no)
		json_object_set_new(out, "error",
			json_pack("{s:i, s:s, s:{s:s}}", "code", CTL_REFUSED, "message", "no room",
				"data", "errno", "ENOSPC"));
	else
		json_object_set_new(out, "result", result_of(c->sw, method, params));
	assert_null(c->answer);
	c->answer = json_dumps(out, JSON_COMPACT);
	c->answer = realloc(c->answer, strlen(c->answer) + 2);
	strcat(c->answer, "\n");
	c->at = 0;
	json_decref(out);
}

/* ---- connections ---- */

static int64_t clock_ms;

static int64_t now_ms(void *arg)
{
	(void)arg;
	return clock_ms;
}

static void sleep_ms(void *arg, unsigned ms)
{
	(void)arg;
	clock_ms += ms;
}

static int io_open(void *arg, const char *path, int64_t deadline)
{
	const unsigned sw = (unsigned)(path[2] - '0'); /* /sN */

	(void)arg, (void)deadline;
	assert_true(net.n_conn < MAX_CONN && sw < N_SWITCHES);
	net.opened[sw]++;
	net.conn[net.n_conn] = (struct conn){.sw = sw, .open = true};
	return (int)net.n_conn++;
}

static void io_close(void *arg, int conn)
{
	(void)arg;
	assert_true(net.conn[conn].open);
	net.conn[conn].open = false;
	free(net.conn[conn].answer);
	net.conn[conn].answer = NULL;
}

static ssize_t io_send(void *arg, int conn, const char *buf, size_t len, int64_t deadline)
{
	json_t *request = json_loadb(buf, len, 0, NULL);

	(void)arg, (void)deadline;
	assert_non_null(request);
	answer(&net.conn[conn], request);
	json_decref(request);
	return (ssize_t)len;
}

static bool io_is_open(void *arg, int conn)
{
	(void)arg;
	return net.conn[conn].open;
}

static ssize_t io_receive(void *arg, int conn, char *buf, size_t cap, int64_t deadline)
{
	struct conn *c = &net.conn[conn];
	size_t n;

	(void)arg, (void)deadline;
	assert_non_null(c->answer);
	n = strlen(c->answer + c->at);
	n = n < cap ? n : cap;
	memcpy(buf, c->answer + c->at, n);
	c->at += n;
	if (!c->answer[c->at]) {
		free(c->answer);
		c->answer = NULL;
	}
	return (ssize_t)n;
}

static const struct ctl_io io = {.now_ms = now_ms,
	.sleep_ms = sleep_ms,
	.open = io_open,
	.close = io_close,
	.send = io_send,
	.is_open = io_is_open,
	.receive = io_receive};

/* ---- a job: two nodes of two ranks below each of two leaves ---- */

static struct ccl_group *group;
static struct ccl_rings *rings;
static struct ccl_ring_address all[N_RANKS];

static json_t *switch_of(unsigned i, json_t *children)
{
	json_t *sw = json_pack("{s:o, s:o, s:o, s:o}", "name", json_sprintf("s%u", i), "socket",
		json_sprintf("/s%u", i), "ip", json_sprintf("10.0.1.%u", i), "children", children);

	if (i)
		json_object_update_new(
			sw, json_pack("{s:s, s:s}", "parent", "s0", "parent_port", "up"));
	return sw;
}

static json_t *hosts(unsigned from)
{
	json_t *list = json_array();

	for (unsigned r = from; r < from + N_RANKS / 2; r++)
		json_array_append_new(list,
			json_pack("{s:i, s:o}", "rank", (int)r, "port", json_sprintf("h%u", r)));
	return list;
}

static int set_up(void **state)
{
	json_t *ranks = json_array(), *doc;
	char err[CCL_ERR_LEN] = "";

	(void)state;
	memset(&net, 0, sizeof(net));
	for (unsigned r = 0; r < N_RANKS; r++)
		json_array_append_new(
			ranks, json_pack("{s:o}", "ip", json_sprintf("10.0.0.%u", r + 1)));
	doc = json_pack("{s:s, s:s, s:s, s:i, s:i, s:o, s:[o, o, o]}", "name", "g", "bootstrap",
		"unix:/b", "mode", "netreduce", "rings", 2, "timeout_ms", 1000, "ranks", ranks,
		"switches",
		switch_of(0, json_pack("[{s:s, s:s}, {s:s, s:s}]", "switch", "s1", "port", "a",
				     "switch", "s2", "port", "b")),
		switch_of(1, hosts(0)), switch_of(2, hosts(N_RANKS / 2)));
	if (ccl_group_parse(doc, &group, err))
		fail_msg("%s", err);
	json_decref(doc);
	group->io = &io;
	snprintf(group->owner, sizeof(group->owner), "secret");
	for (unsigned r = 0; r < N_RANKS; r++)
		all[r] = (struct ccl_ring_address){
			.ip = group->rank_ip[r], .mtu = 1024, .next_qpn = r, .prev_qpn = r};
	assert_int_equal(ccl_rings_plan(group, &rings, err), 0);
	return 0;
}

static int take_down(void **state)
{
	(void)state;
	ccl_rings_free(rings);
	ccl_group_free(group);
	for (unsigned i = 0; i < net.n_conn; i++)
		assert_false(net.conn[i].open);
	return 0;
}

/* ---- what was asked ---- */

static unsigned count(const char *what)
{
	unsigned n = 0;

	for (unsigned i = 0; i < net.n_log; i++)
		n += strstr(net.log[i], what) != NULL;
	return n;
}

static unsigned first(const char *what)
{
	unsigned i = 0;

	while (i < net.n_log && !strstr(net.log[i], what))
		i++;
	return i;
}

static unsigned last(const char *what)
{
	unsigned i = net.n_log;

	while (i > 0 && !strstr(net.log[i - 1], what))
		i--;
	return i - 1;
}

static void nothing_left(void)
{
	for (unsigned s = 0; s < N_SWITCHES; s++)
		assert_int_equal(net.made[s], 0);
}

/* Nothing is started before all is there, over one conversation with each switch. */
static void all_then_start(void **state)
{
	char err[CCL_ERR_LEN];

	(void)state;
	assert_int_equal(ccl_rings_install(rings, all, 1024, err), 0);
	assert_int_equal(count("ring.create g.r0"), N_SWITCHES);
	assert_int_equal(count("ring.create g.r1"), N_SWITCHES);
	assert_int_equal(count("ring.activate"), 2 * N_SWITCHES);
	assert_true(last("ring.create") < first("ring.activate"));
	ccl_rings_renew(rings);
	assert_int_equal(ccl_rings_uninstall(rings, err), 0);
	for (unsigned s = 0; s < N_SWITCHES; s++) {
		assert_int_equal(net.opened[s], 1);
		assert_int_equal(net.held[s], 1);
	}
	nothing_left();
}

static void refusal(const char *what)
{
	char err[CCL_ERR_LEN] = "";

	snprintf(net.refused, sizeof(net.refused), "%s", what);
	assert_int_equal(ccl_rings_install(rings, all, 1024, err), -ENOSPC);
	assert_non_null(strstr(err, "no room"));
	assert_null(strstr(err, "deleted"));
	nothing_left();
}

/* The last switch has no room for the last ring: no other has begun to sum. */
static void no_room(void **state)
{
	(void)state;
	refusal("s2 ring.create g.r1");
	assert_int_equal(count("ring.activate"), 0);
	assert_int_equal(count("ring.delete"), count("ring.create") - 1);
}

static void not_started(void **state)
{
	(void)state;
	refusal("s2 ring.activate 2");
	assert_int_equal(count("ring.delete"), 2 * N_SWITCHES);
}

/* What stays behind is told with why there is no ring. */
static void stays_behind(void **state)
{
	char err[CCL_ERR_LEN] = "";

	(void)state;
	snprintf(net.refused, sizeof(net.refused), "s2 ring.create g.r1");
	snprintf(net.refused_too, sizeof(net.refused_too), "s1 ring.delete 1");
	assert_int_equal(ccl_rings_install(rings, all, 1024, err), -ENOSPC);
	if (!strstr(err, "switch s2: ring.create: no room; what was made could not be deleted: "
			 "switch s1: ring.delete: no room"))
		fail_msg("%s", err);
	assert_int_equal(net.made[0], 0);
	assert_int_equal(net.made[1], 1);
	assert_int_equal(net.made[2], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_then_start, set_up, take_down),
		cmocka_unit_test_setup_teardown(no_room, set_up, take_down),
		cmocka_unit_test_setup_teardown(not_started, set_up, take_down),
		cmocka_unit_test_setup_teardown(stays_behind, set_up, take_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
