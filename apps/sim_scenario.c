/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/sim_scenario.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "apps/sim_control.h"

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double sim_seconds(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

static int refuse(char *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int refuse(char *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, CCL_ERR_LEN, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* ---- links ---- */

static int parse_down(const json_t *list, struct sim_link_conf *conf, char *err)
{
	size_t i;
	json_t *span;

	if (json_array_size(list) > SIM_MAX_DOWN)
		return refuse(err, "down: more than %d spans", SIM_MAX_DOWN);
	conf->n_down = 0;
	json_array_foreach(list, i, span)
	{
		conf->down[i].from = (uint64_t)json_integer_value(json_array_get(span, 0));
		conf->down[i].until = (uint64_t)json_integer_value(json_array_get(span, 1));
		if (conf->down[i].until <= conf->down[i].from)
			return refuse(err, "down: must be [[from, until], ..]");
		conf->n_down++;
	}
	return 0;
}

static int parse_link(json_t *doc, struct sim_link_conf *conf, char *err)
{
	const struct {
		const char *name;
		uint64_t *to;
	} number[] = {{"mbps", &conf->mbps}, {"delay_ns", &conf->delay_ns},
		{"queue_bytes", &conf->queue_bytes}, {"ecn_bytes", &conf->ecn_bytes},
		{"pfc_xoff", &conf->pfc_xoff}, {"pfc_xon", &conf->pfc_xon},
		{"pfc_room", &conf->pfc_room}, {"reorder_ns", &conf->reorder_ns},
		{"lose_nth", &conf->lose_nth}};
	const struct {
		const char *name;
		double *to;
	} share[] = {{"loss", &conf->loss}, {"dup", &conf->dup}, {"reorder", &conf->reorder},
		{"corrupt", &conf->corrupt}, {"burst_enter", &conf->burst_enter},
		{"burst_leave", &conf->burst_leave}, {"burst_loss", &conf->burst_loss}};
	const char *key;
	json_t *value;

	json_object_foreach(doc, key, value)
	{
		bool known = false;

		for (unsigned i = 0; i < sizeof(number) / sizeof(number[0]); i++)
			if (strcmp(key, number[i].name) == 0) {
				if (!json_is_integer(value) || json_integer_value(value) < 0)
					return refuse(err, "%s: must be a number from 0 on", key);
				*number[i].to = (uint64_t)json_integer_value(value);
				known = true;
			}
		for (unsigned i = 0; i < sizeof(share) / sizeof(share[0]); i++)
			if (strcmp(key, share[i].name) == 0) {
				*share[i].to = json_number_value(value);
				if (!json_is_number(value) || *share[i].to < 0 || *share[i].to > 1)
					return refuse(err, "%s: must be 0..1", key);
				known = true;
			}
		if (strcmp(key, "priority") == 0) {
			conf->priority = json_is_true(value);
		} else if (strcmp(key, "trim") == 0) {
			conf->trim = json_is_true(value);
		} else if (strcmp(key, "down") == 0) {
			if (parse_down(value, conf, err))
				return -EINVAL;
		} else if (!known && key[0] != '#') {
			return refuse(err, "link: %s: unknown field", key);
		}
	}
	if (conf->pfc_xon > conf->pfc_xoff)
		return refuse(err, "link: pfc_xon: must be at most pfc_xoff");
	return 0;
}

static int set_links(const struct scenario *s, struct sim *sim, char *err)
{
	unsigned found = 0;
	char name[2 * SIM_NAME_LEN + 2];

	for (unsigned i = 0; i < sim_n_links(sim) && s->links; i++) {
		struct sim_link_conf conf = s->sim.link;
		json_t *doc;

		sim_link_name(sim, i, name, sizeof(name));
		doc = json_object_get(s->links, name);
		if (!doc)
			continue;
		found++;
		if (parse_link(doc, &conf, err))
			return -EINVAL;
		sim_set_link(sim, i, &conf);
	}
	if (found != json_object_size(s->links))
		return refuse(err, "links: %zu named, %u exist", json_object_size(s->links), found);
	return 0;
}

/* ---- the rest ---- */

static uint64_t number_of(const json_t *doc, const char *key, uint64_t otherwise)
{
	const json_t *v = json_object_get(doc, key);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v)
								: otherwise;
}

static int parse_workload(const json_t *doc, struct scenario *s, char *err)
{
	const char *what = json_string_value(json_object_get(doc, "workload"));
	const json_t *mode = json_object_get(doc, "mode");
	int op;

	if (!what)
		return refuse(err, "workload: missing");
	s->incast = strcmp(what, "incast") == 0;
	s->rdma = s->incast || strcmp(what, "permutation") == 0 || strcmp(what, "trace") == 0;
	op = s->rdma ? 0 : ccl_collective_parse(what);
	if (op < 0)
		return refuse(err, "workload: %s is unknown", what);
	s->op = (enum ccl_collective)op;
	s->mode = CCL_MODE_2;
	if (json_is_string(mode) && strcmp(json_string_value(mode), "ring") == 0)
		s->mode = CCL_MODE_RING;
	else if (json_is_string(mode) && strcmp(json_string_value(mode), "netreduce") == 0)
		s->mode = CCL_MODE_NETREDUCE;
	else if (mode && (!json_is_integer(mode) || json_integer_value(mode) < 1 ||
				 json_integer_value(mode) > 3))
		return refuse(err, "mode: must be 1, 2, 3, \"netreduce\" or \"ring\"");
	else if (mode)
		s->mode = (enum ccl_mode)json_integer_value(mode);
	return 0;
}

static int parse_sizes(const json_t *doc, struct scenario *s, char *err)
{
	const json_t *bytes = json_object_get(doc, "bytes");
	const size_t n = json_is_array(bytes) ? json_array_size(bytes) : 1;

	if (n == 0 || n > SCENARIO_MAX_SIZES)
		return refuse(err, "bytes: 1..%d sizes", SCENARIO_MAX_SIZES);
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_is_array(bytes) ? json_array_get(bytes, i) : bytes;

		if (v && (!json_is_integer(v) || json_integer_value(v) < 0))
			return refuse(err, "bytes: must be numbers from 0 on");
		s->bytes[i] = v ? (uint64_t)json_integer_value(v) : 0;
	}
	s->n_sizes = (unsigned)n;
	return 0;
}

static int check_keys(const json_t *doc, char *err)
{
	static const char *const keys[] = {"topology", "seed", "link", "links", "workload", "bytes",
		"mode", "ranks", "mtu", "m", "w", "root", "sr", "dcqcn", "limit_ms", "trace",
		"control"};
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)doc, key, value)
	{
		bool known = key[0] == '#';

		for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			known |= strcmp(key, keys[i]) == 0;
		if (!known)
			return refuse(err, "%s: unknown field", key);
	}
	return 0;
}

