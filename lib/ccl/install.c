/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/install.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/random.h"
#include "lib/ccl/talk.h"

/* ---- what is to be installed ---- */

int ccl_sub_name(
	const struct ccl_group *g, enum ccl_prim prim, unsigned root, char name[CCL_NAME_LEN])
{
	int n;

	if (prim == CCL_PRIM_AR)
		n = snprintf(name, CCL_NAME_LEN, "%s", g->name);
	else
		n = snprintf(name, CCL_NAME_LEN, "%s.%s%u", g->name,
			prim == CCL_PRIM_RED ? "red" : "bc", root);
	return n < CCL_NAME_LEN ? 0 : -ENAMETOOLONG;
}

uint32_t ccl_random_psn(void)
{
	uint32_t psn = 0;

	(void)!ccl_random(&psn, sizeof(psn)); /* no secret: 0 will do */
	return psn & 0xffffff;
}

static int init_sub(struct ccl_install *in, unsigned i, unsigned collectives, char *err)
{
	const struct ccl_group *g = in->group;
	struct ccl_sub *sub = &in->sub[i];

	ccl_describe_group(in->kind, collectives, g->n_ranks, i, &sub->prim, &sub->root);
	sub->start_psn = ccl_random_psn();
	sub->rank_qpn = calloc(g->n_ranks, sizeof(*sub->rank_qpn));
	sub->rank_mr = calloc(g->n_ranks, sizeof(*sub->rank_mr));
	if (!sub->rank_qpn || !sub->rank_mr)
		return -ENOMEM;
	if (ccl_sub_name(g, sub->prim, sub->root, sub->name) == 0)
		return 0;
	snprintf(err, CCL_ERR_LEN, "name: \"%s\" is too long for groups per root (at most %d)",
		g->name, CCL_NAME_LEN - 1 - (int)sizeof(".red63"));
	return -ENAMETOOLONG;
}

int ccl_install_init(struct ccl_install *in, const struct ccl_group *g, enum ccl_kind kind,
	unsigned collectives, char err[CCL_ERR_LEN])
{
	int rc = 0;

	*in = (struct ccl_install){
		.group = g, .kind = kind, .n = ccl_count_groups(kind, collectives, g->n_ranks)};
	snprintf(err, CCL_ERR_LEN, "out of memory");
	in->sub = calloc(in->n, sizeof(*in->sub));
	in->at = calloc((size_t)in->n * g->n_switches, sizeof(*in->at));
	in->talk = calloc(g->n_switches, sizeof(*in->talk));
	if (!in->sub || !in->at || !in->talk)
		rc = -ENOMEM;
	for (unsigned i = 0; i < g->n_switches && !rc; i++)
		in->talk[i] = (struct ccl_talk){.group = g, .sw = i};
	for (unsigned i = 0; i < in->n && !rc; i++)
		rc = init_sub(in, i, collectives, err);
	if (rc)
		ccl_install_fini(in);
	return rc;
}

void ccl_install_fini(struct ccl_install *in)
{
	for (unsigned i = 0; in->sub && i < in->n; i++) {
		free(in->sub[i].rank_qpn);
		free(in->sub[i].rank_mr);
	}
	for (unsigned i = 0; in->talk && i < in->group->n_switches; i++)
		ccl_talk_end(&in->talk[i]);
	free(in->talk);
	free(in->sub);
	free(in->at);
	*in = (struct ccl_install){0};
}

static struct ccl_installed *at(const struct ccl_install *in, unsigned sw, unsigned sub)
{
	return &in->at[sw * in->n + sub];
}

/* ---- group.create ---- */

