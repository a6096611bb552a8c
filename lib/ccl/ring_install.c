/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/ring_install.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/talk.h"

uint16_t ccl_ring_id(const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (const char *c = name; *c; c++)
		h = (h ^ (uint8_t)*c) * 16777619u;
	return (uint16_t)(h ^ h >> 16);
}

/* ---- ring.create ---- */

static json_t *flow(const struct ccl_group *g, const struct ccl_ring_address *all, unsigned rank)
{
	const struct ccl_ring_address *own = &all[rank], *next = &all[(rank + 1) % g->n_ranks];
	char src[WIRE_IP_STRLEN], dst[WIRE_IP_STRLEN];

	return json_pack("{s:i, s:s, s:s, s:i, s:i, s:i}", "rank", (int)rank, "src",
		wire_ip_format(&own->ip, src, sizeof(src)), "dst",
		wire_ip_format(&next->ip, dst, sizeof(dst)), "qpn", (int)next->prev_qpn,
		"reply_qpn", (int)own->next_qpn, "psn", (int)own->start_psn);
}

static json_t *leaf(
	const struct ccl_group *g, const struct ccl_switch *sw, const struct ccl_child *child)
{
	char ip[WIRE_IP_STRLEN], local[WIRE_IP_STRLEN];

	return json_pack("{s:s, s:s, s:o}", "ip",
		wire_ip_format(&g->sw[child->index].ip, ip, sizeof(ip)), "local_ip",
		wire_ip_format(&sw->ip, local, sizeof(local)), "ranks",
		ccl_group_ranks_below(g, child));
}

static json_t *create_params(const struct ccl_group *g, unsigned i,
	const struct ccl_ring_address *all, unsigned mtu, unsigned activate_ms)
{
	const struct ccl_switch *sw = &g->sw[i];
	json_t *flows = json_array(), *leaves = json_array(), *out;
	char ip[WIRE_IP_STRLEN], local[WIRE_IP_STRLEN];

	for (unsigned c = 0; c < sw->n_children; c++)
		if (sw->child[c].host)
			json_array_append_new(flows, flow(g, all, sw->child[c].index));
		else
			json_array_append_new(leaves, leaf(g, sw, &sw->child[c]));
	out = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:o, s:o, s:b}", "name", g->name,
		"id", (int)ccl_ring_id(g->name), "mtu", (int)mtu, "M", (int)g->m, "W", (int)g->w,
		"ranks", (int)g->n_ranks, "stall_rnr", g->stall_rnr, "strict_port",
		!json_is_false(json_object_get(g->flags, "strict_port")), "flows", flows, "leaves",
		leaves, "activate", 0);
	json_object_set_new(out, "mark_sums", json_true());
	json_object_set_new(out, "first_message", json_integer(all[0].first_msg));
	json_object_set_new(out, "activate_ms", json_integer((json_int_t)activate_ms));
	if (sw->parent >= 0)
		json_object_set_new(out, "parent",
			json_pack("{s:s, s:s}", "ip",
				wire_ip_format(&g->sw[sw->parent].ip, ip, sizeof(ip)), "local_ip",
				wire_ip_format(&sw->ip, local, sizeof(local))));
	return out;
}

/* Leaves are told apart by their lowest rank. */
static int read_created(
	const struct ccl_group *g, unsigned i, const json_t *result, struct ccl_ring_installed *at)
{
	const struct ccl_switch *sw = &g->sw[i];
	const json_t *list = json_object_get(result, "leaves"), *item;
	size_t k;

	if (!json_is_integer(json_object_get(result, "ring")))
		return -EPROTO;
	at->ring = (int)json_integer_value(json_object_get(result, "ring"));
	at->present = true;
	at->parent_qpn = (uint32_t)json_integer_value(json_object_get(result, "parent_qpn"));
	json_array_foreach(list, k, item)
	{
		const json_int_t low =
			json_integer_value(json_array_get(json_object_get(item, "ranks"), 0));

		for (unsigned c = 0; c < sw->n_children; c++) {
			if (sw->child[c].host || sw->child[c].min_rank != (unsigned)low)
				continue;
			at->leaf_qpn[c] =
				(uint32_t)json_integer_value(json_object_get(item, "qpn"));
			at->input[c] = (unsigned)json_integer_value(json_object_get(item, "input"));
		}
	}
	for (unsigned c = 0; c < sw->n_children; c++)
		if (!sw->child[c].host && !at->leaf_qpn[c])
			return -EPROTO;
	return sw->parent >= 0 && !at->parent_qpn ? -EPROTO : 0;
}