static int find_host(const struct sim_topo *t, const json_t *name, unsigned *host)
{
	const char *text = json_string_value(name);

	for (unsigned h = 0; text && h < t->n_hosts; h++)
		if (strcmp(t->host[h].name, text) == 0) {
			*host = h;
			return 0;
		}
	return -ENOENT;
}

static int parse_trace(const json_t *list, struct scenario *s, char *err)
{
	const size_t n = json_array_size(list);
	const json_t *row;
	size_t i;

	if (n == 0 || n > SCENARIO_MAX_TRACE)
		return refuse(err, "trace: must be a list of 1..%d writes", SCENARIO_MAX_TRACE);
	s->trace = calloc(n, sizeof(*s->trace));
	if (!s->trace)
		return refuse(err, "trace: out of memory");
	json_array_foreach((json_t *)list, i, row)
	{
		struct sim_flow *f = &s->trace[i];
		const json_int_t bytes = json_integer_value(json_object_get(row, "bytes"));
		const json_int_t time = json_integer_value(json_object_get(row, "time"));

		if (find_host(&s->topo, json_object_get(row, "src"), &f->from) ||
			find_host(&s->topo, json_object_get(row, "dst"), &f->to) ||
			f->from == f->to)
			return refuse(err, "trace[%zu]: src, dst: must be names of two hosts", i);
		if (bytes < 1 || time < 0)
			return refuse(err, "trace[%zu]: bytes from 1 on, time from 0 on", i);
		f->bytes = (uint64_t)bytes;
		f->start_ns = (uint64_t)time;
	}
	s->n_trace = (unsigned)n;
	s->sim.max_qp = 64 + (unsigned)n;
	return 0;
}