static json_t *child_endpoint(
	const struct ccl_group *g, const struct ccl_child *child, const struct ccl_sub *sub)
{
	const struct wire_ip *ip =
		child->host ? &g->rank_ip[child->index] : &g->sw[child->index].ip;
	const json_int_t qpn = child->host ? (json_int_t)sub->rank_qpn[child->index] : 0;
	const struct ccl_mr *mr = child->host ? &sub->rank_mr[child->index] : NULL;
	char text[WIRE_IP_STRLEN];
	json_t *ep;

	ep = json_pack("{s:s, s:I, s:s, s:b, s:b, s:o}", "ip",
		wire_ip_format(ip, text, sizeof(text)), "qpn", qpn, "port", child->port, "host",
		child->host, "parent", 0, "ranks", ccl_group_ranks_below(g, child));
	if (mr && mr->len)
		json_object_update_new(
			ep, json_pack("{s:o, s:I, s:I}", "mr_addr", ctl_u64(mr->addr), "mr_len",
				    (json_int_t)mr->len, "rkey", (json_int_t)mr->rkey));
	return ep;
}

static json_t *parent_endpoint(const struct ccl_group *g, const struct ccl_switch *sw)
{
	char text[WIRE_IP_STRLEN];

	return json_pack("{s:s, s:i, s:s, s:b, s:b}", "ip",
		wire_ip_format(&g->sw[sw->parent].ip, text, sizeof(text)), "qpn", 0, "port",
		sw->parent_port, "host", 0, "parent", 1);
}

/* Every endpoint's own address is the one that its neighbours know. */
static json_t *endpoints(const struct ccl_group *g, unsigned i, const struct ccl_sub *sub)
{
	const struct ccl_switch *sw = &g->sw[i];
	json_t *list = json_array(), *ep;
	char local[WIRE_IP_STRLEN];
	size_t k;

	for (unsigned c = 0; c < sw->n_children; c++)
		json_array_append_new(list, child_endpoint(g, &sw->child[c], sub));
	if (sw->parent >= 0)
		json_array_append_new(list, parent_endpoint(g, sw));
	wire_ip_format(&sw->ip, local, sizeof(local));
	json_array_foreach(list, k, ep) json_object_set_new(ep, "local_ip", json_string(local));
	return list;
}

static json_t *create_params(const struct ccl_install *in, unsigned i, const struct ccl_sub *sub)
{
	static const char *const prims[] = {"allreduce", "reduce", "broadcast"};
	const struct ccl_group *g = in->group;
	const unsigned w = ccl_group_window(in->kind, sub->prim, false, g->w, g->n_ranks);
	json_t *params = json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:O, s:o, s:b}",
		"name", sub->name, "mode", g->mode, "kind", ccl_kind_name(in->kind), "mtu",
		(int)in->mtu, "M", (int)g->m, "W", (int)w, "start_psn", (int)sub->start_psn,
		"ranks", (int)g->n_ranks, "flags", g->flags, "endpoints", endpoints(g, i, sub),
		"activate", 0);

	json_object_set_new(
		params, "activate_ms", json_integer((json_int_t)ccl_talk_activate_ms(g, in->n)));
	if (g->epoch)
		json_object_update_new(params,
			json_pack("{s:s, s:o}", "job", g->name, "epoch", ctl_u64(g->epoch)));
	if (g->slots)
		json_object_set_new(params, "slots", json_integer((json_int_t)g->slots));
	if (g->write)
		json_object_set_new(params, "verb", json_string("write"));
	if (g->lease[0])
		json_object_update_new(
			params, json_pack("{s:s, s:s, s:i}", "lease", g->lease, "tenant", g->name,
					"lease_ms", (int)g->lease_ms));
	if (in->kind == CCL_SINGLE)
		json_object_set_new(params, "primitive", json_string(prims[sub->prim]));
	if (in->kind == CCL_SINGLE && sub->prim != CCL_PRIM_AR)
		json_object_set_new(params, "root", json_integer((json_int_t)sub->root));
	return params;
}

