/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/map/report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HOSTS = 4096, CELL = 10 };

/* ---- what an agent says ---- */

static json_t *path_json(const struct map_link *l)
{
	return json_pack("{s:s,s:I,s:I,s:I}", "state", map_state_name(l->state), "answered",
		(json_int_t)l->answered, "lost", (json_int_t)l->lost, "flaps",
		(json_int_t)l->flaps);
}

json_t *map_agent_json(const struct map_agent *a, const struct srv6_paths *paths)
{
	json_t *planes = json_array();
	char address[INET6_ADDRSTRLEN];
	uint64_t sent = 0, skipped = 0;

	for (unsigned i = 0; i < a->n; i++) {
		sent += a->target[i].next_seq;
		skipped += a->target[i].skipped;
	}
	wire_ip_format(&paths->address, address, sizeof(address));
	for (unsigned p = 0; p < a->n_planes; p++) {
		json_t *t1 = json_array();

		for (unsigned k = 0; k < a->n_uplinks; k++)
			json_array_append_new(
				t1, path_json(&map_agent_target(a, p, (uint16_t)k)->link));
		json_array_append_new(planes,
			json_pack("{s:i,s:o,s:o}", "plane", (int)paths->plane[p].number, "t0",
				path_json(&map_agent_target(a, p, MAP_NO_UPLINK)->link), "t1", t1));
	}
	return json_pack("{s:s,s:s,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:o}", "host", paths->name,
		"address", address, "group", (int)a->group, "uplinks", (int)a->n_uplinks, "sent",
		(json_int_t)sent, "skipped", (json_int_t)skipped, "rate_hz",
		(json_int_t)a->config.rate_hz, "late", (json_int_t)a->late, "foreign",
		(json_int_t)a->foreign, "planes", planes);
}

/* ---- joining ---- */

struct join {
	struct map *map;
	const char *const *name; /* of the reports, NULL: they have none */
	char *err;
};

static int fail(const struct join *j, size_t agent, const char *what)
{
	if (j->name != NULL)
		snprintf(j->err, MAP_ERR_LEN, "%.120s: %s", j->name[agent], what);
	else
		snprintf(j->err, MAP_ERR_LEN, "agents[%zu].%s", agent, what);
	return -EINVAL;
}

static int state_of(const json_t *path)
{
	return map_state_parse(json_string_value(json_object_get(path, "state")));
}

static int join_plane(const struct join *j, size_t agent, unsigned n_before, const json_t *plane)
{
	struct map *m = j->map;
	const json_t *t1 = json_object_get(plane, "t1"), *number = json_object_get(plane, "plane");
	const json_int_t n = json_integer_value(number);
	struct map_seen *s = &m->seen[m->n_seen];
	int state = state_of(json_object_get(plane, "t0"));

	if (!json_is_integer(number) || n < 0 || n > UINT8_MAX)
		return fail(j, agent, "planes.plane: must be 0..255");
	for (unsigned i = 1; i <= n_before; i++)
		if (s[-(int)i].plane == n)
			return fail(j, agent, "planes.plane: is there twice");
	if (state < 0)
		return fail(j, agent, "planes.t0.state: is no state of a path");
	if (json_array_size(t1) != m->n_uplinks)
		return fail(j, agent, "planes.t1: must be as many as uplinks");
	*s = (struct map_seen){.host = (uint16_t)agent,
		.group = m->group[agent],
		.plane = (uint8_t)n,
		.t0 = (uint8_t)state};
	for (unsigned k = 0; k < m->n_uplinks; k++) {
		state = state_of(json_array_get(t1, k));
		if (state < 0)
			return fail(j, agent, "planes.t1.state: is no state of a path");
		s->t1[k] = (uint8_t)state;
	}
	m->n_seen++;
	return 0;
}

/* An agent need not say it; if it does, of all three. */
static bool join_pace(struct map_pace *pace, const json_t *agent)
{
	const json_t *rate = json_object_get(agent, "rate_hz"),
		     *sent = json_object_get(agent, "sent"),
		     *skipped = json_object_get(agent, "skipped");

	if (rate == NULL)
		return true;
	if (!json_is_integer(rate) || json_integer_value(rate) < 1 ||
		json_integer_value(rate) > UINT32_MAX || !json_is_integer(sent) ||
		json_integer_value(sent) < 0 || !json_is_integer(skipped) ||
		json_integer_value(skipped) < 0)
		return false;
	*pace = (struct map_pace){(uint32_t)json_integer_value(rate),
		(uint64_t)json_integer_value(sent), (uint64_t)json_integer_value(skipped)};
	return true;
}

