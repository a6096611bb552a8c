/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/manager/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/manager_schema.h"
#include "lib/ctl/rpc.h"

static const uint64_t MS = 1000000;

/* ---- lines ---- */

static char *request(const char *method, json_t *params)
{
	json_t *r = json_pack("{s:s,s:s,s:s}", "jsonrpc", "2.0", "id", "r", "method", method);
	char *text;

	if (params)
		json_object_set_new(r, "params", params);
	text = json_dumps(r, JSON_COMPACT);
	json_decref(r);
	return text;
}

/* Takes over both; the answer's result (new reference) or NULL. */
static json_t *result_of(char *line, char *answer)
{
	json_t *a = answer ? json_loads(answer, 0, NULL) : NULL, *result;

	result = json_incref(json_object_get(a, "result"));
	if (a && !result && getenv("WORLD_SAYS"))
		fprintf(stderr, "%s: %s\n", line, answer);
	json_decref(a);
	free(line);
	free(answer);
	return result;
}

static json_t *ask_manager(
	struct world *w, struct manager_peer *peer, const char *method, json_t *params)
{
	char *line = request(method, params);

	char *answer =
		w->m && !w->dying ? manager_line(w->m, peer, line, strlen(line), w->now) : NULL;

	if (w->dying) { /* in the middle of it: nobody hears of it */
		free(answer);
		answer = NULL;
	}
	return result_of(line, answer);
}

json_t *world_ask_switch(
	struct world *w, unsigned i, struct agent_peer *peer, const char *method, json_t *params)
{
	char *line = request(method, params);
	struct world_switch *s = &w->sw[i];
	const bool there = s->sw && !s->cut_off;

	return result_of(
		line, there ? agent_handle_line(s->agent, peer, line, strlen(line)) : NULL);
}

json_t *world_ask(struct world *w, const char *method, json_t *params)
{
	json_t *r = ask_manager(w, NULL, method, params);

	assert_non_null(r);
	return r;
}

/* A connection to a switch ends; who is cut off hears of it when he is back. */
static void end_connection(struct world_switch *s, struct agent_peer *peer)
{
	if (s->sw && !s->cut_off)
		agent_peer_gone(s->agent, peer);
	else if (s->sw && s->n_lost < sizeof(s->lost) / sizeof(*s->lost))
		s->lost[s->n_lost++] = *peer;
	*peer = (struct agent_peer){0};
}

/* ---- manager ---- */

static void send_line(void *arg, unsigned i, const char *line)
{
	struct world *w = arg;
	struct world_switch *s = &w->sw[i];
	char *answer;

	if (++w->lines == w->die_at_line)
		w->dying = true;
	if (!s->sw || s->cut_off || w->dying)
		return;
	answer = agent_handle_line(s->agent, &s->manager, line, strlen(line));
	if (answer && w->says)
		answer = w->says(i, answer);
	if (answer)
		manager_heard(w->m, i, answer, strlen(answer), w->now);
	free(answer);
}

static void hang_up(struct world *w, unsigned i)
{
	struct world_switch *s = &w->sw[i];

	if (s->connected)
		end_connection(s, &s->manager);
	s->connected = false;
}

static void drop(void *arg, unsigned i)
{
	hang_up(arg, i);
}

static void say(void *arg, enum journal_level level, const char *line)
{
	struct world *w = arg;

	snprintf(w->said, sizeof(w->said), "%s", line);
	if (getenv("WORLD_SAYS"))
		journal(level, "%s", line);
}

void world_start_manager(struct world *w)
{
	const struct manager_io io = {w, send_line, drop, say, .name = "here:7"};
	char err[MANAGER_ERR_LEN];

	if (manager_create(w->config, &io, w->store, 1000 + 1000 * w->late++, w->now, &w->m, err))
		fail_msg("%s", err);
}

void world_kill_manager(struct world *w)
{
	for (unsigned j = 0; j < JOBS; j++)
		for (unsigned r = 0; r < RANKS; r++) {
			manager_gone(w->m, &w->job[j].rank[r].peer);
			w->job[j].rank[r].connected = false;
		}
	for (unsigned i = 0; i < SWITCHES; i++)
		hang_up(w, i);
	manager_destroy(w->m);
	w->m = NULL;
}

static void serve_manager(struct world *w)
{
	for (unsigned i = 0; i < SWITCHES; i++) {
		struct world_switch *s = &w->sw[i];
		char *line;

		if (s->connected && !s->sw) {
			s->connected = false;
			manager_down(w->m, i, false, w->now);
		}
		if (!s->connected && !s->sw) {
			manager_down(w->m, i, true, w->now); /* dialled: refused */
		} else if (!s->connected && !s->cut_off) {
			s->connected = true;
			manager_up(w->m, i, w->now);
		}
		while (s->connected && !s->cut_off && s->sw &&
			(line = agent_next_event(s->agent, &s->manager))) {
			manager_heard(w->m, i, line, strlen(line), w->now);
			free(line);
		}
	}
	manager_tick(w->m, w->now);
}