static int read_created(
	const struct ccl_group *g, unsigned i, const json_t *result, struct ccl_installed *inst)
{
	const json_t *list = json_object_get(result, "endpoints");
	const size_t n = g->sw[i].n_children + (g->sw[i].parent >= 0);
	const json_t *ep;
	size_t k;

	if (!json_is_integer(json_object_get(result, "group")) || json_array_size(list) != n)
		return -EPROTO;
	inst->slot = (int)json_integer_value(json_object_get(result, "group"));
	inst->present = true;
	json_array_foreach(list, k, ep)
	{
		const json_int_t index = json_integer_value(json_object_get(ep, "index"));
		const json_int_t qpn = json_integer_value(json_object_get(ep, "qpn"));

		if (index < 0 || index >= (json_int_t)n || qpn < 1 || qpn > 0xffffff)
			return -EPROTO;
		inst->qpn[index] = (uint32_t)qpn;
	}
	return 0;
}

/* A group of a name, as it is shown: made by a request of ours whose answer is lost? */
static bool is_ours(const struct ccl_sub *sub, const json_t *show)
{
	const char *state = json_string_value(json_object_get(show, "state"));

	return state && !strcmp(state, "installed") &&
	       json_integer_value(json_object_get(show, "start_psn")) == (json_int_t)sub->start_psn;
}

static int delete_group(struct ccl_talk *talk, json_t *which, bool force, char *err)
{
	struct ctl_error e;
	const int rc = ccl_talk(talk, "group.delete",
		json_pack("{s:o, s:b}", "group", which, "force", force), NULL, &e, err);

	/* Done the first time, or by itself; on its way. */
	return rc == -ENOENT || (talk->again && rc == -EALREADY) ? 0 : rc;
}

/* Is a group or ring, as it is shown, about to be ended by the switch? */
static bool is_orphan(const json_t *show)
{
	const char *owner = json_string_value(json_object_get(show, "owner"));

	return owner && strcmp(owner, "held") != 0;
}

/* A group of this name exists. One that drains or has failed is of a former run and goes, and so
 * does one of ours; one that may be about to go is -EAGAIN. 0: there is none any more; else err
 * says whose it is. */
static int clear_former(struct ccl_talk *talk, const struct ccl_sub *sub, bool unsure, char *err)
{
	const struct ccl_switch *sw = &talk->group->sw[talk->sw];
	json_t *result = NULL;
	const char *state;
	struct ctl_error e;
	int rc = ccl_talk(
		talk, "group.show", json_pack("{s:s}", "group", sub->name), &result, &e, err);

	if (rc == 0) {
		state = json_string_value(json_object_get(result, "state"));
		if ((state && (!strcmp(state, "draining") || !strcmp(state, "failed"))) ||
			(unsure && is_ours(sub, result))) {
			rc = delete_group(talk, json_string(sub->name), true, err);
		} else {
			snprintf(err, CCL_ERR_LEN,
				"switch %s has a group \"%s\" already (%s); if no "
				"job uses it: inclinectl -s %s group delete %s",
				sw->name, sub->name, state ? state : "?", sw->socket, sub->name);
			rc = is_orphan(result) ? -EAGAIN : -EEXIST;
		}
	} else if (rc == -EPERM) {
		snprintf(err, CCL_ERR_LEN, "switch %s has a group \"%s\" already, of another job",
			sw->name, sub->name);
		rc = -EAGAIN;
	}
	json_decref(result);
	return rc == -ENOENT ? 0 : rc; /* it went by itself meanwhile */
}