int scenario_parse(const json_t *doc, struct scenario *s, char err[CCL_ERR_LEN])
{
	const char *topology = json_string_value(json_object_get(doc, "topology"));
	char why[SIM_ERR_LEN];

	memset(s, 0, sizeof(*s));
	s->sim.link = (struct sim_link_conf){.mbps = 100000, .delay_ns = 1000};
	if (!topology)
		return refuse(err, "topology: missing");
	if (check_keys(doc, err) || parse_workload(doc, s, err) || parse_sizes(doc, s, err) ||
		parse_link(json_object_get(doc, "link"), &s->sim.link, err) ||
		sim_control_parse(json_object_get(doc, "control"), &s->sim.control, err))
		return -EINVAL;
	s->sim.seed = number_of(doc, "seed", 1);
	s->sim.congestion.ect = json_is_true(json_object_get(doc, "dcqcn"));
	s->sr = json_is_true(json_object_get(doc, "sr"));
	s->links = json_object_get(doc, "links");
	s->mtu = (uint16_t)number_of(doc, "mtu", 1024);
	s->m = (uint16_t)number_of(doc, "m", 4);
	s->w = (uint16_t)number_of(doc, "w", 64);
	s->limit_ns = number_of(doc, "limit_ms", 60000) * 1000000;
	if (sim_topo_make(topology, &s->topo, why))
		return refuse(err, "%s", why);
	s->root = (unsigned)number_of(doc, "root", s->topo.root);
	s->ranks = (unsigned)number_of(doc, "ranks", s->topo.n_hosts);
	s->sim.topo = &s->topo;
	if (strcmp(json_string_value(json_object_get(doc, "workload")), "trace") == 0)
		return parse_trace(json_object_get(doc, "trace"), s, err);
	return 0;
}

void scenario_free(struct scenario *s)
{
	sim_topo_free(&s->topo);
	free(s->trace);
}

/* ---- running ---- */

static enum ibv_mtu mtu_code(unsigned bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && 128u << (code + 1) <= bytes)
		code++;
	return code;
}

/* The flows of one run; how many. */
static unsigned make_flows(
	const struct scenario *s, struct sim *sim, uint64_t bytes, struct sim_flow *flow)
{
	if (s->trace) {
		memcpy(flow, s->trace, s->n_trace * sizeof(*flow));
		return s->n_trace;
	}
	return s->incast ? sim_incast(sim, s->ranks, bytes, flow)
			 : sim_permutation(sim, bytes, s->sim.seed, flow);
}

static int run_rdma(const struct scenario *s, struct sim *sim, struct series *series,
	uint64_t bytes, json_t *run)
{
	struct sim_flow *flow = calloc(s->topo.n_hosts + s->n_trace, sizeof(*flow));
	json_t *times = json_array();
	uint64_t last = 0, total = 0;
	unsigned n = make_flows(s, sim, bytes, flow);
	int rc;

	if (series)
		series_flows(series, flow, n);
	rc = sim_rdma_run(sim, flow, n, mtu_code(s->mtu), s->limit_ns);
	if (series)
		series_flows(series, NULL, 0);

	for (unsigned i = 0; i < n; i++) {
		last = flow[i].done_ns > last ? flow[i].done_ns : last;
		total += flow[i].bytes;
		json_array_append_new(times, json_pack("[i,i,I]", (int)flow[i].from,
						     (int)flow[i].to, (json_int_t)flow[i].done_ns));
	}
	free(flow);
	json_object_set_new(run, "ns", json_integer((json_int_t)last));
	json_object_set_new(run, "gbps", json_real(last ? (double)total * 8 / (double)last : 0));
	json_object_set_new(run, "flows", times);
	return rc;
}

static int run_collective(
	const struct scenario *s, struct sim_coll *coll, uint64_t bytes, json_t *run)
{
	uint64_t ns = 0;
	int rc = sim_coll_run(coll, s->op, bytes, s->limit_ns, &ns);

	json_object_set_new(run, "ns", json_integer((json_int_t)ns));
	json_object_set_new(run, "gbps", json_real(ns ? (double)bytes * 8 / (double)ns : 0));
	return rc;
}

static int run_sizes(const struct scenario *s, struct sim *sim, struct sim_coll *coll,
	struct series *series, json_t *runs, char *err)
{
	for (unsigned i = 0; i < s->n_sizes; i++) {
		const double start = sim_seconds(), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
		const uint64_t hops = sim_hops(sim);
		json_t *run = json_pack("{s:I}", "bytes", (json_int_t)s->bytes[i]);
		int rc = coll ? run_collective(s, coll, s->bytes[i], run)
			      : run_rdma(s, sim, series, s->bytes[i], run);

		json_object_set_new(run, "hops", json_integer((json_int_t)(sim_hops(sim) - hops)));
		json_object_set_new(run, "seconds", json_real(sim_seconds() - start));
		json_object_set_new(
			run, "cpu_seconds", json_real(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu));
		if (rc == 0 && coll)
			rc = sim_coll_check(coll);
		json_array_append_new(runs, run);
		if (rc) {
			snprintf(err, CCL_ERR_LEN, "%llu bytes: %s%s%.300s",
				(unsigned long long)s->bytes[i], strerror(-rc), coll ? ": " : "",
				coll ? sim_coll_error(coll) : "");
			return rc;
		}
	}
	return 0;
}