/* Of this state? */
static bool is_state(struct ccl_talk *talk, json_t *which, const char *state)
{
	char ignored[CCL_ERR_LEN];
	json_t *show = NULL;
	struct ctl_error e;
	const char *is;
	bool same;

	if (ccl_talk(talk, "ring.show", json_pack("{s:o}", "ring", which), &show, &e, ignored))
		return false;
	is = json_string_value(json_object_get(show, "state"));
	same = is && !strcmp(is, state);
	json_decref(show);
	return same;
}

static int delete (struct ccl_talk *talk, json_t *which, char *err)
{
	struct ctl_error e;
	const int rc =
		ccl_talk(talk, "ring.delete", json_pack("{s:o}", "ring", which), NULL, &e, err);

	return rc == -ENOENT ? 0 : rc; /* done the first time */
}

/* May the switch be about to end the ring of this name, because its maker has gone? Over TCP it
 * does not tell. */
static bool is_orphan(struct ccl_talk *talk, const char *name)
{
	char ignored[CCL_ERR_LEN];
	json_t *show = NULL;
	struct ctl_error e;
	const char *owner;
	bool orphan;
	int rc = ccl_talk(talk, "ring.show", json_pack("{s:s}", "ring", name), &show, &e, ignored);

	owner = json_string_value(json_object_get(show, "owner"));
	orphan = rc == -EPERM || rc == -ENOENT || (owner && strcmp(owner, "held") != 0);
	json_decref(show);
	return orphan;
}

/* What may be of an attempt of ours; 0: there is nothing any more. */
static int clear_unsure(struct ccl_talk *talk, const char *name, char *err)
{
	return is_state(talk, json_string(name), "installed")
		       ? delete (talk, json_string(name), err)
		       : 0;
}

static int create(const struct ccl_group *g, unsigned i, const struct ccl_ring_address *all,
	unsigned mtu, struct ccl_ring_installed *at, char *err)
{
	struct ccl_talk *talk = at->talk;
	const struct ccl_switch *sw = &g->sw[i];
	const int64_t patience = ccl_talk_patience(talk);
	const unsigned ms = ccl_talk_activate_ms(talk->group, talk->group->rings);
	json_t *result = NULL;
	struct ctl_error e;
	int rc;

	for (int try = 1;;) {
		rc = ccl_talk(
			talk, "ring.create", create_params(g, i, all, mtu, ms), &result, &e, err);
		at->unsure |= talk->unsure;
		if (rc != -EEXIST || !strstr(e.msg, "a ring \""))
			break;
		snprintf(err, CCL_ERR_LEN,
			"switch %s has a ring \"%s\" already; if no job uses it: inclinectl -s %s "
			"ring delete %s",
			sw->name, g->name, sw->socket, g->name);
		if (at->unsure && try++ < CCL_TALK_TRIES && clear_unsure(talk, g->name, err) == 0)
			continue;
		if (!is_orphan(talk, g->name) || !ccl_talk_wait(talk, patience))
			break;
	}
	if (rc == 0)
		at->unsure = false;
	if (rc == 0 && read_created(g, i, result, at)) {
		snprintf(err, CCL_ERR_LEN, "switch %s: ring.create: the answer lacks QPNs",
			sw->name);
		rc = -EPROTO;
	}
	json_decref(result);
	return rc;
}

int ccl_ring_create(const struct ccl_group *g, const struct ccl_ring_address *all, unsigned mtu,
	struct ccl_ring_installed *at, char err[CCL_ERR_LEN])
{
	int rc = 0;

	for (unsigned i = 0; i < g->n_switches && rc == 0; i++)
		rc = create(g, i, all, mtu, &at[i], err);
	return rc;
}

/* ---- ring.activate, ring.delete ---- */