static int create_one(struct ccl_install *in, unsigned s, struct ccl_talk *talk, char *err)
{
	const unsigned i = talk->sw;
	struct ccl_installed *inst = at(in, i, s);
	const int64_t patience = ccl_talk_patience(talk);
	json_t *result = NULL;
	struct ctl_error e;
	int rc;

	for (int try = 1;; try++) {
		rc = ccl_talk(
			talk, "group.create", create_params(in, i, &in->sub[s]), &result, &e, err);
		inst->unsure |= talk->unsure;
		if (rc != -EEXIST || try == CCL_TALK_TRIES)
			break;
		while ((rc = clear_former(talk, &in->sub[s], inst->unsure, err)) == -EAGAIN &&
			ccl_talk_wait(talk, patience))
			;
		if (rc)
			break;
	}
	rc = rc == -EAGAIN ? -EEXIST : rc;
	if (rc == 0)
		inst->unsure = false;
	if (rc == 0 && read_created(in->group, i, result, inst)) {
		snprintf(err, CCL_ERR_LEN, "switch %s: group.create: the answer lacks endpoints",
			in->group->sw[i].name);
		rc = -EPROTO;
	}
	json_decref(result);
	return rc;
}

/* ---- group.activate, group.delete ---- */

/* QPN of the neighbour at an endpoint that group.create could not know: a switch. */
static uint32_t neighbour_qpn(const struct ccl_install *in, unsigned i, unsigned s, unsigned ep)
{
	const struct ccl_group *g = in->group;
	const struct ccl_switch *sw = &g->sw[i];
	const struct ccl_switch *up;

	if (ep < sw->n_children) {
		const struct ccl_child *child = &sw->child[ep];

		return child->host ? 0
				   : at(in, child->index, s)->qpn[g->sw[child->index].n_children];
	}
	up = &g->sw[sw->parent];
	for (unsigned c = 0; c < up->n_children; c++)
		if (!up->child[c].host && up->child[c].index == i)
			return at(in, (unsigned)sw->parent, s)->qpn[c];
	return 0;
}

/* After a second request: has the first one been heard? */
static bool is_active(struct ccl_talk *talk, int slot)
{
	char ignored[CCL_ERR_LEN];
	json_t *show = NULL;
	struct ctl_error e;
	const char *state;
	bool active;

	if (ccl_talk(talk, "group.show", json_pack("{s:i}", "group", slot), &show, &e, ignored))
		return false;
	state = json_string_value(json_object_get(show, "state"));
	active = state && !strcmp(state, "active");
	json_decref(show);
	return active;
}

static int activate_one(struct ccl_install *in, unsigned s, struct ccl_talk *talk, char *err)
{
	const struct ccl_group *g = in->group;
	const unsigned i = talk->sw, n = g->sw[i].n_children + (g->sw[i].parent >= 0);
	json_t *list = json_array();
	struct ctl_error e;
	int rc;

	for (unsigned ep = 0; ep < n; ep++) {
		const uint32_t qpn = neighbour_qpn(in, i, s, ep);

		if (qpn)
			json_array_append_new(
				list, json_pack("{s:i, s:i}", "index", (int)ep, "qpn", (int)qpn));
	}
	rc = ccl_talk(talk, "group.activate",
		json_pack("{s:i, s:o}", "group", at(in, i, s)->slot, "endpoints", list), NULL, &e,
		err);
	return rc == -EBUSY && talk->again && is_active(talk, at(in, i, s)->slot) ? 0 : rc;
}

/* Every group at one switch. */
static int each_sub(struct ccl_install *in, unsigned i,
	int (*fn)(struct ccl_install *in, unsigned s, struct ccl_talk *talk, char *err), char *err)
{
	struct ccl_talk *talk = &in->talk[i];
	int rc = 0;

	talk->connect_ms = ccl_talk_timeout_ms(in->group);
	for (unsigned s = 0; s < in->n && !rc; s++)
		rc = fn(in, s, talk, err);
	return rc;
}

/* What was made, or may have been: then it is known by its name alone. */
static int delete_one(
	struct ccl_install *in, unsigned s, struct ccl_talk *talk, bool force, char *err)
{
	struct ccl_installed *inst = at(in, talk->sw, s);
	int rc = 0;