static json_t *link_report(struct sim *sim)
{
	json_t *links = json_object();
	char name[2 * SIM_NAME_LEN + 2];

	for (unsigned i = 0; i < sim_n_links(sim); i++) {
		const struct sim_link *link = sim_link(sim, i);
		json_t *row;

		if (link->count[SIM_L_FRAMES] == 0)
			continue;
		row = json_object();
		for (unsigned c = 0; c < SIM_N_LINK_COUNTERS; c++) {
			const uint64_t n = c == SIM_L_BYTES ? sim_link_left(link, sim_now(sim))
							    : link->count[c];

			if (n)
				json_object_set_new(
					row, sim_link_counter_name(c), json_integer((json_int_t)n));
		}
		sim_link_name(sim, i, name, sizeof(name));
		json_object_set_new(links, name, row);
	}
	return links;
}

static int open_coll(
	const struct scenario *s, struct sim *sim, struct sim_coll **coll, char err[CCL_ERR_LEN])
{
	const struct sim_coll_conf conf = {
		.sim = sim,
		.mode = s->mode,
		.n_ranks = s->ranks,
		.collectives = 1u << s->op,
		.root = s->root,
		.mtu = s->mtu,
		.m = s->m,
		.w = s->w,
		.flags = (uint16_t)(INC_F_LATE_FLUSH | INC_F_STALL_RNR | (s->sr ? INC_F_SR : 0)),
		.start_psn = (uint32_t)(s->sim.seed * 0x9e3779b1u) & 0xffffff,
	};

	return sim_coll_create(&conf, coll, err);
}

static json_t *control_report(struct sim *sim, uint64_t set_up_ns)
{
	json_int_t left = 0;

	for (unsigned i = 0; i < sim_topo(sim)->n_switches; i++)
		left += (json_int_t)sim_switch(sim, i)->arena_used;
	return json_pack("{s:I,s:I,s:I}", "messages", (json_int_t)sim_control_messages(sim),
		"set_up_ns", (json_int_t)set_up_ns, "arena_left_bytes", left);
}

int scenario_run(const struct scenario *s, json_t **result, char err[CCL_ERR_LEN])
{
	struct sim_coll *coll = NULL;
	struct series *series = NULL;
	const double start = sim_seconds();
	struct sim *sim;
	char why[CCL_ERR_LEN], hash[20];
	uint64_t set_up_ns;
	json_t *runs = json_array();
	int rc = sim_create(&s->sim, &sim, why);

	if (rc) {
		snprintf(err, CCL_ERR_LEN, "%s", why);
		json_decref(runs);
		return rc;
	}
	rc = set_links(s, sim, err);
	if (rc == 0 && s->pcap && (rc = sim_capture(sim, s->pcap)))
		snprintf(err, CCL_ERR_LEN, "%.200s: %s", s->pcap, strerror(-rc));
	set_up_ns = sim_now(sim);
	if (rc == 0 && !s->rdma)
		rc = open_coll(s, sim, &coll, err);
	set_up_ns = sim_now(sim) - set_up_ns;
	if (rc == 0 && s->series_ns)
		series = series_start(sim, s->series_ns);
	if (rc == 0)
		rc = run_sizes(s, sim, coll, series, runs, err);
	if (coll) {
		int rc2 = sim_coll_close(coll, why);

		if (rc == 0 && rc2)
			snprintf(err, CCL_ERR_LEN, "%s", why);
		rc = rc ? rc : rc2;
	}
	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)sim_trace_hash(sim));
	*result = json_pack("{s:s,s:i,s:i,s:I,s:o,s:s,s:I,s:I,s:f,s:o,s:o}", "topology",
		s->topo.name, "hosts", (int)s->topo.n_hosts, "switches", (int)s->topo.n_switches,
		"seed", (json_int_t)s->sim.seed, "runs", runs, "trace_hash", hash, "hops",
		(json_int_t)sim_hops(sim), "virtual_ns", (json_int_t)sim_now(sim), "seconds",
		sim_seconds() - start, "links", link_report(sim), "control",
		control_report(sim, set_up_ns));
	if (series)
		json_object_set_new(*result, "series", series_finish(series));
	sim_destroy(sim);
	return rc;
}