static void bury_manager(struct world *w)
{
	if (!w->m || (!w->dying && !manager_failed(w->m)))
		return;
	world_kill_manager(w);
	w->dying = false;
	world_start_manager(w);
}

/* ---- switches ---- */

void world_start_switch(struct world *w, unsigned i)
{
	struct world_switch *s = &w->sw[i];

	s->sw = fake_switch_create();
	s->sw->now = w->now;
	s->sw->arena = 1 << 20;
	s->sw->n_ports = i < LEAVES ? SPINES + JOBS : LEAVES;
	assert_int_equal(agent_create(s->sw, NULL, &s->agent), 0);
}

void world_kill_switch(struct world *w, unsigned i)
{
	struct world_switch *s = &w->sw[i];

	agent_destroy(s->agent);
	fake_switch_destroy(s->sw);
	s->sw = NULL;
	s->n_lost = 0;
	s->manager = (struct agent_peer){0};
	for (unsigned j = 0; j < JOBS; j++)
		w->job[j].rank[0].at[i] = (struct agent_peer){0};
}

void world_cut_off(struct world *w, unsigned i, bool cut)
{
	struct world_switch *s = &w->sw[i];

	s->cut_off = cut;
	while (!cut && s->n_lost > 0)
		agent_peer_gone(s->agent, &s->lost[--s->n_lost]);
}

/* A cable, and whoever is at its other end, decide whether a port has a link. */
static void set_links(struct world *w)
{
	for (unsigned l = 0; l < LEAVES; l++)
		for (unsigned s = 0; s < SPINES; s++) {
			struct sw *leaf = w->sw[l].sw, *spine = w->sw[LEAVES + s].sw;

			if (leaf && !spine)
				leaf->cut |= 1ull << s;
			else if (leaf && !(leaf->cut >> (32 + s) & 1))
				leaf->cut &= ~(1ull << s);
			if (spine && !leaf)
				spine->cut |= 1ull << l;
			else if (spine && !(spine->cut >> (32 + l) & 1))
				spine->cut &= ~(1ull << l);
		}
}

/* The upper half of the mask: what was cut on purpose. */
void world_cut(struct world *w, unsigned leaf, unsigned spine, bool cut)
{
	struct sw *a = w->sw[leaf].sw, *b = w->sw[spine].sw;
	const uint64_t x = 1ull << (spine - LEAVES) | 1ull << (32 + spine - LEAVES),
		       y = 1ull << leaf | 1ull << (32 + leaf);

	a->cut = cut ? a->cut | x : a->cut & ~x;
	b->cut = cut ? b->cut | y : b->cut & ~y;
}

/* ---- ranks ---- */

static void take_state(const struct world *w, struct world_rank *k, const json_t *state)
{
	if (!state)
		return;
	json_decref(k->window);
	k->window = json_incref(json_object_get(state, "window"));
	k->told = w->now;
	ctl_get_u64(json_object_get(state, "epoch"), &k->epoch);
	snprintf(k->phase, sizeof(k->phase), "%s",
		json_string_value(json_object_get(state, "phase")));
	snprintf(k->line, sizeof(k->line), "%s", json_string_value(json_object_get(state, "line")));
}

static json_t *rank_params(struct world *w, unsigned j, unsigned r)
{
	char name[16];

	snprintf(name, sizeof(name), "job%u", j);
	return json_pack("{s:s,s:o,s:i,s:o}", "job", name, "epoch",
		ctl_u64(w->job[j].rank[r].epoch), "rank", (int)r, "who",
		ctl_u64(w->job[j].rank[r].who));
}

static void join(struct world *w, unsigned j, unsigned r)
{
	struct world_rank *k = &w->job[j].rank[r];
	char name[24], ip[40];
	json_t *state;

	k->who = ++w->random;
	k->ready = false;
	k->phase[0] = '\0';
	snprintf(name, sizeof(name), "job%u", j);
	snprintf(ip, sizeof(ip), "10.1.%u.%u", r, j);
	state = ask_manager(w, &k->peer, "job.join",
		json_pack("{s:s,s:i,s:i,s:o,s:s,s:i,s:b,s:b,s:i,s:i}", "job", name, "ranks", RANKS,
			"rank", (int)r, "who", ctl_u64(k->who), "ip", ip, "mtu", 1024, "resume",
			w->job[j].resume, "lease", w->job[j].duty, "duty", w->job[j].duty ?: 1000,
			"mbps", w->job[j].mbps));
	k->connected = state != NULL;
	take_state(w, k, state);
	json_decref(state);
}