	if (inst->present) {
		rc = delete_group(talk, json_integer(inst->slot), force, err);
	} else if (inst->unsure) {
		char why[CCL_ERR_LEN];

		rc = clear_former(talk, &in->sub[s], true, why);
		if (rc && rc != -EEXIST) /* somebody else's */
			memcpy(err, why, CCL_ERR_LEN);
		rc = rc == -EEXIST ? 0 : rc;
	}
	inst->present = inst->unsure = false;
	return rc;
}

int ccl_uninstall(struct ccl_install *in, bool force, char err[CCL_ERR_LEN])
{
	int last = 0;

	for (unsigned i = 0; in->at && i < in->group->n_switches; i++) {
		struct ccl_talk *talk = &in->talk[i];

		talk->connect_ms = CCL_TALK_UNDO_MS;
		for (unsigned s = 0; s < in->n; s++) {
			const int rc = delete_one(in, s, talk, force, err);

			last = rc ? rc : last;
			if (rc && !talk->client)
				break; /* it does not answer: nor will it for the next */
		}
		ccl_talk_end(talk);
	}
	return last;
}

void ccl_install_renew(struct ccl_install *in)
{
	for (unsigned i = 0; in->talk && i < in->group->n_switches; i++)
		ccl_talk_renew(&in->talk[i]);
}

int ccl_install(struct ccl_install *in, char err[CCL_ERR_LEN])
{
	const unsigned n = in->group->n_switches;
	char why[CCL_ERR_LEN];
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++)
		rc = each_sub(in, i, create_one, err);
	for (unsigned i = 0; i < n && !rc; i++)
		rc = each_sub(in, i, activate_one, err);
	if (rc && ccl_uninstall(in, true, why))
		ccl_talk_add(err, CCL_ERR_LEN, "; what was made could not be deleted: %.200s", why);
	return rc;
}

uint32_t ccl_installed_qpn(const struct ccl_install *in, unsigned sub, unsigned rank)
{
	const struct ccl_group *g = in->group;
	const unsigned i = ccl_group_first_hop(g, rank);

	for (unsigned c = 0; c < g->sw[i].n_children; c++)
		if (g->sw[i].child[c].host && g->sw[i].child[c].index == rank)
			return at(in, i, sub)->qpn[c];
	return 0;
}

/* ---- asking ---- */

static void describe(const struct ccl_switch *sw, const json_t *show, char *text, size_t cap)
{
	const char *state = json_string_value(json_object_get(show, "state"));
	const char *reason = json_string_value(json_object_get(show, "fail_reason"));
	const json_t *ranks = json_object_get(json_object_get(show, "waiting"), "missing_ranks");
	const json_t *rank;
	size_t k;

	if (state && strcmp(state, "active") != 0)
		ccl_talk_add(text, cap, "; at switch %s the group is %s%s%s%s", sw->name, state,
			reason ? " (" : "", reason ? reason : "", reason ? ")" : "");
	if (json_array_size(ranks) == 0)
		return;
	ccl_talk_add(text, cap, "; switch %s waits for rank%s ", sw->name,
		json_array_size(ranks) > 1 ? "s" : "");
	json_array_foreach(ranks, k, rank) ccl_talk_add(
		text, cap, "%s%lld", k ? "," : "", (long long)json_integer_value(rank));
}

void ccl_install_missing(const struct ccl_group *g, const char *name, char *text, size_t cap)
{
	json_t *params = json_pack("{s:s}", "group", name);
	unsigned reached = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < g->n_switches && reached < CCL_MAX_DEPTH; i++) {
		struct ctl_client *client;
		json_t *show = NULL;
		struct ctl_error e;

		if (ctl_connect_over(g->io, g->sw[i].socket, 0, &client, &e))
			continue; /* its socket may be on another machine */
		reached++;
		if (params && ccl_talk_hold(g, client, CCL_TALK_ASK_MS, &e) == 0 &&
			ctl_call(client, "group.show", params, CCL_TALK_ASK_MS, &show, &e) == 0)
			describe(&g->sw[i], show, text, cap);
		json_decref(show);
		ctl_close(client);
	}
	json_decref(params);
}
