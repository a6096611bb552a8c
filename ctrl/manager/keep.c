/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing down what a successor has to know (store.h). Keys:
 *
 *	born		first epoch of this store: what is older, others may know
 *	epoch		no epoch up to this one was, or will be, given before the next start
 *	run/EPOCH	a run as it was placed: job, processes of its ranks, plan
 *	state/EPOCH	where it is
 *	policy		that was set at run time (policy.c)
 *	blocks/SWITCH	how large blocks of shared memory are there, for jobs too that have gone
 *	link/A/PORT	a link that was learnt (discover.c)
 *	host/IP		whose address that is, likewise
 *
 * Whatever a switch or a rank is told was written before. Names stand for nodes and ports, so the
 * configuration may change in between. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/keep.h"

/* Epochs are written so many ahead. */
enum { AHEAD = 1 << 16, LEFT = 1 << 10 };

/* Takes over value; NULL: the record goes. */
static int put_value(struct manager *m, const char *key, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
	int rc = value && !text ? -ENOMEM : 0;

	if (!rc)
		rc = m->store.put(m->store.arg, key, text);
	free(text);
	json_decref(value);
	return rc;
}

static int put_json(struct manager *m, const char *kind, uint64_t epoch, json_t *value)
{
	char key[32];

	snprintf(key, sizeof(key), "%s/%" PRIu64, kind, epoch);
	return put_value(m, key, value);
}

int mg_put_number(struct manager *m, const char *key, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return m->store.put(m->store.arg, key, text);
}

/* ---- a run ---- */

static const char *node_name(const struct manager *m, unsigned node)
{
	const struct mgr_node *n = mgr_graph_node(m->g, node);

	return n ? n->name : "";
}

static const char *port_name(const struct manager *m, unsigned link, unsigned node)
{
	struct mgr_link l;

	if (mgr_graph_link(m->g, link, &l))
		return "";
	return mgr_graph_port(m->g, l.port[l.node[1] == node])->name;
}

static json_t *tree_json(const struct manager *m, const struct mgr_tree *t)
{
	json_t *sw = json_array(), *members = json_array();
	struct mgr_link l;

	for (unsigned i = 0; i < t->n_sw; i++)
		json_array_append_new(
			sw, json_pack("{s:s,s:i,s:s,s:b}", "node", node_name(m, t->sw[i].node),
				    "parent", t->sw[i].parent, "port",
				    i ? port_name(m, t->sw[i].link, t->sw[i].node) : "", "transit",
				    t->sw[i].transit));
	for (unsigned i = 0; i < t->n_members; i++) {
		const unsigned at = t->sw[t->member[i].sw].node;
		const bool there = !mgr_graph_link(m->g, t->member[i].link, &l);
		const unsigned host = there ? l.node[l.node[0] == at] : 0;

		json_array_append_new(
			members, json_pack("{s:i,s:s,s:s}", "sw", (int)t->member[i].sw, "node",
					 there ? node_name(m, host) : "", "port",
					 there ? port_name(m, t->member[i].link, host) : ""));
	}
	return json_pack("{s:o,s:o}", "sw", sw, "members", members);
}

static json_t *plan_json(const struct manager *m, const struct mgr_plan *p)
{
	return json_pack("{s:i,s:i,s:i,s:i,s:o,s:o,s:i,s:b,s:i,s:o,s:i,s:i,s:i}", "mode",
		(int)p->size.mode, "m", (int)p->size.m, "w", (int)p->size.w, "slots",
		(int)p->size.slots, "bps", ctl_u64(p->bps), "goodput", ctl_u64(p->goodput), "duty",
		(int)p->duty, "whole", p->whole, "height", (int)p->tree.height, "tree",
		tree_json(m, &p->tree), "block", (int)p->window.block, "start",
		(int)p->window.start, "length", (int)p->window.length);
}

static json_t *run_json(const struct manager *m, const struct mgr_run_kept *k)
{
	const struct mgr_job *j = &k->job;
	json_t *who = json_array(), *out;

	for (unsigned i = 0; i < j->n_ranks; i++)
		json_array_append_new(who, ctl_u64(k->who(k->ranks, i)));
	out = json_pack("{s:o,s:o,s:o,s:i,s:i,s:o,s:i,s:b,s:b,s:o,s:o,s:i,s:b,s:b,s:b}", "job",
		rpc_text(j->name), "owner", rpc_text(j->owner), "who", who, "mtu",
		(int)j->shape.mtu, "m", (int)j->shape.m, "hop_ns", ctl_u64(j->shape.hop_ns),
		"loss_ppm", (int)j->shape.loss_ppm, "reproducible", j->shape.reproducible, "half",
		j->shape.half, "want_bps", ctl_u64(j->want_bps), "least_bps", ctl_u64(j->least_bps),
		"duty", (int)j->duty, "promised", j->promised, "low", j->low, "ring", j->ring);
	if (out && k->plan)
		json_object_set_new(out, "plan", plan_json(m, k->plan));
	return out;
}

/* ---- its state ---- */