static uint32_t parents_qpn(
	const struct ccl_group *g, const struct ccl_ring_installed *at, unsigned i)
{
	const struct ccl_switch *up = &g->sw[g->sw[i].parent];

	for (unsigned c = 0; c < up->n_children; c++)
		if (!up->child[c].host && up->child[c].index == i)
			return at[g->sw[i].parent].leaf_qpn[c];
	return 0;
}

static int activate(
	const struct ccl_group *g, unsigned i, const struct ccl_ring_installed *at, char *err)
{
	struct ccl_talk *talk = at[i].talk;
	const struct ccl_switch *sw = &g->sw[i];
	json_t *list = json_array(), *params;
	struct ctl_error e;
	int rc;

	for (unsigned c = 0; c < sw->n_children; c++)
		if (!sw->child[c].host)
			json_array_append_new(
				list, json_pack("{s:i, s:i}", "input", (int)at[i].input[c], "qpn",
					      (int)at[sw->child[c].index].parent_qpn));
	params = json_pack("{s:i, s:o}", "ring", at[i].ring, "leaves", list);
	if (sw->parent >= 0)
		json_object_set_new(params, "parent_qpn", json_integer(parents_qpn(g, at, i)));
	rc = ccl_talk(talk, "ring.activate", params, NULL, &e, err);
	/* After a second request: has the first one been heard? */
	return rc == -EBUSY && talk->again && is_state(talk, json_integer(at[i].ring), "active")
		       ? 0
		       : rc;
}

int ccl_ring_activate(
	const struct ccl_group *g, const struct ccl_ring_installed *at, char err[CCL_ERR_LEN])
{
	int rc = 0;

	for (unsigned i = 0; i < g->n_switches && rc == 0; i++)
		rc = activate(g, i, at, err);
	return rc;
}

int ccl_ring_delete(const struct ccl_group *g, struct ccl_ring_installed *at, char err[CCL_ERR_LEN])
{
	int last = 0;

	for (unsigned i = 0; i < g->n_switches; i++) {
		int rc = 0;

		if (at[i].present)
			rc = delete (at[i].talk, json_integer(at[i].ring), err);
		else if (at[i].unsure)
			rc = clear_unsure(at[i].talk, g->name, err);
		at[i].present = at[i].unsure = false;
		last = rc ? rc : last;
	}
	return last;
}

/* ---- asking ---- */

/* A rank of the ring as the job knows it. */
static long long known_as(const struct ccl_group *g, json_int_t rank)
{
	return g->of.step ? g->of.first + rank * (json_int_t)g->of.step : rank;
}

static void describe(const struct ccl_group *g, const struct ccl_switch *sw, const json_t *show,
	char *text, size_t cap)
{
	const json_t *ranks = json_object_get(json_object_get(show, "waiting"), "missing_ranks");
	const char *failure = json_string_value(json_object_get(show, "failure"));
	const json_t *rank;
	size_t at;

	if (failure) {
		ccl_talk_add(
			text, cap, "; at switch %s the ring has failed: %s", sw->name, failure);
		return;
	}
	if (json_array_size(ranks))
		ccl_talk_add(text, cap, "; switch %s waits for rank%s ", sw->name,
			json_array_size(ranks) > 1 ? "s" : "");
	json_array_foreach(ranks, at, rank) ccl_talk_add(
		text, cap, "%s%lld", at ? "," : "", known_as(g, json_integer_value(rank)));
}

void ccl_ring_missing(const struct ccl_group *g, char *text, size_t cap)
{
	text[0] = '\0';
	for (unsigned i = 0, reached = 0; i < g->n_switches && reached < CCL_MAX_DEPTH; i++) {
		struct ctl_client *client;
		json_t *show = NULL, *params;
		struct ctl_error e;

		/* Its socket may be on another machine. */
		if (ctl_connect_over(g->io, g->sw[i].socket, 0, &client, &e))
			continue;
		reached++;
		params = json_pack("{s:s}", "ring", g->name);
		if (params && ccl_talk_hold(g, client, CCL_TALK_ASK_MS, &e) == 0)
			ctl_call(client, "ring.show", params, CCL_TALK_ASK_MS, &show, &e);
		json_decref(params);
		ctl_close(client);
		describe(g, &g->sw[i], show, text, cap);
		json_decref(show);
	}
}
