/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks' devices can do decides the mode; what one cannot do at all is refused by the field.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

static struct world w;
static struct manager_peer peer[RANKS];

static int setup(void **state)
{
	(void)state;
	world_open(&w);
	memset(peer, 0, sizeof(peer));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned r = 0; r < RANKS; r++)
		manager_gone(w.m, &peer[r]);
	world_close(&w);
	return 0;
}

/* "{'sr':true}" and the like, beside what every rank says. The answer (new reference). */
static json_t *join(unsigned rank, const char *more)
{
	json_t *params, *request, *answer;
	char *line, *text, *copy = strdup(more), ip[24];

	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	snprintf(ip, sizeof(ip), "10.1.0.%u", rank); /* one switch: Mode II needs least */
	params = json_pack("{s:s,s:i,s:i,s:i,s:s,s:i}", "job", "job", "ranks", RANKS, "rank",
		(int)rank, "who", 77 + (int)rank, "ip", ip, "mtu", 1024);
	assert_int_equal(json_object_update_new(params, json_loads(copy, 0, NULL)), 0);
	request = json_pack("{s:s,s:i,s:s,s:o}", "jsonrpc", "2.0", "id", 1, "method", "job.join",
		"params", params);
	line = json_dumps(request, JSON_COMPACT);
	text = manager_line(w.m, &peer[rank], line, strlen(line), w.now);
	answer = json_loads(text, 0, NULL);
	free(copy);
	free(text);
	free(line);
	json_decref(request);
	return answer;
}

/* Both ranks join; the job is placed with this mode, or (NULL) takes the ring. */
static const char *placed(const char *first, const char *second, const char *mode, const char *says)
{
	json_t *jobs, *row;
	static char why[300];

	json_decref(join(0, first));
	row = join(1, second);
	snprintf(why, sizeof(why), "%s", rpc_string(json_object_get(row, "result"), "line") ?: "");
	json_decref(row);
	jobs = world_ask(&w, "job.list", NULL);
	row = json_array_get(json_object_get(jobs, "jobs"), 0);
	if (mode && strcmp(rpc_string(row, "mode") ?: "none", mode) != 0)
		fail_msg("mode %s, not %s: %s", rpc_string(row, "mode"), mode, why);
	if (!mode)
		assert_string_equal(rpc_string(row, "phase"), "ring");
	if (!strstr(why, says))
		fail_msg("\"%s\" lacks \"%s\"", why, says);
	json_decref(jobs);
	return why;
}

static void expect_refused(unsigned rank, const char *more, const char *says)
{
	json_t *a = join(rank, more);
	const char *message = rpc_string(json_object_get(a, "error"), "message");

	if (!message)
		fail_msg("%s: was let in", more);
	if (!strstr(message, says))
		fail_msg("\"%s\" lacks \"%s\"", message, says);
	json_decref(a);
}

#define ABLE "'device':{'name':'rnic0','skip':true,'selective':true,'mtu':4096}"
#define PLAIN "'device':{'name':'rxe0','mtu':1024}"

/* Rooted collectives on selective queue pairs are Mode III's. */
static void selective(void **state)
{
	(void)state;
	placed("{'sr':true," ABLE "}", "{'sr':true," ABLE "}", "III", "mode III");
}

/* Without them the mode is what is best here. */
static void any(void **state)
{
	(void)state;
	placed("{" ABLE "}", "{" PLAIN "}", "II", "mode II");
}

/* AllReduce alone works in both, and one that is named is taken. */
static void basic(void **state)
{
	(void)state;
	placed("{'sr':true,'basic':true," ABLE "}", "{'sr':true,'basic':true," ABLE "}", "II",
		"mode II");
}

/* A mixed group, and one device that cannot leave out PSNs: Mode I needs none. */
static void mixed(void **state)
{
	(void)state;
	placed("{'kind':'mixed'," ABLE "}", "{'kind':'mixed'," PLAIN "}", "I", "mode I,");
}

/* All can: Mode I is for those who have nothing else. */
static void mixed_all(void **state)
{
	(void)state;
	placed("{'kind':'mixed'," ABLE "}", "{'kind':'mixed'," ABLE "}", "II", "mode II,");
}

/* Group files that differ: nothing in common, and that is said. */
static void nothing_in_common(void **state)
{
	(void)state;
	placed("{'kind':'mixed'," PLAIN "}", "{" ABLE "}", NULL,
		"the ranks' devices have no mode in common");
}

static void refusals(void **state)
{
	static const struct {
		const char *more, *says;
	} bad[] = {
		{"{'sr':true," PLAIN "}",
			"device.selective: rank 1's device (rxe0) has no selective queue pairs"},
		{"{'sr':true,'mode':'II'," ABLE "}", "mode: \"sr\" is for mode III, or II with "
						     "allreduce and barrier alone, not II"},
		{"{'sr':true,'mode':'I','basic':true," ABLE "}", "mode: \"sr\" is for mode III"},
		{"{'sr':true,'kind':'mixed'," ABLE "}", "kind: \"sr\" is for single groups"},
		{"{'kind':'mixed','mode':'III'," PLAIN "}",
			"device.skip: a mixed group in mode III needs devices that can leave out "
			"PSNs, "
			"and rank 1's (rxe0) cannot"},
		{"{'kind':'mixed','verb':'write'," PLAIN "}", "mode I has no verb \"write\""},
		{"{'verb':'write','mode':'I'," ABLE "}", "verb: write is for modes II and III"},
		{"{'device':{'name':'small','mtu':512}}", "device.mtu: the port of rank 1's device "
							  "(small) has 512, the job's is 1024"},
		{"{'mtu':2048,'device':{'name':'large','mtu':4096}}",
			"mtu: 2048, where other ranks of the job have said 1024"},
	};
	json_t *jobs;

	(void)state;
	json_decref(join(0, "{" ABLE "}"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_refused(1, bad[i].more, bad[i].says);
	/* Nothing has changed: the other rank still waits. */
	jobs = world_ask(&w, "job.list", NULL);
	assert_int_equal(json_array_size(json_object_get(jobs, "jobs")), 1);
	assert_string_equal(
		rpc_string(json_array_get(json_object_get(jobs, "jobs"), 0), "phase"), "joining");
	json_decref(jobs);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {T(selective), T(any), T(basic), T(mixed), T(mixed_all),
		T(nothing_in_common), T(refusals)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