static json_t *flags_json(
	const struct mgr_run_kept *k, bool (*flag)(const void *ranks, unsigned rank))
{
	char text[MGR_MAX_MEMBERS + 1];

	for (unsigned i = 0; i < k->job.n_ranks; i++)
		text[i] = flag(k->ranks, i) ? '1' : '0';
	return json_stringn(text, k->job.n_ranks);
}

/* A rank, a switch or a link. */
static json_t *culprit_json(const struct manager *m, const struct mgr_run_kept *k)
{
	struct mgr_link l;

	if (mg_end_names_switch(k->end))
		return json_pack("{s:s}", "node", node_name(m, k->culprit));
	if (k->end == MGR_END_LINK_DOWN && !mgr_graph_link(m->g, k->culprit, &l))
		return json_pack("{s:s,s:s}", "node", node_name(m, l.node[0]), "port",
			mgr_graph_port(m->g, l.port[0])->name);
	return json_pack("{s:I}", "number", (json_int_t)k->culprit);
}

bool mg_end_names_switch(enum mgr_end end)
{
	return end >= MGR_END_GROUP_FAILED && end != MGR_END_LINK_DOWN;
}

static json_t *state_json(const struct manager *m, const struct mgr_run_kept *k)
{
	return json_pack("{s:i,s:i,s:i,s:i,s:o,s:o,s:o}", "phase", (int)k->phase, "want",
		(int)k->want, "why", (int)k->why, "end", (int)k->end, "culprit", culprit_json(m, k),
		"ready", flags_json(k, k->ready), "left", flags_json(k, k->left));
}

/* Of a switch, up to the last that is anybody's; NULL: as it is written down already. */
static json_t *blocks_json(struct manager *m, struct mg_switch *s, bool *changed)
{
	json_t *sizes = json_array();
	unsigned last = 0;

	*changed = false;
	for (unsigned i = 0; i < MGR_MAX_BLOCKS; i++) {
		const uint64_t bytes = mgr_book_block_bytes(m->b, s->node, i + 1);

		*changed = *changed || bytes != s->block[i];
		s->block[i] = bytes;
		last = bytes ? i + 1 : last;
	}
	for (unsigned i = 0; i < last; i++)
		json_array_append_new(sizes, ctl_u64(s->block[i]));
	if (last && *changed)
		return json_pack("{s:o}", "bytes", sizes);
	json_decref(sizes);
	return NULL;
}

/* On the switches of a plan. Blocks that nobody has any more may be written down larger: who has
 * one next is written down then. */
static int put_blocks(struct manager *m, const struct mgr_plan *p)
{
	char key[MGR_NAME_LEN + 8];
	int rc = 0;

	for (unsigned i = 0; !rc && p && p->window.block && i < p->tree.n_sw; i++) {
		struct mg_switch *s = mg_switch_of(m, p->tree.sw[i].node);
		bool changed = false;
		json_t *value = s ? blocks_json(m, s, &changed) : NULL;

		snprintf(key, sizeof(key), "blocks/%s", s ? s->name : "");
		if (changed)
			rc = put_value(m, key, value);
	}
	return rc;
}

static int put_run(struct manager *m, const struct mgr_run_kept *k, bool first, bool gone)
{
	int rc = 0;

	if (gone)
		rc = put_json(m, "run", k->epoch, NULL);
	else if (first)
		rc = put_json(m, "run", k->epoch, run_json(m, k));
	if (!rc)
		rc = put_json(m, "state", k->epoch, gone ? NULL : state_json(m, k));
	return rc ? rc : put_blocks(m, k->plan);
}

static int has_failed(struct manager *m, int rc)
{
	m->failed = rc;
	mg_say(m, JOURNAL_ERR,
		"store: %s: what is promised cannot be written down, so nothing more is",
		strerror(-rc));
	return rc;
}

void mg_keep_learnt(struct manager *m, const char *key, json_t *value)
{
	int rc;

	if (m->failed) {
		json_decref(value);
		return;
	}
	rc = put_value(m, key, value);
	if (rc)
		has_failed(m, rc);
}

int mg_keep_ours(struct manager *m)
{
	int rc = m->failed;

	if (m->store.alive && !rc)
		rc = mg_put_number(m, "epoch", m->epoch_bound);
	return rc || !m->store.alive ? rc : mg_keep(m);
}

int mg_keep(struct manager *m)
{
	struct mgr_run_kept k;
	bool first, gone;
	int rc = 0;

	if (m->failed)
		return m->failed;
	while (!rc && mgr_jobs_changed(m->jobs, &k, &first, &gone))
		rc = put_run(m, &k, first, gone);
	if (!rc && mgr_jobs_next_epoch(m->jobs) + LEFT > m->epoch_bound) {
		m->epoch_bound = mgr_jobs_next_epoch(m->jobs) + AHEAD;
		rc = mg_put_number(m, "epoch", m->epoch_bound);
	}
	if (!rc)
		rc = m->store.commit(m->store.arg);
	return rc ? has_failed(m, rc) : 0;
}
