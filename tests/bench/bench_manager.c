/* SPDX-License-Identifier: BSD-3-Clause */
/* One manager for a thousand switches and ten thousand groups: its own code, from a request's line
 * to the answer's, with its store; switches and ranks are simulated and answer at once, in the same
 * thread. No sockets: what is measured is what it decides, writes down and says.
 *
 *	bench-manager [--quick] [--groups N] [--json FILE]
 *
 * Every figure comes with what must hold: no group is refused, a restart ends none, and at the end
 * no switch has one. And one bound, of the core's time, which others on the machine leave alone: a
 * restart with 10 000 groups, or fewer, takes less than a minute. */
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctrl/manager/manager.h"
#include "ctrl/manager/store.h"
#include "lib/ctl/rpc.h"
#include "tests/bench/machine.h"
#include "tests/bench/manager_fabric.h"

enum { MAX_RANKS = 8, SECONDS = 5, GROUPS = 10000, RESTART_CORE_S = 60 };
static const uint64_t SECOND = 1000000000;

/* ---- switches ---- */

static struct bench {
	struct manager *m;
	uint64_t now;
	unsigned lines, ended; /* to switches; groups that they were told to end */
} bench;

static unsigned number_of(const char *job)
{
	return (unsigned)strtoul(job + 3, NULL, 10); /* "job7" */
}

static void forget(struct agent_sim *s, unsigned job)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->group[i] == job)
			s->group[i] = s->group[--s->n];
}

static void has_group(struct agent_sim *s, unsigned job)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 16;
		s->group = realloc(s->group, s->room * sizeof(*s->group));
		CHECK(s->group);
	}
	s->group[s->n++] = job;
}

static struct job {
	unsigned n_ranks;
	uint64_t epoch;
	struct manager_peer peer[MAX_RANKS];
} * job;

static void hear(unsigned i, const char *text)
{
	manager_heard(bench.m, i, text, strlen(text), bench.now);
}

static void list_epochs(unsigned i)
{
	static char text[1 << 20];
	size_t at =
		(size_t)snprintf(text, sizeof(text), "{\"id\":\"epochs\",\"result\":{\"jobs\":[");

	for (unsigned k = 0; k < fab.sw[i].n; k++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
			"%s{\"job\":\"job%u\",\"epoch\":%llu,\"ended\":false,\"groups\":1}",
			k ? "," : "", fab.sw[i].group[k],
			(unsigned long long)job[fab.sw[i].group[k]].epoch);
	snprintf(text + at, sizeof(text) - at, "]}}");
	hear(i, text);
}

static void end_epoch(unsigned i, const json_t *params)
{
	const unsigned n = number_of(rpc_string(params, "job"));
	uint64_t epoch = 0;

	CHECK(!ctl_get_u64(json_object_get(params, "epoch"), &epoch));
	if (epoch < job[n].epoch || !job[n].epoch)
		return;
	forget(&fab.sw[i], n);
	bench.ended++;
}

/* A line to a switch: what an agent answers, at once. */
static void send_line(void *arg, unsigned i, const char *line)
{
	json_t *request = json_loads(line, 0, NULL);
	const char *method = rpc_string(request, "method");
	char answer[96];

	(void)arg;
	bench.lines++;
	if (!strcmp(method, "node.hello"))
		hear(i, fab.sw[i].hello);
	else if (!strcmp(method, "epoch.list"))
		list_epochs(i);
	else if (!strcmp(method, "epoch.end")) {
		end_epoch(i, json_object_get(request, "params"));
		snprintf(answer, sizeof(answer), "{\"id\":\"%s\",\"result\":{\"groups\":0}}",
			rpc_string(request, "id"));
		hear(i, answer);
	}
	json_decref(request);
}

static void drop(void *arg, unsigned i)
{
	(void)arg, (void)i;
}

static void say(void *arg, enum journal_level level, const char *line)
{
	(void)arg, (void)level, (void)line;
}

static const struct manager_io io = {.send = send_line, .drop = drop, .say = say};

/* ---- ranks ---- */