/* CommLib keeps rank 0's connections to switches, and lets go of them with a communicator. */
static void let_go_of_switches(struct world *w, struct world_rank *k)
{
	for (unsigned i = 0; i < SWITCHES; i++)
		end_connection(&w->sw[i], &k->at[i]);
}

/* Who works looks up now and then; who waits to be placed asks often. */
static bool works(const struct world *w, const struct world_rank *k)
{
	return w->now - k->asked < w->watch_ms * MS &&
	       (!strcmp(k->phase, "active") || !strcmp(k->phase, "ring") ||
		       !strcmp(k->phase, "adopted"));
}

static void step_rank(struct world *w, unsigned j, unsigned r)
{
	struct world_job *job = &w->job[j];
	struct world_rank *k = &job->rank[r];
	json_t *state;

	if (k->alive && r == 0 && job->plan) { /* CommLib asks nobody meanwhile */
		world_install(w, j);
		return;
	}
	if (!k->alive || !w->m || works(w, k))
		return;
	k->asked = w->now;
	if (!k->phase[0] || (!strcmp(k->phase, "over") && job->again)) {
		let_go_of_switches(w, k);
		join(w, j, r);
		return;
	}
	state = ask_manager(w, &k->peer, "job.heartbeat", rank_params(w, j, r));
	if (w->dying) /* no answer: it will ask again */
		return;
	if (!state) { /* not known (any more) */
		snprintf(k->phase, sizeof(k->phase), "over");
		return;
	}
	k->connected = true;
	take_state(w, k, state);
	if (!strcmp(k->phase, "ring"))
		let_go_of_switches(w, k);
	if (r == 0)
		world_use_lease(w, j);
	if (r == 0 && job->installed != k->epoch && json_object_get(state, "plan")) {
		job->plan = json_incref(json_object_get(state, "plan"));
		world_install(w, j);
	}
	json_decref(state);
	if (!strcmp(k->phase, "connecting") && job->installed == k->epoch && !k->ready) {
		state = ask_manager(w, &k->peer, "job.ready", rank_params(w, j, r));
		k->ready = state != NULL;
		take_state(w, k, state);
		json_decref(state);
	}
}

void world_start_rank(struct world *w, unsigned j, unsigned r)
{
	json_decref(w->job[j].rank[r].window);
	w->job[j].rank[r] = (struct world_rank){.alive = true};
	join(w, j, r);
}

void world_start_job(struct world *w, unsigned j)
{
	for (unsigned r = 0; r < RANKS; r++)
		world_start_rank(w, j, r);
}

void world_kill_rank(struct world *w, unsigned j, unsigned r)
{
	struct world_rank *k = &w->job[j].rank[r];

	if (w->m)
		manager_gone(w->m, &k->peer);
	k->connected = k->alive = false;
	if (r == 0)
		world_drop_plan(&w->job[j]);
	let_go_of_switches(w, k);
}

void world_leave_job(struct world *w, unsigned j)
{
	for (unsigned r = 0; r < RANKS; r++) {
		if (w->job[j].rank[r].alive)
			json_decref(ask_manager(
				w, &w->job[j].rank[r].peer, "job.leave", rank_params(w, j, r)));
		world_kill_rank(w, j, r);
	}
}

void world_end_job(struct world *w, unsigned j)
{
	char name[16];

	snprintf(name, sizeof(name), "job%u", j);
	for (unsigned i = 0; i < SWITCHES; i++)
		json_decref(world_ask_switch(w, i, &w->job[j].rank[0].at[i], "group.delete",
			json_pack("{s:s,s:b}", "group", name, "force", 1)));
	world_leave_job(w, j);
}

/* ---- time ---- */

void world_pass(struct world *w, uint64_t ms)
{
	for (uint64_t end = w->now + ms * MS; w->now < end;) {
		w->now += w->step_ms * MS;
		set_links(w);
		for (unsigned i = 0; i < SWITCHES; i++) {
			if (!w->sw[i].sw)
				continue;
			w->sw[i].sw->now = w->now;
			agent_tick(w->sw[i].agent, w->now);
		}
		bury_manager(w);
		if (w->m)
			serve_manager(w);
		for (unsigned j = 0; j < JOBS; j++)
			for (unsigned r = 0; r < RANKS; r++)
				step_rank(w, j, r);
	}
}

