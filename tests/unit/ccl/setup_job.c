/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ccl/setup_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 5000 };

json_t *wish;

void prepare(struct job *j, bool tree, unsigned timeout_ms)
{
	static unsigned serial;
	const unsigned id = serial++;
	json_t *doc, *switches = json_array(), *ranks = json_array();
	char err[CCL_ERR_LEN];

	memset(j, 0, sizeof(*j));
	j->n_sw = tree ? 3 : 1;
	j->start = N;
	j->lazy = N;
	fake_init(N, 1024, id);
	fake_window(8);
	fake_auto(true);
	for (unsigned i = 0; i < N; i++) {
		char ip[32];

		snprintf(ip, sizeof(ip), "10.77.0.%u", 10 + i);
		json_array_append_new(ranks, json_pack("{s:s}", "ip", ip));
	}
	for (unsigned s = 0; s < j->n_sw; s++) {
		struct fake_switch *sw = &j->sw[s];
		json_t *children = json_array(), *obj;
		char name[16], ip[32], port[16];

		sw->number = s;
		sw->missing_rank = -1;
		snprintf(sw->path, sizeof(sw->path), "/tmp/ccl-setup-%d-%u-%u", getpid(), id, s);
		snprintf(name, sizeof(name), "s%u", s);
		snprintf(ip, sizeof(ip), "10.77.255.%u", s + 1);
		for (unsigned i = 0; i < N; i++) {
			snprintf(port, sizeof(port), "h%u", i);
			if (!tree || i / 2 + 1 == s)
				json_array_append_new(children,
					json_pack("{s:i, s:s}", "rank", (int)i, "port", port));
		}
		for (unsigned c = 1; tree && s == 0 && c < 3; c++) {
			snprintf(port, sizeof(port), "s%u", c);
			json_array_append_new(
				children, json_pack("{s:s, s:s}", "switch", port, "port", port));
		}
		obj = json_pack("{s:s, s:s, s:s, s:o}", "name", name, "socket", sw->path, "ip", ip,
			"children", children);
		if (s)
			json_object_update_new(
				obj, json_pack("{s:s, s:s}", "parent", "s0", "parent_port", "up0"));
		json_array_append_new(switches, obj);
	}
	doc = json_pack("{s:s, s:o, s:i, s:i, s:i, s:{s:b}, s:o, s:o}", "name", "g", "bootstrap",
		json_sprintf("unix:/tmp/ccl-setup-%d-%u", getpid(), id), "mtu", 256, "timeout_ms",
		(int)timeout_ms, "W", 8, "flags", "reproducible", 1, "ranks", ranks, "switches",
		switches);
	if (!wish)
		wish = json_pack("{s:[s, s]}", "collectives", "allreduce", "barrier");
	json_object_update(doc, wish);
	json_decref(wish);
	wish = NULL;
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(ccl_group_parse(doc, &j->group[i], err), 0);
	json_decref(doc);
}

static int wrong(const int32_t *buf, int first, int n, int32_t want, int slope)
{
	int bad = 0;

	for (int i = first; i < first + n; i++)
		bad += buf[i] != want + slope * (i - first);
	return bad;
}

/* The other four, each rank contributing i + rank; all in place. */
static void work_all(struct rank *me, struct ccl_comm *comm, int32_t *buf)
{
	const int rank = (int)me->rank, block = COUNT / N;

	for (int i = 0; i < COUNT; i++)
		buf[i] = i + rank;
	me->worked = ccl_broadcast(comm, buf, buf, COUNT, REDUCE_INT32, 2);
	me->wrong += wrong(buf, 0, COUNT, 2, 1);
	for (int i = 0; i < COUNT; i++)
		buf[i] = i + rank;
	if (!me->worked)
		me->worked = ccl_reduce(comm, buf, buf, COUNT, REDUCE_INT32, REDUCE_SUM, 1);
	if (rank == 1)
		me->wrong += wrong(buf, 0, COUNT, 6, N);
	for (int i = 0; i < COUNT; i++)
		buf[i] = i + rank;
	if (!me->worked)
		me->worked = ccl_reduce_scatter(
			comm, buf, buf + rank * block, (uint64_t)block, REDUCE_INT32, REDUCE_SUM);
	me->wrong += wrong(buf, rank * block, block, 6 + N * rank * block, N);
	if (!me->worked)
		me->worked =
			ccl_allgather(comm, buf + rank * block, buf, (uint64_t)block, REDUCE_INT32);
	me->wrong += wrong(buf, 0, N * block, 6, N);
}

static void work(struct rank *me, struct ccl_comm *comm)
{
	int32_t *buf = malloc(COUNT * sizeof(*buf));

	ccl_query(comm, &me->info);
	for (int round = 0; round < 5 && !me->worked; round++) {
		for (int i = 0; i < COUNT; i++)
			buf[i] = i + (int)me->rank + round;
		me->worked = ccl_allreduce(comm, buf, buf, COUNT, REDUCE_INT32, REDUCE_SUM);
		for (int i = 0; i < COUNT && !me->worked; i++)
			me->wrong += buf[i] != N * (i + round) + 6;
		if (!me->worked)
			me->worked = ccl_barrier(comm);
	}
	if (!me->worked && me->info.collectives == CCL_ALL_COLLECTIVES)
		work_all(me, comm, buf);
	snprintf(me->failure, sizeof(me->failure), "%s", ccl_error(comm));
	free(buf);
}

static void *rank_main(void *arg)
{
	struct rank *me = arg;
	struct ccl_comm *comm;

	me->created = ccl_comm_create(me->job->group[me->rank], me->rank, &comm, me->err);
	if (me->created)
		return NULL;
	if (me->rank != me->job->lazy)
		work(me, comm);
	if (me->job->after)
		me->job->after(me->rank, comm);
	ccl_query(comm, &me->ended);
	me->destroyed = ccl_comm_destroy(comm);
	return NULL;
}

void run(struct job *j)
{
	for (unsigned s = 0; s < j->n_sw; s++)
		fake_switch_start(&j->sw[s]);
	for (unsigned i = 0; i < j->start; i++) {
		j->rank[i] = (struct rank){.job = j, .rank = i};
		assert_int_equal(
			pthread_create(&j->rank[i].thread, NULL, rank_main, &j->rank[i]), 0);
	}
	for (unsigned i = 0; i < j->start; i++)
		pthread_join(j->rank[i].thread, NULL);
	for (unsigned s = 0; s < j->n_sw; s++) {
		fake_switch_stop(&j->sw[s]);
		assert_string_equal(j->sw[s].breach, "");
	}
}

void finish(struct job *j)
{
	for (unsigned s = 0; s < j->n_sw; s++) {
		json_decref(j->sw[s].created);
		json_decref(j->sw[s].activated);
	}
	for (unsigned i = 0; i < N; i++)
		ccl_group_free(j->group[i]);
	fake_fini();
}

void all_worked(const struct job *j)
{
	for (unsigned i = 0; i < N; i++) {
		const struct rank *r = &j->rank[i];

		if (r->created || r->worked || r->destroyed || r->wrong)
			fail_msg("rank %u: %d %d %d, %d wrong: %s%s", i, r->created, r->worked,
				r->destroyed, r->wrong, r->err, r->failure);
	}
}

void nobody_came_through(const struct job *j, const char *says)
{
	for (unsigned i = 0; i < j->start; i++) {
		assert_true(j->rank[i].created < 0);
		if (!strstr(j->rank[i].err, says))
			fail_msg("rank %u: \"%s\" lacks \"%s\"", i, j->rank[i].err, says);
	}
}