static json_t *ask(struct job *j, unsigned rank, const char *line)
{
	char *answer = manager_line(bench.m, &j->peer[rank], line, strlen(line), bench.now);
	json_t *a = json_loads(answer, 0, NULL), *result = json_object_get(a, "result");

	if (!result) {
		fprintf(stderr, "bench-manager: %s\n%s\n", line, answer);
		exit(1);
	}
	json_incref(result);
	json_decref(a);
	free(answer);
	return result;
}

static json_t *say_of(struct job *j, unsigned rank, const char *method)
{
	char line[192];

	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{\"job\":\"job%u\","
		"\"epoch\":%llu,\"rank\":%u,\"who\":%u}}",
		method, (unsigned)(j - job), (unsigned long long)j->epoch, rank,
		1 + (unsigned)(j - job) * MAX_RANKS + rank);
	return ask(j, rank, line);
}

/* Ranks of a job are neighbours, three of four times; else anywhere. */
static unsigned host_of(unsigned n, unsigned rank)
{
	const unsigned first = n * 2654435761u % fab.n_hosts;

	return n % 4 ? (first + rank) % fab.n_hosts
		     : (first + rank * 2246822519u % fab.n_hosts) % fab.n_hosts;
}

static void join(struct job *j, unsigned n, unsigned rank)
{
	char line[320], ip[40];
	json_t *state;

	fabric_host_ip(host_of(n, rank), ip);
	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"job.join\",\"params\":{\"job\":\"job%"
		"u\","
		"\"ranks\":%u,\"rank\":%u,\"who\":%u,\"ip\":\"%s\",\"mtu\":1024,\"mbps\":1000}}",
		n, j->n_ranks, rank, 1 + n * MAX_RANKS + rank, ip);
	state = ask(j, rank, line);
	CHECK(!ctl_get_u64(json_object_get(state, "epoch"), &j->epoch));
	json_decref(state);
}

/* As rank 0: what the plan says. */
static void install(unsigned n, const json_t *plan)
{
	const json_t *sw;
	size_t k;

	json_array_foreach(json_object_get(plan, "switches"), k, sw)
	{
		const char *name = rpc_string(sw, "name");
		const json_t *list = json_object_get(fab.config, "switches");

		/* The manager's order is the file's. */
		for (unsigned i = 0; i < fab.n_sw; i++)
			if (!strcmp(name, rpc_string(json_array_get(list, i), "name")))
				has_group(&fab.sw[i], n);
	}
}

/* Of the clock on the wall, and of this process's own on a core: others use the machine too. */
struct span {
	double wall, cpu;
};