static int join_agent(const struct join *j, size_t i, const json_t *agent)
{
	struct map *m = j->map;
	const char *name = json_string_value(json_object_get(agent, "host"));
	const json_int_t group = json_integer_value(json_object_get(agent, "group"));
	const json_t *planes = json_object_get(agent, "planes"),
		     *address = json_object_get(agent, "address");
	int rc = 0;

	if (name == NULL || name[0] == '\0' || strlen(name) >= SRV6_NAME_LEN)
		return fail(j, i, "host: must be 1..31 characters");
	if (!json_is_integer(json_object_get(agent, "group")) || group < 0 || group >= MAP_NOBODY)
		return fail(j, i, "group: must be 0..65534");
	if (json_integer_value(json_object_get(agent, "uplinks")) != m->n_uplinks)
		return fail(j, i, "uplinks: must be those of the first, at most 64");
	if (json_array_size(planes) == 0 || json_array_size(planes) > SRV6_MAX_PLANES)
		return fail(j, i, "planes: must be a list of 1..16");
	if (address != NULL &&
		(json_string_value(address) == NULL ||
			wire_ip_parse(json_string_value(address), &m->address[i]) < 0))
		return fail(j, i, "address: must be an IP address");
	if (!join_pace(&m->pace[i], agent))
		return fail(j, i, "rate_hz, sent, skipped: must be numbers, the rate from 1 on");
	for (size_t k = 0; k < i; k++)
		if (strcmp(m->host[k], name) == 0)
			return fail(j, i, "host: is there twice");
	snprintf(m->host[i], SRV6_NAME_LEN, "%s", name);
	m->group[i] = (uint16_t)group;
	m->n_hosts++;
	for (size_t k = 0; rc == 0 && k < json_array_size(planes); k++)
		rc = join_plane(j, i, (unsigned)k, json_array_get(planes, k));
	return rc;
}

static int find_faults(struct map *m)
{
	const unsigned n = map_locate(m->seen, m->n_seen, m->n_uplinks, NULL, 0);

	m->fault = calloc(n + 1, sizeof(*m->fault));
	if (m->fault == NULL)
		return -ENOMEM;
	m->n_faults = map_locate(m->seen, m->n_seen, m->n_uplinks, m->fault, n);
	return 0;
}

int map_join(const json_t *agents, const char *const *name, struct map **out, char err[MAP_ERR_LEN])
{
	const size_t n = json_array_size(agents);
	const json_int_t uplinks =
		json_integer_value(json_object_get(json_array_get(agents, 0), "uplinks"));
	struct join j = {.name = name, .err = err};
	struct map *m;
	int rc = 0;

	if (n == 0 || n > MAX_HOSTS) {
		snprintf(err, MAP_ERR_LEN, "agents: must be a list of 1..%d", MAX_HOSTS);
		return -EINVAL;
	}
	if (uplinks < 0 || uplinks > MAP_MAX_UPLINKS)
		return fail(&j, 0, "uplinks: must be 0..64");
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	j.map = m;
	m->n_uplinks = (unsigned)uplinks;
	m->host = calloc(n, sizeof(*m->host));
	m->address = calloc(n, sizeof(*m->address));
	m->group = calloc(n, sizeof(*m->group));
	m->pace = calloc(n, sizeof(*m->pace));
	m->seen = calloc(n * SRV6_MAX_PLANES, sizeof(*m->seen));
	if (m->host == NULL || m->address == NULL || m->group == NULL || m->pace == NULL ||
		m->seen == NULL)
		rc = -ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = join_agent(&j, i, json_array_get(agents, i));
	rc = rc < 0 ? rc : find_faults(m);
	if (rc < 0) {
		map_free(m);
		return rc;
	}
	*out = m;
	return 0;
}

void map_free(struct map *m)
{
	if (m == NULL)
		return;
	free(m->host);
	free(m->address);
	free(m->group);
	free(m->pace);
	free(m->seen);
	free(m->fault);
	free(m);
}

/* ---- what is shown ---- */

static json_t *fault_json(const struct map *m, const struct map_fault *f)
{
	json_t *o = json_pack("{s:s,s:i,s:s,s:b}", "kind", map_kind_name(f->kind), "plane",
		(int)f->plane, "state", map_state_name(f->state), "sure", (int)f->sure);

	if (f->host != MAP_NOBODY)
		json_object_set_new(o, "host", json_string(m->host[f->host]));
	if (f->group != MAP_NOBODY)
		json_object_set_new(o, "t0", json_integer(f->group));
	if (f->uplink != MAP_NOBODY)
		json_object_set_new(o, "t1", json_integer(f->uplink));
	return o;
}

static json_t *host_json(const struct map *m, unsigned i)
{
	const struct map_pace *p = &m->pace[i];
	json_t *o = json_pack("{s:s,s:i}", "name", m->host[i], "t0", (int)m->group[i]);

	if (p->rate_hz) {
		json_object_set_new(o, "rate_hz", json_integer(p->rate_hz));
		json_object_set_new(o, "sent", json_integer((json_int_t)p->sent));
		json_object_set_new(o, "skipped", json_integer((json_int_t)p->skipped));
	}
	return o;
}

json_t *map_json(const struct map *m)
{
	json_t *faults = json_array(), *hosts = json_array();

	for (unsigned i = 0; i < m->n_hosts; i++)
		json_array_append_new(hosts, host_json(m, i));
	for (unsigned i = 0; i < m->n_faults; i++)
		json_array_append_new(faults, fault_json(m, &m->fault[i]));
	return json_pack(
		"{s:o,s:i,s:o}", "hosts", hosts, "uplinks", (int)m->n_uplinks, "faults", faults);
}

