/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/sim_series.h"

#include <stdlib.h>

struct series {
	struct sim *sim;
	uint64_t every;
	uint64_t *link_bytes; /* at the last sample */
	json_t *at, **link, *flows;
	const struct sim_flow *flow;
	uint64_t *acked;
	unsigned n_flows;
	size_t first_flow; /* in flows: those of runs before are complete */
};

/* Bytes since the last time. */
static void add(json_t *list, uint64_t *last, uint64_t now)
{
	json_array_append_new(list, json_integer((json_int_t)(now - *last)));
	*last = now;
}

static void look(void *arg, uint64_t now)
{
	struct series *s = arg;

	json_array_append_new(s->at, json_integer((json_int_t)now));
	for (unsigned i = 0; i < sim_n_links(s->sim); i++)
		add(s->link[i], &s->link_bytes[i], sim_link_left(sim_link(s->sim, i), now));
	for (unsigned i = 0; i < s->n_flows; i++)
		add(json_object_get(json_array_get(s->flows, s->first_flow + i), "bytes"),
			&s->acked[i], s->flow[i].acked);
}

struct series *series_start(struct sim *sim, uint64_t every_ns)
{
	const unsigned n = sim_n_links(sim);
	struct series *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct series){.sim = sim, .every = every_ns};
	s->link_bytes = calloc(n, sizeof(*s->link_bytes));
	s->link = calloc(n, sizeof(json_t *));
	if (!s->link_bytes || !s->link) {
		free(s->link_bytes);
		free(s->link);
		free(s);
		return NULL;
	}
	s->at = json_array();
	s->flows = json_array();
	for (unsigned i = 0; i < n; i++)
		s->link[i] = json_array();
	sim_set_sampler(sim, every_ns, look, s);
	return s;
}

/* As many samples as there were before it began: none of its bytes. */
static json_t *nothing(size_t n)
{
	json_t *list = json_array();

	while (n--)
		json_array_append_new(list, json_integer(0));
	return list;
}

void series_flows(struct series *s, const struct sim_flow *flow, unsigned n)
{
	if (s->n_flows) /* what came after the last sample of those before */
		look(s, sim_now(s->sim));
	s->first_flow = json_array_size(s->flows);
	s->flow = flow;
	s->n_flows = n;
	free(s->acked);
	s->acked = calloc(n + 1, sizeof(*s->acked));
	if (!s->acked)
		s->n_flows = 0;
	for (unsigned i = 0; i < s->n_flows; i++)
		json_array_append_new(s->flows,
			json_pack("{s:i,s:i,s:o}", "from", (int)flow[i].from, "to", (int)flow[i].to,
				"bytes", nothing(json_array_size(s->at))));
}

json_t *series_finish(struct series *s)
{
	json_t *links = json_object(), *all;
	char name[2 * SIM_NAME_LEN + 2];
	size_t i;
	json_t *flow;

	look(s, sim_now(s->sim));
	sim_set_sampler(s->sim, 0, NULL, NULL);
	json_array_foreach(s->flows, i, flow)
	{
		json_t *bytes = json_object_get(flow, "bytes");

		while (json_array_size(bytes) < json_array_size(s->at))
			json_array_append_new(bytes, json_integer(0));
	}
	for (unsigned l = 0; l < sim_n_links(s->sim); l++) {
		sim_link_name(s->sim, l, name, sizeof(name));
		if (s->link_bytes[l])
			json_object_set(links, name, s->link[l]);
		json_decref(s->link[l]);
	}
	all = json_pack("{s:I,s:o,s:o,s:o}", "every_ns", (json_int_t)s->every, "at_ns", s->at,
		"links", links, "flows", s->flows);
	free(s->acked);
	free(s->link_bytes);
	free(s->link);
	free(s);
	return all;
}