static double read_clock(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct span since(struct span then)
{
	return (struct span){read_clock(CLOCK_MONOTONIC) - then.wall,
		read_clock(CLOCK_PROCESS_CPUTIME_ID) - then.cpu};
}

static struct span add(struct span a, struct span b)
{
	return (struct span){a.wall + b.wall, a.cpu + b.cpu};
}

/* From the first rank's joining until the job is active; without what switches do. */
static struct span start_job(unsigned n)
{
	struct job *j = &job[n];
	struct span begun = since((struct span){0}), took;
	json_t *state, *plan;

	j->n_ranks = 2 + n % (MAX_RANKS - 1);
	for (unsigned r = 0; r < j->n_ranks; r++)
		join(j, n, r);
	state = say_of(j, 0, "job.heartbeat");
	took = since(begun);
	plan = json_object_get(state, "plan");
	if (!plan) {
		fprintf(stderr, "bench-manager: job %u: %s\n", n, rpc_string(state, "line"));
		exit(1);
	}
	install(n, plan);
	json_decref(state);
	begun = since((struct span){0});
	for (unsigned r = 0; r < j->n_ranks; r++) {
		state = say_of(j, r, "job.ready");
		if (r == j->n_ranks - 1)
			CHECK(!strcmp(rpc_string(state, "phase"), "active"));
		json_decref(state);
	}
	return add(took, since(begun));
}

/* ---- measuring ---- */

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct span start_manager(const struct store *store)
{
	const struct span begun = since((struct span){0});
	char err[MANAGER_ERR_LEN] = "";

	if (manager_create(fab.config, &io, store, 1 << 20, bench.now, &bench.m, err)) {
		fprintf(stderr, "bench-manager: %s\n", err);
		exit(1);
	}
	return since(begun);
}

/* Every rank looks up. */
static unsigned look_up(unsigned n)
{
	unsigned asked = 0;
	json_t *state;

	for (unsigned k = 0; k < n; k++)
		for (unsigned r = 0; r < job[k].n_ranks; r++) {
			state = say_of(&job[k], r, "job.heartbeat");
			CHECK(!strcmp(rpc_string(state, "phase"), "active"));
			json_decref(state);
			asked++;
		}
	return asked;
}

static void connect_switches(void)
{
	for (unsigned i = 0; i < fab.n_sw; i++)
		manager_up(bench.m, i, bench.now);
}

/* A manager that starts anew: switches connect, ranks are heard of, and nothing has ended. */
static void restart(const struct store *store, unsigned n, struct span *load, struct span *all)
{
	const struct span begun = since((struct span){0});

	bench.ended = 0;
	*load = start_manager(store);
	connect_switches();
	look_up(n);
	manager_tick(bench.m, bench.now);
	*all = since(begun);
	CHECK(bench.ended == 0);
	CHECK(n > GROUPS || all->cpu < RESTART_CORE_S);
}

static double in_use_mb(void)
{
	const struct mallinfo2 info = mallinfo2();

	return (double)(info.uordblks + info.hblkhd) / 1e6;
}

static void leave_all(unsigned n)
{
	unsigned left = 0;
	json_t *t, *node;
	size_t i;

	for (unsigned k = 0; k < n; k++)
		for (unsigned r = 0; r < job[k].n_ranks; r++)
			json_decref(say_of(&job[k], r, "job.leave"));
	manager_tick(bench.m, bench.now);
	for (i = 0; i < fab.n_sw; i++)
		left += fab.sw[i].n;
	CHECK(left == 0);
	t = ask(&job[0], 0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"topology.get\"}");
	json_array_foreach(json_object_get(t, "nodes"), i, node)
		CHECK(rpc_int(node, "groups", 0) == 0 && rpc_int(node, "promised_bytes", 0) == 0);
	json_decref(t);
}

/* A second in which nothing happens: each switch's hello and list, a tick each 100 ms. */
static double one_second(void)
{
	const struct span begun = since((struct span){0});

	for (unsigned tenth = 0; tenth < 10; tenth++) {
		bench.now += SECOND / 10;
		manager_tick(bench.m, bench.now);
	}
	return since(begun).cpu;
}

struct figures {
	double *took, empty_mb, full_mb, second[SECONDS], lookups;
	struct span install, load, restart;
};

static void run(const struct store *store, unsigned n, struct figures *f)
{
	struct span begun;
	unsigned asked;

	bench.now = SECOND;
	start_manager(store);
	connect_switches();
	f->empty_mb = in_use_mb();
	for (unsigned k = 0; k < n; k++) {
		const struct span one = start_job(k);

		f->took[k] = one.wall * 1e3;
		f->install = add(f->install, one);
	}
	f->full_mb = in_use_mb();
	for (unsigned k = 0; k < SECONDS; k++)
		f->second[k] = one_second();
	begun = since((struct span){0});
	asked = look_up(n);
	f->lookups = asked / since(begun).cpu;
	for (unsigned k = 0; k < n; k++)
		for (unsigned r = 0; r < job[k].n_ranks; r++)
			manager_gone(bench.m, &job[k].peer[r]);
	manager_destroy(bench.m);
	restart(store, n, &f->load, &f->restart);
	leave_all(n);
	manager_destroy(bench.m);
}

static json_t *measure(const char *name, const struct store *store, unsigned n)
{
	struct figures f = {.took = calloc(n, sizeof(*f.took))};
	json_t *row;

	job = calloc(n, sizeof(*job));
	CHECK(f.took && job);
	run(store, n, &f);
	qsort(f.took, n, sizeof(*f.took), by_size);
	qsort(f.second, SECONDS, sizeof(*f.second), by_size);
	printf("%-7s %7u %7.0f %7.0f %8.2f %8.2f %8.1f %7.1f %6.2f %8.0f %7.2f %7.2f\n", name, n,
		n / f.install.wall, n / f.install.cpu, f.took[n / 2], f.took[n * 99 / 100],
		f.full_mb, (f.full_mb - f.empty_mb) * 1e3 / n, f.second[SECONDS / 2], f.lookups,
		f.restart.wall, f.restart.cpu);
	row = json_pack("{s:s,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "store", name,
		"groups", (int)n, "installs_per_second", n / f.install.wall,
		"installs_per_core_second", n / f.install.cpu, "median_ms", f.took[n / 2], "p99_ms",
		f.took[n * 99 / 100], "max_ms", f.took[n - 1], "empty_mb", f.empty_mb, "full_mb",
		f.full_mb, "quiet_second_core_seconds", f.second[SECONDS / 2],
		"lookups_per_core_second", f.lookups, "load_seconds", f.load.wall,
		"restart_seconds", f.restart.wall, "restart_core_seconds", f.restart.cpu);
	free(f.took);
	free(job);
	return row;
}

static json_t *on_disk(unsigned n)
{
	char dir[] = "/tmp/incline-bench-XXXXXX", path[64], err[STORE_ERR_LEN] = "";
	struct store store;
	json_t *row;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/store", dir);
	if (store_sqlite_open(path, &store, err)) {
		fprintf(stderr, "bench-manager: %s\n", err);
		exit(1);
	}
	row = measure("SQLite", &store, n);
	store.close(store.arg);
	unlink(path);
	rmdir(dir);
	return row;
}

static int usage(FILE *f)
{
	fprintf(f, "usage: bench-manager [--quick] [--groups 1..16000] [--json FILE]\n");
	return f == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"json", required_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'}, {"groups", required_argument, NULL, 'g'},
		{"help", no_argument, NULL, 'h'}, {0}};
	unsigned groups = 0;
	const char *file = NULL;
	json_t *root, *rows = json_array(), *where;
	struct store memory;
	bool quick = false;
	int opt;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'j')
			file = optarg;
		else if (opt == 'q')
			quick = true;
		else if (opt == 'g' && atoi(optarg) >= 1 && atoi(optarg) <= 16000)
			groups = (unsigned)atoi(optarg);
		else
			return usage(opt == 'h' ? stdout : stderr);
	}
	groups = groups ? groups : quick ? 200 : GROUPS;
	where = bench_machine("less than it can");
	fabric_build(quick);
	printf("# one manager, %u simulated switches, %u hosts, %u groups of 2 to %d ranks\n",
		fab.n_sw, fab.n_hosts, groups, MAX_RANKS);
	printf("# installs: from the first rank's join to active, per second, and per second of a "
	       "core; ms\n"
	       "# heap in MB, and kB per group; quiet: core seconds per second; look-ups of ranks "
	       "per "
	       "core second\n"
	       "# restart: until all switches are compared and all ranks heard of, seconds and "
	       "core "
	       "seconds\n");
	printf("%-7s %7s %7s %7s %8s %8s %8s %7s %6s %8s %7s %7s\n", "store", "groups", "per s",
		"core", "median", "p99", "heap", "each", "quiet", "look-ups", "restart", "core");
	CHECK(store_memory_open(&memory) == 0);
	json_array_append_new(rows, measure("memory", &memory, groups));
	memory.close(memory.arg);
	json_array_append_new(rows, on_disk(groups));
	root = json_pack("{s:s,s:o,s:i,s:i,s:o}", "bench", "manager", "machine", where, "switches",
		(int)fab.n_sw, "hosts", (int)fab.n_hosts, "results", rows);
	if (file && json_dump_file(root, file, JSON_INDENT(1)) != 0) {
		fprintf(stderr, "bench-manager: cannot write %s\n", file);
		return 1;
	}
	json_decref(root);
	fabric_free();
	return 0;
}