/* The planes that a host has seen; how many. */
static unsigned planes_of(const struct map *m, unsigned host, uint8_t plane[SRV6_MAX_PLANES])
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->n_seen && n < SRV6_MAX_PLANES; i++)
		if (m->seen[i].host == host)
			plane[n++] = m->seen[i].plane;
	return n;
}

static json_t *denied_evs(const struct map *m, unsigned from, unsigned to, const uint8_t *plane,
	unsigned n_planes, unsigned plane_shift)
{
	const bool near = m->group[from] == m->group[to];
	json_t *evs = json_array();

	for (unsigned i = 0; i < n_planes; i++) {
		struct map_path path = {.plane = plane[i],
			.from = (uint16_t)from,
			.to = (uint16_t)to,
			.from_group = m->group[from],
			.to_group = m->group[to]};

		for (unsigned k = 0; k < (near ? 1 : m->n_uplinks); k++) {
			path.uplink = near ? MAP_NOBODY : (uint16_t)k;
			if (map_denied(m->fault, m->n_faults, &path))
				json_array_append_new(evs,
					json_integer((json_int_t)path.plane << plane_shift | k));
		}
	}
	return evs;
}

static json_t *denied_from(const struct map *m, unsigned from, unsigned plane_shift)
{
	json_t *to = json_object();
	uint8_t plane[SRV6_MAX_PLANES];
	const unsigned n = planes_of(m, from, plane);

	for (unsigned k = 0; k < m->n_hosts; k++) {
		json_t *evs = from == k ? NULL : denied_evs(m, from, k, plane, n, plane_shift);

		if (evs != NULL && json_array_size(evs) > 0)
			json_object_set(to, m->host[k], evs);
		json_decref(evs);
	}
	return to;
}

json_t *map_denylist(const struct map *m, unsigned plane_shift)
{
	json_t *all = json_object();

	for (unsigned i = 0; m->n_faults > 0 && i < m->n_hosts; i++) {
		json_t *to = denied_from(m, i, plane_shift);

		if (json_object_size(to) > 0)
			json_object_set(all, m->host[i], to);
		json_decref(to);
	}
	return all;
}

static void print_row(const struct map *m, const struct map_seen *s, FILE *out)
{
	fprintf(out, "  %-*s t0 %-4u %-*s", CELL, m->host[s->host], s->group, CELL,
		map_state_name(s->t0));
	for (unsigned k = 0; k < m->n_uplinks; k++)
		fprintf(out, " %-*s", CELL, map_state_name(s->t1[k]));
	fprintf(out, "\n");
}

static void print_fault(const struct map *m, const struct map_fault *f, FILE *out)
{
	static const char *const perhaps[MAP_N_KINDS] = {" or the T0", "", " or the T1", ""};

	fprintf(out, "plane %u: ", f->plane);
	if (f->kind == MAP_HOST_LINK)
		fprintf(out, "link of %s to t0 %u", m->host[f->host], f->group);
	else if (f->kind == MAP_T0)
		fprintf(out, "switch t0 %u", f->group);
	else if (f->kind == MAP_UPLINK)
		fprintf(out, "link t0 %u to t1 %u", f->group, f->uplink);
	else
		fprintf(out, "switch t1 %u", f->uplink);
	fprintf(out, "%s: %s\n", f->sure ? "" : perhaps[f->kind], map_state_name(f->state));
}

/* What an agent reaches of the rate that it aims at, of each link, and why not more. */
static void print_pace(const struct map *m, unsigned host, FILE *out)
{
	const struct map_pace *p = &m->pace[host];
	const double due = (double)p->sent + (double)p->skipped;

	if (p->rate_hz == 0 || due == 0)
		return;
	fprintf(out, "%s: %.0f of %u probes per second and link", m->host[host],
		p->rate_hz * (double)p->sent / due, p->rate_hz);
	if (p->skipped)
		fprintf(out, ", %.1f %% skipped: it had to wait for a processor",
			100 * (double)p->skipped / due);
	fprintf(out, "\n");
}

void map_print(const struct map *m, FILE *out)
{
	for (unsigned plane = 0; plane <= UINT8_MAX; plane++) {
		bool begun = false;

		for (unsigned i = 0; i < m->n_seen; i++) {
			if (m->seen[i].plane != plane)
				continue;
			if (!begun) {
				fprintf(out, "plane %-4u %11s%-*s", plane, "", CELL, "to t0");
				for (unsigned k = 0; k < m->n_uplinks; k++)
					fprintf(out, " to t1 %-*u", CELL - 6, k);
				fprintf(out, "\n");
			}
			begun = true;
			print_row(m, &m->seen[i], out);
		}
	}
	for (unsigned i = 0; i < m->n_faults; i++)
		print_fault(m, &m->fault[i], out);
	if (m->n_faults == 0)
		fprintf(out, "nothing is wrong\n");
	for (unsigned i = 0; i < m->n_hosts; i++)
		print_pace(m, i, out);
}