bool world_active(const struct world *w, unsigned j)
{
	for (unsigned r = 0; r < RANKS; r++)
		if (strcmp(w->job[j].rank[r].phase, "active") != 0 ||
			w->job[j].rank[r].epoch != w->job[j].rank[0].epoch)
			return false;
	return true;
}

unsigned world_spine(const struct world *w, unsigned j)
{
	const char *at = strstr(w->job[j].tree, "spine");

	assert_non_null(at);
	return LEAVES + (unsigned)(at[5] - '0');
}

void world_expect_clean(struct world *w)
{
	for (unsigned i = 0; i < SWITCHES; i++)
		for (unsigned slot = 1; w->sw[i].sw && slot < INC_GROUP_SLOTS; slot++)
			if (sw_group_get(w->sw[i].sw, slot))
				fail_msg("switch %u has group %s left", i,
					sw_group_get(w->sw[i].sw, slot)->name);
	world_expect_nothing_promised(w);
}

void world_expect_nothing_promised(struct world *w)
{
	json_t *t = world_ask(w, "topology.get", NULL), *node;
	size_t k;

	json_array_foreach(json_object_get(t, "nodes"), k, node)
	{
		assert_int_equal(rpc_int(node, "promised_bytes", 0), 0);
		assert_int_equal(rpc_int(node, "groups", 0), 0);
	}
	json_decref(t);
}

/* ---- life ---- */

static json_t *config(void)
{
	json_t *sw = json_array(), *hosts = json_array(), *links = json_array();
	char a[24], b[24], ip[40], p[16], q[16];

	for (unsigned i = 0; i < SWITCHES; i++) {
		snprintf(a, sizeof(a), i < LEAVES ? "leaf%u" : "spine%u",
			i < LEAVES ? i : i - LEAVES);
		snprintf(ip, sizeof(ip), "10.2.0.%u", i);
		json_array_append_new(
			sw, json_pack("{s:s,s:s,s:s}", "name", a, "control", a, "ip", ip));
	}
	for (unsigned l = 0; l < LEAVES; l++) {
		snprintf(a, sizeof(a), "leaf%u", l);
		for (unsigned s = 0; s < SPINES + JOBS; s++) {
			snprintf(b, sizeof(b), s < SPINES ? "spine%u" : "h%u",
				s < SPINES ? s : 10 * l + s - SPINES);
			snprintf(p, sizeof(p), "p%u", s);
			snprintf(q, sizeof(q), "p%u", l);
			snprintf(ip, sizeof(ip), "10.1.%u.%u", l, s - SPINES);
			json_array_append_new(
				links, json_pack("{s:s,s:s,s:s,s:s,s:i}", "a", a, "a_port", p, "b",
					       b, "b_port", s < SPINES ? q : "nic", "mbps", 10000));
			if (s >= SPINES)
				json_array_append_new(
					hosts, json_pack("{s:s,s:s}", "name", b, "ip", ip));
		}
	}
	return json_pack("{s:o,s:o,s:o,s:i}", "switches", sw, "hosts", hosts, "links", links,
		"drain_ms", 1000);
}

void world_open(struct world *w)
{
	world_open_with(w, NULL);
}

void world_open_with(struct world *w, struct store *store)
{
	struct ctl_problem p;

	memset(w, 0, sizeof(*w));
	w->store = store;
	w->now = 1000 * MS;
	w->step_ms = 50;
	w->config = config();
	if (ctl_check_value(&ctl_manager_config, w->config, "", &p))
		fail_msg("%s: %s", p.path, p.msg);
	for (unsigned i = 0; i < SWITCHES; i++)
		world_start_switch(w, i);
	world_start_manager(w);
	world_pass(w, 500);
}

void world_close(struct world *w)
{
	for (unsigned j = 0; j < JOBS; j++)
		for (unsigned r = 0; r < RANKS; r++)
			world_kill_rank(w, j, r);
	if (w->m)
		world_kill_manager(w);
	for (unsigned i = 0; i < SWITCHES; i++)
		if (w->sw[i].sw)
			world_kill_switch(w, i);
	json_decref(w->config);
}

static int note(void *to, const char *key, const char *value)
{
	return json_object_set_new(to, key, json_string(value));
}

char *world_everything(struct world *w)
{
	json_t *all = json_object();
	char *text;

	if (w->store)
		assert_int_equal(w->store->each(w->store->arg, note, all), 0);
	json_object_set_new(all, "jobs", world_ask(w, "job.list", NULL));
	json_object_set_new(all, "topology", world_ask(w, "topology.get", NULL));
	text = json_dumps(all, JSON_SORT_KEYS);
	json_decref(all);
	return text;
}
